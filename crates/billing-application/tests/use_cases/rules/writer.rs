//! The usage writer: requests that wait together share a transaction, and a rejection does not affect its neighbors.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use billing_application::Services;
use billing_application::UseCase;
use billing_application::catalog::edit_usage_product;
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::idempotency::IdempotentRequest;
use billing_application::usage::{
    BatchOutcome, ChangeOutcome, EVENTS_PER_TRANSACTION, EventAnswer, EventChange, EventUpdate, Execution, IdempotentWork,
    IngestOutcome, NO_ANSWER, NewUsageEvent, QueuedBatch, QueuedChange, QueuedEvent, QueuedRequest, QueuedTransaction, Requester,
    UsageWriter, Work, WriterBusy, WriterLimits, delete_event, update_event,
};
use billing_domain::access::{ApiKey, Principal, Scope, Scopes, TokenClaims};
use billing_domain::catalog::{Aggregation, UsageProductProfile};
use billing_domain::contract::terms::PaymentTime;
use billing_domain::idempotency::{BodyHash, IdempotencyKey, ScopedIdempotencyKey, StoredResponse};
use billing_domain::party::NetTerms;
use billing_domain::patch::Changes;
use billing_domain::ports::{Access, Insertion, RollBack, Store, StoreError, StoreResult, Tx, transact};
use billing_domain::refs::EventRef;
use billing_testkit::FreshIds;
use billing_testkit::fixtures::{self, graduated, requested};
use billing_testkit::random::Random;
use billing_teststore::TestStore;
use uuid::Uuid;

use crate::books::{Books, NUMBERS, THREE_TIERS, calls};
use crate::support::run;

const DAY: &str = "2026-01-10T00:00:00Z";
/// A timeout longer than any operation of these tests.
const SOON: Duration = Duration::from_secs(60);

/// A store that can block write transactions at a door and make selected ones fail.
struct Doored {
    store: Arc<TestStore>,
    door: Mutex<Door>,
    changed: Condvar,
}

#[derive(Default)]
struct Door {
    is_closed: bool,
    waiting: usize,
    written: usize,
    to_fail: std::ops::Range<usize>,
    begun: usize,
}

impl Doored {
    fn close(&self) {
        self.door.lock().expect("a door").is_closed = true;
    }

    fn open(&self) {
        self.door.lock().expect("a door").is_closed = false;
        self.changed.notify_all();
    }

    /// Waits until a transaction is blocked at the door.
    fn wait_for_one(&self) {
        let door = self.door.lock().expect("a door");
        let (door, late) = self.changed.wait_timeout_while(door, SOON, |door| door.waiting == 0).expect("a door");
        assert!(!late.timed_out(), "no transaction arrived");
        drop(door);
    }

    /// Returns the number of committed transactions.
    fn written(&self) -> usize {
        self.door.lock().expect("a door").written
    }

    /// Makes this number of transactions fail instead of commit, starting after the blocked transaction.
    fn fail(&self, times: usize) {
        let mut door = self.door.lock().expect("a door");
        let next = door.begun + 1;
        door.to_fail = next..next + times;
    }

    /// Makes one transaction fail instead of commit: the blocked one, or the one at this distance after it.
    fn fail_after(&self, many: usize) {
        let mut door = self.door.lock().expect("a door");
        let failing = door.begun + many;
        door.to_fail = failing..failing + 1;
    }
}

impl Store for Doored {
    fn run(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()> {
        if access != Access::Write {
            return self.store.run(access, work);
        }
        let mut door = self.door.lock().expect("a door");
        door.waiting += 1;
        self.changed.notify_all();
        let mut door = self.changed.wait_while(door, |door| door.is_closed).expect("a door");
        door.waiting -= 1;
        let fails = door.to_fail.contains(&door.begun);
        door.begun += 1;
        drop(door);
        let mut is_kept = false;
        self.store.run(access, &mut |tx| {
            let decision = work(tx);
            is_kept = decision.is_ok() && !fails;
            if is_kept { Ok(()) } else { Err(RollBack) }
        })?;
        if fails {
            return Err(StoreError::Corrupt("as the test wants it".to_owned()));
        }
        self.door.lock().expect("a door").written += usize::from(is_kept);
        Ok(())
    }

    fn ready(&self) -> StoreResult<()> {
        self.store.ready()
    }
}

type WriterReply<T = IngestOutcome> = (Option<Principal>, UseCaseResult<Execution<T>>);

/// A customer with a contract for calls, a writer, and the door in front of the writer's store.
struct Office {
    books: Books,
    store: Arc<Doored>,
    writer: UsageWriter,
}

impl Office {
    fn new(net_terms: NetTerms, limits: WriterLimits) -> Self {
        let books = Books::at("2026-01-20T12:00:00Z");
        let api = books.pricing("api", vec![graduated("calls", THREE_TIERS)]);
        let mut product = requested(&api, "2026-01-01", "2026-02-28");
        (product.net_terms, product.payment_time) = (Some(net_terms), Some(PaymentTime::AfterUse));
        books.contract(vec![product]);
        let store = Arc::clone(&books.bench.store);
        let store = Arc::new(Doored { store, door: Mutex::default(), changed: Condvar::new() });
        let services = Services { store: Arc::clone(&store) as _, ..books.bench.services.clone() };
        Self { books, store, writer: UsageWriter::start(services, limits) }
    }

