//! Writes a group of requests on a writer thread.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use billing_domain::access::{Actor, Principal, TokenClaims};
use billing_domain::ports::{Access, Shard, StoreError, Tx, transact_at};
use billing_domain::refs::OrganizationId;

use super::fair_queue::Group;
use super::figures::Times;
use super::queued::{
    Batch, ChangeRow, EventRow, Execution, IdempotentWork, QueuedTransaction, ReplyCallback, ReplyTarget, Requester, WorkKind,
};
use super::{Job, Queue, ThreadOfNode, lanes};
use crate::access::principals_of;
use crate::carry_out::Cx;
use crate::error::{UseCaseError, UseCaseResult};
use crate::idempotency::{self, IdempotencyKeyLocks};
use crate::usage::batch::EVENTS_PER_TRANSACTION;
use crate::usage::change::{ChangeBatch, ChangeOutcome, ChangeRequest, EventChange};
use crate::usage::ingest::{IngestBatch, IngestItem, IngestPath, MAX_HOLD_ATTEMPTS};
use crate::usage::outcome::IngestOutcome;
use crate::usage::recall::Shortcuts;
use crate::{Services, UseCase, allow};

/// The maximum number of events in a transaction that open or correct documents, while single requests wait. Such events are
/// much more expensive than others.
const MAX_OFF_DRAFTS: usize = 32;

/// The work of a writer thread.
pub(super) struct WriterThread<'q> {
    pub(super) services: &'q Services,
    pub(super) queue: &'q Queue,
    pub(super) of_node: ThreadOfNode,
    /// The shard of the current group.
    pub(super) shard: Cell<Option<Shard>>,
}

/// The result of an item in a group, with its principal. The result is `None` if another transaction has to process the item.
type Outcome<T> = (Option<Principal>, Option<UseCaseResult<Execution<T>>>);

/// The work on a group, which returns the outcome of each item.
type GroupWork<'w, R> = dyn Fn(&[R]) -> UseCaseResult<Vec<Outcome<<R as GroupItem>::Output>>> + 'w;

/// The results of authorized items, with their positions in the group.
type Decided<T> = Vec<(usize, Option<UseCaseResult<T>>)>;

/// Decides on the authorized items of one organization.
type Decide<'w, R> =
    &'w dyn Fn(&mut dyn Tx, OrganizationId, &[AuthorizedItem<'_, R>]) -> UseCaseResult<Decided<<R as GroupItem>::Output>>;

/// An item whose principal is authorized.
struct AuthorizedItem<'g, R> {
    index: usize,
    by: Actor,
    row: &'g R,
}

/// The outcomes of a group's items, and whether their transaction was committed because it changed data.
struct Attempted<T> {
    outcomes: Vec<Outcome<T>>,
    is_committed: bool,
}

/// The reason why the transaction of a group is rolled back.
enum GroupAbort<T> {
    /// No changes to store.
    Undone(Vec<Outcome<T>>),
    Failed(UseCaseError),
}

impl<T> From<StoreError> for GroupAbort<T> {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

/// An item of a group.
trait GroupItem {
    /// The kind in the figures.
    const KIND: WorkKind;
    /// The result of the item's work.
    type Output;

    fn requester(&self) -> &Requester;
    /// The request of the item. All items of a request fail together if it violates an invariant.
    fn request(&self) -> usize;
    fn use_case(&self) -> UseCase;
    fn keyed(&self) -> Option<&IdempotentWork<Self::Output>>;
    /// Returns whether the work was done now, and not earlier.
    fn is_written(done: &Self::Output) -> bool;
}

impl GroupItem for EventRow {
    const KIND: WorkKind = WorkKind::Events;
    type Output = IngestOutcome;

    fn requester(&self) -> &Requester {
        &self.requester
    }

    fn request(&self) -> usize {
        self.request
    }

    fn use_case(&self) -> UseCase {
        UseCase::RecordUsage
    }

