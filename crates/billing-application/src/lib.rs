//! The use cases of usage billing, by what they are about. Each says itself where its transactions begin.
//!
//! A use case orders domain functions and ports; it holds no rule that would hold on paper (that is the
//! domain's), no SQL and no HTTP. Every function here blocks: callers on an async runtime run it on a
//! blocking thread.

pub mod access;
pub mod administrators;
pub mod audit;
pub mod balances;
pub mod billing_run;
pub mod catalog;
pub mod charges;
pub mod contracts;
pub mod documents;
pub mod dry_run;
pub mod error;
pub mod formats;
pub mod idempotency;
pub mod keys;
pub mod organizations;
pub mod own_account;
pub mod run_history;
pub mod search;
pub mod secrets;
pub mod usage;
pub mod verify;

mod accounts;
mod basics;
mod book_repository;
mod permissions;
mod second_factor;
mod transaction_scope;

use std::sync::Arc;

use billing_domain::calendar::Timestamp;
use billing_domain::ports::{
    Clock, CodeChecker, DocumentPrinter, EventMapper, IdSource, KeyMaker, PasswordHasher, Sealer, TokenSigner,
};

pub use permissions::{UseCase, allow};
pub use transaction_scope::StoreHandle;

/// Everything the use cases need from the outside.
#[derive(Clone)]
pub struct Services<'s> {
    /// Transactions.
    pub store: StoreHandle<'s>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Identifiers.
    pub ids: Arc<dyn IdSource>,
    /// People's passwords.
    pub passwords: Arc<dyn PasswordHasher>,
    /// Random keys.
    pub keys: Arc<dyn KeyMaker>,
    /// People's second factors.
    pub codes: Arc<dyn CodeChecker>,
    /// Bearer tokens.
    pub tokens: Arc<dyn TokenSigner>,
    /// Usage formats' expressions.
    pub mapper: Arc<dyn EventMapper>,
    /// What is kept though it is secret.
    pub sealer: Arc<dyn Sealer>,
    /// What the audit log tells of changes.
    pub teller: Arc<dyn audit::AuditRenderer>,
    /// Documents on paper.
    pub printer: Arc<dyn DocumentPrinter>,
    /// How long a bearer token works, in seconds.
    pub token_lifetime_seconds: i64,
}

impl Services<'_> {
    /// The current instant.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
