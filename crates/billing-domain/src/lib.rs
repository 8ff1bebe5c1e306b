//! What a contract bills, as plain values: periods, rating, linking, documents. No database, no server, no clock.
//!
//! [`simulate`] is the front door: terms, events and a day → the documents. Behind it:
//!
//! | ask | module |
//! |---|---|
//! | what does usage cost? | [`rating`] |
//! | which days does a period have, which terms hold on a day? | [`contract`] |
//! | which document bills what, when is it issued, what does it say? | [`document`] |
//! | what happens to documents when usage, terms or time change? | [`ledger`] |
//! | where does an event land? | [`matching`] |
//! | who owes what, by which document? | [`receivables`], [`ledger::receivables`] |
//!
//! The `mocks` feature gives a `mockall` mock of each port that isn't made of others, for tests of one question to the outside.

/// `FromStr` of values that have a `parse`.
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
pub mod decimal;
pub mod document;
pub mod event_input;
pub mod format;
pub mod idempotency;
pub mod imports;
pub mod ledger;
pub mod matching;
pub mod money;
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
pub mod runs;
pub mod simulate;
pub mod summary;
pub mod tax;
pub mod text;
pub mod usage;
pub mod verification;
pub mod violation;

/// The example of the repository's first page is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FirstPage;

/// The examples of the page about this crate are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryPage;
