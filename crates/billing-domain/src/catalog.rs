//! The catalog: usage products, and pricings with their line items and price models (billing rules 6). Rating is in
//! [`rating`](crate::rating).

use std::collections::BTreeMap;

use crate::calendar::Timestamp;
use crate::codes::UnitCode;
use crate::labels::{LabelKey, Where};
use crate::money::{Currency, Percentage, Price};
use crate::quantity::Quantity;
use crate::refs::{CHARGE_PREFIX, LineItemId, PricingRef, UsageProductRef};
use crate::text::OneLine;
use crate::violation::Violations;

/// The maximum number of line items of a pricing.
pub const MAX_LINE_ITEMS: usize = 500;
/// The maximum number of tiers of a price.
pub const MAX_TIERS: usize = 100;

/// The aggregation of a period's quantities into one quantity, Q in the billing rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Aggregation {
    /// The sum of the quantities.
    #[default]
    Sum,
    /// The number of events.
    Count,
    /// The largest quantity.
    Max,
    /// The quantity with the latest timestamp. Among equal timestamps, the quantity that arrived last.
    Latest,
    /// The number of distinct texts of the label that the usage product names in `unique_by`.
    Unique,
}

impl Aggregation {
    /// Returns whether the quantity of several events is the sum of their quantities, each for itself.
    pub const fn is_additive(self) -> bool {
        match self {
            Self::Sum | Self::Count => true,
            Self::Max | Self::Latest | Self::Unique => false,
        }
    }

    /// Returns whether a hold can reserve room for a quantity (billing rules 11).
    pub const fn is_holdable(self) -> bool {
        match self {
            Self::Sum | Self::Count | Self::Max => true,
            Self::Latest | Self::Unique => false,
        }
    }
}

/// A metered product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageProduct {
    /// The reference, chosen by the caller.
    pub usage_product_ref: UsageProductRef,
    /// The editable fields.
    pub profile: UsageProductProfile,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

/// The editable fields of a usage product. Contracts keep the values they were created with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageProductProfile {
    /// The name. Usage can be reported under it.
    pub name: OneLine,
    /// The name of the unit on documents: `GB`, `call`, …
    pub unit: Option<OneLine>,
    /// The unit as a standard code.
    pub unit_code: UnitCode,
    /// The aggregation of a period's quantities.
    pub aggregation: Aggregation,
    /// The label whose distinct texts [`Aggregation::Unique`] counts.
    pub unique_by: Option<LabelKey>,
}

impl UsageProductProfile {
    /// Checks that the aggregation `UNIQUE` has a label.
    ///
    /// # Errors
    /// Returns `unique_by_required`.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::none();
        if self.aggregation == Aggregation::Unique && self.unique_by.is_none() {
            let detail = "must name the label whose distinct values are counted, because the aggregation is UNIQUE";
            found.add(&["unique_by"], "unique_by_required", detail);
        }
        found.or(())
    }
}

/// A price list: line items in one currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pricing {
    /// The reference, chosen by the caller.
    pub pricing_ref: PricingRef,
    /// The editable fields. Contracts keep the values they were created with.
    pub content: PricingContent,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

/// The editable fields of a pricing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PricingContent {
    /// The name, shown on documents.
    pub name: OneLine,
    /// The currency of every document with this pricing.
    pub currency: Currency,
    /// The minimum fee of a period, for usage and fixed items together.
    pub minimum_fee: Option<Price>,
    /// The line items, with distinct IDs.
    pub line_items: Vec<LineItem>,
}

impl PricingContent {
    /// Returns the usage products that line items meter, with the indices of the line items.
    pub fn metered(&self) -> impl Iterator<Item = (usize, &UsageProductRef)> {
        self.line_items.iter().enumerate().filter_map(|(index, item)| match &item.charge {
            LineItemPrice::Usage(charge) => Some((index, &charge.usage_product_ref)),
            LineItemPrice::Fixed { .. } => None,
        })
    }

