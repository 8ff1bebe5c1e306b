//! Making a contract: every product's terms are agreed on and frozen (billing rules 7).

use billing_domain::access::Principal;
use billing_domain::calendar::Timestamp;
use billing_domain::catalog::{Charge, Pricing, UsageProduct};
use billing_domain::contract::terms::{ProductTerms, RequestedProduct};
use billing_domain::contract::{Contract, ContractProduct, check_products};
use billing_domain::party::Customer;
use billing_domain::ports::{Access, Tx, transact};
use billing_domain::refs::{ContractRef, CustomerRef, EntityRef, OrganizationId, PricingRef, ProductNo, UsageProductRef};
use billing_domain::text::Line;
use billing_domain::violation::Violations;

use super::{ContractView, view};
use crate::Services;
use crate::error::{Thing, UseCaseResult, unknown_reference};
use crate::ledger::Account;

/// What a new contract is asked to be.
#[derive(Clone, Debug)]
pub struct ContractRequest {
    /// The customer.
    pub customer_ref: CustomerRef,
    /// Purchase order number.
    pub po_number: Option<Line>,
    /// Products in their order.
    pub products: Vec<RequestedProduct>,
}

/// What the catalog says about the references of a request.
pub(super) struct Catalog {
    pub(super) customer: Customer,
    default_entity: Option<EntityRef>,
    pricings: Vec<Pricing>,
    usage_products: Vec<UsageProduct>,
    entities: Vec<EntityRef>,
}

/// Makes a contract.
///
/// # Errors
/// [`Invalid`](crate::error::UseCaseError::Invalid) with every violation of every product.
pub fn create_contract(services: &Services, principal: &Principal, request: &ContractRequest) -> UseCaseResult<ContractView> {
    let now = services.now();
    let organization = principal.organization;
    transact(&*services.store, Access::Write, |tx| {
        let catalog = Catalog::look_up(tx, organization, &request.customer_ref, &request.products)?;
        let terms = catalog.agree(&request.products)?;
        check_products(&terms)?;
        let products = terms.into_iter().zip(0u16..).map(|(terms, no)| ContractProduct::new(ProductNo(no), terms));
        let contract = Contract {
            contract_ref: ContractRef::from_uuid(services.ids.new_id()),
            number: tx.next_contract_number(organization)?,
            customer_id: catalog.customer.id,
            customer_ref: catalog.customer.customer_ref.clone(),
            po_number: request.po_number.clone(),
            version: 1,
            created_at: now,
            cancelled_at: None,
            products: products.collect(),
        };
        let account = Account::of(tx, organization, contract, catalog.customer)?;
        // From the beginning of time: a contract may start in the past and catch up.
        let next_due_at = account.next_due_after(tx, Timestamp::MIN)?;
        tx.insert_contract(organization, &account.contract, next_due_at)?;
        view(account.contract, &account.entities, now)
    })
}

impl Catalog {
    /// Looks up every reference of a request.
    ///
    /// # Errors
    /// [`Invalid`](crate::error::UseCaseError::Invalid) with every reference that names nothing.
    pub(super) fn look_up(
        tx: &mut dyn Tx,
        organization: OrganizationId,
        customer_ref: &CustomerRef,
        products: &[RequestedProduct],
    ) -> UseCaseResult<Self> {
        let customers = tx.customers_by_refs(organization, std::slice::from_ref(customer_ref))?;
        let pricing_refs: Vec<PricingRef> = products.iter().map(|product| product.pricing_ref.clone()).collect();
        let pricings = tx.pricings_by_refs(organization, &pricing_refs)?;
        let stated: Vec<EntityRef> = products.iter().filter_map(|product| product.entity_ref.clone()).collect();
        let entities = tx.entities_by_refs(organization, &stated)?;
        let mut found = Violations::none();
        if customers.is_empty() {
            found.extend_below(&[], unknown_reference(&["customer_ref"], Thing::Customer));
        }
        for (i, product) in products.iter().enumerate() {
            let index = i.to_string();
            if !pricings.iter().any(|pricing| pricing.pricing_ref == product.pricing_ref) {
                found.extend_below(&[], unknown_reference(&["products", &index, "product_pricing_ref"], Thing::Pricing));
            }
            if let Some(stated) = &product.entity_ref
                && !entities.iter().any(|entity| entity.entity_ref == *stated)
            {
                found.extend_below(&[], unknown_reference(&["products", &index, "entity_ref"], Thing::Entity));
            }
        }
        let Some(customer) = customers.into_iter().next().filter(|_| found.is_empty()) else {
            return Err(found.into());
        };
        let metered: Vec<UsageProductRef> = pricings
            .iter()
            .flat_map(|pricing| &pricing.content.line_items)
            .filter_map(|item| match &item.charge {
                Charge::Usage(charge) => Some(charge.usage_product_ref.clone()),
                Charge::Fixed { .. } => None,
            })
            .collect();
        Ok(Self {
            customer,
            default_entity: tx.organization(organization)?.and_then(|organization| organization.default_entity),
            usage_products: tx.usage_products_by_refs(organization, &metered)?,
            entities: entities.into_iter().map(|entity| entity.entity_ref).collect(),
            pricings,
        })
    }

    /// Agrees on the terms of every product.
    ///
    /// # Errors
    /// [`Invalid`](crate::error::UseCaseError::Invalid) with every violation of every product.
    pub(super) fn agree(&self, products: &[RequestedProduct]) -> UseCaseResult<Vec<ProductTerms>> {
        let mut found = Violations::none();
        let mut agreed = Vec::new();
        for (i, product) in products.iter().enumerate() {
            let index = i.to_string();
            let stated = product.entity_ref.clone().filter(|stated| self.entities.contains(stated));
            let entity_ref = stated.or_else(|| self.customer.profile.entity_ref.clone()).or_else(|| self.default_entity.clone());
            let Some(entity_ref) = entity_ref else {
                let detail = "must be given, because neither the customer nor the organization has a default entity";
                found.add(&["products", &index, "entity_ref"], "entity_required", detail);
                continue;
            };
            let pricing = self.pricings.iter().find(|pricing| pricing.pricing_ref == product.pricing_ref);
            let Some(pricing) = pricing else { continue };
            match ProductTerms::agree(product.clone(), pricing, &self.usage_products, entity_ref) {
                Ok(terms) => agreed.push(terms),
                Err(violations) => found.extend_below(&["products", &index], violations),
            }
        }
        Ok(found.or(agreed)?)
    }
}
