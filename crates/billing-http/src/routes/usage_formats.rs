//! Usage formats.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::error::Thing;
use billing_application::formats;
use billing_domain::refs::FormatRef;

use super::{Answer, Caller, OnceAnswer, in_path};
use crate::body::Body;
use crate::dto::formats::{FormatBody, FormatEditBody, FormatJson, FormatTestBody, FormatTestJson};
use crate::problem::Problem;
use crate::query::{DEFAULT_PAGE_SIZE, Query};

/// Makes a usage format.
#[utoipa::path(post, path = "/api/usage/formats/", tag = "formats", request_body = FormatBody,
    responses((status = 200, description = "The usage format that was made", body = FormatJson)))]
pub(crate) async fn create_usage_format(caller: Caller, Body(body): Body) -> OnceAnswer {
    let (reference, content) = FormatBody::read_new(&body)?;
    let made = caller.once(Some(&body)).answer::<FormatJson, _>(move |services, principal| {
        formats::create_format(services, principal, reference.clone(), content.clone())
    });
    made.await
}

/// Changes a usage format into its next version; events keep the version they were taken with.
#[utoipa::path(post, path = "/api/usage/formats/edit/{format_ref}", tag = "formats", request_body = FormatEditBody,
    params(("format_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The changed usage format", body = FormatJson)))]
pub(crate) async fn edit_usage_format(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let reference = in_path(FormatRef::parse, &path, Thing::Format)?;
    let edited = caller.once(Some(&body)).answer::<FormatJson, _>(move |services, principal| {
        let edit = |present: &_| FormatBody::read_edit(&body, &reference, present);
        formats::edit_format(services, principal, &reference, &edit)
    });
    edited.await
}

/// Reads a usage format.
#[utoipa::path(get, path = "/api/usage/formats/{format_ref}", tag = "formats",
    params(("format_ref" = String, Path, description = "Its reference"), crate::openapi::FormatParams),
    responses((status = 200, description = "The usage format", body = FormatJson)))]
pub(crate) async fn get_usage_format(caller: Caller, path: Path<String>, query: Query) -> Answer<FormatJson> {
    let reference = in_path(FormatRef::parse, &path, Thing::Format)?;
    let version = query.version()?;
    let found = caller.run(move |services, principal| formats::get_format(services, principal, &reference, version)).await?;
    Ok(Json(FormatJson::from(&found)))
}

/// Lists usage formats by creation, the built-in one first.
#[utoipa::path(get, path = "/api/usage/formats/filter", tag = "formats", params(crate::openapi::PageParams),
    responses((status = 200, description = "A page of usage formats", body = Vec<FormatJson>)))]
pub(crate) async fn list_usage_formats(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let page = query.page(DEFAULT_PAGE_SIZE)?;
    let found = caller.run(move |services, principal| formats::list_formats(services, principal, page)).await?;
    Ok(query.answer::<_, FormatJson>(page, &found))
}

/// Tries a usage format, or a mapping, on an event; stores nothing.
#[utoipa::path(post, path = "/api/usage/formats/test", tag = "formats", request_body = FormatTestBody,
    responses((status = 200, description = "What the format makes of the event", body = FormatTestJson)))]
pub(crate) async fn test_usage_format(caller: Caller, Body(body): Body) -> Answer<FormatTestJson> {
    let (tested, event) = FormatTestBody::read(&body)?;
    let mapped = caller.run(move |services, principal| formats::test_format(services, principal, &tested, &event)).await?;
    Ok(Json(FormatTestJson::from(&mapped)))
}
