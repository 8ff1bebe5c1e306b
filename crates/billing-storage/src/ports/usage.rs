//! Usage events and their running totals: the hot path. Changes of events are [`revisions`](super::revisions)', counting
//! them again is [`recount`](super::recount)'s.

use billing_domain::calendar::Timestamp;
use billing_domain::catalog::UsageProduct;
use billing_domain::party::Customer;
use billing_domain::ports::{Customers as _, Lock, StoreResult, UsageEvents, UsageProducts as _};
use billing_domain::quantity::{Quantity, QuantitySum};
use billing_domain::refs::{
    ContractRef, CustomerId, CustomerRef, DocumentRef, EventRef, OrganizationId, ProductNo, UsageProductRef,
};
use billing_domain::usage::{CountedEvent, UsageEvent, UsageKey, UsageTotal};
use chrono::NaiveDate;
use diesel::prelude::*;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::catalog::UsageProductRow;
use super::event_rows::{EVENT_COLUMNS, EventRow, NewEvent};
use super::parties::CustomerRow;
use super::{MAX_BINDS, stored};
use crate::one_of::{OneOfRows, Value, one_of_rows};
use crate::row::{Cell, Row};
use crate::schema::{customers, usage_events, usage_products, usage_totals};
use crate::sql_types::Bound;
use crate::tx::{Connection, Transaction, load_held, with_conn};
use crate::usage_key::{PutTotal, PutTotals};

#[derive(Insertable)]
#[diesel(table_name = usage_totals, treat_none_as_default_value = false)]
struct NewTotal<'a> {
    customer_id: Bound<Uuid>,
    contract_id: Bound<Uuid>,
    product_no: i32,
    period_start: Bound<NaiveDate>,
    usage_product_ref: &'a str,
    organization_id: Bound<Uuid>,
    sum: Bound<Decimal>,
    events: i64,
}
const NEW_TOTAL_COLUMNS: usize = 8;

