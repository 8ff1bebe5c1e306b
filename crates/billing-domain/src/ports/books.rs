//! The rows a contract's book is made of, and what decisions write to them. The duties of all of the store's ports hold
//! here, too.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::{Lock, StoreResult};
use crate::calendar::Timestamp;
use crate::document::lines::{BaseAndAmount, LedgerLine, SumKey};
use crate::document::linking::BillingSlot;
use crate::document::{BookDocument, DocumentHead, DraftContent, IssuedDocument};
use crate::ledger::{BookRows, ContractHeader};
use crate::refs::{ContractKey, ContractRef, CustomerId, DocumentKey, DocumentRef, OrganizationId};

/// A sum of a family, or what is added to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilySum {
    /// The family.
    pub family: DocumentRef,
    /// What it is of.
    pub key: SumKey,
    /// How much.
    pub sum: BaseAndAmount,
}

/// What a contract's book is read from.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait BookReader {
    /// A contract and its customer; the contract is held where asked, until the transaction ends.
    ///
    /// # Errors
    /// [`StoreError::Contended`](super::StoreError::Contended) when it was changed while it was waited for.
    fn agreement(&mut self, key: ContractKey, lock: Option<Lock>) -> StoreResult<Option<ContractHeader>>;
    /// A contract and its customer, by the contract's reference alone.
    fn agreement_of(&mut self, organization: OrganizationId, contract_ref: ContractRef) -> StoreResult<Option<ContractHeader>>;
    /// Those of these contracts that are there, with their customers, by reference.
    fn agreements(&mut self, contracts: &[ContractKey]) -> StoreResult<Vec<ContractHeader>>;
    /// Everything the books of contracts are made of, by contract.
    fn rows_of_books(&mut self, contracts: &[ContractKey]) -> StoreResult<BTreeMap<ContractKey, BookRows>>;
    /// The documents in force that stand in any of these places of contracts, by creation.
    fn documents_in_places(&mut self, places: &[(ContractKey, BillingSlot)]) -> StoreResult<Vec<BookDocument>>;
    /// Those of these customers' documents that have one of these references, children too, by creation.
    fn book_documents_by_refs(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        refs: &[DocumentRef],
    ) -> StoreResult<Vec<BookDocument>>;
}

/// What decisions about a contract write. The contract must be held [`Lock::Exclusive`](super::Lock::Exclusive).
#[cfg_attr(feature = "mocks", mockall::automock)]
#[allow(clippy::needless_lifetimes, reason = "what makes the mock asks for their names")]
pub trait BookWriter {
    /// Stores drafts, each of a family.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`](super::StoreError::Corrupt) when a regular document that isn't void has the same product,
    /// period and slot as one of them, or when a document of the organization has the same number;
    /// [`StoreError::Contended`](super::StoreError::Contended) when an entity has another number prefix by now.
    fn open_documents<'a>(&mut self, organization: OrganizationId, drafts: &[(&'a DocumentHead, DocumentRef)])
    -> StoreResult<()>;
    /// Replaces what a decision changes of a draft: slot, period and products; `false` when it is a draft no more.
    fn update_draft(&mut self, organization: OrganizationId, head: &DocumentHead) -> StoreResult<bool>;
    /// Replaces the ledger lines of draft adjustments of an organization.
    fn put_lines_of_drafts<'a>(
        &mut self,
        organization: OrganizationId,
        drafts: &[(DocumentKey, &'a [LedgerLine])],
    ) -> StoreResult<()>;
    /// Freezes drafts of an organization in this order; `false` when one of them is a draft no more: what became of the others is
    /// to be undone then. What they say is kept to the byte, each with a hash chained to the one issued before it in its
    /// series; their ledger lines are their content's.
    fn issue_documents<'a>(
        &mut self,
        organization: OrganizationId,
        drafts: &[(DocumentKey, &'a IssuedDocument)],
    ) -> StoreResult<bool>;
    /// Puts a draft out of force as it is; `false` when it is a draft no more. Ledger lines it had count no more.
    fn void_draft(&mut self, key: DocumentKey, content: &DraftContent, at: Timestamp) -> StoreResult<bool>;
    /// Puts an issued document out of force, on a service date of its entity; `false` when it isn't issued. What it says stays.
    fn void_issued(&mut self, key: DocumentKey, at: Timestamp, on: NaiveDate) -> StoreResult<bool>;
    /// Adds to the sums of customers' families; those that aren't there begin at zero.
    fn add_sums_of_families(&mut self, organization: OrganizationId, added: &[(CustomerId, FamilySum)]) -> StoreResult<()>;
}
