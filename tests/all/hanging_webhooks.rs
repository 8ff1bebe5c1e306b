//! Webhook endpoints that accept requests and never answer them: everybody else is served meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use acceptance::hooks::{Endpoint, HangingReceiver, Receiver};
use acceptance::{Client, Database, Server, catalog};
use serde_json::{Value, json};

/// The endpoints of an organization.
const ENDPOINTS: usize = 16;
/// The notifications that each of them gets again.
const BACKLOG: usize = 300;
const NEIGHBORS_DELIVERIES: usize = 20;
/// The tests that are requested at the same time, more than the server has permits for database connections.
const TESTS: usize = 16;

/// Creates a contract, which is a notification.
fn sell(client: &Client, customer: &str) {
    catalog::make_customer(client, customer);
    catalog::make_contract(client, &catalog::contract(customer));
}

/// Another organization's deliveries arrive although all endpoints of the first one hang, each with a backlog.
fn sixteen_endpoints_hang_with_a_backlog(database: &Database) {
    let server = Server::start(database);
    let (attacker, neighbor) = (Client::new_key(&server), Client::second_organization(database, &server));
    let neighbor = Client::key(&server, &neighbor.generate_key(&json!({})));
    for client in [&attacker, &neighbor] {
        catalog::make_plan(client);
    }
    let (hanging, receiver) = (HangingReceiver::start(), Receiver::start());
    for n in 0..BACKLOG {
        sell(&attacker, &format!("customer-{n}"));
    }
    // The notifications have positions when the last one has one.
    acceptance::books::feed(database, &attacker, 0);
    for _ in 0..ENDPOINTS {
        let endpoint = Endpoint::create_at(&attacker, &hanging.url(), &json!({}));
        let replay = attacker.post(&endpoint.path("replay/"), &json!({"after": 0})).ok();
        assert!(replay["scheduled"].as_u64().is_some_and(|scheduled| scheduled >= BACKLOG as u64), "{replay}");
    }
    Endpoint::create(&neighbor, &receiver, &json!({}));
    hanging.wait_for(ENDPOINTS);
    let mut millis = Vec::new();
    for n in 0..NEIGHBORS_DELIVERIES {
        let before = receiver.hooks().len();
        let began = Instant::now();
        sell(&neighbor, &format!("customer-{n}"));
        receiver.wait_for(before + 1);
        millis.push(began.elapsed().as_millis());
    }
    millis.sort_unstable();
    let within = millis.iter().filter(|one| **one <= 1000).count();
    eprintln!("another organization: {within} of {NEIGHBORS_DELIVERIES} deliveries within a second, milliseconds: {millis:?}");
}

/// Tests of an endpoint that hangs hold nothing that reads and writes of any organization need.
fn tests_of_an_endpoint_hang(database: &Database) {
    let server = Server::start(database);
    let (client, neighbor) = (Client::new_key(&server), Client::second_organization(database, &server));
    let neighbor = Client::key(&server, &neighbor.generate_key(&json!({})));
    let hanging = HangingReceiver::start();
    let endpoint = Endpoint::create_at(&client, &hanging.url(), &json!({"enabled": false}));
    let (path, finished) = (endpoint.path("test/"), AtomicUsize::new(0));
    let answers: Vec<(u16, Value)> = thread::scope(|scope| {
        let test = || {
            let answer = client.with_own_connections().post_nothing(&path);
            finished.fetch_add(1, Ordering::Relaxed);
            (answer.status, answer.body)
        };
        let tests: Vec<_> = (0..TESTS).map(|_| scope.spawn(test)).collect();
        hanging.wait_for(1);
        let mut served = 0;
        while finished.load(Ordering::Relaxed) < TESTS {
            for one in [&client, &neighbor] {
                one.get("/api/customers/filter").ok();
                one.post("/api/customers/", &json!({"name": "Acme"})).ok();
            }
            served += 1;
        }
        eprintln!("{served} times two reads and two writes while {TESTS} tests wait");
        assert!(served > 0, "the tests have ended before another request");
        tests.into_iter().map(|test| test.join().expect("no panic")).collect()
    });
    let refused = answers.iter().filter(|(status, body)| *status == 409 && body["code"] == "webhook_test_in_progress").count();
    let attempts = answers.iter().filter(|(status, body)| *status == 200 && body["outcome"] == "TIMED_OUT").count();
    // One test waits for its endpoint for 15 seconds, and the others for their turn for five.
    assert_eq!((attempts, refused), (1, TESTS - 1), "{answers:?}");
    assert_eq!(hanging.count(), 1);
}

#[test]
fn sixteen_endpoints_that_hang_with_a_backlog_delay_no_other_organization_on_sqlite() {
    sixteen_endpoints_hang_with_a_backlog(&Database::sqlite());
}

#[test]
fn sixteen_endpoints_that_hang_with_a_backlog_delay_no_other_organization_on_postgres() {
    sixteen_endpoints_hang_with_a_backlog(&Database::postgres());
}

#[test]
fn tests_of_an_endpoint_that_hangs_stop_nobody_on_sqlite() {
    tests_of_an_endpoint_hang(&Database::sqlite());
}

#[test]
fn tests_of_an_endpoint_that_hangs_stop_nobody_on_postgres() {
    tests_of_an_endpoint_hang(&Database::postgres());
}
