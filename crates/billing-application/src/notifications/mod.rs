//! Notifications: stored in the transaction of the change, numbered by one server at a time, and read as a feed.
//!
//! [`notify`](billing_domain::notification::notify) decides which changes cause notifications.

mod epoch;
mod feed;
mod numbering;

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use billing_domain::notification::{Fact, Notice, Notification};
use billing_domain::refs::NotificationRef;

pub(crate) use epoch::require_position;
pub use epoch::start_epoch;
pub use feed::{NotificationQuery, forget_old_notifications, get_notification, list_notifications};
pub use numbering::number_notifications;

use crate::carry_out::Cx;
use crate::error::UseCaseResult;

/// Stores notifications of facts, and notices, in the transaction of the change. A dry run stores none.
pub(crate) fn record(cx: &mut Cx<'_>, facts: &[Fact], notices: &[Notice]) -> UseCaseResult<()> {
    if cx.is_dry_run() {
        return Ok(());
    }
    if !facts.is_empty() {
        let epoch = cx.tx.epoch()?;
        let notification = |fact: &Fact| Notification {
            notification_ref: NotificationRef::from_uuid(cx.services.ids.new_id()),
            customer_id: fact.customer_id(),
            subject: fact.subject(),
            sequence: fact.sequence,
            kind: fact.kind,
            body: cx.services.teller.render_notification(fact, epoch, cx.now),
            created_at: cx.now,
            position: None,
        };
        let notifications: Vec<Notification> = facts.iter().map(notification).collect();
        cx.tx.insert_notifications(cx.organization, &notifications)?;
        wake_numbering();
    }
    // A statement can write each row once only.
    let latest = notices.iter().map(|notice| ((notice.customer_id, notice.subject, notice.kind), *notice));
    let latest: Vec<Notice> = latest.collect::<BTreeMap<_, _>>().into_values().collect();
    if !latest.is_empty() {
        cx.tx.put_notices(cx.organization, &latest)?;
    }
    Ok(())
}

/// Whether this process stored notifications since the last call of [`wait_for_notifications`]. This is only a hint: the
/// transaction may not be committed yet, may be rolled back, and other servers also store notifications.
static STORED: Mutex<bool> = Mutex::new(false);
static WAKE: Condvar = Condvar::new();

fn stored() -> MutexGuard<'static, bool> {
    STORED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a call of [`wait_for_notifications`].
pub fn wake_numbering() {
    *stored() = true;
    WAKE.notify_all();
}

/// Waits until this process stores notifications, or for a time. Returns whether notifications were stored.
pub fn wait_for_notifications(timeout: Duration) -> bool {
    let waited = WAKE.wait_timeout_while(stored(), timeout, |stored| !*stored);
    let (mut stored, _) = waited.unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut *stored)
}
