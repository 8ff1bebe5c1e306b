//! Exact decimals: parsing, digit limits, and arithmetic that is exact or fails.
//!
//! Rounding is only in [`money`](crate::money).

use rust_decimal::Decimal;
use thiserror::Error;

/// The maximum length of a decimal text in characters. Longer texts can't be within any limit of the API.
const MAX_DECIMAL_CHARS: usize = 64;
/// The maximum absolute exponent.
const MAX_EXPONENT: i32 = 40;
/// The maximum number of fractional digits of a [`Decimal`].
const MAX_SCALE: u32 = 28;

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
    /// The number is outside the range of the field.
    #[error("must be between {low} and {high}")]
    OutOfRange {
        /// The smallest allowed value.
        low: u32,
        /// The largest allowed value.
        high: u32,
    },
}

/// The error for an amount that exact decimals can't represent (`amount_out_of_range`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an amount would exceed 10^15 minor units or the range of exact decimals: use a smaller quantity or price")]
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
        let Some(parts) = split(text) else { return Err(DecimalError::NotANumber) };
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
fn split(text: &str) -> Option<Option<Parts<'_>>> {
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
                Ok(n) if n.abs() <= MAX_EXPONENT => n,
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
    let (a, b) = (a.normalize(), b.normalize());
    let mantissa = a.mantissa().checked_mul(b.mantissa()).ok_or(AmountOutOfRange)?;
    let (mut mantissa, mut scale) = (mantissa, a.scale() + b.scale());
    while scale > 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        scale -= 1;
    }
    if scale > MAX_SCALE {
        return Err(AmountOutOfRange);
    }
    Decimal::try_from_i128_with_scale(mantissa, scale).map_err(|_| AmountOutOfRange)
}

/// Adds exactly. The addition of [`Decimal`] drops fractional digits if the mantissa overflows.
///
/// # Errors
/// Returns [`AmountOutOfRange`] if the sum needs more digits than a [`Decimal`] has.
pub fn exact_add(a: Decimal, b: Decimal) -> Result<Decimal, AmountOutOfRange> {
    let scale = a.scale().max(b.scale());
    let widen = |d: Decimal| 10i128.checked_pow(scale - d.scale()).and_then(|factor| d.mantissa().checked_mul(factor));
    let sum = widen(a).zip(widen(b)).and_then(|(a, b)| a.checked_add(b)).ok_or(AmountOutOfRange)?;
    Decimal::try_from_i128_with_scale(sum, scale).map_err(|_| AmountOutOfRange)
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

    fn big(d: Decimal) -> BigDecimal {
        BigDecimal::from_str(&d.to_string()).expect("a decimal's own text")
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
        fn a_decimal_reads_back_from_its_own_text(m in 0u64..1_000_000_000_000_000_000, s in 0u32..=9) {
            let value = Decimal::from_i128_with_scale(i128::from(m), s);
            if QUANTITY.hold(value) {
                prop_assert_eq!(QUANTITY.parse(&value.to_string()), Ok(value));
            }
        }
    }
}
