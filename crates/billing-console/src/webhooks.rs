//! Webhook pages: the form and the page of an endpoint, new secrets, and notifications with their deliveries.

use billing_api::operation::encoded;
use maud::{Markup, html};
use serde_json::Value;

use crate::list::{CellFormat, Column, table};
use crate::listings::{DELIVERIES, DELIVERIES_OF, WEBHOOKS, column};
use crate::parts::{changes, facts, href, identifier, instant, link, name, number, section, state, subject, words};
use crate::thing::fields;
use billing_api::dto::credit::GrantJson;
use billing_api::dto::notifications::{
    ContractNotificationJson, DocumentNotificationJson, EndpointNotificationJson, LimitNotificationJson, NotificationDataJson,
    NotificationJson,
};
use billing_api::dto::webhooks::{RotatedSecretJson, WebhookAttemptJson, WebhookDeliveryJson, WebhookEndpointJson};
use billing_api::field;
use billing_api::json_view::{JsonAnswer, JsonView};

/// Overlap periods of a replaced secret with its successor, in hours.
const OVERLAPS: [(&str, &str); 3] = [("0", "immediately"), ("24", "in 1 day"), ("168", "in 7 days")];

const ATTEMPTS: &[Column] = &[
    column("Time", field!(WebhookAttemptJson, at), CellFormat::Instant),
    column("Outcome", field!(WebhookAttemptJson, outcome), CellFormat::Word),
    column("HTTP status", field!(WebhookAttemptJson, status), CellFormat::Number),
    column("Milliseconds", field!(WebhookAttemptJson, ms), CellFormat::Number),
    column("Response", field!(WebhookAttemptJson, excerpt), CellFormat::Text),
];

/// Columns of the notifications of a document, contract or credit grant.
const NOTIFICATIONS: &[Column] = &[
    column("Time", field!(NotificationJson, timestamp), CellFormat::Instant),
    column("Type", field!(NotificationJson, kind), CellFormat::Event)
        .leading(DELIVERIES.part, field!(NotificationJson, notification_ref)),
    column("Sequence", field!(NotificationJson, sequence), CellFormat::Number),
    column("Position", field!(NotificationJson, position), CellFormat::Number),
];

/// Values of the form of an endpoint.
#[derive(Clone, Debug, Default)]
pub struct WebhookForm {
    /// Title.
    pub title: String,
    /// Target.
    pub action: String,
    /// Idempotency key.
    pub key: String,
    /// URL.
    pub url: String,
    /// Event types, separated by spaces.
    pub event_types: String,
    /// References of customers, separated by spaces.
    pub customer_refs: String,
    /// Description.
    pub description: String,
    /// Whether notifications are sent.
    pub enabled: bool,
    /// Errors by field.
    pub wrong: Vec<(String, String)>,
}

/// API responses for the page of an endpoint.
#[derive(Clone, Debug, Default)]
pub struct WebhookAnswers {
    /// The endpoint.
    pub endpoint: JsonAnswer<WebhookEndpointJson>,
    /// The latest deliveries.
    pub deliveries: Value,
    /// Whether the visitor may change the endpoint.
    pub may_change: bool,
}

/// Renders the form that creates or edits an endpoint.
pub fn webhook_form(form: &WebhookForm) -> Markup {
    html! {
        h1 { (form.title) }
        @for (_, reason) in form.wrong.iter().filter(|(field, _)| field.is_empty()) { p.wrong { (reason) } }
        form.stack.wide method="post" action=(form.action) {
            input type="hidden" name="form_key" value=(form.key);
            (entry(form, "url", "URL", &form.url, "Address that receives notifications, with https."))
            (entry(form, "event_types", "Event types", &form.event_types,
                "Types such as document.issued or groups such as document.*, separated by spaces. Empty: all types."))
            (entry(form, "customer_refs", "Customers", &form.customer_refs,
                "References, separated by spaces. Empty: notifications about all customers."))
            (entry(form, "description", "Description", &form.description, "Text for people."))
            label.check {
                input type="checkbox" name="enabled" value="yes" checked[form.enabled];
                span { "Send notifications" }
            }
            div { button { "Save" } " " a href=(href(&[WEBHOOKS.part])) { "Cancel" } }
        }
    }
}

