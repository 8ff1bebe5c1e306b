//! The OpenAPI document. Bodies and successes are described beside their handlers; what the table of [`OPERATIONS`] knows
//! (credentials, headers, which refusals there are) is added from it, and `shape` makes good types of the schemas.

mod shape;

use actix_web::http::Method;
use billing_domain::access::Need;
use billing_domain::idempotency::MAX_KEY_CHARS;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation as Described, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, OpenApi as Document, PathItem, Ref, RefOr, Required, Response, ResponseBuilder};
use utoipa::{IntoParams, OpenApi, ToSchema};

use crate::dto::log_in::AdminSessionJson;
use crate::dto::words::{
    ContractStateWord, DocumentKindWord, DocumentOrderWord, DocumentStateWord, IntervalWord, PurposeKindWord, ReportFormatWord,
};
use crate::operations::{Needs, OPERATIONS, Operation, VERSION};
use crate::problem::{PROBLEM_JSON, ProblemJson};
use crate::routes;

const BEARER: &str = "bearer";
const COOKIE: &str = "session";
const PAGE_NUMBER: &str = "pageNumber";
const INTERFACE_VERSION: &str = "InterfaceVersion";
const REQUEST_ID: &str = "Names the request in the answer and in the service's log, if it has at most 128 characters of letters, \
                          digits and `. _ : - / + =`; another one is replaced.";

/// The OpenAPI document of the interface, as JSON.
pub fn openapi_json() -> String {
    let mut json = serde_json::to_value(document()).expect("nothing in it can fail to be written");
    shape::for_generators(&mut json);
    format!("{json:#}")
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Usage Billing",
        description = "Usage in, invoices out. Every failure is a problem document (RFC 9457) whose `code` is stable.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(ProblemJson<'static>)),
    tags(
        (name = "auth", description = "Log-in, log-out and API keys"),
        (name = "usage", description = "Usage events"),
        (name = "formats", description = "Usage formats: how free-form events are read"),
        (name = "contracts", description = "Contracts, and what they bill now and next"),
        (name = "catalog", description = "Customers, supplier entities, usage products and pricings, bank accounts and exchange rates"),
        (name = "documents", description = "Invoices, credits and debits, and the billing run"),
        (name = "charges", description = "One-off amounts and manual credit notes"),
        (name = "service", description = "The service itself")
    ),
    paths(
        routes::auth::log_in,
        routes::auth::log_out,
        routes::auth::generate_key,
        routes::auth::list_keys,
        routes::auth::delete_key,
        routes::usage::record_event,
        routes::batches::record_batch,
        routes::usage::record_formatted_event,
        routes::usage::list_events,
        routes::usage::get_event,
        routes::usage::update_event,
        routes::usage::update_formatted_event,
        routes::usage::delete_event,
        routes::usage::get_event_history,
        routes::imports::import_usage,
        routes::reports::summarize_usage,
        routes::reports::report_usage,
        routes::reports::report_document_usage,
        routes::usage_products::create_usage_product,
        routes::usage_products::edit_usage_product,
        routes::usage_products::list_usage_products,
        routes::usage_products::get_usage_product,
        routes::usage_formats::create_usage_format,
        routes::usage_formats::edit_usage_format,
        routes::usage_formats::test_usage_format,
        routes::usage_formats::list_usage_formats,
        routes::usage_formats::get_usage_format,
        routes::contracts::create_contract,
        routes::contracts::edit_contract,
        routes::contracts::cancel_contract,
        routes::contracts::resume_contract,
        routes::contracts::change_quantity,
        routes::contracts::list_contracts,
        routes::contracts::search_contracts,
        routes::contracts::current_invoices,
        routes::contracts::next_invoices,
        routes::contracts::get_contract,
        routes::customers::create_customer,
        routes::customers::edit_customer,
        routes::customers::list_customers,
        routes::customers::list_customer_names,
        routes::customers::get_customer,
        routes::entities::create_entity,
        routes::entities::edit_entity,
        routes::entities::list_entities,
        routes::entities::list_entity_names,
        routes::entities::get_entity,
        routes::pricings::create_pricing,
        routes::pricings::edit_pricing,
        routes::pricings::list_pricings,
        routes::pricings::get_pricing,
        routes::bank_accounts::create_bank_account,
        routes::bank_accounts::edit_bank_account,
        routes::bank_accounts::list_bank_accounts,
        routes::bank_accounts::get_bank_account,
        routes::exchange_rates::put_exchange_rate,
        routes::exchange_rates::list_exchange_rates,
        routes::documents::list_documents,
        routes::documents::get_document,
        routes::documents::issue_document,
        routes::documents::void_document,
        routes::search::search,
        routes::money::record_payment,
        routes::money::list_payments_of_document,
        routes::money::list_payments,
        routes::money::reverse_payment,
        routes::money::refund,
        routes::money::apply,
        routes::money::unapply,
        routes::money::write_off,
        routes::money::get_balance,
        routes::money::get_statement,
        routes::charges::record_charge,
        routes::charges::edit_charge,
        routes::charges::list_charges,
        routes::charges::get_charge,
        routes::charges::delete_charge,
        routes::billing::run_billing,
        routes::service::live,
        routes::service::ready,
        routes::service::openapi,
    )
)]
struct Handlers;

