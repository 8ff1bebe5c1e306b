//! What documents need to be papers: bank accounts to pay to, and exchange rates for tax.

use chrono::NaiveDate;

use super::{Insertion, StoreResult, Update};
use crate::calendar::Timestamp;
use crate::money::Currency;
use crate::page::{Page, PageRequest};
use crate::party::bank::BankAccount;
use crate::refs::{BankAccountRef, OrganizationId};
use crate::tax::ExchangeRate;

/// Bank accounts.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait BankAccounts {
    /// Stores a new one. `Taken("billing_account_id")`, unique in the organization.
    fn insert_bank_account(&mut self, organization: OrganizationId, account: &BankAccount) -> StoreResult<Insertion>;
    /// Replaces its profile.
    fn update_bank_account(&mut self, organization: OrganizationId, account: &BankAccount) -> StoreResult<Update>;
    /// Those of these references that exist.
    fn bank_accounts_by_refs(&mut self, organization: OrganizationId, refs: &[BankAccountRef]) -> StoreResult<Vec<BankAccount>>;
    /// All, by creation.
    fn bank_accounts(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<BankAccount>>;
}

/// Exchange rates.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait ExchangeRates {
    /// Stores one, made at an instant, or puts it in the place of the one of the same currencies and day, which keeps when it was
    /// made.
    fn put_exchange_rate(&mut self, organization: OrganizationId, rate: &ExchangeRate, at: Timestamp) -> StoreResult<()>;
    /// The newest of a pair of currencies on a day or before.
    fn exchange_rate(
        &mut self,
        organization: OrganizationId,
        from: Currency,
        to: Currency,
        on: NaiveDate,
    ) -> StoreResult<Option<ExchangeRate>>;
    /// All, by creation, then by currencies and day.
    fn exchange_rates(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<ExchangeRate>>;
}
