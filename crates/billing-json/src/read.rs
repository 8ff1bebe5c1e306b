//! A strict JSON parser: numbers keep their text, keys keep their order and must be unique, and nesting is limited. The
//! parser rejects lone surrogates; control characters in strings are checked per field.

use std::cell::Cell;
use std::fmt;
use std::io;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use thiserror::Error;

/// The maximum nesting depth of objects and arrays.
const MAX_DEPTH: u32 = 32;
/// The maximum number of values in a body, including nested ones. In memory, a value takes far more than its minimum of
/// two bytes.
const MAX_VALUES: usize = 500_000;
/// The maximum number of characters of a key in an error message.
const MAX_SHOWN_CHARS: usize = 64;
/// serde_json passes a number that is not a 64-bit integer, with its text, as an object with this key. An input object
/// with this key and a number's text is read as that number, which is harmless. With any other content the object is
/// rejected, because serde_json could not read its stored form.
pub(crate) const NUMBER: &str = "$serde_json::private::Number";

/// The reason why a text is rejected as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{detail}")]
pub struct JsonError {
    /// A stable code: `malformed_json`, `duplicate_json_key`, `json_too_deep` or `json_too_many_values`.
    pub code: &'static str,
    /// The cause and the position.
    pub detail: String,
}

/// Parses one JSON value that fills the bytes.
///
/// # Errors
/// Returns [`JsonError`] if the bytes are not one JSON value, if a key is duplicated, or if a limit is exceeded.
pub fn read(bytes: &[u8]) -> Result<Value, JsonError> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    strictly(|strict| {
        let value = strict.deserialize(&mut reader)?;
        reader.end().map(|()| value)
    })
}

/// Parses the next object and reads no byte after its end. Only white space may precede the object.
///
/// # Errors
/// Returns the errors of [`read`], and the text of the reader's errors.
pub fn read_next(reader: impl io::Read) -> Result<Value, JsonError> {
    let mut reader = serde_json::Deserializer::from_reader(reader);
    strictly(|strict| strict.deserialize(&mut reader))
}

fn strictly(read: impl FnOnce(Strict<'_>) -> serde_json::Result<Value>) -> Result<Value, JsonError> {
    let (code, values) = (Cell::new("malformed_json"), Cell::new(0));
    let value = read(Strict { depth: 0, code: &code, values: &values });
    value.map_err(|error| JsonError { code: code.get(), detail: error.to_string() })
}

/// The parser of a value at a depth; `code` receives the code of an error.
#[derive(Clone, Copy)]
struct Strict<'c> {
    depth: u32,
    code: &'c Cell<&'static str>,
    /// The number of values read so far.
    values: &'c Cell<usize>,
}

impl Strict<'_> {
    fn inside(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    fn count<E: serde::de::Error>(self) -> Result<(), E> {
        self.values.set(self.values.get() + 1);
        if self.values.get() <= MAX_VALUES {
            return Ok(());
        }
        self.code.set("json_too_many_values");
        Err(E::custom(format_args!("more than {MAX_VALUES} values")))
    }

    /// Checks that the depth allows an object or array.
    fn check_depth<E: serde::de::Error>(self) -> Result<(), E> {
        if self.depth < MAX_DEPTH {
            return Ok(());
        }
        self.code.set("json_too_deep");
        Err(E::custom(format_args!("nested deeper than {MAX_DEPTH} levels")))
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let mut array = Vec::new();
        while let Some(element) = elements.next_element_seed(self.inside())? {
            array.push(element);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            // A number is not a nesting level; the end of the object shows whether it is a number.
            if key != NUMBER {
                self.check_depth()?;
            }
            if object.contains_key(&key) {
                self.code.set("duplicate_json_key");
                let shown: String = key.chars().take(MAX_SHOWN_CHARS).collect();
                return Err(A::Error::custom(format_args!("the key {shown:?} appears twice in one object")));
            }
            object.insert(key, members.next_value_seed(self.inside())?);
        }
        if object.contains_key(NUMBER) {
            let number = number(&object).ok_or_else(|| A::Error::custom(format_args!("the key {NUMBER:?} can't be taken")))?;
            return Ok(Value::Number(number));
        }
        self.check_depth()?;
        Ok(Value::Object(object))
    }
}

