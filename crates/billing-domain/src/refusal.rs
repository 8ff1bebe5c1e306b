//! Refusals: errors of the domain when a rule rejects a request.
//!
//! A refusal leaves no changes in the store. The API layer decides how it is presented.

use thiserror::Error;

use crate::labels::UnpricedLabel;
use crate::metric::LimitReached;
use crate::money::{AmountOutOfRange, Currency, MoneyError};
use crate::refs::EntityRef;
use crate::violation::Violations;

/// The reason why an event or charge matches no product.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MatchRefusal {
    /// `no_matching_contract`: no product of the customer bills the usage on its service date.
    #[error("no contract of the customer bills this usage product on the event's service date")]
    NoMatchingContract,
    /// `no_matching_line`: the usage product is metered on the service date, but no line item has a price for a label.
    #[error("{}", unpriced(.0))]
    NoMatchingLine(UnpricedLabel),
    /// `no_matching_contract`: no product of the contract bills the date of a charge.
    #[error("no product of the contract with this pricing bills the date: use a day that a product covers")]
    NoChargedProduct,
    /// `validation_mismatch`: the document has a different currency.
    #[error("the document's currency is {actual}, not {expected}")]
    CurrencyMismatch {
        /// The currency that the event requires.
        expected: Currency,
        /// The currency of the document.
        actual: Currency,
    },
    /// `validation_mismatch`: the document has a different entity.
    #[error("the document's entity is {actual}, not {expected}")]
    EntityMismatch {
        /// The entity that the event requires.
        expected: EntityRef,
        /// The entity of the document.
        actual: EntityRef,
    },
}

/// The maximum number of priced values that a refusal lists.
const MAX_LISTED_VALUES: usize = 20;

/// Explains that no line item has a price for a label.
fn unpriced(label: &UnpricedLabel) -> String {
    let is = label.text.as_ref().map_or_else(|| "is missing".to_owned(), |text| format!("is {text}"));
    let mut priced = label.priced.iter().take(MAX_LISTED_VALUES).map(String::as_str).collect::<Vec<_>>().join(", ");
    if let Some(more) = label.priced.len().checked_sub(MAX_LISTED_VALUES).filter(|more| *more > 0) {
        priced = format!("{priced} and {more} more");
    }
    let key = &label.key;
    if label.priced.is_empty() {
        return format!("the label {key} {is}, and the contract counts its distinct values: report the event with it");
    }
    format!(
        "the label {key} {is}, and the contract has prices for {priced}: report one of them, or add a line item for this {key}"
    )
}

/// The reason why the domain rejects a request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Fields have invalid values.
    #[error("{0}")]
    Invalid(Violations),
    /// The current state doesn't allow the request.
    #[error("{detail}")]
    Conflict {
        /// A stable error code for programs.
        code: &'static str,
        /// The cause and the remedy.
        detail: String,
    },
    /// A draft can't be issued yet. It stays a draft, and blocks no other document (billing rules 2).
    #[error("{detail}")]
    Waits {
        /// The reason.
        reason: WaitReason,
        /// The cause and the remedy.
        detail: String,
    },
    /// An event or charge matches no product.
    #[error(transparent)]
    NoMatch(#[from] MatchRefusal),
    /// Exact decimals can't represent an amount.
    #[error(transparent)]
    AmountOutOfRange(#[from] AmountOutOfRange),
    /// Usage would raise a number above the maximum of a limit (billing rules 11).
    #[error("{0}")]
    LimitReached(Box<LimitReached>),
    /// The stored facts contradict each other. This is a defect or the result of changed rows in the store, never a client error.
    #[error("ledger invariant violated: {0}")]
    Broken(String),
}

/// The reason why a draft can't be issued yet (billing rules 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// The entity issues only complete documents, and the document lacks legal particulars.
    IncompleteParticulars,
    /// No exchange rate into the entity's tax currency is known.
    NoExchangeRate,
    /// The document lacks terms of its e-invoice.
    IncompleteEInvoice,
    /// The standard of e-invoices can't express the document.
    NoEInvoice,
    /// The calculation of a line doesn't give its amount.
    WrongCalculation,
}

impl WaitReason {
    /// Returns the error code of the API.
    pub const fn code(self) -> &'static str {
        match self {
            Self::IncompleteParticulars => "paper_incomplete",
            Self::NoExchangeRate => "exchange_rate_missing",
            Self::IncompleteEInvoice => "e_invoice_incomplete",
            Self::NoEInvoice => "e_invoice_unavailable",
            Self::WrongCalculation => "calculation_mismatch",
        }
    }
}

impl Refusal {
    /// Creates a refusal to issue a draft that has to wait.
    pub fn waits(reason: WaitReason, detail: impl Into<String>) -> Self {
        Self::Waits { reason, detail: detail.into() }
    }

    /// Creates a conflict with the current state.
    pub fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::Conflict { code, detail: detail.into() }
    }

    /// Returns the code of a conflict, or `None` for other refusals.
    pub const fn conflict_code(&self) -> Option<&'static str> {
        match self {
            Self::Conflict { code, .. } => Some(code),
            Self::Waits { reason, .. } => Some(reason.code()),
            Self::Invalid(_) | Self::NoMatch(_) | Self::AmountOutOfRange(_) | Self::LimitReached(_) | Self::Broken(_) => None,
        }
    }

    /// Returns the error codes in the API, one for each invalid field. A defect has no code.
    pub fn codes(&self) -> Vec<&'static str> {
        match self {
            Self::Invalid(violations) => violations.iter().map(|violation| violation.code).collect(),
            Self::Conflict { code, .. } => vec![code],
            Self::Waits { reason, .. } => vec![reason.code()],
            Self::NoMatch(MatchRefusal::NoMatchingContract | MatchRefusal::NoChargedProduct) => vec!["no_matching_contract"],
            Self::NoMatch(MatchRefusal::NoMatchingLine(_)) => vec!["no_matching_line"],
            Self::NoMatch(MatchRefusal::CurrencyMismatch { .. } | MatchRefusal::EntityMismatch { .. }) => {
                vec!["validation_mismatch"]
            }
            Self::AmountOutOfRange(_) => vec!["amount_out_of_range"],
            Self::LimitReached(_) => vec!["limit_reached"],
            Self::Broken(_) => Vec::new(),
        }
    }

    /// Returns whether one of the [codes](Self::codes) equals `code`.
    pub fn has_code(&self, code: &str) -> bool {
        self.codes().contains(&code)
    }

    /// Creates the refusal of a single field.
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
