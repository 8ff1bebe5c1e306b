//! A SQLite file that another program truncates, overwrites, replaces or removes while a server uses it.

use std::path::{Path, PathBuf};

use billing_domain::ports::{Access, DatabaseReplaced, Store as _, StoreError, StoreResult};
use billing_storage::{Database, DatabaseOptions, DatabaseUrl};
use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, SqliteConnection};
use tempfile::TempDir;

use crate::support::OPTIONS;

/// A database that a server uses, and its directory.
struct Served {
    database: Database,
    directory: TempDir,
}

impl Served {
    fn new() -> Self {
        let directory = TempDir::new().expect("a directory");
        let database = serve(&directory.path().join("usage.sqlite3"));
        let served = Self { database, directory };
        served.write().expect("a write to the original file");
        served.database.ready().expect("ready");
        served
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("usage.sqlite3")
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self) -> StoreResult<()> {
        self.database.run(Access::Write, &mut |_| Ok(()))
    }

    fn read(&self) -> StoreResult<()> {
        self.database.run(Access::Read, &mut |_| Ok(()))
    }

    /// Writes the content of another file over the file, as `cp` does.
    fn overwrite_with(&self, other: &Path) {
        std::fs::copy(other, self.file()).expect("a copy over the file");
    }

    /// Checks that nothing is acknowledged any more, and that the log is not moved into the file.
    fn expect_replaced(&self, case: &str) {
        let content = std::fs::read(self.file()).expect("the file");
        for answer in [self.write(), self.database.ready(), self.read(), self.write()] {
            let Err(StoreError::Unavailable(reason)) = answer else { panic!("{case}: {answer:?}") };
            assert!(reason.is::<DatabaseReplaced>(), "{case}: {reason}");
        }
        let closed = self.database.close();
        assert!(matches!(closed, Err(StoreError::Unavailable(_))), "{case}: {closed:?}");
        assert!(content == std::fs::read(self.file()).expect("the file"), "{case}: the file was written");
    }

    /// Checks that nothing is acknowledged while the path names another file or none.
    fn expect_missing(&self, case: &str) {
        for answer in [self.write(), self.database.ready(), self.read()] {
            let Err(StoreError::Unavailable(reason)) = answer else { panic!("{case}: {answer:?}") };
            assert!(reason.to_string().contains("was deleted, moved or replaced"), "{case}: {reason}");
        }
    }
}

fn serve(file: &Path) -> Database {
    let url = DatabaseUrl::parse(&format!("sqlite://{}", file.display())).expect("an address");
    let database = Database::open(&url, DatabaseOptions { to_serve: true, ..OPTIONS }).expect("the database opens");
    database.migrate().expect("the tables");
    database
}

/// Returns the new size of a file of a size.
type NewSize = fn(u64) -> u64;

#[test]
fn a_truncated_file_is_not_used_any_more() {
    let size = |served: &Served| std::fs::metadata(served.file()).expect("the file").len();
    let cases: [(&str, NewSize); 3] = [("empty", |_| 0), ("half", |size| size / 2), ("a page less", |size| size - 4096)];
    for (case, cut) in cases {
        let served = Served::new();
        let file = std::fs::OpenOptions::new().write(true).open(served.file()).expect("the file");
        file.set_len(cut(size(&served))).expect("a shorter file");
        served.expect_replaced(case);
    }
}

#[test]
fn a_file_that_is_truncated_during_a_transaction_acknowledges_nothing() {
    let served = Served::new();
    let answer = served.database.run(Access::Write, &mut |_| {
        std::fs::OpenOptions::new().write(true).truncate(true).open(served.file()).expect("an empty file");
        Ok(())
    });
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    served.expect_replaced("truncated during a transaction");
}

#[test]
fn a_backup_that_is_copied_over_the_file_is_noticed() {
    let served = Served::new();
    let backup = served.beside("backup.sqlite3");
    std::fs::File::create(&backup).expect("an empty file");
    served.database.copy_into(&backup).expect("a backup");
    served.overwrite_with(&backup);
    served.expect_replaced("a backup");
}

#[test]
fn a_copy_from_before_the_start_of_the_server_is_noticed() {
    let served = Served::new();
    let Served { database, directory } = served;
    database.close().expect("everything is in the file");
    drop(database);
    let file = directory.path().join("usage.sqlite3");
    std::fs::copy(&file, directory.path().join("old.sqlite3")).expect("a copy");
    let served = Served { database: serve(&file), directory };
    served.write().expect("a write");
    served.overwrite_with(&served.beside("old.sqlite3"));
    served.expect_replaced("a copy of an earlier run");
}

#[test]
fn a_file_of_another_program_is_noticed() {
    let row = "CREATE TABLE t (c BLOB); INSERT INTO t VALUES (zeroblob(5000000))";
    let databases = [("wal.sqlite3", "PRAGMA journal_mode = WAL; "), ("rollback.sqlite3", "")];
    for (name, mode) in databases {
        let served = Served::new();
        let theirs = served.beside(name);
        let mut other = SqliteConnection::establish(theirs.to_str().expect("UTF-8")).expect("a file");
        other.batch_execute(&format!("{mode}{row}")).expect("their content");
        drop(other);
        served.overwrite_with(&theirs);
        served.expect_replaced(name);
    }
    let served = Served::new();
    let notes = served.beside("notes.txt");
    std::fs::write(&notes, vec![b'x'; 6_000_000]).expect("a file");
    served.overwrite_with(&notes);
    served.expect_replaced("no database");
}

#[test]
fn a_file_that_is_removed_or_renamed_over_is_not_used_until_it_is_back() {
    let served = Served::new();
    let (elsewhere, copy) = (served.beside("elsewhere.sqlite3"), served.beside("copy.sqlite3"));
    std::fs::copy(served.file(), &copy).expect("a copy");
    std::fs::rename(served.file(), &elsewhere).expect("the file is moved");
    served.expect_missing("removed");
    std::fs::rename(&copy, served.file()).expect("another file");
    served.expect_missing("replaced");
    std::fs::rename(&elsewhere, served.file()).expect("the file is back");
    served.write().expect("a write to the original file");
    served.database.ready().expect("ready");
}

#[test]
fn a_server_notices_nothing_when_only_its_own_programs_write() {
    let served = Served::new();
    let mut beside = SqliteConnection::establish(served.file().to_str().expect("UTF-8")).expect("the file");
    beside.batch_execute("PRAGMA busy_timeout = 20000; CREATE TABLE beside (c BLOB)").expect("a table");
    for _ in 0..5 {
        // Each write grows the file by more than the log may hold before a checkpoint.
        beside.batch_execute("INSERT INTO beside VALUES (zeroblob(5000000))").expect("a row");
        served.write().expect("a write");
        served.database.ready().expect("ready");
    }
    beside.batch_execute("PRAGMA wal_checkpoint(PASSIVE); DROP TABLE beside; PRAGMA wal_checkpoint(PASSIVE)").expect("done");
    drop(beside);
    served.write().expect("a write");
    // A second start marks the file anew and accepts it.
    let Served { database, directory } = served;
    database.close().expect("closed");
    drop(database);
    let served = Served { database: serve(&directory.path().join("usage.sqlite3")), directory };
    served.write().expect("a write");
    served.database.ready().expect("ready");
}
