//! Prices and price lists of a simulation (billing rules 6).

use super::value::Given;
use crate::calendar::Timestamp;
use crate::catalog::{
    Aggregation, FixedPrice, LineItem, LineItemPrice, PriceModel, Pricing, PricingContent, Recurrence, Selector, Tier, Tiers,
    UsageCharge, UsagePrice, UsageProduct, UsageProductProfile,
};
use crate::codes::UnitCode;
use crate::labels::{LabelKey, Where};
use crate::money::{Currency, Percentage, Price};
use crate::quantity::Quantity;
use crate::refs::{LineItemId, PricingRef, UsageProductRef};
use crate::refusal::Refusal;
use crate::text::OneLine;

/// The price of a line item, with the limits of a usage line item.
#[derive(Clone, Debug)]
pub struct Prices {
    model: Model,
    recurrence: Recurrence,
    goods: bool,
    included: Option<Given<Quantity>>,
    prepaid: Option<Given<Quantity>>,
    minimum: Option<Given<Price>>,
    maximum: Option<Given<Price>>,
    usage_product: Option<Given<UsageProductRef>>,
    aggregation: Aggregation,
    line_aggregation: Option<Aggregation>,
    unique_by: Option<Given<LabelKey>>,
    events: CountedEvents,
}

/// The events that a usage line item counts.
#[derive(Clone, Debug)]
enum CountedEvents {
    Every,
    Where(Vec<(String, Vec<String>)>),
    Rest,
}

#[derive(Clone, Debug)]
enum Model {
    Flat(Given<Price>),
    PerUnit(Given<Price>),
    Graduated(Vec<SimulatedTier>),
    Volume(Vec<SimulatedTier>),
    Package(Given<Quantity>, Given<Price>),
    Percentage(Given<Percentage>, Given<Price>),
}

/// A price tier: its upper bound (`None` in the last tier), its unit price, and the flat amount added once when the tier
/// is reached.
#[derive(Clone, Debug)]
pub struct SimulatedTier {
    up_to: Option<Given<Price>>,
    unit_price: Given<Price>,
    flat_amount: Given<Price>,
}

impl<U: Into<Given<Price>>, P: Into<Given<Price>>> From<(Option<U>, P)> for SimulatedTier {
    fn from((up_to, unit_price): (Option<U>, P)) -> Self {
        Self { up_to: up_to.map(Into::into), unit_price: unit_price.into(), flat_amount: Given::Value(Price::ZERO) }
    }
}

impl<U: Into<Given<Price>>, P: Into<Given<Price>>, F: Into<Given<Price>>> From<(Option<U>, P, F)> for SimulatedTier {
    fn from((up_to, unit_price, flat_amount): (Option<U>, P, F)) -> Self {
        Self { flat_amount: flat_amount.into(), ..Self::from((up_to, unit_price)) }
    }
}

/// Returns an amount for each whole period, multiplied by the agreed quantity. Only fixed line items can have it.
pub fn flat(amount: impl Into<Given<Price>>) -> Prices {
    Prices::of(Model::Flat(amount.into()))
}

/// Returns a single unit price.
pub fn per_unit(unit_price: impl Into<Given<Price>>) -> Prices {
    Prices::of(Model::PerUnit(unit_price.into()))
}

/// Returns graduated tiers by their upper bounds, each with its unit price and an optional flat amount. Each unit has the
/// price of its own tier. The last tier is unbounded.
pub fn graduated<T: Into<SimulatedTier>>(tiers: impl IntoIterator<Item = T>) -> Prices {
    Prices::of(Model::Graduated(tiers.into_iter().map(Into::into).collect()))
}

/// Returns volume tiers by their upper bounds, each with its unit price and an optional flat amount. All units have the
/// price of the tier of the whole quantity. The last tier is unbounded.
pub fn volume<T: Into<SimulatedTier>>(tiers: impl IntoIterator<Item = T>) -> Prices {
    Prices::of(Model::Volume(tiers.into_iter().map(Into::into).collect()))
}

