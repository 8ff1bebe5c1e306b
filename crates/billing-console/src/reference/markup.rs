//! Renders schemas, examples and descriptions of the OpenAPI document.

use maud::{Markup, html};
use serde_json::{Map, Value};

use billing_api::openapi::resolved;

/// The page of all schemas. The page of a schema is below it.
pub(super) const SCHEMAS: &str = "/docs/schemas";

const COMPONENTS: &str = "#/components/schemas/";
/// Maximum number of words that a reference to an enumeration lists.
const MAX_WORDS: usize = 10;
/// Schema keywords that are shown as limits of a value.
const LIMITS: [&str; 9] =
    ["format", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "default"];

/// Renders a schema: its description, its fields and its examples.
pub(super) fn schema(document: &Value, schema: &Value) -> Markup {
    let description = text(schema, "description");
    html! {
        @if !description.is_empty() { p { (prose(description)) } }
        @if schema["properties"].is_object() { (properties(document, schema)) } @else { p { (kind(document, schema)) } }
        @for part in parts(schema).filter(|part| part["properties"].is_object()) { (properties(document, part)) }
        (example(&schema["example"]))
        @for shown in list(&schema["examples"]) { (example(shown)) }
    }
}

/// Renders the fields of an object, the required ones first.
fn properties(document: &Value, schema: &Value) -> Markup {
    let is_required = |name: &str| list(&schema["required"]).any(|required| required == name);
    let (required, optional): (Vec<_>, Vec<_>) = members(&schema["properties"]).partition(|(name, _)| is_required(name));
    html! {
        table {
            thead { tr { th { "Field" } th { "Type" } th { "Description" } } }
            tbody {
                @for (name, property) in required.into_iter().chain(optional) {
                    tr {
                        td { code { (name) } @if is_required(name) { " (required)" } }
                        td { (kind(document, property)) }
                        td { (prose(text(property, "description"))) }
                    }
                }
            }
        }
    }
}

/// Renders a short description of a schema, with links to named schemas. A named schema of a single value is described after
/// its name.
pub(super) fn kind(document: &Value, schema: &Value) -> Markup {
    if let Some(name) = name_of(schema) {
        let target = resolved(document, schema);
        // A reference to a missing schema resolves to itself.
        let is_known = name_of(target).is_none();
        let is_short =
            is_known && !is_structured(target) && target["items"].is_null() && list(&target["enum"]).count() <= MAX_WORDS;
        return html! { a href=(address(name)) { (name) } @if is_short { ": " (kind(document, target)) } };
    }
    let parts: Vec<_> = parts(schema).collect();
    if !parts.is_empty() {
        let word = if schema["allOf"].is_array() { " and " } else { " or " };
        return html! {
            @for (index, part) in parts.into_iter().enumerate() { @if index > 0 { (word) } (kind(document, part)) }
        };
    }
    let words: Vec<String> = list(&schema["enum"]).chain(schema.get("const")).map(plain).collect();
    if !words.is_empty() {
        return html! { @for (index, word) in words.iter().enumerate() { @if index > 0 { ", " } code { (word) } } };
    }
    let names = match &schema["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => name.as_str().into_iter().collect::<Vec<_>>(),
    };
    html! {
        @if names.is_empty() { "any" } @else { (names.join(" or ")) }
        @if schema["items"].is_object() { " of " (kind(document, &schema["items"])) }
        @for (name, value) in members(schema).filter(|(name, _)| LIMITS.contains(&name.as_str())) {
            ", " (name) " " (plain(value))
        }
    }
}

/// Returns whether a schema has fields or combines schemas that can have fields.
pub(super) fn is_structured(schema: &Value) -> bool {
    let has_fields = |schema: &Value| schema["properties"].is_object();
    has_fields(schema) || parts(schema).any(|part| has_fields(part) || name_of(part).is_some())
}

/// Returns the names of the schemas that a part of the document references directly, in order and without repetitions.
pub(super) fn referenced(part: &Value) -> Vec<&str> {
    let mut names = Vec::new();
    collect(part, &mut names);
    names
}

fn collect<'d>(part: &'d Value, names: &mut Vec<&'d str>) {
    if let Some(name) = name_of(part)
        && !names.contains(&name)
    {
        names.push(name);
    }
    match part {
        Value::Object(object) => object.values().for_each(|value| collect(value, names)),
        Value::Array(array) => array.iter().for_each(|value| collect(value, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the name of the schema to which a reference leads.
fn name_of(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix(COMPONENTS)
}

/// Returns the address of the page of a schema.
pub(super) fn address(name: &str) -> String {
    format!("{SCHEMAS}/{name}")
}

/// Returns the schemas that a schema combines.
fn parts(schema: &Value) -> impl Iterator<Item = &Value> {
    ["oneOf", "anyOf", "allOf"].into_iter().flat_map(|key| list(&schema[key]))
}

/// Renders an example, if there is one.
pub(super) fn example(example: &Value) -> Markup {
    html! { @if !example.is_null() { details { summary { "Example" } pre { code { (format!("{example:#}")) } } } } }
}

/// Renders a description. Descriptions use only backquotes of CommonMark.
pub(super) fn prose(text: &str) -> Markup {
    html! { @for (index, part) in text.split('`').enumerate() { @if index % 2 == 1 { code { (part) } } @else { (part) } } }
}

/// Returns the text of a member, or an empty text.
pub(super) fn text<'d>(value: &'d Value, key: &str) -> &'d str {
    value[key].as_str().unwrap_or_default()
}

/// Returns a value as text, without the quotation marks of a string.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the elements of an array, or none.
pub(super) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns the members of an object, or none.
pub(super) fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_named_schema_of_a_single_value_is_described_where_it_is_used() {
        let reference = |name: &str| json!({"$ref": format!("{COMPONENTS}{name}")});
        let document = json!({"components": {"schemas": {
            "Day": {"type": "string", "format": "date"},
            "Color": {"type": "string", "enum": ["RED", "BLUE"]},
            "Address": {"type": "object", "properties": {"city": {"type": "string"}}},
            "Quantity": {"oneOf": [{"type": "number"}, {"type": "string"}]},
            "Many": {"type": "string", "enum": (0..=MAX_WORDS).map(|number| number.to_string()).collect::<Vec<_>>()},
        }}});
        for (name, expected) in [
            ("Day", "<a href=\"/docs/schemas/Day\">Day</a>: string, format date"),
            ("Color", "<a href=\"/docs/schemas/Color\">Color</a>: <code>RED</code>, <code>BLUE</code>"),
            ("Quantity", "<a href=\"/docs/schemas/Quantity\">Quantity</a>: number or string"),
            ("Address", "<a href=\"/docs/schemas/Address\">Address</a>"),
            ("Many", "<a href=\"/docs/schemas/Many\">Many</a>"),
        ] {
            assert_eq!(kind(&document, &reference(name)).into_string(), expected);
        }
        assert_eq!(
            referenced(&json!({"oneOf": [reference("Day"), reference("Color")], "items": reference("Day")})),
            ["Day", "Color"]
        );
    }

    #[test]
    fn required_fields_come_first() {
        let fields = json!({"required": ["z"], "properties": {"a": {"type": "string"}, "z": {"type": "string"}}});
        let html = properties(&json!({}), &fields).into_string();
        let place = |text: &str| html.find(text).expect(text);
        assert!(place("<code>z</code> (required)") < place("<code>a</code>"), "{html}");
    }
}
