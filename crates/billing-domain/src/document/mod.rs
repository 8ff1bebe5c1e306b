//! Documents: invoices, credits and debits, from draft to frozen (billing rules 2 and 8).

pub mod calculation;
pub mod files;
mod headings;
pub mod legal_particulars;
pub mod lines;
pub mod linking;
mod net_price;
pub mod numbering;
pub mod prepaid;
pub mod printout;
pub mod totals;
pub mod usage_totals;

use chrono::NaiveDate;

use crate::calendar::{Period, Timestamp, plus_days};
use crate::money::{Currency, Money, MoneyError};
use crate::party::{Customer, Entity, NetTerms, PaymentDetails};
use crate::refs::{
    ContractKey, ContractRef, CustomerId, CustomerRef, DocumentKey, DocumentRef, EntityRef, OrganizationId, ProductNo,
};
use crate::tax::ConvertedTax;
use crate::text::{OneLine, Prose};
use legal_particulars::LegalParticulars;
use linking::SlotKind;
use numbering::DocumentNumber;
use totals::DocumentContent;

/// The effect of a document on the amount that the customer owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentKind {
    /// Bills amounts.
    Invoice,
    /// Reduces billed amounts.
    Credit,
    /// Adds to the amounts that an invoice billed.
    Debit,
}

/// The reason why a document exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// A regular document of a period.
    Regular(SlotKind),
    /// The document of a single event, for net terms due upon usage.
    Usage,
    /// A correction of an issued document.
    Adjustment,
}

/// The data of a document from its opening on. Only a draft's data can change: when products or corrections are added, or by an
/// amendment of its contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentHead {
    /// The identifier that the service assigned.
    pub document_ref: DocumentRef,
    /// The number in the series of the entity and kind.
    pub number: DocumentNumber,
    /// The document's kind.
    pub kind: DocumentKind,
    /// The reason why it exists.
    pub purpose: Purpose,
    /// The contract it bills.
    pub contract_ref: ContractRef,
    /// The number among the contract's documents, from 1, in the order of opening.
    pub number_in_contract: u32,
    /// The customer's internal identifier.
    pub customer_id: CustomerId,
    /// The entity that bills.
    pub entity_ref: EntityRef,
    /// The currency of all amounts.
    pub currency: Currency,
    /// The document's own period.
    pub period: Period,
    /// Whether the period is shorter than a full one.
    pub is_partial_period: bool,
    /// The products it bills, in contract order.
    pub parts: Vec<ProductNo>,
    /// The net terms, copied at opening.
    pub net_terms: NetTerms,
    /// The payment details, copied at opening.
    pub payment: PaymentDetails,
    /// The invoice that a credit, debit or child belongs to.
    pub parent: Option<DocumentRef>,
    /// The void document that this one replaces.
    pub replaces: Option<DocumentRef>,
    /// The time of opening.
    pub created_at: Timestamp,
}

impl DocumentHead {
    /// Returns the document's storage key within an organization.
    pub const fn key(&self, organization: OrganizationId) -> DocumentKey {
        DocumentKey { organization, customer: self.customer_id, document: self.document_ref }
    }

    /// Returns the storage key of the document's contract within an organization.
    pub const fn contract_key(&self, organization: OrganizationId) -> ContractKey {
        ContractKey { organization, customer: self.customer_id, contract: self.contract_ref }
    }
}

/// A stored document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The data known since opening.
    pub head: DocumentHead,
    /// The family: the root invoice reached through the parents, or the document itself if it has no parent.
    pub family: DocumentRef,
    /// The lifecycle state with its data.
    pub lifecycle: Lifecycle,
    /// The amounts paid, credited and used.
    pub settlement: Settlement,
    /// When the document was last opened, issued, voided, paid, credited, applied or written off. For a draft, also when
    /// its period or products, or its contract's version, last changed.
    pub updated_at: Timestamp,
}

