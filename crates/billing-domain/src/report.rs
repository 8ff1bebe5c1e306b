//! Reports as files: their formats, and the usage report, a table of events with a column for every key of additional report data.
//! Other crates write the files.

use std::collections::BTreeSet;

use thiserror::Error;

use crate::calendar::Timestamp;
use crate::document::numbering::DocumentNumbers;
use crate::quantity::Quantity;
use crate::refs::{CustomerRef, EventRef, UsageProductRef};
use crate::text::OneLine;
use crate::usage::ReportData;

/// The columns of every report, in their order.
pub const FIXED_COLUMNS: [&str; 8] = [
    "event_ref",
    "timestamp",
    "customer_ref",
    "customer_name",
    "usage_product_ref",
    "usage_product_name",
    "quantity",
    "document_numbers",
];
/// The maximum number of different report data keys in a report. With the fixed columns, they fit into a sheet of 16,384
/// columns.
pub const MAX_KEY_COLUMNS: usize = 10_000;
/// The prefix of the column name of a key that would otherwise be ambiguous.
const KEY_PREFIX: &str = "additional_report_data.";

/// The format of a report.
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

impl ReportFormat {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Csv, Self::Json, Self::Xlsx];

    /// Returns the format's enum word, which is also the file extension.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Xlsx => "xlsx",
        }
    }

    /// Parses an enum word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == word)
    }
}

/// The representation of decimals in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NumbersAs {
    /// JSON numbers with all digits.
    #[default]
    Number,
    /// Strings, for clients that parse JSON numbers as binary floating point.
    String,
}

/// An event as a row of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedEvent {
    /// The event.
    pub event_ref: EventRef,
    /// The time of the usage.
    pub occurred_at: Timestamp,
    /// The customer.
    pub customer_ref: CustomerRef,
    /// The name of the customer.
    pub customer_name: OneLine,
    /// The usage product.
    pub usage_product_ref: UsageProductRef,
    /// The name of the usage product.
    pub usage_product_name: OneLine,
    /// The quantity.
    pub quantity: Quantity,
    /// The numbers of the documents that bill the event.
    pub document_numbers: DocumentNumbers,
    /// The values in the columns of report data.
    pub report_data: Option<ReportData>,
}

/// The error for more different keys than [`MAX_KEY_COLUMNS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the events have more than {MAX_KEY_COLUMNS} different keys of additional_report_data")]
pub struct TooManyKeys;

/// The collected report data keys of a report.
#[derive(Clone, Debug, Default)]
pub struct ReportKeys(BTreeSet<String>);

impl ReportKeys {
    /// Adds the keys of an event.
    ///
    /// # Errors
    /// Returns [`TooManyKeys`] if the report has the maximum number of keys and a further key occurs.
    pub fn add(&mut self, data: &ReportData) -> Result<(), TooManyKeys> {
        for (key, _) in data.entries() {
            if !self.0.contains(key) {
                if self.0.len() == MAX_KEY_COLUMNS {
                    return Err(TooManyKeys);
                }
                self.0.insert(key.clone());
            }
        }
        Ok(())
    }
}

/// The columns of a report: the fixed columns, then one column for each key. Keys are ordered by their characters.
#[derive(Clone, Debug)]
pub struct ReportColumns {
    headings: Vec<String>,
    /// The keys in column order.
    keys: Vec<String>,
}

impl ReportColumns {
    /// Creates the columns of a report.
    pub fn new(keys: ReportKeys) -> Self {
        let keys: Vec<String> = keys.0.into_iter().collect();
        Self { headings: keys.iter().map(|key| heading(key)).collect(), keys }
    }

    /// Returns the unique names of the columns after the fixed columns.
    pub fn key_headings(&self) -> &[String] {
        &self.headings
    }

    /// Returns the position of a key's column after the fixed columns, starting at 0.
    pub fn place(&self, key: &str) -> Option<usize> {
        self.keys.binary_search_by(|known| known.as_str().cmp(key)).ok()
    }
}

/// Returns the column name of a key. Keys that equal the name of a fixed column or begin with `additional_report_data.` get that
/// prefix.
fn heading(key: &str) -> String {
    if FIXED_COLUMNS.contains(&key) || key.starts_with(KEY_PREFIX) { format!("{KEY_PREFIX}{key}") } else { key.to_owned() }
}

/// Returns the key of the column with the given name.
pub fn key_of(heading: &str) -> &str {
    heading.strip_prefix(KEY_PREFIX).unwrap_or(heading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::ReportValue;

    fn data(keys: &[&str]) -> ReportData {
        ReportData::new(keys.iter().map(|key| ((*key).to_owned(), ReportValue::Null)))
    }

    #[test]
    fn columns_are_ordered_by_their_keys_whatever_came_first() {
        let columns = |events: &[&[&str]]| {
            let mut keys = ReportKeys::default();
            events.iter().for_each(|event| keys.add(&data(event)).expect("few keys"));
            ReportColumns::new(keys)
        };
        let (one, other) = (columns(&[&["b", "a"], &["Z", "é"]]), columns(&[&["é"], &["a", "b", "Z"], &["b"]]));
        assert_eq!(one.key_headings(), ["Z", "a", "b", "é"]);
        assert_eq!(other.key_headings(), one.key_headings());
        assert_eq!((one.place("a"), one.place("c")), (Some(1), None));
    }

    #[test]
    fn no_two_columns_have_the_same_name() {
        let prefixed = "additional_report_data.quantity";
        let mut keys = ReportKeys::default();
        keys.add(&data(&["quantity", prefixed, "Quantity"])).expect("few keys");
        let columns = ReportColumns::new(keys);
        assert_eq!(columns.key_headings(), ["Quantity", "additional_report_data.additional_report_data.quantity", prefixed]);
        assert_eq!(columns.place("quantity"), Some(2));
        assert_eq!(columns.place(prefixed), Some(1));
        let keys = columns.key_headings().iter().map(|heading| key_of(heading));
        assert_eq!(keys.collect::<Vec<_>>(), ["Quantity", prefixed, "quantity"]);
    }

    #[test]
    fn a_report_has_columns_for_so_many_keys_and_no_more() {
        let mut keys = ReportKeys::default();
        for n in 0..MAX_KEY_COLUMNS {
            keys.add(&data(&[&n.to_string()])).expect("not too many");
        }
        assert_eq!(keys.add(&data(&["7", "42"])), Ok(()), "known ones take no room");
        assert_eq!(keys.add(&data(&["one more"])), Err(TooManyKeys));
    }
}
