//! `usage-billing import`: files of events that are imported directly into the database, each line once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use acceptance::{Client, Database, binary, catalog, on_both_databases, when};
use serde_json::{Value, json};

on_both_databases!(
    a_file_is_imported_once_however_often_it_is_run,
    an_import_killed_in_the_middle_and_run_again_ends_with_every_line_exactly_once,
    a_csv_file_is_mapped_by_the_format_that_is_named,
    what_cannot_be_imported_is_told_with_line_and_reason,
    a_dry_run_tells_what_a_run_would_do_and_stores_nothing,
    a_usage_report_is_imported_as_nothing_new_whatever_became_of_its_events,
    a_file_that_is_none_is_refused_as_a_whole,
);

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).expect("a file");
        path
    }
}

fn import(database: &Database, file: &Path, flags: &[&str]) -> binary::Finished {
    let mut arguments = vec!["import", file.to_str().expect("a path")];
    arguments.extend(flags);
    binary::run(&arguments, &[("USAGE_BILLING_DATABASE_URL", database.url())])
}

fn rejects(file: &Path) -> Vec<(u64, String, String)> {
    let path = format!("{}.rejects.ndjson", file.display());
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let read = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let text = |field: &str| line[field].as_str().expect("a string").to_owned();
        (line["line"].as_u64().expect("a line"), text("reason"), text("input"))
    };
    text.lines().map(read).collect()
}

fn usage(client: &Client, contract: &str) -> Value {
    catalog::current_invoice(client, contract)["products"][0]["line_items"][1]["quantity"].clone()
}

fn events(count: usize) -> Vec<String> {
    (0..count).map(|_| catalog::event(catalog::ACME, 1).to_string()).collect()
}

/// Returns the expected output of an import whose events have no keys: the counts, then the identification of the lines.
fn reported(recorded: u64, already_there: u64, refused: u64, documents: &[&str]) -> String {
    let known = match recorded + already_there {
        0 => String::new(),
        known => format!(
            "Lines without an idempotency_key: {known}. They are identified by file name and line number, so a file with another \
             name records them again.\n"
        ),
    };
    let documents: String = documents.iter().map(|document| format!("{document}\n")).collect();
    format!("Events recorded: {recorded}; duplicates: {already_there}; rejected: {refused}.\n{known}{documents}")
}

fn a_file_is_imported_once_however_often_it_is_run(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let files = Files::new();
    let mut lines = events(2_500);
    let file = files.put("usage.ndjson", lines.join("\n"));

    let first = import(database, &file, &[]);
    let expected = reported(2500, 0, 0, &["UB-INV-1 of acme, EUR: 2500 events"]);
    assert_eq!((first.code, first.stdout), (Some(0), expected), "{}", first.stderr);
    assert_eq!(first.stderr, "", "no progress without a terminal");
    assert_eq!(usage(&client, &contract), json!(2_500));

    // The file has grown, and one line has changed.
    lines.extend(events(3));
    lines[1] = catalog::event(catalog::ACME, 7).to_string();
    let file = files.put("usage.ndjson", lines.join("\n") + "\n\n");
    let second = import(database, &file, &[]);
    assert_eq!((second.code, second.stdout), (Some(1), reported(3, 2499, 1, &["UB-INV-1 of acme, EUR: 3 events"])));
    assert!(second.stderr.contains("rejected lines: 1"), "{}", second.stderr);
    let rejected = rejects(&file);
    assert_eq!((rejected.len(), rejected[0].0, &rejected[0].2), (1, 2, &lines[1]));
    assert!(rejected[0].1.contains("imported before and said something else"), "{}", rejected[0].1);
    assert_eq!(usage(&client, &contract), json!(2_503));

    // Another format would create different events from the same lines, so all lines are rejected.
    let mapping = json!({
        "timestamp": "event.timestamp", "customer_ref": "event.customer_ref", "usage_product_ref": "event.usage_product_ref",
        "quantity": "event.quantity * 2",
    });
    client.post("/api/usage/formats/", &json!({"format_name": "Doubled", "mapping": mapping})).ok();
    let doubled = import(database, &file, &["--format", "Doubled"]);
    assert_eq!(doubled.stdout, reported(0, 0, 2503, &[]), "{}", doubled.stderr);
    assert_eq!(usage(&client, &contract), json!(2_503));

    // Another import name makes it another import.
    let third = import(database, &file, &["--name", "usage of another day"]);
    let expected = reported(2503, 0, 0, &["UB-INV-1 of acme, EUR: 2503 events"]);
    assert_eq!((third.code, third.stdout), (Some(0), expected), "{}", third.stderr);
    assert!(!PathBuf::from(format!("{}.rejects.ndjson", file.display())).exists(), "an old file of rejects is deleted");
    assert_eq!(usage(&client, &contract), json!(5_012));
}

