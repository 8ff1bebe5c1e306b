//! Previews of current and next invoices.

use billing_application::UseCase;
use billing_application::contracts::{current_invoices, next_invoices};
use billing_domain::contract::terms::{PaymentTime, RequestedProduct};
use billing_testkit::fixtures::{fixed, per_unit, requested};

use crate::books::Books;
use crate::support::read;

#[test]
fn a_preview_stores_nothing() {
    let books = Books::at("2025-12-20T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "10.00"), per_unit("calls", "0.10")]);
    let payment_time = Some(PaymentTime::DuringUse);
    let contract = books.contract(vec![RequestedProduct { payment_time, ..requested(&api, "2026-01-01", "2026-03-31") }]);
    books.clock("2026-02-10T00:00:00Z");
    let before = books.bench.store.contents();
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let current = read(services, principal, UseCase::PreviewInvoices, |cx| current_invoices(cx, contract)).expect("a preview");
    let next = read(services, principal, UseCase::PreviewInvoices, |cx| next_invoices(cx, contract)).expect("a preview");
    assert_eq!((current.len(), next.len()), (1, 1));
    assert_eq!(books.bench.store.contents(), before);
}
