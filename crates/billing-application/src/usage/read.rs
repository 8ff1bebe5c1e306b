//! Reading an event back, with the document it is on.

use billing_domain::access::Principal;
use billing_domain::calendar::Timestamp;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::{DocumentState, Settlement};
use billing_domain::ports::{Access, transact};
use billing_domain::refs::{CustomerRef, EventRef};
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
    /// The number of the document its latest change stands on.
    pub document_number: DocumentNumber,
    /// That document's state.
    pub document_state: DocumentState,
    /// When it was first stored.
    pub created_at: Timestamp,
}

/// Reads an event.
///
/// # Errors
/// [`UseCaseError::Unknown`], for a deleted event too.
pub fn get_event(services: &Services, principal: &Principal, event_ref: EventRef) -> UseCaseResult<EventView> {
    let organization = principal.organization;
    transact(&*services.store, Access::Read, |tx| {
        let found = tx.event(organization, event_ref)?.filter(|event| !event.deleted);
        let event = found.ok_or(UseCaseError::Unknown(Thing::Event))?;
        let customer = tx.customers_by_ids(organization, &[event.customer_id])?.into_iter().next();
        let customer = customer.ok_or_else(|| corrupt("an event", &event_ref, "has no customer"))?;
        let product = tx.usage_products_by_refs(organization, std::slice::from_ref(&event.usage_product_ref))?.into_iter().next();
        let product = product.ok_or_else(|| corrupt("an event", &event_ref, "has no usage product"))?;
        let document = tx.document(organization, event.placement.document_ref)?;
        let document = document.ok_or_else(|| corrupt("an event", &event_ref, "has no document"))?;
        let settlement = Settlement::none(document.head.currency);
        Ok(EventView {
            customer_ref: customer.customer_ref,
            customer_name: customer.profile.name,
            usage_product_name: product.profile.name,
            document_state: document.lifecycle.state(&settlement)?,
            document_number: document.head.number,
            created_at: event.recorded_at,
            event,
        })
    })
}
