//! Which billing runs.

use billing_domain::calendar::Timestamp;
use billing_domain::ports::RunFilter;

use super::{DEFAULT_PAGE_SIZE, Paged};
use crate::dto::declare::params;

params! {
    /// Which billing runs, and which page.
    RunParams {
        /// That began at this instant or later: RFC 3339 with an offset.
        from: Option<Timestamp>,
        /// That began before this instant.
        to: Option<Timestamp>,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl RunParams {
    /// What they are narrowed to.
    pub(crate) const fn filter(&self) -> RunFilter {
        RunFilter { from: self.from, to: self.to }
    }
}
