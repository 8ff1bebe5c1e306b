//! Tests of dated default tax treatments (billing rules 7).

use billing_domain::catalog::LineItemPrice;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::party::NetTerms;
use billing_domain::tax::{TaxBasis, TaxCategory};
use billing_testkit::fixtures::{currency, fixed, per_unit, pricing, quantity, volume};

use super::book::{Book, Setup, treatment};

fn taxed(payment_time: PaymentTime) -> Book {
    let plan = pricing("plan", vec![fixed("fee", "100"), per_unit("calls", "1")]);
    Setup::new()
        .customer_tax("19", TaxBasis::default())
        .product(plan, |product| product.payment_time = Some(payment_time))
        .create("2027-01-01T00:00:00Z")
}

/// Contracts (billing rules 7): a default can be set in advance. It applies from its day on.
#[test]
fn a_default_set_ahead_holds_from_its_day() {
    let mut book = taxed(PaymentTime::AfterUse);
    book.go_to("2027-01-10").edit_customer_tax_from("16", TaxBasis::default(), "2027-02-01");
    book.run_on(["2027-02-01", "2027-03-01"]);
    assert_eq!(book.documents(), ["INV-1 119.00 ISSUED", "INV-2 116.00 ISSUED"]);
}

/// Contracts (billing rules 7): the earlier of the issue date and the service period's last day decides. January's fee
/// is issued on 1 January. January's usage ends on 31 January.
#[test]
fn a_line_takes_the_default_of_its_issue_or_its_last_day() {
    let mut book = taxed(PaymentTime::DuringUse);
    book.edit_customer_tax_from("16", TaxBasis::default(), "2027-01-15");
    book.run("2027-01-01").go_to("2027-01-10").event("2027-01-10", "50");
    book.run("2027-02-01");
    // 100.00 × 1.19, then (100.00 + 50.00) × 1.16
    assert_eq!(book.documents(), ["INV-1 119.00 ISSUED", "INV-2 174.00 ISSUED"]);
}

/// Rules 7: a draft shows the default of the day on which it will be issued, after the grace period.
#[test]
fn a_draft_shows_the_default_of_the_day_on_which_it_is_due() {
    let plan = pricing("plan", vec![fixed("fee", "100")]);
    let mut book = Setup::new()
        .entity("main", |main| main.profile.grace_hours = 72)
        .customer_tax("19", TaxBasis::default())
        .product(plan, |product| product.payment_time = Some(PaymentTime::DuringUse))
        .create("2027-01-01T00:00:00Z");
    book.run("2027-01-04").go_to("2027-01-10").edit_customer_tax_from("16", TaxBasis::default(), "2027-02-03");
    assert_eq!(book.preview_next().expect("a preview"), ["INVOICE 116.00"]);
    book.run("2027-02-04");
    assert_eq!(book.documents(), ["INV-1 119.00 ISSUED", "INV-2 116.00 ISSUED"]);
}

/// Contracts (billing rules 7): an edit replaces the defaults of later days.
#[test]
fn a_default_replaces_those_of_later_days() {
    let mut book = taxed(PaymentTime::AfterUse);
    book.edit_customer_tax_from("16", TaxBasis::default(), "2027-03-01");
    book.edit_customer_tax_from("7", TaxBasis::default(), "2027-02-01");
    book.run_on(["2027-02-01", "2027-03-01", "2027-04-01"]);
    assert_eq!(book.documents(), ["INV-1 119.00 ISSUED", "INV-2 107.00 ISSUED", "INV-3 107.00 ISSUED"]);
}

/// Corrections and contracts (billing rules 5, 7): a default from a past day corrects no issued document. Corrections
/// of January keep January's default.
#[test]
fn a_default_from_the_past_corrects_nothing_issued() {
    let mut book = taxed(PaymentTime::AfterUse);
    book.run("2027-02-01").go_to("2027-02-05");
    book.edit_customer_tax_from("0", treatment(TaxCategory::Ae), "2027-01-01");
    book.event("2027-01-20", "10");
    book.run_on(["2027-02-06", "2027-03-01"]);
    assert_eq!(book.documents(), ["INV-1 119.00 ISSUED", "DBT-1 11.90 ISSUED of INV-1", "INV-2 100.00 ISSUED"]);
    assert_eq!(book.taxes("INV-2"), ["0 AE 100.00 0.00"]);
}

