//! Reads events with their documents and history.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use billing_domain::access::Actor;
use billing_domain::audit::AuditActor;
use billing_domain::calendar::Timestamp;
use billing_domain::catalog::UsageProduct;
use billing_domain::contract::Contract;
use billing_domain::document::numbering::{DocumentNumber, DocumentNumbers};
use billing_domain::document::{BookDocument, DocumentState, Purpose};
use billing_domain::ledger::ContractBook;
use billing_domain::limit::LimitValue;
use billing_domain::money::Currency;
use billing_domain::party::{Customer, NetTerms};
use billing_domain::ports::Tx;
use billing_domain::refs::{
    ContractKey, ContractRef, CustomerId, CustomerRef, DocumentRef, EventRef, LineItemId, OrganizationId, UsageProductRef,
};
use billing_domain::text::OneLine;
use billing_domain::usage::{EventAction, UsageEvent};

use crate::book_repository::{corrupt, distinct};
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};
use crate::names::{Named, name_all};

/// An event with display names and its documents.
#[derive(Clone, Debug)]
pub struct EventView {
    /// The event.
    pub event: UsageEvent,
    /// The numbers of the customer's limits after the event was recorded; empty for an event that is only read.
    pub limits: Arc<[LimitValue]>,
    /// The customer's reference.
    pub customer_ref: CustomerRef,
    /// The customer's name.
    pub customer_name: OneLine,
    /// The usage product's name.
    pub usage_product_name: OneLine,
    /// The numbers of all documents that carry the event in its current service period, in order. The last document carries
    /// the latest change.
    pub document_numbers: DocumentNumbers,
    /// The state of the last of these documents.
    pub document_state: DocumentState,
    /// The currency of the last of these documents.
    pub currency: Currency,
    /// The period's invoice, if the event has a child document (billing rules 3).
    pub parent: Option<(DocumentRef, DocumentNumber)>,
    /// The line items that count the event now.
    pub line_items: Vec<LineItemId>,
}

/// One revision of an event.
#[derive(Clone, Debug)]
pub struct EventRevision {
    /// The event as of this revision.
    pub event: UsageEvent,
    /// When the revision was made.
    pub changed_at: Timestamp,
    /// Who made the revision.
    pub changed_by: Actor,
    /// The action that made the revision.
    pub action: EventAction,
    /// The customer's reference.
    pub customer_ref: CustomerRef,
    /// The number of the document that carries this change.
    pub document_number: DocumentNumber,
}

/// Returns an event.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the event does not exist or is deleted.
pub fn get_event(cx: &mut Cx<'_>, event_ref: EventRef) -> UseCaseResult<EventView> {
    let found = cx.tx.event(cx.organization, event_ref)?.filter(|event| !event.deleted);
    only(view_events(cx.tx, cx.organization, &[], vec![found.ok_or(UseCaseError::Unknown(ResourceKind::Event))?])?)
}

/// Returns every revision of an event, oldest first. Deleted events have a history too.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the event does not exist.
pub fn event_history(cx: &mut Cx<'_>, event_ref: EventRef) -> UseCaseResult<Vec<Named<EventRevision>>> {
    let latest = cx.tx.event(cx.organization, event_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::Event))?;
    let customer = cx.tx.customers_by_ids(cx.organization, &[latest.customer_id])?.into_iter().next();
    let customer = customer.ok_or_else(|| corrupt("an event", &event_ref, "has no customer"))?;
    let mut revisions = cx.tx.superseded_revisions(cx.organization, &[latest.customer_id], &[event_ref])?;
    revisions.push(latest);
    let mut around = EventReferences::of_books([]);
    around.read(cx.tx, cx.organization, &revisions)?;
    let mut history = Vec::with_capacity(revisions.len());
    for event in revisions {
        history.push(EventRevision {
            changed_at: event.revised_at,
            changed_by: event.revised_by,
            action: event.action(),
            customer_ref: customer.customer_ref.clone(),
            document_number: around.document(event.placement.document_ref)?.head.number.clone(),
            event,
        });
    }
    name_all(cx, history, |revision, request| request.add_actor(AuditActor::of(revision.changed_by)))
}

/// Returns the views of events, in the same order. Takes related rows from the books where possible, and reads the others
/// once for all events.
pub(super) fn view_events(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    books: &[&ContractBook],
    events: Vec<UsageEvent>,
) -> UseCaseResult<Vec<EventView>> {
    let mut around = EventReferences::of_books(books.iter().copied());
    around.read(tx, organization, &events)?;
    events.into_iter().map(|event| around.view(event)).collect()
}

/// Returns the only view of a list.
pub(super) fn only(views: Vec<EventView>) -> UseCaseResult<EventView> {
    views.into_iter().next().ok_or(UseCaseError::InvariantViolation("an event without a view"))
}

/// The rows that events refer to.
pub(super) struct EventReferences {
    customers: HashMap<CustomerId, Arc<Customer>>,
    usage_products: HashMap<UsageProductRef, Arc<UsageProduct>>,
    contracts: HashMap<ContractRef, Arc<Contract>>,
    /// The superseded revisions of the events.
    earlier: HashMap<EventRef, Vec<UsageEvent>>,
    /// The documents that carry events and revisions, and their ancestors.
    documents: HashMap<DocumentRef, BookDocument>,
}

