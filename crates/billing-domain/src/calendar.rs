//! Instants, dates, and half-open periods of days. There is no clock: the current time is always an argument.
//!
//! Periods are half-open `[start, end)`. The API uses inclusive dates. [`Period::inclusive`] and [`Period::last_day`] convert
//! them.

use std::fmt;

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveTime, SecondsFormat, TimeZone as _, Timelike as _, Utc};
use chrono_tz::Tz;
use thiserror::Error;

/// A calendar date.
pub use chrono::NaiveDate as Date;

/// An instant in UTC with microsecond precision, in the years 1 to 9999.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(DateTime<Utc>);

/// An error of an instant, a date or a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CalendarError {
    /// The text isn't an RFC 3339 date-time with an offset.
    #[error("must be an RFC 3339 date-time with an offset, such as 2026-01-31T12:00:00Z")]
    NotATimestamp,
    /// The text isn't a date in the form `yyyy-mm-dd`.
    #[error("must be a date in the form yyyy-mm-dd")]
    NotADate,
    /// The text isn't a name in the IANA time zone database.
    #[error("must be an IANA time zone name such as Europe/Berlin")]
    NotATimeZone,
    /// The year is before 1 or after 9999.
    #[error("must be in the years 1 to 9999")]
    OutOfRange,
}

impl Timestamp {
    /// The earliest instant: 0001-01-01T00:00:00Z.
    pub const MIN: Self = Self::within(-62_135_596_800_000_000);
    /// The latest instant: 9999-12-31T23:59:59.999999Z.
    pub const MAX: Self = Self::within(253_402_300_799_999_999);

    /// The beginning of 1970.
    pub const UNIX_EPOCH: Self = Self::within(0);

    /// Creates an instant from microseconds that are known to lie in the years 1 to 9999.
    const fn within(micros: i64) -> Self {
        match DateTime::from_timestamp_micros(micros) {
            Some(at) => Self(at),
            None => Self(DateTime::UNIX_EPOCH),
        }
    }

    /// Parses an RFC 3339 date-time with an offset. Digits beyond microseconds are truncated. A leap second is the first instant of
    /// the next minute.
    ///
    /// # Errors
    /// Returns [`CalendarError::NotATimestamp`] for any other form. Returns [`CalendarError::OutOfRange`] outside the years 1 to
    /// 9999.
    pub fn parse(text: &str) -> Result<Self, CalendarError> {
        if text.len() < 20 || !text.is_ascii() || !matches!(text.as_bytes()[10], b'T' | b't' | b' ') {
            return Err(CalendarError::NotATimestamp);
        }
        let parsed = DateTime::parse_from_rfc3339(text).map_err(|_| CalendarError::NotATimestamp)?;
        Self::from_micros(parsed.timestamp_micros())
    }

    /// Creates an instant from microseconds since 1970-01-01T00:00:00Z.
    ///
    /// # Errors
    /// Returns [`CalendarError::OutOfRange`] outside the years 1 to 9999.
    pub fn from_micros(micros: i64) -> Result<Self, CalendarError> {
        DateTime::from_timestamp_micros(micros)
            .filter(|t| (1..=9999).contains(&t.year()))
            .map(Self)
            .ok_or(CalendarError::OutOfRange)
    }

    /// Returns the microseconds since 1970-01-01T00:00:00Z.
    pub const fn as_micros(self) -> i64 {
        self.0.timestamp_micros()
    }

    /// Adds seconds, which may be negative. The result saturates at [`MIN`](Self::MIN) and [`MAX`](Self::MAX).
    pub fn plus_seconds(self, seconds: i64) -> Self {
        let micros = self.as_micros().saturating_add(seconds.saturating_mul(1_000_000));
        Self::within(micros.clamp(Self::MIN.as_micros(), Self::MAX.as_micros()))
    }
}

impl fmt::Display for Timestamp {
    /// Writes RFC 3339 in UTC. Fractional seconds are omitted if they are zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Parses a date in the form `yyyy-mm-dd` with a year from 0001 to 9999.
///
/// # Errors
/// Returns [`CalendarError::NotADate`] for any other form and for days that don't exist.
pub fn parse_date(text: &str) -> Result<NaiveDate, CalendarError> {
    let bytes = text.as_bytes();
    let shaped = bytes.len() == 10
        && bytes.iter().enumerate().all(|(i, b)| if i == 4 || i == 7 { *b == b'-' } else { b.is_ascii_digit() });
    if !shaped {
        return Err(CalendarError::NotADate);
    }
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").map_err(|_| CalendarError::NotADate)?;
    if date.year() < 1 { Err(CalendarError::NotADate) } else { Ok(date) }
}

/// A time zone of the IANA database. It converts an instant to a *service date*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeZone(Tz);

impl TimeZone {
    /// The default time zone.
    pub const UTC: Self = Self(Tz::UTC);

