//! What is due, and when.

use super::*;

/// Returns the slots whose documents are due and not issued, oldest first, then in contract order. Checks every period since
/// the contract's first, so that no due document is lost.
pub(in crate::ledger) fn due_places(book: &ContractBook, now: Timestamp) -> Result<Vec<(Timestamp, BillingSlot)>, Refusal> {
    open_places(book, Some(now))
}

/// Does the same as [`due_places`], also for documents that aren't due if `by` is `None`.
pub(in crate::ledger) fn open_places(
    book: &ContractBook,
    by: Option<Timestamp>,
) -> Result<Vec<(Timestamp, BillingSlot)>, Refusal> {
    let mut open = Vec::new();
    for product in &book.contract.products {
        for period in product.periods().take_while(|period| by.is_none_or(|by| may_be_due(period.start(), by))) {
            for part in parts_of_period(period) {
                let due_at = book.due_at(&part)?;
                let is_open = book.document_in_slot(part.slot()).is_none_or(|document| document.status == LifecycleStatus::Draft);
                if is_open && by.is_none_or(|by| due_at <= by) {
                    open.push((due_at, part.slot()));
                }
            }
        }
    }
    open.sort_by_key(|(due_at, _)| *due_at);
    Ok(open)
}

/// Returns at most `most` documents that a run would issue or discard, oldest first, each with one of its slots. Omits unopened
/// documents that would bill nothing.
///
/// # Errors
/// Returns the errors of [`issue_due`].
pub fn due_documents(book: &ContractBook, now: Timestamp, most: usize) -> Result<Vec<(Timestamp, BillingSlot)>, Refusal> {
    let mut counted: Vec<(Timestamp, BillingSlot)> = Vec::new();
    let mut covered: BTreeSet<BillingSlot> = BTreeSet::new();
    let mut seen_drafts: BTreeSet<DocumentRef> = BTreeSet::new();
    for (due_at, slot) in due_places(book, now)? {
        if counted.len() >= most {
            break;
        }
        if let Some(draft) = book.document_in_slot(slot) {
            if seen_drafts.insert(draft.head.document_ref) {
                counted.push((due_at, slot));
            }
            continue;
        }
        if covered.contains(&slot) {
            continue;
        }
        let part = part_of(&book.contract, slot)?;
        let (net_terms, payment) = book.payment_terms(&part)?;
        covered.extend(book.parts_to_consolidate(&book.contract, &part, net_terms, &payment)?.iter().map(ProductPart::slot));
        if has_to_open(book, &book.contract, &part)? {
            counted.push((due_at, slot));
        }
    }
    Ok(counted)
}

/// Returns whether a document of a period can be due by an instant. No document is due before its period's first day, which can
/// begin up to a day earlier in other zones than in UTC.
fn may_be_due(start: NaiveDate, by: Timestamp) -> bool {
    start <= day_after(TimeZone::UTC.service_date(by))
}

/// Returns when a draft is to be issued; `None` if it no longer bills anything.
pub(in crate::ledger) fn draft_due_at(book: &ContractBook, head: &DocumentHead) -> Result<Option<Timestamp>, Refusal> {
    match head.purpose {
        // A child document that couldn't be issued together with its event.
        Purpose::Usage => Ok(Some(head.created_at)),
        // Adjustments are due on the first service date after the one they were opened on.
        Purpose::Adjustment => {
            let zone = book.entity(&head.entity_ref)?.profile.time_zone;
            let next_day = zone.start_of_day(day_after(zone.service_date(head.created_at)));
            Ok(Some(waits_for_its_period(book, head, next_day)?.unwrap_or(next_day)))
        }
        Purpose::Regular(kind) => {
            let mut first: Option<Timestamp> = None;
            for no in &head.parts {
                let slot = BillingSlot { product_no: *no, period_start: head.period.start(), kind };
                if let Some(part) = book.contract.product(*no).and_then(|product| part_in(product, slot)) {
                    let due_at = book.due_at(&part)?;
                    first = Some(first.map_or(due_at, |first| first.min(due_at)));
                }
            }
            Ok(first)
        }
    }
}

