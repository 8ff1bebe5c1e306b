//! Charges and their effect on documents (billing rules 5). A charge is billed with its period's usage or fixed items. A draft
//! includes the charge; for an issued document, the difference goes to the open adjustment.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::book::product_of;
use super::post::differences_of_period;
use super::reconcile::{Difference, require_in_range};
use super::{ContractBook, Entry, IdGenerator, check, issue};
use crate::access::Actor;
use crate::calendar::Timestamp;
use crate::charge::{Charge, ChargeEdit, NewCharge};
use crate::contract::{Contract, ProductPeriod};
use crate::document::lines::{BillWith, DocumentLine, LedgerLine, LineKey};
use crate::document::linking::part_for;
use crate::document::totals::NetPrice;
use crate::document::{BookDocument, LifecycleStatus, Purpose};
use crate::money::Money;
use crate::refs::{ChargeRef, DocumentRef, PricingRef, ProductNo};
use crate::refusal::{MatchRefusal, Refusal};

/// The time and actor of a decision about a charge, and whether adjustments are issued at once.
#[derive(Clone, Copy, Debug)]
pub struct ChargeContext {
    /// The time of the decision.
    pub now: Timestamp,
    /// The actor.
    pub by: Actor,
    /// Whether the adjustment that carries the charge is issued at once.
    pub issue: bool,
}

/// Records a charge and returns it.
///
/// # Errors
/// Returns:
/// - [`Refusal::NoMatch`] when no product bills the day
/// - [`Refusal::Invalid`] `unknown_product`, `ambiguous_product` or `credit_above_billed`
/// - [`Refusal::AmountOutOfRange`]
pub fn record(
    book: &mut ContractBook,
    new: NewCharge,
    occasion: ChargeContext,
    id_generator: &mut impl IdGenerator,
) -> Result<Charge, Refusal> {
    let period = product_for(&book.contract, new.product_pricing_ref.as_ref(), new.product_no, new.date)?;
    let charge = Charge {
        charge_ref: new.charge_ref.unwrap_or_else(|| ChargeRef::assigned(id_generator.next_id())),
        customer_id: book.contract.customer_id,
        contract_ref: book.contract.contract_ref,
        product_no: period.product_no,
        date: new.date,
        name: new.name,
        quantity: new.quantity,
        unit_price: new.unit_price,
        unit: new.unit,
        currency: period.terms.pricing.currency,
        bill_with: new.bill_with,
        discountable: new.discountable,
        goods: new.goods,
        note: new.note,
        reason: new.reason,
        recorded_at: occasion.now,
        revision: 1,
        revised_at: occasion.now,
        revised_by: occasion.by,
        deleted: false,
    };
    post_revision(book, None, charge, occasion, id_generator)
}

/// Changes a charge and returns it. An edit without changes creates no revision.
///
/// # Errors
/// Returns the errors of [`record`]. Returns [`Refusal::Conflict`] `charge_already_recorded` for a date in a period with another
/// currency.
pub fn change(
    book: &mut ContractBook,
    present: &Charge,
    edit: &ChargeEdit,
    occasion: ChargeContext,
    id_generator: &mut impl IdGenerator,
) -> Result<Charge, Refusal> {
    let changed = edit.applied_to(present);
    if changed == *present {
        return Ok(changed);
    }
    let contract = Arc::clone(&book.contract);
    let period = product_of(&contract, present.product_no)?.period_at(changed.date).ok_or(MatchRefusal::NoChargedProduct)?;
    let currency = period.terms.pricing.currency;
    if currency != present.currency {
        let detail = format!(
            "the charge {} is recorded in {}, and the product bills {} in {currency}: choose a date in {}, or delete the charge \
             and record another",
            present.charge_ref, present.currency, changed.date, present.currency
        );
        return Err(Refusal::conflict("charge_already_recorded", detail));
    }
    post_revision(book, Some(present), changed, occasion, id_generator)
}

/// Deletes a charge. Deleted charges aren't billed.
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`]. Returns [`Refusal::Invalid`] `credit_above_billed` if the
/// remaining charges would credit more than the period bills.
pub fn delete(
    book: &mut ContractBook,
    present: &Charge,
    occasion: ChargeContext,
    id_generator: &mut impl IdGenerator,
) -> Result<Charge, Refusal> {
    post_revision(book, Some(present), Charge { deleted: true, ..present.clone() }, occasion, id_generator)
}

/// Returns the amount that counts for a charge: nothing if the charge is deleted, and for a charge below zero at most what its
/// period bills otherwise (billing rules 9).
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`].
pub fn billed_amount(book: &ContractBook, charge: &Charge) -> Result<Money, Refusal> {
    let period = product_of(&book.contract, charge.product_no)?.period_at(charge.date);
    let Some(period) = period.filter(|_| !charge.deleted) else { return Ok(Money::zero(charge.currency)) };
    let id = charge.line_item_id();
    let line = book.price_of(&period)?.into_iter().find(|line| line.line_item_id.as_ref() == Some(&id));
    Ok(line.map_or(Money::zero(charge.currency), |line| line.amount))
}

