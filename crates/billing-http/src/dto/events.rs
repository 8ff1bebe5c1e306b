//! Usage events, default shape in and formatted shape out.

use billing_application::usage::{EventRevision, EventUpdate, EventView, NamedCustomer, NamedUsageProduct, NewUsageEvent};
use billing_domain::calendar::Timestamp;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::money::Currency;
use billing_domain::patch::Patch;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{CustomerRef, EntityRef, UsageProductRef};
use billing_domain::text::OneLine;
use billing_domain::usage::{EventKey, ReportData, Validations};
use billing_domain::violation::Violations;
use billing_json::hash_of_event;
use serde_json::Value;

use super::declare::{Fieldset as _, JsonString, NotClearable, answer, body, ignore_response_fields, object};
use super::enums::{DocumentStateWord, EventActionWord};
use super::input::{self, Fields};
use super::values::AnyEventRef;
use super::wire::{AssignedRef, ExactNumber, FreeFormEvent, LineText, NamedRef, ReportDataJson, TimestampText, written};

/// The most violations that are named of one event of a batch.
const MAX_VIOLATIONS_IN_BATCH: usize = 20;

body! {
    /// A usage event in the default shape.
    EventBody {
        /// Time of the usage; at most 5 minutes ahead of the server's clock.
        timestamp: Timestamp,
        /// Related customer. May be left out when `customer_name` is given.
        customer_ref: Option<CustomerRef>,
        /// The customer's name, looked up when `customer_ref` is left out.
        customer_name: Option<OneLine>,
        /// Related usage product. May be left out when `usage_product_name` is given.
        usage_product_ref: Option<UsageProductRef>,
        /// The usage product's name, looked up when `usage_product_ref` is left out.
        usage_product_name: Option<OneLine>,
        /// Usage quantity.
        quantity: Quantity,
        /// Free keys and values for the usage report; a string with the JSON of them is taken, too.
        additional_report_data: Option<ReportData>,
        /// Checks that the event matches its document; a string with the JSON of them is taken, too.
        validations: Option<JsonString<Validations>>,
        /// What this event is known by when it is sent again, alone, in a batch or in a file: it is taken once. The header
        /// `Idempotency-Key` says the same of an event that comes alone.
        idempotency_key: Option<IdempotencyKey>,
    }
    with {
        fn check(fields: Fields<'_>) {
            check_naming(fields, "customer_ref", "customer_name");
            check_naming(fields, "usage_product_ref", "usage_product_name");
        }
    }
}

impl EventBody {
    /// Reads an event, which may name its own key.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read_event(body: &Value) -> Result<NewUsageEvent, Violations> {
        input::read(body, |fields| {
            let event = Self::read_whole(fields)?;
            let sent = event.idempotency_key.clone().map(|key| EventKey { key, body: hash_of_event(body) });
            event.event().map(|event| NewUsageEvent { sent, ..event })
        })
    }

    /// The same, of one among many.
    ///
    /// # Errors
    /// What is wrong with it, up to a limit: thousands of events may each be wrong in hundreds of ways.
    pub(crate) fn read_in_batch(body: &Value) -> Result<NewUsageEvent, Violations> {
        Self::read_event(body).map_err(|mut violations| {
            violations.truncate(MAX_VIOLATIONS_IN_BATCH);
            violations
        })
    }

    fn event(self) -> Option<NewUsageEvent> {
        let customer = self.customer_ref.map(NamedCustomer::Ref).or(self.customer_name.map(NamedCustomer::Name));
        let product = self.usage_product_ref.map(NamedUsageProduct::Ref);
        Some(NewUsageEvent {
            customer: customer?,
            usage_product: product.or(self.usage_product_name.map(NamedUsageProduct::Name))?,
            occurred_at: self.timestamp,
            quantity: self.quantity,
            report_data: self.additional_report_data,
            validations: self.validations,
            formatted: None,
            sent: None,
            import: None,
        })
    }
}

/// One of a reference and a name has to be there.
pub(super) fn check_naming(fields: Fields<'_>, by_ref: &str, by_name: &str) {
    if !fields.has(by_ref) && !fields.has(by_name) {
        fields.refuse::<()>(by_ref, "required", format!("must be given, unless {by_name} is"));
    }
}

object! {
    /// What the document of an event has to be like; an event that doesn't match is refused.
    Validations as "ValidationsBody" {
        /// Currency the document must have.
        currency: Option<Currency>,
        /// Supplier entity the document must belong to.
        entity_ref: Option<EntityRef>,
    }
}

body! {
    /// What of an event is to change; what is left out is kept. An event as it was answered may be posted back: fields that it has
    /// beside these are ignored.
    EventUpdateBody {
        /// The event.
        event_ref: AnyEventRef,
        /// Time of the usage; it may move the event to another period.
        timestamp: NotClearable<Timestamp>,
        /// Usage quantity.
        quantity: NotClearable<Quantity>,
        /// Free keys and values for the usage report, replaced as a whole; null clears them.
        additional_report_data: Patch<ReportData>,
        /// May be repeated, but not changed.
        customer_ref: Option<CustomerRef>,
        /// May be repeated, but not changed.
        usage_product_ref: Option<UsageProductRef>,
    }
    with {
        ignore_response_fields!(EventJson);
    }
}

