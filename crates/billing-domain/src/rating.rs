//! Rating: the price A(Q) of a period's usage (billing rules 6). Rating depends only on totals, not on documents.
//!
//! Intermediate amounts are exact, however many digits they have. A line is rounded once, at the end.

use rust_decimal::Decimal;

use crate::catalog::{FixedPrice, LineItem, LineItemPrice, PricingContent, Tier, Tiers, UsageCharge, UsagePrice};
use crate::contract::terms::MeteredCharge;
use crate::decimal::{AmountOutOfRange, WideDecimal, exact_add};
use crate::money::{Currency, DayShare, Money, Percentage, Price, round_to_minor};
use crate::quantity::Quantity;
use crate::usage::UsageTotal;

/// The result of rating usage, as a usage line shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RatedUsage {
    /// Q, before the included quantity is subtracted.
    pub quantity: Decimal,
    /// The unit price, if the price model has a single one.
    pub unit_price: Option<Price>,
    /// The tiers that Q reaches, for a tiered price.
    pub tiers: Vec<RatedTier>,
    /// The other factors that give the amount.
    pub factors: UsageFactors,
    /// A(Q), rounded, after minimum and maximum are applied.
    pub amount: Money,
}

/// The factors of a usage price besides Q and the unit price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageFactors {
    /// The included quantity.
    pub included: Decimal,
    /// The quantity billed in advance; zero if there is none.
    pub prepaid: Decimal,
    /// The priced quantity: Q or the prepaid quantity if that is larger, less the included quantity.
    pub billable: Decimal,
    /// The tiers that the priced quantity reaches, with their lower bounds.
    pub tiers: Vec<CalculatedTier>,
    /// The packages, for a price by package.
    pub packages: Option<PackageCalculation>,
    /// The percentage, for a price in percent.
    pub percentage: Option<PercentageCalculation>,
    /// The minimum amount of a whole period, if it raised the amount.
    pub minimum: Option<Price>,
    /// The share of the period that the minimum is prorated by.
    pub share: DayShare,
    /// The maximum amount, if it lowered the amount.
    pub maximum: Option<Price>,
}

/// The part of an amount that one tier contributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RatedTier {
    /// The tier of the pricing.
    pub tier: Tier,
    /// The units that the tier prices.
    pub quantity: WideDecimal,
    /// The unrounded amount of the tier.
    pub amount: WideDecimal,
}

/// A tier that a quantity reaches, with the part of the amount that it contributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalculatedTier {
    /// The quantity above which the tier begins.
    pub from: Decimal,
    /// The largest quantity in the tier; `None` in the last tier.
    pub up_to: Option<Decimal>,
    /// The units that the tier prices.
    pub quantity: WideDecimal,
    /// The price of one unit.
    pub unit_price: Price,
    /// The amount added once when the tier is reached.
    pub flat_amount: Price,
    /// The unrounded amount of the tier.
    pub amount: WideDecimal,
}

impl CalculatedTier {
    /// Returns `unit_price × quantity + flat_amount`.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if a factor is beyond the digits of its type.
    pub fn price(&self) -> Result<WideDecimal, AmountOutOfRange> {
        self.quantity.times(self.unit_price.as_decimal())?.plus(self.flat_amount.as_decimal())
    }
}

/// The packages that a quantity fills, full or partial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackageCalculation {
    /// The number of packages, a whole number.
    pub count: Decimal,
    /// The number of units in a package.
    pub size: Quantity,
    /// The price of a package.
    pub price: Price,
}

impl PackageCalculation {
    /// Returns the packages of a quantity: `⌈quantity ÷ size⌉`.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if exact decimals can't represent the number.
    pub fn of(quantity: Decimal, size: Quantity, price: Price) -> Result<Self, AmountOutOfRange> {
        Ok(Self { count: packages(quantity, size.as_decimal())?, size, price })
    }

    /// Returns `count × price`.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the amount is above the limit of documents.
    pub fn amount(&self) -> Result<WideDecimal, AmountOutOfRange> {
        WideDecimal::from(self.count).times(self.price.as_decimal())
    }

    /// Returns whether these are the packages of a quantity.
    pub fn holds(&self, quantity: Decimal) -> bool {
        packages(quantity, self.size.as_decimal()) == Ok(self.count)
    }
}

