//! Days and instants for requests and expected values.
//!
//! This module has its own calendar, so that the tests do not check the service with the arithmetic that the service
//! uses.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: i64 = 86_400;

/// A day of the Gregorian calendar, shown as `yyyy-mm-dd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(i64);

impl Day {
    /// Returns the current day in UTC.
    pub fn today() -> Self {
        Self(seconds_now().div_euclid(SECONDS_PER_DAY))
    }

    /// Creates a day from its date.
    pub fn new(year: i64, month: i64, day: i64) -> Self {
        // Years begin in March, so that the leap day is the last day of a year.
        let year = if month <= 2 { year - 1 } else { year };
        let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        Self(year * 365 + leap_days + day_of_year - 719_468)
    }

    /// Parses `yyyy-mm-dd`.
    ///
    /// # Panics
    /// Panics if the text has another format.
    pub fn parse(text: &str) -> Self {
        let part = |range| text.get(range).and_then(|part: &str| part.parse().ok());
        match (text.len(), part(0..4), part(5..7), part(8..10)) {
            (10, Some(year), Some(month), Some(day)) => Self::new(year, month, day),
            _ => panic!("{text} is not a date"),
        }
    }

    /// Returns the day that is a number of days later, or earlier if the number is negative.
    pub fn plus_days(self, days: i64) -> Self {
        Self(self.0 + days)
    }

    /// Returns the day that is a number of months later, or earlier if the number is negative. If the month is too
    /// short, it returns the last day of the month.
    pub fn plus_months(self, months: i64) -> Self {
        let (year, month, day) = self.date();
        let first = |index: i64| Self::new(index.div_euclid(12), index.rem_euclid(12) + 1, 1);
        let index = year * 12 + month - 1 + months;
        let (first, next) = (first(index), first(index + 1));
        first.plus_days((day - 1).min(first.days_until(next) - 1))
    }

    /// Returns the first day of the month.
    pub fn first_of_month(self) -> Self {
        let (year, month, _) = self.date();
        Self::new(year, month, 1)
    }

    /// Returns the number of days from this day to another day.
    pub fn days_until(self, other: Self) -> i64 {
        other.0 - self.0
    }

    /// Returns noon of this day in UTC, as an API timestamp.
    pub fn noon(self) -> String {
        format!("{self}T12:00:00Z")
    }

    fn date(self) -> (i64, i64, i64) {
        let shifted = self.0 + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = (month_from_march + 2) % 12 + 1;
        (era * 400 + year_of_era + i64::from(month <= 2), month, day)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// Returns the current day at a number of hours ahead of UTC, or behind UTC if the number is negative.
pub fn today_at(hours: i64) -> Day {
    Day((seconds_now() + hours * 3600).div_euclid(SECONDS_PER_DAY))
}

/// Returns the current time as an API timestamp.
pub fn now() -> String {
    in_seconds(0)
}

/// Returns an instant a number of seconds in the future, or in the past if the number is negative, as an API timestamp.
pub fn in_seconds(seconds: i64) -> String {
    let at = seconds_now() + seconds;
    let (day, second) = (Day(at.div_euclid(SECONDS_PER_DAY)), at.rem_euclid(SECONDS_PER_DAY));
    format!("{day}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// Returns the seconds from now until an instant `yyyy-mm-ddThh:mm:ssZ`. The number is negative if the instant is past.
///
/// # Panics
/// Panics if the text has another format.
pub fn seconds_until(instant: &str) -> i64 {
    let part = |range| instant.get(range).and_then(|part: &str| part.parse::<i64>().ok());
    match (instant.len(), part(11..13), part(14..16), part(17..19)) {
        (20, Some(hours), Some(minutes), Some(seconds)) => {
            let day = Day::parse(&instant[..10]).0;
            day * SECONDS_PER_DAY + hours * 3600 + minutes * 60 + seconds - seconds_now()
        }
        _ => panic!("{instant} is not an instant"),
    }
}

fn seconds_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    i64::try_from(since.as_secs()).expect("the clock is before the end of time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_shown_alike() {
        for text in ["1970-01-01", "2000-02-29", "2024-02-29", "2026-12-31", "2027-01-01", "2100-02-28", "2100-03-01"] {
            assert_eq!(Day::parse(text).to_string(), text);
        }
        assert_eq!(Day::parse("1970-01-01").0, 0);
        assert_eq!(Day::parse("2100-02-28").days_until(Day::parse("2100-03-01")), 1, "2100 has no leap day");
        assert_eq!(Day::parse("2024-02-28").days_until(Day::parse("2024-03-01")), 2);
    }

    #[test]
    fn months_end_where_the_calendar_says() {
        for (from, months, to) in [
            ("2026-01-31", 1, "2026-02-28"),
            ("2028-01-31", 1, "2028-02-29"),
            ("2026-12-15", 1, "2027-01-15"),
            ("2026-03-31", -1, "2026-02-28"),
            ("2026-01-31", -2, "2025-11-30"),
            ("2026-01-31", 12, "2027-01-31"),
        ] {
            assert_eq!(Day::parse(from).plus_months(months).to_string(), to);
        }
    }
}
