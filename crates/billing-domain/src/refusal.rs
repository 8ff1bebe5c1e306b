//! Why a decision isn't made. Nothing is written then; how it is shown is the interface's business.

use thiserror::Error;

use crate::money::{AmountOutOfRange, Currency, MoneyError};
use crate::refs::EntityRef;
use crate::violation::Violations;

/// Why an event lands nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MatchRefusal {
    /// `no_matching_contract`: no product of the customer bills that usage on that day.
    #[error("no contract of the customer bills this usage product on the event's service date")]
    NoMatchingContract,
    /// `no_matching_contract`: no product of the contract bills the day of a charge.
    #[error("no such product of the contract bills the date: give a day that it covers")]
    NoChargedProduct,
    /// `validation_mismatch`: the document has another currency.
    #[error("the document's currency is {actual}, not {expected}")]
    CurrencyMismatch {
        /// What the event asked for.
        expected: Currency,
        /// What the document has.
        actual: Currency,
    },
    /// `validation_mismatch`: the document has another entity.
    #[error("the document's entity is {actual}, not {expected}")]
    EntityMismatch {
        /// What the event asked for.
        expected: EntityRef,
        /// What the document has.
        actual: EntityRef,
    },
}

/// Why the domain refuses what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Fields that can't be taken.
    #[error("{0}")]
    Invalid(Violations),
    /// The state of things forbids it.
    #[error("{detail}")]
    Conflict {
        /// A stable word for machines.
        code: &'static str,
        /// What stands in the way, and what would help.
        detail: String,
    },
    /// An event lands nowhere.
    #[error(transparent)]
    NoMatch(#[from] MatchRefusal),
    /// An amount that exact decimals can't hold.
    #[error(transparent)]
    AmountOutOfRange(#[from] AmountOutOfRange),
    /// The facts contradict each other: a defect of ours or of whoever changed the stored rows, never the caller's.
    #[error("the books are wrong: {0}")]
    Broken(String),
}

impl Refusal {
    /// A state that forbids it.
    pub fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::Conflict { code, detail: detail.into() }
    }

    /// The stable word of a conflict.
    pub const fn conflict_code(&self) -> Option<&'static str> {
        match self {
            Self::Conflict { code, .. } => Some(code),
            Self::Invalid(_) | Self::NoMatch(_) | Self::AmountOutOfRange(_) | Self::Broken(_) => None,
        }
    }

    /// The stable words that the interface returns for it, each field's; none of a defect.
    pub fn codes(&self) -> Vec<&'static str> {
        match self {
            Self::Invalid(violations) => violations.iter().map(|violation| violation.code).collect(),
            Self::Conflict { code, .. } => vec![code],
            Self::NoMatch(MatchRefusal::NoMatchingContract | MatchRefusal::NoChargedProduct) => vec!["no_matching_contract"],
            Self::NoMatch(MatchRefusal::CurrencyMismatch { .. } | MatchRefusal::EntityMismatch { .. }) => {
                vec!["validation_mismatch"]
            }
            Self::AmountOutOfRange(_) => vec!["amount_out_of_range"],
            Self::Broken(_) => Vec::new(),
        }
    }

    /// Whether one of its [codes](Self::codes) is this.
    pub fn has_code(&self, code: &str) -> bool {
        self.codes().contains(&code)
    }

    /// One field that can't be taken.
    pub fn field(path: &[&str], code: &'static str, detail: impl Into<String>) -> Self {
        Self::Invalid(Violations::one(path, code, detail))
    }
}

impl From<MoneyError> for Refusal {
    fn from(error: MoneyError) -> Self {
        match error {
            MoneyError::OutOfRange(error) => Self::AmountOutOfRange(error),
            MoneyError::TwoCurrencies(..) => Self::Broken(error.to_string()),
        }
    }
}

impl From<Violations> for Refusal {
    fn from(violations: Violations) -> Self {
        Self::Invalid(violations)
    }
}
