//! Batches of events: each event has its result at its position, an atomic batch is recorded entirely or not at all, and lines
//! are answered while more arrive.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use acceptance::{Answer, Client, Database, Request, Server, catalog, on_both_databases, when};
use serde_json::{Value, json};

on_both_databases!(
    of_ten_thousand_events_the_hundred_bad_ones_are_refused_in_their_places,
    an_atomic_batch_with_bad_events_stores_nothing_and_names_them,
    an_event_under_a_key_is_taken_once_from_any_batch,
    lines_are_taken_like_events_and_answered_line_by_line,
    lines_are_answered_before_the_last_has_arrived,
    batches_that_meet_on_the_same_contracts_lose_nothing,
    a_response_to_very_many_bad_events_lists_a_thousand_errors,
    large_bodies_are_taken_like_small_ones,
);

const BATCH: &str = "/api/usage/event/batch";
const NDJSON: &str = "application/x-ndjson";
const MANY: usize = 10_000;

fn lines(events: &[Value]) -> Vec<u8> {
    events.iter().map(|event| format!("{event}\n")).collect::<String>().into_bytes()
}

fn post_lines(client: &Client, path: &str, body: impl Into<Vec<u8>>) -> Answer {
    client.send(&Request::post(path, body).with("Content-Type", NDJSON))
}

#[track_caller]
fn results(answer: Answer) -> Vec<Value> {
    answer.ok()["results"].as_array().expect("results").clone()
}

