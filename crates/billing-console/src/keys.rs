//! API key pages: list, scopes, creation, rotation and deletion.

use maud::{Markup, html};

use crate::parts::{href, instant, name, words};
use billing_api::dto::keys::{ApiKeyJson, RotatedKeyJson};
use billing_api::json_view::{JsonAnswer, JsonView};

/// A new API key. Its password is shown only once.
#[derive(Clone, Debug)]
pub struct GeneratedKey {
    /// The API response. A new key has no old key.
    pub answer: JsonAnswer<RotatedKeyJson>,
    /// Base URL of the service.
    pub service: String,
}

/// Submitted values of a rejected key form.
#[derive(Clone, Debug)]
pub struct KeyForm {
    /// All scopes.
    pub scopes: Vec<String>,
    /// Key name.
    pub name: String,
    /// Selected scopes.
    pub chosen: Vec<String>,
    /// Expiry date.
    pub ends: String,
    /// Errors by field.
    pub wrong: Vec<(String, String)>,
}

/// Overlap periods of a rotated key with its successor, in hours.
const OVERLAPS: [(&str, &str); 4] = [("0", "immediately"), ("24", "in 1 day"), ("168", "in 7 days"), ("720", "in 30 days")];

/// Scopes with their descriptions.
const MEANINGS: [(&str, &str); 5] = [
    ("usage:write", "report usage"),
    ("contracts:write", "create and edit contracts"),
    ("catalog:write", "create and edit customers, entities, products and pricings"),
    ("documents:write", "issue, void and settle documents"),
    ("read", "read all data"),
];

/// Renders the page of API keys.
pub fn keys(keys: JsonView<'_, Vec<ApiKeyJson>>, form: &KeyForm) -> Markup {
    html! {
        h1 { "API keys" }
        @if !keys.is_empty() {
            (table(keys))
        } @else {
            p { "No API keys yet. Create a key for the software that reports your usage." }
        }
        section {
            h2 { "New API key" }
            (made(form))
        }
    }
}

fn table(keys: JsonView<'_, Vec<ApiKeyJson>>) -> Markup {
    html! {
        div.scrolls tabindex="0" role="region" aria-label="API keys" {
            table {
                thead { tr {
                    th scope="col" { "Key" } th scope="col" { "Name" } th scope="col" { "Scopes" } th scope="col" { "Created" }
                    th scope="col" { "Last used" } th scope="col" { "Expires" } th scope="col" { "Actions" }
                } }
                tbody { @for key in keys.items() {
                    tr {
                        td { code { (key.api_key().to_text()) } }
                        td { (name(key.name())) }
                        td { (scopes(key)) }
                        td { (instant(key.created_at())) }
                        td { @if key.last_used_at().is_there() { (instant(key.last_used_at())) } @else { span.muted { "never" } } }
                        td { @if key.expires_at().is_there() { (instant(key.expires_at())) } @else { span.muted { "never" } } }
                        td { (change(key)) }
                    }
                } }
            }
        }
    }
}

fn scopes(key: JsonView<'_, ApiKeyJson>) -> Markup {
    let all: Vec<String> = key.scopes().items().map(JsonView::to_text).collect();
    html! { @if all.len() == MEANINGS.len() { "all" } @else { @for scope in &all { code { (scope) } " " } } }
}

fn change(key: JsonView<'_, ApiKeyJson>) -> Markup {
    let (reference, name) = (key.api_key_ref().to_text(), key.api_key().to_text());
    html! {
        details {
            summary aria-label={ "Manage " (name) } { "Manage" }
            @if key.successor_ref().is_there() {
                p.muted { "This key has been rotated." }
            } @else {
                form.stack method="post" action=(href(&["keys", "rotate", &reference])) {
                    label { "Old key expires" select name="overlap_hours" {
                        @for (hours, shown) in OVERLAPS { option value=(hours) selected[hours == "24"] { (shown) } }
                    } }
                    div { button { "Rotate key" } }
                }
            }
            form.stack method="post" action=(href(&["keys", "delete", &reference])) {
                p.hint { "Clients that use this key lose access immediately." }
                div { button.grave { "Delete key" } }
            }
        }
    }
}

