//! The feed of an organization's notifications, and its retention.

use billing_domain::notification::{Notification, NotificationType, Subject};
use billing_domain::ports::{Access, NotificationFilter, transact};
use billing_domain::refs::{CustomerRef, NotificationRef, OrganizationId};

use crate::Services;
use crate::basics::{DAY_SECONDS, purge_in_parts};
use crate::carry_out::Cx;
use crate::catalog::narrow_to_customer;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};
use crate::notifications::require_position;

/// The maximum number of notifications deleted in one transaction.
const PURGED_PER_TRANSACTION: u32 = 1_000;

/// A part of the feed.
#[derive(Clone, Debug, Default)]
pub struct NotificationQuery {
    /// Only notifications of this type.
    pub kind: Option<NotificationType>,
    /// Only notifications about this subject.
    pub subject: Option<Subject>,
    /// Only notifications about subjects of this customer.
    pub customer_ref: Option<CustomerRef>,
    /// Only notifications with positions above this one.
    pub after: u64,
    /// The maximum number of notifications.
    pub limit: u32,
}

/// Returns a part of the feed, by position. It is complete up to the position of its last notification: notifications that are
/// stored later get later positions. The result is empty if the customer or the subject does not exist.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::FeedRestarted`] if the position is of another epoch, or above the last one
/// - [`UseCaseError::Store`] if the notifications cannot be read
pub fn list_notifications(cx: &mut Cx<'_>, query: &NotificationQuery) -> UseCaseResult<Vec<Notification>> {
    let found = find_notifications(cx, query)?;
    // A position with later ones in the same epoch is right.
    if found.is_empty() || query.after < cx.tx.epoch()?.start() {
        require_position(cx, query.after)?;
    }
    Ok(found)
}

fn find_notifications(cx: &mut Cx<'_>, query: &NotificationQuery) -> UseCaseResult<Vec<Notification>> {
    let mut filter = NotificationFilter { kind: query.kind, subject: query.subject, customer_id: None };
    if !narrow_to_customer(cx.tx, cx.organization, query.customer_ref.as_ref(), &mut filter.customer_id)? {
        return Ok(Vec::new());
    }
    // An index finds the notifications of a customer's subject.
    if filter.customer_id.is_none() {
        filter.customer_id = match query.subject {
            Some(Subject::Document(document_ref)) => match cx.tx.document_key(cx.organization, document_ref)? {
                Some(key) => Some(key.customer),
                None => return Ok(Vec::new()),
            },
            Some(Subject::Contract(contract_ref)) => match cx.tx.contract_key(cx.organization, contract_ref)? {
                Some(key) => Some(key.customer),
                None => return Ok(Vec::new()),
            },
            Some(Subject::Grant(grant_ref)) => cx.tx.grant(cx.organization, grant_ref)?.map(|grant| grant.account.customer_id),
            Some(Subject::Limit(limit_ref)) => cx.tx.limit(cx.organization, limit_ref)?.map(|limit| limit.customer_id),
            Some(Subject::Endpoint(_)) | None => None,
        };
    }
    Ok(cx.tx.notifications(cx.organization, &filter, query.after, query.limit)?)
}

/// Returns a notification.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the notification does not exist or is no longer retained.
pub fn get_notification(cx: &mut Cx<'_>, notification_ref: NotificationRef) -> UseCaseResult<Notification> {
    let found = cx.tx.notification(cx.organization, notification_ref)?;
    found.ok_or(UseCaseError::Unknown(ResourceKind::Notification))
}

/// Deletes notifications of more than `days` days ago, in every organization, with their deliveries. Returns the number of
/// deleted notifications.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the notifications cannot be deleted.
pub fn forget_old_notifications(services: &Services, days: u16) -> UseCaseResult<u64> {
    let before = services.now().plus_seconds(-i64::from(days) * DAY_SECONDS);
    let organizations: Vec<OrganizationId> =
        transact(&*services.store, Access::Glance, |tx| Ok::<_, UseCaseError>(tx.all_organizations()?))?;
    let mut forgotten = 0;
    for organization in organizations {
        // Most calls delete nothing, so they need no write transaction.
        let oldest =
            transact(&*services.store, Access::Glance, |tx| Ok::<_, UseCaseError>(tx.oldest_notification(organization)?))?;
        if oldest.is_none_or(|oldest| oldest >= before) {
            continue;
        }
        forgotten +=
            purge_in_parts(services, PURGED_PER_TRANSACTION, |tx, limit| tx.purge_notifications(organization, before, limit))?;
    }
    Ok(forgotten)
}
