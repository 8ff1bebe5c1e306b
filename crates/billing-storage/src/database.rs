//! The store: pools, transactions, and retries after conflicts.

use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::mem;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use billing_domain::ports::{
    Access, DiskUse, NodeState, PoolUse, RollBack, Shard, Store, StoreError, StoreResult, Tx, WriterPauses,
};
use billing_domain::refs::{CustomerRef, OrganizationId};
use diesel::QueryResult;
use diesel::connection::{
    AnsiTransactionManager, Connection as DieselConnection, SimpleConnection as _, TransactionManager as _,
};
use diesel::sqlite::SqliteConnection;
use r2d2::ManageConnection;
use thiserror::Error;

use crate::checkpoint::{self, Checkpoints};
use crate::connect::{
    ConnectError, Link, PgManager, PgPool, Pool, Pooled, SqliteManager, SqlitePool, Synchronous, check_settings, pool,
};
use crate::copy_check::quick_check;
use crate::database_file::{DatabaseFile, beside, private_file, real_path};
use crate::failure::{StatementError, unavailable};
use crate::nodes::cluster::{Cluster, Node, NodesOptions};
use crate::nodes::distribute::lacks;
use crate::restore::RESTORING;
use crate::schema_version::{check_postgres, check_sqlite};
use crate::tx::{Connection, StoreCache, Transaction};
use crate::url::{DatabaseUrl, NodeAddress};

/// The number of attempts before a transaction fails with [`StoreError::Contended`].
const MAX_ATTEMPTS: u32 = 8;
/// The longest wait before the second attempt; it doubles with each further attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(4);

/// The number of groups that one PostgreSQL server writes at the same time.
const GROUPS_OF_A_SERVER: usize = 2;

/// The size of a SQLite file from which the check after an unclean end runs beside the server.
const CHECKED_IN_ADVANCE_BYTES: u64 = 256 * 1024 * 1024;

/// The total time that closing waits for open transactions.
const CLOSING_WAIT: Duration = Duration::from_secs(1);
/// The minimum part of that time for readers.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// The options for opening a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseOptions {
    /// The maximum number of connections to a PostgreSQL server, or for reading a SQLite file. SQLite uses one more
    /// connection for writing.
    pub connections: u32,
    /// The time that a transaction waits for a free connection, and on SQLite for another process's lock. It is also
    /// the total time for retries after conflicts.
    pub wait: Duration,
    /// Whether the database is opened by a server. A SQLite file has one server at a time, for the lifetime of its
    /// [`Database`]. Other processes may use the file at the same time.
    pub to_serve: bool,
    /// The nodes of a distributed database that are reached under another address than their name.
    pub nodes: Vec<NodeAddress>,
    /// Whether commits to a SQLite file need not survive a power failure, as in a sandbox.
    pub is_sandbox: bool,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self { connections: 8, wait: Duration::from_secs(5), to_serve: false, nodes: Vec::new(), is_sandbox: false }
    }
}

/// The reason why a database cannot be opened.
#[derive(Debug, Error)]
#[error("cannot open the database {url}: {reason}")]
pub struct OpenError {
    url: DatabaseUrl,
    reason: String,
}

/// A database that implements the storage ports.
pub struct Database {
    pub(crate) pools: Pools,
    pub(crate) cache: StoreCache,
    /// The time after which a transaction is not retried.
    patience: Duration,
}

pub(crate) enum Pools {
    /// One connection writes: SQLite allows one writer at a time, and several would only compete for its lock without
    /// order.
    Sqlite {
        writer: SqlitePool,
        readers: SqlitePool,
        checkpoints: Checkpoints,
        /// Opens connections for operations on the whole file.
        manager: SqliteManager,
        file: Arc<DatabaseFile>,
        /// The server's lock on the file.
        _turn: Option<File>,
    },
    Postgres {
        /// Connections to the server of the URL.
        pool: PgPool,
        /// The nodes of a distributed database.
        cluster: Option<Box<Cluster>>,
    },
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.pools {
            Pools::Sqlite { .. } => "Database(SQLite)",
            Pools::Postgres { .. } => "Database(PostgreSQL)",
        })
    }
}

