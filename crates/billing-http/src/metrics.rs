//! Server metrics in the OpenMetrics text format, which Prometheus reads.
//!
//! Labels are operation ids, status classes and kinds of work. They never contain values that a caller chooses,
//! organizations or secrets.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use billing_application::usage::{Distribution, GroupFigures, UsageWriter, WriterFigures};
use billing_domain::ports::{DiskUse, Store};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Media type of the metrics.
pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Prefix of all metric names.
const PREFIX: &str = "usage_billing";
/// Upper bounds of the request duration buckets, in seconds.
const DURATIONS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// The counters of one server.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<ResponseLabels, Counter>,
    durations: Family<OperationLabels, Histogram>,
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
        registry.register_collector(Box::new(DiskCollector(store)));
        Self { registry, requests, durations }
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

    /// Returns all metrics as text.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Reads the usage writer's counters at collection time.
#[derive(Debug)]
struct WriterCollector(Arc<UsageWriter>);

/// Label for the kind of work.
const KIND: &str = "kind";

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
        for (kind, many) in [("events", waiting.events), ("changes", waiting.changes), ("batches", waiting.batches)] {
            ConstGauge::new(i64::try_from(many).unwrap_or(i64::MAX)).encode(metric.encode_family(&[(KIND, kind)])?)?;
        }
        let bytes = ConstGauge::new(i64::try_from(waiting.bytes).unwrap_or(i64::MAX));
        let help = "About how much memory that takes";
        bytes.encode(encoder.encode_descriptor("writer_waiting", help, Some(&Unit::Bytes), MetricType::Gauge)?)?;
        let help = "Requests that were turned away because too much was waiting";
        let turned_away = ConstCounter::new(turned_away);
        turned_away.encode(encoder.encode_descriptor("writer_turned_away", help, None, MetricType::Counter)?)?;
        let help = "Requests whose time was up before they were begun";
        ConstCounter::new(expired).encode(encoder.encode_descriptor("writer_expired", help, None, MetricType::Counter)?)
    }
}

/// Reads the store's disk usage at collection time, if the store is on this machine.
struct DiskCollector(Arc<dyn Store>);

impl fmt::Debug for DiskCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskCollector").finish_non_exhaustive()
    }
}

impl Collector for DiskCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let Some(DiskUse { database, log, free }) = self.0.disk_use() else { return Ok(()) };
        let gauge = |bytes| ConstGauge::new(i64::try_from(bytes).unwrap_or(i64::MAX));
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
    fn told(self, value: u64) -> f64 {
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
        .map(|(bound, many)| (scale.told(bound), many))
        .chain([(f64::INFINITY, distribution.above_all())])
        .collect();
    metric.encode_histogram::<NoLabelSet>(scale.told(distribution.sum()), distribution.count(), &buckets, None)
}
