//! Reads CSV: a line of column names, then one record per event.

use std::collections::BTreeSet;
use std::io::{self, BufReader, Chain, Cursor, Read};

use billing_domain::event_input::FileLine;
use csv::{ByteRecord, Position, ReaderBuilder, Terminator, WriterBuilder};

use crate::event::{self, Columns, refused};
use crate::{ColumnSample, FileError, MAX_LINE_BYTES, ReadOptions, head};

/// The maximum number of columns, equal to the maximum number of an event's values.
const MAX_COLUMNS: usize = 2_000;
/// The number of lines with samples of column values.
const MAX_SAMPLES: usize = 3;
/// The maximum length of a sample.
const MAX_SAMPLE_CHARS: usize = 80;

#[derive(Debug)]
pub(crate) struct Records<R: Read> {
    reader: csv::Reader<BoundedReader<Whole<R>>>,
    columns: Columns,
    /// The names in the file.
    names: Vec<String>,
    /// The column values of the first lines.
    samples: Vec<Vec<String>>,
}

/// The column names, which were read to detect the delimiter, followed by the rest.
type Whole<R> = Chain<Cursor<Vec<u8>>, BufReader<R>>;

/// A reader that stops at the maximum size of a record, because an unclosed quote would fill the memory.
#[derive(Debug)]
struct BoundedReader<R> {
    input: R,
    left: u64,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let read = self.input.by_ref().take(self.left).read(buffer)?;
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

impl<R: Read> Records<R> {
    /// # Errors
    /// Returns an error for invalid column names.
    pub(crate) fn open(mut input: BufReader<R>, reading: &ReadOptions) -> Result<Self, FileError> {
        let (names, stated) = head::first_record(&mut input)?;
        let delimiter = reading.delimiter.or(stated).unwrap_or_else(|| head::recognised(&names));
        let input = BoundedReader { input: Cursor::new(names).chain(input), left: MAX_LINE_BYTES };
        // With CR LF as the terminator, the csv crate reports the next record one line too early.
        let ends = Terminator::Any(b'\n');
        let mut reader = ReaderBuilder::new().delimiter(delimiter.0).terminator(ends).from_reader(input);
        let names = names_of(reader.byte_headers().map_err(broken)?).map_err(FileError::Malformed)?;
        let called = reading.columns.called(&names).map_err(FileError::Malformed)?;
        let is_default_shape = reading.format_name.is_none();
        let mut columns = Columns::new(called, is_default_shape).map_err(FileError::Malformed)?;
        columns.add_constants(&reading.constants, is_default_shape).map_err(FileError::Malformed)?;
        Ok(Self { reader, columns, names, samples: Vec::new() })
    }

    /// Requires the columns of the default shape, unless a usage format reads the file.
    ///
    /// # Errors
    /// Returns an error that names the missing columns.
    pub(crate) fn require_facts(&self, reading: &ReadOptions) -> Result<(), FileError> {
        if reading.format_name.is_some() {
            return Ok(());
        }
        self.columns.require_facts(&self.names).map_err(FileError::Malformed)
    }

    /// Returns the columns, with samples from the lines read so far.
    pub(crate) fn seen(&self) -> Vec<ColumnSample> {
        let of_column = |index: usize| self.samples.iter().filter_map(|line| line.get(index).cloned()).collect();
        let seen = |((index, name), (called, is_report_data)): ((usize, &String), (Option<&str>, bool))| ColumnSample {
            name: name.clone(),
            called: called.map(str::to_owned),
            is_report_data,
            samples: of_column(index),
        };
        self.names.iter().enumerate().zip(self.columns.called()).map(seen).collect()
    }

    fn sample(&mut self, record: &ByteRecord) {
        if self.samples.len() < MAX_SAMPLES {
            let cell = |cell: &[u8]| String::from_utf8_lossy(cell).chars().take(MAX_SAMPLE_CHARS).collect();
            self.samples.push(cells(record).map(cell).collect());
        }
    }

