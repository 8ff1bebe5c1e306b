//! HTML pages about the server and its operations, and the pages of the documentation. They require no credential and no other server, and are not API operations.
//! Only the forms that send requests need a script.

mod example_request;
mod index;
mod markup;
mod operation_page;
mod pages;
mod search;

use std::fmt::Display;
use std::sync::LazyLock;

use billing_api::console::{PublicPage, form_data};
use billing_api::openapi;
use billing_domain::report::NumbersAs;
use maud::{Markup, html};

use self::index::{Reference, ReferencePage};
use self::pages::PAGES;
use crate::frame::html_document;
use crate::{Asset, ROOT};

const HOME: &str = "/";
const REFERENCE: &str = "/docs";
const SEARCH: &str = "/docs/search";

const STYLE: Asset = Asset::new("/docs/style.css", "text/css; charset=utf-8", include_str!("style.css"));
/// The script of the forms that send requests.
const SCRIPT: Asset = Asset::new("/docs/request.js", "text/javascript; charset=utf-8", include_str!("request.js"));

/// Maximum length of a search in characters. The rest is ignored.
const MAX_QUERY_CHARS: usize = 100;

/// The API reference, rendered at its first request. The document itself is dropped, to save memory.
static DOCS: LazyLock<Reference> = LazyLock::new(|| Reference::of(&openapi::described(NumbersAs::Number)));

/// Returns the page on a path. `service` is the base URL of the service.
pub(crate) fn page(path: &str, query: &str, service: &str) -> Option<PublicPage> {
    if let Some(asset) = [STYLE, SCRIPT].iter().find(|asset| asset.path == path) {
        return Some(PublicPage::Asset(asset.sent(query)));
    }
    match path.strip_prefix(REFERENCE).map(|below| below.trim_start_matches('/')) {
        None => (path == HOME).then(|| PublicPage::Own(home(service))),
        Some("") => Some(shared(DOCS.overview(service))),
        Some("search") => Some(PublicPage::Own(search(query))),
        Some("schemas") => Some(shared(DOCS.all_schemas())),
        Some("pages") => Some(shared(DOCS.all_pages())),
        Some(below) => match below.split_once('/')? {
            ("groups", name) => DOCS.group(name),
            ("operations", id) => DOCS.operation(id),
            ("schemas", name) => DOCS.schema(name),
            ("pages", name) => DOCS.page(name),
            _ => None,
        }
        .map(shared),
    }
}

/// Returns a page that is the same in each response of a server.
fn shared(page: ReferencePage<'static>) -> PublicPage {
    PublicPage::Shared { address: page.address.clone(), html: Box::new(move || framed(&page, "")) }
}

fn home(service: &str) -> String {
    let calls = key_calls(service, "admin@example.com");
    let body = html! {
        h1 { "Usage Billing" }
        p { "This server accepts usage events over HTTP and bills each event on an invoice in the same request." }
        ul {
            li { a href=(ROOT) { "Console" } ": customers, contracts, documents and usage, for administrators" }
            li { a href=(PAGES) { "Documentation" } ": concepts, guides, billing rules and operations" }
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
    document("Usage Billing", &html! { main { (body) } })
}

fn search(query: &str) -> String {
    let query = form_data(query).into_iter().find(|(name, _)| name == "q").map(|(_, value)| value);
    let query: String = query.unwrap_or_default().chars().take(MAX_QUERY_CHARS).collect();
    framed(&DOCS.search(&query), &query)
}

/// Returns two shell commands that log an administrator in and create an API key. The first command contains a
/// placeholder for the password.
pub fn key_calls(url: impl Display, email: &str) -> [String; 2] {
    [
        format!(
            "curl -s -c session.txt {url}/auth/login -H 'Content-Type: application/json' \\\n  \
             -d '{{\"email\":\"{email}\",\"password\":\"...\"}}'"
        ),
        format!("curl -s -b session.txt -X POST {url}/auth/keys/generate"),
    ]
}

/// Returns a page of the reference. `query` is the text in the field of the search.
fn framed(page: &ReferencePage<'_>, query: &str) -> String {
    document(&format!("{} – Usage Billing", page.title), &DOCS.framed(page, query))
}

fn document(title: &str, body: &Markup) -> String {
    html_document(title, &STYLE, &Markup::default(), body)
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