/// A document as a book holds it, without its content. The content of a draft follows from the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookDocument {
    /// The data known since opening.
    pub head: DocumentHead,
    /// The document's family.
    pub family: DocumentRef,
    /// The lifecycle status.
    pub status: LifecycleStatus,
    /// The total; `None` if the document was never issued.
    pub total: Option<Money>,
    /// The issue date in the entity's time zone; `None` if the document was never issued.
    pub issue_date: Option<NaiveDate>,
    /// The due date; `None` if the document was never issued.
    pub due_date: Option<NaiveDate>,
    /// The amounts paid, credited and used.
    pub settlement: Settlement,
    /// The time of the last change, as it was read or when the document was opened.
    pub updated_at: Timestamp,
    /// The number of notifications about the document.
    pub notifications: u64,
}

impl BookDocument {
    /// Returns the state as the API shows it.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when an amount is out of range.
    pub fn state(&self) -> Result<DocumentState, MoneyError> {
        self.status.state(self.head.kind, self.total, &self.settlement)
    }

    /// Returns the outstanding amounts. A document without a total counts as zero.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when an amount is out of range.
    pub fn owed(&self) -> Result<OutstandingAmounts, MoneyError> {
        let total = self.total.unwrap_or(Money::zero(self.head.currency));
        self.settlement.owed(self.head.kind, self.status, total)
    }
}

/// The lifecycle status of a document, without the data of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LifecycleStatus {
    /// Open.
    Draft,
    /// Frozen.
    Issued,
    /// Frozen and written off.
    Uncollectible,
    /// Issued and then voided.
    Void,
    /// A discarded draft.
    Discarded,
}

impl LifecycleStatus {
    /// Returns whether the document was issued and is in force.
    pub const fn is_issued(self) -> bool {
        matches!(self, Self::Issued | Self::Uncollectible)
    }

    /// Returns whether the document is void or discarded.
    pub const fn is_void(self) -> bool {
        matches!(self, Self::Void | Self::Discarded)
    }

    /// Returns the state of a document of a kind, derived from its total and settlement (billing rules 8, 9). `total` is `None`
    /// if the document isn't issued.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when an amount is out of range.
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

/// The lifecycle of a document. Each state owns its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// Open. The content follows the usage.
    Draft,
    /// Frozen.
    Issued(Box<IssuedDocument>),
    /// Issued and then voided. The issued content is preserved.
    Void(Box<IssuedDocument>),
    /// A discarded draft with its last content; `None` for old drafts whose content wasn't stored.
    Discarded(Option<Box<DraftContent>>),
    /// Frozen and written off.
    Uncollectible(Box<IssuedDocument>),
}

/// The format of the content that documents are frozen with now (billing rules 10). Content of older formats stays as it was
/// frozen:
/// - Format 1 has no legal particulars.
/// - Format 2 has no calculations, and no amounts applied at the issue.
/// - Format 3 has calculations that name documents that may not be issued.
pub const CONTENT_FORMAT: u8 = 4;

/// The permanent content of an issued document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedDocument {
    /// The format of the content, [`CONTENT_FORMAT`] at the time of issue.
    pub format: u8,
    /// The time of issue.
    pub issued_at: Timestamp,
    /// The entity's service date at the time of issue.
    pub issue_date: NaiveDate,
    /// The issue date plus the net terms.
    pub due_date: NaiveDate,
    /// The customer and entity.
    pub parties: Parties,
    /// The contract's purchase order number at the time of issue.
    pub po_number: Option<OneLine>,
    /// The products' notes, joined by line breaks.
    pub note: Option<Prose>,
    /// Lines and totals.
    pub content: DocumentContent,
    /// The legal particulars; `None` for documents of format 1, which were issued before legal particulars existed.
    pub paper: Option<Box<LegalParticulars>>,
    /// The amounts applied at the issue; `None` for documents of formats 1 and 2, which were issued before they were frozen.
    pub at_issue: Option<AtIssue>,
}