impl Database {
    /// Opens a database. Creates a missing SQLite file, readable by its owner only, and its missing directories.
    /// [`migrate`](Self::migrate) creates the tables.
    ///
    /// # Errors
    /// Returns [`OpenError`] and changes nothing in the database when:
    /// - the connection fails
    /// - the database's settings do not guarantee durability
    /// - another program, a newer release or a development version created the database
    /// - the file is opened to serve and another server already uses it
    /// - the file is opened to serve, its last server was killed, and the file is malformed. A large file is checked later,
    ///   and [`ready`](Store::ready) then returns the reason
    /// - a restore of the file was interrupted
    /// - the file is missing, but its write-ahead log is not
    pub fn open(url: &DatabaseUrl, options: DatabaseOptions) -> Result<Self, OpenError> {
        let failed = |reason: String| OpenError { url: url.clone(), reason: url.redact(&reason) };
        let connections = options.connections.max(1);
        let Some(path) = url.file() else {
            let manager = PgManager::new(url.clone());
            // A pool would hide the reason behind a timeout.
            let mut first = manager.connect().map_err(|error| failed(error.0))?;
            check_postgres(&mut first.connection).map_err(|error| failed(error.0))?;
            let cluster = if first.shards.is_some() {
                let nodes = NodesOptions { connections, wait: options.wait, addresses: options.nodes };
                Cluster::load(url, nodes, &mut first.connection).map_err(|error| failed(error.to_string()))?
            } else {
                None
            };
            let pools = match cluster {
                Some(cluster) => Pools::Postgres { pool: cluster.home().clone(), cluster: Some(Box::new(cluster)) },
                None => Pools::Postgres { pool: pool(manager, connections, options.wait), cluster: None },
            };
            return Ok(Self { pools, cache: StoreCache::default(), patience: options.wait });
        };
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        if let Some(directory) = directory {
            std::fs::create_dir_all(directory).map_err(|error| failed(format!("{}: {error}", directory.display())))?;
        }
        let synchronous = if options.is_sandbox { Synchronous::Off } else { Synchronous::Full };
        let manager = |read_only| match SqliteManager::new(path, options.wait, read_only) {
            Ok(manager) => Ok(manager.with_synchronous(synchronous)),
            Err(error) => Err(failed(error.to_string())),
        };
        let (writer, readers) = (manager(false)?, manager(true)?);
        let turn = if options.to_serve { Some(take_turn(path).map_err(failed)?) } else { None };
        let whole = real_path(path).map_err(|error| error.to_string()).and_then(|path| require_whole(&path));
        whole.map_err(failed)?;
        private_file(path).map_err(|error| failed(error.to_string()))?;
        let file = Arc::new(DatabaseFile::of(path, options.to_serve).map_err(|error| failed(error.to_string()))?);
        let is_unclean = options.to_serve && file.has_unclean_end().map_err(|error| failed(error.to_string()))?;
        // These checks precede the setup of a connection, which changes the file.
        let checked = writer.bare().and_then(|mut connection| {
            check_sqlite(&mut connection)?;
            if is_unclean { check_after_unclean_end(&file, &writer, &mut connection) } else { Ok(()) }
        });
        checked.map_err(|error| failed(error.0))?;
        writer.connect().map_err(|error| failed(error.0))?;
        let manager = writer.clone();
        let (writer, readers) = (pool(writer, 1, options.wait), pool(readers, connections, options.wait));
        let checkpoints = Checkpoints::start(manager.clone(), writer.clone(), Arc::clone(&file));
        let checkpoints = checkpoints.map_err(|error| failed(error.to_string()))?;
        let pools = Pools::Sqlite { writer, readers, checkpoints, manager, file, _turn: turn };
        Ok(Self { pools, cache: StoreCache::default(), patience: options.wait })
    }

