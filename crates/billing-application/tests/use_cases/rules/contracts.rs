//! Section 7: edits and cancellations.

use billing_application::UseCase;
use billing_application::contracts::cancel_contract;
use billing_application::documents::issue_document;
use billing_domain::catalog::Pricing;
use billing_domain::contract::amendment::{CancelAt, EffectiveFrom};
use billing_domain::contract::terms::{PaymentTime, RequestedLineItem};
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;
use billing_domain::refs::ContractRef;
use billing_testkit::fixtures::{date, fixed, line_item_id, per_unit, percent, requested};

use crate::books::{Books, code, repriced, same};
use crate::rules::assert_documents;
use crate::support::run;

/// Returns a contract for February to December 2026 at 28.00 a month and 0.10 per call. January is over. The date is
/// 10 February.
fn february(payment_time: PaymentTime) -> (Books, Pricing, ContractRef) {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "28.00"), per_unit("calls", "0.10")]);
    let mut product = requested(&api, "2026-02-01", "2026-12-31");
    product.payment_time = Some(payment_time);
    let contract = books.contract(vec![product]);
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    (books, api, contract)
}

#[test]
fn an_edit_holds_from_the_next_period_by_default() {
    let (books, api, contract) = february(PaymentTime::AfterUse);
    books.reprice(&api, vec![fixed("fee", "56.00"), per_unit("calls", "0.10")]);
    books.edit(contract, vec![repriced(&api)], EffectiveFrom::NextPeriod).expect("an edit");
    books.bill("2026-04-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-04-01, due 2026-05-31 | 2026-02-01…2026-02-28 fee: 28.00 | 2026-02-01…2026-02-28 calls × 0: 0.00 | total 28.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-04-01, due 2026-05-31 | 2026-03-01…2026-03-31 fee: 56.00 | 2026-03-01…2026-03-31 calls × 0: 0.00 | total 56.00 EUR",
        ],
    );
}

#[test]
fn an_edit_of_the_current_invoice_rates_its_draft_anew() {
    let (books, api, contract) = february(PaymentTime::AfterUse);
    books.calls("2026-02-10T00:00:00Z", "10");
    books.reprice(&api, vec![fixed("fee", "56.00"), per_unit("calls", "0.20")]);
    let mut patch = repriced(&api);
    (patch.discount, patch.net_terms) = (Patch::Set(percent("50")), Patch::Set(NetTerms::DueUponReceipt));
    books.edit(contract, vec![patch], EffectiveFrom::CurrentPeriod).expect("an edit");
    books.bill("2026-03-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            // New net terms apply to documents opened from now on.
            "UB-INV-1 ISSUED, issued 2026-03-01, due 2026-04-30 | 2026-02-01…2026-02-28 fee: 56.00 | 2026-02-01…2026-02-28 calls × 10: 2.00 | discount 50 %: -29.00 | total 29.00 EUR",
        ],
    );
}

#[test]
fn an_edit_of_an_issued_invoice_is_a_debit_or_a_credit_issued_at_once() {
    for (price, correction) in [("30.00", "DBT-1"), ("25.00", "CRD-1")] {
        let (books, api, contract) = february(PaymentTime::BeforeUse);
        books.reprice(&api, vec![fixed("fee", price), per_unit("calls", "0.10")]);
        books.edit(contract, vec![repriced(&api)], EffectiveFrom::CurrentPeriod).expect("an edit");
        let shown = books.documents();
        let difference = if price == "30.00" { "2.00" } else { "3.00" };
        // A credit settles the invoice at once.
        let (state, due) = if price == "30.00" { ("ISSUED", ", due 2026-04-11") } else { ("SETTLED", "") };
        let expected = format!(
            "UB-{correction} {state}, of UB-INV-1, issued 2026-02-10{due}\n  2026-02-01…2026-02-28 fee: {difference}\n  total {difference} EUR"
        );
        assert!(shown.contains(&expected), "{shown}");
    }
}

#[test]
fn a_changed_tax_is_a_credit_at_the_old_rate_and_a_debit_at_the_new() {
    let (books, api, contract) = february(PaymentTime::BeforeUse);
    let mut patch = same(&api);
    patch.tax = Patch::Set(percent("25"));
    books.edit(contract, vec![patch], EffectiveFrom::CurrentPeriod).expect("an edit");
    assert_documents(
        &books,
        &[
            "UB-INV-1 PAID, issued 2026-02-01, due 2026-04-02 | 2026-02-01…2026-02-28 fee: 28.00 | total 28.00 EUR, credits 28.00, left to pay 0.00",
            "UB-CRD-1 SETTLED, of UB-INV-1, issued 2026-02-10 | 2026-02-01…2026-02-28 fee: 28.00 | total 28.00 EUR",
            "UB-DBT-1 ISSUED, of UB-INV-1, issued 2026-02-10, due 2026-04-11 | 2026-02-01…2026-02-28 fee: 28.00 | tax 25 % of 28.00: 7.00 | total 35.00 EUR",
        ],
    );
}

