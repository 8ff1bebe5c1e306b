//! The events of a group of changes, and the books of their contracts with the decisions made so far.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::calendar::{Date, Period};
use billing_domain::contract::{Contract, ContractProduct};
use billing_domain::labels::LabelDigest;
use billing_domain::ledger::live_labels::LiveLabels;
use billing_domain::ledger::{ContractBook, Entry};
use billing_domain::ports::{LabelOfTotal, Tx};
use billing_domain::refs::{ContractKey, ContractRef, DocumentRef, OrganizationId};
use billing_domain::usage::{ReportData, UsageEvent, UsageKey};

use crate::book_repository::{self, corrupt};
use crate::error::UseCaseResult;

/// An event before and after its change.
pub(super) struct ChangeCandidate {
    pub(super) event: UsageEvent,
    pub(super) revised: UsageEvent,
    /// The service period for a changed timestamp or changed validations.
    pub(super) target: Option<TargetPeriod>,
}

impl ChangeCandidate {
    /// Returns whether the timestamp or the validations change.
    pub(super) fn is_rescheduled(&self) -> bool {
        self.revised.occurred_at != self.event.occurred_at || self.revised.validations != self.event.validations
    }

    /// Returns the keys of the labels whose text changes.
    pub(super) fn changed_labels(&self) -> impl Iterator<Item = &str> {
        let (before, after) = (self.event.report_data.as_ref(), self.revised.report_data.as_ref());
        let keys = before.into_iter().chain(after).flat_map(ReportData::entries).map(|(key, _)| key.as_str());
        keys.filter(move |key| before.and_then(|data| data.label(key)) != after.and_then(|data| data.label(key)))
    }
}

/// Returns whether terms of a customer's contracts read a label of an event.
pub(super) fn is_read(contracts: &[Contract], event: &UsageEvent, key: &str) -> bool {
    let terms = contracts.iter().flat_map(|contract| &contract.products).flat_map(ContractProduct::terms);
    terms.into_iter().any(|terms| terms.reads_label(&event.usage_product_ref, key))
}

/// A service period that an event is matched to.
pub(super) struct TargetPeriod {
    pub(super) key: UsageKey,
    pub(super) unique_digest: Option<LabelDigest>,
    pub(super) service_period: Period,
    pub(super) service_date: Date,
}

/// Returns the contracts that a change affects.
pub(super) fn contracts_of(organization: OrganizationId, seen: &ChangeCandidate) -> BTreeSet<ContractKey> {
    let target = seen.target.as_ref().map(|target| target.key.contract_ref);
    let contracts = std::iter::once(seen.event.placement.contract_ref).chain(target);
    contracts.map(|contract| ContractKey { organization, customer: seen.event.customer_id, contract }).collect()
}

/// The books of the locked contracts, including the decisions made so far.
pub(super) struct WorkingBooks {
    pub(super) now: BTreeMap<ContractRef, ContractBook>,
    /// The books as loaded, for those with decisions.
    pub(super) before: BTreeMap<ContractRef, ContractBook>,
    /// Totals that were changed but not stored yet.
    pub(super) changed: BTreeSet<UsageKey>,
    /// Contracts whose events were moved to other documents, which is not stored yet.
    pub(super) moved: BTreeSet<ContractRef>,
    /// The texts of labels that `UNIQUE` counts, after the decisions made so far.
    pub(super) live: LiveLabels,
}

impl WorkingBooks {
    pub(super) fn of(held: Vec<ContractBook>) -> Self {
        let now = held.into_iter().map(|book| (book.contract.contract_ref, book)).collect();
        Self { now, before: BTreeMap::new(), changed: BTreeSet::new(), moved: BTreeSet::new(), live: LiveLabels::default() }
    }

    /// Loads the documents that carry the events.
    pub(super) fn know<'s>(
        &mut self,
        tx: &mut dyn Tx,
        organization: OrganizationId,
        seen: impl Iterator<Item = &'s ChangeCandidate>,
    ) -> UseCaseResult<()> {
        let mut listed_on: BTreeMap<ContractRef, BTreeSet<DocumentRef>> = BTreeMap::new();
        for ChangeCandidate { event: UsageEvent { placement, .. }, .. } in seen {
            listed_on.entry(placement.contract_ref).or_default().insert(placement.document_ref);
        }
        let mut of_book = |contract_ref: &ContractRef| listed_on.remove(contract_ref).unwrap_or_default();
        let wanted = self.now.keys().map(&mut of_book).collect();
        book_repository::load_documents_of_all(tx, organization, self.now.values_mut().collect(), wanted)
    }

    /// Loads how many events have the texts of labels that the changes add or remove.
    pub(super) fn know_labels<'s>(
        &mut self,
        tx: &mut dyn Tx,
        seen: impl Iterator<Item = &'s ChangeCandidate>,
    ) -> UseCaseResult<()> {
        let (mut labels, mut changes): (BTreeSet<LabelOfTotal>, u32) = (BTreeSet::new(), 1);
        for ChangeCandidate { event, revised, target } in seen {
            let moved = target.as_ref().map_or_else(|| event.period_key(), |target| target.key.clone());
            let of_event = [(event.period_key(), event.unique_digest), (moved, revised.unique_digest)];
            let of_event = of_event.into_iter().filter_map(|(key, digest)| Some((event.customer_id, key, digest?)));
            labels.extend(of_event);
            changes = changes.saturating_add(1);
        }
        if !labels.is_empty() {
            self.live = tx.live_labels(&Vec::from_iter(labels), changes)?;
        }
        Ok(())
    }

    /// Returns the key of the running total that counts a stored event.
    pub(super) fn key_of(&self, event: &UsageEvent) -> UseCaseResult<UsageKey> {
        let contract_ref = event.placement.contract_ref;
        let book = self.now.get(&contract_ref).ok_or_else(|| corrupt("a contract", &contract_ref, "is not held"))?;
        book.contract.usage_key(event).map_err(|_| corrupt("an event", &event.event_ref, "is counted by no line item"))
    }

    pub(super) fn take(&mut self, contract: ContractRef) -> UseCaseResult<ContractBook> {
        let book = self.now.remove(&contract).ok_or_else(|| corrupt("a contract", &contract, "is not held"))?;
        self.before.entry(contract).or_insert_with(|| book.clone());
        Ok(book)
    }

    /// Returns a book as it was loaded.
    pub(super) fn before(&self, book: &ContractBook) -> UseCaseResult<&ContractBook> {
        let contract_ref = book.contract.contract_ref;
        self.before.get(&contract_ref).ok_or_else(|| corrupt("a contract", &contract_ref, "is not held"))
    }

    pub(super) fn put(&mut self, book: ContractBook) {
        let contract_ref = book.contract.contract_ref;
        if book.entries().iter().any(|entry| matches!(entry, Entry::EventsMoved { .. })) {
            self.moved.insert(contract_ref);
        }
        self.now.insert(contract_ref, book);
    }
}
