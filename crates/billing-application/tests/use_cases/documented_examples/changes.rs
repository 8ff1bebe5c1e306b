//! Section 7.

use billing_application::UseCase;
use billing_application::contracts::{current_invoices, next_invoices};
use billing_domain::catalog::Pricing;
use billing_domain::contract::amendment::{CancelAt, EffectiveFrom};
use billing_domain::contract::terms::{PaymentTime, RequestedLineItem};
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;
use billing_domain::refs::ContractRef;
use billing_testkit::fixtures::{self, fixed, line_item_id, per_unit, requested};

use crate::books::{Books, code, repriced, same, shown};
use crate::documented_examples::page::Page;
use crate::support::read;

/// Returns a contract with a fee of 49.00 a month in 2026, billed on 1 January and 1 February. The date is 10 February.
fn monthly(payment_time: PaymentTime, tax: Option<&str>) -> (Books, Pricing, ContractRef) {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.payment_time = Some(payment_time);
    product.tax = tax.map(fixtures::percent);
    let contract = books.contract(vec![product]);
    books.bill("2026-01-01T02:00:00Z");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    (books, api, contract)
}

pub(crate) fn example_7_1_an_edit_starts_with_the_next_invoice(page: &mut Page) {
    let (books, api, contract) = monthly(PaymentTime::AfterUse, None);
    books.reprice(&api, vec![fixed("fee", "59.00")]);
    books.edit(contract, vec![same(&api)], EffectiveFrom::NextPeriod).expect("an edit");
    page.says(&format!("version {}", books.version(contract)));
    books.edit(contract, vec![repriced(&api)], EffectiveFrom::NextPeriod).expect("an edit");
    books.bill("2026-03-01T02:00:00Z");
    books.bill("2026-04-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_7_2_an_edit_of_the_current_invoice_changes_the_draft(page: &mut Page) {
    let (books, api, contract) = monthly(PaymentTime::AfterUse, None);
    let mut patch = same(&api);
    patch.discount = Patch::Set(fixtures::percent("10"));
    books.edit(contract, vec![patch], EffectiveFrom::CurrentPeriod).expect("an edit");
    books.bill("2026-03-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_7_3_an_edit_of_an_issued_invoice_is_a_debit(page: &mut Page) {
    let (books, api, contract) = monthly(PaymentTime::BeforeUse, None);
    books.reprice(&api, vec![fixed("fee", "59.00")]);
    books.edit(contract, vec![repriced(&api)], EffectiveFrom::CurrentPeriod).expect("an edit");
    books.bill("2026-03-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_7_4_a_new_tax_rate_is_a_credit_and_a_debit(page: &mut Page) {
    let (books, api, contract) = monthly(PaymentTime::BeforeUse, Some("19"));
    let mut patch = same(&api);
    patch.tax = Patch::Set(fixtures::percent("7"));
    books.edit(contract, vec![patch], EffectiveFrom::CurrentPeriod).expect("an edit");
    page.shows(&books.only(&["UB-INV-2", "UB-CRD-1", "UB-DBT-1"]));
}

pub(crate) fn example_7_5_an_edit_lists_all_products(page: &mut Page) {
    let books = Books::at("2026-02-10T12:00:00Z");
    let api = books.pricing("api", vec![fixed("api-fee", "49.00")]);
    let support = books.pricing("support", vec![fixed("support-fee", "20.00")]);
    let storage = books.pricing("storage", vec![fixed("storage-fee", "5.00")]);
    let products = vec![requested(&api, "2026-02-01", "2026-12-31"), requested(&support, "2026-02-01", "2026-12-31")];
    let contract = books.contract(products);
    let mut added = same(&storage);
    added.billing_start_date = Some(fixtures::date("2026-03-01"));
    added.billing_end_date = Some(fixtures::date("2026-12-31"));
    books.edit(contract, vec![same(&api), added], EffectiveFrom::NextPeriod).expect("an edit");
    books.bill("2026-03-01T02:00:00Z");
    books.bill("2026-04-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_7_6_an_edit_may_not_leave_usage_without_a_line(page: &mut Page) {
    let books = Books::at("2026-02-10T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00"), per_unit("calls", "0.01")]);
    let contract = books.contract(vec![requested(&api, "2026-02-01", "2026-12-31")]);
    books.calls("2026-02-10T12:00:00Z", "100");
    let mut patch = same(&api);
    patch.line_items = Patch::Set(vec![RequestedLineItem::plain(line_item_id("fee"))]);
    page.says(&code(books.edit(contract, vec![patch.clone()], EffectiveFrom::CurrentPeriod)));
    books.edit(contract, vec![patch], EffectiveFrom::NextPeriod).expect("an edit");
    books.bill("2026-03-01T02:00:00Z");
    books.bill("2026-04-01T02:00:00Z");
    page.shows(&books.documents());
}

/// Returns a contract with a fee of 31.00 and calls at 0.01 from 1 March.
fn march(payment_time: PaymentTime) -> (Books, ContractRef) {
    let books = Books::at("2026-03-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "31.00"), per_unit("calls", "0.01")]);
    let mut product = requested(&api, "2026-03-01", "2026-12-31");
    product.payment_time = Some(payment_time);
    let contract = books.contract(vec![product]);
    books.bill("2026-03-01T02:00:00Z");
    books.clock("2026-03-10T12:00:00Z");
    (books, contract)
}

pub(crate) fn example_7_7_a_cancelled_contract_runs_to_the_end_of_its_period(page: &mut Page) {
    let (books, contract) = march(PaymentTime::AfterUse);
    page.says(&books.cancel(contract, CancelAt::PeriodEnd));
    books.clock("2026-03-20T12:00:00Z");
    books.calls("2026-03-20T12:00:00Z", "100");
    books.bill("2026-04-01T02:00:00Z");
    page.says(&books.state(contract));
    page.says(&code(books.report("2026-04-01T00:30:00Z", "100", None)));
    books.bill("2026-05-02T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_7_8_a_contract_cancelled_today_is_billed_today(page: &mut Page) {
    let (books, contract) = march(PaymentTime::AfterUse);
    books.calls("2026-03-05T12:00:00Z", "100");
    page.says(&books.cancel(contract, CancelAt::Today));
    page.shows(&books.documents());
    books.clock("2026-03-12T12:00:00Z");
    books.calls("2026-03-09T12:00:00Z", "100");
    page.says(&code(books.report("2026-03-11T12:00:00Z", "100", None)));
    page.shows(&books.only(&["UB-DBT-1"]));
}

pub(crate) fn example_7_9_days_paid_in_advance_are_given_back(page: &mut Page) {
    let (books, contract) = march(PaymentTime::BeforeUse);
    books.cancel(contract, CancelAt::Today);
    page.shows(&books.documents());
}

pub(crate) fn example_7_10_a_preview_is_what_is_issued(page: &mut Page) {
    let (books, _, contract) = monthly(PaymentTime::AfterUse, Some("19"));
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let current =
        read(services, principal, UseCase::PreviewInvoices, |cx| current_invoices(cx, contract)).expect("a current invoice");
    let next = read(services, principal, UseCase::PreviewInvoices, |cx| next_invoices(cx, contract)).expect("a next invoice");
    page.shows(&format!("current:\n{}\n\nnext:\n{}", shown(&current), shown(&next)));
    books.bill("2026-03-01T02:00:00Z");
    page.shows(&books.only(&["UB-INV-2"]));
    let issued = books.bench.documents().pop().expect("an invoice");
    assert_eq!(issued.content, current[0].content);
}

pub(crate) fn example_7_11_defaults_come_from_customer_and_entity(page: &mut Page) {
    let books = Books::with(
        "2026-01-01T00:00:00Z",
        |entity| entity.profile.net_terms = Some(NetTerms::Days(14)),
        |customer| customer.profile.taxes = fixtures::default_tax("19"),
    );
    let api = books.pricing("api", vec![fixed("api-fee", "100.00")]);
    let support = books.pricing("support", vec![fixed("support-fee", "20.00")]);
    let mut stated = requested(&support, "2026-01-01", "2026-01-31");
    stated.tax = Some(fixtures::percent("7"));
    stated.net_terms = Some(NetTerms::Days(30));
    books.contract(vec![requested(&api, "2026-01-01", "2026-01-31"), stated]);
    books.bill("2026-02-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_7_12_states_follow_from_the_dates(page: &mut Page) {
    let books = Books::at("2025-12-31T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00")]);
    let contract = books.contract(vec![requested(&api, "2026-01-01", "2026-06-30")]);
    let rows = ["2025-12-31", "2026-01-01", "2026-06-30", "2026-07-01"].map(|day| {
        books.clock(&format!("{day}T12:00:00Z"));
        format!("{day}: {}", books.state(contract))
    });
    page.shows(&rows.join("\n"));
}
