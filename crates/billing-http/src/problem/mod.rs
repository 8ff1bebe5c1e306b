//! Problem documents (RFC 9457): how every failure looks on the wire. What the use cases refuse is given its status and
//! code in [`mapping`].

mod mapping;

use std::fmt;

use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, ResponseError};
use billing_application::error::{ResourceKind, UseCaseError};
use billing_domain::access::Scope;
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) use mapping::not_found_code;

/// The content type of every failure.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";
/// What a problem's `type` begins with; its code follows.
const TYPE_PREFIX: &str = "urn:problem-type:usage-billing:";
/// When to come back after others were faster.
const CONTENDED_RETRY_SECONDS: u64 = 1;
/// When to come back for the answer to a request that isn't done yet.
const IN_PROGRESS_RETRY_SECONDS: u64 = 1;
/// When to ask for a report again that there was no room for, in seconds.
const REPORT_RETRY_SECONDS: u64 = 10;
/// When to come back to a store or a server that can't work now.
const UNAVAILABLE_RETRY_SECONDS: u64 = 5;
/// The most errors one answer names.
const MAX_ERRORS: usize = 1000;

/// A refusal or failure on its way to the caller.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    errors: Vec<FieldProblem>,
    supported: Option<&'static [&'static str]>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// One field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct FieldProblem {
    /// Which field: an RFC 6901 pointer into the body, or `/name` of a query parameter.
    #[schema(example = "/products/0/issue_day")]
    pub(crate) pointer: String,
    /// A stable word for machines.
    #[schema(example = "out_of_range")]
    pub(crate) code: &'static str,
    /// What is wrong and what would be right.
    pub(crate) detail: String,
    /// What the request asked for, where something else was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) expected: Option<String>,
    /// What was found instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) actual: Option<String>,
}

/// The code of a code of a second factor that can't be taken.
pub(crate) const INVALID_CODE: &str = "invalid_code";

/// A problem document (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemJson<'a> {
    /// Identifies the kind of problem: a prefix and the code.
    #[serde(rename = "type")]
    #[schema(example = "urn:problem-type:usage-billing:validation_failed")]
    kind: String,
    /// The kind of problem in words.
    #[schema(example = "Validation failed")]
    title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What went wrong this time.
    detail: &'a str,
    /// The path that was asked for.
    #[schema(example = "/api/contracts/")]
    instance: &'a str,
    /// A stable word for machines; the one to switch on.
    #[schema(example = "validation_failed")]
    code: &'static str,
    /// Names this request in the service's log.
    request_id: &'a str,
    /// Every field that is wrong; empty where it isn't about fields.
    errors: &'a [FieldProblem],
    /// The versions there are, of an unsupported one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    supported: Option<&'static [&'static str]>,
}

/// Problems that are always the same: `name: STATUS "code", "detail"`, and when to come back.
macro_rules! problems {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident: $status:ident $code:literal, $detail:literal $(, retry after $seconds:ident)?;
    )+) => {
        impl Problem {$(
            $(#[doc = $doc])+
            pub(crate) fn $name() -> Self {
                Self::new(StatusCode::$status, $code, $detail)$(.retry_after($seconds))?
            }
        )+}
    };
}

