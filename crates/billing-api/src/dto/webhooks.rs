//! Webhook endpoints and deliveries. Only the responses that create a secret contain it; `Debug` never does.

use billing_application::names::Named;
use billing_application::webhooks::{CreatedEndpoint, EndpointView, ReplayOutcome, ReplayRequest, RotatedSecret};
use billing_domain::notification::Subject;
use billing_domain::patch::Changes;
use billing_domain::ports::{ListedDelivery, ReplayRange};
use billing_domain::refs::{CustomerRef, EndpointRef, NotificationRef};
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;
use billing_domain::webhook::{
    DEFAULT_SECRET_OVERLAP_HOURS, DeliveryAttempt, EndpointProfile, EventType, MAX_ENDPOINT_CUSTOMERS, MAX_EVENT_TYPES,
    MAX_SECRET_OVERLAP_HOURS, MAX_URL_BYTES, ReplayScope, WebhookEndpoint, WebhookUrl,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, Schema};

use super::declare::{Body, Editable, RequestBody, answer, body, fields, repeated_ref, response, wire};
use super::enums::{AttemptOutcomeWord, DeliveryStateWord, DisabledReasonWord, EndpointStateWord, NotificationTypeWord};
use super::input::{self, Node};
use super::schemas::{Schemas, integer, object_of, text};
use super::values::{LineText, TimestampText};
use super::wire::{AssignedRef, NamedRef, whole};

/// Maximum number of notifications that a replay can name.
const MAX_NAMED_NOTIFICATIONS: usize = 1000;
/// Largest position that a replay can name: nine digits.
const MAX_POSITION: u32 = 999_999_999;
const AFTER: &str = "after";
const UP_TO: &str = "up_to";
const NOTIFICATION_REFS: &str = "notification_refs";

fields! {
    edit EndpointProfile {
        /// URL to which notifications are sent: `https`, without user name, password and fragment. Its host must have public
        /// addresses.
        url: WebhookUrl,
        /// Types of the notifications that the endpoint receives: exact, a group such as `document.*`, or `*`. Default: `*`.
        event_types: EventTypes = vec![EventType::all()],
        /// Customers whose notifications the endpoint receives. Default: null, which stands for all notifications, also those
        /// of no customer.
        customer_refs: Option<EndpointCustomers>,
        /// Whether notifications are sent. Default: true.
        enabled: bool = true,
        /// Description for people.
        description: Option<OneLine>,
    }
}

body! {
    /// A webhook endpoint to create.
    WebhookEndpointBody {
        @flat profile: EndpointProfile,
    }
}

/// Changes to a webhook endpoint. Omitted fields stay unchanged; null clears a field or restores its default.
pub struct WebhookEndpointEditBody;

impl WebhookEndpointEditBody {
    const REFERENCE: &'static str = "endpoint_ref";

    /// Reads the changes of the endpoint with this reference, which the body can repeat but not change.
    ///
    /// # Errors
    /// Returns all violations of the body.
    pub fn read(body: &Value, endpoint_ref: EndpointRef) -> Result<Changes<EndpointProfile>, Violations> {
        let reference = endpoint_ref.to_string();
        input::read(body, |fields| {
            fields.begin_edit::<EndpointProfile>(Self::REFERENCE, &reference);
            EndpointProfile::read_changes(fields)
        })
    }
}

impl RequestBody<EndpointRef> for WebhookEndpointEditBody {
    type Read = Changes<EndpointProfile>;

    fn read_body(body: Option<&Value>, endpoint_ref: &EndpointRef) -> Result<Changes<EndpointProfile>, Violations> {
        Self::read(body.unwrap_or(&Value::Null), *endpoint_ref)
    }
}

impl Body for WebhookEndpointEditBody {
    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        schemas.define("WebhookEndpointEditBody", |schemas| {
            let mut fields = vec![repeated_ref::<EndpointRef>(Self::REFERENCE, schemas)];
            fields.extend(EndpointProfile::described_in_edit(schemas));
            let meaning =
                "Changes to a webhook endpoint. Omitted fields stay unchanged; null clears a field or restores its default.";
            object_of(fields, meaning).into()
        })
    }
}