fn an_import_killed_in_the_middle_and_run_again_ends_with_every_line_exactly_once(database: &Database) {
    const LINES: usize = 3_000;
    const KILLS: usize = 3;
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let files = Files::new();
    let file = files.put("usage.jsonl", events(LINES).join("\n"));
    let stored = || client.get("/api/usage/event/filter?pageSize=1").header("X-Total-Count").parse::<usize>().expect("a count");
    let mut seen = 0;
    for _ in 0..KILLS {
        let mut child = binary::command(files.0.path())
            .args(["import", file.to_str().expect("a path"), "--lines-per-transaction", "20"])
            .env("USAGE_BILLING_DATABASE_URL", database.url())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the import starts");
        let started = Instant::now();
        while stored() <= seen && started.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(5));
        }
        child.kill().expect("our own child process");
        child.wait().expect("the process ends");
        let now = stored();
        assert!(now > seen && now < LINES, "killed in the middle: {seen}, then {now} of {LINES}");
        seen = now;
    }
    let last = import(database, &file, &[]);
    let new = LINES - seen;
    let expected = reported(new as u64, seen as u64, 0, &[&format!("UB-INV-1 of acme, EUR: {new} events")]);
    assert_eq!((last.code, last.stdout), (Some(0), expected), "{}", last.stderr);
    assert_eq!((stored(), usage(&client, &contract)), (LINES, json!(LINES)));
}

fn a_csv_file_is_mapped_by_the_format_that_is_named(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let mapping = json!({
        "timestamp": "event.Time", "customer_ref": "event.Account", "usage_product_ref": "\"api-calls\"",
        "quantity": "event.Hits", "additional_report_data": "rest",
    });
    client.post("/api/usage/formats/", &json!({"format_name": "Gateway export", "mapping": mapping})).ok();
    let (files, now) = (Files::new(), when::now());
    let rows = [
        "\u{feff}Time;Account;Hits;\"Note; free\"".to_owned(),
        format!("{now};acme;12.5;\"two; parts\""),
        format!("{now};acme;;x"),
        format!("{now};acme;1"),
        format!("{now};acme;3;"),
        String::new(),
        format!("{now};acme;1;\"two\nlines\""),
        String::new(),
    ];
    let csv = rows.join("\r\n");
    let file = files.put("export.txt", csv);

    let flags = ["--format", "Gateway export", "--input", "csv"];
    let finished = import(database, &file, &flags);

    assert_eq!(
        (finished.code, finished.stdout),
        (Some(1), reported(3, 0, 2, &["UB-INV-1 of acme, EUR: 3 events"])),
        "{}",
        finished.stderr
    );
    assert_eq!(usage(&client, &contract), json!(16.5));
    let listed = client.get("/api/usage/event/filter").ok();
    assert_eq!(listed[0]["additional_report_data"], json!({"Note; free": "two; parts"}));
    assert_eq!(listed[1]["additional_report_data"], json!({"Note; free": null}));
    assert_eq!((&listed[0]["format_version"], &listed[0]["event"]["Hits"]), (&json!(1), &json!("12.5")));
    assert_eq!(listed[2]["additional_report_data"], json!({"Note; free": "two\nlines"}));
    let rejected = rejects(&file);
    for ((line, reason, _), (expected, part)) in rejected.iter().zip([(3, "quantity"), (4, "3 fields")]) {
        assert!(*line == expected && reason.contains(part), "{line}: {reason}");
    }
    assert_eq!(rejected.len(), 2);
}

