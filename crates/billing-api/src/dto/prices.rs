//! Price models: `{"model": …}` and their fields (billing rules 6), in requests and responses.

use billing_domain::catalog::{FixedPrice, LineItemPrice, MAX_TIERS, PriceModel, Tier, Tiers, UsagePrice};
use billing_domain::money::{Percentage, Price};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::ArrayBuilder;

use super::declare::{Listed, Wire, accessors, answer, choice, object, wire};
use super::values::AboveZero;
use super::wire::ExactNumber;

choice! {
    /// The price of a line item, by model.
    PriceModel as "PriceBody" by "model" {
        /// `amount × Q`; FIXED line items only.
        "FLAT" {
            /// Amount per unit for a whole period.
            amount: Price,
        } => PriceModel::Flat { amount },
        /// `unit_price × Q`.
        "PER_UNIT" {
            /// Price per unit.
            unit_price: Price,
        } => PriceModel::Metered(UsagePrice::PerUnit { unit_price }),
        /// Each unit has the price of its tier. The flat amount of each reached tier is added.
        "GRADUATED" {
            /// Tiers in ascending order; only the last tier has no upper bound.
            tiers: Tiers,
        } => PriceModel::Metered(UsagePrice::Graduated(tiers)),
        /// All units have the price of the tier that contains Q. The flat amount of that tier is added.
        "VOLUME" {
            /// Tiers in ascending order; only the last tier has no upper bound.
            tiers: Tiers,
        } => PriceModel::Metered(UsagePrice::Volume(tiers)),
        /// `⌈Q ÷ package_size⌉ × package_price`.
        "PACKAGE" {
            /// Units per package; positive.
            package_size: AboveZero,
            /// Price of a package, full or partial.
            package_price: Price,
        } => PriceModel::Metered(UsagePrice::Package { package_size, package_price }),
        /// `rate % × Q + fixed_amount × number of events`, where Q is an amount of money; USAGE line items only.
        "PERCENTAGE" {
            /// Percentage of the amount.
            rate: Percentage,
            /// Amount per event. Default: 0.
            fixed_amount: Price = Price::ZERO,
        } => PriceModel::Metered(UsagePrice::Percentage { rate, fixed_amount }),
    }
}

object! {
    /// A price tier: from the previous tier's bound, exclusive, to its own bound, inclusive.
    Tier as "TierBody" {
        /// Largest quantity in the tier; null or omitted in the last tier.
        up_to: Option<Price>,
        /// Price per unit.
        unit_price: Price,
        /// Amount added once when the tier is reached. Default: 0.
        flat_amount: Price = Price::ZERO,
    }
}

impl Listed for Tier {
    const MAX: usize = MAX_TIERS;
}

wire! {
    Tiers: |node| node.agreed(Tiers::new(<Vec<Tier> as Wire>::read(node)?)),
        |schemas| ArrayBuilder::new().items(Tier::schema(schemas)).min_items(Some(1)).max_items(Some(MAX_TIERS));
}

/// The price of a line item.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "model", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PriceJson {
    /// `amount × Q`; FIXED line items only.
    Flat {
        /// Amount per unit for a whole period.
        amount: ExactNumber,
    },
    /// `unit_price × Q`.
    PerUnit {
        /// Price per unit.
        unit_price: ExactNumber,
    },
    /// Each unit has the price of its tier. The flat amount of each reached tier is added.
    Graduated {
        /// Tiers in ascending order; only the last tier has no upper bound.
        tiers: Vec<TierJson>,
    },
    /// All units have the price of the tier that contains Q. The flat amount of that tier is added.
    Volume {
        /// Tiers in ascending order; only the last tier has no upper bound.
        tiers: Vec<TierJson>,
    },
    /// `⌈Q ÷ package_size⌉ × package_price`.
    Package {
        /// Units per package.
        package_size: ExactNumber,
        /// Price of a package, full or partial.
        package_price: ExactNumber,
    },
    /// `rate % × Q + fixed_amount × number of events`, where Q is an amount of money; USAGE line items only.
    Percentage {
        /// Percentage of the amount.
        rate: ExactNumber,
        /// Amount per event.
        fixed_amount: ExactNumber,
    },
}

accessors! { PriceJson {
    model: String,
    amount: ExactNumber,
    unit_price: ExactNumber,
    tiers: Vec<TierJson>,
    package_size: ExactNumber,
    package_price: ExactNumber,
    rate: ExactNumber,
    fixed_amount: ExactNumber,
} }

answer! {
    /// A price tier.
    TierJson of tier: Tier {
        /// Largest quantity in the tier; null in the last tier.
        up_to: Option<ExactNumber> = tier.up_to,
        /// Price per unit.
        unit_price: ExactNumber = tier.unit_price,
        /// Amount added once when the tier is reached.
        flat_amount: ExactNumber = tier.flat_amount,
    }
}

impl From<&LineItemPrice> for PriceJson {
    fn from(charge: &LineItemPrice) -> Self {
        match charge {
            LineItemPrice::Fixed { price, .. } => Self::from(price),
            LineItemPrice::Usage(usage) => Self::from(&usage.price),
        }
    }
}

impl From<&FixedPrice> for PriceJson {
    fn from(price: &FixedPrice) -> Self {
        match price {
            FixedPrice::Flat { amount } => Self::Flat { amount: ExactNumber::from(*amount) },
            FixedPrice::Metered(price) => Self::from(price),
        }
    }
}

impl From<&UsagePrice> for PriceJson {
    fn from(price: &UsagePrice) -> Self {
        let tiers = |tiers: &Tiers| tiers.as_slice().iter().map(TierJson::from).collect();
        match price {
            UsagePrice::PerUnit { unit_price } => Self::PerUnit { unit_price: ExactNumber::from(*unit_price) },
            UsagePrice::Graduated(graduated) => Self::Graduated { tiers: tiers(graduated) },
            UsagePrice::Volume(volume) => Self::Volume { tiers: tiers(volume) },
            UsagePrice::Package { package_size, package_price } => {
                Self::Package { package_size: ExactNumber::from(*package_size), package_price: ExactNumber::from(*package_price) }
            }
            UsagePrice::Percentage { rate, fixed_amount } => {
                Self::Percentage { rate: ExactNumber::from(*rate), fixed_amount: ExactNumber::from(*fixed_amount) }
            }
        }
    }
}
