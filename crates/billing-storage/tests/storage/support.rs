//! Databases that each belong to one test.

use std::hash::Hasher as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use billing_domain::ports::{Access, RollBack, Store, StoreError, StoreResult, Tx, transact};
use billing_storage::{Database, DatabaseOptions, DatabaseUrl};
use diesel::connection::{Connection as _, SimpleConnection as _};
use diesel::pg::PgConnection;
use diesel::sqlite::SqliteConnection;
use tempfile::TempDir;

use crate::citus;

/// The environment variable with the URL of a temporary PostgreSQL cluster's admin database, as a superuser.
const SERVER_VARIABLE: &str = "USAGE_BILLING_TEST_POSTGRES_URL";

/// The wait is long enough for a machine that compiles during the tests.
pub(crate) const OPTIONS: DatabaseOptions =
    DatabaseOptions { connections: 24, wait: Duration::from_secs(20), to_serve: false, nodes: Vec::new(), is_sandbox: false };

/// A database that is deleted after its test.
pub(crate) struct TestDatabase {
    pub(crate) database: Database,
    pub(crate) url: String,
    _place: Place,
}

#[expect(dead_code, reason = "held until the test ends")]
enum Place {
    Directory(TempDir),
    Server(OnServer),
}

/// A PostgreSQL database that is dropped with this value, on each of these servers.
struct OnServer {
    admins: Vec<String>,
    name: String,
}

impl Drop for OnServer {
    fn drop(&mut self) {
        for admin in &self.admins {
            let drop = || {
                let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
                PgConnection::establish(admin).map(|mut admin| admin.batch_execute(&drop))
            };
            // Background work of a cluster may connect at the same moment.
            let dropped = (0..4).map(|_| drop()).find(|dropped| matches!(dropped, Ok(Ok(())))).unwrap_or_else(drop);
            if !matches!(dropped, Ok(Ok(()))) && !std::thread::panicking() {
                panic!("the test database {} was not dropped: {dropped:?}", self.name);
            }
        }
    }
}

/// A connection besides those of the store, to inspect and tamper with the database.
pub(crate) enum Beside {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Beside {
    pub(crate) fn execute(&mut self, sql: &str) -> diesel::QueryResult<()> {
        match self {
            Self::Sqlite(connection) => connection.batch_execute(sql),
            Self::Postgres(connection) => connection.batch_execute(sql),
        }
    }