/// Returns when to issue a debit that bills an extended period of an `AFTER_USE` invoice: when the rest of the period is due
/// (billing rules 7). Returns `None` for any other document, and if that instant has passed.
pub(in crate::ledger) fn waits_for_its_period(
    book: &ContractBook,
    head: &DocumentHead,
    now: Timestamp,
) -> Result<Option<Timestamp>, Refusal> {
    let invoice = head.parent.and_then(|parent| book.document(parent)).filter(|parent| {
        (head.kind, head.purpose) == (DocumentKind::Debit, Purpose::Adjustment)
            && parent.head.purpose == Purpose::Regular(SlotKind::Period)
            && parent.status.is_issued()
    });
    let Some(invoice) = invoice.map(|invoice| &invoice.head) else { return Ok(None) };
    let mut waits = None;
    for no in invoice.parts.iter().filter(|no| head.parts.contains(no)) {
        let period = book.contract.period_from(*no, invoice.period.start());
        let goes_on = period
            .filter(|period| period.terms.payment_time == PaymentTime::AfterUse && period.days().end() > invoice.period.end());
        if let Some(period) = goes_on {
            waits = waits.max(Some(book.due_at(&part_for_usage(period))?));
        }
    }
    Ok(waits.filter(|due_at| *due_at > now))
}

/// Returns whether a document corrects an `AFTER_USE` invoice of a period that is not over, so that more corrections can follow.
///
/// # Errors
/// Returns [`Refusal::Broken`] if the book lacks the entity of the document.
pub fn corrects_open_period(book: &ContractBook, head: &DocumentHead, now: Timestamp) -> Result<bool, Refusal> {
    let is_after_use = |no: &ProductNo| {
        let period = book.contract.period_from(*no, head.period.start());
        period.is_some_and(|period| period.terms.payment_time == PaymentTime::AfterUse)
    };
    let today = book.entity(&head.entity_ref)?.profile.time_zone.service_date(now);
    // With `DUE_UPON_USAGE`, each event has an invoice of its own.
    let is_correction = head.purpose == Purpose::Adjustment && head.net_terms != NetTerms::DueUponUsage;
    Ok(is_correction && head.period.end() > today && head.parts.iter().any(is_after_use))
}

/// Returns the first instant after `after` at which a document falls due, open or not.
///
/// # Errors
/// Returns the errors of [`issue_due`].
pub fn next_due_after(book: &ContractBook, after: Timestamp) -> Result<Option<Timestamp>, Refusal> {
    let mut next: Option<Timestamp> = None;
    for product in &book.contract.products {
        let mut found: Option<Timestamp> = None;
        for period in product.periods() {
            if found.is_some_and(|found| !may_be_due(period.start(), found)) {
                break;
            }
            for part in parts_of_period(period) {
                let due_at = book.due_at(&part)?;
                let is_open = book.document_in_slot(part.slot()).is_none_or(|document| document.status == LifecycleStatus::Draft);
                if due_at > after && is_open {
                    found = found.into_iter().chain([due_at]).min();
                }
            }
        }
        next = next.into_iter().chain(found).min();
    }
    for document_ref in drafts(book) {
        let due_at = draft_due_at(book, &book.require_document(document_ref)?.head)?.filter(|due_at| *due_at > after);
        next = next.into_iter().chain(due_at).min();
    }
    Ok(next)
}

/// Records when the billing run processes the contract next: when the first document falls due, open or not, or at once if one
/// is already due.
///
/// # Errors
/// Returns the errors of [`issue_due`].
pub fn schedule_next_run(book: &mut ContractBook, now: Timestamp) -> Result<(), Refusal> {
    let mut next = next_due_after(book, now)?;
    for document_ref in drafts(book) {
        next = next.into_iter().chain(draft_due_at(book, &book.require_document(document_ref)?.head)?).min();
    }
    next = next.into_iter().chain(due_documents(book, now, 1)?.first().map(|(due_at, _)| *due_at)).min();
    book.put_due(next)
}
