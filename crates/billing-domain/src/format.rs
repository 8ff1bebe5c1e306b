//! Usage formats: mappings from the fields of a free-form event to the fields of the default shape.
//!
//! An adapter behind [`EventMapper`](crate::ports::EventMapper) evaluates the expressions.

use std::collections::BTreeSet;
use std::fmt;

use thiserror::Error;

use crate::access::Actor;
use crate::calendar::Timestamp;
use crate::idempotency::IdempotencyKey;
use crate::quantity::Quantity;
use crate::refs::{CustomerRef, FormatRef, UsageProductRef};
use crate::text::OneLine;
use crate::usage::{MAX_REPORT_KEYS, ReportData, ReportKeyError, Validations, check_report_key};

/// The maximum length of an expression in bytes.
pub const MAX_EXPRESSION_BYTES: usize = 2048;
/// The maximum number of elements in a list of `for_each`.
pub const MAX_RECORD_ELEMENTS: usize = 100;
/// The name of the default format. Organizations can't use it for their own formats.
pub const DEFAULT_FORMAT_NAME: &str = "Default Format";

/// An expression over `event`: 1 to 2048 bytes. Line breaks and tabs are the only allowed control characters.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Expression(Box<str>);

/// The error for text that isn't an [`Expression`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an expression must have 1 to {MAX_EXPRESSION_BYTES} bytes without control characters")]
pub struct ExpressionError;

impl Expression {
    /// Checks the limits of an expression. [`EventMapper`](crate::ports::EventMapper) decides whether it can be evaluated.
    ///
    /// # Errors
    /// Returns [`ExpressionError`] if the text violates a limit.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        if text.trim().is_empty() || text.len() > MAX_EXPRESSION_BYTES || text.chars().any(control) {
            return Err(ExpressionError);
        }
        Ok(Self(text.into()))
    }

    /// Returns the expression as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn constant(text: &'static str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The expressions that identify a customer or a usage product.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Naming {
    /// Identification by reference.
    Ref(Expression),
    /// Identification by name.
    Name(Expression),
    /// Identification by reference, or by name if the first expression returns nothing.
    Either {
        /// The expression for the reference. It may return nothing.
        reference: Expression,
        /// The expression for the name.
        name: Expression,
    },
}

/// The columns for the usage report in their order, each with its expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MappedColumns(Vec<(String, Expression)>);

impl MappedColumns {
    /// Creates columns. The keys must be unique and within the limits of [`ReportData`].
    ///
    /// # Errors
    /// Returns a [`ReportKeyError`] for the first violation.
    pub fn new(columns: Vec<(String, Expression)>) -> Result<Self, ReportKeyError> {
        if columns.len() > MAX_REPORT_KEYS {
            return Err(ReportKeyError::TooMany);
        }
        let mut seen = BTreeSet::new();
        for (key, _) in &columns {
            check_report_key(key)?;
            if !seen.insert(key) {
                return Err(ReportKeyError::Invalid(key.clone()));
            }
        }
        Ok(Self(columns))
    }

    /// Returns the keys and expressions in their original order.
    pub fn entries(&self) -> &[(String, Expression)] {
        &self.0
    }
}

/// The path of a field in an event: the names of the enclosing fields, then the field's own name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldPath {
    /// The names of the enclosing fields, from the outside in.
    pub parents: Vec<String>,
    /// The name of the field.
    pub name: String,
}

impl FieldPath {
    /// Creates the path of a field that the event itself has.
    pub fn of_event(name: impl Into<String>) -> Self {
        Self { parents: Vec::new(), name: name.into() }
    }

    /// Creates a path from names, or returns `None` if there are none.
    pub fn new(mut names: Vec<String>) -> Option<Self> {
        let name = names.pop()?;
        Some(Self { parents: names, name })
    }

    /// Returns all names from the outside in.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parents.iter().chain([&self.name]).map(String::as_str)
    }
}

/// The source of a format's additional report data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReportMapping {
    /// No report data.
    None,
    /// One expression per key.
    Columns(MappedColumns),
    /// Every field of the event that no other expression of the format uses, in the event's order. A nested value becomes its JSON
    /// text.
    Rest,
    /// The entries of one field of the event in their order. The field is an object of plain values. A missing field gives no report
    /// data.
    Field(FieldPath),
    /// The plain values of one field of the event, an object, that no other expression of the format uses, in their order. A field of
    /// another kind, or a missing one, gives no report data.
    PlainRest(FieldPath),
}

