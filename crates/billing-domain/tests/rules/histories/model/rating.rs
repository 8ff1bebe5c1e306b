//! Prices (billing rules 6) in whole numbers. Raw amounts are ten-millionths of a currency's unit.

use crate::histories::spec::{PriceModel, TierSpec, UsageSpec};

/// Raw amounts per unit of a currency. Prices have four decimals, quantities three.
const RAW: i128 = 10_000_000;
/// Raw amounts per unit of a price.
const PER_PRICE: i128 = 1_000;

/// The billed days and the days of the whole period.
pub(crate) type Share = (i64, i64);

pub(crate) fn exponent(currency: &str) -> u32 {
    match currency {
        "JPY" => 0,
        "EUR" => 2,
        "KWD" => 3,
        other => panic!("{other} is not in the histories"),
    }
}

/// Rounds a ratio, half away from zero.
pub(crate) fn round_ratio(numerator: i128, denominator: i128) -> i64 {
    let sign = numerator.signum() * denominator.signum();
    let (size, denominator) = (numerator.abs(), denominator.abs());
    let rounded = (2 * size + denominator) / (2 * denominator);
    i64::try_from(sign * rounded).expect("a small amount")
}

fn round(raw: i128, of: i64, currency: &str) -> i64 {
    round_ratio(raw * 10i128.pow(exponent(currency)), RAW * i128::from(of))
}

/// Returns the amount of a charge.
pub(crate) fn charge(price: i64, quantity: u32, currency: &str) -> i64 {
    round(i128::from(price) * i128::from(quantity), 1, currency)
}

/// Returns the net amount after discount.
pub(crate) fn net(discountable: i64, fixed: i64, discount: u32) -> i64 {
    discountable - round_ratio(i128::from(discountable) * i128::from(discount), 10_000) + fixed
}

/// Returns a price in minor units for a share of a period.
pub(crate) fn price(price: u32, (days, of): Share, currency: &str) -> i64 {
    round(i128::from(price) * PER_PRICE * i128::from(days), of, currency)
}

/// Returns the amount of a fixed line item. Quantities are thousandths, each with its number of agreed days.
pub(crate) fn fixed(model: &PriceModel, quantities: &[(u32, i64)], of: i64, currency: &str) -> i64 {
    let raw = quantities.iter().map(|(quantity, days)| unrounded(model, i128::from(*quantity), 0) * i128::from(*days)).sum();
    round(raw, of, currency)
}

/// Returns A(Q) with the period's number of events. Quantities are thousandths.
pub(crate) fn usage(usage: &UsageSpec, q: i128, events: i128, share: Share, currency: &str) -> i64 {
    let q = (q - i128::from(usage.included)).max(0);
    let mut minor = round(unrounded(&usage.price, q, events), 1, currency);
    if let Some(minimum) = usage.minimum {
        minor = minor.max(price(minimum, share, currency));
    }
    if let Some(maximum) = usage.maximum {
        minor = minor.min(price(maximum, (1, 1), currency));
    }
    minor
}

fn unrounded(model: &PriceModel, q: i128, events: i128) -> i128 {
    match model {
        PriceModel::Flat(price) | PriceModel::PerUnit(price) => i128::from(*price) * q,
        PriceModel::Graduated(tiers) => graduated(tiers, q),
        PriceModel::Volume(tiers) => volume(tiers, q),
        PriceModel::Package { size, price } => {
            let size = i128::from(*size);
            (q + size - 1) / size * i128::from(*price) * PER_PRICE
        }
        // Hundredths of a percent of thousandths are ten-millionths.
        PriceModel::Percentage { rate, fixed } => i128::from(*rate) * q + i128::from(*fixed) * events * PER_PRICE,
    }
}

fn bound(tier: &TierSpec) -> i128 {
    tier.up_to.map_or(i128::MAX, i128::from)
}

fn graduated(tiers: &[TierSpec], q: i128) -> i128 {
    let mut from = 0;
    let mut raw = 0;
    for tier in tiers {
        let in_tier = q.min(bound(tier)) - from;
        if in_tier > 0 {
            raw += i128::from(tier.unit) * in_tier + i128::from(tier.flat) * PER_PRICE;
        }
        from = bound(tier);
    }
    raw
}

fn volume(tiers: &[TierSpec], q: i128) -> i128 {
    let mut from = 0;
    for tier in tiers {
        if from < q && q <= bound(tier) {
            return i128::from(tier.unit) * q + i128::from(tier.flat) * PER_PRICE;
        }
        from = bound(tier);
    }
    0
}
