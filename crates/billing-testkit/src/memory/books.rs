//! What a contract's book is read from, and what decisions write to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use billing_domain::calendar::{Date, Timestamp};
use billing_domain::document::lines::{DocumentedLine, FamilySums, LedgerLine, Sum, SumKey};
use billing_domain::document::linking::Place;
use billing_domain::document::totals::UsageFacts;
use billing_domain::document::{
    BookDocument, Document, DocumentHead, DraftContent, IssuedDocument, Lifecycle, Purpose, Settlement, Standing,
};
use billing_domain::ledger::{Agreement, BookRows};
use billing_domain::party::Entity;
use billing_domain::ports::{
    BookEntries, Books, Contracts as _, Customers as _, Documents as _, FamilySum, Lock, StoreError, StoreResult,
};
use billing_domain::refs::{ContractKey, ContractRef, CustomerId, DocumentKey, DocumentRef, OrganizationId};

use super::documents::order;
use super::{MemoryTx, corrupt, sorted};

impl Books for MemoryTx {
    fn agreement(&mut self, key: ContractKey, lock: Option<Lock>) -> StoreResult<Option<Agreement>> {
        let Some(row) = self.contract_of(key) else { return Ok(None) };
        let (contract, next_due_at) = (row.contract.clone(), row.next_due_at);
        if let Some(lock) = lock {
            self.lock_contract(key, lock)?;
        }
        let Some(customer) = self.customers_by_ids(key.organization, &[key.customer])?.pop() else {
            return Err(corrupt(format!("{:?} has no customer", key.contract)));
        };
        Ok(Some(Agreement { contract, customer, next_due_at }))
    }

    fn agreement_of(&mut self, organization: OrganizationId, contract_ref: ContractRef) -> StoreResult<Option<Agreement>> {
        match self.contract_key(organization, contract_ref)? {
            Some(key) => self.agreement(key, None),
            None => Ok(None),
        }
    }

    fn agreements(&mut self, contracts: &[ContractKey]) -> StoreResult<Vec<Agreement>> {
        let mut wanted = contracts.to_vec();
        wanted.sort_by_key(|key| key.contract);
        wanted.dedup();
        wanted.into_iter().filter_map(|key| self.agreement(key, None).transpose()).collect()
    }

    fn rows_of_books(&mut self, contracts: &[ContractKey]) -> StoreResult<BTreeMap<ContractKey, BookRows>> {
        Ok(contracts.iter().map(|key| (*key, self.rows_of_book(*key))).collect())
    }

    fn documents_in_places(&mut self, places: &[(ContractKey, Place)]) -> StoreResult<Vec<BookDocument>> {
        let organizations: BTreeSet<OrganizationId> = places.iter().map(|(contract, _)| contract.organization).collect();
        let in_organization = |organization| {
            self.known_to_book(organization, |row| {
                let contract = row.head.contract_key(organization);
                !row.lifecycle.is_void() && places_of(&row.head).any(|place| places.contains(&(contract, place)))
            })
        };
        let mut found: Vec<BookDocument> = organizations.into_iter().flat_map(in_organization).collect();
        found.sort_by_key(|document| (document.head.created_at, document.head.document_ref));
        Ok(found)
    }

    fn book_documents_by_refs(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        refs: &[DocumentRef],
    ) -> StoreResult<Vec<BookDocument>> {
        let is_asked = |row: &Document| customers.contains(&row.head.customer_id) && refs.contains(&row.head.document_ref);
        Ok(self.known_to_book(organization, is_asked))
    }
}

impl BookEntries for MemoryTx {
    fn open_documents(&mut self, organization: OrganizationId, drafts: &[(&DocumentHead, DocumentRef)]) -> StoreResult<()> {
        drafts.iter().try_for_each(|(head, family)| self.open(organization, head, *family))
    }

    fn update_draft(&mut self, organization: OrganizationId, head: &DocumentHead) -> StoreResult<bool> {
        self.held.need_contract(organization, head.contract_ref, "update_draft")?;
        if self.draft(head.key(organization), "update_draft")?.is_none() {
            return Ok(false);
        }
        self.need_free_places(organization, head)?;
        if let Some(draft) = self.draft(head.key(organization), "update_draft")? {
            draft.head.purpose = head.purpose;
            draft.head.period = head.period;
            draft.head.is_partial_period = head.is_partial_period;
            draft.head.parts.clone_from(&head.parts);
        }
        Ok(true)
    }

