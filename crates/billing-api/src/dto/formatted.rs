//! Free-form events in requests. Responses are [`EventJson`](super::events::EventJson).

use billing_application::formats::NamedFormat;
use billing_domain::refs::{FormatRef, HoldRef};
use billing_domain::text::OneLine;
use utoipa::ToSchema;

use super::declare::{body, structure};
use super::events::{EventJson, check_naming};
use super::values::{AnyEventRef, FreeForm};

structure! {
    /// The format named by a request: by reference, else by name.
    FormatFields {
        /// Name of the usage format. In a query, CloudEvents have the format `CloudEvents` by default.
        format_name: Option<OneLine>,
        /// Reference of the usage format; takes precedence over the name.
        format_ref: Option<FormatRef>,
    }
}

impl FormatFields {
    /// Returns the named format, if any.
    pub fn named(self) -> Option<NamedFormat> {
        self.format_ref.map(NamedFormat::Ref).or(self.format_name.map(NamedFormat::Name))
    }
}

body! {
    /// A free-form usage event and the usage format that converts it, by name or reference.
    FormattedEventBody {
        @flat format: FormatFields,
        /// Event.
        event: FreeForm,
        /// Whether the usage has already happened, so that no limit rejects it. Default: false.
        occurred: bool = false,
        /// Hold whose first open entry of the usage product the event ends. No limit rejects the event.
        hold_ref: Option<HoldRef>,
    }
    with {
        fn check(fields: Fields<'_>) {
            check_naming(fields, "format_name", "format_ref");
        }
    }
}

/// The recorded event, or the events of a usage format with `for_each`.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum FormattedResultJson {
    /// The event of a usage format without `for_each`.
    Event(Box<EventJson>),
    /// The events of a usage format with `for_each`.
    Elements(FormattedElementsJson),
}

/// The events of the elements of a free-form event. All are recorded, or none.
#[expect(dead_code, reason = "describes an answer that is put together from kept answers")]
#[derive(ToSchema)]
pub struct FormattedElementsJson {
    /// One event per element, in the order of the list; null for a skipped element.
    results: Vec<Option<EventJson>>,
}

body! {
    /// A free-form usage event that replaces a recorded event. The default format is the one that converted the recorded
    /// event; it is required if no format did.
    FormattedUpdateBody {
        /// Event to replace.
        event_ref: AnyEventRef,
        @flat format: FormatFields,
        /// Corrected event.
        event: FreeForm,
    }
}
