//! What a transaction holds. With one writer nothing ever waits; what is checked here is that callers hold
//! what the ports say they must, in the one order that keeps databases from deadlocks.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::account::AccountKey;
use billing_domain::idempotency::RequestKey;
use billing_domain::ports::{Access, Lock, StoreResult};
use billing_domain::refs::{ContractRef, CustomerId, OrganizationId};
use billing_domain::usage::UsageKey;

use super::corrupt;

/// Keys of requests are held before contracts, contracts before totals, accounts and number series. Documents are held with their
/// contract.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    RequestKeys,
    Contracts,
    TotalsAndNumbers,
}

pub(super) struct Held {
    access: Access,
    forgiving: bool,
    stage: Stage,
    contracts: BTreeMap<(OrganizationId, ContractRef), bool>,
    totals: BTreeSet<(OrganizationId, CustomerId, UsageKey)>,
    request_keys: BTreeSet<(OrganizationId, RequestKey)>,
    accounts: BTreeSet<(OrganizationId, AccountKey)>,
}

impl Held {
    pub(super) fn new(access: Access, forgiving: bool) -> Self {
        Self {
            access,
            forgiving,
            stage: Stage::RequestKeys,
            contracts: BTreeMap::new(),
            totals: BTreeSet::new(),
            request_keys: BTreeSet::new(),
            accounts: BTreeSet::new(),
        }
    }

    pub(super) fn contract(&mut self, organization: OrganizationId, contract_ref: ContractRef, lock: Lock) -> StoreResult<()> {
        let key = (organization, contract_ref);
        let known = self.contracts.contains_key(&key);
        self.reach(Stage::Contracts, known)?;
        *self.contracts.entry(key).or_default() |= lock == Lock::Exclusive;
        Ok(())
    }

    /// A contract this transaction has made is nobody else's yet.
    pub(super) fn own_contract(&mut self, organization: OrganizationId, contract_ref: ContractRef) {
        self.contracts.insert((organization, contract_ref), true);
    }

    pub(super) fn total(&mut self, organization: OrganizationId, customer_id: CustomerId, key: &UsageKey) -> StoreResult<()> {
        self.reach(Stage::TotalsAndNumbers, false)?;
        self.totals.insert((organization, customer_id, key.clone()));
        Ok(())
    }

    pub(super) fn account(&mut self, organization: OrganizationId, key: &AccountKey) -> StoreResult<()> {
        self.reach(Stage::TotalsAndNumbers, false)?;
        self.accounts.insert((organization, key.clone()));
        Ok(())
    }

    /// Refuses what needs an account that isn't held.
    pub(super) fn need_account(&self, organization: OrganizationId, key: &AccountKey) -> StoreResult<()> {
        if self.forgiving || self.accounts.contains(&(organization, key.clone())) {
            return Ok(());
        }
        Err(corrupt(format!("put_account without holding {key:?}")))
    }

    pub(super) fn number_series(&mut self) -> StoreResult<()> {
        self.reach(Stage::TotalsAndNumbers, false)
    }

    pub(super) fn request_key(&mut self, organization: OrganizationId, request: &RequestKey) -> StoreResult<()> {
        let key = (organization, request.clone());
        let known = self.request_keys.contains(&key);
        self.reach(Stage::RequestKeys, known)?;
        self.request_keys.insert(key);
        Ok(())
    }

    /// Refuses what needs the key of a request that isn't held.
    pub(super) fn need_request_key(&self, organization: OrganizationId, request: &RequestKey) -> StoreResult<()> {
        if self.forgiving || self.request_keys.contains(&(organization, request.clone())) {
            return Ok(());
        }
        Err(corrupt(format!("keep_request without holding {request:?}")))
    }

    /// Refuses what needs a contract that isn't held exclusively.
    pub(super) fn need_contract(&self, organization: OrganizationId, contract_ref: ContractRef, what: &str) -> StoreResult<()> {
        if self.forgiving || self.has_contract(organization, contract_ref) {
            return Ok(());
        }
        Err(corrupt(format!("{what} without holding {contract_ref:?} exclusively")))
    }

    /// Refuses what needs a running total that isn't held; who holds a contract exclusively holds its totals.
    pub(super) fn need_total(&self, organization: OrganizationId, customer_id: CustomerId, key: &UsageKey) -> StoreResult<()> {
        let is_held =
            self.has_contract(organization, key.contract_ref) || self.totals.contains(&(organization, customer_id, key.clone()));
        if self.forgiving || is_held {
            return Ok(());
        }
        Err(corrupt(format!("put_usage without lock_usage of {key:?}")))
    }

    fn has_contract(&self, organization: OrganizationId, contract_ref: ContractRef) -> bool {
        self.contracts.get(&(organization, contract_ref)) == Some(&true)
    }

    fn reach(&mut self, stage: Stage, known: bool) -> StoreResult<()> {
        if self.access != Access::Write {
            return Err(corrupt("a transaction opened to read can't hold anything"));
        }
        if stage < self.stage && !known && !self.forgiving {
            return Err(corrupt(match stage {
                Stage::RequestKeys => "the key of a request must be held before everything else",
                Stage::Contracts | Stage::TotalsAndNumbers => "a contract must be held before totals and number series",
            }));
        }
        self.stage = self.stage.max(stage);
        Ok(())
    }
}
