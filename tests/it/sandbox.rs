//! A sandbox: a server whose billing clock is moved by requests (`docs/operations.md`, "Sandbox").

use std::collections::BTreeSet;
use std::time::Duration;

use acceptance::{Client, Database, Request, Scene, Server, binary, books, catalog, on_both_databases, tour};
use serde_json::{Value, json};

/// The contract of the worked example: 15 January to 30 April, a fee of 100.00 and calls at 0.10, after use.
fn contract(scene: &Scene) -> String {
    let calls = catalog::calls(&json!({"model": "PER_UNIT", "unit_price": "0.10"}));
    scene.pricing("plan", &[catalog::fixed("fee", "100.00"), calls]);
    scene.sell(&[json!({
        "product_pricing_ref": "plan", "billing_start_date": "2026-01-15", "billing_end_date": "2026-04-30",
        "payment_time": "AFTER_USE", "net_terms": 14,
    })])
}

/// Returns number, total, issue date and due date of each document, sorted.
fn documents(client: &Client) -> Vec<String> {
    let row = |document: &Value| books::fields(document, ["document_number", "total", "issue_date", "due_date"]).join(" ");
    let mut rows: Vec<String> = catalog::documents(client).iter().map(row).collect();
    rows.sort();
    rows
}

/// Returns type, document number and day of each notification of a type.
fn notified(client: &Client, kind: &str) -> Vec<String> {
    let all = books::notifications(client, "pageSize=1000");
    let of_kind = all.iter().filter(|one| one["type"] == kind);
    of_kind
        .map(|one| {
            format!("{} {}", one["data"]["document_number"].as_str().unwrap_or("-"), one["timestamp"].as_str().unwrap_or("-"))
        })
        .collect()
}

/// Returns the number of an event's document.
fn number_of(scene: &Scene, event: &Value) -> Value {
    books::document(&scene.client, &event["related_document_ref"])["document_number"].clone()
}

/// Returns the output of a server that must not start.
fn refused_start(database: &Database, flags: &[&str]) -> String {
    let arguments: Vec<&str> = ["serve"].into_iter().chain(flags.iter().copied()).collect();
    let environment = [("USAGE_BILLING_DATABASE_URL", database.url()), ("USAGE_BILLING_LISTEN", "127.0.0.1:0")];
    let finished = binary::run(&arguments, &environment);
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    finished.stderr
}

fn counts(advanced: &Value) -> [String; 4] {
    books::fields(advanced, ["reached", "issued", "voided", "now"])
}

fn an_advance_issues_and_notifies_at_the_instants_of_a_live_server(database: &Database) {
    let scene = Scene::begin_at(database, "2026-01-15T00:00:00Z");
    contract(&scene);
    let early = scene.try_calls("2026-01-20", 150);
    assert_eq!((early.status, early.text_of("code")), (422, "timestamp_in_future".to_owned()));
    let advanced = scene.advance("2026-01-20T12:00:00Z");
    assert_eq!(counts(&advanced), ["true", "0", "0", "2026-01-20T12:00:00Z"]);
    let event = scene.calls("2026-01-20", 150);
    assert_eq!(number_of(&scene, &event), "UB-INV-1");
    assert_eq!(scene.client.get("/api/clock").ok(), json!({"now": "2026-01-20T12:00:00Z", "next": "2026-02-01T02:00:00Z"}));

    // 100.00 × 17 / 31 = 54.84, and 150 × 0.10 = 15.00.
    assert_eq!(counts(&scene.advance("2026-03-01T00:00:00Z")), ["true", "1", "0", "2026-03-01T00:00:00Z"]);
    assert_eq!(counts(&scene.advance("2026-03-01T02:00:00Z")), ["true", "1", "0", "2026-03-01T02:00:00Z"]);
    let late = scene.calls("2026-01-20", 50);
    assert_eq!(number_of(&scene, &late), "UB-DBT-1");
    let last = json!({"to": "2026-05-02T00:00:00Z"});
    let advanced = scene.client.post("/api/clock/advance", &last).ok();
    assert_eq!(counts(&advanced), ["true", "3", "0", "2026-05-02T00:00:00Z"]);
    assert_eq!(
        documents(&scene.client),
        [
            "UB-DBT-1 5.00 2026-03-02 2026-03-16",
            "UB-INV-1 69.84 2026-02-01 2026-02-15",
            "UB-INV-2 100.00 2026-03-01 2026-03-15",
            "UB-INV-3 100.00 2026-04-01 2026-04-15",
            "UB-INV-4 100.00 2026-05-01 2026-05-15",
        ]
    );
    assert_eq!(
        notified(&scene.client, "document.overdue"),
        [
            "UB-INV-1 2026-02-16T00:00:00Z",
            "UB-INV-2 2026-03-16T00:00:00Z",
            "UB-DBT-1 2026-03-17T00:00:00Z",
            "UB-INV-3 2026-04-16T00:00:00Z",
        ]
    );
    assert_eq!(notified(&scene.client, "contract.ending"), ["- 2026-03-31T00:00:00Z"]);

    let before = books::notifications(&scene.client, "pageSize=1000").len();
    let again = scene.client.post("/api/clock/advance", &last).ok();
    assert_eq!(counts(&again), ["true", "0", "0", "2026-05-02T00:00:00Z"]);
    assert_eq!((again["notifications"].as_u64(), books::notifications(&scene.client, "pageSize=1000").len()), (Some(0), before));
}

