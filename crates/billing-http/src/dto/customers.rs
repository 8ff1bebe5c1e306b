//! Customers.

use billing_domain::money::{Currency, Percentage};
use billing_domain::party::legal::{BuyerReference, LegalProfile};
use billing_domain::party::{Address, Customer, CustomerProfile, NetTerms, PaymentDetails};
use billing_domain::refs::{CustomerRef, EntityRef};
use billing_domain::text::OneLine;

use super::declare::{answer, body, edit, fields};
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
        /// Tax in percent of this customer's products that state none.
        tax: Option<Percentage>,
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
    }
}

body! {
    /// A customer to make.
    CustomerBody {
        /// Reference; assigned when left out.
        customer_ref: Option<CustomerRef>,
        @flat profile: CustomerProfile,
    }
}

edit! {
    /// Changes to a customer: fields left out are kept, null clears.
    CustomerEditBody of CustomerProfile named "customer_ref": CustomerRef
}

answer! {
    /// A customer.
    CustomerJson of Customer {
        /// Reference.
        customer_ref: CustomerRef,
        @flat profile: CustomerProfile,
    }
}

answer! {
    /// A customer's name.
    CustomerNameJson of customer: Customer {
        /// Reference.
        customer_ref: NamedRef = &customer.customer_ref,
        /// Name.
        name: LineText = &customer.profile.name,
    }
}
