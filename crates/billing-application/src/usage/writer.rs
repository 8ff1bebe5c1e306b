//! The writer of usage: events that wait at the same time are taken in one transaction, and each is answered when that is
//! durable (decision 0038).
//!
//! Nobody waits for a group to fill: it is whoever came while the one before was written.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use billing_domain::access::{Actor, Principal, TokenClaims};
use billing_domain::ports::{Access, StoreError, Tx, transact};
use billing_domain::refs::OrganizationId;
use billing_domain::reported::NewUsageEvent;

use super::read::EventView;
use super::slice::{Lane, Reported, Slice, TakenUsage};
use crate::access::principals_of;
use crate::error::{UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// The most events of a group: enough that each costs little, few enough that the next ones don't wait long.
const MAX_GROUP: usize = 256;
/// The most events of a group that open or correct documents: each costs many times what others do.
const MAX_OFF_DRAFTS: usize = 32;

/// How many write, and how much may wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterLimits {
    /// Groups that are written at a time; at least one.
    pub groups: usize,
    /// Events.
    pub events: usize,
    /// About the bytes that they take.
    pub bytes: usize,
}

impl Default for WriterLimits {
    fn default() -> Self {
        Self { groups: 1, events: 512, bytes: 64 * 1024 * 1024 }
    }
}

/// Who reports an event.
#[derive(Clone, Debug)]
pub enum Reporter {
    /// Somebody whose credential was checked.
    Known(Principal),
    /// The bearer of a token. Whether its key still works is looked up with the event.
    Bearer(TokenClaims),
}

/// An event on its way to the writer.
pub struct WaitingEvent {
    /// Who reports it.
    pub reporter: Reporter,
    /// The event.
    pub event: NewUsageEvent,
    /// What the repeats of one with a key are answered.
    pub answer: fn(&EventView) -> String,
    /// When nobody waits for it any more: it isn't taken then, if it wasn't before.
    pub until: Instant,
    /// Is told what became of it, once that is durable, and who reported it, where that is somebody. It is dropped where
    /// nothing became of it and nobody waits.
    pub reply: Box<dyn FnOnce(Option<Principal>, UseCaseResult<TakenUsage>) + Send>,
}

/// More waits for the writer than it will do in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterBusy;

/// What a writer has done since it was started, and what waits for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterFigures {
    /// Groups that were committed.
    pub groups: u64,
    /// Events in them.
    pub events: u64,
    /// Events of the largest.
    pub largest_group: u64,
    /// From the beginning of a group's transaction until it was durable, of all of them.
    pub writing: Duration,
    /// Events that were turned away, because too many were waiting.
    pub turned_away: u64,
    /// Events that wait now.
    pub waiting: u64,
}

/// The writer: a thread for each group that is written at a time, to which events are handed.
pub struct UsageWriter {
    queue: Arc<Queue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Queue {
    limits: WriterLimits,
    state: Mutex<Waiting>,
    arrived: Condvar,
    counted: Counted,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<WaitingEvent>,
    bytes: usize,
    stopping: bool,
}

#[derive(Default)]
struct Counted {
    groups: AtomicU64,
    events: AtomicU64,
    largest_group: AtomicU64,
    writing_micros: AtomicU64,
    turned_away: AtomicU64,
}

impl fmt::Debug for UsageWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsageWriter").field("figures", &self.figures()).finish_non_exhaustive()
    }
}

impl UsageWriter {
    /// Starts a writer.
    pub fn start(services: Services<'static>, limits: WriterLimits) -> Self {
        let (state, arrived, counted) = (Mutex::default(), Condvar::new(), Counted::default());
        let queue = Arc::new(Queue { limits, state, arrived, counted });
        let mut threads = Vec::new();
        for _ in 0..limits.groups.max(1) {
            let work = Work { services: services.clone(), queue: Arc::clone(&queue) };
            match std::thread::Builder::new().name("usage-writer".to_owned()).spawn(move || work.run()) {
                Ok(thread) => threads.push(thread),
                Err(error) => tracing::error!(%error, "a writer of usage can't be started"),
            }
        }
        // Nobody would be told anything.
        queue.locked().stopping = threads.is_empty();
        Self { queue, threads: Mutex::new(threads) }
    }

