//! Batches of usage events.

use billing_application::usage::{MAX_BATCH_EVENTS, NewUsageEvent};
use billing_domain::violation::Violations;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::declare::{Body as _, Listed, Wire, body};
use super::events::{EventBody, EventResultJson};
use super::input::Node;
use super::schemas::Schemas;
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

impl Wire for EventInPlace {
    type Value = Result<NewUsageEvent, Violations>;

    fn read(node: Node<'_>) -> Option<Self::Value> {
        Some(EventBody::read_in_batch(node.json()))
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        EventBody::schema(schemas)
    }
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
