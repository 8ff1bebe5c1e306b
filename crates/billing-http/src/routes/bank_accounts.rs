//! Bank accounts that customers pay to.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::catalog;
use billing_application::error::Thing;
use billing_domain::refs::BankAccountRef;

use super::{Answer, OnceAnswer, in_path};
use crate::body::Body;
use crate::caller::Caller;
use crate::dto::bank_accounts::{BankAccountBody, BankAccountEditBody, BankAccountJson};
use crate::dto::declare::read;
use crate::problem::Problem;
use crate::query::{DEFAULT_PAGE_SIZE, Paged, Query};

pub(crate) async fn create_bank_account(caller: Caller, Body(body): Body) -> OnceAnswer {
    let new: BankAccountBody = read(&body)?;
    let made = caller.once(Some(&body)).answer::<BankAccountJson, _>(move |services, principal| {
        catalog::create_bank_account(services, principal, new.billing_account_id.clone(), new.profile.clone())
    });
    made.await
}

pub(crate) async fn edit_bank_account(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let reference = in_path(BankAccountRef::parse, &path, Thing::BankAccount)?;
    let changes = BankAccountEditBody::read(&body, &reference)?;
    let edited = caller.once(Some(&body)).answer::<BankAccountJson, _>(move |services, principal| {
        catalog::edit_bank_account(services, principal, &reference, &changes)
    });
    edited.await
}

pub(crate) async fn get_bank_account(caller: Caller, path: Path<String>) -> Answer<BankAccountJson> {
    let reference = in_path(BankAccountRef::parse, &path, Thing::BankAccount)?;
    let found = caller.run(move |services, principal| catalog::get_bank_account(services, principal, &reference)).await?;
    Ok(Json(BankAccountJson::from(&found)))
}

pub(crate) async fn list_bank_accounts(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let Paged(page) = query.read::<Paged<DEFAULT_PAGE_SIZE>>()?;
    let found = caller.run(move |services, principal| catalog::list_bank_accounts(services, principal, page)).await?;
    Ok(query.answer::<_, BankAccountJson>(page, &found))
}
