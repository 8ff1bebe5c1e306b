//! Section 7: current and next invoices.

use billing_application::UseCase;
use billing_application::catalog::{WantedCustomer, edit_customer};
use billing_application::contracts::{current_invoices, next_invoices};
use billing_application::documents::DocumentView;
use billing_domain::contract::amendment::CancelAt;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::party::NetTerms;
use billing_domain::patch::{Changes, Patch};
use billing_domain::refs::ContractRef;
use billing_testkit::fixtures::{self, fixed, per_unit, requested};

use crate::books::{Books, shown};
use crate::support::{read, run};

fn current(books: &Books, contract: ContractRef) -> Vec<DocumentView> {
    read(&books.bench.services, &books.bench.principal, UseCase::PreviewInvoices, |cx| current_invoices(cx, contract))
        .expect("current invoices")
}

fn next(books: &Books, contract: ContractRef) -> Vec<DocumentView> {
    read(&books.bench.services, &books.bench.principal, UseCase::PreviewInvoices, |cx| next_invoices(cx, contract))
        .expect("next invoices")
}

/// Returns a contract from January to March.
fn quarter(payment_time: PaymentTime) -> (Books, ContractRef) {
    let books = Books::at("2025-12-20T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "10.00"), per_unit("calls", "0.10")]);
    let mut product = requested(&api, "2026-01-01", "2026-03-31");
    product.payment_time = Some(payment_time);
    let contract = books.contract(vec![product]);
    (books, contract)
}

const UNNUMBERED: &str = "(invoice without a number) DRAFT";

#[test]
fn before_the_start_nothing_is_current_and_the_first_period_is_next() {
    let (books, contract) = quarter(PaymentTime::AfterUse);
    assert!(current(&books, contract).is_empty());
    assert_eq!(
        shown(&next(&books, contract)),
        format!("{UNNUMBERED}\n  2026-01-01…2026-01-31 fee: 10.00\n  2026-01-01…2026-01-31 calls × 0: 0.00\n  total 10.00 EUR")
    );
}

#[test]
fn after_the_end_there_is_neither() {
    let (books, contract) = quarter(PaymentTime::AfterUse);
    books.clock("2026-04-01T00:00:00Z");
    assert!(current(&books, contract).is_empty());
    assert!(next(&books, contract).is_empty());
}

#[test]
fn with_during_use_the_next_invoice_has_the_usage_of_the_current_period() {
    let (books, contract) = quarter(PaymentTime::DuringUse);
    books.clock("2026-01-10T00:00:00Z");
    books.calls("2026-01-10T00:00:00Z", "20");
    assert_eq!(
        shown(&next(&books, contract)),
        "UB-INV-1 DRAFT\n  2026-02-01…2026-02-28 fee: 10.00\n  2026-01-01…2026-01-31 calls × 20: 2.00\n  total 12.00 EUR"
    );
    let expected = format!("{UNNUMBERED}\n  2026-01-01…2026-01-31 fee: 10.00\n  total 10.00 EUR");
    assert_eq!(shown(&current(&books, contract)), expected);
}

#[test]
fn in_the_last_period_of_during_use_the_closing_invoice_is_next() {
    let (books, contract) = quarter(PaymentTime::DuringUse);
    books.bill("2026-03-10T00:00:00Z");
    let expected = format!("{UNNUMBERED}\n  2026-03-01…2026-03-31 calls × 0: 0.00\n  total 0.00 EUR");
    assert_eq!(shown(&next(&books, contract)), expected);
    books.calls("2026-03-10T00:00:00Z", "20");
    let opened = "UB-INV-4 DRAFT\n  2026-03-01…2026-03-31 calls × 20: 2.00\n  total 2.00 EUR";
    assert_eq!(shown(&next(&books, contract)), opened);
}

#[test]
fn in_the_last_period_of_other_payment_times_nothing_is_next() {
    for payment_time in [PaymentTime::AfterUse, PaymentTime::BeforeUse] {
        let (books, contract) = quarter(payment_time);
        books.clock("2026-03-10T00:00:00Z");
        assert!(next(&books, contract).is_empty(), "{payment_time:?}");
    }
}

#[test]
fn a_cancel_makes_the_current_period_the_last_in_the_preview_too() {
    let (books, contract) = quarter(PaymentTime::DuringUse);
    books.bill("2026-01-10T00:00:00Z");
    books.cancel(contract, CancelAt::PeriodEnd);
    let expected = format!("{UNNUMBERED}\n  2026-01-01…2026-01-31 calls × 0: 0.00\n  total 0.00 EUR");
    assert_eq!(shown(&next(&books, contract)), expected);
}

#[test]
fn asking_stores_nothing() {
    let (books, contract) = quarter(PaymentTime::DuringUse);
    books.clock("2026-02-10T00:00:00Z");
    let before = books.bench.store.contents();
    current(&books, contract);
    next(&books, contract);
    assert_eq!(books.bench.store.contents(), before);
}

#[test]
fn a_draft_takes_in_a_product_that_came_to_fit_it_when_it_is_issued_as_the_preview_shows() {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "0.10")]);
    let desk = books.pricing("desk", vec![fixed("fee", "10.00")]);
    let mut of_its_own = requested(&api, "2026-01-01", "2026-12-31");
    of_its_own.net_terms = Some(NetTerms::Days(30));
    let contract = books.contract(vec![of_its_own, requested(&desk, "2026-01-01", "2026-12-31")]);
    books.calls("2026-01-01T00:00:00Z", "50");
    // The desk uses the entity's net terms of 60 days until the customer gets 30 days.
    assert_eq!(current(&books, contract).len(), 2);
    let edit = Changes::of(|customer: &mut WantedCustomer| customer.profile.net_terms = Some(NetTerms::Days(30)));
    run(&books.bench.services, &books.bench.principal, UseCase::EditCustomer, |cx| {
        edit_customer(cx, &fixtures::customer_ref("acme"), &edit)
    })
    .expect("a customer");
    let foreseen: Vec<String> = current(&books, contract).iter().map(|document| document.content.total.to_string()).collect();
    books.bill("2026-02-01T02:00:00Z");
    let issued: Vec<String> = books.bench.documents().iter().map(|document| document.content.total.to_string()).collect();
    assert_eq!((foreseen, issued), (vec!["15.00 EUR".to_owned()], vec!["15.00 EUR".to_owned()]));
}

