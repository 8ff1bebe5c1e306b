//! Moves SQLite's write-ahead log into the database file, outside the transactions, and keeps the log bounded.
//!
//! A log that is always written never ends by itself: it restarts from its beginning only when all its pages are in the
//! database file, that file is durable, and no reader needs the log. Writers must wait for that moment. The thread of this
//! module therefore does in advance, beside the writers, whatever does not need their wait:
//!
//! - It moves the pages. A checkpoint beside a writer does not reach the end of the log.
//! - It makes the database file durable. SQLite does so only in the checkpoint that reaches the end of the log, which is the
//!   one that writers wait for. Without this step, that checkpoint writes all pages of the log to the disk.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use billing_domain::ports::{DatabaseReplaced, WriterPauses};
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
/// The number of log pages from which a restart also waits for long reads: 64 MiB. Below it, writers wait for short reads
/// only.
const FORCED_FROM: i64 = 16_000;
/// The number of times that the thread moves pages immediately before a restart. The second time, few pages are left: those
/// written during the first time.
const PASSES_BEFORE_RESTART: u32 = 2;
/// The shortest interval between two checks of the log.
const PAUSE: Duration = Duration::from_millis(100);
/// The time that writers wait for short reads, such as the check of a token, so that the log can restart.
const SHORT_WAIT: Duration = Duration::from_millis(2);
/// The time that writers wait for long reads, per [`BEGUN_ANEW_FROM`] pages of a log of at least [`FORCED_FROM`] pages.
const FORCED_WAIT: Duration = Duration::from_millis(100);
/// The longest time that writers wait for reads.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// After a failed restart, the next attempt waits at least this multiple of the time that writers waited.
const REST: u32 = 20;
/// The first and the longest pause between two attempts to restart the log while writers wait. SQLite's own pauses begin
/// with 1 ms and soon take 10 ms and more, but most reads end within a fraction of a millisecond.
const RETRY_AFTER: (Duration, Duration) = (Duration::from_micros(250), Duration::from_millis(4));
/// A pause of the writers of at least this duration is logged for the operator, not only for debugging.
const LONG_PAUSE: Duration = Duration::from_millis(100);
/// The upper bounds of the buckets of [`WriterPauses`], in microseconds.
const PAUSE_BOUNDS: [u64; 10] = [500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000];

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
    pauses: PauseCounts,
}

/// The number of pauses up to each bound of [`PAUSE_BOUNDS`] and above all bounds, and their sum in microseconds.
#[derive(Debug, Default)]
struct PauseCounts {
    counts: [u64; PAUSE_BOUNDS.len() + 1],
    micros: u64,
}

impl PauseCounts {
    fn add(&mut self, pause: Duration) {
        let micros = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        self.counts[PAUSE_BOUNDS.partition_point(|bound| *bound < micros)] += 1;
        self.micros = self.micros.saturating_add(micros);
    }

    fn figures(&self) -> WriterPauses {
        let [buckets @ .., above_all] = &self.counts;
        let buckets = PAUSE_BOUNDS.into_iter().zip(buckets.iter().copied()).collect();
        WriterPauses { buckets, above_all: *above_all, micros: self.micros }
    }
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

    /// Returns the times for which writers waited for restarts of the log.
    pub(crate) fn pauses(&self) -> WriterPauses {
        self.signal.lock().pauses.figures()
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
        let mut log = checkpoint(self.own()?, "NOOP")?;
        if log.unmoved() >= MOVED_FROM {
            log = self.move_pages()?;
        }
        if log.pages >= BEGUN_ANEW_FROM && Instant::now() >= self.next {
            self.begin_anew(&log)?;
        }
        Ok(())
    }

    fn own(&mut self) -> Result<&mut SqliteConnection, ConnectError> {
        let own = match &mut self.own {
            Some(own) => own,
            none => none.insert(self.manager.connect()?),
        };
        Ok(&mut own.connection)
    }

    /// Moves pages beside readers and writers, and makes the database file durable.
    fn move_pages(&mut self) -> Result<Log, ConnectError> {
        let log = checkpoint(self.own()?, "PASSIVE")?;
        self.file.sync().map_err(|error| ConnectError(format!("cannot write the database file to its disk: {error}")))?;
        Ok(log)
    }

