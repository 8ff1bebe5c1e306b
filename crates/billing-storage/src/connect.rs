//! Connections and their pools. Each new connection is configured, and the settings are read back.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use billing_domain::ports::PoolUse;
use diesel::connection::{Connection as _, SimpleConnection as _};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::r2d2::R2D2Connection;
use diesel::sql_types::{BigInt, Bool, Integer, Text};
use diesel::sqlite::SqliteConnection;
use r2d2::{ManageConnection, PooledConnection};

use crate::nodes::distribute::has_extension;
use crate::nodes::shards::ShardRanges;
use crate::stamp_generation::StampWatch;
use crate::url::DatabaseUrl;

/// The number of log pages at which a commit also runs a checkpoint: 64 MiB. This is a fallback for
/// [`checkpoint`](crate::checkpoint).
const WAL_AUTOCHECKPOINT_PAGES: u32 = 16_000;
/// The size to which SQLite truncates the write-ahead log at a restart: 64 MiB.
const WAL_KEPT_BYTES: u32 = 64 * 1024 * 1024;
/// The maximum page cache of the connection for writing, in KiB. With 8 or 48 MiB, events on 10,000 contracts were not faster: SQLite
/// scans the cache in each commit that splits a page. Pages have SQLite's default size of 4 KiB. With 2 KiB, an event took 8 % more
/// processor time.
const WRITER_CACHE_KIB: u32 = 24 * 1024;
/// The maximum page cache of each connection for reading, in KiB.
const READER_CACHE_KIB: u32 = 2 * 1024;
/// The time that a PostgreSQL statement waits for a lock before it fails as contended.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum duration of a PostgreSQL statement that is not a long read.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum duration of a read that streams its rows to a consumer. This is a fallback: callers that read for
/// clients set a shorter limit.
pub(crate) const LONG_READ_TIMEOUT: Duration = Duration::from_secs(3600);

/// The settings of connections to a distributed database. Each transaction has at most one connection to each other node, so
/// that the number of a node's connections is limited, and a transaction never waits for itself.
const ON_NODES: &str = "SET citus.multi_shard_modify_mode = 'sequential'; SET citus.max_adaptive_executor_pool_size = 1";

/// The reason why a connection cannot be opened or used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConnectError(pub(crate) String);

impl From<diesel::ConnectionError> for ConnectError {
    fn from(error: diesel::ConnectionError) -> Self {
        Self(error.to_string())
    }
}

impl From<diesel::result::Error> for ConnectError {
    fn from(error: diesel::result::Error) -> Self {
        Self(error.to_string())
    }
}

/// A pooled connection. The pool discards a lost connection.
pub(crate) struct Link<C> {
    pub(crate) connection: C,
    pub(crate) lost: bool,
    /// The shards of a [distributed](crate::nodes::distribute) database.
    pub(crate) shards: Option<Arc<ShardRanges>>,
    /// What the connection knows of stamps between transactions.
    pub(crate) stamps: StampWatch,
}

/// Opens connections to a SQLite file.
#[derive(Clone, Debug)]
pub(crate) struct SqliteManager {
    path: PathBuf,
    busy_timeout: Duration,
    read_only: bool,
    synchronous: Synchronous,
}

/// Whether a commit of SQLite waits until the disk has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Synchronous {
    Full,
    /// For a sandbox, whose data is worth nothing after a power failure.
    Off,
}

impl Synchronous {
    /// Returns the word of `PRAGMA synchronous` and the number that it reads back.
    const fn pragma(self) -> (&'static str, i64) {
        match self {
            Self::Full => ("FULL", 2),
            Self::Off => ("OFF", 0),
        }
    }
}

/// Opens connections to a PostgreSQL server.
#[derive(Clone, Debug)]
pub(crate) struct PgManager {
    url: DatabaseUrl,
}

/// A pool of connections. It counts the callers that wait for a connection, which the library does not report.
pub(crate) struct Pool<M: ManageConnection> {
    connections: r2d2::Pool<M>,
    waiting: Arc<AtomicU64>,
}

impl<M: ManageConnection> Clone for Pool<M> {
    fn clone(&self) -> Self {
        Self { connections: self.connections.clone(), waiting: Arc::clone(&self.waiting) }
    }
}

