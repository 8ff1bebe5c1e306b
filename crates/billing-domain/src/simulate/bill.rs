//! What a contract has on documents, for assertions: numbers, dates, lines, taxes and what is owed.

use std::collections::BTreeMap;
use std::fmt;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::life::{Frozen, Life};
use crate::calendar::{Period, Timestamp};
use crate::contract::{Contract, ContractState};
use crate::document::lines::{DocumentLine, sign};
use crate::document::numbering::DocumentNumber;
use crate::document::totals::{DocumentContent, Tax};
use crate::document::{BookDocument, DocumentKind, DocumentState, Purpose, Standing};
use crate::ledger::ContractBook;
use crate::ledger::view::{self, Shown};
use crate::money::{Currency, Money, Percentage};
use crate::refs::DocumentRef;
use crate::refusal::Refusal;

/// What a contract has on documents at an instant.
#[derive(Clone, Debug)]
pub struct Bill {
    book: ContractBook,
    now: Timestamp,
    documents: Vec<SimulatedDocument>,
    void: Vec<SimulatedDocument>,
    events: BTreeMap<String, DocumentRef>,
    unapplied: Money,
}

/// A document of a [`Bill`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedDocument {
    /// Its number; of a preview that isn't opened, one with the sequence 0.
    pub number: DocumentNumber,
    /// How far it has come.
    pub standing: Standing,
    /// Its own period.
    pub period: Period,
    /// Lines and totals.
    pub content: DocumentContent,
    document: BookDocument,
    parent: Option<DocumentNumber>,
    replaces: Option<DocumentNumber>,
    note: Option<String>,
}

/// A line of a [`SimulatedDocument`].
#[derive(Clone, Copy, Debug)]
pub struct SimulatedLine<'d>(&'d DocumentLine);

