//! Replaces a SQLite database by a backup, so that after a kill at any moment either the former database is in place, or no
//! process opens the database until the restore is repeated.
//!
//! The backup is copied and checked first. From then on a marker stands beside the database. A new file beside the log of the
//! former one would be mixed with it, and without any file a server would begin with an empty database.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use billing_domain::ports::{StoreResult, Tx};
use diesel::connection::{AnsiTransactionManager, SimpleConnection as _, TransactionManager as _};
use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};

use crate::connect::ConnectError;
use crate::copy_check::{check_copy, open_copy};
use crate::database::take_turn;
use crate::database_file::{beside, identity, real_path};
use crate::failure::chain;
use crate::migrate::migrate_file;
use crate::tx::{Connection, StoreCache, Transaction};
use crate::url::DatabaseUrl;

/// The end of the name of the marker, which contains the name of the former database.
pub(crate) const RESTORING: &str = ".restoring";
/// The end of the name of the copy before it is in place.
const COPY: &str = ".restoring-copy";
/// The bytes that SQLite locks while a connection is open.
const SQLITE_LOCKS: (u64, u64) = (0x4000_0000, 512);

/// The reason why a backup was not restored.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RestoreError(String);

impl RestoreError {
    fn of(path: &Path, error: &io::Error) -> Self {
        Self(format!("{}: {error}", path.display()))
    }
}

/// Replaces the SQLite database of a URL by a copy of a backup, after `work` changed the copy. If a `-wal` file is beside the
/// backup, its content is restored too. The former database keeps its content under another name, which ends with
/// `.before-restore-` and `stamp`. Returns its path, or `None` if there was none.
///
/// If the call is interrupted, the next one with any backup completes the restore.
///
/// # Errors
/// Returns an error, and the database is as before, when:
/// - the URL does not name a file
/// - another process has the database or the backup open
/// - the copy is malformed, belongs to another program or a newer release, or a document at the end of a chain is missing
/// - `work` fails
/// - the disk is full
pub fn restore_file(
    url: &DatabaseUrl,
    backup: &Path,
    stamp: u64,
    work: impl FnOnce(&mut dyn Tx) -> StoreResult<()>,
) -> Result<Option<PathBuf>, RestoreError> {
    let Some(path) = url.file() else {
        return Err(RestoreError("only SQLite databases can be restored from a file".to_owned()));
    };
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    if let Some(directory) = directory {
        std::fs::create_dir_all(directory).map_err(|error| RestoreError::of(directory, &error))?;
    }
    // A server starts only after this function.
    let _turn = take_turn(path).map_err(RestoreError)?;
    let path = real_path(path).map_err(|error| RestoreError::of(path, &error))?;
    let backup = real_path(backup).map_err(|error| RestoreError::of(backup, &error))?;
    let of_backup = std::fs::metadata(&backup).map_err(|error| RestoreError::of(&backup, &error))?;
    if std::fs::metadata(&path).is_ok_and(|present| identity(&present) == identity(&of_backup)) {
        return Err(RestoreError(format!("{} is the database itself: choose a backup", backup.display())));
    }
    for used in [&path, &backup] {
        require_unused(used)?;
    }
    let copy = beside(&path, COPY);
    let made = make_copy(&backup, &copy).and_then(|()| prepare(&backup, &copy, work));
    if let Err(error) = made {
        // The next restore also deletes it.
        let _ = delete_copy(&copy);
        return Err(error);
    }
    let failed = |error: io::Error| {
        let path = path.display();
        RestoreError(format!("the restore of {path} stopped: {error}: remove the cause, and run the command again"))
    };
    put_in_place(&copy, &path, stamp).map_err(failed)
}

/// Checks that no other process has a connection to a database. A connection of this process would lose its locks.
fn require_unused(path: &Path) -> Result<(), RestoreError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(|error| RestoreError::of(path, &error))?,
    };
    let (start, length) = SQLITE_LOCKS;
    let (typ, offset_type) = (FlockType::WriteLock, FlockOffsetType::Set);
    let other = fcntl_getlk(&file, &Flock { start, length, pid: None, typ, offset_type });
    match other.map_err(|error| RestoreError::of(path, &error.into()))? {
        None => Ok(()),
        Some(_) => Err(RestoreError(format!("another process uses {}: stop it first", path.display()))),
    }
}

