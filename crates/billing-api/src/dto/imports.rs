//! Files of usage events: import requests, results and records.

use billing_application::error::UseCaseError;
use billing_application::names::{Named, ObjectNames};
use billing_application::usage::{AffectedDocument, ImportStop, ImportedFile, UndoResult};
use billing_domain::imports::{ImportRecord, ImportUndo, ImportedDocument};
use billing_domain::refs::EventRef;
use billing_import::{ColumnSample, FileError};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};

use super::declare::{Body, answer, response};
use super::effects::{DocumentChangeJson, EffectTotalsJson};
use super::enums::ImportStateWord;
use super::schemas::Schemas;
use super::values::{CurrencyCode, TimestampText};
use super::wire::{AssignedRef, ExactNumber, NamedRef};
use crate::problem::{FieldProblem, Problem};

/// Maximum number of rejected lines, and of documents, in a response.
const MAX_LISTED: usize = 1_000;

/// A file of usage events as a JSON array.
pub struct FileBody;

impl Body for FileBody {
    fn schema(_: &mut Schemas) -> RefOr<Schema> {
        ArrayBuilder::new().items(ObjectBuilder::new().schema_type(Type::Object)).into()
    }
}

/// A stable error code.
type ErrorCode = &'static str;

response! {
    /// The result or preview of an import.
    #[derive(Debug, Serialize, ToSchema)]
    pub struct ImportResultJson {
        /// Import reference; null in a dry run.
        import_ref: Option<AssignedRef>,
        /// Whether nothing was stored.
        dry_run: bool,
        /// First line that the request asked to process; earlier lines are not counted.
        #[schema(minimum = 1)]
        from_line: u64,
        /// Number of recorded events.
        recorded: u64,
        /// Number of events that were recorded earlier and got other values (`on_conflict=UPDATE`).
        updated: u64,
        /// Number of events that were already recorded and are not recorded again.
        already_there: u64,
        /// Number of rejected events, and of lines that cannot be read.
        refused: u64,
        /// Number of lines that the usage format skips. In a format with `for_each`, also the number of skipped elements.
        skipped: u64,
        /// Number of recorded and already recorded events without `idempotency_key`. They are identified by file name and
        /// line, and a file with another name would record them again.
        known_by_line: u64,
        /// First 1,000 rejected events and lines, in file order.
        rejects: Vec<ImportRejectJson>,
        /// First 1,000 documents that recorded events were assigned to, in order of occurrence.
        documents: Vec<ImportedDocumentJson>,
        /// Number of further documents.
        more_documents: u64,
        /// Columns of a CSV file with sample values, in a dry run; otherwise empty.
        columns: Vec<ImportColumnJson>,
        /// Reason why the import stopped before the end of the file, in the problem document `import_stopped`; null in a
        /// success response.
        stopped: Option<ImportStopJson>,
    }
}

response! {
    /// A rejected line.
    #[derive(Debug, Serialize, ToSchema)]
    pub struct ImportRejectJson {
        /// Line number, or element number in a JSON array, starting at 1.
        #[schema(minimum = 1)]
        line: u64,
        /// Position of the event in the line's list, starting at 0; null if the usage format has no `for_each`.
        item: Option<u64>,
        /// Stable error code.
        #[schema(example = "validation_failed")]
        code: ErrorCode,
        /// Human-readable explanation.
        detail: String,
        /// Invalid fields; empty if the error does not concern fields.
        errors: Vec<FieldProblem>,
        /// Recorded event whose idempotency key or line has other values; null for other errors, and for an event of the same file.
        event_ref: Option<AssignedRef>,
    }
}

answer! {
    /// A column of a file.
    ImportColumnJson of column: ColumnSample {
        /// Name in the file.
        #[schema(example = "Zeit")]
        name: String = column.name.clone(),
        /// Name after renaming; null if the column is ignored.
        #[schema(example = "timestamp")]
        called: Option<String> = column.called.clone(),
        /// Whether the column is report data. If a usage format reads the file, the value is determined as without a
        /// format.
        report_data: bool = column.is_report_data,
        /// Values in the first three lines, up to 80 characters each.
        samples: Vec<String> = column.samples.clone(),
    }
}

answer! {
    /// A document that events of a file were assigned to.
    ImportedDocumentJson of touched: AffectedDocument {
        let document = touched.document.as_ref();
        /// Reference; null in a dry run for a document that does not exist yet.
        document_ref: Option<AssignedRef> = document.map(|(document_ref, _)| AssignedRef::from(document_ref)),
        /// Number; null in a dry run for a document that does not exist yet.
        #[schema(example = "UB-INV-1")]
        document_number: Option<String> = document.map(|(_, number)| number.to_string()),
        /// Customer reference.
        customer_ref: NamedRef = &touched.customer_ref,
        /// Currency.
        currency: CurrencyCode = touched.currency,
        /// Number of events assigned to the document.
        events: u64 = touched.events,
        /// Current total with tax, in a dry run of up to 10,000 lines and for the first 100 documents; null for a
        /// document that does not exist yet.
        total_before: Option<ExactNumber> = touched.total.and_then(|total| total.before),
        /// Total with tax after the import, under the same conditions.
        total: Option<ExactNumber> = touched.total.map(|total| total.after),
    }
}