    /// Returns an office with a draft for January that has one event of one call.
    fn with_a_draft() -> Self {
        let office = Self::new(NetTerms::Days(14), WriterLimits::default());
        office.books.calls(DAY, "1");
        office
    }

    fn submit_as(
        &self,
        requester: Requester,
        event: NewUsageEvent,
        patience: Duration,
    ) -> Result<Receiver<WriterReply>, WriterBusy> {
        let (reply, reported) = channel();
        let reply = Box::new(move |principal, outcome| drop(reply.send((principal, outcome))));
        let answer = NUMBERS;
        let work = Work::Event(Box::new(QueuedEvent { event, answer, keyed: None, reply }));
        self.writer.submit(QueuedRequest { requester, until: Instant::now() + patience, work })?;
        Ok(reported)
    }

    fn submit(&self, event: NewUsageEvent) -> Receiver<WriterReply> {
        self.submit_as(Requester::Known(self.books.bench.principal.clone()), event, SOON).expect("room")
    }

    /// Submits requests while another event is being written, so that the requests wait together.
    fn together<T>(&self, submit: impl FnOnce() -> T) -> T {
        self.store.close();
        let before = self.submit(calls(DAY, "1"));
        self.store.wait_for_one();
        let submitted = submit();
        self.store.open();
        assert_eq!(word(&before), "UB-INV-1");
        submitted
    }

    /// Submits requests like [`Self::together`], while a rejected event is being processed.
    fn together_quietly<T>(&self, submit: impl FnOnce() -> T) -> T {
        self.store.close();
        let nowhere = self.submit(calls("2024-01-01T00:00:00Z", "1"));
        self.store.wait_for_one();
        let submitted = submit();
        self.store.open();
        assert!(word(&nowhere).contains("contract"));
        submitted
    }

    fn submit_work<T: Send + 'static>(
        &self,
        requester: Requester,
        work: impl FnOnce(Box<dyn FnOnce(Option<Principal>, UseCaseResult<T>) + Send>) -> Work,
    ) -> Receiver<(Option<Principal>, UseCaseResult<T>)> {
        let (reply, reported) = channel();
        let work = work(Box::new(move |principal, outcome| drop(reply.send((principal, outcome)))));
        self.writer.submit(QueuedRequest { requester, until: Instant::now() + SOON, work }).expect("room");
        reported
    }

    fn known(&self) -> Requester {
        Requester::Known(self.books.bench.principal.clone())
    }

    fn batch(&self, events: Vec<NewUsageEvent>) -> Receiver<(Option<Principal>, UseCaseResult<BatchOutcome>)> {
        let answer = NUMBERS;
        self.submit_work(self.known(), |reply| Work::Batch(QueuedBatch { events, answer, goes_on: false, reply }))
    }

    fn change(
        &self,
        event_ref: EventRef,
        change: EventChange,
        keyed: Option<IdempotentWork<ChangeOutcome>>,
    ) -> Receiver<WriterReply<ChangeOutcome>> {
        self.submit_work(self.known(), |reply| Work::Change(QueuedChange { event_ref, change, keyed, reply }))
    }

    /// Records events with these numbers of calls, one after the other.
    fn events(&self, quantities: &[&str]) -> Vec<EventRef> {
        quantities.iter().map(|quantity| self.books.calls(DAY, quantity)).collect()
    }

    fn key(&self, change: impl FnOnce(&mut ApiKey)) -> TokenClaims {
        let mut key = fixtures::api_key(&FreshIds, self.books.bench.principal.organization());
        change(&mut key);
        let made = transact::<_, StoreError>(&*self.store.store, Access::Write, |tx| tx.insert_api_key(&key));
        assert_eq!(made.expect("a key"), Insertion::Done);
        let (issued_at, expires_at) = (self.books.bench.now(), self.books.bench.now().plus_seconds(3600));
        TokenClaims {
            api_key_ref: key.api_key_ref,
            organization: key.organization,
            token_id: Uuid::now_v7(),
            issued_at,
            expires_at,
        }
    }
}

