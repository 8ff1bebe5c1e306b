//! Handlers for the caller's own account: profile, password, second factor and sessions.

use actix_web::web::{Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use billing_application::Services;
use billing_application::error::{ResourceKind, UseCaseResult};
use billing_application::own_account;
use billing_domain::access::Principal;
use billing_domain::refs::SessionRef;

use super::{Answer, in_path};
use crate::auth::{address, session};
use crate::body::Body;
use crate::caller::Caller;
use crate::dto::declare::read;
use crate::dto::own_account::{
    OwnAccountJson, OwnSessionJson, PasswordChangeBody, RecoveryCodesJson, SecondFactorCodeBody, SecondFactorEnrollmentJson,
    SecondFactorRemovalBody,
};
use crate::problem::Problem;

pub(crate) async fn get_session(caller: Caller, request: HttpRequest) -> Answer<OwnAccountJson> {
    let session = session::shown(&request)?;
    let found = caller.run(move |services, principal| own_account::own_account(services, principal, &session)).await?;
    Ok(Json(OwnAccountJson::from(&found)))
}

pub(crate) async fn change_password(caller: Caller, request: HttpRequest, Body(body): Body) -> Result<HttpResponse, Problem> {
    let PasswordChangeBody { password, new_password } = read(&body)?;
    let session = session::shown(&request)?;
    let work = move |services: &Services<'_>, principal: &Principal| {
        own_account::change_password(services, principal, &session, &password, &new_password)
    };
    tried(caller, &request, work).await?;
    Ok(HttpResponse::NoContent().finish())
}

pub(crate) async fn enroll_second_factor(caller: Caller) -> Answer<SecondFactorEnrollmentJson> {
    let enrolled = caller.run(own_account::enroll_second_factor).await?;
    Ok(Json(SecondFactorEnrollmentJson::from(&enrolled)))
}

pub(crate) async fn confirm_second_factor(caller: Caller, request: HttpRequest, Body(body): Body) -> Answer<RecoveryCodesJson> {
    let SecondFactorCodeBody { code } = read(&body)?;
    let work = move |services: &Services<'_>, principal: &Principal| {
        own_account::confirm_second_factor(services, principal, code.as_str())
    };
    Ok(Json(RecoveryCodesJson::from(&tried(caller, &request, work).await?)))
}

pub(crate) async fn remove_second_factor(
    caller: Caller,
    request: HttpRequest,
    Body(body): Body,
) -> Result<HttpResponse, Problem> {
    let SecondFactorRemovalBody { password, code } = read(&body)?;
    let work = move |services: &Services<'_>, principal: &Principal| {
        own_account::remove_second_factor(services, principal, &password, code.as_str())
    };
    tried(caller, &request, work).await?;
    Ok(HttpResponse::NoContent().finish())
}

pub(crate) async fn list_sessions(caller: Caller, request: HttpRequest) -> Answer<Vec<OwnSessionJson>> {
    let session = session::shown(&request)?;
    let found = caller.run(move |services, principal| own_account::list_sessions(services, principal, &session)).await?;
    Ok(Json(found.iter().map(OwnSessionJson::from).collect()))
}

pub(crate) async fn end_session(caller: Caller, path: Path<String>) -> Result<HttpResponse, Problem> {
    let session_ref = in_path(SessionRef::parse, &path, ResourceKind::Session)?;
    caller.run(move |services, principal| own_account::end_session(services, principal, session_ref)).await?;
    Ok(HttpResponse::NoContent().finish())
}

pub(crate) async fn end_other_sessions(caller: Caller, request: HttpRequest) -> Result<HttpResponse, Problem> {
    let session = session::shown(&request)?;
    caller.run(move |services, principal| own_account::end_other_sessions(services, principal, &session)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Checks a password or code within the log-in rate limits, so that a person at an unattended browser cannot guess it.
async fn tried<T: Send + 'static>(
    caller: Caller,
    request: &HttpRequest,
    work: impl FnOnce(&Services<'_>, &Principal) -> UseCaseResult<T> + Send + 'static,
) -> Result<T, Problem> {
    let (state, name) = (caller.state.clone(), format!("own {}", caller.principal.actor()));
    state.log_ins().attempt(address::counted(request, &state.settings().trusted_proxies), &name)?;
    let turn = state.log_ins().hashing_turn().await?;
    let done = caller.run(move |services, principal| {
        let done = work(services, principal);
        // The hashing thread releases the permit, because the request may have been abandoned.
        drop(turn);
        done
    });
    done.await.inspect_err(|problem| state.log_ins().failed(&name, problem))
}
