//! Concurrent requests on one server and on two: document numbers without gaps or duplicates, and sums without lost events.

use std::collections::HashMap;
use std::sync::Barrier;
use std::thread;

use acceptance::client::Request;
use acceptance::load::Load;
use acceptance::when::Day;
use acceptance::{Client, Database, Server, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    first_events_of_many_contracts_at_once_are_numbered_without_gap,
    of_many_who_take_one_reference_at_once_one_gets_it,
    an_entity_is_deleted_or_named_but_not_both,
    every_read_between_writes_is_of_one_moment,
    usage_that_races_its_invoices_issue_is_on_it_or_on_a_debit,
);

const THREADS: usize = 8;
const CONTRACTS: usize = 40;

fn customer(index: usize) -> String {
    format!("customer-{index}")
}

/// Creates the plan, and customers with one contract each. Returns the references of the contracts.
fn make_contracts(client: &Client, contract: impl Fn(&str) -> Value) -> Vec<String> {
    catalog::make_plan(client);
    let make = |index| {
        catalog::make_customer(client, &customer(index));
        catalog::make_contract(client, &contract(&customer(index)))
    };
    (0..CONTRACTS).map(make).collect()
}

/// Reports one event of every customer from every client's thread at the same time, so that the first events of each contract
/// race. Returns each customer with its result.
fn race(clients: &[Client]) -> Vec<(String, Value)> {
    let barrier = Barrier::new(clients.len());
    thread::scope(|scope| {
        let report = |client: &Client| -> Vec<(String, Value)> {
            let client = client.with_own_connections();
            barrier.wait();
            let customers = (0..CONTRACTS).map(customer);
            customers
                .map(|customer| (customer.clone(), client.post("/api/usage/event", &catalog::event(&customer, 1)).ok()))
                .collect()
        };
        let threads: Vec<_> = clients.iter().map(|client| scope.spawn(move || report(client))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("the thread doesn't panic")).collect()
    })
}

/// Checks that each contract has one document with every event, and that the numbers start at 1.
fn check(client: &Client, contracts: &[String], results: &[(String, Value)], events_of_each: usize) {
    let mut of_customer: HashMap<&str, &Value> = HashMap::new();
    for (customer, result) in results {
        let first = of_customer.entry(customer).or_insert(result);
        assert_eq!(first["related_document_numbers"], result["related_document_numbers"], "{customer}: one document");
        assert_eq!(first["related_document_ref"], result["related_document_ref"], "{customer}: one document");
    }
    let documents = catalog::documents(client);
    let numbers: Vec<u64> = (1..).take(contracts.len()).collect();
    assert_eq!(catalog::numbers(&documents, "UB-INV"), numbers, "no gap, no duplicate");
    for contract_ref in contracts {
        let line = catalog::current_invoice(client, contract_ref)["products"][0]["line_items"][1].clone();
        assert_eq!(line["quantity"], json!(events_of_each), "{contract_ref}");
    }
}

fn first_events_of_many_contracts_at_once_are_numbered_without_gap(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let contracts = make_contracts(&client, catalog::contract);

    let results = race(&vec![client.clone(); THREADS]);

    check(&client, &contracts, &results, THREADS);
}

fn of_many_who_take_one_reference_at_once_one_gets_it(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let entity = |name: &str| json!({"name": name, "number_prefix": "SAME"});
    for (path, body) in [("/api/customers/", json!({"customer_ref": "same", "name": "Same"})), ("/api/entities/", entity("Same"))]
    {
        let barrier = Barrier::new(THREADS);
        let mut statuses: Vec<u16> = thread::scope(|scope| {
            let post = || {
                let client = client.with_own_connections();
                barrier.wait();
                client.post(path, &body).status
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(post)).collect();
            threads.into_iter().map(|thread| thread.join().expect("the thread doesn't panic")).collect()
        });
        statuses.sort_unstable();
        assert_eq!((statuses[0], &statuses[1..]), (200, &[409; THREADS - 1][..]), "{path}");
    }
    assert_eq!(client.get("/api/customers/filter").ok().as_array().map(Vec::len), Some(1));
    assert_eq!(client.get("/api/entities/filter").ok().as_array().map(Vec::len), Some(2), "the first start's entity, and one");
}

fn an_entity_is_deleted_or_named_but_not_both(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    for round in 0..5 {
        let name = format!("spare-{round}");
        let path = format!("/api/entities/{name}");
        client.post("/api/entities/", &json!({"entity_ref": name, "name": name, "number_prefix": format!("SP{round}")})).ok();
        let mut contract = catalog::contract("acme");
        contract["products"][0]["entity_ref"] = json!(name);
        let requests = [
            Request::post("/api/customers/", json!({"customer_ref": name, "name": name, "entity_ref": name}).to_string()),
            Request::post("/api/contracts/", contract.to_string()),
            Request { method: "DELETE", ..Request::get(&path) },
        ];
        let barrier = Barrier::new(requests.len());
        let statuses: Vec<u16> = thread::scope(|scope| {
            let send = |request| {
                let client = client.with_own_connections();
                barrier.wait();
                client.send(request).status
            };
            let threads = requests.each_ref().map(|request| scope.spawn(move || send(request)));
            threads.into_iter().map(|thread| thread.join().expect("the thread doesn't panic")).collect()
        });
        let is_there = client.get(&path).status == 200;
        assert_eq!(statuses[2], if is_there { 409 } else { 204 }, "{statuses:?}");
        assert_eq!(statuses[..2].contains(&200), is_there, "{statuses:?}");
        assert!(is_there || statuses[..2] == [422, 422], "{statuses:?}");
    }
}

