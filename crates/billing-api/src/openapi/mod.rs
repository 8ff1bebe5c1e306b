//! Builds the OpenAPI document from the [`OPERATIONS`] table. The `shape` module adapts the schemas for client
//! generators.

mod examples;
mod notifications;
mod refusals;
mod shape;
mod shared;

use std::collections::BTreeMap;

use billing_domain::access::Scope;
use billing_domain::idempotency::MAX_KEY_CHARS;
use billing_domain::report::NumbersAs;
use serde_json::Value;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{
    HttpMethod as DescribedMethod, Operation as Described, OperationBuilder, ParameterBuilder, ParameterIn, ParameterStyle, Paths,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    Components, Content, Info, InfoBuilder, LicenseBuilder, OpenApi as Document, Ref, RefOr, Required, Response, ResponseBuilder,
    Responses, ServerBuilder,
};

use crate::dto::schemas::{self, Presence, Schemas};
use crate::media_type::{JSON, PDF};
use crate::operation::{AuthRequirement, Flag, HttpMethod, OperationSpec, VERSION};
use crate::operations::OPERATIONS;
use crate::problem::ProblemJson;
use crate::query::{METADATA, REPORT_DATA};
pub use refusals::CODES;
pub use shared::resolved;

/// The security scheme of bearer tokens.
pub const BEARER: &str = "bearer";
/// The security scheme of an API key and its password.
pub const BASIC: &str = "basic";
const COOKIE: &str = "session";
const PREFER: &str = "Prefer";
/// The extension of a JSON response that lists the other media types that a request can ask for.
pub const MEDIA_TYPES: &str = "x-media-types";
/// Preference for decimals as strings.
pub const AS_STRINGS: &str = "numbers=string";
const PREFERENCE_APPLIED: &str = "Preference-Applied";
const INTERFACE_VERSION: &str = "InterfaceVersion";
/// The tag of the notifications, and of no operation: generators write the operations of a tag into one file, and those that receive
/// notifications into another.
pub const NOTIFICATIONS: &str = "notifications";
const REQUEST_ID: &str = "Id of the request in the response and in the server log: at most 128 characters of letters, digits and \
                          `. _ : - / + =`. Other ids are replaced.";

/// Tags of the operations, in display order.
const TAGS: [(&str, &str); 13] = [
    ("auth", "Log-in, log-out and API keys"),
    ("administrators", "Administrators, their roles, and the caller's own account"),
    ("usage", "Usage events"),
    ("formats", "Usage formats, which convert free-form events"),
    ("contracts", "Contracts and previews of their documents"),
    ("catalog", "Customers, supplier entities, usage products and pricings, bank accounts and exchange rates"),
    ("documents", "Invoices, credits, debits and billing runs"),
    ("charges", "One-off amounts and manual credit notes"),
    ("credit_grants", "Prepaid credit that lowers documents before tax"),
    ("limits", "Limits that reject usage above a number of the customer"),
    ("webhooks", "Webhook endpoints, and deliveries of notifications to them"),
    (NOTIFICATIONS, "Notifications, which the service sends to webhook endpoints"),
    ("service", "Health, metrics, search, audit log, dry runs and this document"),
];

/// Returns the OpenAPI document of the interface for one representation of decimals.
pub fn described(numbers: NumbersAs) -> Value {
    let mut json = serde_json::to_value(document(numbers)).expect("nothing in it can fail to be written");
    json["webhooks"] = notifications::webhooks();
    shape::for_generators(&mut json);
    if numbers == NumbersAs::String {
        examples::with_numbers_as_strings(&mut json);
        shape::with_numbers_as_strings(&mut json);
    }
    shared::share(&mut json);
    json
}

/// Error responses that operations with the same refusals share.
#[derive(Default)]
struct Refusals {
    responses: BTreeMap<String, RefOr<Response>>,
    /// Component names by refusal key.
    names: BTreeMap<String, String>,
}

