//! Section 5: other documents correct issued documents.

use billing_application::UseCase;
use billing_application::error::UseCaseError;
use billing_application::usage::{EventAction, EventUpdate, event_history, get_event, update_event};
use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::DocumentState;
use billing_domain::patch::Patch;
use billing_domain::refs::EventRef;
use billing_domain::usage::Validations;
use billing_testkit::fixtures::{currency, fixed, per_unit, percent, requested, volume};

use crate::books::{Books, code};
use crate::rules::assert_documents;
use crate::support::{read, run};

/// Returns a contract for 2026 at 0.10 per call, with 100 calls in January, issued on 1 February. The date is 5 February.
fn january_issued() -> (Books, EventRef) {
    let books = Books::at("2026-01-15T00:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "0.10")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    let event = books.calls("2026-01-15T00:00:00Z", "100");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-05T12:00:00Z");
    (books, event)
}

const JANUARY: &str =
    "UB-INV-1 ISSUED, issued 2026-02-01, due 2026-04-02 | 2026-01-01…2026-01-31 calls × 100: 10.00 | total 10.00 EUR";

#[test]
fn a_late_event_is_a_debit_and_a_second_change_collects_on_it() {
    let (books, _) = january_issued();
    let late = books.calls("2026-01-20T00:00:00Z", "30");
    books.update(late, None, Some("50"));
    books.calls("2026-01-21T00:00:00Z", "5");
    assert_documents(&books, &[JANUARY, "UB-DBT-1 DRAFT, of UB-INV-1 | 2026-01-01…2026-01-31 calls × 55: 5.50 | total 5.50 EUR"]);
    assert_eq!(books.numbers_of(late), "UB-DBT-1");
}

#[test]
fn a_decrease_is_a_credit_that_is_issued_on_a_later_service_date() {
    let (books, event) = january_issued();
    books.update(event, None, Some("40"));
    books.bill("2026-02-05T23:59:59Z");
    let draft = "UB-CRD-1 DRAFT, of UB-INV-1 | 2026-01-01…2026-01-31 calls × 60: 6.00 | total 6.00 EUR";
    assert_documents(&books, &[JANUARY, draft]);
    books.bill("2026-02-06T00:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 PARTIALLY_PAID, issued 2026-02-01, due 2026-04-02 | 2026-01-01…2026-01-31 calls × 100: 10.00 | total 10.00 EUR, credits 6.00, left to pay 4.00",
            "UB-CRD-1 SETTLED, of UB-INV-1, issued 2026-02-06 | 2026-01-01…2026-01-31 calls × 60: 6.00 | total 6.00 EUR",
        ],
    );
    assert_eq!(books.numbers_of(event), "UB-INV-1, UB-CRD-1");
}

#[test]
fn an_increase_and_a_decrease_of_two_events_are_a_debit_and_a_credit() {
    let (books, event) = january_issued();
    books.calls("2026-01-20T00:00:00Z", "30");
    books.update(event, None, Some("90"));
    assert_documents(
        &books,
        &[
            JANUARY,
            "UB-DBT-1 DRAFT, of UB-INV-1 | 2026-01-01…2026-01-31 calls × 30: 3.00 | total 3.00 EUR",
            "UB-CRD-1 DRAFT, of UB-INV-1 | 2026-01-01…2026-01-31 calls × 10: 1.00 | total 1.00 EUR",
        ],
    );
}

