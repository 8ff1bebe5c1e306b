//! Server metrics for Prometheus, in the OpenMetrics text format or in Prometheus' own text format.
//!
//! Labels are operation ids, status classes, error codes and kinds of work. They never contain values that a caller
//! chooses, organizations or secrets.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use actix_web::HttpRequest;
use actix_web::http::header::{Accept, Header as _, Quality};
use billing_application::billing_run::BillingReport;
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::usage::{Distribution, GroupFigures, ImportedFile, UsageWriter, WriterFigures};
use billing_domain::calendar::Timestamp;
use billing_domain::ports::{DeliveryBacklog, DiskUse, PoolUse, PrintError, PrintStop, Store, WriterPauses};
use billing_domain::webhook::AttemptOutcome;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Media type of the OpenMetrics text format.
const OPEN_METRICS: &str = "application/openmetrics-text";
/// The version of the OpenMetrics text format.
const OPEN_METRICS_VERSION: &str = "1.0.0";

/// Prefix of all metric names.
const PREFIX: &str = "usage_billing";
/// Upper bounds of the request duration buckets, in seconds.
const DURATIONS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// The time between two counts of the pending deliveries of webhooks.
const WEBHOOKS_COUNTED_EVERY: Duration = Duration::from_secs(15);
/// The time between two counts of the contracts with late documents.
const LATE_COUNTED_EVERY: Duration = Duration::from_secs(60);
const MICROS_PER_SECOND: i64 = 1_000_000;

/// A text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricsFormat {
    /// OpenMetrics 1.0.0.
    OpenMetrics,
    /// The text format of Prometheus, version 0.0.4.
    Prometheus,
}

impl MetricsFormat {
    /// Returns the format that a request prefers. OpenMetrics is only returned to clients that ask for it by name.
    pub(crate) fn preferred_by(request: &HttpRequest) -> Self {
        let (mut open_metrics, mut text) = (Quality::ZERO, Quality::ZERO);
        let accept = Accept::parse(request).map(|Accept(accepted)| accepted).unwrap_or_default();
        for accepted in &accept {
            let version = accepted.item.get_param("version");
            match accepted.item.essence_str() {
                OPEN_METRICS if version.is_none_or(|version| version.as_str() == OPEN_METRICS_VERSION) => {
                    open_metrics = open_metrics.max(accepted.quality);
                }
                "text/plain" | "text/*" | "*/*" => text = text.max(accepted.quality),
                _ => {}
            }
        }
        if open_metrics > Quality::ZERO && open_metrics >= text { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// Returns the value of `Content-Type`.
    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The kind of credential of a log-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogInKind {
    /// An API key with its password.
    Key,
    /// An administrator with e-mail address and password.
    Administrator,
}

impl LogInKind {
    const ALL: [Self; 2] = [Self::Key, Self::Administrator];

    const fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Administrator => "administrator",
        }
    }
}

/// The counters of one server.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<ResponseLabels, Counter>,
    durations: Family<OperationLabels, Histogram>,
    refused_events: Family<CodeLabels, Counter>,
    failed_log_ins: Family<KindLabels, Counter>,
    failed_prints: Family<ReasonLabels, Counter>,
    imports: ImportMetrics,
    billing: BillingMetrics,
    late: LateContracts,
    webhooks: WebhookMetrics,
}

/// The figures of the billing runs that the server starts periodically.
#[derive(Default)]
struct BillingMetrics {
    runs: Family<OutcomeLabels, Counter>,
    interval: Gauge,
    last_success: Gauge,
    failed_contracts: Gauge,
}

/// The figures of file imports.
#[derive(Default)]
struct ImportMetrics {
    running: Gauge,
    ended: Family<OutcomeLabels, Counter>,
}

/// The number of contracts with late documents, and the time of the last attempt to count them.
#[derive(Clone, Debug, Default)]
struct LateContracts(Arc<Mutex<LateCount>>);