/// Returns a price for each package of a size, full or partial.
pub fn package(size: impl Into<Given<Quantity>>, price: impl Into<Given<Price>>) -> Prices {
    Prices::of(Model::Package(size.into(), price.into()))
}

/// Returns a rate in percent of the usage, which is an amount of money, and an amount for each event. Only usage line
/// items can have it.
pub fn percentage(rate: impl Into<Given<Percentage>>, fixed_amount: impl Into<Given<Price>>) -> Prices {
    Prices::of(Model::Percentage(rate.into(), fixed_amount.into()))
}

impl Prices {
    const fn of(model: Model) -> Self {
        Self {
            model,
            recurrence: Recurrence::EachPeriod,
            goods: false,
            included: None,
            prepaid: None,
            minimum: None,
            maximum: None,
            usage_product: None,
            aggregation: Aggregation::Sum,
            line_aggregation: None,
            unique_by: None,
            events: CountedEvents::Every,
        }
    }

    /// Charges a fixed line item once, in the first period that has it (`ONCE`).
    #[must_use]
    pub const fn once(mut self) -> Self {
        self.recurrence = Recurrence::Once;
        self
    }

    /// Makes a fixed line item a good instead of a service.
    #[must_use]
    pub const fn goods(mut self) -> Self {
        self.goods = true;
        self
    }

    /// Subtracts an included quantity from each period's usage before pricing.
    #[must_use]
    pub fn included(mut self, quantity: impl Into<Given<Quantity>>) -> Self {
        self.included = Some(quantity.into());
        self
    }

    /// Bills a quantity in advance, only with [`PaymentTime::BeforeUse`](crate::contract::terms::PaymentTime).
    #[must_use]
    pub fn prepaid(mut self, quantity: impl Into<Given<Quantity>>) -> Self {
        self.prepaid = Some(quantity.into());
        self
    }

    /// Sets the minimum amount of a period of usage. It is prorated in a partial period.
    #[must_use]
    pub fn at_least(mut self, amount: impl Into<Given<Price>>) -> Self {
        self.minimum = Some(amount.into());
        self
    }

    /// Sets the maximum amount of a period of usage.
    #[must_use]
    pub fn at_most(mut self, amount: impl Into<Given<Price>>) -> Self {
        self.maximum = Some(amount.into());
        self
    }

    /// Prices another usage product than the product with the line item's name.
    #[must_use]
    pub fn of_usage(mut self, usage_product: impl Into<Given<UsageProductRef>>) -> Self {
        self.usage_product = Some(usage_product.into());
        self
    }

    /// Sets the aggregation of a period's quantities. Defaults to their sum.
    #[must_use]
    pub const fn aggregated(mut self, aggregation: Aggregation) -> Self {
        self.aggregation = aggregation;
        self
    }

    /// Sets the aggregation of the line item, if it isn't that of its usage product.
    #[must_use]
    pub const fn counted_as(mut self, aggregation: Aggregation) -> Self {
        self.line_aggregation = Some(aggregation);
        self
    }

    /// Names the label of the usage product whose distinct values [`Aggregation::Unique`] counts.
    #[must_use]
    pub fn unique_by(mut self, label: impl Into<Given<LabelKey>>) -> Self {
        self.unique_by = Some(label.into());
        self
    }

    /// Counts only the events whose labels have one of the values for each key (`where`).
    #[must_use]
    pub fn where_labels(mut self, condition: &[(&str, &[&str])]) -> Self {
        self.events = CountedEvents::Where(owned_condition(condition));
        self
    }

    /// Counts the events that no sibling with `where` counts.
    #[must_use]
    pub fn rest(mut self) -> Self {
        self.events = CountedEvents::Rest;
        self
    }

