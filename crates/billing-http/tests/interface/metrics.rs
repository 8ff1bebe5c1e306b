//! Metrics and health of a server.

use std::sync::Arc;

use crate::common::Server;
use billing_domain::ports::{Access, DiskUse, RollBack, Store, StoreResult, Tx};
use billing_teststore::TestStore;

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
    assert!(content_type.starts_with("application/openmetrics-text; version=1.0.0"), "{content_type}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    let requests = values(text, "usage_billing_http_requests_total");
    assert!(requests.contains(&(r#"operation="record_event",status="4xx""#, "1")), "{requests:?}");
    let durations = values(text, "usage_billing_http_request_duration_seconds_count");
    assert!(durations.contains(&(r#"operation="record_event""#, "1")), "{durations:?}");
    // No event was accepted, so nothing was committed.
    assert_eq!(values(text, "usage_billing_writer_group_size_count")[0], (r#"kind="events""#, "0"));
    let waiting = values(text, "usage_billing_writer_waiting");
    assert!(waiting.contains(&(r#"kind="changes""#, "0")), "{waiting:?}");
    assert_eq!(values(text, "usage_billing_writer_turned_away_total"), [("", "0")]);
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
async fn metrics_with_an_address_of_their_own_are_told_nowhere_else() {
    let server = Server::with("http://billing.test", |settings| settings.metrics_apart = true);
    assert_eq!(server.get("/metrics", ("accept", "*/*")).await.problem(), (404, "route_not_found".to_owned()));
}