impl<M: ManageConnection> Pool<M> {
    /// Waits for a connection, at most for the pool's timeout.
    ///
    /// # Errors
    /// Returns an error when no connection becomes available in time.
    pub(crate) fn get(&self) -> Result<Pooled<M>, r2d2::Error> {
        self.counted(r2d2::Pool::get)
    }

    /// Waits for a connection, at most for `timeout`.
    ///
    /// # Errors
    /// Returns an error when no connection becomes available in time.
    pub(crate) fn get_timeout(&self, timeout: Duration) -> Result<Pooled<M>, r2d2::Error> {
        self.counted(|connections| connections.get_timeout(timeout))
    }

    /// Returns the maximum number of connections.
    pub(crate) fn max_size(&self) -> u32 {
        self.connections.max_size()
    }

    /// Returns the use of the pool under a name.
    pub(crate) fn usage(&self, name: &str) -> PoolUse {
        let state = self.connections.state();
        let (open, idle) = (u64::from(state.connections), u64::from(state.idle_connections));
        PoolUse { name: name.to_owned(), in_use: open.saturating_sub(idle), idle, waiting: self.waiting.load(Ordering::Relaxed) }
    }

    fn counted(&self, get: impl FnOnce(&r2d2::Pool<M>) -> Result<Pooled<M>, r2d2::Error>) -> Result<Pooled<M>, r2d2::Error> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let connection = get(&self.connections);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        connection
    }
}

pub(crate) type SqlitePool = Pool<SqliteManager>;
pub(crate) type PgPool = Pool<PgManager>;
pub(crate) type Pooled<M> = PooledConnection<M>;

impl SqliteManager {
    pub(crate) fn new(path: &Path, busy_timeout: Duration, read_only: bool) -> std::io::Result<Self> {
        // An absolute path, so that SQLite never interprets a relative name as a URI.
        Ok(Self { path: std::path::absolute(path)?, busy_timeout, read_only, synchronous: Synchronous::Full })
    }

    /// Returns the same with another durability.
    pub(crate) fn with_synchronous(self, synchronous: Synchronous) -> Self {
        Self { synchronous, ..self }
    }

    /// Returns the time that its connections wait for locks.
    pub(crate) const fn busy_timeout(&self) -> Duration {
        self.busy_timeout
    }

    /// Checks the settings that make acknowledged rows durable. A pragma that cannot be set reports no error, so each one
    /// is read back.
    pub(crate) fn check_pragmas(&self, connection: &mut SqliteConnection) -> Result<(), ConnectError> {
        let pragmas: Pragmas = diesel::sql_query(
            "SELECT journal_mode, synchronous, foreign_keys, timeout \
             FROM pragma_journal_mode, pragma_synchronous, pragma_foreign_keys, pragma_busy_timeout",
        )
        .get_result(connection)?;
        let kept = pragmas.journal_mode == "wal"
            && pragmas.synchronous == self.synchronous.pragma().1
            && pragmas.foreign_keys == 1
            && pragmas.timeout > 0;
        if kept {
            Ok(())
        } else {
            Err(ConnectError(format!(
                "SQLite does not apply the required settings: journal_mode is {}, synchronous {}, foreign_keys {}, busy_timeout {} ms",
                pragmas.journal_mode, pragmas.synchronous, pragmas.foreign_keys, pragmas.timeout,
            )))
        }
    }

    /// Opens a connection on which only the busy timeout is set.
    pub(crate) fn bare(&self) -> Result<SqliteConnection, ConnectError> {
        let path = self.path.to_str().ok_or_else(|| ConnectError("the path of the database file is not UTF-8".to_owned()))?;
        let mut connection = SqliteConnection::establish(path)?;
        connection.batch_execute(&format!("PRAGMA busy_timeout = {}", self.busy_timeout.as_millis()))?;
        Ok(connection)
    }
}

impl ManageConnection for SqliteManager {
    type Connection = Link<SqliteConnection>;
    type Error = ConnectError;

