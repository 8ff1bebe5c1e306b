//! Documents.

use std::sync::Arc;

use billing_domain::calendar::{Period, Timestamp};
use billing_domain::document::correction::LedgerLine;
use billing_domain::document::linking::Slot;
use billing_domain::document::{Document, DocumentHead, DocumentKind, IssuedDocument, Lifecycle, Payment, Purpose, Settlement};
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{DocumentFilter, DocumentedLine, Documents, Lock, StoreResult};
use billing_domain::refs::{ContractRef, CustomerId, DocumentRef, OrganizationId, ProductNo};
use chrono::NaiveDate;

use super::{MemoryTx, corrupt, page, sorted};

impl Documents for MemoryTx {
    fn open_document(&mut self, organization: OrganizationId, head: &DocumentHead) -> StoreResult<()> {
        self.held.need_contract(organization, head.contract_ref, "open_document")?;
        if self.document(organization, head.document_ref)?.is_some() {
            return Err(corrupt(format!("{:?} is there already", head.document_ref)));
        }
        if self.state.documents.of(organization).any(|other| clashes(&other.head, head) && !is_void(other)) {
            return Err(corrupt(format!("{:?} has a regular document of {} already", head.contract_ref, head.period)));
        }
        self.held.document(organization, head.contract_ref, head.document_ref, Lock::Exclusive)?;
        self.state.documents.push(
            organization,
            Document { head: head.clone(), lifecycle: Lifecycle::Draft, settlement: Settlement::none(head.currency) },
        );
        Ok(())
    }