fn number(object: &Map<String, Value>) -> Option<Number> {
    match object.get(NUMBER) {
        Some(Value::String(text)) if object.len() == 1 => text.parse().ok(),
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
    }

    fn refused(bytes: &[u8]) -> (&'static str, String) {
        let error = read(bytes).expect_err("a refusal");
        (error.code, error.detail)
    }

    #[test]
    fn numbers_keep_every_digit_and_keys_their_order() {
        for text in [
            r#"{"z":0.1,"a":12345678901234.000001,"m":30.80}"#,
            r#"{"n":-0.000000001,"big":123456789012345678901234567890123456789012345678901234567890}"#,
            r#"[1e+400,true,false,null,"","é\u0001"]"#,
            "{}",
            "[]",
            "0",
            r#""text""#,
        ] {
            assert_eq!(read(text.as_bytes()).expect(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_position() {
        for (bytes, position) in [
            (&b"{"[..], "line 1 column 1"),
            (b"{\"a\":1,}", "line 1 column 8"),
            (b"{\n  \"a\": nope\n}", "line 2 column 9"),
            (b"{} {}", "line 1 column 4"),
            (b"[1] x", "line 1 column 5"),
            (b"\"\\ud800\"", "line 1 column 8"),
            (b"\"\\udc00\\ud800\"", "line 1 column"),
            (b"\"a\0b\"", "line 1 column 3"),
            (b"\"\xff\"", "line 1 column"),
            (b"01", "line 1 column 2"),
            (b"NaN", "line 1 column 1"),
            (b"1.", "line 1 column 2"),
            (b"'a'", "line 1 column 1"),
            (b"\xef\xbb\xbf{}", "line 1 column 1"),
            (b"   ", "line 1 column 3"),
        ] {
            let (code, detail) = refused(bytes);
            assert_eq!(code, "malformed_json", "{bytes:?}");
            assert!(detail.contains(position), "{bytes:?}: {detail}");
        }
    }

    #[test]
    fn a_key_that_appears_twice_is_refused_at_any_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"{"x":[{"a":1,"b":2,"\u0061":3}]}"#] {
            let (code, detail) = refused(text.as_bytes());
            assert_eq!(code, "duplicate_json_key");
            assert!(detail.starts_with(r#"the key "a" appears twice in one object at line 1"#), "{detail}");
        }
        let long = format!(r#"{{"{0}":1,"{0}":2}}"#, "k".repeat(10_000));
        assert!(refused(long.as_bytes()).1.len() < 200);
        assert!(read(br#"[{"a":1},{"a":1},{"b":{"a":1},"a":2}]"#).is_ok());
    }

    #[test]
    fn objects_are_read_one_after_the_other() {
        let mut bytes = &br#" {"a":[1.50,{}]},{"b":1}{"b":1,"b":2}"#[..];
        assert_eq!(read_next(&mut bytes).expect("an object").to_string(), r#"{"a":[1.50,{}]}"#);
        assert_eq!(bytes.first(), Some(&b','));
        bytes = &bytes[1..];
        assert_eq!(read_next(&mut bytes).expect("an object").to_string(), r#"{"b":1}"#);
        assert_eq!(read_next(&mut bytes).expect_err("a key twice").code, "duplicate_json_key");
        assert_eq!(read_next(&b""[..]).expect_err("nothing").code, "malformed_json");
    }

    #[test]
    fn nesting_ends_at_32_levels() {
        assert!(read(nested(32).as_bytes()).is_ok());
        assert_eq!(refused(nested(33).as_bytes()).0, "json_too_deep");
        assert_eq!(refused(nested(100_000).as_bytes()).0, "json_too_deep");
        let objects = |levels: usize| format!("{}{{}}{}", r#"{"a":"#.repeat(levels - 1), "}".repeat(levels - 1));
        assert!(read(objects(32).as_bytes()).is_ok());
        assert_eq!(refused(objects(33).as_bytes()).0, "json_too_deep");
    }

    #[test]
    fn values_end_at_half_a_million() {
        let ones = |count: usize| format!("[{}]", vec!["1"; count].join(","));
        assert!(read(ones(MAX_VALUES - 1).as_bytes()).is_ok());
        assert_eq!(refused(ones(MAX_VALUES).as_bytes()).0, "json_too_many_values");
    }

    #[test]
    fn the_number_key_of_the_parser_is_no_way_around_the_rules() {
        let spelled = |value: &str| format!(r#"{{"{NUMBER}":{value}}}"#);
        assert_eq!(read(spelled(r#""5""#).as_bytes()).expect("a number").to_string(), "5");
        let beside = [format!(r#"{{"{NUMBER}":"5","a":1}}"#), format!(r#"{{"a":1,"{NUMBER}":"5"}}"#)];
        for text in [spelled(r#""five""#), spelled("[]"), spelled("7")].into_iter().chain(beside) {
            // serde_json could not read the stored form of such an object.
            let (code, detail) = refused(text.as_bytes());
            assert!(code == "malformed_json" && detail.contains("can't be taken"), "{text}: {code}, {detail}");
        }
        let deep = (0..40).fold("1".to_owned(), |inner, _| spelled(&inner));
        assert!(read(deep.as_bytes()).is_err());
    }
}
