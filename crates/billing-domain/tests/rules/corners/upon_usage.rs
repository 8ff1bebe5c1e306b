//! Tests of events due upon usage: their own documents and the corrections of these documents (billing rules 3, 9).

use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::{PaymentTime, RequestedProduct};
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;
use billing_testkit::fixtures::{fixed, per_unit, percent, pricing};

use super::book::{Book, Setup, element, from, repriced};

fn upon_usage(fee: &str, unit_price: &str, change: impl FnOnce(&mut RequestedProduct)) -> Book {
    let plan = pricing("plan", vec![fixed("fee", fee), per_unit("calls", unit_price)]);
    let setup = Setup::new().product(plan, |product| {
        product.net_terms = Some(NetTerms::DueUponUsage);
        change(product);
    });
    setup.create("2027-01-01")
}

/// Contracts (billing rules 7): 10.00 + 3.00 − 1.00. Each document is shown once.
#[test]
fn the_current_period_shows_a_corrected_child_and_its_open_credit() {
    let mut book = upon_usage("10", "1", |product| product.billing_start_date = billing_testkit::fixtures::date("2027-05-01"));
    book.go_to("2027-05-10");
    let event = book.event("2027-05-10", "3");
    book.update_event(event, None, Some("2")).expect("an update");
    let mut shown = book.preview_current().expect("a preview");
    shown.sort();
    assert_eq!(shown, ["CRD-1 1.00 DRAFT", "INV-1 10.00 DRAFT", "INV-2 3.00 ISSUED"]);
}

/// Contracts (billing rules 7): the child of 23 January is 50.00, its credit is 30.00. The next period's invoice bills
/// the usage.
#[test]
fn the_current_period_shows_children_whose_invoice_is_the_next_ones() {
    let mut book = upon_usage("10", "1", |product| {
        product.billing_start_date = billing_testkit::fixtures::date("2027-01-11");
        product.payment_time = Some(PaymentTime::DuringUse);
    });
    book.run("2027-01-11").go_to("2027-01-23");
    let event = book.event("2027-01-23", "50");
    book.update_event(event, None, Some("20")).expect("an update");
    book.run("2027-01-24");
    // January is billed for 21 of 31 days: 6.77.
    let expected = ["INV-1 6.77 ISSUED", "INV-2 10.00 DRAFT", "INV-3 50.00 ISSUED of INV-2", "CRD-1 30.00 ISSUED of INV-3"];
    assert_eq!(book.documents(), expected);
    let mut shown = book.preview_current().expect("a preview");
    shown.sort();
    assert_eq!(shown, ["CRD-1 30.00 ISSUED", "INV-1 6.77 ISSUED", "INV-3 50.00 ISSUED"]);
    assert_eq!(book.preview_next().expect("a preview"), ["INV-2 10.00 DRAFT"]);
}

/// Returns a yearly contract after a price of 1.00 is corrected to 0.10: 5,000 calls were billed at 5,000.00.
fn mistyped() -> Book {
    let mut book = upon_usage("0", "1", |product| product.billing_cycle = BillingCycle::new(CycleUnit::Yearly, 1));
    book.go_to("2027-02-10").event("2027-02-10", "5000");
    book.go_to("2027-03-01");
    let corrected = element("plan", |plan| plan.line_items = Patch::Set(vec![repriced("calls", "0.10")]));
    let fee = billing_domain::contract::terms::RequestedLineItem::plain(billing_testkit::fixtures::line_item_id("fee"));
    let corrected = billing_domain::contract::amendment::ProductPatch {
        line_items: match corrected.line_items {
            Patch::Set(mut items) => {
                items.insert(0, fee);
                Patch::Set(items)
            }
            other => other,
        },
        ..corrected
    };
    book.edit(from("2027-01-01"), vec![corrected]).expect("an edit");
    book
}