    pub(crate) fn next(&mut self, reading: &ReadOptions) -> Result<Option<FileLine>, FileError> {
        loop {
            self.reader.get_mut().left = MAX_LINE_BYTES;
            let begins_at = self.reader.position().line();
            let mut record = ByteRecord::new();
            let read = self.reader.read_byte_record(&mut record);
            let is_row = match &read {
                Ok(is_row) => *is_row,
                Err(error) => matches!(error.kind(), csv::ErrorKind::UnequalLengths { .. }),
            };
            if is_row && cells(&record).all(<[u8]>::is_empty) {
                continue;
            }
            let number = record.position().map_or(begins_at, Position::line);
            let event = match read {
                Ok(false) => return Ok(None),
                Ok(true) => {
                    self.sample(&record);
                    event::of_record(&self.columns, cells(&record).chain(reading.constants.cells()), number, reading)
                }
                Err(error) => match error.into_kind() {
                    csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                        let detail = format!("the line has {len} fields, and there are {expected_len} column names");
                        Err(refused("invalid_format", detail))
                    }
                    csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                        let reason = format!("the line has more than {MAX_LINE_BYTES} bytes: is a quote left open?");
                        return Err(FileError::Broken { place: format!("line {begins_at}"), reason });
                    }
                    kind => return Err(broken_kind(kind)),
                },
            };
            return Ok(Some(FileLine { number, text: shown(&record), event }));
        }
    }
}

fn broken(error: csv::Error) -> FileError {
    broken_kind(error.into_kind())
}

fn broken_kind(kind: csv::ErrorKind) -> FileError {
    match kind {
        csv::ErrorKind::Io(error) => FileError::Io(error),
        other => FileError::Malformed(format!("the file is no CSV: {other:?}")),
    }
}

/// Returns the names in the first record, without white space around them. A column without a name has an empty one.
fn names_of(record: &ByteRecord) -> Result<Vec<String>, String> {
    if record.len() > MAX_COLUMNS {
        return Err(format!("the file has {} columns, and may have {MAX_COLUMNS}", record.len()));
    }
    let mut names = Vec::with_capacity(record.len());
    let mut seen = BTreeSet::new();
    for (index, cell) in cells(record).enumerate() {
        let number = index + 1;
        let name = std::str::from_utf8(cell).map_err(|_| format!("the name of column {number} is not UTF-8"))?;
        // Columns of a report can differ in white space.
        let is_taken =
            |name: &str| seen.contains(name) || name.len() < cell.len() && cells(record).any(|cell| cell == name.as_bytes());
        let name = Some(name.trim()).filter(|name| name.is_empty() || !is_taken(name)).unwrap_or(name);
        if !name.is_empty() && !seen.insert(name) {
            return Err(format!("column {number} must have a name of its own in the first line, not {name:?}"));
        }
        names.push(name.to_owned());
    }
    if names.iter().all(String::is_empty) {
        return Err("the file is empty; its first line must have the column names".to_owned());
    }
    Ok(names)
}

/// Returns a record's cells without the CR before the line end.
fn cells(record: &ByteRecord) -> impl Iterator<Item = &[u8]> {
    let last = record.len().saturating_sub(1);
    record
        .iter()
        .enumerate()
        .map(move |(index, cell)| if index == last { cell.strip_suffix(b"\r").unwrap_or(cell) } else { cell })
}

/// Returns a record as a line of CSV.
fn shown(record: &ByteRecord) -> String {
    let mut writer = WriterBuilder::new().from_writer(Vec::new());
    let written =
        writer.write_record(cells(record)).and_then(|()| Ok(writer.into_inner().map_err(|error| error.into_error())?));
    written.map_or_else(|_| String::new(), |line| String::from_utf8_lossy(line.trim_ascii_end()).into_owned())
}
