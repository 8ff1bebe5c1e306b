//! `import`: imports the events of a file, line by line, directly into the database.
//!
//! An interrupted import can be repeated and continues. An imported line is identified by its event's key or, without a
//! key, by the import's name and the line number.

mod rejects;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use billing_api::dto::event_reader::in_default_shape;
use billing_api::dto::events::EVENT_ANSWER;
use billing_application::formats::NamedFormat;
use billing_application::organizations::organization_named;
use billing_application::usage::{
    AffectedDocument, Atomicity, BatchOutcome, ChangedTotal, FileImportOptions, ImportStop, ImportSummary, ImportedFile,
    NewUsageEvent, RejectedLine, import_file, record_usage,
};
use billing_application::{Transactions, UseCase, run};
use billing_domain::access::Principal;
use billing_domain::imports::ImportedFileFacts;
use billing_import::{ColumnMap, ConstantFields, FileError, FileKind, FileName, ReadOptions, UsageFile, fingerprint};
use flate2::bufread::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressStyle};

use self::rejects::Rejects;
use crate::composition;
use crate::failure::{CommandError, CommandResult};
use crate::settings::ImportSettings;
use crate::{say, text};

/// The pause before a transaction that conflicts with others is repeated.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The maximum number of documents that are listed individually.
const MAX_NAMED_DOCUMENTS: usize = 100;

#[expect(clippy::too_many_lines, reason = "the steps of one command, in their order")]
pub(crate) fn import(settings: &ImportSettings) -> CommandResult<()> {
    let format_name = text("--format", &settings.format)?;
    let format = NamedFormat::Name(format_name.clone());
    let is_default = format.is_default();
    let name = import_name(settings)?;
    let reading = ReadOptions {
        format_name: (!is_default).then(|| format_name.as_str().to_owned()),
        name: Some(name.clone()),
        delimiter: settings.delimiter,
        columns: ColumnMap::default(),
        constants: ConstantFields::default(),
        decimal: settings.decimal,
    };
    let read_bytes = Arc::new(AtomicU64::new(0));
    let inner = File::open(&settings.file)
        .map_err(|error| CommandError::Setting(format!("cannot read {}: {error}", settings.file.display())))?;
    let counted = decompressed(ProgressReader { inner, read_bytes: Arc::clone(&read_bytes) });
    let counted = counted.map_err(|error| unreadable(&settings.file, &error.into()))?;
    let mut file = UsageFile::open(counted, kind(settings)?, reading).map_err(|error| unreadable(&settings.file, &error))?;
    let organization = text("--organization", &settings.organization)?;
    let services = composition::offline(composition::open_as_it_is(&settings.store)?)?;
    let organization = organization_named(&services, &organization)?.id;
    let principal = Principal::of_command_line(organization);
    let whole = File::open(&settings.file).and_then(decompressed);
    let (bytes, sha256) = whole.and_then(fingerprint).map_err(|error| unreadable(&settings.file, &error.into()))?;
    let rejects_path = settings.rejects.clone().unwrap_or_else(|| with_suffix(&settings.file, ".rejects.ndjson"));
    if is_same_file(&settings.file, &rejects_path) {
        return Err(CommandError::Setting("--rejects must not name the imported file".to_owned()));
    }
    let options = FileImportOptions {
        format,
        file: ImportedFileFacts { name: Some(name.as_str().to_owned()), bytes, sha256 },
        on_conflict: settings.on_conflict.into(),
        dry_run: settings.dry_run,
        from_line: settings.from_line,
        lines_per_transaction: settings.lines_per_transaction.map(usize::from),
        may_go_on: &|| true,
        retry_pause: Some(RETRY_PAUSE),
    };
    let mut lines = std::iter::from_fn(|| file.next_line().map_err(|error| unreadable(&settings.file, &error)).transpose());
    let mut lines = lines.by_ref().map(|line| line.map(|line| if is_default { in_default_shape(line) } else { line }));
    let mut record = |_: &mut Transactions<'_, '_>, events: Vec<NewUsageEvent>| {
        let results =
            run(&services, &principal, UseCase::RecordUsage, |cx| record_usage(cx, &events, Atomicity::PerEvent, EVENT_ANSWER))?;
        Ok(BatchOutcome { results, stopped_by: None })
    };
    // An import that is rejected as a whole keeps the file of an earlier import.
    let mut rejects = None;
    let progress = progress_bar(&settings.file);
    let mut report = |rejected: Vec<RejectedLine>, summary: &ImportSummary| {
        let rejects = match &mut rejects {
            Some(rejects) => rejects,
            none => none.insert(Rejects::at(rejects_path.clone())?),
        };
        for RejectedLine { number, item, text, error, .. } in rejected {
            rejects.add((number, item), error.to_string().trim_start(), &text)?;
        }
        progress.set_position(read_bytes.load(Ordering::Relaxed));
        progress.set_message(format!("{} events", summary.recorded + summary.updated + summary.already_there));
        Ok(())
    };
    let transactions = &mut Transactions::Separate(&services, Some(&principal));
    let imported = import_file(transactions, options, &mut lines, &mut record, &mut report)?;
    progress.finish_and_clear();
    match rejects {
        Some(rejects) => rejects.finish()?,
        None => Rejects::at(rejects_path.clone())?.finish()?,
    }
    let ImportedFile { summary, refused, stopped, .. } = imported;
    if let Some((_, ImportStop::Caller(error @ CommandError::Setting(_)))) = stopped {
        return Err(error);
    }
    tell(&summary, refused, settings.dry_run)?;
    match (stopped, refused) {
        (Some((_, ImportStop::Caller(error))), _) => Err(error),
        (Some((_, ImportStop::Failed(error))), _) => Err(error.into()),
        (Some((_, ImportStop::OutOfTime)) | None, 0) => Ok(()),
        (Some((_, ImportStop::OutOfTime)) | None, _) => {
            Err(CommandError::Failed(format!("rejected lines: {refused}; see {} for the reasons", rejects_path.display())))
        }
    }
}

