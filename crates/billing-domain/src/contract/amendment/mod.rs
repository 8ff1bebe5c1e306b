//! Edits, cancellations and resumptions of a contract (billing rules 7). Each creates the next version.
//!
//! This module does not decide about documents. Events, previews and issuing read only the new plan.
//!
//! An amendment states the first day on which the plan of each product differs, and thereby the documents to check.

mod chain;
mod matching;
mod patch;
mod product;

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::NaiveDate;

use self::chain::{VersionBuilder, as_of, cut, present};
use self::matching::match_products;
pub use self::patch::{ProductPatch, TaxTreatmentPatch};
use self::product::{add_product, amend_product};
use super::resolve::Catalog;
use super::terms::{ProductTerms, QuantityStep, SelectedCharge};
use super::{Contract, ContractProduct, EndReason, SegmentTerms, check_products};
use crate::calendar::{Timestamp, day_after};
use crate::metadata::Metadata;
use crate::patch::Patch;
use crate::quantity::Quantity;
use crate::refs::{LineItemId, PricingRef, ProductNo};
use crate::refusal::Refusal;
use crate::text::OneLine;
use crate::violation::Violations;

/// The error detail of a second cancellation.
const ENDS_NO_EARLIER: &str = "the contract is already canceled and would not end earlier: choose an earlier last day";
/// The field of an edit with its effective date.
const EFFECTIVE_FROM: &str = "effective_from";

/// The effective date of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EffectiveFrom {
    /// The next period of each product.
    #[default]
    NextPeriod,
    /// The start of each product's current period. For removed products, today is the last billed day.
    CurrentPeriod,
    /// A date in the past or future.
    Day(NaiveDate),
}

/// The end of a canceled contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CancelAt {
    /// The end of each product's current period.
    #[default]
    PeriodEnd,
    /// Today.
    Today,
    /// A date in the past or future.
    Day(NaiveDate),
}

/// The request of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractEdit {
    /// The purchase order number.
    pub po_number: Patch<OneLine>,
    /// The metadata. A value replaces all keys.
    pub metadata: Patch<Metadata>,
    /// The new full list of products; `None` keeps the current list.
    pub products: Option<Vec<ProductPatch>>,
    /// The effective date.
    pub since: EffectiveFrom,
    /// The version the edit is based on. The edit then contains only differences from that version.
    pub version: Option<u32>,
}

/// A request to change the quantity of a fixed line item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityChange {
    /// The pricing of the product.
    pub pricing_ref: PricingRef,
    /// The product number, if several products have the pricing and the start date.
    pub product_no: Option<ProductNo>,
    /// The start date of the product, if several products have the pricing.
    pub billing_start_date: Option<NaiveDate>,
    /// The line item.
    pub line_item_id: LineItemId,
    /// The new quantity.
    pub quantity: Quantity,
    /// The date of the change. Defaults to today.
    pub from: Option<NaiveDate>,
    /// Whether the quantity applies on that date. Otherwise the quantity applies from the first day of the next period.
    pub prorate: bool,
}

impl QuantityChange {
    /// Creates the change of a product's only element of a pricing, from today on.
    pub const fn of(pricing_ref: PricingRef, line_item_id: LineItemId, quantity: Quantity) -> Self {
        Self { pricing_ref, product_no: None, billing_start_date: None, line_item_id, quantity, from: None, prorate: true }
    }
}

/// The next version of a contract and the dates of its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amendment {
    /// The contract with its next version, or the unchanged contract if nothing changes.
    pub contract: Contract,
    /// The products whose plan differs, each with the first changed day.
    pub since: BTreeMap<ProductNo, NaiveDate>,
    /// The products whose documents change their structure, each with the first changed day.
    pub restructured: BTreeMap<ProductNo, NaiveDate>,
}

/// The context of a decision about terms.
pub struct AmendmentContext<'a> {
    /// Returns today's date in the time zone of the billing entity of the terms.
    pub today: &'a dyn Fn(&ProductTerms) -> NaiveDate,
    /// Returns whether a product has billed, or has usage or a charge. Its first day is then fixed.
    pub has_activity: &'a dyn Fn(ProductNo) -> bool,
}

