//! Renders the API reference from the OpenAPI document.

use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::openapi::resolved;

const SCHEMAS: &str = "#/components/schemas/";

/// Renders the operations by tag, followed by the schemas.
pub(super) fn body(document: &Value) -> Markup {
    let operations = operations(document);
    html! {
        h1 { (text(&document["info"], "title")) }
        p { (prose(text(&document["info"], "description"))) }
        p { a href="/openapi.json" { "OpenAPI document" } " · " a href="/" { "Home" } }
        @for tag in list(&document["tags"]) {
            @let of_tag: Vec<_> = operations.iter().filter(|operation| operation.has_tag(text(tag, "name"))).collect();
            h2 id=(format!("tag-{}", text(tag, "name"))) { (prose(text(tag, "description"))) }
            ul {
                @for operation in &of_tag {
                    li { a href=(format!("#{}", operation.id())) { code { (operation.method) " " (operation.path) } } " "
                        (prose(text(operation.described, "summary"))) }
                }
            }
            @for operation in of_tag { (operation.section()) }
        }
        h2 id="schemas" { "Schemas" }
        @for (name, schema) in members(&document["components"]["schemas"]) { (type_section(name, schema)) }
    }
}

/// One method on one path.
struct Operation<'d> {
    document: &'d Value,
    method: String,
    path: &'d str,
    described: &'d Value,
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    members(&document["paths"]).flat_map(|(path, item)| of_item(document, path, item)).collect()
}

fn of_item<'d>(document: &'d Value, path: &'d str, item: &'d Value) -> Vec<Operation<'d>> {
    let described = members(item).filter(|(_, described)| described["operationId"].is_string());
    described.map(|(method, described)| Operation { document, method: method.to_uppercase(), path, described }).collect()
}

impl Operation<'_> {
    fn id(&self) -> &str {
        text(self.described, "operationId")
    }

    fn has_tag(&self, name: &str) -> bool {
        list(&self.described["tags"]).any(|tag| tag == name)
    }

    fn section(&self) -> Markup {
        let parameters: Vec<_> = list(&self.described["parameters"]).collect();
        html! {
            section id=(self.id()) {
                h3 { code { (self.method) " " (self.path) } }
                p { (prose(text(self.described, "summary"))) " " (prose(text(self.described, "description"))) }
                p { (self.who_may()) }
                @if !parameters.is_empty() {
                    table {
                        tr { th { "Parameter" } th { "In" } th { "Type" } th { "Description" } }
                        @for parameter in parameters {
                            @let parameter = resolved(self.document, parameter);
                            tr {
                                td { code { (text(parameter, "name")) } @if parameter["required"] == true { " (required)" } }
                                td { (text(parameter, "in")) }
                                td { (kind(&parameter["schema"])) }
                                td { (prose(text(parameter, "description"))) }
                            }
                        }
                    }
                }
                @for (media, content) in members(&self.described["requestBody"]["content"]) {
                    p { "Body, " code { (media) } ": " (kind(&content["schema"])) }
                    (example(&content["example"]))
                }
                table {
                    tr { th { "Status" } th { "Description" } th { "Response" } }
                    @for (status, response) in members(&self.described["responses"]) {
                        @let shared = resolved(self.document, response);
                        @let meaning = response["description"].as_str().unwrap_or_else(|| text(shared, "description"));
                        tr {
                            td { (status) }
                            td { (prose(meaning)) }
                            td { @for (media, content) in members(&shared["content"]) {
                                div { (kind(&content["schema"])) " (" code { (media) } ")" }
                            } }
                        }
                    }
                }
            }
        }
    }

    fn who_may(&self) -> Markup {
        let schemes = list(&self.described["security"]).flat_map(members).map(|(scheme, scopes)| {
            let scopes: Vec<&str> = list(scopes).filter_map(Value::as_str).collect();
            if scopes.is_empty() { scheme.clone() } else { format!("{scheme} with {}", scopes.join(", ")) }
        });
        let schemes: Vec<String> = schemes.collect();
        html! { "Authentication: " @if schemes.is_empty() { "none" } @else { (schemes.join(", or ")) } "." }
    }
}

