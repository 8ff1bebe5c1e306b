//! The queue of requests to the writer, with fair turns for all organizations.
//!
//! Organizations take turns. In each turn, a group takes up to [`SHARE`] events of an organization's requests in order of
//! arrival. A batch can supply part of its events; the rest goes to the end of its organization's queue. The turns repeat
//! until the queue is empty or the group is full. Batches fill the remaining room.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use billing_domain::refs::OrganizationId;

use super::WriterLimits;
use super::figures::Load;
use super::queued::{Batch, ChangeRow, EventRow, QueuedEvent, QueuedRequest, QueuedTransaction, ReplyTarget, Requester, Work};
use crate::usage::batch::EVENTS_PER_TRANSACTION;

/// The maximum number of events in a group. Large enough for a low cost per event, small enough for short waits.
const MAX_GROUP: usize = 256;
/// The number of events that a group takes of one organization per turn.
const SHARE: usize = 32;
/// The number of events as which a change counts. A change locks a contract exclusively and loads its whole book.
const CHANGE_COUNTS: usize = 4;
/// The time without single requests after which groups may be as large as a batch's transaction. Clients that send the next
/// request right after a response are not queued when a group begins. They would wait for the whole group.
const QUIET: Duration = Duration::from_secs(1);
/// The number of single requests that an organization may always queue, however many others wait.
const ALWAYS_LET_IN: usize = 32;

/// The queue of all waiting requests.
#[derive(Default)]
pub(super) struct FairQueue {
    lines: HashMap<OrganizationId, OrganizationQueue>,
    /// Organizations with waiting requests, in the order of their turns.
    order: VecDeque<OrganizationId>,
    load: Load,
    /// The arrival of the latest single request.
    single_came: Option<Instant>,
}

/// The waiting requests of one organization.
#[derive(Default)]
struct OrganizationQueue {
    waiting: VecDeque<QueueItem>,
    singles: usize,
}

/// A request or the rest of one.
pub(super) enum QueueItem {
    New(QueuedRequest),
    /// The rest of a batch.
    Rest(Batch),
}

/// Requests that are written together: first the events in one transaction, then the changes, then the transaction of its
/// own.
#[derive(Default)]
pub(super) struct Group {
    pub(super) events: Vec<EventRow>,
    pub(super) changes: Vec<ChangeRow>,
    pub(super) whole: Option<QueuedTransaction>,
    /// The batches with events in the group.
    pub(super) batches: Vec<Batch>,
    /// Whether only batches wait and no single request arrived recently. Large transactions are allowed then.
    pub(super) is_of_batches: bool,
    /// Requests that expired.
    pub(super) expired: Vec<QueueItem>,
}

impl QueueItem {
    fn until(&self) -> Instant {
        match self {
            Self::New(waiting) => waiting.until,
            Self::Rest(batch) => batch.until,
        }
    }

    const fn is_single(&self) -> bool {
        matches!(self, Self::New(QueuedRequest { work: Work::Event(_) | Work::Change(_), .. }))
    }

    fn organization(&self) -> OrganizationId {
        match self {
            Self::New(waiting) => waiting.reporter.organization(),
            Self::Rest(batch) => batch.reporter.organization(),
        }
    }

    fn load(&self) -> Load {
        let bytes = match self {
            Self::New(waiting) => waiting.bytes(),
            Self::Rest(batch) => batch.bytes,
        };
        let load = Load { bytes, ..Load::default() };
        match self {
            Self::New(QueuedRequest { work: Work::Event(_), .. }) => Load { events: 1, ..load },
            Self::New(QueuedRequest { work: Work::Change(_), .. }) => Load { changes: 1, ..load },
            Self::New(_) | Self::Rest(_) => Load { batches: 1, ..load },
        }
    }
}

impl Load {
    /// Returns the load of single requests, in events.
    const fn singles(self) -> usize {
        self.events + self.changes * CHANGE_COUNTS
    }

    fn add(&mut self, other: Self) {
        self.events += other.events;
        self.changes += other.changes;
        self.batches += other.batches;
        self.bytes += other.bytes;
    }

    fn remove(&mut self, other: Self) {
        self.events -= other.events;
        self.changes -= other.changes;
        self.batches -= other.batches;
        self.bytes -= other.bytes;
    }
}

