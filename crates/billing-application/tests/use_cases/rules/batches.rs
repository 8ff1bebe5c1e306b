//! Batches in one transaction, and the responses stored under their keys.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use billing_application::idempotency::IdempotentRequest;
use billing_application::usage::{
    Atomicity, BatchOutcome, EVENTS_PER_TRANSACTION, EventAnswer, EventView, NewUsageEvent, UsageBatch, record_batch,
};
use billing_application::{Request, UseCase, carry_out};
use billing_domain::idempotency::{BodyHash, IdempotencyKey, IdempotentResponse, ScopedIdempotencyKey, StoredResponse};
use billing_testkit::fixtures::{per_unit, requested};
use billing_teststore::TestStore;

use crate::books::{Books, NUMBERS, calls};

/// Returns a contract for calls at 0.10 EUR in January, and a batch with one event more than the limit per transaction. The
/// first event has its own key.
fn one_too_many(neighbours: Atomicity) -> (Books, UsageBatch) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "0.10")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-01-31")]);
    let mut events: Vec<NewUsageEvent> = vec![calls("2026-01-10T00:00:00Z", "1"); EVENTS_PER_TRANSACTION + 1];
    let key = IdempotencyKey::parse("event").expect("a key");
    events[0].key = Some(key);
    (books, UsageBatch { events, neighbours })
}

fn keyed() -> IdempotentRequest {
    let key = ScopedIdempotencyKey { path: "/batch".to_owned(), key: IdempotencyKey::parse("k").expect("a key") };
    IdempotentRequest { use_case: UseCase::RecordUsage, key, body: BodyHash([2; 32]), wait: Duration::ZERO, sealed_for: None }
}

/// Records a batch. Returns the response, and the number of results if the batch was recorded now. If `fails` is set, the store
/// fails after the transaction that records the first event.
fn take(books: &Books, key: Option<&IdempotentRequest>, batch: &UsageBatch, fails: bool) -> (IdempotentResponse, Option<usize>) {
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    // A response is built by a function, which knows the store from here.
    thread_local! { static FAILING: RefCell<Option<Arc<TestStore>>> = const { RefCell::new(None) } }
    FAILING.set(fails.then(|| Arc::clone(&books.bench.store)));
    let render = |view: &EventView| {
        FAILING.with_borrow(|store| store.iter().for_each(|store| store.set_unavailable(true)));
        view.document_numbers.to_string()
    };
    let answer = EventAnswer { render, ..NUMBERS };
    let shown = RefCell::new(None);
    let render = |taken: &BatchOutcome| {
        shown.replace(Some(taken.results.len()));
        StoredResponse(format!("{} {}", taken.results.len(), taken.stopped_by.is_some()).into_bytes())
    };
    let request = Request { principal, use_case: UseCase::RecordUsage, key };
    let reply = carry_out(services, request, render, |cx| record_batch(cx, batch, answer)).expect("a started batch");
    books.bench.store.set_unavailable(false);
    (reply, shown.into_inner())
}

#[test]
fn what_is_all_or_none_and_what_comes_under_a_key_is_one_transaction() {
    for (neighbours, request) in [(Atomicity::Atomic, None), (Atomicity::PerEvent, Some(keyed()))] {
        let (books, batch) = one_too_many(neighbours);
        let (reply, taken) = take(&books, request.as_ref(), &batch, true);
        assert_eq!((reply.answer, reply.is_repeat), (StoredResponse(b"1001 false".to_vec()), false));
        assert_eq!(taken, Some(batch.events.len()));
    }
}

#[test]
fn a_batch_sent_again_under_its_key_is_answered_again_and_takes_nothing() {
    let (books, batch) = one_too_many(Atomicity::PerEvent);
    let (first, _) = take(&books, Some(&keyed()), &batch, false);
    let before = books.bench.store.contents();
    let (again, taken) = take(&books, Some(&keyed()), &batch, false);
    assert_eq!((again.answer, again.is_repeat, taken.is_none()), (first.answer, true, true));
    assert_eq!(books.bench.store.contents(), before);
}
