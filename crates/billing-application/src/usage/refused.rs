//! Usage that was refused: counted in memory, off the way of the usage that is taken, and written once in a while.
//!
//! What isn't written when the process dies is lost: it changed nothing, and whoever sent it was told.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use billing_domain::access::{Principal, RequestId};
use billing_domain::calendar::TimeZone;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{Access, RefusedFilter, transact};
use billing_domain::refs::OrganizationId;
use billing_domain::refused::{REFUSED_KEPT_DAYS, RefusedCount, RefusedExample, RefusedKey};

use crate::basics::DAY_SECONDS;
use crate::error::{UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// As many different things are told apart between two writes; the rest are counted together for each organization and day.
const MAX_KEYS: usize = 10_000;
/// Counts written in one transaction: the writer of usage doesn't wait long.
const COUNTS_PER_TRANSACTION: usize = 200;

/// An event that was refused, as it was sent and answered.
#[derive(Clone, Debug)]
pub struct RefusedEvent<'a> {
    /// Whose API it was sent to.
    pub organization: OrganizationId,
    /// Why.
    pub code: &'a str,
    /// The customer, as it was told.
    pub customer_ref: &'a str,
    /// The usage product, as it was told.
    pub usage_product_ref: &'a str,
    /// The event.
    pub event: &'a str,
    /// Which field was wrong first.
    pub pointer: Option<&'a str>,
    /// What was wrong.
    pub detail: &'a str,
    /// Which request brought it.
    pub request_id: Option<RequestId>,
}

/// What a server has counted and not written yet.
#[derive(Debug, Default)]
pub struct RefusedUsageCounts(Mutex<BTreeMap<RefusedKey, RefusedCount>>);

impl RefusedUsageCounts {
    /// Counts an event that was refused just now.
    pub fn count(&self, services: &Services<'_>, refused: RefusedEvent<'_>) {
        let RefusedEvent { organization, code, customer_ref, usage_product_ref, event, pointer, detail, request_id } = refused;
        let now = services.now();
        let key = RefusedKey::of(organization, now, code, customer_ref, usage_product_ref);
        let count = RefusedCount::once(now, RefusedExample::of(event, pointer, detail, request_id));
        add(&mut self.kept(), key, count);
    }

    /// Writes what was counted; what can't be written now is kept for the next time.
    ///
    /// # Errors
    /// [`UseCaseError::Store`].
    pub fn write(&self, services: &Services<'_>) -> UseCaseResult<()> {
        // In one order, so that servers that write the same rows don't wait for each other.
        let mut counts: Vec<(RefusedKey, RefusedCount)> = std::mem::take(&mut *self.kept()).into_iter().collect();
        while !counts.is_empty() {
            let rest = counts.split_off(counts.len().min(COUNTS_PER_TRANSACTION));
            let written = transact(&*services.store, Access::Write, |tx| Ok::<_, UseCaseError>(tx.add_refused_usage(&counts)?));
            if let Err(error) = written {
                let mut kept = self.kept();
                counts.into_iter().chain(rest).for_each(|(key, count)| add(&mut kept, key, count));
                return Err(error);
            }
            counts = rest;
        }
        Ok(())
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<RefusedKey, RefusedCount>> {
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

/// Forgets what was counted more than 90 days ago, in every organization; answers how many counts there were.
///
/// # Errors
/// [`UseCaseError::Store`].
pub fn forget_old_refused_usage(services: &Services<'_>) -> UseCaseResult<u64> {
    let oldest = TimeZone::UTC.service_date(services.now().plus_seconds(-REFUSED_KEPT_DAYS * DAY_SECONDS));
    transact(&*services.store, Access::Write, |tx| Ok(tx.purge_refused_usage(oldest)?))
}

/// A page of the organization's counts, the newest day first, then by code, customer and usage product.
///
/// # Errors
/// [`UseCaseError::Store`].
pub fn list_refused_usage(
    services: &Services,
    principal: &Principal,
    filter: &RefusedFilter,
    page: PageRequest,
) -> UseCaseResult<Page<(RefusedKey, RefusedCount)>> {
    let organization = allow(principal, UseCase::ListRefusedUsage)?;
    transact(&*services.store, Access::Read, |tx| Ok(tx.refused_usage(organization, filter, page)?))
}
