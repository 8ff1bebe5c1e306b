//! Parsing of bodies. A large body is parsed on a blocking thread, because the thread that serves connections would answer no
//! other request meanwhile. The organizations share the blocking threads fairly.

use std::sync::{Arc, OnceLock};

use actix_web::web;
use billing_domain::idempotency::BodyHash;
use billing_domain::refs::OrganizationId;
use serde_json::Value;
use tokio::runtime::Handle;

use crate::state::HttpState;
use billing_api::problem::Problem;

/// Maximum number of bytes that are parsed on the thread that serves connections. Parsing them takes less time than a change of
/// threads delays a request.
const MAX_INLINE_BYTES: usize = 16 * 1024;

/// Returns whether work that is proportional to a body of this size needs a blocking thread.
pub(crate) const fn is_large(bytes: usize) -> bool {
    bytes > MAX_INLINE_BYTES
}

/// Runs work that parses a body of this size. A large body waits for a permit and is parsed on a blocking thread.
///
/// # Errors
/// Returns the problem of the work, or `overloaded` if no permit was free in time.
pub(crate) async fn parse<T: Send + 'static>(
    state: &HttpState,
    organization: OrganizationId,
    bytes: usize,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    if is_large(bytes) { parse_on_a_thread(state, organization, Box::new(work)).await } else { work() }
}

/// Work for a blocking thread. Boxed, because a separate future type per body makes compilation slow.
type Work<T> = Box<dyn FnOnce() -> Result<T, Problem> + Send>;

async fn parse_on_a_thread<T: Send + 'static>(
    state: &HttpState,
    organization: OrganizationId,
    work: Work<T>,
) -> Result<T, Problem> {
    let (permit, span) = (state.permit_parse(organization).await?, tracing::Span::current());
    let parsed = web::block(move || {
        // The parsing thread releases the permit, even if the request was abandoned.
        let _permit = permit;
        span.in_scope(work)
    });
    // The outer error is a panic, which the panic hook has already logged.
    parsed.await.unwrap_or_else(|_| Err(Problem::internal()))
}

/// A JSON body. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ParsedBody(Arc<ParsedJson>);

#[derive(Debug)]
struct ParsedJson {
    /// The text of a body whose value is parsed only if it is needed.
    text: Option<web::Bytes>,
    value: OnceLock<Value>,
    /// Number of bytes of the text.
    bytes: usize,
    hash: OnceLock<BodyHash>,
}

impl ParsedBody {
    /// Creates the body of a text with this number of bytes.
    pub(crate) fn new(value: Value, bytes: usize) -> Self {
        Self(Arc::new(ParsedJson { text: None, value: OnceLock::from(value), bytes, hash: OnceLock::new() }))
    }

    /// Creates the body of a text that is known to be one JSON value. It is parsed when the value is needed, so it must not be
    /// large.
    pub(crate) fn of_valid(text: web::Bytes) -> Self {
        let bytes = text.len();
        Self(Arc::new(ParsedJson { text: Some(text), value: OnceLock::new(), bytes, hash: OnceLock::new() }))
    }

    /// Parses a body.
    ///
    /// # Errors
    /// Returns the position and reason if the bytes are not one JSON value.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Problem> {
        Ok(Self::new(billing_json::read(bytes)?, bytes.len()))
    }

    pub(crate) fn value(&self) -> &Value {
        let parse = || self.0.text.as_ref().and_then(|text| billing_json::read(text).ok()).unwrap_or_default();
        self.0.value.get_or_init(parse)
    }

    /// Returns the number of bytes of the text.
    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// Returns the hash of the value, which is computed once. For a large body, call it first where the body is parsed.
    pub(crate) fn hash(&self) -> BodyHash {
        *self.0.hash.get_or_init(|| billing_json::hash(Some(self.value())))
    }
}

/// Creates a body that the server composed, which is small.
impl From<Value> for ParsedBody {
    fn from(value: Value) -> Self {
        Self::new(value, 0)
    }
}

impl Drop for ParsedJson {
    /// Frees a large value on a blocking thread, because it can consist of a hundred thousand allocations.
    fn drop(&mut self) {
        if is_large(self.bytes)
            && let Ok(runtime) = Handle::try_current()
        {
            let value = self.value.take();
            drop(runtime.spawn_blocking(move || drop(value)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bodies_above_the_limit_are_large() {
        assert!(!is_large(0) && !is_large(16 * 1024) && is_large(16 * 1024 + 1));
    }

    #[test]
    fn a_body_has_its_size_and_the_hash_of_its_value() {
        let text = br#"{"b": 1.50, "a": [true]}"#;
        let body = ParsedBody::read(text).expect("a body");
        assert_eq!((body.bytes(), body.value()["b"].to_string()), (text.len(), "1.50".to_owned()));
        let same = ParsedBody::read(br#"{"a":[true],"b":1.5}"#).expect("a body");
        assert_eq!((body.hash(), body.clone().hash()), (same.hash(), billing_json::hash(Some(body.value()))));
        assert_eq!(ParsedBody::read(b"{").expect_err("no JSON").code(), "malformed_json");
    }

    #[test]
    fn a_body_that_is_parsed_later_has_the_same_value_and_hash() {
        let text = br#"{"b": 1.50, "a": [true]}"#;
        let (now, later) = (ParsedBody::read(text).expect("a body"), ParsedBody::of_valid(web::Bytes::from_static(text)));
        assert_eq!((later.bytes(), later.hash(), later.value()), (now.bytes(), now.hash(), now.value()));
    }

    #[actix_web::test]
    async fn a_large_value_is_freed_inside_and_outside_of_a_runtime() {
        let large = || ParsedBody::new(Value::from(vec![1; 1_000]), 1_000_000);
        let (one, other) = (large(), large());
        let shared = one.clone();
        drop(one);
        assert_eq!(shared.value().as_array().map(Vec::len), Some(1_000), "a clone keeps the value");
        drop(shared);
        std::thread::spawn(move || drop(other)).join().expect("a value is freed without a runtime");
    }
}
