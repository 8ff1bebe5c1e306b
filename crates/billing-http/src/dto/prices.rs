//! Price models: `{"model": …}` and its fields (billing rules 6), both ways. A misspelt field would bill wrongly and is refused.

use billing_domain::catalog::{Charge, FixedPrice, MAX_TIERS, PriceModel, Tier, Tiers, UsagePrice};
use billing_domain::decimal::DecimalError;
use billing_domain::money::{Percentage, Price};
use billing_domain::quantity::Quantity;
use serde::Serialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use super::input::{Fields, Node};
use super::wire::{self, ExactNumber, PercentageInput, PriceInput, QuantityInput};

/// What a line item costs: one of [`PriceModels`] without any other field.
pub(crate) struct PriceBody;

impl PartialSchema for PriceBody {
    fn schema() -> RefOr<Schema> {
        // The derived schema of a tagged enumeration leaves its objects open.
        wire::with_closed_choices(PriceModels::schema())
    }
}

impl ToSchema for PriceBody {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        PriceModels::schemas(schemas);
    }
}

/// What a line item costs, by its model.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[serde(tag = "model", rename_all = "SCREAMING_SNAKE_CASE")]
enum PriceModels {
    /// `amount × Q`; of FIXED line items alone.
    Flat {
        /// The amount of a whole period, of one.
        amount: PriceInput,
    },
    /// `unit_price × Q`.
    PerUnit {
        /// Price of one.
        unit_price: PriceInput,
    },
    /// Each unit at the price of the tier it falls in, plus each reached tier's flat amount.
    Graduated {
        /// Tiers with rising bounds; only the last is open.
        #[schema(min_items = 1, max_items = 100)]
        tiers: Vec<TierBody>,
    },
    /// All units at the price of the tier that Q falls in, plus that tier's flat amount.
    Volume {
        /// Tiers with rising bounds; only the last is open.
        #[schema(min_items = 1, max_items = 100)]
        tiers: Vec<TierBody>,
    },
    /// `⌈Q ÷ package_size⌉ × package_price`.
    Package {
        /// Units in a package; above zero.
        package_size: QuantityInput,
        /// Price of a package, begun or full.
        package_price: PriceInput,
    },
    /// `rate % × Q + fixed_amount × number of events`; Q is an amount of money. Of USAGE line items alone.
    Percentage {
        /// Percent of the amount.
        rate: PercentageInput,
        /// Added for each event; 0 when left out.
        fixed_amount: Option<PriceInput>,
    },
}

/// One tier of a price: from the bound of the tier before, exclusive, to its own, inclusive.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TierBody {
    /// The largest quantity in it; null or left out in the last tier.
    up_to: Option<PriceInput>,
    /// Price of one.
    unit_price: PriceInput,
    /// Added once where the tier is reached; 0 when left out.
    flat_amount: Option<PriceInput>,
}

/// Reads a price, of a line item of either kind.
pub(super) fn read(node: Node<'_>) -> Option<PriceModel> {
    node.object(|fields| {
        let model = fields.required("model", |node| match node.as_text() {
            Some(text) => Some(text),
            None => node.refuse("wrong_type", "must be a string"),
        })?;
        match model {
            "FLAT" => {
                fields.only(&["model", "amount"]);
                price(fields, "amount").map(|amount| PriceModel::Flat { amount })
            }
            "PER_UNIT" => {
                fields.only(&["model", "unit_price"]);
                let unit_price = price(fields, "unit_price")?;
                Some(PriceModel::Metered(UsagePrice::PerUnit { unit_price }))
            }
            "GRADUATED" => tiers(fields).map(UsagePrice::Graduated).map(PriceModel::Metered),
            "VOLUME" => tiers(fields).map(UsagePrice::Volume).map(PriceModel::Metered),
            "PACKAGE" => {
                fields.only(&["model", "package_size", "package_price"]);
                let package_size = fields.required("package_size", |node| node.decimal(above_zero));
                let package_price = price(fields, "package_price");
                Some(PriceModel::Metered(UsagePrice::Package { package_size: package_size?, package_price: package_price? }))
            }
            "PERCENTAGE" => {
                fields.only(&["model", "rate", "fixed_amount"]);
                let rate = fields.required("rate", |node| node.decimal(Percentage::parse));
                let fixed_amount = price_or_zero(fields, "fixed_amount");
                Some(PriceModel::Metered(UsagePrice::Percentage { rate: rate?, fixed_amount }))
            }
            _ => {
                let detail = "must be one of FLAT, PER_UNIT, GRADUATED, VOLUME, PACKAGE, PERCENTAGE";
                fields.refuse("model", "invalid_value", detail)
            }
        }
    })
}

fn price(fields: Fields<'_>, name: &str) -> Option<Price> {
    fields.required(name, |node| node.decimal(Price::parse))
}

fn price_or_zero(fields: Fields<'_>, name: &str) -> Price {
    fields.defaulted(name, None, Price::ZERO, |node| node.decimal(Price::parse))
}

fn above_zero(text: &str) -> Result<Quantity, DecimalError> {
    Quantity::parse(text).and_then(|quantity| if quantity == Quantity::ZERO { Err(DecimalError::Zero) } else { Ok(quantity) })
}

fn tiers(fields: Fields<'_>) -> Option<Tiers> {
    fields.only(&["model", "tiers"]);
    fields.required("tiers", |node| {
        let tiers = node.list(MAX_TIERS, |node| node.object(tier))?;
        node.agreed(Tiers::new(tiers))
    })
}

fn tier(fields: Fields<'_>) -> Option<Tier> {
    fields.only(&["up_to", "unit_price", "flat_amount"]);
    let up_to = fields.optional("up_to", |node| node.decimal(Price::parse));
    let unit_price = price(fields, "unit_price");
    let flat_amount = price_or_zero(fields, "flat_amount");
    // A bound that can't be read is no open end.
    if up_to.is_none() && fields.has("up_to") {
        return None;
    }
    Some(Tier { up_to, unit_price: unit_price?, flat_amount })
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

/// One tier of a price.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TierJson {
    /// The largest quantity in it; null in the last tier.
    up_to: Option<ExactNumber>,
    /// Price of one.
    unit_price: ExactNumber,
    /// Added once where the tier is reached.
    flat_amount: ExactNumber,
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

impl From<&Tier> for TierJson {
    fn from(tier: &Tier) -> Self {
        Self {
            up_to: tier.up_to.map(ExactNumber::from),
            unit_price: ExactNumber::from(tier.unit_price),
            flat_amount: ExactNumber::from(tier.flat_amount),
        }
    }
}