#[test]
fn an_invoice_issued_before_its_period_is_corrected_by_a_cancel() {
    let (books, _, contract) = february(PaymentTime::DuringUse);
    books.calls("2026-02-10T00:00:00Z", "10");
    let early = books.reference("UB-INV-2");
    run(&books.bench.services, &books.bench.principal, UseCase::IssueDocument, |cx| issue_document(cx, early, false))
        .expect("an invoice");
    books.cancel(contract, CancelAt::PeriodEnd);
    // The fee of March is credited. The usage of February stays on its invoice.
    assert_eq!(
        books.only(&["UB-CRD-1"]),
        "UB-CRD-1 SETTLED, of UB-INV-2, issued 2026-02-10\n  2026-03-01…2026-03-31 fee: 28.00\n  total 28.00 EUR"
    );
    books.bill("2026-03-01T02:00:00Z");
    assert!(!books.documents().contains("UB-INV-3"));
}

#[test]
fn an_edit_may_not_leave_usage_without_line_item_or_period() {
    let (books, api, contract) = february(PaymentTime::AfterUse);
    books.calls("2026-02-09T00:00:00Z", "10");
    let before = books.bench.store.contents();
    let mut without_item = same(&api);
    without_item.line_items = Patch::Set(vec![RequestedLineItem::plain(line_item_id("fee"))]);
    let mut without_period = same(&api);
    without_period.billing_end_date = Some(date("2026-02-08"));
    for patch in [without_item.clone(), without_period] {
        assert_eq!(code(books.edit(contract, vec![patch], EffectiveFrom::CurrentPeriod)), "usage_already_reported");
    }
    assert_eq!(books.bench.store.contents(), before);
    books.edit(contract, vec![without_item], EffectiveFrom::NextPeriod).expect("an edit of later periods");
}

#[test]
fn only_a_contract_that_goes_on_can_be_edited() {
    let (books, api, contract) = february(PaymentTime::AfterUse);
    books.cancel(contract, CancelAt::PeriodEnd);
    for now in ["2026-02-10T12:00:00Z", "2026-03-01T00:00:00Z"] {
        books.clock(now);
        assert_eq!(code(books.edit(contract, vec![same(&api)], EffectiveFrom::NextPeriod)), "contract_over");
    }
}

#[test]
fn a_product_that_an_edit_leaves_out_ends_with_its_period_and_one_it_adds_starts_on_its_day() {
    let (books, _, contract) = february(PaymentTime::AfterUse);
    let support = books.pricing("support", vec![fixed("support", "5.00")]);
    let mut added = same(&support);
    (added.billing_start_date, added.billing_end_date) = (Some(date("2026-03-01")), Some(date("2026-12-31")));
    books.edit(contract, vec![added], EffectiveFrom::NextPeriod).expect("an edit");
    books.bill("2026-04-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-04-01, due 2026-05-31 | 2026-02-01…2026-02-28 fee: 28.00 | 2026-02-01…2026-02-28 calls × 0: 0.00 | total 28.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-04-01, due 2026-05-31 | 2026-03-01…2026-03-31 support: 5.00 | total 5.00 EUR",
        ],
    );
}

#[test]
fn a_cancel_lets_the_current_period_run_out() {
    let (books, _, contract) = february(PaymentTime::AfterUse);
    assert_eq!(books.cancel(contract, CancelAt::PeriodEnd), "CANCELLING");
    books.clock("2026-02-28T23:59:59Z");
    books.calls("2026-02-28T23:59:59Z", "10");
    books.bill("2026-03-01T02:00:00Z");
    assert_eq!(books.state(contract), "CANCELLED");
    assert_eq!(code(books.report("2026-03-01T00:00:00Z", "1", None)), "no_matching_contract");
    books.bill("2026-06-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-03-01, due 2026-04-30, overdue | 2026-02-01…2026-02-28 fee: 28.00 | 2026-02-01…2026-02-28 calls × 10: 1.00 | total 29.00 EUR",
        ],
    );
}

#[test]
fn a_cancel_of_the_current_invoice_bills_the_days_used_at_once() {
    let (books, _, contract) = february(PaymentTime::AfterUse);
    books.calls("2026-02-10T00:00:00Z", "10");
    // The contract stays in this state until the end of the day.
    assert_eq!(books.cancel(contract, CancelAt::Today), "CANCELLING");
    let invoice = "UB-INV-1 ISSUED, issued 2026-02-10, due 2026-04-11 | 2026-02-01…2026-02-10 fee: 10.00 | 2026-02-01…2026-02-10 calls × 10: 1.00 | total 11.00 EUR";
    assert_documents(&books, &[invoice]);
    books.clock("2026-02-12T12:00:00Z");
    assert_eq!(code(books.report("2026-02-11T00:00:00Z", "1", None)), "no_matching_contract");
    books.calls("2026-02-10T23:59:59Z", "3");
    let late = "UB-DBT-1 DRAFT, of UB-INV-1 | 2026-02-01…2026-02-10 calls × 3: 0.30 | total 0.30 EUR";
    assert_documents(&books, &[invoice, late]);
}

