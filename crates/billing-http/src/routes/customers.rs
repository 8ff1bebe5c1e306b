//! Customers.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::catalog;
use billing_application::error::Thing;
use billing_domain::refs::CustomerRef;

use super::{Answer, OnceAnswer, in_path};
use crate::body::Body;
use crate::caller::Caller;
use crate::dto::customers::{CustomerBody, CustomerEditBody, CustomerJson, CustomerNameJson};
use crate::dto::declare::read;
use crate::problem::Problem;
use crate::query::Query;
use crate::query::lists::CustomerParams;

pub(crate) async fn create_customer(caller: Caller, Body(body): Body) -> OnceAnswer {
    let new: CustomerBody = read(&body)?;
    let made = caller.once(Some(&body)).answer::<CustomerJson, _>(move |services, principal| {
        catalog::create_customer(services, principal, new.customer_ref.clone(), new.profile.clone())
    });
    made.await
}

pub(crate) async fn edit_customer(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let reference = in_path(CustomerRef::parse, &path, Thing::Customer)?;
    let changes = CustomerEditBody::read(&body, &reference)?;
    let edited = caller
        .once(Some(&body))
        .answer::<CustomerJson, _>(move |services, principal| catalog::edit_customer(services, principal, &reference, &changes));
    edited.await
}

pub(crate) async fn get_customer(caller: Caller, path: Path<String>) -> Answer<CustomerJson> {
    let reference = in_path(CustomerRef::parse, &path, Thing::Customer)?;
    let found = caller.run(move |services, principal| catalog::get_customer(services, principal, &reference)).await?;
    Ok(Json(CustomerJson::from(&found)))
}

pub(crate) async fn list_customers(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let params: CustomerParams = query.read()?;
    let (filter, page) = (params.filter(), params.page.0);
    let found = caller.run(move |services, principal| catalog::list_customers(services, principal, &filter, page)).await?;
    Ok(query.answer::<_, CustomerJson>(page, &found))
}

pub(crate) async fn list_customer_names(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let params: CustomerParams = query.read()?;
    let (filter, page) = (params.filter(), params.page.0);
    let found = caller.run(move |services, principal| catalog::list_customers(services, principal, &filter, page)).await?;
    Ok(query.answer::<_, CustomerNameJson>(page, &found))
}
