//! The documents of a contract, for assertions: numbers, dates, lines, taxes and amounts due.

use std::collections::BTreeMap;

use super::document::{SimulatedDocument, overview};
use super::life::{Frozen, Life};
use crate::calendar::Timestamp;
use crate::contract::{Contract, ContractState};
use crate::credit::CreditBalance;
use crate::document::lines::sign;
use crate::document::totals::DocumentContent;
use crate::ledger::ContractBook;
use crate::ledger::issue::Failure;
use crate::ledger::limit;
use crate::ledger::overdue::{self, Overdue, VersionTimes};
use crate::ledger::preview::{self, DocumentPreview};
use crate::money::{AmountOutOfRange, Currency, Money};
use crate::receivables::AccountKey;
use crate::refs::DocumentRef;
use crate::refusal::Refusal;

/// The documents of a contract at an instant.
#[derive(Clone, Debug)]
pub struct Bill {
    book: ContractBook,
    now: Timestamp,
    documents: Vec<SimulatedDocument>,
    void: Vec<SimulatedDocument>,
    events: BTreeMap<String, DocumentRef>,
    /// The account of the first product.
    account: Option<AccountKey>,
    unapplied: Money,
    failed: Vec<Failure>,
    versions: VersionTimes,
}

impl Bill {
    pub(super) fn of(mut life: Life) -> Result<Self, Refusal> {
        life.learn()?;
        life.require_lawful()?;
        let (mut documents, mut void) = (Vec::new(), Vec::new());
        for document in life.book.documents() {
            let document_ref = document.head.document_ref;
            let note = match life.frozen.get(&document_ref) {
                Some(Frozen::Issued(issued)) => issued.note.as_ref().map(|note| note.as_str().to_owned()),
                Some(Frozen::Discarded(_)) => None,
                None => life.book.note_of(&document.head).map(|note| note.as_str().to_owned()),
            };
            let settled = life.accounts.settled(document).unwrap_or(document).clone();
            let mut simulated = SimulatedDocument::new(&life.book, settled, life.content(document_ref)?, note);
            if let Some(Frozen::Issued(issued)) = life.frozen.get(&document_ref) {
                simulated.issued = Some(issued.clone());
            }
            if document.status.is_void() { &mut void } else { &mut documents }.push(simulated);
        }
        let events = life.events.iter().filter_map(|event| Some((event.name.clone()?, event.listed_on)));
        let (events, currency) = (events.collect(), currency(&life.book.contract)?);
        let unapplied = i64::try_from(life.accounts.unapplied(currency)).map_err(|_| AmountOutOfRange)?;
        let unapplied = Money::from_minor(unapplied, currency);
        let account = life.first_account().ok();
        let (now, failed, versions) = (life.now, life.failed, life.versions);
        Ok(Self { book: life.book, now, documents, void, events, account, unapplied, failed, versions })
    }

    /// Returns the documents in force, in the order of opening.
    pub fn documents(&self) -> &[SimulatedDocument] {
        &self.documents
    }

    /// Returns all documents, including void documents, in the order of opening.
    pub fn all_documents(&self) -> Vec<&SimulatedDocument> {
        let mut all: Vec<&SimulatedDocument> = self.documents.iter().chain(&self.void).collect();
        all.sort_by_key(|document| document.document.head.number_in_contract);
        all
    }

    /// Returns the documents that the last run failed to issue because legal particulars are missing (billing rules 2).
    pub fn failures(&self) -> &[Failure] {
        &self.failed
    }

    /// Returns the documents that have been due for issue for a day and are not issued (billing rules 2).
    ///
    /// # Errors
    /// Returns a [`Refusal`] if an amount overflows.
    pub fn overdue(&self) -> Result<Vec<Overdue>, Refusal> {
        overdue::overdue(&self.book, &self.versions, self.now)
    }

    /// Returns the document with a number, also if it is void.
    ///
    /// # Panics
    /// Panics if no document has the number.
    #[track_caller]
    pub fn document(&self, number: &str) -> &SimulatedDocument {
        let mut all = self.documents.iter().chain(&self.void);
        let found = all.find(|document| document.number.to_string() == number);
        found.unwrap_or_else(|| panic!("there is no {number} among {:?}", self.overview()))
    }

    /// Returns the document with the latest change of a named event.
    ///
    /// # Panics
    /// Panics if no event has the name.
    #[track_caller]
    pub fn document_of_event(&self, name: &str) -> &SimulatedDocument {
        let listed_on = self.events.get(name).unwrap_or_else(|| panic!("no event is named {name:?}"));
        let mut all = self.documents.iter().chain(&self.void);
        all.find(|document| document.document.head.document_ref == *listed_on).unwrap_or_else(|| panic!("{name:?} is nowhere"))
    }

    /// Returns a summary of every document, including void documents, sorted: `UB-INV-1 2026-01-01 31.98`. `DRAFT` or
    /// `VOID` follows if applicable.
    pub fn overview(&self) -> Vec<String> {
        overview(self.documents.iter().chain(&self.void))
    }