    /// Returns the time zone of a name.
    ///
    /// # Errors
    /// Returns [`CalendarError::NotATimeZone`] if the database doesn't contain the name.
    pub fn parse(name: &str) -> Result<Self, CalendarError> {
        name.parse().map(Self).map_err(|_| CalendarError::NotATimeZone)
    }

    /// Returns the name of the time zone.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Returns the calendar date of an instant in this time zone.
    pub fn service_date(self, at: Timestamp) -> NaiveDate {
        at.0.with_timezone(&self.0).date_naive()
    }

    /// Returns the local time of an instant in this time zone.
    pub fn time_of_day(self, at: Timestamp) -> NaiveTime {
        at.0.with_timezone(&self.0).time()
    }

    /// Formats an instant as local date and time to the second, with the zone abbreviation: `2026-03-29 01:59:59 CET`.
    pub fn written(self, at: Timestamp) -> String {
        at.0.with_timezone(&self.0).format("%Y-%m-%d %H:%M:%S %Z").to_string()
    }

    /// Returns the first instant of the local hour that contains an instant.
    pub fn start_of_hour(self, at: Timestamp) -> Timestamp {
        let local = at.0.with_timezone(&self.0);
        let since = i64::from(local.minute() * 60 + local.second()) * 1_000_000 + i64::from(local.timestamp_subsec_micros());
        // The first hour in this zone can begin before the earliest instant.
        Timestamp::from_micros(at.as_micros() - since).unwrap_or(Timestamp::MIN)
    }

    /// Returns the first instant of a day. This is midnight, or the first existing quarter of an hour if a clock change skips
    /// midnight.
    pub fn start_of_day(self, date: NaiveDate) -> Timestamp {
        let midnight = date.and_time(NaiveTime::MIN);
        (0..=96)
            .find_map(|quarter| {
                let local = midnight.checked_add_signed(chrono::TimeDelta::minutes(15 * quarter))?;
                self.0.from_local_datetime(&local).earliest()
            })
            .map_or(Timestamp(Utc.from_utc_datetime(&midnight)), |t| Timestamp(t.with_timezone(&Utc)))
    }
}

/// A half-open range of days `[start, end)`, never empty.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period {
    start: NaiveDate,
    end: NaiveDate,
}

impl Period {
    /// Creates the period `[start, end)`. Returns `None` if it contains no day.
    pub fn new(start: NaiveDate, end: NaiveDate) -> Option<Self> {
        (start < end).then_some(Self { start, end })
    }

    /// Creates a period from two inclusive dates, as the API uses them. Returns `None` if `last` is before `first`.
    pub fn inclusive(first: NaiveDate, last: NaiveDate) -> Option<Self> {
        Self::new(first, day_after(last))
    }

    /// Returns the first day.
    pub const fn start(self) -> NaiveDate {
        self.start
    }

    /// Returns the day after the last day.
    pub const fn end(self) -> NaiveDate {
        self.end
    }

    /// Returns the last day, which the API uses as the inclusive end.
    pub fn last_day(self) -> NaiveDate {
        self.end.pred_opt().unwrap_or(self.start)
    }

    /// Returns the number of days.
    pub fn days(self) -> u32 {
        u32::try_from((self.end - self.start).num_days()).unwrap_or(u32::MAX)
    }

    /// Returns whether the period contains a day.
    pub fn contains(self, date: NaiveDate) -> bool {
        self.start <= date && date < self.end
    }

    /// Returns the days that both periods contain, or `None` if no such day exists.
    pub fn intersection(self, other: Self) -> Option<Self> {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…{}", self.start, self.last_day())
    }
}

impl fmt::Debug for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

/// Returns the next day. The next day exists for every date that the API accepts.
pub fn day_after(date: NaiveDate) -> NaiveDate {
    date.succ_opt().unwrap_or(date)
}

/// Adds days. The result saturates at the end of the calendar.
pub fn plus_days(date: NaiveDate, days: u32) -> NaiveDate {
    date.checked_add_days(Days::new(u64::from(days))).unwrap_or(NaiveDate::MAX)
}

/// Subtracts days. The result saturates at the beginning of the calendar.
pub fn minus_days(date: NaiveDate, days: u32) -> NaiveDate {
    date.checked_sub_days(Days::new(u64::from(days))).unwrap_or(NaiveDate::MIN)
}

/// Returns the first day of the month of a day.
pub fn first_of_month(date: NaiveDate) -> NaiveDate {
    date.with_day(1).unwrap_or(date)
}

/// Adds months and clamps the result to the end of the month: 31 January plus 1 is 28 or 29 February (billing rules 1.3). The
/// result saturates at the limit of the calendar.
pub fn plus_months(date: NaiveDate, months: i64) -> NaiveDate {
    let count = Months::new(u32::try_from(months.unsigned_abs()).unwrap_or(u32::MAX));
    if months < 0 {
        date.checked_sub_months(count).unwrap_or(NaiveDate::MIN)
    } else {
        date.checked_add_months(count).unwrap_or(NaiveDate::MAX)
    }
}

