//! What JSON columns hold: private mirrors of domain values, so that a change of one is a decision about the
//! other. Exact numbers are texts. Mirrors are serde's remote definitions: a domain field without a mirror
//! doesn't compile.

mod answer;
mod format;
mod issued;
mod paper;
mod party;
mod pricing;
mod terms;
mod usage;

pub(crate) use answer::answer_of_place;
pub(crate) use format::{StoredMapping, StoredMappingRef};
pub(crate) use issued::{Frozen, FrozenRef, StoredDraft, StoredDraftRef};
pub(crate) use paper::{StoredLegal, StoredLegalRef, StoredPaperProfile, StoredPaperProfileRef};
pub(crate) use party::{StoredAddress, StoredAddressRef, StoredPayment, StoredPaymentRef};
pub(crate) use pricing::{StoredLineItems, StoredLineItemsRef};
pub(crate) use terms::{StoredTerms, StoredTermsRef};
pub(crate) use usage::{StoredReport, StoredReportRef, StoredValidations, StoredValidationsRef};

/// A mirrored value as a column of its own: one type that writes it, one that reads it.
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
    };
}
use column;

/// A module that reads and writes `Vec`s of a mirrored type.
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

/// A module that reads and writes `Option`s of a mirrored type.
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
