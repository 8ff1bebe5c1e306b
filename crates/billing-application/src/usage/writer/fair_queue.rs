//! The queue of requests to the writer, with fair turns for all organizations.
//!
//! Organizations take turns. In each turn, a group takes up to [`SHARE`] events of an organization's requests in order of
//! arrival. A batch can supply part of its events; the rest goes to the end of its organization's queue. The turns repeat
//! until the queue is empty or the group is full. Batches then fill the remaining room, until a group has as many of their events
//! as single requests.
//!
//! A group has at most one transaction of its own, whose cost is unknown in advance. With one writer, its organization's next one
//! waits for as long as it took ([`Pacing`]). Other requests of the organization overtake the ones that wait for this.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use billing_domain::refs::OrganizationId;

use super::WriterLimits;
use super::figures::Load;
use super::pacing::Pacing;
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
/// The number of single requests and of transactions that an organization may always queue, however many others wait.
const ALWAYS_LET_IN: usize = 32;
/// The number of batches that an organization may always queue, however many others wait.
const BATCHES_ALWAYS_LET_IN: usize = 4;
/// An organization may always use this part of the memory, however much the others use.
const MEMORY_PART_ALWAYS_LET_IN: usize = 16;

/// The number of events that are few: a transaction of their own costs more than the wait for another one.
const FEW_EVENTS: usize = 8;

/// The queue of all waiting requests.
#[derive(Default)]
pub(super) struct FairQueue {
    lines: HashMap<OrganizationId, OrganizationQueue>,
    /// Organizations with waiting requests, in the order of their turns.
    order: VecDeque<OrganizationId>,
    load: Load,
    /// The arrival of the latest single request.
    single_came: Option<Instant>,
    pacing: Pacing,
}

/// The waiting requests of one organization.
#[derive(Default)]
struct OrganizationQueue {
    waiting: VecDeque<QueueItem>,
    load: Load,
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
    pub(super) whole: Option<(OrganizationId, QueuedTransaction)>,
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

    const fn is_transaction(&self) -> bool {
        matches!(self, Self::New(QueuedRequest { work: Work::Whole(_), .. }))
    }

    fn organization(&self) -> OrganizationId {
        match self {
            Self::New(waiting) => waiting.requester.organization(),
            Self::Rest(batch) => batch.requester.organization(),
        }
    }

    fn load(&self) -> Load {
        match self {
            Self::New(waiting) => waiting.load(),
            Self::Rest(batch) => Load { batches: 1, bytes: batch.bytes, ..Load::default() },
        }
    }
}

impl QueuedRequest {
    /// Returns the load of the request.
    pub(super) fn load(&self) -> Load {
        let load = Load { bytes: self.bytes(), ..Load::default() };
        match &self.work {
            Work::Event(_) => Load { events: 1, ..load },
            Work::Change(_) => Load { changes: 1, ..load },
            Work::Whole(_) => Load { transactions: 1, ..load },
            Work::Batch(_) => Load { batches: 1, ..load },
        }
    }
}

impl Load {
    /// Returns the load of single requests, in events.
    const fn singles(self) -> usize {
        self.events + self.changes * CHANGE_COUNTS
    }

    /// Returns whether only single events wait, and few of them.
    pub(super) const fn is_of_few_events(self) -> bool {
        self.changes + self.batches + self.transactions == 0 && 0 < self.events && self.events <= FEW_EVENTS
    }

    /// Returns whether nothing waits.
    fn is_empty(self) -> bool {
        self.singles() + self.batches + self.transactions == 0
    }

    /// Adds another load.
    pub(super) fn add(&mut self, other: Self) {
        self.events += other.events;
        self.changes += other.changes;
        self.batches += other.batches;
        self.transactions += other.transactions;
        self.bytes += other.bytes;
    }

