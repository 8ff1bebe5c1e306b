//! Usage queries. Visitors receive row by row from one statement, because millions of rows are possible.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use billing_domain::calendar::Timestamp;
use billing_domain::document::numbering::{DocumentNumber, DocumentNumbers};
use billing_domain::labels::LabelDigest;
use billing_domain::page::PageRequest;
use billing_domain::ports::{EventFilter, EventScope, EventSortKey, RowVisitor, StoreResult, UsageQueries};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{CustomerId, EventRef, OrganizationId};
use billing_domain::report::ReportedEvent;
use billing_domain::summary::MeteredEvent;
use billing_domain::usage::{ReportData, UsageEvent};
use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::counted;
use super::event_rows::EventRow;
use crate::connect::LONG_READ_TIMEOUT;
use crate::events_query::{EventsQuery, beyond_first_by_time};
use crate::in_list::{also_one_of_ids, one_of_ids};
use crate::json::StoredReport;
use crate::row::{Cell, Row};
use crate::schema::usage_events;
use crate::sql_types::{Dec, Id, JsonText, Ts};
use crate::tx::{Connection, Transaction, with_conn};

#[derive(Queryable)]
struct MeteredRow {
    event_id: Cell<Uuid>,
    customer_id: Cell<Uuid>,
    usage_product_ref: String,
    occurred_at: Cell<Timestamp>,
    quantity: Cell<Decimal>,
    unique_digest: Option<Cell<Uuid>>,
}
type MeteredColumns = (Id, Id, Text, Ts, Dec, Nullable<Id>);

impl MeteredRow {
    fn read(self) -> StoreResult<MeteredEvent> {
        let row = Row::new("usage_events", self.event_id.clone());
        Ok(MeteredEvent {
            customer_id: CustomerId::from_uuid(row.cell("customer_id", self.customer_id)?),
            usage_product_ref: row.leaf("usage_product_ref", &self.usage_product_ref)?,
            event_ref: EventRef::from_uuid(row.cell("event_id", self.event_id)?),
            occurred_at: row.cell("occurred_at", self.occurred_at)?,
            quantity: row.checked("quantity", Quantity::new(row.cell("quantity", self.quantity)?))?,
            unique_digest: row.optional("unique_digest", self.unique_digest)?.map(LabelDigest::from_uuid),
        })
    }
}

fn read_report_data((event_id, data): (Cell<Uuid>, JsonText)) -> StoreResult<ReportData> {
    let report: StoredReport = Row::new("usage_events", event_id).json("report_data", &data)?;
    Ok(report.0)
}

/// An event, with the document of one of its earlier revisions if it has any.
#[derive(Queryable)]
struct ReportedRow {
    event_id: Cell<Uuid>,
    occurred_at: Cell<Timestamp>,
    quantity: Cell<Decimal>,
    report_data: Option<JsonText>,
    customer_ref: String,
    customer_name: String,
    usage_product_ref: String,
    usage_product_name: Option<String>,
    prefix: String,
    kind: String,
    sequence: i64,
    earlier_prefix: Option<String>,
    earlier_kind: Option<String>,
    earlier_sequence: Option<i64>,
}
type ReportedColumns = (
    Id,
    Ts,
    Dec,
    Nullable<Text>,
    Text,
    Text,
    Text,
    Nullable<Text>,
    Text,
    Text,
    BigInt,
    Nullable<Text>,
    Nullable<Text>,
    Nullable<BigInt>,
);

impl ReportedRow {
    /// Returns the number of the earlier revision's document.
    fn earlier(&self) -> StoreResult<Option<DocumentNumber>> {
        match (&self.earlier_prefix, &self.earlier_kind, self.earlier_sequence) {
            (Some(prefix), Some(kind), Some(sequence)) => read_number(&self.event_id, prefix, kind, sequence).map(Some),
            _ => Ok(None),
        }
    }

