//! Helpers for all use cases.

use std::collections::BTreeSet;

use billing_domain::ports::StoreError;

use crate::error::UseCaseError;

/// The length of a day in seconds.
pub(crate) const DAY_SECONDS: i64 = 86_400;

/// Returns the distinct values in order.
pub(crate) fn distinct<T: Ord>(named: impl IntoIterator<Item = T>) -> Vec<T> {
    Vec::from_iter(BTreeSet::from_iter(named))
}

/// Returns the error for a state that the database's constraints rule out.
pub(crate) fn corrupt(what: &str, which: &dyn std::fmt::Display, how: &str) -> UseCaseError {
    StoreError::Corrupt(format!("{what} {which} {how}")).into()
}
