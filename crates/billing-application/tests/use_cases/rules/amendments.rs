//! Section 7: changes from any day, their differences, and reversals.

use billing_application::UseCase;
use billing_application::contracts::cancel_contract;
use billing_application::dry_run::{Effects, FigureChange};
use billing_domain::catalog::{PriceModel, Pricing};
use billing_domain::contract::amendment::{CancelAt, EffectiveFrom, ProductPatch};
use billing_domain::contract::terms::{PaymentTime, Quantities, QuantityStep, RequestedLineItem};
use billing_domain::money::MoneySum;
use billing_domain::patch::Patch;
use billing_domain::refs::ContractRef;
use billing_testkit::fixtures::{self, date, fixed, line_item_id, once, per_unit, percent, requested};

use crate::books::{Books, code, same};
use crate::rules::{assert_documents, billed};
use crate::support::run;

/// Returns a product patch with another price for one fixed line item. Other line items keep their prices.
fn with_price(pricing: &Pricing, id: &str, amount: &str) -> ProductPatch {
    let items = pricing.content.line_items.iter().map(|item| {
        let plain = RequestedLineItem::plain(item.id.clone());
        if item.id == line_item_id(id) {
            RequestedLineItem { price: Patch::Set(PriceModel::Flat { amount: fixtures::price(amount) }), ..plain }
        } else {
            plain
        }
    });
    ProductPatch { line_items: Patch::Set(items.collect()), ..same(pricing) }
}

/// Returns a contract at 28.00 a month and 0.10 per call from 1 January.
fn begun(payment_time: PaymentTime, tax: Option<&str>) -> (Books, Pricing, ContractRef) {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "28.00"), per_unit("calls", "0.10")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    (product.payment_time, product.tax) = (Some(payment_time), tax.map(percent));
    let contract = books.contract(vec![product]);
    (books, api, contract)
}

#[test]
fn a_tax_from_the_past_is_a_credit_and_a_debit_of_every_family() {
    let (books, api, contract) = begun(PaymentTime::DuringUse, Some("19"));
    books.bill("2026-01-01T02:00:00Z");
    books.clock("2026-01-10T12:00:00Z");
    books.calls("2026-01-10T12:00:00Z", "100");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    books.calls("2026-02-10T12:00:00Z", "50");
    let patch = ProductPatch { tax: Patch::Set(percent("7")), ..same(&api) };
    books.edit(contract, vec![patch], EffectiveFrom::Day(date("2026-01-01"))).expect("an edit");
    assert_documents(
        &books,
        &[
            "UB-INV-1 PAID, issued 2026-01-01, due 2026-03-02 | 2026-01-01…2026-01-31 fee: 28.00 | tax 19 % of 28.00: 5.32 | total 33.32 EUR, credits 33.32, left to pay 0.00",
            "UB-INV-2 PAID, issued 2026-02-01, due 2026-04-02 | 2026-02-01…2026-02-28 fee: 28.00 | 2026-01-01…2026-01-31 calls × 100: 10.00 | tax 19 % of 38.00: 7.22 | total 45.22 EUR, credits 45.22, left to pay 0.00",
            "UB-INV-3 DRAFT | 2026-03-01…2026-03-31 fee: 28.00 | 2026-02-01…2026-02-28 calls × 50: 5.00 | tax 7 % of 33.00: 2.31 | total 35.31 EUR",
            "UB-CRD-1 SETTLED, of UB-INV-1, issued 2026-02-10 | 2026-01-01…2026-01-31 fee: 28.00 | tax 19 % of 28.00: 5.32 | total 33.32 EUR",
            "UB-DBT-1 ISSUED, of UB-INV-1, issued 2026-02-10, due 2026-04-11 | 2026-01-01…2026-01-31 fee: 28.00 | tax 7 % of 28.00: 1.96 | total 29.96 EUR",
            "UB-CRD-2 SETTLED, of UB-INV-2, issued 2026-02-10 | 2026-01-01…2026-01-31 calls: 10.00 | 2026-02-01…2026-02-28 fee: 28.00 | tax 19 % of 38.00: 7.22 | total 45.22 EUR",
            "UB-DBT-2 ISSUED, of UB-INV-2, issued 2026-02-10, due 2026-04-11 | 2026-01-01…2026-01-31 calls: 10.00 | 2026-02-01…2026-02-28 fee: 28.00 | tax 7 % of 38.00: 2.66 | total 40.66 EUR",
        ],
    );
}

