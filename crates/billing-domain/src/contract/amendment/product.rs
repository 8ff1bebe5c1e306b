//! Application of one element of an edit to its product (billing rules 7).

use chrono::NaiveDate;

use super::chain::{VersionBuilder, before_removal, interrupted, present, take_end};
use super::{AmendmentContext, EFFECTIVE_FROM, EffectiveFrom, ProductPatch, start_of};
use crate::calendar::{Period, day_after};
use crate::contract::resolve::Catalog;
use crate::contract::schedule::CycleUnit;
use crate::contract::terms::{ProductTerms, RequestedProduct};
use crate::contract::{ContractProduct, Segment, SegmentTerms};
use crate::party::PaymentDetails;
use crate::refs::ProductNo;
use crate::refusal::Refusal;
use crate::tax::TaxBasis;
use crate::violation::Violations;

/// Adds the product of an unmatched element and returns its number.
///
/// # Errors
/// Returns every violation, with paths below the element.
pub(super) fn add_product(draft: &mut VersionBuilder, patch: &ProductPatch, catalog: &Catalog) -> Result<ProductNo, Refusal> {
    let (Some(billing_start_date), Some(billing_end_date)) = (patch.billing_start_date, patch.billing_end_date) else {
        let mut found = Violations::none();
        for (field, day) in [("billing_start_date", patch.billing_start_date), ("billing_end_date", patch.billing_end_date)] {
            if day.is_none() {
                found.add(&[field], "required", "must be given for a new product");
            }
        }
        return Err(found.into());
    };
    let patch = patch.clone();
    let terms = catalog.resolve_terms(RequestedProduct {
        line_items: patch.line_items.apply(None),
        minimum_fee: patch.minimum_fee,
        name: patch.name.apply(None),
        condition: patch.condition.apply(None),
        entity_ref: patch.entity_ref.apply(None),
        billing_cycle: patch.billing_cycle.apply(None),
        issue_day: patch.issue_day.apply(None),
        payment_time: patch.payment_time.apply(None),
        tax: patch.tax.apply(None),
        discount: patch.discount.apply(None),
        net_terms: patch.net_terms.apply(None),
        note: patch.note.apply(None),
        payment: PaymentDetails {
            bank_transfer: patch.bank_transfer.apply(None),
            online: patch.online.apply(None),
            crypto: patch.crypto.apply(None),
        },
        treatment: patch.treatment.apply(TaxBasis::default()),
        buyer_reference: patch.buyer_reference.apply(None),
        ..RequestedProduct::plain(patch.pricing_ref, billing_start_date, billing_end_date)
    })?;
    let no = ProductNo(draft.contract.products.iter().map(|product| product.no.0 + 1).max().unwrap_or(0));
    let mut product = ContractProduct::new(no, terms);
    product.segments[0].version = draft.contract.version;
    draft.since.insert(no, billing_start_date);
    draft.contract.products.push(product);
    Ok(no)
}

/// A requested change of a product with its context.
struct Change<'a> {
    product: &'a ContractProduct,
    /// The product before the change. A removed product is restored first.
    base: ContractProduct,
    newest: &'a ProductTerms,
    patch: ProductPatch,
    /// Whether the line items stay those of the terms in force.
    keeps_line_items: bool,
    since: EffectiveFrom,
    catalog: &'a Catalog,
    today: NaiveDate,
    /// Whether the anchor is fixed: the first day has come as the edit leaves it, or the product has activity.
    has_begun: bool,
}

/// Changes the plan of a product by an element of an edit. With `compares`, values that equal the newest agreed terms are
/// ignored.
///
/// # Errors
/// - Returns every violation, with paths below the element.
/// - Returns `already_started` and `product_over`.
pub(super) fn amend_product(
    draft: &mut VersionBuilder,
    product: &ContractProduct,
    patch: &ProductPatch,
    (since, compares): (EffectiveFrom, bool),
    catalog: &Catalog,
    now: &AmendmentContext<'_>,
) -> Result<(), Refusal> {
    let Some(newest) = product.newest_terms() else { return Err(Refusal::Broken("a product without terms".to_owned())) };
    let keeps_line_items = compares && patch.chooses_no_line_items(newest);
    let patch = if compares { patch.clone().beyond(newest) } else { patch.clone() };
    let (today, has_activity) = ((now.today)(newest), (now.has_activity)(product.no));
    let first = patch.billing_start_date.unwrap_or(newest.schedule.range().start());
    let has_begun = has_activity || first <= today;
    let billed = product.billed();
    let is_over = billed.is_some_and(|billed| today >= billed.end());
    let goes_on = is_over && patch.billing_end_date > billed.map(Period::last_day);
    // A product that is restored before its end continues as if it had not been removed.
    let is_back = billed.is_none() || (product.is_removed() && (!is_over || goes_on));
    let base = if is_back { before_removal(product) } else { present(product) };
    let change = Change { product, base, newest, patch, keeps_line_items, since, catalog, today, has_begun };
    match billed {
        _ if has_activity && change.new_start().is_some() => {
            let detail =
                "the product is billed or has usage, so its billing_start_date cannot change: end the product and add another";
            Err(Refusal::conflict("already_started", detail))
        }
        Some(billed)
            if goes_on && change.new_start().is_none() && !matches!(since, EffectiveFrom::Day(day) if day < billed.end()) =>
        {
            change.go_on(draft, billed)
        }
        _ => change.change_from_a_day(draft),
    }
}