impl EventUpdateBody {
    /// What is to change.
    pub(crate) fn update(self) -> EventUpdate {
        EventUpdate {
            occurred_at: self.timestamp,
            quantity: self.quantity,
            report_data: self.additional_report_data,
            validations: Patch::Keep,
            customer: self.customer_ref.map(NamedCustomer::Ref),
            usage_product: self.usage_product_ref.map(NamedUsageProduct::Ref),
            formatted: None,
        }
    }
}

answer! {
    /// Where a reported event was put.
    #[schema(example = json!({
        "event_ref": "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b",
        "related_document_ref": "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4c",
        "related_document_numbers": "UB-INV-1"
    }))]
    EventResultJson of view: EventView {
        /// Reference of the stored event.
        event_ref: AssignedRef = view.event.event_ref,
        /// Related document: invoice, credit or debit.
        related_document_ref: AssignedRef = view.event.placement.document_ref,
        /// Numbers of the related documents, joined by `, `.
        related_document_numbers: String = view.document_numbers.to_string(),
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

answer! {
    /// A stored usage event.
    EventJson of view: EventView {
        let event = &view.event;
        let formatted = event.formatted.as_ref();
        /// Event reference.
        event_ref: AssignedRef = event.event_ref,
        /// Related document.
        related_document_ref: AssignedRef = event.placement.document_ref,
        /// Numbers of the related documents, joined by `, `.
        related_document_numbers: String = view.document_numbers.to_string(),
        /// The period's invoice, where the event has a document of its own (net terms DUE_UPON_USAGE).
        @omitted related_parent_document_ref: Option<AssignedRef> =
            view.parent.as_ref().map(|(parent, _)| AssignedRef::from(*parent)),
        /// Its number.
        @omitted related_parent_document_numbers: Option<String> = view.parent.as_ref().map(|(_, number)| number.to_string()),
        /// Time of the usage.
        timestamp: TimestampText = event.occurred_at,
        /// Customer reference.
        customer_ref: NamedRef = &view.customer_ref,
        /// Customer name.
        customer_name: LineText = &view.customer_name,
        /// Usage product reference.
        usage_product_ref: NamedRef = &event.usage_product_ref,
        /// Usage product name.
        usage_product_name: LineText = &view.usage_product_name,
        /// Quantity.
        quantity: ExactNumber = event.quantity,
        /// Additional data, its keys in the order they were reported.
        additional_report_data: Option<ReportDataJson> = event.report_data.as_ref(),
        /// State of the related document.
        document_state: DocumentStateWord = view.document_state,
        /// When it was first stored.
        created_at: TimestampText = event.recorded_at,
        /// Counts its changes from 1.
        #[schema(minimum = 1)]
        revision: u32 = event.revision,
        /// The format that processed it, where one did.
        @omitted format_ref: Option<NamedRef> = formatted.map(|source| &source.format_ref),
        /// That format's version.
        #[schema(minimum = 1)]
        @omitted format_version: Option<u32> = formatted.map(|source| source.format_version),
        /// The event as it was submitted to the format.
        @omitted event: Option<FreeFormEvent> = formatted.map(FreeFormEvent::of),
    }
}

answer! {
    /// One change of an event.
    EventRevisionJson of revision: EventRevision {
        let event = &revision.event;
        /// Counts the event's changes from 1.
        #[schema(minimum = 1)]
        revision: u32 = event.revision,
        /// When.
        changed_at: TimestampText = revision.changed_at,
        /// Who: `api_key:` or `admin:` and a reference.
        changed_by: String = revision.changed_by.to_string(),
        /// What.
        action: EventActionWord = revision.action,
        /// The event as it was then.
        event: RevisedEventJson = revision,
        /// The document this change stands on.
        document_ref: AssignedRef = event.placement.document_ref,
        /// Its number.
        document_number: String = revision.document_number.to_string(),
    }
}

answer! {
    /// An event as one of its changes left it.
    RevisedEventJson of revision: EventRevision {
        let event = &revision.event;
        let formatted = event.formatted.as_ref();
        /// Time of the usage.
        timestamp: TimestampText = event.occurred_at,
        /// Customer reference.
        customer_ref: NamedRef = &revision.customer_ref,
        /// Usage product reference.
        usage_product_ref: NamedRef = &event.usage_product_ref,
        /// Quantity.
        quantity: ExactNumber = event.quantity,
        /// Additional data.
        additional_report_data: Option<ReportDataJson> = event.report_data.as_ref(),
        /// The format that processed it, where one did.
        @omitted format_ref: Option<NamedRef> = formatted.map(|source| &source.format_ref),
        /// That format's version.
        #[schema(minimum = 1)]
        @omitted format_version: Option<u32> = formatted.map(|source| source.format_version),
        /// The event as it was submitted to the format.
        @omitted event: Option<FreeFormEvent> = formatted.map(FreeFormEvent::of),
    }
}
