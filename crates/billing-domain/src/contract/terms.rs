//! The terms of one product of a contract: frozen pricing, schedule and document settings.

use std::sync::Arc;

use chrono::NaiveDate;
use thiserror::Error;

pub use super::quantities::{MAX_QUANTITY_STEPS, Quantities, QuantityStep};
use super::schedule::{BillingCycle, BillingSchedule};
use crate::catalog::{
    Aggregation, FixedPrice, LineItem, LineItemPrice, PriceModel, Pricing, Recurrence, UsageCharge, UsageProduct, check_siblings,
};
use crate::codes::UnitCode;
use crate::labels::{LabelKey, Where};
use crate::money::{Currency, Percentage, Price};
use crate::party::legal::BuyerReference;
use crate::party::{Customer, Entity, NetTerms, PaymentDetails};
use crate::patch::Patch;
use crate::quantity::Quantity;
use crate::refs::{EntityRef, LineItemId, PricingRef, UsageProductRef};
use crate::tax::{StatedTax, TaxBasis};
use crate::text::{OneLine, Prose};
use crate::violation::Violations;

/// The issue time of documents relative to the period they bill (billing rules 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PaymentTime {
    /// Fixed items are billed in advance. Usage is billed on a debit after the period.
    BeforeUse,
    /// Fixed items are billed on the first day of the period. Usage is billed on the invoice of the next period.
    DuringUse,
    /// All items are billed on one invoice on the day after the period.
    #[default]
    AfterUse,
}

/// A requested line item, with its differences from the pricing. A kept field has its previously agreed value, or else
/// the value of the pricing.
///
/// A cleared field has the value of the pricing (billing rules 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedLineItem {
    /// The ID of the line item in the pricing.
    pub id: LineItemId,
    /// The quantity steps of a fixed line item. They replace agreed steps from their first date on.
    pub quantities: Option<Quantities>,
    /// The name, shown on documents.
    pub name: Patch<OneLine>,
    /// The price model.
    pub price: Patch<PriceModel>,
    /// The quantity that is subtracted from a period's usage before pricing.
    pub included_quantity: Patch<Quantity>,
    /// The quantity billed in advance.
    pub prepaid_quantity: Patch<Quantity>,
    /// The minimum amount of a period's usage.
    pub minimum_amount: Patch<Price>,
    /// The maximum amount of a period's usage.
    pub maximum_amount: Patch<Price>,
}

impl RequestedLineItem {
    /// Returns a request for a line item without differences from the pricing.
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

    /// Removes the values that equal those of an agreed line item.
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

    /// Returns whether the request contains only the ID of the line item.
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

/// One product of a request, parsed but without any lookups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedProduct {
    /// The pricing.
    pub pricing_ref: PricingRef,
    /// The first billed day.
    pub billing_start_date: NaiveDate,
    /// The last billed day.
    pub billing_end_date: NaiveDate,
    /// The selected line items; `None` selects all line items of the pricing.
    pub line_items: Option<Vec<RequestedLineItem>>,
    /// The minimum fee of a period. Defaults to the minimum fee of the pricing.
    pub minimum_fee: Patch<Price>,
    /// The name on documents. Defaults to the name of the pricing.
    pub name: Option<OneLine>,
    /// The condition on the labels of events.
    pub condition: Option<Where>,
    /// The supplier entity.
    pub entity_ref: Option<EntityRef>,
    /// The invoice interval.
    pub billing_cycle: Option<BillingCycle>,
    /// The date of the first invoice.
    pub issue_day: Option<NaiveDate>,
    /// The payment time.
    pub payment_time: Option<PaymentTime>,
    /// The tax rate in percent.
    pub tax: Option<Percentage>,
    /// The discount in percent.
    pub discount: Option<Percentage>,
    /// The net terms.
    pub net_terms: Option<NetTerms>,
    /// The note on the document.
    pub note: Option<Prose>,
    /// The payment details.
    pub payment: PaymentDetails,
    /// The tax treatment at a rate of 0.
    pub treatment: TaxBasis,
    /// The buyer reference shown on documents.
    pub buyer_reference: Option<BuyerReference>,
}

