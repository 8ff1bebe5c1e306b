//! The calculations of document lines and the amounts applied at the issue, as formats 3 and 4 have them.

use billing_domain::decimal::WideDecimal;
use billing_domain::document::calculation::{
    CalculatedTier, ExcludedAmount, LineCalculation, MinimumFeeCalculation, PackageCalculation, PercentageCalculation,
    PreviouslyBilled, Proration, QuantityShare, UnissuedAmount,
};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::{AppliedAtIssue, AtIssue};
use billing_domain::money::{Money, Percentage, Price, SignedPrice};
use billing_domain::quantity::Quantity;
use billing_domain::text::OneLine;
use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::{list_of, option_of};
use crate::text_value;

#[derive(Serialize, Deserialize)]
#[serde(remote = "LineCalculation")]
pub(super) struct CalculationMirror {
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    usage_quantity: Option<Decimal>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    included_quantity: Option<Decimal>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    prepaid_quantity: Option<Decimal>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    billable_quantity: Option<Decimal>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    unit_price: Option<SignedPrice>,
    #[serde(with = "tiers", default, skip_serializing_if = "Vec::is_empty")]
    tiers: Vec<CalculatedTier>,
    #[serde(with = "packages", default, skip_serializing_if = "Option::is_none")]
    packages: Option<PackageCalculation>,
    #[serde(with = "percentage", default, skip_serializing_if = "Option::is_none")]
    percentage: Option<PercentageCalculation>,
    #[serde(with = "shares", default, skip_serializing_if = "Vec::is_empty")]
    quantities: Vec<QuantityShare>,
    #[serde(with = "proration", default, skip_serializing_if = "Option::is_none")]
    proration: Option<Proration>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    minimum: Option<Decimal>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    maximum: Option<Decimal>,
    #[serde(with = "minimum_fee", default, skip_serializing_if = "Option::is_none")]
    minimum_fee: Option<MinimumFeeCalculation>,
    #[serde(with = "previously", default, skip_serializing_if = "Option::is_none")]
    previously: Option<PreviouslyBilled>,
    #[serde(with = "unissued", default, skip_serializing_if = "Option::is_none")]
    unissued: Option<UnissuedAmount>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "CalculatedTier")]
struct TierMirror {
    #[serde(with = "text_value")]
    from: Decimal,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    up_to: Option<Decimal>,
    #[serde(with = "text_value")]
    quantity: WideDecimal,
    #[serde(with = "text_value")]
    unit_price: Price,
    #[serde(with = "text_value")]
    flat_amount: Price,
    #[serde(with = "text_value")]
    amount: WideDecimal,
}
list_of!(tiers: CalculatedTier = "TierMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "PackageCalculation")]
struct PackagesMirror {
    #[serde(with = "text_value")]
    count: Decimal,
    #[serde(with = "text_value")]
    size: Quantity,
    #[serde(with = "text_value")]
    price: Price,
}
option_of!(packages: PackageCalculation = "PackagesMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "PercentageCalculation")]
struct PercentageMirror {
    #[serde(with = "text_value")]
    rate: Percentage,
    #[serde(with = "text_value")]
    base: Decimal,
    #[serde(with = "text_value")]
    fixed_amount: Price,
    count: u64,
}
option_of!(percentage: PercentageCalculation = "PercentageMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "QuantityShare")]
struct ShareMirror {
    #[serde(with = "text_value")]
    from: NaiveDate,
    #[serde(with = "text_value")]
    to: NaiveDate,
    #[serde(with = "text_value")]
    quantity: Quantity,
    days: u32,
    of_days: u32,
    #[serde(with = "tiers", default, skip_serializing_if = "Vec::is_empty")]
    tiers: Vec<CalculatedTier>,
    #[serde(with = "packages", default, skip_serializing_if = "Option::is_none")]
    packages: Option<PackageCalculation>,
    #[serde(with = "text_value")]
    amount: Money,
}
list_of!(shares: QuantityShare = "ShareMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "Proration")]
struct ProrationMirror {
    days: u32,
    of_days: u32,
}
option_of!(proration: Proration = "ProrationMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "MinimumFeeCalculation")]
struct MinimumFeeMirror {
    #[serde(with = "text_value")]
    fee: Price,
    #[serde(with = "text_value")]
    billed: Money,
    /// Present since format 4.
    #[serde(with = "excluded", default, skip_serializing_if = "Vec::is_empty")]
    excluded: Vec<ExcludedAmount>,
}
option_of!(minimum_fee: MinimumFeeCalculation = "MinimumFeeMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "ExcludedAmount")]
struct ExcludedMirror {
    #[serde(with = "text_value")]
    name: OneLine,
    #[serde(with = "text_value")]
    amount: Money,
}
list_of!(excluded: ExcludedAmount = "ExcludedMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "PreviouslyBilled")]
struct PreviouslyMirror {
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    quantity: Option<Decimal>,
    #[serde(with = "text_value")]
    amount: Money,
    #[serde(with = "text_value::list")]
    documents: Vec<DocumentNumber>,
}
option_of!(previously: PreviouslyBilled = "PreviouslyMirror");

/// Present since format 4. Older documents count these amounts as previously billed.
#[derive(Serialize, Deserialize)]
#[serde(remote = "UnissuedAmount")]
struct UnissuedMirror {
    #[serde(with = "text_value")]
    amount: Money,
    /// Only a draft that was voided has numbers.
    #[serde(with = "text_value::list", default, skip_serializing_if = "Vec::is_empty")]
    documents: Vec<DocumentNumber>,
}
option_of!(unissued: UnissuedAmount = "UnissuedMirror");

/// An optional calculation behind a pointer.
pub(super) mod boxed {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{CalculationMirror, LineCalculation};

    pub(in super::super) fn serialize<S: Serializer>(
        calculation: &Option<Box<LineCalculation>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Item<'a>(#[serde(with = "CalculationMirror")] &'a LineCalculation);
        calculation.as_deref().map(Item).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Box<LineCalculation>>, D::Error> {
        #[derive(Deserialize)]
        struct Item(#[serde(with = "CalculationMirror")] LineCalculation);
        Ok(Option::<Item>::deserialize(deserializer)?.map(|item| Box::new(item.0)))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "AppliedAtIssue")]
struct AppliedMirror {
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    document_number: Option<DocumentNumber>,
    #[serde(with = "text_value")]
    amount: Money,
}
list_of!(applied: AppliedAtIssue = "AppliedMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "AtIssue")]
pub(super) struct AtIssueMirror {
    #[serde(with = "applied")]
    applied: Vec<AppliedAtIssue>,
    #[serde(with = "text_value")]
    due: Money,
}
