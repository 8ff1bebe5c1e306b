//! What forms and queries say.

use actix_web::HttpRequest;
use actix_web::web;
use billing_domain::idempotency::{IdempotencyKey, ScopedIdempotencyKey};

/// What a form says, field by field.
pub(super) type FormData = Vec<(String, String)>;

/// What a query says, as a form does; what can't be read says nothing.
pub(super) fn query(request: &HttpRequest) -> FormData {
    web::Query::<FormData>::from_query(request.query_string()).map(web::Query::into_inner).unwrap_or_default()
}

/// A field by its name, if something stands in it.
pub(super) fn field<'s>(said: &'s FormData, name: &str) -> Option<&'s str> {
    said.iter().find(|(said, _)| said == name).map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

/// Its fields, as queries are made of them.
pub(super) fn pairs(said: &FormData) -> Vec<(&str, &str)> {
    said.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// The key of a form, for an operation's path.
pub(super) fn key(said: &FormData, path: &str) -> Option<ScopedIdempotencyKey> {
    let key = IdempotencyKey::parse(field(said, "form_key")?).ok()?;
    Some(ScopedIdempotencyKey { path: path.to_owned(), key })
}
