//! The contents of JSON columns: private mirrors of domain values, so that changing the domain never changes stored
//! data by accident. Exact numbers are texts. Mirrors are serde remote definitions: a domain field without a mirror
//! does not compile.

use std::fmt;

use billing_domain::ports::StoreResult;

use crate::row::Row;
use crate::sql_types::JsonText;

mod answer;
mod calculation;
mod credit_unit;
mod format;
mod issued;
mod metadata;
mod paper;
mod party;
mod prepaid;
mod pricing;
mod tax;
mod terms;
mod usage;

pub(crate) use answer::{answer_of_place, form_of};
pub(crate) use format::{StoredMapping, StoredMappingRef};
pub(crate) use issued::{Frozen, FrozenRef, StoredDraft, StoredDraftRef};
pub(crate) use paper::{StoredConvertedTax, StoredConvertedTaxRef, StoredTaxBasis, StoredTaxBasisRef};
pub(crate) use party::{StoredPayment, StoredPaymentRef};
pub(crate) use terms::{StoredTerms, StoredTermsRef};
pub(crate) use usage::{StoredReport, StoredReportRef, StoredValidations, StoredValidationsRef};

/// A domain value that is stored in a JSON column.
pub(crate) trait Mirrored: Sized {
    /// Serializes the value for storage.
    fn to_json(&self) -> StoreResult<JsonText>;

    /// Parses a stored value.
    fn read<K: fmt::Display>(row: &Row<K>, column: &str, text: &JsonText) -> StoreResult<Self>;
}

/// Declares a mirrored value as a column: one type for writing, one for reading.
macro_rules! column {
    ($(#[$meta:meta])* $write:ident, $read:ident: $type:ty = $mirror:tt) => {
        $(#[$meta])*
        #[derive(serde::Serialize)]
        #[serde(transparent)]
        pub(crate) struct $write<'a>(#[serde(with = $mirror)] pub(crate) &'a $type);

        $(#[$meta])*
        #[derive(serde::Deserialize)]
        #[serde(transparent)]
        pub(crate) struct $read(#[serde(with = $mirror)] pub(crate) $type);

        $crate::json::mirrored!($write, $read: $type);
    };
}
use column;

macro_rules! mirrored {
    ($write:ident, $read:ident: $type:ty) => {
        impl $crate::json::Mirrored for $type {
            fn to_json(&self) -> billing_domain::ports::StoreResult<$crate::sql_types::JsonText> {
                $crate::row::to_json(&$write(self))
            }

            fn read<K: std::fmt::Display>(
                row: &$crate::row::Row<K>,
                column: &str,
                text: &$crate::sql_types::JsonText,
            ) -> billing_domain::ports::StoreResult<Self> {
                row.json(column, text).map(|read: $read| read.0)
            }
        }
    };
}
use mirrored;

/// Declares a module that reads and writes a `Vec` of a mirrored type.
macro_rules! list_of {
    ($module:ident: $type:ty = $mirror:tt) => {
        mod $module {
            #[allow(unused_imports, reason = "some mirrors are modules, some types")]
            use super::*;
            use serde::{Deserialize, Deserializer, Serialize, Serializer};

            pub(super) fn serialize<S: Serializer>(values: &[$type], serializer: S) -> Result<S::Ok, S::Error> {
                #[derive(Serialize)]
                struct Item<'a>(#[serde(with = $mirror)] &'a $type);
                serializer.collect_seq(values.iter().map(Item))
            }

            pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<$type>, D::Error> {
                #[derive(Deserialize)]
                struct Item(#[serde(with = $mirror)] $type);
                Ok(Vec::<Item>::deserialize(deserializer)?.into_iter().map(|item| item.0).collect())
            }
        }
    };
}
use list_of;

/// Declares a module that reads and writes an `Option` of a mirrored type.
macro_rules! option_of {
    ($module:ident: $type:ty = $mirror:tt) => {
        mod $module {
            #[allow(unused_imports, reason = "some mirrors are modules, some types")]
            use super::*;
            use serde::{Deserialize, Deserializer, Serialize, Serializer};

            pub(super) fn serialize<S: Serializer>(value: &Option<$type>, serializer: S) -> Result<S::Ok, S::Error> {
                #[derive(Serialize)]
                struct Item<'a>(#[serde(with = $mirror)] &'a $type);
                value.as_ref().map(Item).serialize(serializer)
            }

            pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<$type>, D::Error> {
                #[derive(Deserialize)]
                struct Item(#[serde(with = $mirror)] $type);
                Ok(Option::<Item>::deserialize(deserializer)?.map(|item| item.0))
            }
        }
    };
}
use option_of;

/// Returns whether a field is omitted.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
