//! The store: pools, transactions, and what happens when one meets others.

use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use billing_domain::ports::{Access, DiskUse, RollBack, Store, StoreError, StoreResult, Tx};
use diesel::QueryResult;
use diesel::connection::{AnsiTransactionManager, Connection as DieselConnection, TransactionManager as _};
use r2d2::{ManageConnection, Pool};
use thiserror::Error;

use crate::checkpoint::{self, Checkpoints};
use crate::connect::{
    ConnectError, Link, PgManager, PgPool, Pooled, SqliteManager, SqlitePool, check_pragmas, check_settings, pool,
};
use crate::database_file::{DatabaseFile, beside};
use crate::distribute::lacks;
use crate::failure::{StatementError, unavailable};
use crate::schema_version::{check_postgres, check_sqlite};
use crate::terms_cache::TermsCache;
use crate::tx::{Connection, Transaction};
use crate::url::DatabaseUrl;

/// How often a transaction is tried before it is [`StoreError::Contended`].
const MAX_ATTEMPTS: u32 = 8;
/// The wait before the second attempt is at most this; it doubles with every other.
const FIRST_PAUSE: Duration = Duration::from_millis(4);

/// How long closing waits for the transactions of others, in all.
const CLOSING_WAIT: Duration = Duration::from_secs(1);
/// The least that is left of it for those that read.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// How a database is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseOptions {
    /// The most connections at once: to a PostgreSQL server, or that read a SQLite file (one more writes it).
    pub connections: u32,
    /// How long a transaction waits for a free connection, on SQLite for another process's lock, and in all for
    /// others that it meets again and again.
    pub wait: Duration,
    /// Whether it is opened to serve. A SQLite file has one server at a time, for as long as its [`Database`] lives; others
    /// may be at work on the file beside it.
    pub to_serve: bool,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self { connections: 8, wait: Duration::from_secs(5), to_serve: false }
    }
}

/// Why a database can't be opened.
#[derive(Debug, Error)]
#[error("the database {url} can't be opened: {reason}")]
pub struct OpenError {
    url: DatabaseUrl,
    reason: String,
}

/// A database that keeps everything the ports are given.
pub struct Database {
    pub(crate) pools: Pools,
    pub(crate) terms: TermsCache,
    /// After this long, a transaction that met others isn't tried again.
    patience: Duration,
}

pub(crate) enum Pools {
    /// One connection writes: SQLite has one writer anyway, and several only wait for each other without order.
    Sqlite {
        writer: SqlitePool,
        readers: SqlitePool,
        checkpoints: Checkpoints,
        /// For who reads the file as a whole.
        manager: SqliteManager,
        file: DatabaseFile,
        /// Held by the one that serves.
        _turn: Option<File>,
    },
    Postgres(PgPool),
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.pools {
            Pools::Sqlite { .. } => "Database(SQLite)",
            Pools::Postgres(_) => "Database(PostgreSQL)",
        })
    }
}