fn what_cannot_be_imported_is_told_with_line_and_reason(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let files = Files::new();
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(2 * 1024 * 1024));
    let event = catalog::event(catalog::ACME, 1).to_string();
    let early = catalog::with(catalog::event(catalog::ACME, 1), &json!({"timestamp": "2001-01-01T00:00:00Z"})).to_string();
    let stranger = catalog::event("nobody", 1).to_string();
    let lines: [&[u8]; 8] =
        [event.as_bytes(), b"{", b"[1]", b"\"\xff\"", long.as_bytes(), early.as_bytes(), stranger.as_bytes(), event.as_bytes()];
    let file = files.put("usage.ndjson", lines.join(&b"\r\n"[..]));

    let finished = import(database, &file, &["--rejects", file.with_extension("out").to_str().expect("a path")]);

    assert_eq!((finished.code, finished.stdout), (Some(1), reported(2, 0, 6, &["UB-INV-1 of acme, EUR: 2 events"])));
    let written = fs::read_to_string(file.with_extension("out")).expect("rejects");
    let reasons: Vec<(u64, String)> = written
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .map(|line| (line["line"].as_u64().expect("a line"), line["reason"].as_str().expect("a reason").to_owned()))
        .collect();
    for ((line, reason), (expected, part)) in reasons.iter().zip([
        (2, "JSON"),
        (3, "object"),
        (4, "UTF-8"),
        (5, "1048576 bytes"),
        (6, "no contract"),
        (7, "customer_ref"),
    ]) {
        assert!(*line == expected && reason.contains(part), "{line}: {reason}");
    }
    assert_eq!((reasons.len(), usage(&client, &contract)), (6, json!(2)));

    let refused = |name: &str, content: &str, flags: &[&str]| {
        let finished = import(database, &files.put(name, content), flags);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{}", finished.stderr);
        finished.stderr
    };
    assert!(refused("usage.txt", &event, &[]).contains("--input"));
    assert!(refused("a.csv", "a,a\n1,2\n", &[]).contains("column 2"));
    assert!(refused("b.ndjson", &event, &["--format", "Nobody's"]).contains("usage format"));
    assert!(refused("c.ndjson", &event, &["--organization", "Nobody's"]).contains("organization"));
    assert!(refused("d.ndjson", &event, &["--name", &"n".repeat(240)]).contains("--name"));
    let file = files.put("e.ndjson", &event);
    assert!(refused("e.ndjson", &event, &["--rejects", file.to_str().expect("a path")]).contains("--rejects"));
    assert!(file.exists());
    let missing = import(database, Path::new("/nowhere/usage.csv"), &[]);
    assert!(missing.code == Some(2) && missing.stderr.contains("/nowhere/usage.csv"), "{}", missing.stderr);
}

