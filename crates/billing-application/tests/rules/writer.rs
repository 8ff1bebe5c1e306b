//! The writer of usage: what waits together is taken together, and no neighbour of what is refused notices.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use billing_application::Services;
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::usage::{
    EventView, NewUsageEvent, Reporter, TakenUsage, UsageWriter, WaitingEvent, WriterBusy, WriterLimits,
};
use billing_domain::access::{ApiKey, Principal, Scope, Scopes, TokenClaims};
use billing_domain::contract::terms::PaymentTime;
use billing_domain::idempotency::{BodyHash, IdempotencyKey};
use billing_domain::party::NetTerms;
use billing_domain::ports::{Access, Insertion, RollBack, Store, StoreError, StoreResult, Tx, transact};
use billing_domain::usage::EventKey;
use billing_testkit::fixtures::{self, graduated, requested};
use billing_testkit::{FreshIds, MemoryStore};
use uuid::Uuid;

use crate::books::{Books, THREE_TIERS, calls};

const DAY: &str = "2026-01-10T00:00:00Z";
/// Longer than anything here takes.
const SOON: Duration = Duration::from_secs(60);

/// A store whose writing transactions wait until they may begin, one after the other, and the first of which may fail.
struct Doored {
    store: Arc<MemoryStore>,
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

    /// Waits until a transaction stands at the door.
    fn wait_for_one(&self) {
        let door = self.door.lock().expect("a door");
        let (door, late) = self.changed.wait_timeout_while(door, SOON, |door| door.waiting == 0).expect("a door");
        assert!(!late.timed_out(), "nobody came");
        drop(door);
    }

    /// The transactions that were committed.
    fn written(&self) -> usize {
        self.door.lock().expect("a door").written
    }

    /// Has so many fail instead of being committed, once the one that waits has been.
    fn fail(&self, times: usize) {
        let mut door = self.door.lock().expect("a door");
        let next = door.begun + 1;
        door.to_fail = next..next + times;
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

type Told = (Option<Principal>, UseCaseResult<TakenUsage>);

/// A customer with calls in January, a writer, and the door in front of its store.
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
        let services = Services { store: Arc::clone(&store).into(), ..books.bench.services.clone() };
        Self { books, store, writer: UsageWriter::start(services, limits) }
    }

    /// With a draft for January, which has one event of one call.
    fn with_a_draft() -> Self {
        let office = Self::new(NetTerms::Days(14), WriterLimits::default());
        office.books.calls(DAY, "1");
        office
    }

    fn submit_as(&self, reporter: Reporter, event: NewUsageEvent, patience: Duration) -> Result<Receiver<Told>, WriterBusy> {
        let (reply, told) = channel();
        let reply = Box::new(move |principal, outcome| drop(reply.send((principal, outcome))));
        let answer = |view: &EventView| view.document_numbers.to_string();
        self.writer.submit(WaitingEvent { reporter, event, answer, until: Instant::now() + patience, reply })?;
        Ok(told)
    }

    fn submit(&self, event: NewUsageEvent) -> Receiver<Told> {
        self.submit_as(Reporter::Known(self.books.bench.principal.clone()), event, SOON).expect("room")
    }

