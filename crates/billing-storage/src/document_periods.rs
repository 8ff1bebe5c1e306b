//! Finds the service periods that have events on a document, with a query that diesel cannot express.
//!
//! No index contains events by document. The query walks the index by period and then document from period to period,
//! independent of the number of events between them. In each period it checks whether the document occurs. Every step
//! reads the first row in an order that only this index has. Otherwise PostgreSQL could scan the table for the first
//! row when it estimates that the document is common, and a document without events has no such row.

use billing_domain::refs::DocumentKey;
use diesel::backend::Backend;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::serialize::ToSql;
use diesel::sql_types::{HasSqlType, Integer};
use diesel::sqlite::Sqlite;
use uuid::Uuid;

use crate::sql_types::{Day, Id};

/// A query for the products and first days of the service periods with events on a document, including deleted events.
#[derive(Debug)]
pub(crate) struct DocumentPeriodsQuery(RequestedDocument);

/// The requested document.
#[derive(Debug)]
struct RequestedDocument {
    organization: Uuid,
    customer_id: Uuid,
    document_id: Uuid,
}

impl DocumentPeriodsQuery {
    pub(crate) fn new(key: DocumentKey) -> Self {
        Self(RequestedDocument {
            organization: key.organization.as_uuid(),
            customer_id: key.customer.as_uuid(),
            document_id: key.document.as_uuid(),
        })
    }
}

impl QueryId for DocumentPeriodsQuery {
    type QueryId = Self;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl Query for DocumentPeriodsQuery {
    type SqlType = (Integer, Day);
}

impl<C> diesel::RunQueryDsl<C> for DocumentPeriodsQuery {}

/// Writes the events of a row's contract, under the names of the walk's tables.
fn events<'b, DB>(of: &'b RequestedDocument, row: &str, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()>
where
    DB: Backend + HasSqlType<Id>,
    Uuid: ToSql<Id, DB>,
{
    out.push_sql(" FROM usage_events e WHERE e.customer_id = ");
    out.push_bind_param::<Id, _>(&of.customer_id)?;
    for part in [" AND e.contract_id = ", row, ".contract_id"] {
        out.push_sql(part);
    }
    Ok(())
}

/// Writes the walk: the document as `wanted`, and the periods of its contract as `periods`.
fn walk<'b, DB>(of: &'b RequestedDocument, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()>
where
    DB: Backend + HasSqlType<Id>,
    Uuid: ToSql<Id, DB>,
{
    out.push_sql("WITH RECURSIVE wanted AS (SELECT document_id, contract_id FROM documents WHERE document_id = ");
    out.push_bind_param::<Id, _>(&of.document_id)?;
    out.push_sql(" AND customer_id = ");
    out.push_bind_param::<Id, _>(&of.customer_id)?;
    out.push_sql(" AND organization_id = ");
    out.push_bind_param::<Id, _>(&of.organization)?;
    // From product to product.
    out.push_sql("), products (contract_id, product_no) AS (SELECT w.contract_id, (SELECT e.product_no");
    events(of, "w", out)?;
    out.push_sql(" ORDER BY e.product_no LIMIT 1) FROM (SELECT DISTINCT contract_id FROM wanted) w");
    out.push_sql(" UNION ALL SELECT p.contract_id, (SELECT e.product_no");
    events(of, "p", out)?;
    out.push_sql(
        " AND e.product_no > p.product_no ORDER BY e.product_no LIMIT 1) FROM products p WHERE p.product_no IS NOT NULL",
    );
    // From period to period of each product.
    out.push_sql(
        "), periods (contract_id, product_no, service_start) AS (SELECT p.contract_id, p.product_no, (SELECT e.service_start",
    );
    events(of, "p", out)?;
    out.push_sql(" AND e.product_no = p.product_no ORDER BY e.service_start LIMIT 1) FROM products p");
    out.push_sql(" WHERE p.product_no IS NOT NULL UNION ALL SELECT p.contract_id, p.product_no, (SELECT e.service_start");
    events(of, "p", out)?;
    out.push_sql(" AND e.product_no = p.product_no AND e.service_start > p.service_start");
    out.push_sql(" ORDER BY e.service_start LIMIT 1) FROM periods p WHERE p.service_start IS NOT NULL) ");
    Ok(())
}

/// Writes the condition that a document has events in a period.
fn of_periods<'b, DB>(of: &'b RequestedDocument, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()>
where
    DB: Backend + HasSqlType<Id>,
    Uuid: ToSql<Id, DB>,
{
    out.push_sql(" FROM periods p JOIN wanted w ON w.contract_id = p.contract_id");
    out.push_sql(" WHERE p.service_start IS NOT NULL AND (SELECT e.document_id");
    events(of, "p", out)?;
    out.push_sql(" AND e.product_no = p.product_no AND e.service_start = p.service_start AND e.document_id >= w.document_id");
    out.push_sql(" ORDER BY e.document_id LIMIT 1) = w.document_id");
    Ok(())
}

macro_rules! fragments {
    ($($backend:ty),+) => {$(
        impl QueryFragment<$backend> for DocumentPeriodsQuery {
            fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, $backend>) -> QueryResult<()> {
                walk(&self.0, &mut out)?;
                out.push_sql("SELECT p.product_no, p.service_start");
                of_periods(&self.0, &mut out)
            }
        }
    )+};
}
fragments!(Pg, Sqlite);
