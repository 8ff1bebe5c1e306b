//! Filters of usage lists, summaries and reports.

use billing_application::usage::{EventQuery, ReportOf};
use billing_domain::calendar::{Date, TimeZone, Timestamp};
use billing_domain::event_input::OnConflict;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::page::{Order, UpdateFilter};
use billing_domain::ports::{EventFilter, RefusedFilter};
use billing_domain::refs::{ContractRef, CustomerRef, DocumentRef, UsageProductRef};
use billing_domain::report::ReportFormat;
use billing_domain::summary::{Grouping, Interval, SummaryIntervals};

use super::lists::possible;
use super::updates::UpdateParams;
use super::{AnyText, DEFAULT_PAGE_SIZE, LabelParams, Paged, SearchRef, paged};
use crate::dto::declare::{params, wire};
use crate::dto::enums::EventOrderWord;
use crate::dto::formatted::FormatFields;
use crate::dto::input::Node;
use crate::dto::schemas::text;

const BY_USAGE_PRODUCT: &str = "usage_product_ref";
const BY_CUSTOMER: &str = "customer_ref";
const INTERVAL: &str = "interval";
const FROM: &str = "from";
const TO: &str = "to";

params! {
    /// What happens to an event whose idempotency key was used for other values.
    ConflictParams {
        /// `REJECT`: the event is rejected. `UPDATE`: the recorded event gets these values. Default: REJECT.
        on_conflict: OnConflict = OnConflict::Reject,
    }
}

params! {
    /// Options of a free-form event.
    FormattedParams {
        @flat format: FormatFields,
        @flat conflicts: ConflictParams,
    }
}

params! {
    /// Options of a batch.
    BatchParams {
        /// Whether one rejected event rejects the whole batch, as in the body of a JSON batch. Default: false.
        atomic: bool = false,
        @flat format: FormatFields,
        @flat conflicts: ConflictParams,
    }
}

params! {
    /// Filters of usage events.
    EventParams {
        /// Customer reference.
        customer_ref: Option<SearchRef<CustomerRef>>,
        /// Usage product reference.
        usage_product_ref: Option<SearchRef<UsageProductRef>>,
        /// Document that bills the event after its latest change.
        document_ref: Option<SearchRef<DocumentRef>>,
        /// Contract that the event belongs to.
        contract_ref: Option<SearchRef<ContractRef>>,
        /// Earliest time of usage, RFC 3339 with an offset.
        from: Option<Timestamp>,
        /// Latest time of usage, exclusive.
        to: Option<Timestamp>,
        @flat labels: LabelParams,
    }
    with {
        fn check(fields: Fields<'_>) {
            let is_narrow = [BY_CUSTOMER, "contract_ref", "document_ref"].iter().any(|name| fields.has(name));
            if LabelParams::is_in(fields) && !is_narrow {
                let detail = "must be given, or contract_ref or document_ref, because report_data is compared event by event";
                fields.refuse::<()>(BY_CUSTOMER, "required", detail);
            }
        }
    }
}

impl EventParams {
    /// Returns the query; `None` if nothing can match.
    pub fn query(self) -> Option<EventQuery> {
        let filter = EventFilter {
            customer_id: None,
            usage_product_ref: possible(self.usage_product_ref)?,
            document_ref: possible(self.document_ref)?,
            contract_ref: possible(self.contract_ref)?,
            from: self.from,
            to: self.to,
            updates: UpdateFilter::default(),
            labels: self.labels.0,
        };
        Some(EventQuery { customer_ref: possible(self.customer_ref)?, key: None, filter })
    }
}

