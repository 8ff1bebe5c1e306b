//! Moves SQLite's write-ahead log into the database file, outside the transactions, and keeps the log bounded.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use billing_domain::ports::DatabaseReplaced;
use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel::sqlite::SqliteConnection;
use r2d2::ManageConnection as _;

use crate::connect::{ConnectError, Link, SqliteManager, SqlitePool};
use crate::database_file::DatabaseFile;
use crate::failure::StatementError;

/// The number of log pages that starts a checkpoint beside readers and writers: 4 MiB.
const MOVED_FROM: i64 = 1_000;
/// The number of log pages that restarts the log: 32 MiB. A checkpoint alone does not restart the log while readers
/// overlap; for a restart, writers wait briefly until the readers are done.
const BEGUN_ANEW_FROM: i64 = 8_000;
/// The shortest interval between two checks of the log.
const PAUSE: Duration = Duration::from_millis(100);
/// The time that writers wait for the restart of a log of [`BEGUN_ANEW_FROM`] pages; a larger log gets proportionally
/// more.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest time that writers wait for a restart.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// After a failed restart, the next attempt waits at least this multiple of the time that writers waited.
const REST: u32 = 20;

/// The handle of the checkpoint thread.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    signal: Arc<Signal>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_written: bool,
    is_over: bool,
    /// Whether writers wait until the log is restarted.
    holds_back: bool,
}

impl Signal {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics halfway through a change of the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a write. Returns false when the thread must stop.
    fn wait(&self) -> bool {
        let waited = self.changed.wait_while(self.lock(), |state| !state.is_written && !state.is_over);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_written = false;
        !state.is_over
    }

    /// Waits for `pause`, or until the thread must stop.
    fn rest(&self, pause: Duration) {
        // The next wait finds out whether the pause or the thread has ended.
        drop(self.changed.wait_timeout_while(self.lock(), pause, |state| !state.is_over));
    }

    /// Blocks new writers until the guard is dropped. The pool alone does not suffice: it gives a connection to the
    /// first requester, not to the longest-waiting one.
    fn hold_back(&self) -> HeldBack<'_> {
        self.lock().holds_back = true;
        HeldBack(self)
    }
}

struct HeldBack<'s>(&'s Signal);

impl Drop for HeldBack<'_> {
    fn drop(&mut self) {
        self.0.lock().holds_back = false;
        self.0.changed.notify_all();
    }
}

impl Checkpoints {
    /// Starts the thread.
    ///
    /// # Errors
    /// Returns an error when the operating system cannot create a thread.
    pub(crate) fn start(manager: SqliteManager, writer: SqlitePool, file: Arc<DatabaseFile>) -> std::io::Result<Self> {
        let signal = Arc::new(Signal::default());
        let (next, is_failing) = (Instant::now(), false);
        let mut work = Work { manager, writer, file, signal: Arc::clone(&signal), own: None, next, is_failing };
        let thread = std::thread::Builder::new().name("checkpoints".to_owned()).spawn(move || {
            while work.signal.wait() {
                work.look();
                work.signal.rest(PAUSE);
            }
        })?;
        Ok(Self { signal, thread: Mutex::new(Some(thread)) })
    }

    /// Waits while writers are blocked.
    pub(crate) fn let_through(&self) {
        drop(self.signal.changed.wait_while(self.signal.lock(), |state| state.holds_back));
    }

    /// Records that a transaction was written.
    pub(crate) fn written(&self) {
        let mut state = self.signal.lock();
        if !std::mem::replace(&mut state.is_written, true) {
            self.signal.changed.notify_all();
        }
    }