    fn keyed(&self) -> Option<&IdempotentWork<IngestOutcome>> {
        self.keyed.as_ref()
    }

    fn is_written(done: &IngestOutcome) -> bool {
        matches!(done, IngestOutcome::Recorded(_))
    }
}

impl GroupItem for ChangeRow {
    const KIND: WorkKind = WorkKind::Changes;
    type Output = ChangeOutcome;

    fn requester(&self) -> &Requester {
        &self.requester
    }

    fn request(&self) -> usize {
        self.request
    }

    fn use_case(&self) -> UseCase {
        match self.change.change {
            EventChange::Update(_) => UseCase::UpdateEvent,
            EventChange::Delete => UseCase::DeleteEvent,
        }
    }

    fn keyed(&self) -> Option<&IdempotentWork<ChangeOutcome>> {
        self.change.keyed.as_ref()
    }

    fn is_written(_: &ChangeOutcome) -> bool {
        true
    }
}

impl WriterThread<'_> {
    /// Writes one group after another until the writer stops.
    pub(super) fn run(&self) {
        while let Some(job) = self.queue.next_job(self.of_node) {
            let (shard, group) = match job {
                Job::Write(shard, group) => (shard, group),
                Job::Sort(requests) => {
                    self.queue.push_sorted(lanes::sort(&*self.services.store, requests));
                    continue;
                }
            };
            let Group { events, changes, whole, batches, is_of_batches, expired: _ } = group;
            self.shard.set(shard);
            let step = if is_of_batches { EVENTS_PER_TRANSACTION } else { MAX_OFF_DRAFTS };
            for batch in self.take(events, batches, step) {
                self.queue.go_on(shard, batch);
            }
            self.change(changes);
            if let Some((organization, whole)) = whole {
                self.whole(organization, whole);
            }
            self.queue.release(shard);
        }
    }

