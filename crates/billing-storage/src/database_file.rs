//! Checks that the file of a SQLite database is still in place, has the content that the program wrote, and is writable.
//!
//! The content is checked without SQLite, because SQLite does not notice that another program overwrites the file: in WAL
//! mode, it reads the file's header only when its own log says that the file changed.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::mem::ManuallyDrop;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use billing_domain::ports::DiskUse;
use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel::sqlite::SqliteConnection;

use crate::connect::{ConnectError, SqlitePool};
use crate::failure::StatementError;
use crate::log_watch::{LogError, LogWatch};

/// The time that a write test waits for other writers. Their own results show whether the file is writable.
const TRIAL_WAIT: Duration = Duration::from_secs(1);

/// The number of reads of a header before its content counts as changed by another program. A read can meet a checkpoint
/// that is writing the header.
const HEADER_READS: u32 = 3;
/// The pause between these reads.
const HEADER_PAUSE: Duration = Duration::from_millis(5);

/// A database file, as it was when opened.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    path: PathBuf,
    /// The path without symbolic links. SQLite puts the log there.
    real_path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
    /// The largest size seen, in bytes. The file never shrinks, because no connection of the program runs `VACUUM`.
    size: AtomicU64,
    /// The content, if a server uses the file.
    watch: Option<Watch>,
    /// The write-ahead log, if a server uses the file. It is set when the file has its tables.
    log: OnceLock<LogWatch>,
    /// The reason why the structure of the file is malformed. It stays until the process ends.
    malformed: OnceLock<String>,
    /// The reason why the content is not the program's any more. It stays until the process ends.
    damage: OnceLock<&'static str>,
    /// Whether a write failed and none has succeeded since.
    is_failing: AtomicBool,
}

