//! Media types of bodies.

use billing_domain::report::ReportFormat;

pub const JSON: &str = "application/json";
pub const NDJSON: &str = "application/x-ndjson";
pub const CSV: &str = "text/csv";
/// CSV whose delimiter is the tab.
pub const TSV: &str = "text/tab-separated-values";
/// A CloudEvent in the structured mode.
pub const CLOUD_EVENT: &str = "application/cloudevents+json";
/// An array of CloudEvents.
pub const CLOUD_EVENTS: &str = "application/cloudevents-batch+json";
/// The media types of request bodies, each with the one that it stands for.
pub const ACCEPTED: [(&str, &str); 10] = [
    (JSON, JSON),
    (NDJSON, NDJSON),
    ("application/ndjson", NDJSON),
    ("application/jsonl", NDJSON),
    ("application/jsonlines", NDJSON),
    (CSV, CSV),
    ("application/csv", CSV),
    (TSV, TSV),
    (CLOUD_EVENT, CLOUD_EVENT),
    (CLOUD_EVENTS, CLOUD_EVENTS),
];
/// PDF documents.
pub const PDF: &str = "application/pdf";
/// E-invoices.
pub const XML: &str = "application/xml";
/// Error responses.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// Returns the media type of a report.
pub const fn of_report(format: ReportFormat) -> &'static str {
    match format {
        ReportFormat::Csv => "text/csv; charset=utf-8; header=present",
        ReportFormat::Json => JSON,
        ReportFormat::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    }
}
