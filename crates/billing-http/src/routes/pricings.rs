//! Pricings.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::catalog;
use billing_application::error::Thing;
use billing_domain::refs::PricingRef;

use super::{Answer, Caller, OnceAnswer, in_path};
use crate::body::Body;
use crate::dto::pricings::{PricingBody, PricingEditBody, PricingJson};
use crate::problem::Problem;
use crate::query::{DEFAULT_PAGE_SIZE, Query};

/// Makes a pricing.
#[utoipa::path(post, path = "/api/pricings/", tag = "catalog", request_body = PricingBody,
    responses((status = 200, description = "The pricing that was made", body = PricingJson)))]
pub(crate) async fn create_pricing(caller: Caller, Body(body): Body) -> OnceAnswer {
    let (reference, wanted) = PricingBody::read_new(&body)?;
    let made = caller.once(Some(&body)).answer::<PricingJson, _>(move |services, principal| {
        catalog::create_pricing(services, principal, reference.clone(), wanted.clone())
    });
    made.await
}

/// Changes a pricing: fields left out are kept, null clears.
#[utoipa::path(post, path = "/api/pricings/edit/{product_pricing_ref}", tag = "catalog", request_body = PricingEditBody,
    params(("product_pricing_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The changed pricing", body = PricingJson)))]
pub(crate) async fn edit_pricing(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let reference = in_path(PricingRef::parse, &path, Thing::Pricing)?;
    let edited = caller.once(Some(&body)).answer::<PricingJson, _>(move |services, principal| {
        let edit = |present: &_| PricingBody::read_edit(&body, &reference, present);
        catalog::edit_pricing(services, principal, &reference, &edit)
    });
    edited.await
}

/// Reads a pricing.
#[utoipa::path(get, path = "/api/pricings/{product_pricing_ref}", tag = "catalog",
    params(("product_pricing_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The pricing", body = PricingJson)))]
pub(crate) async fn get_pricing(caller: Caller, path: Path<String>) -> Answer<PricingJson> {
    let reference = in_path(PricingRef::parse, &path, Thing::Pricing)?;
    let found = caller.run(move |services, principal| catalog::get_pricing(services, principal, &reference)).await?;
    Ok(Json(PricingJson::from(&found)))
}

/// Lists pricings by creation.
#[utoipa::path(get, path = "/api/pricings/filter", tag = "catalog", params(crate::openapi::PageParams),
    responses((status = 200, description = "A page of pricings", body = Vec<PricingJson>)))]
pub(crate) async fn list_pricings(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let page = query.page(DEFAULT_PAGE_SIZE)?;
    let found = caller.run(move |services, principal| catalog::list_pricings(services, principal, page)).await?;
    Ok(query.answer::<_, PricingJson>(page, &found))
}
