//! The terms that a profile requires, by the rules of EN 16931, XRechnung (BR-DE) and Peppol (PEPPOL-EN16931).

use chrono::NaiveDate;

use super::business_terms::filled;
use super::{Missing, is_stated};
use crate::document::legal_particulars::{LegalParticulars, LegalParticularsInput, PartyDetails};
use crate::document::totals::DocumentContent;
use crate::money::Percentage;
use crate::party::bank::BankAccountProfile;
use crate::party::legal::EInvoiceProfile;
use crate::party::{Address, Customer, Entity};
use crate::tax::{TaxBasis, TaxCategory, TaxTreatment, mixes_untaxable};
use crate::text::{OneLine, Prose};

/// The minimum number of digits of the seller's telephone number in XRechnung.
const PHONE_DIGITS: usize = 3;
/// The exemption codes that belong to one category, with the rule of Peppol.
const CODES_OF_CATEGORIES: [(&str, TaxCategory, &str); 7] = [
    ("VATEX-EU-G", TaxCategory::G, "P0104"),
    ("VATEX-EU-O", TaxCategory::O, "P0105"),
    ("VATEX-EU-AE", TaxCategory::Ae, "P0107"),
    ("VATEX-EU-D", TaxCategory::E, "P0108"),
    ("VATEX-EU-F", TaxCategory::E, "P0109"),
    ("VATEX-EU-I", TaxCategory::E, "P0110"),
    ("VATEX-EU-J", TaxCategory::E, "P0111"),
];

/// The terms of a document that don't come from the legal particulars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// Whether the document has a buyer reference (BT-10).
    pub has_buyer_reference: bool,
    /// Whether the document has a purchase order number (BT-13).
    pub has_order_reference: bool,
    /// Whether the document states how to pay (BG-16).
    pub has_payment_means: bool,
}

/// Returns the terms of the parties that are missing for documents with taxes of these categories. Without a category, the taxes
/// are at the standard rate.
pub fn missing(profile: EInvoiceProfile, paper: &LegalParticulars, categories: &[TaxCategory], given: Given) -> Vec<Missing> {
    let mut lacks = Lacks(Vec::new());
    let (seller, buyer) = (&paper.entity, &paper.customer);
    lacks.unless(has_country(seller), "/entity/address/country_code", "BT-40, BR-09");
    lacks.unless(has_country(buyer), "/customer/address/country_code", "BT-55, BR-11");
    seller_numbers(&mut lacks, seller, if categories.is_empty() { &[TaxCategory::S] } else { categories });
    if categories.contains(&TaxCategory::Ae) {
        lacks.unless(buyer.vat_id.is_some(), "/customer/vat_id", "BT-48, BR-AE-02");
    }
    match profile {
        EInvoiceProfile::None | EInvoiceProfile::En16931 | EInvoiceProfile::FacturX => {}
        EInvoiceProfile::Xrechnung => {
            electronic_addresses(&mut lacks, seller, buyer);
            xrechnung(&mut lacks, paper, given);
        }
        EInvoiceProfile::Peppol => {
            electronic_addresses(&mut lacks, seller, buyer);
            let has_reference = given.has_buyer_reference || given.has_order_reference;
            lacks.unless(has_reference, "/buyer_reference", "BT-10, PEPPOL-EN16931-R003");
        }
    }
    lacks.0
}