impl Bill {
    pub(super) fn of(life: Life) -> Result<Self, Refusal> {
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
            let simulated = SimulatedDocument::new(&life.book, settled, life.content(document_ref)?, note);
            if document.standing.is_void() { &mut void } else { &mut documents }.push(simulated);
        }
        let events = life.events.iter().filter_map(|event| Some((event.name.clone()?, event.standing)));
        let (events, currency) = (events.collect(), currency(&life.book.contract)?);
        let unapplied = i64::try_from(life.accounts.unapplied(currency)).map_err(|_| crate::money::AmountOutOfRange)?;
        Ok(Self { now: life.now, documents, void, events, unapplied: Money::from_minor(unapplied, currency), book: life.book })
    }

    /// The documents in force, in the order they were opened.
    pub fn documents(&self) -> &[SimulatedDocument] {
        &self.documents
    }

    /// Returns the document with a number, void ones too.
    ///
    /// # Panics
    /// Panics if there is none.
    #[track_caller]
    pub fn document(&self, number: &str) -> &SimulatedDocument {
        let mut all = self.documents.iter().chain(&self.void);
        let found = all.find(|document| document.number.to_string() == number);
        found.unwrap_or_else(|| panic!("there is no {number} among {:?}", self.overview()))
    }

    /// Returns the document that the latest change of a named event stands on.
    ///
    /// # Panics
    /// Panics if no event has the name.
    #[track_caller]
    pub fn document_of_event(&self, name: &str) -> &SimulatedDocument {
        let standing = self.events.get(name).unwrap_or_else(|| panic!("no event is named {name:?}"));
        let mut all = self.documents.iter().chain(&self.void);
        all.find(|document| document.document.head.document_ref == *standing).unwrap_or_else(|| panic!("{name:?} is nowhere"))
    }

    /// Returns every document in short, void ones too, sorted: `UB-INV-1 2026-01-01 31.98`, with `DRAFT` or `VOID` after it.
    pub fn overview(&self) -> Vec<String> {
        overview(self.documents.iter().chain(&self.void))
    }

    /// Returns sub total, discount, tax and total of the documents in force, drafts too, credits below zero.
    pub fn sums(&self) -> [String; 4] {
        let sum = |of: fn(&DocumentContent) -> Money| {
            let signed = self.documents.iter().map(|document| sign(document.kind()) * of(&document.content).minor());
            Money::from_minor(signed.sum(), self.unapplied.currency()).to_decimal().to_string()
        };
        [sum(|of| of.sub_total), sum(|of| of.total_discount), sum(|of| of.total_tax), sum(|of| of.total)]
    }

    /// Returns the sum of the totals of issued documents in the currency of the first product, credits below zero. Payments
    /// don't lower it.
    pub fn owed(&self) -> Money {
        let issued = self.in_currency().filter(|document| document.standing.is_issued());
        self.money(issued.map(|document| sign(document.kind()) * document.total().minor()).sum())
    }

    /// What is owed in all by documents that are issued, in the minor units of their currency.
    pub fn owed_minor(&self) -> i64 {
        self.owed().minor()
    }

    /// Returns what is left to pay of issued documents in the currency of the first product.
    pub fn amount_due(&self) -> Money {
        self.money(self.in_currency().filter_map(SimulatedDocument::amount_due).map(Money::minor).sum())
    }

    /// Returns what of credits and payments is neither applied nor refunded, in the currency of the first product.
    pub const fn unapplied(&self) -> Money {
        self.unapplied
    }

    /// Returns the contract as it is agreed.
    pub fn contract(&self) -> &Contract {
        &self.book.contract
    }

    /// Returns the contract's state.
    pub fn state(&self) -> ContractState {
        self.book.state(self.now)
    }

    /// Returns the documents whose period contains today: those that are opened, and those that would be (billing rules 7).
    ///
    /// # Errors
    /// Returns a [`Refusal`] if an amount can't be held.
    pub fn preview_current(&self) -> Result<Vec<SimulatedDocument>, Refusal> {
        self.shown(view::current(&self.book, self.now)?)
    }

    /// Returns the documents of the next period as they would be (billing rules 7).
    ///
    /// # Errors
    /// Returns a [`Refusal`] if an amount can't be held.
    pub fn preview_next(&self) -> Result<Vec<SimulatedDocument>, Refusal> {
        self.shown(view::next(&self.book, self.now)?)
    }

    fn shown(&self, shown: Vec<Shown>) -> Result<Vec<SimulatedDocument>, Refusal> {
        let mut documents = Vec::new();
        for Shown { document, content, .. } in shown {
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

/// Returns the currency of a contract's first product; EUR of one without products.
fn currency(contract: &Contract) -> Result<Currency, Refusal> {
    let first = contract.products.iter().find_map(|product| product.newest_terms());
    match first {
        Some(terms) => Ok(terms.pricing.currency),
        None => Currency::from_code("EUR").map_err(|error| Refusal::Broken(error.to_string())),
    }
}

/// Returns documents in short, sorted: number, first day and total, with `DRAFT` or `VOID` after them. One that isn't opened
/// has its kind for a number.
pub fn overview<'d>(documents: impl IntoIterator<Item = &'d SimulatedDocument>) -> Vec<String> {
    let mut overview: Vec<String> = documents.into_iter().map(SimulatedDocument::in_short).collect();
    overview.sort();
    overview
}

impl SimulatedDocument {
    fn new(book: &ContractBook, document: BookDocument, content: DocumentContent, note: Option<String>) -> Self {
        let number = |named: Option<DocumentRef>| Some(book.document(named?)?.head.number.clone());
        Self {
            number: document.head.number.clone(),
            standing: document.standing,
            period: document.head.period,
            content,
            parent: number(document.head.parent),
            replaces: number(document.head.replaces),
            note,
            document,
        }
    }

    /// Returns whether it is an invoice, a credit or a debit.
    pub const fn kind(&self) -> DocumentKind {
        self.number.kind
    }

    /// Returns what it is for.
    pub const fn purpose(&self) -> Purpose {
        self.document.head.purpose
    }

    /// Its total.
    pub const fn total(&self) -> Money {
        self.content.total
    }

    /// Returns the sum of its taxes.
    pub const fn tax(&self) -> Money {
        self.content.total_tax
    }

    /// Returns the sum of its discounts.
    pub const fn discount(&self) -> Money {
        self.content.total_discount
    }

    /// Returns its tax at a rate in percent.
    ///
    /// # Panics
    /// Panics if it doesn't have exactly one.
    #[track_caller]
    pub fn tax_at(&self, percent: &str) -> &Tax {
        let rate = Percentage::parse(percent).ok();
        let mut found = self.content.taxes.iter().filter(|tax| rate == Some(tax.treatment.rate));
        match (found.next(), found.next()) {
            (Some(tax), None) => tax,
            _ => panic!("{self} doesn't have one tax of {percent} %: {:?}", self.content.taxes),
        }
    }

    /// Returns the line of a line item. A charge's is named `charge:` and its reference.
    ///
    /// # Panics
    /// Panics if it doesn't have exactly one.
    #[track_caller]
    pub fn line(&self, line_item: &str) -> SimulatedLine<'_> {
        let mut found = self.lines().filter(|line| line.name() == line_item);
        match (found.next(), found.next()) {
            (Some(line), None) => line,
            _ => panic!("{self} doesn't have one line {line_item:?}: {:?}", self.amounts()),
        }
    }

    /// Returns its lines.
    pub fn lines(&self) -> impl Iterator<Item = SimulatedLine<'_>> {
        self.content.products.iter().flat_map(|product| &product.lines).map(SimulatedLine)
    }

    /// Returns the amount of each line after its name: `calls 60.00`. The line that raises a period to its minimum fee is named
    /// `minimum fee`.
    pub fn amounts(&self) -> Vec<String> {
        self.lines().map(|line| format!("{} {}", line.name(), line.amount().to_decimal())).collect()
    }

    /// Returns sub total, discount, tax and total.
    pub fn totals(&self) -> [String; 4] {
        let DocumentContent { sub_total, total_discount, total_tax, total, .. } = &self.content;
        [sub_total, total_discount, total_tax, total].map(|amount| amount.to_decimal().to_string())
    }

    /// Returns the day of its issue in the zone of its entity; `None` of a draft.
    pub const fn issue_date(&self) -> Option<NaiveDate> {
        self.document.issue_date
    }

    /// Returns the day until which it has to be paid; `None` of a draft.
    pub const fn due_date(&self) -> Option<NaiveDate> {
        self.document.due_date
    }

    /// Returns the number of the invoice that a credit, a debit or an event's own invoice belongs to.
    pub fn parent(&self) -> Option<String> {
        self.parent.as_ref().map(ToString::to_string)
    }

    /// Returns the number of the void document that it bills again.
    pub fn replaces(&self) -> Option<String> {
        self.replaces.as_ref().map(ToString::to_string)
    }

    /// Returns its note.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Returns what is left to pay; `None` of a credit and of what is out of force.
    pub fn amount_due(&self) -> Option<Money> {
        self.document.owed().ok().and_then(|owed| owed.amount_due)
    }

    /// Returns what of a credit is neither applied nor refunded; `None` of any other document.
    pub fn unapplied(&self) -> Option<Money> {
        self.document.owed().ok().and_then(|owed| owed.unapplied)
    }

    /// Returns its state as the HTTP interface shows it.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if an amount can't be held.
    pub fn state(&self) -> Result<DocumentState, Refusal> {
        Ok(self.document.state()?)
    }

    /// Returns whether two documents say the same, whatever settled them since.
    pub fn says_the_same_as(&self, other: &Self) -> bool {
        (&self.number, self.period, &self.content, &self.note) == (&other.number, other.period, &other.content, &other.note)
            && (self.issue_date(), self.due_date(), &self.parent) == (other.issue_date(), other.due_date(), &other.parent)
    }

    fn in_short(&self) -> String {
        let (number, is_opened) = (&self.number, self.number.sequence > 0);
        let kind = match number.kind {
            DocumentKind::Invoice => "INVOICE",
            DocumentKind::Credit => "CREDIT",
            DocumentKind::Debit => "DEBIT",
        };
        let name = if is_opened { number.to_string() } else { kind.to_owned() };
        let standing = match self.standing {
            Standing::Draft if is_opened => " DRAFT",
            Standing::Void | Standing::Discarded => " VOID",
            Standing::Draft | Standing::Issued | Standing::Uncollectible => "",
        };
        format!("{name} {} {}{standing}", self.period.start(), self.total().to_decimal())
    }
}

impl fmt::Display for SimulatedDocument {
    /// Number, standing, period and total.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let standing = match self.standing {
            Standing::Draft => "DRAFT",
            Standing::Issued => "ISSUED",
            Standing::Uncollectible => "UNCOLLECTIBLE",
            Standing::Void | Standing::Discarded => "VOID",
        };
        write!(f, "{} {standing} {}: {}", self.number, self.period, self.content.total)
    }
}

impl<'d> SimulatedLine<'d> {
    /// Returns the line item's identifier, or `minimum fee`.
    pub fn name(&self) -> &'d str {
        self.0.line_item_id.as_ref().map_or("minimum fee", |id| id.as_str())
    }

    /// Returns its amount.
    pub const fn amount(&self) -> Money {
        self.0.amount
    }

    /// Returns the days that it bills or gives back.
    pub const fn days(&self) -> Period {
        self.0.service_period
    }

    /// Returns the quantity used, of an adjustment by how much it changed; `None` of a fixed line item.
    pub fn quantity(&self) -> Option<Decimal> {
        self.0.usage.as_ref().map(|usage| usage.quantity)
    }

    /// Returns everything that the line says.
    pub const fn details(&self) -> &'d DocumentLine {
        self.0
    }
}