#[derive(Debug, Default)]
struct LateCount {
    attempted_at: Option<Instant>,
    /// `None` until the first count.
    contracts: Option<u64>,
}

impl LateContracts {
    fn lock(&self) -> MutexGuard<'_, LateCount> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The figures of webhooks.
#[derive(Default)]
struct WebhookMetrics {
    attempts: Family<OutcomeLabels, Counter>,
    backlog: WebhookBacklog,
}

/// The pending deliveries of all organizations, and the time of the last attempt to count them.
#[derive(Clone, Debug, Default)]
struct WebhookBacklog(Arc<Mutex<BacklogCount>>);

#[derive(Debug, Default)]
struct BacklogCount {
    attempted_at: Option<Instant>,
    /// The number of deliveries, and the age of the oldest in seconds. `None` until the first count.
    counted: Option<(u64, i64)>,
}

impl WebhookBacklog {
    fn lock(&self) -> MutexGuard<'_, BacklogCount> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResponseLabels {
    operation: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

/// The reasons why a document was not printed, other than a character that no font has.
const PRINT_FAILURES: [&str; 5] = ["failed", "not_started", "out_of_memory", "process_ended", "timed_out"];

/// The outcomes of a billing run.
const RUN_SUCCEEDED: &str = "success";
const RUN_PARTIAL: &str = "partial";
const RUN_FAILED: &str = "failed";
const RUN_SKIPPED: &str = "skipped";

/// The outcomes of an import.
const IMPORT_DONE: &str = "done";
const IMPORT_STOPPED: &str = "stopped";
const IMPORT_FAILED: &str = "failed";

impl Metrics {
    /// Creates the metrics of a server with the given writer and store.
    pub(crate) fn new(writer: Arc<UsageWriter>, store: Arc<dyn Store>) -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let requests = Family::default();
        let durations = Family::new_with_constructor((|| Histogram::new(DURATIONS)) as fn() -> Histogram);
        registry.register("http_requests", "Requests that were answered", requests.clone());
        let help = "How long requests took from their head to their answer";
        registry.register_with_unit("http_request_duration", help, Unit::Seconds, durations.clone());
        registry.register_collector(Box::new(WriterCollector(writer)));
        registry.register_collector(Box::new(StoreCollector(store)));
        let refused_events = Family::<CodeLabels, Counter>::default();
        registry.register("refused_usage_events", "Usage events that were refused, by error code", refused_events.clone());
        let failed_log_ins = Family::<KindLabels, Counter>::default();
        registry.register("log_in_failures", "Log-ins with invalid credentials", failed_log_ins.clone());
        for kind in LogInKind::ALL {
            drop(failed_log_ins.get_or_create(&KindLabels { kind: kind.name() }));
        }
        let failed_prints = Family::<ReasonLabels, Counter>::default();
        registry.register("failed_prints", "Documents that could not be printed, by reason", failed_prints.clone());
        for reason in PRINT_FAILURES {
            drop(failed_prints.get_or_create(&ReasonLabels { reason }));
        }
        let (imports, billing, late) = (ImportMetrics::default(), BillingMetrics::default(), LateContracts::default());
        imports.register(&mut registry);
        billing.register(&mut registry);
        registry.register_collector(Box::new(late.clone()));
        let webhooks = WebhookMetrics::default();
        webhooks.register(&mut registry);
        Self { registry, requests, durations, refused_events, failed_log_ins, failed_prints, imports, billing, late, webhooks }
    }

    /// Records a completed request. `operation` is `None` for unknown routes and pages.
    pub(crate) fn answered(&self, operation: Option<&'static str>, status: u16, took: Duration) {
        let operation = operation.unwrap_or("other");
        let status = match status {
            100..200 => "1xx",
            200..300 => "2xx",
            300..400 => "3xx",
            400..500 => "4xx",
            _ => "5xx",
        };
        self.requests.get_or_create(&ResponseLabels { operation, status }).inc();
        self.durations.get_or_create(&OperationLabels { operation }).observe(took.as_secs_f64());
    }

