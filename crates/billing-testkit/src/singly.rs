//! Single-item variants of port methods that take many items. They keep tests short.

use std::collections::BTreeMap;

use billing_domain::calendar::Timestamp;
use billing_domain::document::lines::LedgerLine;
use billing_domain::document::{DocumentHead, IssuedDocument};
use billing_domain::ledger::BookRows;
use billing_domain::ports::{FamilySum, StoreError, StoreResult, Tx};
use billing_domain::refs::{ContractKey, CustomerId, DocumentKey, DocumentRef, OrganizationId};

/// Single-item variants of the methods of a transaction.
pub trait Singly: Tx {
    /// Returns the rows of a contract's book, or no rows if the contract doesn't exist.
    ///
    /// # Errors
    /// Returns the errors of [`rows_of_books`](billing_domain::ports::BookReader::rows_of_books).
    fn book_rows(&mut self, key: ContractKey) -> StoreResult<BookRows> {
        Ok(self.rows_of_books(&[key])?.remove(&key).unwrap_or_default())
    }

    /// Reserves `many` document numbers within a contract and returns the first one.
    ///
    /// # Errors
    /// Returns the errors of [`take_numbers_in_contracts`](billing_domain::ports::NumberSeries::take_numbers_in_contracts), and
    /// [`StoreError::Corrupt`] if the contract doesn't exist.
    fn take_numbers_in_contract(&mut self, key: ContractKey, many: u32) -> StoreResult<u32> {
        let taken = self.take_numbers_in_contracts(&BTreeMap::from([(key, many)]))?;
        taken.get(&key).copied().ok_or_else(|| StoreError::Corrupt(format!("contract {} has no numbers", key.contract)))
    }

    /// Stores a draft.
    ///
    /// # Errors
    /// Returns the errors of [`open_documents`](billing_domain::ports::BookWriter::open_documents).
    fn open_document(&mut self, organization: OrganizationId, head: &DocumentHead, family: DocumentRef) -> StoreResult<()> {
        self.open_documents(organization, &[(head, family)], head.created_at)
    }

    /// Replaces the ledger lines of a draft adjustment.
    ///
    /// # Errors
    /// Returns the errors of [`put_lines_of_drafts`](billing_domain::ports::BookWriter::put_lines_of_drafts).
    fn put_ledger_lines(&mut self, key: DocumentKey, lines: &[LedgerLine]) -> StoreResult<()> {
        self.put_lines_of_drafts(key.organization, &[(key, lines)])
    }

    /// Issues a draft. Returns `false` if the document is no longer a draft.
    ///
    /// # Errors
    /// Returns the errors of [`issue_documents`](billing_domain::ports::BookWriter::issue_documents).
    fn issue_document(&mut self, key: DocumentKey, issued: &IssuedDocument) -> StoreResult<bool> {
        self.issue_documents(key.organization, &[(key, issued)], issued.issued_at)
    }

    /// Adds to the sums of a customer's document families.
    ///
    /// # Errors
    /// Returns the errors of [`add_sums_of_families`](billing_domain::ports::BookWriter::add_sums_of_families).
    fn add_family_sums(&mut self, organization: OrganizationId, customer_id: CustomerId, added: &[FamilySum]) -> StoreResult<()> {
        self.add_sums_of_families(organization, &added.iter().map(|sum| (customer_id, sum.clone())).collect::<Vec<_>>())
    }

    /// Sets the next time at which a contract has something to issue.
    ///
    /// # Errors
    /// Returns the errors of [`set_next_dues`](billing_domain::ports::DueContracts::set_next_dues).
    fn set_next_due(&mut self, key: ContractKey, at: Option<Timestamp>) -> StoreResult<()> {
        self.set_next_dues(&BTreeMap::from([(key, at)]))
    }
}

impl<T: Tx + ?Sized> Singly for T {}
