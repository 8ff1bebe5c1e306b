//! Reads JSON objects field by field and collects all violations with their paths, so that a caller can correct a request
//! in one step. The module knows forms and limits but not the meaning of fields.
//!
//! Details never repeat submitted values, which can be secret.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::RangeInclusive;

use billing_domain::calendar::Timestamp;
use billing_domain::decimal::{DecimalError, Digits};
use billing_domain::money::Currency;
use billing_domain::patch::Patch;
use billing_domain::text::{OneLine, Prose};
use billing_domain::violation::{MAX_LISTED_VIOLATIONS, Violation, Violations};
use billing_json::nearest;
use rust_decimal::Decimal;
use serde_json::{Map, Value};
use validator::{ValidateEmail, ValidateLength, ValidateRange};

use super::reasons::Reason;

/// An enumeration that requests can contain.
pub trait WireEnum {
    /// The meaning of a word.
    type Meaning;

    /// Returns the meaning of a word.
    fn meaning(word: &str) -> Option<Self::Meaning>;

    /// Returns the documented words.
    fn all() -> Vec<&'static str>;
}

/// Maximum number of listed violations of all values of a body that are read separately, such as the events of a batch. Beyond
/// it, each value lists only its first violation, so that ten thousand invalid events do not fill the memory.
pub const MAX_LISTED_SEPARATELY: usize = 1000;
/// Digits of whole numbers. The range is checked later.
const WHOLE: Digits = Digits { integer: 9, fraction: 0 };

/// Reads a body. `read` must read all fields, also after a violation, and return `None` only after a violation.
///
/// # Errors
/// Returns the violations in document order; missing fields come after present ones. Violations beyond
/// [`MAX_LISTED_VIOLATIONS`] are counted.
pub fn read<T>(body: &Value, read: impl FnOnce(Fields<'_>) -> Option<T>) -> Result<T, Violations> {
    let found = FoundViolations::of(Source::Body);
    complete(Node { value: body, at: At::ROOT, found: &found }.object(read), found, body)
}

/// Reads the parameters of a query as strings. `twice` contains the names that occur more than once.
///
/// # Errors
/// Returns all violations, as [`read`] does.
pub fn read_query<T>(
    parameters: Map<String, Value>,
    twice: &[&str],
    read: impl FnOnce(Fields<'_>) -> Option<T>,
) -> Result<T, Violations> {
    let found = FoundViolations::of(Source::Query);
    let fields = Fields { object: &parameters, declared: &[], at: At::ROOT, found: &found };
    for name in twice {
        fields.refuse::<()>(name, "duplicate", "must be given once");
    }
    let built = read(fields);
    complete(built, found, &Value::Object(parameters))
}

fn complete<T>(built: Option<T>, found: FoundViolations, source: &Value) -> Result<T, Violations> {
    let FoundViolations { all, unlisted, .. } = found;
    let all = all.into_inner();
    match built {
        Some(value) if all.is_empty() => Ok(value),
        Some(_) | None => {
            let mut ordered = in_document_order(all, source);
            ordered.add_unlisted(unlisted.get());
            Err(ordered)
        }
    }
}

fn in_document_order(found: Vec<(Violation, usize)>, body: &Value) -> Violations {
    // Finding the position of a key scans its object, so it is done once per key, not once per violation.
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
    // Missing fields are in declaration order.
    placed.sort_by(|(one, first, _), (other, second, _)| one.cmp(other).then(first.cmp(second)));
    let mut ordered = Violations::none();
    for (.., violation) in placed {
        let path: Vec<&str> = violation.path.iter().map(String::as_str).collect();
        ordered.add(&path, violation.code, violation.detail);
    }
    ordered
}

/// The source of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Body,
    Query,
}

/// The violations found so far.
struct FoundViolations {
    /// Violations with the declaration position of their field.
    all: RefCell<Vec<(Violation, usize)>>,
    /// Number of violations that were found after the list was full.
    unlisted: Cell<usize>,
    /// Number of listed violations of values that are read separately.
    listed_separately: Cell<usize>,
    source: Source,
}

impl FoundViolations {
    fn of(source: Source) -> Self {
        Self { all: RefCell::default(), unlisted: Cell::default(), listed_separately: Cell::default(), source }
    }

    /// Returns whether further violations are only counted.
    fn is_full(&self) -> bool {
        self.all.borrow().len() >= MAX_LISTED_VIOLATIONS
    }

    fn add_unlisted(&self, more: usize) {
        self.unlisted.set(self.unlisted.get().saturating_add(more));
    }
}

/// The location of a value. Its path is built only for a violation.
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

    /// Records a violation. If the list is full, only counts it and builds neither its path nor its detail.
    fn note(&self, found: &FoundViolations, declared: usize, code: &'static str, detail: impl Into<String>) {
        if found.is_full() {
            found.add_unlisted(1);
        } else {
            found.all.borrow_mut().push((Violation { path: self.path(), code, detail: detail.into() }, declared));
        }
    }
}

