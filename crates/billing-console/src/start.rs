//! The setup up to the first invoice: five steps, the first API call and the wait for its event.

use billing_api::operation::encoded;
use maud::{Markup, html};
use serde_json::Value;

use crate::document::sheet;
use crate::form::{Item, Suggestions, shown_field};
use crate::list::table;
use crate::listings::{REFUSED, WHY};
use crate::parts::{href, link, section, state};
use billing_api::dto::documents::DocumentJson;
use billing_api::dto::keys::GeneratedKeyJson;
use billing_api::json_view::{JsonAnswer, JsonView};

/// A step of the setup.
#[derive(Clone, Debug)]
pub struct FirstStep {
    /// Name of the step in the form's target.
    pub name: &'static str,
    /// Title.
    pub title: &'static str,
    /// Purpose.
    pub why: &'static str,
    /// Name and link of the existing object.
    pub there: Option<(String, String)>,
    /// Form fields.
    pub items: Vec<Item>,
    /// Suggestions for fields.
    pub suggestions: Vec<Suggestions>,
    /// Errors that belong to no field.
    pub others: Vec<String>,
    /// Link to the complete form, if it exists.
    pub whole: Option<String>,
}

/// Content of the setup page.
#[derive(Clone, Debug)]
pub struct Start {
    /// Steps in order.
    pub steps: Vec<FirstStep>,
    /// Number and link of the document with the first event, if it exists.
    pub billed: Option<(String, String)>,
    /// Idempotency key, which identifies repeats.
    pub form_key: String,
}

/// Renders the setup page.
pub fn start(start: &Start) -> Markup {
    let next = start.steps.iter().position(|step| step.there.is_none());
    html! {
        h1 { "First steps" }
        @if next.is_some() {
            p {
                "Complete these five steps before you report usage. Each step makes one API call. You can change names, addresses \
                 and prices later, but neither references nor the prefix of document numbers once a document exists."
            }
        }
        ol.steps {
            @for (index, step) in start.steps.iter().enumerate() {
                li aria-current=[(next == Some(index)).then_some("step")] { (one(step, next == Some(index), &start.form_key)) }
            }
            li aria-current=[next.is_none().then_some("step")] {
                h2 { "Usage" }
                @if let Some((number, address)) = &start.billed {
                    p { span.done { "Done" } " The first event is on " a href=(address) { (number) } "." }
                } @else if next.is_none() {
                    p { "This step creates an API key and shows a command that reports an event." }
                    form method="post" action=(href(&["start", "key"])) {
                        input type="hidden" name="form_key" value=(start.form_key);
                        button { "Create key and show command" }
                    }
                } @else { p.muted { "Available after the contract is created." } }
            }
        }
    }
}

fn one(step: &FirstStep, is_next: bool, form_key: &str) -> Markup {
    let fields = || {
        step.items.iter().filter_map(|item| match item {
            Item::Field(field) => Some(field),
            Item::Group(_) | Item::List(_) => None,
        })
    };
    let is_refused = !step.others.is_empty() || fields().any(|field| !field.wrong.is_empty());
    html! {
        h2 { (step.title) }
        p.muted { (step.why) }
        @if let Some((name, address)) = &step.there {
            p { span.done { "Done" } " " a href=(address) { (name) } }
        } @else if is_next {
            @if is_refused { p.notice.refused role="alert" {
                "Nothing was saved."
                @for other in &step.others { " " (other) }
            } }
            form.stack.wide method="post" action=(href(&["start", step.name])) {
                div.fields { @for field in fields() { (shown_field(field, &step.suggestions, true)) } }
                input type="hidden" name="form_key" value=(form_key);
                div.pages {
                    button { "Save" }
                    @if let Some(whole) = &step.whole { a.muted href=(whole) { "Advanced" } }
                }
            }
        }
    }
}

/// The API key and the references of the first event.
#[derive(Clone, Debug)]
pub struct FirstCall {
    /// The API response with the key and its password, which is shown only once.
    pub made: JsonAnswer<GeneratedKeyJson>,
    /// Base URL of the service.
    pub service: String,
    /// Customer of the event.
    pub customer_ref: String,
    /// Usage product of the event.
    pub usage_product_ref: String,
    /// Contract that bills the event.
    pub contract_ref: String,
}

