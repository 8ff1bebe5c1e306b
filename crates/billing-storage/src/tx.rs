//! A transaction on either database.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use billing_domain::ports::{RollBack, Savepoints, StoreError, StoreResult, Tx};
use diesel::connection::{AnsiTransactionManager, TransactionManager as _};
use diesel::pg::PgConnection;
use diesel::result::Error;
use diesel::sqlite::SqliteConnection;
use uuid::Uuid;

use crate::failure::StatementError;
use crate::held::HeldLocks;
use crate::nodes::shards::ShardRanges;
use crate::ports::SeriesKey;
use crate::stamp_generation::StampWatch;
use crate::terms_cache::TermsCache;

/// The connection of a transaction.
pub(crate) enum Connection<'a> {
    Sqlite(&'a mut SqliteConnection),
    Postgres(&'a mut PgConnection),
}

/// What a process remembers of a database between transactions.
#[derive(Default)]
pub(crate) struct StoreCache {
    terms: TermsCache,
    /// The number of the current epoch plus one, or 0 before it is read.
    epoch: AtomicU64,
}

/// A transaction that implements the ports.
pub(crate) struct Transaction<'a> {
    pub(crate) connection: Connection<'a>,
    /// The first failed statement. It rolls back the transaction even if the work ignores its error. PostgreSQL would
    /// discard all later statements anyway.
    failure: Option<StatementError>,
    /// Whether a contract is locked. A transaction with a lock waits for another contract without a [lock
    /// gate](crate::lock_gate). The transaction that closed the gate may wait for the locked contract.
    pub(crate) holds_contracts: bool,
    /// Whether the connection may still keep lock gates closed, because it failed while waiting behind them.
    pub(crate) leaves_turnstiles: bool,
    /// The locks of the transaction, tracked in debug builds.
    pub(crate) held: HeldLocks,
    /// Contract terms that were read before.
    pub(crate) terms: &'a TermsCache,
    /// The number of the current epoch plus one, as it was read before, or 0.
    pub(crate) epoch: &'a AtomicU64,
    /// Whether statements may take as long as a consumer needs for the rows.
    pub(crate) reads_long: bool,
    /// The prefixes of the number series that the transaction has locked.
    pub(crate) prefixes: BTreeMap<SeriesKey, String>,
    /// Whether customers may be [distributed](crate::nodes::distribute) over nodes. A locking statement then goes to one node.
    pub(crate) is_spread: bool,
    /// The shards of a distributed database.
    shards: Option<Arc<ShardRanges>>,
    /// What the connection knows of stamps.
    pub(crate) stamps: StampWatch,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(connection: Connection<'a>, cache: &'a StoreCache, shards: Option<Arc<ShardRanges>>) -> Self {
        Self {
            connection,
            failure: None,
            holds_contracts: false,
            leaves_turnstiles: false,
            held: HeldLocks::default(),
            terms: &cache.terms,
            epoch: &cache.epoch,
            reads_long: false,
            prefixes: BTreeMap::new(),
            is_spread: shards.is_some(),
            shards,
            stamps: StampWatch::default(),
        }
    }

    /// Returns whether the database is a SQLite file in this process.
    pub(crate) const fn is_sqlite(&self) -> bool {
        matches!(self.connection, Connection::Sqlite(_))
    }

    /// Returns the connection if one statement should write many rows. Returns `None` on SQLite, which runs in the same
    /// process.
    pub(crate) fn with_arrays(&mut self) -> Option<&mut PgConnection> {
        match &mut self.connection {
            Connection::Postgres(connection) => Some(connection),
            Connection::Sqlite(_) => None,
        }
    }

    /// Groups items for statements that lock rows or look up others by them. On a distributed database, such a statement goes to
    /// one shard. On other databases there is one group.
    pub(crate) fn by_shard<T>(&self, items: Vec<T>, customer: impl Fn(&T) -> Uuid) -> Vec<Vec<T>> {
        match &self.shards {
            Some(shards) => shards.group(items, customer),
            None if items.is_empty() => Vec::new(),
            None => vec![items],
        }
    }

    /// Returns the failure, if any.
    pub(crate) fn into_failure(self) -> Option<StatementError> {
        self.failure
    }

    /// Records a failed statement.
    pub(crate) fn failed(&mut self, table: &'static str, error: &Error) -> StoreError {
        self.remember(StatementError::of(table, error))
    }

    /// Records a failure, so that the transaction is rolled back.
    pub(crate) fn remember(&mut self, failure: StatementError) -> StoreError {
        self.failure.get_or_insert_with(|| failure.clone());
        failure.into()
    }

    /// Rejects a call that violates a rule of the tables.
    pub(crate) fn refuse<T>(&mut self, what: String) -> StoreResult<T> {
        Err(self.remember(StatementError::Corrupt(what)))
    }
}

