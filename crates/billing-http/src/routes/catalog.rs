//! Handlers for customers, supplier entities, usage products, pricings, bank accounts, usage formats and exchange rates.
//! Creating, editing, reading and listing work in the same way for each resource.

use std::sync::Arc;

use actix_web::HttpResponse;
use billing_application::catalog::CustomerView;
use billing_application::error::ResourceKind;
use billing_application::{catalog, formats};
use billing_domain::page::Order;
use billing_domain::party::appearance::Logo;
use billing_domain::refs::{BankAccountRef, CustomerRef, EntityRef, FormatRef, PricingRef, UsageProductRef};
use serde::Serialize;

use crate::call::{Call, Reply};
use billing_api::dto::bank_accounts::{BankAccountBody, BankAccountEditBody, BankAccountJson};
use billing_api::dto::customers::{CustomerBody, CustomerEditBody, CustomerJson, CustomerNameJson};
use billing_api::dto::e_invoices::MissingTermJson;
use billing_api::dto::entities::{EntityBody, EntityEditBody, EntityJson, EntityNameJson};
use billing_api::dto::exchange_rates::{ExchangeRateBody, ExchangeRateJson};
use billing_api::dto::formats::{FormatBody, FormatEditBody, FormatJson, FormatTestBody, FormatTestJson};
use billing_api::dto::pricings::{PricingBody, PricingEditBody, PricingJson, PricingRateBody, PricingRateJson};
use billing_api::dto::usage_products::{UsageProductBody, UsageProductEditBody, UsageProductJson};
use billing_api::problem::Problem;
use billing_api::query::lists::{CustomerParams, EInvoiceCheckParams, FormatParams, ListParams, PricingRateParams};

/// Declares the handlers of resources for their use cases: `makes handler: Body { reference, content } => use case`,
/// `edits handler: EditBody => use case`, `reads handler => use case`, `lists handler: answer => use case`.
macro_rules! resource_handlers {
    ($($reference:ident, $thing:ident as $answer:ty {
        $(makes $make:ident: $body:ty { $own:ident, $content:ident } => $makes:path;)?
        $(edits $edit:ident: $edit_body:ty => $edits:path;)?
        $(reads $get:ident => $reads:path;)?
        $(lists $list:ident: $element:ty => $lists:path;)*
    })+) => {$(
        $(pub(crate) async fn $make(call: Call) -> Reply {
            let new: $body = call.body().await?;
            call.write::<$answer, _>(move |cx| $makes(cx, new.$own.clone(), new.$content.clone())).await
        })?

        $(pub(crate) async fn $edit(call: Call) -> Reply {
            let reference = call.reference($reference::parse, ResourceKind::$thing)?;
            let edited = reference.clone();
            let changes = call.read_value(move |body| <$edit_body>::read(body, &edited)).await?;
            call.write::<$answer, _>(move |cx| $edits(cx, &reference, &changes)).await
        })?

        $(pub(crate) async fn $get(call: Call) -> Reply {
            let reference = call.reference($reference::parse, ResourceKind::$thing)?;
            call.read::<$answer, _>(move |cx| $reads(cx, &reference)).await
        })?

        $(pub(crate) async fn $list(call: Call) -> Reply {
            let list = call.query.read::<ListParams>()?.request();
            call.list_updated::<$element, _>(list.page, move |cx| $lists(cx, &list)).await
        })*
    )+};
}

resource_handlers! {
    CustomerRef, Customer as CustomerJson {
        makes create_customer: CustomerBody { customer_ref, wanted } => catalog::create_customer;
        edits edit_customer: CustomerEditBody => catalog::edit_customer;
        reads get_customer => catalog::get_customer;
    }
    EntityRef, Entity as EntityJson {
        reads get_entity => catalog::get_entity;
        lists list_entities: EntityJson => catalog::list_entities;
        lists list_entity_names: EntityNameJson => catalog::list_entities;
    }
    UsageProductRef, UsageProduct as UsageProductJson {
        makes create_usage_product: UsageProductBody { usage_product_ref, profile } => catalog::create_usage_product;
        edits edit_usage_product: UsageProductEditBody => catalog::edit_usage_product;
        reads get_usage_product => catalog::get_usage_product;
        lists list_usage_products: UsageProductJson => catalog::list_usage_products;
    }
    PricingRef, Pricing as PricingJson {
        makes create_pricing: PricingBody { product_pricing_ref, content } => catalog::create_pricing;
        edits edit_pricing: PricingEditBody => catalog::edit_pricing;
        reads get_pricing => catalog::get_pricing;
        lists list_pricings: PricingJson => catalog::list_pricings;
    }
    BankAccountRef, BankAccount as BankAccountJson {
        makes create_bank_account: BankAccountBody { billing_account_id, profile } => catalog::create_bank_account;
        edits edit_bank_account: BankAccountEditBody => catalog::edit_bank_account;
        reads get_bank_account => catalog::get_bank_account;
        lists list_bank_accounts: BankAccountJson => catalog::list_bank_accounts;
    }
    FormatRef, Format as FormatJson {
        makes create_usage_format: FormatBody { format_ref, content } => formats::create_format;
        edits edit_usage_format: FormatEditBody => formats::edit_format;
        lists list_usage_formats: FormatJson => formats::list_formats;
    }
}

