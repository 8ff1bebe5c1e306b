//! The storage ports, implemented with diesel: one adapter for SQLite and PostgreSQL, and the only crate with SQL.
//!
//! ```no_run
//! use billing_storage::{Database, DatabaseOptions, DatabaseUrl};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let url = DatabaseUrl::parse("sqlite://data/usage-billing.sqlite3")?;
//! let database = Database::open(&url, DatabaseOptions::default())?;
//! database.migrate()?;
//! # Ok(())
//! # }
//! ```
//!
//! Queries are written once (`with_conn!`), and the compiler checks them against both databases. Where the dialects
//! differ, a comment states the reason. Row types are private: reading a row parses it, and an invalid value is
//! [`StoreError::Corrupt`](billing_domain::ports::StoreError::Corrupt), never a default. This crate contains no billing
//! rules.

mod backup;
mod checkpoint;
mod column_values;
mod connect;
mod copy_check;
mod database;
mod database_file;
mod document_periods;
mod events_query;
mod exclusive_use;
mod failure;
mod hand_written;
mod held;
#[cfg(test)]
mod hot_path;
mod in_list;
mod json;
mod lock_gate;
mod log_watch;
mod migrate;
mod more_columns;
mod nested_rows;
mod nodes;
mod ports;
#[cfg(test)]
mod query_plans;
mod restore;
mod row;
mod schema;
mod schema_version;
mod sql_types;
mod stamp_generation;
mod statement;
mod terms_cache;
mod text_value;
mod tx;
mod url;
mod usage_key;
mod written_rows;

pub use database::{Database, DatabaseOptions, OpenError, require_whole};
pub use exclusive_use::SandboxLock;
pub use nodes::distribute::Distribution;
pub use nodes::shards::customer_hash;
pub use restore::{RestoreError, restore_file};
pub use url::{DatabaseUrl, DatabaseUrlError, NodeAddress, NodeAddressError};
