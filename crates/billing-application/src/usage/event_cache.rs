//! A cache of what the usage writer reads for each event although it rarely changes: the customer, the usage product, the
//! contracts with their terms and entities, and the drafts of the latest periods.
//!
//! Each entry has the [stamps](Stamps) with which it was read. A transaction uses an entry only after it has locked the
//! contracts of the entry and read the same stamps. Therefore the cache needs no invalidation, and several servers need no
//! communication. A store with a single writer knows the [generation](StampGeneration) of all stamps. There, a transaction does
//! not read the stamps of an entry again in the generation in which they were last read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use billing_domain::calendar::Date;
use billing_domain::catalog::{Tier, UsagePrice, UsageProduct};
use billing_domain::contract::terms::{ProductTerms, SelectedLineItem};
use billing_domain::contract::{Contract, ContractProduct};
use billing_domain::document::BookDocument;
use billing_domain::labels::Where;
use billing_domain::party::{Customer, Entity};
use billing_domain::ports::{StampGeneration, Stamps};
use billing_domain::refs::{ContractRef, CustomerId, CustomerRef, OrganizationId, ProductNo, UsageProductRef};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

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

/// The generation in which stamps were last read, or 0. Transactions set it in rows that the cache shares.
#[derive(Default)]
pub(super) struct LastGeneration(AtomicU64);

impl LastGeneration {
    pub(super) fn of(generation: Option<StampGeneration>) -> Self {
        Self(AtomicU64::new(Self::number(generation)))
    }

    /// Returns whether the stamps were last read in this generation.
    pub(super) fn is(&self, generation: Option<StampGeneration>) -> bool {
        generation.is_some() && self.0.load(Ordering::Relaxed) == Self::number(generation)
    }

    /// Records that the stamps were read in this generation.
    pub(super) fn set(&self, generation: Option<StampGeneration>) {
        self.0.store(Self::number(generation), Ordering::Relaxed);
    }

    fn number(generation: Option<StampGeneration>) -> u64 {
        generation.map_or(0, |StampGeneration(number)| number.get())
    }
}

impl Clone for LastGeneration {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

/// Rows that are current if the contracts of the customer have these stamps and no others.
#[derive(Clone)]
pub(super) struct CachedRows {
    pub(super) read_in: LastGeneration,
    /// In the order of their references. May include contracts that meter only other usage products.
    pub(super) stamps: Vec<(ContractRef, Stamps)>,
    pub(super) customer: Arc<Customer>,
    pub(super) product: Arc<UsageProduct>,
    /// The contracts that meter the usage product.
    pub(super) contracts: Vec<Arc<Contract>>,
    /// The entities that bill the contracts, possibly with others.
    pub(super) entities: Arc<[Arc<Entity>]>,
    /// The documents that carry the usage of periods, the latest periods last.
    pub(super) periods: Vec<(PeriodKey, Arc<[BookDocument]>)>,
}

impl CachedRows {
    /// Returns whether the stamps that were read are those of the rows. A contract that is not among those of the rows may be new
    /// and bill the events. One that is missing meters only other usage products, unless the rows have it.
    pub(super) fn are_current(&self, read: &[(ContractRef, Stamps)]) -> bool {
        let is_read = |contract: &Arc<Contract>| read.iter().any(|(contract_ref, _)| *contract_ref == contract.contract_ref);
        read.iter().all(|stamps| self.stamps.contains(stamps)) && self.contracts.iter().all(is_read)
    }

