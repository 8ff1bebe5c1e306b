//! The usage writer. It writes requests that wait at the same time in one transaction, and replies to each once the
//! transaction is durable (decisions 0038 and 0041).
//!
//! The writer never waits for a group to fill. A group contains the requests that arrived while the previous one was written.

mod fair_queue;
mod figures;
mod group;
mod lanes;
mod pacing;
mod queued;

use std::cell::Cell;
use std::fmt;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use billing_domain::access::Principal;
use billing_domain::event_input::{NewUsageEvent, OnConflict};
use billing_domain::ports::{Shard, Store};
use billing_domain::refs::{EventRef, OrganizationId};

use self::fair_queue::{FairQueue, Group};
use self::figures::Times;
use self::group::WriterThread;
use self::lanes::Lanes;
use self::queued::Batch;
use super::batch::BatchOutcome;
use super::event_cache::EventCache;
use super::outcome::EventAnswer;
use super::record::deliver;
use crate::error::{UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

pub use self::figures::{Distribution, GroupFigures, Load, WriterFigures};
pub use self::queued::{
    Execution, IdempotentWork, QueuedBatch, QueuedChange, QueuedEvent, QueuedRequest, QueuedTransaction, ReplyCallback,
    Requester, Work, WorkKind, WriterBusy,
};

/// The limits of the writer's threads and queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterLimits {
    /// The number of groups written concurrently; at least one. With one, a long transaction occupies the only writer, so its
    /// organization's next one waits for as long as the first one took, while other organizations are active.
    pub groups: usize,
    /// The maximum number of queued single events. A change counts as four.
    pub events: usize,
    /// The maximum number of queued batches.
    pub batches: usize,
    /// The maximum number of queued transactions of their own.
    pub transactions: usize,
    /// The approximate maximum memory of all queued requests, in bytes.
    pub bytes: usize,
    /// The approximate maximum memory of the contracts and drafts that are kept for events, in bytes. Zero disables the cache.
    pub event_cache: usize,
}

/// The default of [`WriterLimits::event_cache`]: about 20,000 pairs of customer and usage product with a few prices.
pub const DEFAULT_EVENT_CACHE: usize = 100 * 1024 * 1024;

impl Default for WriterLimits {
    fn default() -> Self {
        Self { groups: 1, events: 512, batches: 64, transactions: 256, bytes: 64 * 1024 * 1024, event_cache: DEFAULT_EVENT_CACHE }
    }
}

/// The wait for a request that is not taken although no pause holds it. The queue has no such requests.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);

/// The time for which a thread leaves few events to one that writes already: two transactions cost more than one. The time is
/// limited, because the other thread can wait for a lock of another organization.
const LEFT_TO_ANOTHER: Duration = Duration::from_millis(5);

/// A queue of requests with one thread for each group that is written concurrently.
pub struct UsageWriter {
    queue: Arc<Queue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Queue {
    limits: WriterLimits,
    state: Mutex<State>,
    arrived: Condvar,
    /// Without the current load, which the state contains.
    figures: Mutex<WriterFigures>,
    /// What the threads read for earlier events.
    cache: EventCache,
    store: Arc<dyn Store>,
}

/// The node whose lanes a thread takes. A node that does not answer occupies its own threads only.
#[derive(Clone, Copy)]
struct ThreadOfNode {
    node: usize,
    nodes: usize,
}

struct State {
    turns: FairQueue,
    /// The requests of customers on a distributed store.
    lanes: Lanes,
    stopping: bool,
    /// The number of threads that write a group. Groups of lanes do not count.
    writing: usize,
}

impl State {
    fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.lanes.is_empty()
    }

    /// Returns whether another thread, which writes now, should write what waits together with what arrives until then.
    fn is_for_another_thread(&self) -> bool {
        self.writing > 0 && !self.stopping && !self.lanes.are_used() && self.turns.load().is_of_few_events()
    }
}

/// What a thread does next.
enum Job {
    /// Writes a group, which belongs to a shard on a distributed store.
    Write(Option<Shard>, Group),
    /// Looks up the customers of requests.
    Sort(Vec<QueuedRequest>),
}

impl fmt::Debug for UsageWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsageWriter").field("figures", &self.figures()).finish_non_exhaustive()
    }
}

