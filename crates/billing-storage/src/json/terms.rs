//! A product's terms, frozen in a contract version.

use std::sync::{Arc, LazyLock};

use billing_domain::calendar::Period;
use billing_domain::catalog::{Aggregation, FixedPrice, Recurrence, UsageCharge};
use billing_domain::codes::UnitCode;
use billing_domain::contract::schedule::{BillingCycle, BillingSchedule, CycleUnit};
use billing_domain::contract::terms::{
    FrozenPricing, MeteredCharge, PaymentTime, ProductTerms, Quantities, QuantityStep, SelectedCharge, SelectedLineItem,
};
use billing_domain::labels::{LabelKey, Where};
use billing_domain::money::{Currency, Percentage, Price};
use billing_domain::party::legal::BuyerReference;
use billing_domain::party::{NetTerms, PaymentDetails};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{EntityRef, LineItemId, PricingRef};
use billing_domain::tax::TaxBasis;
use billing_domain::text::{OneLine, Prose};
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use super::paper::{TaxBasisMirror, is_unstated};
use super::party::PaymentMirror;
use super::pricing::{UsageChargeMirror, condition, fixed_price, is_service};
use super::{column, list_of, option_of};
use crate::text_value;

#[derive(Serialize, Deserialize)]
#[serde(remote = "ProductTerms")]
struct TermsMirror {
    #[serde(with = "FrozenPricingMirror")]
    pricing: FrozenPricing,
    #[serde(with = "shared_line_items")]
    line_items: Arc<[SelectedLineItem]>,
    // Terms stored by earlier releases lack this field.
    #[serde(default)]
    all_line_items: bool,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    name: Option<OneLine>,
    #[serde(rename = "where", with = "optional_condition", default, skip_serializing_if = "Option::is_none")]
    condition: Option<Where>,
    #[serde(with = "schedule")]
    schedule: BillingSchedule,
    #[serde(with = "text_value")]
    payment_time: PaymentTime,
    #[serde(with = "text_value::option")]
    stated_entity: Option<EntityRef>,
    #[serde(with = "text_value")]
    entity_ref: EntityRef,
    #[serde(with = "text_value::option")]
    tax: Option<Percentage>,
    #[serde(with = "text_value::option")]
    discount: Option<Percentage>,
    #[serde(with = "text_value::option")]
    net_terms: Option<NetTerms>,
    #[serde(with = "text_value::option")]
    note: Option<Prose>,
    #[serde(with = "PaymentMirror")]
    payment: PaymentDetails,
    // Omitted when empty, because terms stored by earlier releases lack this field.
    #[serde(with = "TaxBasisMirror", default, skip_serializing_if = "is_unstated")]
    treatment: TaxBasis,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    buyer_reference: Option<BuyerReference>,
}
option_of!(optional_condition: Where = "condition");
column!(
    /// A product's terms.
    StoredTermsRef, StoredTerms: ProductTerms = "TermsMirror"
);

#[derive(Serialize, Deserialize)]
#[serde(remote = "FrozenPricing")]
struct FrozenPricingMirror {
    #[serde(with = "text_value")]
    pricing_ref: PricingRef,
    #[serde(with = "text_value")]
    name: OneLine,
    #[serde(with = "text_value")]
    currency: Currency,
    #[serde(with = "text_value::option")]
    minimum_fee: Option<Price>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SelectedLineItem")]
struct SelectedLineItemMirror {
    #[serde(with = "text_value")]
    id: LineItemId,
    #[serde(with = "text_value")]
    name: OneLine,
    #[serde(with = "SelectedChargeMirror")]
    charge: SelectedCharge,
}
list_of!(selected: SelectedLineItem = "SelectedLineItemMirror");

/// Line items are read once for each text. Most contracts of a pricing have the same ones, so they share them in memory.
mod shared_line_items {
    use quick_cache::Weighter;
    use quick_cache::sync::Cache;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};
    use serde_json::value::RawValue;

    use super::{Arc, LazyLock, SelectedLineItem, selected};

    /// The approximate maximum size in bytes.
    const MAX_BYTES: u64 = 16 * 1024 * 1024;
    /// The approximate memory of a byte of text, and of the line items that are read from it.
    const FOR_A_BYTE: u64 = 4;
    /// The number of typical lists that fit.
    const LISTS: usize = 10_000;

    static KNOWN: LazyLock<Cache<Box<str>, Arc<[SelectedLineItem]>, ByText>> =
        LazyLock::new(|| Cache::with_weighter(LISTS, MAX_BYTES, ByText));

    #[derive(Clone)]
    struct ByText;

    impl Weighter<Box<str>, Arc<[SelectedLineItem]>> for ByText {
        fn weight(&self, text: &Box<str>, _: &Arc<[SelectedLineItem]>) -> u64 {
            u64::try_from(text.len()).unwrap_or(MAX_BYTES).saturating_mul(FOR_A_BYTE)
        }
    }