#[test]
fn an_adjustment_has_its_parents_tax_and_discount() {
    let books = Books::at("2026-01-15T00:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "1.00")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    (product.tax, product.discount) = (Some(percent("19")), Some(percent("10")));
    books.contract(vec![product]);
    books.calls("2026-01-15T00:00:00Z", "1");
    books.bill("2026-02-01T02:00:00Z");
    books.calls("2026-01-16T00:00:00Z", "100");
    assert_eq!(
        books.only(&["UB-DBT-1"]),
        "UB-DBT-1 DRAFT, of UB-INV-1\n  2026-01-01…2026-01-31 calls × 100: 100.00\n  discount 10 %: -10.00\n  tax 19 % of 90.00: 17.10\n  total 107.10 EUR"
    );
}

#[test]
fn with_during_use_the_parent_is_the_invoice_that_billed_the_usage() {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "1.00"), per_unit("calls", "0.10")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.payment_time = Some(PaymentTime::DuringUse);
    books.contract(vec![product]);
    books.bill("2026-01-01T02:00:00Z");
    books.bill("2026-02-01T02:00:00Z");
    books.calls("2026-01-20T00:00:00Z", "30");
    let shown = books.only(&["UB-DBT-1"]);
    assert_eq!(shown, "UB-DBT-1 DRAFT, of UB-INV-2\n  2026-01-01…2026-01-31 calls × 30: 3.00\n  total 3.00 EUR");
}

#[test]
fn a_draft_of_the_wrong_sign_becomes_void_and_the_other_kind_takes_its_lines() {
    let books = Books::at("2026-01-15T00:00:00Z");
    let api = books.pricing("api", vec![volume("calls", &[(Some("100"), "1.00", "0"), (None, "0.50", "0")])]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.calls("2026-01-15T00:00:00Z", "100");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-05T12:00:00Z");
    // 150 cost 75.00: 25.00 less. Then 300 cost 150.00: 50.00 more than the invoice.
    let late = books.calls("2026-01-16T00:00:00Z", "50");
    books.update(late, None, Some("200"));
    assert!(books.documents().contains("UB-CRD-1 DRAFT, of UB-INV-1\n  2026-01-01…2026-01-31 calls × -200: -50.00"));
    books.bill("2026-02-06T00:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-02-01, due 2026-04-02 | 2026-01-01…2026-01-31 calls × 100: 100.00 | total 100.00 EUR",
            "UB-CRD-1 VOID, of UB-INV-1",
            "UB-DBT-1 ISSUED, of UB-INV-1, issued 2026-02-06, due 2026-04-07 | 2026-01-01…2026-01-31 calls × 200: 50.00 | total 50.00 EUR",
        ],
    );
    assert_eq!(books.numbers_of(late), "UB-DBT-1");
}

#[test]
fn a_voided_invoice_of_nothing_that_has_an_event_is_replaced_by_the_next_run() {
    let books = Books::at("2026-01-15T00:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "0.10")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-01-31")]);
    let event = books.calls("2026-01-15T00:00:00Z", "0");
    books.bill("2026-02-01T02:00:00Z");
    books.void("UB-INV-1").expect("a voided document");
    books.bill("2026-02-02T00:00:00Z");
    assert_eq!(books.numbers_of(event), "UB-INV-2");
}

#[test]
fn another_time_in_the_same_period_that_makes_no_difference_draws_up_nothing() {
    let (books, event) = january_issued();
    let before = books.documents();
    books.update(event, Some("2026-01-17T08:00:00Z"), None);
    books.bill("2026-02-20T00:00:00Z");
    assert_eq!(books.documents().matches("UB-").count(), before.matches("UB-").count());
    assert_eq!(books.numbers_of(event), "UB-INV-1");
}

#[test]
fn an_event_that_moves_to_another_period_settles_both() {
    let (books, event) = january_issued();
    books.update(event, Some("2026-02-03T00:00:00Z"), Some("70"));
    assert_documents(
        &books,
        &[
            JANUARY,
            "UB-CRD-1 DRAFT, of UB-INV-1 | 2026-01-01…2026-01-31 calls × 100: 10.00 | total 10.00 EUR",
            "UB-INV-2 DRAFT | 2026-02-01…2026-02-28 calls × 70: 7.00 | total 7.00 EUR",
        ],
    );
    assert_eq!(books.numbers_of(event), "UB-INV-2");
}

#[test]
fn an_event_that_no_contract_covers_any_more_stays_as_it_is() {
    let (books, event) = january_issued();
    let before = books.bench.store.contents();
    let update = billing_application::usage::EventUpdate {
        occurred_at: Some(billing_testkit::fixtures::at("2025-12-31T23:59:59Z")),
        ..billing_application::usage::EventUpdate::default()
    };
    let refused = run(&books.bench.services, &books.bench.principal, UseCase::UpdateEvent, |cx| update_event(cx, event, &update));
    assert_eq!(code(refused), "no_matching_contract");
    assert_eq!(books.bench.store.contents(), before);
}

