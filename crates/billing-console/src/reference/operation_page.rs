//! Renders the operations of the OpenAPI document: what each does, its parameters, its responses, and a request that can be
//! sent from the page.

use maud::{Markup, html};
use serde_json::Value;

use super::example_request::{Credential, ExampleRequest, ResponseContent};
use super::markup::{example, is_structured, kind, list, members, plain, prose, referenced, text};
use billing_api::media_type::{JSON, PDF};
use billing_api::openapi::{BASIC, BEARER, CODES, MEDIA_TYPES, resolved};
use billing_api::operation::Flag;
use billing_api::operations;

/// Headers that the form of a request does not offer: the version has only one value, and the others have no effect there.
const HIDDEN_HEADERS: [&str; 3] = ["Version", "X-Request-Id", "If-None-Match"];
/// The size of a page in an example of a request.
const PAGE_SIZE: (&str, &str) = ("pageSize", "20");
/// Maximum number of parameters that the form of a request shows at once, unless more are required.
const MAX_SHOWN: usize = 8;

/// The page of an operation. The fields of its schemas are added when the page is shown.
pub(super) struct OperationPage {
    pub(super) id: String,
    pub(super) method: String,
    pub(super) path: String,
    /// Name of the operation's group.
    pub(super) group: String,
    pub(super) summary: String,
    /// Description, credential, parameters and request body.
    pub(super) description: Markup,
    /// Structured schemas of the request body.
    pub(super) request_schemas: Vec<String>,
    /// The request as a command, and the form that sends it.
    pub(super) request: Markup,
    /// Statuses and an example.
    pub(super) responses: Markup,
    /// Structured schemas of the success response.
    pub(super) response_schemas: Vec<String>,
    /// Words by which a search finds the operation, besides its id and path.
    pub(super) words: String,
}

/// Renders all operations in the order of the document.
pub(super) fn all(document: &Value) -> Vec<OperationPage> {
    let of_path = |(path, item)| members(item).map(move |(method, described)| (path, method, described));
    let described = members(&document["paths"]).flat_map(of_path).filter(|(.., described)| described["operationId"].is_string());
    described
        .map(|(path, method, described)| DescribedOperation { document, method: method.to_uppercase(), path, described }.page())
        .collect()
}

/// One method on one path.
struct DescribedOperation<'d> {
    document: &'d Value,
    method: String,
    path: &'d str,
    described: &'d Value,
}

impl<'d> DescribedOperation<'d> {
    fn page(self) -> OperationPage {
        OperationPage {
            id: text(self.described, "operationId").to_owned(),
            method: self.method.clone(),
            path: self.path.to_owned(),
            group: list(&self.described["tags"]).next().map(plain).unwrap_or_default(),
            summary: text(self.described, "summary").to_owned(),
            description: self.description(),
            request_schemas: self.structured(&self.described["requestBody"]),
            request: self.request(),
            responses: self.responses(),
            response_schemas: self.structured(self.success()),
            words: self.words(),
        }
    }