    fn put_lines_of_drafts(&mut self, _organization: OrganizationId, drafts: &[(DocumentKey, &[LedgerLine])]) -> StoreResult<()> {
        for (key, lines) in drafts {
            if self.draft(*key, "put_lines_of_drafts")?.is_none() {
                return Err(corrupt(format!("{:?} is no draft", key.document)));
            }
            Arc::make_mut(&mut self.state.ledger).insert(key.document, lines.to_vec());
        }
        Ok(())
    }

    fn issue_documents(&mut self, _organization: OrganizationId, drafts: &[(DocumentKey, &IssuedDocument)]) -> StoreResult<bool> {
        for (key, issued) in drafts {
            let Some(draft) = self.draft(*key, "issue_documents")? else { return Ok(false) };
            draft.lifecycle = Lifecycle::Issued(Box::new((*issued).clone()));
            Arc::make_mut(&mut self.state.ledger).insert(key.document, issued.content.ledger_lines());
            self.note_update(key.document, issued.issued_at);
        }
        Ok(true)
    }

    fn void_draft(&mut self, key: DocumentKey, content: &DraftContent, at: Timestamp) -> StoreResult<bool> {
        let Some(draft) = self.draft(key, "void_draft")? else { return Ok(false) };
        draft.lifecycle = Lifecycle::Discarded(Some(Box::new(content.clone())));
        self.note_update(key.document, at);
        Ok(true)
    }

    fn void_issued(&mut self, key: DocumentKey, at: Timestamp, on: Date) -> StoreResult<bool> {
        let Some(row) = self.entered(key, "void_issued")? else { return Ok(false) };
        let Lifecycle::Issued(issued) = &row.lifecycle else { return Ok(false) };
        row.lifecycle = Lifecycle::Void(issued.clone());
        Arc::make_mut(&mut self.state.voided).insert(key.document, (at, on));
        self.note_update(key.document, at);
        Ok(true)
    }

    fn add_sums_of_families(&mut self, organization: OrganizationId, added: &[(CustomerId, FamilySum)]) -> StoreResult<()> {
        for (customer, FamilySum { family, key, sum }) in added {
            let family = DocumentKey { organization, customer: *customer, document: *family };
            if self.entered(family, "add_sums_of_families")?.is_none() {
                return Err(corrupt(format!("{:?} is not there to have sums", family.document)));
            }
            let sums = Arc::make_mut(&mut self.state.family_sums);
            let total = sums.entry((family, key.clone())).or_default();
            let out_of_range = || corrupt(format!("a sum of {:?} is out of range", family.document));
            total.base = total.base.checked_add(sum.base).ok_or_else(out_of_range)?;
            total.amount = total.amount.checked_add(sum.amount).ok_or_else(out_of_range)?;
        }
        Ok(())
    }
}

impl MemoryTx {
    fn open(&mut self, organization: OrganizationId, head: &DocumentHead, family: DocumentRef) -> StoreResult<()> {
        self.held.need_contract(organization, head.contract_ref, "open_document")?;
        if self.document(organization, head.document_ref)?.is_some() {
            return Err(corrupt(format!("{:?} is there already", head.document_ref)));
        }
        if head.kind != head.number.kind {
            return Err(corrupt(format!("the number of {:?} is of another kind", head.document_ref)));
        }
        if self.state.documents.of(organization).any(|other| other.head.number == head.number) {
            return Err(corrupt(format!("{} is there already", head.number)));
        }
        let is_renamed =
            |entity: &Entity| entity.entity_ref == head.entity_ref && entity.profile.number_prefix != head.number.prefix;
        if self.state.entities.of(organization).any(is_renamed) {
            return Err(StoreError::Contended);
        }
        self.need_free_places(organization, head)?;
        let (lifecycle, settlement) = (Lifecycle::Draft, Settlement::none(head.currency));
        self.state.documents.push(organization, Document { head: head.clone(), family, lifecycle, settlement });
        self.note_update(head.document_ref, head.created_at);
        Ok(())
    }

