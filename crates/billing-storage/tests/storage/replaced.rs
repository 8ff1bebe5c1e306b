//! A SQLite file or its log that another program truncates, overwrites, replaces or removes while a server uses it, and the
//! check of the file after a server was killed.

use std::path::{Path, PathBuf};

use billing_domain::calendar::Timestamp;
use billing_domain::notification::epoch::{Epoch, Restore};
use billing_domain::ports::{Access, DatabaseReplaced, Store, StoreError, StoreResult, transact};
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

    fn log(&self) -> PathBuf {
        self.beside("usage.sqlite3-wal")
    }

    /// Commits a row.
    fn commit(&self, number: u64) -> StoreResult<()> {
        let row = Restore { epoch: Epoch::new(number), restored_to: Timestamp::UNIX_EPOCH };
        transact::<_, StoreError>(&self.database, Access::Write, |tx| tx.insert_restore(&row))
    }

    /// Commits rows until the last one is at the end of the log, behind what is left of earlier logs. Returns the size of the
    /// log.
    fn fill_log(&self) -> u64 {
        let size = || std::fs::metadata(self.log()).expect("the log").len();
        let before = size();
        for number in 1..10_000 {
            self.commit(number).expect("a row");
            if size() > before {
                return size();
            }
        }
        panic!("the log does not grow");
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

fn truncate(file: &Path, size: u64) {
    std::fs::OpenOptions::new().write(true).open(file).expect("the file").set_len(size).expect("a shorter file");
}

/// Returns the numbers of the rows in a file that no server uses.
fn committed(file: &Path) -> Vec<u64> {
    let url = DatabaseUrl::parse(&format!("sqlite://{}", file.display())).expect("an address");
    let database = Database::open(&url, OPTIONS).expect("the database opens");
    let rows = transact::<_, StoreError>(&database, Access::Read, |tx| tx.restores()).expect("rows");
    rows.iter().map(|row| row.epoch.number()).collect()
}

#[test]
fn a_truncated_log_is_not_used_any_more() {
    let cases: [(&str, NewSize); 4] =
        [("empty", |_| 0), ("its header", |_| 32), ("half", |size| size / 2), ("a byte less", |size| size - 1)];
    for (case, cut) in cases {
        let served = Served::new();
        let size = served.fill_log();
        truncate(&served.log(), cut(size));
        served.expect_replaced(case);
    }
}

#[test]
fn a_log_that_is_truncated_during_a_transaction_acknowledges_nothing_although_it_grows_again() {
    let cases: [(&str, NewSize); 2] = [("empty", |_| 0), ("half", |size| size / 2)];
    for (case, cut) in cases {
        let served = Served::new();
        let before = served.fill_log();
        let row = Restore { epoch: Epoch::new(20_000), restored_to: Timestamp::UNIX_EPOCH };
        let answer = transact::<_, StoreError>(&served.database, Access::Write, |tx| {
            truncate(&served.log(), cut(before));
            tx.insert_restore(&row)
        });
        assert!(std::fs::metadata(served.log()).expect("the log").len() > before, "{case}: SQLite writes behind the hole");
        let Err(StoreError::Unavailable(reason)) = answer else { panic!("{case}: {answer:?}") };
        assert!(reason.is::<DatabaseReplaced>(), "{case}: {reason}");
        served.expect_replaced(case);
    }
}

#[test]
fn a_log_that_is_overwritten_with_another_one_is_noticed() {
    let served = Served::new();
    let copy = served.beside("copy");
    std::fs::copy(served.log(), &copy).expect("a copy");
    let mut beside = SqliteConnection::establish(served.file().to_str().expect("UTF-8")).expect("the file");
    // The log begins anew.
    beside.batch_execute("PRAGMA busy_timeout = 20000; PRAGMA wal_checkpoint(RESTART)").expect("a checkpoint");
    served.commit(1).expect("a row");
    std::fs::copy(&copy, served.log()).expect("the earlier content");
    served.expect_replaced("an earlier log");
}

#[test]
fn a_log_that_is_removed_or_renamed_over_is_not_used_until_it_is_back() {
    for name in ["usage.sqlite3-wal", "usage.sqlite3-shm"] {
        let served = Served::new();
        served.commit(1).expect("a row");
        let (file, elsewhere, copy) = (served.beside(name), served.beside("elsewhere"), served.beside("copy"));
        std::fs::copy(&file, &copy).expect("a copy");
        std::fs::rename(&file, &elsewhere).expect("the file is moved");
        served.expect_missing(name);
        std::fs::rename(&copy, &file).expect("another file");
        served.expect_missing(name);
        std::fs::rename(&elsewhere, &file).expect("the file is back");
        served.commit(2).expect("a row");
        served.database.ready().expect("ready");
    }
}

#[test]
fn a_server_whose_log_was_deleted_moves_it_into_the_file_when_it_stops() {
    let served = Served::new();
    served.commit(1).expect("a row");
    std::fs::remove_file(served.log()).expect("the log is deleted");
    served.expect_missing("deleted");
    served.database.close().expect("everything is in the file");
    let Served { database, directory } = served;
    drop(database);
    assert_eq!(committed(&directory.path().join("usage.sqlite3")), [1]);
}

#[test]
fn a_log_that_sqlite_shortens_itself_is_used_on() {
    let served = Served::new();
    let mut beside = SqliteConnection::establish(served.file().to_str().expect("UTF-8")).expect("the file");
    beside.batch_execute("PRAGMA busy_timeout = 20000").expect("a timeout");
    for number in 1..5 {
        served.commit(number).expect("a row");
        beside.batch_execute("PRAGMA wal_checkpoint(TRUNCATE)").expect("a checkpoint");
        assert_eq!(std::fs::metadata(served.log()).expect("the log").len(), 0);
        served.database.ready().expect("ready");
    }
}

#[test]
fn a_file_behind_a_symbolic_link_is_served() {
    let directory = TempDir::new().expect("a directory");
    let elsewhere = directory.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let (file, link) = (elsewhere.join("usage.sqlite3"), directory.path().join("link.sqlite3"));
    std::fs::write(&file, "").expect("a file");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    let database = serve(&link);
    let served = Served { database, directory };
    served.commit(1).expect("a row");
    truncate(&elsewhere.join("usage.sqlite3-wal"), 0);
    assert!(matches!(served.commit(2), Err(StoreError::Unavailable(_))));
}

/// The offset of the mark of a server in the header of a file.
const MARK: u64 = 60;
/// The size from which a file is checked while the server runs, and more.
const LARGE: u64 = 257 * 1024 * 1024;

/// Returns the number of the first page of a table.
fn root_page(file: &Path, table: &str) -> u64 {
    use diesel::prelude::*;
    #[derive(QueryableByName)]
    struct Table {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        rootpage: i64,
    }
    let mut connection = SqliteConnection::establish(file.to_str().expect("UTF-8")).expect("the file");
    let found =
        diesel::sql_query(format!("SELECT rootpage FROM sqlite_master WHERE name = '{table}'")).get_result(&mut connection);
    let Table { rootpage } = found.expect("the table");
    u64::try_from(rootpage).expect("a page")
}

/// Creates a file without a log and with a malformed page, and with the mark of a server that was killed if `is_unclean`.
fn malformed(directory: &Path, is_unclean: bool) -> PathBuf {
    use std::os::unix::fs::FileExt as _;
    let file = directory.join("usage.sqlite3");
    let database = serve(&file);
    database.close().expect("everything is in the file");
    drop(database);
    let write = |bytes: &[u8], at| {
        let opened = std::fs::OpenOptions::new().write(true).open(&file).expect("the file");
        opened.write_all_at(bytes, at).expect("other content");
    };
    write(&[0xff; 4096], (root_page(&file, "restores") - 1) * 4096);
    if is_unclean {
        write(&7_u32.to_be_bytes(), MARK);
    }
    file
}

fn try_to_serve(file: &Path) -> Result<Database, String> {
    let url = DatabaseUrl::parse(&format!("sqlite://{}", file.display())).expect("an address");
    Database::open(&url, DatabaseOptions { to_serve: true, ..OPTIONS }).map_err(|error| error.to_string())
}

#[test]
fn a_malformed_file_is_not_served_after_its_server_was_killed() {
    let directory = TempDir::new().expect("a directory");
    let file = malformed(directory.path(), true);
    let refused = try_to_serve(&file).expect_err("malformed");
    assert!(refused.contains("quick_check"), "{refused}");
    // A file that a server has closed is not read as a whole at the next start.
    let directory = TempDir::new().expect("a directory");
    try_to_serve(&malformed(directory.path(), false)).expect("it is not checked");
}

#[test]
fn a_large_file_is_checked_while_the_server_runs() {
    let directory = TempDir::new().expect("a directory");
    let file = malformed(directory.path(), true);
    truncate(&file, LARGE);
    let database = try_to_serve(&file).expect("it is checked later");
    let began = std::time::Instant::now();
    let reason = loop {
        match database.ready() {
            Err(StoreError::Unavailable(reason)) => break reason.to_string(),
            _ => assert!(began.elapsed().as_secs() < 60, "the check does not end"),
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    assert!(reason.contains("the database file is malformed"), "{reason}");
}

#[test]
fn a_log_without_its_file_is_kept() {
    let directory = TempDir::new().expect("a directory");
    let (file, log) = (directory.path().join("usage.sqlite3"), directory.path().join("usage.sqlite3-wal"));
    std::fs::write(&log, "content").expect("a log");
    let url = DatabaseUrl::parse(&format!("sqlite://{}", file.display())).expect("an address");
    for create in [false, true] {
        if create {
            std::fs::write(&file, "").expect("an empty file");
        }
        let refused = Database::open(&url, OPTIONS).expect_err("a log without its file").to_string();
        assert!(refused.contains("is missing or empty"), "{refused}");
        assert_eq!(std::fs::read(&log).expect("the log"), b"content");
    }
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
