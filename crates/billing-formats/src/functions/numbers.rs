//! Numbers.
//!
//! - `round(number)`, `round(number, digits)`: rounds half away from zero, to digits after the decimal point
//! - `floor(number)`, `ceil(number)`: rounds to an integer
//! - `abs(number)`, `min(a, b)`, `max(a, b)`
//! - `to_decimal(text)`: parses a number

use rhai::{Dynamic, Engine};
use rust_decimal::{Decimal, RoundingStrategy};

use crate::operators::Fallible;
use crate::values::{kind, number, parse_number, shortened};

const MAX_DIGITS: i64 = 28;

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
    let value = of(value)?;
    match u32::try_from(digits) {
        Ok(scale) if digits <= MAX_DIGITS => Ok(value.round_dp_with_strategy(scale, RoundingStrategy::MidpointAwayFromZero)),
        _ => Err(format!("rounds to 0 to {MAX_DIGITS} digits").into()),
    }
}

fn to_decimal(value: &Dynamic) -> Fallible<Decimal> {
    match value.as_immutable_string_ref() {
        Ok(text) => {
            let text = text.trim();
            number(&parse_number(text)).ok_or_else(|| format!("`{}` is not a decimal number", shortened(text)).into())
        }
        Err(_) => of(value),
    }
}
