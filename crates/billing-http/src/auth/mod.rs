//! Authentication and authorization of requests.

pub(crate) mod address;
pub(crate) mod attempts;
mod basic;
pub(crate) mod credentials;
pub(crate) mod gate;
pub(crate) mod remembered;
pub(crate) mod session;
mod throttle;

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage as _, HttpRequest};
use billing_domain::idempotency::{IdempotencyKey, ScopedIdempotencyKey};

use self::credentials::CheckedCredential;
use crate::context::RequestContext;
use crate::identity::DeferredTokenCheck;
use crate::respond::HttpProblem;
use crate::state::state_of;
use billing_api::operation::{AuthRequirement, IDEMPOTENCY_KEY, OperationSpec, VERSION};
use billing_api::problem::Problem;
use billing_api::query::Query;

const SUPPORTED_VERSIONS: &[&str] = &[VERSION];

/// Passes a request to the operation's handler if its credential and its other headers are valid.
pub(crate) async fn admit(
    operation: &'static OperationSpec,
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let facts = RequestContext::of(request.request());
    facts.is_for(operation.id, operation.path);
    match credentials::check(operation, request.request()).await {
        Ok(CheckedCredential::Nobody) => {}
        Ok(CheckedCredential::Known(principal)) => {
            facts.is_by(&principal);
            request.extensions_mut().insert(principal.by_request(facts.id()));
            if let AuthRequirement::Permission(use_case) = operation.needs {
                request.extensions_mut().insert(use_case);
            }
        }
        Ok(CheckedCredential::Bearer(claims, use_case)) => {
            let (state, unchecked) = (state_of(request.request()), DeferredTokenCheck::new(claims, use_case));
            request.extensions_mut().insert(unchecked.clone());
            let answered = let_through(operation, request, next).await?;
            if unchecked.is_checked() {
                return Ok(answered);
            }
            // The request was rejected before the token was looked up. An invalid token takes precedence over that
            // error.
            return match unchecked.check(&state, facts.id()).await {
                Ok(principal) => {
                    facts.is_by(&principal);
                    Ok(answered)
                }
                Err(problem) => Ok(answered.error_response(HttpProblem(problem))),
            };
        }
        Err(problem) => return Ok(request.error_response(HttpProblem(problem))),
    }
    let_through(operation, request, next).await
}

/// Passes an authorized request to the handler if its query and other headers are valid.
async fn let_through(
    operation: &'static OperationSpec,
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if let Err(problem) = check_query(operation, request.request()) {
        return Ok(request.error_response(HttpProblem(problem)));
    }
    match check_headers(operation, request.request()) {
        Ok(Some(key)) => drop(request.extensions_mut().insert(key)),
        Ok(None) => {}
        Err(problem) => return Ok(request.error_response(HttpProblem(problem))),
    }
    next.call(request).await
}

/// Rejects a query for operations without parameters. Other operations validate their query themselves, together with
/// other errors.
fn check_query(operation: &OperationSpec, request: &HttpRequest) -> Result<(), Problem> {
    match operation.parameters() {
        Some([]) if !request.query_string().is_empty() => Query::of(request.path(), request.query_string())?.only(&[]),
        Some(_) | None => Ok(()),
    }
}

/// Checks the version and idempotency headers, and returns the idempotency key.
fn check_headers(operation: &OperationSpec, request: &HttpRequest) -> Result<Option<ScopedIdempotencyKey>, Problem> {
    if operation.is_versioned() && request.headers().get_all("version").any(|version| version != VERSION) {
        return Err(Problem::unsupported_version(SUPPORTED_VERSIONS));
    }
    let mut keys = request.headers().get_all(IDEMPOTENCY_KEY);
    let (Some(key), true) = (keys.next(), operation.takes_idempotency_key()) else { return Ok(None) };
    if keys.next().is_some() {
        return Err(Problem::invalid_idempotency_key("must be sent once"));
    }
    let text = std::str::from_utf8(key.as_bytes()).map_err(|_| Problem::invalid_idempotency_key("must be UTF-8"))?;
    let key = IdempotencyKey::parse(text).map_err(|reason| Problem::invalid_idempotency_key(&reason.to_string()))?;
    // The decoded path, so that a key has the same meaning for each spelling of a path.
    let path = request.match_info().as_str().trim_end_matches('/').to_owned();
    Ok(Some(ScopedIdempotencyKey { path, key }))
}