fn made(form: &KeyForm) -> Markup {
    let wrong = |field: &str| {
        let reasons =
            form.wrong.iter().filter(|(name, _)| name.split('/').next() == Some(field)).map(|(_, reason)| reason.as_str());
        reasons.collect::<Vec<_>>()
    };
    html! {
        form.stack.wide method="post" action=(href(&["keys"])) {
            div.field {
                label for="key-name" { "Name" }
                input id="key-name" name="name" maxlength="255" value=(form.name) aria-describedby="told-name";
                p.hint id="told-name" { "Client that uses the key, such as the name of a gateway." }
                @for reason in wrong("name") { p.wrong { (reason) } }
            }
            fieldset.choices {
                legend { "Scopes" }
                @for scope in &form.scopes {
                    label.check {
                        input type="checkbox" name="scopes" value=(scope) checked[form.chosen.contains(scope)];
                        span { (meaning(scope)) " " code { (scope) } }
                    }
                }
                @for reason in wrong("scopes") { p.wrong { (reason) } }
            }
            div.field {
                label for="key-ends" { "Expires" }
                input id="key-ends" name="ends" type="date" value=(form.ends) aria-describedby="told-ends";
                p.hint id="told-ends" { "The key expires at the start of this day in UTC. Empty: the key does not expire." }
                @for reason in wrong("expires_at") { p.wrong { (reason) } }
            }
            div { button { "Create key" } }
        }
    }
}

fn meaning(scope: &str) -> String {
    let known = MEANINGS.iter().find(|(known, _)| *known == scope);
    words(known.map_or(scope, |(_, meaning)| meaning))
}

/// Renders the page of a new key.
pub fn generated_key(made: &GeneratedKey) -> Markup {
    let answer = made.answer.view();
    let (key, password, service) = (answer.api_key().to_text(), answer.password().to_text(), &made.service);
    html! {
        h1 { "New API key" }
        p { strong { "Save the password now. It won't be shown again." } " Store it as a secret." }
        dl.facts {
            div { dt { "Key" } dd { code { (key) } } }
            div { dt { "Password" } dd { code { (password) } } }
            @if answer.rotated_expires_at().is_there() {
                div { dt { "Old key expires" } dd { (instant(answer.rotated_expires_at())) } }
            }
        }
        h2 { "Log-in command" }
        pre tabindex="0" { code {
            "TOKEN=$(curl -s " (service) "/auth/login -H 'Content-Type: application/json' \\\n  -d '{\"api_key\":\"" (key)
            "\",\"password\":\"" (password) "\"}' | tr -d '\"')"
        } }
        p { a href=(href(&["keys"])) { "All API keys" } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form() -> KeyForm {
        let scopes: Vec<String> = MEANINGS.iter().map(|(scope, _)| (*scope).to_owned()).collect();
        KeyForm { scopes: scopes.clone(), name: String::new(), chosen: scopes, ends: String::new(), wrong: Vec::new() }
    }

    #[test]
    fn a_key_shows_what_it_may_and_one_with_a_successor_is_rotated_no_more() {
        let key = json!({"api_key": "K", "api_key_ref": "r", "name": "<b>", "scopes": ["read", "usage:write"]});
        let shown = keys(JsonView::of(&json!([key])), &form()).into_string();
        assert!(shown.contains("&lt;b&gt;") && shown.contains("<code>read</code>"), "{shown}");
        assert!(shown.contains("/console/keys/rotate/r") && shown.contains("never"), "{shown}");
        let rotated = json!({"api_key": "K", "api_key_ref": "r", "scopes": ["read"], "successor_ref": "s"});
        let shown = keys(JsonView::of(&json!([rotated])), &form()).into_string();
        assert!(!shown.contains("/console/keys/rotate/") && shown.contains("has been rotated"), "{shown}");
    }

    #[test]
    fn what_is_wrong_stands_beside_its_field_and_what_was_said_stays() {
        let wrong =
            vec![("scopes".to_owned(), "must have at least one".to_owned()), ("expires_at".to_owned(), "later".to_owned())];
        let submitted = KeyForm { name: "Gateway".to_owned(), chosen: vec!["read".to_owned()], wrong, ..form() };
        let shown = keys(JsonView::of(&json!([])), &submitted).into_string();
        assert!(shown.contains("must have at least one") && shown.contains("later") && shown.contains("value=\"Gateway\""));
        assert_eq!(shown.matches(" checked").count(), 1, "{shown}");
    }
}
