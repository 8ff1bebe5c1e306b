//! Events as expressions see them: every JSON number is an exact decimal, and all sizes are limited.

use billing_domain::decimal::Digits;
use billing_domain::usage::{MAX_REPORT_VALUE_BYTES, ReportValue};
use rhai::{Array, Dynamic, ImmutableString, Map};
use rust_decimal::Decimal;
use serde_json::Value;

/// The maximum size of an event's JSON text in bytes.
pub const MAX_EVENT_BYTES: usize = 64 * 1024;
/// The maximum nesting depth of an event.
pub const MAX_EVENT_DEPTH: usize = 32;
/// The maximum number of values in an event, including nested ones.
pub const MAX_EVENT_VALUES: usize = 2_000;
/// The maximum size in bytes of a text, in an event or created by an expression.
pub const MAX_TEXT_BYTES: usize = 16 * 1024;

/// The maximum number of bytes that the events of one record may keep of it together: its size times its events.
pub const MAX_EVENTS_BYTES: usize = 1024 * 1024;

/// The digits that a [`Decimal`] can hold.
pub(crate) const DIGITS: Digits = Digits { integer: 28, fraction: 28 };

/// A number in the event that no exact decimal can hold. It can only be passed through as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LongNumber(pub(crate) String);

/// Parses an event. Keys keep their order; the request parser has already rejected duplicate keys.
pub(crate) fn read_event(text: &str) -> Result<serde_json::Map<String, Value>, String> {
    if text.len() > MAX_EVENT_BYTES {
        return Err(format!("must have at most {MAX_EVENT_BYTES} bytes"));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("must be a JSON object".to_owned()),
        Err(error) => Err(format!("is not JSON: {error}")),
    }
}

/// Returns the event as the value of the variable, and its number of values.
pub(crate) fn event_value(fields: &serde_json::Map<String, Value>) -> Result<(Dynamic, usize), String> {
    let mut count = 0;
    let event = object(fields, 1, &mut count)?;
    Ok((event, count))
}

fn object(fields: &serde_json::Map<String, Value>, depth: usize, count: &mut usize) -> Result<Dynamic, String> {
    let entry = |(key, field): (&String, &Value)| Ok((key.as_str().into(), value(field, depth + 1, count)?));
    fields.iter().map(entry).collect::<Result<Map, String>>().map(Dynamic::from_map)
}

fn value(value_of: &Value, depth: usize, count: &mut usize) -> Result<Dynamic, String> {
    *count += 1;
    if *count > MAX_EVENT_VALUES {
        return Err(format!("must have at most {MAX_EVENT_VALUES} values"));
    }
    // A scalar counts as one level, so its enclosing object may be at the maximum depth.
    if depth > MAX_EVENT_DEPTH + 1 {
        return Err(format!("must have at most {MAX_EVENT_DEPTH} levels"));
    }
    Ok(match value_of {
        Value::Null => Dynamic::UNIT,
        Value::Bool(truth) => (*truth).into(),
        Value::Number(number) => parse_number(&number.to_string()),
        Value::String(text) if text.len() > MAX_TEXT_BYTES => {
            return Err(format!("must have at most {MAX_TEXT_BYTES} bytes in a text"));
        }
        Value::String(text) => text.into(),
        Value::Array(items) => {
            let items = items.iter().map(|item| value(item, depth + 1, count));
            Dynamic::from_array(items.collect::<Result<Array, String>>()?)
        }
        Value::Object(fields) => object(fields, depth, count)?,
    })
}

/// Converts a number's text into an exact decimal, or into a pass-through value.
pub(crate) fn parse_number(text: &str) -> Dynamic {
    DIGITS.parse(text).map_or_else(|_| Dynamic::from(LongNumber(text.to_owned())), Dynamic::from_decimal)
}

/// Returns the number in a value, if it is one.
pub(crate) fn number(value: &Dynamic) -> Option<Decimal> {
    value.as_decimal().or_else(|_| value.as_int().map(Decimal::from)).ok()
}

/// Returns the readable type name of a value.
pub(crate) fn kind(value: &Dynamic) -> &'static str {
    match value {
        v if v.is_unit() => "nothing",
        v if v.is_bool() => "true or false",
        v if number(v).is_some() => "a number",
        v if v.is_string() => "a text",
        v if v.is_array() => "a list",
        v if v.is_map() => "an object",
        v if v.is::<LongNumber>() => "a number with more digits than exact decimals hold",
        _ => "something else",
    }
}

/// Returns a plain value's text: the text itself, or a number's digits.
pub(crate) fn plain_text(value: &Dynamic) -> Option<ImmutableString> {
    match plain(value)? {
        ReportValue::Text(text) | ReportValue::Number(text) => Some(text.into()),
        ReportValue::Bool(truth) => Some(truth.to_string().into()),
        ReportValue::Null => None,
    }
}

