//! Bank accounts and exchange rates.

use billing_domain::calendar::{Timestamp, parse_date};
use billing_domain::money::Currency;
use billing_domain::page::{ListSortKey, Page, PageRequest, UpdateFilter};
use billing_domain::party::bank::BankAccount;
use billing_domain::ports::{BankAccounts, ExchangeRates, Insertion, StoreResult, StoredExchangeRate, Update};
use billing_domain::refs::{BankAccountRef, OrganizationId};
use billing_domain::tax::ExchangeRate;
use chrono::NaiveDate;
use diesel::prelude::*;
use rust_decimal::Decimal;

use super::update_lists::list_rows;
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
    updated_at: Cell<Timestamp>,
}

impl AccountRow {
    fn read(self) -> StoreResult<BankAccount> {
        let row = Row::new("bank_accounts", &self.account_ref);
        Ok(BankAccount {
            account_ref: row.leaf("account_ref", &self.account_ref)?,
            profile: self.profile.read(&row)?,
            created_at: row.cell("created_at", self.created_at)?,
            updated_at: row.cell("updated_at", self.updated_at)?,
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
                bank_accounts::updated_at.eq(Bound(account.updated_at)),
            ))
            .on_conflict_do_nothing()
            .execute(conn))?;
        Ok(if inserted == 1 { Insertion::Done } else { Insertion::Taken("billing_account_id") })
    }

    fn update_bank_account(&mut self, organization: OrganizationId, account: &BankAccount) -> StoreResult<Update> {
        let columns = BankAccountColumns::of(&account.profile)?;
        let updated = with_conn!(self, "bank_accounts", |conn| {
            let found = bank_accounts::table.find((Bound(organization.as_uuid()), account.account_ref.as_str()));
            diesel::update(found).set((columns, bank_accounts::updated_at.eq(Bound(account.updated_at)))).execute(conn)
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

    fn listed_bank_accounts(
        &mut self,
        organization: OrganizationId,
        updates: &UpdateFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<BankAccount>> {
        let (rows, total): (Vec<AccountRow>, i64) =
            list_rows!(self, "bank_accounts", bank_accounts::account_ref as text, AccountRow, organization, updates, by, page);
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
    fn put_exchange_rate(&mut self, organization: OrganizationId, rate: &ExchangeRate, at: Timestamp) -> StoreResult<Timestamp> {
        let key = (Bound(organization.as_uuid()), rate.from.code(), rate.to.code(), Bound(rate.date));
        let known: Option<(Cell<Decimal>, Cell<Timestamp>)> = with_conn!(self, "exchange_rates", |conn| exchange_rates::table
            .find(key)
            .select((exchange_rates::rate, exchange_rates::updated_at))
            .first(conn)
            .optional())?;
        if let Some((known, updated_at)) = known {
            let row = Row::new("exchange_rates", format!("{}/{}", rate.from.code(), rate.to.code()));
            // Equal decimals with another number of digits differ in responses.
            if row.cell("rate", known)?.to_string() == rate.rate.as_decimal().to_string() {
                return row.cell("updated_at", updated_at);
            }
        }
        with_conn!(self, "exchange_rates", |conn| diesel::insert_into(exchange_rates::table)
            .values((
                exchange_rates::organization_id.eq(Bound(organization.as_uuid())),
                exchange_rates::from_currency.eq(rate.from.code()),
                exchange_rates::to_currency.eq(rate.to.code()),
                exchange_rates::day.eq(Bound(rate.date)),
                exchange_rates::rate.eq(Bound(rate.rate.as_decimal())),
                exchange_rates::created_at.eq(Bound(at)),
                exchange_rates::updated_at.eq(Bound(at)),
            ))
            .on_conflict((
                exchange_rates::organization_id,
                exchange_rates::from_currency,
                exchange_rates::to_currency,
                exchange_rates::day,
            ))
            .do_update()
            .set((exchange_rates::rate.eq(Bound(rate.rate.as_decimal())), exchange_rates::updated_at.eq(Bound(at))))
            .execute(conn))?;
        Ok(at)
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

    fn listed_exchange_rates(
        &mut self,
        organization: OrganizationId,
        updates: &UpdateFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<StoredExchangeRate>> {
        let (limit, offset) = limits(page);
        let after = updates.after.as_ref().and_then(|position| Some((position.updated_at, pair_and_day(&position.key)?)));
        let (rows, total): (Vec<(RateRow, Cell<Timestamp>)>, i64) = with_conn!(self, "exchange_rates", |conn| {
            let narrowed = || {
                let own = exchange_rates::organization_id.eq(Bound(organization.as_uuid()));
                let mut query = exchange_rates::table.filter(own).into_boxed::<Db>();
                if let Some(since) = updates.since {
                    query = query.filter(exchange_rates::updated_at.ge(Bound(since)));
                }
                query
            };
            let total = if updates.after.is_some() { 0 } else { narrowed().count().get_result(conn)? };
            let mut query = narrowed();
            if let Some((at, (from, to, day))) = &after {
                let (at, from, to, day) = (Bound(*at), from.as_str(), to.as_str(), Bound(*day));
                query = if page.is_backward() {
                    let same_pair = exchange_rates::to_currency.eq(to).and(exchange_rates::day.lt(day));
                    let same_from = exchange_rates::to_currency.lt(to).or(same_pair);
                    let same_time =
                        exchange_rates::from_currency.lt(from).or(exchange_rates::from_currency.eq(from).and(same_from));
                    query.filter(exchange_rates::updated_at.lt(at).or(exchange_rates::updated_at.eq(at).and(same_time)))
                } else {
                    let same_pair = exchange_rates::to_currency.eq(to).and(exchange_rates::day.gt(day));
                    let same_from = exchange_rates::to_currency.gt(to).or(same_pair);
                    let same_time =
                        exchange_rates::from_currency.gt(from).or(exchange_rates::from_currency.eq(from).and(same_from));
                    query.filter(exchange_rates::updated_at.gt(at).or(exchange_rates::updated_at.eq(at).and(same_time)))
                };
            }
            let (from, to, day) = (exchange_rates::from_currency, exchange_rates::to_currency, exchange_rates::day);
            let ordered = match (by, page.is_backward()) {
                (ListSortKey::Created, false) => query.order((exchange_rates::created_at, from, to, day)),
                (ListSortKey::Created, true) => {
                    query.order((exchange_rates::created_at.desc(), from.desc(), to.desc(), day.desc()))
                }
                (ListSortKey::Updated, false) => query.order((exchange_rates::updated_at, from, to, day)),
                (ListSortKey::Updated, true) => {
                    query.order((exchange_rates::updated_at.desc(), from.desc(), to.desc(), day.desc()))
                }
            };
            let ordered = ordered.limit(limit).offset(offset).select((RateRow::as_select(), exchange_rates::updated_at));
            Ok((ordered.load(conn)?, total))
        })?;
        let stored = |(rate, updated_at)| {
            let updated_at = Row::new("exchange_rates", "").cell("updated_at", updated_at)?;
            Ok(StoredExchangeRate { rate: RateRow::read(rate)?, updated_at })
        };
        Ok(Page { items: rows.into_iter().map(stored).collect::<StoreResult<_>>()?, total: counted(total)? })
    }
}

/// Parses the key of a rate in a list. Returns `None` if no rate has it.
fn pair_and_day(key: &str) -> Option<(String, String, NaiveDate)> {
    let mut parts = key.split(':');
    let (from, to, day) = (parts.next()?, parts.next()?, parts.next()?);
    Some((from.to_owned(), to.to_owned(), parse_date(day).ok()?))
}
