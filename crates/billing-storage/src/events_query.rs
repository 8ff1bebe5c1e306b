//! Usage events for lists, totals and reports: one row source and one filter, with the columns that each query needs.
//! diesel cannot express it: the source consists of two tables when a document's events are requested, and documents
//! are joined twice.

use std::marker::PhantomData;

use billing_domain::calendar::Timestamp;
use billing_domain::page::PageRequest;
use billing_domain::ports::{BilledDocumentKey, EventFilter, EventScope, EventSortKey};
use billing_domain::refs::OrganizationId;
use billing_domain::usage::{ReportData, ReportValue};
use uuid::Uuid;

use crate::json::StoredReportRef;
use crate::ports::id_of;
use crate::row::to_json;
use crate::sql_types::Id;
use crate::statement::Statement;

/// A query for events whose rows have the SQL type `R`.
///
/// A page of all events is read in the order of its index: `usage_events_by_time`, or the key for the order `created`.
/// Reports and the events of a customer in timestamp order are sorted, on disk if there are many.
#[derive(Debug)]
pub(crate) struct EventsQuery<'a, R> {
    narrowed: Narrowed<'a>,
    columns: Columns,
    row: PhantomData<R>,
}

/// The filter of a query.
#[derive(Debug)]
struct Narrowed<'a> {
    organization: Uuid,
    /// Whether the result includes revisions that an issued document bills.
    with_billed: bool,
    customer_id: Option<Uuid>,
    usage_product_ref: Option<&'a str>,
    document_id: Option<Uuid>,
    contract_id: Option<Uuid>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    updated_since: Option<Timestamp>,
    /// The position after which the rows of a page are.
    after: Option<(Timestamp, Uuid)>,
    backward: bool,
    /// For each label key, the entries of stored report data of which one must occur.
    labels: Vec<Vec<String>>,
}

#[derive(Debug)]
enum Columns {
    Count,
    Page { by: EventSortKey, size: i64, offset: i64, backward: bool, among_first: Option<i64> },
    Metered { by_customer: bool },
    ReportData,
    Reported,
}

impl<'a, R> EventsQuery<'a, R> {
    fn new(narrowed: Narrowed<'a>, columns: Columns) -> Self {
        Self { narrowed, columns, row: PhantomData }
    }

    /// Returns whether the query reads events in the order of an index and looks up the customer of each, instead of
    /// reading the events of each customer.
    const fn is_read_in_order(&self) -> bool {
        let is_of_all = self.narrowed.customer_id.is_none();
        match self.columns {
            Columns::Page { by: EventSortKey::Created, .. } => is_of_all,
            // The range is read from the index by time alone. SQLite has no statistics about the range and would read all
            // events of every customer.
            Columns::Count => is_of_all && self.narrowed.from.is_some(),
            Columns::Page { by: EventSortKey::Timestamp, among_first, .. } => among_first.is_some(),
            Columns::Page { by: EventSortKey::Updated, .. }
            | Columns::Metered { .. }
            | Columns::ReportData
            | Columns::Reported => false,
        }
    }

    /// Counts the events.
    pub(crate) fn count(organization: OrganizationId, filter: &'a EventFilter) -> Self {
        Self::new(Narrowed::by(organization, filter), Columns::Count)
    }

    /// Returns the events and customers of a page.
    pub(crate) fn page(organization: OrganizationId, filter: &'a EventFilter, by: EventSortKey, page: PageRequest) -> Self {
        let (size, offset) = crate::ports::limits(page);
        let narrowed = Narrowed { backward: page.is_backward(), ..Narrowed::by(organization, filter) };
        Self::new(narrowed, Columns::Page { by, size, offset, backward: page.is_backward(), among_first: None })
    }

