//! What a book is loaded from.

use super::*;

/// The rows of a book.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookRows {
    /// The contract's documents by creation, including void ones. Child documents of events due upon usage are included only
    /// while they are open.
    pub documents: Vec<BookDocument>,
    /// The ledger lines of the contract's documents that aren't void, including those of children.
    pub lines: Vec<DocumentLedgerLine>,
    /// The sums of the documents' families.
    pub sums: BTreeMap<DocumentRef, FamilySums>,
    /// The running totals.
    pub usage: UsageTotals,
    /// The charges, including deleted ones.
    pub charges: Vec<Charge>,
    /// The drafts and void documents that carry an event that isn't deleted.
    pub with_events: BTreeSet<DocumentRef>,
}

/// A stored contract before the rows of its book are loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractHeader {
    /// The contract.
    pub contract: Contract,
    /// The customer who pays.
    pub customer: Customer,
    /// The time at which the billing run processes the contract next; `None` if never.
    pub next_due_at: Option<Timestamp>,
    /// What notifications about the contract need.
    pub notifications: ContractNotifications,
}

/// What notifications about a contract need beside its documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContractNotifications {
    /// The number of notifications about the contract.
    pub count: u64,
    /// The failure of the billing run, if it could not bill the contract.
    pub failure: Option<BillingFailure>,
}

impl ContractNotifications {
    /// Counts a notification that no entry causes, and returns its sequence.
    pub const fn count_next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }
}

/// A failure to bill a contract, as the last billing run found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BillingFailure {
    /// The number of documents that could not be issued.
    pub count: u64,
    /// The first of them, each with its code.
    pub first: Vec<DocumentFailure>,
    /// The time of the last notification.
    pub notified_at: Timestamp,
}
