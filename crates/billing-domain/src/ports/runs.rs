//! Records of billing runs.

use super::StoreResult;
use crate::calendar::Timestamp;
use crate::page::{Direction, ListSortKey, Page, PageRequest, UpdateFilter};
use crate::refs::{BillingRunRef, OrganizationId};
use crate::runs::{BillingRunRecord, RunHead};

/// A filter for billing runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Matches runs that began at this instant or later.
    pub from: Option<Timestamp>,
    /// Matches runs that began before this instant.
    pub to: Option<Timestamp>,
    /// Conditions on the time of the last change.
    pub updates: UpdateFilter,
}

/// Storage of billing runs.
pub trait BillingRuns {
    /// Stores the current state of a run and replaces the earlier state.
    fn put_billing_run(&mut self, organization: OrganizationId, run: &BillingRunRecord) -> StoreResult<()>;
    /// Returns a run with its results.
    fn billing_run(&mut self, organization: OrganizationId, run_ref: BillingRunRef) -> StoreResult<Option<BillingRunRecord>>;
    /// Returns a page of the runs that match a filter, ordered by start or by the last change, then by reference. The order
    /// may be ascending or descending.
    fn listed_billing_runs(
        &mut self,
        organization: OrganizationId,
        filter: &RunFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<RunHead>>;
    /// Returns a page of the runs that match a filter, ordered by start, then by reference, newest first.
    fn billing_runs(
        &mut self,
        organization: OrganizationId,
        filter: &RunFilter,
        page: PageRequest,
    ) -> StoreResult<Page<RunHead>> {
        self.listed_billing_runs(organization, filter, ListSortKey::Created, page.in_direction(Direction::Backward))
    }
    /// Deletes a run.
    fn forget_billing_run(&mut self, organization: OrganizationId, run_ref: BillingRunRef) -> StoreResult<()>;
    /// Deletes the runs of all organizations that began before an instant. Returns the number of deleted runs.
    fn purge_billing_runs(&mut self, before: Timestamp) -> StoreResult<u64>;
}
