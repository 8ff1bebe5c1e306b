//! Files of usage events: what is asked, what became of them, and imports as they are told afterwards.

use billing_application::error::UseCaseError;
use billing_application::usage::{AffectedDocument, EventView, FileImport, UndoResult};
use billing_domain::format::DEFAULT_FORMAT_REF;
use billing_domain::imports::{ImportRecord, ImportUndo, ImportedDocument};
use billing_domain::refs::EventRef;
use billing_import::ColumnSample;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};

use super::declare::{Body, answer};
use super::enums::ImportStateWord;
use super::events::{event_answer, formatted_answer};
use super::schemas::Schemas;
use super::wire::{AssignedRef, CurrencyCode, ExactNumber, NamedRef, TimestampText};
use crate::problem::{FieldProblem, Problem};

/// The most rejects, and the most documents, that one answer lists.
const MAX_LISTED: usize = 1_000;

/// A file of usage events, as JSON: an array of them.
pub(crate) struct FileBody;

impl Body for FileBody {
    fn schema(_: &mut Schemas) -> RefOr<Schema> {
        ArrayBuilder::new().items(ObjectBuilder::new().schema_type(Type::Object)).into()
    }
}

/// What became of a file's events, or would.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ImportResultJson {
    /// What the import is known by from now on; null in a dry run.
    import_ref: Option<AssignedRef>,
    /// Whether nothing was stored.
    dry_run: bool,
    /// Events recorded.
    recorded: u64,
    /// Events that were there already; nothing was recorded of them.
    already_there: u64,
    /// Lines refused.
    refused: u64,
    /// Events recorded or there already that have no `idempotency_key`: they are known by the file's name and their lines, and
    /// count again in a file of another name.
    known_by_line: u64,
    /// The first 1,000 lines that were refused, in their order.
    rejects: Vec<ImportRejectJson>,
    /// The documents that recorded events went on, the first 1,000 in the order in which they were met.
    documents: Vec<ImportedDocumentJson>,
    /// Documents beyond those.
    more_documents: u64,
    /// In a dry run of CSV, its columns with what stands in them in the first lines; else none.
    columns: Vec<ImportColumnJson>,
    /// Why the file wasn't taken to its end; null when it was.
    stopped: Option<ImportStopJson>,
}

/// A line that was refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ImportRejectJson {
    /// Counts from 1; of a JSON array, the element.
    #[schema(minimum = 1)]
    line: u64,
    /// A stable word for machines.
    #[schema(example = "validation_failed")]
    code: &'static str,
    /// What went wrong.
    detail: String,
    /// Every field that is wrong; empty where it isn't about fields.
    errors: Vec<FieldProblem>,
}

answer! {
    /// A column of a file.
    ImportColumnJson of column: ColumnSample {
        /// Its name in the file.
        #[schema(example = "Zeit")]
        name: String = column.name.clone(),
        /// What it is called; null where it is left out.
        #[schema(example = "timestamp")]
        called: Option<String> = column.called.clone(),
        /// Whether it is report data; of a file that a format reads, as if there were none.
        report_data: bool = column.is_report_data,
        /// What stands in it in the first three lines, 80 characters of each.
        samples: Vec<String> = column.samples.clone(),
    }
}

answer! {
    /// A document that events of a file went on.
    ImportedDocumentJson of touched: AffectedDocument {
        let document = touched.document.as_ref();
        /// Reference; null in a dry run, of what would be opened for a period.
        document_ref: Option<AssignedRef> = document.map(|(document_ref, _)| AssignedRef::from(document_ref)),
        /// Number; null in a dry run, of what would be opened for a period.
        #[schema(example = "UB-INV-1")]
        document_number: Option<String> = document.map(|(_, number)| number.to_string()),
        /// Whose it is.
        customer_ref: NamedRef = &touched.customer_ref,
        /// Its currency.
        currency: CurrencyCode = touched.currency,
        /// How many events went on it.
        events: u64 = touched.events,
        /// In a dry run of up to 10,000 lines what it comes to with tax, of the first 100 documents; null of what would be opened.
        total_before: Option<ExactNumber> = touched.total.and_then(|total| total.before),
        /// Likewise what it would come to.
        total: Option<ExactNumber> = touched.total.map(|total| total.after),
    }
}

/// Why a file wasn't taken to its end. What stands before the line was; send the file again to go on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ImportStopJson {
    /// The first line that wasn't taken.
    #[schema(minimum = 1)]
    line: u64,
    /// A stable word for machines.
    #[schema(example = "timed_out")]
    code: &'static str,
    /// What went wrong.
    detail: String,
}

/// Lines that were refused, as they are found.
#[derive(Debug, Default)]
pub(crate) struct ImportRejects {
    count: u64,
    listed: Vec<ImportRejectJson>,
}

impl ImportRejects {
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn add(&mut self, line: u64, problem: &Problem) {
        self.count += 1;
        if self.listed.len() < MAX_LISTED {
            let detail = match problem.errors() {
                [only] => only.detail.as_str(),
                _ => problem.detail(),
            };
            let (detail, errors) = (detail.to_owned(), problem.errors().to_vec());
            self.listed.push(ImportRejectJson { line, code: problem.code(), detail, errors });
        }
    }
}

