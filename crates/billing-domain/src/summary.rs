//! Usage by time interval, for charts: the events of a customer and usage product are aggregated as billing does it. Billing itself
//! uses [`rating`](crate::rating).

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::calendar::{Date, Period, TimeZone, Timestamp, day_after, plus_months};
use crate::catalog::Aggregation;
use crate::decimal::AmountOutOfRange;
use crate::labels::LabelDigest;
use crate::quantity::{Quantity, QuantitySum};
use crate::refs::{CustomerId, EventRef, UsageProductRef};
use crate::usage::{CountedEvent, UsageTotal};
use chrono::Datelike as _;

/// The maximum number of rows of a summary.
pub const MAX_SUMMARY_ROWS: usize = 10_000;
/// The maximum number of distinct texts of labels that a summary compares for one customer.
pub const MAX_SUMMARY_TEXTS: usize = 1_000_000;
const HOUR_SECONDS: i64 = 3600;

/// The length of the intervals of a summary, in the calendar of a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// From one full hour to the next.
    Hour,
    /// From midnight to midnight.
    Day,
    /// From the first day of a month to the first day of the next month.
    Month,
}

/// A cheap key of the interval that contains an instant. Summaries process many events but few intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum IntervalBucket {
    /// The hour that begins at an instant.
    Hour(Timestamp),
    /// A day, or the month that begins on it.
    Days(Date),
    /// The only interval, from an instant up to another one.
    Whole(Timestamp, Timestamp),
}

impl Interval {
    /// Returns the key of the interval that contains an instant.
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

    /// Returns the first instant of an interval and the first instant after it.
    fn span(self, slot: IntervalBucket, zone: TimeZone) -> (Timestamp, Timestamp) {
        match (slot, self) {
            (IntervalBucket::Whole(from, to), _) => (from, to),
            (IntervalBucket::Hour(start), _) => (start, start.plus_seconds(HOUR_SECONDS)),
            (IntervalBucket::Days(first), Self::Month) => (zone.start_of_day(first), zone.start_of_day(plus_months(first, 1))),
            (IntervalBucket::Days(day), Self::Hour | Self::Day) => (zone.start_of_day(day), zone.start_of_day(day_after(day))),
        }
    }
}

/// The part of an interval within a range of days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketSpan {
    /// The first instant of the interval, which may be before the range.
    pub starts: Timestamp,
    /// The first instant of the interval within the range.
    pub from: Timestamp,
    /// The first instant after the part.
    pub to: Timestamp,
    /// The days of the part: the day of an hour, or the days of a month within the range.
    pub days: Period,
}

impl Interval {
    /// Returns the number of intervals in a period. A clock change can add or remove an hour.
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

    /// Returns the intervals of a period in a time zone, in order and without gaps.
    pub fn stretches(self, days: Period, zone: TimeZone) -> Vec<BucketSpan> {
        let (first, end) = (zone.start_of_day(days.start()), zone.start_of_day(days.end()));
        let mut stretches = Vec::new();
        let mut from = first;
        while from < end {
            let (starts, to) = self.span(self.slot(from, zone), zone);
            // When clocks go back, the beginning of an hour occurs twice.
            let to = if to > from { to.min(end) } else { end };
            let (day, last) = (zone.service_date(from), zone.service_date(to.plus_seconds(-1)));
            let days = Period::inclusive(day, last.max(day)).unwrap_or(days);
            stretches.push(BucketSpan { starts, from, to, days });
            from = to;
        }
        stretches
    }
}

/// The grouping of rows within an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    /// Whether each usage product has a row.
    pub by_usage_product: bool,
    /// Whether each customer has a row.
    pub by_customer: bool,
}

/// The intervals of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryIntervals {
    /// All intervals of a calendar that have events.
    Calendar(Interval, TimeZone),
    /// One interval, from an instant up to another one.
    Whole(Timestamp, Timestamp),
}

