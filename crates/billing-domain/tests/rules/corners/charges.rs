//! Tests that negative charges credit no more than is billed (billing rules 9).

use billing_domain::tax::{TaxBasis, TaxCategory};
use billing_testkit::fixtures::{currency, date, fixed, per_unit, pricing};

use super::book::{Book, Setup, code, element, from, treatment};

/// Records charges of 100.00 and −100.00 in a period without a fee, at 19 %.
fn charged_and_given_back() -> Book {
    let mut book = Setup::new()
        .customer_tax("19", TaxBasis::default())
        .product(pricing("plan", vec![fixed("fee", "0")]), |_| {})
        .create("2027-01-01");
    book.go_to("2027-01-10").charge("more", "2027-01-10", "100", false).expect("a charge");
    book.charge("less", "2027-01-10", "-100", false).expect("a charge that credits no more than is billed");
    book
}

/// Receivables (billing rules 9): without the first charge, the second charge would credit 119.00 of an invoice of
/// 0.00.
#[test]
fn a_charge_under_one_below_zero_is_not_deleted_or_lessened() {
    for is_issued in [false, true] {
        let mut book = charged_and_given_back();
        if is_issued {
            book.run("2027-02-01").go_to("2027-02-02");
        }
        let before = book.documents();
        assert_eq!(code(&book.delete_charge("more").expect_err("a deletion")), "credit_above_billed");
        assert_eq!(code(&book.edit_charge("more", "0.01").expect_err("an edit")), "credit_above_billed");
        assert_eq!(book.documents(), before);
        book.delete_charge("less").expect("a deletion");
        book.delete_charge("more").expect("a deletion");
    }
}

/// Receivables (billing rules 9): deleting the usage that a goodwill charge credits leaves 0.00, never −90.00.
#[test]
fn usage_deleted_under_a_goodwill_charge_leaves_nothing_owed() {
    for is_issued in [false, true] {
        let plan = pricing("plan", vec![per_unit("calls", "1")]);
        let mut book = Setup::new().product(plan, |_| {}).create("2027-01-01");
        book.go_to("2027-01-10");
        let event = book.event("2027-01-10", "100");
        book.charge("goodwill", "2027-01-10", "-90", false).expect("a charge");
        assert_eq!(book.billed(), "10.00");
        if is_issued {
            book.run("2027-02-01").go_to("2027-02-02");
        }
        book.delete_event(event).expect("a deletion");
        assert_eq!(book.billed(), "0.00");
        book.run_on(["2027-02-03", "2027-03-01"]);
        assert_eq!(book.owed(), "0.00", "{}", book.dump());
        // The charge counts again, up to the amount of the usage.
        book.event("2027-01-11", "95");
        assert_eq!(book.billed(), "5.00");
    }
}

/// Rules 9: of several negative charges, the oldest count first.
#[test]
fn charges_below_zero_count_oldest_first() {
    let plan = pricing("plan", vec![per_unit("calls", "1")]);
    let mut book = Setup::new().product(plan, |_| {}).create("2027-01-01");
    book.go_to("2027-01-10");
    let event = book.event("2027-01-10", "100");
    book.charge("first", "2027-01-10", "-60", false).expect("a charge");
    book.go_to("2027-01-11").charge("second", "2027-01-11", "-40", false).expect("a charge");
    book.update_event(event, None, Some("70")).expect("an update");
    let lines = book.lines("INV-1");
    assert_eq!(book.billed(), "0.00");
    assert!(lines.contains(&"charge:first 2027-01-01 -60.00".to_owned()), "{lines:?}");
    assert!(lines.contains(&"charge:second 2027-01-01 -10.00".to_owned()), "{lines:?}");
}

/// Bills no fee from 15 January to 14 February and later. The default tax is 19 % until January and 16 % from February on.
fn across_a_tax_change() -> Book {
    let plan = pricing("plan", vec![fixed("fee", "50"), per_unit("calls", "1")]);
    let mut book = Setup::new()
        .customer_tax("19", TaxBasis::default())
        .product(plan, |product| {
            (product.billing_start_date, product.billing_end_date) = (date("2027-01-15"), date("2027-12-14"));
        })
        .create("2027-01-15");
    book.edit_customer_tax_from("16", TaxBasis::default(), "2027-02-01");
    book
}

/// Rules 7: a charge above zero is taxed by its own date. One below zero takes the period's treatment.
#[test]
fn a_charge_is_taxed_by_its_own_date() {
    let mut book = across_a_tax_change();
    book.charge("first", "2027-01-20", "1000", false).expect("a charge");
    book.charge("less", "2027-01-20", "-10", false).expect("a credit");
    book.run("2027-02-15").go_to("2027-02-20");
    assert_eq!(book.taxes("INV-1"), ["16 S 40.00 6.40", "19 S 1000.00 190.00"]);
    book.charge("late", "2027-01-20", "1000", true).expect("a late charge");
    assert_eq!(book.taxes("DBT-1"), ["19 S 1000.00 190.00"]);
    book.charge("later", "2027-02-03", "100", true).expect("a late charge");
    assert_eq!(book.taxes("DBT-2"), ["16 S 100.00 16.00"]);
    book.charge("credit", "2027-01-20", "-1000", true).expect("a credit");
    assert_eq!(book.taxes("CRD-1"), ["16 S 1000.00 160.00"], "{}", book.dump());
    // What a charge billed is reversed at its own tax, and a charge that goes below zero puts the period right.
    book.edit_charge("late", "600").expect("an edit");
    book.run("2027-02-21").go_to("2027-02-22");
    assert_eq!(book.taxes("CRD-2"), ["19 S 400.00 76.00"]);
    book.edit_charge("late", "-10").expect("an edit");
    book.run("2027-02-23");
    assert_eq!(book.taxes("CRD-3"), ["16 S 10.00 1.60", "19 S 600.00 114.00"]);
}