    fn remove(&mut self, other: Self) {
        self.events -= other.events;
        self.changes -= other.changes;
        self.batches -= other.batches;
        self.transactions -= other.transactions;
        self.bytes -= other.bytes;
    }
}

impl FairQueue {
    /// Creates the queue of a database with one writer, which a long transaction occupies alone.
    pub(super) fn of_one_writer() -> Self {
        Self { pacing: Pacing::enabled(), ..Self::default() }
    }

    /// Ends all pauses for good.
    pub(super) fn end_pauses(&mut self) {
        self.pacing.disable();
    }

    pub(super) const fn load(&self) -> Load {
        self.load
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns whether the queue accepts a request, beside the load of all lanes. An empty queue accepts any request.
    pub(super) fn has_room_for(&self, limits: &WriterLimits, waiting: &QueuedRequest, in_lanes: Load) -> bool {
        let (mut all, bytes) = (self.load, waiting.bytes());
        all.add(in_lanes);
        let own = self.lines.get(&waiting.requester.organization()).map(|line| line.load).unwrap_or_default();
        let has_bytes = all.bytes.saturating_add(bytes) <= limits.bytes
            || own.bytes.saturating_add(bytes) <= limits.bytes / MEMORY_PART_ALWAYS_LET_IN;
        let has_place = match &waiting.work {
            Work::Event(_) | Work::Change(_) => {
                all.singles() < limits.events || own.events + own.changes < ALWAYS_LET_IN.min(limits.events)
            }
            Work::Batch(batch) => {
                batch.goes_on || all.batches < limits.batches || own.batches < BATCHES_ALWAYS_LET_IN.min(limits.batches)
            }
            Work::Whole(_) => all.transactions < limits.transactions || own.transactions < ALWAYS_LET_IN.min(limits.transactions),
        };
        (self.is_empty() && in_lanes.is_empty()) || (has_bytes && has_place)
    }

    /// Adds a request.
    pub(super) fn push(&mut self, waiting: QueuedRequest, now: Instant) {
        let waiting = QueueItem::New(waiting);
        if waiting.is_single() {
            self.single_came = Some(now);
        }
        self.pacing.note(waiting.organization(), now);
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
        line.load.add(waiting.load());
        if line.waiting.is_empty() {
            self.order.push_back(organization);
        }
        line.waiting.push_back(waiting);
    }

    /// Records that a transaction of an organization occupied a writer thread for a time.
    pub(super) fn note_transaction(&mut self, organization: OrganizationId, took: Duration, now: Instant) {
        let waiting = self.lines.iter().filter(|(_, line)| line.load.transactions > 0).map(|(other, _)| *other);
        self.pacing.pause(organization, took, waiting, now);
    }

    /// Returns when the first pause of a waiting organization ends.
    pub(super) fn first_pause_end(&self, now: Instant) -> Option<Instant> {
        self.order.iter().filter_map(|organization| self.pacing.paused_until(*organization, now)).min()
    }

    /// Returns the next group to write. It is empty if the queue is, or if all that waits are transactions of organizations in
    /// their pauses.
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
            let is_paused = self.pacing.paused_until(organization, now).is_some();
            let mut held = Vec::new();
            while left > 0
                && let Some(waiting) = line.waiting.pop_front()
            {
                let is_expired = waiting.until() <= now;
                if !is_expired && waiting.is_transaction() && (is_paused || group.whole.is_some()) {
                    held.push(waiting);
                    continue;
                }
                line.load.remove(waiting.load());
                self.load.remove(waiting.load());
                if is_expired {
                    group.expired.push(waiting);
                    continue;
                }
                self.pacing.note(organization, now);
                left = left.saturating_sub(group.add(waiting, left));
            }
            room += left;
            for waiting in held.into_iter().rev() {
                line.waiting.push_front(waiting);
            }
            if line.waiting.is_empty() {
                self.lines.remove(&organization);
            } else if left > 0 {
                // Only transactions are left, which this group does not take.
                set_aside.push(organization);
            } else {
                self.order.push_back(organization);
            }
        }
        self.order.extend(set_aside);
        if !group.is_of_batches {
            let single = group.events.len() - group.batch_events() + group.changes.len() * CHANGE_COUNTS;
            // Else batches would fill most of each group, and single requests would wait for them most of the time.
            let most = single.max(SHARE).saturating_sub(group.batch_events());
            group.fill_with_batches(room.min(most));
        }
        group
    }
}

