//! `import`: takes the events of a file, line by line, straight into the database.
//!
//! Each line's event has a key, the import's name and the line's number, so that an import that was interrupted is run
//! again and goes on: a line that was taken is known by its customer, key and content.

mod lines;
mod rejects;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use billing_application::Services;
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::formats::NamedFormat;
use billing_application::organizations::organization_named;
use billing_application::usage::{EventView, Neighbours, TakenUsage, map_events, record_usage};
use billing_domain::access::Principal;
use billing_domain::idempotency::{BodyHash, IdempotencyKey};
use billing_domain::ports::StoreError;
use billing_domain::usage::EventKey;
use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest as _, Sha256};

use self::lines::{InputLine, InputLines};
use self::rejects::Rejects;
use crate::composition;
use crate::environment::SystemClock;
use crate::failure::{Failure, Outcome};
use crate::settings::{ImportSettings, InputKind};
use crate::{say, text};

/// How often a transaction is tried that others on the database keep from its turn…
const MAX_ATTEMPTS: u32 = 10;
/// …and how long it waits in between.
const PAUSE: Duration = Duration::from_secs(1);

/// Imports a file.
pub(crate) fn import(settings: &ImportSettings) -> Outcome<()> {
    let name = import_name(settings)?;
    let mut lines = InputLines::open(&settings.file, kind(settings)?, settings.delimiter)?;
    let format = NamedFormat::Name(text("--format", &settings.format)?);
    let organization = text("--organization", &settings.organization)?;
    let services = composition::offline(composition::open_as_it_is(&settings.store)?, Arc::new(SystemClock))?;
    let organization = organization_named(&services, &organization)?.id;
    let principal = Principal::of_command_line(organization);
    // Before a file is touched: a format that isn't there is no fault of any line.
    map_events(&services, &principal, &format, &[])?;

    let rejects_path = settings.rejects.clone().unwrap_or_else(|| with_suffix(&settings.file, ".rejects.ndjson"));
    if is_same_file(&settings.file, &rejects_path) {
        return Err(Failure::Setting("--rejects must name another file than the one that is imported".to_owned()));
    }
    let rejects = Rejects::at(rejects_path.clone())?;
    let format_name = settings.format.clone();
    let mut import = Import { services, principal, format, format_name, name, rejects, imported: 0, repeated: 0 };
    // The longest key there can be, before anything is stored.
    import.key(u64::MAX, "")?;
    let progress = progress_bar(&settings.file);
    let mut slice = Vec::new();
    loop {
        let line = lines.next().map_err(|error| Failure::Failed(format!("cannot read {}: {error}", settings.file.display())))?;
        let is_end = line.is_none();
        slice.extend(line);
        if is_end || slice.len() >= usize::from(settings.lines_per_transaction) {
            import.take(std::mem::take(&mut slice))?;
            progress.set_position(lines.read_bytes());
            progress.set_message(format!("{} events", import.imported + import.repeated));
        }
        if is_end {
            break;
        }
    }
    progress.finish_and_clear();
    say(&format!("Events imported: {}; there already: {}.", import.imported, import.repeated))?;
    match import.rejects.finish()? {
        0 => Ok(()),
        rejected => Err(Failure::Failed(format!("lines rejected: {rejected}; {} says why", rejects_path.display()))),
    }
}

/// An import on its way.
struct Import {
    services: Services<'static>,
    principal: Principal,
    format: NamedFormat,
    format_name: String,
    name: String,
    rejects: Rejects,
    imported: u64,
    repeated: u64,
}

impl Import {
    /// Takes lines in one transaction.
    fn take(&mut self, lines: Vec<InputLine>) -> Outcome<()> {
        let mut events = Vec::with_capacity(lines.len());
        let mut readable = Vec::with_capacity(lines.len());
        for line in lines {
            match line.event {
                Ok(event) => {
                    readable.push((line.number, line.text));
                    events.push(event);
                }
                Err(reason) => self.rejects.add(line.number, &reason, &line.text)?,
            }
        }
        let mapped = map_events(&self.services, &self.principal, &self.format, &events)?;
        let (mut places, mut new_events) = (Vec::with_capacity(mapped.len()), Vec::with_capacity(mapped.len()));
        for (((number, line), event), mapped) in readable.into_iter().zip(&events).zip(mapped) {
            match mapped {
                Ok(mut mapped) => {
                    mapped.sent = Some(self.key(number, event)?);
                    places.push((number, line));
                    new_events.push(mapped);
                }
                Err(refusal) => self.rejects.add(number, &self.reason(&refusal, number), &line)?,
            }
        }
        let results = patiently(|| {
            record_usage(&self.services, &self.principal, &new_events, Neighbours::Unaffected, &|view: &EventView| {
                view.event.event_ref.to_string()
            })
        })?;
        for ((number, line), result) in places.into_iter().zip(results) {
            match result {
                Ok(TakenUsage::Now(_)) => self.imported += 1,
                Ok(TakenUsage::Before(_)) => self.repeated += 1,
                Err(refusal) => self.rejects.add(number, &self.reason(&refusal, number), &line)?,
            }
        }
        Ok(())
    }

    fn key(&self, number: u64, event: &str) -> Outcome<EventKey> {
        let key = IdempotencyKey::parse(&format!("import/{}/{number}", self.name));
        let key = key.map_err(|reason| Failure::Setting(format!("--name {reason}")))?;
        // The format says what the line means, so another one makes another event of it.
        let said = format!("{}\n{event}", self.format_name);
        Ok(EventKey { key, body: BodyHash(Sha256::digest(said).into()) })
    }

    fn reason(&self, refusal: &UseCaseError, number: u64) -> String {
        match refusal {
            UseCaseError::IdempotencyKeyReuse => format!(
                "line {number} of an import named {:?} was imported before and said something else: change the event it made, or \
                 give another file another --name",
                self.name
            ),
            other => other.to_string(),
        }
    }
}

/// Tries again while others on the database are faster.
fn patiently<T>(mut work: impl FnMut() -> UseCaseResult<T>) -> UseCaseResult<T> {
    let mut attempts = 1;
    loop {
        match work() {
            Err(UseCaseError::Store(StoreError::Contended)) if attempts < MAX_ATTEMPTS => {
                attempts += 1;
                std::thread::sleep(PAUSE);
            }
            outcome => return outcome,
        }
    }
}

/// What the file's lines are known by: the name that was given, or the file's own.
fn import_name(settings: &ImportSettings) -> Outcome<String> {
    if let Some(name) = &settings.name {
        return Ok(name.clone());
    }
    let name = settings.file.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned).ok_or_else(|| Failure::Setting("the file's name is no text: give the import a --name".to_owned()))
}

fn kind(settings: &ImportSettings) -> Outcome<InputKind> {
    if let Some(kind) = settings.input {
        return Ok(kind);
    }
    let extension = settings.file.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    match extension.as_deref() {
        Some("csv") => Ok(InputKind::Csv),
        Some("ndjson" | "jsonl") => Ok(InputKind::Ndjson),
        _ => {
            Err(Failure::Setting("the file's name doesn't end in .csv, .ndjson or .jsonl: say --input csv or ndjson".to_owned()))
        }
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

/// Shown to a person at a terminal, and to nobody else.
fn progress_bar(file: &Path) -> ProgressBar {
    let progress = ProgressBar::new(std::fs::metadata(file).map_or(0, |metadata| metadata.len()));
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} % {msg}, {eta} left");
    progress.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
