//! Money in whole minor units of one currency. Amounts are rounded only by functions that say so, half away from zero.
//!
//! Prices are separate types: decimals that keep the digits they were given.

use std::fmt;

use rust_decimal::Decimal;
use thiserror::Error;

pub use crate::decimal::AmountOutOfRange;
use crate::decimal::{DecimalError, Digits, WideDecimal};

/// An ISO 4217 currency with a defined number of minor-unit digits, including zero (JPY). Metals and test codes are excluded.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency {
    iso: iso_currency::Currency,
    exponent: u8,
}

/// The error for text that isn't the code of a supported currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be an ISO 4217 currency code such as EUR")]
pub struct UnknownCurrency;

/// Orders currencies by code.
impl Ord for Currency {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.code().cmp(other.code())
    }
}

impl PartialOrd for Currency {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl std::str::FromStr for Currency {
    type Err = UnknownCurrency;

    fn from_str(code: &str) -> Result<Self, UnknownCurrency> {
        Self::from_code(code)
    }
}

impl Currency {
    /// Returns the currency of a three-letter code in upper case.
    ///
    /// # Errors
    /// Returns [`UnknownCurrency`] for any other text.
    pub fn from_code(code: &str) -> Result<Self, UnknownCurrency> {
        let iso = iso_currency::Currency::from_code(code).filter(|c| c.code() == code).ok_or(UnknownCurrency)?;
        let exponent = iso.exponent().and_then(|e| u8::try_from(e).ok()).ok_or(UnknownCurrency)?;
        Ok(Self { iso, exponent })
    }

    /// Returns the three-letter code.
    pub fn code(self) -> &'static str {
        self.iso.code()
    }

    /// Returns the number of digits after the decimal point: EUR 2, JPY 0, KWD 3.
    pub const fn exponent(self) -> u32 {
        self.exponent as u32
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// An amount of money in minor units.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Money {
    minor: i64,
    currency: Currency,
}

/// An error of money arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MoneyError {
    /// The result is outside the range of the type.
    #[error(transparent)]
    OutOfRange(#[from] AmountOutOfRange),
    /// The amounts have different currencies. A document or an account has a single currency, so this error is a defect, not a
    /// client error.
    #[error("an amount in {0} meets one in {1}")]
    TwoCurrencies(Currency, Currency),
}

/// The prorated share of a period: `days` of `of` days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayShare {
    /// The number of billed days.
    pub days: u32,
    /// The number of days in the whole period; never zero.
    pub of: u32,
}

impl DayShare {
    /// The whole period.
    pub const WHOLE: Self = Self { days: 1, of: 1 };
}

impl Money {
    /// Returns a zero amount.
    pub const fn zero(currency: Currency) -> Self {
        Self { minor: 0, currency }
    }

    /// Creates an amount from whole minor units.
    pub const fn from_minor(minor: i64, currency: Currency) -> Self {
        Self { minor, currency }
    }

    /// Returns the amount in whole minor units.
    pub const fn minor(self) -> i64 {
        self.minor
    }

    /// Returns the currency.
    pub const fn currency(self) -> Currency {
        self.currency
    }

    /// Rounds an exact amount half away from zero to the currency's exponent.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the result exceeds 64-bit minor units.
    pub fn round(amount: impl Into<WideDecimal>, currency: Currency) -> Result<Self, AmountOutOfRange> {
        Self::round_share(amount, DayShare::WHOLE, currency)
    }

    /// Calculates `amount × days ÷ of` and rounds it once, half away from zero (billing rules 1.5).
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the result exceeds 64-bit minor units.
    pub fn round_share(amount: impl Into<WideDecimal>, share: DayShare, currency: Currency) -> Result<Self, AmountOutOfRange> {
        Self::of_minor(round_to_minor(amount, share, currency)?, currency)
    }

    /// Returns `rate` percent of this amount, rounded half away from zero (billing rules 6).
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the result exceeds 64-bit minor units.
    pub fn percent(self, rate: Percentage) -> Result<Self, AmountOutOfRange> {
        Self::of_minor(WideDecimal::from(self).ratio(rate.0, Decimal::ONE_HUNDRED, self.currency.exponent())?, self.currency)
    }

