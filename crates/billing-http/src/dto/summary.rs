//! Usage summed up.

use billing_application::usage::SummaryLine;

use super::declare::answer;
use super::wire::{ExactNumber, NamedRef, TimestampText};

answer! {
    /// The usage of an interval.
    #[schema(example = json!({
        "from": "2026-01-20T00:00:00Z",
        "to": "2026-01-21T00:00:00Z",
        "usage_product_ref": "api-calls",
        "customer_ref": null,
        "quantity": 12345.5,
        "events": 17
    }))]
    SummaryLineJson of line: SummaryLine {
        /// The interval's first instant.
        from: TimestampText = line.from,
        /// The first instant after it.
        to: TimestampText = line.to,
        /// What was used; null when usage products aren't told apart.
        usage_product_ref: Option<NamedRef> = line.usage_product_ref.as_ref(),
        /// Who used; null when customers aren't told apart.
        customer_ref: Option<NamedRef> = line.customer_ref.as_ref(),
        /// The sum of the quantities.
        quantity: ExactNumber = line.quantity,
        /// The number of events.
        #[schema(minimum = 1)]
        events: u64 = line.events,
    }
}
