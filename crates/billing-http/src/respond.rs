//! HTTP responses from rendered successes and problems.

use std::fmt;

use actix_web::body::BoxBody;
use actix_web::{HttpResponse, ResponseError};
use billing_domain::idempotency::StoredResponse;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};

use billing_api::media_type::PROBLEM_JSON;
use billing_api::problem::Problem;
use billing_api::stored_response::Success;

/// Builds the HTTP response with a success.
pub(crate) fn respond(success: Success) -> HttpResponse {
    let Success { status, headers, body } = success;
    let mut response = HttpResponse::build(status);
    for header in headers {
        response.insert_header(header);
    }
    response.body(body)
}

/// Builds the HTTP response from a stored response, with an optional extra header.
///
/// # Errors
/// Returns an internal error if the bytes are not a stored response.
pub(crate) fn respond_stored(
    answer: StoredResponse,
    stated: Option<(HeaderName, &'static str)>,
) -> Result<HttpResponse, Problem> {
    let mut response = respond(Success::read(answer).ok_or_else(Problem::internal)?);
    if let Some((name, value)) = stated {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

/// Builds the response with a problem document.
pub(crate) fn respond_problem(problem: &Problem, instance: &str, request_id: &str) -> HttpResponse<BoxBody> {
    let mut response = HttpResponse::build(problem.status());
    for (name, value) in problem.headers() {
        response.insert_header((name.clone(), value.clone()));
    }
    response.insert_header((CONTENT_TYPE, PROBLEM_JSON));
    // Serialization of the document cannot fail; even an empty body would carry the status.
    response.body(serde_json::to_vec(&problem.document(instance, request_id)).unwrap_or_default())
}

/// What a handler without a call returns to the framework.
pub(crate) type HttpReply = Result<HttpResponse, HttpProblem>;

/// A problem as an error of the framework.
#[derive(Clone, Debug)]
pub(crate) struct HttpProblem(pub(crate) Problem);

impl From<Problem> for HttpProblem {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<HttpProblem> for Problem {
    fn from(HttpProblem(problem): HttpProblem) -> Self {
        problem
    }
}

impl fmt::Display for HttpProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ResponseError for HttpProblem {
    fn status_code(&self) -> StatusCode {
        self.0.status()
    }

    /// Returns a response without path and request id, which the [`middleware`](crate::middleware) adds.
    fn error_response(&self) -> HttpResponse<BoxBody> {
        respond_problem(&self.0, "", "")
    }
}
