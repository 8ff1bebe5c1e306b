//! Helpers for all use cases.

use std::collections::BTreeSet;

use billing_domain::ports::{Access, StoreError, StoreResult, Tx, transact};

use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};

/// The length of a day in seconds.
pub(crate) const DAY_SECONDS: i64 = 86_400;

/// Deletes old rows with one transaction for each `at_once` of them, which keeps locks short. `purge` deletes at most as many rows as
/// its argument says and returns their number. Returns the number of all deleted rows.
pub(crate) fn purge_in_parts(
    services: &Services,
    at_once: u32,
    purge: impl Fn(&mut dyn Tx, u32) -> StoreResult<u64>,
) -> UseCaseResult<u64> {
    let mut purged = 0;
    loop {
        let of_part = transact(&*services.store, Access::Write, |tx| Ok::<_, UseCaseError>(purge(tx, at_once)?))?;
        purged += of_part;
        if of_part < u64::from(at_once) {
            return Ok(purged);
        }
    }
}

/// Returns the distinct values in order.
pub(crate) fn distinct<T: Ord>(named: impl IntoIterator<Item = T>) -> Vec<T> {
    Vec::from_iter(BTreeSet::from_iter(named))
}

/// Returns the error for a state that the database's constraints rule out.
pub(crate) fn corrupt(what: &str, which: &dyn std::fmt::Display, how: &str) -> UseCaseError {
    StoreError::Corrupt(format!("{what} {which} {how}")).into()
}
