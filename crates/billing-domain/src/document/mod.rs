//! Documents: invoices, credits and debits, from draft to frozen (billing rules 2 and 8).

pub mod files;
pub mod legal_particulars;
pub mod lines;
pub mod linking;
pub mod numbering;
pub mod printout;
pub mod totals;

use chrono::NaiveDate;

use crate::calendar::{Period, Timestamp, plus_days};
use crate::money::{Currency, Money, MoneyError};
use crate::party::{Customer, Entity, NetTerms, PaymentDetails};
use crate::refs::{
    ContractKey, ContractRef, CustomerId, CustomerRef, DocumentKey, DocumentRef, EntityRef, OrganizationId, ProductNo,
};
use crate::text::{OneLine, Prose};
use legal_particulars::LegalParticulars;
use linking::SlotKind;
use numbering::DocumentNumber;
use totals::DocumentContent;

/// What a document does to what the customer owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentKind {
    /// Bills.
    Invoice,
    /// Takes back.
    Credit,
    /// Adds to what an invoice billed.
    Debit,
}

/// Why a document exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// A period's own document.
    Regular(SlotKind),
    /// One event's invoice, where net terms are due upon usage.
    Usage,
    /// Puts an issued document right.
    Adjustment,
}

/// What is known of a document from the moment it is opened. None of it changes while it is a draft,
/// except by an amendment of its contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentHead {
    /// Assigned by the service.
    pub document_ref: DocumentRef,
    /// Its number in the series of its entity and kind.
    pub number: DocumentNumber,
    /// What it does.
    pub kind: DocumentKind,
    /// Why it exists.
    pub purpose: Purpose,
    /// The contract it bills.
    pub contract_ref: ContractRef,
    /// Counts the contract's documents from 1, in the order they were opened.
    pub number_in_contract: u32,
    /// The customer, for the store.
    pub customer_id: CustomerId,
    /// The entity that bills.
    pub entity_ref: EntityRef,
    /// The one currency of all its amounts.
    pub currency: Currency,
    /// Its own period.
    pub period: Period,
    /// Whether its period is shorter than a whole one.
    pub is_partial_period: bool,
    /// The products it bills, in contract order.
    pub parts: Vec<ProductNo>,
    /// Copied when it was opened.
    pub net_terms: NetTerms,
    /// Copied when it was opened.
    pub payment: PaymentDetails,
    /// The invoice a credit, debit or child belongs to.
    pub parent: Option<DocumentRef>,
    /// The void document it bills again.
    pub replaces: Option<DocumentRef>,
    /// When it was opened.
    pub created_at: Timestamp,
}

impl DocumentHead {
    /// What names it in a store, as an organization's.
    pub const fn key(&self, organization: OrganizationId) -> DocumentKey {
        DocumentKey { organization, customer: self.customer_id, document: self.document_ref }
    }

    /// What names the contract it bills in a store, as an organization's.
    pub const fn contract_key(&self, organization: OrganizationId) -> ContractKey {
        ContractKey { organization, customer: self.customer_id, contract: self.contract_ref }
    }
}

/// A stored document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Known since it was opened.
    pub head: DocumentHead,
    /// Its family: the invoice without a parent that its parents lead to; itself of such an invoice.
    pub family: DocumentRef,
    /// How far it has come.
    pub lifecycle: Lifecycle,
    /// What payments and credits say about it.
    pub settlement: Settlement,
}

/// What a book knows of a document: not what it says, which follows from the book or was frozen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookDocument {
    /// Known since it was opened.
    pub head: DocumentHead,
    /// Its family.
    pub family: DocumentRef,
    /// How far it has come.
    pub status: LifecycleStatus,
    /// The total, of one that was issued.
    pub total: Option<Money>,
    /// When it was issued, in the entity's zone, of one that was.
    pub issue_date: Option<NaiveDate>,
    /// When it has to be paid, of one that was issued.
    pub due_date: Option<NaiveDate>,
    /// What payments and credits say about it.
    pub settlement: Settlement,
}

impl BookDocument {
    /// Its state as the interface shows it.
    ///
    /// # Errors
    /// [`MoneyError`] when the amounts can't be held.
    pub fn state(&self) -> Result<DocumentState, MoneyError> {
        self.status.state(self.head.kind, self.total, &self.settlement)
    }

    /// What is owed by it, or left of it; nothing of one that isn't issued.
    ///
    /// # Errors
    /// [`MoneyError`] when the amounts can't be held.
    pub fn owed(&self) -> Result<OutstandingAmounts, MoneyError> {
        let total = self.total.unwrap_or(Money::zero(self.head.currency));
        self.settlement.owed(self.head.kind, self.status, total)
    }
}

/// How far a document has come, without what that brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LifecycleStatus {
    /// Open.
    Draft,
    /// Frozen.
    Issued,
    /// Frozen, and given up on.
    Uncollectible,
    /// Issued, and then put out of force.
    Void,
    /// A draft put out of force.
    Discarded,
}

