//! Voided documents and drafts.

use super::*;

/// Discards a draft with its current content.
pub(in crate::ledger) fn void_draft(book: &mut ContractBook, document_ref: DocumentRef, at: Timestamp) -> Result<(), Refusal> {
    let content = Box::new(book.draft_content(document_ref)?);
    book.put(Entry::Discarded { document_ref, content, at })
}

/// Voids an issued document. Its period becomes unbilled, and a replacement bills everything again (billing rules 5). `content`
/// is the document's content; `has_children` tells whether child documents name it as their parent.
///
/// # Errors
/// Returns [`Refusal::Conflict`] for:
/// - a draft
/// - a document with adjustments or children
/// - an adjustment or a child
/// - a document whose usage another issued document bills now
///
/// This function doesn't check payments; see [`ReceivablesAccount::void`](crate::ledger::receivables::ReceivablesAccount::void).
pub fn void(
    book: &mut ContractBook,
    document_ref: DocumentRef,
    content: &DocumentContent,
    has_children: bool,
    now: Timestamp,
) -> Result<(), Refusal> {
    book.require_whole()?;
    book.set_as_of(now);
    let document = book.require_document(document_ref)?.clone();
    require_voidable(document.head.purpose)?;
    if document.status != LifecycleStatus::Issued {
        return Err(Refusal::conflict("not_issued", "only an issued document can be voided"));
    }
    if has_children || book.has_dependents(&document) || is_corrected(book, document_ref, content) {
        return Err(Refusal::conflict(
            "document_has_dependents",
            "a document with adjustments or child documents cannot be voided",
        ));
    }
    if !book.can_give_back(&document, content)? {
        let detail = "a document cannot be voided if it returned credit, or if later documents of its family did: change its \
                      usage, or edit the contract from a past date";
        return Err(Refusal::conflict("document_has_dependents", detail));
    }
    let contract = Arc::clone(&book.contract);
    let mut carriers: BTreeMap<BillingSlot, (ProductNo, NaiveDate)> = BTreeMap::new();
    for line in content.ledger_lines() {
        let period = contract.period_from(line.key.product_no, line.key.period_start);
        if let Some(period) = period.filter(|_| line.key.bill_with == BillWith::Usage) {
            carriers.insert(part_for_usage(period).slot(), (period.product_no, period.start()));
        }
    }
    for slot in carriers.keys() {
        if let Some(other) =
            book.document_in_slot(*slot).filter(|other| other.head.document_ref != document_ref && other.status.is_issued())
        {
            let detail = format!(
                "the usage of the document is now billed by {}, which is issued and would not bill it again",
                other.head.number
            );
            return Err(Refusal::conflict("billed_elsewhere", detail));
        }
    }
    // The zone can have moved west since the issue.
    let today = book.entity(&document.head.entity_ref)?.profile.time_zone.service_date(now);
    let on = document.issue_date.map_or(today, |issued| issued.max(today));
    book.put(Entry::Voided { document_ref, content: Box::new(content.clone()), at: now, on })?;
    for (slot, usage) in carriers {
        if let Some(carrier) = book.document_in_slot(slot).map(|carrier| carrier.head.document_ref) {
            book.move_events(usage, &[], carrier)?;
        }
    }
    schedule_next_run(book, now)?;
    check::require_lawful(book)?;
    // The period is open again, but the book doesn't hold the events of issued documents. A run must check when the document is
    // due.
    match draft_due_at(book, &document.head)? {
        Some(due_at) => book.bring_due_forward(due_at),
        None => Ok(()),
    }
}

/// Checks that a document can be voided: only regular documents can (billing rules 5).
///
/// # Errors
/// Returns [`Refusal::Conflict`] `not_voidable` for an adjustment or a child.
pub fn require_voidable(purpose: Purpose) -> Result<(), Refusal> {
    match purpose {
        Purpose::Regular(_) => Ok(()),
        Purpose::Usage | Purpose::Adjustment => {
            let detail =
                "an adjustment or a child document cannot be voided: change its usage, or edit the contract from a past date";
            Err(Refusal::conflict("not_voidable", detail))
        }
    }
}

/// Returns whether a child or an adjustment bills anything that the document bills. Its parent may be another invoice: children
/// and adjustments of a usage debit name the period's invoice.
fn is_corrected(book: &ContractBook, document_ref: DocumentRef, content: &DocumentContent) -> bool {
    let keys: Vec<_> = content.ledger_lines().into_iter().map(|line| line.key).collect();
    let is_regular =
        |other: DocumentRef| book.document(other).is_some_and(|other| matches!(other.head.purpose, Purpose::Regular(_)));
    // A later charge is billed together with the document's items but isn't on the document.
    let is_with = |line: &LedgerLine| {
        keys.iter().any(|key| {
            line.key == *key
                || line.key.line_item_id.as_ref().is_some_and(LineItemId::is_of_charge)
                    && (line.key.product_no, line.key.period_start, line.key.bill_with)
                        == (key.product_no, key.period_start, key.bill_with)
        })
    };
    let bills_the_same =
        book.lines().any(|(other, lines)| other != document_ref && !is_regular(other) && lines.iter().any(is_with));
    // An open adjustment without an amount may still carry an event of the period.
    let family = book.document(document_ref).map(|document| document.family);
    let carries_the_same = book.documents().any(|other| {
        Some(other.family) == family
            && other.head.purpose == Purpose::Adjustment
            && other.status == LifecycleStatus::Draft
            && book.has_events(other.head.document_ref)
            && keys.iter().any(|key| other.head.parts.contains(&key.product_no) && other.head.period.contains(key.period_start))
    });
    bills_the_same || carries_the_same
}

/// Returns whether a product has billed, or has usage or a charge. If so, its first day is fixed (billing rules 7).
pub fn has_activity(book: &ContractBook, no: ProductNo) -> bool {
    let is_issued = |document: &BookDocument| document.status.is_issued() && document.head.parts.contains(&no);
    book.documents().any(is_issued)
        || book.documented().periods_of(no).next().is_some()
        || book.usage().iter().any(|(key, total)| key.product_no == no && total.events > 0)
        || book.charges().live().any(|charge| charge.product_no == no)
}
