//! Receivables: payments, refunds, applications, write-offs, balances, statements.

use billing_application::balances::CustomerDue;
use billing_application::documents::{ApplicationView, DepositAccount, PaymentView};
use billing_domain::calendar::Date;
use billing_domain::ledger::receivables::NewPayment;
use billing_domain::metadata::Metadata;
use billing_domain::money::Currency;
use billing_domain::receivables::{AccountStatement, ApplicationSource, Balance, PaymentKind, StatementLine, WriteOff};
use billing_domain::refs::{DocumentRef, EntityRef};
use billing_domain::text::OneLine;

use super::credit_unit::BalanceUnitsJson;
use super::declare::{answer, body, fields, object};
use super::enums::{PaymentKindWord, StatementKindWord};
use super::metadata::MetadataJson;
use super::values::{AmountText, CurrencyCode, DateText, LineText, TimestampText};
use super::wire::{AssignedRef, ExactNumber, NamedRef};

object! {
    /// A payment that is recorded together with its document.
    NewPayment as "NewPaymentBody" {
        /// Positive amount in the currency of the document or deposit. A refund is at most the unapplied amount.
        amount: AmountText,
        /// Date of payment, until tomorrow. A payment of a document is not dated before its creation. Default: today.
        paid_date: Option<Date>,
        /// Reference of the payer or the bank.
        reference: Option<OneLine>,
        /// Payment method.
        method: Option<OneLine>,
        /// Keys and values of your own, such as the identifier at a payment provider.
        metadata: Metadata = Metadata::default(),
    }
}

body! {
    /// A payment of a document.
    PaymentBody {
        @flat facts: NewPayment,
        /// Whether to accept more than the amount due and add the excess to the customer's balance. Default: false.
        overpayment: bool = false,
    }
}

fields! {
    DepositAccount {
        /// Entity that is paid. Default: the customer's default entity, else the organization's.
        entity_ref: Option<EntityRef>,
        /// Currency of the amount.
        currency: Currency,
    }
}

body! {
    /// A payment without a document.
    DepositBody {
        @flat account: DepositAccount,
        @flat facts: NewPayment,
    }
}

body! {
    /// A refund of a credit or payment.
    RefundBody {
        @flat facts: NewPayment,
    }
}

body! {
    /// The reversal of a payment or refund. The body may be omitted.
    ReversalBody {
        /// Date of the reversal, from the date of payment to tomorrow. Default: today.
        date: Option<Date>,
        /// Reason.
        reason: Option<OneLine>,
    }
}

body! {
    /// An application of a credit or payment to a document.
    ApplyBody {
        /// Document to settle, with the same customer, entity and currency.
        document_ref: DocumentRef,
        /// Positive amount, at most the unapplied amount and the amount due.
        amount: AmountText,
    }
}

body! {
    /// A write-off or its reversal. The body may be omitted.
    WriteOffBody {
        /// Reason.
        reason: Option<OneLine>,
        /// Whether to reverse the write-off. Default: false.
        undo: bool = false,
    }
}

answer! {
    /// An application: an amount of a credit or payment that settles a document.
    ApplicationJson of view: ApplicationView {
        let application = &view.application;
        let (credit, payment) = match application.from {
            ApplicationSource::Credit(credit) => (Some(credit), None),
            ApplicationSource::Payment(payment) => (None, Some(payment)),
        };
        /// Reference.
        application_ref: AssignedRef = application.application_ref,
        /// Credit that the amount comes from; null for a payment.
        from_document_ref: Option<AssignedRef> = credit,
        /// Number of the credit.
        #[schema(example = "UB-CRD-1")]
        from_document_number: Option<String> = view.from_number.as_ref().map(ToString::to_string),
        /// Payment that the amount comes from; null for a credit.
        from_payment_ref: Option<AssignedRef> = payment,
        /// Document that the amount settles.
        to_document_ref: AssignedRef = application.to,
        /// Number of the document.
        #[schema(example = "UB-INV-1")]
        to_document_number: String = view.to_number.to_string(),
        /// Amount.
        amount: ExactNumber = application.amount,
        /// Effective date.
        date: DateText = application.date,
        /// Time of the application.
        recorded_at: TimestampText = application.recorded_at,
        /// Author of the application.
        recorded_by: String = application.recorded_by.to_string(),
    }
}

