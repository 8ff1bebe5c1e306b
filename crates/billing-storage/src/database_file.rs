//! Whether the file of a SQLite database keeps what it is given.

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

/// How long a trial waits for who writes. They tell by themselves whether it can be written.
const TRIAL_WAIT: Duration = Duration::from_secs(1);

/// A database file as it was opened.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
    /// Whether writing failed, and wasn't seen to work since.
    is_failing: AtomicBool,
}

impl DatabaseFile {
    /// The file that is there.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        Ok(Self { identity: identity(&path)?, path, is_failing: AtomicBool::new(false) })
    }

    /// That it is where it was: what is written into a file that was deleted goes with the process, and who opens its name anew has
    /// another one.
    ///
    /// # Errors
    /// It isn't.
    pub(crate) fn check(&self) -> Result<(), StatementError> {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            return Ok(());
        }
        let path = self.path.display();
        let reason = format!("{path} was deleted, moved or replaced while it is served: put it back, or stop the server");
        Err(StatementError::Unavailable { reason, lost: false })
    }

    /// Notes what came of writing.
    pub(crate) fn note(&self, outcome: &Result<(), StatementError>) {
        if matches!(outcome, Err(StatementError::Unknown(_) | StatementError::Unavailable { lost: true, .. })) {
            self.is_failing.store(true, Ordering::Relaxed);
        }
    }

    /// That it can be written. Once that failed nobody may send what would show that it works again: it is tried, on the connection
    /// that writes.
    ///
    /// # Errors
    /// Why it can't.
    pub(crate) fn check_writing(&self, writer: &SqlitePool) -> Result<(), ConnectError> {
        if !self.is_failing.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut link = writer.get_timeout(TRIAL_WAIT).map_err(|error| ConnectError(error.to_string()))?;
        let tried = link.connection.immediate_transaction(|connection| {
            let Id { id } = diesel::sql_query("SELECT application_id AS id FROM pragma_application_id").get_result(connection)?;
            // What is there is written again.
            connection.batch_execute(&format!("PRAGMA application_id = {id}"))
        });
        link.lost |= tried.is_err();
        tried?;
        self.is_failing.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// What it takes of its disk, and what that has left.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn disk_use(&self) -> io::Result<DiskUse> {
        let disk = rustix::fs::statvfs(&self.path)?;
        Ok(DiskUse {
            database: std::fs::metadata(&self.path)?.len(),
            // Before the first write there is none.
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

/// A file next to the database's, named as that and `suffix`.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = std::fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}
