//! Deposits: payments without a document (billing rules 9).

use billing_domain::simulate::{Bill, Simulation, customer};

use super::{bill, fee};

/// Returns a contract for a fee of 100.00 a month in 2026. The invoices of January and February are due.
fn two_due() -> Simulation {
    Simulation::new().contract(fee("plan", "100.00")).created("2026-01-05")
}

fn states(bill: &Bill) -> Vec<String> {
    ["UB-INV-1", "UB-INV-2"].map(|number| format!("{:?}", bill.document(number).state().expect("small amounts"))).to_vec()
}

fn unapplied(bill: &Bill) -> String {
    bill.unapplied().to_string()
}

#[test]
fn a_deposit_pays_the_earliest_due_documents_and_leaves_balance_for_the_next() {
    let story = two_due().on("2026-03-05").deposit("250.00").named("deposit");
    let paid = bill(&story, "2026-03-05");
    assert_eq!((states(&paid), unapplied(&paid)), (vec!["Paid".to_owned(); 2], "50.00 EUR".to_owned()));
    let next = bill(&story, "2026-04-01");
    let march = next.document("UB-INV-3");
    assert_eq!(march.amount_due().map(|due| due.to_string()).as_deref(), Some("50.00 EUR"));
    let at_issue = march.at_issue().expect("an issued document");
    let [applied] = at_issue.applied.as_slice() else { panic!("one amount: {at_issue:?}") };
    assert_eq!((&applied.document_number, applied.amount.to_string()), (&None, "50.00 EUR".to_owned()));
    assert_eq!(at_issue.due.to_string(), "50.00 EUR");

    let short = two_due().on("2026-03-05").deposit("150.00");
    let short = bill(&short, "2026-03-05");
    assert_eq!(states(&short), ["Paid", "PartiallyPaid"]);
}

#[test]
fn a_deposit_is_refunded_or_reversed_like_a_payment() {
    let story = two_due().on("2026-03-05").deposit("250.00").named("deposit");
    let reversed = bill(&story.clone().on("2026-03-06").reverse("deposit"), "2026-03-06");
    assert_eq!((states(&reversed), unapplied(&reversed)), (vec!["Issued".to_owned(); 2], "0.00 EUR".to_owned()));
    let refunded = story.on("2026-03-06").refund("deposit", "20.00").named("refund");
    let refunded = refunded.on("2026-03-07").reverse("deposit").refused("payment_refunded");
    assert_eq!(unapplied(&bill(&refunded, "2026-03-07")), "30.00 EUR");
    let again = refunded.on("2026-03-08").reverse("refund").on("2026-03-08").reverse("deposit");
    assert_eq!(states(&bill(&again, "2026-03-08")), ["Issued"; 2]);
}

#[test]
fn a_document_that_a_deposit_pays_is_voided_after_the_deposit_is_unapplied() {
    let story = two_due().on("2026-03-05").deposit("100.00").named("deposit");
    let story = story.on("2026-03-06").void("UB-INV-1").refused("document_paid");
    let story = story.on("2026-03-06").unapply("deposit", "UB-INV-1").on("2026-03-06").void("UB-INV-1");
    let voided = bill(&story, "2026-03-06");
    // The document that replaces the void one is issued at once, and the deposit pays it.
    assert_eq!(voided.overview()[2], "UB-INV-3 2026-01-01 100.00");
    assert_eq!(voided.document("UB-INV-3").amount_due().map(|due| due.minor()), Some(0));
}

#[test]
fn without_automatic_balance_a_deposit_is_applied_by_hand() {
    let story = Simulation::new().customer(customer().keep_balance()).contract(fee("plan", "100.00"));
    let story = story.created("2026-01-05").on("2026-03-05").deposit("100.00").named("deposit");
    let waiting = bill(&story, "2026-03-05");
    assert_eq!((states(&waiting), unapplied(&waiting)), (vec!["Issued".to_owned(); 2], "100.00 EUR".to_owned()));
    let applied = story.on("2026-03-06").apply("deposit", "UB-INV-2", "100.00");
    assert_eq!(states(&bill(&applied, "2026-03-06")), ["Issued", "Paid"]);
}

#[test]
fn a_deposit_needs_an_amount_above_zero_in_its_currency() {
    let story = two_due().on("2026-01-05").deposit("0").refused("out_of_range");
    let story = story.on("2026-01-05").deposit("1.001").refused("invalid_format");
    assert_eq!(unapplied(&bill(&story.on("2026-01-06").deposit("1.00"), "2026-01-06")), "1.00 EUR");
}
