//! Values of submitted forms and queries.

use billing_api::console::{FormData, PageRequest, form_data};
use billing_domain::idempotency::IdempotencyKey;

/// Returns the values of a request's query.
pub(super) fn query(request: &PageRequest) -> FormData {
    form_data(&request.query)
}

/// Returns a non-empty field by name.
pub(super) fn field<'s>(submitted: &'s FormData, name: &str) -> Option<&'s str> {
    submitted.iter().find(|(submitted, _)| submitted == name).map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

/// Returns the fields as string slices, for building queries.
pub(super) fn pairs(submitted: &FormData) -> Vec<(&str, &str)> {
    submitted.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// Returns the form's idempotency key.
pub(super) fn key(submitted: &FormData) -> Option<IdempotencyKey> {
    IdempotencyKey::parse(field(submitted, "form_key")?).ok()
}
