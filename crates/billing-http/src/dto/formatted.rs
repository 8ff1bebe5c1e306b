//! Formatted mode: free-form events in. What comes out is [`EventJson`](super::events::EventJson).

use billing_application::formats::NamedFormat;
use billing_domain::refs::FormatRef;
use billing_domain::text::OneLine;

use super::declare::{body, structure};
use super::events::check_naming;
use super::values::{AnyEventRef, FreeForm};

structure! {
    /// The format that a request names: by reference, or where that is left out by name.
    FormatFields {
        /// The format, by name.
        format_name: Option<OneLine>,
        /// The format, by reference; it wins over the name.
        format_ref: Option<FormatRef>,
    }
}

impl FormatFields {
    /// Where one is named.
    pub(crate) fn named(self) -> Option<NamedFormat> {
        self.format_ref.map(NamedFormat::Ref).or(self.format_name.map(NamedFormat::Name))
    }
}

body! {
    /// A free-form usage event and the format that processes it, by name or reference.
    FormattedEventBody {
        @flat format: FormatFields,
        /// The event.
        event: FreeForm,
    }
    with {
        fn check(fields: Fields<'_>) {
            check_naming(fields, "format_name", "format_ref");
        }
    }
}

body! {
    /// A free-form usage event that takes another's place. Without a format it is processed by the one that processed that event before; one
    /// that no format processed needs one.
    FormattedUpdateBody {
        /// The event that is changed.
        event_ref: AnyEventRef,
        @flat format: FormatFields,
        /// The event as it should have been.
        event: FreeForm,
    }
}
