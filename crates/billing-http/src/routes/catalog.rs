//! Handlers for customers, supplier entities, usage products, pricings, bank accounts, usage formats and exchange rates.
//! Creating, editing, reading and listing work in the same way for each resource.

use std::sync::Arc;

use billing_application::catalog;
use billing_application::error::ResourceKind;
use billing_domain::party::appearance::Logo;
use billing_domain::refs::EntityRef;

use crate::call::{Call, Reply};
use billing_api::dto::entities::{EntityBody, EntityEditBody, EntityJson};
use billing_api::dto::exchange_rates::{ExchangeRateBody, ExchangeRateJson};
use billing_api::problem::Problem;

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

pub(crate) async fn put_exchange_rate(call: Call) -> Reply {
    let rate = call.read_value(ExchangeRateBody::read_rate).await?;
    call.write::<ExchangeRateJson, _>(move |cx| catalog::put_exchange_rate(cx, rate)).await
}
