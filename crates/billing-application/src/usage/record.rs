//! Records usage events. Each event is put on its document in the transaction that stores it (billing rules 4).
//!
//! Single events, batches and groups of queued requests share the code in `ingest`.

use billing_domain::access::Principal;
use billing_domain::event_input::{Atomicity, NewUsageEvent};
use billing_domain::ports::{Access, StoreError, Tx, transact};

use super::ingest::{IngestBatch, IngestItem, IngestOutcome, IngestPath};
use super::read::EventView;
use crate::error::{UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// Builds an empty response, for events without a key, which have no duplicates.
pub const NO_ANSWER: fn(&EventView) -> String = |_| String::new();

/// Records events. If the outer result is `Ok`, the recorded events are durable.
///
/// Events with an idempotency key are recorded once, even if contracts or products change later. `answer` builds the response
/// for duplicates, in the transaction that stores it.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the transaction fails. Returns [`UseCaseError::EventsRefused`] if any event is rejected
/// and [`Atomicity::Atomic`] is set. Otherwise, each rejected event has an error of its own.
pub fn record_usage(
    services: &Services,
    principal: &Principal,
    events: &[NewUsageEvent],
    neighbours: Atomicity,
    answer: &dyn Fn(&EventView) -> String,
) -> UseCaseResult<Vec<UseCaseResult<IngestOutcome>>> {
    record(services, principal, events, (neighbours, CommitMode::Stored), answer)
}

/// A callback that inspects the results of a batch inside its transaction.
pub(super) type OutcomeInspector<'l> = dyn FnMut(&mut dyn Tx, &[UseCaseResult<IngestOutcome>]) -> UseCaseResult<()> + 'l;

/// Returns what [`record_usage`] would return, and stores nothing. References of documents that it would open are valid only
/// inside `look`.
pub(super) fn dry_run_usage(
    services: &Services,
    principal: &Principal,
    events: &[NewUsageEvent],
    look: &mut OutcomeInspector<'_>,
) -> UseCaseResult<Vec<UseCaseResult<IngestOutcome>>> {
    record(services, principal, events, (Atomicity::PerEvent, CommitMode::Undone(look)), &NO_ANSWER)
}

fn record(
    services: &Services,
    principal: &Principal,
    events: &[NewUsageEvent],
    (neighbours, mut outcome): (Atomicity, CommitMode<'_, '_>),
    answer: &dyn Fn(&EventView) -> String,
) -> UseCaseResult<Vec<UseCaseResult<IngestOutcome>>> {
    let organization = allow(principal, UseCase::RecordUsage)?;
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let by = principal.actor();
    let events: Vec<IngestItem<'_>> = events.iter().map(|event| IngestItem { event, by, answer }).collect();
    let slice = IngestBatch { services, organization, events: &events, by, now: services.now() };
    let mut work = |tx: &mut dyn Tx, lane| {
        let results: Option<Vec<_>> = slice.ingest(tx, lane).map_err(IngestAbort::Failed)?.into_iter().collect();
        let results = results.ok_or(IngestAbort::OtherLane)?;
        if neighbours == Atomicity::Atomic && results.iter().any(Result::is_err) {
            let refused = results.into_iter().enumerate().filter_map(|(index, result)| Some((index, result.err()?)));
            return Err(IngestAbort::Failed(UseCaseError::EventsRefused(refused.collect())));
        }
        match &mut outcome {
            // If no event was recorded, the rollback also removes rows that were only prepared.
            CommitMode::Stored if results.iter().any(Result::is_ok) => Ok(results),
            CommitMode::Stored => Err(IngestAbort::Undone(results)),
            CommitMode::Undone(look) => {
                look(tx, &results).map_err(IngestAbort::Failed)?;
                Err(IngestAbort::Undone(results))
            }
        }
    };
    for lane in [IngestPath::DraftsOnly, IngestPath::General] {
        match transact(&*services.store, Access::Write, |tx| work(tx, lane)) {
            Ok(results) | Err(IngestAbort::Undone(results)) => return Ok(results),
            Err(IngestAbort::Failed(error)) => return Err(error),
            Err(IngestAbort::OtherLane) => {}
        }
    }
    Err(UseCaseError::InvariantViolation("events for which there is no lane"))
}

/// Records one event.
///
/// # Errors
/// Returns the error that rejects the event, or [`UseCaseError::Store`].
pub fn record_event(
    services: &Services,
    principal: &Principal,
    event: NewUsageEvent,
    answer: &dyn Fn(&EventView) -> String,
) -> UseCaseResult<IngestOutcome> {
    let mut results = record_usage(services, principal, &[event], Atomicity::PerEvent, answer)?;
    results.pop().unwrap_or(Err(UseCaseError::InvariantViolation("an event without an outcome")))
}

/// Whether the transaction is committed.
enum CommitMode<'o, 'l> {
    Stored,
    /// Rolled back after the inspection.
    Undone(&'o mut OutcomeInspector<'l>),
}

/// The reason why the transaction of a batch is rolled back.
enum IngestAbort {
    OtherLane,
    Undone(Vec<UseCaseResult<IngestOutcome>>),
    Failed(UseCaseError),
}

impl From<StoreError> for IngestAbort {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}
