//! What a contract says about one product: frozen pricing, schedule, and the terms a document is made with.

use chrono::NaiveDate;
use thiserror::Error;

use super::schedule::{BillingCycle, BillingSchedule};
use crate::catalog::{Aggregation, Charge, LineItem, Pricing, Recurrence, UsageCharge, UsageProduct};
use crate::money::{Currency, Percentage, Price};
use crate::party::{Customer, Entity, NetTerms, PaymentDetails};
use crate::refs::{EntityRef, LineItemId, PricingRef, UsageProductRef};
use crate::text::{Line, Prose};
use crate::violation::Violations;

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
    pub line_items: Option<Vec<LineItemId>>,
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
}

/// The terms of one product, complete in themselves: later edits of the catalog don't reach them
/// (billing rules 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductTerms {
    /// The pricing as it was.
    pub pricing: FrozenPricing,
    /// The selected line items as they were.
    pub line_items: Vec<SelectedLineItem>,
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
}

/// What of a pricing isn't a line item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrozenPricing {
    /// The pricing.
    pub pricing_ref: PricingRef,
    /// Its name.
    pub name: Line,
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
    pub name: Line,
    /// What it costs.
    pub charge: SelectedCharge,
}

/// What a selected line item costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectedCharge {
    /// Costs the same whatever is used.
    Fixed {
        /// The amount of a whole period.
        amount: Price,
        /// When it is charged.
        recurrence: Recurrence,
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
    pub unit: Option<Line>,
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
        let line_items = select(&request, pricing, usage_products).unwrap_or_else(|violations| {
            found.extend_below(&[], violations);
            Vec::new()
        });
        let schedule = BillingSchedule::new(
            request.billing_start_date,
            request.billing_end_date,
            request.billing_cycle.unwrap_or_default(),
            request.issue_day,
        );
        let payment_time = request.payment_time.unwrap_or_default();
        let prepaid =
            line_items.iter().filter_map(SelectedLineItem::metered).any(|metered| metered.charge.prepaid_quantity.is_some());
        if prepaid && payment_time != PaymentTime::BeforeUse {
            found.add(
                &["payment_time"],
                "prepaid_needs_before_use",
                "must be BEFORE_USE, because a selected line item has a prepaid_quantity",
            );
        }
        let schedule = match schedule {
            Ok(schedule) => schedule,
            Err(violations) => {
                found.extend_below(&[], violations);
                return Err(found);
            }
        };
        found.or(Self {
            pricing: FrozenPricing {
                pricing_ref: pricing.pricing_ref.clone(),
                name: pricing.content.name.clone(),
                currency: pricing.content.currency,
                minimum_fee: pricing.content.minimum_fee,
            },
            line_items,
            schedule,
            payment_time,
            stated_entity: request.entity_ref,
            entity_ref,
            tax: request.tax,
            discount: request.discount,
            net_terms: request.net_terms,
            note: request.note,
            payment: request.payment,
        })
    }

    /// The request that leads to these terms: what an edit starts from.
    pub fn as_request(&self) -> RequestedProduct {
        let range = self.schedule.range();
        RequestedProduct {
            pricing_ref: self.pricing.pricing_ref.clone(),
            billing_start_date: range.start(),
            billing_end_date: range.last_day(),
            line_items: Some(self.line_items.iter().map(|item| item.id.clone()).collect()),
            entity_ref: self.stated_entity.clone(),
            billing_cycle: Some(self.schedule.cycle()),
            issue_day: self.schedule.issue_day(),
            payment_time: Some(self.payment_time),
            tax: self.tax,
            discount: self.discount,
            net_terms: self.net_terms,
            note: self.note.clone(),
            payment: self.payment.clone(),
        }
    }

    /// Whether a selected line item is priced by a usage product's events.
    pub fn meters(&self, usage_product_ref: &UsageProductRef) -> bool {
        self.metered_products().any(|metered| metered == usage_product_ref)
    }

    /// The usage products of the selected line items; one may come more than once.
    pub fn metered_products(&self) -> impl Iterator<Item = &UsageProductRef> {
        self.line_items.iter().filter_map(SelectedLineItem::metered).map(|metered| &metered.charge.usage_product_ref)
    }

    /// Fills what the product leaves open from its customer, then its entity (billing rules 7, defaults).
    pub fn resolve(&self, customer: &Customer, entity: &Entity) -> ResolvedTerms {
        let (customer, entity) = (&customer.profile, &entity.profile);
        ResolvedTerms {
            entity_ref: self.entity_ref.clone(),
            currency: self.pricing.currency,
            payment_time: self.payment_time,
            net_terms: self.net_terms.or(customer.net_terms).or(entity.net_terms).unwrap_or(NetTerms::DueUponReceipt),
            payment: self.payment.or(&customer.payment).or(&entity.payment),
            tax_rate: self.tax.or(customer.tax).unwrap_or(Percentage::ZERO),
            discount_rate: self.discount.unwrap_or(Percentage::ZERO),
        }
    }
}

