//! The writer of usage: what waits at the same time is written in one transaction, and each is answered when that is durable
//! (decisions 0038 and 0041).
//!
//! Nobody waits for a group to fill: it is whoever came while the one before was written.

mod fair_queue;
mod figures;
mod group;
mod queued;

use std::fmt;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use billing_domain::access::Principal;
use billing_domain::event_input::NewUsageEvent;
use billing_domain::refs::EventRef;

use self::fair_queue::{FairQueue, Group};
use self::figures::Times;
use self::group::WriterThread;
use self::queued::Batch;
use super::batch::BatchOutcome;
use crate::error::{UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

pub use self::figures::{Distribution, GroupFigures, Load, WriterFigures};
pub use self::queued::{
    EventAnswer, Execution, IdempotentWork, QueuedBatch, QueuedChange, QueuedEvent, QueuedRequest, QueuedTransaction,
    ReplyCallback, Requester, Work, WorkKind, WriterBusy,
};

/// How many write, and how much may wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterLimits {
    /// Groups that are written at a time; at least one.
    pub groups: usize,
    /// Single events; a change of one counts as four.
    pub events: usize,
    /// Batches.
    pub batches: usize,
    /// About the bytes that all of it takes.
    pub bytes: usize,
}

impl Default for WriterLimits {
    fn default() -> Self {
        Self { groups: 1, events: 512, batches: 64, bytes: 64 * 1024 * 1024 }
    }
}

/// The writer: a thread for each group that is written at a time, to which requests are handed.
pub struct UsageWriter {
    queue: Arc<Queue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Queue {
    limits: WriterLimits,
    state: Mutex<State>,
    arrived: Condvar,
    /// Without what waits, which is told by the state.
    figures: Mutex<WriterFigures>,
}

#[derive(Default)]
struct State {
    turns: FairQueue,
    stopping: bool,
}

impl fmt::Debug for UsageWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsageWriter").field("figures", &self.figures()).finish_non_exhaustive()
    }
}

impl UsageWriter {
    /// Starts a writer.
    pub fn start(services: Services<'static>, limits: WriterLimits) -> Self {
        let (state, arrived, figures) = (Mutex::default(), Condvar::new(), Mutex::default());
        let queue = Arc::new(Queue { limits, state, arrived, figures });
        let mut threads = Vec::new();
        for _ in 0..limits.groups.max(1) {
            let (services, queue) = (services.clone(), Arc::clone(&queue));
            let run = move || WriterThread { services: &services, queue: &queue }.run();
            match std::thread::Builder::new().name("usage-writer".to_owned()).spawn(run) {
                Ok(thread) => threads.push(thread),
                Err(error) => tracing::error!(%error, "a writer of usage can't be started"),
            }
        }
        // Nobody would be told anything.
        queue.locked().stopping = threads.is_empty();
        Self { queue, threads: Mutex::new(threads) }
    }

    /// Hands something to the writer.
    ///
    /// # Errors
    /// [`WriterBusy`], with nothing done, when too much is waiting, or when the writer is stopping.
    pub fn submit(&self, waiting: QueuedRequest) -> Result<(), WriterBusy> {
        let mut state = self.queue.locked();
        if state.stopping || !state.turns.has_room_for(&self.queue.limits, &waiting) {
            drop(state);
            self.queue.figures().turned_away += 1;
            return Err(WriterBusy);
        }
        state.turns.push(waiting, Instant::now());
        drop(state);
        self.queue.arrived.notify_one();
        Ok(())
    }

    /// Takes events, and waits for it. A caller that goes on with what was let in before isn't turned away.
    ///
    /// # Errors
    /// What stopped all of them, [`UseCaseError::Overloaded`] among it: none is stored then.
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
        // Nobody to tell means nobody is waiting for it.
        let reply = Box::new(move |_, outcome| drop(reply.send(outcome)));
        let work = Work::Batch(QueuedBatch { events, answer, goes_on, reply });
        self.submit(QueuedRequest { reporter: Requester::Known(principal.clone()), until, work })?;
        // Either it was too late for it, or what took it panicked, which the panic hook has printed.
        let unanswered = Err(UseCaseError::InvariantViolation("events that nobody took"));
        replied.recv().unwrap_or(unanswered)
    }

    /// Does something in a transaction of its own when its turn has come, and waits for it. It counts as so many events.
    ///
    /// # Errors
    /// The work's own; [`UseCaseError::Overloaded`] where too much waits.
    pub fn run_queued<T: Send + 'static>(
        &self,
        principal: &Principal,
        events: usize,
        until: Instant,
        work: impl FnOnce(&Services<'_>) -> UseCaseResult<T> + Send + 'static,
    ) -> UseCaseResult<T> {
        let (reply, replied) = sync_channel(1);
        // Nobody to tell means nobody is waiting for it.
        let work = Box::new(move |services: &Services<'_>| drop(reply.send(work(services))));
        let bytes = size_of::<EventRef>().saturating_mul(events);
        let work = Work::Whole(QueuedTransaction { events, bytes, work });
        self.submit(QueuedRequest { reporter: Requester::Known(principal.clone()), until, work })?;
        // Either it was too late for it, or it panicked, which the panic hook has printed.
        let undone = Err(UseCaseError::InvariantViolation("work that nobody did"));
        replied.recv().unwrap_or(undone)
    }

    /// What it has done so far, and what waits.
    pub fn figures(&self) -> WriterFigures {
        let waiting = self.queue.locked().turns.load();
        WriterFigures { waiting, ..self.queue.figures().clone() }
    }

    /// Writes what waits, and ends. What is submitted from now on is turned away.
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
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn figures(&self) -> MutexGuard<'_, WriterFigures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever waits, as many as a group takes; `None` when nobody does and nobody will.
    fn next_group(&self) -> Option<Group> {
        let mut state = self.locked();
        while state.turns.is_empty() {
            if state.stopping {
                return None;
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut group = state.turns.next_group(Instant::now());
        let is_more = !state.turns.is_empty();
        drop(state);
        if is_more {
            // One call may have stood for several that came.
            self.arrived.notify_one();
        }
        let expired = std::mem::take(&mut group.expired);
        if !expired.is_empty() {
            self.figures().expired += u64::try_from(expired.len()).unwrap_or(u64::MAX);
        }
        Some(group)
    }

    /// Lets what is left of a batch wait for its next turn.
    fn go_on(&self, batch: Batch) {
        self.locked().turns.push_rest(batch);
        self.arrived.notify_one();
    }

    /// Notes a group that was committed.
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
