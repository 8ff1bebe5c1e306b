//! What a contract says about one product: frozen pricing, schedule, and the terms a document is made with.

use chrono::NaiveDate;
use thiserror::Error;

use super::schedule::{BillingCycle, BillingSchedule};
use crate::calendar::Period;
use crate::catalog::{Aggregation, Charge, FixedPrice, LineItem, PriceModel, Pricing, Recurrence, UsageCharge, UsageProduct};
use crate::codes::UnitCode;
use crate::money::{Currency, Percentage, Price};
use crate::party::legal::BuyerReference;
use crate::party::{Customer, Entity, NetTerms, PaymentDetails};
use crate::patch::Patch;
use crate::quantity::Quantity;
use crate::refs::{EntityRef, LineItemId, PricingRef, UsageProductRef};
use crate::tax::{StatedTax, TaxBasis};
use crate::text::{OneLine, Prose};
use crate::violation::Violations;

/// The most quantity steps of a line item.
pub const MAX_QUANTITY_STEPS: usize = 1000;

/// When documents are issued, relative to the period they bill (billing rules 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PaymentTime {
    /// Fixed items in advance, usage on a debit after the period.
    BeforeUse,
    /// Fixed items on the period's first day, usage on the next period's invoice.
    DuringUse,
    /// Everything on one invoice, the day after the period.
    #[default]
    AfterUse,
}

/// How many of a fixed line item are agreed from a day on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuantityStep {
    /// The first day.
    pub from: NaiveDate,
    /// How many.
    pub quantity: Quantity,
}

/// The quantities of a fixed line item: rising dates; 1 before the first and without any (billing rules 6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quantities(Vec<QuantityStep>);

impl Quantities {
    /// Checks the steps' order and number.
    ///
    /// # Errors
    /// Every violation found, with paths below the list.
    pub fn new(steps: Vec<QuantityStep>) -> Result<Self, Violations> {
        let mut found = Violations::none();
        if steps.len() > MAX_QUANTITY_STEPS {
            found.add(&[], "too_many", format!("must have at most {MAX_QUANTITY_STEPS} elements"));
        }
        for (i, pair) in steps.windows(2).enumerate() {
            if pair[1].from <= pair[0].from {
                let index = (i + 1).to_string();
                found.add(&[&index, "from"], "out_of_range", "must be later than the step before");
            }
        }
        found.or(Self(steps))
    }

    /// The steps, oldest first.
    pub fn as_slice(&self) -> &[QuantityStep] {
        &self.0
    }

    /// How many are agreed on a day.
    pub fn on(&self, day: NaiveDate) -> Quantity {
        self.0.iter().take_while(|step| step.from <= day).last().map_or(Quantity::ONE, |step| step.quantity)
    }

    /// The quantities of a range of days, each with how many days it was agreed for.
    pub fn within(&self, days: Period) -> Vec<(Quantity, u32)> {
        let mut parts = Vec::new();
        let mut from = days.start();
        let later = self.0.iter().filter(|step| step.from > days.start() && step.from < days.end()).map(|step| step.from);
        for until in later.chain([days.end()]) {
            if let Some(part) = Period::new(from, until) {
                parts.push((self.on(from), part.days()));
            }
            from = until;
        }
        parts
    }

    /// With the steps from another list's first date on replaced by that list.
    pub fn replaced_by(&self, list: &Self) -> Self {
        let Some(first) = list.0.first() else { return Self::default() };
        Self(self.0.iter().filter(|step| step.from < first.from).chain(&list.0).copied().collect())
    }

    /// With one step put in, in the place of one on the same day.
    pub fn with(&self, step: QuantityStep) -> Self {
        let mut steps: Vec<QuantityStep> = self.0.iter().filter(|other| other.from != step.from).copied().collect();
        steps.push(step);
        steps.sort();
        Self(steps)
    }
}

