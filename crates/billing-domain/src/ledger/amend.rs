//! Contract edits, cancels and resumes, and their effect on documents (billing rules 7). Drafts are adapted to the new plan.
//! Issued documents get the difference at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::NaiveDate;

use super::issue::{self, due_documents};
use super::price_limit::{require_price_limit, require_price_limit_of_periods};
use super::reconcile::Revised;
use super::recount::{Recount, recount_reselected};
use super::{ContractBook, Entry, IdGenerator, check};
use crate::calendar::Timestamp;
use crate::contract::amendment::{
    Amendment, AmendmentContext, CancelAt, ContractEdit, QuantityChange, cancelled, edited, resumed, with_quantity,
};
use crate::contract::resolve::Catalog;
use crate::contract::terms::ProductTerms;
use crate::contract::{Contract, ContractProduct, ContractState, ProductPeriod};
use crate::document::lines::{BillWith, LedgerLine, LineStatus};
use crate::document::linking::{BillingSlot, ProductPart, part_for, part_for_usage, part_in};
use crate::document::totals::UsageTotals;
use crate::document::{BookDocument, DocumentHead, DocumentKind, DraftContent, LifecycleStatus, Purpose};
use crate::refs::{DocumentRef, LineItemId, PricingRef, ProductNo};
use crate::refusal::Refusal;
use crate::usage::{UsageKey, UsageTotal};

/// The maximum number of documents that one change may make due at once (billing rules 1.6).
pub const MAX_DUE_AT_ONCE: usize = 24;
/// The maximum number of documents if the caller allows backdating.
pub const MAX_DUE_BACKDATED: usize = 1200;

/// The policy for documents that one change makes due at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackdatingPolicy {
    /// At most [`MAX_DUE_AT_ONCE`] documents.
    #[default]
    Refused,
    /// At most [`MAX_DUE_BACKDATED`] documents.
    Allowed,
}

/// Starts the book of a new contract. Opens no documents, but limits the number of documents that become due.
///
/// # Errors
/// Returns [`Refusal::Invalid`] `too_many_documents` or `o_stands_alone`, or [`Refusal::AmountOutOfRange`].
pub fn create(book: &mut ContractBook, backdated: BackdatingPolicy, now: Timestamp) -> Result<(), Refusal> {
    book.set_as_of(now);
    book.require_apart(&book.contract, None)?;
    require_price_limit(&book.contract, None)?;
    require_few_due(book, 0, &[], backdated, now)?;
    issue::schedule_next_run(book, now)
}

/// Edits the contract. Where the edit selects the line items of reported usage otherwise, `recount` counts the events of a usage
/// product in a period by the terms of the amended contract.
///
/// # Errors
/// Returns the errors of `recount`. Returns [`Refusal::Invalid`] with every violation, including `not_retroactive`,
/// `too_many_documents` and `too_many_events`. Returns [`Refusal::Conflict`]:
/// - `contract_over`, `version_conflict`, `already_started` or `product_over`
/// - `usage_already_reported` or `charge_already_recorded`
pub fn edit<E: From<Refusal>>(
    book: &mut ContractBook,
    (edit, catalog): (&ContractEdit, &Catalog),
    backdated: BackdatingPolicy,
    now: Timestamp,
    recount: impl FnMut(&Contract, &UsageKey) -> Result<Recount, E>,
    id_generator: &mut impl IdGenerator,
) -> Result<(), E> {
    require_running(book, now)?;
    let amendment = with_situation(book, now, |situation| edited(&book.contract, edit, catalog, situation))?;
    book.require_apart(&amendment.contract, Some(&book.contract))?;
    require_billable_usage(book, &amendment)?;
    let recounted = recount_reselected(book, &amendment, recount)?;
    Ok(amend(book, amendment, recounted, backdated, now, id_generator)?)
}

/// Adds a quantity step to a line item.
///
/// # Errors
/// Returns the errors of [`edit`].
pub fn change_quantity(
    book: &mut ContractBook,
    change: &QuantityChange,
    backdated: BackdatingPolicy,
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
) -> Result<(), Refusal> {
    require_running(book, now)?;
    let amendment = with_situation(book, now, |situation| with_quantity(&book.contract, change, situation))?;
    amend(book, amendment, UsageTotals::default(), backdated, now, id_generator)
}

