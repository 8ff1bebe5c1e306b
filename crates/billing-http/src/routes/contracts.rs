//! Contracts, and what they bill now and next.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::contracts;
use billing_application::error::Thing;
use billing_domain::page::Page;
use billing_domain::refs::ContractRef;

use super::{Answer, Caller, OnceAnswer, in_path};
use crate::body::{Body, OptionalBody};
use crate::dto::contract_changes::{AmendedContractJson, ContractCancelBody, ContractQuantityBody, ContractResumeBody};
use crate::dto::contract_view::{ContractCreatedJson, ContractJson};
use crate::dto::contracts::{ContractBody, ContractEditBody};
use crate::dto::documents::DocumentJson;
use crate::problem::Problem;
use crate::query::Query;

/// Makes a contract.
#[utoipa::path(post, path = "/api/contracts/", tag = "contracts", request_body = ContractBody,
    responses((status = 200, description = "The contract is made", body = ContractCreatedJson)))]
pub(crate) async fn create_contract(caller: Caller, Body(body): Body) -> OnceAnswer {
    let request = ContractBody::read(&body)?;
    let made = caller
        .once(Some(&body))
        .answer::<ContractCreatedJson, _>(move |services, principal| contracts::create_contract(services, principal, &request));
    made.await
}

/// Changes a contract, from a day, the current period or the next.
#[utoipa::path(post, path = "/api/contracts/edit/{contract_ref}", tag = "contracts", request_body = ContractEditBody,
    params(("contract_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The contract's newest version; of a dry run the documents concerned",
        body = AmendedContractJson)))]
pub(crate) async fn edit_contract(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let contract_ref = in_path(ContractRef::parse, &path, Thing::Contract)?;
    let (customer_ref, edit, options) = ContractEditBody::read(&body)?;
    let edited = caller.once(Some(&body)).answer::<AmendedContractJson, _>(move |services, principal| {
        contracts::edit_contract(services, principal, contract_ref, customer_ref.as_ref(), &edit, options)
    });
    edited.await
}

/// Cancels a contract, at the end of its current period, today or on a day.
#[utoipa::path(post, path = "/api/contracts/cancel/{contract_ref}", tag = "contracts", request_body = Option<ContractCancelBody>,
    params(("contract_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The contract's newest version; of a dry run the documents concerned",
        body = AmendedContractJson)))]
pub(crate) async fn cancel_contract(caller: Caller, path: Path<String>, OptionalBody(body): OptionalBody) -> OnceAnswer {
    let contract_ref = in_path(ContractRef::parse, &path, Thing::Contract)?;
    let (last_day, options) = ContractCancelBody::read(body.as_ref())?;
    let cancelled = caller.once(body.as_ref()).answer::<AmendedContractJson, _>(move |services, principal| {
        contracts::cancel_contract(services, principal, contract_ref, last_day, options)
    });
    cancelled.await
}

/// Takes the cancel of a contract back, as long as its last day isn't over.
#[utoipa::path(post, path = "/api/contracts/resume/{contract_ref}", tag = "contracts", request_body = Option<ContractResumeBody>,
    params(("contract_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The contract's newest version; of a dry run the documents concerned",
        body = AmendedContractJson)))]
pub(crate) async fn resume_contract(caller: Caller, path: Path<String>, OptionalBody(body): OptionalBody) -> OnceAnswer {
    let contract_ref = in_path(ContractRef::parse, &path, Thing::Contract)?;
    let options = ContractResumeBody::read(body.as_ref())?;
    let resumed = caller.once(body.as_ref()).answer::<AmendedContractJson, _>(move |services, principal| {
        contracts::resume_contract(services, principal, contract_ref, options)
    });
    resumed.await
}

