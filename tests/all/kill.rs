//! `kill -9` under load: every acknowledged event exists exactly once, and the numbers have no gaps.

use std::collections::{HashMap, HashSet};

use acceptance::load::{Load, LoadResult};
use acceptance::{Client, Database, Server, catalog};
use serde_json::{Value, json};

const THREADS: usize = 4;
/// The number of new contracts of a thread in a round. Their first events open documents while the server is killed.
const NEW_CONTRACTS: usize = 6;
/// Every thread reports its own quantity to the one shared document, so that the sum shows how often each thread did.
const QUANTITY_STEP: u64 = 1000;

#[test]
fn sqlite_keeps_every_acknowledged_event_once_through_kill_9() {
    kill_and_restart(&Database::sqlite(), 5);
}

#[test]
fn postgres_keeps_every_acknowledged_event_once_through_kill_9() {
    kill_and_restart(&Database::postgres(), 3);
}

fn kill_and_restart(database: &Database, rounds: usize) {
    let mut server = Server::start(database);
    let mut client = Client::new_key(&server);
    catalog::make(&client);
    let shared = catalog::make_contract(&client, &catalog::contract("acme"));
    let mut books = Books::default();
    for round in 0..rounds {
        for new in 0..THREADS * NEW_CONTRACTS {
            let customer = format!("new-{round}-{new}");
            catalog::make_customer(&client, &customer);
            catalog::make_contract(&client, &catalog::contract(&customer));
        }
        let load = Load::start(&client, THREADS, move |thread, index| event(round, thread, index));
        load.wait_for(20 + 17 * round);
        server.kill_9();
        let reported = load.join();
        server = Server::start(database);
        client = client.at(&server);
        books.check(round, &client, &shared, &reported);
    }
}

/// Returns an event. Every third event is the first of a new contract, while new contracts are left.
fn event(round: usize, thread: usize, index: usize) -> Value {
    if index % 3 == 2 && index / 3 < NEW_CONTRACTS {
        catalog::event(&format!("new-{round}-{}", thread * NEW_CONTRACTS + index / 3), 1)
    } else {
        catalog::event("acme", QUANTITY_STEP.pow(u32::try_from(thread).expect("a small number of threads")))
    }
}

/// The expected content of the database, according to the acknowledged events.
#[derive(Default)]
struct Books {
    event_refs: HashSet<String>,
    /// The number of times that each thread's quantity is on the shared document.
    counted: [u64; THREADS],
}

impl Books {
    fn check(&mut self, round: usize, client: &Client, shared: &str, reported: &[LoadResult]) {
        let documents = catalog::documents(client);
        let numbers: Vec<u64> = (1..).take(documents.len()).collect();
        assert_eq!(catalog::numbers(&documents, "UB-INV"), numbers, "round {round}: no gap, no duplicate");
        let by_customer: HashMap<&str, &Value> = documents
            .iter()
            .map(|document| (document["customer"]["customer_ref"].as_str().expect("a customer"), document))
            .collect();
        assert_eq!(by_customer.len(), documents.len(), "round {round}: one document for each contract");

        let invoice = catalog::current_invoice(client, shared);
        let quantity: u64 = invoice["products"][0]["line_items"][1]["quantity"].to_string().parse().expect("a whole quantity");
        for (thread, reported) in reported.iter().enumerate() {
            assert_eq!(reported.refused, [], "round {round}");
            for (event, result) in &reported.acknowledged {
                let event_ref = result["event_ref"].as_str().expect("a reference").to_owned();
                let stored = client.get(&format!("/api/usage/event/{event_ref}")).ok();
                assert_eq!((&stored["quantity"], &stored["customer_ref"]), (&event["quantity"], &event["customer_ref"]));
                assert!(self.event_refs.insert(event_ref), "an event reference is duplicated");
                let document = by_customer[event["customer_ref"].as_str().expect("a customer")];
                assert_eq!(document["document_ref"], result["related_document_ref"]);
                assert_eq!(document["document_number"], result["related_document_numbers"]);
            }
            self.check_shared(round, thread, quantity, reported);
        }
        for (customer, document) in by_customer.iter().filter(|(customer, _)| customer.starts_with("new-")) {
            let quantity = &document["products"][0]["line_items"][1]["quantity"];
            assert_eq!(*quantity, json!(1), "round {round}: the document of {customer} contains its one event");
        }
    }

    /// Checks a thread's events on the shared document: the acknowledged ones, and possibly the event whose response never came.
    fn check_shared(&mut self, round: usize, thread: usize, quantity: u64, reported: &LoadResult) {
        let on_shared = |event: &Value| event["customer_ref"] == "acme";
        let acknowledged = reported.acknowledged.iter().filter(|(event, _)| on_shared(event)).count();
        let in_doubt = reported.in_doubt.iter().filter(|event| on_shared(event)).count();
        let least = self.counted[thread] + u64::try_from(acknowledged).expect("a small number of events");
        let most = least + u64::try_from(in_doubt).expect("at most one event");
        let place = QUANTITY_STEP.pow(u32::try_from(thread).expect("a small number of threads"));
        let stored = quantity / place % QUANTITY_STEP;
        assert!(
            (least..=most).contains(&stored),
            "round {round}, thread {thread}: {stored} events are counted, not {least} to {most}"
        );
        self.counted[thread] = stored;
    }
}