impl IssuedDocument {
    /// Returns the document's tax in the seller's tax currency, if it was converted.
    pub fn converted_tax(&self) -> Option<ConvertedTax> {
        let converted = self.paper.as_ref()?.tax_in_currency.as_ref()?;
        Some(ConvertedTax { rate: converted.rate, tax: self.content.total_tax, converted: converted.total })
    }
}

/// What was applied to a document in the transaction that issued it, or from it if it is a credit. Later payments and credits
/// don't change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtIssue {
    /// The applied amounts, in the order of application. For an invoice or a debit, each is from a credit, from the surplus of
    /// a payment or from a deposit. For a credit, each is to a document.
    pub applied: Vec<AppliedAtIssue>,
    /// The total less the applied amounts: what is due at the issue, or for a credit what is left of it.
    pub due: Money,
}

/// An amount that was applied when a document was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedAtIssue {
    /// The other document. For an invoice or a debit, the credit, or the document whose payment had a surplus. For a credit, the
    /// document that it settles. `None` for an amount of a deposit.
    pub document_number: Option<DocumentNumber>,
    /// The amount, above zero.
    pub amount: Money,
}

impl AtIssue {
    /// Returns the record of a document's total and the amounts applied at its issue.
    ///
    /// # Errors
    /// Returns [`MoneyError`] on overflow.
    pub fn new(total: Money, applied: Vec<AppliedAtIssue>) -> Result<Self, MoneyError> {
        let sum = Money::sum(total.currency(), applied.iter().map(|applied| applied.amount))?;
        Ok(Self { due: total.checked_sub(sum)?, applied })
    }
}

/// The content of a draft at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftContent {
    /// The customer and entity.
    pub parties: Parties,
    /// The contract's purchase order number.
    pub po_number: Option<OneLine>,
    /// The products' notes, joined by line breaks.
    pub note: Option<Prose>,
    /// Lines and totals.
    pub content: DocumentContent,
    /// The legal particulars; `None` for documents of format 1, which were frozen before legal particulars existed.
    pub paper: Option<Box<LegalParticulars>>,
}

/// The customer and entity as a document shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parties {
    /// The customer.
    pub customer_ref: CustomerRef,
    /// The customer's name.
    pub customer_name: OneLine,
    /// The customer's registered name.
    pub customer_legal_name: Option<OneLine>,
    /// The entity.
    pub entity_ref: EntityRef,
    /// The entity's name.
    pub entity_name: OneLine,
    /// The entity's registered name.
    pub entity_legal_name: Option<OneLine>,
}

impl Parties {
    /// Returns the parties with their current names.
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

/// The state of a document as the API shows it. States after `Issued` are derived (billing rules 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DocumentState {
    /// Open.
    Draft,
    /// Frozen, with nothing paid.
    Issued,
    /// Frozen, and paid or credited in part.
    PartiallyPaid,
    /// Frozen, with nothing due.
    Paid,
    /// Void.
    Void,
    /// Written off, with a remaining amount.
    Uncollectible,
    /// A credit that is applied or refunded in full.
    Settled,
}

/// The amounts of payments and credits that settle a document (billing rules 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The sum of the payments applied to it.
    pub paid: Money,
    /// The sum of the credits applied to it.
    pub credits: Money,
    /// For a credit: the amount applied to documents or refunded.
    pub used: Money,
    /// The day on which it was settled in full.
    pub paid_date: Option<NaiveDate>,
}

/// The outstanding amounts of a document. No amount is negative (billing rules 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutstandingAmounts {
    /// The amount due; `None` for a credit and for a void document.
    pub amount_due: Option<Money>,
    /// The amount written off.
    pub written_off: Money,
    /// The amount of an issued credit that is neither applied nor refunded; `None` for any other document.
    pub unapplied: Option<Money>,
}

