//! Statements on running totals that diesel cannot write as prepared statements.

use std::fmt;

use billing_domain::calendar::Timestamp;
use billing_domain::ports::{LabelOfTotal, StoreResult};
use billing_domain::refs::LineItemId;
use billing_domain::usage::{UsageKey, UsageTotal};
use chrono::NaiveDate;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, QueryFragment};
use diesel::result::QueryResult;
use diesel::sql_types::{BigInt, Integer, Nullable, Text};
use diesel::sqlite::Sqlite;
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::hand_written::statement;
use crate::ports::stored;
use crate::sql_types::{Day, Dec, Id, Ts};
use crate::written_rows::{Columns, RowBackend as _, UpdateRows, checked_column, column, push_rows};

/// The columns of a key.
#[derive(Debug)]
pub(crate) struct KeyColumns<'a> {
    contract_id: Uuid,
    product_no: i32,
    period_start: NaiveDate,
    usage_product_ref: &'a str,
    line_item_id: &'a str,
}

/// Returns the stored line item of a key. A key cannot contain NULL.
pub(crate) fn stored_line_item(key: &UsageKey) -> &str {
    key.line_item_id.as_ref().map_or("", LineItemId::as_str)
}

/// Names the row in error messages.
impl fmt::Display for KeyColumns<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.contract_id, self.product_no, self.usage_product_ref)
    }
}

impl<'a> KeyColumns<'a> {
    pub(crate) fn of(key: &'a UsageKey) -> Self {
        Self {
            contract_id: key.contract_ref.as_uuid(),
            product_no: i32::from(key.product_no.0),
            period_start: key.period_start,
            usage_product_ref: key.usage_product_ref.as_str(),
            line_item_id: stored_line_item(key),
        }
    }
}

/// Reads one running total with a prepared SELECT.
#[derive(Debug)]
pub(crate) struct FindTotal<'a> {
    organization: Uuid,
    customer_id: Uuid,
    key: KeyColumns<'a>,
}

impl<'a> FindTotal<'a> {
    pub(crate) fn new(organization: Uuid, customer_id: Uuid, key: &'a UsageKey) -> Self {
        Self { organization, customer_id, key: KeyColumns::of(key) }
    }
}

/// The columns of a total besides its key.
pub(crate) type ValueColumns =
    (Dec, BigInt, Nullable<Dec>, Nullable<Ts>, Nullable<Day>, Nullable<Id>, Nullable<Dec>, Nullable<Day>, Nullable<BigInt>);