/// A selected line item of a request: which, and what of it is agreed differently from the pricing. What is kept is as
/// agreed before, or else as the pricing has it; what is cleared is as the pricing has it (billing rules 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedLineItem {
    /// Line item of the pricing.
    pub id: LineItemId,
    /// Quantity steps of a fixed line item; they replace those from their first date on.
    pub quantities: Option<Quantities>,
    /// Shown on documents.
    pub name: Patch<OneLine>,
    /// The price model.
    pub price: Patch<PriceModel>,
    /// Comes off a period's usage first.
    pub included_quantity: Patch<Quantity>,
    /// Billed in advance.
    pub prepaid_quantity: Patch<Quantity>,
    /// The least a period's usage costs.
    pub minimum_amount: Patch<Price>,
    /// The most a period's usage costs.
    pub maximum_amount: Patch<Price>,
}

impl RequestedLineItem {
    /// A line item as the pricing has it.
    pub const fn plain(id: LineItemId) -> Self {
        Self {
            id,
            quantities: None,
            name: Patch::Keep,
            price: Patch::Keep,
            included_quantity: Patch::Keep,
            prepaid_quantity: Patch::Keep,
            minimum_amount: Patch::Keep,
            maximum_amount: Patch::Keep,
        }
    }

    /// Without what an agreed line item says already.
    pub(super) fn beyond(self, agreed: &SelectedLineItem) -> Self {
        let usage = agreed.metered().map(|metered| &metered.charge);
        let price = match &agreed.charge {
            SelectedCharge::Fixed { price: FixedPrice::Flat { amount }, .. } => PriceModel::Flat { amount: *amount },
            SelectedCharge::Fixed { price: FixedPrice::Metered(price), .. } => PriceModel::Metered(price.clone()),
            SelectedCharge::Usage(metered) => PriceModel::Metered(metered.charge.price.clone()),
        };
        Self {
            id: self.id,
            quantities: self.quantities.filter(|given| match &agreed.charge {
                SelectedCharge::Fixed { quantities, .. } => given != quantities,
                SelectedCharge::Usage(_) => true,
            }),
            name: self.name.unless(Some(&agreed.name)),
            price: self.price.unless(Some(&price)),
            included_quantity: self.included_quantity.unless(usage.map(|usage| &usage.included_quantity)),
            prepaid_quantity: self.prepaid_quantity.unless(usage.and_then(|usage| usage.prepaid_quantity.as_ref())),
            minimum_amount: self.minimum_amount.unless(usage.and_then(|usage| usage.minimum_amount.as_ref())),
            maximum_amount: self.maximum_amount.unless(usage.and_then(|usage| usage.maximum_amount.as_ref())),
        }
    }

    /// Whether it says nothing but which line item it is.
    pub(super) fn is_plain(&self) -> bool {
        self.quantities.is_none()
            && matches!(self.name, Patch::Keep)
            && matches!(self.price, Patch::Keep)
            && matches!(self.included_quantity, Patch::Keep)
            && matches!(self.prepaid_quantity, Patch::Keep)
            && matches!(self.minimum_amount, Patch::Keep)
            && matches!(self.maximum_amount, Patch::Keep)
    }
}

/// One element of a request to bill a customer for a pricing, with every field read but nothing looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedProduct {
    /// The pricing.
    pub pricing_ref: PricingRef,
    /// First day billed.
    pub billing_start_date: NaiveDate,
    /// Last day billed.
    pub billing_end_date: NaiveDate,
    /// The selected line items; `None` for all of the pricing's.
    pub line_items: Option<Vec<RequestedLineItem>>,
    /// The least a period costs; the pricing's where it isn't set.
    pub minimum_fee: Patch<Price>,
    /// Supplier entity.
    pub entity_ref: Option<EntityRef>,
    /// Interval of invoices.
    pub billing_cycle: Option<BillingCycle>,
    /// Date of the first invoice.
    pub issue_day: Option<NaiveDate>,
    /// Timing of payment.
    pub payment_time: Option<PaymentTime>,
    /// Tax in percent.
    pub tax: Option<Percentage>,
    /// Discount in percent.
    pub discount: Option<Percentage>,
    /// Net terms.
    pub net_terms: Option<NetTerms>,
    /// Free text for the document.
    pub note: Option<Prose>,
    /// Payment details.
    pub payment: PaymentDetails,
    /// How it is taxed at a rate of 0.
    pub treatment: TaxBasis,
    /// What the payer wants to find on its documents.
    pub buyer_reference: Option<BuyerReference>,
}

