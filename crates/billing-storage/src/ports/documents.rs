//! Documents: opening, reading, listing. Issuing them is [`issue`](super::issue)'s; what happens to them afterwards is
//! [`corrections`](super::corrections)' and [`ledger`](super::ledger)'s.

use billing_domain::calendar::{Period, Timestamp};
use billing_domain::document::correction::LedgerLine;
use billing_domain::document::linking::Slot;
use billing_domain::document::{Document, DocumentHead, DocumentKind, DocumentState, IssuedDocument, Payment, Settlement};
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{DocumentFilter, DocumentedLine, Documents, Lock, StoreResult};
use billing_domain::refs::{ContractRef, CustomerId, DocumentRef, OrganizationId, ProductNo};
use chrono::NaiveDate;
use diesel::prelude::*;

use super::document_rows::{DRAFT, DocumentRow, ISSUED, UNCOLLECTIBLE, VOID};
use super::{counted, limits};
use crate::leaf::Leaf as _;
use crate::one_of::one_of_ids;
use crate::schema::{document_parts, documents};
use crate::sql_types::Bound;
use crate::tx::{Transaction, load_held, with_conn};

/// The first day that a period can start on.
const FIRST_DAY: NaiveDate = match NaiveDate::from_ymd_opt(1, 1, 1) {
    Some(day) => day,
    None => NaiveDate::MIN,
};

impl Documents for Transaction<'_> {
    fn open_document(&mut self, organization: OrganizationId, head: &DocumentHead) -> StoreResult<()> {
        if head.kind != head.number.kind {
            return self.refuse(format!("documents {}: its number is of another kind", head.document_ref));
        }
        self.insert_head(organization, head)?;
        self.insert_parts(head)
    }

    fn document(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> StoreResult<Option<Document>> {
        let rows: Vec<DocumentRow> = with_conn!(self, "documents", |conn| documents::table
            .filter(documents::document_id.eq(Bound(document_ref.as_uuid())))
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .select(DocumentRow::as_select())
            .load(conn))?;
        Ok(self.with_content(rows)?.pop())
    }

    fn documents_by_refs(&mut self, organization: OrganizationId, refs: &[DocumentRef]) -> StoreResult<Vec<Document>> {
        let rows: Vec<DocumentRow> = with_conn!(self, "documents", |conn| documents::table
            .filter(one_of_ids(documents::document_id, refs.iter().map(|document| document.as_uuid())))
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .select(DocumentRow::as_select())
            .load(conn))?;
        self.with_content(rows)
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
        // PostgreSQL refuses a date before 4714 BC, even to look for.
        let start = within.start().max(FIRST_DAY);
        let rows: Vec<DocumentRow> = with_conn!(self, "documents", |conn| documents::table
            .filter(documents::customer_id.eq(Bound(customer_id.as_uuid())))
            .filter(documents::contract_id.eq(Bound(contract_ref.as_uuid())))
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .filter(documents::period_start.lt(Bound(within.end())))
            .filter(documents::period_end.gt(Bound(start)))
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

    fn update_draft(&mut self, organization: OrganizationId, head: &DocumentHead) -> StoreResult<bool> {
        self.redraw(organization, head)
    }

    fn void_issued(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        at: Timestamp,
    ) -> StoreResult<bool> {
        self.put_out_of_force(organization, customer_id, document_ref, ISSUED, at)
    }

    fn last_void(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        product_no: ProductNo,
        period_start: NaiveDate,
        slot: Slot,
    ) -> StoreResult<Option<DocumentRef>> {
        self.last_void_in(organization, customer_id, contract_ref, product_no, period_start, slot)
    }

    fn open_adjustment(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        parent: DocumentRef,
        kind: DocumentKind,
    ) -> StoreResult<Option<Document>> {
        self.draft_adjustment(organization, customer_id, parent, kind)
    }

    fn documents_of_parent(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        parent: DocumentRef,
    ) -> StoreResult<Vec<Document>> {
        self.naming_parent(organization, customer_id, parent)
    }

    fn ledger_lines(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
    ) -> StoreResult<Vec<LedgerLine>> {
        self.lines_of(organization, customer_id, document_ref)
    }

    fn put_ledger_lines(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        lines: &[LedgerLine],
    ) -> StoreResult<()> {
        self.put_lines(organization, customer_id, document_ref, lines)
    }

    fn documented(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        periods: &[(ProductNo, NaiveDate)],
    ) -> StoreResult<Vec<DocumentedLine>> {
        self.lines_in_force(organization, customer_id, contract_ref, periods)
    }

    fn insert_payment(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        payment: &Payment,
    ) -> StoreResult<()> {
        self.record_payment(organization, customer_id, document_ref, payment)
    }

    fn settle_document(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        settlement: &Settlement,
    ) -> StoreResult<()> {
        self.settle(organization, customer_id, document_ref, settlement)
    }

    fn void_draft(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        at: Timestamp,
    ) -> StoreResult<bool> {
        self.put_out_of_force(organization, customer_id, document_ref, DRAFT, at)
    }
}
