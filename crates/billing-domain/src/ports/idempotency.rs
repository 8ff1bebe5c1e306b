//! Requests that are carried out once.

use std::time::Duration;

use super::StoreResult;
use crate::calendar::Timestamp;
use crate::idempotency::{IdempotencyRecord, ScopedIdempotencyKey};
use crate::refs::OrganizationId;

/// Requests that succeeded under a key, and what they were answered.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait IdempotencyStore {
    /// Holds a request's key until the transaction ends, so that no two transactions hold it at a time, on whatever
    /// server. Waits for the one that does, at most this long; `false` when that was not enough. What was kept under
    /// the key before is seen then.
    fn hold_key(&mut self, organization: OrganizationId, request: &ScopedIdempotencyKey, wait: Duration) -> StoreResult<bool>;
    /// What was kept under a key at this instant or later.
    fn idempotency_record(
        &mut self,
        organization: OrganizationId,
        request: &ScopedIdempotencyKey,
        since: Timestamp,
    ) -> StoreResult<Option<IdempotencyRecord>>;
    /// Keeps a request under its key, in the place of an older one. The key must be held.
    fn save_idempotency_record(
        &mut self,
        organization: OrganizationId,
        request: &ScopedIdempotencyKey,
        kept: &IdempotencyRecord,
    ) -> StoreResult<()>;
    /// Forgets what was kept before an instant, of every organization, the oldest first: about this many, because
    /// those of one instant go together. Answers how many went.
    fn purge_kept_requests(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
