//! Reading events back, with the documents they are on, and their history.

use std::collections::{BTreeSet, HashMap};

use billing_domain::access::{Actor, Principal};
use billing_domain::calendar::Timestamp;
use billing_domain::catalog::UsageProduct;
use billing_domain::document::numbering::{DocumentNumber, DocumentNumbers};
use billing_domain::document::{Document, DocumentState, Purpose};
use billing_domain::party::{Customer, NetTerms};
use billing_domain::ports::{Access, Tx, transact};
use billing_domain::refs::{CustomerId, CustomerRef, DocumentRef, EventRef, OrganizationId, UsageProductRef};
use billing_domain::text::Line;
use billing_domain::usage::UsageEvent;

use crate::Services;
use crate::books::corrupt;
use crate::error::{Thing, UseCaseError, UseCaseResult};

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
    pub document_numbers: DocumentNumbers,
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
        let mut revisions = tx.superseded_revisions(organization, &[event_ref])?;
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
    let view = view_events(tx, organization, vec![event])?.pop();
    view.ok_or_else(|| corrupt("an event", &event_ref, "is not there"))
}

/// Puts the names to events, in their order. What is around them is read once for all.
pub(super) fn view_events(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    events: Vec<UsageEvent>,
) -> UseCaseResult<Vec<EventView>> {
    let around = Around::read(tx, organization, &events)?;
    events.into_iter().map(|event| around.view(event)).collect()
}

/// What events name.
struct Around {
    customers: HashMap<CustomerId, Customer>,
    usage_products: HashMap<UsageProductRef, UsageProduct>,
    /// The revisions before those of the events.
    earlier: HashMap<EventRef, Vec<UsageEvent>>,
    /// The documents that events and revisions stand on, and those above them.
    documents: HashMap<DocumentRef, Document>,
}

impl Around {
    fn read(tx: &mut dyn Tx, organization: OrganizationId, events: &[UsageEvent]) -> UseCaseResult<Self> {
        let customers: BTreeSet<CustomerId> = events.iter().map(|event| event.customer_id).collect();
        let customers = tx.customers_by_ids(organization, &Vec::from_iter(customers))?;
        let usage_products: BTreeSet<UsageProductRef> = events.iter().map(|event| event.usage_product_ref.clone()).collect();
        let usage_products = tx.usage_products_by_refs(organization, &Vec::from_iter(usage_products))?;
        let edited: Vec<EventRef> = events.iter().filter(|event| event.revision > 1).map(|event| event.event_ref).collect();
        let earlier = if edited.is_empty() { Vec::new() } else { tx.superseded_revisions(organization, &edited)? };
        let carriers = events.iter().chain(&earlier).map(|event| event.placement.document_ref).collect();
        let documents = documents_and_above(tx, organization, carriers)?;
        let mut by_event: HashMap<EventRef, Vec<UsageEvent>> = HashMap::new();
        for revision in earlier {
            by_event.entry(revision.event_ref).or_default().push(revision);
        }
        Ok(Self {
            customers: customers.into_iter().map(|customer| (customer.id, customer)).collect(),
            usage_products: usage_products.into_iter().map(|product| (product.usage_product_ref.clone(), product)).collect(),
            earlier: by_event,
            documents,
        })
    }

    fn document(&self, document_ref: DocumentRef) -> UseCaseResult<&Document> {
        self.documents.get(&document_ref).ok_or_else(|| not_there(document_ref))
    }

    fn view(&self, event: UsageEvent) -> UseCaseResult<EventView> {
        let customer = self.customers.get(&event.customer_id);
        let customer = customer.ok_or_else(|| corrupt("an event", &event.event_ref, "has no customer"))?;
        let product = self.usage_products.get(&event.usage_product_ref);
        let product = product.ok_or_else(|| corrupt("an event", &event.event_ref, "has no usage product"))?;
        let latest = self.document(event.placement.document_ref)?;
        let mut carriers = Vec::new();
        for earlier in self.earlier.get(&event.event_ref).into_iter().flatten() {
            let same_period = earlier.placement.service_period.start() == event.placement.service_period.start()
                && earlier.placement.contract_ref == event.placement.contract_ref
                && earlier.placement.product_no == event.placement.product_no;
            let carrier = self.document(earlier.placement.document_ref)?;
            // What stood on a void document another one has taken over.
            if same_period && !carrier.lifecycle.is_void() {
                carriers.push(carrier.head.number.clone());
            }
        }
        carriers.push(latest.head.number.clone());
        let document_numbers = DocumentNumbers::in_order_of_change(carriers);
        Ok(EventView {
            customer_ref: customer.customer_ref.clone(),
            customer_name: customer.profile.name.clone(),
            usage_product_name: product.profile.name.clone(),
            document_state: latest.state()?,
            document_numbers: document_numbers.ok_or_else(|| corrupt("an event", &event.event_ref, "has no document"))?,
            parent: invoice_above(&self.documents, latest)?,
            event,
        })
    }
}

/// The period's invoice above a document of an event due upon usage.
fn invoice_above(
    documents: &HashMap<DocumentRef, Document>,
    of: &Document,
) -> UseCaseResult<Option<(DocumentRef, DocumentNumber)>> {
    let mut above = None;
    while let Some(parent) = parent_to_show(above.unwrap_or(of)) {
        above = Some(documents.get(&parent).ok_or_else(|| not_there(parent))?);
    }
    Ok(above.map(|above| (above.head.document_ref, above.head.number.clone())))
}

/// The document above one that isn't the period's own, where events have documents of their own (billing rules 3).
fn parent_to_show(document: &Document) -> Option<DocumentRef> {
    let is_shown = document.head.net_terms == NetTerms::DueUponUsage && !matches!(document.head.purpose, Purpose::Regular(_));
    document.head.parent.filter(|_| is_shown)
}

/// Documents and those to be shown above them, level by level: an adjustment, the child it corrects, the invoice.
fn documents_and_above(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    mut wanted: BTreeSet<DocumentRef>,
) -> UseCaseResult<HashMap<DocumentRef, Document>> {
    let mut documents: HashMap<DocumentRef, Document> = HashMap::new();
    while !wanted.is_empty() {
        let found = tx.documents_by_refs(organization, &Vec::from_iter(wanted))?;
        let above = found.iter().filter_map(parent_to_show).collect::<BTreeSet<_>>();
        documents.extend(found.into_iter().map(|document| (document.head.document_ref, document)));
        wanted = above.into_iter().filter(|parent| !documents.contains_key(parent)).collect();
    }
    Ok(documents)
}

pub(super) fn document(tx: &mut dyn Tx, organization: OrganizationId, document_ref: DocumentRef) -> UseCaseResult<Document> {
    tx.document(organization, document_ref)?.ok_or_else(|| not_there(document_ref))
}

fn not_there(document_ref: DocumentRef) -> UseCaseError {
    corrupt("an event", &document_ref, "names a document that is not there")
}
