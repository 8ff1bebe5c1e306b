//! The interface as data: its operations with their bodies, queries, responses, problem documents and the OpenAPI document.
//!
//! This crate knows no server and no page. [`operations`] is the table of all operations. [`dto`] and [`query`] read requests and
//! build responses, [`job`] runs their use cases, [`problem`] are the refusals, and [`openapi`] describes them.
//!
//! An operation is a type, so a misspelt one does not compile:
//!
//! ```
//! use billing_api::operations::GetCustomer;
//! assert_eq!(GetCustomer::SPEC.url("acme"), "/api/customers/acme");
//! ```
//! ```compile_fail
//! use billing_api::operations::GetCustomr;
//! ```

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is for readers of the source")]
#![allow(missing_docs, reason = "fields of bodies and queries are described for OpenAPI, and the rest is not published")]

pub mod console;
pub mod decimals;
pub mod dto;
pub mod job;
pub mod json_view;
pub mod logo;
pub mod media_type;
pub mod openapi;
pub mod operation;
pub mod operations;
pub mod problem;
pub mod query;
pub mod stored_response;
pub mod use_cases;
