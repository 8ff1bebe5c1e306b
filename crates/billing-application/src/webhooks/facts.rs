//! What is recorded about endpoints and attempts.

use billing_domain::calendar::Timestamp;
use billing_domain::notification::{EndpointFact, Fact, FactData, NotificationType};
use billing_domain::ports::WebhookResponse;
use billing_domain::webhook::{DeliveryAttempt, WebhookEndpoint};

/// Returns a fact about an endpoint whose count includes the fact.
pub(super) fn endpoint_fact(kind: NotificationType, endpoint: &WebhookEndpoint) -> Fact {
    let data = EndpointFact {
        endpoint_ref: endpoint.endpoint_ref,
        url: endpoint.profile.url.to_string(),
        is_enabled: endpoint.profile.enabled,
        disabled_reason: endpoint.disabled_reason.map(|reason| reason.as_str().to_owned()),
    };
    Fact { kind, sequence: endpoint.notification_count, data: FactData::Endpoint(Box::new(data)) }
}

/// Returns the attempt that a response stands for.
pub(super) fn attempt_of(at: Timestamp, response: &WebhookResponse) -> DeliveryAttempt {
    DeliveryAttempt {
        at,
        millis: response.millis,
        status: response.status,
        outcome: response.outcome,
        excerpt: response.excerpt.clone(),
    }
}
