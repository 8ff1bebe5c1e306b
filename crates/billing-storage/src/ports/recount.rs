//! Recounts running totals from the events, by the terms of their contract.

use billing_domain::calendar::Timestamp;
use billing_domain::contract::{Contract, ContractProduct};
use billing_domain::labels::LabelDigest;
use billing_domain::ledger::recount::Recount;
use billing_domain::ports::StoreResult;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{EventRef, OrganizationId, ProductNo};
use billing_domain::usage::{CountedEvent, UsageKey};
use chrono::NaiveDate;
use diesel::dsl::case_when;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::json::StoredReport;
use crate::row::{Cell, Row};
use crate::schema::{customers, usage_events};
use crate::sql_types::{Bound, JsonText};
use crate::tx::{Transaction, with_conn};

/// The columns of an event that determine a total.
#[derive(Queryable)]
struct CountedRow {
    event_id: Cell<Uuid>,
    product_no: i32,
    service_start: Cell<NaiveDate>,
    usage_product_ref: String,
    occurred_at: Cell<Timestamp>,
    service_date: Cell<NaiveDate>,
    quantity: Cell<Decimal>,
    /// Only if labels decide what counts the event.
    report_data: Option<JsonText>,
    unique_digest: Option<Cell<Uuid>>,
}

impl CountedRow {
    fn count(self, mut counted: Recount, contract: &Contract, except: Option<EventRef>) -> StoreResult<Recount> {
        let row = Row::new("usage_events", self.event_id.clone());
        let event_ref = EventRef::from_uuid(row.cell("event_id", self.event_id)?);
        if except == Some(event_ref) {
            return Ok(counted);
        }
        let period_key = UsageKey {
            contract_ref: contract.contract_ref,
            product_no: ProductNo(row.checked("product_no", u16::try_from(self.product_no))?),
            period_start: row.cell("service_start", self.service_start)?,
            usage_product_ref: row.leaf("usage_product_ref", &self.usage_product_ref)?,
            line_item_id: None,
        };
        let event = CountedEvent {
            event_ref,
            occurred_at: row.cell("occurred_at", self.occurred_at)?,
            service_date: row.cell("service_date", self.service_date)?,
            quantity: row.checked("quantity", Quantity::new(row.cell("quantity", self.quantity)?))?,
            is_distinct: None,
        };
        let digest = row.optional("unique_digest", self.unique_digest)?.map(LabelDigest::from_uuid);
        let report: Option<StoredReport> = self.report_data.as_ref().map(|data| row.json("report_data", data)).transpose()?;
        row.checked("quantity", counted.count(contract, &period_key, report.map(|report| report.0), digest, event))?;
        Ok(counted)
    }
}

/// Returns whether labels decide what counts the events of a contract, or of one of its periods.
fn reads_labels(contract: &Contract, only: Option<&UsageKey>) -> bool {
    match only {
        Some(key) => contract.period_of(key).is_some_and(|period| period.terms.reads_labels(&key.usage_product_ref)),
        None => contract.products.iter().flat_map(ContractProduct::terms).any(|terms| {
            let mut metered = terms.metered_products();
            metered.any(|usage_product_ref| terms.reads_labels(usage_product_ref))
        }),
    }
}

impl Transaction<'_> {
    /// Counts a contract's events, or those of a usage product in a period. Events are read row by row, because millions are
    /// possible.
    pub(super) fn count_again(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        only: Option<&UsageKey>,
        except: Option<EventRef>,
    ) -> StoreResult<Recount> {
        let labels = reads_labels(contract, only).into_sql::<Bool>();
        with_conn!(self, "usage_events", |conn| {
            let mut query = usage_events::table
                .inner_join(customers::table.on(customers::customer_id.eq(usage_events::customer_id)))
                .filter(usage_events::customer_id.eq(Bound(contract.customer_id.as_uuid())))
                .filter(usage_events::contract_id.eq(Bound(contract.contract_ref.as_uuid())))
                .filter(customers::organization_id.eq(Bound(organization.as_uuid())))
                .filter(diesel::dsl::not(usage_events::deleted))
                .select((
                    usage_events::event_id,
                    usage_events::product_no,
                    usage_events::service_start,
                    usage_events::usage_product_ref,
                    usage_events::occurred_at,
                    usage_events::service_date,
                    usage_events::quantity,
                    case_when(labels, usage_events::report_data),
                    usage_events::unique_digest,
                ))
                .into_boxed::<Db>();
            if let Some(key) = only {
                query = query
                    .filter(usage_events::product_no.eq(i32::from(key.product_no.0)))
                    .filter(usage_events::service_start.eq(Bound(key.period_start)))
                    .filter(usage_events::usage_product_ref.eq(key.usage_product_ref.as_str()));
            }
            let mut counted = Ok(Recount::default());
            for row in query.load_iter::<CountedRow, RowByRow>(conn)? {
                let row = row?;
                counted = counted.and_then(|totals| row.count(totals, contract, except));
            }
            Ok(counted)
        })?
    }
}