/// Rules 7: a charge that goes above zero becomes a supply of its own, taxed by its date. The credit that it was keeps the period's
/// treatment, also while it is a draft.
#[test]
fn a_charge_that_goes_above_zero_is_taxed_by_its_own_date() {
    for is_issued in [false, true] {
        let mut book = across_a_tax_change();
        book.run("2027-02-15").go_to("2027-02-20");
        book.charge("c", "2027-01-20", "-10", is_issued).expect("a credit");
        assert_eq!(book.taxes("CRD-1"), ["16 S 10.00 1.60"]);
        book.edit_charge("c", "-4").expect("an edit");
        book.edit_charge("c", "100").expect("an edit");
        book.run("2027-02-21");
        let reversal = if is_issued { vec!["16 S 10.00 1.60"] } else { Vec::new() };
        assert_eq!(book.taxes("DBT-1"), [reversal, vec!["19 S 100.00 19.00"]].concat(), "{}", book.dump());
    }
}

/// Rules 5, 10: a credit without tax that an edit turns into a debit at 19 % leaves no line without tax, which can't be beside others.
#[test]
fn a_charge_leaves_no_line_at_the_tax_that_it_had_on_a_draft() {
    let plan = pricing("plan", vec![fixed("fee", "50")]);
    let mut book = Setup::new()
        .strict()
        .customer_tax("19", TaxBasis::default())
        .product(plan, |product| {
            (product.billing_start_date, product.billing_end_date) = (date("2027-01-15"), date("2027-12-14"));
        })
        .create("2027-01-15");
    book.edit_customer_tax_from("0", treatment(TaxCategory::O), "2027-02-01");
    book.run("2027-02-15").go_to("2027-02-20").charge("c", "2027-01-20", "-10", false).expect("a credit");
    book.edit_charge("c", "100").expect("an edit");
    assert_eq!(book.run_failures("2027-02-21"), [""; 0]);
    assert_eq!(book.documents()[1..], ["CRD-1 VOID of INV-1", "DBT-1 119.00 ISSUED of INV-1"]);
}

/// Bills a charge of 1,000.00 at 19 % and nothing else from 15 January to 14 February. The default tax is 16 % from February on.
fn charged_across_a_tax_change() -> Book {
    let plan = pricing("plan", vec![per_unit("calls", "1")]);
    let mut book = Setup::new()
        .customer_tax("19", TaxBasis::default())
        .product(plan, |product| {
            (product.billing_start_date, product.billing_end_date) = (date("2027-01-15"), date("2027-12-14"));
            product.line_items = Some(Vec::new());
        })
        .create("2027-01-15");
    book.edit_customer_tax_from("16", TaxBasis::default(), "2027-02-01");
    book.charge("first", "2027-01-20", "1000", false).expect("a charge");
    book.run("2027-02-15").go_to("2027-02-20");
    book
}

/// Rules 7: without anything else in the period, a credit takes the default of the period's last day.
#[test]
fn a_credit_of_a_charge_alone_takes_the_periods_treatment() {
    let mut book = charged_across_a_tax_change();
    book.charge("credit", "2027-01-20", "-1000", true).expect("a credit");
    assert_eq!(book.documents(), ["INV-1 1190.00 ISSUED", "CRD-1 1160.00 ISSUED of INV-1"]);
}

/// Rules 7: a charge that goes below zero leaves its own tax, also without anything else in the period. A credit that grows keeps
/// its tax.
#[test]
fn a_charge_alone_that_goes_below_zero_takes_the_periods_treatment() {
    let mut book = charged_across_a_tax_change();
    book.charge("late", "2027-01-20", "600", true).expect("a late charge");
    book.edit_charge("late", "-10").expect("an edit");
    book.run("2027-02-21").go_to("2027-02-22");
    assert_eq!(book.taxes("CRD-1"), ["16 S 10.00 1.60", "19 S 600.00 114.00"], "{}", book.dump());
    book.edit_customer_tax_from("7", TaxBasis::default(), "2027-02-01");
    book.edit_charge("late", "-15").expect("an edit");
    book.run("2027-02-23");
    assert_eq!(book.taxes("CRD-2"), ["16 S 5.00 0.80"], "{}", book.dump());
}

/// Rules 7: a charge never changes its currency. The product bills in another currency from February.
#[test]
fn a_charge_is_not_moved_to_a_period_in_another_currency() {
    let plan = pricing("plan", vec![fixed("fee", "300")]);
    let mut book = Setup::new().product(plan, |_| {}).create("2027-01-01");
    book.charge("c", "2027-01-20", "250.75", false).expect("a charge");
    let mut yen = pricing("plan", vec![fixed("fee", "300")]);
    yen.content.currency = currency("JPY");
    book.edit_pricing(yen);
    book.edit(from("2027-02-01"), vec![element("plan", |plan| plan.reprice = true)]).expect("an edit");
    let before = book.documents();
    assert_eq!(code(&book.move_charge("c", "2027-02-10").expect_err("another currency")), "charge_already_recorded");
    assert_eq!(book.documents(), before);
    book.move_charge("c", "2027-01-25").expect("the same currency");
}
