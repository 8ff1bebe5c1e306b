//! Overdue documents: documents that are due and not issued, as reported by `verify` (billing rules 2).

use chrono::NaiveDate;
use uuid::Uuid;

use super::ContractBook;
use super::issue::{self, due_documents};
use crate::calendar::Timestamp;
use crate::document::LifecycleStatus;
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

/// Returns the documents that have been due for at least a day and aren't issued (billing rules 2). The day starts when the
/// document falls due, or with the contract's newest version if that is later.
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`] when the book can't be evaluated.
pub fn overdue(book: &ContractBook, newest_version_at: Timestamp, now: Timestamp) -> Result<Vec<Overdue>, Refusal> {
    let is_late = |due_at: Timestamp| due_at.max(newest_version_at).plus_seconds(OVERDUE_SECONDS) <= now;
    let mut overdue = unissued(book, now)?;
    overdue.retain(|overdue| is_late(overdue.due_at));
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

/// Returns the documents that are due at an instant and aren't issued, without reasons.
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`] when the book can't be evaluated.
pub fn unissued(book: &ContractBook, now: Timestamp) -> Result<Vec<Overdue>, Refusal> {
    let mut overdue = Vec::new();
    for (due_at, place) in due_documents(book, now, usize::MAX)? {
        let document_ref = book.document_in_slot(place).map(|document| document.head.document_ref);
        overdue.push(Overdue { document_ref, period_start: place.period_start, due_at, reason: None });
    }
    for draft in book.documents().filter(|document| document.status == LifecycleStatus::Draft) {
        let known = overdue.iter().any(|overdue| overdue.document_ref == Some(draft.head.document_ref));
        if let Some(due_at) = issue::draft_due_at(book, &draft.head)?.filter(|due_at| !known && *due_at <= now) {
            let (document_ref, period_start) = (Some(draft.head.document_ref), draft.head.period.start());
            overdue.push(Overdue { document_ref, period_start, due_at, reason: None });
        }
    }
    Ok(overdue)
}
