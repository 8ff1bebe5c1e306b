//! Request bodies, read from JSON into use case requests, and response bodies built from views. This module knows no
//! routes, statuses or actix.
//!
//! Requests are declared once (`declare`). The declaration yields the reader, which reports all violations together, and
//! the OpenAPI schema. The `…Json` structs are responses.

pub(crate) mod administrators;
pub(crate) mod audit;
pub(crate) mod bank_accounts;
pub(crate) mod batch;
pub(crate) mod billing;
pub(crate) mod charges;
pub(crate) mod contract_changes;
pub(crate) mod contract_view;
pub(crate) mod contracts;
pub(crate) mod customers;
pub(crate) mod document_summary;
pub(crate) mod document_table;
pub(crate) mod documents;
pub(crate) mod e_invoices;
pub(crate) mod effects;
pub(crate) mod entities;
pub(crate) mod event_reader;
pub(crate) mod events;
pub(crate) mod exchange_rates;
pub(crate) mod formats;
pub(crate) mod formatted;
pub(crate) mod imports;
pub(crate) mod keys;
pub(crate) mod log_in;
pub(crate) mod money;
pub(crate) mod notifications;
pub(crate) mod own_account;
pub(crate) mod pricings;
pub(crate) mod refused;
pub(crate) mod summary;
pub(crate) mod usage_products;
pub(crate) mod verification;
pub(crate) mod webhooks;

mod calculations;
mod contract_lines;
pub(crate) mod declare;
pub(crate) mod enums;
pub(crate) mod input;
mod legal;
pub(crate) mod metadata;
mod nearest;
mod party;
mod prices;
mod reasons;
pub(crate) mod schemas;
pub(crate) mod search;
pub(crate) mod values;
pub(crate) mod warnings;
pub(crate) mod wire;

#[cfg(test)]
mod tests;