/// A value that is present and not null.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    value: &'a Value,
    at: At<'a>,
    found: &'a FoundViolations,
}

impl<'a> Node<'a> {
    /// Records a violation of the value.
    pub fn refuse<T>(self, code: &'static str, detail: impl Into<String>) -> Option<T> {
        self.at.note(self.found, 0, code, detail);
        None
    }

    /// Returns the result of a domain parser, or records its error.
    pub fn taken<T, E: Reason>(self, parsed: Result<T, E>) -> Option<T> {
        parsed.map_or_else(|reason| self.refuse(reason.code(), reason.to_string()), Some)
    }

    /// Returns the result of a domain rule, or records its violations below this value.
    pub fn agreed<T>(self, rule: Result<T, Violations>) -> Option<T> {
        let refused = match rule {
            Ok(value) => return Some(value),
            Err(refused) => refused,
        };
        let path = self.at.path();
        let mut found = self.found.all.borrow_mut();
        let room = MAX_LISTED_VIOLATIONS.saturating_sub(found.len());
        self.found.add_unlisted(refused.unlisted() + refused.iter().count().saturating_sub(room));
        let below = refused.into_iter().map(|violation| Violation { path: [path.clone(), violation.path].concat(), ..violation });
        found.extend(below.take(room).map(|violation| (violation, 0)));
        None
    }

    /// Reads a value that has its own result, such as an event of a batch. After [`MAX_LISTED_SEPARATELY`] violations of such
    /// values, each further value lists only its first violation and counts the others.
    ///
    /// # Errors
    /// Returns the violations of the value. They are not violations of the body.
    pub fn read_separately<T>(self, read: impl FnOnce(&Value) -> Result<T, Violations>) -> Result<T, Violations> {
        read(self.value).map_err(|mut refused| {
            let listed = self.found.listed_separately.get() + refused.iter().count();
            self.found.listed_separately.set(listed);
            if listed > MAX_LISTED_SEPARATELY {
                refused.truncate(1);
            }
            refused
        })
    }

    /// Reads the object whose JSON the string contains, at the string's location.
    pub fn unpacked<T>(self, text: &str, read: impl FnOnce(Node<'_>) -> Option<T>) -> Option<T> {
        match billing_json::read(text.as_bytes()) {
            Ok(value) if value.is_object() => read(Node { value: &value, ..self }),
            Ok(_) => self.refuse("wrong_type", "must be an object, or a string that contains a JSON object"),
            Err(error) => {
                self.refuse("wrong_type", format!("must be an object, or a string that contains a JSON object: {}", error.detail))
            }
        }
    }

    /// Returns the value as submitted.
    pub fn json(self) -> &'a Value {
        self.value
    }

