//! The reference store: plain collections, one writer, real roll-back. What it does is meant to be seen to be
//! right; the databases are compared with it. It is not fast and keeps nothing.
//!
//! A transaction works on a copy of everything; committing puts the copy in the original's place. It holds
//! callers to their duties, too: writing in a transaction opened to read, and doing what a row has to be held
//! for without holding it, is [`StoreError::Corrupt`] with the reason.

mod access;
mod accounts;
mod audit;
mod books;
mod catalog;
mod charges;
mod contracts;
mod documents;
mod formats;
mod imports;
mod inspection;
mod lists;
mod locks;
mod paper;
mod reading;
mod refused;
mod replay_log;
mod runs;
mod usage;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use billing_domain::access::{AdminSession, Administrator, ApiKey, SigningSecret};
use billing_domain::account::{AccountKey, Payment, WriteOff};
use billing_domain::audit::AuditEntry;
use billing_domain::calendar::{Date, Timestamp};
use billing_domain::catalog::{Pricing, UsageProduct};
use billing_domain::charge::Charge;
use billing_domain::contract::Contract;
use billing_domain::document::files::{DocumentFile, FileForm};
use billing_domain::document::lines::{LedgerLine, Sum, SumKey};
use billing_domain::document::{Document, DocumentKind};
use billing_domain::format::FormatVersion;
use billing_domain::idempotency::{KeptRequest, RequestKey};
use billing_domain::imports::{KeptImport, MadeEvent};
use billing_domain::money::MoneySum;
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::bank::BankAccount;
use billing_domain::party::{Customer, Entity, Organization};
use billing_domain::ports::{Access, RollBack, Savepoints, Store, StoreError, StoreResult, Tx};
use billing_domain::refs::{
    BillingRunRef, ContractKey, ContractRef, CustomerId, DocumentKey, DocumentRef, EntityRef, ImportPartRef, ImportRef,
    OrganizationId,
};
use billing_domain::refused::{RefusedCount, RefusedKey};
use billing_domain::runs::KeptRun;
use billing_domain::tax::ExchangeRate;
use billing_domain::usage::{KeptEvent, UsageEvent, UsageKey, UsageTotal};
use billing_domain::verification::RecordedVerification;
use uuid::Uuid;

use accounts::{KeptApplication, OfAccount};
use locks::Held;

/// A store in memory.
#[derive(Default)]
pub struct MemoryStore {
    committed: RwLock<Arc<State>>,
    writer: Mutex<()>,
    extra_runs: AtomicU32,
    unavailable: AtomicBool,
    forgiving: bool,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store that doesn't check what its callers hold, nor in which order.
    pub fn without_lock_checks() -> Self {
        Self { forgiving: true, ..Self::default() }
    }

    /// From now on runs the work of every write this many times in vain before the time that counts, as a
    /// database does after conflicts.
    pub fn run_in_vain(&self, times: u32) {
        self.extra_runs.store(times, Ordering::Relaxed);
    }

    /// From now on answers [`StoreError::Unavailable`], or works again.
    pub fn set_unavailable(&self, unavailable: bool) {
        self.unavailable.store(unavailable, Ordering::Relaxed);
    }

    /// Another store with the same content, to see what would come of it.
    pub fn fork(&self) -> Self {
        Self { committed: RwLock::new(self.snapshot()), forgiving: self.forgiving, ..Self::default() }
    }

    /// Whether two stores hold the same, to the last row.
    pub fn holds_the_same_as(&self, other: &Self) -> bool {
        let (own, others) = (self.snapshot(), other.snapshot());
        Arc::ptr_eq(&own, &others) || own == others
    }

    fn begin(&self, access: Access) -> MemoryTx {
        let state = State::clone(&self.snapshot());
        MemoryTx { state, held: Held::new(access, self.forgiving) }
    }

