//! Reads JSON objects field by field and notes everything that is wrong, each with its path, so that a caller mends a request
//! once. It knows forms and limits, not what a field is for.
//!
//! What was submitted is never repeated in a detail: it may be a secret.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::RangeInclusive;

use billing_domain::calendar::Timestamp;
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

/// An enumeration that can be read.
pub(crate) trait WireEnum {
    /// What a word stands for.
    type Meaning;

    /// What this word stands for.
    fn meaning(word: &str) -> Option<Self::Meaning>;

    /// The words a user is told of.
    fn all() -> Vec<&'static str>;
}

/// The most violations one answer names. A body within its size limit could have a hundred thousand unknown fields.
const MAX_VIOLATIONS: usize = 1000;
/// What a whole number may be written with; its range is checked after.
const WHOLE: Digits = Digits { integer: 9, fraction: 0 };

/// Reads a body. `read` looks at every field before it gives up on any, and answers `None` only after something was noted.
///
/// # Errors
/// Everything that is wrong, in the order of the submitted document; what is missing comes after what is there.
pub(crate) fn read<T>(body: &Value, read: impl FnOnce(Fields<'_>) -> Option<T>) -> Result<T, Violations> {
    let found = FoundViolations { all: RefCell::default(), source: Source::Body };
    complete(Node { value: body, at: At::ROOT, found: &found }.object(read), found, body)
}

/// Reads the parameters of a query, as texts; `twice` are the names that were given more than once.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_query<T>(
    parameters: Map<String, Value>,
    twice: &[&str],
    read: impl FnOnce(Fields<'_>) -> Option<T>,
) -> Result<T, Violations> {
    let found = FoundViolations { all: RefCell::default(), source: Source::Query };
    let fields = Fields { object: &parameters, declared: &[], at: At::ROOT, found: &found };
    for name in twice {
        fields.refuse::<()>(name, "duplicate", "must be given once");
    }
    let built = read(fields);
    complete(built, found, &Value::Object(parameters))
}

fn complete<T>(built: Option<T>, found: FoundViolations, source: &Value) -> Result<T, Violations> {
    let found = found.all.into_inner();
    match built {
        Some(value) if found.is_empty() => Ok(value),
        Some(_) | None => Err(in_document_order(found, source)),
    }
}

fn in_document_order(found: Vec<(Violation, usize)>, body: &Value) -> Violations {
    // Finding a key's place is a walk over its object: once for each key, not for each violation below it.
    let mut places: HashMap<Vec<String>, usize> = HashMap::new();
    let mut placed: Vec<(Vec<usize>, usize, Violation)> = Vec::with_capacity(found.len());
    for (violation, declared) in found {
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
        placed.push((place, declared, violation));
    }
    // What is missing comes in the order in which it was declared.
    placed.sort_by(|(one, first, _), (other, second, _)| one.cmp(other).then(first.cmp(second)));
    let mut ordered = Violations::none();
    for (.., violation) in placed {
        let path: Vec<&str> = violation.path.iter().map(String::as_str).collect();
        ordered.add(&path, violation.code, violation.detail);
    }
    ordered
}

/// Where what is read comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Body,
    Query,
}

/// What was found to be wrong.
struct FoundViolations {
    /// Each with the place that its field was declared at.
    all: RefCell<Vec<(Violation, usize)>>,
    source: Source,
}

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
    const ROOT: Self = At { parent: None, step: Step::Root };

    fn path(&self) -> Vec<String> {
        let mut path = self.parent.map_or_else(Vec::new, At::path);
        match self.step {
            Step::Root => {}
            Step::Field(name) => path.push(name.to_owned()),
            Step::Element(index) => path.push(index.to_string()),
        }
        path
    }

    fn note(&self, found: &FoundViolations, declared: usize, code: &'static str, detail: String) {
        let mut found = found.all.borrow_mut();
        if found.len() < MAX_VIOLATIONS {
            found.push((Violation { path: self.path(), code, detail }, declared));
        }
    }
}

/// A value that is there and isn't null.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    value: &'a Value,
    at: At<'a>,
    found: &'a FoundViolations,
}

impl<'a> Node<'a> {
    /// Notes what is wrong with it.
    pub(crate) fn refuse<T>(self, code: &'static str, detail: impl Into<String>) -> Option<T> {
        self.at.note(self.found, 0, code, detail.into());
        None
    }

    /// Takes what a parser of the domain made of it, or notes why it made nothing.
    pub(crate) fn taken<T, E: Reason>(self, parsed: Result<T, E>) -> Option<T> {
        parsed.map_or_else(|reason| self.refuse(reason.code(), reason.to_string()), Some)
    }

    /// Takes what a rule of the domain says, or notes all it finds, below this value.
    pub(crate) fn agreed<T>(self, rule: Result<T, Violations>) -> Option<T> {
        let refused = match rule {
            Ok(value) => return Some(value),
            Err(refused) => refused,
        };
        let path = self.at.path();
        let below = refused.into_iter().map(|violation| Violation { path: [path.clone(), violation.path].concat(), ..violation });
        let mut found = self.found.all.borrow_mut();
        let room = MAX_VIOLATIONS.saturating_sub(found.len());
        found.extend(below.take(room).map(|violation| (violation, 0)));
        None
    }

