//! Limits over HTTP: usage stops at the cent, with many threads and on two servers.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use acceptance::scene::{each, product, refused};
use acceptance::{Client, Database, Scene, Server, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    a_limit_rejects_usage_with_its_numbers_and_accepts_what_has_occurred,
    a_limit_is_rejected_with_field_reason_and_remedy,
    sixty_four_threads_on_two_servers_reach_a_limit_to_the_cent,
    no_event_after_the_answer_to_a_first_limit_is_unjudged,
);

const LIMITS: &str = "/api/limits/";

fn owed(max: &Value) -> Value {
    json!({"metric": "OWED", "customer_ref": "acme", "currency": "EUR", "max": max})
}

/// Returns the numbers of a limit.
fn numbers(client: &Client, limit: &Value) -> [String; 4] {
    let limit = client.get(&format!("{LIMITS}{}", limit["limit_ref"].as_str().expect("a reference"))).ok();
    books::fields(&limit, ["value", "max", "left", "above"])
}

fn a_limit_rejects_usage_with_its_numbers_and_accepts_what_has_occurred(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.pricing("p", &[each("1.00")]);
    scene.sell(&[product("p", "2026-01-01", "2026-12-31")]);
    let limit = scene.client.post(LIMITS, &owed(&json!(10))).ok();
    assert_eq!(numbers(&scene.client, &limit), ["0.00", "10.00", "10.00", "0.00"]);
    scene.calls("2026-01-10", 8);
    let rejected = scene.try_calls("2026-01-10", 3);
    refused(&rejected, 422, "limit_reached");
    let problem = &rejected.body;
    assert_eq!(problem["limit_ref"], limit["limit_ref"]);
    assert_eq!(books::fields(problem, ["metric", "max", "value", "needed"]), ["OWED", "10.00", "8.00", "3.00"]);
    assert_eq!(numbers(&scene.client, &limit), ["8.00", "10.00", "2.00", "0.00"]);

    // The key of the rejected event can be used again: nothing was stored under it.
    let event = |quantity: u32, fields: &Value| catalog::with(acceptance::scene::calls("2026-01-10", quantity), fields);
    refused(&scene.client.post("/api/usage/event", &event(3, &json!({"idempotency_key": "k"}))), 422, "limit_reached");
    let occurred = event(3, &json!({"idempotency_key": "k", "occurred": true}));
    let taken = scene.client.post("/api/usage/event", &occurred).ok();
    assert_eq!(scene.client.post("/api/usage/event", &event(3, &json!({"idempotency_key": "k"}))).ok(), taken);
    assert_eq!(numbers(&scene.client, &limit), ["11.00", "10.00", "0.00", "1.00"]);

    // A batch judges each customer's events, and a dry run judges like the request.
    let batch = json!({"events": [event(0, &json!({})), event(1, &json!({})), event(1, &json!({"occurred": true}))]});
    let results = scene.client.post("/api/usage/event/batch", &batch).ok()["results"].clone();
    let codes: Vec<Value> = results.as_array().expect("results").iter().map(|result| result["code"].clone()).collect();
    assert_eq!(codes, [Value::Null, json!("limit_reached"), Value::Null]);
    let dry = json!({"path": "/api/usage/event", "body": event(1, &json!({}))});
    refused(&scene.client.post("/api/dry_run", &dry), 422, "limit_reached");
    let left = scene.client.get(&format!("{LIMITS}left?customer_ref=acme,nobody")).ok();
    assert_eq!(left.as_array().map(Vec::len), Some(1));
    assert_eq!(books::fields(&left[0]["left"][0], ["metric", "value", "max", "left"]), ["OWED", "12.00", "10.00", "0.00"]);

    let path = format!("{LIMITS}{}", limit["limit_ref"].as_str().expect("a reference"));
    let edit = format!("{LIMITS}edit/{}", limit["limit_ref"].as_str().expect("a reference"));
    assert_eq!(books::fields(&scene.client.post(&edit, &json!({"max": "13.00"})).ok(), ["max", "left"]), ["13.00", "1.00"]);
    scene.calls("2026-01-10", 1);
    assert_eq!(scene.client.delete(&path).status, 204);
    refused(&scene.client.get(&path), 404, "limit_not_found");
    scene.calls("2026-01-10", 1000);
}