fn an_advance_without_runs_lets_time_pass_and_the_next_run_is_late(database: &Database) {
    let scene = Scene::begin_at(database, "2026-01-15T00:00:00Z");
    contract(&scene);
    scene.go_to_instant("2026-03-10T00:00:00Z");
    assert_eq!(documents(&scene.client), Vec::<String>::new());
    assert_eq!(books::run(&scene.client).len(), 2);
    assert_eq!(documents(&scene.client), ["UB-INV-1 54.84 2026-03-10 2026-03-24", "UB-INV-2 100.00 2026-03-10 2026-03-24"]);
}

fn each_wrong_instant_is_refused_and_moves_nothing(database: &Database) {
    let scene = Scene::begin_at(database, "2026-01-15T00:00:00Z");
    let advance = |body: &Value| {
        let answer = scene.client.post("/api/clock/advance", body);
        (answer.status, answer.body.to_string())
    };
    for (body, code) in [
        (json!({"to": "2026-01-14T23:59:59.999999Z"}), "clock_only_forward"),
        (json!({"to": "2101-01-01T00:00:00Z"}), "out_of_range"),
        (json!({"to": "1999-12-31T23:59:59Z"}), "out_of_range"),
        (json!({"to": "tomorrow"}), "invalid_format"),
        (json!({}), "required"),
        (json!({"to": "2026-01-16T00:00:00Z", "run": "yes"}), "wrong_type"),
    ] {
        let (status, problem) = advance(&body);
        assert!(status == 422 && problem.contains(code), "{body}: {status} {problem}");
    }
    let clock = scene.client.get("/api/clock");
    assert_eq!(clock.header("Sandbox"), "2026-01-15T00:00:00Z");
    assert_eq!(clock.ok()["now"], "2026-01-15T00:00:00Z");
    let reader = Client::key(scene.server(), &scene.admin().generate_key(&json!({"scopes": ["read"]})));
    assert_eq!(reader.get("/api/clock").status, 200);
    assert_eq!(reader.post("/api/clock/advance", &json!({"to": "2026-01-16T00:00:00Z"})).status, 403);
}

