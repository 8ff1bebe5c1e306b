//! What a body says, whatever way it is written: the same JSON has the same hash.

use billing_domain::idempotency::BodyHash;
use serde_json::{Number, Value};
use sha2::{Digest as _, Sha256};

/// The member of a batch's event that names its key: it says nothing about the event.
pub(crate) const KEY_MEMBER: &str = "idempotency_key";

/// Hashes a value: white space, the order of keys and how a number is written make no difference.
pub(crate) fn hash(value: &Value) -> BodyHash {
    let mut hash = Sha256::new();
    put(&mut hash, value);
    BodyHash(hash.finalize().into())
}

/// As [`hash`], of an event, alone or in a batch.
pub(crate) fn hash_of_event(event: &Value) -> BodyHash {
    match event {
        Value::Object(members) if members.contains_key(KEY_MEMBER) => {
            let mut members = members.clone();
            members.shift_remove(KEY_MEMBER);
            hash(&Value::Object(members))
        }
        other => hash(other),
    }
}

/// Every value begins with what it is and how long, so that no two are written alike.
fn put(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update(b"0"),
        Value::Bool(value) => hash.update(if *value { b"t" } else { b"f" }),
        Value::Number(number) => text(hash, b'n', &normal(number)),
        Value::String(value) => text(hash, b's', value),
        Value::Array(items) => {
            head(hash, b'a', items.len());
            for item in items {
                put(hash, item);
            }
        }
        Value::Object(members) => {
            head(hash, b'o', members.len());
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in members {
                text(hash, b'k', key);
                put(hash, value);
            }
        }
    }
}

fn head(hash: &mut Sha256, kind: u8, length: usize) {
    hash.update([kind]);
    hash.update((length as u64).to_be_bytes());
}

fn text(hash: &mut Sha256, kind: u8, text: &str) {
    head(hash, kind, text.len());
    hash.update(text);
}

/// A number's sign, its digits without zeros around them, and the power of ten they stand at: `1`, `1.0` and `10e-1` are
/// one number. One whose power no 64-bit integer holds is taken as it is written.
fn normal(number: &Number) -> String {
    let written = number.to_string();
    let (sign, unsigned) = written.strip_prefix('-').map_or(("", written.as_str()), |rest| ("-", rest));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    let shift = i64::try_from(zeros).ok().zip(i64::try_from(fraction.len()).ok()).map(|(zeros, fraction)| zeros - fraction);
    match exponent.parse::<i64>().ok().zip(shift).and_then(|(exponent, shift)| exponent.checked_add(shift)) {
        Some(power) => format!("{sign}{significant}e{power}"),
        None => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashed(text: &str) -> BodyHash {
        hash(&super::super::json::read(text.as_bytes()).expect(text))
    }

    #[test]
    fn the_same_json_has_the_same_hash_however_it_is_written() {
        for (one, other) in [
            (r#"{"a":1,"b":[true,null,"x"]}"#, " {\n\"b\" : [ true , null , \"\\u0078\" ] , \"a\" : 1 } "),
            ("1", "1.0"),
            ("1", "10e-1"),
            ("0.10", "1E-1"),
            ("100", "1e+2"),
            ("0", "-0.000"),
            ("0e5", "0"),
            ("123456789012345678901234567890.10", "1234567890123456789012345678901e-1"),
            (r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":2.0,"x":1}}"#),
        ] {
            assert_eq!(hashed(one), hashed(other), "{one} {other}");
        }
    }

    #[test]
    fn other_json_has_another_hash() {
        let all = [
            "0",
            "1",
            "-1",
            "10",
            "0.1",
            "1e400",
            "1e-99999999999999999999",
            "1e-99999999999999999998",
            "\"1\"",
            "\"\"",
            "[]",
            "{}",
            "null",
            "true",
            "false",
            "[1]",
            "[[1]]",
            "[1,2]",
            "[2,1]",
            "[12]",
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":1,"b":2}"#,
            r#"{"ab":12}"#,
            r#"["a",1]"#,
            r#"["a","1"]"#,
            r#"["a1"]"#,
            r#"{"a":null}"#,
        ];
        for (i, one) in all.iter().enumerate() {
            for other in &all[i + 1..] {
                assert_ne!(hashed(one), hashed(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn an_event_is_the_same_alone_and_in_a_batch() {
        let event = |text: &str| hash_of_event(&super::super::json::read(text.as_bytes()).expect(text));
        assert_eq!(event(r#"{"quantity":1,"idempotency_key":"k"}"#), event(r#"{"quantity":1}"#));
        assert_ne!(event(r#"{"quantity":1,"idempotency_key":"k"}"#), event(r#"{"quantity":2}"#));
    }
}
