//! A document of a bill and its lines, for assertions.

use std::fmt;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::calendar::Period;
use crate::document::legal_particulars::missing;
use crate::document::lines::DocumentLine;
use crate::document::numbering::DocumentNumber;
use crate::document::totals::{DocumentContent, Tax};
use crate::document::{BookDocument, DocumentKind, DocumentState, IssuedDocument, LifecycleStatus, Purpose};
use crate::ledger::ContractBook;
use crate::money::{Money, Percentage};
use crate::refs::DocumentRef;
use crate::refusal::Refusal;

/// A document of a [`Bill`](super::Bill).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedDocument {
    /// Its number; of a preview that isn't opened, one with the sequence 0.
    pub number: DocumentNumber,
    /// How far it has come.
    pub standing: LifecycleStatus,
    /// Its own period.
    pub period: Period,
    /// Lines and totals.
    pub content: DocumentContent,
    pub(super) document: BookDocument,
    parent: Option<DocumentNumber>,
    replaces: Option<DocumentNumber>,
    note: Option<String>,
    pub(super) issued: Option<Box<IssuedDocument>>,
}

/// A line of a [`SimulatedDocument`].
#[derive(Clone, Copy, Debug)]
pub struct SimulatedLine<'d>(&'d DocumentLine);

/// Returns documents in short, sorted: number, first day and total, with `DRAFT` or `VOID` after them. One that isn't opened
/// has its kind for a number.
pub fn overview<'d>(documents: impl IntoIterator<Item = &'d SimulatedDocument>) -> Vec<String> {
    let mut overview: Vec<String> = documents.into_iter().map(SimulatedDocument::in_short).collect();
    overview.sort();
    overview
}

impl SimulatedDocument {
    pub(super) fn new(book: &ContractBook, document: BookDocument, content: DocumentContent, note: Option<String>) -> Self {
        let number = |named: Option<DocumentRef>| Some(book.document(named?)?.head.number.clone());
        Self {
            number: document.head.number.clone(),
            standing: document.status,
            period: document.head.period,
            content,
            parent: number(document.head.parent),
            replaces: number(document.head.replaces),
            note,
            document,
            issued: None,
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

    /// Returns its total.
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

    /// Returns the amount written off: zero for a document that isn't issued.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if an amount can't be held.
    pub fn written_off(&self) -> Result<Money, Refusal> {
        Ok(self.document.owed()?.written_off)
    }

    /// Returns the numbers of the documents that an issued document names as corrected.
    pub fn corrects(&self) -> Vec<String> {
        let papers = self.issued.iter().filter_map(|issued| issued.paper.as_ref());
        let corrected = papers.flat_map(|paper| [&paper.corrects, &paper.corrects_last]).flatten();
        corrected.map(|corrected| corrected.number.to_string()).collect()
    }

    /// Returns what the law asks for that an issued document doesn't say, as pointers (billing rules 10).
    pub fn missing(&self) -> Vec<String> {
        let issued = self.issued.iter();
        issued.flat_map(|issued| missing(&issued.parties, issued.paper.as_deref(), &issued.content)).collect()
    }

    /// Returns whether it is opened: not one of a preview alone.
    pub const fn is_opened(&self) -> bool {
        self.number.sequence > 0
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
        let (number, is_opened) = (&self.number, self.is_opened());
        let kind = match number.kind {
            DocumentKind::Invoice => "INVOICE",
            DocumentKind::Credit => "CREDIT",
            DocumentKind::Debit => "DEBIT",
        };
        let name = if is_opened { number.to_string() } else { kind.to_owned() };
        let standing = match self.standing {
            LifecycleStatus::Draft if is_opened => " DRAFT",
            LifecycleStatus::Void | LifecycleStatus::Discarded => " VOID",
            LifecycleStatus::Draft | LifecycleStatus::Issued | LifecycleStatus::Uncollectible => "",
        };
        format!("{name} {} {}{standing}", self.period.start(), self.total().to_decimal())
    }
}

impl fmt::Display for SimulatedDocument {
    /// Number, standing, period and total.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let standing = match self.standing {
            LifecycleStatus::Draft => "DRAFT",
            LifecycleStatus::Issued => "ISSUED",
            LifecycleStatus::Uncollectible => "UNCOLLECTIBLE",
            LifecycleStatus::Void | LifecycleStatus::Discarded => "VOID",
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
