//! Wire formats of values: strings with patterns, exact numbers, report data, each with its OpenAPI schema.

use billing_domain::decimal::WideDecimal;
use billing_domain::format::{FieldPath, MAX_EXPRESSION_BYTES, ReportMapping};
use billing_domain::money::{Money, MoneySum, Percentage, Price, SignedPrice};
use billing_domain::party::{MAX_NET_TERMS_DAYS, NetTerms};
use billing_domain::quantity::{Quantity, QuantitySum};
use billing_domain::refs::{CHARGE_PREFIX, MAX_REF_CHARS};
use billing_domain::text::MAX_TEXT_BYTES;
use billing_domain::usage::{
    FormattedSource, MAX_REPORT_KEY_CHARS, MAX_REPORT_KEYS, MAX_REPORT_VALUE_BYTES, ReportData, ReportValue,
};
use rust_decimal::Decimal;
use serde::ser::{Error as _, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::{Number, Value, json};
use utoipa::openapi::schema::{
    AdditionalProperties, KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::schemas::{integer, schemas, text};

/// A JSON number in a string.
const NUMERIC: &str = r"^(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$";
/// Largest version number: nine digits.
pub(super) const MAX_VERSION: u32 = 999_999_999;
/// Maximum length of a numeric string.
const MAX_NUMERIC_CHARS: usize = 64;
/// Any characters except the control characters of C0, DEL and C1.
pub(super) const ONE_LINE: &str = r"^[^\u0000-\u001F\u007F-\u009F]*$";
/// Like [`ONE_LINE`], with tabs and line breaks.
pub(super) const SEVERAL_LINES: &str = r"^[^\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]*$";
/// Like [`ONE_LINE`], without the invisible characters of the basic plane. Those of other planes need a syntax that dialects of
/// patterns do not share.
pub(super) const VISIBLE_LINE: &str =
    r"^[^\u0000-\u001F\u007F-\u009F\u200B\u2028-\u202E\u2060\u2066-\u2069\uFDD0-\uFDEF\uFEFF\uFFFE\uFFFF]*$";
/// Like [`VISIBLE_LINE`], with tabs and line breaks.
pub(super) const VISIBLE_LINES: &str = r"^[^\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F\u200B\u2028-\u202E\u2060\u2066-\u2069\uFDD0-\uFDEF\uFEFF\uFFFE\uFFFF]*$";
/// Net terms that are not a number of days.
pub(super) const DUE_UPON_RECEIPT: &str = "DUE_UPON_RECEIPT";
pub(super) const DUE_UPON_USAGE: &str = "DUE_UPON_USAGE";

pub(super) fn limited(min: usize, max: usize, pattern: &str) -> ObjectBuilder {
    text().min_length(Some(min)).max_length(Some(max)).pattern(Some(pattern))
}

/// The format is for generators with a decimal type. In JSON the value is any number.
fn decimal() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Number).format(Some(SchemaFormat::Custom("decimal".to_owned())))
}

pub(super) fn known(format: KnownFormat) -> ObjectBuilder {
    text().format(Some(SchemaFormat::KnownFormat(format)))
}

/// Declares strings with a pattern.
macro_rules! texts {
    ($($(#[doc = $doc:literal])+ $name:ident: $schema:expr, example $example:literal;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl<T: std::fmt::Display> From<T> for $name {
            fn from(value: T) -> Self {
                Self(value.to_string())
            }
        }

        schemas! { $name: $schema.description(Some(concat!($($doc),+).trim())).examples([serde_json::json!($example)]); }
    )+};
}
pub(super) use texts;

texts! {
    /// A reference that callers can choose.
    NamedRef: limited(1, MAX_REF_CHARS, "^[A-Za-z0-9._:-]+$"), example "acme";
    /// Reference of a line item, or `charge:` and the reference of a charge.
    LineItemRef: limited(1, CHARGE_PREFIX.len() + MAX_REF_CHARS, "^[A-Za-z0-9._:-]+$"), example "charge:setup-1";
    /// A reference assigned by the service.
    AssignedRef: text().format(Some(SchemaFormat::Custom("uuid".to_owned()))), example "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b";
    /// An e-mail address.
    EmailText: known(KnownFormat::Email).max_length(Some(320)), example "billing@example.com";
}

