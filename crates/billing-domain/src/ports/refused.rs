//! Usage that was refused.

use chrono::NaiveDate;

use super::StoreResult;
use crate::page::{Page, PageRequest};
use crate::refs::OrganizationId;
use crate::refused::{RefusedCount, RefusedKey};

/// What counts are narrowed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedFilter {
    /// Of this day or later.
    pub from: Option<NaiveDate>,
    /// Of this day or earlier.
    pub to: Option<NaiveDate>,
    /// For this reason.
    pub code: Option<String>,
    /// Told to be this customer's.
    pub customer_ref: Option<String>,
    /// Told to be of this usage product.
    pub usage_product_ref: Option<String>,
}

/// Counts of refused usage.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait RefusedUsage {
    /// Adds counts to those that are there, in the order given: Σ counts, the first and the last instant of both, and the example of the
    /// later one.
    fn add_refused_usage(&mut self, counts: &[(RefusedKey, RefusedCount)]) -> StoreResult<()>;
    /// Counts that pass a filter, the newest day first, then by code, customer and usage product.
    fn refused_usage(
        &mut self,
        organization: OrganizationId,
        filter: &RefusedFilter,
        page: PageRequest,
    ) -> StoreResult<Page<(RefusedKey, RefusedCount)>>;
    /// Forgets the counts of days before one, of every organization. Answers how many went.
    fn purge_refused_usage(&mut self, before: NaiveDate) -> StoreResult<u64>;
}