impl RequestedProduct {
    /// A product with every default: the pricing as it is, billed monthly after use.
    pub fn plain(pricing_ref: PricingRef, billing_start_date: NaiveDate, billing_end_date: NaiveDate) -> Self {
        Self {
            pricing_ref,
            billing_start_date,
            billing_end_date,
            line_items: None,
            minimum_fee: Patch::Keep,
            entity_ref: None,
            billing_cycle: None,
            issue_day: None,
            payment_time: None,
            tax: None,
            discount: None,
            net_terms: None,
            note: None,
            payment: PaymentDetails::default(),
            treatment: TaxBasis::default(),
            buyer_reference: None,
        }
    }
}

/// The terms of one product, complete in themselves: later edits of the catalog don't reach them
/// (billing rules 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductTerms {
    /// The pricing as it was agreed.
    pub pricing: FrozenPricing,
    /// The selected line items as they were agreed.
    pub line_items: Vec<SelectedLineItem>,
    /// Whether all line items of the pricing were taken, rather than named ones.
    pub all_line_items: bool,
    /// Billing periods.
    pub schedule: BillingSchedule,
    /// Timing of payment.
    pub payment_time: PaymentTime,
    /// The entity the product itself names.
    pub stated_entity: Option<EntityRef>,
    /// The entity that bills: the stated one, the customer's, or the organization's.
    pub entity_ref: EntityRef,
    /// Tax in percent, where the product states it.
    pub tax: Option<Percentage>,
    /// Discount in percent.
    pub discount: Option<Percentage>,
    /// Net terms, where the product states them.
    pub net_terms: Option<NetTerms>,
    /// Free text for the document.
    pub note: Option<Prose>,
    /// Payment details, where the product states them.
    pub payment: PaymentDetails,
    /// How it is taxed at a rate of 0, where the product states it.
    pub treatment: TaxBasis,
    /// What the payer wants to find on its documents, where the product states it.
    pub buyer_reference: Option<BuyerReference>,
}

/// What of a pricing isn't a line item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrozenPricing {
    /// The pricing.
    pub pricing_ref: PricingRef,
    /// Its name.
    pub name: OneLine,
    /// The currency of its documents.
    pub currency: Currency,
    /// The least a period costs.
    pub minimum_fee: Option<Price>,
}

/// A line item a contract bills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedLineItem {
    /// Unique within its pricing.
    pub id: LineItemId,
    /// Shown on documents.
    pub name: OneLine,
    /// What it costs.
    pub charge: SelectedCharge,
}

/// What a selected line item costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectedCharge {
    /// Priced by the agreed quantity.
    Fixed {
        /// The price model.
        price: FixedPrice,
        /// When it is charged.
        recurrence: Recurrence,
        /// How many, from when.
        quantities: Quantities,
    },
    /// Priced by events.
    Usage(MeteredCharge),
}

/// A usage charge with what it needs to know of its usage product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeteredCharge {
    /// What usage costs.
    pub charge: UsageCharge,
    /// What one of it is called.
    pub unit: Option<OneLine>,
    /// What one of it is, for machines.
    pub unit_code: UnitCode,
    /// How a period's quantities become one.
    pub aggregation: Aggregation,
}

impl SelectedLineItem {
    /// The usage charge, of a usage line item.
    pub const fn metered(&self) -> Option<&MeteredCharge> {
        match &self.charge {
            SelectedCharge::Usage(metered) => Some(metered),
            SelectedCharge::Fixed { .. } => None,
        }
    }

    /// The steps of its quantity; a usage line item has none.
    pub(super) fn steps(&self) -> &[QuantityStep] {
        match &self.charge {
            SelectedCharge::Fixed { quantities, .. } => quantities.as_slice(),
            SelectedCharge::Usage(_) => &[],
        }
    }

    /// Whether it is billed once, in the first period that has it.
    pub const fn is_once(&self) -> bool {
        matches!(self.charge, SelectedCharge::Fixed { recurrence: Recurrence::Once, .. })
    }

