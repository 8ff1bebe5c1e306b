//! Handlers for batches of usage events, whole or line by line.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

use actix_web::HttpResponse;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{self, Bytes};
use billing_application::carry_out;
use billing_application::error::UseCaseError;
use billing_application::usage::{
    self, Atomicity, BatchOutcome, EVENTS_PER_TRANSACTION, IngestOutcome, MAX_BATCH_EVENTS, NewUsageEvent, UsageBatch,
};
use billing_domain::event_input::OnConflict;
use billing_domain::idempotency::BodyHash;
use billing_json::hash;
use serde_json::Value;
use tokio::sync::mpsc;
use tracing::Instrument as _;

use crate::body::{BatchPayload, Lines, is_large, read_value};
use crate::call::{Call, Reply};
use crate::channel::{ChannelBody, Part};
use crate::context::RequestContext;
use crate::refused::{RejectedEvent, SentEvents, SentPayload, is_refusal};
use crate::respond::{HttpReply, respond_stored};
use billing_api::dto::batch::BatchBody;
use billing_api::dto::declare::read;
use billing_api::dto::events::{EVENT_ANSWER, EventBody};
use billing_api::dto::wire::written;
use billing_api::media_type::NDJSON;
use billing_api::problem::Problem;
use billing_api::query::usage::{BatchParams, ConflictParams};
use billing_api::stored_response::Success;

/// Maximum number of errors that the response to a batch lists. Ten thousand small events can have tens of thousands.
const MAX_LISTED_ERRORS: usize = 1000;

pub(crate) async fn record_batch(call: Call, body: BatchPayload) -> HttpReply {
    Ok(record(call, body).await?)
}

async fn record(call: Call, body: BatchPayload) -> Reply {
    let BatchParams { atomic, conflicts: ConflictParams { on_conflict } } = call.query.read()?;
    match body {
        BatchPayload::Whole(bytes) => {
            let sent = SentEvents::of(&call, SentPayload::Whole(bytes.clone()))?;
            let (facts, is_keyed) = (call.context.clone(), call.key.is_some());
            // Only the events and the hash leave the parsing thread: the parsed body takes many times their memory.
            let parsed = call.parse(bytes.len(), move || {
                let body = read_value(&bytes)?;
                let content = is_keyed.then(|| hash(Some(&body)));
                // A bare array is a batch, too.
                let body = if body.is_array() { Value::from_iter([("events", body)]) } else { body };
                let whole: BatchBody = read(&body)?;
                let on_conflict = if whole.on_conflict == OnConflict::Update { whole.on_conflict } else { on_conflict };
                let event = |event: NewUsageEvent| NewUsageEvent { on_conflict, ..event };
                let events = whole.events.into_iter().map(|read| read.map(event).map_err(Problem::from));
                let batch = Batch::new(events, whole.atomic || atomic, facts, sent, ListedErrors::default())?;
                Ok((batch, content))
            });
            let (batch, body) = parsed.await?;
            let render = |results: &[String]| Success::json(format!("{{\"results\":[{}]}}", results.join(",")));
            call.record_events(body, batch, render).await
        }
        BatchPayload::Lines(lines) if atomic || call.key.is_some() => {
            let lines: Arc<[Bytes]> = all(lines).await?.into();
            let sent = SentEvents::of(&call, SentPayload::Lines(Arc::clone(&lines)))?;
            let (facts, is_keyed) = (call.context.clone(), call.key.is_some());
            let parsed = call.parse(bytes_of(&lines), move || {
                let values: Vec<Result<Value, Problem>> = lines.iter().map(|line| read_value(line)).collect();
                let batch = Batch::new(
                    values.iter().map(|value| read_event(value, on_conflict)),
                    atomic,
                    facts,
                    sent,
                    ListedErrors::default(),
                )?;
                let events = values.into_iter().zip(lines.iter()).map(|(value, line)| value.unwrap_or_else(|_| text(line)));
                let body = || Value::from_iter([("events", Value::from_iter(events)), ("atomic", Value::Bool(atomic))]);
                Ok((batch, is_keyed.then(|| hash(Some(&body())))))
            });
            let (batch, body) = parsed.await?;
            call.record_events(body, batch, |results| Success::of(NDJSON, lines_of(results))).await
        }
        BatchPayload::Lines(lines) => {
            let (answers, body) = mpsc::unbounded_channel();
            actix_web::rt::spawn(answer_lines(call, (lines, on_conflict), answers).in_current_span());
            Ok(HttpResponse::Ok().insert_header((CONTENT_TYPE, NDJSON)).body(ChannelBody(body)))
        }
    }
}