    fn connect(&self) -> Result<Self::Connection, ConnectError> {
        // The busy timeout comes first, because every later statement can meet another connection's lock.
        let mut connection = self.bare()?;
        let (cache, query_only) = if self.read_only { (READER_CACHE_KIB, "ON") } else { (WRITER_CACHE_KIB, "OFF") };
        let (synchronous, _) = self.synchronous.pragma();
        connection.batch_execute(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA foreign_keys = ON; \
             PRAGMA wal_autocheckpoint = {WAL_AUTOCHECKPOINT_PAGES}; PRAGMA journal_size_limit = {WAL_KEPT_BYTES}; \
             PRAGMA cache_size = -{cache}; PRAGMA query_only = {query_only};"
        ))?;
        self.check_pragmas(&mut connection)?;
        Ok(Link { connection, lost: false, shards: None, stamps: StampWatch::default() })
    }

    fn is_valid(&self, _link: &mut Self::Connection) -> Result<(), ConnectError> {
        Ok(())
    }

    fn has_broken(&self, link: &mut Self::Connection) -> bool {
        link.lost || std::thread::panicking() || link.connection.is_broken()
    }
}

#[derive(Debug, QueryableByName)]
struct Pragmas {
    #[diesel(sql_type = Text)]
    journal_mode: String,
    #[diesel(sql_type = BigInt)]
    synchronous: i64,
    #[diesel(sql_type = BigInt)]
    foreign_keys: i64,
    #[diesel(sql_type = BigInt)]
    timeout: i64,
}

impl PgManager {
    pub(crate) const fn new(url: DatabaseUrl) -> Self {
        Self { url }
    }
}

impl ManageConnection for PgManager {
    type Connection = Link<PgConnection>;
    type Error = ConnectError;

    fn connect(&self) -> Result<Self::Connection, ConnectError> {
        let server = self.url.server().ok_or_else(|| ConnectError("not a server's address".to_owned()))?;
        let redacted = |error: String| ConnectError(self.url.redact(&error));
        let mut connection = PgConnection::establish(server).map_err(|error| redacted(error.to_string()))?;
        // Only a superuser may set the language of messages; `failure` explains why the setting is needed.
        connection.batch_execute(&format!(
            "SET lock_timeout = {}; SET statement_timeout = {}; SET idle_in_transaction_session_timeout = {}; \
             SET client_min_messages = warning; \
             DO $$ BEGIN SET lc_messages = 'C'; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$;",
            LOCK_TIMEOUT.as_millis(),
            STATEMENT_TIMEOUT.as_millis(),
            STATEMENT_TIMEOUT.as_millis(),
        ))?;
        let shards = if has_extension(&mut connection)? {
            connection.batch_execute(ON_NODES)?;
            let shards = ShardRanges::load(&mut connection)?;
            (shards.len() > 0).then(|| Arc::new(shards))
        } else {
            None
        };
        Ok(Link { connection, lost: false, shards, stamps: StampWatch::default() })
    }

    fn is_valid(&self, _link: &mut Self::Connection) -> Result<(), ConnectError> {
        // Beginning the transaction is the test; see `Database::run`.
        Ok(())
    }

    fn has_broken(&self, link: &mut Self::Connection) -> bool {
        link.lost || std::thread::panicking() || link.connection.is_broken()
    }
}

#[derive(QueryableByName)]
struct Setting {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    setting: String,
}

/// Checks that the server's settings make acknowledged rows durable.
pub(crate) fn check_settings(connection: &mut PgConnection) -> Result<(), ConnectError> {
    let off: Vec<Setting> = diesel::sql_query(
        "SELECT name, setting FROM pg_settings \
         WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off' ORDER BY name",
    )
    .load(connection)?;
    if off.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = off.iter().map(|setting| format!("{} is {}", setting.name, setting.setting)).collect();
    Err(ConnectError(format!("the settings of PostgreSQL are not durable: {}", named.join(", "))))
}

/// A client's connection to a PostgreSQL server.
#[derive(QueryableByName)]
pub(crate) struct Backend {
    #[diesel(sql_type = Integer)]
    pub(crate) pid: i32,
    /// Whether it is the connection that asks.
    #[diesel(sql_type = Bool)]
    pub(crate) is_own: bool,
}

/// Returns the connections to the same database, without those that the nodes of a cluster have to each other. Other roles see
/// no type of a connection, so it then counts as a client's.
pub(crate) fn connections(connection: &mut PgConnection) -> QueryResult<Vec<Backend>> {
    diesel::sql_query(
        "SELECT pid, pid = pg_backend_pid() AS is_own FROM pg_stat_activity WHERE datname = current_database() \
         AND usesysid IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend' \
         AND coalesce(application_name, '') NOT ILIKE 'citus%'",
    )
    .load(connection)
}

#[derive(QueryableByName)]
struct DatabaseName {
    #[diesel(sql_type = Text)]
    name: String,
}