impl Group {
    /// Returns whether there is nothing to write and nothing expired.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.changes.is_empty()
            && self.whole.is_none()
            && self.batches.is_empty()
            && self.expired.is_empty()
    }

    /// Adds a request, with at most `left` events of a batch. Returns the number of events as which it counts.
    fn add(&mut self, waiting: QueueItem, left: usize) -> usize {
        let batch = match waiting {
            QueueItem::Rest(batch) => batch,
            QueueItem::New(waiting) => {
                let bytes = waiting.bytes();
                let QueuedRequest { requester, until, work } = waiting;
                match work {
                    Work::Event(event) => {
                        self.add_event(requester, *event);
                        return 1;
                    }
                    Work::Change(change) => {
                        self.changes.push(ChangeRow { request: self.changes.len(), requester, change });
                        return CHANGE_COUNTS;
                    }
                    Work::Whole(whole) => {
                        let events = whole.events;
                        self.whole = Some((requester.organization(), whole));
                        return events.max(1);
                    }
                    Work::Batch(batch) => Batch::new(requester, until, bytes, batch),
                }
            }
        };
        self.batches.push(batch);
        self.add_part(self.batches.len() - 1, left)
    }

    fn add_event(&mut self, requester: Requester, event: QueuedEvent) {
        let QueuedEvent { event, answer, keyed, reply } = event;
        let (request, requester, to) = (self.events.len(), Arc::new(requester), ReplyTarget::One(reply));
        self.events.push(EventRow { request, requester, event, answer, keyed, to });
    }

    /// Adds the next events of a batch and returns their number.
    fn add_part(&mut self, place: usize, many: usize) -> usize {
        // Single events use their index as request number. Batches count down from the maximum, so the numbers never collide.
        let rows = self.batches[place].take(many, place, usize::MAX - place);
        let taken = rows.len();
        self.events.extend(rows);
        taken
    }

    /// Returns the number of events of batches.
    fn batch_events(&self) -> usize {
        self.events.iter().filter(|row| matches!(row.to, ReplyTarget::Batch(..))).count()
    }

    fn fill_with_batches(&mut self, mut room: usize) {
        while room > 0 && self.batches.iter().any(|batch| batch.left() > 0) {
            for place in 0..self.batches.len() {
                room -= self.add_part(place, SHARE.min(room));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use billing_domain::access::Principal;
    use billing_domain::calendar::Timestamp;
    use billing_domain::event_input::{NamedCustomer, NamedUsageProduct, NewUsageEvent, OnConflict};
    use billing_domain::quantity::Quantity;
    use billing_domain::refs::{CustomerRef, EventRef, UsageProductRef};
    use uuid::Uuid;

    use super::*;
    use crate::usage::change::EventChange;
    use crate::usage::record::NO_ANSWER;
    use crate::usage::writer::queued::{QueuedBatch, QueuedChange};

    /// The simulated duration of a change, of a long transaction, and of a client between a response and its next request.
    const CHANGE: Duration = Duration::from_millis(2);
    const LONG: Duration = Duration::from_millis(100);
    const CLIENT: Duration = Duration::from_millis(1);
    /// Longer than any test.
    const PATIENCE: Duration = Duration::from_secs(3_600);

    fn organization(n: u128) -> OrganizationId {
        OrganizationId::from_uuid(Uuid::from_u128(n))
    }

    fn request(n: u128, until: Instant, work: Work) -> QueuedRequest {
        QueuedRequest { requester: Requester::Known(Principal::of_command_line(organization(n))), until, work }
    }

    fn transaction(bytes: usize) -> Work {
        Work::Whole(QueuedTransaction { events: 1, bytes, work: Box::new(|_| {}) })
    }

    fn change() -> Work {
        let event_ref = EventRef::from_uuid(Uuid::from_u128(1));
        Work::Change(QueuedChange { event_ref, change: EventChange::Delete, keyed: None, reply: Box::new(|_, _| {}) })
    }

    #[test]
    fn few_events_alone_are_left_to_a_thread_that_writes() {
        let events = |events| Load { events, ..Load::default() };
        for (load, is_left) in [
            (events(0), false),
            (events(1), true),
            (events(FEW_EVENTS), true),
            (events(FEW_EVENTS + 1), false),
            (Load { changes: 1, ..events(1) }, false),
            (Load { batches: 1, ..events(1) }, false),
            (Load { transactions: 1, ..events(1) }, false),
        ] {
            assert_eq!(load.is_of_few_events(), is_left, "{load:?}");
        }
    }

    /// Simulates an organization with long transactions on some connections, and if `has_neighbor` is set, another one that
    /// sends a change whenever the last one is written. Returns the numbers of changes and transactions in ten seconds.
    fn simulate(mut queue: FairQueue, connections: usize, has_neighbor: bool) -> (u32, u32) {
        let start = Instant::now();
        let (until, end) = (start + PATIENCE, start + Duration::from_secs(10));
        let (mut now, mut changes, mut transactions) = (start, 0, 0);
        let mut next_change = has_neighbor.then_some(start);
        for _ in 0..connections {
            queue.push(request(1, until, transaction(1)), now);
        }
        while now < end {
            if let Some(arrived) = next_change.take_if(|arrives| *arrives <= now) {
                queue.push(request(2, until, change()), arrived);
            }
            let group = queue.next_group(now);
            if group.is_empty() {
                now = [queue.first_pause_end(now), next_change].into_iter().flatten().min().expect("a pause or a change");
                continue;
            }
            if !group.changes.is_empty() {
                now += CHANGE;
                changes += 1;
                next_change = Some(now + CLIENT);
            }
            if let Some((organization, _)) = group.whole {
                now += LONG;
                transactions += 1;
                queue.note_transaction(organization, LONG, now);
                queue.push(request(1, until, transaction(1)), now);
            }
        }
        (changes, transactions)
    }

    #[test]
    fn a_neighbor_of_long_transactions_keeps_nearly_half_of_its_rate() {
        let (alone, _) = simulate(FairQueue::of_one_writer(), 0, true);
        for connections in [1, 4, 48] {
            let (changes, transactions) = simulate(FairQueue::of_one_writer(), connections, true);
            eprintln!("{connections} connections: {changes} of {alone} changes, {transactions} transactions");
            assert!(changes * 100 >= alone * 45, "{connections} connections: {changes} of {alone} changes");
            assert!(transactions >= 45, "{connections} connections: {transactions} transactions");
        }
    }

    #[test]
    fn long_transactions_alone_use_all_of_the_time() {
        assert_eq!(simulate(FairQueue::of_one_writer(), 4, false), (0, 100));
    }

    fn event() -> NewUsageEvent {
        NewUsageEvent {
            customer: NamedCustomer::Ref(CustomerRef::parse("C").expect("valid")),
            usage_product: NamedUsageProduct::Ref(UsageProductRef::parse("U").expect("valid")),
            occurred_at: Timestamp::parse("2027-01-01T00:00:00Z").expect("valid"),
            is_time_of_receipt: false,
            quantity: Quantity::parse("1").expect("valid"),
            report_data: None,
            validations: None,
            formatted: None,
            key: None,
            on_conflict: OnConflict::Reject,
            occurred: false,
            hold_ref: None,
            import: None,
        }
    }

    #[test]
    fn a_batch_takes_no_more_of_a_group_than_single_requests_do() {
        for (singles, of_batch) in [(1, SHARE), (SHARE, SHARE), (100, 100)] {
            let (mut queue, now) = (FairQueue::of_one_writer(), Instant::now());
            let until = now + PATIENCE;
            let answer = NO_ANSWER;
            for _ in 0..singles {
                let reply = Box::new(|_, _| {});
                queue.push(
                    request(1, until, Work::Event(Box::new(QueuedEvent { event: event(), answer, keyed: None, reply }))),
                    now,
                );
            }
            let batch = QueuedBatch { events: vec![event(); 10_000], answer, goes_on: false, reply: Box::new(|_, _| {}) };
            queue.push(request(2, until, Work::Batch(batch)), now);
            let group = queue.next_group(now);
            assert_eq!((group.events.len() - group.batch_events(), group.batch_events()), (singles, of_batch));
        }
    }

    /// Returns a queue in which the first organization pauses, and the time.
    fn paused() -> (FairQueue, Instant) {
        let (mut queue, now) = (FairQueue::of_one_writer(), Instant::now());
        queue.push(request(2, now + PATIENCE, change()), now);
        assert_eq!(queue.next_group(now).changes.len(), 1);
        queue.note_transaction(organization(1), LONG, now);
        (queue, now)
    }

    #[test]
    fn other_requests_overtake_the_transactions_of_a_pausing_organization() {
        let (mut queue, now) = paused();
        for work in [transaction(1), transaction(1), change()] {
            queue.push(request(1, now + PATIENCE, work), now);
        }
        let group = queue.next_group(now);
        assert_eq!((group.changes.len(), group.whole.is_some()), (1, false));
        assert!(queue.next_group(now).is_empty());
        assert_eq!(queue.first_pause_end(now), Some(now + LONG));
        for left in [1, 0] {
            assert!(queue.next_group(now + LONG).whole.is_some());
            assert_eq!((queue.load().transactions, queue.is_empty()), (left, left == 0));
        }
    }

    #[test]
    fn the_transactions_of_others_do_not_wait_for_a_pause() {
        let (mut queue, now) = paused();
        queue.push(request(1, now + PATIENCE, transaction(1)), now);
        queue.push(request(2, now + PATIENCE, transaction(1)), now);
        let taken = queue.next_group(now).whole.map(|(organization, _)| organization);
        assert!(taken == Some(organization(2)));
        assert!(queue.next_group(now).is_empty());
        queue.end_pauses();
        assert!(queue.next_group(now).whole.is_some());
    }

    #[test]
    fn a_transaction_can_expire_in_a_pause() {
        let (mut queue, now) = paused();
        queue.push(request(1, now + LONG / 2, transaction(1)), now);
        assert!(queue.next_group(now).is_empty());
        assert_eq!(queue.next_group(now + LONG / 2).expired.len(), 1);
        assert!(queue.is_empty());
        assert!(queue.load() == Load::default());
    }

    #[test]
    fn nobody_can_fill_the_queue_of_transactions_for_others() {
        let limits = WriterLimits { transactions: 2, bytes: 1_600, ..WriterLimits::default() };
        let (mut queue, now) = (FairQueue::of_one_writer(), Instant::now());
        let new = |n, bytes| request(n, now + PATIENCE, transaction(bytes));
        queue.push(new(1, 1), now);
        assert!(queue.has_room_for(&limits, &new(1, 1), Load::default()));
        queue.push(new(1, 1_599), now);
        assert!(!queue.has_room_for(&limits, &new(1, 0), Load::default()), "too many of its own");
        assert!(queue.has_room_for(&limits, &new(2, 100), Load::default()));
        assert!(!queue.has_room_for(&limits, &new(2, 101), Load::default()), "more than its part of the memory");
    }
}
