//! Rejected usage is counted with a last example, regardless of the way it is sent.

use std::time::{Duration, Instant};

use acceptance::{Client, Database, Request, Server, binary, catalog, on_both_databases, when};
use serde_json::{Value, json};

on_both_databases!(
    refused_usage_is_counted_whichever_way_it_comes,
    what_is_counted_is_written_when_a_server_stops_and_added_to_what_is_there,
    what_cannot_be_told_apart_is_counted_together,
    events_of_a_batch_whose_errors_are_not_listed_are_counted,
    only_callers_who_may_send_usage_are_counted,
);

const LIST: &str = "/api/usage/refused/filter?pageSize=1000";

/// Polls until this many events are counted: the counts are written every few seconds.
fn counted(client: &Client, query: &str, events: u64) -> Vec<Value> {
    let began = Instant::now();
    loop {
        let found = client.get(&format!("{LIST}&{query}")).ok().as_array().expect("a list").clone();
        let sum: u64 = found.iter().map(count).sum();
        if sum >= events || began.elapsed() > Duration::from_secs(60) {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns an event of an unknown customer.
fn of_nobody() -> Value {
    json!({"timestamp": when::now(), "customer_ref": "nobody", "usage_product_ref": catalog::API_CALLS, "quantity": 1})
}

fn field<'r>(row: &'r Value, name: &str) -> &'r str {
    row[name].as_str().expect(name)
}

fn count(row: &Value) -> u64 {
    row["count"].as_u64().expect("a count")
}

/// Returns the code, customer, usage product and count of each row.
fn reported(rows: &[Value]) -> Vec<(&str, &str, &str, u64)> {
    rows.iter().map(|row| (field(row, "code"), field(row, "customer_ref"), field(row, "usage_product_ref"), count(row))).collect()
}

fn refused_usage_is_counted_whichever_way_it_comes(database: &Database) {
    let server = Server::start(database);
    let (admin, client) = (Client::admin(&server), Client::new_key(&server));
    catalog::make(&client);
    let day = when::Day::today().to_string();

    // One by one: with a token, whose key is looked up together with the event, and with a session.
    assert_eq!(client.post("/api/usage/event", &of_nobody()).status, 422);
    assert_eq!(admin.post("/api/usage/event", &of_nobody()).status, 422);
    let wrong = catalog::with(of_nobody(), &json!({"quantity": "many"}));
    let by = client.with_header("X-Request-Id", "the-last-one");
    assert_eq!(by.post("/api/usage/event", &wrong).status, 422);
    let rows = counted(&client, "", 3);
    let names = ["nobody", catalog::API_CALLS];
    let mut expected = vec![("invalid_format", names[0], names[1], 1), ("unknown_reference", names[0], names[1], 2)];
    assert_eq!(reported(&rows), expected, "{rows:?}");
    assert_eq!((rows[0]["day"].as_str(), rows[0]["pointer"].as_str()), (Some(day.as_str()), Some("/quantity")));
    assert_eq!(rows[0]["request_id"], "the-last-one");
    let example: Value = serde_json::from_str(rows[0]["example"].as_str().expect("an example")).expect("the event");
    assert_eq!(example, wrong);

    // In a batch with accepted events, in a batch that is rejected entirely, line by line, and under a key.
    let good = catalog::event("nobody", 1);
    let batch = |atomic: bool| json!({"events": [of_nobody(), good.clone(), of_nobody()], "atomic": atomic});
    assert_eq!(client.post("/api/usage/event/batch", &batch(false)).status, 200);
    assert_eq!(client.post("/api/usage/event/batch", &batch(true)).status, 422);
    let lines = format!("{}\n{}\n", of_nobody(), of_nobody());
    let sent = |path: &str, headers: Vec<(&str, &str)>, body: &str| {
        let mut headers = headers;
        headers.push(("content-type", "application/x-ndjson"));
        let request = Request { method: "POST", path, headers, body: Some(body.as_bytes().to_vec()) };
        assert_eq!(client.send(&request).status, 200);
    };
    sent("/api/usage/event/batch", vec![], &lines);
    sent("/api/usage/event/batch", vec![("idempotency-key", "lines")], &lines);
    // In a file, but not in a dry run.
    for (path, key) in [("/api/usage/import?name=a&dry_run=true", "1"), ("/api/usage/import?name=b", "2")] {
        sent(path, vec![("idempotency-key", key)], &lines);
    }
    // Free-form events, as far as the format determines their fields.
    let mapping =
        json!({"timestamp": "event.at", "customer_ref": "event.who", "usage_product_ref": "event.what", "quantity": "event.n"});
    client.post("/api/usage/formats/", &json!({"format_ref": "f", "format_name": "F", "mapping": mapping})).ok();
    let raw = json!({"format_ref": "f", "event": {"customer_ref": "free-form"}});
    assert_eq!(client.post("/api/usage/event/formatted", &raw).status, 422);

    // Both batches have two events of `of_nobody` and one of `catalog::event`, whose customer doesn't exist either.
    expected[1].3 += 3 + 3 + 2 + 2 + 2;
    let rows = counted(&client, "customer_ref=nobody", 15);
    assert_eq!(reported(&rows), expected, "{rows:?}");
    let rows = counted(&client, "customer_ref=free-form", 1);
    assert_eq!(reported(&rows), [("format_error", "free-form", "", 1)], "{rows:?}");

    // With filters, and in pages.
    for (query, count) in [
        ("code=unknown_reference", 1),
        ("code=nothing", 0),
        ("usage_product_ref=nothing", 0),
        (format!("from={day}&to={day}").as_str(), 3),
        ("to=2020-01-01", 0),
        ("from=2999-01-01", 0),
    ] {
        assert_eq!(counted(&client, query, 0).len(), count, "{query}");
    }
    let second = client.get("/api/usage/refused/filter?pageSize=1&pageNumber=1");
    assert_eq!((second.header("x-total-count"), second.body.as_array().map(Vec::len)), ("3", Some(1)));
}

fn what_is_counted_is_written_when_a_server_stops_and_added_to_what_is_there(database: &Database) {
    for times in 1..=2 {
        let mut server = Server::start(database);
        let client = Client::new_key(&server);
        if times == 1 {
            catalog::make(&client);
        }
        assert_eq!(client.post("/api/usage/event", &of_nobody()).status, 422);
        server.terminate();
        server.wait_for_exit(Duration::from_secs(30)).expect("the server exits");
    }
    let server = Server::start(database);
    let rows = counted(&Client::new_key(&server), "", 2);
    assert_eq!(reported(&rows), [("unknown_reference", "nobody", catalog::API_CALLS, 2)], "{rows:?}");
    let first: &str = rows[0]["first_at"].as_str().expect("an instant");
    assert!(first < rows[0]["last_at"].as_str().expect("an instant"));
}

fn what_cannot_be_told_apart_is_counted_together(database: &Database) {
    let mut server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let long = "x".repeat(100);
    let event = |customer: &str| catalog::with(of_nobody(), &json!({"customer_ref": customer}));
    // Long texts are cut. References that are equal after the cut are counted together.
    for end in ["a", "b"] {
        assert_eq!(client.post("/api/usage/event", &event(&format!("{long}{end}"))).status, 422);
    }
    let note = catalog::with(event("long"), &json!({"additional_report_data": {"note": "ä".repeat(2000)}}));
    assert_eq!(client.post("/api/usage/event", &note).status, 422);
    server.terminate();
    server.wait_for_exit(Duration::from_secs(30)).expect("the server exits");
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let rows = counted(&client, "", 3);
    let kept = "x".repeat(64);
    let of: Vec<(&str, u64)> = reported(&rows).into_iter().map(|(_, customer, _, count)| (customer, count)).collect();
    assert_eq!(of, [(kept.as_str(), 2), ("long", 1)], "{rows:?}");
    let longest = rows.iter().map(|row| row["example"].as_str().map_or(0, str::len)).max();
    assert!(longest.is_some_and(|bytes| (2046..=2048).contains(&bytes)), "{longest:?}");
}

fn events_of_a_batch_whose_errors_are_not_listed_are_counted(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let events = vec![json!({"x": 1}); 2_000];
    let batch = client.post("/api/usage/event/batch", &json!({"events": events})).ok();
    assert_eq!(batch["results"][1_999]["errors"], json!([]), "the errors of the last event are not listed");
    assert_eq!(client.post("/api/usage/event/batch", &json!({"events": events, "atomic": true})).status, 422);
    let rows = counted(&client, "", 4_000);
    assert_eq!(reported(&rows), [("unknown_field", "", "", 4_000)], "{rows:?}");
    assert_eq!(rows[0]["pointer"], "/x");
}

fn only_callers_who_may_send_usage_are_counted(database: &Database) {
    let server = Server::start(database);
    let (admin, client) = (Client::admin(&server), Client::new_key(&server));
    let key = admin.generate_key(&json!({}));
    let leaving = Client::key(&server, &key);
    admin.delete(&format!("/auth/user/{}", key.api_key_ref));
    let reader = Client::key(&server, &admin.generate_key(&json!({"scopes": ["read"]})));
    // Rejected because of their content, before the sender is looked up.
    for (sender, status) in [(&leaving, 401), (&reader, 403), (&client, 422)] {
        assert_eq!(sender.post("/api/usage/event", &json!({"customer_ref": "told"})).status, status);
    }
    let rows = counted(&client, "", 1);
    assert_eq!(rows.iter().map(|row| row["count"].as_u64()).collect::<Vec<_>>(), [Some(1)], "{rows:?}");
    assert_eq!(reader.get(LIST).status, 200);
    let writer = Client::key(&server, &admin.generate_key(&json!({"scopes": ["usage:write"]})));
    assert_eq!(writer.get(LIST).status, 403);
    // Another organization sees none of the counts.
    binary::succeed(database, &["organization", "create", "second"]);
    let password = "another long pass phrase";
    let arguments = ["admin", "create", "--email", "s@second.example", "--organization", "second", "--password", password];
    binary::succeed(database, &arguments);
    let stranger = Client::log_in_admin(&server, "s@second.example", password);
    assert_eq!(stranger.get(LIST).ok(), json!([]));
}
