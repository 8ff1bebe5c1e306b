//! Contracts, and the numbers that documents and contracts are given.

use std::collections::BTreeMap;

use super::{Lock, StoreResult};
use crate::access::Actor;
use crate::calendar::Timestamp;
use crate::contract::Contract;
use crate::document::DocumentKind;
use crate::page::{Page, PageRequest};
use crate::refs::{ContractKey, ContractRef, CustomerId, EntityRef, OrganizationId, UsageProductRef};

/// Contracts, with all their versions.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Contracts {
    /// Stores a new one with its first version; `next_due_at` is when it first has something to issue.
    fn insert_contract(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        next_due_at: Option<Timestamp>,
    ) -> StoreResult<()>;
    /// What a contract is named by, by its reference alone.
    fn contract_key(&mut self, organization: OrganizationId, contract_ref: ContractRef) -> StoreResult<Option<ContractKey>>;
    /// By reference alone.
    fn contract(&mut self, organization: OrganizationId, contract_ref: ContractRef) -> StoreResult<Option<Contract>>;
    /// A customer's, by creation.
    fn contracts_of_customer(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        page: PageRequest,
    ) -> StoreResult<Page<Contract>>;
    /// The contracts of customers in which any version of a product meters a usage product, for any of these pairs, by
    /// creation; held in the order of their references where asked, until the transaction ends.
    ///
    /// # Errors
    /// [`StoreError::Contended`](super::StoreError::Contended) when one was changed while it was waited for.
    fn contracts_metering(
        &mut self,
        organization: OrganizationId,
        pairs: &[(CustomerId, UsageProductRef)],
        lock: Option<Lock>,
    ) -> StoreResult<Vec<Contract>>;
    /// Holds a contract until the transaction ends, and answers its newest version's number.
    /// Contracts are held before documents, documents before totals and number series.
    fn lock_contract(&mut self, key: ContractKey, lock: Lock) -> StoreResult<Option<u32>>;
    /// Holds contracts until the transaction ends, each as strongly as is asked, in the order of their references; one that isn't
    /// there is passed over. What is read of them from then on is as they are held.
    fn hold_contracts(&mut self, contracts: &[(ContractKey, Lock)]) -> StoreResult<()>;
    /// Stores a contract's next version: what it adds to the one before. The contract must be held
    /// [`Lock::Exclusive`].
    fn append_contract_version(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        at: Timestamp,
        by: Actor,
    ) -> StoreResult<()>;
}

/// Sequences without gaps or repeats, under any concurrency, crash or roll-back.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait NumberSeries {
    /// So many next numbers of an entity's documents of a kind, from 1: the first of them. Rolled back with its transaction.
    fn take_document_numbers(
        &mut self,
        organization: OrganizationId,
        entity_ref: &EntityRef,
        kind: DocumentKind,
        many: u32,
    ) -> StoreResult<u64>;
    /// Whether an entity's documents ever had a number.
    fn has_given_numbers(&mut self, organization: OrganizationId, entity_ref: &EntityRef) -> StoreResult<bool>;
    /// The next contract number of an organization, from 1. Rolled back with its transaction.
    fn next_contract_number(&mut self, organization: OrganizationId) -> StoreResult<u64>;
    /// So many next document numbers within each of these contracts, from 1: the first of each. They must be held
    /// [`Lock::Exclusive`].
    fn take_numbers_in_contracts(&mut self, wanted: &BTreeMap<ContractKey, u32>) -> StoreResult<BTreeMap<ContractKey, u32>>;
}
