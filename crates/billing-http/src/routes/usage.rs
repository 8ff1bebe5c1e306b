//! Handlers for usage events.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::Services;
use billing_application::error::ResourceKind;
use billing_application::idempotency;
use billing_application::usage::{self, ChangeOutcome, EventChange, EventView, FormattedEvent, FormattedUpdate, NewUsageEvent};
use billing_domain::access::Principal;
use billing_domain::idempotency::StoredResponse;
use billing_domain::page::Page;
use billing_domain::refs::EventRef;
use billing_domain::usage::EventKey;
use billing_domain::violation::Violations;
use billing_json::{hash, hash_of_event};
use serde_json::Value;

use super::{Answer, OnceAnswer, in_path};
use crate::body::Body;
use crate::caller::Caller;
use crate::dto::declare::read;
use crate::dto::events::{EventBody, EventJson, EventRevisionJson, EventUpdateBody, event_answer, formatted_answer};
use crate::dto::formatted::{FormattedEventBody, FormattedUpdateBody};
use crate::dto::refused::RefusedUsageJson;
use crate::dto::wire::written;
use crate::idempotent_call::{REPLAYED, answer_of};
use crate::ingest::IngestRequest;
use crate::middleware::RequestContext;
use crate::problem::Problem;
use crate::query::usage::{EventListParams, RefusedParams};
use crate::query::{Paged, Query};
use crate::stored_response::{self, Success};

pub(crate) async fn record_event(reporting: IngestRequest, Body(body): Body) -> OnceAnswer {
    record(&reporting, &body).await.inspect_err(|problem| reporting.refused(&body, problem))
}

async fn record(reporting: &IngestRequest, body: &Value) -> OnceAnswer {
    let event = EventBody::read_event(body)?;
    // The key identifies the event, independent of its JSON formatting.
    let sent = reporting.key.as_ref().map(|named| EventKey { key: named.key.clone(), body: hash_of_event(body) });
    if let (Some(sent), Some(named)) = (&sent, &event.sent)
        && sent.key != named.key
    {
        let detail = "must equal the header Idempotency-Key, or be omitted";
        return Err(Violations::one(&["idempotency_key"], "conflicting_fields", detail).into());
    }
    let event = NewUsageEvent { sent: sent.or(event.sent), ..event };
    if reporting.key.is_none() || usage::is_known_by_its_key(&event) {
        let taken = reporting.report(event, event_answer, |refused| refused).await?;
        return stored_response::respond(answer_of(&taken, event_answer), None);
    }
    let answers = (event_answer as fn(&EventView) -> String, (|taken| answer_of(taken, event_answer)) as fn(&_) -> _);
    reporting.report_once(event, answers, body, |refused| refused).await
}

pub(crate) async fn list_events(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let EventListParams { events, order, page: Paged(page) } = query.read()?;
    let page = page.in_direction(order.direction());
    let wanted = events.query();
    let found = caller.scan(move |services, principal| match &wanted {
        Some(wanted) => usage::list_events(services, principal, wanted, order.by, page),
        None => Ok(Page::empty()),
    });
    Ok(query.answer::<_, EventJson>(page, &found.await?))
}

pub(crate) async fn list_refused_usage(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let params: RefusedParams = query.read()?;
    let (filter, page) = (params.filter(), params.page.0);
    let found = caller.run(move |services, principal| usage::list_refused_usage(services, principal, &filter, page)).await?;
    Ok(query.answer::<_, RefusedUsageJson>(page, &found))
}

pub(crate) async fn record_formatted_event(caller: Caller, facts: RequestContext, Body(body): Body) -> OnceAnswer {
    let (state, principal) = (caller.state.clone(), caller.principal.clone());
    record_formatted(caller, facts, &body).await.inspect_err(|problem| {
        state.count_refused(principal.organization(), &body["event"], problem, principal.request_id().cloned());
    })
}

