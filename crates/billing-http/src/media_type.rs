//! Media types of bodies.

pub(crate) const JSON: &str = "application/json";
pub(crate) const NDJSON: &str = "application/x-ndjson";
pub(crate) const CSV: &str = "text/csv";
/// PDF documents.
pub(crate) const PDF: &str = "application/pdf";
/// E-invoices.
pub(crate) const XML: &str = "application/xml";
/// Error responses.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";
