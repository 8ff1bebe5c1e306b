//! Processes that render PDF files: what a file costs, it costs there. A process that ends loses one request and no document.

use std::thread;
use std::time::Duration;

use acceptance::client::Request;
use acceptance::logos::{arcs, masks};
use acceptance::when::Day;
use acceptance::{Answer, Client, Database, Process, Server, books, catalog, on_sqlite};
use serde_json::json;

on_sqlite!(
    a_logo_that_is_expensive_to_print_is_rejected,
    a_process_that_is_killed_loses_one_request_and_no_document,
    a_file_that_is_not_finished_in_time_is_given_up,
    a_process_has_limits_and_nothing_of_its_server,
    a_process_ends_with_its_server,
    a_statement_of_many_rows_is_a_table_only,
    texts_that_never_change_are_sent_compressed,
);

/// Starts a server with the draft of a month that ended ten days ago. Returns the path of its file.
fn start(database: &Database, flags: &[&str]) -> (Server, Client, String) {
    let server = Server::start_with(database, flags);
    let client = Client::new_key(&server);
    catalog::make(&client);
    catalog::sell(&client, &[catalog::ended(catalog::API_PLAN)]);
    let event = catalog::event_on(catalog::ACME, Day::today().plus_days(-20), 1500);
    let draft = books::report(&client, &event)["related_document_ref"].clone();
    let path = format!("/api/documents/{}/pdf", draft.as_str().expect("a reference"));
    (server, client, path)
}

#[track_caller]
fn assert_is_file(answer: &Answer) {
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(answer.bytes.starts_with(b"%PDF-1.7"));
}

/// Requests a file in another thread, while its process is stopped.
fn requested(client: &Client, path: &str, process: Process, meanwhile: impl FnOnce()) -> Answer {
    process.signal("-STOP");
    let (client, path) = (client.with_own_connections(), path.to_owned());
    let request = thread::spawn(move || client.get(&path));
    meanwhile();
    request.join().expect("an answer")
}

/// Returns the number of files that were not created for a reason.
fn failures(server: &Server, reason: &str) -> String {
    let metrics = Client::anonymous(server).get("/metrics").text;
    let metric = format!("usage_billing_failed_prints_total{{reason=\"{reason}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&metric)).expect("the metric").to_owned()
}

fn a_logo_that_is_expensive_to_print_is_rejected(database: &Database) {
    let (server, client, path) = start(database, &[]);
    let entity = |logo: &str| json!({"entity_ref": "other", "name": "Other", "number_prefix": "OTH", "logo": logo});
    let expensive = masks(25);
    assert!(expensive.len() < 8000, "{}", expensive.len());
    let refused = client.post("/api/entities/", &entity(&expensive));
    assert_eq!((refused.status, refused.text_of("code").as_str()), (422, "logo_too_complex"), "{}", refused.text);
    let error = &refused.body["errors"][0];
    assert_eq!((&error["pointer"], &error["code"]), (&json!("/logo"), &json!("logo_too_complex")), "{error}");
    client.post("/api/entities/", &entity(&masks(2))).ok();

    let before = client.get("/api/entities/other").ok();
    let edit = |logo: &str| client.post("/api/entities/edit/other", &json!({"logo": logo}));
    let refused = edit(&expensive);
    assert_eq!((refused.status, refused.text_of("code").as_str()), (422, "logo_too_complex"), "{}", refused.text);
    let preview = json!({"path": "/api/entities/edit/other", "body": {"logo": expensive}});
    let refused = client.post("/api/dry_run", &preview);
    assert_eq!((refused.status, refused.text_of("code").as_str()), (422, "logo_too_complex"), "{}", refused.text);
    assert_eq!(client.get("/api/entities/other").ok(), before);
    edit(&arcs(20)).ok();

    // The server is as before, and keeps no process for logos.
    assert_is_file(&client.get(&path));
    assert_eq!(Process::started_by(server.id()).len(), 1);
}

fn a_process_that_is_killed_loses_one_request_and_no_document(database: &Database) {
    let (server, client, path) = start(database, &[]);
    assert!(Process::started_by(server.id()).is_empty(), "no process before the first file");
    assert_is_file(&client.get(&path));
    let process = Process::only_one_of(server.id());
    assert_is_file(&client.get(&path));
    assert_eq!(Process::only_one_of(server.id()), process, "one process for all files");

    // A process that ends while it has nothing to do loses nothing.
    process.signal("-KILL");
    process.wait_for_end();
    assert_is_file(&client.get(&path));
    let process = Process::only_one_of(server.id());

    let document = path.trim_start_matches("/api/documents/").trim_end_matches("/pdf");
    books::issue(&client, &json!(document)).ok();
    let lost = requested(&client, &path, process, || {
        // The request waits for a process that is stopped.
        thread::sleep(Duration::from_millis(300));
        process.signal("-KILL");
    });
    assert_eq!((lost.status, lost.text_of("code").as_str()), (503, "print_failed"), "{}", lost.text);
    assert!(lost.text_of("detail").contains("ended") && !lost.header("Retry-After").is_empty(), "{}", lost.text);
    assert_eq!(failures(&server, "process_ended"), "1");
    let file = client.get(&path);
    assert_is_file(&file);
    assert_ne!(Process::only_one_of(server.id()), process);
    assert_eq!(client.get(&path).bytes, file.bytes, "the file is stored");
}

fn a_file_that_is_not_finished_in_time_is_given_up(database: &Database) {
    let (server, client, path) = start(database, &["--print-seconds", "20"]);
    assert_is_file(&client.get(&path));
    let process = Process::only_one_of(server.id());
    let late = requested(&client, &path, process, || {});
    assert_eq!((late.status, late.text_of("code").as_str()), (503, "print_failed"), "{}", late.text);
    assert!(late.text_of("detail").contains("longer than 20 s"), "{}", late.text);
    assert_eq!(failures(&server, "timed_out"), "1");
    process.wait_for_end();
    assert!(Process::started_by(server.id()).is_empty());
}

fn a_process_has_limits_and_nothing_of_its_server(database: &Database) {
    let (server, client, path) = start(database, &[]);
    assert_is_file(&client.get(&path));
    let process = Process::only_one_of(server.id());
    let read = |file: &str| process.read(file).expect(file);
    let environment = read("environ");
    let names: Vec<&str> = environment.split('\0').filter_map(|variable| Some(variable.split_once('=')?.0)).collect();
    assert_eq!(names, ["MIMALLOC_ARENA_RESERVE", "RAYON_NUM_THREADS"]);
    let files = process.open_files();
    // The test can inherit other pipes.
    assert!(files.iter().all(|file| file.starts_with("pipe:") || file == "/dev/null"), "{files:?}");
    assert_eq!(read("oom_score_adj").trim(), "1000");
    let status = read("status");
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).expect(name).trim().to_owned();
    assert_eq!(field("NoNewPrivs:"), "1");
    let size: u64 = field("VmSize:").trim_end_matches(" kB").parse().expect("a size");
    let limits = read("limits");
    let limit = |name: &str| -> u64 {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        line.split_whitespace().next().expect("a limit").parse().expect("a number")
    };
    assert_eq!(limit("Max core file size"), 0);
    // The limit is 512 MiB besides what the process had at its start.
    let address_space = limit("Max address space") / 1024;
    assert!(address_space <= size + 512 * 1024 && address_space > size / 2, "{address_space} {size}");
    assert_eq!(process.nice(), (Process::with_id(server.id()).nice() + 10).min(19));
}