/// Returns the contract after an edit.
///
/// # Errors
/// - Returns [`Refusal::Invalid`] with every violation.
/// - Returns [`Refusal::Conflict`] with `version_conflict`, `already_started` or `product_over`.
pub fn edited(
    contract: &Contract,
    edit: &ContractEdit,
    catalog: &Catalog,
    now: &AmendmentContext<'_>,
) -> Result<Amendment, Refusal> {
    if let Some(version) = edit.version.filter(|version| *version != contract.version) {
        if version > contract.version {
            let detail = format!("must be the newest version of the contract, {}, or be omitted", contract.version);
            return Err(Refusal::field(&["version"], "out_of_range", detail));
        }
        let detail = format!("the contract has version {} now: read it again and edit the new version", contract.version);
        return Err(Refusal::conflict("version_conflict", detail));
    }
    if let (EffectiveFrom::Day(day), Some(first)) = (edit.since, contract.first_day())
        && day < first
    {
        let detail = format!("must not be before the first day of the contract, {first}");
        return Err(Refusal::field(&[EFFECTIVE_FROM], "out_of_range", detail));
    }
    let mut draft = VersionBuilder::of(contract, EndReason::Removed);
    if edit.po_number.is_named() {
        draft.contract.po_number = edit.po_number.clone().apply(contract.po_number.clone());
    }
    match &edit.metadata {
        Patch::Keep => {}
        Patch::Clear => draft.contract.metadata = Metadata::default(),
        Patch::Set(metadata) => draft.contract.metadata = metadata.clone(),
    }
    let Some(patches) = &edit.products else { return Ok(draft.done(contract)) };
    let mut matched = match_products(contract, patches, now)?;
    let kept: Vec<ProductNo> = matched.iter().filter_map(|no| *no).collect();
    // Omitting a product changes nothing if it is over or already removed.
    let is_left_out = |product: &&ContractProduct| !kept.contains(&product.no) && !product.is_removed();
    for product in contract.products.iter().filter(is_left_out).filter(|product| still_bills(product, now)) {
        if let Some((end, billed)) = end_of(product, edit.since, now).zip(product.billed()) {
            // The omission is recorded also if it changes no day. A later edit that omits the product again keeps the end.
            let end = end.min(billed.end());
            draft.put(&cut(product, end, EndReason::Removed), end);
        }
    }
    // With a version, or without an effective date, repeated values are not changes.
    let compares = edit.version.is_some() || edit.since == EffectiveFrom::NextPeriod;
    let mut found = Violations::none();
    for (i, patch) in patches.iter().enumerate() {
        let decided = match matched[i].and_then(|no| contract.product(no)) {
            Some(product) => amend_product(&mut draft, product, patch, (edit.since, compares), catalog, now),
            None => add_product(&mut draft, patch, catalog).map(|no| matched[i] = Some(no)),
        };
        if let Err(refusal) = decided {
            let Refusal::Invalid(violations) = refusal else { return Err(refusal) };
            // The effective date is a field of the edit itself, not of the product.
            let is_day = violations.iter().all(|violation| violation.path == [EFFECTIVE_FROM]);
            let below = ["products", &i.to_string()];
            found.extend_below(if is_day { &[] } else { &below }, violations);
        }
    }
    let amendment = found.or(draft.done(contract))?;
    let place = |no: ProductNo| matched.iter().position(|matched| *matched == Some(no));
    check_products(&amendment.contract.products, place)?;
    Ok(amendment)
}

/// Returns the contract after a cancellation.
///
/// # Errors
/// - Returns [`Refusal::Invalid`] for a last day outside the contract.
/// - Returns [`Refusal::Conflict`] with `contract_over` when the cancellation does not shorten the contract.
pub fn cancelled(
    contract: &Contract,
    last_day: CancelAt,
    at: Timestamp,
    now: &AmendmentContext<'_>,
) -> Result<Amendment, Refusal> {
    if let (CancelAt::Day(day), Some(first), Some(end)) = (last_day, contract.first_day(), contract.effective_end_date()) {
        let earliest = first.pred_opt().unwrap_or(first);
        if contract.cancelled_at.is_some() && day >= end {
            return Err(Refusal::conflict("contract_over", ENDS_NO_EARLIER));
        }
        if day < earliest || day > end {
            let detail = format!("must be from {earliest}, the day before the contract's first day, to its last day, {end}");
            return Err(Refusal::field(&["last_day"], "out_of_range", detail));
        }
    }
    let mut draft = VersionBuilder::of(contract, EndReason::Cancelled);
    for product in &contract.products {
        let end = match last_day {
            CancelAt::PeriodEnd => end_of(product, EffectiveFrom::NextPeriod, now),
            CancelAt::Today => end_of(product, EffectiveFrom::CurrentPeriod, now),
            CancelAt::Day(day) => product.billed().map(|billed| day_after(day).max(billed.start())),
        };
        if let Some((end, _)) = end.zip(product.billed()).filter(|(end, billed)| *end < billed.end()) {
            draft.put(&cut(product, end, EndReason::Cancelled), end);
        }
    }
    let again = contract.cancelled_at.is_some();
    if again && draft.since.is_empty() {
        return Err(Refusal::conflict("contract_over", ENDS_NO_EARLIER));
    }
    draft.contract.cancelled_at = Some(contract.cancelled_at.unwrap_or(at));
    Ok(draft.done(contract))
}

