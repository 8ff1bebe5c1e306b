//! Records usage events. Each event is put on its document in the transaction that stores it (billing rules 4).
//!
//! Single events, batches and groups of queued requests share the code in `ingest`.

use billing_domain::event_input::{Atomicity, NewUsageEvent};
use billing_domain::ports::StoreError;

use super::ingest::{IngestBatch, IngestItem, IngestOutcome, IngestPath};
use super::read::EventView;
use crate::carry_out::Cx;
use crate::error::{EventPlace, UseCaseError, UseCaseResult};

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
    cx: &mut Cx<'_>,
    events: &[NewUsageEvent],
    neighbours: Atomicity,
    answer: &dyn Fn(&EventView) -> String,
) -> UseCaseResult<Vec<UseCaseResult<IngestOutcome>>> {
    record(cx, events, (neighbours, CommitMode::Stored), answer)
}

/// A callback that inspects the results of a batch before they are rolled back.
pub(super) type OutcomeInspector<'l> = dyn FnMut(&mut Cx<'_>, &[UseCaseResult<IngestOutcome>]) -> UseCaseResult<()> + 'l;

/// Returns what [`record_usage`] would return, and stores nothing. References of documents that it would open are valid only
/// inside `look`.
pub(super) fn dry_run_usage(
    cx: &mut Cx<'_>,
    events: &[NewUsageEvent],
    look: &mut OutcomeInspector<'_>,
) -> UseCaseResult<Vec<UseCaseResult<IngestOutcome>>> {
    record(cx, events, (Atomicity::PerEvent, CommitMode::Undone(look)), &NO_ANSWER)
}

fn record(
    cx: &mut Cx<'_>,
    events: &[NewUsageEvent],
    (neighbours, mut mode): (Atomicity, CommitMode<'_, '_>),
    answer: &dyn Fn(&EventView) -> String,
) -> UseCaseResult<Vec<UseCaseResult<IngestOutcome>>> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let by = cx.by;
    let events: Vec<IngestItem<'_>> = events.iter().map(|event| IngestItem { event, by, answer }).collect();
    let batch = IngestBatch { events: &events, shortcuts: None };
    // A rolled-back path releases its shared locks, because upgrading them can deadlock.
    for path in [IngestPath::DraftsOnly, IngestPath::General] {
        let recorded = cx.attempt(|cx| {
            let results: Option<Vec<_>> = batch.ingest(cx, path).map_err(IngestAbort::Failed)?.into_iter().collect();
            let results = results.ok_or(IngestAbort::OtherPath)?;
            if neighbours == Atomicity::Atomic && results.iter().any(Result::is_err) {
                let refused = results
                    .into_iter()
                    .enumerate()
                    .filter_map(|(index, result)| Some((EventPlace::in_batch(index), result.err()?)));
                return Err(IngestAbort::Failed(UseCaseError::EventsRefused(refused.collect())));
            }
            match &mut mode {
                // If no event was recorded, the rollback also removes rows that were only prepared.
                CommitMode::Stored if results.iter().any(Result::is_ok) => Ok(results),
                CommitMode::Stored => Err(IngestAbort::Undone(results)),
                CommitMode::Undone(look) => {
                    look(cx, &results).map_err(IngestAbort::Failed)?;
                    Err(IngestAbort::Undone(results))
                }
            }
        });
        match recorded {
            Ok(results) | Err(IngestAbort::Undone(results)) => return Ok(results),
            Err(IngestAbort::Failed(error)) => return Err(error),
            Err(IngestAbort::OtherPath) => {}
        }
    }
    Err(UseCaseError::InvariantViolation("events for which there is no path"))
}

/// Records one event.
///
/// # Errors
/// Returns the error that rejects the event, or [`UseCaseError::Store`].
pub fn record_event(
    cx: &mut Cx<'_>,
    event: NewUsageEvent,
    answer: &dyn Fn(&EventView) -> String,
) -> UseCaseResult<IngestOutcome> {
    let mut results = record_usage(cx, &[event], Atomicity::PerEvent, answer)?;
    results.pop().unwrap_or(Err(UseCaseError::InvariantViolation("an event without an outcome")))
}

/// Whether the recorded events stay.
enum CommitMode<'o, 'l> {
    Stored,
    /// Rolled back after the inspection.
    Undone(&'o mut OutcomeInspector<'l>),
}

/// The reason why recorded events are rolled back.
enum IngestAbort {
    OtherPath,
    Undone(Vec<UseCaseResult<IngestOutcome>>),
    Failed(UseCaseError),
}

impl From<StoreError> for IngestAbort {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}
