//! Notifications: their rendered form, as webhooks send it, and their form in the feed.

use billing_domain::calendar::Timestamp;
use billing_domain::document::DocumentKind;
use billing_domain::limit::LimitValue;
use billing_domain::notification::epoch::Epoch;
use billing_domain::notification::{
    BillingFact, ContractFact, DocumentFact, EndpointFact, Fact, FactData, LimitFact, MAX_DATA_BYTES, Notification,
};
use billing_domain::ports::PurposeKind;
use billing_domain::runs::DocumentFailure;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::credit::GrantJson;
use super::declare::answer;
use super::enums::{ContractStateWord, DocumentKindWord, DocumentStateWord, LimitMetricWord, NotificationTypeWord, PurposeWord};
use super::metadata::MetadataJson;
use super::values::{CurrencyCode, DateText, LineText, TimestampText};
use super::wire::{AssignedRef, ExactNumber, NamedRef, written};

answer! {
    /// A notification.
    NotificationJson of notification: Notification {
        /// Reference. Webhooks send it in the header `webhook-id`.
        notification_ref: AssignedRef = notification.notification_ref,
        /// Number among the organization's notifications, starting at 1, or after a restore of the database at the epoch times
        /// 1,000,000; null for a moment after the notification is stored.
        position: Option<u64> = notification.position,
        /// Type.
        kind as "type": NotificationTypeWord = notification.kind,
        /// Time of the change.
        timestamp: TimestampText = notification.created_at,
        /// Subject: `document:`, `contract:`, `limit:` or `endpoint:` and a reference.
        #[schema(example = "document:0198c5f2-9a11-7c02-8d3e-5f0a1b2c3d4e")]
        subject: String = notification.subject.to_string(),
        /// Epoch: seconds since 1970 at the last restore of the database from a backup before the change, or 0. Numbers of an
        /// earlier epoch can repeat.
        epoch: u64 = epoch_of(&notification.body),
        /// Number among the notifications of the subject, starting at 1.
        #[schema(minimum = 1)]
        sequence: u64 = notification.sequence,
        /// State of the subject at this sequence.
        data: NotificationDataJson = &notification.body,
    }
}

/// Returns the epoch of a rendered notification.
fn epoch_of(body: &str) -> u64 {
    #[derive(Deserialize)]
    struct OfBody {
        epoch: u64,
    }
    serde_json::from_str(body).map_or(0, |OfBody { epoch }| epoch)
}

/// The `data` of a rendered notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationDataJson(String);

impl From<&String> for NotificationDataJson {
    fn from(body: &String) -> Self {
        Self(body.clone())
    }
}

impl Serialize for NotificationDataJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body: Value = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        body.get_mut("data").map(Value::take).unwrap_or_default().serialize(serializer)
    }
}

impl PartialSchema for NotificationDataJson {
    fn schema() -> RefOr<Schema> {
        let description = "A document without its lines, a contract without its products, the result of billing a contract, or an \
                           endpoint. Fields can be added later.";
        let anything = AdditionalProperties::FreeForm(true);
        ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(anything)).description(Some(description)).into()
    }
}

impl ToSchema for NotificationDataJson {}

