//! Contracts, usage and number series.

use std::sync::Arc;

use billing_domain::access::Actor;
use billing_domain::calendar::Timestamp;
use billing_domain::catalog::UsageProduct;
use billing_domain::contract::Contract;
use billing_domain::contract::terms::ProductTerms;
use billing_domain::document::{DocumentKind, Lifecycle};
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::Customer;
use billing_domain::ports::{
    Contracts, Customers as _, Documents as _, DueContract, EventKeys, Lock, NumberSeries, StoreError, StoreResult, UsageEvents,
    UsageProducts as _,
};
use billing_domain::refs::{
    ContractRef, CustomerId, CustomerRef, DocumentRef, EntityRef, EventRef, OrganizationId, ProductNo, UsageProductRef,
};
use billing_domain::usage::{KeptEvent, UsageEvent, UsageKey, UsageTotal};
use chrono::NaiveDate;

use super::{MemoryTx, StoredContract, Superseded, corrupt, page, sorted};

impl MemoryTx {
    pub(super) fn contract_of(
        &mut self,
        organization: OrganizationId,
        customer: CustomerId,
        contract: ContractRef,
    ) -> Option<&mut StoredContract> {
        let mut rows = self.state.contracts.of_mut(organization);
        rows.find(|row| row.contract.contract_ref == contract && row.contract.customer_id == customer)
    }
}