    /// Stops the thread and waits for its current work.
    pub(crate) fn stop(&self) {
        self.signal.lock().is_over = true;
        self.signal.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that moves the write-ahead log has panicked");
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Work {
    manager: SqliteManager,
    writer: SqlitePool,
    file: Arc<DatabaseFile>,
    signal: Arc<Signal>,
    /// The thread's own connection, opened when first needed.
    own: Option<Link<SqliteConnection>>,
    /// The earliest time of the next restart of the log.
    next: Instant,
    is_failing: bool,
}

impl Work {
    fn look(&mut self) {
        let done = self.keep_bounded();
        if let (Err(error), false) = (&done, self.is_failing) {
            tracing::warn!(%error, "cannot checkpoint the write-ahead log, which grows until a checkpoint succeeds");
        }
        self.is_failing = done.is_err();
        if self.is_failing {
            self.own = None;
        }
    }

    fn keep_bounded(&mut self) -> Result<(), ConnectError> {
        // A checkpoint into a file that another program wrote would destroy that file, and hide that it was replaced.
        self.file.check_content().map_err(|error| match error {
            StatementError::Unavailable { reason, .. } => ConnectError(reason),
            _ => ConnectError(DatabaseReplaced.to_string()),
        })?;
        let own = match &mut self.own {
            Some(own) => own,
            none => none.insert(self.manager.connect()?),
        };
        let mut log = checkpoint(&mut own.connection, "NOOP")?;
        if log.pages - log.moved >= MOVED_FROM {
            log = checkpoint(&mut own.connection, "PASSIVE")?;
        }
        if log.pages >= BEGUN_ANEW_FROM && Instant::now() >= self.next {
            self.begin_anew(log.pages)?;
        }
        Ok(())
    }

    /// Restarts the log on the connection for writing, after waiting for all its readers.
    fn begin_anew(&mut self, pages: i64) -> Result<(), ConnectError> {
        let wait = FIRST_WAIT.saturating_mul(u32::try_from(pages / BEGUN_ANEW_FROM).unwrap_or(u32::MAX)).min(LONGEST_WAIT);
        let _held_back = self.signal.hold_back();
        // A long write is in progress; a later attempt restarts the log.
        let Ok(mut link) = self.writer.get_timeout(LONGEST_WAIT) else { return Ok(()) };
        // The pool discards the connection unless its settings are restored below.
        link.lost = true;
        let log = waiting(&mut link.connection, wait).and_then(|()| checkpoint(&mut link.connection, "RESTART"))?;
        waiting(&mut link.connection, self.manager.busy_timeout())?;
        link.lost = false;
        self.next = Instant::now();
        if log.busy != 0 {
            tracing::debug!(
                pages,
                ?wait,
                "a long read delays the checkpoint of the write-ahead log, which grows until the read ends"
            );
            self.next += wait * REST;
        }
        Ok(())
    }
}

/// Empties the write-ahead log, waiting up to `wait` for readers.
pub(crate) fn empty(connection: &mut SqliteConnection, wait: Duration) -> Result<(), ConnectError> {
    waiting(connection, wait)?;
    let done = checkpoint(connection, "TRUNCATE")?;
    if done.busy == 0 { Ok(()) } else { Err(ConnectError("other connections still read the -wal file".to_owned())) }
}

/// Moves as much of the write-ahead log into the file as readers permit, without waiting.
pub(crate) fn move_log(connection: &mut SqliteConnection) -> Result<(), ConnectError> {
    checkpoint(connection, "PASSIVE").map(drop)
}

fn waiting(connection: &mut SqliteConnection, wait: Duration) -> Result<(), ConnectError> {
    Ok(connection.batch_execute(&format!("PRAGMA busy_timeout = {}", wait.as_millis()))?)
}

#[derive(QueryableByName)]
struct Log {
    #[diesel(sql_type = BigInt)]
    busy: i64,
    #[diesel(sql_type = BigInt, column_name = "log")]
    pages: i64,
    #[diesel(sql_type = BigInt, column_name = "checkpointed")]
    moved: i64,
}

fn checkpoint(connection: &mut SqliteConnection, mode: &str) -> Result<Log, ConnectError> {
    Ok(diesel::sql_query(format!("PRAGMA wal_checkpoint({mode})")).get_result(connection)?)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tempfile::TempDir;

    use super::*;
    use crate::connect::pool;
    use crate::database_file::beside;

    const MIB: u64 = 1024 * 1024;
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A database file with both kinds of connections.
    struct TestFile {
        _directory: TempDir,
        path: PathBuf,
        readers: SqliteManager,
        writer: SqlitePool,
        checkpoints: Checkpoints,
    }

    impl TestFile {
        fn new() -> Self {
            let directory = TempDir::new().expect("a directory");
            let path = directory.path().join("usage.sqlite3");
            let manager = |read_only| SqliteManager::new(&path, PATIENCE, read_only).expect("a path");
            let (writer, readers) = (pool(manager(false), 1, PATIENCE), manager(true));
            writer.get().expect("it").connection.batch_execute("CREATE TABLE t (c BLOB)").expect("a table");
            let file = Arc::new(DatabaseFile::of(&path, false).expect("the file"));
            let checkpoints = Checkpoints::start(manager(false), writer.clone(), file).expect("a thread");
            Self { path, _directory: directory, readers, writer, checkpoints }
        }

        /// Runs a transaction that writes slightly more than 1 MiB.
        fn write(&self) {
            self.checkpoints.let_through();
            let mut link = self.writer.get().expect("the connection that writes");
            link.connection.batch_execute("INSERT INTO t VALUES (zeroblob(1050000))").expect("room");
            drop(link);
            self.checkpoints.written();
        }

        fn reader(&self) -> Link<SqliteConnection> {
            let mut link = self.readers.connect().expect("a connection");
            link.connection.batch_execute("BEGIN; SELECT count(*) FROM t").expect("a view");
            link
        }

        fn log_mib(&self) -> u64 {
            std::fs::metadata(beside(&self.path, "-wal")).expect("the log").len() / MIB
        }
    }

    #[test]
    fn the_log_stays_bounded_although_there_is_always_somebody_who_reads_it() {
        let file = TestFile::new();
        let is_over = AtomicBool::new(false);
        let is_bounded = std::thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let mut reader = file.reader();
                        std::thread::sleep(Duration::from_millis(20));
                        reader.connection.batch_execute("COMMIT").expect("the end");
                    }
                });
            }
            // A busy machine takes longer to restart the log.
            let is_bounded = (1..1_000).any(|written| {
                file.write();
                written > 200 && file.log_mib() * 2 < written
            });
            is_over.store(true, Ordering::Relaxed);
            is_bounded
        });
        assert!(is_bounded, "{} MiB", file.log_mib());
    }

    #[test]
    fn a_log_that_grew_while_it_was_read_is_cut_when_it_is_begun_anew() {
        let file = TestFile::new();
        let mut reader = file.reader();
        (0..100).for_each(|_| file.write());
        assert!(file.log_mib() >= 100, "{} MiB: a view holds it", file.log_mib());
        reader.connection.batch_execute("COMMIT").expect("the end");
        let began = Instant::now();
        while file.log_mib() > 64 {
            assert!(began.elapsed() < PATIENCE, "{} MiB", file.log_mib());
            file.write();
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn it_ends_at_once_and_what_is_written_after_is_emptied_by_closing() {
        let file = TestFile::new();
        file.write();
        file.checkpoints.stop();
        file.write();
        empty(&mut file.writer.get().expect("it").connection, PATIENCE).expect("nobody reads");
        assert_eq!(file.log_mib(), 0);
    }
}
