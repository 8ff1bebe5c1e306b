//! Usage formats: names and mappings both ways, and the trying of one.

use billing_application::formats::{FormatContent, FormatView, NamedFormat, TestedFormat};
use billing_domain::format::{
    Expression, FormatMapping, MappedColumns, MappedEvent, Naming, RefOrName, ReportMapping, UsageFormat,
};
use billing_domain::refs::FormatRef;
use billing_domain::usage::{MAX_REPORT_KEYS, ReportData, ReportDataError, ReportValue, Validations};
use billing_domain::violation::Violations;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::input::{self, Fields, Node};
use super::reasons::Reason;
use super::wire::{
    CurrencyCode, ExactNumber, ExpressionText, FreeFormEvent, LineText, NamedRef, REST, ReportDataJson, ReportMappingJson,
    TimestampText, edit_of, field_of_event,
};

/// A usage format to make.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read_new` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({
    "format_ref": "cdn-log",
    "format_name": "CDN log",
    "mapping": {
        "timestamp": "unix_seconds(event.time)",
        "customer_ref": "event.zone.owner",
        "usage_product_ref": "\"cdn-gb\"",
        "quantity": "event.bytes / 1000000000",
        "additional_report_data": {"path": "event.path", "pop": "upper(event.pop)"},
        "validations": {"currency": "\"EUR\""}
    }
}))]
pub(crate) struct FormatBody {
    /// Reference; assigned when left out.
    format_ref: Option<NamedRef>,
    /// Name, unique in the organization; events are reported under it.
    format_name: LineText,
    /// An expression for each field of the default shape.
    mapping: MappingJson,
}

edit_of! {
    /// Changes to a usage format: fields left out are kept, `mapping` is replaced as a whole.
    FormatEditBody of FormatBody
}

/// Which expression of `event` gives which field of the default shape.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MappingJson {
    /// Gives an RFC 3339 date-time with an offset.
    timestamp: ExpressionText,
    /// Gives the customer's reference. May be left out when `customer_name` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    customer_ref: Option<ExpressionText>,
    /// Gives the customer's name, used where `customer_ref` gives nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    customer_name: Option<ExpressionText>,
    /// Gives the usage product's reference. May be left out when `usage_product_name` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage_product_ref: Option<ExpressionText>,
    /// Gives the usage product's name, used where `usage_product_ref` gives nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage_product_name: Option<ExpressionText>,
    /// Gives the quantity.
    quantity: ExpressionText,
    /// Where the columns of the usage report come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_report_data: Option<ReportMappingJson>,
    /// Checks that the event matches its document.
    #[serde(skip_serializing_if = "Option::is_none")]
    validations: Option<MappingValidationsJson>,
}

/// What the document of an event has to be like; an expression that gives nothing checks nothing.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MappingValidationsJson {
    /// Gives the currency the document must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<ExpressionText>,
    /// Gives the supplier entity the document must belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    entity_ref: Option<ExpressionText>,
}

impl FormatBody {
    /// Reads a format to make, and its reference where one is given.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read_new(body: &Value) -> Result<(Option<FormatRef>, FormatContent), Violations> {
        input::read(body, |fields| {
            let reference = fields.optional("format_ref", |node| node.parsed(FormatRef::parse));
            let name = fields.required("format_name", Node::line);
            let mapping = fields.required("mapping", mapping);
            Some((reference, FormatContent { name: name?, mapping: mapping? }))
        })
    }

    /// Reads changes to the format with this reference.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub(crate) fn read_edit(body: &Value, reference: &FormatRef, present: &UsageFormat) -> Result<FormatContent, Violations> {
        input::read(body, |fields| {
            fields.unchanged("format_ref", reference.as_str());
            let name = fields.required_or("format_name", Some(&present.name), Node::line);
            let mapping = fields.required_or("mapping", Some(&present.mapping), mapping);
            Some(FormatContent { name: name?, mapping: mapping? })
        })
    }
}

const MAPPING_FIELDS: [&str; 8] = [
    "timestamp",
    "customer_ref",
    "customer_name",
    "usage_product_ref",
    "usage_product_name",
    "quantity",
    "additional_report_data",
    "validations",
];

fn mapping(node: Node<'_>) -> Option<FormatMapping> {
    node.object(|fields| {
        fields.only(&MAPPING_FIELDS);
        let timestamp = fields.required("timestamp", expression);
        let customer = naming(fields, "customer_ref", "customer_name");
        let usage_product = naming(fields, "usage_product_ref", "usage_product_name");
        let quantity = fields.required("quantity", expression);
        let report_data = fields.optional("additional_report_data", report_mapping);
        let checks = fields.optional("validations", |node| {
            node.object(|fields| {
                fields.only(&["currency", "entity_ref"]);
                Some((fields.optional("currency", expression), fields.optional("entity_ref", expression)))
            })
        });
        let (currency, entity_ref) = checks.unwrap_or((None, None));
        Some(FormatMapping {
            timestamp: timestamp?,
            customer: customer?,
            usage_product: usage_product?,
            quantity: quantity?,
            report_data: report_data.unwrap_or(ReportMapping::None),
            currency,
            entity_ref,
        })
    })
}

