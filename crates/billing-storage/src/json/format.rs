//! The stored mapping of a usage format.

use billing_domain::format::{Expression, FieldPath, FormatMapping, MappedColumns, Naming, ReportMapping};
use serde::{Deserialize, Serialize};

use super::{column, list_of};
use crate::text_value;

#[derive(Serialize, Deserialize)]
#[serde(remote = "FormatMapping")]
struct MappingMirror {
    #[serde(with = "text_value")]
    timestamp: Expression,
    #[serde(with = "NamingMirror")]
    customer: Naming,
    #[serde(with = "NamingMirror")]
    usage_product: Naming,
    #[serde(with = "text_value")]
    quantity: Expression,
    #[serde(with = "ReportMappingMirror")]
    report_data: ReportMapping,
    #[serde(with = "text_value::option")]
    currency: Option<Expression>,
    #[serde(with = "text_value::option")]
    entity_ref: Option<Expression>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<Expression>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    skip_if: Option<Expression>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    for_each: Option<Expression>,
}
column!(
    /// The stored mapping of a usage format.
    StoredMappingRef, StoredMapping: FormatMapping = "MappingMirror"
);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Naming", rename_all = "SCREAMING_SNAKE_CASE")]
enum NamingMirror {
    Ref(#[serde(with = "text_value")] Expression),
    Name(#[serde(with = "text_value")] Expression),
    Either {
        #[serde(with = "text_value")]
        reference: Expression,
        #[serde(with = "text_value")]
        name: Expression,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ReportMapping", rename_all = "SCREAMING_SNAKE_CASE")]
enum ReportMappingMirror {
    None,
    Columns(#[serde(with = "columns")] MappedColumns),
    Rest,
    Field(#[serde(with = "field_path")] FieldPath),
    PlainRest(#[serde(with = "field_path")] FieldPath),
}

/// A field of the event is its name, a deeper one the list of the names.
mod field_path {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::FieldPath;

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Name(String),
        Names(Vec<String>),
    }

    pub(super) fn serialize<S: Serializer>(path: &FieldPath, serializer: S) -> Result<S::Ok, S::Error> {
        if path.parents.is_empty() { path.name.serialize(serializer) } else { serializer.collect_seq(path.names()) }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FieldPath, D::Error> {
        match Stored::deserialize(deserializer)? {
            Stored::Name(name) => Ok(FieldPath::of_event(name)),
            Stored::Names(names) => FieldPath::new(names).ok_or_else(|| D::Error::custom("a path without names")),
        }
    }
}

type Column = (String, Expression);

/// `["key", "expression"]`.
mod entry {
    use billing_domain::format::Expression;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::Column;

    pub(super) fn serialize<S: Serializer>((key, expression): &Column, serializer: S) -> Result<S::Ok, S::Error> {
        (key, expression.as_str()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Column, D::Error> {
        let (key, text) = <(String, String)>::deserialize(deserializer)?;
        let expression = Expression::parse(&text).map_err(D::Error::custom)?;
        Ok((key, expression))
    }
}
list_of!(entries: Column = "entry");

/// A list of pairs, because their order is significant.
mod columns {
    use serde::de::Error as _;
    use serde::{Deserializer, Serializer};

    use super::{MappedColumns, entries};

    pub(super) fn serialize<S: Serializer>(columns: &MappedColumns, serializer: S) -> Result<S::Ok, S::Error> {
        entries::serialize(columns.entries(), serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<MappedColumns, D::Error> {
        MappedColumns::new(entries::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