    /// Moves all written data into the one file of a SQLite database, so that the file can be copied alone, and blocks
    /// further writes. Call it at the end of a process, whose threads may still have open connections. It does nothing
    /// on PostgreSQL.
    ///
    /// # Errors
    /// Returns [`StoreError::Unavailable`] when a transaction runs for longer than a second, or when another program
    /// replaced the file or truncated its log. The `-wal` file is then still needed.
    pub fn close(&self) -> StoreResult<()> {
        let Pools::Sqlite { writer, checkpoints, file, .. } = &self.pools else { return Ok(()) };
        let began = Instant::now();
        checkpoints.stop();
        let mut link = writer.get_timeout(CLOSING_WAIT).map_err(unavailable)?;
        let left = CLOSING_WAIT.saturating_sub(began.elapsed()).max(SHORTEST_WAIT);
        // The log must not be moved into a file that another program wrote.
        let emptied = file.check_before_closing().map_err(StoreError::from).and_then(|()| {
            if file.end_watch() {
                let cleared = link.connection.batch_execute("PRAGMA user_version = 0");
                cleared.map_err(|error| StatementError::of("user_version", &error))?;
            }
            checkpoint::empty(&mut link.connection, left).map_err(unavailable)
        });
        // The connection is never returned to the pool: a later write would fill the `-wal` file again.
        mem::forget(link);
        emptied
    }

    /// Marks the file of a server with a random number, and checks from now on that its content is the server's. It does
    /// nothing for other processes and on PostgreSQL. Call it when the file has its tables.
    ///
    /// # Errors
    /// Returns [`StoreError::Unavailable`] when the mark cannot be written.
    pub(crate) fn begin_watch(&self) -> StoreResult<()> {
        let Pools::Sqlite { writer, manager, file, .. } = &self.pools else { return Ok(()) };
        let Some(mark) = file.new_mark() else { return Ok(()) };
        let mut link = take(writer)?;
        let marked = link.connection.batch_execute(&format!("PRAGMA user_version = {mark}"));
        marked.map_err(|error| StatementError::of("user_version", &error))?;
        // Until the mark is in the file itself, the file is also accepted with its earlier mark.
        checkpoint::move_log(&mut link.connection).map_err(unavailable)?;
        let mut idle = manager.bare().map_err(unavailable)?;
        let read = idle.batch_execute("SELECT count(*) FROM sqlite_master");
        read.map_err(|error| StatementError::of("sqlite_master", &error))?;
        Ok(file.begin_watch(mark, idle)?)
    }

    /// Returns whether a retry can succeed after this failure. SQLite's messages are always in English.
    const fn may_pass(&self, failure: &StatementError) -> bool {
        match failure {
            StatementError::Contended => true,
            StatementError::Unknown(_) => matches!(self.pools, Pools::Postgres { .. }),
            StatementError::NoConnection(_)
            | StatementError::Unavailable { .. }
            | StatementError::Replaced
            | StatementError::Corrupt(_)
            | StatementError::Unsupported(_)
            | StatementError::NodeUnavailable(_) => false,
        }
    }

    /// Returns how many groups of events are worth writing in parallel. SQLite has one writer; PostgreSQL works on one
    /// group while another one is parsed and decided.
    pub fn groups_at_once(&self) -> usize {
        match &self.pools {
            Pools::Sqlite { .. } => 1,
            Pools::Postgres { cluster: None, .. } => GROUPS_OF_A_SERVER,
            Pools::Postgres { cluster: Some(cluster), .. } => GROUPS_OF_A_SERVER * (cluster.states().len() + 1),
        }
    }

    /// Returns the pool of the node of a shard, and the node.
    fn node_of(&self, shard: Shard) -> Option<Arc<Node>> {
        let Pools::Postgres { cluster: Some(cluster), .. } = &self.pools else { return None };
        cluster.refresh();
        cluster.node(shard.0)
    }

    /// Runs work in as many attempts as conflicts require.
    fn run_attempts(&self, attempt: &mut dyn FnMut() -> Result<(), StatementError>) -> StoreResult<()> {
        let began = Instant::now();
        let mut last = StatementError::Contended;
        for number in 0..MAX_ATTEMPTS {
            if number > 0 {
                if began.elapsed() >= self.patience {
                    break;
                }
                std::thread::sleep(pause(number));
            }
            last = match attempt() {
                Err(failure) if self.may_pass(&failure) => failure,
                outcome => return outcome.map_err(StoreError::from),
            };
            tracing::debug!(number, ?last, "a transaction may have met others and runs again");
        }
        Err(last.into())
    }

    /// Makes one attempt on the node of a shard.
    fn attempt_at(
        &self,
        node: &Node,
        access: Access,
        work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>,
    ) -> Result<(), StatementError> {
        node.require()?;
        node.noted(on_postgres(node.pool(), access, &self.cache, work))
    }

