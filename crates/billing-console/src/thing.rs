//! Generic page of an object: all fields of its API response.

use maud::{Markup, html};
use serde_json::Value;

use crate::json_view::JsonView;
use crate::parts::{day, instant, number, words};

/// Renders a page with all fields of a response.
pub fn thing(title: &str, answer: &Value, edit: Option<&str>, delete: Option<&str>) -> Markup {
    html! {
        h1 { (title) }
        @if edit.is_some() || delete.is_some() { div.actions {
            @if let Some(edit) = edit { a.button href=(edit) { "Edit" } }
            @if let Some(delete) = delete { a.button.grave href=(delete) { "Delete" } }
        } }
        (fields(JsonView(answer)))
    }
}

/// Renders fields, with nested fields indented below.
pub(crate) fn fields(answer: JsonView<'_>) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in answer.fields().filter(|(_, value)| value.is_there()) {
                div { dt { (words(name)) } dd { (field(value)) } }
            }
        }
    }
}

fn field(value: JsonView<'_>) -> Markup {
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
