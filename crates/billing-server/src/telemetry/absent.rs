//! The implementation without the feature `telemetry`.

use std::convert::Infallible;

use tracing_subscriber::layer::Identity;

use super::{ENDPOINT, is_wanted};
use crate::failure::CommandResult;

/// A type without values.
pub(crate) struct Telemetry(Infallible);

impl Telemetry {
    /// Prints a warning if the endpoint is set. This is not an error, because the variable may be meant for other
    /// programs.
    pub(crate) fn start() -> CommandResult<Option<Self>> {
        if is_wanted() {
            eprintln!(
                "usage-billing: {ENDPOINT} is set, but this binary was built without the feature `telemetry`; no traces are sent"
            );
        }
        Ok(None)
    }

    /// Never called, because the type has no values.
    pub(crate) fn layer(&self) -> Identity {
        match self.0 {}
    }

    /// Never called, because the type has no values.
    pub(crate) fn end(self) {
        match self.0 {}
    }
}
