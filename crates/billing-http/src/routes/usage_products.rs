//! Usage products.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::catalog;
use billing_application::error::Thing;
use billing_domain::refs::UsageProductRef;

use super::{Answer, OnceAnswer, in_path};
use crate::body::Body;
use crate::caller::Caller;
use crate::dto::declare::read;
use crate::dto::usage_products::{UsageProductBody, UsageProductEditBody, UsageProductJson};
use crate::problem::Problem;
use crate::query::{DEFAULT_PAGE_SIZE, Paged, Query};

pub(crate) async fn create_usage_product(caller: Caller, Body(body): Body) -> OnceAnswer {
    let new: UsageProductBody = read(&body)?;
    let made = caller.once(Some(&body)).answer::<UsageProductJson, _>(move |services, principal| {
        catalog::create_usage_product(services, principal, new.usage_product_ref.clone(), new.profile.clone())
    });
    made.await
}

pub(crate) async fn edit_usage_product(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let reference = in_path(UsageProductRef::parse, &path, Thing::UsageProduct)?;
    let changes = UsageProductEditBody::read(&body, &reference)?;
    let edited = caller.once(Some(&body)).answer::<UsageProductJson, _>(move |services, principal| {
        catalog::edit_usage_product(services, principal, &reference, &changes)
    });
    edited.await
}

pub(crate) async fn get_usage_product(caller: Caller, path: Path<String>) -> Answer<UsageProductJson> {
    let reference = in_path(UsageProductRef::parse, &path, Thing::UsageProduct)?;
    let found = caller.run(move |services, principal| catalog::get_usage_product(services, principal, &reference)).await?;
    Ok(Json(UsageProductJson::from(&found)))
}

pub(crate) async fn list_usage_products(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let Paged(page) = query.read::<Paged<DEFAULT_PAGE_SIZE>>()?;
    let found = caller.run(move |services, principal| catalog::list_usage_products(services, principal, page)).await?;
    Ok(query.answer::<_, UsageProductJson>(page, &found))
}
