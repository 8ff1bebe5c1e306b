//! The columns of editable resources, each declared once in `editable_tables!`. The SQL type determines how a column
//! stores a domain value. The columns determine the table, the inserted and updated values, and how a row is read.

use std::fmt;

use billing_domain::credit::unit::CreditUnits;
use billing_domain::metadata::Metadata;
use billing_domain::party::legal::{DocumentSettings, LegalProfile};
use billing_domain::ports::StoreResult;
use billing_domain::tax::DefaultTaxes;
use diesel::sql_types::{Bool, Integer, Nullable, Text};
use rust_decimal::Decimal;

use crate::json::Mirrored;
use crate::nested_rows::{NestedColumn, TextEncoding};
use crate::row::{Cell, Row};
use crate::sql_types::{Dec, Json, JsonText};
use crate::text_value::TextValue;

/// The storage of values in columns of one SQL type.
pub(crate) trait ColumnType {
    /// A value as bound to a statement or read from a row.
    type Stored;
    /// The text encoding of the value in [nested rows](crate::nested_rows).
    const FORM: TextEncoding;
}

/// `SQL type: stored type, text encoding`.
macro_rules! kinds {
    ($($sql:ty: $kept:ty, $form:ident;)+) => {$(
        impl ColumnType for $sql {
            type Stored = $kept;
            const FORM: TextEncoding = TextEncoding::$form;
        }
    )+};
}

kinds! {
    Text: String, PLAIN;
    Json: JsonText, TEXT;
    Dec: Cell<Decimal>, TEXT;
    Integer: i32, PLAIN;
    Bool: bool, FLAG;
}

impl<C: ColumnType> ColumnType for Nullable<C> {
    type Stored = Option<C::Stored>;
    const FORM: TextEncoding = C::FORM;
}

/// The conversion between a domain type and a column type.
pub(crate) trait ColumnValue<T>: ColumnType {
    /// Converts a value for storage.
    fn keep(value: &T) -> StoreResult<Self::Stored>;

    /// Parses a stored value.
    fn read<K: fmt::Display>(row: &Row<K>, column: &str, kept: &Self::Stored) -> StoreResult<T>;
}

impl<T, C: ColumnValue<T>> ColumnValue<Option<T>> for Nullable<C> {
    fn keep(value: &Option<T>) -> StoreResult<Option<C::Stored>> {
        value.as_ref().map(C::keep).transpose()
    }

    fn read<K: fmt::Display>(row: &Row<K>, column: &str, kept: &Option<C::Stored>) -> StoreResult<Option<T>> {
        kept.as_ref().map(|kept| C::read(row, column, kept)).transpose()
    }
}

impl<T: TextValue> ColumnValue<T> for Text {
    fn keep(value: &T) -> StoreResult<String> {
        Ok(value.to_text())
    }

    fn read<K: fmt::Display>(row: &Row<K>, column: &str, kept: &String) -> StoreResult<T> {
        row.leaf(column, kept)
    }
}

impl<T: Mirrored> ColumnValue<T> for Json {
    fn keep(value: &T) -> StoreResult<JsonText> {
        value.to_json()
    }

    fn read<K: fmt::Display>(row: &Row<K>, column: &str, kept: &JsonText) -> StoreResult<T> {
        T::read(row, column, kept)
    }
}

/// Implements storage for sets of optional fields: an empty set is stored as NULL.
macro_rules! where_stated {
    ($($set:ty),+) => {$(
        impl ColumnValue<$set> for Nullable<Json> {
            fn keep(value: &$set) -> StoreResult<Option<JsonText>> {
                if *value == <$set>::default() { Ok(None) } else { Json::keep(value).map(Some) }
            }

            fn read<K: fmt::Display>(row: &Row<K>, column: &str, kept: &Option<JsonText>) -> StoreResult<$set> {
                Ok(<Self as ColumnValue<Option<$set>>>::read(row, column, kept)?.unwrap_or_default())
            }
        }
    )+};
}
where_stated!(LegalProfile, DocumentSettings, DefaultTaxes, Metadata, CreditUnits);

impl<T: TextValue> ColumnValue<T> for Dec {
    fn keep(value: &T) -> StoreResult<Cell<Decimal>> {
        Ok(Cell::exact(&value.to_text()))
    }

    fn read<K: fmt::Display>(row: &Row<K>, column: &str, kept: &Cell<Decimal>) -> StoreResult<T> {
        row.leaf(column, &row.cell(column, kept.clone())?.to_string())
    }
}

impl ColumnValue<u16> for Integer {
    fn keep(value: &u16) -> StoreResult<i32> {
        Ok((*value).into())
    }

    fn read<K: fmt::Display>(row: &Row<K>, column: &str, kept: &i32) -> StoreResult<u16> {
        row.checked(column, u16::try_from(*kept))
    }
}

impl ColumnValue<bool> for Bool {
    fn keep(value: &bool) -> StoreResult<bool> {
        Ok(*value)
    }

    fn read<K: fmt::Display>(_: &Row<K>, _: &str, kept: &bool) -> StoreResult<bool> {
        Ok(*kept)
    }
}

/// The columns of a profile.
pub(crate) trait Columns: Sized {
    /// The editable values.
    type Profile;
    /// The columns' text encodings in [nested rows](crate::nested_rows).
    const TOLD: &'static [NestedColumn];

    /// Converts a profile for storage.
    fn of(profile: &Self::Profile) -> StoreResult<Self>;

    /// Parses a stored profile.
    fn read<K: fmt::Display>(&self, row: &Row<K>) -> StoreResult<Self::Profile>;
}

/// Declares the tables of editable resources, and for each table a struct of the editable columns. The syntax is
/// `table (key) { columns of the key } Columns of Profile { column -> type }`. The columns have the names of the
/// profile's fields.
macro_rules! editable_tables {
    ($(
        $(#[doc = $doc:literal])+
        $table:ident ($($key:ident),+) { $($key_column:ident -> $key_type:ty),+ }
            $columns:ident of $profile:ident { $($column:ident -> $type:ty),+ $(,)? }
    )+) => {$(
        diesel::table! {
            use diesel::sql_types::*;
            use $crate::sql_types::{Dec, Id, Json, Ts};

            $table ($($key),+) {
                $($key_column -> $key_type,)+
                $($column -> $type,)+
                created_at -> Ts,
                updated_at -> Ts,
            }
        }

        $(#[doc = $doc])+
        #[derive(diesel::Queryable, diesel::Selectable, diesel::Insertable, diesel::AsChangeset, serde::Deserialize)]
        #[diesel(table_name = $table, treat_none_as_null = true, treat_none_as_default_value = false)]
        pub(crate) struct $columns {
            $(pub(crate) $column: <$type as ColumnType>::Stored),+
        }

        impl Columns for $columns {
            type Profile = $profile;
            const TOLD: &'static [NestedColumn] =
                &[$(NestedColumn::One(concat!(stringify!($table), ".", stringify!($column)), <$type as ColumnType>::FORM)),+];

            fn of(profile: &$profile) -> StoreResult<Self> {
                Ok(Self { $($column: <$type as ColumnValue<_>>::keep(&profile.$column)?),+ })
            }

            fn read<K: std::fmt::Display>(&self, row: &Row<K>) -> StoreResult<$profile> {
                Ok($profile { $($column: <$type as ColumnValue<_>>::read(row, stringify!($column), &self.$column)?),+ })
            }
        }
    )+};
}
pub(crate) use editable_tables;