/// Returns the terms that the documents of an entity for a customer would lack, before any of them exists. The default tax of a day
/// determines the category. Terms that the contract may state, such as the buyer reference, count as missing.
pub fn missing_of_parties(
    customer: &Customer,
    entity: &Entity,
    bank_account: Option<BankAccountProfile>,
    today: NaiveDate,
) -> Vec<Missing> {
    let payment = customer.profile.payment.or(&entity.profile.payment);
    let has_payment_means = bank_account.is_some() || is_stated(&payment);
    let facts = LegalParticularsInput { bank_account, ..LegalParticularsInput::default() };
    let paper = LegalParticulars::of(customer, entity, facts);
    let profile = paper.e_invoice_profile;
    if profile == EInvoiceProfile::None {
        return vec![Missing::new("/e_invoice_profile", "no e-invoice with the profile NONE")];
    }
    let stated = [customer.profile.taxes.on(today), entity.profile.taxes.on(today)];
    let treatment = TaxTreatment::of(&stated);
    let category = treatment.basis.category.or((treatment.rate != Percentage::ZERO).then_some(TaxCategory::S));
    let given = Given { has_buyer_reference: paper.buyer_reference.is_some(), has_order_reference: false, has_payment_means };
    missing(profile, &paper, &Vec::from_iter(category), given)
}

/// Returns the terms of the taxes that are missing or that contradict each other.
pub(super) fn missing_of_taxes(profile: EInvoiceProfile, content: &DocumentContent) -> Vec<Missing> {
    let mut lacks = Lacks(Vec::new());
    for (i, tax) in content.taxes.iter().enumerate() {
        let TaxBasis { category, exemption_code, exemption_reason } = &tax.treatment.basis;
        let at = |field: &str| format!("/taxes/{i}/{field}");
        let Some(category) = category else {
            // Above a rate of zero, the category is S, also where it isn't stated.
            lacks.unless(tax.treatment.rate != Percentage::ZERO, at("tax_category"), "BT-151, BR-CO-04");
            continue;
        };
        if category.needs_reason() {
            let has_reason = exemption_code.is_some() || is_filled(exemption_reason.as_ref());
            lacks.unless(has_reason, at("exemption_reason"), format!("BT-120, BR-{}-10", category.as_str()));
        }
        if profile == EInvoiceProfile::Peppol {
            let code = exemption_code.map(|code| code.as_str());
            let rule = CODES_OF_CATEGORIES.iter().find(|(known, of, _)| Some(*known) == code && of != category);
            if let Some((_, _, rule)) = rule {
                lacks.unless(false, at("exemption_code"), format!("BT-121, PEPPOL-EN16931-{rule}"));
            }
        }
    }
    let is_mixed = mixes_untaxable(content.taxes.iter().filter_map(|tax| tax.treatment.basis.category));
    lacks.unless(!is_mixed, "/taxes", "BT-118, BR-O-11");
    lacks.0
}

/// The missing terms in the order in which they were found.
struct Lacks(Vec<Missing>);

impl Lacks {
    fn unless(&mut self, is_there: bool, pointer: impl Into<String>, detail: impl Into<String>) {
        if !is_there {
            self.0.push(Missing::new(pointer, detail));
        }
    }
}

/// Adds the numbers that identify the seller (BR-CO-26) and that its tax categories require.
fn seller_numbers(lacks: &mut Lacks, seller: &PartyDetails, categories: &[TaxCategory]) {
    let has_vat_id = seller.vat_id.is_some();
    let has_registration = seller.registration.as_ref().is_some_and(|registration| is_filled(Some(&registration.value)));
    if categories.contains(&TaxCategory::O) {
        // What is not subject to tax has no VAT number (BR-O-02).
        lacks.unless(has_registration, "/entity/registration", "BT-30, BR-CO-26");
        return;
    }
    let has_tax_number = has_vat_id || is_filled(seller.tax_id.as_ref());
    let strict = [(TaxCategory::Ae, "BT-31, BR-AE-02"), (TaxCategory::G, "BT-31, BR-G-02")];
    let others = [(TaxCategory::S, "BT-31, BR-S-02"), (TaxCategory::Z, "BT-31, BR-Z-02"), (TaxCategory::E, "BT-31, BR-E-02")];
    let of_strict = strict.iter().filter(|_| !has_vat_id).find(|(category, _)| categories.contains(category));
    let of_others = others.iter().filter(|_| !has_tax_number).find(|(category, _)| categories.contains(category));
    match of_strict.or(of_others) {
        Some((_, detail)) => lacks.unless(false, "/entity/vat_id", *detail),
        None => lacks.unless(has_vat_id || has_registration, "/entity/registration", "BT-30, BR-CO-26"),
    }
}

