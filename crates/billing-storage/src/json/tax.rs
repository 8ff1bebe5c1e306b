//! The stored form of a tax of a document.

use billing_domain::document::totals::Tax;
use billing_domain::money::{Money, Percentage};
use billing_domain::tax::{TaxBasis, TaxTreatment};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::paper::{TaxBasisMirror, is_unstated};
use crate::text_value;

/// A tax, with the parts of its treatment as separate keys.
#[derive(Serialize, Deserialize)]
struct StoredTax {
    #[serde(with = "text_value")]
    rate: Percentage,
    #[serde(with = "TaxBasisMirror", default, skip_serializing_if = "is_unstated")]
    treatment: TaxBasis,
    #[serde(with = "text_value")]
    base: Money,
    #[serde(with = "text_value")]
    amount: Money,
}

pub(super) fn serialize<S: Serializer>(tax: &Tax, serializer: S) -> Result<S::Ok, S::Error> {
    // The pattern names every field, so that a new field fails to compile.
    let Tax { treatment: TaxTreatment { rate, basis: treatment }, base, amount } = tax.clone();
    StoredTax { rate, treatment, base, amount }.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tax, D::Error> {
    let StoredTax { rate, treatment, base, amount } = StoredTax::deserialize(deserializer)?;
    Ok(Tax { treatment: TaxTreatment { rate, basis: treatment }, base, amount })
}
