//! Section 2: the document that bills an amount, and the time of billing.

use billing_application::UseCase;
use billing_application::billing_run::run_billing_everywhere;
use billing_application::contracts::{ContractRequest, create_contract};
use billing_application::documents::issue_document;
use billing_application::error::UseCaseError;
use billing_domain::catalog::LineItem;
use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::{PaymentTime, RequestedLineItem, RequestedProduct};
use billing_domain::document::linking::SlotKind;
use billing_domain::document::{DocumentKind, Purpose};
use billing_domain::metadata::Metadata;
use billing_domain::party::NetTerms;
use billing_testkit::fixtures::{self, fixed, once, per_unit, requested, volume, with_charge};

use crate::books::{Books, code};
use crate::rules::assert_documents;
use crate::support::run;

/// Returns a contract for January and February at 10.00 a month and 0.10 per call.
fn two_months(payment_time: PaymentTime) -> Books {
    let books = Books::at("2025-12-20T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "10.00"), per_unit("calls", "0.10")]);
    let mut product = requested(&api, "2026-01-01", "2026-02-28");
    product.payment_time = Some(payment_time);
    books.contract(vec![product]);
    books
}

/// Reports 20 calls in January and 30 in February. Runs billing at the first instant at which each month's documents are due.
fn live_through(books: &Books) {
    books.bill("2026-01-01T02:00:00Z");
    books.clock("2026-01-15T00:00:00Z");
    books.calls("2026-01-15T00:00:00Z", "20");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-15T00:00:00Z");
    books.calls("2026-02-15T00:00:00Z", "30");
    books.bill("2026-03-01T02:00:00Z");
}

#[test]
fn after_use_bills_fixed_items_and_usage_the_day_after_the_period() {
    let books = two_months(PaymentTime::AfterUse);
    live_through(&books);
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-02-01, due 2026-04-02 | 2026-01-01…2026-01-31 fee: 10.00 | 2026-01-01…2026-01-31 calls × 20: 2.00 | total 12.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-03-01, due 2026-04-30 | 2026-02-01…2026-02-28 fee: 10.00 | 2026-02-01…2026-02-28 calls × 30: 3.00 | total 13.00 EUR",
        ],
    );
}

#[test]
fn during_use_bills_usage_on_the_next_invoice_and_the_last_on_a_closing_one() {
    let books = two_months(PaymentTime::DuringUse);
    live_through(&books);
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-01-01, due 2026-03-02 | 2026-01-01…2026-01-31 fee: 10.00 | total 10.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-02-01, due 2026-04-02 | 2026-02-01…2026-02-28 fee: 10.00 | 2026-01-01…2026-01-31 calls × 20: 2.00 | total 12.00 EUR",
            "UB-INV-3 ISSUED, issued 2026-03-01, due 2026-04-30 | 2026-02-01…2026-02-28 calls × 30: 3.00 | total 3.00 EUR",
        ],
    );
    let closing = books.bench.documents().pop().expect("a closing invoice");
    assert_eq!(
        (closing.purpose, closing.period),
        (Purpose::Regular(SlotKind::Closing), fixtures::period("2026-02-01", "2026-02-28"))
    );
}

#[test]
fn before_use_bills_usage_on_a_debit_of_the_periods_invoice() {
    let books = two_months(PaymentTime::BeforeUse);
    live_through(&books);
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-01-01, due 2026-03-02 | 2026-01-01…2026-01-31 fee: 10.00 | total 10.00 EUR",
            "UB-DBT-1 ISSUED, of UB-INV-1, issued 2026-02-01, due 2026-04-02 | 2026-01-01…2026-01-31 calls × 20: 2.00 | total 2.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-02-01, due 2026-04-02 | 2026-02-01…2026-02-28 fee: 10.00 | total 10.00 EUR",
            "UB-DBT-2 ISSUED, of UB-INV-2, issued 2026-03-01, due 2026-04-30 | 2026-02-01…2026-02-28 calls × 30: 3.00 | total 3.00 EUR",
        ],
    );
    let debit = &books.bench.documents()[1];
    assert_eq!((debit.kind, debit.purpose), (DocumentKind::Debit, Purpose::Regular(SlotKind::UsageDebit)));
}

fn prepaid(quantity: &str) -> LineItem {
    with_charge(per_unit("calls", "0.10"), |charge| charge.prepaid_quantity = Some(fixtures::quantity(quantity)))
}

