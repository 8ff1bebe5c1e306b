//! Previews of the documents that a contract bills in its current and next period (billing rules 7). Unopened documents are
//! shown as they would be opened. Previews use the same functions as billing and discard the entries.

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
    /// The document. The reference and numbers of an unopened document are placeholders.
    pub document: BookDocument,
    /// Whether the document is opened.
    pub is_opened: bool,
    /// The content, for a draft.
    pub content: Option<DraftContent>,
}

/// Returns the documents whose own period contains today, and the open adjustments of these documents. Issued children of
/// events due upon usage aren't in the book.
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`].
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

/// Returns the documents of the next period, also after a gap in the terms. If the contract hasn't started, this is the first
/// period. With `DURING_USE`, the closing invoice follows the last period.
///
/// # Errors
/// Returns the errors of [`preview_current_period`].
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
            part.kind == SlotKind::Closing && bills_usage && (!is_billed || book.document_in_slot(part.slot()).is_some())
        });
        places.extend(closing.map(|part| part.slot()));
        if let Some(next) = next {
            places.extend(preview_slots(book, next));
        }
    }
    Ok(in_order(show(book, &mut with_consolidated_drafts(book, now)?, &places, now)?))
}

/// Returns the slots of a period's regular documents. These are its invoice and, with `BEFORE_USE`, its usage debit. The debit
/// is included if it exists or the terms bill anything with usage.
fn preview_slots(book: &ContractBook, period: ProductPeriod<'_>) -> impl Iterator<Item = BillingSlot> {
    let bills_usage = bills_usage(book, &period);
    let is_shown = |part: &ProductPart<'_>| match part.kind {
        SlotKind::Period => true,
        SlotKind::UsageDebit => bills_usage || book.document_in_slot(part.slot()).is_some(),
        SlotKind::Closing => false,
    };
    let places: Vec<BillingSlot> = parts_of_period(period).iter().filter(|part| is_shown(part)).map(ProductPart::slot).collect();
    places.into_iter()
}

/// Returns whether a period bills anything with its usage: metered line items, a minimum fee or charges.
fn bills_usage(book: &ContractBook, period: &ProductPeriod<'_>) -> bool {
    period.terms.metered_products().next().is_some()
        || period.terms.pricing.minimum_fee.is_some()
        || book.charges().in_period(period).any(|charge| charge.bill_with == BillWith::Usage)
}

/// Returns a copy of the book whose drafts have the products that they would be issued with.
fn with_consolidated_drafts(book: &ContractBook, now: Timestamp) -> Result<ContractBook, Refusal> {
    let mut planned = book.clone();
    planned.set_as_of(now);
    let drafts = book.documents().filter(|document| document.status == LifecycleStatus::Draft);
    for draft in drafts {
        planned.consolidate_products(draft.head.document_ref)?;
    }
    Ok(planned)
}

/// Returns the documents of slots. Missing documents are shown as they would be opened now.
fn show(
    book: &ContractBook,
    planned: &mut ContractBook,
    places: &[BillingSlot],
    now: Timestamp,
) -> Result<Vec<DocumentPreview>, Refusal> {
    let mut ids = ProvisionalIds(u128::MAX - u128::from(u32::MAX));
    let mut shown: Vec<DocumentRef> = Vec::new();
    for slot in places {
        let document_ref = planned.document_in(*slot, now, &mut ids)?;
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

/// Returns an invoice with a negative total as it would be issued: with a credit for its negative lines (billing rules 7).
/// Other documents, and invoices that can't be issued, stay unchanged.
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
        let Entry::Issued { document_ref, issued: content, .. } = entry else { continue };
        let IssuedDocument { parties, po_number, note, content, paper, .. } = *content;
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

/// Returns the preview of a document in the book.
///
/// # Errors
/// Returns the errors of [`preview_current_period`].
pub fn stored(book: &ContractBook, document_ref: DocumentRef) -> Result<DocumentPreview, Refusal> {
    let document = book.require_document(document_ref)?.clone();
    let content = match document.status {
        LifecycleStatus::Draft => Some(book.draft_content(document_ref)?),
        LifecycleStatus::Issued | LifecycleStatus::Uncollectible | LifecycleStatus::Void | LifecycleStatus::Discarded => None,
    };
    Ok(DocumentPreview { document, is_opened: true, content })
}

/// Sorts opened documents by creation, followed by unopened documents in the order of opening.
fn in_order(mut shown: Vec<DocumentPreview>) -> Vec<DocumentPreview> {
    shown.sort_by_key(|shown| (!shown.is_opened, shown.is_opened.then_some(shown.document.head.document_ref)));
    shown
}

/// Identifiers of documents that are never stored.
struct ProvisionalIds(u128);

impl IdGenerator for ProvisionalIds {
    fn next_id(&mut self) -> uuid::Uuid {
        self.0 += 1;
        uuid::Uuid::from_u128(self.0)
    }
}