/// The values of an event that a summary uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeteredEvent {
    /// The customer.
    pub customer_id: CustomerId,
    /// The usage product.
    pub usage_product_ref: UsageProductRef,
    /// The reference, which orders events with the same time by arrival.
    pub event_ref: EventRef,
    /// The time of the usage.
    pub occurred_at: Timestamp,
    /// The quantity.
    pub quantity: Quantity,
    /// The digest of the label whose distinct texts are counted (`UNIQUE`), if terms count them.
    pub unique_digest: Option<LabelDigest>,
}

/// The usage of an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryRow {
    /// The first instant of the interval.
    pub from: Timestamp,
    /// The first instant after the interval.
    pub to: Timestamp,
    /// The usage product, or `None` if rows aren't grouped by usage product.
    pub usage_product_ref: Option<UsageProductRef>,
    /// The customer, or `None` if rows aren't grouped by customer.
    pub customer_id: Option<CustomerId>,
    /// The quantity by the aggregation of each usage product and customer, summed over usage products and customers.
    pub quantity: QuantitySum,
    /// The number of events.
    pub events: u64,
}

/// An error of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SummaryError {
    /// The summary has more than [`MAX_SUMMARY_ROWS`] rows, or compares more than [`MAX_SUMMARY_TEXTS`] texts of a customer.
    #[error(
        "the summary has more than {MAX_SUMMARY_ROWS} rows, or more than {MAX_SUMMARY_TEXTS} distinct values of one customer"
    )]
    TooManyRows,
    /// A sum exceeds its digits.
    #[error(transparent)]
    OutOfRange(#[from] AmountOutOfRange),
}

type Key = (IntervalBucket, Option<UsageProductRef>, Option<CustomerId>);

/// The usage products whose aggregation is not [`Aggregation::Sum`].
pub type Aggregations = BTreeMap<UsageProductRef, Aggregation>;

/// The usage of one customer by interval and usage product.
#[derive(Clone, Debug)]
struct PendingCustomer {
    customer_id: CustomerId,
    totals: BTreeMap<(IntervalBucket, UsageProductRef), UsageTotal>,
    /// The texts of labels that `UNIQUE` has counted.
    texts: BTreeSet<(IntervalBucket, UsageProductRef, LabelDigest)>,
}

impl PendingCustomer {
    const fn of(customer_id: CustomerId) -> Self {
        Self { customer_id, totals: BTreeMap::new(), texts: BTreeSet::new() }
    }

    fn is_too_much(&self) -> bool {
        self.totals.len() > MAX_SUMMARY_ROWS || self.texts.len() > MAX_SUMMARY_TEXTS
    }
}

/// An accumulator that aggregates events one by one. Its memory use does not grow with the number of events or customers,
/// except by the distinct texts that `UNIQUE` counts for one customer.
#[derive(Clone, Debug)]
pub struct Summary<'a> {
    intervals: SummaryIntervals,
    grouping: Grouping,
    aggregations: &'a Aggregations,
    rows: BTreeMap<Key, (QuantitySum, u64)>,
    /// Of the customer whose events were added last: the usage whose aggregation needs all events of an interval.
    pending: Option<PendingCustomer>,
}

impl<'a> Summary<'a> {
    /// Creates a summary without events.
    pub const fn new(intervals: SummaryIntervals, grouping: Grouping, aggregations: &'a Aggregations) -> Self {
        Self { intervals, grouping, aggregations, rows: BTreeMap::new(), pending: None }
    }

