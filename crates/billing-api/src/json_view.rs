//! Read access to the JSON of answers. The fields that an answer declares are methods of its view, so a misspelt field does not
//! compile:
//!
//! ```
//! use billing_api::{field, operation::Described, operations::GetDocument};
//!
//! let answer = GetDocument::answer(serde_json::json!({"document_number": "UB-INV-1"}));
//! assert_eq!(answer.view().document_number().to_text(), "UB-INV-1");
//! assert_eq!(field!(DocumentJson, customer.customer_name), "customer.customer_name");
//! # use billing_api::dto::documents::DocumentJson;
//! ```
//! ```compile_fail,E0599
//! # use billing_api::{operation::Described, operations::GetDocument};
//! # let answer = GetDocument::answer(serde_json::json!({}));
//! answer.view().document_numbr();
//! ```
//! ```compile_fail,E0599
//! # use billing_api::{dto::documents::DocumentJson, field};
//! field!(DocumentJson, document_numbr);
//! ```

use std::fmt;
use std::marker::PhantomData;

use serde_json::Value;

static NOTHING: Value = Value::Null;

/// An answer, with the type that declares its fields.
pub struct JsonAnswer<T = Value> {
    json: Value,
    declared: PhantomData<fn() -> T>,
}

/// An answer or a part of one, with the type that declares its fields. Content of `Value` has any fields.
pub struct JsonView<'v, T = Value> {
    json: &'v Value,
    declared: PhantomData<fn() -> T>,
}

/// The names of the fields of an answer, for [`field!`](crate::field).
pub struct FieldNames<T>(PhantomData<T>);

/// Returns the name of a field of an answer, or the path of a nested field. A misspelt field does not compile.
#[macro_export]
macro_rules! field {
    ($of:ty, $field:ident) => {
        $crate::json_view::FieldNames::<$of>::$field()
    };
    ($of:ty, $field:ident $(. $below:ident)+) => {{
        let _ = |view: $crate::json_view::JsonView<'_, $of>| drop(view.$field()$(.$below())+);
        concat!(stringify!($field) $(, ".", stringify!($below))+)
    }};
}

impl<T> From<Value> for JsonAnswer<T> {
    fn from(json: Value) -> Self {
        Self { json, declared: PhantomData }
    }
}

impl<T> JsonAnswer<T> {
    /// Returns the answer for reading.
    pub fn view(&self) -> JsonView<'_, T> {
        JsonView::of(&self.json)
    }

    /// Returns the JSON for changing it.
    pub fn json_mut(&mut self) -> &mut Value {
        &mut self.json
    }

    /// Returns the JSON.
    pub fn into_json(self) -> Value {
        self.json
    }
}

impl<T> Default for JsonAnswer<T> {
    fn default() -> Self {
        Self::from(Value::Null)
    }
}

impl<T> Clone for JsonAnswer<T> {
    fn clone(&self) -> Self {
        Self::from(self.json.clone())
    }
}

impl<T> fmt::Debug for JsonAnswer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.fmt(f)
    }
}

impl<T> Clone for JsonView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for JsonView<'_, T> {}

impl<T> fmt::Debug for JsonView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.fmt(f)
    }
}

impl<'v, T> JsonView<'v, T> {
    /// Wraps JSON.
    pub const fn of(json: &'v Value) -> Self {
        Self { json, declared: PhantomData }
    }

    /// Returns the JSON.
    pub const fn json(self) -> &'v Value {
        self.json
    }

    /// Returns the content without its type.
    pub const fn any(self) -> JsonView<'v> {
        JsonView::of(self.json)
    }

    /// Returns the content as that of another type: the request that an answer repeats, or a choice between answers.
    pub const fn read_as<U>(self) -> JsonView<'v, U> {
        JsonView::of(self.json)
    }

    /// Returns the field with a name. What is missing is null.
    pub(crate) fn field<F>(self, name: &str) -> JsonView<'v, F> {
        JsonView::of(self.json.get(name).unwrap_or(&NOTHING))
    }

    /// Returns whether the value is not null.
    pub fn is_there(self) -> bool {
        !self.json.is_null()
    }

    /// Returns whether the value is `true`.
    pub fn is_true(self) -> bool {
        self.json == &Value::Bool(true)
    }

    /// Returns whether the value is the given text.
    pub fn is(self, text: &str) -> bool {
        self.json.as_str() == Some(text)
    }

    /// Returns a string as it is, a number with its exact digits, and an empty string for a missing value.
    pub fn to_text(self) -> String {
        match self.json {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// Returns whether the value is a non-zero number.
    pub fn is_amount(self) -> bool {
        self.json.is_number() && self.to_text().bytes().any(|digit| matches!(digit, b'1'..=b'9'))
    }
}

impl<'v, T> JsonView<'v, Vec<T>> {
    /// Returns the elements.
    pub fn items(self) -> impl Iterator<Item = JsonView<'v, T>> + Clone {
        self.json.as_array().into_iter().flatten().map(JsonView::of)
    }

    /// Returns whether there is no element.
    pub fn is_empty(self) -> bool {
        self.items().next().is_none()
    }
}

impl<'v> JsonView<'v> {
    /// Returns the elements of an array.
    pub fn elements(self) -> impl Iterator<Item = Self> + Clone {
        self.json.as_array().into_iter().flatten().map(Self::of)
    }

    /// Returns the field with a name that only the answer knows, or null.
    pub fn named(self, name: &str) -> Self {
        self.field(name)
    }

    /// Returns the value at a path of names with dots between them.
    pub fn at_path(self, path: &str) -> Self {
        path.split('.').fold(self, Self::named)
    }

    /// Returns names and values of an object's fields in order.
    pub fn fields(self) -> impl Iterator<Item = (&'v str, Self)> {
        self.json.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), Self::of(value)))
    }
}

impl<'v, T> JsonView<'v, Box<T>> {
    /// Returns the content.
    pub const fn unboxed(self) -> JsonView<'v, T> {
        self.read_as()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_there_says_nothing() {
        let answer = json!({"a": {"b": 1}, "c": null, "d": "x"});
        let at: JsonView<'_> = JsonView::of(&answer);
        assert_eq!(at.at_path("a.b").to_text(), "1");
        assert!(!at.named("z").is_there() && !at.at_path("c.z").is_there() && !at.at_path("d.e").is_there());
        assert_eq!(at.at_path("c.z").to_text(), "");
        assert_eq!(at.named("d").elements().count(), 0);
    }

    #[test]
    fn zero_is_no_amount_in_any_form() {
        for (text, is_amount) in [("0", false), ("0.00", false), ("-0.10", true), ("12", true), ("\"5\"", false), ("null", false)]
        {
            let value: Value = serde_json::from_str(text).expect(text);
            assert_eq!(JsonView::<Value>::of(&value).is_amount(), is_amount, "{text}");
        }
    }
}
