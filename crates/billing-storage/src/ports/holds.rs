//! Holds of customers. A hold is stored as its entries.

use billing_domain::calendar::Timestamp;
use billing_domain::hold::{EntryKey, Hold, HoldDigest, HoldEnd, HoldEntry, OpenEntry};
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{Holds, Insertion, StoreResult};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ContractRef, CustomerId, EventRef, HoldRef, LineItemId, OrganizationId, ProductNo};
use billing_domain::usage::UsageKey;
use chrono::NaiveDate;
use diesel::dsl::count;
use diesel::prelude::*;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::{MAX_BINDS, counted, limits, owned, stored};
use crate::in_list::{one_of_ids, one_of_texts};
use crate::row::{Cell, Row};
use crate::schema::usage_holds;
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};
use crate::usage_key::stored_line_item;

/// Bound values per new entry.
const COLUMNS: usize = 15;

#[derive(Queryable, Selectable)]
#[diesel(table_name = usage_holds)]
struct EntryRow {
    customer_id: Cell<Uuid>,
    hold_ref: String,
    entry_no: i32,
    contract_id: Cell<Uuid>,
    product_no: i32,
    period_start: Cell<NaiveDate>,
    usage_product_ref: String,
    line_item_id: String,
    quantity: Cell<Decimal>,
    made_at: Cell<Timestamp>,
}

impl EntryRow {
    fn read(self) -> StoreResult<OpenEntry> {
        let row = Row::new("usage_holds", &self.hold_ref);
        let line_item_id = Some(self.line_item_id.as_str()).filter(|id| !id.is_empty());
        Ok(OpenEntry {
            place: (
                CustomerId::from_uuid(row.cell("customer_id", self.customer_id)?),
                row.leaf("hold_ref", &self.hold_ref)?,
                row.checked("entry_no", u16::try_from(self.entry_no))?,
            ),
            key: UsageKey {
                contract_ref: ContractRef::from_uuid(row.cell("contract_id", self.contract_id)?),
                product_no: ProductNo(row.checked("product_no", u16::try_from(self.product_no))?),
                period_start: row.cell("period_start", self.period_start)?,
                usage_product_ref: row.leaf("usage_product_ref", &self.usage_product_ref)?,
                line_item_id: row.optional_leaf::<LineItemId>("line_item_id", line_item_id)?,
            },
            quantity: row.checked("quantity", Quantity::new(row.cell("quantity", self.quantity)?))?,
            made_at: row.cell("made_at", self.made_at)?,
        })
    }
}

/// An entry with what else a hold shows.
#[derive(Queryable, Selectable)]
#[diesel(table_name = usage_holds)]
struct HoldRow {
    #[diesel(embed)]
    entry: EntryRow,
    digest: Vec<u8>,
    expires_at: Cell<Timestamp>,
    ended_at: Option<Cell<Timestamp>>,
    event_id: Option<Cell<Uuid>>,
}

impl HoldRow {
    /// Returns the hold with this entry alone.
    fn read(self) -> StoreResult<Hold> {
        let row = Row::new("usage_holds", self.entry.hold_ref.clone());
        let OpenEntry { place: (customer_id, hold_ref, _), key, quantity, made_at } = self.entry.read()?;
        let event = row.optional("event_id", self.event_id)?.map(EventRef::from_uuid);
        let end = row.optional("ended_at", self.ended_at)?.map(|at| HoldEnd { at, event });
        let digest = HoldDigest::try_from(self.digest).map_err(|_| "not 32 bytes");
        Ok(Hold {
            hold_ref,
            customer_id,
            digest: row.checked("digest", digest)?,
            made_at,
            expires_at: row.cell("expires_at", self.expires_at)?,
            entries: vec![HoldEntry { key, quantity, end }],
        })
    }
}

/// Joins the entries of holds, which are in the order of their places.
fn joined(rows: Vec<HoldRow>) -> StoreResult<Vec<Hold>> {
    let mut holds: Vec<Hold> = Vec::new();
    for row in rows {
        let next = row.read()?;
        match holds.last_mut() {
            Some(last) if (last.customer_id, &last.hold_ref) == (next.customer_id, &next.hold_ref) => {
                last.entries.extend(next.entries);
            }
            _ => holds.push(next),
        }
    }
    Ok(holds)
}

