//! The store: small ports over one transaction.
//!
//! These rules apply to all ports:
//! - A read sees everything committed before its transaction began, and all earlier writes of its own transaction.
//! - Objects of other organizations are invisible.
//! - Lists have a total order that is stable while rows are added: by creation, then by reference.
//! - An insert that conflicts with an existing row changes nothing and reports the conflict. The transaction continues.
//!
//! Customers may be distributed over several nodes. A lookup by reference alone queries all nodes once. All later calls
//! name the customer.

use thiserror::Error;

use super::{
    Accounts, Administrators, ApiKeys, AuditLog, Balances, BankAccounts, BillingRuns, BookReader, BookWriter, Charges, Contracts,
    Credits, Customers, DocumentFiles, Documents, DueContracts, Entities, EventChanges, EventKeys, ExchangeRates, Holds,
    IdempotencyStore, IntegrityQueries, Limits, ListQueries, Notifications, NumberSeries, Organizations, Payments, Pricings,
    RefusedUsage, RunningTotals, SandboxClockStore, Sessions, SigningSecrets, Tokens, UsageEvents, UsageFormats, UsageImports,
    UsageProducts, UsageQueries, WebhookDeliveries, WebhookEndpoints,
};
use crate::refs::{CustomerRef, OrganizationId};

/// An error of the store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The store is unreachable, full or too slow.
    #[error("the store is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Concurrent transactions conflicted, and the retries are exhausted.
    #[error("the store is contended")]
    Contended,
    /// The database does not support a statement of this program.
    #[error("the database does not support a statement: {0}")]
    Unsupported(String),
    /// A row contains an invalid value.
    #[error("the store holds a row that can't be: {0}")]
    Corrupt(String),
}

/// The reason of [`StoreError::Unavailable`] after another program replaced or truncated the database. It stays until the
/// process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the database file was replaced or truncated while the server runs: restore a backup with the server stopped")]
pub struct DatabaseReplaced;

/// The reason of [`StoreError::Unavailable`] if only a node of a distributed store cannot be reached. Other customers are served.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the database node {name} cannot be reached: {reason}")]
pub struct NodeUnavailable {
    /// The host and port of the node. Empty if the store does not know which node it is.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// A shard of a distributed store. All rows of a customer are in one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(pub usize);

/// The state of a node of a distributed store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// The host and port of the node.
    pub name: String,
    /// The number of its shards of customers.
    pub shards: usize,
    /// Why the node does not serve its customers. `None` if it does.
    pub problem: Option<String>,
}

/// The result of a port.
pub type StoreResult<T> = Result<T, StoreError>;

/// The result of an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Insertion {
    /// The row is inserted.
    Done,
    /// Another row has the same value of this field. Nothing was changed.
    Taken(&'static str),
}

/// The result of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Update {
    /// The row is updated.
    Done,
    /// The row does not exist.
    Unknown,
    /// Another row has the same value of this field. Nothing was changed.
    Taken(&'static str),
}

/// The access mode of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A single read statement. It needs no explicit transaction.
    Glance,
    /// Read-only access to one consistent view. It never waits for writers.
    Read,
    /// Read and write access.
    Write,
}

/// The strength of a row lock. The lock ends with the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Others may read the row or lock it shared, but not change it.
    Shared,
    /// No other transaction may lock the row.
    Exclusive,
}

/// A request to roll back the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollBack;

/// The disk usage of a database, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskUse {
    /// The size of the database.
    pub database: u64,
    /// The size of the write-ahead log that is not yet moved into the database.
    pub log: u64,
    /// The free disk space available to this process.
    pub free: u64,
}

/// The use of a pool of connections to the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolUse {
    /// The name of the pool, which is the same in every process.
    pub name: String,
    /// The number of connections in use.
    pub in_use: u64,
    /// The number of open connections that are not in use.
    pub idle: u64,
    /// The number of callers that wait for a connection.
    pub waiting: u64,
}

/// The times for which a store made its writers wait while it worked on its own files, since it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterPauses {
    /// The upper bound of each bucket in microseconds, in ascending order, with the number of pauses in it.
    pub buckets: Vec<(u64, u64)>,
    /// The number of pauses above all bounds.
    pub above_all: u64,
    /// The sum of all pauses in microseconds.
    pub micros: u64,
}

