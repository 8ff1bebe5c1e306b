//! Request handlers. Each handler reads the input of a call, runs one use case and renders the result. The operation table
//! describes inputs and responses.

pub(crate) mod administrators;
pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod batch_records;
pub(crate) mod batches;
pub(crate) mod billing;
pub(crate) mod catalog;
pub(crate) mod documents;
pub(crate) mod dry_run;
pub(crate) mod imports;
pub(crate) mod money;
pub(crate) mod reports;
pub(crate) mod service;
pub(crate) mod usage;
pub(crate) mod webhooks;

use crate::respond::HttpReply;
use billing_api::problem::Problem;

/// Handles all unknown paths.
pub(crate) async fn unknown_route() -> HttpReply {
    Err(Problem::unknown_route().into())
}
