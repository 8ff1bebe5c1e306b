//! Read-only queries of usage: lists, sums and reports.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::calendar::Timestamp;
use crate::page::{PageRequest, UpdateFilter};
use crate::refs::{ContractRef, CustomerId, DocumentRef, OrganizationId, UsageProductRef};
use crate::report::ReportedEvent;
use crate::summary::MeteredEvent;
use crate::usage::{ReportData, UsageEvent};

use super::StoreResult;

/// A filter for lists of events. Deleted events never match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Matches events of this customer.
    pub customer_id: Option<CustomerId>,
    /// Matches events of this usage product.
    pub usage_product_ref: Option<UsageProductRef>,
    /// Matches events whose latest change is on this document.
    pub document_ref: Option<DocumentRef>,
    /// Matches events that count in this contract.
    pub contract_ref: Option<ContractRef>,
    /// Matches events that happened at this instant or later.
    pub from: Option<Timestamp>,
    /// Matches events that happened before this instant.
    pub to: Option<Timestamp>,
    /// Conditions on the newest revision's time.
    pub updates: UpdateFilter,
    /// Matches events whose labels have, for every key, one of the values as it was sent.
    pub labels: BTreeMap<String, Vec<String>>,
}

/// A sort key for events. Equal keys are ordered by reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EventSortKey {
    /// The time of the event.
    #[default]
    Timestamp,
    /// The time of reporting. References increase with it.
    Created,
    /// The time of the newest revision.
    Updated,
}

/// The key of a document whose events are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BilledDocumentKey {
    /// The customer of the document.
    pub customer_id: CustomerId,
    /// The contract of the document.
    pub contract_ref: ContractRef,
    /// The document.
    pub document_ref: DocumentRef,
}

/// The events of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventScope {
    /// The current events that match a filter.
    Now(EventFilter),
    /// The events that a document bills, each once.
    ///
    /// An event that changed after the document was issued is included in its revision at that time. Other events on the
    /// document are included in their latest revision, unless they are deleted.
    Billed(BilledDocumentKey),
}

/// A callback for one row after another. It returns whether the visit continues.
pub type RowVisitor<'v, T> = dyn FnMut(T) -> ControlFlow<()> + 'v;

/// Bulk queries of usage events. Visited rows are not collected, so memory use does not grow with the number of events.
pub trait UsageQueries {
    /// Returns a page of the events that match a filter. The order may be ascending or descending.
    fn events(
        &mut self,
        organization: OrganizationId,
        filter: &EventFilter,
        by: EventSortKey,
        page: PageRequest,
    ) -> StoreResult<Vec<UsageEvent>>;
    /// Counts the events that match a filter. The call reads each of them.
    fn count_events(&mut self, organization: OrganizationId, filter: &EventFilter) -> StoreResult<u64>;
    /// Visits the metered values of the events that match a filter, until the visitor breaks: customer by customer, or in any
    /// order.
    fn visit_metered<'v>(
        &mut self,
        organization: OrganizationId,
        filter: &EventFilter,
        by_customer: bool,
        visit: &mut RowVisitor<'v, MeteredEvent>,
    ) -> StoreResult<()>;
    /// Visits the report data of a report's events, in any order, until the visitor breaks. Skips events without report
    /// data.
    fn visit_report_data<'v>(
        &mut self,
        organization: OrganizationId,
        scope: &EventScope,
        visit: &mut RowVisitor<'v, ReportData>,
    ) -> StoreResult<()>;
    /// Visits a report's events with their names and document numbers, ordered by timestamp, then by reference, until the
    /// visitor breaks.
    fn visit_reported<'v>(
        &mut self,
        organization: OrganizationId,
        scope: &EventScope,
        visit: &mut RowVisitor<'v, ReportedEvent>,
    ) -> StoreResult<()>;
}
