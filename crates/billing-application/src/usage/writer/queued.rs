//! Requests to the usage writer and their replies.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use billing_domain::access::{Principal, TokenClaims};
use billing_domain::event_input::NewUsageEvent;
use billing_domain::idempotency::StoredResponse;
use billing_domain::refs::{EventRef, OrganizationId};

use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};
use crate::idempotency::IdempotentRequest;
use crate::usage::batch::BatchOutcome;
use crate::usage::change::{ChangeOutcome, EventChange};
use crate::usage::outcome::{EventAnswer, IngestOutcome};

/// The sender of a request.
#[derive(Clone, Debug)]
pub enum Requester {
    /// A principal whose credential was checked.
    Known(Principal),
    /// The bearer of a token. Its API key is checked in the transaction of the request.
    Bearer(TokenClaims),
}

impl Requester {
    /// Returns the organization, which determines the turn in the queue.
    pub(super) const fn organization(&self) -> OrganizationId {
        match self {
            Self::Known(principal) => principal.organization(),
            Self::Bearer(claims) => claims.organization,
        }
    }

    /// Returns the principal if it is already known.
    pub(super) const fn known(&self) -> Option<&Principal> {
        match self {
            Self::Known(principal) => Some(principal),
            Self::Bearer(_) => None,
        }
    }
}

/// A callback for the result of a request, called once the result is durable. Its first argument is the principal, if known.
/// It is dropped without a call if the request expires.
pub type ReplyCallback<T> = Box<dyn FnOnce(Option<Principal>, UseCaseResult<T>) + Send>;

/// A request to the writer.
pub struct QueuedRequest {
    /// The sender.
    pub requester: Requester,
    /// When the sender stops waiting. Work that has not started by then is skipped.
    pub until: Instant,
    /// The requested work.
    pub work: Work,
}

/// The work of a request.
pub enum Work {
    /// Records an event.
    Event(Box<QueuedEvent>),
    /// Changes an event.
    Change(QueuedChange),
    /// Records events, in as many transactions as the turns of other requests require.
    Batch(QueuedBatch),
    /// Runs work in one transaction of its own.
    Whole(QueuedTransaction),
}

/// An event to record.
pub struct QueuedEvent {
    /// The event.
    pub event: NewUsageEvent,
    /// Builds the response for duplicates.
    pub answer: EventAnswer,
    /// The request, if it has an idempotency key of its own.
    pub keyed: Option<IdempotentWork<IngestOutcome>>,
    /// Receives the result.
    pub reply: ReplyCallback<Execution<IngestOutcome>>,
}

/// An event to change.
pub struct QueuedChange {
    /// The event's reference.
    pub event_ref: EventRef,
    /// The change to make.
    pub change: EventChange,
    /// The request, if it has an idempotency key.
    pub keyed: Option<IdempotentWork<ChangeOutcome>>,
    /// Receives the result.
    pub reply: ReplyCallback<Execution<ChangeOutcome>>,
}

/// Events to record one by one; each can be rejected separately.
pub struct QueuedBatch {
    /// The events.
    pub events: Vec<NewUsageEvent>,
    /// Builds the responses for duplicates.
    pub answer: EventAnswer,
    /// Whether the batch continues an accepted one and therefore ignores the limit of queued batches.
    pub goes_on: bool,
    /// Receives the results.
    pub reply: ReplyCallback<BatchOutcome>,
}

/// Work that is exactly one transaction.
pub struct QueuedTransaction {
    /// The number of events as which the work counts in its turn.
    pub events: usize,
    /// The approximate memory of the work, in bytes.
    pub bytes: usize,
    /// Does the work and sends the reply. The principal is known.
    pub work: Box<dyn FnOnce(&Services) + Send>,
}

/// Work that an idempotency key executes at most once, and its stored response.
pub struct IdempotentWork<T> {
    /// The request.
    pub request: IdempotentRequest,
    /// Builds the response to store.
    pub render: fn(&T) -> StoredResponse,
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub enum Execution<T> {
    /// The request was executed now.
    Executed(T),
    /// The request was executed earlier under its key. Contains the stored response.
    Replayed(StoredResponse),
}

/// The writer's queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterBusy;

impl From<WriterBusy> for UseCaseError {
    fn from(_: WriterBusy) -> Self {
        Self::Overloaded
    }
}

impl fmt::Debug for QueuedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("reporter", &self.requester).field("kind", &self.kind()).finish_non_exhaustive()
    }
}

/// The kinds of work that are written differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkKind {
    /// Single events and events of batches.
    Events,
    /// Changes of events.
    Changes,
    /// Work that is one transaction of its own.
    Whole,
}

impl QueuedRequest {
    pub(super) const fn kind(&self) -> WorkKind {
        match self.work {
            Work::Event(_) | Work::Batch(_) => WorkKind::Events,
            Work::Change(_) => WorkKind::Changes,
            Work::Whole(_) => WorkKind::Whole,
        }
    }

