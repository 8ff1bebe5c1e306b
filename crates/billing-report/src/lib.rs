//! Writes tables, including the usage report, as CSV, JSON or XLSX, and archives of files. Rows are streamed, so memory use does
//! not grow with their number.
//!
//! The crate only produces bytes. Headers, status codes and file names belong to the callers.

mod archive;
mod csv;
mod json;
mod statement;
mod xlsx;

use std::borrow::Cow;
use std::io::{self, Write};

use billing_domain::calendar::{Date, Timestamp};
use billing_domain::report::{FIXED_COLUMNS, NumbersAs, ReportColumns, ReportFormat, ReportedEvent};
use billing_domain::usage::ReportValue;

pub use crate::archive::ArchiveWriter;
pub use crate::statement::statement_csv;

use crate::csv::CsvTable;
use crate::json::JsonTable;
use crate::xlsx::XlsxTable;

/// The value of a column in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell<'c> {
    /// No value; JSON omits the key.
    Missing,
    /// An explicit null.
    Null,
    /// A boolean.
    Bool(bool),
    /// A JSON number.
    Number(Cow<'c, str>),
    /// A date.
    Date(Date),
    /// An instant.
    Instant(Timestamp),
    /// A constant text, which is never a formula.
    Plain(Cow<'c, str>),
    /// A user's text.
    Text(Cow<'c, str>),
}

/// A table writer: [`start`](Self::start), then rows, then [`finish`](Self::finish). An unfinished table is invalid.
pub struct TableWriter<W: Write> {
    format: ReportFormat,
    numbers: NumbersAs,
    title: &'static str,
    table: Table<W>,
}

enum Table<W: Write> {
    Waiting(W),
    Csv(Box<CsvTable<W>>),
    Json(JsonTable<W>),
    Xlsx(Box<XlsxTable<W>>),
    /// A start failed.
    Gone,
}

impl<W: Write> TableWriter<W> {
    /// Creates a writer to `out`. The sheets of a workbook have the given title.
    pub const fn new(format: ReportFormat, title: &'static str, out: W) -> Self {
        Self { format, numbers: NumbersAs::Number, title, table: Table::Waiting(out) }
    }

    /// Sets the representation of JSON numbers.
    #[must_use]
    pub fn with_numbers(self, numbers: NumbersAs) -> Self {
        Self { numbers, ..self }
    }

    /// Writes the beginning of the table.
    ///
    /// # Errors
    /// Returns the errors of `out` and of temporary files, and `InvalidInput` if the table was already started.
    pub fn start(&mut self, headings: Vec<String>) -> io::Result<()> {
        let Table::Waiting(out) = std::mem::replace(&mut self.table, Table::Gone) else {
            return Err(misused("a report starts once"));
        };
        self.table = match self.format {
            ReportFormat::Csv => Table::Csv(Box::new(CsvTable::start(&headings, out)?)),
            ReportFormat::Json => Table::Json(JsonTable::start(headings, self.numbers, out)?),
            ReportFormat::Xlsx => Table::Xlsx(Box::new(XlsxTable::start(self.title, headings, out)?)),
        };
        Ok(())
    }

    /// Writes a row with one cell per heading.
    ///
    /// # Errors
    /// Returns the errors of `out` and of temporary files, and `InvalidInput` before the start.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        match &mut self.table {
            Table::Csv(table) => table.row(cells),
            Table::Json(table) => table.row(cells),
            Table::Xlsx(table) => table.row(cells),
            Table::Waiting(_) | Table::Gone => Err(misused("a row before the start")),
        }
    }

    /// Writes the end of the table and returns `out`.
    ///
    /// # Errors
    /// Returns the errors of `out` and of temporary files, and `InvalidInput` before the start.
    pub fn finish(self) -> io::Result<W> {
        match self.table {
            Table::Csv(table) => table.finish(),
            Table::Json(table) => table.finish(),
            Table::Xlsx(table) => table.finish(),
            Table::Waiting(_) | Table::Gone => Err(misused("an end before the start")),
        }
    }
}

/// A writer of a usage report: a table of events.
pub struct ReportWriter<W: Write> {
    columns: Option<ReportColumns>,
    table: TableWriter<W>,
}

impl<W: Write> ReportWriter<W> {
    /// Creates a writer to `out`.
    pub const fn new(format: ReportFormat, out: W) -> Self {
        Self { columns: None, table: TableWriter::new(format, TITLE, out) }
    }

    /// Sets the representation of JSON numbers.
    #[must_use]
    pub fn with_numbers(self, numbers: NumbersAs) -> Self {
        Self { table: self.table.with_numbers(numbers), ..self }
    }

    /// Writes the beginning of the report.
    ///
    /// # Errors
    /// Returns the errors of [`TableWriter::start`].
    pub fn start(&mut self, columns: ReportColumns) -> io::Result<()> {
        self.table.start(headings(&columns))?;
        self.columns = Some(columns);
        Ok(())
    }

    /// Writes a row.
    ///
    /// # Errors
    /// Returns the errors of [`TableWriter::row`], and `InvalidInput` for a key without a column.
    pub fn row(&mut self, event: &ReportedEvent) -> io::Result<()> {
        let columns = self.columns.as_ref().ok_or_else(|| misused("a row before the start"))?;
        self.table.row(&cells(columns, event)?)
    }

    /// Writes the end of the report and returns `out`.
    ///
    /// # Errors
    /// Returns the errors of [`TableWriter::finish`].
    pub fn finish(self) -> io::Result<W> {
        self.table.finish()
    }
}

/// The title of the usage report's sheets.
const TITLE: &str = "Usage";

fn misused(how: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, how)
}

fn headings(columns: &ReportColumns) -> Vec<String> {
    FIXED_COLUMNS.into_iter().map(str::to_owned).chain(columns.key_headings().iter().cloned()).collect()
}

fn cells<'e>(columns: &ReportColumns, event: &'e ReportedEvent) -> io::Result<Vec<Cell<'e>>> {
    let text = |text: &'e str| Cell::Text(Cow::Borrowed(text));
    let mut cells = vec![
        Cell::Plain(event.event_ref.to_string().into()),
        Cell::Instant(event.occurred_at),
        text(event.customer_ref.as_str()),
        text(event.customer_name.as_str()),
        text(event.usage_product_ref.as_str()),
        text(event.usage_product_name.as_str()),
        Cell::Number(event.quantity.as_decimal().to_string().into()),
        Cell::Text(event.document_numbers.to_string().into()),
    ];
    cells.resize(FIXED_COLUMNS.len() + columns.key_headings().len(), Cell::Missing);
    for (key, value) in event.report_data.iter().flat_map(|data| data.entries()) {
        let place = columns.place(key).ok_or_else(|| misused("a key without a column"))?;
        cells[FIXED_COLUMNS.len() + place] = match value {
            ReportValue::Null => Cell::Null,
            ReportValue::Bool(value) => Cell::Bool(*value),
            ReportValue::Number(number) => Cell::Number(Cow::Borrowed(number)),
            ReportValue::Text(value) => Cell::Text(Cow::Borrowed(value)),
        };
    }
    Ok(cells)
}

#[cfg(test)]
mod tests;
