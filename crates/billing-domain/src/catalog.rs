//! What is sold: usage products, and pricings with their line items and price models (billing rules 6).
//! It rates nothing: that is [`rating`](crate::rating).

use crate::calendar::Timestamp;
use crate::codes::UnitCode;
use crate::money::{Currency, Percentage, Price};
use crate::quantity::Quantity;
use crate::refs::{CHARGE_PREFIX, LineItemId, PricingRef, UsageProductRef};
use crate::text::OneLine;
use crate::violation::Violations;

/// The most line items of a pricing.
pub const MAX_LINE_ITEMS: usize = 200;
/// The most tiers of a price.
pub const MAX_TIERS: usize = 100;

/// How the quantities of a period become one: Q in the billing rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Aggregation {
    /// Their sum.
    #[default]
    Sum,
    /// How many events there were.
    Count,
    /// The largest.
    Max,
    /// The one with the latest timestamp; of equals the one that arrived last.
    Latest,
}

/// Something whose use is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageProduct {
    /// As callers name it.
    pub usage_product_ref: UsageProductRef,
    /// What can be edited.
    pub profile: UsageProductProfile,
    /// When it was made.
    pub created_at: Timestamp,
}

/// What can be edited of a usage product. Contracts keep what they were made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageProductProfile {
    /// Name; usage may be reported under it.
    pub name: OneLine,
    /// What one of it is called on a document: `GB`, `call`, …
    pub unit: Option<OneLine>,
    /// What one of it is, for machines.
    pub unit_code: UnitCode,
    /// How a period's quantities become one.
    pub aggregation: Aggregation,
}

/// A price list: line items in one currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pricing {
    /// As callers name it.
    pub pricing_ref: PricingRef,
    /// What can be edited. Contracts keep what they were made with.
    pub content: PricingContent,
    /// When it was made.
    pub created_at: Timestamp,
}

/// What can be edited of a pricing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PricingContent {
    /// Name, shown on documents.
    pub name: OneLine,
    /// The currency of every document that bills it.
    pub currency: Currency,
    /// The least a period costs, usage and fixed items together.
    pub minimum_fee: Option<Price>,
    /// Line items with distinct identifiers.
    pub line_items: Vec<LineItem>,
}

impl PricingContent {
    /// The usage products that line items meter, with the line items' indices.
    pub fn metered(&self) -> impl Iterator<Item = (usize, &UsageProductRef)> {
        self.line_items.iter().enumerate().filter_map(|(index, item)| match &item.charge {
            Charge::Usage(charge) => Some((index, &charge.usage_product_ref)),
            Charge::Fixed { .. } => None,
        })
    }

    /// Checks what no single field shows: the number of line items and their identifiers.
    ///
    /// # Errors
    /// Every violation found.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::none();
        if self.line_items.len() > MAX_LINE_ITEMS {
            found.add(&["line_items"], "too_many", format!("must have at most {MAX_LINE_ITEMS} elements"));
        }
        for (i, item) in self.line_items.iter().enumerate() {
            if item.id.is_of_charge() {
                let detail = format!("must not begin with {CHARGE_PREFIX}: such line items are of charges");
                found.add(&["line_items", &i.to_string(), "line_item_id"], "reserved", detail);
            }
            if self.line_items[..i].iter().any(|other| other.id == item.id) {
                let index = i.to_string();
                found.add(&["line_items", &index, "line_item_id"], "duplicate", "must be unique within the pricing");
            }
        }
        found.or(())
    }
}

/// One thing a pricing charges for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineItem {
    /// Unique within its pricing.
    pub id: LineItemId,
    /// Shown on documents.
    pub name: OneLine,
    /// What it costs.
    pub charge: Charge,
}

/// Whether a line item depends on usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Charge {
    /// Priced by the quantity that a contract agrees on, whatever is used.
    Fixed {
        /// The price model.
        price: FixedPrice,
        /// When it is charged.
        recurrence: Recurrence,
    },
    /// Priced by the events of one usage product.
    Usage(UsageCharge),
}

