//! Handlers for administrators, which owners create and edit.

use billing_application::administrators::{self, OneTimePassword};
use billing_application::error::ResourceKind;
use billing_domain::refs::AdminRef;

use crate::auth::{address, session};
use crate::blocking::blocking;
use crate::call::{Call, Reply};
use billing_api::dto::administrators::{AdministratorResetBody, InvitationBody, InvitationJson};
use billing_api::problem::Problem;

pub(crate) async fn invite_administrator(call: Call) -> Reply {
    let InvitationBody { email, role } = call.body().await?;
    let session = session::shown(&call.request)?;
    let one_time = one_time_password(&call).await?;
    let call = call.sealed_for(session);
    call.write::<InvitationJson, _>(move |cx| administrators::invite_administrator(cx, &email, role, &one_time)).await
}

pub(crate) async fn reset_administrator(call: Call) -> Reply {
    let admin_ref = call.reference(AdminRef::parse, ResourceKind::Administrator)?;
    let AdministratorResetBody { remove_second_factor } = call.body().await?;
    let session = session::shown(&call.request)?;
    let one_time = one_time_password(&call).await?;
    let reset = call.sealed_for(session).write::<InvitationJson, _>(move |cx| {
        administrators::reset_administrator(cx, admin_ref, remove_second_factor, &one_time)
    });
    reset.await
}

/// Creates and hashes a one-time password. Hashing waits for a permit and happens outside the transaction.
async fn one_time_password(call: &Call) -> Result<OneTimePassword, Problem> {
    let (state, name) = (&call.state, format!("own {}", call.principal()?.actor()));
    let client = address::client(&call.request, &state.settings().trusted_proxies);
    let turn = state.log_ins().permit_unchecked_hash(client, &name).await?;
    let made = blocking(state.services(), move |services| {
        let made = administrators::one_time_password(services);
        drop(turn);
        made
    });
    made.await
}
