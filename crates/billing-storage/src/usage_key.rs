//! Statements on running totals that diesel cannot write as prepared statements.

use billing_domain::calendar::Timestamp;
use billing_domain::usage::{UsageKey, UsageTotal};
use chrono::NaiveDate;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::{Array, BigInt, Integer, Nullable, Text};
use diesel::sqlite::Sqlite;
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::sql_types::{Day, Dec, Id, Ts};

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

/// Replaces one running total with a prepared UPDATE.
#[derive(Debug)]
pub(crate) struct PutTotal<'a> {
    organization: Uuid,
    pub(crate) customer_id: Uuid,
    key: KeyColumns<'a>,
    sum: Decimal,
    events: i64,
    max: Option<Decimal>,
    latest_at: Option<Timestamp>,
    latest_service_date: Option<NaiveDate>,
    latest_event_id: Option<Uuid>,
    latest_quantity: Option<Decimal>,
    last_day: Option<NaiveDate>,
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
            last_day: total.last_day,
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
                out.push_sql(", last_day = ");
                out.push_bind_param::<Nullable<Day>, _>(&self.last_day)?;
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

/// Replaces any number of running totals in one prepared statement.
#[derive(Debug, Default)]
pub(crate) struct PutTotals {
    organization: Uuid,
    /// Whether the statement also names the customers by themselves, from which a distributed database finds their nodes.
    names_customers: bool,
    customers: Vec<Uuid>,
    contracts: Vec<Uuid>,
    products: Vec<i32>,
    starts: Vec<NaiveDate>,
    usage_products: Vec<String>,
    sums: Vec<Decimal>,
    events: Vec<i64>,
    max: Vec<Option<Decimal>>,
    latest_at: Vec<Option<Timestamp>>,
    latest_service_dates: Vec<Option<NaiveDate>>,
    latest_event_ids: Vec<Option<Uuid>>,
    latest_quantities: Vec<Option<Decimal>>,
    last_days: Vec<Option<NaiveDate>>,
}

impl PutTotals {
    pub(crate) fn new<'a>(organization: Uuid, totals: impl IntoIterator<Item = PutTotal<'a>>) -> Self {
        let mut all = Self { organization, ..Self::default() };
        for total in totals {
            all.customers.push(total.customer_id);
            all.contracts.push(total.key.contract_id);
            all.products.push(total.key.product_no);
            all.starts.push(total.key.period_start);
            all.usage_products.push(total.key.usage_product_ref.to_owned());
            all.sums.push(total.sum);
            all.events.push(total.events);
            all.max.push(total.max);
            all.latest_at.push(total.latest_at);
            all.latest_service_dates.push(total.latest_service_date);
            all.latest_event_ids.push(total.latest_event_id);
            all.latest_quantities.push(total.latest_quantity);
            all.last_days.push(total.last_day);
        }
        all
    }
}

impl PutTotals {
    /// Names the customers by themselves if the database is distributed.
    pub(crate) fn on_nodes(self, is_spread: bool) -> Self {
        Self { names_customers: is_spread, ..self }
    }

    /// Writes the condition that names the customers of a table.
    fn push_customers<'b>(&'b self, column: &str, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        if self.names_customers {
            for part in [" AND ", column, " = ANY("] {
                out.push_sql(part);
            }
            out.push_bind_param::<Array<Id>, _>(&self.customers)?;
            out.push_sql(")");
        }
        Ok(())
    }

    /// Writes the rows as a table with this name.
    fn push_rows<'b>(&'b self, name: &str, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("unnest(");
        out.push_bind_param::<Array<Id>, _>(&self.customers)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Id>, _>(&self.contracts)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Integer>, _>(&self.products)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Day>, _>(&self.starts)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.usage_products)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Dec>, _>(&self.sums)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<BigInt>, _>(&self.events)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Dec>>, _>(&self.max)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Ts>>, _>(&self.latest_at)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Day>>, _>(&self.latest_service_dates)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Id>>, _>(&self.latest_event_ids)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Dec>>, _>(&self.latest_quantities)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Day>>, _>(&self.last_days)?;
        out.push_sql(") AS ");
        out.push_sql(name);
        out.push_sql(
            " (customer_id, contract_id, product_no, period_start, usage_product_ref, sum, events, max, latest_at, \
             latest_service_date, latest_event_id, latest_quantity, last_day)",
        );
        Ok(())
    }
}

