//! Posting of usage to documents (billing rules 3–5):
//! - A draft is rated again.
//! - An issued document gets the difference as an adjustment.
//! - An event due upon usage gets its own document.

use std::collections::BTreeMap;
use std::sync::Arc;

pub use super::open::is_due_upon_usage;
use super::open::{NewDocument, invoice_of};
use super::reconcile::{Difference, Revised, no_amount, require_in_range, with_quantities};
use super::{ContractBook, Entry, Extent, IdGenerator, check, issue};
use crate::calendar::Timestamp;
use crate::contract::terms::{MeteredCharge, PaymentTime, SelectedLineItem};
use crate::contract::{Contract, ProductPeriod};
use crate::document::lines::{BillWith, LedgerLine, LedgerUsage, LineUsage, kind_of, merge, negated};
use crate::document::linking::{BillingSlot, SlotKind, part_for_usage};
use crate::document::totals::{UsageTotals, lines_of_step};
use crate::document::{BookDocument, DocumentKind, LifecycleStatus, Purpose};
use crate::money::Money;
use crate::party::NetTerms;
use crate::refs::DocumentRef;
use crate::refusal::Refusal;
use crate::usage::{CountedEvent, EventChanges, UsageKey, UsageTotal};

/// A change of running totals of one usage product in one service period. An event that another line item counts changes two.
struct UsageChange<'c> {
    period: ProductPeriod<'c>,
    /// The key of the total of all line items.
    period_key: UsageKey,
    before: UsageTotals,
    after: UsageTotals,
    /// The changed totals, each with the changes of its events.
    events: BTreeMap<UsageKey, EventChanges>,
    now: Timestamp,
}

impl<'c> UsageChange<'c> {
    fn new(book: &ContractBook, period: ProductPeriod<'c>, key: &UsageKey, now: Timestamp) -> Self {
        let (period_key, before) = (key.of_line_item(None), book.usage().of_period(key));
        Self { period, period_key, after: before.clone(), before, events: BTreeMap::new(), now }
    }

    /// Changes a running total.
    fn put(&mut self, key: &UsageKey, total: UsageTotal, events: EventChanges) -> Result<(), Refusal> {
        if key.line_item_id.is_some() && !total.fits_line_item() {
            let detail =
                "must be smaller, because the period's total of a line item has at most 16 digits before the decimal point";
            return Err(Refusal::field(&["quantity"], "out_of_range", detail));
        }
        self.after.put(key.clone(), total);
        let changed = self.events.entry(key.clone()).or_insert(EventChanges::NONE);
        *changed = changed.plus(events);
        Ok(())
    }

    /// Returns the totals that a line item is rated by, before and after the change.
    fn of_line_item(&self, (item, metered): (&SelectedLineItem, &MeteredCharge)) -> Result<(UsageTotal, UsageTotal), Refusal> {
        let contract_ref = self.period_key.contract_ref;
        let before = self.before.of_line_item(contract_ref, &self.period, (item, metered))?;
        Ok((before, self.after.of_line_item(contract_ref, &self.period, (item, metered))?))
    }

    /// Returns whether a line item is rated by a changed total.
    fn affects(&self, item: &SelectedLineItem) -> bool {
        item.own_total(&self.period_key).is_none_or(|own| self.events.contains_key(&own))
    }

    /// Returns the changes of the events that a line item counts.
    fn events_of(&self, item: &SelectedLineItem) -> EventChanges {
        match item.own_total(&self.period_key) {
            Some(own) => self.events.get(&own).copied().unwrap_or(EventChanges::NONE),
            None => self.events.values().fold(EventChanges::NONE, |all, events| all.plus(*events)),
        }
    }