    /// Reads the object that a text is the JSON of, in the text's place.
    pub(crate) fn unpacked<T>(self, text: &str, read: impl FnOnce(Node<'_>) -> Option<T>) -> Option<T> {
        match billing_json::read(text.as_bytes()) {
            Ok(value) if value.is_object() => read(Node { value: &value, ..self }),
            Ok(_) => self.refuse("wrong_type", "must be an object, or a string with the JSON of one"),
            Err(error) => {
                self.refuse("wrong_type", format!("must be an object, or a string with the JSON of one: {}", error.detail))
            }
        }
    }

    /// The value as it was submitted.
    pub(crate) fn json(self) -> &'a Value {
        self.value
    }

    /// The text, where it is one.
    pub(crate) fn as_text(self) -> Option<&'a str> {
        self.value.as_str()
    }

    /// Any text.
    pub(crate) fn text(self) -> Option<&'a str> {
        self.as_text().or_else(|| self.refuse("wrong_type", "must be a string"))
    }

    /// A text that a parser of the domain takes.
    pub(crate) fn parsed<T, E: Reason>(self, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        self.taken(parse(self.text()?))
    }

    /// One line of text.
    pub(crate) fn line(self) -> Option<OneLine> {
        self.parsed(OneLine::parse)
    }

    /// Text that may have line breaks.
    pub(crate) fn prose(self) -> Option<Prose> {
        self.parsed(Prose::parse)
    }

    /// An e-mail address.
    pub(crate) fn email(self) -> Option<OneLine> {
        let line = self.line()?;
        if line.as_str().validate_email() {
            return Some(line);
        }
        self.refuse("invalid_format", "must be an e-mail address such as billing@example.com")
    }

    /// An ISO 4217 code.
    pub(crate) fn currency(self) -> Option<Currency> {
        match (self.as_text().map(Currency::from_code), self.found.source) {
            (Some(Err(reason)), Source::Query) => self.refuse("invalid_value", reason.to_string()),
            _ => self.parsed(Currency::from_code),
        }
    }

    /// An instant with an offset.
    pub(crate) fn timestamp(self) -> Option<Timestamp> {
        match (self.as_text().map(Timestamp::parse), self.found.source) {
            (Some(Err(reason)), Source::Query) => self.refuse(reason.code(), format!("{reason}; a + is sent as %2B")),
            _ => self.parsed(Timestamp::parse),
        }
    }

    /// A decimal, from the exact text of a number or of a numeric string.
    pub(crate) fn decimal<T>(self, parse: impl FnOnce(&str) -> Result<T, DecimalError>) -> Option<T> {
        self.taken(parse(self.number_text()?))
    }

    /// A whole number within a range, from a number or a numeric string.
    pub(crate) fn whole(self, range: RangeInclusive<u16>) -> Option<u16> {
        let detail = format!("must be a whole number from {} to {}", range.start(), range.end());
        self.whole_or(range, &detail)
    }

    /// As [`whole`](Self::whole), where the range isn't all that can be said.
    pub(crate) fn whole_or<T>(self, range: RangeInclusive<T>, detail: &str) -> Option<T>
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
    pub(crate) fn boolean(self) -> Option<bool> {
        match (self.value, self.found.source) {
            (Value::Bool(value), _) => Some(*value),
            (Value::String(text), Source::Query) if text == "true" => Some(true),
            (Value::String(text), Source::Query) if text == "false" => Some(false),
            (_, Source::Query) => self.refuse("invalid_value", "must be true or false"),
            (_, Source::Body) => self.refuse("wrong_type", "must be true or false"),
        }
    }

    /// One of an enumeration's words.
    pub(crate) fn word<W: WireEnum>(self) -> Option<W::Meaning> {
        match W::meaning(self.text()?) {
            Some(meaning) => Some(meaning),
            None => self.refuse("invalid_value", format!("must be one of {}", W::all().join(", "))),
        }
    }

    /// The elements of an array, all of them read; an array that is too long isn't looked into.
    pub(crate) fn list<'s, T>(&'s self, max: usize, read: impl Fn(Node<'s>) -> Option<T>) -> Option<Vec<T>> {
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
    pub(crate) fn object<T>(self, read: impl FnOnce(Fields<'_>) -> Option<T>) -> Option<T> {
        let Value::Object(object) = self.value else { return self.refuse("wrong_type", "must be an object") };
        read(Fields { object, declared: &[], at: self.at, found: self.found })
    }
}

/// The fields of an object. A null counts as left out, except where an edit clears a value with it.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    object: &'a Map<String, Value>,
    declared: &'a [&'a str],
    at: At<'a>,
    found: &'a FoundViolations,
}

