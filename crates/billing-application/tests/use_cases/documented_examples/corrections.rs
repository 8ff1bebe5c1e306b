//! Section 5.

use billing_application::UseCase;
use billing_application::usage::{EventAction, event_history};
use billing_testkit::fixtures::{self, fixed, graduated, per_unit, requested, volume};

use crate::books::{Books, THREE_TIERS, code};
use crate::documented_examples::page::Page;
use crate::support::read;

/// Returns books with one event of 1,000 calls at 0.01 in January, issued on 1 February.
fn january() -> (Books, billing_domain::refs::EventRef) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "0.01")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    let event = books.calls("2026-01-20T12:00:00Z", "1000");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-05T12:00:00Z");
    (books, event)
}

pub(crate) fn example_5_1_late_usage_is_a_debit(page: &mut Page) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "0.01")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.tax = Some(fixtures::percent("19"));
    books.contract(vec![product]);
    books.calls("2026-01-20T12:00:00Z", "1000");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-05T12:00:00Z");
    books.calls("2026-01-25T12:00:00Z", "300");
    books.calls("2026-01-26T12:00:00Z", "200");
    page.shows(&books.documents());
    books.bill("2026-02-05T23:59:59Z");
    assert!(books.documents().contains("UB-DBT-1 DRAFT"));
    books.bill("2026-02-06T00:00:00Z");
    page.shows(&books.only(&["UB-DBT-1"]));
}

pub(crate) fn example_5_2_less_usage_is_a_credit(page: &mut Page) {
    let (books, event) = january();
    books.update(event, None, Some("400"));
    books.bill("2026-02-06T00:00:00Z");
    page.shows(&books.documents());
    page.says(&books.numbers_of(event));
}

pub(crate) fn example_5_3_a_new_timestamp_moves_an_event_to_another_period(page: &mut Page) {
    let (books, event) = january();
    books.update(event, Some("2026-02-01T00:30:00Z"), None);
    page.shows(&books.documents());
    assert_eq!(books.numbers_of(event), "UB-INV-2");
}

pub(crate) fn example_5_4_late_usage_eats_the_minimum_fee_first(page: &mut Page) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let fee = Some(fixtures::price("10.00"));
    let api = books.pricing_with("api", vec![per_unit("calls", "0.01")], |content| content.minimum_fee = fee);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.calls("2026-01-20T12:00:00Z", "735");
    books.bill("2026-02-01T02:00:00Z");
    page.shows(&books.documents());
    books.clock("2026-02-05T12:00:00Z");
    books.calls("2026-01-25T12:00:00Z", "200");
    page.shows(&books.only(&["UB-DBT-1"]));
    books.calls("2026-01-26T12:00:00Z", "200");
    page.shows(&books.only(&["UB-DBT-1"]));
}

pub(crate) fn example_5_5_a_credit_that_came_to_be_a_debit(page: &mut Page) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let tiers = &[(Some("100"), "1.00", "0"), (None, "0.50", "0")];
    let api = books.pricing("api", vec![volume("calls", tiers)]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.calls("2026-01-20T12:00:00Z", "100");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-05T12:00:00Z");
    let late = books.calls("2026-01-25T12:00:00Z", "20");
    page.shows(&books.documents());
    books.update(late, None, Some("300"));
    books.bill("2026-02-06T00:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_5_6_a_void_invoice_is_billed_again(page: &mut Page) {
    let (books, _) = january();
    books.void("UB-INV-1").expect("a voided document");
    books.calls("2026-01-25T12:00:00Z", "500");
    books.bill("2026-02-05T12:01:00Z");
    page.shows(&books.documents());
    books.pay("UB-INV-2", "5").expect("a payment");
    page.says(&code(books.void("UB-INV-2")));
}

pub(crate) fn example_5_7_a_deleted_event_keeps_its_history(page: &mut Page) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00"), per_unit("calls", "0.01")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    let event = books.calls("2026-01-20T12:00:00Z", "1000");
    books.clock("2026-01-21T12:00:00Z");
    books.update(event, None, Some("800"));
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-05T12:00:00Z");
    books.delete(event);
    page.shows(&books.documents());
    let history = read(&books.bench.services, &books.bench.principal, UseCase::GetEventHistory, |cx| event_history(cx, event))
        .expect("a history");
    let rows = history.iter().map(|revision| {
        let action = match revision.action {
            EventAction::Created => "CREATED",
            EventAction::Updated => "UPDATED",
            EventAction::Deleted => "DELETED",
        };
        let event = &revision.event;
        format!(
            "{} {action} {}, quantity {}, on {}",
            event.revision,
            revision.changed_at,
            event.quantity.as_decimal(),
            revision.document_number
        )
    });
    page.shows(&rows.collect::<Vec<_>>().join("\n"));
}

pub(crate) fn example_5_8_late_usage_is_priced_by_the_tier_it_reaches(page: &mut Page) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let api = books.pricing("api", vec![graduated("calls", THREE_TIERS)]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.calls("2026-01-20T12:00:00Z", "900");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-05T12:00:00Z");
    books.calls("2026-01-25T12:00:00Z", "200");
    page.shows(&books.documents());
}
