//! Idempotency of requests.

use std::time::Duration;

use super::StoreResult;
use crate::calendar::Timestamp;
use crate::idempotency::{IdempotencyRecord, ScopedIdempotencyKey};
use crate::refs::OrganizationId;

/// Storage of successful requests with an idempotency key, and of their responses.
pub trait IdempotencyStore {
    /// Locks the idempotency key of a request until the transaction ends, across all servers. The transaction then sees
    /// any record already stored under the key.
    ///
    /// Waits at most `wait` for another holder of the lock. Returns `false` when that time was too short.
    fn hold_key(&mut self, organization: OrganizationId, request: &ScopedIdempotencyKey, wait: Duration) -> StoreResult<bool>;
    /// Returns the record of a key, if it was stored at this instant or later.
    fn idempotency_record(
        &mut self,
        organization: OrganizationId,
        request: &ScopedIdempotencyKey,
        since: Timestamp,
    ) -> StoreResult<Option<IdempotencyRecord>>;
    /// Stores the record of a request under its key and replaces an older record. The key must be locked.
    fn save_idempotency_record(
        &mut self,
        organization: OrganizationId,
        request: &ScopedIdempotencyKey,
        kept: &IdempotencyRecord,
    ) -> StoreResult<()>;
    /// Deletes the records of all organizations stored before an instant, oldest first. Returns the number of deleted
    /// records.
    ///
    /// `limit` is approximate, because records of the same instant are deleted together.
    fn purge_kept_requests(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
