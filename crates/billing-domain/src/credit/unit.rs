//! Units in which credit is shown beside money. Money decides; no amount is calculated from units.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::decimal::Decimal;
use crate::money::{Currency, Price};
use crate::text::OneLine;

/// The maximum number of currencies in which an entity has a unit.
pub const MAX_CREDIT_UNITS: usize = 20;

/// The number of decimals to which units are rounded down.
const UNIT_DECIMALS: u32 = 2;
/// The largest mantissa of a decimal.
const MAX_MANTISSA: i128 = (1 << 96) - 1;

/// A unit of credit in one currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreditUnit {
    /// The name, such as `credits`.
    pub name: OneLine,
    /// The price of one unit, above zero.
    pub per_unit: Price,
}

impl CreditUnit {
    /// Returns amounts of money in units.
    pub fn convert<const N: usize>(&self, amounts: [Decimal; N]) -> UnitAmounts<N> {
        UnitAmounts { name: self.name.clone(), amounts: amounts.map(|amount| self.units(amount)) }
    }

    /// Returns an amount of money in units, rounded towards zero to 2 decimals: nobody is shown more than there is. The number has no
    /// trailing zeros. A number beyond the digits of a decimal is shown as the largest one.
    pub fn units(&self, amount: Decimal) -> Decimal {
        // A single division of integers. The numerator has at most 22 digits of money, 2 of units and 12 of a price.
        let price = self.per_unit.as_decimal();
        let scaled = |value: i128, digits: u32| value.saturating_mul(10_i128.saturating_pow(digits));
        let numerator = scaled(amount.mantissa(), UNIT_DECIMALS.saturating_add(price.scale()));
        let units = numerator.checked_div(scaled(price.mantissa(), amount.scale())).unwrap_or(0);
        Decimal::from_i128_with_scale(units.clamp(-MAX_MANTISSA, MAX_MANTISSA), UNIT_DECIMALS).normalize()
    }
}

/// Amounts of prepaid credit in units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitAmounts<const N: usize> {
    /// The name of the unit.
    pub name: OneLine,
    /// The numbers of units.
    pub amounts: [Decimal; N],
}

/// An error of the units of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CreditUnitsError {
    /// There are more than [`MAX_CREDIT_UNITS`] currencies.
    #[error("must have at most {MAX_CREDIT_UNITS} currencies")]
    TooMany,
    /// The price of a unit is zero.
    #[error("must have prices of units above zero")]
    Free,
}

/// The units of an entity, by currency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreditUnits(BTreeMap<Currency, CreditUnit>);

impl CreditUnits {
    /// Creates the units of an entity after checking their limits. Of equal currencies, the last one counts.
    ///
    /// # Errors
    /// Returns a [`CreditUnitsError`] for the first violation.
    pub fn new(units: impl IntoIterator<Item = (Currency, CreditUnit)>) -> Result<Self, CreditUnitsError> {
        let units = BTreeMap::from_iter(units);
        if units.values().any(|unit| unit.per_unit == Price::ZERO) {
            return Err(CreditUnitsError::Free);
        }
        if units.len() > MAX_CREDIT_UNITS { Err(CreditUnitsError::TooMany) } else { Ok(Self(units)) }
    }

    /// Returns the unit of a currency.
    pub fn of(&self, currency: Currency) -> Option<&CreditUnit> {
        self.0.get(&currency)
    }

    /// Returns the units, ordered by the code of the currency.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (Currency, &CreditUnit)> {
        self.0.iter().map(|(currency, unit)| (*currency, unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::Money;

    fn unit(per_unit: &str) -> CreditUnit {
        let name = OneLine::parse("credits").expect("a name");
        CreditUnit { name, per_unit: Price::parse(per_unit).expect("a price") }
    }

    fn units(per_unit: &str, currency: &str, minor: i64) -> String {
        let currency = Currency::from_code(currency).expect("a currency");
        unit(per_unit).units(Money::from_minor(minor, currency).to_decimal()).to_string()
    }

    #[test]
    fn units_are_the_amount_divided_by_the_price_and_rounded_towards_zero() {
        for (per_unit, currency, minor, shown) in [
            ("0.01", "EUR", 6_400, "6400"),
            ("0.010", "EUR", 1, "1"),
            ("0.03", "EUR", 200, "66.66"),
            ("0.03", "EUR", -200, "-66.66"),
            ("0.03", "EUR", 0, "0"),
            ("7", "EUR", 1_000, "1.42"),
            ("7", "EUR", 6, "0"),
            ("7", "EUR", -6, "0"),
            ("0.8", "EUR", 100, "1.25"),
            ("0.6", "EUR", 120, "2"),
            ("3", "JPY", 1_000, "333.33"),
            ("0.5", "JPY", -1_001, "-2002"),
            ("0.015", "KWD", 1_000, "66.66"),
            ("0.001", "KWD", -1, "-1"),
        ] {
            assert_eq!(units(per_unit, currency, minor), shown, "{minor} {currency} at {per_unit}");
        }
    }

    #[test]
    fn units_of_the_largest_amounts_and_smallest_prices_are_numbers() {
        assert_eq!(units("0.000001", "JPY", i64::MAX), "9223372036854775807000000");
        assert_eq!(units("0.000000000001", "EUR", i64::MIN), "-792281625142643375935439503.35");
        assert_eq!(units("999999999.999999999999", "KWD", i64::MAX), "9223372.03");
        assert_eq!(unit("0").units(Decimal::ONE), Decimal::ZERO);
    }

    #[test]
    fn an_entity_has_a_unit_for_each_of_at_most_twenty_currencies() {
        let codes = [
            "AED", "AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HUF", "INR", "JPY", "KWD", "MXN", "NOK",
            "NZD", "PLN", "SEK", "SGD", "USD",
        ];
        let all = codes.map(|code| (Currency::from_code(code).expect("a currency"), unit("1")));
        assert_eq!(CreditUnits::new(all.clone()), Err(CreditUnitsError::TooMany));
        let [first, others @ ..] = all;
        let units = CreditUnits::new(others).expect("twenty units");
        assert_eq!((units.of(first.0), units.entries().len()), (None, MAX_CREDIT_UNITS));
        assert_eq!(CreditUnits::new([(first.0, unit("0.000"))]), Err(CreditUnitsError::Free));
    }
}
