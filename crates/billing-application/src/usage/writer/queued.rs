//! What is handed to the writer, and what of it is told when.

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
use crate::usage::ingest::IngestOutcome;
use crate::usage::read::EventView;

/// Who asks.
#[derive(Clone, Debug)]
pub enum Requester {
    /// Somebody whose credential was checked.
    Known(Principal),
    /// The bearer of a token. Whether its key still works is looked up with what is asked for.
    Bearer(TokenClaims),
}

impl Requester {
    /// Whose turn it is.
    pub(super) const fn organization(&self) -> OrganizationId {
        match self {
            Self::Known(principal) => principal.organization(),
            Self::Bearer(claims) => claims.organization,
        }
    }

    /// Who asks, if that is known already.
    pub(super) const fn known(&self) -> Option<&Principal> {
        match self {
            Self::Known(principal) => Some(principal),
            Self::Bearer(_) => None,
        }
    }
}

/// Is told what became of something, once that is durable, and who asked, where that is somebody. It is dropped where nothing
/// became of it and nobody waits.
pub type ReplyCallback<T> = Box<dyn FnOnce(Option<Principal>, UseCaseResult<T>) + Send>;

/// What the repeats of an event with a key are answered.
pub type EventAnswer = fn(&EventView) -> String;

/// Something on its way to the writer.
pub struct QueuedRequest {
    /// Who asks.
    pub reporter: Requester,
    /// When nobody waits for it any more: it isn't begun then, if it wasn't before.
    pub until: Instant,
    /// What is asked for.
    pub work: Work,
}

/// What is asked for.
pub enum Work {
    /// To take an event.
    Event(Box<QueuedEvent>),
    /// To change an event.
    Change(QueuedChange),
    /// To take events, in as many transactions as the turns of others make of it.
    Batch(QueuedBatch),
    /// To do something in one transaction of its own.
    Whole(QueuedTransaction),
}

/// An event to be taken.
pub struct QueuedEvent {
    /// The event.
    pub event: NewUsageEvent,
    /// What its repeats are answered.
    pub answer: EventAnswer,
    /// The request that brings it, where that is to be known again itself.
    pub keyed: Option<IdempotentWork<IngestOutcome>>,
    /// Is told what became of it.
    pub reply: ReplyCallback<Execution<IngestOutcome>>,
}

/// An event to be changed.
pub struct QueuedChange {
    /// Which.
    pub event_ref: EventRef,
    /// How.
    pub change: EventChange,
    /// The request, where that is to be known again.
    pub keyed: Option<IdempotentWork<ChangeOutcome>>,
    /// Is told what became of it.
    pub reply: ReplyCallback<Execution<ChangeOutcome>>,
}

/// Events to be taken one after the other, each or not.
pub struct QueuedBatch {
    /// The events.
    pub events: Vec<NewUsageEvent>,
    /// What their repeats are answered.
    pub answer: EventAnswer,
    /// Whether it goes on with what was let in before, and isn't turned away.
    pub goes_on: bool,
    /// Is told what became of them.
    pub reply: ReplyCallback<BatchOutcome>,
}

/// Something that is one transaction, or nothing at all.
pub struct QueuedTransaction {
    /// As how many events it counts when turns are given.
    pub events: usize,
    /// About the bytes that it takes.
    pub bytes: usize,
    /// Does it, and tells whoever waits. The principal is known.
    pub work: Box<dyn FnOnce(&Services<'_>) + Send>,
}

/// A request that is carried out once, and what is kept of what was done.
pub struct IdempotentWork<T> {
    /// The request.
    pub request: IdempotentRequest,
    /// The answer that is kept.
    pub render: fn(&T) -> StoredResponse,
}

/// What became of a request.
#[derive(Clone, Debug)]
pub enum Execution<T> {
    /// It was carried out.
    Executed(T),
    /// That was done before under its key: what was answered then.
    Replayed(StoredResponse),
}

/// More waits for the writer than it will do in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterBusy;

impl From<WriterBusy> for UseCaseError {
    fn from(_: WriterBusy) -> Self {
        Self::Overloaded
    }
}

impl fmt::Debug for QueuedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("reporter", &self.reporter).field("kind", &self.kind()).finish_non_exhaustive()
    }
}