/// Which page of a list.
#[expect(dead_code, reason = "describes parameters that `Query` reads")]
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageParams {
    /// Elements of a page.
    #[param(rename = "pageSize", required = false, minimum = 1, maximum = 1000, default = 20)]
    page_size: u32,
    /// Which page, from 0.
    #[param(rename = "pageNumber", required = false, minimum = 0, maximum = 2147483647, default = 0)]
    page_number: u32,
}

/// Which version of a usage format.
#[expect(dead_code, reason = "describes a parameter that `Query` reads")]
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FormatParams {
    /// A version; the newest when left out.
    #[param(required = false, minimum = 1, maximum = 2147483647)]
    version: u32,
}

/// Which page of the list of keys.
#[expect(dead_code, reason = "describes parameters that `Query` reads")]
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct KeyParams {
    /// Elements of a page.
    #[param(rename = "pageSize", required = false, minimum = 1, maximum = 1000, default = 1000)]
    page_size: u32,
    /// Which page, from 0.
    #[param(rename = "pageNumber", required = false, minimum = 0, maximum = 2147483647, default = 0)]
    page_number: u32,
}

/// Whose contracts, and which page.
#[expect(dead_code, reason = "describes parameters that `Query` reads")]
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ContractParams {
    /// The customer.
    customer_ref: String,
    /// Elements of a page.
    #[param(rename = "pageSize", minimum = 1, maximum = 1000)]
    page_size: u32,
    /// Which page, from 0.
    #[param(rename = "pageNumber", minimum = 0, maximum = 2147483647)]
    page_number: u32,
}

/// Which documents.
#[expect(dead_code, reason = "describes parameters that `Query` reads")]
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DocumentParams {
    /// This customer's.
    #[param(required = false)]
    customer_ref: String,
    /// This contract's.
    #[param(required = false)]
    contract_ref: String,
    /// This entity's.
    #[param(required = false)]
    entity_ref: String,
    /// Of this kind.
    #[param(required = false)]
    kind: DocumentKindWord,
    /// In this state.
    #[param(required = false)]
    state: DocumentStateWord,
    /// Whose period starts on this day or later.
    #[param(required = false, format = Date)]
    from: String,
    /// Whose period starts on this day or earlier.
    #[param(required = false, format = Date)]
    to: String,
    /// With this number.
    #[param(required = false, example = "UB-INV-1")]
    document_number: String,
    /// Of the contract with this number.
    #[param(required = false, example = "C-1")]
    contract_number: String,
    /// With this purchase order number.
    #[param(required = false)]
    po_number: String,
    /// That exist for this.
    #[param(required = false, inline)]
    purpose: PurposeKindWord,
    /// In this currency.
    #[param(required = false)]
    currency: String,
    /// Issued on this day or later.
    #[param(required = false, format = Date)]
    issued_from: String,
    /// Issued on this day or earlier.
    #[param(required = false, format = Date)]
    issued_to: String,
    /// Due on this day or later.
    #[param(required = false, format = Date)]
    due_from: String,
    /// Due on this day or earlier.
    #[param(required = false, format = Date)]
    due_to: String,
    /// Opened, issued, put out of force, paid, credited, applied or written off at this instant or later: RFC 3339 with an offset.
    #[param(required = false, format = DateTime)]
    updated_since: String,
    /// Whether something is left to pay of an invoice or debit.
    #[param(required = false)]
    has_amount_due: bool,
    /// Whether the due date has passed with something left to pay.
    #[param(required = false)]
    overdue: bool,
}