fn every_read_between_writes_is_of_one_moment(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let contract_ref = catalog::make_contract(&client, &catalog::contract("acme"));
    let load = Load::start(&client, 4, |_, _| catalog::event("acme", 7));
    let mut last = 0;
    for reads in 0..40 {
        load.wait_for(3 * reads);
        let invoice = catalog::current_invoice(&client, &contract_ref);
        let quantity = quantity(&invoice);
        assert!(
            quantity >= last && quantity >= 7 * 3 * reads && quantity.is_multiple_of(7),
            "{quantity} after {last} and {reads} reads"
        );
        last = quantity;
        // The graduated tiers of the API plan, in cents.
        let usage = quantity.min(100) * 10 + quantity.clamp(100, 1000).saturating_sub(100) * 5 + quantity.saturating_sub(1000);
        assert_eq!(invoice["sub_total"].to_string(), format!("{}.{:02}", (4900 + usage) / 100, (4900 + usage) % 100));
    }
    let reported = load.end();
    let acknowledged: usize = reported.iter().map(|reported| reported.acknowledged.len()).sum();
    assert_eq!(quantity(&catalog::current_invoice(&client, &contract_ref)), 7 * acknowledged);
    assert!(reported.iter().all(|reported| reported.refused.is_empty() && reported.in_doubt.is_none()), "{reported:?}");
}

fn quantity(invoice: &Value) -> usize {
    quantity_of(&invoice["products"][0]["line_items"][1])
}

fn quantity_of(line: &Value) -> usize {
    line["quantity"].to_string().parse().expect("a whole quantity")
}

fn usage_that_races_its_invoices_issue_is_on_it_or_on_a_debit(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    catalog::make_contract(&client, &catalog::past_contract("acme"));
    let load = Load::start(&client, 4, |_, _| {
        let mut event = catalog::event("acme", 1);
        event["timestamp"] = json!(Day::today().plus_days(-20).noon());
        event
    });
    load.wait_for(30);

    let report = client.post("/api/billing/run", &json!({})).ok();

    let reported = load.end();
    assert_eq!((report["issued"].as_array().map(Vec::len), &report["failed"]), (Some(1), &json!([])), "{report}");
    let documents = catalog::documents(&client);
    let (invoices, debits): (Vec<_>, Vec<_>) = documents.into_iter().partition(|document| document["kind"] == "INVOICE");
    let invoice = catalog::only(Value::Array(invoices));
    assert_eq!(invoice["state"], "ISSUED");
    let late: usize = debits.iter().map(|debit| quantity_of(&debit["products"][0]["line_items"][0])).sum();
    assert!(debits.iter().all(|debit| debit["kind"] == "DEBIT" && debit["parent_document_number"] == "UB-INV-1"), "{debits:?}");
    let acknowledged: usize = reported.iter().map(|reported| reported.acknowledged.len()).sum();
    assert_eq!(quantity(&invoice) + late, acknowledged, "exactly the acknowledged events are billed");
    assert!(reported.iter().all(|reported| reported.refused.is_empty() && reported.in_doubt.is_none()), "{reported:?}");
}

#[test]
fn two_servers_on_one_postgres_report_together() {
    let database = Database::postgres();
    let (one, other) = thread::scope(|scope| {
        let start = || Server::start(&database);
        let (one, other) = (scope.spawn(start), scope.spawn(start));
        (one.join().expect("a server"), other.join().expect("a server"))
    });
    let firsts = [&one, &other].into_iter().filter(|server| server.stdout().contains("Console: ")).count();
    assert_eq!(firsts, 1, "one of two concurrent starts creates the first administrator");
    let client = Client::new_key(&one);
    let contracts = make_contracts(&client, catalog::contract);
    let clients: Vec<Client> = [&one, &other].into_iter().cycle().take(4).map(|server| client.at(server)).collect();

    let results = race(&clients);

    check(&client.at(&other), &contracts, &results, clients.len());
}

#[test]
fn two_servers_on_one_postgres_issue_everything_once() {
    let database = Database::postgres();
    let (one, other) = (Server::start(&database), Server::start(&database));
    let client = Client::new_key(&one);
    make_contracts(&client, catalog::past_contract);

    let barrier = Barrier::new(2);
    let reports: Vec<Value> = thread::scope(|scope| {
        let run = |server: &Server| {
            let client = client.at(server);
            barrier.wait();
            client.post("/api/billing/run", &json!({})).ok()
        };
        let threads = [&one, &other].map(|server| scope.spawn(move || run(server)));
        threads.into_iter().map(|thread| thread.join().expect("the thread doesn't panic")).collect()
    });

    let issued: Vec<Value> = reports.iter().flat_map(|report| report["issued"].as_array().expect("a list").clone()).collect();
    let numbers: Vec<u64> = (1..).take(CONTRACTS).collect();
    assert_eq!(catalog::numbers(&issued, "UB-INV"), numbers, "each document is issued by one server");
    assert_eq!(reports.iter().map(|report| &report["failed"]).collect::<Vec<_>>(), [&json!([]), &json!([])]);
    let documents = catalog::documents(&client);
    assert_eq!(catalog::numbers(&documents, "UB-INV"), numbers);
    assert!(documents.iter().all(|document| document["state"] == "ISSUED"));
}
