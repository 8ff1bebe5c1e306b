//! Without the feature.

use std::convert::Infallible;

use tracing_subscriber::layer::Identity;

use super::{ENDPOINT, is_wanted};
use crate::failure::Outcome;

/// What isn't there.
pub(crate) struct Telemetry(Infallible);

impl Telemetry {
    /// Says so to whoever wants it; the variable may be there for others.
    pub(crate) fn start() -> Outcome<Option<Self>> {
        if is_wanted() {
            eprintln!(
                "usage-billing: {ENDPOINT} is set, but this binary was built without the feature `telemetry`; no traces are sent"
            );
        }
        Ok(None)
    }

    /// Nothing.
    pub(crate) fn layer(&self) -> Identity {
        match self.0 {}
    }

    /// Nothing.
    pub(crate) fn end(self) {
        match self.0 {}
    }
}
