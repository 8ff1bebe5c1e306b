//! Handlers for administrators, which owners create and edit.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use billing_application::administrators::{self, OneTimePassword};
use billing_application::error::ResourceKind;
use billing_domain::page::MAX_PAGE_SIZE;
use billing_domain::refs::AdminRef;

use super::{OnceAnswer, in_path};
use crate::auth::session;
use crate::body::{Body, OptionalBody};
use crate::caller::{Caller, blocking};
use crate::dto::administrators::{
    AdministratorEditBody, AdministratorJson, AdministratorResetBody, InvitationBody, InvitationJson,
};
use crate::dto::declare::{read, read_optional};
use crate::problem::Problem;
use crate::query::{Paged, Query};
use crate::state::HttpState;

pub(crate) async fn list_administrators(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let Paged(page) = query.read::<Paged<MAX_PAGE_SIZE>>()?;
    let found = caller.run(move |services, principal| administrators::administrators_of(services, principal, page)).await?;
    Ok(query.answer::<_, AdministratorJson>(page, &found))
}

pub(crate) async fn invite_administrator(caller: Caller, request: HttpRequest, Body(body): Body) -> OnceAnswer {
    let InvitationBody { email, role } = read(&body)?;
    let session = session::shown(&request)?;
    let one_time = one_time_password(&caller.state).await?;
    let invited = caller.once(Some(&body)).sealed_for(session).answer::<InvitationJson, _>(move |services, principal| {
        administrators::invite_administrator(services, principal, &email, role, &one_time)
    });
    invited.await
}

pub(crate) async fn edit_administrator(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let admin_ref = in_path(AdminRef::parse, &path, ResourceKind::Administrator)?;
    let AdministratorEditBody { edit } = read(&body)?;
    let edited = caller.once(Some(&body)).answer::<AdministratorJson, _>(move |services, principal| {
        administrators::edit_administrator(services, principal, admin_ref, edit)
    });
    edited.await
}

pub(crate) async fn reset_administrator(
    caller: Caller,
    request: HttpRequest,
    path: Path<String>,
    OptionalBody(body): OptionalBody,
) -> OnceAnswer {
    let admin_ref = in_path(AdminRef::parse, &path, ResourceKind::Administrator)?;
    let AdministratorResetBody { remove_second_factor } = read_optional(body.as_ref())?;
    let session = session::shown(&request)?;
    let one_time = one_time_password(&caller.state).await?;
    let reset = caller.once(body.as_ref()).sealed_for(session).answer::<InvitationJson, _>(move |services, principal| {
        administrators::reset_administrator(services, principal, admin_ref, remove_second_factor, &one_time)
    });
    reset.await
}

/// Creates and hashes a one-time password. Hashing waits for a permit and happens outside the transaction.
async fn one_time_password(state: &HttpState) -> Result<OneTimePassword, Problem> {
    let turn = state.log_ins().hashing_turn().await?;
    let made = blocking(state, move |services| {
        let made = administrators::one_time_password(services);
        drop(turn);
        made
    });
    made.await
}
