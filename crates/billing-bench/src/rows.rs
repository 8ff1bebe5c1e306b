//! The measured rows. They are measured in turns, so that a disturbance of a round affects all rows alike.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::time::{Duration, Instant};

use acceptance::Database;
use acceptance::when::Day;
use serde_json::json;
use tempfile::TempDir;

use crate::ceiling::Ceiling;
use crate::figures::{Figure, Figures, cpu_micros};
use crate::load::{Outgoing, Plan, Sample, as_f64, closed};
use crate::metrics::Histogram;
use crate::pgbench::{self, Pgbench};
use crate::plain::{self, Plain};
use crate::process::{self, Watched};
use crate::settings::Settings;
use crate::stage::{Build, Kind, LARGEST_BATCH, SEEN, Stage, Template, median_millis, verify};
use crate::traffic::{self, Customers, Spread, customer, event};
use crate::{Failure, Outcome, stop};

mod labels;

pub(crate) use labels::{BY_LABEL, BY_LABEL_HOT, CREDITED_HOT, DISTINCT, LARGEST, Labeled, WATCHED, WATCHED_HOT};

pub(crate) const FSYNC: &str = "fdatasync of 4 KiB";
pub(crate) const CEILING: &str = "plain actix server: the ceiling";
pub(crate) const REFUSED: &str = "refused for a field";
pub(crate) const UNIFORM: &str = "single events";
pub(crate) const ZIPF: &str = "single events, Zipf";
pub(crate) const HOT: &str = "single events, one document";
pub(crate) const KEYED: &str = "single events with keys";
pub(crate) const BATCH_OF_ONE: &str = "batches of 1,000, one contract";
pub(crate) const BATCH_OF_MANY: &str = "batches of 1,000, 500 contracts";
pub(crate) const EDIT: &str = "edits of events";
pub(crate) const DELETE: &str = "deletions of events";
pub(crate) const LATE: &str = "events on an issued period";
pub(crate) const TWO: &str = "single events, two servers";
pub(crate) const SAME_UNIFORM: &str = "pgbench, our statements";
pub(crate) const SAME_HOT: &str = "pgbench, our statements, one document";
pub(crate) const LEAST_UNIFORM: &str = "pgbench, three statements";
pub(crate) const LEAST_HOT: &str = "pgbench, three statements, one document";
pub(crate) const PLAIN_UNIFORM: &str = "FastAPI";
pub(crate) const PLAIN_HOT: &str = "FastAPI, one document";
pub(crate) const HALF: &str = "single events, half the rate, on schedule";
pub(crate) const HALF_P99: &str = "p99 at half the rate, ms";
pub(crate) const HALF_PAUSES: &str = "half the rate: pauses of writers above 5 ms";
pub(crate) const HALF_PAUSED_MS: &str = "half the rate: all pauses of writers, ms";
pub(crate) const HALF_SLOW: &str = "half the rate: transactions above 10 ms";
pub(crate) const HALF_SLOW_COMMITS: &str = "half the rate: commits above 5 ms";
pub(crate) const UNIFORM_MICROS: &str = "single events: processor time, µs";
pub(crate) const CEILING_MICROS: &str = "plain actix server: processor time, µs";
pub(crate) const HOT_MICROS: &str = "single events, one document: processor time, µs";
pub(crate) const OVERLOAD: &str = "single events, 3 × the rate, on schedule";
pub(crate) const OVERLOAD_MS: &str = "3 × the rate: p99 of accepted, ms";
pub(crate) const OVERLOAD_REFUSED: &str = "3 × the rate: refused in a second";
pub(crate) const OVERLOAD_REFUSED_MS: &str = "3 × the rate: p99 of refusals, ms";
pub(crate) const OVERLOAD_UNANSWERED: &str = "3 × the rate: unanswered in a second";
pub(crate) const OVERLOAD_MB: &str = "3 × the rate: memory, MB";
pub(crate) const OVERLOAD_RECOVERY: &str = "3 × the rate: recovery, ms";
pub(crate) const IDLE_MB: &str = "memory idle, MB";
pub(crate) const LOAD_MB: &str = "memory under load, MB";
pub(crate) const BATCH_MB: &str = "memory with batches of 10,000, MB";
pub(crate) const ISSUE: &str = "documents issued";
pub(crate) const INVOICE_OF_MANY: &str = "current invoice, many events, ms";
pub(crate) const INVOICE_OF_FEW: &str = "current invoice, 100 events, ms";
pub(crate) const START: &str = "start to first answer, ms";
pub(crate) const PAGE: &str = "slowest page of the console, ms";
pub(crate) const PAGE_KB: &str = "largest page of the console, KB";
pub(crate) const EVENT_LIST: &str = "list of events, ms";
pub(crate) const EVENTS_BY_TIME: &str = "console's events by time, ms";
pub(crate) const DOCUMENT_LIST: &str = "list of documents, ms";
pub(crate) const LONG_DOCUMENT_LIST: &str = "list of 1,000 documents, ms";
pub(crate) const REPORT_MB: &str = "usage report: memory over idle, MB";
pub(crate) const GROWN: &str = "single events, many stored";
pub(crate) const NOT_GROWN: &str = "single events, few stored";