fn document(numbers: NumbersAs) -> Document {
    let mut schemas = Schemas::default();
    schemas.refer::<ProblemJson<'static>>();
    let (mut paths, mut shared) = (Paths::new(), Refusals::default());
    for operation in OPERATIONS {
        let mut described = describe(operation, &mut schemas, &mut shared);
        if numbers == NumbersAs::String && operation.answers.schema.is_some() && operation.is_versioned() {
            prefer_strings(&mut described);
        }
        paths.add_path_operation(operation.path, vec![method(operation.method)], described);
    }
    notifications::define(&mut schemas);
    let mut components = Components::new();
    components.schemas.extend(schemas.into_all());
    let version = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([VERSION]));
    components.schemas.insert(INTERFACE_VERSION.to_owned(), version.description(Some("An API version.")).into());
    components.responses.extend(shared.responses);
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").build();
    let basic =
        HttpBuilder::new().scheme(HttpAuthScheme::Basic).description(Some("An API key and its password, without a log-in."));
    let cookie = ApiKeyValue::with_description(COOKIE, "Session cookie of an administrator; named `__Host-session` with HTTPS.");
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
    components.add_security_scheme(BASIC, SecurityScheme::Http(basic.build()));
    components.add_security_scheme(COOKIE, SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    let mut document = Document::new(info(), paths);
    document.components = Some(components);
    let here = ServerBuilder::new().url("/").description(Some("The server of this document"));
    document.servers = Some(vec![here.build()]);
    let tag = |(name, description): (&str, &str)| TagBuilder::new().name(name).description(Some(description)).build();
    document.tags = Some(TAGS.map(tag).to_vec());
    document
}

fn info() -> Info {
    let mut license = LicenseBuilder::new().name("MIT OR Apache-2.0").build();
    license.identifier = Some("MIT OR Apache-2.0".to_owned());
    let description = "Records usage events and issues invoices. Every error response is a problem document (RFC 9457) \
                       with a stable `code`. Decimals are JSON numbers with all their digits. With `Prefer: numbers=string` \
                       (RFC 7240) they are strings, as described by `/openapi.json?numbers=string`. Error responses also have \
                       the headers `X-Request-Id` and `Version`.";
    let info = InfoBuilder::new().title("Usage Billing").version(env!("CARGO_PKG_VERSION"));
    info.description(Some(description)).license(Some(license)).build()
}

const fn method(method: HttpMethod) -> DescribedMethod {
    match method {
        HttpMethod::POST => DescribedMethod::Post,
        HttpMethod::DELETE => DescribedMethod::Delete,
        HttpMethod::GET => DescribedMethod::Get,
    }
}

fn describe(operation: &OperationSpec, schemas: &mut Schemas, shared: &mut Refusals) -> Described {
    let mut lines = operation.does.iter().map(|line| line.trim());
    let summary: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    let more: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let mut described = OperationBuilder::new()
        .operation_id(Some(operation.id))
        .tag(operation.tag)
        .summary(Some(summary.join(" ")))
        .description((!more.is_empty()).then(|| more.join(" ")))
        .securities(Some(security(operation.needs)));
    for parameter in parameters(operation, schemas) {
        described = described.parameter(parameter);
    }
    if let Some(taken) = &operation.takes {
        let mut body = RequestBodyBuilder::new().content(JSON, content((taken.schema)(schemas), examples::request(operation)));
        for text in taken.or {
            body = body.content(*text, Content::new(Some(any_text())));
        }
        let required = if taken.required { Required::True } else { Required::False };
        described = described.request_body(Some(body.required(Some(required)).build()));
    }
    described.responses(responses(operation, schemas, shared)).build()
}

fn content(schema: RefOr<Schema>, example: Option<Value>) -> Content {
    let mut content = Content::new(Some(schema));
    content.example = example;
    content
}

fn any_text() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).into()
}

/// Returns the schema of a non-JSON body: text or the bytes of a file.
fn of_media_type(media_type: &str) -> RefOr<Schema> {
    if media_type == PDF {
        ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary))).into()
    } else {
        any_text()
    }
}

