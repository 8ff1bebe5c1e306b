//! Contracts: creation, amendments, lists, and the documents of the current and next period.

mod amend;
mod create;
mod invoices;

pub use amend::{cancel_contract, change_quantity, edit_contract, resume_contract};
pub use create::{ContractRequest, create_contract};
pub(crate) use invoices::planned_invoices;
pub use invoices::{current_invoices, next_invoices};

use std::borrow::Borrow;

use billing_domain::audit::AuditedKind;
use billing_domain::calendar::{Date, Timestamp};
use billing_domain::contract::{Contract, ContractState};
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::Entity;
use billing_domain::ports::{ContractFilter, ContractSortKey, LocalDates, Tx};
use billing_domain::refs::{ContractRef, CustomerRef, OrganizationId};
use billing_domain::text::OneLine;
use billing_domain::warning::Warning;

use crate::book_repository::{corrupt, distinct};
use crate::carry_out::Cx;
use crate::catalog::{all_entities, narrow_to_customer};
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};
use crate::names::{NameRequest, read_names};

/// A contract and its state today.
#[derive(Clone, Debug)]
pub struct ContractView {
    /// The contract.
    pub contract: Contract,
    /// The state as of `today`.
    pub state: ContractState,
    /// Today's service date in the time zone of the entity of the first product.
    pub today: Date,
    /// The customer's name, if the view was read for a response.
    pub customer_name: Option<OneLine>,
    /// Possible mistakes in the change that the view responds to.
    pub warnings: Vec<Warning>,
}

/// Returns a contract.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the contract does not exist.
pub fn get_contract(cx: &mut Cx<'_>, contract_ref: ContractRef) -> UseCaseResult<ContractView> {
    let contract = cx.tx.contract(cx.organization, contract_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::Contract))?;
    let page = Page { items: vec![contract], total: 1 };
    let views = view_all(cx.tx, cx.organization, page, cx.now)?;
    views.items.into_iter().next().ok_or(UseCaseError::Unknown(ResourceKind::Contract))
}

/// Returns a page of a customer's contracts, ordered by creation. The page is empty if the customer does not exist.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the contracts cannot be read.
pub fn list_contracts(cx: &mut Cx<'_>, customer_ref: &CustomerRef, page: PageRequest) -> UseCaseResult<Page<ContractView>> {
    let customers = cx.tx.customers_by_refs(cx.organization, std::slice::from_ref(customer_ref))?;
    let Some(customer) = customers.first() else { return Ok(Page::empty()) };
    let contracts = cx.tx.contracts_of_customer(cx.organization, customer.id, page)?;
    view_all(cx.tx, cx.organization, contracts, cx.now)
}

/// The filter and order of a search for contracts.
#[derive(Clone, Debug, Default)]
pub struct ContractQuery {
    /// Only contracts of this customer.
    pub customer_ref: Option<CustomerRef>,
    /// Only contracts in this state today.
    pub state: Option<ContractState>,
    /// The other conditions.
    pub filter: ContractFilter,
    /// The sort key.
    pub by: ContractSortKey,
}

/// Returns a page of the contracts that match a query. The page is empty if the customer does not exist.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the contracts cannot be read.
pub fn search_contracts(cx: &mut Cx<'_>, query: &ContractQuery, page: PageRequest) -> UseCaseResult<Page<ContractView>> {
    let mut filter = query.filter.clone();
    if !narrow_to_customer(cx.tx, cx.organization, query.customer_ref.as_ref(), &mut filter.customer_id)? {
        return Ok(Page::empty());
    }
    if let Some(state) = query.state {
        filter.state = Some((state, LocalDates::at(cx.now, &all_entities(cx.tx, cx.organization)?)));
    }
    let contracts = cx.tx.contracts(cx.organization, &filter, query.by, page)?;
    view_all(cx.tx, cx.organization, contracts, cx.now)
}

fn view_all(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    contracts: Page<Contract>,
    now: Timestamp,
) -> UseCaseResult<Page<ContractView>> {
    let refs = distinct(contracts.items.iter().filter_map(Contract::stating_entity).cloned());
    let entities = tx.entities_by_refs(organization, &refs)?;
    let mut request = NameRequest::default();
    contracts.items.iter().for_each(|contract| request.add(AuditedKind::Customer, &contract.customer_ref));
    let names = read_names(tx, organization, &request)?;
    contracts.try_map(|contract| {
        let customer = names.of(AuditedKind::Customer, &contract.customer_ref);
        let customer_name = customer.and_then(|customer| customer.customer_name.clone());
        Ok(ContractView { customer_name, ..view(contract, &entities, now)? })
    })
}

fn view(contract: Contract, entities: &[impl Borrow<Entity>], now: Timestamp) -> UseCaseResult<ContractView> {
    let zone = match contract.stating_entity() {
        None => billing_domain::calendar::TimeZone::UTC,
        Some(entity_ref) => {
            let entity = entities.iter().map(Borrow::borrow).find(|entity| entity.entity_ref == *entity_ref);
            entity.ok_or_else(|| corrupt("an entity", entity_ref, "is not there"))?.profile.time_zone
        }
    };
    let (state, today) = (contract.state(zone, now), zone.service_date(now));
    Ok(ContractView { contract, state, today, customer_name: None, warnings: Vec::new() })
}