#[test]
fn what_is_prepaid_comes_off_the_debit_and_is_never_given_back() {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![prepaid("100")]);
    let mut product = requested(&api, "2026-01-01", "2026-02-28");
    product.payment_time = Some(PaymentTime::BeforeUse);
    books.contract(vec![product]);
    books.bill("2026-01-01T02:00:00Z");
    books.clock("2026-01-10T00:00:00Z");
    books.calls("2026-01-10T00:00:00Z", "130");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T00:00:00Z");
    books.calls("2026-02-10T00:00:00Z", "40");
    books.bill("2026-03-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-01-01, due 2026-03-02 | 2026-01-01…2026-01-31 calls × 100: 10.00 | total 10.00 EUR",
            "UB-DBT-1 ISSUED, of UB-INV-1, issued 2026-02-01, due 2026-04-02 | 2026-01-01…2026-01-31 calls × 130: 3.00 | total 3.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-02-01, due 2026-04-02 | 2026-02-01…2026-02-28 calls × 100: 10.00 | total 10.00 EUR",
            // The debit has an event, so it is issued with a total of zero.
            "UB-DBT-2 PAID, of UB-INV-2, issued 2026-03-01, due 2026-04-30 | 2026-02-01…2026-02-28 calls × 40: 0.00 | total 0.00 EUR",
        ],
    );
}

fn refusal(books: &Books, product: RequestedProduct) -> String {
    let request = ContractRequest {
        customer_ref: fixtures::customer_ref("acme"),
        po_number: None,
        metadata: Metadata::default(),
        products: vec![product],
        allow_backdated: false,
    };
    code(run(&books.bench.services, &books.bench.principal, UseCase::CreateContract, |cx| create_contract(cx, &request)))
}

#[test]
fn a_usage_debit_below_zero_is_a_credit_that_can_be_voided_and_comes_again() {
    let books = Books::at("2026-01-01T00:00:00Z");
    let calls = volume("calls", &[(Some("10"), "1.00", "0"), (None, "0.10", "0")]);
    let calls = with_charge(calls, |charge| charge.prepaid_quantity = Some(fixtures::quantity("10")));
    let api = books.pricing("api", vec![calls]);
    let mut product = requested(&api, "2026-01-01", "2026-01-31");
    product.payment_time = Some(PaymentTime::BeforeUse);
    books.contract(vec![product]);
    books.bill("2026-01-01T02:00:00Z");
    books.clock("2026-01-05T12:00:00Z");
    let event = books.calls("2026-01-05T12:00:00Z", "20");
    // 20 calls cost 2.00, and 10.00 is paid in advance.
    books.bill("2026-02-01T02:00:00Z");
    assert!(books.only(&["UB-CRD-1"]).ends_with("calls × 20: 8.00\n  total 8.00 EUR"), "{}", books.documents());
    assert!(books.only(&["UB-INV-1"]).ends_with("credits 8.00, left to pay 2.00"), "{}", books.documents());
    books.void("UB-CRD-1").expect("the period's own credit");
    assert!(books.only(&["UB-INV-1"]).ends_with("total 10.00 EUR"), "{}", books.documents());
    books.bill("2026-02-02T02:00:00Z");
    assert!(books.only(&["UB-CRD-2"]).ends_with("calls × 20: 8.00\n  total 8.00 EUR"), "{}", books.documents());
    assert_eq!(books.numbers_of(event), "UB-CRD-2");
}

#[test]
fn a_prepaid_quantity_needs_before_use() {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "1"), prepaid("100")]);
    for payment_time in [None, Some(PaymentTime::AfterUse), Some(PaymentTime::DuringUse)] {
        let product = RequestedProduct { payment_time, ..requested(&api, "2026-01-01", "2026-02-28") };
        assert_eq!(refusal(&books, product), "prepaid_needs_before_use");
    }
    // Only selected line items require `BEFORE_USE`.
    let line_items = Some(vec![RequestedLineItem::plain(fixtures::line_item_id("fee"))]);
    books.contract(vec![RequestedProduct { line_items, ..requested(&api, "2026-01-01", "2026-02-28") }]);
}

#[test]
fn the_invoice_that_a_debit_names_is_issued_even_at_nothing() {
    let books = Books::at("2026-01-10T00:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "0.10")]);
    let mut product = requested(&api, "2026-01-01", "2026-01-31");
    product.payment_time = Some(PaymentTime::BeforeUse);
    books.contract(vec![product]);
    books.bill("2026-01-10T00:00:00Z");
    assert_documents(&books, &[]);
    books.calls("2026-01-10T00:00:00Z", "5");
    books.bill("2026-02-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 PAID, issued 2026-02-01, due 2026-04-02 | total 0.00 EUR",
            "UB-DBT-1 ISSUED, of UB-INV-1, issued 2026-02-01, due 2026-04-02 | 2026-01-01…2026-01-31 calls × 5: 0.50 | total 0.50 EUR",
        ],
    );
}

