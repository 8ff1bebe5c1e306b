//! Customers.

use billing_application::catalog::{CustomerView, TaxBasisPatch, TaxPatch, WantedCustomer};
use billing_domain::calendar::Timestamp;
use billing_domain::metadata::Metadata;
use billing_domain::money::{Currency, Percentage};
use billing_domain::party::legal::{BuyerReference, EInvoiceProfile, LegalProfile};
use billing_domain::party::{Address, CustomerProfile, NetTerms, PaymentDetails};
use billing_domain::patch::Patch;
use billing_domain::refs::{CustomerRef, EntityRef};
use billing_domain::tax::{DefaultTaxes, StatedTax};
use billing_domain::text::OneLine;

use super::declare::{answer, body, edit, fields, ignore_response_fields};
use super::values::{Email, LineText, NewCustomerRef};
use super::warnings::ChangeWarnings;
use super::wire::NamedRef;

fields! {
    edit answer CustomerProfile {
        /// Name, which usage events can use instead of the reference.
        name: OneLine,
        /// Legal name.
        legal_name: Option<OneLine>,
        /// E-mail address.
        email: Option<Email>,
        /// Tax number.
        tax_id: Option<OneLine>,
        /// Postal address.
        billing_address: Option<Address>,
        /// Informational currency. Documents use the currency of their pricing.
        currency: Option<Currency>,
        /// Default supplier entity for this customer's products.
        entity_ref: Option<EntityRef>,
        /// Default net terms for this customer's products.
        net_terms: Option<NetTerms>,
        @flat payment: PaymentDetails,
        /// Whether unapplied credits and payments settle other documents automatically. Default: true.
        apply_balance: bool = true,
        @flat legal: LegalProfile,
        /// Default buyer reference for this customer's products.
        buyer_reference: Option<BuyerReference>,
        /// E-invoice profile of this customer's documents. Default: the entity's.
        e_invoice_profile: Option<EInvoiceProfile>,
        /// Keys and values of your own, such as identifiers in other systems. A new value replaces all keys.
        metadata: Metadata = Metadata::default(),
        @flat taxes: DefaultTaxes,
    }
}

fields! {
    edit TaxPatch {
        /// Default tax in percent for this customer's products.
        rate as "tax": Patch<Percentage>,
        @flat basis: TaxBasisPatch,
    }
}

fields! {
    edit WantedCustomer {
        @flat profile: CustomerProfile,
        @flat tax: TaxPatch,
    }
    with {
        ignore_response_fields!(CustomerJson);
    }
}

body! {
    /// A customer to create.
    CustomerBody {
        /// Reference. Default: assigned by the service.
        customer_ref: Option<NewCustomerRef>,
        @flat wanted: WantedCustomer,
    }
    with {
        ignore_response_fields!(CustomerJson);
    }
}

edit! {
    /// Changes to a customer. Omitted fields stay unchanged; null clears a field.
    CustomerEditBody of WantedCustomer named "customer_ref": CustomerRef
}

answer! {
    /// A customer.
    CustomerJson of CustomerView {
        /// Reference.
        customer.customer_ref as "customer_ref": CustomerRef,
        @flat customer.profile: CustomerProfile,
        @flat tax: StatedTax,
        /// Time of the last change.
        customer.updated_at as "updated_at": Timestamp,
        /// Possible mistakes in the change that this responds to; omitted if there are none.
        warnings: ChangeWarnings,
    }
}

answer! {
    /// A customer's name.
    CustomerNameJson of view: CustomerView {
        /// Reference.
        customer_ref: NamedRef = &view.customer.customer_ref,
        /// Name.
        name: LineText = &view.customer.profile.name,
    }
}
