//! Usage formats: which expression of a free-form event gives which field of the default shape.
//! How an expression is evaluated is an adapter's business, behind [`EventMapper`](crate::ports::EventMapper).

use std::collections::BTreeSet;
use std::fmt;

use thiserror::Error;

use crate::access::Actor;
use crate::calendar::Timestamp;
use crate::quantity::Quantity;
use crate::refs::{CustomerRef, FormatRef, UsageProductRef};
use crate::text::OneLine;
use crate::usage::{ReportData, ReportDataError, ReportValue, Validations};

/// The most bytes of an expression.
pub const MAX_EXPRESSION_BYTES: usize = 2048;
/// The built-in format's name.
pub const DEFAULT_FORMAT_NAME: &str = "Default Format";
/// The built-in format's reference; no organization may give it to a format of its own.
pub const DEFAULT_FORMAT_REF: &str = "default-format";

/// One expression over `event`: 1 to 2048 bytes; of the control characters only line breaks and tabs.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Expression(Box<str>);

/// Not the text of an [`Expression`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an expression must have 1 to {MAX_EXPRESSION_BYTES} bytes without control characters")]
pub struct ExpressionError;

impl Expression {
    /// Checks a text's limits. Whether it can be evaluated is for [`EventMapper`](crate::ports::EventMapper) to say.
    ///
    /// # Errors
    /// [`ExpressionError`] when it breaks one.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        if text.trim().is_empty() || text.len() > MAX_EXPRESSION_BYTES || text.chars().any(control) {
            return Err(ExpressionError);
        }
        Ok(Self(text.into()))
    }

    /// The text.
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

/// How a format names a customer or a usage product.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Naming {
    /// By its reference.
    Ref(Expression),
    /// By its name.
    Name(Expression),
    /// By its reference, or by its name where the first expression gives nothing.
    Either {
        /// Gives the reference, or nothing.
        reference: Expression,
        /// Gives the name.
        name: Expression,
    },
}

/// Columns for the usage report, each with its expression, in their order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MappedColumns(Vec<(String, Expression)>);

impl MappedColumns {
    /// Checks the keys: the limits of [`ReportData`], and each once.
    ///
    /// # Errors
    /// [`ReportDataError`] names the first that breaks one.
    pub fn new(columns: Vec<(String, Expression)>) -> Result<Self, ReportDataError> {
        ReportData::new(columns.iter().map(|(key, _)| (key.clone(), ReportValue::Null)).collect())?;
        let mut seen = BTreeSet::new();
        if let Some((twice, _)) = columns.iter().find(|(key, _)| !seen.insert(key)) {
            return Err(ReportDataError::Key(twice.clone()));
        }
        Ok(Self(columns))
    }

    /// Keys and expressions in the order given.
    pub fn entries(&self) -> &[(String, Expression)] {
        &self.0
    }
}

/// Where a format's additional report data come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReportMapping {
    /// There are none.
    None,
    /// One expression per key.
    Columns(MappedColumns),
    /// Every field of the event that no other expression of the format names, in the event's order. What is
    /// nested in such a field becomes its JSON text.
    Rest,
    /// The entries of one field of the event, an object of plain values, in their order; none where the event
    /// hasn't got it.
    Field(String),
}

/// The expressions of a format.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FormatMapping {
    /// Gives an RFC 3339 date-time.
    pub timestamp: Expression,
    /// Gives the customer.
    pub customer: Naming,
    /// Gives the usage product.
    pub usage_product: Naming,
    /// Gives a quantity.
    pub quantity: Expression,
    /// Columns for the usage report.
    pub report_data: ReportMapping,
    /// Gives the currency the document must have, or nothing.
    pub currency: Option<Expression>,
    /// Gives the entity the document must have, or nothing.
    pub entity_ref: Option<Expression>,
}

/// A version of a usage format. Events keep the one they were taken with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageFormat {
    /// Reference.
    pub format_ref: FormatRef,
    /// What people call it; unique in the organization.
    pub name: OneLine,
    /// Counts from 1.
    pub version: u32,
    /// Its expressions.
    pub mapping: FormatMapping,
}

