//! Handlers for batches of usage events, whole or line by line.

use std::cell::Cell;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{self, Bytes};
use billing_application::carry_out;
use billing_application::usage::{
    self, Atomicity, BatchOutcome, EVENTS_PER_TRANSACTION, IngestOutcome, MAX_BATCH_EVENTS, NewUsageEvent, UsageBatch,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tracing::Instrument as _;

use crate::body::{BatchPayload, Lines, NDJSON, read_value};
use crate::call::{Call, Reply};
use crate::channel::{ChannelBody, Part};
use crate::context::RequestContext;
use crate::dto::batch::BatchBody;
use crate::dto::declare::read;
use crate::dto::events::{EventBody, event_answer};
use crate::dto::wire::written;
use crate::problem::Problem;
use crate::query::usage::BatchParams;
use crate::refused::{SentEvents, SentPayload};
use crate::stored_response::{self, Success};

pub(crate) async fn record_batch(call: Call, body: BatchPayload) -> Reply {
    let BatchParams { atomic } = call.query.read()?;
    match body {
        BatchPayload::Whole(bytes) => {
            let body = read_value(&bytes)?;
            let sent = SentEvents::of(&call, SentPayload::Whole(bytes))?;
            let read: BatchBody = read(&body)?;
            let events = read.events.into_iter().map(|event| event.map_err(Problem::from));
            let batch = Batch::new(events, read.atomic || atomic, call.context.clone(), sent)?;
            let render = |results: &[String]| Success::json(format!("{{\"results\":[{}]}}", results.join(",")));
            call.record_events(body, batch, render).await
        }
        BatchPayload::Lines(lines) if atomic || call.key.is_some() => {
            let lines = all(lines).await?;
            let values: Vec<Result<Value, Problem>> = lines.iter().map(|line| read_value(line)).collect();
            let lines: Arc<[Bytes]> = lines.into();
            let sent = SentEvents::of(&call, SentPayload::Lines(Arc::clone(&lines)))?;
            let batch = Batch::new(values.iter().map(read_event), atomic, call.context.clone(), sent)?;
            let said = values.into_iter().zip(lines.iter()).map(|(value, line)| value.unwrap_or_else(|_| text(line)));
            let body = Value::from_iter([("events", Value::from_iter(said)), ("atomic", Value::Bool(atomic))]);
            call.record_events(body, batch, |results| Success::of(NDJSON, lines_of(results))).await
        }
        BatchPayload::Lines(lines) => {
            let (answers, body) = mpsc::unbounded_channel();
            actix_web::rt::spawn(answer_lines(call, lines, answers).in_current_span());
            Ok(HttpResponse::Ok().insert_header((CONTENT_TYPE, NDJSON)).body(ChannelBody(body)))
        }
    }
}

impl Call {
    /// Records a batch and renders the result of each event.
    async fn record_events(self, body: Value, batch: Batch, render: fn(&[String]) -> Success) -> Reply {
        let keyed = self.keyed(Some(&body))?;
        // Dropped before ingestion, because the parsed body takes many times the memory of the events.
        drop(body);
        let Batch { readable, places } = batch;
        if keyed.is_some() || readable.neighbours == Atomicity::Atomic {
            let size = (readable.events.len(), readable.events.iter().map(NewUsageEvent::bytes).sum());
            let sent = places.sent.clone();
            let taken = self.in_turn(keyed, size, move |services, request| {
                // A cell, because the results consume the outcome.
                let render = |taken: &Cell<BatchOutcome>| render(&places.results(taken.take())).kept();
                carry_out(services, request, render, |cx| usage::record_batch(cx, &readable, &event_answer).map(Cell::new))
            });
            return taken.await.inspect_err(|problem| sent.count_whole(problem));
        }
        let taken = self.submit_batch(readable.events, false).await?;
        // Rendering up to 10,000 results would block the async thread.
        let rendered = web::block(move || render(&places.results(taken)).kept());
        stored_response::respond(rendered.await.map_err(|_| Problem::internal())?, None)
    }
}

/// The readable events of a batch, and the positions of the unreadable ones.
struct Batch {
    readable: UsageBatch,
    places: Places,
}

/// The problem of each event in a batch; `None` for readable events.
struct Places {
    problems: Vec<Option<Problem>>,
    facts: RequestContext,
    sent: SentEvents,
}

impl Batch {
    /// Creates a batch from parsed events.
    ///
    /// # Errors
    /// Returns the problems of unreadable events if the batch is atomic.
    fn new(
        events: impl Iterator<Item = Result<NewUsageEvent, Problem>>,
        atomic: bool,
        facts: RequestContext,
        sent: SentEvents,
    ) -> Result<Self, Problem> {
        let (mut readable, mut problems) = (Vec::new(), Vec::new());
        for event in events {
            problems.push(event.map(|event| readable.push(event)).err());
        }
        if atomic && readable.len() < problems.len() {
            let refused = problems.into_iter().enumerate().filter_map(|(index, problem)| Some((index, problem?)));
            let problem = Problem::batch_refused(refused);
            sent.count_whole(&problem);
            return Err(problem);
        }
        let neighbours = if atomic { Atomicity::Atomic } else { Atomicity::PerEvent };
        Ok(Self { readable: UsageBatch { events: readable, neighbours }, places: Places { problems, facts, sent } })
    }
}

impl Places {
    /// Returns the JSON result of each event by position, and counts the rejected events.
    fn results(&self, taken: BatchOutcome) -> Vec<String> {
        let mut taken_of = taken.results.into_iter();
        let untaken = taken.stopped_by.map_or_else(Problem::internal, Problem::from);
        let mut refused = Vec::new();
        let place = |(index, unreadable): (usize, &Option<Problem>)| {
            let problem = match unreadable {
                Some(problem) => problem.clone(),
                None => match taken_of.next() {
                    Some(Ok(IngestOutcome::Recorded(view))) => return event_answer(&view),
                    Some(Ok(IngestOutcome::Replayed(answer))) => return answer,
                    Some(Err(refusal)) => Problem::from(refusal),
                    None => untaken.clone(),
                },
            };
            let told = self.facts.problem(&problem);
            refused.push((index, problem));
            told
        };
        let results = self.problems.iter().enumerate().map(place).collect();
        self.sent.count(refused.iter().map(|(index, problem)| (*index, problem)));
        results
    }
}

impl RequestContext {
    fn problem(&self, problem: &Problem) -> String {
        written(&problem.document(&self.path, &self.request_id))
    }
}

fn read_event(value: &Result<Value, Problem>) -> Result<NewUsageEvent, Problem> {
    Ok(EventBody::read_in_batch(value.as_ref().map_err(Clone::clone)?)?)
}

fn text(line: &[u8]) -> Value {
    Value::String(String::from_utf8_lossy(line).into_owned())
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
async fn answer_lines(call: Call, mut lines: Lines, answers: mpsc::UnboundedSender<Part>) {
    let (facts, mut taken) = (&call.context, 0);
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
        let recorded = record_lines(&call, &arrived[..fits], taken > fits).await;
        let mut results = recorded.unwrap_or_else(|problem| vec![facts.problem(&problem); fits]);
        let is_too_many = arrived.len() > fits;
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

/// Records lines and returns the result of each.
///
/// # Errors
/// Returns the problem of the whole group.
async fn record_lines(call: &Call, lines: &[Bytes], goes_on: bool) -> Result<Vec<String>, Problem> {
    let events = lines.iter().map(|line| read_event(&read_value(line)));
    let sent = SentEvents::of(call, SentPayload::Lines(lines.into()))?;
    let Batch { readable, places } = Batch::new(events, false, call.context.clone(), sent)?;
    Ok(places.results(call.submit_batch(readable.events, goes_on).await?))
}

/// Sends one line per result; returns `false` if the receiver is dropped.
fn say(answers: &mpsc::UnboundedSender<Part>, results: &[String]) -> bool {
    answers.send(Part::Bytes(Bytes::from(lines_of(results)))).is_ok()
}
