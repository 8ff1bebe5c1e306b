//! Batches of usage events.

use billing_application::usage::{MAX_BATCH_EVENTS, NewUsageEvent};
use billing_domain::violation::Violations;
use serde_json::Value;
use utoipa::ToSchema;

use super::events::{EventBody, EventResultJson};
use super::input::{self, Node};
use super::wire::LineText;
use crate::problem::ProblemJson;

/// Usage events to take at once.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({
    "events": [
        {"timestamp": "2026-01-20T10:15:30Z", "customer_ref": "acme", "usage_product_ref": "api-calls", "quantity": 12345,
         "idempotency_key": "host-7/2026-01-20/81"},
        {"timestamp": "2026-01-20T10:15:31Z", "customer_ref": "acme", "usage_product_ref": "api-calls", "quantity": 1}
    ],
    "atomic": false
}))]
pub(crate) struct BatchBody {
    /// The events.
    #[schema(max_items = 10_000)]
    events: Vec<BatchEventBody>,
    /// Whether one refused event refuses all; false when left out.
    atomic: Option<bool>,
}

/// A usage event of a batch.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
pub(crate) struct BatchEventBody {
    #[serde(flatten)]
    event: EventBody,
    /// What this event is known by when it is sent again, alone or in any batch: it is taken once.
    #[schema(min_length = 1, max_length = 255)]
    idempotency_key: Option<LineText>,
}

/// A batch as it was read: each event, or everything that is wrong with it.
pub(crate) struct ReadBatch {
    pub(crate) events: Vec<Result<NewUsageEvent, Violations>>,
    pub(crate) atomic: bool,
}

impl BatchBody {
    /// Reads a batch.
    ///
    /// # Errors
    /// What is wrong with the batch itself; an event that is wrong is one of its events.
    pub(crate) fn read(body: &Value) -> Result<ReadBatch, Violations> {
        input::read(body, |fields| {
            let event = |node: Node<'_>| Some(EventBody::read_in_batch(node.json()));
            let events = fields.required("events", |node| node.list(MAX_BATCH_EVENTS, event));
            let atomic = fields.defaulted("atomic", None, false, Node::boolean);
            Some(ReadBatch { events: events?, atomic })
        })
    }
}

/// What became of the events of a batch.
#[expect(dead_code, reason = "describes an answer that is put together from kept answers")]
#[derive(ToSchema)]
pub(crate) struct BatchResultJson {
    /// One result for each event, in the order given.
    results: Vec<BatchEventResultJson>,
}

/// What became of one event: where it was put, or why it was refused.
#[expect(dead_code, reason = "describes an answer that is put together from kept answers")]
#[derive(ToSchema)]
#[serde(untagged)]
pub(crate) enum BatchEventResultJson {
    /// It was taken, now or before under its key.
    Taken(EventResultJson),
    /// It was refused.
    Refused(ProblemJson<'static>),
}
