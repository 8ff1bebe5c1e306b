//! Reads JSON objects field by field and notes everything that is wrong, each with its path, so that a caller mends a request
//! once. It knows forms and limits, not what a field is for.
//!
//! What was submitted is never repeated in a detail: it may be a secret.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::RangeInclusive;

use billing_domain::calendar::{Date, Timestamp, parse_date};
use billing_domain::decimal::{DecimalError, Digits};
use billing_domain::money::Currency;
use billing_domain::patch::Patch;
use billing_domain::text::{OneLine, Prose};
use billing_domain::violation::{Violation, Violations};
use rust_decimal::Decimal;
use serde_json::{Map, Value};
use validator::{ValidateEmail, ValidateLength, ValidateRange};

use super::nearest::nearest;
use super::reasons::Reason;
use super::words::Words;

/// The most violations one answer names. A body within its size limit could have a hundred thousand unknown fields.
const MAX_VIOLATIONS: usize = 1000;
/// What a whole number may be written with; its range is checked after.
const WHOLE: Digits = Digits { integer: 9, fraction: 0 };

/// Reads a body. `read` looks at every field before it gives up on any, and answers `None` only after something was noted.
///
/// # Errors
/// Everything that is wrong, in the order of the submitted document; what is missing comes after what is there.
pub(super) fn read<T>(body: &Value, read: impl FnOnce(Fields<'_>) -> Option<T>) -> Result<T, Violations> {
    let found = RefCell::new(Vec::new());
    let built = Node { value: body, at: At { parent: None, step: Step::Root }, found: &found }.object(read);
    match built {
        Some(value) if found.borrow().is_empty() => Ok(value),
        Some(_) | None => Err(in_document_order(found.into_inner(), body)),
    }
}

/// As [`read`], of a body that may be left out.
///
/// # Errors
/// As [`read`].
pub(super) fn read_optional<T>(body: Option<&Value>, reader: impl FnOnce(Fields<'_>) -> Option<T>) -> Result<T, Violations> {
    read(body.filter(|body| !body.is_null()).unwrap_or(&Value::Object(Map::new())), reader)
}

fn in_document_order(found: Vec<Violation>, body: &Value) -> Violations {
    // Finding a key's place is a walk over its object: once for each key, not for each violation below it.
    let mut places: HashMap<Vec<String>, usize> = HashMap::new();
    let mut placed: Vec<(Vec<usize>, Violation)> = Vec::with_capacity(found.len());
    for violation in found {
        let mut within = Some(body);
        let mut place = Vec::with_capacity(violation.path.len());
        for (depth, step) in violation.path.iter().enumerate() {
            let looked_up = *places.entry(violation.path[..=depth].to_vec()).or_insert_with(|| match within {
                Some(Value::Object(object)) => object.keys().position(|key| key == step).unwrap_or(usize::MAX),
                Some(Value::Array(_)) => step.parse().unwrap_or(usize::MAX),
                _ => usize::MAX,
            });
            place.push(looked_up);
            within = within.and_then(|value| match value {
                Value::Object(object) => object.get(step),
                Value::Array(items) => items.get(looked_up),
                _ => None,
            });
        }
        placed.push((place, violation));
    }
    placed.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut ordered = Violations::none();
    for (_, violation) in placed {
        let path: Vec<&str> = violation.path.iter().map(String::as_str).collect();
        ordered.add(&path, violation.code, violation.detail);
    }
    ordered
}

type Found = RefCell<Vec<Violation>>;

/// Where a value is; a path is only written out for a violation.
#[derive(Clone, Copy)]
struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Element(usize),
}

impl At<'_> {
    fn path(&self) -> Vec<String> {
        let mut path = self.parent.map_or_else(Vec::new, At::path);
        match self.step {
            Step::Root => {}
            Step::Field(name) => path.push(name.to_owned()),
            Step::Element(index) => path.push(index.to_string()),
        }
        path
    }

    fn note(&self, found: &Found, code: &'static str, detail: String) {
        let mut found = found.borrow_mut();
        if found.len() < MAX_VIOLATIONS {
            found.push(Violation { path: self.path(), code, detail });
        }
    }
}

