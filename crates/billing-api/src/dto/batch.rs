//! Batches of usage events.

use billing_application::usage::{MAX_BATCH_EVENTS, NewUsageEvent, SentRecord};
use billing_domain::event_input::OnConflict;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::violation::Violations;
use billing_json::KEY_MEMBER;
use serde_json::Value;
use utoipa::ToSchema;

use super::declare::{Body as _, Listed, body, wire};
use super::events::{EventBody, EventResultJson};
use super::limits::CustomerLimitsJson;
use super::wire::FreeFormEvent;
use crate::problem::ProblemJson;

body! {
    /// Usage events to record.
    BatchBody {
        /// Events. If the query names a usage format, free-form events; their field `idempotency_key` is their key, unless the
        /// format gives one.
        events: Vec<EventInPlace>,
        /// Whether one rejected event rejects the whole batch. Default: false.
        atomic: bool = false,
        /// What happens to events whose idempotency keys were used for other values, as in the query. Default: REJECT.
        on_conflict: OnConflict = OnConflict::Reject,
    }
}

body! {
    /// Free-form usage events to convert and record, if the query names a usage format.
    RecordBatchBody {
        /// Events.
        events: Vec<RecordInPlace>,
        /// Whether one rejected event rejects the whole batch, as in [`BatchBody`].
        atomic: bool = false,
        /// What happens to events whose idempotency keys were used for other values, as in [`BatchBody`].
        on_conflict: OnConflict = OnConflict::Reject,
    }
}

/// An event of a batch, or its violations.
pub struct EventInPlace;
/// A free-form event of a batch, or its violations.
pub struct RecordInPlace;

wire! {
    EventInPlace of Result<NewUsageEvent, Violations>: |node| Some(node.read_separately(EventBody::read_event)), |schemas| EventBody::schema(schemas);
    RecordInPlace of Result<SentRecord, Violations>: |node| Some(node.read_separately(read_record)), |schemas| schemas.refer::<FreeFormEvent>();
}

/// Reads a free-form event of a batch, which can contain its idempotency key. The format is unknown.
///
/// # Errors
/// Returns the violation of the event as a whole or of its key.
pub fn read_record(event: &Value) -> Result<SentRecord, Violations> {
    let Value::Object(members) = event else { return Err(Violations::one(&[], "wrong_type", "must be an object")) };
    let key = match members.get(KEY_MEMBER) {
        None | Some(Value::Null) => None,
        Some(Value::String(key)) => {
            let key = IdempotencyKey::parse(key);
            Some(key.map_err(|reason| Violations::one(&[KEY_MEMBER], "invalid_format", reason.to_string()))?)
        }
        Some(_) => return Err(Violations::one(&[KEY_MEMBER], "wrong_type", "must be a string")),
    };
    Ok(SentRecord {
        event: event.to_string(),
        key,
        on_conflict: OnConflict::Reject,
        occurred: false,
        hold_ref: None,
        time_of_receipt: None,
    })
}

impl Listed for EventInPlace {
    const MAX: usize = MAX_BATCH_EVENTS;
    const REMEDY: &'static str = ": send the other events in another batch";
}

impl Listed for RecordInPlace {
    const MAX: usize = EventInPlace::MAX;
    const REMEDY: &'static str = EventInPlace::REMEDY;
}

/// The results of a batch.
#[expect(dead_code, reason = "describes an answer that is put together from kept answers")]
#[derive(ToSchema)]
pub struct BatchResultJson {
    /// One result per event, in request order. Null for an event that the usage format skips.
    results: Vec<Option<BatchResultEntryJson>>,
    /// What is left of the limits of customers whose events were recorded; omitted if none of them has limits.
    #[schema(nullable = false)]
    left: Option<Vec<CustomerLimitsJson>>,
}

/// The result of an event, or of each element of a usage format with `for_each`.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum BatchResultEntryJson {
    /// One event.
    Event(Box<BatchEventResultJson>),
    /// Elements in the order of the list; null for a skipped element.
    Elements(Vec<Option<BatchEventResultJson>>),
}

/// The result of one event: its document, or the reason for its rejection.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum BatchEventResultJson {
    /// Recorded, now or earlier under the same key.
    Taken(EventResultJson),
    /// Rejected.
    Refused(Box<ProblemJson<'static>>),
}
