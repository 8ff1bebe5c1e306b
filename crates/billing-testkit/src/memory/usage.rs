//! Usage: events, their changes, their running totals and the keys they were sent with.

use std::collections::BTreeSet;
use std::sync::Arc;

use billing_domain::catalog::UsageProduct;
use billing_domain::document::Lifecycle;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::party::Customer;
use billing_domain::ports::{
    Customers as _, Documents as _, EventChanges, EventKeys, RunningTotals, StoreError, StoreResult, UsageEvents,
    UsageProducts as _,
};
use billing_domain::refs::{
    ContractKey, ContractRef, CustomerId, CustomerRef, DocumentKey, DocumentRef, EventRef, OrganizationId, ProductNo,
    UsageProductRef,
};
use billing_domain::usage::{KeptEvent, TakenEvent, UsageEvent, UsageKey, UsageTotal};
use chrono::NaiveDate;

use super::{MemoryTx, Superseded, corrupt, sorted};

impl MemoryTx {
    /// A contract's running totals.
    pub(super) fn totals_of(&self, key: ContractKey) -> Vec<(UsageKey, UsageTotal)> {
        let of_contract = |(organization, customer, total): &(OrganizationId, CustomerId, UsageKey)| {
            ContractKey { organization: *organization, customer: *customer, contract: total.contract_ref } == key
        };
        let all = self.state.totals.iter().filter(|(key, _)| of_contract(key));
        all.map(|((_, _, key), total)| (key.clone(), *total)).collect()
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

    fn events_by_refs(&mut self, organization: OrganizationId, events: &[EventRef]) -> StoreResult<Vec<UsageEvent>> {
        Ok(sorted(self.state.events.of(organization).filter(|row| events.contains(&row.event_ref)), |row| row.event_ref))
    }

    fn events_of_customers(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        events: &[EventRef],
    ) -> StoreResult<Vec<UsageEvent>> {
        let mut found = self.events_by_refs(organization, events)?;
        found.retain(|event| customers.contains(&event.customer_id));
        Ok(found)
    }

    fn known_events(&mut self, organization: OrganizationId, events: &[EventRef]) -> StoreResult<BTreeSet<EventRef>> {
        Ok(self.state.events.of(organization).map(|row| row.event_ref).filter(|known| events.contains(known)).collect())
    }
}

impl EventChanges for MemoryTx {
    fn revise_events(&mut self, organization: OrganizationId, revisions: &[(UsageEvent, UsageEvent)]) -> StoreResult<()> {
        for (superseded, revised) in revisions {
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
        }
        Ok(())
    }

    fn superseded_revisions(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        events: &[EventRef],
    ) -> StoreResult<Vec<UsageEvent>> {
        let rows = self.state.superseded_events.of(organization).map(|row| &row.event);
        let asked = rows.filter(|row| customers.contains(&row.customer_id) && events.contains(&row.event_ref));
        Ok(sorted(asked, |row| (row.event_ref, row.revision)))
    }

    fn move_events(&mut self, from: DocumentKey, to: DocumentRef) -> StoreResult<()> {
        for row in self.state.events.of_mut(from.organization).filter(|row| row.customer_id == from.customer) {
            if row.placement.document_ref == from.document {
                row.placement.document_ref = to;
            }
        }
        Ok(())
    }

    fn move_events_of_period(
        &mut self,
        from: DocumentKey,
        to: DocumentRef,
        product_no: ProductNo,
        period_start: NaiveDate,
    ) -> StoreResult<()> {
        for row in self.state.events.of_mut(from.organization).filter(|row| row.customer_id == from.customer) {
            let placement = &mut row.placement;
            let counts_there = placement.product_no == product_no && placement.service_period.start() == period_start;
            if placement.document_ref == from.document && counts_there {
                placement.document_ref = to;
            }
        }
        Ok(())
    }
}

impl RunningTotals for MemoryTx {
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

    fn events_in_totals(
        &mut self,
        organization: OrganizationId,
        customer_id: Option<CustomerId>,
        contract_ref: Option<ContractRef>,
        usage_product_ref: Option<&UsageProductRef>,
    ) -> StoreResult<u64> {
        let passes = |(owner, customer, key): &(OrganizationId, CustomerId, UsageKey)| {
            *owner == organization
                && customer_id.is_none_or(|wanted| wanted == *customer)
                && contract_ref.is_none_or(|wanted| wanted == key.contract_ref)
                && usage_product_ref.is_none_or(|wanted| *wanted == key.usage_product_ref)
        };
        Ok(self.state.totals.iter().filter(|(key, _)| passes(key)).map(|(_, total)| total.events).sum())
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
}

impl EventKeys for MemoryTx {
    fn kept_events(
        &mut self,
        organization: OrganizationId,
        keys: &[(CustomerId, IdempotencyKey)],
    ) -> StoreResult<Vec<(CustomerId, KeptEvent)>> {
        let known = self.state.kept_events.of(organization);
        let asked = known.filter(|(owner, kept)| keys.iter().any(|(customer, key)| customer == owner && *key == kept.key));
        Ok(sorted(asked, |(owner, kept)| (*owner, kept.key.clone())))
    }

    fn keep_events(&mut self, organization: OrganizationId, taken: &[(CustomerId, TakenEvent)]) -> StoreResult<()> {
        let keys: Vec<(CustomerId, IdempotencyKey)> =
            taken.iter().map(|(customer_id, taken)| (*customer_id, taken.kept.key.clone())).collect();
        if !self.kept_events(organization, &keys)?.is_empty() {
            return Err(StoreError::Contended);
        }
        for (customer_id, TakenEvent { kept, .. }) in taken {
            if self.event(organization, kept.event_ref)?.is_none_or(|event| event.customer_id != *customer_id) {
                return Err(corrupt(format!("{:?} is no event of the customer", kept.event_ref)));
            }
            self.state.kept_events.push(organization, (*customer_id, kept.clone()));
        }
        Ok(())
    }
}
