//! What a contract bills in its current and in its next period: documents as they are, and those that aren't opened yet as
//! they would be (billing rules 7). The same functions as everywhere, their entries thrown away.

use std::sync::Arc;

use super::{ContractBook, Entry, IdGenerator, issue};
use crate::calendar::Timestamp;
use crate::contract::ProductPeriod;
use crate::document::lines::BillWith;
use crate::document::linking::{BillingSlot, ProductPart, SlotKind, part_for_usage, parts_of_period};
use crate::document::{BookDocument, DocumentKind, DraftContent, IssuedDocument, LifecycleStatus, Purpose};
use crate::refs::DocumentRef;
use crate::refusal::Refusal;

/// A document of a preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentPreview {
    /// What is known of it; reference and numbers mean nothing of one that isn't opened.
    pub document: BookDocument,
    /// Whether it is opened.
    pub is_opened: bool,
    /// What it says, of a draft.
    pub content: Option<DraftContent>,
}

/// The documents whose own period contains today, with the open adjustments of their families; the children of events due
/// upon usage aren't in the book.
///
/// # Errors
/// [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`].
pub fn preview_current_period(book: &ContractBook, now: Timestamp) -> Result<Vec<DocumentPreview>, Refusal> {
    let contract = Arc::clone(&book.contract);
    let mut places = Vec::new();
    for product in &contract.products {
        let Some(newest) = product.newest_terms() else { continue };
        let terms = product.terms_on(book.today(newest, now)?).unwrap_or(newest);
        if let Some(period) = product.period_at(book.today(terms, now)?) {
            places.extend(preview_slots(book, period));
        }
    }
    let mut planned = with_consolidated_drafts(book, now)?;
    let mut shown = show(book, &mut planned, &places, now)?;
    let mut others = Vec::new();
    for document in book.documents().filter(|document| !document.status.is_void()) {
        let today = book.entity(&document.head.entity_ref)?.profile.time_zone.service_date(now);
        let is_there = shown.iter().any(|shown| shown.document.head.document_ref == document.head.document_ref);
        if document.head.period.contains(today) && !is_there {
            others.push(document.head.document_ref);
        }
    }
    for document in book.documents() {
        let parent = document.head.parent;
        let is_open = document.status == LifecycleStatus::Draft && document.head.purpose == Purpose::Adjustment;
        let of_shown = shown.iter().any(|shown| parent == Some(shown.document.head.document_ref))
            || others.iter().any(|other| parent == Some(*other));
        if is_open && of_shown && !others.contains(&document.head.document_ref) {
            others.push(document.head.document_ref);
        }
    }
    let mut ids = ProvisionalIds(u128::MAX / 2);
    for document_ref in others {
        shown.extend(split(&planned, stored(&planned, document_ref)?, now, &mut ids)?);
    }
    Ok(in_order(shown))
}

/// The documents of the next period, after a gap in the terms, too; of the first one when the contract hasn't started. With
/// `DURING_USE` the last period is followed by its closing invoice.
///
/// # Errors
/// As [`preview_current_period`].
pub fn preview_next_period(book: &ContractBook, now: Timestamp) -> Result<Vec<DocumentPreview>, Refusal> {
    let contract = Arc::clone(&book.contract);
    let mut places = Vec::new();
    for product in &contract.products {
        let Some(newest) = product.newest_terms() else { continue };
        let terms = product.terms_on(book.today(newest, now)?).unwrap_or(newest);
        let today = book.today(terms, now)?;
        let current = product.period_at(today);
        let next = match current {
            Some(current) => product.period_after(current.days().end()),
            None => product.period_after(today),
        };
        let bills_usage = current.is_some_and(|current| bills_usage(book, &current));
        let is_billed = current.is_some_and(|current| book.is_billed(&current, BillWith::Usage));
        let closing = current.map(part_for_usage).filter(|part| {
            part.slot == SlotKind::Closing && bills_usage && (!is_billed || book.document_in_slot(part.place()).is_some())
        });
        places.extend(closing.map(|part| part.place()));
        if let Some(next) = next {
            places.extend(preview_slots(book, next));
        }
    }
    Ok(in_order(show(book, &mut with_consolidated_drafts(book, now)?, &places, now)?))
}

/// The places of a period's own documents: its invoice, and with `BEFORE_USE` the debit of its usage, where it is there or
/// the terms have anything that it could bill.
fn preview_slots(book: &ContractBook, period: ProductPeriod<'_>) -> impl Iterator<Item = BillingSlot> {
    let bills_usage = bills_usage(book, &period);
    let is_shown = |part: &ProductPart<'_>| match part.slot {
        SlotKind::Period => true,
        SlotKind::UsageDebit => bills_usage || book.document_in_slot(part.place()).is_some(),
        SlotKind::Closing => false,
    };
    let places: Vec<BillingSlot> = parts_of_period(period).iter().filter(|part| is_shown(part)).map(ProductPart::place).collect();
    places.into_iter()
}

