//! Handlers for webhook endpoints and deliveries.

use std::sync::Arc;

use billing_application::Request;
use billing_application::error::ResourceKind;
use billing_application::webhooks::{self, TestPreparation};
use billing_domain::refs::EndpointRef;
use billing_domain::webhook::DeliveryAttempt;
use tokio::sync::oneshot;

use crate::call::{Call, REPLAYED, Reply};
use crate::respond::respond_stored;
use billing_api::dto::webhooks::WebhookAttemptJson;
use billing_api::dto::wire::written;
use billing_api::problem::Problem;
use billing_api::stored_response::Success;

pub(crate) async fn test_webhook_endpoint(call: Call) -> Reply {
    let endpoint_ref = endpoint_ref(&call)?;
    // An organization has one test at a time, so a repeat waits for the first request here.
    let permit = Arc::new(call.state.permit_webhook_test(call.principal()?.organization()).await?);
    let (keyed, use_case) = (call.keyed_by_body(), call.use_case);
    let preparation = call.run_in_turn(move |services, principal| {
        webhooks::prepare_test(services, Request { principal, use_case, key: keyed.as_ref() }, endpoint_ref)
    });
    let test = match preparation.await? {
        TestPreparation::Replayed(answer) => return respond_stored(answer, Some(REPLAYED)),
        TestPreparation::Prepared(test) => test,
    };
    let (attempted, attempt) = oneshot::channel();
    // The thread holds the permit, too, because the request may be abandoned.
    let of_thread = Arc::clone(&permit);
    call.state.webhook_senders().send_test(test, move |attempt| {
        drop(of_thread);
        drop(attempted.send(attempt));
    })?;
    let attempt: DeliveryAttempt = attempt.await.map_err(|_| Problem::internal())?;
    let reply = call.once_in_turn(move |services, request| {
        let render = |attempt: &DeliveryAttempt| Success::json(written(&WebhookAttemptJson::from(attempt))).kept();
        webhooks::record_test(services, request, &attempt, render)
    });
    let reply = reply.await;
    drop(permit);
    reply
}

fn endpoint_ref(call: &Call) -> Result<EndpointRef, Problem> {
    call.reference(EndpointRef::parse, ResourceKind::Endpoint)
}
