//! The amounts of an account: what is due, what is unapplied, and the entries that change them.

use super::*;

impl ReceivablesAccount {
    pub(super) fn allocate_balance_to_all(
        &mut self,
        reopened: Vec<DocumentRef>,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        for open in self.open_documents()?.into_iter().filter(|open| reopened.contains(open)) {
            self.allocate_balance(open, context, id_generator)?;
        }
        Ok(())
    }

    /// Applies the smaller of the source's unapplied amount and the document's amount due.
    pub(super) fn apply_most(
        &mut self,
        source: ApplicationSource,
        document_ref: DocumentRef,
        date: NaiveDate,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        let most = self.unapplied_amount(source)?.minor().min(self.amount_due(document_ref)?.minor());
        if most <= 0 {
            return Ok(());
        }
        let amount = Money::from_minor(most, self.key.currency);
        self.put_application(source, document_ref, amount, date, context, id_generator)
    }

    /// Adds a payment or refund of an amount and a date.
    pub(super) fn put_payment(
        &mut self,
        kind: PaymentKind,
        document_ref: Option<DocumentRef>,
        (amount, paid_date): (Money, NaiveDate),
        facts: &NewPayment,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> PaymentRef {
        let payment_ref = PaymentRef::from_uuid(id_generator.next_id());
        let payment = Payment {
            payment_ref,
            kind,
            document_ref,
            amount,
            paid_date,
            reference: facts.reference.clone(),
            method: facts.method.clone(),
            metadata: facts.metadata.clone(),
            used: self.zero(),
            reversal: None,
            recorded_at: context.at,
            recorded_by: context.by,
            updated_at: context.at,
        };
        self.entries.push(AccountEntry::Recorded(Box::new(payment.clone())));
        self.payments.insert(payment_ref, payment);
        payment_ref
    }

    pub(super) fn put_application(
        &mut self,
        from: ApplicationSource,
        to: DocumentRef,
        amount: Money,
        date: NaiveDate,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        let application_ref = ApplicationRef::from_uuid(id_generator.next_id());
        let (recorded_at, recorded_by) = (context.at, context.by);
        let application = Application { application_ref, from, to, amount, date, recorded_at, recorded_by };
        self.entries.push(AccountEntry::Applied(application.clone()));
        self.applications.insert(application_ref, application);
        self.add_used_amount(from, amount.minor())?;
        self.add_settled_amount(to, from, amount.minor(), date)?;
        if self.known(to)?.status == LifecycleStatus::Uncollectible {
            let lessened = self.zero().checked_sub(amount)?;
            self.put_write_off(to, lessened, date, None, context, id_generator);
        }
        Ok(())
    }

    pub(super) fn reverse_application(
        &mut self,
        application_ref: ApplicationRef,
        date: NaiveDate,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        let taken = self.applications.remove(&application_ref);
        let taken = taken.ok_or_else(|| Refusal::Broken(format!("application {application_ref} isn't in the account")))?;
        self.entries.push(AccountEntry::Unapplied { application_ref, at: context.at, by: context.by });
        self.add_used_amount(taken.from, -taken.amount.minor())?;
        self.add_settled_amount(taken.to, taken.from, -taken.amount.minor(), date)?;
        if self.known(taken.to)?.status == LifecycleStatus::Uncollectible {
            self.put_write_off(taken.to, taken.amount, date, None, context, id_generator);
        }
        Ok(())
    }

    pub(super) fn put_write_off(
        &mut self,
        document_ref: DocumentRef,
        amount: Money,
        date: NaiveDate,
        reason: Option<OneLine>,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) {
        if amount.minor() != 0 {
            let write_off_ref = WriteOffRef::from_uuid(id_generator.next_id());
            let (recorded_at, recorded_by) = (context.at, context.by);
            let write_off = WriteOff { write_off_ref, document_ref, amount, date, reason, recorded_at, recorded_by };
            self.entries.push(AccountEntry::WrittenOff(write_off));
        }
    }

    /// Adds an amount to the used amount of a source.
    pub(super) fn add_used_amount(&mut self, source: ApplicationSource, minor: i64) -> Result<(), Refusal> {
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
    pub(super) fn applied_amount(&self, source: ApplicationSource) -> Result<Money, MoneyError> {
        let from_it = self.applications.values().filter(|application| application.from == source);
        Money::sum(self.key.currency, from_it.map(|application| application.amount))
    }

    /// Returns the amount due of a document, including a written-off amount.
    pub(super) fn amount_due(&self, document_ref: DocumentRef) -> Result<Money, Refusal> {
        let owed = self.known(document_ref)?.owed()?;
        Ok(owed.amount_due.unwrap_or(self.zero()).checked_add(owed.written_off)?)
    }

    /// Returns the amount of a source that is neither applied nor refunded.
    pub(super) fn unapplied_amount(&self, source: ApplicationSource) -> Result<Money, Refusal> {
        Ok(match source {
            ApplicationSource::Credit(credit) => self.known(credit)?.owed()?.unapplied.unwrap_or(self.zero()),
            ApplicationSource::Payment(payment_ref) => self.known_payment(payment_ref)?.unapplied()?,
        })
    }

    pub(super) fn require_unapplied(&self, source: ApplicationSource, amount: Money) -> Result<(), Refusal> {
        let left = self.unapplied_amount(source)?;
        if amount.minor() > left.minor() {
            let detail = format!("must be at most the unapplied amount, {left}");
            return Err(Refusal::field(&["amount"], "above_unapplied", detail));
        }
        Ok(())
    }

    /// Returns the document that a source belongs to, if there is one, and the source's first day.
    pub(super) fn source_of(
        &self,
        source: ApplicationSource,
        context: &DecisionContext,
    ) -> Result<(Option<DocumentRef>, NaiveDate), Refusal> {
        let refused = |detail: &str| Err(Refusal::conflict("not_unapplied", detail));
        match source {
            ApplicationSource::Credit(credit) => {
                let document = self.known(credit)?;
                match (document.head.kind, document.status.is_issued()) {
                    (DocumentKind::Credit, true) => Ok((Some(credit), context.zone.service_date(document.head.created_at))),
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
    pub(super) fn require_payable_document(&self, document_ref: DocumentRef) -> Result<&BookDocument, Refusal> {
        let document = self.known(document_ref)?;
        if document.head.kind == DocumentKind::Credit || !document.status.is_issued() {
            let detail = "only an issued invoice or debit has an amount due";
            return Err(Refusal::conflict("not_owed", detail));
        }
        Ok(document)
    }
}