impl LifecycleStatus {
    /// Whether it was issued and is in force.
    pub const fn is_issued(self) -> bool {
        matches!(self, Self::Issued | Self::Uncollectible)
    }

    /// Whether it is out of force.
    pub const fn is_void(self) -> bool {
        matches!(self, Self::Void | Self::Discarded)
    }

    /// The state of a document of a kind, with the total of one that was issued and what payments and credits say (billing
    /// rules 8, 9).
    ///
    /// # Errors
    /// [`MoneyError`] when the amounts can't be held.
    pub fn state(self, kind: DocumentKind, total: Option<Money>, settlement: &Settlement) -> Result<DocumentState, MoneyError> {
        let total = match (self, total) {
            (Self::Draft, _) => return Ok(DocumentState::Draft),
            (Self::Void | Self::Discarded, _) => return Ok(DocumentState::Void),
            (Self::Issued | Self::Uncollectible, None) => return Ok(DocumentState::Issued),
            (Self::Issued | Self::Uncollectible, Some(total)) => total,
        };
        if kind == DocumentKind::Credit {
            let left = total.checked_sub(settlement.used)?;
            return Ok(if left.minor() == 0 { DocumentState::Settled } else { DocumentState::Issued });
        }
        let rest = settlement.rest(total)?;
        Ok(if rest.minor() <= 0 {
            DocumentState::Paid
        } else if self == Self::Uncollectible {
            DocumentState::Uncollectible
        } else if rest == total {
            DocumentState::Issued
        } else {
            DocumentState::PartiallyPaid
        })
    }
}

/// How far a document has come; each state owns what it brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// Open: its content follows the usage.
    Draft,
    /// Frozen.
    Issued(Box<IssuedDocument>),
    /// Issued, and then put out of force; it keeps what it said.
    Void(Box<IssuedDocument>),
    /// A draft that nothing stood on, out of force as it was; what it said isn't known of old ones.
    Discarded(Option<Box<DraftContent>>),
    /// Frozen, and given up on.
    Uncollectible(Box<IssuedDocument>),
}

/// What an issued document says, for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedDocument {
    /// When it was issued.
    pub issued_at: Timestamp,
    /// The entity's service date of that instant.
    pub issue_date: NaiveDate,
    /// The issue date and the net terms.
    pub due_date: NaiveDate,
    /// Who bills whom.
    pub parties: Parties,
    /// The contract's purchase order number at that instant.
    pub po_number: Option<OneLine>,
    /// The products' notes, joined by line breaks.
    pub note: Option<Prose>,
    /// Lines and totals.
    pub content: DocumentContent,
    /// What it says as a legal paper; `None` of one frozen before that was: format 1.
    pub paper: Option<Box<LegalParticulars>>,
}

/// What a draft says at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftContent {
    /// Who bills whom.
    pub parties: Parties,
    /// The contract's purchase order number.
    pub po_number: Option<OneLine>,
    /// The products' notes, joined by line breaks.
    pub note: Option<Prose>,
    /// Lines and totals.
    pub content: DocumentContent,
    /// What it says as a legal paper; `None` of one frozen before that was: format 1.
    pub paper: Option<Box<LegalParticulars>>,
}

/// Who bills whom, as a document shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parties {
    /// The customer.
    pub customer_ref: CustomerRef,
    /// Its name.
    pub customer_name: OneLine,
    /// Its registered name.
    pub customer_legal_name: Option<OneLine>,
    /// The entity.
    pub entity_ref: EntityRef,
    /// Its name.
    pub entity_name: OneLine,
    /// Its registered name.
    pub entity_legal_name: Option<OneLine>,
}

impl Parties {
    /// As the catalog has them now.
    pub fn of(customer: &Customer, entity: &Entity) -> Self {
        Self {
            customer_ref: customer.customer_ref.clone(),
            customer_name: customer.profile.name.clone(),
            customer_legal_name: customer.profile.legal_name.clone(),
            entity_ref: entity.entity_ref.clone(),
            entity_name: entity.profile.name.clone(),
            entity_legal_name: entity.profile.legal_name.clone(),
        }
    }
}

/// A document's state as the interface shows it; everything after `Issued` is derived (billing rules 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DocumentState {
    /// Open.
    Draft,
    /// Frozen, nothing paid.
    Issued,
    /// Frozen, part of it paid or credited.
    PartiallyPaid,
    /// Frozen, nothing left to pay.
    Paid,
    /// Out of force.
    Void,
    /// Given up on, with something left to pay.
    Uncollectible,
    /// A credit that is applied or refunded as a whole.
    Settled,
}

/// What payments and credits say about a document (billing rules 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// Payments applied to it.
    pub paid: Money,
    /// Credits applied to it.
    pub credits: Money,
    /// Of a credit: what of it is applied to documents or refunded.
    pub used: Money,
    /// The day on which nothing was left to pay.
    pub paid_date: Option<NaiveDate>,
}

