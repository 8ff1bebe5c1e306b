//! Instants, dates, and half-open periods of days. No clock: every "now" comes in as an argument.
//!
//! Periods are half-open `[start, end)` inside; inclusive dates of the interface are converted at the
//! border, by [`Period::inclusive`] and [`Period::last_day`].

use std::fmt;

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveTime, SecondsFormat, TimeZone as _, Timelike as _, Utc};
use chrono_tz::Tz;
use thiserror::Error;

/// A calendar date.
pub use chrono::NaiveDate as Date;

/// An instant, to the microsecond, in UTC, of the years 1 to 9999.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(DateTime<Utc>);

/// Why a text is no instant or date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CalendarError {
    /// Not an RFC 3339 date-time with an offset.
    #[error("must be an RFC 3339 date-time with an offset, such as 2026-01-31T12:00:00Z")]
    NotATimestamp,
    /// Not a date in the form `yyyy-mm-dd`.
    #[error("must be a date in the form yyyy-mm-dd")]
    NotADate,
    /// Not a name of the IANA time zone database.
    #[error("must be an IANA time zone name such as Europe/Berlin")]
    NotATimeZone,
    /// A year before 1 or after 9999.
    #[error("must lie in the years 1 to 9999")]
    OutOfRange,
}

impl Timestamp {
    /// The first instant there is: 0001-01-01T00:00:00Z.
    pub const MIN: Self = Self::within(-62_135_596_800_000_000);
    /// The last instant there is: 9999-12-31T23:59:59.999999Z.
    pub const MAX: Self = Self::within(253_402_300_799_999_999);

    /// From microseconds that are within the years 1 to 9999.
    const fn within(micros: i64) -> Self {
        match DateTime::from_timestamp_micros(micros) {
            Some(at) => Self(at),
            None => Self(DateTime::UNIX_EPOCH),
        }
    }

    /// Reads RFC 3339 with an offset; digits beyond microseconds are cut, a leap second counts as the
    /// first instant of the next minute.
    ///
    /// # Errors
    /// [`CalendarError::NotATimestamp`] or [`CalendarError::OutOfRange`].
    pub fn parse(text: &str) -> Result<Self, CalendarError> {
        if text.len() < 20 || !text.is_ascii() || !matches!(text.as_bytes()[10], b'T' | b't' | b' ') {
            return Err(CalendarError::NotATimestamp);
        }
        let parsed = DateTime::parse_from_rfc3339(text).map_err(|_| CalendarError::NotATimestamp)?;
        Self::from_micros(parsed.timestamp_micros())
    }

