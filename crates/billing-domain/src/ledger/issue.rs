//! Due documents and their issue, the only transition from open to frozen (billing rules 2, 5).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::NaiveDate;

use super::book::ExplainedContent;
use super::open::{NewDocument, part_of};
use super::{ContractBook, Entry, IdGenerator, check};
use crate::calendar::{Period, TimeZone, Timestamp, day_after};
use crate::contract::Contract;
use crate::contract::terms::PaymentTime;
use crate::document::legal_particulars::missing;
use crate::document::lines::{BillWith, DocumentLine, LedgerLine, negated};
use crate::document::linking::{BillingSlot, ProductPart, SlotKind, part_for_usage, part_in, parts_of_period};
use crate::document::totals::DocumentContent;
use crate::document::{
    AtIssue, BookDocument, CONTENT_FORMAT, DocumentHead, DocumentKind, IssuedDocument, LifecycleStatus, Parties, Purpose,
    due_date,
};
use crate::einvoice;
use crate::money::{Currency, Money};
use crate::party::Entity;
use crate::party::legal::Strictness;
use crate::refs::{DocumentRef, EntityRef, LineItemId, ProductNo};
use crate::refusal::{Refusal, WaitReason};

/// The result of issuing a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueOutcome {
    /// The draft.
    pub document_ref: DocumentRef,
    /// The issued documents with their totals. The list is one of:
    /// - the draft itself
    /// - a document of the opposite kind that replaced the draft
    /// - the draft and a credit for it
    /// - empty if the draft was discarded
    pub issued: Vec<(DocumentRef, Money)>,
    /// The draft's total.
    pub total: Money,
}

/// A due document that can't be issued. Each run tries again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The draft; `None` if the document isn't opened yet.
    pub document_ref: Option<DocumentRef>,
    /// The document's own period.
    pub period: Period,
    /// The reason.
    pub refusal: Refusal,
}

/// The result of issuing all due documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssueReport {
    /// The result of each document, in order of issue.
    pub outcomes: Vec<IssueOutcome>,
    /// The documents that can't be issued because they lack legal particulars or a line isn't explained.
    pub failed: Vec<Failure>,
    /// Whether more due documents remain.
    pub is_cut_short: bool,
}

