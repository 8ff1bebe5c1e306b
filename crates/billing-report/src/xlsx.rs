//! An XLSX workbook. Rows are written to unnamed temporary files in the system's directory. The workbook is assembled
//! at the end and then copied to the output.
//!
//! A numeric cell is a double; a number with more digits is written as text. Dates and instants are cells of their own, so that
//! spreadsheet programs sort and filter them; instants are in UTC. Texts are never formulas.

use std::io::{self, Seek as _, SeekFrom, Write};

use rust_xlsxwriter::{ExcelDateTime, Format, Workbook, Worksheet, XlsxError};

use crate::Cell;

/// The maximum number of rows of a sheet in spreadsheet programs, including the headings.
const SHEET_ROWS: u32 = 1_048_576;
/// The number of decimal digits that every normal double preserves.
const DOUBLE_DIGITS: usize = 15;
/// The smallest number accepted as a double; doubles near the lower limit of the format have fewer digits.
const SMALLEST_DOUBLE: f64 = 1e-300;
/// The maximum width of a column in characters.
const WIDEST: u16 = 60;
/// The width of the arrow that opens a column's filter, in characters.
const ARROW: u16 = 3;
/// The widths of a date and an instant in characters.
const DATE_WIDTH: u16 = 10;
const INSTANT_WIDTH: u16 = 19;

pub(crate) struct XlsxTable<W: Write> {
    title: &'static str,
    headings: Vec<String>,
    workbook: Workbook,
    formats: Formats,
    /// The width of each column of the last sheet in characters.
    widths: Vec<u16>,
    sheets: usize,
    /// The next row of the last sheet, from 0.
    next_row: u32,
    sheet_rows: u32,
    out: W,
}

/// The formats of cells.
struct Formats {
    heading: Format,
    date: Format,
    instant: Format,
}

impl<W: Write> XlsxTable<W> {
    pub(crate) fn start(title: &'static str, headings: Vec<String>, out: W) -> io::Result<Self> {
        Self::with_sheets_of(SHEET_ROWS, title, headings, out)
    }

    pub(crate) fn with_sheets_of(sheet_rows: u32, title: &'static str, headings: Vec<String>, out: W) -> io::Result<Self> {
        let mut workbook = Workbook::new();
        // A sheet's XML can exceed 4 GiB.
        workbook.use_zip_large_file(true);
        let formats = Formats {
            heading: Format::new().set_bold(),
            date: Format::new().set_num_format("yyyy-mm-dd"),
            instant: Format::new().set_num_format("yyyy-mm-dd hh:mm:ss"),
        };
        let mut table = Self { title, headings, workbook, formats, widths: Vec::new(), sheets: 0, next_row: 0, sheet_rows, out };
        table.add_sheet()?;
        Ok(table)
    }

    /// Adds a sheet with the headings, which stay visible. The first sheet's name is the title, such as `Usage`; the next one is `Usage 2`.
    fn add_sheet(&mut self) -> io::Result<()> {
        self.sheets += 1;
        let name = if self.sheets == 1 { self.title.to_owned() } else { format!("{} {}", self.title, self.sheets) };
        let sheet = self.workbook.add_worksheet_with_constant_memory().set_name(name).map_err(failed)?;
        for (column, heading) in (0..).zip(&self.headings) {
            sheet.write_string_with_format(0, column, heading, &self.formats.heading).map_err(failed)?;
        }
        sheet.set_freeze_panes(1, 0).map_err(failed)?;
        self.widths = self.headings.iter().map(|heading| width_of(heading).saturating_add(ARROW)).collect();
        self.next_row = 1;
        Ok(())
    }

    /// Adds the filter and the widths of the columns to the last sheet, whose rows are complete.
    fn complete_sheet(&mut self) -> io::Result<()> {
        let sheet = self.workbook.worksheet_from_index(self.sheets - 1).map_err(failed)?;
        for (column, width) in (0..).zip(&self.widths) {
            // The additional character is the space beside the text.
            sheet.set_column_width(column, f64::from((*width).min(WIDEST).saturating_add(1))).map_err(failed)?;
        }
        if let Some(last_column) = self.headings.len().checked_sub(1).and_then(|last| u16::try_from(last).ok()) {
            sheet.autofilter(0, 0, self.next_row - 1, last_column).map_err(failed)?;
        }
        Ok(())
    }

    pub(crate) fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        if self.next_row == self.sheet_rows {
            self.complete_sheet()?;
            self.add_sheet()?;
        }
        for (width, cell) in self.widths.iter_mut().zip(cells) {
            *width = (*width).max(cell_width(cell));
        }
        let sheet = self.workbook.worksheet_from_index(self.sheets - 1).map_err(failed)?;
        write_row(sheet, self.next_row, cells, &self.formats).map_err(failed)?;
        self.next_row += 1;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.complete_sheet()?;
        let mut file = tempfile::tempfile()?;
        self.workbook.save_to_writer(&mut file).map_err(failed)?;
        file.seek(SeekFrom::Start(0))?;
        io::copy(&mut file, &mut self.out)?;
        Ok(self.out)
    }
}

fn write_row(sheet: &mut Worksheet, row: u32, cells: &[Cell<'_>], formats: &Formats) -> Result<(), XlsxError> {
    for (column, cell) in (0..).zip(cells) {
        match cell {
            Cell::Missing | Cell::Null => {}
            Cell::Bool(value) => {
                sheet.write_boolean(row, column, *value)?;
            }
            Cell::Number(number) => write_number(sheet, row, column, number)?,
            Cell::Date(date) => write_instant(sheet, row, column, &date.to_string(), &formats.date)?,
            Cell::Instant(instant) => write_instant(sheet, row, column, &instant.to_string(), &formats.instant)?,
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

/// Writes a date or an instant. Spreadsheet programs have none before 1900 and after 9999; these are texts.
fn write_instant(sheet: &mut Worksheet, row: u32, column: u16, text: &str, format: &Format) -> Result<(), XlsxError> {
    match ExcelDateTime::parse_from_str(text) {
        // The library counts the day before 1900 as day 0, which programs show as a day that does not exist.
        Ok(instant) if text >= "1900" => sheet.write_datetime_with_format(row, column, &instant, format)?,
        _ => sheet.write_string(row, column, text)?,
    };
    Ok(())
}

fn width_of(text: &str) -> u16 {
    u16::try_from(text.chars().take(usize::from(WIDEST)).count()).unwrap_or(WIDEST)
}

fn cell_width(cell: &Cell<'_>) -> u16 {
    match cell {
        Cell::Missing | Cell::Null | Cell::Bool(_) => 0,
        Cell::Number(text) | Cell::Text(text) | Cell::Plain(text) => width_of(text),
        Cell::Date(_) => DATE_WIDTH,
        Cell::Instant(_) => INSTANT_WIDTH,
    }
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
