//! Lists events in pages, with filters.

use billing_domain::idempotency::IdempotencyKey;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{EventFilter, EventSortKey, Tx};
use billing_domain::refs::{CustomerRef, EventRef, OrganizationId};
use billing_domain::usage::UsageEvent;

use super::read::{EventView, view_events};
use crate::carry_out::Cx;
use crate::catalog::narrow_to_customer;
use crate::error::UseCaseResult;

/// A filter of events with the references that a caller gives.
#[derive(Clone, Debug, Default)]
pub struct EventQuery {
    /// Only events of this customer.
    pub customer_ref: Option<CustomerRef>,
    /// Only the event recorded under this key of the customer.
    pub key: Option<IdempotencyKey>,
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

/// Returns a page of events that are not deleted, ordered by `by` and reference, or the event of a key even if it is deleted. The
/// page is empty if a reference does not exist.
///
/// # Errors
/// Returns [`UseCaseError::Store`](crate::error::UseCaseError::Store) if the events cannot be read.
pub fn list_events(cx: &mut Cx<'_>, query: &EventQuery, by: EventSortKey, page: PageRequest) -> UseCaseResult<Page<EventView>> {
    let Some(filter) = query.resolve(cx.tx, cx.organization)? else { return Ok(Page::empty()) };
    if let (Some(key), Some(customer_id)) = (&query.key, filter.customer_id) {
        let found = cx.tx.event_key_records(cx.organization, &[(customer_id, key.clone())])?;
        let refs: Vec<EventRef> = found.into_iter().map(|(_, record)| record.event_ref).collect();
        let mut items = if refs.is_empty() { Vec::new() } else { cx.tx.events_by_refs(cx.organization, &refs)? };
        items.retain(|event| matches(event, &filter));
        let total = items.len() as u64;
        return Ok(Page { total, items: view_events(cx.tx, cx.organization, &[], items)? });
    }
    let items = cx.tx.events(cx.organization, &filter, by, page)?;
    let total = if filter.updates.after.is_some() { 0 } else { count(cx.tx, cx.organization, &filter)? };
    Ok(Page { total, items: view_events(cx.tx, cx.organization, &[], items)? })
}

/// Returns whether an event meets the conditions of a filter besides those on its customer and on updates.
fn matches(event: &UsageEvent, filter: &EventFilter) -> bool {
    let UsageEvent { placement, occurred_at, usage_product_ref, report_data, .. } = event;
    let has_label = |(key, texts): (&String, &Vec<String>)| {
        report_data.as_ref().and_then(|labels| labels.label(key)).is_some_and(|label| texts.iter().any(|text| *text == *label))
    };
    filter.usage_product_ref.as_ref().is_none_or(|wanted| wanted == usage_product_ref)
        && filter.document_ref.is_none_or(|wanted| wanted == placement.document_ref)
        && filter.contract_ref.is_none_or(|wanted| wanted == placement.contract_ref)
        && filter.from.is_none_or(|from| from <= *occurred_at)
        && filter.to.is_none_or(|to| *occurred_at < to)
        && filter.labels.iter().all(has_label)
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