impl<'a> Fields<'a> {
    /// The same, of an object whose fields were declared in an order.
    pub(crate) fn declared_as(self, declared: &'a [&'a str]) -> Self {
        Self { declared, ..self }
    }

    /// A field that has to be there.
    pub(crate) fn required<'s, T>(&'s self, name: &'s str, parse: impl FnOnce(Node<'s>) -> Option<T>) -> Option<T> {
        match (self.object.get(name), self.found.source) {
            (None, Source::Query) => self.refuse(name, "required", "must be given, once"),
            (None, Source::Body) => self.refuse(name, "required", "must be given"),
            (Some(Value::Null), _) => self.refuse(name, "required", "must be given, not null"),
            (Some(value), _) => parse(self.node(name, value)),
        }
    }

    /// A field that may be left out; `None` after something was noted.
    pub(crate) fn optional<'s, T>(&'s self, name: &'s str, parse: impl FnOnce(Node<'s>) -> Option<T>) -> Option<Option<T>> {
        match self.object.get(name) {
            None | Some(Value::Null) => Some(None),
            Some(value) => parse(self.node(name, value)).map(Some),
        }
    }

    /// A field of an edit that may be left out, which keeps what is there, or be cleared by null; `None` after something was noted.
    pub(crate) fn patch<'s, T>(&'s self, name: &'s str, parse: impl FnOnce(Node<'s>) -> Option<T>) -> Option<Patch<T>> {
        match self.object.get(name) {
            None => Some(Patch::Keep),
            Some(Value::Null) => Some(Patch::Clear),
            Some(value) => parse(self.node(name, value)).map(Patch::Set),
        }
    }

    /// A field of an edit that can be left out, but not cleared; `None` after something was noted.
    pub(crate) fn kept<'s, T>(&'s self, name: &'s str, parse: impl FnOnce(Node<'s>) -> Option<T>) -> Option<Option<T>> {
        match self.object.get(name) {
            None => Some(None),
            Some(Value::Null) => self.refuse(name, "required", "must not be null, because it can't be cleared"),
            Some(value) => parse(self.node(name, value)).map(Some),
        }
    }

    /// The reference of what is edited: it may be repeated, but not changed.
    pub(crate) fn unchanged(&self, name: &str, reference: &str) {
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
    pub(crate) fn has(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(|value| !value.is_null())
    }

    /// Notes that a field is wrong whatever its value is.
    pub(crate) fn refuse<T>(&self, name: &str, code: &'static str, detail: impl Into<String>) -> Option<T> {
        let declared = self.declared.iter().position(|declared| *declared == name).unwrap_or(usize::MAX);
        At { parent: Some(&self.at), step: Step::Field(name) }.note(self.found, declared, code, detail.into());
        None
    }

    /// Takes what a rule of the domain says, or notes all it finds, below the object.
    pub(crate) fn agreed<T>(&self, rule: Result<T, Violations>) -> Option<T> {
        Node { value: &Value::Null, at: self.at, found: self.found }.agreed(rule)
    }

    /// Whether a field is `true`.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.object.get(name) == Some(&Value::Bool(true))
    }

    /// Whether a field is there and null.
    pub(crate) fn is_null(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(Value::is_null)
    }

    /// The text of a field, where it is one.
    pub(crate) fn peek(&self, name: &str) -> Option<&'a str> {
        self.object.get(name).and_then(Value::as_str)
    }

    /// Whether a field is this word.
    pub(crate) fn says(&self, name: &str, word: &str) -> bool {
        self.peek(name) == Some(word)
    }

    /// Refuses each of these fields that is there and isn't null.
    pub(crate) fn none_of(&self, names: &[&str], detail: &str) {
        for name in names.iter().filter(|name| self.has(name)) {
            self.refuse::<()>(name, "not_allowed", detail);
        }
    }

    /// Refuses every field but these, and but those that our own answers add, which are taken back and ignored.
    pub(crate) fn only_beside(&self, known: &[&str], answered: &[String]) {
        let is_known = |name: &str| known.contains(&name) || answered.iter().any(|answered| answered == name);
        let (code, what) = match self.found.source {
            Source::Body => ("unknown_field", "field"),
            Source::Query => ("unknown_parameter", "parameter"),
        };
        for name in self.object.keys().filter(|name| !is_known(name)) {
            if self.found.all.borrow().len() >= MAX_VIOLATIONS {
                return;
            }
            let detail = match (nearest(name, known), known) {
                (Some(nearest), _) => format!("is no {what} here; the nearest is {nearest}"),
                (None, []) => format!("is no {what} here: none is taken"),
                (None, _) => format!("must be one of {}", known.join(", ")),
            };
            self.refuse::<()>(name, code, detail);
        }
    }

    /// Every field, in the order given.
    pub(crate) fn entries<'s>(&'s self) -> impl ExactSizeIterator<Item = (&'a str, Node<'s>)> {
        self.object.iter().map(|(name, value)| (name.as_str(), self.node(name, value)))
    }

    fn node<'s>(&'s self, name: &'s str, value: &'s Value) -> Node<'s> {
        Node { value, at: At { parent: Some(&self.at), step: Step::Field(name) }, found: self.found }
    }
}
