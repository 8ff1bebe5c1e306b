//! A first and a second start: their output, and the permissions of the files that they create.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use acceptance::server::{ADMIN_EMAIL, ADMIN_PASSWORD};
use acceptance::{Client, Database, Server, binary, on_sqlite};
use serde_json::{Value, json};

on_sqlite!(a_password_is_printed_at_a_terminal_alone);

fn file_of(database: &Database) -> &Path {
    Path::new(database.url().strip_prefix("sqlite://").expect("a file"))
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode() & 0o777
}

fn a_password_is_printed_at_a_terminal_alone(database: &Database) {
    let server = Server::start_in(database, &[], &[]);
    let printed = server.stdout();
    let advice = printed.lines().find(|line| line.contains("printed only to a terminal")).expect("the advice");
    let (_, command) = advice.split_once("admin reset-password").expect("the command");
    let arguments: Vec<&str> = ["admin", "reset-password"].into_iter().chain(command.split_whitespace()).collect();
    let stated = binary::succeed(database, &arguments);
    let password = stated.lines().find_map(|line| line.strip_prefix("Password (shown only once): ")).expect("a password");
    Client::log_in_admin(&server, ADMIN_EMAIL, password);
    assert!(!printed.contains("shown only once") && !server.stderr().contains("password"), "{printed}");
}

#[test]
fn at_a_terminal_the_first_password_is_printed_and_works() {
    let database = Database::sqlite();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let transcript = directory.path().join("transcript");
    // `script` gives its command a terminal, which closes with `script`. The server continues, like a server that was started to
    // stay.
    let mut at_terminal = Command::new("script");
    at_terminal.args([
        "--quiet",
        "--flush",
        "--command",
        &format!("trap '' HUP; exec {} serve --sample --listen 127.0.0.1:0", binary::path().display()),
    ]);
    at_terminal.arg(&transcript).env("USAGE_BILLING_DATABASE_URL", database.url());
    let mut running = at_terminal.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("script starts");
    let password = (0..600).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        let text = std::fs::read_to_string(&transcript).unwrap_or_default();
        let mut lines = text.lines().filter(|_| text.contains("is ready at"));
        lines.find_map(|line| line.strip_prefix("Password (shown only once): ").map(str::to_owned))
    });
    let children = format!("/proc/{0}/task/{0}/children", running.id());
    let process = std::fs::read_to_string(children).expect("the server's process").trim().to_owned();
    running.kill().expect("SIGKILL");
    running.wait().expect("our own child process");
    let password = password.expect("a password");
    let printed = std::fs::read_to_string(&transcript).expect("the transcript");
    assert!(printed.contains("A sample customer with a contract and an API key exist."), "{printed}");
    assert!(printed.contains(r#""api_key":""#) && !printed.contains(r#""password":"...""#), "{printed}");
    Command::new("kill").arg(&process).stderr(Stdio::null()).status().expect("kill runs");
    let stopped = (0..300).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        !std::path::Path::new("/proc").join(&process).exists()
    });
    if !stopped {
        Command::new("kill").args(["-KILL", &process]).status().expect("kill runs");
    }
    assert!(stopped, "a server without its terminal must stop on SIGTERM");
    let server = Server::start_in(&database, &[], &[]);
    Client::log_in_admin(&server, ADMIN_EMAIL, password.trim());
}

#[test]
fn a_later_start_prints_calls_that_make_an_api_key() {
    let database = Database::sqlite();
    drop(Server::start(&database));
    let server = Server::start(&database);
    let printed = server.stdout();
    assert!(
        printed.contains("To create an API key") && printed.contains("admin reset-password --email admin@example.com"),
        "{printed}"
    );
    let calls: Vec<&str> = printed.lines().filter(|line| line.starts_with("  ")).collect();
    let script = calls.join("\n").replace("\"...\"", &format!("\"{ADMIN_PASSWORD}\""));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = Command::new("bash").args(["-euc", &script]).current_dir(directory.path()).output().expect("bash starts");
    let stated = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && stated.contains("\"api_key\":") && stated.contains("\"password\":"), "{script}\n{stated}");
}

#[test]
fn a_database_file_is_its_owners_alone() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let file = file_of(&database);
    let beside = |suffix: &str| file.with_file_name(format!("usage-billing.sqlite3{suffix}"));
    assert_eq!(["", "-wal", "-shm"].map(|suffix| mode(&beside(suffix))), [0o600; 3]);
    assert!(!server.stderr().contains("chmod"), "{}", server.stderr());
    drop(server);
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).expect("the mode is set");
    let warned = Server::start(&database);
    assert!(warned.stderr().contains("has the mode 644") && warned.stderr().contains("chmod 600"), "{}", warned.stderr());
    assert_eq!(mode(file), 0o644, "the owner's mode is unchanged");
}

#[test]
fn a_refused_request_says_in_its_line_why_and_from_where() {
    let database = Database::sqlite();
    let server = Server::start_in(&database, &["--log-json"], &[("USAGE_BILLING_ADMIN_PASSWORD", ADMIN_PASSWORD)]);
    let line = |request_id: &str| -> Value {
        let log = server.stderr();
        let line = log.lines().find(|line| line.contains(request_id)).unwrap_or_else(|| panic!("{request_id} isn't in {log}"));
        serde_json::from_str::<Value>(line).expect("JSON")["fields"].clone()
    };
    let anonymous = Client::anonymous(&server).with_header("X-Request-Id", "wrong-pair");
    let log_in = anonymous.post("/auth/login", &json!({"email": "who@example.com", "password": "topsecret topsecret"}));
    assert_eq!(log_in.status, 401);
    let stated = line("wrong-pair");
    assert_eq!(
        [&stated["code"], &stated["address"], &stated["route"], &stated["actor"]],
        ["invalid_credentials", "127.0.0.1", "/auth/login", "-"]
    );

    let client = Client::new_key(&server).with_header("X-Request-Id", "wrong-fields");
    let event = json!({"timestamp": "topsecret", "customer_ref": "a b", "usage_product_ref": "calls", "quantity": 1});
    assert_eq!(client.post("/api/usage/event", &event).status, 422);
    let stated = line("wrong-fields");
    let actor = stated["actor"].as_str().expect("an actor");
    assert!(actor.starts_with("api_key:"), "{stated}");
    assert_eq!(
        [&stated["code"], &stated["fields"], &stated["address"], &stated["method"], &stated["route"]],
        ["validation_failed", "/timestamp /customer_ref", "127.0.0.1", "POST", "/api/usage/event"]
    );
    let unknown = client.with_header("X-Request-Id", "no-contract").get("/api/contracts/nothing");
    assert_eq!(unknown.status, 404);
    let stated = line("no-contract");
    assert_eq!([&stated["code"], &stated["route"]], ["contract_not_found", "/api/contracts/{contract_ref}"]);
    assert!(!stated.to_string().contains("nothing"), "{stated}");

    assert_eq!(client.with_header("X-Request-Id", "all-well").get("/api/customers/filter").status, 200);
    let stated = line("all-well");
    assert!(stated.get("code").is_none() && stated.get("address").is_none(), "{stated}");
    assert!(!server.stderr().contains("topsecret"), "{}", server.stderr());
}

#[test]
fn a_cookie_beside_a_bearer_token_is_not_looked_at() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let client = Client::new_key(&server);
    for cookie in ["session=x", "session=", "other=1; session=y"] {
        assert_eq!(client.with_header("Cookie", cookie).get("/api/customers/filter").status, 200, "{cookie}");
    }
    assert!(!server.stderr().contains("WARN"), "{}", server.stderr());
}
