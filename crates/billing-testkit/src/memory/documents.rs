//! Documents, as they are shown.

use std::sync::Arc;

use billing_domain::calendar::Timestamp;
use billing_domain::document::files::{DocumentFile, FileForm};
use billing_domain::document::lines::LedgerLine;
use billing_domain::document::{BookDocument, Document};
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{DocumentFiles, DocumentFilter, DocumentOrder, Documents, Lists as _, StoreResult};
use billing_domain::refs::{CustomerId, DocumentKey, DocumentRef, OrganizationId};

use super::MemoryTx;

impl Documents for MemoryTx {
    fn document_key(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> StoreResult<Option<DocumentKey>> {
        Ok(self.document(organization, document_ref)?.map(|row| row.head.key(organization)))
    }

    fn document(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> StoreResult<Option<Document>> {
        Ok(self.state.documents.of(organization).find(|row| row.head.document_ref == document_ref).cloned())
    }

    fn documents_by_refs(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        refs: &[DocumentRef],
    ) -> StoreResult<Vec<Document>> {
        let is_asked = |row: &&Document| customers.contains(&row.head.customer_id) && refs.contains(&row.head.document_ref);
        Ok(self.state.documents.of(organization).filter(is_asked).cloned().collect())
    }

    fn documents(
        &mut self,
        organization: OrganizationId,
        filter: &DocumentFilter,
        request: PageRequest,
    ) -> StoreResult<Page<Document>> {
        let total = self.document_sums(organization, filter)?.count;
        Ok(Page { items: self.listed_documents(organization, filter, DocumentOrder::default(), request.into())?, total })
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

impl DocumentFiles for MemoryTx {
    fn document_file(&mut self, key: DocumentKey, form: FileForm) -> StoreResult<Option<DocumentFile>> {
        Ok(self.state.files.get(&(key, form)).cloned())
    }

    fn keep_document_file(&mut self, key: DocumentKey, file: &DocumentFile) -> StoreResult<Option<DocumentFile>> {
        let found = self.document(key.organization, key.document)?.filter(|row| row.head.customer_id == key.customer);
        if found.is_none_or(|row| row.lifecycle.issued().is_none()) {
            return Ok(None);
        }
        let kept = Arc::make_mut(&mut self.state.files).entry((key, file.form)).or_insert_with(|| file.clone());
        Ok(Some(kept.clone()))
    }
}

pub(super) fn order(row: &Document) -> (Timestamp, DocumentRef) {
    (row.head.created_at, row.head.document_ref)
}
