//! Usage formats in requests and responses, and format tests.

use billing_application::formats::{FormatContent, FormatView, TestedFormat};
use billing_domain::format::{
    Expression, FormatMapping, MappedColumns, MappedEvent, MappedRecord, Naming, RefOrName, ReportMapping,
};
use billing_domain::refs::FormatRef;
use billing_domain::text::OneLine;
use billing_domain::usage::{MAX_REPORT_KEYS, ReportKeyError, Validations, check_report_key};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::declare::{
    ResponseValue, SharedObjectResponse, SkipIfNone, Wire, answer, body, edit, fields, ignore_response_fields, object, response,
    wire,
};
use super::events::check_naming;
use super::formatted::FormatFields;
use super::input::Node;
use super::values::{CurrencyCode, FreeForm, LineText, NewFormatRef, TimestampText};
use super::wire::{ExactNumber, NamedRef, REST, ReportDataJson, ReportMappingJson, path_in_event};

fields! {
    edit FormatContent {
        /// Name, unique in the organization; events can name the format by it.
        name as "format_name": OneLine,
        /// Expressions for the fields of the default format.
        mapping: FormatMapping,
    }
    with {
        ignore_response_fields!(FormatJson);
    }
}

body! {
    /// A usage format to create.
    FormatBody {
        /// Reference. Default: assigned by the service.
        format_ref: Option<NewFormatRef>,
        @flat content: FormatContent,
    }
    with {
        ignore_response_fields!(FormatJson);
    }
}

edit! {
    /// Changes to a usage format. Omitted fields stay unchanged; `mapping` is replaced as a whole.
    FormatEditBody of FormatContent named "format_ref": FormatRef
}

object! {
    /// Expressions over `event` for the fields of the default format.
    answer struct Mapping as "Mapping" {
        /// Expression for the time: an RFC 3339 date-time with an offset.
        timestamp: Expression,
        /// Expression for the customer reference; optional if `customer_name` is given.
        customer_ref: SkipIfNone<Expression>,
        /// Expression for the customer name, used if `customer_ref` has no result.
        customer_name: SkipIfNone<Expression>,
        /// Expression for the usage product reference; optional if `usage_product_name` is given.
        usage_product_ref: SkipIfNone<Expression>,
        /// Expression for the usage product name, used if `usage_product_ref` has no result.
        usage_product_name: SkipIfNone<Expression>,
        /// Expression for the quantity.
        quantity: Expression,
        /// Source of the usage report's columns.
        additional_report_data: SkipIfNone<ReportMapping>,
        /// Checks on the event's document.
        validations: SkipIfNone<MappingValidations>,
        /// Expression for the idempotency key of the event, a text or a number. Takes precedence over every other key. Without
        /// a result, the event has no key or the key of its request, record or line.
        idempotency_key: SkipIfNone<Expression>,
        /// Condition under which the record has no event and is skipped. If it names `item`, it skips single elements.
        skip_if: SkipIfNone<Expression>,
        /// Expression for a list of at most 100 elements. Each element has an event, and the other expressions see the element
        /// as `item`.
        for_each: SkipIfNone<Expression>,
    }
    with {
        fn check(fields: Fields<'_>) {
            check_naming(fields, "customer_ref", "customer_name");
            check_naming(fields, "usage_product_ref", "usage_product_name");
        }
    }
}

pub type MappingJson = SharedObjectResponse<Mapping>;

object! {
    /// Requirements on the event's document; an expression without a result checks nothing.
    answer struct MappingValidations as "MappingValidations" {
        /// Expression for the required currency of the document.
        currency: SkipIfNone<Expression>,
        /// Expression for the required supplier entity of the document.
        entity_ref: SkipIfNone<Expression>,
    }
}

wire! {
    FormatMapping: |node| Mapping::read(node)?.whole(), |schemas| Mapping::schema(schemas);
    ReportMapping: report_mapping, |schemas| schemas.refer::<ReportMappingJson>();
}

impl Mapping {
    fn whole(self) -> Option<FormatMapping> {
        let (currency, entity_ref) = self.validations.map_or((None, None), |checks| (checks.currency, checks.entity_ref));
        Some(FormatMapping {
            timestamp: self.timestamp,
            customer: naming(self.customer_ref, self.customer_name)?,
            usage_product: naming(self.usage_product_ref, self.usage_product_name)?,
            quantity: self.quantity,
            report_data: self.additional_report_data.unwrap_or(ReportMapping::None),
            currency,
            entity_ref,
            idempotency_key: self.idempotency_key,
            skip_if: self.skip_if,
            for_each: self.for_each,
        })
    }

