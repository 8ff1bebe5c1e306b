//! Putting usage on documents (billing rules 3–5): a draft is re-rated, an issued document gets the difference as an
//! adjustment, an event due upon usage a document of its own.

use std::sync::Arc;

use super::adjust::{no_amount, without_quantities};
use super::book::product_of;
use super::open::New;
use super::{ContractBook, Entry, Supplies, issue};
use crate::calendar::Timestamp;
use crate::contract::ProductPeriod;
use crate::contract::terms::PaymentTime;
use crate::document::lines::{BillWith, LedgerLine, kind_of, negated};
use crate::document::linking::{Part, Place, Slot, part_for_fixed, part_for_usage};
use crate::document::totals::usage_key;
use crate::document::{BookDocument, DocumentKind, Purpose, Standing};
use crate::money::Money;
use crate::party::NetTerms;
use crate::refs::{DocumentRef, ProductNo, UsageProductRef};
use crate::refusal::Refusal;
use crate::usage::{CountedEvent, UsageKey, UsageTotal};

/// The largest sum of a document's lines, in minor units: tax on it still fits.
const MAX_DOCUMENT_MINOR: i64 = i64::MAX / 4;

/// A change of one running total.
struct Change<'c> {
    period: ProductPeriod<'c>,
    key: UsageKey,
    before: UsageTotal,
    after: UsageTotal,
    now: Timestamp,
}

impl Change<'_> {
    /// Whether nothing that is rated differs: the quantity of any line item, or the number of events.
    fn rates_the_same(&self) -> bool {
        let mut metering = self.period.terms.metering(&self.key.usage_product_ref);
        self.before.events == self.after.events
            && metering.all(|(_, metered)| self.before.quantity(metered.aggregation) == self.after.quantity(metered.aggregation))
    }
}

/// Whether events of a service period only add to the usage of a draft that is there: then any number of them costs the
/// same, and the contract needn't be held exclusively.
///
/// # Errors
/// [`Refusal::Broken`] when the book doesn't hold what it is asked for.
pub fn goes_on_a_draft(book: &ContractBook, period: &ProductPeriod<'_>) -> Result<bool, Refusal> {
    let is_issued = |place: &Place| book.in_place(*place).is_some_and(|document| document.standing.is_issued());
    if carriers(period).iter().any(is_issued) {
        return Ok(false);
    }
    match book.home(period, BillWith::Usage) {
        Some(carrier) => Ok(carrier.standing == Standing::Draft && carrier.head.net_terms != NetTerms::DueUponUsage),
        None => Ok(false),
    }
}

/// The places whose documents may carry a period's usage: the one the plan has for it, and with `DURING_USE` those it had
/// while the product ended with the period, or went on.
pub fn carriers(period: &ProductPeriod<'_>) -> Vec<Place> {
    let mut places = vec![part_for_usage(*period).place()];
    if period.terms.payment_time == PaymentTime::DuringUse {
        let (product_no, period_start) = (period.product_no, period.start());
        places.push(Place { product_no, period_start, slot: Slot::Closing });
        places.push(Place { product_no, period_start: period.days().end(), slot: Slot::Period });
    }
    places
}

/// Puts new events of one usage product and service period on a document, and answers it. More than one only where
/// [`goes_on_a_draft`]: others may each get a document of their own.
///
/// # Errors
/// [`Refusal::AmountOutOfRange`]; nothing of the book may be kept then.
pub fn add(
    book: &mut ContractBook,
    product_no: ProductNo,
    usage_product_ref: &UsageProductRef,
    events: &[CountedEvent],
    now: Timestamp,
    supplies: &mut impl Supplies,
) -> Result<DocumentRef, Refusal> {
    let contract = Arc::clone(&book.contract);
    let first = events.first().ok_or_else(|| Refusal::Broken("no event to put".to_owned()))?;
    let period = product_of(&contract, product_no)?.period_at(first.service_date);
    let period = period.ok_or_else(|| Refusal::Broken(format!("product {} bills nothing on the day", product_no.0)))?;
    let key = usage_key(contract.contract_ref, &period, usage_product_ref);
    let before = book.usage().get(&key);
    let mut after = before;
    for event in events {
        after = after.plus(*event)?;
    }
    let change = Change { period, key, before, after, now };
    let carrier = book.home(&period, BillWith::Usage).cloned();
    let document_ref = if is_due_upon_usage(book, carrier.as_ref(), &period)? {
        own_document(book, &change, carrier.as_ref(), supplies)?
    } else {
        match carrier {
            None => book.document_in(part_for_usage(period).place(), now, supplies)?,
            Some(carrier) if carrier.standing == Standing::Draft => carrier.head.document_ref,
            Some(carrier) => correct(book, &change, &carrier, supplies)?,
        }
    };
    note_total(book, change, document_ref)
}

