//! Charges: one-off amounts and manual credit notes.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::charges;
use billing_application::error::Thing;
use billing_domain::page::Page;
use billing_domain::refs::ChargeRef;

use super::{Answer, Caller, OnceAnswer, in_path};
use crate::body::Body;
use crate::dto::charges::{ChargeBody, ChargeEditBody, ChargeJson};
use crate::problem::Problem;
use crate::query::Query;

/// Records a charge and puts it on its document; below zero it is a credit note.
#[utoipa::path(post, path = "/api/charges/", tag = "charges", request_body = ChargeBody,
    responses((status = 200, description = "The charge is stored, and on this document", body = ChargeJson)))]
pub(crate) async fn record_charge(caller: Caller, Body(body): Body) -> OnceAnswer {
    let request = ChargeBody::read_new(&body)?;
    let made = caller
        .once(Some(&body))
        .answer::<ChargeJson, _>(move |services, principal| charges::record_charge(services, principal, &request));
    made.await
}

/// Changes a charge: fields left out are kept.
#[utoipa::path(post, path = "/api/charges/edit/{charge_ref}", tag = "charges", request_body = ChargeEditBody,
    params(("charge_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The changed charge", body = ChargeJson)))]
pub(crate) async fn edit_charge(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let reference = in_path(ChargeRef::parse, &path, Thing::Charge)?;
    let (edit, issue) = ChargeEditBody::read(&body, &reference)?;
    let edited = caller
        .once(Some(&body))
        .answer::<ChargeJson, _>(move |services, principal| charges::edit_charge(services, principal, &reference, &edit, issue));
    edited.await
}

/// Lists charges by creation.
#[utoipa::path(get, path = "/api/charges/filter", tag = "charges",
    params(crate::openapi::ChargeParams, crate::openapi::PageParams),
    responses((status = 200, description = "A page of charges, without deleted ones", body = Vec<ChargeJson>)))]
pub(crate) async fn list_charges(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let (wanted, page) = query.charges()?;
    let found = caller.scan(move |services, principal| match &wanted {
        Some(wanted) => charges::list_charges(services, principal, wanted, page),
        None => Ok(Page::empty()),
    });
    Ok(query.answer::<_, ChargeJson>(page, &found.await?))
}

/// Reads a charge.
#[utoipa::path(get, path = "/api/charges/{charge_ref}", tag = "charges",
    params(("charge_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The charge", body = ChargeJson)))]
pub(crate) async fn get_charge(caller: Caller, path: Path<String>) -> Answer<ChargeJson> {
    let reference = in_path(ChargeRef::parse, &path, Thing::Charge)?;
    let found = caller.run(move |services, principal| charges::get_charge(services, principal, &reference)).await?;
    Ok(Json(ChargeJson::from(&found)))
}

/// Deletes a charge: it counts no more.
#[utoipa::path(delete, path = "/api/charges/{charge_ref}", tag = "charges",
    params(("charge_ref" = String, Path, description = "Its reference")),
    responses((status = 204, description = "The charge counts no more")))]
pub(crate) async fn delete_charge(caller: Caller, path: Path<String>) -> Result<HttpResponse, Problem> {
    let reference = in_path(ChargeRef::parse, &path, Thing::Charge)?;
    caller.run(move |services, principal| charges::delete_charge(services, principal, &reference)).await?;
    Ok(HttpResponse::NoContent().finish())
}
