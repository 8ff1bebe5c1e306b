//! Pages and forms for webhook endpoints and deliveries.

use crate::{Crumb, JsonView, Notice, WebhookAnswers, WebhookForm, href, listings};
use billing_api::console::{FormData, PageAnswer};
use billing_api::operations::{
    CreateWebhookEndpoint, DeleteWebhookEndpoint, EditWebhookEndpoint, GetNotification, GetWebhookEndpoint, ListNotifications,
    ListWebhookDeliveries, ReplayWebhookDeliveries, RotateWebhookSecret, TestWebhookEndpoint,
};
use billing_application::UseCase;
use serde_json::{Map, Value, json};

use super::form_data::{field, key};
use super::lists::{crumbs, few};
use super::page_builder::PageBuilder;
use super::reply::{belongs_beside, caption, html, to};
use super::session_user::{AnswerOf, SessionUser};
use billing_api::dto::webhooks::{RotatedSecretJson, WebhookDeliveryJson};
use billing_api::json_view::JsonAnswer;
use billing_api::problem::Problem;

/// Number of notifications on the page of their subject, and of deliveries that are searched for those of a notification.
const MANY: &str = "1000";

/// Renders the page of an endpoint.
pub(super) async fn page(user: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    let endpoint = user.get::<GetWebhookEndpoint>(reference).await?;
    let deliveries = few(user, &listings::DELIVERIES, &[("endpoint_ref", reference)]).await?;
    let may_change = user.may(UseCase::EditWebhookEndpoint);
    let title = endpoint.view().url().to_text();
    let body = crate::webhook(&WebhookAnswers { endpoint, deliveries, may_change });
    Ok(PageBuilder { title, part: listings::WEBHOOKS.part, crumbs: crumbs(&listings::WEBHOOKS), body })
}

/// Renders a notification with its deliveries.
pub(super) async fn delivery(user: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    let notification = user.get::<GetNotification>(reference).await?;
    let at = notification.view();
    let (kind, subject) = (at.kind().to_text(), at.subject().to_text());
    let asked = crate::query(&[("type", &kind), ("subject", &subject), ("pageSize", MANY)]);
    let all = user.list(&ListWebhookDeliveries::SPEC, &asked).await?.elements;
    let of_it =
        JsonView::<Vec<WebhookDeliveryJson>>::of(&all).items().filter(|delivery| delivery.notification_ref().is(reference));
    let deliveries = Value::Array(of_it.map(|delivery| delivery.json().clone()).collect());
    // A test belongs to no delivery that could be sent again.
    let body = crate::delivered(at, JsonView::of(&deliveries), user.may(UseCase::ReplayWebhookDeliveries));
    Ok(PageBuilder { title: kind, part: listings::WEBHOOKS.part, crumbs: crumbs(&listings::DELIVERIES), body })
}

/// Returns the notifications of a subject such as `document:` and a reference.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn of_subject(user: &SessionUser, kind: &str, reference: &str) -> AnswerOf<ListNotifications> {
    let subject = format!("{kind}:{reference}");
    user.get_with::<ListNotifications>("", &crate::query(&[("subject", &subject), ("pageSize", MANY)])).await
}

/// Renders the form that creates or edits an endpoint.
pub(super) async fn form(user: &SessionUser, edited: Option<&str>) -> Result<PageBuilder, Problem> {
    let Some(reference) = edited else {
        return Ok(made(WebhookForm { enabled: true, ..blank(user, None) }, None));
    };
    let endpoint = user.quietly().get::<GetWebhookEndpoint>(reference).await?;
    let at = endpoint.view();
    let form = WebhookForm {
        url: at.url().to_text(),
        event_types: joined(at.event_types()),
        customer_refs: joined(at.customer_refs()),
        description: at.description().to_text(),
        enabled: at.enabled().is_true(),
        ..blank(user, edited)
    };
    Ok(made(form, edited))
}

/// Returns texts, separated by spaces.
fn joined<T>(texts: JsonView<'_, Vec<T>>) -> String {
    texts.items().map(JsonView::to_text).collect::<Vec<_>>().join(" ")
}

fn blank(user: &SessionUser, edited: Option<&str>) -> WebhookForm {
    let part = listings::WEBHOOKS.part;
    let (title, action) = match edited {
        Some(reference) => ("Edit webhook endpoint", href(&["edit", part, reference])),
        None => ("New webhook endpoint", href(&["new", part])),
    };
    WebhookForm { title: title.to_owned(), action, key: user.unique(), ..WebhookForm::default() }
}

fn made(form: WebhookForm, edited: Option<&str>) -> PageBuilder {
    let part = listings::WEBHOOKS.part;
    let mut crumbs = crumbs(&listings::WEBHOOKS);
    crumbs.extend(edited.map(|reference| Crumb { name: form.url.clone(), href: href(&[part, reference]) }));
    let body = crate::webhook_form(&form);
    PageBuilder { title: form.title, part, crumbs, body }
}