/// Changes an event within its service period, or takes it out (`after` is `None`), and answers the document the change
/// stands on. `without` is its total without the event.
///
/// # Errors
/// As [`add`].
#[allow(clippy::too_many_arguments, reason = "an event before and after, and where it stands")]
pub fn change(
    book: &mut ContractBook,
    key: &UsageKey,
    without: UsageTotal,
    after: Option<CountedEvent>,
    standing: DocumentRef,
    now: Timestamp,
    supplies: &mut impl Supplies,
) -> Result<DocumentRef, Refusal> {
    book.require_whole()?;
    let contract = Arc::clone(&book.contract);
    let period = product_of(&contract, key.product_no)?.period_from(key.period_start);
    let period = period.ok_or_else(|| Refusal::Broken(format!("product {} has no such period", key.product_no.0)))?;
    let before = book.usage().get(key);
    let total = match after {
        Some(event) => without.plus(event)?,
        None => without,
    };
    let change = Change { period, key: key.clone(), before, after: total, now };
    if change.rates_the_same() {
        // Another time within the period, say: the total tells it, and no document.
        if total != before {
            book.put(Entry::UsageMoved { key: change.key, total, onto: None })?;
        }
        return Ok(standing);
    }
    let standing = book.known(standing)?.clone();
    let part = part_for_usage(period);
    let carrier = book.home(&period, BillWith::Usage).cloned();
    let is_carrier = carrier.as_ref().is_some_and(|carrier| carrier.head.document_ref == standing.head.document_ref);
    let document_ref = match (standing.standing, standing.head.purpose) {
        (Standing::Draft, Purpose::Regular(_)) if is_carrier => standing.head.document_ref,
        (Standing::Draft, Purpose::Usage | Purpose::Adjustment) => {
            let lines = lines_of_change(book, &change, carrier.as_ref(), standing.family)?;
            let lines = if standing.head.kind == DocumentKind::Credit { negated(lines)? } else { lines };
            book.collect(standing.head.document_ref, (period.product_no, period.days()), lines)?;
            standing.head.document_ref
        }
        (Standing::Draft | Standing::Issued | Standing::Uncollectible | Standing::Void | Standing::Discarded, _) => {
            let has_own_document = is_due_upon_usage(book, carrier.as_ref(), &period)?
                && !matches!(standing.head.purpose, Purpose::Regular(_))
                && !standing.standing.is_void();
            match carrier {
                // The period's usage isn't billed, or by a draft: that one bills whatever isn't documented.
                None if !has_own_document => book.document_in(part.place(), now, supplies)?,
                Some(carrier) if carrier.standing == Standing::Draft && !has_own_document => carrier.head.document_ref,
                Some(carrier) if standing.standing == Standing::Draft => correct(book, &change, &carrier, supplies)?,
                Some(_) | None => correct(book, &change, &standing, supplies)?,
            }
        }
    };
    note_total(book, change, document_ref)
}

/// Notes the new total, and that the event stands on the document. A draft must be able to say it.
fn note_total(book: &mut ContractBook, change: Change<'_>, document_ref: DocumentRef) -> Result<DocumentRef, Refusal> {
    book.put(Entry::UsageMoved { key: change.key, total: change.after, onto: Some(document_ref) })?;
    refuse_too_large(book, &change.period)?;
    Ok(document_ref)
}

/// Refuses a price of a period that no document could say.
pub(super) fn refuse_too_large(book: &ContractBook, period: &ProductPeriod<'_>) -> Result<(), Refusal> {
    let currency = period.terms.pricing.currency;
    let sum = Money::sum(currency, book.price_of(period)?.into_iter().map(|line| line.amount))?;
    if sum.minor().abs() > MAX_DOCUMENT_MINOR { Err(crate::money::AmountOutOfRange.into()) } else { Ok(()) }
}

