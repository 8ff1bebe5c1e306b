//! The usage format editor: sample and expressions beside the mapped event.

use maud::{Markup, html};
use serde_json::Value;

use crate::parts::section;
use billing_api::json_view::JsonView;

/// Content of the editor.
#[derive(Clone, Debug)]
pub struct FormatEditor {
    /// Page title.
    pub title: String,
    /// Target of the form.
    pub action: String,
    /// Idempotency key, which identifies repeats.
    pub key: String,
    /// Fields in the order of [`FORMAT_FIELDS`].
    pub fields: Vec<FormatField>,
    /// Sample event.
    pub sample: String,
    /// Errors of the sample.
    pub sample_wrong: Vec<String>,
    /// The mapped sample, if it was tried.
    pub mapped: Option<Value>,
    /// Errors that belong to no field.
    pub others: Vec<String>,
}

/// A field of the editor.
#[derive(Clone, Debug, Default)]
pub struct FormatField {
    /// Current value.
    pub value: String,
    /// Errors of the value.
    pub wrong: Vec<String>,
}

/// The editor's fields: pointer in the body, label, whether required, and description.
pub const FORMAT_FIELDS: &[(&str, &str, bool, &str)] = &[
    ("format_name", "Name", true, "Name by which events select this format."),
    ("mapping/timestamp", "Timestamp", true, "Must return an RFC 3339 date-time with an offset."),
    (
        "mapping/customer_ref",
        "Customer, by reference",
        false,
        "Set the reference, the name or both. The name applies if the reference returns no value.",
    ),
    ("mapping/customer_name", "Customer, by name", false, ""),
    (
        "mapping/usage_product_ref",
        "Usage product, by reference",
        false,
        "Same rule as for the customer. Quote fixed text: \"api-calls\"",
    ),
    ("mapping/usage_product_name", "Usage product, by name", false, ""),
    ("mapping/quantity", "Quantity", true, "Must return a number of at least 0."),
    (
        "mapping/additional_report_data",
        "Report data",
        false,
        "Use rest, one field such as event.labels, or a JSON object of expressions: {\"route\": \"event.route\"}",
    ),
    (
        "mapping/validations/currency",
        "Currency to check",
        false,
        "Must match the currency of the document. Not checked if the expression returns no value.",
    ),
    ("mapping/validations/entity_ref", "Entity to check", false, "Must match the entity of the document."),
    ("mapping/idempotency_key", "Event ID", false, "Must return a text or a number. An event with the same ID is recorded once."),
    ("mapping/skip_if", "Skip if", false, "Must return true or false. If true, the event is skipped and not rejected."),
    (
        "mapping/for_each",
        "For each",
        false,
        "Must return a list of at most 100 elements. Each element has an event, and the other expressions see it as item.",
    ),
];

/// Renders the editor.
pub fn format_editor(editor: &FormatEditor) -> Markup {
    let is_refused =
        !editor.others.is_empty() || !editor.sample_wrong.is_empty() || editor.fields.iter().any(|field| !field.wrong.is_empty());
    html! {
        h1 { (editor.title) }
        p { "Expressions over " code { "event" } " define the fields of a usage event. Examples: " code { "event.calls" } " and "
            code { "unix_milliseconds(event.at)" } "." }
        @if is_refused { p.notice.refused role="alert" {
            "Nothing was saved."
            @for other in &editor.others { " " (other) }
        } }
        form.split method="post" action=(editor.action) {
            div.stack {
                div.field {
                    label for="sample" { "Sample event (JSON)" }
                    textarea.code #sample name="sample" rows="8" spellcheck="false" aria-invalid=[(!editor.sample_wrong.is_empty()).then_some("true")] { (editor.sample) }
                    @for reason in &editor.sample_wrong { p.wrong { (reason) } }
                }
                @for ((name, label, required, meaning), field) in FORMAT_FIELDS.iter().zip(&editor.fields) { (shown(name, label, *required, meaning, field)) }
                input type="hidden" name="form_key" value=(editor.key);
                div.buttons { button.plain name="do" value="try" formnovalidate { "Test" } " " button name="do" value="save" { "Save" } }
            }
            div {
                (section("Result", &html! {
                    @match &editor.mapped {
                        Some(Value::Null) => p { "The format skips this event." },
                        Some(mapped @ Value::Array(_)) => {
                            p { "One event for each element of the list; null for a skipped element." }
                            pre.mapped tabindex="0" { code { (pretty(mapped)) } }
                        },
                        Some(mapped) => pre.mapped tabindex="0" { code { (pretty(mapped)) } },
                        None => p.muted { "Test the format to see the resulting body of " code { "POST /api/usage/event" } " here." },
                    }
                }))
            }
        }
    }
}