impl Database {
    /// Opens a database. A SQLite file, and the directory it is in, are made where they are missing, the file for its owner
    /// alone; tables are not: that is [`migrate`](Self::migrate).
    ///
    /// # Errors
    /// [`OpenError`] when no connection can be made, when the database doesn't keep what it is given, when another program, a newer
    /// release or a development version created it, or when another server has the file that is opened to serve. Nothing in the
    /// database is changed then.
    pub fn open(url: &DatabaseUrl, options: DatabaseOptions) -> Result<Self, OpenError> {
        let failed = |reason: String| OpenError { url: url.clone(), reason: url.redact(&reason) };
        let connections = options.connections.max(1);
        let Some(path) = url.file() else {
            let manager = PgManager::new(url.clone());
            // A pool would hide the reason behind a time-out.
            let mut first = manager.connect().map_err(|error| failed(error.0))?;
            check_postgres(&mut first.connection).map_err(|error| failed(error.0))?;
            let pools = Pools::Postgres(pool(manager, connections, options.wait));
            return Ok(Self { pools, terms: TermsCache::default(), patience: options.wait });
        };
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        if let Some(directory) = directory {
            std::fs::create_dir_all(directory).map_err(|error| failed(format!("{}: {error}", directory.display())))?;
        }
        let manager = |read_only| SqliteManager::new(path, options.wait, read_only).map_err(|error| failed(error.to_string()));
        let (writer, readers) = (manager(false)?, manager(true)?);
        let turn = if options.to_serve { Some(take_turn(path).map_err(failed)?) } else { None };
        private_file(path).map_err(|error| failed(error.to_string()))?;
        let file = DatabaseFile::of(path).map_err(|error| failed(error.to_string()))?;
        // Before a connection is set up, which changes the file.
        writer.bare().and_then(|mut connection| check_sqlite(&mut connection)).map_err(|error| failed(error.0))?;
        writer.connect().map_err(|error| failed(error.0))?;
        let manager = writer.clone();
        let (writer, readers) = (pool(writer, 1, options.wait), pool(readers, connections, options.wait));
        let checkpoints = Checkpoints::start(manager.clone(), writer.clone()).map_err(|error| failed(error.to_string()))?;
        let pools = Pools::Sqlite { writer, readers, checkpoints, manager, file, _turn: turn };
        Ok(Self { pools, terms: TermsCache::default(), patience: options.wait })
    }

    /// Leaves everything that was written in the one file of a SQLite database, so that it can be copied alone, and takes no more
    /// writes. For the end of a process: its threads may hold connections then that nobody closes. On PostgreSQL there is
    /// nothing to do.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when a transaction goes on for longer than a second: the `-wal` file is still
    /// needed then.
    pub fn close(&self) -> StoreResult<()> {
        let Pools::Sqlite { writer, checkpoints, .. } = &self.pools else { return Ok(()) };
        let began = Instant::now();
        checkpoints.stop();
        let mut link = writer.get_timeout(CLOSING_WAIT).map_err(unavailable)?;
        let left = CLOSING_WAIT.saturating_sub(began.elapsed()).max(SHORTEST_WAIT);
        let emptied = checkpoint::empty(&mut link.connection, left).map_err(unavailable);
        // Never given back: what came after would stand in the other file again.
        std::mem::forget(link);
        emptied
    }

    /// Whether another attempt may not meet a failure. SQLite speaks English alone.
    const fn may_pass(&self, failure: &StatementError) -> bool {
        match failure {
            StatementError::Contended => true,
            StatementError::Unknown(_) => matches!(self.pools, Pools::Postgres(_)),
            StatementError::Unavailable { .. } | StatementError::Corrupt(_) => false,
        }
    }

    /// How many groups of events are worth writing at a time: SQLite has one writer, and PostgreSQL works on one group while
    /// another one is read and decided.
    pub const fn groups_at_once(&self) -> usize {
        match self.pools {
            Pools::Sqlite { .. } => 1,
            Pools::Postgres(_) => 2,
        }
    }