    /// Returns the price model without limits.
    pub(super) fn model(&self) -> Result<PriceModel, Refusal> {
        let tiers = |tiers: &[SimulatedTier]| {
            let tier = |tier: &SimulatedTier| {
                Ok(Tier {
                    up_to: tier.up_to.as_ref().map(|up_to| up_to.read("up_to")).transpose()?,
                    unit_price: tier.unit_price.read("unit_price")?,
                    flat_amount: tier.flat_amount.read("flat_amount")?,
                })
            };
            Ok::<_, Refusal>(Tiers::new(tiers.iter().map(tier).collect::<Result<_, Refusal>>()?)?)
        };
        let metered = match &self.model {
            Model::Flat(amount) => return Ok(PriceModel::Flat { amount: amount.read("amount")? }),
            Model::PerUnit(unit_price) => UsagePrice::PerUnit { unit_price: unit_price.read("unit_price")? },
            Model::Graduated(of) => UsagePrice::Graduated(tiers(of)?),
            Model::Volume(of) => UsagePrice::Volume(tiers(of)?),
            Model::Package(size, price) => {
                UsagePrice::Package { package_size: size.read("package_size")?, package_price: price.read("package_price")? }
            }
            Model::Percentage(rate, amount) => {
                UsagePrice::Percentage { rate: rate.read("rate")?, fixed_amount: amount.read("fixed_amount")? }
            }
        };
        Ok(PriceModel::Metered(metered))
    }

    fn charge(&self, kind: Kind, id: &LineItemId) -> Result<(LineItemPrice, Option<UsageProduct>), Refusal> {
        let model = self.model()?;
        if kind == Kind::Fixed {
            let price = FixedPrice::of(model)
                .ok_or_else(|| Refusal::field(&["price"], "out_of_range", "must not be PERCENTAGE of a fixed line item"))?;
            return Ok((LineItemPrice::Fixed { price, recurrence: self.recurrence, goods: self.goods }, None));
        }
        let PriceModel::Metered(price) = model else {
            return Err(Refusal::field(&["price"], "out_of_range", "must not be FLAT of a usage line item"));
        };
        let usage_product_ref = match &self.usage_product {
            Some(given) => given.read("usage_product_ref")?,
            None => Given::from(id.as_str()).read("usage_product_ref")?,
        };
        let usage_product = UsageProduct {
            profile: UsageProductProfile {
                name: Given::from(usage_product_ref.as_str()).read("name")?,
                unit: None,
                unit_code: UnitCode::ONE,
                aggregation: self.aggregation,
                unique_by: read(&self.unique_by, "unique_by")?,
            },
            usage_product_ref: usage_product_ref.clone(),
            created_at: Timestamp::MIN,
            updated_at: Timestamp::MIN,
        };
        let charge = UsageCharge {
            usage_product_ref,
            selector: match &self.events {
                CountedEvents::Every => Selector::Every,
                CountedEvents::Where(condition) => Selector::Where(Where::new(condition.clone())?),
                CountedEvents::Rest => Selector::Rest,
            },
            aggregation: self.line_aggregation,
            price,
            included_quantity: read(&self.included, "included_quantity")?.unwrap_or(Quantity::ZERO),
            prepaid_quantity: read(&self.prepaid, "prepaid_quantity")?,
            minimum_amount: read(&self.minimum, "minimum_amount")?,
            maximum_amount: read(&self.maximum, "maximum_amount")?,
        };
        Ok((LineItemPrice::Usage(charge), Some(usage_product)))
    }
}

impl From<&str> for Prices {
    /// Returns an amount for each whole period.
    fn from(amount: &str) -> Self {
        flat(amount)
    }
}

impl From<Price> for Prices {
    /// Returns an amount for each whole period.
    fn from(amount: Price) -> Self {
        flat(amount)
    }
}

/// Copies a condition.
pub(super) fn owned_condition(condition: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let owned = |(key, values): &(&str, &[&str])| ((*key).to_owned(), values.iter().map(|value| (*value).to_owned()).collect());
    condition.iter().map(owned).collect()
}

fn read<T: super::value::SimulatedValue>(given: &Option<Given<T>>, field: &str) -> Result<Option<T>, Refusal> {
    given.as_ref().map(|given| given.read(field)).transpose()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Fixed,
    Usage,
}

