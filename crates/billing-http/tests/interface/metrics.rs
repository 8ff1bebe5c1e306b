//! Metrics and health of a server.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{EMAIL, Server};
use billing_application::billing_run::run_billing_everywhere;
use billing_application::error::UseCaseError;
use billing_domain::ports::{Access, DiskUse, PoolUse, RollBack, Store, StoreError, StoreResult, Tx, WriterPauses};
use billing_testkit::fixtures;
use billing_teststore::TestStore;
use serde_json::json;

/// Returns the label sets and values of a metric.
fn values<'t>(text: &'t str, name: &str) -> Vec<(&'t str, &'t str)> {
    let of_line = |line: &'t str| {
        let (labels, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
        Some((labels.strip_prefix('{').and_then(|labels| labels.strip_suffix('}')).unwrap_or(labels), value))
    };
    text.lines().filter_map(of_line).collect()
}

#[actix_web::test]
async fn requests_and_what_is_written_are_told_to_anybody_and_name_nobody() {
    let server = Server::new();
    let bearer = server.bearer(&["usage:write"]).await;
    let event =
        r#"{"timestamp":"2026-01-10T00:00:00Z","customer_ref":"secret-customer","usage_product_ref":"calls","quantity":1}"#;
    let refused = server.post("/api/usage/event", ("authorization", &bearer), event).await;
    assert_eq!(refused.status.as_u16(), 422);
    let reply = server.get("/metrics", ("accept", "*/*")).await;
    let text = &reply.text;
    assert_eq!(reply.status.as_u16(), 200);
    let content_type = reply.header("content-type").expect("a type");
    assert_eq!(content_type, "text/plain; version=0.0.4; charset=utf-8");
    assert!(text.contains("# TYPE usage_billing_http_requests_total counter\n"), "{text}");
    assert!(!text.contains("# EOF"), "{text}");
    let requests = values(text, "usage_billing_http_requests_total");
    assert!(requests.contains(&(r#"operation="record_event",status="4xx""#, "1")), "{requests:?}");
    let durations = values(text, "usage_billing_http_request_duration_seconds_count");
    assert!(durations.contains(&(r#"operation="record_event""#, "1")), "{durations:?}");
    // No event was accepted, so nothing was committed.
    assert_eq!(values(text, "usage_billing_writer_group_size_count")[0], (r#"kind="events""#, "0"));
    let waiting = values(text, "usage_billing_writer_waiting");
    assert!(waiting.contains(&(r#"kind="changes""#, "0")), "{waiting:?}");
    assert_eq!(values(text, "usage_billing_writer_turned_away_total"), [("", "0")]);
    assert_eq!(values(text, "usage_billing_refused_usage_events_total"), [(r#"code="unknown_reference""#, "1")]);
    assert!(!text.contains("secret-customer"), "{text}");
    assert!(!text.contains("disk_free"), "the store has no local disk: {text}");
}

/// A store that reports its disk use.
struct OnDisk(Arc<TestStore>);

impl Store for OnDisk {
    fn run(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()> {
        self.0.run(access, work)
    }

    fn ready(&self) -> StoreResult<()> {
        self.0.ready()
    }

    fn disk_use(&self) -> Option<DiskUse> {
        Some(DiskUse { database: 3, log: 2, free: 1 })
    }

    fn pool_use(&self) -> Vec<PoolUse> {
        vec![
            PoolUse { name: "writer".to_owned(), in_use: 1, idle: 0, waiting: 4 },
            PoolUse { name: "readers".to_owned(), in_use: 2, idle: 3, waiting: 0 },
        ]
    }

    fn writer_pauses(&self) -> Option<WriterPauses> {
        Some(WriterPauses { buckets: vec![(500, 3), (5_000, 2)], above_all: 1, micros: 30_000 })
    }
}

#[actix_web::test]
async fn the_pauses_of_writers_are_counted_by_duration() {
    let store = Arc::new(TestStore::new());
    let server = Server::on(Arc::new(OnDisk(Arc::clone(&store))), store, "http://billing.test", |_| {});
    let reply = server.get("/metrics", ("accept", "*/*")).await;
    let buckets = values(&reply.text, "usage_billing_database_writer_pause_seconds_bucket");
    assert_eq!(buckets, [(r#"le="0.0005""#, "3"), (r#"le="0.005""#, "5"), (r#"le="+Inf""#, "6")]);
    assert_eq!(values(&reply.text, "usage_billing_database_writer_pause_seconds_sum"), [("", "0.03")]);
    assert_eq!(values(&reply.text, "usage_billing_database_writer_pause_seconds_count"), [("", "6")]);
}

#[actix_web::test]
async fn a_disk_that_fills_is_seen_before_it_is_full() {
    let store = Arc::new(TestStore::new());
    let server = Server::on(Arc::new(OnDisk(Arc::clone(&store))), store, "http://billing.test", |_| {});
    let reply = server.get("/metrics", ("accept", "*/*")).await;
    let sizes = values(&reply.text, "usage_billing_database_size_bytes");
    assert_eq!(sizes, [(r#"file="database""#, "3"), (r#"file="log""#, "2")]);
    assert_eq!(values(&reply.text, "usage_billing_disk_free_bytes"), [("", "1")]);
}

#[actix_web::test]
async fn the_connections_to_the_database_are_counted_by_pool() {
    let store = Arc::new(TestStore::new());
    let server = Server::on(Arc::new(OnDisk(Arc::clone(&store))), store, "http://billing.test", |_| {});
    let reply = server.get("/metrics", ("accept", "*/*")).await;
    let connections = values(&reply.text, "usage_billing_database_connections{");
    let expected = [
        (r#"pool="writer",state="in_use"}"#, "1"),
        (r#"pool="writer",state="idle"}"#, "0"),
        (r#"pool="readers",state="in_use"}"#, "2"),
        (r#"pool="readers",state="idle"}"#, "3"),
    ];
    assert_eq!(connections, expected);
    let waiting = values(&reply.text, "usage_billing_database_connections_waiting");
    assert_eq!(waiting, [(r#"pool="writer""#, "4"), (r#"pool="readers""#, "0")]);
}

#[actix_web::test]
async fn the_format_of_metrics_is_negotiated() {
    let server = Server::new();
    let open_metrics = server.get("/metrics", ("accept", "application/openmetrics-text; version=1.0.0")).await;
    assert_eq!(open_metrics.header("content-type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    assert!(open_metrics.text.ends_with("# EOF\n"), "{open_metrics:?}");
    assert!(open_metrics.text.contains("# TYPE usage_billing_log_in_failures counter\n"), "{open_metrics:?}");
    let text = server.get("/metrics", ("accept", "text/plain")).await;
    assert_eq!(text.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    // Both formats have the same samples.
    let names = |text: &str| -> Vec<String> {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        samples.map(|line| line.split(['{', ' ']).next().expect("a name").to_owned()).collect()
    };
    let (first, second) = (names(&open_metrics.text), names(&text.text));
    assert!(first.len() > 10 && first.iter().all(|name| second.contains(name)), "{first:?} {second:?}");
}

#[actix_web::test]
async fn log_ins_that_fail_and_imports_are_counted() {
    let server = Server::new();
    let bearer = server.bearer(&["usage:write"]).await;
    let event = json!({"timestamp": "2026-01-10T00:00:00Z", "customer_ref": "nobody", "usage_product_ref": "calls", "quantity": 1,
                       "idempotency_key": "first"});
    let file = json!([event]).to_string();
    assert_eq!(server.post("/api/usage/import", ("authorization", &bearer), &file).await.status.as_u16(), 200);
    assert_eq!(server.post("/api/usage/import?dry_run=true", ("authorization", &bearer), &file).await.status.as_u16(), 200);
    assert_eq!(server.log_in(&json!({"email": EMAIL, "password": "not this password"})).await.status.as_u16(), 401);
    let reply = server.get("/metrics", ("accept", "*/*")).await;
    let failures = values(&reply.text, "usage_billing_log_in_failures_total");
    assert_eq!(failures.len(), 2, "{failures:?}");
    assert!(failures.contains(&(r#"kind="administrator""#, "1")) && failures.contains(&(r#"kind="key""#, "0")), "{failures:?}");
    let imports = values(&reply.text, "usage_billing_imports_total");
    assert_eq!(imports.len(), 3, "{imports:?}");
    let ended = [(r#"outcome="done""#, "1"), (r#"outcome="stopped""#, "0"), (r#"outcome="failed""#, "0")];
    assert!(ended.iter().all(|ended| imports.contains(ended)), "{imports:?}");
    assert_eq!(values(&reply.text, "usage_billing_imports_running"), [("", "0")]);
    assert_eq!(values(&reply.text, "usage_billing_refused_usage_events_total"), [(r#"code="unknown_reference""#, "1")]);
}

#[actix_web::test]
async fn billing_runs_and_what_they_leave_are_counted() {
    let server = Server::new();
    let bearer = server.bearer(&["usage:write", "contracts:write", "catalog:write"]).await;
    server.make_a_contract(&bearer).await;
    server.clock.set(fixtures::at("2026-02-10T12:00:00Z"));
    server.state.billing_runs_every(Duration::from_secs(60));
    let text = server.get("/metrics", ("accept", "*/*")).await.text;
    assert_eq!(values(&text, "usage_billing_contracts_awaiting_issue"), [("", "1")]);
    assert_eq!(values(&text, "usage_billing_billing_run_interval_seconds"), [("", "60")]);
    assert_eq!(values(&text, "usage_billing_billing_run_last_success_timestamp_seconds"), [("", "0")]);

    server.state.record_skipped_billing_run();
    server.state.record_billing_run(&Err(UseCaseError::Store(StoreError::Contended)));
    let text = server.get("/metrics", ("accept", "*/*")).await.text;
    assert_eq!(values(&text, "usage_billing_billing_run_last_success_timestamp_seconds"), [("", "0")]);
    server.state.record_billing_run(&run_billing_everywhere(&server.services));
    let text = server.get("/metrics", ("accept", "*/*")).await.text;
    assert_eq!(values(&text, "usage_billing_billing_run_last_success_timestamp_seconds"), [("", "1770724800")]);
    assert_eq!(values(&text, "usage_billing_billing_run_failed_contracts"), [("", "0")]);
    let runs = values(&text, "usage_billing_billing_runs_total");
    for (outcome, count) in [("success", "1"), ("partial", "0"), ("failed", "1"), ("skipped", "1")] {
        assert!(runs.contains(&(format!("outcome=\"{outcome}\"").as_str(), count)), "{outcome}: {runs:?}");
    }
    // The count of late contracts is not older than a minute, but may be older than the run. Another server counts anew.
    let text = server.another(|_| {}).get("/metrics", ("accept", "*/*")).await.text;
    assert_eq!(values(&text, "usage_billing_contracts_awaiting_issue"), [("", "0")]);
}

#[actix_web::test]
async fn metrics_with_an_address_of_their_own_are_told_nowhere_else() {
    let server = Server::with("http://billing.test", |settings| settings.metrics_apart = true);
    assert_eq!(server.get("/metrics", ("accept", "*/*")).await.problem(), (404, "route_not_found".to_owned()));
}