    /// Counts a usage event that was refused.
    pub(crate) fn event_refused(&self, code: &'static str) {
        self.refused_events.get_or_create(&CodeLabels { code }).inc();
    }

    /// Counts a log-in with invalid credentials.
    pub(crate) fn log_in_failed(&self, kind: LogInKind) {
        self.failed_log_ins.get_or_create(&KindLabels { kind: kind.name() }).inc();
    }

    /// Counts a document that could not be printed.
    pub(crate) fn count_print<T>(&self, printed: UseCaseResult<T>) -> UseCaseResult<T> {
        let reason = match &printed {
            Err(UseCaseError::Print(PrintError::Stopped(stop))) => match stop {
                PrintStop::TimedOut { .. } => "timed_out",
                PrintStop::OutOfMemory { .. } => "out_of_memory",
                PrintStop::ProcessEnded(_) => "process_ended",
                PrintStop::NotStarted(_) => "not_started",
                PrintStop::NotReady(_) => "not_ready",
            },
            Err(UseCaseError::Print(PrintError::Failed(_))) => "failed",
            Ok(_) | Err(_) => return printed,
        };
        self.failed_prints.get_or_create(&ReasonLabels { reason }).inc();
        printed
    }

    /// Runs an import and counts it. A dry run is not counted.
    pub(crate) fn count_import<E>(
        &self,
        is_dry_run: bool,
        import: impl FnOnce() -> UseCaseResult<ImportedFile<E>>,
    ) -> UseCaseResult<ImportedFile<E>> {
        if is_dry_run {
            return import();
        }
        let running = RunningImport::begin(&self.imports);
        let imported = import();
        drop(running);
        let outcome = match &imported {
            Ok(ImportedFile { stopped: None, .. }) => IMPORT_DONE,
            Ok(ImportedFile { stopped: Some(_), .. }) => IMPORT_STOPPED,
            Err(_) => IMPORT_FAILED,
        };
        self.imports.ended.get_or_create(&OutcomeLabels { outcome }).inc();
        imported
    }

    /// Sets the interval of the server's billing runs.
    pub(crate) fn billing_runs_every(&self, interval: Duration) {
        self.billing.interval.set(i64::try_from(interval.as_secs()).unwrap_or(i64::MAX));
    }

    /// Records a billing run that the server started periodically. A run that checked every due contract is a success for
    /// the time of the last success, even if some contracts could not be billed: these have their own metric.
    pub(crate) fn billing_ran(&self, run: &UseCaseResult<BillingReport>, ended_at: Timestamp) {
        let outcome = match run {
            Ok(report) if report.failed.is_empty() => RUN_SUCCEEDED,
            Ok(_) => RUN_PARTIAL,
            Err(_) => RUN_FAILED,
        };
        self.billing.runs.get_or_create(&OutcomeLabels { outcome }).inc();
        if let Ok(report) = run {
            self.billing.last_success.set(ended_at.as_micros() / MICROS_PER_SECOND);
            self.billing.failed_contracts.set(i64::try_from(report.failed_contracts()).unwrap_or(i64::MAX));
        }
    }

    /// Records that a periodic billing run was skipped, because the clock is not trusted.
    pub(crate) fn billing_skipped(&self) {
        self.billing.runs.get_or_create(&OutcomeLabels { outcome: RUN_SKIPPED }).inc();
    }

    /// Returns whether the contracts with late documents must be counted now, at most once a minute. The caller then counts
    /// them.
    pub(crate) fn must_count_late_contracts(&self) -> bool {
        let mut count = self.late.lock();
        let is_due = count.attempted_at.is_none_or(|attempted_at| attempted_at.elapsed() >= LATE_COUNTED_EVERY);
        if is_due {
            count.attempted_at = Some(Instant::now());
        }
        is_due
    }

