//! Who waits for the writer, and whose turn it is.
//!
//! Organizations have their turns one after the other. In a turn a group takes [`SHARE`] of what an organization has waiting,
//! in the order in which that came, of a batch that many of its events; what is left of a batch goes behind all else of its
//! organization. A group goes round until nobody waits or it is full. What room is left then is the batches'.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use billing_domain::refs::OrganizationId;

use super::WriterLimits;
use super::figures::Load;
use super::queued::{Batch, ChangeRow, EventRow, QueuedEvent, QueuedRequest, QueuedTransaction, ReplyTarget, Requester, Work};
use crate::usage::batch::EVENTS_PER_TRANSACTION;

/// The most events of a group: enough that each costs little, few enough that the next ones don't wait long.
const MAX_GROUP: usize = 256;
/// What a group takes of an organization before others have their turn, in events.
const SHARE: usize = 32;
/// As how many events a change counts: it takes a contract alone, and reads its whole book.
const CHANGE_COUNTS: usize = 4;
/// How long no single request must have come for groups to be as large as a transaction of a batch may be. Whoever asks again
/// as soon as they are answered isn't waiting when the next group begins, and would wait for all of it.
const QUIET: Duration = Duration::from_secs(1);
/// What an organization may have waiting, single events or changes, however many of others wait.
const ALWAYS_LET_IN: usize = 32;

/// What waits.
#[derive(Default)]
pub(super) struct FairQueue {
    lines: HashMap<OrganizationId, OrganizationQueue>,
    /// Organizations that have something waiting; whose turn is next comes first.
    order: VecDeque<OrganizationId>,
    load: Load,
    /// When a single request came last.
    single_came: Option<Instant>,
}

/// What an organization has waiting.
#[derive(Default)]
struct OrganizationQueue {
    waiting: VecDeque<QueueItem>,
    singles: usize,
}

/// A request, or what is left of one.
pub(super) enum QueueItem {
    New(QueuedRequest),
    /// What is left of a batch.
    Rest(Batch),
}

/// What is written together: the events in one transaction, then the changes, then what is one alone.
#[derive(Default)]
pub(super) struct Group {
    pub(super) events: Vec<EventRow>,
    pub(super) changes: Vec<ChangeRow>,
    pub(super) whole: Option<QueuedTransaction>,
    /// Of which events are in the group.
    pub(super) batches: Vec<Batch>,
    /// Whether nobody waits or came lately but batches: what is in it may be written in large steps.
    pub(super) is_of_batches: bool,
    /// What nobody waits for any more.
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
    /// How much single requests are, in events.
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

    /// Whether something may wait, too. Where nothing does, anything may.
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

    /// Lets something wait.
    pub(super) fn push(&mut self, waiting: QueuedRequest, now: Instant) {
        let waiting = QueueItem::New(waiting);
        if waiting.is_single() {
            self.single_came = Some(now);
        }
        self.push_in_line(waiting);
    }

    /// Lets what is left of a batch wait, behind all else of its organization.
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

    /// Who is written next.
    pub(super) fn next_group(&mut self, now: Instant) -> Group {
        let is_quiet = self.single_came.is_none_or(|came| now.saturating_duration_since(came) >= QUIET);
        let mut group = Group { is_of_batches: is_quiet && self.load.singles() == 0, ..Group::default() };
        // Where only batches come, a group is as much as a transaction takes of those of one organization.
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
    /// Takes something up, of a batch so many events at most; answers as how many events it counts.
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

    /// Takes the next events of a batch; answers how many there were.
    fn add_part(&mut self, place: usize, many: usize) -> usize {
        // The numbers of single events' requests are their places; those of batches come from the other end.
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
