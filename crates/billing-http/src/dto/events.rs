//! Usage events, default shape in and formatted shape out.

use billing_application::usage::{EventRevision, EventUpdate, EventView, NamedCustomer, NamedUsageProduct, NewUsageEvent};
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::patch::Patch;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{CustomerRef, EntityRef, UsageProductRef};
use billing_domain::text::OneLine;
use billing_domain::usage::{EventKey, MAX_REPORT_KEYS, ReportData, ReportDataError, ReportValue, Validations};
use billing_domain::violation::Violations;
use billing_json::{KEY_MEMBER, hash_of_event};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::input::{self, Fields, Node};
use super::reasons::Reason;
use super::wire::{
    AssignedRef, CurrencyCode, ExactNumber, FreeFormEvent, LineText, NamedRef, QuantityInput, ReportDataJson, TimestampText,
    written,
};
use super::words::{DocumentStateWord, EventActionWord};

/// The most violations that are named of one event of a batch.
const MAX_VIOLATIONS_IN_BATCH: usize = 20;

/// A usage event in the default shape.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({
    "timestamp": "2026-01-20T10:15:30Z",
    "customer_ref": "acme",
    "usage_product_ref": "api-calls",
    "quantity": 12345,
    "additional_report_data": {"region": "eu-1", "requests": 12.5},
    "validations": {"currency": "EUR"}
}))]
pub(crate) struct EventBody {
    /// Time of the usage; at most 5 minutes ahead of the server's clock.
    timestamp: TimestampText,
    /// Related customer. May be left out when `customer_name` is given.
    customer_ref: Option<NamedRef>,
    /// The customer's name, looked up when `customer_ref` is left out.
    customer_name: Option<LineText>,
    /// Related usage product. May be left out when `usage_product_name` is given.
    usage_product_ref: Option<NamedRef>,
    /// The usage product's name, looked up when `usage_product_ref` is left out.
    usage_product_name: Option<LineText>,
    /// Usage quantity.
    quantity: QuantityInput,
    /// Free keys and values for the usage report.
    additional_report_data: Option<ReportDataJson>,
    /// Checks that the event matches its document.
    validations: Option<ValidationsBody>,
}

/// What the document of an event has to be like; an event that doesn't match is refused.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ValidationsBody {
    /// Currency the document must have.
    currency: Option<CurrencyCode>,
    /// Supplier entity the document must belong to.
    entity_ref: Option<NamedRef>,
}

impl EventBody {
    /// Reads an event.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(body: &Value) -> Result<NewUsageEvent, Violations> {
        input::read(body, event)
    }

    /// Reads an event of a batch, which names its own key.
    ///
    /// # Errors
    /// What is wrong with it, up to a limit: thousands of events may each be wrong in hundreds of ways.
    pub(crate) fn read_in_batch(body: &Value) -> Result<NewUsageEvent, Violations> {
        let read = input::read(body, |fields| {
            let key = fields.optional(KEY_MEMBER, |node| node.parsed(IdempotencyKey::parse));
            let sent = key.map(|key| EventKey { key, body: hash_of_event(body) });
            event(fields).map(|event| NewUsageEvent { sent, ..event })
        });
        read.map_err(|mut violations| {
            violations.truncate(MAX_VIOLATIONS_IN_BATCH);
            violations
        })
    }
}

fn event(fields: Fields<'_>) -> Option<NewUsageEvent> {
    let occurred_at = fields.required("timestamp", Node::timestamp);
    let customer = by_ref_or_name(
        fields,
        ("customer_ref", "customer_name"),
        |node| node.parsed(CustomerRef::parse).map(NamedCustomer::Ref),
        NamedCustomer::Name,
    );
    let usage_product = by_ref_or_name(
        fields,
        ("usage_product_ref", "usage_product_name"),
        |node| node.parsed(UsageProductRef::parse).map(NamedUsageProduct::Ref),
        NamedUsageProduct::Name,
    );
    let quantity = fields.required("quantity", |node| node.decimal(Quantity::parse));
    let report_data = fields.optional("additional_report_data", report_data);
    let validations = fields.optional("validations", validations);
    Some(NewUsageEvent {
        customer: customer?,
        usage_product: usage_product?,
        occurred_at: occurred_at?,
        quantity: quantity?,
        report_data,
        validations,
        formatted: None,
        sent: None,
    })
}

/// What of an event is to change; what is left out is kept.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({"event_ref": "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b", "quantity": 12000}))]
pub(crate) struct EventUpdateBody {
    /// The event.
    event_ref: AssignedRef,
    /// Time of the usage; it may move the event to another period.
    #[schema(nullable = false)]
    timestamp: Option<TimestampText>,
    /// Usage quantity.
    #[schema(nullable = false)]
    quantity: Option<QuantityInput>,
    /// Free keys and values for the usage report, replaced as a whole; null clears them.
    additional_report_data: Option<ReportDataJson>,
    /// May be repeated, but not changed.
    customer_ref: Option<NamedRef>,
    /// May be repeated, but not changed.
    usage_product_ref: Option<NamedRef>,
}

