//! The middleware around every request: assigns a request id and a deadline, converts panics and errors to problem
//! documents, and writes one log line.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use actix_session::storage::{LoadError, SaveError, UpdateError};
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::Method;
use actix_web::http::header::{
    AUTHORIZATION, CACHE_CONTROL, COOKIE, HeaderMap, HeaderName, HeaderValue, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::middleware::Next;
use actix_web::web::Bytes;
use actix_web::{Error, HttpMessage as _, HttpResponse};
use billing_domain::access::Actor;
use tracing::Instrument as _;

use crate::connection_activity::RequestInProgress;
use crate::context::{REQUEST_ID, RequestContext};
use crate::held_value::hold_until_sent;
use crate::respond::{HttpProblem, respond_problem};
use crate::state::{HttpState, state_of};
use crate::trace;
use crate::undrained_body::UndrainedBody;
use billing_api::operation::{VERSION, VERSIONED_BELOW};
use billing_api::problem::Problem;

const VERSION_HEADER: HeaderName = HeaderName::from_static("version");
/// Responses below this path contain secrets.
const SECRETS_BELOW: &str = "/auth/";
/// One year.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// The header with the instant of a sandbox's clock. A live server does not send it.
const SANDBOX_HEADER: HeaderName = HeaderName::from_static("sandbox");

/// Maximum number of error pointers in the log line of a rejected request.
const MAX_LOGGED_POINTERS: usize = 10;
/// Maximum length of a logged pointer in characters.
const MAX_LOGGED_CHARS: usize = 100;

/// Runs the request and always returns a response.
pub(crate) async fn answer(mut request: ServiceRequest, next: Next<BoxBody>) -> Result<ServiceResponse<BoxBody>, Error> {
    // The header is the credential here. Without this step, the session library would read the cookie too and log a
    // warning.
    if request.headers().contains_key(AUTHORIZATION) {
        request.headers_mut().remove(COOKIE);
    }
    let facts = RequestContext::note(request.request());
    let path_headers = PathHeaders::of(request.match_info().as_str());
    let is_head = request.method() == Method::HEAD;
    let state = state_of(request.request());
    request.extensions_mut().insert(facts.clone());
    let in_progress = RequestInProgress::of(request.request());
    let unread = UndrainedBody::of(&mut request);
    let holding = |response| {
        let response = if is_head { without_content(response) } else { response };
        hold_until_sent((unread, in_progress), response)
    };
    let span = trace::begin(&facts.request_id, request.headers());
    let outcome = bounded(facts.deadline, next.call(request)).instrument(span.clone()).await;
    match outcome.and_then(|answered| answered.map_err(|error| problem_of(&error))) {
        Ok(answered) => {
            let (request, response) = answered.into_parts();
            let problem = problem_in(&response);
            let mut response = match &problem {
                Some(problem) if !is_page(&response) => respond_problem(problem, &facts.path, &facts.request_id),
                Some(_) | None => response,
            };
            add_headers(response.headers_mut(), &facts, path_headers, &state);
            // The framework searches all of its patterns for the one that matched, so it is asked only about pages and errors.
            let matched = if facts.operation().is_none() { request.match_pattern() } else { None };
            let route = facts.operation().map(|(_, path)| path).or(matched.as_deref());
            trace::end(&span, facts.method.as_str(), response.status().as_u16(), route);
            log(&facts, &state, response.status().as_u16(), route, problem.as_ref());
            Ok(ServiceResponse::new(request, holding(response)))
        }
        // The error consumed the request, so the server sends the error's own response.
        Err(problem) => {
            let mut response = respond_problem(&problem, &facts.path, &facts.request_id);
            add_headers(response.headers_mut(), &facts, path_headers, &state);
            let route = facts.operation().map(|(_, path)| path);
            trace::end(&span, facts.method.as_str(), response.status().as_u16(), route);
            log(&facts, &state, response.status().as_u16(), route, Some(&problem));
            Err(InternalError::from_response(problem, holding(response)).into())
        }
    }
}

/// Runs the work until the deadline and converts a panic to an internal error.
async fn bounded<T>(deadline: tokio::time::Instant, work: impl Future<Output = T>) -> Result<T, Problem> {
    let mut work = pin!(work);
    let caught = poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
        // The panic hook has already logged the cause.
        Err(_) => Poll::Ready(Err(Problem::internal())),
    });
    tokio::time::timeout_at(deadline, caught).await.unwrap_or_else(|_| Err(Problem::timed_out()))
}

/// Converts an error of the framework to a problem.
fn problem_of(error: &Error) -> Problem {
    let session_failed = error.as_error::<InternalError<LoadError>>().is_some()
        || error.as_error::<InternalError<SaveError>>().is_some()
        || error.as_error::<InternalError<UpdateError>>().is_some()
        || error.as_error::<InternalError<anyhow::Error>>().is_some();
    if session_failed {
        // actix-session does not expose the cause. Only the store can fail here.
        tracing::warn!(error = ?error, "cannot store a session");
        return Problem::unavailable();
    }
    Problem::of_status(error.as_response_error().status_code())
}

/// Returns the problem that a response carries, or that its status requires.
fn problem_in(response: &HttpResponse<BoxBody>) -> Option<Problem> {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return None;
    }
    if let Some(RenderedByPage(problem)) = response.extensions().get() {
        return Some(problem.clone());
    }
    let problem = response.error().and_then(|error| error.as_error::<HttpProblem>()).map(|HttpProblem(problem)| problem);
    Some(problem.cloned().unwrap_or_else(|| Problem::of_status(status)))
}