/// A price list: line items in one currency, by default EUR.
#[derive(Clone, Debug)]
pub struct PriceList {
    reference: Given<PricingRef>,
    currency: Given<Currency>,
    minimum_fee: Option<Given<Price>>,
    items: Vec<(Given<LineItemId>, Kind, Prices)>,
    typed: Option<(Pricing, Vec<UsageProduct>)>,
}

/// Returns an empty price list with a reference.
pub fn pricing(reference: impl Into<Given<PricingRef>>) -> PriceList {
    PriceList { reference: reference.into(), currency: "EUR".into(), minimum_fee: None, items: Vec::new(), typed: None }
}

impl PriceList {
    /// Returns a price list from typed values: a pricing and the usage products of its line items.
    pub fn of(listed: Pricing, usage_products: Vec<UsageProduct>) -> Self {
        Self { typed: Some((listed.clone(), usage_products)), ..pricing(listed.pricing_ref) }
    }

    /// Adds a line item that costs an amount in each period, independent of usage.
    #[must_use]
    pub fn fixed(mut self, id: impl Into<Given<LineItemId>>, price: impl Into<Prices>) -> Self {
        self.items.push((id.into(), Kind::Fixed, price.into()));
        self
    }

    /// Adds a line item that prices usage. The usage product has the line item's name, unless the price names another.
    #[must_use]
    pub fn usage(mut self, id: impl Into<Given<LineItemId>>, price: Prices) -> Self {
        self.items.push((id.into(), Kind::Usage, price));
        self
    }

    /// Sets the minimum fee of a period, for usage and fixed line items together.
    #[must_use]
    pub fn minimum_fee(mut self, amount: impl Into<Given<Price>>) -> Self {
        self.minimum_fee = Some(amount.into());
        self
    }

    /// Sets the currency of every document with this price list.
    #[must_use]
    pub fn currency(mut self, code: impl Into<Given<Currency>>) -> Self {
        self.currency = code.into();
        self
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.items.is_empty() && self.minimum_fee.is_none() && self.typed.is_none()
    }

    pub(super) fn rename(&mut self, reference: Given<PricingRef>) {
        self.reference = reference;
    }

    pub(super) fn reference(&self) -> Result<PricingRef, Refusal> {
        self.reference.read("product_pricing_ref")
    }

    /// Returns the pricing and the usage products of its line items.
    pub(super) fn read(&self) -> Result<(Pricing, Vec<UsageProduct>), Refusal> {
        if let Some((pricing, usage_products)) = &self.typed {
            pricing.content.check(usage_products)?;
            return Ok((pricing.clone(), usage_products.clone()));
        }
        let (mut line_items, mut usage_products) = (Vec::new(), Vec::new());
        for (id, kind, prices) in &self.items {
            let id = id.read("line_item_id")?;
            let (charge, usage_product) = prices.charge(*kind, &id)?;
            usage_product.into_iter().for_each(|product| add_usage_product(&mut usage_products, product));
            line_items.push(LineItem { name: Given::<OneLine>::from(id.as_str()).read("name")?, id, charge });
        }
        let pricing_ref = self.reference()?;
        let content = PricingContent {
            name: Given::<OneLine>::from(pricing_ref.as_str()).read("name")?,
            currency: self.currency.read("currency")?,
            minimum_fee: read(&self.minimum_fee, "minimum_fee")?,
            line_items,
        };
        content.check(&usage_products)?;
        Ok((Pricing { pricing_ref, content, created_at: Timestamp::MIN, updated_at: Timestamp::MIN }, usage_products))
    }
}

/// Adds a usage product. A known one keeps its fields, but a label to count is added, which any line item can name.
pub(super) fn add_usage_product(known: &mut Vec<UsageProduct>, added: UsageProduct) {
    match known.iter_mut().find(|product| product.usage_product_ref == added.usage_product_ref) {
        Some(product) => product.profile.unique_by = added.profile.unique_by.or(product.profile.unique_by.take()),
        None => known.push(added),
    }
}
