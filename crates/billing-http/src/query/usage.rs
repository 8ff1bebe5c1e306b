//! What lists, sums and reports of usage are narrowed to.

use billing_application::usage::{EventQuery, ReportOf};
use billing_domain::calendar::{Date, TimeZone, Timestamp};
use billing_domain::page::Order;
use billing_domain::ports::{EventFilter, RefusedFilter};
use billing_domain::refs::{ContractRef, CustomerRef, DocumentRef, UsageProductRef};
use billing_domain::summary::{Grouping, Interval};
use billing_report::ReportFormat;

use super::lists::possible;
use super::{AnyText, DEFAULT_PAGE_SIZE, Paged, SearchRef};
use crate::dto::declare::{params, wire};
use crate::dto::enums::EventOrderWord;
use crate::dto::input::Node;
use crate::dto::schemas::text;

const BY_USAGE_PRODUCT: &str = "usage_product_ref";
const BY_CUSTOMER: &str = "customer_ref";

params! {
    /// How a batch is taken.
    BatchParams {
        /// Whether one refused event refuses all; as in the body of a JSON batch.
        atomic: bool = false,
    }
}

params! {
    /// Which events.
    EventParams {
        /// This customer's.
        customer_ref: Option<SearchRef<CustomerRef>>,
        /// Of this usage product.
        usage_product_ref: Option<SearchRef<UsageProductRef>>,
        /// Whose latest change stands on this document.
        document_ref: Option<SearchRef<DocumentRef>>,
        /// That count in this contract.
        contract_ref: Option<SearchRef<ContractRef>>,
        /// That happened at this instant or later: RFC 3339 with an offset.
        from: Option<Timestamp>,
        /// That happened before this instant.
        to: Option<Timestamp>,
    }
}

impl EventParams {
    /// What is looked for; `None` where nothing can be found.
    pub(crate) fn query(self) -> Option<EventQuery> {
        let filter = EventFilter {
            customer_id: None,
            usage_product_ref: possible(self.usage_product_ref)?,
            document_ref: possible(self.document_ref)?,
            contract_ref: possible(self.contract_ref)?,
            from: self.from,
            to: self.to,
        };
        Some(EventQuery { customer_ref: possible(self.customer_ref)?, filter })
    }
}

params! {
    /// Which events, and which page.
    EventListParams {
        @flat events: EventParams,
        /// By when they happened, when left out; `created` is by when they were reported, and is quick however many there are.
        order: EventOrderWord = Order::default(),
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

params! {
    /// Which refused usage, and which page.
    RefusedParams {
        /// Of this day of UTC or later.
        from: Option<Date>,
        /// Of this day of UTC or earlier.
        to: Option<Date>,
        /// Refused for this.
        code: Option<AnyText>,
        /// Told to be this customer's, by reference or name.
        customer_ref: Option<AnyText>,
        /// Told to be of this usage product, by reference or name.
        usage_product_ref: Option<AnyText>,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl RefusedParams {
    /// What they are narrowed to.
    pub(crate) fn filter(&self) -> RefusedFilter {
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
    /// Which events, and how they are summed up.
    SummaryParams {
        /// How long the intervals are.
        interval: Interval,
        /// Whose hours, days and months they are; those of UTC when left out.
        timezone: TimeZone = TimeZone::UTC,
        /// `usage_product_ref`, `customer_ref`, or both with a comma between: what gets a row of its own.
        group_by: Grouping = Grouping::default(),
        @flat events: EventParams,
    }
}

params! {
    /// Which events, and how they are written.
    ReportParams {
        /// How the report is written; CSV when left out.
        format: ReportFormat = ReportFormat::default(),
        @flat events: EventParams,
    }
}

impl ReportParams {
    /// What is reported.
    pub(crate) fn of(self) -> ReportOf {
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
                let detail = format!("must be {BY_USAGE_PRODUCT}, {BY_CUSTOMER}, or both with a comma between");
                return node.refuse("invalid_value", detail);
            }
        };
        if std::mem::replace(part, true) {
            return node.refuse("duplicate", "must name each once");
        }
    }
    Some(grouping)
}

#[cfg(test)]
#[path = "usage_tests.rs"]
mod tests;