impl EventUpdateBody {
    /// Reads an update; the reference stays text, because one that can't be is like one that isn't there.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(body: &Value) -> Result<(String, EventUpdate), Violations> {
        input::read(body, |fields| {
            let event_ref = fields.required("event_ref", |node| node.line());
            let update = EventUpdate {
                occurred_at: fields.kept_or("timestamp", Node::timestamp),
                quantity: fields.kept_or("quantity", |node| node.decimal(Quantity::parse)),
                report_data: fields.patch("additional_report_data", report_data),
                validations: Patch::Keep,
                customer: fields.optional("customer_ref", |node| node.parsed(CustomerRef::parse)).map(NamedCustomer::Ref),
                usage_product: fields
                    .optional("usage_product_ref", |node| node.parsed(UsageProductRef::parse))
                    .map(NamedUsageProduct::Ref),
                formatted: None,
            };
            Some((event_ref?.as_str().to_owned(), update))
        })
    }
}

/// What a reference names, or where it is left out, a name.
fn by_ref_or_name<T: Clone>(
    fields: Fields<'_>,
    (by_ref, by_name): (&str, &str),
    of_ref: impl FnOnce(Node<'_>) -> Option<T>,
    of_name: impl FnOnce(OneLine) -> T,
) -> Option<T> {
    if fields.has(by_ref) {
        // The name isn't looked up, but it has to be one.
        fields.optional(by_name, Node::line);
        fields.required(by_ref, of_ref)
    } else if fields.has(by_name) {
        fields.required(by_name, Node::line).map(of_name)
    } else {
        fields.refuse(by_ref, "required", format!("must be given, unless {by_name} is"))
    }
}

fn validations(node: Node<'_>) -> Option<Validations> {
    node.object(|fields| {
        fields.only(&["currency", "entity_ref"]);
        Some(Validations {
            currency: fields.optional("currency", Node::currency),
            entity_ref: fields.optional("entity_ref", |node| node.parsed(EntityRef::parse)),
        })
    })
}

fn report_data(node: Node<'_>) -> Option<ReportData> {
    node.object(|fields| {
        let entries = fields.entries();
        if entries.len() > MAX_REPORT_KEYS {
            let reason = ReportDataError::TooManyKeys;
            return node.refuse(reason.code(), reason.to_string());
        }
        let values: Vec<Option<(String, ReportValue)>> = entries.map(|(key, node)| report_entry(key, node)).collect();
        let values = values.into_iter().collect::<Option<Vec<_>>>()?;
        ReportData::new(values).map_or_else(|reason| node.refuse(reason.code(), reason.to_string()), Some)
    })
}

/// One entry, held against the domain's limits by itself, so that every bad one is named.
fn report_entry(key: &str, node: Node<'_>) -> Option<(String, ReportValue)> {
    let value = match node.json() {
        Value::Null => ReportValue::Null,
        Value::Bool(value) => ReportValue::Bool(*value),
        Value::Number(number) => ReportValue::Number(number.as_str().to_owned()),
        Value::String(text) => ReportValue::Text(text.clone()),
        Value::Array(_) | Value::Object(_) => return node.refuse("wrong_type", "must be a string, number, true, false or null"),
    };
    let entry = (key.to_owned(), value);
    match ReportData::new(vec![entry.clone()]) {
        Ok(_) => Some(entry),
        Err(reason) => node.refuse(reason.code(), reason.to_string()),
    }
}

/// Where a reported event was put.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "event_ref": "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b",
    "related_document_ref": "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4c",
    "related_document_numbers": "UB-INV-1"
}))]
pub(crate) struct EventResultJson {
    /// Reference of the stored event.
    event_ref: AssignedRef,
    /// Related document: invoice, credit or debit.
    related_document_ref: AssignedRef,
    /// Numbers of the related documents, joined by `, `.
    related_document_numbers: String,
}

impl From<&EventView> for EventResultJson {
    fn from(view: &EventView) -> Self {
        Self {
            event_ref: AssignedRef::from(view.event.event_ref),
            related_document_ref: AssignedRef::from(view.event.placement.document_ref),
            related_document_numbers: view.document_numbers.to_string(),
        }
    }
}

/// The answer to an event in the default shape, as its repeats get it.
pub(crate) fn event_answer(view: &EventView) -> String {
    written(&EventResultJson::from(view))
}

/// The answer to a free-form event, as its repeats get it.
pub(crate) fn formatted_answer(view: &EventView) -> String {
    written(&EventJson::from(view))
}

