//! What became of the events of a transaction so far.

use std::collections::BTreeSet;

use billing_domain::ledger::live_labels::LiveLabels;
use billing_domain::refs::{DocumentRef, EventRef};
use billing_domain::usage::{AnswerForm, EventKeyRecord, KeyConflict};

use super::ingest::{MatchedEvent, is_fatal};
use super::outcome::{Duplicate, IngestOutcome};
use crate::error::{UseCaseError, UseCaseResult};
use crate::limits::SettledEntries;

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
