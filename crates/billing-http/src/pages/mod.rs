//! HTML pages about the server and its operations. They require no credential and no other server, and are not API operations.
//! Only the forms that send requests need a script.

mod markup;
mod operation_page;
mod reference;
mod search;

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ContentType, HeaderValue, REFERRER_POLICY, X_FRAME_OPTIONS,
};
use actix_web::web::{self, Data};
use actix_web::{FromRequest, Handler, HttpRequest, HttpResponse, HttpResponseBuilder, Resource, Responder};
use billing_console::Asset;
use billing_domain::report::NumbersAs;
use maud::{DOCTYPE, Markup, html};

use self::reference::{Reference, ReferencePage};
use crate::respond::{HttpProblem, HttpReply};
use crate::settings::PublicUrl;
use crate::state::HttpState;
use crate::static_text::StaticText;
use billing_api::openapi;
use billing_api::problem::Problem;

const HOME: &str = "/";
const REFERENCE: &str = "/docs";
const SEARCH: &str = "/docs/search";

const STYLE: Asset = Asset::new("/docs/style.css", "text/css; charset=utf-8", include_str!("style.css"));
/// The script of the forms that send requests.
const SCRIPT: Asset = Asset::new("/docs/request.js", "text/javascript; charset=utf-8", include_str!("request.js"));

/// Maximum length of a search in characters. The rest is ignored.
const MAX_QUERY_CHARS: usize = 100;

/// Permits only the server's own style sheet and script, the requests of the script to the server, and the search.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'",
);

/// The API reference, rendered at its first request. The document itself is dropped, to save memory.
static DOCS: LazyLock<Reference> = LazyLock::new(|| Reference::of(&openapi::described(NumbersAs::Number)));

/// The pages of the reference by their addresses, each rendered at its first request. There are as many as the reference has.
static PAGES: LazyLock<Mutex<BTreeMap<String, StaticText>>> = LazyLock::new(Mutex::default);

/// Registers the pages in the router.
pub(crate) fn register(config: &mut web::ServiceConfig) {
    config
        .service(resource(&[HOME], home))
        .service(resource(&[REFERENCE, "/docs/"], overview))
        .service(resource(&[SEARCH], search))
        .service(resource(&["/docs/groups/{name}"], group))
        .service(resource(&["/docs/operations/{id}"], operation))
        .service(resource(&[markup::SCHEMAS], schemas))
        .service(resource(&["/docs/schemas/{name}"], schema))
        .service(resource(&[STYLE.path], style))
        .service(resource(&[SCRIPT.path], script));
}

/// Returns the resource of a page on one or several paths.
fn resource<F, Args>(paths: &[&str], page: F) -> Resource
where
    F: Handler<Args>,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    let wrong_method = async || Err::<String, _>(HttpProblem(Problem::method_not_allowed("GET, HEAD")));
    let resource = web::resource(paths.to_vec()).route(web::get().to(page.clone())).route(web::head().to(page));
    resource.default_service(web::to(wrong_method))
}

async fn home(state: Data<HttpState>) -> HttpResponse {
    let calls = key_calls(&state.settings().public_url, "admin@example.com");
    let body = html! {
        h1 { "Usage Billing" }
        p { "This server accepts usage events over HTTP and bills each event on an invoice in the same request." }
        ul {
            li { a href=(billing_console::ROOT) { "Console" } ": customers, contracts, documents and usage, for administrators" }
            li { a href=(REFERENCE) { "API reference" } ": all operations, with forms that send requests" }
            li { a href="/openapi.json" { "OpenAPI document" } ": the API description for client generators" }
            li { a href="/health/ready" { "Readiness" } ": whether the server can process requests" }
        }
        h2 { "API key" }
        p {
            "Software authenticates with an API key. An administrator logs in with e-mail address and password and creates a key. "
            "The password of the key is shown only once:"
        }
        pre { code { (calls.join("\n\n")) } }
        p { "To reset the password of an administrator, run "
            code { "usage-billing admin reset-password" } " on the server." }
    };
    answer(document("Usage Billing", &html! { main { (body) } }))
}

