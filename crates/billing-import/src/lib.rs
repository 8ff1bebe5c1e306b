//! Reads files of usage events line by line: CSV with column names, NDJSON, and JSON arrays of objects such as a JSON
//! usage report.
//!
//! The crate returns a line's event and its identity, and does not record the event. Its memory use does not grow with
//! the file, and a line has a maximum size.
//!
//! ```
//! use billing_import::{FileKind, ReadOptions, UsageFile};
//! let file = "timestamp;customer_ref;usage_product_ref;quantity;idempotency_key\n2026-01-20T10:15:30Z;acme;calls;12;k-1\n";
//! let mut file = UsageFile::open(file.as_bytes(), FileKind::Csv, ReadOptions::default())?;
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

use std::borrow::Cow;
use std::io::{self, BufReader, Read};

use billing_domain::event_input::FileLine;
use billing_domain::idempotency::{IdempotencyKey, IdempotencyKeyError};
use billing_domain::violation::Violations;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::array::Elements;
pub use crate::columns::{ColumnMap, ColumnMapError, ColumnSample, ConstantFields, ConstantFieldsError};
use crate::lines::Lines;
use crate::records::Records;

/// Returns a file's size in bytes and its SHA-256.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn fingerprint(mut input: impl Read) -> io::Result<(u64, [u8; 32])> {
    let (mut hash, mut bytes, mut part) = (Sha256::new(), 0_u64, vec![0; READ_BYTES]);
    loop {
        let many = input.read(&mut part)?;
        let Some(read) = part.get(..many).filter(|read| !read.is_empty()) else { return Ok((bytes, hash.finalize().into())) };
        hash.update(read);
        bytes += read.len() as u64;
    }
}

/// The size of a read when a file is hashed.
const READ_BYTES: usize = 64 * 1024;
/// The maximum size of a line, a record or an element in bytes.
pub const MAX_LINE_BYTES: u64 = 1024 * 1024;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// RFC 4180 with a line of column names.
    Csv,
    /// One JSON object per line.
    Ndjson,
    /// An array of JSON objects.
    Json,
}

/// The import name. With their line number, it identifies lines without a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName(String);

/// The reason why a text is not a [`FileName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FileNameError {
    /// The name is longer than [`FileName::MAX_CHARS`].
    #[error("must be at most {} characters", FileName::MAX_CHARS)]
    TooLong,
    /// The name is not allowed in an idempotency key.
    #[error(transparent)]
    Key(#[from] IdempotencyKeyError),
}

impl FileName {
    /// The maximum length of a name: a key contains the name, any line number, and any number of an element of a line.
    pub const MAX_CHARS: usize = 224;

    /// Validates a name.
    ///
    /// # Errors
    /// Returns an error if the name is empty or too long, or contains a control character.
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

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn key(&self, line: u64) -> Result<IdempotencyKey, IdempotencyKeyError> {
        IdempotencyKey::parse(&format!("import/{}/{line}", self.0))
    }
}

/// The CSV delimiter: one ASCII character that is not a letter, digit, quote or line break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delimiter(u8);

/// The error for a text that is not a [`Delimiter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be one character that is no letter, digit or quote")]
pub struct DelimiterError;

impl Delimiter {
    /// Returns the character.
    pub const fn as_char(self) -> char {
        self.0 as char
    }

    /// The delimiter of tab-separated values.
    pub const TAB: Self = Self(b'\t');
    /// The delimiters that are detected. The first one is the default.
    pub const RECOGNISED: [Self; 3] = [Self(b','), Self(b';'), Self::TAB];

    /// Parses a delimiter.
    ///
    /// # Errors
    /// Returns [`DelimiterError`] for any other text.
    pub fn parse(text: &str) -> Result<Self, DelimiterError> {
        match text.as_bytes() {
            [byte] if *byte == b'\t' || matches!(byte, b' '..=b'~') && !byte.is_ascii_alphanumeric() && *byte != b'"' => {
                Ok(Self(*byte))
            }
            _ => Err(DelimiterError),
        }
    }
}

/// The decimal separator in `quantity` cells of CSV. It is never guessed, because `1,234` has two meanings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecimalSeparator {
    /// `12.5`.
    #[default]
    Point,
    /// `12,5`.
    Comma,
}

