//! What the interface answers, as pages read it.

use serde_json::Value;

static NOTHING: Value = Value::Null;

/// An answer or a part of one. What isn't there is as what is null.
#[derive(Clone, Copy, Debug)]
pub struct JsonView<'v>(pub &'v Value);

impl<'v> JsonView<'v> {
    /// A field, by the names on the way to it with dots between.
    pub fn at(self, path: &str) -> Self {
        Self(path.split('.').try_fold(self.0, |value, name| value.get(name)).unwrap_or(&NOTHING))
    }

    /// Whether there is something.
    pub fn is_there(self) -> bool {
        !self.0.is_null()
    }

    /// Whether it says yes.
    pub fn is_true(self) -> bool {
        self.0 == &Value::Bool(true)
    }

    /// Whether it is this text.
    pub fn is(self, text: &str) -> bool {
        self.0.as_str() == Some(text)
    }

    /// What it says: a text as it is, a number by its exact digits, nothing of what isn't there.
    pub fn text(self) -> String {
        match self.0 {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// The elements of a list.
    pub fn items(self) -> impl Iterator<Item = Self> + Clone {
        self.0.as_array().into_iter().flatten().map(Self)
    }

    /// The fields, by their names, in their order.
    pub fn fields(self) -> impl Iterator<Item = (&'v str, Self)> {
        self.0.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), Self(value)))
    }

    /// Whether it is a number other than zero.
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
        assert!(!at.at("a.z").is_there() && !at.at("c").is_there() && !at.at("d.e").is_there());
        assert_eq!(at.at("a.z").text(), "");
        assert_eq!(at.at("d").items().count(), 0);
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
