//! Restoring a SQLite database from a backup, and the check of backups.

use std::path::{Path, PathBuf};

use billing_domain::calendar::Timestamp;
use billing_domain::notification::epoch::{Epoch, Restore};
use billing_domain::ports::{Access, StoreError, transact};
use billing_storage::{Database, DatabaseOptions, DatabaseUrl, restore_file};
use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, SqliteConnection};
use tempfile::TempDir;

use crate::support::OPTIONS;

/// The time in the name of the former database.
const STAMP: u64 = 77;
/// The row that a restore inserts.
const RESTORED: u64 = 1_000;

fn url(file: &Path) -> DatabaseUrl {
    DatabaseUrl::parse(&format!("sqlite://{}", file.display())).expect("an address")
}

fn row(number: u64) -> Restore {
    Restore { epoch: Epoch::new(number), restored_to: Timestamp::UNIX_EPOCH }
}

fn open(file: &Path) -> Database {
    let database = Database::open(&url(file), OPTIONS).expect("the database opens");
    database.migrate().expect("the tables");
    database
}

fn add(database: &Database, number: u64) {
    transact::<_, StoreError>(database, Access::Write, |tx| tx.insert_restore(&row(number))).expect("a row");
}

/// Returns the numbers of the rows in a file.
fn rows(file: &Path) -> Vec<u64> {
    let rows = transact::<_, StoreError>(&open(file), Access::Read, |tx| tx.restores()).expect("rows");
    rows.iter().map(|row| row.epoch.number()).collect()
}

fn execute(file: &Path, sql: &str) {
    let mut connection = SqliteConnection::establish(file.to_str().expect("UTF-8")).expect("a file");
    connection.batch_execute(sql).expect(sql);
}

fn restore(file: &Path, backup: &Path) -> Result<Option<PathBuf>, String> {
    let restored = restore_file(&url(file), backup, STAMP, |tx| tx.insert_restore(&row(RESTORED)));
    restored.map_err(|error| error.to_string())
}

/// A database with the rows 1 and 2, a part of which is in its log, and a backup with the row 1.
struct Files {
    directory: TempDir,
    file: PathBuf,
    backup: PathBuf,
}

impl Files {
    fn new() -> Self {
        let directory = TempDir::new().expect("a directory");
        let (elsewhere, file) = (directory.path().join("elsewhere.sqlite3"), directory.path().join("usage.sqlite3"));
        let backup = directory.path().join("backup.sqlite3");
        let database = open(&elsewhere);
        add(&database, 1);
        std::fs::File::create(&backup).expect("an empty file");
        database.copy_into(&backup).expect("a backup");
        add(&database, 2);
        // As after a kill.
        for suffix in ["", "-wal"] {
            std::fs::copy(with(&elsewhere, suffix), with(&file, suffix)).expect("a copy");
        }
        let log = std::fs::metadata(with(&file, "-wal")).expect("a log");
        assert!(log.len() > 0);
        std::fs::write(with(&file, "-shm"), "an index").expect("an index");
        drop(database);
        Self { directory, file, backup }
    }

    /// Returns the names and contents of all files.
    fn contents(&self) -> Vec<(String, Vec<u8>)> {
        let entries =
            std::fs::read_dir(self.directory.path()).expect("the directory").map(|entry| entry.expect("an entry").path());
        // The file of a server vanishes when the server has ended.
        let mut contents: Vec<_> = entries
            .map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), path))
            .filter(|(name, _)| !name.ends_with("-server"))
            .map(|(name, path)| (name, std::fs::read(path).expect("a file")))
            .collect();
        contents.sort();
        contents
    }

    /// Checks that a restore is refused, and that it changed nothing.
    fn expect_refused(&self, case: &str, reason: &str) {
        let before = self.contents();
        let refused = restore(&self.file, &self.backup).expect_err(case);
        assert!(refused.contains(reason), "{case}: {refused}");
        let names = |contents: Vec<(String, Vec<u8>)>| contents.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert!(before == self.contents(), "{case}: {:?} {:?}", names(before), names(self.contents()));
    }
}

fn with(file: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", file.display()))
}

#[test]
fn a_backup_replaces_a_database_which_keeps_its_rows_under_another_name() {
    let files = Files::new();
    let former = with(&files.file, ".before-restore-77");
    assert_eq!(restore(&files.file, &files.backup), Ok(Some(former.clone())));
    assert!(!with(&files.file, "-wal").exists() && !with(&files.file, "-shm").exists());
    assert_eq!(rows(&files.file), [1, RESTORED]);
    std::fs::remove_file(with(&former, "-shm")).expect("the index was moved too");
    assert_eq!(rows(&former), [1, 2]);
    assert_eq!(rows(&files.backup), [1], "the backup is unchanged");
    // The former database is restored, with its log, and the second former database has another name.
    let second = with(&files.file, ".before-restore-77-2");
    assert_eq!(restore(&files.file, &former), Ok(Some(second)));
    assert_eq!(rows(&files.file), [1, 2, RESTORED]);
}

#[test]
fn a_missing_database_is_restored() {
    let files = Files::new();
    let file = files.directory.path().join("new").join("usage.sqlite3");
    assert_eq!(restore(&file, &files.backup), Ok(None));
    assert_eq!(rows(&file), [1, RESTORED]);
    // A log whose database file was lost does not meet the restored one.
    std::fs::remove_file(&files.file).expect("the database is lost");
    assert_eq!(restore(&files.file, &files.backup), Ok(None));
    assert!(!with(&files.file, "-wal").exists());
    assert_eq!(rows(&files.file), [1, RESTORED]);
}

