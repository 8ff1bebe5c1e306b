//! Creates, changes and lists endpoints, and rotates their secrets.

use std::collections::BTreeMap;

use billing_domain::audit::AuditAction;
use billing_domain::calendar::Timestamp;
use billing_domain::page::{ListRequest, ListSortKey, Page};
use billing_domain::patch::Changes;
use billing_domain::ports::{DeliveryCounts, Lock, WebhookUrlRefusal};
use billing_domain::refs::{CustomerRef, EndpointRef};
use billing_domain::violation::Violations;
use billing_domain::webhook::{
    EndpointProfile, EndpointState, MAX_ENDPOINTS, MAX_SECRETS, SealedWebhookSecret, WebhookEndpoint, WebhookSecret, WebhookUrl,
    live_secrets,
};

use super::secrets::{new_secret, seal};
use crate::audit::{AuditChange, AuditSubject};
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UNKNOWN_REFERENCE, UseCaseError, UseCaseResult};

/// An hour in seconds.
const HOUR_SECONDS: i64 = 3600;

/// An endpoint with the numbers of its deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointView {
    /// The endpoint.
    pub endpoint: WebhookEndpoint,
    /// The state now.
    pub state: EndpointState,
    /// The numbers of its deliveries.
    pub counts: DeliveryCounts,
}

/// A new endpoint with its secret, which is shown only once.
#[derive(Clone, Debug)]
pub struct CreatedEndpoint {
    /// The endpoint.
    pub view: EndpointView,
    /// The secret.
    pub secret: WebhookSecret,
}

/// A new secret of an endpoint, which is shown only once.
#[derive(Clone, Debug)]
pub struct RotatedSecret {
    /// The endpoint.
    pub endpoint_ref: EndpointRef,
    /// The new secret.
    pub secret: WebhookSecret,
    /// Until when the previous secret signs, too.
    pub previous_expires_at: Timestamp,
}

/// Creates an endpoint. It receives notifications that are numbered from now on.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Invalid`] for a URL to which requests may not go, or an unknown customer.
/// - [`UseCaseError::TooMuch`] if the organization has the maximum number of endpoints.
pub fn create_endpoint(cx: &mut Cx<'_>, profile: EndpointProfile) -> UseCaseResult<CreatedEndpoint> {
    check_url(cx, &profile.url)?;
    check_customers(cx, profile.customer_refs.as_deref())?;
    let present = cx.tx.webhook_endpoints(cx.organization)?.len();
    if present >= MAX_ENDPOINTS {
        let detail = format!("an organization can have {MAX_ENDPOINTS} webhook endpoints: delete one that is no longer needed");
        return Err(UseCaseError::TooMuch { code: "too_many_endpoints", detail });
    }
    let endpoint_ref = EndpointRef::from_uuid(cx.services.ids.new_id());
    let endpoint = WebhookEndpoint::new(endpoint_ref, cx.organization, profile, cx.now);
    cx.tx.insert_webhook_endpoint(&endpoint)?;
    let secret = add_secret(cx, endpoint_ref, 1)?;
    cx.audit(AuditAction::Create, AuditChange::Made(AuditSubject::Endpoint(&endpoint)))?;
    let state = endpoint.state(cx.services.machine_now());
    Ok(CreatedEndpoint { view: EndpointView { endpoint, state, counts: DeliveryCounts::default() }, secret })
}