    /// Records events: first those on existing drafts, in one transaction, then the others. Returns the batches with events
    /// left.
    fn take(&self, events: Vec<EventRow>, mut batches: Vec<Batch>, step: usize) -> Vec<Batch> {
        let mut others: BTreeMap<OrganizationId, Vec<(Actor, EventRow)>> = BTreeMap::new();
        self.bisect_on_failure(events, &|events| self.attempt_events(events, IngestPath::DraftsOnly), &mut |row, outcome| {
            match outcome {
                (Some(principal), None) => {
                    let (organization, by) = (principal.organization(), principal.actor());
                    let requester = Arc::new(Requester::Known(principal));
                    others.entry(organization).or_default().push((by, EventRow { requester, ..row }));
                }
                outcome => row.tell(outcome, &mut batches),
            }
        });
        for mut others in others.into_values() {
            while let Some((by, _)) = others.first() {
                let by = *by;
                let (of_one, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(|(actor, _)| *actor == by);
                others = rest;
                let mut of_one = of_one.into_iter().map(|(_, row)| row).peekable();
                while of_one.peek().is_some() {
                    let part: Vec<EventRow> = of_one.by_ref().take(step).collect();
                    let attempt = |events: &[EventRow]| self.attempt_events(events, IngestPath::General);
                    self.bisect_on_failure(part, &attempt, &mut |row, outcome| row.tell(outcome, &mut batches));
                }
            }
        }
        batches.into_iter().filter_map(Batch::part_done).collect()
    }

    /// Changes events in as many transactions as necessary. A change that depends on unsaved changes of its contract is
    /// deferred to the next transaction.
    fn change(&self, mut changes: Vec<ChangeRow>) {
        let mut in_vain = 0;
        while !changes.is_empty() && in_vain < MAX_HOLD_ATTEMPTS {
            let before = changes.len();
            let mut left = Vec::new();
            self.bisect_on_failure(changes, &|changes| self.attempt_changes(changes), &mut |row, outcome| match outcome {
                (Some(principal), None) => left.push(ChangeRow { requester: Requester::Known(principal), ..row }),
                outcome => row.tell(outcome),
            });
            in_vain = if left.len() < before { 0 } else { in_vain + 1 };
            changes = left;
        }
        // Other transactions interfered too often.
        changes.into_iter().for_each(|row| row.tell((None, Some(Err(StoreError::Contended.into())))));
    }

    /// Runs work that is a transaction of its own.
    fn whole(&self, organization: OrganizationId, whole: QueuedTransaction) {
        let began = Instant::now();
        let QueuedTransaction { events, bytes: _, work } = whole;
        // On a panic, the reply callback is dropped, which the caller notices. The panic hook has logged the cause.
        let is_done = catch_unwind(AssertUnwindSafe(|| work(self.services))).is_ok();
        let writing = began.elapsed();
        self.queue.note_transaction(organization, writing);
        if is_done {
            self.queue.wrote(WorkKind::Whole, events, Times { writing, committing: None });
        }
    }

    /// Runs the work of a group and reports each outcome. If the work panics or violates an invariant, bisection finds the
    /// request that caused it. The other requests succeed without it.
    fn bisect_on_failure<R: GroupItem>(
        &self,
        group: Vec<R>,
        work: &GroupWork<'_, R>,
        tell: &mut dyn FnMut(R, Outcome<R::Output>),
    ) {
        if group.is_empty() {
            return;
        }
        // The panic hook has logged the cause.
        let panicked = |_| Err(UseCaseError::InvariantViolation("what was to be written panicked"));
        let error = match catch_unwind(AssertUnwindSafe(|| work(&group))).unwrap_or_else(panicked) {
            Ok(outcomes) => return group.into_iter().zip(outcomes).for_each(|(row, outcome)| tell(row, outcome)),
            Err(error) => error,
        };
        let requests: BTreeSet<usize> = group.iter().map(GroupItem::request).collect();
        let is_of_one = matches!(error, UseCaseError::Store(StoreError::Corrupt(_)) | UseCaseError::InvariantViolation(_));
        if !is_of_one || requests.len() == 1 {
            for row in group {
                let principal = row.requester().known().cloned();
                tell(row, (principal, Some(Err(error.for_another()))));
            }
            return;
        }
        let first: BTreeSet<usize> = requests.iter().take(requests.len() / 2).copied().collect();
        let (first, second): (Vec<R>, Vec<R>) = group.into_iter().partition(|row| first.contains(&row.request()));
        self.bisect_on_failure(first, work, tell);
        self.bisect_on_failure(second, work, tell);
    }

    /// Processes events in one transaction, as far as the path handles them.
    fn attempt_events(&self, events: &[EventRow], path: IngestPath) -> UseCaseResult<Vec<Outcome<IngestOutcome>>> {
        if path == IngestPath::DraftsOnly {
            let shortcuts = Shortcuts::new(&self.queue.cache);
            let attempted = self.attempt_events_with(events, path, Some(&shortcuts));
            if !shortcuts.must_repeat() {
                let Attempted { outcomes, is_committed } = attempted?;
                if is_committed {
                    shortcuts.keep_learned();
                }
                return Ok(outcomes);
            }
        }
        Ok(self.attempt_events_with(events, path, None)?.outcomes)
    }

    fn attempt_events_with(
        &self,
        events: &[EventRow],
        path: IngestPath,
        shortcuts: Option<&Shortcuts<'_>>,
    ) -> UseCaseResult<Attempted<IngestOutcome>> {
        let begin = || {
            if let Some(shortcuts) = shortcuts {
                shortcuts.begin();
            }
        };
        self.attempt(events, &begin, &|tx, organization, events| {
            let reported: Vec<IngestItem<'_>> = events.iter().map(|event| event.row.by(event.by)).collect();
            let Some(by) = reported.first().map(|first| first.by) else { return Ok(Vec::new()) };
            let cx = &mut Cx::of_actor(tx, self.services, organization, by, self.services.now());
            let results = IngestBatch { events: &reported, shortcuts, also_held: &BTreeSet::new() }.ingest(cx, path)?;
            cx.finish()?;
            Ok(events.iter().map(|event| event.index).zip(results).collect())
        })
    }

    /// Processes changes in one transaction. For each organization, only the changes of one actor are made, and the others
    /// are deferred.
    fn attempt_changes(&self, changes: &[ChangeRow]) -> UseCaseResult<Vec<Outcome<ChangeOutcome>>> {
        let attempted = self.attempt(changes, &|| (), &|tx, organization, changes| {
            let Some(by) = changes.first().map(|first| first.by) else { return Ok(Vec::new()) };
            let now: Vec<&AuthorizedItem<'_, ChangeRow>> = changes.iter().filter(|change| change.by == by).collect();
            let asked: Vec<ChangeRequest<'_>> = now.iter().map(|change| change.row.asked()).collect();
            let cx = &mut Cx::of_actor(tx, self.services, organization, by, self.services.now());
            let decided = ChangeBatch { asked: &asked }.decide(cx)?;
            cx.finish()?;
            Ok(now.iter().map(|change| change.index).zip(decided).collect())
        })?;
        Ok(attempted.outcomes)
    }

    /// Processes a group in one transaction, and commits it if any item changes data. `begin` is called whenever the store
    /// begins the transaction.
    fn attempt<R: GroupItem>(&self, group: &[R], begin: &dyn Fn(), decide: Decide<'_, R>) -> UseCaseResult<Attempted<R::Output>> {
        let began = Instant::now();
        let decided_at = Cell::new(began);
        let committed = transact_at(&*self.services.store, self.shard.get(), Access::Write, |tx| {
            begin();
            let (outcomes, is_stored) = self.outcomes(tx, group, decide).map_err(GroupAbort::Failed)?;
            decided_at.set(Instant::now());
            if is_stored { Ok(outcomes) } else { Err(GroupAbort::Undone(outcomes)) }
        });
        match committed {
            Ok(outcomes) => {
                let times = Times { writing: began.elapsed(), committing: Some(decided_at.get().elapsed()) };
                let is_written = |(_, outcome): &&Outcome<R::Output>| match outcome {
                    Some(Ok(Execution::Executed(done))) => R::is_written(done),
                    _ => false,
                };
                self.queue.wrote(R::KIND, outcomes.iter().filter(is_written).count(), times);
                Ok(Attempted { outcomes, is_committed: true })
            }
            Err(GroupAbort::Undone(outcomes)) => Ok(Attempted { outcomes, is_committed: false }),
            Err(GroupAbort::Failed(error)) => Err(error),
        }
    }

    /// Returns the outcomes of a group and whether there are changes to store.
    fn outcomes<R: GroupItem>(
        &self,
        tx: &mut dyn Tx,
        group: &[R],
        decide: Decide<'_, R>,
    ) -> UseCaseResult<(Vec<Outcome<R::Output>>, bool)> {
        let mut outcomes: Vec<Outcome<R::Output>> = Vec::with_capacity(group.len());
        let mut allowed: BTreeMap<OrganizationId, Vec<AuthorizedItem<'_, R>>> = BTreeMap::new();
        let mut keys = IdempotencyKeyLocks::default();
        for (index, (row, principal)) in group.iter().zip(self.principals(tx, group)?).enumerate() {
            let outcome = match principal.as_ref().ok_or(UseCaseError::Unauthenticated).and_then(|principal| {
                let organization = allow(principal, row.use_case())?;
                let Some(keyed) = row.keyed() else { return Ok(None) };
                keys.lock_key(tx, self.services, organization, &keyed.request)
            }) {
                Ok(Some(kept)) => Some(Ok(Execution::Replayed(kept))),
                Ok(None) => None,
                Err(error) if is_fatal(&error) => return Err(error),
                Err(refusal) => Some(Err(refusal)),
            };
            if let (Some(principal), None) = (&principal, &outcome) {
                let by = principal.actor();
                allowed.entry(principal.organization()).or_default().push(AuthorizedItem { index, by, row });
            }
            outcomes.push((principal, outcome));
        }
        let mut is_stored = false;
        for (organization, allowed) in allowed {
            for (index, outcome) in decide(tx, organization, &allowed)? {
                if let Some(Ok(done)) = &outcome {
                    is_stored |= R::is_written(done);
                    if let Some(keyed) = group[index].keyed() {
                        let answer = (keyed.render)(done);
                        idempotency::save_response(tx, self.services, organization, &keyed.request, answer)?;
                        is_stored = true;
                    }
                }
                outcomes[index].1 = outcome.map(|outcome| outcome.map(Execution::Executed));
            }
        }
        Ok((outcomes, is_stored))
    }

    /// Returns the principals of the items, or `None` for tokens that are no longer valid.
    fn principals<R: GroupItem>(&self, tx: &mut dyn Tx, group: &[R]) -> UseCaseResult<Vec<Option<Principal>>> {
        let mut tokens: Vec<TokenClaims> = Vec::new();
        for row in group {
            if let Requester::Bearer(claims) = row.requester()
                && !tokens.contains(claims)
            {
                tokens.push(claims.clone());
            }
        }
        let principals = if tokens.is_empty() { Vec::new() } else { principals_of(tx, &tokens, self.services.machine_now())? };
        let of_token = |claims: &TokenClaims| {
            tokens.iter().position(|token| token == claims).and_then(|index| principals.get(index)?.clone())
        };
        let principal_of = |row: &R| match row.requester() {
            Requester::Known(principal) => Some(principal.clone()),
            Requester::Bearer(claims) => of_token(claims),
        };
        Ok(group.iter().map(principal_of).collect())
    }
}

impl EventRow {
    fn by(&self, by: Actor) -> IngestItem<'_> {
        IngestItem { event: &self.event, by, answer: self.answer }
    }