    /// Restarts the log on the connection for writing. Another connection would invalidate the page cache of that one.
    fn begin_anew(&mut self, log: &Log) -> Result<(), ConnectError> {
        let is_forced = log.pages >= FORCED_FROM;
        if !is_forced && log.unmoved() >= MOVED_FROM {
            // A long read needs these pages. Writers would wait in vain.
            return Ok(());
        }
        let wait = if is_forced {
            FORCED_WAIT.saturating_mul(u32::try_from(log.pages / BEGUN_ANEW_FROM).unwrap_or(u32::MAX)).min(LONGEST_WAIT)
        } else {
            SHORT_WAIT
        };
        for _ in 0..PASSES_BEFORE_RESTART {
            self.move_pages()?;
        }
        let held_back = self.signal.hold_back();
        // A long write is in progress; a later attempt restarts the log.
        let Ok(mut link) = self.writer.get_timeout(LONGEST_WAIT) else { return Ok(()) };
        let began = Instant::now();
        // The pool discards the connection unless its settings are restored below.
        link.lost = true;
        let log = restart(&mut link.connection, wait)?;
        waiting(&mut link.connection, self.manager.busy_timeout())?;
        link.lost = false;
        drop(link);
        drop(held_back);
        let pause = began.elapsed();
        self.signal.lock().pauses.add(pause);
        let ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        let (pages, is_restarted) = (log.pages, log.busy == 0);
        if pause >= LONG_PAUSE {
            tracing::info!(ms, pages, is_restarted, "writers waited for the restart of the write-ahead log");
        } else {
            tracing::debug!(ms, pages, is_restarted, "writers waited for the restart of the write-ahead log");
        }
        self.next = Instant::now();
        if !is_restarted {
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

/// Moves the rest of the log and restarts it, waiting up to `wait` for readers. The connection has no busy timeout afterwards.
fn restart(connection: &mut SqliteConnection, wait: Duration) -> Result<Log, ConnectError> {
    waiting(connection, Duration::ZERO)?;
    let began = Instant::now();
    let (mut retry_after, longest) = RETRY_AFTER;
    loop {
        let log = checkpoint(connection, "RESTART")?;
        if log.busy == 0 || began.elapsed() >= wait {
            return Ok(log);
        }
        std::thread::sleep(retry_after);
        retry_after = (retry_after * 2).min(longest);
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

impl Log {
    /// Returns the number of pages that are not yet in the database file.
    const fn unmoved(&self) -> i64 {
        self.pages - self.moved
    }
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
            let file = Arc::new(DatabaseFile::of(&path, true).expect("the file"));
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

        fn pauses(&self) -> u64 {
            let WriterPauses { buckets, above_all, .. } = self.checkpoints.pauses();
            above_all + buckets.iter().map(|(_, count)| count).sum::<u64>()
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
    fn a_long_read_makes_no_writer_wait_before_the_log_is_large() {
        let file = TestFile::new();
        let mut reader = file.reader();
        (0..40).for_each(|_| file.write());
        // Several checks of the log.
        std::thread::sleep(PAUSE * 5);
        assert_eq!(file.pauses(), 0, "a restart cannot succeed during the read");
        reader.connection.batch_execute("COMMIT").expect("the end");
        let began = Instant::now();
        while file.pauses() == 0 {
            assert!(began.elapsed() < PATIENCE, "{} MiB", file.log_mib());
            file.write();
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    #[test]
    fn a_pause_counts_under_the_first_bound_that_it_is_not_above() {
        let mut counts = PauseCounts::default();
        for micros in [100, 500, 501, 4_000, 2_000_000] {
            counts.add(Duration::from_micros(micros));
        }
        let WriterPauses { buckets, above_all, micros } = counts.figures();
        assert_eq!(buckets[..4], [(500, 2), (1_000, 1), (2_500, 0), (5_000, 1)]);
        assert_eq!((above_all, micros), (1, 2_005_101));
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
