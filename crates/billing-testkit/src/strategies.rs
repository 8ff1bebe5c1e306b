//! Property-test strategies for values that several crates need.

use billing_domain::calendar::plus_days;
use billing_domain::catalog::{Tier, Tiers, UsagePrice};
use billing_domain::contract::schedule::{BillingCycle, BillingSchedule, CycleUnit};
use billing_domain::money::{Currency, Percentage, Price};
use billing_domain::quantity::Quantity;
use proptest::option;
use proptest::prelude::*;
use rust_decimal::Decimal;

use crate::fixtures;

/// Generates decimal numbers as text, with up to the given integer and fractional digits. The text never ends in a point.
fn decimal_text(integer_digits: u32, fraction_digits: u32) -> impl Strategy<Value = String> {
    (0..=integer_digits, 0..=fraction_digits).prop_flat_map(|(integer, fraction)| {
        let bound = 10i128.pow(integer + fraction);
        (0..bound, Just(fraction)).prop_map(|(mantissa, scale)| Decimal::from_i128_with_scale(mantissa, scale).to_string())
    })
}

/// Generates all quantities that an event may have. Small and large quantities are equally likely.
pub fn quantity() -> impl Strategy<Value = Quantity> {
    decimal_text(15, 9).prop_map(|text| fixtures::quantity(&text))
}

/// Generates typical quantities: up to 100,000 with up to three decimals.
pub fn small_quantity() -> impl Strategy<Value = Quantity> {
    decimal_text(5, 3).prop_map(|text| fixtures::quantity(&text))
}

/// Generates all prices. Small and large prices are equally likely.
pub fn price() -> impl Strategy<Value = Price> {
    decimal_text(9, 12).prop_map(|text| fixtures::price(&text))
}

/// Generates typical prices: up to 1,000 with up to four decimals.
pub fn small_price() -> impl Strategy<Value = Price> {
    decimal_text(3, 4).prop_map(|text| fixtures::price(&text))
}

/// Generates all percentages, including 0 and 100.
pub fn percentage() -> impl Strategy<Value = Percentage> {
    let any = (0..=100_000_000i64).prop_map(|millionths| Decimal::new(millionths, 6).normalize().to_string());
    prop_oneof![1 => Just("0".to_owned()), 1 => Just("100".to_owned()), 8 => any].prop_map(|text| fixtures::percent(&text))
}

/// Generates currencies with 0, 2 and 3 digits after the point.
pub fn currency() -> impl Strategy<Value = Currency> {
    prop_oneof![Just("JPY"), Just("EUR"), Just("KWD")].prop_map(fixtures::currency)
}

/// Generates one to five tiers with typical numbers.
pub fn tiers() -> impl Strategy<Value = Tiers> {
    prop::collection::vec((1u32..500, small_price(), small_price()), 1..6).prop_map(|rows| {
        let last = rows.len() - 1;
        let mut bound = 0;
        let tier = |(i, (step, unit_price, flat_amount)): (usize, (u32, Price, Price))| {
            bound += step;
            Tier { up_to: (i < last).then(|| fixtures::price(&bound.to_string())), unit_price, flat_amount }
        };
        Tiers::new(rows.into_iter().enumerate().map(tier).collect()).expect("rising bounds")
    })
}

/// Generates all price models with typical numbers.
pub fn usage_price() -> impl Strategy<Value = UsagePrice> {
    let package = (1u32..1_000, small_price()).prop_map(|(size, package_price)| UsagePrice::Package {
        package_size: fixtures::quantity(&size.to_string()),
        package_price,
    });
    prop_oneof![
        small_price().prop_map(|unit_price| UsagePrice::PerUnit { unit_price }),
        tiers().prop_map(UsagePrice::Graduated),
        tiers().prop_map(UsagePrice::Volume),
        package,
        (percentage(), small_price()).prop_map(|(rate, fixed_amount)| UsagePrice::Percentage { rate, fixed_amount }),
    ]
}

/// Generates billing cycles of up to fourteen units.
pub fn cycle() -> impl Strategy<Value = BillingCycle> {
    let unit =
        prop_oneof![Just(CycleUnit::OneTime), Just(CycleUnit::Monthly), Just(CycleUnit::Quarterly), Just(CycleUnit::Yearly)];
    (unit, 1u16..15).prop_map(|(unit, count)| BillingCycle::new(unit, count).expect("a cycle"))
}

/// Generates schedules of up to about five years between 1990 and 2088, with and without an issue day.
pub fn schedule() -> impl Strategy<Value = BillingSchedule> {
    (0u32..36_000, 1u32..2_000, cycle(), option::of(any::<u32>())).prop_map(|(from, days, cycle, issue)| {
        let first = plus_days(fixtures::date("1990-01-01"), from);
        let issue_day = issue.map(|offset| plus_days(first, offset % (days + 1)));
        BillingSchedule::new(first, plus_days(first, days - 1), cycle, issue_day).expect("a schedule")
    })
}
