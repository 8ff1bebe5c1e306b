//! More events than a server accepts, because its database is blocked. Meanwhile the surplus is rejected with `Retry-After` and
//! not stored, accepted events are stored once, and the memory doesn't grow. Afterwards the server works as before. `OVERLOADS=n`
//! sets the number of overloads.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use acceptance::cluster::wait_until;
use acceptance::random::setting;
use acceptance::{Client, Database, Server, books, catalog, on_both_databases};

on_both_databases!(a_surplus_is_told_to_come_again_and_what_is_taken_is_exact);

const CONNECTIONS: usize = 2000;
/// The minimum number of rejected events: 512 events wait, and on PostgreSQL two groups of 256 are being written.
const SURPLUS: usize = CONNECTIONS - 512 - 2 * 256;
const THREADS: usize = 8;
const CUSTOMERS: usize = 8;
/// The time limit of a response, which is far more than it needs.
const PATIENCE: Duration = Duration::from_secs(60);
/// The maximum memory, in percent of the memory after the first overload.
const MAX_PERCENT: u64 = 125;

/// The responses on a thread's connections.
#[derive(Default)]
struct Answered {
    statuses: BTreeMap<u16, usize>,
    event_refs: Vec<String>,
    without_retry_after: usize,
}

fn a_surplus_is_told_to_come_again_and_what_is_taken_is_exact(database: &Database) {
    let server = Server::start_in(
        database,
        &[],
        &[("USAGE_BILLING_ADMIN_PASSWORD", acceptance::server::ADMIN_PASSWORD), ("RUST_LOG", "warn")],
    );
    let client = Client::new_key(&server);
    catalog::make_plan(&client);
    let contracts: Vec<String> = (0..CUSTOMERS)
        .map(|number| {
            catalog::make_customer(&client, &customer(number));
            catalog::make_contract(&client, &catalog::contract(&customer(number)))
        })
        .collect();
    let mut answered: Vec<Answered> = Vec::new();
    let mut memory = Vec::new();
    for _ in 0..setting("OVERLOADS", 4) {
        answered.extend(overload(&server, &client, database));
        memory.push(resident_kb(&server));
    }
    // Every request has its response, so the next event is accepted at once.
    let last = books::report(&client, &catalog::event(&customer(0), 1));

    eprintln!("{memory:?} KB");
    assert!(memory.iter().all(|after| 100 * after <= MAX_PERCENT * memory[0]), "{memory:?} KB");
    let count = |status| answered.iter().filter_map(|answered| answered.statuses.get(&status)).sum::<usize>();
    let (taken, refused) = (count(200), count(503));
    let others: Vec<_> =
        answered.iter().flat_map(|answered| &answered.statuses).filter(|(status, _)| ![200, 503].contains(*status)).collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(taken > 0 && refused > 0, "{taken} were accepted, {refused} rejected");
    assert_eq!(answered.iter().map(|answered| answered.without_retry_after).sum::<usize>(), 0, "each 503 has Retry-After");
    eprintln!("{taken} taken, {refused} refused");
    let mut event_refs: HashSet<&str> = answered.iter().flat_map(|answered| &answered.event_refs).map(String::as_str).collect();
    assert_eq!(event_refs.len(), taken, "each is a separate event");
    event_refs.insert(last["event_ref"].as_str().expect("a reference"));
    let report = client.get("/api/usage/report").text;
    let stored: HashSet<&str> = report.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert!(stored == event_refs, "{} events are stored, {} were accepted", stored.len(), event_refs.len());
    assert_eq!(report.lines().count(), event_refs.len() + 1, "each event once");
    let billed: usize = contracts.iter().map(|contract| quantity(&client, contract)).sum();
    assert_eq!(billed, event_refs.len(), "each event is on its invoice");
}

fn customer(number: usize) -> String {
    format!("c-{number}")
}

fn quantity(client: &Client, contract: &str) -> usize {
    let invoice = catalog::current_invoice(client, contract);
    invoice["products"][0]["line_items"][1]["quantity"].to_string().parse().expect("a whole quantity")
}

/// Sends requests on all connections while the database accepts no writes. The rejections arrive before writes are possible
/// again, and the server is ready in the meantime.
fn overload(server: &Server, client: &Client, database: &Database) -> Vec<Answered> {
    let (reported, is_held) = (AtomicUsize::new(0), AtomicBool::new(true));
    let held = database.hold_writes("usage_events");
    thread::scope(|threads| {
        let ask = |thread| {
            let (reported, is_held) = (&reported, &is_held);
            move || {
                let connections: Vec<_> = (0..CONNECTIONS / THREADS).map(|_| sent(server, client, thread)).collect();
                let mut before = 0;
                while is_held.load(Ordering::SeqCst) {
                    let now = connections.iter().filter(|connection| is_answered(connection.get_ref())).count();
                    reported.fetch_add(now - before, Ordering::SeqCst);
                    before = now;
                    thread::sleep(Duration::from_millis(10));
                }
                let mut answered = Answered::default();
                connections.into_iter().for_each(|mut connection| answered.read(&mut connection));
                answered
            }
        };
        let asking: Vec<_> = (0..THREADS).map(|thread| threads.spawn(ask(thread))).collect();
        wait_until("the surplus is rejected", || reported.load(Ordering::SeqCst) >= SURPLUS);
        assert_eq!(client.get("/health/ready").status, 200, "a busy server is ready");
        drop(held);
        is_held.store(false, Ordering::SeqCst);
        asking.into_iter().map(|thread| thread.join().expect("a thread")).collect()
    })
}

/// Opens a connection of its own and sends an event on it.
fn sent(server: &Server, client: &Client, thread: usize) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(server.address()).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let body = catalog::event(&customer(thread % CUSTOMERS), 1).to_string();
    let head = format!(
        "POST /api/usage/event HTTP/1.1\r\nHost: localhost\r\nVersion: V0\r\nAuthorization: {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        client.header("Authorization"),
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).expect("the server reads");
    BufReader::with_capacity(1024, stream)
}

/// Returns whether a response has begun to arrive.
fn is_answered(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket");
    let is_there = stream.peek(&mut [0]).is_ok_and(|bytes| bytes > 0);
    stream.set_nonblocking(false).expect("a socket");
    is_there
}

impl Answered {
    /// Reads the next response on a connection.
    fn read(&mut self, connection: &mut BufReader<TcpStream>) {
        let mut line = || {
            let mut line = String::new();
            connection.read_line(&mut line).expect("a response");
            line.trim_end().to_owned()
        };
        let status: u16 = line().split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let (mut length, mut has_retry_after) = (0, false);
        loop {
            let header = line().to_ascii_lowercase();
            let Some((name, value)) = header.split_once(':') else { break };
            match name {
                "content-length" => length = value.trim().parse().expect("a length"),
                "retry-after" => has_retry_after = true,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        connection.read_exact(&mut body).expect("a body");
        *self.statuses.entry(status).or_default() += 1;
        if status == 200 {
            let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
            self.event_refs.push(body["event_ref"].as_str().expect("a reference").to_owned());
        } else {
            self.without_retry_after += usize::from(!has_retry_after);
        }
    }
}

fn resident_kb(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("the status of the process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the resident memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