/// Cancels the contract. If the last day is today or earlier, issues all open documents at once as final.
///
/// # Errors
/// Returns [`Refusal::Invalid`] for a last day outside the contract. Returns [`Refusal::Conflict`]:
/// - `contract_over` if the contract is cancelled or over and wouldn't end earlier
/// - `usage_already_reported` if usage is dated after the last day
/// - `charge_already_recorded` if a charge is dated after the last day
pub fn cancel(
    book: &mut ContractBook,
    last_day: CancelAt,
    backdated: BackdatingPolicy,
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
) -> Result<(), Refusal> {
    let is_retroactive = matches!(last_day, CancelAt::Day(_));
    match book.state(now) {
        ContractState::Pending | ContractState::Active | ContractState::Cancelling => {}
        // A completed contract can still be shortened to an earlier day.
        ContractState::Completed if is_retroactive => {}
        ContractState::Completed | ContractState::Cancelled => {
            return Err(Refusal::conflict("contract_over", "the contract is already canceled or over"));
        }
    }
    let amendment = with_situation(book, now, |situation| cancelled(&book.contract, last_day, now, situation))?;
    amend(book, amendment, UsageTotals::default(), backdated, now, id_generator)?;
    let is_final = match last_day {
        CancelAt::PeriodEnd => false,
        CancelAt::Today => true,
        CancelAt::Day(day) => {
            let first = book.contract.products.first().and_then(ContractProduct::newest_terms).cloned();
            first.map_or(Ok(true), |terms| book.today(&terms, now).map(|today| day <= today))?
        }
    };
    if is_final {
        issue::issue_all(book, now, id_generator)?;
        issue::schedule_next_run(book, now)?;
        check::require_lawful(book)?;
    }
    Ok(())
}

/// Resumes a cancelled contract whose last day isn't over.
///
/// # Errors
/// Returns [`Refusal::Conflict`] `contract_over`.
pub fn resume(
    book: &mut ContractBook,
    backdated: BackdatingPolicy,
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
) -> Result<(), Refusal> {
    let is_cancelling = book.state(now) == ContractState::Cancelling;
    if !is_cancelling {
        let detail = "only a canceled contract can be resumed, until its last day is over";
        return Err(Refusal::conflict("contract_over", detail));
    }
    let amendment = resumed(&book.contract);
    amend(book, amendment, UsageTotals::default(), backdated, now, id_generator)
}

