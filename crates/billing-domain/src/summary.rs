//! Usage summed up by intervals of time: what charts show. Not what is billed: that is [`rating`](crate::rating)'s.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::calendar::{Date, Period, TimeZone, Timestamp, day_after, plus_months};
use crate::decimal::AmountOutOfRange;
use crate::quantity::{Quantity, QuantitySum};
use crate::refs::{CustomerId, UsageProductRef};
use chrono::Datelike as _;

/// The most rows of a summary.
pub const MAX_SUMMARY_ROWS: usize = 10_000;
const HOUR_SECONDS: i64 = 3600;

/// How long the intervals are. They are those of a time zone's calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// From one full hour to the next.
    Hour,
    /// From midnight to midnight.
    Day,
    /// From the first of a month to the next.
    Month,
}

/// Which interval an instant is in, as cheaply as that is known: events are many, intervals few.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum IntervalBucket {
    /// The hour that begins at an instant.
    Hour(Timestamp),
    /// A day, or the month that begins on it.
    Days(Date),
}

impl Interval {
    /// The interval that an instant is in.
    fn slot(self, at: Timestamp, zone: TimeZone) -> IntervalBucket {
        match self {
            Self::Hour => IntervalBucket::Hour(zone.start_of_hour(at)),
            Self::Day => IntervalBucket::Days(zone.service_date(at)),
            Self::Month => {
                let date = zone.service_date(at);
                IntervalBucket::Days(date.with_day(1).unwrap_or(date))
            }
        }
    }

    /// The first instant of an interval, and the first after it.
    fn span(self, slot: IntervalBucket, zone: TimeZone) -> (Timestamp, Timestamp) {
        match (slot, self) {
            (IntervalBucket::Hour(start), _) => (start, start.plus_seconds(HOUR_SECONDS)),
            (IntervalBucket::Days(first), Self::Month) => (zone.start_of_day(first), zone.start_of_day(plus_months(first, 1))),
            (IntervalBucket::Days(day), Self::Hour | Self::Day) => (zone.start_of_day(day), zone.start_of_day(day_after(day))),
        }
    }
}

/// An interval, as far as it lies within some days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketSpan {
    /// The interval's first instant, also where that is before the days.
    pub starts: Timestamp,
    /// The first instant within the days.
    pub from: Timestamp,
    /// The first instant after it.
    pub to: Timestamp,
    /// The days it lies in: of an hour its day, of a month those of them that are meant.
    pub days: Period,
}

impl Interval {
    /// How many intervals some days have; with a change of clocks an hour more or less.
    pub fn count(self, days: Period) -> u32 {
        match self {
            Self::Hour => days.days().saturating_mul(24),
            Self::Day => days.days(),
            Self::Month => {
                let month = |day: Date| i64::from(day.year()) * 12 + i64::from(day.month0());
                u32::try_from(month(days.last_day()) - month(days.start()) + 1).unwrap_or(u32::MAX)
            }
        }
    }