statement!(['a,] FindTotal<'a> = FindTotal<'static> => ValueColumns);

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
    distinct_values: Option<i64>,
}

impl<'a> PutTotal<'a> {
    pub(crate) fn new(organization: Uuid, customer_id: Uuid, key: &'a UsageKey, total: &UsageTotal) -> StoreResult<Self> {
        Ok(Self {
            organization,
            customer_id,
            key: KeyColumns::of(key),
            sum: total.sum.as_decimal(),
            events: stored(total.events)?,
            max: total.max.map(|max| max.as_decimal()),
            latest_at: total.latest.map(|latest| latest.occurred_at),
            latest_service_date: total.latest.map(|latest| latest.service_date),
            latest_event_id: total.latest.map(|latest| latest.event_ref.as_uuid()),
            latest_quantity: total.latest.map(|latest| latest.quantity.as_decimal()),
            last_day: total.last_day,
            distinct_values: total.distinct.map(stored).transpose()?,
        })
    }
}

statement!(['a,] PutTotal<'a> = PutTotal<'static>);

macro_rules! key_columns {
    () => {
        "(contract_id, product_no, period_start, usage_product_ref, line_item_id)"
    };
}

macro_rules! value_columns {
    () => {
        "sum, events, max, latest_at, latest_service_date, latest_event_id, latest_quantity, last_day, distinct_values"
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
                out.push_sql(", ");
                out.push_bind_param::<Text, _>(self.line_item_id)?;
                out.push_sql(")");
                Ok(())
            }
        }

        impl QueryFragment<$backend> for FindTotal<'_> {
            fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, $backend>) -> QueryResult<()> {
                out.push_sql(concat!("SELECT ", value_columns!(), " FROM usage_totals WHERE customer_id = "));
                out.push_bind_param::<Id, _>(&self.customer_id)?;
                out.push_sql(" AND organization_id = ");
                out.push_bind_param::<Id, _>(&self.organization)?;
                out.push_sql(concat!(" AND ", key_columns!(), " = "));
                self.key.walk_ast(out)
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
                out.push_sql(", distinct_values = ");
                out.push_bind_param::<Nullable<BigInt>, _>(&self.distinct_values)?;
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

/// Returns the columns of the keys of running totals, and of their values that new events add to.
fn columns_of(totals: &[PutTotal<'_>]) -> (Columns, Columns) {
    let keys = vec![
        ("customer_id", column(totals, |total| total.customer_id)),
        ("contract_id", column(totals, |total| total.key.contract_id)),
        ("product_no", column(totals, |total| total.key.product_no)),
        ("period_start", column(totals, |total| total.key.period_start)),
        ("usage_product_ref", column(totals, |total| total.key.usage_product_ref)),
        ("line_item_id", column(totals, |total| total.key.line_item_id)),
    ];
    let values = vec![
        ("sum", column(totals, |total| total.sum)),
        ("events", column(totals, |total| total.events)),
        ("max", column(totals, |total| total.max)),
        ("latest_at", column(totals, |total| total.latest_at)),
        ("latest_service_date", column(totals, |total| total.latest_service_date)),
        ("latest_event_id", column(totals, |total| total.latest_event_id)),
        ("latest_quantity", column(totals, |total| total.latest_quantity)),
        ("last_day", column(totals, |total| total.last_day)),
    ];
    (keys, values)
}

/// Replaces any number of running totals.
pub(crate) fn put_totals(totals: &[PutTotal<'_>]) -> UpdateRows {
    let (mut keys, mut values) = columns_of(totals);
    keys.push(("organization_id", column(totals, |total| total.organization)));
    values.push(("distinct_values", column(totals, |total| total.distinct_values)));
    UpdateRows::new("usage_totals", keys, values)
}

/// Adds the totals of new events to any number of running totals in one statement, locks them in the order of their keys,
/// and returns the totals that it found, with the new events.
#[derive(Debug)]
pub(crate) struct AddTotals {
    organization: Uuid,
    /// Whether the statement also names the customers by themselves, from which a distributed database finds their nodes.
    names_customers: bool,
    columns: Columns,
    is_one: bool,
}

/// The columns that [`AddTotals`] returns.
pub(crate) type TotalColumns = (Id, Integer, Day, Text, Text, ValueColumns);

impl AddTotals {
    /// Creates the statement. The totals contain the new events only.
    pub(crate) fn new(organization: Uuid, added: &[PutTotal<'_>], is_spread: bool) -> Self {
        let (mut columns, values) = columns_of(added);
        columns.extend(values);
        Self { organization, names_customers: is_spread, columns, is_one: added.len() == 1 }
    }

    /// Writes the condition that names the customers of a table.
    fn push_customers<'b>(&'b self, column: &str, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        if let (true, Some(customers)) = (self.names_customers, self.columns.first()) {
            for part in [" AND ", column, " = ANY("] {
                out.push_sql(part);
            }
            Pg::push_array(customers, 0, out)?;
            out.push_sql(")");
        }
        Ok(())
    }
}

// There is one text for a single total, and one for several.
statement!([] AddTotals => TotalColumns);

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
        if !self.is_one {
            // An UPDATE locks rows in no particular order, so that two transactions could wait for each other.
            out.push_sql("WITH n AS MATERIALIZED (SELECT a.* FROM ");
            push_rows(&self.columns, "a", &mut out)?;
            out.push_sql(
                " JOIN usage_totals h ON h.customer_id = a.customer_id AND h.contract_id = a.contract_id \
                 AND h.product_no = a.product_no AND h.period_start = a.period_start \
                 AND h.usage_product_ref = a.usage_product_ref AND h.line_item_id = a.line_item_id WHERE h.organization_id = ",
            );
            out.push_bind_param::<Id, _>(&self.organization)?;
            self.push_customers("h.customer_id", &mut out)?;
            out.push_sql(
                " ORDER BY h.contract_id, h.product_no, h.period_start, h.usage_product_ref, h.line_item_id \
                 FOR UPDATE OF h) ",
            );
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
        if self.is_one {
            push_rows(&self.columns, "n", &mut out)?;
        } else {
            out.push_sql("n");
        }
        out.push_sql(
            " WHERE t.customer_id = n.customer_id AND t.contract_id = n.contract_id AND t.product_no = n.product_no \
             AND t.period_start = n.period_start AND t.usage_product_ref = n.usage_product_ref \
             AND t.line_item_id = n.line_item_id AND t.organization_id = ",
        );
        out.push_bind_param::<Id, _>(&self.organization)?;
        self.push_customers("t.customer_id", &mut out)?;
        out.push_sql(
            " RETURNING t.contract_id, t.product_no, t.period_start, t.usage_product_ref, t.line_item_id, t.sum, t.events, t.max, \
             t.latest_at, t.latest_service_date, t.latest_event_id, t.latest_quantity, t.last_day, t.distinct_values",
        );
        Ok(())
    }
}

/// Counts the events that have the texts of labels, each up to a limit, on PostgreSQL. Returns the position of each text.
#[derive(Debug)]
pub(crate) struct CountLabels {
    /// Whether the statement also names the customers by themselves, from which a distributed database finds their nodes.
    names_customers: bool,
    columns: Columns,
    up_to: i64,
}

impl CountLabels {
    pub(crate) fn new(asked: &[(usize, &LabelOfTotal)], up_to: i64, is_spread: bool) -> StoreResult<Self> {
        let columns = vec![
            ("customer_id", column(asked, |(_, (customer_id, ..))| customer_id.as_uuid())),
            ("position", checked_column(asked, |(position, _)| stored::<i32, _>(*position))?),
            ("contract_id", column(asked, |(_, (_, key, _))| key.contract_ref.as_uuid())),
            ("product_no", column(asked, |(_, (_, key, _))| i32::from(key.product_no.0))),
            ("service_start", column(asked, |(_, (_, key, _))| key.period_start)),
            ("usage_product_ref", column(asked, |(_, (_, key, _))| key.usage_product_ref.as_str())),
            ("unique_digest", column(asked, |(_, (.., digest))| digest.as_uuid())),
        ];
        Ok(Self { names_customers: is_spread, columns, up_to })
    }
}

statement!([] CountLabels => (Integer, BigInt));

impl QueryFragment<Pg> for CountLabels {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "SELECT n.position, (SELECT count(*) FROM (SELECT FROM usage_events e WHERE e.contract_id = n.contract_id \
             AND e.product_no = n.product_no AND e.service_start = n.service_start \
             AND e.usage_product_ref = n.usage_product_ref AND e.unique_digest = n.unique_digest AND NOT e.deleted \
             AND e.customer_id = n.customer_id",
        );
        if let (true, Some(customers)) = (self.names_customers, self.columns.first()) {
            out.push_sql(" AND e.customer_id = ANY(");
            Pg::push_array(customers, 0, &mut out)?;
            out.push_sql(")");
        }
        out.push_sql(" LIMIT ");
        out.push_bind_param::<BigInt, _>(&self.up_to)?;
        out.push_sql(") f) FROM ");
        push_rows(&self.columns, "n", &mut out)
    }
}
