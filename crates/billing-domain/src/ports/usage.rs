//! Usage events, their running totals and the keys they were sent with.

use chrono::NaiveDate;

use super::StoreResult;
use crate::idempotency::IdempotencyKey;
use crate::refs::{ContractRef, CustomerId, DocumentRef, EventRef, OrganizationId, ProductNo};
use crate::usage::{KeptEvent, UsageEvent, UsageKey, UsageTotal};

/// Usage events and their running totals.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait UsageEvents {
    /// Stores new events, all or none.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn insert_events(&mut self, organization: OrganizationId, events: &[UsageEvent]) -> StoreResult<()>;
    /// By reference, deleted ones too.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn event(&mut self, organization: OrganizationId, event_ref: EventRef) -> StoreResult<Option<UsageEvent>>;
    /// Replaces an event by its next revision and keeps the superseded one, and whether the document that one stood on
    /// was issued already.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError); [`StoreError::Contended`](super::StoreError::Contended) when the stored revision isn't the superseded one.
    fn revise_event(&mut self, organization: OrganizationId, superseded: &UsageEvent, revised: &UsageEvent) -> StoreResult<()>;
    /// The superseded revisions of events, by event, oldest first.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn superseded_revisions(&mut self, organization: OrganizationId, events: &[EventRef]) -> StoreResult<Vec<UsageEvent>>;
    /// Puts all events of a document on another; their revisions stay as they are.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn move_events(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        from: DocumentRef,
        to: DocumentRef,
    ) -> StoreResult<()>;
    /// Puts those events of a document on another that count in one service period of a product.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    #[allow(clippy::too_many_arguments, reason = "the parts of one key")]
    fn move_events_of_period(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        from: DocumentRef,
        to: DocumentRef,
        product_no: ProductNo,
        period_start: NaiveDate,
    ) -> StoreResult<()>;
    /// A total counted again from the events that aren't deleted, one left out where asked, whatever their number,
    /// in bounded memory.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn recount_usage(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        key: &UsageKey,
        except: Option<EventRef>,
    ) -> StoreResult<UsageTotal>;
    /// A product's running totals with at least one event, of service periods that start on a day or later, by
    /// their keys.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn usage_since(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        product_no: ProductNo,
        from: NaiveDate,
    ) -> StoreResult<Vec<(UsageKey, UsageTotal)>>;
    /// Holds running totals until the transaction ends, in the order of their keys, and answers them in that
    /// order; a total that isn't there is made, as zero.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn lock_usage(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        keys: &[UsageKey],
    ) -> StoreResult<Vec<(UsageKey, UsageTotal)>>;
    /// Replaces running totals held by [`lock_usage`](Self::lock_usage).
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn put_usage(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        totals: &[(UsageKey, UsageTotal)],
    ) -> StoreResult<()>;
    /// Reads running totals; those that aren't there are left out.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn usage(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        keys: &[UsageKey],
    ) -> StoreResult<Vec<(UsageKey, UsageTotal)>>;
}

/// The keys that events were sent with, kept for ever: longer than the events count.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait EventKeys {
    /// The events that were taken under any of a customer's keys, deleted ones too, by their keys.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError).
    fn kept_events(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        keys: &[IdempotencyKey],
    ) -> StoreResult<Vec<KeptEvent>>;
    /// Keeps the keys of events of a customer that are stored, all or none.
    ///
    /// # Errors
    /// Any [`StoreError`](super::StoreError); [`StoreError::Contended`](super::StoreError::Contended) when one of the keys is there already: a twin was faster, and
    /// the next attempt sees it.
    fn keep_events(&mut self, organization: OrganizationId, customer_id: CustomerId, kept: &[KeptEvent]) -> StoreResult<()>;
}
