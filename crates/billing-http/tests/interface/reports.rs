//! Responses of reports, on SQLite in memory.

use std::time::Duration;

use crate::common::{Server, UNKNOWN};

const CSV: &str =
    "event_ref,timestamp,customer_ref,customer_name,usage_product_ref,usage_product_name,quantity,document_numbers\r\n";

#[actix_web::test]
async fn a_report_without_events_has_its_headings_and_says_what_it_is() {
    let server = Server::new();
    let bearer = server.bearer(&["read"]).await;
    for (query, body, content_type, name) in [
        ("", CSV, "text/csv; charset=utf-8; header=present", "usage-report.csv"),
        ("?format=csv&customer_ref=nobody", CSV, "text/csv; charset=utf-8; header=present", "usage-report.csv"),
        ("?format=json&contract_ref=no%20reference", "[]\n", "application/json", "usage-report.json"),
    ] {
        let reply = server.get(&format!("/api/usage/report{query}"), ("authorization", &bearer)).await;
        assert_eq!((reply.status.as_u16(), reply.text.as_str()), (200, body), "{query}");
        assert_eq!(reply.header("content-type"), Some(content_type));
        assert_eq!(reply.header("content-disposition"), Some(format!("attachment; filename=\"{name}\"").as_str()));
        assert_eq!(reply.header("version"), Some("V0"));
    }
}

#[actix_web::test]
async fn what_goes_wrong_before_the_first_bytes_is_a_problem_document() {
    let server = Server::new();
    let bearer = server.bearer(&["read"]).await;
    for document in [UNKNOWN, "nonsense"] {
        let reply = server.get(&format!("/api/documents/{document}/usage.csv"), ("authorization", &bearer)).await;
        assert_eq!(reply.problem(), (404, "document_not_found".to_owned()));
        assert_eq!(reply.header("content-disposition"), None);
    }
    server.store.set_unavailable(true);
    let session = server.get("/api/usage/report", ("authorization", &bearer)).await;
    assert_eq!(session.problem(), (503, "unavailable".to_owned()));
}

#[actix_web::test]
async fn more_reports_than_may_be_made_at_a_time_are_turned_away() {
    let server = Server::with("http://billing.test", |settings| {
        settings.reports_at_once = 0;
        settings.turn_wait = Duration::ZERO;
    });
    let bearer = server.bearer(&["read"]).await;
    let reply = server.get("/api/usage/report", ("authorization", &bearer)).await;
    assert_eq!(reply.problem(), (503, "too_many_reports".to_owned()));
    let reply = server.get("/api/usage/summary?interval=day", ("authorization", &bearer)).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (200, "[]"), "summaries do not count as reports");
}
