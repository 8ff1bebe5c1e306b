//! Checks that the write-ahead log of a served SQLite file is in place and has every committed page.
//!
//! SQLite does not notice that another program removes or truncates its log. It continues in a file without a name, or
//! behind a hole of zeros, and all that it acknowledges is lost. The `-shm` file, which SQLite's connections share, says
//! what the log must contain: <https://www.sqlite.org/walformat.html>. Therefore every shortening of the log by SQLite
//! itself is right, and every other one is not.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use diesel::sqlite::SqliteConnection;

use crate::database_file::{beside, identity};

/// The number of reads of the index before a difference between its copies counts as a write of another process.
const INDEX_READS: u32 = 5;
/// The pause between these reads.
const INDEX_PAUSE: Duration = Duration::from_millis(1);

/// The size of one of the two copies of the header that begins the index.
const INDEX_HEADER_BYTES: usize = 48;
/// The size of the header that begins the log.
const LOG_HEADER_BYTES: usize = 32;
/// The size of the header of each frame, which precedes the page.
const FRAME_HEADER_BYTES: usize = 24;
/// The first bytes of each log, without the last bit, which names the byte order of its checksums.
const LOG_MAGIC: u32 = 0x377f_0682;

/// The reason why a log is not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    #[error("cannot read {}: {}", .0.display(), .1)]
    Unreadable(PathBuf, io::Error),
    /// A file of the log is not at its path.
    #[error(
        "{} was deleted, moved or replaced while the server uses it: restore the file, or stop the server, which moves the \
         log into the database file unless the log was changed",
        .0.display()
    )]
    Misplaced(PathBuf),
    /// Committed pages are missing in the log.
    #[error("{0}")]
    Lacks(&'static str),
}

/// What the log must contain, according to its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LogState {
    /// The number of committed frames since the log began anew.
    frames: u32,
    page_bytes: u32,
    /// The numbers that each frame repeats. SQLite changes them when the log begins anew.
    salts: [u8; 8],
}

impl LogState {
    /// Parses the two copies of the index header. Returns `None` if they differ, because a write is in progress, or if
    /// there is no header yet.
    fn parse(bytes: &[u8; 2 * INDEX_HEADER_BYTES]) -> Option<Self> {
        let (header, copy) = bytes.split_at(INDEX_HEADER_BYTES);
        let is_initialized = header.get(12).is_some_and(|byte| *byte != 0);
        if header != copy || !is_initialized {
            return None;
        }
        // All numbers have the byte order of the machine, except for the salts, which are bytes of the log.
        let size = header.get(14..16)?.try_into().map(u16::from_ne_bytes).ok()?;
        // 65,536 does not fit, and is stored as 1.
        let page_bytes = u32::from(size & 0xfe00) + (u32::from(size & 1) << 16);
        let frames = header.get(16..20)?.try_into().map(u32::from_ne_bytes).ok()?;
        Some(Self { frames, page_bytes, salts: header.get(32..40)?.try_into().ok()? })
    }

    /// Returns the offset of the end of a frame, which is also that of the next one.
    fn end_of(self, frame: u32) -> u64 {
        LOG_HEADER_BYTES as u64 + u64::from(frame) * (FRAME_HEADER_BYTES as u64 + u64::from(self.page_bytes))
    }
}

/// The log of a database that a server uses.
pub(crate) struct LogWatch {
    path: PathBuf,
    identity: (u64, u64),
    file: File,
    index_path: PathBuf,
    index_identity: (u64, u64),
    /// The file is never closed: on Linux, closing it would release the locks of all SQLite connections of the process.
    index: ManuallyDrop<File>,
    /// The last accepted state.
    accepted: Mutex<LogState>,
    /// An idle connection. Without it, SQLite would delete both files when the pools discard the last other connection.
    _connection: Mutex<SqliteConnection>,
}

impl std::fmt::Debug for LogWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogWatch").field("path", &self.path).finish_non_exhaustive()
    }
}

impl LogWatch {
    /// Begins to watch the log of a database file. The connection must have read the database, so that both files exist.
    ///
    /// # Errors
    /// Returns an error when a file cannot be read.
    pub(crate) fn begin(database: &Path, connection: SqliteConnection) -> Result<Self, LogError> {
        let (path, index_path) = (beside(database, "-wal"), beside(database, "-shm"));
        let open = |path: &Path| {
            let opened = File::open(path).and_then(|file| Ok((identity(&file.metadata()?), file)));
            opened.map_err(|error| LogError::Unreadable(path.to_owned(), error))
        };
        let (identity, file) = open(&path)?;
        let (index_identity, index) = open(&index_path)?;
        let index = ManuallyDrop::new(index);
        let nothing = LogState { frames: 0, page_bytes: 0, salts: [0; 8] };
        let (accepted, idle) = (Mutex::new(nothing), Mutex::new(connection));
        let watch = Self { path, identity, file, index_path, index_identity, index, accepted, _connection: idle };
        watch.check()?;
        Ok(watch)
    }

    /// Checks the places of the log and its index, and their content. It costs two reads and three looks at metadata.
    ///
    /// # Errors
    /// Returns an error when one of the files was deleted, moved, replaced or truncated.
    pub(crate) fn check(&self) -> Result<(), LogError> {
        self.check_places()?;
        self.check_content()
    }

