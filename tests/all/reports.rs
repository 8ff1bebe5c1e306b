//! Usage in bulk: lists, sums and reports, over HTTP and on the command line, checked with other programs.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use acceptance::load::Load;
use acceptance::problem::{Table, invalid, refused};
use acceptance::when::Day;
use acceptance::{Client, Database, binary, catalog, on_both_databases, tools};
use serde_json::{Value, json};
use tempfile::TempDir;

on_both_databases!(
    events_are_listed_narrowed_and_in_order,
    pages_show_every_event_once_while_later_ones_arrive,
    usage_is_summed_up_by_interval_and_group,
    what_is_wrong_with_a_query_is_said_at_once,
    a_report_has_hostile_keys_and_values_without_a_formula,
    an_issued_documents_usage_stays_as_it_was_issued,
    twenty_thousand_events_are_read_back_by_another_program,
    the_command_line_writes_the_same_report,
);

const LIST: &str = "/api/usage/event/filter";
const REPORT: &str = "/api/usage/report";
const FORMATS: [&str; 3] = ["csv", "json", "xlsx"];
const BATCH: usize = 10_000;

fn list(client: &Client, query: &str) -> Vec<Value> {
    client.get(&format!("{LIST}?{query}")).ok().as_array().expect("a list").clone()
}

fn refs(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event_ref"].as_str().expect("a reference")).collect()
}

/// Returns an event of API calls at noon, the given number of days from today.
fn event(days: i64, quantity: &str) -> Value {
    catalog::event_on("acme", Day::today().plus_days(days), quantity)
}

fn report(client: &Client, event: &Value) -> Value {
    let result = client.post("/api/usage/event", event).ok();
    let event_ref = result["event_ref"].as_str().expect("a reference");
    client.get(&format!("/api/usage/event/{event_ref}")).ok()
}

fn events_are_listed_narrowed_and_in_order(database: &Database) {
    let (_server, client) = catalog::stage(database);
    assert_eq!(list(&client, ""), Vec::<Value>::new());
    let contract = catalog::make_contract(&client, &catalog::contract("acme"));
    catalog::make_customer(&client, "globex");
    let other_contract = catalog::make_contract(&client, &catalog::contract("globex"));
    let events = [event(-1, "1"), event(-3, "2.50"), event(-2, "3")].map(|event| report(&client, &event));
    let mut foreign = event(-4, "4");
    foreign["customer_ref"] = json!("globex");
    let foreign = report(&client, &foreign);
    let deleted = report(&client, &event(-1, "5"));
    assert_eq!(client.delete(&format!("/api/usage/event/{}", deleted["event_ref"].as_str().expect("a reference"))).status, 204);

    // Each event is listed exactly as it is returned on its own.
    let all = [&foreign, &events[1], &events[2], &events[0]].map(Clone::clone);
    assert_eq!(list(&client, ""), all);
    let document = events[0]["related_document_ref"].as_str().expect("a reference");
    let (from, to) = (events[2]["timestamp"].as_str().expect("text"), events[0]["timestamp"].as_str().expect("text"));
    for (query, expected) in [
        ("customer_ref=globex".to_owned(), &all[..1]),
        ("usage_product_ref=api-calls".to_owned(), &all[..]),
        (format!("document_ref={document}"), &all[1..]),
        (format!("contract_ref={contract}"), &all[1..]),
        (format!("contract_ref={other_contract}&customer_ref=acme"), &all[..0]),
        (format!("contract_ref={other_contract}&document_ref={document}"), &all[..0]),
        (format!("from={from}"), &all[2..]),
        (format!("to={to}&customer_ref=acme"), &all[1..3]),
        (format!("from={to}&to={from}"), &all[..0]),
        ("customer_ref=nobody".to_owned(), &all[..0]),
        ("usage_product_ref=no%20reference".to_owned(), &all[..0]),
        ("document_ref=nonsense".to_owned(), &all[..0]),
        ("pageSize=2".to_owned(), &all[..2]),
        ("pageSize=3&pageNumber=1".to_owned(), &all[3..]),
    ] {
        assert_eq!(list(&client, &query), expected, "{query}");
    }
    let page = client.get(&format!("{LIST}?pageSize=3&customer_ref=acme"));
    assert_eq!(page.header("X-Total-Count"), "3");
    let page = client.get(&format!("{LIST}?pageSize=1&pageNumber=1"));
    assert!(page.header("Link").contains("pageSize=1&pageNumber=2>; rel=\"next\""), "{}", page.header("Link"));
}

