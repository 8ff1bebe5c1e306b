//! Lookups in objects: in a literal table, or in the event.
//!
//! - `get(object, key)`: returns the field, or unit if it is missing. The object can be unit, so that calls can be
//!   nested.
//! - `object(value)`: returns an object, or unit for any other value.
//! - `lookup(table, key)`: returns the field, or fails.
//! - `lookup(table, key, default)`: returns the field, or the default.

use rhai::{Dynamic, Engine, ImmutableString, Map};

use crate::operators::Fallible;
use crate::values::{kind, plain_text};

pub(crate) fn register(engine: &mut Engine) {
    engine
        .register_fn("get", |object: &mut Map, key: ImmutableString| object.get(key.as_str()).cloned().unwrap_or(Dynamic::UNIT))
        .register_fn("get", |(): (), _key: ImmutableString| Dynamic::UNIT)
        .register_fn("object", |value: Dynamic| if value.is_map() { value } else { Dynamic::UNIT })
        .register_fn("lookup", |table: &mut Map, key: Dynamic| -> Fallible<Dynamic> {
            let key = text_of(&key)?;
            table.get(key.as_str()).cloned().ok_or_else(|| format!("the table has no `{key}`").into())
        })
        .register_fn("lookup", |table: &mut Map, key: Dynamic, default: Dynamic| -> Fallible<Dynamic> {
            if key.is_unit() {
                return Ok(default);
            }
            Ok(table.get(text_of(&key)?.as_str()).cloned().unwrap_or(default))
        });
}

/// Returns a key as text. A number matches the text with the same digits.
fn text_of(key: &Dynamic) -> Fallible<ImmutableString> {
    plain_text(key).ok_or_else(|| format!("a key is a text or a number, not {}", kind(key)).into())
}