    /// Sets the number of contracts with late documents.
    pub(crate) fn set_late_contracts(&self, contracts: u64) {
        self.late.lock().contracts = Some(contracts);
    }

    /// Counts an attempt to deliver a notification to a webhook endpoint.
    pub(crate) fn webhook_attempted(&self, outcome: AttemptOutcome) {
        self.webhooks.attempts.get_or_create(&OutcomeLabels { outcome: outcome_label(outcome) }).inc();
    }

    /// Returns whether the pending deliveries of webhooks must be counted now, at most once in 15 seconds. The caller then counts
    /// them.
    pub(crate) fn must_count_webhooks(&self) -> bool {
        let mut count = self.webhooks.backlog.lock();
        let is_due = count.attempted_at.is_none_or(|attempted_at| attempted_at.elapsed() >= WEBHOOKS_COUNTED_EVERY);
        if is_due {
            count.attempted_at = Some(Instant::now());
        }
        is_due
    }

    /// Sets the number of pending deliveries of webhooks, and when the oldest of them was created.
    pub(crate) fn set_webhook_backlog(&self, backlog: DeliveryBacklog, now: Timestamp) {
        let age = backlog.oldest.map_or(0, |oldest| (now.as_micros() - oldest.as_micros()).max(0) / MICROS_PER_SECOND);
        self.webhooks.backlog.lock().counted = Some((backlog.pending, age));
    }

    /// Returns all metrics as text.
    pub(crate) fn text(&self, format: MetricsFormat) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(match format {
            MetricsFormat::OpenMetrics => text,
            MetricsFormat::Prometheus => prometheus_text(&text),
        })
    }
}

/// Converts OpenMetrics to the text format of Prometheus. There, a counter is declared by the name of its samples, which ends
/// with `_total`, and units and the end of the text are not declared.
fn prometheus_text(open_metrics: &str) -> String {
    let types = open_metrics.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let counters: BTreeSet<&str> = types.filter_map(|declared| declared.strip_suffix(" counter")).collect();
    let mut text = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        let declares = |kind: &'static str| Some((kind, line.strip_prefix(kind)?.split_once(' ')?));
        match ["# HELP ", "# TYPE "].into_iter().find_map(declares) {
            Some((kind, (name, rest))) if counters.contains(name) => text.extend([kind, name, "_total ", rest, "\n"]),
            _ => text.extend([line, "\n"]),
        }
    }
    text
}

impl BillingMetrics {
    fn register(&self, registry: &mut Registry) {
        let Self { runs, interval, last_success, failed_contracts } = self;
        registry.register("billing_runs", "Billing runs that the server started periodically", runs.clone());
        for outcome in [RUN_SUCCEEDED, RUN_PARTIAL, RUN_FAILED, RUN_SKIPPED] {
            drop(runs.get_or_create(&OutcomeLabels { outcome }));
        }
        let help = "Time between two billing runs, or 0 if the server starts none";
        registry.register_with_unit("billing_run_interval", help, Unit::Seconds, interval.clone());
        let help = "When a billing run last checked all due contracts, or 0 if none has since the start of the server";
        registry.register_with_unit("billing_run_last_success_timestamp", help, Unit::Seconds, last_success.clone());
        let help = "Contracts that the last of these runs could not bill, or not completely";
        registry.register("billing_run_failed_contracts", help, failed_contracts.clone());
    }
}

impl ImportMetrics {
    fn register(&self, registry: &mut Registry) {
        let Self { running, ended } = self;
        registry.register("imports_running", "File imports in progress", running.clone());
        registry.register("imports", "File imports that ended", ended.clone());
        for outcome in [IMPORT_DONE, IMPORT_STOPPED, IMPORT_FAILED] {
            drop(ended.get_or_create(&OutcomeLabels { outcome }));
        }
    }
}

