//! A cache of contract terms. Reading the terms would take longer than all other work for an event on a draft, and they
//! change only when the contract is edited.

use std::sync::Arc;

use billing_domain::contract::ContractProduct;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use uuid::Uuid;

/// The approximate maximum size in bytes.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// The approximate memory use of terms, their line items and an entry.
const FOR_TERMS: usize = 1024;
const FOR_A_LINE_ITEM: usize = 768;
const FOR_ITSELF: usize = 256;
/// The number of typical contracts that fit into the cache.
const CONTRACTS: usize = 10_000;

/// The newest terms of contracts by `contracts.terms_id`, which differs for each version of a contract. Entries are
/// therefore never stale, even if other servers change contracts. Terms read in a rolled-back transaction are never
/// requested again.
pub(crate) struct TermsCache {
    kept: Cache<Uuid, CacheEntries, ByBytes>,
}

#[derive(Clone)]
struct CacheEntries {
    products: Arc<[ContractProduct]>,
    bytes: u64,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<Uuid, CacheEntries> for ByBytes {
    fn weight(&self, _: &Uuid, kept: &CacheEntries) -> u64 {
        kept.bytes
    }
}

impl Default for TermsCache {
    fn default() -> Self {
        Self { kept: Cache::with_weighter(CONTRACTS, MAX_BYTES, ByBytes) }
    }
}

impl TermsCache {
    /// Returns the products of a contract with these terms, if they are cached.
    pub(crate) fn get(&self, terms_id: Uuid) -> Option<Arc<[ContractProduct]>> {
        self.kept.get(&terms_id).map(|kept| kept.products)
    }

    /// Caches the terms. Each of the contracts that share line items counts its part of their memory.
    pub(crate) fn keep(&self, terms_id: Uuid, products: &[ContractProduct]) {
        let of_terms = products
            .iter()
            .flat_map(ContractProduct::terms)
            .map(|terms| FOR_TERMS + terms.line_items.len() * FOR_A_LINE_ITEM / Arc::strong_count(&terms.line_items).max(1));
        let bytes = u64::try_from(FOR_ITSELF + of_terms.sum::<usize>()).unwrap_or(MAX_BYTES);
        self.kept.insert(terms_id, CacheEntries { products: products.into(), bytes });
    }
}