/// A number of a response with its exact digits: money with the digits of its currency, other numbers with their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactNumber(WideDecimal);

impl Serialize for ExactNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        number(&self.0.to_string())?.serialize(serializer)
    }
}

fn number<E: serde::ser::Error>(text: &str) -> Result<Number, E> {
    text.parse().map_err(|_| E::custom("not the text of a number"))
}

schemas! {
    ExactNumber: decimal().description(Some("A number with exact decimal digits. A floating-point type can lose digits."));
}

impl From<WideDecimal> for ExactNumber {
    fn from(value: WideDecimal) -> Self {
        Self(value)
    }
}

impl From<Decimal> for ExactNumber {
    fn from(value: Decimal) -> Self {
        Self(value.into())
    }
}

impl From<Money> for ExactNumber {
    fn from(value: Money) -> Self {
        Self(value.into())
    }
}

impl From<MoneySum> for ExactNumber {
    fn from(value: MoneySum) -> Self {
        Self(value.to_decimal().into())
    }
}

macro_rules! exact {
    ($($decimal:ty),+) => {$(
        impl From<$decimal> for ExactNumber {
            fn from(value: $decimal) -> Self {
                Self(value.as_decimal().into())
            }
        }
    )+};
}
exact!(Percentage, Price, SignedPrice, Quantity, QuantitySum);

/// Declares decimals of requests: schemas that match the domain's parsers.
macro_rules! decimal_inputs {
    ($($(#[doc = $doc:literal])+ $name:ident: $limit:expr;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        schemas! { $name: number_or_text($limit(decimal()), concat!($($doc),+).trim()); }
    )+};
}

decimal_inputs! {
    /// A number or numeric string of at least 0, with at most 15 integer and 9 fractional digits.
    QuantityInput: |number: ObjectBuilder| number.minimum(Some(0)).exclusive_maximum(Some(1_000_000_000_000_000_u64));
    /// A number or numeric string of at least 0, with at most 15 integer digits and 64 characters. It is rounded half away from zero
    /// to 9 fractional digits.
    ReportedQuantityInput: |number: ObjectBuilder| number.minimum(Some(0)).exclusive_maximum(Some(1_000_000_000_000_000_u64));
    /// A number or numeric string of at least 0, with at most 9 integer and 12 fractional digits.
    PriceInput: |number: ObjectBuilder| number.minimum(Some(0)).exclusive_maximum(Some(1_000_000_000_u64));
    /// A number or numeric string, positive or negative, with at most 9 integer and 12 fractional digits.
    SignedPriceInput: |number: ObjectBuilder| number
        .exclusive_minimum(Some(-1_000_000_000_i64))
        .exclusive_maximum(Some(1_000_000_000_u64));
    /// A number or numeric string from 0 to 100, with at most 6 fractional digits.
    PercentageInput: |number: ObjectBuilder| number.minimum(Some(0)).maximum(Some(100));
}

fn number_or_text(number: ObjectBuilder, description: &str) -> RefOr<Schema> {
    let numeric = text().pattern(Some(NUMERIC)).max_length(Some(MAX_NUMERIC_CHARS));
    OneOfBuilder::new().item(number).item(numeric).description(Some(description)).into()
}

/// Returns the schema of a whole number or its digits.
pub(super) fn whole(low: u32, high: u32) -> RefOr<Schema> {
    OneOfBuilder::new().item(integer(low, high)).item(text().pattern(Some("^[0-9]{1,9}$"))).into()
}

/// Returns the schema of a password.
pub(super) fn password() -> RefOr<Schema> {
    let password = known(KnownFormat::Password).min_length(Some(1)).max_length(Some(MAX_TEXT_BYTES)).pattern(Some(ONE_LINE));
    password.description(Some("A password.")).into()
}

/// Net terms in responses: days or a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum NetTermsValue {
    /// Days.
    Days(u16),
    /// `DUE_UPON_RECEIPT` or `DUE_UPON_USAGE`.
    Word(DueUponWord),
}