#[test]
fn an_open_adjustment_takes_up_what_an_edit_changes_and_is_issued() {
    let (books, api, contract) = begun(PaymentTime::AfterUse, None);
    books.clock("2026-01-10T12:00:00Z");
    books.calls("2026-01-10T12:00:00Z", "100");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    books.calls("2026-01-11T12:00:00Z", "50");
    books.edit(contract, vec![with_price(&api, "fee", "30.00")], EffectiveFrom::Day(date("2026-01-01"))).expect("an edit");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-02-01, due 2026-04-02 | 2026-01-01…2026-01-31 fee: 28.00 | 2026-01-01…2026-01-31 calls × 100: 10.00 | total 38.00 EUR",
            "UB-DBT-1 ISSUED, of UB-INV-1, issued 2026-02-10, due 2026-04-11 | 2026-01-01…2026-01-31 calls × 50: 5.00 | 2026-01-01…2026-01-31 fee: 2.00 | total 7.00 EUR",
        ],
    );
}

#[test]
fn a_product_left_out_from_a_past_day_gives_back_the_days_after_it_and_can_go_on_later() {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "28.00")]);
    let support = books.pricing("support", vec![fixed("support", "5.00")]);
    let contract =
        books.contract(vec![requested(&api, "2026-01-01", "2026-12-31"), requested(&support, "2026-01-01", "2026-12-31")]);
    books.bill("2026-03-01T02:00:00Z");
    books.clock("2026-03-10T12:00:00Z");
    books.edit(contract, vec![same(&api)], EffectiveFrom::Day(date("2026-02-15"))).expect("an edit");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-03-01, due 2026-04-30 | 2026-01-01…2026-01-31 fee: 28.00 | 2026-01-01…2026-01-31 support: 5.00 | total 33.00 EUR",
            "UB-INV-2 PARTIALLY_PAID, issued 2026-03-01, due 2026-04-30 | 2026-02-01…2026-02-28 fee: 28.00 | 2026-02-01…2026-02-28 support: 5.00 | total 33.00 EUR, credits 2.50, left to pay 30.50",
            "UB-CRD-1 SETTLED, of UB-INV-2, issued 2026-03-10 | 2026-02-15…2026-02-28 support: 2.50 | total 2.50 EUR",
        ],
    );
    books
        .edit(
            contract,
            vec![
                same(&api),
                ProductPatch {
                    billing_start_date: Some(date("2026-01-01")),
                    billing_end_date: Some(date("2026-12-31")),
                    ..same(&support)
                },
            ],
            EffectiveFrom::Day(date("2026-03-01")),
        )
        .expect("an edit");
    books.bill("2026-04-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-03-01, due 2026-04-30 | 2026-01-01…2026-01-31 fee: 28.00 | 2026-01-01…2026-01-31 support: 5.00 | total 33.00 EUR",
            "UB-INV-2 PARTIALLY_PAID, issued 2026-03-01, due 2026-04-30 | 2026-02-01…2026-02-28 fee: 28.00 | 2026-02-01…2026-02-28 support: 5.00 | total 33.00 EUR, credits 2.50, left to pay 30.50",
            "UB-CRD-1 SETTLED, of UB-INV-2, issued 2026-03-10 | 2026-02-15…2026-02-28 support: 2.50 | total 2.50 EUR",
            "UB-INV-3 ISSUED, issued 2026-04-01, due 2026-05-31 | 2026-03-01…2026-03-31 fee: 28.00 | 2026-03-01…2026-03-31 support: 5.00 | total 33.00 EUR",
        ],
    );
}