fn parameters(operation: &OperationSpec, schemas: &mut Schemas) -> Vec<ParameterBuilder> {
    let mut all = Vec::new();
    for name in operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
        let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path).required(Required::True);
        all.push(parameter.description(Some(meaning_in_path(name))).schema(Some(any_text())));
    }
    for asked in operation.asks.iter().flat_map(|asks| (asks.described)(schemas)) {
        let required = if asked.presence == Presence::Required { Required::True } else { Required::False };
        let mut parameter = ParameterBuilder::new().name(asked.name).parameter_in(ParameterIn::Query).required(required);
        if [METADATA, REPORT_DATA].contains(&asked.name) {
            // Each key is a parameter of its own: `metadata[key]=value`.
            parameter = parameter.style(Some(ParameterStyle::DeepObject)).explode(Some(true));
        }
        all.push(parameter.description(Some(asked.meaning.trim())).schema(Some(schemas::described(asked.schema, ""))));
    }
    if operation.is_versioned() {
        let version = Ref::from_schema_name(INTERFACE_VERSION);
        all.push(header("Version", "API version. Default: V0.", version));
    }
    if operation.takes_idempotency_key() {
        let key = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(MAX_KEY_CHARS));
        let does = if operation.is_carried_out_once() {
            "Identifies the request. A repeat with the same body returns the first response. No control characters."
        } else {
            "Validated but ignored, because repeats of this request have no further effect. No control characters."
        };
        all.push(header("Idempotency-Key", does, key));
    }
    if operation.answers.is_file() {
        let known = "Entity tags of the caller's copies. If one of them is current, the response is 304.";
        all.push(header("If-None-Match", known, ObjectBuilder::new().schema_type(Type::String)));
    }
    all.push(header("X-Request-Id", REQUEST_ID, ObjectBuilder::new().schema_type(Type::String)));
    all
}

/// Returns the description of a path parameter.
fn meaning_in_path(name: &str) -> String {
    match name {
        "source_ref" => "Reference of the credit or payment".to_owned(),
        "billing_account_id" => "Identifier of the bank account".to_owned(),
        "product_pricing_ref" => "Reference of the pricing".to_owned(),
        other => format!("Reference of the {}", other.trim_end_matches("_ref").replace('_', " ")),
    }
}

/// Adds the `Prefer` header that selects decimals as strings. Only the document with string decimals contains it, because
/// clients of the other document expect numbers.
fn prefer_strings(described: &mut Described) {
    let preference = || ObjectBuilder::new().schema_type(Type::String).enum_values(Some([AS_STRINGS]));
    // Generated clients send a default by themselves.
    let sent = preference().default(Some(AS_STRINGS.into()));
    let asked = header(PREFER, "Returns all decimals as strings (RFC 7240). Clients of this document send it.", sent);
    described.parameters.get_or_insert_default().push(asked.build().into());
    if let Some(RefOr::T(success)) = described.responses.responses.get_mut("200") {
        let applied = HeaderBuilder::new().schema(Some(preference())).description(Some("Decimals are strings, as requested."));
        success.headers.insert(PREFERENCE_APPLIED.to_owned(), applied.build().into());
    }
}

