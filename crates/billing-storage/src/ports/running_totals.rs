//! Running totals of usage, part of the hot path. [`recount`](super::recount) recounts them.

use std::collections::BTreeMap;
use std::fmt;

use billing_domain::calendar::Timestamp;
use billing_domain::contract::Contract;
use billing_domain::ledger::live_labels::LiveLabels;
use billing_domain::ledger::recount::Recount;
use billing_domain::ports::{LabelOfTotal, Lock, RunningTotals, StoreResult};
use billing_domain::quantity::{Quantity, QuantitySum};
use billing_domain::refs::{ContractRef, CustomerId, EventRef, OrganizationId, ProductNo, UsageProductRef};
use billing_domain::usage::{CountedEvent, UsageKey, UsageTotal};
use chrono::NaiveDate;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::{MAX_BINDS, counted, stored};
use crate::in_list::{InRows, Value, one_of_rows};
use crate::row::{Cell, Row};
use crate::schema::{usage_events, usage_totals};
use crate::sql_types::Bound;
use crate::statement::Statement;
use crate::tx::{Transaction, load_held, with_conn};
use crate::usage_key::{AddTotals, CountLabels, FindTotal, KeyColumns, PutTotal, put_totals, stored_line_item};

#[derive(Insertable)]
#[diesel(table_name = usage_totals, treat_none_as_default_value = false)]
struct NewTotal<'a> {
    customer_id: Bound<Uuid>,
    contract_id: Bound<Uuid>,
    product_no: i32,
    period_start: Bound<NaiveDate>,
    usage_product_ref: &'a str,
    line_item_id: &'a str,
    organization_id: Bound<Uuid>,
    sum: Bound<Decimal>,
    events: i64,
}
const NEW_TOTAL_COLUMNS: usize = 9;

impl<'a> NewTotal<'a> {
    fn zero(organization: Uuid, customer_id: Uuid, key: &'a UsageKey) -> Self {
        Self {
            customer_id: Bound(customer_id),
            contract_id: Bound(key.contract_ref.as_uuid()),
            product_no: i32::from(key.product_no.0),
            period_start: Bound(key.period_start),
            usage_product_ref: key.usage_product_ref.as_str(),
            line_item_id: stored_line_item(key),
            organization_id: Bound(organization),
            sum: Bound(Decimal::ZERO),
            events: 0,
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = usage_totals)]
pub(super) struct TotalRow {
    contract_id: Cell<Uuid>,
    product_no: i32,
    period_start: Cell<NaiveDate>,
    usage_product_ref: String,
    line_item_id: String,
    #[diesel(embed)]
    values: TotalValues,
}

/// The columns of a total besides its key.
#[derive(Queryable, Selectable)]
#[diesel(table_name = usage_totals)]
pub(super) struct TotalValues {
    sum: Cell<Decimal>,
    events: i64,
    max: Option<Cell<Decimal>>,
    latest_at: Option<Cell<Timestamp>>,
    latest_service_date: Option<Cell<NaiveDate>>,
    latest_event_id: Option<Cell<Uuid>>,
    latest_quantity: Option<Cell<Decimal>>,
    last_day: Option<Cell<NaiveDate>>,
    distinct_values: Option<i64>,
}

impl TotalRow {
    pub(super) fn contract_ref(&self) -> StoreResult<ContractRef> {
        let row = Row::new("usage_totals", &self.usage_product_ref);
        Ok(ContractRef::from_uuid(row.cell("contract_id", self.contract_id.clone())?))
    }

    /// Returns whether the sum has at most the digits of a sum.
    fn is_in_range(&self) -> bool {
        let row = Row::new("usage_totals", &self.usage_product_ref);
        row.cell("sum", self.values.sum.clone()).is_ok_and(|sum| QuantitySum::new(sum).is_ok())
    }

