//! Customers.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::catalog;
use billing_application::error::Thing;
use billing_domain::refs::CustomerRef;

use super::{Answer, Caller, OnceAnswer, in_path};
use crate::body::Body;
use crate::dto::customers::{CustomerBody, CustomerEditBody, CustomerJson, CustomerNameJson};
use crate::problem::Problem;
use crate::query::Query;

/// Makes a customer.
#[utoipa::path(post, path = "/api/customers/", tag = "catalog", request_body = CustomerBody,
    responses((status = 200, description = "The customer that was made", body = CustomerJson)))]
pub(crate) async fn create_customer(caller: Caller, Body(body): Body) -> OnceAnswer {
    let (reference, wanted) = CustomerBody::read_new(&body)?;
    let made = caller.once(Some(&body)).answer::<CustomerJson, _>(move |services, principal| {
        catalog::create_customer(services, principal, reference.clone(), wanted.clone())
    });
    made.await
}

/// Changes a customer: fields left out are kept, null clears.
#[utoipa::path(post, path = "/api/customers/edit/{customer_ref}", tag = "catalog", request_body = CustomerEditBody,
    params(("customer_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The changed customer", body = CustomerJson)))]
pub(crate) async fn edit_customer(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let reference = in_path(CustomerRef::parse, &path, Thing::Customer)?;
    let edited = caller.once(Some(&body)).answer::<CustomerJson, _>(move |services, principal| {
        let edit = |present: &_| CustomerBody::read_edit(&body, &reference, present);
        catalog::edit_customer(services, principal, &reference, &edit)
    });
    edited.await
}

/// Reads a customer.
#[utoipa::path(get, path = "/api/customers/{customer_ref}", tag = "catalog",
    params(("customer_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The customer", body = CustomerJson)))]
pub(crate) async fn get_customer(caller: Caller, path: Path<String>) -> Answer<CustomerJson> {
    let reference = in_path(CustomerRef::parse, &path, Thing::Customer)?;
    let found = caller.run(move |services, principal| catalog::get_customer(services, principal, &reference)).await?;
    Ok(Json(CustomerJson::from(&found)))
}

/// Lists customers by creation.
#[utoipa::path(get, path = "/api/customers/filter", tag = "catalog",
    params(crate::openapi::CustomerParams, crate::openapi::PageParams),
    responses((status = 200, description = "A page of customers", body = Vec<CustomerJson>)))]
pub(crate) async fn list_customers(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let (filter, page) = query.customers()?;
    let found = caller.run(move |services, principal| catalog::list_customers(services, principal, &filter, page)).await?;
    Ok(query.answer::<_, CustomerJson>(page, &found))
}

/// Lists the names of customers by creation.
#[utoipa::path(get, path = "/api/customers/names", tag = "catalog",
    params(crate::openapi::CustomerParams, crate::openapi::PageParams),
    responses((status = 200, description = "A page of names", body = Vec<CustomerNameJson>)))]
pub(crate) async fn list_customer_names(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let (filter, page) = query.customers()?;
    let found = caller.run(move |services, principal| catalog::list_customers(services, principal, &filter, page)).await?;
    Ok(query.answer::<_, CustomerNameJson>(page, &found))
}
