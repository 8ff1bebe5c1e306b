//! The implementation with the feature `telemetry`: each request is a span, sent as protocol buffers over HTTP.

use std::time::Duration;

use async_trait::async_trait;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::trace::{SdkTracerProvider, Tracer};
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::registry::LookupSpan;

use super::{ENDPOINT, is_wanted};
use crate::failure::{CommandError, CommandResult};

/// The default service name; `OTEL_SERVICE_NAME` overrides it.
const SERVICE: &str = "usage-billing";
/// The timeout of a request to the collector. Only a separate thread waits for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// A sender of spans.
pub(crate) struct Telemetry(SdkTracerProvider);

impl Telemetry {
    /// Starts tracing if a collector is configured.
    ///
    /// # Errors
    /// Returns [`CommandError::Setting`] for an invalid collector address.
    pub(crate) fn start() -> CommandResult<Option<Self>> {
        if !is_wanted() {
            return Ok(None);
        }
        let exporter = SpanExporter::builder().with_http().with_http_client(Sender::new()).build();
        let exporter = exporter.map_err(|error| CommandError::Setting(format!("{ENDPOINT}: {error}")))?;
        let mut provider = SdkTracerProvider::builder().with_batch_exporter(exporter);
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            provider = provider.with_resource(opentelemetry_sdk::Resource::builder().with_service_name(SERVICE).build());
        }
        Ok(Some(Self(provider.build())))
    }

    /// Returns the layer that exports the spans of the log.
    pub(crate) fn layer<S: Subscriber + for<'s> LookupSpan<'s>>(&self) -> OpenTelemetryLayer<S, Tracer> {
        tracing_opentelemetry::layer().with_tracer(self.0.tracer(SERVICE)).with_location(false).with_threads(false)
    }

    /// Sends the remaining spans.
    pub(crate) fn end(self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "the last traces could not be sent");
        }
    }
}

/// The ureq agent as the HTTP client of the OpenTelemetry library.
#[derive(Debug)]
struct Sender(ureq::Agent);

impl Sender {
    fn new() -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(false);
        // A collector can have an https:// address.
        Self(config.tls_config(billing_webhooks::tls_config()).build().into())
    }
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let answer = self.0.run(Request::from_parts(parts, Vec::from(body)))?;
        let (parts, mut body) = answer.into_parts();
        Ok(Response::from_parts(parts, Bytes::from(body.read_to_vec()?)))
    }
}
