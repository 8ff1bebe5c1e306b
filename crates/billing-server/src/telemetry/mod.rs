//! Traces of OpenTelemetry, for a binary that is built with the feature `telemetry`, to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT`
//! names. Without the variable nothing is made or sent.

#[cfg(not(feature = "telemetry"))]
mod absent;
#[cfg(feature = "telemetry")]
mod sent;

#[cfg(not(feature = "telemetry"))]
pub(crate) use absent::Telemetry;
#[cfg(feature = "telemetry")]
pub(crate) use sent::Telemetry;

/// Where the collector is.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Whether somebody collects.
fn is_wanted() -> bool {
    std::env::var_os(ENDPOINT).is_some_and(|endpoint| !endpoint.is_empty())
}