    /// Has events wait together: they are submitted while another one is written.
    fn together<T>(&self, submit: impl FnOnce() -> T) -> T {
        self.store.close();
        let before = self.submit(calls(DAY, "1"));
        self.store.wait_for_one();
        let submitted = submit();
        self.store.open();
        assert_eq!(word(&before), "UB-INV-1");
        submitted
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

/// The word for what somebody was told: the document's number, `=` before a repeated one, or what refuses it.
fn word(told: &Receiver<Told>) -> String {
    match told.recv_timeout(SOON).expect("an answer").1 {
        Ok(TakenUsage::Now(view)) => view.document_numbers.to_string(),
        Ok(TakenUsage::Before(answer)) => format!("={answer}"),
        Err(error) => error.to_string(),
    }
}

fn words(told: &[Receiver<Told>]) -> Vec<String> {
    told.iter().map(word).collect()
}

fn under(key: &str, event: NewUsageEvent) -> NewUsageEvent {
    let key = IdempotencyKey::parse(key).expect("a key");
    NewUsageEvent { sent: Some(EventKey { key, body: BodyHash([1; 32]) }), ..event }
}

#[test]
fn events_that_wait_together_are_one_transaction() {
    let office = Office::with_a_draft();
    let before = office.store.written();
    let told = office.together(|| [(); 5].map(|()| office.submit(calls(DAY, "10"))));
    assert_eq!(words(&told), ["UB-INV-1"; 5]);
    assert_eq!(office.store.written() - before, 2);
    let figures = office.writer.figures();
    assert_eq!((figures.groups, figures.events, figures.largest_group, figures.waiting), (2, 6, 5, 0));
    assert!(office.books.documents().contains("52"), "{}", office.books.documents());
}

#[test]
fn a_refused_event_is_refused_alone() {
    let office = Office::with_a_draft();
    let told = office.together(|| {
        let late = calls("2027-01-10T00:00:00Z", "1");
        let nowhere = calls("2025-01-10T00:00:00Z", "1");
        [calls(DAY, "10"), late, nowhere, calls(DAY, "10")].map(|event| office.submit(event))
    });
    let said = words(&told);
    assert_eq!((said[0].as_str(), said[3].as_str()), ("UB-INV-1", "UB-INV-1"));
    assert!(said[1].contains("timestamp") && said[2].contains("contract"), "{said:?}");
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
    .expect("a key that is deleted");
    let told = office.together(|| {
        [&live, &ended, &deleted, &live, &idle, &reads]
            .map(|claims| office.submit_as(Reporter::Bearer(claims.clone()), calls(DAY, "10"), SOON).expect("room"))
    });
    let told = told.map(|told| told.recv_timeout(SOON).expect("an answer"));
    let taken = told.each_ref().map(|(_, outcome)| outcome.is_ok());
    assert_eq!(taken, [true, false, false, true, true, false]);
    let known = told.each_ref().map(|(principal, _)| principal.is_some());
    assert_eq!(known, [true, false, false, true, true, true]);
    assert!(matches!(told[1].1, Err(UseCaseError::Unauthenticated)));
    assert!(matches!(told[5].1, Err(UseCaseError::Forbidden(_))));
    let by = told.each_ref().map(|(_, outcome)| {
        outcome.as_ref().ok().map(|taken| match taken {
            TakenUsage::Now(view) => view.event.revised_by,
            TakenUsage::Before(_) => panic!("it has no key"),
        })
    });
    assert_eq!(by[0], told[0].0.as_ref().map(Principal::actor));
    assert_eq!(by[4], told[4].0.as_ref().map(Principal::actor));
    assert_ne!(by[0], by[4]);
}

#[test]
fn what_opens_a_document_is_taken_with_all_of_its_contract_and_repeats_are_known() {
    let office = Office::with_a_draft();
    let before = office.store.written();
    let february = "2026-02-01T00:00:00Z";
    office.books.clock("2026-02-10T12:00:00Z");
    let told = office.together(|| {
        let mine = |key| under(key, calls(DAY, "10"));
        let opens = |key| under(key, calls(february, "3"));
        [opens("f"), mine("j"), opens("f"), mine("j"), opens("g")].map(|event| office.submit(event))
    });
    assert_eq!(words(&told), ["UB-INV-2", "UB-INV-1", "=UB-INV-2", "=UB-INV-1", "UB-INV-2"]);
    // The first alone, then all of the contract: one of them opens a document.
    assert_eq!(office.store.written() - before, 2);
    // Keys are kept for ever, whichever way the event comes in.
    assert_eq!(word(&office.submit(under("f", calls(february, "3")))), "=UB-INV-2");
}

#[test]
fn events_due_upon_usage_have_a_document_each() {
    let office = Office::new(NetTerms::DueUponUsage, WriterLimits::default());
    office.store.close();
    let told: Vec<_> = (0..3).map(|_| office.submit(calls(DAY, "10"))).collect();
    office.store.open();
    let mut said = words(&told);
    said.sort();
    said.dedup();
    assert_eq!(said.len(), 3, "{said:?}");
}

#[test]
fn too_many_are_turned_away_with_nothing_done() {
    let office = Office::new(NetTerms::Days(14), WriterLimits { events: 2, ..WriterLimits::default() });
    let by = || Reporter::Known(office.books.bench.principal.clone());
    office.store.close();
    let first = office.submit(calls(DAY, "1"));
    office.store.wait_for_one();
    let second = [(); 2].map(|()| office.submit(calls(DAY, "1")));
    assert_eq!(office.submit_as(by(), calls(DAY, "1"), SOON).err(), Some(WriterBusy));
    assert_eq!((office.writer.figures().turned_away, office.writer.figures().waiting), (1, 2));
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
    let told = office.together(|| {
        let by = Reporter::Known(office.books.bench.principal.clone());
        [office.submit_as(by, calls(DAY, "1000"), Duration::ZERO).expect("room"), office.submit(calls(DAY, "10"))]
    });
    assert_eq!(word(&told[1]), "UB-INV-1");
    assert_eq!(told[0].recv_timeout(SOON).err(), Some(RecvTimeoutError::Disconnected));
    assert!(office.books.documents().contains("12"), "{}", office.books.documents());
}

#[test]
fn a_group_that_shows_wrong_books_is_divided_until_the_others_are_taken() {
    let office = Office::with_a_draft();
    let told = office.together(|| {
        let told = [(); 4].map(|()| office.submit(calls(DAY, "10")));
        // The whole group, its first half, and the first of that.
        office.store.fail(3);
        told
    });
    let said = words(&told);
    let (refused, taken): (Vec<_>, Vec<_>) = said.iter().partition(|said| said.contains("a row that can't be"));
    assert_eq!((refused.len(), taken.len()), (1, 3), "{said:?}");
}

#[test]
fn a_panic_takes_nobody_else_with_it() {
    let office = Office::with_a_draft();
    let (reply, told) = channel::<Told>();
    let reply = Box::new(move |_, _| {
        let _reply = &reply;
        panic!("as the test wants it")
    });
    let reporter = Reporter::Known(office.books.bench.principal.clone());
    let answer = |_: &EventView| String::new();
    let event = WaitingEvent { reporter, event: calls(DAY, "1"), answer, until: Instant::now() + SOON, reply };
    office.writer.submit(event).expect("room");
    assert_eq!(told.recv_timeout(SOON).err(), Some(RecvTimeoutError::Disconnected));
    assert_eq!(word(&office.submit(calls(DAY, "10"))), "UB-INV-1");
}

#[test]
fn who_waits_when_it_stops_is_taken_and_nobody_after() {
    let office = Office::with_a_draft();
    let told = office.together(|| [office.submit(calls(DAY, "10"))]);
    office.writer.stop();
    assert_eq!(word(&told[0]), "UB-INV-1");
    let by = Reporter::Known(office.books.bench.principal.clone());
    assert_eq!(office.submit_as(by, calls(DAY, "1"), SOON).err(), Some(WriterBusy));
}