    /// Converts an amount with the currency's exponent as the scale.
    fn of_minor(rounded: WideDecimal, currency: Currency) -> Result<Self, AmountOutOfRange> {
        Ok(Self { minor: rounded.units().ok_or(AmountOutOfRange)?, currency })
    }

    /// Adds two amounts.
    ///
    /// # Errors
    /// Returns a [`MoneyError`] on overflow or if the currencies differ.
    pub fn checked_add(self, other: Self) -> Result<Self, MoneyError> {
        self.with(other, i64::checked_add)
    }

    /// Subtracts an amount.
    ///
    /// # Errors
    /// Returns a [`MoneyError`] on overflow or if the currencies differ.
    pub fn checked_sub(self, other: Self) -> Result<Self, MoneyError> {
        self.with(other, i64::checked_sub)
    }

    fn with(self, other: Self, combine: fn(i64, i64) -> Option<i64>) -> Result<Self, MoneyError> {
        if self.currency != other.currency {
            return Err(MoneyError::TwoCurrencies(self.currency, other.currency));
        }
        let minor = combine(self.minor, other.minor).ok_or(AmountOutOfRange)?;
        Ok(Self { minor, ..self })
    }

    /// Adds amounts of one currency.
    ///
    /// # Errors
    /// Returns a [`MoneyError`] on overflow or if the currencies differ.
    pub fn sum(currency: Currency, amounts: impl IntoIterator<Item = Self>) -> Result<Self, MoneyError> {
        amounts.into_iter().try_fold(Self::zero(currency), Self::checked_add)
    }

    /// Returns the amount in whole units, with the currency's exponent as the scale: 30.86, never 30.9 or 30.860.
    pub fn to_decimal(self) -> Decimal {
        Decimal::from_i128_with_scale(i128::from(self.minor), self.currency.exponent())
    }
}

/// Calculates `amount × days ÷ of` and rounds it once, half away from zero, to the currency's exponent. The result may exceed the
/// range of [`Money`].
///
/// # Errors
/// Returns [`AmountOutOfRange`] if the amount is beyond the digits of its type.
pub(crate) fn round_to_minor(
    amount: impl Into<WideDecimal>,
    share: DayShare,
    currency: Currency,
) -> Result<WideDecimal, AmountOutOfRange> {
    amount.into().ratio(Decimal::from(share.days), Decimal::from(share.of), currency.exponent())
}

impl From<Money> for WideDecimal {
    fn from(amount: Money) -> Self {
        amount.to_decimal().into()
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.to_decimal(), self.currency)
    }
}

impl fmt::Debug for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A sum of amounts of one currency over any number of documents. Its range is larger than that of [`Money`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MoneySum {
    minor: i128,
    currency: Currency,
}

/// The largest absolute sum in minor units: 2^96 - 1, the largest mantissa of a decimal.
const MAX_SUM: u128 = (1 << 96) - 1;

impl MoneySum {
    /// Returns a zero sum.
    pub const fn zero(currency: Currency) -> Self {
        Self { minor: 0, currency }
    }

    /// Creates a sum from whole minor units.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the value exceeds 96 bits.
    pub const fn from_minor(minor: i128, currency: Currency) -> Result<Self, AmountOutOfRange> {
        if minor.unsigned_abs() > MAX_SUM { Err(AmountOutOfRange) } else { Ok(Self { minor, currency }) }
    }

    /// Returns the sum in whole minor units.
    pub const fn minor(self) -> i128 {
        self.minor
    }

    /// Returns the currency.
    pub const fn currency(self) -> Currency {
        self.currency
    }

    /// Adds an amount or another sum.
    ///
    /// # Errors
    /// Returns a [`MoneyError`] if the result exceeds 96 bits or the currencies differ.
    pub fn checked_add(self, other: impl Into<Self>) -> Result<Self, MoneyError> {
        let other = other.into();
        self.with(other.currency, self.minor.checked_add(other.minor))
    }

    /// Subtracts an amount or another sum.
    ///
    /// # Errors
    /// Returns a [`MoneyError`] if the result exceeds 96 bits or the currencies differ.
    pub fn checked_sub(self, other: impl Into<Self>) -> Result<Self, MoneyError> {
        let other = other.into();
        self.with(other.currency, self.minor.checked_sub(other.minor))
    }

    fn with(self, other: Currency, minor: Option<i128>) -> Result<Self, MoneyError> {
        if self.currency != other {
            return Err(MoneyError::TwoCurrencies(self.currency, other));
        }
        Ok(Self::from_minor(minor.ok_or(AmountOutOfRange)?, self.currency)?)
    }

    /// Adds amounts of one currency.
    ///
    /// # Errors
    /// Returns a [`MoneyError`] if the result exceeds 96 bits or the currencies differ.
    pub fn of(currency: Currency, amounts: impl IntoIterator<Item = Money>) -> Result<Self, MoneyError> {
        amounts.into_iter().try_fold(Self::zero(currency), Self::checked_add)
    }

    /// Returns the sum in whole units, with the currency's exponent as the scale.
    pub fn to_decimal(self) -> Decimal {
        Decimal::from_i128_with_scale(self.minor, self.currency.exponent())
    }
}

impl From<Money> for MoneySum {
    fn from(amount: Money) -> Self {
        Self { minor: i128::from(amount.minor), currency: amount.currency }
    }
}

impl fmt::Display for MoneySum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.to_decimal(), self.currency)
    }
}

