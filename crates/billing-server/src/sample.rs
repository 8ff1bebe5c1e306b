//! Sample data: a small catalog for a new database, and the components of the demo's catalog.

use billing_application::catalog::{create_customer, create_pricing, create_usage_product, list_pricings, list_usage_products};
use billing_application::contracts::{ContractRequest, create_contract};
use billing_application::error::UseCaseError;
use billing_application::keys::{GeneratedKey, KeyRequest, generate_key};
use billing_application::{Services, UseCase, read, run};
use billing_domain::access::{Principal, Scopes};
use billing_domain::calendar::{Date, TimeZone, Timestamp, plus_months};
use billing_domain::catalog::{
    Aggregation, FixedPrice, LineItem, LineItemPrice, PricingContent, Recurrence, Tier, Tiers, UsageCharge, UsagePrice,
    UsageProductProfile,
};
use billing_domain::codes::UnitCode;
use billing_domain::contract::terms::RequestedProduct;
use billing_domain::metadata::Metadata;
use billing_domain::money::{Currency, Percentage, Price};
use billing_domain::page::{ListRequest, PageRequest};
use billing_domain::party::CustomerProfile;
use billing_domain::refs::{CustomerRef, LineItemId, OrganizationId, PricingRef, UsageProductRef};
use billing_domain::tax::{DefaultTaxes, StatedTax};
use billing_domain::text::OneLine;
use chrono::Datelike;

use crate::failure::{CommandError, CommandResult};

/// The credentials and references for using the sample.
pub(crate) struct SampleAccess {
    /// The API key, if one was requested.
    pub(crate) key: Option<GeneratedKey>,
    pub(crate) contract_ref: String,
    pub(crate) customer_ref: String,
    pub(crate) usage_product_ref: String,
}

/// Creates a customer with a contract over one year from the current month, and an API key if `with_key`. Everything is one
/// transaction, so that a start that is killed leaves no part of the sample and the next start can create it.
///
/// Returns `None` and changes nothing if the organization already has a usage product or a pricing, or one of the references.
pub(crate) fn make(services: &Services, organization: OrganizationId, with_key: bool) -> CommandResult<Option<SampleAccess>> {
    let principal = Principal::of_command_line(organization);
    let page = ListRequest::from(PageRequest::LARGEST);
    let products = read(services, &principal, UseCase::ListUsageProducts, |cx| list_usage_products(cx, &page))?.total;
    let pricings = read(services, &principal, UseCase::ListPricings, |cx| list_pricings(cx, &page))?.total;
    if products + pricings > 0 {
        return Ok(None);
    }
    let (product_ref, product) =
        (UsageProductRef::parse("api-calls").map_err(broken)?, usage_product_profile("API calls", "calls")?);
    let line_items =
        vec![fixed("platform-fee", "Platform fee", "49.00")?, usage("calls", "API calls", "api-calls", call_tiers()?)?];
    let (pricing_ref, plan) =
        (PricingRef::parse("api-plan").map_err(broken)?, pricing_content("API plan", "EUR", None, line_items)?);
    let (customer_ref, payer) = (CustomerRef::parse("acme").map_err(broken)?, customer_profile("Acme Ltd", Some("19"))?);
    let contract = contract_request("acme", "api-plan", month_of(services.now()), None)?;
    let key = KeyRequest { name: Some(line("sample")?), scopes: Scopes::all(), expires_at: None };
    let made = run(services, &principal, UseCase::CreateContract, |cx| {
        create_usage_product(cx, Some(product_ref.clone()), product.clone())?;
        create_pricing(cx, Some(pricing_ref.clone()), plan.clone())?;
        create_customer(cx, Some(customer_ref.clone()), payer.clone().into())?;
        let contract_ref = create_contract(cx, &contract)?.contract.contract_ref.to_string();
        let key = if with_key { Some(generate_key(cx, key.clone())?) } else { None };
        Ok((contract_ref, key))
    });
    let (contract_ref, key) = match made {
        // Another server created the sample at the same time, or the organization has a customer with this reference.
        Err(UseCaseError::AlreadyExists { .. }) => return Ok(None),
        made => made?,
    };
    let (customer_ref, usage_product_ref) = (customer_ref.to_string(), product_ref.to_string());
    Ok(Some(SampleAccess { key, contract_ref, customer_ref, usage_product_ref }))
}

/// Creates an API key with all permissions.
pub(crate) fn make_key(services: &Services, organization: OrganizationId) -> CommandResult<GeneratedKey> {
    let key = KeyRequest { name: Some(line("sandbox")?), scopes: Scopes::all(), expires_at: None };
    Ok(run(services, &Principal::of_command_line(organization), UseCase::GenerateKey, |cx| generate_key(cx, key.clone()))?)
}

/// Returns the first day of an instant's month, in UTC.
pub(crate) fn month_of(now: Timestamp) -> Date {
    let today = TimeZone::UTC.service_date(now);
    today.with_day(1).unwrap_or(today)
}

pub(crate) fn line(text: &str) -> CommandResult<OneLine> {
    OneLine::parse(text).map_err(broken)
}

pub(crate) fn price(text: &str) -> CommandResult<Price> {
    Price::parse(text).map_err(broken)
}

/// Creates the error for invalid sample data. The data is built in, so the binary is wrong, not a setting.
fn broken(reason: impl std::fmt::Display) -> CommandError {
    CommandError::Failed(format!("the sample data is invalid: {reason}"))
}

