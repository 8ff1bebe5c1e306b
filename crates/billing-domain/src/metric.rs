//! The kinds of numbers that limits watch, and the rejection of usage by a limit (billing rules 11).

use std::fmt;

use rust_decimal::Decimal;

use crate::refs::LimitRef;

/// The kind of number that a limit watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetricKind {
    /// An amount owed.
    Owed,
    /// The free prepaid credit.
    Prepaid,
    /// The price of a service period.
    Spend,
    /// The quantity of a usage product in a service period.
    Quantity,
}

impl MetricKind {
    /// Returns the word of the kind in the API and in stores.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Owed => "OWED",
            Self::Prepaid => "PREPAID",
            Self::Spend => "SPEND",
            Self::Quantity => "QUANTITY",
        }
    }

    /// Returns whether the number is one of an account, not of a service period.
    pub const fn is_of_account(self) -> bool {
        matches!(self, Self::Owed | Self::Prepaid)
    }

    /// Returns whether usage lowers the number, so that a threshold is reached from above.
    pub const fn falls(self) -> bool {
        matches!(self, Self::Prepaid)
    }
}

/// The rejection of usage that would raise a number above the maximum of its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitReached {
    /// The limit.
    pub limit_ref: LimitRef,
    /// The kind of number that the limit watches.
    pub metric: MetricKind,
    /// The largest number up to which usage is accepted.
    pub max: Decimal,
    /// The number without the usage and without holds.
    pub value: Decimal,
    /// What open holds would add to the number.
    pub held: Decimal,
    /// What the usage would add to the number.
    pub needed: Decimal,
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { metric, max, value, held, needed, .. } = self;
        let holds = if held.is_zero() { String::new() } else { format!(" and the holds of {held}") };
        write!(
            f,
            "the usage would add {needed} to the {} of {value}{holds}, above the limit's max of {max}: raise the limit, or report \
             usage that has already happened with `occurred` set to true",
            metric.word()
        )
    }
}