fn a_dry_run_tells_what_a_run_would_do_and_stores_nothing(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    catalog::make_customer(&client, "globex");
    catalog::make_contract(&client, &catalog::contract("globex"));
    client.post("/api/usage/event", &catalog::event(catalog::ACME, 1)).ok();
    let keyed = |customer: &str, quantity: u32, key: &str| {
        catalog::with(catalog::event(customer, quantity), &json!({"idempotency_key": key})).to_string()
    };
    let (first, other) = (keyed(catalog::ACME, 2, "k"), keyed(catalog::ACME, 3, "k"));
    // Repeats in the same transaction and in a later one.
    let mut lines = vec![first.clone(), "{".to_owned(), first.clone(), other.clone()];
    lines.extend(events(5));
    lines.extend([keyed("globex", 4, "k"), first, other, catalog::event("globex", 1).to_string()]);
    let files = Files::new();
    let file = files.put("usage.ndjson", lines.join("\n"));
    let flags = |more: &[&'static str]| [&["--lines-per-transaction", "4"][..], more].concat();
    let (events, documents) = (|| client.get("/api/usage/event/filter").ok(), || catalog::documents(&client));
    let before = (events(), documents(), usage(&client, &contract));

    let dry = import(database, &file, &flags(&["--dry-run"]));

    assert_eq!((events(), documents(), usage(&client, &contract)), before, "nothing is stored");
    let known = "Lines without an idempotency_key: 6. They are identified by file name and line number, so a file with another name \
                 records them again.";
    let counts = "8; duplicates: 2; rejected: 3.";
    let expected = format!(
        "Dry run, nothing is stored. Events to record: {counts}\n{known}\nUB-INV-1 of acme, EUR: 6 events\n\
         a new document of globex, EUR: 2 events\n"
    );
    assert_eq!((dry.code, dry.stdout), (Some(1), expected), "{}", dry.stderr);
    let rejected = rejects(&file);
    assert_eq!(rejected.iter().map(|(line, ..)| *line).collect::<Vec<_>>(), [2, 4, 12]);
    let run = import(database, &file, &flags(&[]));
    let expected =
        format!("Events recorded: {counts}\n{known}\nUB-INV-1 of acme, EUR: 6 events\nUB-INV-2 of globex, EUR: 2 events\n");
    assert_eq!((run.code, run.stdout), (Some(1), expected), "a dry run stores no key");
    assert_eq!(rejects(&file), rejected);
    let again = import(database, &file, &flags(&["--dry-run"]));
    assert!(again.stdout.contains("Events to record: 0; duplicates: 10; rejected: 3."), "{}", again.stdout);
}

fn a_usage_report_is_imported_as_nothing_new_whatever_became_of_its_events(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let sent = |quantity: u32, data: Value| {
        let event = catalog::with(catalog::event(catalog::ACME, quantity), &json!({"additional_report_data": data}));
        client.post("/api/usage/event", &event).text_of("event_ref")
    };
    let [_, edited, deleted] =
        [sent(1, json!({"region": "=eu", "quantity": 7})), sent(2, json!({"note": "a;b, c"})), sent(4, Value::Null)];
    let report = |format: &str| client.get(&format!("/api/usage/report?format={format}")).text;
    let files = Files::new();
    let reports = [files.put("report.csv", report("csv")), files.put("report.json", report("json"))];
    client.post("/api/usage/event/update", &json!({"event_ref": edited, "quantity": 8})).ok();
    assert_eq!(client.delete(&format!("/api/usage/event/{deleted}")).status, 204);
    let (before, events) = (usage(&client, &contract), client.get("/api/usage/event/filter").ok());

    for report in &reports {
        let finished = import(database, report, &[]);
        let expected = "Events recorded: 0; duplicates: 3; rejected: 0.\n";
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), expected), "{}", finished.stderr);
    }

    assert_eq!((usage(&client, &contract), client.get("/api/usage/event/filter").ok()), (before, events));
    let foreign = fs::read_to_string(&reports[0]).expect("a report").replace(&edited, "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b");
    let file = files.put("foreign.csv", foreign);
    let finished = import(database, &file, &[]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), "Events recorded: 0; duplicates: 2; rejected: 1.\n"));
    assert!(rejects(&file)[0].1.starts_with("event_ref must be the reference of an existing event"), "{}", rejects(&file)[0].1);

    // A row without a reference is a new event. The columns of the report's keys become its report data.
    let appended = format!("{},{},acme,,api-calls,,16,,hello,9,us\r\n", report("csv"), when::now());
    let finished = import(database, &files.put("appended.csv", appended), &[]);
    assert!(finished.stdout.starts_with("Events recorded: 1; duplicates: 2; rejected: 0.\n"), "{}", finished.stdout);
    let last = client.get("/api/usage/event/filter").ok()[2]["additional_report_data"].clone();
    assert_eq!(last, json!({"note": "hello", "quantity": "9", "region": "us"}));
}

fn a_file_that_is_none_is_refused_as_a_whole(database: &Database) {
    let (_server, client, _) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let files = Files::new();
    let good = format!("timestamp,customer_ref,usage_product_ref,quantity\n{},acme,api-calls,1\n", when::now());
    for (name, content, part) in [
        ("empty.csv", Vec::new(), "empty"),
        ("names.csv", b"timestamp,customer_ref\n".to_vec(), "no column usage_product_ref or usage_product_name"),
        ("twice.csv", b"a,b,a\n1,2,3\n".to_vec(), "column 3"),
        ("workbook.csv", b"PK\x03\x04\x14\0\x06".to_vec(), "not text in UTF-8"),
        ("wide.csv", vec![b','; 100_000], "65536 bytes"),
        ("empty.ndjson", Vec::new(), "no events"),
        ("object.json", b"{}".to_vec(), "no JSON array"),
    ] {
        let finished = import(database, &files.put(name, content), &[]);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{name}: {}", finished.stderr);
        assert!(finished.stderr.contains(part), "{name}: {}", finished.stderr);
    }
    // Earlier lines are imported: in a large file, the first transactions are committed long before.
    let open = format!("{good}\"{}", "x".repeat(2 * 1024 * 1024));
    let finished = import(database, &files.put("open.csv", open), &[]);
    assert_eq!((finished.code, finished.stdout), (Some(1), reported(1, 0, 0, &["UB-INV-1 of acme, EUR: 1 events"])));
    assert!(finished.stderr.contains("line 3") && finished.stderr.contains("quote"), "{}", finished.stderr);
    assert_eq!(client.get("/api/usage/event/filter").header("X-Total-Count"), "1");
}
