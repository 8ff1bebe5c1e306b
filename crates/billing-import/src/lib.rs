//! Reads files of usage events, line by line: CSV with a line of column names, NDJSON, and arrays of JSON objects such as a
//! usage report in JSON.
//!
//! It says what a line says and what its event is known by, not what becomes of it. Its memory doesn't grow with the file; a
//! line has its limit.
//!
//! ```
//! use billing_import::{FileKind, Reading, UsageFile};
//! let file = "timestamp;customer_ref;usage_product_ref;quantity;idempotency_key\n2026-01-20T10:15:30Z;acme;calls;12;k-1\n";
//! let mut file = UsageFile::open(file.as_bytes(), FileKind::Csv, Reading::default())?;
//! let line = file.next_line()?.expect("an event");
//! assert_eq!(line.number, 2);
//! assert!(line.event.expect("readable").event.contains("\"quantity\":12"));
//! # Ok::<(), billing_import::FileError>(())
//! ```

mod array;
mod columns;
mod event;
mod head;
mod lines;
mod records;

use std::io::{self, BufReader, Read};

use billing_domain::event_input::FileEvent;
use billing_domain::idempotency::{IdempotencyKey, IdempotencyKeyError};
use billing_domain::violation::Violations;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::array::Elements;
pub use crate::columns::{ColumnMap, ColumnMapError, ColumnSample};
use crate::lines::Lines;
use crate::records::Records;

/// A file's size in bytes and SHA-256.
///
/// # Errors
/// When it can't be read.
pub fn fingerprint(mut input: impl Read) -> io::Result<(u64, [u8; 32])> {
    let (mut hash, mut bytes, mut part) = (Sha256::new(), 0_u64, vec![0; READ_BYTES]);
    loop {
        let many = input.read(&mut part)?;
        let Some(read) = part.get(..many).filter(|read| !read.is_empty()) else { return Ok((bytes, hash.finalize().into())) };
        hash.update(read);
        bytes += read.len() as u64;
    }
}

/// Bytes that are read at a time where a file is looked at as a whole.
const READ_BYTES: usize = 64 * 1024;
/// The most bytes of a line, a record or an element.
pub const MAX_LINE_BYTES: u64 = 1024 * 1024;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// RFC 4180 with a line of column names.
    Csv,
    /// A JSON object on each line.
    Ndjson,
    /// An array of JSON objects.
    Json,
}

/// What lines without a key of their own are known by when they come again, with their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName(String);

/// Why a text is no [`FileName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FileNameError {
    /// More than [`FileName::MAX_CHARS`].
    #[error("must be at most {} characters", FileName::MAX_CHARS)]
    TooLong,
    /// What no key may be either.
    #[error(transparent)]
    Key(#[from] IdempotencyKeyError),
}

impl FileName {
    /// The most characters of a name: a key holds it and the number of any line.
    pub const MAX_CHARS: usize = 227;

    /// Checks a name.
    ///
    /// # Errors
    /// When it is empty or too long, or has a control character.
    pub fn parse(name: &str) -> Result<Self, FileNameError> {
        if name.is_empty() {
            return Err(IdempotencyKeyError::Empty.into());
        }
        if name.chars().count() > Self::MAX_CHARS {
            return Err(FileNameError::TooLong);
        }
        let name = Self(name.to_owned());
        name.key(u64::MAX)?;
        Ok(name)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn key(&self, line: u64) -> Result<IdempotencyKey, IdempotencyKeyError> {
        IdempotencyKey::parse(&format!("import/{}/{line}", self.0))
    }
}

/// What stands between two cells of CSV: one ASCII character that is no letter, digit, quote or line break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delimiter(u8);

/// Not a [`Delimiter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be one character that is no letter, digit or quote")]
pub struct DelimiterError;

impl Delimiter {
    /// The character.
    pub const fn as_char(self) -> char {
        self.0 as char
    }

    /// Those that are recognised; the first also where there is nothing to tell them by.
    pub const RECOGNISED: [Self; 3] = [Self(b','), Self(b';'), Self(b'\t')];

