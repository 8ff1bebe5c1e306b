//! Imports of files of usage events, as they are told afterwards, and how far they are undone.

use crate::access::RequestId;
use crate::audit::AuditActor;
use crate::calendar::Timestamp;
use crate::document::numbering::DocumentNumber;
use crate::idempotency::IdempotencyKey;
use crate::money::Currency;
use crate::refs::{CustomerRef, DocumentRef, EventRef, ImportRef};

/// How long imports are kept, and can be undone, in days.
pub const IMPORTS_KEPT_DAYS: i64 = 400;
/// The most documents that are kept of an import one by one.
pub const MAX_IMPORT_DOCUMENTS: usize = 500;

/// How far an import has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportState {
    /// It hasn't said that it ended: it goes on, or was broken off with the process.
    Unfinished,
    /// It ended before the file did.
    CutShort,
    /// It ended with the file.
    Finished,
    /// Undoing it began, and isn't done.
    Undoing,
    /// It is undone.
    Undone,
}

/// A file that was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedFileFacts {
    /// What its lines are known by, where it has a name.
    pub name: Option<String>,
    /// Its size in bytes.
    pub bytes: u64,
    /// SHA-256 of its bytes.
    pub sha256: [u8; 32],
}

/// A document that events of an import went on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedDocument {
    /// Reference.
    pub document_ref: DocumentRef,
    /// Number.
    pub number: DocumentNumber,
    /// Whose it is.
    pub customer_ref: CustomerRef,
    /// Its currency.
    pub currency: Currency,
    /// How many events went on it.
    pub events: u64,
}

/// How far an import is undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportUndo {
    /// Who asked for it last.
    pub author: AuditActor,
    /// When it began.
    pub begun_at: Timestamp,
    /// When nothing was left of it.
    pub ended_at: Option<Timestamp>,
    /// Events it deleted.
    pub deleted: u64,
    /// Events that were deleted before.
    pub already_deleted: u64,
}

/// An import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportRecord {
    /// Reference.
    pub import_ref: ImportRef,
    /// The file.
    pub file: ImportedFileFacts,
    /// Who imported it.
    pub author: AuditActor,
    /// By which request, where it was one.
    pub request_id: Option<RequestId>,
    /// When it began.
    pub begun_at: Timestamp,
    /// When it ended; `None` while it hasn't said so.
    pub ended_at: Option<Timestamp>,
    /// The line that it stopped at, where it did before the file's end.
    pub stopped_at: Option<u64>,
    /// Events it recorded; known when it ended.
    pub recorded: u64,
    /// Events that were recorded before.
    pub already_there: u64,
    /// Lines that were refused.
    pub refused: u64,
    /// The first documents that its events went on, at most [`MAX_IMPORT_DOCUMENTS`].
    pub documents: Vec<ImportedDocument>,
    /// Documents beyond those.
    pub more_documents: u64,
    /// How far it is undone, where that was asked for.
    pub undone: Option<ImportUndo>,
}

impl ImportRecord {
    /// An import that begins.
    pub const fn begun(
        import_ref: ImportRef,
        file: ImportedFileFacts,
        author: AuditActor,
        request_id: Option<RequestId>,
        begun_at: Timestamp,
    ) -> Self {
        let (recorded, already_there, refused, more_documents) = (0, 0, 0, 0);
        Self {
            import_ref,
            file,
            author,
            request_id,
            begun_at,
            ended_at: None,
            stopped_at: None,
            recorded,
            already_there,
            refused,
            documents: Vec::new(),
            more_documents,
            undone: None,
        }
    }

    /// How far it has come.
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

/// An event that an import made, and the key it was sent with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedEvent {
    /// The event.
    pub event_ref: EventRef,
    /// Its key.
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
