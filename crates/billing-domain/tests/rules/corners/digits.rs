//! Tests of quantities and prices with all the digits that they may have (billing rules 6).

use billing_domain::catalog::{Aggregation, UsagePrice};
use billing_domain::contract::terms::{Quantities, QuantityStep, RequestedLineItem};
use billing_domain::decimal::AmountOutOfRange;
use billing_domain::money::{Currency, Money};
use billing_domain::party::NetTerms;
use billing_domain::simulate::{Prices, Simulation, graduated, package, per_unit, percentage, terms, volume};
use billing_domain::tax::{ExchangeRate, TaxInCurrency};
use billing_testkit::fixtures::{self, date, fixed_at, line_item_id, price, pricing, quantity};

use super::book::{Book, Setup, code};

/// A book whose calls cost a twelfth each, to twelve decimals.
fn twelfths(net_terms: NetTerms) -> Book {
    let plan = pricing("plan", vec![fixtures::per_unit("calls", "0.083333333333")]);
    Setup::new().product(plan, |product| product.net_terms = Some(net_terms)).create("2027-01-01")
}

/// The product of a quantity and a price needs more than 28 digits, and more than 96 bits.
#[test]
fn usage_is_counted_however_many_digits_its_price_has() {
    for net_terms in [NetTerms::Days(30), NetTerms::DueUponUsage] {
        let mut book = twelfths(net_terms);
        book.event("2027-01-10", "900000000.123456789");
        let second = book.event("2027-01-10", "99999999.876543211");
        book.event("2027-01-10", "60000000");
        let fourth = book.event("2027-01-10", "0.000000001");
        let fifth = book.event("2027-01-10", "3.141592653");
        book.update_event(fifth, None, Some("0.000000012")).expect("a lower amount");
        book.update_event(fourth, None, Some("123456789012.345678901")).expect("an amount below the limit");
        book.update_event(fourth, None, Some("0.000000001")).expect("a lower amount");
        book.delete_event(fifth).expect("a lower amount");
        book.delete_event(second).expect("a lower amount");
        // 960,000,000.12345679 × 0.083333333333 = 80,000,000.0099680658…
        book.run("2027-02-01");
        assert_eq!(book.owed(), "80000000.01", "{net_terms:?}");
    }
}

/// Returns the amount and the printed steps of January's usage at a price.
fn used(price: Prices, quantities: &[&str]) -> (String, Vec<String>) {
    let mut story = Simulation::new().contract(terms("2027-01-01", "2027-01-31").usage("calls", price));
    for quantity in quantities {
        story = story.event("2027-01-20", "calls", *quantity);
    }
    let bill = story.until(fixtures::at("2027-02-02T12:00:00Z")).unwrap_or_else(|refusal| panic!("{refusal}"));
    let invoice = bill.document("UB-INV-1");
    let line = invoice.line("calls").details();
    line.check(invoice.kind()).expect("the factors give the amount");
    let steps = line.calculation.as_ref().expect("a calculation").steps(line.amount.currency());
    (line.amount.to_decimal().to_string(), steps.iter().map(|step| step.in_english("")).collect())
}

#[test]
fn every_price_model_keeps_all_digits_of_its_factors() {
    let most = "999999999999999.999999999";
    let tiers = [(Some("0.000000000001"), "999999999.999999999999"), (None, "0.000000000009")];
    let rows: [(Prices, &[&str], &str, &[&str]); 7] = [
        (
            per_unit("0.009999999999"),
            &[most],
            "9999999999000.00",
            &["999,999,999,999,999.999999999 × 0.009999999999 = 9,999,999,998,999.999999999990000000001"],
        ),
        (
            graduated(tiers),
            &[most],
            "9000.00",
            &[
                "0.000000000001 × 999999999.999999999999 = 0.000999999999999999999999",
                "999,999,999,999,999.999999998999 × 0.000000000009 = 8,999.999999999999999999990991",
            ],
        ),
        (volume(tiers), &[most], "9000.00", &["999,999,999,999,999.999999999 × 0.000000000009 = 8,999.999999999999999999991"]),
        (
            package("0.000000007", "0.000000000003"),
            &["2333333333333.333333332"],
            "1000000000.00",
            &["333,333,333,333,333,333,334 × 0.000000007 at 0.000000000003 = 1,000,000,000.000000000002"],
        ),
        (
            percentage("0.123457", "999999.999999999999"),
            &[most, "0.000000001"],
            "1234572000000.00",
            &["0.123457 % of 1,000,000,000,000,000 + 2 × 999999.999999999999 = 1,234,571,999,999.999999999998"],
        ),
        // The price before the maximum is 10^24.
        (
            per_unit("999999999.999999999999").at_most("100"),
            &[most],
            "100.00",
            &[
                "999,999,999,999,999.999999999 × 999999999.999999999999 = 999,999,999,999,999,999,998,999.000000000000000000001",
                "maximum 100: 100.00",
            ],
        ),
        // Eleven events of the largest quantity.
        (
            per_unit("0.000000000001").included("0.000000001"),
            &[most; 11],
            "11000.00",
            &[
                "10,999,999,999,999,999.999999989, 0.000000001 included, 10,999,999,999,999,999.999999988 billed",
                "10,999,999,999,999,999.999999988 × 0.000000000001 = 10,999.999999999999999999988",
            ],
        ),
    ];
    for (price, quantities, amount, expected) in rows {
        let (billed, steps) = used(price, quantities);
        assert_eq!((billed.as_str(), steps), (amount, expected.iter().map(ToString::to_string).collect()), "{quantities:?}");
    }
}

