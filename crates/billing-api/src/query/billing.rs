//! Filters of billing runs.

use billing_domain::calendar::Timestamp;
use billing_domain::ports::RunFilter;

use super::lists::NEWEST_FIRST;
use super::updates::UpdateParams;
use super::{DEFAULT_PAGE_SIZE, Paged, paged};
use crate::dto::declare::params;
use crate::dto::enums::ListOrderWord;

params! {
    /// Filters and page of billing runs.
    RunParams {
        /// Earliest start time, RFC 3339 with an offset.
        from: Option<Timestamp>,
        /// Latest start time, exclusive.
        to: Option<Timestamp>,
        /// Sort order. Default: `-created`, by start time, newest first.
        order: ListOrderWord = NEWEST_FIRST,
        @flat updates: UpdateParams,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl RunParams {
    /// Returns the filter.
    pub fn filter(&self) -> RunFilter {
        RunFilter { from: self.from, to: self.to, updates: self.updates.filter() }
    }
}

paged! {
    ;
    ordered RunParams,
}
