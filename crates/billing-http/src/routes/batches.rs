//! Handlers for batches of usage events, whole or line by line.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

use actix_web::HttpResponse;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{self, Bytes};
use billing_application::carry_out;
use billing_application::error::UseCaseError;
use billing_application::usage::{self, Atomicity, BatchOutcome, EVENTS_PER_TRANSACTION, MAX_BATCH_EVENTS, NewUsageEvent};
use billing_domain::idempotency::BodyHash;
use serde_json::Value;
use tokio::sync::mpsc;
use tracing::Instrument as _;

use super::batch_records::{Batch, FinishedBatch, ListedErrors, Places, RecordReader, RenderedResults, TakenEvents};
use super::usage::is_binary_cloud_event;
use crate::body::{BatchPayload, Lines, is_large, read_value};
use crate::call::{Call, Reply};
use crate::channel::{ChannelBody, Part};
use crate::refused::{RejectedEvent, SentEvents, SentPayload};
use crate::respond::{HttpReply, respond_stored};
use billing_api::dto::batch::{BatchBody, RecordBatchBody};
use billing_api::dto::cloud_events::{CloudEventBatchBody, refused_binary_mode};
use billing_api::dto::declare::read;
use billing_api::dto::events::EVENT_ANSWER;
use billing_api::dto::limits::CustomerLimitsJson;
use billing_api::dto::wire::written;
use billing_api::media_type::NDJSON;
use billing_api::problem::Problem;
use billing_api::query::usage::{BatchParams, ConflictParams};
use billing_api::stored_response::Success;

pub(crate) async fn record_batch(call: Call, body: BatchPayload) -> HttpReply {
    Ok(record(call, body).await?)
}

async fn record(call: Call, body: BatchPayload) -> Reply {
    let BatchParams { atomic, format, conflicts: ConflictParams { on_conflict } } = call.query.read()?;
    if is_binary_cloud_event(&call) {
        return Err(refused_binary_mode().into());
    }
    let reader = match &body {
        BatchPayload::CloudEvents(_) => RecordReader::of_cloud_events(&call, format.named(), on_conflict).await?,
        BatchPayload::Whole(_) | BatchPayload::Lines(_) => RecordReader::of(&call, format.named(), on_conflict).await?,
    };
    match body {
        BatchPayload::Whole(bytes) | BatchPayload::CloudEvents(bytes) => {
            let sent = SentEvents::of(&call, SentPayload::Whole(bytes.clone()))?;
            let (facts, is_keyed) = (call.context.clone(), call.key.is_some());
            let batch = Batch::of(facts, sent, &reader, MAX_BATCH_EVENTS, ListedErrors::default());
            let mapper = reader.clone();
            // Only the events and the hash leave the parsing thread: the parsed body takes many times their memory.
            let parsed = call.parse(bytes.len(), move || {
                let body = read_value(&bytes)?;
                let content = is_keyed.then(|| reader.hash(body.clone()));
                // A bare array is a batch, too.
                let body = if body.is_array() { Value::from_iter([("events", body)]) } else { body };
                let (parsed, is_atomic) = if reader.is_of_cloud_events() {
                    let CloudEventBatchBody { events } = read(&body)?;
                    (reader.of_records(batch, events.into_iter().map(|event| event.map_err(Problem::from))), false)
                } else if reader.is_of_format() {
                    let RecordBatchBody { events, atomic, on_conflict } = read(&body)?;
                    let events = events.into_iter().map(|event| event.map_err(Problem::from));
                    (reader.also(on_conflict).of_records(batch, events), atomic)
                } else {
                    let BatchBody { events, atomic, on_conflict } = read(&body)?;
                    let events = events.into_iter().map(|event| event.map_err(Problem::from));
                    (reader.also(on_conflict).of_events(batch, events), atomic)
                };
                Ok((parsed, is_atomic || atomic, content))
            });
            let (parsed, atomic, body) = parsed.await?;
            let batch = mapper.map(&call, parsed).await?.finished(atomic)?;
            let render = |RenderedResults { results, left, .. }: &RenderedResults| {
                let results = results.join(",");
                let left: Vec<CustomerLimitsJson> = left.iter().map(CustomerLimitsJson::from).collect();
                let left = if left.is_empty() { String::new() } else { format!(",\"left\":{}", written(&left)) };
                Success::json(format!("{{\"results\":[{results}]{left}}}"))
            };
            call.record_events(body, batch, render).await
        }
        BatchPayload::Lines(lines) if atomic || call.key.is_some() => {
            let lines: Arc<[Bytes]> = all(lines).await?.into();
            let sent = SentEvents::of(&call, SentPayload::Lines(Arc::clone(&lines)))?;
            let (facts, is_keyed) = (call.context.clone(), call.key.is_some());
            let batch = Batch::of(facts, sent, &reader, MAX_BATCH_EVENTS, ListedErrors::default());
            let mapper = reader.clone();
            let parsed = call.parse(bytes_of(&lines), move || {
                let values: Vec<Result<Value, Problem>> = lines.iter().map(|line| read_value(line)).collect();
                let parsed = reader.parse(batch, values.iter().map(|value| value.as_ref().map_err(Clone::clone)));
                let events = values.into_iter().zip(lines.iter()).map(|(value, line)| value.unwrap_or_else(|_| text(line)));
                let body = || Value::from_iter([("events", Value::from_iter(events)), ("atomic", Value::Bool(atomic))]);
                Ok((parsed, is_keyed.then(|| reader.hash(body()))))
            });
            let (parsed, body) = parsed.await?;
            let batch = mapper.map(&call, parsed).await?.finished(atomic)?;
            call.record_events(body, batch, |rendered| Success::of(NDJSON, lines_of(&rendered.results))).await
        }
        BatchPayload::Lines(lines) => {
            let (answers, body) = mpsc::unbounded_channel();
            actix_web::rt::spawn(answer_lines(call, reader, lines, answers).in_current_span());
            Ok(HttpResponse::Ok().insert_header((CONTENT_TYPE, NDJSON)).body(ChannelBody(body)))
        }
    }
}