#[test]
fn a_closing_invoice_takes_in_a_product_that_came_to_fit_it_as_the_preview_shows() {
    let books = Books::at("2025-12-20T00:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "0.10")]);
    let disk = books.pricing("disk", vec![fixed("seat", "0")]);
    let month = |pricing| {
        let mut product = requested(pricing, "2026-01-01", "2026-01-31");
        product.payment_time = Some(PaymentTime::DuringUse);
        product
    };
    let (mut of_its_own, mut at_least) = (month(&api), month(&disk));
    of_its_own.net_terms = Some(NetTerms::Days(30));
    at_least.minimum_fee = Patch::Set(fixtures::price("10.00"));
    let contract = books.contract(vec![of_its_own, at_least]);
    books.clock("2026-01-10T00:00:00Z");
    books.calls("2026-01-10T00:00:00Z", "50");
    let closing = |documents: &[DocumentView]| -> Vec<String> {
        let of_usage = documents.iter().filter(|document| document.content.total.minor() != 0);
        of_usage.map(|document| document.content.total.to_string()).collect()
    };
    assert_eq!(closing(&current(&books, contract)), ["5.00 EUR"]);
    let edit = Changes::of(|customer: &mut WantedCustomer| customer.profile.net_terms = Some(NetTerms::Days(30)));
    run(&books.bench.services, &books.bench.principal, UseCase::EditCustomer, |cx| {
        edit_customer(cx, &fixtures::customer_ref("acme"), &edit)
    })
    .expect("a customer");
    let foreseen = (closing(&current(&books, contract)), closing(&next(&books, contract)));
    books.bill("2026-02-01T02:00:00Z");
    assert_eq!(closing(&books.bench.documents()), ["15.00 EUR"]);
    assert_eq!(foreseen, (vec!["15.00 EUR".to_owned()], vec!["15.00 EUR".to_owned()]));
}
