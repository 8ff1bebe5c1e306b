//! Pricings.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::catalog;
use billing_application::error::Thing;
use billing_domain::refs::PricingRef;

use super::{Answer, OnceAnswer, in_path};
use crate::body::Body;
use crate::caller::Caller;
use crate::dto::declare::read;
use crate::dto::pricings::{PricingBody, PricingEditBody, PricingJson};
use crate::problem::Problem;
use crate::query::{DEFAULT_PAGE_SIZE, Paged, Query};

pub(crate) async fn create_pricing(caller: Caller, Body(body): Body) -> OnceAnswer {
    let new: PricingBody = read(&body)?;
    let made = caller.once(Some(&body)).answer::<PricingJson, _>(move |services, principal| {
        catalog::create_pricing(services, principal, new.product_pricing_ref.clone(), new.content.clone())
    });
    made.await
}

pub(crate) async fn edit_pricing(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let reference = in_path(PricingRef::parse, &path, Thing::Pricing)?;
    let changes = PricingEditBody::read(&body, &reference)?;
    let edited = caller
        .once(Some(&body))
        .answer::<PricingJson, _>(move |services, principal| catalog::edit_pricing(services, principal, &reference, &changes));
    edited.await
}

pub(crate) async fn get_pricing(caller: Caller, path: Path<String>) -> Answer<PricingJson> {
    let reference = in_path(PricingRef::parse, &path, Thing::Pricing)?;
    let found = caller.run(move |services, principal| catalog::get_pricing(services, principal, &reference)).await?;
    Ok(Json(PricingJson::from(&found)))
}

pub(crate) async fn list_pricings(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let Paged(page) = query.read::<Paged<DEFAULT_PAGE_SIZE>>()?;
    let found = caller.run(move |services, principal| catalog::list_pricings(services, principal, page)).await?;
    Ok(query.answer::<_, PricingJson>(page, &found))
}
