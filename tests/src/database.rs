//! A database for a single test: a SQLite file, or a database on the temporary PostgreSQL server of the test run.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use diesel::connection::SimpleConnection as _;
use diesel::sql_types::Text;
use diesel::{Connection as _, PgConnection, QueryableByName, RunQueryDsl as _, SqliteConnection, sql_query};
use serde_json::Value;
use tempfile::TempDir;

use crate::{citus, cluster, tools};

const SERVER: &str = "USAGE_BILLING_TEST_POSTGRES_URL";

/// A database of a test. A database that this type creates is empty, and dropping the value deletes it.
#[derive(Debug)]
pub struct Database {
    url: String,
    /// The directory of a SQLite file. The directory exists until this value is dropped.
    _directory: Option<TempDir>,
    on_server: Option<OnServer>,
}

/// A statement in the log of a PostgreSQL server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedStatement {
    /// The number of the connection's process on the server.
    pub connection: String,
    /// The statement.
    pub text: String,
}

/// A statement and the plan with which PostgreSQL executes it.
#[derive(Debug)]
pub struct Planned {
    /// The SQL text.
    pub statement: String,
    /// The plan in the format of `EXPLAIN (VERBOSE, FORMAT JSON)`.
    pub plan: Value,
}

/// The log of a node of a cluster.
#[derive(Debug)]
pub struct NodeLog {
    /// The statements that the node executed.
    pub statements: Vec<String>,
    /// The commands that the node sent to other nodes.
    pub sent: Vec<String>,
}

#[derive(Debug)]
struct OnServer {
    server: String,
    name: String,
    /// Whether the database is distributed over the nodes of a cluster.
    is_spread: bool,
}

/// Returns the URL of another database on the same server.
pub(crate) fn on_server(server: &str, name: &str) -> String {
    let (address, query) = server.split_once('?').map_or((server, None), |(address, query)| (address, Some(query)));
    let (host, _) = address.rsplit_once('/').expect("the server's URL ends with a database");
    format!("{host}/{name}{}", query.map_or(String::new(), |query| format!("?{query}")))
}

/// Returns a name that no other database of a test has.
fn new_name() -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    format!("acceptance_{}_{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed))
}