/// The duration in seconds from which a pause of writers and a commit count as long.
const LONG_PAUSE: f64 = 0.005;
/// The duration in seconds from which a transaction counts as long.
const LONG_TRANSACTION: f64 = 0.01;
/// Connections that send batches.
const BATCH_CONNECTIONS: usize = 4;
/// Contracts of a batch over many contracts.
const BATCH_CONTRACTS: u64 = 500;
/// Contracts whose issued period gets events.
const LATE_CONTRACTS: u64 = 1000;
/// Connections of an overload. They exceed the requests that may wait for the writer and be written together, so that the server
/// rejects the rest.
const OVERLOAD_CONNECTIONS: usize = 2000;
/// Events of the contract with few events.
const FEW_EVENTS: u64 = 100;
/// The customer whose contract gets many events.
const WITH_MANY_EVENTS: u64 = 0;
/// The customer whose contract gets few events.
const WITH_FEW_EVENTS: u64 = 1;
/// Entities that exist when pages are measured.
const ENTITIES: u64 = 1000;
/// Consecutive events on one contract in the measurement of growth.
const GROWTH_EVENTS_EACH: u64 = 1000;
/// Maximum response time of a server that has recovered from an overload.
const RECOVERED: Duration = Duration::from_millis(10);
/// Maximum time to wait for the recovery.
const MAX_RECOVERY: Duration = Duration::from_secs(30);
/// Time without requests before the idle memory of a server is read.
const SETTLE: Duration = Duration::from_secs(1);

/// Rows that are measured on servers that run through all rounds.
const TURNS: [&str; 8] = ["refused", "single", "labels", "limits", "keys", "batch", "change", "late"];
const ON_STAGE: [&str; 15] = [
    "ceiling", "refused", "single", "labels", "limits", "keys", "batch", "change", "late", "two", "pgbench", "plain", "latency",
    "overload", "memory",
];
/// Rows about a contract with many events.
const OF_MANY_EVENTS: [&str; 5] = ["invoice", "pages", "lists", "start", "report"];

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) figures: Figures,
    /// The figures of the binary that the current one is compared with.
    pub(crate) base: Option<Figures>,
}

/// Measures the rows of the settings.
///
/// # Errors
/// Returns [`Failure::Stopped`] after a signal, or the cause of a failure. Slowness is never an error.
pub(crate) fn measure(settings: &Settings) -> Outcome<Measured> {
    let mut run = Run { settings, figures: Figures::default(), base: Figures::labeled("before, "), sent: 0 };
    if settings.rows.iter().all(|row| row == "fsync") {
        run.fsync_rounds()?;
        return Ok(run.measured());
    }
    // Both builds of a database are neighbors, so that they are measured by turns.
    let mut templates = Vec::new();
    for kind in &settings.kinds {
        for build in &settings.builds() {
            eprintln!("bench: filling {}", kind.name());
            templates.push(Template::make(*kind, build, settings.contracts, &Labeled::wanted(settings, build))?);
        }
    }
    let stages = run.issue(&templates)?;
    if settings.wants_any(&ON_STAGE) || settings.wants("fsync") {
        run.on_stages(&templates, stages)?;
    }
    if settings.wants_any(&OF_MANY_EVENTS) {
        for of_kind in templates.chunk_by(|a, b| a.kind == b.kind) {
            run.of_many_events(of_kind)?;
        }
    }
    if settings.wants("growth") {
        run.growth(&templates)?;
    }
    Ok(run.measured())
}

struct Run<'s> {
    settings: &'s Settings,
    /// The figures of the current build, and of everything that is measured beside it.
    figures: Figures,
    /// The figures of the build to compare with.
    base: Figures,
    /// Number of loads so far. Each load draws other customers and has its own idempotency keys.
    sent: u64,
}

