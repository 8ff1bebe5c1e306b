//! Payments, refunds, applications and write-offs, and their reversal (billing rules 9).
//!
//! A [`ReceivablesAccount`] is loaded with the documents, payments and applications that a decision needs. A decision returns a
//! refusal, or adds [`AccountEntry`] values, which the account applies at once.

mod amounts;
mod check;
mod issued;
mod known;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

pub use check::check_account;

use super::IdGenerator;
use crate::access::Actor;
use crate::calendar::{TimeZone, Timestamp, day_after};
use crate::document::{BookDocument, DocumentHead, DocumentKind, LifecycleStatus, OutstandingAmounts, Purpose, Settlement};
use crate::metadata::Metadata;
use crate::money::{Money, MoneyError, MoneySum};
use crate::receivables::{AccountKey, AccountRows, Application, ApplicationSource, Payment, PaymentKind, Reversal, WriteOff};
use crate::refs::{ApplicationRef, CustomerRef, DocumentRef, PaymentRef, WriteOffRef};
use crate::refusal::Refusal;
use crate::text::OneLine;

/// A change of an account to be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountEntry {
    /// A payment or refund was recorded.
    Recorded(Box<Payment>),
    /// A payment or refund was reversed.
    Reversed {
        /// The payment or refund.
        payment_ref: PaymentRef,
        /// The date and reason.
        reversal: Reversal,
    },
    /// The used amount of a payment changed.
    Used {
        /// The payment.
        payment_ref: PaymentRef,
        /// The amount that is applied or refunded.
        used: Money,
        /// The unapplied amount.
        unapplied: Money,
    },
    /// A credit or payment was applied to a document.
    Applied(Application),
    /// An application was reversed.
    Unapplied {
        /// The application.
        application_ref: ApplicationRef,
        /// The time of the decision.
        at: Timestamp,
        /// The actor of the decision.
        by: Actor,
    },
    /// An amount was written off, or a write-off was reduced.
    WrittenOff(WriteOff),
    /// The settlement of a document changed.
    Settled {
        /// The document.
        document_ref: DocumentRef,
        /// Issued or uncollectible.
        status: LifecycleStatus,
        /// The amounts paid, credited and used.
        settlement: Settlement,
        /// The outstanding amounts.
        owed: OutstandingAmounts,
        /// The outstanding amounts before the decision.
        before: OutstandingAmounts,
    },
}

impl AccountEntry {
    /// Returns whether a notification states the change: the outstanding amounts of an issued document are different now.
    pub fn is_notified(&self) -> bool {
        match self {
            Self::Settled { status, owed, before, .. } => status.is_issued() && owed != before,
            _ => false,
        }
    }
}

/// The time, zone and actor of a decision.
#[derive(Clone, Copy, Debug)]
pub struct DecisionContext {
    /// The instant.
    pub at: Timestamp,
    /// The time zone of the account's entity.
    pub zone: TimeZone,
    /// The actor.
    pub by: Actor,
}

impl DecisionContext {
    fn today(&self) -> NaiveDate {
        self.zone.service_date(self.at)
    }
}

/// A document that is being issued.
#[derive(Clone, Debug)]
pub struct Issuance {
    /// The document in its current state.
    pub document: BookDocument,
    /// For a credit: the documents that billed the credited amounts.
    pub takes_back: BTreeSet<DocumentRef>,
}

/// A payment or refund without identity, as requested.
#[derive(Clone, Debug)]
pub struct NewPayment {
    /// The decimal amount in the account's currency.
    pub amount: String,
    /// The date of payment; today if `None`.
    pub paid_date: Option<NaiveDate>,
    /// The payer's or the bank's reference.
    pub reference: Option<OneLine>,
    /// The payment method.
    pub method: Option<OneLine>,
    /// The metadata.
    pub metadata: Metadata,
}

/// The customer of an account and the time zone of its entity, for notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountParties {
    /// The customer's reference.
    pub customer_ref: CustomerRef,
    /// The time zone of the account's entity.
    pub zone: TimeZone,
}

