//! Values of submitted forms and queries.

use actix_web::HttpRequest;
use actix_web::web;
use billing_domain::idempotency::IdempotencyKey;

/// Names and values of a submitted form.
pub(super) type FormData = Vec<(String, String)>;

/// Parses a query string like a form. An unreadable query is treated as empty.
pub(super) fn query(request: &HttpRequest) -> FormData {
    web::Query::<FormData>::from_query(request.query_string()).map(web::Query::into_inner).unwrap_or_default()
}

/// Returns a non-empty field by name.
pub(super) fn field<'s>(said: &'s FormData, name: &str) -> Option<&'s str> {
    said.iter().find(|(said, _)| said == name).map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

/// Returns the fields as string slices, for building queries.
pub(super) fn pairs(said: &FormData) -> Vec<(&str, &str)> {
    said.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// Returns the form's idempotency key.
pub(super) fn key(said: &FormData) -> Option<IdempotencyKey> {
    IdempotencyKey::parse(field(said, "form_key")?).ok()
}