impl FairQueue {
    pub(super) const fn load(&self) -> Load {
        self.load
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns whether the queue accepts a request. An empty queue accepts any request.
    pub(super) fn has_room_for(&self, limits: &WriterLimits, waiting: &QueuedRequest) -> bool {
        let has_bytes = self.load.bytes.saturating_add(waiting.bytes()) <= limits.bytes;
        let has_place = match &waiting.work {
            Work::Event(_) | Work::Change(_) => {
                let own = self.lines.get(&waiting.reporter.organization()).map_or(0, |line| line.singles);
                self.load.singles() < limits.events || own < ALWAYS_LET_IN.min(limits.events)
            }
            Work::Batch(batch) => batch.goes_on || self.load.batches < limits.batches,
            Work::Whole(_) => self.load.batches < limits.batches,
        };
        self.is_empty() || (has_bytes && has_place)
    }

    /// Adds a request.
    pub(super) fn push(&mut self, waiting: QueuedRequest, now: Instant) {
        let waiting = QueueItem::New(waiting);
        if waiting.is_single() {
            self.single_came = Some(now);
        }
        self.push_in_line(waiting);
    }

    /// Adds the rest of a batch at the end of its organization's queue.
    pub(super) fn push_rest(&mut self, batch: Batch) {
        self.push_in_line(QueueItem::Rest(batch));
    }

    fn push_in_line(&mut self, waiting: QueueItem) {
        let organization = waiting.organization();
        self.load.add(waiting.load());
        let line = self.lines.entry(organization).or_default();
        line.singles += usize::from(waiting.is_single());
        if line.waiting.is_empty() {
            self.order.push_back(organization);
        }
        line.waiting.push_back(waiting);
    }

    /// Returns the next group to write.
    pub(super) fn next_group(&mut self, now: Instant) -> Group {
        let is_quiet = self.single_came.is_none_or(|came| now.saturating_duration_since(came) >= QUIET);
        let mut group = Group { is_of_batches: is_quiet && self.load.singles() == 0, ..Group::default() };
        // If only batches wait, a group is as large as the transaction of a single batch.
        let share = if group.is_of_batches { EVENTS_PER_TRANSACTION } else { SHARE };
        let mut room = if group.is_of_batches { EVENTS_PER_TRANSACTION } else { MAX_GROUP };
        let mut set_aside = Vec::new();
        while room > 0
            && let Some(organization) = self.order.pop_front()
        {
            let Some(line) = self.lines.get_mut(&organization) else { continue };
            let mut left = share.min(room);
            room -= left;
            let mut is_set_aside = false;
            while left > 0
                && let Some(waiting) = line.waiting.pop_front()
            {
                if group.whole.is_some() && matches!(waiting, QueueItem::New(QueuedRequest { work: Work::Whole(_), .. })) {
                    line.waiting.push_front(waiting);
                    is_set_aside = true;
                    break;
                }
                line.singles -= usize::from(waiting.is_single());
                self.load.remove(waiting.load());
                if waiting.until() <= now {
                    group.expired.push(waiting);
                    continue;
                }
                left = left.saturating_sub(group.add(waiting, left));
            }
            room += left;
            if line.waiting.is_empty() {
                self.lines.remove(&organization);
            } else if is_set_aside {
                set_aside.push(organization);
            } else {
                self.order.push_back(organization);
            }
        }
        self.order.extend(set_aside);
        if !group.is_of_batches {
            group.fill_with_batches(room);
        }
        group
    }
}

impl Group {
    /// Adds a request, with at most `left` events of a batch. Returns the number of events as which it counts.
    fn add(&mut self, waiting: QueueItem, left: usize) -> usize {
        let batch = match waiting {
            QueueItem::Rest(batch) => batch,
            QueueItem::New(waiting) => {
                let bytes = waiting.bytes();
                let QueuedRequest { reporter, until, work } = waiting;
                match work {
                    Work::Event(event) => {
                        self.add_event(reporter, *event);
                        return 1;
                    }
                    Work::Change(change) => {
                        self.changes.push(ChangeRow { request: self.changes.len(), reporter, change });
                        return CHANGE_COUNTS;
                    }
                    Work::Whole(whole) => {
                        let events = whole.events;
                        self.whole = Some(whole);
                        return events.max(1);
                    }
                    Work::Batch(batch) => Batch::new(reporter, until, bytes, batch),
                }
            }
        };
        self.batches.push(batch);
        self.add_part(self.batches.len() - 1, left)
    }

    fn add_event(&mut self, reporter: Requester, event: QueuedEvent) {
        let QueuedEvent { event, answer, keyed, reply } = event;
        let (request, reporter, to) = (self.events.len(), Arc::new(reporter), ReplyTarget::One(reply));
        self.events.push(EventRow { request, reporter, event, answer, keyed, to });
    }

    /// Adds the next events of a batch and returns their number.
    fn add_part(&mut self, place: usize, many: usize) -> usize {
        // Single events use their index as request number. Batches count down from the maximum, so the numbers never collide.
        let rows = self.batches[place].take(many, place, usize::MAX - place);
        let taken = rows.len();
        self.events.extend(rows);
        taken
    }

    fn fill_with_batches(&mut self, mut room: usize) {
        while room > 0 && self.batches.iter().any(|batch| batch.left() > 0) {
            for place in 0..self.batches.len() {
                room -= self.add_part(place, SHARE.min(room));
            }
        }
    }
}