/// A percentage of an amount of money, and an amount for each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PercentageCalculation {
    /// The rate in percent.
    pub rate: Percentage,
    /// The amount of money that the rate applies to.
    pub base: Decimal,
    /// The amount added for each event.
    pub fixed_amount: Price,
    /// The number of events.
    pub count: u64,
}

impl PercentageCalculation {
    /// Returns `rate % × base + fixed_amount × count`.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the amount is above the limit of documents.
    pub fn amount(&self) -> Result<WideDecimal, AmountOutOfRange> {
        let of_amount = WideDecimal::from(self.base).times(self.rate.as_decimal())?.times(Decimal::new(1, 2))?;
        of_amount.plus(WideDecimal::from(Decimal::from(self.count)).times(self.fixed_amount.as_decimal())?)
    }
}

/// Whether the minimum amount of a line item applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Minimum {
    /// The minimum applies to the price of a period.
    Applies,
    /// The minimum doesn't apply to a step of an incremental price (billing rules 3).
    Waived,
}

/// Rates the usage of a period: A(Q), or A(max(Q, p)) for a prepaid quantity p.
///
/// # Errors
/// Returns [`AmountOutOfRange`] if the amount is above the limit of documents.
pub fn rate(
    metered: &MeteredCharge,
    usage: &UsageTotal,
    minimum: Minimum,
    share: DayShare,
    currency: Currency,
) -> Result<RatedUsage, AmountOutOfRange> {
    let used = usage.quantity(metered.aggregation);
    let prepaid = metered.charge.prepaid_quantity.map_or(Decimal::ZERO, Quantity::as_decimal);
    let rated = rate_quantity(&metered.charge, used.max(prepaid), usage.events, minimum, share, currency)?;
    Ok(RatedUsage { quantity: used, factors: UsageFactors { prepaid, ..rated.factors }, ..rated })
}

/// Rates the prepaid quantity: A(p). Returns `None` if no quantity is prepaid.
///
/// # Errors
/// Returns [`AmountOutOfRange`] if the amount is above the limit of documents.
pub fn rate_prepaid(
    metered: &MeteredCharge,
    share: DayShare,
    currency: Currency,
) -> Result<Option<RatedUsage>, AmountOutOfRange> {
    let rate = |prepaid: Quantity| {
        let prepaid = prepaid.as_decimal();
        let rated = rate_quantity(&metered.charge, prepaid, 0, Minimum::Applies, share, currency)?;
        Ok(RatedUsage { factors: UsageFactors { prepaid, ..rated.factors }, ..rated })
    };
    metered.charge.prepaid_quantity.map(rate).transpose()
}

/// A line item with its rated amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RatedItem {
    /// The line item of the pricing.
    pub item: LineItem,
    /// The rated amount.
    pub rated: RatedUsage,
}

/// Rates a quantity of a whole period by each usage-based line item, as if a single event had reported the quantity.
///
/// # Errors
/// Returns [`AmountOutOfRange`] if an amount is above the limit of documents.
pub fn rate_pricing(pricing: &PricingContent, quantity: Quantity) -> Result<Vec<RatedItem>, AmountOutOfRange> {
    let of_usage = pricing.line_items.iter().filter_map(|item| match &item.charge {
        LineItemPrice::Usage(charge) => Some((item, charge)),
        LineItemPrice::Fixed { .. } => None,
    });
    let rated = |(item, charge): (&LineItem, &UsageCharge)| {
        let (used, events) = (quantity.as_decimal(), u64::from(quantity > Quantity::ZERO));
        let prepaid = charge.prepaid_quantity.map_or(Decimal::ZERO, Quantity::as_decimal);
        let rated = rate_quantity(charge, used.max(prepaid), events, Minimum::Applies, DayShare::WHOLE, pricing.currency)?;
        let factors = UsageFactors { prepaid, ..rated.factors };
        Ok(RatedItem { item: item.clone(), rated: RatedUsage { quantity: used, factors, ..rated } })
    };
    of_usage.map(rated).collect()
}

