//! Usage events: requests in the default format, responses as stored.

use billing_application::names::Named;
use billing_application::usage::{
    EventAnswer, EventRevision, EventUpdate, EventView, NamedCustomer, NamedUsageProduct, NewUsageEvent,
};
use billing_domain::audit::AuditActor;
use billing_domain::calendar::Timestamp;
use billing_domain::event_input::OnConflict;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::money::Currency;
use billing_domain::patch::Patch;
use billing_domain::refs::{CustomerRef, EntityRef, HoldRef, UsageProductRef};
use billing_domain::text::OneLine;
use billing_domain::usage::{AnswerForm, ReportData, Validations};
use billing_domain::violation::Violations;
use serde_json::Value;

use super::declare::{Fieldset as _, JsonString, NotClearable, answer, body, ignore_response_fields, object};
use super::enums::{DocumentStateWord, EventActionWord};
use super::input::{self, Fields};
use super::values::{AnyEventRef, LineText, ReportedQuantity, TimestampText};
use super::wire::{AssignedRef, ExactNumber, FreeFormEvent, NamedRef, ReportDataJson, written};

body! {
    /// A usage event in the default format.
    EventBody {
        /// Time of the usage, at most 5 minutes ahead of the server's clock.
        timestamp: Timestamp,
        /// Customer reference; optional if `customer_name` is given.
        customer_ref: Option<CustomerRef>,
        /// Customer name, used if `customer_ref` is omitted.
        customer_name: Option<OneLine>,
        /// Usage product reference; optional if `usage_product_name` is given.
        usage_product_ref: Option<UsageProductRef>,
        /// Usage product name, used if `usage_product_ref` is omitted.
        usage_product_name: Option<OneLine>,
        /// Usage quantity.
        quantity: ReportedQuantity,
        /// Keys and values for the usage report, as an object or as a string with its JSON.
        additional_report_data: Option<ReportData>,
        /// Checks on the event's document, as an object or as a string with its JSON.
        validations: Option<JsonString<Validations>>,
        /// Key that identifies repeats of the event, whether sent alone, in a batch or in a file; the event is recorded
        /// once. For a single event, the `Idempotency-Key` header has the same effect.
        idempotency_key: Option<IdempotencyKey>,
        /// Whether the usage has already happened, so that no limit rejects it. It is no value of the event: the key of a
        /// rejected event can be used again with it. Default: false.
        occurred: bool = false,
        /// Hold whose first open entry of the usage product the event ends. No limit rejects the event.
        hold_ref: Option<HoldRef>,
    }
    with {
        fn check(fields: Fields<'_>) {
            check_naming(fields, "customer_ref", "customer_name");
            check_naming(fields, "usage_product_ref", "usage_product_name");
        }
    }
}

impl EventBody {
    /// Reads an event, which can contain its idempotency key.
    ///
    /// # Errors
    /// Returns all violations.
    pub fn read_event(body: &Value) -> Result<NewUsageEvent, Violations> {
        input::read(body, |fields| {
            let event = Self::read_whole(fields)?;
            event.event()
        })
    }

    /// Returns the event, or `None` if the customer or the usage product is missing.
    pub(super) fn event(self) -> Option<NewUsageEvent> {
        let customer = self.customer_ref.map(NamedCustomer::Ref).or(self.customer_name.map(NamedCustomer::Name));
        let product = self.usage_product_ref.map(NamedUsageProduct::Ref);
        Some(NewUsageEvent {
            customer: customer?,
            usage_product: product.or(self.usage_product_name.map(NamedUsageProduct::Name))?,
            occurred_at: self.timestamp,
            is_time_of_receipt: false,
            quantity: self.quantity,
            report_data: self.additional_report_data,
            validations: self.validations,
            formatted: None,
            key: self.idempotency_key,
            on_conflict: OnConflict::Reject,
            occurred: self.occurred,
            hold_ref: self.hold_ref,
            import: None,
        })
    }
}

/// Requires a reference or a name.
pub(super) fn check_naming(fields: Fields<'_>, by_ref: &str, by_name: &str) {
    if !fields.has(by_ref) && !fields.has(by_name) {
        fields.refuse::<()>(by_ref, "required", format!("must be given if {by_name} is not given"));
    }
}

object! {
    /// Requirements on the event's document; an event that does not match is rejected.
    Validations as "ValidationsBody" {
        /// Required currency of the document.
        currency: Option<Currency>,
        /// Required supplier entity of the document.
        entity_ref: Option<EntityRef>,
    }
}

