//! Request bodies with one JSON value per line (NDJSON), read while they arrive.

use std::time::Duration;

use actix_web::web::{Bytes, BytesMut};
use tokio::time::{Instant, timeout_at};

use super::content::Content;
use billing_api::problem::Problem;

/// The lines of a body. Blank lines are skipped.
pub(crate) struct Lines {
    content: Content,
    arrived: BytesMut,
    /// Number of bytes of `arrived` without a line break.
    searched: usize,
    deadline: Instant,
    ended: bool,
}

/// Total time that a non-empty group waits for more lines. No line is acknowledged before its group is stored.
const LINGER: Duration = Duration::from_millis(2);

impl Lines {
    pub(super) fn new(content: Content, deadline: Instant) -> Self {
        Self { content, arrived: BytesMut::new(), searched: 0, deadline, ended: false }
    }

    /// Returns the next available lines, at most `most`; an empty list at the end of the body.
    ///
    /// # Errors
    /// Returns a problem if the body is too large, too slow or cut off. Earlier responses stay valid.
    pub(crate) async fn next(&mut self, most: usize) -> Result<Vec<Bytes>, Problem> {
        let mut lines = Vec::new();
        let mut until = None;
        loop {
            while lines.len() < most {
                let Some(line) = self.take_line() else { break };
                if !line.trim_ascii().is_empty() {
                    lines.push(line);
                }
            }
            if lines.len() == most || self.ended {
                return Ok(lines);
            }
            if lines.is_empty() {
                let arrived = timeout_at(self.deadline, self.content.next()).await;
                self.put(arrived.map_err(|_| Problem::request_timeout())?)?;
            } else {
                let until = *until.get_or_insert_with(|| self.deadline.min(Instant::now() + LINGER));
                let Ok(arrived) = timeout_at(until, self.content.next()).await else { return Ok(lines) };
                self.put(arrived)?;
            }
        }
    }

    fn put(&mut self, arrived: Option<Result<Bytes, Problem>>) -> Result<(), Problem> {
        match arrived.transpose()? {
            Some(bytes) => self.arrived.extend_from_slice(&bytes),
            None => self.ended = true,
        }
        Ok(())
    }

    /// Takes a complete line without its line break, or the rest at the end of the body.
    fn take_line(&mut self) -> Option<Bytes> {
        match self.arrived[self.searched..].iter().position(|byte| *byte == b'\n') {
            Some(found) => {
                let line = self.arrived.split_to(self.searched + found + 1).freeze();
                self.searched = 0;
                Some(line.slice(..line.len() - 1))
            }
            None if self.ended && !self.arrived.is_empty() => {
                self.searched = 0;
                Some(self.arrived.split().freeze())
            }
            None => {
                self.searched = self.arrived.len();
                None
            }
        }
    }
}
