//! Section 7: changes of document structure, prices and end dates.

use billing_application::UseCase;
use billing_application::catalog::{TaxBasisPatch, WantedEntity, create_entity};
use billing_application::contracts::{cancel_contract, current_invoices, next_invoices};
use billing_domain::contract::amendment::{CancelAt, EffectiveFrom, ProductPatch};
use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::{PaymentTime, RequestedLineItem};
use billing_domain::patch::Patch;
use billing_testkit::fixtures::{self, date, fixed, graduated, line_item_id, once, per_unit, percent, requested};

use crate::books::{Books, THREE_TIERS, code, repriced, same, shown};
use crate::rules::{assert_documents, billed};
use crate::support::{read, run};

#[test]
fn a_payment_time_that_changes_with_the_next_period_bills_everything_once() {
    use PaymentTime::{AfterUse, BeforeUse, DuringUse};
    for (from, to) in [
        (AfterUse, BeforeUse),
        (AfterUse, DuringUse),
        (DuringUse, AfterUse),
        (DuringUse, BeforeUse),
        (BeforeUse, AfterUse),
        (BeforeUse, DuringUse),
    ] {
        let books = Books::at("2026-01-01T00:00:00Z");
        let api = books.pricing("api", vec![fixed("fee", "28.00"), per_unit("calls", "0.10")]);
        let mut product = requested(&api, "2026-01-01", "2026-12-31");
        product.payment_time = Some(from);
        let contract = books.contract(vec![product]);
        books.bill("2026-01-01T02:00:00Z");
        books.clock("2026-01-10T12:00:00Z");
        books.calls("2026-01-10T12:00:00Z", "100");
        let patch = ProductPatch { payment_time: Patch::Set(to), ..same(&api) };
        books.edit(contract, vec![patch], EffectiveFrom::NextPeriod).expect("an edit");
        books.bill("2026-02-01T02:00:00Z");
        books.clock("2026-02-10T12:00:00Z");
        books.calls("2026-02-10T12:00:00Z", "10");
        books.calls("2026-01-10T12:00:00Z", "2");
        books.bill("2026-03-01T02:00:00Z");
        let found = [("2026-01-01", "fee"), ("2026-01-01", "calls"), ("2026-02-01", "fee"), ("2026-02-01", "calls")];
        let found = found.map(|(month, id)| billed(&books, month, id));
        assert_eq!(found, ["28.00", "10.20", "28.00", "1.00"], "{from:?} {to:?}");
    }
}

#[test]
fn a_cycle_that_changes_with_the_next_period_makes_a_partial_one_first() {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "30.00"), once("setup", "5.00")]);
    let contract = books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    let patch =
        ProductPatch { billing_cycle: Patch::Set(BillingCycle::new(CycleUnit::Quarterly, 1).expect("a cycle")), ..same(&api) };
    books.edit(contract, vec![patch], EffectiveFrom::NextPeriod).expect("an edit");
    books.bill("2026-12-01T02:00:00Z");
    books.bill("2027-01-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-02-01, due 2026-04-02, overdue | 2026-01-01…2026-01-31 fee: 30.00 | 2026-01-01…2026-01-31 setup: 5.00 | total 35.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-12-01, due 2027-01-30 | 2026-02-01…2026-02-28 fee: 30.00 | total 30.00 EUR",
            "UB-INV-3 ISSUED, issued 2026-12-01, due 2027-01-30 | 2026-03-01…2026-03-31 fee: 10.33 | total 10.33 EUR",
            "UB-INV-4 ISSUED, issued 2026-12-01, due 2027-01-30 | 2026-04-01…2026-06-30 fee: 30.00 | total 30.00 EUR",
            "UB-INV-5 ISSUED, issued 2026-12-01, due 2027-01-30 | 2026-07-01…2026-09-30 fee: 30.00 | total 30.00 EUR",
            "UB-INV-6 ISSUED, issued 2027-01-01, due 2027-03-02 | 2026-10-01…2026-12-31 fee: 30.00 | total 30.00 EUR",
        ],
    );
}

