//! `POST /api/usage/import`: files of events over HTTP, each event once regardless of the way it is sent.

use std::fs;

use acceptance::{Answer, Client, Database, Request, binary, catalog, on_both_databases, when};
use serde_json::{Value, json};

on_both_databases!(
    a_file_goes_once_whichever_door_it_takes,
    lines_without_keys_are_known_by_the_files_name,
    rejects_come_in_line_order_with_their_problems,
    a_dry_run_stores_nothing_and_counts_like_the_run_after_it,
    a_usage_report_is_nothing_new,
    a_file_may_be_written_in_many_ways,
    a_request_that_is_wrong_stores_nothing,
    an_import_that_stops_is_no_success_and_the_file_sent_again_finishes_it,
    lines_before_the_first_requested_line_are_skipped,
);

const IMPORT: &str = "/api/usage/import";
const CSV: &str = "text/csv";
const NDJSON: &str = "application/x-ndjson";

fn send(client: &Client, query: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Answer {
    client.send(&Request::post(&format!("{IMPORT}{query}"), body).with("Content-Type", content_type))
}

/// Returns the numbers of recorded, existing and rejected events, and of events known by their line.
#[track_caller]
fn counts(result: &Value) -> [u64; 4] {
    ["recorded", "already_there", "refused", "known_by_line"].map(|field| result[field].as_u64().expect("a count"))
}

fn usage(client: &Client, contract: &str) -> Value {
    catalog::current_invoice(client, contract)["products"][0]["line_items"][1]["quantity"].clone()
}

fn csv(rows: &[&str]) -> String {
    let names = "idempotency_key,timestamp,customer_ref,usage_product_ref,quantity,region";
    [names].iter().chain(rows).map(|row| format!("{row}\n")).collect()
}

fn a_file_goes_once_whichever_door_it_takes(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let now = when::now();
    let file = csv(&[&format!("k-1,{now},acme,api-calls,12.50,eu"), &format!("k-2,{now},acme,api-calls,1,")]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("usage.csv");
    fs::write(&path, &file).expect("a file");
    let imported = binary::succeed(database, &["import", path.to_str().expect("a path")]);
    assert_eq!(imported, "Events recorded: 2; duplicates: 0; rejected: 0.\nUB-INV-1 of acme, EUR: 2 events\n");

    let result = send(&client, "", CSV, file).ok();
    assert_eq!(counts(&result), [0, 2, 0, 0]);
    let event = |key: &str, quantity: Value| {
        catalog::with(catalog::event(catalog::ACME, quantity), &json!({"timestamp": now, "idempotency_key": key}))
    };
    let with_region = |event| catalog::with(event, &json!({"additional_report_data": {"region": "eu"}}));
    let events = [with_region(event("k-1", json!(12.5))), event("k-2", json!(1))];
    let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
    assert_eq!(counts(&send(&client, "?name=usage.ndjson", NDJSON, lines).ok()), [0, 2, 0, 0]);
    let batch = client.post("/api/usage/event/batch", &json!({"events": events})).ok();
    for result in batch["results"].as_array().expect("results") {
        assert_eq!((&result["related_document_numbers"], result.as_object().expect("an object").len()), (&json!("UB-INV-1"), 3));
    }
    let alone = client.with_header("Idempotency-Key", "k-2").post("/api/usage/event", &events[1]);
    assert_eq!((alone.header("Idempotency-Replayed"), &alone.body), ("true", &batch["results"][1]));
    assert_eq!(usage(&client, &contract).to_string(), "13.50");

    let other = send(&client, "", NDJSON, event("k-2", json!(2)).to_string()).ok();
    assert_eq!((counts(&other), &other["rejects"][0]["code"]), ([0, 0, 1, 0], &json!("idempotency_key_reuse")));

    // In the other order, and with a format.
    client.post("/api/usage/event/batch", &json!({"events": [event("k-3", json!(4))]})).ok();
    assert_eq!(counts(&send(&client, "", CSV, csv(&[&format!("k-3,{now},acme,api-calls,4,")])).ok()), [0, 1, 0, 0]);
    let mapping = json!({
        "timestamp": "event.at", "customer_ref": "event.who", "usage_product_ref": "\"api-calls\"", "quantity": "event.much",
    });
    client.post("/api/usage/formats/", &json!({"format_name": "Log", "mapping": mapping})).ok();
    let raw = json!({"at": now, "who": "acme", "much": 8, "idempotency_key": "k-4"});
    let result = send(&client, "?format_name=Log", NDJSON, raw.to_string()).ok();
    assert_eq!((counts(&result), &result["documents"][0]["events"]), ([1, 0, 0, 0], &json!(1)));
    let formatted = json!({"format_name": "Log", "event": raw});
    let alone = client.with_header("Idempotency-Key", "k-4").post("/api/usage/event/formatted", &formatted).ok();
    assert_eq!((&alone["quantity"], &alone["format_version"]), (&json!(8), &json!(1)));
    assert_eq!(usage(&client, &contract).to_string(), "25.50");
}

fn lines_without_keys_are_known_by_the_files_name(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let file = csv(&[&format!(",{},acme,api-calls,1,", when::now()), &format!(",{},acme,api-calls,1,", when::now())]);
    let nameless = send(&client, "", CSV, file.clone());
    assert_eq!((nameless.status, nameless.body["errors"][0]["pointer"].as_str()), (422, Some("/name")), "{}", nameless.text);
    assert!(nameless.text.contains("line 2"), "{}", nameless.text);
    let named = |name: &str| send(&client, &format!("?name={name}"), CSV, file.clone()).ok();
    assert_eq!(counts(&named("a.csv")), [2, 0, 0, 2]);
    assert_eq!(counts(&named("a.csv")), [0, 2, 0, 2]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("a.csv");
    fs::write(&path, &file).expect("a file");
    let imported = binary::succeed(database, &["import", path.to_str().expect("a path")]);
    assert!(imported.starts_with("Events recorded: 0; duplicates: 2; rejected: 0.\n"), "{}", imported);
    assert_eq!(counts(&named("b.csv")), [2, 0, 0, 2]);
    assert_eq!(usage(&client, &contract), json!(4));
    let changed = send(&client, "?name=a.csv", CSV, file.replace("calls,1", "calls,2")).ok();
    assert_eq!((counts(&changed)[2], &changed["rejects"][0]["code"]), (2, &json!("line_changed")));
}

fn rejects_come_in_line_order_with_their_problems(database: &Database) {
    let (_server, client, _) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let event = |fields: Value| catalog::with(catalog::event(catalog::ACME, 1), &fields).to_string();
    let unknown = event(json!({"event_ref": "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b"}));
    let lines = [
        event(json!({"customer_ref": "nobody"})),
        "{".to_owned(),
        event(json!({})),
        event(json!({"timestamp": "2001-01-01T00:00:00Z"})),
        event(json!({"idempotency_key": 7})),
        unknown,
        event(json!({"quantity": -1})),
        event(json!({"validations": {"currency": "USD"}})),
    ];
    let result = send(&client, "?name=a", NDJSON, lines.join("\n")).ok();
    assert_eq!(counts(&result), [1, 0, 7, 1]);
    let shown: Vec<(u64, &str, &str)> = result["rejects"]
        .as_array()
        .expect("rejects")
        .iter()
        .map(|reject| {
            assert!(reject["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{reject}");
            let pointer = reject["errors"][0]["pointer"].as_str().unwrap_or("none");
            (reject["line"].as_u64().expect("a line"), reject["code"].as_str().expect("a code"), pointer)
        })
        .collect();
    let expected = [
        (1, "validation_failed", "/customer_ref"),
        (2, "validation_failed", ""),
        (4, "no_matching_contract", "none"),
        (5, "validation_failed", "/idempotency_key"),
        (6, "validation_failed", "/event_ref"),
        (7, "validation_failed", "/quantity"),
        (8, "validation_mismatch", "/validations/currency"),
    ];
    assert_eq!(shown, expected);
    assert_eq!(
        result["documents"],
        json!([{
            "document_ref": result["documents"][0]["document_ref"], "document_number": "UB-INV-1", "customer_ref": "acme",
            "currency": "EUR", "events": 1, "total_before": null, "total": null,
        }])
    );
    assert_eq!((&result["more_documents"], &result["stopped"], &result["dry_run"]), (&json!(0), &Value::Null, &json!(false)));
}

fn a_dry_run_stores_nothing_and_counts_like_the_run_after_it(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    catalog::make_customer(&client, "globex");
    catalog::make_contract(&client, &catalog::contract("globex"));
    client.post("/api/usage/event", &catalog::event(catalog::ACME, 1)).ok();
    let now = when::now();
    let mut rows = vec![format!("k,{now},globex,api-calls,1,"), format!(",{now},nobody,api-calls,1,")];
    rows.extend((0..1_200).map(|_| format!(",{now},acme,api-calls,1,")));
    // The same event in a later transaction, and another event under its key.
    rows.extend([format!("k,{now},globex,api-calls,1,"), format!("k,{now},globex,api-calls,2,")]);
    let file = csv(&rows.iter().map(String::as_str).collect::<Vec<_>>());
    let before = (catalog::documents(&client), usage(&client, &contract));

    let dry = send(&client, "?name=a.csv&dry_run=true", CSV, file.clone()).ok();

    assert_eq!((catalog::documents(&client), usage(&client, &contract)), before);
    let run = send(&client, "?name=a.csv", CSV, file).ok();
    assert_eq!((counts(&dry), &dry["dry_run"]), ([1_201, 1, 2, 1_200], &json!(true)));
    assert_eq!((counts(&run), &run["dry_run"]), (counts(&dry), &json!(false)));
    // Only the run names the event that it recorded under the key before.
    let rejects = |result: &Value| {
        let rejects = result["rejects"].as_array().expect("rejects").iter();
        rejects.map(|reject| catalog::with(reject.clone(), &json!({"event_ref": null}))).collect::<Vec<_>>()
    };
    assert_eq!(rejects(&dry), rejects(&run));
    let documents = |result: &Value| {
        let documents = result["documents"].as_array().expect("documents").clone();
        documents
            .iter()
            .map(|document| ["document_number", "customer_ref", "events"].map(|field| document[field].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(documents(&dry), [[Value::Null, json!("globex"), json!(1)], [json!("UB-INV-1"), json!("acme"), json!(1_200)]]);
    assert_eq!(
        documents(&run),
        [[json!("UB-INV-2"), json!("globex"), json!(1)], [json!("UB-INV-1"), json!("acme"), json!(1_200)]]
    );
    let totals = |name: &str| [&dry["documents"][0][name], &dry["documents"][1][name]].map(Value::clone);
    let total_of = |documents: &[Value], number: &str| {
        let found = documents.iter().find(|document| document["document_number"] == number);
        found.map_or(Value::Null, |document| document["total"].clone())
    };
    let both = |documents: &[Value]| ["UB-INV-2", "UB-INV-1"].map(|number| total_of(documents, number));
    assert_eq!(totals("total_before"), both(&before.0));
    assert_eq!(totals("total"), both(&catalog::documents(&client)));
    assert_ne!(totals("total"), totals("total_before"));
}

fn a_usage_report_is_nothing_new(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    for quantity in [1, 2] {
        let data = json!({"additional_report_data": {"note": "-a;b"}});
        client.post("/api/usage/event", &catalog::with(catalog::event(catalog::ACME, quantity), &data)).ok();
    }
    for format in ["csv", "json"] {
        let report = client.get(&format!("/api/usage/report?format={format}"));
        let result = send(&client, "", report.header("Content-Type"), report.text.clone()).ok();
        assert_eq!((counts(&result), &result["documents"]), ([0, 2, 0, 0], &json!([])), "{format}");
    }
    assert_eq!(usage(&client, &contract), json!(3));
}

fn a_file_may_be_written_in_many_ways(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let now = when::now();
    let names = ["timestamp", "customer_ref", "usage_product_ref", "quantity", "note"];
    let row = |note: &str| [now.as_str(), "acme", "api-calls", "1", note].map(str::to_owned);
    for (index, (delimiter, note)) in [(",", "\"a, b\""), (";", "\"a; b\""), ("\t", "a, b")].into_iter().enumerate() {
        let file = format!("\u{feff}{}\r\n{}\r\n", names.join(delimiter), row(note).join(delimiter));
        let result = send(&client, &format!("?name={index}"), CSV, file).ok();
        assert_eq!(counts(&result), [1, 0, 0, 1], "{result}");
    }
    let piped = format!("{}\n{}", names.join("|"), row("a, b").join("|"));
    assert_eq!(counts(&send(&client, "?name=pipe&delimiter=%7C", "text/csv; charset=utf-8; header=present", piped).ok())[0], 1);
    let notes: Vec<Value> = client
        .get("/api/usage/event/filter")
        .ok()
        .as_array()
        .expect("events")
        .iter()
        .map(|event| event["additional_report_data"].clone())
        .collect();
    assert_eq!(notes, [json!({"note": "a, b"}), json!({"note": "a; b"}), json!({"note": "a, b"}), json!({"note": "a, b"})]);
    assert_eq!(usage(&client, &contract), json!(4));
}

/// Returns a CSV file of events without keys, one per customer.
fn rows_of(customers: impl Iterator<Item = &'static str>) -> String {
    let now = when::now();
    let rows: Vec<String> = customers.map(|customer| format!(",{now},{customer},api-calls,1,")).collect();
    csv(&rows.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Returns the number of recorded events.
fn stored(client: &Client) -> String {
    client.get("/api/usage/event/filter?pageSize=1").header("X-Total-Count").to_owned()
}

fn an_import_that_stops_is_no_success_and_the_file_sent_again_finishes_it(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    catalog::make_customer(&client, "unreadable");
    catalog::make_contract(&client, &catalog::contract("unreadable"));
    // The first transaction has the first 1,000 lines. The second one fails, because it reads the other customer.
    let customers = (0..1_500).map(|index| if index < 1_000 { catalog::ACME } else { "unreadable" });
    let file = rows_of(customers);
    database.execute("UPDATE customers SET net_terms = 'NONSENSE' WHERE customer_ref = 'unreadable'");

    let stopped = send(&client, "?name=a.csv", CSV, file.clone());

    assert_eq!((stopped.status, stopped.text_of("code").as_str()), (503, "import_stopped"), "{}", stopped.text);
    assert_eq!(stopped.header("Content-Type"), "application/problem+json");
    assert!(stopped.header("Retry-After").parse::<u64>().is_ok(), "{:?}", stopped.headers);
    let detail = stopped.text_of("detail");
    assert!(detail.contains("line 1002") && detail.contains("from_line=1002"), "{detail}");
    let result = &stopped.body["import"];
    assert_eq!((counts(result), &result["from_line"]), ([1_000, 0, 0, 1_000], &json!(1)));
    assert_eq!((&result["stopped"]["line"], &result["stopped"]["code"]), (&json!(1_002), &json!("internal_error")));
    let import = client.get(&format!("/api/usage/imports/{}", result["import_ref"].as_str().expect("a reference"))).ok();
    assert_eq!(
        (&import["state"], &import["stopped_at_line"], &import["recorded"]),
        (&json!("CUT_SHORT"), &json!(1_002), &json!(1_000))
    );
    let dry = send(&client, "?name=a.csv&dry_run=true", CSV, file.clone());
    assert_ne!(dry.status, 200, "{}", dry.text);

    database.execute("UPDATE customers SET net_terms = NULL WHERE customer_ref = 'unreadable'");
    let rest = send(&client, "?name=a.csv", CSV, file.clone()).ok();
    assert_eq!((counts(&rest), &rest["stopped"]), ([500, 1_000, 0, 1_500], &Value::Null));
    assert_eq!(counts(&send(&client, "?name=a.csv", CSV, file).ok()), [0, 1_500, 0, 1_500]);
    assert_eq!((stored(&client).as_str(), usage(&client, &contract)), ("1500", json!(1_000)));
}

fn lines_before_the_first_requested_line_are_skipped(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let file = rows_of([catalog::ACME, "nobody", catalog::ACME, catalog::ACME].into_iter());
    let path = |line: &str| format!("?name=a.csv&from_line={line}");

    let from_4 = send(&client, &path("4"), CSV, file.clone()).ok();
    assert_eq!((counts(&from_4), &from_4["from_line"]), ([2, 0, 0, 2], &json!(4)));
    // The lines keep their numbers, so the whole file records only the line that is missing.
    let whole = send(&client, "?name=a.csv", CSV, file.clone()).ok();
    assert_eq!((counts(&whole), &whole["from_line"]), ([1, 2, 1, 3], &json!(1)));
    assert_eq!(&whole["rejects"][0]["line"], &json!(3));
    assert_eq!(counts(&send(&client, &path("6"), CSV, file.clone()).ok()), [0, 0, 0, 0]);
    assert_eq!(usage(&client, &contract), json!(3));
    for line in ["0", "-1", "1.5", "x", "99999999999"] {
        let refused = send(&client, &path(line), CSV, file.clone());
        assert_eq!((refused.status, refused.body["errors"][0]["pointer"].as_str()), (422, Some("/from_line")), "{line}");
    }
    // Under an idempotency key, another first line is another request.
    let keyed = client.with_header("Idempotency-Key", "import-1");
    assert_eq!(counts(&send(&keyed, &path("5"), CSV, file.clone()).ok()), [0, 1, 0, 1]);
    let other = send(&keyed, &path("4"), CSV, file.clone());
    assert_eq!((other.status, other.text_of("code").as_str()), (422, "idempotency_key_reuse"));

    let directory = tempfile::tempdir().expect("a temporary directory");
    let local = directory.path().join("b.csv");
    fs::write(&local, &file).expect("a file");
    let imported = binary::succeed(database, &["import", local.to_str().expect("a path"), "--from-line", "5"]);
    assert!(imported.starts_with("Events recorded: 1; duplicates: 0; rejected: 0.\n"), "{imported}");
}

/// The query, content type and body; then the status, the code and a part of the message.
type Refused<'r> = (&'r str, &'r str, &'r [u8], u16, &'r str, &'r str);

fn a_request_that_is_wrong_stores_nothing(database: &Database) {
    let (_server, client, _) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let now = when::now();
    let good = csv(&[&format!("k,{now},acme,api-calls,1,")]);
    let open_quote = format!("{good}\"{}", "x".repeat(2 * 1024 * 1024));
    let large = format!("{good}{}", "\n".repeat(8 * 1024 * 1024));
    let rows: [Refused<'_>; 15] = [
        ("?name=", CSV, good.as_bytes(), 422, "validation_failed", "/name"),
        ("?dry_run=maybe", CSV, good.as_bytes(), 422, "validation_failed", "/dry_run"),
        ("?format_name=Nobody%27s", CSV, good.as_bytes(), 422, "unknown_format", "format_name"),
        ("?delimiter=ab", CSV, good.as_bytes(), 422, "validation_failed", "one character"),
        ("", "text/plain", good.as_bytes(), 415, "unsupported_media_type", "text/csv"),
        ("", "text/csv; header=absent", good.as_bytes(), 415, "unsupported_media_type", "column names"),
        ("", CSV, large.as_bytes(), 413, "body_too_large", "usage-billing import"),
        ("", CSV, b"", 400, "malformed_file", "empty"),
        ("", CSV, b"timestamp,customer_ref,usage_product_ref,quantity\n", 400, "malformed_file", "no events"),
        ("", CSV, b"a,a\n1,2\n", 400, "malformed_file", "column 2"),
        ("", CSV, b"PK\x03\x04\0\0", 400, "malformed_file", "NUL"),
        ("", CSV, open_quote.as_bytes(), 400, "malformed_file", "line 3"),
        ("", NDJSON, b"\n\n", 400, "malformed_file", "no events"),
        ("", "application/json", b"{}", 400, "malformed_file", "array"),
        ("", "application/json", b"[{\"idempotency_key\":\"k\"}", 400, "malformed_file", "isn't closed"),
    ];
    for (query, content_type, body, status, code, part) in rows {
        let answer = send(&client, query, content_type, body);
        assert_eq!(
            (answer.status, answer.body["code"].as_str()),
            (status, Some(code)),
            "{query} {content_type}: {}",
            answer.text
        );
        assert!(answer.text.contains(part), "{part}: {}", answer.text);
    }
    assert_eq!(client.get("/api/usage/event/filter").header("X-Total-Count"), "0");
}