impl WebhookMetrics {
    fn register(&self, registry: &mut Registry) {
        let Self { attempts, backlog } = self;
        let help = "Attempts of this server to deliver notifications to webhook endpoints, by outcome";
        registry.register("webhook_attempts", help, attempts.clone());
        for outcome in AttemptOutcome::ALL {
            drop(attempts.get_or_create(&OutcomeLabels { outcome: outcome_label(*outcome) }));
        }
        registry.register_collector(Box::new(backlog.clone()));
    }
}

const fn outcome_label(outcome: AttemptOutcome) -> &'static str {
    match outcome {
        AttemptOutcome::Delivered => "delivered",
        AttemptOutcome::Gone => "gone",
        AttemptOutcome::Overloaded => "overloaded",
        AttemptOutcome::Rejected => "rejected",
        AttemptOutcome::TimedOut => "timed_out",
        AttemptOutcome::Unreachable => "unreachable",
        AttemptOutcome::TlsFailed => "tls_failed",
        AttemptOutcome::AddressNotPublic => "address_not_public",
        AttemptOutcome::NotSent => "not_sent",
    }
}

impl Collector for WebhookBacklog {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let Some((pending, age)) = self.lock().counted else { return Ok(()) };
        let help = "Notifications of all organizations that wait for an attempt to deliver them to a webhook endpoint";
        gauge(pending).encode(encoder.encode_descriptor("webhook_deliveries_pending", help, None, MetricType::Gauge)?)?;
        let help = "Age of the oldest of them, or 0 if none waits";
        let unit = Some(&Unit::Seconds);
        gauge(age).encode(encoder.encode_descriptor("webhook_oldest_pending_age", help, unit, MetricType::Gauge)?)
    }
}

/// An import in progress. It is counted as such until it is dropped, also by a panic.
struct RunningImport(Gauge);

impl RunningImport {
    fn begin(imports: &ImportMetrics) -> Self {
        imports.running.inc();
        Self(imports.running.clone())
    }
}

impl Drop for RunningImport {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Collector for LateContracts {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let Some(contracts) = self.lock().contracts else { return Ok(()) };
        let help = "Contracts of all organizations with a document that is due for an hour or longer and not issued";
        gauge(contracts).encode(encoder.encode_descriptor("contracts_awaiting_issue", help, None, MetricType::Gauge)?)
    }
}

fn gauge(value: impl TryInto<i64>) -> ConstGauge {
    ConstGauge::new(value.try_into().unwrap_or(i64::MAX))
}

/// Reads the usage writer's counters at collection time.
#[derive(Debug)]
struct WriterCollector(Arc<UsageWriter>);

/// Label for the kind of work.
const KIND: &str = "kind";
/// Label for the pool of database connections.
const POOL: &str = "pool";