body! {
    /// Options for rotating the secret of a webhook endpoint. The body may be omitted.
    SecretRotationBody {
        /// Hours for which deliveries are also signed with the previous secret. Default: 24.
        overlap_hours: SecretOverlap = DEFAULT_SECRET_OVERLAP_HOURS,
    }
}

body! {
    /// The notifications to send to a webhook endpoint again: a range of positions, or references.
    ReplayBody {
        /// Position after which the range begins. Required without `notification_refs`.
        after: Option<ReplayPosition>,
        /// Last position of the range. Default: the newest notification.
        up_to: Option<ReplayPosition>,
        /// References of notifications. Excludes `after` and `up_to`.
        notification_refs: Option<NotificationRefs>,
        /// Types of the notifications to send again. Default: all types that the endpoint receives.
        types: Option<EventTypes>,
        /// Which of these notifications are sent again. Default: MISSING.
        only: ReplayScope = ReplayScope::Missing,
    }
    with {
        fn check(fields: Fields<'_>) {
            if fields.has(NOTIFICATION_REFS) {
                for other in [AFTER, UP_TO].into_iter().filter(|other| fields.has(other)) {
                    let detail = "must be omitted, because notification_refs is given";
                    fields.refuse::<()>(other, "conflicting_fields", detail);
                }
            } else if !fields.has(AFTER) {
                let detail = "must be the position after which notifications are sent again, 0 for all; or give notification_refs";
                fields.refuse::<()>(AFTER, "required", detail);
            }
        }
    }
}

impl ReplayBody {
    /// Returns the request.
    pub fn request(self) -> ReplayRequest {
        let range = match self.notification_refs {
            Some(refs) => ReplayRange::Notifications(refs),
            None => ReplayRange::Positions(self.after.unwrap_or_default(), self.up_to.unwrap_or(u64::MAX)),
        };
        ReplayRequest { range, types: self.types.unwrap_or_default(), only: self.only }
    }
}

/// The types of the notifications that an endpoint receives.
pub struct EventTypes;
/// The customers whose notifications an endpoint receives.
pub struct EndpointCustomers;
/// The time for which a replaced secret still signs.
pub struct SecretOverlap;
/// A position in the feed.
pub struct ReplayPosition;
/// References of notifications.
pub struct NotificationRefs;

wire! {
    WebhookUrl: |node| node.parsed(WebhookUrl::parse),
        |_| text().min_length(Some(1)).max_length(Some(MAX_URL_BYTES)).examples(["https://example.com/hooks"]);
    EventTypes of Vec<EventType>: event_types,
        |_| ArrayBuilder::new()
            .items(text().examples(["document.*"]))
            .min_items(Some(1))
            .max_items(Some(MAX_EVENT_TYPES));
    EndpointCustomers of Vec<CustomerRef>: endpoint_customers,
        |schemas| ArrayBuilder::new()
            .items(schemas.refer::<NamedRef>())
            .min_items(Some(1))
            .max_items(Some(MAX_ENDPOINT_CUSTOMERS));
    EndpointRef: |node| node.parsed(EndpointRef::parse), |schemas| schemas.refer::<AssignedRef>();
    SecretOverlap of u16: |node| node.whole(0..=MAX_SECRET_OVERLAP_HOURS), |_| integer(0, MAX_SECRET_OVERLAP_HOURS.into());
    ReplayPosition of u64: replay_position, |_| whole(0, MAX_POSITION);
    NotificationRefs of Vec<NotificationRef>:
        |node| node.list(MAX_NAMED_NOTIFICATIONS, |node| node.parsed(NotificationRef::parse)),
        |schemas| ArrayBuilder::new().items(schemas.refer::<AssignedRef>()).max_items(Some(MAX_NAMED_NOTIFICATIONS));
}

fn event_types(node: Node<'_>) -> Option<Vec<EventType>> {
    let types = node.list(MAX_EVENT_TYPES, |node| node.parsed(EventType::parse))?;
    if types.is_empty() {
        return node.refuse("out_of_range", "must have at least one element, or be omitted for all types");
    }
    Some(types)
}

