//! Exact decimals: parsing, digit limits, and arithmetic that is exact or fails.
//!
//! Rounding is only in [`money`](crate::money) and [`Digits::parse_rounded`].

use std::fmt;

use ethnum::I256;
pub use rust_decimal::Decimal;
use thiserror::Error;

/// The maximum length of a decimal text in characters. Longer texts can't be within any limit of the API.
const MAX_DECIMAL_CHARS: usize = 64;
/// The maximum absolute exponent.
const MAX_EXPONENT: i32 = 40;
/// The maximum absolute exponent of a number that is rounded. A number with a smaller exponent is read as with this one, because it
/// is zero when it is rounded.
const MAX_ROUNDED_EXPONENT: i32 = 1_000;

/// An error of a decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecimalError {
    /// The text isn't a number in JSON's grammar.
    #[error("must be a decimal number such as 12.5")]
    NotANumber,
    /// The number is negative where the field doesn't allow it.
    #[error("must not be negative")]
    Negative,
    /// The number is zero where the field doesn't allow it.
    #[error("must be greater than zero")]
    Zero,
    /// The number has more digits than the field allows.
    #[error("must have at most {integer} integer and {fraction} fractional digits")]
    TooManyDigits {
        /// The maximum number of integer digits.
        integer: u32,
        /// The maximum number of fractional digits.
        fraction: u32,
    },
    /// The number has more integer digits than the field allows, or its text is too long. Its fractional digits would be rounded.
    #[error("must have at most {integer} integer digits, and {MAX_DECIMAL_CHARS} characters in all")]
    TooLarge {
        /// The maximum number of integer digits.
        integer: u32,
    },
    /// The number is outside the range of the field.
    #[error("must be between {low} and {high}")]
    OutOfRange {
        /// The smallest allowed value.
        low: u32,
        /// The largest allowed value.
        high: u32,
    },
}

/// The error for an amount above the limit of documents, or for more usage in a period than 19 integer digits
/// (`amount_out_of_range`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an amount would exceed 10^15 minor units, or the usage of a period 10^19: use a smaller quantity or price")]
pub struct AmountOutOfRange;

/// The maximum number of digits of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits {
    /// The maximum number of integer digits.
    pub integer: u32,
    /// The maximum number of fractional digits.
    pub fraction: u32,
}

impl Digits {
    /// Parses a decimal in JSON's number grammar without rounding. The original digits are preserved. Trailing zeros beyond the
    /// limit are dropped.
    ///
    /// # Errors
    /// Returns [`DecimalError::NotANumber`] or [`DecimalError::TooManyDigits`].
    pub fn parse(self, text: &str) -> Result<Decimal, DecimalError> {
        let too_many = DecimalError::TooManyDigits { integer: self.integer, fraction: self.fraction };
        let Some(parts) = split(text, MAX_EXPONENT) else { return Err(DecimalError::NotANumber) };
        let Parts { negative, digits, scale } = parts.ok_or(too_many)?;
        let digits = digits.trim_start_matches('0');
        let kept = digits.trim_end_matches('0');
        if kept.is_empty() {
            return Ok(Decimal::ZERO);
        }
        // Trailing zeros are preserved up to the field's limit: 1.50 stays 1.50.
        let zeros = i32::try_from(digits.len() - kept.len()).map_err(|_| too_many)?;
        let limit = i32::try_from(self.fraction).map_err(|_| too_many)?;
        let cut = (scale - limit).clamp(0, zeros);
        let scale = scale - cut;
        let pad = usize::try_from((-scale).max(0)).map_err(|_| too_many)?;
        let cut = usize::try_from(cut).map_err(|_| too_many)?;
        let mut mantissa = digits[..digits.len() - cut].to_owned();
        mantissa.extend(std::iter::repeat_n('0', pad));
        let scale = u32::try_from(scale.max(0)).map_err(|_| too_many)?;
        if scale > self.fraction || mantissa.len() as u64 > u64::from(scale) + u64::from(self.integer) {
            return Err(too_many);
        }
        let mantissa: i128 = mantissa.parse().map_err(|_| too_many)?;
        let value = Decimal::try_from_i128_with_scale(mantissa, scale).map_err(|_| too_many)?;
        Ok(if negative { -value } else { value })
    }