/// What is owed by a document, or left of it. No amount is below zero (billing rules 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutstandingAmounts {
    /// What is left to pay; `None` of a credit and of what is out of force.
    pub amount_due: Option<Money>,
    /// What was given up on.
    pub written_off: Money,
    /// What of an issued credit is neither applied nor refunded; `None` of any other document.
    pub unapplied: Option<Money>,
}

impl Settlement {
    /// Neither payment nor credit.
    pub const fn none(currency: Currency) -> Self {
        let zero = Money::zero(currency);
        Self { paid: zero, credits: zero, used: zero, paid_date: None }
    }

    /// With the day noted on which nothing was left of a total, where that is so (billing rules 9).
    ///
    /// # Errors
    /// [`MoneyError`] on overflow.
    pub fn dated(self, total: Money, on: NaiveDate) -> Result<Self, MoneyError> {
        let paid = self.rest(total)?.minor() <= 0;
        Ok(Self { paid_date: if paid { self.paid_date.or(Some(on)) } else { None }, ..self })
    }

    /// What neither payments nor credits cover of a total.
    ///
    /// # Errors
    /// [`MoneyError`] on overflow.
    pub fn rest(&self, total: Money) -> Result<Money, MoneyError> {
        total.checked_sub(self.credits)?.checked_sub(self.paid)
    }

    /// What is owed by a document of a kind and total, or left of it. A draft's is what it would owe now.
    ///
    /// # Errors
    /// [`MoneyError`] on overflow.
    pub fn owed(&self, kind: DocumentKind, standing: LifecycleStatus, total: Money) -> Result<OutstandingAmounts, MoneyError> {
        let zero = Money::zero(total.currency());
        let nothing = OutstandingAmounts { amount_due: None, written_off: zero, unapplied: None };
        Ok(match (kind, standing) {
            (_, LifecycleStatus::Void | LifecycleStatus::Discarded) | (DocumentKind::Credit, LifecycleStatus::Draft) => nothing,
            (DocumentKind::Credit, LifecycleStatus::Issued | LifecycleStatus::Uncollectible) => {
                OutstandingAmounts { unapplied: Some(total.checked_sub(self.used)?), ..nothing }
            }
            (_, LifecycleStatus::Draft | LifecycleStatus::Issued) => {
                OutstandingAmounts { amount_due: Some(self.rest(total)?), ..nothing }
            }
            (_, LifecycleStatus::Uncollectible) => {
                OutstandingAmounts { amount_due: Some(zero), written_off: self.rest(total)?, ..nothing }
            }
        })
    }
}

impl Document {
    /// Its state as the interface shows it.
    ///
    /// # Errors
    /// [`MoneyError`] when the amounts can't be held.
    pub fn state(&self) -> Result<DocumentState, MoneyError> {
        let total = self.lifecycle.issued().map(|issued| issued.content.total);
        self.lifecycle.status().state(self.head.kind, total, &self.settlement)
    }

    /// When it has to be paid; `None` of a credit and of what isn't issued or is out of force.
    pub fn due_date(&self) -> Option<NaiveDate> {
        let is_owed = self.head.kind != DocumentKind::Credit && self.lifecycle.status().is_issued();
        self.lifecycle.issued().filter(|_| is_owed).map(|issued| issued.due_date)
    }

    /// Whether it is open.
    pub const fn is_draft(&self) -> bool {
        matches!(self.lifecycle, Lifecycle::Draft)
    }
}

impl Lifecycle {
    /// How far it has come, without what that brought.
    pub const fn status(&self) -> LifecycleStatus {
        match self {
            Self::Draft => LifecycleStatus::Draft,
            Self::Issued(_) => LifecycleStatus::Issued,
            Self::Uncollectible(_) => LifecycleStatus::Uncollectible,
            Self::Void(_) => LifecycleStatus::Void,
            Self::Discarded(_) => LifecycleStatus::Discarded,
        }
    }

    /// Whether it is out of force.
    pub const fn is_void(&self) -> bool {
        matches!(self, Self::Void(_) | Self::Discarded(_))
    }

    /// What it says since it was issued, where it was.
    pub fn issued(&self) -> Option<&IssuedDocument> {
        match self {
            Self::Issued(issued) | Self::Uncollectible(issued) | Self::Void(issued) => Some(issued),
            Self::Draft | Self::Discarded(_) => None,
        }
    }
}

/// Joins the notes of a document's products by line breaks, each once (billing rules 7).
pub fn join_notes<'a>(notes: impl IntoIterator<Item = &'a Prose>) -> Option<Prose> {
    let mut distinct: Vec<&str> = Vec::new();
    for note in notes {
        if !distinct.contains(&note.as_str()) {
            distinct.push(note.as_str());
        }
    }
    Prose::joined(&distinct)
}

/// When a document issued on a date has to be paid (billing rules 2).
pub fn due_date(issue_date: NaiveDate, net_terms: NetTerms) -> NaiveDate {
    plus_days(issue_date, net_terms.due_after_days())
}
