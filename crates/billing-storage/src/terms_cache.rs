//! What contracts agree on, kept in memory: it takes longer to read than all else that an event on a draft asks for, and is the
//! same for as long as nobody edits the contract.

use std::sync::Arc;

use billing_domain::contract::ContractProduct;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use uuid::Uuid;

/// What is kept at most, in bytes, about.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// What terms take in memory for each byte that they are written in, and for themselves, about.
const FOR_A_BYTE: u64 = 3;
const FOR_ITSELF: u64 = 256;
/// Contracts of a usual size that there is room for.
const CONTRACTS: usize = 10_000;

/// The newest terms of contracts by `contracts.terms_id`, which each version of a contract has another of. So what is kept is
/// never out of date, whatever other servers do, and what was read in a transaction that is undone is never asked for again.
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
    /// The products of a contract with these terms, if they were read before.
    pub(crate) fn get(&self, terms_id: Uuid) -> Option<Arc<[ContractProduct]>> {
        self.kept.get(&terms_id).map(|kept| kept.products)
    }

    /// Keeps what was read, which is `written` in so many bytes.
    pub(crate) fn keep(&self, terms_id: Uuid, products: &[ContractProduct], written: usize) {
        let written = u64::try_from(written).unwrap_or(MAX_BYTES);
        let bytes = written.saturating_mul(FOR_A_BYTE).saturating_add(FOR_ITSELF);
        self.kept.insert(terms_id, CacheEntries { products: products.into(), bytes });
    }
}