/// Renders the page with the first call.
pub fn first_call(call: &FirstCall) -> Markup {
    let FirstCall { made, service, customer_ref, usage_product_ref, contract_ref } = call;
    let (key, password) = (made.view().api_key().to_text(), made.view().password().to_text());
    let log_in = format!(
        "TOKEN=$(curl -s {service}/auth/login -H 'Content-Type: application/json' \\\n  -d '{{\"api_key\":\"{key}\",\"password\":\"{password}\"}}' | tr -d '\"')"
    );
    let report = format!(
        "curl -s {service}/api/usage/event -H \"Authorization: Bearer $TOKEN\" -H 'Version: V0' \\\n  -H 'Content-Type: application/json' \\\n  \
         -d '{{\"timestamp\":\"'$(date -u +%FT%TZ)'\",\"customer_ref\":\"{customer_ref}\",\"usage_product_ref\":\"{usage_product_ref}\",\"quantity\":1500}}'"
    );
    html! {
        h1 { "First event" }
        p { "Run this command in a shell. " strong { "Save the password now. It won't be shown again." } " Store it as a secret." }
        pre tabindex="0" { code #call { (log_in) "\n" (report) } }
        p { a.button href=(format!("{}?contract_ref={}", href(&["start", "wait"]), encoded(contract_ref))) { "Wait for the event" } }
    }
}

/// API responses for the page that waits for the first event.
#[derive(Clone, Debug)]
pub struct Waited {
    /// The document with the contract's first event, if it exists.
    pub document: JsonAnswer<DocumentJson>,
    /// Usage rejected today.
    pub refused: Value,
    /// Contract that bills the event.
    pub contract_ref: String,
    /// Whether the page refreshes automatically.
    pub is_looking: bool,
}

/// Renders the page that waits for the first event and then shows its invoice.
pub fn wait(waited: &Waited) -> Markup {
    let document = waited.document.view();
    let again = format!("?contract_ref={}", encoded(&waited.contract_ref));
    html! {
        @if document.is_there() {
            h1 { "First invoice" }
            p.notice role="status" { "The event was recorded on this invoice." }
            p { (link(Some(href(&["documents", &document.document_ref().to_text()])), &document.document_number().to_text())) " "
                (state(document.state())) ". The invoice is a draft until its period ends, and every event updates it." }
            (sheet(document, JsonView::of(&Value::Null)))
            p { a href=(href(&["usage"])) { "Usage" } " · " a href=(href(&[])) { "Home" } }
        } @else {
            h1 { "Waiting for the first event" }
            @if waited.is_looking {
                p role="status" { "No event on this contract yet. This page refreshes every few seconds." }
                p { a href=(format!("{again}&paused=true")) { "Stop refreshing" } }
            } @else {
                p role="status" { "No event on this contract yet." }
                p { a.button href=(again) { "Refresh" } }
            }
            @if JsonView::<Value>::of(&waited.refused).elements().next().is_some() {
                (section("Rejected today", &table("Rejected today", &REFUSED.some(WHY), JsonView::of(&waited.refused))))
            }
            p { a href=(href(&["start"])) { "Back to first steps" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(name: &'static str, there: bool) -> FirstStep {
        let there = there.then(|| ("Acme".to_owned(), "/console/customers/acme".to_owned()));
        let (items, suggestions, others) = (Vec::new(), Vec::new(), Vec::new());
        FirstStep { name, title: "A customer", why: "who pays", there, items, suggestions, others, whole: None }
    }

    #[test]
    fn one_step_is_open_at_a_time_and_the_call_comes_last() {
        let page = |done: usize| {
            let steps = ["a", "b", "c"].into_iter().enumerate().map(|(index, name)| step(name, index < done)).collect();
            start(&Start { steps, billed: None, form_key: "k".to_owned() }).into_string()
        };
        for (done, action) in [(0, "/console/start/a"), (2, "/console/start/c"), (3, "/console/start/key")] {
            let page = page(done);
            assert_eq!(page.matches("<form").count(), 1, "{page}");
            assert!(page.contains(&format!("action=\"{action}\"")) && page.matches("aria-current").count() == 1, "{page}");
            assert_eq!(page.matches(">Done<").count(), done);
        }
    }

    #[test]
    fn the_call_is_whole_and_what_stands_in_it_is_text() {
        let made = json!({"api_key": "k-1", "password": "p<1"});
        let text = |text: &str| text.to_owned();
        let call = FirstCall {
            made: made.into(),
            service: text("https://billing.example"),
            customer_ref: text("acme"),
            usage_product_ref: text("calls"),
            contract_ref: text("c"),
        };
        let page = first_call(&call).into_string();
        for part in ["https://billing.example/auth/login", "https://billing.example/api/usage/event", "p&lt;1", "contract_ref=c"]
        {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
