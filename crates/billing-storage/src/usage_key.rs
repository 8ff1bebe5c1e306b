//! Statements on running totals that diesel can't write so that they stay prepared.

use billing_domain::calendar::Timestamp;
use billing_domain::usage::{UsageKey, UsageTotal};
use chrono::NaiveDate;
use diesel::expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping, is_aggregate};
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::{BigInt, Bool, Integer, Nullable, Text};
use diesel::sqlite::Sqlite;
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::schema::usage_totals;
use crate::sql_types::{Day, Dec, Id, Ts};

/// More keys than this are rare, and a prepared statement for each number of keys would fill the cache.
const MAX_PREPARED_KEYS: usize = 8;

/// The columns of a key.
#[derive(Debug)]
struct KeyColumns<'a> {
    contract_id: Uuid,
    product_no: i32,
    period_start: NaiveDate,
    usage_product_ref: &'a str,
}

impl<'a> KeyColumns<'a> {
    fn of(key: &'a UsageKey) -> Self {
        Self {
            contract_id: key.contract_ref.as_uuid(),
            product_no: i32::from(key.product_no.0),
            period_start: key.period_start,
            usage_product_ref: key.usage_product_ref.as_str(),
        }
    }
}

/// Whether a running total has one of these keys, of which there is at least one, within a customer. A list of
/// rows, because SQLite finds each by its primary key; of conditions joined by OR it makes a scan.
#[derive(Debug)]
pub(crate) struct KeyIn<'a>(Vec<KeyColumns<'a>>);

impl<'a> KeyIn<'a> {
    /// Values per key.
    pub(crate) const BINDS: usize = 4;

    pub(crate) fn of(keys: &'a [UsageKey]) -> Self {
        Self(keys.iter().map(KeyColumns::of).collect())
    }
}

// Without a fixed identity a statement is found again by its text.
impl QueryId for KeyIn<'_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Expression for KeyIn<'_> {
    type SqlType = Bool;
}

impl<G> ValidGrouping<G> for KeyIn<'_> {
    type IsAggregate = is_aggregate::No;
}

impl AppearsOnTable<usage_totals::table> for KeyIn<'_> {}
impl SelectableExpression<usage_totals::table> for KeyIn<'_> {}

/// Replaces one running total: an UPDATE that stays prepared.
#[derive(Debug)]
pub(crate) struct PutTotal<'a> {
    organization: Uuid,
    customer_id: Uuid,
    key: KeyColumns<'a>,
    sum: Decimal,
    events: i64,
    max: Option<Decimal>,
    latest_at: Option<Timestamp>,
    latest_service_date: Option<NaiveDate>,
    latest_event_id: Option<Uuid>,
    latest_quantity: Option<Decimal>,
}

impl<'a> PutTotal<'a> {
    pub(crate) fn new(organization: Uuid, customer_id: Uuid, key: &'a UsageKey, total: &UsageTotal, events: i64) -> Self {
        Self {
            organization,
            customer_id,
            key: KeyColumns::of(key),
            sum: total.sum.as_decimal(),
            events,
            max: total.max.map(|max| max.as_decimal()),
            latest_at: total.latest.map(|latest| latest.occurred_at),
            latest_service_date: total.latest.map(|latest| latest.service_date),
            latest_event_id: total.latest.map(|latest| latest.event_ref.as_uuid()),
            latest_quantity: total.latest.map(|latest| latest.quantity.as_decimal()),
        }
    }
}

impl QueryId for PutTotal<'_> {
    type QueryId = PutTotal<'static>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<C> diesel::RunQueryDsl<C> for PutTotal<'_> {}

macro_rules! key_columns {
    () => {
        "(contract_id, product_no, period_start, usage_product_ref)"
    };
}

macro_rules! fragments {
    ($($backend:ty),+) => {$(
        impl QueryFragment<$backend> for KeyColumns<'_> {
            fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, $backend>) -> QueryResult<()> {
                out.push_sql("(");
                out.push_bind_param::<Id, _>(&self.contract_id)?;
                out.push_sql(", ");
                out.push_bind_param::<Integer, _>(&self.product_no)?;
                out.push_sql(", ");
                out.push_bind_param::<Day, _>(&self.period_start)?;
                out.push_sql(", ");
                out.push_bind_param::<Text, _>(self.usage_product_ref)?;
                out.push_sql(")");
                Ok(())
            }
        }

        impl QueryFragment<$backend> for KeyIn<'_> {
            fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, $backend>) -> QueryResult<()> {
                if self.0.len() > MAX_PREPARED_KEYS {
                    out.unsafe_to_cache_prepared();
                }
                out.push_sql(concat!(key_columns!(), " IN (VALUES "));
                for (i, key) in self.0.iter().enumerate() {
                    if i > 0 {
                        out.push_sql(", ");
                    }
                    key.walk_ast(out.reborrow())?;
                }
                out.push_sql(")");
                Ok(())
            }
        }

        impl QueryFragment<$backend> for PutTotal<'_> {
            fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, $backend>) -> QueryResult<()> {
                out.push_sql("UPDATE usage_totals SET sum = ");
                out.push_bind_param::<Dec, _>(&self.sum)?;
                out.push_sql(", events = ");
                out.push_bind_param::<BigInt, _>(&self.events)?;
                out.push_sql(", max = ");
                out.push_bind_param::<Nullable<Dec>, _>(&self.max)?;
                out.push_sql(", latest_at = ");
                out.push_bind_param::<Nullable<Ts>, _>(&self.latest_at)?;
                out.push_sql(", latest_service_date = ");
                out.push_bind_param::<Nullable<Day>, _>(&self.latest_service_date)?;
                out.push_sql(", latest_event_id = ");
                out.push_bind_param::<Nullable<Id>, _>(&self.latest_event_id)?;
                out.push_sql(", latest_quantity = ");
                out.push_bind_param::<Nullable<Dec>, _>(&self.latest_quantity)?;
                out.push_sql(" WHERE customer_id = ");
                out.push_bind_param::<Id, _>(&self.customer_id)?;
                out.push_sql(" AND organization_id = ");
                out.push_bind_param::<Id, _>(&self.organization)?;
                out.push_sql(concat!(" AND ", key_columns!(), " = "));
                self.key.walk_ast(out)
            }
        }
    )+};
}
fragments!(Pg, Sqlite);
