//! Lets a transaction of the usage writer use the [cache](super::event_cache) and add to it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use billing_domain::contract::Contract;
use billing_domain::document::BookDocument;
use billing_domain::event_input::{NamedCustomer, NamedUsageProduct, NewUsageEvent};
use billing_domain::ledger::ContractBook;
use billing_domain::party::{Customer, Entity};
use billing_domain::ports::{Lock, StampGeneration, Stamps};
use billing_domain::refs::{ContractRef, CustomerId, OrganizationId, UsageProductRef};
use billing_domain::usage::UsageKey;

use super::event_cache::{CacheEntry, CacheKey, CachedRows, EventCache, LastGeneration, PeriodKey};
use super::names::NameLookup;
use crate::book_repository::{corrupt, slots_of_usage};
use crate::carry_out::Cx;
use crate::error::{UseCaseError, UseCaseResult};

/// What the usage writer may skip that other callers of [`IngestBatch`](super::ingest::IngestBatch) do. In rare cases a transaction cannot finish with
/// shortcuts. It is then rolled back, and the writer repeats it without them.
pub(super) struct Shortcuts<'c> {
    cache: &'c EventCache,
    learned: RefCell<BTreeMap<CacheKey, CacheEntry>>,
    must_repeat: Cell<bool>,
}

impl<'c> Shortcuts<'c> {
    /// Creates shortcuts for one transaction.
    pub(super) fn new(cache: &'c EventCache) -> Self {
        Self { cache, learned: RefCell::default(), must_repeat: Cell::new(false) }
    }

    /// Forgets what an earlier run of the same transaction found. The store may run a transaction several times.
    pub(super) fn begin(&self) {
        self.learned.borrow_mut().clear();
        self.must_repeat.set(false);
    }

    /// Returns the error with which the transaction is rolled back, to be repeated without shortcuts.
    pub(super) fn give_up(&self) -> UseCaseError {
        self.must_repeat.set(true);
        UseCaseError::InvariantViolation("events that have to be recorded without shortcuts")
    }

    /// Returns whether the transaction must be repeated without shortcuts.
    pub(super) fn must_repeat(&self) -> bool {
        self.must_repeat.get()
    }

    /// Adds what the transaction read to the cache. Call it after the commit.
    pub(super) fn keep_learned(&self) {
        self.cache.keep(mem::take(&mut *self.learned.borrow_mut()));
    }
}

/// What a transaction knows from the cache.
#[derive(Default)]
pub(super) struct Recalled {
    /// The generation of the stamps, if the store knows it.
    generation: Option<StampGeneration>,
    /// The stamps of the contracts that are locked, by customer. `None` if no contract is locked yet.
    locked: Option<BTreeMap<CustomerId, Vec<(ContractRef, Stamps)>>>,
    /// Entries with current rows.
    current: BTreeMap<CustomerId, Vec<Arc<CacheEntry>>>,
    /// Keys whose rows are not current. Their rows are read after the stamps, so they can be remembered with them.
    outdated: BTreeSet<CacheKey>,
}

/// The contracts that a transaction read, by customer, and the entities that bill them.
#[derive(Default)]
pub(super) struct ReadContracts {
    pub(super) contracts: BTreeMap<CustomerId, Vec<Arc<Contract>>>,
    pub(super) entities: Vec<Arc<Entity>>,
}

impl Recalled {
    /// Returns the current rows of a customer and usage product.
    pub(super) fn rows_of(&self, customer: CustomerId, usage_product: &UsageProductRef) -> Option<&CachedRows> {
        let mut rows = self.current.get(&customer)?.iter().filter_map(|entry| entry.rows.as_ref());
        rows.find(|rows| rows.product.usage_product_ref == *usage_product)
    }

    /// Returns the lock with which contracts are to be read.
    pub(super) const fn lock(&self) -> Option<Lock> {
        if self.locked.is_some() { None } else { Some(Lock::Shared) }
    }