#[test]
fn after_a_gap_the_next_invoice_is_that_of_the_day_it_goes_on() {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "28.00"), per_unit("calls", "0.10")]);
    let contract = books.contract(vec![requested(&api, "2026-01-01", "2026-01-31")]);
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    let longer =
        ProductPatch { billing_start_date: Some(date("2026-01-01")), billing_end_date: Some(date("2026-12-31")), ..same(&api) };
    books.edit(contract, vec![longer], EffectiveFrom::Day(date("2026-04-01"))).expect("an edit");
    let s = &books.bench;
    let current =
        read(&s.services, &s.principal, UseCase::PreviewInvoices, |cx| current_invoices(cx, contract)).expect("current invoices");
    let next =
        read(&s.services, &s.principal, UseCase::PreviewInvoices, |cx| next_invoices(cx, contract)).expect("next invoices");
    assert_eq!(books.state(contract), "ACTIVE");
    assert!(current.is_empty());
    assert_eq!(
        shown(&next),
        "(invoice without a number) DRAFT\n  2026-04-01…2026-04-30 fee: 28.00\n  2026-04-01…2026-04-30 calls × 0: 0.00\n  total 28.00 EUR"
    );
    assert_eq!(code(books.report("2026-02-10T00:00:00Z", "1", None)), "no_matching_contract");
}

#[test]
fn a_reprice_from_a_past_day_bills_a_once_item_in_the_first_month() {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "28.00"), graduated("calls", THREE_TIERS)]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.discount = Some(percent("10"));
    product.tax = Some(percent("19"));
    let contract = books.contract(vec![product]);
    books.clock("2026-01-10T12:00:00Z");
    books.calls("2026-01-10T12:00:00Z", "150");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    books.reprice(&api, vec![fixed("fee", "28.00"), per_unit("calls", "0.05"), once("setup", "99.00")]);
    books.edit(contract, vec![repriced(&api)], EffectiveFrom::Day(date("2026-01-01"))).expect("an edit");
    books.bill("2026-03-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-02-01, due 2026-04-02 | 2026-01-01…2026-01-31 fee: 28.00 | 2026-01-01…2026-01-31 calls × 150: 12.50 | discount 10 %: -4.05 | tax 19 % of 36.45: 6.93 | total 43.38 EUR",
            "UB-DBT-1 ISSUED, of UB-INV-1, issued 2026-02-10, due 2026-04-11 | 2026-01-01…2026-01-31 setup: 99.00 | 2026-01-01…2026-01-31 calls: -5.00 | discount 10 %: -9.40 | tax 19 % of 84.60: 16.07 | total 100.67 EUR",
            "UB-INV-2 ISSUED, issued 2026-03-01, due 2026-04-30 | 2026-02-01…2026-02-28 fee: 28.00 | 2026-02-01…2026-02-28 calls × 0: 0.00 | discount 10 %: -2.80 | tax 19 % of 25.20: 4.79 | total 29.99 EUR",
        ],
    );
    let without = ProductPatch { line_items: Patch::Set(vec![RequestedLineItem::plain(line_item_id("fee"))]), ..same(&api) };
    assert_eq!(code(books.edit(contract, vec![without], EffectiveFrom::Day(date("2026-01-01")))), "usage_already_reported");
}

#[test]
fn a_cancelling_contract_may_end_earlier_and_not_later() {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "31.00"), per_unit("calls", "0.10")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.payment_time = Some(PaymentTime::DuringUse);
    let contract = books.contract(vec![product]);
    books.bill("2026-01-01T02:00:00Z");
    books.clock("2026-01-10T12:00:00Z");
    books.calls("2026-01-10T12:00:00Z", "100");
    books.cancel(contract, CancelAt::Day(date("2026-03-15")));
    books.bill("2026-02-01T02:00:00Z");
    books.bill("2026-03-01T02:00:00Z");
    books.clock("2026-03-05T00:00:00Z");
    books.cancel(contract, CancelAt::Day(date("2026-03-10")));
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-01-01, due 2026-03-02, overdue | 2026-01-01…2026-01-31 fee: 31.00 | total 31.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-02-01, due 2026-04-02 | 2026-02-01…2026-02-28 fee: 31.00 | 2026-01-01…2026-01-31 calls × 100: 10.00 | total 41.00 EUR",
            "UB-INV-3 PARTIALLY_PAID, issued 2026-03-01, due 2026-04-30 | 2026-03-01…2026-03-15 fee: 15.00 | 2026-02-01…2026-02-28 calls × 0: 0.00 | total 15.00 EUR, credits 5.00, left to pay 10.00",
            "UB-CRD-1 SETTLED, of UB-INV-3, issued 2026-03-05 | 2026-03-11…2026-03-15 fee: 5.00 | total 5.00 EUR",
        ],
    );
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let later = run(services, principal, UseCase::CancelContract, |cx| {
        cancel_contract(cx, contract, CancelAt::Day(date("2026-03-12")), false)
    });
    assert_eq!(code(later), "contract_over");
}

