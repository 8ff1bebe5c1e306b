//! Documents: opening, reading, listing. Issuing them is [`issue`](super::issue)'s.

use billing_domain::calendar::{Period, Timestamp};
use billing_domain::document::linking::Slot;
use billing_domain::document::{Document, DocumentHead, DocumentState, IssuedDocument, Purpose};
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{DocumentFilter, Documents, Lock, StoreResult};
use billing_domain::refs::{ContractRef, CustomerId, DocumentRef, OrganizationId, ProductNo};
use chrono::NaiveDate;
use diesel::prelude::*;
use uuid::Uuid;

use super::document_rows::{
    ADJUSTMENT, DRAFT, DocumentRow, ISSUED, Issued, NewPart, PartRow, Parts, REGULAR, UNCOLLECTIBLE, USAGE, VOID, slot_of,
};
use super::{counted, limits, stored};
use crate::json::{Frozen, StoredPaymentRef};
use crate::leaf::Leaf as _;
use crate::one_of::one_of_ids;
use crate::row::{Cell, Row, to_json};
use crate::schema::{document_parts, documents, issued_documents};
use crate::sql_types::{Bound, JsonText};
use crate::tx::{Transaction, load_held, with_conn};

impl Transaction<'_> {
    /// Reads documents with their parts and what they say, each in one query for all.
    fn with_content(&mut self, rows: Vec<DocumentRow>) -> StoreResult<Vec<Document>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<Uuid> = rows.iter().map(DocumentRow::id).collect::<StoreResult<_>>()?;
        let part_rows: Vec<PartRow> = with_conn!(self, "document_parts", |conn| document_parts::table
            .filter(one_of_ids(document_parts::document_id, ids.iter().copied()))
            .order((document_parts::document_id, document_parts::position))
            .select(PartRow::as_select())
            .load(conn))?;
        let mut parts = Parts::new();
        for part in part_rows {
            let (id, part) = part.read()?;
            parts.entry(id).or_default().push(part);
        }
        let mut issued =
            self.issued_of(rows.iter().zip(ids).filter(|(row, _)| row.lifecycle != DRAFT).map(|(_, id)| id).collect())?;
        rows.into_iter().map(|row| row.read(&mut parts, &mut issued)).collect()
    }

    fn issued_of(&mut self, ids: Vec<Uuid>) -> StoreResult<Issued> {
        if ids.is_empty() {
            return Ok(Issued::new());
        }
        let rows: Vec<(Cell<Uuid>, JsonText)> = with_conn!(self, "issued_documents", |conn| issued_documents::table
            .filter(one_of_ids(issued_documents::document_id, ids))
            .select((issued_documents::document_id, issued_documents::content))
            .load(conn))?;
        let read = |(id, content): (Cell<Uuid>, JsonText)| {
            let row = Row::new("issued_documents", id.clone());
            let frozen: Frozen = row.json("content", &content)?;
            Ok((row.cell("document_id", id)?, frozen))
        };
        rows.into_iter().map(read).collect()
    }

    fn insert_head(&mut self, organization: OrganizationId, head: &DocumentHead) -> StoreResult<()> {
        let sequence: i64 = stored(head.number.sequence)?;
        let number_in_contract: i32 = stored(head.number_in_contract)?;
        let payment = to_json(&StoredPaymentRef(&head.payment))?;
        let purpose = match head.purpose {
            Purpose::Regular(_) => REGULAR,
            Purpose::Usage => USAGE,
            Purpose::Adjustment => ADJUSTMENT,
        };
        with_conn!(self, "documents", |conn| diesel::insert_into(documents::table)
            .values((
                documents::document_id.eq(Bound(head.document_ref.as_uuid())),
                documents::customer_id.eq(Bound(head.customer_id.as_uuid())),
                documents::organization_id.eq(Bound(organization.as_uuid())),
                documents::contract_id.eq(Bound(head.contract_ref.as_uuid())),
                documents::entity_ref.eq(head.entity_ref.as_str()),
                documents::kind.eq(head.kind.show()),
                documents::number_prefix.eq(head.number.prefix.as_str()),
                documents::sequence.eq(sequence),
                documents::purpose.eq(purpose),
                documents::slot.eq(slot_of(head.purpose)),
                documents::number_in_contract.eq(number_in_contract),
                documents::currency.eq(head.currency.code()),
                documents::period_start.eq(Bound(head.period.start())),
                documents::period_end.eq(Bound(head.period.end())),
                documents::is_partial_period.eq(head.is_partial_period),
                documents::net_terms.eq(head.net_terms.show()),
                documents::payment.eq(payment),
                documents::parent_document_id.eq(head.parent.map(|parent| Bound(parent.as_uuid()))),
                documents::replaces_document_id.eq(head.replaces.map(|replaced| Bound(replaced.as_uuid()))),
                documents::created_at.eq(Bound(head.created_at)),
                documents::lifecycle.eq(DRAFT),
                documents::paid_minor.eq(0),
                documents::credits_minor.eq(0),
            ))
            .execute(conn))?;
        Ok(())
    }
}

