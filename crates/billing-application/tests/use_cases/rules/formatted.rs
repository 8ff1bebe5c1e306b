//! Formatted mode: events that a format maps are recorded, changed and replayed like other events.

use billing_application::UseCase;
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::formats::{FormatContent, NamedFormat, create_format};
use billing_application::usage::{
    EventUpdate, EventView, FormattedUpdate, IngestOutcome, NewUsageEvent, OnConflict, RecordEvents, SentRecord, event_history,
    format_of_events, map_record, map_update, of_mapped, record_event, update_event,
};
use billing_domain::format::{FormatMapping, MappedRecord};
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::refs::EventRef;
use billing_testkit::fixtures::{self, currency, expression, per_unit, requested};

use crate::books::{Books, NUMBERS, code};
use crate::rules::assert_documents;
use crate::support::{read, run};

/// Returns a contract for calls at 0.10 EUR in 2026, a contract for calls at 0.20 USD from February on, and a format that
/// reads the currency from the event.
fn two_contracts() -> Books {
    let books = Books::at("2026-02-20T12:00:00Z");
    let euros = books.pricing("euros", vec![per_unit("calls", "0.10")]);
    let dollars = books.pricing_with("dollars", vec![per_unit("calls", "0.20")], |content| content.currency = currency("USD"));
    books.contract(vec![requested(&euros, "2026-01-01", "2026-12-31")]);
    books.contract(vec![requested(&dollars, "2026-02-01", "2026-12-31")]);
    let mapping = FormatMapping { currency: Some(expression(r#"get(event, "currency")"#)), ..fixtures::mapping() };
    let reference = Some(fixtures::format_ref("log"));
    let content = FormatContent { name: fixtures::line("Log"), mapping };
    run(&books.bench.services, &books.bench.principal, UseCase::CreateFormat, |cx| create_format(cx, reference, content))
        .expect("a format");
    books
}

fn log() -> NamedFormat {
    NamedFormat::Name(fixtures::line("Log"))
}

fn event(at: &str, much: u32, currency: &str) -> String {
    format!(r#"{{"at": "{at}", "who": "acme", "what": "calls", "much": {much}, "currency": "{currency}"}}"#)
}

/// Maps a record by the format with a name.
fn mapped(books: &Books, format: &NamedFormat, event: &str, key: Option<IdempotencyKey>) -> UseCaseResult<RecordEvents> {
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let record = SentRecord {
        event: event.to_owned(),
        key,
        on_conflict: OnConflict::Reject,
        occurred: false,
        hold_ref: None,
        time_of_receipt: None,
    };
    map_record(services, &format_of_events(services, principal, format)?.0, &record)
}

fn report(books: &Books, event: &str, key: Option<IdempotencyKey>) -> UseCaseResult<IngestOutcome> {
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let MappedRecord::Event(event) = mapped(books, &log(), event, key)? else { panic!("one event") };
    let event = *event;
    run(services, principal, UseCase::RecordUsage, |cx| record_event(cx, event, NUMBERS).map_err(of_mapped))
}

fn taken(books: &Books, event: &str) -> EventRef {
    report(books, event, None).expect("an accepted event").now().expect("a new event").event.event_ref
}

fn update(books: &Books, event_ref: EventRef, event: &str) -> UseCaseResult<EventView> {
    let update = FormattedUpdate { event_ref, format: None, event: event.to_owned() };
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let update = map_update(services, principal, &update)?;
    run(services, principal, UseCase::UpdateEvent, |cx| update_event(cx, event_ref, &update).map_err(of_mapped))
}

/// Returns the error code of a rejected mapped event.
#[track_caller]
fn mapped_code(refused: UseCaseResult<EventView>) -> String {
    match refused {
        Err(UseCaseError::Mapped(refusal)) => code::<EventView>(Err(*refusal)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_update_moves_an_event_to_the_contract_that_its_new_checks_ask_for() {
    let books = two_contracts();
    let event_ref = taken(&books, &event("2026-01-15T00:00:00Z", 100, "EUR"));
    let moved = update(&books, event_ref, &event("2026-02-15T00:00:00Z", 50, "USD")).expect("a contract in dollars");
    assert_eq!(moved.event.validations.and_then(|checks| checks.currency), Some(currency("USD")));
    assert_documents(
        &books,
        &[
            "UB-INV-1 DRAFT | 2026-01-01…2026-01-31 calls × 0: 0.00 | total 0.00 EUR",
            "UB-INV-2 DRAFT | 2026-02-01…2026-02-28 calls × 50: 10.00 | total 10.00 USD",
        ],
    );
}

#[test]
fn an_update_at_the_same_time_moves_to_the_contract_that_its_new_checks_ask_for() {
    let books = two_contracts();
    let event_ref = taken(&books, &event("2026-02-15T00:00:00Z", 100, "EUR"));
    update(&books, event_ref, &event("2026-02-15T00:00:00Z", 100, "USD")).expect("a contract in dollars");
    assert_eq!(books.numbers_of(event_ref), "UB-INV-2");
    let before = books.bench.store.contents();
    let refused = update(&books, event_ref, &event("2026-01-15T00:00:00Z", 100, "USD"));
    assert_eq!(mapped_code(refused), "validation_mismatch");
    assert_eq!(books.bench.store.contents(), before);
}

#[test]
fn a_repeat_under_a_key_is_answered_with_the_first_answer() {
    let books = two_contracts();
    let key = IdempotencyKey::parse("k").expect("a key");
    let sent = || Some(key.clone());
    let text = event("2026-01-15T00:00:00Z", 100, "EUR");
    assert!(matches!(report(&books, &text, sent()), Ok(IngestOutcome::Recorded(_))));
    assert!(matches!(report(&books, &text, sent()), Ok(IngestOutcome::Replayed(answer)) if answer == "UB-INV-1"));
    let other = event("2026-01-15T00:00:00Z", 101, "EUR");
    assert!(matches!(report(&books, &other, sent()), Err(UseCaseError::EventChanged(_))));
    assert_documents(&books, &["UB-INV-1 DRAFT | 2026-01-01…2026-01-31 calls × 100: 10.00 | total 10.00 EUR"]);
}

#[test]
fn every_revision_says_how_it_came_in() {
    let books = two_contracts();
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let first = event("2026-01-15T00:00:00Z", 100, "EUR");
    let event_ref = taken(&books, &first);
    let quantity = |quantity: &str| EventUpdate { quantity: Some(fixtures::quantity(quantity)), ..EventUpdate::default() };
    run(services, principal, UseCase::UpdateEvent, |cx| update_event(cx, event_ref, &quantity("100"))).expect("no change");
    run(services, principal, UseCase::UpdateEvent, |cx| update_event(cx, event_ref, &quantity("90"))).expect("a change");
    let third = event("2026-01-15T00:00:00Z", 80, "EUR");
    update(&books, event_ref, &third).expect("a change");
    update(&books, event_ref, &third).expect("no change");
    let revisions = read(services, principal, UseCase::GetEventHistory, |cx| event_history(cx, event_ref)).expect("a history");
    let came_in: Vec<Option<String>> =
        revisions.into_iter().map(|revision| revision.item.event.formatted.map(|source| source.raw_event)).collect();
    assert_eq!(came_in, [Some(first), None, Some(third)]);
}

#[test]
fn an_event_that_no_format_processed_needs_one_to_be_formatted() {
    let books = two_contracts();
    let event_ref = books.calls("2026-01-15T00:00:00Z", "10");
    assert_eq!(code(update(&books, event_ref, &event("2026-01-15T00:00:00Z", 1, "EUR"))), "required");
}

fn under(key: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey::parse(key).expect(key))
}

/// Returns the keys of a record's events, `-` for an event without a key and `skipped` for a skipped element.
fn keys(record: RecordEvents) -> Vec<String> {
    let shown = |event: &NewUsageEvent| event.key.as_ref().map_or("-".to_owned(), |key| key.as_str().to_owned());
    match record {
        MappedRecord::Skipped => vec![],
        MappedRecord::Event(event) => vec![shown(&event)],
        MappedRecord::Elements(elements) => elements
            .iter()
            .map(|element| element.as_ref().expect("mapped").as_ref().map_or("skipped".to_owned(), shown))
            .collect(),
    }
}

/// Creates a format of records with a list, a condition and a key.
fn list_format(books: &Books) -> NamedFormat {
    let mapping = FormatMapping {
        quantity: expression("item.much"),
        idempotency_key: Some(expression(r#"get(item, "id")"#)),
        skip_if: Some(expression("item.much == 0")),
        for_each: Some(expression("event.list")),
        ..fixtures::mapping()
    };
    let content = FormatContent { name: fixtures::line("List"), mapping };
    run(&books.bench.services, &books.bench.principal, UseCase::CreateFormat, |cx| create_format(cx, None, content))
        .expect("a format");
    NamedFormat::Name(fixtures::line("List"))
}

fn list(elements: &str) -> String {
    format!(r#"{{"at": "2026-01-10T00:00:00Z", "who": "acme", "what": "calls", "list": [{elements}]}}"#)
}

#[test]
fn the_key_of_an_element_is_that_of_its_format_or_the_records_with_its_number() {
    let books = two_contracts();
    let format = list_format(&books);
    let events = list(r#"{"much": 1}, {"much": 0, "id": "z"}, {"much": 2, "id": "e-2"}, {"much": 3, "id": 4}"#);
    let keyed = mapped(&books, &format, &events, under("k")).expect("mapped");
    assert_eq!(keys(keyed), ["k#0", "skipped", "e-2", "4"]);
    let keyless = mapped(&books, &format, &events, None).expect("mapped");
    assert_eq!(keys(keyless), ["-", "skipped", "e-2", "4"]);
    assert_eq!(keys(mapped(&books, &format, &list(""), under("k")).expect("skipped")), [""; 0]);
    for (chars, is_key) in [(252, true), (254, false)] {
        let record = mapped(&books, &format, &events, under(&"k".repeat(chars))).expect("mapped");
        let MappedRecord::Elements(mut elements) = record else { panic!("a list") };
        match elements.swap_remove(0) {
            Ok(_) => assert!(is_key, "{chars}"),
            refused => assert_eq!(code(refused), "invalid_format", "{chars}"),
        }
    }
}

#[test]
fn an_update_needs_a_format_that_gives_one_event() {
    let books = two_contracts();
    let event_ref = taken(&books, &event("2026-01-10T00:00:00Z", 5, "EUR"));
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let update = FormattedUpdate { event_ref, format: Some(list_format(&books)), event: list(r#"{"much": 1}"#) };
    let refused = map_update(services, principal, &update).expect_err("several events");
    let UseCaseError::FormatFailed { errors, .. } = refused else { panic!("{refused:?}") };
    let expected =
        "for_each = event.list: an update needs the content of one event: use a format that gives one, or delete the event";
    assert_eq!(errors[0].to_string(), expected);
}