/// Returns the period of the single product that matches the pricing and bills the day.
fn product_for<'c>(
    contract: &'c Contract,
    pricing_ref: Option<&PricingRef>,
    product_no: Option<ProductNo>,
    date: chrono::NaiveDate,
) -> Result<ProductPeriod<'c>, Refusal> {
    let path = &["product_pricing_ref"];
    let is_agreed = |pricing_ref: &PricingRef| {
        contract.products.iter().any(|product| product.terms().any(|terms| terms.pricing.pricing_ref == *pricing_ref))
    };
    if pricing_ref.is_some_and(|pricing_ref| !is_agreed(pricing_ref)) {
        let detail = "must be the pricing of a product of the contract";
        return Err(Refusal::field(path, "unknown_product", detail));
    }
    if product_no.is_some_and(|no| contract.product(no).is_none()) {
        return Err(Refusal::field(&["product_no"], "unknown_product", "must be the number of a product of the contract"));
    }
    let is_meant = |period: &ProductPeriod<'_>| {
        pricing_ref.is_none_or(|named| period.terms.pricing.pricing_ref == *named)
            && product_no.is_none_or(|named| period.product_no == named)
    };
    let on_the_day = contract.products.iter().filter_map(|product| product.period_at(date));
    match Vec::from_iter(on_the_day.filter(is_meant)).as_slice() {
        [only] => Ok(*only),
        [] => Err(MatchRefusal::NoChargedProduct.into()),
        _ if pricing_ref.is_some() => {
            let detail = "must be given, because the contract has several products with this pricing on that day";
            Err(Refusal::field(&["product_no"], "ambiguous_product", detail))
        }
        _ => {
            let detail = "must be given, because the contract has several products on that day";
            Err(Refusal::field(path, "ambiguous_product", detail))
        }
    }
}

/// Records the next revision of a charge and reconciles the documents of the old and new period.
fn post_revision(
    book: &mut ContractBook,
    before: Option<&Charge>,
    after: Charge,
    occasion: ChargeContext,
    id_generator: &mut impl IdGenerator,
) -> Result<Charge, Refusal> {
    book.require_whole()?;
    book.set_as_of(occasion.now);
    let contract = Arc::clone(&book.contract);
    let period_of = |charge: &Charge| product_of(&contract, charge.product_no).map(|product| product.period_at(charge.date));
    let old = before.map(period_of).transpose()?.flatten();
    let new = period_of(&after)?.filter(|_| !after.deleted);
    let charge = Charge {
        revision: before.map_or(1, |before| before.revision + 1),
        revised_at: occasion.now,
        revised_by: occasion.by,
        ..after
    };
    let periods: Vec<ProductPeriod<'_>> = old.iter().chain(new.iter().filter(|new| old != Some(**new))).copied().collect();
    let prices = |book: &ContractBook| {
        periods.iter().map(|period| Ok((book.price_of(period)?, net_of(book, period)?))).collect::<Result<Vec<_>, Refusal>>()
    };
    let prices_before = prices(book)?;
    book.put(Entry::Charged { superseded: before.cloned().map(Box::new), charge: Box::new(charge.clone()) })?;
    for ((period, (before, net_before)), (after, net)) in periods.iter().zip(prices_before).zip(prices(book)?) {
        require_in_range(&after, || Ok(before))?;
        if net.minor() < 0 && net.minor() < net_before.minor() {
            return Err(above_billed(period, &charge, net_before));
        }
    }
    let mut corrected = Vec::new();
    if let Some(old) = old.filter(|_| old != new) {
        corrected.extend(reconcile_period(book, &charge, &old, ChargeEffect::Removed, occasion.now, id_generator)?);
    }
    if let Some(new) = new {
        let presence = if old == Some(new) { ChargeEffect::Unchanged } else { ChargeEffect::Added };
        corrected.extend(reconcile_period(book, &charge, &new, presence, occasion.now, id_generator)?);
    }
    record_changed_drafts(book, &periods, charge.bill_with, &corrected)?;
    for adjustment in corrected.into_iter().filter(|_| occasion.issue) {
        if book.require_document(adjustment)?.status == LifecycleStatus::Draft {
            issue::issue_where_possible(book, &[adjustment], occasion.now, id_generator)?.ok();
        }
    }
    issue::schedule_next_run(book, occasion.now)?;
    check::require_lawful(book)?;
    Ok(charge)
}