/// Formats a reply: the document number, with `=` before a replayed one, or the reason for a rejection.
fn word(reported: &Receiver<WriterReply>) -> String {
    match reported.recv_timeout(SOON).expect("an answer").1 {
        Ok(Execution::Executed(IngestOutcome::Recorded(view))) => view.document_numbers.to_string(),
        Ok(Execution::Executed(IngestOutcome::Replayed(answer))) => format!("={answer}"),
        Ok(Execution::Executed(IngestOutcome::Updated(view))) => format!("~{}", view.document_numbers),
        Ok(Execution::Replayed(answer)) => format!("again {}", String::from_utf8_lossy(&answer.0)),
        Err(error) => error.to_string(),
    }
}

fn words(reported: &[Receiver<WriterReply>]) -> Vec<String> {
    reported.iter().map(word).collect()
}

fn under(key: &str, event: NewUsageEvent) -> NewUsageEvent {
    let key = IdempotencyKey::parse(key).expect("a key");
    NewUsageEvent { key: Some(key), ..event }
}

#[test]
fn events_that_wait_together_are_one_transaction() {
    let office = Office::with_a_draft();
    let before = office.store.written();
    let reported = office.together(|| [(); 5].map(|()| office.submit(calls(DAY, "10"))));
    assert_eq!(words(&reported), ["UB-INV-1"; 5]);
    assert_eq!(office.store.written() - before, 2);
    let figures = office.writer.figures();
    let events = &figures.events;
    assert_eq!((events.sizes.count(), events.sizes.sum(), events.sizes.largest(), figures.waiting.events), (2, 6, 5, 0));
    assert_eq!((events.writing.count(), events.committing.count()), (2, 2));
    assert!(office.books.documents().contains("52"), "{}", office.books.documents());
}

#[test]
fn a_refused_event_is_refused_alone() {
    let office = Office::with_a_draft();
    let reported = office.together(|| {
        let late = calls("2027-01-10T00:00:00Z", "1");
        let nowhere = calls("2025-01-10T00:00:00Z", "1");
        [calls(DAY, "10"), late, nowhere, calls(DAY, "10")].map(|event| office.submit(event))
    });
    let stated = words(&reported);
    assert_eq!((stated[0].as_str(), stated[3].as_str()), ("UB-INV-1", "UB-INV-1"));
    assert!(stated[1].contains("timestamp") && stated[2].contains("contract"), "{stated:?}");
    assert!(office.books.documents().contains("22"), "{}", office.books.documents());
}

#[test]
fn a_token_is_looked_up_with_its_event() {
    let office = Office::with_a_draft();
    let [live, ended, deleted, idle] = [(); 4].map(|()| office.key(|_| {}));
    let reads = office.key(|key| key.scopes = Scopes::of(&[Scope::Read]));
    transact::<_, StoreError>(&*office.store.store, Access::Write, |tx| {
        tx.revoke_token(ended.token_id, ended.expires_at)?;
        tx.delete_api_key(deleted.organization, deleted.api_key_ref)
    })
    .expect("a deleted key");
    let reported = office.together(|| {
        [&live, &ended, &deleted, &live, &idle, &reads]
            .map(|claims| office.submit_as(Requester::Bearer(claims.clone()), calls(DAY, "10"), SOON).expect("room"))
    });
    let reported = reported.map(|reported| reported.recv_timeout(SOON).expect("an answer"));
    let taken = reported.each_ref().map(|(_, outcome)| outcome.is_ok());
    assert_eq!(taken, [true, false, false, true, true, false]);
    let known = reported.each_ref().map(|(principal, _)| principal.is_some());
    assert_eq!(known, [true, false, false, true, true, true]);
    assert!(matches!(reported[1].1, Err(UseCaseError::Unauthenticated)));
    assert!(matches!(reported[5].1, Err(UseCaseError::Forbidden(_))));
    let by = reported.each_ref().map(|(_, outcome)| {
        outcome.as_ref().ok().map(|taken| match taken {
            Execution::Executed(IngestOutcome::Recorded(view)) => view.event.revised_by,
            other => panic!("not recorded now: {other:?}"),
        })
    });
    assert_eq!(by[0], reported[0].0.as_ref().map(Principal::actor));
    assert_eq!(by[4], reported[4].0.as_ref().map(Principal::actor));
    assert_ne!(by[0], by[4]);
}

#[test]
fn what_opens_a_document_is_taken_with_all_of_its_contract_and_repeats_are_known() {
    let office = Office::with_a_draft();
    let before = office.store.written();
    let february = "2026-02-01T00:00:00Z";
    office.books.clock("2026-02-10T12:00:00Z");
    let reported = office.together(|| {
        let mine = |key| under(key, calls(DAY, "10"));
        let opens = |key| under(key, calls(february, "3"));
        [opens("f"), mine("j"), opens("f"), mine("j"), opens("g")].map(|event| office.submit(event))
    });
    assert_eq!(words(&reported), ["UB-INV-2", "UB-INV-1", "=UB-INV-2", "=UB-INV-1", "UB-INV-2"]);
    // First the single event, then all events of the contract together, because one of them opens a document.
    assert_eq!(office.store.written() - before, 2);
    // Event keys are stored forever, regardless of the way in which an event arrives.
    assert_eq!(word(&office.submit(under("f", calls(february, "3")))), "=UB-INV-2");
}

