//! Custom SQL types: one column type per meaning, with its representation in each database.
//!
//! | type | PostgreSQL | SQLite |
//! |---|---|---|
//! | [`Id`] | `UUID` | `BLOB`, 16 bytes |
//! | [`Ts`] | `TIMESTAMPTZ` | `INTEGER`, microseconds since 1970 in UTC |
//! | [`Day`] | `DATE` | `INTEGER`, days since 1970: text does not sort after the year 9999 |
//! | [`Dec`] | `NUMERIC` | `TEXT`: exact, but never compared or summed in SQL |
//! | [`Json`] | `JSON` | `TEXT` |
//!
//! Byte-exact values are text on both databases: some PostgreSQL-compatible databases do not preserve the bytes of
//! JSON.
//!
//! A decimal keeps its scale on both databases: 1.50 stays 1.50. Floats are never used.

use std::io::Write as _;

use billing_domain::calendar::Timestamp;
use chrono::{Days, NaiveDate};
use diesel::backend::Backend;
use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::Pg;
use diesel::pg::data_types::PgNumeric;
use diesel::query_builder::QueryId;
use diesel::serialize::{self, IsNull, Output, ToSql};
use diesel::sql_types::{BigInt, Binary, Integer, Numeric, SqlType, Text};
use diesel::sqlite::Sqlite;
use rust_decimal::Decimal;
use uuid::Uuid;

/// An identifier.
#[derive(SqlType, QueryId)]
#[diesel(postgres_type(oid = 2950, array_oid = 2951), sqlite_type(name = "Binary"))]
#[allow(unreachable_pub, reason = "diesel's tables are public inside their private module")]
pub struct Id;

/// An instant.
#[derive(SqlType, QueryId)]
#[diesel(postgres_type(oid = 1184, array_oid = 1185), sqlite_type(name = "Long"))]
#[allow(unreachable_pub, reason = "diesel's tables are public inside their private module")]
pub struct Ts;

/// A calendar date.
#[derive(SqlType, QueryId)]
#[diesel(postgres_type(oid = 1082, array_oid = 1182), sqlite_type(name = "Long"))]
#[allow(unreachable_pub, reason = "diesel's tables are public inside their private module")]
pub struct Day;

/// An exact decimal.
#[derive(SqlType, QueryId)]
#[diesel(postgres_type(oid = 1700, array_oid = 1231), sqlite_type(name = "Text"))]
#[allow(unreachable_pub, reason = "diesel's tables are public inside their private module")]
pub struct Dec;

/// JSON text that is stored unchanged.
#[derive(SqlType, QueryId)]
#[diesel(postgres_type(oid = 114, array_oid = 199), sqlite_type(name = "Text"))]
#[allow(unreachable_pub, reason = "diesel's tables are public inside their private module")]
pub struct Json;

/// A value bound to a statement. The wrapper is needed because a foreign type cannot implement diesel's `Expression`.
#[derive(Clone, Copy, Debug, AsExpression)]
#[diesel(sql_type = Id, sql_type = Ts, sql_type = Day, sql_type = Dec)]
pub(crate) struct Bound<T>(pub(crate) T);

macro_rules! bound {
    ($($sql_type:ty),+) => {$(
        impl<T, DB> ToSql<$sql_type, DB> for Bound<T>
        where
            T: ToSql<$sql_type, DB> + std::fmt::Debug,
            DB: Backend,
        {
            fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, DB>) -> serialize::Result {
                self.0.to_sql(out)
            }
        }
    )+};
}
bound!(Id, Ts, Day, Dec);

/// The text of a JSON column, or of a text column for JSON that must stay byte-exact.
#[derive(Clone, Debug, PartialEq, Eq, AsExpression, FromSqlRow, serde::Deserialize)]
#[diesel(sql_type = Json, sql_type = Text)]
pub(crate) struct JsonText(pub(crate) String);

impl ToSql<Id, Pg> for Uuid {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(self.as_bytes())?;
        Ok(IsNull::No)
    }
}

impl FromSql<Id, Pg> for Uuid {
    fn from_sql(bytes: <Pg as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        Ok(Self::from_slice(bytes.as_bytes())?)
    }
}

impl ToSql<Id, Sqlite> for Uuid {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(self.as_bytes().as_slice());
        Ok(IsNull::No)
    }
}

