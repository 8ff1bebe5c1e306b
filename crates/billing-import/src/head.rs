//! The beginning of a file: distinguishes text from other files, and detects the CSV delimiter.

use std::io::{BufRead, Read as _};

use csv::ReaderBuilder;

use crate::{Delimiter, FileError};

/// The byte order mark that some programs write at the beginning of a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The maximum size of the column names in bytes. An event contains all of them, so they share its limit.
const MAX_NAMES_BYTES: u64 = 64 * 1024;

/// Skips a byte order mark.
///
/// # Errors
/// Returns an error if the beginning of the file shows that it is not text.
pub(crate) fn begin(input: &mut impl BufRead) -> Result<(), FileError> {
    let beginning = input.fill_buf()?;
    let first_line = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if let Some(at) = first_line.iter().position(|byte| *byte == 0) {
        let detail = format!(
            "the file is not text in UTF-8: byte {} is NUL; workbooks and archives aren't taken, save it as CSV in UTF-8",
            at + 1
        );
        return Err(FileError::Malformed(detail));
    }
    if beginning.starts_with(BYTE_ORDER_MARK) {
        input.consume(BYTE_ORDER_MARK.len());
    }
    Ok(())
}

/// Returns the bytes of CSV up to the end of the first record, and the delimiter that a line before it states. That line, such as
/// `sep=;`, is blank in the returned bytes, so that later lines keep their numbers.
///
/// # Errors
/// Returns an error if the record exceeds the limit.
pub(crate) fn first_record(input: &mut impl BufRead) -> Result<(Vec<u8>, Option<Delimiter>), FileError> {
    let (mut record, mut is_within_quotes, mut stated) = (Vec::new(), false, None);
    loop {
        let before = record.len();
        let read = input.by_ref().take(MAX_NAMES_BYTES.saturating_sub(before as u64)).read_until(b'\n', &mut record)?;
        if record.len() > before
            && record[..before].trim_ascii().is_empty()
            && let Some(delimiter) = stated_delimiter(&record[before..])
        {
            stated = Some(delimiter);
            record.truncate(before);
            record.push(b'\n');
            continue;
        }
        is_within_quotes ^= record[before..].iter().filter(|byte| **byte == b'"').count() % 2 == 1;
        if read == 0 || record.ends_with(b"\n") && !record.trim_ascii().is_empty() && !is_within_quotes {
            break;
        }
    }
    if record.len() as u64 >= MAX_NAMES_BYTES {
        let detail = format!("the column names have more than {MAX_NAMES_BYTES} bytes: is a quote left open on the first line?");
        return Err(FileError::Malformed(detail));
    }
    Ok((record, stated))
}

/// Returns the delimiter of a line such as `sep=;`, which spreadsheet programs write and read before the column names.
fn stated_delimiter(line: &[u8]) -> Option<Delimiter> {
    let line = std::str::from_utf8(line).ok()?.trim_end_matches(['\r', '\n']).trim_matches('"');
    let (name, delimiter) = line.split_at_checked(4)?;
    if name.eq_ignore_ascii_case("sep=") { Delimiter::parse(delimiter).ok() } else { None }
}

/// Returns the known delimiter that splits the line of names into the most columns.
pub(crate) fn recognised(names: &[u8]) -> Delimiter {
    let columns = |delimiter: Delimiter| {
        let mut reader = ReaderBuilder::new().has_headers(false).delimiter(delimiter.0).from_reader(names);
        reader.byte_records().next().and_then(Result::ok).map_or(0, |record| record.len())
    };
    let [first, others @ ..] = Delimiter::RECOGNISED;
    others.into_iter().fold(first, |best, other| if columns(other) > columns(best) { other } else { best })
}
