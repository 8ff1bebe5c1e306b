//! OpenTelemetry traces, for a binary with the feature `telemetry`, sent to the collector in
//! `OTEL_EXPORTER_OTLP_ENDPOINT`. Without the variable, nothing is collected or sent.

#[cfg(not(feature = "telemetry"))]
mod absent;
#[cfg(feature = "telemetry")]
mod sent;

#[cfg(not(feature = "telemetry"))]
pub(crate) use absent::Telemetry;
#[cfg(feature = "telemetry")]
pub(crate) use sent::Telemetry;

/// The environment variable with the collector's address.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Returns whether a collector is configured.
fn is_wanted() -> bool {
    std::env::var_os(ENDPOINT).is_some_and(|endpoint| !endpoint.is_empty())
}