impl From<NetTerms> for NetTermsValue {
    fn from(terms: NetTerms) -> Self {
        match terms {
            NetTerms::Days(days) => Self::Days(days),
            NetTerms::DueUponReceipt => Self::Word(DueUponWord(DUE_UPON_RECEIPT)),
            NetTerms::DueUponUsage => Self::Word(DueUponWord(DUE_UPON_USAGE)),
        }
    }
}

impl PartialSchema for NetTermsValue {
    fn schema() -> RefOr<Schema> {
        net_terms(Ref::from_schema_name(DueUponWord::name()))
    }
}

impl ToSchema for NetTermsValue {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((DueUponWord::name().into_owned(), DueUponWord::schema()));
    }
}

/// Net terms that are not a number of days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct DueUponWord(&'static str);

/// Net terms in requests: as in responses, or days in a string.
#[derive(Clone, Copy, Debug)]
pub struct NetTermsInput;

schemas! {
    DueUponWord: text()
        .enum_values(Some([DUE_UPON_RECEIPT, DUE_UPON_USAGE]))
        .description(Some("Due on receipt of the invoice, or upon usage, with an invoice per event."));
    NetTermsInput: net_terms(text().pattern(Some(format!("^([0-9]{{1,4}}|{DUE_UPON_RECEIPT}|{DUE_UPON_USAGE})$"))));
}

fn net_terms(in_words: impl Into<RefOr<Schema>>) -> RefOr<Schema> {
    let description = "Days from issue to due date, or DUE_UPON_RECEIPT, or DUE_UPON_USAGE (an invoice per event).";
    OneOfBuilder::new().item(integer(1, MAX_NET_TERMS_DAYS.into())).item(in_words).description(Some(description)).into()
}

/// Report data with keys in the submitted order and numbers as submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportDataJson(ReportData);

impl From<&ReportData> for ReportDataJson {
    fn from(data: &ReportData) -> Self {
        Self(data.clone())
    }
}

impl Serialize for ReportDataJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = self.0.entries();
        let mut object = serializer.serialize_map(Some(entries.len()))?;
        for (key, value) in entries {
            match value {
                ReportValue::Null => object.serialize_entry(key, &())?,
                ReportValue::Bool(value) => object.serialize_entry(key, value)?,
                ReportValue::Number(text) => object.serialize_entry(key, &number::<S::Error>(text)?)?,
                ReportValue::Text(text) => object.serialize_entry(key, text)?,
            }
        }
        object.end()
    }
}

/// Returns the schema of an object with columns of the usage report.
fn columns(value: ObjectBuilder, description: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .property_names(Some(limited(1, MAX_REPORT_KEY_CHARS, ONE_LINE)))
        .additional_properties(Some(AdditionalProperties::from(Schema::from(value))))
        .max_properties(Some(MAX_REPORT_KEYS))
        .description(Some(description))
}

fn report_data() -> ObjectBuilder {
    let scalars = SchemaType::from_iter([Type::String, Type::Number, Type::Boolean, Type::Null]);
    let value = ObjectBuilder::new().schema_type(scalars).max_length(Some(MAX_REPORT_VALUE_BYTES)).pattern(Some(SEVERAL_LINES));
    let columns = columns(value, "Keys and scalar values that become columns of the usage report, in this order.");
    columns.examples([json!({"region": "eu-1", "requests": 12.50})])
}

/// A free-form event: a JSON object as submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeFormEvent(String);

impl FreeFormEvent {
    /// Returns the submitted form of a stored event.
    pub(super) fn of(source: &FormattedSource) -> Self {
        Self(source.raw_event.clone())
    }
}