fn pages_show_every_event_once_while_later_ones_arrive(database: &Database) {
    let (_server, client) = catalog::stage(database);
    catalog::make_contract(&client, &catalog::contract("acme"));
    let before: Vec<Value> = (0..60).map(|n| event(-9 + n % 8, "1")).collect();
    let results = client.post("/api/usage/event/batch", &json!({"events": before})).ok();
    let results = results["results"].as_array().expect("results").clone();
    let before: BTreeSet<&str> = refs(&results).into_iter().collect();
    let load = Load::start(&client, 2, |_, _| catalog::event("acme", 1));
    let mut seen = Vec::new();
    for page in 0.. {
        let events = list(&client, &format!("pageSize=7&pageNumber={page}"));
        load.wait_for(2 * (page + 1));
        let place = |event: &Value| (event["timestamp"].as_str().expect("text").to_owned(), event["event_ref"].to_string());
        assert!(events.iter().is_sorted_by_key(place));
        seen.extend(events);
        if before.len() < seen.len() {
            break;
        }
    }
    for reported in load.end() {
        assert_eq!(reported.refused, []);
    }
    assert!(refs(&seen)[..60].iter().copied().collect::<BTreeSet<_>>() == before, "earlier events come first, each once");
    assert_eq!(refs(&seen).into_iter().collect::<BTreeSet<_>>().len(), seen.len(), "no event is listed twice");
}

fn usage_is_summed_up_by_interval_and_group(database: &Database) {
    let (_server, client) = catalog::stage(database);
    catalog::make_contract(&client, &catalog::contract("acme"));
    catalog::make_customer(&client, "globex");
    catalog::make_contract(&client, &catalog::contract("globex"));
    let day = Day::today().plus_days(-3);
    let at = |time: &str, customer: &str, quantity: &str| {
        let timestamp = format!("{day}T{time}");
        json!({"timestamp": timestamp, "customer_ref": customer, "usage_product_ref": "api-calls", "quantity": quantity})
    };
    let events = [
        at("10:00:00Z", "acme", "0.1"),
        at("10:59:59.999999Z", "acme", "0.2"),
        at("10:30:00Z", "globex", "999999999999.000000001"),
        at("13:00:00+01:00", "acme", "7"),
    ];
    let results = client.post("/api/usage/event/batch", &json!({"events": events})).ok();
    assert!(results["results"].as_array().expect("results").iter().all(|result| result["event_ref"].is_string()), "{results}");
    let next = day.plus_days(1);
    let summary = |query: &str| client.get(&format!("/api/usage/summary?{query}"));
    let row = |from: String, to: String, product: Value, customer: Value, quantity: &str, events: u64| {
        let quantity: Value = serde_json::from_str(quantity).expect("a number");
        json!({"from": from, "to": to, "usage_product_ref": product, "customer_ref": customer, "quantity": quantity, "events": events})
    };
    let hour = |hour: u32| format!("{day}T{hour:02}:00:00Z");
    assert_eq!(
        summary("interval=hour&group_by=usage_product_ref,customer_ref").ok(),
        json!([
            row(hour(10), hour(11), json!("api-calls"), json!("acme"), "0.3", 2),
            row(hour(10), hour(11), json!("api-calls"), json!("globex"), "999999999999.000000001", 1),
            row(hour(12), hour(13), json!("api-calls"), json!("acme"), "7", 1),
        ])
    );
    let (from, to) = (format!("{day}T00:00:00Z"), format!("{next}T00:00:00Z"));
    let whole = row(from.clone(), to.clone(), Value::Null, Value::Null, "1000000000006.300000001", 4);
    assert_eq!(summary("interval=day").ok(), json!([whole]));
    let acme = row(from, to, json!("api-calls"), Value::Null, "7.3", 3);
    assert_eq!(summary("interval=day&group_by=usage_product_ref&customer_ref=acme").ok(), json!([acme]));
    // In UTC, a day of Kolkata begins at 18:30, and its hours begin at half past.
    let (from, to) = (format!("{}T18:30:00Z", day.plus_days(-1)), format!("{day}T18:30:00Z"));
    let there = row(from, to, Value::Null, Value::Null, "1000000000006.300000001", 4);
    assert_eq!(summary("interval=day&timezone=Asia/Kolkata").ok(), json!([there]));
    let half = |hour: u32| format!("{day}T{hour:02}:30:00Z");
    let acmes = |from: u32, quantity: &str| row(half(from), half(from + 1), Value::Null, Value::Null, quantity, 1);
    assert_eq!(
        summary("interval=hour&timezone=Asia/Kolkata&customer_ref=acme").ok(),
        json!([acmes(9, "0.1"), acmes(10, "0.2"), acmes(11, "7")])
    );
    assert_eq!(summary("interval=month&to=2020-01-01T00:00:00Z").ok(), json!([]));
    assert_eq!(summary("interval=month&contract_ref=nonsense").ok(), json!([]));
}