impl QueryId for PutTotals {
    type QueryId = Self;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<C> diesel::RunQueryDsl<C> for PutTotals {}

impl QueryFragment<Pg> for PutTotals {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "UPDATE usage_totals t SET sum = n.sum, events = n.events, max = n.max, latest_at = n.latest_at, \
             latest_service_date = n.latest_service_date, latest_event_id = n.latest_event_id, \
             latest_quantity = n.latest_quantity, last_day = n.last_day FROM ",
        );
        self.push_rows("n", &mut out)?;
        out.push_sql(
            " WHERE t.customer_id = n.customer_id \
             AND t.contract_id = n.contract_id AND t.product_no = n.product_no AND t.period_start = n.period_start \
             AND t.usage_product_ref = n.usage_product_ref AND t.organization_id = ",
        );
        out.push_bind_param::<Id, _>(&self.organization)?;
        self.push_customers("t.customer_id", &mut out)
    }
}

/// Adds the totals of new events to any number of running totals in one statement, locks them in the order of their keys,
/// and returns the totals that it found, with the new events.
#[derive(Debug)]
pub(crate) struct AddTotals(PutTotals);

/// The columns that [`AddTotals`] returns.
pub(crate) type TotalColumns =
    (Id, Integer, Day, Text, Dec, BigInt, Nullable<Dec>, Nullable<Ts>, Nullable<Day>, Nullable<Id>, Nullable<Dec>, Nullable<Day>);

impl AddTotals {
    /// Creates the statement. The totals contain the new events only.
    pub(crate) fn new<'a>(organization: Uuid, added: impl IntoIterator<Item = PutTotal<'a>>) -> Self {
        Self(PutTotals::new(organization, added))
    }

    /// Names the customers by themselves if the database is distributed.
    pub(crate) fn on_nodes(self, is_spread: bool) -> Self {
        Self(self.0.on_nodes(is_spread))
    }
}

// Without a static query id, diesel caches the statement by its text. There is one text for a single total.
impl QueryId for AddTotals {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for AddTotals {
    type SqlType = TotalColumns;
}

impl<C> diesel::RunQueryDsl<C> for AddTotals {}

/// Whether the latest of the new events is later than all earlier ones. An unknown latest event stays unknown.
macro_rules! if_later {
    ($column:literal) => {
        concat!(
            $column,
            " = CASE WHEN t.events = 0 OR (n.latest_at, n.latest_event_id) > (t.latest_at, t.latest_event_id) THEN n.",
            $column,
            " ELSE t.",
            $column,
            " END"
        )
    };
}

/// The greater value. An unknown one stays unknown.
macro_rules! if_greater {
    ($column:literal) => {
        concat!(
            $column,
            " = CASE WHEN t.events = 0 OR n.",
            $column,
            " > t.",
            $column,
            " THEN n.",
            $column,
            " ELSE t.",
            $column,
            " END"
        )
    };
}

impl QueryFragment<Pg> for AddTotals {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let Self(added) = self;
        let is_one = added.customers.len() == 1;
        if !is_one {
            // An UPDATE locks rows in no particular order, so that two transactions could wait for each other.
            out.push_sql("WITH n AS MATERIALIZED (SELECT a.* FROM ");
            added.push_rows("a", &mut out)?;
            out.push_sql(
                " JOIN usage_totals h ON h.customer_id = a.customer_id AND h.contract_id = a.contract_id \
                 AND h.product_no = a.product_no AND h.period_start = a.period_start \
                 AND h.usage_product_ref = a.usage_product_ref WHERE h.organization_id = ",
            );
            out.push_bind_param::<Id, _>(&added.organization)?;
            added.push_customers("h.customer_id", &mut out)?;
            out.push_sql(" ORDER BY h.contract_id, h.product_no, h.period_start, h.usage_product_ref FOR UPDATE OF h) ");
        }
        out.push_sql(concat!(
            "UPDATE usage_totals t SET sum = t.sum + n.sum, events = t.events + n.events, ",
            if_greater!("max"),
            ", ",
            if_later!("latest_at"),
            ", ",
            if_later!("latest_service_date"),
            ", ",
            if_later!("latest_event_id"),
            ", ",
            if_later!("latest_quantity"),
            ", ",
            if_greater!("last_day"),
            " FROM ",
        ));
        if is_one {
            added.push_rows("n", &mut out)?;
        } else {
            out.push_sql("n");
        }
        out.push_sql(
            " WHERE t.customer_id = n.customer_id AND t.contract_id = n.contract_id AND t.product_no = n.product_no \
             AND t.period_start = n.period_start AND t.usage_product_ref = n.usage_product_ref AND t.organization_id = ",
        );
        out.push_bind_param::<Id, _>(&added.organization)?;
        added.push_customers("t.customer_id", &mut out)?;
        out.push_sql(
            " RETURNING t.contract_id, t.product_no, t.period_start, t.usage_product_ref, t.sum, t.events, t.max, \
             t.latest_at, t.latest_service_date, t.latest_event_id, t.latest_quantity, t.last_day",
        );
        Ok(())
    }
}