impl Serialize for FreeFormEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: Value = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        value.serialize(serializer)
    }
}

/// All fields of the event that no other expression names.
pub(super) const REST: &str = "rest";

/// Source of a format's report data: an object of expressions, `rest`, or one field of the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportMappingJson(ReportMapping);

impl From<&ReportMapping> for ReportMappingJson {
    fn from(mapping: &ReportMapping) -> Self {
        Self(mapping.clone())
    }
}

impl Serialize for ReportMappingJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            ReportMapping::None => serializer.serialize_none(),
            ReportMapping::Columns(columns) => {
                let columns = columns.entries().iter();
                serializer.collect_map(columns.map(|(key, expression)| (key, expression.as_str())))
            }
            ReportMapping::Rest => serializer.serialize_str(REST),
            ReportMapping::Field(path) => serializer.serialize_str(&shown_path(path)),
            ReportMapping::PlainRest(path) => serializer.collect_str(&format_args!("plain({})", shown_path(path))),
        }
    }
}

fn report_mapping() -> OneOfBuilder {
    let expression = limited(1, MAX_EXPRESSION_BYTES, SEVERAL_LINES);
    let columns = columns(expression, "Columns with their expressions, in this order.");
    let text = limited(1, MAX_EXPRESSION_BYTES, r"^(rest|event\..+|event\[.+\]|plain\(event.+\))$").description(Some(
        "`rest`: all fields that no other expression names. `event.labels` or `event.usage.labels`: the entries of that field. \
         `plain(event.data)`: the plain values of that field that no other expression names.",
    ));
    OneOfBuilder::new().item(columns).item(text).description(Some("Source of the usage report's columns."))
}

/// Report data in requests, of any form.
pub struct ReportDataInput;

fn report_data_input() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(true)))
        .description(Some(format!(
            "Keys and values that become columns of the usage report, in this order. An event is never rejected for their form. \
             The first {MAX_REPORT_KEYS} keys are kept, each cut to {MAX_REPORT_KEY_CHARS} characters, and texts cut to \
             {MAX_REPORT_VALUE_BYTES} bytes. A list or an object becomes its JSON text. Control characters are replaced, except \
             line breaks and tabs in values."
        )))
        .examples([json!({"region": "eu-1", "requests": 12.50})])
}

schemas! {
    ReportDataJson: report_data();
    ReportDataInput: report_data_input();
    FreeFormEvent: ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(true)))
        .description(Some("A JSON object of at most 64 KiB, 2000 values and 32 levels."));
    ReportMappingJson: report_mapping();
}

/// Writes a field of the event as an expression: `event.labels`, `event.usage.labels` or `event["my labels"]`.
fn shown_path(path: &FieldPath) -> String {
    let step = |name| if is_identifier(name) { format!(".{name}") } else { format!("[{}]", Value::from(name)) };
    path.names().fold("event".to_owned(), |shown, name| shown + &step(name))
}

/// Returns the path of the field that such an expression names.
pub(super) fn path_in_event(text: &str) -> Option<FieldPath> {
    let (mut names, mut rest) = (Vec::new(), text.strip_prefix("event")?);
    while !rest.is_empty() {
        let (name, after) = match rest.strip_prefix('.') {
            Some(dotted) => {
                let (name, after) = dotted.split_at(dotted.find(['.', '[']).unwrap_or(dotted.len()));
                (is_identifier(name).then(|| name.to_owned())?, after)
            }
            None => {
                let mut quoted = serde_json::Deserializer::from_str(rest.strip_prefix('[')?).into_iter::<String>();
                let name = quoted.next()?.ok()?;
                (name, rest.get(1 + quoted.byte_offset()..)?.trim_start().strip_prefix(']')?)
            }
        };
        names.push(name);
        rest = after;
    }
    FieldPath::new(names)
}

fn is_identifier(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Serializes a value as JSON.
pub fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts and numbers under names can be written")
}