impl FromSql<Id, Sqlite> for Uuid {
    fn from_sql(bytes: <Sqlite as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        let bytes = <Vec<u8> as FromSql<Binary, Sqlite>>::from_sql(bytes)?;
        Ok(Self::from_slice(&bytes)?)
    }
}

/// PostgreSQL counts microseconds and days from 2000-01-01.
const PG_EPOCH_MICROS: i64 = 946_684_800_000_000;
const PG_EPOCH_DAYS: i64 = 10_957;

impl ToSql<Ts, Pg> for Timestamp {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(&(self.as_micros() - PG_EPOCH_MICROS).to_be_bytes())?;
        Ok(IsNull::No)
    }
}

impl FromSql<Ts, Pg> for Timestamp {
    fn from_sql(bytes: <Pg as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        let micros = <i64 as FromSql<BigInt, Pg>>::from_sql(bytes)?;
        Ok(Self::from_micros(micros.saturating_add(PG_EPOCH_MICROS))?)
    }
}

impl ToSql<Ts, Sqlite> for Timestamp {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(self.as_micros());
        Ok(IsNull::No)
    }
}

impl FromSql<Ts, Sqlite> for Timestamp {
    fn from_sql(bytes: <Sqlite as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        Ok(Self::from_micros(<i64 as FromSql<BigInt, Sqlite>>::from_sql(bytes)?)?)
    }
}

pub(crate) fn days_since_1970(date: NaiveDate) -> i64 {
    (date - NaiveDate::default()).num_days()
}

pub(crate) fn date_from_days(days: i64) -> deserialize::Result<NaiveDate> {
    let distance = Days::new(days.unsigned_abs());
    let epoch = NaiveDate::default();
    let date = if days < 0 { epoch.checked_sub_days(distance) } else { epoch.checked_add_days(distance) };
    date.ok_or_else(|| format!("{days} days since 1970 are beyond the calendar").into())
}

impl ToSql<Day, Pg> for NaiveDate {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(&i32::try_from(days_since_1970(*self) - PG_EPOCH_DAYS)?.to_be_bytes())?;
        Ok(IsNull::No)
    }
}

impl FromSql<Day, Pg> for NaiveDate {
    fn from_sql(bytes: <Pg as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        date_from_days(i64::from(<i32 as FromSql<Integer, Pg>>::from_sql(bytes)?) + PG_EPOCH_DAYS)
    }
}

impl ToSql<Day, Sqlite> for NaiveDate {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(days_since_1970(*self));
        Ok(IsNull::No)
    }
}

impl FromSql<Day, Sqlite> for NaiveDate {
    fn from_sql(bytes: <Sqlite as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        date_from_days(<i64 as FromSql<BigInt, Sqlite>>::from_sql(bytes)?)
    }
}

impl ToSql<Dec, Pg> for Decimal {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        ToSql::<Numeric, Pg>::to_sql(&numeric(*self)?, &mut out.reborrow())
    }
}

impl FromSql<Dec, Pg> for Decimal {
    fn from_sql(bytes: <Pg as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        match <PgNumeric as FromSql<Numeric, Pg>>::from_sql(bytes)? {
            PgNumeric::Positive { weight, scale, digits } => decimal(weight, scale, &digits),
            PgNumeric::Negative { weight, scale, digits } => Ok(-decimal(weight, scale, &digits)?),
            PgNumeric::NaN => Err("NaN is no decimal".into()),
        }
    }
}

impl ToSql<Dec, Sqlite> for Decimal {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(self.to_string());
        Ok(IsNull::No)
    }
}

impl FromSql<Dec, Sqlite> for Decimal {
    fn from_sql(bytes: <Sqlite as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        Ok(Self::from_str_exact(&<String as FromSql<Text, Sqlite>>::from_sql(bytes)?)?)
    }
}

/// The digits of a [`PgNumeric`] are groups of four, counted from the decimal point.
const GROUP: i128 = 10_000;

