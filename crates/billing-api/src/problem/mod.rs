//! Problem documents (RFC 9457), the format of all errors. The [`mapping`] module assigns a status and code to each use
//! case error.

mod mapping;

use std::fmt;

use billing_application::error::{EventPlace, ResourceKind, UseCaseError};
use billing_domain::access::{Permission, Scope};
use billing_domain::limit::LimitReached;
use billing_domain::notification::epoch::FeedRestart;
use billing_domain::refs::EventRef;
use billing_domain::violation::MAX_LISTED_VIOLATIONS;
use http::StatusCode;
use http::header::{ALLOW, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::dto::enums::LimitMetricWord;
use crate::dto::values::TimestampText;
use crate::dto::wire::{AssignedRef, ExactNumber};

pub use mapping::not_found_code;

/// Prefix of a problem's `type`; the code follows.
const TYPE_PREFIX: &str = "urn:problem-type:usage-billing:";
/// `Retry-After` for a request that lost a conflict with other requests.
const CONTENDED_RETRY_SECONDS: u64 = 1;
/// `Retry-After` for a request whose duplicate is in progress.
const IN_PROGRESS_RETRY_SECONDS: u64 = 1;
/// `Retry-After` in seconds when too many reports run.
const REPORT_RETRY_SECONDS: u64 = 10;
/// `Retry-After` when the store or the server is unavailable.
const UNAVAILABLE_RETRY_SECONDS: u64 = 5;
/// Code of a request with invalid fields.
const VALIDATION_FAILED: &str = "validation_failed";
/// The code for an idempotency key of another request.
const KEY_REUSE: &str = "idempotency_key_reuse";

/// A refusal or failure, before it becomes a response.
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    errors: Vec<FieldProblem>,
    /// Number of further errors, which are only counted.
    unlisted: usize,
    /// Whether the response lists the errors.
    lists_errors: bool,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Boxed, because few problems have one.
    extension: Option<Box<Extension>>,
}

/// A member of the documents of only one problem.
#[derive(Clone, Debug)]
enum Extension {
    SupportedVersions(&'static [&'static str]),
    /// The result of an import that stopped.
    Import(Value),
    FeedRestart(FeedRestart),
    /// The recorded event whose key was used for other values.
    Event(EventRef),
    /// The limit that rejects usage.
    Limit(LimitReached),
}

/// An invalid field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldProblem {
    /// Location of the field: a JSON pointer (RFC 6901) into the body, or `/name` of a query parameter.
    #[schema(example = "/products/0/issue_day")]
    pub pointer: String,
    /// Stable error code.
    #[schema(example = "out_of_range")]
    pub code: &'static str,
    /// Explanation of the error and of the expected value.
    pub detail: String,
    /// Expected value, if the error is a mismatch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub expected: Option<String>,
    /// Actual value, if the error is a mismatch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub actual: Option<String>,
}

/// Error code of an import that stopped before the end of its file.
pub const IMPORT_STOPPED: &str = "import_stopped";

/// Error code of an invalid second-factor code.
pub const INVALID_CODE: &str = "invalid_code";
/// The administrator must enter the password again.
pub const CONFIRMATION_REQUIRED: &str = "confirmation_required";

