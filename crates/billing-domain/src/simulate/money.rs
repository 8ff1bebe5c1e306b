//! Money in the life of a contract: what credits and payments settle (billing rules 9).

use std::collections::BTreeMap;

use uuid::Uuid;

use super::life::{Life, unknown};
use crate::account::{AccountKey, Source};
use crate::calendar::{TimeZone, Timestamp};
use crate::document::{BookDocument, Standing};
use crate::ledger::receive::{Account, Issue, Moment, PaymentFacts};
use crate::ledger::{ContractBook, Entry};
use crate::money::Money;
use crate::refs::{DocumentRef, PaymentRef};
use crate::refusal::Refusal;

/// The receivables accounts of a contract's customer, and the payments that have names.
#[derive(Clone, Debug, Default)]
pub(super) struct Accounts {
    accounts: BTreeMap<AccountKey, Account>,
    payments: BTreeMap<String, (AccountKey, PaymentRef)>,
}

/// What is decided on an account.
type Decision<'a, T> = &'a mut dyn FnMut(&mut Account, &Moment, &mut dyn FnMut() -> Uuid) -> Result<T, Refusal>;

impl Accounts {
    /// Takes up what a decision of the ledger issued and put out of force.
    pub(super) fn take_up(
        &mut self,
        book: &mut ContractBook,
        entries: &[Entry],
        now: Timestamp,
        ids: &mut dyn FnMut() -> Uuid,
    ) -> Result<(), Refusal> {
        let mut affected: BTreeMap<AccountKey, (Vec<Issue>, Vec<DocumentRef>)> = BTreeMap::new();
        for entry in entries {
            let (Entry::Issued { document_ref, .. } | Entry::Voided { document_ref, .. }) = entry else { continue };
            let Some(document) = book.document(*document_ref).cloned() else { continue };
            let (issued, voided) = affected.entry(AccountKey::of(&document)).or_default();
            match entry {
                Entry::Voided { .. } => voided.push(*document_ref),
                _ => issued.push(Issue { takes_back: book.takes_back(*document_ref), document }),
            }
        }
        for (key, (issued, voided)) in affected {
            let mut issued = Some(issued);
            self.decide(book, &key, now, ids, &mut |account, moment, mut ids| {
                for document_ref in &voided {
                    account.void(*document_ref, moment, &mut ids)?;
                }
                account.issue(issued.take().unwrap_or_default(), moment, &mut ids)
            })?;
        }
        Ok(())
    }

    /// Makes a decision on an account, and tells the book what documents are settled by it.
    fn decide<T>(
        &mut self,
        book: &mut ContractBook,
        key: &AccountKey,
        now: Timestamp,
        ids: &mut dyn FnMut() -> Uuid,
        decide: Decision<'_, T>,
    ) -> Result<T, Refusal> {
        let applies_balance = book.customer.profile.apply_balance;
        let account = self
            .accounts
            .entry(key.clone())
            .or_insert_with(|| Account::new(key.clone(), applies_balance, Money::zero(key.currency)));
        account.set_applies_balance(applies_balance);
        let zone = book.entity(&key.entity_ref).map_or(TimeZone::UTC, |entity| entity.profile.time_zone);
        let decided = decide(account, &Moment { at: now, zone, by: Life::by() }, ids)?;
        account.take_entries()?;
        book.note_settled(account.documents().filter(|document| document.standing != Standing::Draft));
        Ok(decided)
    }

    /// Returns a document as its account has it; `None` of one that wasn't issued.
    pub(super) fn settled(&self, document: &BookDocument) -> Option<&BookDocument> {
        let account = self.accounts.get(&AccountKey::of(document))?;
        account.documents().find(|settled| settled.head.document_ref == document.head.document_ref)
    }

    /// Returns what of credits and payments is neither applied nor refunded, in minor units.
    pub(super) fn unapplied(&self, currency: crate::money::Currency) -> i128 {
        let accounts = self.accounts.values().filter(|account| account.key().currency == currency);
        accounts.map(|account| account.unapplied().minor()).sum()
    }
}

