//! A cache of what the usage writer reads for each event although it rarely changes: the customer, the usage product, the
//! contracts with their terms and entities, and the drafts of the latest periods.
//!
//! Each entry has the [stamps](Stamps) with which it was read. A transaction uses an entry only after it has locked the
//! contracts of the entry and read the same stamps. Therefore the cache needs no invalidation, and several servers need no
//! communication.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use billing_domain::calendar::Date;
use billing_domain::catalog::UsageProduct;
use billing_domain::contract::Contract;
use billing_domain::document::BookDocument;
use billing_domain::party::{Customer, Entity};
use billing_domain::ports::Stamps;
use billing_domain::refs::{ContractRef, CustomerId, CustomerRef, OrganizationId, ProductNo, UsageProductRef};

/// The maximum number of periods of an entry. Nearly all events are of the current period or the one before.
const MAX_PERIODS: usize = 4;

/// A customer and usage product as events name them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CacheKey {
    pub(super) organization: OrganizationId,
    pub(super) customer: CustomerRef,
    pub(super) usage_product: UsageProductRef,
}

/// A product of a contract and the first day of its service period.
pub(super) type PeriodKey = (ContractRef, ProductNo, Date);

/// What is known about a customer and usage product.
#[derive(Clone)]
pub(super) struct CacheEntry {
    /// The customer, whose identifier never changes.
    pub(super) customer_id: CustomerId,
    /// `None` until the rows were read after the stamps.
    pub(super) rows: Option<CachedRows>,
}

/// Rows that are current if the contracts of the customer have these stamps and no others.
#[derive(Clone)]
pub(super) struct CachedRows {
    /// In the order of their references. May include contracts that meter only other usage products.
    pub(super) stamps: Vec<(ContractRef, Stamps)>,
    pub(super) customer: Arc<Customer>,
    pub(super) product: Arc<UsageProduct>,
    /// The contracts that meter the usage product.
    pub(super) contracts: Vec<Arc<Contract>>,
    /// The entities that bill the contracts, possibly with others.
    pub(super) entities: Arc<[Entity]>,
    /// The documents that carry the usage of periods, the latest periods last.
    pub(super) periods: Vec<(PeriodKey, Arc<[BookDocument]>)>,
}

impl CachedRows {
    /// Adds the documents of a period, and forgets the one that was added first if there are too many.
    pub(super) fn add_period(&mut self, period: PeriodKey, documents: Arc<[BookDocument]>) {
        self.periods.retain(|(known, _)| *known != period);
        if self.periods.len() >= MAX_PERIODS {
            self.periods.remove(0);
        }
        self.periods.push((period, documents));
    }
}

/// A bounded cache. Entries that are not used for long are dropped.
pub(super) struct EventCache {
    size: usize,
    entries: Mutex<Generations>,
}

/// Entries that were used since the last exchange of the generations, and those that were used before.
#[derive(Default)]
struct Generations {
    young: HashMap<CacheKey, Arc<CacheEntry>>,
    old: HashMap<CacheKey, Arc<CacheEntry>>,
}

impl EventCache {
    /// Creates a cache of at most `size` entries. A cache of zero entries stays empty.
    pub(super) fn new(size: usize) -> Self {
        Self { size, entries: Mutex::default() }
    }

    /// Returns the known entries among these keys.
    pub(super) fn find(&self, keys: impl IntoIterator<Item = CacheKey>) -> BTreeMap<CacheKey, Arc<CacheEntry>> {
        if self.size == 0 {
            return BTreeMap::new();
        }
        let mut entries = self.locked();
        let mut found = BTreeMap::new();
        for key in keys {
            if let Some(entry) = entries.young.get(&key) {
                found.insert(key, Arc::clone(entry));
            } else if let Some(entry) = entries.old.remove(&key) {
                entries.put(self.size, key.clone(), Arc::clone(&entry));
                found.insert(key, entry);
            }
        }
        found
    }

    /// Adds or replaces entries. The transaction that read them must be committed.
    pub(super) fn keep(&self, learned: BTreeMap<CacheKey, CacheEntry>) {
        if self.size == 0 || learned.is_empty() {
            return;
        }
        let mut entries = self.locked();
        for (key, entry) in learned {
            entries.old.remove(&key);
            entries.put(self.size, key, Arc::new(entry));
        }
    }

    /// Drops entries.
    pub(super) fn forget<'k>(&self, keys: impl IntoIterator<Item = &'k CacheKey>) {
        let mut entries = self.locked();
        for key in keys {
            entries.young.remove(key);
            entries.old.remove(key);
        }
    }

    /// Ignores poisoning, because no code panics while it has this lock.
    fn locked(&self) -> MutexGuard<'_, Generations> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    /// Adds an entry to the young generation. A full young generation becomes the old one.
    fn put(&mut self, size: usize, key: CacheKey, entry: Arc<CacheEntry>) {
        let most = (size / 2).max(1);
        if self.young.len() >= most && !self.young.contains_key(&key) {
            self.old = mem::take(&mut self.young);
            if size == 1 {
                self.old.clear();
            }
        }
        self.young.insert(key, entry);
    }
}

#[cfg(test)]
mod tests {
    use billing_domain::refs::OrganizationId;

    use super::*;

    fn key(n: usize) -> CacheKey {
        CacheKey {
            organization: OrganizationId::from_uuid(uuid::Uuid::nil()),
            customer: CustomerRef::parse(&format!("c{n}")).expect("a reference"),
            usage_product: UsageProductRef::parse("calls").expect("a reference"),
        }
    }

    fn entry() -> CacheEntry {
        CacheEntry { customer_id: CustomerId::from_uuid(uuid::Uuid::nil()), rows: None }
    }

    fn known(cache: &EventCache, keys: std::ops::Range<usize>) -> Vec<usize> {
        keys.filter(|n| !cache.find([key(*n)]).is_empty()).collect()
    }

    #[test]
    fn a_cache_has_at_most_as_many_entries_as_its_size() {
        for (size, most) in [(0, 0), (1, 1), (2, 2), (10, 10), (1_000, 100)] {
            let cache = EventCache::new(size);
            for n in 0..100 {
                cache.keep(BTreeMap::from([(key(n), entry())]));
                let entries = cache.locked();
                assert!(entries.young.len() + entries.old.len() <= most, "{size}");
            }
            let last = known(&cache, 99..100);
            assert_eq!(last.is_empty(), size == 0, "{size}: the last entry is there");
        }
    }

    #[test]
    fn entries_that_are_used_stay() {
        let cache = EventCache::new(10);
        for n in 0..100 {
            cache.keep(BTreeMap::from([(key(n), entry())]));
            assert_eq!(known(&cache, 0..1), [0], "{n}");
        }
        cache.forget(&[key(0)]);
        assert!(known(&cache, 0..1).is_empty());
    }
}
