//! Turns of the usage writer, on SQLite in memory.

use std::time::{Duration, Instant};

use crate::common::Server;

/// The time limit for a figure, which is far more than it needs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the number of transactions that had a turn of their own.
async fn turns(server: &Server) -> u32 {
    let text = server.get("/metrics", ("accept", "*/*")).await.text;
    let prefix = "usage_billing_writer_group_size_count{kind=\"whole\"} ";
    let count = text.lines().find_map(|line| line.strip_prefix(prefix)?.parse().ok());
    count.unwrap_or_else(|| panic!("no number of transactions: {text}"))
}

#[actix_web::test]
async fn with_one_writer_each_change_and_each_dry_run_has_a_turn() {
    for (groups_at_once, expected) in [(1, 3), (2, 0)] {
        let server = Server::with("http://billing.test", |settings| settings.groups_at_once = groups_at_once);
        // The API key is the first change.
        let bearer = server.bearer(&["catalog:write", "contracts:write", "documents:write", "usage:write", "read"]).await;
        let customer = r#"{"customer_ref":"acme","name":"Acme"}"#;
        let created = server.post("/api/customers/", ("authorization", &bearer), customer).await;
        assert_eq!(created.status, 200, "{created:?}");
        let edit = r#"{"path":"/api/customers/edit/acme","body":{"name":"Other"}}"#;
        let shown = server.post("/api/dry_run", ("authorization", &bearer), edit).await;
        assert_eq!(shown.status, 200, "{shown:?}");
        let stored = server.get("/api/customers/acme", ("authorization", &bearer)).await;
        assert_eq!(stored.json()["name"], "Acme", "a dry run stores nothing");
        // The writer counts a transaction just after its response.
        let until = Instant::now() + PATIENCE;
        while turns(&server).await < expected && Instant::now() < until {
            actix_web::rt::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(turns(&server).await, expected, "{groups_at_once} at once");
    }
}