#[test]
fn events_due_upon_usage_have_a_document_each() {
    let office = Office::new(NetTerms::DueUponUsage, WriterLimits::default());
    office.store.close();
    let reported: Vec<_> = (0..3).map(|_| office.submit(calls(DAY, "10"))).collect();
    office.store.open();
    let mut stated = words(&reported);
    stated.sort();
    stated.dedup();
    assert_eq!(stated.len(), 3, "{stated:?}");
}

#[test]
fn too_many_are_turned_away_with_nothing_done() {
    let office = Office::new(NetTerms::Days(14), WriterLimits { events: 2, ..WriterLimits::default() });
    let by = || Requester::Known(office.books.bench.principal.clone());
    office.store.close();
    let first = office.submit(calls(DAY, "1"));
    office.store.wait_for_one();
    let second = [(); 2].map(|()| office.submit(calls(DAY, "1")));
    assert_eq!(office.submit_as(by(), calls(DAY, "1"), SOON).err(), Some(WriterBusy));
    assert_eq!((office.writer.figures().turned_away, office.writer.figures().waiting.events), (1, 2));
    office.store.open();
    assert_eq!([word(&first), word(&second[0]), word(&second[1])], ["UB-INV-1"; 3]);
    assert_eq!(word(&office.submit(calls(DAY, "1"))), "UB-INV-1");
}

#[test]
fn one_larger_than_all_that_may_wait_is_taken_when_nobody_else_waits() {
    let office = Office::new(NetTerms::Days(14), WriterLimits { bytes: 1, ..WriterLimits::default() });
    assert_eq!(word(&office.submit(calls(DAY, "1"))), "UB-INV-1");
}

#[test]
fn what_nobody_waits_for_any_more_is_not_taken() {
    let office = Office::with_a_draft();
    let reported = office.together(|| {
        let by = Requester::Known(office.books.bench.principal.clone());
        [office.submit_as(by, calls(DAY, "1000"), Duration::ZERO).expect("room"), office.submit(calls(DAY, "10"))]
    });
    assert_eq!(word(&reported[1]), "UB-INV-1");
    assert_eq!(reported[0].recv_timeout(SOON).err(), Some(RecvTimeoutError::Disconnected));
    assert!(office.books.documents().contains("12"), "{}", office.books.documents());
}

#[test]
fn a_group_that_shows_wrong_books_is_divided_until_the_others_are_taken() {
    let office = Office::with_a_draft();
    let reported = office.together(|| {
        let reported = [(); 4].map(|()| office.submit(calls(DAY, "10")));
        // The failing transactions: the whole group, its first half, and the first event of that half.
        office.store.fail(3);
        reported
    });
    let stated = words(&reported);
    let (refused, taken): (Vec<_>, Vec<_>) = stated.iter().partition(|stated| stated.contains("a row that can't be"));
    assert_eq!((refused.len(), taken.len()), (1, 3), "{stated:?}");
}

#[test]
fn a_panic_takes_nobody_else_with_it() {
    let office = Office::with_a_draft();
    let (reply, reported) = channel::<WriterReply>();
    let reply = Box::new(move |_, _| {
        let _reply = &reply;
        panic!("deliberate panic")
    });
    let requester = Requester::Known(office.books.bench.principal.clone());
    let answer = NO_ANSWER;
    let work = Work::Event(Box::new(QueuedEvent { event: calls(DAY, "1"), answer, keyed: None, reply }));
    office.writer.submit(QueuedRequest { requester, until: Instant::now() + SOON, work }).expect("room");
    assert_eq!(reported.recv_timeout(SOON).err(), Some(RecvTimeoutError::Disconnected));
    assert_eq!(word(&office.submit(calls(DAY, "10"))), "UB-INV-1");
}

#[test]
fn who_waits_when_it_stops_is_taken_and_nobody_after() {
    let office = Office::with_a_draft();
    let reported = office.together(|| [office.submit(calls(DAY, "10"))]);
    office.writer.stop();
    assert_eq!(word(&reported[0]), "UB-INV-1");
    let by = Requester::Known(office.books.bench.principal.clone());
    assert_eq!(office.submit_as(by, calls(DAY, "1"), SOON).err(), Some(WriterBusy));
}

fn to(quantity: &str) -> EventChange {
    EventChange::Update(Box::new(EventUpdate { quantity: Some(fixtures::quantity(quantity)), ..EventUpdate::default() }))
}

fn at(timestamp: &str) -> EventChange {
    EventChange::Update(Box::new(EventUpdate { occurred_at: Some(fixtures::at(timestamp)), ..EventUpdate::default() }))
}