fn a_limit_is_rejected_with_field_reason_and_remedy(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    let rejected = |fields: &Value, status: u16, code: &str| {
        let answer = scene.client.post(LIMITS, &catalog::with(owed(&json!("1.00")), fields));
        refused(&answer, status, code);
        answer.body["errors"][0]["pointer"].clone()
    };
    assert_eq!(rejected(&json!({"customer_ref": "nobody"}), 422, "validation_failed"), "/customer_ref");
    assert_eq!(rejected(&json!({"entity_ref": "nobody"}), 422, "validation_failed"), "/entity_ref");
    assert_eq!(rejected(&json!({"currency": "XXZ"}), 422, "validation_failed"), "/currency");
    assert_eq!(rejected(&json!({"metric": "SPENT"}), 422, "validation_failed"), "/metric");
    for max in [json!("0.001"), json!(-1), json!(true), json!("1000000000000000"), json!(null)] {
        assert_eq!(rejected(&json!({"max": max}), 422, "validation_failed"), "/max", "{max}");
    }
    assert_eq!(rejected(&json!({"threshold": 1}), 422, "unknown_field"), "/threshold");
    let made = scene.client.post(LIMITS, &owed(&json!("0"))).ok();
    assert_eq!(books::fields(&made, ["entity_ref", "max"]), [scene.entity(), "0.00".to_owned()]);
    refused(&scene.client.post(LIMITS, &owed(&json!("1"))), 409, "limit_exists");
    assert_eq!(scene.client.get(&format!("{LIMITS}filter?customer_ref=acme")).header("x-total-count"), "1");
    assert_eq!(scene.client.get(&format!("{LIMITS}filter?customer_ref=nobody")).ok(), json!([]));
}

const THREADS: usize = 64;

/// Returns clients of all servers in turn, each with its own connections.
fn clients(client: &Client, second: Option<&Server>, many: usize) -> Vec<Client> {
    let at = |index: usize| match second {
        Some(second) if index % 2 == 1 => client.at(second).with_own_connections(),
        _ => client.with_own_connections(),
    };
    (0..many).map(at).collect()
}

/// A server, a second one if the database can have two, and a customer with two contracts.
fn two_contracts(database: &Database) -> (Server, Option<Server>, Client) {
    let first = Server::start(database);
    let client = Client::new_key(&first);
    // Without tax, the sums don't depend on which contract has which events.
    client.post("/api/customers/", &json!({"customer_ref": "acme", "name": "Acme Ltd", "tax": 0})).ok();
    for product in ["calls", "mails"] {
        client.post("/api/usage/products/", &json!({"usage_product_ref": product, "name": product})).ok();
        let item = catalog::with(each("0.07"), &json!({"line_item_id": product, "usage_product_ref": product}));
        catalog::make_pricing(&client, product, &json!([item]));
        catalog::sell(&client, &[catalog::months(product, 0, 12)]);
    }
    let second = (!database.is_sqlite()).then(|| Server::start(database));
    (first, second, client)
}

fn event(product: &str) -> Value {
    catalog::with(catalog::event("acme", 1), &json!({"usage_product_ref": product}))
}

fn sixty_four_threads_on_two_servers_reach_a_limit_to_the_cent(database: &Database) {
    let (_first, second, client) = two_contracts(database);
    // 42 events of 0.07 are 2.94, and one more would be 3.01.
    let limit = client.post(LIMITS, &owed(&json!("3.00"))).ok();
    let (accepted, rejected, barrier) = (AtomicUsize::new(0), AtomicUsize::new(0), Barrier::new(THREADS));
    thread::scope(|scope| {
        for (index, client) in clients(&client, second.as_ref(), THREADS).into_iter().enumerate() {
            let (accepted, rejected, barrier) = (&accepted, &rejected, &barrier);
            scope.spawn(move || {
                barrier.wait();
                let answer = client.post("/api/usage/event", &event(if index % 3 == 0 { "mails" } else { "calls" }));
                match answer.status {
                    200 => accepted.fetch_add(1, Ordering::Relaxed),
                    _ => {
                        refused(&answer, 422, "limit_reached");
                        rejected.fetch_add(1, Ordering::Relaxed)
                    }
                }
            });
        }
    });
    assert_eq!((accepted.into_inner(), rejected.into_inner()), (42, 22));
    assert_eq!(numbers(&client, &limit), ["2.94", "3.00", "0.06", "0.00"]);
    let billed: i64 = catalog::documents(&client)
        .iter()
        .map(|document| document["total"].to_string().replace('.', "").parse::<i64>().expect("cents"))
        .sum();
    assert_eq!(billed, 294);
}

fn no_event_after_the_answer_to_a_first_limit_is_unjudged(database: &Database) {
    let (_first, second, client) = two_contracts(database);
    let (is_limited, stop) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for (index, client) in clients(&client, second.as_ref(), 8).into_iter().enumerate() {
            let (is_limited, stop) = (&is_limited, &stop);
            scope.spawn(move || {
                while stop.load(Ordering::Acquire) == 0 {
                    let limited = is_limited.load(Ordering::Acquire) == 1;
                    let answer = client.post("/api/usage/event", &event(if index % 2 == 0 { "mails" } else { "calls" }));
                    assert!(answer.status == 422 || !limited, "an event after the limit: {}", answer.text);
                }
            });
        }
        thread::sleep(std::time::Duration::from_millis(300));
        let limit = client.post(LIMITS, &owed(&json!(0))).ok();
        is_limited.store(1, Ordering::Release);
        let first = numbers(&client, &limit);
        // A contract that begins now is watched, too.
        catalog::sell(&client, &[catalog::months("calls", 0, 6)]);
        thread::sleep(std::time::Duration::from_millis(300));
        stop.store(1, Ordering::Release);
        assert_eq!(numbers(&client, &limit), first);
    });
}
