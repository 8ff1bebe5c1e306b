//! The units of credit of an entity, as an object by currency.

use billing_domain::credit::unit::{CreditUnit, CreditUnits};
use billing_domain::money::Price;
use billing_domain::text::OneLine;
use serde::{Deserialize, Serialize};

use super::column;
use crate::text_value;

column!(
    /// The units of credit of an entity.
    StoredCreditUnitsRef, StoredCreditUnits: CreditUnits = "by_currency"
);

/// The stored form of a unit of credit.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredUnit {
    #[serde(with = "text_value")]
    name: OneLine,
    #[serde(with = "text_value")]
    per_unit: Price,
}

impl From<CreditUnit> for StoredUnit {
    fn from(CreditUnit { name, per_unit }: CreditUnit) -> Self {
        Self { name, per_unit }
    }
}

impl From<StoredUnit> for CreditUnit {
    fn from(StoredUnit { name, per_unit }: StoredUnit) -> Self {
        Self { name, per_unit }
    }
}

mod by_currency {
    use std::collections::BTreeMap;

    use billing_domain::money::Currency;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{CreditUnit, CreditUnits, StoredUnit};

    pub(super) fn serialize<S: Serializer>(units: &CreditUnits, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(units.entries().map(|(currency, unit)| (currency.code(), StoredUnit::from(unit.clone()))))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CreditUnits, D::Error> {
        let stored = BTreeMap::<String, StoredUnit>::deserialize(deserializer)?;
        let unit = |(code, unit): (String, StoredUnit)| {
            Ok((Currency::from_code(&code).map_err(D::Error::custom)?, CreditUnit::from(unit)))
        };
        let units = stored.into_iter().map(unit).collect::<Result<Vec<_>, D::Error>>()?;
        CreditUnits::new(units).map_err(D::Error::custom)
    }
}