#[test]
fn a_true_up_opens_its_debit_and_the_invoice_above_it_in_one_run() {
    let books = Books::at("2026-01-10T00:00:00Z");
    let fee = Some(fixtures::price("7.00"));
    let api = books.pricing_with("api", vec![per_unit("calls", "0.10")], |content| content.minimum_fee = fee);
    let mut product = requested(&api, "2026-01-01", "2026-01-31");
    product.payment_time = Some(PaymentTime::BeforeUse);
    books.contract(vec![product]);
    books.bill("2026-02-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 PAID, issued 2026-02-01, due 2026-04-02 | total 0.00 EUR",
            "UB-DBT-1 ISSUED, of UB-INV-1, issued 2026-02-01, due 2026-04-02 | 2026-01-01…2026-01-31 calls × 0: 0.00 | 2026-01-01…2026-01-31 Minimum fee: 7.00 | total 7.00 EUR",
        ],
    );
}

#[test]
fn an_issue_day_later_than_the_natural_day_is_waited_for() {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "31.00")]);
    let mut product = requested(&api, "2026-01-01", "2026-03-31");
    product.payment_time = Some(PaymentTime::BeforeUse);
    // Boundaries are 1 February and 1 March, and nothing is issued before 1 February.
    product.issue_day = Some(fixtures::date("2026-02-01"));
    books.contract(vec![product]);
    books.bill("2026-02-01T01:59:59Z");
    assert_documents(&books, &[]);
    books.bill("2026-02-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-02-01, due 2026-04-02 | 2026-01-01…2026-01-31 fee: 31.00 | total 31.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-02-01, due 2026-04-02 | 2026-02-01…2026-02-28 fee: 31.00 | total 31.00 EUR",
        ],
    );
}

#[test]
fn usage_within_the_grace_lands_on_the_draft_and_after_it_on_a_debit() {
    let books = Books::with("2026-01-20T00:00:00Z", |entity| entity.profile.grace_hours = 72, |_| {});
    let api = books.pricing("api", vec![per_unit("calls", "0.10")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.calls("2026-01-20T00:00:00Z", "10");
    books.bill("2026-02-03T23:59:59Z");
    books.calls("2026-01-31T23:59:59Z", "10");
    books.bill("2026-02-04T00:00:00Z");
    books.calls("2026-01-31T23:59:59Z", "10");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-02-04, due 2026-04-05 | 2026-01-01…2026-01-31 calls × 20: 2.00 | total 2.00 EUR",
            "UB-DBT-1 DRAFT, of UB-INV-1 | 2026-01-01…2026-01-31 calls × 10: 1.00 | total 1.00 EUR",
        ],
    );
}

#[test]
fn due_dates_are_the_issue_date_and_the_net_terms() {
    for (net_terms, due) in
        [(NetTerms::Days(30), "2026-03-03"), (NetTerms::DueUponReceipt, "2026-02-01"), (NetTerms::DueUponUsage, "2026-02-01")]
    {
        let books = Books::at("2026-01-01T00:00:00Z");
        let api = books.pricing("api", vec![fixed("fee", "1.00")]);
        let mut product = requested(&api, "2026-01-01", "2026-01-31");
        product.net_terms = Some(net_terms);
        books.contract(vec![product]);
        books.bill("2026-02-01T02:00:00Z");
        let shown = books.documents();
        assert!(shown.starts_with(&format!("UB-INV-1 ISSUED, issued 2026-02-01, due {due}")), "{shown}");
    }
}

#[test]
fn a_draft_without_event_and_amount_becomes_void_and_keeps_its_number() {
    let books = two_months(PaymentTime::AfterUse);
    books.clock("2026-01-05T00:00:00Z");
    let usage_only = books.pricing("usage", vec![per_unit("calls", "0.10")]);
    books.contract(vec![requested(&usage_only, "2026-01-02", "2026-12-31")]);
    let event = books.calls("2026-01-05T00:00:00Z", "1");
    books.delete(event);
    books.bill("2026-01-05T00:00:00Z");
    assert_documents(&books, &["UB-INV-1 DRAFT | 2026-01-02…2026-01-31 calls × 0: 0.00 | total 0.00 EUR"]);
    books.bill("2026-02-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 VOID",
            "UB-INV-2 ISSUED, issued 2026-02-01, due 2026-04-02 | 2026-01-01…2026-01-31 fee: 10.00 | 2026-01-01…2026-01-31 calls × 0: 0.00 | total 10.00 EUR",
        ],
    );
}