impl fmt::Debug for MoneySum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A percentage from 0 to 100 with at most six decimals, for taxes, discounts and percentage prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percentage(Decimal);

impl Percentage {
    /// Zero percent.
    pub const ZERO: Self = Self(Decimal::ZERO);

    /// Parses a percentage.
    ///
    /// # Errors
    /// Returns a [`DecimalError`] that names the violated limit.
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        let value = Digits { integer: 3, fraction: 6 }.parse(text)?;
        if value < Decimal::ZERO || value > Decimal::ONE_HUNDRED {
            return Err(DecimalError::OutOfRange { low: 0, high: 100 });
        }
        Ok(Self(value))
    }

    /// Returns the value in percent.
    pub const fn as_decimal(self) -> Decimal {
        self.0
    }
}

const PRICE_DIGITS: Digits = Digits { integer: 9, fraction: 12 };

/// A price or the bound of a tier: at least zero, with at most 9 integer and 12 fractional digits (billing rules 6). It keeps
/// the digits it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Price(Decimal);

impl Price {
    /// The zero price.
    pub const ZERO: Self = Self(Decimal::ZERO);

    /// Parses a price.
    ///
    /// # Errors
    /// Returns a [`DecimalError`] that names the violated limit.
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        let value = PRICE_DIGITS.parse(text)?;
        if value < Decimal::ZERO { Err(DecimalError::Negative) } else { Ok(Self(value)) }
    }

    /// Returns the price as a decimal.
    pub const fn as_decimal(self) -> Decimal {
        self.0
    }
}

/// The unit price of a charge. It has the digits of a [`Price`] and may be negative (billing rules 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SignedPrice(Decimal);

impl From<Price> for SignedPrice {
    fn from(price: Price) -> Self {
        Self(price.0)
    }
}

impl std::ops::Neg for SignedPrice {
    type Output = Self;

    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl SignedPrice {
    /// Parses a price.
    ///
    /// # Errors
    /// Returns a [`DecimalError`] that names the violated limit.
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        PRICE_DIGITS.parse(text).map(Self)
    }

    /// Returns the price as a decimal.
    pub const fn as_decimal(self) -> Decimal {
        self.0
    }
}

