//! The page of something of which the interface says all there is to say: its fields, as they are.

use maud::{Markup, html};
use serde_json::Value;

use crate::answer::At;
use crate::list::{Column, Shown, table};
use crate::parts::{day, href, instant, number, words};

/// An API key whose password is shown, this once.
#[derive(Clone, Debug)]
pub struct GeneratedKey {
    /// The answer of the interface.
    pub answer: Value,
    /// Where the service is reached.
    pub service: String,
}

/// The body of a page with all fields of an answer.
pub fn thing(title: &str, answer: &Value, edit: Option<&str>, delete: Option<&str>) -> Markup {
    html! {
        h1 { (title) }
        @if edit.is_some() || delete.is_some() { div.actions {
            @if let Some(edit) = edit { a.button href=(edit) { "Edit" } }
            @if let Some(delete) = delete { a.button.grave href=(delete) { "Delete" } }
        } }
        (fields(At(answer)))
    }
}

/// Fields, those of fields under them.
pub(crate) fn fields(answer: At<'_>) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in answer.fields().filter(|(_, value)| value.is_there()) {
                div { dt { (words(name)) } dd { (field(value)) } }
            }
        }
    }
}

fn field(value: At<'_>) -> Markup {
    match value.0 {
        Value::Object(_) => fields(value),
        Value::Array(_) => {
            html! { @for element in value.items() { (field(element)) } @if value.items().next().is_none() { "none" } }
        }
        Value::Number(_) => number(value),
        Value::Bool(yes) => html! { @if *yes { "yes" } @else { "no" } },
        Value::String(text) if text.len() == 10 && text.as_bytes()[4] == b'-' => day(value),
        Value::String(text) if text.ends_with('Z') && text.len() > 19 && text.as_bytes()[10] == b'T' => instant(value),
        Value::String(text) => html! { (text) },
        Value::Null => html! {},
    }
}

const KEYS: &[Column] = &[
    Column { label: "Key", field: "api_key", shown: Shown::Text },
    Column { label: "Name", field: "name", shown: Shown::Text },
    Column { label: "Made", field: "created_at", shown: Shown::Instant },
    Column { label: "Used last", field: "last_used_at", shown: Shown::Instant },
    Column { label: "Ends", field: "expires_at", shown: Shown::Instant },
];

/// The body of the page of API keys.
pub fn keys(keys: &Value) -> Markup {
    html! {
        h1 { "API keys" }
        @if At(keys).items().next().is_some() { (table("API keys", KEYS, At(keys))) } @else { p { "There are no keys yet." } }
        section {
            h2 { "Make a key" }
            form.filters method="post" action=(href(&["keys"])) {
                label { "Name" input name="name" maxlength="255"; }
                button { "Make" }
            }
        }
        @if At(keys).items().next().is_some() {
            section {
                h2 { "Delete a key" }
                p.muted { "What it was used by can't report any more, from that instant." }
                form.filters method="post" action=(href(&["keys", "delete"])) {
                    label { "Key" select name="api_key_ref" required {
                        @for key in At(keys).items() {
                            option value=(key.at("api_key_ref").text()) { (key.at("api_key").text()) " " (key.at("name").text()) }
                        }
                    } }
                    button.grave { "Delete" }
                }
            }
        }
    }
}

/// The body of the page of a key that was made.
pub fn generated_key(made: &GeneratedKey) -> Markup {
    let answer = At(&made.answer);
    let (key, password, service) = (answer.at("api_key").text(), answer.at("password").text(), &made.service);
    html! {
        h1 { "A new API key" }
        p { strong { "Its password is shown this once." } " Keep it where secrets are kept." }
        dl.facts {
            div { dt { "Key" } dd { code { (key) } } }
            div { dt { "Password" } dd { code { (password) } } }
        }
        h2 { "Log in with it" }
        pre { code {
            "TOKEN=$(curl -s " (service) "/auth/login -H 'Content-Type: application/json' \\\n  -d '{\"api_key\":\"" (key)
            "\",\"password\":\"" (password) "\"}' | tr -d '\"')"
        } }
        p { a href=(href(&["keys"])) { "All keys" } }
    }
}
