//! Bodies: JSON read into the requests of the use cases, and views presented as JSON. No route, no status, no actix.
//!
//! What a request brings is declared once (`declare`): from that follow its reader, which notes everything that is wrong at once, and
//! its schema in the OpenAPI document. The `…Json` structs are answers.

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
pub(crate) mod document_table;
pub(crate) mod documents;
pub(crate) mod effects;
pub(crate) mod entities;
pub(crate) mod events;
pub(crate) mod exchange_rates;
pub(crate) mod formats;
pub(crate) mod formatted;
pub(crate) mod imports;
pub(crate) mod keys;
pub(crate) mod log_in;
pub(crate) mod money;
pub(crate) mod own_account;
pub(crate) mod pricings;
pub(crate) mod refused;
pub(crate) mod summary;
pub(crate) mod usage_products;
pub(crate) mod verification;

mod contract_lines;
pub(crate) mod declare;
pub(crate) mod enums;
pub(crate) mod input;
mod legal;
mod nearest;
mod party;
mod prices;
mod reasons;
pub(crate) mod schemas;
pub(crate) mod search;
mod values;
pub(crate) mod wire;

#[cfg(test)]
mod tests;