    /// Checks the number of line items, the uniqueness of their IDs, that no event is counted by two siblings with `where` or `rest`,
    /// and that each line item with `UNIQUE` has a label to count. `usage_products` are those of the line items.
    ///
    /// # Errors
    /// Returns every violation.
    pub fn check(&self, usage_products: &[UsageProduct]) -> Result<(), Violations> {
        let mut found = Violations::none();
        if self.line_items.len() > MAX_LINE_ITEMS {
            found.add(&["line_items"], "too_many", format!("must have at most {MAX_LINE_ITEMS} elements"));
        }
        for (i, item) in self.line_items.iter().enumerate() {
            if item.id.is_of_charge() {
                let detail = format!("must not begin with {CHARGE_PREFIX}, which is reserved for charges");
                found.add(&["line_items", &i.to_string(), "line_item_id"], "reserved", detail);
            }
            if self.line_items[..i].iter().any(|other| other.id == item.id) {
                let index = i.to_string();
                found.add(&["line_items", &index, "line_item_id"], "duplicate", "must be unique within the pricing");
            }
        }
        let mut of_usage = Vec::new();
        for (index, item) in self.line_items.iter().enumerate() {
            let LineItemPrice::Usage(charge) = &item.charge else { continue };
            let product = usage_products.iter().find(|product| product.usage_product_ref == charge.usage_product_ref);
            let unique_by = product.and_then(|product| charge.unique_by(&product.profile));
            let aggregation = charge.aggregation.or(product.map(|product| product.profile.aggregation));
            let is_unique = product.is_some() && aggregation == Some(Aggregation::Unique);
            of_usage.push(Sibling { index, id: &item.id, charge, is_unique, unique_by });
        }
        if let Err(violations) = check_siblings(of_usage) {
            found.extend_below(&[], violations);
        }
        found.or(())
    }
}

/// A usage line item among those of its usage product.
#[derive(Clone, Copy, Debug)]
pub struct Sibling<'i> {
    /// The position among the line items.
    pub index: usize,
    /// The ID.
    pub id: &'i LineItemId,
    /// The charge.
    pub charge: &'i UsageCharge,
    /// Whether the line item counts distinct texts of a label (`UNIQUE`).
    pub is_unique: bool,
    /// The label.
    pub unique_by: Option<&'i LabelKey>,
}

impl Sibling<'_> {
    /// Returns the field, the code and the detail of a conflict with an earlier sibling, or of the line item with itself.
    fn conflict(&self, other: &Self) -> Option<(&'static str, &'static str, String)> {
        let (is_itself, id) = (self.index == other.index, other.id);
        let is_selective = |item: &Self| item.charge.selector.is_selective();
        if !is_itself && self.charge.selector.collides(&other.charge.selector) {
            return Some(if self.charge.selector.condition().is_some() {
                let detail =
                    format!("must share a label key without a common value with the line item {id} of the same usage product");
                ("where", "overlapping_where", detail)
            } else {
                let detail = format!("must be false, because the line item {id} of the same usage product counts the rest");
                ("rest", "several_rest", detail)
            });
        }
        if self.is_unique && self.unique_by.is_none() {
            let detail =
                format!("must not be UNIQUE, because the usage product {} has no unique_by", self.charge.usage_product_ref);
            return Some(("aggregation", "unique_by_required", detail));
        }
        for (unique, selective) in [(self, other), (other, self)] {
            if unique.is_unique && is_selective(selective) {
                let detail = format!(
                    "must not be UNIQUE for {} while {} of the same usage product has `where` or `rest`, because numbers of distinct \
                     values don't add up: select the events by `where` of the contract's product instead",
                    unique.id, selective.id
                );
                return Some(("aggregation", "unique_with_where", detail));
            }
        }
        let (own, label) = (self.unique_by?.as_str(), other.unique_by?.as_str());
        let detail = format!(
            "counts the distinct values of {own}, and the line item {id} of the same usage product those of {label}: take both from the \
             pricing anew with `reprice`"
        );
        (own != label).then_some(("line_item_id", "several_unique_by", detail))
    }
}

