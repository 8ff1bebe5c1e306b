//! Document numbers under concurrency and roll-backs: they are 1 to n per entity and kind, regardless of rejected requests in
//! between.

use std::collections::{BTreeMap, HashSet};
use std::thread;

use acceptance::when::Day;
use acceptance::{Client, Database, Server, books, catalog};
use serde_json::{Value, json};

const CLIENTS: usize = 8;
const REQUESTS_OF_EACH: usize = 100;

#[test]
fn sqlite_numbers_have_no_gap_though_a_fifth_of_the_requests_is_refused() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let client = Client::new_key(&server);
    number(&[client]);
}

#[test]
fn two_servers_on_one_postgres_number_without_a_gap_though_a_fifth_is_refused() {
    let database = Database::postgres();
    let (one, other) = (Server::start(&database), Server::start(&database));
    let client = Client::new_key(&one);
    number(&[client.clone(), client.at(&other)]);
}

/// Checks the numbers of two entities. Every client has three contracts: each event of the first opens a document, the invoice of
/// the second is issued, and the third never accepts an event.
fn number(servers: &[Client]) {
    prepare(&servers[0]);
    let opened: Vec<String> = thread::scope(|scope| {
        let work = |index: usize| {
            let client = servers[index % servers.len()].with_own_connections();
            scope.spawn(move || (0..REQUESTS_OF_EACH).filter_map(|step| request(&client, index, step)).collect::<Vec<_>>())
        };
        let threads: Vec<_> = (0..CLIENTS).map(work).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("the thread doesn't panic")).collect()
    });

    let documents = catalog::documents(&servers[0]);
    let mut series: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for document in &documents {
        let number = document["document_number"].as_str().expect("a number");
        let (name, _) = number.rsplit_once('-').expect("a series");
        series.entry(name.to_owned()).or_default().push(document.clone());
    }
    let names: Vec<&str> = series.keys().map(String::as_str).collect();
    assert_eq!(names, ["EVEN-CRD", "EVEN-DBT", "EVEN-INV", "ODD-CRD", "ODD-DBT", "ODD-INV"]);
    for (name, documents) in &series {
        let numbers: Vec<u64> = (1..).take(documents.len()).collect();
        assert_eq!(catalog::numbers(documents, name), numbers, "{name}: no gap, no duplicate");
    }
    // Four fifths of the requests opened a document each. The first ones of each client also opened the parents.
    assert_eq!(opened.len(), CLIENTS * REQUESTS_OF_EACH * 4 / 5);
    assert_eq!(opened.iter().collect::<HashSet<_>>().len(), opened.len(), "no number was returned twice");
    assert_eq!(documents.len(), opened.len() + 2 * CLIENTS);
}

fn prepare(client: &Client) {
    catalog::make_plan(client);
    client.post("/api/usage/products/", &json!({"usage_product_ref": "level", "name": "Level", "aggregation": "LATEST"})).ok();
    for entity in ["EVEN", "ODD"] {
        client.post("/api/entities/", &json!({"entity_ref": entity, "name": entity, "number_prefix": entity})).ok();
    }
    let level = |price: &str| {
        let price = json!({"model": "PER_UNIT", "unit_price": price});
        json!([catalog::with(catalog::calls(&price), &json!({"usage_product_ref": "level"}))])
    };
    catalog::make_pricing(client, "level", &level("0.10"));
    catalog::make_pricing(client, "priceless", &level("999999999"));
    for index in 0..CLIENTS {
        let entity = if index % 2 == 0 { "EVEN" } else { "ODD" };
        let upon_usage = json!({"entity_ref": entity, "net_terms": "DUE_UPON_USAGE"});
        let products = [
            ("level", catalog::with(catalog::months("level", 0, 1), &upon_usage)),
            ("late", catalog::with(catalog::ended(catalog::API_PLAN), &json!({"entity_ref": entity}))),
            ("none", catalog::with(catalog::months("priceless", 0, 1), &upon_usage)),
        ];
        for (name, product) in products {
            let customer = format!("{name}-{index}");
            catalog::make_customer(client, &customer);
            catalog::make_contract(client, &json!({"customer_ref": customer, "products": [product]}));
        }
    }
    assert_eq!(books::run(client).len(), CLIENTS);
}

/// Sends one request. Returns the number of the document that it opened.
fn request(client: &Client, index: usize, step: usize) -> Option<String> {
    let event = |customer: &str, quantity: &str| {
        catalog::with(catalog::event(&format!("{customer}-{index}"), quantity), &json!({"usage_product_ref": "level"}))
    };
    let taken = match step % 5 {
        // The amount rises, falls and rises again: an invoice, a credit and another invoice.
        0 => books::report(client, &event("level", "100")),
        1 => books::report(client, &event("level", "50")),
        2 => books::report(client, &event("level", "75")),
        3 => {
            let late = books::report(client, &catalog::event_on(&format!("late-{index}"), Day::today().plus_days(-20), 1));
            // The next event must open another document.
            books::issue(client, &late["related_document_ref"]).ok();
            late
        }
        _ => {
            let (bad, code) = match step / 5 % 4 {
                0 => (catalog::with(event("level", "1"), &json!({"validations": {"currency": "USD"}})), "validation_mismatch"),
                // Rejected after its parent was opened, so the parent's number must be released.
                1 => (event("none", "999999999999999"), "amount_out_of_range"),
                2 => (event("nobody", "1"), "validation_failed"),
                _ => (catalog::event(&format!("none-{index}"), 1), "no_matching_contract"),
            };
            let refused = client.post("/api/usage/event", &bad);
            assert_eq!((refused.status, refused.text_of("code").as_str()), (422, code), "{}", refused.text);
            return None;
        }
    };
    let number = taken["related_document_numbers"].as_str().expect("a number");
    Some(number.to_owned())
}
