//! What an import did: its counts, and the documents that carry its events.

use billing_domain::document::numbering::DocumentNumber;
use billing_domain::imports::ImportedDocument;
use billing_domain::money::{Currency, Money};
use billing_domain::refs::{CustomerRef, DocumentRef};

/// The accepted events of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// The number of events that were recorded, or would be in a dry run.
    pub recorded: u64,
    /// The number of events that were recorded earlier and got other facts, or would get them in a dry run.
    pub updated: u64,
    /// The number of events that were already recorded earlier.
    pub already_there: u64,
    /// The number of these events that are identified only by file name and line number.
    pub known_by_line: u64,
    /// The number of lines, and of elements of lines, that the usage format skips.
    pub skipped: u64,
    /// The documents that carry the recorded events, in the order of first use.
    pub documents: Vec<AffectedDocument>,
}

/// A document that carries events of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffectedDocument {
    /// Reference and number. `None` in a dry run for a document that would be opened.
    pub document: Option<(DocumentRef, DocumentNumber)>,
    /// The customer's reference.
    pub customer_ref: CustomerRef,
    /// The document's currency.
    pub currency: Currency,
    /// The number of events on the document.
    pub events: u64,
    /// The total of the document, in a dry run of a file with one batch. Only for the first 100 documents.
    pub total: Option<ChangedTotal>,
}

/// The total of a document before and after its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedTotal {
    /// The current total with tax. `None` for a document that would be opened.
    pub before: Option<Money>,
    /// The new total with tax.
    pub after: Money,
}

impl AffectedDocument {
    /// Returns the document as the import record stores it.
    pub(super) fn kept(&self) -> Option<ImportedDocument> {
        let (document_ref, number) = self.document.clone()?;
        let (customer_ref, currency, events) = (self.customer_ref.clone(), self.currency, self.events);
        Some(ImportedDocument { document_ref, number, customer_ref, currency, events })
    }
}