    fn of(mapping: &FormatMapping) -> Self {
        let (customer_ref, customer_name) = shown_naming(&mapping.customer);
        let (usage_product_ref, usage_product_name) = shown_naming(&mapping.usage_product);
        let checks = MappingValidations { currency: mapping.currency.clone(), entity_ref: mapping.entity_ref.clone() };
        Self {
            timestamp: mapping.timestamp.clone(),
            customer_ref,
            customer_name,
            usage_product_ref,
            usage_product_name,
            quantity: mapping.quantity.clone(),
            additional_report_data: Some(mapping.report_data.clone()).filter(|data| *data != ReportMapping::None),
            validations: (checks.currency.is_some() || checks.entity_ref.is_some()).then_some(checks),
            idempotency_key: mapping.idempotency_key.clone(),
            skip_if: mapping.skip_if.clone(),
            for_each: mapping.for_each.clone(),
        }
    }
}

fn naming(reference: Option<Expression>, name: Option<Expression>) -> Option<Naming> {
    match (reference, name) {
        (Some(reference), Some(name)) => Some(Naming::Either { reference, name }),
        (Some(reference), None) => Some(Naming::Ref(reference)),
        (None, Some(name)) => Some(Naming::Name(name)),
        (None, None) => None,
    }
}

fn shown_naming(naming: &Naming) -> (Option<Expression>, Option<Expression>) {
    match naming.clone() {
        Naming::Ref(reference) => (Some(reference), None),
        Naming::Name(name) => (None, Some(name)),
        Naming::Either { reference, name } => (Some(reference), Some(name)),
    }
}

fn report_mapping(node: Node<'_>) -> Option<ReportMapping> {
    let Some(text) = node.as_text() else { return columns(node) };
    let plain = text.strip_prefix("plain(").and_then(|text| text.strip_suffix(')'));
    let field = Expression::parse(plain.unwrap_or(text)).ok().and_then(|text| path_in_event(text.as_str()));
    match field {
        _ if text == REST => Some(ReportMapping::Rest),
        Some(field) if plain.is_some() => Some(ReportMapping::PlainRest(field)),
        Some(field) => Some(ReportMapping::Field(field)),
        None => node.refuse(
            "invalid_value",
            "must be an object of expressions, \"rest\", or one field such as event.labels, event.usage.labels or plain(event.data)",
        ),
    }
}

impl ResponseValue for ReportMapping {
    fn answer<S: Serializer>(value: &Self, serializer: S) -> Result<S::Ok, S::Error> {
        ReportMappingJson::from(value).serialize(serializer)
    }
}

fn columns(node: Node<'_>) -> Option<ReportMapping> {
    if !node.json().is_object() {
        return node.refuse("wrong_type", "must be an object of expressions, or a string");
    }
    let columns = node.object(|fields| {
        let entries = fields.entries();
        if entries.len() > MAX_REPORT_KEYS {
            return node.taken(Err(ReportKeyError::TooMany));
        }
        let all: Vec<Option<(String, Expression)>> = entries.map(|(key, node)| column(key, node)).collect();
        all.into_iter().collect()
    });
    node.taken(MappedColumns::new(columns?)).map(ReportMapping::Columns)
}

/// Reads one column and checks it against the domain's limits, so that every invalid column is reported.
fn column(key: &str, node: Node<'_>) -> Option<(String, Expression)> {
    let expression = <Expression as Wire>::read(node);
    node.taken(check_report_key(key))?;
    Some((key.to_owned(), expression?))
}

body! {
    /// An event and a usage format or an unsaved mapping to test it with.
    FormatTestBody {
        @flat format: FormatFields,
        /// Mapping to test instead of a saved format.
        mapping: Option<FormatMapping>,
        /// Event.
        event: FreeForm,
    }
    with {
        fn check(fields: Fields<'_>) {
            match (fields.has("format_ref") || fields.has("format_name"), fields.has("mapping")) {
                (true, true) => drop(fields.refuse::<()>("mapping", "not_allowed", "must be omitted, because format_ref or format_name is given")),
                (false, false) => drop(fields.refuse::<()>("format_name", "required", "must be given if neither format_ref nor mapping is given")),
                (true, false) | (false, true) => {}
            }
        }
    }
}

