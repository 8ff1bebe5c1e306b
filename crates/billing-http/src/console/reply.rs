//! How the console answers: pages, and where to go.

use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ContentType, HeaderValue, LOCATION, REFERRER_POLICY, X_FRAME_OPTIONS,
};
use actix_web::{HttpResponse, HttpResponseBuilder, ResponseError as _};

use crate::middleware::RenderedByPage;
use crate::problem::{FieldProblem, Problem};

/// Nothing but our own style sheet and parts, and forms that come back here.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src data:; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);

/// A part of our own pages: nothing is sent from it.
const POLICY_OF_PARTS: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
);

/// Pages may be kept by nobody: they show one customer's money.
const KEPT_BY_NOBODY: HeaderValue = HeaderValue::from_static("no-store");

/// Another page is to be asked for now.
pub(super) fn to(location: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((LOCATION, location)).insert_header((CACHE_CONTROL, KEPT_BY_NOBODY)).finish()
}

pub(super) fn html(page: String) -> HttpResponse {
    with_head(StatusCode::OK).body(page)
}

/// A page that tells a problem by itself.
pub(super) fn told(problem: Problem, page: String) -> HttpResponse {
    let mut response = with_head(problem.status_code()).body(page);
    response.extensions_mut().insert(RenderedByPage(problem));
    response
}

/// A part of a page, which tells a problem where there is one.
pub(super) fn framed(problem: Option<Problem>, part: String) -> HttpResponse {
    let mut response = match problem {
        None => html(part),
        Some(problem) => told(problem, part),
    };
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY_OF_PARTS);
    response.headers_mut().insert(X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
    response
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

/// Whether what refuses a form belongs beside it; anything else has a page of its own.
pub(super) fn belongs_beside(problem: &Problem) -> bool {
    matches!(problem.status_code(), StatusCode::UNPROCESSABLE_ENTITY | StatusCode::CONFLICT)
}

/// Why something was refused: what is wrong with each field, or with all of it.
pub(super) fn reasons(problem: &Problem) -> String {
    if problem.errors().is_empty() {
        return problem.detail().to_owned();
    }
    let reason = |error: &FieldProblem| format!("{}: {}", error.pointer.trim_start_matches('/'), error.detail);
    problem.errors().iter().map(reason).collect::<Vec<_>>().join("; ")
}
