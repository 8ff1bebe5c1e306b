//! Tests of the amount limits of one line and of one service period (billing rules 6).

use billing_domain::catalog::{LineItemPrice, UsagePrice};
use billing_domain::contract::amendment::EffectiveFrom;
use billing_domain::contract::terms::{PaymentTime, Quantities, QuantityStep, RequestedLineItem};
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;
use billing_testkit::fixtures::{date, fixed, fixed_at, line_item_id, per_unit, price, pricing, quantity};

use super::book::{Book, Setup, code, element, from, repriced};

fn upon_usage(unit_price: &str) -> Book {
    let plan = pricing("plan", vec![per_unit("calls", unit_price)]);
    Setup::new().product(plan, |product| product.net_terms = Some(NetTerms::DueUponUsage)).create("2027-01-01")
}

fn after_use(fee: &str, unit_price: &str) -> Book {
    let plan = pricing("plan", vec![fixed("fee", fee), per_unit("calls", unit_price)]);
    Setup::new().product(plan, |_| {}).create("2027-01-01")
}

/// Rating (billing rules 6): 999,999,999,999,999 × 20.00 is 2 × 10^18 minor units, above 10^15.
#[test]
fn an_event_whose_line_is_above_the_limit_is_refused() {
    let mut book = upon_usage("20.00");
    for day in ["2027-01-10", "2027-02-10", "2027-03-10", "2027-04-10", "2027-05-10"] {
        book.go_to(day);
        let refusal = book.try_event("calls", day, "999999999999999").expect_err("above the limit");
        assert_eq!(code(&refusal), "amount_out_of_range");
        assert_eq!(book.documents(), [""; 0], "nothing is stored");
    }
}

/// Rating (billing rules 6): 10^13 × 1.00 is 10^15 minor units, which is allowed. One cent more isn't.
#[test]
fn a_line_of_the_limit_is_billed_and_one_cent_more_is_refused() {
    let mut book = after_use("0", "1");
    let event = book.event("2027-01-10", "10000000000000");
    assert_eq!(book.documents(), ["INV-1 10000000000000.00 DRAFT"]);
    let refusal = book.try_event("calls", "2027-01-11", "0.01").expect_err("above the limit");
    assert_eq!(code(&refusal), "amount_out_of_range");
    let refusal = book.update_event(event, None, Some("10000000000000.01")).expect_err("above the limit");
    assert_eq!(code(&refusal), "amount_out_of_range");
    book.update_event(event, None, Some("9999999999999.99")).expect("a lower amount");
    book.delete_event(event).expect("a lower amount");
    assert_eq!(book.documents(), ["INV-1 0.00 DRAFT"]);
}

/// Rating (billing rules 6): no document exceeds 6 × 10^14 minor units, but the service period's sum would be 1.2 ×
/// 10^15.
#[test]
fn the_sum_of_a_periods_children_is_limited_as_one_line_is() {
    let mut book = upon_usage("1");
    let first = book.event("2027-01-10", "6000000000000");
    let refusal = book.try_event("calls", "2027-01-11", "6000000000000").expect_err("above the limit");
    assert_eq!(code(&refusal), "amount_out_of_range");
    book.delete_event(first).expect("a lower amount");
    book.event("2027-01-11", "6000000000000");
    book.event("2027-02-11", "6000000000000");
}

/// Rating (billing rules 6): the sum of a product's lines in one service period includes fixed items.
#[test]
fn fee_and_usage_of_a_period_together_are_limited() {
    let seats = fixed_at("seats", UsagePrice::PerUnit { unit_price: price("6000") });
    let mut agreed = RequestedLineItem::plain(line_item_id("seats"));
    let step = QuantityStep { from: date("2027-01-01"), quantity: quantity("1000000000") };
    agreed.quantities = Quantities::new(vec![step]).ok();
    let mut book = Setup::new()
        .product(pricing("plan", vec![seats, per_unit("calls", "1")]), |product| {
            product.line_items = Some(vec![agreed, RequestedLineItem::plain(line_item_id("calls"))]);
        })
        .create("2027-01-01");
    book.event("2027-01-10", "4000000000000");
    assert_eq!(book.documents(), ["INV-1 10000000000000.00 DRAFT"]);
    let refusal = book.try_event("calls", "2027-01-11", "0.01").expect_err("above the limit");
    assert_eq!(code(&refusal), "amount_out_of_range");
    let refusal = book.charge("more", "2027-01-12", "0.01", false).expect_err("above the limit");
    assert_eq!(code(&refusal), "amount_out_of_range");
    book.charge("less", "2027-01-12", "-0.01", false).expect("a lower amount");
}

/// Rating (billing rules 6): an edit that raises a period above the limit is refused. An edit that lowers the amount is
/// accepted.
#[test]
fn an_edit_that_puts_a_period_above_the_limit_is_refused() {
    let mut book = after_use("0", "1");
    book.event("2027-01-10", "10000000000000");
    let items = |unit_price| Patch::Set(vec![repriced("calls", unit_price)]);
    let dearer = element("plan", |plan| plan.line_items = items("1.01"));
    let refusal = book.edit(EffectiveFrom::CurrentPeriod, vec![dearer]).expect_err("above the limit");
    assert_eq!(code(&refusal), "amount_out_of_range");
    let cheaper = element("plan", |plan| plan.line_items = items("0.5"));
    book.edit(from("2027-01-01"), vec![cheaper]).expect("a lower amount");
    assert_eq!(book.documents(), ["INV-1 5000000000000.00 DRAFT"]);
}

/// Rules 6: the line of a prepaid quantity is limited, too, and it follows from the terms alone.
#[test]
fn a_prepaid_quantity_above_the_limit_is_refused_with_its_terms() {
    let create = |prepaid: &str| {
        let mut calls = per_unit("calls", "1");
        if let LineItemPrice::Usage(charge) = &mut calls.charge {
            charge.prepaid_quantity = Some(quantity(prepaid));
        }
        let setup =
            Setup::new().product(pricing("plan", vec![calls]), |product| product.payment_time = Some(PaymentTime::BeforeUse));
        setup.try_create("2027-01-01").err().map(|refusal| code(&refusal))
    };
    assert_eq!(create("10000000000000"), None);
    assert_eq!(create("10000000000000.01"), Some("amount_out_of_range"));
}

/// Rating (billing rules 6): sums over documents need no limit. The test bills 12 documents of 10^15 minor units each,
/// with 100 % tax.
#[test]
fn totals_over_periods_are_not_limited() {
    let plan = pricing("plan", vec![per_unit("calls", "1")]);
    let tax = billing_testkit::fixtures::percent("100");
    let mut book = Setup::new().product(plan, |product| product.tax = Some(tax)).create("2027-01-01");
    let months = ["01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12"];
    for month in months {
        book.go_to(&format!("2027-{month}-10")).event(&format!("2027-{month}-10"), "10000000000000");
    }
    book.run("2028-01-01");
    assert_eq!(book.owed(), "240000000000000.00");
}