fn responses(operation: &OperationSpec, schemas: &mut Schemas, shared: &mut Refusals) -> Responses {
    let mut all = Responses::new();
    let answers = &operation.answers;
    let mut success = ResponseBuilder::new().description(answers.means);
    if let Some(schema) = answers.schema {
        success = success.content(JSON, content(schema(schemas), examples::answer(operation)));
        // As content, they would make text a type of the response in generated clients, which ask for JSON.
        success =
            success.extensions((!answers.or.is_empty()).then(|| ExtensionsBuilder::new().add(MEDIA_TYPES, answers.or).build()));
    } else {
        for text in answers.or {
            success = success.content(*text, content(of_media_type(text), examples::answer(operation)));
        }
    }
    let status = if answers.schema.is_none() && answers.or.is_empty() { "204" } else { "200" };
    let mut success = success.build();
    add_headers(operation, status, &mut success);
    all.responses.insert(status.to_owned(), success.into());
    if operation.is(Flag::Skips) {
        let mut skipped = ResponseBuilder::new().description("The usage format skips the event").build();
        add_headers(operation, "204", &mut skipped);
        all.responses.insert("204".to_owned(), skipped.into());
    }
    if answers.is_file() {
        let mut unchanged = ResponseBuilder::new().description("The caller's copy is current").build();
        add_headers(operation, "304", &mut unchanged);
        all.responses.insert("304".to_owned(), unchanged.into());
    }
    for refusal in refusals::of(operation) {
        let name = shared.names.entry(refusal.key()).or_insert_with(|| {
            let name = refusal.name(operation);
            let mut response = refusal.response(schemas);
            add_headers(operation, refusal.status, &mut response);
            shared.responses.insert(name.clone(), response.into());
            name
        });
        all.responses.insert(refusal.status.to_owned(), RefOr::Ref(Ref::new(format!("#/components/responses/{name}"))));
    }
    all
}

fn security(needs: AuthRequirement) -> Vec<SecurityRequirement> {
    let none: [&str; 0] = [];
    let cookie = || SecurityRequirement::new(COOKIE, none);
    match needs {
        AuthRequirement::Nothing => vec![],
        AuthRequirement::Anything => vec![SecurityRequirement::default(), SecurityRequirement::new(BEARER, none), cookie()],
        AuthRequirement::Permission(use_case) => {
            let need = use_case.need();
            // The lowest role with the permission; every role for operations on the caller's own account.
            let role = SecurityRequirement::new(COOKIE, [need.role().as_str()]);
            let scopes = need.scopes();
            let words: Vec<&str> = scopes.into_iter().map(Scope::as_str).collect();
            let by_key = [BEARER, BASIC].into_iter().filter(|_| !words.is_empty());
            by_key.map(|scheme| SecurityRequirement::new(scheme, words.clone())).chain([role]).collect()
        }
    }
}

fn header(name: &str, description: &str, schema: impl Into<RefOr<Schema>>) -> ParameterBuilder {
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Header).required(Required::False);
    parameter.description(Some(description)).schema(Some(schema))
}