impl Call {
    /// Records a batch and renders the result of each event. `body` is the hash of the batch, if the request has a key.
    async fn record_events(self, body: Option<BodyHash>, batch: Batch, render: fn(&[String]) -> Success) -> Reply {
        let keyed = body.and_then(|body| self.keyed(body));
        let Batch { readable, places } = batch;
        if keyed.is_some() || readable.neighbours == Atomicity::Atomic {
            let size = (readable.events.len(), readable.events.iter().map(NewUsageEvent::bytes).sum());
            let sent = places.sent.clone();
            let rejected: Arc<Mutex<Vec<RejectedEvent>>> = Arc::default();
            let noted = Arc::clone(&rejected);
            let taken = self.in_turn(keyed, size, move |services, request| {
                let note = |rejected| *noted.lock().unwrap_or_else(PoisonError::into_inner) = rejected;
                // A cell, because the results consume the outcome.
                let render = |taken: &Cell<BatchOutcome>| {
                    let (results, rejected) = places.results(taken.take(), &mut ListedErrors::default());
                    note(rejected);
                    render(&results).kept()
                };
                let recorded =
                    carry_out(services, request, render, |cx| usage::record_batch(cx, &readable, EVENT_ANSWER).map(Cell::new));
                if let Err(UseCaseError::EventsRefused(refused)) = &recorded {
                    note(refused.iter().map(|(index, error)| RejectedEvent::of(*index, &Problem::of(error))).collect());
                }
                recorded
            });
            let reply = taken.await;
            // The writer has no time for this: counting parses the batch again.
            let rejected = std::mem::take(&mut *rejected.lock().unwrap_or_else(PoisonError::into_inner));
            sent.count_on_a_thread(rejected).await;
            return reply;
        }
        let taken = self.submit_batch(readable.events, false).await?;
        // Rendering up to 10,000 results would block the async thread.
        let rendered = web::block(move || {
            let (results, rejected) = places.results(taken, &mut ListedErrors::default());
            places.sent.count(&rejected);
            render(&results).kept()
        });
        respond_stored(rendered.await.map_err(|_| Problem::internal())?, None)
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
    /// Creates a batch from parsed events. `listed` is the number of errors that the response can list.
    ///
    /// # Errors
    /// Returns the problems of unreadable events if the batch is atomic.
    fn new(
        events: impl Iterator<Item = Result<NewUsageEvent, Problem>>,
        atomic: bool,
        facts: RequestContext,
        sent: SentEvents,
        mut listed: ListedErrors,
    ) -> Result<Self, Problem> {
        let (mut readable, mut problems) = (Vec::new(), Vec::new());
        for event in events {
            // Errors that the response cannot list are dropped at once, because they would fill the memory.
            let problem = event.map(|event| readable.push(event)).err();
            problems.push(problem.map(|problem| listed.fit(Cow::Owned(problem)).into_owned()));
        }
        if atomic && readable.len() < problems.len() {
            let refused = problems.into_iter().enumerate().filter_map(|(index, problem)| Some((index, problem?)));
            let refused: Vec<(usize, Problem)> = refused.collect();
            let rejected: Vec<_> = refused.iter().map(|(index, problem)| RejectedEvent::of(*index, problem)).collect();
            sent.count(&rejected);
            return Err(Problem::batch_refused(refused.into_iter()));
        }
        let neighbours = if atomic { Atomicity::Atomic } else { Atomicity::PerEvent };
        Ok(Self { readable: UsageBatch { events: readable, neighbours }, places: Places { problems, facts, sent } })
    }
}

impl Places {
    /// Returns the JSON result of each event by position, and the rejected events, which the caller counts.
    fn results(&self, taken: BatchOutcome, listed: &mut ListedErrors) -> (Vec<String>, Vec<RejectedEvent>) {
        let mut taken_of = taken.results.into_iter();
        let untaken = taken.stopped_by.map_or_else(Problem::internal, Problem::from);
        let mut rejected = Vec::new();
        let place = |(index, unreadable): (usize, &Option<Problem>)| {
            let problem = match unreadable {
                Some(problem) => Cow::Borrowed(problem),
                None => match taken_of.next() {
                    Some(Ok(IngestOutcome::Recorded(view) | IngestOutcome::Updated(view))) => {
                        return (EVENT_ANSWER.render)(&view);
                    }
                    Some(Ok(IngestOutcome::Replayed(answer))) => return answer,
                    Some(Err(refusal)) => Cow::Owned(Problem::from(refusal)),
                    None => Cow::Borrowed(&untaken),
                },
            };
            if is_refusal(&problem) {
                rejected.push(RejectedEvent::of(index, &problem));
            }
            self.facts.problem(&listed.fit(problem))
        };
        let results = self.problems.iter().enumerate().map(place).collect();
        (results, rejected)
    }
}

/// The number of errors that a response can still list. All errors of an event are listed, or none.
#[derive(Clone, Copy, Debug)]
struct ListedErrors {
    left: usize,
}

impl Default for ListedErrors {
    fn default() -> Self {
        Self { left: MAX_LISTED_ERRORS }
    }
}

impl ListedErrors {
    /// Returns the next problem of the response. Once the errors of a problem do not fit, no later problem lists errors.
    fn fit<'p>(&mut self, problem: Cow<'p, Problem>) -> Cow<'p, Problem> {
        match self.left.checked_sub(problem.listed_errors().len()) {
            Some(left) => {
                self.left = left;
                problem
            }
            None => {
                self.left = 0;
                Cow::Owned(problem.into_owned().without_listed_errors())
            }
        }
    }
}