impl Collector for WriterCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let WriterFigures { events, changes, whole, waiting, turned_away, expired } = self.0.figures();
        let groups = [("events", &events), ("changes", &changes), ("whole", &whole)];
        let mut of_groups = |name, help, unit: Option<&Unit>, of: fn(&GroupFigures) -> (&Distribution, Scale)| {
            let mut metric = encoder.encode_descriptor(name, help, unit, MetricType::Histogram)?;
            for (kind, figures) in groups {
                let (distribution, scale) = of(figures);
                encode_distribution(metric.encode_family(&[(KIND, kind)])?, distribution, scale)?;
            }
            Ok::<_, fmt::Error>(())
        };
        let help = "How many events, changes, or events of one request, were written in a transaction";
        of_groups("writer_group_size", help, None, |group| (&group.sizes, Scale::Number))?;
        let help = "How long transactions took from their beginning until they were durable";
        of_groups("writer_group_duration", help, Some(&Unit::Seconds), |group| (&group.writing, Scale::Micros))?;
        let help = "How long their commits took";
        of_groups("writer_commit_duration", help, Some(&Unit::Seconds), |group| (&group.committing, Scale::Micros))?;

        let mut metric = encoder.encode_descriptor("writer_waiting", "What waits to be written", None, MetricType::Gauge)?;
        let kinds = [
            ("events", waiting.events),
            ("changes", waiting.changes),
            ("batches", waiting.batches),
            ("transactions", waiting.transactions),
        ];
        for (kind, many) in kinds {
            gauge(many).encode(metric.encode_family(&[(KIND, kind)])?)?;
        }
        let help = "About how much memory that takes";
        gauge(waiting.bytes).encode(encoder.encode_descriptor(
            "writer_waiting",
            help,
            Some(&Unit::Bytes),
            MetricType::Gauge,
        )?)?;
        let help = "Requests that were turned away because too much was waiting";
        let turned_away = ConstCounter::new(turned_away);
        turned_away.encode(encoder.encode_descriptor("writer_turned_away", help, None, MetricType::Counter)?)?;
        let help = "Requests whose time was up before they were begun";
        ConstCounter::new(expired).encode(encoder.encode_descriptor("writer_expired", help, None, MetricType::Counter)?)
    }
}

/// Reads the use of the store's connections at collection time, and its disk usage if the store is on this machine.
struct StoreCollector(Arc<dyn Store>);

impl fmt::Debug for StoreCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreCollector").finish_non_exhaustive()
    }
}

impl Collector for StoreCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let pools = self.0.pool_use();
        if !pools.is_empty() {
            let help = "Connections to the database";
            let mut metric = encoder.encode_descriptor("database_connections", help, None, MetricType::Gauge)?;
            for PoolUse { name, in_use, idle, .. } in &pools {
                for (state, connections) in [("in_use", *in_use), ("idle", *idle)] {
                    gauge(connections).encode(metric.encode_family(&[(POOL, name.as_str()), ("state", state)])?)?;
                }
            }
            let help = "Callers that wait for a connection to the database";
            let mut metric = encoder.encode_descriptor("database_connections_waiting", help, None, MetricType::Gauge)?;
            for PoolUse { name, waiting, .. } in &pools {
                gauge(*waiting).encode(metric.encode_family(&[(POOL, name.as_str())])?)?;
            }
        }
        let nodes = self.0.nodes();
        if !nodes.is_empty() {
            let help = "Whether a node of the distributed database serves its customers";
            let mut metric = encoder.encode_descriptor("database_node_up", help, None, MetricType::Gauge)?;
            for node in &nodes {
                let up = gauge(u64::from(node.problem.is_none()));
                up.encode(metric.encode_family(&[("node", node.name.as_str())])?)?;
            }
        }
        if let Some(WriterPauses { buckets, above_all, micros }) = self.0.writer_pauses() {
            let help = "How long writers waited for restarts of SQLite's write-ahead log";
            let unit = Some(&Unit::Seconds);
            let mut metric = encoder.encode_descriptor("database_writer_pause", help, unit, MetricType::Histogram)?;
            let count = above_all + buckets.iter().map(|(_, pauses)| pauses).sum::<u64>();
            let buckets: Vec<(f64, u64)> = buckets
                .into_iter()
                .map(|(bound, pauses)| (Scale::Micros.reported(bound), pauses))
                .chain([(f64::INFINITY, above_all)])
                .collect();
            metric.encode_histogram::<NoLabelSet>(Scale::Micros.reported(micros), count, &buckets, None)?;
        }
        let Some(DiskUse { database, log, free }) = self.0.disk_use() else { return Ok(()) };
        let help = "What the database's files take of their disk";
        let mut metric = encoder.encode_descriptor("database_size", help, Some(&Unit::Bytes), MetricType::Gauge)?;
        for (file, bytes) in [("database", database), ("log", log)] {
            gauge(bytes).encode(metric.encode_family(&[("file", file)])?)?;
        }
        let help = "What that disk has left";
        gauge(free).encode(encoder.encode_descriptor("disk_free", help, Some(&Unit::Bytes), MetricType::Gauge)?)
    }
}