    /// The intervals of some days of a time zone, in their order, without a gap.
    pub fn stretches(self, days: Period, zone: TimeZone) -> Vec<BucketSpan> {
        let (first, end) = (zone.start_of_day(days.start()), zone.start_of_day(days.end()));
        let mut stretches = Vec::new();
        let mut from = first;
        while from < end {
            let (starts, to) = self.span(self.slot(from, zone), zone);
            // Where clocks go back, an hour's beginning comes twice.
            let to = if to > from { to.min(end) } else { end };
            let (day, last) = (zone.service_date(from), zone.service_date(to.plus_seconds(-1)));
            let days = Period::inclusive(day, last.max(day)).unwrap_or(days);
            stretches.push(BucketSpan { starts, from, to, days });
            from = to;
        }
        stretches
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
pub struct MeteredEvent {
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

type Key = (IntervalBucket, Option<UsageProductRef>, Option<CustomerId>);

/// Sums up events one by one.
#[derive(Clone, Debug)]
pub struct Summary {
    interval: Interval,
    zone: TimeZone,
    grouping: Grouping,
    sums: BTreeMap<Key, (QuantitySum, u64)>,
}

impl Summary {
    /// Of no event.
    pub const fn new(interval: Interval, zone: TimeZone, grouping: Grouping) -> Self {
        Self { interval, zone, grouping, sums: BTreeMap::new() }
    }

    /// With one more event. The order in which events are added doesn't matter.
    ///
    /// # Errors
    /// [`SummaryError`].
    pub fn add(&mut self, event: MeteredEvent) -> Result<(), SummaryError> {
        let slot = self.interval.slot(event.occurred_at, self.zone);
        let usage_product_ref = self.grouping.by_usage_product.then_some(event.usage_product_ref);
        let key = (slot, usage_product_ref, self.grouping.by_customer.then_some(event.customer_id));
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
        let row = |((slot, usage_product_ref, customer_id), (quantity, events)): (Key, (QuantitySum, u64))| {
            let (from, to) = self.interval.span(slot, self.zone);
            SummaryRow { from, to, usage_product_ref, customer_id, quantity, events }
        };
        self.sums.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn used(customer: u128, product: &str, at: &str, quantity: &str) -> MeteredEvent {
        MeteredEvent {
            customer_id: CustomerId::from_uuid(Uuid::from_u128(customer)),
            usage_product_ref: UsageProductRef::parse(product).expect(product),
            occurred_at: Timestamp::parse(at).expect(at),
            quantity: Quantity::parse(quantity).expect(quantity),
        }
    }

    #[test]
    fn intervals_are_those_of_the_calendar_of_a_zone() {
        let rows = [
            (Interval::Hour, "UTC", "2026-01-31T23:59:59.999999Z", "2026-01-31T23:00:00Z", "2026-02-01T00:00:00Z"),
            (Interval::Hour, "UTC", "2026-02-01T00:30:00+05:30", "2026-01-31T19:00:00Z", "2026-01-31T20:00:00Z"),
            (Interval::Day, "UTC", "2026-02-01T00:30:00+05:30", "2026-01-31T00:00:00Z", "2026-02-01T00:00:00Z"),
            (Interval::Day, "UTC", "2026-03-29T00:00:00Z", "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"),
            (Interval::Month, "UTC", "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"),
            (Interval::Month, "UTC", "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            (Interval::Day, "UTC", "1969-12-31T23:59:59Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"),
            (Interval::Hour, "UTC", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0001-01-01T01:00:00Z"),
            (Interval::Hour, "Asia/Kolkata", "2026-02-01T00:00:00Z", "2026-01-31T23:30:00Z", "2026-02-01T00:30:00Z"),
            (Interval::Day, "Asia/Kolkata", "2026-01-31T18:30:00Z", "2026-01-31T18:30:00Z", "2026-02-01T18:30:00Z"),
            (Interval::Day, "Asia/Kolkata", "2026-01-31T18:29:59Z", "2026-01-30T18:30:00Z", "2026-01-31T18:30:00Z"),
            // Days of 23 and 25 hours.
            (Interval::Day, "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
            (Interval::Day, "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
            (Interval::Month, "Europe/Berlin", "2026-03-31T22:30:00Z", "2026-03-31T22:00:00Z", "2026-04-30T22:00:00Z"),
            (Interval::Month, "America/New_York", "2026-01-01T04:59:59Z", "2025-12-01T05:00:00Z", "2026-01-01T05:00:00Z"),
        ];
        for (interval, zone, at, from, to) in rows {
            let zone = TimeZone::parse(zone).expect(zone);
            let (start, end) = interval.span(interval.slot(Timestamp::parse(at).expect(at), zone), zone);
            assert_eq!((start.to_string().as_str(), end.to_string().as_str()), (from, to), "{interval:?} {zone:?} {at}");
        }
    }

    #[test]
    fn the_intervals_of_some_days_follow_each_other_without_a_gap() {
        let date = |text: &str| crate::calendar::parse_date(text).expect(text);
        for (interval, first, last, zone, count) in [
            (Interval::Hour, "2026-11-20", "2026-11-20", "UTC", 24),
            (Interval::Hour, "2026-11-18", "2026-11-20", "Asia/Kolkata", 72),
            (Interval::Hour, "2026-10-25", "2026-10-25", "Europe/Berlin", 25),
            (Interval::Hour, "2026-03-29", "2026-03-29", "Europe/Berlin", 23),
            (Interval::Day, "2026-11-17", "2026-11-20", "UTC", 4),
            (Interval::Day, "2026-10-20", "2026-10-30", "America/New_York", 11),
            (Interval::Month, "2026-01-15", "2026-12-10", "Europe/Berlin", 12),
            (Interval::Month, "2026-02-01", "2026-02-01", "UTC", 1),
        ] {
            let days = Period::inclusive(date(first), date(last)).expect("days");
            let zone = TimeZone::parse(zone).expect(zone);
            let stretches = interval.stretches(days, zone);
            assert_eq!(stretches.len(), count, "{interval:?} {first} {last} {zone:?}");
            assert_eq!(
                (stretches[0].from, stretches[count - 1].to),
                (zone.start_of_day(days.start()), zone.start_of_day(days.end()))
            );
            assert!(stretches.windows(2).all(|pair| pair[0].to == pair[1].from), "{interval:?} {first} {last} {zone:?}");
            // The summary names each by the same instant.
            for stretch in &stretches {
                assert_eq!(interval.span(interval.slot(stretch.from, zone), zone).0, stretch.starts);
            }
            if zone != TimeZone::parse("Europe/Berlin").expect("a zone") || interval == Interval::Month {
                assert_eq!(interval.count(days), u32::try_from(count).expect("few"));
            }
        }
        let cut =
            Interval::Month.stretches(Period::inclusive(date("2026-01-15"), date("2026-02-10")).expect("days"), TimeZone::UTC);
        assert_eq!((cut[0].starts.to_string().as_str(), cut[0].days.start()), ("2026-01-01T00:00:00Z", date("2026-01-15")));
        assert_eq!((cut[0].days.last_day(), cut[1].days.last_day()), (date("2026-01-31"), date("2026-02-10")));
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
            let mut summary = Summary::new(interval, TimeZone::UTC, Grouping { by_usage_product, by_customer });
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
        let mut summary = Summary::new(Interval::Hour, TimeZone::UTC, Grouping::default());
        let first = Timestamp::parse("2026-01-01T00:00:00Z").expect("an instant");
        let event = |hour: usize| {
            let hours = i64::try_from(hour).expect("a small number");
            MeteredEvent {
                occurred_at: first.plus_seconds(hours * HOUR_SECONDS),
                ..used(1, "calls", "2026-01-01T00:00:00Z", "1")
            }
        };
        for hour in 0..MAX_SUMMARY_ROWS {
            summary.add(event(hour)).expect("not too many");
        }
        assert_eq!(summary.add(event(0)), Ok(()));
        assert_eq!(summary.add(event(MAX_SUMMARY_ROWS)), Err(SummaryError::TooManyRows));
    }
}
