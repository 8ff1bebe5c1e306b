//! Requests with an idempotency key, and use cases inside one transaction.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use billing_application::billing_run::{self, BillingRunRequest, RunCursor};
use billing_application::catalog::{create_usage_product, get_usage_product};
use billing_application::error::{ResourceKind, UseCaseError, UseCaseResult};
use billing_application::idempotency::IdempotentRequest;
use billing_application::{Request, Services, UseCase, carry_out, carry_out_in_parts};
use billing_domain::catalog::UsageProduct;
use billing_domain::idempotency::{BodyHash, IdempotencyKey, IdempotentResponse, ScopedIdempotencyKey, StoredResponse};
use billing_domain::ports::{Access, MockStore, Store as _, StoreError};
use billing_testkit::fixtures::{self, fixed, per_unit, requested};

use crate::books::{Books, code};
use crate::support::{Bench, failing_store, read, run, run_billing};

const NOON: &str = "2026-01-20T12:00:00Z";

fn keyed(key: &str) -> IdempotentRequest {
    let key = ScopedIdempotencyKey { path: "/things".to_owned(), key: IdempotencyKey::parse(key).expect(key) };
    IdempotentRequest {
        use_case: UseCase::CreateUsageProduct,
        key,
        body: BodyHash([1; 32]),
        wait: Duration::ZERO,
        sealed_for: None,
    }
}

fn answer(text: &str) -> StoredResponse {
    StoredResponse(text.as_bytes().to_vec())
}

fn named(product: &UsageProduct) -> StoredResponse {
    answer(product.profile.name.as_str())
}

fn request<'r>(bench: &'r Bench, key: &'r IdempotentRequest) -> Request<'r> {
    Request { principal: &bench.principal, use_case: key.use_case, key: Some(key) }
}

/// Creates a usage product under a key and counts the calls of the work.
fn make(bench: &Bench, key: &IdempotentRequest, reference: &str, calls: &Cell<u32>) -> UseCaseResult<IdempotentResponse> {
    let product = fixtures::usage_product(reference);
    carry_out(&bench.services, request(bench, key), named, |cx| {
        calls.set(calls.get() + 1);
        create_usage_product(cx, Some(product.usage_product_ref.clone()), product.profile.clone())
    })
}

fn is_there(bench: &Bench, reference: &str) -> bool {
    let reference = fixtures::usage_product_ref(reference);
    read(&bench.services, &bench.principal, UseCase::GetUsageProduct, |cx| get_usage_product(cx, &reference)).is_ok()
}

#[test]
fn work_that_runs_again_after_a_conflict_has_one_effect_and_a_repeat_none() {
    let (bench, calls) = (Bench::at(NOON), Cell::new(0));
    bench.store.run_in_vain(2);
    let first = make(&bench, &keyed("k"), "first", &calls).expect("the first response");
    assert_eq!((first.is_repeat, calls.get()), (false, 3));
    let again = make(&bench, &keyed("k"), "second", &calls).expect("a replayed response");
    assert_eq!((again.is_repeat, again.answer, calls.get()), (true, first.answer, 3));
    assert!(is_there(&bench, "first") && !is_there(&bench, "second"));
}

#[test]
fn a_key_that_named_another_request_is_refused_before_the_work() {
    let (bench, calls) = (Bench::at(NOON), Cell::new(0));
    make(&bench, &keyed("k"), "first", &calls).expect("the first response");
    let other = IdempotentRequest { body: BodyHash([2; 32]), ..keyed("k") };
    assert!(matches!(make(&bench, &other, "second", &calls), Err(UseCaseError::IdempotencyKeyReuse)));
    assert_eq!(calls.get(), 1);
}

#[test]
fn what_is_refused_leaves_nothing_behind_and_its_key_free() {
    let (bench, calls) = (Bench::at(NOON), Cell::new(0));
    make(&bench, &keyed("a"), "first", &calls).expect("the first response");
    let before = bench.store.contents();
    let taken = make(&bench, &keyed("k"), "first", &calls);
    assert!(matches!(taken, Err(UseCaseError::AlreadyExists { thing: ResourceKind::UsageProduct, .. })));
    assert_eq!(bench.store.contents(), before);
    assert!(!make(&bench, &keyed("k"), "second", &calls).expect("a corrected request").is_repeat);
}

