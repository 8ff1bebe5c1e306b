//! Records usage events. Each event is put on its document in the transaction that stores it (billing rules 4).
//!
//! Single events, batches and groups of queued requests share the code in `ingest`.

use std::collections::BTreeSet;

use billing_domain::access::Principal;
use billing_domain::event_input::{Atomicity, NewUsageEvent};
use billing_domain::ports::StoreError;
use billing_domain::refs::{ContractKey, CustomerId, EventRef, UsageProductRef};
use billing_domain::usage::{AnswerForm, KeyConflict};

use super::change::{ChangeBatch, ChangeOutcome, ChangeRequest, Delivery, EventChange};
use super::ingest::{IngestBatch, IngestItem, IngestPath, MAX_HOLD_ATTEMPTS};
use super::names::NameLookup;
use super::outcome::{EventAnswer, IngestOutcome};
use crate::carry_out::{Cx, run};
use crate::error::{EventPlace, UseCaseError, UseCaseResult};
use crate::{Services, UseCase};

/// An empty response, for events without a key, which have no duplicates.
pub const NO_ANSWER: EventAnswer = EventAnswer { form: AnswerForm::Place, render: |_| String::new() };

/// Records events. If the outer result is `Ok`, the recorded events are durable.
///
/// Events with an idempotency key are recorded once, even if contracts or products change later. `answer` builds the response
/// for duplicates, in the transaction that stores it. Events with [`OnConflict::Update`] update the events of their keys.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the transaction fails. Returns [`UseCaseError::EventsRefused`] if any event is rejected
/// and [`Atomicity::Atomic`] is set. Otherwise, each rejected event has an error of its own.
pub fn record_usage(
    cx: &mut Cx<'_>,
    events: &[NewUsageEvent],
    neighbours: Atomicity,
    answer: EventAnswer,
) -> UseCaseResult<Vec<UseCaseResult<IngestOutcome>>> {
    record(cx, events, (neighbours, CommitMode::Stored), answer)
}

/// Returns the positions of conflicts in results, which the [writer](super::UsageWriter) leaves to [`record_usage`].
pub(super) fn conflicts_in(results: &[UseCaseResult<IngestOutcome>]) -> Vec<usize> {
    (0..results.len()).filter(|index| is_conflict(&results[*index])).collect()
}

/// Gives recorded events the values of events that the [writer](super::UsageWriter) left as conflicts, in one transaction.
///
/// # Errors
/// Returns all errors of [`record_usage`].
pub fn deliver(
    services: &Services,
    principal: &Principal,
    events: &[NewUsageEvent],
    answer: EventAnswer,
) -> UseCaseResult<Vec<UseCaseResult<IngestOutcome>>> {
    run(services, principal, UseCase::RecordUsage, |cx| record_usage(cx, events, Atomicity::PerEvent, answer))
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
    record(cx, events, (Atomicity::PerEvent, CommitMode::Undone(look)), NO_ANSWER)
}

fn record(
    cx: &mut Cx<'_>,
    events: &[NewUsageEvent],
    (neighbours, mut mode): (Atomicity, CommitMode<'_, '_>),
    answer: EventAnswer,
) -> UseCaseResult<Vec<UseCaseResult<IngestOutcome>>> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let by = cx.by;
    let events: Vec<IngestItem<'_>> = events.iter().map(|event| IngestItem { event, by, answer }).collect();
    let mut way = Way::OnDrafts;
    // A rolled-back way releases its shared locks, because upgrading them can deadlock.
    loop {
        let recorded = cx.attempt(|cx| {
            let results = way.record(cx, &events)?;
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
            Err(IngestAbort::Other(other)) => way = other,
        }
    }
}

/// How the events of a transaction are recorded, the fastest way first.
enum Way {
    /// On existing drafts.
    OnDrafts,
    /// On any documents.
    General,
    /// With updates of recorded events. Their contracts are locked before anything else, in the order of all.
    WithUpdates(BTreeSet<ContractKey>),
}

impl Way {
    fn record(&self, cx: &mut Cx<'_>, events: &[IngestItem<'_>]) -> Result<Vec<UseCaseResult<IngestOutcome>>, IngestAbort> {
        let none = BTreeSet::new();
        let (path, also_held) = match self {
            Self::OnDrafts => (IngestPath::DraftsOnly, &none),
            Self::General => (IngestPath::General, &none),
            Self::WithUpdates(contracts) => (IngestPath::General, contracts),
        };
        let results = IngestBatch { events, shortcuts: None, also_held }.ingest(cx, path)?;
        let Some(results) = results.into_iter().collect::<Option<Vec<_>>>() else {
            return Err(IngestAbort::Other(Self::General));
        };
        if !results.iter().any(is_conflict) {
            return Ok(results);
        }
        let needed = contracts_of_conflicts(cx, events, &results)?;
        if needed.is_subset(also_held) {
            return Ok(settle(cx, events, results, also_held)?);
        }
        Err(IngestAbort::Other(Self::WithUpdates(&needed | also_held)))
    }
}

