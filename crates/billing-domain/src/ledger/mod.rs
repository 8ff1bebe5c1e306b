//! The ledger: which document carries what, with what difference, under whose terms (billing rules 2–8).
//!
//! Every decision is a function of a [`ContractBook`] and facts: it reads the book, refuses or puts [`Entry`]s, which the
//! book takes up at once. There is no I/O, no clock and no randomness in it; identifiers come from [`Supplies`].

mod book;
pub mod charge;
pub mod check;
mod entry;
pub mod issue;
mod open;
pub mod overdue;
pub mod post;
pub mod receive;
mod reconcile;
pub mod terms;
pub mod view;

pub use book::{Agreement, BookRows, ContractBook, CurrencyPair, Extent};
pub use entry::Entry;

use uuid::Uuid;

/// What a decision can't make up itself.
pub trait Supplies {
    /// A new identifier, greater than every one before.
    fn id(&mut self) -> Uuid;
}

impl<F: FnMut() -> Uuid> Supplies for F {
    fn id(&mut self) -> Uuid {
        self()
    }
}
