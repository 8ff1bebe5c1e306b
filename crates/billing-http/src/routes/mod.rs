//! Handlers: each extracts, calls one use case on a blocking thread, and presents. What each does, takes and answers stands in the
//! table of operations.

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

/// What most handlers answer.
type Answer<T> = Result<Json<T>, Problem>;

/// What handlers answer that are carried out once.
type OnceAnswer = Result<HttpResponse, Problem>;

/// Everything that no route takes.
pub(crate) async fn unknown_route() -> Result<String, Problem> {
    Err(Problem::unknown_route())
}

/// A reference in a path; one that can't exist is one that doesn't.
fn in_path<R, E>(parse: impl FnOnce(&str) -> Result<R, E>, text: &str, thing: ResourceKind) -> Result<R, Problem> {
    parse(text).map_err(|_| Problem::unknown(thing))
}