pub(crate) async fn create_entity(call: Call) -> Reply {
    let EntityBody { entity_ref, wanted } = call.body().await?;
    check_logo(&call, wanted.profile.paper.logo.clone()).await?;
    call.write::<EntityJson, _>(move |cx| catalog::create_entity(cx, entity_ref.clone(), wanted.clone())).await
}

pub(crate) async fn edit_entity(call: Call) -> Reply {
    let reference = call.reference(EntityRef::parse, ResourceKind::Entity)?;
    let edited = reference.clone();
    let changes = Arc::new(call.read_value(move |body| EntityEditBody::read(body, &edited)).await?);
    let (of, wanted) = (reference.clone(), Arc::clone(&changes));
    let logo = call.look_up(move |cx| catalog::received_logo(cx, &of, &wanted)).await?;
    check_logo(&call, logo).await?;
    call.write::<EntityJson, _>(move |cx| catalog::edit_entity(cx, &reference, &changes)).await
}

/// Prints a received logo once, before the transaction.
async fn check_logo(call: &Call, logo: Option<Logo>) -> Result<(), Problem> {
    match logo.filter(|logo| logo.image.is_some()) {
        Some(logo) => call.print(move |services, principal| catalog::check_logo(services, principal, &logo)).await,
        None => Ok(()),
    }
}

pub(crate) async fn rate_pricing(call: Call) -> Reply {
    let reference = call.reference(PricingRef::parse, ResourceKind::Pricing)?;
    let PricingRateParams { quantity } = call.query.read()?;
    call.read_all::<PricingRateJson, _>(move |cx| catalog::rate_pricing(cx, &reference, &quantity)).await
}

pub(crate) async fn rate_new_pricing(call: Call) -> Reply {
    let PricingRateBody { content, quantities } = call.body().await?;
    call.read_all::<PricingRateJson, _>(move |cx| catalog::rate_new_pricing(cx, &content, &quantities)).await
}

pub(crate) async fn check_e_invoice(call: Call) -> Reply {
    let reference = call.reference(CustomerRef::parse, ResourceKind::Customer)?;
    let EInvoiceCheckParams { entity_ref } = call.query.read()?;
    call.read_all::<MissingTermJson, _>(move |cx| catalog::check_e_invoice(cx, &reference, entity_ref.as_ref())).await
}

pub(crate) async fn list_customers(call: Call) -> Reply {
    customers::<CustomerJson>(call).await
}

pub(crate) async fn list_customer_names(call: Call) -> Reply {
    customers::<CustomerNameJson>(call).await
}

async fn customers<J: for<'c> From<&'c CustomerView> + Serialize>(call: Call) -> Reply {
    let params: CustomerParams = call.query.read()?;
    let (filter, Order { by, .. }) = (params.filter(), params.order);
    let page = params.page.0.in_direction(params.order.direction());
    call.list_updated::<J, _>(page, move |cx| catalog::list_customers(cx, &filter, by, page)).await
}

pub(crate) async fn get_usage_format(call: Call) -> Reply {
    let reference = call.reference(FormatRef::parse, ResourceKind::Format)?;
    let FormatParams { version } = call.query.read()?;
    call.read::<FormatJson, _>(move |cx| formats::get_format(cx, &reference, version)).await
}

pub(crate) async fn test_usage_format(call: Call) -> Reply {
    let (tested, event) = call.body::<FormatTestBody>().await?.tested().ok_or_else(Problem::internal)?;
    let permit = call.state.permit_trial(call.principal()?.organization()).await?;
    let mapped = call.run(move |services, principal| {
        // The evaluating thread releases the permit, even if the request was abandoned.
        let _permit = permit;
        formats::test_format(services, principal, &tested, &event)
    });
    Ok(HttpResponse::Ok().json(FormatTestJson::from(&mapped.await?)))
}

pub(crate) async fn put_exchange_rate(call: Call) -> Reply {
    let rate = call.read_value(ExchangeRateBody::read_rate).await?;
    call.write::<ExchangeRateJson, _>(move |cx| catalog::put_exchange_rate(cx, rate)).await
}

pub(crate) async fn list_exchange_rates(call: Call) -> Reply {
    let list = call.query.read::<ListParams>()?.request();
    call.list_updated::<ExchangeRateJson, _>(list.page, move |cx| catalog::list_exchange_rates(cx, &list)).await
}
