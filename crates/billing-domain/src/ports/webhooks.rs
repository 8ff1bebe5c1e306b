//! Webhook endpoints, their secrets, and deliveries of notifications.

use super::{Lock, StoreResult};
use crate::calendar::Timestamp;
use crate::notification::{NotificationType, Subject};
use crate::page::{Page, PageRequest};
use crate::refs::{CustomerId, EndpointRef, NotificationRef, OrganizationId, ServerRef};
use crate::webhook::{Delivery, DeliveryState, SealedWebhookSecret, WebhookEndpoint};

/// Storage of webhook endpoints and their secrets.
pub trait WebhookEndpoints {
    /// Stores a new endpoint.
    fn insert_webhook_endpoint(&mut self, endpoint: &WebhookEndpoint) -> StoreResult<()>;
    /// Saves an endpoint.
    fn update_webhook_endpoint(&mut self, endpoint: &WebhookEndpoint) -> StoreResult<()>;
    /// Deletes an endpoint with its secrets and deliveries.
    fn delete_webhook_endpoint(&mut self, organization: OrganizationId, endpoint_ref: EndpointRef) -> StoreResult<()>;
    /// Returns an endpoint. With a lock, it is locked until the transaction ends.
    fn webhook_endpoint(
        &mut self,
        organization: OrganizationId,
        endpoint_ref: EndpointRef,
        lock: Option<Lock>,
    ) -> StoreResult<Option<WebhookEndpoint>>;
    /// Locks an endpoint exclusively and returns it, or returns `None` at once if another transaction has locked it.
    fn try_lock_webhook_endpoint(
        &mut self,
        organization: OrganizationId,
        endpoint_ref: EndpointRef,
    ) -> StoreResult<Option<WebhookEndpoint>>;
    /// Returns all endpoints of an organization, ordered by creation.
    fn webhook_endpoints(&mut self, organization: OrganizationId) -> StoreResult<Vec<WebhookEndpoint>>;
    /// Stores a secret, or replaces the endpoint's secret with the same identifier.
    fn put_webhook_secret(&mut self, endpoint_ref: EndpointRef, secret: &SealedWebhookSecret) -> StoreResult<()>;
    /// Deletes a secret.
    fn delete_webhook_secret(&mut self, endpoint_ref: EndpointRef, kid: u32) -> StoreResult<()>;
    /// Returns the secrets of endpoints, also expired ones, ordered by endpoint and identifier.
    fn webhook_secrets(&mut self, endpoints: &[EndpointRef]) -> StoreResult<Vec<(EndpointRef, SealedWebhookSecret)>>;
}

/// The time for which a server may send deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryLease {
    /// The server.
    pub by: ServerRef,
    /// When the lease ends. The deliveries are due again then.
    pub until: Timestamp,
}

/// The number of deliveries of an endpoint by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryCounts {
    /// Deliveries whose next attempt is due at some time.
    pub pending: u64,
    /// Deliveries whose attempts all failed.
    pub failed: u64,
}

/// The pending deliveries of all organizations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryBacklog {
    /// The number of pending deliveries.
    pub pending: u64,
    /// When the oldest of them was created.
    pub oldest: Option<Timestamp>,
}

/// A filter for deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// Matches deliveries to this endpoint.
    pub endpoint_ref: Option<EndpointRef>,
    /// Matches deliveries in this state.
    pub state: Option<DeliveryState>,
    /// Matches deliveries of notifications of this type.
    pub kind: Option<NotificationType>,
    /// Matches deliveries of notifications about this subject.
    pub subject: Option<Subject>,
    /// Matches deliveries that were created at this instant or later.
    pub from: Option<Timestamp>,
    /// Matches deliveries that were created before this instant.
    pub to: Option<Timestamp>,
}

/// A delivery with facts about its notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedDelivery {
    /// The delivery.
    pub delivery: Delivery,
    /// The type of the notification.
    pub kind: NotificationType,
    /// The subject of the notification.
    pub subject: Subject,
    /// The number of the notification among those of the subject.
    pub sequence: u64,
}

/// The notifications that a replay considers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayRange {
    /// Those with a position after the first and up to the second number.
    Positions(u64, u64),
    /// Those with these references.
    Notifications(Vec<NotificationRef>),
}

/// A notification that a replay considers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayCandidate {
    /// The notification.
    pub notification_ref: NotificationRef,
    /// The customer as stored: the organization's identifier if the notification has no customer.
    pub customer: CustomerId,
    /// The type.
    pub kind: NotificationType,
    /// The position.
    pub position: u64,
    /// The state of the delivery to the endpoint, if one exists.
    pub state: Option<DeliveryState>,
}

/// Storage of deliveries.
pub trait WebhookDeliveries {
    /// Returns the endpoints of all organizations with a due delivery, at most `limit`. Endpoints are left out that are disabled
    /// or paused, or have a delivery with a lease that has not ended. The endpoint whose delivery has been due for the longest
    /// time comes first.
    fn due_webhook_endpoints(&mut self, now: Timestamp, limit: u32) -> StoreResult<Vec<(OrganizationId, EndpointRef)>>;
    /// Returns whether an endpoint has a delivery with a lease that has not ended.
    fn has_leased_deliveries(&mut self, endpoint_ref: EndpointRef, now: Timestamp) -> StoreResult<bool>;
    /// Gives a server the lease of the deliveries of an endpoint that have been due for the longest time, at most `limit`, and
    /// returns them.
    fn claim_webhook_deliveries(
        &mut self,
        endpoint_ref: EndpointRef,
        lease: DeliveryLease,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<Delivery>>;
    /// Returns the bodies of notifications. Bodies whose notifications were deleted are left out.
    fn notification_bodies(&mut self, wanted: &[(CustomerId, NotificationRef)]) -> StoreResult<Vec<(NotificationRef, String)>>;
    /// Saves a claimed delivery and ends its lease. Returns `false` and changes nothing if the server does not have the lease, or
    /// if the stored number of attempts is not `attempt`.
    fn record_webhook_delivery(&mut self, delivery: &Delivery, by: ServerRef, attempt: u32) -> StoreResult<bool>;
    /// Cancels the pending deliveries of an endpoint and ends their leases. Returns their number.
    fn cancel_webhook_deliveries(&mut self, endpoint_ref: EndpointRef, now: Timestamp) -> StoreResult<u64>;
    /// Returns the notifications of a range that have a position, ordered by position, at most `limit`, with the state of their
    /// delivery to an endpoint.
    fn replay_candidates(
        &mut self,
        organization: OrganizationId,
        endpoint_ref: EndpointRef,
        range: &ReplayRange,
        limit: u32,
    ) -> StoreResult<Vec<ReplayCandidate>>;
    /// Stores deliveries. A delivery that exists becomes pending with the time and the number of attempts of the new one.
    fn schedule_webhook_deliveries(&mut self, deliveries: &[Delivery]) -> StoreResult<()>;
    /// Returns a page of the deliveries of an organization that match a filter, ordered by position, then by endpoint, newest
    /// first.
    fn webhook_deliveries(
        &mut self,
        organization: OrganizationId,
        filter: &DeliveryFilter,
        page: PageRequest,
    ) -> StoreResult<Page<ListedDelivery>>;
    /// Returns the numbers of deliveries of endpoints. Endpoints without pending and failed deliveries are left out.
    fn webhook_delivery_counts(&mut self, endpoints: &[EndpointRef]) -> StoreResult<Vec<(EndpointRef, DeliveryCounts)>>;
    /// Returns the pending deliveries of all organizations.
    fn webhook_backlog(&mut self) -> StoreResult<DeliveryBacklog>;
}
