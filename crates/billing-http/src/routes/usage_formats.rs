//! Usage formats.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::error::Thing;
use billing_application::formats;
use billing_domain::refs::FormatRef;

use super::{Answer, OnceAnswer, in_path};
use crate::body::Body;
use crate::caller::Caller;
use crate::dto::declare::read;
use crate::dto::formats::{FormatBody, FormatEditBody, FormatJson, FormatTestBody, FormatTestJson};
use crate::problem::Problem;
use crate::query::lists::FormatParams;
use crate::query::{DEFAULT_PAGE_SIZE, Paged, Query};

pub(crate) async fn create_usage_format(caller: Caller, Body(body): Body) -> OnceAnswer {
    let new: FormatBody = read(&body)?;
    let made = caller.once(Some(&body)).answer::<FormatJson, _>(move |services, principal| {
        formats::create_format(services, principal, new.format_ref.clone(), new.content.clone())
    });
    made.await
}

pub(crate) async fn edit_usage_format(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let reference = in_path(FormatRef::parse, &path, Thing::Format)?;
    let changes = FormatEditBody::read(&body, &reference)?;
    let edited = caller
        .once(Some(&body))
        .answer::<FormatJson, _>(move |services, principal| formats::edit_format(services, principal, &reference, &changes));
    edited.await
}

pub(crate) async fn get_usage_format(caller: Caller, path: Path<String>, query: Query) -> Answer<FormatJson> {
    let reference = in_path(FormatRef::parse, &path, Thing::Format)?;
    let FormatParams { version } = query.read()?;
    let found = caller.run(move |services, principal| formats::get_format(services, principal, &reference, version)).await?;
    Ok(Json(FormatJson::from(&found)))
}

pub(crate) async fn list_usage_formats(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let Paged(page) = query.read::<Paged<DEFAULT_PAGE_SIZE>>()?;
    let found = caller.run(move |services, principal| formats::list_formats(services, principal, page)).await?;
    Ok(query.answer::<_, FormatJson>(page, &found))
}

pub(crate) async fn test_usage_format(caller: Caller, Body(body): Body) -> Answer<FormatTestJson> {
    let (tested, event) = read::<FormatTestBody>(&body)?.tested().ok_or_else(Problem::internal)?;
    let mapped = caller.run(move |services, principal| formats::test_format(services, principal, &tested, &event)).await?;
    Ok(Json(FormatTestJson::from(&mapped)))
}
