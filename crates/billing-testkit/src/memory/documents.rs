//! Documents.

use billing_domain::calendar::{Period, Timestamp};
use billing_domain::document::linking::Slot;
use billing_domain::document::{
    Document, DocumentHead, DocumentKind, DocumentState, IssuedDocument, Lifecycle, Purpose, Settlement,
};
use billing_domain::money::Money;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{DocumentFilter, Documents, Lock, StoreResult};
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
        self.state.documents.push(organization, Document { head: head.clone(), lifecycle: Lifecycle::Draft });
        Ok(())
    }

    fn document(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> StoreResult<Option<Document>> {
        Ok(self.state.documents.of(organization).find(|row| row.head.document_ref == document_ref).cloned())
    }

    fn documents(
        &mut self,
        organization: OrganizationId,
        filter: &DocumentFilter,
        request: PageRequest,
    ) -> StoreResult<Page<Document>> {
        let mut passed = Vec::new();
        for row in self.state.documents.of(organization) {
            if passes(filter, &row.head) && filter.state.is_none_or(|wanted| self.state_of(organization, row) == wanted) {
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
        Ok(true)
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
    /// The derived state: issued credits count against the document they belong to (billing rules 6).
    fn state_of(&self, organization: OrganizationId, document: &Document) -> DocumentState {
        let currency = document.head.currency;
        let rows = self.state.documents.of(organization);
        let credits =
            rows.filter(|row| row.head.kind == DocumentKind::Credit && row.head.parent == Some(document.head.document_ref));
        let credits = credits.filter_map(|row| match &row.lifecycle {
            Lifecycle::Issued(issued) => Some(issued.content.total),
            Lifecycle::Draft | Lifecycle::Void(_) | Lifecycle::Uncollectible(_) => None,
        });
        let credits = Money::sum(currency, credits).expect("credits of one currency");
        let settlement = Settlement { credits, ..Settlement::none(currency) };
        document.lifecycle.state(&settlement).expect("amounts in range")
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
