//! A response body that one thread writes while the connection sends it. Memory is bounded, and a truncated body is
//! always recognizable.
//!
//! The writer holds a transaction open, so it does not wait for a slow reader. Data ahead of the reader goes to a
//! temporary file. After the last byte the writer waits for the reader, up to a time limit. A body that ends early breaks
//! the connection, so that no client takes a part for the whole.

use std::collections::VecDeque;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;

use billing_api::problem::Problem;

const CHUNK_BYTES: usize = 64 * 1024;
/// Maximum number of chunks queued for the reader.
const MAX_CHUNKS: usize = 4;
/// Number of rows between two checks whether the body is still read.
const ASK_EVERY_ROWS: u32 = 1_000;

/// Time limits of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PipeTimeouts {
    /// Maximum wait for the reader to take a chunk after everything is written.
    pub(crate) stalled: Duration,
    /// Maximum total time from the first write to the last read.
    pub(crate) total: Duration,
}

/// Creates a connected writer and reader.
pub(crate) fn pipe(patience: PipeTimeouts) -> (PipeWriter, PipeReader) {
    let shared = Arc::new(Shared::default());
    let writer = PipeWriter {
        shared: Arc::clone(&shared),
        buffer: Vec::with_capacity(CHUNK_BYTES),
        ahead: SpillFile::default(),
        stalled: patience.stalled,
        until: Instant::now() + patience.total,
    };
    (writer, PipeReader(shared))
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when the queue has room for a chunk or the reader is dropped.
    room: Condvar,
}

#[derive(Default)]
struct State {
    chunks: VecDeque<Bytes>,
    end: Option<Result<(), Problem>>,
    reader: Option<Waker>,
    reader_is_gone: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics halfway through a change of the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Ends the body unless it has ended. On an error, drops the queued chunks.
    fn end(&mut self, end: Result<(), Problem>) {
        if self.end.is_some() {
            return;
        }
        if end.is_err() {
            self.chunks.clear();
        }
        self.end = Some(end);
        self.wake();
    }

    /// Returns whether the queue has room for a chunk, or an error if the body has ended or the reader is dropped.
    fn has_room(&self) -> io::Result<bool> {
        if self.reader_is_gone || self.end.is_some() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(self.chunks.len() < MAX_CHUNKS)
    }

    fn push(&mut self, chunk: Bytes) {
        self.chunks.push_back(chunk);
        self.wake();
    }

    /// Ends the body with a timeout.
    fn time_out(&mut self) -> io::Error {
        self.end(Err(Problem::timed_out()));
        io::ErrorKind::TimedOut.into()
    }

    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// Written data for which the queue has no room, in a temporary file that is deleted with the value.
#[derive(Default)]
struct SpillFile {
    file: Option<File>,
    /// Offset in the file of the next write.
    written: u64,
    read: u64,
}

impl SpillFile {
    const fn is_empty(&self) -> bool {
        self.read == self.written
    }

    fn push(&mut self, chunk: &[u8]) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile()?),
        };
        if self.read == self.written {
            (self.read, self.written) = (0, 0);
        }
        file.write_all_at(chunk, self.written)?;
        self.written += chunk.len() as u64;
        Ok(())
    }

    fn pop(&mut self) -> io::Result<Option<Bytes>> {
        let Some(file) = self.file.as_ref().filter(|_| !self.is_empty()) else { return Ok(None) };
        let left = usize::try_from(self.written - self.read).unwrap_or(CHUNK_BYTES);
        let mut chunk = vec![0; left.min(CHUNK_BYTES)];
        file.read_exact_at(&mut chunk, self.read)?;
        self.read += chunk.len() as u64;
        Ok(Some(Bytes::from(chunk)))
    }
}

/// The writing end. Dropping it before [`finish`](Self::finish) breaks the body.
pub(crate) struct PipeWriter {
    shared: Arc<Shared>,
    buffer: Vec<u8>,
    ahead: SpillFile,
    stalled: Duration,
    until: Instant,
}

