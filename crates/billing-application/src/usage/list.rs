//! Lists events in pages, with filters.

use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{EventFilter, EventSortKey, Tx};
use billing_domain::refs::{CustomerRef, OrganizationId};

use super::read::{EventView, view_events};
use crate::carry_out::Cx;
use crate::catalog::narrow_to_customer;
use crate::error::UseCaseResult;

/// A filter of events with the references that a caller gives.
#[derive(Clone, Debug, Default)]
pub struct EventQuery {
    /// Only events of this customer.
    pub customer_ref: Option<CustomerRef>,
    /// The other conditions.
    pub filter: EventFilter,
}

impl EventQuery {
    /// Returns the filter with the customer and contract that its references imply, because events are found by these.
    /// Returns `None` if a reference does not exist or two references contradict each other.
    pub(super) fn resolve(&self, tx: &mut dyn Tx, organization: OrganizationId) -> UseCaseResult<Option<EventFilter>> {
        let mut filter = self.filter.clone();
        if !narrow_to_customer(tx, organization, self.customer_ref.as_ref(), &mut filter.customer_id)? {
            return Ok(None);
        }
        if let Some(document_ref) = filter.document_ref {
            let Some(document) = tx.document(organization, document_ref)? else { return Ok(None) };
            if filter.contract_ref.is_some_and(|contract_ref| contract_ref != document.head.contract_ref) {
                return Ok(None);
            }
            filter.contract_ref = Some(document.head.contract_ref);
        }
        if let Some(contract_ref) = filter.contract_ref {
            let Some(contract) = tx.contract(organization, contract_ref)? else { return Ok(None) };
            if filter.customer_id.is_some_and(|customer_id| customer_id != contract.customer_id) {
                return Ok(None);
            }
            filter.customer_id = Some(contract.customer_id);
        }
        Ok(Some(filter))
    }
}

/// Returns a page of events that are not deleted, ordered by `by` and reference. The page is empty if a reference does not
/// exist.
///
/// # Errors
/// Returns [`UseCaseError::Store`](crate::error::UseCaseError::Store) if the events cannot be read.
pub fn list_events(cx: &mut Cx<'_>, query: &EventQuery, by: EventSortKey, page: PageRequest) -> UseCaseResult<Page<EventView>> {
    let Some(filter) = query.resolve(cx.tx, cx.organization)? else { return Ok(Page::empty()) };
    let items = cx.tx.events(cx.organization, &filter, by, page)?;
    let total = if filter.updates.after.is_some() { 0 } else { count(cx.tx, cx.organization, &filter)? };
    Ok(Page { total, items: view_events(cx.tx, cx.organization, &[], items)? })
}

/// Returns the number of events that match a filter. Uses the running totals where possible and counts events only if the
/// filter needs it.
fn count(tx: &mut dyn Tx, organization: OrganizationId, filter: &EventFilter) -> UseCaseResult<u64> {
    Ok(match filter {
        EventFilter {
            customer_id,
            contract_ref,
            usage_product_ref,
            document_ref: None,
            from: None,
            to: None,
            updates,
            labels,
        } if updates.since.is_none() && labels.is_empty() => {
            tx.events_in_totals(organization, *customer_id, *contract_ref, usage_product_ref.as_ref())?
        }
        _ => tx.count_events(organization, filter)?,
    })
}
