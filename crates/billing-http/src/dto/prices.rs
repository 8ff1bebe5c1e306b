//! Price models: `{"model": …}` and its fields (billing rules 6), both ways.

use billing_domain::catalog::{Charge, FixedPrice, MAX_TIERS, PriceModel, Tier, Tiers, UsagePrice};
use billing_domain::money::{Percentage, Price};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::ArrayBuilder;

use super::declare::{Listed, Wire, answer, choice, object, wire};
use super::values::AboveZero;
use super::wire::ExactNumber;

choice! {
    /// What a line item costs, by its model.
    PriceModel as "PriceBody" by "model" {
        /// `amount × Q`; of FIXED line items alone.
        "FLAT" {
            /// The amount of a whole period, of one.
            amount: Price,
        } => PriceModel::Flat { amount },
        /// `unit_price × Q`.
        "PER_UNIT" {
            /// Price of one.
            unit_price: Price,
        } => PriceModel::Metered(UsagePrice::PerUnit { unit_price }),
        /// Each unit at the price of the tier it falls in, plus each reached tier's flat amount.
        "GRADUATED" {
            /// Tiers with rising bounds; only the last is open.
            tiers: Tiers,
        } => PriceModel::Metered(UsagePrice::Graduated(tiers)),
        /// All units at the price of the tier that Q falls in, plus that tier's flat amount.
        "VOLUME" {
            /// Tiers with rising bounds; only the last is open.
            tiers: Tiers,
        } => PriceModel::Metered(UsagePrice::Volume(tiers)),
        /// `⌈Q ÷ package_size⌉ × package_price`.
        "PACKAGE" {
            /// Units in a package; above zero.
            package_size: AboveZero,
            /// Price of a package, begun or full.
            package_price: Price,
        } => PriceModel::Metered(UsagePrice::Package { package_size, package_price }),
        /// `rate % × Q + fixed_amount × number of events`; Q is an amount of money. Of USAGE line items alone.
        "PERCENTAGE" {
            /// Percent of the amount.
            rate: Percentage,
            /// Added for each event; 0 when left out.
            fixed_amount: Price = Price::ZERO,
        } => PriceModel::Metered(UsagePrice::Percentage { rate, fixed_amount }),
    }
}

object! {
    /// One tier of a price: from the bound of the tier before, exclusive, to its own, inclusive.
    Tier as "TierBody" {
        /// The largest quantity in it; null or left out in the last tier.
        up_to: Option<Price>,
        /// Price of one.
        unit_price: Price,
        /// Added once where the tier is reached; 0 when left out.
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

/// What a line item costs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "model", rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum PriceJson {
    /// `amount × Q`; of FIXED line items alone.
    Flat {
        /// The amount of a whole period, of one.
        amount: ExactNumber,
    },
    /// `unit_price × Q`.
    PerUnit {
        /// Price of one.
        unit_price: ExactNumber,
    },
    /// Each unit at the price of the tier it falls in, plus each reached tier's flat amount.
    Graduated {
        /// Tiers with rising bounds; only the last is open.
        tiers: Vec<TierJson>,
    },
    /// All units at the price of the tier that Q falls in, plus that tier's flat amount.
    Volume {
        /// Tiers with rising bounds; only the last is open.
        tiers: Vec<TierJson>,
    },
    /// `⌈Q ÷ package_size⌉ × package_price`.
    Package {
        /// Units in a package.
        package_size: ExactNumber,
        /// Price of a package, begun or full.
        package_price: ExactNumber,
    },
    /// `rate % × Q + fixed_amount × number of events`; Q is an amount of money. Of USAGE line items alone.
    Percentage {
        /// Percent of the amount.
        rate: ExactNumber,
        /// Added for each event.
        fixed_amount: ExactNumber,
    },
}

answer! {
    /// One tier of a price.
    TierJson of tier: Tier {
        /// The largest quantity in it; null in the last tier.
        up_to: Option<ExactNumber> = tier.up_to,
        /// Price of one.
        unit_price: ExactNumber = tier.unit_price,
        /// Added once where the tier is reached.
        flat_amount: ExactNumber = tier.flat_amount,
    }
}

impl From<&Charge> for PriceJson {
    fn from(charge: &Charge) -> Self {
        match charge {
            Charge::Fixed { price, .. } => Self::from(price),
            Charge::Usage(usage) => Self::from(&usage.price),
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
