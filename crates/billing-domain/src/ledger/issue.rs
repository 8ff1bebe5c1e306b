//! Due documents and their issue, the only transition from open to frozen (billing rules 2, 5).

mod counterparts;
mod due;
mod voiding;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::NaiveDate;

pub use due::{corrects_open_period, due_documents, next_due_after, schedule_next_run};
pub(super) use due::{draft_due_at, waits_for_its_period};
pub(super) use voiding::void_draft;
pub use voiding::{has_activity, require_voidable, void};

use counterparts::{due_counterpart_of, flip_kind, issue_other, split_off_credit};
use due::open_places;

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
use crate::party::legal::Strictness;
use crate::party::{Entity, NetTerms};
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
    id_generator: &mut impl IdGenerator,
) -> Result<IssueReport, Refusal> {
    book.require_whole()?;
    book.set_as_of(now);
    let mut run = IssueReport::default();
    loop {
        let done = run.outcomes.len();
        run.failed.clear();
        issue_once(book, now, most, &mut run, id_generator)?;
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
    for (due_at, slot) in open_places(book, by)? {
        due.push((due_at, DueDocument::Regular(slot)));
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
    id_generator: &mut impl IdGenerator,
) -> Result<(), Refusal> {
    let mut last = None;
    let mut failed: BTreeSet<BillingSlot> = BTreeSet::new();
    for (due_at, document) in documents_in_order(book, Some(now))? {
        if matches!(document, DueDocument::Regular(slot) if failed.contains(&slot)) {
            continue;
        }
        if run.outcomes.len() >= most && last != Some(due_at) {
            run.is_cut_short = true;
            break;
        }
        last = Some(due_at);
        match document {
            DueDocument::Regular(slot) => {
                let places = shared_places(book, slot)?;
                match where_possible(book, place_may_lack(book, slot)?, |book| issue_place(book, slot, now, id_generator))? {
                    Ok(outcome) => run.outcomes.extend(outcome),
                    Err(refusal) => {
                        let document_ref = book.document_in_slot(slot).map(|document| document.head.document_ref);
                        let period = part_of(&book.contract, slot)?.own.days();
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
                issue_other(book, document_ref, counterpart, now, run, id_generator)?;
            }
        }
    }
    Ok(())
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
    id_generator: &mut impl IdGenerator,
) -> Result<Result<Vec<IssueOutcome>, Refusal>, Refusal> {
    let lacks = may_lack_any(book, together)?;
    where_possible(book, lacks, |book| {
        let mut outcomes = Vec::new();
        for document_ref in together {
            // An earlier document of the list may have replaced this one.
            if book.require_document(*document_ref)?.status == LifecycleStatus::Draft {
                outcomes.push(issue(book, *document_ref, now, id_generator)?);
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

fn place_may_lack(book: &ContractBook, slot: BillingSlot) -> Result<bool, Refusal> {
    let terms = part_of(&book.contract, slot)?.own.terms;
    may_lack(book, &terms.entity_ref, terms.pricing.currency)
}

/// Returns the slots of the document that occupies a slot or would be opened there.
fn shared_places(book: &ContractBook, slot: BillingSlot) -> Result<Vec<BillingSlot>, Refusal> {
    if let Some(document) = book.document_in_slot(slot) {
        return Ok(document.head.parts.iter().map(|no| BillingSlot { product_no: *no, ..slot }).collect());
    }
    let part = part_of(&book.contract, slot)?;
    let (net_terms, payment) = book.payment_terms(&part)?;
    Ok(book.parts_to_consolidate(&book.contract, &part, net_terms, &payment)?.iter().map(ProductPart::slot).collect())
}

/// Issues every document that the contract still has to bill and that can be issued, due or not, in the order of
/// [`issue_due`].
///
/// # Errors
/// Returns the errors of [`issue_due`].
pub(super) fn issue_all(book: &mut ContractBook, now: Timestamp, id_generator: &mut impl IdGenerator) -> Result<(), Refusal> {
    for (_, document) in documents_in_order(book, None)? {
        match document {
            DueDocument::Regular(slot) => {
                let may_lack = place_may_lack(book, slot)?;
                where_possible(book, may_lack, |book| issue_place(book, slot, now, id_generator))?.ok();
            }
            DueDocument::Other(document_ref) => issue_open(book, document_ref, now, id_generator)?,
        }
    }
    // Drafts without a slot.
    for document_ref in drafts(book) {
        issue_open(book, document_ref, now, id_generator)?;
    }
    Ok(())
}

/// Issues a document if it is a draft with complete legal particulars.
fn issue_open(
    book: &mut ContractBook,
    document_ref: DocumentRef,
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
) -> Result<(), Refusal> {
    if book.require_document(document_ref)?.status == LifecycleStatus::Draft {
        issue_where_possible(book, &[document_ref], now, id_generator)?.ok();
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
    slot: BillingSlot,
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
) -> Result<Option<IssueOutcome>, Refusal> {
    let document_ref = match book.document_in_slot(slot) {
        Some(document) if document.status == LifecycleStatus::Draft => document.head.document_ref,
        Some(_) => return Ok(None),
        None => {
            let contract = Arc::clone(&book.contract);
            let part = part_of(&contract, slot)?;
            if !has_to_open(book, &contract, &part)? {
                return Ok(None);
            }
            book.document_in(slot, now, id_generator)?
        }
    };
    issue(book, document_ref, now, id_generator).map(Some)
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
                && document.head.purpose == Purpose::Regular(part.kind)
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

/// Issues a draft, or discards it if it has no amount, charge, event or dependent document (billing rules 2).
///
/// # Errors
/// Returns [`Refusal::Conflict`] `not_a_draft` if the document isn't a draft, otherwise the errors of [`issue_due`].
pub fn issue(
    book: &mut ContractBook,
    document_ref: DocumentRef,
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
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
        DocumentKind::Invoice if wrong_sign && !is_child => {
            split_off_credit(book, &document, &explained.content, now, id_generator)?
        }
        DocumentKind::Invoice | DocumentKind::Credit | DocumentKind::Debit if wrong_sign => {
            vec![flip_kind(book, &document, &explained.content, now, id_generator)?]
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
