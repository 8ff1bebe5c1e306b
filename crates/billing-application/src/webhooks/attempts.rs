//! Claims due deliveries, and records what became of them. Both are short transactions; requests are sent between them.

use std::collections::BTreeMap;

use billing_domain::audit::AuditAction;
use billing_domain::calendar::Timestamp;
use billing_domain::notification::NotificationType;
use billing_domain::ports::{Access, DeliveryLease, Tx, WebhookResponse, transact};
use billing_domain::refs::{CustomerId, EndpointRef, NotificationRef, OrganizationId, ServerRef};
use billing_domain::webhook::{
    Delivery, DeliveryState, SealedWebhookSecret, WebhookEndpoint, WebhookSecret, WebhookUrl, live_secrets,
};

use super::facts::{attempt_of, endpoint_fact};
use super::lane_shares::LaneShares;
use super::secrets::{PURPOSE, unseal};
use crate::Services;
use crate::audit::{AuditChange, AuditSubject};
use crate::carry_out::Cx;
use crate::error::{UseCaseError, UseCaseResult};
use crate::notifications;

/// The maximum number of deliveries in a claim, which is one transaction.
const CLAIMED_AT_ONCE: usize = 100;
/// The number of requests that are sent to an endpoint at the same time.
const LANES_OF_ENDPOINT: usize = 4;
/// The number of deliveries that a lane sends after each other. Those that cannot begin soon are given back.
const DELIVERIES_OF_LANE: usize = 5;
/// The maximum number of endpoints that a claim considers. An organization has at most 16.
const ENDPOINTS_CONSIDERED: u32 = 2000;
/// The time for which claimed deliveries belong to a server, in seconds. It exceeds the time after which a server begins no
/// further request, and the time that a request can take.
const LEASE_SECONDS: i64 = 40;

/// A delivery to send.
#[derive(Clone, Debug)]
pub struct ClaimedDelivery {
    /// The delivery.
    pub delivery: Delivery,
    /// The body of the notification.
    pub body: String,
}

/// The claimed deliveries of an endpoint.
#[derive(Clone, Debug)]
pub struct ClaimedEndpoint {
    /// The organization.
    pub organization: OrganizationId,
    /// The number of requests that are sent at the same time.
    pub lanes: usize,
    /// The URL.
    pub url: WebhookUrl,
    /// The secrets that sign, the newest first.
    pub secrets: Vec<WebhookSecret>,
    /// The deliveries.
    pub deliveries: Vec<ClaimedDelivery>,
}

/// A claimed delivery after it was sent or given back.
#[derive(Clone, Debug)]
pub struct SentDelivery {
    /// The delivery as it was claimed.
    pub delivery: Delivery,
    /// The time of the request and its result. `None` if no request was sent.
    pub response: Option<(Timestamp, WebhookResponse)>,
}

/// Claims due deliveries for a server, by organizations in turn, and never more than free lanes can send now. The claimed
/// endpoints take these lanes. Endpoints with deliveries that another claim sends are left out, so at most one server sends to an
/// endpoint at a time. An endpoint that did not accept the last attempt gets one delivery.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if a transaction fails. No lane is taken then.
pub fn claim_deliveries(services: &Services, server: ServerRef, lanes: &mut LaneShares) -> UseCaseResult<Vec<ClaimedEndpoint>> {
    if lanes.is_exhausted() {
        return Ok(Vec::new());
    }
    let now = services.machine_now();
    // Mostly nothing is due. Then no transaction waits for the database's writer.
    let due: Vec<(OrganizationId, EndpointRef)> = transact(&*services.store, Access::Glance, |tx| {
        Ok::<_, UseCaseError>(tx.due_webhook_endpoints(now, ENDPOINTS_CONSIDERED)?)
    })?;
    let due = lanes.in_turn(due);
    if !due.iter().any(|(organization, _)| lanes.available_to(*organization) > 0) {
        return Ok(Vec::new());
    }
    let claimed = transact(&*services.store, Access::Write, |tx| {
        let now = services.machine_now();
        let lease = DeliveryLease { by: server, until: now.plus_seconds(LEASE_SECONDS) };
        // The transaction may run again.
        let (mut claimed, mut left, mut lanes) = (Vec::new(), CLAIMED_AT_ONCE, lanes.clone());
        for (organization, endpoint_ref) in &due {
            let available = lanes.available_to(*organization).min(LANES_OF_ENDPOINT);
            let limit = (available * DELIVERIES_OF_LANE).min(left);
            if limit == 0 {
                continue;
            }
            if let Some(rows) = claim_endpoint(tx, (*organization, *endpoint_ref), lease, now, limit)? {
                left -= rows.deliveries.len();
                let taken = available.min(rows.deliveries.len());
                lanes.take(*organization, taken);
                claimed.push((*organization, taken, rows));
            }
        }
        let refs: Vec<EndpointRef> = claimed.iter().map(|(_, _, rows)| rows.endpoint_ref).collect();
        let secrets = if refs.is_empty() { Vec::new() } else { tx.webhook_secrets(&refs)? };
        let keys = tx.signing_secrets(PURPOSE)?;
        Ok::<_, UseCaseError>((claimed, secrets, keys, now, lanes))
    })?;
    let (claimed, secrets, keys, now, taken_lanes) = claimed;
    *lanes = taken_lanes;
    let ready = |(organization, lanes, rows): (OrganizationId, usize, ClaimedRows)| {
        let ClaimedRows { endpoint_ref, url, deliveries } = rows;
        let of_endpoint = secrets.iter().filter(|(owner, _)| *owner == endpoint_ref).map(|(_, secret)| secret.clone());
        let sealed: Vec<SealedWebhookSecret> = live_secrets(of_endpoint.collect(), now);
        ClaimedEndpoint { organization, lanes, url, secrets: unseal(services, &keys, endpoint_ref, &sealed), deliveries }
    };
    Ok(claimed.into_iter().map(ready).collect())
}

