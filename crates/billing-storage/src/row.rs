//! Row parsing: an invalid value is [`StoreError::Corrupt`], with table, key and column.

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

/// A column's value, readable or not. The query succeeds either way, and the reader of the row reports the row.
#[derive(Clone, Debug, PartialEq, Eq, AsExpression, FromSqlRow)]
#[diesel(sql_type = Dec)]
pub(crate) struct Cell<T>(Result<T, String>);

impl Cell<Decimal> {
    /// Parses a decimal with exactly the digits of the text.
    pub(crate) fn exact(text: &str) -> Self {
        Self(Decimal::from_str_exact(text).map_err(|error| error.to_string()))
    }
}

/// Binds the value to another statement.
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

/// Reads a value in an array of [nested rows](crate::nested_rows) from its text.
impl<'de> Deserialize<'de> for Cell<Uuid> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Self(Uuid::try_parse(&text).map_err(|error| error.to_string())))
    }
}

/// Reads a decimal from its text.
impl<'de> Deserialize<'de> for Cell<Decimal> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Self::exact(&text))
    }
}

/// Reads microseconds since 1970.
impl<'de> Deserialize<'de> for Cell<Timestamp> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let micros = i64::deserialize(deserializer)?;
        Ok(Self(Timestamp::from_micros(micros).map_err(|error| error.to_string())))
    }
}

/// Reads days since 1970.
impl<'de> Deserialize<'de> for Cell<NaiveDate> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let days = i64::deserialize(deserializer)?;
        Ok(Self(date_from_days(days).map_err(|error| error.to_string())))
    }
}

/// The location of a row, for error messages.
pub(crate) struct Row<K> {
    table: &'static str,
    key: K,
}

impl<K: fmt::Display> Row<K> {
    pub(crate) const fn new(table: &'static str, key: K) -> Self {
        Self { table, key }
    }

    /// Returns the error for an invalid column.
    pub(crate) fn corrupt(&self, column: &str, why: impl fmt::Display) -> StoreError {
        StoreError::Corrupt(format!("{} {}, {column}: {why}", self.table, self.key))
    }

    /// Returns a value of one of our SQL types.
    pub(crate) fn cell<T>(&self, column: &str, cell: Cell<T>) -> StoreResult<T> {
        cell.0.map_err(|why| self.corrupt(column, why))
    }

    /// Returns an optional value, as [`cell`](Self::cell).
    pub(crate) fn optional<T>(&self, column: &str, cell: Option<Cell<T>>) -> StoreResult<Option<T>> {
        cell.map(|cell| self.cell(column, cell)).transpose()
    }

    /// Parses a text into its domain type, such as a name, a reference or an enum word.
    pub(crate) fn leaf<T: TextValue>(&self, column: &str, text: &str) -> StoreResult<T> {
        T::parse_text(text).ok_or_else(|| self.corrupt(column, format_args!("{text:?} is not {}", T::WHAT)))
    }

    /// Parses an optional text, as [`leaf`](Self::leaf).
    pub(crate) fn optional_leaf<T: TextValue>(&self, column: &str, text: Option<&str>) -> StoreResult<Option<T>> {
        text.map(|text| self.leaf(column, text)).transpose()
    }

    /// Returns the result of a conversion from the column's type.
    pub(crate) fn checked<T, E: fmt::Display>(&self, column: &str, value: Result<T, E>) -> StoreResult<T> {
        value.map_err(|why| self.corrupt(column, why))
    }

    /// Parses the [nested rows](crate::nested_rows) of this row.
    pub(crate) fn under<T: DeserializeOwned>(&self, what: &str, text: Option<&JsonText>) -> StoreResult<Vec<T>> {
        text.map_or_else(|| Ok(Vec::new()), |text| self.json(what, text))
    }

    /// Parses a JSON column.
    pub(crate) fn json<T: DeserializeOwned>(&self, column: &str, text: &JsonText) -> StoreResult<T> {
        self.checked(column, serde_json::from_str(&text.0))
    }
}

/// The columns of a row, which are the same on both databases.
pub(crate) type ColumnsOf<R> = <R as diesel::Selectable<diesel::sqlite::Sqlite>>::SelectExpression;

/// Returns the columns of a row.
pub(crate) fn columns_of<R: diesel::Selectable<diesel::sqlite::Sqlite>>() -> ColumnsOf<R> {
    R::construct_selection()
}

/// Serializes a value as JSON text.
pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> StoreResult<JsonText> {
    serde_json::to_string(value).map(JsonText).map_err(|error| StoreError::Corrupt(format!("not to be written as JSON: {error}")))
}

/// Shows a readable identifier, which is the key in error messages.
impl fmt::Display for Cell<Uuid> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(id) => id.fmt(f),
            Err(why) => write!(f, "({why})"),
        }
    }
}
