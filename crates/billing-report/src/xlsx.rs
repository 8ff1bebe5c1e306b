//! A workbook. Rows go to temporary files, without names, in the system's directory for them; the workbook is put
//! together at the end and then handed on.
//!
//! A cell's number is a double: one with more digits than that holds is written as text. Texts are never formulas.

use std::io::{self, Seek as _, SeekFrom, Write};

use billing_domain::report::{FIXED_COLUMNS, ReportColumns, ReportedEvent};
use billing_domain::usage::ReportValue;
use rust_xlsxwriter::{Workbook, Worksheet, XlsxError};

use crate::values_by_column;

/// Rows of a sheet, the headings included: what spreadsheets hold.
const SHEET_ROWS: u32 = 1_048_576;
/// Decimal digits that any double keeps.
const DOUBLE_DIGITS: usize = 15;
/// The smallest number that a double holds with all those digits, or nearly: below come those with fewer.
const SMALLEST_DOUBLE: f64 = 1e-300;

pub(crate) struct XlsxTable<W: Write> {
    columns: ReportColumns,
    workbook: Workbook,
    sheets: usize,
    /// The next row of the last sheet, from 0.
    next_row: u32,
    sheet_rows: u32,
    out: W,
}

impl<W: Write> XlsxTable<W> {
    pub(crate) fn start(columns: ReportColumns, out: W) -> io::Result<Self> {
        Self::with_sheets_of(SHEET_ROWS, columns, out)
    }

    pub(crate) fn with_sheets_of(sheet_rows: u32, columns: ReportColumns, out: W) -> io::Result<Self> {
        let mut workbook = Workbook::new();
        // A sheet's XML may have more than 4 GiB.
        workbook.use_zip_large_file(true);
        let mut table = Self { columns, workbook, sheets: 0, next_row: 0, sheet_rows, out };
        table.add_sheet()?;
        Ok(table)
    }

    /// The first sheet is `Usage`, the next `Usage 2`, each with the headings.
    fn add_sheet(&mut self) -> io::Result<()> {
        self.sheets += 1;
        let name = if self.sheets == 1 { "Usage".to_owned() } else { format!("Usage {}", self.sheets) };
        let sheet = self.workbook.add_worksheet_with_constant_memory().set_name(name).map_err(failed)?;
        let headings = FIXED_COLUMNS.into_iter().chain(self.columns.key_headings().iter().map(String::as_str));
        for (column, heading) in (0..).zip(headings) {
            sheet.write_string(0, column, heading).map_err(failed)?;
        }
        self.next_row = 1;
        Ok(())
    }

    pub(crate) fn row(&mut self, event: &ReportedEvent) -> io::Result<()> {
        if self.next_row == self.sheet_rows {
            self.add_sheet()?;
        }
        let values = values_by_column(&self.columns, event)?;
        let sheet = self.workbook.worksheet_from_index(self.sheets - 1).map_err(failed)?;
        write_row(sheet, self.next_row, event, &values).map_err(failed)?;
        self.next_row += 1;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        let mut file = tempfile::tempfile()?;
        self.workbook.save_to_writer(&mut file).map_err(failed)?;
        file.seek(SeekFrom::Start(0))?;
        io::copy(&mut file, &mut self.out)?;
        Ok(self.out)
    }
}

fn write_row(sheet: &mut Worksheet, row: u32, event: &ReportedEvent, values: &[Option<&ReportValue>]) -> Result<(), XlsxError> {
    sheet.write_string(row, 0, event.event_ref.to_string())?;
    sheet.write_string(row, 1, event.occurred_at.to_string())?;
    sheet.write_string(row, 2, event.customer_ref.as_str())?;
    sheet.write_string(row, 3, event.customer_name.as_str())?;
    sheet.write_string(row, 4, event.usage_product_ref.as_str())?;
    sheet.write_string(row, 5, event.usage_product_name.as_str())?;
    write_number(sheet, row, 6, &event.quantity.as_decimal().to_string())?;
    sheet.write_string(row, 7, event.document_numbers.to_string())?;
    for (column, value) in (8..).zip(values) {
        match value {
            None | Some(ReportValue::Null) => {}
            Some(ReportValue::Bool(value)) => {
                sheet.write_boolean(row, column, *value)?;
            }
            Some(ReportValue::Number(number)) => write_number(sheet, row, column, number)?,
            Some(ReportValue::Text(text)) => {
                sheet.write_string(row, column, text)?;
            }
        }
    }
    Ok(())
}

fn write_number(sheet: &mut Worksheet, row: u32, column: u16, text: &str) -> Result<(), XlsxError> {
    match as_double(text) {
        Some(number) => sheet.write_number(row, column, number)?,
        None => sheet.write_string(row, column, text)?,
    };
    Ok(())
}

/// A JSON number as a double with all its digits; `None` when a double would lose some.
fn as_double(text: &str) -> Option<f64> {
    let mantissa = text.split(['e', 'E']).next()?;
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let significant = digits.trim_matches('0');
    let number: f64 = text.parse().ok()?;
    let is_in_range = significant.is_empty() || (number.is_finite() && number.abs() >= SMALLEST_DOUBLE);
    (significant.len() <= DOUBLE_DIGITS && is_in_range).then_some(number)
}

fn failed(error: XlsxError) -> io::Error {
    match error {
        XlsxError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_double_only_with_all_its_digits() {
        for (text, kept) in [
            ("0", true),
            ("0.000000000", true),
            ("1.50", true),
            ("-12", true),
            ("123456789012345", true),
            ("999999.999999999", true),
            ("100000000000000000000", true),
            ("1e300", true),
            ("1234567890123456", false),
            ("12345678901234.000001", false),
            ("999999999999999.999999999", false),
            ("1e400", false),
            ("-1e-400", false),
            ("1e-310", false),
        ] {
            assert_eq!(as_double(text).is_some(), kept, "{text}");
        }
    }
}