pub(crate) fn usage_product(
    services: &Services,
    principal: &Principal,
    reference: &str,
    name: &str,
    unit: &str,
) -> CommandResult<()> {
    let reference = UsageProductRef::parse(reference).map_err(broken)?;
    let profile = usage_product_profile(name, unit)?;
    run(services, principal, UseCase::CreateUsageProduct, |cx| {
        create_usage_product(cx, Some(reference.clone()), profile.clone())
    })?;
    Ok(())
}

fn usage_product_profile(name: &str, unit: &str) -> CommandResult<UsageProductProfile> {
    Ok(UsageProductProfile {
        name: line(name)?,
        unit: Some(line(unit)?),
        unit_code: UnitCode::ONE,
        aggregation: Aggregation::Sum,
        unique_by: None,
    })
}

pub(crate) fn fixed(id: &str, name: &str, amount: &str) -> CommandResult<LineItem> {
    let charge = LineItemPrice::Fixed {
        price: FixedPrice::Flat { amount: price(amount)? },
        recurrence: Recurrence::EachPeriod,
        goods: false,
    };
    Ok(LineItem { id: LineItemId::parse(id).map_err(broken)?, name: line(name)?, charge })
}

pub(crate) fn usage(id: &str, name: &str, usage_product_ref: &str, price: UsagePrice) -> CommandResult<LineItem> {
    let charge = LineItemPrice::Usage(UsageCharge::of(UsageProductRef::parse(usage_product_ref).map_err(broken)?, price));
    Ok(LineItem { id: LineItemId::parse(id).map_err(broken)?, name: line(name)?, charge })
}

/// Returns the graduated tiers of billing rules 6.
pub(crate) fn call_tiers() -> CommandResult<UsagePrice> {
    let tier = |up_to: Option<&str>, unit_price: &str| {
        let up_to = up_to.map(price).transpose()?;
        Ok::<_, CommandError>(Tier { up_to, unit_price: price(unit_price)?, flat_amount: Price::ZERO })
    };
    let tiers = vec![tier(Some("100"), "0.10")?, tier(Some("1000"), "0.05")?, tier(None, "0.01")?];
    Tiers::new(tiers).map(UsagePrice::Graduated).map_err(broken)
}

pub(crate) fn pricing(
    services: &Services,
    principal: &Principal,
    reference: &str,
    name: &str,
    currency: &str,
    minimum_fee: Option<&str>,
    line_items: Vec<LineItem>,
) -> CommandResult<()> {
    let reference = PricingRef::parse(reference).map_err(broken)?;
    let content = pricing_content(name, currency, minimum_fee, line_items)?;
    run(services, principal, UseCase::CreatePricing, |cx| create_pricing(cx, Some(reference.clone()), content.clone()))?;
    Ok(())
}

fn pricing_content(
    name: &str,
    currency: &str,
    minimum_fee: Option<&str>,
    line_items: Vec<LineItem>,
) -> CommandResult<PricingContent> {
    Ok(PricingContent {
        name: line(name)?,
        currency: Currency::from_code(currency).map_err(broken)?,
        minimum_fee: minimum_fee.map(price).transpose()?,
        line_items,
    })
}

pub(crate) fn customer(
    services: &Services,
    principal: &Principal,
    reference: &str,
    name: &str,
    tax: Option<&str>,
) -> CommandResult<()> {
    let profile = customer_profile(name, tax)?;
    let customer_ref = CustomerRef::parse(reference).map_err(broken)?;
    run(services, principal, UseCase::CreateCustomer, |cx| {
        create_customer(cx, Some(customer_ref.clone()), profile.clone().into())
    })?;
    Ok(())
}

fn customer_profile(name: &str, tax: Option<&str>) -> CommandResult<CustomerProfile> {
    let rate = tax.map(Percentage::parse).transpose().map_err(broken)?;
    let taxes = DefaultTaxes::always(StatedTax { rate, ..StatedTax::default() });
    Ok(CustomerProfile { taxes, ..CustomerProfile::plain(line(name)?) })
}

/// Creates a contract with one pricing over twelve months, billed monthly.
pub(crate) fn contract(
    services: &Services,
    principal: &Principal,
    customer_ref: &str,
    pricing_ref: &str,
    start: Date,
    discount: Option<&str>,
) -> CommandResult<()> {
    let request = contract_request(customer_ref, pricing_ref, start, discount)?;
    run(services, principal, UseCase::CreateContract, |cx| create_contract(cx, &request))?;
    Ok(())
}

fn contract_request(
    customer_ref: &str,
    pricing_ref: &str,
    start: Date,
    discount: Option<&str>,
) -> CommandResult<ContractRequest> {
    let pricing_ref = PricingRef::parse(pricing_ref).map_err(broken)?;
    let last = plus_months(start, 12).pred_opt().unwrap_or(start);
    let product = RequestedProduct {
        discount: discount.map(Percentage::parse).transpose().map_err(broken)?,
        ..RequestedProduct::plain(pricing_ref, start, last)
    };
    let customer_ref = CustomerRef::parse(customer_ref).map_err(broken)?;
    let metadata = Metadata::default();
    Ok(ContractRequest { customer_ref, po_number: None, metadata, products: vec![product], allow_backdated: false })
}
