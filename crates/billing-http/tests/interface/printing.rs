//! Documents as files: the limit of concurrent renderings, and permissions, on SQLite in memory.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use billing_domain::ports::{DocumentPrinter as _, MockDocumentPrinter, PrintStop};
use billing_http::HttpSettings;
use billing_testkit::PlainPrinter;
use serde_json::Value;

use crate::common::{Server, UNKNOWN};

const SCOPES: [&str; 5] = ["usage:write", "contracts:write", "catalog:write", "documents:write", "read"];

/// Returns a server that rejects renderings over the limit without waiting, and the `Authorization` header of a key.
async fn start(prints_at_once: usize) -> (Server, String) {
    let server = Server::with("http://billing.test", prints(prints_at_once));
    let bearer = server.bearer(&SCOPES).await;
    (server, bearer)
}

/// Returns the settings of a server that rejects renderings over the limit without waiting.
fn prints(at_once: usize) -> impl FnOnce(&mut HttpSettings) {
    move |settings| {
        settings.prints_at_once = at_once;
        settings.turn_wait = Duration::ZERO;
    }
}

/// Creates a draft and returns its reference.
async fn draft(server: &Server, bearer: &str) -> String {
    let posts = [
        ("/api/customers/", r#"{"customer_ref":"acme","name":"Acme"}"#),
        ("/api/usage/products/", r#"{"usage_product_ref":"calls","name":"API calls"}"#),
        (
            "/api/pricings/",
            r#"{"product_pricing_ref":"api","name":"API","currency":"EUR","line_items":[{"line_item_id":"calls","name":"Calls",
               "kind":"USAGE","usage_product_ref":"calls","price":{"model":"PER_UNIT","unit_price":"0.5"}}]}"#,
        ),
        (
            "/api/contracts/",
            r#"{"customer_ref":"acme","products":[{"product_pricing_ref":"api","billing_start_date":"2026-01-01",
               "billing_end_date":"2026-12-31"}]}"#,
        ),
        (
            "/api/usage/event",
            r#"{"timestamp":"2026-01-20T10:00:00Z","customer_ref":"acme","usage_product_ref":"calls","quantity":2}"#,
        ),
    ];
    let mut last = Value::Null;
    for (path, body) in posts {
        let reply = server.post(path, ("authorization", bearer), body).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        last = reply.json();
    }
    last["related_document_ref"].as_str().expect("a reference").to_owned()
}

#[actix_web::test]
async fn more_documents_than_may_be_made_at_a_time_are_turned_away_and_kept_ones_are_not() {
    let (server, bearer) = start(1).await;
    let document = draft(&server, &bearer).await;
    let path = format!("/api/documents/{document}/pdf");
    let drawn = server.get(&path, ("authorization", &bearer)).await;
    assert_eq!((drawn.status.as_u16(), drawn.header("content-type")), (200, Some("application/pdf")), "{drawn:?}");
    let issued = server.post(&format!("/api/documents/issue/{document}"), ("authorization", &bearer), "").await;
    assert_eq!(issued.status, 200);
    let made = server.get(&path, ("authorization", &bearer)).await;
    assert_eq!(made.status, 200);
    assert_ne!(made.text, drawn.text);

    // A server on the same data that renders no documents.
    let busy = server.another(prints(0));
    let kept = busy.get(&path, ("authorization", &bearer)).await;
    assert_eq!((kept.status.as_u16(), &kept.text, kept.header("etag")), (200, &made.text, made.header("etag")));
    let next = server.post(
        "/api/usage/event",
        ("authorization", &bearer),
        r#"{"timestamp":"2026-01-20T11:00:00Z","customer_ref":"acme","usage_product_ref":"calls","quantity":1}"#,
    );
    let late = next.await.json()["related_document_ref"].as_str().expect("a reference").to_owned();
    let turned_away = busy.get(&format!("/api/documents/{late}/pdf"), ("authorization", &bearer)).await;
    assert_eq!(turned_away.problem(), (503, "overloaded".to_owned()));
    assert!(turned_away.header("retry-after").is_some());
}

