//! Clients that send or read too slowly, or not at all: other clients are served in the meantime, and each slow client is
//! disconnected after its limit. The limit is 10 seconds for a head, 30 seconds for a request, and about a minute for a client
//! that reads nothing. `SLOW_CLIENTS=n` sets the number of clients.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use acceptance::random::setting;
use acceptance::{Database, books, catalog};
use serde_json::json;

/// The bytes that a client sends at first, and then repeatedly.
#[derive(Clone)]
struct Slow {
    name: &'static str,
    first: String,
    then: &'static str,
    reads: bool,
}

/// The time limit for all disconnects, which is far more than any limit of the server.
const PATIENCE: Duration = Duration::from_secs(240);
const PAUSE: Duration = Duration::from_millis(500);
/// A chunk of one character.
const CHUNK: &str = "1\r\n \r\n";

fn kinds(bearer: &str) -> Vec<Slow> {
    let slow = |name, first: &str, then| Slow { name, first: first.to_owned(), then, reads: true };
    let sends = |name, path: &str, of: &str, then| {
        let chunked = if of.contains("Content-Length") { "" } else { "Transfer-Encoding: chunked\r\n" };
        slow(name, &format!("POST {path} HTTP/1.1\r\nHost: x\r\n{of}\r\n{chunked}\r\n"), then)
    };
    let authorized = |of: &str| format!("Authorization: {bearer}\r\n{of}");
    let unread = "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(20);
    vec![
        slow("says nothing", "", ""),
        slow("a head that goes on", "GET /health/live HTTP/1.1\r\n", "X"),
        sends(
            "a body that doesn't come",
            "/api/usage/event",
            &authorized("Content-Type: application/json\r\nContent-Length: 999"),
            "",
        ),
        sends("a body that drips", "/api/usage/event", &authorized("Content-Type: application/json\r\nContent-Length: 999"), " "),
        sends("chunks that drip", "/api/customers/", &authorized("Content-Type: application/json"), CHUNK),
        sends("a refused one that goes on", "/api/usage/event", "Content-Type: application/json", CHUNK),
        sends("a log-in that drips", "/auth/login", "Content-Type: application/json", CHUNK),
        sends("no line of a batch", "/api/usage/event/batch", &authorized("Content-Type: application/x-ndjson"), ""),
        sends("lines that drip", "/api/usage/event/batch", &authorized("Content-Type: application/x-ndjson"), CHUNK),
        sends("a file that drips", "/api/usage/import", &authorized("Content-Type: text/csv"), CHUNK),
        sends("a form that drips", "/console/log-in", "Content-Type: application/x-www-form-urlencoded", CHUNK),
        Slow { reads: false, ..slow("reads nothing", &unread, "") },
        Slow {
            reads: false,
            ..sends(
                "batches and reads nothing",
                "/api/usage/event/batch",
                &authorized("Content-Type: application/x-ndjson"),
                "5\r\n{}\r\n\n\r\n",
            )
        },
    ]
}

/// Sends and reads until the server closes the connection. Returns whether the server did.
fn is_gone(address: &str, slow: &Slow) -> bool {
    let until = Instant::now() + PATIENCE;
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PAUSE)).expect("a timeout");
    stream.set_write_timeout(Some(PAUSE)).expect("a timeout");
    let waits = |error: &std::io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    let send = |stream: &mut TcpStream, bytes: &str| match stream.write(bytes.as_bytes()) {
        Err(error) => waits(&error),
        Ok(_) => true,
    };
    if !send(&mut stream, &slow.first) {
        return true;
    }
    let mut buffer = [0; 4096];
    while Instant::now() < until {
        let is_there = if slow.reads {
            let is_there = match stream.read(&mut buffer) {
                Ok(0) => false,
                Ok(_) => true,
                Err(error) => waits(&error),
            };
            is_there && (slow.then.is_empty() || send(&mut stream, slow.then))
        } else {
            // The buffers are soon full, regardless of the request.
            thread::sleep(PAUSE);
            let more = if slow.then.is_empty() { slow.first.clone() } else { slow.then.repeat(1_000) };
            send(&mut stream, &more)
        };
        if !is_there {
            return true;
        }
    }
    false
}

#[test]
fn who_is_slow_goes_and_others_are_answered_meanwhile() {
    let database = Database::sqlite();
    let (server, client, contract) = catalog::stage_with(&database, &catalog::contract(catalog::ACME));
    let kinds = kinds(client.header("Authorization"));
    let clients = usize::try_from(setting("SLOW_CLIENTS", 39)).expect("a number of threads");
    let slow: Vec<(&'static str, JoinHandle<bool>)> = kinds
        .iter()
        .cycle()
        .take(clients)
        .map(|kind| {
            let (kind, address) = (kind.clone(), server.address().to_owned());
            (kind.name, thread::spawn(move || is_gone(&address, &kind)))
        })
        .collect();
    let mut reported = 0;
    while slow.iter().any(|(_, thread)| !thread.is_finished()) {
        books::report(&client, &catalog::event(catalog::ACME, 1));
        reported += 1;
        thread::sleep(Duration::from_millis(50));
    }
    let stayed: Vec<&str> =
        slow.into_iter().filter_map(|(name, thread)| (!thread.join().expect("no panic")).then_some(name)).collect();
    assert!(stayed.is_empty(), "{stayed:?}");
    let quantity = &catalog::current_invoice(&client, &contract)["products"][0]["line_items"][1]["quantity"];
    assert_eq!(quantity, &json!(reported));
}