body! {
    /// Changes to an event. Omitted fields stay unchanged. An event from a response can be posted back; its other fields
    /// are ignored.
    EventUpdateBody {
        /// Event reference.
        event_ref: AnyEventRef,
        /// Time of the usage; a change can move the event to another period.
        timestamp: NotClearable<Timestamp>,
        /// Usage quantity.
        quantity: NotClearable<ReportedQuantity>,
        /// Keys and values for the usage report, replaced as a whole; null clears them.
        additional_report_data: Patch<ReportData>,
        /// Can be repeated but not changed.
        customer_ref: Option<CustomerRef>,
        /// Can be repeated but not changed.
        usage_product_ref: Option<UsageProductRef>,
    }
    with {
        ignore_response_fields!(EventJson);
    }
}

impl EventUpdateBody {
    /// Returns the requested changes.
    pub fn update(self) -> EventUpdate {
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
    /// A recorded event with its document.
    #[schema(example = json!({
        "event_ref": "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b",
        "related_document_ref": "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4c",
        "related_document_numbers": "UB-INV-1"
    }))]
    EventResultJson of view: EventView {
        /// Reference of the stored event.
        event_ref: AssignedRef = view.event.event_ref,
        /// Document that bills the event: an invoice, credit or debit.
        related_document_ref: AssignedRef = view.event.placement.document_ref,
        /// Numbers of the documents that bill the event, joined by `, `.
        related_document_numbers: String = view.document_numbers.to_string(),
    }
}

/// The response to an event in the default format, also for its repeats.
pub const EVENT_ANSWER: EventAnswer =
    EventAnswer { form: AnswerForm::Place, render: |view| written(&EventResultJson::from(view)) };

/// The response to a free-form event, also for its repeats.
pub const FORMATTED_ANSWER: EventAnswer = EventAnswer { form: AnswerForm::Event, render: |view| written(&EventJson::from(view)) };

answer! {
    /// A stored usage event.
    EventJson of view: EventView {
        let event = &view.event;
        let formatted = event.formatted.as_ref();
        /// Event reference.
        event_ref: AssignedRef = event.event_ref,
        /// Document that bills the event.
        related_document_ref: AssignedRef = event.placement.document_ref,
        /// Numbers of the documents that bill the event, joined by `, `.
        related_document_numbers: String = view.document_numbers.to_string(),
        /// Invoice of the period, if the event has its own document (net terms DUE_UPON_USAGE).
        @omitted related_parent_document_ref: Option<AssignedRef> =
            view.parent.as_ref().map(|(parent, _)| AssignedRef::from(*parent)),
        /// Number of that invoice.
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
        /// Line items that count the event now, by its labels.
        line_item_ids: Vec<NamedRef> = &view.line_items,
        /// Keys and values for the usage report, in the reported order. They are also the event's labels.
        additional_report_data: Option<ReportDataJson> = event.report_data.as_ref(),
        /// State of the related document.
        document_state: DocumentStateWord = view.document_state,
        /// Time when it was first stored.
        created_at: TimestampText = event.recorded_at,
        /// Time of the creation or the last change of the event.
        updated_at: TimestampText = event.revised_at,
        /// Revision number, starting at 1.
        #[schema(minimum = 1)]
        revision: u32 = event.revision,
        /// Usage format that converted the event, if any.
        @omitted format_ref: Option<NamedRef> = formatted.map(|source| &source.format_ref),
        /// Version of the usage format.
        #[schema(minimum = 1)]
        @omitted format_version: Option<u32> = formatted.map(|source| source.format_version),
        /// Free-form event as submitted.
        @omitted event: Option<FreeFormEvent> = formatted.map(FreeFormEvent::of),
    }
}

answer! {
    /// A change of an event.
    EventRevisionJson of revision: Named<EventRevision> {
        let event = &revision.event;
        /// Revision number, starting at 1.
        #[schema(minimum = 1)]
        revision: u32 = event.revision,
        /// Time of the change.
        changed_at: TimestampText = revision.changed_at,
        /// Author of the change: `api_key:` or `admin:` and a reference.
        changed_by: String = revision.changed_by.to_string(),
        /// E-mail address of the administrator or name of the API key, if the caller may see it.
        changed_by_name: Option<String> = revision.names.of_actor(AuditActor::of(revision.changed_by)),
        /// Action.
        action: EventActionWord = revision.action,
        /// Event after the change.
        event: RevisedEventJson = &revision.item,
        /// Document that bills the event after the change.
        document_ref: AssignedRef = event.placement.document_ref,
        /// Number of that document.
        document_number: String = revision.document_number.to_string(),
    }
}

answer! {
    /// An event at one revision.
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
        /// Keys and values for the usage report.
        additional_report_data: Option<ReportDataJson> = event.report_data.as_ref(),
        /// Usage format that converted the event, if any.
        @omitted format_ref: Option<NamedRef> = formatted.map(|source| &source.format_ref),
        /// Version of the usage format.
        #[schema(minimum = 1)]
        @omitted format_version: Option<u32> = formatted.map(|source| source.format_version),
        /// Free-form event as submitted.
        @omitted event: Option<FreeFormEvent> = formatted.map(FreeFormEvent::of),
    }
}