    /// Parses a decimal like [`parse`](Self::parse), but rounds further fractional digits half away from zero. A rounded value has
    /// no trailing zeros.
    ///
    /// # Errors
    /// Returns [`DecimalError::NotANumber`] or [`DecimalError::TooLarge`].
    pub fn parse_rounded(self, text: &str) -> Result<Decimal, DecimalError> {
        let too_large = DecimalError::TooLarge { integer: self.integer };
        match self.parse(text) {
            Err(DecimalError::TooManyDigits { .. }) => {}
            parsed => return parsed,
        }
        let Some(Some(Parts { negative, digits, scale })) = split(text, MAX_ROUNDED_EXPONENT) else { return Err(too_large) };
        let digits = digits.trim_start_matches('0');
        let limit = i32::try_from(self.fraction).map_err(|_| too_large)?;
        if scale <= limit {
            return if digits.is_empty() { Ok(Decimal::ZERO) } else { Err(too_large) };
        }
        // Negative if the number is less than a tenth of the last digit.
        let kept = i64::try_from(digits.len()).map_err(|_| too_large)? - i64::from(scale - limit);
        let Ok(kept) = usize::try_from(kept) else { return Ok(Decimal::ZERO) };
        let is_rounded_up = digits.as_bytes().get(kept).is_some_and(|digit| *digit >= b'5');
        let mantissa: i128 = if kept == 0 { 0 } else { digits[..kept].parse().map_err(|_| too_large)? };
        let mantissa = mantissa + i128::from(is_rounded_up);
        let value = Decimal::try_from_i128_with_scale(mantissa, self.fraction).map_err(|_| too_large)?.normalize();
        if !self.hold(value) {
            return Err(too_large);
        }
        Ok(if negative && !value.is_zero() { -value } else { value })
    }

    /// Returns whether a value is within these digits.
    pub fn hold(self, value: Decimal) -> bool {
        let value = value.normalize();
        value.scale() <= self.fraction
            && 10i128.checked_pow(self.integer).is_none_or(|bound| value.trunc().mantissa().abs() < bound)
    }
}

struct Parts<'a> {
    negative: bool,
    digits: std::borrow::Cow<'a, str>,
    /// The number of fractional digits. A negative value is the number of zeros to append.
    scale: i32,
}

/// Splits a number into its parts. Returns `None` if the text isn't a number, and `Some(None)` if the number is far outside any
/// limit.
fn split(text: &str, max_exponent: i32) -> Option<Option<Parts<'_>>> {
    let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (number, exponent) = match rest.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (rest, None),
    };
    let (integer, fraction) = match number.split_once('.') {
        Some((integer, fraction)) => (integer, Some(fraction)),
        None => (number, None),
    };
    let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let integer_ok = all_digits(integer) && (integer == "0" || !integer.starts_with('0'));
    if !integer_ok || fraction.is_some_and(|f| !all_digits(f)) {
        return None;
    }
    let shift = match exponent {
        None => 0,
        Some(text) => {
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            if !all_digits(digits) {
                return None;
            }
            match text.parse::<i32>() {
                Ok(n) if n.unsigned_abs() <= max_exponent.unsigned_abs() => n,
                _ if max_exponent == MAX_ROUNDED_EXPONENT && text.starts_with('-') => -max_exponent,
                _ => return Some(None),
            }
        }
    };
    if text.len() > MAX_DECIMAL_CHARS {
        return Some(None);
    }
    let fraction = fraction.unwrap_or("");
    let digits = if fraction.is_empty() { integer.into() } else { format!("{integer}{fraction}").into() };
    let scale = i32::try_from(fraction.len()).ok()? - shift;
    Some(Some(Parts { negative, digits, scale }))
}

/// Multiplies exactly. The multiplication of [`Decimal`] silently rounds beyond 28 digits.
///
/// # Errors
/// Returns [`AmountOutOfRange`] if the product needs more than 96 bits or 28 fractional digits.
pub fn exact_mul(a: Decimal, b: Decimal) -> Result<Decimal, AmountOutOfRange> {
    WideDecimal::from(a).times(b)?.to_decimal()
}