fn a_live_server_has_no_such_clock(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    for request in [Request::get("/api/clock"), Request::post("/api/clock/advance", r#"{"to":"2099-01-01T00:00:00Z"}"#)] {
        let answer = client.send(&request);
        assert_eq!((answer.status, answer.text_of("code")), (409, "not_a_sandbox".to_owned()));
        assert!(answer.headers.get("Sandbox").is_none());
    }
}

fn a_database_stays_what_it_is(database: &Database) {
    drop(Scene::begin_at(database, "2026-01-15T00:00:00Z"));
    let refused = refused_start(database, &[]);
    assert!(refused.contains("the database is a sandbox, whose clock shows 2026-01-15T00:00:00Z"), "{refused}");
    let refused = refused_start(database, &["--sandbox", "--now", "2026-02-01T00:00:00Z"]);
    assert!(refused.contains("--now is for a new sandbox"), "{refused}");
    let server = Server::start_with(database, &["--sandbox"]);
    assert_eq!(Client::new_key(&server).get("/api/clock").ok()["now"], "2026-01-15T00:00:00Z");
}

fn a_live_database_is_never_served_as_a_sandbox(database: &Database) {
    drop(Server::start(database));
    let refused = refused_start(database, &["--sandbox"]);
    assert!(refused.contains("the database is live"), "{refused}");
    drop(Server::start(database));
}

fn a_sandbox_has_one_server(database: &Database) {
    let _scene = Scene::begin(database, "2026-01-15");
    let arguments = ["serve", "--sandbox"];
    let environment = [("USAGE_BILLING_DATABASE_URL", database.url()), ("USAGE_BILLING_LISTEN", "127.0.0.1:0")];
    let second = binary::run(&arguments, &environment);
    assert_eq!(second.code, Some(if database.is_sqlite() { 2 } else { 1 }), "{}", second.stderr);
    assert!(second.stderr.contains("another server"), "{}", second.stderr);
}

#[test]
fn postgres_ends_a_server_whose_lock_is_lost() {
    let database = Database::postgres();
    let mut server = Server::start_with(&database, &["--sandbox", "--now", "2026-01-15T00:00:00Z"]);
    let ended = database.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    );
    assert_eq!(ended, ["true"]);
    let status = server.wait_for_exit(Duration::from_secs(60)).expect("the server ends");
    assert!(!status.success() && server.stderr().contains("lock"), "{status}: {}", server.stderr());
}

/// A live database with a contract, an event, and secrets: of an administrator, a key and a webhook endpoint. Returns the invoice and the
/// secret of the endpoint.
fn live(database: &Database) -> (Value, Value) {
    let (server, client) = catalog::stage(database);
    let contract_ref = catalog::make_contract(&client, &catalog::contract(catalog::ACME));
    books::report(&client, &catalog::event(catalog::ACME, 150));
    let endpoint = client.post("/api/webhooks/endpoints/", &json!({"url": "https://hooks.example.com/billing"})).ok();
    let invoice = catalog::current_invoice(&client, &contract_ref);
    drop(server);
    (invoice, endpoint["secret"].clone())
}

/// Logs in with what the command printed, and checks the copy: the same invoice, no key and no endpoint, and the end of the month.
fn check_copy(copy: &Database, printed: &str, invoice: &Value) {
    let line = printed.lines().find(|line| line.starts_with("Organization ")).unwrap_or_else(|| panic!("{printed}"));
    let (_, access) = line.split_once("log in as ").expect("an administrator");
    let (email, password) = access.split_once(" with the password ").expect("a password");
    let server = Server::start_with(copy, &["--sandbox"]);
    let admin = Client::log_in_admin(&server, email, password);
    assert_eq!(admin.get("/auth/keys/list").ok(), json!([]));
    assert_eq!(admin.get("/api/webhooks/endpoints/filter").ok(), json!([]));
    assert_eq!(admin.get("/api/administrators/filter").ok().as_array().map(Vec::len), Some(1));
    let client = Client::key(&server, &admin.generate_key(&json!({})));
    assert_eq!(books::document(&client, &invoice["document_ref"]), *invoice);
    let next = client.get("/api/clock").ok()["next"].clone();
    assert_eq!(client.post("/api/clock/advance", &json!({"to": next})).ok()["issued"], 1, "{next}");
    assert_eq!(books::document(&client, &invoice["document_ref"])["total"], invoice["total"]);
}

