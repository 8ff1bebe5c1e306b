//! What values look like on the wire: texts with their patterns, exact numbers, report data; each with its OpenAPI schema.

use std::fmt::Display;

use billing_domain::format::{MAX_EXPRESSION_BYTES, ReportMapping};
use billing_domain::idempotency::MAX_KEY_CHARS;
use billing_domain::money::{Money, MoneySum, Percentage, Price, SignedPrice};
use billing_domain::party::legal::MAX_BUYER_REFERENCE_CHARS;
use billing_domain::party::{MAX_NET_TERMS_DAYS, MAX_PREFIX_CHARS, NetTerms};
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
/// What a version is written with: nine digits.
pub(super) const MAX_VERSION: u32 = 999_999_999;
/// The longest numeric string that is looked at.
const MAX_NUMERIC_CHARS: usize = 64;
/// Any character but the control characters of C0, DEL and C1.
const ONE_LINE: &str = r"^[^\u0000-\u001F\u007F-\u009F]*$";
/// As [`ONE_LINE`], with tabs and line breaks.
const SEVERAL_LINES: &str = r"^[^\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]*$";
/// Net terms without days.
pub(super) const DUE_UPON_RECEIPT: &str = "DUE_UPON_RECEIPT";
pub(super) const DUE_UPON_USAGE: &str = "DUE_UPON_USAGE";

fn limited(min: usize, max: usize, pattern: &str) -> ObjectBuilder {
    text().min_length(Some(min)).max_length(Some(max)).pattern(Some(pattern))
}

/// For generators that have a type for it; to JSON itself it is any number.
fn decimal() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Number).format(Some(SchemaFormat::Custom("decimal".to_owned())))
}

fn known(format: KnownFormat) -> ObjectBuilder {
    text().format(Some(SchemaFormat::KnownFormat(format)))
}

/// Texts of one form each.
macro_rules! texts {
    ($($(#[doc = $doc:literal])+ $name:ident: $schema:expr, example $example:literal;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        #[serde(transparent)]
        pub(crate) struct $name(String);

        impl<T: Display> From<T> for $name {
            fn from(value: T) -> Self {
                Self(value.to_string())
            }
        }

        schemas! { $name: $schema.description(Some(concat!($($doc),+).trim())).examples([json!($example)]); }
    )+};
}

texts! {
    /// A reference that callers may choose.
    NamedRef: limited(1, MAX_REF_CHARS, "^[A-Za-z0-9._:-]+$"), example "acme";
    /// A line item's reference, or `charge:` and a charge's.
    LineItemRef: limited(1, CHARGE_PREFIX.len() + MAX_REF_CHARS, "^[A-Za-z0-9._:-]+$"), example "charge:setup-1";
    /// A reference the service assigns.
    AssignedRef: text().format(Some(SchemaFormat::Custom("uuid".to_owned()))), example "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b";
    /// One line of text without control characters, at most 4096 bytes.
    LineText: limited(1, MAX_TEXT_BYTES, ONE_LINE), example "Acme";
    /// Text that may have line breaks and tabs, at most 4096 bytes.
    ProseText: limited(1, MAX_TEXT_BYTES, SEVERAL_LINES), example "Thank you";
    /// An e-mail address.
    EmailText: known(KnownFormat::Email).max_length(Some(320)), example "billing@example.com";
    /// A calendar date, `yyyy-mm-dd`.
    DateText: known(KnownFormat::Date), example "2026-01-31";
    /// An instant, RFC 3339 with an offset; always UTC in answers.
    TimestampText: known(KnownFormat::DateTime), example "2026-01-31T12:00:00Z";
    /// An ISO 4217 currency code.
    CurrencyCode: limited(3, 3, "^[A-Z]{3}$"), example "EUR";
    /// A name of the IANA time zone database.
    TimeZoneName: limited(1, 64, "^[A-Za-z0-9_+/-]+$"), example "Europe/Berlin";
    /// What a request or an event is known by when it is sent again.
    KeyText: limited(1, MAX_KEY_CHARS, ONE_LINE), example "host-7/2026-01-20/81";
    /// An expression over `event`, at most 2048 bytes.
    ExpressionText: limited(1, MAX_EXPRESSION_BYTES, SEVERAL_LINES), example "event.quantity";
    /// A country: ISO 3166-1 alpha-2.
    CountryCodeText: limited(2, 2, "^[A-Z]{2}$"), example "DE";
    /// A number for value added tax, with the prefix of its country; Greece's is EL.
    VatIdText: limited(4, 15, "^[A-Z]{2}[A-Z0-9+*]+$"), example "DE123456789";
    /// An identifier scheme of ISO/IEC 6523.
    IdentifierSchemeCode: limited(4, 4, "^[0-9]{4}$"), example "0002";
    /// An electronic address scheme.
    AddressSchemeCode: limited(2, 4, "^[A-Z0-9]+$"), example "0204";
    /// A text subject of UNTDID 4451.
    NoteSubjectCode: limited(3, 3, "^[A-Z]{3}$"), example "PMD";
    /// A unit code of UN/ECE Recommendation 20 or 21.
    UnitCodeText: limited(2, 3, "^[A-Z0-9]+$"), example "C62";
    /// A VATEX code: why something isn't taxed.
    ExemptionCodeText: limited(1, 64, "^VATEX-[A-Z0-9-]+$"), example "VATEX-EU-AE";
    /// What the payer wants to find on its documents.
    BuyerReferenceText: limited(1, MAX_BUYER_REFERENCE_CHARS, ONE_LINE), example "04011000-12345-35";
    /// An international bank account number.
    IbanText: limited(15, 64, "^[A-Z]{2}[0-9]{2}[A-Z0-9 ]+$"), example "DE89370400440532013000";
    /// A bank, as ISO 9362 has it.
    BicText: limited(8, 11, "^[A-Z0-9]+$"), example "COBADEFFXXX";
    /// A bank in the United States: nine digits with a check digit.
    RoutingNumberText: limited(9, 9, "^[0-9]{9}$"), example "021000021";
    /// The start of an entity's document numbers.
    NumberPrefixText: limited(1, MAX_PREFIX_CHARS, "^[A-Z0-9]+$"), example "UB";
}

/// A number of an answer, with the decimal digits it has: money with its currency's, others with their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExactNumber(Decimal);

impl Serialize for ExactNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        number(&self.0.to_string())?.serialize(serializer)
    }
}

