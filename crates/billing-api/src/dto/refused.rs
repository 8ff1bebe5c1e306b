//! Rejected usage.

use billing_application::names::Named;
use billing_domain::audit::AuditedKind;
use billing_domain::refused::{RefusedCount, RefusedKey};

use super::declare::answer;
use super::values::{DateText, TimestampText};

/// A count and its key, with the names of the customer and usage product that exist.
pub type Refused = Named<(RefusedKey, RefusedCount)>;

answer! {
    /// Usage events that were rejected on the same day for the same reason, with the same submitted customer and usage
    /// product.
    RefusedUsageJson of refused: Refused {
        let (key, count) = &refused.item;
        let example = &count.example;
        let customer = refused.names.of(AuditedKind::Customer, &key.customer_ref);
        let usage_product = refused.names.of(AuditedKind::UsageProduct, &key.usage_product_ref);
        /// Date in UTC.
        day: DateText = key.day,
        /// Error code; for `validation_failed`, the code of the first invalid field. `other` collects errors beyond the
        /// number that one server counts separately.
        #[schema(example = "no_matching_contract")]
        code: String = key.code.clone(),
        /// Submitted customer reference or name, truncated to 64 bytes; empty if missing.
        #[schema(example = "acme")]
        customer_ref: String = key.customer_ref.clone(),
        /// Name of the customer with this reference; null if there is none.
        customer_name: Option<String> = customer.map(|customer| customer.name.clone()),
        /// Submitted usage product reference or name, truncated to 64 bytes; empty if missing.
        #[schema(example = "api-calls")]
        usage_product_ref: String = key.usage_product_ref.clone(),
        /// Name of the usage product with this reference; null if there is none.
        usage_product_name: Option<String> = usage_product.map(|product| product.name.clone()),
        /// Number of rejected events.
        #[schema(minimum = 1)]
        count: u64 = count.count,
        /// Time of the first rejection.
        first_at: TimestampText = count.first_at,
        /// Time of the latest rejection.
        last_at: TimestampText = count.last_at,
        /// Latest rejected event as submitted, truncated to 2048 bytes.
        example: String = example.event.clone(),
        /// JSON pointer to the first invalid field of the latest event.
        #[schema(example = "/quantity")]
        pointer: Option<String> = example.pointer.clone(),
        /// Reason for the latest rejection.
        detail: String = example.detail.clone(),
        /// Id of the latest request.
        request_id: Option<String> = example.request_id.as_ref().map(ToString::to_string),
    }
}