/// What differs in how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkKind {
    /// Single events, and those of batches.
    Events,
    /// Changes of events.
    Changes,
    /// What is one transaction, or nothing at all.
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

    /// About the bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        match &self.work {
            Work::Event(event) => event.event.bytes(),
            Work::Change(_) => size_of::<QueuedChange>(),
            Work::Batch(batch) => batch.events.iter().map(NewUsageEvent::bytes).sum(),
            Work::Whole(whole) => whole.bytes,
        }
    }
}

/// An event in a group, and whom to tell.
pub(super) struct EventRow {
    /// What is refused together when books show to be wrong: a request.
    pub(super) request: usize,
    pub(super) reporter: Arc<Requester>,
    pub(super) event: NewUsageEvent,
    pub(super) answer: EventAnswer,
    pub(super) keyed: Option<IdempotentWork<IngestOutcome>>,
    pub(super) to: ReplyTarget,
}

/// Whom to tell what became of an event.
pub(super) enum ReplyTarget {
    One(ReplyCallback<Execution<IngestOutcome>>),
    /// A batch, by its place among those of the group, and the event's place in its part.
    Batch(usize, usize),
}

/// A change in a group, and whom to tell.
pub(super) struct ChangeRow {
    /// What is refused alone where books show to be wrong.
    pub(super) request: usize,
    pub(super) reporter: Requester,
    pub(super) change: QueuedChange,
}

/// A batch that is being taken.
pub(super) struct Batch {
    pub(super) reporter: Arc<Requester>,
    pub(super) until: Instant,
    pub(super) bytes: usize,
    left: std::vec::IntoIter<NewUsageEvent>,
    answer: EventAnswer,
    taken: BatchOutcome,
    /// What became of those that are in a group.
    part: Vec<Option<UseCaseResult<IngestOutcome>>>,
    reply: ReplyCallback<BatchOutcome>,
}

impl Batch {
    pub(super) fn new(reporter: Requester, until: Instant, bytes: usize, batch: QueuedBatch) -> Self {
        let QueuedBatch { events, answer, goes_on: _, reply } = batch;
        let (left, taken, part) = (events.into_iter(), BatchOutcome::default(), Vec::new());
        Self { reporter: Arc::new(reporter), until, bytes, left, answer, taken, part, reply }
    }

    /// Events that aren't in a group yet.
    pub(super) fn left(&self) -> usize {
        self.left.len()
    }

    /// The next events, for a group in which the batch has this place.
    pub(super) fn take(&mut self, many: usize, place: usize, request: usize) -> Vec<EventRow> {
        let mut rows = Vec::with_capacity(many);
        for event in self.left.by_ref().take(many) {
            let to = ReplyTarget::Batch(place, self.part.len());
            rows.push(EventRow { request, reporter: Arc::clone(&self.reporter), event, answer: self.answer, keyed: None, to });
            self.part.push(None);
        }
        rows
    }

    /// Notes what became of an event of the group.
    pub(super) fn note(&mut self, place: usize, outcome: UseCaseResult<IngestOutcome>) {
        if let Some(noted) = self.part.get_mut(place) {
            *noted = Some(outcome);
        }
    }

    /// Ends a group: tells what became of all when that is known or something stopped it; answers the batch when it goes on.
    pub(super) fn part_done(mut self) -> Option<Self> {
        let part: Option<Vec<_>> = std::mem::take(&mut self.part).into_iter().collect();
        let Some(part) = part else {
            // What took it panicked, which the panic hook has printed.
            self.stop(UseCaseError::InvariantViolation("an event without an outcome"));
            return None;
        };
        // What isn't about one event stops the batch. Some of the part may be stored all the same, and the caller has to know.
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

/// Whether it isn't about one event.
fn stops(error: &UseCaseError) -> bool {
    matches!(error, UseCaseError::Store(_) | UseCaseError::InvariantViolation(_))
}
