//! Days and instants, computed in the simplest way.

use billing_domain::calendar::Timestamp;
use chrono::{DateTime, Datelike, Days, NaiveDate, TimeZone, Utc};
use chrono_tz::Tz;

pub(crate) type Date = NaiveDate;

fn instant(at: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(at.as_micros()).expect("an instant")
}

fn zone(name: &str) -> Tz {
    name.parse().expect("a zone")
}

/// Returns the date of an instant in a zone.
pub(crate) fn service_date(name: &str, at: Timestamp) -> Date {
    instant(at).with_timezone(&zone(name)).date_naive()
}

/// Returns the midnight of a day. No zone in use skips a midnight.
pub(crate) fn midnight(name: &str, day: Date) -> Timestamp {
    let local = day.and_hms_opt(0, 0, 0).expect("midnight");
    let at = zone(name).from_local_datetime(&local).earliest().expect("a midnight that exists");
    Timestamp::from_micros(at.timestamp_micros()).expect("an instant")
}

pub(crate) fn plus(day: Date, days: i64) -> Date {
    let count = Days::new(days.unsigned_abs());
    if days < 0 { day - count } else { day + count }
}

pub(crate) fn days_between(from: Date, to: Date) -> i64 {
    (to - from).num_days()
}

/// Moves a date by months. A day that does not exist becomes the last day of the month.
pub(crate) fn plus_months(day: Date, months: i64) -> Date {
    let count = i64::from(day.year()) * 12 + i64::from(day.month0()) + months;
    let year = i32::try_from(count.div_euclid(12)).expect("a year");
    let month = u32::try_from(count.rem_euclid(12)).expect("a month") + 1;
    (0..4).find_map(|back| NaiveDate::from_ymd_opt(year, month, day.day() - back)).expect("a month with 28 days")
}
