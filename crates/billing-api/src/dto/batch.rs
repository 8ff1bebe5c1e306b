//! Batches of usage events.

use billing_application::usage::{MAX_BATCH_EVENTS, NewUsageEvent};
use billing_domain::event_input::OnConflict;
use billing_domain::violation::Violations;
use utoipa::ToSchema;

use super::declare::{Body as _, Listed, body, wire};
use super::events::{EventBody, EventResultJson};
use crate::problem::ProblemJson;

body! {
    /// Usage events to record.
    BatchBody {
        /// Events.
        events: Vec<EventInPlace>,
        /// Whether one rejected event rejects the whole batch. Default: false.
        atomic: bool = false,
        /// What happens to events whose idempotency keys were used for other values, as in the query. Default: REJECT.
        on_conflict: OnConflict = OnConflict::Reject,
    }
}

/// An event of a batch, or its violations.
pub struct EventInPlace;

wire! {
    EventInPlace of Result<NewUsageEvent, Violations>: |node| Some(node.read_separately(EventBody::read_event)), |schemas| EventBody::schema(schemas);
}

impl Listed for EventInPlace {
    const MAX: usize = MAX_BATCH_EVENTS;
    const REMEDY: &'static str = ": send the other events in another batch";
}

/// The results of a batch.
#[expect(dead_code, reason = "describes an answer that is put together from kept answers")]
#[derive(ToSchema)]
pub struct BatchResultJson {
    /// One result per event, in request order.
    results: Vec<BatchEventResultJson>,
}

/// The result of one event: its document, or the reason for its rejection.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum BatchEventResultJson {
    /// Recorded, now or earlier under the same key.
    Taken(EventResultJson),
    /// Rejected.
    Refused(ProblemJson<'static>),
}
