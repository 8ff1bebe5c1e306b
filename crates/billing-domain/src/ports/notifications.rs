//! Notifications, their numbering, and the deliveries that it creates.

use super::StoreResult;
use crate::calendar::Timestamp;
use crate::ledger::BillingFailure;
use crate::notification::epoch::{Epoch, Restore};
use crate::notification::numbering::{Subscription, Unnumbered};
use crate::notification::{Notice, Notification, NotificationType, Subject};
use crate::refs::{ContractKey, CustomerId, DocumentKey, DocumentRef, EndpointRef, NotificationRef, OrganizationId, ServerRef};

/// A filter for notifications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotificationFilter {
    /// Matches notifications of this type.
    pub kind: Option<NotificationType>,
    /// Matches notifications about this subject.
    pub subject: Option<Subject>,
    /// Matches notifications about subjects of this customer.
    pub customer_id: Option<CustomerId>,
}

/// A notification with its new position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedNotification {
    /// The notification.
    pub notification_ref: NotificationRef,
    /// The customer whom the subject belongs to; `None` for an endpoint.
    pub customer_id: Option<CustomerId>,
    /// The position.
    pub position: u64,
}

/// A notification for an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    /// The endpoint.
    pub endpoint_ref: EndpointRef,
    /// The notification.
    pub notification: NumberedNotification,
}

/// Storage of notifications. Nothing but the position of a notification ever changes.
#[allow(clippy::needless_lifetimes, reason = "what makes the mock asks for their names")]
pub trait Notifications {
    /// Stores notifications without positions.
    ///
    /// # Errors
    /// Returns [`StoreError::Corrupt`](super::StoreError::Corrupt) when the subject of a notification already has a
    /// notification with its sequence.
    fn insert_notifications(&mut self, organization: OrganizationId, notifications: &[Notification]) -> StoreResult<()>;
    /// Returns at most `limit` numbered notifications that match a filter, with positions above `after`, by position.
    fn notifications(
        &mut self,
        organization: OrganizationId,
        filter: &NotificationFilter,
        after: u64,
        limit: u32,
    ) -> StoreResult<Vec<Notification>>;
    /// Returns a notification, numbered or not.
    fn notification(
        &mut self,
        organization: OrganizationId,
        notification_ref: NotificationRef,
    ) -> StoreResult<Option<Notification>>;

    /// Returns the organizations with notifications that have no position.
    fn organizations_to_number(&mut self) -> StoreResult<Vec<OrganizationId>>;
    /// Takes or extends the lease on the positions of an organization, if no other server has it at `now`. Returns the last
    /// position, or `None` if another server has the lease. The last position cannot change until the transaction ends.
    fn lease_positions(
        &mut self,
        organization: OrganizationId,
        server: ServerRef,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Option<u64>>;
    /// Returns at most `limit` notifications without a position, in the order of their references.
    fn unnumbered_notifications(&mut self, organization: OrganizationId, limit: u32) -> StoreResult<Vec<Unnumbered>>;
    /// Stores the positions of notifications, and the last of them as the last position of the organization. The lease must
    /// be taken in the same transaction.
    fn number_notifications(&mut self, organization: OrganizationId, numbered: &[NumberedNotification]) -> StoreResult<()>;
    /// Returns the subscriptions of the enabled webhook endpoints. Locks the endpoints shared until the transaction ends.
    fn webhook_subscriptions(&mut self, organization: OrganizationId) -> StoreResult<Vec<Subscription>>;
    /// Stores deliveries that are due at an instant. Skips existing ones.
    fn insert_deliveries(&mut self, organization: OrganizationId, deliveries: &[NewDelivery], at: Timestamp) -> StoreResult<()>;

    /// Returns the highest position that notifications of an organization had so far, or 0.
    fn last_position(&mut self, organization: OrganizationId) -> StoreResult<u64>;
    /// Returns the current epoch, possibly as this process has read it before. No epoch starts while a server runs.
    fn epoch(&mut self) -> StoreResult<Epoch>;
    /// Returns all restores of the database, by epoch.
    fn restores(&mut self) -> StoreResult<Vec<Restore>>;
    /// Returns the highest position that notifications of any organization had so far, or 0.
    fn highest_position(&mut self) -> StoreResult<u64>;
    /// Stores a restore with an epoch that is later than all others.
    fn insert_restore(&mut self, restore: &Restore) -> StoreResult<()>;

    /// Stores notices. A notice replaces the notice of the same subject and type.
    fn put_notices(&mut self, organization: OrganizationId, notices: &[Notice]) -> StoreResult<()>;
    /// Deletes a notice. Returns `false` when there is no such notice for the same instant.
    fn take_notice(&mut self, organization: OrganizationId, notice: &Notice) -> StoreResult<bool>;
    /// Returns at most `limit` notices of one organization or of all whose instants have come, earliest first.
    fn due_notices(
        &mut self,
        organization: Option<OrganizationId>,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<(OrganizationId, Notice)>>;
    /// Adds one to the number of notifications about a document. Its account must be locked.
    fn count_document_notification(&mut self, key: DocumentKey) -> StoreResult<()>;
    /// Adds one to the number of notifications about a contract. The contract must be locked
    /// [`Lock::Exclusive`](super::Lock::Exclusive).
    fn count_contract_notification(&mut self, key: ContractKey) -> StoreResult<()>;
    /// Stores or clears the failure to bill a contract. The contract must be locked [`Lock::Exclusive`](super::Lock::Exclusive).
    fn put_billing_failure<'a>(&mut self, key: ContractKey, failure: Option<&'a BillingFailure>) -> StoreResult<()>;

    /// Deletes at most `limit` of an organization's numbered notifications with the lowest positions that were created before
    /// an instant, and their deliveries. Stops at the first later one. Returns the number of deleted notifications.
    fn purge_notifications(&mut self, organization: OrganizationId, before: Timestamp, limit: u32) -> StoreResult<u64>;
    /// Returns the creation time of an organization's numbered notification with the lowest position.
    fn oldest_notification(&mut self, organization: OrganizationId) -> StoreResult<Option<Timestamp>>;
    /// Returns an organization's documents that were issued from one instant to another, exclusive, and have no notification
    /// `document.issued`, by reference.
    fn issued_without_notification(
        &mut self,
        organization: OrganizationId,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreResult<Vec<DocumentRef>>;
}