#[test]
fn a_deleted_event_stops_counting_and_keeps_its_history() {
    let (books, event) = january_issued();
    books.delete(event);
    let credit = "UB-CRD-1 DRAFT, of UB-INV-1 | 2026-01-01…2026-01-31 calls × 100: 10.00 | total 10.00 EUR";
    assert_documents(&books, &[JANUARY, credit]);
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    assert!(matches!(read(services, principal, UseCase::GetEvent, |cx| get_event(cx, event)), Err(UseCaseError::Unknown(_))));
    let history = read(services, principal, UseCase::GetEventHistory, |cx| event_history(cx, event)).expect("a history");
    let reported: Vec<_> = history.iter().map(|revision| (revision.action, revision.document_number.to_string())).collect();
    assert_eq!(reported, [(EventAction::Created, "UB-INV-1".to_owned()), (EventAction::Deleted, "UB-CRD-1".to_owned())]);
}

#[test]
fn a_void_invoice_is_billed_again_with_everything() {
    let (books, event) = january_issued();
    books.void("UB-INV-1").expect("a voided document");
    books.bill("2026-02-05T12:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 VOID, issued 2026-02-01",
            "UB-INV-2 ISSUED, a replacement, issued 2026-02-05, due 2026-04-06 | 2026-01-01…2026-01-31 calls × 100: 10.00 | total 10.00 EUR",
        ],
    );
    assert_eq!(books.numbers_of(event), "UB-INV-2");
}

#[test]
fn a_void_needs_an_issued_document_without_dependents_and_payments() {
    let (books, _) = january_issued();
    books.calls("2026-02-02T00:00:00Z", "1");
    assert_eq!(code(books.void("UB-INV-2")), "not_issued");
    books.pay("UB-INV-1", "0.01").expect("a payment");
    assert_eq!(code(books.void("UB-INV-1")), "document_paid");
    let (books, _) = january_issued();
    books.calls("2026-01-20T00:00:00Z", "1");
    assert_eq!(code(books.void("UB-INV-1")), "document_has_dependents");
}

