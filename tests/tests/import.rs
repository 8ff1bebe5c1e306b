//! `usage-billing import`: files of events, straight into the database, each line once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use acceptance::{Client, Database, Server, binary, catalog, on_both_databases, when};
use serde_json::{Value, json};

on_both_databases!(
    a_file_is_imported_once_however_often_it_is_run,
    an_import_killed_in_the_middle_and_run_again_ends_with_every_line_exactly_once,
    a_csv_file_is_mapped_by_the_format_that_is_named,
    what_cannot_be_imported_is_told_with_line_and_reason,
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

fn start(database: &Database) -> (Server, Client, String) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let contract = catalog::make_contract(&client, &catalog::contract(catalog::ACME));
    (server, client, contract)
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
        let text = |field: &str| line[field].as_str().expect("a text").to_owned();
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

fn a_file_is_imported_once_however_often_it_is_run(database: &Database) {
    let (_server, client, contract) = start(database);
    let files = Files::new();
    let mut lines = events(2_500);
    let file = files.put("usage.ndjson", lines.join("\n"));

    let first = import(database, &file, &[]);
    assert_eq!((first.code, first.stdout.as_str()), (Some(0), "Events imported: 2500; there already: 0.\n"), "{}", first.stderr);
    assert_eq!(first.stderr, "", "no progress where nobody looks");
    assert_eq!(usage(&client, &contract), json!(2_500));

    // The file has grown, and one line says something else now.
    lines.extend(events(3));
    lines[1] = catalog::event(catalog::ACME, 7).to_string();
    let file = files.put("usage.ndjson", lines.join("\n") + "\n\n");
    let second = import(database, &file, &[]);
    assert_eq!((second.code, second.stdout.as_str()), (Some(1), "Events imported: 3; there already: 2499.\n"));
    assert!(second.stderr.contains("lines rejected: 1"), "{}", second.stderr);
    let rejected = rejects(&file);
    assert_eq!((rejected.len(), rejected[0].0, &rejected[0].2), (1, 2, &lines[1]));
    assert!(rejected[0].1.contains("imported before and said something else"), "{}", rejected[0].1);
    assert_eq!(usage(&client, &contract), json!(2_503));

    // Another format would make other events of the lines.
    let mapping = json!({
        "timestamp": "event.timestamp", "customer_ref": "event.customer_ref", "usage_product_ref": "event.usage_product_ref",
        "quantity": "event.quantity * 2",
    });
    client.post("/api/usage/formats/", &json!({"format_name": "Doubled", "mapping": mapping})).ok();
    let doubled = import(database, &file, &["--format", "Doubled"]);
    assert_eq!(doubled.stdout, "Events imported: 0; there already: 0.\n", "{}", doubled.stderr);
    assert_eq!(usage(&client, &contract), json!(2_503));

    // Another import, by name.
    let third = import(database, &file, &["--name", "usage of another day"]);
    assert_eq!((third.code, third.stdout.as_str()), (Some(0), "Events imported: 2503; there already: 0.\n"), "{}", third.stderr);
    assert!(!PathBuf::from(format!("{}.rejects.ndjson", file.display())).exists(), "an old file of rejects is gone");
    assert_eq!(usage(&client, &contract), json!(5_012));
}

fn an_import_killed_in_the_middle_and_run_again_ends_with_every_line_exactly_once(database: &Database) {
    const LINES: usize = 3_000;
    const KILLS: usize = 3;
    let (_server, client, contract) = start(database);
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
            .expect("an import");
        let started = Instant::now();
        while stored() <= seen && started.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(5));
        }
        child.kill().expect("our own child");
        child.wait().expect("it is gone");
        let now = stored();
        assert!(now > seen && now < LINES, "killed in the middle: {seen}, then {now} of {LINES}");
        seen = now;
    }
    let last = import(database, &file, &[]);
    let expected = format!("Events imported: {}; there already: {seen}.\n", LINES - seen);
    assert_eq!((last.code, last.stdout), (Some(0), expected), "{}", last.stderr);
    assert_eq!((stored(), usage(&client, &contract)), (LINES, json!(LINES)));
}

fn a_csv_file_is_mapped_by_the_format_that_is_named(database: &Database) {
    let (_server, client, contract) = start(database);
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

    let flags = ["--format", "Gateway export", "--input", "csv", "--delimiter", ";"];
    let finished = import(database, &file, &flags);

    assert_eq!(
        (finished.code, finished.stdout.as_str()),
        (Some(1), "Events imported: 2; there already: 0.\n"),
        "{}",
        finished.stderr
    );
    assert_eq!(usage(&client, &contract), json!(15.5));
    let listed = client.get("/api/usage/event/filter").ok();
    assert_eq!(listed[0]["additional_report_data"], json!({"Note; free": "two; parts"}));
    assert_eq!(listed[1]["additional_report_data"], json!({"Note; free": null}));
    assert_eq!((&listed[0]["format_version"], &listed[0]["event"]["Hits"]), (&json!(1), &json!("12.5")));
    let rejected = rejects(&file);
    for ((line, reason, _), (expected, part)) in
        rejected.iter().zip([(4, "3 fields"), (3, "quantity"), (7, "control characters")])
    {
        assert!(*line == expected && reason.contains(part), "{line}: {reason}");
    }
    assert_eq!(rejected.len(), 3);
    assert_eq!(rejected[2].2, format!("{now},acme,1,\"two\nlines\""));
}

fn what_cannot_be_imported_is_told_with_line_and_reason(database: &Database) {
    let (_server, client, contract) = start(database);
    let files = Files::new();
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(2 * 1024 * 1024));
    let event = catalog::event(catalog::ACME, 1).to_string();
    let early = catalog::with(catalog::event(catalog::ACME, 1), &json!({"timestamp": "2001-01-01T00:00:00Z"})).to_string();
    let stranger = catalog::event("nobody", 1).to_string();
    let lines: [&[u8]; 8] =
        [event.as_bytes(), b"{", b"[1]", b"\"\xff\"", long.as_bytes(), early.as_bytes(), stranger.as_bytes(), event.as_bytes()];
    let file = files.put("usage.ndjson", lines.join(&b"\r\n"[..]));

    let finished = import(database, &file, &["--rejects", file.with_extension("out").to_str().expect("a path")]);

    assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), "Events imported: 2; there already: 0.\n"));
    let written = fs::read_to_string(file.with_extension("out")).expect("rejects");
    let mut reasons: Vec<(u64, String)> = written
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .map(|line| (line["line"].as_u64().expect("a line"), line["reason"].as_str().expect("a reason").to_owned()))
        .collect();
    reasons.sort();
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
