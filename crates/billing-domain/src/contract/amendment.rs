//! Edit, cancel and resume → the contract's next version (billing rules 7).
//!
//! What follows for documents isn't decided here: the new plan is all that events, previews and issues read. An
//! amendment says from when a product's plan differs, so that whoever holds the documents knows which to look at.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::agreement::Catalog;
use super::terms::{
    FrozenPricing, ProductTerms, Quantities, QuantityStep, RequestedLineItem, RequestedProduct, SelectedCharge, SelectedLineItem,
    freeze, select,
};
use super::{Agreed, Contract, ContractProduct, EndReason, Segment, check_products};
use crate::calendar::{Period, Timestamp, day_after};
use crate::codes::ExemptionCode;
use crate::contract::schedule::{BillingCycle, BillingSchedule};
use crate::contract::terms::PaymentTime;
use crate::money::{Percentage, Price};
use crate::party::legal::BuyerReference;
use crate::party::{BankTransferDetails, CryptoDetails, NetTerms, OnlinePaymentDetails, PaymentDetails};
use crate::patch::Patch;
use crate::quantity::Quantity;
use crate::refs::{EntityRef, LineItemId, PricingRef, ProductNo};
use crate::refusal::Refusal;
use crate::tax::{TaxCategory, TaxBasis};
use crate::text::{OneLine, Prose};
use crate::violation::Violations;

/// Why a second cancel is refused.
const ENDS_NO_EARLIER: &str = "the contract is cancelled already, and ends no earlier by this";
/// The field of an edit that says from when it holds.
const EFFECTIVE_FROM: &str = "effective_from";

/// From when a change holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Since {
    /// From each product's next period.
    #[default]
    NextPeriod,
    /// From the start of each product's current period; products that leave: from tomorrow.
    CurrentPeriod,
    /// From a day, past or future.
    Day(NaiveDate),
}

/// When a cancelled contract ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastDay {
    /// With each product's current period.
    #[default]
    PeriodEnd,
    /// Today.
    Today,
    /// On a day, past or future.
    Day(NaiveDate),
}

/// One element of an edit's `products`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductPatch {
    /// Which product, together with `billing_start_date` where that is ambiguous.
    pub pricing_ref: PricingRef,
    /// First day billed.
    pub billing_start_date: Option<NaiveDate>,
    /// Last day billed.
    pub billing_end_date: Option<NaiveDate>,
    /// Whether prices, minimum fee and, where all were taken, line items are as the pricing has them now.
    pub reprice: bool,
    /// The selected line items; cleared: all of the pricing's.
    pub line_items: Patch<Vec<RequestedLineItem>>,
    /// The least a period costs; cleared: the pricing's.
    pub minimum_fee: Patch<Price>,
    /// Supplier entity.
    pub entity_ref: Patch<EntityRef>,
    /// Interval of invoices.
    pub billing_cycle: Patch<BillingCycle>,
    /// Date of the first invoice.
    pub issue_day: Patch<NaiveDate>,
    /// Timing of payment.
    pub payment_time: Patch<PaymentTime>,
    /// Tax in percent.
    pub tax: Patch<Percentage>,
    /// Discount in percent.
    pub discount: Patch<Percentage>,
    /// Net terms.
    pub net_terms: Patch<NetTerms>,
    /// Free text for the document.
    pub note: Patch<Prose>,
    /// Bank account.
    pub bank_transfer: Patch<BankTransferDetails>,
    /// Online payment.
    pub online: Patch<OnlinePaymentDetails>,
    /// Crypto wallet.
    pub crypto: Patch<CryptoDetails>,
    /// How it is taxed at a rate of 0.
    pub treatment: TreatmentPatch,
    /// What the payer wants to find on its documents.
    pub buyer_reference: Patch<BuyerReference>,
}

/// How something is taxed, field by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreatmentPatch {
    /// The category.
    pub category: Patch<TaxCategory>,
    /// The reason, as a code.
    pub exemption_code: Patch<ExemptionCode>,
    /// The reason, in words.
    pub exemption_reason: Patch<OneLine>,
}

impl TreatmentPatch {
    /// A patch that says nothing.
    const KEEP: Self = Self { category: Patch::Keep, exemption_code: Patch::Keep, exemption_reason: Patch::Keep };

    /// The treatment after the edit.
    pub fn apply(self, present: TaxBasis) -> TaxBasis {
        TaxBasis {
            category: self.category.apply(present.category),
            exemption_code: self.exemption_code.apply(present.exemption_code),
            exemption_reason: self.exemption_reason.apply(present.exemption_reason),
        }
    }

    fn unless(self, agreed: &TaxBasis) -> Self {
        Self {
            category: self.category.unless(agreed.category.as_ref()),
            exemption_code: self.exemption_code.unless(agreed.exemption_code.as_ref()),
            exemption_reason: self.exemption_reason.unless(agreed.exemption_reason.as_ref()),
        }
    }
}

/// What an edit asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractEdit {
    /// Purchase order number.
    pub po_number: Patch<OneLine>,
    /// The new full list of products; `None` keeps the present one.
    pub products: Option<Vec<ProductPatch>>,
    /// From when it holds.
    pub since: Since,
    /// The version the edit starts from: it names only what differs from that.
    pub version: Option<u32>,
}

/// A quantity of a fixed line item to agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityChange {
    /// Which product.
    pub pricing_ref: PricingRef,
    /// Which product, where several have the pricing.
    pub billing_start_date: Option<NaiveDate>,
    /// Which line item.
    pub line_item_id: LineItemId,
    /// How many.
    pub quantity: Quantity,
    /// From when; today where it is left out.
    pub from: Option<NaiveDate>,
    /// Whether that day is kept; else the quantity holds from the next period's first day.
    pub prorate: bool,
}

