//! Handlers for charges: one-off amounts and manual credit notes.

use billing_application::charges;
use billing_application::error::ResourceKind;
use billing_domain::page::Page;
use billing_domain::refs::ChargeRef;

use crate::call::{Call, Reply};
use crate::respond::respond;
use billing_api::dto::charges::{ChargeBody, ChargeEditBody, ChargeJson};
use billing_api::query::lists::ChargeParams;

pub(crate) async fn record_charge(call: Call) -> Reply {
    let ChargeBody { request } = call.body().await?;
    call.write::<ChargeJson, _>(move |cx| charges::record_charge(cx, &request)).await
}

pub(crate) async fn edit_charge(call: Call) -> Reply {
    let reference = call.reference(ChargeRef::parse, ResourceKind::Charge)?;
    let edited = reference.clone();
    let ChargeEditBody { edit, issue } = call.read_value(move |body| ChargeEditBody::read(body, &edited)).await?;
    call.write::<ChargeJson, _>(move |cx| charges::edit_charge(cx, &reference, &edit, issue)).await
}

pub(crate) async fn list_charges(call: Call) -> Reply {
    let params: ChargeParams = call.query.read()?;
    let (page, wanted) = (params.page.0.in_direction(params.order.direction()), params.query());
    let found = call.scan(move |cx| match &wanted {
        Some(wanted) => charges::list_charges(cx, wanted, page),
        None => Ok(Page::empty()),
    });
    Ok(respond(call.query.answer_updated::<_, ChargeJson>(page, &found.await?)))
}

pub(crate) async fn get_charge(call: Call) -> Reply {
    let reference = call.reference(ChargeRef::parse, ResourceKind::Charge)?;
    call.read::<ChargeJson, _>(move |cx| charges::get_charge(cx, &reference)).await
}

pub(crate) async fn delete_charge(call: Call) -> Reply {
    let reference = call.reference(ChargeRef::parse, ResourceKind::Charge)?;
    call.delete(move |cx| charges::delete_charge(cx, &reference)).await
}
