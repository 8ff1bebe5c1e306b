//! Handlers for log-in, log-out and API keys.

use std::net::IpAddr;

use actix_session::Session;
use actix_web::http::header::USER_AGENT;
use actix_web::{HttpRequest, HttpResponse};
use billing_application::access::{self, AdministratorLogIn, LogInName, OpenedSession};
use billing_domain::access::RequestId;
use billing_domain::text::OneLine;

use crate::auth::attempts::limited;
use crate::auth::credentials::{PresentedCredential, shown};
use crate::auth::gate::Attempt;
use crate::auth::session;
use crate::blocking::blocking;
use crate::body::UnauthenticatedBody;
use crate::call::Reply;
use crate::context::RequestContext;
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
    limited(request, name_in(&log_in), async |state, attempt| {
        let request_id = RequestContext::of(request).id();
        match log_in {
            LogIn::ApiKey { api_key, password } => log_in_key(state, attempt, api_key, password, request_id).await,
            LogIn::Administrator { email, password, new_password, code } => {
                let (address, user_agent) = (attempt.address(), user_agent(request));
                let stated = OwnedLogIn { email, password, new_password, code, address, user_agent, request_id };
                log_in_administrator(state, session, attempt, stated).await
            }
        }
    })
    .await
}

fn name_in(log_in: &LogIn) -> LogInName {
    match log_in {
        LogIn::ApiKey { api_key, .. } => LogInName::ApiKey(api_key.clone()),
        LogIn::Administrator { email, .. } => LogInName::Email(email.clone()),
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
        PresentedCredential::Key(_) | PresentedCredential::Nothing | PresentedCredential::Unreadable => {}
    }
    Ok(HttpResponse::NoContent().finish())
}