impl Call {
    /// Records a batch and renders the result of each event. `body` is the hash of the batch, if the request has a key.
    async fn record_events(self, body: Option<BodyHash>, batch: FinishedBatch, render: fn(&RenderedResults) -> Success) -> Reply {
        let keyed = body.and_then(|body| self.keyed(body));
        let FinishedBatch { readable, places } = batch;
        if keyed.is_some() || readable.neighbours == Atomicity::Atomic {
            let size = (readable.events.len(), readable.events.iter().map(NewUsageEvent::bytes).sum());
            let sent = places.sent.clone();
            let rejected: Arc<Mutex<Vec<RejectedEvent>>> = Arc::default();
            let noted = Arc::clone(&rejected);
            let taken = self.in_turn(keyed, size, move |services, request| {
                let note = |rejected| *noted.lock().unwrap_or_else(PoisonError::into_inner) = rejected;
                // A cell, because the results consume the outcome.
                let render = |taken: &Cell<BatchOutcome>| {
                    let rendered = places.results(taken.take().into(), &mut ListedErrors::default());
                    let answer = render(&rendered).kept();
                    note(rendered.rejected);
                    answer
                };
                let recorded =
                    carry_out(services, request, render, |cx| usage::record_batch(cx, &readable, EVENT_ANSWER).map(Cell::new));
                recorded.map_err(|error| {
                    let error = places.placed(error);
                    if let UseCaseError::EventsRefused(refused) = &error {
                        let rejected = refused.iter().filter_map(|(place, error)| Some((place.index?, error)));
                        note(rejected.map(|(index, error)| RejectedEvent::of(index, &Problem::of(error))).collect());
                    }
                    error
                })
            });
            let reply = taken.await;
            // The writer has no time for this: counting parses the batch again.
            let rejected = std::mem::take(&mut *rejected.lock().unwrap_or_else(PoisonError::into_inner));
            sent.count_on_a_thread(rejected).await;
            return reply;
        }
        let taken = self.submit_records(readable.events, &places, false).await?;
        // Rendering up to 10,000 results would block the async thread.
        let rendered = web::block(move || {
            let rendered = places.results(taken, &mut ListedErrors::default());
            places.sent.count(&rendered.rejected);
            render(&rendered).kept()
        });
        respond_stored(rendered.await.map_err(|_| Problem::internal())?, None)
    }

    /// Submits events like [`submit_batch`](Self::submit_batch). If records have several events, the batch is cut between
    /// records.
    async fn submit_records(&self, events: Vec<NewUsageEvent>, places: &Places, goes_on: bool) -> Result<TakenEvents, Problem> {
        if !places.has_elements() {
            return Ok(self.submit_batch(events, goes_on).await?.into());
        }
        let (mut events, mut taken) = (events.into_iter(), TakenEvents::from(BatchOutcome::default()));
        for piece in places.pieces() {
            let goes_on = goes_on || !taken.results.is_empty();
            match self.submit_batch(events.by_ref().take(piece).collect(), goes_on).await {
                Ok(BatchOutcome { results, stopped_by: None }) => taken.results.extend(results),
                Ok(BatchOutcome { results, stopped_by: Some(error) }) => {
                    taken.results.extend(results);
                    taken.untaken = error.into();
                    break;
                }
                // Earlier events are recorded, so the response must report them.
                Err(problem) if !taken.results.is_empty() => {
                    taken.untaken = problem;
                    break;
                }
                Err(problem) => return Err(problem),
            }
        }
        Ok(taken)
    }
}

