//! Sample data: a small catalog for the first start, and the components of the demo's catalog.

use billing_application::catalog::{create_customer, create_pricing, create_usage_product};
use billing_application::contracts::{ContractRequest, create_contract};
use billing_application::keys::{KeyRequest, generate_key};
use billing_application::{Services, UseCase, run};
use billing_domain::access::{Principal, Scopes};
use billing_domain::calendar::{Date, TimeZone, plus_months};
use billing_domain::catalog::{
    Aggregation, Charge, FixedPrice, LineItem, PricingContent, Recurrence, Tier, Tiers, UsageCharge, UsagePrice,
    UsageProductProfile,
};
use billing_domain::codes::UnitCode;
use billing_domain::contract::terms::RequestedProduct;
use billing_domain::money::{Currency, Percentage, Price};
use billing_domain::party::CustomerProfile;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{CustomerRef, LineItemId, OrganizationId, PricingRef, UsageProductRef};
use billing_domain::tax::{DefaultTaxes, StatedTax};
use billing_domain::text::OneLine;
use chrono::Datelike;

use crate::failure::{CommandError, CommandResult};

/// The credentials and references for using the sample.
pub(crate) struct SampleAccess {
    pub(crate) api_key: String,
    pub(crate) password: String,
    pub(crate) contract_ref: String,
    pub(crate) customer_ref: String,
    pub(crate) usage_product_ref: String,
}

/// Creates a customer with a contract over one year from the current month, and an API key.
pub(crate) fn make(services: &Services, organization: OrganizationId) -> CommandResult<SampleAccess> {
    let principal = Principal::of_command_line(organization);
    let start = month_of(services);
    usage_product(services, &principal, "api-calls", "API calls", "calls")?;
    let line_items =
        vec![fixed("platform-fee", "Platform fee", "49.00")?, usage("calls", "API calls", "api-calls", call_tiers()?)?];
    pricing(services, &principal, "api-plan", "API plan", "EUR", None, line_items)?;
    customer(services, &principal, "acme", "Acme Ltd", Some("19"))?;
    let contract_ref = contract(services, &principal, "acme", "api-plan", start, None)?;
    let request = KeyRequest { name: Some(line("sample")?), scopes: Scopes::all(), expires_at: None };
    let key = run(services, &principal, UseCase::GenerateKey, |cx| generate_key(cx, request.clone()))?;
    Ok(SampleAccess {
        api_key: key.key.api_key,
        password: key.password,
        contract_ref,
        customer_ref: "acme".to_owned(),
        usage_product_ref: "api-calls".to_owned(),
    })
}

/// Returns the first day of the current month, in UTC.
pub(crate) fn month_of(services: &Services) -> Date {
    let today = TimeZone::UTC.service_date(services.now());
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
    let profile = UsageProductProfile {
        name: line(name)?,
        unit: Some(line(unit)?),
        unit_code: UnitCode::ONE,
        aggregation: Aggregation::Sum,
    };
    run(services, principal, UseCase::CreateUsageProduct, |cx| {
        create_usage_product(cx, Some(reference.clone()), profile.clone())
    })?;
    Ok(())
}

pub(crate) fn fixed(id: &str, name: &str, amount: &str) -> CommandResult<LineItem> {
    let charge = Charge::Fixed { price: FixedPrice::Flat { amount: price(amount)? }, recurrence: Recurrence::EachPeriod };
    Ok(LineItem { id: LineItemId::parse(id).map_err(broken)?, name: line(name)?, charge })
}

pub(crate) fn usage(id: &str, name: &str, usage_product_ref: &str, price: UsagePrice) -> CommandResult<LineItem> {
    let charge = Charge::Usage(UsageCharge {
        usage_product_ref: UsageProductRef::parse(usage_product_ref).map_err(broken)?,
        price,
        included_quantity: Quantity::ZERO,
        prepaid_quantity: None,
        minimum_amount: None,
        maximum_amount: None,
    });
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
    let content = PricingContent {
        name: line(name)?,
        currency: Currency::from_code(currency).map_err(broken)?,
        minimum_fee: minimum_fee.map(price).transpose()?,
        line_items,
    };
    run(services, principal, UseCase::CreatePricing, |cx| create_pricing(cx, Some(reference.clone()), content.clone()))?;
    Ok(())
}

pub(crate) fn customer(
    services: &Services,
    principal: &Principal,
    reference: &str,
    name: &str,
    tax: Option<&str>,
) -> CommandResult<()> {
    let rate = tax.map(Percentage::parse).transpose().map_err(broken)?;
    let taxes = DefaultTaxes::always(StatedTax { rate, ..StatedTax::default() });
    let profile = CustomerProfile { taxes, ..CustomerProfile::plain(line(name)?) };
    let customer_ref = CustomerRef::parse(reference).map_err(broken)?;
    run(services, principal, UseCase::CreateCustomer, |cx| {
        create_customer(cx, Some(customer_ref.clone()), profile.clone().into())
    })?;
    Ok(())
}

/// Creates a contract with one pricing over twelve months, billed monthly, and returns its reference.
pub(crate) fn contract(
    services: &Services,
    principal: &Principal,
    customer_ref: &str,
    pricing_ref: &str,
    start: Date,
    discount: Option<&str>,
) -> CommandResult<String> {
    let pricing_ref = PricingRef::parse(pricing_ref).map_err(broken)?;
    let last = plus_months(start, 12).pred_opt().unwrap_or(start);
    let product = RequestedProduct {
        discount: discount.map(Percentage::parse).transpose().map_err(broken)?,
        ..RequestedProduct::plain(pricing_ref, start, last)
    };
    let customer_ref = CustomerRef::parse(customer_ref).map_err(broken)?;
    let request = ContractRequest { customer_ref, po_number: None, products: vec![product], allow_backdated: false };
    let made = run(services, principal, UseCase::CreateContract, |cx| create_contract(cx, &request))?;
    Ok(made.contract.contract_ref.to_string())
}
