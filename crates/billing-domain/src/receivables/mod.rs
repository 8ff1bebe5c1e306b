//! What a customer owes an entity in a currency, by which document: payments, applications, write-offs (billing rules 9).
//!
//! These are values; what happens to them is decided by [`ledger::receive`](crate::ledger::receivables).

mod statement;

pub use statement::{AccountStatement, StatementEntry, StatementKind, StatementLine, statement};

use chrono::NaiveDate;

use crate::access::Actor;
use crate::calendar::Timestamp;
use crate::document::BookDocument;
use crate::money::{Currency, Money, MoneyError, MoneySum};
use crate::refs::{ApplicationRef, CustomerId, DocumentRef, EntityRef, PaymentRef, WriteOffRef};
use crate::text::OneLine;

/// Names an account: one customer's with one entity in one currency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountKey {
    /// Who pays.
    pub customer_id: CustomerId,
    /// Who bills.
    pub entity_ref: EntityRef,
    /// The currency of all its amounts.
    pub currency: Currency,
}

impl AccountKey {
    /// The account that a document belongs to.
    pub fn of(document: &BookDocument) -> Self {
        let head = &document.head;
        Self { customer_id: head.customer_id, entity_ref: head.entity_ref.clone(), currency: head.currency }
    }
}

/// Where money comes from that is applied to documents or refunded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApplicationSource {
    /// An issued credit.
    Credit(DocumentRef),
    /// A payment.
    Payment(PaymentRef),
}

/// Which way money went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaymentKind {
    /// From the customer.
    Payment,
    /// To the customer, out of a credit or a payment.
    Refund(ApplicationSource),
}

/// A payment or a refund, as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    /// Its reference.
    pub payment_ref: PaymentRef,
    /// Which way.
    pub kind: PaymentKind,
    /// The document it was recorded on; of a refund the credit, or the document of the payment it is of.
    pub document_ref: DocumentRef,
    /// Above zero.
    pub amount: Money,
    /// When.
    pub paid_date: NaiveDate,
    /// The payer's or the bank's reference.
    pub reference: Option<OneLine>,
    /// How it was paid.
    pub method: Option<OneLine>,
    /// What of a payment is applied to documents or refunded.
    pub used: Money,
    /// When it bounced, and why.
    pub reversal: Option<Reversal>,
    /// When it was recorded.
    pub recorded_at: Timestamp,
    /// Who recorded it.
    pub recorded_by: Actor,
}

impl Payment {
    /// What of it is neither applied nor refunded: nothing of a refund, nor of one that was reversed.
    ///
    /// # Errors
    /// [`MoneyError`] on overflow.
    pub fn unapplied(&self) -> Result<Money, MoneyError> {
        match (self.kind, &self.reversal) {
            (PaymentKind::Payment, None) => self.amount.checked_sub(self.used),
            (PaymentKind::Payment, Some(_)) | (PaymentKind::Refund(_), _) => Ok(Money::zero(self.amount.currency())),
        }
    }
}

/// A payment or a refund that didn't hold: bounced, charged back, recorded by mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reversal {
    /// When.
    pub date: NaiveDate,
    /// Why.
    pub reason: Option<OneLine>,
    /// When that was recorded.
    pub recorded_at: Timestamp,
    /// Who recorded it.
    pub recorded_by: Actor,
}

/// An amount of a credit or a payment that settles a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// Its reference.
    pub application_ref: ApplicationRef,
    /// Where it comes from.
    pub from: ApplicationSource,
    /// What it settles.
    pub to: DocumentRef,
    /// Above zero.
    pub amount: Money,
    /// The day it counts from.
    pub date: NaiveDate,
    /// When it was applied.
    pub recorded_at: Timestamp,
    /// Who applied it.
    pub recorded_by: Actor,
}

/// An amount that was written off a document, or below zero: one by which that was lessened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOff {
    /// Its reference.
    pub write_off_ref: WriteOffRef,
    /// The document.
    pub document_ref: DocumentRef,
    /// The amount; below zero where it lessens what was written off.
    pub amount: Money,
    /// When.
    pub date: NaiveDate,
    /// Why.
    pub reason: Option<OneLine>,
    /// When it was recorded.
    pub recorded_at: Timestamp,
    /// Who recorded it.
    pub recorded_by: Actor,
}

/// What a customer owes an entity in a currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balance {
    /// Who bills.
    pub entity_ref: EntityRef,
    /// What is left to pay of its documents.
    pub due: MoneySum,
    /// What of it should have been paid before today.
    pub overdue: MoneySum,
    /// What of credits and payments is neither applied nor refunded.
    pub unapplied: MoneySum,
    /// What was given up on.
    pub written_off: MoneySum,
}

/// The rows an account is made of. What a decision doesn't ask for need not be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountRows {
    /// Issued documents.
    pub documents: Vec<BookDocument>,
    /// Payments and refunds.
    pub payments: Vec<Payment>,
    /// Applications that weren't taken back.
    pub applications: Vec<Application>,
}