    /// Returns the same page, restricted to the first events of all in the list's order. A full page is identical to
    /// the page of the list. Returns `None` when the filter finds the rows sooner.
    ///
    /// In `created` order this finds the latest events of a customer with many events without reading the others. For a
    /// customer with few events it costs the reading of [`AMONG_FIRST`] events.
    ///
    /// In timestamp order it finds a page of all customers' events by the index by time. The number of events searched is
    /// limited, because an organization or usage product with few of the events is found sooner by its customers.
    pub(crate) fn page_among_first(
        organization: OrganizationId,
        filter: &'a EventFilter,
        by: EventSortKey,
        page: PageRequest,
    ) -> Option<Self> {
        let mut query = Self::page(organization, filter, by, page);
        let Narrowed { customer_id, contract_id, document_id, updated_since, after, .. } = query.narrowed;
        let is_narrow = updated_since.is_some() || after.is_some();
        let first = match by {
            EventSortKey::Created if customer_id.is_some() => AMONG_FIRST,
            EventSortKey::Timestamp if !is_narrow && [customer_id, contract_id, document_id].iter().all(Option::is_none) => {
                first_by_time(page)
            }
            EventSortKey::Created | EventSortKey::Timestamp | EventSortKey::Updated => return None,
        };
        if let Columns::Page { among_first, .. } = &mut query.columns {
            *among_first = Some(first);
        }
        Some(query)
    }

    /// Returns the measured values of the events, customer by customer or in any order.
    pub(crate) fn metered(organization: OrganizationId, filter: &'a EventFilter, by_customer: bool) -> Self {
        Self::new(Narrowed::by(organization, filter), Columns::Metered { by_customer })
    }

    /// Returns identifiers and report data of events that have any, in any order.
    pub(crate) fn report_data(organization: OrganizationId, scope: &'a EventScope) -> Self {
        Self::new(Narrowed::to(organization, scope), Columns::ReportData)
    }

    /// Returns the rows of a report in order: one for each event and each earlier revision in the same service period.
    /// A row has the documents of both; the earlier document is left out when it is void.
    pub(crate) fn reported(organization: OrganizationId, scope: &'a EventScope) -> Self {
        Self::new(Narrowed::to(organization, scope), Columns::Reported)
    }
}

impl<'a> Narrowed<'a> {
    fn to(organization: OrganizationId, scope: &'a EventScope) -> Self {
        match scope {
            EventScope::Now(filter) => Self::by(organization, filter),
            EventScope::Billed(BilledDocumentKey { customer_id, contract_ref, document_ref }) => Self {
                organization: organization.as_uuid(),
                with_billed: true,
                customer_id: Some(customer_id.as_uuid()),
                usage_product_ref: None,
                document_id: Some(document_ref.as_uuid()),
                contract_id: Some(contract_ref.as_uuid()),
                from: None,
                to: None,
                updated_since: None,
                after: None,
                backward: false,
                labels: Vec::new(),
            },
        }
    }

    fn by(organization: OrganizationId, filter: &'a EventFilter) -> Self {
        Self {
            organization: organization.as_uuid(),
            with_billed: false,
            customer_id: filter.customer_id.map(|customer| customer.as_uuid()),
            usage_product_ref: filter.usage_product_ref.as_ref().map(|product| product.as_str()),
            document_id: filter.document_ref.map(|document| document.as_uuid()),
            contract_id: filter.contract_ref.map(|contract| contract.as_uuid()),
            from: filter.from,
            to: filter.to,
            updated_since: filter.updates.since,
            after: filter.updates.after.as_ref().map(|position| (position.updated_at, id_of(position))),
            backward: false,
            labels: filter.labels.iter().map(|(key, values)| stored_entries(key, values)).collect(),
        }
    }
}

/// Returns how stored report data contains a label with one of these values: as a text, a number or a boolean. Quotation marks
/// within keys and texts are stored with a backslash, so an entry is found only where it is one.
fn stored_entries(key: &str, values: &[String]) -> Vec<String> {
    let forms = |value: &String| {
        let number = ReportValue::Number(value.clone());
        let flag = value.parse().ok().map(ReportValue::Bool);
        [Some(ReportValue::Text(value.clone())), Some(number), flag].into_iter().flatten()
    };
    values.iter().flat_map(forms).filter_map(|value| stored_entry(key, value)).collect()
}

/// Returns the stored form of one entry of report data.
fn stored_entry(key: &str, value: ReportValue) -> Option<String> {
    let data = ReportData::new([(key.to_owned(), value)]);
    let list = to_json(&StoredReportRef(&data)).ok()?.0;
    Some(list.strip_prefix('[')?.strip_suffix(']')?.to_owned()).filter(|entry| !entry.is_empty())
}

/// Events without a revision that their document was issued with.
const NOT_BILLED_BEFORE: &str = "usage_events n WHERE NOT deleted AND NOT EXISTS (SELECT 1 FROM usage_event_revisions b \
                                 WHERE b.event_id = n.event_id AND b.customer_id = n.customer_id \
                                 AND b.document_id = n.document_id AND b.billed)";