/// Adds exactly. The addition of [`Decimal`] drops fractional digits if the mantissa overflows.
///
/// # Errors
/// Returns [`AmountOutOfRange`] if the sum needs more digits than a [`Decimal`] has.
pub fn exact_add(a: Decimal, b: Decimal) -> Result<Decimal, AmountOutOfRange> {
    WideDecimal::from(a).plus(b)?.to_decimal()
}

/// The exact result of a calculation, in 256 bits. Quantities, prices and rates are [`Decimal`]s of at most 28 digits, and their
/// products have up to 63: 19 + 9 digits of usage, 9 + 12 of a price, 10 of a number of days and 4 of a currency's minor unit.
///
/// A number keeps its fractional digits: 1.50 stays 1.50, and equals 1.5.
#[derive(Clone, Copy, Default)]
pub struct WideDecimal {
    mantissa: I256,
    /// The number of fractional digits, at most [`MAX_WIDE_SCALE`].
    scale: u32,
}

/// The maximum number of fractional digits of a [`WideDecimal`]. Ten to its power has less than 255 bits.
const MAX_WIDE_SCALE: u32 = 76;

impl WideDecimal {
    /// Zero.
    pub const ZERO: Self = Self { mantissa: I256::ZERO, scale: 0 };

    /// Parses the text of [`Display`](fmt::Display). Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (integer, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let scale = u32::try_from(fraction.len()).ok().filter(|scale| *scale <= MAX_WIDE_SCALE)?;
        let mantissa = I256::from_str_radix(&format!("{integer}{fraction}"), 10).ok()?;
        let value = Self { mantissa: if unsigned == text { mantissa } else { -mantissa }, scale };
        (value.to_string() == text).then_some(value)
    }

    /// Returns the value as a decimal of at most 28 digits.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the value needs more than 96 bits or 28 fractional digits.
    pub fn to_decimal(self) -> Result<Decimal, AmountOutOfRange> {
        let mantissa = i128::try_from(self.mantissa).map_err(|_| AmountOutOfRange)?;
        Decimal::try_from_i128_with_scale(mantissa, self.scale).map_err(|_| AmountOutOfRange)
    }

    /// Multiplies. The product has no trailing zeros.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the product needs more than 255 bits or 76 fractional digits.
    pub fn times(self, factor: impl Into<Self>) -> Result<Self, AmountOutOfRange> {
        let (a, b) = (self.normalized(), factor.into().normalized());
        let mantissa = a.mantissa.checked_mul(b.mantissa).ok_or(AmountOutOfRange)?;
        let product = Self { mantissa, scale: a.scale + b.scale }.normalized();
        if product.scale <= MAX_WIDE_SCALE { Ok(product) } else { Err(AmountOutOfRange) }
    }

    /// Adds. The sum has the fractional digits of the operand with more of them.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the sum needs more than 255 bits.
    pub fn plus(self, other: impl Into<Self>) -> Result<Self, AmountOutOfRange> {
        let other = other.into();
        let scale = self.scale.max(other.scale);
        let sum = self.mantissa_at(scale).zip(other.mantissa_at(scale)).and_then(|(a, b)| a.checked_add(b));
        Ok(Self { mantissa: sum.ok_or(AmountOutOfRange)?, scale })
    }

    /// Returns `self × factor ÷ divisor`, rounded once to a number of fractional digits, half away from zero.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the divisor is zero or an intermediate value needs more than 255 bits.
    pub(crate) fn ratio(self, factor: impl Into<Self>, divisor: impl Into<Self>, digits: u32) -> Result<Self, AmountOutOfRange> {
        let (factor, divisor) = (factor.into(), divisor.into());
        // A single fraction of integers avoids intermediate rounding.
        let (up, down) = (digits + divisor.scale, self.scale + factor.scale);
        let product = self.mantissa.checked_mul(factor.mantissa);
        let (numerator, denominator) =
            (scaled(product, up.saturating_sub(down)), scaled(Some(divisor.mantissa), down.saturating_sub(up)));
        let (numerator, denominator) = numerator.zip(denominator).ok_or(AmountOutOfRange)?;
        let quotient = numerator.checked_div(denominator).ok_or(AmountOutOfRange)?;
        let twice_rest = (numerator - quotient * denominator).checked_mul(I256::from(2)).ok_or(AmountOutOfRange)?;
        let is_rounded_up = twice_rest.unsigned_abs() >= denominator.unsigned_abs();
        let away = if is_rounded_up { numerator.signum() * denominator.signum() } else { I256::ZERO };
        Ok(Self { mantissa: quotient + away, scale: digits })
    }

    /// Returns the value in units of its last fractional digit, if 64 bits hold it.
    pub(crate) fn units(self) -> Option<i64> {
        i64::try_from(self.mantissa).ok()
    }

    /// Returns the value without trailing zeros.
    #[must_use]
    fn normalized(self) -> Self {
        let Self { mut mantissa, mut scale } = self;
        let ten = I256::from(10);
        if mantissa == I256::ZERO {
            return Self::ZERO;
        }
        while scale > 0 && mantissa % ten == I256::ZERO {
            mantissa /= ten;
            scale -= 1;
        }
        Self { mantissa, scale }
    }

    /// Returns the mantissa with more fractional digits; `None` if that needs more than 255 bits.
    fn mantissa_at(self, scale: u32) -> Option<I256> {
        scaled(Some(self.mantissa), scale - self.scale)
    }
}