fn endpoint_customers(node: Node<'_>) -> Option<Vec<CustomerRef>> {
    let customers = node.list(MAX_ENDPOINT_CUSTOMERS, |node| node.parsed(CustomerRef::parse))?;
    if customers.is_empty() {
        return node.refuse("out_of_range", "must have at least one element, or be null for all customers");
    }
    Some(customers)
}

fn replay_position(node: Node<'_>) -> Option<u64> {
    node.whole_or(0..=MAX_POSITION, &format!("must be a whole number from 0 to {MAX_POSITION}")).map(u64::from)
}

/// Returns the references of an endpoint's customers.
fn customers_of(endpoint: &WebhookEndpoint) -> Option<Vec<NamedRef>> {
    endpoint.profile.customer_refs.as_ref().map(|refs| refs.iter().map(NamedRef::from).collect())
}

answer! {
    /// A webhook endpoint, without its secrets.
    WebhookEndpointJson of view: EndpointView {
        let (endpoint, profile) = (&view.endpoint, &view.endpoint.profile);
        /// Reference.
        endpoint_ref: AssignedRef = endpoint.endpoint_ref,
        /// URL to which notifications are sent.
        #[schema(example = "https://example.com/hooks")]
        url: String = profile.url.as_str().to_owned(),
        /// Types of the notifications that the endpoint receives.
        event_types: Vec<String> = profile.event_types.iter().map(ToString::to_string),
        /// Customers whose notifications the endpoint receives; null for all notifications.
        customer_refs: Option<Vec<NamedRef>> = customers_of(endpoint),
        /// Whether notifications are sent.
        enabled: bool = profile.enabled,
        /// Description for people.
        description: Option<LineText> = profile.description.as_ref(),
        /// State.
        state: EndpointStateWord = view.state,
        /// Reason why the service disabled the endpoint; null if it did not.
        disabled_reason: Option<DisabledReasonWord> = endpoint.disabled_reason,
        /// Time before which nothing is sent, because the endpoint is overloaded.
        paused_until: Option<TimestampText> = endpoint.paused_until,
        /// Time of the first failure since the last success.
        failing_since: Option<TimestampText> = endpoint.failing_since,
        /// Time of the last success.
        last_delivered_at: Option<TimestampText> = endpoint.last_delivered_at,
        /// Number of deliveries whose next attempt is due at some time.
        pending: u64 = view.counts.pending,
        /// Number of deliveries whose attempts all failed.
        failed: u64 = view.counts.failed,
        /// Time of creation.
        created_at: TimestampText = endpoint.created_at,
        /// Time of the last change.
        updated_at: TimestampText = endpoint.updated_at,
    }
}

answer! {
    /// A webhook endpoint in the audit log.
    AuditedEndpointJson of endpoint: WebhookEndpoint {
        let profile = &endpoint.profile;
        /// URL to which notifications are sent.
        url: String = profile.url.as_str().to_owned(),
        /// Types of the notifications that the endpoint receives.
        event_types: Vec<String> = profile.event_types.iter().map(ToString::to_string),
        /// Customers whose notifications the endpoint receives; null for all notifications.
        customer_refs: Option<Vec<NamedRef>> = customers_of(endpoint),
        /// Whether notifications are sent.
        enabled: bool = profile.enabled,
        /// Description for people.
        description: Option<LineText> = profile.description.as_ref(),
        /// Reason why the service disabled the endpoint; null if it did not.
        disabled_reason: Option<DisabledReasonWord> = endpoint.disabled_reason,
    }
}

response! {
    /// A new webhook endpoint with its secret, which is not shown again.
    #[derive(Serialize, ToSchema)]
    pub struct CreatedWebhookEndpointJson {
        /// Reference.
        endpoint_ref: AssignedRef,
        /// URL to which notifications are sent.
        #[schema(example = "https://example.com/hooks")]
        url: String,
        /// Types of the notifications that the endpoint receives.
        event_types: Vec<String>,
        /// Customers whose notifications the endpoint receives; null for all notifications.
        customer_refs: Option<Vec<NamedRef>>,
        /// Whether notifications are sent.
        enabled: bool,
        /// Description for people.
        description: Option<LineText>,
        /// Secret that verifies the signatures of Standard Webhooks; not shown again.
        #[schema(pattern = "^whsec_[A-Za-z0-9+/]{43}=$")]
        secret: String,
        /// Time of creation.
        created_at: TimestampText,
    }
}

