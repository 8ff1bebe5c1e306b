//! Tests every block of docs/formats.md on a server. Formats are created, events are mapped by the format above them, and
//! expressions are evaluated on the event above them. The results must match the page.

use std::time::Duration;

use crate::common::Server;
use serde_json::{Value, json};

const PAGE: &str = include_str!("../../../../docs/formats.md");
const BETWEEN: &str = " → ";

/// Returns the blocks of the page in order, each with its info string and its content.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let mut fences = PAGE.split("```").skip(1).step_by(2);
    let parts = |block: &'static str| block.split_once('\n').expect("a block with lines");
    fences.by_ref().map(parts).collect()
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the value of an expression for an event, or the reason for an error.
async fn given(server: &Server, token: &str, expression: &str, event: &Value) -> String {
    let mapping = json!({
        "timestamp": "\"2024-06-01T12:00:00Z\"",
        "customer_ref": "\"acme\"",
        "usage_product_ref": "\"calls\"",
        "quantity": "1",
        "additional_report_data": {"x": expression},
    });
    let body = json!({"mapping": mapping, "event": event}).to_string();
    let answer = server.post("/api/usage/formats/test", ("authorization", token), &body).await;
    let answered = answer.json();
    if answer.status == 200 {
        return answered["mapped"]["additional_report_data"]["x"].to_string();
    }
    let detail = answered["detail"].as_str().expect("a detail").to_owned();
    // The detail starts with target, expression and position, which may contain colons.
    let (_, rest) = detail.split_once(expression).expect("the expression in the detail");
    format!("error: {}", rest.split_once(": ").expect("a reason").1)
}

#[actix_web::test]
async fn every_block_of_the_page_is_what_comes_out() {
    let server = Server::new();
    let token = server.bearer(&["catalog:write", "read"]).await;
    let authorization = ("authorization", token.as_str());
    let (mut format, mut event) = (Value::Null, Value::Null);
    let mut wrong: Vec<String> = Vec::new();
    // Compares text, because the order of keys matters, too.
    let mut compare = |what: &str, shown: &str, found: &str| {
        if shown != found {
            wrong.push(format!("{what}\n  the page: {shown}\n  the answer: {found}"));
        }
    };
    let mut tried = Vec::new();
    for (kind, text) in blocks() {
        tried.push(kind);
        let test = || json!({"format_name": format["format_name"], "event": event}).to_string();
        match kind {
            "json format" => {
                format = read(text);
                let made = server.post("/api/usage/formats/", authorization, text).await.json();
                for field in ["format_name", "mapping"] {
                    compare(text, &format[field].to_string(), &made[field].to_string());
                }
            }
            "json event" => event = read(text),
            "json mapped" => {
                let answer = server.post("/api/usage/formats/test", authorization, &test()).await;
                compare(text, &read(text).to_string(), &answer.json().to_string());
            }
            "json problem" => {
                let answer = server.post("/api/usage/formats/test", authorization, &test()).await.json();
                for (field, shown) in read(text).as_object().expect("an object") {
                    compare(field, &shown.to_string(), &answer[field].to_string());
                }
            }
            "json built-in" => {
                let answer = server
                    .get(
                        &format!("/api/usage/formats/{}", read(text)["format_ref"].as_str().expect("a reference")),
                        authorization,
                    )
                    .await;
                compare(text, &read(text).to_string(), &answer.json().to_string());
            }
            "expressions" => {
                for line in text.lines() {
                    let (expression, shown) = line.split_once(BETWEEN).expect(line);
                    let found = given(&server, &token, expression, &event).await;
                    compare(expression, shown, &found);
                }
            }
            // The request that software sends. The block `mapped` shows the same event.
            "json" => assert_eq!(read(text), json!({"format_name": format["format_name"], "event": event})),
            other => panic!("no test for a block of {other:?}"),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for kind in ["json mapped", "json problem", "json built-in", "expressions"] {
        assert!(tried.contains(&kind), "{kind}");
    }
}

#[test]
fn the_page_names_every_limit_as_it_is() {
    use billing_domain::format::MAX_EXPRESSION_BYTES;
    use billing_domain::usage::{MAX_REPORT_KEY_CHARS, MAX_REPORT_KEYS, MAX_REPORT_VALUE_BYTES};
    use billing_formats::{MAX_EVENT_BYTES, MAX_EVENT_DEPTH, MAX_EVENT_VALUES, MAX_TEXT_BYTES};
    for row in [
        format!("| an expression | {MAX_EXPRESSION_BYTES} bytes, 32 levels |"),
        format!("| an event | {} KiB, {MAX_EVENT_VALUES} values, {MAX_EVENT_DEPTH} levels |", MAX_EVENT_BYTES / 1024),
        format!("| a text, in an event or made from it | {} KiB |", MAX_TEXT_BYTES / 1024),
        format!(
            "| report data | {MAX_REPORT_KEYS} keys, keys to {MAX_REPORT_KEY_CHARS} characters, values to {} KiB |",
            MAX_REPORT_VALUE_BYTES / 1024
        ),
    ] {
        assert!(PAGE.contains(&row), "{row}");
    }
}

#[actix_web::test]
async fn who_tries_formats_waits_for_a_turn_so_that_others_go_on() {
    let server = Server::new();
    let bearer = server.bearer(&["read"]).await;
    let body = json!({"format_name": "Default Format", "event": {}}).to_string();
    for (at_once, status) in [(1, 422), (0, 503)] {
        let server = server.another(|settings| {
            settings.trials_at_once = at_once;
            settings.turn_wait = Duration::ZERO;
        });
        let tried = server.post("/api/usage/formats/test", ("authorization", &bearer), &body).await;
        assert_eq!((tried.status.as_u16(), tried.header("retry-after").is_some()), (status, status == 503), "{tried:?}");
    }
}