#[test]
fn a_cancel_gives_back_what_was_billed_in_advance_and_bills_usage_on_a_closing_invoice() {
    let (books, _, contract) = february(PaymentTime::DuringUse);
    books.calls("2026-02-10T00:00:00Z", "10");
    books.cancel(contract, CancelAt::Today);
    assert_documents(
        &books,
        &[
            "UB-INV-1 PARTIALLY_PAID, issued 2026-02-01, due 2026-04-02 | 2026-02-01…2026-02-28 fee: 28.00 | total 28.00 EUR, credits 18.00, left to pay 10.00",
            // The draft of March contained the usage of February and is now the closing invoice.
            "UB-INV-2 ISSUED, issued 2026-02-10, due 2026-04-11 | 2026-02-01…2026-02-10 calls × 10: 1.00 | total 1.00 EUR",
            "UB-CRD-1 SETTLED, of UB-INV-1, issued 2026-02-10 | 2026-02-11…2026-02-28 fee: 18.00 | total 18.00 EUR",
        ],
    );
}

#[test]
fn usage_dated_ahead_of_the_clock_holds_a_cancel_up() {
    let (books, _, contract) = february(PaymentTime::AfterUse);
    books.clock("2026-02-10T23:58:00Z");
    books.calls("2026-02-11T00:02:00Z", "10");
    let before = books.bench.store.contents();
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let refused = run(services, principal, UseCase::CancelContract, |cx| cancel_contract(cx, contract, CancelAt::Today, false));
    assert_eq!(code(refused), "usage_already_reported");
    assert_eq!(books.bench.store.contents(), before);
    books.clock("2026-02-11T00:00:00Z");
    books.cancel(contract, CancelAt::Today);
}

#[test]
fn a_pending_contract_is_cancelled_without_documents() {
    for last_day in [CancelAt::PeriodEnd, CancelAt::Today] {
        let books = Books::at("2026-01-31T12:00:00Z");
        let api = books.pricing("api", vec![fixed("fee", "28.00")]);
        let mut product = requested(&api, "2026-02-01", "2026-12-31");
        product.payment_time = Some(PaymentTime::BeforeUse);
        let contract = books.contract(vec![product]);
        assert_eq!(books.state(contract), "PENDING");
        assert_eq!(books.cancel(contract, last_day), "CANCELLED");
        books.bill("2026-06-01T02:00:00Z");
        assert_documents(&books, &[]);
    }
}

#[test]
fn a_cancelling_contract_may_still_be_cancelled_at_once_and_then_never_again() {
    let (books, _, contract) = february(PaymentTime::AfterUse);
    let cancel = |last_day| {
        let (services, principal) = (&books.bench.services, &books.bench.principal);
        run(services, principal, UseCase::CancelContract, |cx| cancel_contract(cx, contract, last_day, false))
    };
    assert!(cancel(CancelAt::PeriodEnd).is_ok());
    assert_eq!(code(cancel(CancelAt::PeriodEnd)), "contract_over");
    assert!(cancel(CancelAt::Today).is_ok());
    assert_eq!(books.documents().lines().next(), Some("UB-INV-1 ISSUED, issued 2026-02-10, due 2026-04-11"));
    for last_day in [CancelAt::PeriodEnd, CancelAt::Today] {
        assert_eq!(code(cancel(last_day)), "contract_over");
    }
}

#[test]
fn children_keep_the_parent_of_a_period_that_a_cancel_takes_away() {
    let books = Books::at("2026-02-10T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "28.00"), per_unit("calls", "0.10")]);
    let mut product = requested(&api, "2026-02-01", "2026-12-31");
    (product.payment_time, product.net_terms) = (Some(PaymentTime::DuringUse), Some(NetTerms::DueUponUsage));
    let contract = books.contract(vec![product]);
    books.bill("2026-02-10T12:00:00Z");
    books.calls("2026-02-10T00:00:00Z", "10");
    books.cancel(contract, CancelAt::PeriodEnd);
    books.bill("2026-03-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-02-10, due 2026-02-10, overdue | 2026-02-01…2026-02-28 fee: 28.00 | total 28.00 EUR",
            "UB-INV-2 PAID, issued 2026-03-01, due 2026-03-01 | 2026-02-01…2026-02-28 calls × 10: 0.00 | total 0.00 EUR",
            "UB-INV-3 ISSUED, of UB-INV-2, issued 2026-02-10, due 2026-02-10, overdue | 2026-02-01…2026-02-28 calls × 10: 1.00 | total 1.00 EUR",
        ],
    );
}