impl DatabaseFile {
    /// Reads the identity of the existing file. With `to_serve`, also opens the file, so that its content can be checked.
    ///
    /// # Errors
    /// Returns the errors of the operating system.
    pub(crate) fn of(path: &Path, to_serve: bool) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let watch = if to_serve { Some(Watch::open(&path)?) } else { None };
        Ok(Self {
            identity: identity(&std::fs::metadata(&path)?),
            real_path: real_path(&path)?,
            path,
            size: AtomicU64::new(0),
            watch,
            log: OnceLock::new(),
            malformed: OnceLock::new(),
            damage: OnceLock::new(),
            is_failing: AtomicBool::new(false),
        })
    }

    /// Checks that the path still names the opened file, that the file is not shorter than before, and that its log is in
    /// place. Data written to a deleted file is lost when the process ends, and a process that opens the path anew gets
    /// another file.
    ///
    /// # Errors
    /// Returns an error when a file was moved, deleted or replaced, or when the database file was truncated. A file that was
    /// moved back is used again. A truncated file is not.
    pub(crate) fn check(&self) -> Result<(), StatementError> {
        self.check_place()?;
        self.check_log(LogWatch::check_places)
    }

    /// Does the same without the log.
    fn check_place(&self) -> Result<(), StatementError> {
        if self.damage.get().is_some() {
            return Err(StatementError::Replaced);
        }
        // The known size is read before the current one, so that a file that grows meanwhile does not look shorter.
        let known = self.size.load(Ordering::Acquire);
        let metadata = std::fs::metadata(&self.path).ok().filter(|metadata| identity(metadata) == self.identity);
        let Some(metadata) = metadata else {
            let path = self.path.display();
            let reason =
                format!("{path} was deleted, moved or replaced while the server uses it: restore the file, or stop the server");
            return Err(StatementError::Unavailable { reason, lost: false });
        };
        if metadata.len() < known {
            return Err(self.damaged("it is shorter than before"));
        }
        self.size.fetch_max(metadata.len(), Ordering::AcqRel);
        Ok(())
    }

    /// Checks the file as [`check`](Self::check), that no other program has overwritten it, and that its log has every
    /// committed page. It costs seven system calls.
    ///
    /// # Errors
    /// Returns an error when the file or its log was moved, deleted, replaced, truncated or overwritten.
    pub(crate) fn check_content(&self) -> Result<(), StatementError> {
        self.check()?;
        self.check_header()?;
        self.check_log(LogWatch::check_content)
    }

    /// Does the same before the log is moved into the file for the last time. A log that was only removed or renamed is
    /// complete: the connections have it open.
    ///
    /// # Errors
    /// Returns an error when the log must not be moved into the file.
    pub(crate) fn check_before_closing(&self) -> Result<(), StatementError> {
        self.check_place()?;
        self.check_header()?;
        self.check_log(LogWatch::check_place_of_index)?;
        self.check_log(LogWatch::check_content)
    }

    fn check_log(&self, check: impl FnOnce(&LogWatch) -> Result<(), LogError>) -> Result<(), StatementError> {
        match self.log.get().map_or(Ok(()), check) {
            Ok(()) => Ok(()),
            Err(LogError::Lacks(what)) => Err(self.damaged(what)),
            Err(error @ (LogError::Misplaced(_) | LogError::Unreadable(..))) => {
                Err(StatementError::Unavailable { reason: error.to_string(), lost: false })
            }
        }
    }

    fn check_header(&self) -> Result<(), StatementError> {
        match self.watch.as_ref().map_or(Ok(()), Watch::look) {
            Ok(()) => Ok(()),
            Err(HeaderError::Unreadable(error)) => {
                let reason = format!("cannot read the header of {}: {error}", self.path.display());
                Err(StatementError::Unavailable { reason, lost: false })
            }
            Err(HeaderError::Differs(what)) => Err(self.damaged(what)),
        }
    }

    /// Records that the content is not the program's any more.
    fn damaged(&self, what: &'static str) -> StatementError {
        if self.damage.set(what).is_ok() {
            tracing::error!(
                file = %self.path.display(),
                reason = what,
                "the database file was replaced or truncated while the server runs, so nothing is read or written any more: \
                 stop the server, and run `usage-billing restore` with a backup"
            );
        }
        StatementError::Replaced
    }

    /// Returns the number with which the server marks the file, if a server uses it.
    pub(crate) fn new_mark(&self) -> Option<u32> {
        self.watch.as_ref().map(|_| random_mark())
    }

    /// Begins to check the content of the file, which the server has marked, and of its log. The connection must have read
    /// the file, and is not used otherwise.
    ///
    /// # Errors
    /// Returns an error when the file has no header of SQLite, or when the log cannot be read.
    pub(crate) fn begin_watch(&self, mark: u32, connection: SqliteConnection) -> Result<(), StatementError> {
        let begun = self.watch.as_ref().map_or(Ok(()), |watch| watch.begin(mark));
        begun.map_err(|error| {
            let reason = format!("cannot read the header of {}: {error}", self.path.display());
            StatementError::Unavailable { reason, lost: false }
        })?;
        let log = LogWatch::begin(&self.real_path, connection);
        let log = log.map_err(|error| StatementError::Unavailable { reason: error.to_string(), lost: false })?;
        // A second migration in the same process watches the same files.
        let _ = self.log.set(log);
        Ok(())
    }

    /// Ends the checks of the mark, which the server is about to remove. Returns whether it had one.
    pub(crate) fn end_watch(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::end)
    }

    /// Returns whether the last server of the file stopped without moving its log into the file, or was killed. A server
    /// marks the file while it runs.
    ///
    /// # Errors
    /// Returns the errors of the operating system.
    pub(crate) fn has_unclean_end(&self) -> io::Result<bool> {
        let has_log = std::fs::metadata(beside(&self.real_path, "-wal")).is_ok_and(|log| log.len() > 0);
        let has_mark = match self.watch.as_ref().map(Watch::read) {
            // A new file has no header yet. SQLite reports other files.
            None | Some(Err(HeaderError::Differs(_))) => false,
            Some(Ok(header)) => header.mark != NO_MARK,
            Some(Err(HeaderError::Unreadable(error))) => return Err(error),
        };
        Ok(has_log || has_mark)
    }

    /// Returns the size of the file and its log.
    ///
    /// # Errors
    /// Returns the errors of the operating system.
    pub(crate) fn size(&self) -> io::Result<u64> {
        let DiskUse { database, log, .. } = self.disk_use()?;
        Ok(database.saturating_add(log))
    }

    /// Records that the structure of the file is malformed.
    pub(crate) fn note_malformed(&self, reason: String) {
        tracing::error!(
            file = %self.path.display(),
            reason,
            "the database file is malformed, so the server is not ready any more: stop the server, and run `usage-billing \
             restore` with a backup"
        );
        let _ = self.malformed.set(reason);
    }

    /// Checks that the file is not known to be malformed.
    ///
    /// # Errors
    /// Returns the reason.
    pub(crate) fn check_structure(&self) -> Result<(), StatementError> {
        match self.malformed.get() {
            None => Ok(()),
            Some(found) => {
                let reason = format!("the database file is malformed: {found}: restore a backup with the server stopped");
                Err(StatementError::Unavailable { reason, lost: false })
            }
        }
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

    /// Writes the changed pages of the file to the disk, if a server uses the file. It does nothing for other processes.
    ///
    /// # Errors
    /// Returns the errors of the operating system.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.watch.as_ref().map_or(Ok(()), |watch| watch.file.sync_data())
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
            log: std::fs::metadata(beside(&self.real_path, "-wal")).map_or(0, |log| log.len()),
            free: disk.f_bavail.saturating_mul(disk.f_frsize),
        })
    }
}

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = BigInt)]
    id: i64,
}