    fn read(self) -> StoreResult<(UsageKey, UsageTotal)> {
        let row = Row::new("usage_totals", format!("{}/{}/{}", self.contract_id, self.product_no, self.usage_product_ref));
        let key = UsageKey {
            contract_ref: ContractRef::from_uuid(row.cell("contract_id", self.contract_id)?),
            product_no: ProductNo(row.checked("product_no", u16::try_from(self.product_no))?),
            period_start: row.cell("period_start", self.period_start)?,
            usage_product_ref: row.leaf("usage_product_ref", &self.usage_product_ref)?,
            line_item_id: match self.line_item_id.as_str() {
                "" => None,
                id => Some(row.leaf("line_item_id", id)?),
            },
        };
        Ok((key, self.values.read(&row)?))
    }
}

impl TotalValues {
    fn read<K: fmt::Display>(self, row: &Row<K>) -> StoreResult<UsageTotal> {
        let quantity = |column, cell| row.checked(column, Quantity::new(row.cell(column, cell)?));
        let latest = match (self.latest_at, self.latest_service_date, self.latest_event_id, self.latest_quantity) {
            (Some(at), Some(date), Some(event), Some(latest)) => Some(CountedEvent {
                event_ref: EventRef::from_uuid(row.cell("latest_event_id", event)?),
                occurred_at: row.cell("latest_at", at)?,
                service_date: row.cell("latest_service_date", date)?,
                quantity: quantity("latest_quantity", latest)?,
                is_distinct: None,
            }),
            (None, None, None, None) => None,
            _ => return Err(row.corrupt("latest_at", "instant, date, event and quantity don't come together")),
        };
        Ok(UsageTotal {
            sum: row.checked("sum", QuantitySum::new(row.cell("sum", self.sum)?))?,
            events: row.checked("events", u64::try_from(self.events))?,
            max: self.max.map(|max| quantity("max", max)).transpose()?,
            latest,
            last_day: row.optional("last_day", self.last_day)?,
            distinct: self.distinct_values.map(|distinct| row.checked("distinct_values", u64::try_from(distinct))).transpose()?,
        })
    }
}

/// The maximum number of keys per statement.
const MAX_KEYS: usize = MAX_BINDS / KEY_COLUMNS;
const KEY_COLUMNS: usize = 6;

/// Matches running totals with one of these keys.
fn one_of_keys(keys: &[(CustomerId, UsageKey)]) -> InRows {
    let of_key = |(customer_id, key): &(CustomerId, UsageKey)| {
        vec![
            Value::Id(customer_id.as_uuid()),
            Value::Id(key.contract_ref.as_uuid()),
            Value::Number(i32::from(key.product_no.0)),
            Value::Day(key.period_start),
            Value::Text(key.usage_product_ref.as_str().to_owned()),
            Value::Text(stored_line_item(key).to_owned()),
        ]
    };
    one_of_rows("customer_id, contract_id, product_no, period_start, usage_product_ref, line_item_id", keys.iter().map(of_key))
}

pub(super) fn read_totals(rows: Vec<TotalRow>) -> StoreResult<Vec<(UsageKey, UsageTotal)>> {
    let mut totals: Vec<(UsageKey, UsageTotal)> = rows.into_iter().map(TotalRow::read).collect::<StoreResult<_>>()?;
    totals.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(totals)
}

impl Transaction<'_> {
    /// Locks the existing totals, in key order.
    fn hold_totals(&mut self, organization: Uuid, keys: &[(CustomerId, UsageKey)]) -> StoreResult<Vec<TotalRow>> {
        macro_rules! held {
            ($keys:expr) => {
                usage_totals::table
                    .filter(one_of_keys($keys).on_nodes(self.is_spread))
                    .filter(usage_totals::organization_id.eq(Bound(organization)))
                    .order((
                        usage_totals::contract_id,
                        usage_totals::product_no,
                        usage_totals::period_start,
                        usage_totals::usage_product_ref,
                        usage_totals::line_item_id,
                    ))
                    .select(TotalRow::as_select())
            };
        }
        let mut found = Vec::with_capacity(keys.len());
        for keys in self.by_shard(keys.to_vec(), |(customer, _)| customer.as_uuid()) {
            let rows: Vec<TotalRow> = load_held!(self, "usage_totals", Some(Lock::Exclusive), held!(&keys))?;
            found.extend(rows);
        }
        Ok(found)
    }

    /// Creates the missing totals as zero, and returns their number.
    fn make_totals(&mut self, organization: Uuid, keys: &[(CustomerId, UsageKey)]) -> StoreResult<usize> {
        let mut made = 0;
        for keys in keys.chunks(MAX_BINDS / NEW_TOTAL_COLUMNS) {
            let rows: Vec<NewTotal<'_>> =
                keys.iter().map(|(customer_id, key)| NewTotal::zero(organization, customer_id.as_uuid(), key)).collect();
            made += with_conn!(self, "usage_totals", |conn| diesel::insert_into(usage_totals::table)
                .values(rows)
                .on_conflict_do_nothing()
                .execute(conn))?;
        }
        Ok(made)
    }

    /// Returns a total, and creates a missing one as zero. SQLite's only writer already locks it.
    fn find_or_make_total(&mut self, organization: Uuid, keyed: &(CustomerId, UsageKey)) -> StoreResult<UsageTotal> {
        let (customer_id, key) = keyed;
        let find = FindTotal::new(organization, customer_id.as_uuid(), key);
        let found: Option<TotalValues> = with_conn!(self, "usage_totals", |conn| find.get_result(conn).optional())?;
        if let Some(values) = found {
            return values.read(&Row::new("usage_totals", KeyColumns::of(key)));
        }
        if self.make_totals(organization, std::slice::from_ref(keyed))? == 0 {
            return self.refuse("usage_totals: of another organization".to_owned());
        }
        Ok(UsageTotal::ZERO)
    }
}