/// Returns the contract after the cancellation is reversed. The plan before the cancellation is in force again.
pub fn resumed(contract: &Contract) -> Amendment {
    let mut draft = VersionBuilder::of(contract, EndReason::Removed);
    let before = before_cancel(contract);
    for product in &contract.products {
        let was = as_of(product, before);
        if let Some(first) = was.segments.first().map(|first| first.in_force_from) {
            draft.put(&was, product.billed().map_or(first, |billed| billed.end()));
        }
    }
    draft.contract.cancelled_at = None;
    draft.done(contract)
}

/// Returns the contract with one more quantity step of a line item.
///
/// # Errors
/// - Returns [`Refusal::Invalid`] for an unknown product or line item.
/// - Returns [`Refusal::Invalid`] for a day outside the billed days of the product.
pub fn with_quantity(contract: &Contract, change: &QuantityChange, now: &AmendmentContext<'_>) -> Result<Amendment, Refusal> {
    let is_meant = |product: &&ContractProduct| {
        product.newest_terms().is_some_and(|terms| terms.pricing.pricing_ref == change.pricing_ref)
            && match change.product_no {
                Some(no) => product.no == no,
                None => {
                    change.billing_start_date.map_or_else(|| still_bills(product, now), |start| start_of(product) == Some(start))
                }
            }
    };
    let mut meant = contract.products.iter().filter(is_meant);
    let (product, None) = (meant.next(), meant.next()) else {
        let detail = "must be given, because several products of the contract have this pricing";
        let field = if change.billing_start_date.is_some() { "product_no" } else { "billing_start_date" };
        return Err(Refusal::field(&[field], "ambiguous_product", detail));
    };
    let Some(product) = product else {
        let detail = "must be the pricing of a product that the contract bills";
        return Err(Refusal::field(&["product_pricing_ref"], "unknown_product", detail));
    };
    let (Some(newest), Some(billed)) = (product.newest_terms(), product.billed()) else {
        return Err(Refusal::conflict("product_over", "the product has no billed days"));
    };
    let wanted = change.from.unwrap_or_else(|| (now.today)(newest).max(billed.start()));
    let from = if change.prorate {
        wanted
    } else {
        product.period_at(wanted).filter(|period| period.start() != wanted).map_or(wanted, |period| period.days().end())
    };
    if !billed.contains(from) {
        let detail = format!("must be from {} to {}, the billed days of the product", billed.start(), billed.last_day());
        return Err(Refusal::field(&["from"], "out_of_range", detail));
    }
    let is_fixed = |terms: &ProductTerms| {
        terms.line_item(&change.line_item_id).is_some_and(|item| matches!(item.charge, SelectedCharge::Fixed { .. }))
    };
    if !product.plan().iter().any(|clip| clip.days.end() > from && is_fixed(clip.terms)) {
        let detail = "must be a fixed line item of the product on that day";
        return Err(Refusal::field(&["line_item_id"], "unknown_line_item", detail));
    }
    let step = QuantityStep { from, quantity: change.quantity };
    let mut next = present(product);
    for terms in next.segments.iter_mut().filter_map(|segment| segment.agreed.terms_mut()) {
        for item in Arc::make_mut(&mut terms.line_items).iter_mut().filter(|item| item.id == change.line_item_id) {
            if let SelectedCharge::Fixed { quantities, .. } = &mut item.charge {
                *quantities = quantities.with(step);
            }
        }
    }
    let mut draft = VersionBuilder::of(contract, EndReason::Removed);
    draft.put(&next, from);
    Ok(draft.done(contract))
}

/// Returns the version before the cancellation in effect.
fn before_cancel(contract: &Contract) -> u32 {
    let cancels = |version: u32| {
        let of_version = contract.products.iter().flat_map(|product| &product.segments).filter(|s| s.version == version);
        of_version.into_iter().any(|segment| matches!(segment.agreed, SegmentTerms::Ended(EndReason::Cancelled)))
    };
    (1..=contract.version).rev().find(|version| !cancels(*version)).unwrap_or(0)
}

fn start_of(product: &ContractProduct) -> Option<NaiveDate> {
    product.newest_terms().map(|terms| terms.schedule.range().start())
}

fn still_bills(product: &ContractProduct, now: &AmendmentContext<'_>) -> bool {
    let both = product.billed().zip(product.newest_terms());
    both.is_some_and(|(billed, terms)| (now.today)(terms) < billed.end())
}

/// Returns the day from which a removed product is no longer billed, if it bills. The product can be over by then.
fn end_of(product: &ContractProduct, since: EffectiveFrom, now: &AmendmentContext<'_>) -> Option<NaiveDate> {
    let (terms, billed) = (product.newest_terms()?, product.billed()?);
    let today = (now.today)(terms);
    Some(match since {
        EffectiveFrom::Day(day) => day.max(billed.start()),
        _ if today < billed.start() => billed.start(),
        EffectiveFrom::CurrentPeriod => day_after(today),
        EffectiveFrom::NextPeriod => match product.period_at(today) {
            Some(current) => current.days().end(),
            None => day_after(today),
        },
    })
}
