//! Usage events.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::Services;
use billing_application::error::Thing;
use billing_application::usage::{self, FormattedEvent, FormattedUpdate, NewUsageEvent};
use billing_domain::access::Principal;
use billing_domain::page::Page;
use billing_domain::refs::EventRef;
use billing_domain::usage::EventKey;
use billing_domain::violation::Violations;
use billing_json::hash_of_event;

use super::{Answer, OnceAnswer, in_path};
use crate::body::Body;
use crate::caller::Caller;
use crate::dto::declare::read;
use crate::dto::events::{EventBody, EventJson, EventRevisionJson, EventUpdateBody, event_answer, formatted_answer};
use crate::dto::formatted::{FormattedEventBody, FormattedUpdateBody};
use crate::kept;
use crate::middleware::Facts;
use crate::once::answer_of;
use crate::problem::Problem;
use crate::query::usage::EventListParams;
use crate::query::{Paged, Query};
use crate::reporting::Reporting;

pub(crate) async fn record_event(reporting: Reporting, Body(body): Body) -> OnceAnswer {
    let event = EventBody::read_event(&body)?;
    // Its key names the event, however the event is written.
    let sent = reporting.key.as_ref().map(|named| EventKey { key: named.key.clone(), body: hash_of_event(&body) });
    if let (Some(sent), Some(named)) = (&sent, &event.sent)
        && sent.key != named.key
    {
        let detail = "must be what the header Idempotency-Key says, or be left out";
        return Err(Violations::one(&["idempotency_key"], "conflicting_fields", detail).into());
    }
    let event = NewUsageEvent { sent: sent.or(event.sent), ..event };
    if reporting.key.is_none() || usage::is_known_by_its_key(&event) {
        let taken = reporting.report(event, event_answer, |refused| refused).await?;
        return kept::respond(answer_of(taken, event_answer), None);
    }
    let taken = reporting.caller().await?.once(Some(&body)).carried_out(move |services, principal, request| {
        usage::record_alone(services, principal, request, &event, &event_answer, |taken| answer_of(taken, event_answer))
    });
    taken.await
}

pub(crate) async fn list_events(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let EventListParams { events, page: Paged(page) } = query.read()?;
    let wanted = events.query();
    let found = caller.scan(move |services, principal| match &wanted {
        Some(wanted) => usage::list_events(services, principal, wanted, page),
        None => Ok(Page::empty()),
    });
    Ok(query.answer::<_, EventJson>(page, &found.await?))
}

pub(crate) async fn record_formatted_event(caller: Caller, facts: Facts, Body(body): Body) -> OnceAnswer {
    let FormattedEventBody { format, event } = read(&body)?;
    let format = format.named().ok_or_else(Problem::internal)?;
    if !caller.is_keyed() {
        let report = FormattedEvent { format, event, sent: None };
        let map = move |services: &Services<'_>, principal: &Principal| usage::map_formatted(services, principal, &report);
        let mapped = caller.clone().run(map).await?;
        let taken = Reporting::of(caller, facts).report(mapped, formatted_answer, usage::of_mapped).await?;
        return kept::respond(answer_of(taken, formatted_answer), None);
    }
    let once = caller.once(Some(&body));
    let report = FormattedEvent { format, event, sent: once.sent() };
    let taken = once.carried_out(move |services, principal, request| {
        let render = |taken| answer_of(taken, formatted_answer);
        usage::record_formatted(services, principal, request, &report, &formatted_answer, render)
    });
    taken.await
}

pub(crate) async fn get_event(caller: Caller, path: Path<String>) -> Answer<EventJson> {
    let event_ref = in_path(EventRef::parse, &path, Thing::Event)?;
    let found = caller.run(move |services, principal| usage::get_event(services, principal, event_ref)).await?;
    Ok(Json(EventJson::from(&found)))
}

pub(crate) async fn update_event(caller: Caller, Body(body): Body) -> OnceAnswer {
    let wanted: EventUpdateBody = read(&body)?;
    let event_ref = in_path(EventRef::parse, &wanted.event_ref, Thing::Event)?;
    let update = wanted.update();
    let updated = caller
        .once(Some(&body))
        .answer::<EventJson, _>(move |services, principal| usage::update_event(services, principal, event_ref, &update));
    updated.await
}

pub(crate) async fn update_formatted_event(caller: Caller, Body(body): Body) -> OnceAnswer {
    let FormattedUpdateBody { event_ref, format, event } = read(&body)?;
    let event_ref = in_path(EventRef::parse, &event_ref, Thing::Event)?;
    let update = FormattedUpdate { event_ref, format: format.named(), event };
    let updated = caller
        .once(Some(&body))
        .answer::<EventJson, _>(move |services, principal| usage::update_formatted(services, principal, &update));
    updated.await
}

pub(crate) async fn delete_event(caller: Caller, path: Path<String>) -> Result<HttpResponse, Problem> {
    let event_ref = in_path(EventRef::parse, &path, Thing::Event)?;
    caller.run(move |services, principal| usage::delete_event(services, principal, event_ref)).await?;
    Ok(HttpResponse::NoContent().finish())
}

pub(crate) async fn get_event_history(caller: Caller, path: Path<String>) -> Answer<Vec<EventRevisionJson>> {
    let event_ref = in_path(EventRef::parse, &path, Thing::Event)?;
    let history = caller.run(move |services, principal| usage::event_history(services, principal, event_ref)).await?;
    Ok(Json(history.iter().map(EventRevisionJson::from).collect()))
}
