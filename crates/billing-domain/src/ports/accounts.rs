//! Receivables: payments, applications and write-offs.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use super::{StoreError, StoreResult};
use crate::calendar::Timestamp;
use crate::document::BookDocument;
use crate::ledger::receivables::AccountEntry;
use crate::metadata::Metadata;
use crate::money::MoneySum;
use crate::page::{Page, PageRequest, UpdateFilter};
use crate::receivables::{AccountKey, Application, ApplicationSource, Payment, StatementEntry, WriteOff};
use crate::refs::{ApplicationRef, CustomerId, DocumentKey, DocumentRef, OrganizationId, PaymentRef};
use crate::text::OneLine;

/// A selection of issued documents of an account.
#[derive(Clone, Copy, Debug)]
pub enum DocumentsOf<'a> {
    /// These documents, issued or not.
    These(&'a [DocumentRef]),
    /// The documents in force in these families.
    Families(&'a [DocumentRef]),
    /// Credits with an unapplied amount.
    Unapplied,
    /// Documents with an amount due, earliest due date first, until their amounts due add up to this sum.
    OpenUpTo(MoneySum),
    /// All documents in force.
    All,
}

/// A selection of payments and refunds of an account.
#[derive(Clone, Copy, Debug)]
pub enum PaymentsOf<'a> {
    /// These payments and refunds.
    These(&'a [PaymentRef]),
    /// The payments and refunds recorded on this document.
    Document(DocumentRef),
    /// Payments with an unapplied amount.
    Unapplied,
    /// All payments and refunds.
    All,
}

/// A selection of applications of an account.
#[derive(Clone, Copy, Debug)]
pub enum ApplicationsOf<'a> {
    /// These applications.
    These(&'a [ApplicationRef]),
    /// The applications of a credit or a payment.
    From(ApplicationSource),
    /// All applications.
    All,
}

/// Storage of receivables accounts: the inputs and results of decisions about money.
pub trait Accounts {
    /// Locks accounts until the transaction ends, in the order of their keys. Returns the unapplied sum of each account.
    ///
    /// The result omits accounts without any entry. Contracts are locked before accounts, number series after them.
    fn hold_accounts(
        &mut self,
        organization: OrganizationId,
        keys: &BTreeSet<AccountKey>,
    ) -> StoreResult<BTreeMap<AccountKey, MoneySum>>;
    /// Locks all accounts of these customers until the transaction ends, in the order of their keys. Returns the unapplied sum
    /// of each account.
    fn lock_accounts_of(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
    ) -> StoreResult<BTreeMap<AccountKey, MoneySum>>;
    /// Locks an account until the transaction ends. Returns its unapplied sum.
    fn hold_account(&mut self, organization: OrganizationId, key: &AccountKey) -> StoreResult<MoneySum> {
        let held = self.hold_accounts(organization, &BTreeSet::from([key.clone()]))?;
        held.get(key).copied().ok_or_else(|| StoreError::Corrupt(format!("the account {key:?} isn't held")))
    }
    /// Returns documents of an account, ordered by due date, then by reference.
    fn account_documents<'a>(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        which: DocumentsOf<'a>,
    ) -> StoreResult<Vec<BookDocument>>;
    /// Returns payments and refunds of an account, ordered by reference.
    fn account_payments<'a>(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        which: PaymentsOf<'a>,
    ) -> StoreResult<Vec<Payment>>;
    /// Returns applications of an account that are not reversed, ordered by reference.
    fn account_applications<'a>(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        which: ApplicationsOf<'a>,
    ) -> StoreResult<Vec<Application>>;
    /// Saves the entries decided at an instant and the new unapplied sum. The account must be locked.
    fn put_account(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        entries: &[AccountEntry],
        unapplied: MoneySum,
        at: Timestamp,
    ) -> StoreResult<()>;
}

/// A filter for lists of payments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PaymentFilter {
    /// Matches payments of this customer.
    pub customer_id: Option<CustomerId>,
    /// Matches payments recorded on this document.
    pub document_ref: Option<DocumentRef>,
    /// Matches only deposits and their refunds.
    pub deposits: bool,
    /// Matches payments with this reference, assigned by the payer or the bank.
    pub reference: Option<OneLine>,
    /// Matches payments on or after this date.
    pub from: Option<NaiveDate>,
    /// Matches payments on or before this date.
    pub to: Option<NaiveDate>,
    /// Matches payments whose metadata has these keys with these values.
    pub metadata: Metadata,
    /// Conditions on the time of the last change.
    pub updates: UpdateFilter,
}

/// A sort key for payments. Equal keys are ordered by reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PaymentSortKey {
    /// The time of recording.
    #[default]
    Created,
    /// The payment date.
    PaidDate,
    /// The time of the last change.
    Updated,
}

/// Read access to payments and applications for display.
pub trait Payments {
    /// Returns a payment or refund and its account, by reference alone.
    fn payment(&mut self, organization: OrganizationId, payment_ref: PaymentRef) -> StoreResult<Option<(AccountKey, Payment)>>;
    /// Returns an application that is not reversed and its account, by reference alone.
    fn application(
        &mut self,
        organization: OrganizationId,
        application_ref: ApplicationRef,
    ) -> StoreResult<Option<(AccountKey, Application)>>;
    /// Returns a page of the payments and refunds that match a filter, with their accounts. The order may be ascending or
    /// descending.
    fn payments(
        &mut self,
        organization: OrganizationId,
        filter: &PaymentFilter,
        by: PaymentSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<(AccountKey, Payment)>>;
    /// Returns the payments and refunds recorded on a document, in the order of recording.
    fn payments_of_document(&mut self, key: DocumentKey) -> StoreResult<Vec<Payment>>;
    /// Returns a customer's applications that are not reversed, ordered by reference. Includes applications from or to
    /// any of these documents and from any of these payments.
    fn applications_around(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        documents: &[DocumentRef],
        payments: &[PaymentRef],
    ) -> StoreResult<Vec<Application>>;
    /// Returns the write-offs and reductions of a customer's documents, in the order of recording.
    fn write_offs_of(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        documents: &[DocumentRef],
    ) -> StoreResult<Vec<WriteOff>>;
}

/// Totals of what customers owe.
pub trait Balances {
    /// Returns the accounts of these customers with their unapplied sums, ordered by customer, entity and currency. Without
    /// customers, returns all accounts of the organization.
    fn accounts(
        &mut self,
        organization: OrganizationId,
        customers: Option<&[CustomerId]>,
    ) -> StoreResult<Vec<(AccountKey, MoneySum)>>;
    /// Returns the amounts due of these customers' documents, by account and due date.
    fn due_by_day(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
    ) -> StoreResult<Vec<(AccountKey, NaiveDate, MoneySum)>>;
    /// Returns the sum of these customers' write-offs, by account.
    fn written_off(&mut self, organization: OrganizationId, customers: &[CustomerId])
    -> StoreResult<Vec<(AccountKey, MoneySum)>>;
    /// Returns all changes of a customer's balance up to a date, inclusive, in the order of recording. At equal times,
    /// documents come before payments.
    fn statement_entries(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        to: Option<NaiveDate>,
    ) -> StoreResult<Vec<StatementEntry>>;
}