fn delete(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn delete_copy(copy: &Path) -> io::Result<()> {
    // SQLite also creates a journal, which belongs to the copy.
    ["", "-wal", "-shm", "-journal"].iter().try_for_each(|suffix| delete(&beside(copy, suffix)))
}

/// Copies a backup and its log. Only the owner can read the copy.
fn make_copy(backup: &Path, copy: &Path) -> Result<(), RestoreError> {
    delete_copy(copy).map_err(|error| RestoreError::of(copy, &error))?;
    for suffix in ["", "-wal"] {
        let (from, to) = (beside(backup, suffix), beside(copy, suffix));
        let mut read = match File::open(&from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !suffix.is_empty() => continue,
            opened => opened.map_err(|error| RestoreError::of(&from, &error))?,
        };
        let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to);
        let copied = written.and_then(|mut written| io::copy(&mut read, &mut written));
        copied.map_err(|error| RestoreError::of(&to, &error))?;
    }
    Ok(())
}

/// Checks the copy, changes it, and writes it to the disk as a single file.
fn prepare(backup: &Path, copy: &Path, work: impl FnOnce(&mut dyn Tx) -> StoreResult<()>) -> Result<(), RestoreError> {
    let refused = |reason: &str| RestoreError(format!("{} cannot be restored: {reason}", backup.display()));
    let unsound = |error: ConnectError| refused(&error.0);
    let mut connection = open_copy(copy).map_err(unsound)?;
    if !check_copy(&mut connection).map_err(unsound)? {
        return Err(refused("it has no tables of this program"));
    }
    migrate_file(&mut connection).map_err(|error| refused(&chain(&error)))?;
    let statement = |error: diesel::result::Error| refused(&error.to_string());
    AnsiTransactionManager::begin_transaction_sql(&mut connection, "BEGIN IMMEDIATE").map_err(statement)?;
    let cache = StoreCache::default();
    let mut tx = Transaction::new(Connection::Sqlite(&mut connection), &cache, None);
    let done = work(&mut tx).and_then(|()| tx.into_failure().map_or(Ok(()), |failure| Err(failure.into())));
    done.map_err(|error| refused(&chain(&error)))?;
    AnsiTransactionManager::commit_transaction(&mut connection).map_err(statement)?;
    // The mark of a server that used the backup is not an unclean end of the copy.
    connection.batch_execute("PRAGMA user_version = 0").map_err(statement)?;
    drop(connection);
    let synced = File::open(copy).and_then(|file| file.sync_all());
    synced.map_err(|error| RestoreError::of(copy, &error))
}

/// Moves the former database aside, and the copy to its place. Returns the path of the former database.
fn put_in_place(copy: &Path, path: &Path, stamp: u64) -> io::Result<Option<PathBuf>> {
    let exists = |path: &Path| path.symlink_metadata().is_ok();
    let directory = File::open(path.parent().unwrap_or(Path::new("/")))?;
    let marker = beside(path, RESTORING);
    let former = if exists(&marker) {
        // An earlier restore was interrupted, and may have moved some of the files.
        beside(path, &std::fs::read_to_string(&marker)?)
    } else {
        let names = std::iter::once(format!(".before-restore-{stamp}"));
        let mut names = names.chain((2..).map(|number: u32| format!(".before-restore-{stamp}-{number}")));
        let suffix = names.find(|suffix| !exists(&beside(path, suffix))).unwrap_or_default();
        mark(&marker, &suffix)?;
        directory.sync_all()?;
        beside(path, &suffix)
    };
    // If both exist, the earlier restore has put its copy in place.
    let is_moved = exists(&former) && exists(path);
    for suffix in ["", "-wal", "-shm"] {
        let from = beside(path, suffix);
        if is_moved {
            // What is beside the copy of the earlier restore belongs to that copy, which is replaced below.
            if !suffix.is_empty() {
                delete(&from)?;
            }
        } else if exists(&from) {
            std::fs::rename(&from, beside(&former, suffix))?;
        }
        directory.sync_all()?;
    }
    std::fs::rename(copy, path)?;
    directory.sync_all()?;
    std::fs::remove_file(&marker)?;
    directory.sync_all()?;
    Ok(exists(&former).then_some(former))
}

/// Creates the marker with its content, at once.
fn mark(marker: &Path, content: &str) -> io::Result<()> {
    let new = beside(marker, "-new");
    std::fs::write(&new, content)?;
    File::open(&new)?.sync_all()?;
    std::fs::rename(&new, marker)
}
