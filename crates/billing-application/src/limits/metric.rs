//! Finds the number that a request for a limit means.

use billing_domain::contract::terms::ProductTerms;
use billing_domain::contract::{Contract, ContractProduct};
use billing_domain::limit::{LimitMetric, MetricKind};
use billing_domain::party::Customer;
use billing_domain::receivables::AccountKey;
use billing_domain::refusal::Refusal;
use billing_domain::violation::Violations;

use super::LimitRequest;
use crate::carry_out::Cx;
use crate::catalog::entity_of_customer;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult, unknown_reference};

/// The number that a limit is to watch.
pub(super) struct FoundMetric {
    pub(super) metric: LimitMetric,
    pub(super) customer: Customer,
    /// An account of the customer, at whose row the transactions of the customer meet.
    pub(super) account: AccountKey,
}

/// Finds the number of a request.
///
/// # Errors
/// Returns [`UseCaseError::Invalid`] for a field that the metric needs or does not have, an unknown reference, or a contract product
/// that is not the only one.
pub(super) fn find_metric(cx: &mut Cx<'_>, request: &LimitRequest) -> UseCaseResult<FoundMetric> {
    require_fields(request)?;
    if request.metric.is_of_account()
        && let (Some(customer_ref), Some(currency)) = (&request.customer_ref, request.currency)
    {
        let customer = cx.tx.customers_by_refs(cx.organization, std::slice::from_ref(customer_ref))?.pop();
        let customer = customer.ok_or_else(|| unknown_reference(&["customer_ref"], ResourceKind::Customer))?;
        let entity_ref = entity_of_customer(cx, &customer, request.entity_ref.as_ref())?.entity_ref;
        let account = AccountKey { customer_id: customer.id, entity_ref: entity_ref.clone(), currency };
        let metric = if request.metric.falls() {
            LimitMetric::Prepaid { entity_ref, currency }
        } else {
            LimitMetric::Owed { entity_ref, currency }
        };
        return Ok(FoundMetric { metric, customer, account });
    }
    let contract_ref = request.contract_ref.ok_or(UseCaseError::InvariantViolation("a limit without a contract"))?;
    let found = cx.tx.agreement_of(cx.organization, contract_ref)?;
    let found = found.ok_or_else(|| unknown_reference(&["contract_ref"], ResourceKind::Contract))?;
    if request.customer_ref.as_ref().is_some_and(|customer_ref| *customer_ref != found.customer.customer_ref) {
        let detail = "must be the customer of the contract, or omitted";
        return Err(Refusal::field(&["customer_ref"], "not_allowed", detail).into());
    }
    let (product, terms) = find_product(&found.contract, request)?;
    let (product_no, currency) = (product.no, terms.pricing.currency);
    let account = AccountKey { customer_id: found.customer.id, entity_ref: terms.entity_ref.clone(), currency };
    let metric = match &request.usage_product_ref {
        None => LimitMetric::Spend { contract_ref, product_no, currency },
        Some(usage_product_ref) => {
            require_countable(terms, request)?;
            let (usage_product_ref, line_item_id) = (usage_product_ref.clone(), request.line_item_id.clone());
            LimitMetric::Quantity { contract_ref, product_no, usage_product_ref, line_item_id }
        }
    };
    Ok(FoundMetric { metric, customer: found.customer, account })
}

/// Checks that the request has the fields of its metric, and no others.
fn require_fields(request: &LimitRequest) -> Result<(), Refusal> {
    let (owed, product) = (request.metric.is_of_account(), !request.metric.is_of_account());
    let quantity = request.metric == MetricKind::Quantity;
    // Each field, whether it is given, whether the metric has it, and whether the metric needs it.
    let fields = [
        ("customer_ref", request.customer_ref.is_some(), true, owed),
        ("entity_ref", request.entity_ref.is_some(), owed, false),
        ("currency", request.currency.is_some(), owed, owed),
        ("contract_ref", request.contract_ref.is_some(), product, product),
        ("product_pricing_ref", request.pricing_ref.is_some(), product, false),
        ("product_no", request.product_no.is_some(), product, false),
        ("usage_product_ref", request.usage_product_ref.is_some(), quantity, quantity),
        ("line_item_id", request.line_item_id.is_some(), quantity, false),
    ];
    let mut found = Violations::none();
    let word = request.metric.word();
    for (field, is_given, is_known, is_needed) in fields {
        if is_needed && !is_given {
            found.add(&[field], "required", format!("must be given with the metric {word}"));
        }
        if is_given && !is_known {
            found.add(&[field], "not_allowed", format!("must be omitted with the metric {word}"));
        }
    }
    Ok(found.or(())?)
}

/// Returns the contract product that a request means.
fn find_product<'c>(contract: &'c Contract, request: &LimitRequest) -> Result<(&'c ContractProduct, &'c ProductTerms), Refusal> {
    let all = || contract.products.iter().filter_map(|product| Some((product, product.newest_terms()?)));
    let is_named = |(product, terms): &(&ContractProduct, &ProductTerms)| {
        request.product_no.is_none_or(|no| product.no == no)
            && request.pricing_ref.as_ref().is_none_or(|pricing_ref| terms.pricing.pricing_ref == *pricing_ref)
    };
    if all().find(is_named).is_none() {
        let field = if request.product_no.is_some() { "product_no" } else { "product_pricing_ref" };
        return Err(Refusal::field(&[field], "unknown_product", "must be of a product of the contract"));
    }
    let meters = |(_, terms): &(&ContractProduct, &ProductTerms)| {
        request.usage_product_ref.as_ref().is_none_or(|usage_product_ref| terms.meters(usage_product_ref))
    };
    let mut meant = all().filter(is_named).filter(meters);
    match (meant.next(), meant.next()) {
        (Some(found), None) => Ok(found),
        (None, _) => {
            let detail = "must be a usage product that a line item of the contract product is priced by";
            Err(Refusal::field(&["usage_product_ref"], "not_metered", detail))
        }
        (Some(_), Some(_)) => {
            let field = if request.pricing_ref.is_some() { "product_no" } else { "product_pricing_ref" };
            Err(Refusal::field(
                &[field],
                "ambiguous_product",
                "must be given, because several products of the contract are meant",
            ))
        }
    }
}

/// Checks that a quantity can be counted, for one line item or for all of a usage product.
fn require_countable(terms: &ProductTerms, request: &LimitRequest) -> Result<(), Refusal> {
    let Some(usage_product_ref) = &request.usage_product_ref else { return Ok(()) };
    match &request.line_item_id {
        Some(id) if !terms.metering(usage_product_ref).any(|(item, _)| item.id == *id) => {
            let detail = "must be a line item of the contract product that is priced by the usage product";
            Err(Refusal::field(&["line_item_id"], "unknown_line_item", detail))
        }
        // The same value can count in several running totals.
        None if terms.unique_by(usage_product_ref).is_some() && terms.metering(usage_product_ref).nth(1).is_some() => {
            let detail = "must be given, because several line items count the distinct values of the usage product";
            Err(Refusal::field(&["line_item_id"], "required", detail))
        }
        _ => Ok(()),
    }
}