fn rate_quantity(
    charge: &UsageCharge,
    quantity: Decimal,
    events: u64,
    minimum: Minimum,
    share: DayShare,
    currency: Currency,
) -> Result<RatedUsage, AmountOutOfRange> {
    let included = charge.included_quantity.as_decimal();
    let billable = exact_add(quantity, -included)?.max(Decimal::ZERO);
    let units = rate_units(&charge.price, billable, events)?;
    // The price can exceed the range of money until the maximum lowers it.
    let mut amount = round_to_minor(units.amount, DayShare::WHOLE, currency)?;
    let (mut raised_to, mut lowered_to) = (None, None);
    if let Some(least) = charge.minimum_amount.filter(|_| minimum == Minimum::Applies) {
        let at_least = round_to_minor(least.as_decimal(), share, currency)?;
        if amount < at_least {
            (amount, raised_to) = (at_least, Some(least));
        }
    }
    if let Some(maximum) = charge.maximum_amount {
        let at_most = round_to_minor(maximum.as_decimal(), DayShare::WHOLE, currency)?;
        if amount > at_most {
            (amount, lowered_to) = (at_most, Some(maximum));
        }
    }
    let amount = Money::round(amount, currency)?;
    let RatedUnits { unit_price, tiers, packages, percentage, amount: _ } = units;
    let factors = UsageFactors {
        included,
        prepaid: Decimal::ZERO,
        billable,
        tiers: tiers.iter().map(|(calculated, _)| *calculated).collect(),
        packages,
        percentage,
        minimum: raised_to,
        share,
        maximum: lowered_to,
    };
    let tiers = tiers.into_iter().map(|(_, tier)| tier).collect();
    Ok(RatedUsage { quantity, unit_price, tiers, factors, amount })
}

/// The unrounded price of units, with its factors.
#[derive(Clone, Debug, Default)]
struct RatedUnits {
    unit_price: Option<Price>,
    tiers: ReachedTiers,
    packages: Option<PackageCalculation>,
    percentage: Option<PercentageCalculation>,
    amount: WideDecimal,
}

/// Reached tiers, with and without their bounds.
type ReachedTiers = Vec<(CalculatedTier, RatedTier)>;

fn rate_units(price: &UsagePrice, billable: Decimal, events: u64) -> Result<RatedUnits, AmountOutOfRange> {
    Ok(match price {
        UsagePrice::PerUnit { unit_price } => {
            let amount = WideDecimal::from(billable).times(unit_price.as_decimal())?;
            RatedUnits { unit_price: Some(*unit_price), amount, ..RatedUnits::default() }
        }
        UsagePrice::Graduated(tiers) => {
            let tiers = graduated(tiers, billable)?;
            RatedUnits { amount: sum(&tiers)?, tiers, ..RatedUnits::default() }
        }
        UsagePrice::Volume(tiers) => {
            let tiers = volume(tiers, billable)?;
            RatedUnits { amount: sum(&tiers)?, tiers, ..RatedUnits::default() }
        }
        UsagePrice::Package { package_size, package_price } => {
            let packages = PackageCalculation::of(billable, *package_size, *package_price)?;
            RatedUnits { amount: packages.amount()?, packages: Some(packages), ..RatedUnits::default() }
        }
        UsagePrice::Percentage { rate, fixed_amount } => {
            let (rate, fixed_amount) = (*rate, *fixed_amount);
            let percentage = PercentageCalculation { rate, base: billable, fixed_amount, count: events };
            RatedUnits { amount: percentage.amount()?, percentage: Some(percentage), ..RatedUnits::default() }
        }
    })
}

/// Quantities and the number of days for which each was agreed, oldest first.
pub type QuantityDays = [(Quantity, u32)];

/// The result of rating agreed quantities, as the line of a fixed item shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RatedFixed {
    /// The price of one unit, if the price model has a single one.
    pub unit_price: Option<Price>,
    /// The quantities in the given order.
    pub shares: Vec<RatedShare>,
    /// The amount, rounded once.
    pub amount: Money,
}

/// The part of a fixed item's amount that one quantity contributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RatedShare {
    /// The quantity.
    pub quantity: Quantity,
    /// The number of days for which it was agreed.
    pub days: u32,
    /// The tiers that it reaches.
    pub tiers: Vec<CalculatedTier>,
    /// The packages, for a price by package.
    pub packages: Option<PackageCalculation>,
    /// The rounded amount of the quantity by itself if these parts add up to the amount, else the difference between the rounded
    /// sums with and without the quantity.
    pub amount: Money,
}