/// The unit of a distribution's values.
#[derive(Clone, Copy)]
enum Scale {
    Number,
    /// Microseconds, exported as seconds.
    Micros,
}

impl Scale {
    fn reported(self, value: u64) -> f64 {
        match self {
            // Interprets the number as seconds: `u64` has no other lossless conversion to a float.
            Self::Number => Duration::from_secs(value).as_secs_f64(),
            Self::Micros => Duration::from_micros(value).as_secs_f64(),
        }
    }
}

fn encode_distribution(mut metric: MetricEncoder<'_>, distribution: &Distribution, scale: Scale) -> fmt::Result {
    let buckets: Vec<(f64, u64)> = distribution
        .buckets()
        .map(|(bound, many)| (scale.reported(bound), many))
        .chain([(f64::INFINITY, distribution.above_all())])
        .collect();
    metric.encode_histogram::<NoLabelSet>(scale.reported(distribution.sum()), distribution.count(), &buckets, None)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::ACCEPT;
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn the_format_of_prometheus_declares_counters_by_their_samples_and_no_units() {
        let open_metrics = "# HELP x_requests Requests.\n# TYPE x_requests counter\nx_requests_total{status=\"2xx\"} 1\n\
                            # HELP x_duration_seconds Time of requests.\n# TYPE x_duration_seconds histogram\n\
                            # UNIT x_duration_seconds seconds\nx_duration_seconds_sum 0.5\nx_duration_seconds_count 1\n\
                            x_duration_seconds_bucket{le=\"+Inf\"} 1\n# HELP x_requests_now Now.\n# TYPE x_requests_now gauge\n\
                            x_requests_now 3\n# EOF\n";
        let expected = "# HELP x_requests_total Requests.\n# TYPE x_requests_total counter\nx_requests_total{status=\"2xx\"} 1\n\
                        # HELP x_duration_seconds Time of requests.\n# TYPE x_duration_seconds histogram\n\
                        x_duration_seconds_sum 0.5\nx_duration_seconds_count 1\n\
                        x_duration_seconds_bucket{le=\"+Inf\"} 1\n# HELP x_requests_now Now.\n# TYPE x_requests_now gauge\n\
                        x_requests_now 3\n";
        assert_eq!(prometheus_text(open_metrics), expected);
    }

    #[test]
    fn open_metrics_is_returned_only_if_it_is_asked_for_by_name() {
        let of_prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                             application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        let cases = [
            (of_prometheus, MetricsFormat::OpenMetrics),
            ("application/openmetrics-text; version=1.0.0", MetricsFormat::OpenMetrics),
            ("application/openmetrics-text", MetricsFormat::OpenMetrics),
            ("text/plain, application/openmetrics-text; version=1.0.0", MetricsFormat::OpenMetrics),
            ("application/openmetrics-text; version=1.0.0; q=0.1, text/plain", MetricsFormat::Prometheus),
            ("application/openmetrics-text; version=1.0.0; q=0", MetricsFormat::Prometheus),
            ("application/openmetrics-text; version=0.0.1", MetricsFormat::Prometheus),
            ("text/plain; version=0.0.4", MetricsFormat::Prometheus),
            ("*/*", MetricsFormat::Prometheus),
            ("application/json", MetricsFormat::Prometheus),
            ("not a media type", MetricsFormat::Prometheus),
            ("", MetricsFormat::Prometheus),
        ];
        for (accept, format) in cases {
            let request = TestRequest::default().insert_header((ACCEPT, accept)).to_http_request();
            assert_eq!(MetricsFormat::preferred_by(&request), format, "{accept}");
        }
        assert_eq!(MetricsFormat::preferred_by(&TestRequest::default().to_http_request()), MetricsFormat::Prometheus);
    }
}
