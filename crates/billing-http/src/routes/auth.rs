//! Log-in, log-out and API keys.

use actix_session::Session;
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use billing_application::access::{self, OpenedSession};
use billing_application::error::Thing;
use billing_domain::page::MAX_PAGE_SIZE;
use billing_domain::refs::ApiKeyRef;

use super::{Caller, OnceAnswer, blocking, in_path, state_of};
use crate::auth::credentials::{Shown, shown};
use crate::auth::{address, session};
use crate::body::{Body, OptionalBody};
use crate::dto::keys::{ApiKeyJson, GeneratedKeyJson, KeyBody};
use crate::dto::log_in::{AdminSessionJson, LogIn, LogInBody};
use crate::problem::Problem;
use crate::query::Query;
use crate::state::HttpState;

/// Logs software in with an API key, or an administrator with an e-mail address.
///
/// An API key is answered by a bearer token, as a JSON string; an e-mail address by a session cookie.
#[utoipa::path(post, path = "/auth/login", tag = "auth", request_body = LogInBody,
    responses((status = 200, description = "A bearer token, or the session that the cookie is for", body = crate::openapi::LogInAnswer,
        headers(("Set-Cookie" = String, description = "An administrator's session")))))]
pub(crate) async fn log_in(request: HttpRequest, session: Session, Body(body): Body) -> Result<HttpResponse, Problem> {
    let log_in = LogInBody::read(&body)?;
    let state = state_of(&request);
    let principal = counted_as(&log_in);
    state.log_ins().attempt(address::counted(&request, &state.settings().trusted_proxies), &principal)?;
    let answered = match log_in {
        LogIn::ApiKey { api_key, password } => log_in_key(&state, api_key, password).await,
        LogIn::Administrator { email, password } => log_in_administrator(&state, &session, email, password).await,
    };
    answered.inspect_err(|problem| state.log_ins().failed(&principal, problem))
}

/// Whose attempts are counted together, whether they exist or not.
fn counted_as(log_in: &LogIn) -> String {
    match log_in {
        LogIn::ApiKey { api_key, .. } => format!("key {api_key}"),
        LogIn::Administrator { email, .. } => format!("admin {}", email.to_lowercase()),
    }
}

async fn log_in_key(state: &HttpState, api_key: String, password: String) -> Result<HttpResponse, Problem> {
    let token = blocking(state, move |services| access::log_in_key(services, &api_key, &password)).await?;
    Ok(HttpResponse::Ok().json(token))
}

async fn log_in_administrator(
    state: &HttpState,
    session: &Session,
    email: String,
    password: String,
) -> Result<HttpResponse, Problem> {
    let turn = state.log_ins().hashing_turn().await?;
    let checked = blocking(state, move |services| {
        let checked = access::log_in_administrator(services, &email, &password);
        // Given back by the thread that hashed: nobody may be waiting for it any more.
        drop(turn);
        checked
    });
    let OpenedSession { administrator, secret, expires_at } = checked.await?;
    session::begin(session, &secret)?;
    Ok(HttpResponse::Ok().json(AdminSessionJson::new(&administrator, expires_at)))
}

/// Ends the session or the bearer token that is shown.
#[utoipa::path(post, path = "/auth/logout", tag = "auth",
    responses((status = 204, description = "Whatever was shown works no more")))]
pub(crate) async fn log_out(request: HttpRequest, session: Session) -> Result<HttpResponse, Problem> {
    match shown(&request) {
        Shown::Bearer(token) => blocking(&state_of(&request), move |services| access::end_token(services, &token)).await?,
        Shown::Session(_) => session.purge(),
        Shown::Nothing | Shown::Unreadable => {}
    }
    Ok(HttpResponse::NoContent().finish())
}

/// Makes an API key. Its password is shown this once.
#[utoipa::path(post, path = "/auth/keys/generate", tag = "auth", request_body(content = Option<KeyBody>),
    responses((status = 200, description = "The key and its password", body = GeneratedKeyJson)))]
pub(crate) async fn generate_key(caller: Caller, request: HttpRequest, OptionalBody(body): OptionalBody) -> OnceAnswer {
    let wanted = KeyBody::read(body.as_ref())?;
    // Only a session is let through to here; the store has no more than a hash of its id.
    let session = session::id(&request).ok_or_else(Problem::internal)?;
    let generated = caller
        .once(body.as_ref())
        .sealed_for(session)
        .answer::<GeneratedKeyJson, _>(move |services, principal| access::generate_key(services, principal, wanted.clone()));
    generated.await
}

/// Lists the organization's API keys by creation.
#[utoipa::path(get, path = "/auth/keys/list", tag = "auth", params(crate::openapi::KeyParams),
    responses((status = 200, description = "The keys, without their passwords", body = Vec<ApiKeyJson>)))]
pub(crate) async fn list_keys(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let page = query.page(MAX_PAGE_SIZE)?;
    let found = caller.run(move |services, principal| access::list_keys(services, principal, page)).await?;
    Ok(query.answer::<_, ApiKeyJson>(page, &found))
}

/// Deletes an API key; its tokens end at once.
#[utoipa::path(delete, path = "/auth/user/{api_key_ref}", tag = "auth",
    params(("api_key_ref" = String, Path, description = "The key's reference")),
    responses((status = 204, description = "The key is gone")))]
pub(crate) async fn delete_key(caller: Caller, path: Path<String>) -> Result<HttpResponse, Problem> {
    let api_key_ref = in_path(ApiKeyRef::parse, &path, Thing::ApiKey)?;
    caller.run(move |services, principal| access::delete_key(services, principal, api_key_ref)).await?;
    Ok(HttpResponse::NoContent().finish())
}