/// In which order documents come, from where on, and how they are written.
#[expect(dead_code, reason = "describes parameters that `Query` reads")]
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DocumentListParams {
    /// By when they were opened, when left out. What isn't issued has neither dates nor amount, what is never due has no due date,
    /// and comes last.
    #[param(required = false, inline)]
    order: DocumentOrderWord,
    /// Where to go on: from the `next` link of the same list. Not with `pageNumber`.
    #[param(required = false)]
    cursor: String,
    /// Whether all documents are counted and summed up: `true` when left out, with `cursor` `false`.
    #[param(required = false)]
    totals: bool,
    /// Writes every document as a row of a table, without pages.
    #[param(required = false, inline)]
    format: ReportFormatWord,
}

/// Which contracts.
#[expect(dead_code, reason = "describes parameters that `Query` reads")]
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ContractSearchParams {
    /// This customer's.
    #[param(required = false)]
    customer_ref: String,
    /// With this number.
    #[param(required = false, example = "C-1")]
    contract_number: String,
    /// With this purchase order number.
    #[param(required = false)]
    po_number: String,
    /// In this state today.
    #[param(required = false)]
    state: ContractStateWord,
    /// Whose last day is before this one.
    #[param(required = false, format = Date)]
    ends_before: String,
}

/// Which customers.
#[expect(dead_code, reason = "describes parameters that `Query` reads")]
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CustomerParams {
    /// Whose name begins so; letters A to Z in either case.
    #[param(required = false)]
    name: String,
    /// With this e-mail address; letters A to Z in either case.
    #[param(required = false)]
    email: String,
    /// With this tax number.
    #[param(required = false)]
    tax_id: String,
}

/// What is searched for.
#[expect(dead_code, reason = "describes a parameter that `Query` reads")]
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchParams {
    /// A number, reference, key, purchase order number or name, or how a name begins; letters A to Z of names in either case.
    q: String,
}

/// Which payments.
#[expect(dead_code, reason = "describes parameters that `Query` reads")]
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PaymentParams {
    /// This customer's.
    #[param(required = false)]
    customer_ref: String,
    /// Recorded on this document.
    #[param(required = false)]
    document_ref: String,
    /// With this reference of the payer's or the bank's.
    #[param(required = false)]
    reference: String,
    /// Paid on this day or later.
    #[param(required = false, format = Date)]
    from: String,
    /// Paid on this day or earlier.
    #[param(required = false, format = Date)]
    to: String,
}

/// Which charges.
#[expect(dead_code, reason = "describes parameters that `Query` reads")]
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChargeParams {
    /// This customer's.
    #[param(required = false)]
    customer_ref: String,
    /// This contract's.
    #[param(required = false)]
    contract_ref: String,
    /// Of this day or later.
    #[param(required = false, format = Date)]
    from: String,
    /// Of this day or earlier.
    #[param(required = false, format = Date)]
    to: String,
}

