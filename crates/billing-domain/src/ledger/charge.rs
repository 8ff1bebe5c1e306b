//! Charges and what they do to documents (billing rules 5): one lands where its period's usage or fixed items are
//! billed, on the draft, or as the difference on the open adjustment of what is issued.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::adjust::no_amount;
use super::book::product_of;
use super::post::refuse_too_large;
use super::{ContractBook, Entry, Supplies, issue};
use crate::access::Actor;
use crate::calendar::Timestamp;
use crate::charge::{Charge, ChargeEdit, NewCharge};
use crate::contract::{Contract, ProductPeriod};
use crate::document::lines::{DocumentLine, LedgerLine, Rates, negated};
use crate::document::linking::part_for;
use crate::document::{BookDocument, DocumentKind, Purpose, Standing};
use crate::money::Money;
use crate::refs::{ChargeRef, DocumentRef, PricingRef};
use crate::refusal::{MatchRefusal, Refusal};

/// Who decides when, and whether what it corrects is issued at once.
#[derive(Clone, Copy, Debug)]
pub struct Occasion {
    /// When.
    pub now: Timestamp,
    /// Who.
    pub by: Actor,
    /// Whether the adjustment it goes on is issued at once.
    pub issue: bool,
}

/// Records a charge, and answers it.
///
/// # Errors
/// [`Refusal::NoMatch`] when no product bills the day; [`Refusal::Invalid`] `unknown_product`, `ambiguous_product`,
/// `credit_above_billed`; [`Refusal::AmountOutOfRange`].
pub fn record(
    book: &mut ContractBook,
    new: NewCharge,
    occasion: Occasion,
    supplies: &mut impl Supplies,
) -> Result<Charge, Refusal> {
    let period = product_for(&book.contract, new.product_pricing_ref.as_ref(), new.date)?;
    let charge = Charge {
        charge_ref: new.charge_ref.unwrap_or_else(|| ChargeRef::assigned(supplies.id())),
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
        note: new.note,
        reason: new.reason,
        recorded_at: occasion.now,
        revision: 1,
        revised_at: occasion.now,
        revised_by: occasion.by,
        deleted: false,
    };
    post_revision(book, None, charge, occasion, supplies)
}

/// Changes a charge, and answers it. What changes nothing makes no revision.
///
/// # Errors
/// As [`record`].
pub fn change(
    book: &mut ContractBook,
    present: &Charge,
    edit: &ChargeEdit,
    occasion: Occasion,
    supplies: &mut impl Supplies,
) -> Result<Charge, Refusal> {
    let changed = edit.applied_to(present);
    if changed == *present {
        return Ok(changed);
    }
    let contract = Arc::clone(&book.contract);
    let period = product_of(&contract, present.product_no)?.period_at(changed.date).ok_or(MatchRefusal::NoChargedProduct)?;
    let currency = period.terms.pricing.currency;
    post_revision(book, Some(present), Charge { currency, ..changed }, occasion, supplies)
}

/// Takes a charge out: it stops counting.
///
/// # Errors
/// [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`].
pub fn delete(
    book: &mut ContractBook,
    present: &Charge,
    occasion: Occasion,
    supplies: &mut impl Supplies,
) -> Result<Charge, Refusal> {
    post_revision(book, Some(present), Charge { deleted: true, ..present.clone() }, occasion, supplies)
}

/// The period of the one product that is meant and bills a day.
fn product_for<'c>(
    contract: &'c Contract,
    pricing_ref: Option<&PricingRef>,
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
    let is_meant = |period: &ProductPeriod<'_>| pricing_ref.is_none_or(|named| period.terms.pricing.pricing_ref == *named);
    let on_the_day = contract.products.iter().filter_map(|product| product.period_at(date));
    match Vec::from_iter(on_the_day.filter(is_meant)).as_slice() {
        [only] => Ok(*only),
        [] => Err(MatchRefusal::NoChargedProduct.into()),
        _ => {
            let detail = "must tell which of the contract's products on that day is meant";
            Err(Refusal::field(path, "ambiguous_product", detail))
        }
    }
}

/// Puts the next revision of a charge in the place of the one before, and the documents of both periods right.
fn post_revision(
    book: &mut ContractBook,
    before: Option<&Charge>,
    after: Charge,
    occasion: Occasion,
    supplies: &mut impl Supplies,
) -> Result<Charge, Refusal> {
    book.require_whole()?;
    let contract = Arc::clone(&book.contract);
    let period_of = |charge: &Charge| product_of(&contract, charge.product_no).map(|product| product.period_at(charge.date));
    let old = before.map(period_of).transpose()?.flatten();
    let new = period_of(&after)?.filter(|_| !after.deleted);
    if let Some(period) = &new {
        let billed_there = before.filter(|_| old == new);
        refuse_above_billed(book, billed_there, &after, period)?;
    }
    let charge = Charge {
        revision: before.map_or(1, |before| before.revision + 1),
        revised_at: occasion.now,
        revised_by: occasion.by,
        ..after
    };
    book.put(Entry::Charged { superseded: before.cloned().map(Box::new), charge: Box::new(charge.clone()) })?;
    let mut corrected = Vec::new();
    if let Some(old) = old.filter(|_| old != new) {
        corrected.extend(put_right(book, &charge, &old, Presence::Gone, occasion.now, supplies)?);
    }
    if let Some(new) = new {
        let presence = if old == Some(new) { Presence::Stays } else { Presence::Comes };
        corrected.extend(put_right(book, &charge, &new, presence, occasion.now, supplies)?);
        refuse_too_large(book, &new)?;
    }
    for adjustment in corrected.into_iter().filter(|_| occasion.issue) {
        if book.known(adjustment)?.standing == Standing::Draft {
            issue::issue(book, adjustment, occasion.now, supplies)?;
        }
    }
    issue::remind(book, occasion.now)?;
    Ok(charge)
}

