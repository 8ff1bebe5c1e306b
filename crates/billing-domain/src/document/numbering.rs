//! Document numbers (billing rules 8): `<entity prefix>-<INV|CRD|DBT>-<sequence>`. The storage guarantees sequences without
//! gaps; see [`NumberSeries`](crate::ports::NumberSeries).

use std::fmt;

use super::DocumentKind;
use crate::party::NumberPrefix;

/// A number in the series of an entity and kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DocumentNumber {
    /// The entity's prefix at the time of numbering.
    pub prefix: NumberPrefix,
    /// The document's kind.
    pub kind: DocumentKind,
    /// The position in the series, from 1.
    pub sequence: u64,
}

impl DocumentNumber {
    /// Parses a displayed number. Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.rsplitn(3, '-');
        let (sequence, kind, prefix) = (parts.next()?, parts.next()?, parts.next()?);
        let kind = DocumentKind::ALL.into_iter().find(|known| known.abbreviation() == kind)?;
        let number = Self { prefix: NumberPrefix::parse(prefix).ok()?, kind, sequence: sequence.parse().ok()? };
        (number.sequence > 0 && number.to_string() == text).then_some(number)
    }
}

/// The end of a document number: the sequence, and the kind if it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberEnd {
    /// The document's kind.
    pub kind: Option<DocumentKind>,
    /// The position in the series.
    pub sequence: u64,
}

impl NumberEnd {
    /// Parses a sequence such as `166` or the end of a number such as `INV-166`, in either case. Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, digits) = text.rsplit_once(['-', ' ']).map_or((None, text), |(kind, digits)| (Some(kind), digits));
        if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let kind = match kind {
            None => None,
            Some(kind) => Some(DocumentKind::ALL.into_iter().find(|known| known.abbreviation().eq_ignore_ascii_case(kind))?),
        };
        Some(Self { kind, sequence: digits.parse().ok()? })
    }
}

impl DocumentKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Invoice, Self::Credit, Self::Debit];

    /// Returns the middle part of a number.
    pub const fn abbreviation(self) -> &'static str {
        match self {
            Self::Invoice => "INV",
            Self::Credit => "CRD",
            Self::Debit => "DBT",
        }
    }
}

impl fmt::Display for DocumentNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.prefix.as_str(), self.kind.abbreviation(), self.sequence)
    }
}

/// The distinct numbers of the documents that carry an event. The last document carries the latest change (billing rules 5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentNumbers(Vec<DocumentNumber>);

impl DocumentNumbers {
    /// Creates the list for an event that a single document carries.
    pub fn of_one(number: DocumentNumber) -> Self {
        Self(vec![number])
    }

    /// Creates the list from the documents of the event's changes, oldest change first. A repeated document moves to the end.
    /// Returns `None` without documents.
    pub fn in_order_of_change(changes: impl IntoIterator<Item = DocumentNumber>) -> Option<Self> {
        let mut numbers = Vec::new();
        for number in changes {
            numbers.retain(|listed| *listed != number);
            numbers.push(number);
        }
        (!numbers.is_empty()).then_some(Self(numbers))
    }

    /// Returns the numbers in order.
    pub fn as_slice(&self) -> &[DocumentNumber] {
        &self.0
    }
}

impl fmt::Display for DocumentNumbers {
    /// Joins the numbers with `, `.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, number) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{number}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_document_of_an_event_is_named_once_by_its_last_change() {
        let prefix = NumberPrefix::parse("UB").expect("a prefix");
        let number = |sequence| DocumentNumber { prefix: prefix.clone(), kind: DocumentKind::Debit, sequence };
        let shown = |sequences: &[u64]| {
            DocumentNumbers::in_order_of_change(sequences.iter().map(|n| number(*n))).map(|numbers| numbers.to_string())
        };
        assert_eq!(shown(&[]), None);
        assert_eq!(shown(&[1]).as_deref(), Some("UB-DBT-1"));
        assert_eq!(shown(&[1, 1, 2, 3, 2]).as_deref(), Some("UB-DBT-1, UB-DBT-3, UB-DBT-2"));
    }

    #[test]
    fn the_end_of_a_number_is_a_sequence_with_or_without_its_kind() {
        for (text, kind, sequence) in [
            ("166", None, 166),
            ("INV-166", Some(DocumentKind::Invoice), 166),
            ("crd 7", Some(DocumentKind::Credit), 7),
            ("Dbt-1", Some(DocumentKind::Debit), 1),
        ] {
            assert_eq!(NumberEnd::parse(text), Some(NumberEnd { kind, sequence }), "{text}");
        }
        for text in ["", "INV", "INV-", "BILL-7", "UB-INV-7", "+7", "1.5", "99999999999999999999"] {
            assert_eq!(NumberEnd::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_number_reads_prefix_kind_sequence() {
        let prefix = NumberPrefix::parse("UB").expect("a prefix");
        let rows = [(DocumentKind::Invoice, "UB-INV-7"), (DocumentKind::Credit, "UB-CRD-7"), (DocumentKind::Debit, "UB-DBT-7")];
        for (kind, shown) in rows {
            let number = DocumentNumber { prefix: prefix.clone(), kind, sequence: 7 };
            assert_eq!((number.to_string().as_str(), DocumentNumber::parse(shown)), (shown, Some(number)));
        }
        for bad in
            ["", "UB", "UB-INV", "UB-INV-", "UB-INV-0", "UB-INV-07", "UB-INV-+7", "UB-inv-7", "-INV-7", "UB-BILL-7", "UB-INV-7 "]
        {
            assert_eq!(DocumentNumber::parse(bad), None, "{bad:?}");
        }
        for bad in ["", "ub", "U B", "U-B", "ABCDEFGHIJKLMNOPQ"] {
            assert!(NumberPrefix::parse(bad).is_err(), "{bad:?}");
        }
    }
}