/// Checks siblings, the line items of one usage product: those with `where` are disjoint, at most one says `rest`, and those with
/// `UNIQUE` have a label, the same one, and no sibling with `where` or `rest` (billing rules 4).
///
/// # Errors
/// Returns `unique_by_required`, and `overlapping_where`, `several_rest`, `unique_with_where` and `several_unique_by`, each of which
/// names both line items.
pub fn check_siblings<'i>(line_items: impl IntoIterator<Item = Sibling<'i>>) -> Result<(), Violations> {
    let mut found = Violations::none();
    let mut siblings: BTreeMap<&UsageProductRef, Vec<Sibling<'_>>> = BTreeMap::new();
    for item in line_items {
        let siblings = siblings.entry(&item.charge.usage_product_ref).or_default();
        siblings.push(item);
        if let Some((field, code, detail)) = siblings.iter().find_map(|other| item.conflict(other)) {
            found.add(&["line_items", &item.index.to_string(), field], code, detail);
        }
    }
    found.or(())
}

/// A line item of a pricing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineItem {
    /// The ID, unique within the pricing.
    pub id: LineItemId,
    /// The name, shown on documents.
    pub name: OneLine,
    /// The price of the line item.
    pub charge: LineItemPrice,
}

/// The price of a line item: fixed or by usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineItemPrice {
    /// A fixed charge. Its quantity is agreed in the contract and does not depend on usage.
    Fixed {
        /// The price model.
        price: FixedPrice,
        /// The recurrence of the charge.
        recurrence: Recurrence,
        /// Whether the line item is a good. Otherwise it is a service, as all usage is.
        goods: bool,
    },
    /// A charge for the events of one usage product.
    Usage(UsageCharge),
}

/// The price model of a fixed line item (billing rules 6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FixedPrice {
    /// `amount × Q`.
    Flat {
        /// The price of one unit for a whole period.
        amount: Price,
    },
    /// A price model shared with usage line items. It is never [`UsagePrice::Percentage`].
    Metered(UsagePrice),
}

/// A price model of a fixed or usage line item, as a contract overrides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriceModel {
    /// The price model `FLAT`, for fixed line items only.
    Flat {
        /// The price of one unit for a whole period.
        amount: Price,
    },
    /// Any other price model. `PERCENTAGE` is for usage line items only.
    Metered(UsagePrice),
}

impl FixedPrice {
    /// Returns a price model as the price of a fixed line item. Returns `None` for `PERCENTAGE`, which is for usage line
    /// items only.
    pub fn of(model: PriceModel) -> Option<Self> {
        match model {
            PriceModel::Flat { amount } => Some(Self::Flat { amount }),
            PriceModel::Metered(UsagePrice::Percentage { .. }) => None,
            PriceModel::Metered(price) => Some(Self::Metered(price)),
        }
    }
}

/// The recurrence of a fixed line item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Recurrence {
    /// Charged in every period, prorated in a partial period.
    #[default]
    EachPeriod,
    /// Charged in the first period in which the contract has the line item, never prorated.
    Once,
}

/// The events of a usage product that a line item counts (billing rules 4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selector {
    /// Every event that the terms count.
    #[default]
    Every,
    /// The events whose labels meet a condition.
    Where(Where),
    /// The events that no sibling with a condition counts.
    Rest,
}

impl Selector {
    /// Returns whether the line item counts some of the events only.
    pub const fn is_selective(&self) -> bool {
        !matches!(self, Self::Every)
    }

    /// Returns the condition, if any.
    pub const fn condition(&self) -> Option<&Where> {
        match self {
            Self::Where(condition) => Some(condition),
            Self::Every | Self::Rest => None,
        }
    }

    /// Returns whether a sibling with the other selector could count the same events as an alternative.
    fn collides(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Where(own), Self::Where(other)) => !own.is_disjoint(other),
            (Self::Rest, Self::Rest) => true,
            (Self::Every | Self::Where(_) | Self::Rest, _) => false,
        }
    }
}

