//! Tests the HTTP API in the same process, on SQLite in memory.

mod auth;
mod common;
mod contracts;
mod documented_formats;
mod idempotency;
mod imports;
mod journey;
mod metrics;
mod paths;
mod printing;
mod protocol;
mod reports;
mod turns;
mod webhooks;
