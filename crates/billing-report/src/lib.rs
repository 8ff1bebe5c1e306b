//! Writes the usage report as CSV, JSON or XLSX, row by row, in memory that doesn't grow with the number of rows.
//!
//! It knows bytes and nothing of where they go: no header, no status, no file name.

mod csv;
mod json;
mod xlsx;

use std::io::{self, Write};

use billing_domain::account::AccountStatement;
use billing_domain::report::{ReportColumns, ReportedEvent};
use billing_domain::usage::ReportValue;

use crate::csv::CsvTable;
use crate::json::JsonTable;
use crate::xlsx::XlsxTable;

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReportFormat {
    /// Comma-separated values (RFC 4180) in UTF-8.
    #[default]
    Csv,
    /// An array of objects.
    Json,
    /// An Office Open XML workbook.
    Xlsx,
}

/// A customer's statement as comma-separated values: for each account its opening balance, its entries and its closing balance.
///
/// # Errors
/// What can't be written, which doesn't happen in memory.
pub fn statement_csv(accounts: &[AccountStatement]) -> io::Result<Vec<u8>> {
    csv::statement(accounts)
}

impl ReportFormat {
    /// Every format.
    pub const ALL: [Self; 3] = [Self::Csv, Self::Json, Self::Xlsx];

    /// Its word, which is also the extension of files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Xlsx => "xlsx",
        }
    }

    /// Reads a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == word)
    }
}

/// Writes one report: [`start`](Self::start), then rows, then [`finish`](Self::finish). What isn't finished is no report.
pub struct ReportWriter<W: Write> {
    format: ReportFormat,
    table: Table<W>,
}

enum Table<W: Write> {
    Waiting(W),
    Csv(Box<CsvTable<W>>),
    Json(JsonTable<W>),
    Xlsx(Box<XlsxTable<W>>),
    /// A start that failed.
    Gone,
}

impl<W: Write> ReportWriter<W> {
    /// A report that goes to `out`.
    pub const fn new(format: ReportFormat, out: W) -> Self {
        Self { format, table: Table::Waiting(out) }
    }

    /// Writes what stands before all rows.
    ///
    /// # Errors
    /// Those of `out` and of temporary files; `InvalidInput` when it has started already.
    pub fn start(&mut self, columns: ReportColumns) -> io::Result<()> {
        let Table::Waiting(out) = std::mem::replace(&mut self.table, Table::Gone) else {
            return Err(misused("a report starts once"));
        };
        self.table = match self.format {
            ReportFormat::Csv => Table::Csv(Box::new(CsvTable::start(columns, out)?)),
            ReportFormat::Json => Table::Json(JsonTable::start(columns, out)?),
            ReportFormat::Xlsx => Table::Xlsx(Box::new(XlsxTable::start(columns, out)?)),
        };
        Ok(())
    }

    /// Writes a row.
    ///
    /// # Errors
    /// Those of `out` and of temporary files; `InvalidInput` before the start, or for a key without a column.
    pub fn row(&mut self, event: &ReportedEvent) -> io::Result<()> {
        match &mut self.table {
            Table::Csv(table) => table.row(event),
            Table::Json(table) => table.row(event),
            Table::Xlsx(table) => table.row(event),
            Table::Waiting(_) | Table::Gone => Err(misused("a row before the start")),
        }
    }

    /// Writes what stands after all rows, and gives `out` back.
    ///
    /// # Errors
    /// Those of `out` and of temporary files; `InvalidInput` before the start.
    pub fn finish(self) -> io::Result<W> {
        match self.table {
            Table::Csv(table) => table.finish(),
            Table::Json(table) => table.finish(),
            Table::Xlsx(table) => table.finish(),
            Table::Waiting(_) | Table::Gone => Err(misused("an end before the start")),
        }
    }
}

fn misused(how: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, how)
}

/// The values of an event in the columns after the fixed ones.
fn values_by_column<'e>(columns: &ReportColumns, event: &'e ReportedEvent) -> io::Result<Vec<Option<&'e ReportValue>>> {
    let mut values = vec![None; columns.key_headings().len()];
    for (key, value) in event.report_data.iter().flat_map(|data| data.entries()) {
        let place = columns.place(key).ok_or_else(|| misused("a key without a column"))?;
        values[place] = Some(value);
    }
    Ok(values)
}

#[cfg(test)]
mod tests;
