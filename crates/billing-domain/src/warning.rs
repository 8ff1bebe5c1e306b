//! Warnings: what may be a mistake in a request that is accepted nevertheless.

use std::fmt;

use crate::calendar::Timestamp;
use crate::contract::Contract;
use crate::refs::ContractRef;

/// The time within which an equal contract of the same customer is a possible duplicate.
const POSSIBLE_DUPLICATE_SECONDS: i64 = 5 * 60;

/// A possible mistake in an accepted request. Its text ([`Display`](fmt::Display)) names the reason and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A created contract bills the same products as another one that was created shortly before.
    SameAs {
        /// The earlier contract.
        contract_ref: ContractRef,
        /// The display form of its number.
        contract_number: String,
    },
}

impl Warning {
    /// Returns the warning about the newest of the customer's contracts that a new one may duplicate.
    pub fn of_duplicate(created: &Contract, others: &[Contract]) -> Option<Self> {
        let since = earliest_duplicate(created.created_at);
        let is_same = |other: &&Contract| {
            let is_recent = other.created_at >= since && other.contract_ref != created.contract_ref;
            is_recent && other.cancelled_at.is_none() && created.bills_same_products(other)
        };
        let newest = others.iter().filter(is_same).max_by_key(|other| (other.created_at, other.number))?;
        Some(Self::SameAs { contract_ref: newest.contract_ref, contract_number: newest.number_text() })
    }

    /// Returns the stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::SameAs { .. } => "same_as",
        }
    }

    /// Returns the JSON pointer of the field that caused the warning, if one field did.
    pub const fn pointer(&self) -> Option<&str> {
        match self {
            Self::SameAs { .. } => None,
        }
    }

    /// Returns the contract that the warning names.
    pub const fn contract_ref(&self) -> Option<ContractRef> {
        match self {
            Self::SameAs { contract_ref, .. } => Some(*contract_ref),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameAs { contract_number, .. } => write!(
                f,
                "contract {contract_number} of the same customer bills the same products from the same first to the same last day, \
                 and is less than 5 minutes older: to annul a contract that was created by mistake, cancel it with the day before \
                 its first day as last_day"
            ),
        }
    }
}

/// Returns the earliest time of creation of a contract that a contract created at an instant may duplicate.
pub fn earliest_duplicate(created_at: Timestamp) -> Timestamp {
    created_at.plus_seconds(-POSSIBLE_DUPLICATE_SECONDS)
}