/// Issues due documents in order: by the instant at which they are due, regular documents before others, then by opening. A draft
/// shows the discount and tax that this order gives (billing rules 5). Issues about `most` documents; documents that fall due at
/// the same time stay together. A document that can't be issued stays a draft and blocks no other document (billing rules 2).
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`].
pub fn issue_due(
    book: &mut ContractBook,
    now: Timestamp,
    most: usize,
    supplies: &mut impl IdGenerator,
) -> Result<IssueReport, Refusal> {
    book.require_whole()?;
    book.set_as_of(now);
    let mut run = IssueReport::default();
    loop {
        let done = run.outcomes.len();
        run.failed.clear();
        issue_once(book, now, most, &mut run, supplies)?;
        // A document issued or discarded in this pass may unblock one that failed, or have opened its parent.
        let is_done = run.failed.is_empty() && !has_due_draft(book, now)?;
        if is_done || run.is_cut_short || run.outcomes.len() == done {
            break;
        }
    }
    schedule_next_run(book, now)?;
    check::require_lawful(book)?;
    Ok(run)
}

/// A due document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DueDocument {
    /// The regular document of a slot, opened or not.
    Regular(BillingSlot),
    /// An adjustment or a child.
    Other(DocumentRef),
}

/// Returns the due documents in the order of their issue. With `by`, only those that are due by then.
fn documents_in_order(book: &ContractBook, by: Option<Timestamp>) -> Result<Vec<(Timestamp, DueDocument)>, Refusal> {
    let mut due: Vec<(Timestamp, DueDocument)> = Vec::new();
    for (due_at, place) in open_places(book, by)? {
        due.push((due_at, DueDocument::Regular(place)));
    }
    for draft in book.documents().filter(|document| document.status == LifecycleStatus::Draft) {
        if matches!(draft.head.purpose, Purpose::Regular(_)) {
            continue;
        }
        if let Some(due_at) = draft_due_at(book, &draft.head)?.filter(|due_at| by.is_none_or(|by| *due_at <= by)) {
            due.push((due_at, DueDocument::Other(draft.head.document_ref)));
        }
    }
    // The sort is stable: slots keep the order of the contract, and drafts the order of opening.
    due.sort_by_key(|(due_at, document)| (*due_at, matches!(document, DueDocument::Other(_))));
    Ok(due)
}

/// Returns whether a draft is due.
fn has_due_draft(book: &ContractBook, now: Timestamp) -> Result<bool, Refusal> {
    for document in book.documents().filter(|document| document.status == LifecycleStatus::Draft) {
        if draft_due_at(book, &document.head)?.is_some_and(|due_at| due_at <= now) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl ContractBook {
    /// Returns the drafts of a family in the order of their issue.
    pub(super) fn drafts_of_family(&self, family: DocumentRef) -> Result<Vec<&BookDocument>, Refusal> {
        let drafts: Vec<&BookDocument> =
            self.documents().filter(|it| it.family == family && it.status == LifecycleStatus::Draft).collect();
        if drafts.len() < 2 {
            return Ok(drafts);
        }
        let mut in_order = Vec::with_capacity(drafts.len());
        for draft in drafts {
            // A draft that no longer bills anything is never due.
            let due_at = draft_due_at(self, &draft.head)?;
            let is_other = !matches!(draft.head.purpose, Purpose::Regular(_));
            in_order.push(((due_at.is_none(), due_at, is_other), draft));
        }
        in_order.sort_by_key(|(position, _)| *position);
        Ok(in_order.into_iter().map(|(_, draft)| draft).collect())
    }
}

/// Tries to issue each due document.
fn issue_once(
    book: &mut ContractBook,
    now: Timestamp,
    most: usize,
    run: &mut IssueReport,
    supplies: &mut impl IdGenerator,
) -> Result<(), Refusal> {
    let mut last = None;
    let mut failed: BTreeSet<BillingSlot> = BTreeSet::new();
    for (due_at, document) in documents_in_order(book, Some(now))? {
        if matches!(document, DueDocument::Regular(place) if failed.contains(&place)) {
            continue;
        }
        if run.outcomes.len() >= most && last != Some(due_at) {
            run.is_cut_short = true;
            break;
        }
        last = Some(due_at);
        match document {
            DueDocument::Regular(place) => {
                let places = shared_places(book, place)?;
                match where_possible(book, place_may_lack(book, place)?, |book| issue_place(book, place, now, supplies))? {
                    Ok(outcome) => run.outcomes.extend(outcome),
                    Err(refusal) => {
                        let document_ref = book.document_in_slot(place).map(|document| document.head.document_ref);
                        let period = part_of(&book.contract, place)?.own.days();
                        run.failed.push(Failure { document_ref, period, refusal });
                        failed.extend(places);
                    }
                }
            }
            DueDocument::Other(document_ref) => {
                let draft = book.require_document(document_ref)?;
                let has_failed = run.failed.iter().any(|failure| failure.document_ref == Some(document_ref));
                if draft.status != LifecycleStatus::Draft || has_failed {
                    continue;
                }
                let counterpart = due_counterpart_of(book, draft, now)?;
                issue_other(book, document_ref, counterpart, now, run, supplies)?;
            }
        }
    }
    Ok(())
}

/// Returns the due adjustment with the same parent and the opposite kind.
fn due_counterpart_of(book: &ContractBook, draft: &BookDocument, now: Timestamp) -> Result<Option<DocumentRef>, Refusal> {
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
fn issue_other(
    book: &mut ContractBook,
    document_ref: DocumentRef,
    counterpart: Option<DocumentRef>,
    now: Timestamp,
    run: &mut IssueReport,
    supplies: &mut impl IdGenerator,
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
        Some(_) => issue_where_possible(&mut book.clone(), &together, now, supplies)?.err(),
        None => None,
    };
    let issued = match waits {
        Some(refusal) => Err(refusal),
        None => issue_where_possible(book, &[document_ref], now, supplies)?,
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

/// Issues documents together if all can be issued. Otherwise they stay drafts that each run tries again, and the inner result is
/// the refusal.
///
/// # Errors
/// Returns the errors of [`issue_due`].
pub(super) fn issue_where_possible(
    book: &mut ContractBook,
    together: &[DocumentRef],
    now: Timestamp,
    supplies: &mut impl IdGenerator,
) -> Result<Result<Vec<IssueOutcome>, Refusal>, Refusal> {
    let lacks = may_lack_any(book, together)?;
    where_possible(book, lacks, |book| {
        let mut outcomes = Vec::new();
        for document_ref in together {
            // An earlier document of the list may have replaced this one.
            if book.require_document(*document_ref)?.status == LifecycleStatus::Draft {
                outcomes.push(issue(book, *document_ref, now, supplies)?);
            }
        }
        Ok(outcomes)
    })
}

/// Runs a decision that issues documents. If a document has to wait, the inner result is the refusal. If `may_lack` says that its
/// legal particulars may be incomplete, no document is opened or numbered then. A draft whose lines aren't explained stays
/// opened, because the book isn't copied for a defect.
fn where_possible<T>(
    book: &mut ContractBook,
    may_lack: bool,
    decide: impl FnOnce(&mut ContractBook) -> Result<T, Refusal>,
) -> Result<Result<T, Refusal>, Refusal> {
    let decided = if may_lack {
        let before = book.clone();
        book.decide_or_restore(&before, decide)
    } else {
        decide(book)
    };
    match decided {
        Ok(decided) => Ok(Ok(decided)),
        Err(refusal @ Refusal::Waits { .. }) => Ok(Err(refusal)),
        Err(refusal) => Err(refusal),
    }
}

fn may_lack_any(book: &ContractBook, documents: &[DocumentRef]) -> Result<bool, Refusal> {
    let mut lacks = false;
    for document_ref in documents {
        let head = &book.require_document(*document_ref)?.head;
        lacks |= may_lack(book, &head.entity_ref, head.currency)?;
    }
    Ok(lacks)
}

/// Returns whether documents of an entity in a currency may have incomplete legal particulars.
fn may_lack(book: &ContractBook, entity_ref: &EntityRef, currency: Currency) -> Result<bool, Refusal> {
    let paper = &book.entity(entity_ref)?.profile.paper;
    let is_strict = paper.strictness == Strictness::Strict || paper.e_invoice.required;
    Ok(is_strict || book.rate_of_exchange(entity_ref, currency)? == Some(None))
}

fn place_may_lack(book: &ContractBook, place: BillingSlot) -> Result<bool, Refusal> {
    let terms = part_of(&book.contract, place)?.own.terms;
    may_lack(book, &terms.entity_ref, terms.pricing.currency)
}

/// Returns the slots of the document that occupies a slot or would be opened there.
fn shared_places(book: &ContractBook, place: BillingSlot) -> Result<Vec<BillingSlot>, Refusal> {
    if let Some(document) = book.document_in_slot(place) {
        return Ok(document.head.parts.iter().map(|no| BillingSlot { product_no: *no, ..place }).collect());
    }
    let part = part_of(&book.contract, place)?;
    let (net_terms, payment) = book.payment_terms(&part)?;
    Ok(book.parts_to_consolidate(&book.contract, &part, net_terms, &payment)?.iter().map(ProductPart::place).collect())
}

/// Issues every document that the contract still has to bill and that can be issued, due or not, in the order of
/// [`issue_due`].
///
/// # Errors
/// Returns the errors of [`issue_due`].
pub(super) fn issue_all(book: &mut ContractBook, now: Timestamp, supplies: &mut impl IdGenerator) -> Result<(), Refusal> {
    for (_, document) in documents_in_order(book, None)? {
        match document {
            DueDocument::Regular(place) => {
                let may_lack = place_may_lack(book, place)?;
                where_possible(book, may_lack, |book| issue_place(book, place, now, supplies))?.ok();
            }
            DueDocument::Other(document_ref) => issue_open(book, document_ref, now, supplies)?,
        }
    }
    // Drafts without a slot.
    for document_ref in drafts(book) {
        issue_open(book, document_ref, now, supplies)?;
    }
    Ok(())
}

/// Issues a document if it is a draft with complete legal particulars.
fn issue_open(
    book: &mut ContractBook,
    document_ref: DocumentRef,
    now: Timestamp,
    supplies: &mut impl IdGenerator,
) -> Result<(), Refusal> {
    if book.require_document(document_ref)?.status == LifecycleStatus::Draft {
        issue_where_possible(book, &[document_ref], now, supplies)?.ok();
    }
    Ok(())
}

fn drafts(book: &ContractBook) -> Vec<DocumentRef> {
    let open = book.documents().filter(|document| document.status == LifecycleStatus::Draft);
    open.map(|document| document.head.document_ref).collect()
}

/// Issues the document of a slot, and opens it if needed. Returns `None` if the document is already issued or nothing requires
/// one.
fn issue_place(
    book: &mut ContractBook,
    place: BillingSlot,
    now: Timestamp,
    supplies: &mut impl IdGenerator,
) -> Result<Option<IssueOutcome>, Refusal> {
    let document_ref = match book.document_in_slot(place) {
        Some(document) if document.status == LifecycleStatus::Draft => document.head.document_ref,
        Some(_) => return Ok(None),
        None => {
            let contract = Arc::clone(&book.contract);
            let part = part_of(&contract, place)?;
            if !has_to_open(book, &contract, &part)? {
                return Ok(None);
            }
            book.document_in(place, now, supplies)?
        }
    };
    issue(book, document_ref, now, supplies).map(Some)
}

/// Returns whether a slot without a document has an amount or charge to bill, or events of a void document to take over.
fn has_to_open(book: &ContractBook, contract: &Contract, part: &ProductPart<'_>) -> Result<bool, Refusal> {
    let (net_terms, payment) = book.payment_terms(part)?;
    for companion in book.parts_to_consolidate(contract, part, net_terms, &payment)? {
        let lines = book.lines_of_part(&companion, None)?;
        let stands = |line: &DocumentLine| line.amount.minor() != 0 || book.is_of_live_charge(line);
        if lines.iter().flat_map(|rated| &rated.lines).any(stands) {
            return Ok(true);
        }
        let waits = |document: &BookDocument| {
            document.status == LifecycleStatus::Void
                && document.head.purpose == Purpose::Regular(part.slot)
                && document.head.period.start() == part.own.start()
                && document.head.parts.contains(&companion.own.product_no)
                && book.has_events(document.head.document_ref)
                // A replaced document hands over no more events: events already moved to another slot stay there.
                && !book.documents().any(|other| other.head.replaces == Some(document.head.document_ref))
        };
        if book.documents().any(waits) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the slots whose documents are due and not issued, oldest first, then in contract order. Checks every period since
/// the contract's first, so that no due document is lost.
pub(super) fn due_places(book: &ContractBook, now: Timestamp) -> Result<Vec<(Timestamp, BillingSlot)>, Refusal> {
    open_places(book, Some(now))
}

/// Does the same as [`due_places`], also for documents that aren't due if `by` is `None`.
fn open_places(book: &ContractBook, by: Option<Timestamp>) -> Result<Vec<(Timestamp, BillingSlot)>, Refusal> {
    let mut open = Vec::new();
    for product in &book.contract.products {
        for period in product.periods().take_while(|period| by.is_none_or(|by| may_be_due(period.start(), by))) {
            for part in parts_of_period(period) {
                let due_at = book.due_at(&part)?;
                let is_open =
                    book.document_in_slot(part.place()).is_none_or(|document| document.status == LifecycleStatus::Draft);
                if is_open && by.is_none_or(|by| due_at <= by) {
                    open.push((due_at, part.place()));
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
    for (due_at, place) in due_places(book, now)? {
        if counted.len() >= most {
            break;
        }
        if let Some(draft) = book.document_in_slot(place) {
            if seen_drafts.insert(draft.head.document_ref) {
                counted.push((due_at, place));
            }
            continue;
        }
        if covered.contains(&place) {
            continue;
        }
        let part = part_of(&book.contract, place)?;
        let (net_terms, payment) = book.payment_terms(&part)?;
        covered.extend(book.parts_to_consolidate(&book.contract, &part, net_terms, &payment)?.iter().map(ProductPart::place));
        if has_to_open(book, &book.contract, &part)? {
            counted.push((due_at, place));
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
pub(super) fn draft_due_at(book: &ContractBook, head: &DocumentHead) -> Result<Option<Timestamp>, Refusal> {
    match head.purpose {
        // A child document that couldn't be issued together with its event.
        Purpose::Usage => Ok(Some(head.created_at)),
        // Adjustments are due on the first service date after the one they were opened on.
        Purpose::Adjustment => {
            let zone = book.entity(&head.entity_ref)?.profile.time_zone;
            let next_day = zone.start_of_day(day_after(zone.service_date(head.created_at)));
            Ok(Some(waits_for_its_period(book, head, next_day)?.unwrap_or(next_day)))
        }
        Purpose::Regular(slot) => {
            let mut first: Option<Timestamp> = None;
            for no in &head.parts {
                let place = BillingSlot { product_no: *no, period_start: head.period.start(), slot };
                if let Some(part) = book.contract.product(*no).and_then(|product| part_in(product, place)) {
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
pub(super) fn waits_for_its_period(
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
        let period = book.contract.product(*no).and_then(|product| product.period_from(invoice.period.start()));
        let goes_on = period
            .filter(|period| period.terms.payment_time == PaymentTime::AfterUse && period.days().end() > invoice.period.end());
        if let Some(period) = goes_on {
            waits = waits.max(Some(book.due_at(&part_for_usage(period))?));
        }
    }
    Ok(waits.filter(|due_at| *due_at > now))
}

/// Records when the billing run processes the contract next: when the first document falls due, open or not, or at once if one
/// is already due.
///
/// # Errors
/// Returns the errors of [`issue_due`].
pub fn schedule_next_run(book: &mut ContractBook, now: Timestamp) -> Result<(), Refusal> {
    let mut next: Option<Timestamp> = None;
    let mut at = |instant: Timestamp| next = Some(next.map_or(instant, |next| next.min(instant)));
    for product in &book.contract.products {
        let mut found: Option<Timestamp> = None;
        for period in product.periods() {
            if found.is_some_and(|found| !may_be_due(period.start(), found)) {
                break;
            }
            for part in parts_of_period(period) {
                let due_at = book.due_at(&part)?;
                let is_open =
                    book.document_in_slot(part.place()).is_none_or(|document| document.status == LifecycleStatus::Draft);
                if due_at > now && is_open {
                    found = Some(found.map_or(due_at, |found| found.min(due_at)));
                }
            }
        }
        found.into_iter().for_each(&mut at);
    }
    for document_ref in drafts(book) {
        draft_due_at(book, &book.require_document(document_ref)?.head)?.into_iter().for_each(&mut at);
    }
    if let Some((due_at, _)) = due_documents(book, now, 1)?.first() {
        at(*due_at);
    }
    book.put_due(next)
}

/// Issues a draft, or discards it if it has no amount, charge, event or dependent document (billing rules 2).
///
/// # Errors
/// Returns [`Refusal::Conflict`] `not_a_draft` if the document isn't a draft, otherwise the errors of [`issue_due`].
pub fn issue(
    book: &mut ContractBook,
    document_ref: DocumentRef,
    now: Timestamp,
    supplies: &mut impl IdGenerator,
) -> Result<IssueOutcome, Refusal> {
    book.require_whole()?;
    book.set_as_of(now);
    if book.require_document(document_ref)?.status != LifecycleStatus::Draft {
        return Err(Refusal::conflict("not_a_draft", "only a draft can be issued"));
    }
    // Terms inherited from the customer or the entity may match only since the draft was opened. Previews show the draft with
    // these products.
    book.consolidate_products(document_ref)?;
    let document = book.require_document(document_ref)?.clone();
    let content = book.content_if_issued(document_ref, now, |_| true)?;
    let total = content.total;
    let is_charged = content.lines().any(|line| book.is_of_live_charge(line));
    let stands = content.has_amount() || is_charged || book.has_events(document_ref) || book.has_dependents(&document);
    if !stands {
        void_draft(book, document_ref, now)?;
        return Ok(IssueOutcome { document_ref, issued: Vec::new(), total });
    }
    // Explains the lines before anything changes, so that a document whose lines aren't explained stays as it is.
    let explained = book.explain_issued(document_ref, content)?;
    let is_child = document.head.purpose == Purpose::Usage;
    let wrong_sign = total.minor() < 0;
    let issued = match document.head.kind {
        DocumentKind::Invoice if wrong_sign && !is_child => split_off_credit(book, &document, &explained.content, now, supplies)?,
        DocumentKind::Invoice | DocumentKind::Credit | DocumentKind::Debit if wrong_sign => {
            vec![flip_kind(book, &document, &explained.content, now, supplies)?]
        }
        DocumentKind::Invoice | DocumentKind::Credit | DocumentKind::Debit => {
            freeze_as(book, document_ref, explained, now)?;
            vec![document_ref]
        }
    };
    let mut outcome = IssueOutcome { document_ref, issued: Vec::new(), total };
    for issued in issued {
        let total = match book.require_document(issued)?.status {
            LifecycleStatus::Draft => freeze(book, issued, now)?,
            _ => book.require_document(issued)?.total.unwrap_or(total),
        };
        outcome.issued.push((issued, total));
    }
    Ok(outcome)
}

/// Discards a draft with its current content.
pub(super) fn void_draft(book: &mut ContractBook, document_ref: DocumentRef, at: Timestamp) -> Result<(), Refusal> {
    let content = Box::new(book.draft_content(document_ref)?);
    book.put(Entry::Discarded { document_ref, content, at })
}

/// Replaces a draft whose total has the wrong sign by a document of the opposite kind with its lines and events (billing rules
/// 5). The draft becomes void. The replacement of a regular document takes its slot and bills the period's usage.
fn flip_kind(
    book: &mut ContractBook,
    document: &BookDocument,
    content: &DocumentContent,
    now: Timestamp,
    supplies: &mut impl IdGenerator,
) -> Result<DocumentRef, Refusal> {
    let head = &document.head;
    let kind = match head.kind {
        DocumentKind::Credit => DocumentKind::Debit,
        DocumentKind::Debit | DocumentKind::Invoice => DocumentKind::Credit,
    };
    // Must come first to free the slot for the replacement.
    void_draft(book, head.document_ref, now)?;
    let new = NewDocument { purpose: head.purpose, replaces: head.replaces, ..adjustment_like(head, kind, head.parent) };
    let turned = book.open(new, now, supplies)?;
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
fn split_off_credit(
    book: &mut ContractBook,
    document: &BookDocument,
    content: &DocumentContent,
    now: Timestamp,
    supplies: &mut impl IdGenerator,
) -> Result<Vec<DocumentRef>, Refusal> {
    let head = &document.head;
    let below: Vec<LedgerLine> = content.ledger_lines().into_iter().filter(|line| line.amount.minor() < 0).collect();
    let kept = book.content_if_issued(head.document_ref, now, |line| line.amount.minor() >= 0)?;
    let kept = book.explain_issued(head.document_ref, kept)?;
    let credit = book.open(adjustment_like(head, DocumentKind::Credit, Some(head.document_ref)), now, supplies)?;
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

/// Freezes a draft with its content and returns its total.
pub(super) fn freeze(book: &mut ContractBook, document_ref: DocumentRef, now: Timestamp) -> Result<Money, Refusal> {
    let content = book.content_if_issued(document_ref, now, |_| true)?;
    let explained = book.explain_issued(document_ref, content)?;
    freeze_as(book, document_ref, explained, now)
}

fn freeze_as(
    book: &mut ContractBook,
    document_ref: DocumentRef,
    explained: ExplainedContent,
    now: Timestamp,
) -> Result<Money, Refusal> {
    let ExplainedContent { content, mentions } = explained;
    if !content.adds_up() {
        return Err(Refusal::Broken("a document's total is not the sum of its lines".to_owned()));
    }
    let document = book.require_document(document_ref)?.clone();
    let head = &document.head;
    let entity = book.entity(&head.entity_ref)?;
    let issue_date = entity.profile.time_zone.service_date(now);
    let total = content.total;
    let rate = match book.rate_of_document(head)? {
        Some(None) => return Err(exchange_rate_missing(head, entity, issue_date)),
        known => known.flatten(),
    };
    let parties = Parties::of(&book.customer, entity);
    let paper = book.paper_of(head, &content, rate)?;
    if entity.profile.paper.strictness == Strictness::Strict {
        require_complete(head, &missing(&parties, Some(&paper), &content))?;
    }
    let requires_e_invoice = entity.profile.paper.e_invoice.required;
    let issued = IssuedDocument {
        format: CONTENT_FORMAT,
        issued_at: now,
        issue_date,
        due_date: due_date(issue_date, head.net_terms),
        parties,
        po_number: book.contract.po_number.clone(),
        note: book.note_of(head),
        content,
        paper: Some(Box::new(paper)),
        at_issue: Some(AtIssue::new(total, Vec::new())?),
    };
    if requires_e_invoice {
        einvoice::require(head, &issued)?;
    }
    book.put(Entry::Issued { document_ref, issued: Box::new(issued), mentions })?;
    Ok(total)
}

/// Refuses to issue a document with incomplete legal particulars for a strict entity (billing rules 10).
fn require_complete(head: &DocumentHead, missing: &[String]) -> Result<(), Refusal> {
    if missing.is_empty() {
        return Ok(());
    }
    let detail = format!(
        "entity {} issues only complete documents, and the document of the period from {} lacks {}",
        head.entity_ref,
        head.period.start(),
        missing.join(", ")
    );
    Err(Refusal::waits(WaitReason::IncompleteParticulars, detail))
}

fn exchange_rate_missing(head: &DocumentHead, entity: &Entity, on: NaiveDate) -> Refusal {
    let to = entity.profile.paper.tax_currency.unwrap_or(head.currency);
    let detail = format!(
        "the document of the period from {} cannot be issued, because entity {} accounts for tax in {to} and no exchange rate for {} exists on or before {on}: post one to /api/exchange_rates/",
        head.period.start(),
        entity.entity_ref,
        head.currency
    );
    Refusal::waits(WaitReason::NoExchangeRate, detail)
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
/// This function doesn't check payments; see [`ReceivablesAccount::void`](super::receivables::ReceivablesAccount::void).
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
    let contract = Arc::clone(&book.contract);
    let mut carriers: BTreeMap<BillingSlot, (ProductNo, NaiveDate)> = BTreeMap::new();
    for line in content.ledger_lines() {
        let period = contract.product(line.key.product_no).and_then(|product| product.period_from(line.key.period_start));
        if let Some(period) = period.filter(|_| line.key.bill_with == BillWith::Usage) {
            carriers.insert(part_for_usage(period).place(), (period.product_no, period.start()));
        }
    }
    for place in carriers.keys() {
        if let Some(other) =
            book.document_in_slot(*place).filter(|other| other.head.document_ref != document_ref && other.status.is_issued())
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
    for (place, usage) in carriers {
        if let Some(carrier) = book.document_in_slot(place).map(|carrier| carrier.head.document_ref) {
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
