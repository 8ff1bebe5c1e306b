//! Bodies: JSON read into the requests of the use cases, and views presented as JSON. No route, no status, no actix.
//!
//! A request body comes in as an already parsed [`serde_json::Value`], and everything that is wrong with it goes out at once
//! ([`input`]). The `…Body` structs are what the OpenAPI document says of a request; `read` makes the request itself, because
//! serde stops at the first mistake and would read numbers as floats. The `…Json` structs are answers.

pub(crate) mod bank_accounts;
pub(crate) mod batch;
pub(crate) mod billing;
pub(crate) mod charges;
pub(crate) mod contract_changes;
pub(crate) mod contract_view;
pub(crate) mod contracts;
pub(crate) mod customers;
pub(crate) mod document_table;
pub(crate) mod documents;
pub(crate) mod entities;
pub(crate) mod events;
pub(crate) mod exchange_rates;
pub(crate) mod formats;
pub(crate) mod formatted;
pub(crate) mod imports;
pub(crate) mod keys;
pub(crate) mod log_in;
pub(crate) mod money;
pub(crate) mod pricings;
pub(crate) mod summary;
pub(crate) mod usage_products;

mod contract_lines;
mod input;
mod legal;
mod nearest;
mod party;
mod prices;
mod reasons;
pub(crate) mod search;
pub(crate) mod wire;
pub(crate) mod words;

#[cfg(test)]
mod tests;
