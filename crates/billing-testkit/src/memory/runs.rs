//! Billing runs, as they are told afterwards.

use std::cmp::Reverse;
use std::sync::Arc;

use billing_domain::calendar::Timestamp;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{BillingRuns, RunFilter, StoreResult};
use billing_domain::refs::{BillingRunRef, OrganizationId};
use billing_domain::runs::{KeptRun, RunHead};

use super::{MemoryTx, page};

impl BillingRuns for MemoryTx {
    fn put_billing_run(&mut self, organization: OrganizationId, run: &KeptRun) -> StoreResult<()> {
        Arc::make_mut(&mut self.state.billing_runs).insert((organization, run.head.run_ref), run.clone());
        Ok(())
    }

    fn billing_run(&mut self, organization: OrganizationId, run_ref: BillingRunRef) -> StoreResult<Option<KeptRun>> {
        Ok(self.state.billing_runs.get(&(organization, run_ref)).cloned())
    }

    fn billing_runs(
        &mut self,
        organization: OrganizationId,
        filter: &RunFilter,
        request: PageRequest,
    ) -> StoreResult<Page<RunHead>> {
        let RunFilter { from, to } = *filter;
        let passes = |head: &&RunHead| from.is_none_or(|from| from <= head.begun_at) && to.is_none_or(|to| head.begun_at < to);
        let own = self.state.billing_runs.iter().filter(|((owner, _), _)| *owner == organization).map(|(_, run)| &run.head);
        Ok(page(own.filter(passes), request, |head| Reverse((head.begun_at, head.run_ref))))
    }

    fn forget_billing_run(&mut self, organization: OrganizationId, run_ref: BillingRunRef) -> StoreResult<()> {
        Arc::make_mut(&mut self.state.billing_runs).remove(&(organization, run_ref));
        Ok(())
    }

    fn purge_billing_runs(&mut self, before: Timestamp) -> StoreResult<u64> {
        let all = Arc::make_mut(&mut self.state.billing_runs);
        let size = all.len();
        all.retain(|_, run| run.head.begun_at >= before);
        Ok((size - all.len()) as u64)
    }
}