    fn snapshot(&self) -> Arc<State> {
        Arc::clone(&self.committed.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Store for MemoryStore {
    fn run(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()> {
        self.ready()?;
        if access != Access::Write {
            let before = self.snapshot();
            let mut tx = self.begin(access);
            // Whether it is committed makes no difference: there is nothing to keep.
            let (Ok(()) | Err(RollBack)) = work(&mut tx);
            return if tx.state == *before { Ok(()) } else { Err(corrupt("a transaction opened to read has written")) };
        }
        // A panic of the work leaves the committed state as it was, so a poisoned lock is a good one.
        let _one_writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..self.extra_runs.load(Ordering::Relaxed) {
            let (Ok(()) | Err(RollBack)) = work(&mut self.begin(access));
        }
        let mut tx = self.begin(access);
        if work(&mut tx) == Ok(()) {
            *self.committed.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tx.state);
        }
        Ok(())
    }

    fn ready(&self) -> StoreResult<()> {
        if self.unavailable.load(Ordering::Relaxed) {
            Err(StoreError::Unavailable("switched off by a test".into()))
        } else {
            Ok(())
        }
    }
}

/// Everything there is. Collections are copied when they are first written to.
#[derive(Clone, Default, PartialEq)]
struct State {
    organizations: Vec<Organization>,
    administrators: Vec<Administrator>,
    api_keys: Vec<ApiKey>,
    sessions: Vec<AdminSession>,
    revoked_tokens: BTreeMap<Uuid, Timestamp>,
    signing_secrets: Vec<SigningSecret>,
    entities: Rows<Entity>,
    customers: Rows<Customer>,
    usage_products: Rows<UsageProduct>,
    pricings: Rows<Pricing>,
    bank_accounts: Rows<BankAccount>,
    exchange_rates: Rows<(Timestamp, ExchangeRate)>,
    formats: Rows<FormatVersion>,
    contracts: Rows<StoredContract>,
    events: Rows<UsageEvent>,
    totals: Arc<BTreeMap<(OrganizationId, CustomerId, UsageKey), UsageTotal>>,
    charges: Rows<Charge>,
    superseded_charges: Rows<Charge>,
    superseded_events: Rows<Superseded>,
    kept_events: Rows<(CustomerId, KeptEvent)>,
    documents: Rows<Document>,
    /// When documents were last opened, issued, put out of force, paid, credited, applied or written off.
    updated: Arc<BTreeMap<DocumentRef, Timestamp>>,
    files: Arc<BTreeMap<(DocumentKey, FileForm), DocumentFile>>,
    ledger: Arc<BTreeMap<DocumentRef, Vec<LedgerLine>>>,
    family_sums: Arc<BTreeMap<(DocumentKey, SumKey), Sum>>,
    accounts: BTreeMap<(OrganizationId, AccountKey), MoneySum>,
    payments: Rows<OfAccount<Payment>>,
    applications: Rows<OfAccount<KeptApplication>>,
    write_offs: Rows<OfAccount<WriteOff>>,
    document_numbers: BTreeMap<(OrganizationId, EntityRef, DocumentKind), u64>,
    contract_numbers: BTreeMap<OrganizationId, u64>,
    numbers_in_contract: BTreeMap<ContractKey, u32>,
    kept_requests: Arc<BTreeMap<(OrganizationId, RequestKey), KeptRequest>>,
    audit_log: Rows<AuditEntry>,
    refused_usage: Arc<BTreeMap<RefusedKey, RefusedCount>>,
    /// When contracts' newest versions were made, of those that were changed.
    versions_made: Arc<BTreeMap<ContractRef, Timestamp>>,
    /// When issued documents were voided, and on which service date.
    voided: Arc<BTreeMap<DocumentRef, (Timestamp, Date)>>,
    billing_runs: Arc<BTreeMap<(OrganizationId, BillingRunRef), KeptRun>>,
    verifications: Arc<BTreeMap<OrganizationId, RecordedVerification>>,
    imports: Arc<BTreeMap<(OrganizationId, ImportRef), KeptImport>>,
    made_events: Arc<BTreeMap<(OrganizationId, ImportRef, ImportPartRef), Vec<MadeEvent>>>,
}

/// A contract, and when it next has something to issue.
#[derive(Clone, PartialEq)]
struct StoredContract {
    contract: Contract,
    next_due_at: Option<Timestamp>,
}

/// A revision that another took the place of.
#[derive(Clone, PartialEq)]
struct Superseded {
    event: UsageEvent,
    /// Whether its document was issued by then.
    billed: bool,
}

/// One transaction: a copy of everything.
struct MemoryTx {
    state: State,
    held: Held,
}

impl Savepoints for MemoryTx {
    fn attempt(&mut self, part: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()> {
        let before = self.state.clone();
        if part(self) == Err(RollBack) {
            self.state = before;
        }
        Ok(())
    }
}

/// Rows that belong to an organization.
#[derive(Clone)]
struct Rows<T>(Arc<Vec<(OrganizationId, T)>>);

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self(Arc::new(Vec::new()))
    }
}

impl<T: PartialEq> PartialEq for Rows<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl<T: Clone> Rows<T> {
    fn of(&self, organization: OrganizationId) -> impl Iterator<Item = &T> {
        self.0.iter().filter(move |(owner, _)| *owner == organization).map(|(_, row)| row)
    }

    fn of_mut(&mut self, organization: OrganizationId) -> impl Iterator<Item = &mut T> {
        Arc::make_mut(&mut self.0).iter_mut().filter(move |(owner, _)| *owner == organization).map(|(_, row)| row)
    }

    fn push(&mut self, organization: OrganizationId, row: T) {
        Arc::make_mut(&mut self.0).push((organization, row));
    }

    fn retain(&mut self, organization: OrganizationId, stays: impl Fn(&T) -> bool) {
        Arc::make_mut(&mut self.0).retain(|(owner, row)| *owner != organization || stays(row));
    }
}

/// A list's order, and of it a page.
fn page<'a, T: Clone + 'a, K: Ord>(rows: impl Iterator<Item = &'a T>, request: PageRequest, key: impl Fn(&T) -> K) -> Page<T> {
    let mut all = sorted(rows, key);
    if request.is_backward() {
        all.reverse();
    }
    let (offset, size) = (usize::try_from(request.offset()), usize::try_from(request.size()));
    let (offset, size) = (offset.unwrap_or(usize::MAX), size.unwrap_or(usize::MAX));
    Page { total: all.len() as u64, items: all.into_iter().skip(offset).take(size).collect() }
}

fn sorted<'a, T: Clone + 'a, K: Ord>(rows: impl Iterator<Item = &'a T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut all: Vec<T> = rows.cloned().collect();
    all.sort_by_key(key);
    all
}

fn corrupt(why: impl Into<String>) -> StoreError {
    StoreError::Corrupt(why.into())
}
