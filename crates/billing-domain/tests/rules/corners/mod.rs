//! Tests of edge cases of the billing rules that produced wrong bills. Amounts are computed by hand.
#![allow(clippy::expect_used, clippy::panic, missing_docs)]

mod book;
mod charges;
mod conversions;
mod corrections;
mod dated_tax;
mod digits;
mod ends;
mod limits;
mod lines;
mod messages;
mod moved_plans;
mod once;
mod order;
mod runs;
mod tax;
mod upon_usage;
mod waiting;
mod zero_sums;
