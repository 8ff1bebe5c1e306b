//! Reference data of documents: bank accounts for payment, and exchange rates for tax.

use chrono::NaiveDate;

use super::{Insertion, StoreResult, Update};
use crate::calendar::Timestamp;
use crate::money::Currency;
use crate::page::{ListSortKey, Page, PageRequest, UpdateFilter};
use crate::party::bank::BankAccount;
use crate::refs::{BankAccountRef, OrganizationId};
use crate::tax::ExchangeRate;

/// Storage of bank accounts.
pub trait BankAccounts {
    /// Stores a new bank account. Returns `Taken("billing_account_id")` when the ID is not unique in the organization.
    fn insert_bank_account(&mut self, organization: OrganizationId, account: &BankAccount) -> StoreResult<Insertion>;
    /// Updates the profile of a bank account.
    fn update_bank_account(&mut self, organization: OrganizationId, account: &BankAccount) -> StoreResult<Update>;
    /// Returns the existing bank accounts among these references.
    fn bank_accounts_by_refs(&mut self, organization: OrganizationId, refs: &[BankAccountRef]) -> StoreResult<Vec<BankAccount>>;
    /// Returns a page of the bank accounts that match conditions on the last change. The order may be ascending or
    /// descending.
    fn listed_bank_accounts(
        &mut self,
        organization: OrganizationId,
        updates: &UpdateFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<BankAccount>>;
    /// Returns a page of all bank accounts, ordered by creation.
    fn bank_accounts(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<BankAccount>> {
        self.listed_bank_accounts(organization, &UpdateFilter::default(), ListSortKey::Created, page)
    }
}

/// An exchange rate with the time of its last change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredExchangeRate {
    /// The rate.
    pub rate: ExchangeRate,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

impl StoredExchangeRate {
    /// Returns the text that identifies the rate in a list.
    pub fn key(&self) -> String {
        let ExchangeRate { from, to, date, .. } = &self.rate;
        format!("{}:{}:{date}", from.code(), to.code())
    }
}

/// Storage of exchange rates.
pub trait ExchangeRates {
    /// Stores an exchange rate at an instant. A rate of the same currencies and day is replaced, but keeps its creation
    /// time. Returns the time of the last change, which stays if the value is the same.
    fn put_exchange_rate(&mut self, organization: OrganizationId, rate: &ExchangeRate, at: Timestamp) -> StoreResult<Timestamp>;
    /// Returns the newest exchange rate of a pair of currencies on or before a day.
    fn exchange_rate(
        &mut self,
        organization: OrganizationId,
        from: Currency,
        to: Currency,
        on: NaiveDate,
    ) -> StoreResult<Option<ExchangeRate>>;
    /// Returns a page of the exchange rates that match conditions on the last change. Equal sort keys are ordered by
    /// currencies and day. The order may be ascending or descending.
    fn listed_exchange_rates(
        &mut self,
        organization: OrganizationId,
        updates: &UpdateFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<StoredExchangeRate>>;
    /// Returns a page of all exchange rates, ordered by creation, then by currencies and day.
    fn exchange_rates(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<ExchangeRate>> {
        let page = self.listed_exchange_rates(organization, &UpdateFilter::default(), ListSortKey::Created, page)?;
        Ok(Page { items: page.items.into_iter().map(|stored| stored.rate).collect(), total: page.total })
    }
}