#[test]
fn a_usage_debit_with_an_adjustment_cannot_be_voided_though_both_name_the_invoice() {
    let books = Books::at("2026-01-15T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "1.00"), per_unit("calls", "0.10")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.payment_time = Some(PaymentTime::BeforeUse);
    books.contract(vec![product]);
    books.calls("2026-01-15T00:00:00Z", "100");
    books.bill("2026-02-01T02:00:00Z");
    books.calls("2026-01-16T00:00:00Z", "5");
    assert!(books.documents().contains("UB-DBT-2 DRAFT, of UB-INV-1"));
    assert_eq!(code(books.void("UB-DBT-1")), "document_has_dependents");
}

#[test]
fn payments_and_credits_make_state_paid_date_and_overdue() {
    let (books, event) = january_issued();
    let invoice = |books: &Books| books.bench.documents().remove(0);
    assert_eq!(invoice(&books).state, DocumentState::Issued);
    books.pay("UB-INV-1", "4.00").expect("a payment");
    assert_eq!(code(books.pay("UB-INV-1", "6.01")), "above_amount_due");
    assert_eq!(invoice(&books).state, DocumentState::PartiallyPaid);
    assert_eq!(invoice(&books).settlement.paid_date, None);
    books.clock("2026-04-02T23:59:59Z");
    assert!(!invoice(&books).issued.expect("issue dates").overdue);
    books.clock("2026-04-03T00:00:00Z");
    assert!(invoice(&books).issued.expect("issue dates").overdue);
    books.update(event, None, Some("40"));
    books.bill("2026-04-04T00:00:00Z");
    let paid = invoice(&books);
    // 10.00 − 6.00 credited − 4.00 paid.
    assert_eq!((paid.state, paid.owed.amount_due.map(|due| due.minor())), (DocumentState::Paid, Some(0)));
    assert_eq!(paid.settlement.paid_date, Some(billing_testkit::fixtures::date("2026-04-04")));
    assert!(!paid.issued.expect("issue dates").overdue);
}

#[test]
fn late_usage_eats_the_true_up_of_the_minimum_fee_first() {
    let books = Books::at("2026-01-15T00:00:00Z");
    let fee = Some(billing_testkit::fixtures::price("10.00"));
    let api = books.pricing_with("api", vec![per_unit("calls", "0.10")], |content| content.minimum_fee = fee);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.calls("2026-01-15T00:00:00Z", "70");
    books.bill("2026-02-01T02:00:00Z");
    books.calls("2026-01-16T00:00:00Z", "50");
    // 12.00 − 7.00 − 3.00 of true-up.
    assert_eq!(
        books.only(&["UB-DBT-1"]),
        "UB-DBT-1 DRAFT, of UB-INV-1\n  2026-01-01…2026-01-31 calls × 50: 5.00\n  2026-01-01…2026-01-31 Minimum fee: -3.00\n  total 2.00 EUR"
    );
}

/// The contract that is created later meters calls from 10 January at 0.20.
#[test]
fn an_event_that_moves_away_and_back_returns_to_its_first_contract() {
    let books = Books::at("2026-01-05T00:00:00Z");
    let (first, second) =
        (books.pricing("a", vec![per_unit("calls", "0.10")]), books.pricing("b", vec![per_unit("calls", "0.20")]));
    books.contract(vec![requested(&first, "2026-01-01", "2026-12-31")]);
    books.contract(vec![requested(&second, "2026-01-10", "2026-12-31")]);
    books.clock("2026-01-20T00:00:00Z");
    let event = books.calls("2026-01-16T00:00:00Z", "100");
    let billed = || books.documents().lines().filter(|line| line.contains("calls × 100")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(billed(), ["  2026-01-10…2026-01-31 calls × 100: 20.00"]);
    books.update(event, Some("2026-01-06T00:00:00Z"), None);
    assert_eq!(billed(), ["  2026-01-01…2026-01-31 calls × 100: 10.00"]);
    books.update(event, None, Some("100.0"));
    books.update(event, Some("2026-01-07T00:00:00Z"), None);
    assert_eq!(billed(), ["  2026-01-01…2026-01-31 calls × 100: 10.00"]);
    books.update(event, Some("2026-01-16T00:00:00Z"), None);
    assert_eq!(billed(), ["  2026-01-10…2026-01-31 calls × 100: 20.00"]);
}

/// Changed validations move the event to a product that meets them. Without validations it returns to its first product.
#[test]
fn changed_validations_match_an_event_again() {
    let books = Books::at("2026-01-15T00:00:00Z");
    let in_eur = books.pricing("a", vec![per_unit("calls", "0.10")]);
    let in_usd = books.pricing_with("b", vec![per_unit("calls", "0.20")], |content| content.currency = currency("USD"));
    books.contract(vec![requested(&in_usd, "2026-01-01", "2026-12-31")]);
    books.contract(vec![requested(&in_eur, "2026-01-02", "2026-12-31")]);
    let event = books.calls("2026-01-15T00:00:00Z", "100");
    let require = |code: Option<&str>| {
        let validations = code.map(|code| Validations { currency: Some(currency(code)), ..Validations::default() });
        let update = EventUpdate { validations: validations.map_or(Patch::Clear, Patch::Set), ..EventUpdate::default() };
        run(&books.bench.services, &books.bench.principal, UseCase::UpdateEvent, |cx| update_event(cx, event, &update))
            .map(|_| ())
    };
    let number = || books.numbers_of(event);
    assert_eq!(number(), "UB-INV-1");
    require(Some("EUR")).expect("an update");
    assert_eq!(number(), "UB-INV-1");
    require(Some("USD")).expect("an update");
    assert_eq!(number(), "UB-INV-2");
    assert_eq!(code(require(Some("GBP"))), "validation_mismatch");
    require(None).expect("an update");
    assert_eq!(number(), "UB-INV-1");
    books.documents();
}
