//! Tests of the tax treatment of invoices, credits and corrections (billing rules 5, 7).

use billing_domain::contract::terms::PaymentTime;
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;
use billing_domain::tax::{TaxBasis, TaxCategory};
use billing_testkit::fixtures::{fixed, per_unit, percent, pricing};

use super::book::{Book, Setup, element, from, treatment, treatment_patch};

fn plan() -> billing_domain::catalog::Pricing {
    pricing("plan", vec![fixed("fee", "100"), per_unit("calls", "1")])
}

/// Bills a customer at 0 % AE 150.00 for January. Then the customer becomes taxable, and January's event is deleted.
fn no_longer_reverse_charge(setup: Setup) -> Book {
    let setup = setup.customer_tax("0", treatment(TaxCategory::Ae));
    let mut book = setup.product(plan(), |_| {}).create("2027-01-01");
    book.go_to("2027-01-10");
    let event = book.event("2027-01-10", "50");
    book.run("2027-02-01");
    assert_eq!(book.taxes("INV-1"), ["0 AE 150.00 0.00"]);
    book.go_to("2027-02-05").edit_customer_tax("19", TaxBasis::default());
    book.delete_event(event).expect("a deletion");
    book
}

/// Corrections (billing rules 5): an adjustment keeps the whole default treatment at which the period was billed.
#[test]
fn a_credit_keeps_category_and_reason_of_what_it_corrects() {
    let mut book = no_longer_reverse_charge(Setup::new());
    assert_eq!(book.taxes("CRD-1"), ["0 AE 50.00 0.00"]);
    book.run_on(["2027-02-06", "2027-03-01"]);
    assert_eq!(book.documents(), ["INV-1 150.00 ISSUED", "CRD-1 50.00 ISSUED of INV-1", "INV-2 119.00 ISSUED"]);
    assert_eq!(book.taxes("CRD-1"), ["0 AE 50.00 0.00"]);
}

/// Legal particulars (billing rules 10): with `paper: STRICT`, the credit has its category. The credit and every later
/// invoice are issued.
#[test]
fn a_strict_entity_issues_the_credit_and_later_invoices() {
    let mut book = no_longer_reverse_charge(Setup::new().strict());
    for day in ["2027-02-06", "2027-03-01"] {
        book.try_run(day).expect("a run");
    }
    assert_eq!(book.documents(), ["INV-1 150.00 ISSUED", "CRD-1 50.00 ISSUED of INV-1", "INV-2 119.00 ISSUED"]);
}

/// Corrections (billing rules 5): the child of January keeps 19 %. February's fee, on the child's parent, is 116.00.
#[test]
fn a_childs_default_tax_is_not_that_of_its_parents_fee() {
    let mut book = Setup::new()
        .customer_tax("19", TaxBasis::default())
        .product(plan(), |product| {
            product.payment_time = Some(PaymentTime::DuringUse);
            product.net_terms = Some(NetTerms::DueUponUsage);
        })
        .create("2027-01-01T00:00:00Z");
    book.run("2027-01-01").go_to("2027-01-10").event("2027-01-10", "10");
    book.go_to("2027-02-01T00:00:00Z").edit_customer_tax("16", TaxBasis::default());
    book.run("2027-02-01");
    assert_eq!(book.documents(), ["INV-1 119.00 ISSUED", "INV-2 116.00 ISSUED", "INV-3 11.90 ISSUED of INV-2"]);
}