/// Rates agreed quantities: `round(Σ A(quantity) × days ÷ days of the whole period)`, rounded once (billing rules 6).
///
/// # Errors
/// Returns [`AmountOutOfRange`] if the amount is above the limit of documents.
pub fn rate_fixed(
    price: &FixedPrice,
    quantities: &QuantityDays,
    of_days: u32,
    currency: Currency,
) -> Result<Money, AmountOutOfRange> {
    Ok(rate_quantities(price, quantities, of_days, currency)?.amount)
}

/// Does the same as [`rate_fixed`], and returns the factors of the amount.
///
/// # Errors
/// Returns [`AmountOutOfRange`] if the amount is above the limit of documents.
pub fn rate_quantities(
    price: &FixedPrice,
    quantities: &QuantityDays,
    of_days: u32,
    currency: Currency,
) -> Result<RatedFixed, AmountOutOfRange> {
    let mut rated = RatedFixed { unit_price: None, shares: Vec::new(), amount: Money::zero(currency) };
    let one_day = DayShare { days: 1, of: of_days };
    let mut sum = WideDecimal::ZERO;
    let mut alone = Vec::with_capacity(quantities.len());
    for (quantity, days) in quantities {
        let (quantity, days) = (*quantity, *days);
        let units = match price {
            FixedPrice::Flat { amount } => rate_units(&UsagePrice::PerUnit { unit_price: *amount }, quantity.as_decimal(), 0)?,
            FixedPrice::Metered(price) => rate_units(price, quantity.as_decimal(), 0)?,
        };
        let of_quantity = units.amount.times(Decimal::from(days))?;
        alone.push(Money::round_share(of_quantity, one_day, currency)?);
        sum = sum.plus(of_quantity)?;
        let (before, amount) = (rated.amount, Money::round_share(sum, one_day, currency)?);
        rated.amount = amount;
        rated.unit_price = units.unit_price;
        rated.shares.push(RatedShare {
            quantity,
            days,
            tiers: units.tiers.into_iter().map(|(calculated, _)| calculated).collect(),
            packages: units.packages,
            amount: Money::from_minor(amount.minor() - before.minor(), currency),
        });
    }
    // A reader rounds each part by itself.
    if Money::sum(currency, alone.iter().copied()) == Ok(rated.amount) {
        for (share, amount) in rated.shares.iter_mut().zip(alone) {
            share.amount = amount;
        }
    }
    Ok(rated)
}

fn sum(tiers: &[(CalculatedTier, RatedTier)]) -> Result<WideDecimal, AmountOutOfRange> {
    tiers.iter().try_fold(WideDecimal::ZERO, |total, (_, tier)| total.plus(tier.amount))
}

/// Prices each unit by the tier it falls in, and adds the flat amount of each reached tier.
fn graduated(tiers: &Tiers, quantity: Decimal) -> Result<ReachedTiers, AmountOutOfRange> {
    let mut from = Decimal::ZERO;
    let mut rated = Vec::new();
    for tier in tiers.as_slice() {
        if quantity <= from {
            break;
        }
        let to = tier.up_to.map_or(quantity, |up_to| quantity.min(up_to.as_decimal()));
        rated.push(rated_tier(*tier, from, WideDecimal::from(to).plus(-from)?)?);
        from = to;
    }
    Ok(rated)
}

/// Prices all units by the tier that the quantity falls in, and adds the flat amount of that tier.
fn volume(tiers: &Tiers, quantity: Decimal) -> Result<ReachedTiers, AmountOutOfRange> {
    if quantity.is_zero() {
        return Ok(Vec::new());
    }
    let mut from = Decimal::ZERO;
    for tier in tiers.as_slice() {
        match tier.up_to.map(Price::as_decimal).filter(|up_to| quantity > *up_to) {
            Some(up_to) => from = up_to,
            None => return Ok(vec![rated_tier(*tier, from, quantity.into())?]),
        }
    }
    Ok(Vec::new())
}

fn rated_tier(tier: Tier, from: Decimal, quantity: WideDecimal) -> Result<(CalculatedTier, RatedTier), AmountOutOfRange> {
    let Tier { up_to, unit_price, flat_amount } = tier;
    let up_to = up_to.map(Price::as_decimal);
    let mut calculated = CalculatedTier { from, up_to, quantity, unit_price, flat_amount, amount: WideDecimal::ZERO };
    calculated.amount = calculated.price()?;
    Ok((calculated, RatedTier { tier, quantity, amount: calculated.amount }))
}

