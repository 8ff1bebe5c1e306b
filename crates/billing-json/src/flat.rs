//! Objects whose form is known, read in one pass without a tree of values. This is faster, and it fails without a reason. The
//! caller then reads the tree with [`read`](crate::read()), which finds the reason.
//!
//! It accepts a part of what [`read`](crate::read()) accepts, with the same texts of numbers and the same unique keys.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Number;

use crate::read::NUMBER;

/// The maximum number of members of a [`FlatObject`]. Each key is compared with all earlier ones.
const MAX_MEMBERS: usize = 128;

/// A string, borrowed from the input if it has no escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<'a>(pub Cow<'a, str>);

/// A value that contains no other values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scalar<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// The text of a number.
    Number(Cow<'a, str>),
    /// A string.
    Text(Cow<'a, str>),
}

/// The members of an object that contains only [`Scalar`] values, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlatObject<'a>(pub Vec<(Cow<'a, str>, Scalar<'a>)>);

/// Reads one object that fills the bytes. Returns `None` if the bytes are anything else, or if the type does not accept them.
pub fn read_object<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    // serde would also read a struct from an array of its fields.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let object = T::deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(object)
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that contains no other values")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Scalar::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Scalar::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Scalar::Number(Cow::Owned(value.to_string())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Scalar::Number(Cow::Owned(value.to_string())))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Owned(text)))
    }

    /// Reads a number that is not a 64-bit integer. `serde_json` passes it as an object with one member.
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let is_number = members.next_key::<Text<'de>>()?.is_some_and(|key| key.0 == NUMBER);
        if !is_number {
            return Err(A::Error::custom("an object is not a scalar"));
        }
        let Text(text) = members.next_value()?;
        // The input may contain such an object itself, with any text.
        let is_alone = members.next_key::<Text<'de>>()?.is_none();
        if is_alone && text.parse::<Number>().is_ok() {
            return Ok(Scalar::Number(text));
        }
        Err(A::Error::custom("not the text of a number"))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for FlatObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FlatVisitor)
    }
}

struct FlatVisitor;

impl<'de> Visitor<'de> for FlatVisitor {
    type Value = FlatObject<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of values that contain no other values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut all: Vec<(Cow<'de, str>, Scalar<'de>)> = Vec::new();
        while let Some(Text(key)) = members.next_key()? {
            // An object with the key of a number stands for a number.
            let is_refused = key == NUMBER || all.len() == MAX_MEMBERS || all.iter().any(|(earlier, _)| *earlier == key);
            if is_refused {
                return Err(A::Error::custom("a key is refused"));
            }
            all.push((key, members.next_value()?));
        }
        Ok(FlatObject(all))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::read;

    /// Returns an object of scalars as a tree.
    fn tree(object: &FlatObject<'_>) -> String {
        let member = |(key, value): &(Cow<'_, str>, Scalar<'_>)| {
            let value = match value {
                Scalar::Null => "null".to_owned(),
                Scalar::Bool(value) => value.to_string(),
                Scalar::Number(text) => text.clone().into_owned(),
                Scalar::Text(text) => Value::from(&**text).to_string(),
            };
            format!("{}:{value}", Value::from(&**key))
        };
        format!("{{{}}}", object.0.iter().map(member).collect::<Vec<_>>().join(","))
    }

    #[test]
    fn what_is_read_in_one_pass_is_what_the_tree_holds() {
        for text in [
            "{}",
            " {\n\"b\" : 1 , \"a\":\"x\" }\t",
            r#"{"z":0.10,"a":12345678901234567890123.000001,"m":1e3,"n":-0,"o":-7,"p":1E-2,"q":18446744073709551615}"#,
            r#"{"":null,"é\u0001\"":true,"\u0061":false,"x":"\n\ud83d\ude00"}"#,
            r#"{"a":{"$serde_json::private::Number":"1.50"}}"#,
        ] {
            let flat: FlatObject<'_> = read_object(text.as_bytes()).expect(text);
            let value = read(text.as_bytes()).expect(text);
            assert_eq!(tree(&flat), value.to_string(), "{text}");
        }
    }

    #[test]
    fn whatever_the_tree_must_judge_is_not_read() {
        let many: Vec<String> = (0..=MAX_MEMBERS).map(|n| format!("\"{n}\":1")).collect();
        let many = format!("{{{}}}", many.join(","));
        for text in [
            "",
            "[]",
            "1",
            "1.5",
            "{",
            "{} {}",
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":1}"#,
            r#"{"a":[]}"#,
            r#"{"a":{}}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":01}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"$serde_json::private::Number":"1"}"#,
            r#"{"a":{"$serde_json::private::Number":"x"}}"#,
            r#"{"a":{"$serde_json::private::Number":1}}"#,
            r#"{"a":{"$serde_json::private::Number":"1","b":1}}"#,
            &many,
        ] {
            assert_eq!(read_object::<FlatObject<'_>>(text.as_bytes()), None, "{text}");
        }
        assert_eq!(read_object::<FlatObject<'_>>(b"{\"a\":\"\xff\"}"), None);
    }
}
