//! Batches of usage events.

use billing_application::usage::{MAX_BATCH_EVENTS, NewUsageEvent};
use billing_domain::violation::Violations;
use utoipa::ToSchema;

use super::declare::{Body as _, Listed, body, wire};
use super::events::{EventBody, EventResultJson};
use crate::problem::ProblemJson;

body! {
    /// Usage events to take at once.
    BatchBody {
        /// The events.
        events: Vec<EventInPlace>,
        /// Whether one refused event refuses all; false when left out.
        atomic: bool = false,
    }
}

/// An event of a batch, or everything that is wrong with it.
pub(crate) struct EventInPlace;

wire! {
    EventInPlace of Result<NewUsageEvent, Violations>: |node| Some(EventBody::read_in_batch(node.json())), |schemas| EventBody::schema(schemas);
}

impl Listed for EventInPlace {
    const MAX: usize = MAX_BATCH_EVENTS;
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
