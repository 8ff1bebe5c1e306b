//! Checks that the file of a SQLite database is still in place and writable.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use billing_domain::ports::DiskUse;
use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use diesel::sql_types::BigInt;

use crate::connect::{ConnectError, SqlitePool};
use crate::failure::StatementError;

/// The time that a write test waits for other writers. Their own results show whether the file is writable.
const TRIAL_WAIT: Duration = Duration::from_secs(1);

/// A database file, as it was when opened.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
    /// Whether a write failed and none has succeeded since.
    is_failing: AtomicBool,
}

impl DatabaseFile {
    /// Reads the identity of the existing file.
    ///
    /// # Errors
    /// Returns the errors of the operating system.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        Ok(Self { identity: identity(&path)?, path, is_failing: AtomicBool::new(false) })
    }

    /// Checks that the path still names the opened file. Data written to a deleted file is lost when the process ends,
    /// and a process that opens the path anew gets another file.
    ///
    /// # Errors
    /// Returns an error when the file was moved, deleted or replaced.
    pub(crate) fn check(&self) -> Result<(), StatementError> {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            return Ok(());
        }
        let path = self.path.display();
        let reason =
            format!("{path} was deleted, moved or replaced while the server uses it: restore the file, or stop the server");
        Err(StatementError::Unavailable { reason, lost: false })
    }

    /// Records the result of a write.
    pub(crate) fn note(&self, outcome: &Result<(), StatementError>) {
        if matches!(outcome, Err(StatementError::Unknown(_) | StatementError::Unavailable { lost: true, .. })) {
            self.is_failing.store(true, Ordering::Relaxed);
        }
    }

    /// Checks that the file is writable. After a failed write, clients may stop sending the writes that would show
    /// recovery, so this runs a test write on the connection for writing.
    ///
    /// # Errors
    /// Returns the reason why the write fails.
    pub(crate) fn check_writing(&self, writer: &SqlitePool) -> Result<(), ConnectError> {
        if !self.is_failing.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut link = writer.get_timeout(TRIAL_WAIT).map_err(|error| ConnectError(error.to_string()))?;
        let tried = link.connection.immediate_transaction(|connection| {
            let Id { id } = diesel::sql_query("SELECT application_id AS id FROM pragma_application_id").get_result(connection)?;
            // This writes the current value again.
            connection.batch_execute(&format!("PRAGMA application_id = {id}"))
        });
        link.lost |= tried.is_err();
        tried?;
        self.is_failing.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the size of the database and the free space of its disk.
    ///
    /// # Errors
    /// Returns the errors of the operating system.
    pub(crate) fn disk_use(&self) -> io::Result<DiskUse> {
        let disk = rustix::fs::statvfs(&self.path)?;
        Ok(DiskUse {
            database: std::fs::metadata(&self.path)?.len(),
            // The log does not exist before the first write.
            log: std::fs::metadata(beside(&self.path, "-wal")).map_or(0, |log| log.len()),
            free: disk.f_bavail.saturating_mul(disk.f_frsize),
        })
    }
}

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = BigInt)]
    id: i64,
}

/// Returns the path of a file next to the database, with `suffix` appended to the name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = std::fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}
