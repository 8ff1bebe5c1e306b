//! The billing domain: periods, rating, linking and documents as plain values, without a database, server or clock.
//!
//! [`simulate`] is the entry point. It takes terms, events and a day, and returns the documents. It uses these modules:
//!
//! | question | module |
//! |---|---|
//! | What does usage cost? | [`rating`] |
//! | Which days does a period have, and which terms are in force on a day? | [`contract`] |
//! | What does a document bill and contain, and when is it issued? | [`document`] |
//! | How do documents change when usage, terms or time change? | [`ledger`] |
//! | Which contract product and period does an event match? | [`matching`] |
//! | What does a document contain as an e-invoice? | [`einvoice`] |
//! | Who owes which amount, and by which document? | [`receivables`], [`ledger::receivables`] |
//!
//! The `mocks` feature provides `mockall` mocks of the store and of the ports that are not part of it.

/// Implements `FromStr` for types that have a `parse` function.
macro_rules! from_str {
    ($($value:ty: $error:ty),+ $(,)?) => {$(
        impl std::str::FromStr for $value {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::parse(text)
            }
        }
    )+};
}

pub mod access;
pub mod audit;
pub mod calendar;
pub mod catalog;
pub mod charge;
pub mod codes;
pub mod contract;
pub mod credit;
pub mod decimal;
pub mod document;
pub mod einvoice;
pub mod event_input;
pub mod format;
pub mod hold;
pub mod idempotency;
pub mod imports;
pub mod labels;
pub mod ledger;
pub mod limit;
pub mod matching;
pub mod metadata;
pub mod metric;
pub mod money;
pub mod notification;
pub mod page;
pub mod party;
pub mod patch;
pub mod ports;
pub mod quantity;
pub mod rating;
pub mod receivables;
pub mod refs;
pub mod refusal;
pub mod refused;
pub mod report;
pub mod report_data;
pub mod runs;
pub mod search_words;
pub mod simulate;
pub mod summary;
pub mod tax;
pub mod text;
pub mod units;
pub mod usage;
pub mod verification;
pub mod violation;
pub mod warning;
pub mod webhook;

/// The example in the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FirstPage;
