//! Usage summed up by intervals of time: what charts show. Not what is billed: that is [`rating`](crate::rating)'s.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::calendar::{TimeZone, Timestamp, plus_months};
use crate::decimal::AmountOutOfRange;
use crate::quantity::{Quantity, QuantitySum};
use crate::refs::{CustomerId, UsageProductRef};
use chrono::Datelike as _;

/// The most rows of a summary.
pub const MAX_SUMMARY_ROWS: usize = 10_000;
const HOUR_SECONDS: i64 = 3600;
const DAY_SECONDS: i64 = 24 * HOUR_SECONDS;
const SECOND_MICROS: i64 = 1_000_000;

/// How long the intervals are. They are those of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// From one full hour to the next.
    Hour,
    /// From midnight to midnight.
    Day,
    /// From the first of a month to the next.
    Month,
}

impl Interval {
    /// The first instant of the interval that an instant is in.
    fn start(self, at: Timestamp) -> Timestamp {
        let back_to = |seconds: i64| {
            let micros = at.as_micros().rem_euclid(seconds * SECOND_MICROS);
            // The first interval of all began before the first instant of all.
            Timestamp::from_micros(at.as_micros() - micros).unwrap_or(Timestamp::MIN)
        };
        match self {
            Self::Hour => back_to(HOUR_SECONDS),
            Self::Day => back_to(DAY_SECONDS),
            Self::Month => {
                let date = TimeZone::UTC.service_date(at);
                TimeZone::UTC.start_of_day(date.with_day(1).unwrap_or(date))
            }
        }
    }

    /// The first instant after the interval that starts at one.
    fn end(self, start: Timestamp) -> Timestamp {
        match self {
            Self::Hour => start.plus_seconds(HOUR_SECONDS),
            Self::Day => start.plus_seconds(DAY_SECONDS),
            Self::Month => TimeZone::UTC.start_of_day(plus_months(TimeZone::UTC.service_date(start), 1)),
        }
    }
}

/// What rows are told apart by, beside their interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    /// One row for each usage product.
    pub by_usage_product: bool,
    /// One row for each customer.
    pub by_customer: bool,
}

/// What counts of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metered {
    /// Who used.
    pub customer_id: CustomerId,
    /// What was used.
    pub usage_product_ref: UsageProductRef,
    /// When.
    pub occurred_at: Timestamp,
    /// How much.
    pub quantity: Quantity,
}

/// The usage of an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryRow {
    /// The interval's first instant.
    pub from: Timestamp,
    /// The first instant after it.
    pub to: Timestamp,
    /// What was used; `None` when usage products aren't told apart.
    pub usage_product_ref: Option<UsageProductRef>,
    /// Who used; `None` when customers aren't told apart.
    pub customer_id: Option<CustomerId>,
    /// The sum of the quantities, whatever the usage product's aggregation.
    pub quantity: QuantitySum,
    /// The number of events.
    pub events: u64,
}

/// Why usage can't be summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SummaryError {
    /// More than [`MAX_SUMMARY_ROWS`].
    #[error("the summary has more than {MAX_SUMMARY_ROWS} rows")]
    TooManyRows,
    /// A sum beyond its digits.
    #[error(transparent)]
    OutOfRange(#[from] AmountOutOfRange),
}

type Key = (Timestamp, Option<UsageProductRef>, Option<CustomerId>);

/// Sums up events one by one.
#[derive(Clone, Debug)]
pub struct Summary {
    interval: Interval,
    grouping: Grouping,
    sums: BTreeMap<Key, (QuantitySum, u64)>,
}

impl Summary {
    /// Of no event.
    pub const fn new(interval: Interval, grouping: Grouping) -> Self {
        Self { interval, grouping, sums: BTreeMap::new() }
    }

    /// With one more event. The order in which events are added doesn't matter.
    ///
    /// # Errors
    /// [`SummaryError`].
    pub fn add(&mut self, event: Metered) -> Result<(), SummaryError> {
        let start = self.interval.start(event.occurred_at);
        let usage_product_ref = self.grouping.by_usage_product.then_some(event.usage_product_ref);
        let key = (start, usage_product_ref, self.grouping.by_customer.then_some(event.customer_id));
        if let Some((sum, events)) = self.sums.get_mut(&key) {
            *sum = sum.plus(event.quantity)?;
            *events += 1;
            return Ok(());
        }
        if self.sums.len() == MAX_SUMMARY_ROWS {
            return Err(SummaryError::TooManyRows);
        }
        self.sums.insert(key, (QuantitySum::ZERO.plus(event.quantity)?, 1));
        Ok(())
    }