/// The number of events that are searched first for a filtered page in `created` order.
const AMONG_FIRST: i64 = 5000;

/// Returns the number of events that are searched first for a page in timestamp order. They contain the page if at least a
/// quarter of them match.
fn first_by_time(page: PageRequest) -> i64 {
    let (size, offset) = crate::ports::limits(page);
    offset.saturating_add(size).saturating_mul(4).saturating_add(1000)
}

/// Returns the query for an event beyond those that are searched first for a page in timestamp order. Without such an
/// event, they are all events of the filter's range of time, so a page found among them is complete.
pub(crate) fn beyond_first_by_time(filter: &EventFilter, page: PageRequest) -> Statement<Id> {
    let mut s = Statement::new("SELECT event_id FROM usage_events WHERE NOT deleted");
    push_range(filter.from, filter.to, &mut s);
    s.sql(" ORDER BY occurred_at, event_id LIMIT 1 OFFSET ").number(first_by_time(page));
    s
}

/// The event columns that queries need.
const SOURCE_COLUMNS: &str = "event_id, customer_id, contract_id, product_no, usage_product_ref, service_start, document_id, \
                              occurred_at, quantity, report_data, revision, revised_at";

impl Columns {
    const fn select(&self) -> &'static str {
        match self {
            Self::Count => "SELECT count(*)",
            Self::Page { .. } => "SELECT e.event_id, e.customer_id",
            Self::Metered { .. } => {
                "SELECT e.event_id, e.customer_id, e.usage_product_ref, e.occurred_at, e.quantity, e.unique_digest"
            }
            Self::ReportData => "SELECT e.event_id, e.report_data",
            Self::Reported => {
                "SELECT e.event_id, e.occurred_at, e.quantity, e.report_data, c.customer_ref, c.name, e.usage_product_ref, p.name, \
                 d.number_prefix, d.kind, d.sequence, o.number_prefix, o.kind, o.sequence"
            }
        }
    }

    const fn joins(&self) -> &'static str {
        match self {
            Self::Count | Self::Page { .. } | Self::Metered { .. } | Self::ReportData => "",
            Self::Reported => {
                " JOIN documents d ON d.document_id = e.document_id AND d.customer_id = e.customer_id \
                 LEFT JOIN usage_products p ON p.organization_id = c.organization_id AND p.usage_product_ref = e.usage_product_ref \
                 LEFT JOIN usage_event_revisions r ON r.event_id = e.event_id AND r.customer_id = c.customer_id \
                 AND r.revision < e.revision AND r.contract_id = e.contract_id AND r.product_no = e.product_no \
                 AND r.service_start = e.service_start \
                 LEFT JOIN documents o ON o.document_id = r.document_id AND o.customer_id = c.customer_id AND o.lifecycle <> 'VOID'"
            }
        }
    }

    const fn narrow_and_order(&self) -> &'static str {
        match self {
            Self::Count | Self::Metered { by_customer: false } => "",
            Self::Metered { by_customer: true } => " ORDER BY e.customer_id",
            Self::Page { by: EventSortKey::Timestamp, backward: false, .. } => " ORDER BY e.occurred_at, e.event_id",
            Self::Page { by: EventSortKey::Timestamp, backward: true, .. } => " ORDER BY e.occurred_at DESC, e.event_id DESC",
            Self::Page { by: EventSortKey::Created, backward: false, .. } => " ORDER BY e.event_id",
            Self::Page { by: EventSortKey::Created, backward: true, .. } => " ORDER BY e.event_id DESC",
            Self::Page { by: EventSortKey::Updated, backward: false, .. } => " ORDER BY e.revised_at, e.event_id",
            Self::Page { by: EventSortKey::Updated, backward: true, .. } => " ORDER BY e.revised_at DESC, e.event_id DESC",
            Self::ReportData => " AND e.report_data IS NOT NULL",
            Self::Reported => " ORDER BY e.occurred_at, e.event_id, r.revision",
        }
    }
}