    /// Sends the reply, or records the outcome in the event's batch.
    fn tell(self, (principal, outcome): Outcome<IngestOutcome>, batches: &mut [Batch]) {
        let outcome = outcome.unwrap_or(Err(UseCaseError::InvariantViolation("an event without an outcome")));
        match self.to {
            ReplyTarget::One(reply) => send_reply(reply, principal, outcome),
            ReplyTarget::Batch(batch, place) => {
                // Events of a batch have no idempotent request of their own.
                let outcome = outcome.and_then(|carried| match carried {
                    Execution::Executed(taken) => Ok(taken),
                    Execution::Replayed(_) => Err(UseCaseError::InvariantViolation("an event of a batch that is a request")),
                });
                if let Some(batch) = batches.get_mut(batch) {
                    batch.note(place, outcome);
                }
            }
        }
    }
}

impl ChangeRow {
    const fn asked(&self) -> ChangeRequest<'_> {
        ChangeRequest { event_ref: self.change.event_ref, change: &self.change.change, delivery: None }
    }

    fn tell(self, (principal, outcome): Outcome<ChangeOutcome>) {
        let outcome = outcome.unwrap_or(Err(UseCaseError::InvariantViolation("a change without an outcome")));
        send_reply(self.change.reply, principal, outcome);
    }
}

/// Sends a reply. A panic of the callback must not affect other requests; the panic hook has logged the cause.
fn send_reply<T>(reply: ReplyCallback<T>, principal: Option<Principal>, outcome: UseCaseResult<T>) {
    let _ = catch_unwind(AssertUnwindSafe(|| reply(principal, outcome)));
}

fn is_fatal(error: &UseCaseError) -> bool {
    matches!(error, UseCaseError::Store(_) | UseCaseError::InvariantViolation(_))
}