#[test]
fn the_log_beside_a_backup_is_restored() {
    let files = Files::new();
    let target = files.directory.path().join("target.sqlite3");
    assert_eq!(restore(&target, &files.file), Ok(None));
    assert_eq!(rows(&target), [1, 2, RESTORED]);
}

#[test]
fn a_backup_that_is_not_sound_is_not_restored() {
    let write_at = |file: &Path, bytes: &[u8], at| {
        use std::os::unix::fs::FileExt as _;
        let file = std::fs::OpenOptions::new().write(true).open(file).expect("the file");
        file.write_all_at(bytes, at).expect("other content");
    };
    let size = |file: &Path| std::fs::metadata(file).expect("the file").len();
    let files = Files::new();
    let whole = std::fs::read(&files.backup).expect("the backup");
    write_at(&files.backup, &[0xff; 4096], size(&files.backup) - 4096);
    files.expect_refused("malformed", "cannot be restored");
    std::fs::write(&files.backup, &whole[..whole.len() / 2]).expect("the first half");
    files.expect_refused("truncated", "cannot be restored");
    std::fs::write(&files.backup, "no database, but a text that is longer than a header of SQLite ".repeat(9)).expect("a text");
    files.expect_refused("a text", "not a database");
    std::fs::write(&files.backup, "").expect("nothing");
    files.expect_refused("empty", "no tables of this program");
    std::fs::write(&files.backup, &whole).expect("the backup");
    execute(&files.backup, "UPDATE __diesel_schema_migrations SET version = '29991231'");
    files.expect_refused("a newer release", "newer release");
    std::fs::write(&files.backup, &whole).expect("the backup");
    execute(&files.backup, "INSERT INTO number_series VALUES (x'00', 'e', 'INVOICE', 'P', 1, 1, x'00')");
    files.expect_refused("a chain without its end", "document 1 of the chain of INVOICE of entity e is missing");
    std::fs::remove_file(&files.backup).expect("no backup");
    files.expect_refused("missing", "backup.sqlite3");
}

#[test]
fn a_database_is_not_a_backup_of_itself() {
    let mut files = Files::new();
    files.backup.clone_from(&files.file);
    files.expect_refused("itself", "is the database itself");
    files.backup = files.directory.path().join("link");
    std::os::unix::fs::symlink(&files.file, &files.backup).expect("a link");
    files.expect_refused("a link to itself", "is the database itself");
}

#[test]
fn a_served_database_is_not_replaced() {
    let files = Files::new();
    let served = files.directory.path().join("served.sqlite3");
    let server = Database::open(&url(&served), DatabaseOptions { to_serve: true, ..OPTIONS }).expect("a server");
    let refused = restore(&served, &files.backup).expect_err("it is served");
    assert!(refused.contains("another server uses this file"), "{refused}");
    drop(server);
}

#[test]
fn a_restore_that_was_interrupted_is_completed_by_the_next_one_and_nothing_is_opened_before() {
    /// The files that the interrupted restore has moved, in this order.
    const MOVED: [&str; 3] = ["", "-wal", "-shm"];
    let former = |file: &Path| with(file, ".before-restore-5");
    for moved in 0..=MOVED.len() + 1 {
        let files = Files::new();
        std::fs::write(with(&files.file, ".restoring"), ".before-restore-5").expect("a marker");
        for suffix in MOVED.iter().take(moved) {
            std::fs::rename(with(&files.file, suffix), with(&former(&files.file), suffix)).expect("it is moved");
        }
        if moved > MOVED.len() {
            // The copy was in place. Another program used it.
            std::fs::copy(&files.backup, &files.file).expect("the copy of the interrupted restore");
            std::fs::write(with(&files.file, "-wal"), "a log").expect("a log");
        } else {
            std::fs::write(with(&files.file, ".restoring-copy"), "incomplete").expect("a copy");
        }
        let refused = Database::open(&url(&files.file), OPTIONS).expect_err("interrupted").to_string();
        assert!(refused.contains("was interrupted"), "{refused}");
        assert_eq!(restore(&files.file, &files.backup), Ok(Some(former(&files.file))), "{moved}");
        assert_eq!(rows(&files.file), [1, RESTORED], "{moved}");
        std::fs::remove_file(with(&former(&files.file), "-shm")).expect("the index was moved too");
        assert_eq!(rows(&former(&files.file)), [1, 2], "{moved}");
        let left: Vec<String> =
            files.contents().into_iter().map(|(name, _)| name).filter(|name| name.contains("restoring")).collect();
        assert_eq!(left, [""; 0], "{moved}");
    }
}

#[test]
fn a_backup_of_a_malformed_database_fails() {
    let files = Files::new();
    let database = open(&files.backup);
    // VACUUM INTO copies the rows of a table as they are, also if the chain of its documents is broken.
    execute(&files.backup, "INSERT INTO number_series VALUES (x'00', 'e', 'INVOICE', 'P', 1, 1, x'00')");
    let copy = files.directory.path().join("copy.sqlite3");
    std::fs::File::create(&copy).expect("an empty file");
    let Err(StoreError::Unavailable(reason)) = database.copy_into(&copy) else { panic!("the chain has no end") };
    assert!(reason.to_string().starts_with("the copy is not sound"), "{reason}");
}
