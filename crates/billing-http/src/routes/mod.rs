//! Request handlers. Each handler extracts the input, runs one use case on a blocking thread and renders the result. The
//! operation table describes inputs and responses.

pub(crate) mod administrators;
pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod batches;
pub(crate) mod billing;
pub(crate) mod catalog;
pub(crate) mod charges;
pub(crate) mod contracts;
pub(crate) mod documents;
pub(crate) mod dry_run;
pub(crate) mod imports;
pub(crate) mod money;
pub(crate) mod own_account;
pub(crate) mod reports;
pub(crate) mod search;
pub(crate) mod service;
pub(crate) mod usage;

use actix_web::HttpResponse;
use actix_web::web::Json;
use billing_application::error::ResourceKind;

use crate::problem::Problem;

/// The result of most handlers.
type Answer<T> = Result<Json<T>, Problem>;

/// The result of handlers that run once per idempotency key.
type OnceAnswer = Result<HttpResponse, Problem>;

/// Handles all unknown paths.
pub(crate) async fn unknown_route() -> Result<String, Problem> {
    Err(Problem::unknown_route())
}

/// Parses a reference in a path. A malformed reference is reported as not found.
fn in_path<R, E>(parse: impl FnOnce(&str) -> Result<R, E>, text: &str, thing: ResourceKind) -> Result<R, Problem> {
    parse(text).map_err(|_| Problem::unknown(thing))
}
