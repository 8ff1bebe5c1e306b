//! A real store for tests of use cases and of the HTTP API: a SQLite file, in memory if the system has an in-memory
//! file system.
//!
//! ```
//! use billing_domain::ports::{Access, Insertion, StoreError, transact};
//! use billing_testkit::{CountingIds, fixtures};
//! use billing_teststore::TestStore;
//!
//! let (store, ids) = (TestStore::new(), CountingIds::new());
//! let organization = fixtures::organization(&ids);
//! let done = transact::<_, StoreError>(&store, Access::Write, |tx| tx.insert_organization(&organization));
//! assert!(matches!(done, Ok(Insertion::Done)));
//! ```
#![allow(clippy::expect_used, reason = "a test without its store fails")]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use billing_domain::ports::{Access, RollBack, Store, StoreError, StoreResult, Tx};
use billing_storage::{Database, DatabaseOptions, DatabaseUrl};
use diesel::prelude::*;
use diesel::sql_types::Text;
use diesel::sqlite::SqliteConnection;
use tempfile::TempDir;

/// Linux's in-memory file system. No other part of this crate depends on Linux.
const IN_MEMORY: &str = "/dev/shm";
/// The wait is long enough for a machine that compiles during the tests.
const OPTIONS: DatabaseOptions =
    DatabaseOptions { connections: 8, wait: Duration::from_secs(20), to_serve: false, nodes: Vec::new(), is_sandbox: false };

/// A migrated and empty SQLite file. Migrating takes longer than most tests, so each process migrates once.
static TEMPLATE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let directory = new_directory();
    let file = file_in(&directory);
    let database = open(&file);
    database.migrate().expect("the migrations run");
    database.close().expect("nobody else has the file open");
    std::fs::read(&file).expect("the closed database is one file")
});

/// A separate SQLite store that is deleted when dropped. It can simulate failures.
#[derive(Debug)]
pub struct TestStore {
    // The field order closes the database before the directory is deleted.
    database: Database,
    extra_runs: AtomicU32,
    is_unavailable: AtomicBool,
    directory: TempDir,
}

impl TestStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        let directory = new_directory();
        std::fs::write(file_in(&directory), &*TEMPLATE).expect("the directory has room");
        Self::in_directory(directory)
    }

    /// Creates another store with the same content.
    pub fn fork(&self) -> Self {
        let directory = new_directory();
        let file = file_in(&directory);
        std::fs::write(&file, []).expect("the directory has room");
        self.database.copy_into(&file).expect("a file can be copied");
        Self::in_directory(directory)
    }

    fn in_directory(directory: TempDir) -> Self {
        let database = open(&file_in(&directory));
        Self { database, extra_runs: AtomicU32::new(0), is_unavailable: AtomicBool::new(false), directory }
    }

    /// Runs and rolls back the work of every later write this many times before the final run, as a database does after
    /// conflicts.
    pub fn run_in_vain(&self, times: u32) {
        self.extra_runs.store(times, Ordering::Relaxed);
    }

    /// Makes every later transaction fail with [`StoreError::Unavailable`], or succeed again.
    pub fn set_unavailable(&self, is_unavailable: bool) {
        self.is_unavailable.store(is_unavailable, Ordering::Relaxed);
    }

    /// Returns every row of every table as text in a fixed order, so that stores with equal contents compare equal.
    pub fn contents(&self) -> Vec<String> {
        let path = file_in(&self.directory);
        let mut connection = SqliteConnection::establish(path.to_str().expect("UTF-8")).expect("the store's file");
        let queries = r#"SELECT 'SELECT ' || quote(tables.name || ': ') || ' || ' || (
                SELECT group_concat('quote("' || columns.name || '")', ' || '', '' || ') FROM pragma_table_info(tables.name) AS columns
            ) || ' AS text FROM ' || tables.name || ' ORDER BY 1' AS text
            FROM sqlite_schema AS tables WHERE type = 'table' AND tables.name NOT LIKE 'sqlite_%' ORDER BY tables.name"#;
        connection
            .transaction(|connection| {
                let queries: Vec<Row> = diesel::sql_query(queries).load(connection)?;
                let mut rows: Vec<Row> = Vec::new();
                for Row { text } in queries {
                    rows.extend(diesel::sql_query(text).load::<Row>(connection)?);
                }
                diesel::QueryResult::Ok(rows.into_iter().map(|row| row.text).collect())
            })
            .expect("the store can be read")
    }

    /// Returns the directory of the store's files, for a process that never drops the store.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl Default for TestStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for TestStore {
    fn run(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()> {
        self.check_availability()?;
        if access == Access::Write {
            for _ in 0..self.extra_runs.load(Ordering::Relaxed) {
                self.database.run(access, &mut |tx| work(tx).and(Err(RollBack)))?;
            }
        }
        self.database.run(access, work)
    }

    fn ready(&self) -> StoreResult<()> {
        self.check_availability()?;
        self.database.ready()
    }
}