/// Which days a statement tells of, and how.
#[expect(dead_code, reason = "describes parameters that `Query` reads")]
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatementParams {
    /// The first day; from the beginning when left out.
    #[param(required = false, format = Date)]
    from: String,
    /// The last day; to the end when left out.
    #[param(required = false, format = Date)]
    to: String,
    /// `json` (when left out) or `csv`.
    #[param(required = false)]
    format: String,
}

/// Which events.
#[expect(dead_code, reason = "describes parameters that `Query` reads")]
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventParams {
    /// This customer's.
    #[param(required = false)]
    customer_ref: String,
    /// Of this usage product.
    #[param(required = false)]
    usage_product_ref: String,
    /// Whose latest change stands on this document.
    #[param(required = false)]
    document_ref: String,
    /// That count in this contract.
    #[param(required = false)]
    contract_ref: String,
    /// That happened at this instant or later: RFC 3339 with an offset.
    #[param(required = false, format = DateTime)]
    from: String,
    /// That happened before this instant.
    #[param(required = false, format = DateTime)]
    to: String,
}

/// How events are summed up.
#[expect(dead_code, reason = "describes parameters that `Query` reads")]
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SummaryParams {
    /// How long the intervals are; they are those of UTC.
    #[param(inline)]
    interval: IntervalWord,
    /// `usage_product_ref`, `customer_ref`, or both with a comma between: what gets a row of its own.
    #[param(required = false)]
    group_by: String,
}

/// How events are written.
#[expect(dead_code, reason = "describes parameters that `Query` reads")]
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReportParams {
    /// How the report is written; CSV when left out.
    #[param(required = false, inline)]
    format: ReportFormatWord,
}

/// What a log-in is answered.
#[expect(dead_code, reason = "describes an answer that the handler writes")]
#[derive(ToSchema)]
#[serde(untagged)]
pub(crate) enum LogInAnswer {
    /// A bearer token, for an API key.
    Token(String),
    /// The session, for an administrator.
    Session(AdminSessionJson),
}

fn document() -> Document {
    let mut document = Handlers::openapi();
    for operation in OPERATIONS {
        let described = document.paths.paths.get_mut(operation.path).and_then(|item| method_of(item, &operation.method));
        if let Some(described) = described {
            describe(operation, described);
        }
    }
    let components = document.components.get_or_insert_default();
    let version = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([VERSION]));
    components.schemas.insert(INTERFACE_VERSION.to_owned(), version.description(Some("A version of the interface.")).into());
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").build();
    let cookie = ApiKeyValue::with_description(COOKIE, "An administrator's session; named `__Host-session` with https.");
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
    components.add_security_scheme(COOKIE, SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    document
}

fn method_of<'d>(item: &'d mut PathItem, method: &Method) -> Option<&'d mut Described> {
    match *method {
        Method::GET => item.get.as_mut(),
        Method::POST => item.post.as_mut(),
        Method::DELETE => item.delete.as_mut(),
        _ => None,
    }
}

fn describe(operation: &Operation, described: &mut Described) {
    described.security = Some(security(operation.needs));
    let parameters = described.parameters.get_or_insert_default();
    let is_list = parameters.iter().any(|parameter| matches!(parameter, RefOr::T(parameter) if parameter.name == PAGE_NUMBER));
    let has_query = parameters
        .iter()
        .any(|parameter| matches!(parameter, RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query));
    if operation.is_versioned() {
        let version = Ref::from_schema_name(INTERFACE_VERSION);
        parameters.push(header("Version", "The version of the interface; V0 when left out.", version).build().into());
    }
    if operation.takes_idempotency_key() {
        let key = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(MAX_KEY_CHARS));
        let does = if operation.is_carried_out_once() {
            "Names the request: sent again with the same body, it is given the first answer again. No control characters."
        } else {
            "Checked, and of no effect: repeating this request doubles nothing. No control characters."
        };
        parameters.push(header("Idempotency-Key", does, key).build().into());
    }
    let request_id = ObjectBuilder::new().schema_type(Type::String);
    parameters.push(header("X-Request-Id", REQUEST_ID, request_id).build().into());
    for (status, description) in refusals(operation, described.request_body.is_some(), has_query) {
        let problem = Content::new(Some(RefOr::Ref(Ref::from_schema_name("Problem"))));
        let refusal = ResponseBuilder::new().description(description).content(PROBLEM_JSON, problem);
        described.responses.responses.insert(status.to_owned(), refusal.build().into());
    }
    for (status, response) in &mut described.responses.responses {
        if let RefOr::T(response) = response {
            add_headers(operation, status, response, is_list);
        }
    }
}

