//! Search results.

use billing_domain::ports::{SearchHit, SearchHitKind};

use super::declare::answer;
use super::enums::FoundKindWord;
use super::wire::NamedRef;
use crate::operation::Operation;

answer! {
    /// A search result.
    SearchResultJson of found: SearchHit {
        let reference = &found.reference;
        let operation = match found.kind {
            SearchHitKind::Document | SearchHitKind::Payment => "get_document",
            SearchHitKind::Contract => "get_contract",
            SearchHitKind::Customer => "get_customer",
            SearchHitKind::Entity => "get_entity",
            SearchHitKind::Pricing => "get_pricing",
            SearchHitKind::UsageProduct => "get_usage_product",
            SearchHitKind::Format => "get_usage_format",
            SearchHitKind::UsageEvent => "get_event",
            SearchHitKind::Charge => "get_charge",
            SearchHitKind::BankAccount => "get_bank_account",
            SearchHitKind::ApiKey => "list_keys",
        };
        let place = match (found.kind, found.document_ref) {
            (SearchHitKind::Payment, Some(document_ref)) => document_ref.to_string(),
            _ => reference.clone(),
        };
        let url = Operation::named(operation).map(|operation| operation.url(&place));
        /// Kind of the object.
        kind: FoundKindWord = found.kind,
        /// Reference of the object.
        #[serde(rename = "ref")]
        reference: String = reference.clone(),
        /// Number, reference of a payment, or idempotency key by which an event was found.
        #[schema(example = "UB-INV-1")]
        number: Option<String> = found.number.clone(),
        /// Name.
        name: Option<String> = found.name.clone(),
        /// Customer reference.
        customer_ref: Option<NamedRef> = found.customer_ref.as_ref(),
        /// Path of the object; for a payment, of its document; for an API key, of the list of keys.
        #[schema(example = "/api/customers/acme")]
        url: String = url.unwrap_or_default(),
    }
}