fn number<E: serde::ser::Error>(text: &str) -> Result<Number, E> {
    text.parse().map_err(|_| E::custom("not the text of a number"))
}

schemas! {
    ExactNumber: decimal().description(Some("A number with its exact decimal digits. A float may have fewer."));
}

impl From<Decimal> for ExactNumber {
    fn from(value: Decimal) -> Self {
        Self(value)
    }
}

impl From<Money> for ExactNumber {
    fn from(value: Money) -> Self {
        Self(value.to_decimal())
    }
}

impl From<MoneySum> for ExactNumber {
    fn from(value: MoneySum) -> Self {
        Self(value.to_decimal())
    }
}

macro_rules! exact {
    ($($decimal:ty),+) => {$(
        impl From<$decimal> for ExactNumber {
            fn from(value: $decimal) -> Self {
                Self(value.as_decimal())
            }
        }
    )+};
}
exact!(Percentage, Price, SignedPrice, Quantity, QuantitySum);

/// Decimals of a request: what they look like, as their readers in the domain take them.
macro_rules! decimal_inputs {
    ($($(#[doc = $doc:literal])+ $name:ident: $limit:expr;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

        schemas! { $name: number_or_text($limit(decimal()), concat!($($doc),+).trim()); }
    )+};
}

decimal_inputs! {
    /// A number or numeric string from 0, at most 15 integer and 9 fractional digits.
    QuantityInput: |number: ObjectBuilder| number.minimum(Some(0)).exclusive_maximum(Some(1_000_000_000_000_000_u64));
    /// A number or numeric string from 0, at most 9 integer and 12 fractional digits.
    PriceInput: |number: ObjectBuilder| number.minimum(Some(0)).exclusive_maximum(Some(1_000_000_000_u64));
    /// A number or numeric string, above or below zero, at most 9 integer and 12 fractional digits.
    SignedPriceInput: |number: ObjectBuilder| number
        .exclusive_minimum(Some(-1_000_000_000_i64))
        .exclusive_maximum(Some(1_000_000_000_u64));
    /// A number or numeric string from 0 to 100, at most 6 fractional digits.
    PercentageInput: |number: ObjectBuilder| number.minimum(Some(0)).maximum(Some(100));
}

fn number_or_text(number: ObjectBuilder, description: &str) -> RefOr<Schema> {
    let numeric = text().pattern(Some(NUMERIC)).max_length(Some(MAX_NUMERIC_CHARS));
    OneOfBuilder::new().item(number).item(numeric).description(Some(description)).into()
}

/// A whole number, or the digits of one.
pub(super) fn whole(low: u32, high: u32) -> RefOr<Schema> {
    OneOfBuilder::new().item(integer(low, high)).item(text().pattern(Some("^[0-9]{1,9}$"))).into()
}

/// A password, in a request.
pub(super) fn password() -> RefOr<Schema> {
    let password = known(KnownFormat::Password).min_length(Some(1)).max_length(Some(MAX_TEXT_BYTES)).pattern(Some(ONE_LINE));
    password.description(Some("A password.")).into()
}

/// Net terms of an answer: days, or a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum NetTermsValue {
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

/// Net terms that are no days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct DueUponWord(&'static str);

/// Net terms of a request: as in an answer, or days in a string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetTermsInput;

schemas! {
    DueUponWord: text()
        .enum_values(Some([DUE_UPON_RECEIPT, DUE_UPON_USAGE]))
        .description(Some("Due with the invoice, or with each event, which has an invoice of its own."));
    NetTermsInput: net_terms(text().pattern(Some(format!("^([0-9]{{1,4}}|{DUE_UPON_RECEIPT}|{DUE_UPON_USAGE})$"))));
}

fn net_terms(in_words: impl Into<RefOr<Schema>>) -> RefOr<Schema> {
    let description = "Days from issue to due date, or DUE_UPON_RECEIPT, or DUE_UPON_USAGE (each event an invoice of its own).";
    OneOfBuilder::new().item(integer(1, MAX_NET_TERMS_DAYS.into())).item(in_words).description(Some(description)).into()
}

/// Additional report data, its keys in the order they came in and its numbers as they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportDataJson(ReportData);

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

/// An object of columns of the usage report.
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
    let value = ObjectBuilder::new().schema_type(scalars).max_length(Some(MAX_REPORT_VALUE_BYTES)).pattern(Some(ONE_LINE));
    let columns = columns(value, "Keys and scalar values that become columns of the usage report; their order is kept.");
    columns.examples([json!({"region": "eu-1", "requests": 12.50})])
}