fn with_situation<T>(
    book: &ContractBook,
    now: Timestamp,
    decide: impl FnOnce(&AmendmentContext<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    book.require_whole()?;
    for terms in book.contract.products.iter().flat_map(ContractProduct::terms) {
        book.entity(&terms.entity_ref)?;
    }
    // The fallback is never used, because the loop above checks that all entities exist.
    let today = |terms: &ProductTerms| book.today(terms, now).unwrap_or(NaiveDate::MAX);
    let has_activity = |no: ProductNo| issue::has_activity(book, no);
    decide(&AmendmentContext { today: &today, has_activity: &has_activity })
}

fn require_running(book: &ContractBook, now: Timestamp) -> Result<(), Refusal> {
    match book.state(now) {
        ContractState::Pending | ContractState::Active | ContractState::Completed => Ok(()),
        ContractState::Cancelling | ContractState::Cancelled => {
            Err(Refusal::conflict("contract_over", "a canceled contract cannot be edited: resume it, or create another contract"))
        }
    }
}

/// Applies an amendment, and the totals of usage that it counts otherwise. An amendment without changes writes nothing.
fn amend(
    book: &mut ContractBook,
    amendment: Amendment,
    recounted: UsageTotals,
    backdated: BackdatingPolicy,
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
) -> Result<(), Refusal> {
    if amendment.contract == *book.contract {
        return Ok(());
    }
    book.set_as_of(now);
    require_same_structure(book, &amendment)?;
    let due_before = due_documents(book, now, usize::MAX)?.len();
    let drafts: Vec<(BookDocument, DraftContent)> = book
        .documents()
        .filter(|document| document.status == LifecycleStatus::Draft && matches!(document.head.purpose, Purpose::Regular(_)))
        .map(|document| Ok((document.clone(), book.draft_content(document.head.document_ref)?)))
        .collect::<Result<_, Refusal>>()?;
    let before = Arc::clone(&book.contract);
    require_billable_usage(book, &amendment)?;
    require_billable_charges(book, &amendment)?;
    require_price_limit_of_periods(book, &amendment, &recounted)?;
    let housed = charges_with_document(book)?;
    let entries_before = book.entries().len();
    book.put(Entry::Amended(Box::new(Contract { updated_at: now, ..amendment.contract.clone() })))?;
    for (key, total) in recounted {
        book.put(Entry::UsageMoved { key, total, onto: None })?;
    }
    let contract = Arc::clone(&book.contract);
    let plans = (&*before, &*contract);
    book.adapt_periods()?;
    reconcile_drafts(book, plans, drafts, &housed, now, id_generator)?;
    reconcile_issued(book, plans, &amendment.since, now, id_generator)?;
    let issued: Vec<DocumentRef> = book.entries()[entries_before..]
        .iter()
        .filter_map(|entry| match entry {
            Entry::Issued { document_ref, .. } => Some(*document_ref),
            _ => None,
        })
        .collect();
    require_price_limit(&book.contract, Some(&before))?;
    require_few_due(book, due_before, &issued, backdated, now)?;
    issue::schedule_next_run(book, now)?;
    check::require_lawful(book)
}

/// Refuses a change that makes more documents due at once than the policy allows, including corrections (billing rules 1.6).
/// Documents that were due before don't count.
fn require_few_due(
    book: &ContractBook,
    due_before: usize,
    issued: &[DocumentRef],
    backdated: BackdatingPolicy,
    now: Timestamp,
) -> Result<(), Refusal> {
    let due = due_documents(book, now, usize::MAX)?;
    let most = match backdated {
        BackdatingPolicy::Refused => MAX_DUE_AT_ONCE,
        BackdatingPolicy::Allowed => MAX_DUE_BACKDATED,
    };
    let made_due = (due.len() + issued.len()).saturating_sub(due_before);
    if made_due <= most {
        return Ok(());
    }
    let corrected = issued.iter().filter_map(|issued| book.document(*issued)).map(|issued| issued.head.period.start());
    let first = due.iter().map(|(_, slot)| slot.period_start).chain(corrected).min();
    let since = first.map_or_else(String::new, |first| format!(", since the period from {first}"));
    let remedy = match backdated {
        BackdatingPolicy::Refused => format!("to confirm, set allow_backdated to true, which allows {MAX_DUE_BACKDATED}"),
        BackdatingPolicy::Allowed => "choose a later first day".to_owned(),
    };
    let detail = format!("would make {made_due} documents due at once{since}, and the limit is {most}: {remedy}");
    Err(Refusal::field(&["products"], "too_many_documents", detail))
}

/// Refuses to change the properties that structure documents from a period that documents in force bill, whatever the sum of
/// their amounts (billing rules 7).
fn require_same_structure(book: &ContractBook, amendment: &Amendment) -> Result<(), Refusal> {
    for (no, from) in &amendment.restructured {
        let Some((document_ref, start)) = billed_from(book, *no, *from) else { continue };
        let is_waiting = book.document(document_ref).is_some_and(|document| document.status == LifecycleStatus::Draft);
        let bills = if is_waiting { "waits to be issued and bills" } else { "bills" };
        let number = book.number_of(document_ref).map(ToString::to_string).unwrap_or_default();
        let remedy = if is_waiting { ", or once its usage is deleted" } else { "" };
        let detail = format!(
            "{number} {bills} the period from {start} already: entity, currency, payment time, cycle and issue day can change only after it{remedy}"
        );
        return Err(Refusal::field(&["products"], "not_retroactive", detail));
    }
    Ok(())
}

/// Returns a document in force that bills a period of a product from a day on, and the first day of the period. Issued documents
/// come before the documents of events that wait to be issued.
fn billed_from(book: &ContractBook, no: ProductNo, from: NaiveDate) -> Option<(DocumentRef, NaiveDate)> {
    let is_meant = |start: NaiveDate| start >= from;
    let of_slots = book.documents().filter(|document| {
        document.status.is_issued()
            && matches!(document.head.purpose, Purpose::Regular(_))
            && document.head.parts.contains(&no)
            && is_meant(document.head.period.start())
    });
    let mut of_slots = of_slots.map(|document| (document.head.document_ref, document.head.period.start()));
    // The documents of events exist before their period's invoice is issued.
    let of_lines = || {
        let of_product = |(document_ref, lines): (DocumentRef, &'_ [LedgerLine])| {
            let is_billed = |line: &&LedgerLine| {
                line.key.product_no == no
                    && is_meant(line.key.period_start)
                    && book.line_status(document_ref, line) == LineStatus::Issued
            };
            lines.iter().find(is_billed).map(|line| (document_ref, line.key.period_start))
        };
        let is_draft = |document_ref| book.document(document_ref).is_some_and(|it| it.status == LifecycleStatus::Draft);
        book.lines().filter_map(of_product).min_by_key(|(document_ref, _)| is_draft(*document_ref))
    };
    of_slots.next().or_else(of_lines)
}

/// Refuses a change that leaves reported usage without a line item or a period. A cancel can have this effect on usage dated
/// after its last day.
fn require_billable_usage(book: &ContractBook, amendment: &Amendment) -> Result<(), Refusal> {
    for (key, total) in book.usage().iter().filter(|(_, total)| total.events > 0) {
        let Some(from) = amendment.since.get(&key.product_no) else { continue };
        let old = book.contract.period_of(key);
        if old.is_some_and(|old| old.days().end() <= *from) {
            continue;
        }
        let new = amendment.contract.period_of(key);
        let stays = match (old, new) {
            (_, None) => false,
            (old, Some(new)) => {
                let is_shorter = old.is_none_or(|old| new.days().end() < old.days().end());
                let holds = !is_shorter || total.last_day.is_some_and(|day| new.days().contains(day));
                holds && new.terms.meters(&key.usage_product_ref)
            }
        };
        if !stays {
            let detail = format!(
                "usage of {} is already reported in the period from {} and would have no line item or period: choose a later day for the change, or delete the usage first",
                key.usage_product_ref, key.period_start
            );
            return Err(Refusal::conflict("usage_already_reported", detail));
        }
    }
    Ok(())
}

/// Refuses a change that leaves a charge without a period, or with a period in another currency.
fn require_billable_charges(book: &ContractBook, amendment: &Amendment) -> Result<(), Refusal> {
    for charge in book.charges().live().filter(|charge| amendment.since.contains_key(&charge.product_no)) {
        let period = amendment.contract.product(charge.product_no).and_then(|product| product.period_at(charge.date));
        if period.is_none_or(|period| period.terms.pricing.currency != charge.currency) {
            let detail = format!(
                "the charge {} of {} is already recorded and would have no period in {}: choose a later day for the change, or delete the charge first",
                charge.charge_ref, charge.date, charge.currency
            );
            return Err(Refusal::conflict("charge_already_recorded", detail));
        }
    }
    Ok(())
}

/// Returns the charges that have a document. Other charges wait for the replacement of a void document.
fn charges_with_document(book: &ContractBook) -> Result<Vec<LineItemId>, Refusal> {
    let mut housed = Vec::new();
    for charge in book.charges().live() {
        let period = book.product(charge.product_no)?.period_at(charge.date);
        if period.is_some_and(|period| book.billing_document(&period, charge.bill_with).is_some()) {
            housed.push(charge.line_item_id());
        }
    }
    Ok(housed)
}

/// Adapts regular drafts to the new plan and moves their usage to the document that now bills it. A draft without a slot moves
/// to the slot where its usage is billed, or is discarded.
fn reconcile_drafts(
    book: &mut ContractBook,
    (before, contract): (&Contract, &Contract),
    drafts: Vec<(BookDocument, DraftContent)>,
    housed: &[LineItemId],
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
) -> Result<(), Refusal> {
    // Every draft must first leave the slots that it can't keep, so that no draft blocks another.
    for (draft, _) in &drafts {
        let head = remaining(contract, &draft.head);
        if head != draft.head {
            book.put(Entry::Redrawn(Box::new(head)))?;
        }
    }
    for (draft, _) in &drafts {
        take_free_place(book, before, contract, draft)?;
    }
    for (draft, _) in &drafts {
        book.consolidate_products(draft.head.document_ref)?;
    }
    for (draft, _) in &drafts {
        for (no, start) in usage_of(before, &draft.head) {
            let is_used =
                |(key, total): (&UsageKey, &UsageTotal)| key.product_no == no && key.period_start == start && total.events > 0;
            let period = contract.period_from(no, start);
            let from = draft.head.document_ref;
            let Some(period) = period.filter(|_| book.has_events(from) && book.usage().iter().any(is_used)) else { continue };
            let to = carrier_of(book, &period, now, id_generator)?;
            book.move_events((no, start), &[from], to)?;
        }
    }
    for line_item_id in housed {
        let Some(charge) = book.charges().of_line(Some(line_item_id)) else { continue };
        let period = contract.product(charge.product_no).and_then(|product| product.period_at(charge.date));
        let part = period.filter(|period| book.billing_document(period, charge.bill_with).is_none());
        if let Some(part) = part.map(|period| part_for(period, charge.bill_with)) {
            book.document_in(part.slot(), now, id_generator)?;
        }
    }
    for (draft, content) in drafts {
        let document_ref = draft.head.document_ref;
        let document = book.require_document(document_ref)?.clone();
        if !document.head.parts.is_empty() || document.status != LifecycleStatus::Draft {
            continue;
        }
        if book.has_dependents(&document) {
            // Other documents name the draft as their parent, so it is issued without lines of its own.
            issue::issue_where_possible(book, &[document_ref], now, id_generator)?.ok();
        } else {
            book.put(Entry::Discarded { document_ref, content: Box::new(content), at: now })?;
        }
    }
    Ok(())
}

/// Returns a draft's head with the products that still bill in its slot, on the same days and with the same payment time.
fn remaining(contract: &Contract, head: &DocumentHead) -> DocumentHead {
    let Purpose::Regular(kind) = head.purpose else { return head.clone() };
    let stays = |no: &ProductNo| {
        let slot = BillingSlot { product_no: *no, period_start: head.period.start(), kind };
        let part = part_in(contract.product(*no)?, slot)?;
        let terms = part.own.terms;
        (terms.entity_ref == head.entity_ref && terms.pricing.currency == head.currency).then_some(part)
    };
    let parts: Vec<ProductPart<'_>> = head.parts.iter().filter_map(stays).collect();
    let Some(first) = parts.first() else { return DocumentHead { parts: Vec::new(), ..head.clone() } };
    let is_alike = |part: &&ProductPart<'_>| {
        part.own.days() == first.own.days() && part.own.terms.payment_time == first.own.terms.payment_time
    };
    DocumentHead {
        period: first.own.days(),
        is_partial_period: first.own.period.is_partial(),
        parts: parts.iter().filter(is_alike).map(|part| part.own.product_no).collect(),
        ..head.clone()
    }
}