impl Settlement {
    /// Returns a settlement without payments or credits.
    pub const fn none(currency: Currency) -> Self {
        let zero = Money::zero(currency);
        Self { paid: zero, credits: zero, used: zero, paid_date: None }
    }

    /// Returns the settlement with `paid_date` set if the total is settled in full, or cleared if it isn't (billing rules 9).
    /// An existing date is preserved.
    ///
    /// # Errors
    /// Returns [`MoneyError`] on overflow.
    pub fn dated(self, total: Money, on: NaiveDate) -> Result<Self, MoneyError> {
        let paid = self.rest(total)?.minor() <= 0;
        Ok(Self { paid_date: if paid { self.paid_date.or(Some(on)) } else { None }, ..self })
    }

    /// Returns the part of a total that neither payments nor credits cover.
    ///
    /// # Errors
    /// Returns [`MoneyError`] on overflow.
    pub fn rest(&self, total: Money) -> Result<Money, MoneyError> {
        total.checked_sub(self.credits)?.checked_sub(self.paid)
    }

    /// Returns the outstanding amounts of a document of a kind and total. For a draft, returns the amounts that it would have
    /// if it was issued now.
    ///
    /// # Errors
    /// Returns [`MoneyError`] on overflow.
    pub fn owed(&self, kind: DocumentKind, status: LifecycleStatus, total: Money) -> Result<OutstandingAmounts, MoneyError> {
        let zero = Money::zero(total.currency());
        let nothing = OutstandingAmounts { amount_due: None, written_off: zero, unapplied: None };
        Ok(match (kind, status) {
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
    /// Returns the state as the API shows it.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when an amount is out of range.
    pub fn state(&self) -> Result<DocumentState, MoneyError> {
        let total = self.lifecycle.issued().map(|issued| issued.content.total);
        self.lifecycle.status().state(self.head.kind, total, &self.settlement)
    }

    /// Returns the due date; `None` for a credit and for a document that isn't issued or is void.
    pub fn due_date(&self) -> Option<NaiveDate> {
        let is_owed = self.head.kind != DocumentKind::Credit && self.lifecycle.status().is_issued();
        self.lifecycle.issued().filter(|_| is_owed).map(|issued| issued.due_date)
    }

    /// Returns whether the document is a draft.
    pub const fn is_draft(&self) -> bool {
        matches!(self.lifecycle, Lifecycle::Draft)
    }
}

impl Lifecycle {
    /// Returns the lifecycle status, without the data of the state.
    pub const fn status(&self) -> LifecycleStatus {
        match self {
            Self::Draft => LifecycleStatus::Draft,
            Self::Issued(_) => LifecycleStatus::Issued,
            Self::Uncollectible(_) => LifecycleStatus::Uncollectible,
            Self::Void(_) => LifecycleStatus::Void,
            Self::Discarded(_) => LifecycleStatus::Discarded,
        }
    }

    /// Returns whether the document is void or discarded.
    pub const fn is_void(&self) -> bool {
        matches!(self, Self::Void(_) | Self::Discarded(_))
    }

    /// Returns the issued content, if the document was issued.
    pub fn issued(&self) -> Option<&IssuedDocument> {
        match self {
            Self::Issued(issued) | Self::Uncollectible(issued) | Self::Void(issued) => Some(issued),
            Self::Draft | Self::Discarded(_) => None,
        }
    }
}

/// Joins the distinct notes of a document's products with line breaks (billing rules 7).
pub fn join_notes<'a>(notes: impl IntoIterator<Item = &'a Prose>) -> Option<Prose> {
    let mut distinct: Vec<&str> = Vec::new();
    for note in notes {
        if !distinct.contains(&note.as_str()) {
            distinct.push(note.as_str());
        }
    }
    Prose::joined(&distinct)
}

/// Returns the due date of a document issued on a date (billing rules 2).
pub fn due_date(issue_date: NaiveDate, net_terms: NetTerms) -> NaiveDate {
    plus_days(issue_date, net_terms.due_after_days())
}