/// Agrees on a quantity of a fixed line item, from a day on.
#[utoipa::path(post, path = "/api/contracts/quantities/{contract_ref}", tag = "contracts", request_body = ContractQuantityBody,
    params(("contract_ref" = String, Path, description = "The contract's reference")),
    responses((status = 200, description = "The contract's newest version; of a dry run the documents concerned",
        body = AmendedContractJson)))]
pub(crate) async fn change_quantity(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let contract_ref = in_path(ContractRef::parse, &path, Thing::Contract)?;
    let (change, options) = ContractQuantityBody::read(&body)?;
    let changed = caller.once(Some(&body)).answer::<AmendedContractJson, _>(move |services, principal| {
        contracts::change_quantity(services, principal, contract_ref, &change, options)
    });
    changed.await
}

/// Reads a contract.
#[utoipa::path(get, path = "/api/contracts/{contract_ref}", tag = "contracts",
    params(("contract_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The contract", body = ContractJson)))]
pub(crate) async fn get_contract(caller: Caller, path: Path<String>) -> Answer<ContractJson> {
    let contract_ref = in_path(ContractRef::parse, &path, Thing::Contract)?;
    let found = caller.run(move |services, principal| contracts::get_contract(services, principal, contract_ref)).await?;
    Ok(Json(ContractJson::from(&found)))
}

/// Lists a customer's contracts by creation.
#[utoipa::path(get, path = "/api/contracts/filter", tag = "contracts", params(crate::openapi::ContractParams),
    responses((status = 200, description = "A page of the customer's contracts", body = Vec<ContractJson>)))]
pub(crate) async fn list_contracts(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let (customer_ref, page) = query.contracts()?;
    let found = caller.run(move |services, principal| match &customer_ref {
        Some(customer_ref) => contracts::list_contracts(services, principal, customer_ref, page),
        None => Ok(Page::empty()),
    });
    Ok(query.answer::<_, ContractJson>(page, &found.await?))
}

/// Finds contracts of all customers by creation.
#[utoipa::path(get, path = "/api/contracts/search", tag = "contracts",
    params(crate::openapi::ContractSearchParams, crate::openapi::PageParams),
    responses((status = 200, description = "A page of contracts", body = Vec<ContractJson>)))]
pub(crate) async fn search_contracts(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let (wanted, page) = query.contract_search()?;
    let found = caller.run(move |services, principal| match &wanted {
        Some(wanted) => contracts::search_contracts(services, principal, wanted, page),
        None => Ok(Page::empty()),
    });
    Ok(query.answer::<_, ContractJson>(page, &found.await?))
}

/// What a contract bills in its ongoing period.
#[utoipa::path(get, path = "/api/contracts/invoices/current/{contract_ref}", tag = "contracts",
    params(("contract_ref" = String, Path, description = "The contract's reference")),
    responses((status = 200, description = "The documents of the ongoing billing period", body = Vec<DocumentJson>)))]
pub(crate) async fn current_invoices(caller: Caller, path: Path<String>) -> Answer<Vec<DocumentJson>> {
    let contract_ref = in_path(ContractRef::parse, &path, Thing::Contract)?;
    let found = caller.run(move |services, principal| contracts::current_invoices(services, principal, contract_ref)).await?;
    Ok(Json(found.iter().map(DocumentJson::from).collect()))
}

/// What a contract will bill in its next period.
#[utoipa::path(get, path = "/api/contracts/invoices/next/{contract_ref}", tag = "contracts",
    params(("contract_ref" = String, Path, description = "The contract's reference")),
    responses((status = 200, description = "The documents of the next billing period", body = Vec<DocumentJson>)))]
pub(crate) async fn next_invoices(caller: Caller, path: Path<String>) -> Answer<Vec<DocumentJson>> {
    let contract_ref = in_path(ContractRef::parse, &path, Thing::Contract)?;
    let found = caller.run(move |services, principal| contracts::next_invoices(services, principal, contract_ref)).await?;
    Ok(Json(found.iter().map(DocumentJson::from).collect()))
}
