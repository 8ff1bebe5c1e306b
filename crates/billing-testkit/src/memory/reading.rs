//! Usage as it is read.

use billing_domain::document::numbering::DocumentNumbers;
use billing_domain::page::PageRequest;
use billing_domain::ports::{Documents as _, EventFilter, EventScope, EventSortKey, StoreResult, UsageReading, Visit};
use billing_domain::refs::OrganizationId;
use billing_domain::report::ReportedEvent;
use billing_domain::summary::Metered;
use billing_domain::usage::{ReportData, UsageEvent};

use super::{MemoryTx, corrupt, page, sorted};

impl MemoryTx {
    /// Whether an earlier revision of an event is what its document was issued with.
    pub(super) fn is_billed_before(&self, organization: OrganizationId, event: &UsageEvent) -> bool {
        self.state.superseded_events.of(organization).any(|earlier| {
            let of_event = earlier.event.event_ref == event.event_ref;
            of_event && earlier.billed && earlier.event.placement.document_ref == event.placement.document_ref
        })
    }

    fn narrowed(&self, organization: OrganizationId, filter: &EventFilter) -> Vec<UsageEvent> {
        sorted(self.state.events.of(organization).filter(|row| passes(filter, row)), order)
    }

    fn in_scope(&self, organization: OrganizationId, scope: &EventScope) -> Vec<UsageEvent> {
        let billed = match scope {
            EventScope::Now(filter) => return self.narrowed(organization, filter),
            EventScope::Billed(billed) => billed,
        };
        let superseded = self.state.superseded_events.of(organization).filter(|row| row.billed).map(|row| &row.event);
        let live = self.state.events.of(organization).filter(|row| !row.deleted && !self.is_billed_before(organization, row));
        let of_document = superseded.chain(live).filter(|row| {
            row.placement.document_ref == billed.document_ref
                && row.placement.contract_ref == billed.contract_ref
                && row.customer_id == billed.customer_id
        });
        sorted(of_document, order)
    }

    fn reported(&mut self, organization: OrganizationId, event: UsageEvent) -> StoreResult<ReportedEvent> {
        let customer = self.state.customers.of(organization).find(|row| row.id == event.customer_id).cloned();
        let customer = customer.ok_or_else(|| corrupt(format!("{:?} has no customer", event.event_ref)))?;
        let product = self.state.usage_products.of(organization).find(|row| row.usage_product_ref == event.usage_product_ref);
        let product = product.cloned().ok_or_else(|| corrupt(format!("{:?} has no usage product", event.event_ref)))?;
        let mut changes = Vec::new();
        let superseded = self.state.superseded_events.of(organization).map(|row| &row.event);
        let earlier = superseded.filter(|row| row.event_ref == event.event_ref && row.revision < event.revision);
        for placement in sorted(earlier, |row| row.revision).into_iter().map(|row| row.placement) {
            let same_period = placement.contract_ref == event.placement.contract_ref
                && placement.product_no == event.placement.product_no
                && placement.service_period.start() == event.placement.service_period.start();
            let document = self.document(organization, placement.document_ref)?;
            changes.extend(document.filter(|document| same_period && !document.lifecycle.is_void()));
        }
        changes.extend(self.document(organization, event.placement.document_ref)?);
        let document_numbers = DocumentNumbers::in_order_of_change(changes.into_iter().map(|document| document.head.number));
        Ok(ReportedEvent {
            event_ref: event.event_ref,
            occurred_at: event.occurred_at,
            customer_ref: customer.customer_ref,
            customer_name: customer.profile.name,
            usage_product_ref: product.usage_product_ref,
            usage_product_name: product.profile.name,
            quantity: event.quantity,
            document_numbers: document_numbers.ok_or_else(|| corrupt(format!("{:?} has no document", event.event_ref)))?,
            report_data: event.report_data,
        })
    }
}

impl UsageReading for MemoryTx {
    fn events(
        &mut self,
        organization: OrganizationId,
        filter: &EventFilter,
        by: EventSortKey,
        request: PageRequest,
    ) -> StoreResult<Vec<UsageEvent>> {
        let narrowed = self.narrowed(organization, filter);
        let found = match by {
            EventSortKey::Timestamp => page(narrowed.iter(), request, order),
            EventSortKey::Created => page(narrowed.iter(), request, |event| event.event_ref),
        };
        Ok(found.items)
    }

    fn count_events(&mut self, organization: OrganizationId, filter: &EventFilter) -> StoreResult<u64> {
        Ok(self.narrowed(organization, filter).len() as u64)
    }

    fn visit_metered<'v>(
        &mut self,
        organization: OrganizationId,
        filter: &EventFilter,
        visit: &mut Visit<'v, Metered>,
    ) -> StoreResult<()> {
        let metered = |event: UsageEvent| Metered {
            customer_id: event.customer_id,
            usage_product_ref: event.usage_product_ref,
            occurred_at: event.occurred_at,
            quantity: event.quantity,
        };
        // Whether all were visited makes no difference.
        let _ = self.narrowed(organization, filter).into_iter().map(metered).try_for_each(visit);
        Ok(())
    }

    fn visit_report_data<'v>(
        &mut self,
        organization: OrganizationId,
        scope: &EventScope,
        visit: &mut Visit<'v, ReportData>,
    ) -> StoreResult<()> {
        let _ = self.in_scope(organization, scope).into_iter().filter_map(|event| event.report_data).try_for_each(visit);
        Ok(())
    }

    fn visit_reported<'v>(
        &mut self,
        organization: OrganizationId,
        scope: &EventScope,
        visit: &mut Visit<'v, ReportedEvent>,
    ) -> StoreResult<()> {
        for event in self.in_scope(organization, scope) {
            let reported = self.reported(organization, event)?;
            if visit(reported).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn order(event: &UsageEvent) -> impl Ord + use<> {
    (event.occurred_at, event.event_ref)
}

fn passes(filter: &EventFilter, event: &UsageEvent) -> bool {
    !event.deleted
        && filter.customer_id.is_none_or(|customer| customer == event.customer_id)
        && filter.usage_product_ref.as_ref().is_none_or(|product| *product == event.usage_product_ref)
        && filter.document_ref.is_none_or(|document| document == event.placement.document_ref)
        && filter.contract_ref.is_none_or(|contract| contract == event.placement.contract_ref)
        && filter.from.is_none_or(|from| from <= event.occurred_at)
        && filter.to.is_none_or(|to| event.occurred_at < to)
}
