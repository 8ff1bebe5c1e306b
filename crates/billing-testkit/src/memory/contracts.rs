//! Contracts, when they are due, and number series.

use std::collections::BTreeMap;
use std::sync::Arc;

use billing_domain::access::Actor;
use billing_domain::calendar::Timestamp;
use billing_domain::contract::Contract;
use billing_domain::contract::terms::ProductTerms;
use billing_domain::document::DocumentKind;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{Contracts, DueContract, DueContracts, Lock, NumberSeries, StoreResult};
use billing_domain::refs::{ContractKey, ContractRef, CustomerId, EntityRef, OrganizationId, UsageProductRef};

use super::{MemoryTx, StoredContract, corrupt, page, sorted};

impl MemoryTx {
    pub(super) fn contract_of(&mut self, key: ContractKey) -> Option<&mut StoredContract> {
        let mut rows = self.state.contracts.of_mut(key.organization);
        rows.find(|row| row.contract.contract_ref == key.contract && row.contract.customer_id == key.customer)
    }
}

impl Contracts for MemoryTx {
    fn insert_contract(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        next_due_at: Option<Timestamp>,
    ) -> StoreResult<()> {
        if self.contract(organization, contract.contract_ref)?.is_some() {
            return Err(corrupt(format!("{:?} is there already", contract.contract_ref)));
        }
        self.held.own_contract(organization, contract.contract_ref);
        self.state.contracts.push(organization, StoredContract { contract: contract.clone(), next_due_at });
        Ok(())
    }

    fn contract_key(&mut self, organization: OrganizationId, contract_ref: ContractRef) -> StoreResult<Option<ContractKey>> {
        Ok(self.contract(organization, contract_ref)?.map(|row| row.key(organization)))
    }

    fn contract(&mut self, organization: OrganizationId, contract_ref: ContractRef) -> StoreResult<Option<Contract>> {
        let mut rows = self.state.contracts.of(organization);
        Ok(rows.find(|row| row.contract.contract_ref == contract_ref).map(|row| row.contract.clone()))
    }

    fn contracts_of_customer(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        request: PageRequest,
    ) -> StoreResult<Page<Contract>> {
        let rows = self.state.contracts.of(organization).map(|row| &row.contract).filter(|row| row.customer_id == customer_id);
        Ok(page(rows, request, |row| (row.created_at, row.contract_ref)))
    }

    fn contracts_metering(
        &mut self,
        organization: OrganizationId,
        pairs: &[(CustomerId, UsageProductRef)],
        lock: Option<Lock>,
    ) -> StoreResult<Vec<Contract>> {
        let meters = |row: &&Contract| {
            let terms = || row.products.iter().flat_map(|product| product.terms());
            pairs.iter().any(|(customer, product)| row.customer_id == *customer && terms().any(|terms| terms.meters(product)))
        };
        let rows = self.state.contracts.of(organization).map(|row| &row.contract);
        let found = sorted(rows.filter(meters), |row| (row.created_at, row.contract_ref));
        if let Some(lock) = lock {
            for contract in &found {
                self.held.contract(organization, contract.contract_ref, lock)?;
            }
        }
        Ok(found)
    }

    fn lock_contract(&mut self, key: ContractKey, lock: Lock) -> StoreResult<Option<u32>> {
        self.held.contract(key.organization, key.contract, lock)?;
        Ok(self.contract_of(key).map(|row| row.contract.version))
    }

    fn hold_contracts(&mut self, contracts: &[(ContractKey, Lock)]) -> StoreResult<()> {
        for (key, lock) in contracts {
            if self.contract_of(*key).is_some() {
                self.held.contract(key.organization, key.contract, *lock)?;
            }
        }
        Ok(())
    }

    fn append_contract_version(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        at: Timestamp,
        _by: Actor,
    ) -> StoreResult<()> {
        self.held.need_contract(organization, contract.contract_ref, "append_contract_version")?;
        match self.contract_of(contract.key(organization)) {
            Some(row) if row.contract.version + 1 == contract.version => row.contract = contract.clone(),
            Some(_) | None => {
                return Err(corrupt(format!("{:?} has no version before {}", contract.contract_ref, contract.version)));
            }
        }
        Arc::make_mut(&mut self.state.versions_made).insert(contract.contract_ref, at);
        Ok(())
    }
}

impl DueContracts for MemoryTx {
    fn contracts_due(
        &mut self,
        organization: Option<OrganizationId>,
        now: Timestamp,
        after: Option<DueContract>,
        limit: u32,
    ) -> StoreResult<Vec<DueContract>> {
        let due = |(owner, row): &(OrganizationId, StoredContract)| {
            let due_at = row.next_due_at.filter(|due_at| *due_at <= now)?;
            Some(DueContract { key: row.contract.key(*owner), due_at })
        };
        let order = |row: &DueContract| (row.due_at, row.key.contract);
        let mut found: Vec<DueContract> = self.state.contracts.0.iter().filter_map(due).collect();
        found.retain(|row| organization.is_none_or(|organization| organization == row.key.organization));
        found.retain(|row| after.is_none_or(|after| order(row) > order(&after)));
        found.sort_by_key(order);
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(found)
    }

    fn look_again(&mut self, organization: OrganizationId, entity_ref: &EntityRef, at: Timestamp) -> StoreResult<()> {
        let names = |terms: &ProductTerms| terms.entity_ref == *entity_ref;
        let naming = |row: &&mut StoredContract| row.contract.products.iter().any(|product| product.terms().any(names));
        for row in self.state.contracts.of_mut(organization).filter(naming) {
            self.held.contract(organization, row.contract.contract_ref, Lock::Exclusive)?;
            row.next_due_at = Some(row.next_due_at.map_or(at, |due_at| due_at.min(at)));
        }
        Ok(())
    }

    fn set_next_dues(&mut self, due: &BTreeMap<ContractKey, Option<Timestamp>>) -> StoreResult<()> {
        for (key, at) in due {
            if let Some(row) = self.contract_of(*key) {
                row.next_due_at = *at;
            }
        }
        Ok(())
    }
}

impl NumberSeries for MemoryTx {
    fn take_document_numbers(
        &mut self,
        organization: OrganizationId,
        entity_ref: &EntityRef,
        kind: DocumentKind,
        many: u32,
    ) -> StoreResult<u64> {
        self.held.number_series()?;
        let last = self.state.document_numbers.entry((organization, entity_ref.clone(), kind)).or_default();
        let first = *last + 1;
        *last += u64::from(many);
        Ok(first)
    }

    fn has_given_numbers(&mut self, organization: OrganizationId, entity_ref: &EntityRef) -> StoreResult<bool> {
        Ok(self.state.document_numbers.keys().any(|(owner, of, _)| *owner == organization && of == entity_ref))
    }

    fn next_contract_number(&mut self, organization: OrganizationId) -> StoreResult<u64> {
        self.held.number_series()?;
        let last = self.state.contract_numbers.entry(organization).or_default();
        *last += 1;
        Ok(*last)
    }

    fn take_numbers_in_contracts(&mut self, wanted: &BTreeMap<ContractKey, u32>) -> StoreResult<BTreeMap<ContractKey, u32>> {
        let mut firsts = BTreeMap::new();
        for (key, many) in wanted {
            self.held.need_contract(key.organization, key.contract, "take_numbers_in_contracts")?;
            let last = self.state.numbers_in_contract.entry(*key).or_default();
            firsts.insert(*key, *last + 1);
            *last += many;
        }
        Ok(firsts)
    }
}
