//! The latest instant in the database, with which a server compares its clock at the start.

use billing_domain::calendar::Timestamp;
use billing_domain::ports::{Access, transact};

use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};

/// Returns the latest instant at which a server recorded something in the database. Returns `None` for an empty database.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the instant cannot be read.
pub fn latest_recorded_instant(services: &Services) -> UseCaseResult<Option<Timestamp>> {
    transact(&*services.store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.latest_recorded_instant()?))
}