answer! {
    /// A document in a notification.
    DocumentNotificationJson of fact: DocumentFact {
        let (document, head) = (&fact.document, &fact.document.head);
        let has_due_date = document.status.is_issued() && head.kind != DocumentKind::Credit;
        /// Reference.
        document_ref: AssignedRef = head.document_ref,
        /// Number in the series of its entity and kind.
        #[schema(example = "UB-INV-1")]
        document_number: String = head.number.to_string(),
        /// Document kind.
        kind: DocumentKindWord = head.kind,
        /// Purpose.
        purpose: PurposeWord = PurposeKind::from(head.purpose),
        /// State.
        state: DocumentStateWord = fact.state,
        /// Billed contract.
        contract_ref: AssignedRef = head.contract_ref,
        /// Customer.
        customer_ref: NamedRef = &fact.customer_ref,
        /// Supplier entity.
        entity_ref: NamedRef = &head.entity_ref,
        /// Currency of all amounts.
        currency: CurrencyCode = head.currency,
        /// First day of the document's own period.
        period_start: DateText = head.period.start(),
        /// Last day of the document's own period.
        period_end: DateText = head.period.last_day(),
        /// Total; null if the document was never issued.
        total: Option<ExactNumber> = document.total,
        /// Amount due; null for a credit, for a void document, and if the document was never issued.
        amount_due: Option<ExactNumber> = fact.owed.and_then(|owed| owed.amount_due),
        /// Date of issue.
        issue_date: Option<DateText> = document.issue_date,
        /// Due date; null for a credit or a void document.
        due_date: Option<DateText> = document.due_date.filter(|_| has_due_date),
        /// Parent invoice.
        parent_document_ref: Option<AssignedRef> = head.parent,
        /// Amount of a credit that is neither applied nor refunded; null unless the document is an issued credit.
        unapplied_amount: Option<ExactNumber> = fact.owed.and_then(|owed| owed.unapplied),
        /// Amount written off; null if the document was never issued.
        written_off_amount: Option<ExactNumber> = fact.owed.map(|owed| owed.written_off),
    }
}

answer! {
    /// A contract in a notification.
    ContractNotificationJson of fact: ContractFact {
        let contract = &fact.contract;
        /// Contract reference.
        contract_ref: AssignedRef = contract.contract_ref,
        /// Customer reference.
        customer_ref: NamedRef = &contract.customer_ref,
        /// Purchase order number.
        po_number: Option<LineText> = contract.po_number.as_ref(),
        /// State on the day of the notification.
        state: ContractStateWord = fact.state,
        /// Version number, starting at 1.
        #[schema(minimum = 1)]
        version: u32 = contract.version,
        /// Number among the organization's contracts.
        #[schema(example = "C-1")]
        contract_number: String = contract.number_text(),
        /// Last day of the product that ends last.
        effective_end_date: Option<DateText> = contract.effective_end_date(),
        /// Time of the cancellation.
        cancelled_at: Option<TimestampText> = contract.cancelled_at,
        /// Keys and values of the caller.
        metadata: MetadataJson = &contract.metadata,
    }
}

answer! {
    /// A document that could not be issued, or a contract that could not be billed at all, in a notification.
    BillingFailureJson of failure: DocumentFailure {
        let document = failure.document;
        /// Document; null if it does not exist yet, or if the whole contract failed.
        document_ref: Option<AssignedRef> = document.and_then(|document| document.document_ref),
        /// First day of the document's own period; null if the whole contract failed.
        period_start: Option<DateText> = document.map(|document| document.period.start()),
        /// Last day of the document's own period; null if the whole contract failed.
        period_end: Option<DateText> = document.map(|document| document.period.last_day()),
        /// Stable error code.
        #[schema(example = "paper_incomplete")]
        code: String = failure.code.clone(),
    }
}

answer! {
    /// The result of billing a contract in a notification.
    BillingNotificationJson of fact: BillingFact {
        let failure = fact.failure.as_ref();
        /// Contract reference.
        contract_ref: AssignedRef = fact.contract_ref,
        /// Number among the organization's contracts.
        #[schema(example = "C-1")]
        contract_number: String = fact.contract_number.clone(),
        /// Customer reference.
        customer_ref: NamedRef = &fact.customer_ref,
        /// Stable error code of the first failure; null if the contract is billed again.
        #[schema(example = "paper_incomplete")]
        code: Option<String> = failure.and_then(|failure| failure.first_code()),
        /// Explanation of the first failure; null if the contract is billed again.
        detail: Option<String> = failure.map(|failure| failure.detail.clone()),
        /// First 20 documents that could not be issued, each with its code; null if the contract is billed again.
        failures: Option<Vec<BillingFailureJson>> = failure.map(|failure| failure.failures.iter().map(BillingFailureJson::from).collect::<Vec<_>>()),
    }
}

