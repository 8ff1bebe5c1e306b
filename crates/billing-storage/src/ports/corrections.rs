//! What happens to documents after they were opened: drafts that follow their contracts, voided documents, payments.

use billing_domain::calendar::Timestamp;
use billing_domain::document::{BookDocument, DocumentHead, DraftContent, Payment, Settlement};
use billing_domain::ports::StoreResult;
use billing_domain::refs::{CustomerId, DocumentKey, DocumentRef, OrganizationId};
use billing_domain::text::Line;
use diesel::prelude::*;
use uuid::Uuid;

use super::document_rows::{DRAFT, VOID, WithParts, slot_of};
use super::documents::owned;
use crate::json::StoredDraftRef;
use crate::one_of::one_of_ids;
use crate::row::{Cell, to_json};
use crate::schema::{document_parts, documents, payments};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};

impl Transaction<'_> {
    /// Replaces what a decision changes of a draft; `false` when it is a draft no more.
    pub(super) fn redraw(&mut self, organization: OrganizationId, head: &DocumentHead) -> StoreResult<bool> {
        let key = (Bound(head.document_ref.as_uuid()), Bound(head.customer_id.as_uuid()));
        let changed = with_conn!(self, "documents", |conn| diesel::update(documents::table.find(key))
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .filter(documents::lifecycle.eq(DRAFT))
            .set((
                documents::slot.eq(slot_of(head.purpose)),
                documents::period_start.eq(Bound(head.period.start())),
                documents::period_end.eq(Bound(head.period.end())),
                documents::is_partial_period.eq(head.is_partial_period),
            ))
            .execute(conn))?;
        if changed == 0 {
            return Ok(false);
        }
        with_conn!(self, "document_parts", |conn| diesel::delete(document_parts::table)
            .filter(document_parts::document_id.eq(key.0))
            .filter(document_parts::customer_id.eq(key.1))
            .execute(conn))?;
        self.insert_parts(head)?;
        Ok(true)
    }

    /// Voids a document that is in one state, and leaves its places free; `false` when it isn't in it. A draft leaves what it
    /// said.
    pub(super) fn put_out_of_force(
        &mut self,
        key: DocumentKey,
        from: &'static str,
        discarded: Option<&DraftContent>,
        at: Timestamp,
    ) -> StoreResult<bool> {
        let id = (Bound(key.document.as_uuid()), Bound(key.customer.as_uuid()));
        let discarded = discarded.map(|content| to_json(&StoredDraftRef(content))).transpose()?;
        let voided = with_conn!(self, "documents", |conn| diesel::update(documents::table.find(id))
            .filter(documents::organization_id.eq(Bound(key.organization.as_uuid())))
            .filter(documents::lifecycle.eq(from))
            .set((documents::lifecycle.eq(VOID), documents::voided_at.eq(Bound(at)), documents::discarded_content.eq(discarded),))
            .execute(conn))?;
        if voided == 0 {
            return Ok(false);
        }
        with_conn!(self, "document_parts", |conn| diesel::update(document_parts::table)
            .filter(document_parts::document_id.eq(id.0))
            .filter(document_parts::customer_id.eq(id.1))
            .set(document_parts::active.eq(false))
            .execute(conn))?;
        Ok(true)
    }

    pub(super) fn naming_parents(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        parents: &[DocumentRef],
    ) -> StoreResult<Vec<BookDocument>> {
        let parents: Vec<Uuid> = parents.iter().map(|parent| parent.as_uuid()).collect();
        let rows: Vec<(WithParts, Cell<Uuid>)> = with_conn!(self, "documents", |conn| documents::table
            .filter(documents::customer_id.eq(Bound(customer_id.as_uuid())))
            .filter(one_of_ids(documents::parent_document_id, parents))
            .select((WithParts::as_select(), documents::organization_id))
            .load(conn))?;
        by_creation(owned(organization, rows)?)
    }

    pub(super) fn record_payment(&mut self, key: DocumentKey, payment: &Payment) -> StoreResult<()> {
        let id = (Bound(key.document.as_uuid()), Bound(key.customer.as_uuid()));
        let there: i64 = with_conn!(self, "documents", |conn| documents::table
            .find(id)
            .filter(documents::organization_id.eq(Bound(key.organization.as_uuid())))
            .count()
            .get_result(conn))?;
        if there == 0 {
            return self.refuse(format!("payments {}: its document {} is not there", payment.payment_ref, key.document));
        }
        with_conn!(self, "payments", |conn| diesel::insert_into(payments::table)
            .values((
                payments::payment_id.eq(Bound(payment.payment_ref.as_uuid())),
                payments::customer_id.eq(id.1),
                payments::document_id.eq(id.0),
                payments::amount_minor.eq(payment.amount.minor()),
                payments::paid_date.eq(Bound(payment.paid_date)),
                payments::reference.eq(payment.reference.as_ref().map(Line::as_str)),
                payments::recorded_at.eq(Bound(payment.recorded_at)),
                payments::recorded_by.eq(payment.recorded_by.to_string()),
            ))
            .execute(conn))?;
        Ok(())
    }

    pub(super) fn settle(&mut self, key: DocumentKey, settlement: &Settlement) -> StoreResult<()> {
        let id = (Bound(key.document.as_uuid()), Bound(key.customer.as_uuid()));
        let changed = with_conn!(self, "documents", |conn| diesel::update(documents::table.find(id))
            .filter(documents::organization_id.eq(Bound(key.organization.as_uuid())))
            .set((
                documents::paid_minor.eq(settlement.paid.minor()),
                documents::credits_minor.eq(settlement.credits.minor()),
                documents::paid_date.eq(settlement.paid_date.map(Bound)),
            ))
            .execute(conn))?;
        if changed == 0 {
            return self.refuse(format!("documents {}: not there to be settled", key.document));
        }
        Ok(())
    }
}

/// Documents in the order of lists. Sorted here: for the order's sake SQLite would walk through all documents of the
/// organization.
pub(super) fn by_creation(rows: Vec<WithParts>) -> StoreResult<Vec<BookDocument>> {
    let mut documents = rows.into_iter().map(WithParts::read_for_book).collect::<StoreResult<Vec<_>>>()?;
    documents.sort_by_key(|document| (document.head.created_at, document.head.document_ref));
    Ok(documents)
}