fn a_process_ends_with_its_server(database: &Database) {
    let (server, client, path) = start(database, &[]);
    assert_is_file(&client.get(&path));
    let process = Process::only_one_of(server.id());
    server.kill_9();
    process.wait_for_end();
}

fn a_statement_of_many_rows_is_a_table_only(database: &Database) {
    let (server, client, path) = start(database, &[]);
    let _server = server.without_verification();
    let document = path.trim_start_matches("/api/documents/").trim_end_matches("/pdf");
    books::issue(&client, &json!(document)).ok();
    books::pay(&client, &json!(document), &json!({"amount": "0.01"})).ok();
    let rows = || client.get("/api/customers/statement/acme?format=csv").text.lines().count();
    assert_is_file(&client.get("/api/customers/statement/acme?format=pdf"));
    // Thousands of payments over HTTP would take a minute.
    let columns =
        database.ask("SELECT group_concat(name, ',') FROM pragma_table_info('payments') WHERE name <> 'payment_id'").concat();
    database.execute(&format!(
        "WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 2000)
         INSERT INTO payments (payment_id,{columns}) SELECT randomblob(16),{columns} FROM payments, counted"
    ));
    assert!(rows() > 2000, "{}", rows());
    let refused = client.get("/api/customers/statement/acme?format=pdf");
    assert_eq!((refused.status, refused.text_of("code").as_str()), (422, "too_many_rows"), "{}", refused.text);
    assert!(refused.text_of("detail").contains("csv"), "{}", refused.text);
    let tomorrow = Day::today().plus_days(1);
    assert_is_file(&client.get(&format!("/api/customers/statement/acme?format=pdf&from={tomorrow}")));
}

fn texts_that_never_change_are_sent_compressed(database: &Database) {
    let server = Server::start(database);
    let client = Client::anonymous(&server);
    for path in ["/openapi.json", "/openapi.json?numbers=string", "/docs", "/docs/schemas", "/docs/operations/record_event"] {
        let plain = client.get(path);
        let compressed = client.send(&Request::get(path).with("Accept-Encoding", "gzip, br"));
        assert_eq!(
            (plain.status, plain.header("Content-Encoding"), plain.header("Vary")),
            (200, "", "accept-encoding"),
            "{path}"
        );
        assert_eq!((compressed.status, compressed.header("Content-Encoding")), (200, "gzip"), "{path}");
        assert!(compressed.bytes.len() * 3 < plain.bytes.len(), "{path}: {} {}", compressed.bytes.len(), plain.bytes.len());
        assert_eq!(compressed.header("Content-Length"), compressed.bytes.len().to_string(), "{path}");
        assert_eq!(compressed.header("Content-Type"), plain.header("Content-Type"), "{path}");
    }
    let wanted = Request::get("/openapi.json").with("Accept-Encoding", "gzip").with("Prefer", "numbers=string");
    assert_eq!(client.send(&wanted).status, 200);
}
