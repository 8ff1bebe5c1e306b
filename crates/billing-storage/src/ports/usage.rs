//! Arriving usage events: the hot path, with [`running_totals`](super::running_totals).
//! [`event_changes`](super::event_changes) changes events.

use std::collections::BTreeSet;

use billing_domain::catalog::UsageProduct;
use billing_domain::party::Customer;
use billing_domain::ports::{Customers as _, StoreResult, UsageEvents, UsageProducts as _};
use billing_domain::refs::{CustomerId, CustomerRef, EventRef, OrganizationId, UsageProductRef};
use billing_domain::usage::UsageEvent;
use diesel::prelude::*;
use uuid::Uuid;

use super::catalog::UsageProductRow;
use super::document_rows::DRAFT;
use super::event_rows::{EventRow, columns_of, digest_column, key_columns};
use super::owned;
use super::parties::CustomerRow;
use crate::in_list::{also_one_of_ids, one_of_ids};
use crate::row::{Cell, Row};
use crate::schema::{customers, documents, usage_events, usage_products};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};
use crate::written_rows::InsertRows;

/// Returns the events that belong to the organization, by reference.
fn read_events(organization: OrganizationId, found: Vec<(EventRow, Cell<Uuid>)>) -> StoreResult<Vec<UsageEvent>> {
    let found = owned("usage_events", organization, found)?;
    let mut found = found.into_iter().map(EventRow::read).collect::<StoreResult<Vec<_>>>()?;
    found.sort_by_key(|event| event.event_ref);
    Ok(found)
}

/// The condition that the document of the row `n` is a draft. A scalar query, because PostgreSQL can turn EXISTS into a scan of
/// all documents.
const ON_A_DRAFT: &str = " WHERE (SELECT documents.lifecycle FROM documents WHERE documents.document_id = n.document_id \
    AND documents.customer_id = n.customer_id) = 'DRAFT'";

/// The same for distributed databases.
const WITH_A_DRAFT: &str = "documents j ON j.document_id = n.document_id AND j.lifecycle = 'DRAFT'";