/// The error for a text that is not a [`DecimalSeparator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be . or ,")]
pub struct DecimalSeparatorError;

impl DecimalSeparator {
    /// Parses a separator.
    ///
    /// # Errors
    /// Returns [`DecimalSeparatorError`] for any other text.
    pub fn parse(text: &str) -> Result<Self, DecimalSeparatorError> {
        match text {
            "." => Ok(Self::Point),
            "," => Ok(Self::Comma),
            _ => Err(DecimalSeparatorError),
        }
    }

    /// Returns the character.
    pub const fn as_char(self) -> char {
        match self {
            Self::Point => '.',
            Self::Comma => ',',
        }
    }

    /// Returns a number with a decimal point. A point in a number with a decimal comma would separate thousands.
    fn pointed(self, number: &str) -> Result<Cow<'_, str>, Violations> {
        match self {
            Self::Point => Ok(Cow::Borrowed(number)),
            Self::Comma if number.contains('.') => {
                let detail = "must be a decimal number such as 12,5, because the file is read with a decimal comma";
                Err(Violations::one(&["quantity"], "invalid_format", detail))
            }
            Self::Comma => Ok(Cow::Owned(number.replace(',', "."))),
        }
    }
}

/// The options for reading a file.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The name of the lines' usage format. `None` is the default shape, in which unknown CSV columns are report data.
    pub format_name: Option<String>,
    /// The import name. Without it, lines without a key have no identity.
    pub name: Option<FileName>,
    /// The CSV delimiter; detected from the column names by default.
    pub delimiter: Option<Delimiter>,
    /// The new names of CSV columns.
    pub columns: ColumnMap,
    /// Fields that every line of CSV has with the same value.
    pub constants: ConstantFields,
    /// The decimal separator in `quantity` cells of CSV.
    pub decimal: DecimalSeparator,
}

/// The reason why reading a file fails or stops.
#[derive(Debug, Error)]
pub enum FileError {
    /// The file does not have the given format.
    #[error("{0}")]
    Malformed(String),
    /// An error after which the next event cannot be found.
    #[error("{place}: {reason}; what comes behind it isn't read")]
    Broken {
        /// The line, or the element of an array.
        place: String,
        /// The cause and the remedy.
        reason: String,
    },
    /// The input cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A file of usage events that is being read.
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
    /// Opens a file.
    ///
    /// # Errors
    /// Returns [`FileError`] if the file has another format, invalid column names, or no column for a fact of the default shape.
    pub fn open(input: R, kind: FileKind, reading: ReadOptions) -> Result<Self, FileError> {
        let file = Self::open_columns(input, kind, reading)?;
        if let Kind::Csv(records) = &file.lines {
            records.require_facts(&file.reading)?;
        }
        Ok(file)
    }

    /// Opens a file whose columns are not known yet, to show them.
    ///
    /// # Errors
    /// Returns [`FileError`] if the file has another format or invalid column names.
    pub fn open_columns(input: R, kind: FileKind, reading: ReadOptions) -> Result<Self, FileError> {
        if kind != FileKind::Csv && reading.decimal != DecimalSeparator::Point {
            return Err(FileError::Malformed("only quantities of CSV can have a decimal comma".to_owned()));
        }
        if kind != FileKind::Csv && !reading.columns.is_empty() {
            return Err(FileError::Malformed(
                "columns can be called otherwise in CSV alone; a usage format reads other events".to_owned(),
            ));
        }
        if kind != FileKind::Csv && !reading.constants.is_empty() {
            return Err(FileError::Malformed(
                "only CSV can have fields with a constant value; a usage format reads other events".to_owned(),
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

    /// Returns the columns of a CSV file, with their values in the first lines read.
    pub fn columns(&self) -> Vec<ColumnSample> {
        match &self.lines {
            Kind::Csv(records) => records.seen(),
            Kind::Ndjson(_) | Kind::Json(_) => Vec::new(),
        }
    }

    /// Returns the next line that is not empty, or `None` at the end.
    ///
    /// # Errors
    /// Returns [`FileError`] if the file cannot be read further, and at the end of a file without lines.
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
