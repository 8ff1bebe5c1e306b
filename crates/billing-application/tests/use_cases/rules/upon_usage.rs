//! Section 3: `DUE_UPON_USAGE`.

use billing_application::UseCase;
use billing_application::catalog::edit_customer;
use billing_application::usage::get_event;
use billing_domain::catalog::{LineItem, Pricing};
use billing_domain::contract::amendment::{EffectiveFrom, ProductPatch};
use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::{DocumentState, Purpose};
use billing_domain::party::NetTerms;
use billing_domain::patch::{Changes, Patch};
use billing_domain::refs::ContractRef;
use billing_testkit::fixtures::{self, default_tax, fixed, graduated, per_unit, requested, volume, with_charge};

use crate::books::{Books, THREE_TIERS, code, repriced};
use crate::rules::assert_documents;
use crate::support::{read, run};

fn january(items: Vec<LineItem>, payment_time: PaymentTime) -> Books {
    january_with_contract(items, payment_time).0
}

fn january_with_contract(items: Vec<LineItem>, payment_time: PaymentTime) -> (Books, Pricing, ContractRef) {
    let books = Books::at("2026-01-05T12:00:00Z");
    let api = books.pricing("api", items);
    let mut product = requested(&api, "2026-01-01", "2026-01-31");
    (product.net_terms, product.payment_time) = (Some(NetTerms::DueUponUsage), Some(payment_time));
    let contract = books.contract(vec![product]);
    (books, api, contract)
}

#[test]
fn children_and_their_parent_make_the_periods_price_to_the_last_cent() {
    let books = january(vec![graduated("calls", &[(Some("3"), "0.333", "0"), (None, "0.111", "0")])], PaymentTime::AfterUse);
    for hour in 0..5 {
        books.calls(&format!("2026-01-05T0{hour}:00:00Z"), "1");
    }
    let children: Vec<String> =
        books.bench.documents().iter().filter(|d| d.purpose == Purpose::Usage).map(|d| d.content.total.to_string()).collect();
    // 0.333 → 0.33, 0.666 → 0.67, 0.999 → 1.00, 1.110 → 1.11, 1.221 → 1.22.
    assert_eq!(children, ["0.33 EUR", "0.34 EUR", "0.33 EUR", "0.11 EUR", "0.11 EUR"]);
    books.bill("2026-02-01T02:00:00Z");
    let parent = books.only(&["UB-INV-1"]);
    assert_eq!(
        parent,
        "UB-INV-1 PAID, issued 2026-02-01, due 2026-02-01\n  2026-01-01…2026-01-31 calls × 5: 0.00\n  total 0.00 EUR"
    );
}

#[test]
fn a_child_is_issued_at_once_and_due_the_same_day_and_names_its_parent() {
    let books = january(vec![fixed("fee", "9.00"), graduated("calls", THREE_TIERS)], PaymentTime::AfterUse);
    let event = books.calls("2026-01-05T12:00:00Z", "150");
    assert_documents(
        &books,
        &[
            "UB-INV-1 DRAFT | 2026-01-01…2026-01-31 fee: 9.00 | 2026-01-01…2026-01-31 calls × 150: 0.00 | total 9.00 EUR",
            "UB-INV-2 ISSUED, of UB-INV-1, issued 2026-01-05, due 2026-01-05 | 2026-01-01…2026-01-31 calls × 150: 12.50 | total 12.50 EUR",
        ],
    );
    let view =
        read(&books.bench.services, &books.bench.principal, UseCase::GetEvent, |cx| get_event(cx, event)).expect("an event");
    let (parent, number) = view.parent.expect("a parent");
    assert_eq!((parent, number.to_string()), (books.reference("UB-INV-1"), "UB-INV-1".to_owned()));
    assert_eq!(books.numbers_of(event), "UB-INV-2");
}

