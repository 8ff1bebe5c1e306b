//! Parties whose data suffices for every profile.

use billing_domain::codes::{AddressScheme, IdentifierScheme};
use billing_domain::party::legal::{BuyerReference, Contact, EInvoiceProfile, ElectronicAddress, LegalNote, Registration, VatId};
use billing_domain::party::{Address, CustomerProfile, EntityProfile, OnlinePaymentDetails};
use billing_domain::simulate::{Simulation, customer, entity};
use billing_testkit::fixtures::{line, prose};

fn address(country: &str) -> Address {
    Address {
        line1: Some(prose("Street 1\nBack house")),
        city: Some(prose("Town <&> \"City\"")),
        state: Some(prose("State")),
        zip_code: Some(prose("12345")),
        country_code: country.parse().ok(),
        ..Address::default()
    }
}

fn electronic_address(value: &str) -> Option<ElectronicAddress> {
    Some(ElectronicAddress { scheme: AddressScheme::parse("EM").ok()?, value: line(value) })
}

fn buyer(profile: &mut CustomerProfile) {
    profile.legal_name = Some(line("Buyer & Söhne SAS"));
    profile.billing_address = Some(address("FR"));
    profile.legal.vat_id = VatId::parse("FR40303265045").ok();
    profile.legal.electronic_address = electronic_address("buyer@example.com");
    profile.buyer_reference = BuyerReference::parse("04011000-12345-35").ok();
}

fn seller(profile: &mut EntityProfile) {
    profile.legal_name = Some(line("Seller GmbH"));
    profile.address = Some(address("DE"));
    profile.tax_id = Some(line("60/123/45678"));
    profile.legal.vat_id = VatId::parse("DE123456789").ok();
    profile.legal.registration =
        Some(Registration { scheme: IdentifierScheme::parse("0088").ok(), value: line("4012345000009") });
    profile.legal.electronic_address = electronic_address("seller@example.com");
    profile.paper.contact = Some(Contact {
        name: Some(line("Billing")),
        phone: Some(line("+49 421 1234")),
        email: Some(line("billing@example.com")),
    });
    let subject_code = "PMD".parse().ok();
    profile.paper.legal_notes = vec![
        LegalNote { subject_code, text: prose("Late payment: 9 %") },
        LegalNote { subject_code: None, text: prose("#abc# is no subject\r\nsecond line") },
    ];
    profile.payment.online = Some(OnlinePaymentDetails::default());
}

/// Returns a simulation with these parties, for a profile.
pub(crate) fn simulation(profile: EInvoiceProfile) -> Simulation {
    let buyer = customer().with(buyer).with(move |customer| customer.e_invoice_profile = Some(profile));
    Simulation::new().customer(buyer).entity(entity("default").with(seller))
}