/// Returns ⌈quantity ÷ size⌉. Integer arithmetic avoids a division that could round.
fn packages(quantity: Decimal, size: Decimal) -> Result<Decimal, AmountOutOfRange> {
    let scale = quantity.scale().max(size.scale());
    let widen = |d: Decimal| {
        10i128.checked_pow(scale - d.scale()).and_then(|factor| d.mantissa().checked_mul(factor)).ok_or(AmountOutOfRange)
    };
    let (quantity, size) = (widen(quantity)?, widen(size)?);
    if size <= 0 {
        return Err(AmountOutOfRange);
    }
    let begun = i128::from(quantity % size != 0);
    Decimal::try_from_i128_with_scale(quantity / size + begun, 0).map_err(|_| AmountOutOfRange)
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use bigdecimal::num_traits::{ToPrimitive as _, Zero as _};
    use bigdecimal::{BigDecimal, RoundingMode};
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::calendar::Timestamp;
    use crate::catalog::{Aggregation, Recurrence};
    use crate::refs::{EventRef, UsageProductRef};
    use crate::usage::CountedEvent;

    fn price(text: &str) -> Price {
        Price::parse(text).expect(text)
    }

    fn eur() -> Currency {
        Currency::from_code("EUR").expect("a currency")
    }

    fn usage(quantities: &[&str]) -> UsageTotal {
        let occurred_at = Timestamp::parse("2026-01-01T00:00:00Z").expect("an instant");
        let service_date = chrono::NaiveDate::MIN;
        quantities.iter().enumerate().fold(UsageTotal::ZERO, |total, (i, quantity)| {
            let event_ref = EventRef::from_uuid(Uuid::from_u128(i as u128 + 1));
            let quantity = Quantity::parse(quantity).expect(quantity);
            total.plus(CountedEvent { event_ref, occurred_at, service_date, quantity, is_distinct: None }).expect("in range")
        })
    }

    fn tiers(rows: &[(Option<&str>, &str, &str)]) -> Tiers {
        let tier = |(up_to, unit_price, flat): &(Option<&str>, &str, &str)| Tier {
            up_to: up_to.map(price),
            unit_price: price(unit_price),
            flat_amount: price(flat),
        };
        Tiers::new(rows.iter().map(tier).collect()).expect("tiers")
    }

    fn metered(usage_price: UsagePrice) -> MeteredCharge {
        MeteredCharge {
            charge: UsageCharge::of(UsageProductRef::parse("calls").expect("a ref"), usage_price),
            unit: None,
            unit_code: crate::codes::UnitCode::ONE,
            aggregation: Aggregation::Sum,
            unique_by: None,
        }
    }

    fn amount(metered: &MeteredCharge, quantities: &[&str]) -> String {
        rate(metered, &usage(quantities), Minimum::Applies, DayShare::WHOLE, eur()).expect("in range").amount.to_string()
    }

    fn three_tiers() -> Tiers {
        tiers(&[(Some("100"), "0.10", "0"), (Some("1000"), "0.05", "0"), (None, "0.01", "0")])
    }

    #[test]
    fn the_worked_numbers_of_billing_rules_6() {
        assert_eq!(amount(&metered(UsagePrice::Graduated(three_tiers())), &["1500"]), "60.00 EUR");
        assert_eq!(amount(&metered(UsagePrice::Volume(three_tiers())), &["1500"]), "15.00 EUR");
        let package =
            UsagePrice::Package { package_size: Quantity::parse("1000").expect("a quantity"), package_price: price("5.00") };
        assert_eq!(amount(&metered(package), &["1001"]), "10.00 EUR");
        assert_eq!(amount(&metered(UsagePrice::PerUnit { unit_price: price("0.0025") }), &["12345"]), "30.86 EUR");
    }

    #[test]
    fn a_tier_holds_its_upper_bound_and_not_its_lower() {
        let flat = tiers(&[(Some("10"), "1", "5"), (None, "0.5", "7")]);
        let rows = [
            ("0", "0.00", "0.00"),
            ("0.5", "5.50", "5.50"),
            ("10", "15.00", "15.00"),
            ("10.01", "22.01", "12.01"),
            ("12", "23.00", "13.00"),
        ];
        for (quantity, graduated, volume) in rows {
            assert_eq!(
                amount(&metered(UsagePrice::Graduated(flat.clone())), &[quantity]),
                format!("{graduated} EUR"),
                "graduated {quantity}"
            );
            assert_eq!(
                amount(&metered(UsagePrice::Volume(flat.clone())), &[quantity]),
                format!("{volume} EUR"),
                "volume {quantity}"
            );
        }
    }

    #[test]
    fn a_pricing_is_rated_by_its_line_items_of_usage_as_a_period_would_be() {
        let line = |text: &str| crate::text::OneLine::parse(text).expect(text);
        let item = |id: &str, charge| LineItem { id: crate::refs::LineItemId::parse(id).expect(id), name: line(id), charge };
        let mut prepaid =
            metered(UsagePrice::Percentage { rate: Percentage::parse("1").expect("percent"), fixed_amount: price("0.25") });
        prepaid.charge.prepaid_quantity = Some(Quantity::parse("2000").expect("a quantity"));
        let flat = FixedPrice::Flat { amount: price("49") };
        let fixed = LineItemPrice::Fixed { price: flat, recurrence: Recurrence::EachPeriod, goods: false };
        let tiers = metered(UsagePrice::Graduated(three_tiers()));
        let line_items = vec![
            item("fee", fixed),
            item("calls", LineItemPrice::Usage(tiers.charge.clone())),
            item("share", LineItemPrice::Usage(prepaid.charge.clone())),
        ];
        let pricing = PricingContent { name: line("Plan"), currency: eur(), minimum_fee: None, line_items };
        for (quantity, calls, share) in
            [("0", "0.00 EUR", "20.00 EUR"), ("1500", "60.00 EUR", "20.25 EUR"), ("3000", "75.00 EUR", "30.25 EUR")]
        {
            let rated = rate_pricing(&pricing, Quantity::parse(quantity).expect(quantity)).expect("in range");
            let shown: Vec<(&str, String)> =
                rated.iter().map(|rated| (rated.item.id.as_str(), rated.rated.amount.to_string())).collect();
            assert_eq!(shown, [("calls", calls.to_owned()), ("share", share.to_owned())], "{quantity}");
            assert_eq!(
                rated[0].rated,
                rate(&tiers, &usage(&[quantity]), Minimum::Applies, DayShare::WHOLE, eur()).expect("in range")
            );
        }
        let huge = Quantity::parse("999999999999999").expect("a quantity");
        let dear = metered(UsagePrice::PerUnit { unit_price: price("999999999.999999999999") });
        let pricing = PricingContent { line_items: vec![item("dear", LineItemPrice::Usage(dear.charge))], ..pricing };
        assert_eq!(rate_pricing(&pricing, huge), Err(AmountOutOfRange));
    }

    #[test]
    fn a_percentage_counts_money_and_events() {
        let fee = UsagePrice::Percentage { rate: Percentage::parse("1.4").expect("percent"), fixed_amount: price("0.25") };
        assert_eq!(amount(&metered(fee), &["100.00", "49.99"]), "2.60 EUR");
    }

    #[test]
    fn included_minimum_and_maximum_apply_in_that_order() {
        let mut charge = metered(UsagePrice::PerUnit { unit_price: price("1") });
        charge.charge.included_quantity = Quantity::parse("10").expect("a quantity");
        charge.charge.minimum_amount = Some(price("5"));
        charge.charge.maximum_amount = Some(price("20"));
        for (quantity, expected) in [("0", "5.00"), ("10", "5.00"), ("12", "5.00"), ("16", "6.00"), ("1000", "20.00")] {
            assert_eq!(amount(&charge, &[quantity]), format!("{expected} EUR"), "{quantity}");
        }
        let half = rate(&charge, &UsageTotal::ZERO, Minimum::Applies, DayShare { days: 15, of: 30 }, eur()).expect("in range");
        assert_eq!(half.amount.to_string(), "2.50 EUR");
    }

    #[test]
    fn every_aggregation_gives_its_own_quantity() {
        let mut charge = metered(UsagePrice::PerUnit { unit_price: price("1") });
        let rows = [
            (Aggregation::Sum, "12.00"),
            (Aggregation::Count, "3.00"),
            (Aggregation::Max, "7.00"),
            (Aggregation::Latest, "4.00"),
        ];
        for (aggregation, expected) in rows {
            charge.aggregation = aggregation;
            assert_eq!(amount(&charge, &["1", "7", "4"]), format!("{expected} EUR"), "{aggregation:?}");
        }
    }

    #[test]
    fn an_amount_that_no_line_can_hold_is_an_error() {
        let charge = metered(UsagePrice::PerUnit { unit_price: price("999999999.999999999999") });
        let huge = rate(&charge, &usage(&["999999999999999.999999999"]), Minimum::Applies, DayShare::WHOLE, eur());
        assert_eq!(huge, Err(AmountOutOfRange));
    }

    /// Draws a number with at most so many digits.
    fn number(integer: u32, fraction: u32) -> impl Strategy<Value = Decimal> {
        (0..=integer + fraction, 0..10i128.pow(integer + fraction), 0..=fraction).prop_map(move |(digits, mantissa, scale)| {
            Decimal::from_i128_with_scale(mantissa % 10i128.pow(digits.min(integer + scale)), scale)
        })
    }

    fn any_price() -> impl Strategy<Value = UsagePrice> {
        let price = |value: Decimal| price(&value.to_string());
        let of = move |fraction| number(9, fraction).prop_map(price);
        let tiers = (proptest::collection::vec((number(9, 12), of(12), of(12)), 0..4), of(12), of(12));
        let tiers = tiers.prop_map(move |(mut rows, unit_price, flat_amount)| {
            rows.sort_by_key(|(bound, _, _)| *bound);
            rows.retain(|(bound, _, _)| !bound.is_zero());
            rows.dedup_by_key(|(bound, _, _)| *bound);
            let first = rows.into_iter().map(|(bound, unit_price, flat_amount)| Tier {
                up_to: Some(price(bound)),
                unit_price,
                flat_amount,
            });
            Tiers::new(first.chain([Tier { up_to: None, unit_price, flat_amount }]).collect()).expect("rising bounds")
        });
        let tiers = tiers.boxed();
        let size = number(15, 9)
            .prop_filter_map("a package has units", |size| Quantity::new(size).ok().filter(|size| *size > Quantity::ZERO));
        let rate = number(2, 6).prop_map(|rate| Percentage::parse(&rate.to_string()).expect("a rate"));
        prop_oneof![
            of(12).prop_map(|unit_price| UsagePrice::PerUnit { unit_price }),
            tiers.clone().prop_map(UsagePrice::Graduated),
            tiers.prop_map(UsagePrice::Volume),
            (size, of(12)).prop_map(|(package_size, package_price)| UsagePrice::Package { package_size, package_price }),
            (rate, of(12)).prop_map(|(rate, fixed_amount)| UsagePrice::Percentage { rate, fixed_amount }),
        ]
    }

    fn big(value: Decimal) -> BigDecimal {
        BigDecimal::from_str(&value.to_string()).expect("a decimal's own text")
    }

    /// Returns the unrounded price of a quantity, with numbers of any length.
    fn naive_price(price: &UsagePrice, quantity: &BigDecimal, events: usize) -> BigDecimal {
        let of_tier =
            |tier: &Tier, quantity: BigDecimal| big(tier.unit_price.as_decimal()) * quantity + big(tier.flat_amount.as_decimal());
        let end =
            |tier: &Tier| tier.up_to.map_or_else(|| quantity.clone(), |up_to| big(up_to.as_decimal()).min(quantity.clone()));
        match price {
            UsagePrice::PerUnit { unit_price } => big(unit_price.as_decimal()) * quantity,
            UsagePrice::Graduated(tiers) => {
                let (mut from, mut sum) = (BigDecimal::zero(), BigDecimal::zero());
                for tier in tiers.as_slice().iter().filter(|_| !quantity.is_zero()) {
                    let to = end(tier);
                    if to > from {
                        sum += of_tier(tier, &to - &from);
                    }
                    from = to;
                }
                sum
            }
            UsagePrice::Volume(tiers) => {
                let holds = |tier: &&Tier| tier.up_to.is_none_or(|up_to| *quantity <= big(up_to.as_decimal()));
                let tier = tiers.as_slice().iter().find(holds).filter(|_| !quantity.is_zero());
                tier.map_or_else(BigDecimal::zero, |tier| of_tier(tier, quantity.clone()))
            }
            UsagePrice::Package { package_size, package_price } => {
                let (full, rest) = (quantity / big(package_size.as_decimal()), quantity % big(package_size.as_decimal()));
                let full = full.with_scale_round(0, RoundingMode::Down);
                let count = if rest.is_zero() { full } else { full + 1 };
                count * big(package_price.as_decimal())
            }
            UsagePrice::Percentage { rate, fixed_amount } => {
                let events = BigDecimal::from(u64::try_from(events).expect("few events"));
                big(rate.as_decimal()) * quantity / 100 + big(fixed_amount.as_decimal()) * events
            }
        }
    }

    fn any_tiers() -> impl Strategy<Value = Tiers> {
        proptest::collection::vec((1u32..500, 0u32..10_000, 0u32..500), 1..6).prop_map(|rows| {
            let mut bound = 0;
            let last = rows.len() - 1;
            let tier = |(i, (step, unit, flat)): (usize, (u32, u32, u32))| {
                bound += step;
                Tier {
                    up_to: (i < last).then(|| price(&bound.to_string())),
                    unit_price: price(&Decimal::new(i64::from(unit), 4).to_string()),
                    flat_amount: price(&Decimal::new(i64::from(flat), 2).to_string()),
                }
            };
            Tiers::new(rows.into_iter().enumerate().map(tier).collect()).expect("rising bounds")
        })
    }

    proptest! {
        #[test]
        fn graduated_prices_never_fall_with_more_usage(tiers in any_tiers(), a in 0u32..4_000, b in 0u32..4_000) {
            let charge = metered(UsagePrice::Graduated(tiers));
            let at = |q: u32| rate(&charge, &usage(&[&q.to_string()]), Minimum::Applies, DayShare::WHOLE, eur()).expect("in range").amount.minor();
            prop_assert!(at(a.min(b)) <= at(a.max(b)));
        }

        #[test]
        fn the_tiers_shown_make_the_amount(tiers in any_tiers(), q in 0u32..4_000) {
            for price in [UsagePrice::Graduated(tiers.clone()), UsagePrice::Volume(tiers)] {
                let rated = rate(&metered(price), &usage(&[&q.to_string()]), Minimum::Applies, DayShare::WHOLE, eur()).expect("in range");
                let sum = |of: fn(&RatedTier) -> WideDecimal| {
                    rated.tiers.iter().try_fold(WideDecimal::ZERO, |sum, tier| sum.plus(of(tier))).expect("in range")
                };
                prop_assert_eq!(sum(|tier| tier.quantity), Decimal::from(q).into());
                prop_assert_eq!(Money::round(sum(|tier| tier.amount), eur()), Ok(rated.amount));
            }
        }

        #[test]
        fn prices_are_exact_however_many_digits_they_have(
            price in any_price(),
            quantities in proptest::collection::vec(number(15, 9), 0..4),
            included in number(15, 9),
            maximum in proptest::option::of(number(9, 12)),
        ) {
            let quantities: Vec<String> = quantities.iter().map(ToString::to_string).collect();
            let mut charge = metered(price.clone());
            charge.charge.included_quantity = Quantity::new(included).expect("a quantity");
            charge.charge.maximum_amount = maximum.map(|maximum| self::price(&maximum.to_string()));
            let texts: Vec<&str> = quantities.iter().map(String::as_str).collect();
            let rated = rate(&charge, &usage(&texts), Minimum::Applies, DayShare::WHOLE, eur());
            let used = quantities.iter().fold(BigDecimal::zero(), |sum, quantity| sum + BigDecimal::from_str(quantity).expect("a number"));
            let billable = (used - big(included)).max(BigDecimal::zero());
            let cents = |amount: BigDecimal| (amount * BigDecimal::from(100)).with_scale_round(0, RoundingMode::HalfUp);
            let mut expected = cents(naive_price(&price, &billable, quantities.len()));
            if let Some(maximum) = maximum {
                expected = expected.min(cents(big(maximum)));
            }
            prop_assert_eq!(rated.ok().map(|rated| rated.amount.minor()), expected.to_i64());
        }
    }
}