/// Corrections (billing rules 5): the charge was billed at 19 % and is credited at 19 %. Only January's fee is owed.
#[test]
fn a_charge_is_taken_back_at_the_rate_it_was_billed_at() {
    let mut book = Setup::new()
        .customer_tax("19", TaxBasis::default())
        .product(pricing("plan", vec![fixed("fee", "100")]), |product| product.payment_time = Some(PaymentTime::DuringUse))
        .create("2027-01-01T00:00:00Z");
    book.run_on(["2027-01-01", "2027-02-01"]);
    book.go_to("2027-02-05").charge("more", "2027-01-20", "1000", true).expect("a charge");
    // Two months and the charge.
    assert_eq!(book.owed(), "1428.00");
    book.edit_customer_tax("0", treatment(TaxCategory::Ae));
    book.cancel_on("2027-01-31").expect("a cancel");
    assert_eq!(book.owed(), "1309.00");
    book.delete_charge("more").expect("a deletion");
    book.run("2027-02-06");
    assert_eq!(book.owed(), "119.00", "{}", book.dump());
}

/// Timing of documents (billing rules 2): January's usage has January's category Z. February's fee has category AE.
#[test]
fn a_line_has_the_category_of_its_own_period() {
    let mut book = Setup::new()
        .product(plan(), |product| {
            product.payment_time = Some(PaymentTime::DuringUse);
            product.tax = Some(percent("0"));
            product.treatment = treatment(TaxCategory::Z);
        })
        .create("2027-01-01T00:00:00Z");
    book.run("2027-01-01").go_to("2027-01-10").event("2027-01-10", "50");
    let reverse = element("plan", |plan| plan.treatment = treatment_patch(TaxCategory::Ae));
    book.edit(from("2027-02-01"), vec![reverse]).expect("an edit");
    book.run("2027-02-01");
    let mut taxes = book.taxes("INV-2");
    taxes.sort();
    assert_eq!(taxes, ["0 AE 100.00 0.00", "0 Z 50.00 0.00"]);
}

/// Corrections (billing rules 5): an edit from a past date that changes only the category corrects documents like a
/// change of the rate.
#[test]
fn an_edit_of_only_the_category_takes_back_and_bills_anew() {
    let mut book = Setup::new()
        .product(plan(), |product| {
            product.tax = Some(percent("0"));
            product.treatment = treatment(TaxCategory::Z);
        })
        .create("2027-01-01");
    book.run("2027-02-01").go_to("2027-02-05");
    let reverse = element("plan", |plan| plan.treatment = treatment_patch(TaxCategory::Ae));
    book.edit(from("2027-01-01"), vec![reverse]).expect("an edit");
    let expected = ["INV-1 100.00 ISSUED", "CRD-1 100.00 ISSUED of INV-1", "DBT-1 100.00 ISSUED of INV-1"];
    assert_eq!(book.documents(), expected);
    assert_eq!([book.taxes("CRD-1"), book.taxes("DBT-1")], [["0 Z 100.00 0.00"], ["0 AE 100.00 0.00"]]);
}

/// Returns two products on one invoice. One states O. The other takes the customer's default, which becomes taxable.
fn untaxable_beside_taxed(setup: Setup) -> Book {
    let mut book = setup
        .customer_tax("0", treatment(TaxCategory::O))
        .product(pricing("stated", vec![fixed("fee", "10")]), |product| {
            product.tax = Some(percent("0"));
            product.treatment = treatment(TaxCategory::O);
        })
        .product(pricing("default", vec![fixed("fee", "20")]), |_| {})
        .create("2027-01-01");
    book.go_to("2027-01-10").edit_customer_tax("19", TaxBasis::default());
    book
}

/// Timing of documents (billing rules 2): `O` beside another category makes a document incomplete. LENIENT issues it
/// and shows the problem.
#[test]
fn a_lenient_entity_issues_untaxable_beside_taxed_and_says_so() {
    let mut book = untaxable_beside_taxed(Setup::new());
    book.edit_customer_tax("19", TaxBasis::default());
    book.try_run("2027-02-01").expect("a run");
    // 10.00 + 20.00 × 1.19
    assert_eq!(book.documents(), ["INV-1 33.80 ISSUED"]);
    assert!(book.missing("INV-1").iter().any(|pointer| pointer.starts_with("/taxes")), "{:?}", book.missing("INV-1"));
}

