//! Finds the service periods that have events on a document, with a query that diesel cannot express.
//!
//! No index contains events by document. The query walks the index by period and then document from period to period,
//! independent of the number of events between them. In each period it checks whether the document occurs. Every step
//! reads the first row in an order that only this index has. Otherwise PostgreSQL could scan the table for the first
//! row when it estimates that the document is common, and a document without events has no such row.

use billing_domain::refs::DocumentKey;
use diesel::sql_types::Integer;

use crate::sql_types::Day;
use crate::statement::Statement;

/// Returns a query for the products and first days of the service periods with events on a document, including deleted events.
pub(crate) fn document_periods(key: DocumentKey) -> Statement<(Integer, Day)> {
    let mut s = Statement::new("WITH RECURSIVE wanted AS (SELECT document_id, contract_id FROM documents WHERE document_id = ");
    s.id(key.document.as_uuid()).sql(" AND customer_id = ").id(key.customer.as_uuid());
    s.sql(" AND organization_id = ").id(key.organization.as_uuid());
    // The events of a row's contract, under the names of the walk's tables.
    let events = |s: &mut Statement<_>, contract: &'static str| {
        s.sql(" FROM usage_events e WHERE e.customer_id = ")
            .id(key.customer.as_uuid())
            .sql(" AND e.contract_id = ")
            .sql(contract);
    };
    // From product to product.
    s.sql("), products (contract_id, product_no) AS (SELECT w.contract_id, (SELECT e.product_no");
    events(&mut s, "w.contract_id");
    s.sql(" ORDER BY e.product_no LIMIT 1) FROM (SELECT DISTINCT contract_id FROM wanted) w");
    s.sql(" UNION ALL SELECT p.contract_id, (SELECT e.product_no");
    events(&mut s, "p.contract_id");
    s.sql(" AND e.product_no > p.product_no ORDER BY e.product_no LIMIT 1) FROM products p WHERE p.product_no IS NOT NULL");
    // From period to period of each product.
    s.sql("), periods (contract_id, product_no, service_start) AS (SELECT p.contract_id, p.product_no, (SELECT e.service_start");
    events(&mut s, "p.contract_id");
    s.sql(" AND e.product_no = p.product_no ORDER BY e.service_start LIMIT 1) FROM products p");
    s.sql(" WHERE p.product_no IS NOT NULL UNION ALL SELECT p.contract_id, p.product_no, (SELECT e.service_start");
    events(&mut s, "p.contract_id");
    s.sql(" AND e.product_no = p.product_no AND e.service_start > p.service_start");
    s.sql(" ORDER BY e.service_start LIMIT 1) FROM periods p WHERE p.service_start IS NOT NULL) ");
    s.sql("SELECT p.product_no, p.service_start FROM periods p JOIN wanted w ON w.contract_id = p.contract_id");
    // The document has events in the period.
    s.sql(" WHERE p.service_start IS NOT NULL AND (SELECT e.document_id");
    events(&mut s, "p.contract_id");
    s.sql(" AND e.product_no = p.product_no AND e.service_start = p.service_start AND e.document_id >= w.document_id");
    s.sql(" ORDER BY e.document_id LIMIT 1) = w.document_id");
    s
}