/// Puts the difference on the open adjustment of the invoice that a document leads to.
fn correct(
    book: &mut ContractBook,
    change: &Change<'_>,
    standing: &BookDocument,
    supplies: &mut impl Supplies,
) -> Result<DocumentRef, Refusal> {
    book.require_whole()?;
    let carrier = book.home(&change.period, BillWith::Usage).cloned();
    let lines = lines_of_change(book, change, carrier.as_ref(), standing.family)?;
    let parent = book.parent_for(standing)?;
    book.adjust(parent, (change.period.product_no, change.period.days()), lines, change.now, supplies)
}

/// What the change makes a difference of: to everything that is documented where the period's usage is billed,
/// true-ups included; a step of the incremental price where it isn't billed yet.
fn lines_of_change(
    book: &ContractBook,
    change: &Change<'_>,
    carrier: Option<&BookDocument>,
    family: DocumentRef,
) -> Result<Vec<LedgerLine>, Refusal> {
    match carrier {
        Some(carrier) if carrier.standing.is_issued() => book.difference(&change.period, family, &change.key, change.after),
        Some(_) | None => book.step_lines(&change.period, family, &change.key, &change.before, &change.after),
    }
}

/// An event due upon usage: an invoice of its own, issued at once, or a credit where it lowers the price. One that changes
/// no amount lands on the document that bills the period's usage (billing rules 3).
fn own_document(
    book: &mut ContractBook,
    change: &Change<'_>,
    carrier: Option<&BookDocument>,
    supplies: &mut impl Supplies,
) -> Result<DocumentRef, Refusal> {
    book.require_whole()?;
    let invoice = invoice_of(&change.period);
    let known_family = book.in_place(invoice.place()).map(|parent| parent.family);
    let lines = match known_family {
        Some(family) => lines_of_change(book, change, carrier, family)?,
        // Rates are the customer's own until there is a family.
        None => lines_of_change(book, change, carrier, DocumentRef::from_uuid(uuid::Uuid::nil()))?,
    };
    if no_amount(&lines) {
        return match carrier {
            None => book.document_in(part_for_usage(change.period).place(), change.now, supplies),
            Some(carrier) if carrier.standing == Standing::Draft => Ok(carrier.head.document_ref),
            Some(carrier) => correct(book, change, &carrier.clone(), supplies),
        };
    }
    let parent = book.document_in(invoice.place(), change.now, supplies)?;
    let head = book.known(parent)?.head.clone();
    let family = book.known(parent)?.family;
    let lines = lines_of_change(book, change, carrier, family)?;
    let kind = match kind_of(Money::sum(head.currency, lines.iter().map(|line| line.amount))?) {
        DocumentKind::Credit => DocumentKind::Credit,
        DocumentKind::Debit | DocumentKind::Invoice => DocumentKind::Invoice,
    };
    let lines = if kind == DocumentKind::Credit { negated(lines)? } else { lines };
    let own = book.open(
        New {
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
        supplies,
    )?;
    book.put(Entry::Lines { document_ref: own, lines: without_quantities(lines) })?;
    issue::freeze(book, own, change.now)?;
    Ok(own)
}

/// The invoice that children of a period's usage name as their parent: with `BEFORE_USE` the period's own, with
/// `DURING_USE` the one that bills the usage (billing rules 3).
fn invoice_of<'c>(period: &ProductPeriod<'c>) -> Part<'c> {
    let carrier = part_for_usage(*period);
    match carrier.slot {
        Slot::UsageDebit => part_for_fixed(*period),
        Slot::Period | Slot::Closing => carrier,
    }
}

/// Whether the events of a period are documents of their own: as the document that bills them was opened, or would be.
///
/// # Errors
/// [`Refusal::Broken`] when the book doesn't hold what it is asked for.
pub fn is_due_upon_usage(
    book: &ContractBook,
    carrier: Option<&BookDocument>,
    period: &ProductPeriod<'_>,
) -> Result<bool, Refusal> {
    let part = invoice_of(period);
    let net_terms = match carrier.or_else(|| book.in_place(part.place())) {
        Some(document) => document.head.net_terms,
        None => book.money_terms(&part)?.0,
    };
    Ok(net_terms == NetTerms::DueUponUsage)
}