impl UsageWriter {
    /// Starts a writer.
    pub fn start(services: Services, limits: WriterLimits) -> Self {
        let turns = if limits.groups > 1 { FairQueue::default() } else { FairQueue::of_one_writer() };
        let lanes = Lanes::new(services.store.shard_count());
        let nodes = services.store.nodes().len().max(1);
        let state = Mutex::new(State { turns, lanes, stopping: false, writing: 0 });
        let (arrived, figures) = (Condvar::new(), Mutex::default());
        let cache = EventCache::new(limits.event_cache);
        let store = Arc::clone(&services.store);
        let queue = Arc::new(Queue { limits, state, arrived, figures, cache, store });
        let mut threads = Vec::new();
        for number in 0..limits.groups.max(1) {
            let (services, queue) = (services.clone(), Arc::clone(&queue));
            let of_node = ThreadOfNode { node: number % nodes, nodes };
            let run = move || WriterThread { services: &services, queue: &queue, of_node, shard: Cell::new(None) }.run();
            match std::thread::Builder::new().name("usage-writer".to_owned()).spawn(run) {
                Ok(thread) => threads.push(thread),
                Err(error) => tracing::error!(%error, "a writer of usage can't be started"),
            }
        }
        // Without a thread, no request would get a reply.
        queue.locked().stopping = threads.is_empty();
        Self { queue, threads: Mutex::new(threads) }
    }

    /// Submits a request to the writer.
    ///
    /// # Errors
    /// Returns [`WriterBusy`] if the queue is full or the writer is stopping. The request has no effect.
    pub fn submit(&self, waiting: QueuedRequest) -> Result<(), WriterBusy> {
        let shard = lanes::known_shard(&*self.queue.store, &waiting);
        let mut state = self.queue.locked();
        if state.stopping || !state.turns.has_room_for(&self.queue.limits, &waiting, state.lanes.load()) {
            drop(state);
            self.queue.figures().turned_away += 1;
            return Err(WriterBusy);
        }
        match shard {
            _ if !state.lanes.are_used() || !lanes::has_lane(&waiting) => state.turns.push(waiting, Instant::now()),
            Some(shard) => state.lanes.push(shard, waiting, Instant::now()),
            None => state.lanes.push_unsorted(waiting),
        }
        self.queue.notify(state);
        Ok(())
    }

    /// Records events and waits for the result. The queue accepts a caller that continues an accepted batch even if it is
    /// full of batches.
    ///
    /// # Errors
    /// Returns any error that stopped all events, including [`UseCaseError::Overloaded`]. No event is stored then.
    pub fn record(
        &self,
        principal: &Principal,
        events: Vec<NewUsageEvent>,
        answer: EventAnswer,
        (until, goes_on): (Instant, bool),
    ) -> UseCaseResult<BatchOutcome> {
        allow(principal, UseCase::RecordUsage)?;
        if events.is_empty() {
            return Ok(BatchOutcome::default());
        }
        let (reply, replied) = sync_channel(1);
        let updates = events.iter().any(|event| event.on_conflict == OnConflict::Update);
        let sent = if updates { events.clone() } else { Vec::new() };
        // The receiver is dropped when the request was abandoned.
        let reply = Box::new(move |_, outcome| drop(reply.send(outcome)));
        let work = Work::Batch(QueuedBatch { events, answer, goes_on, reply });
        self.submit(QueuedRequest { requester: Requester::Known(principal.clone()), until, work })?;
        // Either the request expired, or its work panicked, which the panic hook has logged.
        let unanswered = Err(UseCaseError::InvariantViolation("events that nobody took"));
        let mut outcome = replied.recv().unwrap_or(unanswered)?;
        for conflicts in outcome.conflicts() {
            let events: Vec<NewUsageEvent> = conflicts.iter().filter_map(|index| sent.get(*index).cloned()).collect();
            let by = principal.clone();
            let count = events.len();
            let delivered = self.run_queued(principal, count, until, move |services| deliver(services, &by, &events, answer));
            outcome.settle(&conflicts, delivered);
            if outcome.stopped_by.is_some() {
                break;
            }
        }
        Ok(outcome)
    }

