//! Usage events, their changes and the keys they were sent with.

use std::collections::BTreeSet;

use chrono::NaiveDate;

use super::StoreResult;
use crate::catalog::UsageProduct;
use crate::idempotency::IdempotencyKey;
use crate::party::Customer;
use crate::refs::{CustomerId, CustomerRef, DocumentKey, DocumentRef, EventRef, OrganizationId, ProductNo, UsageProductRef};
use crate::usage::{EventKeyRecord, NewEventKeyRecord, UsageEvent};

/// Usage events.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait UsageEvents {
    /// Those of some customers and usage products that are there.
    fn named_by_events(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerRef],
        usage_products: &[UsageProductRef],
    ) -> StoreResult<(Vec<Customer>, Vec<UsageProduct>)>;
    /// Stores new events, all or none.
    fn insert_events(&mut self, organization: OrganizationId, events: &[UsageEvent]) -> StoreResult<()>;
    /// By reference alone, deleted ones too.
    fn event(&mut self, organization: OrganizationId, event_ref: EventRef) -> StoreResult<Option<UsageEvent>>;
    /// Those of some events that are there, by their references alone, in their order, deleted ones too.
    fn events_by_refs(&mut self, organization: OrganizationId, events: &[EventRef]) -> StoreResult<Vec<UsageEvent>>;
    /// The same of these customers alone.
    fn events_of_customers(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        events: &[EventRef],
    ) -> StoreResult<Vec<UsageEvent>>;
    /// Which of some events there are, by their references alone, deleted ones too.
    fn known_events(&mut self, organization: OrganizationId, events: &[EventRef]) -> StoreResult<BTreeSet<EventRef>>;
}

/// Changes of usage events: their next revisions, and the documents they stand on.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait EventChanges {
    /// Replaces events, each once, by their next revisions and keeps the superseded ones, which come first, and whether the document
    /// that each stood on was issued already.
    ///
    /// # Errors
    /// [`StoreError::Contended`](super::StoreError::Contended) when a stored revision isn't the superseded one.
    fn revise_events(&mut self, organization: OrganizationId, revisions: &[(UsageEvent, UsageEvent)]) -> StoreResult<()>;
    /// The superseded revisions of customers' events, by event, oldest first.
    fn superseded_revisions(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        events: &[EventRef],
    ) -> StoreResult<Vec<UsageEvent>>;
    /// Puts all events of a document on another; their revisions stay as they are.
    fn move_events(&mut self, from: DocumentKey, to: DocumentRef) -> StoreResult<()>;
    /// Puts those events of a document on another that count in one service period of a product.
    fn move_events_of_period(
        &mut self,
        from: DocumentKey,
        to: DocumentRef,
        product_no: ProductNo,
        period_start: NaiveDate,
    ) -> StoreResult<()>;
}

/// The keys that events were sent with, kept for ever, longer than the events count, unless the
/// [import](super::UsageImports::forget_made_events) that brought them is undone.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait EventKeys {
    /// The events that were taken under any of customers' keys, deleted ones too, by customer and key.
    fn event_key_records(
        &mut self,
        organization: OrganizationId,
        keys: &[(CustomerId, IdempotencyKey)],
    ) -> StoreResult<Vec<(CustomerId, EventKeyRecord)>>;
    /// Keeps the keys of customers' events that are stored, all or none.
    ///
    /// # Errors
    /// [`StoreError::Contended`](super::StoreError::Contended) when one of the keys is there already: a twin was faster, and
    /// the next attempt sees it.
    fn save_event_keys(&mut self, organization: OrganizationId, taken: &[(CustomerId, NewEventKeyRecord)]) -> StoreResult<()>;
}