impl RequestContext {
    fn problem(&self, problem: &Problem) -> String {
        written(&problem.document(&self.path, &self.request_id))
    }
}

fn read_event(value: &Result<Value, Problem>, on_conflict: OnConflict) -> Result<NewUsageEvent, Problem> {
    Ok(NewUsageEvent { on_conflict, ..EventBody::read_event(value.as_ref().map_err(Clone::clone)?)? })
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
async fn answer_lines(call: Call, (mut lines, on_conflict): (Lines, OnConflict), answers: mpsc::UnboundedSender<Part>) {
    let (facts, mut taken, mut listed) = (&call.context, 0, ListedErrors::default());
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
        let recorded = record_lines(&call, (&arrived[..fits], on_conflict), taken > fits, &mut listed).await;
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

/// Records lines and returns the result of each. `listed` is the number of errors that the rest of the response can list.
///
/// # Errors
/// Returns the problem of the whole group.
async fn record_lines(
    call: &Call,
    (lines, on_conflict): (&[Bytes], OnConflict),
    goes_on: bool,
    listed: &mut ListedErrors,
) -> Result<Vec<String>, Problem> {
    let (lines, bytes): (Arc<[Bytes]>, usize) = (lines.into(), bytes_of(lines));
    let sent = SentEvents::of(call, SentPayload::Lines(Arc::clone(&lines)))?;
    let (facts, mut left) = (call.context.clone(), *listed);
    let parsed = call.parse(bytes, move || {
        let events = lines.iter().map(|line| read_event(&read_value(line), on_conflict));
        Batch::new(events, false, facts, sent, left)
    });
    let Batch { readable, places } = parsed.await?;
    let taken = call.submit_batch(readable.events, goes_on).await?;
    let render = move || {
        let (results, rejected) = places.results(taken, &mut left);
        places.sent.count(&rejected);
        (results, left)
    };
    let rendered = if is_large(bytes) { web::block(render).await.map_err(|_| Problem::internal())? } else { render() };
    *listed = rendered.1;
    Ok(rendered.0)
}

/// Sends one line per result; returns `false` if the receiver is dropped.
fn say(answers: &mpsc::UnboundedSender<Part>, results: &[String]) -> bool {
    answers.send(Part::Bytes(Bytes::from(lines_of(results)))).is_ok()
}

#[cfg(test)]
mod tests {
    use billing_domain::violation::Violations;

    use super::*;

    /// Returns the problem of an event with this number of errors.
    fn problem(errors: usize) -> Problem {
        let mut all = Violations::none();
        for index in 0..errors {
            all.add(&[index.to_string().as_str()], "wrong_type", "must be a string");
        }
        all.into()
    }

    /// Returns the number of errors that a response lists for each problem.
    fn listed(errors: &[usize]) -> Vec<usize> {
        let mut listed = ListedErrors::default();
        errors.iter().map(|errors| listed.fit(Cow::Owned(problem(*errors))).listed_errors().len()).collect()
    }

    #[test]
    fn a_response_lists_a_thousand_errors_and_then_only_codes() {
        assert_eq!(listed(&[100; 12]), [[100; 10].as_slice(), &[0; 2]].concat());
        let errors = [[100; 9].as_slice(), &[99, 2, 1, 1]].concat();
        assert_eq!(listed(&errors), [[100; 9].as_slice(), &[99, 0, 0, 0]].concat());
        let counted = listed(&[4; 10_000]);
        assert_eq!((counted.iter().sum::<usize>(), counted.iter().filter(|listed| **listed > 0).count()), (1_000, 250));
    }

    #[test]
    fn problems_that_were_shortened_early_are_shortened_in_the_response_too() {
        let mut early = ListedErrors::default();
        let problems: Vec<_> = (0..20).map(|_| early.fit(Cow::Owned(problem(60))).into_owned()).collect();
        let mut late = ListedErrors::default();
        assert_eq!(late.fit(Cow::Owned(problem(90))).listed_errors().len(), 90);
        let listed: Vec<usize> = problems.iter().map(|problem| late.fit(Cow::Borrowed(problem)).listed_errors().len()).collect();
        assert_eq!(listed, [[60; 15].as_slice(), &[0; 5]].concat());
    }
}
