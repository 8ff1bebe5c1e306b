//! Who is asking, and whether they may.

pub(crate) mod address;
pub(crate) mod credentials;
pub(crate) mod gate;
pub(crate) mod session;
mod throttle;

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage as _, HttpRequest};

use crate::operations::{Operation, VERSION};
use crate::problem::Problem;

const SUPPORTED_VERSIONS: &[&str] = &[VERSION];

/// Lets a request through to an operation's handler when its credential, then its other headers, allow it.
pub(crate) async fn admit(
    operation: &'static Operation,
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let principal = match credentials::check(operation, request.request()).await {
        Ok(principal) => principal,
        Err(problem) => return Ok(request.error_response(problem)),
    };
    if let Some(principal) = principal {
        request.extensions_mut().insert(principal);
    }
    if let Err(problem) = check_headers(operation, request.request()) {
        return Ok(request.error_response(problem));
    }
    next.call(request).await
}

fn check_headers(operation: &Operation, request: &HttpRequest) -> Result<(), Problem> {
    if operation.is_versioned() && request.headers().get_all("version").any(|version| version != VERSION) {
        return Err(Problem::unsupported_version(SUPPORTED_VERSIONS));
    }
    // Ignoring it would promise what isn't kept.
    if operation.takes_idempotency_key() && request.headers().contains_key("idempotency-key") {
        return Err(Problem::not_supported_yet("the header Idempotency-Key"));
    }
    Ok(())
}