/// Records that the content of drafts changed: those that bill the periods of a charge, and its adjustments. Drafts that the same
/// decision opens are recorded with it.
fn record_changed_drafts(
    book: &mut ContractBook,
    periods: &[ProductPeriod<'_>],
    bill_with: BillWith,
    adjustments: &[DocumentRef],
) -> Result<(), Refusal> {
    let homes = periods.iter().filter_map(|period| book.billing_document(period, bill_with)).map(|home| home.head.document_ref);
    let changed: BTreeSet<DocumentRef> = homes.chain(adjustments.iter().copied()).collect();
    let is_opened = |document_ref: &DocumentRef| {
        let mut entries = book.unchecked_entries().iter();
        entries.any(|entry| matches!(entry, Entry::Opened { head, .. } if head.document_ref == *document_ref))
    };
    let mut heads = Vec::new();
    for document_ref in changed.into_iter().filter(|document_ref| !is_opened(document_ref)) {
        let document = book.require_document(document_ref)?;
        heads.extend((document.status == LifecycleStatus::Draft).then(|| document.head.clone()));
    }
    heads.into_iter().try_for_each(|head| book.put(Entry::Redrawn(Box::new(head))))
}

/// The effect of a charge's revision on a period.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChargeEffect {
    Added,
    Unchanged,
    Removed,
}

/// Reconciles the documents of a period after a charge changed, and returns the open adjustments that carry the difference. A
/// draft includes the charge without an adjustment.
fn reconcile_period(
    book: &mut ContractBook,
    charge: &Charge,
    period: &ProductPeriod<'_>,
    presence: ChargeEffect,
    now: Timestamp,
    id_generator: &mut impl IdGenerator,
) -> Result<Vec<DocumentRef>, Refusal> {
    let home = book.billing_document(period, charge.bill_with).cloned();
    let is_new = presence == ChargeEffect::Added;
    if home.is_none() && presence != ChargeEffect::Removed {
        book.document_in(part_for(*period, charge.bill_with).slot(), now, id_generator)?;
    }
    let mut differences = differences_of_period(book, period)?;
    let issued = home.filter(|home| home.status.is_issued());
    let id = charge.line_item_id();
    let is_of_charge = |difference: &Difference| difference.line.key.line_item_id.as_ref() == Some(&id);
    if let Some(home) = issued.as_ref().filter(|_| is_new && !differences.iter().any(is_of_charge)) {
        // A charge without an amount needs a document, too.
        let key = LineKey {
            product_no: period.product_no,
            period_start: period.start(),
            line_item_id: Some(id.clone()),
            bill_with: charge.bill_with,
        };
        let line = book.line_of_nothing(period, &key, home.family)?;
        differences.push(Difference { family: home.family, line, is_reversal: false });
    }
    let onto = open_adjustment_with(book, charge, period).map(|open| open.head.document_ref);
    let parent = issued.map(|home| book.parent_for(&home)).transpose()?;
    book.adjust((period.product_no, period.days()), differences, (onto, parent), now, id_generator)
}

/// Returns the open adjustment that carries the charge's latest change.
fn open_adjustment_with<'b>(book: &'b ContractBook, charge: &Charge, period: &ProductPeriod<'_>) -> Option<&'b BookDocument> {
    let id = charge.line_item_id();
    let is_of_charge = |line: &LedgerLine| {
        (line.key.product_no, line.key.period_start) == (period.product_no, period.start())
            && line.key.line_item_id.as_ref() == Some(&id)
    };
    book.documents().rfind(|document| {
        document.status == LifecycleStatus::Draft
            && document.head.purpose == Purpose::Adjustment
            && book.lines_of(document.head.document_ref).iter().any(is_of_charge)
    })
}

/// Returns a period's price after discount with the full amounts of all charges, including charges that count only in part.
fn net_of(book: &ContractBook, period: &ProductPeriod<'_>) -> Result<Money, Refusal> {
    let price = book.price_of(period)?;
    let is_charge = |line: &DocumentLine| book.charges().of_line(line.line_item_id.as_ref()).is_some();
    let others: Vec<DocumentLine> = price.into_iter().filter(|line| !is_charge(line)).collect();
    let mut net = NetPrice::of(&others, period, book.charges())?;
    for charge in book.charges().in_period(period) {
        net = net.plus(charge.amount()?, charge.discountable)?;
    }
    Ok(net.amount()?)
}

/// Creates the refusal for charges that credit more than a product bills in a period without them, after discount (billing
/// rules 9).
fn above_billed(period: &ProductPeriod<'_>, charge: &Charge, net: Money) -> Refusal {
    let left = Money::from_minor(net.minor().max(0), net.currency());
    let detail = format!(
        "the charges of the period from {} would take more than that product bills there without them; {left} are left after \
         discount: take no more than that, or first change the charges below zero",
        period.start()
    );
    let field = if charge.deleted { "charge_ref" } else { "unit_price" };
    Refusal::field(&[field], "credit_above_billed", detail)
}