impl Transaction<'_> {
    /// Adds to the existing ones among these totals, on PostgreSQL. Each key occurs once.
    fn add_to_existing(
        &mut self,
        organization: Uuid,
        added: &[(CustomerId, UsageKey, UsageTotal)],
    ) -> StoreResult<Vec<TotalRow>> {
        let mut rows = Vec::with_capacity(added.len());
        for added in added.chunks(MAX_KEYS) {
            let mut puts = Vec::with_capacity(added.len());
            for (customer_id, key, total) in added {
                puts.push(PutTotal::new(organization, customer_id.as_uuid(), key, total)?);
            }
            for puts in self.by_shard(puts, |put| put.customer_id) {
                let added = AddTotals::new(organization, &puts, self.is_spread);
                let Some(connection) = self.with_arrays() else {
                    return self.refuse("usage_totals: added without arrays".to_owned());
                };
                let found: QueryResult<Vec<TotalRow>> = added.load(connection);
                rows.extend(found.map_err(|error| self.failed("usage_totals", &error))?);
            }
        }
        Ok(rows)
    }
}

impl RunningTotals for Transaction<'_> {
    fn lock_usage(
        &mut self,
        organization: OrganizationId,
        keys: &[(CustomerId, UsageKey)],
    ) -> StoreResult<Vec<(UsageKey, UsageTotal)>> {
        let organization = organization.as_uuid();
        let mut keys = keys.to_vec();
        keys.sort_by(|a, b| (&a.1, a.0).cmp(&(&b.1, b.0)));
        keys.dedup();
        keys.iter().try_for_each(|(customer_id, key)| self.note_total(*customer_id, key))?;
        if self.is_sqlite() {
            // SQLite runs in the same process, and would copy a list of keys into a temporary b-tree.
            let total = |keyed| self.find_or_make_total(organization, &keyed).map(|total| (keyed.1, total));
            return keys.into_iter().map(total).collect();
        }
        let mut held = Vec::new();
        for keys in keys.chunks(MAX_KEYS) {
            // Nearly always all totals exist, and one statement suffices. Missing totals are created, and all are then
            // locked again in order. On a conflict in between, the database reports a deadlock and the transaction is
            // retried.
            let mut there = self.hold_totals(organization, keys)?;
            if there.len() < keys.len() {
                self.make_totals(organization, keys)?;
                there = self.hold_totals(organization, keys)?;
            }
            if there.len() < keys.len() {
                return self.refuse("usage_totals: of another organization".to_owned());
            }
            held.extend(there);
        }
        read_totals(held)
    }

    fn put_usage(&mut self, organization: OrganizationId, totals: &[(CustomerId, UsageKey, UsageTotal)]) -> StoreResult<()> {
        let organization = organization.as_uuid();
        let mut puts = Vec::with_capacity(totals.len());
        for (customer_id, key, total) in totals {
            self.require_total(*customer_id, key)?;
            puts.push(PutTotal::new(organization, customer_id.as_uuid(), key, total)?);
        }
        // A single total has a prepared statement of its own.
        let changed = if self.is_sqlite() || puts.len() == 1 {
            with_conn!(self, "usage_totals", |conn| puts.into_iter().map(|put| put.execute(conn)).sum::<QueryResult<usize>>())?
        } else {
            self.update_rows(put_totals(&puts))?
        };
        if changed != totals.len() {
            return self.refuse("usage_totals: not there to be replaced".to_owned());
        }
        Ok(())
    }

    fn add_usage(
        &mut self,
        organization: OrganizationId,
        added: &[(CustomerId, UsageKey, UsageTotal)],
    ) -> StoreResult<Option<Vec<(UsageKey, UsageTotal)>>> {
        let mut added = added.to_vec();
        added.sort_by(|a, b| a.1.cmp(&b.1));
        if self.with_arrays().is_none() {
            // SQLite stores decimals as text and never adds them. An UPDATE that adds them with a function of ours would have to
            // return the totals, and SQLite collects returned rows in a temporary b-tree, which takes longer than reading them.
            let keys: Vec<(CustomerId, UsageKey)> = added.iter().map(|(customer, key, _)| (*customer, key.clone())).collect();
            let mut totals = Vec::with_capacity(added.len());
            for ((customer, key, new), (_, before)) in added.into_iter().zip(self.lock_usage(organization, &keys)?) {
                let Ok(total) = before.joined(new) else { return Ok(None) };
                totals.push((customer, key, total));
            }
            self.put_usage(organization, &totals)?;
            return Ok(Some(totals.into_iter().map(|(_, key, total)| (key, total)).collect()));
        }
        added.iter().try_for_each(|(customer_id, key, _)| self.note_total(*customer_id, key))?;
        let mut rows = self.add_to_existing(organization.as_uuid(), &added)?;
        if rows.iter().any(|row| !row.is_in_range()) {
            return Ok(None);
        }
        if rows.len() < added.len() {
            // The first events of their periods.
            let mut totals = read_totals(rows)?;
            let missing: Vec<(CustomerId, UsageKey, UsageTotal)> = added
                .iter()
                .filter(|(_, key, _)| totals.binary_search_by(|(found, _)| found.cmp(key)).is_err())
                .cloned()
                .collect();
            let keys: Vec<(CustomerId, UsageKey)> = missing.iter().map(|(customer, key, _)| (*customer, key.clone())).collect();
            self.make_totals(organization.as_uuid(), &keys)?;
            rows = self.add_to_existing(organization.as_uuid(), &missing)?;
            if rows.iter().any(|row| !row.is_in_range()) {
                return Ok(None);
            }
            totals.extend(read_totals(rows)?);
            totals.sort_by(|a, b| a.0.cmp(&b.0));
            if totals.len() < added.len() {
                return self.refuse("usage_totals: of another organization".to_owned());
            }
            return Ok(Some(totals));
        }
        Ok(Some(read_totals(rows)?))
    }

    fn live_labels(&mut self, labels: &[LabelOfTotal], up_to: u32) -> StoreResult<LiveLabels> {
        let mut live = LiveLabels::default();
        if self.with_arrays().is_none() {
            // SQLite runs in the same process.
            for (customer_id, key, digest) in labels {
                let found: Vec<Cell<Uuid>> = with_conn!(self, "usage_events", |conn| usage_events::table
                    .filter(usage_events::customer_id.eq(Bound(customer_id.as_uuid())))
                    .filter(usage_events::contract_id.eq(Bound(key.contract_ref.as_uuid())))
                    .filter(usage_events::product_no.eq(i32::from(key.product_no.0)))
                    .filter(usage_events::service_start.eq(Bound(key.period_start)))
                    .filter(usage_events::usage_product_ref.eq(key.usage_product_ref.as_str()))
                    .filter(usage_events::unique_digest.eq(Bound(digest.as_uuid())))
                    .filter(diesel::dsl::not(usage_events::deleted))
                    .limit(i64::from(up_to))
                    .select(usage_events::event_id)
                    .load(conn))?;
                live.put(key, *digest, stored(found.len())?);
            }
            return Ok(live);
        }
        let labels: Vec<(usize, &LabelOfTotal)> = labels.iter().enumerate().collect();
        for labels in self.by_shard(labels, |(_, (customer_id, ..))| customer_id.as_uuid()) {
            let query = CountLabels::new(&labels, i64::from(up_to), self.is_spread)?;
            let Some(connection) = self.with_arrays() else { continue };
            let found: QueryResult<Vec<(i32, i64)>> = query.load(connection);
            let found: BTreeMap<i32, i64> = found.map_err(|error| self.failed("usage_events", &error))?.into_iter().collect();
            for (position, (_, key, digest)) in labels {
                let events = found.get(&stored(position)?).copied().unwrap_or(0);
                live.put(key, *digest, counted(events)?);
            }
        }
        Ok(live)
    }

    fn events_in_totals(
        &mut self,
        organization: OrganizationId,
        customer_id: Option<CustomerId>,
        contract_ref: Option<ContractRef>,
        usage_product_ref: Option<&UsageProductRef>,
    ) -> StoreResult<u64> {
        let mut s: Statement<BigInt> =
            Statement::new("SELECT CAST(coalesce(sum(events), 0) AS BIGINT) FROM usage_totals WHERE organization_id = ");
        s.id(organization.as_uuid());
        if let Some(customer_id) = customer_id {
            s.sql(" AND customer_id = ").id(customer_id.as_uuid());
        }
        if let Some(contract_ref) = contract_ref {
            s.sql(" AND contract_id = ").id(contract_ref.as_uuid());
        }
        if let Some(usage_product_ref) = usage_product_ref {
            s.sql(" AND usage_product_ref = ").text(usage_product_ref.as_str());
        }
        counted(with_conn!(self, "usage_totals", |conn| s.get_result(conn))?)
    }

    fn recount_usage(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        period_key: &UsageKey,
        except: Option<EventRef>,
    ) -> StoreResult<Recount> {
        self.count_again(organization, contract, Some(period_key), except)
    }
}