impl Transaction<'_> {
    /// Returns holds of a customer with all their entries, in the order of their references.
    fn holds_by_refs(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        refs: &[String],
    ) -> StoreResult<Vec<Hold>> {
        let rows: Vec<(HoldRow, Cell<Uuid>)> = with_conn!(self, "usage_holds", |conn| usage_holds::table
            .filter(usage_holds::customer_id.eq(Bound(customer_id.as_uuid())))
            .filter(one_of_texts(usage_holds::hold_ref, refs.iter().map(String::as_str)))
            .order((usage_holds::hold_ref, usage_holds::entry_no))
            .select((HoldRow::as_select(), usage_holds::organization_id))
            .load(conn))?;
        joined(owned("usage_holds", organization, rows)?)
    }
}

impl Holds for Transaction<'_> {
    fn insert_hold(&mut self, organization: OrganizationId, hold: &Hold) -> StoreResult<Insertion> {
        let (entries, mut inserted): (Vec<(i32, &HoldEntry)>, usize) = ((0..).zip(&hold.entries).collect(), 0);
        for entries in entries.chunks(MAX_BINDS / COLUMNS) {
            let row = |(number, entry): &(i32, &HoldEntry)| {
                let (key, end) = (entry.key.clone(), entry.end);
                (
                    usage_holds::customer_id.eq(Bound(hold.customer_id.as_uuid())),
                    usage_holds::hold_ref.eq(hold.hold_ref.as_str().to_owned()),
                    usage_holds::entry_no.eq(*number),
                    usage_holds::organization_id.eq(Bound(organization.as_uuid())),
                    usage_holds::contract_id.eq(Bound(key.contract_ref.as_uuid())),
                    usage_holds::product_no.eq(i32::from(key.product_no.0)),
                    usage_holds::period_start.eq(Bound(key.period_start)),
                    usage_holds::line_item_id.eq(stored_line_item(&key).to_owned()),
                    usage_holds::usage_product_ref.eq(key.usage_product_ref.as_str().to_owned()),
                    usage_holds::quantity.eq(Bound(entry.quantity.as_decimal())),
                    usage_holds::digest.eq(hold.digest.to_vec()),
                    usage_holds::made_at.eq(Bound(hold.made_at)),
                    usage_holds::expires_at.eq(Bound(hold.expires_at)),
                    usage_holds::ended_at.eq(end.map(|end| Bound(end.at))),
                    usage_holds::event_id.eq(end.and_then(|end| end.event).map(|event| Bound(event.as_uuid()))),
                )
            };
            let rows: Vec<_> = entries.iter().map(row).collect();
            inserted += with_conn!(self, "usage_holds", |conn| diesel::insert_into(usage_holds::table)
                .values(&rows)
                .on_conflict_do_nothing()
                .execute(conn))?;
        }
        Ok(if inserted == hold.entries.len() { Insertion::Done } else { Insertion::Taken("hold_ref") })
    }

    fn hold(&mut self, organization: OrganizationId, customer_id: CustomerId, hold_ref: &HoldRef) -> StoreResult<Option<Hold>> {
        Ok(self.holds_by_refs(organization, customer_id, &[hold_ref.as_str().to_owned()])?.pop())
    }

    fn holds(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        open_at: Option<Timestamp>,
        page: PageRequest,
    ) -> StoreResult<Page<Hold>> {
        let (limit, offset) = limits(page);
        let (refs, total): (Vec<(Cell<Timestamp>, String)>, i64) = with_conn!(self, "usage_holds", |conn| {
            let narrowed = || {
                let mut query = usage_holds::table
                    .filter(usage_holds::customer_id.eq(Bound(customer_id.as_uuid())))
                    .filter(usage_holds::organization_id.eq(Bound(organization.as_uuid())))
                    .into_boxed::<Db>();
                if let Some(now) = open_at {
                    query = query.filter(usage_holds::ended_at.is_null()).filter(usage_holds::expires_at.gt(Bound(now)));
                }
                query
            };
            let total = narrowed().select(count(usage_holds::hold_ref).aggregate_distinct()).get_result(conn)?;
            let query = narrowed().select((usage_holds::made_at, usage_holds::hold_ref)).distinct();
            let ordered = if page.is_backward() {
                query.order((usage_holds::made_at.desc(), usage_holds::hold_ref.desc()))
            } else {
                query.order((usage_holds::made_at, usage_holds::hold_ref))
            };
            Ok((ordered.limit(limit).offset(offset).load(conn)?, total))
        })?;
        let refs: Vec<String> = refs.into_iter().map(|(_, hold_ref)| hold_ref).collect();
        let mut items = if refs.is_empty() { Vec::new() } else { self.holds_by_refs(organization, customer_id, &refs)? };
        items.sort_by_key(|hold| refs.iter().position(|found| found == hold.hold_ref.as_str()));
        Ok(Page { items, total: counted(total)? })
    }

    fn open_entries(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        now: Timestamp,
    ) -> StoreResult<Vec<OpenEntry>> {
        let rows: Vec<(EntryRow, Cell<Uuid>)> = with_conn!(self, "usage_holds", |conn| usage_holds::table
            .filter(one_of_ids(usage_holds::customer_id, customers.iter().map(|customer| customer.as_uuid())))
            .filter(usage_holds::ended_at.is_null())
            .filter(usage_holds::expires_at.gt(Bound(now)))
            .order((usage_holds::customer_id, usage_holds::hold_ref, usage_holds::entry_no))
            .select((EntryRow::as_select(), usage_holds::organization_id))
            .load(conn))?;
        owned("usage_holds", organization, rows)?.into_iter().map(EntryRow::read).collect()
    }

    fn settle_entries(
        &mut self,
        organization: OrganizationId,
        settled: &[(EntryKey, EventRef)],
        at: Timestamp,
    ) -> StoreResult<()> {
        for ((customer_id, hold_ref, entry_no), event) in settled {
            let id = (Bound(customer_id.as_uuid()), hold_ref.as_str(), i32::from(*entry_no));
            with_conn!(self, "usage_holds", |conn| diesel::update(usage_holds::table.find(id))
                .filter(usage_holds::organization_id.eq(Bound(organization.as_uuid())))
                .filter(usage_holds::ended_at.is_null())
                .set((usage_holds::ended_at.eq(Bound(at)), usage_holds::event_id.eq(Bound(event.as_uuid()))))
                .execute(conn))?;
        }
        Ok(())
    }

    fn release_hold(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        hold_ref: &HoldRef,
        at: Timestamp,
    ) -> StoreResult<()> {
        with_conn!(self, "usage_holds", |conn| diesel::update(usage_holds::table)
            .filter(usage_holds::customer_id.eq(Bound(customer_id.as_uuid())))
            .filter(usage_holds::hold_ref.eq(hold_ref.as_str()))
            .filter(usage_holds::organization_id.eq(Bound(organization.as_uuid())))
            .filter(usage_holds::ended_at.is_null())
            .filter(usage_holds::expires_at.gt(Bound(at)))
            .set(usage_holds::ended_at.eq(Bound(at)))
            .execute(conn))?;
        Ok(())
    }

    fn purge_holds(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let expired: Vec<(Cell<Uuid>, String, i32)> = with_conn!(self, "usage_holds", |conn| usage_holds::table
            .filter(usage_holds::expires_at.lt(Bound(before)))
            .order(usage_holds::expires_at)
            .limit(i64::from(limit))
            .select((usage_holds::customer_id, usage_holds::hold_ref, usage_holds::entry_no))
            .load(conn))?;
        let row = Row::new("usage_holds", "");
        for (customer_id, hold_ref, entry_no) in &expired {
            let id = (Bound(row.cell("customer_id", customer_id.clone())?), hold_ref.as_str(), *entry_no);
            with_conn!(self, "usage_holds", |conn| diesel::delete(usage_holds::table.find(id)).execute(conn))?;
        }
        stored(expired.len())
    }
}
