//! Usage in the form in which others write it: more decimals than a quantity has, labels of any form, and files of spreadsheets.
//! Each event is the same by every door.

use std::fs;

use acceptance::random::{Random, setting};
use acceptance::{Answer, Client, Database, Request, binary, catalog, on_both_databases, on_sqlite, when};
use serde_json::{Value, json};

on_both_databases!(quantities_are_rounded_by_every_door, labels_of_any_form_are_kept_by_every_door,);

on_sqlite!(
    any_text_as_a_label_is_recorded_reported_and_read_back,
    a_file_of_a_spreadsheet_is_read_as_it_is,
    lines_in_the_default_shape_have_errors_of_fields,
    batches_and_files_have_any_usual_media_type,
);

const CSV: &str = "text/csv";
const NDJSON: &str = "application/x-ndjson";
const IMPORT: &str = "/api/usage/import";
const BATCH: &str = "/api/usage/event/batch";

/// The ways to record an event.
const DOORS: [&str; 10] =
    ["event", "batch", "array", "lines", "CSV file", "NDJSON file", "JSON file", "format", "default format", "command line"];

fn send(client: &Client, path: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Answer {
    client.send(&Request::post(path, body).with("Content-Type", content_type))
}

/// Returns an event with the texts of its quantity and of its report data.
fn event(quantity: &str, data: &str) -> String {
    let now = when::now();
    format!(
        r#"{{"timestamp":"{now}","customer_ref":"acme","usage_product_ref":"api-calls","quantity":{quantity},"additional_report_data":{data}}}"#
    )
}

/// Returns the same event as CSV, with a column for each key.
fn csv_of(event: &str) -> String {
    let event: Value = serde_json::from_str(event).expect("an event");
    let fields = ["timestamp", "customer_ref", "usage_product_ref", "quantity"].map(|name| (name, &event[name]));
    let data = event["additional_report_data"].as_object().expect("an object");
    let cells: Vec<(&str, &Value)> = fields.into_iter().chain(data.iter().map(|(key, value)| (key.as_str(), value))).collect();
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let cell = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let names = cells.iter().map(|(name, _)| quoted(name)).collect::<Vec<_>>().join(",");
    format!("{names}\n{}\n", cells.iter().map(|(_, value)| quoted(&cell(value))).collect::<Vec<_>>().join(","))
}

/// Creates a usage format that maps the default shape to itself.
fn make_format(client: &Client) {
    let mapping = json!({
        "timestamp": "event.timestamp", "customer_ref": "event.customer_ref", "usage_product_ref": "event.usage_product_ref",
        "quantity": "event.quantity", "additional_report_data": "event.additional_report_data",
    });
    client.post("/api/usage/formats/", &json!({"format_name": "Same", "mapping": mapping})).ok();
}

/// Records an event through a door, and returns it.
fn record(database: &Database, client: &Client, door: &str, event: &str) -> Value {
    let name = format!("{IMPORT}?name={}", client.get("/api/usage/event/filter?pageSize=1").header("X-Total-Count"));
    let formatted = |format: &str| format!(r#"{{"format_name":"{format}","event":{event}}}"#);
    match door {
        "event" => send(client, "/api/usage/event", "application/json", event).ok(),
        "batch" => send(client, BATCH, "application/json", format!(r#"{{"events":[{event}]}}"#)).ok(),
        "array" => send(client, BATCH, "application/json", format!("[{event}]")).ok(),
        "lines" => send(client, BATCH, NDJSON, event).ok(),
        "CSV file" => send(client, &name, CSV, csv_of(event)).ok(),
        "NDJSON file" => send(client, &name, NDJSON, event).ok(),
        "JSON file" => send(client, &name, "application/json", format!("[{event}]")).ok(),
        "format" => send(client, "/api/usage/event/formatted", "application/json", formatted("Same")).ok(),
        "default format" => send(client, "/api/usage/event/formatted", "application/json", formatted("Default Format")).ok(),
        _ => {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let path = directory.path().join(format!("{}.csv", name.len() + event.len()));
            fs::write(&path, csv_of(event)).expect("a file");
            let imported = binary::succeed(database, &["import", path.to_str().expect("a path"), "--name", &name]);
            Value::from(imported)
        }
    };
    newest(client)
}

fn newest(client: &Client) -> Value {
    let events = client.get("/api/usage/event/filter?pageSize=1000").ok();
    events.as_array().and_then(|events| events.last()).cloned().expect("an event")
}

fn quantities_are_rounded_by_every_door(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    make_format(&client);
    let mut stored = 0;
    for (sent, kept) in
        [("0.0000001453", "0.000000145"), ("0.30000000000000004", "0.3"), ("1e-10", "0"), ("\"2.5000000005\"", "2.500000001")]
    {
        for door in DOORS {
            let recorded = record(database, &client, door, &event(sent, "{}"));
            assert_eq!(recorded["quantity"].to_string(), kept, "{sent} by {door}");
            stored += 1;
        }
    }
    assert_eq!(client.get("/api/usage/event/filter?pageSize=1").header("X-Total-Count"), stored.to_string());
    let total = catalog::current_invoice(&client, &contract)["products"][0]["line_items"][1]["quantity"].to_string();
    assert_eq!(total.trim_end_matches('0'), "28.00000146");

    let event_ref = newest(&client)["event_ref"].as_str().expect("a reference").to_owned();
    let update = |body: String| send(&client, "/api/usage/event/update", "application/json", body);
    let updated = update(format!(r#"{{"event_ref":"{event_ref}","quantity":0.30000000000000004}}"#)).ok();
    assert_eq!(updated["quantity"].to_string(), "0.3");
    let body = format!(r#"{{"format_name":"Same","event_ref":"{event_ref}","event":{}}}"#, event("0.70000000000000007", "{}"));
    let updated = send(&client, "/api/usage/event/formatted/update", "application/json", body).ok();
    assert_eq!(
        (updated["quantity"].to_string(), &updated["event"]["quantity"].to_string()),
        ("0.7".to_owned(), &"0.70000000000000007".to_owned())
    );
    let refused = update(format!(r#"{{"event_ref":"{event_ref}","quantity":999999999999999.9999999995}}"#));
    assert_eq!((refused.status, refused.body["errors"][0]["code"].as_str()), (422, Some("out_of_range")), "{}", refused.text);
}

fn labels_of_any_form_are_kept_by_every_door(database: &Database) {
    let (_server, client, _) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    make_format(&client);
    let data = json!({
        "note": "a\nb", "tags": ["x", 1], "blob": "é".repeat(1536), "bell\u{7}": "\u{0}\u{1b}[1m", "k".repeat(200): "long",
        "nested": {"a": {"b": []}},
    });
    let kept = json!({
        "note": "a\nb", "tags": "[\"x\",1]", "blob": format!("{}…", "é".repeat(1022)), "bell ": "\u{fffd}\u{fffd}[1m",
        "k".repeat(128): "long", "nested": "{\"a\":{\"b\":[]}}",
    });
    for door in DOORS {
        let recorded = record(database, &client, door, &event("1", &data.to_string()));
        assert_eq!(recorded["additional_report_data"], kept, "{door}");
    }
    let event_ref = newest(&client)["event_ref"].clone();
    let updated =
        client.post("/api/usage/event/update", &json!({"event_ref": event_ref, "additional_report_data": {"a": [1, 2]}}));
    assert_eq!(updated.ok()["additional_report_data"], json!({"a": "[1,2]"}));
    let no_object = client.post("/api/usage/event/update", &json!({"event_ref": event_ref, "additional_report_data": [1]}));
    assert_eq!((no_object.status, no_object.body["errors"][0]["code"].as_str()), (422, Some("wrong_type")));
}

/// Returns a random text of any characters, often of those that are special somewhere.
fn any_text(random: &mut Random, most: u64) -> String {
    const SPECIAL: [char; 24] = [
        '\0', '\n', '\r', '\t', '\u{1b}', '\u{7f}', '\u{85}', '"', '\'', ';', ',', '=', '+', '@', '\\', '<', '&', '_',
        '\u{fffe}', '\u{feff}', '\u{2028}', '\u{202e}', '😀', '%',
    ];
    let length = random.below(most);
    let one = |random: &mut Random| match random.below(4) {
        0 | 1 => *random.one_of(&SPECIAL),
        2 => char::from_u32(u32::try_from(random.below(0x11_0000)).expect("a code")).unwrap_or('\u{fffd}'),
        _ => char::from(b' ' + u8::try_from(random.below(95)).expect("an ASCII character")),
    };
    (0..length).map(|_| one(random)).collect()
}

/// Returns a label's text as it is kept, if it is short.
fn kept_text(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && !"\n\r\t".contains(c) { '\u{fffd}' } else { c }).collect()
}

/// Restores a text of a CSV report.
fn unguarded(text: &str) -> String {
    let (mut restored, mut is_start) = (String::new(), true);
    for c in text.chars() {
        if !(is_start && c == '\'') {
            restored.push(c);
        }
        is_start = matches!(c, ';' | '\n' | '\r');
    }
    restored
}

fn any_text_as_a_label_is_recorded_reported_and_read_back(database: &Database) {
    let (_server, client, _) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let seed = setting("SEED", 53);
    let mut random = Random::new(seed);
    let texts: Vec<String> = (0..400).map(|_| any_text(&mut random, 40)).collect();
    let keys: Vec<String> = (0..texts.len()).map(|_| any_text(&mut random, 6)).collect();
    let events: Vec<Value> = texts
        .iter()
        .zip(&keys)
        .map(|(text, key)| {
            serde_json::from_str(&event("1", &json!({"label": text, format!("x{key}"): text}).to_string())).expect("an event")
        })
        .collect();
    let answer = client.post(BATCH, &json!({"events": events})).ok();
    for result in answer["results"].as_array().expect("results") {
        assert!(result["event_ref"].is_string(), "{result}");
    }
    let mut kept: Vec<String> = texts.iter().map(|text| kept_text(text)).collect();
    kept.sort();
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts
    };
    let label = |event: &Value| event["additional_report_data"]["label"].as_str().expect("a label").to_owned();
    let read = client.get("/api/usage/event/filter?pageSize=1000").ok();
    assert_eq!(sorted(read.as_array().expect("events").iter().map(label).collect()), kept, "SEED={seed}");

    let json_report = client.get("/api/usage/report?format=json");
    let rows: Value = serde_json::from_str(&json_report.text).expect("a report");
    let of_row = |row: &Value| row["label"].as_str().expect("a label").to_owned();
    assert_eq!(sorted(rows.as_array().expect("rows").iter().map(of_row).collect()), kept, "SEED={seed}");
    let report = client.get("/api/usage/report?format=csv");
    let table = cells(&report.text);
    let column = table[0].iter().position(|name| name == "label").expect("the label");
    assert_eq!(sorted(table[1..].iter().map(|row| unguarded(&row[column])).collect()), kept, "SEED={seed}");
    assert_eq!(client.get("/api/usage/report?format=xlsx").status, 200);
    for (content_type, text) in [("application/json", &json_report.text), (CSV, &report.text)] {
        let again = send(&client, IMPORT, content_type, text.clone()).ok();
        assert_eq!((&again["already_there"], &again["refused"]), (&json!(400), &json!(0)), "{again}");
    }
}

/// Returns the cells of CSV by RFC 4180.
fn cells(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            '\r' if !is_quoted => {}
            other => cell.push(other),
        }
    }
    rows
}

fn a_file_of_a_spreadsheet_is_read_as_it_is(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let now = when::now();
    let names = "Timestamp;Customer Ref;USAGE PRODUCT-REF; Quantity ;Region;";
    let file = format!(
        "\u{feff}sep=;\r\n{names}\r\n{now};acme;api-calls;1,5;a,b;\r\n;;;;;\r\n{now};acme;api-calls;2;;x\r\n{now};acme;api-calls;1.5;;\r\n"
    );
    let imported = send(&client, &format!("{IMPORT}?name=a.csv&decimal=,"), CSV, file.clone()).ok();
    let rejects: Vec<(u64, &str)> = imported["rejects"]
        .as_array()
        .expect("rejects")
        .iter()
        .map(|reject| (reject["line"].as_u64().expect("a line"), reject["errors"][0]["code"].as_str().expect("a code")))
        .collect();
    assert_eq!((&imported["recorded"], rejects), (&json!(1), vec![(5, "unnamed_column"), (6, "invalid_format")]), "{imported}");
    assert_eq!(imported["rejects"][1]["errors"][0]["pointer"], "/quantity");
    assert_eq!(newest(&client)["additional_report_data"], json!({"Region": "a,b"}));
    let usage = catalog::current_invoice(&client, &contract)["products"][0]["line_items"][1]["quantity"].clone();
    assert_eq!(usage, json!(1.5));

    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("a.csv");
    fs::write(&path, file).expect("a file");
    let arguments = ["import", path.to_str().expect("a path"), "--decimal", ","];
    let finished = binary::run(&arguments, &[("USAGE_BILLING_DATABASE_URL", database.url())]);
    assert!(
        finished.stdout.starts_with("Events recorded: 0; duplicates: 1; rejected: 2.\n"),
        "{}{}",
        finished.stdout,
        finished.stderr
    );

    let missing = send(
        &client,
        &format!("{IMPORT}?name=b.csv"),
        CSV,
        format!("timestamp,customer_ref,usage_product_ref,qantity\n{now},acme,api-calls,1\n"),
    );
    assert_eq!((missing.status, missing.text_of("code").as_str()), (400, "malformed_file"), "{}", missing.text);
    let detail = missing.text_of("detail");
    assert!(
        detail.contains("no column quantity") && detail.contains("\"qantity\"") && detail.contains("customer_ref, usage"),
        "{detail}"
    );
    let no_csv = send(&client, &format!("{IMPORT}?name=c&decimal=,"), NDJSON, event("1", "{}"));
    assert_eq!((no_csv.status, no_csv.text_of("code").as_str()), (400, "malformed_file"), "{}", no_csv.text);
}

fn lines_in_the_default_shape_have_errors_of_fields(database: &Database) {
    let (_server, client, _) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let file = "timestamp,customer_ref,usage_product_ref,quantity,validations\nyesterday,acme,api-calls,\"1,000\",\n2026-01-20T10:00:00Z,a b,,+1,{}\n";
    let imported = send(&client, &format!("{IMPORT}?name=a.csv"), CSV, file).ok();
    let errors = |index: usize| -> Vec<String> {
        let reject = &imported["rejects"][index];
        assert!(!reject.to_string().contains("event."), "no expression: {reject}");
        let errors = reject["errors"].as_array().expect("errors").iter();
        errors
            .map(|error| format!("{} {}", error["pointer"].as_str().expect("a pointer"), error["code"].as_str().expect("a code")))
            .collect()
    };
    assert_eq!(errors(0), ["/timestamp invalid_format", "/quantity invalid_format"]);
    assert_eq!(errors(1), ["/customer_ref invalid_format", "/quantity invalid_format", "/usage_product_ref required"]);
}

fn batches_and_files_have_any_usual_media_type(database: &Database) {
    let (_server, client, _) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let event = event("1", "{}");
    for (index, media_type) in
        [NDJSON, "application/ndjson", "application/jsonl", "Application/JSONLines; charset=utf-8"].into_iter().enumerate()
    {
        let imported = send(&client, &format!("{IMPORT}?name={index}"), media_type, event.clone()).ok();
        assert_eq!(imported["recorded"], json!(1), "{media_type}");
        assert_eq!(send(&client, BATCH, media_type, event.clone()).text.matches("event_ref").count(), 1, "{media_type}");
    }
    let commas = csv_of(&event);
    assert_eq!(send(&client, &format!("{IMPORT}?name=csv"), "application/csv", commas.clone()).ok()["recorded"], json!(1));
    let tabs =
        commas.replace("\",\"", "\"\t\"").replace("quantity\"", "quantity\"\t\"a,b,c,d,e,f\"").replace("\"1\"", "\"1\"\tx");
    assert_eq!(send(&client, &format!("{IMPORT}?name=tsv"), "text/tab-separated-values", tabs).ok()["recorded"], json!(1));
    assert_eq!(newest(&client)["additional_report_data"], json!({"a,b,c,d,e,f": "x"}));
    assert_eq!(send(&client, BATCH, CSV, event).status, 415);

    let events = json!([{"timestamp": when::now()}, catalog::event(catalog::ACME, 1)]);
    let mixed = client.post(BATCH, &events).ok();
    assert_eq!((&mixed["results"][0]["status"], mixed["results"][1]["event_ref"].is_string()), (&json!(422), true), "{mixed}");
    let atomic = client.post(&format!("{BATCH}?atomic=true"), &events);
    assert_eq!(
        (atomic.status, atomic.body["errors"][0]["pointer"].as_str()),
        (422, Some("/events/0/customer_ref")),
        "{}",
        atomic.text
    );
    let keyed = client.with_header("Idempotency-Key", "a-batch");
    let (once, again) = (keyed.post(BATCH, &events), keyed.post(BATCH, &events));
    assert_eq!((once.body, again.header("Idempotency-Replayed")), (again.body.clone(), "true"));
}
