//! Money in and out: payments, refunds, applications, write-offs, balances, statements.

use billing_application::documents::{ApplicationView, PaymentView};
use billing_domain::account::{AccountStatement, Balance, PaymentKind, Source, StatementLine, WriteOff};
use billing_domain::calendar::Date;
use billing_domain::ledger::receive::PaymentFacts;
use billing_domain::refs::DocumentRef;
use billing_domain::text::OneLine;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::declare::{body, fields};
use super::values::AmountText;
use super::wire::{AssignedRef, CurrencyCode, DateText, ExactNumber, LineText, NamedRef, TimestampText};
use super::words::{PaymentKindWord, StatementKindWord};

fields! {
    PaymentFacts {
        /// Amount in the document's currency; above zero, and of a refund at most what is neither applied nor refunded.
        amount: AmountText,
        /// When it was paid: of a payment from the document's opening to tomorrow. Today when left out.
        paid_date: Option<Date>,
        /// The payer's or the bank's reference.
        reference: Option<OneLine>,
        /// How it was paid.
        method: Option<OneLine>,
    }
}

body! {
    /// A payment of a document.
    PaymentBody {
        @flat facts: PaymentFacts,
        /// Whether more than is due is taken, which becomes the customer's balance; false when left out.
        overpayment: bool = false,
    }
    example json!({"amount": 129.71, "paid_date": "2026-12-02", "reference": "bank 4711", "method": "SEPA"});
}

body! {
    /// A credit or a payment to pay out.
    RefundBody {
        @flat facts: PaymentFacts,
    }
    example json!({"amount": 29.71, "paid_date": "2026-12-09", "reference": "SEPA 12"});
}

body! {
    /// A payment or a refund that didn't hold. The whole body may be left out.
    ReversalBody {
        /// When, from the payment's day to tomorrow; today when left out.
        date: Option<Date>,
        /// Why.
        reason: Option<OneLine>,
    }
    example json!({"date": "2026-12-05", "reason": "returned by the bank"});
}

body! {
    /// An amount of a credit or a payment for a document.
    ApplyBody {
        /// The document to settle, of the same customer, entity and currency.
        document_ref: DocumentRef,
        /// Amount; above zero, at most what is unapplied and what is due.
        amount: AmountText,
    }
    example json!({"document_ref": "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b", "amount": 20});
}

body! {
    /// A write-off, or taking one back. The whole body may be left out.
    WriteOffBody {
        /// Why.
        reason: Option<OneLine>,
        /// Whether the write-off is taken back; false when left out.
        undo: bool = false,
    }
    example json!({"reason": "insolvent"});
}

/// An amount of a credit or a payment that settles a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApplicationJson {
    /// Reference.
    application_ref: AssignedRef,
    /// The credit it is from; null of a payment.
    from_document_ref: Option<AssignedRef>,
    /// That credit's number.
    #[schema(example = "UB-CRD-1")]
    from_document_number: Option<String>,
    /// The payment it is from; null of a credit.
    from_payment_ref: Option<AssignedRef>,
    /// The document it settles.
    to_document_ref: AssignedRef,
    /// That document's number.
    #[schema(example = "UB-INV-1")]
    to_document_number: String,
    /// How much.
    amount: ExactNumber,
    /// The day it counts from.
    date: DateText,
    /// When it was applied.
    recorded_at: TimestampText,
    /// Who applied it.
    recorded_by: String,
}

impl From<&ApplicationView> for ApplicationJson {
    fn from(view: &ApplicationView) -> Self {
        let application = &view.application;
        let (credit, payment) = match application.from {
            Source::Credit(credit) => (Some(credit), None),
            Source::Payment(payment) => (None, Some(payment)),
        };
        Self {
            application_ref: AssignedRef::from(application.application_ref),
            from_document_ref: credit.map(AssignedRef::from),
            from_document_number: view.from_number.as_ref().map(ToString::to_string),
            from_payment_ref: payment.map(AssignedRef::from),
            to_document_ref: AssignedRef::from(application.to),
            to_document_number: view.to_number.to_string(),
            amount: ExactNumber::from(application.amount),
            date: DateText::from(application.date),
            recorded_at: TimestampText::from(application.recorded_at),
            recorded_by: application.recorded_by.to_string(),
        }
    }
}

/// An amount that was given up on, or that was lessened.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WriteOffJson {
    /// The amount; below zero where it lessens what was written off.
    amount: ExactNumber,
    /// When.
    date: DateText,
    /// Why.
    reason: Option<LineText>,
    /// When it was recorded.
    recorded_at: TimestampText,
    /// Who recorded it.
    recorded_by: String,
}

impl From<&WriteOff> for WriteOffJson {
    fn from(write_off: &WriteOff) -> Self {
        Self {
            amount: ExactNumber::from(write_off.amount),
            date: DateText::from(write_off.date),
            reason: write_off.reason.as_ref().map(LineText::from),
            recorded_at: TimestampText::from(write_off.recorded_at),
            recorded_by: write_off.recorded_by.to_string(),
        }
    }
}