    /// Adds the documents of a period, and forgets the one that was added first if there are too many.
    pub(super) fn add_period(&mut self, period: PeriodKey, documents: Arc<[BookDocument]>) {
        self.periods.retain(|(known, _)| *known != period);
        if self.periods.len() >= MAX_PERIODS {
            self.periods.remove(0);
        }
        self.periods.push((period, documents));
    }
}

/// A cache with a bound of its memory. Entries that are not used for long are dropped.
pub(super) struct EventCache(Option<Cache<CacheKey, WeighedEntry, ByBytes>>);

/// An entry with its weight when it was added. Later, other contracts can share its line items, and a weight must not change.
#[derive(Clone)]
struct WeighedEntry {
    entry: Arc<CacheEntry>,
    bytes: u64,
}

/// The typical memory of an entry in bytes: a contract with a few line items, its parties and a draft.
const TYPICAL_BYTES: u64 = 5 * 1024;
/// The memory of an entry besides its contracts and documents: key, customer, usage product and entities.
const ENTRY_BYTES: usize = 2 * 1024;
/// The memory of the texts of a line item, and of a text in a condition.
const TEXT_BYTES: usize = 64;

impl EventCache {
    /// Creates a cache of at most about `bytes`. A cache of zero bytes stays empty.
    pub(super) fn new(bytes: usize) -> Self {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let typical = usize::try_from(bytes / TYPICAL_BYTES).unwrap_or(usize::MAX).max(1);
        Self((bytes > 0).then(|| Cache::with_weighter(typical, bytes, ByBytes)))
    }

    /// Returns the known entries among these keys.
    pub(super) fn find(&self, keys: impl IntoIterator<Item = CacheKey>) -> BTreeMap<CacheKey, Arc<CacheEntry>> {
        let Some(entries) = &self.0 else { return BTreeMap::new() };
        keys.into_iter().filter_map(|key| entries.get(&key).map(|weighed| (key, weighed.entry))).collect()
    }

    /// Adds or replaces entries. The transaction that read them must be committed.
    pub(super) fn keep(&self, learned: BTreeMap<CacheKey, CacheEntry>) {
        let Some(entries) = &self.0 else { return };
        for (key, entry) in learned {
            let bytes = entry.bytes();
            entries.insert(key, WeighedEntry { entry: Arc::new(entry), bytes });
        }
    }