    /// Returns whether a contract that was read may be used. A contract that was created after the others were locked is not
    /// locked.
    pub(super) fn may_use(&self, contract: &Contract) -> bool {
        self.locked.as_ref().is_none_or(|locked| {
            let of_customer = locked.get(&contract.customer_id);
            of_customer.is_some_and(|stamps| stamps.iter().any(|(locked, _)| *locked == contract.contract_ref))
        })
    }

    /// Uses an entry whose rows are current.
    fn add_current(&mut self, names: &mut NameLookup, entry: Arc<CacheEntry>) {
        if let Some(rows) = &entry.rows {
            names.add(Arc::clone(&rows.customer), Arc::clone(&rows.product));
            self.current.entry(entry.customer_id).or_default().push(entry);
        }
    }

    /// Returns the documents of the periods in current rows.
    pub(super) fn documents(&self) -> BTreeMap<PeriodKey, &[BookDocument]> {
        let rows = self.current.values().flatten().filter_map(|entry| entry.rows.as_ref());
        rows.flat_map(|rows| &rows.periods).map(|(period, documents)| (*period, &**documents)).collect()
    }
}

/// Returns the key of an event that names its customer and usage product by their references.
fn key_of(organization: OrganizationId, event: &NewUsageEvent) -> Option<CacheKey> {
    match (&event.customer, &event.usage_product) {
        (NamedCustomer::Ref(customer), NamedUsageProduct::Ref(usage_product)) => {
            Some(CacheKey { organization, customer: customer.clone(), usage_product: usage_product.clone() })
        }
        _ => None,
    }
}

/// Looks up the customers and usage products of all events, in the cache or in the database. If an event is in the cache,
/// this locks the contracts of all events shared, to compare their stamps. Contracts whose stamps were read in the same
/// generation need neither.
pub(super) fn recall(
    cx: &mut Cx<'_>,
    shortcuts: Option<&Shortcuts<'_>>,
    events: &[&NewUsageEvent],
) -> UseCaseResult<(NameLookup, Recalled)> {
    let organization = cx.organization;
    let mut names = NameLookup::default();
    let Some(shortcuts) = shortcuts else {
        names.read(cx.tx, organization, events.iter().copied())?;
        return Ok((names, Recalled::default()));
    };
    let keys: Vec<Option<CacheKey>> = events.iter().map(|event| key_of(organization, event)).collect();
    let entries = shortcuts.cache.find(keys.iter().flatten().cloned());
    let is_new = |key: &Option<CacheKey>| !key.as_ref().is_some_and(|key| entries.contains_key(key));
    let new: Vec<&NewUsageEvent> = events.iter().zip(&keys).filter(|(_, key)| is_new(key)).map(|(event, _)| *event).collect();
    names.read(cx.tx, organization, new.iter().copied())?;
    if entries.is_empty() {
        return Ok((names, Recalled::default()));
    }
    let generation = cx.tx.stamp_generation()?;
    let mut recalled = Recalled { generation, ..Recalled::default() };
    let is_confirmed = |entry: &CacheEntry| entry.rows.as_ref().is_some_and(|rows| rows.read_in.is(generation));
    let (confirmed, entries): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(_, entry)| is_confirmed(entry));
    confirmed.into_iter().for_each(|(_, entry)| recalled.add_current(&mut names, entry));
    // One statement locks the contracts of all events, so that all are locked in one order.
    let known = entries.iter().map(|(key, entry)| (entry.customer_id, key.usage_product.clone()));
    let mut pairs: BTreeSet<(CustomerId, UsageProductRef)> = known.collect();
    for event in new {
        if let (Ok(customer), Ok(product)) = (names.customer_of(event), names.product_of(event)) {
            pairs.insert((customer.id, product.usage_product_ref.clone()));
        }
    }
    let mut locked: BTreeMap<CustomerId, Vec<(ContractRef, Stamps)>> = BTreeMap::new();
    for (contract, stamps) in cx.tx.lock_stamps(organization, &Vec::from_iter(pairs))? {
        locked.entry(contract.customer).or_default().push((contract.contract, stamps));
    }
    for (key, entry) in entries {
        match &entry.rows {
            Some(rows) if locked.get(&entry.customer_id).is_some_and(|locked| rows.are_current(locked)) => {
                rows.read_in.set(generation);
                recalled.add_current(&mut names, entry);
            }
            _ => {
                recalled.outdated.insert(key);
            }
        }
    }
    let is_outdated = |key: &Option<CacheKey>| key.as_ref().is_some_and(|key| recalled.outdated.contains(key));
    let outdated = events.iter().zip(&keys).filter(|(_, key)| is_outdated(key)).map(|(event, _)| *event);
    names.read(cx.tx, organization, outdated)?;
    recalled.locked = Some(locked);
    Ok((names, recalled))
}