/// A problem document (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemJson<'a> {
    /// URI of the problem type: a prefix and the code.
    #[serde(rename = "type")]
    #[schema(example = "urn:problem-type:usage-billing:validation_failed")]
    kind: String,
    /// Title of the problem type.
    #[schema(example = "Validation failed")]
    title: String,
    /// HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// Explanation of this occurrence.
    detail: &'a str,
    /// Path of the request.
    #[schema(example = "/api/contracts/")]
    instance: &'a str,
    /// Stable error code; programs should branch on it.
    #[schema(example = "validation_failed")]
    code: &'static str,
    /// Id of the request in the server log.
    request_id: &'a str,
    /// Invalid fields, at most 100; `detail` has the number of the others. Empty if the error does not concern fields, or if the
    /// response to a batch lists 1,000 errors of earlier events.
    errors: &'a [FieldProblem],
    /// Supported API versions, if the requested version is not supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    supported: Option<&'static [&'static str]>,
    /// Result of an import that stopped. Only the response of that operation declares it, with its schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    import: Option<&'a Value>,
    /// Last position of the feed, if it does not continue after the requested one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    position: Option<u64>,
    /// Instant since which the client reads the lists again, if the feed does not continue after the requested position.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    restored_to: Option<TimestampText>,
    /// Recorded event whose idempotency key was used for other values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    event_ref: Option<AssignedRef>,
    /// Limit that rejects the usage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    limit_ref: Option<AssignedRef>,
    /// Number that the limit watches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    metric: Option<LimitMetricWord>,
    /// Largest number up to which usage is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    max: Option<ExactNumber>,
    /// Number without the usage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    value: Option<ExactNumber>,
    /// What open holds would add to the number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    held: Option<ExactNumber>,
    /// What the usage would add to the number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    needed: Option<ExactNumber>,
}

/// Declares problems without parameters: `name: STATUS "code", "detail"`, and an optional `Retry-After`.
macro_rules! problems {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident: $status:ident $code:literal, $detail:literal $(, retry after $seconds:ident)?;
    )+) => {
        impl Problem {$(
            $(#[doc = $doc])+
            pub fn $name() -> Self {
                Self::new(StatusCode::$status, $code, $detail)$(.retry_after($seconds))?
            }
        )+}
    };
}

