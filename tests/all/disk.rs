//! A disk that is full or fails, or a database file that disappears: the server returns 503, loses nothing that was acknowledged,
//! and recovers by itself. `strace` injects the failures.

use std::path::PathBuf;
use std::process::{Child, Command};

use acceptance::client::Request;
use acceptance::cluster::wait_until;
use acceptance::{Client, Database, Server, catalog};
use serde_json::{Value, json};

/// System calls of a server that fail on its database log, until the fault is dropped.
struct Fault(Child);

impl Fault {
    /// Makes a system call fail with this error.
    fn of(server: &Server, log: &str, call: &str, error: &str) -> Self {
        let fails = format!("inject={call}:error={error}");
        let mut strace = Command::new("strace");
        strace.args(["-qq", "-f", "-o", "/dev/null", "-p", &server.id().to_string(), "-P", log]);
        let child = strace.args(["-e", &format!("trace={call}"), "-e", &fails]).spawn().expect("strace starts");
        Self(child)
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        // `strace` detaches from the server before it exits.
        let told = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        assert!(told.is_ok_and(|status| status.success()));
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
