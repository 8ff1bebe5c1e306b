//! More events than a server takes in, because its database stands still: the surplus is told to come again while it does, nothing
//! of that is stored, what is taken is stored once, the memory stays what it was, and then all is as before. `OVERLOADS=n` makes more.

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
/// The least that is refused of them: 512 events wait, and on PostgreSQL two groups of 256 are being written.
const SURPLUS: usize = CONNECTIONS - 512 - 2 * 256;
const THREADS: usize = 8;
const CUSTOMERS: usize = 8;
/// How long an answer may take. Far more than it needs.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most that the memory may be, in percent of what it was after the first time.
const MAX_PERCENT: u64 = 125;

/// What a thread's connections were answered.
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
    // Everybody was answered: the next is taken at once.
    let last = books::report(&client, &catalog::event(&customer(0), 1));

    eprintln!("{memory:?} KB");
    assert!(memory.iter().all(|after| 100 * after <= MAX_PERCENT * memory[0]), "{memory:?} KB");
    let count = |status| answered.iter().filter_map(|answered| answered.statuses.get(&status)).sum::<usize>();
    let (taken, refused) = (count(200), count(503));
    let others: Vec<_> =
        answered.iter().flat_map(|answered| &answered.statuses).filter(|(status, _)| ![200, 503].contains(*status)).collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(taken > 0 && refused > 0, "{taken} were taken, {refused} refused");
    assert_eq!(answered.iter().map(|answered| answered.without_retry_after).sum::<usize>(), 0, "each is told when to come again");
    eprintln!("{taken} taken, {refused} refused");
    let mut event_refs: HashSet<&str> = answered.iter().flat_map(|answered| &answered.event_refs).map(String::as_str).collect();
    assert_eq!(event_refs.len(), taken, "each is an event of its own");
    event_refs.insert(last["event_ref"].as_str().expect("a reference"));
    let report = client.get("/api/usage/report").text;
    let stored: HashSet<&str> = report.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert!(stored == event_refs, "{} events are stored, {} were taken", stored.len(), event_refs.len());
    assert_eq!(report.lines().count(), event_refs.len() + 1, "each once");
    let billed: usize = contracts.iter().map(|contract| quantity(&client, contract)).sum();
    assert_eq!(billed, event_refs.len(), "each is on its invoice");
}

fn customer(number: usize) -> String {
    format!("c-{number}")
}

fn quantity(client: &Client, contract: &str) -> usize {
    let invoice = catalog::current_invoice(client, contract);
    invoice["products"][0]["line_items"][1]["quantity"].to_string().parse().expect("a whole quantity")
}

/// Asks by all connections at once while nothing can be written. Who is refused is told so before that is over, and the server is
/// ready meanwhile.
fn overload(server: &Server, client: &Client, database: &Database) -> Vec<Answered> {
    let (told, is_held) = (AtomicUsize::new(0), AtomicBool::new(true));
    let held = database.hold_writes("usage_events");
    thread::scope(|threads| {
        let ask = |thread| {
            let (told, is_held) = (&told, &is_held);
            move || {
                let connections: Vec<_> = (0..CONNECTIONS / THREADS).map(|_| sent(server, client, thread)).collect();
                let mut before = 0;
                while is_held.load(Ordering::SeqCst) {
                    let now = connections.iter().filter(|connection| is_answered(connection.get_ref())).count();
                    told.fetch_add(now - before, Ordering::SeqCst);
                    before = now;
                    thread::sleep(Duration::from_millis(10));
                }
                let mut answered = Answered::default();
                connections.into_iter().for_each(|mut connection| answered.read(&mut connection));
                answered
            }
        };
        let asking: Vec<_> = (0..THREADS).map(|thread| threads.spawn(ask(thread))).collect();
        wait_until("the surplus is told to come again", || told.load(Ordering::SeqCst) >= SURPLUS);
        assert_eq!(client.get("/health/ready").status, 200, "busy is not broken");
        drop(held);
        is_held.store(false, Ordering::SeqCst);
        asking.into_iter().map(|thread| thread.join().expect("a thread")).collect()
    })
}

/// A connection of its own on which an event was sent.
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

/// Whether an answer has begun to arrive.
fn is_answered(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket");
    let is_there = stream.peek(&mut [0]).is_ok_and(|bytes| bytes > 0);
    stream.set_nonblocking(false).expect("a socket");
    is_there
}

impl Answered {
    /// Reads the next answer of a connection.
    fn read(&mut self, connection: &mut BufReader<TcpStream>) {
        let mut line = || {
            let mut line = String::new();
            connection.read_line(&mut line).expect("an answer");
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
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("its process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
