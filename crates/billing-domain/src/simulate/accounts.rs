//! The receivables accounts of a simulation.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::access::Actor;
use crate::calendar::{TimeZone, Timestamp};
use crate::document::{AppliedAtIssue, AtIssue, BookDocument, LifecycleStatus};
use crate::ledger::receivables::{DecisionContext, Issuance, ReceivablesAccount};
use crate::ledger::{ContractBook, Entry};
use crate::money::Money;
use crate::receivables::AccountKey;
use crate::refs::{DocumentRef, PaymentRef};
use crate::refusal::Refusal;

/// The receivables accounts of a contract's customer, and the named payments.
#[derive(Clone, Debug, Default)]
pub(super) struct Accounts {
    accounts: BTreeMap<AccountKey, ReceivablesAccount>,
    pub(super) payments: BTreeMap<String, (AccountKey, PaymentRef)>,
}

/// A decision on an account.
pub(super) type Decision<'a, T> =
    &'a mut dyn FnMut(&mut ReceivablesAccount, &DecisionContext, &mut dyn FnMut() -> Uuid) -> Result<T, Refusal>;

impl Accounts {
    /// Records the documents that a decision of the ledger issued or voided.
    pub(super) fn take_up(
        &mut self,
        book: &mut ContractBook,
        entries: &mut [Entry],
        now: Timestamp,
        ids: &mut dyn FnMut() -> Uuid,
    ) -> Result<(), Refusal> {
        let mut affected: BTreeMap<AccountKey, (Vec<Issuance>, Vec<DocumentRef>)> = BTreeMap::new();
        for entry in &*entries {
            let (Entry::Issued { document_ref, .. } | Entry::Voided { document_ref, .. }) = entry else { continue };
            let Some(document) = book.document(*document_ref).cloned() else { continue };
            let (issued, voided) = affected.entry(AccountKey::of(&document)).or_default();
            match entry {
                Entry::Voided { .. } => voided.push(*document_ref),
                _ => issued.push(Issuance { takes_back: book.takes_back(*document_ref), document }),
            }
        }
        let mut applied: BTreeMap<DocumentRef, Vec<(Option<DocumentRef>, Money)>> = BTreeMap::new();
        for (key, (issued, voided)) in affected {
            let frozen: Vec<DocumentRef> = issued.iter().map(|issuance| issuance.document.head.document_ref).collect();
            let mut issued = Some(issued);
            self.decide(book, &key, now, ids, &mut |account, context, mut ids| {
                for document_ref in &voided {
                    account.void(*document_ref, context, &mut ids)?;
                }
                account.issue(issued.take().unwrap_or_default(), context, &mut ids)?;
                applied.extend(frozen.iter().map(|document_ref| (*document_ref, account.newly_applied(*document_ref))));
                Ok(())
            })?;
        }
        for entry in entries {
            let Entry::Issued { document_ref, issued, .. } = entry else { continue };
            let of_document = applied.remove(document_ref).unwrap_or_default();
            let named = of_document.into_iter().filter_map(|(other, amount)| {
                let document_number = match other {
                    Some(other) => Some(book.document(other)?.head.number.clone()),
                    None => None,
                };
                Some(AppliedAtIssue { document_number, amount })
            });
            issued.at_issue = Some(AtIssue::new(issued.content.total, named.collect())?);
        }
        Ok(())
    }

    /// Runs a decision on an account and updates the settlement of documents in the book.
    pub(super) fn decide<T>(
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
            .or_insert_with(|| ReceivablesAccount::new(key.clone(), applies_balance, Money::zero(key.currency)));
        account.set_applies_balance(applies_balance);
        let zone = book.entity(&key.entity_ref).map_or(TimeZone::UTC, |entity| entity.profile.time_zone);
        let decided = decide(account, &DecisionContext { at: now, zone, by: Actor::Service }, ids)?;
        account.take_entries()?;
        book.note_settled(account.documents().filter(|document| document.status != LifecycleStatus::Draft));
        Ok(decided)
    }

    /// Returns a document as stored in its account, or `None` if it was not issued.
    pub(super) fn settled(&self, document: &BookDocument) -> Option<&BookDocument> {
        let account = self.accounts.get(&AccountKey::of(document))?;
        account.documents().find(|settled| settled.head.document_ref == document.head.document_ref)
    }

    /// Returns the unapplied amount of credits and payments in minor units: neither applied nor refunded.
    pub(super) fn unapplied(&self, currency: crate::money::Currency) -> i128 {
        let accounts = self.accounts.values().filter(|account| account.key().currency == currency);
        accounts.map(|account| account.unapplied().minor()).sum()
    }
}
