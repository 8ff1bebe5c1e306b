//! Gives positions to notifications, and creates a delivery for each webhook endpoint that wants one.
//!
//! Transactions that store notifications do not number them: they would wait for each other. One server at a time numbers the
//! committed notifications of an organization. So a client that has seen a position has seen all positions before it.

use std::collections::BTreeMap;

use billing_domain::notification::epoch;
use billing_domain::notification::numbering::{Subscription, Unnumbered, order};
use billing_domain::ports::{Access, NewDelivery, NumberedNotification, Tx, transact};
use billing_domain::refs::{CustomerId, CustomerRef, OrganizationId, ServerRef};

use crate::Services;
use crate::basics::distinct;
use crate::error::{UseCaseError, UseCaseResult};

/// The maximum number of notifications numbered in one transaction.
const NUMBERED_PER_TRANSACTION: u32 = 500;
/// The time for which a server alone numbers the notifications of an organization, in seconds.
const LEASE_SECONDS: i64 = 10;

/// Numbers all committed notifications without positions, except those of organizations for which another server does that.
/// Organizations take turns, also those whose first notification is committed meanwhile. `server` identifies this process.
/// `is_stopped` is asked before each transaction, so that a server with many of them ends soon. Returns the number of numbered
/// notifications.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if a transaction fails.
pub fn number_notifications(services: &Services, server: ServerRef, is_stopped: &dyn Fn() -> bool) -> UseCaseResult<u64> {
    let mut numbered = 0;
    // The organizations whose last batch was full, with the size of the next one.
    let mut limits: BTreeMap<OrganizationId, u32> = BTreeMap::new();
    loop {
        let organizations: Vec<OrganizationId> =
            transact(&*services.store, Access::Glance, |tx| Ok::<_, UseCaseError>(tx.organizations_to_number()?))?;
        let full_before = std::mem::take(&mut limits);
        for organization in organizations {
            if is_stopped() {
                return Ok(numbered);
            }
            let limit = full_before.get(&organization).copied().unwrap_or(NUMBERED_PER_TRANSACTION);
            let batch =
                transact(&*services.store, Access::Write, |tx| number_batch(tx, services, (organization, server), limit))?;
            let Some(Batch { found, numbered: many }) = batch else { continue };
            numbered += many as u64;
            if found as u64 >= u64::from(limit) {
                // If the first notifications wait for later ones, a larger batch contains these.
                limits.insert(organization, if many == 0 { limit.saturating_mul(2) } else { NUMBERED_PER_TRANSACTION });
            }
        }
        if limits.is_empty() {
            return Ok(numbered);
        }
    }
}

/// The results of one transaction.
struct Batch {
    found: usize,
    numbered: usize,
}

/// Numbers notifications of an organization. Returns `None` if another server has the lease.
fn number_batch(
    tx: &mut dyn Tx,
    services: &Services,
    (organization, server): (OrganizationId, ServerRef),
    limit: u32,
) -> UseCaseResult<Option<Batch>> {
    let now = services.machine_now();
    let until = now.plus_seconds(LEASE_SECONDS);
    let Some(last) = tx.lease_positions(organization, server, now, until)? else { return Ok(None) };
    let last = last.max(epoch::current(&tx.restores()?).start());
    let unnumbered = tx.unnumbered_notifications(organization, limit)?;
    let found = unnumbered.len();
    let ordered = order(unnumbered);
    if ordered.is_empty() {
        return Ok(Some(Batch { found, numbered: 0 }));
    }
    let number = |(one, position): (&Unnumbered, u64)| NumberedNotification {
        notification_ref: one.notification_ref,
        customer_id: one.customer_id,
        position,
    };
    let numbered: Vec<NumberedNotification> = ordered.iter().zip(last + 1..).map(number).collect();
    tx.number_notifications(organization, &numbered)?;
    let subscriptions = tx.webhook_subscriptions(organization)?;
    let customers = customers_of(tx, organization, &subscriptions)?;
    let mut deliveries = Vec::new();
    for subscription in &subscriptions {
        let wanted = subscription.customer_refs.as_ref().map(|refs| {
            let ids = refs.iter().filter_map(|customer_ref| customers.get(customer_ref).copied());
            ids.collect::<Vec<CustomerId>>()
        });
        for (one, notification) in ordered.iter().zip(&numbered) {
            let is_of_customer =
                wanted.as_ref().is_none_or(|wanted| one.customer_id.is_some_and(|customer_id| wanted.contains(&customer_id)));
            if is_of_customer && subscription.wants(one.kind) {
                deliveries.push(NewDelivery { endpoint_ref: subscription.endpoint_ref, notification: *notification });
            }
        }
    }
    tx.insert_deliveries(organization, &deliveries, now)?;
    Ok(Some(Batch { found, numbered: numbered.len() }))
}

/// Returns the existing customers that subscriptions name.
fn customers_of(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    subscriptions: &[Subscription],
) -> UseCaseResult<BTreeMap<CustomerRef, CustomerId>> {
    let refs = distinct(subscriptions.iter().filter_map(|subscription| subscription.customer_refs.clone()).flatten());
    if refs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let customers = tx.customers_by_refs(organization, &refs)?;
    Ok(customers.into_iter().map(|customer| (customer.customer_ref, customer.id)).collect())
}