response! {
    /// The reason why an import stopped before the end of the file. Earlier lines are imported. To continue, send the file
    /// again, or send it with `from_line`.
    #[derive(Debug, Serialize, ToSchema)]
    pub struct ImportStopJson {
        /// First line that was not imported.
        #[schema(minimum = 1)]
        line: u64,
        /// Stable error code.
        #[schema(example = "timed_out")]
        code: ErrorCode,
        /// Human-readable explanation.
        detail: String,
    }
}

/// Collects the first rejected lines.
#[derive(Debug, Default)]
pub struct ImportRejects {
    listed: Vec<ImportRejectJson>,
}

impl ImportRejects {
    pub fn add(&mut self, line: u64, item: Option<usize>, problem: &Problem) {
        if self.listed.len() < MAX_LISTED {
            let detail = match problem.errors() {
                [only] => only.detail.as_str(),
                _ => problem.detail(),
            };
            let (detail, errors) = (detail.to_owned(), problem.errors().to_vec());
            let item = item.map(|item| item as u64);
            let event_ref = problem.recorded_event().map(AssignedRef::from);
            self.listed.push(ImportRejectJson { line, item, code: problem.code(), detail, errors, event_ref });
        }
    }
}

impl ImportResultJson {
    pub fn new(imported: ImportedFile<FileError>, from_line: u64, rejects: ImportRejects, columns: &[ColumnSample]) -> Self {
        let ImportedFile { import_ref, summary, refused, stopped } = imported;
        let more = summary.documents.len().saturating_sub(MAX_LISTED);
        let stopped = stopped.map(|(line, reason)| {
            let problem = match reason {
                ImportStop::OutOfTime => Problem::import_out_of_time(),
                ImportStop::Failed(error) => Problem::from(error),
                ImportStop::Caller(error) => Problem::malformed("malformed_file", error.to_string()),
            };
            ImportStopJson { line, code: problem.code(), detail: problem.detail().to_owned() }
        });
        Self {
            import_ref: import_ref.map(AssignedRef::from),
            dry_run: import_ref.is_none(),
            from_line,
            recorded: summary.recorded,
            updated: summary.updated,
            already_there: summary.already_there,
            refused,
            skipped: summary.skipped,
            known_by_line: summary.known_by_line,
            rejects: rejects.listed,
            documents: summary.documents.iter().take(MAX_LISTED).map(ImportedDocumentJson::from).collect(),
            more_documents: more as u64,
            columns: columns.iter().map(ImportColumnJson::from).collect(),
            stopped,
        }
    }

    /// Returns the problem with this result if the import stopped before the end of its file.
    pub fn stop(&self) -> Option<Problem> {
        let ImportStopJson { line, code, detail } = self.stopped.as_ref()?;
        let (place, again) = if self.dry_run {
            ("nothing is stored", "send the file again")
        } else {
            ("earlier lines are stored", "send the file again, which skips recorded lines")
        };
        let detail =
            format!("the import stopped at line {line} ({code}: {detail}); {place}: {again}, or continue with from_line={line}");
        // Serialization of the result cannot fail; without it, the problem still names the line.
        Some(Problem::import_stopped(detail, serde_json::to_value(self).unwrap_or_default()))
    }
}

/// An import and, if a single import was requested, the number of events that undoing it would process. Its author has a name
/// except in the response of an undo.
pub type ImportResponse = Named<(ImportRecord, Option<u64>)>;

