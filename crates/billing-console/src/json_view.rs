//! Read access to API responses.

use serde_json::Value;

static NOTHING: Value = Value::Null;

/// A response or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct JsonView<'v>(pub &'v Value);

impl<'v> JsonView<'v> {
    /// Returns the value at a path with dots between the names. A field of null is null.
    ///
    /// Debug builds panic if an object has no such field, because a misspelt field would show nothing. Answers in the unit tests
    /// of this crate have only the fields that matter.
    pub fn at(self, path: &str) -> Self {
        path.split('.').fold(self, |view, name| {
            debug_assert!(cfg!(test) || !view.lacks(name), "no field {name:?} in {}", view.0);
            view.at_any(name)
        })
    }

    /// Returns whether the value is an object without a field of this name.
    fn lacks(self, name: &str) -> bool {
        self.0.as_object().is_some_and(|fields| !fields.contains_key(name))
    }

    /// Returns the value of a field that only some answers have, or null.
    pub fn at_any(self, name: &str) -> Self {
        Self(self.0.get(name).unwrap_or(&NOTHING))
    }

    /// Returns whether the value is not null.
    pub fn is_there(self) -> bool {
        !self.0.is_null()
    }

    /// Returns whether the value is `true`.
    pub fn is_true(self) -> bool {
        self.0 == &Value::Bool(true)
    }

    /// Returns whether the value is the given text.
    pub fn is(self, text: &str) -> bool {
        self.0.as_str() == Some(text)
    }

    /// Returns a string as it is, a number with its exact digits, and an empty string for a missing value.
    pub fn text(self) -> String {
        match self.0 {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// Returns the elements of an array.
    pub fn items(self) -> impl Iterator<Item = Self> + Clone {
        self.0.as_array().into_iter().flatten().map(Self)
    }

    /// Returns names and values of an object's fields in order.
    pub fn fields(self) -> impl Iterator<Item = (&'v str, Self)> {
        self.0.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), Self(value)))
    }

    /// Returns whether the value is a non-zero number.
    pub fn is_amount(self) -> bool {
        self.0.is_number() && self.text().bytes().any(|digit| matches!(digit, b'1'..=b'9'))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_there_says_nothing() {
        let answer = json!({"a": {"b": 1}, "c": null, "d": "x"});
        let at = JsonView(&answer);
        assert_eq!(at.at("a.b").text(), "1");
        assert!(!at.at_any("z").is_there() && !at.at("c.z").is_there() && !at.at("d.e").is_there());
        assert_eq!(at.at("c.z").text(), "");
        assert_eq!(at.at("d").items().count(), 0);
    }

    #[test]
    fn a_misspelt_field_is_noticed_in_objects_alone() {
        let answer = json!({"a": {"b": null}, "d": "x"});
        let at = JsonView(&answer);
        assert_eq!([at.lacks("z"), at.at("a").lacks("z")], [true; 2]);
        assert_eq!([at.lacks("a"), at.at("a").lacks("b"), at.at("d").lacks("z"), at.at("a.b").lacks("z")], [false; 4]);
    }

    #[test]
    fn zero_is_no_amount_in_any_form() {
        for (text, is_amount) in [("0", false), ("0.00", false), ("-0.10", true), ("12", true), ("\"5\"", false), ("null", false)]
        {
            let value: Value = serde_json::from_str(text).expect(text);
            assert_eq!(JsonView(&value).is_amount(), is_amount, "{text}");
        }
    }
}