fn entry(form: &WebhookForm, name: &str, label: &str, value: &str, meaning: &str) -> Markup {
    let reasons = form.wrong.iter().filter(|(field, _)| field.split('/').next() == Some(name));
    html! {
        div.field {
            label for=(name) { (label) }
            input id=(name) name=(name) value=(value) aria-describedby={ "told-" (name) };
            p.hint id={ "told-" (name) } { (meaning) }
            @for (_, reason) in reasons { p.wrong { (reason) } }
        }
    }
}

/// Renders the page of an endpoint.
pub fn webhook(answers: &WebhookAnswers) -> Markup {
    let at = answers.endpoint.view();
    let reference = at.endpoint_ref().to_text();
    let all = format!("{}?endpoint_ref={}", href(&[DELIVERIES.part]), encoded(&reference));
    html! {
        h1 { "Webhook endpoint " (state(at.state())) }
        @if answers.may_change { (actions(&reference)) }
        (facts(&[
            ("URL", html! { code { (at.url().to_text()) } }),
            ("Description", html! { (name(at.description())) }),
            ("Event types", html! { (joined(at.event_types())) }),
            ("Customers", html! { (joined(at.customer_refs())) }),
            ("Disabled because", html! { @if at.disabled_reason().is_there() { (words(&at.disabled_reason().to_text())) } }),
            ("Paused until", instant(at.paused_until())),
            ("Failing since", instant(at.failing_since())),
            ("Last delivered", instant(at.last_delivered_at())),
            ("Pending", number(at.pending())),
            ("Failed", number(at.failed())),
            ("Created", instant(at.created_at())),
            ("Endpoint ID", identifier("Show", &reference)),
        ]))
        (section("Deliveries", &html! {
            @if JsonView::<Value>::of(&answers.deliveries).elements().next().is_some() {
                (table("Deliveries", &DELIVERIES.some(DELIVERIES_OF), JsonView::of(&answers.deliveries)))
                p { (link(Some(all), "All deliveries")) " · " (changes("WEBHOOK_ENDPOINT", &reference)) }
            } @else { p.muted { "No deliveries yet." } }
        }))
    }
}

fn actions(reference: &str) -> Markup {
    let doing = |what: &str| href(&[WEBHOOKS.part, what, reference]);
    html! {
        div.actions {
            a.button href=(href(&["edit", WEBHOOKS.part, reference])) { "Edit" }
            form method="post" action=(doing("test")) { button { "Send test" } }
        }
        details {
            summary { "Manage" }
            form.stack method="post" action=(doing("rotate")) {
                label { "Old secret expires" select name="overlap_hours" {
                    @for (hours, shown) in OVERLAPS { option value=(hours) selected[hours == "24"] { (shown) } }
                } }
                div { button { "Rotate secret" } }
            }
            form.stack method="post" action=(doing("delete")) {
                p.hint { "The endpoint is deleted with its deliveries. Notifications are kept." }
                div { button.grave { "Delete endpoint" } }
            }
        }
    }
}

fn joined<T>(texts: JsonView<'_, Vec<T>>) -> String {
    texts.items().map(JsonView::to_text).collect::<Vec<_>>().join(", ")
}

/// Renders the page of a new secret. A new endpoint has no old secret.
pub fn webhook_secret(at: JsonView<'_, RotatedSecretJson>) -> Markup {
    html! {
        h1 { "Secret of the webhook endpoint" }
        p { strong { "Save the secret now. It won't be shown again." } " The receiver verifies signatures with it." }
        (facts(&[
            ("Secret", html! { code { (at.secret().to_text()) } }),
            ("Old secret expires", instant(at.previous_expires_at())),
        ]))
        p { a href=(href(&[WEBHOOKS.part, &at.endpoint_ref().to_text()])) { "Webhook endpoint" } }
    }
}

