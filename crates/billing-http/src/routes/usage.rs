//! Usage events.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::error::Thing;
use billing_application::usage::{self, FormattedEvent, FormattedUpdate, NewUsageEvent};
use billing_domain::page::Page;
use billing_domain::refs::EventRef;
use billing_domain::usage::EventKey;
use billing_json::hash_of_event;

use super::once::answer_of;
use super::{Answer, Caller, OnceAnswer, in_path};
use crate::body::Body;
use crate::dto::events::{
    EventBody, EventJson, EventResultJson, EventRevisionJson, EventUpdateBody, event_answer, formatted_answer,
};
use crate::dto::formatted::{FormattedEventBody, FormattedUpdateBody};
use crate::problem::Problem;
use crate::query::Query;

/// Takes a usage event and puts it on its document.
#[utoipa::path(post, path = "/api/usage/event", tag = "usage", request_body = EventBody,
    responses((status = 200, description = "The event is stored, and on this document", body = EventResultJson)))]
pub(crate) async fn record_event(caller: Caller, Body(body): Body) -> OnceAnswer {
    let event = EventBody::read(&body)?;
    let once = caller.once(Some(&body));
    // Its key names the event, however the event is written.
    let sent = once.sent().map(|sent| EventKey { body: hash_of_event(&body), ..sent });
    let event = NewUsageEvent { sent, ..event };
    let taken = once.carried_out(move |services, principal, request| {
        usage::record_alone(services, principal, request, &event, &event_answer, |taken| answer_of(taken, event_answer))
    });
    taken.await
}

/// Lists usage events by timestamp, then reference.
#[utoipa::path(get, path = "/api/usage/event/filter", tag = "usage",
    params(crate::openapi::EventParams, crate::openapi::PageParams),
    responses((status = 200, description = "A page of events, without deleted ones", body = Vec<EventJson>)))]
pub(crate) async fn list_events(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let (wanted, page) = query.events()?;
    let found = caller.scan(move |services, principal| match &wanted {
        Some(wanted) => usage::list_events(services, principal, wanted, page),
        None => Ok(Page::empty()),
    });
    Ok(query.answer::<_, EventJson>(page, &found.await?))
}

/// Takes a free-form usage event, processed by a usage format, and puts it on its document.
#[utoipa::path(post, path = "/api/usage/event/formatted", tag = "usage", request_body = FormattedEventBody,
    responses((status = 200, description = "The event as the format gave it, stored and on this document", body = EventJson)))]
pub(crate) async fn record_formatted_event(caller: Caller, Body(body): Body) -> OnceAnswer {
    let report = FormattedEventBody::read(&body)?;
    let once = caller.once(Some(&body));
    let report = FormattedEvent { sent: once.sent(), ..report };
    let taken = once.carried_out(move |services, principal, request| {
        let render = |taken| answer_of(taken, formatted_answer);
        usage::record_formatted(services, principal, request, &report, &formatted_answer, render)
    });
    taken.await
}

/// Reads a usage event.
#[utoipa::path(get, path = "/api/usage/event/{event_ref}", tag = "usage",
    params(("event_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The event", body = EventJson)))]
pub(crate) async fn get_event(caller: Caller, path: Path<String>) -> Answer<EventJson> {
    let event_ref = in_path(EventRef::parse, &path, Thing::Event)?;
    let found = caller.run(move |services, principal| usage::get_event(services, principal, event_ref)).await?;
    Ok(Json(EventJson::from(&found)))
}

/// Changes a usage event; its documents follow in the same request.
#[utoipa::path(post, path = "/api/usage/event/update", tag = "usage", request_body = EventUpdateBody,
    responses((status = 200, description = "The event as it is now", body = EventJson)))]
pub(crate) async fn update_event(caller: Caller, Body(body): Body) -> OnceAnswer {
    let (event_ref, update) = EventUpdateBody::read(&body)?;
    let event_ref = in_path(EventRef::parse, &event_ref, Thing::Event)?;
    let updated = caller
        .once(Some(&body))
        .answer::<EventJson, _>(move |services, principal| usage::update_event(services, principal, event_ref, &update));
    updated.await
}

/// Processes another free-form event in a usage event's place; its documents follow in the same request.
#[utoipa::path(post, path = "/api/usage/event/formatted/update", tag = "usage", request_body = FormattedUpdateBody,
    responses((status = 200, description = "The event as it is now", body = EventJson)))]
pub(crate) async fn update_formatted_event(caller: Caller, Body(body): Body) -> OnceAnswer {
    let (event_ref, format, event) = FormattedUpdateBody::read(&body)?;
    let update = FormattedUpdate { event_ref: in_path(EventRef::parse, &event_ref, Thing::Event)?, format, event };
    let updated = caller
        .once(Some(&body))
        .answer::<EventJson, _>(move |services, principal| usage::update_formatted(services, principal, &update));
    updated.await
}

/// Deletes a usage event; its documents follow in the same request, its history stays.
#[utoipa::path(delete, path = "/api/usage/event/{event_ref}", tag = "usage",
    params(("event_ref" = String, Path, description = "Its reference")),
    responses((status = 204, description = "The event counts no more")))]
pub(crate) async fn delete_event(caller: Caller, path: Path<String>) -> Result<HttpResponse, Problem> {
    let event_ref = in_path(EventRef::parse, &path, Thing::Event)?;
    caller.run(move |services, principal| usage::delete_event(services, principal, event_ref)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Reads every change of a usage event, deleted ones included.
#[utoipa::path(get, path = "/api/usage/event/history/{event_ref}", tag = "usage",
    params(("event_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "Its changes, oldest first", body = Vec<EventRevisionJson>)))]
pub(crate) async fn get_event_history(caller: Caller, path: Path<String>) -> Answer<Vec<EventRevisionJson>> {
    let event_ref = in_path(EventRef::parse, &path, Thing::Event)?;
    let history = caller.run(move |services, principal| usage::event_history(services, principal, event_ref)).await?;
    Ok(Json(history.iter().map(EventRevisionJson::from).collect()))
}