impl From<&CreatedEndpoint> for CreatedWebhookEndpointJson {
    fn from(created: &CreatedEndpoint) -> Self {
        let (endpoint, profile) = (&created.view.endpoint, &created.view.endpoint.profile);
        Self {
            endpoint_ref: AssignedRef::from(endpoint.endpoint_ref),
            url: profile.url.as_str().to_owned(),
            event_types: profile.event_types.iter().map(ToString::to_string).collect(),
            customer_refs: customers_of(endpoint),
            enabled: profile.enabled,
            description: profile.description.as_ref().map(LineText::from),
            secret: created.secret.as_str().to_owned(),
            created_at: TimestampText::from(endpoint.created_at),
        }
    }
}

response! {
    /// A new secret of a webhook endpoint, which is not shown again.
    #[derive(Serialize, ToSchema)]
    pub struct RotatedSecretJson {
        /// Reference of the endpoint.
        endpoint_ref: AssignedRef,
        /// New secret; not shown again.
        #[schema(pattern = "^whsec_[A-Za-z0-9+/]{43}=$")]
        secret: String,
        /// Time until which deliveries are also signed with the previous secret.
        previous_expires_at: TimestampText,
    }
}

impl From<&RotatedSecret> for RotatedSecretJson {
    fn from(rotated: &RotatedSecret) -> Self {
        Self {
            endpoint_ref: AssignedRef::from(rotated.endpoint_ref),
            secret: rotated.secret.as_str().to_owned(),
            previous_expires_at: TimestampText::from(rotated.previous_expires_at),
        }
    }
}

answer! {
    /// An attempt to deliver a notification.
    WebhookAttemptJson of attempt: DeliveryAttempt {
        /// Time of the request.
        at: TimestampText = attempt.at,
        /// Time until the response in milliseconds.
        ms: u32 = attempt.millis,
        /// Status of the response; null if no response arrived.
        status: Option<u16> = attempt.status,
        /// Outcome.
        outcome: AttemptOutcomeWord = attempt.outcome,
        /// Beginning of the response's body, at most 1,024 bytes, or the reason why no response arrived.
        excerpt: Option<String> = attempt.excerpt.clone(),
    }
}

answer! {
    /// A notification on its way to a webhook endpoint.
    WebhookDeliveryJson of listed: Named<ListedDelivery> {
        let delivery = &listed.delivery;
        /// Reference of the endpoint.
        endpoint_ref: AssignedRef = delivery.endpoint_ref,
        /// URL of the endpoint; null if it is deleted.
        #[schema(example = "https://example.com/hooks")]
        endpoint_url: Option<String> = listed.names.of_subject(Subject::Endpoint(delivery.endpoint_ref)),
        /// Reference of the notification, which is the `webhook-id` of each request.
        notification_ref: AssignedRef = delivery.notification_ref,
        /// Position of the notification in the feed.
        position: u64 = delivery.position,
        /// Type of the notification.
        kind as "type": NotificationTypeWord = listed.kind,
        /// Subject of the notification.
        #[schema(example = "document:0198c5f2-9a11-7c02-8d3e-5f0a1b2c3d4e")]
        subject: String = listed.subject.to_string(),
        /// Number of the document or contract, or URL of the endpoint.
        #[schema(example = "UB-INV-1")]
        subject_name: Option<String> = listed.names.of_subject(listed.subject),
        /// Number among the notifications of the subject.
        sequence: u64 = listed.sequence,
        /// State.
        state: DeliveryStateWord = delivery.state,
        /// Number of attempts since the delivery was last scheduled.
        attempt: u32 = delivery.attempt,
        /// Time at which the next attempt is due; null unless the delivery is pending.
        due_at: Option<TimestampText> = delivery.due_at,
        /// Last 10 attempts, oldest first.
        attempts: Vec<WebhookAttemptJson> = &delivery.attempts,
        /// Time of creation.
        created_at: TimestampText = delivery.created_at,
        /// Time of the last attempt or change.
        updated_at: TimestampText = delivery.updated_at,
    }
}

