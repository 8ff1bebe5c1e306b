//! The stored form of prepaid credit on a document.

use billing_domain::credit::unit::CreditUnit;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::prepaid::PrepaidAmount;
use billing_domain::money::{Money, Percentage};
use billing_domain::refs::CreditGrantRef;
use billing_domain::tax::{TaxBasis, TaxTreatment};
use billing_domain::text::OneLine;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::credit_unit::StoredUnit;
use super::paper::{TaxBasisMirror, is_unstated};
use crate::text_value;

/// An amount of a grant. Rate and treatment of the tax are separate keys, as in a tax.
#[derive(Serialize, Deserialize)]
struct StoredPrepaid {
    #[serde(with = "text_value")]
    grant_ref: CreditGrantRef,
    #[serde(with = "text_value")]
    name: OneLine,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    sold_by: Option<DocumentNumber>,
    #[serde(with = "text_value")]
    rate: Percentage,
    #[serde(with = "TaxBasisMirror", default, skip_serializing_if = "is_unstated")]
    treatment: TaxBasis,
    #[serde(with = "text_value")]
    amount: Money,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<StoredUnit>,
}

pub(super) fn serialize<S: Serializer>(prepaid: &PrepaidAmount, serializer: S) -> Result<S::Ok, S::Error> {
    // The pattern names every field, so that a new field fails to compile.
    let PrepaidAmount { grant_ref, name, sold_by, treatment: TaxTreatment { rate, basis: treatment }, amount, unit } =
        prepaid.clone();
    let unit = unit.map(StoredUnit::from);
    StoredPrepaid { grant_ref, name, sold_by, rate, treatment, amount, unit }.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PrepaidAmount, D::Error> {
    let StoredPrepaid { grant_ref, name, sold_by, rate, treatment, amount, unit } = StoredPrepaid::deserialize(deserializer)?;
    Ok(PrepaidAmount {
        grant_ref,
        name,
        sold_by,
        treatment: TaxTreatment { rate, basis: treatment },
        amount,
        unit: unit.map(CreditUnit::from),
    })
}