fn what_is_wrong_with_a_query_is_said_at_once(database: &Database) {
    let (_server, client) = catalog::stage(database);
    let mut table = Table::default();
    for (path, field) in [
        ("/api/usage/event/filter?from=today", "/from invalid_format"),
        ("/api/usage/event/filter?to=2026-01-01T00:00:00", "/to invalid_format"),
        ("/api/usage/event/filter?from=2026-01-01T00:00:00+01:00", "/from invalid_format"),
        ("/api/usage/event/filter?pageSize=0", "/pageSize out_of_range"),
        ("/api/usage/event/filter?customer_ref=a&customer_ref=b", "/customer_ref duplicate"),
        ("/api/usage/summary", "/interval required"),
        ("/api/usage/summary?interval=week", "/interval invalid_value"),
        ("/api/usage/summary?interval=day&group_by=contract_ref", "/group_by invalid_value"),
        ("/api/usage/summary?interval=day&timezone=Berlin", "/timezone invalid_format"),
        ("/api/usage/report?format=pdf", "/format invalid_value"),
        ("/api/usage/report?from=1", "/from invalid_format"),
    ] {
        table.get(&client, path, invalid(field));
    }
    table.get(&client, "/api/documents/nonsense/usage.csv", refused(404, "document_not_found"));
    table.finish();
}

/// Downloads a report in every format and returns the files.
fn download(client: &Client, directory: &Path) -> Vec<PathBuf> {
    let file = |format: &str| {
        let file = directory.join(format!("report.{format}"));
        let headers = client.download(&format!("{REPORT}?format={format}"), &file);
        let disposition = headers["content-disposition"].to_str().expect("text");
        assert_eq!(disposition, format!("attachment; filename=\"usage-report.{format}\""));
        file
    };
    FORMATS.map(file).to_vec()
}

/// Compares the reports with the events of the list, in Python. Returns the number of rows.
fn compare(client: &Client, directory: &Path) -> usize {
    let mut expected = String::new();
    for page in 0.. {
        let events = client.get(&format!("{LIST}?pageSize=1000&pageNumber={page}")).ok();
        let events = events.as_array().expect("a list").clone();
        events.iter().for_each(|event| expected.push_str(&format!("{event}\n")));
        if events.len() < 1000 {
            break;
        }
    }
    let file = directory.join("expected");
    std::fs::write(&file, expected).expect("a file");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/reports.py");
    let rows = tools::succeed(tools::python("python").arg(script).arg(file).args(download(client, directory)));
    rows.trim().parse().expect("a number of rows")
}

fn a_report_has_hostile_keys_and_values_without_a_formula(database: &Database) {
    let (_server, client) = catalog::stage(database);
    catalog::make_contract(&client, &catalog::contract("acme"));
    client.post("/api/customers/edit/acme", &json!({"name": "=HYPERLINK(\"http://x\",\"Acme, Ltd\")"})).ok();
    let long = "k".repeat(128);
    let texts =
        ["=1+1", "+1", "-1", "@SUM(A1)", "'quoted", "a,b", "a\"b", "", " ", "ü✓𝄞", "_x0041_", "\u{ffff}", "＝1", "true", "1.50"];
    let numbers = ["-5", "-0", "1.50", "1e400", "1e-400", "123456789012345678901234567890.5", "0.1", "123456789012345"];
    let keys =
        ["=k", "+k", "-k", "@k", "'k", "k,\"k\"", "quantity", "event_ref", "additional_report_data.quantity", "ü✓𝄞", "_x0041_"];
    let mut events = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        let mut event = event(-1, "1");
        event["additional_report_data"] = json!({keys[n % keys.len()]: text, long.as_str(): text, "plain": null});
        events.push(event);
    }
    for (n, number) in numbers.iter().enumerate() {
        let mut event = event(-2, "12345678901234.000001");
        let number: Value = serde_json::from_str(number).expect("a number");
        event["additional_report_data"] = json!({keys[n % keys.len()]: number, "flag": n % 2 == 0, "number": number});
        events.push(event);
    }
    let results = client.post("/api/usage/event/batch", &json!({"events": events})).ok();
    assert!(results["results"].as_array().expect("results").iter().all(|result| result["event_ref"].is_string()), "{results}");
    let directory = tempfile::tempdir().expect("a directory");
    assert_eq!(compare(&client, directory.path()), texts.len() + numbers.len());
    let csv = std::fs::read_to_string(directory.path().join("report.csv")).expect("UTF-8");
    assert!(csv.starts_with(
        "event_ref,timestamp,customer_ref,customer_name,usage_product_ref,usage_product_name,quantity,document_numbers,'"
    ));
    for cell in
        ["'=1+1", "''quoted", "\"'=HYPERLINK(\"\"http://x\"\",\"\"Acme, Ltd\"\")\"", ",-5,", "additional_report_data.event_ref"]
    {
        assert!(csv.contains(cell), "{cell} isn't in {csv}");
    }
}

