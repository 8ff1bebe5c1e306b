//! Taking usage events: each is put on its document in the transaction that stores it (billing rules 4).
//!
//! One event, a batch and a group of waiting requests are the same code: a slice.

use billing_domain::access::Principal;
use billing_domain::event_input::{Atomicity, NewUsageEvent};
use billing_domain::ports::{Access, StoreError, Tx, transact};

use super::ingest::{IngestBatch, IngestItem, IngestOutcome, IngestPath};
use super::read::EventView;
use crate::error::{UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// Makes no answer: for events without a key, which have no repeats.
pub const NO_ANSWER: fn(&EventView) -> String = |_| String::new();

/// Takes events. The outer result is the whole call's: when it is `Ok`, what was taken is durable.
///
/// Events with a key are taken once, whatever contract or product changes later; `answer` makes the answer that repeats
/// get, in the transaction that stores it.
///
/// # Errors
/// [`UseCaseError::Store`] for the call, and [`UseCaseError::EventsRefused`] where [`Atomicity::Atomic`] was asked for;
/// for each event what refuses it.
pub fn record_usage(
    services: &Services,
    principal: &Principal,
    events: &[NewUsageEvent],
    neighbours: Atomicity,
    answer: &dyn Fn(&EventView) -> String,
) -> UseCaseResult<Vec<UseCaseResult<IngestOutcome>>> {
    record(services, principal, events, (neighbours, CommitMode::Stored), answer)
}

/// Looks at what a slice did, in its transaction.
pub(super) type OutcomeInspector<'l> = dyn FnMut(&mut dyn Tx, &[UseCaseResult<IngestOutcome>]) -> UseCaseResult<()> + 'l;

/// What [`record_usage`] would answer; stores nothing. Documents that it would open have no meaning beyond the answer and what
/// `look` sees of them.
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
            // With nothing taken there is nothing to commit, and what was only prepared goes too.
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

/// Takes one event.
///
/// # Errors
/// What refuses it, or the store's.
pub fn record_event(
    services: &Services,
    principal: &Principal,
    event: NewUsageEvent,
    answer: &dyn Fn(&EventView) -> String,
) -> UseCaseResult<IngestOutcome> {
    let mut results = record_usage(services, principal, &[event], Atomicity::PerEvent, answer)?;
    results.pop().unwrap_or(Err(UseCaseError::InvariantViolation("an event without an outcome")))
}

/// What becomes of what was taken.
enum CommitMode<'o, 'l> {
    Stored,
    /// Once it was looked at.
    Undone(&'o mut OutcomeInspector<'l>),
}

/// Why the transaction of a slice isn't committed.
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
