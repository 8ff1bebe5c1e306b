//! A statement composed of texts and values, for lists whose conditions and order depend on the request. diesel's boxed
//! queries cannot compare rows of columns and cannot select an index.

use std::borrow::Cow;
use std::marker::PhantomData;

use billing_domain::calendar::Timestamp;
use chrono::NaiveDate;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, QueryFragment};
use diesel::result::QueryResult;
use diesel::sql_types::{BigInt, Text};
use diesel::sqlite::Sqlite;
use uuid::Uuid;

use crate::hand_written::statement;
use crate::sql_types::{Day, Id, Ts};

/// Longer lists are rare, and a prepared statement for each length would fill the cache.
const MAX_PREPARED_VALUES: usize = 32;

/// A statement whose rows have the SQL type `R`.
#[derive(Debug)]
pub(crate) struct Statement<R> {
    parts: Vec<Part>,
    row: PhantomData<R>,
}

#[derive(Clone, Debug)]
enum Part {
    Sql(Cow<'static, str>),
    /// Text for one database only.
    OnSqlite(&'static str),
    OnPostgres(&'static str),
    Id(Uuid),
    Day(NaiveDate),
    Ts(Timestamp),
    Text(String),
    Number(i64),
}

impl<R> Statement<R> {
    /// Creates a statement that begins with `sql`.
    pub(crate) fn new(sql: impl Into<Cow<'static, str>>) -> Self {
        Self { parts: vec![Part::Sql(sql.into())], row: PhantomData }
    }

    /// Returns a copy with another beginning and another row type.
    pub(crate) fn after<S>(&self, sql: impl Into<Cow<'static, str>>) -> Statement<S> {
        let mut parts = vec![Part::Sql(sql.into())];
        parts.extend(self.parts.iter().cloned());
        Statement { parts, row: PhantomData }
    }

    pub(crate) fn sql(&mut self, sql: impl Into<Cow<'static, str>>) -> &mut Self {
        self.push(Part::Sql(sql.into()))
    }

    /// Adds text for SQLite only.
    pub(crate) fn on_sqlite(&mut self, sql: &'static str) -> &mut Self {
        self.push(Part::OnSqlite(sql))
    }

    /// Adds text for PostgreSQL only.
    pub(crate) fn on_postgres(&mut self, sql: &'static str) -> &mut Self {
        self.push(Part::OnPostgres(sql))
    }

    pub(crate) fn id(&mut self, id: Uuid) -> &mut Self {
        self.push(Part::Id(id))
    }

    pub(crate) fn day(&mut self, day: NaiveDate) -> &mut Self {
        self.push(Part::Day(day))
    }

    pub(crate) fn ts(&mut self, ts: Timestamp) -> &mut Self {
        self.push(Part::Ts(ts))
    }

    pub(crate) fn text(&mut self, text: impl Into<String>) -> &mut Self {
        self.push(Part::Text(text.into()))
    }

    pub(crate) fn number(&mut self, number: i64) -> &mut Self {
        self.push(Part::Number(number))
    }

    /// Appends another statement.
    pub(crate) fn append<S>(&mut self, other: Statement<S>) -> &mut Self {
        self.parts.extend(other.parts);
        self
    }

    fn push(&mut self, part: Part) -> &mut Self {
        self.parts.push(part);
        self
    }
}

statement!([R,] Statement<R> => R);

macro_rules! fragments {
    ($($backend:ty, $own:ident, $other:ident;)+) => {$(
        impl<R> QueryFragment<$backend> for Statement<R> {
            fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, $backend>) -> QueryResult<()> {
                let is_value = |part: &&Part| !matches!(part, Part::Sql(_) | Part::OnSqlite(_) | Part::OnPostgres(_));
                if self.parts.iter().filter(is_value).count() > MAX_PREPARED_VALUES {
                    out.unsafe_to_cache_prepared();
                }
                for part in &self.parts {
                    match part {
                        Part::Sql(sql) => out.push_sql(sql),
                        Part::$own(sql) => out.push_sql(sql),
                        Part::$other(_) => {}
                        Part::Id(id) => out.push_bind_param::<Id, _>(id)?,
                        Part::Day(day) => out.push_bind_param::<Day, _>(day)?,
                        Part::Ts(ts) => out.push_bind_param::<Ts, _>(ts)?,
                        Part::Text(text) => out.push_bind_param::<Text, _>(text)?,
                        Part::Number(number) => out.push_bind_param::<BigInt, _>(number)?,
                    }
                }
                Ok(())
            }
        }
    )+};
}
fragments! {
    Pg, OnPostgres, OnSqlite;
    Sqlite, OnSqlite, OnPostgres;
}