impl MemoryTx {
    /// A contract's running totals.
    pub(super) fn totals_of(
        &self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
    ) -> Vec<(UsageKey, UsageTotal)> {
        let of_contract = |(owner, customer, key): &(OrganizationId, CustomerId, UsageKey)| {
            *owner == organization && *customer == customer_id && key.contract_ref == contract_ref
        };
        let all = self.state.totals.iter().filter(|(key, _)| of_contract(key));
        all.map(|((_, _, key), total)| (key.clone(), *total)).collect()
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

    fn lock_contract(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        lock: Lock,
    ) -> StoreResult<Option<u32>> {
        self.held.contract(organization, contract_ref, lock)?;
        Ok(self.contract_of(organization, customer_id, contract_ref).map(|row| row.contract.version))
    }

    fn contracts_due(
        &mut self,
        organization: Option<OrganizationId>,
        now: Timestamp,
        after: Option<DueContract>,
        limit: u32,
    ) -> StoreResult<Vec<DueContract>> {
        let due = |(owner, row): &(OrganizationId, StoredContract)| {
            let due_at = row.next_due_at.filter(|due_at| *due_at <= now)?;
            let contract = &row.contract;
            Some(DueContract {
                organization: *owner,
                customer_id: contract.customer_id,
                contract_ref: contract.contract_ref,
                due_at,
            })
        };
        let order = |row: &DueContract| (row.due_at, row.contract_ref);
        let mut found: Vec<DueContract> = self.state.contracts.0.iter().filter_map(due).collect();
        found.retain(|row| organization.is_none_or(|organization| organization == row.organization));
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

    fn set_next_due(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        at: Option<Timestamp>,
    ) -> StoreResult<()> {
        if let Some(row) = self.contract_of(organization, customer_id, contract_ref) {
            row.next_due_at = at;
        }
        Ok(())
    }

    fn append_contract_version(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        _at: Timestamp,
        _by: Actor,
    ) -> StoreResult<()> {
        self.held.need_contract(organization, contract.contract_ref, "append_contract_version")?;
        match self.contract_of(organization, contract.customer_id, contract.contract_ref) {
            Some(row) if row.contract.version + 1 == contract.version => row.contract = contract.clone(),
            Some(_) | None => {
                return Err(corrupt(format!("{:?} has no version before {}", contract.contract_ref, contract.version)));
            }
        }
        Ok(())
    }
}

impl EventKeys for MemoryTx {
    fn kept_events(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        keys: &[IdempotencyKey],
    ) -> StoreResult<Vec<KeptEvent>> {
        let known = self.state.kept_events.of(organization);
        let asked = known.filter(|(owner, kept)| *owner == customer_id && keys.contains(&kept.sent.key));
        Ok(sorted(asked, |(_, kept)| kept.sent.key.clone()).into_iter().map(|(_, kept)| kept).collect())
    }

    fn keep_events(&mut self, organization: OrganizationId, customer_id: CustomerId, kept: &[KeptEvent]) -> StoreResult<()> {
        let keys: Vec<IdempotencyKey> = kept.iter().map(|kept| kept.sent.key.clone()).collect();
        if !self.kept_events(organization, customer_id, &keys)?.is_empty() {
            return Err(StoreError::Contended);
        }
        for kept in kept {
            if self.event(organization, kept.event_ref)?.is_none_or(|event| event.customer_id != customer_id) {
                return Err(corrupt(format!("{:?} is no event of the customer", kept.event_ref)));
            }
            self.state.kept_events.push(organization, (customer_id, kept.clone()));
        }
        Ok(())
    }
}

impl UsageEvents for MemoryTx {
    fn named_by_events(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerRef],
        usage_products: &[UsageProductRef],
    ) -> StoreResult<(Vec<Customer>, Vec<UsageProduct>)> {
        Ok((self.customers_by_refs(organization, customers)?, self.usage_products_by_refs(organization, usage_products)?))
    }

    fn insert_events(&mut self, organization: OrganizationId, events: &[UsageEvent]) -> StoreResult<()> {
        let before = self.state.events.clone();
        for event in events {
            if self.event(organization, event.event_ref)?.is_some() {
                self.state.events = before;
                return Err(corrupt(format!("{:?} is there already", event.event_ref)));
            }
            self.state.events.push(organization, event.clone());
        }
        Ok(())
    }

    fn event(&mut self, organization: OrganizationId, event_ref: EventRef) -> StoreResult<Option<UsageEvent>> {
        Ok(self.state.events.of(organization).find(|row| row.event_ref == event_ref).cloned())
    }

    fn revise_event(&mut self, organization: OrganizationId, superseded: &UsageEvent, revised: &UsageEvent) -> StoreResult<()> {
        let document = self.document(organization, superseded.placement.document_ref)?;
        let lifecycle = document.map(|document| document.lifecycle);
        let is_issued = matches!(lifecycle, Some(Lifecycle::Issued(_) | Lifecycle::Uncollectible(_)));
        let billed = is_issued && !self.is_billed_before(organization, superseded);
        let mut rows = self.state.events.of_mut(organization);
        let Some(row) = rows.find(|row| row.event_ref == superseded.event_ref && row.revision == superseded.revision) else {
            return Err(StoreError::Contended);
        };
        *row = revised.clone();
        self.state.superseded_events.push(organization, Superseded { event: superseded.clone(), billed });
        Ok(())
    }

    fn superseded_revisions(&mut self, organization: OrganizationId, events: &[EventRef]) -> StoreResult<Vec<UsageEvent>> {
        let rows = self.state.superseded_events.of(organization).map(|row| &row.event);
        Ok(sorted(rows.filter(|row| events.contains(&row.event_ref)), |row| (row.event_ref, row.revision)))
    }

    fn move_events(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        from: DocumentRef,
        to: DocumentRef,
    ) -> StoreResult<()> {
        for row in self.state.events.of_mut(organization).filter(|row| row.customer_id == customer_id) {
            if row.placement.document_ref == from {
                row.placement.document_ref = to;
            }
        }
        Ok(())
    }

    fn move_events_of_period(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        from: DocumentRef,
        to: DocumentRef,
        product_no: ProductNo,
        period_start: NaiveDate,
    ) -> StoreResult<()> {
        for row in self.state.events.of_mut(organization).filter(|row| row.customer_id == customer_id) {
            let placement = &mut row.placement;
            let counts_there = placement.product_no == product_no && placement.service_period.start() == period_start;
            if placement.document_ref == from && counts_there {
                placement.document_ref = to;
            }
        }
        Ok(())
    }

    fn recount_usage(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        key: &UsageKey,
        except: Option<EventRef>,
    ) -> StoreResult<UsageTotal> {
        let rows = self.state.events.of(organization).filter(|row| row.customer_id == customer_id && !row.deleted);
        let mut rows = rows.filter(|row| row.usage_key() == *key && Some(row.event_ref) != except);
        rows.try_fold(UsageTotal::ZERO, |total, row| total.plus(row.counted())).map_err(|reason| corrupt(reason.to_string()))
    }

    fn lock_usage(
        &mut self,
        organization: OrganizationId,
        keys: &[(CustomerId, UsageKey)],
    ) -> StoreResult<Vec<(UsageKey, UsageTotal)>> {
        let mut keys = keys.to_vec();
        keys.sort_by(|a, b| (&a.1, a.0).cmp(&(&b.1, b.0)));
        keys.dedup();
        let mut found = Vec::new();
        for (customer_id, key) in keys {
            self.held.total(organization, customer_id, &key)?;
            let total = *Arc::make_mut(&mut self.state.totals)
                .entry((organization, customer_id, key.clone()))
                .or_insert(UsageTotal::ZERO);
            found.push((key, total));
        }
        Ok(found)
    }

    fn put_usage(&mut self, organization: OrganizationId, totals: &[(CustomerId, UsageKey, UsageTotal)]) -> StoreResult<()> {
        for (customer_id, key, total) in totals {
            self.held.need_total(organization, *customer_id, key)?;
            Arc::make_mut(&mut self.state.totals).insert((organization, *customer_id, key.clone()), *total);
        }
        Ok(())
    }
}

impl NumberSeries for MemoryTx {
    fn next_document_number(
        &mut self,
        organization: OrganizationId,
        entity_ref: &EntityRef,
        kind: DocumentKind,
    ) -> StoreResult<u64> {
        self.held.number_series()?;
        let last = self.state.document_numbers.entry((organization, entity_ref.clone(), kind)).or_default();
        *last += 1;
        Ok(*last)
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

    fn next_number_in_contract(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
    ) -> StoreResult<u32> {
        self.held.need_contract(organization, contract_ref, "next_number_in_contract")?;
        let last = self.state.numbers_in_contract.entry((organization, customer_id, contract_ref)).or_default();
        *last += 1;
        Ok(*last)
    }
}
