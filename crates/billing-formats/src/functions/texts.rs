//! Texts.
//!
//! - `upper(text)`, `lower(text)`, `trim(text)`
//! - `split(text, separator)`: returns a list of at most 1000 texts
//! - `slice(text, start, length)`: counts characters from 0
//! - `replace(text, part, by)`: replaces every occurrence
//! - `concat(a, b, …)`: joins two to six plain values to one text
//! - `text(value)`: returns a number's digits, or `true` or `false`
//! - `cloud_event_key(source, id)`: returns the idempotency key of a CloudEvent

use billing_domain::idempotency::IdempotencyKey;
use rhai::{Array, Dynamic, Engine, ImmutableString};

use crate::operators::{Fallible, fits, joined};
use crate::values::{kind, plain_text};

const MAX_PIECES: usize = 1000;

pub(crate) fn register(engine: &mut Engine) {
    engine
        .register_fn("upper", |text: ImmutableString| joined(&[&text.to_uppercase()]))
        .register_fn("lower", |text: ImmutableString| joined(&[&text.to_lowercase()]))
        .register_fn("trim", |text: ImmutableString| text.trim().to_owned())
        .register_fn("cloud_event_key", |source: ImmutableString, id: ImmutableString| -> Fallible<String> {
            let key = IdempotencyKey::of_cloud_event(&source, &id);
            key.map(|key| key.as_str().to_owned()).map_err(|error| format!("the source and the id {error}").into())
        })
        .register_fn("split", split)
        .register_fn("slice", slice)
        .register_fn("replace", replace)
        .register_fn("text", |value: Dynamic| concat(&[value]))
        .register_fn("concat", |a: Dynamic, b: Dynamic| concat(&[a, b]))
        .register_fn("concat", |a: Dynamic, b: Dynamic, c: Dynamic| concat(&[a, b, c]))
        .register_fn("concat", |a: Dynamic, b: Dynamic, c: Dynamic, d: Dynamic| concat(&[a, b, c, d]))
        .register_fn("concat", |a: Dynamic, b: Dynamic, c: Dynamic, d: Dynamic, e: Dynamic| concat(&[a, b, c, d, e]))
        .register_fn("concat", |a: Dynamic, b: Dynamic, c: Dynamic, d: Dynamic, e: Dynamic, f: Dynamic| {
            concat(&[a, b, c, d, e, f])
        });
}

fn split(text: ImmutableString, separator: ImmutableString) -> Fallible<Array> {
    if separator.is_empty() {
        return Err("a separator must not be empty".into());
    }
    let pieces: Array = text.split(separator.as_str()).take(MAX_PIECES + 1).map(|piece| piece.to_owned().into()).collect();
    if pieces.len() > MAX_PIECES { Err(format!("a text splits into at most {MAX_PIECES} pieces").into()) } else { Ok(pieces) }
}

fn slice(text: ImmutableString, start: i64, length: i64) -> Fallible<String> {
    let count = |n: i64| usize::try_from(n).map_err(|_| "start and length of a slice must not be negative");
    Ok(text.chars().skip(count(start)?).take(count(length)?).collect())
}

fn replace(text: ImmutableString, part: ImmutableString, by: ImmutableString) -> Fallible<ImmutableString> {
    if part.is_empty() {
        return Err("the part to replace must not be empty".into());
    }
    let pieces: Vec<_> = text.split(part.as_str()).collect();
    // The length is checked first, because replacing many single letters could create a long text.
    fits(text.len() + (pieces.len() - 1) * by.len())?;
    Ok(pieces.join(by.as_str()).into())
}

fn concat(parts: &[Dynamic]) -> Fallible<ImmutableString> {
    let text = |part: &Dynamic| plain_text(part).ok_or_else(|| format!("{} has no text", kind(part)));
    let texts = parts.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    joined(&texts.iter().map(ImmutableString::as_str).collect::<Vec<_>>())
}
