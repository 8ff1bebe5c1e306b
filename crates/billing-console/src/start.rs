//! From nothing to the first invoice: five things to make, a call to copy, and a page that waits for the event.

use maud::{Markup, html};
use serde_json::Value;

use crate::document::sheet;
use crate::form::{Field, shown_field};
use crate::json_view::JsonView;
use crate::list::table;
use crate::listings::{REFUSED, WHY};
use crate::parts::{encoded, href, link, section, state};

/// A thing that is needed before an invoice.
#[derive(Clone, Debug)]
pub struct FirstStep {
    /// What its form is sent to.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// What it is for.
    pub why: &'static str,
    /// What is there already, and its page.
    pub there: Option<(String, String)>,
    /// What is said of it.
    pub fields: Vec<Field>,
    /// Why it wasn't made, beside what stands beside fields.
    pub others: Vec<String>,
    /// Where all that can be said of it is said, where there is such a form.
    pub whole: Option<String>,
}

/// The way to the first invoice.
#[derive(Clone, Debug)]
pub struct Start {
    /// Its steps, in their order.
    pub steps: Vec<FirstStep>,
    /// The document that the first event is on, once there is one.
    pub billed: Option<(String, String)>,
    /// What a repeated form is known by.
    pub form_key: String,
}

/// The body of the page of the first steps.
pub fn start(start: &Start) -> Markup {
    let next = start.steps.iter().position(|step| step.there.is_none());
    html! {
        h1 { "From nothing to the first invoice" }
        @if next.is_some() {
            p { "Five things, each made by the call of the interface that software makes. Everything can be changed later." }
        }
        ol.steps {
            @for (index, step) in start.steps.iter().enumerate() {
                li aria-current=[(next == Some(index)).then_some("step")] { (one(step, next == Some(index), &start.form_key)) }
            }
            li aria-current=[next.is_none().then_some("step")] {
                h2 { "Usage, reported by software" }
                @if let Some((number, address)) = &start.billed {
                    p { span.done { "Done" } " The first event is on " a href=(address) { (number) } "." }
                } @else if next.is_none() {
                    p { "An API key is made for it, and the call that reports an event is shown, ready to be copied." }
                    form method="post" action=(href(&["start", "key"])) {
                        input type="hidden" name="form_key" value=(start.form_key);
                        button { "Make a key and show the call" }
                    }
                } @else { p.muted { "A call to copy, once there is a contract that bills it." } }
            }
        }
    }
}

fn one(step: &FirstStep, is_next: bool, form_key: &str) -> Markup {
    let is_refused = !step.others.is_empty() || step.fields.iter().any(|field| !field.wrong.is_empty());
    html! {
        h2 { (step.title) }
        p.muted { (step.why) }
        @if let Some((name, address)) = &step.there {
            p { span.done { "Done" } " " a href=(address) { (name) } }
        } @else if is_next {
            @if is_refused { p.notice.refused role="alert" {
                "Nothing was stored."
                @for other in &step.others { " " (other) }
            } }
            form.stack.wide method="post" action=(href(&["start", step.name])) {
                div.fields { @for field in &step.fields { (shown_field(field, &[])) } }
                input type="hidden" name="form_key" value=(form_key);
                div.pages {
                    button { "Save" }
                    @if let Some(whole) = &step.whole { a href=(whole) { "All there is to say" } }
                }
            }
        }
    }
}

/// A key that was made for the first event, and what the event is about.
#[derive(Clone, Debug)]
pub struct FirstCall {
    /// What the interface answered: the key, and its password this once.
    pub made: Value,
    /// Where the service is reached.
    pub service: String,
    /// Who uses.
    pub customer_ref: String,
    /// What is used.
    pub usage_product_ref: String,
    /// The contract that bills it.
    pub contract_ref: String,
}

/// The body of the page with the first call.
pub fn first_call(call: &FirstCall) -> Markup {
    let FirstCall { made, service, customer_ref, usage_product_ref, contract_ref } = call;
    let (key, password) = (JsonView(made).at("api_key").text(), JsonView(made).at("password").text());
    let log_in = format!(
        "TOKEN=$(curl -s {service}/auth/login -H 'Content-Type: application/json' \\\n  -d '{{\"api_key\":\"{key}\",\"password\":\"{password}\"}}' | tr -d '\"')"
    );
    let report = format!(
        "curl -s {service}/api/usage/event -H \"Authorization: Bearer $TOKEN\" -H 'Version: V0' \\\n  -H 'Content-Type: application/json' \\\n  \
         -d '{{\"timestamp\":\"'$(date -u +%FT%TZ)'\",\"customer_ref\":\"{customer_ref}\",\"usage_product_ref\":\"{usage_product_ref}\",\"quantity\":1500}}'"
    );
    html! {
        h1 { "The first event" }
        p { "Copy this into a shell. " strong { "The password is shown this once." } " Keep it where secrets are kept." }
        pre tabindex="0" { code #call { (log_in) "\n" (report) } }
        p { a.button href=(format!("{}?contract_ref={}", href(&["start", "wait"]), encoded(contract_ref))) { "Wait for the event" } }
    }
}

/// What the interface answers while the first event is waited for.
#[derive(Clone, Debug)]
pub struct Waited {
    /// The document that the contract's first event is on, once there is one.
    pub document: Value,
    /// What was refused today.
    pub refused: Value,
    /// The contract.
    pub contract_ref: String,
    /// Whether the page is asked for again by itself.
    pub is_looking: bool,
}

/// The body of the page that waits for the first event, and then shows its invoice.
pub fn wait(waited: &Waited) -> Markup {
    let document = JsonView(&waited.document);
    let again = format!("?contract_ref={}", encoded(&waited.contract_ref));
    html! {
        @if document.is_there() {
            h1 { "The first invoice" }
            p.notice role="status" { "The event is there, and this is the invoice it is on." }
            p { (link(Some(href(&["documents", &document.at("document_ref").text()])), &document.at("document_number").text())) " "
                (state(document.at("state"))) ", a draft until its period is over: every event changes it." }
            (sheet(document))
            p { a href=(href(&["usage"])) { "Usage" } " · " a href=(href(&[])) { "Home" } }
        } @else {
            h1 { "Waiting for the first event" }
            @if waited.is_looking {
                p role="status" { "No event on this contract yet. This page looks again every few seconds." }
                p { a href=(format!("{again}&paused=true")) { "Look no more" } }
            } @else {
                p role="status" { "No event on this contract yet." }
                p { a.button href=(again) { "Look again" } }
            }
            @if JsonView(&waited.refused).items().next().is_some() {
                (section("Refused today", &table("Refused today", &REFUSED.some(WHY), JsonView(&waited.refused))))
            }
            p { a href=(href(&["start"])) { "Back to the steps" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(name: &'static str, there: bool) -> FirstStep {
        let there = there.then(|| ("Acme".to_owned(), "/console/customers/acme".to_owned()));
        FirstStep { name, title: "A customer", why: "who pays", there, fields: Vec::new(), others: Vec::new(), whole: None }
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
            made,
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