problems! {
    /// Returns the problem of a path without an operation.
    unknown_route: NOT_FOUND "route_not_found", "no operation exists at this path";
    /// Returns the problem of a body that was cut off.
    incomplete_body: BAD_REQUEST "incomplete_body", "the body is incomplete: send the request again";
    /// Returns the problem of a body that did not arrive in time.
    request_timeout: REQUEST_TIMEOUT "request_timeout", "the request did not arrive within the time limit: send it again";
    /// Returns the problem of a request whose response was not ready in time.
    timed_out: SERVICE_UNAVAILABLE "timed_out",
        "the request timed out, and its outcome is unknown: retry with the same idempotency key", retry after UNAVAILABLE_RETRY_SECONDS;
    /// Returns the reason why an import stops at its time limit.
    import_out_of_time: SERVICE_UNAVAILABLE "timed_out", "the request reached its time limit";
    /// Returns the problem of an operation that only administrators may use.
    admin_session_required: FORBIDDEN "admin_session_required",
        "this operation requires an administrator session, not a bearer token";
    /// Returns the problem of a session cookie sent from another site.
    cross_site: FORBIDDEN "cross_site_request", "a request with a session cookie must come from the service's own pages";
    /// Returns the problem of a full queue.
    overloaded: SERVICE_UNAVAILABLE "overloaded",
        "too many requests are waiting: retry after the given delay", retry after CONTENDED_RETRY_SECONDS;
    /// Returns the problem of a report beyond the limit of concurrent reports.
    too_many_reports: SERVICE_UNAVAILABLE "too_many_reports",
        "too many reports are in progress: retry after the given delay", retry after REPORT_RETRY_SECONDS;
    /// Returns the problem of an unreachable store.
    unavailable: SERVICE_UNAVAILABLE "unavailable",
        "the database is unavailable: retry after the given delay", retry after UNAVAILABLE_RETRY_SECONDS;
    /// Returns the problem of a node of the database that cannot be reached.
    node_unavailable: SERVICE_UNAVAILABLE "node_unavailable",
        "the database node of this customer cannot be reached: retry after the given delay", retry after CONTENDED_RETRY_SECONDS;
    /// Returns the problem of an internal failure. The log contains the cause.
    internal: INTERNAL_SERVER_ERROR "internal_error", "the service failed: give the request id to its operators";
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            errors: Vec::new(),
            unlisted: 0,
            lists_errors: true,
            headers: Vec::new(),
            extension: None,
        }
    }

    pub fn method_not_allowed(allowed: &str) -> Self {
        let detail = format!("this path supports only {allowed}");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail).with_header(ALLOW, allowed)
    }

    /// Returns the problem of a path whose reference does not exist.
    pub fn unknown(thing: ResourceKind) -> Self {
        Self::new(StatusCode::NOT_FOUND, not_found_code(thing), format!("the {} does not exist", thing.word()))
    }

    pub fn unsupported_version(supported: &'static [&'static str]) -> Self {
        let detail = format!("the header Version must be {} or be omitted", supported.join(" or "));
        let problem = Self::new(StatusCode::BAD_REQUEST, "unsupported_version", detail);
        Self { extension: Some(Box::new(Extension::SupportedVersions(supported))), ..problem }
    }

    pub fn malformed(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    pub fn too_large(limit_bytes: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", format!("a body must have at most {limit_bytes} bytes"))
    }

    /// Returns the problem of a file above the limit, with the alternatives for large files.
    pub fn file_too_large(limit_bytes: usize) -> Self {
        let detail = format!(
            "a file must have at most {limit_bytes} bytes: split it, or import it with the command `usage-billing import`"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
    }

    pub fn unsupported_media_type(detail: &str) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    }

    /// Returns the problem of a missing (`presented` is false) or invalid credential.
    pub fn unauthenticated(presented: bool) -> Self {
        let challenge = if presented { r#"Bearer error="invalid_token""# } else { "Bearer" };
        let detail = if presented { "the credential is invalid or expired" } else { "a credential is required" };
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail).with_header(WWW_AUTHENTICATE, challenge)
    }

    pub fn insufficient_scope(need: Permission) -> Self {
        let words: Vec<&str> = need.scopes().into_iter().map(Scope::as_str).collect();
        let challenge = format!(r#"Bearer error="insufficient_scope", scope="{}""#, words.join(" "));
        let detail = format!("the API key does not have {need}");
        Self::new(StatusCode::FORBIDDEN, "insufficient_scope", detail).with_header(WWW_AUTHENTICATE, &challenge)
    }

    pub fn invalid_idempotency_key(reason: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_idempotency_key", format!("the header Idempotency-Key {reason}"))
    }

    /// Returns the problem of a test of a webhook endpoint while another one of the organization waits for its endpoint.
    pub fn webhook_test_in_progress() -> Self {
        let detail =
            "another test of a webhook endpoint is in progress: repeat the request when it has ended, after at most 15 seconds";
        Self::new(StatusCode::CONFLICT, "webhook_test_in_progress", detail).retry_after(IN_PROGRESS_RETRY_SECONDS)
    }

    /// Returns the problem of a duplicate request that is in progress, in this or another process.
    pub fn request_in_progress() -> Self {
        let detail = UseCaseError::RequestInProgress.to_string();
        Self::new(StatusCode::CONFLICT, "request_in_progress", detail).retry_after(IN_PROGRESS_RETRY_SECONDS)
    }

    pub fn too_many_log_ins(retry_seconds: u64) -> Self {
        let detail = "too many log-in attempts: wait before the next one";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_log_ins", detail).retry_after(retry_seconds)
    }

    pub fn not_ready(reason: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", reason).retry_after(UNAVAILABLE_RETRY_SECONDS)
    }

    /// Returns the problem for a bare status from the framework.
    pub fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::NOT_FOUND => Self::unknown_route(),
            StatusCode::REQUEST_TIMEOUT => Self::request_timeout(),
            status if status.is_client_error() => Self::new(status, "bad_request", "the request is malformed"),
            _ => Self::internal(),
        }
    }

    /// Returns the collected field errors, also if the response does not list them.
    pub fn errors(&self) -> &[FieldProblem] {
        &self.errors
    }

    /// Returns the field errors that the response lists.
    pub fn listed_errors(&self) -> &[FieldProblem] {
        if self.lists_errors { &self.errors } else { &[] }
    }

    /// Returns the problem of an event without its list of errors, for a response that lists too many already. Only the first
    /// error remains, because rejected events are counted by it.
    pub fn without_listed_errors(mut self) -> Self {
        let all = self.unlisted.saturating_add(self.errors.len());
        if self.code == VALIDATION_FAILED {
            self.detail = format!("invalid request fields: {}; to see them, send the event alone", grouped(all));
        }
        self.errors.truncate(1);
        self.errors.shrink_to_fit();
        self.unlisted = all.saturating_sub(self.errors.len());
        self.lists_errors = false;
        self
    }

    /// Returns the title of the problem.
    pub fn title(&self) -> String {
        title(self.code)
    }

    pub const fn code(&self) -> &'static str {
        self.code
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns whether the problem is a rejected credential, and not another failure or a missing second factor.
    pub fn is_refused_credential(&self) -> bool {
        matches!(self.code, "invalid_credentials" | "second_factor_locked" | "wrong_password") || self.is_invalid_code()
    }

    /// Returns whether the password was correct but the second-factor code was not.
    pub fn is_invalid_code(&self) -> bool {
        self.code == INVALID_CODE
    }

    /// Returns the pointers of all field errors.
    pub fn pointers(&self) -> impl Iterator<Item = &str> {
        self.errors.iter().map(|field| field.pointer.as_str())
    }

    /// Returns pointer and code of all field errors.
    #[cfg(test)]
    pub fn fields(&self) -> Vec<(String, &'static str)> {
        self.errors.iter().map(|field| (field.pointer.clone(), field.code)).collect()
    }

    pub fn too_many_events(most: usize) -> Self {
        let detail = format!("a batch must have at most {most} events: send the other events in another batch");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "too_many_events", detail)
    }

    /// Returns the problem of events that were rejected together, from the problems of the events and their positions. Events
    /// without a position in a batch are elements of the request's `event`.
    pub fn batch_refused(refused: impl Iterator<Item = (EventPlace, Self)>) -> Self {
        let (mut events, mut unlisted, mut errors) = (0_usize, 0_usize, Vec::new());
        for (EventPlace { index, item }, problem) in refused {
            let Self { code, detail, errors: mut of_event, unlisted: more, .. } = problem;
            if of_event.is_empty() {
                of_event.push(FieldProblem { pointer: String::new(), code, detail, expected: None, actual: None });
            }
            let room = MAX_LISTED_VIOLATIONS.saturating_sub(errors.len());
            events += 1;
            unlisted += more + of_event.len().saturating_sub(room);
            let place = index.map_or_else(|| "/event".to_owned(), |index| format!("/events/{index}"));
            let below = |error: FieldProblem| {
                let detail = item.map_or_else(|| error.detail.clone(), |item| format!("item {item}: {}", error.detail));
                FieldProblem { pointer: format!("{place}{}", error.pointer), detail, ..error }
            };
            errors.extend(of_event.into_iter().take(room).map(below));
        }
        let (events, see) = (grouped(events), see_errors(errors.len(), unlisted));
        let detail = format!("invalid events in the batch: {events}; no event is stored, {see}");
        Self { errors, unlisted, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "batch_refused", detail) }
    }

    /// Returns the problem of an import that stopped before the end of its file, with the result of the import.
    pub fn import_stopped(detail: String, result: Value) -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, IMPORT_STOPPED, detail);
        let problem = problem.retry_after(UNAVAILABLE_RETRY_SECONDS);
        Self { extension: Some(Box::new(Extension::Import(result))), ..problem }
    }

    fn feed_restarted(detail: String, restart: FeedRestart) -> Self {
        let problem = Self::new(StatusCode::CONFLICT, "feed_restarted", detail);
        Self { extension: Some(Box::new(Extension::FeedRestart(restart))), ..problem }
    }

    /// Returns whether an idempotency key was used for another request.
    pub fn is_key_reuse(&self) -> bool {
        self.code == KEY_REUSE
    }

    fn about_recorded_event(self, event_ref: Option<EventRef>) -> Self {
        let Some(event_ref) = event_ref else { return self };
        Self { extension: Some(Box::new(Extension::Event(event_ref))), ..self }
    }

    /// Returns the limit that rejects usage.
    pub fn limit_reached(&self) -> Option<&LimitReached> {
        match self.extension.as_deref() {
            Some(Extension::Limit(reached)) => Some(reached),
            _ => None,
        }
    }

    fn about_limit(self, reached: &LimitReached) -> Self {
        Self { extension: Some(Box::new(Extension::Limit(reached.clone()))), ..self }
    }

    /// Returns the recorded event whose key was used for other values.
    pub fn recorded_event(&self) -> Option<EventRef> {
        match self.extension.as_deref() {
            Some(Extension::Event(event_ref)) => Some(*event_ref),
            Some(Extension::SupportedVersions(_) | Extension::Import(_) | Extension::FeedRestart(_) | Extension::Limit(_))
            | None => None,
        }
    }

    /// Returns the result of an import that stopped.
    pub fn import(&self) -> Option<&Value> {
        match self.extension.as_deref() {
            Some(Extension::Import(result)) => Some(result),
            Some(Extension::SupportedVersions(_) | Extension::FeedRestart(_) | Extension::Event(_) | Extension::Limit(_))
            | None => None,
        }
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

    /// Returns the HTTP status.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the headers that are specific to the problem.
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }

    /// Builds the problem document of a request.
    pub fn document<'p>(&'p self, instance: &'p str, request_id: &'p str) -> ProblemJson<'p> {
        let document = ProblemJson {
            kind: format!("{TYPE_PREFIX}{}", self.code),
            title: title(self.code),
            status: self.status.as_u16(),
            detail: &self.detail,
            instance,
            code: self.code,
            request_id,
            errors: self.listed_errors(),
            supported: None,
            import: None,
            position: None,
            restored_to: None,
            event_ref: None,
            limit_ref: None,
            held: None,
            metric: None,
            max: None,
            value: None,
            needed: None,
        };
        match self.extension.as_deref() {
            None => document,
            Some(Extension::SupportedVersions(versions)) => ProblemJson { supported: Some(versions), ..document },
            Some(Extension::Import(result)) => ProblemJson { import: Some(result), ..document },
            Some(Extension::FeedRestart(FeedRestart { position, restored_to })) => {
                let restored_to = Some(TimestampText::from(*restored_to));
                ProblemJson { position: Some(*position), restored_to, ..document }
            }
            Some(Extension::Event(event_ref)) => ProblemJson { event_ref: Some(AssignedRef::from(event_ref)), ..document },
            Some(Extension::Limit(LimitReached { limit_ref, metric, max, value, held, needed })) => ProblemJson {
                limit_ref: Some(AssignedRef::from(limit_ref)),
                metric: Some(LimitMetricWord::from(*metric)),
                max: Some(ExactNumber::from(*max)),
                value: Some(ExactNumber::from(*value)),
                held: Some(ExactNumber::from(*held)),
                needed: Some(ExactNumber::from(*needed)),
                ..document
            },
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

/// Returns the part of a detail that refers to the listed errors and counts the others.
fn see_errors(listed: usize, unlisted: usize) -> String {
    if unlisted == 0 {
        return "see `errors`".to_owned();
    }
    let more = grouped(unlisted);
    format!(
        "see the first {listed} in `errors`, and {more} more problems that are not listed: correct the request and send it \
         again"
    )
}

/// Formats a number with a comma between groups of three digits.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Converts a code to a title: `validation_failed` → `Validation failed`.
fn title(code: &str) -> String {
    let words = code.replace('_', " ");
    let mut chars = words.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// Builds an RFC 6901 pointer.
fn pointer<'a>(path: impl IntoIterator<Item = &'a str>) -> String {
    path.into_iter().flat_map(|segment| ["/".to_owned(), segment.replace('~', "~0").replace('/', "~1")]).collect()
}
