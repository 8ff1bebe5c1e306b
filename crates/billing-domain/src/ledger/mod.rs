//! The ledger: which document carries what, with what difference, under whose terms (billing rules 2–8).
//!
//! Every decision is a function of a [`ContractBook`] and facts: it reads the book, refuses or puts [`Entry`]s, which the
//! book takes up at once. There is no I/O, no clock and no randomness in it; identifiers come from [`IdGenerator`].

pub mod amend;
mod book;
pub mod charge;
pub mod check;
mod entry;
pub mod issue;
mod open;
pub mod overdue;
pub mod post;
pub mod preview;
pub mod receivables;
mod reconcile;

pub use book::{BookRows, ContractBook, ContractHeader, CurrencyPair, Extent};
pub use entry::Entry;

use uuid::Uuid;

/// What a decision can't make up itself.
pub trait IdGenerator {
    /// A new identifier, greater than every one before.
    fn next_id(&mut self) -> Uuid;
}

impl<F: FnMut() -> Uuid> IdGenerator for F {
    fn next_id(&mut self) -> Uuid {
        self()
    }
}