#[test]
fn a_void_invoice_is_billed_again_under_the_terms_in_force_then() {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "31.00"), per_unit("calls", "0.10")]);
    let contract = books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.clock("2026-01-10T12:00:00Z");
    books.calls("2026-01-10T12:00:00Z", "100");
    books.bill("2026-02-01T02:00:00Z");
    books.void("UB-INV-1").expect("a voided document");
    let patch = ProductPatch { tax: Patch::Set(percent("19")), ..same(&api) };
    books.edit(contract, vec![patch], EffectiveFrom::Day(date("2026-01-01"))).expect("an edit");
    books.bill("2026-02-02T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 VOID, issued 2026-02-01",
            "UB-INV-2 ISSUED, a replacement, issued 2026-02-02, due 2026-04-03 | 2026-01-01…2026-01-31 fee: 31.00 | 2026-01-01…2026-01-31 calls × 100: 10.00 | tax 19 % of 41.00: 7.79 | total 48.79 EUR",
        ],
    );
}

#[test]
fn usage_stays_with_the_entity_of_its_own_period() {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "31.00"), per_unit("calls", "0.10")]);
    let mut us = fixtures::entity("US");
    us.profile.time_zone = fixtures::zone("America/New_York");
    let wanted = WantedEntity { profile: us.profile, is_default: None, tax: TaxBasisPatch::default() };
    run(&books.bench.services, &books.bench.principal, UseCase::CreateEntity, |cx| {
        create_entity(cx, Some(us.entity_ref.clone()), wanted)
    })
    .expect("an entity");
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.payment_time = Some(PaymentTime::DuringUse);
    let contract = books.contract(vec![product]);
    books.bill("2026-01-01T02:00:00Z");
    books.clock("2026-01-10T12:00:00Z");
    books.calls("2026-01-10T12:00:00Z", "100");
    let patch = ProductPatch { entity_ref: Patch::Set(us.entity_ref), ..same(&api) };
    books.edit(contract, vec![patch], EffectiveFrom::NextPeriod).expect("an edit");
    // 02:00 in New York.
    books.bill("2026-02-01T07:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-01-01, due 2026-03-02 | 2026-01-01…2026-01-31 fee: 31.00 | total 31.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-02-01, due 2026-04-02 | 2026-01-01…2026-01-31 calls × 100: 10.00 | total 10.00 EUR",
            "US-INV-1 ISSUED, issued 2026-02-01, due 2026-02-01 | 2026-02-01…2026-02-28 fee: 31.00 | total 31.00 EUR",
        ],
    );
}

#[test]
fn a_product_that_leaves_now_has_its_usage_on_a_closing_invoice() {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "31.00"), per_unit("calls", "0.10")]);
    let support = books.pricing("support", vec![fixed("support", "62.00")]);
    let during = |p| {
        let mut product = requested(p, "2026-01-01", "2026-12-31");
        product.payment_time = Some(PaymentTime::DuringUse);
        product
    };
    let contract = books.contract(vec![during(&api), during(&support)]);
    books.bill("2026-01-01T02:00:00Z");
    books.clock("2026-01-10T12:00:00Z");
    books.calls("2026-01-10T12:00:00Z", "100");
    books.edit(contract, vec![same(&support)], EffectiveFrom::CurrentPeriod).expect("an edit");
    books.bill("2026-01-11T02:00:00Z");
    books.bill("2026-02-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 PARTIALLY_PAID, issued 2026-01-01, due 2026-03-02 | 2026-01-01…2026-01-31 fee: 31.00 | 2026-01-01…2026-01-31 support: 62.00 | total 93.00 EUR, credits 21.00, left to pay 72.00",
            "UB-INV-2 ISSUED, issued 2026-02-01, due 2026-04-02 | 2026-02-01…2026-02-28 support: 62.00 | total 62.00 EUR",
            "UB-INV-3 ISSUED, issued 2026-01-11, due 2026-03-12 | 2026-01-01…2026-01-10 calls × 100: 10.00 | total 10.00 EUR",
            "UB-CRD-1 SETTLED, of UB-INV-1, issued 2026-01-10 | 2026-01-11…2026-01-31 fee: 21.00 | total 21.00 EUR",
        ],
    );
}
