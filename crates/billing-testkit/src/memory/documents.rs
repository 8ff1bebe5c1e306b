//! Documents, as they are shown.

use billing_domain::calendar::Timestamp;
use billing_domain::document::lines::LedgerLine;
use billing_domain::document::{BookDocument, Document, DocumentHead};
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{DocumentFilter, Documents, StoreResult};
use billing_domain::refs::{CustomerId, DocumentKey, DocumentRef, OrganizationId};

use super::{MemoryTx, page};

impl Documents for MemoryTx {
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

    fn documents_of_parents(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        parents: &[DocumentRef],
    ) -> StoreResult<Vec<BookDocument>> {
        let names_one = |row: &Document| row.head.parent.is_some_and(|parent| parents.contains(&parent));
        Ok(self.known_to_book(organization, |row| row.head.customer_id == customer_id && names_one(row)))
    }

    fn ledger_lines(&mut self, key: DocumentKey) -> StoreResult<Vec<LedgerLine>> {
        let found = self.document(key.organization, key.document)?.filter(|row| row.head.customer_id == key.customer);
        Ok(found.and_then(|_| self.state.ledger.get(&key.document).cloned()).unwrap_or_default())
    }
}

pub(super) fn order(row: &Document) -> (Timestamp, DocumentRef) {
    (row.head.created_at, row.head.document_ref)
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
