//! Several events in one transaction, and events under a key.

use billing_application::UseCase;
use billing_application::catalog::{create_usage_product, edit_usage_product};
use billing_application::error::UseCaseError;
use billing_application::usage::{Atomicity, IngestOutcome, NamedCustomer, NamedUsageProduct, NewUsageEvent, delete_event};
use billing_domain::catalog::UsageProductProfile;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::Purpose;
use billing_domain::idempotency::{BodyHash, IdempotencyKey};
use billing_domain::party::NetTerms;
use billing_domain::patch::Changes;
use billing_domain::refusal::MatchRefusal;
use billing_domain::usage::{EventKey, Validations};
use billing_testkit::fixtures::{self, graduated, per_unit, requested};

use crate::books::{Books, THREE_TIERS, calls, code};
use crate::support::run;

fn january(net_terms: NetTerms) -> Books {
    let books = Books::at("2026-01-20T12:00:00Z");
    let api = books.pricing("api", vec![graduated("calls", THREE_TIERS)]);
    let mut product = requested(&api, "2026-01-01", "2026-02-28");
    (product.net_terms, product.payment_time) = (Some(net_terms), Some(PaymentTime::AfterUse));
    books.contract(vec![product]);
    books
}

fn under(key: &str, body: u8, event: NewUsageEvent) -> NewUsageEvent {
    let key = IdempotencyKey::parse(key).expect("a key");
    NewUsageEvent { sent: Some(EventKey { key, body: BodyHash([body; 32]) }), ..event }
}

/// Formats an outcome: the document number, with `=` before a replayed one, or the reason for a rejection.
fn word(outcome: &Result<IngestOutcome, UseCaseError>) -> String {
    match outcome {
        Ok(IngestOutcome::Recorded(view)) => view.document_numbers.to_string(),
        Ok(IngestOutcome::Replayed(answer)) => format!("={answer}"),
        Err(UseCaseError::NoMatch(MatchRefusal::NoMatchingContract)) => "no contract".to_owned(),
        Err(UseCaseError::Invalid(violations)) => violations.iter().map(|v| v.code).collect::<Vec<_>>().join(", "),
        Err(UseCaseError::AmountOutOfRange(_)) => "out of range".to_owned(),
        Err(UseCaseError::IdempotencyKeyReuse) => "reuse".to_owned(),
        Err(UseCaseError::Conflict { code, .. }) => (*code).to_owned(),
        Err(other) => panic!("{other:?}"),
    }
}

fn words(books: &Books, events: &[NewUsageEvent], neighbours: Atomicity) -> Vec<String> {
    books.slice(events, neighbours).iter().map(word).collect()
}

const DAY: &str = "2026-01-10T00:00:00Z";

#[test]
fn each_event_of_a_slice_has_its_own_outcome_in_its_own_place() {
    let books = january(NetTerms::Days(14));
    let unknown = |customer: &str, product: &str| NewUsageEvent {
        customer: NamedCustomer::Ref(fixtures::customer_ref(customer)),
        usage_product: NamedUsageProduct::Ref(fixtures::usage_product_ref(product)),
        ..calls(DAY, "1")
    };
    let events = [
        calls("2026-01-20T12:05:01Z", "1"),
        calls(DAY, "60"),
        unknown("nobody", "calls"),
        calls("2025-12-31T23:59:59Z", "1"),
        NewUsageEvent { customer: NamedCustomer::Name(fixtures::line("nobody")), ..unknown("acme", "nothing") },
        calls("2026-01-11T00:00:00Z", "90"),
    ];
    let expected = [
        "timestamp_in_future",
        "UB-INV-1",
        "unknown_reference",
        "no contract",
        "unknown_reference, unknown_reference",
        "UB-INV-1",
    ];
    assert_eq!(words(&books, &events, Atomicity::PerEvent), expected);
    assert_eq!(books.documents(), "UB-INV-1 DRAFT\n  2026-01-01…2026-01-31 calls × 150: 12.50\n  total 12.50 EUR");
}

#[test]
fn an_event_too_large_for_its_document_is_refused_alone_and_takes_no_number() {
    for net_terms in [NetTerms::Days(14), NetTerms::DueUponUsage] {
        let books = january(net_terms);
        let gold = fixtures::usage_product("gold");
        run(&books.bench.services, &books.bench.principal, UseCase::CreateUsageProduct, |cx| {
            create_usage_product(cx, Some(gold.usage_product_ref.clone()), gold.profile)
        })
        .expect("a usage product");
        let dear = books.pricing("dear", vec![per_unit("gold", "99999999")]);
        let mut product = requested(&dear, "2026-01-01", "2026-02-28");
        product.net_terms = Some(net_terms);
        books.contract(vec![product]);
        let gold = |quantity: &str| NewUsageEvent {
            usage_product: NamedUsageProduct::Ref(gold.usage_product_ref.clone()),
            ..calls(DAY, quantity)
        };
        let events = [gold("999999999999999"), gold("1"), gold("999999999999999"), gold("1"), calls(DAY, "1")];
        let found = words(&books, &events, Atomicity::PerEvent);
        let expected = match net_terms {
            NetTerms::DueUponUsage => ["out of range", "UB-INV-2", "out of range", "UB-INV-3", "UB-INV-5"],
            _ => ["out of range", "UB-INV-1", "out of range", "UB-INV-1", "UB-INV-2"],
        };
        assert_eq!(found, expected);
        let documents = books.bench.documents();
        let children = documents.iter().filter(|document| document.purpose == Purpose::Usage).count();
        let last = if net_terms == NetTerms::DueUponUsage { 5 } else { 2 };
        assert_eq!((documents.len(), children), (last, if last == 5 { 3 } else { 0 }));
    }
}