/// A stored usage event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventJson {
    /// Event reference.
    event_ref: AssignedRef,
    /// Related document.
    related_document_ref: AssignedRef,
    /// Numbers of the related documents, joined by `, `.
    related_document_numbers: String,
    /// The period's invoice, where the event has a document of its own (net terms DUE_UPON_USAGE).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    related_parent_document_ref: Option<AssignedRef>,
    /// Its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    related_parent_document_numbers: Option<String>,
    /// Time of the usage.
    timestamp: TimestampText,
    /// Customer reference.
    customer_ref: NamedRef,
    /// Customer name.
    customer_name: LineText,
    /// Usage product reference.
    usage_product_ref: NamedRef,
    /// Usage product name.
    usage_product_name: LineText,
    /// Quantity.
    quantity: ExactNumber,
    /// Additional data, its keys in the order they were reported.
    additional_report_data: Option<ReportDataJson>,
    /// State of the related document.
    document_state: DocumentStateWord,
    /// When it was first stored.
    created_at: TimestampText,
    /// Counts its changes from 1.
    #[schema(minimum = 1)]
    revision: u32,
    /// The format that processed it, where one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    format_ref: Option<NamedRef>,
    /// That format's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, nullable = false)]
    format_version: Option<u32>,
    /// The event as it was submitted to the format.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    event: Option<FreeFormEvent>,
}

impl From<&EventView> for EventJson {
    fn from(view: &EventView) -> Self {
        let event = &view.event;
        let formatted = event.formatted.as_ref();
        Self {
            event_ref: AssignedRef::from(event.event_ref),
            related_document_ref: AssignedRef::from(event.placement.document_ref),
            related_document_numbers: view.document_numbers.to_string(),
            related_parent_document_ref: view.parent.as_ref().map(|(parent, _)| AssignedRef::from(*parent)),
            related_parent_document_numbers: view.parent.as_ref().map(|(_, number)| number.to_string()),
            timestamp: TimestampText::from(event.occurred_at),
            customer_ref: NamedRef::from(&view.customer_ref),
            customer_name: LineText::from(&view.customer_name),
            usage_product_ref: NamedRef::from(&event.usage_product_ref),
            usage_product_name: LineText::from(&view.usage_product_name),
            quantity: ExactNumber::from(event.quantity),
            additional_report_data: event.report_data.as_ref().map(ReportDataJson::from),
            document_state: DocumentStateWord::from(view.document_state),
            created_at: TimestampText::from(event.recorded_at),
            revision: event.revision,
            format_ref: formatted.map(|source| NamedRef::from(&source.format_ref)),
            format_version: formatted.map(|source| source.format_version),
            event: formatted.map(FreeFormEvent::of),
        }
    }
}

/// One change of an event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventRevisionJson {
    /// Counts the event's changes from 1.
    #[schema(minimum = 1)]
    revision: u32,
    /// When.
    changed_at: TimestampText,
    /// Who: `api_key:` or `admin:` and a reference.
    changed_by: String,
    /// What.
    action: EventActionWord,
    /// The event as it was then.
    event: RevisedEventJson,
    /// The document this change stands on.
    document_ref: AssignedRef,
    /// Its number.
    document_number: String,
}

/// An event as one of its changes left it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RevisedEventJson {
    /// Time of the usage.
    timestamp: TimestampText,
    /// Customer reference.
    customer_ref: NamedRef,
    /// Usage product reference.
    usage_product_ref: NamedRef,
    /// Quantity.
    quantity: ExactNumber,
    /// Additional data.
    additional_report_data: Option<ReportDataJson>,
    /// The format that processed it, where one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    format_ref: Option<NamedRef>,
    /// That format's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, nullable = false)]
    format_version: Option<u32>,
    /// The event as it was submitted to the format.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    event: Option<FreeFormEvent>,
}

impl From<&EventRevision> for EventRevisionJson {
    fn from(revision: &EventRevision) -> Self {
        let event = &revision.event;
        let formatted = event.formatted.as_ref();
        Self {
            revision: event.revision,
            changed_at: TimestampText::from(revision.changed_at),
            changed_by: revision.changed_by.to_string(),
            action: EventActionWord::from(revision.action),
            event: RevisedEventJson {
                timestamp: TimestampText::from(event.occurred_at),
                customer_ref: NamedRef::from(&revision.customer_ref),
                usage_product_ref: NamedRef::from(&event.usage_product_ref),
                quantity: ExactNumber::from(event.quantity),
                additional_report_data: event.report_data.as_ref().map(ReportDataJson::from),
                format_ref: formatted.map(|source| NamedRef::from(&source.format_ref)),
                format_version: formatted.map(|source| source.format_version),
                event: formatted.map(FreeFormEvent::of),
            },
            document_ref: AssignedRef::from(event.placement.document_ref),
            document_number: revision.document_number.to_string(),
        }
    }
}