/// Formats the outcome of a change: the document numbers, `-` for a deleted event, or the reason for a rejection.
fn changed(reported: &Receiver<WriterReply<ChangeOutcome>>) -> String {
    match reported.recv_timeout(SOON).expect("an answer").1 {
        Ok(Execution::Executed(ChangeOutcome::Updated(view))) => view.document_numbers.to_string(),
        Ok(Execution::Executed(ChangeOutcome::Deleted)) => "-".to_owned(),
        Ok(Execution::Replayed(answer)) => format!("again {}", String::from_utf8_lossy(&answer.0)),
        Err(error) => error.to_string(),
    }
}

fn taken(reported: &Receiver<(Option<Principal>, UseCaseResult<BatchOutcome>)>) -> BatchOutcome {
    reported.recv_timeout(SOON).expect("an answer").1.expect("an accepted batch")
}

#[test]
fn changes_that_wait_together_are_one_transaction() {
    let office = Office::with_a_draft();
    let events = office.events(&["10", "20", "30", "40"]);
    let before = office.store.written();
    let reported = office.together(|| {
        let changes = [to("11"), EventChange::Delete, to("33"), to("40")];
        events.iter().zip(changes).map(|(event, change)| office.change(*event, change, None)).collect::<Vec<_>>()
    });
    assert_eq!(reported.iter().map(changed).collect::<Vec<_>>(), ["UB-INV-1", "-", "UB-INV-1", "UB-INV-1"]);
    // The event before the changes, and all changes together.
    assert_eq!(office.store.written() - before, 2);
    let figures = office.writer.figures().changes;
    assert_eq!((figures.sizes.count(), figures.sizes.sum()), (1, 4));
    // 1 and 1 from before, then 11, 33 and 40.
    assert!(office.books.documents().contains("calls × 86"), "{}", office.books.documents());
}

#[test]
fn changes_of_one_event_follow_each_other_in_the_order_they_came() {
    let office = Office::with_a_draft();
    let events = office.events(&["10"]);
    let reported = office.together(|| {
        [to("1000"), to("2"), EventChange::Delete, to("5"), EventChange::Delete]
            .map(|change| office.change(events[0], change, None))
    });
    let stated = reported.each_ref().map(changed);
    assert_eq!(stated[..3], ["UB-INV-1", "UB-INV-1", "-"]);
    assert!(stated[3..].iter().all(|stated| stated.contains("the usage event does not exist")), "{stated:?}");
    assert!(office.books.documents().contains("calls × 2:"), "{}", office.books.documents());
}

#[test]
fn a_refused_change_is_refused_alone() {
    let office = Office::with_a_draft();
    let events = office.events(&["10", "20", "30"]);
    let reported = office.together(|| {
        vec![
            office.change(events[0], to("11"), None),
            office.change(EventRef::from_uuid(Uuid::now_v7()), to("1"), None),
            office.change(events[1], at("2025-01-10T00:00:00Z"), None),
            office.change(events[1], at("2027-01-10T00:00:00Z"), None),
            office.change(events[2], to("99999999999999"), None),
            office.change(events[2], to("31"), None),
        ]
    });
    let stated: Vec<String> = reported.iter().map(changed).collect();
    assert_eq!((stated[0].as_str(), stated[5].as_str()), ("UB-INV-1", "UB-INV-1"), "{stated:?}");
    assert!(
        stated[1].contains("does not exist") && stated[2].contains("contract") && stated[3].contains("timestamp"),
        "{stated:?}"
    );
    // 1 and 1 from before, then 11, 20 and 31.
    assert!(office.books.documents().contains("calls × 64"), "{}", office.books.documents());
}

#[test]
fn a_change_of_another_principal_follows() {
    let office = Office::with_a_draft();
    let events = office.events(&["10", "20"]);
    let claims = office.key(|_| {});
    let reads = office.key(|key| key.scopes = Scopes::of(&[Scope::Read]));
    let reported = office.together(|| {
        let by = |requester, event_ref| {
            let change = to("7");
            office.submit_work(requester, |reply| Work::Change(QueuedChange { event_ref, change, keyed: None, reply }))
        };
        [by(office.known(), events[0]), by(Requester::Bearer(claims), events[1]), by(Requester::Bearer(reads), events[0])]
    });
    let by = reported.map(|reported| match reported.recv_timeout(SOON).expect("an answer") {
        (_, Ok(Execution::Executed(ChangeOutcome::Updated(view)))) => Some(view.event.revised_by),
        (principal, Err(UseCaseError::Forbidden(_))) => principal.map(|_| None).expect("a principal"),
        other => panic!("{other:?}"),
    });
    assert_eq!(by[0], Some(office.books.bench.principal.actor()));
    assert!(by[1].is_some() && by[1] != by[0] && by[2].is_none());
}