fn an_issued_documents_usage_stays_as_it_was_issued(database: &Database) {
    let (_server, client) = catalog::stage(database);
    catalog::make_contract(&client, &catalog::contract("acme"));
    let [kept, edited, deleted] = ["1", "20", "300"].map(|quantity| report(&client, &event(-1, quantity)));
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let document = text(&kept["related_document_ref"]);
    let usage = |document: &str| {
        let answer = client.get(&format!("/api/documents/{document}/usage.csv"));
        assert_eq!(answer.status, 200, "{}", answer.text);
        let rows = answer.text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let mut rows: Vec<(String, String, String)> =
            rows.map(|row| (row[0].clone(), row[6].clone(), row[7..].join(","))).collect();
        rows.sort();
        (answer, rows)
    };
    let of = |rows: &[(&Value, &str, &str)]| {
        let mut rows: Vec<_> = rows.iter().map(|(e, q, d)| (text(&e["event_ref"]), (*q).to_owned(), (*d).to_owned())).collect();
        rows.sort();
        rows
    };
    let issued = of(&[(&kept, "1", "UB-INV-1"), (&edited, "20", "UB-INV-1"), (&deleted, "300", "UB-INV-1")]);
    assert_eq!(usage(&document).1, issued, "a draft returns its current events");
    client.post_nothing(&format!("/api/documents/issue/{document}")).ok();

    let update = json!({"event_ref": edited["event_ref"], "quantity": 25});
    let debit = text(&client.post("/api/usage/event/update", &update).ok()["related_document_ref"]);
    assert_eq!(client.delete(&format!("/api/usage/event/{}", text(&deleted["event_ref"]))).status, 204);

    let (answer, rows) = usage(&document);
    assert_eq!(rows, issued, "an issued document returns the events that it bills");
    assert_eq!(answer.header("Content-Type"), "text/csv; charset=utf-8; header=present");
    assert_eq!(answer.header("Content-Disposition"), format!("attachment; filename=\"usage-{document}.csv\""));
    assert_eq!(usage(&debit).1, of(&[(&edited, "25", "\"UB-INV-1, UB-DBT-1\"")]));

    // None of these changes affects a total, so the event stays on the document.
    for change in [json!({"additional_report_data": {"note": "late"}}), json!({"timestamp": Day::today().plus_days(-5).noon()})] {
        let update = catalog::with(json!({"event_ref": kept["event_ref"]}), &change);
        assert_eq!(client.post("/api/usage/event/update", &update).ok()["related_document_numbers"], "UB-INV-1");
    }
    let (answer, rows) = usage(&document);
    assert_eq!(rows, issued, "each event once, as billed");
    assert!(!answer.text.contains("late"), "{}", answer.text);
    let listed = list(&client, &format!("document_ref={document}"));
    assert_eq!(refs(&listed), [text(&kept["event_ref"])], "the list has the document's current events");
}

