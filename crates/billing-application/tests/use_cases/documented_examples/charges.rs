//! Section 5: charges.

use billing_domain::refs::{ContractRef, EventRef};
use billing_testkit::fixtures::{fixed, per_unit, requested};

use crate::books::{Books, code};
use crate::documented_examples::page::Page;

/// Returns a contract at 49.00 a month and 0.04 per call, without tax, with 1,500 calls on 4 January. The date is
/// 5 January.
fn january() -> (Books, ContractRef, EventRef) {
    let books = Books::at("2026-01-05T12:00:00Z");
    let api = books.pricing("api", vec![fixed("platform", "49.00"), per_unit("calls", "0.04")]);
    let contract = books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    let event = books.calls("2026-01-04T12:00:00Z", "1500");
    (books, contract, event)
}

/// Returns the contract of [`january`] after the invoice of 1 February. The date is 5 February.
fn issued() -> (Books, ContractRef, EventRef) {
    let (books, contract, event) = january();
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-05T12:00:00Z");
    (books, contract, event)
}

pub(crate) fn example_5_14_a_setup_fee_is_on_its_periods_invoice(page: &mut Page) {
    let (books, contract, _) = january();
    let charge = books.charge(contract, "2026-01-10", "Setup", "500.00").expect("a charge");
    page.says(&charge.documents.expect("a document").numbers.to_string());
    books.bill("2026-02-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_5_15_a_setup_fee_of_a_period_that_is_issued_is_a_debit(page: &mut Page) {
    let (books, contract, _) = issued();
    books.charge(contract, "2026-01-10", "Setup", "500.00").expect("a charge");
    page.shows(&books.only(&["UB-DBT-1"]));
}

pub(crate) fn example_5_16_goodwill_is_a_credit_and_what_follows_collects_with_it(page: &mut Page) {
    let (books, contract, event) = issued();
    books.charge(contract, "2026-01-31", "Goodwill", "-20.00").expect("a charge");
    books.delete(event);
    books.bill("2026-02-06T00:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_5_17_a_credit_note_takes_no_more_than_was_billed(page: &mut Page) {
    let (books, contract, _) = issued();
    let refused = books.charge(contract, "2026-01-31", "Goodwill", "-120.00");
    let reported = refused.as_ref().expect_err("a refusal").to_string();
    assert!(reported.contains("109.00 EUR"), "{reported}");
    page.says("109.00");
    page.says(&code(refused));
    books.charge(contract, "2026-01-31", "Goodwill", "-109.00").expect("a credit of the full billed amount");
}