    fn parameters(&self) -> impl Iterator<Item = &'d Value> {
        let document = self.document;
        list(&self.described["parameters"]).map(move |parameter| resolved(document, parameter))
    }

    /// Returns the response with the lowest status, which is the success.
    fn success(&self) -> &'d Value {
        members(&self.described["responses"]).next().map_or(&Value::Null, |(_, response)| resolved(self.document, response))
    }

    /// Returns the structured schemas that a request body or a response references directly.
    fn structured(&self, part: &'d Value) -> Vec<String> {
        let schemas = &self.document["components"]["schemas"];
        let contents = members(&part["content"]).flat_map(|(_, content)| referenced(&content["schema"]));
        contents.filter(|name| is_structured(&schemas[*name])).map(str::to_owned).collect()
    }

    fn credential(&self) -> Credential {
        let schemes: Vec<&String> = list(&self.described["security"]).flat_map(members).map(|(scheme, _)| scheme).collect();
        let has = |sought: &str| schemes.iter().any(|scheme| *scheme == sought);
        if schemes.is_empty() {
            Credential::Nothing
        } else if has(BASIC) {
            Credential::Key
        } else if has(BEARER) {
            Credential::Token
        } else {
            Credential::Session
        }
    }

    fn description(&self) -> Markup {
        let parameters: Vec<_> = self.parameters().collect();
        let description = text(self.described, "description");
        html! {
            @if !description.is_empty() { p { (prose(description)) } }
            p { (self.who_may()) }
            @if !parameters.is_empty() {
                h2 { "Parameters" }
                table {
                    thead { tr { th { "Parameter" } th { "In" } th { "Type" } th { "Description" } } }
                    tbody {
                        @for parameter in parameters {
                            tr {
                                td { code { (text(parameter, "name")) } @if parameter["required"] == true { " (required)" } }
                                td { (text(parameter, "in")) }
                                td { (kind(self.document, &parameter["schema"])) }
                                td { (prose(text(parameter, "description"))) }
                            }
                        }
                    }
                }
            }
            @if self.described["requestBody"].is_object() {
                h2 { "Request body" }
                @for (media, content) in members(&self.described["requestBody"]["content"]) {
                    p { code { (media) } ": " (kind(self.document, &content["schema"])) }
                    (example(&content["example"]))
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

    fn responses(&self) -> Markup {
        html! {
            table {
                thead { tr { th { "Status" } th { "Description" } th { "Response" } } }
                tbody {
                    @for (status, response) in members(&self.described["responses"]) {
                        @let shared = resolved(self.document, response);
                        @let meaning = response["description"].as_str().unwrap_or_else(|| text(shared, "description"));
                        tr {
                            td { (status) }
                            td { (prose(meaning)) }
                            td { @for (media, content) in members(&shared["content"]) {
                                div {
                                    (kind(self.document, &content["schema"]))
                                    @for (index, code) in list(&shared[CODES]).enumerate() {
                                        (if index == 0 { " with the code " } else { ", " }) code { (plain(code)) }
                                    }
                                    " (" code { (media) } ")"
                                }
                            }
                            @for media in list(&shared[MEDIA_TYPES]) { div { "text (" code { (plain(media)) } ")" } } }
                        }
                    }
                }
            }
            @for (_, content) in members(&self.success()["content"]).take(1) { (example(&content["example"])) }
        }
    }

    fn request(&self) -> Markup {
        let credential = self.credential();
        html! {
            (self.example_request().render())
            @if credential == Credential::Session {
                p { "Only the session of an administrator can send this request. " code { "SESSION" }
                    " is the cookie of a log-in. With HTTPS, its name is " code { "__Host-session" } "." }
            } @else {
                noscript { p { "A browser that runs scripts shows a form here, which sends the request." } }
                (self.form(credential))
                section #response hidden aria-live="polite" {
                    h3 { "Response" }
                    p #status {}
                    details { summary { "Headers" } pre #headers {} }
                    pre #content {}
                }
            }
        }
    }

    fn example_request(&self) -> ExampleRequest<'_> {
        let required = self.parameters().filter(|parameter| parameter["in"] == "query" && parameter["required"] == true);
        let query: Vec<String> = required
            .map(|parameter| format!("{}={}", text(parameter, "name"), self.usual(parameter).unwrap_or_default()))
            .collect();
        let content = members(&self.success()["content"]).next().map(|(media, _)| media.as_str());
        ExampleRequest {
            method: &self.method,
            path: self.path,
            query: if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) },
            credential: self.credential(),
            body: members(&self.described["requestBody"]["content"])
                .next()
                .map(|(media, content)| (media.as_str(), &content["example"])),
            response: match content {
                None => ResponseContent::Nothing,
                Some(JSON) => ResponseContent::Json,
                Some(PDF) => ResponseContent::Bytes,
                Some(_) => ResponseContent::Text,
            },
        }
    }

    /// Returns the value that an example gives to a required parameter.
    fn usual(&self, parameter: &Value) -> Option<String> {
        if text(parameter, "name") == PAGE_SIZE.0 {
            return Some(PAGE_SIZE.1.to_owned());
        }
        let schema = resolved(self.document, &parameter["schema"]);
        [&schema["default"], &schema["examples"][0], &schema["minimum"]].into_iter().find(|value| !value.is_null()).map(plain)
    }

    /// Renders the form that sends the request. The script shows it, because a form without the script would reload the page.
    /// The inputs have no names, so that their values never become part of an address.
    fn form(&self, credential: Credential) -> Markup {
        let hidden = |parameter: &Value| HIDDEN_HEADERS.contains(&text(parameter, "name")) || parameter["style"] == "deepObject";
        let (required, optional): (Vec<_>, Vec<_>) =
            self.parameters().filter(|parameter| !hidden(parameter)).partition(|parameter| parameter["required"] == true);
        let (shown, more) = optional.split_at(optional.len().min(MAX_SHOWN.saturating_sub(required.len())));
        let media: Vec<&String> = members(&self.described["requestBody"]["content"]).map(|(media, _)| media).collect();
        let has_dry_run =
            operations::named(text(self.described, "operationId")).is_ok_and(|operation| operation.is(Flag::DryRun));
        html! {
            form #request hidden autocomplete="off" data-method=(self.method) data-path=(self.path) {
                @if matches!(credential, Credential::Key | Credential::Token) {
                    fieldset {
                        legend { "Credential" }
                        @if credential == Credential::Key {
                            p { "An API key and its password, or a bearer token. The page does not store them." }
                            label { "API key" input #key spellcheck="false" autocomplete="off"; }
                            label { "Password of the key" input #password type="password" autocomplete="off"; }
                        }
                        label { "Bearer token" input #token type="password" autocomplete="off"; }
                    }
                }
                @for parameter in required.iter().chain(shown) { (self.input(parameter)) }
                @if !more.is_empty() {
                    details { summary { "More parameters" } @for parameter in more { (self.input(parameter)) } }
                }
                @if let Some((_, content)) = members(&self.described["requestBody"]["content"]).next() {
                    @let body = if content["example"].is_null() { String::new() } else { format!("{:#}", content["example"]) };
                    label { "Media type of the body"
                        select #media { @for media in media { option { (media) } } }
                    }
                    label { "Request body"
                        textarea #body rows=(body.lines().count().clamp(3, 24)) spellcheck="false" autocomplete="off" { (body) }
                    }
                }
                @if has_dry_run {
                    label.check {
                        input #dry-run type="checkbox" checked;
                        " Dry run: returns the effects on documents, and stores nothing"
                    }
                }
                button { "Send request" }
            }
        }
    }

    fn input(&self, parameter: &Value) -> Markup {
        let (name, place, is_required) = (text(parameter, "name"), text(parameter, "in"), parameter["required"] == true);
        let schema = resolved(self.document, &parameter["schema"]);
        let words: Vec<String> = match &schema["type"] {
            Value::String(kind) if kind == "boolean" => ["true", "false"].map(str::to_owned).to_vec(),
            _ => list(&schema["enum"]).map(plain).collect(),
        };
        // A reference in the path has no usual value.
        let value = if is_required && place == "query" { self.usual(parameter) } else { None };
        html! {
            label {
                span { code { (name) } " " (prose(text(parameter, "description"))) }
                @if words.is_empty() {
                    input data-in=(place) data-name=(name) value=[value] required[is_required] spellcheck="false"
                        autocomplete="off";
                } @else {
                    select data-in=(place) data-name=(name) required[is_required] {
                        option value="" {}
                        @for word in &words { option { (word) } }
                    }
                }
            }
        }
    }

    /// Returns the text that a search compares besides id and path: descriptions, names of parameters and of the body's fields,
    /// and the codes of errors.
    fn words(&self) -> String {
        let schemas = &self.document["components"]["schemas"];
        let mut words = vec![text(self.described, "summary"), text(self.described, "description")];
        words.extend(self.parameters().map(|parameter| text(parameter, "name")));
        let bodies = members(&self.described["requestBody"]["content"]).flat_map(|(_, content)| referenced(&content["schema"]));
        words.extend(bodies.flat_map(|name| members(&schemas[name]["properties"])).map(|(name, _)| name.as_str()));
        for (_, response) in members(&self.described["responses"]) {
            words.extend(list(&resolved(self.document, response)[CODES]).filter_map(Value::as_str));
        }
        words.sort_unstable();
        words.dedup();
        words.join(" ").to_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(operation: Value) -> OperationPage {
        let document = json!({"paths": {"/things/{thing_ref}": {"post": operation}}});
        all(&document).remove(0)
    }

    #[test]
    fn a_request_has_its_credential_its_required_parameters_and_an_example() {
        let parameter =
            |name: &str, place: &str| json!({"name": name, "in": place, "required": true, "schema": {"type": "string"}});
        let body = json!({"content": {"application/json": {"example": {"name": "Smith"}}}});
        let security = json!([{"session": ["read"]}, {"bearer": ["read"]}, {"basic": ["read"]}]);
        let operation = json!({"operationId": "x", "security": security, "requestBody": body,
            "parameters": [parameter("thing_ref", "path"), parameter("pageSize", "query")], "responses": {}});
        let request = page(operation).request.into_string();
        for part in ["$BASE/things/$THING_REF?pageSize=20", "auth=(API_KEY, PASSWORD)", "body: JSON.stringify({", "Smith"] {
            assert!(request.contains(part), "{part}: {request}");
        }
        let (_, form) = request.split_once("<form").expect("a form");
        assert!(!form.contains(" name="), "no value becomes part of an address: {form}");
        let request = |scheme: &str| {
            page(json!({"operationId": "x", "security": [{scheme: ["owner"]}], "responses": {}})).request.into_string()
        };
        assert!(request("session").contains("session=$SESSION") && !request("session").contains("<form"));
        assert!(request("bearer").contains("Bearer $TOKEN") && !request("bearer").contains("API key"));
    }

    #[test]
    fn a_form_previews_the_change_unless_the_reader_wants_otherwise() {
        let open = |id: &str| page(json!({"operationId": id, "security": [], "responses": {}})).request.into_string();
        let dry_run = "<input id=\"dry-run\" type=\"checkbox\" checked>";
        assert!(open("void_document").contains(dry_run) && !open("log_in").contains(dry_run));
        assert!(!open("log_in").contains("Bearer token"), "no credential is necessary");
    }

    #[test]
    fn an_operation_is_found_by_its_parameters_fields_and_error_codes() {
        let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
        let document = json!({
            "paths": {"/things": {"post": {
                "operationId": "x", "summary": "Creates a Thing.",
                "parameters": [{"name": "currency", "in": "query"}],
                "requestBody": {"content": {"application/json": {"schema": reference("Thing")}}},
                "responses": {"409": {"x-codes": ["already_exists"]}},
            }}},
            "components": {"schemas": {
                "Thing": {"properties": {"net_terms": {"type": "integer"}}},
            }},
        });
        let words = all(&document).remove(0).words;
        for word in ["creates a thing.", "currency", "net_terms", "already_exists"] {
            assert!(words.contains(word), "{word}: {words}");
        }
    }
}
