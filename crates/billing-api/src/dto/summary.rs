//! Usage summaries.

use billing_application::usage::SummaryLine;

use super::declare::answer;
use super::values::TimestampText;
use super::wire::{ExactNumber, NamedRef};

answer! {
    /// The usage in an interval.
    #[schema(example = json!({
        "from": "2026-01-20T00:00:00Z",
        "to": "2026-01-21T00:00:00Z",
        "usage_product_ref": "api-calls",
        "customer_ref": null,
        "quantity": 12345.5,
        "events": 17
    }))]
    SummaryLineJson of line: SummaryLine {
        /// Start of the interval.
        from: TimestampText = line.from,
        /// End of the interval, exclusive.
        to: TimestampText = line.to,
        /// Usage product; null if not grouped by usage product.
        usage_product_ref: Option<NamedRef> = line.usage_product_ref.as_ref(),
        /// Customer; null if not grouped by customer.
        customer_ref: Option<NamedRef> = line.customer_ref.as_ref(),
        /// Quantity by the aggregation of the usage product, for each customer; over several customers or usage products their
        /// sum.
        quantity: ExactNumber = line.quantity,
        /// Number of events.
        #[schema(minimum = 1)]
        events: u64 = line.events,
    }
}