/// A value that is there and isn't null.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    value: &'a Value,
    at: At<'a>,
    found: &'a Found,
}

impl<'a> Node<'a> {
    /// Notes what is wrong with it.
    pub(super) fn refuse<T>(self, code: &'static str, detail: impl Into<String>) -> Option<T> {
        self.at.note(self.found, code, detail.into());
        None
    }

    /// Takes what a rule of the domain says, or notes all it finds, below this value.
    pub(super) fn agreed<T>(self, rule: Result<T, Violations>) -> Option<T> {
        let refused = match rule {
            Ok(value) => return Some(value),
            Err(refused) => refused,
        };
        let path = self.at.path();
        let below = refused.into_iter().map(|violation| Violation { path: [path.clone(), violation.path].concat(), ..violation });
        let mut found = self.found.borrow_mut();
        let room = MAX_VIOLATIONS.saturating_sub(found.len());
        found.extend(below.take(room));
        None
    }

    /// The value as it was submitted.
    pub(super) fn json(self) -> &'a Value {
        self.value
    }

    /// The text, where it is one.
    pub(super) fn as_text(self) -> Option<&'a str> {
        self.value.as_str()
    }

    /// A text that a parser of the domain takes.
    pub(super) fn parsed<T, E: Reason>(self, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        match self.value {
            Value::String(text) => parse(text).map_or_else(|reason| self.refuse(reason.code(), reason.to_string()), Some),
            _ => self.refuse("wrong_type", "must be a string"),
        }
    }

    /// One line of text.
    pub(super) fn line(self) -> Option<OneLine> {
        self.parsed(OneLine::parse)
    }

    /// Text that may have line breaks.
    pub(super) fn prose(self) -> Option<Prose> {
        self.parsed(Prose::parse)
    }

    /// An e-mail address.
    pub(super) fn email(self) -> Option<OneLine> {
        let line = self.line()?;
        if line.as_str().validate_email() {
            return Some(line);
        }
        self.refuse("invalid_format", "must be an e-mail address such as billing@example.com")
    }

    /// An ISO 4217 code.
    pub(super) fn currency(self) -> Option<Currency> {
        self.parsed(Currency::from_code)
    }

    /// A calendar date.
    pub(super) fn date(self) -> Option<Date> {
        self.parsed(parse_date)
    }

    /// An instant with an offset.
    pub(super) fn timestamp(self) -> Option<Timestamp> {
        self.parsed(Timestamp::parse)
    }

    /// A decimal, from the exact text of a number or of a numeric string.
    pub(super) fn decimal<T>(self, parse: impl FnOnce(&str) -> Result<T, DecimalError>) -> Option<T> {
        let text = self.number_text()?;
        parse(text).map_or_else(|reason| self.refuse(reason.code(), reason.to_string()), Some)
    }

    /// A whole number within a range, from a number or a numeric string.
    pub(super) fn whole(self, range: RangeInclusive<u16>) -> Option<u16> {
        let detail = format!("must be a whole number from {} to {}", range.start(), range.end());
        self.whole_or(range, &detail)
    }

    /// As [`whole`](Self::whole), where the range isn't all that can be said.
    pub(super) fn whole_or<T>(self, range: RangeInclusive<T>, detail: &str) -> Option<T>
    where
        T: TryFrom<Decimal> + ValidateRange<T> + Copy,
    {
        let text = self.number_text()?;
        let number = match WHOLE.parse(text) {
            Ok(number) => T::try_from(number).ok(),
            Err(DecimalError::NotANumber) => return self.refuse("invalid_format", detail),
            Err(_) => None,
        };
        match number.filter(|number| number.validate_range(Some(*range.start()), Some(*range.end()), None, None)) {
            Some(number) => Some(number),
            None => self.refuse("out_of_range", detail),
        }
    }

    fn number_text(self) -> Option<&'a str> {
        match self.value {
            Value::Number(number) => Some(number.as_str()),
            Value::String(text) => Some(text),
            _ => self.refuse("wrong_type", "must be a number or a numeric string"),
        }
    }

    /// `true` or `false`.
    pub(super) fn boolean(self) -> Option<bool> {
        match self.value {
            Value::Bool(value) => Some(*value),
            _ => self.refuse("wrong_type", "must be true or false"),
        }
    }

    /// One of an enumeration's words.
    pub(super) fn word<W: Words>(self) -> Option<W::Meaning> {
        let Some(text) = self.as_text() else { return self.refuse("wrong_type", "must be a string") };
        match W::meaning(text) {
            Some(meaning) => Some(meaning),
            None => self.refuse("invalid_value", format!("must be one of {}", W::all().join(", "))),
        }
    }

    /// The elements of an array, all of them read; an array that is too long isn't looked into.
    pub(super) fn list<'s, T>(&'s self, max: usize, read: impl Fn(Node<'s>) -> Option<T>) -> Option<Vec<T>> {
        let Value::Array(elements) = self.value else { return self.refuse("wrong_type", "must be an array") };
        if !elements.validate_length(None, u64::try_from(max).ok(), None) {
            return self.refuse("too_many", format!("must have at most {max} elements"));
        }
        let element =
            |(i, value)| read(Node { value, at: At { parent: Some(&self.at), step: Step::Element(i) }, found: self.found });
        let all: Vec<Option<T>> = elements.iter().enumerate().map(element).collect();
        all.into_iter().collect()
    }

    /// An object, by its fields.
    pub(super) fn object<T>(self, read: impl FnOnce(Fields<'_>) -> Option<T>) -> Option<T> {
        let Value::Object(object) = self.value else { return self.refuse("wrong_type", "must be an object") };
        read(Fields { object, at: self.at, found: self.found })
    }
}