    /// With what a request agrees on differently; `listed` is the line item as the pricing has it now.
    ///
    /// # Errors
    /// Violations of fields that a line item of its kind doesn't have.
    pub(super) fn overridden(mut self, given: &RequestedLineItem, listed: Option<&Self>) -> Result<Self, Violations> {
        let mut found = Violations::none();
        given.name.put(&mut self.name, listed.map(|listed| &listed.name));
        match &mut self.charge {
            SelectedCharge::Fixed { price, quantities, .. } => {
                match &given.price {
                    Patch::Keep => {}
                    Patch::Clear => {
                        if let Some(Self { charge: SelectedCharge::Fixed { price: now, .. }, .. }) = listed {
                            *price = now.clone();
                        }
                    }
                    Patch::Set(model) => match FixedPrice::of(model.clone()) {
                        Some(model) => *price = model,
                        None => found.add(&["price"], "out_of_range", "must not be PERCENTAGE, because the line item is FIXED"),
                    },
                }
                if let Some(list) = &given.quantities {
                    *quantities = quantities.replaced_by(list);
                }
                let of_usage = [
                    ("included_quantity", given.included_quantity.is_set()),
                    ("prepaid_quantity", given.prepaid_quantity.is_set()),
                    ("minimum_amount", given.minimum_amount.is_set()),
                    ("maximum_amount", given.maximum_amount.is_set()),
                ];
                for (field, _) in of_usage.into_iter().filter(|(_, is_set)| *is_set) {
                    found.add(&[field], "not_allowed", "must be left out, because the line item is FIXED");
                }
            }
            SelectedCharge::Usage(metered) => {
                let now = listed.and_then(Self::metered).map(|metered| &metered.charge);
                let charge = &mut metered.charge;
                match &given.price {
                    Patch::Keep => {}
                    Patch::Clear => charge.price = now.map_or_else(|| charge.price.clone(), |now| now.price.clone()),
                    Patch::Set(PriceModel::Metered(model)) => charge.price = model.clone(),
                    Patch::Set(PriceModel::Flat { .. }) => {
                        found.add(&["price"], "out_of_range", "must not be FLAT, because the line item is priced by usage");
                    }
                }
                given.included_quantity.put(&mut charge.included_quantity, now.map(|now| &now.included_quantity));
                given.prepaid_quantity.put_optional(&mut charge.prepaid_quantity, now.and_then(|now| now.prepaid_quantity));
                given.minimum_amount.put_optional(&mut charge.minimum_amount, now.and_then(|now| now.minimum_amount));
                given.maximum_amount.put_optional(&mut charge.maximum_amount, now.and_then(|now| now.maximum_amount));
                if given.quantities.is_some() {
                    found.add(&["quantities"], "not_allowed", "must be left out, because the line item is priced by usage");
                }
            }
        }
        found.or(self)
    }
}

impl ProductTerms {
    /// Agrees on terms: checks a request against the pricing it names and freezes both.
    /// `usage_products` are those the pricing's line items name.
    ///
    /// # Errors
    /// Every violation found, with paths below the product.
    pub fn agree(
        request: RequestedProduct,
        pricing: &Pricing,
        usage_products: &[UsageProduct],
        entity_ref: EntityRef,
    ) -> Result<Self, Violations> {
        let mut found = Violations::none();
        let line_items = select(request.line_items.as_deref(), pricing, usage_products, |_| None).unwrap_or_else(|violations| {
            found.extend_below(&[], violations);
            Vec::new()
        });
        let schedule = BillingSchedule::new(
            request.billing_start_date,
            request.billing_end_date,
            request.billing_cycle.unwrap_or_default(),
            request.issue_day,
        );
        let schedule = match schedule {
            Ok(schedule) => schedule,
            Err(violations) => {
                found.extend_below(&[], violations);
                if let Err(violations) = check_prepaid(&line_items, request.payment_time.unwrap_or_default()) {
                    found.extend_below(&[], violations);
                }
                return Err(found);
            }
        };
        let mut minimum_fee = pricing.content.minimum_fee;
        request.minimum_fee.put_optional(&mut minimum_fee, pricing.content.minimum_fee);
        let terms = Self {
            pricing: FrozenPricing { minimum_fee, ..FrozenPricing::of(pricing) },
            line_items,
            all_line_items: request.line_items.is_none(),
            schedule,
            payment_time: request.payment_time.unwrap_or_default(),
            stated_entity: request.entity_ref,
            entity_ref,
            tax: request.tax,
            discount: request.discount,
            net_terms: request.net_terms,
            note: request.note,
            payment: request.payment,
            treatment: request.treatment,
            buyer_reference: request.buyer_reference,
        };
        if let Err(violations) = terms.check() {
            found.extend_below(&[], violations);
        }
        found.or(terms)
    }

