//! Lists deliveries, and schedules them again.

use std::collections::BTreeSet;

use billing_domain::audit::AuditAction;
use billing_domain::notification::NotificationType;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{Access, DeliveryBacklog, DeliveryFilter, ListedDelivery, ReplayCandidate, ReplayRange, transact};
use billing_domain::refs::{CustomerId, EndpointRef};
use billing_domain::webhook::{Delivery, DeliveryState, EventType, MAX_REPLAYED, ReplayScope, WebhookEndpoint};

use super::endpoints::locked;
use crate::Services;
use crate::audit::{AuditChange, AuditSubject};
use crate::carry_out::Cx;
use crate::error::{UseCaseError, UseCaseResult};
use crate::notifications::require_position;

/// The number of notifications that are considered at a time.
const CONSIDERED_AT_ONCE: u32 = 1000;

/// A request to send notifications again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayRequest {
    /// The notifications to consider.
    pub range: ReplayRange,
    /// The types of notifications to send again. Empty: all that the endpoint receives.
    pub types: Vec<EventType>,
    /// Which of them are sent again.
    pub only: ReplayScope,
}

/// The result of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayOutcome {
    /// The number of scheduled deliveries.
    pub scheduled: u64,
    /// The position after which another replay continues. `None` if all notifications of the range were considered.
    pub next: Option<u64>,
}

/// Schedules notifications that an endpoint selects, as if they were new. Pending deliveries stay as they are, unless the request
/// names their notifications and selects all of them.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the endpoint does not exist.
/// - [`UseCaseError::Conflict`] if the endpoint is disabled.
/// - [`UseCaseError::FeedRestarted`] if the range begins at a position of another epoch.
pub fn replay_deliveries(cx: &mut Cx<'_>, endpoint_ref: EndpointRef, request: &ReplayRequest) -> UseCaseResult<ReplayOutcome> {
    let endpoint = locked(cx, endpoint_ref)?;
    if !endpoint.profile.enabled {
        let detail = "the endpoint is disabled: enable it, then request the replay again".to_owned();
        return Err(UseCaseError::Conflict { code: "endpoint_disabled", detail });
    }
    if let ReplayRange::Positions(after, _) = request.range {
        require_position(cx, after)?;
    }
    let customers = customers_of(cx, &endpoint)?;
    let is_wanted = |candidate: &ReplayCandidate| {
        candidate.kind != NotificationType::WebhookTest
            && (request.only.includes(candidate.state) || is_pending_and_named(request, candidate))
            && (request.types.is_empty() || request.types.iter().any(|wanted| wanted.matches(candidate.kind)))
            && endpoint.profile.event_types.iter().any(|wanted| wanted.matches(candidate.kind))
            && customers.as_ref().is_none_or(|customers| customers.contains(&candidate.customer))
    };
    let (mut range, mut scheduled, mut next) = (request.range.clone(), 0, None);
    loop {
        let candidates = cx.tx.replay_candidates(cx.organization, endpoint_ref, &range, CONSIDERED_AT_ONCE)?;
        let again: Vec<Delivery> = candidates
            .iter()
            .filter(|candidate| is_wanted(candidate))
            .map(|found| {
                let notification = (found.customer, found.notification_ref);
                Delivery::new(endpoint_ref, cx.organization, notification, found.position, cx.services.machine_now())
            })
            .collect();
        cx.tx.schedule_webhook_deliveries(&again)?;
        scheduled += again.len() as u64;
        let is_last = candidates.len() < usize::try_from(CONSIDERED_AT_ONCE).unwrap_or(usize::MAX);
        let last = candidates.last().map(|candidate| candidate.position);
        match (&mut range, last) {
            (ReplayRange::Positions(after, _), Some(last)) if !is_last => {
                *after = last;
                if scheduled + u64::from(CONSIDERED_AT_ONCE) > MAX_REPLAYED {
                    next = Some(last);
                    break;
                }
            }
            _ => break,
        }
    }
    cx.audit(AuditAction::Replay, AuditChange::Unshown(AuditSubject::Endpoint(&endpoint)))?;
    Ok(ReplayOutcome { scheduled, next })
}

/// Returns whether a delivery waits for its next attempt, which may be hours away, and is requested by name.
fn is_pending_and_named(request: &ReplayRequest, candidate: &ReplayCandidate) -> bool {
    let is_named = matches!(request.range, ReplayRange::Notifications(_)) && request.only == ReplayScope::All;
    is_named && candidate.state == Some(DeliveryState::Pending)
}

/// Returns the customers whose notifications an endpoint receives, or `None` for all.
fn customers_of(cx: &mut Cx<'_>, endpoint: &WebhookEndpoint) -> UseCaseResult<Option<BTreeSet<CustomerId>>> {
    let Some(refs) = &endpoint.profile.customer_refs else { return Ok(None) };
    if refs.is_empty() {
        return Ok(Some(BTreeSet::new()));
    }
    let customers = cx.tx.customers_by_refs(cx.organization, refs)?;
    Ok(Some(customers.into_iter().map(|customer| customer.id).collect()))
}

/// Returns a page of deliveries with their attempts, the newest notification first.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the deliveries cannot be read.
pub fn list_deliveries(cx: &mut Cx<'_>, filter: &DeliveryFilter, page: PageRequest) -> UseCaseResult<Page<ListedDelivery>> {
    Ok(cx.tx.webhook_deliveries(cx.organization, filter, page)?)
}

/// Returns the pending deliveries of all organizations, for the metrics.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the deliveries cannot be counted.
pub fn webhook_backlog(services: &Services) -> UseCaseResult<DeliveryBacklog> {
    transact(&*services.store, Access::Glance, |tx| Ok(tx.webhook_backlog()?))
}
