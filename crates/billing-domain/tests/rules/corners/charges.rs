//! Tests that negative charges credit no more than is billed (billing rules 9).

use billing_domain::tax::TaxBasis;
use billing_testkit::fixtures::{fixed, per_unit, pricing};

use super::book::{Book, Setup, code};

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

/// Finding 12, rules 9: without the first charge, the second charge would credit 119.00 of an invoice of 0.00.
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

/// Finding 12, rules 9: deleting the usage that a goodwill charge credits leaves 0.00, never −90.00.
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
