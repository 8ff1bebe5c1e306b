//! What is due and isn't issued: what `verify` reports (billing rules 2).

use chrono::NaiveDate;
use uuid::Uuid;

use super::ContractBook;
use super::issue::{self, due_documents};
use crate::calendar::Timestamp;
use crate::document::LifecycleStatus;
use crate::refs::DocumentRef;
use crate::refusal::Refusal;

/// How long something that is due may wait before `verify` reports it (billing rules 2).
const OVERDUE_SECONDS: i64 = 24 * 3600;

/// Something that has been due for a day and isn't issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// The draft; `None` where nothing is opened.
    pub document_ref: Option<DocumentRef>,
    /// The first day of the document's own period.
    pub period_start: NaiveDate,
    /// Since when it is due.
    pub due_at: Timestamp,
    /// Why it can't be issued; `None` where it can.
    pub reason: Option<Refusal>,
}

/// What has been due for a day at an instant, from its own or that of the contract's newest version if that is later, and isn't
/// issued (billing rules 2).
///
/// # Errors
/// [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`] where the book can't be read.
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
                .find(|failure| failure.document_ref == overdue.document_ref && failure.period_start == overdue.period_start);
            overdue.reason = failure.map(|failure| failure.refusal.clone());
        }
    }
    Ok(overdue)
}

/// What is due at an instant and isn't issued, without the reason.
///
/// # Errors
/// [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`] where the book can't be read.
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