#[test]
fn an_edit_that_makes_more_than_24_documents_due_has_to_be_meant() {
    let books = Books::at("2026-03-10T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "28.00")]);
    let old = books.pricing("old", vec![fixed("old", "5.00")]);
    let contract = books.contract(vec![requested(&api, "2026-03-01", "2026-12-31")]);
    let added =
        ProductPatch { billing_start_date: Some(date("2023-01-01")), billing_end_date: Some(date("2026-12-31")), ..same(&old) };
    let before = books.bench.store.contents();
    let refused = books.edit(contract, vec![same(&api), added.clone()], EffectiveFrom::NextPeriod);
    assert_eq!(code(refused), "too_many_documents");
    assert_eq!(books.bench.store.contents(), before);
    books.try_edit(contract, vec![same(&api), added], EffectiveFrom::NextPeriod, None, true).expect("an edit");
    books.bill("2026-03-10T12:01:00Z");
    assert_eq!(books.bench.documents().len(), 38);
}

fn stepped(pricing: &Pricing, steps: &[(&str, &str)]) -> RequestedLineItem {
    let step = |(from, quantity): &(&str, &str)| QuantityStep { from: date(from), quantity: fixtures::quantity(quantity) };
    let quantities = Some(Quantities::new(steps.iter().map(step).collect()).expect("ascending dates"));
    RequestedLineItem { quantities, ..RequestedLineItem::plain(pricing.content.line_items[0].id.clone()) }
}

#[test]
fn quantities_from_a_past_day_are_debits_of_every_month_and_eat_the_minimum_fee_first() {
    let books = Books::at("2026-01-15T00:00:00Z");
    let seats = books.pricing_with("seats", vec![fixed("seats", "31.00"), once("setup", "7.00")], |content| {
        content.minimum_fee = Some(fixtures::price("100.00"))
    });
    let mut product = requested(&seats, "2026-01-15", "2026-12-31");
    product.line_items = Some(vec![stepped(&seats, &[("2026-01-15", "2")]), RequestedLineItem::plain(line_item_id("setup"))]);
    let contract = books.contract(vec![product]);
    books.bill("2026-02-01T02:00:00Z");
    books.bill("2026-03-01T02:00:00Z");
    books.clock("2026-03-10T12:00:00Z");
    let patch = ProductPatch {
        line_items: Patch::Set(vec![
            stepped(&seats, &[("2026-01-20", "10"), ("2026-03-05", "0")]),
            RequestedLineItem::plain(line_item_id("setup")),
        ]),
        ..same(&seats)
    };
    books.edit(contract, vec![patch], EffectiveFrom::NextPeriod).expect("an edit");
    books.bill("2026-04-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-02-01, due 2026-04-02 | 2026-01-15…2026-01-31 seats (2 from 2026-01-15): 34.00 | 2026-01-15…2026-01-31 setup: 7.00 | 2026-01-15…2026-01-31 Minimum fee: 20.84 | total 61.84 EUR",
            "UB-INV-2 ISSUED, issued 2026-03-01, due 2026-04-30 | 2026-02-01…2026-02-28 seats (2 from 2026-02-01): 62.00 | 2026-02-01…2026-02-28 Minimum fee: 38.00 | total 100.00 EUR",
            "UB-DBT-1 ISSUED, of UB-INV-1, issued 2026-03-10, due 2026-05-09 | 2026-01-15…2026-01-31 seats: 96.00 | 2026-01-15…2026-01-31 Minimum fee: -20.84 | total 75.16 EUR",
            "UB-DBT-2 ISSUED, of UB-INV-2, issued 2026-03-10, due 2026-05-09 | 2026-02-01…2026-02-28 seats: 248.00 | 2026-02-01…2026-02-28 Minimum fee: -38.00 | total 210.00 EUR",
            "UB-INV-3 ISSUED, issued 2026-04-01, due 2026-05-31 | 2026-03-01…2026-03-31 seats (10 from 2026-03-01, 0 from 2026-03-05): 40.00 | 2026-03-01…2026-03-31 Minimum fee: 60.00 | total 100.00 EUR",
        ],
    );
}

