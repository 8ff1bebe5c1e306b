//! Counts rejected usage events. The counts are held in memory, apart from the write path of accepted events, and are saved
//! periodically.
//!
//! Counts that are not saved when the process ends are lost. This is acceptable because rejected events change nothing, and
//! their senders received an error.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use billing_domain::access::RequestId;
use billing_domain::calendar::TimeZone;
use billing_domain::decimal::Decimal;
use billing_domain::limit::LimitReached;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{Access, RefusedFilter, transact};
use billing_domain::refs::{LimitRef, OrganizationId};
use billing_domain::refused::{REFUSED_KEPT_DAYS, RefusedCount, RefusedExample, RefusedKey};

use crate::Services;
use crate::basics::DAY_SECONDS;
use crate::carry_out::Cx;
use crate::error::{UseCaseError, UseCaseResult};
use crate::limits::tell_rejection;

/// The maximum number of distinct counts between two saves. Beyond it, counts are combined by organization and day.
const MAX_KEYS: usize = 10_000;
/// The number of counts saved in one transaction. The limit keeps the usage writer from waiting long.
const COUNTS_PER_TRANSACTION: usize = 200;

/// A rejected event with the error returned for it.
#[derive(Clone, Debug)]
pub struct RefusedEvent<'a> {
    /// The organization that received the event.
    pub organization: OrganizationId,
    /// The error code.
    pub code: &'a str,
    /// The customer reference as sent.
    pub customer_ref: &'a str,
    /// The usage product reference as sent.
    pub usage_product_ref: &'a str,
    /// The event as sent.
    pub event: &'a str,
    /// A pointer to the first invalid field.
    pub pointer: Option<&'a str>,
    /// The error message.
    pub detail: &'a str,
    /// The request that contained the event.
    pub request_id: Option<RequestId>,
    /// The limit that rejected the event.
    pub limit: Option<&'a LimitReached>,
}

/// The counts of a server that are not saved yet, and the limits that rejected usage since.
#[derive(Debug, Default)]
pub struct RefusedUsageCounts(Mutex<Unsaved>);

#[derive(Debug, Default)]
struct Unsaved {
    counts: BTreeMap<RefusedKey, RefusedCount>,
    /// What the rejected usage needed, at most.
    rejections: BTreeMap<(OrganizationId, LimitRef), Decimal>,
}

impl RefusedUsageCounts {
    /// Counts an event that was just rejected.
    pub fn count(&self, services: &Services, refused: RefusedEvent<'_>) {
        let RefusedEvent { organization, code, customer_ref, usage_product_ref, event, pointer, detail, request_id, limit } =
            refused;
        let now = services.now();
        let key = RefusedKey::of(organization, now, code, customer_ref, usage_product_ref);
        let count = RefusedCount::once(now, RefusedExample::of(event, pointer, detail, request_id));
        let mut kept = self.kept();
        add(&mut kept.counts, key, count);
        if let Some(LimitReached { limit_ref, needed, .. }) = limit {
            let most = kept.rejections.entry((organization, *limit_ref)).or_insert(*needed);
            *most = (*most).max(*needed);
        }
    }

    /// Saves the counts, and notifies the limits that rejected usage. What cannot be saved remains for the next call.
    ///
    /// # Errors
    /// Returns [`UseCaseError::Store`] if a transaction fails.
    pub fn write(&self, services: &Services) -> UseCaseResult<()> {
        // All servers save in the same order, so that saves of the same rows do not deadlock.
        let Unsaved { counts, mut rejections } = std::mem::take(&mut *self.kept());
        let mut counts: Vec<(RefusedKey, RefusedCount)> = counts.into_iter().collect();
        while !counts.is_empty() {
            let rest = counts.split_off(counts.len().min(COUNTS_PER_TRANSACTION));
            let written = transact(&*services.store, Access::Write, |tx| Ok::<_, UseCaseError>(tx.add_refused_usage(&counts)?));
            if let Err(error) = written {
                let mut kept = self.kept();
                counts.into_iter().chain(rest).for_each(|(key, count)| add(&mut kept.counts, key, count));
                kept.rejections.extend(rejections);
                return Err(error);
            }
            counts = rest;
        }
        while let Some(((organization, limit_ref), needed)) = rejections.pop_first() {
            let notified = transact(&*services.store, Access::Write, |tx| {
                tell_rejection(&mut Cx::of_scheduler(tx, services, organization, services.now()), limit_ref, needed)
            });
            if let Err(error) = notified {
                rejections.insert((organization, limit_ref), needed);
                self.kept().rejections.extend(rejections);
                return Err(error);
            }
        }
        Ok(())
    }

    fn kept(&self) -> MutexGuard<'_, Unsaved> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn add(kept: &mut BTreeMap<RefusedKey, RefusedCount>, key: RefusedKey, count: RefusedCount) {
    let key = if kept.len() < MAX_KEYS || kept.contains_key(&key) { key } else { key.other() };
    match kept.get_mut(&key) {
        Some(present) => present.add(count),
        None => drop(kept.insert(key, count)),
    }
}

/// Deletes the counts of more than 90 days ago, in every organization. Returns the number of deleted counts.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the counts cannot be deleted.
pub fn forget_old_refused_usage(services: &Services) -> UseCaseResult<u64> {
    let oldest = TimeZone::UTC.service_date(services.now().plus_seconds(-REFUSED_KEPT_DAYS * DAY_SECONDS));
    transact(&*services.store, Access::Write, |tx| Ok(tx.purge_refused_usage(oldest)?))
}

/// Returns a page of the organization's counts, newest day first, then by code, customer and usage product.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the counts cannot be read.
pub fn list_refused_usage(
    cx: &mut Cx<'_>,
    filter: &RefusedFilter,
    page: PageRequest,
) -> UseCaseResult<Page<(RefusedKey, RefusedCount)>> {
    Ok(cx.tx.refused_usage(cx.organization, filter, page)?)
}
