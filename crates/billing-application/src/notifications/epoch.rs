//! Epochs of positions, and the check of a client's position.

use billing_domain::calendar::Timestamp;
use billing_domain::notification::epoch::{Restore, restart};
use billing_domain::ports::{StoreResult, Tx};

use crate::carry_out::Cx;
use crate::error::{UseCaseError, UseCaseResult};

/// Starts an epoch in a database that was restored from a backup. No server may use the database.
///
/// # Errors
/// Returns an error if the database fails.
pub fn start_epoch(tx: &mut dyn Tx, now: Timestamp) -> StoreResult<Restore> {
    let restore = Restore::next(&tx.restores()?, tx.highest_position()?, tx.latest_recorded_instant()?, now);
    tx.insert_restore(&restore)?;
    Ok(restore)
}

/// Checks that a client's position is of this feed.
///
/// # Errors
/// Returns [`UseCaseError::FeedRestarted`] if it is of another epoch, or above the last position.
pub(crate) fn require_position(cx: &mut Cx<'_>, after: u64) -> UseCaseResult<()> {
    if after == 0 {
        return Ok(());
    }
    let restores = cx.tx.restores()?;
    match restart(&restores, cx.tx.last_position(cx.organization)?, after) {
        None => Ok(()),
        Some(restarted) => Err(UseCaseError::FeedRestarted(restarted)),
    }
}
