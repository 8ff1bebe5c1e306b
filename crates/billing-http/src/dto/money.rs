//! Money in and out: payments, refunds, applications, write-offs, balances, statements.

use billing_application::documents::{ApplicationView, PaymentView};
use billing_domain::calendar::Date;
use billing_domain::ledger::receivables::NewPayment;
use billing_domain::receivables::{AccountStatement, ApplicationSource, Balance, PaymentKind, StatementLine, WriteOff};
use billing_domain::refs::DocumentRef;
use billing_domain::text::OneLine;

use super::declare::{answer, body, fields};
use super::enums::{PaymentKindWord, StatementKindWord};
use super::values::AmountText;
use super::wire::{AssignedRef, CurrencyCode, DateText, ExactNumber, LineText, NamedRef, TimestampText};

fields! {
    NewPayment {
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
        @flat facts: NewPayment,
        /// Whether more than is due is taken, which becomes the customer's balance; false when left out.
        overpayment: bool = false,
    }
}

body! {
    /// A credit or a payment to pay out.
    RefundBody {
        @flat facts: NewPayment,
    }
}

body! {
    /// A payment or a refund that didn't hold. The whole body may be left out.
    ReversalBody {
        /// When, from the payment's day to tomorrow; today when left out.
        date: Option<Date>,
        /// Why.
        reason: Option<OneLine>,
    }
}

body! {
    /// An amount of a credit or a payment for a document.
    ApplyBody {
        /// The document to settle, of the same customer, entity and currency.
        document_ref: DocumentRef,
        /// Amount; above zero, at most what is unapplied and what is due.
        amount: AmountText,
    }
}

body! {
    /// A write-off, or taking one back. The whole body may be left out.
    WriteOffBody {
        /// Why.
        reason: Option<OneLine>,
        /// Whether the write-off is taken back; false when left out.
        undo: bool = false,
    }
}

answer! {
    /// An amount of a credit or a payment that settles a document.
    ApplicationJson of view: ApplicationView {
        let application = &view.application;
        let (credit, payment) = match application.from {
            ApplicationSource::Credit(credit) => (Some(credit), None),
            ApplicationSource::Payment(payment) => (None, Some(payment)),
        };
        /// Reference.
        application_ref: AssignedRef = application.application_ref,
        /// The credit it is from; null of a payment.
        from_document_ref: Option<AssignedRef> = credit,
        /// That credit's number.
        #[schema(example = "UB-CRD-1")]
        from_document_number: Option<String> = view.from_number.as_ref().map(ToString::to_string),
        /// The payment it is from; null of a credit.
        from_payment_ref: Option<AssignedRef> = payment,
        /// The document it settles.
        to_document_ref: AssignedRef = application.to,
        /// That document's number.
        #[schema(example = "UB-INV-1")]
        to_document_number: String = view.to_number.to_string(),
        /// How much.
        amount: ExactNumber = application.amount,
        /// The day it counts from.
        date: DateText = application.date,
        /// When it was applied.
        recorded_at: TimestampText = application.recorded_at,
        /// Who applied it.
        recorded_by: String = application.recorded_by.to_string(),
    }
}

answer! {
    /// An amount that was given up on, or that was lessened.
    WriteOffJson of write_off: WriteOff {
        /// The amount; below zero where it lessens what was written off.
        amount: ExactNumber = write_off.amount,
        /// When.
        date: DateText = write_off.date,
        /// Why.
        reason: Option<LineText> = write_off.reason.as_ref(),
        /// When it was recorded.
        recorded_at: TimestampText = write_off.recorded_at,
        /// Who recorded it.
        recorded_by: String = write_off.recorded_by.to_string(),
    }
}