problems! {
    /// No path that is taken.
    unknown_route: NOT_FOUND "route_not_found", "there is nothing at this path";
    /// The body ended before its end.
    incomplete_body: BAD_REQUEST "incomplete_body", "the body did not arrive whole";
    /// The body didn't arrive in time.
    request_timeout: REQUEST_TIMEOUT "request_timeout", "the request did not arrive in time";
    /// The request arrived, the answer isn't there.
    timed_out: SERVICE_UNAVAILABLE "timed_out",
        "the request took too long; whether it was carried out is not known", retry after UNAVAILABLE_RETRY_SECONDS;
    /// A file that was taken in part.
    import_out_of_time: SERVICE_UNAVAILABLE "timed_out",
        "the time of the request is up; what stands before this line is taken: send the file again to go on";
    /// Something for administrators alone.
    admin_session_required: FORBIDDEN "admin_session_required",
        "this takes an administrator's session; bearer tokens are not taken";
    /// A session's cookie from another site.
    cross_site: FORBIDDEN "cross_site_request", "a request with a session cookie must come from the service's own pages";
    /// Too many wait already.
    overloaded: SERVICE_UNAVAILABLE "overloaded",
        "too many requests are waiting; try again shortly", retry after CONTENDED_RETRY_SECONDS;
    /// As many reports are made as may be at a time.
    too_many_reports: SERVICE_UNAVAILABLE "too_many_reports",
        "other reports are being made; try again when they are done", retry after REPORT_RETRY_SECONDS;
    /// The store can't be reached.
    unavailable: SERVICE_UNAVAILABLE "unavailable",
        "the service cannot reach its store; try again shortly", retry after UNAVAILABLE_RETRY_SECONDS;
    /// Something is wrong inside; what it is stands in the log.
    internal: INTERNAL_SERVER_ERROR "internal_error", "the service failed; the request id helps its operators to find out why";
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), errors: Vec::new(), supported: None, headers: Vec::new() }
    }

    pub(crate) fn method_not_allowed(allowed: &str) -> Self {
        let detail = format!("this path takes {allowed} only");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail).with_header(ALLOW, allowed)
    }

    /// The reference in the path names nothing.
    pub(crate) fn unknown(thing: ResourceKind) -> Self {
        Self::new(StatusCode::NOT_FOUND, not_found_code(thing), format!("there is no such {}", thing.word()))
    }

    pub(crate) fn unsupported_version(supported: &'static [&'static str]) -> Self {
        let detail = format!("the header Version must be {} or left out", supported.join(" or "));
        let problem = Self::new(StatusCode::BAD_REQUEST, "unsupported_version", detail);
        Self { supported: Some(supported), ..problem }
    }

    pub(crate) fn malformed(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    pub(crate) fn too_large(limit_bytes: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", format!("a body may have {limit_bytes} bytes"))
    }

    /// A file beyond the limit, which there are other ways for.
    pub(crate) fn file_too_large(limit_bytes: usize) -> Self {
        let detail = format!(
            "a file may have {limit_bytes} bytes here: split it, or import it on the command line with usage-billing import"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
    }

    pub(crate) fn unsupported_media_type(detail: &str) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    }

    /// No credential (`presented` is false), or one that doesn't work.
    pub(crate) fn unauthenticated(presented: bool) -> Self {
        let challenge = if presented { r#"Bearer error="invalid_token""# } else { "Bearer" };
        let detail = if presented { "the credential is not valid, or no longer" } else { "a credential is required" };
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail).with_header(WWW_AUTHENTICATE, challenge)
    }

    pub(crate) fn insufficient_scope(scope: Scope) -> Self {
        let word = scope.as_str();
        let challenge = format!(r#"Bearer error="insufficient_scope", scope="{word}""#);
        let detail = format!("the API key does not have the scope {word}");
        Self::new(StatusCode::FORBIDDEN, "insufficient_scope", detail).with_header(WWW_AUTHENTICATE, &challenge)
    }

    pub(crate) fn invalid_idempotency_key(reason: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_idempotency_key", format!("the header Idempotency-Key {reason}"))
    }

    /// A twin isn't done yet, in this process or another.
    pub(crate) fn request_in_progress() -> Self {
        let detail = UseCaseError::RequestInProgress.to_string();
        Self::new(StatusCode::CONFLICT, "request_in_progress", detail).retry_after(IN_PROGRESS_RETRY_SECONDS)
    }

    pub(crate) fn too_many_log_ins(retry_seconds: u64) -> Self {
        let detail = "too many log-ins were tried; wait before the next one";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_log_ins", detail).retry_after(retry_seconds)
    }

    pub(crate) fn not_ready(reason: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", reason).retry_after(UNAVAILABLE_RETRY_SECONDS)
    }

    /// For failures that the framework answers by a bare status.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::NOT_FOUND => Self::unknown_route(),
            StatusCode::REQUEST_TIMEOUT => Self::request_timeout(),
            status if status.is_client_error() => Self::new(status, "bad_request", "the request could not be understood"),
            _ => Self::internal(),
        }
    }

    /// Every field that is wrong.
    pub(crate) fn errors(&self) -> &[FieldProblem] {
        &self.errors
    }

    /// The kind of problem in words.
    pub(crate) fn title(&self) -> String {
        title(self.code)
    }

    pub(crate) const fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Whether a credential was refused, rather than anything else having gone wrong or more being wanted.
    pub(crate) fn is_refused_credential(&self) -> bool {
        matches!(self.code, "invalid_credentials" | "wrong_password") || self.is_invalid_code()
    }

    /// Whether a password was right, and the code wasn't.
    pub(crate) fn is_invalid_code(&self) -> bool {
        self.code == INVALID_CODE
    }

    /// Which fields are wrong.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = &str> {
        self.errors.iter().map(|field| field.pointer.as_str())
    }

    /// Pointer and code of every field that is wrong.
    #[cfg(test)]
    pub(crate) fn fields(&self) -> Vec<(String, &'static str)> {
        self.errors.iter().map(|field| (field.pointer.clone(), field.code)).collect()
    }

    pub(crate) fn too_many_events(most: usize) -> Self {
        let detail = format!("a batch may have {most} events; send the rest in another");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "too_many_events", detail)
    }

    /// A batch of which nothing is stored because of some of its events, each by its index.
    pub(crate) fn batch_refused(refused: impl Iterator<Item = (usize, Self)>) -> Self {
        let (mut events, mut errors) = (0_usize, Vec::new());
        for (index, problem) in refused {
            events += 1;
            let pointer = format!("/events/{index}");
            if problem.errors.is_empty() {
                errors.push(FieldProblem { pointer, code: problem.code, detail: problem.detail, expected: None, actual: None });
            } else {
                let below =
                    |error: &FieldProblem| FieldProblem { pointer: format!("{pointer}{}", error.pointer), ..error.clone() };
                errors.extend(problem.errors.iter().map(below));
            }
        }
        errors.truncate(MAX_ERRORS);
        let detail = format!("{events} of the batch's events are refused, so none is stored; see errors");
        Self { errors, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "batch_refused", detail) }
    }

    fn retry_after(mut self, seconds: u64) -> Self {
        self.headers.push((RETRY_AFTER, seconds.into()));
        self
    }

    fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.extend(HeaderValue::from_str(value).map(|value| (name, value)));
        self
    }

    fn with_error(mut self, path: &[&str], code: &'static str, detail: impl Into<String>) -> Self {
        let (pointer, detail) = (pointer(path.iter().copied()), detail.into());
        self.errors.push(FieldProblem { pointer, code, detail, expected: None, actual: None });
        self
    }

    /// The answer to a request.
    pub(crate) fn answer(&self, instance: &str, request_id: &str) -> HttpResponse<BoxBody> {
        let mut response = HttpResponse::build(self.status);
        for (name, value) in &self.headers {
            response.insert_header((name.clone(), value.clone()));
        }
        response.insert_header((CONTENT_TYPE, PROBLEM_JSON));
        // Nothing in it can fail to be written; an empty body would still carry the status.
        response.body(serde_json::to_vec(&self.document(instance, request_id)).unwrap_or_default())
    }

    /// The document of a request's problem.
    pub(crate) fn document<'p>(&'p self, instance: &'p str, request_id: &'p str) -> ProblemJson<'p> {
        ProblemJson {
            kind: format!("{TYPE_PREFIX}{}", self.code),
            title: title(self.code),
            status: self.status.as_u16(),
            detail: &self.detail,
            instance,
            code: self.code,
            request_id,
            errors: &self.errors,
            supported: self.supported,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    /// Path and request id are filled in on the way out, by [`answer`](crate::middleware::answer).
    fn error_response(&self) -> HttpResponse<BoxBody> {
        self.answer("", "")
    }
}

/// `validation_failed` → `Validation failed`.
fn title(code: &str) -> String {
    let words = code.replace('_', " ");
    let mut chars = words.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// RFC 6901.
fn pointer<'a>(path: impl IntoIterator<Item = &'a str>) -> String {
    path.into_iter().flat_map(|segment| ["/".to_owned(), segment.replace('~', "~0").replace('/', "~1")]).collect()
}