    /// Checks what no single field shows (billing rules 2, 6, 10).
    ///
    /// # Errors
    /// Violations with paths below the product.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::none();
        let rules = [check_prepaid(&self.line_items, self.payment_time), self.treatment.check(self.tax)];
        for violations in rules.into_iter().filter_map(Result::err) {
            found.extend_below(&[], violations);
        }
        found.or(())
    }

    /// Whether a selected line item is priced by a usage product's events.
    pub fn meters(&self, usage_product_ref: &UsageProductRef) -> bool {
        self.metering(usage_product_ref).next().is_some()
    }

    /// The usage products of the selected line items; one may come more than once.
    pub fn metered_products(&self) -> impl Iterator<Item = &UsageProductRef> {
        self.line_items.iter().filter_map(SelectedLineItem::metered).map(|metered| &metered.charge.usage_product_ref)
    }

    /// The selected line items priced by a usage product's events, and how each is metered.
    pub fn metering<'t>(
        &'t self,
        usage_product_ref: &'t UsageProductRef,
    ) -> impl Iterator<Item = (&'t SelectedLineItem, &'t MeteredCharge)> {
        let items = self.line_items.iter().filter_map(|item| Some((item, item.metered()?)));
        items.filter(move |(_, metered)| metered.charge.usage_product_ref == *usage_product_ref)
    }

    /// Whether requested line items are those that are selected, each once.
    pub(super) fn has_line_items(&self, requested: &[RequestedLineItem]) -> bool {
        requested.len() == self.line_items.len()
            && self.line_items.iter().all(|item| requested.iter().any(|given| given.id == item.id))
    }

    /// A selected line item.
    pub fn line_item(&self, id: &LineItemId) -> Option<&SelectedLineItem> {
        self.line_items.iter().find(|item| item.id == *id)
    }

    /// Net terms, from the product, its customer, then its entity (billing rules 7, defaults).
    pub fn net_terms(&self, customer: &Customer, entity: &Entity) -> NetTerms {
        self.net_terms.or(customer.profile.net_terms).or(entity.profile.net_terms).unwrap_or(NetTerms::DueUponReceipt)
    }

    /// Payment details, likewise.
    pub fn payment(&self, customer: &Customer, entity: &Entity) -> PaymentDetails {
        self.payment.or(&customer.profile.payment).or(&entity.profile.payment)
    }

    /// What it states about tax; the rest is left to the customer's and the entity's defaults (billing rules 7).
    pub fn stated_tax(&self) -> StatedTax {
        StatedTax { rate: self.tax, basis: self.treatment.clone() }
    }

    /// What of them a day is billed by: neither what holds on other days nor what is for documents that aren't there yet.
    pub(super) fn billed_on(mut self, day: NaiveDate) -> Self {
        for item in &mut self.line_items {
            if let SelectedCharge::Fixed { quantities, .. } = &mut item.charge {
                *quantities = Quantities(vec![QuantityStep { from: NaiveDate::MIN, quantity: quantities.on(day) }]);
            }
        }
        let schedule = self.schedule.endless();
        Self { note: None, buyer_reference: None, net_terms: None, payment: PaymentDetails::default(), schedule, ..self }
    }

    /// What structures documents: it can't change under an issued one (billing rules 7).
    pub fn structure(&self) -> impl PartialEq + use<'_> {
        let schedule = &self.schedule;
        (&self.entity_ref, self.payment_time, schedule.cycle(), schedule.issue_day(), schedule.anchor(), self.pricing.currency)
    }
}

