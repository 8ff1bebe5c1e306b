//! Search results.

use billing_domain::ports::{SearchHit, SearchHitKind};

use super::declare::answer;
use super::enums::FoundKindWord;
use super::values::LineText;
use super::wire::NamedRef;

answer! {
    /// A search result.
    SearchResultJson of found: SearchHit {
        let reference = &found.reference;
        let below = |path: &str| format!("{path}{reference}");
        let url = match (found.kind, found.document_ref) {
            (SearchHitKind::Payment, Some(document_ref)) => format!("/api/documents/{document_ref}"),
            (SearchHitKind::Payment, None) => {
                let customer_ref = found.customer_ref.as_ref().map(ToString::to_string).unwrap_or_default();
                format!("/api/customers/payments/{customer_ref}")
            }
            (SearchHitKind::Document, _) => below("/api/documents/"),
            (SearchHitKind::Contract, _) => below("/api/contracts/"),
            (SearchHitKind::Customer, _) => below("/api/customers/"),
            (SearchHitKind::Entity, _) => below("/api/entities/"),
            (SearchHitKind::Pricing, _) => below("/api/pricings/"),
            (SearchHitKind::UsageProduct, _) => below("/api/usage/products/"),
            (SearchHitKind::Format, _) => below("/api/usage/formats/"),
            (SearchHitKind::UsageEvent, _) => below("/api/usage/event/"),
            (SearchHitKind::Charge, _) => below("/api/charges/"),
            (SearchHitKind::BankAccount, _) => below("/api/bank_accounts/"),
            (SearchHitKind::ApiKey, _) => "/auth/keys/list".to_owned(),
        };
        /// Kind of the object.
        kind: FoundKindWord = found.kind,
        /// Reference of the object.
        reference as "ref": String = reference.clone(),
        /// Number, reference of a payment, or idempotency key by which an event was found.
        #[schema(example = "UB-INV-1")]
        number: Option<String> = found.number.clone(),
        /// Name.
        name: Option<String> = found.name.clone(),
        /// Customer reference.
        customer_ref: Option<NamedRef> = found.customer_ref.as_ref(),
        /// Customer name.
        customer_name: Option<LineText> = found.customer_name.as_ref(),
        /// Path of the object; for a payment, of its document; for a deposit, of the customer's payments; for an API key, of the
        /// list of keys.
        #[schema(example = "/api/customers/acme")]
        url: String = url,
    }
}