impl RequestedProduct {
    /// Returns a product with all defaults: the unchanged pricing, billed monthly after use.
    pub fn plain(pricing_ref: PricingRef, billing_start_date: NaiveDate, billing_end_date: NaiveDate) -> Self {
        Self {
            pricing_ref,
            billing_start_date,
            billing_end_date,
            line_items: None,
            minimum_fee: Patch::Keep,
            name: None,
            condition: None,
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

/// The complete terms of one product. Later edits of the catalog do not change them (billing rules 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductTerms {
    /// The pricing as agreed.
    pub pricing: FrozenPricing,
    /// The selected line items as agreed. Contracts with equal line items can share them.
    pub line_items: Arc<[SelectedLineItem]>,
    /// Whether all line items of the pricing were selected instead of named line items.
    pub all_line_items: bool,
    /// The name on documents; `None` for that of the pricing.
    pub name: Option<OneLine>,
    /// The condition on the labels of events. The product counts only events that meet it.
    pub condition: Option<Where>,
    /// The schedule of billing periods.
    pub schedule: BillingSchedule,
    /// The payment time.
    pub payment_time: PaymentTime,
    /// The entity stated by the product.
    pub stated_entity: Option<EntityRef>,
    /// The billing entity: the stated entity, or else the default of the customer or organization.
    pub entity_ref: EntityRef,
    /// The tax rate in percent, if the product states one.
    pub tax: Option<Percentage>,
    /// The discount in percent.
    pub discount: Option<Percentage>,
    /// The net terms, if the product states them.
    pub net_terms: Option<NetTerms>,
    /// The note on the document.
    pub note: Option<Prose>,
    /// The payment details, if the product states them.
    pub payment: PaymentDetails,
    /// The tax treatment at a rate of 0, if the product states one.
    pub treatment: TaxBasis,
    /// The buyer reference shown on documents, if the product states one.
    pub buyer_reference: Option<BuyerReference>,
}

/// The agreed part of a pricing without its line items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrozenPricing {
    /// The pricing.
    pub pricing_ref: PricingRef,
    /// The name of the pricing.
    pub name: OneLine,
    /// The currency of its documents.
    pub currency: Currency,
    /// The minimum fee of a period.
    pub minimum_fee: Option<Price>,
}

/// A line item that a contract bills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedLineItem {
    /// The ID, unique within the pricing.
    pub id: LineItemId,
    /// The name, shown on documents.
    pub name: OneLine,
    /// The charge of the line item.
    pub charge: SelectedCharge,
}

/// The charge of a selected line item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectedCharge {
    /// A charge for the agreed quantity.
    Fixed {
        /// The price model.
        price: FixedPrice,
        /// The recurrence of the charge.
        recurrence: Recurrence,
        /// The agreed quantities by date.
        quantities: Quantities,
        /// Whether the line item is a good.
        goods: bool,
    },
    /// A charge for events.
    Usage(MeteredCharge),
}

/// A usage charge with the required fields of its usage product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeteredCharge {
    /// The usage charge.
    pub charge: UsageCharge,
    /// The name of the unit.
    pub unit: Option<OneLine>,
    /// The unit as a standard code.
    pub unit_code: UnitCode,
    /// The aggregation of a period's quantities.
    pub aggregation: Aggregation,
    /// The label whose distinct texts are counted, for [`Aggregation::Unique`].
    pub unique_by: Option<LabelKey>,
}

impl SelectedLineItem {
    /// Returns the usage charge, or `None` for a fixed line item.
    pub const fn metered(&self) -> Option<&MeteredCharge> {
        match &self.charge {
            SelectedCharge::Usage(metered) => Some(metered),
            SelectedCharge::Fixed { .. } => None,
        }
    }

    /// Returns the quantity steps. A usage line item has no steps.
    pub(super) fn steps(&self) -> &[QuantityStep] {
        match &self.charge {
            SelectedCharge::Fixed { quantities, .. } => quantities.as_slice(),
            SelectedCharge::Usage(_) => &[],
        }
    }

    /// Returns whether the line item is billed once, in the first period that has it.
    pub const fn is_once(&self) -> bool {
        matches!(self.charge, SelectedCharge::Fixed { recurrence: Recurrence::Once, .. })
    }

    /// Returns whether the line item is a good. Usage is a service.
    pub const fn is_goods(&self) -> bool {
        matches!(self.charge, SelectedCharge::Fixed { goods: true, .. })
    }

    /// Applies the differences of a request. `listed` is the current line item of the pricing.
    ///
    /// # Errors
    /// Returns a violation for each field that does not exist for this kind of line item.
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
                    found.add(&[field], "not_allowed", "must be omitted, because the line item is FIXED");
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
                    found.add(&["quantities"], "not_allowed", "must be omitted, because the line item is priced by usage");
                }
            }
        }
        found.or(self)
    }
}

impl ProductTerms {
    /// Creates terms: checks a request against its pricing and freezes both.
    ///
    /// `usage_products` are the usage products of the pricing's line items.
    ///
    /// # Errors
    /// Returns every violation, with paths below the product.
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
            line_items: line_items.into(),
            all_line_items: request.line_items.is_none(),
            name: request.name,
            condition: request.condition,
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

