//! The response to an event that contains only the event's document. Nearly all responses are like this, so they are
//! rebuilt, not stored.

use billing_domain::document::numbering::DocumentNumber;
use billing_domain::refs::{DocumentRef, EventRef};
use billing_domain::usage::AnswerForm;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Returns the exact bytes of a response that is not stored. The format never changes, because replays must match the
/// original response.
pub(crate) fn answer_of_place(event: EventRef, document: DocumentRef, number: &DocumentNumber) -> String {
    format!(r#"{{"event_ref":"{event}","related_document_ref":"{document}","related_document_numbers":"{number}"}}"#)
}

/// Returns the form of a stored response.
pub(crate) fn form_of(answer: &str) -> AnswerForm {
    #[expect(dead_code, reason = "only the names of the fields matter")]
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct OfPlace {
        event_ref: IgnoredAny,
        related_document_ref: IgnoredAny,
        related_document_numbers: IgnoredAny,
    }
    if serde_json::from_str::<OfPlace>(answer).is_ok() { AnswerForm::Place } else { AnswerForm::Event }
}