    /// From microseconds since 1970-01-01T00:00:00Z.
    ///
    /// # Errors
    /// [`CalendarError::OutOfRange`] outside the years 1 to 9999.
    pub fn from_micros(micros: i64) -> Result<Self, CalendarError> {
        DateTime::from_timestamp_micros(micros)
            .filter(|t| (1..=9999).contains(&t.year()))
            .map(Self)
            .ok_or(CalendarError::OutOfRange)
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    pub const fn as_micros(self) -> i64 {
        self.0.timestamp_micros()
    }

    /// Later by a number of seconds, earlier by a negative one; stays at [`MIN`](Self::MIN) or [`MAX`](Self::MAX) where that is reached.
    pub fn plus_seconds(self, seconds: i64) -> Self {
        let micros = self.as_micros().saturating_add(seconds.saturating_mul(1_000_000));
        Self::within(micros.clamp(Self::MIN.as_micros(), Self::MAX.as_micros()))
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC, with microseconds only where there are any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reads a date in the form `yyyy-mm-dd`, years 0001 to 9999.
///
/// # Errors
/// [`CalendarError::NotADate`] for any other form and for days that don't exist.
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

/// A time zone of the IANA database: what turns an instant into a *service date*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeZone(Tz);

impl TimeZone {
    /// The default.
    pub const UTC: Self = Self(Tz::UTC);

    /// Looks a name up.
    ///
    /// # Errors
    /// [`CalendarError::NotATimeZone`] when the database has no such name.
    pub fn parse(name: &str) -> Result<Self, CalendarError> {
        name.parse().map(Self).map_err(|_| CalendarError::NotATimeZone)
    }

    /// The name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The calendar date of an instant in this zone.
    pub fn service_date(self, at: Timestamp) -> NaiveDate {
        at.0.with_timezone(&self.0).date_naive()
    }

    /// What a clock in this zone shows at an instant.
    pub fn time_of_day(self, at: Timestamp) -> NaiveTime {
        at.0.with_timezone(&self.0).time()
    }

    /// Date and time of day in this zone, to the second, and what the zone is called then: `2026-03-29 01:59:59 CET`.
    pub fn written(self, at: Timestamp) -> String {
        at.0.with_timezone(&self.0).format("%Y-%m-%d %H:%M:%S %Z").to_string()
    }

    /// The first instant of the hour that an instant is in, on this zone's clocks.
    pub fn start_of_hour(self, at: Timestamp) -> Timestamp {
        let local = at.0.with_timezone(&self.0);
        let since = i64::from(local.minute() * 60 + local.second()) * 1_000_000 + i64::from(local.timestamp_subsec_micros());
        // The first hour of all began before the first instant of all.
        Timestamp::from_micros(at.as_micros() - since).unwrap_or(Timestamp::MIN)
    }

    /// The first instant of a day: midnight, or where a clock change leaves midnight out, the first
    /// quarter of an hour that exists.
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
    /// `[start, end)`; `None` when that holds no day.
    pub fn new(start: NaiveDate, end: NaiveDate) -> Option<Self> {
        (start < end).then_some(Self { start, end })
    }

    /// From two inclusive dates, as the interface states them; `None` when the last is before the first.
    pub fn inclusive(first: NaiveDate, last: NaiveDate) -> Option<Self> {
        Self::new(first, day_after(last))
    }

    /// The first day.
    pub const fn start(self) -> NaiveDate {
        self.start
    }

    /// The day after the last.
    pub const fn end(self) -> NaiveDate {
        self.end
    }

    /// The last day, as the interface states it.
    pub fn last_day(self) -> NaiveDate {
        self.end.pred_opt().unwrap_or(self.start)
    }

    /// How many days.
    pub fn days(self) -> u32 {
        u32::try_from((self.end - self.start).num_days()).unwrap_or(u32::MAX)
    }

    /// Whether a day is in it.
    pub fn contains(self, date: NaiveDate) -> bool {
        self.start <= date && date < self.end
    }

    /// The days in both.
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

/// The next day; the calendar has one for every date the interface takes.
pub fn day_after(date: NaiveDate) -> NaiveDate {
    date.succ_opt().unwrap_or(date)
}

/// Later by a number of days; stays at the end of the calendar where that is reached.
pub fn plus_days(date: NaiveDate, days: u32) -> NaiveDate {
    date.checked_add_days(Days::new(u64::from(days))).unwrap_or(NaiveDate::MAX)
}

/// Earlier by a number of days; stays at the beginning of the calendar where that is reached.
pub fn minus_days(date: NaiveDate, days: u32) -> NaiveDate {
    date.checked_sub_days(Days::new(u64::from(days))).unwrap_or(NaiveDate::MIN)
}

/// Moves a date by whole months, clamped to the month's end: 31 January + 1 is 28 or 29 February
/// (billing rules 1.3). Stays at the end of the calendar where that is reached.
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
        assert_eq!(plus_months(date("2026-01-31"), 1), date("2026-02-28"));
        assert_eq!(plus_months(date("2024-01-31"), 1), date("2024-02-29"));
        assert_eq!(plus_months(date("2026-03-31"), -1), date("2026-02-28"));
    }
}
