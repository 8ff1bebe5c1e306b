//! Media types of bodies.

use billing_domain::report::ReportFormat;

pub const JSON: &str = "application/json";
pub const NDJSON: &str = "application/x-ndjson";
pub const CSV: &str = "text/csv";
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
