//! Prices (billing rules 6) in whole numbers. Raw prices have twelve decimals, raw quantities nine, and raw amounts both.

use ethnum::I256;

use crate::histories::spec::{Amount, FINE, Price, PriceModel, SignedPrice, TierSpec, UsageSpec};

/// An amount above the limit of documents, and of any amount that the model has to add up.
const MOST: i64 = 100_000_000_000_000_000;

/// Returns a whole number.
pub(crate) fn whole(number: impl Into<i128>) -> I256 {
    I256::from(number.into())
}

fn ten(power: u32) -> I256 {
    whole(10).pow(power)
}

/// Returns a price in units of its twelfth decimal.
fn raw_price(price: Price) -> I256 {
    price.checked_sub(FINE).unwrap_or_else(|| price * 100_000_000).into()
}

/// Returns a quantity in units of its ninth decimal.
pub(crate) fn raw_quantity(quantity: Amount) -> I256 {
    quantity.checked_sub(FINE).unwrap_or_else(|| quantity * 1_000_000).into()
}

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

/// Rounds a ratio, half away from zero. Amounts above the limit of documents become [`MOST`].
pub(crate) fn round_wide(numerator: I256, denominator: I256) -> i64 {
    let sign = numerator.signum() * denominator.signum();
    let (size, denominator) = (numerator.abs(), denominator.abs());
    let rounded = (whole(2) * size + denominator) / (whole(2) * denominator);
    i64::try_from(sign * rounded.min(whole(MOST))).expect("a small amount")
}

/// Rounds a ratio, half away from zero.
pub(crate) fn round_ratio(numerator: i128, denominator: i128) -> i64 {
    round_wide(whole(numerator), whole(denominator))
}

fn round(raw: I256, of: i64, currency: &str) -> i64 {
    round_wide(raw * ten(exponent(currency)), ten(21) * whole(of))
}

/// Returns the amount of a charge.
pub(crate) fn charge(price: SignedPrice, quantity: Amount, currency: &str) -> i64 {
    round(raw_price(price.unsigned_abs()) * whole(price.signum()) * raw_quantity(quantity), 1, currency)
}

/// Returns the net amount after discount.
pub(crate) fn net(discountable: i64, fixed: i64, discount: u32) -> i64 {
    discountable - round_ratio(i128::from(discountable) * i128::from(discount), 10_000) + fixed
}

/// Returns a price in minor units for a share of a period.
pub(crate) fn price(price: Price, (days, of): Share, currency: &str) -> i64 {
    round(raw_price(price) * ten(9) * whole(days), of, currency)
}

/// Returns the amount of a fixed line item. Each quantity has its number of agreed days.
pub(crate) fn fixed(model: &PriceModel, quantities: &[(Amount, i64)], of: i64, currency: &str) -> i64 {
    let raw = quantities.iter().map(|(quantity, days)| unrounded(model, raw_quantity(*quantity), 0) * whole(*days)).sum();
    round(raw, of, currency)
}

/// Returns A(Q) for a raw quantity, with the period's number of events.
pub(crate) fn usage(usage: &UsageSpec, q: I256, events: i128, share: Share, currency: &str) -> i64 {
    let q = (q - raw_quantity(usage.included)).max(I256::ZERO);
    let mut minor = round(unrounded(&usage.price, q, events), 1, currency);
    if let Some(minimum) = usage.minimum {
        minor = minor.max(price(minimum, share, currency));
    }
    if let Some(maximum) = usage.maximum {
        minor = minor.min(price(maximum, (1, 1), currency));
    }
    minor
}

fn unrounded(model: &PriceModel, q: I256, events: i128) -> I256 {
    match model {
        PriceModel::Flat(price) | PriceModel::PerUnit(price) => raw_price(*price) * q,
        PriceModel::Graduated(tiers) => graduated(tiers, q),
        PriceModel::Volume(tiers) => volume(tiers, q),
        PriceModel::Package { size, price } => {
            let size = raw_quantity(*size);
            (q + size - I256::ONE) / size * raw_price(*price) * ten(9)
        }
        // A hundredth of a percent of a raw quantity has 13 decimals.
        PriceModel::Percentage { rate, fixed } => whole(*rate) * q * ten(8) + raw_price(*fixed) * whole(events) * ten(9),
    }
}

fn bound(tier: &TierSpec) -> I256 {
    tier.up_to.map_or(I256::MAX, raw_quantity)
}

fn price_of_tier(tier: &TierSpec, q: I256) -> I256 {
    raw_price(tier.unit) * q + raw_price(tier.flat) * ten(9)
}

fn graduated(tiers: &[TierSpec], q: I256) -> I256 {
    let mut from = I256::ZERO;
    let mut raw = I256::ZERO;
    for tier in tiers {
        let in_tier = q.min(bound(tier)) - from;
        if in_tier > I256::ZERO {
            raw += price_of_tier(tier, in_tier);
        }
        from = bound(tier);
    }
    raw
}

fn volume(tiers: &[TierSpec], q: I256) -> I256 {
    let mut from = I256::ZERO;
    for tier in tiers {
        if from < q && q <= bound(tier) {
            return price_of_tier(tier, q);
        }
        from = bound(tier);
    }
    I256::ZERO
}