/// The fields of an object. A null counts as left out, except where an edit clears a value with it.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    object: &'a Map<String, Value>,
    at: At<'a>,
    found: &'a Found,
}

impl<'a> Fields<'a> {
    /// A field that has to be there.
    pub(super) fn required<'s, T: Clone>(&'s self, name: &'s str, parse: impl FnOnce(Node<'s>) -> Option<T>) -> Option<T> {
        self.required_or(name, None, parse)
    }

    /// A field that may be left out.
    pub(super) fn optional<'s, T: Clone>(&'s self, name: &'s str, parse: impl FnOnce(Node<'s>) -> Option<T>) -> Option<T> {
        self.optional_or(name, None, parse)
    }

    /// A field that always has a value. In an edit: left out, the present value is kept; null is refused.
    pub(super) fn required_or<'s, T: Clone>(
        &'s self,
        name: &'s str,
        present: Option<&T>,
        parse: impl FnOnce(Node<'s>) -> Option<T>,
    ) -> Option<T> {
        match (self.object.get(name), present) {
            (None, Some(present)) => Some(present.clone()),
            (None, None) => self.refuse(name, "required", "must be given"),
            (Some(Value::Null), Some(_)) => self.refuse(name, "required", "must not be null, because it can't be cleared"),
            (Some(Value::Null), None) => self.refuse(name, "required", "must be given, not null"),
            (Some(value), _) => self.parse(name, value, parse),
        }
    }

    /// A field without need of a value. In an edit: left out, the present value is kept; null clears it.
    pub(super) fn optional_or<'s, T: Clone>(
        &'s self,
        name: &'s str,
        present: Option<&T>,
        parse: impl FnOnce(Node<'s>) -> Option<T>,
    ) -> Option<T> {
        match self.object.get(name) {
            None => present.cloned(),
            Some(Value::Null) => None,
            Some(value) => self.parse(name, value, parse),
        }
    }

    /// A field with a default. In an edit: left out, the present value is kept; null brings the default back.
    pub(super) fn defaulted<'s, T: Clone>(
        &'s self,
        name: &'s str,
        present: Option<&T>,
        default: T,
        parse: impl FnOnce(Node<'s>) -> Option<T>,
    ) -> T {
        match self.object.get(name) {
            None => present.cloned().unwrap_or(default),
            Some(Value::Null) => default,
            Some(value) => self.parse(name, value, parse).unwrap_or(default),
        }
    }

    /// A field of an edit whose present value isn't known here: left out, it is kept; null clears it.
    pub(super) fn patch<'s, T: Clone>(&'s self, name: &'s str, parse: impl FnOnce(Node<'s>) -> Option<T>) -> Patch<T> {
        match self.object.get(name) {
            None => Patch::Keep,
            Some(Value::Null) => Patch::Clear,
            // What can't be parsed is noted; the whole is refused then.
            Some(value) => self.parse(name, value, parse).map_or(Patch::Keep, Patch::Set),
        }
    }

    /// A field of an edit that can be left out, but not cleared.
    pub(super) fn kept_or<'s, T: Clone>(&'s self, name: &'s str, parse: impl FnOnce(Node<'s>) -> Option<T>) -> Option<T> {
        if self.object.contains_key(name) { self.required_or(name, None, parse) } else { None }
    }

    /// The reference of what is edited: it may be repeated, but not changed.
    pub(super) fn unchanged(&self, name: &str, reference: &str) {
        match self.object.get(name) {
            None => {}
            Some(Value::String(given)) if given == reference => {}
            Some(_) => {
                let detail = "must be the reference in the path or left out, because references never change";
                self.refuse::<()>(name, "not_changeable", detail);
            }
        }
    }

    /// Whether a field is there and isn't null.
    pub(super) fn has(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(|value| !value.is_null())
    }

    /// Notes that a field is wrong whatever its value is.
    pub(super) fn refuse<T>(&self, name: &str, code: &'static str, detail: impl Into<String>) -> Option<T> {
        At { parent: Some(&self.at), step: Step::Field(name) }.note(self.found, code, detail.into());
        None
    }

    /// Takes what a rule of the domain says, or notes all it finds, below the object.
    pub(super) fn agreed<T>(&self, rule: Result<T, Violations>) -> Option<T> {
        Node { value: &Value::Null, at: self.at, found: self.found }.agreed(rule)
    }

    /// Whether nothing is noted of the whole body yet: what several fields say together can be looked at.
    pub(super) fn is_faultless(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// Refuses each of these fields that is there and isn't null.
    pub(super) fn none_of(&self, names: &[&str], detail: &str) {
        for name in names.iter().filter(|name| self.has(name)) {
            self.refuse::<()>(name, "not_allowed", detail);
        }
    }

    /// Refuses every field but these: where a misspelling would bill wrongly.
    pub(super) fn only(&self, known: &[&str]) {
        self.only_beside(known, &[]);
    }

    /// As [`only`](Self::only), where fields that our own answers add are taken back and ignored.
    pub(super) fn only_beside(&self, known: &[&str], answered: &[&str]) {
        let is_known = |name: &str| known.contains(&name) || answered.contains(&name);
        for name in self.object.keys().filter(|name| !is_known(name)) {
            if self.found.borrow().len() >= MAX_VIOLATIONS {
                return;
            }
            let detail = match nearest(name, known) {
                Some(nearest) => format!("is no field here; the nearest is {nearest}"),
                None => format!("must be one of {}", known.join(", ")),
            };
            self.refuse::<()>(name, "unknown_field", detail);
        }
    }

    /// Every field, in the order given.
    pub(super) fn entries<'s>(&'s self) -> impl ExactSizeIterator<Item = (&'a str, Node<'s>)> {
        self.object.iter().map(|(name, value)| {
            (name.as_str(), Node { value, at: At { parent: Some(&self.at), step: Step::Field(name) }, found: self.found })
        })
    }

    fn parse<'s, T>(&'s self, name: &'s str, value: &'s Value, parse: impl FnOnce(Node<'s>) -> Option<T>) -> Option<T> {
        parse(Node { value, at: At { parent: Some(&self.at), step: Step::Field(name) }, found: self.found })
    }
}