async fn record_formatted(caller: Caller, facts: RequestContext, body: &Value) -> OnceAnswer {
    let FormattedEventBody { format, event } = read(body)?;
    let format = format.named().ok_or_else(Problem::internal)?;
    let (repeat, reporting) = repeated(caller.clone(), facts, body).await?;
    if let Some(repeat) = repeat {
        return Ok(repeat);
    }
    let sent = reporting.key.as_ref().map(|named| EventKey { key: named.key.clone(), body: hash(Some(body)) });
    let report = FormattedEvent { format, event, sent };
    // Mapping precedes queueing, because the evaluation takes up to 50 ms.
    let map = move |services: &Services<'_>, principal: &Principal| usage::map_formatted(services, principal, &report);
    let mapped = caller.run(map).await?;
    let answers = (formatted_answer as fn(&EventView) -> String, (|taken| answer_of(taken, formatted_answer)) as fn(&_) -> _);
    reporting.report_once(mapped, answers, body, usage::of_mapped).await
}

/// Returns the stored response if the request's key was used already. The format must not be evaluated again, because an
/// edited format may map the event to another customer.
async fn repeated(caller: Caller, facts: RequestContext, body: &Value) -> Result<(Option<HttpResponse>, IngestRequest), Problem> {
    let reporting = IngestRequest::of(caller.clone(), facts);
    let Some(request) = reporting.keyed(body) else { return Ok((None, reporting)) };
    let kept = caller.run(move |services, principal| idempotency::find_stored_response(services, principal, &request)).await?;
    Ok((kept.map(|answer| stored_response::respond(answer, Some(REPLAYED))).transpose()?, reporting))
}

pub(crate) async fn get_event(caller: Caller, path: Path<String>) -> Answer<EventJson> {
    let event_ref = in_path(EventRef::parse, &path, ResourceKind::Event)?;
    let found = caller.run(move |services, principal| usage::get_event(services, principal, event_ref)).await?;
    Ok(Json(EventJson::from(&found)))
}

pub(crate) async fn update_event(reporting: IngestRequest, Body(body): Body) -> OnceAnswer {
    let wanted: EventUpdateBody = read(&body)?;
    let event_ref = in_path(EventRef::parse, &wanted.event_ref, ResourceKind::Event)?;
    let change = EventChange::Update(Box::new(wanted.update()));
    reporting.change((event_ref, change), changed_answer, &body, |refused| refused).await
}

pub(crate) async fn update_formatted_event(caller: Caller, facts: RequestContext, Body(body): Body) -> OnceAnswer {
    let FormattedUpdateBody { event_ref, format, event } = read(&body)?;
    let event_ref = in_path(EventRef::parse, &event_ref, ResourceKind::Event)?;
    let (repeat, reporting) = repeated(caller.clone(), facts, &body).await?;
    if let Some(repeat) = repeat {
        return Ok(repeat);
    }
    let update = FormattedUpdate { event_ref, format: format.named(), event };
    let map = move |services: &Services<'_>, principal: &Principal| usage::map_update(services, principal, &update);
    let change = EventChange::Update(Box::new(caller.run(map).await?));
    reporting.change((event_ref, change), changed_answer, &body, usage::of_mapped).await
}

pub(crate) async fn delete_event(reporting: IngestRequest, path: Path<String>) -> Result<HttpResponse, Problem> {
    let event_ref = in_path(EventRef::parse, &path, ResourceKind::Event)?;
    reporting.change((event_ref, EventChange::Delete), changed_answer, &Value::Null, |refused| refused).await
}

/// Returns the response to an event change.
fn changed_answer(changed: &ChangeOutcome) -> StoredResponse {
    match changed {
        ChangeOutcome::Updated(view) => Success::json(written(&EventJson::from(&**view))).kept(),
        ChangeOutcome::Deleted => Success::nothing().kept(),
    }
}

pub(crate) async fn get_event_history(caller: Caller, path: Path<String>) -> Answer<Vec<EventRevisionJson>> {
    let event_ref = in_path(EventRef::parse, &path, ResourceKind::Event)?;
    let history = caller.run(move |services, principal| usage::event_history(services, principal, event_ref)).await?;
    Ok(Json(history.iter().map(EventRevisionJson::from).collect()))
}
