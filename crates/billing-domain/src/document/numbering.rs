//! Document numbers (billing rules 8): `<entity prefix>-<INV|CRD|DBT>-<sequence>`.
//! That sequences have no gaps is the store's duty; see [`NumberSeries`](crate::ports::NumberSeries).

use std::fmt;

use super::DocumentKind;
use crate::party::NumberPrefix;

/// A number in the series of one entity and kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DocumentNumber {
    /// The entity's prefix when the number was taken.
    pub prefix: NumberPrefix,
    /// The kind.
    pub kind: DocumentKind,
    /// Counts from 1.
    pub sequence: u64,
}

impl DocumentKind {
    /// The middle part of a number.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_reads_prefix_kind_sequence() {
        let prefix = NumberPrefix::parse("UB").expect("a prefix");
        let rows = [(DocumentKind::Invoice, "UB-INV-7"), (DocumentKind::Credit, "UB-CRD-7"), (DocumentKind::Debit, "UB-DBT-7")];
        for (kind, shown) in rows {
            assert_eq!(DocumentNumber { prefix: prefix.clone(), kind, sequence: 7 }.to_string(), shown);
        }
        for bad in ["", "ub", "U B", "U-B", "ABCDEFGHIJKLMNOPQ"] {
            assert!(NumberPrefix::parse(bad).is_err(), "{bad:?}");
        }
    }
}