fn twenty_thousand_events_are_read_back_by_another_program(database: &Database) {
    let (_server, client) = catalog::stage(database);
    catalog::make_contract(&client, &catalog::contract("acme"));
    for batch in 0..2 {
        let event = |n: usize| {
            let n = batch * BATCH + n;
            let day = Day::today().plus_days(-1 - i64::try_from(n * 7919 % 9).expect("a small number"));
            json!({
                "timestamp": format!("{day}T{:02}:{:02}:{:02}Z", n % 24, n % 60, n * 7 % 60),
                "customer_ref": "acme", "usage_product_ref": "api-calls", "quantity": format!("{}.{:06}", n % 1000, n),
                "additional_report_data": {"region": format!("region {}", n % 5), "tokens": n, "cached": n.is_multiple_of(2)},
            })
        };
        let events: Vec<Value> = (0..BATCH).map(event).collect();
        let results = client.post("/api/usage/event/batch", &json!({"events": events})).ok();
        assert!(results["results"].as_array().expect("results").iter().all(|result| result["event_ref"].is_string()));
    }
    let directory = tempfile::tempdir().expect("a directory");
    assert_eq!(compare(&client, directory.path()), 2 * BATCH);
}

fn the_command_line_writes_the_same_report(database: &Database) {
    let (_server, client) = catalog::stage(database);
    catalog::make_contract(&client, &catalog::contract("acme"));
    let events = [event(-1, "1"), event(-2, "2.50")].map(|event| report(&client, &event));
    for format in ["csv", "json"] {
        let served = client.get(&format!("{REPORT}?format={format}")).text;
        assert_eq!(binary::succeed(database, &["report", "--format", format]), served);
    }
    let from = events[0]["timestamp"].as_str().expect("text");
    let narrowed = binary::succeed(database, &["report", "--from", from, "--customer-ref", "acme"]);
    assert_eq!(narrowed, client.get(&format!("{REPORT}?from={from}")).text);
    assert_eq!(narrowed.lines().count(), 2);
    let directory: TempDir = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("usage.xlsx");
    let path = file.to_str().expect("UTF-8");
    assert_eq!(binary::succeed(database, &["report", "--format", "xlsx", "--output", path]), "");
    assert!(std::fs::read(&file).expect("a file").starts_with(b"PK"));
    assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 1, "no other file is left");
}

#[test]
fn who_reads_a_report_slowly_holds_no_view_of_the_database() {
    // More than the operating system buffers for a connection.
    const EVENTS: usize = 8_000;
    let database = Database::sqlite();
    let (server, client) = catalog::stage(&database);
    catalog::make_contract(&client, &catalog::contract("acme"));
    // A character that occurs nowhere else, because a chunked response can be split anywhere.
    let long = "~".repeat(2_000);
    for _ in 0..EVENTS / 2_000 {
        let event = catalog::with(catalog::event("acme", 1), &json!({"additional_report_data": {"long": long}}));
        client.post("/api/usage/event/batch", &json!({"events": vec![event; 2_000]})).ok();
    }
    let mut connection = TcpStream::connect(server.address()).expect("a connection");
    let bearer = client.header("Authorization");
    let asked = format!("GET {REPORT}?format=csv HTTP/1.0\r\nHost: x\r\nVersion: V0\r\nAuthorization: {bearer}\r\n\r\n");
    connection.write_all(asked.as_bytes()).expect("the server reads");
    let directory = TempDir::new().expect("a directory");
    let mut command = binary::command(directory.path());
    command.args(["report", "--format", "csv"]).env("USAGE_BILLING_DATABASE_URL", database.url()).stdout(Stdio::piped());
    let mut command = command.spawn().expect("the binary starts");
    let mut printed = command.stdout.take().expect("piped output");
    let mut first = [0; 100];
    connection.read_exact(&mut first).expect("the first bytes");
    let mut head = [0; 100];
    printed.read_exact(&mut head).expect("the first bytes");

    let log = database.url().strip_prefix("sqlite://").map(|file| PathBuf::from(format!("{file}-wal"))).expect("a file");
    let began = Instant::now();
    loop {
        database.execute("PRAGMA busy_timeout = 1000; PRAGMA wal_checkpoint(TRUNCATE)");
        if std::fs::metadata(&log).expect("the log").len() == 0 {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "a reader holds a view");
    }
    report(&client, &catalog::event("acme", 7));

    let mut rest = String::new();
    connection.read_to_string(&mut rest).expect("the complete rest");
    assert_eq!(rest.matches('~').count(), EVENTS * long.len());
    let mut rest = String::new();
    printed.read_to_string(&mut rest).expect("the rest");
    assert!(command.wait().expect("our own child process").success());
    assert_eq!(rest.matches(&long).count(), EVENTS);
}
