//! Request spans. Log lines within a span show the request id. In a binary with trace export, spans also carry
//! OpenTelemetry attributes about the request and its outcome, and join the caller's trace.

use actix_web::http::header::HeaderMap;
use tracing::Span;

#[cfg(not(feature = "telemetry"))]
pub(crate) fn begin(request_id: &str, _headers: &HeaderMap) -> Span {
    tracing::info_span!("request", %request_id)
}

#[cfg(not(feature = "telemetry"))]
pub(crate) fn end(_span: &Span, _method: &str, _status: u16, _route: Option<&str>) {}

#[cfg(feature = "telemetry")]
pub(crate) use reported::{begin, end};

#[cfg(feature = "telemetry")]
mod reported {
    use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
    use opentelemetry::trace::{Status, TraceContextExt as _};
    use opentelemetry_sdk::propagation::TraceContextPropagator;
    use tracing::field::Empty;
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;

    use super::{HeaderMap, Span};

    struct Headers<'h>(&'h HeaderMap);

    impl Extractor for Headers<'_> {
        fn get(&self, key: &str) -> Option<&str> {
            self.0.get(key)?.to_str().ok()
        }

        fn keys(&self) -> Vec<&str> {
            self.0.keys().map(|name| name.as_str()).collect()
        }
    }

    /// Begins the span of a request as a child of the trace in `traceparent`. An unreadable header is ignored, as the W3C
    /// standard requires.
    pub(crate) fn begin(request_id: &str, headers: &HeaderMap) -> Span {
        let span = tracing::info_span!(
            "request",
            %request_id,
            otel.kind = "server",
            http.request.method = Empty,
            http.route = Empty,
            http.response.status_code = Empty,
        );
        if headers.contains_key("traceparent") {
            // Without a collector this call fails, which is not an error.
            span.set_parent(TraceContextPropagator::new().extract(&Headers(headers))).ok();
        }
        span
    }

    /// Adds attributes at the end of the request, so that log lines stay short. The span name uses the route, because
    /// paths with references would create a name per object.
    pub(crate) fn end(span: &Span, method: &str, status: u16, route: Option<&str>) {
        span.record("http.request.method", method);
        span.record("http.response.status_code", status);
        if let Some(route) = route {
            span.record("http.route", route);
            span.context().span().update_name(format!("{method} {route}"));
        }
        if status >= 500 {
            span.set_status(Status::error(""));
        }
    }
}
