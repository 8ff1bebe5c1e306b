//! Files of usage events.

use std::time::{Duration, Instant};

use billing_application::Services;
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::idempotency::carry_out;
use billing_application::usage::{
    self, EVENTS_PER_TRANSACTION, FileImport, Neighbours, NewUsageEvent, TakenBatch, map_events, record_usage,
};
use billing_domain::access::Principal;
use billing_domain::idempotency::KeptAnswer;
use billing_domain::reported::FileEvent;
use billing_domain::violation::Violations;
use billing_import::{FileError, FileKind, FileLine, FileName, Reading, UsageFile};
use serde_json::{Value, json};

use super::OnceAnswer;
use crate::body::SentFile;
use crate::caller::Caller;
use crate::dto::imports::{ImportRejects, ImportResultJson, import_answer};
use crate::dto::wire::written;
use crate::kept::Success;
use crate::middleware::Facts;
use crate::problem::Problem;
use crate::query::Query;
use crate::query::imports::{ImportAsked, ImportParams};
use crate::refused;
use crate::state::HttpState;

/// What an answer needs at the end of the time that a request has.
const TIME_TO_ANSWER: Duration = Duration::from_secs(5);

pub(crate) async fn import_usage(caller: Caller, facts: Facts, query: Query, file: SentFile) -> OnceAnswer {
    let asked = query.read::<ImportParams>()?.asked();
    let (is_keyed, writing, deadline) = (caller.is_keyed(), caller.state.clone(), facts.deadline.into_std());
    let counting = caller.state.clone();
    let until = if is_keyed { None } else { facts.deadline.into_std().checked_sub(TIME_TO_ANSWER) };
    let read = actix_web::web::block(move || {
        check(&file, &asked)?;
        let said = is_keyed.then(|| said(&asked, &file));
        Ok::<_, Problem>((file, asked, said))
    });
    let (file, asked, said) = read.await.map_err(|_| Problem::internal())??;
    let taken = caller.once(said.as_ref()).carried_out(move |services, principal, request| {
        let prepare = |services: &Services<'_>, principal: &Principal| {
            // A format that isn't there is no fault of any line.
            map_events(services, principal, &asked.format, &[]).map(|_| ())
        };
        let take = |services: &Services<'_>, principal: &Principal, (): &()| {
            let mut is_begun = false;
            // Under a key the whole file is one transaction, which nobody's turn divides.
            let mut record = |events: Vec<NewUsageEvent>| {
                if is_keyed {
                    let results = record_usage(services, principal, &events, Neighbours::Unaffected, &import_answer)?;
                    return Ok(TakenBatch { results, stopped_by: None });
                }
                writing.writer().record(principal, events, import_answer, (deadline, std::mem::replace(&mut is_begun, true)))
            };
            take((services, principal), &counting, (&file, &asked), until, &mut record)
        };
        carry_out(services, principal, request, prepare, take, |result| Ok(answer(&result)))
    });
    taken.await
}

fn answer(result: &ImportResultJson) -> KeptAnswer {
    Success::json(written(result)).kept()
}

/// What the request says, by which it is known under its key: of JSON what it is as such.
fn said(asked: &ImportAsked, file: &SentFile) -> Value {
    let value = |bytes: &[u8]| billing_json::read(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into());
    let said = match file.kind {
        FileKind::Csv => String::from_utf8_lossy(&file.bytes).into(),
        FileKind::Ndjson => file.bytes.split(|byte| *byte == b'\n').map(value).collect(),
        FileKind::Json => value(&file.bytes),
    };
    let Reading { format_name, name, delimiter } = &asked.reading;
    json!({
        "file": said,
        "type": file.media_type,
        "name": name.as_ref().map(FileName::as_str),
        "format_name": format_name,
        "delimiter": delimiter.map(|delimiter| delimiter.as_char().to_string()),
        "dry_run": asked.dry_run,
    })
}

/// Reads the file to its end before anything of it is stored.
fn check(file: &SentFile, asked: &ImportAsked) -> Result<(), Problem> {
    let malformed = |error: FileError| Problem::malformed("malformed_file", format!("{error}; nothing was stored"));
    let mut lines = open(file, asked).map_err(malformed)?;
    while let Some(FileLine { number, event, .. }) = lines.next_line().map_err(malformed)? {
        if let Ok(FileEvent { known_by: None, event_ref: None, .. }) = event {
            let place = if file.kind == FileKind::Json { "element" } else { "line" };
            let detail = format!(
                "must be given, because the event of {place} {number} has no idempotency_key to be known by: name the file, or give \
                 every event a key"
            );
            return Err(Violations::one(&["name"], "required", detail).into());
        }
    }
    Ok(())
}