impl<R> EventsQuery<'_, R> {
    /// Returns the statement.
    pub(crate) fn statement(&self) -> Statement<R> {
        let Self { narrowed, columns, .. } = self;
        let mut s = Statement::new(columns.select());
        s.sql(" FROM (");
        if let Columns::Page { among_first: Some(first), by, .. } = columns {
            match by {
                EventSortKey::Timestamp => narrowed.push_among_first_by_time(*first, &mut s),
                // No page by the last change is searched among the first events.
                EventSortKey::Created | EventSortKey::Updated => narrowed.push_among_first(*first, &mut s),
            }
        } else if !narrowed.with_billed {
            // Revisions have no digest.
            let digest = if let Columns::Metered { .. } = columns { ", unique_digest" } else { "" };
            narrowed.push_of(digest, "usage_events WHERE NOT deleted", &mut s);
        } else {
            narrowed.push_of("", NOT_BILLED_BEFORE, &mut s);
            s.sql(" UNION ALL ");
            narrowed.push_of("", "usage_event_revisions WHERE billed", &mut s);
        }
        s.sql(") e");
        if self.is_read_in_order() {
            // PostgreSQL's statistics show that reading in order finds the first rows. SQLite needs `CROSS JOIN` for that.
            s.on_sqlite(" CROSS");
        }
        s.sql(" JOIN customers c ON c.customer_id = e.customer_id").sql(columns.joins());
        s.sql(" WHERE c.organization_id = ").id(narrowed.organization).sql(columns.narrow_and_order());
        if let Columns::Page { size, offset, .. } = columns {
            s.sql(" LIMIT ").number(*size).sql(" OFFSET ").number(*offset);
        }
        s
    }
}

impl Narrowed<'_> {
    /// Writes the events of one table, with more columns than all tables have.
    fn push_of<R>(&self, more: &'static str, rows: &'static str, s: &mut Statement<R>) {
        s.sql("SELECT ").sql(SOURCE_COLUMNS).sql(more).sql(" FROM ").sql(rows);
        self.push_conditions(s);
    }

    /// Writes the events that are among the first of all in `created` order.
    fn push_among_first<R>(&self, first: i64, s: &mut Statement<R>) {
        s.sql("SELECT ").sql(SOURCE_COLUMNS).sql(" FROM (SELECT deleted, ").sql(SOURCE_COLUMNS);
        s.sql(" FROM usage_events ORDER BY event_id").sql(self.direction()).sql(" LIMIT ").number(first);
        s.sql(") f WHERE NOT deleted");
        self.push_conditions(s);
    }

    /// Writes the keys and times of events that are among the first of all in timestamp order.
    fn push_among_first_by_time<R>(&self, first: i64, s: &mut Statement<R>) {
        // Only columns of the index, unless the filter needs another one.
        s.sql("SELECT event_id, customer_id, occurred_at FROM (SELECT event_id, customer_id, occurred_at");
        s.sql(if self.usage_product_ref.is_some() { ", usage_product_ref" } else { "" });
        s.sql(" FROM usage_events WHERE NOT deleted");
        push_range(self.from, self.to, s);
        s.sql(" ORDER BY occurred_at").sql(self.direction()).sql(", event_id").sql(self.direction());
        s.sql(" LIMIT ").number(first).sql(") f");
        if let Some(usage_product_ref) = self.usage_product_ref {
            s.sql(" WHERE usage_product_ref = ").text(usage_product_ref);
        }
    }

    fn push_conditions<R>(&self, s: &mut Statement<R>) {
        let ids = [
            (" AND customer_id = ", self.customer_id),
            (" AND contract_id = ", self.contract_id),
            (" AND document_id = ", self.document_id),
        ];
        for (condition, id) in ids {
            if let Some(id) = id {
                s.sql(condition).id(id);
            }
        }
        if let Some(usage_product_ref) = self.usage_product_ref {
            s.sql(" AND usage_product_ref = ").text(usage_product_ref);
        }
        for entries in &self.labels {
            let mut before = " AND (";
            for entry in entries {
                s.sql(before).on_sqlite("instr").on_postgres("strpos").sql("(report_data, ").text(entry.as_str()).sql(") > 0");
                before = " OR ";
            }
            s.sql(")");
        }
        if let Some(since) = self.updated_since {
            s.sql(" AND revised_at >= ").ts(since);
        }
        if let Some((revised_at, event_id)) = self.after {
            s.sql(" AND (revised_at, event_id)").sql(if self.backward { " < (" } else { " > (" });
            s.ts(revised_at).sql(", ").id(event_id).sql(")");
        }
        push_range(self.from, self.to, s);
    }

    const fn direction(&self) -> &'static str {
        if self.backward { " DESC" } else { "" }
    }
}

