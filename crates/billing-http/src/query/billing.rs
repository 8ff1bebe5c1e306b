//! Filters of billing runs.

use billing_domain::calendar::Timestamp;
use billing_domain::ports::RunFilter;

use super::{DEFAULT_PAGE_SIZE, Paged};
use crate::dto::declare::params;

params! {
    /// Filters and page of billing runs.
    RunParams {
        /// Earliest start time, RFC 3339 with an offset.
        from: Option<Timestamp>,
        /// Latest start time, exclusive.
        to: Option<Timestamp>,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl RunParams {
    /// Returns the filter.
    pub(crate) const fn filter(&self) -> RunFilter {
        RunFilter { from: self.from, to: self.to }
    }
}