fn numeric(value: Decimal) -> Result<PgNumeric, std::num::TryFromIntError> {
    let scale = u16::try_from(value.scale())?;
    let groups_after_point = scale.div_ceil(4);
    // The product has at most 96 bits and three more digits, which fits an i128.
    let mut rest = value.mantissa().abs() * 10i128.pow(u32::from(groups_after_point * 4 - scale));
    let mut digits = Vec::new();
    while rest > 0 {
        digits.push(i16::try_from(rest % GROUP)?);
        rest /= GROUP;
    }
    let weight = i16::try_from(digits.len())? - i16::try_from(groups_after_point)? - 1;
    digits.reverse();
    while digits.last() == Some(&0) {
        digits.pop();
    }
    let weight = if digits.is_empty() { 0 } else { weight };
    Ok(if value.is_sign_negative() && !value.is_zero() {
        PgNumeric::Negative { weight, scale, digits }
    } else {
        PgNumeric::Positive { weight, scale, digits }
    })
}

fn decimal(weight: i16, scale: u16, digits: &[i16]) -> deserialize::Result<Decimal> {
    let beyond = || "a NUMERIC beyond 28 digits";
    let mut mantissa: i128 = 0;
    for digit in digits {
        mantissa = mantissa.checked_mul(GROUP).and_then(|m| m.checked_add(i128::from(*digit))).ok_or_else(beyond)?;
    }
    // The last group stands for 10000^last; this brings the mantissa to the column's scale.
    let last = i32::from(weight) + 1 - i32::try_from(digits.len())?;
    let shift = last * 4 + i32::from(scale);
    let power = 10i128.checked_pow(shift.unsigned_abs()).ok_or_else(beyond)?;
    let mantissa = if shift >= 0 { mantissa.checked_mul(power).ok_or_else(beyond)? } else { mantissa / power };
    Ok(Decimal::try_from_i128_with_scale(mantissa, u32::from(scale))?)
}

impl ToSql<Json, Pg> for JsonText {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(self.0.as_bytes())?;
        Ok(IsNull::No)
    }
}

impl FromSql<Json, Pg> for JsonText {
    fn from_sql(bytes: <Pg as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(std::str::from_utf8(bytes.as_bytes())?.to_owned()))
    }
}

impl ToSql<Json, Sqlite> for JsonText {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(self.0.as_str());
        Ok(IsNull::No)
    }
}

impl FromSql<Json, Sqlite> for JsonText {
    fn from_sql(bytes: <Sqlite as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        <String as FromSql<Text, Sqlite>>::from_sql(bytes).map(Self)
    }
}

impl<DB> ToSql<Text, DB> for JsonText
where
    String: ToSql<Text, DB>,
    DB: Backend,
{
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, DB>) -> serialize::Result {
        ToSql::<Text, DB>::to_sql(&self.0, out)
    }
}

impl<DB> FromSql<Text, DB> for JsonText
where
    String: FromSql<Text, DB>,
    DB: Backend,
{
    fn from_sql(bytes: DB::RawValue<'_>) -> deserialize::Result<Self> {
        <String as FromSql<Text, DB>>::from_sql(bytes).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_survives_the_numeric_format_with_its_scale() {
        let rows = [
            "0",
            "0.00",
            "1",
            "1.50",
            "-1.50",
            "10000",
            "100000000",
            "0.0001",
            "0.00001",
            "0.000000000001",
            "12345.6789",
            "9999999999999999999.999999999",
            "79228162514264337593543950335",
            "0.0000000000000000000000000001",
            "1000.0000",
        ];
        for text in rows {
            let value = Decimal::from_str_exact(text).expect(text);
            let back = match numeric(value).expect(text) {
                PgNumeric::Positive { weight, scale, digits } => decimal(weight, scale, &digits),
                PgNumeric::Negative { weight, scale, digits } => decimal(weight, scale, &digits).map(|d| -d),
                PgNumeric::NaN => Err("NaN".into()),
            };
            assert_eq!(back.expect(text).to_string(), text);
        }
    }

    #[test]
    fn dates_are_counted_from_1970_either_way() {
        for (text, days) in [("1970-01-01", 0), ("1969-12-31", -1), ("2000-01-01", PG_EPOCH_DAYS), ("+10000-01-01", 2_932_897)] {
            let date: NaiveDate = text.parse().expect(text);
            assert_eq!(days_since_1970(date), days, "{text}");
            assert_eq!(date_from_days(days).expect(text), date);
        }
        assert!(date_from_days(i64::MAX).is_err());
    }
}
