//! Usage events, their changes and their idempotency keys.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use super::StoreResult;
use crate::catalog::UsageProduct;
use crate::idempotency::IdempotencyKey;
use crate::party::Customer;
use crate::refs::{CustomerId, CustomerRef, DocumentKey, DocumentRef, EventRef, OrganizationId, ProductNo, UsageProductRef};
use crate::usage::{EventKeyRecord, FactsDigest, NewEventKeyRecord, UsageEvent};

/// Storage of usage events.
pub trait UsageEvents {
    /// Returns the existing customers and usage products among these references.
    fn named_by_events(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerRef],
        usage_products: &[UsageProductRef],
    ) -> StoreResult<(Vec<Customer>, Vec<UsageProduct>)>;
    /// Stores new events, all or none.
    fn insert_events(&mut self, organization: OrganizationId, events: &[UsageEvent]) -> StoreResult<()>;
    /// Stores new events like [`insert_events`](Self::insert_events), if each of their documents is a draft when the call
    /// begins. Returns `false` otherwise. The caller must then roll the transaction back.
    fn insert_events_on_drafts(&mut self, organization: OrganizationId, events: &[UsageEvent]) -> StoreResult<bool>;
    /// Returns an event by reference alone, also when it is deleted.
    fn event(&mut self, organization: OrganizationId, event_ref: EventRef) -> StoreResult<Option<UsageEvent>>;
    /// Returns the existing events among these references, by reference alone, in the order of their references. Includes
    /// deleted events.
    fn events_by_refs(&mut self, organization: OrganizationId, events: &[EventRef]) -> StoreResult<Vec<UsageEvent>>;
    /// Returns the existing events of these customers among these references, in the order of their references. Includes
    /// deleted events.
    fn events_of_customers(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        events: &[EventRef],
    ) -> StoreResult<Vec<UsageEvent>>;
    /// Returns the existing references among these, by reference alone. Includes deleted events.
    fn known_events(&mut self, organization: OrganizationId, events: &[EventRef]) -> StoreResult<BTreeSet<EventRef>>;
}

/// Changes of usage events: new revisions, and moves between documents.
pub trait EventChanges {
    /// Replaces events with their next revisions. Each pair has the superseded revision first; each event occurs once.
    ///
    /// The superseded revisions are kept, with a flag whether the document of the event was already issued.
    ///
    /// # Errors
    /// Returns [`StoreError::Contended`](super::StoreError::Contended) when a stored revision is not the superseded one.
    fn revise_events(&mut self, organization: OrganizationId, revisions: &[(UsageEvent, UsageEvent)]) -> StoreResult<()>;
    /// Returns the superseded revisions of customers' events, grouped by event, oldest first.
    fn superseded_revisions(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        events: &[EventRef],
    ) -> StoreResult<Vec<UsageEvent>>;
    /// Moves all events of a document to another document. Their revisions stay unchanged.
    fn move_events(&mut self, from: DocumentKey, to: DocumentRef) -> StoreResult<()>;
    /// Moves the events of a document that count in one service period of a product to another document.
    fn move_events_of_period(
        &mut self,
        from: DocumentKey,
        to: DocumentRef,
        product_no: ProductNo,
        period_start: NaiveDate,
    ) -> StoreResult<()>;
}

/// Storage of the idempotency keys of events. Keys never expire, even when their events no longer count.
///
/// The only exception is [undoing the import](super::UsageImports::forget_imported_events) that created the events.
pub trait EventKeys {
    /// Returns the events recorded under any of these keys of customers, ordered by customer and key. Includes deleted
    /// events.
    fn event_key_records(
        &mut self,
        organization: OrganizationId,
        keys: &[(CustomerId, IdempotencyKey)],
    ) -> StoreResult<Vec<(CustomerId, EventKeyRecord)>>;
    /// Returns the facts last delivered under each of these keys of customers under which an event is recorded.
    /// Cheaper than [`event_key_records`](Self::event_key_records), because no response is built.
    fn delivered_facts(
        &mut self,
        organization: OrganizationId,
        keys: &[(CustomerId, IdempotencyKey)],
    ) -> StoreResult<BTreeMap<(CustomerId, IdempotencyKey), FactsDigest>>;
    /// Stores the keys of customers' stored events, all or none.
    ///
    /// # Errors
    /// Returns [`StoreError::Contended`](super::StoreError::Contended) when a key already exists. A concurrent duplicate
    /// was faster, and the next attempt sees it.
    fn save_event_keys(&mut self, organization: OrganizationId, taken: &[(CustomerId, NewEventKeyRecord)]) -> StoreResult<()>;
    /// Replaces facts and responses of customers' keys after deliveries of other facts. Each key has the facts before.
    ///
    /// # Errors
    /// Returns [`StoreError::Contended`](super::StoreError::Contended) when a key has other facts than those before. A concurrent
    /// delivery was faster, and the next attempt sees it.
    fn update_event_keys(
        &mut self,
        organization: OrganizationId,
        delivered: &[(CustomerId, FactsDigest, EventKeyRecord)],
    ) -> StoreResult<()>;
}
