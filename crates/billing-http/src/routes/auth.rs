//! Log-in, log-out and API keys.

use actix_session::Session;
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use billing_application::access::{self, LogInName, OpenedSession};
use billing_application::error::Thing;
use billing_domain::access::RequestId;
use billing_domain::page::MAX_PAGE_SIZE;
use billing_domain::refs::ApiKeyRef;

use super::{OnceAnswer, in_path};
use crate::auth::credentials::{Shown, shown};
use crate::auth::{address, session};
use crate::body::{Body, OptionalBody};
use crate::caller::{Caller, blocking};
use crate::dto::declare::read_optional;
use crate::dto::keys::{ApiKeyJson, GeneratedKeyJson, KeyBody};
use crate::dto::log_in::{AdminSessionJson, LogIn, LogInBody};
use crate::middleware::Facts;
use crate::problem::Problem;
use crate::query::{Paged, Query};
use crate::state::HttpState;
use crate::state::state_of;

pub(crate) async fn log_in(request: HttpRequest, session: Session, Body(body): Body) -> Result<HttpResponse, Problem> {
    let log_in = LogInBody::read_log_in(&body)?;
    carry_out(&request, &session, log_in).await
}

/// Logs an administrator in who said so in a form.
pub(crate) async fn log_in_by(
    request: &HttpRequest,
    session: &Session,
    email: String,
    password: String,
) -> Result<HttpResponse, Problem> {
    carry_out(request, session, LogIn::Administrator { email, password }).await
}

/// Tries a log-in, as often as it may be tried.
async fn carry_out(request: &HttpRequest, session: &Session, log_in: LogIn) -> Result<HttpResponse, Problem> {
    let (state, principal) = (state_of(request), counted_as(&log_in));
    state.log_ins().attempt(address::counted(request, &state.settings().trusted_proxies), &principal)?;
    let request_id = Facts::of(request).id();
    let (name, by) = (name_in(&log_in), request_id.clone());
    let answered = match log_in {
        LogIn::ApiKey { api_key, password } => log_in_key(&state, api_key, password, by).await,
        LogIn::Administrator { email, password } => log_in_administrator(&state, session, email, password, by).await,
    };
    answered.inspect_err(|problem| {
        state.log_ins().failed(&principal, problem);
        if problem.is_refused_credential() {
            note_failed(state.clone(), name, request_id);
        }
    })
}

fn name_in(log_in: &LogIn) -> LogInName {
    match log_in {
        LogIn::ApiKey { api_key, .. } => LogInName::ApiKey(api_key.clone()),
        LogIn::Administrator { email, .. } => LogInName::Email(email.clone()),
    }
}

/// Has the audit log note a log-in that failed. The answer doesn't wait for it: it takes as long whether there is such a name or not.
fn note_failed(state: HttpState, name: LogInName, request_id: Option<RequestId>) {
    drop(actix_web::rt::spawn(async move {
        let noted = blocking(&state, move |services| access::note_failed_log_in(services, &name, request_id.as_ref()));
        if let Err(problem) = noted.await {
            tracing::warn!(code = problem.code(), "a log-in that failed could not be noted");
        }
    }));
}

/// Whose attempts are counted together, whether they exist or not.
fn counted_as(log_in: &LogIn) -> String {
    match log_in {
        LogIn::ApiKey { api_key, .. } => format!("key {api_key}"),
        LogIn::Administrator { email, .. } => format!("admin {}", email.to_lowercase()),
    }
}

async fn log_in_key(
    state: &HttpState,
    api_key: String,
    password: String,
    by: Option<RequestId>,
) -> Result<HttpResponse, Problem> {
    let token = blocking(state, move |services| access::log_in_key(services, &api_key, &password, by.as_ref())).await?;
    Ok(HttpResponse::Ok().json(token))
}

async fn log_in_administrator(
    state: &HttpState,
    session: &Session,
    email: String,
    password: String,
    by: Option<RequestId>,
) -> Result<HttpResponse, Problem> {
    let turn = state.log_ins().hashing_turn().await?;
    let checked = blocking(state, move |services| {
        let checked = access::log_in_administrator(services, &email, &password, by.as_ref());
        // Given back by the thread that hashed: nobody may be waiting for it any more.
        drop(turn);
        checked
    });
    let OpenedSession { administrator, secret, expires_at } = checked.await?;
    session::begin(session, &secret)?;
    Ok(HttpResponse::Ok().json(AdminSessionJson::new(&administrator, expires_at)))
}

pub(crate) async fn log_out(request: HttpRequest, session: Session) -> Result<HttpResponse, Problem> {
    match shown(&request) {
        Shown::Bearer(token) => blocking(&state_of(&request), move |services| access::end_token(services, &token)).await?,
        Shown::Session(_) => session.purge(),
        Shown::Nothing | Shown::Unreadable => {}
    }
    Ok(HttpResponse::NoContent().finish())
}

pub(crate) async fn generate_key(caller: Caller, request: HttpRequest, OptionalBody(body): OptionalBody) -> OnceAnswer {
    let KeyBody { request: wanted } = read_optional(body.as_ref())?;
    // Only a session is let through to here; the store has no more than a hash of its id.
    let session = session::id(&request).ok_or_else(Problem::internal)?;
    let generated = caller
        .once(body.as_ref())
        .sealed_for(session)
        .answer::<GeneratedKeyJson, _>(move |services, principal| access::generate_key(services, principal, wanted.clone()));
    generated.await
}

pub(crate) async fn list_keys(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let Paged(page) = query.read::<Paged<MAX_PAGE_SIZE>>()?;
    let found = caller.run(move |services, principal| access::list_keys(services, principal, page)).await?;
    Ok(query.answer::<_, ApiKeyJson>(page, &found))
}

pub(crate) async fn delete_key(caller: Caller, path: Path<String>) -> Result<HttpResponse, Problem> {
    let api_key_ref = in_path(ApiKeyRef::parse, &path, Thing::ApiKey)?;
    caller.run(move |services, principal| access::delete_key(services, principal, api_key_ref)).await?;
    Ok(HttpResponse::NoContent().finish())
}