#[test]
fn a_change_under_a_key_is_carried_out_once() {
    let office = Office::with_a_draft();
    let events = office.events(&["10"]);
    let change = |quantity: &str, body: u8| {
        let key = ScopedIdempotencyKey { path: "/update".to_owned(), key: IdempotencyKey::parse("k").expect("a key") };
        let body = BodyHash([body; 32]);
        let request = IdempotentRequest { use_case: UseCase::UpdateEvent, key, body, wait: Duration::ZERO, sealed_for: None };
        let render: fn(&ChangeOutcome) -> StoredResponse = |changed| match changed {
            ChangeOutcome::Updated(view) => StoredResponse(view.event.quantity.as_decimal().to_string().into_bytes()),
            ChangeOutcome::Deleted => StoredResponse(Vec::new()),
        };
        office.change(events[0], to(quantity), Some(IdempotentWork { request, render }))
    };
    // Of duplicates that wait together, one is executed. The other must be sent again.
    let reported = office.together(|| [change("11", 1), change("11", 1)]);
    let mut stated = reported.each_ref().map(changed);
    stated.sort();
    assert!(stated[0] == "UB-INV-1" && stated[1].contains("still in progress"), "{stated:?}");
    assert_eq!(changed(&office.change(events[0], to("12"), None)), "UB-INV-1");
    assert_eq!(changed(&change("11", 1)), "again 11");
    assert!(changed(&change("13", 2)).contains("belongs to another request"));
    assert!(office.books.documents().contains("calls × 14"), "{}", office.books.documents());
}

#[test]
fn a_batch_takes_turns_with_single_events() {
    let office = Office::with_a_draft();
    let reported = office.together(|| {
        let batch = office.batch(vec![calls(DAY, "1"); 2_000]);
        (batch, office.submit(calls(DAY, "1")))
    });
    assert_eq!(word(&reported.1), "UB-INV-1");
    let BatchOutcome { results, stopped_by } = taken(&reported.0);
    assert!(stopped_by.is_none());
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 2_000);
    assert!(office.books.documents().contains("calls × 2003"), "{}", office.books.documents());
}

#[test]
fn batches_alone_are_written_a_thousand_at_a_time() {
    let office = Office::with_a_draft();
    let BatchOutcome { results, .. } = taken(&office.batch(vec![calls(DAY, "1"); 2_001]));
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 2_001);
    let sizes = office.writer.figures().events.sizes;
    assert_eq!((sizes.count(), sizes.largest()), (3, EVENTS_PER_TRANSACTION as u64));
}

#[test]
fn a_batch_that_is_stopped_says_what_is_stored() {
    let office = Office::with_a_draft();
    for (failing, stored) in [(1, EVENTS_PER_TRANSACTION), (0, 0)] {
        office.store.close();
        let reported = office.batch(vec![calls(DAY, "1"); EVENTS_PER_TRANSACTION + 1]);
        office.store.wait_for_one();
        office.store.fail_after(failing);
        office.store.open();
        let outcome = reported.recv_timeout(SOON).expect("an answer").1;
        let (results, error) = match outcome {
            Ok(BatchOutcome { results, stopped_by }) => (results, stopped_by),
            Err(error) => (Vec::new(), Some(error)),
        };
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), stored);
        assert!(matches!(error, Some(UseCaseError::Store(StoreError::Corrupt(_)))), "{error:?}");
    }
    assert!(office.books.documents().contains("calls × 1001:"), "{}", office.books.documents());
}

#[test]
fn what_is_wrong_with_a_batch_leaves_single_events_alone() {
    let office = Office::with_a_draft();
    let reported = office.together(|| {
        let singles = [(); 3].map(|()| office.submit(calls(DAY, "10")));
        let answer = EventAnswer { render: |_| panic!("deliberate panic"), ..NO_ANSWER };
        let events = vec![calls(DAY, "1"), under("b", calls(DAY, "1"))];
        let batch =
            office.submit_work(office.known(), |reply| Work::Batch(QueuedBatch { events, answer, goes_on: false, reply }));
        (singles, batch)
    });
    assert_eq!(words(&reported.0), ["UB-INV-1"; 3]);
    let outcome = reported.1.recv_timeout(SOON).expect("an answer").1;
    assert!(matches!(outcome, Err(UseCaseError::InvariantViolation(_))), "{outcome:?}");
    assert!(office.books.documents().contains("calls × 32"), "{}", office.books.documents());
}

#[test]
fn what_is_one_transaction_has_its_turn() {
    let office = Office::with_a_draft();
    let (done, did) = channel();
    office.together(|| {
        let work = Box::new(move |services: &Services| done.send(services.now()).expect("a waiting receiver"));
        let work = Work::Whole(QueuedTransaction { events: 10_000, bytes: 1, work });
        office.writer.submit(QueuedRequest { requester: office.known(), until: Instant::now() + SOON, work }).expect("room");
    });
    assert_eq!(did.recv_timeout(SOON).ok(), Some(office.books.bench.now()));
}