answer! {
    /// A payment or a refund.
    PaymentJson of view: PaymentView {
        let (payment, reversal) = (&view.payment, view.payment.reversal.as_ref());
        let of_payment = match payment.kind {
            PaymentKind::Refund(ApplicationSource::Payment(payment)) => Some(payment),
            PaymentKind::Payment | PaymentKind::Refund(ApplicationSource::Credit(_)) => None,
        };
        /// Reference.
        payment_ref: AssignedRef = payment.payment_ref,
        /// Which way the money went.
        kind: PaymentKindWord = payment.kind,
        /// The document it was recorded on; of a refund the credit, or the document of the payment it is of.
        document_ref: AssignedRef = payment.document_ref,
        /// The payment that a refund pays out.
        refunded_payment_ref: Option<AssignedRef> = of_payment,
        /// How much; above zero.
        amount: ExactNumber = payment.amount,
        /// Its currency.
        currency: CurrencyCode = payment.amount.currency(),
        /// When it was paid.
        paid_date: DateText = payment.paid_date,
        /// The payer's or the bank's reference.
        reference: Option<LineText> = payment.reference.as_ref(),
        /// How it was paid.
        method: Option<LineText> = payment.method.as_ref(),
        /// What of it is neither applied nor refunded.
        unapplied_amount: ExactNumber = view.unapplied,
        /// When it bounced.
        reversed_date: Option<DateText> = reversal.map(|reversal| reversal.date),
        /// Why it bounced.
        reason: Option<LineText> = reversal.and_then(|reversal| reversal.reason.as_ref()),
        /// When that was recorded.
        reversed_at: Option<TimestampText> = reversal.map(|reversal| reversal.recorded_at),
        /// Who recorded that.
        reversed_by: Option<String> = reversal.map(|reversal| reversal.recorded_by.to_string()),
        /// What it settles.
        applications: Vec<ApplicationJson> = &view.applications,
        /// When it was recorded.
        recorded_at: TimestampText = payment.recorded_at,
        /// Who recorded it.
        recorded_by: String = payment.recorded_by.to_string(),
    }
}

answer! {
    /// What a customer owes an entity in a currency.
    BalanceJson of balance: Balance {
        /// Who bills.
        entity_ref: NamedRef = &balance.entity_ref,
        /// The currency of the amounts.
        currency: CurrencyCode = balance.due.currency(),
        /// What is left to pay of its documents.
        due: ExactNumber = balance.due,
        /// What of it should have been paid before today.
        overdue: ExactNumber = balance.overdue,
        /// What of credits and payments is neither applied nor refunded.
        unapplied: ExactNumber = balance.unapplied,
        /// What was given up on.
        written_off: ExactNumber = balance.written_off,
    }
}

answer! {
    /// What happened between a customer and an entity in a currency.
    StatementJson of statement: AccountStatement {
        /// Who bills.
        entity_ref: NamedRef = &statement.entity_ref,
        /// The currency of the amounts.
        currency: CurrencyCode = statement.opening_balance.currency(),
        /// What was owed before the first day; below zero: what the customer had coming.
        opening_balance: ExactNumber = statement.opening_balance,
        /// What changed it.
        entries: Vec<StatementEntryJson> = &statement.lines,
        /// What is owed after the last day.
        closing_balance: ExactNumber = statement.closing_balance,
    }
}

answer! {
    /// One change of what is owed.
    StatementEntryJson of line: StatementLine {
        let entry = &line.entry;
        /// The day of issue, void, payment or reversal.
        date: DateText = entry.date,
        /// What happened.
        kind: StatementKindWord = entry.kind,
        /// The document it stands on.
        document_ref: AssignedRef = entry.document_ref,
        /// That document's number.
        #[schema(example = "UB-INV-1")]
        document_number: String = entry.document_number.to_string(),
        /// The payment or refund, of one.
        payment_ref: Option<AssignedRef> = entry.payment_ref,
        /// By how much; below zero where it lowers what is owed.
        amount: ExactNumber = entry.amount,
        /// What is owed after it.
        balance: ExactNumber = line.balance,
    }
}
