//! Customers.

use billing_application::catalog::{CustomerView, TaxBasisPatch, TaxPatch, WantedCustomer};
use billing_domain::money::{Currency, Percentage};
use billing_domain::party::legal::{BuyerReference, LegalProfile};
use billing_domain::party::{Address, CustomerProfile, NetTerms, PaymentDetails};
use billing_domain::patch::Patch;
use billing_domain::refs::{CustomerRef, EntityRef};
use billing_domain::tax::{DefaultTaxes, StatedTax};
use billing_domain::text::OneLine;

use super::declare::{answer, body, edit, fields, ignore_response_fields};
use super::values::Email;
use super::wire::{LineText, NamedRef};

fields! {
    edit answer CustomerProfile {
        /// Name; usage may be reported under it.
        name: OneLine,
        /// Registered name.
        legal_name: Option<OneLine>,
        /// E-mail address.
        email: Option<Email>,
        /// Tax number.
        tax_id: Option<OneLine>,
        /// Postal address.
        billing_address: Option<Address>,
        /// Information only: a document's currency is its pricing's.
        currency: Option<Currency>,
        /// Supplier entity of this customer's products that state none.
        entity_ref: Option<EntityRef>,
        /// Net terms of this customer's products that state none.
        net_terms: Option<NetTerms>,
        @flat payment: PaymentDetails,
        /// Whether what is unapplied of credits and payments settles other documents by itself; true when left out.
        apply_balance: bool = true,
        @flat legal: LegalProfile,
        /// What it wants to find on documents of products that state nothing else.
        buyer_reference: Option<BuyerReference>,
        @flat taxes: DefaultTaxes,
    }
}

fields! {
    edit TaxPatch {
        /// Tax in percent of this customer's products that state none.
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
    /// A customer to make.
    CustomerBody {
        /// Reference; assigned when left out.
        customer_ref: Option<CustomerRef>,
        @flat wanted: WantedCustomer,
    }
    with {
        ignore_response_fields!(CustomerJson);
    }
}

edit! {
    /// Changes to a customer: fields left out are kept, null clears.
    CustomerEditBody of WantedCustomer named "customer_ref": CustomerRef
}

answer! {
    /// A customer.
    CustomerJson of CustomerView {
        /// Reference.
        customer.customer_ref as "customer_ref": CustomerRef,
        @flat customer.profile: CustomerProfile,
        @flat tax: StatedTax,
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