    /// Checks that both paths still name the opened files. A process that opens a path anew otherwise gets another file.
    ///
    /// # Errors
    /// Returns [`LogError::Misplaced`] for a file that was deleted, moved or replaced.
    pub(crate) fn check_places(&self) -> Result<(), LogError> {
        self.check_place_of_index()?;
        require_place(&self.path, self.identity)
    }

    /// Checks the place of the index alone. Without it, other processes have other locks.
    ///
    /// # Errors
    /// Returns [`LogError::Misplaced`] if the index was deleted, moved or replaced.
    pub(crate) fn check_place_of_index(&self) -> Result<(), LogError> {
        require_place(&self.index_path, self.index_identity)
    }

    /// Checks that the log, at any path, has the committed frames.
    ///
    /// # Errors
    /// Returns an error when frames are missing.
    pub(crate) fn check_content(&self) -> Result<(), LogError> {
        // The lock puts the reads of several threads in an order, so that an older state is not accepted after a newer one.
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..INDEX_READS {
            if let Some(state) = self.state()? {
                let lacking = self.lacking(state, *accepted)?;
                match lacking {
                    None => {
                        *accepted = state;
                        return Ok(());
                    }
                    // The log did not begin anew between the two reads.
                    Some(what) if self.state()? == Some(state) => return Err(LogError::Lacks(what)),
                    Some(_) => {}
                }
            }
            std::thread::sleep(INDEX_PAUSE);
        }
        // Another process writes all the time, or it was killed while it wrote, and SQLite builds the index anew.
        Ok(())
    }

    /// Reads what the log must contain.
    fn state(&self) -> Result<Option<LogState>, LogError> {
        let mut bytes = [0; 2 * INDEX_HEADER_BYTES];
        match self.index.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(LogState::parse(&bytes)),
            Err(error) => Err(LogError::Unreadable(self.index_path.clone(), error)),
        }
    }

    /// Returns what the log lacks of a state, given the state before.
    fn lacking(&self, state: LogState, before: LogState) -> Result<Option<&'static str>, LogError> {
        if state.frames == 0 {
            return Ok(None);
        }
        let unreadable = |error| LogError::Unreadable(self.path.clone(), error);
        if self.file.metadata().map_err(unreadable)?.len() < state.end_of(state.frames) {
            return Ok(Some("its -wal file is shorter than what was committed"));
        }
        // After a truncation, SQLite writes behind the earlier end, and leaves zeros before it. In a log that has not begun
        // anew, these cover the last frame that was seen.
        let is_continued = before.salts == state.salts && 0 < before.frames && before.frames <= state.frames;
        let has_salts = if is_continued {
            let mut header = [0; FRAME_HEADER_BYTES];
            let at = before.end_of(before.frames - 1);
            self.file.read_exact_at(&mut header, at).map_err(unreadable)?;
            header.get(8..16) == Some(&state.salts[..])
        } else {
            let mut header = [0; LOG_HEADER_BYTES];
            self.file.read_exact_at(&mut header, 0).map_err(unreadable)?;
            let magic = header.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
            magic.is_some_and(|magic| magic & !1 == LOG_MAGIC) && header.get(16..24) == Some(&state.salts[..])
        };
        Ok((!has_salts).then_some("its -wal file does not have the content that was committed"))
    }
}

fn require_place(path: &Path, expected: (u64, u64)) -> Result<(), LogError> {
    match std::fs::metadata(path) {
        Ok(metadata) if identity(&metadata) == expected => Ok(()),
        Ok(_) => Err(LogError::Misplaced(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(LogError::Misplaced(path.to_owned())),
        Err(error) => Err(LogError::Unreadable(path.to_owned(), error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_parsed_from_its_documented_places() {
        let mut header = [0; INDEX_HEADER_BYTES];
        header[12] = 1;
        header[14..16].copy_from_slice(&4096_u16.to_ne_bytes());
        header[16..20].copy_from_slice(&3_u32.to_ne_bytes());
        header[32..40].copy_from_slice(b"saltsalt");
        let twice = |header: [u8; INDEX_HEADER_BYTES]| {
            let mut bytes = [0; 2 * INDEX_HEADER_BYTES];
            bytes[..INDEX_HEADER_BYTES].copy_from_slice(&header);
            bytes[INDEX_HEADER_BYTES..].copy_from_slice(&header);
            bytes
        };
        let state = LogState::parse(&twice(header)).expect("a header");
        assert_eq!(state, LogState { frames: 3, page_bytes: 4096, salts: *b"saltsalt" });
        assert_eq!(state.end_of(3), 32 + 3 * (24 + 4096));
        header[14..16].copy_from_slice(&1_u16.to_ne_bytes());
        assert_eq!(LogState::parse(&twice(header)).map(|state| state.page_bytes), Some(65_536));
        let mut differing = twice(header);
        differing[60] ^= 1;
        assert_eq!(LogState::parse(&differing), None);
        header[12] = 0;
        assert_eq!(LogState::parse(&twice(header)), None);
    }
}