/// Moves a draft that no longer bills anything to the slot where its usage is billed now, if that slot is free. So the draft's
/// events, charges and children keep their document.
fn take_free_place(book: &mut ContractBook, before: &Contract, contract: &Contract, was: &BookDocument) -> Result<(), Refusal> {
    let document_ref = was.head.document_ref;
    if !book.require_document(document_ref)?.head.parts.is_empty() {
        return Ok(());
    }
    let is_stood_on = book.has_events(document_ref) || book.has_dependents(was);
    for (no, usage) in usage_of(before, &was.head) {
        let Some(now) = contract.period_from(no, usage) else { continue };
        let carrier = part_for_usage(now);
        let is_charged = || book.charges().in_period(&now).any(|charge| charge.bill_with == BillWith::Usage);
        let is_free = !book.is_billed(&now, BillWith::Usage)
            && carrier.own.terms.entity_ref == was.head.entity_ref
            && carrier.own.terms.pricing.currency == was.head.currency
            && carrier.kind.document_kind() == was.head.kind
            && book.document_in_slot(carrier.slot()).is_none();
        if is_free && (is_stood_on || is_charged()) {
            let head = DocumentHead {
                purpose: Purpose::Regular(carrier.kind),
                period: carrier.own.days(),
                is_partial_period: carrier.own.period.is_partial(),
                parts: vec![no],
                ..was.head.clone()
            };
            return book.put(Entry::Redrawn(Box::new(head)));
        }
    }
    Ok(())
}