/// A payment or a refund.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PaymentJson {
    /// Reference.
    payment_ref: AssignedRef,
    /// Which way the money went.
    kind: PaymentKindWord,
    /// The document it was recorded on; of a refund the credit, or the document of the payment it is of.
    document_ref: AssignedRef,
    /// The payment that a refund pays out.
    refunded_payment_ref: Option<AssignedRef>,
    /// How much; above zero.
    amount: ExactNumber,
    /// Its currency.
    currency: CurrencyCode,
    /// When it was paid.
    paid_date: DateText,
    /// The payer's or the bank's reference.
    reference: Option<LineText>,
    /// How it was paid.
    method: Option<LineText>,
    /// What of it is neither applied nor refunded.
    unapplied_amount: ExactNumber,
    /// When it bounced.
    reversed_date: Option<DateText>,
    /// Why it bounced.
    reason: Option<LineText>,
    /// When that was recorded.
    reversed_at: Option<TimestampText>,
    /// Who recorded that.
    reversed_by: Option<String>,
    /// What it settles.
    applications: Vec<ApplicationJson>,
    /// When it was recorded.
    recorded_at: TimestampText,
    /// Who recorded it.
    recorded_by: String,
}

impl From<&PaymentView> for PaymentJson {
    fn from(view: &PaymentView) -> Self {
        let (payment, reversal) = (&view.payment, view.payment.reversal.as_ref());
        let of_payment = match payment.kind {
            PaymentKind::Refund(Source::Payment(payment)) => Some(payment),
            PaymentKind::Payment | PaymentKind::Refund(Source::Credit(_)) => None,
        };
        Self {
            payment_ref: AssignedRef::from(payment.payment_ref),
            kind: PaymentKindWord::from(payment.kind),
            document_ref: AssignedRef::from(payment.document_ref),
            refunded_payment_ref: of_payment.map(AssignedRef::from),
            amount: ExactNumber::from(payment.amount),
            currency: CurrencyCode::from(payment.amount.currency()),
            paid_date: DateText::from(payment.paid_date),
            reference: payment.reference.as_ref().map(LineText::from),
            method: payment.method.as_ref().map(LineText::from),
            unapplied_amount: ExactNumber::from(view.unapplied),
            reversed_date: reversal.map(|reversal| DateText::from(reversal.date)),
            reason: reversal.and_then(|reversal| reversal.reason.as_ref()).map(LineText::from),
            reversed_at: reversal.map(|reversal| TimestampText::from(reversal.recorded_at)),
            reversed_by: reversal.map(|reversal| reversal.recorded_by.to_string()),
            applications: view.applications.iter().map(ApplicationJson::from).collect(),
            recorded_at: TimestampText::from(payment.recorded_at),
            recorded_by: payment.recorded_by.to_string(),
        }
    }
}

/// What a customer owes an entity in a currency.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BalanceJson {
    /// Who bills.
    entity_ref: NamedRef,
    /// The currency of the amounts.
    currency: CurrencyCode,
    /// What is left to pay of its documents.
    due: ExactNumber,
    /// What of it should have been paid before today.
    overdue: ExactNumber,
    /// What of credits and payments is neither applied nor refunded.
    unapplied: ExactNumber,
    /// What was given up on.
    written_off: ExactNumber,
}

impl From<&Balance> for BalanceJson {
    fn from(balance: &Balance) -> Self {
        Self {
            entity_ref: NamedRef::from(&balance.entity_ref),
            currency: CurrencyCode::from(balance.due.currency()),
            due: ExactNumber::from(balance.due),
            overdue: ExactNumber::from(balance.overdue),
            unapplied: ExactNumber::from(balance.unapplied),
            written_off: ExactNumber::from(balance.written_off),
        }
    }
}

/// What happened between a customer and an entity in a currency.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatementJson {
    /// Who bills.
    entity_ref: NamedRef,
    /// The currency of the amounts.
    currency: CurrencyCode,
    /// What was owed before the first day; below zero: what the customer had coming.
    opening_balance: ExactNumber,
    /// What changed it.
    entries: Vec<StatementEntryJson>,
    /// What is owed after the last day.
    closing_balance: ExactNumber,
}

/// One change of what is owed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatementEntryJson {
    /// The day of issue, payment or reversal.
    date: DateText,
    /// What happened.
    kind: StatementKindWord,
    /// The document it stands on.
    document_ref: AssignedRef,
    /// That document's number.
    #[schema(example = "UB-INV-1")]
    document_number: String,
    /// The payment or refund, of one.
    payment_ref: Option<AssignedRef>,
    /// By how much; below zero where it lowers what is owed.
    amount: ExactNumber,
    /// What is owed after it.
    balance: ExactNumber,
}

impl From<&AccountStatement> for StatementJson {
    fn from(statement: &AccountStatement) -> Self {
        Self {
            entity_ref: NamedRef::from(&statement.entity_ref),
            currency: CurrencyCode::from(statement.opening_balance.currency()),
            opening_balance: ExactNumber::from(statement.opening_balance),
            entries: statement.lines.iter().map(StatementEntryJson::from).collect(),
            closing_balance: ExactNumber::from(statement.closing_balance),
        }
    }
}

impl From<&StatementLine> for StatementEntryJson {
    fn from(line: &StatementLine) -> Self {
        let entry = &line.entry;
        Self {
            date: DateText::from(entry.date),
            kind: StatementKindWord::from(entry.kind),
            document_ref: AssignedRef::from(entry.document_ref),
            document_number: entry.document_number.to_string(),
            payment_ref: entry.payment_ref.map(AssignedRef::from),
            amount: ExactNumber::from(entry.amount),
            balance: ExactNumber::from(line.balance),
        }
    }
}