fn type_section(name: &str, schema: &Value) -> Markup {
    html! {
        section id=(anchor(name)) {
            h3 { (name) }
            p { (prose(text(schema, "description"))) }
            @if schema["properties"].is_object() { (properties(schema)) } @else { p { (kind(schema)) } }
            @for part in parts(schema).filter(|part| part["properties"].is_object()) { (properties(part)) }
            (example(&schema["example"]))
            @for shown in list(&schema["examples"]) { (example(shown)) }
        }
    }
}

fn properties(schema: &Value) -> Markup {
    html! {
        table {
            tr { th { "Field" } th { "Type" } th { "Description" } }
            @for (name, property) in members(&schema["properties"]) {
                tr {
                    td {
                        code { (name) }
                        @if list(&schema["required"]).any(|required| required == name) { " (required)" }
                    }
                    td { (kind(property)) }
                    td { (prose(text(property, "description"))) }
                }
            }
        }
    }
}

fn example(example: &Value) -> Markup {
    html! { @if !example.is_null() { details { summary { "Example" } pre { code { (format!("{example:#}")) } } } } }
}

/// Renders a short description of a schema, with links to named schemas.
fn kind(schema: &Value) -> Markup {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix(SCHEMAS)) {
        return html! { a href=(format!("#{}", anchor(name))) { (name) } };
    }
    let parts: Vec<_> = parts(schema).collect();
    if let [problem, coded] = parts.as_slice()
        && coded["properties"]["code"]["enum"].is_array()
    {
        return html! { (kind(problem)) " with the code " (kind(&coded["properties"]["code"])) };
    }
    if !parts.is_empty() {
        let word = if schema["allOf"].is_array() { " and " } else { " or " };
        return html! { @for (index, part) in parts.into_iter().enumerate() { @if index > 0 { (word) } (kind(part)) } };
    }
    let words: Vec<String> = list(&schema["enum"]).map(plain).collect();
    if !words.is_empty() {
        return html! { @for (index, word) in words.iter().enumerate() { @if index > 0 { ", " } code { (word) } } };
    }
    let names = match &schema["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => name.as_str().into_iter().collect::<Vec<_>>(),
    };
    html! {
        @if names.is_empty() { "any" } @else { (names.join(" or ")) }
        @if schema["items"].is_object() { " of " (kind(&schema["items"])) }
        @for (name, value) in members(schema).filter(|(name, _)| LIMITS.contains(&name.as_str())) { ", " (name) " " (plain(value)) }
    }
}

/// Schema keywords that are shown as limits of a value.
const LIMITS: [&str; 9] =
    ["format", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "default"];

/// Returns the schemas that a schema combines.
fn parts(schema: &Value) -> impl Iterator<Item = &Value> {
    ["oneOf", "anyOf", "allOf"].into_iter().flat_map(|key| list(&schema[key]))
}

/// Renders a description. Descriptions use only backquotes of CommonMark.
fn prose(text: &str) -> Markup {
    html! { @for (index, part) in text.split('`').enumerate() { @if index % 2 == 1 { code { (part) } } @else { (part) } } }
}

fn anchor(name: &str) -> String {
    format!("type-{name}")
}

fn text<'d>(value: &'d Value, key: &str) -> &'d str {
    value[key].as_str().unwrap_or_default()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_operation_and_type_of_the_interface_is_there_and_every_link_leads_somewhere() {
        let document: Value = serde_json::from_str(&crate::openapi_json()).expect("JSON");
        let html = body(&document).into_string();
        for operation in crate::operations::OPERATIONS {
            assert!(html.contains(&format!("<section id=\"{}\">", operation.id)), "{}", operation.id);
        }
        for (name, _) in members(&document["components"]["schemas"]) {
            assert!(html.contains(&format!("<section id=\"type-{name}\">")), "{name}");
        }
        for link in html.split("href=\"#").skip(1) {
            let target = link.split('"').next().expect("a target");
            assert!(html.contains(&format!("id=\"{target}\"")), "{target}");
        }
    }

    #[test]
    fn what_a_document_says_is_text_and_no_markup() {
        let document = json!({
            "info": {"title": "<b>", "description": "a `code` & \"more\""},
            "tags": [{"name": "t", "description": "T"}],
            "paths": {"/<x>": {"get": {"operationId": "x", "tags": ["t"], "summary": "<script>", "description": "<script>", "responses": {}}}},
        });
        let html = body(&document).into_string();
        assert!(!html.contains("<script>") && !html.contains("<b>"), "{html}");
        assert!(html.contains("a <code>code</code> &amp; "), "{html}");
    }
}
