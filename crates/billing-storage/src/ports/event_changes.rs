//! Changes of events: their next revisions, and their documents.

use billing_domain::ports::{EventChanges, StoreResult};
use billing_domain::refs::{CustomerId, DocumentKey, DocumentRef, EventRef, OrganizationId, ProductNo};
use billing_domain::usage::UsageEvent;
use chrono::NaiveDate;
use diesel::dsl::{exists, not};
use diesel::prelude::*;
use uuid::Uuid;

use super::document_rows::{ISSUED, UNCOLLECTIBLE};
use super::event_keys::answered_document;
use super::event_rows::{NewEvent, NewRevision, RevisionRow, first_match_columns};
use super::owned;
use crate::arrays::{column, optional_column};
use crate::document_periods::DocumentPeriodsQuery;
use crate::failure::StatementError;
use crate::in_list::{also_one_of_ids, one_of_ids};
use crate::revisions::{ReplaceEvents, SUPERSEDED, keep_revisions};
use crate::row::{Cell, Row};
use crate::schema::{customers, documents, usage_event_revisions, usage_events};
use crate::sql_types::Bound;
use crate::tx::{Connection, Transaction, with_conn};

/// A product and the first day of a period.
type PeriodRow = (i32, Cell<NaiveDate>);

/// The lifecycles of a document that was issued and not voided.
const ISSUED_LIFECYCLES: [&str; 2] = [ISSUED, UNCOLLECTIBLE];

/// Replaces an event with its next revision. The same statement checks the previous revision.
fn replace(
    connection: &mut SqliteConnection,
    organization: OrganizationId,
    row: NewEvent<'_>,
    (first_contract, first_product): (Option<Uuid>, Option<i32>),
    superseded: &NewRevision<'_>,
) -> QueryResult<usize> {
    let own = customers::table
        .filter(customers::organization_id.eq(Bound(organization.as_uuid())))
        .filter(customers::customer_id.eq(superseded.customer_id))
        .select(customers::customer_id);
    diesel::update(usage_events::table.find((superseded.event_id, superseded.customer_id)))
        .filter(usage_events::revision.eq(superseded.revision))
        .filter(usage_events::customer_id.eq_any(own))
        .set((
            row,
            usage_events::answered_document_id.eq(answered_document().nullable()),
            usage_events::first_contract_id.eq(first_contract.map(Bound)),
            usage_events::first_product_no.eq(first_product),
        ))
        .execute(connection)
}

/// Saves a superseded revision, and whether its document was issued with it. Later revisions that do not change the
/// total also stay on that document.
fn keep(connection: &mut SqliteConnection, superseded: NewRevision<'_>) -> QueryResult<()> {
    let earlier = usage_event_revisions::table
        .filter(usage_event_revisions::event_id.eq(superseded.event_id))
        .filter(usage_event_revisions::customer_id.eq(superseded.customer_id))
        .filter(usage_event_revisions::document_id.eq(superseded.document_id))
        .filter(usage_event_revisions::billed);
    let issued = documents::table
        .find((superseded.document_id, superseded.customer_id))
        .filter(documents::lifecycle.eq_any(ISSUED_LIFECYCLES));
    let billed = usage_event_revisions::billed.eq(exists(issued).and(not(exists(earlier))));
    diesel::insert_into(usage_event_revisions::table).values((superseded, billed)).execute(connection).map(drop)
}

impl Transaction<'_> {
    /// Replaces events of one shard with their next revisions.
    fn revise_events_together(
        &mut self,
        organization: OrganizationId,
        revisions: &[&(UsageEvent, UsageEvent)],
    ) -> StoreResult<()> {
        let rows = revisions.iter().map(|(_, revised)| NewEvent::of(revised)).collect::<StoreResult<Vec<_>>>()?;
        let first: Vec<_> = revisions.iter().map(|(_, revised)| first_match_columns(revised)).collect();
        let kept = revisions.iter().map(|(superseded, _)| NewRevision::of(superseded)).collect::<StoreResult<Vec<_>>>()?;
        let replaced = match &mut self.connection {
            Connection::Sqlite(connection) => rows
                .into_iter()
                .zip(&first)
                .zip(&kept)
                .map(|((row, first), superseded)| replace(connection, organization, row, *first, superseded))
                .sum::<QueryResult<usize>>(),
            Connection::Postgres(connection) => {
                let mut columns = NewEvent::columns(&rows);
                columns.push(("first_contract_id", optional_column(&first, |(contract, _)| *contract)));
                columns.push(("first_product_no", optional_column(&first, |(_, product)| *product)));
                columns.push((SUPERSEDED, column(&kept, |superseded| superseded.revision)));
                ReplaceEvents::new(columns, organization.as_uuid()).on_nodes(self.is_spread).execute(*connection)
            }
        };
        if replaced.map_err(|error| self.failed("usage_events", &error))? < revisions.len() {
            return Err(self.remember(StatementError::Contended));
        }
        let stored = match &mut self.connection {
            Connection::Sqlite(connection) => kept.into_iter().try_for_each(|superseded| keep(connection, superseded)),
            Connection::Postgres(connection) => {
                keep_revisions(NewRevision::columns(&kept), self.is_spread).execute(*connection).map(drop)
            }
        };
        stored.map_err(|error| self.failed("usage_event_revisions", &error))
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
        let query = DocumentPeriodsQuery::new(from);
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