#[test]
fn an_event_that_lowers_a_volume_price_is_a_credit_of_the_periods_invoice() {
    let books = january(vec![volume("calls", &[(Some("100"), "1.00", "0"), (None, "0.50", "0")])], PaymentTime::AfterUse);
    books.calls("2026-01-05T10:00:00Z", "100");
    books.calls("2026-01-05T11:00:00Z", "20");
    assert_documents(
        &books,
        &[
            "UB-INV-1 DRAFT | 2026-01-01…2026-01-31 calls × 120: 0.00 | total 0.00 EUR",
            "UB-INV-2 PARTIALLY_PAID, of UB-INV-1, issued 2026-01-05, due 2026-01-05 | 2026-01-01…2026-01-31 calls × 100: 100.00 | total 100.00 EUR, credits 40.00, left to pay 60.00",
            // 100 calls at 1.00 cost 100.00. 120 calls at 0.50 cost 60.00.
            "UB-CRD-1 SETTLED, of UB-INV-1, issued 2026-01-05 | 2026-01-01…2026-01-31 calls × -20: 40.00 | total 40.00 EUR",
        ],
    );
}

#[test]
fn a_minimum_amount_is_the_parents_business() {
    let calls = with_charge(per_unit("calls", "0.10"), |charge| charge.minimum_amount = Some(fixtures::price("5.00")));
    let books = january(vec![calls], PaymentTime::AfterUse);
    books.calls("2026-01-05T10:00:00Z", "30");
    books.bill("2026-02-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-02-01, due 2026-02-01 | 2026-01-01…2026-01-31 calls × 30: 2.00 | total 2.00 EUR",
            "UB-INV-2 ISSUED, of UB-INV-1, issued 2026-01-05, due 2026-01-05, overdue | 2026-01-01…2026-01-31 calls × 30: 3.00 | total 3.00 EUR",
        ],
    );
}

#[test]
fn with_before_use_children_belong_to_the_invoice_and_come_off_the_debit_not_off_what_is_prepaid() {
    let calls = with_charge(per_unit("calls", "0.10"), |charge| charge.prepaid_quantity = Some(fixtures::quantity("10")));
    let books = january(vec![calls], PaymentTime::BeforeUse);
    books.calls("2026-01-05T10:00:00Z", "30");
    books.bill("2026-02-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 ISSUED, issued 2026-02-01, due 2026-02-01 | 2026-01-01…2026-01-31 calls × 10: 1.00 | total 1.00 EUR",
            // The child already billed the amount of a debit, so no debit is opened.
            "UB-INV-2 ISSUED, of UB-INV-1, issued 2026-01-05, due 2026-01-05, overdue | 2026-01-01…2026-01-31 calls × 30: 2.00 | total 2.00 EUR",
        ],
    );
}

#[test]
fn an_event_is_changed_again_after_the_correction_of_its_child_was_issued() {
    let books = january(vec![per_unit("calls", "0.10")], PaymentTime::AfterUse);
    let event = books.calls("2026-01-05T10:00:00Z", "30");
    books.update(event, None, Some("10"));
    books.bill("2026-01-06T00:00:00Z");
    books.delete(event);
    assert_eq!(
        books.only(&["UB-CRD-1", "UB-CRD-2"]),
        "UB-CRD-1 SETTLED, of UB-INV-2, issued 2026-01-06\n  2026-01-01…2026-01-31 calls × 20: 2.00\n  total 2.00 EUR\n\nUB-CRD-2 DRAFT, of UB-INV-2\n  2026-01-01…2026-01-31 calls × 10: 1.00\n  total 1.00 EUR"
    );
}

#[test]
fn children_are_corrected_by_an_edit_at_once_and_the_minimum_is_the_debits() {
    let (books, api, contract) = january_with_contract(vec![per_unit("calls", "1.00")], PaymentTime::BeforeUse);
    let event = books.calls("2026-01-05T12:00:00Z", "100");
    let halved = with_charge(per_unit("calls", "0.50"), |charge| charge.minimum_amount = Some(fixtures::price("45.00")));
    books.reprice(&api, vec![halved]);
    books.edit(contract, vec![repriced(&api)], EffectiveFrom::CurrentPeriod).expect("an edit");
    books.bill("2026-02-01T02:00:00Z");
    assert_documents(
        &books,
        &[
            "UB-INV-1 PAID, issued 2026-02-01, due 2026-02-01 | total 0.00 EUR",
            "UB-INV-2 PARTIALLY_PAID, of UB-INV-1, issued 2026-01-05, due 2026-01-05, overdue | 2026-01-01…2026-01-31 calls × 100: 100.00 | total 100.00 EUR, credits 50.00, left to pay 50.00",
            "UB-CRD-1 SETTLED, of UB-INV-1, issued 2026-01-05 | 2026-01-01…2026-01-31 calls: 50.00 | total 50.00 EUR",
        ],
    );
    books.update(event, None, Some("80"));
    books.bill("2026-02-02T00:00:00Z");
    // 80 calls cost 40.00. The minimum is 45.00.
    assert_eq!(
        books.only(&["UB-CRD-2", "UB-DBT-1"]),
        "UB-CRD-2 SETTLED, of UB-INV-2, issued 2026-02-02\n  2026-01-01…2026-01-31 calls × 20: 10.00\n  total 10.00 EUR\n\nUB-DBT-1 ISSUED, of UB-INV-1, issued 2026-02-02, due 2026-02-02\n  2026-01-01…2026-01-31 calls × 80: 5.00\n  total 5.00 EUR"
    );
}