/// A charge for usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageCharge {
    /// The usage product whose events are priced.
    pub usage_product_ref: UsageProductRef,
    /// The events that are counted.
    pub selector: Selector,
    /// The aggregation; `None` for that of the usage product.
    pub aggregation: Option<Aggregation>,
    /// The price model.
    pub price: UsagePrice,
    /// The quantity that is subtracted from the period's quantity before pricing.
    pub included_quantity: Quantity,
    /// The quantity billed in advance (`BEFORE_USE` only).
    pub prepaid_quantity: Option<Quantity>,
    /// The minimum amount of a period, prorated in a partial period.
    pub minimum_amount: Option<Price>,
    /// The maximum amount of a period.
    pub maximum_amount: Option<Price>,
}

impl UsageCharge {
    /// Returns the label whose distinct texts the charge counts, if its aggregation is `UNIQUE`.
    pub fn unique_by<'p>(&self, usage_product: &'p UsageProductProfile) -> Option<&'p LabelKey> {
        let is_unique = self.aggregation.unwrap_or(usage_product.aggregation) == Aggregation::Unique;
        usage_product.unique_by.as_ref().filter(|_| is_unique)
    }

    /// Creates a charge for every event of a usage product, without limits.
    pub const fn of(usage_product_ref: UsageProductRef, price: UsagePrice) -> Self {
        Self {
            usage_product_ref,
            selector: Selector::Every,
            aggregation: None,
            price,
            included_quantity: Quantity::ZERO,
            prepaid_quantity: None,
            minimum_amount: None,
            maximum_amount: None,
        }
    }
}

/// The price model of a usage line item (billing rules 6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsagePrice {
    /// `unit_price × Q`.
    PerUnit {
        /// The price of one unit.
        unit_price: Price,
    },
    /// Each unit has the price of the tier it falls in.
    Graduated(Tiers),
    /// All units have the price of the tier that Q falls in.
    Volume(Tiers),
    /// `⌈Q ÷ package_size⌉ × package_price`.
    Package {
        /// The number of units in a package, above zero.
        package_size: Quantity,
        /// The price of a package, full or partial.
        package_price: Price,
    },
    /// `rate % × Q + fixed_amount × number of events`. Q is an amount of money.
    Percentage {
        /// The rate in percent of the amount.
        rate: Percentage,
        /// The amount added for each event.
        fixed_amount: Price,
    },
}

/// A price tier: `from < Q ≤ up_to`, where `from` is the `up_to` of the tier below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    /// The largest quantity in the tier; `None` in the last tier.
    pub up_to: Option<Price>,
    /// The price of one unit.
    pub unit_price: Price,
    /// The amount added once when the tier is reached.
    pub flat_amount: Price,
}

/// A list of 1 to [`MAX_TIERS`] tiers with increasing bounds. Only the last tier is unbounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers(Vec<Tier>);

impl Tiers {
    /// Creates a list of tiers and checks their bounds.
    ///
    /// # Errors
    /// Returns every violation, with paths below the list.
    pub fn new(tiers: Vec<Tier>) -> Result<Self, Violations> {
        let mut found = Violations::none();
        if tiers.is_empty() || tiers.len() > MAX_TIERS {
            found.add(&[], "out_of_range", format!("must have 1 to {MAX_TIERS} elements"));
        }
        let mut below = Price::ZERO;
        for (i, tier) in tiers.iter().enumerate() {
            let index = i.to_string();
            let last = i + 1 == tiers.len();
            match tier.up_to {
                None if !last => {
                    found.add(&[&index, "up_to"], "required", "must be given, because only the last tier has no upper bound");
                }
                Some(_) if last => {
                    found.add(
                        &[&index, "up_to"],
                        "not_allowed",
                        "must be omitted or null, because the last tier has no upper bound",
                    );
                }
                Some(up_to) if up_to <= below => {
                    found.add(&[&index, "up_to"], "out_of_range", "must be greater than the bound of the previous tier");
                }
                Some(_) | None => {}
            }
            below = tier.up_to.unwrap_or(below);
        }
        found.or(Self(tiers))
    }

    /// Returns the tiers, lowest first.
    pub fn as_slice(&self) -> &[Tier] {
        &self.0
    }
}