impl TestStore {
    fn check_availability(&self) -> StoreResult<()> {
        if self.is_unavailable.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable("switched off by a test".into()));
        }
        Ok(())
    }
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    text: String,
}

fn new_directory() -> TempDir {
    let mut builder = tempfile::Builder::new();
    builder.prefix("usage-billing-test.");
    let directory = if Path::new(IN_MEMORY).is_dir() { builder.tempdir_in(IN_MEMORY) } else { builder.tempdir() };
    directory.expect("a directory for a test's database")
}

fn file_in(directory: &TempDir) -> PathBuf {
    directory.path().join("usage.sqlite3")
}

fn open(file: &Path) -> Database {
    let url = DatabaseUrl::parse(&format!("sqlite://{}", file.display())).expect("the address of a file");
    Database::open(&url, OPTIONS).expect("the database opens")
}

#[cfg(test)]
mod tests {
    use billing_domain::ports::{Insertion, transact};
    use billing_domain::refs::OrganizationId;
    use billing_testkit::{CountingIds, fixtures};

    use super::*;

    fn next_number(store: &TestStore, organization: OrganizationId) -> StoreResult<u64> {
        transact(store, Access::Write, |tx| tx.next_contract_number(organization))
    }

    fn with_organization() -> (TestStore, OrganizationId) {
        let (store, organization) = (TestStore::new(), fixtures::organization(&CountingIds::new()));
        let stored = transact::<_, StoreError>(&store, Access::Write, |tx| tx.insert_organization(&organization));
        assert_eq!(stored.expect("stored"), Insertion::Done);
        (store, organization.id)
    }

    #[test]
    fn work_run_in_vain_leaves_nothing_and_is_counted_once() {
        let (store, organization) = with_organization();
        store.run_in_vain(2);
        let mut runs = 0;
        let number = transact::<_, StoreError>(&store, Access::Write, |tx| {
            runs += 1;
            tx.next_contract_number(organization)
        });
        assert_eq!((number.expect("committed"), runs), (1, 3));
    }

    #[test]
    fn an_unavailable_store_runs_nothing() {
        let (store, organization) = with_organization();
        store.set_unavailable(true);
        assert!(matches!(store.ready(), Err(StoreError::Unavailable(_))));
        assert!(matches!(next_number(&store, organization), Err(StoreError::Unavailable(_))));
        store.set_unavailable(false);
        assert_eq!(next_number(&store, organization).expect("committed"), 1);
    }

    #[test]
    fn a_fork_has_the_same_content_until_one_of_them_changes() {
        let (store, organization) = with_organization();
        next_number(&store, organization).expect("committed");
        let fork = store.fork();
        assert_eq!(fork.contents(), store.contents());
        assert!(store.contents().iter().any(|row| row.starts_with("number_series: ")), "{:?}", store.contents());
        assert_eq!(next_number(&fork, organization).expect("committed"), 2);
        assert_ne!(fork.contents(), store.contents());
        assert_eq!(next_number(&store, organization).expect("committed"), 2);
        assert_eq!(fork.contents(), store.contents());
    }

    #[test]
    fn a_dropped_store_leaves_no_file() {
        let directory = TestStore::new().directory().to_owned();
        assert!(!directory.exists());
    }
}