impl Run<'_> {
    fn customers(&mut self, spread: Spread, many: u64) -> Customers {
        self.sent += 1;
        Customers::new(spread, many, self.sent)
    }

    fn measured(self) -> Measured {
        Measured { figures: self.figures, base: self.settings.base.is_some().then_some(self.base) }
    }

    /// Returns the figures of a build.
    fn of(&mut self, build: &Build) -> &mut Figures {
        if build.is_base() { &mut self.base } else { &mut self.figures }
    }

    /// Adds a value of a server.
    fn add(&mut self, row: &'static str, stage: &Stage, value: f64) {
        self.of(&stage.build).add(row, Some(stage.kind), Figure::of(value));
    }

    /// Adds a note about a server.
    fn note(&mut self, stage: &Stage, note: &str) {
        let before = if stage.build.is_base() { "before, " } else { "" };
        self.figures.note(format!("{before}{note}"));
    }

    /// Adds a load of a server.
    fn take(&mut self, row: &'static str, stage: &Stage, sample: &Sample) {
        if let Some(complaint) = sample.complaint() {
            self.note(stage, &format!("{row}, {}: {complaint}", stage.kind.name()));
        }
        let figure = Figure::from(sample);
        let micros = figure.service_micros();
        self.of(&stage.build).add(row, Some(stage.kind), figure);
        if let (UNIFORM | HOT, Some(micros)) = (row, micros) {
            self.add(if row == HOT { HOT_MICROS } else { UNIFORM_MICROS }, stage, micros);
        }
    }

    /// Adds a load of a program that the service is compared with.
    fn take_beside(&mut self, row: &'static str, kind: Option<Kind>, sample: &Sample) {
        if let Some(complaint) = sample.complaint() {
            self.figures.note(format!("{row}: {complaint}"));
        }
        let figure = Figure::from(sample);
        if let (CEILING, Some(micros)) = (row, figure.service_micros()) {
            self.figures.add(CEILING_MICROS, kind, Figure::of(micros));
        }
        self.figures.add(row, kind, figure);
    }

    fn fsync_rounds(&mut self) -> Outcome<()> {
        (0..self.settings.rounds).try_for_each(|_| self.fsync())
    }

    /// Measures how many times per second the disk of the databases stores 4 KiB durably.
    fn fsync(&mut self) -> Outcome<()> {
        let mut file = tempfile::tempfile()?;
        let (began, mut done) = (Instant::now(), 0);
        while began.elapsed().as_secs_f64() < self.settings.seconds.min(1.0) {
            stop::check()?;
            file.seek(SeekFrom::Start(done % 1000 * 4096))?;
            file.write_all(&[u8::try_from(done % 251).unwrap_or_default(); 4096])?;
            File::sync_data(&file)?;
            done += 1;
        }
        self.figures.add(FSYNC, None, Figure::of(as_f64(done) / began.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Issues the last period of every contract, on a new copy each time. Returns the servers on the last copies.
    fn issue(&mut self, templates: &[Template]) -> Outcome<Vec<Stage>> {
        let (is_wanted, mut last) = (self.settings.wants("issue"), Vec::new());
        if !is_wanted && !self.settings.wants_any(&ON_STAGE) {
            return Ok(last);
        }
        for _ in 0..if is_wanted { self.settings.rounds } else { 1 } {
            last.clear();
            for template in templates {
                stop::check()?;
                let stage = template.serve();
                let watched = stage.plan(1, None, false).watched;
                let (before, began) = (watched.cpu(), Instant::now());
                let issued = stage.issue()? as u64;
                let seconds = began.elapsed().as_secs_f64();
                if issued != template.customers {
                    let stated = format!("{issued} documents were issued, of {} that are due", template.customers);
                    self.note(&stage, &format!("issuing, {}: {stated}", template.kind.name()));
                }
                if is_wanted {
                    let cpu = before.until(&watched.cpu());
                    let figure = Figure {
                        cpu: cpu_micros(cpu, as_f64(issued)),
                        others: Some(cpu.others() / seconds),
                        ..Figure::of(as_f64(issued) / seconds)
                    };
                    self.of(&template.build).add(ISSUE, Some(template.kind), figure);
                }
                last.push(stage);
            }
        }
        Ok(last)
    }

    fn on_stages(&mut self, templates: &[Template], mut stages: Vec<Stage>) -> Outcome<()> {
        for stage in &mut stages {
            if self.settings.wants("late") {
                let over = Day::today().plus_days(-20).noon();
                let contracts = LATE_CONTRACTS.min(stage.customers);
                stage.load(contracts, |n| event(&over, n))?;
            }
            if self.settings.wants("two") && stage.kind == Kind::Postgres {
                stage.join();
            }
        }
        if self.settings.wants_any(&["single", "keys", "batch", "latency"]) {
            stages.iter().try_for_each(Stage::fill_cache)?;
            self.figures.note(format!("each of {} customers had {SEEN} events before the measurement", self.settings.contracts));
        }
        let postgres = templates.iter().find(|template| template.kind == Kind::Postgres && !template.build.is_base());
        let ceiling = self.settings.wants("ceiling").then(Ceiling::start).transpose()?;
        let beside = postgres.map(|template| Beside::prepare(self, template)).transpose()?;
        for round in 1..=self.settings.rounds {
            eprintln!("bench: round {round} of {}", self.settings.rounds);
            if self.settings.wants("fsync") {
                self.fsync()?;
            }
            if let Some(ceiling) = &ceiling {
                let mut requests = traffic::singles(self.customers(Spread::Uniform, self.settings.contracts));
                let sample = ceiling.busy(self.settings.connections, self.settings.seconds, &mut requests)?;
                self.take_beside(CEILING, None, &sample);
            }
            for of_kind in stages.chunk_by(|a, b| a.kind == b.kind) {
                self.turns(&in_turn(of_kind, round))?;
            }
            if let Some(beside) = &beside {
                beside.turns(self)?;
            }
        }
        drop((ceiling, beside));
        if self.settings.wants_any(&["latency", "overload"]) {
            for round in 1..=self.settings.rounds {
                for of_kind in stages.chunk_by(|a, b| a.kind == b.kind) {
                    self.paced(&in_turn(of_kind, round))?;
                }
            }
        }
        self.memory(&mut stages)?;
        if self.settings.wants("two") {
            self.verified(stages)?;
        }
        Ok(())
    }

    /// Measures each row on the builds of one database, one build after the other.
    fn turns(&mut self, stages: &[&Stage]) -> Outcome<()> {
        for turn in TURNS.into_iter().filter(|turn| self.settings.wants(turn)) {
            match turn {
                "single" => {
                    for (row, spread) in [(UNIFORM, Spread::Uniform), (ZIPF, Spread::Zipf), (HOT, Spread::Hot)] {
                        for stage in stages {
                            self.singles(row, spread, stage)?;
                        }
                    }
                }
                _ => stages.iter().try_for_each(|stage| self.turn(turn, stage))?,
            }
        }
        let (connections, seconds) = (self.settings.connections, self.settings.seconds);
        if self.settings.wants("two") {
            for stage in stages.iter().filter(|stage| stage.kind == Kind::Postgres) {
                let plan = stage.plan(connections, Some(seconds), true);
                let sample = closed(&plan, &mut traffic::singles(self.customers(Spread::Uniform, stage.customers)))?;
                self.take(TWO, stage, &sample);
            }
        }
        Ok(())
    }

    /// Measures single events and returns their rate.
    fn singles(&mut self, row: &'static str, spread: Spread, stage: &Stage) -> Outcome<f64> {
        let mut requests = traffic::singles(self.customers(spread, stage.customers));
        let sample = stage.busy(self.settings.connections, self.settings.seconds, &mut requests)?;
        self.take(row, stage, &sample);
        Ok(sample.rate())
    }

    fn turn(&mut self, turn: &str, stage: &Stage) -> Outcome<()> {
        let many = stage.customers;
        let (connections, seconds) = (self.settings.connections, self.settings.seconds);
        match turn {
            "refused" => {
                let plan = Plan { status: Some(422), ..stage.plan(connections, Some(seconds), false) };
                let sample = closed(&plan, &mut traffic::refused(self.customers(Spread::Uniform, many)))?;
                self.take(REFUSED, stage, &sample);
            }
            "labels" | "limits" => self.priced(turn, stage)?,
            "keys" => {
                let customers = self.customers(Spread::Uniform, many);
                let sample = stage.busy(connections, seconds, &mut traffic::keyed(customers, self.sent))?;
                self.take(KEYED, stage, &sample);
            }
            "batch" => {
                for (row, contracts) in [(BATCH_OF_ONE, 1), (BATCH_OF_MANY, BATCH_CONTRACTS.min(many))] {
                    let sample = stage.busy(BATCH_CONNECTIONS, seconds, &mut traffic::usual_batches(contracts, many))?;
                    self.take(row, stage, &sample);
                }
            }
            "change" => self.changes(stage)?,
            _ => {
                let customers = self.customers(Spread::Uniform, LATE_CONTRACTS.min(many));
                let sample = stage.busy(connections, seconds, &mut traffic::late(customers))?;
                self.take(LATE, stage, &sample);
            }
        }
        Ok(())
    }

    /// Measures edits and deletions of recently reported events, on any contract.
    fn changes(&mut self, stage: &Stage) -> Outcome<()> {
        let (connections, seconds) = (self.settings.connections, self.settings.seconds);
        let figures = self.of(&stage.build);
        let fastest = figures.median(UNIFORM, Some(stage.kind)).unwrap_or_default();
        let deleted = figures.median(DELETE, Some(stage.kind)).unwrap_or(fastest).max(1000.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the value is a few thousand")]
        let enough = (deleted * (seconds + 1.0) * 1.5) as u64;
        let (now, many) = (acceptance::when::now(), stage.customers);
        let mut places: Vec<u64> = Vec::new();
        let mut customers = self.customers(Spread::Uniform, many);
        places.resize_with(usize::try_from(enough).unwrap_or(usize::MAX), || customers.next());
        let events = stage.load(enough, |n| event(&now, places[usize::try_from(n).unwrap_or_default()]))?;
        let sample = stage.busy(connections, seconds, &mut traffic::edits(events.clone()))?;
        self.take(EDIT, stage, &sample);
        let sample = stage.busy(connections, seconds, &mut traffic::deletes(events))?;
        self.take(DELETE, stage, &sample);
        Ok(())
    }

    /// Measures on a schedule: at half of the maximum rate, and at three times the maximum rate. Builds that are compared get the
    /// same number of requests, so the maximum rate is that of the slower one.
    fn paced(&mut self, stages: &[&Stage]) -> Outcome<()> {
        let mut most = f64::INFINITY;
        for stage in stages {
            let known = self.of(&stage.build).median(UNIFORM, Some(stage.kind));
            most = most.min(match known {
                Some(known) => known,
                None => self.singles(UNIFORM, Spread::Uniform, stage)?,
            });
        }
        if self.settings.wants("latency") {
            stages.iter().try_for_each(|stage| self.half(stage, most / 2.0))?;
        }
        if self.settings.wants("overload") {
            stages.iter().try_for_each(|stage| self.overload(stage, most * 3.0))?;
        }
        Ok(())
    }

    /// Measures the latency on a schedule, and what can cause it: pauses of the writers, slow transactions and slow commits.
    fn half(&mut self, stage: &Stage, rate: f64) -> Outcome<()> {
        let before = LatencyCauses::read(stage);
        let mut requests = traffic::singles(self.customers(Spread::Uniform, stage.customers));
        let sample = stage.paced(self.settings.connections, self.settings.seconds, rate, true, &mut requests)?;
        let after = LatencyCauses::read(stage);
        self.take(HALF, stage, &sample);
        self.add(HALF_P99, stage, sample.millis(0.99));
        if sample.unanswered > 0 {
            let unanswered = format!("{HALF}, {}: {} requests had no answer at the end", stage.kind.name(), sample.unanswered);
            self.note(stage, &unanswered);
        }
        if let Some((before, after)) = before.pauses.zip(after.pauses) {
            self.add(HALF_PAUSES, stage, after.above_since(&before, LONG_PAUSE));
            self.add(HALF_PAUSED_MS, stage, after.millis_since(&before));
        }
        if let Some((before, after)) = before.transactions.zip(after.transactions) {
            self.add(HALF_SLOW, stage, after.above_since(&before, LONG_TRANSACTION));
        }
        if let Some((before, after)) = before.commits.zip(after.commits) {
            self.add(HALF_SLOW_COMMITS, stage, after.above_since(&before, LONG_PAUSE));
        }
        Ok(())
    }

    fn overload(&mut self, stage: &Stage, rate: f64) -> Outcome<()> {
        let seconds = self.settings.seconds;
        process::forget_peak(stage.process())?;
        let mut requests = traffic::singles(self.customers(Spread::Uniform, stage.customers));
        let sample = stage.paced(OVERLOAD_CONNECTIONS, seconds, rate, false, &mut requests)?;
        let recovery = self.recovery(stage)?;
        let refused = sample.latency_of_others.len();
        self.of(&stage.build).add(OVERLOAD, Some(stage.kind), Figure::from(&sample));
        self.add(OVERLOAD_MS, stage, sample.millis(0.99));
        self.add(OVERLOAD_REFUSED, stage, as_f64(refused) / seconds);
        if refused > 0 {
            self.add(OVERLOAD_REFUSED_MS, stage, as_f64(sample.latency_of_others.value_at_quantile(0.99)) / 1000.0);
            let without = refused - sample.with_retry_after;
            let other: u64 =
                sample.statuses.iter().filter(|(status, _)| !matches!(status, 200 | 429 | 503)).map(|(_, n)| n).sum();
            if without > 0 || other > 0 {
                let stated = format!("{without} refusals without Retry-After, {other} other than 429 and 503");
                self.note(stage, &format!("{OVERLOAD}, {}: {stated}", stage.kind.name()));
            }
        }
        self.add(OVERLOAD_UNANSWERED, stage, as_f64(sample.unanswered) / seconds);
        self.add(OVERLOAD_MB, stage, process::peak_mb(stage.process())?);
        self.add(OVERLOAD_RECOVERY, stage, recovery.as_secs_f64() * 1000.0);
        Ok(())
    }

    /// Returns the time from the end of an overload until an event gets a response at normal speed.
    fn recovery(&mut self, stage: &Stage) -> Outcome<Duration> {
        let began = Instant::now();
        while began.elapsed() < MAX_RECOVERY {
            stop::check()?;
            let mut requests = traffic::singles(self.customers(Spread::Uniform, stage.customers));
            let mut left = 1;
            let sample = closed(&stage.plan(1, None, false), &mut || {
                left -= 1;
                if left == 0 { requests() } else { None }
            })?;
            let limit = u64::try_from(RECOVERED.as_micros()).unwrap_or(u64::MAX);
            if sample.worth == 1 && sample.latency.max() <= limit {
                break;
            }
        }
        Ok(began.elapsed())
    }

    /// Measures the memory of a new server, then under single events, then of another new server under the largest batches.
    fn memory(&mut self, stages: &mut Vec<Stage>) -> Outcome<()> {
        if !self.settings.wants("memory") {
            return Ok(());
        }
        for _ in 0..self.settings.rounds {
            for stage in std::mem::take(stages) {
                let many = stage.customers;
                let stage = stage.restart()?;
                std::thread::sleep(SETTLE);
                self.add(IDLE_MB, &stage, process::resident_mb(stage.process())?);
                let mut requests = traffic::singles(self.customers(Spread::Uniform, many));
                stage.busy(self.settings.connections, self.settings.seconds, &mut requests)?;
                self.add(LOAD_MB, &stage, process::peak_mb(stage.process())?);
                let stage = stage.restart()?;
                let mut requests = traffic::batches(BATCH_CONTRACTS.min(many), many, LARGEST_BATCH);
                stage.busy(BATCH_CONNECTIONS, self.settings.seconds, &mut requests)?;
                self.add(BATCH_MB, &stage, process::peak_mb(stage.process())?);
                stages.push(stage);
            }
        }
        Ok(())
    }

    /// Checks that all events are on their documents, including those that were sent to two servers at once.
    fn verified(&mut self, stages: Vec<Stage>) -> Outcome<()> {
        let directory = TempDir::new()?;
        // The command that verifies is of the current build.
        for stage in stages.into_iter().filter(|stage| stage.kind == Kind::Postgres && !stage.build.is_base()) {
            stop::check()?;
            let database = stage.close()?;
            match verify(&database, directory.path()) {
                Ok(()) => self.figures.note("verify found nothing wrong after two servers on one PostgreSQL.".to_owned()),
                Err(found) => self.figures.note(format!("VERIFY FOUND after two servers on one PostgreSQL: {found}")),
            }
        }
        Ok(())
    }

    /// Measures figures that should not grow with the events of a contract or with all events, on the builds of one database.
    fn of_many_events(&mut self, templates: &[Template]) -> Outcome<()> {
        let mut stages = Vec::new();
        for template in templates {
            eprintln!("bench: {} events on a contract of {}", self.settings.events, template.kind.name());
            let stage = template.serve();
            let now = acceptance::when::now();
            stage.load_in(self.settings.events, LARGEST_BATCH, |_| event(&now, WITH_MANY_EVENTS))?;
            stage.load(FEW_EVENTS, |_| event(&now, WITH_FEW_EVENTS))?;
            if template.kind == Kind::Postgres {
                // Autovacuum does the same sooner or later.
                stage.database().execute("VACUUM ANALYZE");
            }
            stages.push(stage);
        }
        for _ in 0..self.settings.rounds {
            for (template, stage) in templates.iter().zip(std::mem::take(&mut stages)) {
                stages.push(self.of_many_events_once(template, stage)?);
            }
        }
        Ok(())
    }

    /// Measures one round of [`Self::of_many_events`] on one build. Returns the server, which may be a new one.
    fn of_many_events_once(&mut self, template: &Template, mut stage: Stage) -> Outcome<Stage> {
        if self.settings.wants("start") {
            let database = stage.close()?;
            let began = Instant::now();
            // The time ends with the response to the first log-in.
            stage = template.serve_on(database);
            self.add(START, &stage, began.elapsed().as_secs_f64() * 1000.0);
        }
        if self.settings.wants("invoice") {
            for (row, customer) in [(INVOICE_OF_MANY, WITH_MANY_EVENTS), (INVOICE_OF_FEW, WITH_FEW_EVENTS)] {
                let path = format!("/api/contracts/invoices/current/{}", template.contract(customer));
                let sample = stage.busy(1, self.settings.seconds.min(1.0), &mut || Some(Outgoing::get(&path)))?;
                if let Some(complaint) = sample.complaint() {
                    return Err(Failure::new(format!("{row}: {complaint}")));
                }
                self.add(row, &stage, sample.millis(0.5));
            }
        }
        if self.settings.wants("pages") {
            self.pages(&stage, template.contract(WITH_MANY_EVENTS))?;
        }
        if self.settings.wants("lists") {
            for (row, path) in [
                (EVENT_LIST, "/api/usage/event/filter"),
                (DOCUMENT_LIST, "/api/documents/filter"),
                (LONG_DOCUMENT_LIST, "/api/documents/filter?pageSize=1000"),
            ] {
                let millis = median_millis(&stage.client, path)?;
                self.add(row, &stage, millis);
            }
            let millis = median_millis(&stage.administrator(), "/console/events?order=timestamp")?;
            self.add(EVENTS_BY_TIME, &stage, millis);
        }
        if self.settings.wants("report") {
            stage = stage.restart()?;
            std::thread::sleep(SETTLE);
            let idle = process::resident_mb(stage.process())?;
            process::forget_peak(stage.process())?;
            let mut once = Some(Outgoing::get("/api/usage/report"));
            let sample = closed(&stage.plan(1, None, false), &mut || once.take())?;
            if let Some(complaint) = sample.complaint() {
                return Err(Failure::new(format!("the usage report: {complaint}")));
            }
            self.add(REPORT_MB, &stage, process::peak_mb(stage.process())? - idle);
        }
        Ok(stage)
    }

    /// Requests each console page several times, with many entities. Records the largest median time and the largest size of a page.
    fn pages(&mut self, stage: &Stage, contract: &str) -> Outcome<()> {
        // Only the first round creates them.
        let exist = stage.client.get("/api/entities/entity-0").status == 200;
        for n in 0..if exist { 0 } else { ENTITIES } {
            stop::check()?;
            let entity =
                json!({"entity_ref": format!("entity-{n}"), "name": format!("Entity {n}"), "number_prefix": format!("E{n}")});
            stage.client.post("/api/entities/", &entity).ok();
        }
        let (administrator, customer) = (stage.administrator(), customer(traffic::HOT));
        let below = [
            String::new(),
            "/usage".to_owned(),
            format!("/usage?customer_ref={customer}"),
            "/events".to_owned(),
            format!("/events?customer_ref={customer}"),
            "/events?order=timestamp".to_owned(),
            "/customers".to_owned(),
            "/customers?order=name".to_owned(),
            format!("/customers/{customer}"),
            "/contracts".to_owned(),
            format!("/contracts/{contract}"),
            "/documents".to_owned(),
            "/documents?state=DRAFT".to_owned(),
            "/payments".to_owned(),
            "/pricings".to_owned(),
            "/audit".to_owned(),
            "/refused".to_owned(),
            "/billing-runs".to_owned(),
            "/entities".to_owned(),
        ];
        let (mut slowest, mut largest) = ((0.0, String::new()), (0.0, String::new()));
        for below in below {
            let page = format!("/console{below}");
            let middle = median_millis(&administrator, &page)?;
            let kilobytes = as_f64(administrator.get(&page).text.len() as u64) / 1000.0;
            eprintln!("bench: {page}: {middle:.1} ms, {kilobytes:.1} KB");
            if kilobytes > largest.0 {
                largest = (kilobytes, page.clone());
            }
            if middle > slowest.0 {
                slowest = (middle, page);
            }
        }
        for (row, (value, page)) in [(PAGE, slowest), (PAGE_KB, largest)] {
            self.add(row, stage, value);
            self.note(stage, &format!("{row}, {}: {page}.", stage.kind.name()));
        }
        Ok(())
    }

    /// Measures single events on a database with many stored events, in turns with a copy that has few.
    fn growth(&mut self, templates: &[Template]) -> Outcome<()> {
        let mut pairs = Vec::new();
        for template in templates {
            let (few, many) = (template.serve(), template.serve());
            eprintln!("bench: {} events in {}", self.settings.growth, template.kind.name());
            let now = acceptance::when::now();
            many.load_in(self.settings.growth, LARGEST_BATCH, |n| event(&now, n / GROWTH_EVENTS_EACH % template.customers))?;
            if template.kind == Kind::Postgres {
                many.database().execute("VACUUM ANALYZE");
            }
            pairs.push((few, many));
        }
        for _ in 0..self.settings.rounds {
            for (few, many) in &pairs {
                for (row, stage) in [(NOT_GROWN, few), (GROWN, many)] {
                    self.singles(row, Spread::Uniform, stage)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the builds of one database in the order of a round. The build that is measured first changes with each round.
fn in_turn(stages: &[Stage], round: u64) -> Vec<&Stage> {
    if round.is_multiple_of(2) { stages.iter().rev().collect() } else { stages.iter().collect() }
}

/// Durations in a server that can delay a response. A build without a metric has no such durations.
struct LatencyCauses {
    pauses: Option<Histogram>,
    transactions: Option<Histogram>,
    commits: Option<Histogram>,
}

impl LatencyCauses {
    fn read(stage: &Stage) -> Self {
        let text = stage.client.get("/metrics").text;
        let of_events = "kind=\"events\"";
        Self {
            pauses: Histogram::read(&text, "usage_billing_database_writer_pause_seconds", ""),
            transactions: Histogram::read(&text, "usage_billing_writer_group_duration_seconds", of_events),
            commits: Histogram::read(&text, "usage_billing_writer_commit_duration_seconds", of_events),
        }
    }
}

/// The comparison programs that use PostgreSQL without our server.
struct Beside {
    pgbench: Vec<(&'static str, Pgbench)>,
    plain: Option<Plain>,
    _databases: Vec<Database>,
}

impl Beside {
    fn prepare(run: &mut Run<'_>, template: &Template) -> Outcome<Self> {
        let (mut pgbench, mut databases, mut plain) = (Vec::new(), Vec::new(), None);
        if run.settings.wants_any(&["pgbench", "plain"]) {
            let database = plain::database(template.customers)?;
            let watched = Watched { servers: Vec::new(), postmaster: process::postmaster(database.url()) };
            if run.settings.wants("pgbench") {
                eprintln!("bench: choosing pgbench's clients");
                let (recorded, recorded_on) = pgbench::record(template)?;
                for (row, contracts) in [(SAME_UNIFORM, recorded.len()), (SAME_HOT, 1)] {
                    match Pgbench::recorded(&recorded, &recorded_on, contracts, watched.clone()) {
                        Ok(made) => pgbench.push((row, made)),
                        Err(Failure::Stopped) => return Err(Failure::Stopped),
                        Err(failure) => run.figures.note(format!("NOT MEASURED: {row}: {failure}")),
                    }
                }
                databases.push(recorded_on);
                for (row, contracts) in [(LEAST_UNIFORM, template.customers), (LEAST_HOT, 1)] {
                    pgbench.push((row, Pgbench::minimal(&database, contracts, watched.clone())?));
                }
            }
            if run.settings.wants("plain") {
                match Plain::start(&database) {
                    Ok(started) => plain = Some(started),
                    Err(failure) => run.figures.note(format!("NOT MEASURED: {PLAIN_UNIFORM}: {failure}")),
                }
            }
            databases.push(database);
        }
        for (row, made) in &pgbench {
            run.figures.note(format!("{row}: {} clients do most.", made.clients()));
        }
        Ok(Self { pgbench, plain, _databases: databases })
    }

    fn turns(&self, run: &mut Run<'_>) -> Outcome<()> {
        for (row, pgbench) in &self.pgbench {
            run.figures.add(row, Some(Kind::Postgres), pgbench.run(run.settings.seconds)?);
        }
        if let Some(plain) = &self.plain {
            for (row, spread) in [(PLAIN_UNIFORM, Spread::Uniform), (PLAIN_HOT, Spread::Hot)] {
                let mut requests = traffic::singles(run.customers(spread, run.settings.contracts));
                let sample = plain.busy(run.settings.connections, run.settings.seconds, &mut requests)?;
                run.take_beside(row, Some(Kind::Postgres), &sample);
            }
        }
        Ok(())
    }
}

/// Runs single events against a server while `perf` records the server.
pub(crate) fn with_load(kind: Kind, settings: &Settings, look: impl FnOnce(u32) -> Outcome<std::process::Child>) -> Outcome<()> {
    let stage = Template::make(kind, &Build::Current { endpoints: settings.endpoints }, settings.contracts, &[])?.serve();
    stage.fill_cache()?;
    let mut looking = look(stage.process())?;
    let mut requests = traffic::singles(Customers::new(Spread::Uniform, stage.customers, 1));
    let sample = stage.busy(settings.connections, settings.seconds, &mut requests);
    let status = looking.wait()?;
    eprintln!("profile: {:.0} events a second meanwhile", sample?.rate());
    if status.success() { Ok(()) } else { Err(Failure::new(format!("perf ended with {status}"))) }
}