/// Renders a notification with its deliveries to each endpoint.
pub fn delivered(at: JsonView<'_, NotificationJson>, deliveries: JsonView<'_>, may_send: bool) -> Markup {
    let reference = at.notification_ref().to_text();
    html! {
        h1 { "Notification: " (words(&at.kind().to_text().replace('.', " "))) }
        (facts(&[
            ("Time", instant(at.timestamp())),
            ("Subject", subject(&at.subject().to_text(), &name_of_subject(at.data()))),
            ("Sequence", number(at.sequence())),
            ("Position", number(at.position())),
            ("Notification ID", identifier("Show", &reference)),
        ]))
        (section("Content", &fields(at.data().any())))
        @for delivery in deliveries.elements().map(JsonView::read_as::<WebhookDeliveryJson>) {
            @let (endpoint, url) = (delivery.endpoint_ref().to_text(), delivery.endpoint_url().to_text());
            (section("Delivery", &html! {
                (facts(&[
                    ("Endpoint", link(Some(href(&[WEBHOOKS.part, &endpoint])), if url.is_empty() { "Webhook endpoint" } else { &url })),
                    ("State", state(delivery.state())),
                    ("Next attempt", instant(delivery.due_at())),
                ]))
                @if delivery.attempts().items().next().is_some() { (table("Attempts", ATTEMPTS, delivery.attempts().any())) }
                @if may_send {
                    form method="post" action=(href(&[WEBHOOKS.part, "send", &endpoint])) {
                        input type="hidden" name="notification_ref" value=(reference);
                        button { "Send again" }
                    }
                }
            }))
        }
    }
}

/// Returns the number, URL, metric or name of the subject in the data of a notification.
fn name_of_subject(data: JsonView<'_, NotificationDataJson>) -> String {
    let document = data.read_as::<DocumentNotificationJson>().document_number().to_text();
    let contract = data.read_as::<ContractNotificationJson>().contract_number().to_text();
    let metric = data.read_as::<LimitNotificationJson>().metric().to_text();
    let grant = data.read_as::<GrantJson>().name().to_text();
    let names = [document, contract, metric, grant, data.read_as::<EndpointNotificationJson>().url().to_text()];
    names.into_iter().find(|name| !name.is_empty()).unwrap_or_default()
}

/// Renders the notifications of a document, contract or credit grant, unless there are none.
pub(crate) fn notifications(all: JsonView<'_, Vec<NotificationJson>>) -> Markup {
    html! {
        @if all.items().next().is_some() { (section("Notifications", &table("Notifications", NOTIFICATIONS, all.any()))) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_endpoint_has_actions_only_for_those_who_may_change_it() {
        let endpoint = json!({"endpoint_ref": "e<", "url": "https://example.com/<b>", "state": "FAILING", "event_types": ["*"]});
        let delivery = json!({"notification_ref": "n<", "type": "document.issued", "state": "PENDING"});
        let answers =
            |may_change| WebhookAnswers { endpoint: endpoint.clone().into(), deliveries: json!([delivery]), may_change };
        let shown = webhook(&answers(true)).into_string();
        assert!(shown.contains("/console/webhooks/test/e%3C") && !shown.contains("<b>"), "{shown}");
        assert!(shown.contains("/console/deliveries/n%3C"), "{shown}");
        assert!(!webhook(&answers(false)).into_string().contains("<form"));
    }

    #[test]
    fn a_notification_of_credit_is_named_by_its_grant_and_leads_to_it() {
        let data = json!({"grant_ref": "g", "name": "Welcome <b>", "currency": "EUR", "free": 12.5, "to": "2026-12-31"});
        let notification = json!({"notification_ref": "n", "type": "credit.ending", "subject": "grant:g", "data": data});
        let shown = delivered(JsonView::of(&notification), JsonView::of(&json!([])), false).into_string();
        for part in ["<a href=\"/console/credit/g\">Welcome &lt;b&gt;</a>", ">12.50 <span", "<time datetime=\"2026-12-31\">"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }

    #[test]
    fn any_delivery_is_sent_again_on_request() {
        let notification = json!({"notification_ref": "n", "type": "document.issued"});
        let shown = |state: &str, may_send| {
            let deliveries = json!([{"endpoint_ref": "e", "state": state, "attempts": []}]);
            delivered(JsonView::of(&notification), JsonView::of(&deliveries), may_send).into_string()
        };
        assert!(shown("DELIVERED", true).contains("Send again") && !shown("DELIVERED", false).contains("Send again"));
        assert!(shown("PENDING", true).contains("Send again"), "a delivery may wait for its next attempt for hours");
    }

    #[test]
    fn a_form_shows_each_error_at_its_field() {
        let wrong = vec![("event_types/0".to_owned(), "no <type>".to_owned()), (String::new(), "too many".to_owned())];
        let shown = webhook_form(&WebhookForm { wrong, ..WebhookForm::default() }).into_string();
        assert!(shown.contains("no &lt;type&gt;") && shown.contains("too many"), "{shown}");
        assert_eq!(shown.matches("class=\"wrong\"").count(), 2, "{shown}");
    }
}
