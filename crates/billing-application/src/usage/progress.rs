//! What became of the events of a transaction so far.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use billing_domain::calendar::Period;
use billing_domain::catalog::UsageProduct;
use billing_domain::labels::LabelDigest;
use billing_domain::ledger::live_labels::LiveLabels;
use billing_domain::limit::LimitValue;
use billing_domain::party::Customer;
use billing_domain::refs::{CustomerId, DocumentRef, EventRef};
use billing_domain::usage::{AnswerForm, CountedEvent, EventKeyRecord, KeyConflict, UsageKey};

use super::outcome::{Duplicate, IngestOutcome};
use crate::error::{UseCaseError, UseCaseResult};
use crate::limits::SettledEntries;

/// An event whose customer and usage product are known.
#[derive(Clone, Copy)]
pub(super) struct ResolvedEvent<'n> {
    pub(super) index: usize,
    pub(super) customer: &'n Arc<Customer>,
    pub(super) product: &'n Arc<UsageProduct>,
}

/// An event with the period that it is matched to.
#[derive(Clone)]
pub(super) struct MatchedEvent<'n> {
    pub(super) resolved: ResolvedEvent<'n>,
    pub(super) counted: CountedEvent,
    pub(super) key: UsageKey,
    pub(super) unique_digest: Option<LabelDigest>,
    pub(super) service_period: Period,
}

impl MatchedEvent<'_> {
    /// Adds the event to the counted texts of labels, and returns what counts.
    pub(super) fn added_to(&self, live: &mut LiveLabels) -> CountedEvent {
        live.add(&self.key, self.unique_digest, self.counted)
    }

    /// Takes the event back from the counted texts of labels.
    pub(super) fn take_from(&self, live: &mut LiveLabels) {
        let CountedEvent { .. } = live.remove(&self.key, self.unique_digest, self.counted);
    }
}

/// The present numbers of limits after a transaction, by customer.
pub(super) type NumbersByCustomer = BTreeMap<CustomerId, Arc<[LimitValue]>>;

/// The results of a batch so far.
pub(super) struct IngestProgress<'n> {
    pub(super) outcomes: Vec<Option<UseCaseResult<IngestOutcome>>>,
    /// Events with the key of an earlier event in the same batch.
    pub(super) duplicates: Vec<Duplicate>,
    /// Events that were recorded earlier, with responses of another form.
    pub(super) shown: Vec<(usize, EventRef)>,
    pub(super) placed: Vec<(MatchedEvent<'n>, DocumentRef)>,
    /// The texts of labels that `UNIQUE` counts, of the stored and the placed events.
    pub(super) live: LiveLabels,
    pub(super) settled: SettledEntries,
    /// Events that this path does not handle.
    pub(super) left: BTreeSet<usize>,
}

impl IngestProgress<'_> {
    pub(super) fn of(events: usize) -> Self {
        Self {
            outcomes: (0..events).map(|_| None).collect(),
            duplicates: Vec::new(),
            shown: Vec::new(),
            placed: Vec::new(),
            live: LiveLabels::default(),
            settled: SettledEntries::new(),
            left: BTreeSet::new(),
        }
    }

    /// Records a rejection. Store errors and invariant violations are no rejections: they abort the whole batch.
    pub(super) fn refuse(&mut self, index: usize, error: UseCaseError) -> UseCaseResult<()> {
        if is_fatal(&error) {
            return Err(error);
        }
        self.outcomes[index] = Some(Err(error));
        Ok(())
    }

    /// Records that an event was recorded earlier. A response of another form than the stored one shows the event as it is.
    pub(super) fn repeat(&mut self, index: usize, record: &EventKeyRecord, form: AnswerForm) {
        if record.form == form {
            self.outcomes[index] = Some(Ok(IngestOutcome::Replayed(record.answer.clone())));
        } else {
            self.shown.push((index, record.event_ref));
        }
    }

    /// Records that an event needs a transaction that updates a recorded event.
    pub(super) fn mark_conflict(&mut self, index: usize, conflict: Option<KeyConflict>) {
        self.outcomes[index] = Some(Err(UseCaseError::UnsettledConflict(conflict)));
    }

    /// Records an event with the key of an earlier event in the same batch.
    pub(super) fn mark_duplicate(&mut self, duplicate: Duplicate) {
        self.duplicates.push(duplicate);
    }

    /// Takes back the placed events but the first `kept`.
    pub(super) fn take_back(&mut self, kept: usize) {
        for (event, _) in self.placed.drain(kept..) {
            event.take_from(&mut self.live);
            self.settled.retain(|_, settled_by| *settled_by != event.counted.event_ref);
        }
    }
}

pub(super) fn is_fatal(error: &UseCaseError) -> bool {
    matches!(error, UseCaseError::Store(_) | UseCaseError::InvariantViolation(_))
}