    /// Returns the only value of a query, from the column `text`.
    pub(crate) fn text(&mut self, sql: &str) -> String {
        use diesel::RunQueryDsl as _;
        #[derive(diesel::QueryableByName)]
        struct Row {
            #[diesel(sql_type = diesel::sql_types::Text)]
            text: String,
        }
        let query = diesel::sql_query(sql);
        let row: diesel::QueryResult<Row> = match self {
            Self::Sqlite(connection) => query.get_result(connection),
            Self::Postgres(connection) => query.get_result(connection),
        };
        row.expect(sql).text
    }
}

impl TestDatabase {
    pub(crate) fn beside(&self) -> Beside {
        match self.url.strip_prefix("sqlite://") {
            Some(path) => {
                let mut connection = SqliteConnection::establish(path).expect("the database's file");
                connection.batch_execute("PRAGMA busy_timeout = 20000").expect("a timeout");
                Beside::Sqlite(connection)
            }
            None => Beside::Postgres(PgConnection::establish(&self.url).expect("the database's server")),
        }
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        self.url.starts_with("sqlite:")
    }
}

pub(crate) fn open(url: &str) -> Database {
    let parsed = DatabaseUrl::parse(url).expect(url);
    Database::open(&parsed, OPTIONS).expect("the database opens")
}

/// Creates a SQLite file without tables.
pub(crate) fn empty_sqlite() -> TestDatabase {
    let directory = TempDir::new().expect("a directory");
    let url = format!("sqlite://{}/usage.sqlite3", directory.path().display());
    TestDatabase { database: open(&url), url, _place: Place::Directory(directory) }
}

/// Creates a PostgreSQL database without tables.
pub(crate) fn empty_postgres() -> TestDatabase {
    on_server(vec![admin()], "template1")
}

fn admin() -> String {
    std::env::var(SERVER_VARIABLE).unwrap_or_else(|_| {
        panic!("{SERVER_VARIABLE} is not set: run `make test`, which starts a PostgreSQL cluster for the tests")
    })
}

/// Creates a database as a copy of another, on each of these servers.
fn on_server(admins: Vec<String>, template: &str) -> TestDatabase {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("storage_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    for admin in &admins {
        let mut connection = PgConnection::establish(admin).expect("the test cluster");
        connection.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {template}")).expect("a new database");
    }
    let url = with_database(&admins[0], &name);
    let place = Place::Server(OnServer { admins, name });
    TestDatabase { database: open(&url), url, _place: place }
}

/// Returns the URL of another database on the same server.
pub(crate) fn with_database(admin: &str, name: &str) -> String {
    let (address, parameters) = admin.split_once('?').map_or((admin, None), |(address, parameters)| (address, Some(parameters)));
    let start = address.find("://").map_or(0, |at| at + 3);
    let server = address[start..].find('/').map_or(address, |at| &address[..start + at]);
    let parameters = parameters.map(|parameters| format!("?{parameters}")).unwrap_or_default();
    format!("{server}/{name}{parameters}")
}

pub(crate) fn sqlite() -> TestDatabase {
    let test = empty_sqlite();
    test.database.migrate().expect("the created tables");
    test
}

/// Creates a PostgreSQL database with tables. The tables are copied, because creating them takes a second. If the environment
/// names a Citus cluster, the tables are distributed over its nodes.
pub(crate) fn postgres() -> TestDatabase {
    match citus::nodes() {
        Some(nodes) => {
            let template = citus::template(&nodes);
            on_server(nodes, &template)
        }
        None => one_postgres(),
    }
}

/// Creates a database without tables on the cluster that the environment names. The database has the extension and knows all
/// nodes.
pub(crate) fn empty_spread() -> TestDatabase {
    let nodes = citus::nodes().expect("a cluster");
    let test = on_server(nodes.clone(), "template1");
    let name = test.beside().text("SELECT current_database()::text AS text");
    citus::join(&nodes, &name);
    // The connections of the database were opened before it had the extension.
    TestDatabase { database: open(&test.url), ..test }
}

/// Creates a database with tables on a single PostgreSQL server.
pub(crate) fn one_postgres() -> TestDatabase {
    let admin = admin();
    let template = migrated_template(&admin);
    on_server(vec![admin], &template)
}

/// The key of the advisory lock during the creation of a template.
const TEMPLATE_LOCK: i64 = 0x7465_6d70_6c61_7465;

/// Returns the name of the migrated database that tests copy. The first process that needs it creates it. It remains until the
/// cluster is deleted.
fn migrated_template(admin: &str) -> String {
    let name = format!("storage_template_{:x}", migrations_hash());
    let mut connection = PgConnection::establish(admin).expect("the test cluster");
    connection.batch_execute(&format!("SELECT pg_advisory_lock({TEMPLATE_LOCK})")).expect("the lock");
    let exists = diesel::sql_query(format!("SELECT 1 FROM pg_database WHERE datname = '{name}'"));
    if diesel::RunQueryDsl::execute(exists, &mut connection).expect("the databases") == 0 {
        // Uses another name until the template is complete.
        connection.batch_execute(&format!("DROP DATABASE IF EXISTS {name}_new WITH (FORCE)")).expect("no incomplete template");
        connection.batch_execute(&format!("CREATE DATABASE {name}_new")).expect("a template");
        open(&with_database(admin, &format!("{name}_new"))).migrate().expect("the created tables");
        let closed = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}_new'");
        connection.batch_execute(&closed).expect("no open connections");
        connection.batch_execute(&format!("ALTER DATABASE {name}_new RENAME TO {name}")).expect("a complete template");
    }
    name
}

/// Returns a hash of the migrations, so that changed migrations get another template.
pub(crate) fn migrations_hash() -> u64 {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations/postgres");
    let entries = std::fs::read_dir(folder).expect("the migrations");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a migration").path().join("up.sql")).collect();
    files.sort();
    let mut hash = std::hash::DefaultHasher::new();
    for file in files {
        hash.write(&std::fs::read(file).expect("a migration"));
    }
    hash.finish()
}

impl Store for TestDatabase {
    fn run(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()> {
        self.database.run(access, work)
    }

    fn ready(&self) -> StoreResult<()> {
        self.database.ready()
    }

    fn shard_count(&self) -> usize {
        self.database.shard_count()
    }
}

/// Runs work in a write transaction and commits it.
pub(crate) fn write<T>(store: &dyn Store, mut work: impl FnMut(&mut dyn Tx) -> StoreResult<T>) -> T {
    transact::<T, StoreError>(store, Access::Write, |tx| work(tx)).expect("committed work")
}

/// Runs work in a read transaction.
pub(crate) fn read<T>(store: &dyn Store, mut work: impl FnMut(&mut dyn Tx) -> StoreResult<T>) -> StoreResult<T> {
    transact::<T, StoreError>(store, Access::Read, |tx| work(tx))
}

/// Creates one test of each function per database.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $name() {
                super::$name(&crate::support::sqlite());
            })+
        }
        mod postgres {
            $(#[test]
            fn $name() {
                super::$name(&crate::support::postgres());
            })+
        }
    };
}
pub(crate) use on_both;

/// Does the same on a single PostgreSQL server, for tests that tamper with tables.
macro_rules! on_one_server {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $name() {
                super::$name(&crate::support::sqlite());
            })+
        }
        mod postgres {
            $(#[test]
            fn $name() {
                super::$name(&crate::support::one_postgres());
            })+
        }
    };
}
pub(crate) use on_one_server;
