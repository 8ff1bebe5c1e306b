//! Reading an event back, with the documents it is on, and its history.

use billing_domain::access::{Actor, Principal};
use billing_domain::calendar::Timestamp;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::{Document, DocumentState, Lifecycle, Purpose};
use billing_domain::party::NetTerms;
use billing_domain::ports::{Access, Tx, transact};
use billing_domain::refs::{CustomerRef, DocumentRef, EventRef, OrganizationId};
use billing_domain::text::Line;
use billing_domain::usage::UsageEvent;

use crate::Services;
use crate::error::{Thing, UseCaseError, UseCaseResult};
use crate::ledger::corrupt;

/// An event with the names a person reads.
#[derive(Clone, Debug)]
pub struct EventView {
    /// The event.
    pub event: UsageEvent,
    /// Who used.
    pub customer_ref: CustomerRef,
    /// Their name.
    pub customer_name: Line,
    /// The usage product's name.
    pub usage_product_name: Line,
    /// The numbers of all documents of its present service period that carry it, in order; the last is the one its
    /// latest change stands on.
    pub document_numbers: Vec<DocumentNumber>,
    /// That document's state.
    pub document_state: DocumentState,
    /// The period's invoice, where the event has a document of its own (billing rules 3).
    pub parent: Option<(DocumentRef, DocumentNumber)>,
}

/// What happened to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventAction {
    /// It was taken.
    Created,
    /// It was changed.
    Updated,
    /// It was deleted.
    Deleted,
}

/// One revision of an event.
#[derive(Clone, Debug)]
pub struct EventRevision {
    /// The event as it was then.
    pub event: UsageEvent,
    /// When.
    pub changed_at: Timestamp,
    /// Who.
    pub changed_by: Actor,
    /// What.
    pub action: EventAction,
    /// The customer.
    pub customer_ref: CustomerRef,
    /// The number of the document this change stands on.
    pub document_number: DocumentNumber,
}

/// Reads an event.
///
/// # Errors
/// [`UseCaseError::Unknown`], for a deleted event too.
pub fn get_event(services: &Services, principal: &Principal, event_ref: EventRef) -> UseCaseResult<EventView> {
    let organization = principal.organization;
    transact(&*services.store, Access::Read, |tx| {
        let found = tx.event(organization, event_ref)?.filter(|event| !event.deleted);
        view_event(tx, organization, found.ok_or(UseCaseError::Unknown(Thing::Event))?)
    })
}

/// Every revision of an event, oldest first; of a deleted one, too.
///
/// # Errors
/// [`UseCaseError::Unknown`].
pub fn event_history(services: &Services, principal: &Principal, event_ref: EventRef) -> UseCaseResult<Vec<EventRevision>> {
    let organization = principal.organization;
    transact(&*services.store, Access::Read, |tx| {
        let latest = tx.event(organization, event_ref)?.ok_or(UseCaseError::Unknown(Thing::Event))?;
        let customer = tx.customers_by_ids(organization, &[latest.customer_id])?.into_iter().next();
        let customer = customer.ok_or_else(|| corrupt("an event", &event_ref, "has no customer"))?;
        let mut revisions = tx.superseded_revisions(organization, event_ref)?;
        revisions.push(latest);
        let mut history = Vec::with_capacity(revisions.len());
        for event in revisions {
            let document = document(tx, organization, event.placement.document_ref)?;
            let action = match (event.deleted, event.revision) {
                (true, _) => EventAction::Deleted,
                (false, 1) => EventAction::Created,
                (false, _) => EventAction::Updated,
            };
            history.push(EventRevision {
                changed_at: event.revised_at,
                changed_by: event.revised_by,
                action,
                customer_ref: customer.customer_ref.clone(),
                document_number: document.head.number,
                event,
            });
        }
        Ok(history)
    })
}

/// Puts the names to an event.
pub(super) fn view_event(tx: &mut dyn Tx, organization: OrganizationId, event: UsageEvent) -> UseCaseResult<EventView> {
    let event_ref = event.event_ref;
    let customer = tx.customers_by_ids(organization, &[event.customer_id])?.into_iter().next();
    let customer = customer.ok_or_else(|| corrupt("an event", &event_ref, "has no customer"))?;
    let product = tx.usage_products_by_refs(organization, std::slice::from_ref(&event.usage_product_ref))?.into_iter().next();
    let product = product.ok_or_else(|| corrupt("an event", &event_ref, "has no usage product"))?;
    let latest = document(tx, organization, event.placement.document_ref)?;
    let mut document_numbers = Vec::new();
    if event.revision > 1 {
        for earlier in tx.superseded_revisions(organization, event_ref)? {
            let same_period = earlier.placement.service_period.start() == event.placement.service_period.start()
                && earlier.placement.contract_ref == event.placement.contract_ref
                && earlier.placement.product_no == event.placement.product_no;
            if same_period && earlier.placement.document_ref != event.placement.document_ref {
                let carrier = document(tx, organization, earlier.placement.document_ref)?;
                // What stood on a void document another one has taken over.
                if !matches!(carrier.lifecycle, Lifecycle::Void(_)) {
                    document_numbers.retain(|listed| *listed != carrier.head.number);
                    document_numbers.push(carrier.head.number);
                }
            }
        }
    }
    document_numbers.push(latest.head.number.clone());
    let parent = period_invoice(tx, organization, &latest)?;
    Ok(EventView {
        customer_ref: customer.customer_ref,
        customer_name: customer.profile.name,
        usage_product_name: product.profile.name,
        document_state: latest.state()?,
        document_numbers,
        parent,
        event,
    })
}

/// The period's invoice above a document of an event due upon usage.
pub(super) fn period_invoice(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    of: &Document,
) -> UseCaseResult<Option<(DocumentRef, DocumentNumber)>> {
    if of.head.net_terms != NetTerms::DueUponUsage {
        return Ok(None);
    }
    let mut above = of.clone();
    while let Some(parent) = above.head.parent.filter(|_| !matches!(above.head.purpose, Purpose::Regular(_))) {
        above = document(tx, organization, parent)?;
    }
    let itself = above.head.document_ref == of.head.document_ref;
    Ok((!itself).then_some((above.head.document_ref, above.head.number)))
}

fn document(tx: &mut dyn Tx, organization: OrganizationId, document_ref: DocumentRef) -> UseCaseResult<Document> {
    tx.document(organization, document_ref)?
        .ok_or_else(|| corrupt("an event", &document_ref, "names a document that is not there"))
}
