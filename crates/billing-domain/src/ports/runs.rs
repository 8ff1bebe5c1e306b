//! Billing runs, as they are told afterwards.

use super::StoreResult;
use crate::calendar::Timestamp;
use crate::page::{Page, PageRequest};
use crate::refs::{BillingRunRef, OrganizationId};
use crate::runs::{BillingRunRecord, RunHead};

/// What runs are narrowed to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// That began at this instant or later.
    pub from: Option<Timestamp>,
    /// That began before this instant.
    pub to: Option<Timestamp>,
}

/// Billing runs.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait BillingRuns {
    /// Keeps a run as it is now, in the place of what was kept of it.
    fn put_billing_run(&mut self, organization: OrganizationId, run: &BillingRunRecord) -> StoreResult<()>;
    /// A run with what it did.
    fn billing_run(&mut self, organization: OrganizationId, run_ref: BillingRunRef) -> StoreResult<Option<BillingRunRecord>>;
    /// Runs that pass a filter, by when they began, then by reference, the newest first.
    fn billing_runs(&mut self, organization: OrganizationId, filter: &RunFilter, page: PageRequest)
    -> StoreResult<Page<RunHead>>;
    /// Forgets a run.
    fn forget_billing_run(&mut self, organization: OrganizationId, run_ref: BillingRunRef) -> StoreResult<()>;
    /// Forgets the runs that began before an instant, of every organization. Answers how many went.
    fn purge_billing_runs(&mut self, before: Timestamp) -> StoreResult<u64>;
}
