//! Counts of rejected usage.

use chrono::NaiveDate;

use super::StoreResult;
use crate::page::{Page, PageRequest};
use crate::refs::OrganizationId;
use crate::refused::{RefusedCount, RefusedKey};

/// A filter for counts of rejected usage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedFilter {
    /// Matches counts on or after this date.
    pub from: Option<NaiveDate>,
    /// Matches counts on or before this date.
    pub to: Option<NaiveDate>,
    /// Matches counts with this reason.
    pub code: Option<String>,
    /// Matches counts with this customer reference, as sent by the client.
    pub customer_ref: Option<String>,
    /// Matches counts with this usage product reference, as sent by the client.
    pub usage_product_ref: Option<String>,
}

/// Storage of counts of rejected usage.
pub trait RefusedUsage {
    /// Adds counts to the stored counts, in the given order. The result has these values:
    /// - the sum of both counts
    /// - the first and last instant of both
    /// - the example of the later count
    fn add_refused_usage(&mut self, counts: &[(RefusedKey, RefusedCount)]) -> StoreResult<()>;
    /// Returns a page of the counts that match a filter, newest day first, then by code, customer and usage product.
    fn refused_usage(
        &mut self,
        organization: OrganizationId,
        filter: &RefusedFilter,
        page: PageRequest,
    ) -> StoreResult<Page<(RefusedKey, RefusedCount)>>;
    /// Deletes the counts of all organizations before a day. Returns the number of deleted counts.
    fn purge_refused_usage(&mut self, before: NaiveDate) -> StoreResult<u64>;
}