answer! {
    /// An import of a file of usage events.
    ImportJson of reported: ImportResponse {
        let (import, left) = (&reported.item.0, reported.item.1);
        /// Reference.
        import_ref: AssignedRef = import.import_ref,
        /// File name, which with the line number identifies lines without an idempotency key.
        #[schema(example = "gateway-2026-01.csv")]
        name: Option<String> = import.file.name.clone(),
        /// Size of the file in bytes.
        bytes: u64 = import.file.bytes,
        /// SHA-256 of the file in hexadecimal digits.
        sha256: String = hexadecimal(&import.file.sha256),
        /// Author: `admin:` or `api_key:` and a reference, or `command_line`.
        #[schema(example = "command_line")]
        actor: String = import.author.to_string(),
        /// E-mail address of the administrator or name of the API key. Null for other authors, and for callers who are neither
        /// administrators nor owners.
        #[schema(example = "dana@example.com")]
        actor_name: Option<String> = reported.names.of_actor(import.author),
        /// Start time.
        begun_at: TimestampText = import.begun_at,
        /// End time; null if the import has not reported its end.
        ended_at: Option<TimestampText> = import.ended_at,
        /// Time of the last change.
        updated_at: TimestampText = import.updated_at,
        /// State.
        state: ImportStateWord = import.state(),
        /// Line at which the import stopped; null if it did not stop early.
        stopped_at_line: Option<u64> = import.stopped_at,
        /// Number of recorded events; 0 until the import has ended.
        recorded: u64 = import.recorded,
        /// Number of recorded events that got other values. Undoing the import leaves them: import the earlier file again.
        updated: u64 = import.updated,
        /// Number of events that were already recorded.
        already_there: u64 = import.already_there,
        /// Number of rejected events, and of lines that cannot be read.
        refused: u64 = import.refused,
        /// Number of lines, and of elements of lines, that the usage format skips.
        skipped: u64 = import.skipped,
        /// Progress of undoing the import; null if nobody requested it.
        undone: Option<ImportUndoJson> = import.undone.as_ref().map(|undone| named_undo(undone, &reported.names)),
        /// Id of the request; null if no request caused it.
        request_id: Option<String> = import.request_id.as_ref().map(ToString::to_string),
        /// Number of recorded events that undoing the import would process; it deletes those that are not deleted
        /// already. Only for a single import.
        @omitted left: Option<u64> = left,
        /// First 500 documents that the import's events were assigned to; only for a single import.
        @omitted documents: Option<Vec<ImportedDocumentSummaryJson>> = left.map(|_| import.documents.iter().map(ImportedDocumentSummaryJson::from).collect::<Vec<_>>()),
        /// Number of further documents; only for a single import.
        @omitted more_documents: Option<u64> = left.map(|_| import.more_documents),
    }
}

/// The progress of undoing an import and the name of its author.
type NamedUndo = (ImportUndo, Option<String>);

fn named_undo(undone: &ImportUndo, names: &ObjectNames) -> ImportUndoJson {
    ImportUndoJson::from(&(undone.clone(), names.of_actor(undone.author)))
}

answer! {
    /// The progress of undoing an import.
    ImportUndoJson of named: NamedUndo {
        let (undone, actor_name) = (&named.0, named.1.clone());
        /// Author of the latest request.
        actor: String = undone.author.to_string(),
        /// Name of the author, as in the import.
        actor_name: Option<String> = actor_name,
        /// Start time.
        begun_at: TimestampText = undone.begun_at,
        /// Time when no event was left to delete; null until then.
        ended_at: Option<TimestampText> = undone.ended_at,
        /// Number of deleted events.
        deleted: u64 = undone.deleted,
        /// Number of events that were already deleted.
        already_deleted: u64 = undone.already_deleted,
    }
}

answer! {
    /// A document that events of an import were assigned to.
    ImportedDocumentSummaryJson of document: ImportedDocument {
        /// Reference.
        document_ref: AssignedRef = document.document_ref,
        /// Number.
        #[schema(example = "UB-INV-1")]
        document_number: String = document.number.to_string(),
        /// Customer reference.
        customer_ref: NamedRef = &document.customer_ref,
        /// Currency.
        currency: CurrencyCode = document.currency,
        /// Number of events assigned to the document.
        events: u64 = document.events,
    }
}

/// An event that could not be deleted, and the reason.
pub type UndoFailure = (EventRef, UseCaseError);

answer! {
    /// The result of a request to undo an import.
    UndoResultJson of result: UndoResult {
        let view = &result.view;
        /// Current state of the import.
        import: ImportJson = &Named::without_names((view.import.clone(), Some(view.left))),
        /// Number of events deleted by this request.
        deleted: u64 = result.deleted,
        /// Number of events that were already deleted.
        already_deleted: u64 = result.already_deleted.len() as u64,
        /// References of the first 1,000 events that were already deleted.
        already_deleted_refs: Vec<AssignedRef> = result.already_deleted.iter().copied().take(MAX_LISTED),
        /// Number of events that could not be deleted and are still billed.
        refused: u64 = result.refused.len() as u64,
        /// First 1,000 events that could not be deleted, with reasons.
        rejects: Vec<UndoRejectJson> = result.refused.iter().take(MAX_LISTED),
        /// Number of events still to delete; if not 0, send the same request again to continue.
        left: u64 = view.left,
        /// First 1,000 documents with other billed amounts, each from before this request changed it first to after it changed it
        /// last. Includes what others changed in between. Empty in a dry run, which returns its effects.
        changes: Vec<DocumentChangeJson> = result.changes.iter().take(MAX_LISTED),
        /// Number of further documents.
        more_changes: u64 = result.changes.len().saturating_sub(MAX_LISTED) as u64,
        /// Sums of all these documents by currency.
        totals: Vec<EffectTotalsJson> = &result.totals,
    }
}

answer! {
    /// An event that could not be deleted.
    UndoRejectJson of kept: UndoFailure {
        let problem = Problem::of(&kept.1);
        /// Event reference.
        event_ref: AssignedRef = kept.0,
        /// Stable error code.
        #[schema(example = "amount_out_of_range")]
        code: String = problem.code().to_owned(),
        /// Human-readable explanation.
        detail: String = problem.detail().to_owned(),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