    /// Adds an event. If the aggregation of a usage product is not [additive](Aggregation::is_additive), the events must be added customer by customer;
    /// otherwise, the order of additions doesn't matter.
    ///
    /// # Errors
    /// Returns a [`SummaryError`] if the summary gets too many rows or a sum exceeds its digits.
    pub fn add(&mut self, event: MeteredEvent) -> Result<(), SummaryError> {
        let MeteredEvent { customer_id, usage_product_ref, event_ref, occurred_at, quantity, unique_digest } = event;
        let bucket = match self.intervals {
            SummaryIntervals::Calendar(interval, zone) => interval.slot(occurred_at, zone),
            SummaryIntervals::Whole(from, to) => IntervalBucket::Whole(from, to),
        };
        match self.aggregations.get(&usage_product_ref).copied().unwrap_or_default() {
            Aggregation::Sum => {
                let quantity = QuantitySum::ZERO.plus(quantity)?;
                self.add_to_row(bucket, usage_product_ref, customer_id, quantity, 1)
            }
            Aggregation::Count => {
                let one = QuantitySum::ZERO.plus(Quantity::ONE)?;
                self.add_to_row(bucket, usage_product_ref, customer_id, one, 1)
            }
            Aggregation::Max | Aggregation::Latest | Aggregation::Unique => {
                if self.pending.as_ref().is_some_and(|pending| pending.customer_id != customer_id) {
                    self.add_pending()?;
                }
                let pending = self.pending.get_or_insert_with(|| PendingCustomer::of(customer_id));
                let service_date = TimeZone::UTC.service_date(occurred_at);
                let is_first = unique_digest.is_some_and(|digest| {
                    let of_interval = (bucket, usage_product_ref.clone(), digest);
                    pending.texts.insert(of_interval)
                });
                let counted = CountedEvent { event_ref, occurred_at, service_date, quantity, is_distinct: Some(is_first) };
                let total = pending.totals.entry((bucket, usage_product_ref)).or_insert(UsageTotal::ZERO);
                *total = total.plus(counted)?;
                if pending.is_too_much() { Err(SummaryError::TooManyRows) } else { Ok(()) }
            }
        }
    }

    /// Adds the quantities of the customer whose events are complete.
    fn add_pending(&mut self) -> Result<(), SummaryError> {
        let Some(PendingCustomer { customer_id, totals, .. }) = self.pending.take() else { return Ok(()) };
        for ((bucket, usage_product_ref), total) in totals {
            let aggregation = self.aggregations.get(&usage_product_ref).copied().unwrap_or_default();
            let quantity = QuantitySum::new(total.quantity(aggregation))?;
            self.add_to_row(bucket, usage_product_ref, customer_id, quantity, total.events)?;
        }
        Ok(())
    }

    fn add_to_row(
        &mut self,
        bucket: IntervalBucket,
        usage_product_ref: UsageProductRef,
        customer_id: CustomerId,
        quantity: QuantitySum,
        events: u64,
    ) -> Result<(), SummaryError> {
        let usage_product_ref = self.grouping.by_usage_product.then_some(usage_product_ref);
        let key = (bucket, usage_product_ref, self.grouping.by_customer.then_some(customer_id));
        if let Some((sum, count)) = self.rows.get_mut(&key) {
            *sum = sum.plus_sum(quantity)?;
            *count += events;
            return Ok(());
        }
        if self.rows.len() == MAX_SUMMARY_ROWS {
            return Err(SummaryError::TooManyRows);
        }
        self.rows.insert(key, (quantity, events));
        Ok(())
    }