#[test]
fn a_late_event_is_a_child_of_the_issued_invoice() {
    let books = january(vec![per_unit("calls", "0.10")], PaymentTime::AfterUse);
    books.calls("2026-01-05T10:00:00Z", "30");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-03T12:00:00Z");
    books.calls("2026-01-31T10:00:00Z", "7");
    assert_eq!(
        books.only(&["UB-INV-3"]),
        "UB-INV-3 ISSUED, of UB-INV-1, issued 2026-02-03, due 2026-02-03\n  2026-01-01…2026-01-31 calls × 7: 0.70\n  total 0.70 EUR"
    );
}

#[test]
fn a_changed_event_is_corrected_below_its_own_child() {
    let books = january(vec![per_unit("calls", "0.10")], PaymentTime::AfterUse);
    let event = books.calls("2026-01-05T10:00:00Z", "30");
    books.update(event, None, Some("10"));
    assert_eq!(
        books.only(&["UB-CRD-1"]),
        "UB-CRD-1 DRAFT, of UB-INV-2\n  2026-01-01…2026-01-31 calls × 20: 2.00\n  total 2.00 EUR"
    );
    assert_eq!(books.numbers_of(event), "UB-INV-2, UB-CRD-1");
    books.bill("2026-01-06T00:00:00Z");
    let child = &books.bench.documents()[1];
    assert_eq!(
        (child.state, child.owed.amount_due.map(|due| due.to_string())),
        (DocumentState::PartiallyPaid, Some("1.00 EUR".to_owned()))
    );
}

/// The book does not load issued children. The second event lowers the price to zero, so the children sum to zero.
#[test]
fn children_that_sum_to_zero_are_issued() {
    let tiers = vec![volume("calls", &[(Some("10"), "1.00", "0"), (None, "0", "0")])];
    let books = Books::with("2026-01-05T12:00:00Z", |_| {}, |acme| acme.profile.taxes = default_tax("19"));
    let api = books.pricing("api", tiers);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.net_terms = Some(NetTerms::DueUponUsage);
    product.billing_cycle = BillingCycle::new(CycleUnit::Yearly, 1);
    let contract = books.contract(vec![product]);
    books.calls("2026-01-05T12:00:00Z", "10");
    books.calls("2026-01-05T12:00:00Z", "5");
    let since = EffectiveFrom::Day(fixtures::date("2026-01-01"));
    let monthly =
        ProductPatch { billing_cycle: Patch::Set(BillingCycle::default()), ..ProductPatch::of(api.pricing_ref.clone()) };
    assert_eq!(code(books.edit(contract, vec![monthly], since)), "not_retroactive");
    // The correction keeps the tax of the children, not the default that is in force now.
    let mut acme = fixtures::customer(&*books.bench.ids, "acme");
    acme.profile.taxes = default_tax("7");
    run(&books.bench.services, &books.bench.principal, UseCase::EditCustomer, |cx| {
        edit_customer(cx, &acme.customer_ref, &Changes::to(acme.profile.clone().into()))
    })
    .expect("a customer");
    books.reprice(&api, vec![per_unit("calls", "1.00")]);
    books.edit(contract, vec![repriced(&api)], since).expect("an edit");
    assert_eq!(
        books.only(&["UB-DBT-1"]),
        "UB-DBT-1 ISSUED, of UB-INV-1, issued 2026-01-05, due 2026-01-05\n  2026-01-01…2026-12-31 calls: 15.00\n  tax 19 % of 15.00: 2.85\n  total 17.85 EUR"
    );
}
