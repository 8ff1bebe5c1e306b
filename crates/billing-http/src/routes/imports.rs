//! Handlers for usage event files and imports.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use billing_application::error::{ResourceKind, UseCaseError, UseCaseResult};
use billing_application::usage::{
    self, Atomicity, BatchOutcome, FileEvent, FileImportOptions, FileLine, ImportSummary, NewUsageEvent, RecordChunk,
    RejectedLine, UNDONE_PER_TRANSACTION, UndoResult, UndoStep, import_file, record_usage,
};
use billing_application::{Transactions, carry_out_in_parts};
use billing_domain::access::Principal;
use billing_domain::event_input::OnConflict;
use billing_domain::idempotency::StoredResponse;
use billing_domain::imports::ImportedFileFacts;
use billing_domain::refs::ImportRef;
use billing_domain::violation::Violations;
use billing_import::{DecimalSeparator, Delimiter, FileError, FileKind, FileName, ReadOptions, UsageFile, fingerprint};
use billing_json::hash;
use serde_json::{Value, json};

use crate::body::UploadedFile;
use crate::call::{Call, Reply};
use crate::refused;
use crate::respond::HttpReply;
use crate::state::HttpState;
use billing_api::dto::event_reader::in_default_shape;
use billing_api::dto::events::EVENT_ANSWER;
use billing_api::dto::imports::{ImportRejects, ImportResultJson, UndoResultJson};
use billing_api::dto::wire::written;
use billing_api::media_type::TSV;
use billing_api::problem::Problem;
use billing_api::query::imports::{ImportOptions, ImportParams};
use billing_api::stored_response::Success;

/// Time reserved for the response at the end of a request.
const TIME_TO_ANSWER: Duration = Duration::from_secs(5);

pub(crate) async fn import_usage(call: Call, file: UploadedFile) -> HttpReply {
    Ok(import(call, file).await?)
}

