//! Changes of events: their next revisions, and their documents.

use billing_domain::ports::{EventChanges, StoreResult};
use billing_domain::refs::{CustomerId, DocumentKey, DocumentRef, EventRef, OrganizationId, ProductNo};
use billing_domain::usage::UsageEvent;
use chrono::NaiveDate;
use diesel::prelude::*;
use uuid::Uuid;

use super::event_keys::answered_document;
use super::event_rows::{RevisionRow, columns_of, digest_column, first_match_columns, key_columns};
use super::{owned, stored};
use crate::document_periods::document_periods;
use crate::failure::StatementError;
use crate::in_list::{also_one_of_ids, one_of_ids};
use crate::row::{Cell, Row};
use crate::schema::{customers, documents, usage_event_revisions, usage_events};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};
use crate::written_rows::{InsertRows, UpdateRows, checked_column, column};

/// A product and the first day of a period.
type PeriodRow = (i32, Cell<NaiveDate>);

/// The condition that an event has the expected previous revision and belongs to the organization.
const OWN_SUPERSEDED: &str = " AND usage_events.revision = {superseded} AND EXISTS (SELECT 1 FROM customers \
    WHERE customers.customer_id = {customer_id} AND customers.organization_id = {organization_id})";
/// The same for distributed databases.
const NAMED_SUPERSEDED: &str = " AND usage_events.revision = {superseded} AND EXISTS (SELECT 1 FROM customers \
    WHERE customers.customer_id = {customer_id} AND customers.organization_id = {organization_id} \
    AND customers.customer_id = ANY({customers}))";

/// Whether a superseded revision was issued with its document. Later revisions that do not change the total also stay on that
/// document. Scalar queries, because PostgreSQL can turn EXISTS into a scan of all documents.
const BILLED: &str = "coalesce((SELECT documents.lifecycle IN ('ISSUED', 'UNCOLLECTIBLE') FROM documents \
    WHERE documents.document_id = {document_id} AND documents.customer_id = {customer_id}), FALSE) \
    AND (SELECT 1 FROM usage_event_revisions earlier WHERE earlier.event_id = {event_id} \
    AND earlier.customer_id = {customer_id} AND earlier.document_id = {document_id} AND earlier.billed LIMIT 1) IS NULL";
/// The same for distributed databases.
const NAMED_BILLED: &str = "coalesce((SELECT documents.lifecycle IN ('ISSUED', 'UNCOLLECTIBLE') FROM documents \
    WHERE documents.document_id = {document_id} AND documents.customer_id = {customer_id} \
    AND documents.customer_id = ANY({customers})), FALSE) \
    AND (SELECT 1 FROM usage_event_revisions earlier WHERE earlier.event_id = {event_id} \
    AND earlier.customer_id = {customer_id} AND earlier.customer_id = ANY({customers}) \
    AND earlier.document_id = {document_id} AND earlier.billed LIMIT 1) IS NULL";

impl Transaction<'_> {
    /// Replaces events of one shard with their next revisions.
    fn revise_events_together(
        &mut self,
        organization: OrganizationId,
        revisions: &[&(UsageEvent, UsageEvent)],
    ) -> StoreResult<()> {
        let (superseded, revised): (Vec<&UsageEvent>, Vec<&UsageEvent>) = revisions.iter().map(|(old, new)| (old, new)).unzip();
        let changes =
            columns_of(&revised)?.into_iter().chain(first_match_columns(&revised)).chain(digest_column(&revised)).collect();
        let update = UpdateRows::new("usage_events", key_columns(&revised), changes)
            .reading(vec![
                ("superseded", checked_column(&superseded, |event| stored::<i32, _>(event.revision))?),
                ("organization_id", column(&superseded, |_| organization.as_uuid())),
            ])
            .also("answered_document_id = coalesce(usage_events.answered_document_id, usage_events.document_id)")
            .only(if self.is_spread { NAMED_SUPERSEDED } else { OWN_SUPERSEDED });
        if self.update_rows(update)? < revisions.len() {
            return Err(self.remember(StatementError::Contended));
        }
        let columns = key_columns(&superseded).into_iter().chain(columns_of(&superseded)?).collect();
        let billed = if self.is_spread { NAMED_BILLED } else { BILLED };
        self.insert_rows(InsertRows::new("usage_event_revisions", columns).with("billed", billed).on_conflict("")).map(drop)
    }
}

impl EventChanges for Transaction<'_> {
    fn revise_events(&mut self, organization: OrganizationId, revisions: &[(UsageEvent, UsageEvent)]) -> StoreResult<()> {
        let revisions: Vec<&(UsageEvent, UsageEvent)> = revisions.iter().collect();
        for revisions in self.by_shard(revisions, |(_, revised)| revised.customer_id.as_uuid()) {
            self.revise_events_together(organization, &revisions)?;
        }
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
                .filter(
                    also_one_of_ids(usage_event_revisions::customer_id, customers.iter().map(|customer| customer.as_uuid()))
                        .joining("customers.customer_id", self.is_spread)
                )
                .order((usage_event_revisions::event_id, usage_event_revisions::revision))
                .select((RevisionRow::as_select(), customers::organization_id))
                .load(conn))?;
        owned("usage_event_revisions", organization, found)?.into_iter().map(RevisionRow::read).collect()
    }

    fn move_events(&mut self, from: DocumentKey, to: DocumentRef) -> StoreResult<()> {
        let query = document_periods(from);
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