#[test]
fn a_copy_of_a_live_file_is_a_sandbox_without_its_secrets() {
    let database = Database::sqlite();
    let (invoice, secret) = live(&database);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("copy.sqlite3");
    let printed = binary::succeed(&database, &["backup", file.to_str().expect("UTF-8"), "--sandbox"]);
    let content = std::fs::read(&file).expect("the copy");
    let has = |text: &str| content.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has(catalog::ACME), "the copy has the customers");
    assert!(!has(secret.as_str().expect("a secret")), "the copy has no secret");
    check_copy(&Database::at(&file), &printed, &invoice);
    let refused = refused_start(&Database::at(&file), &[]);
    assert!(refused.contains("the database is a sandbox"), "{refused}");
    drop(Server::start(&database));
}

#[test]
fn a_restored_postgres_copy_becomes_a_sandbox_by_its_name() {
    let database = Database::one_postgres();
    let (invoice, _) = live(&database);
    let copy = database.copied();
    let name = copy.url().rsplit('/').next().expect("a name").split('?').next().expect("a name").to_owned();
    let command = |name: &str| binary::run(&["sandbox", "--confirm", name], &[("USAGE_BILLING_DATABASE_URL", copy.url())]);
    let wrong = command("other");
    assert!(wrong.code == Some(2) && wrong.stderr.contains("--confirm must be the name"), "{}", wrong.stderr);
    let made = command(&name);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    check_copy(&copy, &made.stdout, &invoice);
    let again = command(&name);
    assert!(again.code == Some(1) && again.stderr.contains("sandbox already"), "{:?} {}", again.code, again.stderr);
}

/// Fields that are random, or that depend on the machine.
const RANDOM: [&str; 9] =
    ["api_key", "endpoint_url", "ms", "one_time_password", "password", "recovery_codes", "secret", "uri", "url"];

/// Returns a value without what differs between two servers: references become their ranks, instants become days, and random fields
/// are left out.
fn comparable(value: &Value, references: &mut Vec<String>) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| !RANDOM.contains(&name.as_str()));
            kept.map(|(name, value)| (name.clone(), comparable(value, references))).collect()
        }
        Value::Array(values) => values.iter().map(|value| comparable(value, references)).collect(),
        Value::String(text) => {
            let (kind, reference) = text.split_once(':').unwrap_or(("", text));
            if is_reference(reference) {
                let rank = references.iter().position(|known| known == reference).unwrap_or_else(|| {
                    references.push(reference.to_owned());
                    references.len() - 1
                });
                json!(format!("{kind}:{rank}"))
            } else if text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T') {
                json!(text[..10])
            } else {
                value.clone()
            }
        }
        other => other.clone(),
    }
}

/// Returns whether a text is a UUID of version 7.
fn is_reference(text: &str) -> bool {
    text.len() == 36 && text.as_bytes()[14] == b'7' && text.matches('-').count() == 4
}

