//! Bank accounts and exchange rates.

use billing_domain::calendar::{Date, Timestamp};
use billing_domain::money::Currency;
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::bank::BankAccount;
use billing_domain::ports::{BankAccounts, ExchangeRates, Insertion, StoreResult, Update};
use billing_domain::refs::{BankAccountRef, OrganizationId};
use billing_domain::tax::ExchangeRate;

use super::{MemoryTx, page, sorted};

impl BankAccounts for MemoryTx {
    fn insert_bank_account(&mut self, organization: OrganizationId, account: &BankAccount) -> StoreResult<Insertion> {
        if self.state.bank_accounts.of(organization).any(|row| row.account_ref == account.account_ref) {
            return Ok(Insertion::Taken("billing_account_id"));
        }
        self.state.bank_accounts.push(organization, account.clone());
        Ok(Insertion::Done)
    }

    fn update_bank_account(&mut self, organization: OrganizationId, account: &BankAccount) -> StoreResult<Update> {
        match self.state.bank_accounts.of_mut(organization).find(|row| row.account_ref == account.account_ref) {
            Some(row) => row.profile = account.profile.clone(),
            None => return Ok(Update::Unknown),
        }
        Ok(Update::Done)
    }

    fn bank_accounts_by_refs(&mut self, organization: OrganizationId, refs: &[BankAccountRef]) -> StoreResult<Vec<BankAccount>> {
        let found = self.state.bank_accounts.of(organization).filter(|row| refs.contains(&row.account_ref));
        Ok(sorted(found, |row| (row.created_at, row.account_ref.clone())))
    }

    fn bank_accounts(&mut self, organization: OrganizationId, request: PageRequest) -> StoreResult<Page<BankAccount>> {
        let rows = self.state.bank_accounts.of(organization);
        Ok(page(rows, request, |row| (row.created_at, row.account_ref.clone())))
    }
}

impl ExchangeRates for MemoryTx {
    fn put_exchange_rate(&mut self, organization: OrganizationId, rate: &ExchangeRate, at: Timestamp) -> StoreResult<()> {
        let same = |row: &&mut (Timestamp, ExchangeRate)| (row.1.from, row.1.to, row.1.date) == (rate.from, rate.to, rate.date);
        let present = self.state.exchange_rates.of_mut(organization).find(same);
        let is_there = present.map(|(_, present)| *present = *rate).is_some();
        if !is_there {
            self.state.exchange_rates.push(organization, (at, *rate));
        }
        Ok(())
    }

    fn exchange_rate(
        &mut self,
        organization: OrganizationId,
        from: Currency,
        to: Currency,
        on: Date,
    ) -> StoreResult<Option<ExchangeRate>> {
        let rates = self.state.exchange_rates.of(organization).map(|(_, rate)| rate);
        let known = rates.filter(|rate| (rate.from, rate.to) == (from, to) && rate.date <= on);
        Ok(known.max_by_key(|rate| rate.date).copied())
    }

    fn exchange_rates(&mut self, organization: OrganizationId, request: PageRequest) -> StoreResult<Page<ExchangeRate>> {
        let rows = self.state.exchange_rates.of(organization);
        let found = page(rows, request, |(at, rate)| (*at, rate.from.code(), rate.to.code(), rate.date));
        Ok(Page { items: found.items.into_iter().map(|(_, rate)| rate).collect(), total: found.total })
    }
}