impl UsageFormat {
    /// The built-in format, which takes the default shape as it is.
    ///
    /// ```
    /// # use billing_domain::format::UsageFormat;
    /// let format = UsageFormat::built_in();
    /// assert_eq!(format.name.as_str(), "Default Format");
    /// assert_eq!(format.mapping.quantity.as_str(), "event.quantity");
    /// ```
    pub fn built_in() -> Self {
        let either =
            |reference, name| Naming::Either { reference: Expression::constant(reference), name: Expression::constant(name) };
        Self {
            format_ref: FormatRef::parse(DEFAULT_FORMAT_REF).expect("a constant that keeps the rule for names"),
            name: OneLine::constant(DEFAULT_FORMAT_NAME),
            version: 1,
            mapping: FormatMapping {
                timestamp: Expression::constant("event.timestamp"),
                customer: either(r#"get(event, "customer_ref")"#, r#"get(event, "customer_name")"#),
                usage_product: either(r#"get(event, "usage_product_ref")"#, r#"get(event, "usage_product_name")"#),
                quantity: Expression::constant("event.quantity"),
                report_data: ReportMapping::Field("additional_report_data".to_owned()),
                currency: Some(Expression::constant(r#"get(get(event, "validations"), "currency")"#)),
                entity_ref: Some(Expression::constant(r#"get(get(event, "validations"), "entity_ref")"#)),
            },
        }
    }
}

/// A stored version of a format, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatVersion {
    /// The format as this version has it.
    pub format: UsageFormat,
    /// When it was made.
    pub made_at: Timestamp,
    /// Who made it.
    pub made_by: Actor,
}

/// How an event names a customer or a usage product; not looked up yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefOrName<R> {
    /// By its reference.
    Ref(R),
    /// By its name.
    Name(OneLine),
}

/// What a format makes of an event: the default shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedEvent {
    /// When it was used.
    pub timestamp: Timestamp,
    /// Who used.
    pub customer: RefOrName<CustomerRef>,
    /// What was used.
    pub usage_product: RefOrName<UsageProductRef>,
    /// How much.
    pub quantity: Quantity,
    /// Columns for the usage report.
    pub report_data: Option<ReportData>,
    /// Checks against the document; none where the format gives neither currency nor entity.
    pub validations: Option<Validations>,
}

/// What an expression was to give.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FormatTarget {
    /// None of them: the event itself.
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
    /// The currency the document must have.
    Currency,
    /// The entity the document must have.
    EntityRef,
}

impl FormatTarget {
    /// The field, as a path of names in the default shape; a mapping has its expression at the same path. Empty for
    /// the event itself.
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
        }
    }
}

impl fmt::Display for FormatTarget {
    /// The path with points, or `event`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event => f.write_str("event"),
            field => f.write_str(&field.path().join(".")),
        }
    }
}

/// A place in an expression, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePosition {
    /// The line.
    pub line: u32,
    /// The character within the line.
    pub column: u32,
}

/// Why a format can't be used, or can't be used on an event.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct FormatError {
    /// What was to be given.
    pub target: FormatTarget,
    /// By which expression; none for the event itself.
    pub expression: Option<Expression>,
    /// Where in the expression, as far as that is known.
    pub position: Option<SourcePosition>,
    /// What is wrong.
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
        assert_eq!(MappedColumns::new(vec![column("a"), column("a")]), Err(ReportDataError::Key("a".to_owned())));
        assert!(MappedColumns::new(vec![column("")]).is_err());
        assert_eq!(MappedColumns::new(vec![column("a"); 101]), Err(ReportDataError::TooManyKeys));
    }

    #[test]
    fn the_built_in_format_keeps_the_limits_of_any_other() {
        let built_in = UsageFormat::built_in();
        assert_eq!(FormatRef::parse(DEFAULT_FORMAT_REF), Ok(built_in.format_ref));
        assert_eq!(OneLine::parse(DEFAULT_FORMAT_NAME), Ok(built_in.name));
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
