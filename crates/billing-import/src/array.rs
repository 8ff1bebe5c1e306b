//! Reads an array of JSON objects one by one.

use std::io::{self, BufRead, Read as _};

use billing_domain::event_input::FileLine;

use crate::event;
use crate::{FileError, MAX_LINE_BYTES, ReadOptions};

#[derive(Debug)]
pub(crate) struct Elements<R> {
    input: R,
    number: u64,
    has_ended: bool,
}

impl<R: BufRead> Elements<R> {
    /// # Errors
    /// Returns an error if the input is not an array.
    pub(crate) fn open(mut input: R) -> Result<Self, FileError> {
        match next_byte(&mut input)? {
            Some(b'[') => {
                input.consume(1);
                Ok(Self { input, number: 0, has_ended: false })
            }
            _ => {
                let detail = "the file is no JSON array; a file with an event on each line is NDJSON";
                Err(FileError::Malformed(detail.to_owned()))
            }
        }
    }

    pub(crate) fn next(&mut self, reading: &ReadOptions) -> Result<Option<FileLine>, FileError> {
        if self.has_ended {
            return Ok(None);
        }
        let is_first = self.number == 0;
        match next_byte(&mut self.input)? {
            Some(b']') => {
                self.input.consume(1);
                self.has_ended = true;
                return match next_byte(&mut self.input)? {
                    None => Ok(None),
                    Some(_) => Err(self.broken("the array has ended, and nothing may come behind it")),
                };
            }
            Some(b',') if !is_first => self.input.consume(1),
            Some(_) if is_first => {}
            Some(_) => return Err(self.broken("a comma or the array's end must come behind an element")),
            None => return Err(self.broken("the array isn't closed: the file isn't whole")),
        }
        self.number += 1;
        if next_byte(&mut self.input)? != Some(b'{') {
            return Err(self.broken("an event must be a JSON object"));
        }
        let value = billing_json::read_next(self.input.by_ref().take(MAX_LINE_BYTES));
        let value = value.map_err(|error| self.broken(&format!("not JSON, or more than {MAX_LINE_BYTES} bytes: {error}")))?;
        let text = value.to_string();
        let event = event::of_value(&value, text.clone(), self.number, reading);
        Ok(Some(FileLine { number: self.number, text, event }))
    }

    fn broken(&mut self, reason: &str) -> FileError {
        self.has_ended = true;
        FileError::Broken { place: format!("element {}", self.number.max(1)), reason: reason.to_owned() }
    }
}

/// Returns the next byte that is not white space, without consuming it.
fn next_byte(input: &mut impl BufRead) -> io::Result<Option<u8>> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(None);
        }
        let blank = buffer.iter().take_while(|byte| matches!(**byte, b' ' | b'\t' | b'\r' | b'\n')).count();
        if let Some(byte) = buffer.get(blank).copied() {
            input.consume(blank);
            return Ok(Some(byte));
        }
        input.consume(blank);
    }
}