#[test]
fn a_resume_makes_the_closing_invoice_the_next_periods_again() {
    let (books, _, contract) = begun(PaymentTime::DuringUse, None);
    books.bill("2026-01-01T02:00:00Z");
    books.clock("2026-01-10T12:00:00Z");
    books.calls("2026-01-10T12:00:00Z", "100");
    books.cancel(contract, CancelAt::PeriodEnd);
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-01-01, due 2026-03-02 | 2026-01-01…2026-01-31 fee: 28.00 | total 28.00 EUR",
            "UB-INV-2 DRAFT | 2026-01-01…2026-01-31 calls × 100: 10.00 | total 10.00 EUR",
        ],
    );
    books.clock("2026-01-12T12:00:00Z");
    books.resume(contract).expect("a resumed contract");
    books.bill("2026-02-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-01-01, due 2026-03-02 | 2026-01-01…2026-01-31 fee: 28.00 | total 28.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-02-01, due 2026-04-02 | 2026-02-01…2026-02-28 fee: 28.00 | 2026-01-01…2026-01-31 calls × 100: 10.00 | total 38.00 EUR",
        ],
    );
}

#[test]
fn a_contract_cancelled_and_resumed_today_bills_its_month_once() {
    for payment_time in [PaymentTime::AfterUse, PaymentTime::DuringUse, PaymentTime::BeforeUse] {
        let (books, _, contract) = begun(payment_time, Some("19"));
        books.bill("2026-01-01T02:00:00Z");
        books.clock("2026-01-10T12:00:00Z");
        books.calls("2026-01-10T12:00:00Z", "100");
        books.cancel(contract, CancelAt::Today);
        // 28.00 × 10 ÷ 31.
        assert_eq!(billed(&books, "2026-01-01", "fee"), "9.03", "{payment_time:?}");
        books.clock("2026-01-10T13:00:00Z");
        assert_eq!(books.resume(contract).expect("a resumed contract"), "ACTIVE");
        assert_eq!(billed(&books, "2026-01-01", "fee"), "28.00", "{payment_time:?}");
        books.clock("2026-01-20T12:00:00Z");
        books.calls("2026-01-20T12:00:00Z", "10");
        books.bill("2026-02-01T02:00:00Z");
        books.bill("2026-03-01T02:00:00Z");
        let found =
            [("2026-01-01", "fee"), ("2026-01-01", "calls"), ("2026-02-01", "fee")].map(|(month, id)| billed(&books, month, id));
        assert_eq!(found, ["28.00", "11.00", "28.00"], "{payment_time:?}");
    }
}

#[test]
fn a_cancel_from_a_past_day_gives_back_the_days_after_it_but_no_usage() {
    let (books, _, contract) = begun(PaymentTime::AfterUse, None);
    books.clock("2026-01-20T12:00:00Z");
    books.calls("2026-01-20T12:00:00Z", "100");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    let cancel = |day: &str| {
        let (services, principal) = (&books.bench.services, &books.bench.principal);
        run(services, principal, UseCase::CancelContract, |cx| cancel_contract(cx, contract, CancelAt::Day(date(day)), false))
    };
    assert_eq!(code(cancel("2026-01-19")), "usage_already_reported");
    assert_eq!(code(cancel("2025-12-30")), "out_of_range");
    cancel("2026-01-24").expect("a cancellation");
    assert_eq!(books.state(contract), "CANCELLED");
    assert_documents(
        &books,
        &[
            "UB-INV-1 PARTIALLY_PAID, issued 2026-02-01, due 2026-04-02 | 2026-01-01…2026-01-31 fee: 28.00 | 2026-01-01…2026-01-31 calls × 100: 10.00 | total 38.00 EUR, credits 6.32, left to pay 31.68",
            "UB-CRD-1 SETTLED, of UB-INV-1, issued 2026-02-10 | 2026-01-25…2026-01-31 fee: 6.32 | total 6.32 EUR",
        ],
    );
    assert_eq!(code(books.resume(contract)), "contract_over");
}