impl ImportResultJson {
    pub(crate) fn new(
        import: &FileImport,
        rejects: ImportRejects,
        stopped: Option<(u64, Problem)>,
        columns: &[ColumnSample],
    ) -> Self {
        let (import_ref, summary) = (import.import_ref(), import.summary());
        let more = summary.documents.len().saturating_sub(MAX_LISTED);
        Self {
            import_ref: import_ref.map(AssignedRef::from),
            dry_run: import_ref.is_none(),
            recorded: summary.recorded,
            already_there: summary.already_there,
            refused: rejects.count,
            known_by_line: summary.known_by_line,
            rejects: rejects.listed,
            documents: summary.documents.iter().take(MAX_LISTED).map(ImportedDocumentJson::from).collect(),
            more_documents: more as u64,
            columns: columns.iter().map(ImportColumnJson::from).collect(),
            stopped: stopped.map(|(line, problem)| ImportStopJson {
                line,
                code: problem.code(),
                detail: problem.detail().to_owned(),
            }),
        }
    }
}

/// An import, and of one that is asked for how many events undoing it would have to look at.
pub(crate) type ImportResponse = (ImportRecord, Option<u64>);

answer! {
    /// An import of a file of usage events.
    ImportJson of told: ImportResponse {
        let (import, left) = (&told.0, told.1);
        /// Reference.
        import_ref: AssignedRef = import.import_ref,
        /// What lines without a key of their own are known by: the file's name.
        #[schema(example = "gateway-2026-01.csv")]
        name: Option<String> = import.file.name.clone(),
        /// The file's size in bytes.
        bytes: u64 = import.file.bytes,
        /// SHA-256 of the file, in hexadecimal digits.
        sha256: String = hexadecimal(&import.file.sha256),
        /// Who imported it: `admin:` or `api_key:` and a reference, or `command_line`.
        #[schema(example = "command_line")]
        actor: String = import.author.to_string(),
        /// When it began.
        begun_at: TimestampText = import.begun_at,
        /// When it ended; null while it hasn't said so.
        ended_at: Option<TimestampText> = import.ended_at,
        /// How far it has come.
        state: ImportStateWord = import.state(),
        /// The line that it stopped at; null where it didn't stop before the file's end.
        stopped_at_line: Option<u64> = import.stopped_at,
        /// Events recorded; 0 while it hasn't ended.
        recorded: u64 = import.recorded,
        /// Events that were there already.
        already_there: u64 = import.already_there,
        /// Lines refused.
        refused: u64 = import.refused,
        /// How far it is undone; null where nobody asked for that.
        undone: Option<ImportUndoJson> = import.undone.as_ref(),
        /// By which request; null of what no request did.
        request_id: Option<String> = import.request_id.as_ref().map(ToString::to_string),
        /// Events that it recorded and that undoing it would delete, but for those that are deleted already; only of one import.
        @omitted left: Option<u64> = left,
        /// The first 500 documents that its events went on; only of one import.
        @omitted documents: Option<Vec<ImportedDocumentSummaryJson>> = left.map(|_| import.documents.iter().map(ImportedDocumentSummaryJson::from).collect::<Vec<_>>()),
        /// Documents beyond those; only of one import.
        @omitted more_documents: Option<u64> = left.map(|_| import.more_documents),
    }
}

answer! {
    /// How far an import is undone.
    ImportUndoJson of undone: ImportUndo {
        /// Who asked for it last.
        actor: String = undone.author.to_string(),
        /// When it began.
        begun_at: TimestampText = undone.begun_at,
        /// When nothing was left of it; null while something is.
        ended_at: Option<TimestampText> = undone.ended_at,
        /// Events it deleted.
        deleted: u64 = undone.deleted,
        /// Events that were deleted before.
        already_deleted: u64 = undone.already_deleted,
    }
}

answer! {
    /// A document that events of an import went on.
    ImportedDocumentSummaryJson of document: ImportedDocument {
        /// Reference.
        document_ref: AssignedRef = document.document_ref,
        /// Number.
        #[schema(example = "UB-INV-1")]
        document_number: String = document.number.to_string(),
        /// Whose it is.
        customer_ref: NamedRef = &document.customer_ref,
        /// Its currency.
        currency: CurrencyCode = document.currency,
        /// How many events went on it.
        events: u64 = document.events,
    }
}

/// An event that couldn't be deleted, and why.
pub(crate) type UndoFailure = (EventRef, UseCaseError);

answer! {
    /// What a request to undo an import did.
    UndoResultJson of result: UndoResult {
        let view = &result.view;
        /// The import as it is now.
        import: ImportJson = &(view.import.clone(), Some(view.left)),
        /// Events that this request deleted.
        deleted: u64 = result.deleted,
        /// Events that it found deleted already.
        already_deleted: u64 = result.already_deleted.len() as u64,
        /// The first 1,000 of those.
        already_deleted_refs: Vec<AssignedRef> = result.already_deleted.iter().copied().take(MAX_LISTED),
        /// Events that couldn't be deleted and still count.
        refused: u64 = result.refused.len() as u64,
        /// The first 1,000 of those, each with the reason.
        rejects: Vec<UndoRejectJson> = result.refused.iter().take(MAX_LISTED),
        /// Events that are left to be deleted: send the same request again to go on.
        left: u64 = view.left,
    }
}

answer! {
    /// An event that couldn't be deleted.
    UndoRejectJson of kept: UndoFailure {
        let problem = Problem::of(&kept.1);
        /// The event.
        event_ref: AssignedRef = kept.0,
        /// A stable word for machines.
        #[schema(example = "amount_out_of_range")]
        code: String = problem.code().to_owned(),
        /// What went wrong.
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

/// The answer that repeats of an imported event get, whichever way they come: that of a batch or, where a format made it, of a
/// free-form event.
pub fn import_answer(view: &EventView) -> String {
    let is_formatted = view.event.formatted.as_ref().is_some_and(|source| source.format_ref.as_str() != DEFAULT_FORMAT_REF);
    if is_formatted { formatted_answer(view) } else { event_answer(view) }
}