fn open<'f>(file: &'f SentFile, asked: &ImportAsked) -> Result<UsageFile<&'f [u8]>, FileError> {
    UsageFile::open(file.bytes.as_ref(), file.kind, asked.reading.clone())
}

/// Takes lines, and stops where the time is up or the store fails, once something is stored.
fn take(
    (services, principal): (&Services<'_>, &Principal),
    state: &HttpState,
    (file, asked): (&SentFile, &ImportAsked),
    until: Option<Instant>,
    record: &mut dyn FnMut(Vec<NewUsageEvent>) -> UseCaseResult<TakenBatch>,
) -> UseCaseResult<ImportResultJson> {
    let unreadable = |_| UseCaseError::InvariantViolation("a file that was read can't be read again");
    let mut file = open(file, asked).map_err(unreadable)?;
    let mut import = FileImport::new(asked.format.clone(), asked.dry_run);
    let (mut rejects, mut stopped, mut is_first) = (ImportRejects::default(), None, true);
    loop {
        let mut lines = Vec::new();
        while lines.len() < EVENTS_PER_TRANSACTION
            && let Some(line) = file.next_line().map_err(unreadable)?
        {
            lines.push(line);
        }
        let Some(FileLine { number: first, .. }) = lines.first() else { break };
        let first = *first;
        // What came before is stored, and the caller has to know.
        let may_stop = !std::mem::take(&mut is_first) && until.is_some();
        if may_stop && until.is_some_and(|until| Instant::now() >= until) {
            stopped = Some((first, Problem::import_out_of_time()));
            break;
        }
        match take_lines((services, principal), &mut import, lines, record) {
            Ok(TakenLines { refused, stopped: stopped_at }) => {
                for (line, problem, event) in refused {
                    rejects.add(line, &problem);
                    if !asked.dry_run {
                        state.count_refused(principal.organization(), &event, &problem, principal.request_id().cloned());
                    }
                }
                if let Some((line, error)) = stopped_at {
                    stopped = Some((line, Problem::from(error)));
                    break;
                }
            }
            Err(error) if may_stop => {
                stopped = Some((first, Problem::from(error)));
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let name = asked.reading.name.as_ref().map(FileName::as_str);
    match import.tell(services, principal, name, rejects.count()) {
        // The events are stored, and the caller has to know.
        Err(error) if until.is_some() => tracing::error!(%error, "the audit log could not be told of an import"),
        told => told?,
    }
    Ok(ImportResultJson::new(asked.dry_run, import.summary(), rejects, stopped))
}

/// What became of lines.
struct TakenLines {
    /// Those that are refused, in their order, each with its event.
    refused: Vec<(u64, Problem, Value)>,
    /// The first that wasn't taken, where something stopped them.
    stopped: Option<(u64, UseCaseError)>,
}

fn take_lines(
    (services, principal): (&Services<'_>, &Principal),
    import: &mut FileImport,
    lines: Vec<FileLine>,
    record: &mut dyn FnMut(Vec<NewUsageEvent>) -> UseCaseResult<TakenBatch>,
) -> UseCaseResult<TakenLines> {
    let (mut events, mut refused) = (Vec::with_capacity(lines.len()), Vec::new());
    for FileLine { number, text, event } in lines {
        match event {
            Ok(event) => events.push(event),
            Err(violations) => refused.push((number, Problem::from(violations), refused::read(text.as_bytes()))),
        }
    }
    let usage::TakenLines { refused: taken, stopped } = import.take(services, principal, &events, record)?;
    let event = |line: u64| events.iter().find(|event: &&FileEvent| event.line == line);
    let said = |line| event(line).map_or(Value::Null, |event| refused::read(event.event.as_bytes()));
    refused.extend(taken.into_iter().map(|(line, error)| (line, Problem::from(error), said(line))));
    // What comes after is told when it is sent again.
    refused.retain(|(line, ..)| stopped.as_ref().is_none_or(|(stopped, _)| line < stopped));
    refused.sort_by_key(|(line, ..)| *line);
    Ok(TakenLines { refused, stopped })
}