/// Creates a missing database file that only its owner can read. SQLite gives `-wal` and `-shm` the same permissions.
/// The permissions of an existing file stay unchanged.
pub(crate) fn private_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(_) => return Ok(()),
        Err(_) => {}
    }
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        let (file, mode) = (path.display(), mode & 0o777);
        tracing::warn!("{file} has the mode {mode:o}, so other users can read its secrets: restrict it with `chmod 600`");
    }
    Ok(())
}

/// Returns the path of a file next to the database, with `suffix` appended to the name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns the absolute path of a file without symbolic links. The file may be missing.
///
/// # Errors
/// Returns the errors of the operating system.
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    match std::fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => std::path::absolute(path),
        resolved => resolved,
    }
}

/// Returns the device and the inode of a file.
pub(crate) fn identity(metadata: &std::fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// The size of the header that begins each SQLite file.
const HEADER_BYTES: usize = 100;
/// The first bytes of each SQLite file.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// The fields of a file header that tell whether the content is still the one that the server marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    /// The size of a page, and the versions of the format, which tell whether the file has a write-ahead log. `VACUUM INTO`
    /// creates copies without one.
    layout: u32,
    /// Grows with changes of the header.
    change_counter: u32,
    /// The number of pages.
    pages: u32,
    /// Grows with changes of the schema. SQLite's online backup begins a new count.
    schema_cookie: u32,
    /// The `user_version`, in which the server stores its mark.
    mark: u32,
}

impl Header {
    /// Parses a header. Returns `None` if the bytes do not begin a SQLite file.
    fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        if !bytes.starts_with(MAGIC) {
            return None;
        }
        let number = |at: usize| bytes.get(at..at + 4).and_then(|part| part.try_into().ok()).map(u32::from_be_bytes);
        Some(Self {
            layout: number(16)?,
            change_counter: number(24)?,
            pages: number(28)?,
            schema_cookie: number(40)?,
            mark: number(60)?,
        })
    }

    /// Returns why the file cannot have had this header before `next`, if so.
    fn contradiction(&self, next: &Self) -> Option<&'static str> {
        if next.layout != self.layout {
            Some("it has another page size or journal mode")
        } else if next.schema_cookie < self.schema_cookie {
            Some("its schema is older than before")
        } else if next.change_counter < self.change_counter || next.pages < self.pages {
            Some("its content is older than before")
        } else {
            None
        }
    }
}