/// Returns the products and service periods whose usage a draft billed.
fn usage_of(contract: &Contract, head: &DocumentHead) -> Vec<(ProductNo, NaiveDate)> {
    let Purpose::Regular(kind) = head.purpose else { return Vec::new() };
    let usage = |no: &ProductNo| {
        let slot = BillingSlot { product_no: *no, period_start: head.period.start(), kind };
        let part = part_in(contract.product(*no)?, slot)?;
        Some((*no, part.usage?.start()))
    };
    head.parts.iter().filter_map(usage).collect()
}

/// Returns the document that carries a period's events now. It is the document that bills the usage, opened if needed, or the
/// open adjustment if that document is issued.
fn carrier_of(
    book: &mut ContractBook,
    period: &ProductPeriod<'_>,
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
) -> Result<DocumentRef, Refusal> {
    match book.billing_document(period, BillWith::Usage).cloned() {
        Some(carrier) if carrier.status.is_issued() => {
            let parent = book.parent_for(&carrier)?;
            book.adjustment(parent, DocumentKind::Debit, (period.product_no, period.days()), now, id_generator)
        }
        Some(carrier) => Ok(carrier.head.document_ref),
        None => book.document_in(part_for_usage(*period).slot(), now, id_generator),
    }
}

/// Corrects every issued document that differs from the new plan, at once if its legal particulars are complete (billing rules
/// 7). If the period of an `AFTER_USE` invoice becomes longer, the additional amount waits for the end of the period.
fn reconcile_issued(
    book: &mut ContractBook,
    (before, contract): (&Contract, &Contract),
    since: &BTreeMap<ProductNo, NaiveDate>,
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
) -> Result<(), Refusal> {
    let mut differences = Vec::new();
    for (product_no, start) in affected_periods(book, before, contract, since) {
        let was = before.period_from(product_no, start);
        let is = contract.period_from(product_no, start);
        let revised = Revised { product_no, start, was, is };
        book.strip_adjustments(&revised)?;
        for with in [BillWith::Fixed, BillWith::Usage] {
            differences.extend(book.differences(&revised, with)?);
        }
    }
    // The credit and debit of one parent must be issued together.
    let mut of_parents: BTreeMap<Option<DocumentRef>, Vec<DocumentRef>> = BTreeMap::new();
    for adjustment in book.adjust_terms(differences, now, id_generator)? {
        let head = &book.require_document(adjustment)?.head;
        if issue::waits_for_its_period(book, head, now)?.is_none() {
            of_parents.entry(head.parent).or_default().push(adjustment);
        }
    }
    for adjustments in of_parents.into_values() {
        issue::issue_where_possible(book, &adjustments, now, id_generator)?.ok();
    }
    Ok(())
}

