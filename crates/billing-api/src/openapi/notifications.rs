//! Describes the notifications that the service sends to webhook endpoints, so that generated clients know their bodies.

use billing_domain::notification::NotificationType;
use serde_json::{Map, Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use crate::dto::credit::GrantJson;
use crate::dto::enums::NotificationTypeWord;
use crate::dto::notifications::{
    BillingNotificationJson, ContractNotificationJson, DocumentNotificationJson, EndpointNotificationJson, LimitNotificationJson,
};
use crate::dto::schemas::{Schemas, text};
use crate::dto::values::TimestampText;
use crate::media_type::JSON;

const DOCUMENT: &str = "DocumentNotificationBody";
const CONTRACT: &str = "ContractNotificationBody";
const BILLING: &str = "BillingNotificationBody";
const LIMIT: &str = "LimitNotificationBody";
const GRANT: &str = "CreditGrantNotificationBody";
const ENDPOINT: &str = "EndpointNotificationBody";

/// Returns the schema of a type's body, and when the service sends it.
const fn described(kind: NotificationType) -> (&'static str, &'static str) {
    match kind {
        NotificationType::DocumentOpened => (DOCUMENT, "A draft was stored with its number."),
        NotificationType::DocumentIssued => (DOCUMENT, "A document was issued."),
        NotificationType::DocumentSettled => {
            (DOCUMENT, "The amount due, the unapplied amount or the written-off amount of an issued document changed.")
        }
        NotificationType::DocumentVoided => (DOCUMENT, "A document was voided."),
        NotificationType::DocumentOverdue => (DOCUMENT, "The due date of a document has passed, and an amount is still due."),
        NotificationType::ContractChanged => (CONTRACT, "A contract was created, edited, canceled or resumed."),
        NotificationType::ContractEnding => (CONTRACT, "A contract ends in 30 days."),
        NotificationType::BillingFailed => (BILLING, "The billing run could not bill a contract."),
        NotificationType::BillingRecovered => (BILLING, "A contract that could not be billed was billed again."),
        NotificationType::LimitReached => (LIMIT, "The number of a limit reached a threshold, or usage reached `max`."),
        NotificationType::LimitCleared => (LIMIT, "The number of a limit is below a threshold again, or at `max` or below."),
        NotificationType::CreditGranted => (GRANT, "A customer was granted prepaid credit."),
        NotificationType::CreditEnding => (GRANT, "Prepaid credit ends in 30 or in 7 days, and something of it is free."),
        NotificationType::EndpointDisabled => (ENDPOINT, "The service disabled a webhook endpoint."),
        NotificationType::WebhookTest => (ENDPOINT, "A test of the webhook endpoint was requested."),
    }
}

/// Defines the schemas of the bodies.
pub(super) fn define(schemas: &mut Schemas) {
    type Data = fn(&mut Schemas) -> RefOr<Schema>;
    let kinds: [(&str, Data, &str); 6] = [
        (DOCUMENT, |schemas| schemas.refer::<DocumentNotificationJson>(), "A notification about a document."),
        (CONTRACT, |schemas| schemas.refer::<ContractNotificationJson>(), "A notification about a contract."),
        (BILLING, |schemas| schemas.refer::<BillingNotificationJson>(), "A notification about the billing of a contract."),
        (LIMIT, |schemas| schemas.refer::<LimitNotificationJson>(), "A notification about the number of a limit."),
        (GRANT, |schemas| schemas.refer::<GrantJson>(), "A notification about prepaid credit."),
        (ENDPOINT, |schemas| schemas.refer::<EndpointNotificationJson>(), "A notification about a webhook endpoint."),
    ];
    for (name, data, meaning) in kinds {
        schemas.define(name, |schemas| body(schemas, data, meaning));
    }
}

/// Returns the schema of a body. It permits further fields, which can be added later.
fn body(schemas: &mut Schemas, data: fn(&mut Schemas) -> RefOr<Schema>, meaning: &str) -> Schema {
    let sequence = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1));
    let sequence = sequence.description(Some("Number among the notifications of the subject, starting at 1."));
    let epoch = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    let meaning_of_epoch =
        "Epoch: seconds since 1970 at the last restore of the database before the change, or 0. Compare it first.";
    let epoch = epoch.description(Some(meaning_of_epoch));
    let subject =
        text().description(Some("Subject: `document:`, `contract:`, `limit:`, `grant:` or `endpoint:` and a reference."));
    let mut object = ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(meaning))
        .property("type", schemas.refer::<NotificationTypeWord>())
        .property("timestamp", schemas.refer::<TimestampText>())
        .property("subject", subject)
        .property("epoch", epoch)
        .property("sequence", sequence)
        .property("data", data(schemas));
    for name in ["type", "timestamp", "subject", "epoch", "sequence", "data"] {
        object = object.required(name);
    }
    object.into()
}

/// Returns the webhooks of the document: a request for each type.
pub(super) fn webhooks() -> Value {
    let webhook = |kind: &NotificationType| {
        let (schema, meaning) = described(*kind);
        let name = kind.as_str();
        let header = |name: &str, meaning: &str| json!({"name": name, "in": "header", "required": true, "description": meaning, "schema": {"type": "string"}});
        let request = json!({
            "operationId": format!("receive_{}", name.replace('.', "_")),
            "tags": [super::NOTIFICATIONS],
            // The signature authenticates the request. Without this, clients would send the service's own credentials.
            "security": [],
            "summary": meaning,
            "description": "Sent by the service to webhook endpoints, at least once. A status of 2xx accepts the notification.",
            "parameters": [
                header("webhook-id", "Reference of the notification, which is the same at every attempt."),
                header("webhook-timestamp", "Time of the attempt in seconds since 1970."),
                header("webhook-signature", "Signatures of Standard Webhooks 1.0.0, separated by spaces."),
            ],
            "requestBody": {
                "required": true,
                "content": {JSON: {"schema": {"$ref": format!("#/components/schemas/{schema}")}}},
            },
            "responses": {"2XX": {"description": "The notification is accepted"}},
        });
        (name.to_owned(), json!({"post": request}))
    };
    NotificationType::ALL.iter().map(webhook).collect::<Map<String, Value>>().into()
}

#[cfg(test)]
mod tests {
    use billing_domain::report::NumbersAs;

    use super::*;

    #[test]
    fn each_type_has_a_webhook_whose_body_is_described_with_all_its_fields() {
        let document = crate::openapi::described(NumbersAs::Number);
        let webhooks = document["webhooks"].as_object().expect("webhooks");
        assert_eq!(webhooks.len(), NotificationType::ALL.len());
        for kind in NotificationType::ALL {
            assert_eq!(webhooks[kind.as_str()]["post"]["security"], json!([]));
            let body = &webhooks[kind.as_str()]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"];
            let body = document.pointer(body.as_str().expect("a reference").trim_start_matches('#')).expect("a schema");
            let data = body["properties"]["data"]["$ref"].as_str().expect("a reference");
            let data = document.pointer(data.trim_start_matches('#')).expect("a schema");
            let fields = data["properties"].as_object().expect("fields");
            // Webhooks send all fields, also those that are null.
            assert_eq!(data["required"].as_array().map(Vec::len), Some(fields.len()), "{kind}: {data}");
        }
    }
}
