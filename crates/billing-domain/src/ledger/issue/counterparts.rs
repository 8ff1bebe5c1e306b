//! Adjustments of the opposite kind, and drafts that are issued as another kind.

use super::*;

/// Returns the due adjustment with the same parent and the opposite kind.
pub(super) fn due_counterpart_of(
    book: &ContractBook,
    draft: &BookDocument,
    now: Timestamp,
) -> Result<Option<DocumentRef>, Refusal> {
    let Some(counterpart) = counterpart_of(book, draft) else { return Ok(None) };
    let due_at = draft_due_at(book, &book.require_document(counterpart)?.head)?;
    Ok(due_at.filter(|due_at| *due_at <= now).map(|_| counterpart))
}

/// Returns the open adjustment with the same parent and the opposite kind.
fn counterpart_of(book: &ContractBook, draft: &BookDocument) -> Option<DocumentRef> {
    let kind = match draft.head.kind {
        DocumentKind::Credit => DocumentKind::Debit,
        DocumentKind::Debit | DocumentKind::Invoice => DocumentKind::Credit,
    };
    let parent = draft.head.parent.filter(|_| draft.head.purpose == Purpose::Adjustment)?;
    Some(book.open_adjustment(parent, kind)?.head.document_ref)
}

/// Issues a due adjustment or child. The credit and the debit of one parent wait for each other, but each is issued in its turn. If
/// their lines cancel out, both are discarded instead, and their events move to the parent (billing rules 5).
pub(super) fn issue_other(
    book: &mut ContractBook,
    document_ref: DocumentRef,
    counterpart: Option<DocumentRef>,
    now: Timestamp,
    run: &mut IssueReport,
    id_generator: &mut impl IdGenerator,
) -> Result<(), Refusal> {
    let together: Vec<DocumentRef> = [document_ref].into_iter().chain(counterpart).collect();
    if let Some(counterpart) = counterpart
        && is_opposite(book.lines_of(document_ref), book.lines_of(counterpart))
    {
        // Each content names what the other one bills, so both are computed first.
        let contents = [book.draft_content(document_ref)?, book.draft_content(counterpart)?];
        for (document_ref, content) in [document_ref, counterpart].into_iter().zip(contents) {
            let parent = book.require_document(document_ref)?.head.parent;
            let total = content.content.total;
            book.put(Entry::Discarded { document_ref, content: Box::new(content), at: now })?;
            if let Some(to) = parent {
                book.put(Entry::EventsMoved { from: document_ref, to, of: None })?;
            }
            run.outcomes.push(IssueOutcome { document_ref, issued: Vec::new(), total });
        }
        return Ok(());
    }
    // A copy shows whether both can be issued.
    let waits = match counterpart {
        Some(_) => issue_where_possible(&mut book.clone(), &together, now, id_generator)?.err(),
        None => None,
    };
    let issued = match waits {
        Some(refusal) => Err(refusal),
        None => issue_where_possible(book, &[document_ref], now, id_generator)?,
    };
    match issued {
        Ok(outcomes) => run.outcomes.extend(outcomes),
        Err(refusal) => {
            for document_ref in together {
                let period = book.require_document(document_ref)?.head.period;
                let refusal = refusal.clone();
                run.failed.push(Failure { document_ref: Some(document_ref), period, refusal });
            }
        }
    }
    Ok(())
}

/// Returns whether the lines of a credit and a debit cancel out: item, period, rates, events, quantity and amount are equal. The
/// item of a charge names the charge.
fn is_opposite(one: &[LedgerLine], other: &[LedgerLine]) -> bool {
    let is_among = |line: &LedgerLine, lines: &[LedgerLine]| lines.iter().any(|other| other == line);
    one.len() == other.len() && !one.is_empty() && one.iter().all(|line| is_among(line, other))
}

/// Replaces a draft whose total has the wrong sign by a document of the opposite kind with its lines and events (billing rules
/// 5). The draft becomes void. The replacement of a regular document takes its slot and bills the period's usage.
pub(super) fn flip_kind(
    book: &mut ContractBook,
    document: &BookDocument,
    content: &DocumentContent,
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
) -> Result<DocumentRef, Refusal> {
    let head = &document.head;
    let kind = match head.kind {
        DocumentKind::Credit => DocumentKind::Debit,
        DocumentKind::Debit | DocumentKind::Invoice => DocumentKind::Credit,
    };
    // Must come first to free the slot for the replacement.
    void_draft(book, head.document_ref, now)?;
    let new = NewDocument { purpose: head.purpose, replaces: head.replaces, ..adjustment_like(head, kind, head.parent) };
    let turned = book.open(new, now, id_generator)?;
    book.put(Entry::EventsMoved { from: head.document_ref, to: turned, of: None })?;
    match head.purpose {
        Purpose::Regular(_) => {
            freeze(book, turned, now)?;
        }
        Purpose::Usage | Purpose::Adjustment => {
            book.put(Entry::Lines { document_ref: turned, lines: negated(content.ledger_lines())? })?;
        }
    }
    Ok(turned)
}

/// Issues an invoice without its negative lines, and a credit with those lines (billing rules 5).
pub(super) fn split_off_credit(
    book: &mut ContractBook,
    document: &BookDocument,
    content: &DocumentContent,
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
) -> Result<Vec<DocumentRef>, Refusal> {
    let head = &document.head;
    let below: Vec<LedgerLine> = content.ledger_lines().into_iter().filter(|line| line.amount.minor() < 0).collect();
    let kept = book.content_if_issued(head.document_ref, now, |line| line.amount.minor() >= 0)?;
    let kept = book.explain_issued(head.document_ref, kept)?;
    let credit = book.open(adjustment_like(head, DocumentKind::Credit, Some(head.document_ref)), now, id_generator)?;
    freeze_as(book, head.document_ref, kept, now)?;
    book.put(Entry::Lines { document_ref: credit, lines: negated(below)? })?;
    Ok(vec![head.document_ref, credit])
}

fn adjustment_like(head: &DocumentHead, kind: DocumentKind, parent: Option<DocumentRef>) -> NewDocument {
    NewDocument {
        kind,
        purpose: Purpose::Adjustment,
        entity_ref: head.entity_ref.clone(),
        currency: head.currency,
        period: head.period,
        is_partial_period: head.is_partial_period,
        parts: head.parts.clone(),
        net_terms: head.net_terms,
        payment: head.payment.clone(),
        parent,
        replaces: None,
    }
}