    fn attempt(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> Result<(), StatementError> {
        if let Pools::Sqlite { file, .. } = &self.pools {
            if access == Access::Write { file.check_content()? } else { file.check()? }
        }
        match (&self.pools, access) {
            // A plain BEGIN takes the read lock at the first read, and the upgrade to a write lock can fail.
            (Pools::Sqlite { writer, checkpoints, file, .. }, Access::Write) => {
                checkpoints.let_through();
                let done = run_on(writer, "BEGIN IMMEDIATE", |c| Connection::Sqlite(c), &self.cache, work);
                checkpoints.written();
                file.note(&done);
                // After this check the work may be acknowledged. A file that was replaced during the transaction does not
                // contain the work.
                done.and_then(|()| file.check_content())
            }
            (Pools::Sqlite { readers, .. }, Access::Glance) => glance_on(readers, |c| Connection::Sqlite(c), &self.cache, work),
            (Pools::Sqlite { readers, .. }, Access::Read) => {
                run_on(readers, "BEGIN DEFERRED", |c| Connection::Sqlite(c), &self.cache, work)
            }
            (Pools::Postgres { pool, cluster: None }, access) => on_postgres(pool, access, &self.cache, work),
            (Pools::Postgres { cluster: Some(cluster), .. }, access) => {
                cluster.refresh();
                cluster.on_any_node(&mut |pool| on_postgres(pool, access, &self.cache, work))
            }
        }
    }
}

/// Runs work on a PostgreSQL server.
fn on_postgres(
    pool: &PgPool,
    access: Access,
    cache: &StoreCache,
    work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>,
) -> Result<(), StatementError> {
    let begin = match access {
        Access::Glance => return glance_on(pool, |c| Connection::Postgres(c), cache, work),
        Access::Write => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
        Access::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    };
    run_on(pool, begin, |c| Connection::Postgres(c), cache, work)
}

impl Store for Database {
    fn run(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()> {
        self.run_attempts(&mut || self.attempt(access, work))
    }

    fn run_at(&self, shard: Shard, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()> {
        match self.node_of(shard) {
            Some(node) => self.run_attempts(&mut || self.attempt_at(&node, access, work)),
            None => self.run(access, work),
        }
    }

    fn shard_count(&self) -> usize {
        match &self.pools {
            Pools::Postgres { cluster: Some(cluster), .. } => cluster.shard_count(),
            Pools::Postgres { cluster: None, .. } | Pools::Sqlite { .. } => 0,
        }
    }

    fn known_shard(&self, organization: OrganizationId, customer: &CustomerRef) -> Option<Shard> {
        match &self.pools {
            Pools::Postgres { cluster: Some(cluster), .. } => cluster.known_shard(organization, customer).map(Shard),
            Pools::Postgres { cluster: None, .. } | Pools::Sqlite { .. } => None,
        }
    }

    fn shards_of(&self, organization: OrganizationId, customers: &[CustomerRef]) -> StoreResult<Vec<Option<Shard>>> {
        let Pools::Postgres { cluster: Some(cluster), .. } = &self.pools else { return Ok(vec![None; customers.len()]) };
        let known = || customers.iter().map(|customer| self.known_shard(organization, customer));
        let unknown: Vec<CustomerRef> =
            customers.iter().zip(known()).filter(|(_, shard)| shard.is_none()).map(|(customer, _)| customer.clone()).collect();
        if !unknown.is_empty() {
            cluster.on_any_node(&mut |pool| {
                let mut link = take(pool)?;
                let found = cluster.look_up(&mut link.connection, organization, &unknown);
                found.map_err(|error| {
                    let failure = StatementError::of("customer_refs", &error);
                    link.lost |= failure.is_lost();
                    failure
                })
            })?;
        }
        Ok(known().collect())
    }

    fn nodes(&self) -> Vec<NodeState> {
        match &self.pools {
            Pools::Postgres { cluster: Some(cluster), .. } => cluster.states(),
            Pools::Postgres { cluster: None, .. } | Pools::Sqlite { .. } => Vec::new(),
        }
    }

    fn node_of(&self, shard: Shard) -> usize {
        match &self.pools {
            Pools::Postgres { cluster: Some(cluster), .. } => cluster.node_of(shard.0),
            Pools::Postgres { cluster: None, .. } | Pools::Sqlite { .. } => 0,
        }
    }

    fn ready(&self) -> StoreResult<()> {
        let checked = match &self.pools {
            Pools::Sqlite { readers, writer, file, manager, .. } => {
                file.check_content()?;
                file.check_structure()?;
                file.check_writing(writer).map_err(unavailable)?;
                // The connection for writing can be busy for long; its pragmas were checked when it was opened.
                take(readers)?.connection_checked(|connection| manager.check_pragmas(connection))
            }
            Pools::Postgres { pool, cluster: None } => take(pool)?.connection_checked(|connection| {
                check_settings(connection)?;
                lacks(connection)?.map_or(Ok(()), |lack| Err(ConnectError(lack)))
            }),
            Pools::Postgres { cluster: Some(cluster), .. } => {
                cluster.refresh();
                // The server is ready while one node serves its customers.
                let states = cluster.checked_states();
                let mut with_customers = states.iter().filter(|node| node.shards > 0);
                if with_customers.any(|node| node.problem.is_none()) {
                    Ok(())
                } else {
                    let problems: Vec<&str> = states.iter().filter_map(|node| node.problem.as_deref()).collect();
                    Err(ConnectError(problems.join("; ")))
                }
            }
        };
        checked.map_err(unavailable)
    }

    fn disk_use(&self) -> Option<DiskUse> {
        match &self.pools {
            Pools::Sqlite { file, .. } => file.disk_use().ok(),
            Pools::Postgres { .. } => None,
        }
    }

    fn pool_use(&self) -> Vec<PoolUse> {
        match &self.pools {
            Pools::Sqlite { writer, readers, .. } => vec![writer.usage("writer"), readers.usage("readers")],
            Pools::Postgres { cluster: Some(cluster), .. } => cluster.pool_use(),
            Pools::Postgres { pool, .. } => vec![pool.usage("server")],
        }
    }

    fn writer_pauses(&self) -> Option<WriterPauses> {
        match &self.pools {
            Pools::Sqlite { checkpoints, .. } => Some(checkpoints.pauses()),
            Pools::Postgres { .. } => None,
        }
    }
}

/// Checks that a file may be opened: no restore of it was interrupted, and no log is left without the file. SQLite would delete
/// such a log, or apply it to another file at the same path.
///
/// # Errors
/// Returns what is missing, and the command that completes it.
pub fn require_whole(path: &Path) -> Result<(), String> {
    let marker = beside(path, RESTORING);
    if marker.symlink_metadata().is_ok() {
        let (file, marker) = (path.display(), marker.display());
        return Err(format!("a restore of {file} was interrupted ({marker} exists): run `usage-billing restore FILE` again"));
    }
    let log = beside(path, "-wal");
    let has_content = |path: &Path| std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0);
    if !has_content(path) && has_content(&log) {
        let (file, log) = (path.display(), log.display());
        return Err(format!(
            "{file} is missing or empty, but {log} is not: move the database file back, or run `usage-billing restore FILE`"
        ));
    }
    Ok(())
}

/// Checks the structure of a file whose last server was killed. A large file is checked on a thread, which reports the result
/// to [`DatabaseFile::check_structure`].
fn check_after_unclean_end(
    file: &Arc<DatabaseFile>,
    manager: &SqliteManager,
    connection: &mut SqliteConnection,
) -> Result<(), ConnectError> {
    let size = file.size().map_err(|error| ConnectError(error.to_string()))?;
    if size < CHECKED_IN_ADVANCE_BYTES {
        return quick_check(connection);
    }
    tracing::info!(bytes = size, "the last server of the database file was killed: the file is checked while the server runs");
    let (file, manager) = (Arc::clone(file), manager.clone());
    let thread = std::thread::Builder::new().name("quick-check".to_owned()).spawn(move || {
        match manager.bare().and_then(|mut connection| quick_check(&mut connection)) {
            Ok(()) => tracing::info!("the structure of the database file is sound"),
            Err(error) => file.note_malformed(error.to_string()),
        }
    });
    thread.map(drop).map_err(|error| ConnectError(format!("cannot start a thread: {error}")))
}

/// Takes the server's lock on a database file. It is an operating system lock on a separate file and ends with the
/// process. A lock on the database file itself would be wrong: closing that file releases SQLite's own locks.
pub(crate) fn take_turn(path: &Path) -> Result<File, String> {
    let turn = beside(path, "-server");
    let failed = |error: io::Error| format!("{}: {error}", turn.display());
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&turn).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err("another server uses this file: stop it first, or use PostgreSQL, which supports several servers".to_owned())
        }
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Takes a connection from a pool, or fails as unavailable after the pool's timeout.
pub(crate) fn take<M: ManageConnection>(pool: &Pool<M>) -> Result<Pooled<M>, StatementError> {
    pool.get().map_err(|error| StatementError::NoConnection(error.to_string()))
}

impl<C> Link<C> {
    /// Runs a check. The pool discards a connection that fails it.
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
    cache: &StoreCache,
    work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>,
) -> Result<(), StatementError>
where
    M: ManageConnection<Connection = Link<C>>,
    C: DieselConnection<TransactionManager = AnsiTransactionManager>,
{
    let mut link = begin_on(pool, begin)?;
    let shards = link.shards.clone();
    // The connection gets it back only if nothing fails.
    let stamps = mem::take(&mut link.stamps);
    let mut tx = Transaction::new(connection(&mut link.connection), cache, shards);
    tx.stamps = stamps;
    let decision = work(&mut tx);
    let leaves_turnstiles = tx.leaves_turnstiles;
    let stamps = mem::take(&mut tx.stamps).after_transaction();
    let failure = tx.into_failure();
    // Closing the connection opens the gates that it may have left closed.
    link.lost |= leaves_turnstiles || failure.as_ref().is_some_and(StatementError::is_lost);
    if decision.is_ok() && failure.is_none() {
        let committed = AnsiTransactionManager::commit_transaction(&mut link.connection);
        if committed.is_ok() {
            link.stamps = stamps;
        }
        return committed.map_err(|error| {
            let failure = match StatementError::of("commit", &error) {
                // The commit may have succeeded.
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
    if failure.is_none() {
        link.stamps = stamps;
    }
    match (decision, failure) {
        // These failures apply regardless of the work's result: a retry can succeed.
        (_, Some(failure @ (StatementError::Contended | StatementError::Unknown(_)))) => Err(failure),
        (Ok(()), Some(failure)) => Err(failure),
        (Err(RollBack) | Ok(()), _) => Ok(()),
    }
}

/// Runs one read statement on a connection from a pool. As in [`begin_on`], the connection may have died since its last
/// use.
fn glance_on<M, C>(
    pool: &Pool<M>,
    connection: impl Fn(&mut C) -> Connection<'_>,
    cache: &StoreCache,
    work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>,
) -> Result<(), StatementError>
where
    M: ManageConnection<Connection = Link<C>>,
{
    let mut tries = pool.max_size() + 1;
    loop {
        let mut link = take(pool)?;
        let shards = link.shards.clone();
        let mut tx = Transaction::new(connection(&mut link.connection), cache, shards);
        // Commit and rollback are the same here, because nothing was written.
        let (Ok(()) | Err(RollBack)) = work(&mut tx);
        let Some(failure) = tx.into_failure() else { return Ok(()) };
        link.lost = failure.is_lost();
        tries -= 1;
        if !link.lost || tries == 0 {
            return Err(failure);
        }
    }
}

/// Rolls back a transaction and the savepoints that a failure left open in it.
fn undo<C>(connection: &mut C) -> QueryResult<()>
where
    C: DieselConnection<TransactionManager = AnsiTransactionManager>,
{
    while AnsiTransactionManager::transaction_manager_status_mut(connection).transaction_depth()?.is_some() {
        AnsiTransactionManager::rollback_transaction(connection)?;
    }
    Ok(())
}

/// Begins a transaction. BEGIN detects a pooled connection that died since its last use. The next connection is then
/// tried, up to the pool's size plus one.
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

/// Sleeps for a random time that grows with each attempt, so that conflicting transactions do not meet again.
fn pause(attempt: u32) -> Duration {
    let most = FIRST_PAUSE * 2u32.pow(attempt.min(MAX_ATTEMPTS));
    let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX).max(1);
    // This is the standard library's only source of randomness, and sufficient to spread waits.
    let random = std::hash::RandomState::new().build_hasher().finish();
    Duration::from_micros(random % micros)
}