    /// Returns the approximate memory of the request, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match &self.work {
            Work::Event(event) => event.event.bytes(),
            Work::Change(_) => size_of::<QueuedChange>(),
            Work::Batch(batch) => batch.events.iter().map(NewUsageEvent::bytes).sum(),
            Work::Whole(whole) => whole.bytes,
        }
    }
}

/// An event in a group with the target of its reply.
pub(super) struct EventRow {
    /// The request. All events of a request fail together if it violates an invariant.
    pub(super) request: usize,
    pub(super) requester: Arc<Requester>,
    pub(super) event: NewUsageEvent,
    pub(super) answer: EventAnswer,
    pub(super) keyed: Option<IdempotentWork<IngestOutcome>>,
    pub(super) to: ReplyTarget,
}

/// The target of an event's reply.
pub(super) enum ReplyTarget {
    One(ReplyCallback<Execution<IngestOutcome>>),
    /// A batch, by its index in the group, and the event's index in the current part.
    Batch(usize, usize),
}

/// A change in a group.
pub(super) struct ChangeRow {
    /// The request. It fails alone if it violates an invariant.
    pub(super) request: usize,
    pub(super) requester: Requester,
    pub(super) change: QueuedChange,
}

/// A batch in progress.
pub(super) struct Batch {
    pub(super) requester: Arc<Requester>,
    pub(super) until: Instant,
    pub(super) bytes: usize,
    left: std::vec::IntoIter<NewUsageEvent>,
    answer: EventAnswer,
    taken: BatchOutcome,
    /// The results of the events in the current group.
    part: Vec<Option<UseCaseResult<IngestOutcome>>>,
    reply: ReplyCallback<BatchOutcome>,
}

impl Batch {
    pub(super) fn new(requester: Requester, until: Instant, bytes: usize, batch: QueuedBatch) -> Self {
        let QueuedBatch { events, answer, goes_on: _, reply } = batch;
        let (left, taken, part) = (events.into_iter(), BatchOutcome::default(), Vec::new());
        Self { requester: Arc::new(requester), until, bytes, left, answer, taken, part, reply }
    }

    /// Returns the number of events that are not in a group yet.
    pub(super) fn left(&self) -> usize {
        self.left.len()
    }

    /// Returns the next events for a group in which the batch has the index `place`.
    pub(super) fn take(&mut self, many: usize, place: usize, request: usize) -> Vec<EventRow> {
        let mut rows = Vec::with_capacity(many);
        for event in self.left.by_ref().take(many) {
            let to = ReplyTarget::Batch(place, self.part.len());
            rows.push(EventRow { request, requester: Arc::clone(&self.requester), event, answer: self.answer, keyed: None, to });
            self.part.push(None);
        }
        rows
    }

    /// Records the result of an event in the current group.
    pub(super) fn note(&mut self, place: usize, outcome: UseCaseResult<IngestOutcome>) {
        if let Some(noted) = self.part.get_mut(place) {
            *noted = Some(outcome);
        }
    }

    /// Completes the batch's part of a group. Returns the batch if events are left. Otherwise, or if an error stopped the
    /// batch, sends the reply.
    pub(super) fn part_done(mut self) -> Option<Self> {
        let part: Option<Vec<_>> = std::mem::take(&mut self.part).into_iter().collect();
        let Some(part) = part else {
            // The work panicked, which the panic hook has logged.
            self.stop(UseCaseError::InvariantViolation("an event without an outcome"));
            return None;
        };
        // An error that does not concern a single event stops the batch. Part of the batch may be stored anyway, so the
        // caller needs the results.
        let stopped_by =
            part.iter().find_map(|outcome| outcome.as_ref().err().filter(|error| stops(error)).map(UseCaseError::for_another));
        let is_stored = !self.taken.results.is_empty() || part.iter().any(|outcome| !outcome.as_ref().is_err_and(stops));
        match stopped_by {
            Some(error) if is_stored => {
                self.taken.results.extend(part);
                self.stop(error);
                None
            }
            Some(error) => {
                self.stop(error);
                None
            }
            None => {
                self.taken.results.extend(part);
                if self.left.len() > 0 {
                    return Some(self);
                }
                (self.reply)(None, Ok(self.taken));
                None
            }
        }
    }

    fn stop(self, error: UseCaseError) {
        let Self { taken, reply, .. } = self;
        let outcome = if taken.results.is_empty() { Err(error) } else { Ok(BatchOutcome { stopped_by: Some(error), ..taken }) };
        reply(None, outcome);
    }
}

/// Returns whether an error does not concern a single event.
fn stops(error: &UseCaseError) -> bool {
    matches!(error, UseCaseError::Store(_) | UseCaseError::InvariantViolation(_))
}
