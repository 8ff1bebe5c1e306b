//! Reference data of documents: bank accounts for payment, and exchange rates for tax.

use chrono::NaiveDate;

use super::{Insertion, StoreResult, Update};
use crate::calendar::Timestamp;
use crate::money::Currency;
use crate::page::{Page, PageRequest};
use crate::party::bank::BankAccount;
use crate::refs::{BankAccountRef, OrganizationId};
use crate::tax::ExchangeRate;

/// Storage of bank accounts.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait BankAccounts {
    /// Stores a new bank account. Returns `Taken("billing_account_id")` when the ID is not unique in the organization.
    fn insert_bank_account(&mut self, organization: OrganizationId, account: &BankAccount) -> StoreResult<Insertion>;
    /// Updates the profile of a bank account.
    fn update_bank_account(&mut self, organization: OrganizationId, account: &BankAccount) -> StoreResult<Update>;
    /// Returns the existing bank accounts among these references.
    fn bank_accounts_by_refs(&mut self, organization: OrganizationId, refs: &[BankAccountRef]) -> StoreResult<Vec<BankAccount>>;
    /// Returns a page of all bank accounts, ordered by creation.
    fn bank_accounts(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<BankAccount>>;
}

/// Storage of exchange rates.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait ExchangeRates {
    /// Stores an exchange rate with its creation time. A rate of the same currencies and day is replaced, but keeps its
    /// creation time.
    fn put_exchange_rate(&mut self, organization: OrganizationId, rate: &ExchangeRate, at: Timestamp) -> StoreResult<()>;
    /// Returns the newest exchange rate of a pair of currencies on or before a day.
    fn exchange_rate(
        &mut self,
        organization: OrganizationId,
        from: Currency,
        to: Currency,
        on: NaiveDate,
    ) -> StoreResult<Option<ExchangeRate>>;
    /// Returns a page of all exchange rates, ordered by creation, then by currencies and day.
    fn exchange_rates(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<ExchangeRate>>;
}
