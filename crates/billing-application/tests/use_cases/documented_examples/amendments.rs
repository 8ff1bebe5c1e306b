//! Section 7: changes from any day on, and reversals.

use billing_application::UseCase;
use billing_application::contracts::current_invoices;
use billing_domain::catalog::{PriceModel, Pricing};
use billing_domain::contract::amendment::{CancelAt, EffectiveFrom, ProductPatch};
use billing_domain::contract::terms::{PaymentTime, RequestedLineItem};
use billing_domain::patch::Patch;
use billing_domain::refs::ContractRef;
use billing_testkit::fixtures::{self, date, fixed, line_item_id, per_unit, requested};

use crate::books::{Books, code, same, shown};
use crate::documented_examples::page::Page;
use crate::support::read;

/// Returns a product patch with another fee.
fn with_fee(pricing: &Pricing, amount: &str) -> ProductPatch {
    let price = Patch::Set(PriceModel::Flat { amount: fixtures::price(amount) });
    let fee = RequestedLineItem { price, ..RequestedLineItem::plain(line_item_id("fee")) };
    ProductPatch { line_items: Patch::Set(vec![fee]), ..same(pricing) }
}

/// Returns a contract at 1,000.00 a month from 1 January. The date is 10 March, when the wrong price is noticed.
fn too_dear() -> (Books, Pricing, ContractRef) {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "1000.00")]);
    let contract = books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.bill("2026-02-01T02:00:00Z");
    books.bill("2026-03-01T02:00:00Z");
    books.clock("2026-03-10T12:00:00Z");
    (books, api, contract)
}

pub(crate) fn example_7_13_a_wrong_fee_is_put_right_from_the_past(page: &mut Page) {
    let (books, api, contract) = too_dear();
    books.edit(contract, vec![with_fee(&api, "100.00")], EffectiveFrom::Day(date("2026-01-01"))).expect("an edit");
    books.bill("2026-04-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_7_14_a_dry_run_shows_what_an_edit_would_do(page: &mut Page) {
    let (books, api, contract) = too_dear();
    let before = books.bench.store.contents();
    let since = EffectiveFrom::Day(date("2026-02-01"));
    let effects = books.try_dry_edit(contract, vec![with_fee(&api, "100.00")], since).expect("a dry run");
    assert!(effects.opened.is_empty() && effects.recomputed.is_empty() && effects.voided.is_empty());
    page.shows(&format!("issued:\n{}", shown(&effects.issued)));
    assert_eq!(books.bench.store.contents(), before);
}

pub(crate) fn example_7_15_what_is_planned_stays_planned(page: &mut Page) {
    let books = Books::at("2026-02-10T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00")]);
    let contract = books.contract(vec![requested(&api, "2026-02-01", "2026-12-31")]);
    books.edit(contract, vec![with_fee(&api, "59.00")], EffectiveFrom::Day(date("2026-04-01"))).expect("a price rise");
    let discounted = ProductPatch { discount: Patch::Set(fixtures::percent("10")), ..same(&api) };
    books.edit(contract, vec![discounted], EffectiveFrom::NextPeriod).expect("a discount");
    for day in ["2026-03-01", "2026-04-01", "2026-05-01"] {
        books.bill(&format!("{day}T02:00:00Z"));
    }
    page.shows(&books.documents());
}

/// Returns a contract for an API at 49.00 and support at 20.00 from 1 February. The date is 10 February.
fn two_products() -> (Books, Pricing, Pricing, ContractRef) {
    let books = Books::at("2026-02-10T12:00:00Z");
    let api = books.pricing("api", vec![fixed("api-fee", "49.00")]);
    let support = books.pricing("support", vec![fixed("support-fee", "20.00")]);
    let products = vec![requested(&api, "2026-02-01", "2026-12-31"), requested(&support, "2026-02-01", "2026-12-31")];
    let contract = books.contract(products);
    (books, api, support, contract)
}

pub(crate) fn example_7_16_an_edit_that_changes_nothing_makes_no_version(page: &mut Page) {
    let (books, api, support, contract) = two_products();
    books.edit(contract, vec![same(&support), same(&api)], EffectiveFrom::NextPeriod).expect("an edit");
    page.says(&format!("version {}", books.version(contract)));
}

