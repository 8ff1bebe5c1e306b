//! Clients that send or read too slowly, or not at all: other clients are served in the meantime, and each slow client is
//! disconnected after its limit. The limit is 10 seconds for a head, 30 seconds for a request, and about a minute for a client
//! that reads nothing. `SLOW_CLIENTS=n` sets the number of clients.
//!
//! A connection without a request in progress is closed after the keep-alive time and the time for a head, whatever its client
//! sends. `STALLED_CLIENTS=n` sets the number of such connections.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use acceptance::random::setting;
use acceptance::{Database, Server, books, catalog};
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

/// Returns whether an operation on a connection only had to wait.
fn waits(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Sends and reads until the server closes the connection. Returns whether the server did.
fn is_gone(address: &str, slow: &Slow) -> bool {
    let until = Instant::now() + PATIENCE;
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PAUSE)).expect("a timeout");
    stream.set_write_timeout(Some(PAUSE)).expect("a timeout");
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

/// A client that opens a connection and then completes no further request.
struct StalledKind {
    name: &'static str,
    /// Whether the client first sends a complete request and reads the response.
    is_answered: bool,
    /// The bytes that the client then sends at once.
    then: &'static str,
    /// The bytes that the client sends every second.
    drip: &'static str,
}

static STALLED: [StalledKind; 6] = [
    StalledKind { name: "silence after the connection", is_answered: false, then: "", drip: "" },
    StalledKind { name: "silence after a response", is_answered: true, then: "", drip: "" },
    StalledKind { name: "a second head that stops", is_answered: true, then: "GET /health/live HTTP/1.1\r\nHost: x", drip: "" },
    StalledKind { name: "a second head that drips", is_answered: true, then: "GET /health/live HTTP/1.1\r\nX: ", drip: "x" },
    StalledKind { name: "a request line that drips", is_answered: true, then: "GET /", drip: "x" },
    StalledKind { name: "empty lines before a request", is_answered: true, then: "", drip: "\r\n" },
];

const LIVE: &str = "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n";
/// The time limit of one response, which is far more than the server needs.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// The time limit for the end of all stalled connections. The limit of the server is 16 seconds with the settings of the test.
const STALLED_LIMIT: Duration = Duration::from_secs(60);

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(ANSWER_LIMIT)).expect("a timeout");
    stream.set_write_timeout(Some(ANSWER_LIMIT)).expect("a timeout");
    stream
}

/// Returns the start of the response to a request.
fn response_to(stream: &mut TcpStream, request: &str) -> String {
    let mut buffer = [0; 4096];
    let read = stream.write_all(request.as_bytes()).and_then(|()| stream.read(&mut buffer));
    read.map_or_else(|error| error.to_string(), |length| String::from_utf8_lossy(&buffer[..length]).into_owned())
}

#[track_caller]
fn assert_live(stream: &mut TcpStream) {
    let response = response_to(stream, LIVE);
    assert!(response.starts_with("HTTP/1.1 200"), "{response:?}");
}

fn stall(address: &str, kind: &StalledKind) -> TcpStream {
    let mut stream = connect(address);
    if kind.is_answered {
        assert_live(&mut stream);
    }
    stream.write_all(kind.then.as_bytes()).expect("the server still reads");
    stream.set_nonblocking(true).expect("an option");
    stream
}

/// Sends the bytes and reads what arrived. Returns whether the connection is open.
fn is_open(stream: &mut TcpStream, drip: &str) -> bool {
    if !drip.is_empty() && stream.write(drip.as_bytes()).is_err_and(|error| !waits(&error)) {
        return false;
    }
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return waits(&error),
        }
    }
}

#[test]
fn a_connection_without_a_complete_request_is_closed_whatever_was_sent_on_it() {
    let database = Database::sqlite();
    // The connections need more file descriptors than this soft limit, so the server must raise it.
    let limited = ["sh", "-c", "ulimit -Sn 1024 && exec \"$@\"", "sh"];
    let server = Server::start_under(&limited, &database, &["--keep-alive-seconds", "5"], &[]);
    let clients = usize::try_from(setting("STALLED_CLIENTS", 600)).expect("a number of connections");
    let started = Instant::now();
    let mut open: Vec<(&StalledKind, TcpStream)> =
        STALLED.iter().cycle().take(clients).map(|kind| (kind, stall(server.address(), kind))).collect();
    let mut last_closed: BTreeMap<&str, Duration> = BTreeMap::new();
    while !open.is_empty() && started.elapsed() < STALLED_LIMIT {
        assert_live(&mut connect(server.address()));
        open.retain_mut(|(kind, stream)| {
            let is_open = is_open(stream, kind.drip);
            if !is_open {
                last_closed.insert(kind.name, started.elapsed());
            }
            is_open
        });
        thread::sleep(Duration::from_secs(1));
    }
    eprintln!("the last of {clients} stalled connections were closed after: {last_closed:?}");
    let stayed: Vec<&str> = open.iter().map(|(kind, _)| kind.name).collect();
    assert!(stayed.is_empty(), "{} connections are still open after {STALLED_LIMIT:?}: {stayed:?}", stayed.len());
}

#[test]
fn a_client_that_opens_stalled_connections_without_end_leaves_places_for_others() {
    let database = Database::sqlite();
    // With this hard limit, the server accepts 352 connections.
    let limited = ["sh", "-c", "ulimit -n 1024 && exec \"$@\"", "sh"];
    let server = Server::start_under(&limited, &database, &[], &[]);
    let kind = STALLED.iter().find(|kind| kind.name == "a second head that stops").expect("a kind");
    let mut open: Vec<TcpStream> = Vec::new();
    for opened in 0..700 {
        open.push(stall(server.address(), kind));
        if opened % 20 == 0 {
            // A client that comes later is answered, and its connection stays open while it has a request in progress.
            assert_live(&mut connect(server.address()));
        }
    }
    open.retain_mut(|stream| is_open(stream, ""));
    assert!((300..352).contains(&open.len()), "{} of 700 stalled connections are open", open.len());
}

#[test]
fn a_request_in_progress_is_not_a_stalled_connection() {
    let database = Database::sqlite();
    let server = Server::start_with(&database, &["--keep-alive-seconds", "1"]);
    let mut stream = connect(server.address());
    assert_live(&mut stream);
    let head = "POST /auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("the server reads");
    // Without a request in progress, the server would close the connection after 12 seconds.
    thread::sleep(Duration::from_secs(16));
    let response = response_to(&mut stream, "{}");
    assert!(response.contains("\"code\""), "the response is a problem document: {response:?}");
    assert_live(&mut stream);
}

#[test]
fn a_low_limit_of_open_files_is_reported_at_the_start() {
    let database = Database::sqlite();
    let server = Server::start_under(&["sh", "-c", "ulimit -n 1024 && exec \"$@\"", "sh"], &database, &[], &[]);
    let log = server.stderr();
    assert!(log.contains("the limit of open files is 1024") && log.contains("LimitNOFILE="), "{log}");
}
