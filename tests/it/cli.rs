//! The command line: invalid settings, the commands other than `serve`, and the output of a first start.

use std::net::TcpListener;
use std::process::Command;

use acceptance::documentation::sample_calls;
use acceptance::server::ADMIN_PASSWORD;
use acceptance::when::Day;
use acceptance::{Client, Clock, Database, Server, binary, catalog, on_both_databases};
use serde_json::{Value, json};

#[test]
fn a_file_has_one_server_at_a_time() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let port = acceptance::server::free_port();
    let environment = [("USAGE_BILLING_DATABASE_URL", database.url()), ("USAGE_BILLING_LISTEN", &format!("127.0.0.1:{port}"))];
    let second = binary::run(&["serve"], &environment);
    assert_eq!(second.code, Some(2), "{}", second.stderr);
    assert!(is_one_sentence(&second.stderr) && second.stderr.contains("another server uses this file"), "{}", second.stderr);
    // Commands that work on the file next to a running server still work.
    for command in [&["migrate"][..], &["verify"], &["report"], &["admin", "list"], &["organization", "create", "Other"]] {
        binary::succeed(&database, command);
    }
    // A killed server leaves no lock behind.
    server.kill_9();
    Server::start(&database);
}

/// Under libfaketime, an allocator that starts with the first allocation of any library reads a clock that is not ready.
#[test]
fn the_binary_starts_under_a_library_that_replaces_its_clock() {
    let clock = Clock::at("2027-01-01T00:00:00Z");
    let environment = clock.environment();
    let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let outcome = binary::run(&["--version"], &environment);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
}

on_both_databases!(
    a_schema_is_brought_up_to_date_once,
    a_database_of_a_development_version_is_rejected_by_every_command,
    a_port_in_use_ends_the_start_before_anything_is_made,
    an_organization_or_an_administrator_is_made_once,
);

