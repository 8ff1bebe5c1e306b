//! Comma-separated values: RFC 4180, UTF-8 without a byte order mark, CR LF line ends, and a header line.

use std::borrow::Cow;
use std::io::{self, Write};

use csv::{Terminator, Writer, WriterBuilder};

use crate::Cell;

/// The prefix of a text that a spreadsheet would interpret as a formula.
const GUARD: char = '\'';
/// The delimiter in locales with a decimal comma.
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
        // Numbers, even with a sign, and constant texts are not formulas.
        Cell::Number(text) | Cell::Plain(text) => Cow::Borrowed(text),
        Cell::Date(date) => Cow::Owned(date.to_string()),
        Cell::Instant(instant) => Cow::Owned(instant.to_string()),
        Cell::Text(text) => guarded(text),
    }
}

/// Prefixes `'` to a text that a spreadsheet would evaluate, or that begins with `'`. The same applies after each `;`,
/// where spreadsheets of many locales begin a cell regardless of quotes. Removing one `'` in each of these places
/// restores the text.
fn guarded(text: &str) -> Cow<'_, str> {
    let begins_badly = |part: &str| part.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠', GUARD]);
    if !text.split(SEPARATOR).any(begins_badly) {
        return Cow::Borrowed(text);
    }
    let guard = |part: &str| if begins_badly(part) { format!("{GUARD}{part}") } else { part.to_owned() };
    Cow::Owned(text.split(SEPARATOR).map(guard).collect::<Vec<_>>().join(";"))
}