    /// Drops entries.
    pub(super) fn forget<'k>(&self, keys: impl IntoIterator<Item = &'k CacheKey>) {
        let Some(entries) = &self.0 else { return };
        for key in keys {
            entries.remove(key);
        }
    }
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<CacheKey, WeighedEntry> for ByBytes {
    fn weight(&self, _: &CacheKey, weighed: &WeighedEntry) -> u64 {
        weighed.bytes
    }
}

impl CacheEntry {
    /// Returns the approximate memory of the entry in bytes.
    fn bytes(&self) -> u64 {
        let of_rows = self.rows.as_ref().map_or(0, |rows| {
            let documents: usize = rows.periods.iter().map(|(_, documents)| documents.len()).sum();
            let contracts: usize = rows.contracts.iter().map(|contract| contract_bytes(contract)).sum();
            contracts + documents * size_of::<BookDocument>()
        });
        u64::try_from(ENTRY_BYTES + of_rows).unwrap_or(u64::MAX)
    }
}

/// Returns the approximate memory of a contract in bytes: nearly all of it is that of its terms.
fn contract_bytes(contract: &Contract) -> usize {
    let terms = contract.products.iter().flat_map(ContractProduct::terms);
    // Each of the contracts that share line items counts its part.
    let of_line_items = |terms: &ProductTerms| {
        terms.line_items.iter().map(line_item_bytes).sum::<usize>() / Arc::strong_count(&terms.line_items).max(1)
    };
    let of_terms = terms.map(|terms| size_of::<ProductTerms>() + of_line_items(terms));
    size_of::<Contract>() + of_terms.sum::<usize>()
}

fn line_item_bytes(item: &SelectedLineItem) -> usize {
    let of_usage = item.metered().map_or(0, |metered| {
        let condition = metered.charge.selector.condition().into_iter().flat_map(Where::entries);
        let values: usize = condition.map(|(_, values)| 1 + values.len()).sum();
        let tiers = match &metered.charge.price {
            UsagePrice::Graduated(tiers) | UsagePrice::Volume(tiers) => tiers.as_slice().len(),
            UsagePrice::PerUnit { .. } | UsagePrice::Package { .. } | UsagePrice::Percentage { .. } => 0,
        };
        values * TEXT_BYTES + tiers * size_of::<Tier>()
    });
    size_of::<SelectedLineItem>() + TEXT_BYTES + of_usage
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use billing_domain::refs::OrganizationId;
    use billing_testkit::{FreshIds, fixtures};

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

    fn known(cache: &EventCache, keys: std::ops::Range<usize>) -> usize {
        keys.filter(|n| !cache.find([key(*n)]).is_empty()).count()
    }

    #[test]
    fn line_items_that_others_share_later_do_not_change_the_weight_of_an_entry() {
        let ids = FreshIds;
        let pricing = fixtures::pricing("api", vec![fixtures::per_unit("calls", "0.10")]);
        let customer = fixtures::customer(&ids, "acme");
        let contract = fixtures::contract(&ids, &customer, vec![fixtures::agreed(&pricing, "2026-01-01", "2026-12-31")]);
        let rows = CachedRows {
            read_in: LastGeneration::default(),
            stamps: Vec::new(),
            customer: Arc::new(customer),
            product: Arc::new(fixtures::usage_product("calls")),
            contracts: vec![Arc::new(contract.clone())],
            entities: Arc::new([]),
            periods: Vec::new(),
        };
        let cache = EventCache::new(1_000 * ENTRY_BYTES);
        cache.keep(BTreeMap::from([(key(0), CacheEntry { rows: Some(rows), ..entry() })]));
        let weight = || cache.0.as_ref().expect("a cache").weight();
        let before = weight();
        let shared: Vec<Contract> = vec![contract; 50];
        cache.forget(&[key(0)]);
        assert!(before > 0 && weight() == 0, "{before}, {}", weight());
        drop(shared);
    }

    #[test]
    fn rows_stay_current_when_other_contracts_of_the_customer_are_not_asked_for() {
        let ids = FreshIds;
        let pricing = fixtures::pricing("api", vec![fixtures::per_unit("calls", "0.10")]);
        let customer = fixtures::customer(&ids, "acme");
        let [metering, other, new] =
            [(); 3].map(|()| fixtures::contract(&ids, &customer, vec![fixtures::agreed(&pricing, "2026-01-01", "2026-12-31")]));
        let stamped = |contract: &Contract, stamp: u128| {
            let stamp = uuid::Uuid::from_u128(stamp);
            (contract.contract_ref, Stamps { contract: stamp, customer: stamp, catalog: stamp })
        };
        let rows = CachedRows {
            read_in: LastGeneration::default(),
            stamps: vec![stamped(&metering, 1), stamped(&other, 1)],
            customer: Arc::new(customer),
            product: Arc::new(fixtures::usage_product("calls")),
            contracts: vec![Arc::new(metering.clone())],
            entities: Arc::new([]),
            periods: Vec::new(),
        };
        for (read, is_current) in [
            (vec![stamped(&metering, 1), stamped(&other, 1)], true),
            (vec![stamped(&metering, 1)], true),
            (vec![stamped(&metering, 2)], false),
            (vec![stamped(&metering, 1), stamped(&other, 2)], false),
            (vec![stamped(&metering, 1), stamped(&new, 1)], false),
            (vec![stamped(&other, 1)], false),
            (vec![], false),
        ] {
            assert_eq!(rows.are_current(&read), is_current, "{read:?}");
        }
    }

    #[test]
    fn stamps_are_not_read_again_in_the_generation_in_which_they_were_last_read() {
        let [one, other] = [1, 2].map(|number| NonZeroU64::new(number).map(StampGeneration));
        let read_in = LastGeneration::of(one);
        assert_eq!([one, other, None].map(|generation| read_in.is(generation)), [true, false, false]);
        read_in.set(other);
        assert_eq!([one, other, None].map(|generation| read_in.is(generation)), [false, true, false]);
        for unknown in [LastGeneration::of(None), LastGeneration::default()] {
            assert_eq!([one, other, None].map(|generation| unknown.is(generation)), [false; 3]);
        }
    }

    #[test]
    fn a_cache_has_at_most_as_many_entries_as_fit() {
        for (bytes, least, most) in [(0, 0, 0), (1, 0, 0), (20 * ENTRY_BYTES, 1, 20), (2_000 * ENTRY_BYTES, 100, 100)] {
            let cache = EventCache::new(bytes);
            (0..100).for_each(|n| cache.keep(BTreeMap::from([(key(n), entry())])));
            let known = known(&cache, 0..100);
            assert!((least..=most).contains(&known), "{bytes}: {known}");
            cache.forget(&[key(99)]);
            assert_eq!(self::known(&cache, 99..100), 0, "{bytes}");
        }
    }
}