fn add_headers(operation: &OperationSpec, status: &str, response: &mut Response) {
    let is_list = operation.parameters().is_some_and(|names| names.contains(&"pageNumber"));
    let is_success = status < "400";
    let all = [
        ("X-Request-Id", is_success, Type::String, "Id of the request in the server log."),
        ("Version", is_success && operation.is_versioned(), Type::String, "API version."),
        ("X-Total-Count", is_list && status == "200", Type::Integer, "Number of elements in the whole list."),
        (
            "X-Total-Amount",
            operation.is(Flag::SumsAmounts) && status == "200",
            Type::String,
            "Total by currency, such as `EUR 12.50, USD 0.00`. Credits are negative; drafts and void documents are excluded.",
        ),
        ("X-Total-Amount-Due", operation.is(Flag::SumsAmounts) && status == "200", Type::String, "Amount due by currency."),
        ("Link", is_list && status == "200", Type::String, "Links to the first, previous, next and last page (RFC 8288)."),
        (
            "Idempotency-Replayed",
            operation.is_carried_out_once() && status == "200",
            Type::Boolean,
            "`true` for a replayed response; absent from the first response.",
        ),
        (
            "Usage-Left",
            operation.is(Flag::StatesLeft) && status == "200",
            Type::String,
            "What is left of the customer's limits, such as `\"<limit_ref>\";left=\"12.34\"` (RFC 9651); absent without limits.",
        ),
        ("ETag", operation.answers.is_file() && matches!(status, "200" | "304"), Type::String, "Entity tag of the file."),
        ("WWW-Authenticate", status == "401", Type::String, "The accepted credential."),
        ("Retry-After", matches!(status, "429" | "503"), Type::Integer, "Seconds to wait before a retry."),
        (
            "Retry-After",
            operation.is_carried_out_once() && status == "409",
            Type::Integer,
            "With `request_in_progress`: seconds to wait before a retry.",
        ),
    ];
    for (name, _, kind, description) in all.into_iter().filter(|(_, applies, ..)| *applies) {
        let header = HeaderBuilder::new().schema(Some(ObjectBuilder::new().schema_type(kind))).description(Some(description));
        response.headers.insert(name.to_owned(), header.build().into());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::media_type::PROBLEM_JSON;

    fn described() -> Value {
        super::described(NumbersAs::Number)
    }

    fn response<'d>(document: &'d Value, operation: &'d Value, status: &str) -> &'d Value {
        resolved(document, &operation["responses"][status])
    }

    fn parameter<'d>(document: &'d Value, operation: &'d Value, name: &str) -> Option<&'d Value> {
        let parameters = operation["parameters"].as_array().expect("parameters").iter();
        parameters.map(|parameter| resolved(document, parameter)).find(|parameter| parameter["name"] == name)
    }

    fn operations(document: &Value) -> Vec<(String, String, &Value)> {
        let paths = document["paths"].as_object().expect("paths");
        let methods = |(path, item): (&String, &'_ Value)| -> Vec<(String, String)> {
            item.as_object().expect("a path item").keys().map(|method| (method.to_uppercase(), path.clone())).collect()
        };
        let places: Vec<(String, String)> = paths.iter().flat_map(methods).collect();
        places.into_iter().map(|(method, path)| (method.clone(), path.clone(), &paths[&path][method.to_lowercase()])).collect()
    }

    #[test]
    fn the_document_describes_the_operations_of_the_table_and_no_others() {
        let document = described();
        let in_document: BTreeSet<(String, String, String)> = operations(&document)
            .into_iter()
            .map(|(method, path, operation)| (method, path, operation["operationId"].as_str().expect("an id").to_owned()))
            .collect();
        let in_table: BTreeSet<(String, String, String)> = OPERATIONS
            .iter()
            .map(|operation| (operation.method.as_str().to_owned(), operation.path.to_owned(), operation.id.to_owned()))
            .collect();
        assert_eq!(in_document, in_table);
    }

    #[test]
    fn the_document_that_has_strings_asks_for_them_and_the_other_one_has_numbers() {
        for (numbers, wanted) in [(NumbersAs::Number, 0), (NumbersAs::String, 1)] {
            let document = super::described(numbers);
            let operation = &document["paths"]["/api/documents/{document_ref}"]["get"];
            let parameters = operation["parameters"].as_array().expect("parameters").iter();
            let parameters = parameters.map(|parameter| resolved(&document, parameter));
            let sent = parameters.filter(|parameter| parameter["name"] == PREFER && parameter["schema"]["default"] == AS_STRINGS);
            assert_eq!(sent.count(), wanted);
            let applied = resolved(&document, &operation["responses"]["200"]["headers"][PREFERENCE_APPLIED]);
            let applied = &applied["schema"]["enum"][0];
            assert_eq!(applied == AS_STRINGS, wanted == 1);
        }
    }

    #[test]
    fn every_operation_says_who_may_and_every_response_what_it_means() {
        let document = described();
        for (method, path, operation) in operations(&document) {
            assert!(operation["security"].is_array(), "{method} {path}");
            assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{method} {path}");
            for status in operation["responses"].as_object().expect("responses").keys() {
                let response = response(&document, operation, status);
                assert!(response["description"].as_str().is_some_and(|text| !text.is_empty()), "{method} {path} {status}");
                assert_eq!(response["content"].get(PROBLEM_JSON).is_some(), status.as_str() >= "400", "{method} {path} {status}");
            }
        }
    }

    #[test]
    fn every_post_takes_a_key_and_says_what_becomes_of_repeats() {
        let document = described();
        for (method, path, operation) in operations(&document) {
            let key = parameter(&document, operation, "Idempotency-Key");
            assert_eq!(key.is_some(), method == "POST", "{method} {path}");
            let Some(key) = key else { continue };
            assert_eq!((&key["in"], &key["required"]), (&"header".into(), &Value::Null), "{path}");
            assert_eq!((&key["schema"]["minLength"], &key["schema"]["maxLength"]), (&1.into(), &255.into()), "{path}");
            let response = |status| response(&document, operation, status);
            assert!(response("400").is_object(), "{path}");
            let is_it = |operation: &&OperationSpec| operation.path == path && operation.method == HttpMethod::POST;
            let replays = OPERATIONS.iter().find(is_it).is_some_and(OperationSpec::is_carried_out_once);
            assert_eq!(response("200")["headers"]["Idempotency-Replayed"].is_object(), replays, "{path}");
            assert_eq!(response("409")["headers"]["Retry-After"].is_object(), replays, "{path}");
            assert!(!replays || response("422").is_object(), "{path}");
        }
    }

    #[test]
    fn every_reference_in_the_document_leads_somewhere() {
        fn walk<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
            match value {
                Value::Object(object) => {
                    found.extend(object.get("$ref").and_then(Value::as_str));
                    object.values().for_each(|value| walk(value, found));
                }
                Value::Array(array) => array.iter().for_each(|value| walk(value, found)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let document = described();
        let mut references = Vec::new();
        walk(&document, &mut references);
        assert!(references.len() > 50, "{}", references.len());
        for reference in references {
            assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
        }
    }

    #[test]
    fn refusals_that_depend_on_what_there_is_are_described() {
        let document = described();
        for (id, status) in [
            ("update_event", "404"),
            ("cancel_contract", "409"),
            ("edit_contract", "409"),
            ("resume_contract", "404"),
            ("resume_contract", "409"),
            ("change_quantity", "404"),
            ("change_quantity", "422"),
            ("issue_document", "409"),
            ("void_document", "409"),
            ("record_payment", "409"),
            ("issue_document", "422"),
            ("confirm_identity", "429"),
        ] {
            let found = operations(&document).into_iter().find(|(.., operation)| operation["operationId"] == id);
            assert!(found.is_some_and(|(.., operation)| operation["responses"][status].is_object()), "{id} {status}");
        }
    }

    /// A request id is never rejected.
    #[test]
    fn a_request_id_may_be_any_text() {
        let document = described();
        for (_, path, operation) in operations(&document) {
            let request_id = parameter(&document, operation, "X-Request-Id").expect(&path);
            assert_eq!(request_id["schema"], serde_json::json!({"type": "string"}));
        }
    }

    #[test]
    fn every_choice_has_a_name_of_its_own() {
        let document = described();
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        for (name, schema) in schemas {
            assert!(!name.ends_with("Json") && !name.ends_with("Word"), "{name}");
            for choice in schema["oneOf"].as_array().into_iter().flatten() {
                assert!(choice["properties"].is_null() && choice["enum"].is_null(), "{name}: {choice}");
            }
            for (field, property) in schema["properties"].as_object().into_iter().flatten() {
                assert!(property["properties"].is_null() && property["enum"].is_null(), "{name}: {field}");
            }
        }
        let rust_names = super::document(NumbersAs::Number).components.expect("components").schemas.len();
        let choices = schemas.values().filter_map(|schema| schema["discriminator"]["mapping"].as_object()).map(|of| of.len());
        assert_eq!(schemas.len(), rust_names + choices.sum::<usize>());
    }

    #[test]
    fn names_of_components_do_not_differ_by_case_alone() {
        let document = described();
        let sections = document["components"].as_object().expect("components").values();
        let names: BTreeSet<&str> =
            sections.filter_map(Value::as_object).flat_map(|section| section.keys()).map(String::as_str).collect();
        let in_one_case: BTreeSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
        let alike =
            names.iter().filter(|name| names.iter().any(|other| other != *name && other.to_lowercase() == name.to_lowercase()));
        assert_eq!(in_one_case.len(), names.len(), "{:?}", alike.collect::<Vec<_>>());
    }

    #[test]
    fn the_licence_is_named_by_its_identifier() {
        assert_eq!(described()["info"]["license"]["identifier"], "MIT OR Apache-2.0");
    }
}
