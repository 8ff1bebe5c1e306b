//! What a contract's book is read from, and what decisions write to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use billing_domain::calendar::Timestamp;
use billing_domain::document::lines::{DocumentedLine, FamilySums, LedgerLine, Sum, SumKey};
use billing_domain::document::linking::Place;
use billing_domain::document::totals::UsageFacts;
use billing_domain::document::{
    BookDocument, DefaultTax, Document, DocumentHead, DraftContent, IssuedDocument, Lifecycle, Purpose, Settlement, Standing,
};
use billing_domain::ledger::{Agreement, BookRows};
use billing_domain::ports::{
    BookEntries, Books, Contracts as _, Customers as _, Documents as _, FamilySum, Lock, StoreError, StoreResult,
    UsageEvents as _,
};
use billing_domain::refs::{ContractRef, CustomerId, DocumentRef, EventRef, OrganizationId};

use super::documents::order;
use super::{MemoryTx, corrupt, sorted};

impl Books for MemoryTx {
    fn agreement(
        &mut self,
        organization: OrganizationId,
        contract_ref: ContractRef,
        lock: Option<Lock>,
    ) -> StoreResult<Option<Agreement>> {
        let Some(contract) = self.contract(organization, contract_ref)? else { return Ok(None) };
        if let Some(lock) = lock {
            self.lock_contract(organization, contract.customer_id, contract_ref, lock)?;
        }
        let Some(customer) = self.customers_by_ids(organization, &[contract.customer_id])?.pop() else {
            return Err(corrupt(format!("{contract_ref:?} has no customer")));
        };
        let next_due_at = self.contract_of(organization, customer.id, contract_ref).and_then(|row| row.next_due_at);
        Ok(Some(Agreement { contract, customer, next_due_at }))
    }

    fn agreement_of_event(&mut self, organization: OrganizationId, event_ref: EventRef) -> StoreResult<Option<Agreement>> {
        match self.event(organization, event_ref)? {
            Some(event) => self.agreement(organization, event.placement.contract_ref, Some(Lock::Exclusive)),
            None => Ok(None),
        }
    }

    fn book_rows(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
    ) -> StoreResult<BookRows> {
        let is_own = |row: &Document| of_contract(row, customer_id, contract_ref) && row.head.purpose != Purpose::Usage;
        let documents = self.known_to_book(organization, is_own);
        let mut lines = Vec::new();
        for row in self.state.documents.of(organization).filter(|row| of_contract(row, customer_id, contract_ref)) {
            let (document_ref, family, kind) = (row.head.document_ref, row.family, row.head.kind);
            let of_document = self.state.ledger.get(&document_ref).filter(|_| !row.lifecycle.is_void());
            let known = |line: &LedgerLine| DocumentedLine { document_ref, family, kind, line: line.clone() };
            lines.extend(of_document.into_iter().flatten().map(known));
        }
        let mut sums: BTreeMap<DocumentRef, Vec<(SumKey, Sum)>> = BTreeMap::new();
        for ((owner, customer, family, key), sum) in self.state.family_sums.iter() {
            if *owner == organization && *customer == customer_id && documents.iter().any(|row| row.head.document_ref == *family)
            {
                sums.entry(*family).or_default().push((*key, *sum));
            }
        }
        let is_open = |row: &&BookDocument| row.standing == Standing::Draft || row.standing.is_void();
        let open: BTreeSet<DocumentRef> = documents.iter().filter(is_open).map(|row| row.head.document_ref).collect();
        let live = self.state.events.of(organization).filter(|row| row.customer_id == customer_id && !row.deleted);
        let with_events = live.map(|row| row.placement.document_ref).filter(|row| open.contains(row)).collect();
        Ok(BookRows {
            documents,
            lines,
            sums: sums.into_iter().map(|(family, sums)| (family, FamilySums::new(sums))).collect(),
            usage: UsageFacts::new(self.totals_of(organization, customer_id, contract_ref)),
            with_events,
        })
    }

    fn documents_in_places(
        &mut self,
        organization: OrganizationId,
        places: &[(CustomerId, ContractRef, Place)],
    ) -> StoreResult<Vec<BookDocument>> {
        Ok(self.known_to_book(organization, |row| {
            let (customer, contract) = (row.head.customer_id, row.head.contract_ref);
            !row.lifecycle.is_void() && places_of(&row.head).any(|place| places.contains(&(customer, contract, place)))
        }))
    }

    fn book_documents_by_refs(&mut self, organization: OrganizationId, refs: &[DocumentRef]) -> StoreResult<Vec<BookDocument>> {
        Ok(self.known_to_book(organization, |row| refs.contains(&row.head.document_ref)))
    }
}

impl BookEntries for MemoryTx {
    fn open_document(&mut self, organization: OrganizationId, head: &DocumentHead, family: DocumentRef) -> StoreResult<()> {
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
        let mut entities = self.state.entities.of(organization).filter(|entity| entity.entity_ref == head.entity_ref);
        if entities.any(|entity| entity.profile.number_prefix != head.number.prefix) {
            return Err(StoreError::Contended);
        }
        self.need_free_places(organization, head)?;
        let (lifecycle, settlement) = (Lifecycle::Draft, Settlement::none(head.currency));
        self.state.documents.push(organization, Document { head: head.clone(), family, lifecycle, settlement });
        Ok(())
    }