pub(super) async fn save(user: &SessionUser, edited: Option<&str>, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let text = |name| field(submitted, name).unwrap_or_default();
    let list = |name| {
        let all: Vec<&str> = text(name).split_whitespace().collect();
        if all.is_empty() { Value::Null } else { json!(all) }
    };
    let mut body = Map::from_iter([
        ("url".to_owned(), json!(text("url"))),
        ("description".to_owned(), json!(field(submitted, "description"))),
        ("customer_refs".to_owned(), list("customer_refs")),
        ("enabled".to_owned(), json!(field(submitted, "enabled").is_some())),
    ]);
    let types = list("event_types");
    body.insert("event_types".to_owned(), if types.is_null() { json!(["*"]) } else { types });
    let (id, reference) = match edited {
        Some(reference) => (&EditWebhookEndpoint::SPEC, reference),
        None => (&CreateWebhookEndpoint::SPEC, ""),
    };
    let problem = match user.change(id, reference, key(submitted), Some(Value::Object(body))).await {
        Ok(answer) => match edited {
            Some(reference) => return Ok(to(&format!("{}?done=edit", href(&[listings::WEBHOOKS.part, reference])))),
            None => return Ok(shown_secret(user, &answer.json()?.into())),
        },
        Err(problem) => problem,
    };
    if !belongs_beside(&problem) {
        return Err(problem);
    }
    let mut wrong: Vec<(String, String)> =
        problem.errors().iter().map(|error| (error.pointer.trim_start_matches('/').to_owned(), error.detail.clone())).collect();
    if wrong.is_empty() {
        wrong.push((String::new(), problem.detail().to_owned()));
    }
    let form = WebhookForm {
        url: text("url").to_owned(),
        event_types: text("event_types").to_owned(),
        customer_refs: text("customer_refs").to_owned(),
        description: text("description").to_owned(),
        enabled: field(submitted, "enabled").is_some(),
        wrong,
        ..blank(user, edited)
    };
    let page = made(form, edited).page(user, None);
    Ok(caption(problem, page))
}

/// Renders the page of a new secret, which is shown only once.
fn shown_secret(user: &SessionUser, answer: &JsonAnswer<RotatedSecretJson>) -> PageAnswer {
    let body = crate::webhook_secret(answer.view());
    html(PageBuilder::of("Secret of the webhook endpoint", listings::WEBHOOKS.part, body).page(&user.quietly(), None))
}

pub(super) async fn rotate(user: &SessionUser, reference: &str, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let hours = field(submitted, "overlap_hours").and_then(|hours| hours.parse::<u16>().ok());
    let body = hours.map(|hours| json!({"overlap_hours": hours}));
    match user.carry_out::<RotateWebhookSecret>(reference, None, body).await {
        Ok(rotated) => Ok(shown_secret(user, &rotated)),
        Err(problem) => beside(user, reference, problem).await,
    }
}

pub(super) async fn test(user: &SessionUser, reference: &str) -> Result<PageAnswer, Problem> {
    let attempt = user.carry_out::<TestWebhookEndpoint>(reference, None, None).await?;
    let at = attempt.view();
    let (outcome, status, submitted) = (at.outcome().to_text(), at.status().to_text(), at.excerpt().to_text());
    let notice = if at.outcome().is("DELIVERED") {
        Notice::Done(format!("Test delivered with status {status}."))
    } else {
        let caption = [status, submitted].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
        Notice::Refused(outcome, caption)
    };
    Ok(html(page(user, reference).await?.page(user, Some(notice))))
}

/// Sends a notification again.
pub(super) async fn send(user: &SessionUser, reference: &str, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let notification = field(submitted, "notification_ref").unwrap_or_default();
    let body = json!({"notification_refs": [notification], "only": "ALL"});
    match user.carry_out::<ReplayWebhookDeliveries>(reference, None, Some(body)).await {
        Ok(_) => Ok(to(&format!("{}?done=send", href(&[listings::DELIVERIES.part, notification])))),
        Err(problem) => beside(user, reference, problem).await,
    }
}

pub(super) async fn delete(user: &SessionUser, reference: &str) -> Result<PageAnswer, Problem> {
    user.answer(&DeleteWebhookEndpoint::SPEC, reference, "").await?;
    Ok(to(&format!("{}?done=delete-webhook", href(&[listings::WEBHOOKS.part]))))
}

/// Renders a conflict on the page of the endpoint. Other problems have a page of their own.
async fn beside(user: &SessionUser, reference: &str, problem: Problem) -> Result<PageAnswer, Problem> {
    if problem.status().as_u16() != 409 {
        return Err(problem);
    }
    let notice = Notice::Refused(problem.code().to_owned(), problem.detail().to_owned());
    let page = page(user, reference).await?.page(user, Some(notice));
    Ok(caption(problem, page))
}