/// Whether anything is billed with a period's usage: of its line items, its minimum fee, or charges.
fn bills_usage(book: &ContractBook, period: &ProductPeriod<'_>) -> bool {
    period.terms.metered_products().next().is_some()
        || period.terms.pricing.minimum_fee.is_some()
        || book.charges().in_period(period).any(|charge| charge.bill_with == BillWith::Usage)
}

/// A book whose drafts have the products that they would be issued with.
fn with_consolidated_drafts(book: &ContractBook, now: Timestamp) -> Result<ContractBook, Refusal> {
    let mut planned = book.clone();
    planned.set_as_of(now);
    let drafts = book.documents().filter(|document| document.status == LifecycleStatus::Draft);
    for draft in drafts {
        planned.consolidate_products(draft.head.document_ref)?;
    }
    Ok(planned)
}

/// The documents of places: those that are there, and the others as they would be opened now.
fn show(
    book: &ContractBook,
    planned: &mut ContractBook,
    places: &[BillingSlot],
    now: Timestamp,
) -> Result<Vec<DocumentPreview>, Refusal> {
    let mut ids = ProvisionalIds(u128::MAX);
    let mut shown: Vec<DocumentRef> = Vec::new();
    for place in places {
        let document_ref = planned.document_in(*place, now, &mut ids)?;
        if !shown.contains(&document_ref) {
            shown.push(document_ref);
        }
    }
    let mut previews = Vec::new();
    for document_ref in shown {
        let is_opened = book.document(document_ref).is_some();
        let preview = DocumentPreview { is_opened, ..stored(planned, document_ref)? };
        previews.extend(split(planned, preview, now, &mut ids)?);
    }
    Ok(previews)
}

/// An invoice whose total is below zero as it would be issued: with a credit of its lines below zero (billing rules 7). Any other
/// document, and one that couldn't be issued, as it is.
fn split(
    book: &ContractBook,
    preview: DocumentPreview,
    now: Timestamp,
    ids: &mut ProvisionalIds,
) -> Result<Vec<DocumentPreview>, Refusal> {
    let is_below = preview.content.as_ref().is_some_and(|draft| draft.content.total.minor() < 0);
    if preview.document.head.kind != DocumentKind::Invoice || !is_below {
        return Ok(vec![preview]);
    }
    let mut issued = book.clone();
    let due_at = issue::draft_due_at(book, &preview.document.head)?.unwrap_or(now);
    if issue::issue(&mut issued, preview.document.head.document_ref, due_at.max(now), ids).is_err() {
        return Ok(vec![preview]);
    }
    let mut split = Vec::new();
    for entry in issued.take_entries() {
        let Entry::Issued { document_ref, issued: said } = entry else { continue };
        let IssuedDocument { parties, po_number, note, content, paper, .. } = *said;
        let is_invoice = document_ref == preview.document.head.document_ref;
        let document = BookDocument { status: LifecycleStatus::Draft, ..issued.require_document(document_ref)?.clone() };
        split.push(DocumentPreview {
            document: if is_invoice { preview.document.clone() } else { document },
            is_opened: is_invoice && preview.is_opened,
            content: Some(DraftContent { parties, po_number, note, content, paper }),
        });
    }
    Ok(split)
}

/// A document of the book as it is.
///
/// # Errors
/// As [`preview_current_period`].
pub fn stored(book: &ContractBook, document_ref: DocumentRef) -> Result<DocumentPreview, Refusal> {
    let document = book.require_document(document_ref)?.clone();
    let content = match document.status {
        LifecycleStatus::Draft => Some(book.draft_content(document_ref)?),
        LifecycleStatus::Issued | LifecycleStatus::Uncollectible | LifecycleStatus::Void | LifecycleStatus::Discarded => None,
    };
    Ok(DocumentPreview { document, is_opened: true, content })
}

/// Opened ones by creation, then the others in the order they would be opened.
fn in_order(mut shown: Vec<DocumentPreview>) -> Vec<DocumentPreview> {
    shown.sort_by_key(|shown| (!shown.is_opened, shown.is_opened.then_some(shown.document.head.document_ref)));
    shown
}

/// Identifiers of documents that are never stored.
struct ProvisionalIds(u128);

impl IdGenerator for ProvisionalIds {
    fn next_id(&mut self) -> uuid::Uuid {
        self.0 -= 1;
        uuid::Uuid::from_u128(self.0)
    }
}
