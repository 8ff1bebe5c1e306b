//! Sells credit: contract, issued invoice, payment and grant, in one transaction.

use billing_domain::catalog::{LineItem, LineItemPrice, Pricing};
use billing_domain::contract::quantities::{Quantities, QuantityStep};
use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::{PaymentTime, RequestedLineItem, RequestedProduct};
use billing_domain::ledger::{ContractBook, Entry, issue};
use billing_domain::metadata::Metadata;
use billing_domain::money::Money;
use billing_domain::refs::{ContractRef, DocumentRef};
use billing_domain::refusal::Refusal;
use billing_domain::violation::{Violation, Violations};

use super::grants::create_credit_grant;
use super::{CreditSaleRequest, GrantRequest, SoldCredit};
use crate::book_repository;
use crate::carry_out::Cx;
use crate::catalog::entity_of_customer;
use crate::contracts::{ContractRequest, create_contract};
use crate::documents::record_payment;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult, unknown_reference};
use crate::limits::begin_watch;

/// Sells credit to a customer: a one-time contract of today, its issued invoice, the payment if one is given, and the grant. The
/// balance of the customer pays first, so a payment can leave a surplus, which becomes balance. The invoice takes no credit.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Invalid`] for an unknown reference, invalid values, `needs_fixed_items`, or the errors of [`create_credit_grant`].
/// - The errors of issuing the invoice.
pub fn sell_credit(cx: &mut Cx<'_>, request: &CreditSaleRequest) -> UseCaseResult<SoldCredit> {
    let organization = cx.organization;
    let customer = cx.tx.customers_by_refs(organization, std::slice::from_ref(&request.customer_ref))?.pop();
    let customer = customer.ok_or_else(|| unknown_reference(&["customer_ref"], ResourceKind::Customer))?;
    let pricing = cx.tx.pricings_by_refs(organization, std::slice::from_ref(&request.pricing_ref))?.pop();
    let pricing = pricing.ok_or_else(|| unknown_reference(&["product_pricing_ref"], ResourceKind::Pricing))?;
    require_fixed_items(&pricing)?;
    begin_watch(cx, customer.id)?;
    let entity = entity_of_customer(cx, &customer, request.entity_ref.as_ref())?;
    let today = entity.profile.time_zone.service_date(cx.now);
    let line_items = request.quantity.map(|quantity| {
        let constant = |line_item: &LineItem| {
            let quantities = Quantities::new(vec![QuantityStep { from: today, quantity }])?;
            Ok(RequestedLineItem { quantities: Some(quantities), ..RequestedLineItem::plain(line_item.id.clone()) })
        };
        pricing.content.line_items.iter().map(constant).collect::<Result<Vec<_>, Violations>>()
    });
    let product = RequestedProduct {
        line_items: line_items.transpose()?,
        entity_ref: Some(entity.entity_ref.clone()),
        billing_cycle: BillingCycle::new(CycleUnit::OneTime, 1),
        payment_time: Some(PaymentTime::BeforeUse),
        net_terms: request.net_terms,
        ..RequestedProduct::plain(request.pricing_ref.clone(), today, today)
    };
    let contract = ContractRequest {
        customer_ref: request.customer_ref.clone(),
        po_number: None,
        metadata: Metadata::default(),
        products: vec![product],
        allow_backdated: false,
    };
    let contract_ref = create_contract(cx, &contract).map_err(of_product)?.contract.contract_ref;
    let (document_ref, net) = issue_invoice(cx, contract_ref)?;
    if let Some(payment) = &request.payment {
        record_payment(cx, document_ref, payment, true).map_err(|error| below(error, "payment"))?;
    }
    let grant = GrantRequest {
        customer_ref: request.customer_ref.clone(),
        entity_ref: Some(entity.entity_ref),
        currency: pricing.content.currency,
        amount: request.amount.clone().unwrap_or_else(|| net.to_decimal().to_string()),
        name: request.name.clone(),
        from: None,
        to: request.to,
        contract_ref: request.contract_ref,
        source: Some(document_ref),
    };
    let grant_ref = create_credit_grant(cx, &grant)?.grant.grant_ref;
    let document = cx.tx.documents_by_refs(organization, &[customer.id], &[document_ref])?.pop();
    let document = document.ok_or(UseCaseError::InvariantViolation("an issued invoice that is not there"))?;
    let total = document.lifecycle.issued().map(|issued| issued.content.total);
    let total = total.ok_or(UseCaseError::InvariantViolation("an issued invoice without content"))?;
    Ok(SoldCredit { grant_ref, contract_ref, document_ref, document_number: document.head.number.to_string(), total })
}

/// Usage would be billed when it happens, and a sale is billed at once.
fn require_fixed_items(pricing: &Pricing) -> Result<(), Refusal> {
    let is_fixed = |line_item: &LineItem| matches!(line_item.charge, LineItemPrice::Fixed { .. });
    if pricing.content.line_items.iter().all(is_fixed) {
        return Ok(());
    }
    let detail = "must be a pricing with only fixed line items, because a sale of credit is billed at once";
    Err(Refusal::field(&["product_pricing_ref"], "needs_fixed_items", detail))
}

/// Issues the invoice of a new contract. Returns it with its net amount.
fn issue_invoice(cx: &mut Cx<'_>, contract_ref: ContractRef) -> UseCaseResult<(DocumentRef, Money)> {
    let lost = || UseCaseError::InvariantViolation("a contract that is not there after its creation");
    let mut book = book_repository::lock_book_by_ref(cx, contract_ref)?.ok_or_else(lost)?;
    // Credit must not pay for credit.
    book.clear_credit();
    let mut report = issue::issue_due(&mut book, cx.now, usize::MAX, &mut cx.ids())?;
    if let Some(failure) = report.failed.pop() {
        return Err(failure.refusal.into());
    }
    let entries = book_repository::write(cx, &mut book)?;
    let issued = entries.iter().find_map(|entry| match entry {
        Entry::Issued { document_ref, issued, .. } => Some((*document_ref, issued)),
        _ => None,
    });
    let Some((document_ref, issued)) = issued else { return Err(nothing_to_sell(&book).into()) };
    let content = &issued.content;
    let net = content.total.checked_sub(content.total_tax)?;
    if net.minor() <= 0 {
        return Err(nothing_to_sell(&book).into());
    }
    Ok((document_ref, net))
}

fn nothing_to_sell(book: &ContractBook) -> Refusal {
    let detail = format!("must have a price above 0: the invoice of contract {} bills nothing", book.contract.number_text());
    Refusal::field(&["product_pricing_ref"], "out_of_range", detail)
}

/// Returns an error with the paths of the request: the fields of the contract's only product are fields of the sale.
fn of_product(error: UseCaseError) -> UseCaseError {
    let strip = |violation: Violation| {
        let path = match violation.path.as_slice() {
            [products, _, rest @ ..] if products == "products" => rest.to_vec(),
            path => path.to_vec(),
        };
        let path = if path.first().is_some_and(|field| field == "line_items") { vec!["quantity".to_owned()] } else { path };
        Violation { path, ..violation }
    };
    match error {
        UseCaseError::Invalid(violations) => UseCaseError::Invalid(violations.into_iter().map(strip).collect()),
        other => other,
    }
}

/// Returns an error with the paths below a field.
fn below(error: UseCaseError, field: &str) -> UseCaseError {
    match error {
        UseCaseError::Invalid(violations) => {
            let mut found = Violations::none();
            found.extend_below(&[field], violations);
            UseCaseError::Invalid(found)
        }
        other => other,
    }
}
