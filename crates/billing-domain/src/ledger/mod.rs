//! The ledger: assigns usage, items and charges to documents and computes differences (billing rules 2–8).
//!
//! Every decision is a function of a [`ContractBook`] and its input. The function reads the book, then returns a refusal or
//! adds [`Entry`] values, which the book applies at once. The ledger uses no I/O, clock or randomness; [`IdGenerator`] supplies
//! identifiers.

pub mod amend;
mod book;
pub mod charge;
pub mod check;
pub mod credit;
mod entry;
pub mod issue;
pub mod limit;
pub mod live_labels;
mod open;
pub mod overdue;
pub mod post;
pub mod preview;
mod price_limit;
pub mod receivables;
mod reconcile;
pub mod recount;

pub use book::{
    BillingFailure, BookRows, ContractBook, ContractHeader, ContractNotifications, CurrencyPair, Extent, UnnumberedMention,
};
pub use entry::Entry;

use uuid::Uuid;

/// A source of new identifiers.
pub trait IdGenerator {
    /// Returns a new identifier that is greater than every earlier one.
    fn next_id(&mut self) -> Uuid;
}

impl<F: FnMut() -> Uuid> IdGenerator for F {
    fn next_id(&mut self) -> Uuid {
        self()
    }
}
