//! The sums below the products.

use billing_domain::document::lines::FamilySums;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::printout::Printout;
use billing_domain::document::totals::PrepaidAmount;
use billing_domain::document::{AppliedAtIssue, AtIssue, DocumentKind};
use billing_domain::refs::CreditGrantRef;
use billing_domain::tax::{StatedTax, TaxTreatment};
use billing_testkit::fixtures;
use uuid::Uuid;

use crate::printouts::{eur, fixed, invoice, printout};
use crate::{NONE, assert_says, number, text};

/// Returns credit of a grant at a tax rate in percent.
fn prepaid(name: &str, sold_by: Option<DocumentNumber>, tax: &str, minor: i64) -> PrepaidAmount {
    PrepaidAmount {
        grant_ref: CreditGrantRef::from_uuid(Uuid::from_u128(1)),
        name: fixtures::line(name),
        sold_by,
        treatment: TaxTreatment::of(&[StatedTax { rate: Some(fixtures::percent(tax)), basis: NONE }]),
        amount: eur(minor),
        unit: None,
    }
}

/// Returns the document with prepaid credit.
fn less(printout: Printout, prepaid: Vec<PrepaidAmount>) -> Printout {
    let mut printout = printout;
    let content = printout.draft_content.content.with_prepaid(printout.head.kind, prepaid, &FamilySums::default());
    printout.draft_content.content = content.expect("small amounts");
    printout
}

#[test]
fn prepaid_credit_is_below_the_discount_and_above_the_tax() {
    let sale = number(DocumentKind::Invoice, 7);
    let credit = vec![prepaid("Gift", None, "19", 810), prepaid("Credit", Some(sale), "19", 4_000)];
    let wanted = [
        "Subtotal 109.00 EUR",
        "Discount 10% -10.90 EUR",
        "Gift -8.10 EUR",
        "Credit, MAIN-INV-7 -40.00 EUR",
        "Net amount 50.00 EUR",
        "VAT 19% on 50.00 9.50 EUR",
        "Total 59.50 EUR",
        "Amount due 59.50 EUR",
    ];
    assert_says(&text("prepaid", &less(invoice(), credit)), &wanted);

    // The unit is that of the entity when the document was issued.
    let of = |per_unit| fixtures::credit_unit("EUR", per_unit).of(fixtures::eur()).cloned();
    let mut credit = vec![prepaid("Gift", None, "19", 810), prepaid("Credit", None, "19", 4_000)];
    (credit[0].unit, credit[1].unit) = (of("0.003"), of("0.01"));
    let wanted = ["Gift, 2,700 credits -8.10 EUR", "Credit, 4,000 credits -40.00 EUR", "Net amount 50.00 EUR"];
    assert_says(&text("units", &less(invoice(), credit)), &wanted);

    // Each tax has its own credit, and a credit note returns credit above zero.
    let fee = |cents| vec![fixed("Fee", eur(cents))];
    let billed = vec![("Hosting", "0", "19", NONE, fee(10_000)), ("Books", "0", "7", NONE, fee(10_000))];
    let credit = vec![prepaid("Gift", None, "7", 10_000), prepaid("Gift", None, "19", 5_000)];
    let wanted = [
        "Subtotal 200.00 EUR",
        "Gift (VAT 7%) -100.00 EUR",
        "Gift (VAT 19%) -50.00 EUR",
        "Net amount 50.00 EUR",
        "VAT 7% on 0.00 0.00 EUR",
        "VAT 19% on 50.00 9.50 EUR",
        "Amount credited 59.50 EUR",
    ];
    assert_says(&text("returned", &less(printout(DocumentKind::Credit, billed), credit)), &wanted);
}

#[test]
fn many_grants_and_long_names_are_printed_whole() {
    let grants = (0..100).map(|i| prepaid(&format!("Grant {i}"), None, "19", 1)).collect();
    let many = text("many-grants", &less(invoice(), grants));
    assert_eq!(many.iter().filter(|line| line.starts_with("Grant ") && line.ends_with(" -0.01 EUR")).count(), 100, "{many:#?}");

    let long = text("long-credit", &less(invoice(), vec![prepaid(&"q".repeat(4096), None, "19", 810)]));
    assert_eq!(long.concat().matches('q').count(), 4096, "{long:#?}");
    assert!(long.iter().any(|line| line.contains('q') && line.ends_with("-8.10 EUR")), "{long:#?}");
    assert!(long.iter().all(|line| line.chars().count() < 200), "{long:#?}");
}

#[test]
fn what_was_applied_at_the_issue_is_above_what_is_due() {
    let mut settled = invoice();
    let applied = vec![
        AppliedAtIssue { document_number: Some(number(DocumentKind::Credit, 3)), amount: eur(2_857) },
        AppliedAtIssue { document_number: None, amount: eur(1_000) },
    ];
    settled.at_issue = AtIssue::new(eur(11_674), applied).ok();
    let wanted = [
        "Total 116.74 EUR",
        "Applied: MAIN-CRD-3 -28.57 EUR",
        "Applied: Payment -10.00 EUR",
        "Amount due 78.17 EUR",
        "IBAN DE89 3704 0044 0532 0130 00",
        "Scan to pay",
    ];
    assert_says(&text("applied", &settled), &wanted);

    let applied = vec![AppliedAtIssue { document_number: Some(number(DocumentKind::Credit, 3)), amount: eur(11_674) }];
    settled.at_issue = AtIssue::new(eur(11_674), applied).ok();
    let paid = text("nothing-due", &settled);
    assert_says(&paid, &["Applied: MAIN-CRD-3 -116.74 EUR", "Amount due 0.00 EUR", "Notes"]);
    assert!(!paid.iter().any(|line| line.contains("IBAN") || line.contains("Scan")), "nothing is to be paid: {paid:#?}");

    let mut credit = printout(DocumentKind::Credit, vec![("API", "0", "19", NONE, vec![fixed("Fee", eur(100))])]);
    let applied = vec![AppliedAtIssue { document_number: Some(number(DocumentKind::Invoice, 1042)), amount: eur(100) }];
    credit.at_issue = AtIssue::new(eur(119), applied).ok();
    let wanted = ["Amount credited 1.19 EUR", "Applied to MAIN-INV-1042 -1.00 EUR", "Credit left 0.19 EUR", "Notes"];
    assert_says(&text("credit-applied", &credit), &wanted);
}

#[test]
fn no_sum_is_stated_twice() {
    let untaxed = printout(DocumentKind::Invoice, vec![("Fees", "10", "0", NONE, vec![fixed("Fee", eur(10_000))])]);
    let lines = text("untaxed", &untaxed);
    assert_says(&lines, &["Subtotal 100.00 EUR", "Discount 10% -10.00 EUR", "Total 90.00 EUR", "Amount due 90.00 EUR"]);
    assert!(!lines.iter().any(|line| line.starts_with("Net amount")), "{lines:#?}");
}