fn expression(node: Node<'_>) -> Option<Expression> {
    node.parsed(Expression::parse)
}

fn naming(fields: Fields<'_>, by_ref: &str, by_name: &str) -> Option<Naming> {
    if !fields.has(by_ref) && !fields.has(by_name) {
        return fields.refuse(by_ref, "required", format!("must be given, unless {by_name} is"));
    }
    let (reference, name) = (fields.optional(by_ref, expression), fields.optional(by_name, expression));
    match (reference, name) {
        (Some(reference), Some(name)) => Some(Naming::Either { reference, name }),
        (Some(reference), None) => Some(Naming::Ref(reference)),
        (None, Some(name)) => Some(Naming::Name(name)),
        (None, None) => None,
    }
}

fn report_mapping(node: Node<'_>) -> Option<ReportMapping> {
    let Some(text) = node.as_text() else { return columns(node) };
    let field = Expression::parse(text).ok().and_then(|text| field_of_event(text.as_str()));
    match field {
        _ if text == REST => Some(ReportMapping::Rest),
        Some(field) => Some(ReportMapping::Field(field)),
        None => node.refuse("invalid_value", "must be an object of expressions, \"rest\", or one field such as event.labels"),
    }
}

fn columns(node: Node<'_>) -> Option<ReportMapping> {
    if !node.json().is_object() {
        return node.refuse("wrong_type", "must be an object of expressions, or a string");
    }
    node.object(|fields| {
        let entries = fields.entries();
        if entries.len() > MAX_REPORT_KEYS {
            let reason = ReportDataError::TooManyKeys;
            return node.refuse(reason.code(), reason.to_string());
        }
        let columns: Vec<Option<(String, Expression)>> = entries.map(|(key, node)| column(key, node)).collect();
        let columns = MappedColumns::new(columns.into_iter().collect::<Option<Vec<_>>>()?);
        columns
            .map_or_else(|reason| node.refuse(reason.code(), reason.to_string()), |columns| Some(ReportMapping::Columns(columns)))
    })
}

/// One column, held against the domain's limits by itself, so that every bad one is named.
fn column(key: &str, node: Node<'_>) -> Option<(String, Expression)> {
    let expression = expression(node);
    match ReportData::new(vec![(key.to_owned(), ReportValue::Null)]) {
        Ok(_) => Some((key.to_owned(), expression?)),
        Err(reason) => node.refuse(reason.code(), reason.to_string()),
    }
}

/// The format that a body names; nothing where it names none, or what can't be a name.
pub(super) fn named_format(fields: Fields<'_>) -> Option<NamedFormat> {
    if fields.has("format_ref") {
        fields.optional("format_ref", |node| node.parsed(FormatRef::parse)).map(NamedFormat::Ref)
    } else {
        fields.optional("format_name", Node::line).map(NamedFormat::Name)
    }
}

/// The text of the free-form event in a body.
pub(super) fn free_form_event(fields: Fields<'_>) -> Option<String> {
    fields.required("event", |node| node.object(|_| Some(node.json().to_string())))
}

/// A usage format, or a mapping that need not be stored, and an event to try it on.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({
    "format_name": "Default Format",
    "event": {"timestamp": "2026-01-20T10:15:30Z", "customer_ref": "acme", "usage_product_ref": "api-calls", "quantity": 12345}
}))]
pub(crate) struct FormatTestBody {
    /// The format, by reference.
    format_ref: Option<NamedRef>,
    /// The format, by name; used when `format_ref` is left out.
    format_name: Option<LineText>,
    /// A mapping, in place of a format.
    mapping: Option<MappingJson>,
    /// The event.
    event: FreeFormEvent,
}

impl FormatTestBody {
    /// Reads what is tried, and the text of the event.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(body: &Value) -> Result<(TestedFormat, String), Violations> {
        input::read(body, |fields| {
            let event = free_form_event(fields);
            let named = fields.has("format_ref") || fields.has("format_name");
            let tested = match (named, fields.has("mapping")) {
                (true, true) => fields.refuse("mapping", "not_allowed", "must not be given beside format_ref or format_name"),
                (true, false) => named_format(fields).map(TestedFormat::Named),
                (false, true) => fields.optional("mapping", mapping).map(TestedFormat::Mapping),
                (false, false) => fields.refuse("format_name", "required", "must be given, unless format_ref or mapping is"),
            };
            Some((tested?, event?))
        })
    }
}