impl Transaction<'_> {
    /// Inserts events and returns their number. On PostgreSQL, skips those whose reference is in use or that do not meet the
    /// condition.
    fn store_events(&mut self, events: &[UsageEvent], on_drafts: bool) -> StoreResult<usize> {
        let events: Vec<&UsageEvent> = events.iter().collect();
        let has_digest = events.iter().any(|event| event.unique_digest.is_some());
        let digests = if has_digest { digest_column(&events) } else { Vec::new() };
        let columns = key_columns(&events).into_iter().chain(columns_of(&events)?).chain(digests).collect();
        let insert = InsertRows::new("usage_events", columns);
        self.insert_rows(match (on_drafts, self.is_spread) {
            (false, _) => insert,
            (true, false) => insert.only(ON_A_DRAFT),
            (true, true) => insert.joining(WITH_A_DRAFT),
        })
    }

    /// Returns whether the documents of all events are drafts.
    fn are_drafts(&mut self, events: &[UsageEvent]) -> StoreResult<bool> {
        let of_events: BTreeSet<(Uuid, Uuid)> =
            events.iter().map(|event| (event.placement.document_ref.as_uuid(), event.customer_id.as_uuid())).collect();
        for (document_id, customer_id) in of_events {
            let lifecycle: Option<String> = with_conn!(self, "documents", |conn| documents::table
                .find((Bound(document_id), Bound(customer_id)))
                .select(documents::lifecycle)
                .first(conn)
                .optional())?;
            if lifecycle.as_deref() != Some(DRAFT) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl UsageEvents for Transaction<'_> {
    fn named_by_events(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerRef],
        usage_products: &[UsageProductRef],
    ) -> StoreResult<(Vec<Customer>, Vec<UsageProduct>)> {
        // A single event names one of each, and nearly always both exist.
        if let ([customer], [product], false) = (customers, usage_products, self.is_spread) {
            let rows: Vec<(CustomerRow, UsageProductRow)> = with_conn!(self, "customers", |conn| customers::table
                .inner_join(usage_products::table.on(usage_products::organization_id.eq(customers::organization_id)))
                .filter(customers::organization_id.eq(Bound(organization.as_uuid())))
                .filter(customers::customer_ref.eq(customer.as_str()))
                .filter(usage_products::usage_product_ref.eq(product.as_str()))
                .select((CustomerRow::as_select(), UsageProductRow::as_select()))
                .load(conn))?;
            if let Some((customer, product)) = rows.into_iter().next() {
                return Ok((vec![customer.read()?], vec![product.read()?]));
            }
        }
        let found = if customers.is_empty() { Vec::new() } else { self.customers_by_refs(organization, customers)? };
        let products =
            if usage_products.is_empty() { Vec::new() } else { self.usage_products_by_refs(organization, usage_products)? };
        Ok((found, products))
    }

    fn insert_events(&mut self, _organization: OrganizationId, events: &[UsageEvent]) -> StoreResult<()> {
        if self.store_events(events, false)? < events.len() {
            return self.refuse("usage_events: a reference is in use".to_owned());
        }
        Ok(())
    }

    fn insert_events_on_drafts(&mut self, organization: OrganizationId, events: &[UsageEvent]) -> StoreResult<bool> {
        // On PostgreSQL the insert itself checks the documents.
        if self.with_arrays().is_none() {
            return if self.are_drafts(events)? { self.insert_events(organization, events).map(|()| true) } else { Ok(false) };
        }
        if self.store_events(events, true)? == events.len() {
            return Ok(true);
        }
        if self.are_drafts(events)? {
            return self.refuse("usage_events: a reference is in use".to_owned());
        }
        Ok(false)
    }

    fn event(&mut self, organization: OrganizationId, event_ref: EventRef) -> StoreResult<Option<UsageEvent>> {
        Ok(self.events_by_refs(organization, &[event_ref])?.pop())
    }

    fn events_by_refs(&mut self, organization: OrganizationId, events: &[EventRef]) -> StoreResult<Vec<UsageEvent>> {
        let found = with_conn!(self, "usage_events", |conn| usage_events::table
            .inner_join(customers::table.on(customers::customer_id.eq(usage_events::customer_id)))
            .filter(one_of_ids(usage_events::event_id, events.iter().map(|event| event.as_uuid())))
            .select((EventRow::as_select(), customers::organization_id))
            .load(conn))?;
        read_events(organization, found)
    }

    fn events_of_customers(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        events: &[EventRef],
    ) -> StoreResult<Vec<UsageEvent>> {
        let found = with_conn!(self, "usage_events", |conn| usage_events::table
            .inner_join(customers::table.on(customers::customer_id.eq(usage_events::customer_id)))
            .filter(one_of_ids(usage_events::event_id, events.iter().map(|event| event.as_uuid())))
            .filter(
                also_one_of_ids(usage_events::customer_id, customers.iter().map(|customer| customer.as_uuid()))
                    .joining("customers.customer_id", self.is_spread)
            )
            .select((EventRow::as_select(), customers::organization_id))
            .load(conn))?;
        read_events(organization, found)
    }

    fn known_events(&mut self, organization: OrganizationId, events: &[EventRef]) -> StoreResult<BTreeSet<EventRef>> {
        let found: Vec<(Cell<Uuid>, Cell<Uuid>)> = with_conn!(self, "usage_events", |conn| usage_events::table
            .inner_join(customers::table.on(customers::customer_id.eq(usage_events::customer_id)))
            .filter(one_of_ids(usage_events::event_id, events.iter().map(|event| event.as_uuid())))
            .select((usage_events::event_id, customers::organization_id))
            .load(conn))?;
        let found = owned("usage_events", organization, found)?;
        let read = |id: Cell<Uuid>| Row::new("usage_events", id.clone()).cell("event_id", id).map(EventRef::from_uuid);
        found.into_iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use billing_domain::idempotency::IdempotencyKey;
    use billing_domain::ports::{EventChanges as _, EventKeys as _, UsageEvents as _};
    use billing_domain::refs::{CustomerId, EventRef, OrganizationId};
    use uuid::Uuid;

    use crate::query_plans::plans_of;

    #[test]
    fn events_are_found_by_their_references_and_keys_without_a_walk_through_the_customers() {
        let organization = OrganizationId::from_uuid(Uuid::from_u128(1));
        let event = EventRef::from_uuid(Uuid::from_u128(2));
        let key = |n| (CustomerId::from_uuid(Uuid::from_u128(n)), IdempotencyKey::parse("k").expect("a key"));
        let plans = plans_of(|tx| {
            assert_eq!(tx.event(organization, event).expect("a look-up"), None);
            assert!(tx.known_events(organization, &[event]).expect("a look-up").is_empty());
            let customers = [3, 4].map(|id| CustomerId::from_uuid(Uuid::from_u128(id)));
            assert_eq!(tx.events_of_customers(organization, &customers, &[event]).expect("a look-up"), []);
            assert!(tx.superseded_revisions(organization, &customers, &[event]).expect("a look-up").is_empty());
            assert!(tx.event_key_records(organization, &[key(3), key(4), key(5)]).expect("a look-up").is_empty());
        });
        assert_eq!(plans.len(), 5);
        for plan in plans {
            let walks =
                |step: &String| step.starts_with("SCAN") && !step.contains("json_each") && !step.contains("VALUES CLAUSE");
            assert!(!plan.steps.iter().any(|step| walks(step) || step.contains("organization_id")), "{plan:?}");
            assert!(plan.steps.iter().any(|step| step.starts_with("SEARCH customers USING")), "{plan:?}");
        }
    }
}