    fn read(self, earlier: Vec<DocumentNumber>) -> StoreResult<ReportedEvent> {
        let latest = read_number(&self.event_id, &self.prefix, &self.kind, self.sequence)?;
        let row = Row::new("usage_events", self.event_id.clone());
        let report: Option<StoredReport> = self.report_data.as_ref().map(|data| row.json("report_data", data)).transpose()?;
        let numbers = DocumentNumbers::in_order_of_change(earlier.into_iter().chain([latest]));
        let product_name =
            self.usage_product_name.ok_or_else(|| row.corrupt("usage_product_ref", "the usage product does not exist"))?;
        Ok(ReportedEvent {
            event_ref: EventRef::from_uuid(row.cell("event_id", self.event_id)?),
            occurred_at: row.cell("occurred_at", self.occurred_at)?,
            customer_ref: row.leaf("customer_ref", &self.customer_ref)?,
            customer_name: row.leaf("name", &self.customer_name)?,
            usage_product_ref: row.leaf("usage_product_ref", &self.usage_product_ref)?,
            usage_product_name: row.leaf("name", &product_name)?,
            quantity: row.checked("quantity", Quantity::new(row.cell("quantity", self.quantity)?))?,
            document_numbers: numbers.ok_or_else(|| row.corrupt("document_id", "no document"))?,
            report_data: report.map(|report| report.0),
        })
    }
}

fn read_number(event_id: &Cell<Uuid>, prefix: &str, kind: &str, sequence: i64) -> StoreResult<DocumentNumber> {
    let row = Row::new("documents", format!("of event {event_id}"));
    Ok(DocumentNumber {
        prefix: row.leaf("number_prefix", prefix)?,
        kind: row.leaf("kind", kind)?,
        sequence: row.checked("sequence", u64::try_from(sequence))?,
    })
}

/// Combines the rows of an event. They are consecutive, and differ only in the earlier revision.
#[derive(Default)]
struct Together {
    event: Option<(ReportedRow, Vec<DocumentNumber>)>,
}

impl Together {
    /// Adds a row. Returns the previous event if the row belongs to another one.
    fn take(&mut self, row: ReportedRow) -> StoreResult<Option<ReportedEvent>> {
        let earlier = row.earlier()?;
        if let Some((event, numbers)) = &mut self.event
            && event.event_id == row.event_id
        {
            numbers.extend(earlier);
            return Ok(None);
        }
        let before = self.event.replace((row, earlier.into_iter().collect()));
        before.map(|(event, numbers)| event.read(numbers)).transpose()
    }

    /// Returns the last event.
    fn last(self) -> StoreResult<Option<ReportedEvent>> {
        self.event.map(|(event, numbers)| event.read(numbers)).transpose()
    }
}

/// Whether to continue with the next row, or the result to stop with.
type Step = ControlFlow<StoreResult<()>>;

/// Passes a row to a visitor.
fn show<T>(row: StoreResult<T>, visit: &mut RowVisitor<'_, T>) -> Step {
    match row {
        Ok(row) => visit(row).map_break(Ok),
        Err(error) => ControlFlow::Break(Err(error)),
    }
}

/// Visits the rows of a query one by one; rows are loaded as the visitor consumes them.
macro_rules! visit_rows {
    ($tx:expr, $query:expr, $row:ty, |$each:ident| $step:expr) => {{
        let query = $query;
        with_conn!($tx, "usage_events", |conn| {
            let mut ended = Ok(());
            for row in query.load_iter::<$row, RowByRow>(conn)? {
                let $each = row?;
                if let ControlFlow::Break(end) = $step {
                    ended = end;
                    break;
                }
            }
            Ok(ended)
        })?
    }};
}

impl Transaction<'_> {
    /// Allows the following statements of the transaction to take as long as a consumer needs for the rows.
    fn allow_long_reads(&mut self) -> StoreResult<()> {
        if std::mem::replace(&mut self.reads_long, true) {
            return Ok(());
        }
        let Connection::Postgres(connection) = &mut self.connection else { return Ok(()) };
        let millis = LONG_READ_TIMEOUT.as_millis();
        // The last rows can stay in the connection's buffers while the consumer reads them, and the server counts that
        // time as idle.
        let allowed = connection.batch_execute(&format!(
            "SET LOCAL statement_timeout = {millis}; SET LOCAL idle_in_transaction_session_timeout = {millis}"
        ));
        allowed.map_err(|error| self.failed("usage_events", &error))
    }
}

