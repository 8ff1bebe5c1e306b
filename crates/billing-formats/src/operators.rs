//! The operators: exact on numbers, and an error for mismatched types. rhai's own operators evaluate the comparison of
//! a text with a number to `false`, which would bill by the wrong branch.

use std::cmp::Ordering;

use billing_domain::decimal::{AmountOutOfRange, exact_add, exact_mul};
use rhai::{Array, Dynamic, Engine, EvalAltResult, ImmutableString, Map};
use rust_decimal::Decimal;

use crate::values::{MAX_TEXT_BYTES, kind, number};

pub(crate) type Fallible<T> = Result<T, Box<EvalAltResult>>;

pub(crate) fn register(engine: &mut Engine) {
    engine
        .register_fn("+", add)
        .register_fn("-", |a: Dynamic, b: Dynamic| {
            arithmetic("subtract from", &a, &b, i64::checked_sub, |a, b| exact(exact_add(a, -b)))
        })
        .register_fn("*", |a: Dynamic, b: Dynamic| {
            arithmetic("multiply", &a, &b, i64::checked_mul, |a, b| exact(exact_mul(a, b)))
        })
        .register_fn("/", |a: Dynamic, b: Dynamic| arithmetic("divide", &a, &b, |_, _| None, divide))
        .register_fn("%", |a: Dynamic, b: Dynamic| arithmetic("divide", &a, &b, i64::checked_rem, remainder))
        .register_fn("-", |a: Decimal| -a)
        .register_fn("-", |a: i64| Dynamic::from_decimal(-Decimal::from(a)))
        .register_fn("!", |a: bool| !a)
        .register_fn("==", |a: Dynamic, b: Dynamic| equal(&a, &b))
        .register_fn("!=", |a: Dynamic, b: Dynamic| equal(&a, &b).map(|equal| !equal))
        .register_fn("<", |a: Dynamic, b: Dynamic| order(&a, &b).map(Ordering::is_lt))
        .register_fn("<=", |a: Dynamic, b: Dynamic| order(&a, &b).map(Ordering::is_le))
        .register_fn(">", |a: Dynamic, b: Dynamic| order(&a, &b).map(Ordering::is_gt))
        .register_fn(">=", |a: Dynamic, b: Dynamic| order(&a, &b).map(Ordering::is_ge))
        // The operator `in` calls these functions.
        .register_fn("contains", |object: &mut Map, key: ImmutableString| object.contains_key(key.as_str()))
        .register_fn("contains", |text: &mut ImmutableString, part: ImmutableString| text.contains(part.as_str()))
        .register_fn("contains", |list: &mut Array, item: Dynamic| contains(list, &item));
}

fn add(a: Dynamic, b: Dynamic) -> Fallible<Dynamic> {
    if let (Ok(left), Ok(right)) = (a.as_immutable_string_ref(), b.as_immutable_string_ref()) {
        return joined(&[&left, &right]).map(Into::into);
    }
    arithmetic("add", &a, &b, i64::checked_add, |a, b| exact(exact_add(a, b)))
}

/// Joins texts, within the length limit.
pub(crate) fn joined(parts: &[&str]) -> Fallible<ImmutableString> {
    fits(parts.iter().map(|part| part.len()).sum())?;
    Ok(parts.concat().into())
}

/// Checks the length of a text in bytes.
pub(crate) fn fits(bytes: usize) -> Fallible<()> {
    if bytes > MAX_TEXT_BYTES { Err(format!("a text must have at most {MAX_TEXT_BYTES} bytes").into()) } else { Ok(()) }
}

/// Registers an arithmetic operator. Operations on integer literals return integers, so that the result can be an
/// index; all others return decimals.
fn arithmetic(
    verb: &str,
    a: &Dynamic,
    b: &Dynamic,
    whole: impl Fn(i64, i64) -> Option<i64>,
    decimal: impl Fn(Decimal, Decimal) -> Fallible<Decimal>,
) -> Fallible<Dynamic> {
    if let (Ok(a), Ok(b)) = (a.as_int(), b.as_int())
        && let Some(result) = whole(a, b)
    {
        return Ok(result.into());
    }
    match (number(a), number(b)) {
        (Some(a), Some(b)) => decimal(a, b).map(Dynamic::from_decimal),
        _ => Err(format!("can't {verb} {} and {}", kind(a), kind(b)).into()),
    }
}

pub(crate) fn exact(result: Result<Decimal, AmountOutOfRange>) -> Fallible<Decimal> {
    result.map_err(|_| "the result has more digits than exact decimals hold; round before".into())
}

/// Returns the error of a number that an exact decimal can't hold even when it is rounded.
pub(crate) fn out_of_digits() -> Box<EvalAltResult> {
    "the result has more digits than exact decimals hold".into()
}

fn divide(a: Decimal, b: Decimal) -> Fallible<Decimal> {
    if b.is_zero() {
        return Err("division by zero".into());
    }
    // A quotient would otherwise be padded with zeros to 28 digits.
    a.checked_div(b).map(|quotient| quotient.normalize()).ok_or_else(out_of_digits)
}

fn remainder(a: Decimal, b: Decimal) -> Fallible<Decimal> {
    if b.is_zero() {
        return Err("division by zero".into());
    }
    let scale = a.scale().max(b.scale());
    let widen = |n: Decimal| 10i128.checked_pow(scale - n.scale()).and_then(|factor| n.mantissa().checked_mul(factor));
    let rest = widen(a).zip(widen(b)).and_then(|(a, b)| a.checked_rem(b));
    let rest = rest.and_then(|rest| Decimal::try_from_i128_with_scale(rest, scale).ok());
    exact(rest.ok_or(AmountOutOfRange))
}

fn equal(a: &Dynamic, b: &Dynamic) -> Fallible<bool> {
    if a.is_unit() || b.is_unit() {
        return Ok(a.is_unit() && b.is_unit());
    }
    if let (Ok(a), Ok(b)) = (a.as_bool(), b.as_bool()) {
        return Ok(a == b);
    }
    order(a, b).map(Ordering::is_eq)
}

fn order(a: &Dynamic, b: &Dynamic) -> Fallible<Ordering> {
    if let (Some(a), Some(b)) = (number(a), number(b)) {
        return Ok(a.cmp(&b));
    }
    match (a.as_immutable_string_ref(), b.as_immutable_string_ref()) {
        (Ok(a), Ok(b)) => Ok(a.as_str().cmp(b.as_str())),
        _ => Err(format!("can't compare {} with {}", kind(a), kind(b)).into()),
    }
}

fn contains(list: &Array, item: &Dynamic) -> Fallible<bool> {
    for element in list {
        if equal(element, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}
