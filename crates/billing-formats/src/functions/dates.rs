//! Dates. All functions except `seconds_between` return an instant in UTC as an RFC 3339 text.
//!
//! - `rfc3339(text)`: parses an RFC 3339 text
//! - `date_time(text, pattern)`: parses a text with an offset, by a pattern such as `%d/%b/%Y:%H:%M:%S %z`
//! - `date_time(text, pattern, zone)`: parses a local time in an IANA zone, or a date as the start of that day. Of an
//!   ambiguous local time it returns the first instant; a skipped local time is an error.
//! - `unix_seconds(number)`, `unix_milliseconds(number)`: converts seconds or milliseconds since 1970
//! - `seconds_between(from, to)`: returns the number of seconds from one RFC 3339 text to another

use std::fmt::Display;

use billing_domain::calendar::{TimeZone as Zone, Timestamp};
use billing_domain::decimal::exact_mul;
use chrono::format::ParseErrorKind;
use chrono::{DateTime, Datelike as _, LocalResult, NaiveDate, NaiveDateTime, TimeZone as _};
use chrono_tz::Tz;
use rhai::{Dynamic, Engine, ImmutableString};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use super::numbers::of;
use crate::operators::{Fallible, exact};
use crate::values::shortened;

pub(crate) fn register(engine: &mut Engine) {
    engine
        .register_fn("rfc3339", |text: ImmutableString| instant(&text).map(|at| at.to_string()))
        .register_fn("date_time", |text: ImmutableString, pattern: ImmutableString| {
            with_offset(&text, &pattern).map(|at| at.to_string())
        })
        .register_fn("date_time", |text: ImmutableString, pattern: ImmutableString, zone: ImmutableString| {
            local(&text, &pattern, &zone).map(|at| at.to_string())
        })
        .register_fn("unix_seconds", |number: Dynamic| unix(&number, 1_000_000).map(|at| at.to_string()))
        .register_fn("unix_milliseconds", |number: Dynamic| unix(&number, 1_000).map(|at| at.to_string()))
        .register_fn("seconds_between", |from: ImmutableString, to: ImmutableString| seconds_between(&from, &to));
}

fn instant(text: &str) -> Fallible<Timestamp> {
    Timestamp::parse(text).map_err(|error| about(text, error))
}

fn with_offset(text: &str, pattern: &str) -> Fallible<Timestamp> {
    let parsed = DateTime::parse_from_str(text, pattern).map_err(|error| match error.kind() {
        ParseErrorKind::NotEnough => about(text, "needs an offset in the pattern, or a zone as third argument"),
        _ => about(text, format!("doesn't follow the pattern `{pattern}`: {error}")),
    })?;
    Timestamp::from_micros(parsed.timestamp_micros()).map_err(|error| about(text, error))
}

fn local(text: &str, pattern: &str, zone: &str) -> Fallible<Timestamp> {
    let tz: Tz = zone.parse().map_err(|_| about(zone, "is not an IANA time zone name such as Europe/Berlin"))?;
    let unlike = |error: chrono::ParseError| about(text, format!("doesn't follow the pattern `{pattern}`: {error}"));
    match NaiveDateTime::parse_from_str(text, pattern) {
        // chrono cannot compute local times of distant years.
        Ok(at) if !(1..=9999).contains(&at.year()) => Err(about(text, "must be in the years 1 to 9999")),
        Ok(at) => match tz.from_local_datetime(&at) {
            LocalResult::Single(found) | LocalResult::Ambiguous(found, _) => {
                Timestamp::from_micros(found.timestamp_micros()).map_err(|error| about(text, error))
            }
            LocalResult::None => Err(about(text, format!("doesn't exist in {zone}: clocks skip it"))),
        },
        Err(error) if error.kind() == ParseErrorKind::NotEnough => {
            let date = NaiveDate::parse_from_str(text, pattern).map_err(unlike)?;
            let zone = Zone::parse(zone).map_err(|error| about(zone, error))?;
            Ok(zone.start_of_day(date))
        }
        Err(error) => Err(unlike(error)),
    }
}

fn unix(number: &Dynamic, micros_each: u32) -> Fallible<Timestamp> {
    let micros = exact(exact_mul(of(number)?, Decimal::from(micros_each)))?.trunc().to_i64();
    let at = micros.map(Timestamp::from_micros);
    at.and_then(Result::ok).ok_or_else(|| "the number lies outside the years 1 to 9999".into())
}

fn seconds_between(from: &str, to: &str) -> Fallible<Decimal> {
    let micros = i128::from(instant(to)?.as_micros()) - i128::from(instant(from)?.as_micros());
    Ok(Decimal::from_i128_with_scale(micros, 6).normalize())
}

fn about(text: &str, what: impl Display) -> Box<rhai::EvalAltResult> {
    format!("`{}` {what}", shortened(text)).into()
}
