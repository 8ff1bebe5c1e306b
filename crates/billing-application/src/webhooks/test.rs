//! Tests an endpoint: sends it a notification and returns the attempt.
//!
//! A test has three steps. The first and the last are transactions of their own; nothing is held while the request is sent
//! between them.

use std::sync::Arc;

use billing_domain::idempotency::{IdempotentResponse, StoredResponse};
use billing_domain::notification::{Notification, NotificationType, Subject};
use billing_domain::refs::{EndpointRef, NotificationRef};
use billing_domain::webhook::{DeliveryAttempt, live_secrets};

use super::endpoints::locked;
use super::facts::{attempt_of, endpoint_fact};
use super::secrets::{PURPOSE, unseal};
use super::senders::{OutgoingRequest, SentRequest, WebhookSenders, WebhookTarget};
use crate::carry_out::{Cx, Request, carry_out, run};
use crate::error::{UseCaseError, UseCaseResult};
use crate::idempotency::find_stored_response;
use crate::notifications::wake_numbering;
use crate::{Services, allow};

/// A test that is ready to be sent.
#[derive(Clone, Debug)]
pub struct PreparedTest(OutgoingRequest);

/// The result of the first step of a test.
#[derive(Clone, Debug)]
pub enum TestPreparation {
    /// The request is a repeat, and nothing is sent.
    Replayed(StoredResponse),
    /// The test is stored and ready to be sent.
    Prepared(PreparedTest),
}

/// Stores a test notification of an endpoint, also of a disabled one. The test changes nothing else about the endpoint, and no
/// other endpoint receives it.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the endpoint does not exist.
/// - Any error of [`carry_out`].
pub fn prepare_test(services: &Services, request: Request<'_>, endpoint_ref: EndpointRef) -> UseCaseResult<TestPreparation> {
    if let Some(key) = request.key
        && let Some(answer) = find_stored_response(services, request.principal, key)?
    {
        return Ok(TestPreparation::Replayed(answer));
    }
    let prepared = run(services, request.principal, request.use_case, |cx| prepare(cx, endpoint_ref))?;
    Ok(TestPreparation::Prepared(prepared))
}

impl WebhookSenders {
    /// Sends a test on a thread of its own, and returns at once. `done` gets the attempt. It is dropped without a call if the
    /// sender panics.
    ///
    /// # Errors
    /// Returns [`UseCaseError::Overloaded`] if no thread can be created.
    pub fn send_test(&self, test: PreparedTest, done: impl FnOnce(DeliveryAttempt) + Send + 'static) -> UseCaseResult<()> {
        let (mut request, mut done) = (Some(test.0), Some(done));
        let started = self.start(move |sent| {
            if let Some(SentRequest { at, response: Some(response) }) = sent
                && let Some(done) = done.take()
            {
                done(attempt_of(at, &response));
            }
            request.take()
        });
        started.map_err(|error| {
            tracing::error!(%error, "cannot start a thread that tests a webhook endpoint");
            UseCaseError::Overloaded
        })
    }
}

/// Stores the response to a test under the request's key, if it has one. A repeat that another server handles at the same time
/// can send the test twice.
///
/// # Errors
/// Returns the errors of [`carry_out`].
pub fn record_test(
    services: &Services,
    request: Request<'_>,
    attempt: &DeliveryAttempt,
    render: impl Fn(&DeliveryAttempt) -> StoredResponse,
) -> UseCaseResult<IdempotentResponse> {
    if request.key.is_none() {
        allow(request.principal, request.use_case)?;
        return Ok(IdempotentResponse { answer: render(attempt), is_repeat: false });
    }
    carry_out(services, request, render, |_| Ok(attempt.clone()))
}

fn prepare(cx: &mut Cx<'_>, endpoint_ref: EndpointRef) -> UseCaseResult<PreparedTest> {
    let mut endpoint = locked(cx, endpoint_ref)?;
    endpoint.notification_count = endpoint.notification_count.saturating_add(1);
    cx.tx.update_webhook_endpoint(&endpoint)?;
    let fact = endpoint_fact(NotificationType::WebhookTest, &endpoint);
    let notification_ref = NotificationRef::from_uuid(cx.services.ids.new_id());
    let body = cx.services.teller.render_notification(&fact, cx.tx.epoch()?, cx.now);
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
    let secrets = unseal(cx.services, &keys, endpoint_ref, &live_secrets(stored, cx.services.machine_now()));
    let target = Arc::new(WebhookTarget { url: endpoint.profile.url, secrets });
    Ok(PreparedTest(OutgoingRequest { target, notification_ref, body }))
}