#[test]
fn work_that_fails_after_a_change_undoes_it() {
    let bench = Bench::at(NOON);
    let before = bench.store.contents();
    let product = fixtures::usage_product("first");
    let failed = carry_out(&bench.services, request(&bench, &keyed("k")), named, |cx| {
        create_usage_product(cx, Some(product.usage_product_ref.clone()), product.profile.clone())?;
        Err(UseCaseError::InvariantViolation("not to be stored"))
    });
    assert!(matches!(failed, Err(UseCaseError::InvariantViolation(_))));
    assert_eq!(bench.store.contents(), before);
}

#[test]
fn use_cases_in_one_transaction_are_committed_together_or_not_at_all() {
    let bench = Bench::at(NOON);
    let create = |names: [&str; 2]| {
        run(&bench.services, &bench.principal, UseCase::CreateUsageProduct, |cx| {
            for product in names.map(fixtures::usage_product) {
                create_usage_product(cx, Some(product.usage_product_ref), product.profile)?;
            }
            Ok(())
        })
    };
    create(["first", "second"]).expect("two usage products");
    assert!(is_there(&bench, "first") && is_there(&bench, "second"));
    let before = bench.store.contents();
    assert!(matches!(create(["third", "first"]), Err(UseCaseError::AlreadyExists { .. })));
    assert!(!is_there(&bench, "third"));
    assert_eq!(bench.store.contents(), before);
}

#[test]
fn a_sealed_answer_is_given_again_to_its_own_secret_alone() {
    let (bench, calls) = (Bench::at(NOON), Cell::new(0));
    let sealed = |secret: &str| IdempotentRequest { sealed_for: Some(secret.to_owned()), ..keyed("k") };
    let first = make(&bench, &sealed("mine"), "first", &calls).expect("the first response");
    let again = make(&bench, &sealed("mine"), "first", &calls).expect("a replayed response");
    assert_eq!((again.is_repeat, &again.answer), (true, &first.answer));
    assert!(code(make(&bench, &sealed("theirs"), "first", &calls)).starts_with("secret_shown_once"));
    let since = bench.now().plus_seconds(-1);
    let kept = bench.read(|tx| tx.idempotency_record(bench.principal.organization(), &keyed("k").key, since)).expect("a record");
    assert_ne!(kept.answer, first.answer);
    assert_eq!(calls.get(), 1);
}

