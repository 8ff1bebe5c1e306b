//! Handlers for log-in, log-out and API keys.

use std::net::IpAddr;

use actix_session::Session;
use actix_web::http::header::USER_AGENT;
use actix_web::{HttpRequest, HttpResponse};
use billing_application::access::{self, AdministratorLogIn, LogInName, OpenedSession};
use billing_domain::access::RequestId;
use billing_domain::text::OneLine;
use tracing::Instrument as _;

use crate::auth::credentials::{PresentedCredential, shown};
use crate::auth::gate::Attempt;
use crate::auth::{address, session};
use crate::blocking::blocking;
use crate::body::UnauthenticatedBody;
use crate::call::Reply;
use crate::context::RequestContext;
use crate::metrics::LogInKind;
use crate::respond::HttpReply;
use crate::state::{HttpState, state_of};
use billing_api::dto::log_in::{AdminSessionJson, LogIn, LogInBody};
use billing_api::problem::Problem;

pub(crate) async fn log_in(request: HttpRequest, session: Session, UnauthenticatedBody(body): UnauthenticatedBody) -> HttpReply {
    let log_in = LogInBody::read_log_in(&body).map_err(Problem::from)?;
    Ok(carry_out(&request, &session, log_in).await?)
}

/// Attempts a log-in within the rate limits.
pub(crate) async fn carry_out(request: &HttpRequest, session: &Session, log_in: LogIn) -> Reply {
    let (state, principal) = (state_of(request), counted_as(&log_in));
    let client = address::client(request, &state.settings().trusted_proxies);
    let mut attempt = state.log_ins().log_in(client, &principal);
    if let LogIn::Administrator { email, .. } = &log_in {
        attempt = recognized(&state, attempt, email).await?;
    }
    let request_id = RequestContext::of(request).id();
    let (name, by) = (name_in(&log_in), request_id.clone());
    let answered = match log_in {
        LogIn::ApiKey { api_key, password } => log_in_key(&state, attempt, api_key, password, by).await,
        LogIn::Administrator { email, password, new_password, code } => {
            let (address, user_agent) = (attempt.address(), user_agent(request));
            let stated = OwnedLogIn { email, password, new_password, code, address, user_agent, request_id: by };
            log_in_administrator(&state, session, attempt, stated).await
        }
    };
    match &answered {
        Ok(_) => state.log_ins().succeeded(attempt),
        Err(problem) => {
            state.log_ins().failed(attempt, problem);
            if problem.is_refused_credential() {
                note_failed(state, FailedLogIn { name, request_id, address: attempt.address(), code: problem.code() });
            }
        }
    }
    answered
}

/// Returns an administrator's attempt as one from a known address, if the database knows the address: of log-ins before the
/// start of this server, or at other servers.
async fn recognized(state: &HttpState, attempt: Attempt, email: &str) -> Result<Attempt, Problem> {
    if !state.log_ins().needs_look_up(attempt) {
        return Ok(attempt);
    }
    let (email, address) = (email.to_owned(), attempt.address());
    let known =
        blocking(state.services(), move |services| Ok(access::known_addresses(services, &email)?.contains(services, address)));
    Ok(if known.await? { state.log_ins().recognize(attempt) } else { attempt })
}

fn name_in(log_in: &LogIn) -> LogInName {
    match log_in {
        LogIn::ApiKey { api_key, .. } => LogInName::ApiKey(api_key.clone()),
        LogIn::Administrator { email, .. } => LogInName::Email(email.clone()),
    }
}

/// A log-in with a rejected credential.
struct FailedLogIn {
    name: LogInName,
    request_id: Option<RequestId>,
    /// The address that the limits count.
    address: IpAddr,
    /// The code of the problem.
    code: &'static str,
}

/// Counts a failed log-in, and records it in the log and the audit log in the background. The response time must not depend
/// on whether the name exists.
fn note_failed(state: HttpState, failed: FailedLogIn) {
    let FailedLogIn { name, request_id, address, code } = failed;
    state.metrics().log_in_failed(match &name {
        LogInName::ApiKey(_) => LogInKind::Key,
        LogInName::Email(_) => LogInKind::Administrator,
    });
    let noting = async move {
        let noted = blocking(state.services(), move |services| access::note_failed_log_in(services, &name, request_id.as_ref()));
        match noted.await {
            Ok(account) => {
                // An unknown name stays out of the log, because people also type their passwords into this field.
                let account = account.map_or_else(|| "unknown".to_owned(), |account| account.to_string());
                tracing::info!(account, %address, code, "a log-in failed");
            }
            Err(problem) => {
                tracing::warn!(%address, code, reason = problem.code(), "a log-in failed, and the audit log cannot record it");
            }
        }
    };
    drop(actix_web::rt::spawn(noting.in_current_span()));
}

/// Returns the key for counting attempts. Nonexistent names are counted in the same way.
fn counted_as(log_in: &LogIn) -> String {
    match log_in {
        LogIn::ApiKey { api_key, .. } => format!("key {api_key}"),
        LogIn::Administrator { email, .. } => format!("admin {}", email.to_lowercase()),
    }
}

/// Maximum number of stored characters of the `User-Agent` header.
const MAX_USER_AGENT_CHARS: usize = 200;

fn user_agent(request: &HttpRequest) -> Option<OneLine> {
    let stated = request.headers().get(USER_AGENT)?.to_str().ok()?;
    OneLine::parse(&stated.chars().take(MAX_USER_AGENT_CHARS).collect::<String>()).ok()
}

/// The credentials of an administrator, owned so that another thread can use them.
struct OwnedLogIn {
    email: String,
    password: String,
    new_password: Option<String>,
    code: Option<String>,
    address: IpAddr,
    user_agent: Option<OneLine>,
    request_id: Option<RequestId>,
}

async fn log_in_key(state: &HttpState, attempt: Attempt, api_key: String, password: String, by: Option<RequestId>) -> Reply {
    state.log_ins().check(attempt)?;
    let token =
        blocking(state.services(), move |services| access::log_in_key(services, &api_key, &password, by.as_ref())).await?;
    Ok(HttpResponse::Ok().json(token))
}

async fn log_in_administrator(state: &HttpState, session: &Session, attempt: Attempt, stated: OwnedLogIn) -> Reply {
    let turn = state.log_ins().permit_hash(attempt).await?;
    let checked = blocking(state.services(), move |services| {
        let log_in = AdministratorLogIn {
            email: &stated.email,
            password: &stated.password,
            new_password: stated.new_password.as_deref(),
            code: stated.code.as_deref(),
            address: Some(stated.address),
            user_agent: stated.user_agent.as_ref(),
            request_id: stated.request_id.as_ref(),
        };
        let checked = access::log_in_administrator(services, log_in);
        // The hashing thread releases the permit, because the request may have been abandoned.
        drop(turn);
        checked
    });
    let OpenedSession { administrator, secret, expires_at } = checked.await?;
    session::begin(session, &secret)?;
    Ok(HttpResponse::Ok().json(AdminSessionJson::new(&administrator, expires_at)))
}

pub(crate) async fn log_out(request: HttpRequest, session: Session) -> HttpReply {
    match shown(&request) {
        PresentedCredential::Bearer(token) => {
            blocking(state_of(&request).services(), move |services| access::end_token(services, &token)).await?
        }
        PresentedCredential::Session(_) => session.purge(),
        PresentedCredential::Nothing | PresentedCredential::Unreadable => {}
    }
    Ok(HttpResponse::NoContent().finish())
}