impl EventReferences {
    /// Returns the references that books already contain.
    pub(super) fn of_books<'b>(books: impl IntoIterator<Item = &'b ContractBook>) -> Self {
        let mut around = Self {
            customers: HashMap::new(),
            usage_products: HashMap::new(),
            contracts: HashMap::new(),
            earlier: HashMap::new(),
            documents: HashMap::new(),
        };
        for book in books {
            around.customers.entry(book.customer.id).or_insert_with(|| Arc::clone(&book.customer));
            around.contracts.insert(book.contract.contract_ref, Arc::clone(&book.contract));
            around.documents.extend(book.documents().map(|document| (document.head.document_ref, document.clone())));
        }
        around
    }

    /// Adds usage products.
    pub(super) fn with_products<'p>(mut self, products: impl IntoIterator<Item = &'p Arc<UsageProduct>>) -> Self {
        let products = products.into_iter().map(|product| (product.usage_product_ref.clone(), Arc::clone(product)));
        self.usage_products.extend(products);
        self
    }

    /// Loads the rows that the events need and that are missing.
    fn read(&mut self, tx: &mut dyn Tx, organization: OrganizationId, events: &[UsageEvent]) -> UseCaseResult<()> {
        let named = distinct(events.iter().map(|event| event.customer_id));
        let unknown: Vec<CustomerId> = named.iter().filter(|customer| !self.customers.contains_key(customer)).copied().collect();
        if !unknown.is_empty() {
            let customers = tx.customers_by_ids(organization, &unknown)?;
            self.customers.extend(customers.into_iter().map(|customer| (customer.id, Arc::new(customer))));
        }
        let products: BTreeSet<UsageProductRef> = events.iter().map(|event| event.usage_product_ref.clone()).collect();
        let products = tx.usage_products_by_refs(organization, &Vec::from_iter(products))?;
        self.usage_products.extend(products.into_iter().map(|product| (product.usage_product_ref.clone(), Arc::new(product))));
        let unknown = events.iter().filter(|event| !self.contracts.contains_key(&event.placement.contract_ref));
        let key = |event: &UsageEvent| ContractKey {
            organization,
            customer: event.customer_id,
            contract: event.placement.contract_ref,
        };
        let unknown: BTreeSet<ContractKey> = unknown.map(key).collect();
        if !unknown.is_empty() {
            let agreements = tx.agreements(&Vec::from_iter(unknown))?.into_iter();
            let contracts = agreements.map(|agreement| (agreement.contract.contract_ref, Arc::new(agreement.contract)));
            self.contracts.extend(contracts);
        }
        let edited: Vec<EventRef> = events.iter().filter(|event| event.revision > 1).map(|event| event.event_ref).collect();
        let earlier = if edited.is_empty() { Vec::new() } else { tx.superseded_revisions(organization, &named, &edited)? };
        // Level by level: an adjustment, the child it corrects, the invoice.
        let mut wanted: BTreeSet<DocumentRef> = events.iter().chain(&earlier).map(|event| event.placement.document_ref).collect();
        while !wanted.is_empty() {
            let unknown: Vec<DocumentRef> =
                wanted.iter().filter(|document| !self.documents.contains_key(document)).copied().collect();
            if !unknown.is_empty() {
                let found = tx.book_documents_by_refs(organization, &named, &unknown)?;
                self.documents.extend(found.into_iter().map(|document| (document.head.document_ref, document)));
            }
            wanted = wanted.iter().filter_map(|document| parent_to_show(self.documents.get(document)?)).collect();
        }
        for revision in earlier {
            self.earlier.entry(revision.event_ref).or_default().push(revision);
        }
        Ok(())
    }

    /// Returns a document that carries events.
    pub(super) fn document(&self, document_ref: DocumentRef) -> UseCaseResult<&BookDocument> {
        self.documents.get(&document_ref).ok_or_else(|| not_there(document_ref))
    }

    /// Returns the view of an event.
    pub(super) fn view(&self, event: UsageEvent) -> UseCaseResult<EventView> {
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
            // Another document has taken over the events of a void one.
            if same_period && !carrier.status.is_void() {
                carriers.push(carrier.head.number.clone());
            }
        }
        carriers.push(latest.head.number.clone());
        let document_numbers = DocumentNumbers::in_order_of_change(carriers);
        Ok(EventView {
            limits: Arc::default(),
            customer_ref: customer.customer_ref.clone(),
            customer_name: customer.profile.name.clone(),
            usage_product_name: product.profile.name.clone(),
            document_state: latest.state()?,
            currency: latest.head.currency,
            document_numbers: document_numbers.ok_or_else(|| corrupt("an event", &event.event_ref, "has no document"))?,
            parent: invoice_above(&self.documents, latest)?,
            line_items: self.contracts.get(&event.placement.contract_ref).map_or_else(Vec::new, |it| it.line_items_of(&event)),
            event,
        })
    }
}

/// Returns the period's invoice above the child document of an event due upon usage.
fn invoice_above(
    documents: &HashMap<DocumentRef, BookDocument>,
    of: &BookDocument,
) -> UseCaseResult<Option<(DocumentRef, DocumentNumber)>> {
    let mut above = None;
    while let Some(parent) = parent_to_show(above.unwrap_or(of)) {
        above = Some(documents.get(&parent).ok_or_else(|| not_there(parent))?);
    }
    Ok(above.map(|above| (above.head.document_ref, above.head.number.clone())))
}

/// Returns the parent of a document that is not the period's own, where events have child documents (billing rules 3).
fn parent_to_show(document: &BookDocument) -> Option<DocumentRef> {
    let is_shown = document.head.net_terms == NetTerms::DueUponUsage && !matches!(document.head.purpose, Purpose::Regular(_));
    document.head.parent.filter(|_| is_shown)
}

fn not_there(document_ref: DocumentRef) -> UseCaseError {
    corrupt("the document", &document_ref, "of an event was not found")
}