#[test]
fn a_billing_run_under_a_key_bills_what_it_bills_without_one() {
    let books = Books::at("2025-12-20T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "10.00"), per_unit("calls", "0.10")]);
    for _ in 0..3 {
        books.contract(vec![requested(&api, "2026-01-01", "2026-03-31")]);
    }
    books.clock("2026-04-02T00:00:00Z");
    let unkeyed = Books { bench: books.bench.fork() };
    let bill = |books: &Books, key: &IdempotentRequest| {
        carry_out_in_parts(
            &books.bench.services,
            request(&books.bench, key),
            |_| answer("done"),
            |transactions| {
                let report = billing_run::run_billing(transactions, BillingRunRequest::whole(false))?;
                assert!(report.failed.is_empty(), "{report:?}");
                assert_eq!(report.issued.len(), 9);
                Ok(report)
            },
        )
    };
    let key = IdempotentRequest { use_case: UseCase::RunBilling, ..keyed("k") };
    assert!(!bill(&books, &key).expect("a run").is_repeat);
    assert!(bill(&books, &key).expect("a replayed response").is_repeat);
    let report = run_billing(&unkeyed.bench.services, &unkeyed.bench.principal, BillingRunRequest::whole(false)).expect("a run");
    assert_eq!(report.issued.len(), 9);
    assert_eq!(books.documents(), unkeyed.documents());
}

#[test]
fn a_store_that_is_away_is_not_waited_for_contract_by_contract() {
    let books = Books::at("2025-12-20T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "10.00")]);
    for _ in 0..8 {
        books.contract(vec![requested(&api, "2026-01-01", "2026-01-31")]);
    }
    books.clock("2026-02-02T00:00:00Z");
    let (reader, writer) = (Arc::clone(&books.bench.store), Arc::clone(&books.bench.store));
    let mut store = MockStore::new();
    store.expect_run().withf(|access, _| *access != Access::Write).returning(move |access, work| reader.run(access, work));
    // The record of the run, and the only attempt to bill.
    store.expect_run().times(2).returning(move |access, work| writer.run(access, work));
    let services = Services { store: Arc::new(store), ..books.bench.services.clone() };
    let goes_away = || {
        books.bench.store.set_unavailable(true);
        true
    };
    let wanted = BillingRunRequest { dry_run: false, trust_clock: false, after: None, may_go_on: &goes_away };
    let stopped = run_billing(&services, &books.bench.principal, wanted);
    assert!(matches!(stopped, Err(UseCaseError::Store(StoreError::Unavailable(_)))), "{stopped:?}");
}

#[test]
fn a_transaction_of_a_run_that_fails_leaves_its_contracts_to_the_next_run() {
    let books = Books::at("2025-12-20T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "10.00")]);
    for _ in 0..60 {
        books.contract(vec![requested(&api, "2026-01-01", "2026-01-31")]);
    }
    books.clock("2026-02-02T00:00:00Z");
    // The first writes are the record of the run and 50 contracts.
    let services = Services { store: failing_store(&books.bench.store, 2), ..books.bench.services.clone() };
    let report = run_billing(&services, &books.bench.principal, BillingRunRequest::whole(false)).expect("a run");
    assert_eq!((report.issued.len(), report.failed_contracts()), (50, 10));
    let rest = run_billing(&books.bench.services, &books.bench.principal, BillingRunRequest::whole(false)).expect("a run");
    assert_eq!(rest.issued.len(), 10);
    books.documents();
}

#[test]
fn a_run_that_stops_says_where_to_go_on_and_all_together_they_bill_what_one_does() {
    let books = Books::at("2025-12-20T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "10.00")]);
    for _ in 0..120 {
        books.contract(vec![requested(&api, "2026-01-01", "2026-01-31")]);
    }
    books.clock("2026-02-02T00:00:00Z");
    let whole = Books { bench: books.bench.fork() };
    let dry = Books { bench: books.bench.fork() };
    let in_parts = |books: &Books, dry_run: bool| {
        let (mut after, mut issued) = (None, Vec::new());
        loop {
            let left = Cell::new(1);
            let may_go_on = || left.replace(left.get() - 1) > 0;
            let wanted = BillingRunRequest { dry_run, trust_clock: false, after, may_go_on: &may_go_on };
            let report = run_billing(&books.bench.services, &books.bench.principal, wanted).expect("a run");
            assert!(report.failed.is_empty() && report.issued.len() <= 50, "{report:?}");
            issued.push(report.issued.len());
            after = report.next;
            if after.is_none() {
                return issued;
            }
        }
    };
    assert_eq!(in_parts(&dry, true), [50, 50, 20]);
    assert_eq!(in_parts(&books, false), [50, 50, 20]);
    run_billing(&whole.bench.services, &whole.bench.principal, BillingRunRequest::whole(false)).expect("a run");
    assert_eq!(books.documents(), whole.documents());
}

#[test]
fn a_run_in_one_transaction_ends_after_500_contracts_and_goes_on_under_another_key() {
    let books = Books::at("2025-12-20T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "10.00")]);
    for _ in 0..501 {
        books.contract(vec![requested(&api, "2026-01-01", "2026-01-31")]);
    }
    books.clock("2026-02-02T00:00:00Z");
    let bill = |key: &str, after: Option<RunCursor>, issued: usize| {
        let key = IdempotentRequest { use_case: UseCase::RunBilling, ..keyed(key) };
        let next = Cell::new(None);
        carry_out_in_parts(
            &books.bench.services,
            request(&books.bench, &key),
            |_| answer("done"),
            |transactions| {
                let wanted = BillingRunRequest { after, ..BillingRunRequest::whole(false) };
                let report = billing_run::run_billing(transactions, wanted)?;
                assert_eq!(report.issued.len(), issued);
                next.set(report.next);
                Ok(report)
            },
        )
        .expect("a run");
        next.get()
    };
    let next = bill("a", None, 500);
    assert!(next.is_some());
    assert_eq!(bill("b", next, 1), None);
}
