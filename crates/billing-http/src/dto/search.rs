//! What a search finds.

use billing_domain::ports::{Found, FoundKind};

use super::declare::answer;
use super::wire::NamedRef;
use super::words::FoundKindWord;

answer! {
    /// Something that was searched for.
    FoundJson of found: Found {
        let reference = &found.reference;
        let below = |path: &str| format!("{path}{reference}");
        let url = match (found.kind, found.document_ref) {
            (FoundKind::Payment, Some(document_ref)) => format!("/api/documents/{document_ref}"),
            (FoundKind::Document | FoundKind::Payment, _) => below("/api/documents/"),
            (FoundKind::Contract, _) => below("/api/contracts/"),
            (FoundKind::Customer, _) => below("/api/customers/"),
            (FoundKind::Entity, _) => below("/api/entities/"),
            (FoundKind::Pricing, _) => below("/api/pricings/"),
            (FoundKind::UsageProduct, _) => below("/api/usage/products/"),
            (FoundKind::Format, _) => below("/api/usage/formats/"),
            (FoundKind::UsageEvent, _) => below("/api/usage/event/"),
            (FoundKind::Charge, _) => below("/api/charges/"),
            (FoundKind::BankAccount, _) => below("/api/bank_accounts/"),
            (FoundKind::ApiKey, _) => "/auth/keys/list".to_owned(),
        };
        /// What it is.
        kind: FoundKindWord = found.kind,
        /// Its reference.
        #[serde(rename = "ref")]
        reference: String = reference.clone(),
        /// Its number, a payment's reference, or the key that an event was looked for by.
        #[schema(example = "UB-INV-1")]
        number: Option<String> = found.number.clone(),
        /// Its name.
        name: Option<String> = found.name.clone(),
        /// Whose it is.
        customer_ref: Option<NamedRef> = found.customer_ref.as_ref(),
        /// Where it is read: of a payment its document, of an API key the list of keys.
        #[schema(example = "/api/customers/acme")]
        url: String = url,
    }
}