fn is_conflict(result: &UseCaseResult<IngestOutcome>) -> bool {
    matches!(result, Err(UseCaseError::UnsettledConflict(_)))
}

/// Returns the contracts that the conflicting events may change: those that have the recorded events, and all those of the
/// customers that meter their usage products.
fn contracts_of_conflicts(
    cx: &mut Cx<'_>,
    events: &[IngestItem<'_>],
    results: &[UseCaseResult<IngestOutcome>],
) -> UseCaseResult<BTreeSet<ContractKey>> {
    let organization = cx.organization;
    let conflicts = || events.iter().zip(results).filter(|(_, result)| is_conflict(result)).map(|(item, _)| item.event);
    let mut names = NameLookup::default();
    names.read(cx.tx, organization, conflicts())?;
    let pairs: BTreeSet<(CustomerId, UsageProductRef)> = conflicts()
        .filter_map(|event| Some((names.customer_of(event).ok()?.id, names.product_of(event).ok()?.usage_product_ref.clone())))
        .collect();
    let recorded: BTreeSet<EventRef> = results
        .iter()
        .filter_map(|result| match result {
            Err(UseCaseError::UnsettledConflict(conflict)) => Some((*conflict)?.event_ref),
            _ => None,
        })
        .collect();
    let key = |customer, contract| ContractKey { organization, customer, contract };
    let metering = cx.tx.contracts_metering(organization, &Vec::from_iter(pairs), None)?;
    let mut contracts: BTreeSet<ContractKey> =
        metering.iter().map(|contract| key(contract.customer_id, contract.contract_ref)).collect();
    let recorded = cx.tx.events_by_refs(organization, &Vec::from_iter(recorded))?;
    contracts.extend(recorded.iter().map(|event| key(event.customer_id, event.placement.contract_ref)));
    Ok(contracts)
}

/// Updates the recorded events of conflicting ones, in their order, and returns all results.
fn settle(
    cx: &mut Cx<'_>,
    events: &[IngestItem<'_>],
    mut results: Vec<UseCaseResult<IngestOutcome>>,
    held: &BTreeSet<ContractKey>,
) -> UseCaseResult<Vec<UseCaseResult<IngestOutcome>>> {
    let mut in_vain = 0;
    while in_vain < MAX_HOLD_ATTEMPTS {
        let waiting = conflicts_in(&results);
        if waiting.is_empty() {
            return Ok(results);
        }
        let changes: Vec<(usize, EventRef, EventChange, Delivery)> = waiting
            .iter()
            .filter_map(|index| match &results[*index] {
                Err(UseCaseError::UnsettledConflict(Some(KeyConflict { event_ref, before }))) => {
                    let IngestItem { event, answer, .. } = &events[*index];
                    let (delivery, update) = Delivery::of(event, *before, *answer)?;
                    Some((*index, *event_ref, EventChange::Update(Box::new(update)), delivery))
                }
                _ => None,
            })
            .collect();
        let asked: Vec<ChangeRequest<'_>> = changes
            .iter()
            .map(|(_, event_ref, change, delivery)| ChangeRequest { event_ref: *event_ref, change, delivery: Some(delivery) })
            .collect();
        let decided = if asked.is_empty() { Vec::new() } else { ChangeBatch { asked: &asked }.decide(cx)? };
        for ((index, ..), outcome) in changes.iter().zip(decided) {
            match outcome {
                Some(Ok(ChangeOutcome::Updated(view))) => results[*index] = Ok(IngestOutcome::Updated(view)),
                Some(Err(refusal)) => results[*index] = Err(refusal),
                Some(Ok(ChangeOutcome::Deleted)) | None => {}
            }
        }
        // Later events with the same keys are compared with what is delivered by now.
        let left: Vec<usize> = waiting.iter().copied().filter(|index| is_conflict(&results[*index])).collect();
        let items: Vec<IngestItem<'_>> = left.iter().map(|index| events[*index]).collect();
        let again = IngestBatch { events: &items, shortcuts: None, also_held: held }.ingest(cx, IngestPath::General)?;
        for (index, outcome) in left.iter().zip(again) {
            results[*index] = outcome.ok_or(UseCaseError::InvariantViolation("an event for which there is no path"))?;
        }
        in_vain = if conflicts_in(&results).len() < waiting.len() { 0 } else { in_vain + 1 };
    }
    Err(StoreError::Contended.into())
}

/// Records one event.
///
/// # Errors
/// Returns the error that rejects the event, or [`UseCaseError::Store`].
pub fn record_event(cx: &mut Cx<'_>, event: NewUsageEvent, answer: EventAnswer) -> UseCaseResult<IngestOutcome> {
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
    Other(Way),
    Undone(Vec<UseCaseResult<IngestOutcome>>),
    Failed(UseCaseError),
}

impl From<StoreError> for IngestAbort {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<UseCaseError> for IngestAbort {
    fn from(error: UseCaseError) -> Self {
        Self::Failed(error)
    }
}