    /// Returns the string, if the value is one.
    pub fn as_text(self) -> Option<&'a str> {
        self.value.as_str()
    }

    /// Reads a string.
    pub fn text(self) -> Option<&'a str> {
        self.as_text().or_else(|| self.refuse("wrong_type", "must be a string"))
    }

    /// Reads a string with a domain parser.
    pub fn parsed<T, E: Reason>(self, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        self.taken(parse(self.text()?))
    }

    /// Reads one line of text.
    pub fn line(self) -> Option<OneLine> {
        self.parsed(OneLine::parse)
    }

    /// Reads text with line breaks.
    pub fn prose(self) -> Option<Prose> {
        self.parsed(Prose::parse)
    }

    /// Reads an e-mail address.
    pub fn email(self) -> Option<OneLine> {
        let line = self.line()?;
        if line.as_str().validate_email() {
            return Some(line);
        }
        self.refuse("invalid_format", "must be an e-mail address such as billing@example.com")
    }

    /// Reads an ISO 4217 code.
    pub fn currency(self) -> Option<Currency> {
        match (self.as_text().map(Currency::from_code), self.found.source) {
            (Some(Err(reason)), Source::Query) => self.refuse("invalid_value", reason.to_string()),
            _ => self.parsed(Currency::from_code),
        }
    }

    /// Reads a timestamp with an offset.
    pub fn timestamp(self) -> Option<Timestamp> {
        match (self.as_text().map(Timestamp::parse), self.found.source) {
            (Some(Err(reason)), Source::Query) => self.refuse(reason.code(), format!("{reason}; a + is sent as %2B")),
            _ => self.parsed(Timestamp::parse),
        }
    }

    /// Reads a decimal from the exact text of a number or numeric string.
    pub fn decimal<T>(self, parse: impl FnOnce(&str) -> Result<T, DecimalError>) -> Option<T> {
        self.taken(parse(self.number_text()?))
    }

    /// Reads a whole number within a range from a number or numeric string.
    pub fn whole(self, range: RangeInclusive<u16>) -> Option<u16> {
        let detail = format!("must be a whole number from {} to {}", range.start(), range.end());
        self.whole_or(range, &detail)
    }

    /// Like [`whole`](Self::whole), with a detail of its own.
    pub fn whole_or<T>(self, range: RangeInclusive<T>, detail: &str) -> Option<T>
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

    /// Reads `true` or `false`.
    pub fn boolean(self) -> Option<bool> {
        match (self.value, self.found.source) {
            (Value::Bool(value), _) => Some(*value),
            (Value::String(text), Source::Query) if text == "true" => Some(true),
            (Value::String(text), Source::Query) if text == "false" => Some(false),
            (_, Source::Query) => self.refuse("invalid_value", "must be true or false"),
            (_, Source::Body) => self.refuse("wrong_type", "must be true or false"),
        }
    }

    /// Reads a word of an enumeration.
    pub fn word<W: WireEnum>(self) -> Option<W::Meaning> {
        match W::meaning(self.text()?) {
            Some(meaning) => Some(meaning),
            None => self.refuse("invalid_value", format!("must be one of {}", W::all().join(", "))),
        }
    }

    /// Reads all elements of an array. An array that is too long is not read.
    pub fn list<'s, T>(&'s self, max: usize, read: impl Fn(Node<'s>) -> Option<T>) -> Option<Vec<T>> {
        self.list_or(max, "", read)
    }

    /// Like [`list`](Self::list). `remedy` is the end of the sentence about an array that is too long.
    pub fn list_or<'s, T>(&'s self, max: usize, remedy: &str, read: impl Fn(Node<'s>) -> Option<T>) -> Option<Vec<T>> {
        let Value::Array(elements) = self.value else { return self.refuse("wrong_type", "must be an array") };
        if !elements.validate_length(None, u64::try_from(max).ok(), None) {
            return self.refuse("too_many", format!("must have at most {max} elements{remedy}"));
        }
        let element =
            |(i, value)| read(Node { value, at: At { parent: Some(&self.at), step: Step::Element(i) }, found: self.found });
        let all: Vec<Option<T>> = elements.iter().enumerate().map(element).collect();
        all.into_iter().collect()
    }

    /// Reads an object by its fields.
    pub fn object<T>(self, read: impl FnOnce(Fields<'_>) -> Option<T>) -> Option<T> {
        let Value::Object(object) = self.value else { return self.refuse("wrong_type", "must be an object") };
        read(Fields { object, declared: &[], at: self.at, found: self.found })
    }
}

/// The fields of an object. A null counts as omitted, unless it clears a value in an edit.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    object: &'a Map<String, Value>,
    declared: &'a [&'a str],
    at: At<'a>,
    found: &'a FoundViolations,
}

