//! Contracts, and the number series of documents and contracts.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use uuid::Uuid;

use super::{Lock, StoreResult};
use crate::access::Actor;
use crate::calendar::Timestamp;
use crate::contract::Contract;
use crate::document::DocumentKind;
use crate::page::{Page, PageRequest};
use crate::refs::{ContractKey, ContractRef, CustomerId, EntityRef, OrganizationId, UsageProductRef};

/// Identifiers of what determines where the usage of a contract is billed. Equal stamps mean that a copy in memory is
/// current. A stamp that was replaced is never used again, also not after a rollback or the loss of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// Changes with each exclusive lock on the contract, and so with each change of its terms and documents.
    pub contract: Uuid,
    /// Changes with each update of the customer.
    pub customer: Uuid,
    /// Changes with each update of an entity or usage product of the organization.
    pub catalog: Uuid,
}

/// The number of a time in which no stamp changes and no contract is created. A store with a single writer knows it. No number
/// returns within a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampGeneration(pub NonZeroU64);

/// Storage of contracts with all their versions.
pub trait Contracts {
    /// Stores a new contract with its first version. `next_due_at` is the first time at which the contract has a document
    /// to issue.
    fn insert_contract(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        next_due_at: Option<Timestamp>,
    ) -> StoreResult<()>;
    /// Returns the key of a contract, by reference alone.
    fn contract_key(&mut self, organization: OrganizationId, contract_ref: ContractRef) -> StoreResult<Option<ContractKey>>;
    /// Returns a contract by reference alone.
    fn contract(&mut self, organization: OrganizationId, contract_ref: ContractRef) -> StoreResult<Option<Contract>>;
    /// Returns a page of a customer's contracts, ordered by creation.
    fn contracts_of_customer(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        page: PageRequest,
    ) -> StoreResult<Page<Contract>>;
    /// Returns the newest of the customer's contracts that were created at an instant or later, are not canceled, and have the
    /// same first and last billed day as a contract.
    fn contracts_like(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        since: Timestamp,
    ) -> StoreResult<Vec<Contract>>;
    /// Returns the contracts that meter any of these pairs of customer and usage product, ordered by creation. A contract
    /// matches when any version of one of its products meters the usage product.
    ///
    /// With a lock, locks the contracts in the order of their references until the transaction ends.
    ///
    /// # Errors
    /// Returns [`StoreError::Contended`](super::StoreError::Contended) when a contract changed while the call waited for
    /// its lock.
    fn contracts_metering(
        &mut self,
        organization: OrganizationId,
        pairs: &[(CustomerId, UsageProductRef)],
        lock: Option<Lock>,
    ) -> StoreResult<Vec<Contract>>;
    /// Locks the contracts of [`contracts_metering`](Self::contracts_metering) shared, in the order of their references,
    /// until the transaction ends. Returns only their keys and stamps, in that order.
    ///
    /// Customers, entities and usage products may change after the call. What is read of them afterwards is therefore at
    /// least as new as the stamps.
    fn lock_stamps(
        &mut self,
        organization: OrganizationId,
        pairs: &[(CustomerId, UsageProductRef)],
    ) -> StoreResult<Vec<(ContractKey, Stamps)>>;
    /// Returns the generation of all stamps in a write transaction. In the same generation, [`lock_stamps`](Self::lock_stamps)
    /// returns the same stamps again, and its lock is not necessary.
    ///
    /// Returns `None` if other transactions can change stamps meanwhile, or if this one may have changed some.
    fn stamp_generation(&mut self) -> StoreResult<Option<StampGeneration>>;
    /// Locks a contract until the transaction ends. Returns the number of its newest version.
    ///
    /// Contracts are locked before documents. Documents are locked before totals and number series.
    fn lock_contract(&mut self, key: ContractKey, lock: Lock) -> StoreResult<Option<u32>>;
    /// Locks contracts until the transaction ends, each with its own strength, in the order of their references. Skips
    /// contracts that do not exist. Later reads of the contracts return their locked state.
    fn hold_contracts(&mut self, contracts: &[(ContractKey, Lock)]) -> StoreResult<()>;
    /// Stores the next version of a contract, as its difference from the previous version. The contract must be locked
    /// [`Lock::Exclusive`].
    fn append_contract_version(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        at: Timestamp,
        by: Actor,
    ) -> StoreResult<()>;
}

/// Sequences without gaps or duplicates, also after concurrent use, crashes and rollbacks.
pub trait NumberSeries {
    /// Takes consecutive document numbers of an entity and document kind, starting at 1. Returns the first number. A
    /// rollback of the transaction returns the numbers.
    fn take_document_numbers(
        &mut self,
        organization: OrganizationId,
        entity_ref: &EntityRef,
        kind: DocumentKind,
        many: u32,
    ) -> StoreResult<u64>;
    /// Returns whether a document of the entity ever had a number.
    fn has_given_numbers(&mut self, organization: OrganizationId, entity_ref: &EntityRef) -> StoreResult<bool>;
    /// Takes the next contract number of an organization, starting at 1. A rollback of the transaction returns the
    /// number.
    fn next_contract_number(&mut self, organization: OrganizationId) -> StoreResult<u64>;
    /// Takes consecutive document numbers within each of these contracts, starting at 1. Returns the first number of each
    /// contract. The contracts must be locked [`Lock::Exclusive`].
    fn take_numbers_in_contracts(&mut self, wanted: &BTreeMap<ContractKey, u32>) -> StoreResult<BTreeMap<ContractKey, u32>>;
}