/// The reason why a header is not accepted.
#[derive(Debug, thiserror::Error)]
enum HeaderError {
    #[error(transparent)]
    Unreadable(io::Error),
    #[error("{0}")]
    Differs(&'static str),
}

/// The last accepted header of a file.
#[derive(Clone, Copy, Debug)]
struct AcceptedHeader {
    header: Header,
    /// The mark of this server, and the mark from before its start. The latter is accepted until a checkpoint moves the
    /// server's own mark from the log into the file.
    marks: [u32; 2],
}

impl AcceptedHeader {
    /// Accepts a newer header of the same content.
    fn follow(&mut self, next: Header) -> Result<(), HeaderError> {
        if !self.marks.contains(&next.mark) {
            return Err(HeaderError::Differs("it does not have the mark of this server"));
        }
        if let Some(what) = self.header.contradiction(&next) {
            return Err(HeaderError::Differs(what));
        }
        let [own, _] = self.marks;
        if next.mark == own {
            self.marks = [own; 2];
        }
        self.header = next;
        Ok(())
    }
}

/// The content of a file that a server uses.
///
/// The server marks the file with a random number at each start. A file with another mark was not written by this server.
/// A copy that was made while the server runs has the same mark, but it has another journal mode, another schema version, or
/// smaller counters, unless the file has not changed since.
#[derive(Debug)]
struct Watch {
    /// The file is never closed: on Linux, closing it would release the locks of all SQLite connections of the process.
    file: ManuallyDrop<File>,
    /// The accepted header, once the file is marked.
    accepted: Mutex<Option<AcceptedHeader>>,
}

impl Watch {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: ManuallyDrop::new(File::open(path)?), accepted: Mutex::new(None) })
    }

    fn read(&self) -> Result<Header, HeaderError> {
        let mut bytes = [0; HEADER_BYTES];
        match self.file.read_exact_at(&mut bytes, 0) {
            Ok(()) => Header::parse(&bytes).ok_or(HeaderError::Differs("it is not a SQLite file")),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(HeaderError::Differs("it has no header")),
            Err(error) => Err(HeaderError::Unreadable(error)),
        }
    }

    fn begin(&self, mark: u32) -> Result<(), HeaderError> {
        let header = self.read()?;
        let accepted = AcceptedHeader { header, marks: [mark, header.mark] };
        *self.accepted.lock().unwrap_or_else(PoisonError::into_inner) = Some(accepted);
        Ok(())
    }

    /// Ends the comparisons. Returns whether they had begun.
    fn end(&self) -> bool {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    /// Compares the header with the last accepted one.
    fn look(&self) -> Result<(), HeaderError> {
        // The lock puts the reads of several threads in an order, so that an older read is not compared with a newer one.
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(accepted) = accepted.as_mut() else { return Ok(()) };
        let mut compare = || self.read().and_then(|header| accepted.follow(header));
        let mut compared = compare();
        for _ in 1..HEADER_READS {
            if compared.is_ok() {
                break;
            }
            std::thread::sleep(HEADER_PAUSE);
            compared = compare();
        }
        compared
    }
}

/// The mark of a file that no server uses.
const NO_MARK: u32 = 0;

/// Returns a random mark.
fn random_mark() -> u32 {
    // This is the standard library's only source of randomness, and sufficient to tell two starts apart.
    let [_, _, _, _, a, b, c, d] = std::hash::RandomState::new().build_hasher().finish().to_be_bytes();
    // SQLite reads the number as signed.
    (u32::from_be_bytes([a, b, c, d]) >> 1).max(NO_MARK + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header { layout: 0x1000_0202, change_counter: 7, pages: 40, schema_cookie: 90, mark: 5 };

    fn accepts(before: AcceptedHeader, next: Header) -> bool {
        let mut accepted = before;
        accepted.follow(next).is_ok()
    }

    #[test]
    fn a_header_is_parsed_from_its_documented_places() {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..20].copy_from_slice(&[0x10, 0, 2, 2]);
        for (at, value) in [(24, 7_u32), (28, 40), (40, 90), (60, 5)] {
            bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        assert_eq!(Header::parse(&bytes), Some(HEADER));
        bytes[0] = b's';
        assert_eq!(Header::parse(&bytes), None);
    }

    #[test]
    fn a_header_may_grow_and_must_not_go_back() {
        let before = AcceptedHeader { header: HEADER, marks: [5, 5] };
        assert!(accepts(before, HEADER));
        assert!(accepts(before, Header { change_counter: 8, pages: 41, schema_cookie: 91, ..HEADER }));
        for older in [
            Header { layout: 0x1000_0101, ..HEADER },
            Header { change_counter: 6, ..HEADER },
            Header { pages: 39, ..HEADER },
            Header { schema_cookie: 1, ..HEADER },
            Header { mark: 4, ..HEADER },
            Header { mark: 0, change_counter: 8, ..HEADER },
        ] {
            assert!(!accepts(before, older), "{older:?}");
        }
    }

    #[test]
    fn the_earlier_mark_is_accepted_until_the_own_one_is_in_the_file() {
        let mut accepted = AcceptedHeader { header: Header { mark: 4, ..HEADER }, marks: [5, 4] };
        assert!(accepts(accepted, Header { mark: 4, ..HEADER }));
        accepted.follow(HEADER).expect("the own mark");
        assert!(!accepts(accepted, Header { mark: 4, ..HEADER }));
    }

    #[test]
    fn marks_differ_and_are_positive_numbers_of_sqlite() {
        let marks = [(); 4].map(|()| random_mark());
        assert!(marks.iter().all(|mark| (1..=0x7fff_ffff).contains(mark)), "{marks:?}");
        assert!(marks.iter().any(|mark| *mark != marks[0]), "{marks:?}");
    }
}