/// Returns a value without parts.
pub(crate) fn plain(value: &Dynamic) -> Option<ReportValue> {
    if value.is_unit() {
        Some(ReportValue::Null)
    } else if let Ok(truth) = value.as_bool() {
        Some(ReportValue::Bool(truth))
    } else if let Some(number) = number(value) {
        Some(ReportValue::Number(number.to_string()))
    } else if let Some(LongNumber(digits)) = value.read_lock::<LongNumber>().as_deref() {
        Some(ReportValue::Number(digits.clone()))
    } else {
        value.as_immutable_string_ref().ok().map(|text| ReportValue::Text(text.to_string()))
    }
}

/// Returns a value of report data. A list or an object becomes its JSON text. Returns `None` for a value without a text.
pub(crate) fn report_value(value: &Dynamic) -> Option<ReportValue> {
    if !value.is_array() && !value.is_map() {
        return plain(value);
    }
    let mut text = String::new();
    write_json(value, 1, &mut text)?;
    Some(ReportValue::Text(text))
}

/// Writes a value as JSON. Stops beyond the limit of a label, because an expression can repeat large parts of its event. An
/// expression can also nest values deeper than an event.
fn write_json(value: &Dynamic, depth: usize, out: &mut String) -> Option<()> {
    if depth > MAX_EVENT_DEPTH + 1 {
        return None;
    }
    if out.len() > MAX_REPORT_VALUE_BYTES {
        return Some(());
    }
    if let Some(items) = value.read_lock::<Array>() {
        for (index, item) in items.iter().enumerate() {
            out.push(if index == 0 { '[' } else { ',' });
            write_json(item, depth + 1, out)?;
        }
        out.push_str(if items.is_empty() { "[]" } else { "]" });
    } else if let Some(fields) = value.read_lock::<Map>() {
        for (index, (key, value)) in fields.iter().enumerate() {
            out.push(if index == 0 { '{' } else { ',' });
            out.extend([Value::from(key.as_str()).to_string().as_str(), ":"]);
            write_json(value, depth + 1, out)?;
        }
        out.push_str(if fields.is_empty() { "{}" } else { "}" });
    } else {
        match plain(value)? {
            ReportValue::Null => out.push_str("null"),
            ReportValue::Bool(truth) => out.push_str(if truth { "true" } else { "false" }),
            ReportValue::Number(text) => out.push_str(&text),
            ReportValue::Text(text) => out.push_str(&Value::from(text).to_string()),
        }
    }
    Some(())
}

/// Shortens a text so that it stays recognizable.
pub(crate) fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_the_decimal_of_its_text() {
        for (text, exact) in
            [("0.1", "0.1"), ("3", "3"), ("1.50", "1.50"), ("1e3", "1000"), ("12345678901234.000001", "12345678901234.000001")]
        {
            let fields = read_event(&format!("{{\"n\": {text}}}")).expect("an object");
            let event = event_value(&fields).expect("small enough").0.cast::<Map>();
            assert_eq!(event["n"].as_decimal().expect("a decimal").to_string(), exact);
        }
    }

    #[test]
    fn a_number_beyond_decimals_keeps_its_text() {
        for text in ["1234567890123456789012345678901234567890", "1e400", "0.00000000000000000000000000000000001"] {
            assert_eq!(plain(&parse_number(text)), Some(ReportValue::Number(text.to_owned())));
            assert_eq!(number(&parse_number(text)), None);
        }
    }

    #[test]
    fn a_list_or_an_object_is_a_label_with_its_json_text() {
        let label = |text: &str| {
            let fields = read_event(&format!("{{\"v\":{text}}}")).expect("an object");
            let event = event_value(&fields).expect("small enough").0.cast::<Map>();
            match report_value(&event["v"]) {
                Some(ReportValue::Text(text)) => text,
                other => panic!("{text}: {other:?}"),
            }
        };
        for text in ["[]", "{}", r#"["x",1.50,null,true,[{}]]"#, r#"{"a\"b":"\n","c":{"n":1e+400}}"#] {
            assert_eq!(label(text), text);
        }
        let long = label(&format!("[{}1]", "[\"0123456789\"],".repeat(600)));
        assert!((MAX_REPORT_VALUE_BYTES..MAX_REPORT_VALUE_BYTES * 2).contains(&long.len()), "{}", long.len());
        let deep = (0..40).fold(Dynamic::UNIT, |inner, _| Dynamic::from_array(vec![inner]));
        assert_eq!(report_value(&deep), None);
    }

    #[test]
    fn depth_is_counted_in_levels() {
        let nested = |levels: usize| format!("{}{{\"a\":1}}{}", "{\"a\":".repeat(levels - 1), "}".repeat(levels - 1));
        let read = |levels| event_value(&read_event(&nested(levels)).expect("an object"));
        assert!(read(MAX_EVENT_DEPTH).is_ok());
        assert!(read(MAX_EVENT_DEPTH + 1).is_err());
    }
}