#[test]
fn what_an_organization_always_has_room_for_is_let_in_however_many_of_others_wait() {
    let office = Office::new(NetTerms::Days(14), WriterLimits { events: 2, batches: 1, ..WriterLimits::default() });
    let other = fixtures::organization(&FreshIds);
    let made = transact::<_, StoreError>(&*office.books.bench.store, Access::Write, |tx| tx.insert_organization(&other));
    assert_eq!(made.expect("an organization"), Insertion::Done);
    let stranger = office.key(|key| key.organization = other.id);
    office.store.close();
    let first = office.submit(calls(DAY, "1"));
    office.store.wait_for_one();
    let own = [(); 2].map(|()| office.submit(calls(DAY, "1")));
    assert_eq!(office.submit_as(office.known(), calls(DAY, "1"), SOON).err(), Some(WriterBusy));
    let theirs = office.submit_as(Requester::Bearer(stranger), calls(DAY, "1"), SOON).expect("room");
    let batch = office.batch(vec![calls(DAY, "1")]);
    let full = |goes_on| {
        let (reply, _told) = channel::<UseCaseResult<BatchOutcome>>();
        let reply = Box::new(move |_, outcome| drop(reply.send(outcome)));
        let answer = NUMBERS;
        let work = Work::Batch(QueuedBatch { events: vec![calls(DAY, "1")], answer, goes_on, reply });
        office.writer.submit(QueuedRequest { requester: office.known(), until: Instant::now() + SOON, work })
    };
    assert_eq!((full(false), full(true)), (Err(WriterBusy), Ok(())));
    office.store.open();
    assert_eq!([word(&first), word(&own[0]), word(&own[1])], ["UB-INV-1"; 3]);
    assert_eq!(taken(&batch).results.len(), 1);
    assert!(word(&theirs).contains("customer_ref"), "a customer of another organization");
}

#[test]
fn what_is_cached_is_read_again_after_each_change() {
    let office = Office::with_a_draft();
    let report = || {
        let reported = office.submit(calls(DAY, "1")).recv_timeout(SOON).expect("an answer").1;
        let Ok(Execution::Executed(IngestOutcome::Recorded(view))) = reported else { panic!("the event is recorded") };
        (view.document_numbers.to_string(), view.usage_product_name.to_string())
    };
    let cached = |number: &str, name: &str| {
        for n in 0..4 {
            assert_eq!(report(), (number.to_owned(), name.to_owned()), "{n}");
        }
    };
    let name = report().1;
    cached("UB-INV-1", &name);
    let renamed = Changes::of(|profile: &mut UsageProductProfile| {
        profile.name = billing_domain::text::OneLine::parse("Renamed").expect("a name");
    });
    let (services, principal) = (&office.books.bench.services, &office.books.bench.principal);
    run(services, principal, UseCase::EditUsageProduct, |cx| {
        edit_usage_product(cx, &fixtures::usage_product_ref("calls"), &renamed)
    })
    .expect("an edit");
    cached("UB-INV-1", "Renamed");
    // A new contract of the customer begins later, so it bills the events.
    let newer = office.books.pricing("newer", vec![graduated("calls", THREE_TIERS)]);
    let mut product = requested(&newer, "2026-01-05", "2026-02-28");
    product.payment_time = Some(PaymentTime::AfterUse);
    office.books.contract(vec![product]);
    let number = report().0;
    assert_ne!(number, "UB-INV-1");
    cached(&number, "Renamed");
    // The draft is issued.
    office.books.bill("2026-03-20T12:00:00Z");
    let correction = report().0;
    assert_ne!(correction, number);
}

#[test]
fn a_cache_of_any_size_records_the_same() {
    let recorded = [0, 1, 40_000, 1_000_000].map(|event_cache| {
        let office = Office::new(NetTerms::Days(14), WriterLimits { event_cache, ..WriterLimits::default() });
        for quantity in ["1", "20", "300", "4"] {
            for day in ["2026-01-10T00:00:00Z", "2026-01-11T00:00:00Z", "2026-01-20T00:00:00Z"] {
                word(&office.submit(calls(day, quantity)));
            }
        }
        let reported: Vec<_> = office.together(|| (0..9).map(|n| office.submit(calls(DAY, &n.to_string()))).collect());
        (words(&reported), office.books.documents())
    });
    assert!(recorded.iter().all(|of_size| *of_size == recorded[0]), "{recorded:?}");
}