/// Writes the condition of a range of time.
fn push_range<R>(from: Option<Timestamp>, to: Option<Timestamp>, s: &mut Statement<R>) {
    for (condition, instant) in [(" AND occurred_at >= ", from), (" AND occurred_at < ", to)] {
        if let Some(instant) = instant {
            s.sql(condition).ts(instant);
        }
    }
}

#[cfg(test)]
mod tests {
    use billing_domain::page::Direction;
    use billing_domain::ports::UsageQueries as _;
    use billing_domain::refs::CustomerId;

    use super::*;
    use crate::query_plans::plans_of;

    #[test]
    fn on_sqlite_the_latest_events_are_read_from_the_end_and_those_of_a_customer_too_before_all_of_theirs() {
        let organization = OrganizationId::from_uuid(Uuid::from_u128(1));
        let of_one = EventFilter { customer_id: Some(CustomerId::from_uuid(Uuid::from_u128(2))), ..EventFilter::default() };
        let by_index = ("SEARCH usage_events USING INDEX usage_events_of_period (customer_id=?)", true);
        let from_the_end = ("SCAN usage_events", false);
        for (filter, expected) in [(EventFilter::default(), vec![from_the_end]), (of_one, vec![from_the_end, by_index])] {
            for direction in [Direction::Forward, Direction::Backward] {
                let page = PageRequest::LARGEST.in_direction(direction);
                let plans = plans_of(|tx| {
                    assert_eq!(tx.events(organization, &filter, EventSortKey::Created, page).expect("a look"), []);
                });
                // The last step reads the events found.
                assert_eq!(plans.len(), expected.len() + 1);
                for (plan, (first, sorts)) in plans.iter().zip(&expected) {
                    let steps = plan.steps.join("; ");
                    assert!(steps.contains(first) && steps.contains("TEMP B-TREE") == *sorts, "{steps}");
                }
            }
        }
    }

    #[test]
    fn on_sqlite_all_events_by_time_are_read_and_counted_by_their_index() {
        const INDEX: &str = "USING COVERING INDEX usage_events_by_time";
        let organization = OrganizationId::from_uuid(Uuid::from_u128(1));
        let instant = Timestamp::from_micros(0).expect("an instant");
        let since = EventFilter { from: Some(instant), ..EventFilter::default() };
        for (filter, range) in [(EventFilter::default(), ""), (since, " (occurred_at>?)")] {
            let index = format!("{INDEX}{range}");
            for direction in [Direction::Forward, Direction::Backward] {
                let page = PageRequest::LARGEST.in_direction(direction);
                let plans = plans_of(|tx| {
                    assert_eq!(tx.events(organization, &filter, EventSortKey::Timestamp, page).expect("a look"), []);
                });
                // The page, the event beyond, and the events found. No other step reads the events by their customers.
                assert_eq!(plans.len(), 3, "{plans:?}");
                for plan in &plans[..2] {
                    assert!(plan.steps.iter().any(|step| step.ends_with(&index)), "{index}: {plan:?}");
                }
            }
            if !range.is_empty() {
                let plans = plans_of(|tx| assert_eq!(tx.count_events(organization, &filter).expect("a count"), 0));
                assert!(plans[0].steps.iter().any(|step| step.ends_with(&index)), "{plans:?}");
            }
        }
    }

    #[test]
    fn on_sqlite_events_of_a_customer_by_time_are_found_by_the_customer() {
        let organization = OrganizationId::from_uuid(Uuid::from_u128(1));
        let instant = Timestamp::from_micros(0).expect("an instant");
        let customer_id = Some(CustomerId::from_uuid(Uuid::from_u128(2)));
        for from in [None, Some(instant)] {
            let filter = EventFilter { customer_id, from, ..EventFilter::default() };
            let plans = plans_of(|tx| {
                let found = tx.events(organization, &filter, EventSortKey::Timestamp, PageRequest::LARGEST);
                assert_eq!(found.expect("a look"), []);
            });
            let by_customer = "SEARCH usage_events USING INDEX usage_events_of_period (customer_id=?)";
            assert!(plans[0].steps.iter().any(|step| step == by_customer), "{plans:?}");
        }
    }
}