#[actix_web::test]
async fn a_character_without_a_font_is_a_box_except_for_a_strict_entity() {
    let (server, bearer) = start(1).await;
    let key = ("authorization", bearer.as_str());
    let mut printer = MockDocumentPrinter::new();
    printer.expect_missing_glyphs().returning(|_| "☐".to_owned());
    printer.expect_print().returning(|printout| PlainPrinter.print(printout));
    let server = server.another_with_printer(printer, prints(1));
    let document = draft(&server, &bearer).await;
    let path = format!("/api/documents/{document}/pdf");
    for _ in 0..2 {
        assert_eq!(server.get(&path, key).await.status, 200);
        let shown = server.get(&format!("/api/documents/{document}"), key).await;
        assert_eq!(shown.json()["missing_glyphs"], "☐", "{shown:?}");
        server.post(&format!("/api/documents/issue/{document}"), key, "").await;
    }
    // The file of the issued document isn't stored: a server that can't print has none.
    let unable = server.another(prints(0));
    assert_eq!(unable.get(&path, key).await.problem(), (503, "overloaded".to_owned()));
    let shown = server.get(&format!("/api/documents/{document}"), key).await.json();
    let entity = shown["entity"]["entity_ref"].as_str().expect("a reference");
    let edited = server.post(&format!("/api/entities/edit/{entity}"), key, r#"{"paper":"STRICT"}"#).await;
    assert_eq!(edited.status, 200, "{edited:?}");
    let refused = server.get(&path, key).await;
    assert_eq!(refused.problem(), (409, "glyph_missing".to_owned()));
    assert!(refused.json()["detail"].as_str().is_some_and(|detail| detail.contains("“☐”")), "{refused:?}");
    for unknown in [UNKNOWN, "nonsense"] {
        let reply = server.get(&format!("/api/documents/{unknown}/pdf"), ("authorization", &bearer)).await;
        assert_eq!(reply.problem(), (404, "document_not_found".to_owned()));
    }
    let requester = server.bearer(&["usage:write"]).await;
    let reply = server.get(&path, ("authorization", &requester)).await;
    assert_eq!(reply.problem(), (403, "insufficient_scope".to_owned()));
}

#[actix_web::test]
async fn a_file_that_was_not_finished_can_be_requested_again() {
    let (server, bearer) = start(1).await;
    let mut printer = MockDocumentPrinter::new();
    printer.expect_missing_glyphs().returning(|_| String::new());
    printer.expect_print().times(1).returning(|_| Err(PrintStop::TimedOut { seconds: 20 }.into()));
    printer.expect_print_statement().times(1).returning(|_| Err(PrintStop::TimedOut { seconds: 20 }.into()));
    let server = server.another_with_printer(printer, prints(1));
    let document = draft(&server, &bearer).await;
    let stopped = server.get(&format!("/api/documents/{document}/pdf"), ("authorization", &bearer)).await;
    assert_eq!(stopped.problem(), (503, "print_failed".to_owned()));
    assert!(stopped.json()["detail"].as_str().is_some_and(|detail| detail.contains("longer than 20 s")), "{stopped:?}");
    let statement = server.get("/api/customers/statement/acme?format=pdf", ("authorization", &bearer)).await;
    assert_eq!(statement.problem(), (503, "print_failed".to_owned()));
    let metrics = server.get("/metrics", ("authorization", &bearer)).await.text;
    for (reason, count) in [("timed_out", 2), ("failed", 0), ("process_ended", 0)] {
        assert!(metrics.contains(&format!("usage_billing_failed_prints_total{{reason=\"{reason}\"}} {count}\n")), "{metrics}");
    }
}

#[actix_web::test]
async fn a_received_logo_is_printed_before_it_is_stored() {
    let (server, bearer) = start(1).await;
    let mut printer = MockDocumentPrinter::new();
    let is_complex = |image: &[u8]| image.windows(5).any(|part| part == b"<mask");
    printer.expect_can_print_logo().returning(move |logo| Ok(!logo.image.as_deref().is_some_and(is_complex)));
    let server = server.another_with_printer(printer, prints(1));
    let svg =
        |content: &str| STANDARD.encode(format!(r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1">{content}</svg>"#));
    let (simple, complex) = (svg("<path/>"), svg("<mask/>"));
    let entity = |logo: &str| format!(r#"{{"entity_ref":"other","name":"Other","number_prefix":"OTH","logo":"{logo}"}}"#);
    let key = ("authorization", bearer.as_str());
    let refused = server.post("/api/entities/", key, &entity(&complex)).await;
    assert_eq!(refused.problem(), (422, "logo_too_complex".to_owned()));
    assert_eq!(refused.fields(), [("/logo".to_owned(), "logo_too_complex".to_owned())]);
    let made = server.post("/api/entities/", key, &entity(&simple)).await;
    assert_eq!(made.status, 200, "{made:?}");
    let edit = |logo: &str| format!(r#"{{"logo":"{logo}"}}"#);
    let refused = server.post("/api/entities/edit/other", key, &edit(&complex)).await;
    assert_eq!(refused.problem(), (422, "logo_too_complex".to_owned()));
    let logo = made.json()["logo"].as_str().expect("a logo").to_owned();
    let named = server.post("/api/entities/edit/other", key, &edit(&logo)).await;
    assert_eq!((named.status.as_u16(), &named.json()["logo"]), (200, &Value::from(logo)), "a stored logo is not printed again");
    let unknown = server.post("/api/entities/edit/nobody", key, &edit(&complex)).await;
    assert_eq!(unknown.problem(), (404, "entity_not_found".to_owned()));

    // A server that prints nothing now takes everything else of an entity.
    let busy = server.another(prints(0));
    let waiting = busy.post("/api/entities/edit/other", key, &edit(&simple)).await;
    assert_eq!(waiting.problem(), (503, "overloaded".to_owned()));
    let named = busy.post("/api/entities/edit/other", key, r#"{"name":"Another"}"#).await;
    assert_eq!(named.status, 200, "{named:?}");
}
