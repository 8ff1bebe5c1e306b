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

/// Prefixes `'` to a text that a spreadsheet would evaluate, or that begins with `'`. The same applies after each `;`, where
/// spreadsheets of many locales begin a cell regardless of quotes, and after each line break, where these begin a row. Removing one
/// `'` in each of these places restores the text.
fn guarded(text: &str) -> Cow<'_, str> {
    let begins_badly = |part: &str| part.starts_with(['=', '+', '-', '@', '\t', '＝', '＋', '－', '＠', GUARD]);
    let begins_row = |part: &str| part.starts_with(['\r', '\n']);
    let mut parts = text.split_inclusive([SEPARATOR, '\r', '\n']);
    if !begins_row(text) && !parts.any(begins_badly) {
        return Cow::Borrowed(text);
    }
    let guard = |(index, part): (usize, &str)| {
        let is_guarded = begins_badly(part) || index == 0 && begins_row(part);
        if is_guarded { format!("{GUARD}{part}") } else { part.to_owned() }
    };
    Cow::Owned(text.split_inclusive([SEPARATOR, '\r', '\n']).enumerate().map(guard).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_stands_wherever_a_spreadsheet_begins_a_cell() {
        for (text, written) in [
            ("a\nb\r\nc", "a\nb\r\nc"),
            ("a\n=1;+2\r\n@3", "a\n'=1;'+2\r\n'@3"),
            ("a\r=1\n\n\t2", "a\r'=1\n\n'\t2"),
            ("\n=1", "'\n'=1"),
            ("'a;'b\n'c", "''a;''b\n''c"),
            ("a=b;c-d", "a=b;c-d"),
        ] {
            assert_eq!(guarded(text), written, "{text:?}");
        }
    }
}
