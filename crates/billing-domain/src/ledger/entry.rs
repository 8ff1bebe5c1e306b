//! What a decision writes, as values. A book takes each up at once, so that the next decision sees it.

use chrono::NaiveDate;

use crate::calendar::Timestamp;
use crate::charge::Charge;
use crate::contract::Contract;
use crate::document::lines::LedgerLine;
use crate::document::totals::DocumentContent;
use crate::document::{DocumentHead, DraftContent, IssuedDocument};
use crate::refs::{DocumentRef, ProductNo};
use crate::usage::{UsageKey, UsageTotal};

/// One thing to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The contract has a new version.
    Amended(Box<Contract>),
    /// A draft is opened. Its numbers are given when it is written, in the order of opening.
    Opened {
        /// What is known of it.
        head: Box<DocumentHead>,
        /// Its family.
        family: DocumentRef,
    },
    /// A draft has another place, period or other products.
    Redrawn(Box<DocumentHead>),
    /// An open adjustment has these lines.
    Lines {
        /// The adjustment.
        document_ref: DocumentRef,
        /// All its lines.
        lines: Vec<LedgerLine>,
    },
    /// A draft is frozen.
    Issued {
        /// The draft.
        document_ref: DocumentRef,
        /// What it says.
        issued: Box<IssuedDocument>,
    },
    /// A draft is put out of force, as it is.
    Discarded {
        /// The draft.
        document_ref: DocumentRef,
        /// What it said.
        content: Box<DraftContent>,
        /// When.
        at: Timestamp,
    },
    /// An issued document is put out of force.
    Voided {
        /// The document.
        document_ref: DocumentRef,
        /// What it says.
        content: Box<DocumentContent>,
        /// When.
        at: Timestamp,
        /// The entity's service date of that instant.
        on: NaiveDate,
    },
    /// Events that stood on a document stand on another: all, or those of one service period.
    EventsMoved {
        /// Where they stood.
        from: DocumentRef,
        /// Where they stand.
        to: DocumentRef,
        /// The product and the service period's first day.
        of: Option<(ProductNo, NaiveDate)>,
    },
    /// A running total is this now.
    UsageMoved {
        /// Which.
        key: UsageKey,
        /// What it is.
        total: UsageTotal,
        /// The document that the event stands on which moved it; `None` when the event stays where it was.
        onto: Option<DocumentRef>,
    },
    /// A charge is this now.
    Charged {
        /// Its revision before; `None` of a new one.
        superseded: Option<Box<Charge>>,
        /// What it is.
        charge: Box<Charge>,
    },
    /// When the billing run has to look at the contract again; `None`: never.
    Due(Option<Timestamp>),
}
