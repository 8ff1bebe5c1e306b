//! Bank accounts that customers pay to.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::catalog;
use billing_application::error::Thing;
use billing_domain::refs::BankAccountRef;

use super::{Answer, Caller, OnceAnswer, in_path};
use crate::body::Body;
use crate::dto::bank_accounts::{BankAccountBody, BankAccountEditBody, BankAccountJson};
use crate::problem::Problem;
use crate::query::{DEFAULT_PAGE_SIZE, Query};

/// Makes a bank account.
#[utoipa::path(post, path = "/api/bank_accounts/", tag = "catalog", request_body = BankAccountBody,
    responses((status = 200, description = "The bank account that was made", body = BankAccountJson)))]
pub(crate) async fn create_bank_account(caller: Caller, Body(body): Body) -> OnceAnswer {
    let (reference, wanted) = BankAccountBody::read_new(&body)?;
    let made = caller.once(Some(&body)).answer::<BankAccountJson, _>(move |services, principal| {
        catalog::create_bank_account(services, principal, reference.clone(), wanted.clone())
    });
    made.await
}

/// Changes a bank account: fields left out are kept, null clears. Issued documents keep what they were issued with.
#[utoipa::path(post, path = "/api/bank_accounts/edit/{billing_account_id}", tag = "catalog", request_body = BankAccountEditBody,
    params(("billing_account_id" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The changed bank account", body = BankAccountJson)))]
pub(crate) async fn edit_bank_account(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let reference = in_path(BankAccountRef::parse, &path, Thing::BankAccount)?;
    let edited = caller.once(Some(&body)).answer::<BankAccountJson, _>(move |services, principal| {
        let edit = |present: &_| BankAccountBody::read_edit(&body, &reference, present);
        catalog::edit_bank_account(services, principal, &reference, &edit)
    });
    edited.await
}

/// Reads a bank account.
#[utoipa::path(get, path = "/api/bank_accounts/{billing_account_id}", tag = "catalog",
    params(("billing_account_id" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The bank account", body = BankAccountJson)))]
pub(crate) async fn get_bank_account(caller: Caller, path: Path<String>) -> Answer<BankAccountJson> {
    let reference = in_path(BankAccountRef::parse, &path, Thing::BankAccount)?;
    let found = caller.run(move |services, principal| catalog::get_bank_account(services, principal, &reference)).await?;
    Ok(Json(BankAccountJson::from(&found)))
}

/// Lists bank accounts by creation.
#[utoipa::path(get, path = "/api/bank_accounts/filter", tag = "catalog", params(crate::openapi::PageParams),
    responses((status = 200, description = "A page of bank accounts", body = Vec<BankAccountJson>)))]
pub(crate) async fn list_bank_accounts(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let page = query.page(DEFAULT_PAGE_SIZE)?;
    let found = caller.run(move |services, principal| catalog::list_bank_accounts(services, principal, page)).await?;
    Ok(query.answer::<_, BankAccountJson>(page, &found))
}