impl FormatTestBody {
    /// Returns the tested format or mapping, and the text of the event.
    pub fn tested(self) -> Option<(TestedFormat, String)> {
        let tested = self
            .mapping
            .map(|mapping| TestedFormat::Mapping(Box::new(mapping)))
            .or_else(|| self.format.named().map(TestedFormat::Named));
        Some((tested?, self.event))
    }
}

answer! {
    /// A version of a usage format.
    FormatJson of view: FormatView {
        /// Reference.
        format_ref: NamedRef = &view.format.format_ref,
        /// Name.
        format_name: LineText = &view.format.name,
        /// Version number, starting at 1.
        #[schema(minimum = 1)]
        version: u32 = view.format.version,
        /// Expressions for the fields of the default format.
        mapping: MappingJson = &Mapping::of(&view.format.mapping),
        /// Time of creation of this version; null for the built-in format.
        changed_at: Option<TimestampText> = view.made.map(|(at, _)| TimestampText::from(at)),
        /// Author of this version: `api_key:` or `admin:` and a reference; null for the built-in format.
        changed_by: Option<String> = view.made.map(|(_, by)| by.to_string()),
        /// Time of the last change, like `changed_at`; null for the built-in format.
        updated_at: Option<TimestampText> = view.made.map(|(at, _)| TimestampText::from(at)),
    }
}

response! {
    /// The result of a format test.
    #[derive(Serialize, ToSchema)]
    pub struct FormatTestJson {
        /// Event converted to the default format, ready to be reported. Null if the format skips the event, and a list if the
        /// format has `for_each`.
        mapped: Option<MappedRecordJson>,
    }
}

/// The events of a record.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum MappedRecordJson {
    /// The event of a format without `for_each`.
    Event(Box<MappedEventJson>),
    /// The event of each element; null for a skipped element.
    Elements(Vec<Option<MappedEventJson>>),
}

impl From<&MappedRecord> for FormatTestJson {
    /// Converts a record without errors of single elements.
    fn from(record: &MappedRecord) -> Self {
        let mapped = match record {
            MappedRecord::Skipped => None,
            MappedRecord::Event(event) => Some(MappedRecordJson::Event(Box::new(MappedEventJson::from(&**event)))),
            MappedRecord::Elements(elements) => {
                let events = elements.iter().map(|element| element.as_ref().ok()?.as_ref().map(MappedEventJson::from));
                Some(MappedRecordJson::Elements(events.collect()))
            }
        };
        Self { mapped }
    }
}

answer! {
    /// A usage event converted to the default format.
    MappedEventJson of event: MappedEvent {
        let (customer_ref, customer_name) = shown_name(&event.customer);
        let (usage_product_ref, usage_product_name) = shown_name(&event.usage_product);
        /// Time of the usage. Omitted for a CloudEvent without a time, which gets the time of receipt.
        @omitted timestamp: Option<TimestampText> = event.timestamp.map(TimestampText::from),
        /// Customer reference, if the format returns one.
        @omitted customer_ref: Option<NamedRef> = customer_ref,
        /// Customer name, if the format returns one.
        @omitted customer_name: Option<LineText> = customer_name,
        /// Usage product reference, if the format returns one.
        @omitted usage_product_ref: Option<NamedRef> = usage_product_ref,
        /// Usage product name, if the format returns one.
        @omitted usage_product_name: Option<LineText> = usage_product_name,
        /// Quantity.
        quantity: ExactNumber = event.quantity,
        /// Keys and values for the usage report, in the order of the format or the event.
        @omitted additional_report_data: Option<ReportDataJson> = event.report_data.as_ref(),
        /// Checks on the event's document.
        @omitted validations: Option<ValidationsJson> = event.validations.as_ref(),
        /// Idempotency key, if the format returns one.
        @omitted idempotency_key: Option<String> = event.idempotency_key.as_ref().map(|key| key.as_str().to_owned()),
    }
}

answer! {
    /// Requirements on the event's document.
    ValidationsJson of checks: Validations {
        /// Required currency of the document.
        @omitted currency: Option<CurrencyCode> = checks.currency.map(|currency| currency.code()),
        /// Required supplier entity of the document.
        @omitted entity_ref: Option<NamedRef> = checks.entity_ref.as_ref(),
    }
}

fn shown_name<R>(named: &RefOrName<R>) -> (Option<&R>, Option<&OneLine>) {
    match named {
        RefOrName::Ref(reference) => (Some(reference), None),
        RefOrName::Name(name) => (None, Some(name)),
    }
}