pub(crate) async fn import(call: Call, file: UploadedFile) -> Reply {
    let mut asked = call.query.read::<ImportParams>()?.asked();
    if file.media_type == TSV {
        asked.reading.delimiter.get_or_insert(Delimiter::TAB);
    }
    let (is_keyed, state, deadline) = (call.key.is_some(), call.state.clone(), call.context.deadline.into_std());
    let until = if is_keyed { None } else { deadline.checked_sub(TIME_TO_ANSWER) };
    let read = actix_web::web::block(move || {
        check(&file, &asked)?;
        let content = is_keyed.then(|| hash(Some(&stated(&asked, &file))));
        Ok::<_, Problem>((file, asked, content))
    });
    let (file, asked, content) = read.await.map_err(|_| Problem::internal())??;
    let stop: Arc<OnceLock<Problem>> = Arc::default();
    let noted = Arc::clone(&stop);
    let taken = call.once_for(content, move |services, request| {
        carry_out_in_parts(services, request, answer, |transactions| {
            let mut is_begun = false;
            let mut record = |transactions: &mut Transactions<'_, '_>, events: Vec<NewUsageEvent>| match transactions {
                // With a key, the whole file is one transaction, so the writer cannot interleave other requests.
                Transactions::Joined(cx) => {
                    let results = record_usage(cx, &events, Atomicity::PerEvent, EVENT_ANSWER)?;
                    Ok(BatchOutcome { results, stopped_by: None })
                }
                Transactions::Separate(..) => {
                    let goes_on = std::mem::replace(&mut is_begun, true);
                    state.writer().record(request.principal, events, EVENT_ANSWER, (deadline, goes_on))
                }
            };
            let may_go_on = || until.is_none_or(|until| Instant::now() < until);
            let result = take(transactions, (&state, request.principal), (&file, &asked), &may_go_on, &mut record)?;
            if let Some(problem) = result.stop() {
                // The earlier lines stay stored, so this is no error of the use case, which would have changed nothing.
                drop(noted.set(problem));
            }
            Ok(result)
        })
    });
    let reply = taken.await?;
    stop.get().cloned().map_or(Ok(reply), Err)
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
fn stated(asked: &ImportOptions, file: &UploadedFile) -> Value {
    let value = |bytes: &[u8]| billing_json::read(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into());
    let whole = match file.kind {
        FileKind::Csv => String::from_utf8_lossy(&file.bytes).into(),
        FileKind::Ndjson => file.bytes.split(|byte| *byte == b'\n').map(value).collect(),
        FileKind::Json => value(&file.bytes),
    };
    let ReadOptions { format_name, name, delimiter, columns, constants, decimal } = &asked.reading;
    let mut stated = json!({
        "file": whole,
        "type": file.media_type,
        "name": name.as_ref().map(FileName::as_str),
        "format_name": format_name,
        "delimiter": delimiter.map(|delimiter| delimiter.as_char().to_string()),
        "dry_run": asked.dry_run,
    });
    // Defaults are omitted, so that the fingerprints of requests stored before these options were added stay the same.
    if !columns.is_empty() {
        stated["columns"] = columns.as_json();
    }
    if !constants.is_empty() {
        stated["constants"] = constants.as_json();
    }
    if asked.on_conflict == OnConflict::Update {
        stated["on_conflict"] = "UPDATE".into();
    }
    if *decimal != DecimalSeparator::Point {
        stated["decimal"] = decimal.as_char().to_string().into();
    }
    if asked.from_line > 1 {
        stated["from_line"] = asked.from_line.into();
    }
    stated
}

/// Reads the file to its end before any event is stored.
fn check(file: &UploadedFile, asked: &ImportOptions) -> Result<(), Problem> {
    let malformed = |error: FileError| Problem::malformed("malformed_file", format!("{error}; nothing was stored"));
    let mut lines = open(file, asked).map_err(malformed)?;
    while let Some(FileLine { number, event, .. }) = lines.next_line().map_err(malformed)? {
        if number >= asked.from_line
            && let Ok(FileEvent { known_by: None, event_ref: None, .. }) = event
        {
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

/// Imports a file that [`check`] has read. Counts the rejected events.
fn take(
    transactions: &mut Transactions<'_, '_>,
    (state, principal): (&HttpState, &Principal),
    (sent, asked): (&UploadedFile, &ImportOptions),
    may_go_on: &dyn Fn() -> bool,
    record: &mut RecordChunk<'_>,
) -> UseCaseResult<ImportResultJson> {
    let unreadable = || UseCaseError::InvariantViolation("a file that was read can't be read again");
    let mut file = open(sent, asked).map_err(|_| unreadable())?;
    let (bytes, sha256) = fingerprint(&*sent.bytes).map_err(|_| unreadable())?;
    let name = asked.reading.name.as_ref().map(|name| name.as_str().to_owned());
    let options = FileImportOptions {
        format: asked.format.clone(),
        file: ImportedFileFacts { name, bytes, sha256 },
        on_conflict: asked.on_conflict,
        dry_run: asked.dry_run,
        from_line: asked.from_line,
        lines_per_transaction: None,
        may_go_on,
        retry_pause: None,
    };
    let mut rejects = ImportRejects::default();
    let mut report = |rejected: Vec<RejectedLine>, _: &ImportSummary| {
        for RejectedLine { number, item, text, event, error } in rejected {
            let problem = Problem::from(error);
            rejects.add(number, item, &problem);
            if !asked.dry_run {
                let event = refused::read(event.unwrap_or(text).as_bytes());
                state.count_refused(principal.organization(), &event, &problem, principal.request_id().cloned());
            }
        }
        Ok(())
    };
    let is_default = asked.format.is_default();
    let mut lines = std::iter::from_fn(|| file.next_line().transpose());
    let mut lines = lines.by_ref().map(|line| line.map(|line| if is_default { in_default_shape(line) } else { line }));
    let metrics = state.metrics();
    let imported = metrics.count_import(asked.dry_run, || import_file(transactions, options, &mut lines, record, &mut report))?;
    let columns = if asked.dry_run { file.columns() } else { Vec::new() };
    Ok(ImportResultJson::new(imported, asked.from_line, rejects, &columns))
}