fn security(needs: Needs) -> Vec<SecurityRequirement> {
    let none: [&str; 0] = [];
    let cookie = || SecurityRequirement::new(COOKIE, none);
    match needs {
        Needs::Nothing => vec![],
        Needs::Anything => vec![SecurityRequirement::default(), SecurityRequirement::new(BEARER, none), cookie()],
        Needs::Permission(use_case) => match use_case.need() {
            Need::Administrator => vec![cookie()],
            Need::Scope(scope) => vec![SecurityRequirement::new(BEARER, [scope.as_str()]), cookie()],
        },
    }
}

fn header(name: &str, description: &str, schema: impl Into<RefOr<Schema>>) -> ParameterBuilder {
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Header).required(Required::False);
    parameter.description(Some(description)).schema(Some(schema))
}

fn add_headers(operation: &Operation, status: &str, response: &mut Response, is_list: bool) {
    let all = [
        ("X-Request-Id", true, Type::String, "Names the request in the service's log."),
        ("Version", operation.is_versioned(), Type::String, "The version of the interface."),
        ("X-Total-Count", is_list && status == "200", Type::Integer, "Elements of the whole list."),
        (
            "X-Total-Amount",
            operation.id == "list_documents" && status == "200",
            Type::String,
            "What all documents amount to by currency, `EUR 12.50, USD 0.00`; credits count below zero, drafts and void ones not.",
        ),
        (
            "X-Total-Amount-Due",
            operation.id == "list_documents" && status == "200",
            Type::String,
            "What is left to pay of all documents by currency.",
        ),
        ("Link", is_list && status == "200", Type::String, "The first, previous, next and last page (RFC 8288)."),
        (
            "Idempotency-Replayed",
            operation.is_carried_out_once() && status == "200",
            Type::Boolean,
            "`true` on an answer that was given before; absent on the first.",
        ),
        ("WWW-Authenticate", status == "401", Type::String, "The credential that is taken."),
        ("Retry-After", matches!(status, "429" | "503"), Type::Integer, "When to come back, in seconds."),
        (
            "Retry-After",
            operation.is_carried_out_once() && status == "409",
            Type::Integer,
            "With `request_in_progress`: when to come back, in seconds.",
        ),
    ];
    for (name, _, kind, description) in all.into_iter().filter(|(_, applies, ..)| *applies) {
        let header = HeaderBuilder::new().schema(Some(ObjectBuilder::new().schema_type(kind))).description(Some(description));
        response.headers.insert(name.to_owned(), header.build().into());
    }
}