/// Changes an endpoint. If it is disabled, its pending deliveries are cancelled; if it is enabled again, it starts without
/// failures, and the notifications of the meantime can be replayed.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the endpoint does not exist.
/// - [`UseCaseError::Invalid`] for a URL to which requests may not go, or an unknown customer.
pub fn edit_endpoint(
    cx: &mut Cx<'_>,
    endpoint_ref: EndpointRef,
    changes: &Changes<EndpointProfile>,
) -> UseCaseResult<EndpointView> {
    let present = locked(cx, endpoint_ref)?;
    let mut endpoint = present.clone();
    endpoint.edit(changes, cx.now);
    if endpoint.profile.url != present.profile.url {
        check_url(cx, &endpoint.profile.url)?;
    }
    if endpoint.profile.customer_refs != present.profile.customer_refs {
        check_customers(cx, endpoint.profile.customer_refs.as_deref())?;
    }
    cx.tx.update_webhook_endpoint(&endpoint)?;
    if present.profile.enabled && !endpoint.profile.enabled {
        cx.tx.cancel_webhook_deliveries(endpoint_ref, cx.services.machine_now())?;
    }
    let change = AuditChange::From(AuditSubject::Endpoint(&present), AuditSubject::Endpoint(&endpoint));
    cx.audit(AuditAction::Edit, change)?;
    view_of(cx, endpoint)
}

/// Deletes an endpoint with its deliveries. Notifications stay in the feed.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the endpoint does not exist.
pub fn delete_endpoint(cx: &mut Cx<'_>, endpoint_ref: EndpointRef) -> UseCaseResult<()> {
    let endpoint = locked(cx, endpoint_ref)?;
    cx.tx.delete_webhook_endpoint(cx.organization, endpoint_ref)?;
    cx.audit(AuditAction::Delete, AuditChange::Gone(AuditSubject::Endpoint(&endpoint)))
}

/// Returns an endpoint.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the endpoint does not exist.
pub fn get_endpoint(cx: &mut Cx<'_>, endpoint_ref: EndpointRef) -> UseCaseResult<EndpointView> {
    let endpoint = cx.tx.webhook_endpoint(cx.organization, endpoint_ref, None)?;
    view_of(cx, endpoint.ok_or(UseCaseError::Unknown(ResourceKind::Endpoint))?)
}

/// Returns a page of endpoints. They are few, so that the order needs no index.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the endpoints cannot be read.
pub fn list_endpoints(cx: &mut Cx<'_>, list: &ListRequest) -> UseCaseResult<Page<EndpointView>> {
    let ListRequest { updates, by, page } = list;
    let key = |endpoint: &WebhookEndpoint| endpoint.endpoint_ref.to_string();
    let mut all = cx.tx.webhook_endpoints(cx.organization)?;
    all.retain(|endpoint| updates.matches(endpoint.updated_at, &key(endpoint), page.direction()));
    if *by == ListSortKey::Updated {
        all.sort_by_key(|endpoint| (endpoint.updated_at, key(endpoint)));
    }
    if page.is_backward() {
        all.reverse();
    }
    let total = all.len() as u64;
    let skipped = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    let shown: Vec<WebhookEndpoint> =
        all.into_iter().skip(skipped).take(usize::try_from(page.size()).unwrap_or(usize::MAX)).collect();
    let refs: Vec<EndpointRef> = shown.iter().map(|endpoint| endpoint.endpoint_ref).collect();
    let counts: BTreeMap<EndpointRef, DeliveryCounts> = cx.tx.webhook_delivery_counts(&refs)?.into_iter().collect();
    let now = cx.services.machine_now();
    let view = |endpoint: WebhookEndpoint| {
        let counts = counts.get(&endpoint.endpoint_ref).copied().unwrap_or_default();
        EndpointView { state: endpoint.state(now), counts, endpoint }
    };
    Ok(Page { items: shown.into_iter().map(view).collect(), total })
}

