//! An XLSX workbook. Rows are written to unnamed temporary files in the system's directory. The workbook is assembled
//! at the end and then copied to the output.
//!
//! A numeric cell is a double; a number with more digits is written as text. Texts are never formulas.

use std::io::{self, Seek as _, SeekFrom, Write};

use rust_xlsxwriter::{Workbook, Worksheet, XlsxError};

use crate::Cell;

/// The maximum number of rows of a sheet in spreadsheet programs, including the headings.
const SHEET_ROWS: u32 = 1_048_576;
/// The number of decimal digits that every normal double preserves.
const DOUBLE_DIGITS: usize = 15;
/// The smallest number accepted as a double; doubles near the lower limit of the format have fewer digits.
const SMALLEST_DOUBLE: f64 = 1e-300;

pub(crate) struct XlsxTable<W: Write> {
    title: &'static str,
    headings: Vec<String>,
    workbook: Workbook,
    sheets: usize,
    /// The next row of the last sheet, from 0.
    next_row: u32,
    sheet_rows: u32,
    out: W,
}

impl<W: Write> XlsxTable<W> {
    pub(crate) fn start(title: &'static str, headings: Vec<String>, out: W) -> io::Result<Self> {
        Self::with_sheets_of(SHEET_ROWS, title, headings, out)
    }

    pub(crate) fn with_sheets_of(sheet_rows: u32, title: &'static str, headings: Vec<String>, out: W) -> io::Result<Self> {
        let mut workbook = Workbook::new();
        // A sheet's XML can exceed 4 GiB.
        workbook.use_zip_large_file(true);
        let mut table = Self { title, headings, workbook, sheets: 0, next_row: 0, sheet_rows, out };
        table.add_sheet()?;
        Ok(table)
    }

    /// Adds a sheet with the headings. The first sheet's name is the title, such as `Usage`; the next one is `Usage 2`.
    fn add_sheet(&mut self) -> io::Result<()> {
        self.sheets += 1;
        let name = if self.sheets == 1 { self.title.to_owned() } else { format!("{} {}", self.title, self.sheets) };
        let sheet = self.workbook.add_worksheet_with_constant_memory().set_name(name).map_err(failed)?;
        for (column, heading) in (0..).zip(&self.headings) {
            sheet.write_string(0, column, heading).map_err(failed)?;
        }
        self.next_row = 1;
        Ok(())
    }

    pub(crate) fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        if self.next_row == self.sheet_rows {
            self.add_sheet()?;
        }
        let sheet = self.workbook.worksheet_from_index(self.sheets - 1).map_err(failed)?;
        write_row(sheet, self.next_row, cells).map_err(failed)?;
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

fn write_row(sheet: &mut Worksheet, row: u32, cells: &[Cell<'_>]) -> Result<(), XlsxError> {
    for (column, cell) in (0..).zip(cells) {
        match cell {
            Cell::Missing | Cell::Null => {}
            Cell::Bool(value) => {
                sheet.write_boolean(row, column, *value)?;
            }
            Cell::Number(number) => write_number(sheet, row, column, number)?,
            Cell::Text(text) | Cell::Plain(text) => {
                sheet.write_string(row, column, text.as_ref())?;
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

/// Returns a JSON number as a double, or `None` if a double would lose digits.
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
