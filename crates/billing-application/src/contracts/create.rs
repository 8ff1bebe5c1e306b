//! Making a contract: every product's terms are agreed on and frozen (billing rules 7).

use billing_domain::access::Principal;
use billing_domain::calendar::Timestamp;
use billing_domain::catalog::{Charge, Pricing, UsageProduct};
use billing_domain::contract::terms::{PaymentTime, ProductTerms, RequestedProduct};
use billing_domain::contract::{Contract, ContractProduct, check_products};
use billing_domain::party::{Customer, NetTerms};
use billing_domain::ports::{Access, Tx, transact};
use billing_domain::refs::{ContractRef, CustomerRef, EntityRef, OrganizationId, PricingRef, ProductNo, UsageProductRef};
use billing_domain::text::Line;
use billing_domain::violation::Violations;

use super::{ContractView, view};
use crate::Services;
use crate::error::{Thing, UseCaseError, UseCaseResult, unknown_reference};
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
struct Catalog {
    customer: Customer,
    default_entity: Option<EntityRef>,
    pricings: Vec<Pricing>,
    usage_products: Vec<UsageProduct>,
    entities: Vec<EntityRef>,
}

/// Makes a contract.
///
/// # Errors
/// [`UseCaseError::Invalid`] with every violation of every product.
pub fn create_contract(services: &Services, principal: &Principal, request: &ContractRequest) -> UseCaseResult<ContractView> {
    let now = services.now();
    let organization = principal.organization;
    transact(&*services.store, Access::Write, |tx| {
        let catalog = look_up(tx, organization, request)?;
        let terms = agree(request, &catalog)?;
        check_products(&terms)?;
        refuse_unsupported(&terms, &catalog.customer)?;
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
        let next_due_at = account.next_due_after(Timestamp::MIN)?;
        tx.insert_contract(organization, &account.contract, next_due_at)?;
        view(account.contract, &account.entities, now)
    })
}

fn look_up(tx: &mut dyn Tx, organization: OrganizationId, request: &ContractRequest) -> UseCaseResult<Catalog> {
    let customers = tx.customers_by_refs(organization, std::slice::from_ref(&request.customer_ref))?;
    let pricing_refs: Vec<PricingRef> = request.products.iter().map(|product| product.pricing_ref.clone()).collect();
    let pricings = tx.pricings_by_refs(organization, &pricing_refs)?;
    let stated: Vec<EntityRef> = request.products.iter().filter_map(|product| product.entity_ref.clone()).collect();
    let entities = tx.entities_by_refs(organization, &stated)?;
    let mut found = Violations::none();
    if customers.is_empty() {
        found.extend_below(&[], unknown_reference(&["customer_ref"], Thing::Customer));
    }
    for (i, product) in request.products.iter().enumerate() {
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
    Ok(Catalog {
        customer,
        default_entity: tx.organization(organization)?.and_then(|organization| organization.default_entity),
        usage_products: tx.usage_products_by_refs(organization, &metered)?,
        entities: entities.into_iter().map(|entity| entity.entity_ref).collect(),
        pricings,
    })
}

fn agree(request: &ContractRequest, catalog: &Catalog) -> UseCaseResult<Vec<ProductTerms>> {
    let mut found = Violations::none();
    let mut agreed = Vec::new();
    for (i, product) in request.products.iter().enumerate() {
        let index = i.to_string();
        let stated = product.entity_ref.clone().filter(|stated| catalog.entities.contains(stated));
        let entity_ref =
            stated.or_else(|| catalog.customer.profile.entity_ref.clone()).or_else(|| catalog.default_entity.clone());
        let Some(entity_ref) = entity_ref else {
            let detail = "must be given, because neither the customer nor the organization has a default entity";
            found.add(&["products", &index, "entity_ref"], "entity_required", detail);
            continue;
        };
        let pricing = catalog.pricings.iter().find(|pricing| pricing.pricing_ref == product.pricing_ref);
        let Some(pricing) = pricing else { continue };
        match ProductTerms::agree(product.clone(), pricing, &catalog.usage_products, entity_ref) {
            Ok(terms) => agreed.push(terms),
            Err(violations) => found.extend_below(&["products", &index], violations),
        }
    }
    Ok(found.or(agreed)?)
}

/// Rules this release doesn't bill by yet.
fn refuse_unsupported(terms: &[ProductTerms], customer: &Customer) -> UseCaseResult<()> {
    let due_upon_usage = |terms: &ProductTerms| terms.net_terms.or(customer.profile.net_terms) == Some(NetTerms::DueUponUsage);
    for terms in terms {
        match terms.payment_time {
            PaymentTime::AfterUse => {}
            PaymentTime::BeforeUse => return Err(UseCaseError::NotSupportedYet("payment_time BEFORE_USE")),
            PaymentTime::DuringUse => return Err(UseCaseError::NotSupportedYet("payment_time DURING_USE")),
        }
        if due_upon_usage(terms) {
            return Err(UseCaseError::NotSupportedYet("net_terms DUE_UPON_USAGE"));
        }
    }
    Ok(())
}