impl Database {
    /// Returns a SQLite database whose file does not exist yet.
    ///
    /// # Panics
    /// Panics if no temporary directory can be created.
    pub fn sqlite() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let url = format!("sqlite://{}", directory.path().join("usage-billing.sqlite3").display());
        Self { url, _directory: Some(directory), on_server: None }
    }

    /// Creates a database on the server that the environment names. If it names a Citus cluster, the database is distributed
    /// over its nodes, and has all tables.
    ///
    /// # Panics
    /// Panics if the environment names no server.
    pub fn postgres() -> Self {
        match citus::nodes() {
            Some(nodes) => Self::spread(nodes, citus::template(nodes)),
            None => Self::one_postgres(),
        }
    }

    /// Creates a database on the single server that the environment names.
    ///
    /// # Panics
    /// Panics if the environment names no server.
    pub fn one_postgres() -> Self {
        let server = std::env::var(SERVER).unwrap_or_else(|_| {
            panic!("{SERVER} names no PostgreSQL server: run the tests with `make test`, or under scripts/with-postgres")
        });
        Self::of(&server, "")
    }

    /// Creates a database on the server of another database's URL, with additional options of `CREATE DATABASE`.
    pub(crate) fn of(server: &str, options: &str) -> Self {
        let name = new_name();
        Connection::open(server).execute(&format!("CREATE DATABASE {name} {options}")).expect("a new database");
        let url = on_server(server, &name);
        Self { url, _directory: None, on_server: Some(OnServer { server: server.to_owned(), name, is_spread: false }) }
    }

    /// Copies a distributed database on all nodes.
    fn spread(nodes: &[String], template: &str) -> Self {
        let name = new_name();
        std::thread::scope(|scope| {
            for node in nodes {
                let create = format!("CREATE DATABASE {name} TEMPLATE {template}");
                scope.spawn(move || Connection::open(node).execute(&create).expect("a new database"));
            }
        });
        let server = nodes[0].clone();
        Self { url: on_server(&server, &name), _directory: None, on_server: Some(OnServer { server, name, is_spread: true }) }
    }

    /// Returns whether the database is distributed over the nodes of a cluster.
    pub fn is_spread(&self) -> bool {
        self.on_server.as_ref().is_some_and(|on_server| on_server.is_spread)
    }

    /// Returns the database in a file. The caller creates and deletes the file.
    pub fn at(file: &Path) -> Self {
        Self { url: format!("sqlite://{}", file.display()), _directory: None, on_server: None }
    }

    /// Dumps a PostgreSQL database to a file as the documentation tells operators to.
    ///
    /// # Panics
    /// Panics if the dump fails.
    pub fn dump(&self, file: &Path) {
        tools::succeed(cluster::program("pg_dump").args(["--format=custom", "--dbname", &self.url, "--file"]).arg(file));
    }

    /// Restores a dump into an empty PostgreSQL database as the documentation tells operators to.
    ///
    /// # Panics
    /// Panics if the restore fails.
    pub fn restore(&self, file: &Path) {
        let mut restore = cluster::program("pg_restore");
        tools::succeed(restore.args(["--exit-on-error", "--no-owner", "--dbname", &self.url]).arg(file));
    }

    /// Returns an existing database, which dropping the value does not delete.
    pub fn there(url: &str) -> Self {
        Self { url: url.to_owned(), _directory: None, on_server: None }
    }

    /// Returns an unused copy of this database, which must also be unused. On SQLite, the copy contains the database
    /// file only, without the files beside it.
    ///
    /// # Panics
    /// Panics if the database cannot be copied.
    pub fn copied(&self) -> Self {
        match (&self.on_server, citus::nodes()) {
            (Some(OnServer { name, is_spread: true, .. }), Some(nodes)) => {
                citus::close(nodes, name);
                let copy = Self::spread(nodes, name);
                citus::open(nodes, name);
                return copy;
            }
            (Some(OnServer { server, name, .. }), _) => return Self::of(server, &format!("TEMPLATE {name}")),
            (None, _) => {}
        }
        let copy = Self::sqlite();
        let file = |url: &str| url.strip_prefix("sqlite://").expect("a file").to_owned();
        std::fs::copy(file(&self.url), file(&copy.url)).expect("a copy");
        copy
    }

    /// Returns the database URL in the form that the binary accepts.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Executes SQL without the service. Tests use it to change immutable data, or data that only time changes.
    ///
    /// # Panics
    /// Panics if the database rejects the SQL.
    pub fn execute(&self, sql: &str) {
        self.try_execute(sql).unwrap_or_else(|reason| panic!("{sql}: {reason}"));
    }

    /// Executes SQL that the database may reject.
    ///
    /// # Errors
    /// Returns the error message of the database.
    pub fn try_execute(&self, sql: &str) -> Result<(), String> {
        Connection::open(&self.url).execute(sql)
    }

    /// Returns the statements that this database executes during some work, from the log of the PostgreSQL server. The list is
    /// empty before [`Self::log_statements`].
    ///
    /// # Panics
    /// Panics if the database is not on the server that `scripts/with-postgres` starts. The log of that server
    /// distinguishes databases and connections.
    pub fn statements_during(&self, work: impl FnOnce()) -> Vec<LoggedStatement> {
        self.logged_during(&["LOG:  execute ", "LOG:  statement: "], work)
    }

    /// Returns the statements like [`Self::statements_during`], with the values of their parameters. The values are a separate line
    /// after their statement.
    ///
    /// # Panics
    /// Panics like [`Self::statements_during`].
    pub fn statements_and_parameters_during(&self, work: impl FnOnce()) -> Vec<String> {
        let logged = self.logged_during(&["LOG:  execute ", "LOG:  statement: ", "DETAIL:  parameters: "], work);
        logged.into_iter().map(|logged| logged.text).collect()
    }

    fn logged_during(&self, kinds: &[&str], work: impl FnOnce()) -> Vec<LoggedStatement> {
        let server = &self.on_server.as_ref().expect("a PostgreSQL database").server;
        // All tests write to this log, so it soon has hundreds of megabytes.
        let from = log_size(server);
        work();
        self.logged(&from, kinds)
    }

    /// Returns the lines of some kinds after a position of the log.
    fn logged(&self, from: &str, kinds: &[&str]) -> Vec<LoggedStatement> {
        let on_server = self.on_server.as_ref().expect("a PostgreSQL database");
        let log = log_from(&on_server.server, from);
        let logged = |line: &str| {
            let (connection, line) = line.strip_prefix(on_server.name.as_str())?.strip_prefix(' ')?.split_once(' ')?;
            let text = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
            Some(LoggedStatement { connection: connection.to_owned(), text: text.to_owned() })
        };
        log.lines().filter_map(logged).collect()
    }

    /// Makes every node of a cluster log the statements of new connections, and the commands that it sends to other nodes.
    ///
    /// # Panics
    /// Panics if the database is not distributed.
    pub fn log_on_nodes(&self) {
        let name = &self.on_server.as_ref().expect("a distributed database").name;
        for node in citus::nodes().expect("a cluster") {
            for setting in ["log_statement = 'all'", "citus.log_remote_commands = on", "log_min_messages = notice"] {
                Connection::open(node).execute(&format!("ALTER DATABASE {name} SET {setting}")).expect(setting);
            }
        }
    }

    /// Returns what each node of a cluster logs during some work: the statements that it executes for clients or other nodes, and
    /// the commands that it sends to other nodes.
    ///
    /// # Panics
    /// Panics if the database is not distributed, or if the nodes do not log to `server.log` with the name of the database in
    /// front of each line.
    pub fn on_nodes(&self, work: impl FnOnce()) -> Vec<NodeLog> {
        let name = &self.on_server.as_ref().expect("a distributed database").name;
        let nodes = citus::nodes().expect("a cluster");
        let before: Vec<String> = nodes.iter().map(|node| log_size(node)).collect();
        work();
        let read = |(node, from): (&String, String)| {
            let log = log_from(node, &from);
            let own: Vec<&str> = log.lines().filter_map(|line| line.strip_prefix(name.as_str())?.strip_prefix(' ')).collect();
            let with = |kinds: &[&str]| {
                let text = |line: &&str| kinds.iter().find_map(|kind| line.strip_prefix(kind)).map(ToOwned::to_owned);
                own.iter().filter_map(text).collect()
            };
            NodeLog { statements: with(&["LOG:  execute ", "LOG:  statement: "]), sent: with(&["NOTICE:  issuing "]) }
        };
        nodes.iter().zip(before).map(read).collect()
    }

    /// Makes PostgreSQL log every statement of new connections.
    ///
    /// # Panics
    /// Panics if the database is not a PostgreSQL database.
    pub fn log_statements(&self) {
        let on_server = self.on_server.as_ref().expect("a PostgreSQL database");
        self.execute(&format!("ALTER DATABASE {} SET log_statement = 'all'", on_server.name));
    }

    /// Reverts [`Self::log_statements`], also for new connections only.
    ///
    /// # Panics
    /// Panics if the database is not a PostgreSQL database.
    pub fn log_no_statements(&self) {
        let on_server = self.on_server.as_ref().expect("a PostgreSQL database");
        self.execute(&format!("ALTER DATABASE {} RESET log_statement", on_server.name));
    }

    /// Makes PostgreSQL log the generic plan of every statement of new connections. The generic plan does not depend on
    /// the parameter values.
    ///
    /// # Panics
    /// Panics if the database is not a PostgreSQL database, or if the server lacks PostgreSQL's module `auto_explain`.
    pub fn log_plans(&self) {
        let name = &self.on_server.as_ref().expect("a PostgreSQL database").name;
        let settings = [
            "session_preload_libraries = 'auto_explain'",
            "auto_explain.log_min_duration = 0",
            "auto_explain.log_verbose = on",
            "auto_explain.log_format = json",
            "plan_cache_mode = force_generic_plan",
        ];
        // PostgreSQL knows the settings of a module only after it has loaded the module.
        let set = settings.map(|setting| format!("ALTER DATABASE {name} SET {setting}"));
        self.execute(&format!("LOAD 'auto_explain'; {}", set.join("; ")));
    }

    /// Returns the plans of this database from the log of the PostgreSQL server. The list is empty before
    /// [`Self::log_plans`].
    ///
    /// # Panics
    /// Panics like [`Self::statements_during`].
    pub fn logged_plans(&self) -> Vec<Planned> {
        let planned = |logged: LoggedStatement| {
            let logged: Value = serde_json::from_str(logged.text.split_once("plan: ")?.1).expect("a plan");
            Some(Planned { statement: logged["Query Text"].as_str()?.to_owned(), plan: logged["Plan"].clone() })
        };
        self.logged("0", &["LOG:  duration: "]).into_iter().filter_map(planned).collect()
    }

    /// Returns the only column of a query result.
    ///
    /// # Panics
    /// Panics if the database rejects the query.
    pub fn ask(&self, query: &str) -> Vec<String> {
        Connection::open(&self.url).ask(query)
    }

    /// Blocks changes to a table until the returned lock is dropped. On SQLite, it blocks changes to the whole
    /// database.
    ///
    /// # Panics
    /// Panics if the database does not grant the lock.
    pub fn hold_writes(&self, table: &str) -> WriteLock {
        let mut connection = Connection::open(&self.url);
        let lock = match &connection {
            Connection::Sqlite(_) => "BEGIN IMMEDIATE".to_owned(),
            Connection::Postgres(_) => format!("BEGIN; LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE"),
        };
        connection.execute(&lock).expect("the lock");
        WriteLock { _connection: connection }
    }

    /// Returns whether the database is a SQLite file.
    pub fn is_sqlite(&self) -> bool {
        self.url.starts_with("sqlite:")
    }
}

