//! Handlers for usage events.

use std::cell::Cell;

use actix_web::HttpResponse;
use billing_application::error::{EventPlace, ResourceKind, UseCaseError, UseCaseResult};
use billing_application::formats::NamedFormat;
use billing_application::usage::{
    self, Atomicity, BatchOutcome, ChangeOutcome, EventChange, FormattedUpdate, IngestOutcome, NO_ANSWER, NewUsageEvent,
    SentRecord, UsageBatch,
};
use billing_application::{Cx, carry_out, idempotency};
use billing_domain::event_input::OnConflict;
use billing_domain::format::MappedRecord;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::idempotency::StoredResponse;
use billing_domain::refs::EventRef;
use billing_domain::violation::Violations;

use crate::call::{Call, REPLAYED, Reply};
use crate::ingest::answer_of;
use crate::respond::respond_stored;
use billing_api::dto::cloud_events::{read_cloud_event, refused_binary_mode, refused_key};
use billing_api::dto::events::{EVENT_ANSWER, EventBody, EventJson, EventUpdateBody, FORMATTED_ANSWER};
use billing_api::dto::formatted::{FormattedEventBody, FormattedUpdateBody};
use billing_api::dto::wire::written;
use billing_api::problem::Problem;
use billing_api::query::usage::{ConflictParams, FormattedParams};
use billing_api::stored_response::Success;

/// Maps an error before it is reported. Errors of a mapped event do not refer to fields of the request.
type ErrorMapping = fn(UseCaseError) -> UseCaseError;

pub(crate) async fn record_event(mut call: Call) -> Reply {
    if call.is_dry_run {
        let event = call.read_value(EventBody::read_event).await?;
        return preview(&call, event, |refused| refused).await;
    }
    let read = call.take_event();
    record(&call, read).await.inspect_err(|problem| call.refused(call.value(), problem))
}

/// Records the event of a call, which may already be read.
async fn record(call: &Call, read: Option<NewUsageEvent>) -> Reply {
    let ConflictParams { on_conflict } = call.query.read()?;
    let event = match read {
        Some(event) => event,
        None => call.read_value(EventBody::read_event).await?,
    };
    let named = call.key.as_ref().map(|named| &named.key);
    if let (Some(in_body), Some(named)) = (&event.key, named)
        && in_body != named
    {
        let detail = "must equal the header Idempotency-Key, or be omitted";
        return Err(Violations::one(&["idempotency_key"], "conflicting_fields", detail).into());
    }
    let event = NewUsageEvent { key: named.cloned().or_else(|| event.key.clone()), on_conflict, ..event };
    if call.key.is_none() || usage::is_known_by_its_key(&event) {
        return call.submit_event(event, EVENT_ANSWER, |refused| refused).await;
    }
    call.submit_event_once(event, (EVENT_ANSWER, |taken| answer_of(taken, EVENT_ANSWER)), |refused| refused).await
}

/// Returns the effects of an event on documents.
async fn preview(call: &Call, event: NewUsageEvent, reported: ErrorMapping) -> Reply {
    call.effects(Box::new(move |cx| usage::record_event(cx, event.clone(), NO_ANSWER).map(drop).map_err(reported))).await
}

pub(crate) async fn record_formatted_event(call: Call) -> Reply {
    let sent = if call.is_cloud_event { call.value() } else { &call.value()["event"] };
    record_formatted(&call).await.inspect_err(|problem| {
        if !call.is_dry_run {
            call.refused(sent, problem);
        }
    })
}

/// Reads the record of a call, and the format that it names.
async fn read_formatted(call: &Call) -> Result<(SentRecord, NamedFormat), Problem> {
    let FormattedParams { format, conflicts: ConflictParams { on_conflict } } = call.query.read()?;
    let sent_key = call.key.as_ref().map(|named| named.key.clone());
    if call.is_cloud_event {
        let record = call.read_value(read_cloud_event).await?;
        if sent_key.is_some() {
            return Err(refused_key().into());
        }
        return Ok((SentRecord { on_conflict, ..record }, format.named().unwrap_or_else(NamedFormat::cloud_events)));
    }
    if is_binary_cloud_event(call) {
        return Err(refused_binary_mode().into());
    }
    if format.named().is_some() {
        let detail = "must be in the body: only the format of a CloudEvent is in the query";
        return Err(Violations::one(&["format_name"], "not_allowed", detail).into());
    }
    let FormattedEventBody { format, event, occurred, hold_ref } = call.body().await?;
    let record = SentRecord { event, key: sent_key, on_conflict, occurred, hold_ref, time_of_receipt: None };
    Ok((record, format.named().ok_or_else(Problem::internal)?))
}