impl<'a> NewTotal<'a> {
    fn zero(organization: Uuid, customer_id: Uuid, key: &'a UsageKey) -> Self {
        Self {
            customer_id: Bound(customer_id),
            contract_id: Bound(key.contract_ref.as_uuid()),
            product_no: i32::from(key.product_no.0),
            period_start: Bound(key.period_start),
            usage_product_ref: key.usage_product_ref.as_str(),
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
    sum: Cell<Decimal>,
    events: i64,
    max: Option<Cell<Decimal>>,
    latest_at: Option<Cell<Timestamp>>,
    latest_service_date: Option<Cell<NaiveDate>>,
    latest_event_id: Option<Cell<Uuid>>,
    latest_quantity: Option<Cell<Decimal>>,
}

impl TotalRow {
    fn read(self) -> StoreResult<(UsageKey, UsageTotal)> {
        let row = Row::new("usage_totals", format!("{}/{}/{}", self.contract_id, self.product_no, self.usage_product_ref));
        let key = UsageKey {
            contract_ref: ContractRef::from_uuid(row.cell("contract_id", self.contract_id)?),
            product_no: ProductNo(row.checked("product_no", u16::try_from(self.product_no))?),
            period_start: row.cell("period_start", self.period_start)?,
            usage_product_ref: row.leaf("usage_product_ref", &self.usage_product_ref)?,
        };
        let quantity = |column, cell| row.checked(column, Quantity::new(row.cell(column, cell)?));
        let latest = match (self.latest_at, self.latest_service_date, self.latest_event_id, self.latest_quantity) {
            (Some(at), Some(date), Some(event), Some(latest)) => Some(CountedEvent {
                event_ref: EventRef::from_uuid(row.cell("latest_event_id", event)?),
                occurred_at: row.cell("latest_at", at)?,
                service_date: row.cell("latest_service_date", date)?,
                quantity: quantity("latest_quantity", latest)?,
            }),
            (None, None, None, None) => None,
            _ => return Err(row.corrupt("latest_at", "instant, date, event and quantity don't come together")),
        };
        let total = UsageTotal {
            sum: row.checked("sum", QuantitySum::new(row.cell("sum", self.sum)?))?,
            events: row.checked("events", u64::try_from(self.events))?,
            max: self.max.map(|max| quantity("max", max)).transpose()?,
            latest,
        };
        Ok((key, total))
    }
}

/// The most keys of one statement.
const MAX_KEYS: usize = MAX_BINDS / KEY_COLUMNS;
const KEY_COLUMNS: usize = 5;

/// Where running totals have one of these keys.
fn one_of_keys(keys: &[(CustomerId, UsageKey)]) -> OneOfRows {
    let of_key = |(customer_id, key): &(CustomerId, UsageKey)| {
        vec![
            Value::Id(customer_id.as_uuid()),
            Value::Id(key.contract_ref.as_uuid()),
            Value::Number(i32::from(key.product_no.0)),
            Value::Day(key.period_start),
            Value::Text(key.usage_product_ref.as_str().to_owned()),
        ]
    };
    one_of_rows("customer_id, contract_id, product_no, period_start, usage_product_ref", keys.iter().map(of_key))
}

pub(super) fn read_totals(rows: Vec<TotalRow>) -> StoreResult<Vec<(UsageKey, UsageTotal)>> {
    let mut totals: Vec<(UsageKey, UsageTotal)> = rows.into_iter().map(TotalRow::read).collect::<StoreResult<_>>()?;
    totals.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(totals)
}

impl Transaction<'_> {
    /// Holds those totals that are there, in the order of their keys.
    fn hold_totals(&mut self, organization: Uuid, keys: &[(CustomerId, UsageKey)]) -> StoreResult<Vec<TotalRow>> {
        load_held!(
            self,
            "usage_totals",
            Some(Lock::Exclusive),
            usage_totals::table
                .filter(one_of_keys(keys))
                .filter(usage_totals::organization_id.eq(Bound(organization)))
                .order((
                    usage_totals::contract_id,
                    usage_totals::product_no,
                    usage_totals::period_start,
                    usage_totals::usage_product_ref,
                ))
                .select(TotalRow::as_select())
        )
    }

    fn make_totals(&mut self, organization: Uuid, keys: &[(CustomerId, UsageKey)]) -> StoreResult<()> {
        for keys in keys.chunks(MAX_BINDS / NEW_TOTAL_COLUMNS) {
            let rows: Vec<NewTotal<'_>> =
                keys.iter().map(|(customer_id, key)| NewTotal::zero(organization, customer_id.as_uuid(), key)).collect();
            with_conn!(self, "usage_totals", |conn| diesel::insert_into(usage_totals::table)
                .values(rows)
                .on_conflict_do_nothing()
                .execute(conn))?;
        }
        Ok(())
    }
}

impl UsageEvents for Transaction<'_> {
    fn named_by_events(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerRef],
        usage_products: &[UsageProductRef],
    ) -> StoreResult<(Vec<Customer>, Vec<UsageProduct>)> {
        // One event names one of each, and nearly always both are there.
        if let ([customer], [product]) = (customers, usage_products) {
            let rows: Vec<(CustomerRow, UsageProductRow)> = with_conn!(self, "customers", |conn| customers::table
                .inner_join(usage_products::table.on(usage_products::organization_id.eq(customers::organization_id)))
                .filter(customers::organization_id.eq(Bound(organization.as_uuid())))
                .filter(customers::customer_ref.eq(customer.as_str()))
                .filter(usage_products::usage_product_ref.eq(product.as_str()))
                .select((CustomerRow::as_select(), UsageProductRow::as_select()))
                .load(conn))?;
            if let Some((customer, product)) = rows.into_iter().next() {
                return Ok((vec![customer.read()?], vec![product.read()?]));
            }
        }
        let found = if customers.is_empty() { Vec::new() } else { self.customers_by_refs(organization, customers)? };
        let products =
            if usage_products.is_empty() { Vec::new() } else { self.usage_products_by_refs(organization, usage_products)? };
        Ok((found, products))
    }

    fn insert_events(&mut self, _organization: OrganizationId, events: &[UsageEvent]) -> StoreResult<()> {
        for events in events.chunks(MAX_BINDS / EVENT_COLUMNS) {
            let mut rows = events.iter().map(NewEvent::of).collect::<StoreResult<Vec<_>>>()?;
            // One row alone is a statement that stays prepared.
            let one = if rows.len() == 1 { rows.pop() } else { None };
            with_conn!(self, "usage_events", |conn| match one {
                Some(row) => diesel::insert_into(usage_events::table).values(row).execute(conn),
                None => diesel::insert_into(usage_events::table).values(rows).execute(conn),
            })?;
        }
        Ok(())
    }

    fn event(&mut self, organization: OrganizationId, event_ref: EventRef) -> StoreResult<Option<UsageEvent>> {
        let row: Option<EventRow> = with_conn!(self, "usage_events", |conn| usage_events::table
            .inner_join(customers::table.on(customers::customer_id.eq(usage_events::customer_id)))
            .filter(usage_events::event_id.eq(Bound(event_ref.as_uuid())))
            .filter(customers::organization_id.eq(Bound(organization.as_uuid())))
            .select(EventRow::as_select())
            .first(conn)
            .optional())?;
        row.map(EventRow::read).transpose()
    }

    fn revise_event(&mut self, organization: OrganizationId, superseded: &UsageEvent, revised: &UsageEvent) -> StoreResult<()> {
        self.revise(organization, superseded, revised)
    }

    fn superseded_revisions(&mut self, organization: OrganizationId, events: &[EventRef]) -> StoreResult<Vec<UsageEvent>> {
        self.revisions_of(organization, events)
    }

    fn move_events(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        from: DocumentRef,
        to: DocumentRef,
    ) -> StoreResult<()> {
        self.move_all(organization, customer_id, from, to)
    }

    fn move_events_of_period(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        from: DocumentRef,
        to: DocumentRef,
        product_no: ProductNo,
        period_start: NaiveDate,
    ) -> StoreResult<()> {
        self.move_of_period(organization, customer_id, from, to, i32::from(product_no.0), period_start)
    }

    fn recount_usage(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        key: &UsageKey,
        except: Option<EventRef>,
    ) -> StoreResult<UsageTotal> {
        let counted = self.count_again(organization, customer_id, key.contract_ref, Some(key), except)?;
        Ok(counted.into_values().next().unwrap_or(UsageTotal::ZERO))
    }

    fn lock_usage(
        &mut self,
        organization: OrganizationId,
        keys: &[(CustomerId, UsageKey)],
    ) -> StoreResult<Vec<(UsageKey, UsageTotal)>> {
        let organization = organization.as_uuid();
        let mut keys = keys.to_vec();
        keys.sort_by(|a, b| (&a.1, a.0).cmp(&(&b.1, b.0)));
        keys.dedup();
        let mut held = Vec::new();
        for keys in keys.chunks(MAX_KEYS) {
            // Nearly always all of them are there, and one statement does. Those that aren't are made and then held
            // in order again; who met in between is told so by the database and runs again.
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
            puts.push(PutTotal::new(organization, customer_id.as_uuid(), key, total, stored(total.events)?));
        }
        let changed: QueryResult<usize> = match (&mut self.connection, puts.len()) {
            // SQLite is asked in the same process, and has no arrays.
            (Connection::Sqlite(connection), _) => puts.into_iter().map(|put| put.execute(*connection)).sum(),
            (Connection::Postgres(connection), 1) => puts.into_iter().map(|put| put.execute(*connection)).sum(),
            (Connection::Postgres(connection), _) => PutTotals::new(organization, puts).execute(*connection),
        };
        if changed.map_err(|error| self.failed("usage_totals", &error))? != totals.len() {
            return self.refuse("usage_totals: not there to be replaced".to_owned());
        }
        Ok(())
    }
}
