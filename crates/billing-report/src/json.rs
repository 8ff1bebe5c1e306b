//! A JSON array with one object per line and exact numbers. Missing values are omitted.

use billing_domain::report::NumbersAs;
use std::io::{self, BufWriter, Write};

use crate::Cell;

/// The size of the output buffer.
const BUFFER_BYTES: usize = 8 * 1024;

pub(crate) struct JsonTable<W: Write> {
    headings: Vec<String>,
    numbers: NumbersAs,
    out: BufWriter<W>,
    rows: u64,
}

impl<W: Write> JsonTable<W> {
    pub(crate) fn start(headings: Vec<String>, numbers: NumbersAs, out: W) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
        out.write_all(b"[")?;
        Ok(Self { headings, numbers, out, rows: 0 })
    }

    pub(crate) fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        self.out.write_all(if self.rows == 0 { b"\n{" } else { b",\n{" })?;
        self.rows += 1;
        let mut is_first = true;
        for (heading, cell) in self.headings.iter().zip(cells).filter(|(_, cell)| !matches!(cell, Cell::Missing)) {
            if !std::mem::take(&mut is_first) {
                self.out.write_all(b",")?;
            }
            serde_json::to_writer(&mut self.out, heading)?;
            self.out.write_all(b":")?;
            match cell {
                Cell::Missing | Cell::Null => self.out.write_all(b"null")?,
                Cell::Bool(true) => self.out.write_all(b"true")?,
                Cell::Bool(false) => self.out.write_all(b"false")?,
                Cell::Number(number) if self.numbers == NumbersAs::Number => self.out.write_all(number.as_bytes())?,
                Cell::Number(text) | Cell::Text(text) | Cell::Plain(text) => serde_json::to_writer(&mut self.out, text.as_ref())?,
                Cell::Date(date) => serde_json::to_writer(&mut self.out, &date.to_string())?,
                Cell::Instant(instant) => serde_json::to_writer(&mut self.out, &instant.to_string())?,
            }
        }
        self.out.write_all(b"}")
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(if self.rows == 0 { b"]\n" } else { b"\n]\n" })?;
        self.out.into_inner().map_err(io::IntoInnerError::into_error)
    }
}
