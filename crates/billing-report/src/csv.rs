//! Comma-separated values: RFC 4180, UTF-8 without a byte order mark, lines that end with CR LF, a line of headings.

use std::borrow::Cow;
use std::io::{self, Write};

use csv::{Terminator, Writer, WriterBuilder};

use crate::Cell;

/// What stands before a text that a spreadsheet would take for a formula.
const GUARD: char = '\'';
/// What stands between cells where the decimal sign is a comma.
const SEPARATOR: char = ';';

pub(crate) struct CsvTable<W: Write> {
    out: Writer<W>,
}

impl<W: Write> CsvTable<W> {
    pub(crate) fn start(headings: &[String], out: W) -> io::Result<Self> {
        let mut out = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(out);
        out.write_record(headings.iter().map(|heading| guarded(heading).into_owned()))?;
        Ok(Self { out })
    }

    pub(crate) fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for cell in cells {
            self.out.write_field(text_of(cell).as_bytes())?;
        }
        self.out.write_record(None::<&[u8]>)?;
        Ok(())
    }

    pub(crate) fn finish(self) -> io::Result<W> {
        self.out.into_inner().map_err(csv::IntoInnerError::into_error)
    }
}

fn text_of<'c>(cell: &'c Cell<'_>) -> Cow<'c, str> {
    match cell {
        Cell::Missing | Cell::Null => Cow::Borrowed(""),
        Cell::Bool(true) => Cow::Borrowed("true"),
        Cell::Bool(false) => Cow::Borrowed("false"),
        // A number is no formula, also with its sign, nor is a text of ours.
        Cell::Number(text) | Cell::Plain(text) => Cow::Borrowed(text),
        Cell::Text(text) => guarded(text),
    }
}

/// A text with `'` before it where a spreadsheet would calculate it, and where it begins with `'` itself. The same after
/// each `;`, where spreadsheets of many languages begin a cell, whatever the quotes. Taking one `'` away in each of these places
/// gives every text back.
fn guarded(text: &str) -> Cow<'_, str> {
    let begins_badly = |part: &str| part.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠', GUARD]);
    if !text.split(SEPARATOR).any(begins_badly) {
        return Cow::Borrowed(text);
    }
    let guard = |part: &str| if begins_badly(part) { format!("{GUARD}{part}") } else { part.to_owned() };
    Cow::Owned(text.split(SEPARATOR).map(guard).collect::<Vec<_>>().join(";"))
}