impl Savepoints for Transaction<'_> {
    fn attempt(&mut self, part: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()> {
        // Inside a transaction, the transaction manager creates, releases and rolls back savepoints.
        with_conn!(self, "savepoint", |conn| AnsiTransactionManager::begin_transaction(conn))?;
        let decision = part(self);
        match (decision, &self.failure) {
            // After a failed statement the whole transaction is rolled back; PostgreSQL would reject further
            // statements.
            (_, Some(failure)) => Err(failure.clone().into()),
            (Ok(()), None) => with_conn!(self, "savepoint", |conn| AnsiTransactionManager::commit_transaction(conn)),
            (Err(RollBack), None) => {
                with_conn!(self, "savepoint", |conn| AnsiTransactionManager::rollback_transaction(conn))
            }
        }
    }
}

/// Runs a query body on the transaction's connection. The body is expanded for each database, so that the compiler
/// checks it against both, and database-specific features of diesel also work.
macro_rules! with_conn {
    ($tx:expr, $table:literal, |$connection:ident| $body:expr) => {{
        let outcome = match &mut $tx.connection {
            $crate::tx::Connection::Sqlite($connection) => {
                #[allow(dead_code, reason = "named by boxed queries alone")]
                type Db = diesel::sqlite::Sqlite;
                #[allow(dead_code, reason = "named by long reads alone")]
                type RowByRow = diesel::connection::DefaultLoadingMode;
                let run = |$connection: &mut diesel::sqlite::SqliteConnection| -> diesel::QueryResult<_> { $body };
                run($connection)
            }
            $crate::tx::Connection::Postgres($connection) => {
                #[allow(dead_code, reason = "named by boxed queries alone")]
                type Db = diesel::pg::Pg;
                #[allow(dead_code, reason = "named by long reads alone")]
                type RowByRow = diesel::pg::PgRowByRowLoadingMode;
                let run = |$connection: &mut diesel::pg::PgConnection| -> diesel::QueryResult<_> { $body };
                run($connection)
            }
        };
        outcome.map_err(|error| $tx.failed($table, &error))
    }};
}
pub(crate) use with_conn;

/// Loads a query's rows and locks them until the transaction ends. SQLite has no row locks, and its only writer already
/// locks every row.
macro_rules! load_held {
    ($tx:expr, $table:literal, $lock:expr, $query:expr) => {{
        let outcome: diesel::QueryResult<Vec<_>> = match (&mut $tx.connection, $lock) {
            ($crate::tx::Connection::Sqlite(connection), _) => $query.load(*connection),
            ($crate::tx::Connection::Postgres(connection), None) => $query.load(*connection),
            ($crate::tx::Connection::Postgres(connection), Some(billing_domain::ports::Lock::Shared)) => {
                $query.for_share().load(*connection)
            }
            ($crate::tx::Connection::Postgres(connection), Some(billing_domain::ports::Lock::Exclusive)) => {
                $query.for_update().load(*connection)
            }
        };
        outcome.map_err(|error| $tx.failed($table, &error))
    }};
}
pub(crate) use load_held;

/// Loads columns of the one contract that a condition names, and locks it as [`load_held`]. If the exclusive lock on
/// the first contract is not free, the transaction closes the customer's [lock gate](crate::lock_gate) before it waits.
macro_rules! load_contract {
    ($tx:expr, $lock:expr, $contract:expr, $columns:expr) => {{
        let is_first = !$tx.holds_contracts;
        $tx.holds_contracts |= $lock.is_some();
        let at_once: diesel::QueryResult<Option<Vec<_>>> = match (&mut $tx.connection, $lock) {
            ($crate::tx::Connection::Postgres(connection), Some(billing_domain::ports::Lock::Exclusive)) if is_first => {
                $contract.select($columns).for_update().skip_locked().load(*connection).and_then(|got| {
                    if !got.is_empty() {
                        return Ok(Some(got));
                    }
                    let customer = $contract.select($crate::schema::contracts::customer_id).first(*connection).optional()?;
                    let Some(customer) = customer else { return Ok(Some(got)) };
                    $crate::lock_gate::close(connection, customer, $tx.is_spread).map(|()| None)
                })
            }
            _ => Ok(None),
        };
        match at_once {
            Ok(Some(got)) => Ok(got),
            Ok(None) => $crate::tx::load_held!($tx, "contracts", $lock, $contract.select($columns)),
            Err(error) => Err($tx.failed("contracts", &error)),
        }
    }};
}
pub(crate) use load_contract;
