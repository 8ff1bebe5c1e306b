//! The pages about the server and its operations, over HTTP. They require no credential and no other server.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ContentType, HeaderValue, REFERRER_POLICY, X_FRAME_OPTIONS,
};
use actix_web::web::{self, Data};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use billing_api::console::{PublicPage, SentAsset};
use billing_api::problem::Problem;

use crate::respond::HttpReply;
use crate::state::HttpState;
use crate::static_text::StaticText;

/// Permits only the server's own style sheet and script, the requests of the script to the server, and the search.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'",
);

/// The shared pages by their addresses, each rendered at its first request. There are as many as the reference has.
static PAGES: LazyLock<Mutex<BTreeMap<String, StaticText>>> = LazyLock::new(Mutex::default);

/// Registers the pages in the router.
pub(crate) fn register(config: &mut web::ServiceConfig) {
    for path in ["/", "/docs", "/docs/{below:.*}"] {
        let resource = web::resource(path).route(web::get().to(page)).route(web::head().to(page));
        config.service(resource.default_service(web::to(wrong_method)));
    }
}

/// Refuses another method where a page is.
async fn wrong_method(request: HttpRequest, state: Data<HttpState>) -> HttpReply {
    let page = found(&request, &state);
    Err(page.map_or_else(Problem::unknown_route, |_| Problem::method_not_allowed("GET, HEAD")).into())
}

fn found(request: &HttpRequest, state: &HttpState) -> Option<PublicPage> {
    let service = state.settings().public_url.to_string();
    state.console().public_page(request.path(), request.query_string(), &service)
}

async fn page(request: HttpRequest, state: Data<HttpState>) -> HttpReply {
    match found(&request, &state) {
        None => Err(Problem::unknown_route().into()),
        Some(PublicPage::Own(html)) => Ok(page_response().body(html)),
        Some(PublicPage::Shared { address, html }) => {
            let rendered = || StaticText::new(&html());
            // A page may contain the address of the server. Nothing panics while the lock is held.
            let service = &state.settings().public_url;
            let mut pages = PAGES.lock().unwrap_or_else(PoisonError::into_inner);
            let text = pages.entry(format!("{service}{address}")).or_insert_with(rendered).clone();
            Ok(text.respond(&request, page_response()))
        }
        Some(PublicPage::Asset(file)) => Ok(asset(file)),
    }
}

/// Returns a style sheet or script. An address that names the content never changes its content.
pub(crate) fn asset(SentAsset { media_type, content, is_of_content }: SentAsset) -> HttpResponse {
    let cache = if is_of_content { "public, max-age=31536000, immutable" } else { "no-cache" };
    HttpResponse::Ok().insert_header((CONTENT_TYPE, media_type)).insert_header((CACHE_CONTROL, cache)).body(content)
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