#[test]
fn a_product_put_back_is_billed_what_was_given_back() {
    let books = Books::at("2026-02-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "28.00")]);
    let support = books.pricing("support", vec![fixed("support", "14.00")]);
    let in_advance = |pricing: &Pricing| {
        let mut product = requested(pricing, "2026-02-01", "2026-12-31");
        product.payment_time = Some(PaymentTime::BeforeUse);
        product
    };
    let contract = books.contract(vec![in_advance(&api), in_advance(&support)]);
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    books.edit(contract, vec![same(&api)], EffectiveFrom::CurrentPeriod).expect("an edit");
    assert_documents(
        &books,
        &[
            "UB-INV-1 PARTIALLY_PAID, issued 2026-02-01, due 2026-04-02 | 2026-02-01…2026-02-28 fee: 28.00 | 2026-02-01…2026-02-28 support: 14.00 | total 42.00 EUR, credits 9.00, left to pay 33.00",
            "UB-CRD-1 SETTLED, of UB-INV-1, issued 2026-02-10 | 2026-02-11…2026-02-28 support: 9.00 | total 9.00 EUR",
        ],
    );
    books.edit(contract, vec![same(&support), same(&api)], EffectiveFrom::NextPeriod).expect("an edit");
    assert_documents(
        &books,
        &[
            "UB-INV-1 PARTIALLY_PAID, issued 2026-02-01, due 2026-04-02 | 2026-02-01…2026-02-28 fee: 28.00 | 2026-02-01…2026-02-28 support: 14.00 | total 42.00 EUR, credits 9.00, left to pay 33.00",
            "UB-CRD-1 SETTLED, of UB-INV-1, issued 2026-02-10 | 2026-02-11…2026-02-28 support: 9.00 | total 9.00 EUR",
            "UB-DBT-1 ISSUED, of UB-INV-1, issued 2026-02-10, due 2026-04-11 | 2026-02-11…2026-02-28 support: 9.00 | total 9.00 EUR",
        ],
    );
}

#[test]
fn products_of_one_pricing_are_told_apart_by_their_start_in_any_order() {
    let books = Books::at("2026-02-10T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "28.00")]);
    let contract = books.contract(vec![requested(&api, "2026-01-01", "2026-02-28"), requested(&api, "2026-03-01", "2026-12-31")]);
    let first = ProductPatch { billing_start_date: Some(date("2026-01-01")), ..same(&api) };
    let second = ProductPatch { billing_start_date: Some(date("2026-03-01")), discount: Patch::Set(percent("50")), ..same(&api) };
    assert_eq!(
        code(books.edit(contract, vec![same(&api), same(&api)], EffectiveFrom::NextPeriod)),
        "ambiguous_product, ambiguous_product"
    );
    let other = books.bench.fork();
    books.edit(contract, vec![first.clone(), second.clone()], EffectiveFrom::NextPeriod).expect("an edit");
    books.bill("2026-04-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-04-01, due 2026-05-31 | 2026-01-01…2026-01-31 fee: 28.00 | total 28.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-04-01, due 2026-05-31 | 2026-02-01…2026-02-28 fee: 28.00 | total 28.00 EUR",
            "UB-INV-3 ISSUED, issued 2026-04-01, due 2026-05-31 | 2026-03-01…2026-03-31 fee: 28.00 | discount 50 %: -14.00 | total 14.00 EUR",
        ],
    );
    let books = Books { bench: other };
    books.edit(contract, vec![second, first], EffectiveFrom::NextPeriod).expect("an edit");
    books.bill("2026-04-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-04-01, due 2026-05-31 | 2026-01-01…2026-01-31 fee: 28.00 | total 28.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-04-01, due 2026-05-31 | 2026-02-01…2026-02-28 fee: 28.00 | total 28.00 EUR",
            "UB-INV-3 ISSUED, issued 2026-04-01, due 2026-05-31 | 2026-03-01…2026-03-31 fee: 28.00 | discount 50 %: -14.00 | total 14.00 EUR",
        ],
    );
}

