//! Reads NDJSON: one JSON object per line.

use std::io::{self, BufRead, Read as _};

use billing_domain::event_input::{FileEvent, FileLine};
use billing_domain::violation::Violations;

use crate::event::{self, refused};
use crate::{MAX_LINE_BYTES, ReadOptions};

#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: R,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) const fn new(input: R) -> Self {
        Self { input, number: 0 }
    }

    pub(crate) fn next(&mut self, reading: &ReadOptions) -> io::Result<Option<FileLine>> {
        loop {
            let mut bytes = Vec::new();
            if self.input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            let is_whole = bytes.ends_with(b"\n") || (bytes.len() as u64) < MAX_LINE_BYTES;
            if !is_whole {
                skip_line(&mut self.input)?;
            }
            let line = bytes.trim_ascii();
            if !line.is_empty() {
                let (number, text) = (self.number, String::from_utf8_lossy(line).into_owned());
                let event = if is_whole {
                    event_of(line, number, reading)
                } else {
                    Err(refused("too_long", format!("the line has more than {MAX_LINE_BYTES} bytes")))
                };
                return Ok(Some(FileLine { number, text, event }));
            }
        }
    }
}

fn event_of(line: &[u8], number: u64, reading: &ReadOptions) -> Result<FileEvent, Violations> {
    let text = std::str::from_utf8(line).map_err(|error| refused("invalid_format", format!("the line is not UTF-8: {error}")))?;
    let value = billing_json::read(line).map_err(|error| refused(error.code, format!("the line is not JSON: {error}")))?;
    event::of_value(&value, text.to_owned(), number, reading)
}

/// Skips to the end of a line that is too long.
fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        let found = buffer.iter().position(|byte| *byte == b'\n');
        let (skipped, is_end) = (found.map_or(buffer.len(), |at| at + 1), found.is_some() || buffer.is_empty());
        reader.consume(skipped);
        if is_end {
            return Ok(());
        }
    }
}
