//! Handlers for the caller's own account: profile, password, second factor and sessions.

use actix_web::HttpResponse;
use billing_application::Services;
use billing_application::error::UseCaseResult;
use billing_application::own_account;
use billing_domain::access::Principal;

use crate::auth::{address, session};
use crate::call::{Call, Reply};
use billing_api::dto::own_account::{
    ConfirmationBody, OwnAccountJson, OwnSessionJson, PasswordChangeBody, RecoveryCodesJson, SecondFactorCodeBody,
    SecondFactorEnrollmentJson, SecondFactorRemovalBody,
};
use billing_api::problem::Problem;

pub(crate) async fn get_session(call: Call) -> Reply {
    let session = session::shown(&call.request)?;
    call.read::<OwnAccountJson, _>(move |cx| own_account::own_account(cx, &session)).await
}

pub(crate) async fn confirm_identity(call: Call) -> Reply {
    let ConfirmationBody { password } = call.body().await?;
    let session = session::shown(&call.request)?;
    let confirmed =
        tried(&call, move |services, principal| own_account::confirm_identity(services, principal, &session, &password));
    confirmed.await?;
    Ok(HttpResponse::NoContent().finish())
}

pub(crate) async fn change_password(call: Call) -> Reply {
    let PasswordChangeBody { password, new_password } = call.body().await?;
    let session = session::shown(&call.request)?;
    let changed = tried(&call, move |services, principal| {
        own_account::change_password(services, principal, &session, &password, &new_password)
    });
    changed.await?;
    Ok(HttpResponse::NoContent().finish())
}

pub(crate) async fn enroll_second_factor(call: Call) -> Reply {
    let enrolled = call.run(own_account::enroll_second_factor).await?;
    Ok(HttpResponse::Ok().json(SecondFactorEnrollmentJson::from(&enrolled)))
}

pub(crate) async fn confirm_second_factor(call: Call) -> Reply {
    let SecondFactorCodeBody { code } = call.body().await?;
    let confirmed =
        tried(&call, move |services, principal| own_account::confirm_second_factor(services, principal, code.as_str()));
    Ok(HttpResponse::Ok().json(RecoveryCodesJson::from(&confirmed.await?)))
}

pub(crate) async fn remove_second_factor(call: Call) -> Reply {
    let SecondFactorRemovalBody { password, code } = call.body().await?;
    let removed =
        tried(&call, move |services, principal| own_account::remove_second_factor(services, principal, &password, code.as_str()));
    removed.await?;
    Ok(HttpResponse::NoContent().finish())
}

pub(crate) async fn list_sessions(call: Call) -> Reply {
    let session = session::shown(&call.request)?;
    call.read_all::<OwnSessionJson, _>(move |cx| own_account::list_sessions(cx, &session)).await
}

pub(crate) async fn end_other_sessions(call: Call) -> Reply {
    let session = session::shown(&call.request)?;
    call.delete(move |cx| own_account::end_other_sessions(cx, &session)).await
}

/// Checks a password or code within the log-in rate limits, so that a person at an unattended browser cannot guess it.
async fn tried<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce(&Services, &Principal) -> UseCaseResult<T> + Send + 'static,
) -> Result<T, Problem> {
    let (state, name) = (&call.state, format!("own {}", call.principal()?.actor()));
    let attempt = state.log_ins().in_session(address::client(&call.request, &state.settings().trusted_proxies), &name);
    let turn = state.log_ins().permit_hash(attempt).await?;
    let done = call.run(move |services, principal| {
        let done = work(services, principal);
        // The hashing thread releases the permit, because the request may have been abandoned.
        drop(turn);
        done
    });
    done.await.inspect_err(|problem| state.log_ins().failed(attempt, problem))
}