/// A connection with a transaction that locks data against changes by others. Dropping the connection rolls the
/// transaction back.
pub struct WriteLock {
    _connection: Connection,
}

impl Drop for Database {
    fn drop(&mut self) {
        let Some(OnServer { server, name, is_spread }) = &self.on_server else { return };
        let nodes = if *is_spread { citus::nodes().unwrap_or_default() } else { std::slice::from_ref(server) };
        for node in nodes {
            if let Err(reason) = Connection::open(node).execute(&format!("DROP DATABASE {name} WITH (FORCE)")) {
                eprintln!("{node}: {} stays behind: {reason}", self.url);
            }
        }
    }
}

/// A connection of the tests, separate from those of the service.
enum Connection {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

#[derive(QueryableByName)]
struct Cell {
    #[diesel(sql_type = Text)]
    value: String,
}

/// Returns the size of the log of a PostgreSQL server.
fn log_size(server: &str) -> String {
    Connection::open(server).ask("SELECT size FROM pg_stat_file('server.log')").concat()
}

/// Returns the log of a PostgreSQL server after a position, each statement on one line: further lines begin with a tab.
fn log_from(server: &str, from: &str) -> String {
    Connection::open(server).ask(&format!("SELECT pg_read_file('server.log', {from}, 500000000)")).concat().replace("\n\t", " ")
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

    /// Returns the only column of a query result, as text.
    fn ask(&mut self, query: &str) -> Vec<String> {
        let text = format!("WITH answer(value) AS ({query}) SELECT CAST(value AS TEXT) AS value FROM answer");
        let cells = match self {
            Self::Sqlite(connection) => sql_query(text).load::<Cell>(connection),
            Self::Postgres(connection) => sql_query(text).load::<Cell>(connection),
        };
        cells.unwrap_or_else(|error| panic!("{query}: {error}")).into_iter().map(|cell| cell.value).collect()
    }
}