/// Corrections (billing rules 5): if a period was billed at several default treatments, an adjustment credits each in
/// proportion. January is billed 119.00 + 100.00 at 19 %, then 100.00 at 16 %. Half of the usage of 200.00 is credited.
#[test]
fn an_adjustment_takes_from_several_treatments_in_proportion() {
    let mut book = taxed(PaymentTime::DuringUse);
    book.run("2027-01-01").go_to("2027-01-10").event("2027-01-10", "100");
    book.issue("INV-2").expect("an issue by hand");
    book.edit_customer_tax_from("16", TaxBasis::default(), "2027-01-11");
    assert_eq!(book.owed(), "357.00");
    let late = book.go_to("2027-01-20").event("2027-01-20", "100");
    assert_eq!(book.documents()[2..], ["DBT-1 119.00 DRAFT of INV-2"], "taxed as the period was billed");
    book.delete_event(late).expect("a deletion");
    assert_eq!(book.billed(), "357.00");
}

/// Rules 7: a waiting child document takes the default of its issue date. Without an exchange rate, nothing is issued until
/// 13 January. The default is 19 % until 11 January and 16 % from 12 January on.
#[test]
fn a_waiting_child_takes_the_default_of_its_issue() {
    let plan = pricing("plan", vec![fixed("fee", "100"), per_unit("calls", "1")]);
    let mut book = Setup::new()
        .entity("main", |main| main.profile.paper.tax_currency = Some(currency("PLN")))
        .customer_tax("19", TaxBasis::default())
        .product(plan, |product| product.net_terms = Some(NetTerms::DueUponUsage))
        .create("2027-01-01T00:00:00Z");
    book.go_to("2027-01-10").event("2027-01-10", "10");
    assert_eq!(book.taxes("INV-2"), ["19 S 10.00 1.90"]);
    book.go_to("2027-01-12").edit_customer_tax_from("16", TaxBasis::default(), "2027-01-12");
    book.post_exchange_rate("PLN", "2027-01-01", "4.30");
    book.run("2027-01-13");
    assert_eq!(book.documents()[1], "INV-2 11.60 ISSUED of INV-1");
    // 100.00 + 10.00, all at 16 %: the fee is issued after the period.
    book.run("2027-02-01");
    assert_eq!(book.billed(), "127.60");
}

/// Rules 5: what an event bills first settles what a credit took back, at the credit's tax. 100 of the calls are prepaid; 150 calls
/// cost 85.00 less by the lower price of a higher volume.
#[test]
fn a_child_bills_what_was_credited_at_the_tax_of_the_credit() {
    let rows = [(Some("100"), "1", "0"), (None, "0.1", "0")];
    let mut calls = volume("calls", &rows);
    if let LineItemPrice::Usage(charge) = &mut calls.charge {
        charge.prepaid_quantity = Some(quantity("100"));
    }
    let mut book = Setup::new()
        .customer_tax("19", TaxBasis::default())
        .product(pricing("plan", vec![per_unit("pages", "1"), calls]), |product| {
            product.payment_time = Some(PaymentTime::BeforeUse);
            product.net_terms = Some(NetTerms::DueUponUsage);
        })
        .create("2027-01-01T00:00:00Z");
    book.go_to("2027-01-10").try_event("pages", "2027-01-10", "10").expect("an event");
    book.event("2027-01-10", "150");
    assert_eq!(book.documents()[3], "CRD-1 101.15 DRAFT of INV-1");
    book.edit_customer_tax_from("16", TaxBasis::default(), "2027-01-10");
    // 100.00 more than the credit: 85.00 at 19 %, 15.00 at 16 %.
    book.event("2027-01-10", "1000");
    assert_eq!(book.taxes("INV-3"), ["16 S 15.00 2.40", "19 S 85.00 16.15"], "{}", book.dump());
}

/// Rules 7: a default that is set after a pause changes no earlier day.
#[test]
fn a_default_after_a_pause_leaves_the_days_before_alone() {
    let mut book = taxed(PaymentTime::AfterUse);
    book.go_to("2027-02-05").pause_customer_tax();
    book.go_to("2027-02-20").edit_customer_tax("7", TaxBasis::default());
    book.run_on(["2027-02-21", "2027-03-01"]);
    assert_eq!(book.documents(), ["INV-1 119.00 ISSUED", "INV-2 107.00 ISSUED"], "January keeps 19 %");
}