    fn rows_of_book(&self, key: ContractKey) -> BookRows {
        let of_contract = |row: &&Document| row.head.contract_key(key.organization) == key;
        let is_own = |row: &Document| of_contract(&row) && (row.head.purpose != Purpose::Usage || row.is_draft());
        let documents = self.known_to_book(key.organization, is_own);
        let mut lines = Vec::new();
        for row in self.state.documents.of(key.organization).filter(of_contract) {
            let (document_ref, family, kind) = (row.head.document_ref, row.family, row.head.kind);
            let of_document = self.state.ledger.get(&document_ref).filter(|_| !row.lifecycle.is_void());
            let known = |line: &LedgerLine| DocumentedLine { document_ref, family, kind, line: line.clone() };
            lines.extend(of_document.into_iter().flatten().map(known));
        }
        let mut sums: BTreeMap<DocumentRef, Vec<(SumKey, Sum)>> = BTreeMap::new();
        for ((family, of), sum) in self.state.family_sums.iter() {
            let of_customer = family.organization == key.organization && family.customer == key.customer;
            if of_customer && documents.iter().any(|row| row.head.document_ref == family.document) {
                sums.entry(family.document).or_default().push((of.clone(), *sum));
            }
        }
        let is_open = |row: &&BookDocument| row.standing == Standing::Draft || row.standing.is_void();
        let open: BTreeSet<DocumentRef> = documents.iter().filter(is_open).map(|row| row.head.document_ref).collect();
        let live = self.state.events.of(key.organization).filter(|row| row.customer_id == key.customer && !row.deleted);
        let with_events = live.map(|row| row.placement.document_ref).filter(|row| open.contains(row)).collect();
        BookRows {
            documents,
            lines,
            sums: sums.into_iter().map(|(family, sums)| (family, FamilySums::new(sums))).collect(),
            usage: UsageFacts::new(self.totals_of(key)),
            charges: self.charges_of(key),
            with_events,
        }
    }

    /// What a book knows of those documents that are asked for.
    pub(super) fn known_to_book(&self, organization: OrganizationId, is_asked: impl Fn(&Document) -> bool) -> Vec<BookDocument> {
        let rows = sorted(self.state.documents.of(organization).filter(|row| is_asked(row)), order);
        let known = |row: Document| BookDocument {
            standing: row.lifecycle.standing(),
            total: row.lifecycle.issued().map(|issued| issued.content.total),
            issue_date: row.lifecycle.issued().map(|issued| issued.issue_date),
            due_date: row.lifecycle.issued().map(|issued| issued.due_date),
            head: row.head,
            family: row.family,
            settlement: row.settlement,
        };
        rows.into_iter().map(known).collect()
    }

    /// Notes when a document changed.
    pub(super) fn note_update(&mut self, document_ref: DocumentRef, at: Timestamp) {
        Arc::make_mut(&mut self.state.updated).insert(document_ref, at);
    }

    /// A document whose contract is held, to be changed.
    fn entered(&mut self, key: DocumentKey, what: &str) -> StoreResult<Option<&mut Document>> {
        let mut rows = self.state.documents.of_mut(key.organization);
        let found = rows.find(|row| row.head.document_ref == key.document && row.head.customer_id == key.customer);
        found.map(|row| self.held.need_contract(key.organization, row.head.contract_ref, what).map(|()| row)).transpose()
    }

    /// As [`entered`](Self::entered), where it is a draft.
    fn draft(&mut self, key: DocumentKey, what: &str) -> StoreResult<Option<&mut Document>> {
        Ok(self.entered(key, what)?.filter(|row| row.is_draft()))
    }

    /// Refuses a regular document where another in force stands in one of its places.
    fn need_free_places(&self, organization: OrganizationId, head: &DocumentHead) -> StoreResult<()> {
        let mut others = self.state.documents.of(organization).filter(|other| {
            other.head.contract_ref == head.contract_ref
                && other.head.document_ref != head.document_ref
                && !other.lifecycle.is_void()
        });
        if others.any(|other| places_of(&other.head).any(|place| places_of(head).any(|own| own == place))) {
            return Err(corrupt(format!("{:?} has a regular document of {} already", head.contract_ref, head.period)));
        }
        Ok(())
    }
}

/// Where a regular document stands, for each of its products.
fn places_of(head: &DocumentHead) -> impl Iterator<Item = Place> {
    let slot = match head.purpose {
        Purpose::Regular(slot) => Some(slot),
        Purpose::Usage | Purpose::Adjustment => None,
    };
    let period_start = head.period.start();
    head.parts.iter().filter_map(move |product_no| slot.map(|slot| Place { product_no: *product_no, period_start, slot }))
}