/// The rows of a claimed endpoint.
struct ClaimedRows {
    endpoint_ref: EndpointRef,
    url: WebhookUrl,
    deliveries: Vec<ClaimedDelivery>,
}

fn claim_endpoint(
    tx: &mut dyn Tx,
    (organization, endpoint_ref): (OrganizationId, EndpointRef),
    lease: DeliveryLease,
    now: Timestamp,
    limit: usize,
) -> UseCaseResult<Option<ClaimedRows>> {
    // Another server may have locked, claimed or changed the endpoint meanwhile.
    let Some(endpoint) = tx.try_lock_webhook_endpoint(organization, endpoint_ref)? else { return Ok(None) };
    let is_paused = endpoint.paused_until.is_some_and(|until| until > now);
    if !endpoint.profile.enabled || is_paused || tx.has_leased_deliveries(endpoint_ref, now)? {
        return Ok(None);
    }
    let limit = if endpoint.has_accepted_last() { u32::try_from(limit).unwrap_or(u32::MAX) } else { 1 };
    let deliveries = tx.claim_webhook_deliveries(endpoint_ref, lease, now, limit)?;
    let keys: Vec<(CustomerId, NotificationRef)> =
        deliveries.iter().map(|delivery| (delivery.customer, delivery.notification_ref)).collect();
    let mut bodies: BTreeMap<NotificationRef, String> = tx.notification_bodies(&keys)?.into_iter().collect();
    let mut claimed = Vec::new();
    for delivery in deliveries {
        match bodies.remove(&delivery.notification_ref) {
            Some(body) => claimed.push(ClaimedDelivery { delivery, body }),
            // The notification is no longer retained.
            None => {
                let over = Delivery { state: DeliveryState::Cancelled, due_at: None, updated_at: now, ..delivery.clone() };
                tx.record_webhook_delivery(&over, lease.by, delivery.attempt)?;
            }
        }
    }
    Ok((!claimed.is_empty()).then_some(ClaimedRows { endpoint_ref, url: endpoint.profile.url, deliveries: claimed }))
}

/// Records attempts, and ends the leases of deliveries that were not sent. Attempts are ignored whose delivery the server no
/// longer has. Returns those that have to be recorded later, because another transaction has locked their endpoints: a long
/// replay of one organization must not delay the deliveries of others.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the transaction fails. Nothing is recorded then.
pub fn record_deliveries(services: &Services, server: ServerRef, sent: &[SentDelivery]) -> UseCaseResult<Vec<SentDelivery>> {
    let mut of_endpoints: BTreeMap<(OrganizationId, EndpointRef), Vec<&SentDelivery>> = BTreeMap::new();
    for one in sent {
        of_endpoints.entry((one.delivery.organization, one.delivery.endpoint_ref)).or_default().push(one);
    }
    transact(&*services.store, Access::Write, |tx| {
        let mut later = Vec::new();
        for ((organization, endpoint_ref), sent) in &of_endpoints {
            match tx.try_lock_webhook_endpoint(*organization, *endpoint_ref)? {
                Some(endpoint) => record_of_endpoint(tx, services, server, endpoint, sent)?,
                None if tx.webhook_endpoint(*organization, *endpoint_ref, None)?.is_some() => {
                    later.extend(sent.iter().copied().cloned());
                }
                // The deliveries of a deleted endpoint are deleted, too.
                None => {}
            }
        }
        Ok::<_, UseCaseError>(later)
    })
}

fn record_of_endpoint(
    tx: &mut dyn Tx,
    services: &Services,
    server: ServerRef,
    before: WebhookEndpoint,
    sent: &[&SentDelivery],
) -> UseCaseResult<()> {
    let now = services.machine_now();
    let (mut endpoint, mut disabled) = (before.clone(), None);
    for SentDelivery { delivery, response } in sent {
        let Some((at, response)) = response else {
            tx.record_webhook_delivery(delivery, server, delivery.attempt)?;
            continue;
        };
        let (mut after, retry_after) = (delivery.clone(), response.retry_after_seconds);
        after.record(attempt_of(*at, response), now, jitter(services), retry_after);
        if tx.record_webhook_delivery(&after, server, delivery.attempt)? {
            disabled = disabled.or(endpoint.record(response.outcome, retry_after, now));
        }
    }
    if disabled.is_some() {
        tx.cancel_webhook_deliveries(endpoint.endpoint_ref, now)?;
        endpoint.notification_count = endpoint.notification_count.saturating_add(1);
        endpoint.updated_at = services.now();
    }
    if endpoint != before {
        tx.update_webhook_endpoint(&endpoint)?;
    }
    if let Some(reason) = disabled {
        tracing::warn!(endpoint_ref = %endpoint.endpoint_ref, reason = reason.as_str(), "disabled a webhook endpoint");
        let mut cx = Cx::of_scheduler(tx, services, endpoint.organization, services.now());
        let fact = endpoint_fact(NotificationType::EndpointDisabled, &endpoint);
        notifications::record(&mut cx, &[fact], &[])?;
        let change = AuditChange::From(AuditSubject::Endpoint(&before), AuditSubject::Endpoint(&endpoint));
        cx.audit(AuditAction::Disable, change)?;
    }
    Ok(())
}

/// Returns a random number. The last bits of an identifier are random.
fn jitter(services: &Services) -> u16 {
    u16::try_from(services.ids.new_id().as_u128() & u128::from(u16::MAX)).unwrap_or_default()
}
