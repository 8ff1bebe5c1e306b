//! Supplier entities.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::catalog;
use billing_application::error::Thing;
use billing_domain::refs::EntityRef;

use super::{Answer, Caller, OnceAnswer, in_path};
use crate::body::Body;
use crate::dto::entities::{EntityBody, EntityEditBody, EntityJson, EntityNameJson};
use crate::problem::Problem;
use crate::query::{DEFAULT_PAGE_SIZE, Query};

/// Makes a supplier entity.
#[utoipa::path(post, path = "/api/entities/", tag = "catalog", request_body = EntityBody,
    responses((status = 200, description = "The supplier entity that was made", body = EntityJson)))]
pub(crate) async fn create_entity(caller: Caller, Body(body): Body) -> OnceAnswer {
    let (reference, wanted) = EntityBody::read_new(&body)?;
    let made = caller.once(Some(&body)).answer::<EntityJson, _>(move |services, principal| {
        catalog::create_entity(services, principal, reference.clone(), wanted.clone())
    });
    made.await
}

/// Changes a supplier entity: fields left out are kept, null clears.
#[utoipa::path(post, path = "/api/entities/edit/{entity_ref}", tag = "catalog", request_body = EntityEditBody,
    params(("entity_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The changed supplier entity", body = EntityJson)))]
pub(crate) async fn edit_entity(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let reference = in_path(EntityRef::parse, &path, Thing::Entity)?;
    let edited = caller.once(Some(&body)).answer::<EntityJson, _>(move |services, principal| {
        let edit = |present: &_| EntityBody::read_edit(&body, &reference, present);
        catalog::edit_entity(services, principal, &reference, &edit)
    });
    edited.await
}

/// Reads a supplier entity.
#[utoipa::path(get, path = "/api/entities/{entity_ref}", tag = "catalog",
    params(("entity_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The supplier entity", body = EntityJson)))]
pub(crate) async fn get_entity(caller: Caller, path: Path<String>) -> Answer<EntityJson> {
    let reference = in_path(EntityRef::parse, &path, Thing::Entity)?;
    let found = caller.run(move |services, principal| catalog::get_entity(services, principal, &reference)).await?;
    Ok(Json(EntityJson::from(&found)))
}

/// Lists supplier entities by creation.
#[utoipa::path(get, path = "/api/entities/filter", tag = "catalog", params(crate::openapi::PageParams),
    responses((status = 200, description = "A page of supplier entities", body = Vec<EntityJson>)))]
pub(crate) async fn list_entities(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let page = query.page(DEFAULT_PAGE_SIZE)?;
    let found = caller.run(move |services, principal| catalog::list_entities(services, principal, page)).await?;
    Ok(query.answer::<_, EntityJson>(page, &found))
}

/// Lists the names of supplier entities by creation.
#[utoipa::path(get, path = "/api/entities/names", tag = "catalog", params(crate::openapi::PageParams),
    responses((status = 200, description = "A page of names", body = Vec<EntityNameJson>)))]
pub(crate) async fn list_entity_names(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let page = query.page(DEFAULT_PAGE_SIZE)?;
    let found = caller.run(move |services, principal| catalog::list_entities(services, principal, page)).await?;
    Ok(query.answer::<_, EntityNameJson>(page, &found))
}
