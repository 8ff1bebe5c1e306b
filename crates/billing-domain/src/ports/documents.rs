//! Documents.

use chrono::NaiveDate;

use super::StoreResult;
use crate::document::lines::LedgerLine;
use crate::document::{BookDocument, Document, DocumentKind, DocumentState};
use crate::page::{Page, PageRequest};
use crate::refs::{ContractRef, CustomerId, DocumentKey, DocumentRef, EntityRef, OrganizationId};

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
}

/// Documents, as they are shown.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Documents {
    /// By reference.
    fn document(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> StoreResult<Option<Document>>;
    /// Those of these references that exist.
    fn documents_by_refs(&mut self, organization: OrganizationId, refs: &[DocumentRef]) -> StoreResult<Vec<Document>>;
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
