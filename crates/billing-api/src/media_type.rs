//! Media types of bodies.

pub const JSON: &str = "application/json";
pub const NDJSON: &str = "application/x-ndjson";
pub const CSV: &str = "text/csv";
/// PDF documents.
pub const PDF: &str = "application/pdf";
/// E-invoices.
pub const XML: &str = "application/xml";
/// Error responses.
pub const PROBLEM_JSON: &str = "application/problem+json";
