//! The service periods that have events on a document: a query that diesel can't write.

use billing_domain::refs::{CustomerId, DocumentRef, OrganizationId};
use diesel::backend::Backend;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::serialize::ToSql;
use diesel::sql_types::{HasSqlType, Integer};
use diesel::sqlite::Sqlite;
use uuid::Uuid;

use crate::sql_types::{Day, Id};

/// Products and first days of the service periods that have events on a document.
///
/// There is no index of events by document. The one there is, by period and then document, is walked from period to
/// period, whatever the number of events between them, and in each period it tells whether the document is there.
/// Every step is the first row of an order that only the index has: PostgreSQL would go through the table for a
/// first row without one, where it takes the document for a common one, and a document without events has none.
#[derive(Debug)]
pub(crate) struct PeriodsOnDocument {
    organization: Uuid,
    customer_id: Uuid,
    document_id: Uuid,
    events: Which,
}

/// Which events count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Deleted ones, too.
    All,
    /// Those that aren't deleted; one period is enough.
    AnyLive,
}

impl PeriodsOnDocument {
    pub(crate) fn new(organization: OrganizationId, customer_id: CustomerId, document_ref: DocumentRef, events: Which) -> Self {
        Self {
            organization: organization.as_uuid(),
            customer_id: customer_id.as_uuid(),
            document_id: document_ref.as_uuid(),
            events,
        }
    }
}

// Without a fixed identity a statement is found again by its text.
impl QueryId for PeriodsOnDocument {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for PeriodsOnDocument {
    type SqlType = (Integer, Day);
}

impl<C> diesel::RunQueryDsl<C> for PeriodsOnDocument {}

/// The events of the document's contract.
fn events<'b, DB>(of: &'b PeriodsOnDocument, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()>
where
    DB: Backend + HasSqlType<Id>,
    Uuid: ToSql<Id, DB>,
{
    out.push_sql(" FROM usage_events e WHERE e.customer_id = ");
    out.push_bind_param::<Id, _>(&of.customer_id)?;
    out.push_sql(" AND e.contract_id = (SELECT contract_id FROM document)");
    Ok(())
}

macro_rules! fragments {
    ($($backend:ty),+) => {$(
        impl QueryFragment<$backend> for PeriodsOnDocument {
            fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, $backend>) -> QueryResult<()> {
                out.push_sql("WITH RECURSIVE document AS (SELECT contract_id FROM documents WHERE document_id = ");
                out.push_bind_param::<Id, _>(&self.document_id)?;
                out.push_sql(" AND customer_id = ");
                out.push_bind_param::<Id, _>(&self.customer_id)?;
                out.push_sql(" AND organization_id = ");
                out.push_bind_param::<Id, _>(&self.organization)?;
                // From product to product.
                out.push_sql("), products (product_no) AS (SELECT (SELECT e.product_no");
                events(self, &mut out)?;
                out.push_sql(" ORDER BY e.product_no LIMIT 1) UNION ALL SELECT (SELECT e.product_no");
                events(self, &mut out)?;
                out.push_sql(" AND e.product_no > products.product_no ORDER BY e.product_no LIMIT 1) FROM products");
                out.push_sql(" WHERE products.product_no IS NOT NULL");
                // From period to period of each.
                out.push_sql("), periods (product_no, service_start) AS (SELECT products.product_no, (SELECT e.service_start");
                events(self, &mut out)?;
                out.push_sql(" AND e.product_no = products.product_no ORDER BY e.service_start LIMIT 1) FROM products");
                out.push_sql(" WHERE products.product_no IS NOT NULL UNION ALL SELECT periods.product_no, (SELECT e.service_start");
                events(self, &mut out)?;
                out.push_sql(" AND e.product_no = periods.product_no AND e.service_start > periods.service_start");
                out.push_sql(" ORDER BY e.service_start LIMIT 1) FROM periods WHERE periods.service_start IS NOT NULL");
                // Those of them that the document is in.
                out.push_sql(") SELECT product_no, service_start FROM periods WHERE service_start IS NOT NULL AND (SELECT e.document_id");
                events(self, &mut out)?;
                out.push_sql(" AND e.product_no = periods.product_no AND e.service_start = periods.service_start AND e.document_id >= ");
                out.push_bind_param::<Id, _>(&self.document_id)?;
                if self.events == Which::AnyLive {
                    out.push_sql(" AND NOT e.deleted");
                }
                out.push_sql(" ORDER BY e.document_id LIMIT 1) = ");
                out.push_bind_param::<Id, _>(&self.document_id)?;
                if self.events == Which::AnyLive {
                    out.push_sql(" LIMIT 1");
                }
                Ok(())
            }
        }
    )+};
}
fragments!(Pg, Sqlite);