    /// One row for each interval and group that has events, by interval, then usage product.
    pub fn into_rows(self) -> Vec<SummaryRow> {
        let row = |((from, usage_product_ref, customer_id), (quantity, events)): (Key, (QuantitySum, u64))| SummaryRow {
            from,
            to: self.interval.end(from),
            usage_product_ref,
            customer_id,
            quantity,
            events,
        };
        self.sums.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn used(customer: u128, product: &str, at: &str, quantity: &str) -> Metered {
        Metered {
            customer_id: CustomerId::from_uuid(Uuid::from_u128(customer)),
            usage_product_ref: UsageProductRef::parse(product).expect(product),
            occurred_at: Timestamp::parse(at).expect(at),
            quantity: Quantity::parse(quantity).expect(quantity),
        }
    }

    #[test]
    fn intervals_are_those_of_utc() {
        let rows = [
            (Interval::Hour, "2026-01-31T23:59:59.999999Z", "2026-01-31T23:00:00Z", "2026-02-01T00:00:00Z"),
            (Interval::Hour, "2026-02-01T00:30:00+05:30", "2026-01-31T19:00:00Z", "2026-01-31T20:00:00Z"),
            (Interval::Day, "2026-02-01T00:30:00+05:30", "2026-01-31T00:00:00Z", "2026-02-01T00:00:00Z"),
            (Interval::Day, "2026-03-29T00:00:00Z", "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"),
            (Interval::Month, "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"),
            (Interval::Month, "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            (Interval::Day, "1969-12-31T23:59:59Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"),
            (Interval::Hour, "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0001-01-01T01:00:00Z"),
        ];
        for (interval, at, from, to) in rows {
            let start = interval.start(Timestamp::parse(at).expect(at));
            assert_eq!((start.to_string().as_str(), interval.end(start).to_string().as_str()), (from, to), "{interval:?} {at}");
        }
    }

    #[test]
    fn sums_are_exact_and_told_apart_as_asked() {
        let events = [
            used(1, "calls", "2026-01-01T10:00:00Z", "0.1"),
            used(1, "calls", "2026-01-01T10:59:59Z", "0.2"),
            used(2, "calls", "2026-01-01T10:30:00Z", "999999999999999.999999999"),
            used(1, "bytes", "2026-01-01T11:00:00Z", "7"),
        ];
        let summed = |interval, by_usage_product, by_customer| {
            let mut summary = Summary::new(interval, Grouping { by_usage_product, by_customer });
            for event in events.iter().rev() {
                summary.add(event.clone()).expect("in range");
            }
            let rows = summary.into_rows();
            rows.iter().map(|row| (row.quantity.as_decimal().to_string(), row.events)).collect::<Vec<_>>()
        };
        let row = |quantity: &str, events| (quantity.to_owned(), events);
        assert_eq!(summed(Interval::Month, false, false), [row("1000000000000007.299999999", 4)]);
        assert_eq!(summed(Interval::Hour, false, false), [row("1000000000000000.299999999", 3), row("7", 1)]);
        assert_eq!(summed(Interval::Day, true, false), [row("7", 1), row("1000000000000000.299999999", 3)]);
        let both = [row("7", 1), row("0.3", 2), row("999999999999999.999999999", 1)];
        assert_eq!(summed(Interval::Day, true, true), both);
        assert_eq!(summed(Interval::Day, false, true), [row("7.3", 3), row("999999999999999.999999999", 1)]);
    }

    #[test]
    fn a_summary_has_so_many_rows_and_no_more() {
        let mut summary = Summary::new(Interval::Hour, Grouping::default());
        let first = Timestamp::parse("2026-01-01T00:00:00Z").expect("an instant");
        let event = |hour: usize| {
            let hours = i64::try_from(hour).expect("a small number");
            Metered { occurred_at: first.plus_seconds(hours * HOUR_SECONDS), ..used(1, "calls", "2026-01-01T00:00:00Z", "1") }
        };
        for hour in 0..MAX_SUMMARY_ROWS {
            summary.add(event(hour)).expect("not too many");
        }
        assert_eq!(summary.add(event(0)), Ok(()));
        assert_eq!(summary.add(event(MAX_SUMMARY_ROWS)), Err(SummaryError::TooManyRows));
    }
}