/// Only the limit of documents refuses usage, however many digits a price has.
#[test]
fn usage_above_the_limit_is_refused_and_what_lowers_it_is_not() {
    let mut book = twelfths(NetTerms::Days(30));
    let event = book.event("2027-01-10", "120000000000000.123456789");
    let refusal = book.try_event("calls", "2027-01-11", "600000000.123456789").expect_err("above the limit");
    assert_eq!(code(&refusal), "amount_out_of_range");
    book.event("2027-01-11", "0.000000001");
    book.update_event(event, None, Some("119999999999999.987654321")).expect("a lower amount");
    book.delete_event(event).expect("a lower amount");
    assert_eq!(book.documents(), ["INV-1 0.00 DRAFT"]);
}

#[test]
fn a_maximum_counts_usage_that_no_line_could_hold() {
    for aggregation in [Aggregation::Sum, Aggregation::Max, Aggregation::Latest, Aggregation::Count] {
        let mut capped = fixtures::per_unit("calls", "999999999.999999999999");
        if let billing_domain::catalog::LineItemPrice::Usage(charge) = &mut capped.charge {
            charge.maximum_amount = Some(price("100"));
        }
        let story = Simulation::new()
            .pricing(capped_list(capped, aggregation))
            .contract(terms("2027-01-01", "2027-01-31").pricing("plan"))
            .event("2027-01-20", "calls", "999999999999999.999999999")
            .event("2027-01-21", "calls", "999999999999999.999999998");
        let bill = story.until(fixtures::at("2027-02-02T12:00:00Z")).unwrap_or_else(|refusal| panic!("{refusal}"));
        assert_eq!(bill.document("UB-INV-1").total().to_string(), "100.00 EUR", "{aggregation:?}");
    }
}

fn capped_list(item: billing_domain::catalog::LineItem, aggregation: Aggregation) -> billing_domain::simulate::PriceList {
    let plan = pricing("plan", vec![item]);
    let mut products = fixtures::products_of(&plan);
    for product in &mut products {
        product.profile.aggregation = aggregation;
    }
    billing_domain::simulate::PriceList::of(plan, products)
}

/// 15 of 31 days of 12,345,678,901.234567891 seats and 16 of 31 days of 9,876,543,210.987654321 seats.
#[test]
fn seats_with_all_digits_are_prorated_exactly() {
    let seats = fixed_at("seats", UsagePrice::PerUnit { unit_price: price("0.987654321098") });
    let mut agreed = RequestedLineItem::plain(line_item_id("seats"));
    let step = |from: &str, seats: &str| QuantityStep { from: date(from), quantity: quantity(seats) };
    agreed.quantities =
        Quantities::new(vec![step("2027-01-01", "12345678901.234567891"), step("2027-01-16", "9876543210.987654321")]).ok();
    let mut book = Setup::new()
        .product(pricing("plan", vec![seats]), |product| product.line_items = Some(vec![agreed]))
        .create("2027-01-01");
    book.run("2027-02-01");
    assert_eq!(book.owed(), "10934603741.38");
}

#[test]
fn charges_and_conversions_keep_all_digits() {
    let mut book = twelfths(NetTerms::Days(30));
    book.event("2027-01-10", "1");
    let eur = Currency::from_code("EUR").expect("a currency");
    let pln = Currency::from_code("PLN").expect("a currency");
    let rate = |rate: &str| ExchangeRate { from: eur, to: pln, date: date("2027-01-01"), rate: price(rate) };
    let tax = Money::from_minor(1_000_000_000_000_001, eur);
    let converted = TaxInCurrency::of([tax], rate("4.123456789012")).expect("an amount");
    assert_eq!(converted.total.to_string(), "41234567890120.04 PLN");
    assert_eq!(TaxInCurrency::of([tax], rate("999999999")), Err(AmountOutOfRange.into()));
}
