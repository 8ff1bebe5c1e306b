//! Tests of items that are billed once per contract, and of minimum fees (billing rules 6).

use billing_domain::catalog::Pricing;
use billing_domain::patch::Patch;
use billing_testkit::fixtures::{date, fixed, once, price, pricing};

use super::book::{Book, Setup, element, from};

fn with_setup_fee() -> Pricing {
    pricing("plan", vec![fixed("fee", "100"), once("setup", "500")])
}

fn months(first: &'static str, last: &'static str) -> impl FnOnce(&mut billing_domain::contract::terms::RequestedProduct) {
    move |product| {
        product.billing_start_date = date(first);
        product.billing_end_date = date(last);
    }
}

fn element_of(first: &'static str, last: &'static str) -> billing_domain::contract::amendment::ProductPatch {
    element("plan", |plan| {
        plan.billing_start_date = Some(date(first));
        plan.billing_end_date = Some(date(last));
    })
}

fn run_half_a_year(book: &mut Book) {
    book.run_on(["2027-02-01", "2027-03-01", "2027-04-01", "2027-05-01", "2027-06-01", "2027-07-01"]);
}

/// Rating (billing rules 6): a renewal as a second element of the same pricing bills no second setup fee.
#[test]
fn a_renewal_agreed_at_the_start_bills_a_setup_fee_once() {
    let mut book = Setup::new()
        .product(with_setup_fee(), months("2027-01-01", "2027-03-31"))
        .product(with_setup_fee(), months("2027-04-01", "2027-06-30"))
        .create("2027-01-01");
    run_half_a_year(&mut book);
    let rest = ["INV-2", "INV-3", "INV-4", "INV-5", "INV-6"].map(|number| format!("{number} 100.00 ISSUED"));
    assert_eq!(book.documents()[0], "INV-1 600.00 ISSUED");
    assert_eq!(book.documents()[1..], rest);
}

/// Rating (billing rules 6): a renewal that an edit adds bills no second setup fee either.
#[test]
fn a_renewal_added_by_an_edit_bills_no_second_setup_fee() {
    let mut book = Setup::new().product(with_setup_fee(), months("2027-01-01", "2027-03-31")).create("2027-01-01");
    book.run("2027-02-01").go_to("2027-02-10");
    let renewed = vec![element_of("2027-01-01", "2027-03-31"), element_of("2027-04-01", "2027-06-30")];
    book.edit(billing_domain::contract::amendment::EffectiveFrom::NextPeriod, renewed).expect("an edit");
    run_half_a_year(&mut book);
    assert_eq!(book.owed(), "1100.00");
    assert_eq!(book.documents()[3], "INV-4 100.00 ISSUED");
}

/// Rating (billing rules 6): a product that ended and is restored bills no second setup fee.
#[test]
fn a_product_put_back_after_its_end_bills_no_second_setup_fee() {
    let mut book = Setup::new()
        .product(pricing("other", vec![fixed("fee", "1")]), |_| {})
        .product(with_setup_fee(), months("2027-01-01", "2027-01-31"))
        .create("2027-01-01");
    book.run("2027-02-01").go_to("2027-03-10");
    let other = element("other", |_| {});
    book.edit(from("2027-04-01"), vec![other, element_of("2027-04-01", "2027-04-30")]).expect("an edit");
    book.run_on(["2027-04-01", "2027-05-01"]);
    // January 1.00 + 100.00 + 500.00, February and March 1.00 each, April 1.00 + 100.00.
    assert_eq!(book.owed(), "704.00");
}

/// Rating (billing rules 6): the fee moves to an element that begins earlier, and both elements' periods are corrected.
#[test]
fn a_setup_fee_moves_to_an_element_that_begins_earlier() {
    let mut book = Setup::new().product(with_setup_fee(), months("2027-04-01", "2027-06-30")).create("2027-04-01");
    book.run_on(["2027-05-01", "2027-06-01"]);
    assert_eq!(book.documents(), ["INV-1 600.00 ISSUED", "INV-2 100.00 ISSUED"]);
    book.go_to("2027-06-02");
    let both = vec![element_of("2027-01-01", "2027-03-31"), element_of("2027-04-01", "2027-06-30")];
    book.edit(billing_domain::contract::amendment::EffectiveFrom::NextPeriod, both).expect("an edit");
    assert!(book.documents().contains(&"CRD-1 500.00 ISSUED of INV-1".to_owned()), "{}", book.dump());
    book.run_on(["2027-06-03", "2027-07-01"]);
    assert_eq!(book.owed(), "1100.00");
    let setups: Vec<String> =
        book.numbers().iter().flat_map(|number| book.lines(number)).filter(|l| l.starts_with("setup")).collect();
    assert_eq!(setups.len(), 3, "{setups:?}");
    assert!(setups.contains(&"setup 2027-01-01 500.00".to_owned()), "{setups:?}");
}

/// Rating (billing rules 6): the fee is billed at the price of the earliest element.
#[test]
fn a_setup_fee_has_the_price_of_the_earliest_element() {
    let mut dearer = billing_domain::contract::terms::RequestedLineItem::plain(billing_testkit::fixtures::line_item_id("setup"));
    dearer.price = Patch::Set(billing_domain::catalog::PriceModel::Flat { amount: price("700") });
    let fee = billing_domain::contract::terms::RequestedLineItem::plain(billing_testkit::fixtures::line_item_id("fee"));
    let mut book = Setup::new()
        .product(with_setup_fee(), |product| {
            months("2027-04-01", "2027-06-30")(product);
            product.line_items = Some(vec![fee, dearer]);
        })
        .product(with_setup_fee(), months("2027-01-01", "2027-03-31"))
        .create("2027-01-01");
    run_half_a_year(&mut book);
    assert_eq!(book.owed(), "1100.00");
}

/// Rating (billing rules 6): `ONCE` items do not count toward the minimum fee: 10.00 + 500.00 + 50.00, then 10.00 +
/// 50.00.
#[test]
fn a_setup_fee_does_not_count_for_the_minimum_fee() {
    let mut plan = pricing("plan", vec![fixed("fee", "10"), once("setup", "500")]);
    plan.content.minimum_fee = Some(price("60"));
    let mut book = Setup::new().product(plan, |_| {}).create("2027-01-01");
    book.run_on(["2027-02-01", "2027-03-01"]);
    assert_eq!(book.documents(), ["INV-1 560.00 ISSUED", "INV-2 60.00 ISSUED"]);
}