from_str!(Percentage: DecimalError, Price: DecimalError, SignedPrice: DecimalError);

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use proptest::prelude::*;

    use super::*;

    fn eur() -> Currency {
        Currency::from_code("EUR").expect("a currency")
    }

    fn dec(text: &str) -> Decimal {
        Decimal::from_str_exact(text).expect("a decimal")
    }

    #[test]
    fn currencies_have_their_iso_exponent() {
        for (code, exponent) in [("EUR", 2), ("USD", 2), ("JPY", 0), ("KWD", 3), ("CLF", 4)] {
            assert_eq!(Currency::from_code(code).expect(code).exponent(), exponent, "{code}");
        }
        for bad in ["", "eur", "EU", "EURO", "XXX", "XAU", "ABC"] {
            assert_eq!(Currency::from_code(bad), Err(UnknownCurrency), "{bad}");
        }
    }

    #[test]
    fn rounding_goes_half_away_from_zero() {
        let rows = [
            ("30.8625", "30.86"),
            ("0.005", "0.01"),
            ("-0.005", "-0.01"),
            ("0.0049999", "0.00"),
            ("2.675", "2.68"),
            ("-2.675", "-2.68"),
            ("1", "1.00"),
        ];
        for (raw, rounded) in rows {
            assert_eq!(Money::round(dec(raw), eur()).expect(raw).to_decimal().to_string(), rounded);
        }
        let yen = Currency::from_code("JPY").expect("a currency");
        assert_eq!(Money::round(dec("0.5"), yen).expect("yen").to_decimal().to_string(), "1");
        assert_eq!(Money::round(dec("92233720368547758.08"), eur()), Err(AmountOutOfRange));
        assert!(Money::round(dec("92233720368547758.07"), eur()).is_ok());
    }

    #[test]
    fn a_share_of_a_price_is_rounded_once() {
        let share = DayShare { days: 17, of: 31 };
        assert_eq!(Money::round_share(dec("100"), share, eur()).expect("money").to_string(), "54.84 EUR");
    }

    #[test]
    fn money_of_two_currencies_does_not_add() {
        let usd = Money::zero(Currency::from_code("USD").expect("a currency"));
        let eur = Money::zero(eur());
        for sum in [eur.checked_add(usd), eur.checked_sub(usd), Money::sum(eur.currency(), [eur, usd])] {
            assert_eq!(sum, Err(MoneyError::TwoCurrencies(eur.currency(), usd.currency())));
        }
    }

    #[test]
    fn a_sum_holds_what_an_amount_cannot() {
        let most = Money::from_minor(i64::MAX, eur());
        let sum = MoneySum::of(eur(), [most; 1_000]).expect("a sum");
        assert_eq!(sum.to_string(), "92233720368547758070.00 EUR");
        assert_eq!(sum.checked_sub(most).and_then(|rest| rest.checked_add(most)), Ok(sum));
        assert_eq!(MoneySum::from(most).minor(), i128::from(i64::MAX));
        assert_eq!(MoneySum::from_minor(-(1 << 96), eur()), Err(AmountOutOfRange));
        let last = MoneySum::from_minor((1 << 96) - 1, eur()).expect("the largest sum");
        assert_eq!(last.to_decimal().mantissa(), last.minor());
        assert_eq!(last.checked_add(Money::from_minor(1, eur())), Err(AmountOutOfRange.into()));
        let usd = Currency::from_code("USD").expect("a currency");
        assert_eq!(sum.checked_add(Money::zero(usd)), Err(MoneyError::TwoCurrencies(eur(), usd)));
    }

    #[test]
    fn percentages_and_prices_have_their_limits() {
        assert!(Percentage::parse("100").is_ok());
        assert_eq!(Percentage::parse("100.000001"), Err(DecimalError::OutOfRange { low: 0, high: 100 }));
        assert_eq!(Percentage::parse("-1"), Err(DecimalError::OutOfRange { low: 0, high: 100 }));
        assert_eq!(Percentage::parse("7.1234567"), Err(DecimalError::TooManyDigits { integer: 3, fraction: 6 }));
        assert_eq!(Price::parse("0.10").expect("a price").as_decimal().to_string(), "0.10");
        assert_eq!(Price::parse("-0.1"), Err(DecimalError::Negative));
        assert!(Price::parse("1000000000").is_err());
    }

    proptest! {
        #[test]
        fn rounding_is_never_off_by_more_than_half_a_cent(mantissa in any::<i64>(), scale in 2u32..12) {
            let raw = Decimal::from_i128_with_scale(i128::from(mantissa), scale);
            let money = Money::round(raw, eur()).expect("in range");
            let off = (money.to_decimal() - raw).abs();
            prop_assert!(off <= Decimal::from_str("0.005").expect("a decimal"));
        }
    }
}