#[test]
fn an_event_beyond_the_largest_sum_is_refused_alone_and_leaves_no_total() {
    let office = Office::with_a_draft();
    for _ in 0..3 {
        assert_eq!(word(&office.submit(calls(DAY, "1"))), "UB-INV-1");
    }
    let before = office.books.documents();
    let reported = office.together_quietly(|| ["1", "999999999999999", "1"].map(|quantity| office.submit(calls(DAY, quantity))));
    let stated = words(&reported);
    assert_eq!((stated[0].as_str(), stated[2].as_str()), ("UB-INV-1", "UB-INV-1"), "{stated:?}");
    assert_ne!(stated[1], "UB-INV-1", "the price is beyond the limit of a document");
    assert_ne!(office.books.documents(), before);
    assert_eq!(word(&office.submit(calls(DAY, "1"))), "UB-INV-1");
    assert!(
        billing_application::verify::verify(&office.books.bench.services, false)
            .is_ok_and(|verified| { verified.iter().all(|(_, found)| found.findings.is_empty()) })
    );
}

/// Returns a contract for calls at three tiers with this aggregation, and events in January and February. Issues January if
/// `is_issued` is set.
fn history(random: &mut Random, aggregation: Aggregation, is_issued: bool) -> (Office, Vec<EventRef>) {
    let office = Office::new(NetTerms::Days(14), WriterLimits::default());
    let aggregate = Changes::of(move |profile: &mut UsageProductProfile| profile.aggregation = aggregation);
    let (services, principal) = (&office.books.bench.services, &office.books.bench.principal);
    run(services, principal, UseCase::EditUsageProduct, |cx| {
        edit_usage_product(cx, &fixtures::usage_product_ref("calls"), &aggregate)
    })
    .expect("an edit");
    let api = office.books.pricing("again", vec![graduated("calls", THREE_TIERS)]);
    let mut product = requested(&api, "2026-01-01", "2026-02-28");
    product.payment_time = Some(PaymentTime::AfterUse);
    office.books.contract(vec![product]);
    office.books.clock("2026-02-20T12:00:00Z");
    let events = (0..8).map(|_| office.books.calls(&moment(random), &random.between(0, 400).to_string())).collect();
    if is_issued {
        office.books.bill("2026-02-20T12:00:00Z");
    }
    (office, events)
}

fn moment(random: &mut Random) -> String {
    format!("2026-{:02}-{:02}T00:00:00Z", random.between(1, 2), random.between(1, 19))
}

/// Returns a random change that is usually accepted.
fn drawn(random: &mut Random) -> EventChange {
    match random.below(10) {
        0..2 => EventChange::Delete,
        2..5 => to(&random.between(0, 400).to_string()),
        5 => at("2025-06-01T00:00:00Z"),
        6 => to("99999999999999"),
        _ => EventChange::Update(Box::new(EventUpdate {
            occurred_at: Some(fixtures::at(&moment(random))),
            quantity: random.percent(50).then(|| fixtures::quantity(&random.between(0, 400).to_string())),
            ..EventUpdate::default()
        })),
    }
}

#[test]
fn changes_that_wait_together_come_to_what_they_come_to_one_after_the_other() {
    for seed in 0..60 {
        let aggregation = [Aggregation::Sum, Aggregation::Max, Aggregation::Latest, Aggregation::Count][seed as usize % 4];
        let is_issued = seed % 3 == 0;
        let [(together, events), (alone, same_events)] =
            [(); 2].map(|()| history(&mut Random::new(seed), aggregation, is_issued));
        let mut random = Random::new(1_000 + seed);
        let changes: Vec<(usize, EventChange)> = (0..events.len())
            .filter(|_| random.percent(80))
            .map(|event| (event, drawn(&mut Random::new(seed * 100 + event as u64))))
            .collect();
        let reported = together.together_quietly(|| {
            changes.iter().map(|(event, change)| together.change(events[*event], change.clone(), None)).collect::<Vec<_>>()
        });
        let taken = reported.iter().map(|reported| reported.recv_timeout(SOON).expect("an answer").1.is_ok()).collect::<Vec<_>>();
        let (services, principal) = (&alone.books.bench.services, &alone.books.bench.principal);
        let also_taken: Vec<bool> = changes
            .iter()
            .map(|(event, change)| match change {
                EventChange::Delete => {
                    run(services, principal, UseCase::DeleteEvent, |cx| delete_event(cx, same_events[*event])).is_ok()
                }
                EventChange::Update(update) => {
                    run(services, principal, UseCase::UpdateEvent, |cx| update_event(cx, same_events[*event], update)).is_ok()
                }
            })
            .collect();
        assert_eq!(taken, also_taken, "seed {seed}: {changes:?}");
        // Every invariant holds in both. If nothing is issued, the documents are identical, too.
        let (shown, also_shown) = (together.books.documents(), alone.books.documents());
        if !is_issued {
            assert_eq!(shown, also_shown, "seed {seed}: {changes:?}");
        }
        for period in ["2026-01-01", "2026-02-01"] {
            assert_eq!(
                crate::rules::billed(&together.books, period, "calls"),
                crate::rules::billed(&alone.books, period, "calls"),
                "seed {seed}: {changes:?}"
            );
        }
    }
}
