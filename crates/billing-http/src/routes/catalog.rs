//! Handlers for customers, supplier entities, usage products, pricings, bank accounts, usage formats and exchange rates.
//! Creating, editing, reading and listing work in the same way for each resource.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::catalog::CustomerView;
use billing_application::error::ResourceKind;
use billing_application::{catalog, formats};
use billing_domain::page::Order;
use billing_domain::refs::{BankAccountRef, CustomerRef, EntityRef, FormatRef, PricingRef, UsageProductRef};
use serde::Serialize;

use super::{Answer, OnceAnswer, in_path};
use crate::body::Body;
use crate::caller::Caller;
use crate::dto::bank_accounts::{BankAccountBody, BankAccountEditBody, BankAccountJson};
use crate::dto::customers::{CustomerBody, CustomerEditBody, CustomerJson, CustomerNameJson};
use crate::dto::declare::read;
use crate::dto::entities::{EntityBody, EntityEditBody, EntityJson, EntityNameJson};
use crate::dto::exchange_rates::{ExchangeRateBody, ExchangeRateJson};
use crate::dto::formats::{FormatBody, FormatEditBody, FormatJson, FormatTestBody, FormatTestJson};
use crate::dto::pricings::{PricingBody, PricingEditBody, PricingJson, PricingRateJson};
use crate::dto::usage_products::{UsageProductBody, UsageProductEditBody, UsageProductJson};
use crate::problem::Problem;
use crate::query::lists::{CustomerParams, FormatParams, PricingRateParams};
use crate::query::{DEFAULT_PAGE_SIZE, Paged, Query};

/// Declares the handlers of resources for their use cases: `makes handler: Body { reference, content } => use case`,
/// `edits handler: EditBody => use case`, `reads handler => use case`, `lists handler: answer => use case`.
macro_rules! resource_handlers {
    ($($reference:ident, $thing:ident as $answer:ty {
        makes $make:ident: $body:ty { $own:ident, $content:ident } => $makes:path;
        edits $edit:ident: $edit_body:ty => $edits:path;
        $(reads $get:ident => $reads:path;)?
        $(lists $list:ident: $element:ty => $lists:path;)*
    })+) => {$(
        pub(crate) async fn $make(caller: Caller, Body(body): Body) -> OnceAnswer {
            let new: $body = read(&body)?;
            let made = caller.once(Some(&body)).answer::<$answer, _>(move |services, principal| {
                $makes(services, principal, new.$own.clone(), new.$content.clone())
            });
            made.await
        }

        pub(crate) async fn $edit(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
            let reference = in_path($reference::parse, &path, ResourceKind::$thing)?;
            let changes = <$edit_body>::read(&body, &reference)?;
            let edited = caller
                .once(Some(&body))
                .answer::<$answer, _>(move |services, principal| $edits(services, principal, &reference, &changes));
            edited.await
        }

        $(pub(crate) async fn $get(caller: Caller, path: Path<String>) -> Answer<$answer> {
            let reference = in_path($reference::parse, &path, ResourceKind::$thing)?;
            let found = caller.run(move |services, principal| $reads(services, principal, &reference)).await?;
            Ok(Json(<$answer>::from(&found)))
        })?

        $(pub(crate) async fn $list(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
            let Paged(page) = query.read::<Paged<DEFAULT_PAGE_SIZE>>()?;
            let found = caller.run(move |services, principal| $lists(services, principal, page)).await?;
            Ok(query.answer::<_, $element>(page, &found))
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
        makes create_entity: EntityBody { entity_ref, wanted } => catalog::create_entity;
        edits edit_entity: EntityEditBody => catalog::edit_entity;
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

pub(crate) async fn rate_pricing(caller: Caller, path: Path<String>, query: Query) -> Answer<Vec<PricingRateJson>> {
    let reference = in_path(PricingRef::parse, &path, ResourceKind::Pricing)?;
    let PricingRateParams { quantity } = query.read()?;
    let rates = caller.run(move |services, principal| catalog::rate_pricing(services, principal, &reference, &quantity)).await?;
    Ok(Json(rates.iter().map(PricingRateJson::from).collect()))
}

pub(crate) async fn list_customers(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    customers::<CustomerJson>(caller, query).await
}

pub(crate) async fn list_customer_names(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    customers::<CustomerNameJson>(caller, query).await
}

async fn customers<J: for<'c> From<&'c CustomerView> + Serialize>(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let params: CustomerParams = query.read()?;
    let (filter, Order { by, .. }) = (params.filter(), params.order);
    let page = params.page.0.in_direction(params.order.direction());
    let found = caller.run(move |services, principal| catalog::list_customers(services, principal, &filter, by, page));
    Ok(query.answer::<_, J>(page, &found.await?))
}

pub(crate) async fn get_usage_format(caller: Caller, path: Path<String>, query: Query) -> Answer<FormatJson> {
    let reference = in_path(FormatRef::parse, &path, ResourceKind::Format)?;
    let FormatParams { version } = query.read()?;
    let found = caller.run(move |services, principal| formats::get_format(services, principal, &reference, version)).await?;
    Ok(Json(FormatJson::from(&found)))
}

pub(crate) async fn test_usage_format(caller: Caller, Body(body): Body) -> Answer<FormatTestJson> {
    let (tested, event) = read::<FormatTestBody>(&body)?.tested().ok_or_else(Problem::internal)?;
    let permit = caller.state.permit_trial().await?;
    let mapped = caller.run(move |services, principal| {
        // The evaluating thread releases the permit, even if the request was abandoned.
        let _permit = permit;
        formats::test_format(services, principal, &tested, &event)
    });
    let mapped = mapped.await?;
    Ok(Json(FormatTestJson::from(&mapped)))
}

pub(crate) async fn put_exchange_rate(caller: Caller, Body(body): Body) -> OnceAnswer {
    let rate = ExchangeRateBody::read_rate(&body)?;
    let kept = caller
        .once(Some(&body))
        .answer::<ExchangeRateJson, _>(move |services, principal| catalog::put_exchange_rate(services, principal, rate));
    kept.await
}

pub(crate) async fn list_exchange_rates(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let Paged(page) = query.read::<Paged<DEFAULT_PAGE_SIZE>>()?;
    let found = caller.run(move |services, principal| catalog::list_exchange_rates(services, principal, page)).await?;
    Ok(query.answer::<_, ExchangeRateJson>(page, &found))
}
