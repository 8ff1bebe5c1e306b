//! A document of a bill and its lines, for assertions.

use std::fmt;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::calendar::Period;
use crate::document::legal_particulars::missing;
use crate::document::lines::DocumentLine;
use crate::document::numbering::DocumentNumber;
use crate::document::totals::{DocumentContent, PrepaidAmount, Tax};
use crate::document::{AtIssue, BookDocument, DocumentKind, DocumentState, IssuedDocument, LifecycleStatus, Purpose};
use crate::einvoice::business_terms::BusinessTerms;
use crate::einvoice::{self, EInvoiceError};
use crate::ledger::ContractBook;
use crate::money::{Money, Percentage};
use crate::refs::DocumentRef;
use crate::refusal::Refusal;
use crate::tax::TaxInCurrency;

/// A document of a [`Bill`](super::Bill).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedDocument {
    /// The document number. A preview that is not opened has the sequence number 0.
    pub number: DocumentNumber,
    /// The lifecycle status.
    pub status: LifecycleStatus,
    /// The period of the document.
    pub period: Period,
    /// The lines and totals.
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

/// Returns summaries of documents, sorted: number, first day and total, followed by `DRAFT` or `VOID` if applicable. A
/// document that is not opened has its kind instead of a number.
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
            status: document.status,
            period: document.head.period,
            content,
            parent: number(document.head.parent),
            replaces: number(document.head.replaces),
            note,
            document,
            issued: None,
        }
    }

    /// Returns the kind: invoice, credit or debit.
    pub const fn kind(&self) -> DocumentKind {
        self.number.kind
    }

    /// Returns the purpose.
    pub const fn purpose(&self) -> Purpose {
        self.document.head.purpose
    }

    /// Returns the total.
    pub const fn total(&self) -> Money {
        self.content.total
    }

    /// Returns the sum of the taxes.
    pub const fn tax(&self) -> Money {
        self.content.total_tax
    }

    /// Returns the sum of the discounts.
    pub const fn discount(&self) -> Money {
        self.content.total_discount
    }

    /// Returns the name of the grant and the amount of each prepaid amount: `Credit 60.00`.
    pub fn prepaid(&self) -> Vec<String> {
        let shown = |prepaid: &PrepaidAmount| format!("{} {}", prepaid.name.as_str(), prepaid.amount.to_decimal());
        self.content.prepaid.iter().map(shown).collect()
    }

    /// Returns the tax at a rate in percent.
    ///
    /// # Panics
    /// Panics unless exactly one tax has the rate.
    #[track_caller]
    pub fn tax_at(&self, percent: &str) -> &Tax {
        let rate = Percentage::parse(percent).ok();
        let mut found = self.content.taxes.iter().filter(|tax| rate == Some(tax.treatment.rate));
        match (found.next(), found.next()) {
            (Some(tax), None) => tax,
            _ => panic!("{self} doesn't have one tax of {percent} %: {:?}", self.content.taxes),
        }
    }

    /// Returns the line of a line item. The line of a charge is named `charge:` followed by its reference.
    ///
    /// # Panics
    /// Panics unless exactly one line has the name.
    #[track_caller]
    pub fn line(&self, line_item: &str) -> SimulatedLine<'_> {
        let mut found = self.lines().filter(|line| line.name() == line_item);
        match (found.next(), found.next()) {
            (Some(line), None) => line,
            _ => panic!("{self} doesn't have one line {line_item:?}: {:?}", self.amounts()),
        }
    }

    /// Returns the lines.
    pub fn lines(&self) -> impl Iterator<Item = SimulatedLine<'_>> {
        self.content.products.iter().flat_map(|product| &product.lines).map(SimulatedLine)
    }

    /// Returns the name and amount of each line: `calls 60.00`. The line that raises a period to its minimum fee is named
    /// `minimum fee`.
    pub fn amounts(&self) -> Vec<String> {
        self.lines().map(|line| format!("{} {}", line.name(), line.amount().to_decimal())).collect()
    }

    /// Returns subtotal, discount, tax and total.
    pub fn totals(&self) -> [String; 4] {
        let DocumentContent { sub_total, total_discount, total_tax, total, .. } = &self.content;
        [sub_total, total_discount, total_tax, total].map(|amount| amount.to_decimal().to_string())
    }

    /// Returns the issue date in the time zone of the entity, or `None` for a draft.
    pub const fn issue_date(&self) -> Option<NaiveDate> {
        self.document.issue_date
    }

    /// Returns the due date, or `None` for a draft.
    pub const fn due_date(&self) -> Option<NaiveDate> {
        self.document.due_date
    }

    /// Returns the number of the invoice that a credit, a debit or an event's own invoice belongs to.
    pub fn parent(&self) -> Option<String> {
        self.parent.as_ref().map(ToString::to_string)
    }

    /// Returns the number of the void document that this document replaces.
    pub fn replaces(&self) -> Option<String> {
        self.replaces.as_ref().map(ToString::to_string)
    }

    /// Returns the note.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Returns the amount due, or `None` for a credit or a void document.
    pub fn amount_due(&self) -> Option<Money> {
        self.document.owed().ok().and_then(|owed| owed.amount_due)
    }

    /// Returns the unapplied amount of a credit (neither applied nor refunded), or `None` for any other document.
    pub fn unapplied(&self) -> Option<Money> {
        self.document.owed().ok().and_then(|owed| owed.unapplied)
    }

    /// Returns the amount written off. It is zero for a document that is not issued.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if an amount overflows.
    pub fn written_off(&self) -> Result<Money, Refusal> {
        Ok(self.document.owed()?.written_off)
    }

    /// Returns the numbers of the documents that an issued document names as corrected.
    pub fn corrects(&self) -> Vec<String> {
        let papers = self.issued.iter().filter_map(|issued| issued.paper.as_ref());
        let corrected = papers.flat_map(|paper| [&paper.corrects, &paper.corrects_last]).flatten();
        corrected.map(|corrected| corrected.number.to_string()).collect()
    }

    /// Returns the taxes of an issued document in the seller's tax currency, if they were converted (billing rules 10).
    pub fn tax_in_currency(&self) -> Option<&TaxInCurrency> {
        self.issued.as_ref()?.paper.as_ref()?.tax_in_currency.as_ref()
    }

    /// Returns what was applied when the document was issued, or `None` for a document that is not issued.
    pub fn at_issue(&self) -> Option<&AtIssue> {
        self.issued.as_ref().and_then(|issued| issued.at_issue.as_ref())
    }

    /// Returns the missing legal particulars of an issued document, as JSON pointers (billing rules 10).
    pub fn missing(&self) -> Vec<String> {
        let issued = self.issued.iter();
        issued.flat_map(|issued| missing(&issued.parties, issued.paper.as_deref(), &issued.content)).collect()
    }

    /// Returns the business terms of the document as an e-invoice, or the reason why it has none. Returns `None` if the document was
    /// never issued.
    pub fn e_invoice(&self) -> Option<Result<BusinessTerms, EInvoiceError>> {
        self.issued.as_deref().map(|issued| einvoice::terms(&self.document.head, issued))
    }

    /// Returns whether the document is opened. A document that exists only in a preview is not.
    pub const fn is_opened(&self) -> bool {
        self.number.sequence > 0
    }

    /// Returns the state as shown in the HTTP interface.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if an amount overflows.
    pub fn state(&self) -> Result<DocumentState, Refusal> {
        Ok(self.document.state()?)
    }

    /// Returns whether two documents have the same content, regardless of their settlement.
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
        let status = match self.status {
            LifecycleStatus::Draft if is_opened => " DRAFT",
            LifecycleStatus::Void | LifecycleStatus::Discarded => " VOID",
            LifecycleStatus::Draft | LifecycleStatus::Issued | LifecycleStatus::Uncollectible => "",
        };
        format!("{name} {} {}{status}", self.period.start(), self.total().to_decimal())
    }
}

