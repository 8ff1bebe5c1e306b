//! The storage ports on SQLite and PostgreSQL