/// Multiplies by a power of ten; `None` if that needs more than 255 bits.
fn scaled(mantissa: Option<I256>, digits: u32) -> Option<I256> {
    match digits {
        0 => mantissa,
        digits => mantissa?.checked_mul(I256::from(10).checked_pow(digits)?),
    }
}

impl From<Decimal> for WideDecimal {
    fn from(value: Decimal) -> Self {
        Self { mantissa: value.mantissa().into(), scale: value.scale() }
    }
}

/// Orders by value, whatever the number of fractional digits.
impl Ord for WideDecimal {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // The integer parts are compared first, so that no power of ten overflows.
        let scale = self.scale.max(other.scale);
        let parts = |value: &Self| {
            let one = I256::from(10).pow(value.scale);
            let fraction = Self { mantissa: value.mantissa % one, scale: value.scale };
            (value.mantissa / one, fraction.mantissa_at(scale))
        };
        if self.scale == other.scale { self.mantissa.cmp(&other.mantissa) } else { parts(self).cmp(&parts(other)) }
    }
}

impl PartialOrd for WideDecimal {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for WideDecimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for WideDecimal {}

/// Writes all digits, without an exponent.
impl fmt::Display for WideDecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.mantissa.is_negative() { "-" } else { "" };
        // The digits of small numbers are written faster.
        let digits = match u128::try_from(self.mantissa.unsigned_abs()) {
            Ok(small) => small.to_string(),
            Err(_) => self.mantissa.unsigned_abs().to_string(),
        };
        match usize::try_from(self.scale) {
            Ok(scale) if scale > 0 => {
                let digits = format!("{digits:0>width$}", width = scale + 1);
                let (integer, fraction) = digits.split_at(digits.len() - scale);
                write!(f, "{sign}{integer}.{fraction}")
            }
            _ => write!(f, "{sign}{digits}"),
        }
    }
}