/// A receivables account with the rows loaded for a decision.
#[derive(Clone, Debug)]
pub struct ReceivablesAccount {
    key: AccountKey,
    /// Whether the balance is applied to documents of other families automatically.
    applies_balance: bool,
    /// Σ of the unapplied amounts of the whole account, including rows that aren't loaded.
    unapplied: MoneySum,
    /// The same sum as loaded.
    unapplied_before: MoneySum,
    documents: BTreeMap<DocumentRef, BookDocument>,
    payments: BTreeMap<PaymentRef, Payment>,
    applications: BTreeMap<ApplicationRef, Application>,
    entries: Vec<AccountEntry>,
    settled: BTreeSet<DocumentRef>,
    /// The outstanding amounts that documents had before the first change since the last [`take_entries`](Self::take_entries).
    before: BTreeMap<DocumentRef, OutstandingAmounts>,
    used: BTreeSet<PaymentRef>,
    parties: Option<AccountParties>,
}

impl ReceivablesAccount {
    /// Creates an account with its sum of unapplied amounts, before any rows are added.
    pub fn new(key: AccountKey, applies_balance: bool, unapplied: impl Into<MoneySum>) -> Self {
        let unapplied = unapplied.into();
        Self {
            key,
            applies_balance,
            unapplied,
            unapplied_before: unapplied,
            documents: BTreeMap::new(),
            payments: BTreeMap::new(),
            applications: BTreeMap::new(),
            entries: Vec::new(),
            settled: BTreeSet::new(),
            before: BTreeMap::new(),
            used: BTreeSet::new(),
            parties: None,
        }
    }

    /// Sets the customer and the time zone, which notifications need.
    #[must_use]
    pub fn with_parties(self, parties: AccountParties) -> Self {
        Self { parties: Some(parties), ..self }
    }

    /// Returns the customer and the time zone, if they are set.
    pub const fn parties(&self) -> Option<&AccountParties> {
        self.parties.as_ref()
    }

    /// Returns a loaded document.
    pub fn document(&self, document_ref: DocumentRef) -> Option<&BookDocument> {
        self.documents.get(&document_ref)
    }

    /// Returns the key of the account.
    pub const fn key(&self) -> &AccountKey {
        &self.key
    }

    /// Returns whether the balance is applied to documents of other families automatically.
    pub const fn applies_balance(&self) -> bool {
        self.applies_balance
    }

    /// Sets whether the balance is applied to documents of other families automatically.
    pub const fn set_applies_balance(&mut self, applies_balance: bool) {
        self.applies_balance = applies_balance;
    }

    /// Returns the sum of the unapplied amounts.
    pub const fn unapplied(&self) -> MoneySum {
        self.unapplied
    }

    /// Returns whether the unapplied sum differs from the loaded one.
    pub fn is_unapplied_changed(&self) -> bool {
        self.unapplied != self.unapplied_before
    }

    /// Adds loaded rows. Rows that the account already has stay unchanged.
    pub fn add(&mut self, rows: AccountRows) {
        for document in rows.documents {
            self.documents.entry(document.head.document_ref).or_insert(document);
        }
        for payment in rows.payments {
            self.payments.entry(payment.payment_ref).or_insert(payment);
        }
        for application in rows.applications {
            self.applications.entry(application.application_ref).or_insert(application);
        }
    }