/// Returns two shell commands that log an administrator in and create an API key. The first command contains a
/// placeholder for the password.
pub fn key_calls(url: &PublicUrl, email: &str) -> [String; 2] {
    [
        format!(
            "curl -s -c session.txt {url}/auth/login -H 'Content-Type: application/json' \\\n  \
             -d '{{\"email\":\"{email}\",\"password\":\"...\"}}'"
        ),
        format!("curl -s -b session.txt -X POST {url}/auth/keys/generate"),
    ]
}

async fn overview(request: HttpRequest, state: Data<HttpState>) -> HttpResponse {
    let base = state.settings().public_url.to_string();
    shared(&request, &base, &DOCS.overview(&base))
}

async fn search(request: HttpRequest) -> HttpResponse {
    // An unreadable query is treated as empty.
    let parameters = web::Query::<Vec<(String, String)>>::from_query(request.query_string()).map(web::Query::into_inner);
    let query = parameters.unwrap_or_default().into_iter().find(|(name, _)| name == "q").map(|(_, value)| value);
    let query: String = query.unwrap_or_default().chars().take(MAX_QUERY_CHARS).collect();
    answer(framed(&DOCS.search(&query), &query))
}

async fn group(request: HttpRequest, name: web::Path<String>) -> HttpReply {
    found(&request, DOCS.group(&name))
}

async fn operation(request: HttpRequest, id: web::Path<String>) -> HttpReply {
    found(&request, DOCS.operation(&id))
}

async fn schemas(request: HttpRequest) -> HttpResponse {
    shared(&request, "", &DOCS.all_schemas())
}

async fn schema(request: HttpRequest, name: web::Path<String>) -> HttpReply {
    found(&request, DOCS.schema(&name))
}

fn found(request: &HttpRequest, page: Option<ReferencePage<'_>>) -> HttpReply {
    page.map(|page| shared(request, "", &page)).ok_or_else(|| Problem::unknown_route().into())
}

/// Returns a page that is the same in each response of a server. `base` is the address of the server, if the page contains it.
fn shared(request: &HttpRequest, base: &str, page: &ReferencePage<'_>) -> HttpResponse {
    let key = format!("{base}{}", page.address);
    let rendered = || StaticText::new(&framed(page, ""));
    // Nothing panics while the lock is held, so a poisoned lock has consistent content.
    let text = PAGES.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_insert_with(rendered).clone();
    text.respond(request, page_response())
}

/// Returns a page of the reference. `query` is the text in the field of the search.
fn framed(page: &ReferencePage<'_>, query: &str) -> String {
    document(&format!("{} – Usage Billing", page.title), &DOCS.framed(page, query))
}

async fn style(request: HttpRequest) -> HttpResponse {
    file(&request, &STYLE)
}

async fn script(request: HttpRequest) -> HttpResponse {
    file(&request, &SCRIPT)
}

/// Returns a file. An address with the fingerprint of the content never changes its content.
fn file(request: &HttpRequest, asset: &Asset) -> HttpResponse {
    let is_of_content = request.query_string() == asset.query();
    let cache = if is_of_content { "public, max-age=31536000, immutable" } else { "no-cache" };
    HttpResponse::Ok().insert_header((CONTENT_TYPE, asset.media_type)).insert_header((CACHE_CONTROL, cache)).body(asset.content)
}

fn document(title: &str, body: &Markup) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="stylesheet" href=(STYLE.address());
            }
            body { (body) }
        }
    };
    document.into_string()
}

fn answer(html: String) -> HttpResponse {
    page_response().body(html)
}

fn page_response() -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    response
        .insert_header(ContentType::html())
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .insert_header((X_FRAME_OPTIONS, "DENY"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_stores_nothing_and_loads_nothing_from_elsewhere() {
        assert!(SCRIPT.content.len() <= 10 * 1024, "{}", SCRIPT.content.len());
        let refused = ["localStorage", "sessionStorage", "indexedDB", "document.cookie", "innerHTML", "eval(", "http:", "https:"];
        for word in refused {
            assert!(!SCRIPT.content.contains(word), "{word}");
        }
    }
}