    /// Returns subtotal, discount, tax and total of the documents in force. Includes drafts; credits count as negative.
    pub fn sums(&self) -> [String; 4] {
        let sum = |of: fn(&DocumentContent) -> Money| {
            let signed = self.documents.iter().map(|document| sign(document.kind()) * of(&document.content).minor());
            Money::from_minor(signed.sum(), self.unapplied.currency()).to_decimal().to_string()
        };
        [sum(|of| of.sub_total), sum(|of| of.total_discount), sum(|of| of.total_tax), sum(|of| of.total)]
    }

    /// Returns the sum of the totals of issued documents in the currency of the first product. Credits count as negative;
    /// payments are not subtracted.
    pub fn owed(&self) -> Money {
        let issued = self.in_currency().filter(|document| document.status.is_issued());
        self.money(issued.map(|document| sign(document.kind()) * document.total().minor()).sum())
    }

    /// Returns the amount due of issued documents in the currency of the first product.
    pub fn amount_due(&self) -> Money {
        self.money(self.in_currency().filter_map(SimulatedDocument::amount_due).map(Money::minor).sum())
    }

    /// Returns the unapplied amount of credits and payments in the currency of the first product: neither applied nor
    /// refunded.
    pub const fn unapplied(&self) -> Money {
        self.unapplied
    }

    /// Returns the amounts of the credit grant with a name.
    ///
    /// # Panics
    /// Panics if no grant has the name.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if an amount overflows.
    #[track_caller]
    pub fn credit(&self, name: &str) -> Result<CreditBalance, Refusal> {
        let mut grants = self.book.credit().into_iter().flat_map(|credit| &credit.grants);
        let grant = grants.find(|grant| grant.name.as_str() == name);
        let grant = grant.unwrap_or_else(|| panic!("no grant is named {name:?}"));
        Ok(grant.balance(&self.book.draft_draws()?)?)
    }

    /// Returns the amount that a limit of the amount owed counts, in the account of the first product: what is due, written off and
    /// on drafts, less what is unapplied (billing rules 11). What is owed for credit doesn't count.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if an amount overflows.
    pub fn owed_with_drafts(&self) -> Result<Money, Refusal> {
        let Some(account) = &self.account else { return Ok(self.money(0)) };
        let sales = self.book.credit().map(|credit| &credit.sales);
        let mut sum = limit::added_to_account(&self.book, account)?.checked_sub(self.unapplied)?;
        for document in self.in_currency().filter(|document| document.status.is_issued()) {
            let is_sale = sales.is_some_and(|sales| sales.contains(&document.document.family));
            if !is_sale && AccountKey::of(&document.document) == *account {
                sum = sum.checked_add(document.amount_due().unwrap_or(self.money(0)))?.checked_add(document.written_off()?)?;
            }
        }
        Ok(self.money(i64::try_from(sum.minor()).map_err(|_| AmountOutOfRange)?))
    }

    /// Returns the contract.
    pub fn contract(&self) -> &Contract {
        &self.book.contract
    }

    /// Returns the contract's state.
    pub fn state(&self) -> ContractState {
        self.book.state(self.now)
    }

    /// Returns the documents whose period contains today: opened documents and previews of others (billing rules 7).
    ///
    /// # Errors
    /// Returns a [`Refusal`] if an amount overflows.
    pub fn preview_current(&self) -> Result<Vec<SimulatedDocument>, Refusal> {
        self.shown(preview::preview_current_period(&self.book, self.now)?)
    }

    /// Returns previews of the documents of the next period (billing rules 7).
    ///
    /// # Errors
    /// Returns a [`Refusal`] if an amount overflows.
    pub fn preview_next(&self) -> Result<Vec<SimulatedDocument>, Refusal> {
        self.shown(preview::preview_next_period(&self.book, self.now)?)
    }

    fn shown(&self, shown: Vec<DocumentPreview>) -> Result<Vec<SimulatedDocument>, Refusal> {
        let mut documents = Vec::new();
        for DocumentPreview { document, content, .. } in shown {
            let document_ref = document.head.document_ref;
            let issued = self.documents.iter().find(|issued| issued.document.head.document_ref == document_ref);
            documents.extend(match (content, issued) {
                (Some(draft), _) => {
                    let note = draft.note.map(|note| note.as_str().to_owned());
                    Some(SimulatedDocument::new(&self.book, document, draft.content, note))
                }
                (None, issued) => issued.cloned(),
            });
        }
        Ok(documents)
    }

    fn in_currency(&self) -> impl Iterator<Item = &SimulatedDocument> {
        self.documents.iter().filter(|document| document.total().currency() == self.unapplied.currency())
    }

    const fn money(&self, minor: i64) -> Money {
        Money::from_minor(minor, self.unapplied.currency())
    }
}

/// Returns the currency of a contract's first product, or EUR without products.
fn currency(contract: &Contract) -> Result<Currency, Refusal> {
    let first = contract.products.iter().find_map(|product| product.newest_terms());
    match first {
        Some(terms) => Ok(terms.pricing.currency),
        None => Currency::from_code("EUR").map_err(|error| Refusal::Broken(error.to_string())),
    }
}
