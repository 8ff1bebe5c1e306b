//! Reading a row is parsing: a value that can't be is [`StoreError::Corrupt`], with table, key and column.

use std::fmt;

use billing_domain::calendar::Timestamp;
use billing_domain::ports::{StoreError, StoreResult};
use chrono::NaiveDate;
use diesel::backend::Backend;
use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::serialize::{self, Output, ToSql};
use rust_decimal::Decimal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use uuid::Uuid;

use crate::sql_types::{Dec, JsonText, date_from_days};
use crate::text_value::TextValue;

/// A column's value, readable or not: the query succeeds, and the row's reader says which row it was.
#[derive(Clone, Debug, PartialEq, Eq, AsExpression, FromSqlRow)]
#[diesel(sql_type = Dec)]
pub(crate) struct Cell<T>(Result<T, String>);

impl Cell<Decimal> {
    /// A decimal with the digits of a text.
    pub(crate) fn exact(text: &str) -> Self {
        Self(Decimal::from_str_exact(text).map_err(|error| error.to_string()))
    }
}

/// On its way into a statement again.
impl<T, DB> ToSql<Dec, DB> for Cell<T>
where
    DB: Backend,
    T: ToSql<Dec, DB> + fmt::Debug,
{
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, DB>) -> serialize::Result {
        match &self.0 {
            Ok(value) => value.to_sql(out),
            Err(why) => Err(why.as_str().into()),
        }
    }
}

impl<T, ST, DB> FromSql<ST, DB> for Cell<T>
where
    DB: Backend,
    T: FromSql<ST, DB>,
{
    fn from_sql(bytes: DB::RawValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(T::from_sql(bytes).map_err(|error| error.to_string())))
    }
}

/// A value in an array of what stands [`under`](crate::under) a row: a text that its type reads.
impl<'de> Deserialize<'de> for Cell<Uuid> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Self(Uuid::try_parse(&text).map_err(|error| error.to_string())))
    }
}

/// As for an identifier.
impl<'de> Deserialize<'de> for Cell<Decimal> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Self::exact(&text))
    }
}

/// As for an identifier: microseconds since 1970.
impl<'de> Deserialize<'de> for Cell<Timestamp> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let micros = i64::deserialize(deserializer)?;
        Ok(Self(Timestamp::from_micros(micros).map_err(|error| error.to_string())))
    }
}

/// As for an identifier: days since 1970.
impl<'de> Deserialize<'de> for Cell<NaiveDate> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let days = i64::deserialize(deserializer)?;
        Ok(Self(date_from_days(days).map_err(|error| error.to_string())))
    }
}

/// Where a row is: for the message of what can't be read in it.
pub(crate) struct Row<K> {
    table: &'static str,
    key: K,
}

impl<K: fmt::Display> Row<K> {
    pub(crate) const fn new(table: &'static str, key: K) -> Self {
        Self { table, key }
    }

    /// Names what is wrong with a column.
    pub(crate) fn corrupt(&self, column: &str, why: impl fmt::Display) -> StoreError {
        StoreError::Corrupt(format!("{} {}, {column}: {why}", self.table, self.key))
    }

    /// A value of one of our SQL types.
    pub(crate) fn cell<T>(&self, column: &str, cell: Cell<T>) -> StoreResult<T> {
        cell.0.map_err(|why| self.corrupt(column, why))
    }

    /// As [`cell`](Self::cell), where there may be none.
    pub(crate) fn optional<T>(&self, column: &str, cell: Option<Cell<T>>) -> StoreResult<Option<T>> {
        cell.map(|cell| self.cell(column, cell)).transpose()
    }

    /// A text with a meaning: a name, a reference, a word.
    pub(crate) fn leaf<T: TextValue>(&self, column: &str, text: &str) -> StoreResult<T> {
        T::parse_text(text).ok_or_else(|| self.corrupt(column, format_args!("{text:?} is not {}", T::WHAT)))
    }

    /// As [`leaf`](Self::leaf), where there may be none.
    pub(crate) fn optional_leaf<T: TextValue>(&self, column: &str, text: Option<&str>) -> StoreResult<Option<T>> {
        text.map(|text| self.leaf(column, text)).transpose()
    }

    /// What a conversion from the column's own type gives.
    pub(crate) fn checked<T, E: fmt::Display>(&self, column: &str, value: Result<T, E>) -> StoreResult<T> {
        value.map_err(|why| self.corrupt(column, why))
    }

    /// The rows that stand [`under`](crate::under) it.
    pub(crate) fn under<T: DeserializeOwned>(&self, what: &str, text: Option<&JsonText>) -> StoreResult<Vec<T>> {
        text.map_or_else(|| Ok(Vec::new()), |text| self.json(what, text))
    }

    /// A JSON column.
    pub(crate) fn json<T: DeserializeOwned>(&self, column: &str, text: &JsonText) -> StoreResult<T> {
        self.checked(column, serde_json::from_str(&text.0))
    }
}

/// Writes a value of ours as JSON text.
pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> StoreResult<JsonText> {
    serde_json::to_string(value).map(JsonText).map_err(|error| StoreError::Corrupt(format!("not to be written as JSON: {error}")))
}

/// A readable cell of an identifier that was just compared with: the key of messages.
impl fmt::Display for Cell<Uuid> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(id) => id.fmt(f),
            Err(why) => write!(f, "({why})"),
        }
    }
}