/// Prints the results.
fn tell(summary: &ImportSummary, refused: u64, dry_run: bool) -> CommandResult<()> {
    let recorded = if dry_run { "Dry run, nothing is stored. Events to record" } else { "Events recorded" };
    let ImportSummary { recorded: new, updated, already_there, skipped, .. } = summary;
    let some = |what: &str, many: u64| if many > 0 { format!("; {what}: {many}") } else { String::new() };
    let (updated, skipped) = (some("updated", *updated), some("skipped", *skipped));
    say(&format!("{recorded}: {new}{updated}; duplicates: {already_there}; rejected: {refused}{skipped}."))?;
    if summary.known_by_line > 0 {
        say(&format!(
            "Lines without an idempotency_key: {}. They are identified by file name and line number, so a file with another name records them again.",
            summary.known_by_line
        ))?;
    }
    for touched in summary.documents.iter().take(MAX_NAMED_DOCUMENTS) {
        let AffectedDocument { document, customer_ref, currency, events, total } = touched;
        let number = document.as_ref().map_or_else(|| "a new document".to_owned(), |(_, number)| number.to_string());
        let total = match total {
            Some(ChangedTotal { before: Some(before), after }) => {
                format!(", total {} instead of {}", after.to_decimal(), before.to_decimal())
            }
            Some(ChangedTotal { before: None, after }) => format!(", total {}", after.to_decimal()),
            None => String::new(),
        };
        say(&format!("{number} of {customer_ref}, {currency}: {events} events{total}"))?;
    }
    match summary.documents.len().saturating_sub(MAX_NAMED_DOCUMENTS) {
        0 => Ok(()),
        more => say(&format!("and {more} more documents")),
    }
}

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The extension of a gzip file, which is no part of the import name.
const GZIP_EXTENSION: &str = ".gz";

/// Returns the content of a file, decompressed if it is a gzip file.
fn decompressed<'r>(inner: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let mut inner = BufReader::new(inner);
    if inner.fill_buf()?.starts_with(&GZIP) { Ok(Box::new(MultiGzDecoder::new(inner))) } else { Ok(Box::new(inner)) }
}

/// Returns the name of the file without [`GZIP_EXTENSION`].
fn plain_name(file: &Path) -> Option<&str> {
    let name = file.file_name()?.to_str()?;
    Some(name.strip_suffix(GZIP_EXTENSION).unwrap_or(name))
}

/// A reader that reports its progress.
struct ProgressReader<R> {
    inner: R,
    read_bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for ProgressReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read_bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Converts a file error; the wrong file kind is an invalid setting.
fn unreadable(file: &Path, error: &FileError) -> CommandError {
    match error {
        FileError::Malformed(reason) => CommandError::Setting(format!("{}: {reason}", file.display())),
        FileError::Broken { .. } => CommandError::Failed(format!("{}: {error}", file.display())),
        FileError::Io(error) => CommandError::Failed(format!("cannot read {}: {error}", file.display())),
    }
}

/// Returns the import name: the given name, or the name of the file. A compressed file is the same file as the plain one.
fn import_name(settings: &ImportSettings) -> CommandResult<FileName> {
    let of_file = || plain_name(&settings.file);
    let name = settings.name.as_deref().or_else(of_file);
    let name = name.ok_or_else(|| CommandError::Setting("the file name is not valid text: set --name".to_owned()))?;
    FileName::parse(name).map_err(|reason| CommandError::Setting(format!("--name {reason}")))
}

fn kind(settings: &ImportSettings) -> CommandResult<FileKind> {
    if let Some(kind) = settings.input {
        return Ok(kind.into());
    }
    let name = plain_name(&settings.file).map(Path::new);
    let extension = name.and_then(Path::extension).and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    match extension.as_deref() {
        Some("csv" | "tsv") => Ok(FileKind::Csv),
        Some("ndjson" | "jsonl") => Ok(FileKind::Ndjson),
        Some("json") => Ok(FileKind::Json),
        _ => Err(CommandError::Setting(
            "the file name does not end in .csv, .tsv, .ndjson, .jsonl or .json (also with .gz): set --input to csv, ndjson or json".to_owned(),
        )),
    }
}

fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(suffix);
    PathBuf::from(name)
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Creates a progress bar, which is visible only on a terminal.
fn progress_bar(file: &Path) -> ProgressBar {
    let progress = ProgressBar::new(std::fs::metadata(file).map_or(0, |metadata| metadata.len()));
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} % {msg}, {eta} left");
    progress.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
