//! Batches of events and their results.

use billing_domain::event_input::{NamedCustomer, NewUsageEvent, UsageBatch};

use super::outcome::{EventAnswer, IngestOutcome};
use super::record::{conflicts_in, record_usage};
use crate::carry_out::Cx;
use crate::error::{UseCaseError, UseCaseResult};

/// The maximum number of events in one transaction, except for atomic batches. Large enough for a low cost per event, small
/// enough for short locks.
pub const EVENTS_PER_TRANSACTION: usize = 1_000;

/// The result of a batch.
#[derive(Debug, Default)]
pub struct BatchOutcome {
    /// The results of the events, in order. Shorter than the batch if an error stopped it.
    pub results: Vec<UseCaseResult<IngestOutcome>>,
    /// The error that stopped the batch. Events with a result are processed. To continue, the caller sends the remaining
    /// events.
    pub stopped_by: Option<UseCaseError>,
}

impl BatchOutcome {
    /// Returns the positions of conflicts, which the writer leaves, in parts for one transaction each.
    pub fn conflicts(&self) -> Vec<Vec<usize>> {
        conflicts_in(&self.results).chunks(EVENTS_PER_TRANSACTION).map(<[usize]>::to_vec).collect()
    }

    /// Replaces conflicts by the results of their transaction. If it failed, the batch stops at the first of them.
    pub fn settle(&mut self, conflicts: &[usize], delivered: UseCaseResult<Vec<UseCaseResult<IngestOutcome>>>) {
        match delivered {
            Ok(results) => {
                for (index, result) in conflicts.iter().zip(results) {
                    if let Some(conflict) = self.results.get_mut(*index) {
                        *conflict = result;
                    }
                }
            }
            Err(error) => {
                self.results.truncate(conflicts.first().copied().unwrap_or(0));
                self.stopped_by = Some(error);
            }
        }
    }
}

/// Records a batch that is atomic or has an idempotency key, in one transaction. The stored response therefore describes
/// exactly the stored events. The [writer](super::UsageWriter) records all other batches.
///
/// # Errors
/// Returns all errors of [`record_usage`].
pub fn record_batch(cx: &mut Cx<'_>, batch: &UsageBatch, answer: EventAnswer) -> UseCaseResult<BatchOutcome> {
    Ok(BatchOutcome { results: record_usage(cx, &batch.events, batch.neighbours, answer)?, stopped_by: None })
}

/// Returns whether the event's own key, which is stored forever, is enough to identify duplicates. An event that names its
/// customer also needs an idempotent request, because the name may later belong to another customer.
pub const fn is_known_by_its_key(event: &NewUsageEvent) -> bool {
    matches!(event.customer, NamedCustomer::Ref(_))
}