/// How an agreed quantity becomes an amount (billing rules 6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FixedPrice {
    /// `amount × Q`.
    Flat {
        /// The amount of a whole period, of one.
        amount: Price,
    },
    /// A model that usage has, too; never [`UsagePrice::Percentage`].
    Metered(UsagePrice),
}

/// A price of either kind, as a contract overrides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriceModel {
    /// Price model `FLAT`: of fixed line items alone.
    Flat {
        /// The amount of a whole period, of one.
        amount: Price,
    },
    /// Any other; `PERCENTAGE` of usage alone.
    Metered(UsagePrice),
}

impl FixedPrice {
    /// A model as the price of a fixed line item; `None` of `PERCENTAGE`, which is of usage alone.
    pub fn of(model: PriceModel) -> Option<Self> {
        match model {
            PriceModel::Flat { amount } => Some(Self::Flat { amount }),
            PriceModel::Metered(UsagePrice::Percentage { .. }) => None,
            PriceModel::Metered(price) => Some(Self::Metered(price)),
        }
    }
}

/// When a fixed line item is charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Recurrence {
    /// In every period, prorated where the period is partial.
    #[default]
    EachPeriod,
    /// In the first period in which a contract has it, never prorated.
    Once,
}

/// What usage costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageCharge {
    /// The usage product whose events are priced.
    pub usage_product_ref: UsageProductRef,
    /// The price model.
    pub price: UsagePrice,
    /// Comes off the period's quantity first.
    pub included_quantity: Quantity,
    /// Billed in advance (`BEFORE_USE` only).
    pub prepaid_quantity: Option<Quantity>,
    /// The least a period costs; prorated where the period is partial.
    pub minimum_amount: Option<Price>,
    /// The most a period costs.
    pub maximum_amount: Option<Price>,
}

/// How a quantity becomes an amount (billing rules 6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsagePrice {
    /// `unit_price × Q`.
    PerUnit {
        /// Price of one.
        unit_price: Price,
    },
    /// Each unit at the price of the tier it falls in.
    Graduated(Tiers),
    /// All units at the price of the tier that Q falls in.
    Volume(Tiers),
    /// `⌈Q ÷ package_size⌉ × package_price`.
    Package {
        /// Units in a package; above zero.
        package_size: Quantity,
        /// Price of a package, begun or full.
        package_price: Price,
    },
    /// `rate % × Q + fixed_amount × number of events`; Q is an amount of money.
    Percentage {
        /// Percent of the amount.
        rate: Percentage,
        /// Added for each event.
        fixed_amount: Price,
    },
}

/// One tier: `from < Q ≤ up_to`, where `from` is the tier below's `up_to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    /// The largest quantity in it; `None` in the last.
    pub up_to: Option<Price>,
    /// Price of one.
    pub unit_price: Price,
    /// Added once where the tier is reached.
    pub flat_amount: Price,
}

/// 1 to [`MAX_TIERS`] tiers with rising bounds; only the last is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers(Vec<Tier>);

impl Tiers {
    /// Checks the tiers' bounds.
    ///
    /// # Errors
    /// Every violation found, with paths below the list.
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
                    found.add(&[&index, "up_to"], "required", "only the last tier may be without an upper bound");
                }
                Some(_) if last => {
                    found.add(&[&index, "up_to"], "not_allowed", "the last tier must be open: leave up_to out or null");
                }
                Some(up_to) if up_to <= below => {
                    found.add(&[&index, "up_to"], "out_of_range", "must be greater than the bound of the tier before");
                }
                Some(_) | None => {}
            }
            below = tier.up_to.unwrap_or(below);
        }
        found.or(Self(tiers))
    }

    /// The tiers, lowest first.
    pub fn as_slice(&self) -> &[Tier] {
        &self.0
    }
}
