//! Support code of the acceptance tests: databases, the real binary, a client and a small catalog.
//!
//! This crate knows the public interface and no implementation details. The tests contain the expected values.
//! [`naive`] contains those that several tests share.

pub mod binary;
pub mod books;
pub mod catalog;
mod citus;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod codes;
pub mod console;
pub mod database;
mod described;
pub mod documentation;
pub mod hooks;
pub mod load;
pub mod logos;
pub mod naive;
pub mod problem;
pub mod processes;
pub mod random;
pub mod scene;
pub mod server;
pub mod tools;
pub mod tour;
pub mod when;

pub use client::{Answer, Client, Key, Request};
pub use clock::Clock;
pub use database::Database;
pub use processes::Process;
pub use scene::Scene;
pub use server::Server;

/// Creates a test from a function that takes a [`Database`], on each of the two databases: `sqlite::name` and
/// `postgres::name`.
#[macro_export]
macro_rules! on_both_databases {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test] fn $name() { super::$name(&$crate::Database::sqlite()); })+
        }
        mod postgres {
            $(#[test] fn $name() { super::$name(&$crate::Database::postgres()); })+
        }
    };
}

/// Creates a test from a function that takes a [`Database`], on SQLite only. Use it for behavior that does not depend
/// on the database.
#[macro_export]
macro_rules! on_sqlite {
    ($($name:ident),+ $(,)?) => {
        mod sqlite_only {
            $(#[test] fn $name() { super::$name(&$crate::Database::sqlite()); })+
        }
    };
}
