//! The columns of what can be edited, each said once ([`edited!`](crate::columns::edited)): from its SQL type follows how it
//! keeps a value of the domain, and from the columns the table, what a statement inserts and changes, and how a row is read.

use std::fmt;

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

/// How a column of an SQL type keeps values.
pub(crate) trait ColumnType {
    /// A value on its way into a statement, or out of a row.
    type Stored;
    /// How it is told [under](crate::under) a row.
    const FORM: TextEncoding;
}

/// `SQL type: what is kept, how it is told`.
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

/// How a column keeps values of this type.
pub(crate) trait ColumnValue<T>: ColumnType {
    /// What is kept of one.
    fn keep(value: &T) -> StoreResult<Self::Stored>;

    /// Reads what was kept.
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

/// Sets of fields that may all be left out: none is kept where nothing is said.
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
where_stated!(LegalProfile, DocumentSettings, DefaultTaxes);

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
    /// What can be edited.
    type Profile;
    /// How they are told [under](crate::under) a row.
    const TOLD: &'static [NestedColumn];

    /// What is kept of a profile.
    fn of(profile: &Self::Profile) -> StoreResult<Self>;

    /// Reads the profile that is kept.
    fn read<K: fmt::Display>(&self, row: &Row<K>) -> StoreResult<Self::Profile>;
}

/// Makes the tables of what can be edited, and of each a struct of the columns that hold what an edit may change:
/// `table (key) { columns of the key } Columns of Profile { column -> type }`. Its columns are called as the profile's fields.
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
