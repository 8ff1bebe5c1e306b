//! Documents.

use chrono::NaiveDate;

use super::{Lock, StoreResult};
use crate::calendar::{Period, Timestamp};
use crate::document::correction::LedgerLine;
use crate::document::linking::Slot;
use crate::document::{Document, DocumentHead, DocumentKind, DocumentState, IssuedDocument, Payment, Settlement};
use crate::page::{Page, PageRequest};
use crate::refs::{ContractRef, CustomerId, DocumentRef, EntityRef, OrganizationId, ProductNo};

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

/// A ledger line and the document it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentedLine {
    /// The document.
    pub document_ref: DocumentRef,
    /// What it does: the sign its amounts count with.
    pub kind: DocumentKind,
    /// Whether it is a period's own document, rather than a child or an adjustment.
    pub is_regular: bool,
    /// The line.
    pub line: LedgerLine,
}

/// Documents.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Documents {
    /// Stores a draft; its contract must be held [`Lock::Exclusive`].
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError); [`StoreError::Corrupt`](super::StoreError::Corrupt) when a regular document that isn't void has the same
    /// product, period and slot.
    fn open_document(&mut self, organization: OrganizationId, head: &DocumentHead) -> StoreResult<()>;
    /// By reference.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn document(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> StoreResult<Option<Document>>;
    /// Those of these references that exist.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn documents_by_refs(&mut self, organization: OrganizationId, refs: &[DocumentRef]) -> StoreResult<Vec<Document>>;
    /// All that pass a filter, by creation.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn documents(
        &mut self,
        organization: OrganizationId,
        filter: &DocumentFilter,
        page: PageRequest,
    ) -> StoreResult<Page<Document>>;
    /// The document in a slot of a product's period that isn't void, by the period's first day. With a lock it
    /// is held until the transaction ends.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    #[allow(clippy::too_many_arguments, reason = "the parts of one key")]
    fn regular_document(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        product_no: ProductNo,
        period_start: NaiveDate,
        slot: Slot,
        lock: Option<Lock>,
    ) -> StoreResult<Option<Document>>;
    /// A contract's documents whose own period has a day in common with a period, by creation.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn documents_of_contract(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        within: Period,
    ) -> StoreResult<Vec<Document>>;
    /// A contract's drafts, by creation.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn drafts_of_contract(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
    ) -> StoreResult<Vec<Document>>;
    /// Freezes a draft that is held [`Lock::Exclusive`]; `false` when it is a draft no more. What it says is
    /// kept to the byte, with a hash chained to the one issued before it in its series.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn issue_document(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        issued: &IssuedDocument,
    ) -> StoreResult<bool>;
    /// Replaces what an amendment of its contract changes of a draft: slot, period, products and their rates, net terms
    /// and payment details; `false` when it is a draft no more.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn update_draft(&mut self, organization: OrganizationId, head: &DocumentHead) -> StoreResult<bool>;
    /// Puts an issued document out of force; `false` when it isn't issued. What it says stays.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn void_issued(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        at: Timestamp,
    ) -> StoreResult<bool>;
    /// The void document that was issued last in a slot of a product's period, by its number in the contract, because
    /// clocks go back: what a new one replaces.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn last_void(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        product_no: ProductNo,
        period_start: NaiveDate,
        slot: Slot,
    ) -> StoreResult<Option<DocumentRef>>;
    /// The open adjustment of a kind that names a document as its parent; the oldest, when there are several.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn open_adjustment(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        parent: DocumentRef,
        kind: DocumentKind,
    ) -> StoreResult<Option<Document>>;
    /// The documents that name one as parent, by creation; void ones too.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn documents_of_parent(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        parent: DocumentRef,
    ) -> StoreResult<Vec<Document>>;
    /// The ledger lines of a document: those of a draft adjustment, or those it was issued with.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn ledger_lines(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
    ) -> StoreResult<Vec<LedgerLine>>;
    /// Replaces the ledger lines of a draft adjustment.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn put_ledger_lines(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        lines: &[LedgerLine],
    ) -> StoreResult<()>;
    /// The ledger lines of service periods on all documents that aren't void, each with its document.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn documented(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        periods: &[(ProductNo, NaiveDate)],
    ) -> StoreResult<Vec<DocumentedLine>>;
    /// Stores a payment of a document.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn insert_payment(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        payment: &Payment,
    ) -> StoreResult<()>;
    /// Replaces what payments and credits say about a document.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn settle_document(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        settlement: &Settlement,
    ) -> StoreResult<()>;
    /// Puts a draft out of force; `false` when it is a draft no more.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn void_draft(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        at: Timestamp,
    ) -> StoreResult<bool>;
}
