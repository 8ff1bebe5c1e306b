//! Handlers for charges: one-off amounts and manual credit notes.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::charges;
use billing_application::error::ResourceKind;
use billing_domain::page::Page;
use billing_domain::refs::ChargeRef;

use super::{Answer, OnceAnswer, in_path};
use crate::body::Body;
use crate::caller::Caller;
use crate::dto::charges::{ChargeBody, ChargeEditBody, ChargeJson};
use crate::dto::declare::read;
use crate::problem::Problem;
use crate::query::Query;
use crate::query::lists::ChargeParams;

pub(crate) async fn record_charge(caller: Caller, Body(body): Body) -> OnceAnswer {
    let ChargeBody { request } = read(&body)?;
    let made = caller
        .once(Some(&body))
        .answer::<ChargeJson, _>(move |services, principal| charges::record_charge(services, principal, &request));
    made.await
}

pub(crate) async fn edit_charge(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let reference = in_path(ChargeRef::parse, &path, ResourceKind::Charge)?;
    let ChargeEditBody { edit, issue } = ChargeEditBody::read(&body, &reference)?;
    let edited = caller
        .once(Some(&body))
        .answer::<ChargeJson, _>(move |services, principal| charges::edit_charge(services, principal, &reference, &edit, issue));
    edited.await
}

pub(crate) async fn list_charges(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let params: ChargeParams = query.read()?;
    let (page, wanted) = (params.page.0.in_direction(params.order), params.query());
    let found = caller.scan(move |services, principal| match &wanted {
        Some(wanted) => charges::list_charges(services, principal, wanted, page),
        None => Ok(Page::empty()),
    });
    Ok(query.answer::<_, ChargeJson>(page, &found.await?))
}

pub(crate) async fn get_charge(caller: Caller, path: Path<String>) -> Answer<ChargeJson> {
    let reference = in_path(ChargeRef::parse, &path, ResourceKind::Charge)?;
    let found = caller.run(move |services, principal| charges::get_charge(services, principal, &reference)).await?;
    Ok(Json(ChargeJson::from(&found)))
}

pub(crate) async fn delete_charge(caller: Caller, path: Path<String>) -> Result<HttpResponse, Problem> {
    let reference = in_path(ChargeRef::parse, &path, ResourceKind::Charge)?;
    if caller.rehearses {
        return caller
            .rehearse(Box::new(move |services, principal| charges::delete_charge(services, principal, &reference)))
            .await;
    }
    caller.run(move |services, principal| charges::delete_charge(services, principal, &reference)).await?;
    Ok(HttpResponse::NoContent().finish())
}