/// A contract's next version, and from when it differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amendment {
    /// The contract with its next version; as it was, where nothing changes.
    pub contract: Contract,
    /// The products whose plan differs, each with the first day on which it does.
    pub since: BTreeMap<ProductNo, NaiveDate>,
    /// The products whose documents change their structure, each with the first day on which they do.
    pub restructured: BTreeMap<ProductNo, NaiveDate>,
}

/// What a decision about terms needs to know beside the contract.
pub struct Situation<'a> {
    /// Today, where a product's terms bill.
    pub today: &'a dyn Fn(&ProductTerms) -> NaiveDate,
    /// Whether a product has billed or has usage: its first day stands then.
    pub has_begun: &'a dyn Fn(ProductNo) -> bool,
}

/// Days and the terms that hold on them, in a plan that is being made.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stretch {
    terms: ProductTerms,
    days: Period,
    cut: Option<EndReason>,
}

type Plan = Vec<Stretch>;

/// The contract after an edit.
///
/// # Errors
/// [`Refusal::Invalid`] with every violation, [`Refusal::Conflict`] `version_conflict`, `already_started` or
/// `product_over`.
pub fn edited(contract: &Contract, edit: &ContractEdit, catalog: &Catalog, now: &Situation<'_>) -> Result<Amendment, Refusal> {
    if let Some(version) = edit.version.filter(|version| *version != contract.version) {
        if version > contract.version {
            let detail = format!("must be the contract's newest version, {}, or be left out", contract.version);
            return Err(Refusal::field(&["version"], "out_of_range", detail));
        }
        let detail = format!("the contract has version {} now: read it again and edit that", contract.version);
        return Err(Refusal::conflict("version_conflict", detail));
    }
    if let (Since::Day(day), Some(first)) = (edit.since, contract.first_day())
        && day < first
    {
        let detail = format!("must not be before the contract's first day, {first}");
        return Err(Refusal::field(&[EFFECTIVE_FROM], "out_of_range", detail));
    }
    let mut draft = Draft::of(contract, EndReason::Removed);
    if edit.po_number.is_named() {
        draft.contract.po_number = edit.po_number.clone().apply(contract.po_number.clone());
    }
    let Some(patches) = &edit.products else { return Ok(draft.done(contract)) };
    let matched = match_products(contract, patches, now)?;
    let kept: Vec<ProductNo> = matched.iter().filter_map(|no| *no).collect();
    // One that is over bills no more: leaving it out says nothing.
    for product in contract.products.iter().filter(|product| !kept.contains(&product.no) && still_bills(product, now)) {
        if let Some(end) = end_of(product, edit.since, now) {
            draft.put(product, cut(plan(product), end, EndReason::Removed), end);
        }
    }
    // With a version, or with a body that says no more than what is wanted, what is said again is no change.
    let compares = edit.version.is_some() || edit.since == Since::NextPeriod;
    let mut found = Violations::none();
    for (i, (patch, no)) in patches.iter().zip(&matched).enumerate() {
        let index = i.to_string();
        let decided = match no.and_then(|no| contract.product(no)) {
            Some(product) => amend_product(&mut draft, product, patch, compares, edit.since, catalog, now),
            None => added(&mut draft, patch, catalog),
        };
        match decided {
            Ok(()) => {}
            Err(Refusal::Invalid(violations)) => {
                // The day is the edit's own field, whichever product it doesn't fit.
                let is_day = violations.iter().all(|violation| violation.path == [EFFECTIVE_FROM]);
                let below = ["products", index.as_str()];
                found.extend_below(if is_day { &[] } else { &below }, violations);
            }
            Err(other) => return Err(other),
        }
    }
    let amendment = found.or(draft.done(contract))?;
    let place = |no: ProductNo| {
        matched.iter().position(|matched| *matched == Some(no)).or_else(|| {
            let added: Vec<usize> = matched.iter().enumerate().filter(|(_, no)| no.is_none()).map(|(i, _)| i).collect();
            added.get(usize::from(no.0).checked_sub(contract.products.len())?).copied()
        })
    };
    check_products(&amendment.contract.products, place)?;
    Ok(amendment)
}

/// The contract after a cancel.
///
/// # Errors
/// [`Refusal::Invalid`] for a last day outside the contract, [`Refusal::Conflict`] `contract_over` when it isn't shorter
/// for it.
pub fn cancelled(contract: &Contract, last_day: LastDay, at: Timestamp, now: &Situation<'_>) -> Result<Amendment, Refusal> {
    if let (LastDay::Day(day), Some(first), Some(end)) = (last_day, contract.first_day(), contract.effective_end_date()) {
        let earliest = first.pred_opt().unwrap_or(first);
        if contract.cancelled_at.is_some() && day >= end {
            return Err(Refusal::conflict("contract_over", ENDS_NO_EARLIER));
        }
        if day < earliest || day > end {
            let detail = format!("must lie between {earliest}, the day before the contract's first, and its last, {end}");
            return Err(Refusal::field(&["last_day"], "out_of_range", detail));
        }
    }
    let mut draft = Draft::of(contract, EndReason::Cancelled);
    for product in &contract.products {
        let end = match last_day {
            LastDay::PeriodEnd => end_of(product, Since::NextPeriod, now),
            LastDay::Today => end_of(product, Since::CurrentPeriod, now),
            LastDay::Day(day) => product.billed().map(|billed| day_after(day).max(billed.start())),
        };
        if let Some(end) = end {
            draft.put(product, cut(plan(product), end, EndReason::Cancelled), end);
        }
    }
    let again = contract.cancelled_at.is_some();
    if again && draft.since.is_empty() {
        return Err(Refusal::conflict("contract_over", ENDS_NO_EARLIER));
    }
    draft.contract.cancelled_at = Some(contract.cancelled_at.unwrap_or(at));
    Ok(draft.done(contract))
}