impl fmt::Debug for WideDecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use bigdecimal::BigDecimal;
    use proptest::prelude::*;

    use super::*;

    const QUANTITY: Digits = Digits { integer: 15, fraction: 9 };

    #[test]
    fn digits_survive_exactly_or_are_refused() {
        let rows = [
            ("0", Some("0")),
            ("-0", Some("0")),
            ("0.1", Some("0.1")),
            ("1.50", Some("1.50")),
            ("12345678901234.000001", Some("12345678901234.000001")),
            ("1e3", Some("1000")),
            ("1.25E-2", Some("0.0125")),
            ("999999999999999.999999999", Some("999999999999999.999999999")),
            ("1.0000000000000", Some("1.000000000")),
            ("1000000000000000", None),
            ("0.0000000001", None),
            ("1e40", None),
            ("1e400", None),
            ("1234567890123456789012345678901234567890", None),
        ];
        for (text, expected) in rows {
            let got = QUANTITY.parse(text).ok().map(|d| d.to_string());
            assert_eq!(got.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn only_json_numbers_are_numbers() {
        for bad in ["", "-", ".5", "5.", "+1", "01", "1_000", "1,5", "0x10", "NaN", "Infinity", "1e", "1e+", " 1", "1 ", "١"] {
            assert_eq!(QUANTITY.parse(bad), Err(DecimalError::NotANumber), "{bad:?}");
        }
    }

    fn decimal() -> impl Strategy<Value = Decimal> {
        (any::<i64>(), 0u32..=20).prop_map(|(m, s)| Decimal::from_i128_with_scale(i128::from(m), s))
    }

    /// Draws decimals of up to 28 digits with the scales of prices.
    fn longest() -> impl Strategy<Value = Decimal> {
        let most = 10i128.pow(28);
        (0..=28u32, -most..most, 0u32..=12)
            .prop_map(|(digits, mantissa, scale)| Decimal::from_i128_with_scale(mantissa % 10i128.pow(digits), scale))
    }

    fn big(number: impl fmt::Display) -> BigDecimal {
        BigDecimal::from_str(&number.to_string()).expect("a decimal's own text")
    }

    #[test]
    fn a_number_of_256_bits_keeps_its_digits_and_compares_by_value() {
        let wide = |text: &str| WideDecimal::parse(text).unwrap_or_else(|| panic!("{text}"));
        for text in
            ["0", "0.00", "1.50", "-0.05", "-3", "1000000000000000000000000000000000000000000000000.000000000000000000001"]
        {
            assert_eq!(wide(text).to_string(), text);
        }
        for bad in ["", "-", "1.", ".5", "+1", "01", "1e3", "-0", "1,5", "0x1", " 1", "1".repeat(80).as_str()] {
            assert_eq!(WideDecimal::parse(bad), None, "{bad:?}");
        }
        assert!(wide("1.50") == wide("1.5") && wide("-1.5") < wide("-1.499") && wide("-0.1") < wide("0.01"));
        let (most, least) = (wide(&"9".repeat(76)), wide(&format!("0.{}1", "0".repeat(75))));
        assert!(least < most && -Decimal::ONE < Decimal::ZERO);
        assert_eq!((most.times(Decimal::TEN), most.plus(least)), (Err(AmountOutOfRange), Err(AmountOutOfRange)));
        assert_eq!((least.times(least), most.to_decimal()), (Err(AmountOutOfRange), Err(AmountOutOfRange)));
        assert_eq!(most.ratio(Decimal::ONE, Decimal::ZERO, 0), Err(AmountOutOfRange));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn products_and_sums_are_exact_or_refused(a in decimal(), b in decimal()) {
            if let Ok(product) = exact_mul(a, b) {
                prop_assert_eq!(big(product), big(a) * big(b));
            }
            if let Ok(sum) = exact_add(a, b) {
                prop_assert_eq!(big(sum), big(a) + big(b));
            }
        }

        #[test]
        fn calculations_in_256_bits_are_exact(a in longest(), b in longest(), c in longest(), days in 1u32.., digits in 0u32..=4) {
            let [x, y, z] = [a, b, c].map(WideDecimal::from);
            let product = x.times(y).and_then(|product| product.times(Decimal::from(days))).expect("at most 224 bits");
            prop_assert_eq!(big(product), big(a) * big(b) * BigDecimal::from(days));
            prop_assert_eq!(WideDecimal::parse(&product.to_string()), Some(product));
            let sum = x.plus(y).expect("at most 190 bits");
            prop_assert_eq!(big(sum), big(a) + big(b));
            prop_assert_eq!(sum.cmp(&z), big(sum).cmp(&big(c)));
            prop_assert_eq!(x.to_decimal(), Ok(a));
            // The quotient differs from the exact one by at most half of its last digit.
            let quotient = product.ratio(Decimal::ONE, Decimal::from(days), digits).expect("at most 255 bits");
            let difference = (big(quotient) - big(a) * big(b)).abs() * 2;
            prop_assert!(difference <= BigDecimal::new(1.into(), digits.into()));
        }

        #[test]
        fn a_decimal_reads_back_from_its_own_text(m in 0u64..1_000_000_000_000_000_000, s in 0u32..=9) {
            let value = Decimal::from_i128_with_scale(i128::from(m), s);
            if QUANTITY.hold(value) {
                prop_assert_eq!(QUANTITY.parse(&value.to_string()), Ok(value));
            }
        }
    }
}