answer! {
    /// The number of a limit in a notification.
    LimitNotificationJson of fact: LimitFact {
        let LimitValue { limit, window, value, .. } = &fact.number;
        /// Reference of the limit.
        limit_ref: AssignedRef = limit.limit_ref,
        /// Number that the limit watches.
        metric: LimitMetricWord = limit.metric.kind(),
        /// Customer reference.
        customer_ref: NamedRef = &fact.customer_ref,
        /// Contract whose service periods are counted; null for an amount owed.
        contract_ref: Option<AssignedRef> = limit.metric.product().map(|(contract_ref, _)| contract_ref),
        /// Threshold or `max` that the number reached or left.
        threshold: ExactNumber = fact.level,
        /// Number after the change, without holds.
        value: ExactNumber = *value,
        /// Largest number up to which usage is accepted; null for any number.
        max: Option<ExactNumber> = limit.levels.max,
        /// First day of the service period that is counted; null for an amount owed.
        window_start: Option<DateText> = window.map(|window| window.start()),
        /// Last day of the service period that is counted; null for an amount owed.
        window_end: Option<DateText> = window.map(|window| window.last_day()),
    }
}

answer! {
    /// A webhook endpoint in a notification.
    EndpointNotificationJson of fact: EndpointFact {
        /// Endpoint reference.
        endpoint_ref: AssignedRef = fact.endpoint_ref,
        /// URL.
        #[schema(example = "https://example.com/hooks")]
        url: String = fact.url.clone(),
        /// Whether notifications are sent.
        enabled: bool = fact.is_enabled,
        /// Reason why the service disabled the endpoint.
        disabled_reason: Option<String> = fact.disabled_reason.as_ref().map(ToString::to_string),
    }
}

/// A rendered notification.
#[derive(Serialize)]
struct NotificationBody {
    #[serde(rename = "type")]
    kind: NotificationTypeWord,
    timestamp: TimestampText,
    subject: String,
    epoch: u64,
    sequence: u64,
    data: Value,
}

/// Renders a fact that became true at an instant of an epoch. Webhooks sign and send these bytes.
pub(super) fn notification_body(fact: &Fact, epoch: Epoch, at: Timestamp) -> String {
    fn of(answer: impl Serialize) -> Value {
        serde_json::to_value(answer).expect("texts and numbers under names can be written")
    }
    let data = match &fact.data {
        FactData::Document(document) => of(DocumentNotificationJson::from(&**document)),
        FactData::Contract(contract) => of(ContractNotificationJson::from(&**contract)),
        FactData::Billing(billing) => of(BillingNotificationJson::from(&**billing)),
        FactData::Grant(view) => of(GrantJson::from(&**view)),
        FactData::Limit(limit) => of(LimitNotificationJson::from(&**limit)),
        FactData::Endpoint(endpoint) => of(EndpointNotificationJson::from(&**endpoint)),
    };
    written(&NotificationBody {
        kind: fact.kind.into(),
        timestamp: TimestampText::from(at),
        subject: fact.subject().to_string(),
        epoch: epoch.number(),
        sequence: fact.sequence,
        data: bounded(data),
    })
}

/// Returns data that is short enough, or only its first field, which identifies the subject, and the length of the rest.
fn bounded(data: Value) -> Value {
    let bytes = written(&data).len();
    if bytes <= MAX_DATA_BYTES {
        return data;
    }
    let mut short = json!({});
    if let (Some(short), Some((name, reference))) =
        (short.as_object_mut(), data.as_object().and_then(|fields| fields.iter().next()))
    {
        short.insert(name.clone(), reference.clone());
        short.insert("omitted_bytes".to_owned(), bytes.into());
    }
    short
}

#[cfg(test)]
mod tests {
    use billing_domain::calendar::{Date, Period};
    use billing_domain::notification::{BillingProblem, NotificationType};
    use billing_domain::refs::{ContractRef, CustomerId, CustomerRef, DocumentRef, EndpointRef, NotificationRef};
    use billing_domain::runs::FailedDocument;
    use uuid::Uuid;

    use super::*;

    fn at() -> Timestamp {
        Timestamp::parse("2026-02-01T02:00:03.412771Z").expect("an instant")
    }