#[test]
fn a_dry_run_takes_no_number() {
    let (books, api, contract) = begun(PaymentTime::BeforeUse, None);
    books.bill("2026-01-01T02:00:00Z");
    for _ in 0..2 {
        let edited = books.try_dry_edit(contract, vec![with_price(&api, "fee", "30.00")], EffectiveFrom::CurrentPeriod);
        let effects = edited.expect("a dry run");
        assert_eq!(effects.issued[0].opened.as_ref().map(|opened| opened.number.to_string()).as_deref(), Some("UB-DBT-1"));
    }
    assert_documents(
        &books,
        &["UB-INV-1 ISSUED, issued 2026-01-01, due 2026-03-02 | 2026-01-01…2026-01-31 fee: 28.00 | total 28.00 EUR"],
    );
}

#[test]
fn what_was_read_and_is_posted_back_with_its_version_changes_nothing() {
    let (books, api, contract) = begun(PaymentTime::AfterUse, None);
    books.clock("2026-02-10T12:00:00Z");
    books.edit(contract, vec![with_price(&api, "fee", "40.00")], EffectiveFrom::Day(date("2026-06-01"))).expect("an edit");
    let version = books.version(contract);
    let whole = ProductPatch {
        billing_start_date: Some(date("2026-01-01")),
        billing_end_date: Some(date("2026-12-31")),
        ..with_price(&api, "fee", "40.00")
    };
    for since in [EffectiveFrom::NextPeriod, EffectiveFrom::CurrentPeriod, EffectiveFrom::Day(date("2026-01-01"))] {
        books.try_edit(contract, vec![whole.clone()], since, Some(version), false).expect("no change");
        assert_eq!(books.version(contract), version, "{since:?}");
    }
    // Without a version, an edit with a date is a change from that date on.
    books.edit(contract, vec![whole], EffectiveFrom::Day(date("2026-04-01"))).expect("an edit");
    assert_eq!(books.version(contract), version + 1);
    books.bill("2026-05-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-05-01, due 2026-06-30 | 2026-01-01…2026-01-31 fee: 28.00 | 2026-01-01…2026-01-31 calls × 0: 0.00 | total 28.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-05-01, due 2026-06-30 | 2026-02-01…2026-02-28 fee: 28.00 | 2026-02-01…2026-02-28 calls × 0: 0.00 | total 28.00 EUR",
            "UB-INV-3 ISSUED, issued 2026-05-01, due 2026-06-30 | 2026-03-01…2026-03-31 fee: 28.00 | 2026-03-01…2026-03-31 calls × 0: 0.00 | total 28.00 EUR",
            "UB-INV-4 ISSUED, issued 2026-05-01, due 2026-06-30 | 2026-04-01…2026-04-30 fee: 40.00 | 2026-04-01…2026-04-30 calls × 0: 0.00 | total 40.00 EUR",
        ],
    );
}

#[test]
fn a_dry_run_names_the_drafts_that_would_say_something_else_and_no_others() {
    let (books, api, contract) = begun(PaymentTime::AfterUse, None);
    books.clock("2026-01-10T12:00:00Z");
    books.calls("2026-01-10T12:00:00Z", "100");
    for (since, recomputed) in [(EffectiveFrom::NextPeriod, 0), (EffectiveFrom::CurrentPeriod, 1)] {
        let effects = books.try_dry_edit(contract, vec![with_price(&api, "fee", "30.00")], since).expect("a dry run");
        assert_eq!(effects.recomputed.len(), recomputed, "{since:?}");
    }
}