    fn document(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> StoreResult<Option<Document>> {
        Ok(self.state.documents.of(organization).find(|row| row.head.document_ref == document_ref).cloned())
    }

    fn documents_by_refs(&mut self, organization: OrganizationId, refs: &[DocumentRef]) -> StoreResult<Vec<Document>> {
        Ok(self.state.documents.of(organization).filter(|row| refs.contains(&row.head.document_ref)).cloned().collect())
    }

    fn documents(
        &mut self,
        organization: OrganizationId,
        filter: &DocumentFilter,
        request: PageRequest,
    ) -> StoreResult<Page<Document>> {
        let mut passed = Vec::new();
        for row in self.state.documents.of(organization) {
            if passes(filter, &row.head) && filter.state.is_none_or(|wanted| row.state() == Ok(wanted)) {
                passed.push(row.clone());
            }
        }
        Ok(page(passed.iter(), request, order))
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
        let rows = self.state.documents.of(organization).filter(|row| of_contract(row, customer_id, contract_ref));
        let mut rows = rows.filter(|row| row.head.purpose == Purpose::Regular(slot) && !is_void(row));
        let has_product = |row: &Document| row.head.parts.iter().any(|part| part.product_no == product_no);
        let found = rows.find(|row| row.head.period.start() == period_start && has_product(row)).cloned();
        if let (Some(found), Some(lock)) = (&found, lock) {
            self.held.document(organization, contract_ref, found.head.document_ref, lock)?;
        }
        Ok(found)
    }

    fn documents_of_contract(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        within: Period,
    ) -> StoreResult<Vec<Document>> {
        let rows = self.state.documents.of(organization).filter(|row| of_contract(row, customer_id, contract_ref));
        Ok(sorted(rows.filter(|row| row.head.period.intersection(within).is_some()), order))
    }

    fn drafts_of_contract(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
    ) -> StoreResult<Vec<Document>> {
        let rows = self.state.documents.of(organization).filter(|row| of_contract(row, customer_id, contract_ref));
        Ok(sorted(rows.filter(|row| row.lifecycle == Lifecycle::Draft), order))
    }

    fn issue_document(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        issued: &IssuedDocument,
    ) -> StoreResult<bool> {
        let Some(document) = self.state.documents.of_mut(organization).find(|row| row.head.document_ref == document_ref) else {
            return Ok(false);
        };
        if document.head.customer_id != customer_id || document.lifecycle != Lifecycle::Draft {
            return Ok(false);
        }
        self.held.need_document(organization, document.head.contract_ref, document_ref, "issue_document")?;
        document.lifecycle = Lifecycle::Issued(Box::new(issued.clone()));
        Arc::make_mut(&mut self.state.ledger).insert(document_ref, issued.content.ledger_lines());
        Ok(true)
    }

    fn update_draft(&mut self, organization: OrganizationId, head: &DocumentHead) -> StoreResult<bool> {
        self.held.need_contract(organization, head.contract_ref, "update_draft")?;
        Ok(self.draft(organization, head.document_ref).map(|row| row.head = head.clone()).is_some())
    }

    fn void_issued(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        _at: Timestamp,
    ) -> StoreResult<bool> {
        let mut rows = self.state.documents.of_mut(organization).filter(|row| row.head.customer_id == customer_id);
        let Some(row) = rows.find(|row| row.head.document_ref == document_ref) else { return Ok(false) };
        let Lifecycle::Issued(issued) = &row.lifecycle else { return Ok(false) };
        row.lifecycle = Lifecycle::Void(Some(issued.clone()));
        Ok(true)
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
        let rows = self.state.documents.of(organization).filter(|row| of_contract(row, customer_id, contract_ref));
        let void =
            rows.filter(|row| matches!(row.lifecycle, Lifecycle::Void(Some(_))) && row.head.purpose == Purpose::Regular(slot));
        let has_product = |row: &&Document| row.head.parts.iter().any(|part| part.product_no == product_no);
        let found = void
            .filter(|row| row.head.period.start() == period_start)
            .filter(has_product)
            .max_by_key(|row| row.head.number_in_contract);
        Ok(found.map(|row| row.head.document_ref))
    }

    fn open_adjustment(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        parent: DocumentRef,
        kind: DocumentKind,
    ) -> StoreResult<Option<Document>> {
        let of_parent = self.documents_of_parent(organization, customer_id, parent)?;
        let open = |row: &Document| row.is_draft() && row.head.kind == kind && row.head.purpose == Purpose::Adjustment;
        Ok(of_parent.into_iter().find(open))
    }

    fn documents_of_parent(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        parent: DocumentRef,
    ) -> StoreResult<Vec<Document>> {
        let rows = self.state.documents.of(organization).filter(|row| row.head.customer_id == customer_id);
        Ok(sorted(rows.filter(|row| row.head.parent == Some(parent)), order))
    }

    fn ledger_lines(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
    ) -> StoreResult<Vec<LedgerLine>> {
        let found = self.document(organization, document_ref)?.filter(|row| row.head.customer_id == customer_id);
        Ok(found.and_then(|_| self.state.ledger.get(&document_ref).cloned()).unwrap_or_default())
    }

    fn put_ledger_lines(
        &mut self,
        organization: OrganizationId,
        _customer_id: CustomerId,
        document_ref: DocumentRef,
        lines: &[LedgerLine],
    ) -> StoreResult<()> {
        if self.draft(organization, document_ref).is_none() {
            return Err(corrupt(format!("{document_ref:?} is no draft")));
        }
        Arc::make_mut(&mut self.state.ledger).insert(document_ref, lines.to_vec());
        Ok(())
    }

    fn documented(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        periods: &[(ProductNo, NaiveDate)],
    ) -> StoreResult<Vec<DocumentedLine>> {
        let mut found = Vec::new();
        for row in
            self.state.documents.of(organization).filter(|row| of_contract(row, customer_id, contract_ref) && !is_void(row))
        {
            for line in self.state.ledger.get(&row.head.document_ref).into_iter().flatten() {
                if periods.contains(&(line.product_no, line.service_period.start())) {
                    found.push(DocumentedLine {
                        document_ref: row.head.document_ref,
                        kind: row.head.kind,
                        is_regular: matches!(row.head.purpose, Purpose::Regular(_)),
                        line: line.clone(),
                    });
                }
            }
        }
        Ok(found)
    }

    fn insert_payment(
        &mut self,
        _organization: OrganizationId,
        _customer_id: CustomerId,
        document_ref: DocumentRef,
        payment: &Payment,
    ) -> StoreResult<()> {
        Arc::make_mut(&mut self.state.payments).entry(document_ref).or_default().push(payment.clone());
        Ok(())
    }

    fn settle_document(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        settlement: &Settlement,
    ) -> StoreResult<()> {
        let mut rows = self.state.documents.of_mut(organization).filter(|row| row.head.customer_id == customer_id);
        let row = rows.find(|row| row.head.document_ref == document_ref);
        row.ok_or_else(|| corrupt(format!("{document_ref:?} is not there")))?.settlement = *settlement;
        Ok(())
    }

    fn void_draft(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        _at: Timestamp,
    ) -> StoreResult<bool> {
        let mut rows = self.state.documents.of_mut(organization).filter(|row| row.head.customer_id == customer_id);
        let found = rows.find(|row| row.head.document_ref == document_ref && row.lifecycle == Lifecycle::Draft);
        Ok(found.map(|document| document.lifecycle = Lifecycle::Void(None)).is_some())
    }
}

impl MemoryTx {
    fn draft(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> Option<&mut Document> {
        let mut rows = self.state.documents.of_mut(organization);
        rows.find(|row| row.head.document_ref == document_ref && row.lifecycle == Lifecycle::Draft)
    }
}

fn order(row: &Document) -> (Timestamp, DocumentRef) {
    (row.head.created_at, row.head.document_ref)
}

fn of_contract(row: &Document, customer_id: CustomerId, contract_ref: ContractRef) -> bool {
    row.head.customer_id == customer_id && row.head.contract_ref == contract_ref
}

fn is_void(row: &Document) -> bool {
    matches!(row.lifecycle, Lifecycle::Void(_))
}

/// Whether two heads are regular documents of one product, period and slot.
fn clashes(a: &DocumentHead, b: &DocumentHead) -> bool {
    let common_product = a.parts.iter().any(|part| b.parts.iter().any(|other| other.product_no == part.product_no));
    let regular = matches!((a.purpose, b.purpose), (Purpose::Regular(a), Purpose::Regular(b)) if a == b);
    regular && a.contract_ref == b.contract_ref && a.period.start() == b.period.start() && common_product
}

fn passes(filter: &DocumentFilter, head: &DocumentHead) -> bool {
    let start = head.period.start();
    filter.customer_id.is_none_or(|wanted| wanted == head.customer_id)
        && filter.contract_ref.is_none_or(|wanted| wanted == head.contract_ref)
        && filter.entity_ref.as_ref().is_none_or(|wanted| *wanted == head.entity_ref)
        && filter.kind.is_none_or(|wanted| wanted == head.kind)
        && filter.from.is_none_or(|from| from <= start)
        && filter.to.is_none_or(|to| start <= to)
}