/// The expressions of a format.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FormatMapping {
    /// The expression for the timestamp, an RFC 3339 date-time.
    pub timestamp: Expression,
    /// The expressions for the customer.
    pub customer: Naming,
    /// The expressions for the usage product.
    pub usage_product: Naming,
    /// The expression for the quantity.
    pub quantity: Expression,
    /// The columns for the usage report.
    pub report_data: ReportMapping,
    /// The expression for the required currency of the document. It may return nothing.
    pub currency: Option<Expression>,
    /// The expression for the required entity of the document. It may return nothing.
    pub entity_ref: Option<Expression>,
    /// The expression for the idempotency key, a text or a number. It may return nothing.
    pub idempotency_key: Option<Expression>,
    /// The condition under which a record has no event. If it names `item`, it is evaluated for each element.
    pub skip_if: Option<Expression>,
    /// The expression for a list of at most [`MAX_RECORD_ELEMENTS`] elements. Each element has an event, and the other expressions
    /// see the element as `item`.
    pub for_each: Option<Expression>,
}

/// A version of a usage format. Events refer to the version that mapped them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageFormat {
    /// The reference of the format.
    pub format_ref: FormatRef,
    /// The name, unique in the organization.
    pub name: OneLine,
    /// The version number, starting at 1.
    pub version: u32,
    /// The expressions.
    pub mapping: FormatMapping,
}

/// A format that every organization has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltInFormat {
    /// Maps the default shape to itself. No other format can have its name or reference.
    Default,
    /// Maps CloudEvents 1.0. An organization's own format can have its name, and then replaces it, but not its reference.
    CloudEvents,
}

impl BuiltInFormat {
    /// All built-in formats.
    pub const ALL: [Self; 2] = [Self::Default, Self::CloudEvents];

    /// Returns the reference and the name of the format.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Default => ("default-format", DEFAULT_FORMAT_NAME),
            Self::CloudEvents => ("cloudevents", "CloudEvents"),
        }
    }

    /// Returns the format with a reference.
    pub fn of_ref(reference: &FormatRef) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.names().0 == reference.as_str())
    }

    /// Returns the format with a name.
    pub fn named(name: &OneLine) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.names().1 == name.as_str())
    }

    /// Returns the name of the format.
    pub fn name(self) -> OneLine {
        OneLine::constant(self.names().1)
    }

    /// Returns the format.
    ///
    /// ```
    /// # use billing_domain::format::BuiltInFormat;
    /// let format = BuiltInFormat::Default.format();
    /// assert_eq!(format.name.as_str(), "Default Format");
    /// assert_eq!(format.mapping.quantity.as_str(), "event.quantity");
    /// ```
    pub fn format(self) -> UsageFormat {
        let (reference, name) = self.names();
        let mapping = match self {
            Self::Default => default_mapping(),
            Self::CloudEvents => cloud_events_mapping(),
        };
        let format_ref = FormatRef::parse(reference).expect("a constant that keeps the rule for names");
        UsageFormat { format_ref, name: OneLine::constant(name), version: 1, mapping }
    }
}

