//! HTML pages about the server and its operations. They require no credential, no script and no other server, and are not
//! API operations.

mod reference;

use std::sync::LazyLock;

use actix_web::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ContentType, HeaderValue, REFERRER_POLICY, X_FRAME_OPTIONS,
};
use actix_web::web::{self, Data};
use actix_web::{HttpResponse, Resource};
use billing_report::NumbersAs;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::openapi;
use crate::problem::Problem;
use crate::settings::PublicUrl;
use crate::state::HttpState;

const HOME: &str = "/";
const REFERENCE: &str = "/docs";
const STYLE: &str = "/docs/style.css";

/// Permits only the server's own style sheet.
const POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");

static REFERENCE_HTML: LazyLock<String> = LazyLock::new(|| {
    page("API reference – Usage Billing", &reference::body(&openapi::described(NumbersAs::Number))).into_string()
});

/// Registers the pages in the router.
pub(crate) fn register(config: &mut web::ServiceConfig) {
    config.service(resource(&[HOME]).route(web::get().to(home)).route(web::head().to(home)));
    config.service(resource(&[REFERENCE, "/docs/"]).route(web::get().to(api_reference)).route(web::head().to(api_reference)));
    config.service(resource(&[STYLE]).route(web::get().to(style)).route(web::head().to(style)));
}

fn resource(paths: &[&str]) -> Resource {
    let wrong_method = async || Err::<String, _>(Problem::method_not_allowed("GET, HEAD"));
    web::resource(paths.to_vec()).default_service(web::to(wrong_method))
}

async fn home(state: Data<HttpState>) -> HttpResponse {
    let calls = key_calls(&state.settings().public_url, "admin@example.com");
    let body = html! {
        h1 { "Usage Billing" }
        p { "This server accepts usage events over HTTP and bills each event on an invoice in the same request." }
        ul {
            li { a href=(billing_console::ROOT) { "Console" } ": customers, contracts, documents and usage, for administrators" }
            li { a href=(REFERENCE) { "API reference" } ": all operations with their parameters and responses" }
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
    answer(page("Usage Billing", &body).into_string())
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

async fn api_reference() -> HttpResponse {
    answer(REFERENCE_HTML.as_str())
}

async fn style() -> HttpResponse {
    HttpResponse::Ok().insert_header((CONTENT_TYPE, "text/css; charset=utf-8")).body(include_str!("style.css"))
}

fn page(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                link rel="stylesheet" href=(STYLE);
            }
            body { main { (PreEscaped(&body.0)) } }
        }
    }
}

fn answer(html: impl Into<String>) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header(ContentType::html())
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .insert_header((X_FRAME_OPTIONS, "DENY"))
        .body(html.into())
}
