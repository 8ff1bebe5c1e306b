//! Documents and their stored files.

use chrono::NaiveDate;

use super::{LocalDates, StoreResult};
use crate::calendar::Timestamp;
use crate::document::files::{DocumentFile, FileForm};
use crate::document::lines::LedgerLine;
use crate::document::numbering::DocumentNumber;
use crate::document::{BookDocument, Document, DocumentKind, DocumentState, Purpose};
use crate::money::Currency;
use crate::page::{Page, PageRequest};
use crate::refs::{ContractRef, CustomerId, DocumentKey, DocumentRef, EntityRef, OrganizationId};
use crate::text::OneLine;

/// A filter for lists of documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentFilter {
    /// Matches documents of this customer.
    pub customer_id: Option<CustomerId>,
    /// Matches documents of this contract.
    pub contract_ref: Option<ContractRef>,
    /// Matches documents of this entity.
    pub entity_ref: Option<EntityRef>,
    /// Matches documents of this kind.
    pub kind: Option<DocumentKind>,
    /// Matches documents in this state.
    pub state: Option<DocumentState>,
    /// Matches documents whose period starts on or after this date.
    pub from: Option<NaiveDate>,
    /// Matches documents whose period starts on or before this date.
    pub to: Option<NaiveDate>,
    /// Matches the document with this number.
    pub number: Option<DocumentNumber>,
    /// Matches documents with this purchase order number. A draft uses the number of its contract.
    pub po_number: Option<OneLine>,
    /// Matches documents with this purpose, in any slot.
    pub purpose: Option<PurposeKind>,
    /// Matches documents in this currency.
    pub currency: Option<Currency>,
    /// Matches documents issued on or after this date.
    pub issued_from: Option<NaiveDate>,
    /// Matches documents issued on or before this date.
    pub issued_to: Option<NaiveDate>,
    /// Matches documents due on or after this date.
    pub due_from: Option<NaiveDate>,
    /// Matches documents due on or before this date.
    pub due_to: Option<NaiveDate>,
    /// Matches documents opened, issued, voided, paid, credited, applied or written off at this instant or later.
    pub updated_since: Option<Timestamp>,
    /// Matches invoices and debits with an amount due, or documents without one.
    pub has_amount_due: Option<bool>,
    /// Matches overdue documents, or documents that are not overdue, on these local dates. A document is overdue when its
    /// due date has passed and it has an amount due.
    pub overdue: Option<(bool, LocalDates)>,
}

/// The purpose of a document, without its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PurposeKind {
    /// The regular document of a period.
    Regular,
    /// The invoice of one event, with net terms due upon usage.
    Usage,
    /// The correction of an issued document.
    Adjustment,
}

impl From<Purpose> for PurposeKind {
    fn from(purpose: Purpose) -> Self {
        match purpose {
            Purpose::Regular(_) => Self::Regular,
            Purpose::Usage => Self::Usage,
            Purpose::Adjustment => Self::Adjustment,
        }
    }
}

/// Read access to documents for display.
pub trait Documents {
    /// Returns the key of a document, by reference alone.
    fn document_key(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> StoreResult<Option<DocumentKey>>;
    /// Returns a document by reference alone.
    fn document(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> StoreResult<Option<Document>>;
    /// Returns these customers' documents with these references.
    fn documents_by_refs(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        refs: &[DocumentRef],
    ) -> StoreResult<Vec<Document>>;
    /// Returns a page of the documents that match a filter, ordered by creation.
    fn documents(
        &mut self,
        organization: OrganizationId,
        filter: &DocumentFilter,
        page: PageRequest,
    ) -> StoreResult<Page<Document>>;
    /// Returns the documents whose customer and parent are one of these, ordered by creation. Includes void documents.
    fn documents_of_parents(
        &mut self,
        organization: OrganizationId,
        parents: &[(CustomerId, DocumentRef)],
    ) -> StoreResult<Vec<BookDocument>>;
    /// Returns the ledger lines of a draft adjustment, or the lines a document was issued with.
    fn ledger_lines(&mut self, key: DocumentKey) -> StoreResult<Vec<LedgerLine>>;
}

/// Storage of files of issued documents.
pub trait DocumentFiles {
    /// Returns the stored file of a document in a form.
    fn document_file(&mut self, key: DocumentKey, form: FileForm) -> StoreResult<Option<DocumentFile>>;
    /// Stores a file of an issued document and returns it. An already stored file of the same form stays and is returned
    /// instead. Returns `None` for a document that is not issued.
    fn keep_document_file(&mut self, key: DocumentKey, file: &DocumentFile) -> StoreResult<Option<DocumentFile>>;
}
