//! Bank accounts and exchange rates.

use billing_domain::calendar::Timestamp;
use billing_domain::money::Currency;
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::bank::BankAccount;
use billing_domain::ports::{BankAccounts, ExchangeRates, Insertion, StoreResult, Update};
use billing_domain::refs::{BankAccountRef, OrganizationId};
use billing_domain::tax::ExchangeRate;
use chrono::NaiveDate;
use diesel::prelude::*;
use rust_decimal::Decimal;

use super::{counted, limits};
use crate::column_values::Columns as _;
use crate::in_list::one_of_texts;
use crate::row::{Cell, Row};
use crate::schema::{BankAccountColumns, bank_accounts, exchange_rates};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};

#[derive(Queryable, Selectable)]
#[diesel(table_name = bank_accounts)]
struct AccountRow {
    account_ref: String,
    #[diesel(embed)]
    profile: BankAccountColumns,
    created_at: Cell<Timestamp>,
}

impl AccountRow {
    fn read(self) -> StoreResult<BankAccount> {
        let row = Row::new("bank_accounts", &self.account_ref);
        Ok(BankAccount {
            account_ref: row.leaf("account_ref", &self.account_ref)?,
            profile: self.profile.read(&row)?,
            created_at: row.cell("created_at", self.created_at)?,
        })
    }
}

impl BankAccounts for Transaction<'_> {
    fn insert_bank_account(&mut self, organization: OrganizationId, account: &BankAccount) -> StoreResult<Insertion> {
        let columns = BankAccountColumns::of(&account.profile)?;
        let inserted = with_conn!(self, "bank_accounts", |conn| diesel::insert_into(bank_accounts::table)
            .values((
                bank_accounts::organization_id.eq(Bound(organization.as_uuid())),
                bank_accounts::account_ref.eq(account.account_ref.as_str()),
                columns,
                bank_accounts::created_at.eq(Bound(account.created_at)),
            ))
            .on_conflict_do_nothing()
            .execute(conn))?;
        Ok(if inserted == 1 { Insertion::Done } else { Insertion::Taken("billing_account_id") })
    }

    fn update_bank_account(&mut self, organization: OrganizationId, account: &BankAccount) -> StoreResult<Update> {
        let columns = BankAccountColumns::of(&account.profile)?;
        let updated = with_conn!(self, "bank_accounts", |conn| {
            let found = bank_accounts::table.find((Bound(organization.as_uuid()), account.account_ref.as_str()));
            diesel::update(found).set(columns).execute(conn)
        })?;
        Ok(if updated == 1 { Update::Done } else { Update::Unknown })
    }

    fn bank_accounts_by_refs(&mut self, organization: OrganizationId, refs: &[BankAccountRef]) -> StoreResult<Vec<BankAccount>> {
        let rows: Vec<AccountRow> = with_conn!(self, "bank_accounts", |conn| bank_accounts::table
            .filter(bank_accounts::organization_id.eq(Bound(organization.as_uuid())))
            .filter(one_of_texts(bank_accounts::account_ref, refs.iter().map(BankAccountRef::as_str)))
            .order((bank_accounts::created_at, bank_accounts::account_ref))
            .select(AccountRow::as_select())
            .load(conn))?;
        rows.into_iter().map(AccountRow::read).collect()
    }

    fn bank_accounts(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<BankAccount>> {
        let (limit, offset) = limits(page);
        let (rows, total): (Vec<AccountRow>, i64) = with_conn!(self, "bank_accounts", |conn| {
            let of_organization =
                || bank_accounts::table.filter(bank_accounts::organization_id.eq(Bound(organization.as_uuid())));
            let total = of_organization().count().get_result(conn)?;
            let ordered =
                of_organization().order((bank_accounts::created_at, bank_accounts::account_ref)).limit(limit).offset(offset);
            Ok((ordered.select(AccountRow::as_select()).load(conn)?, total))
        })?;
        Ok(Page { items: rows.into_iter().map(AccountRow::read).collect::<StoreResult<_>>()?, total: counted(total)? })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = exchange_rates)]
struct RateRow {
    from_currency: String,
    to_currency: String,
    day: Cell<NaiveDate>,
    rate: Cell<Decimal>,
}

impl RateRow {
    fn read(self) -> StoreResult<ExchangeRate> {
        let row = Row::new("exchange_rates", format!("{}/{}", self.from_currency, self.to_currency));
        let rate = row.cell("rate", self.rate)?.to_string();
        Ok(ExchangeRate {
            from: row.leaf("from_currency", &self.from_currency)?,
            to: row.leaf("to_currency", &self.to_currency)?,
            date: row.cell("day", self.day)?,
            rate: row.leaf("rate", &rate)?,
        })
    }
}

impl ExchangeRates for Transaction<'_> {
    fn put_exchange_rate(&mut self, organization: OrganizationId, rate: &ExchangeRate, at: Timestamp) -> StoreResult<()> {
        with_conn!(self, "exchange_rates", |conn| diesel::insert_into(exchange_rates::table)
            .values((
                exchange_rates::organization_id.eq(Bound(organization.as_uuid())),
                exchange_rates::from_currency.eq(rate.from.code()),
                exchange_rates::to_currency.eq(rate.to.code()),
                exchange_rates::day.eq(Bound(rate.date)),
                exchange_rates::rate.eq(Bound(rate.rate.as_decimal())),
                exchange_rates::created_at.eq(Bound(at)),
            ))
            .on_conflict((
                exchange_rates::organization_id,
                exchange_rates::from_currency,
                exchange_rates::to_currency,
                exchange_rates::day,
            ))
            .do_update()
            .set(exchange_rates::rate.eq(Bound(rate.rate.as_decimal())))
            .execute(conn))?;
        Ok(())
    }

    fn exchange_rate(
        &mut self,
        organization: OrganizationId,
        from: Currency,
        to: Currency,
        on: NaiveDate,
    ) -> StoreResult<Option<ExchangeRate>> {
        let found: Option<RateRow> = with_conn!(self, "exchange_rates", |conn| exchange_rates::table
            .filter(exchange_rates::organization_id.eq(Bound(organization.as_uuid())))
            .filter(exchange_rates::from_currency.eq(from.code()))
            .filter(exchange_rates::to_currency.eq(to.code()))
            .filter(exchange_rates::day.le(Bound(on)))
            .order(exchange_rates::day.desc())
            .select(RateRow::as_select())
            .first(conn)
            .optional())?;
        found.map(RateRow::read).transpose()
    }

    fn exchange_rates(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<ExchangeRate>> {
        let (limit, offset) = limits(page);
        let (rows, total): (Vec<RateRow>, i64) = with_conn!(self, "exchange_rates", |conn| {
            let of_organization =
                || exchange_rates::table.filter(exchange_rates::organization_id.eq(Bound(organization.as_uuid())));
            let total = of_organization().count().get_result(conn)?;
            let ordered = of_organization()
                .order((
                    exchange_rates::created_at,
                    exchange_rates::from_currency,
                    exchange_rates::to_currency,
                    exchange_rates::day,
                ))
                .limit(limit)
                .offset(offset);
            Ok((ordered.select(RateRow::as_select()).load(conn)?, total))
        })?;
        Ok(Page { items: rows.into_iter().map(RateRow::read).collect::<StoreResult<_>>()?, total: counted(total)? })
    }
}
