//! Changes of events: their next revisions, and the documents they stand on.

use billing_domain::ports::{EventChanges, StoreResult};
use billing_domain::refs::{CustomerId, DocumentKey, DocumentRef, EventRef, OrganizationId, ProductNo};
use billing_domain::usage::UsageEvent;
use chrono::NaiveDate;
use diesel::dsl::{exists, not};
use diesel::prelude::*;
use uuid::Uuid;

use super::document_rows::{ISSUED, UNCOLLECTIBLE};
use super::event_keys::answered_document;
use super::event_rows::{NewEvent, NewRevision, RevisionRow};
use super::{owned, stored};
use crate::failure::Failure;
use crate::on_document::PeriodsOnDocument;
use crate::one_of::{also_one_of_ids, one_of_ids};
use crate::row::{Cell, Row};
use crate::schema::{customers, documents, usage_event_revisions, usage_events};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};

/// A product and a period's first day.
type PeriodRow = (i32, Cell<NaiveDate>);

impl EventChanges for Transaction<'_> {
    fn revise_event(&mut self, organization: OrganizationId, superseded: &UsageEvent, revised: &UsageEvent) -> StoreResult<()> {
        let key = (Bound(superseded.event_ref.as_uuid()), Bound(superseded.customer_id.as_uuid()));
        let revision: i32 = stored(superseded.revision)?;
        let (row, kept) = (NewEvent::of(revised)?, NewRevision::of(superseded)?);
        // The revision is tested in the statement that replaces it.
        let changed = with_conn!(self, "usage_events", |conn| {
            let own = customers::table
                .filter(customers::organization_id.eq(Bound(organization.as_uuid())))
                .filter(customers::customer_id.eq(Bound(superseded.customer_id.as_uuid())))
                .select(customers::customer_id);
            diesel::update(usage_events::table.find(key))
                .filter(usage_events::revision.eq(revision))
                .filter(usage_events::customer_id.eq_any(own))
                .set((row, usage_events::answered_document_id.eq(answered_document().nullable())))
                .execute(conn)
        })?;
        if changed == 0 {
            return Err(self.remember(Failure::Contended));
        }
        with_conn!(self, "usage_event_revisions", |conn| {
            // Whether it is the one that its document was issued with: later ones that make no difference to the total stay on
            // it, too.
            let document_id = Bound(superseded.placement.document_ref.as_uuid());
            let earlier = usage_event_revisions::table
                .filter(usage_event_revisions::event_id.eq(key.0))
                .filter(usage_event_revisions::customer_id.eq(key.1))
                .filter(usage_event_revisions::document_id.eq(document_id))
                .filter(usage_event_revisions::billed);
            let issued = documents::table
                .find((document_id, key.1))
                .filter(documents::lifecycle.eq(ISSUED).or(documents::lifecycle.eq(UNCOLLECTIBLE)));
            let billed = usage_event_revisions::billed.eq(exists(issued).and(not(exists(earlier))));
            diesel::insert_into(usage_event_revisions::table).values((kept, billed)).execute(conn)
        })?;
        Ok(())
    }

    fn superseded_revisions(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        events: &[EventRef],
    ) -> StoreResult<Vec<UsageEvent>> {
        let found: Vec<(RevisionRow, Cell<Uuid>)> =
            with_conn!(self, "usage_event_revisions", |conn| usage_event_revisions::table
                .inner_join(customers::table.on(customers::customer_id.eq(usage_event_revisions::customer_id)))
                .filter(one_of_ids(usage_event_revisions::event_id, events.iter().map(|event| event.as_uuid())))
                .filter(also_one_of_ids(usage_event_revisions::customer_id, customers.iter().map(|customer| customer.as_uuid())))
                .order((usage_event_revisions::event_id, usage_event_revisions::revision))
                .select((RevisionRow::as_select(), customers::organization_id))
                .load(conn))?;
        owned("usage_event_revisions", organization, found)?.into_iter().map(RevisionRow::read).collect()
    }

    fn move_events(&mut self, from: DocumentKey, to: DocumentRef) -> StoreResult<()> {
        let query = PeriodsOnDocument::new(from);
        let periods: Vec<PeriodRow> = with_conn!(self, "usage_events", |conn| query.load(conn))?;
        for (product_no, period_start) in periods {
            let row = Row::new("usage_events", from.document);
            let product_no = ProductNo(row.checked("product_no", u16::try_from(product_no))?);
            let period_start = row.cell("service_start", period_start)?;
            self.move_events_of_period(from, to, product_no, period_start)?;
        }
        Ok(())
    }

    fn move_events_of_period(
        &mut self,
        from: DocumentKey,
        to: DocumentRef,
        product_no: ProductNo,
        period_start: NaiveDate,
    ) -> StoreResult<()> {
        let contract = documents::table
            .find((Bound(from.document.as_uuid()), Bound(from.customer.as_uuid())))
            .filter(documents::organization_id.eq(Bound(from.organization.as_uuid())))
            .select(documents::contract_id)
            .single_value();
        with_conn!(self, "usage_events", |conn| diesel::update(usage_events::table)
            .filter(usage_events::customer_id.eq(Bound(from.customer.as_uuid())))
            .filter(usage_events::contract_id.nullable().eq(contract))
            .filter(usage_events::product_no.eq(i32::from(product_no.0)))
            .filter(usage_events::service_start.eq(Bound(period_start)))
            .filter(usage_events::document_id.eq(Bound(from.document.as_uuid())))
            .set((
                usage_events::document_id.eq(Bound(to.as_uuid())),
                usage_events::answered_document_id.eq(answered_document().nullable())
            ))
            .execute(conn))?;
        Ok(())
    }
}
