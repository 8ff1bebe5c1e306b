//! Overdue documents: documents that are due and not issued, as reported by `verify` (billing rules 2).

use std::collections::BTreeMap;

use chrono::NaiveDate;
use uuid::Uuid;

use super::ContractBook;
use super::issue::{self, due_documents};
use crate::calendar::Timestamp;
use crate::contract::ContractProduct;
use crate::document::LifecycleStatus;
use crate::document::linking::{BillingSlot, parts_of_period};
use crate::refs::DocumentRef;
use crate::refusal::Refusal;

/// The time after which `verify` reports a due document that isn't issued, in seconds (billing rules 2).
const OVERDUE_SECONDS: i64 = 24 * 3600;

/// A due document that isn't issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// The draft; `None` if no document is opened.
    pub document_ref: Option<DocumentRef>,
    /// The first day of the document's own period.
    pub period_start: NaiveDate,
    /// The time at which it fell due.
    pub due_at: Timestamp,
    /// The reason why it can't be issued; `None` if it can be issued.
    pub reason: Option<Refusal>,
}

/// The creation time of each version of a contract.
pub type VersionTimes = BTreeMap<u32, Timestamp>;

/// Returns the documents that have been due for at least a day and aren't issued (billing rules 2). The day starts when the
/// document falls due, or with the version of the contract that first made it due if that is later.
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`] when the book can't be evaluated.
pub fn overdue(book: &ContractBook, versions: &VersionTimes, now: Timestamp) -> Result<Vec<Overdue>, Refusal> {
    let is_late = |since: Timestamp| since.plus_seconds(OVERDUE_SECONDS) <= now;
    let mut overdue = Vec::new();
    for (unissued, slot) in unissued_with_places(book, now)? {
        let is_overdue =
            is_late(unissued.due_at) && slot.map_or(Ok(true), |slot| made_due_at(book, slot, versions, now).map(is_late))?;
        if is_overdue {
            overdue.push(unissued);
        }
    }
    if !overdue.is_empty() {
        let mut tried = book.clone();
        let mut ids = u128::MAX;
        let run = issue::issue_due(&mut tried, now, usize::MAX, &mut || {
            ids -= 1;
            Uuid::from_u128(ids)
        })?;
        for overdue in &mut overdue {
            let failure = run
                .failed
                .iter()
                .find(|failure| failure.document_ref == overdue.document_ref && failure.period.start() == overdue.period_start);
            overdue.reason = failure.map(|failure| failure.refusal.clone());
        }
    }
    Ok(overdue)
}

/// Returns the time of the version that first made the document of a slot due, whatever later versions changed.
fn made_due_at(book: &ContractBook, slot: BillingSlot, versions: &VersionTimes, now: Timestamp) -> Result<Timestamp, Refusal> {
    let product = book.product(slot.product_no)?;
    let mut changed_by: Vec<u32> = product.segments.iter().map(|segment| segment.version).collect();
    changed_by.sort_unstable();
    changed_by.dedup();
    let mut made_due_by = None;
    for version in changed_by.into_iter().rev() {
        if made_due_by.is_some() && !is_due_in_version(book, product, slot, version, now)? {
            break;
        }
        made_due_by = Some(version);
    }
    let time = made_due_by.and_then(|version| versions.get(&version));
    Ok(time.copied().unwrap_or(book.contract.created_at))
}

/// Returns whether the plan of a version made a document due in a slot by an instant: with an amount, an event or a charge.
fn is_due_in_version(
    book: &ContractBook,
    product: &ContractProduct,
    slot: BillingSlot,
    version: u32,
    now: Timestamp,
) -> Result<bool, Refusal> {
    let Some(period) = product.period_from_in(version, slot.period_start) else { return Ok(false) };
    let part = parts_of_period(period).into_iter().find(|part| part.kind == slot.kind);
    let Some(part) = part.filter(|part| book.due_at(part).is_ok_and(|due_at| due_at <= now)) else { return Ok(false) };
    if book.document_in_slot(slot).is_some() {
        return Ok(true);
    }
    for period in [part.fixed, part.usage].into_iter().flatten() {
        let lines = book.price_of(&period)?;
        if lines.iter().any(|line| line.amount.minor() != 0 || book.is_of_live_charge(line)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the documents that are due at an instant and aren't issued, without reasons.
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`] when the book can't be evaluated.
pub fn unissued(book: &ContractBook, now: Timestamp) -> Result<Vec<Overdue>, Refusal> {
    Ok(unissued_with_places(book, now)?.into_iter().map(|(overdue, _)| overdue).collect())
}

/// Returns the unissued documents, each with one of its slots if it is a regular document.
fn unissued_with_places(book: &ContractBook, now: Timestamp) -> Result<Vec<(Overdue, Option<BillingSlot>)>, Refusal> {
    let mut overdue = Vec::new();
    for (due_at, slot) in due_documents(book, now, usize::MAX)? {
        let document_ref = book.document_in_slot(slot).map(|document| document.head.document_ref);
        overdue.push((Overdue { document_ref, period_start: slot.period_start, due_at, reason: None }, Some(slot)));
    }
    for draft in book.documents().filter(|document| document.status == LifecycleStatus::Draft) {
        let known = overdue.iter().any(|(overdue, _)| overdue.document_ref == Some(draft.head.document_ref));
        if let Some(due_at) = issue::draft_due_at(book, &draft.head)?.filter(|due_at| !known && *due_at <= now) {
            let (document_ref, period_start) = (Some(draft.head.document_ref), draft.head.period.start());
            overdue.push((Overdue { document_ref, period_start, due_at, reason: None }, None));
        }
    }
    Ok(overdue)
}
