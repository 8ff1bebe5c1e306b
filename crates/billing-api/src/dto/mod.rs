//! Request bodies, read from JSON into use case requests, and response bodies built from views. This module knows no
//! routes, statuses or actix.
//!
//! Requests are declared once (`declare`). The declaration yields the reader, which reports all violations together, and
//! the OpenAPI schema. The `…Json` structs are responses.

pub mod administrators;
pub mod audit;
pub mod bank_accounts;
pub mod batch;
pub mod billing;
pub mod charges;
pub mod clock;
pub mod cloud_events;
pub mod contract_changes;
pub mod contract_view;
pub mod contracts;
pub mod credit;
mod credit_unit;
pub mod customers;
pub mod document_summary;
pub mod document_table;
pub mod documents;
pub mod e_invoices;
pub mod effects;
pub mod entities;
pub mod event_reader;
pub mod events;
pub mod exchange_rates;
pub mod formats;
pub mod formatted;
pub mod health;
pub mod holds;
pub mod imports;
pub mod keys;
pub mod labels;
pub mod limits;
pub mod log_in;
pub mod money;
pub mod notifications;
pub mod own_account;
pub mod payment_outcome;
pub mod pricings;
pub mod refused;
pub mod summary;
pub mod usage_products;
pub mod verification;
pub mod webhooks;

pub mod calculations;
pub mod contract_lines;
pub mod declare;
pub mod enums;
pub mod input;
pub mod legal;
pub mod metadata;
pub mod party;
pub mod prices;
pub mod reasons;
pub mod schemas;
pub mod search;
pub mod values;
pub mod warnings;
pub mod wire;

#[cfg(test)]
mod tests;
