//! Comma-separated values: RFC 4180, UTF-8 without a byte order mark, lines that end with CR LF, a line of headings.

use std::borrow::Cow;
use std::io::{self, Write};

use billing_domain::report::{FIXED_COLUMNS, ReportColumns, ReportedEvent};
use billing_domain::usage::ReportValue;
use csv::{Terminator, Writer, WriterBuilder};

use crate::values_by_column;

/// What stands before a text that a spreadsheet would take for a formula.
const GUARD: char = '\'';
/// What stands between cells where the decimal sign is a comma.
const SEPARATOR: char = ';';

pub(crate) struct CsvTable<W: Write> {
    columns: ReportColumns,
    out: Writer<W>,
}

impl<W: Write> CsvTable<W> {
    pub(crate) fn start(columns: ReportColumns, out: W) -> io::Result<Self> {
        let mut out = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(out);
        let headings = FIXED_COLUMNS.into_iter().chain(columns.key_headings().iter().map(String::as_str));
        out.write_record(headings.map(|heading| guarded(heading).into_owned()))?;
        Ok(Self { columns, out })
    }

    pub(crate) fn row(&mut self, event: &ReportedEvent) -> io::Result<()> {
        let texts = [
            event.event_ref.to_string(),
            event.occurred_at.to_string(),
            guarded(event.customer_ref.as_str()).into_owned(),
            guarded(event.customer_name.as_str()).into_owned(),
            guarded(event.usage_product_ref.as_str()).into_owned(),
            guarded(event.usage_product_name.as_str()).into_owned(),
            event.quantity.as_decimal().to_string(),
            guarded(&event.document_numbers.to_string()).into_owned(),
        ];
        for text in &texts {
            self.out.write_field(text)?;
        }
        for value in values_by_column(&self.columns, event)? {
            self.out.write_field(cell(value).as_bytes())?;
        }
        self.out.write_record(None::<&[u8]>)?;
        Ok(())
    }

    pub(crate) fn finish(self) -> io::Result<W> {
        self.out.into_inner().map_err(csv::IntoInnerError::into_error)
    }
}

fn cell(value: Option<&ReportValue>) -> Cow<'_, str> {
    match value {
        None | Some(ReportValue::Null) => Cow::Borrowed(""),
        Some(ReportValue::Bool(true)) => Cow::Borrowed("true"),
        Some(ReportValue::Bool(false)) => Cow::Borrowed("false"),
        // A JSON number is no formula, also with its sign.
        Some(ReportValue::Number(number)) => Cow::Borrowed(number),
        Some(ReportValue::Text(text)) => guarded(text),
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
