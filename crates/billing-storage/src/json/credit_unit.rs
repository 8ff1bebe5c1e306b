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

#[derive(Serialize, Deserialize)]
struct StoredUnit {
    #[serde(with = "text_value")]
    name: OneLine,
    #[serde(with = "text_value")]
    per_unit: Price,
}

mod by_currency {
    use std::collections::BTreeMap;

    use billing_domain::money::Currency;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{CreditUnit, CreditUnits, StoredUnit};

    pub(super) fn serialize<S: Serializer>(units: &CreditUnits, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(units.entries().map(|(currency, unit)| {
            let CreditUnit { name, per_unit } = unit.clone();
            (currency.code(), StoredUnit { name, per_unit })
        }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CreditUnits, D::Error> {
        let stored = BTreeMap::<String, StoredUnit>::deserialize(deserializer)?;
        let unit = |(code, StoredUnit { name, per_unit }): (String, StoredUnit)| {
            Ok((Currency::from_code(&code).map_err(D::Error::custom)?, CreditUnit { name, per_unit }))
        };
        let units = stored.into_iter().map(unit).collect::<Result<Vec<_>, D::Error>>()?;
        CreditUnits::new(units).map_err(D::Error::custom)
    }
}