/// What a charge does in a period.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Comes,
    Stays,
    Gone,
}

/// Puts the documents of a period right after a charge in it changed, and answers the open adjustment it went on, if any. A
/// draft bills it by itself.
fn put_right(
    book: &mut ContractBook,
    charge: &Charge,
    period: &ProductPeriod<'_>,
    presence: Presence,
    now: Timestamp,
    supplies: &mut impl Supplies,
) -> Result<Option<DocumentRef>, Refusal> {
    let Some(home) = book.home(period, charge.bill_with).cloned() else {
        if presence != Presence::Gone {
            book.document_in(part_for(*period, charge.bill_with).place(), now, supplies)?;
        }
        return Ok(None);
    };
    if home.standing == Standing::Draft {
        return Ok(None);
    }
    let id = charge.line_item_id();
    let mut lines = book.less_documented(period, charge.bill_with, home.family, &book.price_of(period)?)?;
    // One of no amount, too, stands on a document.
    lines.retain(|line| {
        let is_new = presence == Presence::Comes && line.key.line_item_id.as_ref() == Some(&id);
        is_new || line.amount.minor() != 0
    });
    lines.iter_mut().for_each(|line| line.usage = None);
    if no_amount(&lines) && presence != Presence::Comes {
        return Ok(None);
    }
    let of_period = (period.product_no, period.days());
    let carrier = open_carrier(book, charge, period).map(|open| (open.head.document_ref, open.head.kind));
    let adjustment = match carrier {
        Some((open, kind)) => {
            let lines = if kind == DocumentKind::Credit { negated(lines)? } else { lines };
            book.collect(open, of_period, lines)?;
            open
        }
        None => book.adjust(book.parent_for(&home)?, of_period, lines, now, supplies)?,
    };
    Ok(Some(adjustment))
}

/// The open adjustment that the charge's latest change stands on.
fn open_carrier<'b>(book: &'b ContractBook, charge: &Charge, period: &ProductPeriod<'_>) -> Option<&'b BookDocument> {
    let id = charge.line_item_id();
    let is_of_charge = |line: &LedgerLine| {
        (line.key.product_no, line.key.period_start) == (period.product_no, period.start())
            && line.key.line_item_id.as_ref() == Some(&id)
    };
    book.documents().rfind(|document| {
        document.standing == Standing::Draft
            && document.head.purpose == Purpose::Adjustment
            && book.lines_on(document.head.document_ref).iter().any(is_of_charge)
    })
}

/// A charge may not take more than the documents of its period bill of its product, after discount. One that takes no more
/// than it did isn't asked.
fn refuse_above_billed(
    book: &ContractBook,
    before: Option<&Charge>,
    after: &Charge,
    period: &ProductPeriod<'_>,
) -> Result<(), Refusal> {
    let amount = after.amount()?;
    let is_more = |before: &Charge| Ok::<_, Refusal>(amount.minor() < before.amount()?.minor());
    if amount.minor() >= 0 || !before.map_or(Ok(true), is_more)? {
        return Ok(());
    }
    let id = after.line_item_id();
    let others: Vec<DocumentLine> =
        book.price_of(period)?.into_iter().filter(|line| line.line_item_id.as_ref() != Some(&id)).collect();
    let mut by_rates: BTreeMap<Rates, Money> = BTreeMap::new();
    let mut add = |rates: Rates, amount: Money| -> Result<(), Refusal> {
        let sum = by_rates.entry(rates).or_insert(Money::zero(after.currency));
        *sum = sum.checked_add(amount)?;
        Ok(())
    };
    for line in others {
        add(book.rates_of(line.line_item_id.as_ref(), period.terms, None), line.amount)?;
    }
    let there = net(&by_rates, after)?;
    let own = book.rates(period.terms, None);
    let own = if after.discountable { own } else { Rates { discount: crate::money::Percentage::ZERO, ..own } };
    let sum = by_rates.entry(own).or_insert(Money::zero(after.currency));
    *sum = sum.checked_add(amount)?;
    if net(&by_rates, after)?.minor() >= 0 {
        return Ok(());
    }
    let there = Money::from_minor(there.minor().max(0), after.currency);
    let detail = format!(
        "makes {amount}, and the documents of the period from {} bill {there} of that product after discount: take no more than that",
        period.start()
    );
    Err(Refusal::field(&["unit_price"], "credit_above_billed", detail))
}

fn net(by_rates: &BTreeMap<Rates, Money>, of: &Charge) -> Result<Money, Refusal> {
    let mut net = Money::zero(of.currency);
    for (rates, sum) in by_rates {
        net = net.checked_add(*sum)?.checked_sub(sum.percent(rates.discount)?)?;
    }
    Ok(net)
}
