//! Handlers for usage event files and imports.

use std::time::{Duration, Instant};

use billing_application::error::{ResourceKind, UseCaseError, UseCaseResult};
use billing_application::usage::{
    self, Atomicity, BatchOutcome, EVENTS_PER_TRANSACTION, FileImport, MAX_BATCH_EVENTS, NewUsageEvent, RecordChunk,
    UNDONE_PER_TRANSACTION, UndoResult, UndoStep, record_usage,
};
use billing_application::{Transactions, carry_out_in_parts};
use billing_domain::access::Principal;
use billing_domain::event_input::FileEvent;
use billing_domain::idempotency::StoredResponse;
use billing_domain::imports::ImportedFileFacts;
use billing_domain::page::Page;
use billing_domain::refs::ImportRef;
use billing_domain::violation::Violations;
use billing_import::{FileError, FileKind, FileLine, FileName, ReadOptions, UsageFile, fingerprint};
use serde_json::{Value, json};

use crate::body::UploadedFile;
use crate::call::{Call, Reply};
use crate::dto::imports::{ImportJson, ImportRejects, ImportResultJson, UndoResultJson, import_answer};
use crate::dto::wire::written;
use crate::problem::Problem;
use crate::query::imports::{ImportListParams, ImportOptions, ImportParams};
use crate::refused;
use crate::state::HttpState;
use crate::stored_response::Success;

/// Time reserved for the response at the end of a request.
const TIME_TO_ANSWER: Duration = Duration::from_secs(5);

pub(crate) async fn import_usage(call: Call, file: UploadedFile) -> Reply {
    let asked = call.query.read::<ImportParams>()?.asked();
    let (is_keyed, state, deadline) = (call.key.is_some(), call.state.clone(), call.context.deadline.into_std());
    let until = if is_keyed { None } else { deadline.checked_sub(TIME_TO_ANSWER) };
    let read = actix_web::web::block(move || {
        check(&file, &asked)?;
        let said = is_keyed.then(|| said(&asked, &file));
        Ok::<_, Problem>((file, asked, said))
    });
    let (file, asked, said) = read.await.map_err(|_| Problem::internal())??;
    let taken = call.once_for(said.as_ref(), move |services, request| {
        carry_out_in_parts(services, request, answer, |transactions| {
            let mut is_begun = false;
            let mut record = |transactions: &mut Transactions<'_, '_>, events: Vec<NewUsageEvent>| match transactions {
                // With a key, the whole file is one transaction, so the writer cannot interleave other requests.
                Transactions::Joined(cx) => {
                    let results = record_usage(cx, &events, Atomicity::PerEvent, &import_answer)?;
                    Ok(BatchOutcome { results, stopped_by: None })
                }
                Transactions::Separate(..) => {
                    let goes_on = std::mem::replace(&mut is_begun, true);
                    state.writer().record(request.principal, events, import_answer, (deadline, goes_on))
                }
            };
            take(transactions, (&state, request.principal), (&file, &asked), until, &mut record)
        })
    });
    taken.await
}

pub(crate) async fn list_imports(call: Call) -> Reply {
    let params: ImportListParams = call.query.read()?;
    let (filter, page) = (params.filter(), params.page.0);
    let found = call.look_up(move |cx| usage::list_imports(cx, &filter, page)).await?;
    let told = Page { total: found.total, items: found.items.into_iter().map(|import| (import, None)).collect() };
    Ok(call.query.answer::<_, ImportJson>(page, &told))
}

pub(crate) async fn get_import(call: Call) -> Reply {
    let import_ref = call.reference(ImportRef::parse, ResourceKind::Import)?;
    call.read::<ImportJson, _>(move |cx| usage::get_import(cx, import_ref).map(|found| (found.import, Some(found.left)))).await
}

pub(crate) async fn undo_import(call: Call) -> Reply {
    let import_ref = call.reference(ImportRef::parse, ResourceKind::Import)?;
    let (is_keyed, state, deadline) = (call.key.is_some(), call.state.clone(), call.context.deadline.into_std());
    let until = deadline.checked_sub(TIME_TO_ANSWER);
    let undone = call.once(move |services, request| {
        let render = |undone: &UndoResult| Success::json(written(&UndoResultJson::from(undone))).kept();
        carry_out_in_parts(services, request, render, |transactions| {
            // With a key, the undo is one transaction, so the writer cannot interleave other requests.
            let may_go_on = || is_keyed || until.is_some_and(|until| Instant::now() < until);
            let mut take_turn = |transactions: &mut Transactions<'_, '_>, step: UndoStep| match transactions {
                Transactions::Joined(_) => step.carry_out(transactions),
                Transactions::Separate(..) => {
                    let principal = request.principal.clone();
                    state.writer().run_queued(request.principal, UNDONE_PER_TRANSACTION, deadline, move |services| {
                        step.carry_out(&mut Transactions::Separate(services, Some(&principal)))
                    })
                }
            };
            usage::undo_import(transactions, import_ref, &may_go_on, &mut take_turn)
        })
    });
    undone.await
}

fn answer(result: &ImportResultJson) -> StoredResponse {
    Success::json(written(result)).kept()
}

