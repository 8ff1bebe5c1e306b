//! Line items and prices.

use billing_domain::catalog::{
    Aggregation, FixedPrice, LineItem, LineItemPrice, Recurrence, Selector, Tier, Tiers, UsageCharge, UsagePrice,
};
use billing_domain::labels::Where;
use billing_domain::money::{Percentage, Price};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{LineItemId, UsageProductRef};
use billing_domain::text::OneLine;
use serde::{Deserialize, Serialize};

use super::{list_of, mirrored, option_of};
use crate::text_value;

/// A pricing's line items to be written.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct StoredLineItemsRef<'a>(#[serde(serialize_with = "line_items::serialize")] pub(crate) &'a [LineItem]);

/// A pricing's line items that were read.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct StoredLineItems(#[serde(deserialize_with = "line_items::deserialize")] pub(crate) Vec<LineItem>);
mirrored!(StoredLineItemsRef, StoredLineItems: Vec<LineItem>);

#[derive(Serialize, Deserialize)]
#[serde(remote = "LineItem")]
struct LineItemMirror {
    #[serde(with = "text_value")]
    id: LineItemId,
    #[serde(with = "text_value")]
    name: OneLine,
    #[serde(with = "LineItemPriceMirror")]
    charge: LineItemPrice,
}
list_of!(line_items: LineItem = "LineItemMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "LineItemPrice", rename_all = "SCREAMING_SNAKE_CASE")]
enum LineItemPriceMirror {
    Fixed {
        #[serde(flatten, with = "fixed_price")]
        price: FixedPrice,
        #[serde(with = "text_value")]
        recurrence: Recurrence,
        #[serde(default, skip_serializing_if = "is_service")]
        goods: bool,
    },
    Usage(#[serde(with = "UsageChargeMirror")] UsageCharge),
}

/// Returns whether a line item is a service, which is omitted.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
pub(super) const fn is_service(goods: &bool) -> bool {
    !*goods
}

/// A fixed price among its charge's keys: `amount` for a flat price, `price` for all others.
#[derive(Serialize, Deserialize)]
struct StoredFixedPrice {
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    amount: Option<Price>,
    #[serde(with = "metered_price", default, skip_serializing_if = "Option::is_none")]
    price: Option<UsagePrice>,
}
option_of!(metered_price: UsagePrice = "UsagePriceMirror");

/// A fixed price: flat, or with a price model that fixed line items support.
pub(super) mod fixed_price {
    use billing_domain::catalog::{FixedPrice, PriceModel};
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::StoredFixedPrice;

    pub(in super::super) fn serialize<S: Serializer>(price: &FixedPrice, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = match price {
            FixedPrice::Flat { amount } => StoredFixedPrice { amount: Some(*amount), price: None },
            FixedPrice::Metered(price) => StoredFixedPrice { amount: None, price: Some(price.clone()) },
        };
        stored.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FixedPrice, D::Error> {
        let model = match StoredFixedPrice::deserialize(deserializer)? {
            StoredFixedPrice { amount: Some(amount), price: None } => PriceModel::Flat { amount },
            StoredFixedPrice { amount: None, price: Some(price) } => PriceModel::Metered(price),
            _ => return Err(D::Error::custom("either an amount or a price")),
        };
        FixedPrice::of(model).ok_or_else(|| D::Error::custom("not a price of a fixed line item"))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "UsageCharge")]
pub(super) struct UsageChargeMirror {
    #[serde(with = "text_value")]
    usage_product_ref: UsageProductRef,
    #[serde(with = "selector", default, skip_serializing_if = "is_every")]
    selector: Selector,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    aggregation: Option<Aggregation>,
    #[serde(with = "UsagePriceMirror")]
    price: UsagePrice,
    #[serde(with = "text_value")]
    included_quantity: Quantity,
    #[serde(with = "text_value::option")]
    prepaid_quantity: Option<Quantity>,
    #[serde(with = "text_value::option")]
    minimum_amount: Option<Price>,
    #[serde(with = "text_value::option")]
    maximum_amount: Option<Price>,
}

/// Returns whether a line item counts every event, which is omitted.
fn is_every(selector: &Selector) -> bool {
    *selector == Selector::Every
}

/// A condition on labels: keys with their values.
pub(super) mod condition {
    use std::collections::BTreeMap;

    use billing_domain::labels::Where;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(condition: &Where, serializer: S) -> Result<S::Ok, S::Error> {
        condition.entries().collect::<BTreeMap<_, _>>().serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Where, D::Error> {
        let entries: BTreeMap<String, Vec<String>> = BTreeMap::deserialize(deserializer)?;
        Where::new(entries).map_err(|_| D::Error::custom("not a condition on labels"))
    }
}
option_of!(optional_condition: Where = "condition");

/// The events that a line item counts: `{"where": …}`, or `{"rest": true}`.
#[derive(Default, Serialize, Deserialize)]
struct StoredSelector {
    #[serde(rename = "where", with = "optional_condition", default, skip_serializing_if = "Option::is_none")]
    condition: Option<Where>,
    #[serde(default)]
    rest: bool,
}

mod selector {
    use billing_domain::catalog::Selector;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::StoredSelector;

    pub(super) fn serialize<S: Serializer>(selector: &Selector, serializer: S) -> Result<S::Ok, S::Error> {
        StoredSelector { condition: selector.condition().cloned(), rest: *selector == Selector::Rest }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Selector, D::Error> {
        match StoredSelector::deserialize(deserializer)? {
            StoredSelector { condition: Some(condition), rest: false } => Ok(Selector::Where(condition)),
            StoredSelector { condition: None, rest: true } => Ok(Selector::Rest),
            StoredSelector { condition: None, rest: false } => Ok(Selector::Every),
            StoredSelector { .. } => Err(D::Error::custom("either where or rest")),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "UsagePrice", rename_all = "SCREAMING_SNAKE_CASE")]
enum UsagePriceMirror {
    PerUnit {
        #[serde(with = "text_value")]
        unit_price: Price,
    },
    Graduated(#[serde(with = "tiers")] Tiers),
    Volume(#[serde(with = "tiers")] Tiers),
    Package {
        #[serde(with = "text_value")]
        package_size: Quantity,
        #[serde(with = "text_value")]
        package_price: Price,
    },
    Percentage {
        #[serde(with = "text_value")]
        rate: Percentage,
        #[serde(with = "text_value")]
        fixed_amount: Price,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Tier")]
pub(super) struct TierMirror {
    #[serde(with = "text_value::option")]
    up_to: Option<Price>,
    #[serde(with = "text_value")]
    unit_price: Price,
    #[serde(with = "text_value")]
    flat_amount: Price,
}
list_of!(tier_list: Tier = "TierMirror");

/// Tiers are parsed under their own rule: rising bounds, and an open last tier.
mod tiers {
    use billing_domain::catalog::Tiers;
    use serde::de::Error as _;
    use serde::{Deserializer, Serializer};

    use super::tier_list;

    pub(super) fn serialize<S: Serializer>(tiers: &Tiers, serializer: S) -> Result<S::Ok, S::Error> {
        tier_list::serialize(tiers.as_slice(), serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tiers, D::Error> {
        Tiers::new(tier_list::deserialize(deserializer)?).map_err(|_| D::Error::custom("the tiers don't rise to an open end"))
    }
}