impl PipeWriter {
    /// Completes the body. Waits until the reader has taken all chunks but those that fit in the queue.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.hand_over()?;
        while let Some(chunk) = self.ahead.pop()? {
            self.wait_for_room()?;
            self.shared.lock().push(chunk);
        }
        self.shared.lock().end(Ok(()));
        Ok(())
    }

    /// Ends the body with a problem.
    pub(crate) fn fail(self, problem: Problem) {
        self.shared.lock().end(Err(problem));
    }

    /// Returns a watch that reports whether the body is still read.
    pub(crate) fn watch(&self) -> PipeWatch {
        PipeWatch { shared: Arc::clone(&self.shared), until: self.until, rows: 0 }
    }

    /// Moves the buffer to the queue or the spill file, without waiting.
    fn hand_over(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if Instant::now() >= self.until {
            return Err(self.shared.lock().time_out());
        }
        while self.shared.lock().has_room()? {
            let Some(chunk) = self.ahead.pop()? else { break };
            self.shared.lock().push(chunk);
        }
        let chunk = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK_BYTES));
        if self.ahead.is_empty() && self.shared.lock().has_room()? {
            self.shared.lock().push(Bytes::from(chunk));
            return Ok(());
        }
        self.ahead.push(&chunk)
    }

    fn wait_for_room(&self) -> io::Result<()> {
        let waits_until = self.until.min(Instant::now() + self.stalled);
        let mut state = self.shared.lock();
        while !state.has_room()? {
            let left = waits_until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(state.time_out());
            }
            state = self.shared.room.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

impl Write for PipeWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() >= CHUNK_BYTES {
            self.hand_over()?;
        }
        let taken = bytes.len().min(CHUNK_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    /// Does nothing: a chunk is handed over only if it is full or the last one.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        self.shared.lock().end(Err(Problem::internal()));
    }
}

/// Reports whether a body is still read.
pub(crate) struct PipeWatch {
    shared: Arc<Shared>,
    until: Instant,
    rows: u32,
}

impl PipeWatch {
    /// Returns whether the reader exists and time is left.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.shared.lock().reader_is_gone && Instant::now() < self.until
    }

    /// Counts a row and checks periodically whether the body is still read. Formats that write only at the end need this
    /// check.
    ///
    /// # Errors
    /// Returns an error if the body is no longer read.
    pub(crate) fn row(&mut self) -> io::Result<()> {
        self.rows = self.rows.wrapping_add(1);
        if self.rows.is_multiple_of(ASK_EVERY_ROWS) && !self.is_wanted() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }
}

/// The reading end, which the connection sends.
pub(crate) struct PipeReader(Arc<Shared>);

impl PipeReader {
    /// Waits for the first bytes or the end of the body, at most for `longest`.
    ///
    /// # Errors
    /// Returns the problem that ended the body.
    pub(crate) async fn begin(&mut self, longest: Duration) -> Result<(), Problem> {
        let ready = poll_fn(|context| {
            let mut state = self.0.lock();
            if let Some(end) = &mut state.end {
                return Poll::Ready(std::mem::replace(end, Ok(())));
            }
            if !state.chunks.is_empty() {
                return Poll::Ready(Ok(()));
            }
            state.reader = Some(context.waker().clone());
            Poll::Pending
        });
        tokio::time::timeout(longest, ready).await.unwrap_or(Ok(()))
    }
}

impl MessageBody for PipeReader {
    type Error = io::Error;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, io::Error>>> {
        let mut state = self.0.lock();
        if let Some(chunk) = state.chunks.pop_front() {
            self.0.room.notify_one();
            return Poll::Ready(Some(Ok(chunk)));
        }
        match &state.end {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(problem)) => Poll::Ready(Some(Err(io::Error::other(problem.to_string())))),
            None => {
                state.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        self.0.lock().reader_is_gone = true;
        self.0.room.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;

    use super::*;

    const PATIENT: PipeTimeouts = PipeTimeouts { stalled: Duration::from_secs(60), total: Duration::from_secs(60) };

    fn problem_of(outcome: Result<(), Problem>) -> Option<&'static str> {
        outcome.err().map(|problem| problem.code())
    }

    #[actix_web::test]
    async fn what_is_written_is_read_in_order_through_a_few_chunks() {
        let (mut writer, mut reader) = pipe(PATIENT);
        let expected: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_be_bytes).collect();
        let written = expected.clone();
        let thread = std::thread::spawn(move || {
            written.chunks(777).try_for_each(|part| writer.write_all(part))?;
            writer.finish()
        });
        reader.begin(PATIENT.total).await.expect("bytes");
        let read = to_bytes(reader).await.expect("a whole body");
        assert!(read == expected);
        thread.join().expect("the thread").expect("all was written");
    }

