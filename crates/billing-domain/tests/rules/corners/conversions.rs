//! Tests of the exchange rate that corrections convert their tax with (billing rules 10).

use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::{PaymentTime, RequestedProduct};
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;
use billing_domain::tax::TaxBasis;
use billing_testkit::fixtures::{currency, fixed, per_unit, pricing};

use super::book::{Book, Setup, element, from, repriced};

/// A fee of 100.00 and calls at 1.00, with 19 % tax. The entity accounts for tax in zloty: 4.30 from 1 January, 4.50 from
/// 10 February.
fn book(change: impl FnOnce(&mut RequestedProduct)) -> Book {
    let plan = pricing("plan", vec![fixed("fee", "100"), per_unit("calls", "1")]);
    let mut book = Setup::new()
        .entity("main", |main| main.profile.paper.tax_currency = Some(currency("PLN")))
        .customer_tax("19", TaxBasis::default())
        .product(plan, change)
        .create("2027-01-01");
    book.post_exchange_rate("PLN", "2027-01-01", "4.30");
    book.post_exchange_rate("PLN", "2027-02-10", "4.50");
    book
}

/// A full credit gives back the tax that the invoice states in zloty: 19.00 × 4.30.
#[test]
fn a_correction_converts_its_tax_at_the_rate_of_the_corrected_document() {
    let mut book = book(|_| {});
    book.run("2027-02-01");
    assert_eq!(book.tax_in_currency("INV-1"), "4.30 81.70 PLN");
    book.go_to("2027-02-12").charge("back", "2027-01-15", "-100", false).expect("a charge");
    book.run("2027-02-13");
    assert_eq!(book.tax_in_currency("CRD-1"), "4.30 81.70 PLN");
    book.charge("more", "2027-01-15", "10", true).expect("a charge");
    assert_eq!(book.tax_in_currency("DBT-1"), "4.30 8.17 PLN");
    book.run("2027-03-01");
    assert_eq!(book.tax_in_currency("INV-2"), "4.50 85.50 PLN", "a document of its own has the rate of its day");
}

/// Usage that is billed in addition to an invoice doesn't correct the invoice.
#[test]
fn a_debit_of_usage_has_the_rate_of_its_own_day() {
    let mut book = book(|product| product.payment_time = Some(PaymentTime::BeforeUse));
    book.run("2027-02-01");
    book.event("2027-02-05", "100");
    book.run("2027-03-01");
    assert_eq!(
        (book.tax_in_currency("INV-1"), book.tax_in_currency("INV-2")),
        ("4.30 81.70 PLN".to_owned(), "4.30 81.70 PLN".to_owned())
    );
    assert_eq!(book.tax_in_currency("DBT-1"), "4.50 85.50 PLN");
}

#[test]
fn a_corrected_document_without_the_currency_leaves_the_rate_of_the_day() {
    let mut book = book(|_| {});
    book.run("2027-02-01");
    book.go_to("2027-02-12").post_exchange_rate("USD", "2027-02-01", "1.10");
    book.edit_entity("main", |main| main.paper.tax_currency = Some(currency("USD")));
    book.charge("back", "2027-01-15", "-100", true).expect("a charge");
    assert_eq!(book.tax_in_currency("CRD-1"), "1.10 20.90 USD");
}

/// Two events of 100.00 each, at 4.30 and 4.50, are taken back by one credit: 167.20 ÷ 38.00 = 4.40.
#[test]
fn a_correction_of_several_documents_gives_back_the_tax_of_all() {
    let mut book = book(|product| {
        product.net_terms = Some(NetTerms::DueUponUsage);
        product.billing_cycle = BillingCycle::new(CycleUnit::Yearly, 1);
    });
    book.go_to("2027-01-10").event("2027-01-10", "100");
    book.go_to("2027-02-12").event("2027-02-12", "100");
    assert_eq!(
        (book.tax_in_currency("INV-2"), book.tax_in_currency("INV-3")),
        ("4.30 81.70 PLN".to_owned(), "4.50 85.50 PLN".to_owned())
    );
    let free = element("plan", |plan| plan.line_items = Patch::Set(vec![repriced("calls", "0")]));
    book.go_to("2027-02-20").edit(from("2027-01-01"), vec![free]).expect("an edit");
    assert_eq!(book.corrects("CRD-1"), ["INV-2", "INV-3"]);
    assert_eq!(book.tax_in_currency("CRD-1"), "4.400000000000 167.20 PLN");
}
