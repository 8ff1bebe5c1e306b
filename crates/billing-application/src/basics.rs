//! What reading and deciding begin with, whatever it is about.

use std::collections::BTreeSet;

use billing_domain::ledger::IdGenerator;
use billing_domain::ports::StoreError;

use crate::Services;
use crate::error::UseCaseError;

/// A day, in seconds.
pub(crate) const DAY_SECONDS: i64 = 86_400;

/// What decisions can't make up themselves, from the services.
pub(crate) fn supplies<'s>(services: &'s Services<'_>) -> impl IdGenerator + 's {
    || services.ids.new_id()
}

/// What to look up: each once, in order.
pub(crate) fn distinct<T: Ord>(named: impl IntoIterator<Item = T>) -> Vec<T> {
    Vec::from_iter(BTreeSet::from_iter(named))
}

/// A state the store's own rules exclude.
pub(crate) fn corrupt(what: &str, which: &dyn std::fmt::Display, how: &str) -> UseCaseError {
    StoreError::Corrupt(format!("{what} {which} {how}")).into()
}