from_str!(Timestamp: CalendarError, TimeZone: CalendarError);

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> NaiveDate {
        parse_date(text).expect(text)
    }

    #[test]
    fn instants_stay_within_the_years_1_to_9999() {
        assert_eq!(
            (Timestamp::MIN.to_string().as_str(), Timestamp::MAX.to_string().as_str()),
            ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z")
        );
        assert_eq!(Timestamp::parse("0001-01-01T00:00:00Z"), Ok(Timestamp::MIN));
        for seconds in [1, i64::MAX] {
            assert_eq!(Timestamp::MAX.plus_seconds(seconds), Timestamp::MAX);
            assert_eq!(Timestamp::MIN.plus_seconds(-seconds), Timestamp::MIN);
        }
        assert_eq!(Timestamp::MIN.plus_seconds(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MAX.plus_seconds(i64::MIN), Timestamp::MIN);
        assert_eq!(Timestamp::MIN.plus_seconds(1).to_string(), "0001-01-01T00:00:01Z");
    }

    #[test]
    fn timestamps_read_with_an_offset_and_come_out_in_utc() {
        let rows = [
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
            ("2026-01-01T00:00:00+14:00", "2025-12-31T10:00:00Z"),
            ("2026-01-01T00:00:00.1234567-11:00", "2026-01-01T11:00:00.123456Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ];
        for (text, shown) in rows {
            assert_eq!(Timestamp::parse(text).expect(text).to_string(), shown, "{text}");
        }
        for bad in [
            "",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "yesterday, at twelve",
            "2026-01-01T00:00:00\u{2212}05:00",
        ] {
            assert_eq!(Timestamp::parse(bad), Err(CalendarError::NotATimestamp), "{bad:?}");
        }
        assert_eq!(Timestamp::parse("9999-12-31T23:59:59-01:00"), Err(CalendarError::OutOfRange));
    }

    #[test]
    fn dates_have_one_form() {
        assert_eq!(date("2024-02-29").to_string(), "2024-02-29");
        for bad in ["2023-02-29", "2024-2-29", "24-02-29", "2024-02-29T00:00:00Z", "0000-01-01", "+2024-1-1", "+2024-1-11", ""] {
            assert_eq!(parse_date(bad), Err(CalendarError::NotADate), "{bad:?}");
        }
    }

    #[test]
    fn the_service_date_is_the_zones_own() {
        let rows = [
            ("2026-03-31T22:00:00Z", "Europe/Berlin", "2026-04-01"),
            ("2026-03-31T22:00:00Z", "UTC", "2026-03-31"),
            ("2026-01-01T00:00:00Z", "Pacific/Kiritimati", "2026-01-01"),
            ("2025-12-31T10:00:00Z", "Pacific/Kiritimati", "2026-01-01"),
            ("2026-01-01T10:59:59Z", "Pacific/Pago_Pago", "2025-12-31"),
        ];
        for (at, zone, day) in rows {
            let zone = TimeZone::parse(zone).expect(zone);
            assert_eq!(zone.service_date(Timestamp::parse(at).expect(at)), date(day), "{at}");
        }
    }

    #[test]
    fn a_clock_shows_its_zones_own_time() {
        let at = Timestamp::parse("2026-03-29T00:59:59.5Z").expect("an instant");
        for (zone, shown) in [
            ("Europe/Berlin", "2026-03-29 01:59:59 CET"),
            ("UTC", "2026-03-29 00:59:59 UTC"),
            ("Asia/Kathmandu", "2026-03-29 06:44:59 +0545"),
        ] {
            let zone = TimeZone::parse(zone).expect(zone);
            assert_eq!(zone.written(at), shown);
            assert!(shown.contains(&zone.time_of_day(at).format("%H:%M:%S").to_string()), "{shown}");
        }
    }

    #[test]
    fn a_day_without_midnight_starts_when_its_first_instant_does() {
        let beirut = TimeZone::parse("Asia/Beirut").expect("a zone");
        let start = beirut.start_of_day(date("2022-03-27"));
        assert_eq!(start.to_string(), "2022-03-26T22:00:00Z");
        assert_eq!(beirut.service_date(start), date("2022-03-27"));
    }

    #[test]
    fn months_clamp_to_their_end() {
        assert_eq!(first_of_month(date("2024-02-29")), date("2024-02-01"));
        assert_eq!(plus_months(date("2026-01-31"), 1), date("2026-02-28"));
        assert_eq!(plus_months(date("2024-01-31"), 1), date("2024-02-29"));
        assert_eq!(plus_months(date("2026-03-31"), -1), date("2026-02-28"));
    }
}