fn default_mapping() -> FormatMapping {
    let either =
        |reference, name| Naming::Either { reference: Expression::constant(reference), name: Expression::constant(name) };
    FormatMapping {
        timestamp: Expression::constant("event.timestamp"),
        customer: either(r#"get(event, "customer_ref")"#, r#"get(event, "customer_name")"#),
        usage_product: either(r#"get(event, "usage_product_ref")"#, r#"get(event, "usage_product_name")"#),
        quantity: Expression::constant("event.quantity"),
        report_data: ReportMapping::Field(FieldPath::of_event("additional_report_data")),
        currency: Some(Expression::constant(r#"get(get(event, "validations"), "currency")"#)),
        entity_ref: Some(Expression::constant(r#"get(get(event, "validations"), "entity_ref")"#)),
        idempotency_key: None,
        skip_if: None,
        for_each: None,
    }
}

fn cloud_events_mapping() -> FormatMapping {
    FormatMapping {
        timestamp: Expression::constant(r#"get(event, "time")"#),
        customer: Naming::Ref(Expression::constant("event.subject")),
        usage_product: Naming::Ref(Expression::constant("event.type")),
        quantity: Expression::constant(
            r#"get(object(get(event, "data")), "quantity") ?? get(object(get(event, "data")), "value") ?? 1"#,
        ),
        report_data: ReportMapping::PlainRest(FieldPath::of_event("data")),
        currency: None,
        entity_ref: None,
        idempotency_key: Some(Expression::constant("cloud_event_key(event.source, event.id)")),
        skip_if: None,
        for_each: None,
    }
}

/// A stored version of a format with its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatVersion {
    /// The format at this version.
    pub format: UsageFormat,
    /// The time of creation.
    pub made_at: Timestamp,
    /// The author of the version.
    pub made_by: Actor,
}

/// An event's unresolved reference to a customer or a usage product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefOrName<R> {
    /// The reference.
    Ref(R),
    /// The name.
    Name(OneLine),
}

/// An event in the default shape, as a format maps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedEvent {
    /// The time of the usage. Only a CloudEvent can leave it out.
    pub timestamp: Option<Timestamp>,
    /// The customer.
    pub customer: RefOrName<CustomerRef>,
    /// The usage product.
    pub usage_product: RefOrName<UsageProductRef>,
    /// The quantity.
    pub quantity: Quantity,
    /// The columns for the usage report.
    pub report_data: Option<ReportData>,
    /// The checks against the document. `None` if the format returns neither a currency nor an entity.
    pub validations: Option<Validations>,
    /// The idempotency key, if the format returns one.
    pub idempotency_key: Option<IdempotencyKey>,
}

/// The result of mapping a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MappedRecord<T = MappedEvent, E = FormatError> {
    /// The record has no event: its condition is true, or its list is empty.
    Skipped,
    /// The event of a format without `for_each`.
    Event(Box<T>),
    /// The elements of a record in order. A skipped element is `None`, and an element that can't be mapped is an error.
    Elements(Vec<Result<Option<T>, E>>),
}

impl<T, E> MappedRecord<T, E> {
    /// Returns the number of events.
    pub fn events(&self) -> usize {
        match self {
            Self::Skipped => 0,
            Self::Event(_) => 1,
            Self::Elements(elements) => elements.iter().filter(|element| matches!(element, Ok(Some(_)))).count(),
        }
    }

    /// Converts each event and each error of an element, which has a position.
    ///
    /// # Errors
    /// Returns the error of the conversion for a record with one event. Errors of elements are in the result.
    pub fn try_map<U, F>(
        self,
        mut convert: impl FnMut(Option<usize>, Result<T, E>) -> Result<U, F>,
    ) -> Result<MappedRecord<U, F>, F> {
        Ok(match self {
            Self::Skipped => MappedRecord::Skipped,
            Self::Event(event) => MappedRecord::Event(Box::new(convert(None, Ok(*event))?)),
            Self::Elements(elements) => {
                let mut of_item = |(item, element): (usize, Result<Option<T>, E>)| match element {
                    Ok(None) => Ok(None),
                    Ok(Some(event)) => convert(Some(item), Ok(event)).map(Some),
                    Err(error) => convert(Some(item), Err(error)).map(Some),
                };
                MappedRecord::Elements(elements.into_iter().enumerate().map(&mut of_item).collect())
            }
        })
    }
}

/// The target field of an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FormatTarget {
    /// The event itself, not a field.
    Event,
    /// The time of the usage.
    Timestamp,
    /// The customer's reference.
    CustomerRef,
    /// The customer's name.
    CustomerName,
    /// The usage product's reference.
    UsageProductRef,
    /// The usage product's name.
    UsageProductName,
    /// The quantity.
    Quantity,
    /// All the additional report data.
    ReportData,
    /// One column of the additional report data.
    ReportColumn(String),
    /// The required currency of the document.
    Currency,
    /// The required entity of the document.
    EntityRef,
    /// The idempotency key.
    IdempotencyKey,
    /// The condition that skips a record.
    SkipIf,
    /// The list of a record's elements.
    ForEach,
}

impl FormatTarget {
    /// Returns the field as a path of names in the default shape. A mapping has the field's expression at the same path. The path of
    /// the event itself is empty.
    pub fn path(&self) -> Vec<&str> {
        match self {
            Self::Event => vec![],
            Self::Timestamp => vec!["timestamp"],
            Self::CustomerRef => vec!["customer_ref"],
            Self::CustomerName => vec!["customer_name"],
            Self::UsageProductRef => vec!["usage_product_ref"],
            Self::UsageProductName => vec!["usage_product_name"],
            Self::Quantity => vec!["quantity"],
            Self::ReportData => vec!["additional_report_data"],
            Self::ReportColumn(key) => vec!["additional_report_data", key],
            Self::Currency => vec!["validations", "currency"],
            Self::EntityRef => vec!["validations", "entity_ref"],
            Self::IdempotencyKey => vec!["idempotency_key"],
            Self::SkipIf => vec!["skip_if"],
            Self::ForEach => vec!["for_each"],
        }
    }
}

impl fmt::Display for FormatTarget {
    /// Writes the path separated by dots, or `event`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event => f.write_str("event"),
            field => f.write_str(&field.path().join(".")),
        }
    }
}

