//! Payments, refunds, applications and write-offs, and their reversal (billing rules 9).
//!
//! A [`ReceivablesAccount`] is loaded with the documents, payments and applications that a decision needs. A decision returns a
//! refusal, or adds [`AccountEntry`] values, which the account applies at once.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use super::IdGenerator;
use crate::access::Actor;
use crate::calendar::{TimeZone, Timestamp, day_after};
use crate::decimal::Digits;
use crate::document::{BookDocument, DocumentHead, DocumentKind, LifecycleStatus, OutstandingAmounts, Purpose, Settlement};
use crate::metadata::Metadata;
use crate::money::{Money, MoneyError, MoneySum};
use crate::receivables::{AccountKey, AccountRows, Application, ApplicationSource, Payment, PaymentKind, Reversal, WriteOff};
use crate::refs::{ApplicationRef, CustomerRef, DocumentRef, PaymentRef, WriteOffRef};
use crate::refusal::Refusal;
use crate::text::OneLine;

/// The maximum number of integer digits of a payment amount.
const AMOUNT_DIGITS: u32 = 15;

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
        standing: LifecycleStatus,
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
            Self::Settled { standing, owed, before, .. } => standing.is_issued() && owed != before,
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
    /// payment had a surplus, or the settled document.
    pub fn newly_applied(&self, document_ref: DocumentRef) -> Vec<(DocumentRef, Money)> {
        let other_of = |application: &Application| {
            if application.from == ApplicationSource::Credit(document_ref) {
                return Some(application.to);
            }
            match application.from {
                _ if application.to != document_ref => None,
                ApplicationSource::Credit(credit) => Some(credit),
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
                let (standing, settlement) = (document.status, document.settlement);
                let owed = document.owed()?;
                let before = before.remove(&document_ref).unwrap_or(owed);
                let settled = AccountEntry::Settled { document_ref, standing, settlement, owed, before };
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

    /// Adds documents that are issued together. Each credit settles its own family. Its remainder is applied to open documents,
    /// and the balance is applied to the issued documents. The account must hold the families of the credits, the open
    /// documents if there is a credit, and the unapplied amounts.
    ///
    /// # Errors
    /// Returns [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`].
    pub fn issue(
        &mut self,
        issued: Vec<Issuance>,
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        let mut credits: Vec<(DocumentRef, BTreeSet<DocumentRef>)> = Vec::new();
        let mut debts: Vec<DocumentRef> = Vec::new();
        for Issuance { mut document, takes_back } in issued {
            let document_ref = document.head.document_ref;
            let total = document.total.ok_or_else(|| Refusal::Broken(format!("{document_ref} is issued without a total")))?;
            if document.head.kind == DocumentKind::Credit {
                self.unapplied = self.unapplied.checked_add(total)?;
                credits.push((document_ref, takes_back));
            } else {
                document.settlement = document.settlement.dated(total, moment.today())?;
                if document.settlement.paid_date.is_some() {
                    self.settled.insert(document_ref);
                }
                debts.push(document_ref);
            }
            self.documents.insert(document_ref, document);
        }
        for (credit, takes_back) in &credits {
            self.allocate_credit_in_family(*credit, takes_back, moment, supplies)?;
        }
        for (credit, _) in &credits {
            self.allocate_to_open_documents(ApplicationSource::Credit(*credit), moment, supplies)?;
        }
        for debt in debts {
            self.allocate_balance(debt, moment, supplies)?;
        }
        Ok(())
    }

    /// Applies a credit within its own family, in this order:
    /// - the corrected documents, due or written off
    /// - the other documents of the family that are due, latest first
    /// - the other documents of the family that are written off, latest first
    ///
    /// If the parent is a child invoice of an event, the corrected documents are that child and its debits. Otherwise they are
    /// the documents that billed the credited amounts: debits and children first, latest first.
    fn allocate_credit_in_family(
        &mut self,
        credit: DocumentRef,
        takes_back: &BTreeSet<DocumentRef>,
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        let credit_document = self.known(credit)?;
        let (family, parent) = (credit_document.family, credit_document.head.parent);
        let child = parent.filter(|parent| self.documents.get(parent).is_some_and(is_child));
        let mut targets: Vec<&BookDocument> = self
            .documents
            .values()
            .filter(|document| document.family == family && document.head.kind != DocumentKind::Credit)
            .filter(|document| document.status.is_issued())
            .collect();
        let turn = |document: &BookDocument| {
            let document_ref = document.head.document_ref;
            match child {
                Some(child) if document_ref == child => Turn::CorrectedFirst,
                Some(child) if document.head.parent == Some(child) => Turn::Corrected,
                None if takes_back.contains(&document_ref) => {
                    let is_added = document.head.kind == DocumentKind::Debit || is_child(document);
                    if is_added { Turn::CorrectedFirst } else { Turn::Corrected }
                }
                _ if document.status == LifecycleStatus::Uncollectible => Turn::WrittenOff,
                _ => Turn::Due,
            }
        };
        targets.sort_by_key(|document| (turn(document), std::cmp::Reverse((document.issue_date, document.head.document_ref))));
        let targets: Vec<DocumentRef> = targets.into_iter().map(|document| document.head.document_ref).collect();
        for target in targets {
            self.apply_most(ApplicationSource::Credit(credit), target, moment.today(), moment, supplies)?;
        }
        Ok(())
    }

    /// Applies the unapplied amount of a source to open documents, earliest due date first. Does nothing if the customer's
    /// balance is applied only by hand.
    fn allocate_to_open_documents(
        &mut self,
        source: ApplicationSource,
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        if !self.applies_balance {
            return Ok(());
        }
        for open in self.open_documents()? {
            if self.unapplied_amount(source)?.minor() == 0 {
                break;
            }
            self.apply_most(source, open, moment.today(), moment, supplies)?;
        }
        Ok(())
    }

    /// Applies the balance to a document, oldest source first. Does nothing if the customer's balance is applied only by hand.
    fn allocate_balance(
        &mut self,
        document_ref: DocumentRef,
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        if !self.applies_balance || self.unapplied.minor() == 0 {
            return Ok(());
        }
        let mut sources: Vec<(NaiveDate, ApplicationSource)> = Vec::new();
        for document in self.documents.values().filter(|document| document.owed().is_ok_and(|owed| owed.unapplied.is_some())) {
            let issue_date = document.issue_date.unwrap_or_else(|| moment.today());
            sources.push((issue_date, ApplicationSource::Credit(document.head.document_ref)));
        }
        for payment in self.payments.values().filter(|payment| payment.kind == PaymentKind::Payment) {
            sources.push((payment.paid_date, ApplicationSource::Payment(payment.payment_ref)));
        }
        sources.sort();
        for (_, source) in sources {
            if self.amount_due(document_ref)?.minor() == 0 {
                break;
            }
            self.apply_most(source, document_ref, moment.today(), moment, supplies)?;
        }
        Ok(())
    }

    /// Returns the open documents, earliest due date first.
    fn open_documents(&self) -> Result<Vec<DocumentRef>, Refusal> {
        let mut open = Vec::new();
        for document in self.documents.values() {
            if document.status == LifecycleStatus::Issued && document.owed()?.amount_due.is_some_and(|due| due.minor() > 0) {
                open.push((document.due_date, document.head.document_ref));
            }
        }
        open.sort();
        Ok(open.into_iter().map(|(_, document_ref)| document_ref).collect())
    }

    /// Voids an issued document.
    ///
    /// # Errors
    /// Returns [`Refusal::Conflict`]:
    /// - `document_paid` if it has payments that aren't reversed
    /// - `credits_applied` if credits are applied to it
    /// - `credit_refunded` for a refunded credit
    pub fn void(
        &mut self,
        document_ref: DocumentRef,
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        let document = self.known(document_ref)?.clone();
        if document.head.kind == DocumentKind::Credit {
            let applied = self.applied_amount(ApplicationSource::Credit(document_ref))?;
            if document.settlement.used != applied {
                let detail = "a refunded credit cannot be voided: reverse the refund first";
                return Err(Refusal::conflict("credit_refunded", detail));
            }
            let reopened =
                self.reverse_applications_of(ApplicationSource::Credit(document_ref), moment.today(), moment, supplies)?;
            self.unapplied = self.unapplied.checked_sub(document.total.unwrap_or(self.zero()))?;
            self.put_void(document_ref)?;
            return self.allocate_balance_to_all(reopened, moment, supplies);
        }
        let is_on_it = |payment: &&Payment| {
            payment.document_ref == document_ref && payment.kind == PaymentKind::Payment && payment.reversal.is_none()
        };
        if self.payments.values().any(|payment| is_on_it(&payment)) || document.settlement.paid.minor() != 0 {
            let detail =
                "a document with payments cannot be voided: first reverse the payments, or apply them to another document";
            return Err(Refusal::conflict("document_paid", detail));
        }
        if document.settlement.credits.minor() != 0 {
            let detail = "a document with applied credits cannot be voided: unapply the credits first";
            return Err(Refusal::conflict("credits_applied", detail));
        }
        self.put_void(document_ref)
    }

    fn put_void(&mut self, document_ref: DocumentRef) -> Result<(), Refusal> {
        let document = self.known_mut(document_ref)?;
        document.status = LifecycleStatus::Void;
        document.notifications += 1;
        Ok(())
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
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) -> Result<PaymentRef, Refusal> {
        let document = self.require_payable_document(document_ref)?;
        let opened = moment.zone.service_date(document.head.created_at);
        let amount = self.amount_of(&facts.amount)?;
        let due = self.amount_due(document_ref)?;
        if amount.minor() > due.minor() && !takes_more {
            let detail = format!(
                "must be at most the amount due, {due}: set `overpayment` to true to add the surplus to the customer's balance"
            );
            return Err(Refusal::field(&["amount"], "above_amount_due", detail));
        }
        let paid_date = date_within("paid_date", facts.paid_date, opened, moment)?;
        let payment_ref = PaymentRef::from_uuid(supplies.next_id());
        let payment = Payment {
            payment_ref,
            kind: PaymentKind::Payment,
            document_ref,
            amount,
            paid_date,
            reference: facts.reference.clone(),
            method: facts.method.clone(),
            metadata: facts.metadata.clone(),
            used: self.zero(),
            reversal: None,
            recorded_at: moment.at,
            recorded_by: moment.by,
            updated_at: moment.at,
        };
        self.unapplied = self.unapplied.checked_add(amount)?;
        self.entries.push(AccountEntry::Recorded(Box::new(payment.clone())));
        self.payments.insert(payment_ref, payment);
        let source = ApplicationSource::Payment(payment_ref);
        self.apply_most(source, document_ref, paid_date, moment, supplies)?;
        self.allocate_to_open_documents(source, moment, supplies)?;
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
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        let payment = self.known_payment(payment_ref)?.clone();
        if payment.reversal.is_some() {
            return Err(Refusal::conflict("already_reversed", "the payment is already reversed"));
        }
        let date = date_within("date", date, payment.paid_date, moment)?;
        let reversal = Reversal { date, reason, recorded_at: moment.at, recorded_by: moment.by };
        let mut reopened = Vec::new();
        match payment.kind {
            PaymentKind::Payment => {
                let source = ApplicationSource::Payment(payment_ref);
                if self.applied_amount(source)? != payment.used {
                    let detail = "part of this payment was refunded: reverse the refund first";
                    return Err(Refusal::conflict("payment_refunded", detail));
                }
                reopened = self.reverse_applications_of(source, date, moment, supplies)?;
                self.unapplied = self.unapplied.checked_sub(payment.amount)?;
            }
            PaymentKind::Refund(source) => self.add_used_amount(source, -payment.amount.minor())?,
        }
        self.entries.push(AccountEntry::Reversed { payment_ref, reversal: reversal.clone() });
        self.known_payment_mut(payment_ref)?.reversal = Some(reversal);
        self.used.insert(payment_ref);
        match payment.kind {
            PaymentKind::Payment => self.allocate_balance_to_all(reopened, moment, supplies),
            PaymentKind::Refund(source) => self.allocate_to_open_documents(source, moment, supplies),
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
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) -> Result<PaymentRef, Refusal> {
        let (document_ref, earliest) = self.source_of(source, moment)?;
        let amount = self.amount_of(&facts.amount)?;
        self.require_unapplied(source, amount)?;
        let paid_date = date_within("paid_date", facts.paid_date, earliest, moment)?;
        let payment_ref = PaymentRef::from_uuid(supplies.next_id());
        let refund = Payment {
            payment_ref,
            kind: PaymentKind::Refund(source),
            document_ref,
            amount,
            paid_date,
            reference: facts.reference.clone(),
            method: facts.method.clone(),
            metadata: facts.metadata.clone(),
            used: self.zero(),
            reversal: None,
            recorded_at: moment.at,
            recorded_by: moment.by,
            updated_at: moment.at,
        };
        self.entries.push(AccountEntry::Recorded(Box::new(refund.clone())));
        self.payments.insert(payment_ref, refund);
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
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        self.source_of(source, moment)?;
        self.require_payable_document(document_ref)?;
        let amount = self.amount_of(amount)?;
        self.require_unapplied(source, amount)?;
        let due = self.amount_due(document_ref)?;
        if amount.minor() > due.minor() {
            let detail = format!("must be at most the amount due of the document, {due}");
            return Err(Refusal::field(&["amount"], "above_amount_due", detail));
        }
        self.put_application(source, document_ref, amount, moment.today(), moment, supplies)
    }

    /// Reverses an application. Its amount stays unapplied until the next document is issued or it is applied by hand.
    ///
    /// # Errors
    /// Returns [`Refusal::Broken`] when the application isn't loaded.
    pub fn unapply(
        &mut self,
        application_ref: ApplicationRef,
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        self.reverse_application(application_ref, moment.today(), moment, supplies)
    }

    /// Writes off the amount due of a document.
    ///
    /// # Errors
    /// Returns [`Refusal::Conflict`] `not_owed` if no amount is due, or `already_written_off`.
    pub fn write_off(
        &mut self,
        document_ref: DocumentRef,
        reason: Option<OneLine>,
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
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
        let on = self.today_after_issue(document_ref, moment)?;
        self.put_write_off(document_ref, amount, on, reason, moment, supplies);
        Ok(())
    }

    /// Returns today, or the document's issue date if the zone moved west since then.
    fn today_after_issue(&self, document_ref: DocumentRef, moment: &DecisionContext) -> Result<NaiveDate, Refusal> {
        let (today, issued) = (moment.today(), self.known(document_ref)?.issue_date);
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
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        let document = self.known(document_ref)?;
        if document.status != LifecycleStatus::Uncollectible {
            return Err(Refusal::conflict("not_written_off", "the document has no write-off"));
        }
        let amount = self.zero().checked_sub(document.owed()?.written_off)?;
        self.known_mut(document_ref)?.status = LifecycleStatus::Issued;
        self.settled.insert(document_ref);
        let on = self.today_after_issue(document_ref, moment)?;
        self.put_write_off(document_ref, amount, on, reason, moment, supplies);
        self.allocate_balance(document_ref, moment, supplies)
    }

    /// Reverses all applications of a source, latest first, and returns the documents they settled.
    fn reverse_applications_of(
        &mut self,
        source: ApplicationSource,
        date: NaiveDate,
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) -> Result<Vec<DocumentRef>, Refusal> {
        let from_it = self.applications.values().filter(|application| application.from == source);
        let taken: Vec<(ApplicationRef, DocumentRef)> =
            from_it.rev().map(|application| (application.application_ref, application.to)).collect();
        for (application_ref, _) in &taken {
            self.reverse_application(*application_ref, date, moment, supplies)?;
        }
        Ok(taken.into_iter().map(|(_, document_ref)| document_ref).collect())
    }

    fn allocate_balance_to_all(
        &mut self,
        reopened: Vec<DocumentRef>,
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        for open in self.open_documents()?.into_iter().filter(|open| reopened.contains(open)) {
            self.allocate_balance(open, moment, supplies)?;
        }
        Ok(())
    }

    /// Applies the smaller of the source's unapplied amount and the document's amount due.
    fn apply_most(
        &mut self,
        source: ApplicationSource,
        document_ref: DocumentRef,
        date: NaiveDate,
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        let most = self.unapplied_amount(source)?.minor().min(self.amount_due(document_ref)?.minor());
        if most <= 0 {
            return Ok(());
        }
        let amount = Money::from_minor(most, self.key.currency);
        self.put_application(source, document_ref, amount, date, moment, supplies)
    }

    fn put_application(
        &mut self,
        from: ApplicationSource,
        to: DocumentRef,
        amount: Money,
        date: NaiveDate,
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        let application_ref = ApplicationRef::from_uuid(supplies.next_id());
        let (recorded_at, recorded_by) = (moment.at, moment.by);
        let application = Application { application_ref, from, to, amount, date, recorded_at, recorded_by };
        self.entries.push(AccountEntry::Applied(application.clone()));
        self.applications.insert(application_ref, application);
        self.add_used_amount(from, amount.minor())?;
        self.add_settled_amount(to, from, amount.minor(), date)?;
        if self.known(to)?.status == LifecycleStatus::Uncollectible {
            let lessened = self.zero().checked_sub(amount)?;
            self.put_write_off(to, lessened, date, None, moment, supplies);
        }
        Ok(())
    }

    fn reverse_application(
        &mut self,
        application_ref: ApplicationRef,
        date: NaiveDate,
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        let taken = self.applications.remove(&application_ref);
        let taken = taken.ok_or_else(|| Refusal::Broken(format!("application {application_ref} isn't in the account")))?;
        self.entries.push(AccountEntry::Unapplied { application_ref, at: moment.at, by: moment.by });
        self.add_used_amount(taken.from, -taken.amount.minor())?;
        self.add_settled_amount(taken.to, taken.from, -taken.amount.minor(), date)?;
        if self.known(taken.to)?.status == LifecycleStatus::Uncollectible {
            self.put_write_off(taken.to, taken.amount, date, None, moment, supplies);
        }
        Ok(())
    }

    fn put_write_off(
        &mut self,
        document_ref: DocumentRef,
        amount: Money,
        date: NaiveDate,
        reason: Option<OneLine>,
        moment: &DecisionContext,
        supplies: &mut impl IdGenerator,
    ) {
        if amount.minor() != 0 {
            let write_off_ref = WriteOffRef::from_uuid(supplies.next_id());
            let (recorded_at, recorded_by) = (moment.at, moment.by);
            let write_off = WriteOff { write_off_ref, document_ref, amount, date, reason, recorded_at, recorded_by };
            self.entries.push(AccountEntry::WrittenOff(write_off));
        }
    }

    /// Adds an amount to the used amount of a source.
    fn add_used_amount(&mut self, source: ApplicationSource, minor: i64) -> Result<(), Refusal> {
        let amount = Money::from_minor(minor, self.key.currency);
        match source {
            ApplicationSource::Credit(credit) => {
                let settlement = &mut self.known_mut(credit)?.settlement;
                settlement.used = settlement.used.checked_add(amount)?;
                self.settled.insert(credit);
            }
            ApplicationSource::Payment(payment_ref) => {
                let payment = self.known_payment_mut(payment_ref)?;
                payment.used = payment.used.checked_add(amount)?;
                self.used.insert(payment_ref);
            }
        }
        self.unapplied = self.unapplied.checked_sub(amount)?;
        Ok(())
    }

    /// Adds an amount of a source to the settlement of a document.
    fn add_settled_amount(
        &mut self,
        document_ref: DocumentRef,
        from: ApplicationSource,
        minor: i64,
        date: NaiveDate,
    ) -> Result<(), Refusal> {
        let amount = Money::from_minor(minor, self.key.currency);
        let document = self.known_mut(document_ref)?;
        let settlement = &mut document.settlement;
        match from {
            ApplicationSource::Credit(_) => settlement.credits = settlement.credits.checked_add(amount)?,
            ApplicationSource::Payment(_) => settlement.paid = settlement.paid.checked_add(amount)?,
        }
        let total = document.total.ok_or_else(|| Refusal::Broken(format!("{document_ref} is settled without a total")))?;
        document.settlement = document.settlement.dated(total, date)?;
        self.settled.insert(document_ref);
        Ok(())
    }

    /// Returns the sum of the applications of a source.
    fn applied_amount(&self, source: ApplicationSource) -> Result<Money, MoneyError> {
        let from_it = self.applications.values().filter(|application| application.from == source);
        Money::sum(self.key.currency, from_it.map(|application| application.amount))
    }

    /// Returns the amount due of a document, including a written-off amount.
    fn amount_due(&self, document_ref: DocumentRef) -> Result<Money, Refusal> {
        let owed = self.known(document_ref)?.owed()?;
        Ok(owed.amount_due.unwrap_or(self.zero()).checked_add(owed.written_off)?)
    }

    /// Returns the amount of a source that is neither applied nor refunded.
    fn unapplied_amount(&self, source: ApplicationSource) -> Result<Money, Refusal> {
        Ok(match source {
            ApplicationSource::Credit(credit) => self.known(credit)?.owed()?.unapplied.unwrap_or(self.zero()),
            ApplicationSource::Payment(payment_ref) => self.known_payment(payment_ref)?.unapplied()?,
        })
    }

    fn require_unapplied(&self, source: ApplicationSource, amount: Money) -> Result<(), Refusal> {
        let left = self.unapplied_amount(source)?;
        if amount.minor() > left.minor() {
            let detail = format!("must be at most the unapplied amount, {left}");
            return Err(Refusal::field(&["amount"], "above_unapplied", detail));
        }
        Ok(())
    }

    /// Returns the document that a source belongs to, and the source's first day.
    fn source_of(&self, source: ApplicationSource, moment: &DecisionContext) -> Result<(DocumentRef, NaiveDate), Refusal> {
        let refused = |detail: &str| Err(Refusal::conflict("not_unapplied", detail));
        match source {
            ApplicationSource::Credit(credit) => {
                let document = self.known(credit)?;
                match (document.head.kind, document.status.is_issued()) {
                    (DocumentKind::Credit, true) => Ok((credit, moment.zone.service_date(document.head.created_at))),
                    (DocumentKind::Credit, false) => refused("only an issued credit can be refunded or applied"),
                    (DocumentKind::Invoice | DocumentKind::Debit, _) => {
                        refused("an invoice or a debit cannot be refunded or applied: use one of its payments, or a credit")
                    }
                }
            }
            ApplicationSource::Payment(payment_ref) => {
                let payment = self.known_payment(payment_ref)?;
                match (payment.kind, &payment.reversal) {
                    (PaymentKind::Refund(_), _) => refused("a refund can only be reversed"),
                    (PaymentKind::Payment, Some(_)) => refused("the payment is reversed"),
                    (PaymentKind::Payment, None) => Ok((payment.document_ref, payment.paid_date)),
                }
            }
        }
    }

    /// Returns the document if it can be paid.
    fn require_payable_document(&self, document_ref: DocumentRef) -> Result<&BookDocument, Refusal> {
        let document = self.known(document_ref)?;
        if document.head.kind == DocumentKind::Credit || !document.status.is_issued() {
            let detail = "only an issued invoice or debit has an amount due";
            return Err(Refusal::conflict("not_owed", detail));
        }
        Ok(document)
    }

    /// Parses an amount of the account's currency, which must be above zero.
    ///
    /// # Errors
    /// Returns [`Refusal::Invalid`] for `amount`.
    pub fn amount_of(&self, text: &str) -> Result<Money, Refusal> {
        let currency = self.key.currency;
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

    fn zero(&self) -> Money {
        Money::zero(self.key.currency)
    }

    fn known(&self, document_ref: DocumentRef) -> Result<&BookDocument, Refusal> {
        let document = self.documents.get(&document_ref);
        document.ok_or_else(|| Refusal::Broken(format!("document {document_ref} isn't in the account")))
    }

    fn known_mut(&mut self, document_ref: DocumentRef) -> Result<&mut BookDocument, Refusal> {
        let document = self.documents.get_mut(&document_ref);
        let document = document.ok_or_else(|| Refusal::Broken(format!("document {document_ref} isn't in the account")))?;
        if let Entry::Vacant(first) = self.before.entry(document_ref) {
            first.insert(document.owed()?);
        }
        Ok(document)
    }

    fn known_payment(&self, payment_ref: PaymentRef) -> Result<&Payment, Refusal> {
        let payment = self.payments.get(&payment_ref);
        payment.ok_or_else(|| Refusal::Broken(format!("payment {payment_ref} isn't in the account")))
    }

    fn known_payment_mut(&mut self, payment_ref: PaymentRef) -> Result<&mut Payment, Refusal> {
        let payment = self.payments.get_mut(&payment_ref);
        payment.ok_or_else(|| Refusal::Broken(format!("payment {payment_ref} isn't in the account")))
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
    moment: &DecisionContext,
) -> Result<NaiveDate, Refusal> {
    let latest = day_after(moment.today()).max(earliest);
    let date = date.unwrap_or_else(|| moment.today().max(earliest));
    if (earliest..=latest).contains(&date) {
        return Ok(date);
    }
    Err(Refusal::field(&[field], "out_of_range", format!("must be from {earliest} to {latest}")))
}

/// Returns the inconsistencies of a fully loaded account, one sentence each. `written_off` is the sum of its write-offs. Checks
/// for negative amounts, stored sums that differ from the applications, and the equation of billing rules 9.
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`] when an amount is out of range.
pub fn check_account(account: &ReceivablesAccount, written_off: impl Into<MoneySum>) -> Result<Vec<String>, Refusal> {
    let written_off = written_off.into();
    let mut found = Vec::new();
    let mut to: BTreeMap<(DocumentRef, bool), i128> = BTreeMap::new();
    let mut from: BTreeMap<ApplicationSource, i128> = BTreeMap::new();
    for application in account.applications() {
        let amount = i128::from(application.amount.minor());
        if amount <= 0 {
            found.push(format!("application {}: it is of {amount}", application.application_ref));
        }
        *to.entry((application.to, matches!(application.from, ApplicationSource::Payment(_)))).or_default() += amount;
        *from.entry(application.from).or_default() += amount;
    }
    let (mut billed, mut moved, mut owed, mut given_up) = (0_i128, 0_i128, 0_i128, 0_i128);
    let mut unapplied = 0_i128;
    for payment in account.payments().filter(|payment| payment.reversal.is_none()) {
        match payment.kind {
            PaymentKind::Payment => {
                moved -= i128::from(payment.amount.minor());
                unapplied += i128::from(payment.unapplied()?.minor());
            }
            PaymentKind::Refund(source) => {
                moved += i128::from(payment.amount.minor());
                *from.entry(source).or_default() += i128::from(payment.amount.minor());
            }
        }
    }
    for payment in account.payments().filter(|payment| payment.kind == PaymentKind::Payment) {
        let used = from.remove(&ApplicationSource::Payment(payment.payment_ref)).unwrap_or(0);
        let allowed = if payment.reversal.is_none() { i128::from(payment.amount.minor()) } else { 0 };
        if used != i128::from(payment.used.minor()) || used < 0 || used > allowed {
            let noted = payment.used.minor();
            found
                .push(format!("payment {}: {used} of {allowed} are applied or refunded, {noted} are noted", payment.payment_ref));
        }
    }
    for document in account.documents() {
        let number = &document.head.number;
        let document_ref = document.head.document_ref;
        let Some(total) = document.total.filter(|_| document.status.is_issued()) else { continue };
        let settlement = &document.settlement;
        let is_credit = document.head.kind == DocumentKind::Credit;
        billed += i128::from(total.minor()) * if is_credit { -1 } else { 1 };
        let paid = to.remove(&(document_ref, true)).unwrap_or(0);
        let credits = to.remove(&(document_ref, false)).unwrap_or(0);
        let used = from.remove(&ApplicationSource::Credit(document_ref)).unwrap_or(0);
        let noted = [settlement.paid, settlement.credits, settlement.used].map(|amount| i128::from(amount.minor()));
        if noted != [paid, credits, used] {
            found.push(format!(
                "{number}: payments, credits and uses of {noted:?} are noted, {:?} are there",
                [paid, credits, used]
            ));
        }
        let of = document.owed()?;
        let amounts = [of.amount_due.unwrap_or(account.zero()), of.written_off, of.unapplied.unwrap_or(account.zero())];
        if amounts.iter().any(|amount| amount.minor() < 0) {
            found.push(format!("{number}: an amount below zero is owed by it: {amounts:?}"));
        }
        owed += i128::from(amounts[0].minor());
        given_up += i128::from(amounts[1].minor());
        unapplied += i128::from(amounts[2].minor());
        let is_settled = !is_credit && settlement.rest(total)?.minor() == 0;
        if settlement.paid_date.is_some() != is_settled {
            found.push(format!("{number}: its paid date is {:?}", settlement.paid_date));
        }
    }
    if let Some(((document_ref, _), minor)) = to.first_key_value() {
        found.push(format!("{minor} are applied to {document_ref}, which isn't owed"));
    }
    if let Some((source, minor)) = from.first_key_value() {
        found.push(format!("{minor} are used of {source:?}, which isn't there"));
    }
    if unapplied != account.unapplied.minor() {
        found.push(format!("{unapplied} are unapplied, {} are noted", account.unapplied.minor()));
    }
    if given_up != written_off.minor() {
        found.push(format!("{given_up} are written off, {} are noted", written_off.minor()));
    }
    if billed + moved != owed + given_up - unapplied {
        found.push(format!("billed {billed} and moved {moved}, but owed {owed}, given up {given_up}, unapplied {unapplied}"));
    }
    Ok(found)
}