    /// Returns whether the rated values stay the same: the quantity of each line item and the number of events.
    fn keeps_rated_amount(&self) -> Result<bool, Refusal> {
        for (item, metered) in self.period.terms.metering(&self.period_key.usage_product_ref) {
            let (before, after) = self.of_line_item((item, metered))?;
            if before.events != after.events || before.quantity(metered.aggregation) != after.quantity(metered.aggregation) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns whether events of a service period only add usage to an existing draft. If so, the cost doesn't depend on the number
/// of events, and the contract doesn't need an exclusive lock.
///
/// # Errors
/// Returns [`Refusal::Broken`] when the book lacks a required row.
pub fn only_extends_draft(book: &ContractBook, period: &ProductPeriod<'_>) -> Result<bool, Refusal> {
    let is_issued = |slot: &BillingSlot| book.document_in_slot(*slot).is_some_and(|document| document.status.is_issued());
    if usage_slots(period).iter().any(is_issued) {
        return Ok(false);
    }
    match book.billing_document(period, BillWith::Usage) {
        Some(carrier) => Ok(carrier.status == LifecycleStatus::Draft && carrier.head.net_terms != NetTerms::DueUponUsage),
        None => Ok(false),
    }
}

/// Returns the slots whose documents may carry a period's usage. These are the planned slot and, with `DURING_USE`, the closing
/// invoice's slot and the next period's slot, because an earlier plan may have used them.
pub fn usage_slots(period: &ProductPeriod<'_>) -> Vec<BillingSlot> {
    let mut places = vec![part_for_usage(*period).slot()];
    if period.terms.payment_time == PaymentTime::DuringUse {
        let (product_no, period_start) = (period.product_no, period.start());
        places.push(BillingSlot { product_no, period_start, kind: SlotKind::Closing });
        places.push(BillingSlot { product_no, period_start: period.days().end(), kind: SlotKind::Period });
    }
    places
}

/// Posts new events of one running total to a document, and returns the document. Several events are allowed only if
/// [`only_extends_draft`] returns true, because other events may each get their own document.
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`], or [`Refusal::Invalid`] `out_of_range` for the total of a line item. The caller must then
/// discard the changed book.
pub fn post_usage(
    book: &mut ContractBook,
    key: &UsageKey,
    events: &[CountedEvent],
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
) -> Result<DocumentRef, Refusal> {
    let (mut total, mut changes) = (book.usage().get(key), EventChanges::NONE);
    for event in events {
        total = total.plus(*event)?;
        changes = changes.plus(EventChanges::counted(event));
    }
    post_total(book, key, (total, changes), now, id_generator)
}

/// Adds usage that is about to happen to a copy of a book, which then shows what the usage would change. The copy must not be stored.
///
/// A book that has not all rows is only correct if drafts carry the usage. Usage of a period that is gone adds nothing.
///
/// # Errors
/// Returns the errors of [`post_usage`].
pub fn post_held(
    copy: &mut ContractBook,
    key: &UsageKey,
    held: UsageTotal,
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
) -> Result<(), Refusal> {
    let contract = Arc::clone(&copy.contract);
    let Some(period) = contract.period_of(key) else { return Ok(()) };
    let total = copy.usage().get(key).joined(held)?;
    if copy.extent() == Extent::Whole && !only_extends_draft(copy, &period)? {
        post_total(copy, key, (total, EventChanges::NONE), now, id_generator)?;
    } else {
        copy.put_usage(key.clone(), total);
    }
    Ok(())
}

/// Posts a new running total to a document, and returns the document.
fn post_total(
    book: &mut ContractBook,
    key: &UsageKey,
    (total, changes): (UsageTotal, EventChanges),
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
) -> Result<DocumentRef, Refusal> {
    book.set_as_of(now);
    let contract = Arc::clone(&book.contract);
    let mut change = UsageChange::new(book, period_of(&contract, key)?, key, now);
    change.put(key, total, changes)?;
    let carrier = book.billing_document(&change.period, BillWith::Usage).cloned();
    let is_due_upon_usage = is_due_upon_usage(book, carrier.as_ref(), &change.period)?;
    put_totals(book, &change)?;
    let document_ref = match carrier {
        _ if is_due_upon_usage => issue_usage_document(book, &change, carrier.as_ref(), id_generator)?,
        Some(carrier) if carrier.status.is_issued() => post_adjustment(book, &change, None, &carrier, id_generator)?,
        carrier => on_draft(book, &change, carrier.as_ref(), id_generator)?,
    };
    note_document(book, &change, document_ref)
}

/// An event before a change within its service period.
#[derive(Clone, Copy, Debug)]
pub struct PresentEvent<'k> {
    /// The running total that counts the event.
    pub key: &'k UsageKey,
    /// The values that count.
    pub counted: CountedEvent,
    /// The running total without the event.
    pub without: UsageTotal,
    /// The document of the event's latest change.
    pub listed_on: DocumentRef,
}

/// Changes an event within its service period, or removes it from the period if `after` is `None`. Returns the document that
/// carries the change. `after` names the running total that counts the changed event, which can be that of another line item.
///
/// # Errors
/// Returns the errors of [`post_usage`].
pub fn post_usage_change(
    book: &mut ContractBook,
    present: PresentEvent<'_>,
    after: Option<(&UsageKey, CountedEvent)>,
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
) -> Result<DocumentRef, Refusal> {
    book.require_whole()?;
    book.set_as_of(now);
    let contract = Arc::clone(&book.contract);
    let mut change = UsageChange::new(book, period_of(&contract, present.key)?, present.key, now);
    change.put(present.key, present.without, EventChanges::counted(&present.counted).negated())?;
    if let Some((key, event)) = after {
        change.put(key, change.after.get(key).plus(event)?, EventChanges::counted(&event))?;
    }
    if change.keeps_rated_amount()? {
        // Only the totals change, for example by a different time within the period. No document is affected.
        if change.after != change.before {
            put_totals(book, &change)?;
        }
        return Ok(present.listed_on);
    }
    let listed_on = book.require_document(present.listed_on)?.clone();
    let carrier = book.billing_document(&change.period, BillWith::Usage).cloned();
    let is_billed = carrier.as_ref().is_some_and(|carrier| carrier.status.is_issued());
    let is_of_period = matches!(listed_on.head.purpose, Purpose::Regular(_));
    let has_own_document =
        !is_of_period && !listed_on.status.is_void() && is_due_upon_usage(book, carrier.as_ref(), &change.period)?;
    put_totals(book, &change)?;
    let document_ref = match carrier {
        Some(carrier) if is_billed => {
            // If the event's regular draft no longer bills the usage, the correction belongs to the document that does.
            let corrected = if listed_on.status == LifecycleStatus::Draft && is_of_period { &carrier } else { &listed_on };
            let onto = (listed_on.status == LifecycleStatus::Draft && !is_of_period).then_some(&listed_on);
            post_adjustment(book, &change, onto, corrected, id_generator)?
        }
        _ if has_own_document => {
            let onto = (listed_on.status == LifecycleStatus::Draft).then_some(&listed_on);
            post_adjustment(book, &change, onto, &listed_on, id_generator)?
        }
        // The usage isn't billed, or a draft bills it. The draft bills everything that other documents don't.
        carrier => on_draft(book, &change, carrier.as_ref(), id_generator)?,
    };
    let document_ref = note_document(book, &change, document_ref)?;
    // The child couldn't be issued because its legal particulars were incomplete, and its event is now deleted (billing rules
    // 2).
    let is_open_child = listed_on.status == LifecycleStatus::Draft && listed_on.head.purpose == Purpose::Usage;
    if is_open_child && after.is_none() && no_amount(book.lines_of(listed_on.head.document_ref)) {
        issue::void_draft(book, listed_on.head.document_ref, now)?;
    }
    Ok(document_ref)
}

/// Returns the period of a running total, which the contract must bill.
fn period_of<'c>(contract: &'c Contract, key: &UsageKey) -> Result<ProductPeriod<'c>, Refusal> {
    let period = contract.period_of(key);
    period.ok_or_else(|| Refusal::Broken(format!("product {} has no period from {}", key.product_no.0, key.period_start)))
}

/// Records the new totals, unless the resulting price is above the limit for documents (billing rules 6).
fn put_totals(book: &mut ContractBook, change: &UsageChange<'_>) -> Result<(), Refusal> {
    for key in change.events.keys() {
        book.put(Entry::UsageMoved { key: key.clone(), total: change.after.get(key), onto: None })?;
    }
    let book = &*book;
    let price = |usage: &UsageTotals| book.price_of_changed(&change.period, |item| change.affects(item), usage);
    require_in_range(&price(book.usage())?, || {
        let mut before = book.usage().clone();
        for key in change.events.keys() {
            before.put(key.clone(), change.before.get(key));
        }
        Ok(price(&before)?)
    })
}

/// Records which document carries the event.
fn note_document(book: &mut ContractBook, change: &UsageChange<'_>, document_ref: DocumentRef) -> Result<DocumentRef, Refusal> {
    for key in change.events.keys() {
        book.put(Entry::UsageMoved { key: key.clone(), total: change.after.get(key), onto: Some(document_ref) })?;
    }
    if book.extent() == Extent::Whole {
        check::require_lawful(book)?;
    }
    Ok(document_ref)
}

/// Posts a change to the draft that bills the period's usage, and opens the draft if needed. Amounts that other documents bill
/// above the price are credited (billing rules 5).
fn on_draft(
    book: &mut ContractBook,
    change: &UsageChange<'_>,
    carrier: Option<&BookDocument>,
    id_generator: &mut impl IdGenerator,
) -> Result<DocumentRef, Refusal> {
    let document_ref = match carrier {
        Some(carrier) => carrier.head.document_ref,
        None => book.document_in(part_for_usage(change.period).slot(), change.now, id_generator)?,
    };
    if book.extent() == Extent::Whole {
        let differences = differences_of_period(book, &change.period)?;
        book.adjust((change.period.product_no, change.period.days()), differences, (None, None), change.now, id_generator)?;
    }
    Ok(document_ref)
}

/// Returns the differences of a period's usage and fixed items. Both are needed, because negative charges count up to the sum
/// of both.
pub(super) fn differences_of_period(book: &ContractBook, period: &ProductPeriod<'_>) -> Result<Vec<Difference>, Refusal> {
    let revised = Revised::planned(*period);
    let mut differences = book.differences(&revised, BillWith::Usage)?;
    differences.extend(book.differences(&revised, BillWith::Fixed)?);
    Ok(differences)
}

/// Posts the difference of a change to the draft `onto`, an adjustment or child. If `onto` is `None`, posts it to the open
/// adjustment of the invoice that `corrected` belongs to.
fn post_adjustment(
    book: &mut ContractBook,
    change: &UsageChange<'_>,
    onto: Option<&BookDocument>,
    corrected: &BookDocument,
    id_generator: &mut impl IdGenerator,
) -> Result<DocumentRef, Refusal> {
    book.require_whole()?;
    let of_period = (change.period.product_no, change.period.days());
    let parent = book.parent_for(corrected)?;
    let family = corrected.family;
    let differences = differences_of_change(book, change, family, false)?;
    let onto = onto.map(|onto| onto.head.document_ref);
    let adjusted = book.adjust(of_period, differences, (onto, Some(parent)), change.now, id_generator)?;
    let in_family = |document_ref: &DocumentRef| book.document(*document_ref).is_some_and(|it| it.family == family);
    match onto.or(adjusted.into_iter().find(in_family)) {
        Some(document_ref) => Ok(document_ref),
        // An event needs a document even if it changes no amount.
        None => {
            let document_ref = book.adjustment(parent, DocumentKind::Debit, of_period, change.now, id_generator)?;
            book.collect(document_ref, of_period, Vec::new())?;
            Ok(document_ref)
        }
    }
}

/// Returns the differences that a change causes (billing rules 3). If the period's usage is billed, these are the differences
/// to all billed amounts, including true-ups. Otherwise they are a step of the incremental price.
///
/// Lines of the family show the change of their quantity. New amounts of a child have the tax in force; a correction keeps the
/// tax of the corrected amounts.
fn differences_of_change(
    book: &ContractBook,
    change: &UsageChange<'_>,
    family: DocumentRef,
    is_new: bool,
) -> Result<Vec<Difference>, Refusal> {
    let period = &change.period;
    let is_billed = book.is_billed(period, BillWith::Usage);
    let UsageChange { period_key, before, after, .. } = change;
    let steps = lines_of_step(period_key.contract_ref, period, &period_key.usage_product_ref, before, after)?;
    let metering = period.terms.metering(&period_key.usage_product_ref);
    let steps: Vec<_> = steps.into_iter().zip(metering).filter(|(_, (item, _))| change.affects(item)).collect();
    let mut differences = differences_of_period(book, period)?;
    if !is_billed {
        // Children bill the step. The regular draft bills the rest of the period's usage.
        let is_stepped =
            |difference: &Difference| steps.iter().any(|(step, _)| step.key(period.product_no) == difference.line.key);
        differences.retain(|difference| !is_stepped(difference));
        for (step, _) in &steps {
            differences.extend(book.step_differences(period, step, family)?);
        }
    }
    if is_new {
        let bills_more = |difference: &&mut Difference| difference.line.amount.minor() > 0 && !difference.is_reversal;
        for difference in differences.iter_mut().filter(bills_more) {
            let (rates, has_default_tax) = book.rates_now(difference.line.key.line_item_id.as_ref(), period)?;
            (difference.line.rates, difference.line.has_default_tax) = (rates, has_default_tax);
        }
    }
    let mut changed = Vec::new();
    for (step, (item, _)) in steps {
        let changes = change.events_of(item);
        let has_changed = |usage: &&LineUsage| !usage.quantity.is_zero() || changes != EventChanges::NONE;
        let Some(usage) = step.usage.as_ref().filter(has_changed) else { continue };
        let (usage_product_ref, quantity) = (usage.usage_product_ref.clone(), usage.quantity);
        let usage = LedgerUsage { usage_product_ref, quantity, changes };
        changed.push((book.line_of_nothing(period, &step.key(period.product_no), family)?, usage));
    }
    Ok(with_quantities(differences, family, changed))
}

/// Opens an invoice for an event due upon usage, or a credit if the event lowers the price, and issues it at once. An event
/// that changes no amount is posted to the document that bills the period's usage (billing rules 3).
fn issue_usage_document(
    book: &mut ContractBook,
    change: &UsageChange<'_>,
    carrier: Option<&BookDocument>,
    id_generator: &mut impl IdGenerator,
) -> Result<DocumentRef, Refusal> {
    book.require_whole()?;
    let parent = book.document_in(invoice_of(&change.period).slot(), change.now, id_generator)?;
    let (head, family) = (book.require_document(parent)?.head.clone(), book.require_document(parent)?.family);
    let differences = differences_of_change(book, change, family, true)?;
    let (own, others): (Vec<Difference>, Vec<Difference>) =
        differences.into_iter().partition(|difference| difference.family == family);
    let own: Vec<LedgerLine> = own.into_iter().map(|difference| difference.line).collect();
    let of_period = (change.period.product_no, change.period.days());
    if no_amount(&own) {
        return match carrier {
            Some(carrier) if carrier.status.is_issued() => post_adjustment(book, change, None, carrier, id_generator),
            carrier => on_draft(book, change, carrier, id_generator),
        };
    }
    book.adjust(of_period, others, (None, None), change.now, id_generator)?;
    let kind = match kind_of(Money::sum(head.currency, own.iter().map(|line| line.amount))?) {
        DocumentKind::Credit => DocumentKind::Credit,
        DocumentKind::Debit | DocumentKind::Invoice => DocumentKind::Invoice,
    };
    let lines = if kind == DocumentKind::Credit { negated(own)? } else { own };
    let child = book.open(
        NewDocument {
            kind,
            purpose: Purpose::Usage,
            entity_ref: head.entity_ref,
            currency: head.currency,
            period: change.period.days(),
            is_partial_period: change.period.period.is_partial(),
            parts: vec![change.period.product_no],
            net_terms: NetTerms::DueUponUsage,
            payment: head.payment,
            parent: Some(parent),
            replaces: None,
        },
        change.now,
        id_generator,
    )?;
    book.put(Entry::Lines { document_ref: child, lines: merge(Vec::new(), lines)? })?;
    // Incomplete legal particulars don't reject the event. The child stays a draft until a run can issue it (billing rules 2).
    issue::issue_where_possible(book, &[child], change.now, id_generator)?.ok();
    Ok(child)
}
