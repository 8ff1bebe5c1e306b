//! Several events in one transaction, and events under a key.

use billing_application::UseCase;
use billing_application::catalog::{create_usage_product, edit_usage_product};
use billing_application::error::UseCaseError;
use billing_application::usage::{
    Atomicity, IngestOutcome, NamedCustomer, NamedUsageProduct, NewUsageEvent, OnConflict, delete_event,
};
use billing_domain::catalog::UsageProductProfile;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::Purpose;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::party::NetTerms;
use billing_domain::patch::Changes;
use billing_domain::refusal::MatchRefusal;
use billing_domain::usage::Validations;
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

fn under(key: &str, event: NewUsageEvent) -> NewUsageEvent {
    let key = IdempotencyKey::parse(key).expect("a key");
    NewUsageEvent { key: Some(key), ..event }
}

/// Formats an outcome: the document number, with `=` before a replayed one, or the reason for a rejection.
fn word(outcome: &Result<IngestOutcome, UseCaseError>) -> String {
    match outcome {
        Ok(IngestOutcome::Recorded(view)) => view.document_numbers.to_string(),
        Ok(IngestOutcome::Replayed(answer)) => format!("={answer}"),
        Ok(IngestOutcome::Updated(view)) => format!("~{}", view.document_numbers),
        Err(UseCaseError::NoMatch(MatchRefusal::NoMatchingContract)) => "no contract".to_owned(),
        Err(UseCaseError::Invalid(violations)) => violations.iter().map(|v| v.code).collect::<Vec<_>>().join(", "),
        Err(UseCaseError::AmountOutOfRange(_)) => "out of range".to_owned(),
        Err(UseCaseError::EventChanged(_)) => "reuse".to_owned(),
        Err(UseCaseError::EventDeleted(_)) => "deleted".to_owned(),
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
    let events = [under("k", calls(DAY, "60")), calls("2027-01-01T00:00:00Z", "1"), calls(DAY, "1")];
    let refused = books.try_slice(&events, Atomicity::Atomic).expect_err("one event is rejected");
    let UseCaseError::EventsRefused(refused) = refused else { panic!("{refused:?}") };
    let refused: Vec<(Option<usize>, String)> =
        refused.into_iter().map(|(place, error)| (place.index, word(&Err(error)))).collect();
    assert_eq!(refused, [(Some(1), "timestamp_in_future".to_owned())]);
    assert_eq!(books.bench.store.contents(), before);
    let taken = [under("k", calls(DAY, "60")), calls(DAY, "1")];
    assert_eq!(words(&books, &taken, Atomicity::Atomic), ["UB-INV-1", "UB-INV-1"]);
}

#[test]
fn an_event_is_taken_once_under_its_key_whatever_happens_to_it_later() {
    let books = january(NetTerms::Days(14));
    let event = || under("k", calls(DAY, "60"));
    let IngestOutcome::Recorded(view) = books.slice(&[event()], Atomicity::PerEvent).remove(0).expect("a new event") else {
        panic!("expected a new event")
    };
    assert_eq!(words(&books, &[event(), calls(DAY, "1")], Atomicity::PerEvent), ["=UB-INV-1", "UB-INV-1"]);
    assert_eq!(words(&books, &[under("k", calls(DAY, "61"))], Atomicity::PerEvent), ["reuse"]);
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
        under("k", NewUsageEvent { usage_product, ..calls(DAY, "1") })
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
    assert_eq!(words(&books, &[under("k", calls("2025-01-01T00:00:00Z", "1"))], Atomicity::PerEvent), ["no contract"]);
    assert_eq!(words(&books, &[under("k", calls(DAY, "1"))], Atomicity::PerEvent), ["UB-INV-1"]);
}

#[test]
fn repeats_within_a_slice_share_the_outcome_of_the_first() {
    let books = january(NetTerms::Days(14));
    let early = || calls("2025-01-01T00:00:00Z", "1");
    let events = [
        under("a", calls(DAY, "60")),
        under("b", early()),
        under("a", calls(DAY, "60")),
        under("a", calls(DAY, "61")),
        under("b", early()),
        under("c", calls(DAY, "1")),
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

/// Delivers an event under a key, with [`OnConflict::Update`].
fn delivered(key: &str, event: NewUsageEvent) -> NewUsageEvent {
    NewUsageEvent { on_conflict: OnConflict::Update, ..under(key, event) }
}

fn total(books: &Books) -> String {
    books.documents().lines().filter(|line| line.contains("total") || line.starts_with("UB")).collect::<Vec<_>>().join(" ")
}

fn deliver(books: &Books, quantity: &str) -> String {
    words(books, &[delivered("r1", calls(DAY, quantity))], Atomicity::PerEvent).remove(0)
}

#[test]
fn a_corrected_record_updates_its_event_and_the_last_delivery_wins() {
    let books = january(NetTerms::Days(14));
    assert_eq!([deliver(&books, "5"), deliver(&books, "7"), deliver(&books, "7")], ["UB-INV-1", "~UB-INV-1", "=UB-INV-1"]);
    assert_eq!(total(&books), "UB-INV-1 DRAFT   total 0.70 EUR");
    // Somebody corrects the event by hand. The record that was delivered last stays a repeat.
    let event_ref = books.only_event();
    books.update(event_ref, None, Some("8"));
    assert_eq!(deliver(&books, "7"), "=UB-INV-1");
    assert_eq!(total(&books), "UB-INV-1 DRAFT   total 0.80 EUR");
    assert_eq!(deliver(&books, "9"), "~UB-INV-1");
    assert_eq!(total(&books), "UB-INV-1 DRAFT   total 0.90 EUR");
    // Without the parameter, a correction is refused, and the last delivered record is a repeat.
    assert_eq!(words(&books, &[under("r1", calls(DAY, "7"))], Atomicity::PerEvent), ["reuse"]);
    assert_eq!(words(&books, &[under("r1", calls(DAY, "9"))], Atomicity::PerEvent), ["=UB-INV-1"]);
}

#[test]
fn corrections_of_billed_records_are_adjustments() {
    let books = january(NetTerms::Days(14));
    deliver(&books, "5");
    books.bill("2026-02-01T02:00:00Z");
    assert_eq!(deliver(&books, "7"), "~UB-INV-1, UB-DBT-1");
    books.bill("2026-03-01T02:00:00Z");
    assert_eq!(deliver(&books, "5"), "~UB-INV-1, UB-DBT-1, UB-CRD-1");
    assert_eq!(deliver(&books, "5"), "=UB-INV-1, UB-DBT-1, UB-CRD-1");
    let totals = total(&books);
    assert!(totals.contains("total 0.50 EUR") && totals.matches("total 0.20 EUR").count() == 2, "{totals}");
}

#[test]
fn records_of_one_slice_follow_each_other() {
    let books = january(NetTerms::Days(14));
    let record = |quantity: &str| delivered("r1", calls(DAY, quantity));
    let slice = [record("5"), record("6"), delivered("r2", calls(DAY, "1")), record("5"), record("5"), record("7")];
    let expected = ["UB-INV-1", "~UB-INV-1", "UB-INV-1", "~UB-INV-1", "=UB-INV-1", "~UB-INV-1"];
    assert_eq!(words(&books, &slice, Atomicity::PerEvent), expected);
    assert_eq!(total(&books), "UB-INV-1 DRAFT   total 0.80 EUR");
    // A refused first record doesn't use the key up.
    let early = delivered("r3", calls("2025-01-01T00:00:00Z", "1"));
    assert_eq!(words(&books, &[early, delivered("r3", calls(DAY, "2"))], Atomicity::PerEvent), ["no contract", "UB-INV-1"]);
    assert_eq!(total(&books), "UB-INV-1 DRAFT   total 1.00 EUR");
    // All or none.
    let slice = [record("8"), calls("2025-01-01T00:00:00Z", "1")];
    assert!(
        matches!(books.try_slice(&slice, Atomicity::Atomic), Err(UseCaseError::EventsRefused(refused)) if refused.len() == 1)
    );
    assert_eq!(total(&books), "UB-INV-1 DRAFT   total 1.00 EUR");
    assert_eq!(words(&books, &[record("8"), calls(DAY, "1")], Atomicity::Atomic), ["~UB-INV-1", "UB-INV-1"]);
    assert_eq!(total(&books), "UB-INV-1 DRAFT   total 1.20 EUR");
}

#[test]
fn a_delivery_changes_neither_the_usage_product_nor_a_deleted_event() {
    let books = january(NetTerms::Days(14));
    deliver(&books, "5");
    let usage_product = NamedUsageProduct::Ref(fixtures::usage_product_ref("storage"));
    let other = delivered("r1", NewUsageEvent { usage_product, ..calls(DAY, "5") });
    assert_eq!(words(&books, &[other], Atomicity::PerEvent), ["not_changeable"]);
    assert_eq!(words(&books, &[delivered("r1", calls("2025-01-01T00:00:00Z", "5"))], Atomicity::PerEvent), ["no contract"]);
    let event_ref = books.only_event();
    run(&books.bench.services, &books.bench.principal, UseCase::DeleteEvent, |cx| delete_event(cx, event_ref)).expect("deleted");
    assert_eq!([deliver(&books, "6"), deliver(&books, "5")], ["deleted", "=UB-INV-1"]);
    assert_eq!(total(&books), "UB-INV-1 DRAFT   total 0.00 EUR");
}
