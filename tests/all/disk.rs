//! A disk that is full or fails, or a database file that disappears: the server returns 503, loses nothing that was acknowledged,
//! and recovers by itself. `strace` injects the failures.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use acceptance::client::Request;
use acceptance::cluster::wait_until;
use acceptance::load::Load;
use acceptance::{Client, Database, Server, binary, catalog};
use serde_json::{Value, json};

/// System calls of a server that fail or wait on a file of its database, until the fault is dropped.
struct Fault(Child);

impl Fault {
    /// Makes a system call fail with this error.
    fn of(server: &Server, log: &str, call: &str, error: &str) -> Self {
        Self::inject(server, log, call, &format!("error={error}"))
    }

    /// Makes a system call on a file wait before it begins.
    fn delayed(server: &Server, file: &str, call: &str, delay: Duration) -> Self {
        Self::inject(server, file, call, &format!("delay_enter={}", delay.as_micros()))
    }

    fn inject(server: &Server, file: &str, call: &str, what: &str) -> Self {
        let mut strace = Command::new("strace");
        strace.args(["-qq", "-f", "-o", "/dev/null", "-p", &server.id().to_string(), "-P", file]);
        let inject = format!("inject={call}:{what}");
        Self(strace.args(["-e", &format!("trace={call}"), "-e", &inject]).spawn().expect("strace starts"))
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        // `strace` detaches from the server before it exits.
        let reported = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        assert!(reported.is_ok_and(|status| status.success()));
        self.0.wait().expect("our own child process");
    }
}

fn file(database: &Database) -> PathBuf {
    PathBuf::from(database.url().strip_prefix("sqlite://").expect("a file"))
}

fn is_ready(server: &Server) -> bool {
    match Client::anonymous(server).get("/health/ready").status {
        200 => true,
        503 => false,
        status => panic!("{status}"),
    }
}

/// Reports an event under a key and returns whether it was recorded. The event is always the same, and a repeated report must
/// succeed again.
fn reports(client: &Client, event: &Value, key: &str) -> bool {
    let request = Request::post("/api/usage/event", event.to_string())
        .with("Content-Type", "application/json")
        .with("Idempotency-Key", key);
    match client.send(&request).status {
        200 => true,
        503 => false,
        status => panic!("{status}"),
    }
}

#[test]
fn a_disk_that_is_full_or_fails_loses_nothing_and_is_gone_on_with() {
    let database = Database::sqlite();
    let (server, client, contract) = catalog::stage_with(&database, &catalog::contract(catalog::ACME));
    let log = format!("{}-wal", file(&database).display());
    let (event, mut keys) = (catalog::event(catalog::ACME, 1), Vec::new());
    for (call, error) in [("pwrite64", "ENOSPC"), ("fdatasync", "EIO"), ("pwrite64", "EIO")] {
        let key = |n: usize| format!("{call}-{error}-{n}");
        assert!(reports(&client, &event, &key(0)) && is_ready(&server), "{call} {error}");
        let fault = Fault::of(&server, &log, call, error);
        let mut tries = 0;
        wait_until("writing fails", || {
            tries += 1;
            !reports(&client, &event, &key(tries))
        });
        for n in tries..tries + 5 {
            assert!(!reports(&client, &event, &key(n)), "{call} {error}");
        }
        assert!(!is_ready(&server), "{call} {error}");
        assert_eq!(client.get(&format!("/api/contracts/invoices/current/{contract}")).status, 200, "stored data can be read");
        drop(fault);
        // The server recovers without a write request.
        wait_until("the server is ready again", || is_ready(&server));
        for n in 0..tries + 5 {
            assert!(reports(&client, &event, &key(n)), "{call} {error}");
            keys.push(key(n));
        }
    }
    server.kill_9();
    let server = Server::start(&database);
    let client = client.at(&server);
    let quantity = &catalog::current_invoice(&client, &contract)["products"][0]["line_items"][1]["quantity"];
    assert_eq!(quantity, &json!(keys.len()), "each event once");
}

#[test]
fn a_file_that_was_deleted_or_replaced_is_not_written_and_is_gone_on_with_once_it_is_back() {
    let database = Database::sqlite();
    let (server, client, contract) = catalog::stage_with(&database, &catalog::contract(catalog::ACME));
    let event = catalog::event(catalog::ACME, 1);
    let (file, elsewhere) = (file(&database), file(&database).with_extension("moved"));
    assert!(reports(&client, &event, "before") && is_ready(&server));
    std::fs::rename(&file, &elsewhere).expect("the file is moved");
    assert!(!is_ready(&server) && !reports(&client, &event, "gone"));
    std::fs::copy(&elsewhere, &file).expect("a copy");
    assert!(!is_ready(&server) && !reports(&client, &event, "replaced"), "it is another file");
    std::fs::rename(&elsewhere, &file).expect("the file is moved back");
    wait_until("the server is ready again", || is_ready(&server));
    assert!(reports(&client, &event, "gone") && reports(&client, &event, "before"));
    let quantity = &catalog::current_invoice(&client, &contract)["products"][0]["line_items"][1]["quantity"];
    assert_eq!(quantity, &json!(2));
}

