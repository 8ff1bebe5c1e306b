//! What forms and queries say.

use actix_web::HttpRequest;
use actix_web::web;
use billing_domain::idempotency::{IdempotencyKey, RequestKey};

/// What a form says, field by field.
pub(super) type Said = Vec<(String, String)>;

/// What a query says, as a form does; what can't be read says nothing.
pub(super) fn query(request: &HttpRequest) -> Said {
    web::Query::<Said>::from_query(request.query_string()).map(web::Query::into_inner).unwrap_or_default()
}

/// A field by its name, if something stands in it.
pub(super) fn field<'s>(said: &'s Said, name: &str) -> Option<&'s str> {
    said.iter().find(|(said, _)| said == name).map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

/// Its fields, as queries are made of them.
pub(super) fn pairs(said: &Said) -> Vec<(&str, &str)> {
    said.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// The key of a form, for an operation's path.
pub(super) fn key(said: &Said, path: &str) -> Option<RequestKey> {
    let key = IdempotencyKey::parse(field(said, "form_key")?).ok()?;
    Some(RequestKey { path: path.to_owned(), key })
}