/// Timing of documents (billing rules 2): STRICT does not issue the document yet. The run is not refused, and nothing
/// is numbered.
#[test]
fn a_strict_entity_waits_with_untaxable_beside_taxed() {
    let mut book = untaxable_beside_taxed(Setup::new().strict());
    book.try_run("2027-02-01").expect("a run");
    assert_eq!(book.documents(), [""; 0]);
}

/// Contracts (billing rules 7): the default of a service period's last day applies to the period, even if it is
/// invoiced a day later.
#[test]
fn usage_invoiced_after_a_change_of_the_default_has_its_own_months_rate() {
    let mut book = Setup::new().customer_tax("19", TaxBasis::default()).product(plan(), |_| {}).create("2027-01-01");
    book.go_to("2027-02-01T00:00:00Z").edit_customer_tax("16", TaxBasis::default());
    book.run_on(["2027-02-01", "2027-03-01"]);
    assert_eq!(book.documents(), ["INV-1 119.00 ISSUED", "INV-2 116.00 ISSUED"]);
}

/// Contracts (billing rules 7): one invoice bills January's usage and February's fee, each at its own rate.
#[test]
fn one_invoice_has_last_months_usage_and_this_months_fee_at_their_own_rates() {
    let mut book = Setup::new()
        .customer_tax("19", TaxBasis::default())
        .product(plan(), |product| product.payment_time = Some(PaymentTime::DuringUse))
        .create("2027-01-01T00:00:00Z");
    book.run("2027-01-01").go_to("2027-01-10").event("2027-01-10", "50");
    book.go_to("2027-02-01T00:00:00Z").edit_customer_tax("16", TaxBasis::default());
    book.run("2027-02-01");
    // 100.00 × 1.16 + 50.00 × 1.19
    assert_eq!(book.documents(), ["INV-1 119.00 ISSUED", "INV-2 175.50 ISSUED"]);
    let mut taxes = book.taxes("INV-2");
    taxes.sort();
    assert_eq!(taxes, ["16 S 100.00 16.00", "19 S 50.00 9.50"]);
}

/// Contracts (billing rules 7): if no default was in force, a new default applies from the beginning. No issued
/// document is corrected.
#[test]
fn a_first_default_holds_from_the_beginning_for_what_is_not_issued() {
    let mut book = Setup::new().product(plan(), |_| {}).create("2027-01-01");
    book.run("2027-02-01").go_to("2027-03-05").edit_customer_tax("19", TaxBasis::default());
    book.run("2027-03-06");
    assert_eq!(book.documents(), ["INV-1 100.00 ISSUED", "INV-2 119.00 ISSUED"]);
    book.event("2027-01-20", "5");
    assert_eq!(book.documents().last().map(String::as_str), Some("DBT-1 5.00 DRAFT of INV-1"), "taxed as January was billed");
}

/// Rules 5: a category that the product states is not a default. An edit of the customer does not change it.
#[test]
fn a_stated_treatment_is_kept_whatever_the_customer_becomes() {
    let mut book = Setup::new()
        .customer_tax("19", TaxBasis::default())
        .product(plan(), |product| {
            product.tax = Some(percent("0"));
            product.treatment = treatment(TaxCategory::E);
        })
        .create("2027-01-01");
    let event = book.go_to("2027-01-10").event("2027-01-10", "50");
    book.run("2027-02-01").go_to("2027-02-05").edit_customer_tax("7", TaxBasis::default());
    book.delete_event(event).expect("a deletion");
    assert_eq!(book.taxes("CRD-1"), ["0 E 50.00 0.00"]);
    let cleared = element("plan", |plan| plan.tax = Patch::Keep);
    book.edit(from("2027-01-01"), vec![cleared]).expect("an edit that changes nothing");
    assert_eq!(book.documents(), ["INV-1 150.00 ISSUED", "CRD-1 50.00 DRAFT of INV-1"]);
}