impl Life {
    fn on_account<T>(&mut self, key: &AccountKey, decide: Decision<'_, T>) -> Result<T, Refusal> {
        let mut accounts = std::mem::take(&mut self.accounts);
        let decided = self.decide(|life, ids| accounts.decide(&mut life.book, key, life.now, ids, decide));
        self.accounts = accounts;
        decided
    }

    /// Returns the account of the document with a number, and its reference.
    fn receivable(&self, number: &str) -> Result<(AccountKey, DocumentRef), Refusal> {
        self.numbered(number).map(|document| (AccountKey::of(document), document.head.document_ref))
    }

    /// Records a payment of a document; `takes_more` lets it be more than is due.
    pub(super) fn pay(&mut self, number: &str, amount: &str, takes_more: bool) -> Result<(), Refusal> {
        let (key, document_ref) = self.receivable(number)?;
        let facts = facts(amount);
        let payment_ref = self
            .on_account(&key, &mut |account, moment, mut ids| account.pay(document_ref, &facts, takes_more, moment, &mut ids))?;
        if let Some(name) = self.name.clone() {
            self.accounts.payments.insert(name, (key, payment_ref));
        }
        Ok(())
    }

    /// Reverses the payment or refund with a name.
    pub(super) fn reverse(&mut self, name: &str) -> Result<(), Refusal> {
        let (key, payment_ref) = self.accounts.payments.get(name).cloned().ok_or_else(|| unknown("payment", name))?;
        self.on_account(&key, &mut |account, moment, mut ids| account.reverse(payment_ref, None, None, moment, &mut ids))
    }

    /// Returns the account and the source with a name: a payment's, or the number of a credit.
    fn source(&self, name: &str) -> Result<(AccountKey, Source), Refusal> {
        match self.accounts.payments.get(name) {
            Some((key, payment_ref)) => Ok((key.clone(), Source::Payment(*payment_ref))),
            None => self.receivable(name).map(|(key, document_ref)| (key, Source::Credit(document_ref))),
        }
    }

    /// Pays a credit or a payment out.
    pub(super) fn refund(&mut self, source: &str, amount: &str) -> Result<(), Refusal> {
        let (key, source) = self.source(source)?;
        let facts = facts(amount);
        let payment_ref =
            self.on_account(&key, &mut |account, moment, mut ids| account.refund(source, &facts, moment, &mut ids))?;
        if let Some(name) = self.name.clone() {
            self.accounts.payments.insert(name, (key, payment_ref));
        }
        Ok(())
    }

    /// Applies an amount of a credit or a payment to a document.
    pub(super) fn apply(&mut self, source: &str, number: &str, amount: &str) -> Result<(), Refusal> {
        let ((key, source), (_, to)) = (self.source(source)?, self.receivable(number)?);
        self.on_account(&key, &mut |account, moment, mut ids| account.apply(source, to, amount, moment, &mut ids))
    }

    /// Takes back what of a credit or a payment is applied to a document.
    pub(super) fn unapply(&mut self, source: &str, number: &str) -> Result<(), Refusal> {
        let ((key, from), (_, to)) = (self.source(source)?, self.receivable(number)?);
        self.on_account(&key, &mut |account, moment, mut ids| {
            let found = account.applications().find(|application| application.from == from && application.to == to);
            let application_ref = found.map(|found| found.application_ref).ok_or_else(|| unknown("application", number))?;
            account.unapply(application_ref, moment, &mut ids)
        })
    }

    /// Writes off the amount due of a document.
    pub(super) fn write_off(&mut self, number: &str) -> Result<(), Refusal> {
        let (key, document_ref) = self.receivable(number)?;
        self.on_account(&key, &mut |account, moment, mut ids| account.write_off(document_ref, None, moment, &mut ids))
    }

    /// Reverses the write-off of a document.
    pub(super) fn undo_write_off(&mut self, number: &str) -> Result<(), Refusal> {
        let (key, document_ref) = self.receivable(number)?;
        self.on_account(&key, &mut |account, moment, mut ids| account.undo_write_off(document_ref, None, moment, &mut ids))
    }
}

fn facts(amount: &str) -> PaymentFacts {
    PaymentFacts { amount: amount.to_owned(), paid_date: None, reference: None, method: None }
}