fn a_sandbox_answers_as_a_live_server_at_that_instant(database: &Database, other: &Database) {
    let (sandbox, clock) = tour::begin(database, &[]);
    let live = Server::start_on(other, &clock);
    // The first start of a sandbox makes this key.
    Client::admin(&live).generate_key(&json!({"name": "sandbox"}));
    let [in_sandbox, on_live] = [&sandbox, &live].map(|server| {
        let mut references = Vec::new();
        let taken = tour::take(server).exchanges.into_iter();
        let of = |exchange: tour::Exchange| (exchange.operation, comparable(&exchange.answer.body, &mut references));
        taken.map(of).collect::<Vec<_>>()
    });
    let mut differences = Vec::new();
    for ((operation, body), (live_operation, live_body)) in in_sandbox.iter().zip(&on_live) {
        assert_eq!(operation, live_operation);
        // Tokens are random. Where the clock stands still, entries of a statement are ordered by kind.
        if body != live_body && !["get_statement", "log_in"].contains(operation) {
            differences.push(format!("{operation}:\n{body}\n{live_body}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(in_sandbox.len(), on_live.len() + 2, "the clock's operations");
}

#[test]
fn sqlite_answers_in_a_sandbox_as_on_a_live_server_at_that_instant() {
    a_sandbox_answers_as_a_live_server_at_that_instant(&Database::sqlite(), &Database::sqlite());
}

/// What shows the machine's clock in answers: log-ins, keys, sessions, second factors and deliveries.
const OF_THE_MACHINE: [&str; 15] = [
    "get_session.created_at",
    "get_session.expires_at",
    "get_webhook_endpoint.last_delivered_at",
    "invite_administrator.one_time_until",
    "list_sessions.created_at",
    "list_sessions.expires_at",
    "list_sessions.last_seen_at",
    "list_webhook_deliveries.attempts.at",
    "list_webhook_deliveries.created_at",
    "list_webhook_deliveries.updated_at",
    "list_webhook_endpoints.last_delivered_at",
    "reset_administrator.one_time_until",
    "rotate_key.rotated_expires_at",
    "rotate_webhook_secret.previous_expires_at",
    "test_webhook_endpoint.at",
];
/// The columns that the machine's clock fills.
const COLUMNS_OF_THE_MACHINE: [&str; 17] = [
    "administrators.one_time_until",
    "api_keys.last_used_at",
    "api_keys.updated_at",
    "audit_log.after",
    "audit_log.before",
    "notification_heads.lease_until",
    "revoked_tokens.expires_at",
    "sessions.confirmed_at",
    "sessions.created_at",
    "sessions.last_seen_at",
    "signing_secrets.created_at",
    "webhook_deliveries.attempts",
    "webhook_deliveries.created_at",
    "webhook_deliveries.updated_at",
    "webhook_endpoints.last_delivered_at",
    "webhook_secrets.created_at",
    "webhook_secrets.expires_at",
];

/// Adds the fields whose text begins with a year.
fn fields_of(value: &Value, year: &str, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| fields_of(value, year, &format!("{path}.{name}"), found)),
        Value::Array(values) => values.iter().for_each(|value| fields_of(value, year, path, found)),
        Value::String(text) if text.starts_with(year) => drop(found.insert(path.to_owned())),
        _ => {}
    }
}

/// Returns the columns with an instant of 1999, or with a text that has one.
fn columns_of_1999(database: &Database) -> BTreeSet<String> {
    let columns = database.ask(
        "SELECT tables.name || '.' || columns.name FROM sqlite_schema AS tables \
         JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'",
    );
    let (first, end) = (915_148_800_000_000_i64, 946_684_800_000_000_i64);
    let has_1999 = |column: &String| {
        let Some((table, name)) = column.split_once('.') else { return false };
        let query = format!(
            "SELECT count(*) FROM {table} WHERE (typeof({name}) = 'integer' AND {name} BETWEEN {first} AND {end}) \
             OR (typeof({name}) IN ('text', 'blob') AND instr({name}, '1999-'))"
        );
        database.ask(&query) != ["0"]
    };
    columns.into_iter().filter(has_1999).collect()
}

#[test]
fn the_machines_clock_shows_at_log_ins_and_deliveries_alone() {
    let database = Database::sqlite();
    let machine = "1999-07-01T12:00:00Z";
    let (server, clock) = tour::begin(&database, &[]);
    clock.set(machine);
    let taken = tour::take_at(&server, machine);
    let mut shown = BTreeSet::new();
    for exchange in &taken.exchanges {
        fields_of(&exchange.answer.body, "1999-", exchange.operation, &mut shown);
        assert!(exchange.answer.body.is_object() || exchange.answer.body.is_array() || !exchange.answer.text.contains("1999-"));
    }
    assert_eq!(shown.iter().map(String::as_str).collect::<Vec<_>>(), OF_THE_MACHINE);
    drop(server);
    let columns = columns_of_1999(&database);
    assert_eq!(columns.iter().map(String::as_str).collect::<Vec<_>>(), COLUMNS_OF_THE_MACHINE);
}

on_both_databases!(
    an_advance_issues_and_notifies_at_the_instants_of_a_live_server,
    an_advance_without_runs_lets_time_pass_and_the_next_run_is_late,
    each_wrong_instant_is_refused_and_moves_nothing,
    a_live_server_has_no_such_clock,
    a_database_stays_what_it_is,
    a_live_database_is_never_served_as_a_sandbox,
    a_sandbox_has_one_server,
);