/// Returns whether the headers of a call have the attributes of a CloudEvent (the binary mode).
pub(super) fn is_binary_cloud_event(call: &Call) -> bool {
    call.request.headers().contains_key("ce-specversion")
}

async fn record_formatted(call: &Call) -> Reply {
    let (record, format) = read_formatted(call).await?;
    let on_conflict = record.on_conflict;
    // Another body under the key may be a form of the same event, or a corrected one. The key of the event decides then.
    match repeated(call).await {
        Ok(Some(repeat)) if on_conflict == OnConflict::Reject => return Ok(repeat),
        Err(problem) if !problem.is_key_reuse() => return Err(problem),
        Ok(_) | Err(_) => {}
    }
    let sent = call.key.as_ref().map(|named| named.key.clone());
    let is_cloud_event = call.is_cloud_event;
    // Mapping precedes queueing, because the evaluation takes up to 50 ms.
    let mapped = call.run(move |services, principal| {
        let (format, now) = usage::format_of_events(services, principal, &format)?;
        usage::map_record(services, &format, &SentRecord { time_of_receipt: is_cloud_event.then_some(now), ..record })
    });
    match mapped.await? {
        MappedRecord::Skipped if call.is_dry_run => call.effects(Box::new(|_| Ok(()))).await,
        MappedRecord::Skipped => respond_stored(Success::nothing().kept(), None),
        MappedRecord::Event(mapped) => {
            require_same_key(sent.as_ref(), mapped.key.as_ref())?;
            if call.is_dry_run {
                return preview(call, *mapped, usage::of_mapped).await;
            }
            call.submit_event_once(*mapped, (FORMATTED_ANSWER, |taken| answer_of(taken, FORMATTED_ANSWER)), usage::of_mapped)
                .await
        }
        MappedRecord::Elements(elements) => record_elements(call, elements).await,
    }
}

/// Rejects a key of the format that differs from the key of the request.
fn require_same_key(of_request: Option<&IdempotencyKey>, of_event: Option<&IdempotencyKey>) -> Result<(), Problem> {
    match (of_request, of_event) {
        (Some(request), Some(event)) if request != event => {
            let detail = "must give the key in the header Idempotency-Key by its format: omit the header";
            Err(Violations::one(&["event"], "conflicting_fields", detail).into())
        }
        _ => Ok(()),
    }
}