impl UsageQueries for Transaction<'_> {
    fn events(
        &mut self,
        organization: OrganizationId,
        filter: &EventFilter,
        by: EventSortKey,
        page: PageRequest,
    ) -> StoreResult<Vec<UsageEvent>> {
        let keys = EventsQuery::<(Id, Id)>::page(organization, filter, by, page).statement();
        // PostgreSQL's statistics show when this is faster, and it then plans this way by itself.
        let among_first =
            if self.is_sqlite() { EventsQuery::<(Id, Id)>::page_among_first(organization, filter, by, page) } else { None };
        let among_first = among_first.map(|query| query.statement());
        let beyond = (among_first.is_some() && by == EventSortKey::Timestamp).then(|| beyond_first_by_time(filter, page));
        let rows: Vec<EventRow> = with_conn!(self, "usage_events", |conn| {
            let found: Vec<(Uuid, Uuid)> = among_first.map_or(Ok(Vec::new()), |query| query.load(conn))?;
            let mut is_whole = usize::try_from(page.size()).is_ok_and(|size| found.len() == size);
            if !is_whole && let Some(beyond) = beyond {
                let more: Vec<Cell<Uuid>> = beyond.load(conn)?;
                is_whole = more.is_empty();
            }
            let keys: Vec<(Uuid, Uuid)> = if is_whole { found } else { keys.load(conn)? };
            let (ids, customers): (Vec<Uuid>, BTreeSet<Uuid>) = keys.into_iter().unzip();
            let of_page = usage_events::table
                .filter(one_of_ids(usage_events::event_id, ids))
                .filter(also_one_of_ids(usage_events::customer_id, customers));
            of_page.select(EventRow::as_select()).load(conn)
        })?;
        let mut events: Vec<UsageEvent> = rows.into_iter().map(EventRow::read).collect::<StoreResult<_>>()?;
        match by {
            EventSortKey::Timestamp => events.sort_by_key(|event| (event.occurred_at, event.event_ref)),
            EventSortKey::Created => events.sort_by_key(|event| event.event_ref),
            EventSortKey::Updated => events.sort_by_key(|event| (event.revised_at, event.event_ref)),
        }
        if page.is_backward() {
            events.reverse();
        }
        Ok(events)
    }

    fn count_events(&mut self, organization: OrganizationId, filter: &EventFilter) -> StoreResult<u64> {
        let count = EventsQuery::<BigInt>::count(organization, filter).statement();
        counted(with_conn!(self, "usage_events", |conn| count.get_result(conn))?)
    }

    fn visit_metered<'v>(
        &mut self,
        organization: OrganizationId,
        filter: &EventFilter,
        by_customer: bool,
        visit: &mut RowVisitor<'v, MeteredEvent>,
    ) -> StoreResult<()> {
        let query = EventsQuery::<MeteredColumns>::metered(organization, filter, by_customer).statement();
        visit_rows!(self, query, MeteredRow, |row| show(row.read(), visit))
    }

    fn visit_report_data<'v>(
        &mut self,
        organization: OrganizationId,
        scope: &EventScope,
        visit: &mut RowVisitor<'v, ReportData>,
    ) -> StoreResult<()> {
        self.allow_long_reads()?;
        let query = EventsQuery::<(Id, Text)>::report_data(organization, scope).statement();
        visit_rows!(self, query, (Cell<Uuid>, JsonText), |row| show(read_report_data(row), visit))
    }

    fn visit_reported<'v>(
        &mut self,
        organization: OrganizationId,
        scope: &EventScope,
        visit: &mut RowVisitor<'v, ReportedEvent>,
    ) -> StoreResult<()> {
        self.allow_long_reads()?;
        let query = EventsQuery::<ReportedColumns>::reported(organization, scope).statement();
        let mut together = Together::default();
        let mut enough = false;
        visit_rows!(self, query, ReportedRow, |row| match together.take(row).transpose() {
            None => ControlFlow::Continue(()),
            Some(event) => {
                let step = show(event, visit);
                enough = step.is_break();
                step
            }
        })?;
        if let Some(last) = if enough { None } else { together.last()? } {
            // This is the last event, so the visitor's decision has no effect.
            let (ControlFlow::Continue(()) | ControlFlow::Break(())) = visit(last);
        }
        Ok(())
    }
}