    /// Runs work in a transaction of its own when its turn comes, and waits for it. The work counts as `events` events.
    ///
    /// # Errors
    /// Returns the error of the work, or [`UseCaseError::Overloaded`] if the queue is full.
    pub fn run_queued<T: Send + 'static>(
        &self,
        principal: &Principal,
        events: usize,
        until: Instant,
        work: impl FnOnce(&Services) -> UseCaseResult<T> + Send + 'static,
    ) -> UseCaseResult<T> {
        let (reply, replied) = sync_channel(1);
        // The receiver is dropped when the request was abandoned.
        let work = Box::new(move |services: &Services| drop(reply.send(work(services))));
        let bytes = size_of::<EventRef>().saturating_mul(events);
        let work = Work::Whole(QueuedTransaction { events, bytes, work });
        self.submit(QueuedRequest { requester: Requester::Known(principal.clone()), until, work })?;
        // Either the request expired, or its work panicked, which the panic hook has logged.
        let undone = Err(UseCaseError::InvariantViolation("work that nobody did"));
        replied.recv().unwrap_or(undone)
    }

    /// Returns the writer's figures and its current load.
    pub fn figures(&self) -> WriterFigures {
        let state = self.queue.locked();
        let mut waiting = state.turns.load();
        waiting.add(state.lanes.load());
        drop(state);
        WriterFigures { waiting, ..self.queue.figures().clone() }
    }

    /// Stops the writer after all queued requests are written. New requests are rejected.
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
    /// Ignores poisoning, because no code panics while it has this lock.
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn figures(&self) -> MutexGuard<'_, WriterFigures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes a thread. With lanes, only some threads may take the request.
    fn notify(&self, state: MutexGuard<'_, State>) {
        let has_lanes = state.lanes.are_used();
        drop(state);
        if has_lanes {
            self.arrived.notify_all();
        } else {
            self.arrived.notify_one();
        }
    }

    /// Returns the next job, and waits for one if necessary. Returns `None` once the queue is empty and the writer is
    /// stopping.
    fn next_job(&self, of_node: ThreadOfNode) -> Option<Job> {
        let mut state = self.locked();
        let mut left_until = None;
        let (shard, mut group) = loop {
            if state.stopping {
                state.turns.end_pauses();
            }
            let now = Instant::now();
            let unsorted = state.lanes.take_unsorted();
            if !unsorted.is_empty() {
                return Some(Job::Sort(unsorted));
            }
            let may_take = |shard: Shard| self.store.node_of(shard) % of_node.nodes == of_node.node;
            if let Some((shard, group)) = state.lanes.next_group(may_take, now) {
                break (Some(shard), group);
            }
            if state.is_for_another_thread() {
                let until = *left_until.get_or_insert(now + LEFT_TO_ANOTHER);
                if now < until {
                    state = self.arrived.wait_timeout(state, until - now).unwrap_or_else(PoisonError::into_inner).0;
                    continue;
                }
            }
            left_until = None;
            let group = state.turns.next_group(now);
            if !group.is_empty() {
                state.writing += 1;
                break (None, group);
            }
            if !state.turns.is_empty() {
                let pause = state.turns.first_pause_end(now).map_or(SHORTEST_WAIT, |end| end.saturating_duration_since(now));
                let (woken, _) = self.arrived.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner);
                state = woken;
            } else if state.stopping && state.is_empty() {
                return None;
            } else if state.stopping {
                // Other threads write the lanes of their nodes.
                state = self.arrived.wait_timeout(state, SHORTEST_WAIT).unwrap_or_else(PoisonError::into_inner).0;
            } else {
                state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        };
        let is_more = !state.turns.is_empty();
        drop(state);
        if is_more {
            // One notification may have stood for several requests.
            self.arrived.notify_one();
        }
        let expired = std::mem::take(&mut group.expired);
        if !expired.is_empty() {
            self.figures().expired += u64::try_from(expired.len()).unwrap_or(u64::MAX);
        }
        Some(Job::Write(shard, group))
    }

    /// Queues the rest of a batch for its next turn.
    fn go_on(&self, shard: Option<Shard>, batch: Batch) {
        let mut state = self.locked();
        match shard {
            Some(shard) => state.lanes.push_rest(shard, batch, Instant::now()),
            None => state.turns.push_rest(batch),
        }
        self.notify(state);
    }

    /// Queues requests whose customers were looked up.
    fn push_sorted(&self, sorted: Vec<(Option<Shard>, QueuedRequest)>) {
        let now = Instant::now();
        let mut state = self.locked();
        for (shard, request) in sorted {
            match shard {
                Some(shard) => state.lanes.push(shard, request, now),
                None => state.turns.push(request, now),
            }
        }
        self.notify(state);
    }

    /// Records that a group, which belongs to a lane on a distributed store, is written.
    fn release(&self, shard: Option<Shard>) {
        let mut state = self.locked();
        match shard {
            Some(shard) => {
                state.lanes.release(shard);
                self.notify(state);
            }
            // This thread looks at the queue next.
            None => state.writing = state.writing.saturating_sub(1),
        }
    }

    /// Records that a transaction of an organization occupied a thread for a time.
    fn note_transaction(&self, organization: OrganizationId, took: Duration) {
        self.locked().turns.note_transaction(organization, took, Instant::now());
    }

    /// Records the figures of a committed group.
    fn wrote(&self, kind: WorkKind, size: usize, times: Times) {
        let mut figures = self.figures();
        let of_kind = match kind {
            WorkKind::Events => &mut figures.events,
            WorkKind::Changes => &mut figures.changes,
            WorkKind::Whole => &mut figures.whole,
        };
        of_kind.note(size, times);
    }
}