/// Records the events of a record's elements in one transaction, all or none.
async fn record_elements(call: &Call, elements: Vec<UseCaseResult<Option<NewUsageEvent>>>) -> Reply {
    let (mut events, mut refused) = (Vec::new(), Vec::new());
    let mut items: Vec<usize> = Vec::new();
    let all = elements.len();
    for (item, element) in elements.into_iter().enumerate() {
        match element {
            Ok(None) => {}
            Ok(Some(event)) => {
                events.push(event);
                items.push(item);
            }
            Err(error) => refused.push((EventPlace { index: None, item: Some(item) }, error)),
        }
    }
    if !refused.is_empty() {
        return Err(UseCaseError::EventsRefused(refused).into());
    }
    let placed = |error, items: &[usize]| {
        let UseCaseError::EventsRefused(refused) = error else { return error };
        let item_of = |place: EventPlace| place.index.and_then(|index| items.get(index)).copied();
        let placed =
            refused.into_iter().map(|(place, error)| (EventPlace { index: None, item: item_of(place) }, usage::of_mapped(error)));
        UseCaseError::EventsRefused(placed.collect())
    };
    let size = (events.len(), events.iter().map(NewUsageEvent::bytes).sum());
    let batch = UsageBatch { events, neighbours: Atomicity::Atomic };
    if call.is_dry_run {
        let rehearse =
            move |cx: &mut Cx<'_>| usage::record_batch(cx, &batch, NO_ANSWER).map(drop).map_err(|error| placed(error, &items));
        return call.effects(Box::new(rehearse)).await;
    }
    let keyed = call.keyed_by_body();
    call.clone()
        .in_turn(keyed, size, move |services, request| {
            // A cell, because the results consume the outcome.
            let render = |taken: &Cell<BatchOutcome>| {
                let mut results = vec!["null".to_owned(); all];
                for (item, result) in items.iter().zip(taken.take().results) {
                    results[*item] = match result {
                        Ok(IngestOutcome::Recorded(view) | IngestOutcome::Updated(view)) => (FORMATTED_ANSWER.render)(&view),
                        Ok(IngestOutcome::Replayed(answer)) => answer,
                        // An atomic batch has no rejected event.
                        Err(_) => continue,
                    };
                }
                Success::json(format!("{{\"results\":[{}]}}", results.join(","))).kept()
            };
            let recorded =
                carry_out(services, request, render, |cx| usage::record_batch(cx, &batch, FORMATTED_ANSWER).map(Cell::new));
            recorded.map_err(|error| placed(error, &items))
        })
        .await
}

/// Returns the stored response if the request's key was used already. The format must not be evaluated again, because an
/// edited format may map the event to another customer.
async fn repeated(call: &Call) -> Result<Option<HttpResponse>, Problem> {
    let Some(request) = call.keyed_by_body() else { return Ok(None) };
    let kept = call.run(move |services, principal| idempotency::find_stored_response(services, principal, &request)).await?;
    kept.map(|answer| respond_stored(answer, Some(REPLAYED))).transpose()
}

pub(crate) async fn update_event(call: Call) -> Reply {
    let wanted: EventUpdateBody = call.body().await?;
    let event_ref = event_in_body(&wanted.event_ref)?;
    change(call, event_ref, EventChange::Update(Box::new(wanted.update())), |refused| refused).await
}

pub(crate) async fn update_formatted_event(call: Call) -> Reply {
    let FormattedUpdateBody { event_ref, format, event } = call.body().await?;
    let event_ref = event_in_body(&event_ref)?;
    if let Some(repeat) = repeated(&call).await? {
        return Ok(repeat);
    }
    let update = FormattedUpdate { event_ref, format: format.named(), event };
    let update = call.run(move |services, principal| usage::map_update(services, principal, &update)).await?;
    change(call, event_ref, EventChange::Update(Box::new(update)), usage::of_mapped).await
}

pub(crate) async fn delete_event(call: Call) -> Reply {
    let event_ref = call.reference(EventRef::parse, ResourceKind::Event)?;
    change(call, event_ref, EventChange::Delete, |refused| refused).await
}

/// Parses the reference of an event in a body. A malformed reference is reported as not found, as in a path.
fn event_in_body(text: &str) -> Result<EventRef, Problem> {
    EventRef::parse(text).map_err(|_| Problem::unknown(ResourceKind::Event))
}

/// Changes an event. In a dry run, returns the effects.
async fn change(call: Call, event_ref: EventRef, change: EventChange, reported: ErrorMapping) -> Reply {
    if !call.is_dry_run {
        return call.submit_change((event_ref, change), changed_answer, reported).await;
    }
    let work = move |cx: &mut Cx<'_>| {
        let changed = match &change {
            EventChange::Update(update) => usage::update_event(cx, event_ref, update).map(drop),
            EventChange::Delete => usage::delete_event(cx, event_ref),
        };
        changed.map_err(reported)
    };
    call.effects(Box::new(work)).await
}

/// Returns the response to an event change.
fn changed_answer(changed: &ChangeOutcome) -> StoredResponse {
    match changed {
        ChangeOutcome::Updated(view) => Success::json(written(&EventJson::from(&**view))).kept(),
        ChangeOutcome::Deleted => Success::nothing().kept(),
    }
}