    /// Checks rules across fields (billing rules 2, 6, 10).
    ///
    /// # Errors
    /// Returns the violations, with paths below the product.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::none();
        let of_usage = self.line_items.iter().enumerate().filter_map(|(index, item)| item.as_sibling(index));
        let rules =
            [check_prepaid(&self.line_items, self.payment_time), self.treatment.check(self.tax), check_siblings(of_usage)];
        for violations in rules.into_iter().filter_map(Result::err) {
            found.extend_below(&[], violations);
        }
        found.or(())
    }

    /// Returns whether a selected line item is priced by the events of a usage product.
    pub fn meters(&self, usage_product_ref: &UsageProductRef) -> bool {
        self.metering(usage_product_ref).next().is_some()
    }

    /// Returns the usage products of the selected line items. A usage product can occur several times.
    pub fn metered_products(&self) -> impl Iterator<Item = &UsageProductRef> {
        self.line_items.iter().filter_map(SelectedLineItem::metered).map(|metered| &metered.charge.usage_product_ref)
    }

    /// Returns the selected line items that are priced by the events of a usage product, with their metered charges.
    pub fn metering<'t, 'r>(
        &'t self,
        usage_product_ref: &'r UsageProductRef,
    ) -> impl Iterator<Item = (&'t SelectedLineItem, &'t MeteredCharge)> + use<'t, 'r> {
        let items = self.line_items.iter().filter_map(|item| Some((item, item.metered()?)));
        items.filter(move |(_, metered)| metered.charge.usage_product_ref == *usage_product_ref)
    }

    /// Returns whether the requested line items are exactly the selected ones, each once.
    pub(super) fn has_line_items(&self, requested: &[RequestedLineItem]) -> bool {
        requested.len() == self.line_items.len()
            && self.line_items.iter().all(|item| requested.iter().any(|given| given.id == item.id))
    }

    /// Returns the name on documents: that of the product, or else of the pricing.
    pub fn shown_name(&self) -> &OneLine {
        self.name.as_ref().unwrap_or(&self.pricing.name)
    }

    /// Returns a selected line item by ID.
    pub fn line_item(&self, id: &LineItemId) -> Option<&SelectedLineItem> {
        self.line_items.iter().find(|item| item.id == *id)
    }

    /// Returns the net terms of the product, or else of the customer, or else of the entity (billing rules 7, defaults).
    pub fn net_terms(&self, customer: &Customer, entity: &Entity) -> NetTerms {
        self.net_terms.or(customer.profile.net_terms).or(entity.profile.net_terms).unwrap_or(NetTerms::DueUponReceipt)
    }

    /// Returns the payment details of the product, or else of the customer, or else of the entity.
    pub fn payment(&self, customer: &Customer, entity: &Entity) -> PaymentDetails {
        self.payment.or(&customer.profile.payment).or(&entity.profile.payment)
    }

    /// Returns the stated tax. Missing values come from the defaults of the customer and the entity (billing rules 7).
    pub fn stated_tax(&self) -> StatedTax {
        StatedTax { rate: self.tax, basis: self.treatment.clone() }
    }

    /// Reduces the terms to the values that affect the billing of a day. Removes quantities of other days and settings
    /// that only affect future documents.
    pub(super) fn billed_on(mut self, day: NaiveDate) -> Self {
        for item in Arc::make_mut(&mut self.line_items) {
            if let SelectedCharge::Fixed { quantities, .. } = &mut item.charge {
                *quantities = Quantities::constant(quantities.on(day));
            }
        }
        let schedule = self.schedule.endless();
        Self {
            name: None,
            note: None,
            buyer_reference: None,
            net_terms: None,
            payment: PaymentDetails::default(),
            schedule,
            ..self
        }
    }

    /// Returns the values that determine the structure of documents. They cannot change for an issued document (billing
    /// rules 7).
    pub fn structure(&self) -> impl PartialEq + use<'_> {
        let schedule = &self.schedule;
        (&self.entity_ref, self.payment_time, schedule.cycle(), schedule.issue_day(), schedule.anchor(), self.pricing.currency)
    }
}

/// Checks that prepaid quantities are billed in advance.
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
    /// Copies the current values of a pricing.
    pub fn of(pricing: &Pricing) -> Self {
        Self {
            pricing_ref: pricing.pricing_ref.clone(),
            name: pricing.content.name.clone(),
            currency: pricing.content.currency,
            minimum_fee: pricing.content.minimum_fee,
        }
    }
}

/// An error: a pricing names a usage product that the organization does not have. The catalog never allows this state.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("usage product {0} of the pricing is unknown")]
pub struct UnknownUsageProduct(pub UsageProductRef);

/// Selects line items and applies the differences of the request. `None` selects all line items of the pricing.
///
/// A previously `agreed` line item keeps its values; any other is copied from the pricing.
///
/// # Errors
/// Returns every violation, with paths below the product.
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

/// Copies the current line item of the pricing.
pub(super) fn freeze(item: &LineItem, usage_products: &[UsageProduct]) -> Result<SelectedLineItem, UnknownUsageProduct> {
    let charge = match &item.charge {
        LineItemPrice::Fixed { price, recurrence, goods } => SelectedCharge::Fixed {
            price: price.clone(),
            recurrence: *recurrence,
            quantities: Quantities::default(),
            goods: *goods,
        },
        LineItemPrice::Usage(charge) => {
            let product = usage_products
                .iter()
                .find(|product| product.usage_product_ref == charge.usage_product_ref)
                .ok_or_else(|| UnknownUsageProduct(charge.usage_product_ref.clone()))?;
            SelectedCharge::Usage(MeteredCharge::frozen(charge, &product.profile))
        }
    };
    Ok(SelectedLineItem { id: item.id.clone(), name: item.name.clone(), charge })
}