#[test]
fn a_refused_event_stores_nothing_and_takes_no_number() {
    let books = january(NetTerms::Days(14));
    let before = books.bench.store.contents();
    let wrong = Validations { currency: Some(fixtures::currency("USD")), entity_ref: None };
    assert_eq!(code(books.report(DAY, "1", Some(wrong))), "validation_mismatch");
    assert_eq!(code(books.report("2025-12-31T23:59:59Z", "1", None)), "no_matching_contract");
    assert_eq!(code(books.report("2026-01-20T12:05:01Z", "1", None)), "timestamp_in_future");
    assert_eq!(books.bench.store.contents(), before);
}

#[test]
fn all_or_none_stores_nothing_when_one_is_refused() {
    let books = january(NetTerms::Days(14));
    let before = books.bench.store.contents();
    let events = [under("k", 1, calls(DAY, "60")), calls("2027-01-01T00:00:00Z", "1"), calls(DAY, "1")];
    let refused = books.try_slice(&events, Atomicity::Atomic).expect_err("one event is rejected");
    let UseCaseError::EventsRefused(refused) = refused else { panic!("{refused:?}") };
    let refused: Vec<(Option<usize>, String)> =
        refused.into_iter().map(|(place, error)| (place.index, word(&Err(error)))).collect();
    assert_eq!(refused, [(Some(1), "timestamp_in_future".to_owned())]);
    assert_eq!(books.bench.store.contents(), before);
    let taken = [under("k", 1, calls(DAY, "60")), calls(DAY, "1")];
    assert_eq!(words(&books, &taken, Atomicity::Atomic), ["UB-INV-1", "UB-INV-1"]);
}

#[test]
fn an_event_is_taken_once_under_its_key_whatever_happens_to_it_later() {
    let books = january(NetTerms::Days(14));
    let event = || under("k", 1, calls(DAY, "60"));
    let IngestOutcome::Recorded(view) = books.slice(&[event()], Atomicity::PerEvent).remove(0).expect("a new event") else {
        panic!("expected a new event")
    };
    assert_eq!(words(&books, &[event(), calls(DAY, "1")], Atomicity::PerEvent), ["=UB-INV-1", "UB-INV-1"]);
    assert_eq!(words(&books, &[under("k", 2, calls(DAY, "60"))], Atomicity::PerEvent), ["reuse"]);
    run(&books.bench.services, &books.bench.principal, UseCase::DeleteEvent, |cx| delete_event(cx, view.event.event_ref))
        .expect("a deleted event");
    books.bill("2026-02-01T02:00:00Z");
    assert_eq!(words(&books, &[event()], Atomicity::Atomic), ["=UB-INV-1"]);
    assert_eq!(
        books.documents(),
        "UB-INV-1 ISSUED, issued 2026-02-01, due 2026-02-15\n  2026-01-01…2026-01-31 calls × 1: 0.10\n  total 0.10 EUR"
    );
}

#[test]
fn a_repeat_is_known_though_its_usage_product_has_another_name_now() {
    let books = january(NetTerms::Days(14));
    let by_name = || {
        let usage_product = NamedUsageProduct::Name(fixtures::usage_product("calls").profile.name);
        under("k", 1, NewUsageEvent { usage_product, ..calls(DAY, "1") })
    };
    assert_eq!(words(&books, &[by_name()], Atomicity::PerEvent), ["UB-INV-1"]);
    let rename = Changes::of(|profile: &mut UsageProductProfile| profile.name = fixtures::line("Renamed"));
    let product = fixtures::usage_product_ref("calls");
    run(&books.bench.services, &books.bench.principal, UseCase::EditUsageProduct, |cx| edit_usage_product(cx, &product, &rename))
        .expect("a usage product");
    assert_eq!(words(&books, &[by_name()], Atomicity::PerEvent), ["=UB-INV-1"]);
}

#[test]
fn a_refused_event_does_not_use_its_key_up() {
    let books = january(NetTerms::Days(14));
    assert_eq!(words(&books, &[under("k", 1, calls("2025-01-01T00:00:00Z", "1"))], Atomicity::PerEvent), ["no contract"]);
    assert_eq!(words(&books, &[under("k", 2, calls(DAY, "1"))], Atomicity::PerEvent), ["UB-INV-1"]);
}

#[test]
fn repeats_within_a_slice_share_the_outcome_of_the_first() {
    let books = january(NetTerms::Days(14));
    let early = || calls("2025-01-01T00:00:00Z", "1");
    let events = [
        under("a", 1, calls(DAY, "60")),
        under("b", 1, early()),
        under("a", 1, calls(DAY, "60")),
        under("a", 2, calls(DAY, "61")),
        under("b", 1, early()),
        under("c", 1, calls(DAY, "1")),
    ];
    let expected = ["UB-INV-1", "no contract", "=UB-INV-1", "reuse", "repeats_refused_event", "UB-INV-1"];
    assert_eq!(words(&books, &events, Atomicity::PerEvent), expected);
    assert!(books.documents().contains("calls × 61: 6.10"));
}

#[test]
fn late_events_of_a_slice_are_adjustments_like_those_that_come_alone() {
    let (alone, together) = (january(NetTerms::Days(14)), january(NetTerms::Days(14)));
    let late: Vec<NewUsageEvent> = ["95", "10", "0", "1000"].map(|quantity| calls(DAY, quantity)).into();
    for books in [&alone, &together] {
        books.calls(DAY, "1");
        books.bill("2026-02-01T02:00:00Z");
    }
    for event in &late {
        alone.slice(std::slice::from_ref(event), Atomicity::PerEvent);
    }
    assert_eq!(words(&together, &late, Atomicity::PerEvent), ["UB-DBT-1"; 4]);
    assert_eq!(together.documents(), alone.documents());
}