answer! {
    /// The result of a replay.
    ReplayResultJson of outcome: ReplayOutcome {
        /// Number of notifications that are sent again, at most 100,000.
        scheduled: u64 = outcome.scheduled,
        /// Position to continue from as `after`, if the limit was reached; null if all notifications were considered.
        next: Option<u64> = outcome.next,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dto::declare;

    fn refusals(violations: &Violations) -> Vec<String> {
        violations.iter().map(|violation| format!("/{} {}", violation.path.join("/"), violation.code)).collect()
    }

    #[test]
    fn an_endpoint_receives_everything_unless_the_request_says_otherwise() {
        let WebhookEndpointBody { profile } = declare::read(&json!({"url": "https://example.com/hooks"})).expect("a valid body");
        assert_eq!(profile.event_types, [EventType::all()]);
        assert_eq!((profile.customer_refs, profile.enabled, profile.description), (None, true, None));
    }

    #[test]
    fn each_invalid_field_is_reported_with_its_code() {
        let body = json!({
            "url": "ftp://example.com", "event_types": ["document.*", "invoice.*"], "customer_refs": [], "enabled": "yes",
            "secret": "mine",
        });
        let error = declare::read::<WebhookEndpointBody>(&body).expect_err("invalid");
        assert_eq!(
            refusals(&error),
            [
                "/url invalid_url",
                "/event_types/1 unknown_event_type",
                "/customer_refs out_of_range",
                "/enabled wrong_type",
                "/secret unknown_field",
            ]
        );
        let error = declare::read::<WebhookEndpointBody>(&json!({"event_types": []})).expect_err("invalid");
        assert_eq!(refusals(&error), ["/event_types out_of_range", "/url required"]);
    }

    #[test]
    fn an_edit_changes_the_named_fields_and_null_restores_defaults() {
        let endpoint_ref = EndpointRef::parse("0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b").expect("a reference");
        let WebhookEndpointBody { mut profile } = declare::read(&json!({
            "url": "https://example.com/", "event_types": ["document.*"], "customer_refs": ["acme"], "enabled": false,
        }))
        .expect("a valid body");
        let body = json!({"endpoint_ref": endpoint_ref.to_string(), "event_types": null, "customer_refs": null, "enabled": true});
        WebhookEndpointEditBody::read(&body, endpoint_ref).expect("a valid edit").apply(&mut profile);
        assert_eq!((profile.event_types, profile.customer_refs, profile.enabled), (vec![EventType::all()], None, true));
        assert_eq!(profile.url.as_str(), "https://example.com/");
        let other = json!({"endpoint_ref": "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4c"});
        let error = WebhookEndpointEditBody::read(&other, endpoint_ref).expect_err("another reference");
        assert_eq!(refusals(&error), ["/endpoint_ref not_changeable"]);
    }

    #[test]
    fn a_replay_names_positions_or_notifications() {
        let read = |body: Value| declare::read::<ReplayBody>(&body).map(ReplayBody::request);
        let request = read(json!({"after": 7})).expect("a range");
        assert_eq!((request.range, request.only), (ReplayRange::Positions(7, u64::MAX), ReplayScope::Missing));
        let notification_ref = "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b";
        let request = read(json!({"notification_refs": [notification_ref], "only": "ALL", "types": ["*"]})).expect("references");
        assert!(matches!(request.range, ReplayRange::Notifications(refs) if refs.len() == 1));
        for (body, expected) in [
            (json!({}), "/after required"),
            (json!({"up_to": 7}), "/after required"),
            (json!({"after": 1, "notification_refs": [notification_ref]}), "/after conflicting_fields"),
            (json!({"after": -1}), "/after out_of_range"),
            (json!({"after": 1, "only": "SOME"}), "/only invalid_value"),
        ] {
            assert_eq!(refusals(&read(body.clone()).expect_err("invalid")), [expected], "{body}");
        }
    }
}
