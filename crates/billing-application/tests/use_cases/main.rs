//! Tests the use cases on SQLite in memory.

mod books;
mod documented_examples;
mod histories;
mod order;
mod rules;
mod support;