/// The contract after a cancel was taken back: what was planned before it goes on.
pub fn resumed(contract: &Contract) -> Amendment {
    let mut draft = Draft::of(contract, EndReason::Removed);
    let before = before_cancel(contract);
    for product in &contract.products {
        let was: Plan = product.plan_of(before).iter().map(Stretch::of).collect();
        let present = plan(product);
        let since = present.last().map(|last| last.days.end()).or_else(|| was.first().map(|first| first.days.start()));
        if let Some(since) = since {
            draft.put(product, was, since);
        }
    }
    draft.contract.cancelled_at = None;
    draft.done(contract)
}

/// The contract with one more step of a line item's quantity.
///
/// # Errors
/// [`Refusal::Invalid`] for a product or line item that isn't there, and a day outside the product's.
pub fn with_quantity(contract: &Contract, change: &QuantityChange, now: &Situation<'_>) -> Result<Amendment, Refusal> {
    let of_pricing: Vec<&ContractProduct> = contract
        .products
        .iter()
        .filter(|product| product.newest_terms().is_some_and(|terms| terms.pricing.pricing_ref == change.pricing_ref))
        .filter(|product| match change.billing_start_date {
            Some(start) => start_of(product) == Some(start),
            None => still_bills(product, now),
        })
        .collect();
    let product = match of_pricing.as_slice() {
        [only] => *only,
        [] => {
            let detail = "must be the pricing of a product that the contract bills";
            return Err(Refusal::field(&["product_pricing_ref"], "unknown_product", detail));
        }
        _ => {
            let detail = "must tell which of the contract's products with this pricing is meant";
            return Err(Refusal::field(&["billing_start_date"], "ambiguous_product", detail));
        }
    };
    let (Some(newest), Some(billed)) = (product.newest_terms(), product.billed()) else {
        return Err(Refusal::conflict("product_over", "the product bills no day"));
    };
    let wanted = change.from.unwrap_or_else(|| (now.today)(newest).max(billed.start()));
    let from = if change.prorate {
        wanted
    } else {
        product.period_at(wanted).filter(|period| period.start() != wanted).map_or(wanted, |period| period.days().end())
    };
    if !billed.contains(from) {
        let detail = format!("must lie between {} and {}, the days the product is billed", billed.start(), billed.last_day());
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
    let mut next = plan(product);
    for stretch in &mut next {
        for item in stretch.terms.line_items.iter_mut().filter(|item| item.id == change.line_item_id) {
            if let SelectedCharge::Fixed { quantities, .. } = &mut item.charge {
                *quantities = quantities.with(step);
            }
        }
    }
    let mut draft = Draft::of(contract, EndReason::Removed);
    draft.put(product, next, from);
    Ok(draft.done(contract))
}

/// The version before the cancel that is in effect.
fn before_cancel(contract: &Contract) -> u32 {
    let cancels = |version: u32| {
        let of_version = contract.products.iter().flat_map(|product| &product.segments).filter(|s| s.version == version);
        of_version.into_iter().any(|segment| matches!(segment.agreed, Agreed::Ended(EndReason::Cancelled)))
    };
    (1..=contract.version).rev().find(|version| !cancels(*version)).unwrap_or(0)
}

/// The next version in the making.
struct Draft {
    contract: Contract,
    version: u32,
    /// Why what ends by it ends.
    ends: EndReason,
    since: BTreeMap<ProductNo, NaiveDate>,
    restructured: BTreeMap<ProductNo, NaiveDate>,
}

impl Draft {
    fn of(contract: &Contract, ends: EndReason) -> Self {
        let version = contract.version + 1;
        Self {
            contract: Contract { version, ..contract.clone() },
            version,
            ends,
            since: BTreeMap::new(),
            restructured: BTreeMap::new(),
        }
    }

    /// Gives a product another plan, which differs from a day on.
    fn put(&mut self, product: &ContractProduct, next: Plan, since: NaiveDate) {
        let next = merged(next);
        let segments = segments(&plan(product), &next, self.version, self.ends);
        if segments.is_empty() {
            return;
        }
        let earlier = self.since.get(&product.no).copied().unwrap_or(since).min(since);
        self.since.insert(product.no, earlier);
        if let Some(mine) = self.contract.products.iter_mut().find(|mine| mine.no == product.no) {
            mine.segments.extend(segments);
        }
    }

    /// The amendment; nothing has changed where neither the plans nor what is above them did.
    fn done(self, before: &Contract) -> Amendment {
        let Self { contract, since, restructured, .. } = self;
        let unchanged = Contract { version: before.version, ..contract.clone() } == *before;
        Amendment { contract: if unchanged { before.clone() } else { contract }, since, restructured }
    }
}

impl Stretch {
    fn of(clip: &super::Clip<'_>) -> Self {
        Self { terms: clip.terms.clone(), days: clip.days, cut: clip.cut }
    }
}

fn plan(product: &ContractProduct) -> Plan {
    product.plan().iter().map(Stretch::of).collect()
}

/// A plan without the days from one on.
fn cut(plan: Plan, end: NaiveDate, reason: EndReason) -> Plan {
    let is_shortened = plan.last().is_some_and(|last| end < last.days.end());
    let kept = |stretch: Stretch| {
        let days = Period::new(stretch.days.start(), stretch.days.end().min(end))?;
        Some(Stretch { days, ..stretch })
    };
    let mut left: Plan = plan.into_iter().filter_map(kept).collect();
    if let Some(last) = left.last_mut().filter(|_| is_shortened) {
        last.cut = Some(reason);
    }
    left
}

/// Joins stretches that follow each other with the same terms.
fn merged(plan: Plan) -> Plan {
    let mut joined: Plan = Vec::with_capacity(plan.len());
    for stretch in plan {
        match joined.last_mut() {
            Some(last) if last.days.end() == stretch.days.start() && last.terms == stretch.terms => {
                if let Some(days) = Period::new(last.days.start(), stretch.days.end()) {
                    (last.days, last.cut) = (days, stretch.cut);
                }
            }
            _ => joined.push(stretch),
        }
    }
    for i in 1..joined.len() {
        if joined[i - 1].days.end() == joined[i].days.start() {
            joined[i - 1].cut = None;
        }
    }
    joined
}

/// What a version has to say so that one plan becomes another: nothing where they are the same.
fn segments(present: &Plan, next: &Plan, version: u32, ends: EndReason) -> Vec<Segment> {
    let same = present.iter().zip(next).take_while(|(a, b)| a.terms == b.terms && a.days == b.days).count();
    if same == present.len() && same == next.len() {
        return Vec::new();
    }
    let mut said = Vec::new();
    let end = |in_force_from, reason: Option<EndReason>| Segment {
        version,
        in_force_from,
        agreed: Agreed::Ended(reason.unwrap_or(ends)),
    };
    let billed = |stretch: &Stretch| Segment {
        version,
        in_force_from: stretch.days.start(),
        agreed: Agreed::Billed(Box::new(stretch.terms.clone())),
    };
    let mut covered_until = present.get(same).map(|stretch| stretch.days.start());
    for (i, stretch) in next.iter().enumerate().skip(same) {
        let is_shortened = i == same
            && present.get(i).is_some_and(|was| {
                was.terms == stretch.terms && was.days.start() == stretch.days.start() && stretch.days.end() < was.days.end()
            });
        if !is_shortened {
            if let Some(from) = covered_until.filter(|from| *from < stretch.days.start()) {
                said.push(end(from, None));
            }
            said.push(billed(stretch));
        }
        let until = stretch.days.end();
        let follows = next.get(i + 1).is_some_and(|following| following.days.start() == until);
        if !follows && (until < stretch.terms.schedule.range().end() || is_shortened) {
            said.push(end(until, stretch.cut));
            covered_until = None;
        } else {
            covered_until = Some(until);
        }
    }
    if next.len() == same
        && let Some(from) = present.get(same).map(|stretch| stretch.days.start())
    {
        said.push(match next.last() {
            // An end that is agreed is no product left out: said as the terms that have it.
            Some(last) if last.cut.is_none() => billed(last),
            last => end(from, last.and_then(|last| last.cut)),
        });
    }
    said
}

fn start_of(product: &ContractProduct) -> Option<NaiveDate> {
    product.newest_terms().map(|terms| terms.schedule.range().start())
}

fn still_bills(product: &ContractProduct, now: &Situation<'_>) -> bool {
    match (product.billed(), product.newest_terms()) {
        (Some(billed), Some(terms)) => (now.today)(terms) < billed.end(),
        _ => false,
    }
}

/// The first day a product isn't billed any more when it ends; `None` of one that is over by then.
fn end_of(product: &ContractProduct, since: Since, now: &Situation<'_>) -> Option<NaiveDate> {
    let (terms, billed) = (product.newest_terms()?, product.billed()?);
    let today = (now.today)(terms);
    let end = match since {
        Since::Day(day) => day.max(billed.start()),
        _ if today < billed.start() => billed.start(),
        Since::CurrentPeriod => day_after(today),
        Since::NextPeriod => match product.period_at(today) {
            Some(current) => current.days().end(),
            None => day_after(today),
        },
    };
    (end < billed.end()).then_some(end)
}

/// Matches an edit's products to the contract's: first by pricing and start, ended ones too, then by pricing to the only
/// one left that still bills. The order of the list decides nothing.
fn match_products(
    contract: &Contract,
    patches: &[ProductPatch],
    now: &Situation<'_>,
) -> Result<Vec<Option<ProductNo>>, Violations> {
    let priced = |product: &&ContractProduct, patch: &ProductPatch| {
        product.newest_terms().is_some_and(|terms| terms.pricing.pricing_ref == patch.pricing_ref)
    };
    let mut found = Violations::none();
    let mut matched: Vec<Option<ProductNo>> = vec![None; patches.len()];
    for (i, patch) in patches.iter().enumerate() {
        let Some(start) = patch.billing_start_date else { continue };
        let same = |product: &&ContractProduct| priced(product, patch) && start_of(product) == Some(start);
        let free: Vec<&ContractProduct> =
            contract.products.iter().filter(same).filter(|product| !matched.contains(&Some(product.no))).collect();
        // Of several with one start those before were replaced: the newest is meant.
        matched[i] = free.iter().rev().find(|product| still_bills(product, now)).or(free.last()).map(|product| product.no);
    }
    let by_start = matched.clone();
    for (i, patch) in patches.iter().enumerate().filter(|(i, _)| by_start[*i].is_none()) {
        let left: Vec<&ContractProduct> = contract
            .products
            .iter()
            .filter(|product| priced(product, patch) && still_bills(product, now) && !by_start.contains(&Some(product.no)))
            .collect();
        let rivals =
            patches.iter().enumerate().filter(|(j, other)| by_start[*j].is_none() && other.pricing_ref == patch.pricing_ref);
        let undated = rivals.clone().filter(|(_, other)| other.billing_start_date.is_none()).count();
        let means_it = match (rivals.count(), undated) {
            (1, _) => true,
            (_, 1) => patch.billing_start_date.is_none(),
            _ => false,
        };
        let index = i.to_string();
        match left.as_slice() {
            [] => {}
            [only] if means_it => matched[i] = Some(only.no),
            [_] if undated == 1 => {}
            _ => {
                let detail = "must tell which of the contract's products with this pricing is meant";
                found.add(&["products", &index, "billing_start_date"], "ambiguous_product", detail);
            }
        }
    }
    found.or(matched)
}

fn added(draft: &mut Draft, patch: &ProductPatch, catalog: &Catalog) -> Result<(), Refusal> {
    let mut found = Violations::none();
    if patch.billing_start_date.is_none() {
        found.add(&["billing_start_date"], "required", "must be given for a product that is added");
    }
    if patch.billing_end_date.is_none() {
        found.add(&["billing_end_date"], "required", "must be given for a product that is added");
    }
    let (Some(billing_start_date), Some(billing_end_date)) = (patch.billing_start_date, patch.billing_end_date) else {
        return Err(found.into());
    };
    let patch = patch.clone();
    let terms = catalog.agree(RequestedProduct {
        line_items: patch.line_items.apply(None),
        minimum_fee: patch.minimum_fee,
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
    product.segments[0].version = draft.version;
    draft.since.insert(no, billing_start_date);
    draft.contract.products.push(product);
    Ok(())
}

/// Changes a product's plan as an element of an edit says.
fn amend_product(
    draft: &mut Draft,
    product: &ContractProduct,
    patch: &ProductPatch,
    compares: bool,
    since: Since,
    catalog: &Catalog,
    now: &Situation<'_>,
) -> Result<(), Refusal> {
    let Some(newest) = product.newest_terms() else { return Err(Refusal::Broken("a product without terms".to_owned())) };
    let today = (now.today)(newest);
    let present = plan(product);
    let last = product.billed();
    let is_over = last.is_none_or(|billed| today >= billed.end());
    // One that is put back before its end has come goes on as if nothing was.
    let mut base = if product.is_removed() && !is_over { before_removal(product) } else { present };
    let named_end = patch.billing_end_date;
    let chooses = Chooses::of(patch, compares.then_some(newest));
    let patch = if compares { patch.clone().beyond(newest) } else { patch.clone() };
    if let Some(start) = patch.billing_start_date.filter(|start| Some(*start) != start_of(product)) {
        if (now.has_begun)(product.no) {
            let detail = "the product has billed or has usage: its billing_start_date stands; end it and add another";
            return Err(Refusal::conflict("already_started", detail));
        }
        let since = base.first().map_or(start, |first| first.days.start().min(start));
        let next = patched_from(&base, NaiveDate::MIN, product, (&patch, chooses), catalog)?;
        return finish(draft, product, next, since);
    }
    let Some(billed) = last else {
        // Annulled before it began: it comes back whole.
        let base = before_removal(product);
        let next = patched_from(&base, NaiveDate::MIN, product, (&patch, chooses), catalog)?;
        let first = next.first().map_or(newest.schedule.range().start(), |first| first.days.start());
        return finish(draft, product, next, first);
    };
    let is_in_the_past = matches!(since, Since::Day(day) if day < billed.end());
    // One that is over and gets a later end goes on, also from a day that it was still billed on.
    if is_over
        && is_in_the_past
        && named_end.is_some_and(|end| end > billed.last_day())
        && let Some(last) = base.last_mut()
    {
        last.cut = None;
    }
    if is_over && !is_in_the_past {
        return match named_end.filter(|end| *end > billed.last_day()) {
            None => {
                let next = timeless(&base, &patch)?;
                finish(draft, product, next, billed.start())
            }
            Some(_) => match since {
                Since::Day(day) => {
                    let terms = patch.onto(newest, product, catalog)?;
                    let mut next = timeless(&base, &patch)?;
                    if let Some(days) = Period::new(day, terms.schedule.range().end()) {
                        next.push(Stretch { terms, days, cut: None });
                    }
                    finish(draft, product, next, day)
                }
                Since::NextPeriod | Since::CurrentPeriod => {
                    let detail = format!(
                        "the product of {} ended on {}: say by effective_from when it goes on",
                        patch.pricing_ref,
                        billed.last_day()
                    );
                    Err(Refusal::conflict("product_over", detail))
                }
            },
        };
    }
    let (first, end) = match (base.first(), base.last()) {
        (Some(first), Some(last)) => (first.days.start(), last.days.end()),
        _ => (billed.start(), billed.end()),
    };
    let from = match since {
        Since::Day(day) => day.max(first),
        _ if today < first => first,
        Since::CurrentPeriod => period_of(&base, today).or_else(|| period_following(&base, today)).map_or(end, Period::start),
        Since::NextPeriod => match period_of(&base, today) {
            Some(current) => current.end(),
            None => period_following(&base, today).map_or(end, Period::start),
        },
    };
    let next = merged(patched_from(&base, from, product, (&patch, chooses), catalog)?);
    // No period is ever split by an edit; what holds by its own dates splits none.
    let begins = |plan: &Plan| plan.iter().any(|stretch| stretch.days.start() == from);
    if let (Since::Day(_), Some(split)) = (since, period_of(&base, from).filter(|period| period.start() != from))
        && begins(&next)
        && !begins(&base)
    {
        let (before, after) = (split.start(), split.end());
        let detail = format!("must be the first day of a period of {}: {before} or {after}", patch.pricing_ref);
        return Err(Refusal::field(&[EFFECTIVE_FROM], "not_a_period_start", detail));
    }
    let rebuilt = next.iter().flat_map(|stretch| {
        let others = base.iter().filter(|was| was.terms.structure() != stretch.terms.structure());
        others.filter_map(|was| was.days.intersection(stretch.days)).filter(|days| days.end() > from)
    });
    if let Some(first) = rebuilt.map(|days| days.start().max(from)).min() {
        draft.restructured.insert(product.no, first);
    }
    finish(draft, product, next, from)
}

/// The days of the period of a plan that a day lies in.
fn period_of(plan: &Plan, day: NaiveDate) -> Option<Period> {
    let stretch = plan.iter().find(|stretch| stretch.days.contains(day))?;
    Some(stretch.terms.schedule.period_at(day)?.clip(stretch.days)?.span())
}

/// The days of the first period of a plan after a day.
fn period_following(plan: &Plan, day: NaiveDate) -> Option<Period> {
    let stretch = plan.iter().find(|stretch| stretch.days.start() > day)?;
    period_of(plan, stretch.days.start())
}

/// Puts a product's next plan; what changed before the day it was to hold from (quantities, notes) counts from there.
fn finish(draft: &mut Draft, product: &ContractProduct, next: Plan, from: NaiveDate) -> Result<(), Refusal> {
    let next = merged(next);
    let first = first_change(&plan(product), &next);
    draft.put(product, next, first.unwrap_or(from));
    Ok(())
}

/// The first day on which a plan bills otherwise than another: other terms, other days, or another quantity.
fn first_change(was: &Plan, is: &Plan) -> Option<NaiveDate> {
    let timed = |plan: &Plan| {
        let stripped = plan.iter().map(|stretch| {
            let mut terms = stretch.terms.clone();
            strip(&mut terms);
            Stretch { terms, ..stretch.clone() }
        });
        merged(stripped.collect())
    };
    let (timed_was, timed_is) = (timed(was), timed(is));
    let same = timed_was.iter().zip(&timed_is).take_while(|(was, is)| was.terms == is.terms && was.days == is.days).count();
    let by_terms = match (timed_was.get(same), timed_is.get(same)) {
        (Some(was), Some(is)) if was.terms == is.terms && was.days.start() == is.days.start() => {
            Some(was.days.end().min(is.days.end()))
        }
        (Some(was), Some(is)) => Some(was.days.start().min(is.days.start())),
        (Some(only), None) | (None, Some(only)) => Some(only.days.start()),
        (None, None) => None,
    };
    let mut by_steps: Vec<NaiveDate> = Vec::new();
    for was in was {
        for is in is {
            let Some(days) = was.days.intersection(is.days) else { continue };
            by_steps.extend(
                first_step_changed(&was.terms, &is.terms).filter(|day| *day < days.end()).map(|day| day.max(days.start())),
            );
        }
    }
    by_terms.into_iter().chain(by_steps).min()
}

/// The first day on which a line item that both terms have has another quantity.
fn first_step_changed(was: &ProductTerms, is: &ProductTerms) -> Option<NaiveDate> {
    let changed = was.line_items.iter().filter_map(|item| {
        let (SelectedCharge::Fixed { quantities: a, .. }, SelectedCharge::Fixed { quantities: b, .. }) =
            (&item.charge, &is.line_item(&item.id)?.charge)
        else {
            return None;
        };
        let (a, b) = (a.as_slice(), b.as_slice());
        let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        [a.get(same), b.get(same)].into_iter().flatten().map(|step| step.from).min()
    });
    changed.min()
}

/// Terms without what holds by its own dates, or for documents that aren't there yet.
fn strip(terms: &mut ProductTerms) {
    for item in &mut terms.line_items {
        if let SelectedCharge::Fixed { quantities, .. } = &mut item.charge {
            *quantities = Quantities::default();
        }
    }
    terms.note = None;
    terms.buyer_reference = None;
    terms.net_terms = None;
    terms.payment = PaymentDetails::default();
}

/// The plan of a product as if no edit had left it out: as it is to its end, then as it was planned before, in the
/// quantities agreed since.
fn before_removal(product: &ContractProduct) -> Plan {
    let versions = product.segments.iter().rev().map(|segment| segment.version.saturating_sub(1));
    let planned =
        versions.map(|version| product.plan_of(version)).find(|plan| plan.last().is_some_and(|last| last.cut.is_none()));
    let planned: Plan = planned.unwrap_or_default().iter().map(Stretch::of).collect();
    let mut base = plan(product);
    let Some(last) = base.last_mut() else { return planned };
    last.cut = None;
    let (end, agreed) = (last.days.end(), last.terms.clone());
    for mut stretch in planned {
        if let Some(days) = Period::new(stretch.days.start().max(end), stretch.days.end()) {
            for item in &mut stretch.terms.line_items {
                if let Some(agreed) = agreed.line_item(&item.id) {
                    *item = keeping_quantities(item.clone(), agreed);
                }
            }
            base.push(Stretch { days, ..stretch });
        }
    }
    merged(base)
}

/// What an edit's list of line items says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chooses {
    /// Which line items there are.
    LineItems,
    /// Values of those that are agreed: it names them only because the list has to.
    Values,
}

impl Chooses {
    /// Compared with the newest agreed terms, or with none.
    fn of(patch: &ProductPatch, newest: Option<&ProductTerms>) -> Self {
        match (&patch.line_items, newest) {
            (Patch::Set(items), Some(newest)) if !patch.reprice && newest.has_line_items(items) => Self::Values,
            _ => Self::LineItems,
        }
    }
}

/// The plan with what an edit changes whatever the day: notes, net terms, payment details and quantities.
fn timeless(base: &Plan, patch: &ProductPatch) -> Result<Plan, Violations> {
    base.iter().map(|stretch| Ok(Stretch { terms: patch.timeless_onto(&stretch.terms)?, ..stretch.clone() })).collect()
}

/// The plan with an edit's fields in it from a day on, also in what was planned for later.
fn patched_from(
    base: &Plan,
    from: NaiveDate,
    product: &ContractProduct,
    (patch, chooses): (&ProductPatch, Chooses),
    catalog: &Catalog,
) -> Result<Plan, Violations> {
    let mut next = Plan::new();
    let last = base.len().saturating_sub(1);
    for (i, stretch) in timeless(base, patch)?.into_iter().enumerate() {
        let old = &base[i].terms;
        if let Some(days) = Period::new(stretch.days.start(), stretch.days.end().min(from)) {
            next.push(Stretch { days, cut: None, ..stretch.clone() });
        }
        if stretch.days.end() <= from && i != last {
            continue;
        }
        let terms = match chooses {
            Chooses::LineItems => patch.onto(old, product, catalog)?,
            Chooses::Values => patch.clone().for_line_items_of(old).onto(old, product, catalog)?,
        };
        let range = terms.schedule.range();
        // Nothing follows the last one: its end is the terms' own, unless it was cut.
        let end = if i == last && stretch.cut.is_none() { range.end() } else { stretch.days.end() };
        let start = if i == 0 && from <= stretch.days.start() { range.start() } else { stretch.days.start() };
        if let Some(days) = Period::new(start.max(from), end).and_then(|days| days.intersection(range)) {
            next.push(Stretch { terms, days, cut: stretch.cut });
        }
    }
    Ok(next)
}

impl ProductPatch {
    /// A patch that says nothing but which product it is.
    pub const fn of(pricing_ref: PricingRef) -> Self {
        Self {
            pricing_ref,
            billing_start_date: None,
            billing_end_date: None,
            reprice: false,
            line_items: Patch::Keep,
            minimum_fee: Patch::Keep,
            entity_ref: Patch::Keep,
            billing_cycle: Patch::Keep,
            issue_day: Patch::Keep,
            payment_time: Patch::Keep,
            tax: Patch::Keep,
            discount: Patch::Keep,
            net_terms: Patch::Keep,
            note: Patch::Keep,
            bank_transfer: Patch::Keep,
            online: Patch::Keep,
            crypto: Patch::Keep,
            treatment: TreatmentPatch::KEEP,
            buyer_reference: Patch::Keep,
        }
    }

    /// Without what the newest agreed terms say already.
    fn beyond(self, agreed: &ProductTerms) -> Self {
        let range = agreed.schedule.range();
        let line_items = match self.line_items {
            Patch::Set(items) => {
                let same = agreed.has_line_items(&items);
                let beyond = |item: RequestedLineItem| match agreed.line_item(&item.id) {
                    Some(present) => item.beyond(present),
                    None => item,
                };
                let items: Vec<RequestedLineItem> = items.into_iter().map(beyond).collect();
                if same && items.iter().all(RequestedLineItem::is_plain) { Patch::Keep } else { Patch::Set(items) }
            }
            Patch::Clear if agreed.all_line_items => Patch::Keep,
            other => other,
        };
        let stated = agreed.stated_entity.as_ref();
        let entity_ref = match self.entity_ref {
            Patch::Set(entity_ref) if entity_ref == agreed.entity_ref => Patch::Keep,
            other => other.unless(stated),
        };
        Self {
            billing_start_date: self.billing_start_date.filter(|day| *day != range.start()),
            billing_end_date: self.billing_end_date.filter(|day| *day != range.last_day()),
            line_items,
            minimum_fee: self.minimum_fee.unless(agreed.pricing.minimum_fee.as_ref()),
            entity_ref,
            billing_cycle: match self.billing_cycle {
                Patch::Clear => Patch::Set(BillingCycle::default()),
                other => other,
            }
            .unless(Some(&agreed.schedule.cycle())),
            issue_day: self.issue_day.unless(agreed.schedule.issue_day().as_ref()),
            payment_time: match self.payment_time {
                Patch::Clear => Patch::Set(PaymentTime::default()),
                other => other,
            }
            .unless(Some(&agreed.payment_time)),
            tax: self.tax.unless(agreed.tax.as_ref()),
            discount: self.discount.unless(agreed.discount.as_ref()),
            net_terms: self.net_terms.unless(agreed.net_terms.as_ref()),
            note: self.note.unless(agreed.note.as_ref()),
            bank_transfer: self.bank_transfer.unless(agreed.payment.bank_transfer.as_ref()),
            online: self.online.unless(agreed.payment.online.as_ref()),
            crypto: self.crypto.unless(agreed.payment.crypto.as_ref()),
            treatment: self.treatment.unless(&agreed.treatment),
            buyer_reference: self.buyer_reference.unless(agreed.buyer_reference.as_ref()),
            ..self
        }
    }

    /// What it says of the line items that terms have, and no other choice of them.
    fn for_line_items_of(mut self, terms: &ProductTerms) -> Self {
        if let Patch::Set(given) = &mut self.line_items {
            let said = |item: &SelectedLineItem| given.iter().find(|given| given.id == item.id).cloned();
            let of_terms = terms.line_items.iter().map(|item| said(item).unwrap_or(RequestedLineItem::plain(item.id.clone())));
            *given = of_terms.collect();
        }
        self
    }

    /// Terms with the fields that hold whatever the day.
    fn timeless_onto(&self, terms: &ProductTerms) -> Result<ProductTerms, Violations> {
        let mut terms = terms.clone();
        terms.note = self.note.clone().apply(terms.note);
        terms.buyer_reference = self.buyer_reference.clone().apply(terms.buyer_reference);
        terms.net_terms = self.net_terms.clone().apply(terms.net_terms);
        terms.payment = PaymentDetails {
            bank_transfer: self.bank_transfer.clone().apply(terms.payment.bank_transfer),
            online: self.online.clone().apply(terms.payment.online),
            crypto: self.crypto.clone().apply(terms.payment.crypto),
        };
        if let Patch::Set(items) = &self.line_items {
            for (i, given) in items.iter().enumerate() {
                let Some(list) = &given.quantities else { continue };
                let Some(item) = terms.line_items.iter_mut().find(|item| item.id == given.id) else { continue };
                match &mut item.charge {
                    SelectedCharge::Fixed { quantities, .. } => *quantities = quantities.replaced_by(list),
                    SelectedCharge::Usage(_) => {
                        let index = i.to_string();
                        let detail = "must be left out, because the line item is priced by usage";
                        return Err(Violations::one(&["line_items", &index, "quantities"], "not_allowed", detail));
                    }
                }
            }
        }
        Ok(terms)
    }

    /// Terms with every field the patch names in its place; what it doesn't name is as agreed (billing rules 7).
    fn onto(&self, present: &ProductTerms, product: &ContractProduct, catalog: &Catalog) -> Result<ProductTerms, Violations> {
        let mut found = Violations::none();
        let range = present.schedule.range();
        let mut terms = self.timeless_onto(present)?;
        let needs_pricing = self.reprice || self.line_items.is_named() || matches!(self.minimum_fee, Patch::Clear);
        if needs_pricing {
            let pricing = catalog.pricing(&self.pricing_ref)?;
            if self.reprice {
                let minimum_fee = pricing.content.minimum_fee;
                terms.pricing = FrozenPricing { minimum_fee, ..FrozenPricing::of(pricing) };
            }
            let listed = |id: &LineItemId| {
                let item = pricing.content.line_items.iter().find(|item| item.id == *id)?;
                freeze(item, &catalog.usage_products).ok()
            };
            let items = terms.line_items.clone();
            // One that these terms don't have is as the pricing has it now, or else as it was ever agreed.
            let agreed_before = |id: &LineItemId| {
                let is_listed = pricing.content.line_items.iter().any(|item| item.id == *id);
                let ever = || product.terms().filter_map(|terms| terms.line_item(id)).last().filter(|_| !is_listed);
                items.iter().find(|item| item.id == *id).or_else(ever).cloned()
            };
            let agreed = |id: &LineItemId| match (agreed_before(id), self.reprice) {
                (Some(agreed), true) => Some(listed(id).map_or(agreed.clone(), |now| keeping_quantities(now, &agreed))),
                (agreed, _) => agreed,
            };
            let chosen = match &self.line_items {
                Patch::Set(items) => {
                    // Who names what was agreed takes no other choice.
                    terms.all_line_items &= terms.has_line_items(items);
                    select(Some(items), pricing, &catalog.usage_products, agreed)
                }
                Patch::Clear => {
                    terms.all_line_items = true;
                    select(None, pricing, &catalog.usage_products, agreed)
                }
                Patch::Keep if !self.reprice => Ok(terms.line_items.clone()),
                Patch::Keep if terms.all_line_items => select(None, pricing, &catalog.usage_products, agreed),
                Patch::Keep => {
                    let kept: Vec<RequestedLineItem> =
                        terms.line_items.iter().map(|item| RequestedLineItem::plain(item.id.clone())).collect();
                    select(Some(&kept), pricing, &catalog.usage_products, agreed)
                }
            };
            match chosen {
                Ok(mut items) => {
                    // Another order of the same line items is no change.
                    let place = |item: &SelectedLineItem| terms.line_items.iter().position(|was| was.id == item.id);
                    if items.len() == terms.line_items.len() && items.iter().all(|item| place(item).is_some()) {
                        items.sort_by_key(place);
                    }
                    terms.line_items = items;
                }
                Err(violations) => found.extend_below(&[], violations),
            }
            self.minimum_fee.put_optional(&mut terms.pricing.minimum_fee, pricing.content.minimum_fee);
        } else {
            self.minimum_fee.put_optional(&mut terms.pricing.minimum_fee, None);
        }
        if self.entity_ref.is_named() {
            terms.stated_entity = self.entity_ref.clone().apply(None);
            match catalog.entity(terms.stated_entity.as_ref()) {
                Ok(entity_ref) => terms.entity_ref = entity_ref,
                Err(violations) => found.extend_below(&[], violations),
            }
        }
        terms.payment_time = self.payment_time.clone().apply(Some(terms.payment_time)).unwrap_or_default();
        terms.tax = self.tax.clone().apply(terms.tax);
        terms.treatment = self.treatment.clone().apply(terms.treatment);
        terms.discount = self.discount.clone().apply(terms.discount);
        let schedule = BillingSchedule::new(
            self.billing_start_date.unwrap_or(range.start()),
            self.billing_end_date.unwrap_or(range.last_day()),
            self.billing_cycle.clone().apply(Some(present.schedule.cycle())).unwrap_or_default(),
            self.issue_day.clone().apply(present.schedule.issue_day()),
        );
        match schedule {
            Ok(schedule) => terms.schedule = schedule,
            Err(violations) => found.extend_below(&[], violations),
        }
        if let Err(violations) = terms.check() {
            found.extend_below(&[], violations);
        }
        found.or(terms)
    }
}

/// A line item as it is priced now, in the quantities that were agreed.
fn keeping_quantities(mut now: SelectedLineItem, agreed: &SelectedLineItem) -> SelectedLineItem {
    if let (SelectedCharge::Fixed { quantities, .. }, SelectedCharge::Fixed { quantities: kept, .. }) =
        (&mut now.charge, &agreed.charge)
    {
        *quantities = kept.clone();
    }
    now
}
