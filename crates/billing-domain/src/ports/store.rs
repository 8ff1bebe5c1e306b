//! The store: small ports over one transaction.
//!
//! Duties that hold for all of them:
//! - a read sees everything committed before its transaction began and everything its own transaction wrote;
//! - what belongs to another organization is not there;
//! - lists have a total order that doesn't change while rows are added: by creation, then by reference;
//! - an insert that meets an existing row changes nothing and says so; it doesn't end the transaction.
//!
//! Customers may be spread over nodes. What a caller names by its reference alone is looked for on all of them, once: everything
//! after that names the customer.

use thiserror::Error;

use super::{
    Accounts, Administrators, ApiKeys, AuditLog, Balances, BankAccounts, BillingRuns, BookReader, BookWriter, Charges, Contracts,
    Customers, DocumentFiles, Documents, DueContracts, Entities, EventChanges, EventKeys, ExchangeRates, IdempotencyStore,
    IntegrityQueries, ListQueries, NumberSeries, Organizations, Payments, Pricings, RefusedUsage, RunningTotals, Sessions,
    SigningSecrets, Tokens, UsageEvents, UsageFormats, UsageImports, UsageProducts, UsageQueries,
};

/// What can go wrong in a store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// It can't be reached, has no room, or took too long.
    #[error("the store is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Others were faster, again and again.
    #[error("the store is contended")]
    Contended,
    /// A row says something that can't be.
    #[error("the store holds a row that can't be: {0}")]
    Corrupt(String),
}

/// What a port answers.
pub type StoreResult<T> = Result<T, StoreError>;

/// Whether an insert found its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Insertion {
    /// The row is there now.
    Done,
    /// Another row has this field's value; nothing was changed.
    Taken(&'static str),
}

/// Whether an update found its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Update {
    /// The row is changed.
    Done,
    /// There is no such row.
    Unknown,
    /// Another row has this field's value; nothing was changed.
    Taken(&'static str),
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// One statement that reads, and no more: nothing has to be begun or ended for it.
    Glance,
    /// Reads alone: one consistent view, waits for no writer.
    Read,
    /// Reads and writes.
    Write,
}

/// How strongly a row is held until the transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Others may read and hold it likewise, none may change it.
    Shared,
    /// Nobody else may hold it.
    Exclusive,
}

/// The work wants its transaction undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollBack;

/// What a database takes of the disk it is on, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskUse {
    /// What is stored.
    pub database: u64,
    /// What was written last, and isn't moved to the rest yet.
    pub log: u64,
    /// What the disk has left for this process.
    pub free: u64,
}

/// Runs transactions.
pub trait Store: Send + Sync {
    /// Runs work in one transaction and commits it, or rolls it back when the work says so; both are `Ok`.
    /// After `Ok` from a committed [`Access::Write`], the work is durable and the next transaction sees it.
    /// The work may run again, from its beginning, after a conflict with others; the number of times is bounded.
    ///
    /// # Errors
    /// Any [`StoreError`]; nothing of the work is stored then.
    fn run(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()>;

    /// Whether the store can be reached and keeps what it is given.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] with the reason.
    fn ready(&self) -> StoreResult<()>;

    /// What it takes of a disk of this machine; `None` where that is elsewhere, or can't be told now.
    fn disk_use(&self) -> Option<DiskUse> {
        None
    }
}

/// Runs a use case's work in one transaction: an `Err` rolls it back.
///
/// # Errors
/// The work's own, or the store's.
pub fn transact<T, E: From<StoreError>>(
    store: &dyn Store,
    access: Access,
    mut work: impl FnMut(&mut dyn Tx) -> Result<T, E>,
) -> Result<T, E> {
    decided(|work| store.run(access, work), &mut work)
}

/// Runs a part of a transaction's work that can be undone alone: an `Err` undoes what it has written.
///
/// # Errors
/// The part's own, or the store's.
pub fn attempt<T, E: From<StoreError>>(tx: &mut dyn Tx, mut part: impl FnMut(&mut dyn Tx) -> Result<T, E>) -> Result<T, E> {
    decided(|part| tx.attempt(part), &mut part)
}

/// Has work run that is undone where it answers an `Err`, and answers what it answered last.
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

/// Parts of a transaction.
pub trait Savepoints {
    /// Runs a part of the work, once; when it says so, everything it has written is undone, and nothing else. Parts may
    /// have parts. What an undone part held may be let go. Committing the part doesn't make it durable: that is the
    /// transaction's business.
    ///
    /// # Errors
    /// Any [`StoreError`]; the transaction can't be committed then.
    fn attempt(&mut self, part: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()>;
}

/// One transaction's view of everything.
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
    + DueContracts
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
    + BookReader
    + BookWriter
    + NumberSeries
    + IdempotencyStore
    + AuditLog
    + RefusedUsage
    + BillingRuns
    + UsageImports
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
        + DueContracts
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
        + BookReader
        + BookWriter
        + NumberSeries
        + IdempotencyStore
        + AuditLog
        + RefusedUsage
        + BillingRuns
        + UsageImports
        + IntegrityQueries
{
}
