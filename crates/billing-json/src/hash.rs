//! The 256-bit hash of a body, equal for equivalent JSON. White space, the order of keys, character escapes and the
//! notation of numbers make no difference; the order of arrays does.

use billing_domain::idempotency::BodyHash;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// Returns the hash of a body. A missing body has a distinct hash.
pub fn hash(body: Option<&Value>) -> BodyHash {
    let mut text = String::new();
    if let Some(value) = body {
        write(value, &mut text);
    }
    digest(&text)
}

fn digest(canonical: &str) -> BodyHash {
    BodyHash(Sha256::digest(canonical.as_bytes()).into())
}

/// The key member of an event in a batch, which is not part of the event's content.
pub const KEY_MEMBER: &str = "idempotency_key";

/// Writes a string as `serde_json` does. Most strings need no escapes and are copied.
fn write_text(text: &str, out: &mut String) {
    if text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        out.push_str(&Value::from(text).to_string());
    } else {
        out.extend(["\"", text, "\""]);
    }
}

/// Writes a value in canonical form. The parser has limited the depth.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::String(text) => write_text(text, out),
        Value::Number(number) => write_number(number.as_str(), out),
        Value::Array(elements) => {
            out.push('[');
            for element in elements {
                write(element, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(members) => write_object(members, out),
    }
}

fn write_object(members: &Map<String, Value>, out: &mut String) {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    out.push('{');
    for (key, value) in sorted {
        write_text(key, out);
        out.push(':');
        write(value, out);
        out.push(',');
    }
    out.push('}');
}

/// Writes a number as sign, digits without leading and trailing zeros, and exponent: `-12.50` and `-0.125e2` are
/// `-125e-1`.
fn write_number(text: &str, out: &mut String) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        out.push('0');
        return;
    }
    let zeros_behind = digits.len() - digits.trim_end_matches('0').len();
    let shift = i128::try_from(zeros_behind).ok().zip(i128::try_from(fraction.len()).ok());
    let shifted = shift
        .zip(exponent.parse::<i128>().ok())
        .and_then(|((zeros, point), exponent)| exponent.checked_add(zeros).and_then(|exponent| exponent.checked_sub(point)));
    match shifted {
        Some(exponent) => out.push_str(&format!("{sign}{significant}e{exponent}")),
        // No field accepts an exponent of forty digits, so it is harmless that its notations differ.
        None => out.push_str(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(text: &str) -> BodyHash {
        hash(Some(&crate::read(text.as_bytes()).expect(text)))
    }

    #[test]
    fn what_is_the_same_as_json_has_the_same_hash() {
        for (one, other) in [
            (r#"{"a":1,"b":[true,null]}"#, " {\n\"b\" : [ true,null ] ,\t\"a\":1}"),
            (r#"{"x":{"b":1,"a":2}}"#, r#"{"x":{"a":2,"b":1}}"#),
            (r#""é/\n""#, r#""\u00e9\/\u000a""#),
            (r#"{"\u0061":1}"#, r#"{"a":1}"#),
            ("1", "1.0"),
            ("1", "1e0"),
            ("1", "0.1E+1"),
            ("100", "1e2"),
            ("100", "0.001e5"),
            ("-12.50", "-125e-1"),
            ("0", "-0"),
            ("0", "0.000e99"),
            ("18446744073709551616", "18446744073709551616.000"),
            ("123456789012345678901234567890.10", "123456789012345678901234567890.1"),
        ] {
            assert_eq!(hash_of(one), hash_of(other), "{one} {other}");
        }
    }

    #[test]
    fn what_differs_as_json_has_another_hash() {
        let mut texts = vec!["null", "true", "false", "0", "1", "-1", "10", "0.1", "1e1000", "1e-1000", r#""1""#, r#""""#];
        texts.extend(["[]", "{}", "[[]]", "[1,2]", "[2,1]", "[12]", r#"["1,2"]"#, r#"{"a":1}"#, r#"{"A":1}"#, r#"{"a":"1"}"#]);
        texts.extend([r#"{"a":null}"#, r#"{"a":1,"b":2}"#, r#"{"a":{"b":1}}"#, r#"{"a,b":1}"#, r#"["a:1"]"#, r#""true""#]);
        texts.extend(["9007199254740992", "9007199254740993", "0.30000000000000004", "0.3"]);
        texts.push("1e99999999999999999999999999999999999999999");
        let mut hashes: Vec<_> = texts.iter().map(|text| hash_of(text).0).collect();
        hashes.push(hash(None).0);
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), texts.len() + 1);
    }

    #[test]
    fn strings_are_written_as_serde_json_does() {
        for text in ["", "plain", "é ü 漢 \u{7f} \u{2028}", "\"", "\\", "\n", "\u{0}\u{1f}", "a/b"] {
            let mut written = String::new();
            write_text(text, &mut written);
            assert_eq!(written, Value::from(text).to_string(), "{text:?}");
        }
    }
}