impl Documents for Transaction<'_> {
    fn open_document(&mut self, organization: OrganizationId, head: &DocumentHead) -> StoreResult<()> {
        if head.kind != head.number.kind {
            return self.refuse(format!("documents {}: its number is of another kind", head.document_ref));
        }
        self.insert_head(organization, head)?;
        let parts = NewPart::of(head)?;
        let expected = parts.len();
        // A place that is taken mustn't abort the transaction on PostgreSQL with an error of its own.
        let inserted = with_conn!(self, "document_parts", |conn| diesel::insert_into(document_parts::table)
            .values(parts)
            .on_conflict_do_nothing()
            .execute(conn))?;
        if inserted == expected {
            return Ok(());
        }
        self.refuse(format!(
            "documents {}: a product of contract {} has a document in force for the period from {} already",
            head.document_ref,
            head.contract_ref,
            head.period.start()
        ))
    }

    fn document(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> StoreResult<Option<Document>> {
        let rows: Vec<DocumentRow> = with_conn!(self, "documents", |conn| documents::table
            .filter(documents::document_id.eq(Bound(document_ref.as_uuid())))
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .select(DocumentRow::as_select())
            .load(conn))?;
        Ok(self.with_content(rows)?.pop())
    }

    fn documents(
        &mut self,
        organization: OrganizationId,
        filter: &DocumentFilter,
        page: PageRequest,
    ) -> StoreResult<Page<Document>> {
        let (limit, offset) = limits(page);
        let (rows, total): (Vec<DocumentRow>, i64) = with_conn!(self, "documents", |conn| {
            let narrowed = || {
                let mut query =
                    documents::table.filter(documents::organization_id.eq(Bound(organization.as_uuid()))).into_boxed::<Db>();
                if let Some(customer_id) = filter.customer_id {
                    query = query.filter(documents::customer_id.eq(Bound(customer_id.as_uuid())));
                }
                if let Some(contract_ref) = filter.contract_ref {
                    query = query.filter(documents::contract_id.eq(Bound(contract_ref.as_uuid())));
                }
                if let Some(entity_ref) = &filter.entity_ref {
                    query = query.filter(documents::entity_ref.eq(entity_ref.as_str()));
                }
                if let Some(kind) = filter.kind {
                    query = query.filter(documents::kind.eq(kind.show()));
                }
                if let Some(from) = filter.from {
                    query = query.filter(documents::period_start.ge(Bound(from)));
                }
                if let Some(to) = filter.to {
                    query = query.filter(documents::period_start.le(Bound(to)));
                }
                // Paid, partly paid and issued differ by what is left: total − payments − credits.
                let settled = documents::paid_minor + documents::credits_minor;
                let lifecycle = |is: &'static str| documents::lifecycle.eq(is);
                match filter.state {
                    None => query,
                    Some(DocumentState::Draft) => query.filter(lifecycle(DRAFT)),
                    Some(DocumentState::Void) => query.filter(lifecycle(VOID)),
                    Some(DocumentState::Uncollectible) => query.filter(lifecycle(UNCOLLECTIBLE)),
                    Some(DocumentState::Paid) => {
                        query.filter(lifecycle(ISSUED)).filter(documents::total_minor.le(settled.nullable()))
                    }
                    Some(DocumentState::Issued) => query
                        .filter(lifecycle(ISSUED))
                        .filter(documents::total_minor.gt(settled.nullable()))
                        .filter(settled.eq(0)),
                    Some(DocumentState::PartiallyPaid) => query
                        .filter(lifecycle(ISSUED))
                        .filter(documents::total_minor.gt(settled.nullable()))
                        .filter(settled.ne(0)),
                }
            };
            let total = narrowed().count().get_result(conn)?;
            let ordered = narrowed().order((documents::created_at, documents::document_id)).limit(limit).offset(offset);
            Ok((ordered.select(DocumentRow::as_select()).load(conn)?, total))
        })?;
        Ok(Page { items: self.with_content(rows)?, total: counted(total)? })
    }

    fn regular_document(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        product_no: ProductNo,
        period_start: NaiveDate,
        slot: Slot,
        lock: Option<Lock>,
    ) -> StoreResult<Option<Document>> {
        let in_slot = document_parts::table
            .filter(document_parts::customer_id.eq(Bound(customer_id.as_uuid())))
            .filter(document_parts::contract_id.eq(Bound(contract_ref.as_uuid())))
            .filter(document_parts::product_no.eq(i32::from(product_no.0)))
            .filter(document_parts::period_start.eq(Bound(period_start)))
            .filter(document_parts::slot.eq(slot.show()))
            // The bare column: an equality with a value hides the partial index from a prepared plan.
            .filter(document_parts::active)
            .select(document_parts::document_id)
            .single_value();
        // The state is tested again on the row that was waited for.
        let rows: Vec<DocumentRow> = load_held!(
            self,
            "documents",
            lock,
            documents::table
                .filter(documents::customer_id.eq(Bound(customer_id.as_uuid())))
                .filter(documents::document_id.nullable().eq(in_slot))
                .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
                .filter(documents::lifecycle.ne(VOID))
                .select(DocumentRow::as_select())
        )?;
        Ok(self.with_content(rows)?.pop())
    }

    fn documents_of_contract(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        within: Period,
    ) -> StoreResult<Vec<Document>> {
        let rows: Vec<DocumentRow> = with_conn!(self, "documents", |conn| documents::table
            .filter(documents::customer_id.eq(Bound(customer_id.as_uuid())))
            .filter(documents::contract_id.eq(Bound(contract_ref.as_uuid())))
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .filter(documents::period_start.lt(Bound(within.end())))
            .filter(documents::period_end.gt(Bound(within.start())))
            .order((documents::created_at, documents::document_id))
            .select(DocumentRow::as_select())
            .load(conn))?;
        self.with_content(rows)
    }

    fn drafts_of_contract(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
    ) -> StoreResult<Vec<Document>> {
        let rows: Vec<DocumentRow> = with_conn!(self, "documents", |conn| documents::table
            .filter(documents::customer_id.eq(Bound(customer_id.as_uuid())))
            .filter(documents::contract_id.eq(Bound(contract_ref.as_uuid())))
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .filter(documents::lifecycle.eq(DRAFT))
            .order((documents::created_at, documents::document_id))
            .select(DocumentRow::as_select())
            .load(conn))?;
        self.with_content(rows)
    }

    fn issue_document(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        issued: &IssuedDocument,
    ) -> StoreResult<bool> {
        self.issue(organization, customer_id, document_ref, issued)
    }

    fn void_draft(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        at: Timestamp,
    ) -> StoreResult<bool> {
        let key = (Bound(document_ref.as_uuid()), Bound(customer_id.as_uuid()));
        let voided = with_conn!(self, "documents", |conn| diesel::update(documents::table.find(key))
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .filter(documents::lifecycle.eq(DRAFT))
            .set((documents::lifecycle.eq(VOID), documents::voided_at.eq(Bound(at))))
            .execute(conn))?;
        if voided == 0 {
            return Ok(false);
        }
        with_conn!(self, "document_parts", |conn| diesel::update(document_parts::table)
            .filter(document_parts::document_id.eq(Bound(document_ref.as_uuid())))
            .filter(document_parts::customer_id.eq(Bound(customer_id.as_uuid())))
            .set(document_parts::active.eq(false))
            .execute(conn))?;
        Ok(true)
    }
}
