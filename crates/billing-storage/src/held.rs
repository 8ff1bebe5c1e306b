//! The locks of a transaction, tracked in debug builds only. They check that callers take the locks that the ports
//! require, in the one order that avoids deadlocks. Without this check, missing locks have no effect on SQLite, and
//! lose changes on PostgreSQL only when two transactions conflict.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::idempotency::ScopedIdempotencyKey;
use billing_domain::ports::{Lock, StoreResult};
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{ContractRef, CustomerId, OrganizationId};
use billing_domain::usage::UsageKey;

use crate::tx::Transaction;

/// The lock order: request keys, then contracts, then totals, accounts and number series. A document is locked with its
/// contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[default]
    RequestKeys,
    Contracts,
    TotalsAndNumbers,
}

/// The locks of one transaction.
#[derive(Debug, Default)]
pub(crate) struct HeldLocks {
    stage: Stage,
    /// The locked contracts, with whether each lock is exclusive.
    contracts: BTreeMap<ContractRef, bool>,
    totals: BTreeSet<(CustomerId, UsageKey)>,
    accounts: BTreeSet<AccountKey>,
    request_keys: BTreeSet<(OrganizationId, ScopedIdempotencyKey)>,
}

impl Transaction<'_> {
    pub(crate) fn note_contract(&mut self, contract_ref: ContractRef, lock: Lock) -> StoreResult<()> {
        if !cfg!(debug_assertions) {
            return Ok(());
        }
        if !self.held.contracts.contains_key(&contract_ref) {
            self.reach(Stage::Contracts)?;
        }
        *self.held.contracts.entry(contract_ref).or_default() |= lock == Lock::Exclusive;
        Ok(())
    }

    /// Records a contract that this transaction created; no other transaction can lock it yet.
    pub(crate) fn note_own_contract(&mut self, contract_ref: ContractRef) {
        if cfg!(debug_assertions) {
            self.held.contracts.insert(contract_ref, true);
        }
    }

    pub(crate) fn note_total(&mut self, customer_id: CustomerId, key: &UsageKey) -> StoreResult<()> {
        if !cfg!(debug_assertions) {
            return Ok(());
        }
        self.held.totals.insert((customer_id, key.clone()));
        self.reach(Stage::TotalsAndNumbers)
    }

    pub(crate) fn note_account(&mut self, key: &AccountKey) -> StoreResult<()> {
        if !cfg!(debug_assertions) {
            return Ok(());
        }
        self.held.accounts.insert(key.clone());
        self.reach(Stage::TotalsAndNumbers)
    }

    pub(crate) fn note_number_series(&mut self) -> StoreResult<()> {
        if cfg!(debug_assertions) { self.reach(Stage::TotalsAndNumbers) } else { Ok(()) }
    }

    pub(crate) fn note_request_key(&mut self, organization: OrganizationId, request: &ScopedIdempotencyKey) -> StoreResult<()> {
        if !cfg!(debug_assertions) || !self.held.request_keys.insert((organization, request.clone())) {
            return Ok(());
        }
        self.reach(Stage::RequestKeys)
    }

    /// Rejects an operation without the exclusive lock on the contract that it needs.
    pub(crate) fn require_contract(&mut self, contract_ref: ContractRef, operation: &str) -> StoreResult<()> {
        let is_locked = self.held.contracts.get(&contract_ref) == Some(&true);
        self.require(is_locked, || format!("{operation} without an exclusive lock on contract {contract_ref}"))
    }

    /// Rejects an operation that needs an exclusive lock on an unspecified contract when no contract is locked
    /// exclusively.
    pub(crate) fn require_some_contract(&mut self, operation: &str) -> StoreResult<()> {
        let is_locked = self.held.contracts.values().any(|is_exclusive| *is_exclusive);
        self.require(is_locked, || format!("{operation} without an exclusive lock on a contract"))
    }

    /// Rejects an operation without the lock on the running total that it needs. An exclusive lock on a contract locks
    /// its totals.
    pub(crate) fn require_total(&mut self, customer_id: CustomerId, key: &UsageKey) -> StoreResult<()> {
        let is_locked = !cfg!(debug_assertions)
            || self.held.contracts.get(&key.contract_ref) == Some(&true)
            || self.held.totals.contains(&(customer_id, key.clone()));
        self.require(is_locked, || format!("put_usage without a lock on {key:?}"))
    }

    /// Rejects an operation without the lock on the account that it needs.
    pub(crate) fn require_account(&mut self, key: &AccountKey) -> StoreResult<()> {
        let is_locked = self.held.accounts.contains(key);
        self.require(is_locked, || format!("put_account without a lock on {key:?}"))
    }

    /// Rejects an operation without the lock on the request key that it needs.
    pub(crate) fn require_request_key(
        &mut self,
        organization: OrganizationId,
        request: &ScopedIdempotencyKey,
    ) -> StoreResult<()> {
        let is_locked = !cfg!(debug_assertions) || self.held.request_keys.contains(&(organization, request.clone()));
        self.require(is_locked, || format!("keep_request without a lock on {request:?}"))
    }

    fn require(&mut self, is_locked: bool, what: impl FnOnce() -> String) -> StoreResult<()> {
        if is_locked || !cfg!(debug_assertions) { Ok(()) } else { self.refuse(what()) }
    }

    fn reach(&mut self, stage: Stage) -> StoreResult<()> {
        if stage < self.held.stage {
            return self.refuse(format!("locks are taken in order: {stage:?} after {:?}", self.held.stage));
        }
        self.held.stage = stage;
        Ok(())
    }
}
