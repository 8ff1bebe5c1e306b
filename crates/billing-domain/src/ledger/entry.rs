//! Changes that a decision writes, as values. The book applies each entry at once, so that the next decision sees it.

use chrono::NaiveDate;

use super::UnnumberedMention;
use crate::calendar::Timestamp;
use crate::charge::Charge;
use crate::contract::Contract;
use crate::document::lines::LedgerLine;
use crate::document::totals::DocumentContent;
use crate::document::{DocumentHead, DraftContent, IssuedDocument};
use crate::refs::{DocumentRef, ProductNo};
use crate::usage::{UsageKey, UsageTotal};

/// A change of a contract book to be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The contract has a new version.
    Amended(Box<Contract>),
    /// A draft was opened. Its numbers are assigned when the entry is written, in the order of opening.
    Opened {
        /// The document's head.
        head: Box<DocumentHead>,
        /// The document's family.
        family: DocumentRef,
    },
    /// A draft has a different slot, period or set of products.
    Redrawn(Box<DocumentHead>),
    /// The lines of an open adjustment changed.
    Lines {
        /// The adjustment.
        document_ref: DocumentRef,
        /// All lines of the adjustment.
        lines: Vec<LedgerLine>,
    },
    /// A draft was issued.
    Issued {
        /// The draft.
        document_ref: DocumentRef,
        /// The issued content.
        issued: Box<IssuedDocument>,
        /// The documents that calculations name and that get their number when the entry is written.
        mentions: Vec<UnnumberedMention>,
    },
    /// A draft was discarded with its current content.
    Discarded {
        /// The draft.
        document_ref: DocumentRef,
        /// The content at the time of discarding.
        content: Box<DraftContent>,
        /// The time of discarding.
        at: Timestamp,
    },
    /// An issued document was voided.
    Voided {
        /// The document.
        document_ref: DocumentRef,
        /// The document's content.
        content: Box<DocumentContent>,
        /// The time of voiding.
        at: Timestamp,
        /// The entity's service date at that time.
        on: NaiveDate,
    },
    /// Events moved from one document to another: all events, or those of one service period.
    EventsMoved {
        /// The document that carried the events before.
        from: DocumentRef,
        /// The document that carries the events now.
        to: DocumentRef,
        /// The product and the first day of the service period; `None` for all events.
        of: Option<(ProductNo, NaiveDate)>,
    },
    /// A running total changed.
    UsageMoved {
        /// The key of the running total.
        key: UsageKey,
        /// The new total.
        total: UsageTotal,
        /// The document that now carries the changed event; `None` if the event stays on its document.
        onto: Option<DocumentRef>,
    },
    /// A charge was recorded or changed.
    Charged {
        /// The previous revision; `None` for a new charge.
        superseded: Option<Box<Charge>>,
        /// The current revision.
        charge: Box<Charge>,
    },
    /// The time at which the billing run processes the contract next; `None` if never.
    Due(Option<Timestamp>),
}