/// What is prepaid has to be billed in advance.
fn check_prepaid(line_items: &[SelectedLineItem], payment_time: PaymentTime) -> Result<(), Violations> {
    let prepaid = |item: &SelectedLineItem| item.metered().is_some_and(|metered| metered.charge.prepaid_quantity.is_some());
    if line_items.iter().any(prepaid) && payment_time != PaymentTime::BeforeUse {
        return Err(Violations::one(
            &["payment_time"],
            "prepaid_needs_before_use",
            "must be BEFORE_USE, because a selected line item has a prepaid_quantity",
        ));
    }
    Ok(())
}

impl FrozenPricing {
    /// As the pricing is now.
    pub fn of(pricing: &Pricing) -> Self {
        Self {
            pricing_ref: pricing.pricing_ref.clone(),
            name: pricing.content.name.clone(),
            currency: pricing.content.currency,
            minimum_fee: pricing.content.minimum_fee,
        }
    }
}

/// A pricing names a usage product the organization doesn't have: a state the catalog never allows.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("usage product {0} of the pricing is unknown")]
pub struct UnknownUsageProduct(pub UsageProductRef);

/// Selects line items: those that were `agreed` before as they were, others as the pricing has them, each with what the
/// request says differently. `None` takes all of the pricing's.
///
/// # Errors
/// Every violation found, with paths below the product.
pub(super) fn select(
    wanted: Option<&[RequestedLineItem]>,
    pricing: &Pricing,
    usage_products: &[UsageProduct],
    agreed: impl Fn(&LineItemId) -> Option<SelectedLineItem>,
) -> Result<Vec<SelectedLineItem>, Violations> {
    let mut found = Violations::none();
    let all: Vec<RequestedLineItem>;
    let wanted = match wanted {
        Some(wanted) => wanted,
        None => {
            all = pricing.content.line_items.iter().map(|item| RequestedLineItem::plain(item.id.clone())).collect();
            &all
        }
    };
    let mut chosen = Vec::with_capacity(wanted.len());
    for (i, given) in wanted.iter().enumerate() {
        let index = i.to_string();
        let below = ["line_items", index.as_str()];
        if wanted[..i].iter().any(|other| other.id == given.id) {
            found.add(&["line_items", &index, "line_item_id"], "duplicate", "must not be listed twice");
            continue;
        }
        let listed = pricing.content.line_items.iter().find(|item| item.id == given.id);
        let listed = match listed.map(|item| freeze(item, usage_products)).transpose() {
            Ok(listed) => listed,
            Err(unknown) => {
                found.add(&["product_pricing_ref"], "unknown_usage_product", unknown.to_string());
                continue;
            }
        };
        let Some(base) = agreed(&given.id).or_else(|| listed.clone()) else {
            let detail = format!("must be a line item of pricing {}", pricing.pricing_ref);
            found.add(&["line_items", &index, "line_item_id"], "unknown_line_item", detail);
            continue;
        };
        match base.overridden(given, listed.as_ref()) {
            Ok(item) => chosen.push(item),
            Err(violations) => found.extend_below(&below, violations),
        }
    }
    found.or(chosen)
}

/// A line item as the pricing has it now.
pub(super) fn freeze(item: &LineItem, usage_products: &[UsageProduct]) -> Result<SelectedLineItem, UnknownUsageProduct> {
    let charge = match &item.charge {
        Charge::Fixed { price, recurrence } => {
            SelectedCharge::Fixed { price: price.clone(), recurrence: *recurrence, quantities: Quantities::default() }
        }
        Charge::Usage(charge) => {
            let product = usage_products
                .iter()
                .find(|product| product.usage_product_ref == charge.usage_product_ref)
                .ok_or_else(|| UnknownUsageProduct(charge.usage_product_ref.clone()))?;
            SelectedCharge::Usage(MeteredCharge {
                charge: charge.clone(),
                unit: product.profile.unit.clone(),
                unit_code: product.profile.unit_code,
                aggregation: product.profile.aggregation,
            })
        }
    };
    Ok(SelectedLineItem { id: item.id.clone(), name: item.name.clone(), charge })
}