/// A runner of transactions.
pub trait Store: Send + Sync {
    /// Runs work in one transaction. Commits it, or rolls it back when the work requests that; both return `Ok`.
    ///
    /// After `Ok` from a committed [`Access::Write`], the work is durable and visible to the next transaction. After a
    /// conflict, the work may run again from the beginning; the number of retries is bounded.
    ///
    /// # Errors
    /// Returns any [`StoreError`]. Nothing of the work is stored in that case.
    fn run(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()>;

    /// Runs work like [`run`](Self::run), on the node of a shard. The work may concern customers of other shards, which takes
    /// longer.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Self::run), with [`NodeUnavailable`] as the reason if the node cannot be reached.
    fn run_at(&self, shard: Shard, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()> {
        let _ = shard;
        self.run(access, work)
    }

    /// Checks that the store is reachable and persists writes.
    ///
    /// # Errors
    /// Returns [`StoreError::Unavailable`] with the reason.
    fn ready(&self) -> StoreResult<()>;

    /// Returns the number of shards. 0 if the store is not distributed.
    fn shard_count(&self) -> usize {
        0
    }

    /// Returns the shard of a customer if the store has it in memory.
    fn known_shard(&self, organization: OrganizationId, customer: &CustomerRef) -> Option<Shard> {
        let _ = (organization, customer);
        None
    }

    /// Returns the shards of customers, in the order of their references. `None` for unknown customers.
    ///
    /// # Errors
    /// Returns any [`StoreError`].
    fn shards_of(&self, organization: OrganizationId, customers: &[CustomerRef]) -> StoreResult<Vec<Option<Shard>>> {
        Ok(customers.iter().map(|customer| self.known_shard(organization, customer)).collect())
    }

    /// Returns the nodes of a distributed store. Returns nothing for other stores.
    fn nodes(&self) -> Vec<NodeState> {
        Vec::new()
    }

    /// Returns the index of the node of a shard, among [`nodes`](Self::nodes).
    fn node_of(&self, shard: Shard) -> usize {
        let _ = shard;
        0
    }

    /// Returns the disk usage on this machine. Returns `None` if the database is on another machine or the usage is
    /// currently unknown.
    fn disk_use(&self) -> Option<DiskUse> {
        None
    }

    /// Returns the use of each pool of connections. Returns nothing if the store has no pools.
    fn pool_use(&self) -> Vec<PoolUse> {
        Vec::new()
    }

    /// Returns the pauses of writers. Returns `None` if the store never makes writers wait for work on its files.
    fn writer_pauses(&self) -> Option<WriterPauses> {
        None
    }
}

#[cfg(feature = "mocks")]
mockall::mock! {
    /// A mock of a store that is not distributed. It runs one transaction at a time.
    pub Store {}

    impl Store for Store {
        fn run(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()>;
        fn ready(&self) -> StoreResult<()>;
    }
}

/// Runs the work of a use case in one transaction. An `Err` rolls it back.
///
/// # Errors
/// Returns the error of the work or of the store.
pub fn transact<T, E: From<StoreError>>(
    store: &dyn Store,
    access: Access,
    mut work: impl FnMut(&mut dyn Tx) -> Result<T, E>,
) -> Result<T, E> {
    decided(|work| store.run(access, work), &mut work)
}

/// Runs work like [`transact`], on the node of a shard.
///
/// # Errors
/// Returns the error of the work or of the store.
pub fn transact_at<T, E: From<StoreError>>(
    store: &dyn Store,
    shard: Option<Shard>,
    access: Access,
    mut work: impl FnMut(&mut dyn Tx) -> Result<T, E>,
) -> Result<T, E> {
    match shard {
        Some(shard) => decided(|work| store.run_at(shard, access, work), &mut work),
        None => decided(|work| store.run(access, work), &mut work),
    }
}

/// Runs a part of a transaction that can be rolled back alone. An `Err` rolls back its writes.
///
/// # Errors
/// Returns the error of the part or of the store.
pub fn attempt<T, E: From<StoreError>>(tx: &mut dyn Tx, mut part: impl FnMut(&mut dyn Tx) -> Result<T, E>) -> Result<T, E> {
    decided(|part| tx.attempt(part), &mut part)
}

/// Runs work that is rolled back on `Err`. Returns the result of its last run.
fn decided<T, E: From<StoreError>>(
    run: impl FnOnce(&mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()>,
    work: &mut dyn FnMut(&mut dyn Tx) -> Result<T, E>,
) -> Result<T, E> {
    let mut outcome = None;
    run(&mut |tx| {
        let result = work(tx);
        let decision = if result.is_ok() { Ok(()) } else { Err(RollBack) };
        outcome = Some(result);
        decision
    })?;
    outcome.unwrap_or_else(|| Err(StoreError::Contended.into()))
}

/// Nested parts of a transaction.
pub trait Savepoints {
    /// Runs a part of the work once. A [`RollBack`] undoes the writes of this part only. Parts can be nested.
    ///
    /// Locks of a rolled-back part may be released. Committing the part does not make it durable; only the commit of the
    /// transaction does.
    ///
    /// # Errors
    /// Returns any [`StoreError`]. The transaction cannot be committed in that case.
    fn attempt(&mut self, part: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()>;
}

/// One transaction with all ports of the store.
pub trait Tx:
    Send
    + Savepoints
    + Organizations
    + Administrators
    + ApiKeys
    + Sessions
    + Tokens
    + SigningSecrets
    + Entities
    + Customers
    + UsageProducts
    + UsageFormats
    + Pricings
    + BankAccounts
    + ExchangeRates
    + Charges
    + Contracts
    + Credits
    + DueContracts
    + SandboxClockStore
    + UsageEvents
    + EventChanges
    + RunningTotals
    + EventKeys
    + UsageQueries
    + Documents
    + DocumentFiles
    + ListQueries
    + Accounts
    + Payments
    + Balances
    + Holds
    + Limits
    + BookReader
    + BookWriter
    + NumberSeries
    + IdempotencyStore
    + AuditLog
    + Notifications
    + RefusedUsage
    + BillingRuns
    + UsageImports
    + WebhookEndpoints
    + WebhookDeliveries
    + IntegrityQueries
{
}

impl<T> Tx for T where
    T: Send
        + Savepoints
        + Organizations
        + Administrators
        + ApiKeys
        + Sessions
        + Tokens
        + SigningSecrets
        + Entities
        + Customers
        + UsageProducts
        + UsageFormats
        + Pricings
        + BankAccounts
        + ExchangeRates
        + Charges
        + Contracts
        + Credits
        + DueContracts
        + SandboxClockStore
        + UsageEvents
        + EventChanges
        + RunningTotals
        + EventKeys
        + UsageQueries
        + Documents
        + DocumentFiles
        + ListQueries
        + Accounts
        + Payments
        + Balances
        + Holds
        + Limits
        + BookReader
        + BookWriter
        + NumberSeries
        + IdempotencyStore
        + AuditLog
        + Notifications
        + RefusedUsage
        + BillingRuns
        + UsageImports
        + WebhookEndpoints
        + WebhookDeliveries
        + IntegrityQueries
{
}
