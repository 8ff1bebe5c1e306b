//! Usage as it is read: lists, sums and reports. Nothing here writes.

use std::ops::ControlFlow;

use crate::calendar::Timestamp;
use crate::page::PageRequest;
use crate::refs::{ContractRef, CustomerId, DocumentRef, OrganizationId, UsageProductRef};
use crate::report::ReportedEvent;
use crate::summary::MeteredEvent;
use crate::usage::{ReportData, UsageEvent};

use super::StoreResult;

/// What a list of events is narrowed to. Deleted events pass no filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// This customer's.
    pub customer_id: Option<CustomerId>,
    /// Of this usage product.
    pub usage_product_ref: Option<UsageProductRef>,
    /// Whose latest change stands on this document.
    pub document_ref: Option<DocumentRef>,
    /// That count in this contract.
    pub contract_ref: Option<ContractRef>,
    /// That happened at this instant or later.
    pub from: Option<Timestamp>,
    /// That happened before this instant.
    pub to: Option<Timestamp>,
}

/// By what events are ordered; equals come by reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EventSortKey {
    /// When they happened.
    #[default]
    Timestamp,
    /// When they were reported: references grow with it.
    Created,
}

/// A document whose events are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BilledDocumentKey {
    /// Its customer.
    pub customer_id: CustomerId,
    /// Its contract.
    pub contract_ref: ContractRef,
    /// The document.
    pub document_ref: DocumentRef,
}

/// Which events a report has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventScope {
    /// Those that pass a filter, as they are now.
    Now(EventFilter),
    /// Those that a document bills, as it bills them, each once: of events that changed after it was issued, the revision
    /// that stood on it then; of the others that aren't deleted and stand on it, the latest.
    Billed(BilledDocumentKey),
}

/// Takes one row after the other, for as long as it says so.
pub type RowVisitor<'v, T> = dyn FnMut(T) -> ControlFlow<()> + 'v;

/// Usage events, read in bulk. What is visited isn't collected: the memory it takes doesn't grow with the number of events.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait UsageQueries {
    /// A page of the events that pass a filter, in an order, from either end.
    fn events(
        &mut self,
        organization: OrganizationId,
        filter: &EventFilter,
        by: EventSortKey,
        page: PageRequest,
    ) -> StoreResult<Vec<UsageEvent>>;
    /// How many events pass a filter. Reads each of them.
    fn count_events(&mut self, organization: OrganizationId, filter: &EventFilter) -> StoreResult<u64>;
    /// Visits what counts of the events that pass a filter, in any order, until the visitor has enough.
    fn visit_metered<'v>(
        &mut self,
        organization: OrganizationId,
        filter: &EventFilter,
        visit: &mut RowVisitor<'v, MeteredEvent>,
    ) -> StoreResult<()>;
    /// Visits the report data of a report's events that have any, in any order, until the visitor has enough.
    fn visit_report_data<'v>(
        &mut self,
        organization: OrganizationId,
        scope: &EventScope,
        visit: &mut RowVisitor<'v, ReportData>,
    ) -> StoreResult<()>;
    /// Visits a report's events with their names and the numbers of the documents that carry them, by timestamp, then
    /// reference, until the visitor has enough.
    fn visit_reported<'v>(
        &mut self,
        organization: OrganizationId,
        scope: &EventScope,
        visit: &mut RowVisitor<'v, ReportedEvent>,
    ) -> StoreResult<()>;
}
