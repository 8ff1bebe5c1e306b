//! Tests an endpoint: sends it a notification and returns the attempt.

use billing_domain::idempotency::{IdempotentResponse, StoredResponse};
use billing_domain::notification::{Notification, NotificationType, Subject};
use billing_domain::ports::WebhookRequest;
use billing_domain::refs::{EndpointRef, NotificationRef};
use billing_domain::webhook::{DeliveryAttempt, WebhookSecret, WebhookUrl, live_secrets};

use super::endpoints::locked;
use super::facts::{attempt_of, endpoint_fact};
use super::secrets::{PURPOSE, unseal};
use crate::Services;
use crate::carry_out::{Cx, Request, carry_out, run};
use crate::error::UseCaseResult;
use crate::idempotency::find_stored_response;
use crate::notifications::wake_numbering;

/// Sends a test notification to an endpoint, also to a disabled one, and returns the attempt. The test changes nothing about the
/// endpoint, and no other endpoint receives it.
///
/// The request is sent outside of the transactions, so a repeat that another server handles at the same time can send it twice.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`](crate::error::UseCaseError::Unknown) if the endpoint does not exist.
/// - Any error of [`carry_out`].
pub fn test_endpoint(
    services: &Services,
    request: Request<'_>,
    endpoint_ref: EndpointRef,
    render: impl Fn(&DeliveryAttempt) -> StoredResponse,
) -> UseCaseResult<IdempotentResponse> {
    if let Some(key) = request.key
        && let Some(answer) = find_stored_response(services, request.principal, key)?
    {
        return Ok(IdempotentResponse { answer, is_repeat: true });
    }
    let prepared = run(services, request.principal, request.use_case, |cx| prepare(cx, endpoint_ref))?;
    let at = services.now();
    let response = services.webhooks.send(&WebhookRequest {
        url: &prepared.url,
        id: prepared.notification_ref,
        at,
        body: &prepared.body,
        secrets: &prepared.secrets,
    });
    let attempt = attempt_of(at, &response);
    carry_out(services, request, render, |_| Ok(attempt.clone()))
}

/// A test that is ready to be sent.
struct PreparedTest {
    url: WebhookUrl,
    notification_ref: NotificationRef,
    body: String,
    secrets: Vec<WebhookSecret>,
}

fn prepare(cx: &mut Cx<'_>, endpoint_ref: EndpointRef) -> UseCaseResult<PreparedTest> {
    let mut endpoint = locked(cx, endpoint_ref)?;
    endpoint.notification_count = endpoint.notification_count.saturating_add(1);
    cx.tx.update_webhook_endpoint(&endpoint)?;
    let fact = endpoint_fact(NotificationType::WebhookTest, &endpoint);
    let notification_ref = NotificationRef::from_uuid(cx.services.ids.new_id());
    let body = cx.services.teller.render_notification(&fact, cx.now);
    let notification = Notification {
        notification_ref,
        customer_id: None,
        subject: Subject::Endpoint(endpoint_ref),
        sequence: fact.sequence,
        kind: fact.kind,
        body: body.clone(),
        created_at: cx.now,
        position: None,
    };
    cx.tx.insert_notifications(cx.organization, &[notification])?;
    wake_numbering();
    let stored = cx.tx.webhook_secrets(&[endpoint_ref])?.into_iter().map(|(_, secret)| secret).collect();
    let keys = cx.tx.signing_secrets(PURPOSE)?;
    let secrets = unseal(cx.services, &keys, endpoint_ref, &live_secrets(stored, cx.now));
    Ok(PreparedTest { url: endpoint.profile.url, notification_ref, body, secrets })
}
