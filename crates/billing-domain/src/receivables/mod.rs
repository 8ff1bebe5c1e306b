//! Receivables: the amounts that a customer owes an entity in a currency, with payments, applications and write-offs (billing
//! rules 9).
//!
//! This module holds the values. [`ledger::receivables`](crate::ledger::receivables) decides their changes.

mod statement;

pub use statement::{
    AccountStatement, MAX_PRINTED_ROWS, StatementEntry, StatementKind, StatementLine, StatementPrintout, statement,
};

use chrono::NaiveDate;

use crate::access::Actor;
use crate::calendar::Timestamp;
use crate::credit::unit::{CreditUnit, UnitAmounts};
use crate::decimal::Digits;
use crate::document::BookDocument;
use crate::metadata::Metadata;
use crate::money::{Currency, Money, MoneyError, MoneySum};
use crate::refs::{ApplicationRef, CustomerId, DocumentRef, EntityRef, PaymentRef, WriteOffRef};
use crate::refusal::Refusal;
use crate::text::OneLine;

/// The maximum number of integer digits of an amount that a request states.
const AMOUNT_DIGITS: u32 = 15;

/// The key of a receivables account: a customer, an entity and a currency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountKey {
    /// The customer who pays.
    pub customer_id: CustomerId,
    /// The entity that bills.
    pub entity_ref: EntityRef,
    /// The currency of all amounts.
    pub currency: Currency,
}

impl AccountKey {
    /// Returns the key of the account that a document belongs to.
    pub fn of(document: &BookDocument) -> Self {
        let head = &document.head;
        Self { customer_id: head.customer_id, entity_ref: head.entity_ref.clone(), currency: head.currency }
    }

    /// Parses an amount of the account's currency, which must be above zero.
    ///
    /// # Errors
    /// Returns [`Refusal::Invalid`] for `amount`.
    pub fn amount_of(&self, text: &str) -> Result<Money, Refusal> {
        let currency = self.currency;
        let digits = Digits { integer: AMOUNT_DIGITS, fraction: currency.exponent() };
        let amount = digits.parse(text).map_err(|reason| {
            let detail = format!("{reason}: it is an amount of {}", currency.code());
            Refusal::field(&["amount"], "invalid_format", detail)
        })?;
        let amount = Money::round(amount, currency)?;
        if amount.minor() <= 0 {
            return Err(Refusal::field(&["amount"], "out_of_range", "must be greater than zero"));
        }
        Ok(amount)
    }
}

/// The source of money that is applied to documents or refunded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApplicationSource {
    /// An issued credit.
    Credit(DocumentRef),
    /// A payment.
    Payment(PaymentRef),
}

/// The direction of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaymentKind {
    /// A payment from the customer.
    Payment,
    /// A refund to the customer, from a credit or a payment.
    Refund(ApplicationSource),
}

/// A recorded payment or refund.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    /// The payment's reference.
    pub payment_ref: PaymentRef,
    /// The direction.
    pub kind: PaymentKind,
    /// The document that the payment was recorded on; `None` for a deposit. For a refund, the credit, or the document of the
    /// refunded payment.
    pub document_ref: Option<DocumentRef>,
    /// The amount, above zero.
    pub amount: Money,
    /// The date of payment.
    pub paid_date: NaiveDate,
    /// The payer's or the bank's reference.
    pub reference: Option<OneLine>,
    /// The payment method.
    pub method: Option<OneLine>,
    /// The metadata.
    pub metadata: Metadata,
    /// The amount of a payment that is applied to documents or refunded.
    pub used: Money,
    /// The reversal, if the payment or refund was reversed.
    pub reversal: Option<Reversal>,
    /// The time of recording.
    pub recorded_at: Timestamp,
    /// The actor who recorded it.
    pub recorded_by: Actor,
    /// The time of the last change: the recording, a reversal, or a change of the used amount.
    pub updated_at: Timestamp,
}

impl Payment {
    /// Returns the amount that is neither applied nor refunded. It is zero for a refund and for a reversed payment.
    ///
    /// # Errors
    /// Returns [`MoneyError`] on overflow.
    pub fn unapplied(&self) -> Result<Money, MoneyError> {
        match (self.kind, &self.reversal) {
            (PaymentKind::Payment, None) => self.amount.checked_sub(self.used),
            (PaymentKind::Payment, Some(_)) | (PaymentKind::Refund(_), _) => Ok(Money::zero(self.amount.currency())),
        }
    }
}

/// The reversal of a payment or refund, for example after a bounce, a chargeback or a recording error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reversal {
    /// The date of the reversal.
    pub date: NaiveDate,
    /// The reason.
    pub reason: Option<OneLine>,
    /// The time of recording.
    pub recorded_at: Timestamp,
    /// The actor who recorded it.
    pub recorded_by: Actor,
}

/// An amount of a credit or payment that settles a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// The application's reference.
    pub application_ref: ApplicationRef,
    /// The source of the amount.
    pub from: ApplicationSource,
    /// The settled document.
    pub to: DocumentRef,
    /// The amount, above zero.
    pub amount: Money,
    /// The effective date.
    pub date: NaiveDate,
    /// The time of recording.
    pub recorded_at: Timestamp,
    /// The actor who recorded it.
    pub recorded_by: Actor,
}

/// An amount written off from a document, or a reduction of a write-off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOff {
    /// The write-off's reference.
    pub write_off_ref: WriteOffRef,
    /// The document.
    pub document_ref: DocumentRef,
    /// The amount; negative for a reduction of a write-off.
    pub amount: Money,
    /// The date of the write-off.
    pub date: NaiveDate,
    /// The reason.
    pub reason: Option<OneLine>,
    /// The time of recording.
    pub recorded_at: Timestamp,
    /// The actor who recorded it.
    pub recorded_by: Actor,
}

/// The balance of a customer with an entity in a currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balance {
    /// The entity that bills.
    pub entity_ref: EntityRef,
    /// The amount due of the documents.
    pub due: MoneySum,
    /// The part of the amount due whose due date is before today.
    pub overdue: MoneySum,
    /// The amount of credits and payments that is neither applied nor refunded.
    pub unapplied: MoneySum,
    /// The amount written off.
    pub written_off: MoneySum,
    /// The free prepaid credit of grants that something is left of.
    pub credit_free: MoneySum,
    /// The prepaid credit that drafts take.
    pub credit_covered: MoneySum,
    /// The entity's unit of prepaid credit; `None` without one.
    pub credit_unit: Option<CreditUnit>,
}

impl Balance {
    /// Returns the free credit and that of drafts in the entity's unit of credit, if it has one.
    pub fn credit_in_units(&self) -> Option<UnitAmounts<2>> {
        let amounts = [self.credit_free, self.credit_covered].map(MoneySum::to_decimal);
        self.credit_unit.as_ref().map(|unit| unit.convert(amounts))
    }
}

/// The rows of an account. Rows that a decision doesn't need may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountRows {
    /// Issued documents.
    pub documents: Vec<BookDocument>,
    /// Payments and refunds.
    pub payments: Vec<Payment>,
    /// Applications that aren't reversed.
    pub applications: Vec<Application>,
}
