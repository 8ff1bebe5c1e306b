//! The response to an event that contains only the event's document. Nearly all responses are like this, so they are
//! rebuilt, not stored.

use billing_domain::document::numbering::DocumentNumber;
use billing_domain::refs::{DocumentRef, EventRef};

/// Returns the exact bytes of a response that is not stored. The format never changes, because replays must match the
/// original response.
pub(crate) fn answer_of_place(event: EventRef, document: DocumentRef, number: &DocumentNumber) -> String {
    format!(r#"{{"event_ref":"{event}","related_document_ref":"{document}","related_document_numbers":"{number}"}}"#)
}