/// Returns the service periods, by product and first day, that issued documents may bill incorrectly. These are periods of both
/// plans from the period before the first changed day to the last billed or issued day, and periods between which a `ONCE` line
/// item moves.
fn affected_periods(
    book: &ContractBook,
    before: &Contract,
    contract: &Contract,
    since: &BTreeMap<ProductNo, NaiveDate>,
) -> BTreeSet<(ProductNo, NaiveDate)> {
    let mut touched = BTreeSet::new();
    for (no, from) in since {
        let documented: BTreeSet<NaiveDate> = book.documented().periods_of(*no).collect();
        let issued = book.documents().filter(|document| document.status.is_issued() && document.head.parts.contains(no));
        let until = documented.iter().copied().chain(issued.map(|document| document.head.period.last_day())).max();
        let Some(until) = until else { continue };
        touched.extend(documented.into_iter().filter(|start| start >= from).map(|start| (*no, start)));
        for product in [before.product(*no), contract.product(*no)].into_iter().flatten() {
            // The invoice of the first changed period can bill the usage of the period before (`DURING_USE`).
            let before = from.pred_opt().and_then(|day| product.period_at(day));
            touched.extend(before.map(|period| (*no, period.start())));
            let mut next = product.period_at(*from).or_else(|| product.period_after(*from));
            while let Some(period) = next.filter(|period| period.start() <= until) {
                touched.insert((*no, period.start()));
                next = product.period_after(period.days().end());
            }
        }
    }
    let once: BTreeSet<(&PricingRef, &LineItemId)> = [before, contract]
        .into_iter()
        .flat_map(|contract| &contract.products)
        .flat_map(ContractProduct::terms)
        .flat_map(|terms| {
            let once = terms.line_items.iter().filter(|item| item.is_once());
            once.map(|item| (&terms.pricing.pricing_ref, &item.id))
        })
        .collect();
    for (pricing, item) in once {
        let moved = (before.once_billed_in(pricing, item), contract.once_billed_in(pricing, item));
        if moved.0 != moved.1 {
            touched.extend([moved.0, moved.1].into_iter().flatten().map(|(start, no)| (no, start)));
        }
    }
    touched
}
