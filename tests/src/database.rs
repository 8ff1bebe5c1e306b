//! A database of a test's own: a file, or a database in the throw-away PostgreSQL server of the test run.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use diesel::connection::SimpleConnection as _;
use diesel::sql_types::Text;
use diesel::{Connection as _, PgConnection, QueryableByName, RunQueryDsl as _, SqliteConnection, sql_query};
use serde_json::Value;
use tempfile::TempDir;

use crate::{cluster, tools};

const SERVER: &str = "USAGE_BILLING_TEST_POSTGRES_URL";

/// An empty database, removed at the end.
#[derive(Debug)]
pub struct Database {
    url: String,
    /// Where a file is, for as long as it is needed.
    _directory: Option<TempDir>,
    on_server: Option<OnServer>,
}

/// A statement, and how PostgreSQL carries it out.
#[derive(Debug)]
pub struct Planned {
    /// Its text.
    pub statement: String,
    /// Its plan, as `EXPLAIN (VERBOSE, FORMAT JSON)` tells it.
    pub plan: Value,
}

#[derive(Debug)]
struct OnServer {
    server: String,
    name: String,
}

impl Database {
    /// A file that isn't there yet.
    ///
    /// # Panics
    /// When no temporary directory can be made.
    pub fn sqlite() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let url = format!("sqlite://{}", directory.path().join("usage-billing.sqlite3").display());
        Self { url, _directory: Some(directory), on_server: None }
    }

    /// A new database of the server that the environment names.
    ///
    /// # Panics
    /// Without a server.
    pub fn postgres() -> Self {
        let server = std::env::var(SERVER).unwrap_or_else(|_| {
            panic!("{SERVER} names no PostgreSQL server: run the tests with `make test`, or under scripts/with-postgres")
        });
        Self::of(&server, "")
    }

    /// A new database of a server, by the URL of another one there, with what `CREATE DATABASE` is told besides.
    pub(crate) fn of(server: &str, options: &str) -> Self {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let name = format!("acceptance_{}_{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        Connection::open(server).execute(&format!("CREATE DATABASE {name} {options}")).expect("a new database");
        let (address, query) = server.split_once('?').map_or((server, None), |(address, query)| (address, Some(query)));
        let (host, _) = address.rsplit_once('/').expect("the server's URL ends with a database");
        let url = format!("{host}/{name}{}", query.map_or(String::new(), |query| format!("?{query}")));
        Self { url, _directory: None, on_server: Some(OnServer { server: server.to_owned(), name }) }
    }

    /// A file that somebody else made and removes.
    pub fn at(file: &Path) -> Self {
        Self { url: format!("sqlite://{}", file.display()), _directory: None, on_server: None }
    }

    /// Writes all of a PostgreSQL database to a file, as operators are told to.
    ///
    /// # Panics
    /// When that fails.
    pub fn dump(&self, file: &Path) {
        tools::succeed(cluster::program("pg_dump").args(["--format=custom", "--dbname", &self.url, "--file"]).arg(file));
    }

    /// Fills an empty PostgreSQL database from such a file, likewise.
    ///
    /// # Panics
    /// When that fails.
    pub fn restore(&self, file: &Path) {
        let mut restore = cluster::program("pg_restore");
        tools::succeed(restore.args(["--exit-on-error", "--no-owner", "--dbname", &self.url]).arg(file));
    }

    /// One that is there, and stays.
    pub fn there(url: &str) -> Self {
        Self { url: url.to_owned(), _directory: None, on_server: None }
    }

    /// A copy that nobody uses, of one that nobody uses; of a file alone, without the files beside it.
    ///
    /// # Panics
    /// When it can't be copied.
    pub fn copied(&self) -> Self {
        if let Some(OnServer { server, name }) = &self.on_server {
            return Self::of(server, &format!("TEMPLATE {name}"));
        }
        let copy = Self::sqlite();
        let file = |url: &str| url.strip_prefix("sqlite://").expect("a file").to_owned();
        std::fs::copy(file(&self.url), file(&copy.url)).expect("a copy");
        copy
    }

    /// Its address, as the binary takes it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs SQL behind the service's back: to change what mustn't change, or what only time changes.
    ///
    /// # Panics
    /// When it is refused.
    pub fn execute(&self, sql: &str) {
        self.try_execute(sql).unwrap_or_else(|reason| panic!("{sql}: {reason}"));
    }

    /// Runs SQL that may be refused.
    ///
    /// # Errors
    /// What the database says.
    pub fn try_execute(&self, sql: &str) -> Result<(), String> {
        Connection::open(&self.url).execute(sql)
    }

    /// The statements that the PostgreSQL server's log has of this database; none before they are asked to be logged.
    ///
    /// # Panics
    /// When it isn't a database of the server that `scripts/with-postgres` starts, whose log tells databases apart.
    pub fn logged_statements(&self) -> Vec<String> {
        self.logged(&["LOG:  execute ", "LOG:  statement: "])
    }

    /// The same with the values of their parameters, each in a line of its own behind its statement.
    ///
    /// # Panics
    /// Likewise.
    pub fn logged_statements_and_parameters(&self) -> Vec<String> {
        self.logged(&["LOG:  execute ", "LOG:  statement: ", "DETAIL:  parameters: "])
    }

    fn logged(&self, kinds: &[&str]) -> Vec<String> {
        let on_server = self.on_server.as_ref().expect("a PostgreSQL database");
        // Further lines of a statement begin with a tab.
        let log = Connection::open(&on_server.server).ask("SELECT pg_read_file('server.log')").concat().replace("\n\t", " ");
        let of_database = |line: &str| line.strip_prefix(on_server.name.as_str())?.strip_prefix(' ').map(ToOwned::to_owned);
        let statement = |line: String| kinds.iter().find_map(|kind| line.strip_prefix(kind)).map(ToOwned::to_owned);
        log.lines().filter_map(of_database).filter_map(statement).collect()
    }

    /// Has PostgreSQL log every statement of connections made from now on.
    ///
    /// # Panics
    /// When it isn't a PostgreSQL database.
    pub fn log_statements(&self) {
        let on_server = self.on_server.as_ref().expect("a PostgreSQL database");
        self.execute(&format!("ALTER DATABASE {} SET log_statement = 'all'", on_server.name));
    }

    /// Takes [`Self::log_statements`] back, likewise for connections made from now on.
    ///
    /// # Panics
    /// When it isn't a PostgreSQL database.
    pub fn log_no_statements(&self) {
        let on_server = self.on_server.as_ref().expect("a PostgreSQL database");
        self.execute(&format!("ALTER DATABASE {} RESET log_statement", on_server.name));
    }

    /// Has PostgreSQL log the plan of every statement of connections made from now on, as it is whatever the values.
    ///
    /// # Panics
    /// When it isn't a PostgreSQL database, or the server hasn't its own module `auto_explain`.
    pub fn log_plans(&self) {
        let name = &self.on_server.as_ref().expect("a PostgreSQL database").name;
        let settings = [
            "session_preload_libraries = 'auto_explain'",
            "auto_explain.log_min_duration = 0",
            "auto_explain.log_verbose = on",
            "auto_explain.log_format = json",
            "plan_cache_mode = force_generic_plan",
        ];
        // A module's settings are known once it is there.
        let set = settings.map(|setting| format!("ALTER DATABASE {name} SET {setting}"));
        self.execute(&format!("LOAD 'auto_explain'; {}", set.join("; ")));
    }

    /// The plans that the PostgreSQL server's log has of this database; none before they are asked to be logged.
    ///
    /// # Panics
    /// As [`Self::logged_statements`].
    pub fn logged_plans(&self) -> Vec<Planned> {
        let planned = |line: String| {
            let logged: Value = serde_json::from_str(line.split_once("plan: ")?.1).expect("a plan");
            Some(Planned { statement: logged["Query Text"].as_str()?.to_owned(), plan: logged["Plan"].clone() })
        };
        self.logged(&["LOG:  duration: "]).into_iter().filter_map(planned).collect()
    }

    /// The only column of what it answers.
    ///
    /// # Panics
    /// When it is refused.
    pub fn ask(&self, query: &str) -> Vec<String> {
        Connection::open(&self.url).ask(query)
    }

    /// Lets nobody change a table any more, until what is answered is dropped; on SQLite nobody changes anything.
    ///
    /// # Panics
    /// When that isn't possible.
    pub fn hold_writes(&self, table: &str) -> WriteLock {
        let mut connection = Connection::open(&self.url);
        let lock = match &connection {
            Connection::Sqlite(_) => "BEGIN IMMEDIATE".to_owned(),
            Connection::Postgres(_) => format!("BEGIN; LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE"),
        };
        connection.execute(&lock).expect("the lock");
        WriteLock { _connection: connection }
    }

    /// Whether it is a file.
    pub fn is_sqlite(&self) -> bool {
        self.url.starts_with("sqlite:")
    }
}