/// Returns the effect on each document, the first day of its period, and its billed amount before and after the change with the
/// difference.
fn compared(effects: &Effects) -> Vec<String> {
    let amount = |amount: Option<MoneySum>| amount.map_or_else(|| "-".to_owned(), |amount| amount.to_decimal().to_string());
    let one =
        |figure: FigureChange| format!("{} {} {}", amount(figure.before), amount(figure.after), figure.difference.to_decimal());
    effects.changes.iter().map(|of| format!("{:?} {} {}", of.effect, of.period.start(), one(of.billed))).collect()
}

#[test]
fn a_dry_run_compares_the_planned_documents_before_and_after() {
    let (books, api, contract) = begun(PaymentTime::AfterUse, None);
    books.clock("2026-01-10T12:00:00Z");
    let dearer = || vec![with_price(&api, "fee", "30.00")];
    let effects = books.try_dry_edit(contract, dearer(), EffectiveFrom::NextPeriod).expect("a dry run");
    assert_eq!(compared(&effects), ["Planned 2026-01-01 28.00 28.00 0.00", "Planned 2026-02-01 28.00 30.00 2.00"]);
    assert_eq!(effects.before.iter().map(|view| view.opened.is_some()).collect::<Vec<_>>(), [false; 2]);
    let totals: Vec<String> = effects.totals.iter().map(|totals| totals.billed.difference.to_string()).collect();
    assert_eq!(totals, ["2.00 EUR"]);
    let cancelled = run(&books.bench.services, &books.bench.principal, UseCase::CancelContract, |cx| {
        cx.dry_run(&mut |cx| cancel_contract(cx, contract, CancelAt::PeriodEnd, false).map(drop))
    });
    let cancelled = compared(&cancelled.expect("a dry run"));
    assert_eq!(cancelled, ["Planned 2026-01-01 28.00 28.00 0.00", "Removed 2026-02-01 28.00 - -28.00"]);
    // An open draft is compared with itself, and the next period with its plan.
    books.calls("2026-01-10T12:00:00Z", "100");
    let effects = books.try_dry_edit(contract, dearer(), EffectiveFrom::CurrentPeriod).expect("a dry run");
    assert_eq!(compared(&effects), ["Recomputed 2026-01-01 38.00 40.00 2.00", "Planned 2026-02-01 28.00 30.00 2.00"]);
    books.edit(contract, dearer(), EffectiveFrom::CurrentPeriod).expect("an edit");
    books.bill("2026-03-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-03-01, due 2026-04-30 | 2026-01-01…2026-01-31 fee: 30.00 | 2026-01-01…2026-01-31 calls × 100: 10.00 | total 40.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-03-01, due 2026-04-30 | 2026-02-01…2026-02-28 fee: 30.00 | 2026-02-01…2026-02-28 calls × 0: 0.00 | total 30.00 EUR",
        ],
    );
}

#[test]
fn a_dry_run_of_an_edit_from_the_past_has_no_figure_before_the_credit() {
    let (books, api, contract) = begun(PaymentTime::BeforeUse, None);
    books.bill("2026-01-01T02:00:00Z");
    books.clock("2026-01-10T12:00:00Z");
    let effects = books.try_dry_edit(contract, vec![with_price(&api, "fee", "20.00")], EffectiveFrom::CurrentPeriod);
    let effects = effects.expect("a dry run");
    let issued: Vec<String> = compared(&effects).into_iter().filter(|of| of.starts_with("Issued")).collect();
    assert!(matches!(&issued[..], [credit] if credit.ends_with(" - -8.00 -8.00")), "{issued:?}");
    // The credit reduces the amount due of the invoice, and nothing of it is left.
    let due: Vec<String> = effects.totals.iter().map(|totals| totals.outstanding.difference.to_string()).collect();
    assert_eq!(due, ["-8.00 EUR"]);
}