/// A product's terms with nothing left open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedTerms {
    /// The entity that bills.
    pub entity_ref: EntityRef,
    /// The document's currency.
    pub currency: Currency,
    /// Timing of payment.
    pub payment_time: PaymentTime,
    /// Net terms.
    pub net_terms: NetTerms,
    /// Payment details.
    pub payment: PaymentDetails,
    /// Tax in percent.
    pub tax_rate: Percentage,
    /// Discount in percent.
    pub discount_rate: Percentage,
}

impl ResolvedTerms {
    /// Whether products with these terms share a document, where their periods are the same
    /// (billing rules 2).
    pub fn shares_document_with(&self, other: &Self) -> bool {
        self.entity_ref == other.entity_ref
            && self.currency == other.currency
            && self.payment_time == other.payment_time
            && self.net_terms == other.net_terms
            && self.payment == other.payment
    }
}

/// A pricing names a usage product the organization doesn't have: a state the catalog never allows.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("usage product {0} of the pricing is unknown")]
pub struct UnknownUsageProduct(pub UsageProductRef);

fn select(
    request: &RequestedProduct,
    pricing: &Pricing,
    usage_products: &[UsageProduct],
) -> Result<Vec<SelectedLineItem>, Violations> {
    let available = &pricing.content.line_items;
    let mut found = Violations::none();
    let mut chosen: Vec<&LineItem> = Vec::new();
    match &request.line_items {
        None => chosen.extend(available),
        Some(ids) => {
            for (i, id) in ids.iter().enumerate() {
                let index = i.to_string();
                let path = ["line_items", &index, "line_item_id"];
                match available.iter().find(|item| item.id == *id) {
                    None => {
                        found.add(&path, "unknown_line_item", format!("must be a line item of pricing {}", pricing.pricing_ref))
                    }
                    Some(_) if ids[..i].contains(id) => found.add(&path, "duplicate", "must not be listed twice"),
                    Some(item) => chosen.push(item),
                }
            }
        }
    }
    let selected = chosen.into_iter().map(|item| freeze(item, usage_products)).collect::<Result<Vec<_>, _>>();
    match selected {
        Ok(selected) => found.or(selected),
        Err(unknown) => {
            found.add(&["product_pricing_ref"], "unknown_usage_product", unknown.to_string());
            Err(found)
        }
    }
}

fn freeze(item: &LineItem, usage_products: &[UsageProduct]) -> Result<SelectedLineItem, UnknownUsageProduct> {
    let charge = match &item.charge {
        Charge::Fixed { amount, recurrence } => SelectedCharge::Fixed { amount: *amount, recurrence: *recurrence },
        Charge::Usage(charge) => {
            let product = usage_products
                .iter()
                .find(|product| product.usage_product_ref == charge.usage_product_ref)
                .ok_or_else(|| UnknownUsageProduct(charge.usage_product_ref.clone()))?;
            SelectedCharge::Usage(MeteredCharge {
                charge: charge.clone(),
                unit: product.profile.unit.clone(),
                aggregation: product.profile.aggregation,
            })
        }
    };
    Ok(SelectedLineItem { id: item.id.clone(), name: item.name.clone(), charge })
}