    fn update_draft(&mut self, organization: OrganizationId, head: &DocumentHead) -> StoreResult<bool> {
        self.held.need_contract(organization, head.contract_ref, "update_draft")?;
        if self.draft(organization, head.customer_id, head.document_ref, "update_draft")?.is_none() {
            return Ok(false);
        }
        self.need_free_places(organization, head)?;
        if let Some(draft) = self.draft(organization, head.customer_id, head.document_ref, "update_draft")? {
            draft.head.purpose = head.purpose;
            draft.head.period = head.period;
            draft.head.is_partial_period = head.is_partial_period;
            draft.head.parts.clone_from(&head.parts);
        }
        Ok(true)
    }

    fn put_ledger_lines(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        lines: &[LedgerLine],
    ) -> StoreResult<()> {
        if self.draft(organization, customer_id, document_ref, "put_ledger_lines")?.is_none() {
            return Err(corrupt(format!("{document_ref:?} is no draft")));
        }
        Arc::make_mut(&mut self.state.ledger).insert(document_ref, lines.to_vec());
        Ok(())
    }

    fn issue_document(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        issued: &IssuedDocument,
    ) -> StoreResult<bool> {
        let Some(draft) = self.draft(organization, customer_id, document_ref, "issue_document")? else { return Ok(false) };
        draft.lifecycle = Lifecycle::Issued(Box::new(issued.clone()));
        Arc::make_mut(&mut self.state.ledger).insert(document_ref, issued.content.ledger_lines());
        Ok(true)
    }

    fn void_draft(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        content: &DraftContent,
        _at: Timestamp,
    ) -> StoreResult<bool> {
        let Some(draft) = self.draft(organization, customer_id, document_ref, "void_draft")? else { return Ok(false) };
        draft.lifecycle = Lifecycle::Discarded(Some(Box::new(content.clone())));
        Ok(true)
    }

    fn void_issued(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        _at: Timestamp,
    ) -> StoreResult<bool> {
        let Some(row) = self.entered(organization, customer_id, document_ref, "void_issued")? else { return Ok(false) };
        let Lifecycle::Issued(issued) = &row.lifecycle else { return Ok(false) };
        row.lifecycle = Lifecycle::Void(issued.clone());
        Ok(true)
    }

    fn add_family_sums(&mut self, organization: OrganizationId, customer_id: CustomerId, added: &[FamilySum]) -> StoreResult<()> {
        for FamilySum { family, key, sum } in added {
            if self.entered(organization, customer_id, *family, "add_family_sums")?.is_none() {
                return Err(corrupt(format!("{family:?} is not there to have sums")));
            }
            let sums = Arc::make_mut(&mut self.state.family_sums);
            let total = sums.entry((organization, customer_id, *family, *key)).or_default();
            let out_of_range = || corrupt(format!("a sum of {family:?} is out of range"));
            total.base = total.base.checked_add(sum.base).ok_or_else(out_of_range)?;
            total.amount = total.amount.checked_add(sum.amount).ok_or_else(out_of_range)?;
        }
        Ok(())
    }

    fn keep_default_tax(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        family: DocumentRef,
        default_tax: DefaultTax,
    ) -> StoreResult<()> {
        if self.entered(organization, customer_id, family, "keep_default_tax")?.is_none() {
            return Err(corrupt(format!("{family:?} is not there to keep a default tax")));
        }
        self.state.default_taxes.insert(family, default_tax);
        Ok(())
    }
}

impl MemoryTx {
    /// What a book knows of those documents that are asked for.
    pub(super) fn known_to_book(&self, organization: OrganizationId, is_asked: impl Fn(&Document) -> bool) -> Vec<BookDocument> {
        let rows = sorted(self.state.documents.of(organization).filter(|row| is_asked(row)), order);
        let known = |row: Document| BookDocument {
            standing: row.lifecycle.standing(),
            total: row.lifecycle.issued().map(|issued| issued.content.total),
            default_tax: self.state.default_taxes.get(&row.head.document_ref).copied(),
            head: row.head,
            family: row.family,
            settlement: row.settlement,
        };
        rows.into_iter().map(known).collect()
    }

    /// A document whose contract is held, to be changed.
    fn entered(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        what: &str,
    ) -> StoreResult<Option<&mut Document>> {
        let mut rows = self.state.documents.of_mut(organization);
        let found = rows.find(|row| row.head.document_ref == document_ref && row.head.customer_id == customer_id);
        found.map(|row| self.held.need_contract(organization, row.head.contract_ref, what).map(|()| row)).transpose()
    }

    /// As [`entered`](Self::entered), where it is a draft.
    fn draft(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        what: &str,
    ) -> StoreResult<Option<&mut Document>> {
        Ok(self.entered(organization, customer_id, document_ref, what)?.filter(|row| row.is_draft()))
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

fn of_contract(row: &Document, customer_id: CustomerId, contract_ref: ContractRef) -> bool {
    row.head.customer_id == customer_id && row.head.contract_ref == contract_ref
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
