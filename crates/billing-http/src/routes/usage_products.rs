//! Usage products.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::catalog;
use billing_application::error::Thing;
use billing_domain::refs::UsageProductRef;

use super::{Answer, Caller, OnceAnswer, in_path};
use crate::body::Body;
use crate::dto::usage_products::{UsageProductBody, UsageProductEditBody, UsageProductJson};
use crate::problem::Problem;
use crate::query::{DEFAULT_PAGE_SIZE, Query};

/// Makes a usage product.
#[utoipa::path(post, path = "/api/usage/products/", tag = "catalog", request_body = UsageProductBody,
    responses((status = 200, description = "The usage product that was made", body = UsageProductJson)))]
pub(crate) async fn create_usage_product(caller: Caller, Body(body): Body) -> OnceAnswer {
    let (reference, wanted) = UsageProductBody::read_new(&body)?;
    let made = caller.once(Some(&body)).answer::<UsageProductJson, _>(move |services, principal| {
        catalog::create_usage_product(services, principal, reference.clone(), wanted.clone())
    });
    made.await
}

/// Changes a usage product: fields left out are kept, null clears.
#[utoipa::path(post, path = "/api/usage/products/edit/{usage_product_ref}", tag = "catalog", request_body = UsageProductEditBody,
    params(("usage_product_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The changed usage product", body = UsageProductJson)))]
pub(crate) async fn edit_usage_product(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let reference = in_path(UsageProductRef::parse, &path, Thing::UsageProduct)?;
    let edited = caller.once(Some(&body)).answer::<UsageProductJson, _>(move |services, principal| {
        let edit = |present: &_| UsageProductBody::read_edit(&body, &reference, present);
        catalog::edit_usage_product(services, principal, &reference, &edit)
    });
    edited.await
}

/// Reads a usage product.
#[utoipa::path(get, path = "/api/usage/products/{usage_product_ref}", tag = "catalog",
    params(("usage_product_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The usage product", body = UsageProductJson)))]
pub(crate) async fn get_usage_product(caller: Caller, path: Path<String>) -> Answer<UsageProductJson> {
    let reference = in_path(UsageProductRef::parse, &path, Thing::UsageProduct)?;
    let found = caller.run(move |services, principal| catalog::get_usage_product(services, principal, &reference)).await?;
    Ok(Json(UsageProductJson::from(&found)))
}

/// Lists usage products by creation.
#[utoipa::path(get, path = "/api/usage/products/filter", tag = "catalog", params(crate::openapi::PageParams),
    responses((status = 200, description = "A page of usage products", body = Vec<UsageProductJson>)))]
pub(crate) async fn list_usage_products(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let page = query.page(DEFAULT_PAGE_SIZE)?;
    let found = caller.run(move |services, principal| catalog::list_usage_products(services, principal, page)).await?;
    Ok(query.answer::<_, UsageProductJson>(page, &found))
}