/// A connection in a transaction that holds what others would change. Dropping it rolls the transaction back.
pub struct WriteLock {
    _connection: Connection,
}

impl Drop for Database {
    fn drop(&mut self) {
        let Some(OnServer { server, name }) = &self.on_server else { return };
        if let Err(reason) = Connection::open(server).execute(&format!("DROP DATABASE {name} WITH (FORCE)")) {
            eprintln!("{} stays behind: {reason}", self.url);
        }
    }
}

/// A connection of the tests' own.
enum Connection {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

#[derive(QueryableByName)]
struct Cell {
    #[diesel(sql_type = Text)]
    value: String,
}

impl Connection {
    fn open(url: &str) -> Self {
        let connected = match url.strip_prefix("sqlite://") {
            Some(file) => SqliteConnection::establish(file).map(Self::Sqlite),
            None => PgConnection::establish(url).map(Self::Postgres),
        };
        let mut connection = connected.unwrap_or_else(|error| panic!("{url}: {error}"));
        if let Self::Sqlite(_) = connection {
            connection.execute("PRAGMA busy_timeout = 30000").expect("a setting");
        }
        connection
    }

    fn execute(&mut self, sql: &str) -> Result<(), String> {
        let done = match self {
            Self::Sqlite(connection) => connection.batch_execute(sql),
            Self::Postgres(connection) => connection.batch_execute(sql),
        };
        done.map_err(|error| error.to_string())
    }

    /// The only column of what a query answers, as text.
    fn ask(&mut self, query: &str) -> Vec<String> {
        let text = format!("WITH answer(value) AS ({query}) SELECT CAST(value AS TEXT) AS value FROM answer");
        let cells = match self {
            Self::Sqlite(connection) => sql_query(text).load::<Cell>(connection),
            Self::Postgres(connection) => sql_query(text).load::<Cell>(connection),
        };
        cells.unwrap_or_else(|error| panic!("{query}: {error}")).into_iter().map(|cell| cell.value).collect()
    }
}
