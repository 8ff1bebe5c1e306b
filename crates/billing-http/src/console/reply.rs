//! HTTP responses of the console: pages and redirects.

use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ContentType, HeaderValue, LOCATION, REFERRER_POLICY, X_FRAME_OPTIONS,
};
use actix_web::{HttpResponse, HttpResponseBuilder};
use billing_console::Asset;
use serde::Serialize;

use crate::middleware::RenderedByPage;
use billing_api::problem::{FieldProblem, Problem};

/// Permits only the console's own style sheet, script, requests and frames, and forms that submit to the console.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; frame-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);

/// The policy of embedded frames, which contain neither forms nor scripts.
const POLICY_OF_PARTS: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
);

/// Pages must not be cached, because they contain financial data.
const KEPT_BY_NOBODY: HeaderValue = HeaderValue::from_static("no-store");

/// Redirects to another page.
pub(super) fn to(location: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((LOCATION, location)).insert_header((CACHE_CONTROL, KEPT_BY_NOBODY)).finish()
}

pub(super) fn html(page: String) -> HttpResponse {
    with_head(StatusCode::OK).body(page)
}

/// Returns a page that shows a problem itself.
pub(super) fn told(problem: Problem, page: String) -> HttpResponse {
    let mut response = with_head(problem.status()).body(page);
    response.extensions_mut().insert(RenderedByPage(problem));
    response
}

/// Returns a frame, which shows its problem itself.
pub(super) fn framed(problem: Option<Problem>, part: String) -> HttpResponse {
    let mut response = match problem {
        None => html(part),
        Some(problem) => told(problem, part),
    };
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY_OF_PARTS);
    response.headers_mut().insert(X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
    response
}

/// Returns data for the script of a page.
pub(super) fn data(content: &impl Serialize) -> HttpResponse {
    HttpResponse::Ok().insert_header((CACHE_CONTROL, KEPT_BY_NOBODY)).json(content)
}

/// Returns the style sheet or the script. An address with the fingerprint of the content never changes its content.
pub(super) fn asset(asset: &Asset, is_of_content: bool) -> HttpResponse {
    let cache = if is_of_content { "public, max-age=31536000, immutable" } else { "no-cache" };
    HttpResponse::Ok().insert_header((CONTENT_TYPE, asset.media_type)).insert_header((CACHE_CONTROL, cache)).body(asset.content)
}

fn with_head(status: StatusCode) -> HttpResponseBuilder {
    let mut response = HttpResponse::build(status);
    response
        .insert_header(ContentType::html())
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((REFERRER_POLICY, "same-origin"))
        .insert_header((X_FRAME_OPTIONS, "DENY"))
        .insert_header((CACHE_CONTROL, KEPT_BY_NOBODY));
    response
}

/// Returns whether a problem is shown beside the form. Other problems have a page of their own.
pub(super) fn belongs_beside(problem: &Problem) -> bool {
    matches!(problem.status(), StatusCode::UNPROCESSABLE_ENTITY | StatusCode::CONFLICT)
}

/// Returns the field errors of a problem, or its detail.
pub(super) fn reasons(problem: &Problem) -> String {
    if problem.errors().is_empty() {
        return problem.detail().to_owned();
    }
    let reason = |error: &FieldProblem| format!("{}: {}", error.pointer.trim_start_matches('/'), error.detail);
    problem.errors().iter().map(reason).collect::<Vec<_>>().join("; ")
}