/// A free-form event: a JSON object of any form, as it was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FreeFormEvent(String);

impl FreeFormEvent {
    /// What a stored event came in as.
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

/// Every field of the event that no other expression names.
pub(super) const REST: &str = "rest";

/// Where a format's additional report data come from: an object of expressions, `rest`, or one field of the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportMappingJson(ReportMapping);

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
            ReportMapping::Field(name) => serializer.serialize_str(&shown_field(name)),
        }
    }
}

fn report_mapping() -> OneOfBuilder {
    let expression = limited(1, MAX_EXPRESSION_BYTES, SEVERAL_LINES);
    let columns = columns(expression, "Each column with its expression; the order is kept.");
    let text = limited(1, MAX_EXPRESSION_BYTES, r"^(rest|event\..+|event\[.+\])$")
        .description(Some("`rest`: every field that no other expression names. `event.labels`: the entries of that field."));
    OneOfBuilder::new().item(columns).item(text).description(Some("Where the columns of the usage report come from."))
}

schemas! {
    ReportDataJson: report_data();
    FreeFormEvent: ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(true)))
        .description(Some("Any JSON object of at most 64 KiB, 2000 values and 32 levels."));
    ReportMappingJson: report_mapping();
}

/// A field of the event as an expression has it: `event.labels`, or `event["my labels"]`.
fn shown_field(name: &str) -> String {
    if is_identifier(name) { format!("event.{name}") } else { format!("event[{}]", Value::from(name)) }
}

/// The field that such an expression names.
pub(super) fn field_of_event(text: &str) -> Option<String> {
    if let Some(name) = text.strip_prefix("event.") {
        return is_identifier(name).then(|| name.to_owned());
    }
    let quoted = text.strip_prefix("event[")?.strip_suffix(']')?;
    serde_json::from_str(quoted).ok()
}

fn is_identifier(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// A value of ours as JSON.
pub(crate) fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts and numbers under names can be written")
}
