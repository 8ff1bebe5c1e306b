//! The lines of a file of events, one after the other: NDJSON as it is, CSV with a JSON object made of each record. What a
//! line means is the format's business.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value};

use crate::failure::{Failure, Outcome};
use crate::settings::InputKind;

/// The most bytes of a line.
const MAX_LINE_BYTES: u64 = 1024 * 1024;
/// What some programs put at the beginning of a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A line of a file.
pub(super) struct InputLine {
    /// Counts from 1; a record of several lines has its first.
    pub(super) number: u64,
    /// What stands there.
    pub(super) text: String,
    /// The event: the text of a JSON value; or why there is none.
    pub(super) event: Result<String, String>,
}

/// The lines of a file.
pub(super) struct InputLines {
    kind: Kind,
    read_bytes: Arc<AtomicU64>,
}

enum Kind {
    Ndjson { reader: BufReader<Counted<File>>, number: u64 },
    Csv { reader: csv::Reader<Counted<File>>, columns: Vec<String> },
}

/// A reader that tells how far it is.
struct Counted<R> {
    inner: R,
    read_bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read_bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl InputLines {
    /// Opens a file.
    pub(super) fn open(path: &Path, kind: InputKind, delimiter: u8) -> Outcome<Self> {
        let failed = |error: io::Error| Failure::Setting(format!("cannot read {}: {error}", path.display()));
        let read_bytes = Arc::new(AtomicU64::new(0));
        let counted = Counted { inner: File::open(path).map_err(failed)?, read_bytes: Arc::clone(&read_bytes) };
        let kind = match kind {
            InputKind::Ndjson => Kind::Ndjson { reader: BufReader::new(counted), number: 0 },
            InputKind::Csv => {
                // With CR LF as the end of a record, the next one is said to be on the line before its own.
                let ends = csv::Terminator::Any(b'\n');
                let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).terminator(ends).from_reader(counted);
                let columns = columns(&mut reader).map_err(|reason| Failure::Setting(format!("{}: {reason}", path.display())))?;
                Kind::Csv { reader, columns }
            }
        };
        Ok(Self { kind, read_bytes })
    }

    /// How many bytes have been read.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// The next line that isn't empty.
    pub(super) fn next(&mut self) -> io::Result<Option<InputLine>> {
        match &mut self.kind {
            Kind::Ndjson { reader, number } => loop {
                let mut bytes = Vec::new();
                if reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)? == 0 {
                    return Ok(None);
                }
                *number += 1;
                let is_whole = bytes.ends_with(b"\n") || (bytes.len() as u64) < MAX_LINE_BYTES;
                if !is_whole {
                    skip_line(reader)?;
                }
                let line = if *number == 1 { bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes) } else { &bytes };
                let line = line.trim_ascii();
                if !line.is_empty() {
                    return Ok(Some(json_line(*number, line, is_whole)));
                }
            },
            Kind::Csv { reader, columns } => loop {
                let mut record = csv::ByteRecord::new();
                let read = reader.read_byte_record(&mut record);
                if record.len() == 1 && cells(&record).all(<[u8]>::is_empty) {
                    continue;
                }
                return match read {
                    Ok(false) => Ok(None),
                    Ok(true) => Ok(Some(csv_line(&record, columns))),
                    Err(error) => match error.position().map(csv::Position::line) {
                        Some(number) if !error.is_io_error() => {
                            Ok(Some(InputLine { number, text: shown(&record), event: Err(error.to_string()) }))
                        }
                        _ => Err(error.into()),
                    },
                };
            },
        }
    }
}

/// Reads up to the end of a line that is too long.
fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        let found = buffer.iter().position(|byte| *byte == b'\n');
        let (skipped, is_end) = (found.map_or(buffer.len(), |at| at + 1), found.is_some() || buffer.is_empty());
        reader.consume(skipped);
        if is_end {
            return Ok(());
        }
    }
}

fn json_line(number: u64, line: &[u8], is_whole: bool) -> InputLine {
    let text = String::from_utf8_lossy(line).into_owned();
    let event = match std::str::from_utf8(line) {
        _ if !is_whole => Err(format!("the line has more than {MAX_LINE_BYTES} bytes")),
        Ok(event) => Ok(event.to_owned()),
        Err(error) => Err(format!("the line is not UTF-8: {error}")),
    };
    InputLine { number, text, event }
}

/// The names in the first record, which are the names of the event's fields.
fn columns<R: Read>(reader: &mut csv::Reader<R>) -> Result<Vec<String>, String> {
    let headers = reader.byte_headers().map_err(|error| error.to_string())?;
    let mut columns = Vec::with_capacity(headers.len());
    let mut seen = BTreeSet::new();
    for (index, header) in cells(headers).enumerate() {
        let header = if index == 0 { header.strip_prefix(BYTE_ORDER_MARK).unwrap_or(header) } else { header };
        let name = std::str::from_utf8(header).map_err(|_| format!("the name of column {} is not UTF-8", index + 1))?;
        if name.is_empty() || !seen.insert(name) {
            return Err(format!("column {} must have a name of its own in the first line, not {name:?}", index + 1));
        }
        columns.push(name.to_owned());
    }
    Ok(columns)
}

fn csv_line(record: &csv::ByteRecord, columns: &[String]) -> InputLine {
    let number = record.position().map_or(0, csv::Position::line);
    InputLine { number, text: shown(record), event: event_of(record, columns) }
}

/// Every cell as a text under its column's name, an empty one as null.
fn event_of(record: &csv::ByteRecord, columns: &[String]) -> Result<String, String> {
    let mut event = Map::with_capacity(columns.len());
    for (column, cell) in columns.iter().zip(cells(record)) {
        let text = std::str::from_utf8(cell).map_err(|error| format!("the cell of column {column:?} is not UTF-8: {error}"))?;
        let value = if text.is_empty() { Value::Null } else { Value::String(text.to_owned()) };
        event.insert(column.clone(), value);
    }
    Ok(Value::Object(event).to_string())
}

/// A record's cells without the CR that may stand before its end.
fn cells(record: &csv::ByteRecord) -> impl Iterator<Item = &[u8]> {
    let last = record.len().saturating_sub(1);
    record
        .iter()
        .enumerate()
        .map(move |(index, cell)| if index == last { cell.strip_suffix(b"\r").unwrap_or(cell) } else { cell })
}

/// A record as a line of CSV.
fn shown(record: &csv::ByteRecord) -> String {
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    let written =
        writer.write_record(cells(record)).and_then(|()| Ok(writer.into_inner().map_err(|error| error.into_error())?));
    written.map_or_else(|_| String::new(), |line| String::from_utf8_lossy(line.trim_ascii_end()).into_owned())
}