/// A problem that an HTML page already shows, so that the response is not replaced by a problem document.
pub(crate) struct RenderedByPage(pub(crate) Problem);

fn is_page(response: &HttpResponse<BoxBody>) -> bool {
    response.extensions().contains::<RenderedByPage>()
}

/// The headers that depend on the path. The path is decoded as the router decodes it, so that another spelling of a path, such as
/// `/%61uth/login`, has the same headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PathHeaders {
    is_versioned: bool,
    has_secrets: bool,
}

impl PathHeaders {
    fn of(decoded_path: &str) -> Self {
        Self { is_versioned: decoded_path.starts_with(VERSIONED_BELOW), has_secrets: decoded_path.starts_with(SECRETS_BELOW) }
    }
}

/// The body of a response to `HEAD`. It has the size of the body that `GET` returns, for the header `Content-Length`, and no
/// content.
struct SizeOnly(BodySize);

impl MessageBody for SizeOnly {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        self.0
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        Poll::Ready(None)
    }
}

/// Removes the content of a response. A report that is still being written stops when its body is dropped.
fn without_content(response: HttpResponse<BoxBody>) -> HttpResponse<BoxBody> {
    response.map_body(|_, body| BoxBody::new(SizeOnly(body.size())))
}

fn add_headers(headers: &mut HeaderMap, facts: &RequestContext, path_headers: PathHeaders, state: &HttpState) {
    if let Ok(request_id) = HeaderValue::from_str(&facts.request_id) {
        headers.insert(REQUEST_ID, request_id);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if state.settings().public_url.is_https() {
        headers.insert(STRICT_TRANSPORT_SECURITY, HSTS);
    }
    if let Some(clock) = &state.services().sandbox
        && let Ok(now) = HeaderValue::from_str(&clock.now().to_string())
    {
        headers.insert(SANDBOX_HEADER, now);
    }
    if path_headers.is_versioned {
        headers.insert(VERSION_HEADER, HeaderValue::from_static(VERSION));
    }
    if path_headers.has_secrets {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

/// Counts the request and writes one log line. For a rejected request, the line includes the reason, the invalid fields
/// and the address. Of the request's content, only field names are logged.
fn log(facts: &RequestContext, state: &HttpState, status: u16, route: Option<&str>, problem: Option<&Problem>) {
    let (operation, who) = (facts.operation(), facts.who());
    state.metrics().answered(operation.map(|(id, _)| id), status, facts.started.elapsed());
    if let Some((organization, Actor::ApiKey(key))) = who {
        state.key_uses().note(state.services(), organization, key);
    }
    let actor = who.map_or_else(|| "-".to_owned(), |(_, actor)| actor.to_string());
    tracing::info!(
        method = %facts.method,
        route = route.unwrap_or("-"),
        status,
        duration_ms = u64::try_from(facts.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        request_id = %facts.request_id,
        actor,
        code = problem.map(Problem::code),
        fields = problem.map(logged_pointers).filter(|pointers| !pointers.is_empty()),
        address = problem.map(|_| facts.address.to_string()),
        "answered"
    );
}

fn logged_pointers(problem: &Problem) -> String {
    let short = problem.pointers().take(MAX_LOGGED_POINTERS).map(|pointer| pointer.chars().take(MAX_LOGGED_CHARS).collect());
    let mut shown: Vec<String> = short.collect();
    if problem.pointers().nth(MAX_LOGGED_POINTERS).is_some() {
        shown.push("...".to_owned());
    }
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon(millis: u64) -> tokio::time::Instant {
        tokio::time::Instant::now() + std::time::Duration::from_millis(millis)
    }

    #[actix_web::test]
    async fn a_panic_becomes_an_answer() {
        let at_once = bounded(soon(1000), async { panic!("as the test wants it") }).await;
        assert_eq!(at_once.map(|()| "").map_err(|problem| problem.code()), Err("internal_error"));
        let later = bounded(soon(1000), async {
            tokio::task::yield_now().await;
            panic!("as the test wants it")
        });
        assert_eq!(later.await.map(|()| "").map_err(|problem| problem.code()), Err("internal_error"));
    }

    #[test]
    fn the_headers_of_a_path_follow_its_decoded_form() {
        let rows = [
            ("/auth/login", false, true),
            ("/api/customers/acme", true, false),
            ("/authority", false, false),
            ("/docs", false, false),
        ];
        for (path, is_versioned, has_secrets) in rows {
            assert_eq!(PathHeaders::of(path), PathHeaders { is_versioned, has_secrets }, "{path}");
        }
    }

    #[test]
    fn a_response_without_content_has_the_size_of_the_content() {
        let response = without_content(HttpResponse::Ok().body("seven b"));
        assert_eq!(response.body().size(), BodySize::Sized(7));
        assert_eq!(without_content(HttpResponse::NoContent().finish()).body().size(), BodySize::Sized(0));
    }

    #[actix_web::test]
    async fn what_takes_too_long_is_given_up() {
        assert_eq!(bounded(soon(1000), async { 7 }).await.ok(), Some(7));
        let endless = bounded(soon(5), std::future::pending::<()>()).await;
        assert_eq!(endless.map_err(|problem| problem.code()), Err("timed_out"));
    }
}
