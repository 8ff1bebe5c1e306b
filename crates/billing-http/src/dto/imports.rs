//! Files of usage events: what is asked, and what became of them.

use billing_application::usage::{EventView, ImportSummary, TouchedDocument};
use billing_domain::format::DEFAULT_FORMAT_REF;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};

use super::declare::{Body, answer};
use super::events::{event_answer, formatted_answer};
use super::schemas::Schemas;
use super::wire::{AssignedRef, CurrencyCode, NamedRef};
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
    /// A document that events of a file went on.
    ImportedDocumentJson of touched: TouchedDocument {
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
    pub(crate) fn new(dry_run: bool, summary: &ImportSummary, rejects: ImportRejects, stopped: Option<(u64, Problem)>) -> Self {
        let more = summary.documents.len().saturating_sub(MAX_LISTED);
        Self {
            dry_run,
            recorded: summary.recorded,
            already_there: summary.already_there,
            refused: rejects.count,
            known_by_line: summary.known_by_line,
            rejects: rejects.listed,
            documents: summary.documents.iter().take(MAX_LISTED).map(ImportedDocumentJson::from).collect(),
            more_documents: more as u64,
            stopped: stopped.map(|(line, problem)| ImportStopJson {
                line,
                code: problem.code(),
                detail: problem.detail().to_owned(),
            }),
        }
    }
}

/// The answer that repeats of an imported event get, whichever way they come: that of a batch or, where a format made it, of a
/// free-form event.
pub fn import_answer(view: &EventView) -> String {
    let is_formatted = view.event.formatted.as_ref().is_some_and(|source| source.format_ref.as_str() != DEFAULT_FORMAT_REF);
    if is_formatted { formatted_answer(view) } else { event_answer(view) }
}