    /// Hands an event to the writer.
    ///
    /// # Errors
    /// [`WriterBusy`], with nothing done, when too much is waiting, or when the writer is stopping.
    pub fn submit(&self, event: WaitingEvent) -> Result<(), WriterBusy> {
        let Queue { limits, .. } = *self.queue;
        let mut waiting = self.queue.locked();
        let bytes = event.event.bytes();
        let is_full = waiting.events.len() >= limits.events || waiting.bytes.saturating_add(bytes) > limits.bytes;
        if waiting.stopping || (is_full && !waiting.events.is_empty()) {
            self.queue.counted.turned_away.fetch_add(1, Ordering::Relaxed);
            return Err(WriterBusy);
        }
        waiting.bytes += bytes;
        waiting.events.push_back(event);
        drop(waiting);
        self.queue.arrived.notify_one();
        Ok(())
    }

    /// What it has done so far.
    pub fn figures(&self) -> WriterFigures {
        let Counted { groups, events, largest_group, writing_micros, turned_away } = &self.queue.counted;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        WriterFigures {
            groups: read(groups),
            events: read(events),
            largest_group: read(largest_group),
            writing: Duration::from_micros(read(writing_micros)),
            turned_away: read(turned_away),
            waiting: u64::try_from(self.queue.locked().events.len()).unwrap_or(u64::MAX),
        }
    }

    /// Takes what waits, and ends. What is submitted from now on is turned away.
    pub fn stop(&self) {
        self.queue.locked().stopping = true;
        self.queue.arrived.notify_all();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a writer of usage panicked");
            }
        }
    }
}

