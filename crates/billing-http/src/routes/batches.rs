//! Batches of usage events, whole or line by line.

use actix_web::HttpResponse;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::Bytes;
use billing_application::usage::{self, Neighbours, NewUsageEvent, TakenUsage};
use tokio::sync::mpsc;

use super::Caller;
use crate::body::{BatchBody, JSON, Lines, NDJSON, read_line};
use crate::channel::{ChannelBody, Part};
use crate::dto::batch::{Batch, BatchBody as BatchJson, BatchResultJson, MAX_BATCH_EVENTS, event_answer, written};
use crate::dto::events::EventBody;
use crate::middleware::Facts;
use crate::problem::Problem;
use crate::query::Query;

/// Lines taken in one transaction: enough that each costs little, few enough that none waits long for its answer.
const LINES_PER_TRANSACTION: usize = 1_000;

/// Takes up to 10,000 usage events at once, in one transaction; each is put on its document or refused in its place.
///
/// As NDJSON, events are taken and answered line by line while they arrive, several in a transaction; `atomic` is a query
/// parameter there.
#[utoipa::path(post, path = "/api/usage/event/batch", tag = "usage",
    params(("atomic" = Option<bool>, Query, description = "For NDJSON: whether one refused line refuses all")),
    request_body(content(
        (BatchJson = "application/json"),
        (String = "application/x-ndjson")
    )),
    responses((status = 200, description = "One result for each event, in the order given", content(
        (BatchResultJson = "application/json"),
        (String = "application/x-ndjson")
    ))))]
pub(crate) async fn record_batch(caller: Caller, facts: Facts, query: Query, body: BatchBody) -> Result<HttpResponse, Problem> {
    match body {
        BatchBody::Whole(body) => {
            let results = take_whole(caller, &facts, BatchJson::read(&body)?).await?;
            Ok(HttpResponse::Ok().content_type(JSON).body(format!("{{\"results\":[{}]}}", results.join(","))))
        }
        BatchBody::Lines(lines) if query.atomic()? => {
            let results = take_whole(caller, &facts, all_lines(lines).await?).await?;
            let lines: String = results.iter().flat_map(|result| [result, "\n"]).collect();
            Ok(HttpResponse::Ok().content_type(NDJSON).body(lines))
        }
        BatchBody::Lines(lines) => {
            let (answers, body) = mpsc::unbounded_channel();
            actix_web::rt::spawn(answer_lines(caller, facts, lines, answers));
            Ok(HttpResponse::Ok().insert_header((CONTENT_TYPE, NDJSON)).body(ChannelBody(body)))
        }
    }
}

/// Reads lines that are taken all or not at all.
async fn all_lines(mut lines: Lines) -> Result<Batch, Problem> {
    let arrived = lines.next(MAX_BATCH_EVENTS + 1).await?;
    if arrived.len() > MAX_BATCH_EVENTS {
        return Err(Problem::too_many_events(MAX_BATCH_EVENTS));
    }
    let events = arrived.iter().map(|line| Ok(EventBody::read_in_batch(&read_line(line)?)));
    Ok(Batch { events: events.collect::<Result<_, Problem>>()?, atomic: true })
}

/// Takes a batch in one transaction, and answers what became of each event.
async fn take_whole(caller: Caller, facts: &Facts, batch: Batch) -> Result<Vec<String>, Problem> {
    let facts = facts.clone();
    let events = batch.events.into_iter().map(|event| event.map_err(Problem::from)).collect();
    let neighbours = if batch.atomic { Neighbours::AllOrNone } else { Neighbours::Unaffected };
    let results = take(caller, events, neighbours).await?;
    let refused = || results.iter().enumerate().filter_map(|(index, result)| Some((index, result.as_ref().err()?)));
    if batch.atomic && refused().next().is_some() {
        return Err(Problem::batch_refused(refused()));
    }
    Ok(results.into_iter().map(|result| answer(result, &facts)).collect())
}

/// Takes lines while they arrive, and answers those of a transaction when it is stored.
async fn answer_lines(caller: Caller, facts: Facts, mut lines: Lines, answers: mpsc::UnboundedSender<Part>) {
    let mut taken = 0;
    loop {
        let arrived = match lines.next(LINES_PER_TRANSACTION).await {
            Ok(arrived) => arrived,
            Err(problem) => {
                say(&answers, [Err(problem)], &facts);
                break;
            }
        };
        if arrived.is_empty() {
            break;
        }
        let fits = arrived.len().min(MAX_BATCH_EVENTS - taken);
        taken += fits;
        let events: Vec<_> = arrived[..fits].iter().map(|line| read_event(line)).collect();
        let mut results = match take(caller.clone(), events, Neighbours::Unaffected).await {
            Ok(results) => results,
            // What refused the transaction is said of each of its lines.
            Err(problem) => vec![Err(problem); fits],
        };
        let is_too_many = arrived.len() > fits;
        if is_too_many {
            results.push(Err(Problem::too_many_events(MAX_BATCH_EVENTS)));
        }
        if !say(&answers, results, &facts) {
            return;
        }
        if is_too_many {
            break;
        }
    }
    // Nobody to tell means nobody is waiting for it.
    answers.send(Part::End).ok();
}

fn read_event(line: &[u8]) -> Result<NewUsageEvent, Problem> {
    Ok(EventBody::read_in_batch(&read_line(line)?)?)
}

/// Sends a line for each of some results; `false` when nobody listens any more.
fn say(answers: &mpsc::UnboundedSender<Part>, results: impl IntoIterator<Item = Result<String, Problem>>, facts: &Facts) -> bool {
    let lines: String = results.into_iter().flat_map(|result| [answer(result, facts), "\n".to_owned()]).collect();
    answers.send(Part::Bytes(Bytes::from(lines))).is_ok()
}

fn answer(result: Result<String, Problem>, facts: &Facts) -> String {
    result.unwrap_or_else(|problem| written(&problem.document(&facts.path, &facts.request_id)))
}

/// Takes the events that could be read, in one transaction; each has its answer or its problem, in its place. Where all or
/// none are to be taken, one that couldn't be read is enough for none.
async fn take(
    caller: Caller,
    events: Vec<Result<NewUsageEvent, Problem>>,
    neighbours: Neighbours,
) -> Result<Vec<Result<String, Problem>>, Problem> {
    if neighbours == Neighbours::AllOrNone && events.iter().any(Result::is_err) {
        return Ok(events.into_iter().map(|event| event.map(|_| String::new())).collect());
    }
    caller
        .run(move |services, principal| {
            let (mut places, mut readable) = (Vec::with_capacity(events.len()), Vec::with_capacity(events.len()));
            for event in events {
                places.push(event.map(|event| readable.push(event)));
            }
            let taken = usage::record_usage(services, principal, &readable, neighbours, &event_answer)?;
            let mut taken = taken.into_iter();
            let result = |place: Result<(), Problem>| {
                place.and_then(|()| match taken.next() {
                    Some(Ok(TakenUsage::Now(view))) => Ok(event_answer(&view)),
                    Some(Ok(TakenUsage::Before(answer))) => Ok(answer),
                    Some(Err(refusal)) => Err(Problem::from(refusal)),
                    None => Err(Problem::internal()),
                })
            };
            Ok(places.into_iter().map(result).collect())
        })
        .await
}
