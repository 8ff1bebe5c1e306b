//! Crashes of the service and of its database under load: every acknowledged event exists exactly once, because requests in doubt
//! are sent again under their keys. `SEED` begins with other numbers; `KILLS` and `CRASHES` set the number of crashes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use acceptance::cluster::{Cluster, wait_until};
use acceptance::random::{Random, setting};
use acceptance::{Answer, Client, Database, Server, catalog};
use serde_json::{Value, json};

const THREADS: usize = 4;

#[test]
fn sqlite_loses_and_doubles_nothing_through_200_kills() {
    kill(&Database::sqlite(), setting("KILLS", 200));
}

#[test]
fn postgres_loses_and_doubles_nothing_through_50_kills() {
    kill(&Database::postgres(), setting("KILLS", 200) / 4);
}

/// Kills the server with `kill -9` at any moment, starts it again and repeats the requests in doubt.
fn kill(database: &Database, rounds: u64) {
    let mut random = seeded();
    let mut server = Server::start(database);
    let mut client = Client::new_key(&server);
    let mut books = Books::new(&client);
    for round in 0..rounds {
        let senders = Senders::start(&[&client; THREADS], &format!("round-{round}"), &books.customers);
        senders.wait_for(usize::try_from(random.between(0, 12)).expect("a small count"));
        sleep(Duration::from_micros(random.below(5_000)));
        // The books are verified before the server starts again.
        server.kill_9();
        let sent = senders.join();
        server = Server::start(database);
        client = client.at(&server);
        books.settle(&client, sent);
    }
    assert!(books.sent > rounds, "events were sent in every round");
}

#[test]
fn postgres_that_crashes_10_times_loses_and_doubles_nothing() {
    let mut random = seeded();
    let mut cluster = Cluster::start();
    let database = cluster.database();
    let server = Server::start(&database);
    let client = Client::new_key(&server);
    let mut books = Books::new(&client);
    let mut turned_away = 0;
    for round in 0..setting("CRASHES", 10) {
        let senders = Senders::start(&[&client; THREADS], &format!("crash-{round}"), &books.customers);
        senders.wait_for(usize::try_from(random.between(5, 40)).expect("a small count"));
        cluster.crash();
        sleep(Duration::from_millis(random.below(200)));
        cluster.up();
        let after = senders.taken() + 20;
        senders.wait_for(after);
        let sent = senders.end();
        turned_away += sent.iter().map(|sent| sent.turned_away).sum::<usize>();
        books.settle(&client, sent);
    }
    assert!(turned_away > 0, "no request was rejected in a crash");
    drop(server);
    drop(database);
}

#[test]
fn a_restart_of_the_database_is_survived_without_one_of_the_service() {
    let mut cluster = Cluster::start();
    let database = cluster.database();
    let server = Server::start(&database);
    let client = Client::new_key(&server);
    let mut books = Books::new(&client);
    // Each thread has used a connection of the pool.
    let senders = Senders::start(&[&client; 8], "restart", &books.customers);
    senders.wait_for(100);
    cluster.stop();
    wait_until("the server reports that it isn't ready", || client.get("/health/ready").status == 503);
    wait_until("requests are rejected", || senders.turned_away.load(Ordering::SeqCst) > 0);
    let read = client.get("/api/customers/filter");
    assert_eq!((read.status, read.headers.contains_key("Retry-After")), (503, true), "{}", read.text);
    cluster.up();
    wait_until("the server is ready", || client.get("/health/ready").status == 200);
    let after = senders.taken() + 100;
    senders.wait_for(after);
    books.settle(&client, senders.end());
    // No connection from before the restart is left in the pool.
    let senders = Senders::start(&[&client; 8], "after", &books.customers);
    senders.wait_for(200);
    let sent = senders.end();
    assert!(sent.iter().all(|sent| sent.turned_away == 0), "a request used a connection from before the restart");
    books.settle(&client, sent);
    drop(server);
    drop(database);
}

#[test]
fn a_standby_that_takes_over_has_what_was_acknowledged_and_is_found_without_a_restart_of_the_service() {
    let primary = Cluster::start();
    Database::there(&primary.url("127.0.0.1")).execute("CREATE DATABASE billing");
    let standby = primary.standby();
    let [host, other] = [&primary, &standby].map(Cluster::host);
    let both = format!("postgres://postgres@{host},{other}/billing?target_session_attrs=read-write");
    let database = Database::there(&both);
    let server = Server::start(&database);
    let client = Client::new_key(&server);
    let mut books = Books::new(&client);
    let senders = Senders::start(&[&client; 8], "failover", &books.customers);
    senders.wait_for(200);
    primary.crash();
    wait_until("requests are rejected", || senders.turned_away.load(Ordering::SeqCst) > 0);
    standby.promote();
    let after = senders.taken() + 200;
    senders.wait_for(after);
    wait_until("the server is ready", || client.get("/health/ready").status == 200);
    books.settle(&client, senders.end());
    drop(server);
}

fn seeded() -> Random {
    let seed = setting("SEED", 1);
    eprintln!("SEED={seed}");
    Random::new(seed)
}