    pub(super) fn serialize<S: Serializer>(line_items: &Arc<[SelectedLineItem]>, serializer: S) -> Result<S::Ok, S::Error> {
        selected::serialize(line_items, serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[SelectedLineItem]>, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?.get();
        if let Some(known) = KNOWN.get(text) {
            return Ok(known);
        }
        let line_items = selected::deserialize(&mut serde_json::Deserializer::from_str(text)).map_err(D::Error::custom)?;
        let line_items: Arc<[SelectedLineItem]> = line_items.into();
        KNOWN.insert(text.into(), Arc::clone(&line_items));
        Ok(line_items)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SelectedCharge", rename_all = "SCREAMING_SNAKE_CASE")]
enum SelectedChargeMirror {
    Fixed {
        #[serde(flatten, with = "fixed_price")]
        price: FixedPrice,
        #[serde(with = "text_value")]
        recurrence: Recurrence,
        #[serde(with = "quantities", default, skip_serializing_if = "is_one_throughout")]
        quantities: Quantities,
        #[serde(default, skip_serializing_if = "is_service")]
        goods: bool,
    },
    Usage(#[serde(with = "MeteredChargeMirror")] MeteredCharge),
}

fn is_one_throughout(quantities: &Quantities) -> bool {
    quantities.as_slice().is_empty()
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "QuantityStep")]
pub(super) struct QuantityStepMirror {
    #[serde(with = "text_value")]
    from: NaiveDate,
    #[serde(with = "text_value")]
    quantity: Quantity,
}
list_of!(quantity_steps: QuantityStep = "QuantityStepMirror");

/// Quantities are parsed under their own rule: rising dates.
mod quantities {
    use serde::de::Error as _;
    use serde::{Deserializer, Serializer};

    use super::{Quantities, quantity_steps};

    pub(super) fn serialize<S: Serializer>(quantities: &Quantities, serializer: S) -> Result<S::Ok, S::Error> {
        quantity_steps::serialize(quantities.as_slice(), serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Quantities, D::Error> {
        Quantities::new(quantity_steps::deserialize(deserializer)?)
            .map_err(|_| D::Error::custom("the quantities' dates don't rise"))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "MeteredCharge")]
struct MeteredChargeMirror {
    #[serde(with = "UsageChargeMirror")]
    charge: UsageCharge,
    #[serde(with = "text_value::option")]
    unit: Option<OneLine>,
    // Terms stored by earlier releases lack this field.
    #[serde(with = "text_value", default)]
    unit_code: UnitCode,
    #[serde(with = "text_value")]
    aggregation: Aggregation,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    unique_by: Option<LabelKey>,
}

#[derive(Serialize, Deserialize)]
struct StoredSchedule {
    #[serde(with = "text_value")]
    first_day: NaiveDate,
    #[serde(with = "text_value")]
    last_day: NaiveDate,
    #[serde(with = "text_value")]
    unit: CycleUnit,
    count: u16,
    #[serde(with = "text_value::option")]
    issue_day: Option<NaiveDate>,
    // Omitted when the other fields determine it, as in terms stored before the anchor could be fixed.
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    anchor: Option<NaiveDate>,
}

/// A schedule is rebuilt from its inputs, under its own rules.
mod schedule {
    use serde::de::Error as _;
    use serde::{Deserializer, Serializer};

    use super::{BillingCycle, BillingSchedule, Deserialize as _, Serialize as _, StoredSchedule};

    pub(super) fn serialize<S: Serializer>(schedule: &BillingSchedule, serializer: S) -> Result<S::Ok, S::Error> {
        let cycle = schedule.cycle();
        let stored = StoredSchedule {
            first_day: schedule.range().start(),
            last_day: schedule.range().last_day(),
            unit: cycle.unit(),
            count: cycle.count(),
            issue_day: schedule.issue_day(),
            anchor: schedule.fixed_anchor(),
        };
        stored.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BillingSchedule, D::Error> {
        let stored = StoredSchedule::deserialize(deserializer)?;
        let cycle = BillingCycle::new(stored.unit, stored.count).ok_or_else(|| D::Error::custom("not a billing cycle"))?;
        let (first, last) = (stored.first_day, stored.last_day);
        stored
            .anchor
            .map_or_else(
                || BillingSchedule::new(first, last, cycle, stored.issue_day),
                |anchor| BillingSchedule::anchored((first, last), cycle, stored.issue_day, anchor),
            )
            .map_err(|_| D::Error::custom("not a billing schedule"))
    }
}

#[derive(Serialize, Deserialize)]
struct StoredPeriod {
    #[serde(with = "text_value")]
    first_day: NaiveDate,
    #[serde(with = "text_value")]
    last_day: NaiveDate,
}

/// A period by its first and last day.
pub(super) mod period {
    use serde::de::Error as _;
    use serde::{Deserializer, Serializer};

    use super::{Deserialize as _, Period, Serialize as _, StoredPeriod};

    pub(in super::super) fn serialize<S: Serializer>(period: &Period, serializer: S) -> Result<S::Ok, S::Error> {
        StoredPeriod { first_day: period.start(), last_day: period.last_day() }.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Period, D::Error> {
        let stored = StoredPeriod::deserialize(deserializer)?;
        Period::inclusive(stored.first_day, stored.last_day).ok_or_else(|| D::Error::custom("a period without a day"))
    }
}