type Arguments<'a> = &'a [&'a str];
type Environment<'a> = &'a [(&'a str, &'a str)];

/// Returns whether the output is one sentence, apart from the pointer to the help.
fn is_one_sentence(stderr: &str) -> bool {
    let mut lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.retain(|line| !line.starts_with("For more information, try"));
    lines.len() == 1 && !stderr.contains("panicked") && !stderr.contains("RUST_BACKTRACE")
}

#[test]
fn a_wrong_setting_ends_with_code_2_and_one_sentence() {
    let database = Database::sqlite();
    let url = database.url();
    let rows: [(Arguments<'_>, Environment<'_>); 29] = [
        (&["serve", "--listen", "nonsense"], &[]),
        (&["serve", "--listen", "127.0.0.1"], &[]),
        (&["serve", "--listen", "127.0.0.1:99999"], &[]),
        (&["serve", "--listen", "192.0.2.1:8080"], &[]),
        (&["serve"], &[("USAGE_BILLING_LISTEN", "localhost:8080")]),
        (&["serve", "--run-every-seconds=-1"], &[]),
        (&["serve", "--run-every-seconds", "often"], &[]),
        (&["serve", "--token-lifetime-seconds", "299"], &[]),
        (&["serve", "--token-lifetime-seconds", "86401"], &[]),
        (&["serve", "--workers", "0"], &[]),
        (&["serve", "--database-connections", "1"], &[]),
        (&["serve", "--trusted-proxies", "proxy.example.com"], &[]),
        (&["serve", "--public-url", "billing.example.com"], &[]),
        (&["serve", "--public-url", "https://billing.example.com/path"], &[]),
        (&["serve", "--jwt-secrets", "topsecret"], &[]),
        (&["serve"], &[("USAGE_BILLING_JWT_SECRETS", "long enough to be taken as a secret,topsecret")]),
        (&["serve"], &[("USAGE_BILLING_ADMIN_PASSWORD", "topsecret")]),
        (&["serve", "--admin-password", &"topsecret".repeat(9)], &[]),
        (&["serve", "--admin-email", ""], &[]),
        (&["serve"], &[("USAGE_BILLING_RUN_EVERY_SECONDS", "")]),
        (&["admin", "create", "--email", "a@example.com", "--organization", "nobody"], &[]),
        (&["admin", "create", "--email", "a\nb", "--organization", "default"], &[]),
        (&["organization", "create", ""], &[]),
        (&["serve"], &[("USAGE_BILLING_SAMPLE", "perhaps")]),
        (&["serve", "--admin-email", "administrator"], &[]),
        (&["report"], &[]),
        (&["report", "--format", "pdf"], &[]),
        (&["report", "--from", "2026-01-01"], &[]),
        (&["report", "--customer-ref", "a b"], &[]),
    ];
    let mut wrong = Vec::new();
    for (arguments, environment) in rows {
        let environment: Vec<(&str, &str)> =
            [("USAGE_BILLING_DATABASE_URL", url), ("RUST_LOG", "error")].iter().chain(environment).copied().collect();
        let finished = binary::run(arguments, &environment);
        let silent = finished.stdout.is_empty() && finished.made().is_empty() && !finished.stderr.contains("topsecret");
        if finished.code != Some(2) || !is_one_sentence(&finished.stderr) || !silent {
            wrong.push(format!("{arguments:?} {environment:?}: {finished:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let server = Server::start(&database);
    assert!(server.stdout().contains("Console: "), "no rejected start created anything: {}", server.stdout());
}

#[test]
fn a_number_out_of_range_is_told_the_range_and_the_help_says_it_too() {
    let ranges = [
        ("--database-connections", "2", "500"),
        ("--token-lifetime-seconds", "300", "86400"),
        ("--workers", "1", "256"),
        ("--event-cache", "0", "100000"),
        ("--keep-alive-seconds", "1", "3600"),
        ("--run-every-seconds", "0", "86400"),
        ("--notification-days", "7", "365"),
        ("--login-failures", "1", "10000"),
        ("--logins-per-minute", "1", "1000000"),
    ];
    let help = binary::run(&["serve", "--help"], &[]).stdout;
    for (flag, least, most) in ranges {
        for value in ["-1", "1000001", "many", ""] {
            let finished = binary::run(&["serve", &format!("{flag}={value}")], &[]);
            let reported = format!("must be a whole number from {least} to {most}");
            assert!(finished.code == Some(2) && finished.stderr.contains(&reported), "{flag} {value}: {finished:?}");
        }
        let described = help.split(&format!("{flag} <")).nth(1).and_then(|rest| rest.split("--").next()).expect(flag);
        let words: String = described.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&format!("{least} to {most}")) && words.contains("[default: "), "{flag}: {words}");
    }
}

#[test]
fn the_help_says_what_it_is_and_what_comes_first() {
    for flag in ["-h", "--help"] {
        let help = binary::run(&[flag], &[]);
        assert_eq!((help.code, help.made()), (Some(0), Vec::new()), "{help:?}");
        for words in ["records usage events", "usage-billing demo ", "usage-billing serve --sample ", "admin reset-password"] {
            assert!(help.stdout.contains(words), "{words} isn't in {}", help.stdout);
        }
    }
}

#[test]
fn what_is_no_command_or_flag_ends_with_code_2() {
    let rows: [&[&str]; 6] = [
        &["bill"],
        &["serve", "--port", "80"],
        &["organization"],
        &["admin", "create"],
        &["migrate", "twice"],
        &["serve", "--listen"],
    ];
    for arguments in rows {
        let finished = binary::run(arguments, &[]);
        assert_eq!((finished.code, finished.made()), (Some(2), Vec::new()), "{arguments:?}: {finished:?}");
    }
}

#[test]
fn a_mistyped_database_address_makes_no_file() {
    let addresses = [
        "",
        "usage.sqlite3",
        "data/usage.sqlite3",
        "./usage.sqlite3",
        ":memory:",
        "sqlite:/x.sqlite3",
        "sqlite:x.sqlite3",
        "sqlite3://x.sqlite3",
        "SQLITE://x.sqlite3",
        "sqlite://",
        "sqlite://x.sqlite3?mode=ro",
        "file:x.sqlite3",
        "postgre://topsecret:topsecret@localhost/billing",
        "postgres:/localhost/billing",
        "postgres//localhost/billing",
        "postgres://",
        "mysql://localhost/billing",
    ];
    let commands: [&[&str]; 3] = [&["serve", "--listen", "127.0.0.1:0"], &["migrate"], &["organization", "create", "new"]];
    let mut wrong = Vec::new();
    for address in addresses {
        for command in commands {
            let arguments: Vec<&str> = command.iter().copied().chain(["--database-url", address]).collect();
            let finished = binary::run(&arguments, &[]);
            let quiet = !finished.stderr.contains("topsecret") && is_one_sentence(&finished.stderr);
            if finished.code != Some(2) || !finished.made().is_empty() || !quiet {
                wrong.push(format!("{arguments:?}: made {:?}, {finished:?}", finished.made()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_server_that_cannot_be_reached_is_one_sentence_without_its_password() {
    let url = "postgres://someone:topsecret@127.0.0.1:1/billing";
    let finished = binary::run(&["migrate", "--database-url", url], &[]);
    assert!(matches!(finished.code, Some(1 | 2)), "{finished:?}");
    assert!(!finished.stderr.contains("topsecret") && !finished.stderr.contains("panicked"), "{}", finished.stderr);
}

#[test]
fn openapi_prints_a_document_that_has_every_route() {
    let finished = binary::run(&["openapi"], &[]);
    assert_eq!((finished.code, finished.made()), (Some(0), Vec::new()), "{}", finished.stderr);
    let document: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.")), "{}", document["openapi"]);
    assert_eq!(document["components"]["schemas"]["ExactNumber"]["type"], "number");
    let strings: Value = serde_json::from_str(&binary::run(&["openapi", "--numbers-as-strings"], &[]).stdout).expect("JSON");
    assert_eq!(strings["components"]["schemas"]["ExactNumber"]["type"], "string");
    let routes = [
        "post /auth/login",
        "post /auth/logout",
        "post /auth/keys/generate",
        "get /auth/keys/list",
        "delete /auth/user/{}",
        "post /api/usage/event",
        "get /api/usage/event/{}",
        "delete /api/usage/event/{}",
        "post /api/usage/event/update",
        "get /api/usage/event/history/{}",
        "post /api/contracts",
        "get /api/contracts/{}",
        "get /api/contracts/filter",
        "post /api/contracts/edit/{}",
        "post /api/contracts/cancel/{}",
        "get /api/contracts/invoices/current/{}",
        "get /api/contracts/invoices/next/{}",
        "get /api/documents/{}",
        "get /api/documents/filter",
        "post /api/documents/issue/{}",
        "post /api/documents/void/{}",
        "post /api/documents/payments/{}",
        "post /api/billing/run",
        "get /health/live",
        "get /health/ready",
        "get /openapi.json",
        "get /api/customers/names",
        "get /api/entities/names",
    ];
    let mut expected: Vec<String> = routes.map(str::to_owned).to_vec();
    for list in ["customers", "entities", "usage/products", "pricings"] {
        expected.push(format!("post /api/{list}"));
        expected.push(format!("post /api/{list}/edit/{{}}"));
        expected.push(format!("get /api/{list}/{{}}"));
        expected.push(format!("get /api/{list}/filter"));
    }
    let mut found = Vec::new();
    let mut ids = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        let parts = path.trim_end_matches('/').split('/').map(|part| if part.starts_with('{') { "{}" } else { part });
        let path = parts.collect::<Vec<_>>().join("/");
        for (method, operation) in methods.as_object().expect("methods") {
            found.push(format!("{method} {path}"));
            ids.push(operation["operationId"].to_string());
            assert!(operation["responses"].as_object().is_some_and(|responses| !responses.is_empty()), "{method} {path}");
        }
    }
    let dangling: Vec<&str> = references(&document).into_iter().filter(|to| document.pointer(&to[1..]).is_none()).collect();
    assert!(dangling.is_empty(), "{dangling:?}");
    let missing: Vec<&String> = expected.iter().filter(|route| !found.contains(route)).collect();
    assert!(missing.is_empty(), "{missing:?} aren't in {found:?}");
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "operation ids are unique");
    let database = Database::sqlite();
    let server = Server::start(&database);
    assert_eq!(Client::anonymous(&server).get("/openapi.json").ok(), document, "the served and the printed document are equal");
}

/// Returns every `$ref` in a document.
fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            own.into_iter().chain(members.values().flat_map(references)).collect()
        }
        Value::Array(elements) => elements.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

fn a_schema_is_brought_up_to_date_once(database: &Database) {
    if database.is_spread() {
        // It has all tables from the beginning.
        return;
    }
    let first = binary::succeed(database, &["migrate"]);
    assert!(first.contains("Applied"), "{first}");
    let second = binary::succeed(database, &["migrate"]);
    assert!(second.contains("up to date") && !second.contains("Applied"), "{second}");
    Client::new_key(&Server::start(database));
}

fn a_database_of_a_development_version_is_rejected_by_every_command(database: &Database) {
    binary::succeed(database, &["migrate"]);
    let versions = (1..=29).map(|version| format!("('{version:014}')")).collect::<Vec<_>>().join(", ");
    let run = "__diesel_schema_migrations (version)";
    database.execute(&format!("DELETE FROM __diesel_schema_migrations; INSERT INTO {run} VALUES {versions}"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let in_directory = |name: &str| directory.path().join(name).display().to_string();
    let (copy, events) = (in_directory("copy.sqlite3"), in_directory("events.ndjson"));
    std::fs::write(&events, "").expect("a file without events");
    let commands: [&[&str]; 12] = [
        &["serve", "--listen", "127.0.0.1:0"],
        &["migrate"],
        &["migrate", "--distribute"],
        &["verify"],
        &["report"],
        &["import", "--name", "old", &events],
        &["organization", "create", "Other"],
        &["admin", "list"],
        &["admin", "disable", "--email", "admin@example.com"],
        &["key", "list"],
        &["secret", "rotate", "--for", "tokens"],
        &["backup", &copy],
    ];
    let reason = ": it was created by a development version before 0.1.0, whose schema can't be upgraded: create a new \
                  database and import the data again";
    // `backup` supports only files.
    for command in commands.iter().filter(|command| command[0] != "backup" || database.is_sqlite()) {
        let finished = binary::run(command, &[("USAGE_BILLING_DATABASE_URL", database.url()), ("RUST_LOG", "error")]);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{command:?}: {finished:?}");
        assert!(is_one_sentence(&finished.stderr) && finished.stderr.contains(reason), "{command:?}: {}", finished.stderr);
    }
}

fn a_port_in_use_ends_the_start_before_anything_is_made(database: &Database) {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("the address of the listener").to_string();
    let settings = [("USAGE_BILLING_DATABASE_URL", database.url()), ("USAGE_BILLING_LISTEN", &address), ("RUST_LOG", "error")];
    let finished = binary::run(&["serve"], &settings);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(is_one_sentence(&finished.stderr) && finished.stderr.contains(&address), "{}", finished.stderr);
    assert_eq!(finished.stdout, "", "no password was printed");
    drop(taken);

    let server = Server::start_in(database, &[], &[]);
    assert!(server.stdout().contains("/console. Log in as admin@example.com."));
}

fn an_organization_or_an_administrator_is_made_once(database: &Database) {
    let server = Server::start(database);
    let second = |arguments: &[&str]| {
        let finished = binary::run(arguments, &[("USAGE_BILLING_DATABASE_URL", database.url()), ("RUST_LOG", "error")]);
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(is_one_sentence(&finished.stderr) && finished.stdout.is_empty(), "{finished:?}");
    };
    binary::succeed(database, &["organization", "create", "other"]);
    second(&["organization", "create", "other"]);
    second(&["organization", "create", "default"]);
    let create = ["admin", "create", "--organization", "other", "--email", "me@other.example"];
    let printed = binary::succeed(database, &create);
    second(&create);
    second(&["admin", "create", "--organization", "default", "--email", "ME@other.example"]);
    let password =
        printed.lines().find_map(|line| line.strip_prefix("Password (shown only once): ")).expect("a generated password");
    let admin = Client::log_in_admin(&server, "me@other.example", password);
    let entity = catalog::only(admin.get("/api/entities/filter").ok());
    let stated = ["name", "number_prefix", "timezone", "default"].map(|field| entity[field].to_string());
    assert_eq!(stated, [r#""Default""#, r#""UB""#, r#""UTC""#, "true"]);
}

#[test]
fn the_calls_that_a_first_start_with_a_sample_prints_report_a_first_event() {
    let database = Database::sqlite();
    let server = Server::start_with(&database, &["--sample"]);
    let printed = server.stdout();
    // Standard output is no terminal, so the sample has no API key, and the first calls create one.
    assert!(Client::admin(&server).get("/auth/keys/list").ok().as_array().is_some_and(Vec::is_empty), "{printed}");
    assert!(printed.contains("/auth/keys/generate"), "{printed}");
    let script = sample_calls(&server);
    let output = Command::new("bash").args(["-euc", &script]).output().expect("bash starts");
    let stated = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{stated}{}", String::from_utf8_lossy(&output.stderr));
    let answers: Vec<Value> = serde_json::Deserializer::from_str(&stated).into_iter().map(|value| value.expect("JSON")).collect();
    let [event, invoices] = answers.as_slice() else { panic!("expected two responses: {stated}") };
    assert_eq!(event["related_document_numbers"], "UB-INV-1", "{stated}");
    let invoice = catalog::only(invoices.clone());
    // 49.00 + 60.00, plus 19 % tax.
    assert_eq!(invoice["total"].to_string(), "129.71");
}

#[test]
fn a_later_start_makes_a_missing_sample_as_long_as_there_is_no_catalog() {
    let database = Database::sqlite();
    let names = |server: &Server| Client::admin(server).get("/api/customers/names").ok();
    let server = Server::start(&database);
    assert_eq!(names(&server), json!([]));
    drop(server);
    // As after a first start that was killed before it made the sample.
    let server = Server::start_with(&database, &["--sample"]);
    assert!(server.stdout().contains("A sample customer with a contract exists."), "{}", server.stdout());
    assert_eq!(catalog::only(names(&server))["customer_ref"], "acme");
    drop(server);
    let server = Server::start_with(&database, &["--sample"]);
    let printed = server.stdout();
    assert!(!printed.contains("A sample customer") && printed.contains("forgotten or was never printed"), "{printed}");
    assert_eq!(catalog::only(names(&server))["customer_ref"], "acme");
}

#[test]
fn a_secret_can_be_in_a_file_that_an_environment_variable_names() {
    let database = Database::sqlite();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path.display().to_string()
    };
    let (url, password) = (file("url", &format!("{}\n", database.url())), file("password", &format!("{ADMIN_PASSWORD}\n")));
    let secrets = file("secrets", &format!("{}\n", "x".repeat(32)));
    let environment = [("USAGE_BILLING_ADMIN_PASSWORD_FILE", &*password), ("USAGE_BILLING_JWT_SECRETS_FILE", &*secrets)];
    let server = Server::start_in(&database, &[], &environment);
    // The password of the file works, and tokens are signed with the secret of the file.
    assert_eq!(Client::new_key(&server).get("/api/customers/filter").status, 200);
    drop(server);
    let listed = binary::run(&["admin", "list"], &[("USAGE_BILLING_DATABASE_URL_FILE", &*url)]);
    assert!(listed.code == Some(0) && listed.stdout.contains("admin@example.com"), "{listed:?}");

    let twice = [("USAGE_BILLING_DATABASE_URL", database.url()), ("USAGE_BILLING_DATABASE_URL_FILE", &*url)];
    let missing = [("USAGE_BILLING_DATABASE_URL_FILE", "/nowhere/url")];
    for (environment, reported) in [
        (&twice[..], "--database-url and --database-url-file are both set"),
        (&missing[..], "--database-url-file <FILE>: cannot read \"/nowhere/url\""),
    ] {
        let refused = binary::run(&["admin", "list"], environment);
        assert!(refused.code == Some(2) && is_one_sentence(&refused.stderr) && refused.stderr.contains(reported), "{refused:?}");
    }
}

#[test]
fn the_demo_bills_last_month_to_the_cent() {
    let finished = binary::run(&["demo"], &[]);
    assert_eq!((finished.code, finished.made()), (Some(0), Vec::new()), "{finished:?}");
    let this_month = Day::today().first_of_month();
    let days = this_month.plus_months(-1).days_until(this_month);
    let sum = |of_day: fn(i64) -> i64| (0..days).map(of_day).sum::<i64>();
    // Acme: 49.00 and the calls, plus tax. Globex: storage at 0.0235 and the calls, less 10 %. Initech: storage, raised to the
    // minimum fee of 10.00, plus tax.
    let acme = with_tax(4900 + graduated(sum(|day| 40 + 7 * (day % 5))));
    let globex = rounded(sum(|day| 10_025 + 300 * day) * 235, 10_000) + graduated(sum(|day| day % 3 * 200));
    let globex = globex - rounded(globex, 10);
    let initech = with_tax(1000);
    let expected = [
        ("UB-INV-1", "Acme Ltd", acme, "EUR"),
        ("UB-INV-2", "Globex Inc", globex, "USD"),
        ("UB-INV-3", "Initech GmbH", initech, "EUR"),
    ];

    let documents: Vec<&str> = finished.stdout.split("\n\n").filter(|part| part.contains("Total")).collect();
    assert_eq!(documents.len(), 3, "{}", finished.stdout);
    for ((number, customer, total, currency), document) in expected.into_iter().zip(documents) {
        let head = document.lines().find(|line| line.contains(number)).unwrap_or_else(|| panic!("{number} isn't in {document}"));
        assert!(head.contains(customer) && head.contains("Issued"), "{head}");
        let shown = document.lines().find_map(|line| line.trim().strip_prefix("Total")).map(str::trim);
        assert_eq!(shown, Some(&*format!("{}.{:02} {currency}", total / 100, total % 100)), "{document}");
    }
}

/// Returns the price of API calls in cents.
fn graduated(quantity: i64) -> i64 {
    quantity.min(100) * 10 + (quantity.min(1000) - 100).max(0) * 5 + (quantity - 1000).max(0)
}

fn with_tax(net: i64) -> i64 {
    net + rounded(net * 19, 100)
}

/// Divides and rounds half up.
fn rounded(numerator: i64, denominator: i64) -> i64 {
    (2 * numerator + denominator).div_euclid(2 * denominator)
}

#[test]
fn the_demo_keeps_its_database_in_a_new_file_only() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("demo.sqlite3");
    let keep = ["demo", "--keep", file.to_str().expect("UTF-8")];
    assert_eq!(binary::run(&keep, &[]).code, Some(0));
    let kept = std::fs::metadata(&file).expect("the file exists").len();
    let again = binary::run(&keep, &[]);
    assert!(again.code == Some(2) && is_one_sentence(&again.stderr), "{again:?}");
    assert_eq!(std::fs::metadata(&file).expect("the file exists").len(), kept);
    let serve = json!([format!("sqlite://{}", file.display())]);
    let served = binary::run(&["migrate", "--database-url", serve[0].as_str().expect("a string")], &[]);
    assert!(served.stdout.contains("up to date"), "{served:?}");
}