#[test]
fn a_readiness_probe_is_answered_at_once_although_the_disk_hangs() {
    let database = Database::sqlite();
    let (server, _, _) = catalog::stage_with(&database, &catalog::contract(catalog::ACME));
    let file = file(&database);
    let mut longest = Duration::ZERO;
    let mut probe = || {
        let asked = Instant::now();
        let is_ready = is_ready(&server);
        longest = longest.max(asked.elapsed());
        is_ready
    };
    assert!(probe());
    let fault = Fault::delayed(&server, file.to_str().expect("UTF-8"), "pread64", Duration::from_secs(20));
    wait_until("the readiness probe reports that no check ends", || !probe());
    drop(fault);
    wait_until("the server is ready again", probe);
    eprintln!("the longest readiness probe took {longest:?}");
    // The promise is 500 ms. The limit leaves room for a busy machine.
    assert!(longest < Duration::from_secs(2), "{longest:?}");
}

/// Checks that a server acknowledges nothing after something happened to the content of its database file.
fn acknowledges_nothing_after(case: &str, harm: impl FnOnce(&Path, &Path)) {
    let database = Database::sqlite();
    let (server, client, _) = catalog::stage_with(&database, &catalog::contract(catalog::ACME));
    // The file is lost.
    let server = server.without_verification();
    let event = catalog::event(catalog::ACME, 1);
    let (file, backup) = (file(&database), file(&database).with_extension("backup"));
    assert!(reports(&client, &event, "before the backup"), "{case}");
    binary::succeed(&database, &["backup", backup.to_str().expect("UTF-8")]);
    assert!(reports(&client, &event, "after the backup") && is_ready(&server), "{case}");
    harm(&file, &backup);
    let acknowledged = (0..100).filter(|n| reports(&client, &event, &n.to_string())).count();
    eprintln!("{case}: {acknowledged} of 100 events were acknowledged");
    assert_eq!(acknowledged, 0, "{case}");
    let answer = Client::anonymous(&server).get("/health/ready");
    assert_eq!((answer.status, answer.text_of("code").as_str()), (503, "not_ready"), "{case}");
    let detail = answer.text_of("detail");
    assert!(detail.starts_with("the database file was replaced or truncated while the server runs"), "{case}: {detail}");
    let log = server.stderr();
    assert_eq!(log.matches("nothing is read or written any more").count(), 1, "{case}: {log}");
}

#[test]
fn after_a_backup_was_copied_over_the_file_nothing_is_acknowledged() {
    acknowledges_nothing_after("overwritten", |file, backup| {
        std::fs::copy(backup, file).expect("a copy");
    });
}

#[test]
fn after_the_file_was_truncated_nothing_is_acknowledged() {
    acknowledges_nothing_after("truncated", |file, _| {
        std::fs::OpenOptions::new().write(true).truncate(true).open(file).expect("an empty file");
    });
}

fn log(file: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", file.display()))
}

#[test]
fn after_the_log_was_truncated_nothing_is_acknowledged() {
    acknowledges_nothing_after("log truncated", |file, _| {
        std::fs::OpenOptions::new().write(true).truncate(true).open(log(file)).expect("an empty log");
    });
}

#[test]
fn events_under_load_are_kept_although_the_log_is_deleted_and_the_server_stops() {
    let database = Database::sqlite();
    let (mut server, client, contract) = catalog::stage_with(&database, &catalog::contract(catalog::ACME));
    let load = Load::start(&client, 4, |_, _| catalog::event(catalog::ACME, 1));
    load.wait_for(200);
    std::fs::remove_file(log(&file(&database))).expect("the log is deleted");
    wait_until("the server is not ready", || !is_ready(&server));
    server.terminate();
    server.wait_for_exit(Duration::from_secs(60)).expect("the server exits");
    let reported = load.join();
    let acknowledged: usize = reported.iter().map(|reported| reported.acknowledged.len()).sum();
    let server = Server::start(&database);
    let client = client.at(&server);
    let quantity = &catalog::current_invoice(&client, &contract)["products"][0]["line_items"][1]["quantity"];
    eprintln!("{acknowledged} events were acknowledged");
    assert!(acknowledged >= 200 && quantity.as_u64() >= u64::try_from(acknowledged).ok(), "{acknowledged} {quantity}");
}

#[test]
fn no_event_is_acknowledged_that_is_lost_when_the_log_is_truncated_under_load() {
    let database = Database::sqlite();
    let (server, client, _) = catalog::stage_with(&database, &catalog::contract(catalog::ACME));
    let server = server.without_verification();
    let load = Load::start(&client, 4, |_, _| catalog::event(catalog::ACME, 1));
    load.wait_for(200);
    let log = std::fs::OpenOptions::new().write(true).open(log(&file(&database))).expect("the log");
    log.set_len(0).expect("an empty log");
    let at_once = load.acknowledged();
    wait_until("the server is not ready", || !is_ready(&server));
    let acknowledged = load.acknowledged();
    // The requests whose data was checked before the truncation may be answered after it.
    assert!(acknowledged <= at_once + 4 * 2, "{at_once} events before the truncation, {acknowledged} after it");
    drop(server);
    drop(load.join());
}
