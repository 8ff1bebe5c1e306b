//! Tests the HTTP API in the same process, on SQLite in memory.

mod auth;
mod common;
mod contracts;
mod documented_formats;
mod idempotency;
mod imports;
mod journey;
mod metrics;
mod printing;
mod protocol;
mod reports;
