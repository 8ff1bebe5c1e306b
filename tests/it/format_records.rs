//! Records that a usage format skips, identifies by their own key, or splits into several events, by every door.

use std::fs;

use acceptance::{Answer, Client, Database, Request, Server, binary, catalog, on_sqlite, when};
use serde_json::{Value, json};

on_sqlite!(
    a_record_is_known_by_its_own_key_through_any_door,
    a_skipped_record_is_no_error,
    the_elements_of_a_record_are_recorded_together_or_not_at_all,
    a_batch_of_records_has_a_result_for_each,
    an_atomic_batch_of_records_names_record_and_element,
    the_events_of_a_batch_of_records_are_limited,
    a_file_counts_each_event_of_a_line,
    a_cost_report_with_lines_that_are_no_usage_is_imported_without_rejects,
    an_update_needs_one_event,
    a_file_under_a_request_key_locks_its_contracts_at_once,
);

const FORMATTED: &str = "/api/usage/event/formatted";
const BATCH: &str = "/api/usage/event/batch";
const IMPORT: &str = "/api/usage/import";
const NDJSON: &str = "application/x-ndjson";

/// Starts a server with a contract for acme, the format `one` of records with one event, and the format `tokens` of records with
/// two elements.
fn stage(database: &Database) -> (Server, Client, String) {
    let (server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let one = json!({
        "timestamp": "event.at",
        "customer_ref": "event.who",
        "usage_product_ref": "\"api-calls\"",
        "quantity": "event.n",
        "idempotency_key": "event.id",
        "skip_if": "event.n < 0",
    });
    let elements = json!({
        "for_each": "[\"input\", \"output\"]",
        "quantity": "event.usage[item]",
        "skip_if": "event.usage[item] == 0",
        "idempotency_key": "concat(event.id, \"/\", item)",
        "additional_report_data": {"kind": "item"},
    });
    make_format(&client, "one", &one);
    make_format(&client, "tokens", &catalog::with(one, &elements));
    (server, client, contract)
}

fn make_format(client: &Client, name: &str, mapping: &Value) {
    client.post("/api/usage/formats/", &json!({"format_name": name, "mapping": mapping})).ok();
}

fn one(id: &str, n: impl Into<Value>) -> Value {
    json!({"at": when::now().to_string(), "who": catalog::ACME, "id": id, "n": n.into()})
}

fn tokens(id: &str, input: u64, output: u64) -> Value {
    json!({"at": when::now().to_string(), "who": catalog::ACME, "id": id, "usage": {"input": input, "output": output}})
}

fn report(client: &Client, format: &str, event: &Value) -> Answer {
    client.post(FORMATTED, &json!({"format_name": format, "event": event}))
}

fn lines(events: &[Value]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}

fn send(client: &Client, path: &str, events: &[Value]) -> Answer {
    client.send(&Request::post(path, lines(events)).with("Content-Type", NDJSON))
}

fn usage(client: &Client, contract: &str) -> Value {
    catalog::current_invoice(client, contract)["products"][0]["line_items"][1]["quantity"].clone()
}

/// Returns a short form of a result: the document number, the error code, `null`, or a list of them.
fn word(result: &Value) -> Value {
    match result {
        Value::Array(elements) => elements.iter().map(word).collect(),
        Value::Null => Value::Null,
        result if result["code"].is_string() => result["code"].clone(),
        result => {
            let fields: Vec<&String> = result.as_object().expect("a result").keys().collect();
            assert_eq!(fields, ["event_ref", "related_document_ref", "related_document_numbers"]);
            result["related_document_numbers"].clone()
        }
    }
}

/// Returns the code, and pointer and detail of each error.
#[track_caller]
fn errors(answer: &Answer, code: &str) -> Vec<String> {
    assert_eq!((answer.status, answer.body["code"].as_str()), (422, Some(code)), "{}", answer.text);
    let errors = answer.body["errors"].as_array().expect("errors").iter();
    errors
        .map(|error| format!("{}: {}", error["pointer"].as_str().unwrap_or(""), error["detail"].as_str().unwrap_or("")))
        .collect()
}

#[track_caller]
fn counts(result: &Value) -> [u64; 4] {
    ["recorded", "already_there", "refused", "skipped"].map(|field| result[field].as_u64().expect("a count"))
}

fn a_record_is_known_by_its_own_key_through_any_door(database: &Database) {
    let (_server, client, contract) = stage(database);
    let event = one("e-1", 5);
    let import = |name: &str| send(&client, &format!("{IMPORT}?format_name=one&name={name}"), std::slice::from_ref(&event)).ok();
    let first = import("first");
    assert_eq!((counts(&first), &first["known_by_line"]), ([1, 0, 0, 0], &json!(0)));
    assert_eq!(counts(&import("second")), [0, 1, 0, 0]);
    let again = report(&client, "one", &event);
    assert_eq!((again.status, again.header("Idempotency-Replayed")), (200, "true"), "{}", again.text);
    let batch = send(&client, &format!("{BATCH}?format_name=one"), std::slice::from_ref(&event));
    assert_eq!(batch.status, 200, "{}", batch.text);
    // A number is its digits, and an event without a value has the key of its request.
    let by_number = |id: Value| catalog::with(one("", 1), &json!({"id": id}));
    report(&client, "one", &by_number(json!(7))).ok();
    let under = |key: &str, event: &Value| {
        client.send(
            &Request::post(FORMATTED, json!({"format_name": "one", "event": event}).to_string()).with("Idempotency-Key", key),
        )
    };
    assert_eq!(errors(&under("other", &one("e-2", 1)), "conflicting_fields").len(), 1);
    under("e-2", &one("e-2", 1)).ok();
    let keyless = by_number(Value::Null);
    assert_eq!(under("k", &keyless).ok(), under("k", &keyless).ok());
    assert_eq!(usage(&client, &contract), json!(8));
}

fn a_skipped_record_is_no_error(database: &Database) {
    let (_server, client, _) = stage(database);
    let skipped = report(&client, "one", &one("e-1", -1));
    assert_eq!((skipped.status, skipped.text.as_str()), (204, ""));
    let test = |format: &str, event: &Value| {
        client.post("/api/usage/formats/test", &json!({"format_name": format, "event": event})).ok()["mapped"].clone()
    };
    assert_eq!(test("one", &one("e-1", -1)), Value::Null);
    let mapped = test("tokens", &tokens("t", 3, 0));
    assert_eq!((&mapped[0]["idempotency_key"], &mapped[1]), (&json!("t/input"), &Value::Null));
    let incomplete = json!({"format_name": "tokens", "event": {"usage": {"input": 1, "output": 0}}});
    let refused = errors(&client.post("/api/usage/formats/test", &incomplete), "format_error");
    assert_eq!(refused, ["/event: timestamp = event.at, line 1, column 7: item 0: unknown field `at`"]);
}

fn the_elements_of_a_record_are_recorded_together_or_not_at_all(database: &Database) {
    let (_server, client, contract) = stage(database);
    let first = report(&client, "tokens", &tokens("t-1", 120, 30)).ok();
    let results = first["results"].as_array().expect("results");
    assert_eq!(results.len(), 2);
    assert_eq!(results[1]["additional_report_data"], json!({"kind": "output"}));
    assert_eq!(results[1]["event"]["usage"], json!({"input": 120, "output": 30}));
    let one_kind = report(&client, "tokens", &tokens("t-2", 0, 5)).ok();
    assert_eq!((&one_kind["results"][0], &one_kind["results"][1]["quantity"]), (&Value::Null, &json!(5)));
    // A request key gives the stored answer.
    let body = json!({"format_name": "tokens", "event": tokens("t-3", 1, 1)});
    let under = || client.send(&Request::post(FORMATTED, body.to_string()).with("Idempotency-Key", "k"));
    let (kept, again) = (under(), under());
    assert_eq!(again.header("Idempotency-Replayed"), "true");
    assert_eq!(kept.ok(), again.ok());
    assert_eq!(usage(&client, &contract), json!(157));

    let nobody = catalog::with(tokens("t-4", 1, 2), &json!({"who": "nobody"}));
    let refused = errors(&report(&client, "tokens", &nobody), "batch_refused");
    let detail = "customer_ref from the usage format: must be the reference of an existing customer";
    assert_eq!(refused, [format!("/event: item 0: {detail}"), format!("/event: item 1: {detail}")]);
    let negative = catalog::with(tokens("t-5", 1, 2), &json!({"usage": {"input": 1, "output": -2}}));
    let refused = errors(&report(&client, "tokens", &negative), "batch_refused");
    assert!(
        matches!(refused.as_slice(), [only] if only.starts_with("/event: item 1: quantity = event.usage[item]")),
        "{refused:?}"
    );
    let same = json!({"for_each": "[1, 2]", "idempotency_key": "event.id", "timestamp": "event.at", "customer_ref": "event.who",
        "usage_product_ref": "\"api-calls\"", "quantity": "item"});
    make_format(&client, "same", &same);
    let refused = errors(&report(&client, "same", &one("e-9", 1)), "format_error");
    assert_eq!(refused, ["/event: idempotency_key = event.id: gives e-9 for items 0 and 1: name item in the key"]);
    assert_eq!(usage(&client, &contract), json!(157));
}

fn a_batch_of_records_has_a_result_for_each(database: &Database) {
    let (_server, client, contract) = stage(database);
    let of_tokens = [
        tokens("t-1", 1, 2),
        tokens("t-2", 0, 3),
        catalog::with(tokens("t-3", 4, 5), &json!({"usage": {"input": 4}})),
        catalog::with(tokens("t-4", 1, 1), &json!({"who": "nobody"})),
        json!({"usage": 1}),
    ];
    let expected = json!([
        ["UB-INV-1", "UB-INV-1"],
        [null, "UB-INV-1"],
        ["UB-INV-1", "format_error"],
        ["validation_failed", "validation_failed"],
        ["format_error", "format_error"],
    ]);
    let by_name = format!("{BATCH}?format_name=tokens");
    let of_lines =
        |answer: Answer| -> Value { answer.text.lines().map(|line| word(&serde_json::from_str(line).expect("JSON"))).collect() };
    assert_eq!(of_lines(send(&client, &by_name, &of_tokens)), expected);
    // The same records again are repeats, in a JSON batch, too.
    let whole = client.post(&by_name, &json!({"events": of_tokens})).ok();
    assert_eq!(word(&whole["results"]), expected);
    let of_one = [one("e-1", 1), one("e-2", -1), json!("text"), json!({"idempotency_key": 1})];
    let whole = client.post(&format!("{BATCH}?format_name=one"), &json!({"events": of_one})).ok();
    assert_eq!(word(&whole["results"]), json!(["UB-INV-1", null, "validation_failed", "validation_failed"]));
    assert_eq!(usage(&client, &contract), json!(11));
    assert_eq!(errors(&client.post(&format!("{BATCH}?format_name=none"), &json!({"events": of_one})), "unknown_format").len(), 1);
    // The built-in format is the default shape.
    let default =
        client.post(&format!("{BATCH}?format_ref=default-format"), &json!({"events": [catalog::event(catalog::ACME, 1)]}));
    assert_eq!(word(&default.ok()["results"]), json!(["UB-INV-1"]));
}

fn an_atomic_batch_of_records_names_record_and_element(database: &Database) {
    let (_server, client, contract) = stage(database);
    let by_name = format!("{BATCH}?format_name=tokens&atomic=true");
    let good = tokens("t-1", 1, 2);
    let bad = catalog::with(tokens("t-2", 1, 0), &json!({"who": "nobody"}));
    let refused = errors(&send(&client, &by_name, &[good.clone(), bad]), "batch_refused");
    let detail = "customer_ref from the usage format: must be the reference of an existing customer";
    assert_eq!(refused, [format!("/events/1: item 0: {detail}")]);
    let unmapped = catalog::with(tokens("t-2", 1, 0), &json!({"usage": {"input": 1}}));
    let refused = errors(&client.post(&by_name, &json!({"events": [good, unmapped]})), "batch_refused");
    assert!(matches!(refused.as_slice(), [only] if only.starts_with("/events/1: item 1: skip_if = ")), "{refused:?}");
    let stored = send(&client, &by_name, &[tokens("t-3", 2, 0)]);
    assert_eq!(stored.status, 200, "{}", stored.text);
    assert_eq!(usage(&client, &contract), json!(2));
}

/// Creates a format that has an event for each number in a list, except zeros.
fn make_list_format(client: &Client) {
    let mapping = json!({"for_each": "event.list", "timestamp": "event.at", "customer_ref": "event.who",
        "usage_product_ref": "\"api-calls\"", "quantity": "item", "skip_if": "item == 0"});
    make_format(client, "list", &mapping);
}

fn the_events_of_a_batch_of_records_are_limited(database: &Database) {
    let (_server, client, contract) = stage(database);
    make_list_format(&client);
    let record = |events: usize| catalog::with(one("", 1), &json!({"list": vec![1; events]}));
    let by_name = format!("{BATCH}?format_name=list");
    let too_many: Vec<Value> = (0..101).map(|_| record(100)).collect();
    assert!(errors(&client.post(&by_name, &json!({"events": too_many})), "too_many_events").is_empty());
    assert!(client.get("/api/usage/event/filter").ok().as_array().is_some_and(Vec::is_empty));
    let answer = send(&client, &by_name, &too_many);
    let results: Vec<Value> = answer.text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((results.len(), &results[100]["code"]), (101, &json!("too_many_events")));
    assert_eq!(usage(&client, &contract), json!(10_000));
}

fn a_file_counts_each_event_of_a_line(database: &Database) {
    let (server, client, contract) = stage(database);
    make_list_format(&client);
    let record = |list: Value| catalog::with(one("", 1), &json!({"list": list}));
    let file = [record(json!([1, 0, -1, 2])), record(json!([])), record(json!([3]))];
    let path = format!("{IMPORT}?format_name=list&name=records");
    let dry = send(&client, &format!("{path}&dry_run=true"), &file).ok();
    let imported = send(&client, &path, &file).ok();
    for result in [&dry, &imported] {
        assert_eq!((counts(result), &result["known_by_line"]), ([3, 0, 1, 2], &json!(3)), "{result}");
        let [reject] = result["rejects"].as_array().expect("rejects").as_slice() else { panic!("{result}") };
        assert_eq!((&reject["line"], &reject["item"], &reject["code"]), (&json!(1), &json!(2), &json!("format_error")));
    }
    // Without a key, the elements are known by file, line and number.
    assert_eq!(counts(&send(&client, &path, &file).ok()), [0, 3, 1, 2]);
    let import = client.get(&format!("/api/usage/imports/{}", imported["import_ref"].as_str().expect("an import"))).ok();
    assert_eq!(counts(&import), [3, 0, 1, 2]);
    assert_eq!(usage(&client, &contract), json!(6));
    drop(server);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let on_disk = directory.path().join("records");
    fs::write(&on_disk, lines(&file[2..])).expect("a file");
    let named = on_disk.to_str().expect("a path");
    let printed = binary::succeed(database, &["import", named, "--input", "ndjson", "--format", "list", "--name", "records-2"]);
    assert!(printed.starts_with("Events recorded: 1; duplicates: 0; rejected: 0.\n"), "{printed}");
    fs::write(&on_disk, lines(&file[1..])).expect("a file");
    let printed = binary::succeed(database, &["import", named, "--input", "ndjson", "--format", "list", "--name", "records-3"]);
    assert!(printed.starts_with("Events recorded: 1; duplicates: 0; rejected: 0; skipped: 1.\n"), "{printed}");
}

fn a_cost_report_with_lines_that_are_no_usage_is_imported_without_rejects(database: &Database) {
    let (_server, client, contract) = stage(database);
    let mapping = json!({
        "skip_if": "event.ConsumedQuantity == \"NULL\" || to_decimal(event.ConsumedQuantity) < 0",
        "timestamp": "event.ChargePeriodStart",
        "customer_ref": "event.SubAccountId",
        "usage_product_ref": "\"api-calls\"",
        "quantity": "to_decimal(event.ConsumedQuantity)",
        "additional_report_data": {"service": "event.ServiceName"},
    });
    make_format(&client, "focus", &mapping);
    let now = when::now();
    let quantity = |row: usize| match row % 10 {
        0 => "NULL".to_owned(),
        1 => "-3".to_owned(),
        _ => "0.5".to_owned(),
    };
    let rows = (0..1_000).map(|row| format!("{now},acme,Virtual Machines,{}\n", quantity(row)));
    let file = format!("ChargePeriodStart,SubAccountId,ServiceName,ConsumedQuantity\n{}", rows.collect::<String>());
    let path = format!("{IMPORT}?format_name=focus&name=focus.csv");
    let result = client.send(&Request::post(&path, file).with("Content-Type", "text/csv")).ok();
    assert_eq!(counts(&result), [800, 0, 0, 200]);
    assert_eq!(usage(&client, &contract), json!(400.0));
}

fn an_update_needs_one_event(database: &Database) {
    let (_server, client, _) = stage(database);
    let event = report(&client, "one", &one("e-1", 5)).ok();
    let update = |format: &str, content: &Value| {
        let body = json!({"event_ref": event["event_ref"], "format_name": format, "event": content});
        client.post("/api/usage/event/formatted/update", &body)
    };
    for refused in [update("tokens", &tokens("t", 1, 1)), update("one", &one("e-1", -1))] {
        assert_eq!(errors(&refused, "format_error").len(), 1);
    }
    assert_eq!(update("one", &one("e-1", 6)).ok()["quantity"], json!(6));
}

fn a_file_under_a_request_key_locks_its_contracts_at_once(database: &Database) {
    let (_server, client, contract) = stage(database);
    catalog::make_customer(&client, "other");
    let other = catalog::make_contract(&client, &catalog::contract("other"));
    let each = json!({"timestamp": "event.at", "customer_ref": "event.who", "usage_product_ref": "\"api-calls\"", "quantity": "item",
        "for_each": "event.items"});
    make_format(&client, "each", &each);
    // The events of the last record would be in a second transaction.
    let mut records: Vec<Value> = Vec::new();
    for _ in 0..100 {
        records.push(json!({"at": when::now(), "who": catalog::ACME, "items": vec![1; 100]}));
    }
    records.push(json!({"at": when::now(), "who": "other", "items": [7]}));
    let request = Request::post("/api/usage/import?format_name=each&name=large", lines(&records));
    let imported = client.send(&request.with("Content-Type", NDJSON).with("Idempotency-Key", "k")).ok();
    assert_eq!(counts(&imported), [10_001, 0, 0, 0]);
    assert_eq!([usage(&client, &contract), usage(&client, &other)], [json!(10_000), json!(7)]);
}
