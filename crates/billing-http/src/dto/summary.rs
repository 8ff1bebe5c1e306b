//! Usage summed up.

use billing_application::usage::SummaryLine;
use serde::Serialize;
use utoipa::ToSchema;

use super::wire::{ExactNumber, NamedRef, TimestampText};

/// The usage of an interval.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "from": "2026-01-20T00:00:00Z",
    "to": "2026-01-21T00:00:00Z",
    "usage_product_ref": "api-calls",
    "customer_ref": null,
    "quantity": 12345.5,
    "events": 17
}))]
pub(crate) struct SummaryLineJson {
    /// The interval's first instant.
    from: TimestampText,
    /// The first instant after it.
    to: TimestampText,
    /// What was used; null when usage products aren't told apart.
    usage_product_ref: Option<NamedRef>,
    /// Who used; null when customers aren't told apart.
    customer_ref: Option<NamedRef>,
    /// The sum of the quantities.
    quantity: ExactNumber,
    /// The number of events.
    #[schema(minimum = 1)]
    events: u64,
}

impl From<&SummaryLine> for SummaryLineJson {
    fn from(line: &SummaryLine) -> Self {
        Self {
            from: TimestampText::from(line.from),
            to: TimestampText::from(line.to),
            usage_product_ref: line.usage_product_ref.as_ref().map(NamedRef::from),
            customer_ref: line.customer_ref.as_ref().map(NamedRef::from),
            quantity: ExactNumber::from(line.quantity),
            events: line.events,
        }
    }
}
