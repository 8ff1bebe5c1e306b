//! Payments, applications and write-offs during the life of a contract (billing rules 9).

use super::accounts::Decision;
use super::life::Life;
use super::setup::unknown;
use crate::ledger::receivables::NewPayment;
use crate::metadata::Metadata;
use crate::receivables::{AccountKey, ApplicationSource};
use crate::refs::{DocumentRef, PaymentRef};
use crate::refusal::Refusal;

impl Life {
    fn on_account<T>(&mut self, key: &AccountKey, decide: Decision<'_, T>) -> Result<T, Refusal> {
        let mut accounts = std::mem::take(&mut self.accounts);
        let decided = self.decide(|life, ids| accounts.decide(&mut life.book, key, life.now, ids, decide));
        self.accounts = accounts;
        decided
    }

    /// Returns the account of the document with a number, and the document's reference.
    fn receivable(&self, number: &str) -> Result<(AccountKey, DocumentRef), Refusal> {
        self.numbered(number).map(|document| (AccountKey::of(document), document.head.document_ref))
    }

    /// Records a payment of a document. With `takes_more`, the payment may exceed the amount due.
    pub(super) fn pay(&mut self, number: &str, amount: &str, takes_more: bool) -> Result<(), Refusal> {
        let (key, document_ref) = self.receivable(number)?;
        let facts = facts(amount);
        let payment_ref = self.on_account(&key, &mut |account, context, mut ids| {
            account.record_payment(document_ref, &facts, takes_more, context, &mut ids)
        })?;
        self.name_payment(key, payment_ref);
        Ok(())
    }

    /// Records a deposit to the entity and in the currency of the first product.
    pub(super) fn deposit(&mut self, amount: &str) -> Result<(), Refusal> {
        let key = self.first_account()?;
        let facts = facts(amount);
        let payment_ref =
            self.on_account(&key, &mut |account, context, mut ids| account.record_deposit(&facts, context, &mut ids))?;
        self.name_payment(key, payment_ref);
        Ok(())
    }

    /// Gives a payment or refund the name of the step, if it has one.
    fn name_payment(&mut self, key: AccountKey, payment_ref: PaymentRef) {
        if let Some(name) = self.name.clone() {
            self.accounts.payments.insert(name, (key, payment_ref));
        }
    }

    /// Reverses the payment or refund with a name.
    pub(super) fn reverse(&mut self, name: &str) -> Result<(), Refusal> {
        let (key, payment_ref) = self.accounts.payments.get(name).cloned().ok_or_else(|| unknown("payment", name))?;
        self.on_account(&key, &mut |account, context, mut ids| account.reverse(payment_ref, None, None, context, &mut ids))
    }

    /// Returns the account and the source with a name: a payment by name or a credit by number.
    fn source(&self, name: &str) -> Result<(AccountKey, ApplicationSource), Refusal> {
        match self.accounts.payments.get(name) {
            Some((key, payment_ref)) => Ok((key.clone(), ApplicationSource::Payment(*payment_ref))),
            None => self.receivable(name).map(|(key, document_ref)| (key, ApplicationSource::Credit(document_ref))),
        }
    }

    /// Refunds an amount of a credit or a payment.
    pub(super) fn refund(&mut self, source: &str, amount: &str) -> Result<(), Refusal> {
        let (key, source) = self.source(source)?;
        let facts = facts(amount);
        let payment_ref =
            self.on_account(&key, &mut |account, context, mut ids| account.refund(source, &facts, context, &mut ids))?;
        self.name_payment(key, payment_ref);
        Ok(())
    }

    /// Applies an amount of a credit or a payment to a document.
    pub(super) fn apply(&mut self, source: &str, number: &str, amount: &str) -> Result<(), Refusal> {
        let ((key, source), (_, to)) = (self.source(source)?, self.receivable(number)?);
        self.on_account(&key, &mut |account, context, mut ids| account.apply(source, to, amount, context, &mut ids))
    }

    /// Reverses the applications of a credit or a payment to a document.
    pub(super) fn unapply(&mut self, source: &str, number: &str) -> Result<(), Refusal> {
        let ((key, from), (_, to)) = (self.source(source)?, self.receivable(number)?);
        self.on_account(&key, &mut |account, context, mut ids| {
            let found = account.applications().find(|application| application.from == from && application.to == to);
            let application_ref = found.map(|found| found.application_ref).ok_or_else(|| unknown("application", number))?;
            account.unapply(application_ref, context, &mut ids)
        })
    }

    /// Writes off the amount due of a document.
    pub(super) fn write_off(&mut self, number: &str) -> Result<(), Refusal> {
        let (key, document_ref) = self.receivable(number)?;
        self.on_account(&key, &mut |account, context, mut ids| account.write_off(document_ref, None, context, &mut ids))
    }

    /// Reverses the write-off of a document.
    pub(super) fn undo_write_off(&mut self, number: &str) -> Result<(), Refusal> {
        let (key, document_ref) = self.receivable(number)?;
        self.on_account(&key, &mut |account, context, mut ids| account.reverse_write_off(document_ref, None, context, &mut ids))
    }
}

fn facts(amount: &str) -> NewPayment {
    NewPayment { amount: amount.to_owned(), paid_date: None, reference: None, method: None, metadata: Metadata::default() }
}