impl fmt::Display for SimulatedDocument {
    /// Formats number, status, period and total.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = match self.status {
            LifecycleStatus::Draft => "DRAFT",
            LifecycleStatus::Issued => "ISSUED",
            LifecycleStatus::Uncollectible => "UNCOLLECTIBLE",
            LifecycleStatus::Void | LifecycleStatus::Discarded => "VOID",
        };
        write!(f, "{} {status} {}: {}", self.number, self.period, self.content.total)
    }
}

impl<'d> SimulatedLine<'d> {
    /// Returns the ID of the line item, or `minimum fee`.
    pub fn name(&self) -> &'d str {
        self.0.line_item_id.as_ref().map_or("minimum fee", |id| id.as_str())
    }

    /// Returns the amount.
    pub const fn amount(&self) -> Money {
        self.0.amount
    }

    /// Returns the days that the line bills or refunds.
    pub const fn days(&self) -> Period {
        self.0.service_period
    }

    /// Returns the quantity used, or `None` for a fixed line item. In an adjustment, returns the change of the quantity.
    pub fn quantity(&self) -> Option<Decimal> {
        self.0.usage.as_ref().map(|usage| usage.quantity)
    }

    /// Returns all details of the line.
    pub const fn details(&self) -> &'d DocumentLine {
        self.0
    }
}