#[track_caller]
fn results_of_lines(answer: &Answer) -> Vec<Value> {
    assert_eq!((answer.status, answer.header("Content-Type")), (200, NDJSON), "{}", answer.text);
    answer.text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// Returns a short form of each result: the document number, or the error code and pointers.
fn words(results: &[Value]) -> Vec<String> {
    let word = |result: &Value| match result["related_document_numbers"].as_str() {
        Some(numbers) => numbers.to_owned(),
        None => {
            let pointers = result["errors"].as_array().into_iter().flatten();
            let pointers = pointers.map(|error| error["pointer"].as_str().unwrap_or_default());
            [result["code"].as_str().expect("a code")].into_iter().chain(pointers).collect::<Vec<_>>().join(" ")
        }
    };
    results.iter().map(word).collect()
}

fn bad_event(index: usize) -> (Value, &'static str) {
    match index / 100 % 5 {
        0 => (json!({"timestamp": when::now()}), "validation_failed /customer_ref /usage_product_ref /quantity"),
        1 => (catalog::event("nobody", 1), "validation_failed /customer_ref"),
        2 => (catalog::event(catalog::ACME, -1), "validation_failed /quantity"),
        3 => (
            catalog::with(catalog::event(catalog::ACME, 1), &json!({"timestamp": "2001-01-01T00:00:00Z"})),
            "no_matching_contract",
        ),
        _ => (json!(7), "validation_failed "),
    }
}

fn of_ten_thousand_events_the_hundred_bad_ones_are_refused_in_their_places(database: &Database) {
    let (server, client) = catalog::stage(database);
    let contract = catalog::make_contract(&client, &catalog::contract(catalog::ACME));
    catalog::make_customer(&client, "globex");
    let other = catalog::make_contract(&client, &catalog::contract("globex"));
    let bad = |index: usize| index % 100 == 50;
    let events: Vec<Value> = (0..MANY)
        .map(|index| match index {
            index if bad(index) => bad_event(index).0,
            index => catalog::event(if index % 2 == 0 { catalog::ACME } else { "globex" }, 1),
        })
        .collect();

    let results = results(client.post(BATCH, &json!({"events": events})));

    assert_eq!(results.len(), MANY);
    let words = words(&results);
    // On a distributed database, the shard of either customer may be written first.
    let [of_acme, of_globex] = if words[0] == "UB-INV-1" { ["UB-INV-1", "UB-INV-2"] } else { ["UB-INV-2", "UB-INV-1"] };
    for (index, (result, word)) in results.iter().zip(&words).enumerate() {
        let expected = match index {
            index if bad(index) => bad_event(index).1,
            index if index % 2 == 0 => of_acme,
            _ => of_globex,
        };
        assert_eq!(word, expected, "{index}: {result}");
        if bad(index) {
            assert_eq!(result["instance"], BATCH);
        } else {
            assert_eq!(result.as_object().expect("an object").len(), 3, "{result}");
        }
    }
    let quantity =
        |contract: &str| catalog::current_invoice(&client, contract)["products"][0]["line_items"][1]["quantity"].clone();
    assert_eq!((quantity(&contract), quantity(&other)), (json!(4_900), json!(5_000)));
    let last = client.get(&format!("/api/usage/event/{}", results[MANY - 1]["event_ref"].as_str().expect("a reference"))).ok();
    assert_eq!(last["customer_ref"], "globex");
    let too_many: Vec<Value> = (0..=MANY).map(|_| json!({})).collect();
    let refused = client.post(BATCH, &json!({"events": too_many}));
    assert_eq!((refused.status, refused.body["errors"][0]["pointer"].as_str()), (422, Some("/events")));
    drop(server);
}

fn a_response_to_very_many_bad_events_lists_a_thousand_errors(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let events = vec![json!({"x": 1}); MANY];
    let whole = json!({"events": events}).to_string();
    let lines = lines(&events);
    let whole_answers = [
        client.send(&Request::post(BATCH, whole.clone())),
        client.send(&Request::post(BATCH, whole.clone()).with("Idempotency-Key", "whole")),
    ];
    let line_answers = [
        post_lines(&client, BATCH, lines.clone()),
        client.send(&Request::post(BATCH, lines.clone()).with("Content-Type", NDJSON).with("Idempotency-Key", "lines")),
    ];
    let sizes = whole_answers.iter().chain(&line_answers).map(|answer| answer.bytes.len()).collect::<Vec<_>>();
    assert!(sizes.iter().all(|bytes| *bytes < 4_000_000), "{sizes:?}");

    let all = whole_answers.map(results).into_iter().chain(line_answers.iter().map(results_of_lines));
    for (way, results) in all.enumerate() {
        assert_eq!(results.len(), MANY, "{way}");
        assert!(results.iter().all(|result| result["code"] == "validation_failed" && result["status"] == 422), "{way}");
        let listed: Vec<usize> = results.iter().map(|result| result["errors"].as_array().expect("errors").len()).collect();
        assert_eq!((&listed[..200], &listed[200..]), (&[5; 200][..], &[0; MANY - 200][..]), "{way}");
        assert_eq!(results[0]["detail"], "invalid request fields: 5; see `errors`");
        assert_eq!(results[MANY - 1]["detail"], "invalid request fields: 5; to see them, send the event alone");
    }

    let atomic = [
        client.send(&Request::post(&format!("{BATCH}?atomic=true"), whole)),
        post_lines(&client, &format!("{BATCH}?atomic=true"), lines),
    ];
    for refused in atomic {
        assert_eq!((refused.status, refused.body["code"].as_str()), (422, Some("batch_refused")), "{}", refused.text);
        assert_eq!(refused.body["errors"].as_array().map(Vec::len), Some(100));
        let detail = refused.text_of("detail");
        assert!(detail.starts_with("invalid events in the batch: 10,000; no event is stored"), "{detail}");
        assert!(detail.contains("and 49,900 more problems"), "{detail}");
    }
}

fn large_bodies_are_taken_like_small_ones(database: &Database) {
    let (_server, client) = catalog::stage(database);
    let contract = catalog::make_contract(&client, &catalog::contract(catalog::ACME));
    let data: serde_json::Map<String, Value> = (0..100).map(|key| (format!("key {key}"), json!("x".repeat(500)))).collect();
    let large = catalog::with(catalog::event(catalog::ACME, 1), &json!({"additional_report_data": data}));
    let effects = client.post("/api/dry_run", &json!({"path": "/api/usage/event", "body": large})).ok();
    assert!(effects["opened"].as_array().is_some_and(|opened| !opened.is_empty()), "{effects}");

    let keyed = Request::post("/api/usage/event", large.to_string()).with("Idempotency-Key", "large");
    let (first, again) = (client.send(&keyed), client.send(&keyed));
    assert_eq!((first.status, first.header("Idempotency-Replayed")), (200, ""), "{}", first.text);
    assert_eq!((again.bytes == first.bytes, again.header("Idempotency-Replayed")), (true, "true"), "{}", again.text);
    let stored = client.get(&format!("/api/usage/event/{}", first.text_of("event_ref"))).ok();
    assert_eq!(stored["additional_report_data"], large["additional_report_data"]);
    let other = Request::post("/api/usage/event", catalog::with(large.clone(), &json!({"quantity": 2})).to_string());
    let reused = client.send(&other.with("Idempotency-Key", "large"));
    assert_eq!((reused.status, reused.body["code"].as_str()), (422, Some("idempotency_key_reuse")), "{}", reused.text);

    let batch = json!({"events": vec![large; 20]}).to_string();
    let keyed = Request::post(BATCH, batch).with("Idempotency-Key", "large batch");
    let (first, again) = (client.send(&keyed), client.send(&keyed));
    assert!(words(&results(first.clone())).iter().all(|word| word == "UB-INV-1"), "{}", first.text);
    assert_eq!((again.bytes == first.bytes, again.header("Idempotency-Replayed")), (true, "true"));
    let line = catalog::current_invoice(&client, &contract)["products"][0]["line_items"][1].clone();
    assert_eq!(line["quantity"], json!(21));
}

fn an_atomic_batch_with_bad_events_stores_nothing_and_names_them(database: &Database) {
    let (_server, client) = catalog::stage(database);
    let contract = catalog::make_contract(&client, &catalog::contract(catalog::ACME));
    let keyed = catalog::with(catalog::event(catalog::ACME, 5), &json!({"idempotency_key": "k"}));
    let early = catalog::with(catalog::event(catalog::ACME, 1), &json!({"timestamp": "2001-01-01T00:00:00Z"}));

    for (events, expected) in [
        (
            json!([keyed, bad_event(0).0]),
            "/events/1/customer_ref required, /events/1/usage_product_ref required, /events/1/quantity required",
        ),
        (
            json!([early, keyed, catalog::event("nobody", 1)]),
            "/events/0 no_matching_contract, /events/2/customer_ref unknown_reference",
        ),
    ] {
        let refused = client.post(BATCH, &json!({"events": events, "atomic": true}));
        assert_eq!((refused.status, refused.body["code"].as_str()), (422, Some("batch_refused")), "{}", refused.text);
        let errors = refused.body["errors"].as_array().expect("errors").iter();
        let errors: Vec<String> = errors
            .map(|error| format!("{} {}", error["pointer"].as_str().expect("a pointer"), error["code"].as_str().expect("a code")))
            .collect();
        assert_eq!(errors.join(", "), expected);
        let body = lines(events.as_array().expect("events"));
        let refused = post_lines(&client, &format!("{BATCH}?atomic=true"), body);
        assert_eq!((refused.status, refused.body["code"].as_str()), (422, Some("batch_refused")), "{}", refused.text);
    }
    assert!(catalog::documents(&client).is_empty(), "no document was opened");

    let taken = results(client.post(BATCH, &json!({"events": [keyed, catalog::event(catalog::ACME, 1)], "atomic": true})));
    assert_eq!(words(&taken), ["UB-INV-1", "UB-INV-1"]);
    let again = post_lines(&client, &format!("{BATCH}?atomic=true"), lines(&[keyed]));
    assert_eq!(results_of_lines(&again), taken[..1]);
    let line = catalog::current_invoice(&client, &contract)["products"][0]["line_items"][1].clone();
    assert_eq!(line["quantity"], json!(6));
}

fn an_event_under_a_key_is_taken_once_from_any_batch(database: &Database) {
    let (server, client) = catalog::stage(database);
    let contract = catalog::make_contract(&client, &catalog::contract(catalog::ACME));
    let event =
        |key: &str, quantity: u32| catalog::with(catalog::event(catalog::ACME, quantity), &json!({"idempotency_key": key}));
    let (a, b) = (event("a", 10), event("b ü", 20));
    let first = results(client.post(BATCH, &json!({"events": [a, b, a, event("", 1), event(&"k".repeat(256), 1)]})));
    assert_eq!(first[0], first[2]);
    let expected =
        ["UB-INV-1", "UB-INV-1", "UB-INV-1", "validation_failed /idempotency_key", "validation_failed /idempotency_key"];
    assert_eq!(words(&first), expected);

    server.kill_9();
    let server = Server::start(database);
    let client = client.at(&server);
    let mut other = a.clone();
    other["quantity"] = json!(11);
    // The same event with different JSON formatting.
    let text = a.to_string().replace(r#""quantity":10"#, r#""quantity":10.0"#).replace(',', " ,\n");
    assert!(text.contains("10.0"), "{text}");
    let body = format!("{{\"events\": [{other}, {text}, {b}, {}]}}", event("c", 1));
    let second = results(client.send(&Request::post(BATCH, body)));
    assert_eq!(second[0]["code"], "idempotency_key_reuse");
    assert_eq!(second[1..3], first[..2]);
    assert_eq!(words(&second[3..]), ["UB-INV-1"]);
    let line = catalog::current_invoice(&client, &contract)["products"][0]["line_items"][1].clone();
    assert_eq!(line["quantity"], json!(31));
}

fn lines_are_taken_like_events_and_answered_line_by_line(database: &Database) {
    let (_server, client) = catalog::stage(database);
    catalog::make_contract(&client, &catalog::contract(catalog::ACME));
    let event = catalog::event(catalog::ACME, 1).to_string();
    let body = format!("{event}\r\n\n  \n{{\"quantity\": \n{{\"a\":1,\"a\":1}}\n[]\n{event}");
    let answer = post_lines(&client, BATCH, body);
    let expected = ["UB-INV-1", "malformed_json", "duplicate_json_key", "validation_failed ", "UB-INV-1"];
    assert_eq!(words(&results_of_lines(&answer)), expected);
    assert!(post_lines(&client, BATCH, "").text.is_empty());

    let many: Vec<Value> = (0..MANY + 3).map(|_| catalog::event(catalog::ACME, 1)).collect();
    let answer = words(&results_of_lines(&post_lines(&client, BATCH, lines(&many))));
    assert_eq!((answer.len(), answer[MANY].as_str()), (MANY + 1, "too_many_events"));
    assert!(answer[..MANY].iter().all(|word| word == "UB-INV-1"));

    for (path, content_type, status, code) in [
        (BATCH, "text/csv", 415, "unsupported_media_type"),
        ("/api/usage/event", NDJSON, 415, "unsupported_media_type"),
        ("/api/usage/event/batch?atomic=yes", NDJSON, 422, "validation_failed"),
    ] {
        let refused = client.send(&Request::post(path, event.clone()).with("Content-Type", content_type));
        assert_eq!((refused.status, refused.body["code"].as_str()), (status, Some(code)), "{}", refused.text);
    }
    let large = vec![b' '; 8 * 1024 * 1024 + 1];
    for content_type in [NDJSON, "application/json"] {
        let refused = client.send(&Request::post(BATCH, large.clone()).with("Content-Type", content_type));
        assert_eq!((refused.status, refused.body["code"].as_str()), (413, Some("body_too_large")), "{}", refused.text);
    }
}

fn lines_are_answered_before_the_last_has_arrived(database: &Database) {
    let (server, client) = catalog::stage(database);
    catalog::make_contract(&client, &catalog::contract(catalog::ACME));
    let mut stream = TcpStream::connect(server.address()).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    let authorization = client.header("Authorization");
    write!(
        stream,
        "POST {BATCH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\nContent-Type: {NDJSON}\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    .expect("a request head");
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle of the stream"));
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    for part in 0..3 {
        let event = format!("{}\n", catalog::event(catalog::ACME, 1));
        stream.write_all(chunk(&event).as_bytes()).expect("a line");
        let mut line = String::new();
        while !line.contains("event_ref") {
            line.clear();
            assert_ne!(reader.read_line(&mut line).expect("a response while the request is open"), 0, "part {part}");
        }
        let event_ref = line.split('"').nth(3).expect("a reference").to_owned();
        assert_eq!(client.get(&format!("/api/usage/event/{event_ref}")).status, 200, "an acknowledged event is stored");
    }
    stream.write_all(b"0\r\n\r\n").expect("the final chunk");
    let mut rest = String::new();
    reader.read_to_string(&mut rest).expect("the rest of the response");
    assert!(rest.ends_with("0\r\n\r\n"), "{rest:?}");
}

fn batches_that_meet_on_the_same_contracts_lose_nothing(database: &Database) {
    const THREADS: usize = 4;
    const BATCHES: usize = 6;
    const CUSTOMERS: usize = 12;
    let (_server, client) = catalog::stage(database);
    let customers: Vec<String> = (0..CUSTOMERS).map(|index| format!("customer-{index}")).collect();
    let contracts: Vec<String> = customers
        .iter()
        .map(|customer| {
            catalog::make_customer(&client, customer);
            catalog::make_contract(&client, &catalog::contract(customer))
        })
        .collect();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (client, customers) = (client.with_own_connections(), &customers);
            scope.spawn(move || {
                for batch in 0..BATCHES {
                    // Each thread sends the events in a different order.
                    let at = |step: usize| &customers[(step * (thread * 2 + 1) + batch) % CUSTOMERS];
                    let events: Vec<Value> = (0..CUSTOMERS * 5).map(|step| catalog::event(at(step), 1)).collect();
                    let results = results(client.post(BATCH, &json!({"events": events})));
                    assert!(words(&results).iter().all(|word| word.starts_with("UB-INV-")), "{results:?}");
                }
            });
        }
    });
    let quantities: u64 = contracts
        .iter()
        .map(|contract| {
            let line = catalog::current_invoice(&client, contract)["products"][0]["line_items"][1].clone();
            line["quantity"].as_u64().expect("a quantity")
        })
        .sum();
    assert_eq!(quantities, (THREADS * BATCHES * CUSTOMERS * 5) as u64);
    assert_eq!(catalog::numbers(&catalog::documents(&client), "UB-INV"), (1..=CUSTOMERS as u64).collect::<Vec<_>>());
}
