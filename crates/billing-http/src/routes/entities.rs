//! Supplier entities.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::catalog;
use billing_application::error::Thing;
use billing_domain::refs::EntityRef;

use super::{Answer, OnceAnswer, in_path};
use crate::body::Body;
use crate::caller::Caller;
use crate::dto::declare::read;
use crate::dto::entities::{EntityBody, EntityEditBody, EntityJson, EntityNameJson};
use crate::problem::Problem;
use crate::query::{DEFAULT_PAGE_SIZE, Paged, Query};

pub(crate) async fn create_entity(caller: Caller, Body(body): Body) -> OnceAnswer {
    let new: EntityBody = read(&body)?;
    let made = caller.once(Some(&body)).answer::<EntityJson, _>(move |services, principal| {
        catalog::create_entity(services, principal, new.entity_ref.clone(), new.wanted.clone())
    });
    made.await
}

pub(crate) async fn edit_entity(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let reference = in_path(EntityRef::parse, &path, Thing::Entity)?;
    let changes = EntityEditBody::read(&body, &reference)?;
    let edited = caller
        .once(Some(&body))
        .answer::<EntityJson, _>(move |services, principal| catalog::edit_entity(services, principal, &reference, &changes));
    edited.await
}

pub(crate) async fn get_entity(caller: Caller, path: Path<String>) -> Answer<EntityJson> {
    let reference = in_path(EntityRef::parse, &path, Thing::Entity)?;
    let found = caller.run(move |services, principal| catalog::get_entity(services, principal, &reference)).await?;
    Ok(Json(EntityJson::from(&found)))
}

pub(crate) async fn list_entities(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let Paged(page) = query.read::<Paged<DEFAULT_PAGE_SIZE>>()?;
    let found = caller.run(move |services, principal| catalog::list_entities(services, principal, page)).await?;
    Ok(query.answer::<_, EntityJson>(page, &found))
}

pub(crate) async fn list_entity_names(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let Paged(page) = query.read::<Paged<DEFAULT_PAGE_SIZE>>()?;
    let found = caller.run(move |services, principal| catalog::list_entities(services, principal, page)).await?;
    Ok(query.answer::<_, EntityNameJson>(page, &found))
}
