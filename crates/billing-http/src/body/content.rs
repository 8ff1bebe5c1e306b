//! The content of a body that arrives in parts, decompressed if it is compressed.
//!
//! The size limit applies to the bytes that arrive and to the decompressed ones, so a small body cannot fill the memory.

use std::io::{self, ErrorKind, Write};

use actix_web::web::{self, Bytes};
use flate2::write::MultiGzDecoder;
use futures_util::StreamExt as _;

use billing_api::problem::Problem;

/// Number of compressed bytes that are decompressed at once. They are at most a thousand times as long afterwards, and other
/// requests of the thread continue between two steps.
const STEP_BYTES: usize = 1024;

/// The content of a body.
pub(crate) struct Content {
    payload: web::Payload,
    gunzip: Option<Box<Gunzip>>,
    read_bytes: usize,
    limit: usize,
    /// Creates the problem for a body above the limit.
    too_large: fn(usize) -> Problem,
}

/// A decompressor, with compressed bytes that have arrived.
struct Gunzip {
    arrived: Bytes,
    decoder: MultiGzDecoder<Output>,
    /// Whether a step was made since the thread was released.
    has_worked: bool,
}

/// Decompressed bytes up to a limit.
struct Output {
    bytes: Vec<u8>,
    left: usize,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(ErrorKind::FileTooLarge)?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Gunzip {
    /// Decompresses the next bytes that have arrived. Returns nothing if more are needed.
    fn step(&mut self) -> io::Result<Bytes> {
        self.has_worked = true;
        let part = self.arrived.split_to(self.arrived.len().min(STEP_BYTES));
        self.decoder.write_all(&part)?;
        self.decoder.flush()?;
        Ok(self.output())
    }

    /// Returns the last bytes of a complete stream.
    fn finish(&mut self) -> io::Result<Bytes> {
        self.decoder.try_finish()?;
        Ok(self.output())
    }

    fn output(&mut self) -> Bytes {
        Bytes::from(std::mem::take(&mut self.decoder.get_mut().bytes))
    }
}

impl Content {
    pub(super) fn new(payload: web::Payload, is_gzip: bool, limit: usize, too_large: fn(usize) -> Problem) -> Self {
        let gunzip = || {
            let decoder = MultiGzDecoder::new(Output { bytes: Vec::new(), left: limit });
            Box::new(Gunzip { arrived: Bytes::new(), decoder, has_worked: false })
        };
        Self { payload, gunzip: is_gzip.then(gunzip), read_bytes: 0, limit, too_large }
    }

    /// Returns the next bytes, or `None` at the end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// Returns a problem if the body is too large, cut off or damaged.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, Problem>> {
        loop {
            if let Some(gunzip) = self.gunzip.as_mut().filter(|gunzip| !gunzip.arrived.is_empty()) {
                if std::mem::take(&mut gunzip.has_worked) {
                    tokio::task::yield_now().await;
                }
                match gunzip.step() {
                    Ok(bytes) if bytes.is_empty() => continue,
                    Ok(bytes) => return Some(Ok(bytes)),
                    Err(error) => return Some(Err(self.damaged(&error))),
                }
            }
            let Some(chunk) = self.payload.next().await else { return self.end() };
            let Ok(chunk) = chunk else { return Some(Err(Problem::incomplete_body())) };
            self.read_bytes += chunk.len();
            if self.read_bytes > self.limit {
                return Some(Err((self.too_large)(self.limit)));
            }
            match &mut self.gunzip {
                Some(gunzip) => gunzip.arrived = chunk,
                None => return Some(Ok(chunk)),
            }
        }
    }

    /// Ends the body. A compressed stream must be complete.
    fn end(&mut self) -> Option<Result<Bytes, Problem>> {
        let mut gunzip = self.gunzip.take()?;
        match gunzip.finish() {
            Ok(bytes) if bytes.is_empty() => None,
            Ok(bytes) => Some(Ok(bytes)),
            Err(error) => Some(Err(self.damaged(&error))),
        }
    }

    fn damaged(&self, error: &io::Error) -> Problem {
        match error.kind() {
            ErrorKind::FileTooLarge => (self.too_large)(self.limit),
            _ => Problem::malformed("incomplete_body", "the gzip stream is damaged or incomplete: compress the body again"),
        }
    }
}
