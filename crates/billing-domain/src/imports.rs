//! Records of file imports of usage events, and the progress of undoing them.

use crate::access::RequestId;
use crate::audit::AuditActor;
use crate::calendar::Timestamp;
use crate::document::numbering::DocumentNumber;
use crate::idempotency::IdempotencyKey;
use crate::money::Currency;
use crate::refs::{CustomerRef, DocumentRef, EventRef, ImportRef};

/// The time in days for which imports are stored and can be undone.
pub const IMPORTS_KEPT_DAYS: i64 = 400;
/// The maximum number of documents in the record of an import.
pub const MAX_IMPORT_DOCUMENTS: usize = 500;

/// The state of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportState {
    /// No end is recorded. The import is still active, or its process ended before the import did.
    Unfinished,
    /// The import stopped before the end of the file.
    CutShort,
    /// The import reached the end of the file.
    Finished,
    /// Undoing the import has started and isn't complete.
    Undoing,
    /// The import is undone.
    Undone,
}

/// The facts about an imported file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedFileFacts {
    /// The import name, which identifies lines without an idempotency key. `None` if the file has no name.
    pub name: Option<String>,
    /// The size in bytes.
    pub bytes: u64,
    /// The SHA-256 digest of the file.
    pub sha256: [u8; 32],
}

/// A document that bills events of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedDocument {
    /// The reference of the document.
    pub document_ref: DocumentRef,
    /// The number of the document.
    pub number: DocumentNumber,
    /// The customer of the document.
    pub customer_ref: CustomerRef,
    /// The currency of the document.
    pub currency: Currency,
    /// The number of the import's events on the document.
    pub events: u64,
}

/// The progress of undoing an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportUndo {
    /// The actor of the latest request.
    pub author: AuditActor,
    /// The start time.
    pub begun_at: Timestamp,
    /// The time at which all events were deleted, or `None`.
    pub ended_at: Option<Timestamp>,
    /// The number of events that the undo deleted.
    pub deleted: u64,
    /// The number of events that were already deleted.
    pub already_deleted: u64,
}

/// The record of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportRecord {
    /// The reference of the import.
    pub import_ref: ImportRef,
    /// The imported file.
    pub file: ImportedFileFacts,
    /// The actor that imported the file.
    pub author: AuditActor,
    /// The id of the request, or `None` outside a request.
    pub request_id: Option<RequestId>,
    /// The start time.
    pub begun_at: Timestamp,
    /// The end time, or `None` if no end is recorded.
    pub ended_at: Option<Timestamp>,
    /// The line at which the import stopped before the end of the file, or `None`.
    pub stopped_at: Option<u64>,
    /// The number of recorded events. It is known when the import has ended.
    pub recorded: u64,
    /// The number of recorded events that got other facts.
    pub updated: u64,
    /// The number of events that were already recorded.
    pub already_there: u64,
    /// The number of rejected events, and of lines that can't be read.
    pub refused: u64,
    /// The number of lines, and of elements of lines, that the usage format skips.
    pub skipped: u64,
    /// The first documents of the import's events, at most [`MAX_IMPORT_DOCUMENTS`].
    pub documents: Vec<ImportedDocument>,
    /// The number of further documents.
    pub more_documents: u64,
    /// The progress of undoing the import, or `None` if no undo was requested.
    pub undone: Option<ImportUndo>,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

impl ImportRecord {
    /// Creates the record of an import that begins.
    pub const fn begun(
        import_ref: ImportRef,
        file: ImportedFileFacts,
        author: AuditActor,
        request_id: Option<RequestId>,
        begun_at: Timestamp,
    ) -> Self {
        let (recorded, updated, already_there, refused, skipped, more_documents) = (0, 0, 0, 0, 0, 0);
        Self {
            import_ref,
            file,
            author,
            request_id,
            begun_at,
            ended_at: None,
            stopped_at: None,
            recorded,
            updated,
            already_there,
            refused,
            skipped,
            documents: Vec::new(),
            more_documents,
            undone: None,
            updated_at: begun_at,
        }
    }

    /// Returns the state of the import.
    pub const fn state(&self) -> ImportState {
        match (&self.undone, self.ended_at, self.stopped_at) {
            (Some(ImportUndo { ended_at: Some(_), .. }), ..) => ImportState::Undone,
            (Some(ImportUndo { ended_at: None, .. }), ..) => ImportState::Undoing,
            (None, None, _) => ImportState::Unfinished,
            (None, Some(_), Some(_)) => ImportState::CutShort,
            (None, Some(_), None) => ImportState::Finished,
        }
    }
}

/// An event that an import recorded, with its idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedEvent {
    /// The event.
    pub event_ref: EventRef,
    /// The idempotency key of the event.
    pub key: Option<IdempotencyKey>,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn an_import_says_how_far_it_has_come() {
        let at = Timestamp::from_micros(0).expect("an instant");
        let file = ImportedFileFacts { name: None, bytes: 0, sha256: [0; 32] };
        let mut import = ImportRecord::begun(ImportRef::from_uuid(Uuid::nil()), file, AuditActor::CommandLine, None, at);
        assert_eq!(import.state(), ImportState::Unfinished);
        import.ended_at = Some(at);
        assert_eq!(import.state(), ImportState::Finished);
        import.stopped_at = Some(7);
        assert_eq!(import.state(), ImportState::CutShort);
        let undone = ImportUndo { author: AuditActor::CommandLine, begun_at: at, ended_at: None, deleted: 1, already_deleted: 0 };
        import.undone = Some(undone.clone());
        assert_eq!(import.state(), ImportState::Undoing);
        import.undone = Some(ImportUndo { ended_at: Some(at), ..undone });
        assert_eq!(import.state(), ImportState::Undone);
    }
}