impl<'a> Fields<'a> {
    /// Sets the declaration order of the fields.
    pub fn declared_as(self, declared: &'a [&'a str]) -> Self {
        Self { declared, ..self }
    }

    /// Reads a required field.
    pub fn required<'s, T>(&'s self, name: &'s str, parse: impl FnOnce(Node<'s>) -> Option<T>) -> Option<T> {
        match (self.object.get(name), self.found.source) {
            (None, Source::Query) => self.refuse(name, "required", "must be given, once"),
            (None, Source::Body) => self.refuse(name, "required", "must be given"),
            (Some(Value::Null), _) => self.refuse(name, "required", "must be given, not null"),
            (Some(value), _) => parse(self.node(name, value)),
        }
    }

    /// Reads an optional field. Returns `None` after a violation.
    pub fn optional<'s, T>(&'s self, name: &'s str, parse: impl FnOnce(Node<'s>) -> Option<T>) -> Option<Option<T>> {
        match self.object.get(name) {
            None | Some(Value::Null) => Some(None),
            Some(value) => parse(self.node(name, value)).map(Some),
        }
    }

    /// Reads a field of an edit that can be omitted, which leaves the value unchanged, or cleared with null. Returns
    /// `None` after a violation.
    pub fn patch<'s, T>(&'s self, name: &'s str, parse: impl FnOnce(Node<'s>) -> Option<T>) -> Option<Patch<T>> {
        match self.object.get(name) {
            None => Some(Patch::Keep),
            Some(Value::Null) => Some(Patch::Clear),
            Some(value) => parse(self.node(name, value)).map(Patch::Set),
        }
    }

    /// Reads a field of an edit that can be omitted but not cleared. Returns `None` after a violation.
    pub fn kept<'s, T>(&'s self, name: &'s str, parse: impl FnOnce(Node<'s>) -> Option<T>) -> Option<Option<T>> {
        match self.object.get(name) {
            None => Some(None),
            Some(Value::Null) => self.refuse(name, "required", "must not be null, because it cannot be cleared"),
            Some(value) => parse(self.node(name, value)).map(Some),
        }
    }

    /// Checks the reference of the edited object, which an edit can repeat but not change.
    pub fn unchanged(&self, name: &str, reference: &str) {
        match self.object.get(name) {
            None => {}
            Some(Value::String(given)) if given == reference => {}
            Some(_) => {
                let detail = "must be the reference in the path or be omitted, because references never change";
                self.refuse::<()>(name, "not_changeable", detail);
            }
        }
    }

    /// Returns whether a field is present and not null.
    pub fn has(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(|value| !value.is_null())
    }

    /// Records a violation of a field, independent of its value.
    pub fn refuse<T>(&self, name: &str, code: &'static str, detail: impl Into<String>) -> Option<T> {
        let declared = self.declared.iter().position(|declared| *declared == name).unwrap_or(usize::MAX);
        At { parent: Some(&self.at), step: Step::Field(name) }.note(self.found, declared, code, detail);
        None
    }

    /// Returns the result of a domain rule, or records its violations below the object.
    pub fn agreed<T>(&self, rule: Result<T, Violations>) -> Option<T> {
        Node { value: &Value::Null, at: self.at, found: self.found }.agreed(rule)
    }

    /// Returns whether a field is `true`.
    pub fn is_true(&self, name: &str) -> bool {
        self.object.get(name) == Some(&Value::Bool(true))
    }

    /// Returns whether a field is null.
    pub fn is_null(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(Value::is_null)
    }

    /// Returns the text of a field, if it is a string.
    pub fn peek(&self, name: &str) -> Option<&'a str> {
        self.object.get(name).and_then(Value::as_str)
    }

    /// Returns whether a field has this word as its value.
    pub fn says(&self, name: &str, word: &str) -> bool {
        self.peek(name) == Some(word)
    }

    /// Rejects each of these fields that is present and not null.
    pub fn none_of(&self, names: &[&str], detail: &str) {
        for name in names.iter().filter(|name| self.has(name)) {
            self.refuse::<()>(name, "not_allowed", detail);
        }
    }

    /// Rejects all fields except these and those that only responses contain, which are ignored.
    pub fn only_beside(&self, known: &[&str], answered: &[String]) {
        // A parameter that is declared as `name[key]` can have any key.
        let has_key = |name: &str| match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
            Some((base, _)) if self.found.source == Source::Query => {
                known.iter().any(|known| known.strip_suffix("[key]") == Some(base))
            }
            Some(_) | None => false,
        };
        let is_known = |name: &str| known.contains(&name) || answered.iter().any(|answered| answered == name) || has_key(name);
        let (code, what) = match self.found.source {
            Source::Body => ("unknown_field", "field"),
            Source::Query => ("unknown_parameter", "parameter"),
        };
        for name in self.object.keys().filter(|name| !is_known(name)) {
            // Looking for the nearest name is expensive.
            if self.found.is_full() {
                self.found.add_unlisted(1);
                continue;
            }
            let detail = match (nearest(name, known), known) {
                (Some(nearest), _) => format!("is an unknown {what}; the nearest is {nearest}"),
                (None, []) => format!("is an unknown {what}: this operation has none"),
                (None, _) => format!("must be one of {}", known.join(", ")),
            };
            self.refuse::<()>(name, code, detail);
        }
    }

    /// Returns all fields in document order.
    pub fn entries<'s>(&'s self) -> impl ExactSizeIterator<Item = (&'a str, Node<'s>)> {
        self.object.iter().map(|(name, value)| (name.as_str(), self.node(name, value)))
    }

    fn node<'s>(&'s self, name: &'s str, value: &'s Value) -> Node<'s> {
        Node { value, at: At { parent: Some(&self.at), step: Step::Field(name) }, found: self.found }
    }
}
