//! Documents, and the files that are kept of them.

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

/// What a list of documents is narrowed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentFilter {
    /// This customer's.
    pub customer_id: Option<CustomerId>,
    /// This contract's.
    pub contract_ref: Option<ContractRef>,
    /// This entity's.
    pub entity_ref: Option<EntityRef>,
    /// Of this kind.
    pub kind: Option<DocumentKind>,
    /// In this state.
    pub state: Option<DocumentState>,
    /// Whose period starts on this day or later.
    pub from: Option<NaiveDate>,
    /// Whose period starts on this day or earlier.
    pub to: Option<NaiveDate>,
    /// With this number.
    pub number: Option<DocumentNumber>,
    /// With this purchase order number; of a draft its contract's.
    pub po_number: Option<OneLine>,
    /// That exist for this, whatever their slot.
    pub purpose: Option<PurposeKind>,
    /// In this currency.
    pub currency: Option<Currency>,
    /// Issued on this day or later.
    pub issued_from: Option<NaiveDate>,
    /// Issued on this day or earlier.
    pub issued_to: Option<NaiveDate>,
    /// Due on this day or later.
    pub due_from: Option<NaiveDate>,
    /// Due on this day or earlier.
    pub due_to: Option<NaiveDate>,
    /// Opened, issued, put out of force, paid, credited, applied or written off at this instant or later.
    pub updated_since: Option<Timestamp>,
    /// Whether something is left to pay of an invoice or debit.
    pub has_amount_due: Option<bool>,
    /// Whether its due date has passed with something left to pay, and the days that tell.
    pub overdue: Option<(bool, LocalDates)>,
}

/// Why a document exists, without its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PurposeKind {
    /// A period's own document.
    Regular,
    /// One event's invoice, where net terms are due upon usage.
    Usage,
    /// Puts an issued document right.
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

/// Documents, as they are shown.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Documents {
    /// What a document is named by, by its reference alone.
    fn document_key(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> StoreResult<Option<DocumentKey>>;
    /// By reference alone.
    fn document(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> StoreResult<Option<Document>>;
    /// Those of these customers' documents that have one of these references.
    fn documents_by_refs(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        refs: &[DocumentRef],
    ) -> StoreResult<Vec<Document>>;
    /// All that pass a filter, by creation.
    fn documents(
        &mut self,
        organization: OrganizationId,
        filter: &DocumentFilter,
        page: PageRequest,
    ) -> StoreResult<Page<Document>>;
    /// A customer's documents that name one of these as parent, by creation; void ones too.
    fn documents_of_parents(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        parents: &[DocumentRef],
    ) -> StoreResult<Vec<BookDocument>>;
    /// The ledger lines of a document: those of a draft adjustment, or those it was issued with.
    fn ledger_lines(&mut self, key: DocumentKey) -> StoreResult<Vec<LedgerLine>>;
}

/// Files of issued documents.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait DocumentFiles {
    /// The file that is kept of a document in a form.
    fn document_file(&mut self, key: DocumentKey, form: FileForm) -> StoreResult<Option<DocumentFile>>;
    /// Keeps a file of an issued document and answers it; where there is one in its form already, that one stays, and is the answer.
    /// `None` of what isn't an issued document.
    fn keep_document_file(&mut self, key: DocumentKey, file: &DocumentFile) -> StoreResult<Option<DocumentFile>>;
}
