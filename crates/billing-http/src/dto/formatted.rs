//! Formatted mode: free-form events in. What comes out is [`EventJson`](super::events::EventJson).

use billing_application::formats::NamedFormat;
use billing_application::usage::FormattedEvent;
use billing_domain::violation::Violations;
use serde_json::Value;
use utoipa::ToSchema;

use super::formats::{free_form_event, named_format};
use super::input::{self, Node};
use super::wire::{AssignedRef, FreeFormEvent, LineText, NamedRef};

/// A free-form usage event and the format that processes it.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({
    "format_name": "Default Format",
    "event": {"timestamp": "2026-01-20T10:15:30Z", "customer_ref": "acme", "usage_product_ref": "api-calls", "quantity": 12345}
}))]
pub(crate) struct FormattedEventBody {
    /// The format, by name. May be left out when `format_ref` is given.
    format_name: Option<LineText>,
    /// The format, by reference; it wins over the name.
    format_ref: Option<NamedRef>,
    /// The event.
    event: FreeFormEvent,
}

impl FormattedEventBody {
    /// Reads an event.
    ///
    /// # Errors
    /// Everything that is wrong with its frame; what is in it is the format's business.
    pub(crate) fn read(body: &Value) -> Result<FormattedEvent, Violations> {
        input::read(body, |fields| {
            let format = if fields.has("format_ref") || fields.has("format_name") {
                named_format(fields)
            } else {
                fields.refuse("format_name", "required", "must be given, unless format_ref is")
            };
            let event = free_form_event(fields);
            Some(FormattedEvent { format: format?, event: event?, sent: None })
        })
    }
}

/// A free-form usage event that takes another's place.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({
    "event_ref": "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b",
    "event": {"timestamp": "2026-01-20T10:15:30Z", "customer_ref": "acme", "usage_product_ref": "api-calls", "quantity": 12000}
}))]
pub(crate) struct FormattedUpdateBody {
    /// The event that is changed.
    event_ref: AssignedRef,
    /// The format, by name; the one that processed the event before when both are left out.
    format_name: Option<LineText>,
    /// The format, by reference; it wins over the name.
    format_ref: Option<NamedRef>,
    /// The event as it should have been.
    event: FreeFormEvent,
}

impl FormattedUpdateBody {
    /// Reads an update: the event's reference, which stays text because one that can't be is like one that isn't there,
    /// the format, and the free-form event's text.
    ///
    /// # Errors
    /// Everything that is wrong with its frame.
    pub(crate) fn read(body: &Value) -> Result<(String, Option<NamedFormat>, String), Violations> {
        input::read(body, |fields| {
            let event_ref = fields.required("event_ref", Node::line);
            let format = named_format(fields);
            let event = free_form_event(fields);
            Some((event_ref?.as_str().to_owned(), format, event?))
        })
    }
}
