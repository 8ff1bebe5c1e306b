//! The answer to an event that says no more than where the event was put, as nearly all do: it is made again, not kept.

use billing_domain::document::numbering::DocumentNumber;
use billing_domain::refs::{DocumentRef, EventRef};

/// What is answered to the byte when nothing else is kept. It never changes: answers that were given say so.
pub(crate) fn answer_of_place(event: EventRef, document: DocumentRef, number: &DocumentNumber) -> String {
    format!(r#"{{"event_ref":"{event}","related_document_ref":"{document}","related_document_numbers":"{number}"}}"#)
}