/// Due upon usage (billing rules 3): children are corrected at once, also while their parent is a draft: 5,000.00 −
/// 500.00.
#[test]
fn an_edit_from_the_past_credits_children_at_once() {
    let book = mistyped();
    let expected = ["INV-1 0.00 DRAFT", "INV-2 5000.00 ISSUED of INV-1", "CRD-1 4500.00 ISSUED of INV-1"];
    assert_eq!(book.documents(), expected);
    assert_eq!(book.owed(), "500.00");
}

/// Due upon usage (billing rules 3): with a second event of 100 the children and their credit bill 510.00. At 19 % that
/// is 606.90. Both corrections name the first and the last child.
#[test]
fn a_changed_tax_takes_back_and_bills_children_at_once() {
    let mut book = mistyped();
    book.event("2027-03-01", "100");
    assert_eq!(book.documents().last().map(String::as_str), Some("INV-3 10.00 ISSUED of INV-1"));
    book.edit(from("2027-01-01"), vec![element("plan", |plan| plan.tax = Patch::Set(percent("19")))]).expect("an edit");
    let expected = [
        "INV-1 0.00 DRAFT",
        "INV-2 5000.00 ISSUED of INV-1",
        "CRD-1 4500.00 ISSUED of INV-1",
        "INV-3 10.00 ISSUED of INV-1",
        "CRD-2 510.00 ISSUED of INV-1",
        "DBT-1 606.90 ISSUED of INV-1",
    ];
    assert_eq!(book.documents(), expected);
    assert_eq!(book.owed(), "606.90");
    assert_eq!(book.corrects("CRD-2"), ["INV-2", "INV-3"]);
    assert_eq!(book.corrects("DBT-1"), ["INV-2", "INV-3"]);
}

/// Bills three children of 10.00, 20.00 and 30.00. The second event is deleted and its credit is issued the next day.
fn second_deleted(before: impl FnOnce(&mut Book)) -> Book {
    let mut book = upon_usage("0", "1", |_| {});
    book.go_to("2027-01-10");
    book.event("2027-01-10", "10");
    let second = book.event("2027-01-10", "20");
    book.event("2027-01-10", "30");
    before(&mut book);
    book.delete_event(second).expect("a deletion");
    book.run("2027-01-11");
    book
}

/// Receivables (billing rules 9): the credit settles the child whose event was deleted, not the latest child.
#[test]
fn a_childs_credit_settles_that_child() {
    let book = second_deleted(|_| {});
    assert_eq!(book.documents().last().map(String::as_str), Some("CRD-1 20.00 ISSUED of INV-3"));
    assert_eq!([book.due("INV-2"), book.due("INV-3"), book.due("INV-4")], ["10.00", "0.00", "30.00"]);
}

/// Receivables (billing rules 9): the credit reduces the write-off of its child before it settles another child.
#[test]
fn a_childs_credit_lessens_its_write_off_first() {
    let book = second_deleted(|book| book.write_off("INV-3"));
    assert_eq!([book.due("INV-2"), book.due("INV-3"), book.due("INV-4")], ["10.00", "0.00", "30.00"]);
    assert_eq!(book.written_off("INV-3"), "0.00");
}

/// Receivables (billing rules 9): a credit that reverses a late DEBIT settles that DEBIT, not its invoice with the fee
/// of 100.00.
#[test]
fn a_credit_of_a_late_debit_settles_the_debit() {
    let plan = pricing("plan", vec![fixed("fee", "100"), per_unit("calls", "1")]);
    let mut book = Setup::new().product(plan, |_| {}).create("2027-01-01");
    book.go_to("2027-01-10").event("2027-01-10", "7");
    book.run("2027-02-01").go_to("2027-02-03");
    let late = book.event("2027-01-20", "5");
    book.run("2027-02-04").go_to("2027-02-05").delete_event(late).expect("a deletion");
    book.run("2027-02-06");
    assert_eq!(book.documents()[..3], ["INV-1 107.00 ISSUED", "DBT-1 5.00 ISSUED of INV-1", "CRD-1 5.00 ISSUED of INV-1"]);
    assert_eq!([book.due("INV-1"), book.due("DBT-1")], ["107.00", "0.00"]);
}
