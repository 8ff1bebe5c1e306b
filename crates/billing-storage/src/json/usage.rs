//! The stored data of an event beside its quantity.

use billing_domain::money::Currency;
use billing_domain::refs::EntityRef;
use billing_domain::usage::{ReportData, ReportValue, Validations};
use serde::{Deserialize, Serialize};

use super::{column, list_of};
use crate::text_value;

column!(
    /// Report data as a list of pairs, because the order and the text of numbers are significant.
    StoredReportRef, StoredReport: ReportData = "report"
);

#[derive(Serialize, Deserialize)]
#[serde(remote = "ReportValue")]
enum ReportValueMirror {
    #[serde(rename = "null")]
    Null,
    #[serde(rename = "bool")]
    Bool(bool),
    #[serde(rename = "number")]
    Number(String),
    #[serde(rename = "text")]
    Text(String),
}

type Entry = (String, ReportValue);

/// `["key", value]`.
mod entry {
    use billing_domain::usage::ReportValue;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Entry, ReportValueMirror};

    #[derive(Serialize)]
    struct Pair<'a>(&'a str, #[serde(with = "ReportValueMirror")] &'a ReportValue);

    #[derive(Deserialize)]
    struct OwnedPair(String, #[serde(with = "ReportValueMirror")] ReportValue);

    pub(super) fn serialize<S: Serializer>(entry: &Entry, serializer: S) -> Result<S::Ok, S::Error> {
        Pair(&entry.0, &entry.1).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Entry, D::Error> {
        OwnedPair::deserialize(deserializer).map(|pair| (pair.0, pair.1))
    }
}
list_of!(entries: Entry = "entry");

mod report {
    use serde::{Deserializer, Serializer};

    use super::{ReportData, entries};

    pub(super) fn serialize<S: Serializer>(data: &ReportData, serializer: S) -> Result<S::Ok, S::Error> {
        entries::serialize(data.entries(), serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ReportData, D::Error> {
        entries::deserialize(deserializer).map(ReportData::new)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Validations")]
struct ValidationsMirror {
    #[serde(with = "text_value::option")]
    currency: Option<Currency>,
    #[serde(with = "text_value::option")]
    entity_ref: Option<EntityRef>,
}
column!(
    /// The validations sent with an event.
    StoredValidationsRef, StoredValidations: Validations = "ValidationsMirror"
);