pub(crate) fn example_7_17_a_product_that_is_put_back_goes_on(page: &mut Page) {
    let (books, api, support, contract) = two_products();
    books.edit(contract, vec![same(&api)], EffectiveFrom::NextPeriod).expect("an edit");
    books.clock("2026-02-20T12:00:00Z");
    books.edit(contract, vec![same(&api), same(&support)], EffectiveFrom::NextPeriod).expect("an edit");
    books.bill("2026-03-01T02:00:00Z");
    books.bill("2026-04-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_7_18_a_product_that_has_ended_goes_on_later(page: &mut Page) {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00")]);
    let contract = books.contract(vec![requested(&api, "2026-01-01", "2026-01-31")]);
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    page.says(&books.state(contract));
    let longer =
        ProductPatch { billing_start_date: Some(date("2026-01-01")), billing_end_date: Some(date("2026-12-31")), ..same(&api) };
    page.says(&code(books.edit(contract, vec![longer.clone()], EffectiveFrom::NextPeriod)));
    books.edit(contract, vec![longer], EffectiveFrom::Day(date("2026-03-01"))).expect("an edit");
    books.bill("2026-04-01T02:00:00Z");
    page.shows(&books.documents());
}

/// Returns a contract with a fee of 31.00 from 1 March, billed in advance. The date is 10 March.
fn march() -> (Books, ContractRef) {
    let books = Books::at("2026-03-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "31.00")]);
    let mut product = requested(&api, "2026-03-01", "2026-12-31");
    product.payment_time = Some(PaymentTime::BeforeUse);
    let contract = books.contract(vec![product]);
    books.bill("2026-03-01T02:00:00Z");
    books.clock("2026-03-10T12:00:00Z");
    (books, contract)
}

pub(crate) fn example_7_19_a_cancel_with_a_last_day_and_taken_back(page: &mut Page) {
    let (books, contract) = march();
    page.says(&books.cancel(contract, CancelAt::Day(date("2026-03-20"))));
    page.shows(&books.documents());
    books.clock("2026-03-15T12:00:00Z");
    page.says(&books.resume(contract).expect("a resumed contract"));
    page.shows(&books.only(&["UB-INV-1", "UB-DBT-1"]));
    books.cancel(contract, CancelAt::Day(date("2026-03-20")));
    books.clock("2026-03-21T00:00:00Z");
    page.says(&code(books.resume(contract)));
}

pub(crate) fn example_7_20_a_contract_that_should_never_have_been(page: &mut Page) {
    let (books, contract) = march();
    books.cancel(contract, CancelAt::Day(date("2026-02-28")));
    page.shows(&books.documents());
    books.bill("2026-05-01T02:00:00Z");
    assert_eq!(books.bench.documents().len(), 2);
}

pub(crate) fn example_7_21_a_preview_of_before_use_shows_the_debit(page: &mut Page) {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00"), per_unit("calls", "0.01")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.payment_time = Some(PaymentTime::BeforeUse);
    let contract = books.contract(vec![product]);
    books.bill("2026-01-01T02:00:00Z");
    let current =
        read(&books.bench.services, &books.bench.principal, UseCase::PreviewInvoices, |cx| current_invoices(cx, contract))
            .expect("current invoices");
    page.shows(&shown(&current));
}

pub(crate) fn example_7_22_what_an_edit_cant_do(page: &mut Page) {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00")]);
    let contract = books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    let discounted = || ProductPatch { discount: Patch::Set(fixtures::percent("10")), ..same(&api) };
    let paid_ahead = ProductPatch { payment_time: Patch::Set(PaymentTime::BeforeUse), ..same(&api) };
    let begun_later = ProductPatch { billing_start_date: Some(date("2026-02-01")), ..same(&api) };
    let twice =
        ProductPatch { billing_start_date: Some(date("2026-06-01")), billing_end_date: Some(date("2026-12-31")), ..same(&api) };
    let original = ProductPatch { billing_start_date: Some(date("2026-01-01")), ..same(&api) };
    let refused = |products: Vec<ProductPatch>, since: EffectiveFrom| code(books.edit(contract, products, since));
    let mut rows = vec![
        format!("a discount from 15 February: {}", refused(vec![discounted()], EffectiveFrom::Day(date("2026-02-15")))),
        format!("a discount from 15 December 2025: {}", refused(vec![discounted()], EffectiveFrom::Day(date("2025-12-15")))),
        format!("BEFORE_USE from 1 January: {}", refused(vec![paid_ahead], EffectiveFrom::Day(date("2026-01-01")))),
        format!("a start on 1 February: {}", refused(vec![begun_later], EffectiveFrom::NextPeriod)),
        format!("the same pricing again from June: {}", refused(vec![original, twice], EffectiveFrom::NextPeriod)),
    ];
    books.edit(contract, vec![discounted()], EffectiveFrom::NextPeriod).expect("version 2");
    let stale = books.try_edit(contract, vec![same(&api)], EffectiveFrom::NextPeriod, Some(1), false);
    rows.push(format!("an edit of version 1, when there is version 2: {}", code(stale)));
    books.cancel(contract, CancelAt::PeriodEnd);
    rows.push(format!("an edit after a cancel: {}", refused(vec![same(&api)], EffectiveFrom::NextPeriod)));
    page.shows(&rows.join("\n"));
}
