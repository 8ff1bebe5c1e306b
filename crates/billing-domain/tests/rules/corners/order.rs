//! Tests of the order in which documents of a family are issued, which decides their cents (billing rules 5).

use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::lines::BillWith;
use billing_testkit::fixtures::{fixed, per_unit, percent, pricing};

use super::book::{Book, Setup};

/// Returns an invoice of 10.00 with an adjustment of 0.03 and then a usage debit of 0.03, both opened on 31 January. At 19 %, the
/// one that is issued first has a tax of 0.01, the other has none.
fn adjustment_and_debit(grace_hours: u16) -> Book {
    let plan = pricing("plan", vec![fixed("fee", "10"), per_unit("calls", "0.01")]);
    let mut book = Setup::new()
        .entity("main", |main| main.profile.grace_hours = grace_hours)
        .product(plan, |product| {
            product.payment_time = Some(PaymentTime::BeforeUse);
            product.tax = Some(percent("19"));
        })
        .create("2027-01-01T00:00:00Z");
    book.try_run("2027-01-01T03:00:00Z").expect("a run");
    book.go_to("2027-01-31");
    book.charge_with(BillWith::Fixed, "late", "2027-01-10", "0.03", false).expect("a charge");
    book.event("2027-01-31T11:00:00Z", "3");
    book
}

/// Rules 5: with a grace of two hours, the adjustment is due at midnight and the debit at 02:00, also in a run at 03:00.
#[test]
fn an_adjustment_that_is_due_earlier_is_issued_before_a_regular_document() {
    let mut book = adjustment_and_debit(2);
    let expected = |status: &str| [format!("DBT-1 0.04 {status} of INV-1"), format!("DBT-2 0.03 {status} of INV-1")];
    assert_eq!(book.documents()[1..], expected("DRAFT"));
    book.run("2027-02-01T03:00:00Z");
    assert_eq!(book.documents()[1..3], expected("ISSUED"));
}

/// Rules 5: without grace, both are due at midnight, and the regular document comes first.
#[test]
fn of_documents_due_at_one_instant_the_regular_one_is_issued_first() {
    let mut book = adjustment_and_debit(0);
    let expected = |status: &str| [format!("DBT-1 0.03 {status} of INV-1"), format!("DBT-2 0.04 {status} of INV-1")];
    assert_eq!(book.documents()[1..], expected("DRAFT"));
    book.run("2027-02-01T03:00:00Z");
    assert_eq!(book.documents()[1..3], expected("ISSUED"));
}
