//! A body that one thread writes while a connection sends it: bounded, and never taken for whole unless it is.
//!
//! The writer waits while the reader is behind, but not for ever: it keeps a transaction open meanwhile. What ends early
//! breaks the connection; nobody can mistake a part for the whole.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;

use crate::problem::Problem;

/// Bytes that are handed over together.
const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks that may wait for the reader.
const MAX_CHUNKS: usize = 4;

/// How long a writer waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For the reader to take a chunk.
    pub(crate) stalled: Duration,
    /// In all, from the beginning to the end.
    pub(crate) total: Duration,
}

/// Makes both ends.
pub(crate) fn pipe(patience: Patience) -> (PipeWriter, PipeReader) {
    let shared = Arc::new(Shared::default());
    let writer = PipeWriter {
        shared: Arc::clone(&shared),
        buffer: Vec::with_capacity(CHUNK_BYTES),
        stalled: patience.stalled,
        until: Instant::now() + patience.total,
    };
    (writer, PipeReader(shared))
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Told when there is room for a chunk, or nobody to read it.
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
        // Nothing in here panics halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Ends it, unless it has ended. What is incomplete isn't worth sending on.
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

    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// The end that writes. Dropped before [`finish`](Self::finish), it breaks the body.
pub(crate) struct PipeWriter {
    shared: Arc<Shared>,
    buffer: Vec<u8>,
    stalled: Duration,
    until: Instant,
}

impl PipeWriter {
    /// The body is whole.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.hand_over()?;
        self.shared.lock().end(Ok(()));
        Ok(())
    }

    /// The body can't be made.
    pub(crate) fn fail(self, problem: Problem) {
        self.shared.lock().end(Err(problem));
    }

    /// Tells whether it is still read.
    pub(crate) fn watch(&self) -> PipeWatch {
        PipeWatch { shared: Arc::clone(&self.shared), until: self.until }
    }

    fn hand_over(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let waits_until = self.until.min(Instant::now() + self.stalled);
        let mut state = self.shared.lock();
        while state.chunks.len() >= MAX_CHUNKS && !state.reader_is_gone && state.end.is_none() {
            let left = waits_until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.end(Err(Problem::timed_out()));
                return Err(io::ErrorKind::TimedOut.into());
            }
            state = self.shared.room.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.reader_is_gone || state.end.is_some() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let chunk = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK_BYTES));
        state.chunks.push_back(Bytes::from(chunk));
        state.wake();
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

    /// A chunk is handed over when it is full, or the last: a short one sooner helps nobody.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        self.shared.lock().end(Err(Problem::internal()));
    }
}

/// Tells whether a body is still read.
pub(crate) struct PipeWatch {
    shared: Arc<Shared>,
    until: Instant,
}

impl PipeWatch {
    /// Whether somebody reads, and there is time left.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.shared.lock().reader_is_gone && Instant::now() < self.until
    }
}

/// The end that is sent.
pub(crate) struct PipeReader(Arc<Shared>);

impl PipeReader {
    /// Waits for the first bytes, or the end, or until it has been long enough to begin without.
    ///
    /// # Errors
    /// Why there are none.
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

    const PATIENT: Patience = Patience { stalled: Duration::from_secs(60), total: Duration::from_secs(60) };

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
    async fn a_writer_gives_up_a_reader_that_stops_and_forgets_what_it_wrote() {
        let (mut writer, reader) = pipe(Patience { stalled: Duration::from_millis(20), ..PATIENT });
        let watch = writer.watch();
        let written = writer.write_all(&vec![7; CHUNK_BYTES * (MAX_CHUNKS + 2)]);
        assert_eq!(written.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
        assert!(reader.0.lock().chunks.is_empty());
        assert!(to_bytes(reader).await.is_err());
        assert!(!watch.is_wanted());
    }

    #[actix_web::test]
    async fn a_writer_ends_with_its_time_and_with_its_reader() {
        let (mut writer, reader) = pipe(Patience { total: Duration::from_millis(20), ..PATIENT });
        let written = writer.write_all(&vec![7; CHUNK_BYTES * (MAX_CHUNKS + 2)]);
        assert_eq!(written.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
        drop(reader);
        let (mut writer, reader) = pipe(PATIENT);
        assert!(writer.watch().is_wanted());
        drop(reader);
        assert!(!writer.watch().is_wanted());
        assert!(writer.write_all(&vec![7; CHUNK_BYTES * 2]).is_err());
    }
}