params! {
    /// Filters and page of usage events.
    EventListParams {
        @flat events: EventParams,
        /// Idempotency key of the event, with `customer_ref`. Finds a deleted event, too.
        idempotency_key: Option<IdempotencyKey>,
        /// Sort order. Default: by time of usage. `created` sorts by time of recording, which is fast for any number of
        /// events.
        order: EventOrderWord = Order::default(),
        @flat updates: UpdateParams,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
    with {
        fn check(fields: Fields<'_>) {
            if fields.has("idempotency_key") && !fields.has(BY_CUSTOMER) {
                fields.refuse::<()>(BY_CUSTOMER, "required", "must be given, because an idempotency key belongs to a customer");
            }
        }
    }
}

impl EventListParams {
    /// Returns the query; `None` if nothing can match.
    pub fn query(self) -> Option<EventQuery> {
        let updates = self.updates.filter();
        let query = self.events.query()?;
        Some(EventQuery { key: self.idempotency_key, filter: EventFilter { updates, ..query.filter }, ..query })
    }
}

params! {
    /// Filters and page of rejected usage.
    RefusedParams {
        /// Earliest date in UTC.
        from: Option<Date>,
        /// Latest date in UTC.
        to: Option<Date>,
        /// Error code.
        code: Option<AnyText>,
        /// Submitted customer reference or name.
        customer_ref: Option<AnyText>,
        /// Submitted usage product reference or name.
        usage_product_ref: Option<AnyText>,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl RefusedParams {
    /// Returns the filter.
    pub fn filter(&self) -> RefusedFilter {
        RefusedFilter {
            from: self.from,
            to: self.to,
            code: self.code.clone(),
            customer_ref: self.customer_ref.clone(),
            usage_product_ref: self.usage_product_ref.clone(),
        }
    }
}

params! {
    /// Filters and grouping of a usage summary.
    SummaryParams {
        /// Length of the intervals. Without it, the response has one interval from `from` to `to`.
        interval: Option<Interval>,
        /// Time zone of the hours, days and months. Default: UTC.
        timezone: TimeZone = TimeZone::UTC,
        /// Fields to group by: `usage_product_ref`, `customer_ref`, or both separated by a comma.
        group_by: Grouping = Grouping::default(),
        @flat events: EventParams,
    }
    with {
        fn check(fields: Fields<'_>) {
            let has_range = fields.has(FROM) && fields.has(TO);
            if !fields.has(INTERVAL) && !has_range {
                fields.refuse::<()>(INTERVAL, "required", "must be given, unless from and to are the one interval");
            }
        }
    }
}

impl SummaryParams {
    /// Returns the intervals.
    pub fn intervals(&self) -> SummaryIntervals {
        match self.interval {
            Some(interval) => SummaryIntervals::Calendar(interval, self.timezone),
            None => {
                let EventParams { from, to, .. } = self.events;
                SummaryIntervals::Whole(from.unwrap_or(Timestamp::MIN), to.unwrap_or(Timestamp::MAX))
            }
        }
    }
}

params! {
    /// Filters and format of a usage report.
    ReportParams {
        /// Report format. Default: CSV.
        format: ReportFormat = ReportFormat::default(),
        @flat events: EventParams,
    }
}

impl ReportParams {
    /// Returns the selection of the report.
    pub fn of(self) -> ReportOf {
        self.events.query().map_or(ReportOf::Nothing, ReportOf::Events)
    }
}

wire! {
    Grouping: grouping, |_| text();
}

fn grouping(node: Node<'_>) -> Option<Grouping> {
    let mut grouping = Grouping::default();
    for word in node.text()?.split(',') {
        let part = match word {
            BY_USAGE_PRODUCT => &mut grouping.by_usage_product,
            BY_CUSTOMER => &mut grouping.by_customer,
            _ => {
                let detail = format!("must be {BY_USAGE_PRODUCT}, {BY_CUSTOMER}, or both, separated by a comma");
                return node.refuse("invalid_value", detail);
            }
        };
        if std::mem::replace(part, true) {
            return node.refuse("duplicate", "must not contain duplicates");
        }
    }
    Some(grouping)
}

paged! {
    RefusedParams;
    ordered EventListParams,
}

#[cfg(test)]
#[path = "usage_tests.rs"]
mod tests;