/// Returns the request's content for the idempotency fingerprint. JSON is compared by value.
fn said(asked: &ImportOptions, file: &UploadedFile) -> Value {
    let value = |bytes: &[u8]| billing_json::read(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into());
    let whole = match file.kind {
        FileKind::Csv => String::from_utf8_lossy(&file.bytes).into(),
        FileKind::Ndjson => file.bytes.split(|byte| *byte == b'\n').map(value).collect(),
        FileKind::Json => value(&file.bytes),
    };
    let ReadOptions { format_name, name, delimiter, columns } = &asked.reading;
    let mut said = json!({
        "file": whole,
        "type": file.media_type,
        "name": name.as_ref().map(FileName::as_str),
        "format_name": format_name,
        "delimiter": delimiter.map(|delimiter| delimiter.as_char().to_string()),
        "dry_run": asked.dry_run,
    });
    // Omitted when empty, so that the fingerprints of requests stored before this option was added stay the same.
    if !columns.is_empty() {
        said["columns"] = columns.as_json();
    }
    said
}

/// Reads the file to its end before any event is stored.
fn check(file: &UploadedFile, asked: &ImportOptions) -> Result<(), Problem> {
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

fn open<'f>(file: &'f UploadedFile, asked: &ImportOptions) -> Result<UsageFile<&'f [u8]>, FileError> {
    UsageFile::open(file.bytes.as_ref(), file.kind, asked.reading.clone())
}

/// Records lines. Once something is stored, a timeout or a store failure stops the import instead of failing the request.
fn take(
    transactions: &mut Transactions<'_, '_>,
    (state, principal): (&HttpState, &Principal),
    (sent, asked): (&UploadedFile, &ImportOptions),
    until: Option<Instant>,
    record: &mut RecordChunk<'_>,
) -> UseCaseResult<ImportResultJson> {
    let unreadable = |()| UseCaseError::InvariantViolation("a file that was read can't be read again");
    let mut file = open(sent, asked).map_err(|_| unreadable(()))?;
    let (bytes, sha256) = fingerprint(&*sent.bytes).map_err(|_| unreadable(()))?;
    let facts = ImportedFileFacts { name: asked.reading.name.as_ref().map(|name| name.as_str().to_owned()), bytes, sha256 };
    let mut import = FileImport::begin(transactions, asked.format.clone(), facts, asked.dry_run)?;
    let (mut rejects, mut stopped, mut is_first) = (ImportRejects::default(), None, true);
    // A dry run computes document totals only within one transaction.
    let step = if asked.dry_run { MAX_BATCH_EVENTS } else { EVENTS_PER_TRANSACTION };
    loop {
        let mut lines = Vec::new();
        while lines.len() < step
            && let Some(line) = file.next_line().map_err(|_| unreadable(()))?
        {
            lines.push(line);
        }
        let Some(FileLine { number: first, .. }) = lines.first() else { break };
        let first = *first;
        // Earlier lines are stored, so the response must report them.
        let may_stop = !std::mem::take(&mut is_first) && until.is_some();
        if may_stop && until.is_some_and(|until| Instant::now() >= until) {
            stopped = Some((first, Problem::import_out_of_time()));
            break;
        }
        match take_lines(transactions, &mut import, lines, record) {
            Ok(ImportChunk { refused, stopped: stopped_at }) => {
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
            Err(error) => {
                if let Err(error) = import.discard(transactions) {
                    tracing::warn!(%error, "an import of nothing could not be forgotten");
                }
                return Err(error);
            }
        }
    }
    let stopped_at = stopped.as_ref().map(|(line, _)| *line);
    match import.end(transactions, rejects.count(), stopped_at) {
        // The events are stored, so the response must report them.
        Err(error) if until.is_some() => tracing::error!(%error, "the end of an import could not be kept"),
        ended => ended?,
    }
    let columns = if asked.dry_run { file.columns() } else { Vec::new() };
    Ok(ImportResultJson::new(&import, rejects, stopped, &columns))
}

/// The outcome of a group of lines.
struct ImportChunk {
    /// Rejected lines in order, with their events.
    refused: Vec<(u64, Problem, Value)>,
    /// The first line that was not processed, if the import stopped.
    stopped: Option<(u64, UseCaseError)>,
}

fn take_lines(
    transactions: &mut Transactions<'_, '_>,
    import: &mut FileImport,
    lines: Vec<FileLine>,
    record: &mut RecordChunk<'_>,
) -> UseCaseResult<ImportChunk> {
    let (mut events, mut refused) = (Vec::with_capacity(lines.len()), Vec::new());
    for FileLine { number, text, event } in lines {
        match event {
            Ok(event) => events.push(event),
            Err(violations) => refused.push((number, Problem::from(violations), refused::read(text.as_bytes()))),
        }
    }
    let usage::ImportChunkResult { refused: taken, stopped } = import.take(transactions, &events, record)?;
    let event = |line: u64| events.iter().find(|event: &&FileEvent| event.line == line);
    let said = |line| event(line).map_or(Value::Null, |event| refused::read(event.event.as_bytes()));
    refused.extend(taken.into_iter().map(|(line, error)| (line, Problem::from(error), said(line))));
    // Later lines are reported when the file is sent again.
    refused.retain(|(line, ..)| stopped.as_ref().is_none_or(|(stopped, _)| line < stopped));
    refused.sort_by_key(|(line, ..)| *line);
    Ok(ImportChunk { refused, stopped })
}