#[test]
fn nothing_is_stored_and_no_number_spent_for_what_is_refused() {
    let books = two_months(PaymentTime::AfterUse);
    books.clock("2026-01-05T00:00:00Z");
    let before = books.bench.store.contents();
    let wrong = billing_domain::usage::Validations { currency: Some(fixtures::currency("USD")), entity_ref: None };
    assert_eq!(code(books.report("2026-01-05T00:00:00Z", "1", Some(wrong))), "validation_mismatch");
    assert_eq!(code(books.report("2025-12-31T23:59:59Z", "1", None)), "no_matching_contract");
    assert_eq!(code(books.report("2026-01-05T00:05:01Z", "1", None)), "timestamp_in_future");
    assert_eq!(books.bench.store.contents(), before);
}

#[test]
fn once_is_billed_whole_in_the_first_period_and_a_clipped_period_by_days() {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![once("setup", "99.00"), fixed("fee", "31.00")]);
    books.contract(vec![requested(&api, "2026-01-15", "2026-02-28")]);
    books.bill("2026-03-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-03-01, due 2026-04-30 | 2026-01-15…2026-01-31 setup: 99.00 | 2026-01-15…2026-01-31 fee: 17.00 | total 116.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-03-01, due 2026-04-30 | 2026-02-01…2026-02-28 fee: 31.00 | total 31.00 EUR",
        ],
    );
}

#[test]
fn one_time_is_one_period_and_products_that_agree_share_its_document() {
    let books = Books::at("2026-01-01T00:00:00Z");
    let (a, b) = (books.pricing("a", vec![fixed("a", "5.00")]), books.pricing("b", vec![fixed("b", "7.00")]));
    let one_time = |pricing, last| {
        let mut product = requested(pricing, "2026-01-10", last);
        product.billing_cycle = BillingCycle::new(CycleUnit::OneTime, 1);
        product
    };
    books.contract(vec![one_time(&a, "2026-04-04"), one_time(&b, "2026-04-04")]);
    books.contract(vec![one_time(&a, "2026-04-04"), one_time(&b, "2026-04-05")]);
    books.bill("2026-04-06T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-04-06, due 2026-06-05 | 2026-01-10…2026-04-04 a: 5.00 | 2026-01-10…2026-04-04 b: 7.00 | total 12.00 EUR",
            "UB-INV-2 ISSUED, issued 2026-04-06, due 2026-06-05 | 2026-01-10…2026-04-04 a: 5.00 | total 5.00 EUR",
            "UB-INV-3 ISSUED, issued 2026-04-06, due 2026-06-05 | 2026-01-10…2026-04-05 b: 7.00 | total 7.00 EUR",
        ],
    );
}

#[test]
fn a_billing_run_at_the_same_instant_issues_nothing_again() {
    let books = two_months(PaymentTime::DuringUse);
    live_through(&books);
    let before = books.bench.store.contents();
    books.clock("2026-03-01T02:00:00Z");
    // A scheduled run without effect leaves no record.
    run_billing_everywhere(&books.bench.services).expect("a billing run");
    assert_eq!(books.bench.store.contents(), before);
}

#[test]
fn a_draft_that_is_issued_early_leaves_the_rest_of_its_period_to_debits() -> Result<(), UseCaseError> {
    let books = two_months(PaymentTime::AfterUse);
    books.clock("2026-01-15T00:00:00Z");
    books.calls("2026-01-15T00:00:00Z", "20");
    let invoice = books.reference("UB-INV-1");
    run(&books.bench.services, &books.bench.principal, UseCase::IssueDocument, |cx| issue_document(cx, invoice, false))?;
    books.clock("2026-01-20T00:00:00Z");
    books.calls("2026-01-20T00:00:00Z", "5");
    books.bill("2026-02-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-01-15, due 2026-03-16 | 2026-01-01…2026-01-31 fee: 10.00 | 2026-01-01…2026-01-31 calls × 20: 2.00 | total 12.00 EUR",
            "UB-DBT-1 ISSUED, of UB-INV-1, issued 2026-02-01, due 2026-04-02 | 2026-01-01…2026-01-31 calls × 5: 0.50 | total 0.50 EUR",
        ],
    );
    Ok(())
}
