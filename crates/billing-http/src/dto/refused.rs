//! Usage that was refused.

use billing_domain::refused::{RefusedCount, RefusedKey};

use super::declare::answer;
use super::wire::{DateText, TimestampText};

/// A count, with what it counts.
pub(crate) type Refused = (RefusedKey, RefusedCount);

answer! {
    /// Usage events that were refused on a day for the same reason, told to be of the same customer and usage product.
    RefusedUsageJson of refused: Refused {
        let (key, count) = refused;
        let example = &count.example;
        /// The day, of UTC.
        day: DateText = key.day,
        /// Why: the code of the refusal, of `validation_failed` that of the first field; `other` for what one server couldn't tell apart.
        #[schema(example = "no_matching_contract")]
        code: String = key.code.clone(),
        /// The customer's reference or name, as it was told, at most 64 bytes of it; empty where none was.
        #[schema(example = "acme")]
        customer_ref: String = key.customer_ref.clone(),
        /// The usage product's reference or name, likewise.
        #[schema(example = "api-calls")]
        usage_product_ref: String = key.usage_product_ref.clone(),
        /// How many events.
        #[schema(minimum = 1)]
        count: u64 = count.count,
        /// When the first was refused.
        first_at: TimestampText = count.first_at,
        /// When the last was refused.
        last_at: TimestampText = count.last_at,
        /// The last event, as it was sent, at most 2048 bytes of it.
        example: String = example.event.clone(),
        /// Which of its fields was wrong first.
        #[schema(example = "/quantity")]
        pointer: Option<String> = example.pointer.clone(),
        /// What was wrong with it.
        detail: String = example.detail.clone(),
        /// The request that brought it.
        request_id: Option<String> = example.request_id.as_ref().map(ToString::to_string),
    }
}