    #[actix_web::test]
    async fn a_failure_before_the_first_chunk_is_a_problem() {
        let (writer, mut reader) = pipe(PATIENT);
        writer.fail(Problem::overloaded());
        assert_eq!(problem_of(reader.begin(PATIENT.total).await), Some("overloaded"));
        let (mut writer, mut reader) = pipe(PATIENT);
        writer.write_all(b"a part").expect("room");
        drop(writer);
        assert_eq!(problem_of(reader.begin(PATIENT.total).await), Some("internal_error"));
    }

    #[actix_web::test]
    async fn a_body_that_ends_early_is_no_whole_one() {
        let (mut writer, mut reader) = pipe(PATIENT);
        writer.write_all(&[7; CHUNK_BYTES + 1]).expect("room");
        reader.begin(PATIENT.total).await.expect("bytes");
        drop(writer);
        assert!(to_bytes(reader).await.is_err());
    }

    #[actix_web::test]
    async fn an_empty_body_is_whole_and_one_that_takes_long_begins_without_bytes() {
        let (writer, mut reader) = pipe(PATIENT);
        writer.finish().expect("nothing to write");
        reader.begin(PATIENT.total).await.expect("the end");
        assert!(to_bytes(reader).await.expect("a whole body").is_empty());
        let (writer, mut reader) = pipe(PATIENT);
        reader.begin(Duration::from_millis(5)).await.expect("long enough");
        drop(writer);
        assert!(to_bytes(reader).await.is_err());
    }

    #[actix_web::test]
    async fn a_writer_does_not_wait_for_a_reader_until_all_is_written() {
        let (mut writer, mut reader) = pipe(PATIENT);
        let expected: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_be_bytes).collect();
        // The reader runs on this thread, so it does not read during the first write.
        writer.write_all(&expected[..3_000_000]).expect("room in the file");
        let mut read = Vec::new();
        for written in 0..10 {
            let chunk = poll_fn(|context| Pin::new(&mut reader).poll_next(context)).await.expect("not the end").expect("bytes");
            read.extend_from_slice(&chunk);
            writer.write_all(&expected[3_000_000 + written * 70_000..][..70_000]).expect("room in the file");
        }
        let rest = expected[3_700_000..].to_vec();
        let thread = std::thread::spawn(move || {
            writer.write_all(&rest)?;
            writer.finish()
        });
        read.extend_from_slice(&to_bytes(reader).await.expect("a whole body"));
        assert!(read == expected);
        thread.join().expect("the thread").expect("all was read");
    }

    #[actix_web::test]
    async fn a_writer_gives_up_a_reader_that_stops_and_forgets_what_it_wrote() {
        let (mut writer, reader) = pipe(PipeTimeouts { stalled: Duration::from_millis(20), ..PATIENT });
        let watch = writer.watch();
        writer.write_all(&vec![7; CHUNK_BYTES * (MAX_CHUNKS + 2)]).expect("room in the file");
        assert_eq!(writer.finish().map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
        assert!(reader.0.lock().chunks.is_empty());
        assert!(to_bytes(reader).await.is_err());
        assert!(!watch.is_wanted());
    }

    #[actix_web::test]
    async fn a_writer_ends_with_its_time_and_with_its_reader() {
        let (mut writer, reader) = pipe(PipeTimeouts { total: Duration::from_millis(20), ..PATIENT });
        std::thread::sleep(Duration::from_millis(20));
        let written = writer.write_all(&vec![7; CHUNK_BYTES * 2]);
        assert_eq!(written.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
        drop(reader);
        let (mut writer, reader) = pipe(PATIENT);
        assert!(writer.watch().is_wanted());
        drop(reader);
        assert!(!writer.watch().is_wanted());
        assert!(writer.write_all(&vec![7; CHUNK_BYTES * 2]).is_err());
    }
}