/// The refusals an operation may answer, by status.
fn refusals(operation: &Operation, has_body: bool, has_query: bool) -> Vec<(&'static str, &'static str)> {
    let needs_credential = operation.need().is_some();
    let logs_in = operation.id == "log_in";
    let once = operation.is_carried_out_once();
    // An update names the event in its body.
    let names_one = operation.path.contains('{') || operation.id.starts_with("update_");
    let all = [
        (
            "400",
            has_body || has_query || operation.is_versioned() || operation.takes_idempotency_key(),
            "The request could not be read, or asks for an unsupported version",
        ),
        ("401", needs_credential || logs_in, "There is no credential, or one that is not valid"),
        (
            "403",
            needs_credential || operation.needs == Needs::Anything,
            "The credential is of the wrong kind, or lacks the scope",
        ),
        ("404", names_one, "What the request is about isn't there"),
        ("408", has_body, "The body did not arrive in time"),
        ("409", once, "The request is in conflict with what there is, or one under the same key is still being carried out"),
        ("413", has_body, "The body is too large"),
        ("415", has_body, "The body is not plain JSON"),
        (
            "422",
            has_body || has_query || once,
            "Fields, references or business rules refuse the request, and `errors` names all of them; or its key named another",
        ),
        ("429", logs_in, "Too many log-ins were tried; `Retry-After` says when to come back"),
        ("500", true, "The service failed"),
        ("503", true, "The service cannot answer now; `Retry-After` says when to come back"),
    ];
    all.into_iter().filter(|(_, applies, _)| *applies).map(|(status, _, description)| (status, description)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    fn described() -> Value {
        serde_json::from_str(&openapi_json()).expect("JSON")
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
            .map(|operation| (operation.method.to_string(), operation.path.to_owned(), operation.id.to_owned()))
            .collect();
        assert_eq!(in_document, in_table);
    }

    #[test]
    fn every_operation_says_who_may_and_every_response_what_it_means() {
        let document = described();
        for (method, path, operation) in operations(&document) {
            assert!(operation["security"].is_array(), "{method} {path}");
            assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{method} {path}");
            for (status, response) in operation["responses"].as_object().expect("responses") {
                assert!(response["description"].as_str().is_some_and(|text| !text.is_empty()), "{method} {path} {status}");
                assert_eq!(response["content"].get(PROBLEM_JSON).is_some(), status.as_str() >= "400", "{method} {path} {status}");
            }
        }
    }

    #[test]
    fn every_post_takes_a_key_and_says_what_becomes_of_repeats() {
        let document = described();
        for (method, path, operation) in operations(&document) {
            let parameters = operation["parameters"].as_array().expect("parameters");
            let key = parameters.iter().find(|parameter| parameter["name"] == "Idempotency-Key");
            assert_eq!(key.is_some(), method == "POST", "{method} {path}");
            let Some(key) = key else { continue };
            assert_eq!((&key["in"], &key["required"]), (&"header".into(), &false.into()), "{path}");
            assert_eq!((&key["schema"]["minLength"], &key["schema"]["maxLength"]), (&1.into(), &255.into()), "{path}");
            let responses = &operation["responses"];
            assert!(responses["400"].is_object(), "{path}");
            let replays = !path.starts_with("/auth/log") && path != "/api/usage/formats/test";
            assert_eq!(responses["200"]["headers"]["Idempotency-Replayed"].is_object(), replays, "{path}");
            assert_eq!(responses["409"]["headers"]["Retry-After"].is_object(), replays, "{path}");
            assert!(!replays || responses["422"].is_object(), "{path}");
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

    /// Generators name a type after a schema; what has no name gets one like `PriceType3`, what shares one is lost.
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
        ] {
            let found = operations(&document).into_iter().find(|(.., operation)| operation["operationId"] == id);
            assert!(found.is_some_and(|(.., operation)| operation["responses"][status].is_object()), "{id} {status}");
        }
    }

    /// It is never refused, whatever it is.
    #[test]
    fn a_request_id_may_be_any_text() {
        for (_, path, operation) in operations(&described()) {
            let parameters = operation["parameters"].as_array().expect("parameters");
            let request_id = parameters.iter().find(|parameter| parameter["name"] == "X-Request-Id").expect(&path);
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
        let rust_names = super::document().components.expect("components").schemas.len();
        let choices = schemas.values().filter_map(|schema| schema["discriminator"]["mapping"].as_object()).map(|of| of.len());
        assert_eq!(schemas.len(), rust_names + choices.sum::<usize>());
    }

    #[test]
    fn the_licence_is_named_by_its_identifier() {
        assert_eq!(described()["info"]["license"]["identifier"], "MIT OR Apache-2.0");
    }
}