    fn date(day: u32) -> Date {
        Date::from_ymd_opt(2026, 1, day).expect("a day of January")
    }

    fn failed(detail: &str) -> Fact {
        let id = Uuid::from_u128(7);
        Fact {
            kind: NotificationType::BillingFailed,
            sequence: 2,
            data: FactData::Billing(Box::new(BillingFact {
                contract_ref: ContractRef::from_uuid(id),
                contract_number: "C-1".to_owned(),
                customer_id: CustomerId::from_uuid(id),
                customer_ref: CustomerRef::parse("acme").expect("a reference"),
                failure: Some(BillingProblem {
                    failures: vec![
                        DocumentFailure {
                            document: Some(FailedDocument {
                                period: Period::inclusive(date(1), date(31)).expect("January"),
                                document_ref: Some(DocumentRef::from_uuid(Uuid::from_u128(9))),
                            }),
                            code: "paper_incomplete".to_owned(),
                        },
                        DocumentFailure { document: None, code: "amount_out_of_range".to_owned() },
                    ],
                    detail: detail.to_owned(),
                }),
            })),
        }
    }

    #[test]
    fn a_body_has_its_fields_in_their_order_and_the_feed_shows_its_data() {
        let body = notification_body(&failed("too many"), Epoch::new(1_769_911_204), at());
        let expected = r#"{"type":"billing.failed","timestamp":"2026-02-01T02:00:03.412771Z","subject":"contract:00000000-0000-0000-0000-000000000007","epoch":1769911204,"sequence":2,"data":{"contract_ref":"00000000-0000-0000-0000-000000000007","contract_number":"C-1","customer_ref":"acme","code":"paper_incomplete","detail":"too many","failures":[{"document_ref":"00000000-0000-0000-0000-000000000009","period_start":"2026-01-01","period_end":"2026-01-31","code":"paper_incomplete"},{"document_ref":null,"period_start":null,"period_end":null,"code":"amount_out_of_range"}]}}"#;
        assert_eq!(body, expected);
        let fact = failed("too many");
        let notification = Notification {
            notification_ref: NotificationRef::from_uuid(Uuid::from_u128(8)),
            customer_id: fact.customer_id(),
            subject: fact.subject(),
            sequence: fact.sequence,
            kind: fact.kind,
            body,
            created_at: at(),
            position: Some(5),
        };
        let shown = serde_json::to_value(NotificationJson::from(&notification)).expect("JSON");
        assert_eq!((&shown["position"], &shown["type"], &shown["sequence"]), (&json!(5), &json!("billing.failed"), &json!(2)));
        assert_eq!(shown["epoch"], json!(1_769_911_204));
        assert_eq!((&shown["data"]["code"], &shown["data"]["contract_number"]), (&json!("paper_incomplete"), &json!("C-1")));
    }

    #[test]
    fn data_that_is_too_long_is_reduced_to_its_reference() {
        let body: Value =
            serde_json::from_str(&notification_body(&failed(&"x".repeat(MAX_DATA_BYTES)), Epoch::default(), at())).expect("JSON");
        assert_eq!(body["data"]["contract_ref"], json!("00000000-0000-0000-0000-000000000007"));
        assert!(body["data"]["omitted_bytes"].as_u64().is_some_and(|bytes| bytes > MAX_DATA_BYTES as u64));
        assert_eq!(body["data"].as_object().map(serde_json::Map::len), Some(2));
    }

    #[test]
    fn an_endpoint_is_rendered_without_its_secrets() {
        let fact = EndpointFact {
            endpoint_ref: EndpointRef::from_uuid(Uuid::from_u128(7)),
            url: "https://example.com/hooks".to_owned(),
            is_enabled: false,
            disabled_reason: Some("GONE".to_owned()),
        };
        let shown = serde_json::to_value(EndpointNotificationJson::from(&fact)).expect("JSON");
        let expected = json!({
            "endpoint_ref": "00000000-0000-0000-0000-000000000007", "url": "https://example.com/hooks", "enabled": false,
            "disabled_reason": "GONE",
        });
        assert_eq!(shown, expected);
    }
}