fn shown(name: &str, label: &str, required: bool, meaning: &str, field: &FormatField) -> Markup {
    let (id, caption) = (format!("field-{name}"), format!("told-{name}"));
    let (described, invalid) = ((!meaning.is_empty()).then_some(&caption), (!field.wrong.is_empty()).then_some("true"));
    html! {
        div.field {
            label for=(id) { (label) @if required { span aria-hidden="true" { " *" } } }
            @if name == "format_name" {
                input id=(id) name=(name) value=(field.value) required[required] maxlength="255" aria-describedby=[described] aria-invalid=[invalid];
            } @else {
                textarea.code id=(id) name=(name) rows="2" spellcheck="false" required[required] aria-describedby=[described] aria-invalid=[invalid] { (field.value) }
            }
            @if !meaning.is_empty() { p.hint id=(caption) { (meaning) } }
            @for reason in &field.wrong { p.wrong { (reason) } }
        }
    }
}

/// Formats a value as indented JSON.
fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Returns the expressions of an existing format in the order of [`FORMAT_FIELDS`].
pub fn format_fields(format: &Value) -> Vec<FormatField> {
    let of_field = |name: &str| match format.pointer(&format!("/{name}")) {
        Some(object @ Value::Object(_)) => pretty(object),
        other => other.map(|value| JsonView::<Value>::of(value).to_text()).unwrap_or_default(),
    };
    FORMAT_FIELDS.iter().map(|(name, ..)| FormatField { value: of_field(name), wrong: Vec::new() }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_format_comes_into_its_fields_and_what_is_wrong_stands_beside_them() {
        let format = json!({"format_name": "Log", "mapping": {"timestamp": "event.<at>", "additional_report_data": {"a": "event.a"},
            "validations": {"currency": "\"EUR\""}}});
        let mut fields = format_fields(&format);
        assert_eq!((fields[1].value.as_str(), fields[8].value.as_str(), fields[9].value.as_str()), ("event.<at>", "\"EUR\"", ""));
        assert!(fields[7].value.contains("\"a\": \"event.a\""), "{}", fields[7].value);
        fields[6].wrong.push("gives nothing <".to_owned());
        let editor = FormatEditor {
            title: "Edit log".to_owned(),
            action: "/console/edit/formats/log".to_owned(),
            key: "k".to_owned(),
            fields,
            sample: "{\"a\": \"</textarea><script>\"}".to_owned(),
            sample_wrong: Vec::new(),
            mapped: Some(json!({"quantity": 1})),
            others: Vec::new(),
        };
        for (mapped, text) in [(json!(null), "The format skips this event."), (json!([null]), "One event for each element")] {
            let shown = format_editor(&FormatEditor { mapped: Some(mapped), ..editor.clone() }).into_string();
            assert!(shown.contains(text), "{shown}");
        }
        let shown = format_editor(&editor).into_string();
        assert!(
            shown.contains("gives nothing &lt;") && shown.contains("\"quantity\": 1".replace('"', "&quot;").as_str()),
            "{shown}"
        );
        assert!(!shown.contains("<script>"), "{shown}");
    }
}
