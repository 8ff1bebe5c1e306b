//! Numbers.
//!
//! - `round(number)`, `round(number, digits)`: rounds half away from zero, to digits after the decimal point
//! - `floor(number)`, `ceil(number)`: rounds to an integer
//! - `abs(number)`, `min(a, b)`, `max(a, b)`
//! - `to_decimal(text)`: parses a number
//!
//! Floats of other systems can have more digits than an exact decimal. `to_decimal` passes them through, and `round` makes them
//! exact.

use billing_domain::decimal::{DecimalError, Digits};
use rhai::{Dynamic, Engine};
use rust_decimal::{Decimal, RoundingStrategy};

use crate::operators::{Fallible, out_of_digits};
use crate::values::{DIGITS, LongNumber, kind, number, shortened};

pub(crate) fn register(engine: &mut Engine) {
    engine
        .register_fn("round", |value: Dynamic| round(&value, 0))
        .register_fn("round", |value: Dynamic, digits: i64| round(&value, digits))
        .register_fn("floor", |value: Dynamic| of(&value).map(|n| n.floor()))
        .register_fn("ceil", |value: Dynamic| of(&value).map(|n| n.ceil()))
        .register_fn("abs", |value: Dynamic| of(&value).map(|n| n.abs()))
        .register_fn("min", |a: Dynamic, b: Dynamic| Fallible::Ok(of(&a)?.min(of(&b)?)))
        .register_fn("max", |a: Dynamic, b: Dynamic| Fallible::Ok(of(&a)?.max(of(&b)?)))
        .register_fn("to_decimal", |value: Dynamic| to_decimal(&value));
}

/// Returns the number in an argument.
pub(crate) fn of(value: &Dynamic) -> Fallible<Decimal> {
    number(value).ok_or_else(|| format!("a number is wanted, not {}", kind(value)).into())
}

fn round(value: &Dynamic, digits: i64) -> Fallible<Decimal> {
    let scale = u32::try_from(digits).ok().filter(|scale| *scale <= DIGITS.fraction);
    let fraction = scale.ok_or_else(|| format!("rounds to 0 to {} digits", DIGITS.fraction))?;
    if let Some(LongNumber(text)) = value.read_lock::<LongNumber>().as_deref() {
        return Digits { fraction, ..DIGITS }.parse_rounded(text).map_err(|_| out_of_digits());
    }
    Ok(of(value)?.round_dp_with_strategy(fraction, RoundingStrategy::MidpointAwayFromZero))
}

fn to_decimal(value: &Dynamic) -> Fallible<Dynamic> {
    let Ok(text) = value.as_immutable_string_ref() else { return of(value).map(Dynamic::from_decimal) };
    let text = text.trim();
    match DIGITS.parse(text) {
        Ok(number) => Ok(Dynamic::from_decimal(number)),
        Err(DecimalError::NotANumber) => Err(format!("`{}` is not a decimal number", shortened(text)).into()),
        Err(_) => Ok(Dynamic::from(LongNumber(text.to_owned()))),
    }
}
