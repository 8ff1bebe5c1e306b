//! Recounts running totals from the events.

use std::collections::BTreeMap;

use billing_domain::calendar::Timestamp;
use billing_domain::ports::StoreResult;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ContractKey, ContractRef, EventRef, ProductNo};
use billing_domain::usage::{CountedEvent, UsageKey, UsageTotal};
use chrono::NaiveDate;
use diesel::prelude::*;
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::row::{Cell, Row};
use crate::schema::{customers, usage_events};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};

/// The columns of an event that determine a total.
#[derive(Queryable, Selectable)]
#[diesel(table_name = usage_events)]
struct CountedRow {
    event_id: Cell<Uuid>,
    product_no: i32,
    service_start: Cell<NaiveDate>,
    usage_product_ref: String,
    occurred_at: Cell<Timestamp>,
    service_date: Cell<NaiveDate>,
    quantity: Cell<Decimal>,
}

type Totals = BTreeMap<UsageKey, UsageTotal>;

impl CountedRow {
    fn count(self, mut totals: Totals, contract_ref: ContractRef, except: Option<EventRef>) -> StoreResult<Totals> {
        let row = Row::new("usage_events", self.event_id.clone());
        let event_ref = EventRef::from_uuid(row.cell("event_id", self.event_id)?);
        if except == Some(event_ref) {
            return Ok(totals);
        }
        let key = UsageKey {
            contract_ref,
            product_no: ProductNo(row.checked("product_no", u16::try_from(self.product_no))?),
            period_start: row.cell("service_start", self.service_start)?,
            usage_product_ref: row.leaf("usage_product_ref", &self.usage_product_ref)?,
        };
        let counted = CountedEvent {
            event_ref,
            occurred_at: row.cell("occurred_at", self.occurred_at)?,
            service_date: row.cell("service_date", self.service_date)?,
            quantity: row.checked("quantity", Quantity::new(row.cell("quantity", self.quantity)?))?,
        };
        let total = totals.entry(key).or_insert(UsageTotal::ZERO);
        *total = row.checked("quantity", total.plus(counted))?;
        Ok(totals)
    }
}

impl Transaction<'_> {
    /// Counts a contract's events, or the events of one running total. Events are read row by row, because millions are
    /// possible.
    pub(super) fn count_again(
        &mut self,
        key: ContractKey,
        only: Option<&UsageKey>,
        except: Option<EventRef>,
    ) -> StoreResult<Totals> {
        with_conn!(self, "usage_events", |conn| {
            let mut query = usage_events::table
                .inner_join(customers::table.on(customers::customer_id.eq(usage_events::customer_id)))
                .filter(usage_events::customer_id.eq(Bound(key.customer.as_uuid())))
                .filter(usage_events::contract_id.eq(Bound(key.contract.as_uuid())))
                .filter(customers::organization_id.eq(Bound(key.organization.as_uuid())))
                .filter(diesel::dsl::not(usage_events::deleted))
                .select(CountedRow::as_select())
                .into_boxed::<Db>();
            if let Some(key) = only {
                query = query
                    .filter(usage_events::product_no.eq(i32::from(key.product_no.0)))
                    .filter(usage_events::service_start.eq(Bound(key.period_start)))
                    .filter(usage_events::usage_product_ref.eq(key.usage_product_ref.as_str()));
            }
            let mut counted = Ok(Totals::new());
            for row in query.load_iter::<CountedRow, RowByRow>(conn)? {
                let row = row?;
                counted = counted.and_then(|totals| row.count(totals, key.contract, except));
            }
            Ok(counted)
        })?
    }
}
