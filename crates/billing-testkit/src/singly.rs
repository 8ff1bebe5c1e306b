//! The ports for one thing where they take many: what a test says shortly.

use std::collections::BTreeMap;

use billing_domain::calendar::Timestamp;
use billing_domain::document::lines::LedgerLine;
use billing_domain::document::{DocumentHead, IssuedDocument};
use billing_domain::ledger::BookRows;
use billing_domain::ports::{FamilySum, StoreError, StoreResult, Tx};
use billing_domain::refs::{ContractKey, CustomerId, DocumentKey, DocumentRef, OrganizationId};

/// What a transaction does for many, for one.
pub trait Singly: Tx {
    /// The rows of one contract's book; none where it isn't there.
    ///
    /// # Errors
    /// Those of [`rows_of_books`](billing_domain::ports::BookReader::rows_of_books).
    fn book_rows(&mut self, key: ContractKey) -> StoreResult<BookRows> {
        Ok(self.rows_of_books(&[key])?.remove(&key).unwrap_or_default())
    }

    /// So many next document numbers within one contract: the first of them.
    ///
    /// # Errors
    /// Those of [`take_numbers_in_contracts`](billing_domain::ports::NumberSeries::take_numbers_in_contracts); [`StoreError::Corrupt`] when the
    /// contract isn't there.
    fn take_numbers_in_contract(&mut self, key: ContractKey, many: u32) -> StoreResult<u32> {
        let taken = self.take_numbers_in_contracts(&BTreeMap::from([(key, many)]))?;
        taken.get(&key).copied().ok_or_else(|| StoreError::Corrupt(format!("contract {} has no numbers", key.contract)))
    }

    /// Stores one draft.
    ///
    /// # Errors
    /// Those of [`open_documents`](billing_domain::ports::BookWriter::open_documents).
    fn open_document(&mut self, organization: OrganizationId, head: &DocumentHead, family: DocumentRef) -> StoreResult<()> {
        self.open_documents(organization, &[(head, family)])
    }

    /// Replaces the ledger lines of one draft adjustment.
    ///
    /// # Errors
    /// Those of [`put_lines_of_drafts`](billing_domain::ports::BookWriter::put_lines_of_drafts).
    fn put_ledger_lines(&mut self, key: DocumentKey, lines: &[LedgerLine]) -> StoreResult<()> {
        self.put_lines_of_drafts(key.organization, &[(key, lines)])
    }

    /// Freezes one draft; `false` when it is a draft no more.
    ///
    /// # Errors
    /// Those of [`issue_documents`](billing_domain::ports::BookWriter::issue_documents).
    fn issue_document(&mut self, key: DocumentKey, issued: &IssuedDocument) -> StoreResult<bool> {
        self.issue_documents(key.organization, &[(key, issued)])
    }

    /// Adds to the sums of one customer's families.
    ///
    /// # Errors
    /// Those of [`add_sums_of_families`](billing_domain::ports::BookWriter::add_sums_of_families).
    fn add_family_sums(&mut self, organization: OrganizationId, customer_id: CustomerId, added: &[FamilySum]) -> StoreResult<()> {
        self.add_sums_of_families(organization, &added.iter().map(|sum| (customer_id, sum.clone())).collect::<Vec<_>>())
    }

    /// Sets when one contract next has something to issue.
    ///
    /// # Errors
    /// Those of [`set_next_dues`](billing_domain::ports::DueContracts::set_next_dues).
    fn set_next_due(&mut self, key: ContractKey, at: Option<Timestamp>) -> StoreResult<()> {
        self.set_next_dues(&BTreeMap::from([(key, at)]))
    }
}

impl<T: Tx + ?Sized> Singly for T {}