    /// Copies the numbers of documents that were issued before they had one. `numbered` returns a document's head with its number.
    pub fn number<'h>(&mut self, numbered: impl Fn(&DocumentHead) -> Option<&'h DocumentHead>) {
        for document in self.documents.values_mut().filter(|document| document.head.number.sequence == 0) {
            if let Some(head) = numbered(&document.head) {
                document.head = head.clone();
            }
        }
    }

    /// Returns the loaded documents.
    pub fn documents(&self) -> impl Iterator<Item = &BookDocument> {
        self.documents.values()
    }

    /// Returns the loaded payments and refunds.
    pub fn payments(&self) -> impl Iterator<Item = &Payment> {
        self.payments.values()
    }

    /// Returns the loaded applications.
    pub fn applications(&self) -> impl Iterator<Item = &Application> {
        self.applications.values()
    }

    /// Returns the amounts that the entries added since the last call of [`take_entries`](Self::take_entries) apply to a
    /// document, or from it if it is a credit, in order. Each amount has the other document: the credit, the document whose
    /// payment had a surplus, or the settled document. An amount of a deposit has none.
    pub fn newly_applied(&self, document_ref: DocumentRef) -> Vec<(Option<DocumentRef>, Money)> {
        let other_of = |application: &Application| {
            if application.from == ApplicationSource::Credit(document_ref) {
                return Some(Some(application.to));
            }
            match application.from {
                _ if application.to != document_ref => None,
                ApplicationSource::Credit(credit) => Some(Some(credit)),
                ApplicationSource::Payment(payment_ref) => Some(self.payments.get(&payment_ref)?.document_ref),
            }
        };
        let applied = |entry: &AccountEntry| match entry {
            AccountEntry::Applied(application) => Some((other_of(application)?, application.amount)),
            _ => None,
        };
        self.entries.iter().filter_map(applied).collect()
    }

    /// Takes the entries added since the last call, in order. The resulting state of each affected document and payment follows
    /// once, at the end.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when an amount is out of range.
    pub fn take_entries(&mut self) -> Result<Vec<AccountEntry>, MoneyError> {
        let mut entries = std::mem::take(&mut self.entries);
        let mut before = std::mem::take(&mut self.before);
        for document_ref in std::mem::take(&mut self.settled) {
            if let Some(document) = self.documents.get_mut(&document_ref) {
                let (status, settlement) = (document.status, document.settlement);
                let owed = document.owed()?;
                let before = before.remove(&document_ref).unwrap_or(owed);
                let settled = AccountEntry::Settled { document_ref, status, settlement, owed, before };
                if settled.is_notified() {
                    document.notifications += 1;
                }
                entries.push(settled);
            }
        }
        for payment_ref in std::mem::take(&mut self.used) {
            if let Some(payment) = self.payments.get(&payment_ref) {
                let (used, unapplied) = (payment.used, payment.unapplied()?);
                entries.push(AccountEntry::Used { payment_ref, used, unapplied });
            }
        }
        Ok(entries)
    }

    /// Records a payment of a document. An amount above the amount due is accepted only if `takes_more` is set; the excess
    /// becomes balance.
    ///
    /// # Errors
    /// Returns [`Refusal::Conflict`] `not_owed` for a credit, a draft or a void document. Returns [`Refusal::Invalid`] for
    /// `amount` or `paid_date`.
    pub fn record_payment(
        &mut self,
        document_ref: DocumentRef,
        facts: &NewPayment,
        takes_more: bool,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> Result<PaymentRef, Refusal> {
        let document = self.require_payable_document(document_ref)?;
        let opened = context.zone.service_date(document.head.created_at);
        let amount = self.amount_of(&facts.amount)?;
        let due = self.amount_due(document_ref)?;
        if amount.minor() > due.minor() && !takes_more {
            let detail = format!(
                "must be at most the amount due, {due}: set `overpayment` to true to add the surplus to the customer's balance"
            );
            return Err(Refusal::field(&["amount"], "above_amount_due", detail));
        }
        let paid_date = date_within("paid_date", facts.paid_date, opened, context)?;
        let document = Some(document_ref);
        let payment_ref = self.put_payment(PaymentKind::Payment, document, (amount, paid_date), facts, context, id_generator);
        self.unapplied = self.unapplied.checked_add(amount)?;
        let source = ApplicationSource::Payment(payment_ref);
        self.apply_most(source, document_ref, paid_date, context, id_generator)?;
        self.allocate_to_open_documents(source, context, id_generator)?;
        Ok(payment_ref)
    }

    /// Records a deposit: a payment without a document. It is applied to open documents, earliest due date first; the rest
    /// becomes balance. The account must hold the open documents.
    ///
    /// # Errors
    /// Returns [`Refusal::Invalid`] for `amount` or `paid_date`.
    pub fn record_deposit(
        &mut self,
        facts: &NewPayment,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> Result<PaymentRef, Refusal> {
        let amount = self.amount_of(&facts.amount)?;
        let paid_date = facts.paid_date.unwrap_or_else(|| context.today());
        let latest = day_after(context.today());
        if paid_date > latest {
            return Err(Refusal::field(&["paid_date"], "out_of_range", format!("must be at most {latest}")));
        }
        let payment_ref = self.put_payment(PaymentKind::Payment, None, (amount, paid_date), facts, context, id_generator);
        self.unapplied = self.unapplied.checked_add(amount)?;
        self.allocate_to_open_documents(ApplicationSource::Payment(payment_ref), context, id_generator)?;
        Ok(payment_ref)
    }

    /// Reverses a payment or refund. The amounts settled by a payment become due again; a refunded amount becomes balance
    /// again.
    ///
    /// # Errors
    /// Returns [`Refusal::Conflict`] `already_reversed`, or `payment_refunded` for a refunded payment. Returns
    /// [`Refusal::Invalid`] for `date`.
    pub fn reverse(
        &mut self,
        payment_ref: PaymentRef,
        date: Option<NaiveDate>,
        reason: Option<OneLine>,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        let payment = self.known_payment(payment_ref)?.clone();
        if payment.reversal.is_some() {
            return Err(Refusal::conflict("already_reversed", "the payment is already reversed"));
        }
        let date = date_within("date", date, payment.paid_date, context)?;
        let reversal = Reversal { date, reason, recorded_at: context.at, recorded_by: context.by };
        let mut reopened = Vec::new();
        match payment.kind {
            PaymentKind::Payment => {
                let source = ApplicationSource::Payment(payment_ref);
                if self.applied_amount(source)? != payment.used {
                    let detail = "part of this payment was refunded: reverse the refund first";
                    return Err(Refusal::conflict("payment_refunded", detail));
                }
                reopened = self.reverse_applications_of(source, date, context, id_generator)?;
                self.unapplied = self.unapplied.checked_sub(payment.amount)?;
            }
            PaymentKind::Refund(source) => self.add_used_amount(source, -payment.amount.minor())?,
        }
        self.entries.push(AccountEntry::Reversed { payment_ref, reversal: reversal.clone() });
        self.known_payment_mut(payment_ref)?.reversal = Some(reversal);
        self.used.insert(payment_ref);
        match payment.kind {
            PaymentKind::Payment => self.allocate_balance_to_all(reopened, context, id_generator),
            PaymentKind::Refund(source) => self.allocate_to_open_documents(source, context, id_generator),
        }
    }

    /// Refunds an unapplied amount of a credit or payment.
    ///
    /// # Errors
    /// Returns [`Refusal::Conflict`] `not_unapplied` if the source isn't an issued credit or an unreversed payment. Returns
    /// [`Refusal::Invalid`] for `paid_date`, or for an `amount` that is malformed or above the unapplied amount.
    pub fn refund(
        &mut self,
        source: ApplicationSource,
        facts: &NewPayment,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> Result<PaymentRef, Refusal> {
        let (document_ref, earliest) = self.source_of(source, context)?;
        let amount = self.amount_of(&facts.amount)?;
        self.require_unapplied(source, amount)?;
        let paid_date = date_within("paid_date", facts.paid_date, earliest, context)?;
        let kind = PaymentKind::Refund(source);
        let payment_ref = self.put_payment(kind, document_ref, (amount, paid_date), facts, context, id_generator);
        self.add_used_amount(source, amount.minor())?;
        Ok(payment_ref)
    }

    /// Applies an amount of a credit or payment to a document, by hand.
    ///
    /// # Errors
    /// Returns [`Refusal::Conflict`] `not_owed` if the document isn't payable, and `not_unapplied` if the source can't be
    /// applied. Returns [`Refusal::Invalid`] for an `amount` that is malformed, above the unapplied amount or above the amount
    /// due.
    pub fn apply(
        &mut self,
        source: ApplicationSource,
        document_ref: DocumentRef,
        amount: &str,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        self.source_of(source, context)?;
        self.require_payable_document(document_ref)?;
        let amount = self.amount_of(amount)?;
        self.require_unapplied(source, amount)?;
        let due = self.amount_due(document_ref)?;
        if amount.minor() > due.minor() {
            let detail = format!("must be at most the amount due of the document, {due}");
            return Err(Refusal::field(&["amount"], "above_amount_due", detail));
        }
        self.put_application(source, document_ref, amount, context.today(), context, id_generator)
    }

    /// Reverses an application. Its amount stays unapplied until the next document is issued or it is applied by hand.
    ///
    /// # Errors
    /// Returns [`Refusal::Broken`] when the application isn't loaded.
    pub fn unapply(
        &mut self,
        application_ref: ApplicationRef,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        self.reverse_application(application_ref, context.today(), context, id_generator)
    }

    /// Writes off the amount due of a document.
    ///
    /// # Errors
    /// Returns [`Refusal::Conflict`] `not_owed` if no amount is due, or `already_written_off`.
    pub fn write_off(
        &mut self,
        document_ref: DocumentRef,
        reason: Option<OneLine>,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        let document = self.require_payable_document(document_ref)?;
        if document.status == LifecycleStatus::Uncollectible {
            return Err(Refusal::conflict("already_written_off", "the amount due is already written off"));
        }
        if self.amount_due(document_ref)?.minor() == 0 {
            return Err(Refusal::conflict("not_owed", "the document has no amount due"));
        }
        self.known_mut(document_ref)?.status = LifecycleStatus::Uncollectible;
        self.settled.insert(document_ref);
        let amount = self.known(document_ref)?.owed()?.written_off;
        let on = self.today_after_issue(document_ref, context)?;
        self.put_write_off(document_ref, amount, on, reason, context, id_generator);
        Ok(())
    }

    /// Returns today, or the document's issue date if the zone moved west since then.
    fn today_after_issue(&self, document_ref: DocumentRef, context: &DecisionContext) -> Result<NaiveDate, Refusal> {
        let (today, issued) = (context.today(), self.known(document_ref)?.issue_date);
        Ok(issued.map_or(today, |issued| issued.max(today)))
    }

    /// Reverses a write-off. The remaining written-off amount becomes due again.
    ///
    /// # Errors
    /// Returns [`Refusal::Conflict`] `not_written_off`.
    pub fn reverse_write_off(
        &mut self,
        document_ref: DocumentRef,
        reason: Option<OneLine>,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        let document = self.known(document_ref)?;
        if document.status != LifecycleStatus::Uncollectible {
            return Err(Refusal::conflict("not_written_off", "the document has no write-off"));
        }
        let amount = self.zero().checked_sub(document.owed()?.written_off)?;
        self.known_mut(document_ref)?.status = LifecycleStatus::Issued;
        self.settled.insert(document_ref);
        let on = self.today_after_issue(document_ref, context)?;
        self.put_write_off(document_ref, amount, on, reason, context, id_generator);
        self.allocate_balance(document_ref, context, id_generator)
    }

    /// Reverses all applications of a source, latest first, and returns the documents they settled.
    fn reverse_applications_of(
        &mut self,
        source: ApplicationSource,
        date: NaiveDate,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> Result<Vec<DocumentRef>, Refusal> {
        let from_it = self.applications.values().filter(|application| application.from == source);
        let taken: Vec<(ApplicationRef, DocumentRef)> =
            from_it.rev().map(|application| (application.application_ref, application.to)).collect();
        for (application_ref, _) in &taken {
            self.reverse_application(*application_ref, date, context, id_generator)?;
        }
        Ok(taken.into_iter().map(|(_, document_ref)| document_ref).collect())
    }
}

/// The order in which a credit settles the documents of its family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    CorrectedFirst,
    Corrected,
    Due,
    WrittenOff,
}

/// Returns whether a document is a child invoice of an event that is due upon usage.
fn is_child(document: &BookDocument) -> bool {
    document.head.kind == DocumentKind::Invoice && document.head.purpose == Purpose::Usage
}

/// Returns the date if it is from `earliest` to tomorrow; the default is today, or `earliest` if that is later.
fn date_within(
    field: &str,
    date: Option<NaiveDate>,
    earliest: NaiveDate,
    context: &DecisionContext,
) -> Result<NaiveDate, Refusal> {
    let latest = day_after(context.today()).max(earliest);
    let date = date.unwrap_or_else(|| context.today().max(earliest));
    if (earliest..=latest).contains(&date) {
        return Ok(date);
    }
    Err(Refusal::field(&[field], "out_of_range", format!("must be from {earliest} to {latest}")))
}
