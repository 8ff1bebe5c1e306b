//! The use cases of usage billing, grouped by subject. [`carry_out`](mod@carry_out) runs them: it checks the permission and opens
//! the transaction.
//!
//! A use case coordinates domain functions and ports. It contains no business rules, which belong to the domain, no SQL and
//! no HTTP. All functions block, so async callers must run them on a blocking thread.

pub mod access;
pub mod administrators;
pub mod audit;
pub mod balances;
pub mod billing_run;
pub mod carry_out;
pub mod catalog;
pub mod charges;
pub mod contracts;
pub mod credit;
pub mod documents;
pub mod dry_run;
pub mod error;
pub mod formats;
pub mod idempotency;
pub mod keys;
pub mod latest_instant;
pub mod limits;
#[cfg(feature = "mocks")]
pub mod mocks;
pub mod names;
pub mod notifications;
pub mod organizations;
pub mod own_account;
pub mod run_history;
pub mod sandbox;
pub mod search;
pub mod secrets;
pub mod usage;
pub mod verify;
pub mod webhooks;

mod accounts;
mod basics;
mod book_repository;
mod book_rows;
mod credit_books;
mod notices;
mod permissions;
mod second_factor;

use std::sync::Arc;

use billing_domain::calendar::Timestamp;
use billing_domain::ports::{
    Clock, CodeChecker, DocumentPrinter, EInvoiceWriter, EventMapper, IdSource, KeyMaker, PasswordHasher, SandboxClock, Sealer,
    Store, TokenSigner, WebhookUrlPolicy,
};

pub use carry_out::{Cx, Request, Transactions, carry_out, carry_out_in_parts, read, run};
pub use permissions::{UseCase, allow};

/// The external services that use cases need.
#[derive(Clone)]
pub struct Services {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The billing clock, which decides what is due and what a date is. In a sandbox, it is moved by request.
    pub clock: Arc<dyn Clock>,
    /// The machine's clock, for log-ins, tokens, secrets, idempotency records, leases and deliveries. It is the billing clock's
    /// time outside a sandbox.
    pub machine: Arc<dyn Clock>,
    /// The billing clock as requests move it, in a sandbox alone.
    pub sandbox: Option<Arc<dyn SandboxClock>>,
    /// New identifiers.
    pub ids: Arc<dyn IdSource>,
    /// Hashing of administrators' passwords.
    pub passwords: Arc<dyn PasswordHasher>,
    /// API keys and random secrets.
    pub keys: Arc<dyn KeyMaker>,
    /// Codes of second factors.
    pub codes: Arc<dyn CodeChecker>,
    /// Bearer tokens.
    pub tokens: Arc<dyn TokenSigner>,
    /// Evaluation of usage formats.
    pub mapper: Arc<dyn EventMapper>,
    /// Encryption of stored secrets.
    pub sealer: Arc<dyn Sealer>,
    /// Rendering of changes for the audit log.
    pub teller: Arc<dyn audit::AuditRenderer>,
    /// Printing of documents.
    pub printer: Arc<dyn DocumentPrinter>,
    /// Writing of e-invoices.
    pub e_invoices: Arc<dyn EInvoiceWriter>,
    /// The URLs that webhook endpoints may have. Requests to them are sent by [`WebhookSenders`](webhooks::WebhookSenders).
    pub webhook_urls: Arc<dyn WebhookUrlPolicy>,
    /// The lifetime of a bearer token, in seconds.
    pub token_lifetime_seconds: i64,
}

impl Services {
    /// Returns the current instant of the billing clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the current instant of the machine's clock.
    pub fn machine_now(&self) -> Timestamp {
        self.machine.now()
    }
}

/// The examples in `docs/library.md` are tests.
#[cfg(all(doctest, feature = "mocks"))]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryPage;