impl Drop for UsageWriter {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Queue {
    /// Nothing panics while it is held, so a poisoned lock is a good one.
    fn locked(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever waits, as many as a group takes; `None` when nobody does and nobody will.
    fn next_group(&self) -> Option<Vec<WaitingEvent>> {
        let mut waiting = self.locked();
        loop {
            if !waiting.events.is_empty() {
                let many = waiting.events.len().min(MAX_GROUP);
                let group: Vec<WaitingEvent> = waiting.events.drain(..many).collect();
                waiting.bytes -= group.iter().map(|event| event.event.bytes()).sum::<usize>();
                return Some(group);
            }
            if waiting.stopping {
                return None;
            }
            waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What a thread does.
struct Work {
    services: Services<'static>,
    queue: Arc<Queue>,
}

/// What became of an event of a group: who reported it, and how it was taken or refused; no outcome where its document must
/// be opened or corrected first.
type Outcome = (Option<Principal>, Option<UseCaseResult<TakenUsage>>);

/// Why the transaction of a group isn't committed.
enum Stop {
    /// Nothing of it is taken now.
    Undone(Vec<Outcome>),
    Failed(UseCaseError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl Work {
    fn run(&self) {
        while let Some(mut group) = self.queue.next_group() {
            let now = Instant::now();
            group.retain(|event| event.until > now);
            // Whoever isn't told anything knows by that; the panic hook has printed why.
            let _ = catch_unwind(AssertUnwindSafe(|| self.take(group)));
        }
    }

    /// Takes a group: first, together, what goes on drafts that are there, then the others.
    fn take(&self, group: Vec<WaitingEvent>) {
        let mut others: BTreeMap<OrganizationId, Vec<(Principal, WaitingEvent)>> = BTreeMap::new();
        let work = |group: &[WaitingEvent]| self.attempt(group);
        self.divided(group, &work, &mut |event, (principal, outcome)| match (principal, outcome) {
            (Some(principal), None) => others.entry(principal.organization()).or_default().push((principal, event)),
            (principal, Some(outcome)) => (event.reply)(principal, outcome),
            (None, None) => {}
        });
        for mut others in others.into_values() {
            while !others.is_empty() {
                let is_by = |actor: Actor, principal: &Principal| principal.actor() == actor;
                let by = others[0].0.clone();
                let (of_one, rest) = others.into_iter().partition(|(principal, _)| is_by(by.actor(), principal));
                others = rest;
                self.take_others(&by, of_one);
            }
        }
    }

    fn take_others(&self, by: &Principal, others: Vec<(Principal, WaitingEvent)>) {
        let mut others = others.into_iter().map(|(_, event)| event);
        loop {
            let part: Vec<WaitingEvent> = others.by_ref().take(MAX_OFF_DRAFTS).collect();
            if part.is_empty() {
                return;
            }
            let work = |group: &[WaitingEvent]| self.attempt_others(by, group);
            self.divided(part, &work, &mut |event, (principal, outcome)| {
                (event.reply)(principal, outcome.unwrap_or(Err(UseCaseError::InvariantViolation("an event without an outcome"))));
            });
        }
    }

    /// Runs a group's work and tells what became of each event. What shows that books are wrong is of one of them: the others are
    /// taken without it.
    fn divided(
        &self,
        group: Vec<WaitingEvent>,
        work: &dyn Fn(&[WaitingEvent]) -> UseCaseResult<Vec<Outcome>>,
        tell: &mut dyn FnMut(WaitingEvent, Outcome),
    ) {
        if group.is_empty() {
            return;
        }
        match work(&group) {
            Ok(outcomes) => group.into_iter().zip(outcomes).for_each(|(event, outcome)| tell(event, outcome)),
            Err(error) if group.len() == 1 => group.into_iter().for_each(|event| refuse(event, same(&error))),
            Err(UseCaseError::Store(StoreError::Corrupt(_)) | UseCaseError::InvariantViolation(_)) => {
                let mut first = group;
                let second = first.split_off(first.len() / 2);
                self.divided(first, work, tell);
                self.divided(second, work, tell);
            }
            Err(error) => group.into_iter().for_each(|event| refuse(event, same(&error))),
        }
    }

    /// A transaction of events that go on drafts that are there.
    fn attempt(&self, group: &[WaitingEvent]) -> UseCaseResult<Vec<Outcome>> {
        self.written(|tx| {
            let principals = self.principals(tx, group)?;
            let mut outcomes: Vec<Outcome> = Vec::with_capacity(group.len());
            let mut by_organization: BTreeMap<OrganizationId, Vec<usize>> = BTreeMap::new();
            for (index, principal) in principals.into_iter().enumerate() {
                let allowed = principal.as_ref().ok_or(UseCaseError::Unauthenticated);
                let refused = match allowed.and_then(|principal| allow(principal, UseCase::RecordUsage)) {
                    Ok(organization) => {
                        by_organization.entry(organization).or_default().push(index);
                        None
                    }
                    Err(refused) => Some(Err(refused)),
                };
                outcomes.push((principal, refused));
            }
            for (organization, indices) in by_organization {
                let of_organization = indices.iter().filter_map(|index| Some((outcomes[*index].0.as_ref()?, &group[*index])));
                let events: Vec<Reported<'_>> = of_organization.map(|(principal, event)| event.by(principal.actor())).collect();
                let Some(by) = events.first().map(|first| first.by) else { continue };
                let taken = self.slice(organization, &events, by).take(tx, Lane::Drafts)?;
                for (index, outcome) in indices.into_iter().zip(taken) {
                    outcomes[index].1 = outcome;
                }
            }
            Ok(outcomes)
        })
    }

    /// A transaction of somebody's events that need more than a draft that is there.
    fn attempt_others(&self, by: &Principal, group: &[WaitingEvent]) -> UseCaseResult<Vec<Outcome>> {
        let events: Vec<Reported<'_>> = group.iter().map(|event| event.by(by.actor())).collect();
        self.written(|tx| {
            let taken = self.slice(by.organization(), &events, by.actor()).take(tx, Lane::Any)?;
            Ok(taken.into_iter().map(|outcome| (Some(by.clone()), outcome)).collect())
        })
    }

    fn slice<'a>(&'a self, organization: OrganizationId, events: &'a [Reported<'a>], by: Actor) -> Slice<'a> {
        Slice { services: &self.services, organization, events, by, now: self.services.now() }
    }

    /// Who reports the events: nobody where a token works no more.
    fn principals(&self, tx: &mut dyn Tx, group: &[WaitingEvent]) -> UseCaseResult<Vec<Option<Principal>>> {
        let mut tokens: Vec<TokenClaims> = Vec::new();
        for event in group {
            if let Reporter::Bearer(claims) = &event.reporter
                && !tokens.contains(claims)
            {
                tokens.push(claims.clone());
            }
        }
        let principals = if tokens.is_empty() { Vec::new() } else { principals_of(tx, &tokens, self.services.now())? };
        let of_token = |claims: &TokenClaims| {
            tokens.iter().position(|token| token == claims).and_then(|index| principals.get(index)?.clone())
        };
        let principal_of = |event: &WaitingEvent| match &event.reporter {
            Reporter::Known(principal) => Some(principal.clone()),
            Reporter::Bearer(claims) => of_token(claims),
        };
        Ok(group.iter().map(principal_of).collect())
    }

    /// Runs a group's work in a transaction, which is committed if an event was taken now.
    fn written(&self, mut work: impl FnMut(&mut dyn Tx) -> UseCaseResult<Vec<Outcome>>) -> UseCaseResult<Vec<Outcome>> {
        let began = Instant::now();
        let written = transact(&*self.services.store, Access::Write, |tx| {
            let outcomes = work(tx).map_err(Stop::Failed)?;
            if taken_now(&outcomes) > 0 { Ok(outcomes) } else { Err(Stop::Undone(outcomes)) }
        });
        match written {
            Ok(outcomes) => {
                self.queue.counted.group(taken_now(&outcomes), began.elapsed());
                Ok(outcomes)
            }
            Err(Stop::Undone(outcomes)) => Ok(outcomes),
            Err(Stop::Failed(error)) => Err(error),
        }
    }
}

impl WaitingEvent {
    fn by(&self, by: Actor) -> Reported<'_> {
        Reported { event: &self.event, by, answer: &self.answer }
    }
}

impl Counted {
    fn group(&self, events: u64, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.events.fetch_add(events, Ordering::Relaxed);
        self.largest_group.fetch_max(events, Ordering::Relaxed);
        self.writing_micros.fetch_add(micros, Ordering::Relaxed);
    }
}

fn taken_now(outcomes: &[Outcome]) -> u64 {
    let taken = outcomes.iter().filter(|(_, outcome)| matches!(outcome, Some(Ok(TakenUsage::Now(_)))));
    u64::try_from(taken.count()).unwrap_or(u64::MAX)
}

fn refuse(event: WaitingEvent, error: UseCaseError) {
    let principal = match event.reporter {
        Reporter::Known(principal) => Some(principal),
        Reporter::Bearer(_) => None,
    };
    (event.reply)(principal, Err(error));
}

/// What stopped a whole group, for each of its events.
fn same(error: &UseCaseError) -> UseCaseError {
    match error {
        UseCaseError::Store(StoreError::Contended) => StoreError::Contended.into(),
        UseCaseError::Store(StoreError::Corrupt(what)) => StoreError::Corrupt(what.clone()).into(),
        UseCaseError::Store(StoreError::Unavailable(reason)) => StoreError::Unavailable(reason.to_string().into()).into(),
        UseCaseError::InvariantViolation(what) => UseCaseError::InvariantViolation(what),
        other => StoreError::Unavailable(other.to_string().into()).into(),
    }
}
