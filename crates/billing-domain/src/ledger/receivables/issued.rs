//! What issuing and voiding a document settles.

use super::*;

impl ReceivablesAccount {
    /// Adds documents that are issued together. Each credit settles its own family. Its remainder is applied to open documents,
    /// and the balance is applied to the issued documents. The account must hold the families of the credits, the open
    /// documents if there is a credit, and the unapplied amounts.
    ///
    /// # Errors
    /// Returns [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`].
    pub fn issue(
        &mut self,
        issued: Vec<Issuance>,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
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
                document.settlement = document.settlement.dated(total, context.today())?;
                if document.settlement.paid_date.is_some() {
                    self.settled.insert(document_ref);
                }
                debts.push(document_ref);
            }
            self.documents.insert(document_ref, document);
        }
        for (credit, takes_back) in &credits {
            self.allocate_credit_in_family(*credit, takes_back, context, id_generator)?;
        }
        for (credit, _) in &credits {
            self.allocate_to_open_documents(ApplicationSource::Credit(*credit), context, id_generator)?;
        }
        for debt in debts {
            self.allocate_balance(debt, context, id_generator)?;
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
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
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
            self.apply_most(ApplicationSource::Credit(credit), target, context.today(), context, id_generator)?;
        }
        Ok(())
    }

    /// Applies the unapplied amount of a source to open documents, earliest due date first. Does nothing if the customer's
    /// balance is applied only by hand.
    pub(super) fn allocate_to_open_documents(
        &mut self,
        source: ApplicationSource,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        if !self.applies_balance {
            return Ok(());
        }
        for open in self.open_documents()? {
            if self.unapplied_amount(source)?.minor() == 0 {
                break;
            }
            self.apply_most(source, open, context.today(), context, id_generator)?;
        }
        Ok(())
    }

    /// Applies the balance to a document, oldest source first. Does nothing if the customer's balance is applied only by hand.
    pub(super) fn allocate_balance(
        &mut self,
        document_ref: DocumentRef,
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        if !self.applies_balance || self.unapplied.minor() == 0 {
            return Ok(());
        }
        let mut sources: Vec<(NaiveDate, ApplicationSource)> = Vec::new();
        for document in self.documents.values().filter(|document| document.owed().is_ok_and(|owed| owed.unapplied.is_some())) {
            let issue_date = document.issue_date.unwrap_or_else(|| context.today());
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
            self.apply_most(source, document_ref, context.today(), context, id_generator)?;
        }
        Ok(())
    }

    /// Returns the open documents, earliest due date first.
    pub(super) fn open_documents(&self) -> Result<Vec<DocumentRef>, Refusal> {
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
        context: &DecisionContext,
        id_generator: &mut impl IdGenerator,
    ) -> Result<(), Refusal> {
        let document = self.known(document_ref)?.clone();
        if document.head.kind == DocumentKind::Credit {
            let applied = self.applied_amount(ApplicationSource::Credit(document_ref))?;
            if document.settlement.used != applied {
                let detail = "a refunded credit cannot be voided: reverse the refund first";
                return Err(Refusal::conflict("credit_refunded", detail));
            }
            let reopened =
                self.reverse_applications_of(ApplicationSource::Credit(document_ref), context.today(), context, id_generator)?;
            self.unapplied = self.unapplied.checked_sub(document.total.unwrap_or(self.zero()))?;
            self.put_void(document_ref)?;
            return self.allocate_balance_to_all(reopened, context, id_generator);
        }
        let is_on_it = |payment: &&Payment| {
            payment.document_ref == Some(document_ref) && payment.kind == PaymentKind::Payment && payment.reversal.is_none()
        };
        if self.payments.values().any(|payment| is_on_it(&payment)) || document.settlement.paid.minor() != 0 {
            let detail = "a document with payments cannot be voided: first reverse its own payments, and unapply the amounts of \
                          deposits and of other payments";
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
}