    fn attempt(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> Result<(), StatementError> {
        if let Pools::Sqlite { file, .. } = &self.pools {
            file.check()?;
        }
        match (&self.pools, access) {
            // A plain BEGIN takes the read lock with the first read, and an upgrade to a write lock can fail.
            (Pools::Sqlite { writer, checkpoints, file, .. }, Access::Write) => {
                checkpoints.let_through();
                let done = run_on(writer, "BEGIN IMMEDIATE", |c| Connection::Sqlite(c), &self.terms, work);
                checkpoints.written();
                file.note(&done);
                done
            }
            (Pools::Sqlite { readers, .. }, Access::Glance) => glance_on(readers, |c| Connection::Sqlite(c), &self.terms, work),
            (Pools::Postgres(pool), Access::Glance) => glance_on(pool, |c| Connection::Postgres(c), &self.terms, work),
            (Pools::Sqlite { readers, .. }, Access::Read) => {
                run_on(readers, "BEGIN DEFERRED", |c| Connection::Sqlite(c), &self.terms, work)
            }
            (Pools::Postgres(pool), Access::Write) => {
                run_on(pool, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", |c| Connection::Postgres(c), &self.terms, work)
            }
            (Pools::Postgres(pool), Access::Read) => {
                run_on(pool, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", |c| Connection::Postgres(c), &self.terms, work)
            }
        }
    }
}

impl Store for Database {
    fn run(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()> {
        let began = Instant::now();
        let mut last = StatementError::Contended;
        for attempt in 0..MAX_ATTEMPTS {
            if attempt > 0 {
                if began.elapsed() >= self.patience {
                    break;
                }
                std::thread::sleep(pause(attempt));
            }
            last = match self.attempt(access, work) {
                Err(failure) if self.may_pass(&failure) => failure,
                outcome => return outcome.map_err(StoreError::from),
            };
            tracing::debug!(attempt, ?last, "a transaction may have met others and runs again");
        }
        Err(last.into())
    }

    fn ready(&self) -> StoreResult<()> {
        let checked = match &self.pools {
            Pools::Sqlite { readers, writer, file, .. } => {
                file.check()?;
                file.check_writing(writer).map_err(unavailable)?;
                // The writer may be busy for long; its pragmas were checked when it was made.
                take(readers)?.connection_checked(check_pragmas)
            }
            Pools::Postgres(pool) => take(pool)?.connection_checked(|connection| {
                check_settings(connection)?;
                lacks(connection)?.map_or(Ok(()), |lack| Err(ConnectError(lack)))
            }),
        };
        checked.map_err(unavailable)
    }

    fn disk_use(&self) -> Option<DiskUse> {
        match &self.pools {
            Pools::Sqlite { file, .. } => file.disk_use().ok(),
            Pools::Postgres(_) => None,
        }
    }
}

/// Takes a server's turn on a file, by a lock of the system on a file beside it, which ends with the process. Never on the file
/// itself: closing that would end SQLite's own locks on it.
fn take_turn(path: &Path) -> Result<File, String> {
    let turn = beside(path, "-server");
    let failed = |error: io::Error| format!("{}: {error}", turn.display());
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&turn).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err("another server serves this file; stop it first, or serve a database of PostgreSQL, which may have many"
                .to_owned())
        }
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Makes a missing database file that only its owner can read; SQLite gives `-wal` and `-shm` the same permissions. Those of
/// a file that is there are whose it is to decide.
fn private_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(_) => return Ok(()),
        Err(_) => {}
    }
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        let (file, mode) = (path.display(), mode & 0o777);
        tracing::warn!("{file} has the mode {mode:o}: others can read its secrets; `chmod 600` keeps them to its owner");
    }
    Ok(())
}

/// A connection from a pool; without one in time, the store is unavailable.
pub(crate) fn take<M: ManageConnection>(pool: &Pool<M>) -> Result<Pooled<M>, StatementError> {
    pool.get().map_err(|error| StatementError::Unavailable { reason: error.to_string(), lost: false })
}

impl<C> Link<C> {
    /// Runs a check; a connection that fails it isn't used again.
    fn connection_checked(&mut self, check: impl FnOnce(&mut C) -> Result<(), ConnectError>) -> Result<(), ConnectError> {
        let outcome = check(&mut self.connection);
        self.lost |= outcome.is_err();
        outcome
    }
}