/// Adds a secret to an endpoint. Until the overlap is over, deliveries are signed with the previous secret, too.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the endpoint does not exist.
/// - [`UseCaseError::Conflict`] if two secrets sign already.
pub fn rotate_secret(cx: &mut Cx<'_>, endpoint_ref: EndpointRef, overlap_hours: u16) -> UseCaseResult<RotatedSecret> {
    let (endpoint, now) = (locked(cx, endpoint_ref)?, cx.services.machine_now());
    let stored: Vec<SealedWebhookSecret> =
        cx.tx.webhook_secrets(&[endpoint_ref])?.into_iter().map(|(_, secret)| secret).collect();
    let newest_kid = stored.iter().map(|secret| secret.kid).max().unwrap_or_default();
    for over in stored.iter().filter(|secret| !secret.is_live(now)) {
        cx.tx.delete_webhook_secret(endpoint_ref, over.kid)?;
    }
    let live = live_secrets(stored, now);
    if live.len() >= MAX_SECRETS {
        let until = live.iter().filter_map(|secret| secret.expires_at).min();
        let until = until.map(|until| format!(", which ends at {until}")).unwrap_or_default();
        let detail = format!("two secrets of the endpoint sign already: wait for the end of the overlap{until}");
        return Err(UseCaseError::Conflict { code: "rotation_in_progress", detail });
    }
    let previous_expires_at = now.plus_seconds(i64::from(overlap_hours) * HOUR_SECONDS);
    for previous in &live {
        if overlap_hours == 0 {
            cx.tx.delete_webhook_secret(endpoint_ref, previous.kid)?;
        } else {
            let previous = SealedWebhookSecret { expires_at: Some(previous_expires_at), ..previous.clone() };
            cx.tx.put_webhook_secret(endpoint_ref, &previous)?;
        }
    }
    let secret = add_secret(cx, endpoint_ref, newest_kid.saturating_add(1))?;
    cx.audit(AuditAction::Rotate, AuditChange::Unshown(AuditSubject::Endpoint(&endpoint)))?;
    Ok(RotatedSecret { endpoint_ref, secret, previous_expires_at })
}

/// Stores a new secret of an endpoint.
fn add_secret(cx: &mut Cx<'_>, endpoint_ref: EndpointRef, kid: u32) -> UseCaseResult<WebhookSecret> {
    let secret = new_secret(cx.services)?;
    let sealed = seal(cx.tx, cx.services, (endpoint_ref, kid), &secret)?;
    cx.tx.put_webhook_secret(
        endpoint_ref,
        &SealedWebhookSecret { kid, sealed, created_at: cx.services.machine_now(), expires_at: None },
    )?;
    Ok(secret)
}

/// Locks an endpoint exclusively.
pub(super) fn locked(cx: &mut Cx<'_>, endpoint_ref: EndpointRef) -> UseCaseResult<WebhookEndpoint> {
    let found = cx.tx.webhook_endpoint(cx.organization, endpoint_ref, Some(Lock::Exclusive))?;
    found.ok_or(UseCaseError::Unknown(ResourceKind::Endpoint))
}

fn view_of(cx: &mut Cx<'_>, endpoint: WebhookEndpoint) -> UseCaseResult<EndpointView> {
    let counts = cx.tx.webhook_delivery_counts(&[endpoint.endpoint_ref])?;
    let counts = counts.first().map(|(_, counts)| *counts).unwrap_or_default();
    Ok(EndpointView { state: endpoint.state(cx.services.machine_now()), counts, endpoint })
}

/// Checks that the settings of the server permit requests to a URL.
fn check_url(cx: &Cx<'_>, url: &WebhookUrl) -> UseCaseResult<()> {
    cx.services.webhook_urls.check(url).map_err(|refusal| {
        let code = match refusal {
            WebhookUrlRefusal::Invalid(_) => "invalid_url",
            WebhookUrlRefusal::NotPublic(_) => "address_not_public",
        };
        Violations::one(&["url"], code, refusal.to_string()).into()
    })
}

fn check_customers(cx: &mut Cx<'_>, customer_refs: Option<&[CustomerRef]>) -> UseCaseResult<()> {
    let Some(customer_refs) = customer_refs.filter(|refs| !refs.is_empty()) else { return Ok(()) };
    let known = cx.tx.customers_by_refs(cx.organization, customer_refs)?;
    let mut violations = Violations::none();
    for (index, customer_ref) in customer_refs.iter().enumerate() {
        if known.iter().all(|customer| customer.customer_ref != *customer_ref) {
            let detail = format!("must be the reference of an existing {}", ResourceKind::Customer.word());
            violations.add(&["customer_refs", &index.to_string()], UNKNOWN_REFERENCE, detail);
        }
    }
    if violations.is_empty() { Ok(()) } else { Err(violations.into()) }
}
