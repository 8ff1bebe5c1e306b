//! Handlers for contracts and their current and next documents.

use billing_application::Cx;
use billing_application::contracts::{self, ContractView};
use billing_application::error::{ResourceKind, UseCaseResult};
use billing_domain::page::Page;
use billing_domain::refs::ContractRef;

use crate::call::{Call, Reply};
use billing_api::dto::contract_changes::{
    AmendedContractJson, AmendmentOptions, AmendmentOutcome, ContractCancelBody, ContractQuantityBody, ContractResumeBody,
};
use billing_api::dto::contract_view::{ContractCreatedJson, ContractJson, CreatedContract};
use billing_api::dto::contracts::{ContractBody, ContractEditBody};
use billing_api::dto::documents::DocumentJson;
use billing_api::query::Paged;
use billing_api::query::lists::{ContractParams, ContractSearchParams};

pub(crate) async fn create_contract(call: Call) -> Reply {
    let ContractBody { request } = call.body().await?;
    call.write::<ContractCreatedJson, _>(move |cx| {
        let ContractView { contract, .. } = contracts::create_contract(cx, &request)?;
        Ok(CreatedContract { contract_ref: contract.contract_ref, warnings: cx.warnings().to_vec() })
    })
    .await
}

pub(crate) async fn edit_contract(call: Call) -> Reply {
    let contract_ref = call.reference(ContractRef::parse, ResourceKind::Contract)?;
    let wanted: ContractEditBody = call.body().await?;
    let (edit, options) = (wanted.edit(), wanted.options);
    amend(call, options, move |cx, allow_backdated| {
        contracts::edit_contract(cx, contract_ref, wanted.customer_ref.as_ref(), &edit, allow_backdated)
    })
    .await
}

pub(crate) async fn cancel_contract(call: Call) -> Reply {
    let contract_ref = call.reference(ContractRef::parse, ResourceKind::Contract)?;
    let wanted: ContractCancelBody = call.body().await?;
    let last_day = wanted.ends();
    amend(call, wanted.options, move |cx, allow_backdated| {
        contracts::cancel_contract(cx, contract_ref, last_day, allow_backdated)
    })
    .await
}

pub(crate) async fn resume_contract(call: Call) -> Reply {
    let contract_ref = call.reference(ContractRef::parse, ResourceKind::Contract)?;
    let ContractResumeBody { options } = call.body().await?;
    amend(call, options, move |cx, allow_backdated| contracts::resume_contract(cx, contract_ref, allow_backdated)).await
}

pub(crate) async fn change_quantity(call: Call) -> Reply {
    let contract_ref = call.reference(ContractRef::parse, ResourceKind::Contract)?;
    let ContractQuantityBody { change, options } = call.body().await?;
    amend(call, options, move |cx, allow_backdated| contracts::change_quantity(cx, contract_ref, &change, allow_backdated)).await
}

/// Amends a contract, or with `dry_run` returns the effects of the amendment.
async fn amend(
    call: Call,
    AmendmentOptions { dry_run, allow_backdated }: AmendmentOptions,
    mut work: impl FnMut(&mut Cx<'_>, bool) -> UseCaseResult<ContractView> + Send + 'static,
) -> Reply {
    call.write::<AmendedContractJson, _>(move |cx| {
        if dry_run {
            let effects = cx.dry_run(&mut |cx| work(cx, allow_backdated).map(drop))?;
            return Ok(AmendmentOutcome::DryRun(Box::new(effects)));
        }
        Ok(AmendmentOutcome::Done(Box::new(work(cx, allow_backdated)?)))
    })
    .await
}

pub(crate) async fn get_contract(call: Call) -> Reply {
    let contract_ref = call.reference(ContractRef::parse, ResourceKind::Contract)?;
    call.read::<ContractJson, _>(move |cx| contracts::get_contract(cx, contract_ref)).await
}

pub(crate) async fn list_contracts(call: Call) -> Reply {
    let ContractParams { customer_ref, page: Paged(page) } = call.query.read()?;
    call.list::<ContractJson, _>(page, move |cx| match &customer_ref {
        Some(customer_ref) => contracts::list_contracts(cx, customer_ref, page),
        None => Ok(Page::empty()),
    })
    .await
}

pub(crate) async fn search_contracts(call: Call) -> Reply {
    let params: ContractSearchParams = call.query.read()?;
    let (page, wanted) = (params.page.0.in_direction(params.order.direction()), params.query());
    call.list_updated::<ContractJson, _>(page, move |cx| match &wanted {
        Some(wanted) => contracts::search_contracts(cx, wanted, page),
        None => Ok(Page::empty()),
    })
    .await
}

pub(crate) async fn current_invoices(call: Call) -> Reply {
    let contract_ref = call.reference(ContractRef::parse, ResourceKind::Contract)?;
    call.read_all::<DocumentJson, _>(move |cx| contracts::current_invoices(cx, contract_ref)).await
}

pub(crate) async fn next_invoices(call: Call) -> Reply {
    let contract_ref = call.reference(ContractRef::parse, ResourceKind::Contract)?;
    call.read_all::<DocumentJson, _>(move |cx| contracts::next_invoices(cx, contract_ref)).await
}