/// Runs work in one transaction on a connection from a pool.
fn run_on<M, C>(
    pool: &Pool<M>,
    begin: &str,
    connection: impl FnOnce(&mut C) -> Connection<'_>,
    terms: &TermsCache,
    work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>,
) -> Result<(), StatementError>
where
    M: ManageConnection<Connection = Link<C>>,
    C: DieselConnection<TransactionManager = AnsiTransactionManager>,
{
    let mut link = begin_on(pool, begin)?;
    let is_spread = link.is_spread;
    let mut tx = Transaction::new(connection(&mut link.connection), terms, is_spread);
    let decision = work(&mut tx);
    let leaves_turnstiles = tx.leaves_turnstiles;
    let failure = tx.into_failure();
    // Turnstiles are left open with the connection that closed them.
    link.lost |= leaves_turnstiles || failure.as_ref().is_some_and(StatementError::is_lost);
    if decision.is_ok() && failure.is_none() {
        return AnsiTransactionManager::commit_transaction(&mut link.connection).map_err(|error| {
            let failure = match StatementError::of("commit", &error) {
                // It may have been kept.
                StatementError::Unknown(reason) => StatementError::Unavailable { reason, lost: true },
                known => known,
            };
            link.lost |= failure.is_lost();
            failure
        });
    }
    if !link.lost {
        link.lost = undo(&mut link.connection).is_err();
    }
    match (decision, failure) {
        // Whatever the work made of it: another attempt may not meet it.
        (_, Some(failure @ (StatementError::Contended | StatementError::Unknown(_)))) => Err(failure),
        (Ok(()), Some(failure)) => Err(failure),
        (Err(RollBack) | Ok(()), _) => Ok(()),
    }
}

/// Runs one statement that reads on a connection from a pool. As where a transaction is [begun](begin_on), one may have died
/// since it was last used.
fn glance_on<M, C>(
    pool: &Pool<M>,
    connection: impl Fn(&mut C) -> Connection<'_>,
    terms: &TermsCache,
    work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>,
) -> Result<(), StatementError>
where
    M: ManageConnection<Connection = Link<C>>,
{
    let mut tries = pool.max_size() + 1;
    loop {
        let mut link = take(pool)?;
        let is_spread = link.is_spread;
        let mut tx = Transaction::new(connection(&mut link.connection), terms, is_spread);
        // Whether it is to be kept makes no difference: nothing was written.
        let (Ok(()) | Err(RollBack)) = work(&mut tx);
        let Some(failure) = tx.into_failure() else { return Ok(()) };
        link.lost = failure.is_lost();
        tries -= 1;
        if !link.lost || tries == 0 {
            return Err(failure);
        }
    }
}

/// Undoes a transaction and the savepoints that were left open in it by a failure.
fn undo<C>(connection: &mut C) -> QueryResult<()>
where
    C: DieselConnection<TransactionManager = AnsiTransactionManager>,
{
    while AnsiTransactionManager::transaction_manager_status_mut(connection).transaction_depth()?.is_some() {
        AnsiTransactionManager::rollback_transaction(connection)?;
    }
    Ok(())
}

/// Begins a transaction. A pooled connection may have died since it was last used, and beginning shows it: then
/// the next one is tried, at most as many as the pool holds and one new one.
fn begin_on<M, C>(pool: &Pool<M>, begin: &str) -> Result<Pooled<M>, StatementError>
where
    M: ManageConnection<Connection = Link<C>>,
    C: DieselConnection<TransactionManager = AnsiTransactionManager>,
{
    let mut tries = pool.max_size() + 1;
    loop {
        let mut link = take(pool)?;
        let Err(error) = AnsiTransactionManager::begin_transaction_sql(&mut link.connection, begin) else { return Ok(link) };
        let failure = StatementError::of("begin", &error);
        link.lost = failure != StatementError::Contended;
        tries -= 1;
        if !link.lost || tries == 0 {
            return Err(failure);
        }
    }
}

/// A random wait that grows with every attempt, so that those who met don't meet again.
fn pause(attempt: u32) -> Duration {
    let most = FIRST_PAUSE * 2u32.pow(attempt.min(MAX_ATTEMPTS));
    let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX).max(1);
    // The standard library's only source of randomness: enough to spread waits.
    let random = std::hash::RandomState::new().build_hasher().finish();
    Duration::from_micros(random % micros)
}