/// The events that a thread has sent.
#[derive(Default)]
struct Sent {
    /// The accepted events with their responses.
    taken: Vec<(Value, Value)>,
    /// The event whose response never came.
    in_doubt: Option<Value>,
    /// The number of responses that asked for a later retry.
    turned_away: usize,
}

/// Threads that send events of quantity 1 under keys, each event until it is accepted.
struct Senders {
    stop: Arc<AtomicBool>,
    taken: Arc<AtomicUsize>,
    turned_away: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<Sent>>,
}

impl Senders {
    fn start(clients: &[&Client], name: &str, customers: &[String]) -> Self {
        let (stop, taken, turned_away) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let threads = clients.iter().enumerate().map(|(thread, client)| {
            let (stop, taken, turned_away) = (Arc::clone(&stop), Arc::clone(&taken), Arc::clone(&turned_away));
            let (client, customers, name) = (client.with_own_connections(), customers.to_vec(), format!("{name}-{thread}"));
            std::thread::spawn(move || {
                let mut sent = Sent::default();
                for index in 0.. {
                    if stop.load(Ordering::SeqCst) {
                        break;
                    }
                    let mut event = catalog::event(&customers[index % customers.len()], 1);
                    event["idempotency_key"] = json!(format!("{name}-{index}"));
                    let answer = loop {
                        let answer = client.try_post("/api/usage/event", &event).ok();
                        if !answer.as_ref().is_some_and(is_told_to_come_again) {
                            break answer;
                        }
                        sent.turned_away += 1;
                        turned_away.fetch_add(1, Ordering::SeqCst);
                        sleep(Duration::from_millis(20));
                    };
                    let Some(answer) = answer else {
                        sent.in_doubt = Some(event);
                        break;
                    };
                    sent.taken.push((event, answer.ok()));
                    taken.fetch_add(1, Ordering::SeqCst);
                }
                sent
            })
        });
        Self { threads: threads.collect(), stop, taken, turned_away }
    }

    fn taken(&self) -> usize {
        self.taken.load(Ordering::SeqCst)
    }

    fn wait_for(&self, taken: usize) {
        wait_until("events are accepted", || self.taken() >= taken);
    }

    fn end(self) -> Vec<Sent> {
        self.stop.store(true, Ordering::SeqCst);
        self.join()
    }

    fn join(self) -> Vec<Sent> {
        self.threads.into_iter().map(|thread| thread.join().expect("the thread doesn't panic")).collect()
    }
}

/// Returns whether the response is a 503, which must have a `Retry-After` header.
fn is_told_to_come_again(answer: &Answer) -> bool {
    assert!(answer.status != 503 || answer.headers.contains_key("Retry-After"), "{}", answer.text);
    answer.status == 503
}

/// The expected content of the database.
struct Books {
    customers: Vec<String>,
    contracts: Vec<String>,
    sent: u64,
}

impl Books {
    fn new(client: &Client) -> Self {
        catalog::make_plan(client);
        let customers: Vec<String> = (0..3).map(|n| format!("customer-{n}")).collect();
        let contracts = customers.iter().map(|customer| {
            catalog::make_customer(client, customer);
            catalog::make_contract(client, &catalog::contract(customer))
        });
        Self { contracts: contracts.collect(), customers, sent: 0 }
    }

    /// Repeats the requests in doubt, and one acknowledged event of each thread. Then checks that every event exists once.
    fn settle(&mut self, client: &Client, sent: Vec<Sent>) {
        for Sent { taken, in_doubt, .. } in sent {
            if let Some((event, answered)) = taken.last() {
                assert_eq!(client.post("/api/usage/event", event).ok(), *answered, "a key has one response");
            }
            if let Some(event) = &in_doubt {
                client.post("/api/usage/event", event).ok();
            }
            self.sent += u64::try_from(taken.len() + usize::from(in_doubt.is_some())).expect("a small count");
        }
        assert_eq!(self.billed(client), self.sent, "each sent event is counted once");
    }

    /// Returns the number of events that all invoices bill together. Checks that each invoice adds up.
    fn billed(&self, client: &Client) -> u64 {
        let quantities = self.contracts.iter().map(|contract| {
            let invoices = client.get(&format!("/api/contracts/invoices/current/{contract}")).ok();
            // Without an event, there may be no document yet.
            invoices.as_array().expect("a list").first().map_or(0, adds_up)
        });
        quantities.sum()
    }
}

/// Returns the quantity on an invoice of the API plan. Checks the lines against the total and the price of the quantity.
fn adds_up(invoice: &Value) -> u64 {
    let lines = invoice["products"][0]["line_items"].as_array().expect("lines");
    let quantity: u64 = lines[1]["quantity"].to_string().parse().expect("a whole quantity");
    // The graduated tiers of the plan, in cents.
    let usage = quantity.min(100) * 10 + quantity.clamp(100, 1000).saturating_sub(100) * 5 + quantity.saturating_sub(1000);
    let amounts: Vec<u64> = lines.iter().map(|line| cents(&line["amount"])).collect();
    assert_eq!(amounts, [4900, usage], "{invoice}");
    assert_eq!(cents(&invoice["sub_total"]), 4900 + usage, "{invoice}");
    quantity
}

fn cents(amount: &Value) -> u64 {
    amount.to_string().replace(['.', '"'], "").parse().expect("an amount with cents")
}