fn electronic_addresses(lacks: &mut Lacks, seller: &PartyDetails, buyer: &PartyDetails) {
    let has_address =
        |party: &PartyDetails| party.electronic_address.as_ref().is_some_and(|address| is_filled(Some(&address.value)));
    lacks.unless(has_address(seller), "/entity/electronic_address", "BT-34, PEPPOL-EN16931-R020");
    lacks.unless(has_address(buyer), "/customer/electronic_address", "BT-49, PEPPOL-EN16931-R010");
}

fn xrechnung(lacks: &mut Lacks, paper: &LegalParticulars, given: Given) {
    let contact = paper.contact.clone().unwrap_or_default();
    let (seller, buyer) = (paper.entity.address.as_ref(), paper.customer.address.as_ref());
    lacks.unless(is_filled(contact.name.as_ref()), "/entity/contact/name", "BT-41, BR-DE-5");
    match contact.phone.as_ref().and_then(|phone| filled(phone.as_str())) {
        None => lacks.unless(false, "/entity/contact/phone", "BT-42, BR-DE-6"),
        Some(phone) => {
            let digits = phone.chars().filter(char::is_ascii_digit).count();
            lacks.unless(digits >= PHONE_DIGITS, "/entity/contact/phone", "BT-42, BR-DE-27");
        }
    }
    match contact.email.as_ref().and_then(|email| filled(email.as_str())) {
        None => lacks.unless(false, "/entity/contact/email", "BT-43, BR-DE-7"),
        Some(email) => lacks.unless(is_email(&email), "/entity/contact/email", "BT-43, BR-DE-28"),
    }
    lacks.unless(has_part(seller, |address| &address.city), "/entity/address/city", "BT-37, BR-DE-3");
    lacks.unless(has_part(seller, |address| &address.zip_code), "/entity/address/zip_code", "BT-38, BR-DE-4");
    lacks.unless(has_part(buyer, |address| &address.city), "/customer/address/city", "BT-52, BR-DE-8");
    lacks.unless(has_part(buyer, |address| &address.zip_code), "/customer/address/zip_code", "BT-53, BR-DE-9");
    lacks.unless(given.has_buyer_reference, "/buyer_reference", "BT-10, BR-DE-15");
    lacks.unless(given.has_payment_means, "/bank_account", "BG-16, BR-DE-1");
}

fn has_country(party: &PartyDetails) -> bool {
    party.address.as_ref().is_some_and(|address| address.country_code.is_some())
}

fn has_part(address: Option<&Address>, part: fn(&Address) -> &Option<Prose>) -> bool {
    address.and_then(|address| part(address).as_ref()).is_some_and(|part| filled(part.as_str()).is_some())
}

fn is_filled(text: Option<&OneLine>) -> bool {
    text.is_some_and(|text| filled(text.as_str()).is_some())
}

/// Returns whether a text has the form of an e-mail address in XRechnung: one `@` between two or more characters on each side,
/// without a space or a point beside it, at the beginning or at the end.
fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.split_once('@') else { return false };
    let fits = |part: &str| {
        let is_at_edge = |c: char| c.is_whitespace() || c == '.';
        part.chars().count() >= 2 && !part.starts_with(is_at_edge) && !part.ends_with(is_at_edge) && !part.contains('@')
    };
    fits(name) && fits(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_email_address_has_one_at_sign_between_its_parts() {
        for good in ["billing@example.com", "a.b@c.de", "ab@cd"] {
            assert!(is_email(good), "{good}");
        }
        for bad in
            ["", "billing", "a@example.com", "billing@e", ".ab@example.com", "ab.@example.com", "ab@.com", "ab@com.", "a@b@cd"]
        {
            assert!(!is_email(bad), "{bad}");
        }
    }
}