impl Change<'_> {
    /// Returns the first day, if it moves.
    fn new_start(&self) -> Option<NaiveDate> {
        self.patch.billing_start_date.filter(|start| Some(*start) != start_of(self.product))
    }

    /// Returns the last day, if it moves. For an ended product, the actual end date also counts as unchanged.
    fn new_last_day(&self) -> Option<NaiveDate> {
        let ended = self.product.billed().filter(|billed| self.today >= billed.end()).map(Period::last_day);
        let kept = [Some(self.newest.schedule.range().last_day()), ended];
        self.patch.billing_end_date.filter(|last| !kept.contains(&Some(*last)))
    }

    /// Continues a product that is over. Billed days stay billed, and the days in between are not billed.
    fn go_on(&self, draft: &mut VersionBuilder, billed: Period) -> Result<(), Refusal> {
        let EffectiveFrom::Day(day) = self.since else {
            let (reference, last) = (&self.patch.pricing_ref, billed.last_day());
            let detail =
                format!("the product of {reference} ended on {last}: set effective_from to the day on which it continues");
            return Err(Refusal::conflict("product_over", detail));
        };
        if let Some(last) = self.patch.billing_end_date.filter(|last| *last < day) {
            let detail = format!("must not be after {last}, the new billing_end_date of {}", self.patch.pricing_ref);
            return Err(Refusal::field(&[EFFECTIVE_FROM], "out_of_range", detail));
        }
        let planned = interrupted(&self.dated_apart()?, billed.end(), day);
        let next = present(&self.dated(&planned, day)?);
        self.require_unsplit(&planned, &next, day)?;
        draft.put(&next, day);
        Ok(())
    }

    /// Changes the terms from the effective date. The start, ends, quantities and notes have their own dates.
    fn change_from_a_day(&self, draft: &mut VersionBuilder) -> Result<(), Refusal> {
        if let Some(billed) = self.product.billed() {
            self.require_late_end(billed)?;
        }
        let planned = present(&self.dated_apart()?);
        let days = planned.billed().unwrap_or(self.newest.schedule.range());
        let starts_later = |product: &ContractProduct| product.billed().is_none_or(|billed| self.today < billed.start());
        let from = match self.since {
            EffectiveFrom::Day(day) => day,
            _ if starts_later(&self.base) || starts_later(&planned) => days.start(),
            // An earlier end can lie before the current period.
            EffectiveFrom::CurrentPeriod => {
                let current = self.base.period_at(self.today).map(|current| current.start());
                current.or_else(|| self.next_start(&planned, |current| current.start())).unwrap_or(days.end())
            }
            EffectiveFrom::NextPeriod => self.next_start(&planned, Period::end).unwrap_or(days.end()),
        };
        // The terms of the first day move with it.
        let from = if from <= days.start() { NaiveDate::MIN } else { from };
        self.require_days(&planned, from)?;
        let next = if from < days.end() { present(&self.dated(&planned, from)?) } else { planned.clone() };
        self.require_unsplit(&planned, &next, from)?;
        let (was, is) = (self.base.plan(), next.plan());
        let rebuilt = is.iter().flat_map(|is| {
            let others = was.iter().filter(|was| was.terms.structure() != is.terms.structure());
            others.filter_map(|was| was.days.intersection(is.days)).map(Period::start)
        });
        if let Some(first) = rebuilt.min() {
            draft.restructured.insert(self.product.no, first);
        }
        draft.put(&next, from.max(days.start()));
        Ok(())
    }

    /// Rejects a change of terms that would take effect after the last day. An edit changes every field that it names, or is
    /// rejected.
    fn require_days(&self, planned: &ContractProduct, from: NaiveDate) -> Result<(), Refusal> {
        let (Some(billed), Some(newest)) = (planned.billed(), planned.newest_terms()) else { return Ok(()) };
        if from < billed.end() || self.changed(newest)? == *newest {
            return Ok(());
        }
        let (reference, last) = (&self.patch.pricing_ref, billed.last_day());
        let detail = format!(
            "the product of {reference} ends on {last}, before the change would take effect: set effective_from to one of its \
             days, include_current_invoice to true, or a later billing_end_date"
        );
        Err(Refusal::conflict("product_over", detail))
    }

    /// Returns a day derived from today's period. Without such a period, returns the first day of the next period.
    fn next_start(&self, product: &ContractProduct, of_current: impl Fn(Period) -> NaiveDate) -> Option<NaiveDate> {
        let current = product.period_at(self.today).map(|current| of_current(current.days()));
        current.or_else(|| product.period_after(self.today).map(|next| next.start()))
    }

    /// Rejects an end that changes days before the product's next period, unless the effective date explicitly allows it
    /// (billing rules 7).
    fn require_late_end(&self, billed: Period) -> Result<(), Refusal> {
        let Some(last) = self.new_last_day().filter(|_| self.has_begun && self.today >= billed.start()) else { return Ok(()) };
        let first = billed.end().min(day_after(last));
        let next = match self.product.period_at(self.today) {
            Some(current) if current.days().end() == billed.end() => Some(current.period.nominal().end()),
            _ => self.next_start(self.product, Period::end),
        };
        let is_asked_for = match self.since {
            EffectiveFrom::CurrentPeriod => true,
            EffectiveFrom::Day(day) => day <= first,
            EffectiveFrom::NextPeriod => false,
        };
        if day_after(last) == billed.end() || next.is_some_and(|next| next <= first) || is_asked_for {
            return Ok(());
        }
        let remedy = "set include_current_invoice to true, or effective_from to that day or an earlier one";
        let detail = format!("would change days from {first} on, before the next period: to confirm, {remedy}");
        Err(Refusal::field(&["billing_end_date"], "ends_before_next_period", detail))
    }

    /// Rejects an effective date that would change terms within a period (billing rules 7).
    fn require_unsplit(&self, planned: &ContractProduct, next: &ContractProduct, from: NaiveDate) -> Result<(), Refusal> {
        let is_changed = |segment: &Segment| segment.in_force_from == from && !planned.segments.contains(segment);
        match planned.period_at(from).filter(|period| period.start() != from) {
            Some(split) if matches!(self.since, EffectiveFrom::Day(_)) && next.segments.iter().any(is_changed) => {
                let (before, after) = (split.start(), split.days().end());
                let detail = format!("must be the first day of a period of {}: {before} or {after}", self.patch.pricing_ref);
                Err(Refusal::field(&[EFFECTIVE_FROM], "not_a_period_start", detail))
            }
            _ => Ok(()),
        }
    }

    /// Returns the product with the changes that have their own dates: notes, net terms, payment details, quantities, the
    /// start and the end.
    fn dated_apart(&self) -> Result<ContractProduct, Refusal> {
        let (mut next, last_day) = (self.base.clone(), self.new_last_day());
        if let (Some(last), Some(terms)) = (last_day, next.newest_terms()) {
            let schedule = &terms.schedule;
            if self.has_begun && schedule.cycle().unit() == CycleUnit::OneTime && last >= schedule.anchor() {
                let detail =
                    format!("must be before {}, because the product is billed once: add another product", schedule.anchor());
                return Err(Refusal::field(&["billing_end_date"], "not_retroactive", detail));
            }
            // The end of the terms replaces the end from the removal.
            take_end(&mut next);
        }
        let start = self.new_start();
        for terms in next.segments.iter_mut().filter_map(|segment| segment.agreed.terms_mut()) {
            *terms = self.patch.timeless_onto(terms);
            if start.is_some() || last_day.is_some() {
                let (schedule, range) = (terms.schedule, terms.schedule.range());
                let (first, last) = (start.unwrap_or(range.start()), last_day.unwrap_or(range.last_day()));
                let is_replaced = self.patch.issue_day.clone().apply(schedule.issue_day()) != schedule.issue_day();
                terms.schedule = match schedule.over(first, last, self.has_begun) {
                    Err(_) if is_replaced => schedule.over(first, last, true)?,
                    moved => moved?,
                };
            }
        }
        if let (Some(start), Some(first)) = (start, next.segments.first_mut()) {
            first.in_force_from = first.in_force_from.min(start);
        }
        Ok(next)
    }

    /// Returns the product with the other changes of the edit from a day on, including in later planned terms.
    fn dated(&self, base: &ContractProduct, from: NaiveDate) -> Result<ContractProduct, Violations> {
        let mut segments: Vec<Segment> = Vec::with_capacity(base.segments.len() + 1);
        let until = base.segments.iter().skip(1).map(|next| next.in_force_from).chain([NaiveDate::MAX]);
        for (segment, until) in base.segments.iter().zip(until) {
            let Some(old) = segment.agreed.terms().filter(|_| from < until) else {
                segments.push(segment.clone());
                continue;
            };
            if segment.in_force_from < from {
                segments.push(segment.clone());
            }
            let agreed = SegmentTerms::Billed(Box::new(self.changed(old)?));
            segments.push(Segment { version: 0, in_force_from: segment.in_force_from.max(from), agreed });
        }
        Ok(ContractProduct { no: base.no, segments })
    }

    /// Returns terms with the changes of the edit.
    fn changed(&self, old: &ProductTerms) -> Result<ProductTerms, Violations> {
        let patch = self.patch.clone();
        let patch = if self.keeps_line_items { patch.for_line_items_of(old) } else { patch };
        patch.onto(old, self.product, self.catalog)
    }
}
