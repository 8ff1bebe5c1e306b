//! Handlers for contracts and their current and next documents.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::contracts;
use billing_application::error::ResourceKind;
use billing_domain::page::Page;
use billing_domain::refs::ContractRef;

use super::{Answer, OnceAnswer, in_path};
use crate::body::{Body, OptionalBody};
use crate::caller::Caller;
use crate::dto::contract_changes::{AmendedContractJson, ContractCancelBody, ContractQuantityBody, ContractResumeBody};
use crate::dto::contract_view::{ContractCreatedJson, ContractJson};
use crate::dto::contracts::{ContractBody, ContractEditBody};
use crate::dto::declare::{read, read_optional};
use crate::dto::documents::DocumentJson;
use crate::problem::Problem;
use crate::query::lists::{ContractParams, ContractSearchParams};
use crate::query::{Paged, Query};

pub(crate) async fn create_contract(caller: Caller, Body(body): Body) -> OnceAnswer {
    let ContractBody { request } = read(&body)?;
    let made = caller
        .once(Some(&body))
        .answer::<ContractCreatedJson, _>(move |services, principal| contracts::create_contract(services, principal, &request));
    made.await
}

pub(crate) async fn edit_contract(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let contract_ref = in_path(ContractRef::parse, &path, ResourceKind::Contract)?;
    let wanted: ContractEditBody = read(&body)?;
    let (edit, options) = (wanted.edit(), wanted.options);
    let edited = caller.once(Some(&body)).answer::<AmendedContractJson, _>(move |services, principal| {
        contracts::edit_contract(services, principal, contract_ref, wanted.customer_ref.as_ref(), &edit, options)
    });
    edited.await
}

pub(crate) async fn cancel_contract(caller: Caller, path: Path<String>, OptionalBody(body): OptionalBody) -> OnceAnswer {
    let contract_ref = in_path(ContractRef::parse, &path, ResourceKind::Contract)?;
    let wanted: ContractCancelBody = read_optional(body.as_ref())?;
    let (last_day, options) = (wanted.ends(), wanted.options);
    let cancelled = caller.once(body.as_ref()).answer::<AmendedContractJson, _>(move |services, principal| {
        contracts::cancel_contract(services, principal, contract_ref, last_day, options)
    });
    cancelled.await
}

pub(crate) async fn resume_contract(caller: Caller, path: Path<String>, OptionalBody(body): OptionalBody) -> OnceAnswer {
    let contract_ref = in_path(ContractRef::parse, &path, ResourceKind::Contract)?;
    let ContractResumeBody { options } = read_optional(body.as_ref())?;
    let resumed = caller.once(body.as_ref()).answer::<AmendedContractJson, _>(move |services, principal| {
        contracts::resume_contract(services, principal, contract_ref, options)
    });
    resumed.await
}

pub(crate) async fn change_quantity(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let contract_ref = in_path(ContractRef::parse, &path, ResourceKind::Contract)?;
    let ContractQuantityBody { change, options } = read(&body)?;
    let changed = caller.once(Some(&body)).answer::<AmendedContractJson, _>(move |services, principal| {
        contracts::change_quantity(services, principal, contract_ref, &change, options)
    });
    changed.await
}

pub(crate) async fn get_contract(caller: Caller, path: Path<String>) -> Answer<ContractJson> {
    let contract_ref = in_path(ContractRef::parse, &path, ResourceKind::Contract)?;
    let found = caller.run(move |services, principal| contracts::get_contract(services, principal, contract_ref)).await?;
    Ok(Json(ContractJson::from(&found)))
}

pub(crate) async fn list_contracts(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let ContractParams { customer_ref, page: Paged(page) } = query.read()?;
    let found = caller.run(move |services, principal| match &customer_ref {
        Some(customer_ref) => contracts::list_contracts(services, principal, customer_ref, page),
        None => Ok(Page::empty()),
    });
    Ok(query.answer::<_, ContractJson>(page, &found.await?))
}

pub(crate) async fn search_contracts(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let params: ContractSearchParams = query.read()?;
    let (page, wanted) = (params.page.0.in_direction(params.order.direction()), params.query());
    let found = caller.run(move |services, principal| match &wanted {
        Some(wanted) => contracts::search_contracts(services, principal, wanted, page),
        None => Ok(Page::empty()),
    });
    Ok(query.answer::<_, ContractJson>(page, &found.await?))
}

pub(crate) async fn current_invoices(caller: Caller, path: Path<String>) -> Answer<Vec<DocumentJson>> {
    let contract_ref = in_path(ContractRef::parse, &path, ResourceKind::Contract)?;
    let found = caller.run(move |services, principal| contracts::current_invoices(services, principal, contract_ref)).await?;
    Ok(Json(found.iter().map(DocumentJson::from).collect()))
}

pub(crate) async fn next_invoices(caller: Caller, path: Path<String>) -> Answer<Vec<DocumentJson>> {
    let contract_ref = in_path(ContractRef::parse, &path, ResourceKind::Contract)?;
    let found = caller.run(move |services, principal| contracts::next_invoices(services, principal, contract_ref)).await?;
    Ok(Json(found.iter().map(DocumentJson::from).collect()))
}