fn text(line: &[u8]) -> Value {
    Value::String(String::from_utf8_lossy(line).into_owned())
}

fn bytes_of(lines: &[Bytes]) -> usize {
    lines.iter().map(Bytes::len).sum()
}

fn lines_of(results: &[String]) -> String {
    results.iter().flat_map(|result| [result, "\n"]).collect()
}

/// Reads all lines of a body.
async fn all(mut lines: Lines) -> Result<Vec<Bytes>, Problem> {
    let mut all = Vec::new();
    while all.len() <= MAX_BATCH_EVENTS {
        let more = lines.next(MAX_BATCH_EVENTS + 1 - all.len()).await?;
        if more.is_empty() {
            return Ok(all);
        }
        all.extend(more);
    }
    Err(Problem::too_many_events(MAX_BATCH_EVENTS))
}

/// Records lines as they arrive, and sends the results of each transaction when it is committed.
async fn answer_lines(call: Call, reader: RecordReader, mut lines: Lines, answers: mpsc::UnboundedSender<Part>) {
    let (facts, mut taken, mut left) = (&call.context, 0, BatchRoom::default());
    loop {
        let arrived = match lines.next(EVENTS_PER_TRANSACTION).await {
            Ok(arrived) => arrived,
            Err(problem) => {
                say(&answers, &[facts.problem(&problem)]);
                break;
            }
        };
        if arrived.is_empty() {
            break;
        }
        let fits = arrived.len().min(MAX_BATCH_EVENTS - taken);
        taken += fits;
        let recorded = record_lines(&call, &reader, &arrived[..fits], taken > fits, &mut left).await;
        let mut results = recorded.unwrap_or_else(|problem| vec![facts.problem(&problem); fits]);
        // Records can have several events.
        let is_too_many = arrived.len() > results.len();
        if is_too_many {
            results.push(facts.problem(&Problem::too_many_events(MAX_BATCH_EVENTS)));
        }
        if !say(&answers, &results) {
            return;
        }
        if is_too_many {
            break;
        }
    }
    // The receiver is dropped when the request was abandoned.
    answers.send(Part::End).ok();
}

/// What the rest of a batch that is answered line by line can have.
struct BatchRoom {
    /// The number of events.
    events: usize,
    /// The number of errors that the response lists.
    listed: ListedErrors,
}

impl Default for BatchRoom {
    fn default() -> Self {
        Self { events: MAX_BATCH_EVENTS, listed: ListedErrors::default() }
    }
}

/// Records lines and returns the result of each, without the lines whose events do not fit into the batch.
///
/// # Errors
/// Returns the problem of the whole group.
async fn record_lines(
    call: &Call,
    reader: &RecordReader,
    lines: &[Bytes],
    goes_on: bool,
    left: &mut BatchRoom,
) -> Result<Vec<String>, Problem> {
    let (lines, bytes): (Arc<[Bytes]>, usize) = (lines.into(), bytes_of(lines));
    let sent = SentEvents::of(call, SentPayload::Lines(Arc::clone(&lines)))?;
    let batch = Batch::of(call.context.clone(), sent, reader, left.events, left.listed);
    let parser = reader.clone();
    let parsed = call.parse(bytes, move || Ok(parser.parse(batch, lines.iter().map(|line| read_value(line)))));
    let FinishedBatch { readable, places } = reader.map(call, parsed.await?).await?.cut();
    left.events -= readable.events.len();
    let taken = call.submit_records(readable.events, &places, goes_on).await?;
    let mut listed = left.listed;
    let render = move || {
        let RenderedResults { results, rejected, left: _ } = places.results(taken, &mut listed);
        places.sent.count(&rejected);
        (results, listed)
    };
    let rendered = if is_large(bytes) { web::block(render).await.map_err(|_| Problem::internal())? } else { render() };
    left.listed = rendered.1;
    Ok(rendered.0)
}

/// Sends one line per result; returns `false` if the receiver is dropped.
fn say(answers: &mpsc::UnboundedSender<Part>, results: &[String]) -> bool {
    answers.send(Part::Bytes(Bytes::from(lines_of(results)))).is_ok()
}
