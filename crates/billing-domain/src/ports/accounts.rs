//! What customers owe: payments, applications, write-offs.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use super::{StoreError, StoreResult};
use crate::calendar::Timestamp;
use crate::document::BookDocument;
use crate::ledger::receivables::AccountEntry;
use crate::money::MoneySum;
use crate::page::{Page, PageRequest};
use crate::receivables::{AccountKey, Application, ApplicationSource, Payment, StatementEntry, WriteOff};
use crate::refs::{ApplicationRef, CustomerId, DocumentKey, DocumentRef, OrganizationId, PaymentRef};
use crate::text::OneLine;

/// Which issued documents of an account are asked for.
#[derive(Clone, Copy, Debug)]
pub enum DocumentsOf<'a> {
    /// These, issued or not.
    These(&'a [DocumentRef]),
    /// Those in force of these families.
    Families(&'a [DocumentRef]),
    /// Credits with something unapplied.
    Unapplied,
    /// Those with something left to pay, earliest due date first, until what is left of them comes to an amount.
    OpenUpTo(MoneySum),
    /// All that are in force.
    All,
}

/// Which payments and refunds of an account are asked for.
#[derive(Clone, Copy, Debug)]
pub enum PaymentsOf<'a> {
    /// These.
    These(&'a [PaymentRef]),
    /// Those recorded on a document.
    Document(DocumentRef),
    /// Payments with something unapplied.
    Unapplied,
    /// All.
    All,
}

/// Which applications of an account are asked for.
#[derive(Clone, Copy, Debug)]
pub enum ApplicationsOf<'a> {
    /// These.
    These(&'a [ApplicationRef]),
    /// Those of a credit or a payment.
    From(ApplicationSource),
    /// All.
    All,
}

/// Accounts: what a decision about money is made of, and what it writes.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Accounts {
    /// Holds accounts until the transaction ends, in the order of their keys, and answers the sum of what is unapplied in each;
    /// nothing of one that has nothing yet. Contracts are held before, number series after.
    fn hold_accounts(
        &mut self,
        organization: OrganizationId,
        keys: &BTreeSet<AccountKey>,
    ) -> StoreResult<BTreeMap<AccountKey, MoneySum>>;
    /// Holds an account until the transaction ends, and answers the sum of what is unapplied in it.
    fn hold_account(&mut self, organization: OrganizationId, key: &AccountKey) -> StoreResult<MoneySum> {
        let held = self.hold_accounts(organization, &BTreeSet::from([key.clone()]))?;
        held.get(key).copied().ok_or_else(|| StoreError::Corrupt(format!("the account {key:?} isn't held")))
    }
    /// Documents of an account, by due date, then by reference.
    fn account_documents<'a>(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        which: DocumentsOf<'a>,
    ) -> StoreResult<Vec<BookDocument>>;
    /// Payments and refunds of an account, by reference.
    fn account_payments<'a>(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        which: PaymentsOf<'a>,
    ) -> StoreResult<Vec<Payment>>;
    /// Applications of an account that weren't taken back, by reference.
    fn account_applications<'a>(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        which: ApplicationsOf<'a>,
    ) -> StoreResult<Vec<Application>>;
    /// Writes what was decided at an instant of an account that is held, and what is unapplied in it now.
    fn put_account(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        entries: &[AccountEntry],
        unapplied: MoneySum,
        at: Timestamp,
    ) -> StoreResult<()>;
}

/// What a list of payments is narrowed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PaymentFilter {
    /// This customer's.
    pub customer_id: Option<CustomerId>,
    /// Recorded on this document.
    pub document_ref: Option<DocumentRef>,
    /// With this reference of the payer's or the bank's.
    pub reference: Option<OneLine>,
    /// Paid on this day or later.
    pub from: Option<NaiveDate>,
    /// Paid on this day or earlier.
    pub to: Option<NaiveDate>,
}

/// By what payments are ordered; equals come by reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PaymentSortKey {
    /// When they were recorded.
    #[default]
    Created,
    /// The days they were paid on.
    PaidDate,
}

/// Payments, as they are shown.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Payments {
    /// A payment or a refund, by its reference alone, and its account.
    fn payment(&mut self, organization: OrganizationId, payment_ref: PaymentRef) -> StoreResult<Option<(AccountKey, Payment)>>;
    /// An application that wasn't taken back, by its reference alone, and its account.
    fn application(
        &mut self,
        organization: OrganizationId,
        application_ref: ApplicationRef,
    ) -> StoreResult<Option<(AccountKey, Application)>>;
    /// All payments and refunds that pass a filter, with their accounts, in an order, from either end.
    fn payments(
        &mut self,
        organization: OrganizationId,
        filter: &PaymentFilter,
        by: PaymentSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<(AccountKey, Payment)>>;
    /// The payments and refunds recorded on a document, in the order they were recorded.
    fn payments_of_document(&mut self, key: DocumentKey) -> StoreResult<Vec<Payment>>;
    /// A customer's applications that weren't taken back from or to any of these documents, or from any of these payments, by reference.
    fn applications_around(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        documents: &[DocumentRef],
        payments: &[PaymentRef],
    ) -> StoreResult<Vec<Application>>;
    /// What was written off of a customer's documents, or lessened, in the order it was recorded.
    fn write_offs_of(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        documents: &[DocumentRef],
    ) -> StoreResult<Vec<WriteOff>>;
}

/// What customers owe, summed up.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Balances {
    /// A customer's accounts with what is unapplied in them, by entity and currency; all accounts of the organization without one.
    fn accounts(
        &mut self,
        organization: OrganizationId,
        customer_id: Option<CustomerId>,
    ) -> StoreResult<Vec<(AccountKey, MoneySum)>>;
    /// What is left to pay of a customer's documents, by account and due date.
    fn due_by_day(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
    ) -> StoreResult<Vec<(AccountKey, NaiveDate, MoneySum)>>;
    /// Σ of what was written off, by account.
    fn written_off(&mut self, organization: OrganizationId, customer_id: CustomerId) -> StoreResult<Vec<(AccountKey, MoneySum)>>;
    /// Everything that changed what a customer owes until a day, inclusive, in the order it was recorded; of one
    /// moment what was billed first, then what was paid.
    fn statement_entries(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        to: Option<NaiveDate>,
    ) -> StoreResult<Vec<StatementEntry>>;
}