/// Returns the name of the database.
pub(crate) fn database_name(connection: &mut PgConnection) -> QueryResult<String> {
    let row: DatabaseName = diesel::sql_query("SELECT current_database()::text AS name").get_result(connection)?;
    Ok(row.name)
}

/// Creates a pool that opens its connections on demand.
pub(crate) fn pool<M>(manager: M, size: u32, wait: Duration) -> Pool<M>
where
    M: ManageConnection<Error = ConnectError>,
{
    let connections = r2d2::Pool::builder()
        .max_size(size)
        .min_idle(Some(0))
        .connection_timeout(wait)
        .max_lifetime(None)
        .idle_timeout(None)
        .test_on_check_out(false)
        .error_handler(Box::new(Report))
        .build_unchecked(manager);
    Pool { connections, waiting: Arc::default() }
}

#[derive(Debug)]
struct Report;

impl r2d2::HandleError<ConnectError> for Report {
    fn handle_error(&self, error: ConnectError) {
        tracing::warn!(%error, "no connection to the database");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(QueryableByName)]
    struct CompileOption {
        #[diesel(sql_type = Text)]
        compile_options: String,
    }

    /// `.cargo/config.toml` explains each option. `HAVE_FDATASYNC` is missing here because it is visible only in system
    /// calls.
    #[test]
    fn sqlite_is_compiled_as_the_workspace_says() {
        let mut connection = SqliteConnection::establish(":memory:").expect("a database");
        let options: Vec<CompileOption> = diesel::sql_query("PRAGMA compile_options").load(&mut connection).expect("options");
        let options: Vec<&str> = options.iter().map(|option| option.compile_options.as_str()).collect();
        for wanted in ["ENABLE_QPSG", "DEFAULT_MEMSTATUS=0", "THREADSAFE=2", "OMIT_SHARED_CACHE"] {
            assert!(options.contains(&wanted), "no {wanted}: {options:?}");
        }
        for unwanted in ["ENABLE_STAT4", "ENABLE_MEMORY_MANAGEMENT", "ENABLE_API_ARMOR"] {
            assert!(!options.contains(&unwanted), "{unwanted}");
        }
    }

    #[test]
    fn a_connection_with_a_weaker_pragma_is_refused() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let manager = SqliteManager::new(&directory.path().join("usage.sqlite3"), Duration::from_secs(1), false).expect("a path");
        let weaker =
            ["synchronous = NORMAL", "synchronous = OFF", "foreign_keys = OFF", "busy_timeout = 0", "journal_mode = DELETE"];
        for pragma in weaker {
            let mut link = manager.connect().expect("a connection");
            manager.check_pragmas(&mut link.connection).expect("as it was made");
            link.connection.batch_execute(&format!("PRAGMA {pragma}")).expect(pragma);
            let refused = manager.check_pragmas(&mut link.connection).expect_err(pragma).to_string();
            assert!(refused.starts_with("SQLite does not apply the required settings"), "{refused}");
        }
    }

    #[test]
    fn a_pool_counts_its_connections_and_who_waits_for_one() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let patience = Duration::from_secs(60);
        let manager = SqliteManager::new(&directory.path().join("usage.sqlite3"), patience, false).expect("a path");
        let pool = pool(manager, 1, patience);
        let usage = |in_use, idle, waiting| PoolUse { name: "writer".to_owned(), in_use, idle, waiting };
        assert_eq!(pool.usage("writer"), usage(0, 0, 0));
        let first = pool.get().expect("a connection");
        assert_eq!(pool.usage("writer"), usage(1, 0, 0));
        std::thread::scope(|scope| {
            let second = scope.spawn(|| pool.get().map(drop));
            while pool.usage("writer").waiting == 0 {
                assert!(!second.is_finished(), "the only connection is in use");
                std::thread::yield_now();
            }
            assert_eq!(pool.usage("writer"), usage(1, 0, 1));
            drop(first);
            second.join().expect("no panic").expect("the connection of the first");
        });
        assert_eq!(pool.usage("writer"), usage(0, 1, 0));
    }

    #[test]
    fn a_readers_connection_does_not_write() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let manager = SqliteManager::new(&directory.path().join("usage.sqlite3"), Duration::from_secs(1), true).expect("a path");
        let mut link = manager.connect().expect("a connection");
        assert!(link.connection.batch_execute("CREATE TABLE t (c INTEGER)").is_err());
    }
}