/// A position in an expression, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePosition {
    /// The line.
    pub line: u32,
    /// The column in characters.
    pub column: u32,
}

/// An error of a format, or of its application to an event.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct FormatError {
    /// The target field.
    pub target: FormatTarget,
    /// The expression, or `None` for the event itself.
    pub expression: Option<Expression>,
    /// The position in the expression, if known.
    pub position: Option<SourcePosition>,
    /// The cause.
    pub reason: String,
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.target)?;
        if let Some(expression) = &self.expression {
            write!(f, " = {expression}")?;
        }
        if let Some(at) = self.position {
            write!(f, ", line {}, column {}", at.line, at.column)?;
        }
        write!(f, ": {}", self.reason)
    }
}

from_str!(Expression: ExpressionError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_has_1_to_2048_bytes_and_may_have_several_lines() {
        for good in ["event.x", "if event.a {\n\t1\n} else {\r\n\t2\n}", &"x".repeat(2048)] {
            assert_eq!(Expression::parse(good).expect(good).as_str(), good);
        }
        for bad in ["", " \n", "a\0", "a\u{85}", &"x".repeat(2049)] {
            assert_eq!(Expression::parse(bad), Err(ExpressionError), "{bad:?}");
        }
    }

    #[test]
    fn columns_keep_the_limits_of_report_data_and_are_each_there_once() {
        let column = |key: &str| (key.to_owned(), Expression::constant("event.x"));
        let columns = MappedColumns::new(vec![column("z"), column("a")]).expect("two columns");
        assert_eq!(columns.entries()[0].0, "z");
        assert_eq!(MappedColumns::new(vec![column("a"), column("a")]), Err(ReportKeyError::Invalid("a".to_owned())));
        assert!(MappedColumns::new(vec![column("")]).is_err());
        assert_eq!(MappedColumns::new(vec![column("a"); 101]), Err(ReportKeyError::TooMany));
    }

    #[test]
    fn the_built_in_formats_keep_the_limits_of_any_other() {
        for built_in in BuiltInFormat::ALL {
            let UsageFormat { format_ref, name, .. } = built_in.format();
            assert_eq!(BuiltInFormat::of_ref(&FormatRef::parse(format_ref.as_str()).expect("a reference")), Some(built_in));
            assert_eq!(BuiltInFormat::named(&OneLine::parse(name.as_str()).expect("a name")), Some(built_in));
        }
    }

    #[test]
    fn an_error_names_target_expression_position_and_reason() {
        let error = FormatError {
            target: FormatTarget::ReportColumn("status".to_owned()),
            expression: Some(Expression::constant("event.status / 0")),
            position: Some(SourcePosition { line: 1, column: 14 }),
            reason: "division by zero".to_owned(),
        };
        let shown = "additional_report_data.status = event.status / 0, line 1, column 14: division by zero";
        assert_eq!(error.to_string(), shown);
    }
}