    /// Returns a row for each interval and group with events, sorted by interval and then by usage product.
    ///
    /// # Errors
    /// Returns a [`SummaryError`] as [`add`](Self::add) does.
    pub fn into_rows(mut self) -> Result<Vec<SummaryRow>, SummaryError> {
        self.add_pending()?;
        let intervals = self.intervals;
        let row = |((bucket, usage_product_ref, customer_id), (quantity, events)): (Key, (QuantitySum, u64))| {
            let (from, to) = match intervals {
                SummaryIntervals::Calendar(interval, zone) => interval.span(bucket, zone),
                SummaryIntervals::Whole(from, to) => (from, to),
            };
            SummaryRow { from, to, usage_product_ref, customer_id, quantity, events }
        };
        Ok(self.rows.into_iter().map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    static SUMS: Aggregations = Aggregations::new();

    fn used(customer: u128, product: &str, at: &str, quantity: &str) -> MeteredEvent {
        MeteredEvent {
            customer_id: CustomerId::from_uuid(Uuid::from_u128(customer)),
            usage_product_ref: UsageProductRef::parse(product).expect(product),
            event_ref: EventRef::from_uuid(Uuid::from_u128(1)),
            occurred_at: Timestamp::parse(at).expect(at),
            quantity: Quantity::parse(quantity).expect(quantity),
            unique_digest: None,
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
            // The summary starts each interval at the same instant.
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
            let intervals = SummaryIntervals::Calendar(interval, TimeZone::UTC);
            let mut summary = Summary::new(intervals, Grouping { by_usage_product, by_customer }, &SUMS);
            for event in events.iter().rev() {
                summary.add(event.clone()).expect("in range");
            }
            let rows = summary.into_rows().expect("in range");
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
    fn quantities_follow_the_aggregation_of_each_customer_and_interval() {
        let aggregations = ["MAX", "LATEST", "COUNT"].map(|name| UsageProductRef::parse(name).expect(name));
        let aggregations = aggregations.into_iter().zip([Aggregation::Max, Aggregation::Latest, Aggregation::Count]).collect();
        // Of each product on one day: 5 and 9 at 10:00, then 7 at the same time as 3, which arrived later. On the next day: 2.
        let of_customer = |customer: u128, factor: u32| {
            let event = move |product: &str, at: &str, quantity: u32, arrival: u128| MeteredEvent {
                event_ref: EventRef::from_uuid(Uuid::from_u128(arrival)),
                ..used(customer, product, at, &(quantity * factor).to_string())
            };
            ["SUM", "COUNT", "MAX", "LATEST"].into_iter().flat_map(move |product| {
                [
                    event(product, "2026-01-01T10:00:00Z", 5, 1),
                    event(product, "2026-01-01T12:00:00Z", 3, 4),
                    event(product, "2026-01-01T12:00:00Z", 7, 3),
                    event(product, "2026-01-01T10:00:00Z", 9, 2),
                    event(product, "2026-01-02T00:00:00Z", 2, 5),
                ]
            })
        };
        let events: Vec<MeteredEvent> = of_customer(1, 1).chain(of_customer(2, 10)).collect();
        let quantities = |intervals, by_customer| {
            let mut summary = Summary::new(intervals, Grouping { by_usage_product: true, by_customer }, &aggregations);
            events.iter().for_each(|event| summary.add(event.clone()).expect("in range"));
            let rows = summary.into_rows().expect("in range");
            let row = |row: &SummaryRow| {
                let product = row.usage_product_ref.as_ref().map(ToString::to_string).unwrap_or_default();
                format!("{product} {} {}", row.quantity.as_decimal(), row.events)
            };
            rows.iter().map(row).collect::<Vec<_>>()
        };
        let days = SummaryIntervals::Calendar(Interval::Day, TimeZone::UTC);
        let both_days = ["COUNT 8 8", "LATEST 33 8", "MAX 99 8", "SUM 264 8", "COUNT 2 2", "LATEST 22 2", "MAX 22 2", "SUM 22 2"];
        assert_eq!(quantities(days, false), both_days);
        let months = SummaryIntervals::Calendar(Interval::Month, TimeZone::UTC);
        assert_eq!(quantities(months, false), ["COUNT 10 10", "LATEST 22 10", "MAX 99 10", "SUM 286 10"]);
        let whole = SummaryIntervals::Whole(Timestamp::MIN, Timestamp::MAX);
        assert_eq!(quantities(whole, false), ["COUNT 10 10", "LATEST 22 10", "MAX 99 10", "SUM 286 10"]);
        let by_customer = ["COUNT 5 5", "COUNT 5 5", "LATEST 2 5", "LATEST 20 5", "MAX 9 5", "MAX 90 5", "SUM 26 5", "SUM 260 5"];
        assert_eq!(quantities(whole, true), by_customer);
    }

    #[test]
    fn a_summary_has_so_many_rows_and_no_more() {
        let intervals = SummaryIntervals::Calendar(Interval::Hour, TimeZone::UTC);
        let mut summary = Summary::new(intervals, Grouping::default(), &SUMS);
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
