//! The rows of a contract's book, and the writes of decisions to them. The rules of all ports of the store apply here,
//! too.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::{Lock, StoreResult};
use crate::calendar::Timestamp;
use crate::document::lines::{BaseAndAmount, LedgerLine, SumKey};
use crate::document::linking::BillingSlot;
use crate::document::{BookDocument, DocumentHead, DraftContent, IssuedDocument};
use crate::ledger::{BookRows, ContractHeader};
use crate::refs::{ContractKey, ContractRef, CustomerId, DocumentKey, DocumentRef, OrganizationId};

/// A sum of a family, or an increment of that sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilySum {
    /// The family.
    pub family: DocumentRef,
    /// The key of the sum within the family.
    pub key: SumKey,
    /// The sum or increment.
    pub sum: BaseAndAmount,
}

/// Read access to contract books.
pub trait BookReader {
    /// Returns a contract and its customer. With a lock, locks the contract until the transaction ends.
    ///
    /// # Errors
    /// Returns [`StoreError::Contended`](super::StoreError::Contended) when the contract changed while the call waited
    /// for the lock.
    fn agreement(&mut self, key: ContractKey, lock: Option<Lock>) -> StoreResult<Option<ContractHeader>>;
    /// Returns a contract and its customer, by the contract's reference alone.
    fn agreement_of(&mut self, organization: OrganizationId, contract_ref: ContractRef) -> StoreResult<Option<ContractHeader>>;
    /// Returns the existing contracts among these, with their customers, ordered by reference.
    fn agreements(&mut self, contracts: &[ContractKey]) -> StoreResult<Vec<ContractHeader>>;
    /// Returns all rows of the books of these contracts, by contract.
    fn rows_of_books(&mut self, contracts: &[ContractKey]) -> StoreResult<BTreeMap<ContractKey, BookRows>>;
    /// Returns the documents in force in any of these billing slots, ordered by creation.
    fn documents_in_places(&mut self, places: &[(ContractKey, BillingSlot)]) -> StoreResult<Vec<BookDocument>>;
    /// Returns these customers' documents with these references, including child documents, ordered by creation.
    fn book_documents_by_refs(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        refs: &[DocumentRef],
    ) -> StoreResult<Vec<BookDocument>>;
}

/// Writes of decisions about a contract. The contract must be locked [`Lock::Exclusive`](super::Lock::Exclusive).
#[allow(clippy::needless_lifetimes, reason = "what makes the mock asks for their names")]
pub trait BookWriter {
    /// Stores drafts, each with its family. `at` becomes the time of their last change, here and in the other changes.
    ///
    /// # Errors
    /// - Returns [`StoreError::Corrupt`](super::StoreError::Corrupt) when a regular document that is not void has the
    ///   same product, period and slot as a draft.
    /// - Returns [`StoreError::Corrupt`](super::StoreError::Corrupt) when a document of the organization has the same
    ///   number.
    /// - Returns [`StoreError::Contended`](super::StoreError::Contended) when the number prefix of an entity has changed.
    fn open_documents<'a>(
        &mut self,
        organization: OrganizationId,
        drafts: &[(&'a DocumentHead, DocumentRef)],
        at: Timestamp,
    ) -> StoreResult<()>;
    /// Updates the slot, period and products of a draft. Returns `false` when the document is no longer a draft.
    fn update_draft(&mut self, organization: OrganizationId, head: &DocumentHead, at: Timestamp) -> StoreResult<bool>;
    /// Replaces the ledger lines of draft adjustments of an organization.
    fn put_lines_of_drafts<'a>(
        &mut self,
        organization: OrganizationId,
        drafts: &[(DocumentKey, &'a [LedgerLine])],
    ) -> StoreResult<()>;
    /// Issues drafts of an organization in this order. Returns `false` when one of them is no longer a draft; the caller
    /// must then undo the changes to the others.
    ///
    /// The content of each document is stored byte for byte. Its hash is chained to the previously issued document of its
    /// series. Its ledger lines become those of the content.
    fn issue_documents<'a>(
        &mut self,
        organization: OrganizationId,
        drafts: &[(DocumentKey, &'a IssuedDocument)],
        at: Timestamp,
    ) -> StoreResult<bool>;
    /// Voids a draft. Returns `false` when the document is no longer a draft. Its ledger lines no longer count.
    fn void_draft(&mut self, key: DocumentKey, content: &DraftContent, at: Timestamp) -> StoreResult<bool>;
    /// Voids an issued document on a service date of its entity. Returns `false` when the document is not issued. The
    /// content stays unchanged.
    fn void_issued(&mut self, key: DocumentKey, at: Timestamp, on: NaiveDate) -> StoreResult<bool>;
    /// Adds to the sums of customers' families. Missing sums start at zero.
    fn add_sums_of_families(&mut self, organization: OrganizationId, added: &[(CustomerId, FamilySum)]) -> StoreResult<()>;
}