answer! {
    /// A write-off, or a reduction of a write-off.
    WriteOffJson of write_off: WriteOff {
        /// Amount; negative for a reduction.
        amount: ExactNumber = write_off.amount,
        /// Date.
        date: DateText = write_off.date,
        /// Reason.
        reason: Option<LineText> = write_off.reason.as_ref(),
        /// Time of recording.
        recorded_at: TimestampText = write_off.recorded_at,
        /// Author.
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
        /// Direction: payment or refund.
        kind: PaymentKindWord = payment.kind,
        /// Document that the payment is recorded on; null for a deposit. For a refund: the credit, or the document of the
        /// refunded payment.
        document_ref: Option<AssignedRef> = payment.document_ref,
        /// Number of that document.
        #[schema(example = "UB-INV-1")]
        document_number: Option<String> = view.document_number.clone(),
        /// Customer who pays or is refunded.
        customer_ref: NamedRef = &view.customer_ref,
        /// Name of the customer.
        customer_name: LineText = &view.customer_name,
        /// Supplier entity.
        entity_ref: NamedRef = &view.entity_ref,
        /// Payment that the refund pays out; null for other refunds and for payments.
        refunded_payment_ref: Option<AssignedRef> = of_payment,
        /// Positive amount.
        amount: ExactNumber = payment.amount,
        /// Currency.
        currency: CurrencyCode = payment.amount.currency(),
        /// Date of payment.
        paid_date: DateText = payment.paid_date,
        /// Reference of the payer or the bank.
        reference: Option<LineText> = payment.reference.as_ref(),
        /// Payment method.
        method: Option<LineText> = payment.method.as_ref(),
        /// Keys and values of the caller.
        metadata: MetadataJson = &payment.metadata,
        /// Amount that is neither applied nor refunded.
        unapplied_amount: ExactNumber = view.unapplied,
        /// Date of the reversal.
        reversed_date: Option<DateText> = reversal.map(|reversal| reversal.date),
        /// Reason for the reversal.
        reason: Option<LineText> = reversal.and_then(|reversal| reversal.reason.as_ref()),
        /// Time when the reversal was recorded.
        reversed_at: Option<TimestampText> = reversal.map(|reversal| reversal.recorded_at),
        /// Author of the reversal.
        reversed_by: Option<String> = reversal.map(|reversal| reversal.recorded_by.to_string()),
        /// Applications to documents.
        applications: Vec<ApplicationJson> = &view.applications,
        /// Time of recording.
        recorded_at: TimestampText = payment.recorded_at,
        /// Author.
        recorded_by: String = payment.recorded_by.to_string(),
        /// Time of the last change: the recording, a reversal, or a change of the applied or refunded amount.
        updated_at: TimestampText = payment.updated_at,
    }
}

answer! {
    /// A customer's balance with an entity in a currency.
    BalanceJson of balance: Balance {
        /// Supplier entity.
        entity_ref: NamedRef = &balance.entity_ref,
        /// Currency of the amounts.
        currency: CurrencyCode = balance.due.currency(),
        /// Amount due on documents.
        due: ExactNumber = balance.due,
        /// Part of the amount due whose due date has passed.
        overdue: ExactNumber = balance.overdue,
        /// Unapplied amount of credits and payments.
        unapplied: ExactNumber = balance.unapplied,
        /// Amount written off.
        written_off: ExactNumber = balance.written_off,
        /// Prepaid credit that further documents can take.
        credit_free: ExactNumber = balance.credit_free,
        /// Prepaid credit that drafts take.
        credit_covered: ExactNumber = balance.credit_covered,
        /// The prepaid credit in the entity's unit of credit, rounded towards zero to 2 decimals; null without such a unit.
        credit_units: Option<BalanceUnitsJson> = balance.credit_in_units().as_ref(),
    }
}

answer! {
    /// The amount that a customer owes to a supplier entity in a currency.
    CustomerDueJson of owed: CustomerDue {
        /// Customer reference.
        customer_ref: NamedRef = &owed.customer_ref,
        /// Supplier entity.
        entity_ref: NamedRef = &owed.entity_ref,
        /// Currency of the amounts.
        currency: CurrencyCode = owed.due.currency(),
        /// Amount due on documents.
        due: ExactNumber = owed.due,
        /// Part of the amount due whose due date has passed.
        overdue: ExactNumber = owed.overdue,
    }
}

answer! {
    /// A customer's account statement with an entity in a currency.
    StatementJson of statement: AccountStatement {
        /// Supplier entity.
        entity_ref: NamedRef = &statement.entity_ref,
        /// Currency of the amounts.
        currency: CurrencyCode = statement.opening_balance.currency(),
        /// Amount owed before the first day; negative if the customer has a credit balance.
        opening_balance: ExactNumber = statement.opening_balance,
        /// Entries that change the balance.
        entries: Vec<StatementEntryJson> = &statement.lines,
        /// Amount owed after the last day.
        closing_balance: ExactNumber = statement.closing_balance,
    }
}

answer! {
    /// An entry that changes the amount owed.
    StatementEntryJson of line: StatementLine {
        let entry = &line.entry;
        /// Date of issue, void, payment or reversal.
        date: DateText = entry.date,
        /// Kind of the entry.
        kind: StatementKindWord = entry.kind,
        /// Document that the entry belongs to; null for a deposit, its refund and their reversals.
        document_ref: Option<AssignedRef> = entry.document.as_ref().map(|(document_ref, _)| *document_ref),
        /// Number of the document.
        #[schema(example = "UB-INV-1")]
        document_number: Option<String> = entry.document.as_ref().map(|(_, number)| number.to_string()),
        /// Payment or refund, if the entry is one.
        payment_ref: Option<AssignedRef> = entry.payment_ref,
        /// Reference of the payer or the bank, for a payment or refund.
        reference: Option<LineText> = entry.reference.as_ref(),
        /// Change of the amount owed; negative for a reduction.
        amount: ExactNumber = entry.amount,
        /// Amount owed after the entry.
        balance: ExactNumber = line.balance,
    }
}