    /// Checks a text.
    ///
    /// # Errors
    /// [`DelimiterError`].
    pub fn parse(text: &str) -> Result<Self, DelimiterError> {
        match text.as_bytes() {
            [byte] if *byte == b'\t' || matches!(byte, b' '..=b'~') && !byte.is_ascii_alphanumeric() && *byte != b'"' => {
                Ok(Self(*byte))
            }
            _ => Err(DelimiterError),
        }
    }
}

/// How a file is read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The name of the usage format that its lines are for; none for the default shape, in which columns of CSV that it doesn't
    /// know are report data.
    pub format_name: Option<String>,
    /// What lines without a key are known by; without it, by nothing.
    pub name: Option<FileName>,
    /// What stands between two cells of CSV; recognised by the column names when not given.
    pub delimiter: Option<Delimiter>,
    /// What columns of CSV are called instead.
    pub columns: ColumnMap,
}

/// Why a file can't be read, or not any further.
#[derive(Debug, Error)]
pub enum FileError {
    /// It isn't what it is said to be.
    #[error("{0}")]
    Malformed(String),
    /// What stands somewhere keeps from telling where the next event begins.
    #[error("{place}: {reason}; what comes behind it isn't read")]
    Broken {
        /// The line, or the element of an array.
        place: String,
        /// What is wrong and what would be right.
        reason: String,
    },
    /// It can't be read from where it is.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A line of a file.
#[derive(Debug)]
pub struct FileLine {
    /// Counts from 1; a record of several lines has its first, an element of an array its place.
    pub number: u64,
    /// What stands there.
    pub text: String,
    /// The event, or why it can't be read.
    pub event: Result<FileEvent, Violations>,
}

/// A file that is being read.
#[derive(Debug)]
pub struct UsageFile<R: Read> {
    lines: Kind<R>,
    reading: ReadOptions,
    is_empty: bool,
}

#[derive(Debug)]
enum Kind<R: Read> {
    Csv(Box<Records<R>>),
    Ndjson(Lines<BufReader<R>>),
    Json(Elements<BufReader<R>>),
}

impl<R: Read> UsageFile<R> {
    /// Begins to read a file.
    ///
    /// # Errors
    /// [`FileError`] for one that isn't of the kind, or has no proper column names.
    pub fn open(input: R, kind: FileKind, reading: ReadOptions) -> Result<Self, FileError> {
        if kind != FileKind::Csv && !reading.columns.is_empty() {
            return Err(FileError::Malformed(
                "columns can be called otherwise in CSV alone; a usage format reads other events".to_owned(),
            ));
        }
        let mut input = BufReader::new(input);
        head::begin(&mut input)?;
        let lines = match kind {
            FileKind::Csv => Kind::Csv(Box::new(Records::open(input, &reading)?)),
            FileKind::Ndjson => Kind::Ndjson(Lines::new(input)),
            FileKind::Json => Kind::Json(Elements::open(input)?),
        };
        Ok(Self { lines, reading, is_empty: true })
    }

    /// The columns of CSV, each with what stands in it in the first lines that were read.
    pub fn columns(&self) -> Vec<ColumnSample> {
        match &self.lines {
            Kind::Csv(records) => records.seen(),
            Kind::Ndjson(_) | Kind::Json(_) => Vec::new(),
        }
    }

    /// The next line that isn't empty; none at the end.
    ///
    /// # Errors
    /// [`FileError`] where the file can't be read any further, and at the end of one without a line.
    pub fn next_line(&mut self) -> Result<Option<FileLine>, FileError> {
        let line = match &mut self.lines {
            Kind::Csv(records) => records.next(&self.reading)?,
            Kind::Ndjson(lines) => lines.next(&self.reading)?,
            Kind::Json(elements) => elements.next(&self.reading)?,
        };
        if line.is_none() && self.is_empty {
            let reason = if matches!(self.lines, Kind::Csv(_)) { "has column names and no events" } else { "has no events" };
            return Err(FileError::Malformed(format!("the file {reason}")));
        }
        self.is_empty = false;
        Ok(line)
    }
}

#[cfg(test)]
mod tests;