/// Notes for the cache what this transaction read of events on drafts. An event that is seen for the first time only adds
/// the identifier of its customer, because its rows were read before the stamps.
pub(super) fn learn<'m>(
    shortcuts: &Shortcuts<'_>,
    organization: OrganizationId,
    (names, recalled, read): (&NameLookup, &Recalled, &ReadContracts),
    books: &BTreeMap<ContractRef, ContractBook>,
    matched: impl IntoIterator<Item = (&'m Arc<Customer>, &'m UsageKey)>,
) -> UseCaseResult<()> {
    let mut entities: Option<Arc<[Arc<Entity>]>> = None;
    let mut learned = shortcuts.learned.borrow_mut();
    for (customer, key) in matched {
        let usage_product_ref = &key.usage_product_ref;
        let period: PeriodKey = (key.contract_ref, key.product_no, key.period_start);
        let current = recalled.rows_of(customer.id, usage_product_ref);
        if current.is_some_and(|rows| rows.periods.iter().any(|(known, _)| *known == period)) {
            continue;
        }
        let key = CacheKey { organization, customer: customer.customer_ref.clone(), usage_product: usage_product_ref.clone() };
        let entry = learned.entry(key.clone()).or_insert(CacheEntry { customer_id: customer.id, rows: None });
        if entry.rows.is_none() {
            let stamps = recalled.locked.as_ref().and_then(|locked| locked.get(&customer.id));
            entry.rows = match (current, stamps) {
                (Some(current), _) => Some(current.clone()),
                (None, Some(stamps)) if recalled.outdated.contains(&key) => {
                    let entities = entities.get_or_insert_with(|| read.entities.as_slice().into());
                    names.shared(&key).map(|(shared_customer, product)| CachedRows {
                        read_in: LastGeneration::of(recalled.generation),
                        stamps: stamps.clone(),
                        customer: shared_customer,
                        product,
                        contracts: read.contracts.get(&customer.id).cloned().unwrap_or_default(),
                        entities: Arc::clone(entities),
                        periods: Vec::new(),
                    })
                }
                (None, _) => None,
            };
        }
        if let (Some(rows), Some(book)) = (&mut entry.rows, books.get(&period.0))
            && !rows.periods.iter().any(|(known, _)| *known == period)
        {
            rows.add_period(period, documents_of(book, period)?);
        }
    }
    Ok(())
}

/// Drops what the cache knows about the events, and returns the error with which the transaction is rolled back, because an
/// event was about to be recorded on a document that is no draft.
pub(super) fn no_draft_error<'m>(
    shortcuts: Option<&Shortcuts<'_>>,
    organization: OrganizationId,
    events: impl IntoIterator<Item = &'m NewUsageEvent>,
) -> UseCaseError {
    let Some(shortcuts) = shortcuts else {
        return UseCaseError::InvariantViolation("usage on a document that is no draft");
    };
    tracing::error!("a cached draft is no draft: the events are recorded without the cache");
    let keys: Vec<CacheKey> = events.into_iter().filter_map(|event| key_of(organization, event)).collect();
    shortcuts.cache.forget(&keys);
    shortcuts.give_up()
}

/// Returns the documents of a book that carry the usage of a period.
fn documents_of(book: &ContractBook, (contract_ref, product_no, start): PeriodKey) -> UseCaseResult<Arc<[BookDocument]>> {
    let period = book.contract.period_from(product_no, start);
    let period = period.ok_or_else(|| corrupt("a contract", &contract_ref, "has no such period"))?;
    Ok(slots_of_usage(period).into_iter().filter_map(|slot| book.document_in_slot(slot)).cloned().collect())
}
