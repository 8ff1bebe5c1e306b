//! Requests that succeeded under a key.

use std::sync::Arc;
use std::time::Duration;

use billing_domain::calendar::Timestamp;
use billing_domain::idempotency::{KeptRequest, RequestKey};
use billing_domain::ports::{ReplayLog, StoreResult};
use billing_domain::refs::OrganizationId;

use super::MemoryTx;

impl ReplayLog for MemoryTx {
    /// With one writer there is nobody to wait for.
    fn hold_key(&mut self, organization: OrganizationId, request: &RequestKey, _wait: Duration) -> StoreResult<bool> {
        self.held.request_key(organization, request)?;
        Ok(true)
    }

    fn kept_request(
        &mut self,
        organization: OrganizationId,
        request: &RequestKey,
        since: Timestamp,
    ) -> StoreResult<Option<KeptRequest>> {
        let kept = self.state.kept_requests.get(&(organization, request.clone()));
        Ok(kept.filter(|kept| kept.kept_at >= since).cloned())
    }

    fn keep_request(&mut self, organization: OrganizationId, request: &RequestKey, kept: &KeptRequest) -> StoreResult<()> {
        self.held.need_request_key(organization, request)?;
        Arc::make_mut(&mut self.state.kept_requests).insert((organization, request.clone()), kept.clone());
        Ok(())
    }

    fn purge_kept_requests(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let all = Arc::make_mut(&mut self.state.kept_requests);
        let mut old: Vec<Timestamp> = all.values().map(|kept| kept.kept_at).filter(|kept_at| *kept_at < before).collect();
        old.sort_unstable();
        let last = usize::try_from(limit.max(1) - 1).ok().and_then(|last| old.get(last)).or(old.last()).copied();
        let size = all.len();
        all.retain(|_, kept| last.is_none_or(|last| kept.kept_at > last));
        Ok((size - all.len()) as u64)
    }
}