/// A usage format, as one of its versions has it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FormatJson {
    /// Reference.
    format_ref: NamedRef,
    /// Name.
    format_name: LineText,
    /// Counts the format's versions from 1.
    #[schema(minimum = 1)]
    version: u32,
    /// An expression for each field of the default shape.
    mapping: MappingJson,
    /// When this version was made; null for the built-in format.
    changed_at: Option<TimestampText>,
    /// Who made it: `api_key:` or `admin:` and a reference; null for the built-in format.
    changed_by: Option<String>,
}

impl From<&FormatView> for FormatJson {
    fn from(view: &FormatView) -> Self {
        Self {
            format_ref: NamedRef::from(&view.format.format_ref),
            format_name: LineText::from(&view.format.name),
            version: view.format.version,
            mapping: MappingJson::from(&view.format.mapping),
            changed_at: view.made.map(|(at, _)| TimestampText::from(at)),
            changed_by: view.made.map(|(_, by)| by.to_string()),
        }
    }
}

impl From<&FormatMapping> for MappingJson {
    fn from(mapping: &FormatMapping) -> Self {
        let (customer_ref, customer_name) = shown_naming(&mapping.customer);
        let (usage_product_ref, usage_product_name) = shown_naming(&mapping.usage_product);
        let validations = MappingValidationsJson {
            currency: mapping.currency.as_ref().map(ExpressionText::from),
            entity_ref: mapping.entity_ref.as_ref().map(ExpressionText::from),
        };
        let checks = validations.currency.is_some() || validations.entity_ref.is_some();
        Self {
            timestamp: ExpressionText::from(&mapping.timestamp),
            customer_ref,
            customer_name,
            usage_product_ref,
            usage_product_name,
            quantity: ExpressionText::from(&mapping.quantity),
            additional_report_data: ReportMappingJson::of(&mapping.report_data),
            validations: checks.then_some(validations),
        }
    }
}

fn shown_naming(naming: &Naming) -> (Option<ExpressionText>, Option<ExpressionText>) {
    match naming {
        Naming::Ref(reference) => (Some(ExpressionText::from(reference)), None),
        Naming::Name(name) => (None, Some(ExpressionText::from(name))),
        Naming::Either { reference, name } => (Some(ExpressionText::from(reference)), Some(ExpressionText::from(name))),
    }
}

/// What a format makes of an event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FormatTestJson {
    /// The event in the default shape, as it could be reported.
    mapped: MappedEventJson,
}

/// A usage event in the default shape, as a format gives it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MappedEventJson {
    /// Time of the usage.
    timestamp: TimestampText,
    /// The customer, where the format gives a reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    customer_ref: Option<NamedRef>,
    /// The customer, where the format gives a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    customer_name: Option<LineText>,
    /// The usage product, where the format gives a reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    usage_product_ref: Option<NamedRef>,
    /// The usage product, where the format gives a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    usage_product_name: Option<LineText>,
    /// Quantity.
    quantity: ExactNumber,
    /// Columns of the usage report, in the format's or the event's order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    additional_report_data: Option<ReportDataJson>,
    /// Checks that the event matches its document.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    validations: Option<ValidationsJson>,
}

/// What the document of an event has to be like.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ValidationsJson {
    /// Currency the document must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    currency: Option<CurrencyCode>,
    /// Supplier entity the document must belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    entity_ref: Option<NamedRef>,
}

impl From<&Validations> for ValidationsJson {
    fn from(checks: &Validations) -> Self {
        Self {
            currency: checks.currency.map(|currency| CurrencyCode::from(currency.code())),
            entity_ref: checks.entity_ref.as_ref().map(NamedRef::from),
        }
    }
}

impl From<&MappedEvent> for FormatTestJson {
    fn from(event: &MappedEvent) -> Self {
        let (customer_ref, customer_name) = shown_name(&event.customer);
        let (usage_product_ref, usage_product_name) = shown_name(&event.usage_product);
        let mapped = MappedEventJson {
            timestamp: TimestampText::from(event.timestamp),
            customer_ref,
            customer_name,
            usage_product_ref,
            usage_product_name,
            quantity: ExactNumber::from(event.quantity),
            additional_report_data: event.report_data.as_ref().map(ReportDataJson::from),
            validations: event.validations.as_ref().map(ValidationsJson::from),
        };
        Self { mapped }
    }
}

fn shown_name<R: std::fmt::Display>(named: &RefOrName<R>) -> (Option<NamedRef>, Option<LineText>) {
    match named {
        RefOrName::Ref(reference) => (Some(NamedRef::from(reference)), None),
        RefOrName::Name(name) => (None, Some(LineText::from(name))),
    }
}
