//! Reads after corrections, and events that move between contracts.

use billing_application::UseCase;
use billing_application::charges::get_charge;
use billing_application::error::UseCaseError;
use billing_application::usage::{EventAction, EventUpdate, event_history, get_event, update_event};
use billing_domain::contract::amendment::CancelAt;
use billing_domain::document::DocumentState;
use billing_domain::patch::Patch;
use billing_domain::refs::EventRef;
use billing_domain::usage::Validations;
use billing_testkit::fixtures::{currency, date, fixed, per_unit, requested};

use crate::books::{Books, code};
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

#[test]
fn a_deleted_event_is_unknown_and_keeps_its_history() {
    let (books, event) = january_issued();
    books.delete(event);
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    assert!(matches!(read(services, principal, UseCase::GetEvent, |cx| get_event(cx, event)), Err(UseCaseError::Unknown(_))));
    let history = read(services, principal, UseCase::GetEventHistory, |cx| event_history(cx, event)).expect("a history");
    let reported: Vec<_> = history.iter().map(|revision| (revision.action, revision.document_number.to_string())).collect();
    assert_eq!(reported, [(EventAction::Created, "UB-INV-1".to_owned()), (EventAction::Deleted, "UB-CRD-1".to_owned())]);
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
    assert_eq!(paid.settlement.paid_date, Some(date("2026-04-04")));
    assert!(!paid.issued.expect("issue dates").overdue);
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

#[test]
fn a_charge_shows_how_much_of_a_credit_counts() {
    let books = Books::at("2026-01-05T12:00:00Z");
    let plan = books.pricing("plan", vec![fixed("fee", "49.00")]);
    let contract = books.contract(vec![requested(&plan, "2026-01-01", "2026-12-31")]);
    let credit = books.charge(contract, "2026-01-10", "Goodwill", "-40").expect("a charge");
    assert_eq!(credit.billed_amount.to_string(), "-40.00 EUR");
    // The fee of January shrinks to 49.00 × 15 ÷ 31.
    books.cancel(contract, CancelAt::Day(date("2026-01-15")));
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let shown = read(services, principal, UseCase::GetCharge, |cx| get_charge(cx, &credit.charge.charge_ref)).expect("a charge");
    assert_eq!(shown.billed_amount.to_string(), "-23.71 EUR");
}
