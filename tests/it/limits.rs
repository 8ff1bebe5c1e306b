//! Limits over HTTP: usage stops at the cent, with many threads and on two servers.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use acceptance::load::{Load, LoadResult};
use acceptance::scene::{each, product, refused};
use acceptance::{Client, Database, Scene, Server, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    a_limit_rejects_usage_with_its_numbers_and_accepts_what_has_occurred,
    a_limit_is_rejected_with_field_reason_and_remedy,
    sixty_four_threads_on_two_servers_reach_a_limit_to_the_cent,
    events_of_a_batch_are_judged_in_their_order_although_the_first_opens_a_document,
    no_event_after_the_answer_to_a_first_limit_is_unjudged,
    a_payment_beside_a_first_limit_is_in_its_number_and_its_notifications,
    holds_of_sixty_four_threads_reserve_the_limit_to_the_cent,
    killed_servers_take_exactly_what_the_limit_allows,
    each_metric_is_read_and_notified,
    holds_are_made_read_and_released,
);

const LIMITS: &str = "/api/limits/";
const HOLDS: &str = "/api/usage/holds/";

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
    let taken = scene.client.post("/api/usage/event/batch", &batch).ok();
    assert_eq!(books::fields(&taken["left"][0]["left"][0], ["value", "left"]), ["12.00", "0.00"]);
    let results = taken["results"].clone();
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

fn events_of_a_batch_are_judged_in_their_order_although_the_first_opens_a_document(database: &Database) {
    let (_first, _, client) = two_contracts(database);
    let limit = client.post(LIMITS, &owed(&json!("3.00"))).ok();
    // The server keeps the draft of calls in memory from the third event on. There is no draft of mails.
    for _ in 0..4 {
        client.post("/api/usage/event", &catalog::with(event("calls"), &json!({"quantity": 0}))).ok();
    }
    let thirty = |product| catalog::with(event(product), &json!({"quantity": 30}));
    let batch = client.post("/api/usage/event/batch", &json!({"events": [thirty("mails"), thirty("calls")]})).ok();
    assert_eq!((&batch["results"][0]["code"], &batch["results"][1]["code"]), (&Value::Null, &json!("limit_reached")));
    assert_eq!(numbers(&client, &limit), ["2.10", "3.00", "0.90", "0.00"]);
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

/// A payment either sees the limit and notifies what it changes, or the limit begins with the number that the payment left.
fn a_payment_beside_a_first_limit_is_in_its_number_and_its_notifications(database: &Database) {
    let (_first, second, client) = two_contracts(database);
    let customers: Vec<String> = (0..24).map(|index| format!("c{index}")).collect();
    for customer_ref in &customers {
        client.post("/api/customers/", &json!({"customer_ref": customer_ref, "name": customer_ref})).ok();
    }
    let limits: Vec<Value> = customers
        .iter()
        .map(|customer_ref| {
            let barrier = Barrier::new(2);
            let payer = clients(&client, second.as_ref(), 2).remove(1);
            thread::scope(|scope| {
                scope.spawn(|| {
                    barrier.wait();
                    let payment = json!({"currency": "EUR", "amount": "5.00"});
                    payer.post(&format!("/api/customers/payments/{customer_ref}"), &payment).ok();
                });
                barrier.wait();
                let levels = json!({"customer_ref": customer_ref, "thresholds": ["-4.00"]});
                client.post(LIMITS, &catalog::with(owed(&Value::Null), &levels)).ok()
            })
        })
        .collect();
    // Of each customer, what the last notification states: `true` if the number reached the threshold.
    let mut states = vec![false; limits.len()];
    for notified in books::feed(database, &client, 0) {
        let of_limit = limits.iter().position(|limit| limit["limit_ref"] == notified["data"]["limit_ref"]);
        if let Some(index) = of_limit {
            states[index] = notified["type"] == "limit.reached";
        }
    }
    for (limit, is_reached) in limits.iter().zip(states) {
        assert_eq!((numbers(&client, limit)[0].as_str(), is_reached), ("-5.00", false));
    }
}

fn holds_of_sixty_four_threads_reserve_the_limit_to_the_cent(database: &Database) {
    let (_first, second, client) = two_contracts(database);
    let limit = client.post(LIMITS, &owed(&json!("3.00"))).ok();
    let (held, barrier) = (AtomicUsize::new(0), Barrier::new(THREADS));
    thread::scope(|scope| {
        for (index, client) in clients(&client, second.as_ref(), THREADS).into_iter().enumerate() {
            let (held, barrier) = (&held, &barrier);
            scope.spawn(move || {
                let (product, hold_ref) = (if index % 3 == 0 { "mails" } else { "calls" }, format!("h-{index}"));
                let usage = json!([{"usage_product_ref": product, "quantity": 1}]);
                let body = json!({"hold_ref": hold_ref, "customer_ref": "acme", "usage": usage});
                barrier.wait();
                let answer = client.post_patiently(HOLDS, &body);
                if answer.status == 200 {
                    held.fetch_add(1, Ordering::Relaxed);
                    // The event of a hold is accepted, whatever others have reserved.
                    client.post("/api/usage/event", &catalog::with(event(product), &json!({"hold_ref": hold_ref}))).ok();
                } else {
                    refused(&answer, 422, "limit_reached");
                }
            });
        }
    });
    assert_eq!(held.into_inner(), 42);
    assert_eq!(numbers(&client, &limit), ["2.94", "3.00", "0.06", "0.00"]);
}

fn killed_servers_take_exactly_what_the_limit_allows(database: &Database) {
    const MAX: usize = 120;
    let mut server = Server::start(database);
    let key = Client::admin(&server).generate_key(&json!({}));
    let mut client = Client::key(&server, &key);
    catalog::make_plan(&client);
    catalog::make_customer(&client, "acme");
    let contract = catalog::sell(&client, &[catalog::months(catalog::API_PLAN, 0, 12)]);
    let limit = json!({"metric": "QUANTITY", "contract_ref": contract, "usage_product_ref": catalog::API_CALLS, "max": MAX});
    let limit = client.post(LIMITS, &limit).ok();
    let (mut acknowledged, mut round) = (0, 0);
    while round < 3 {
        let named = move |thread: usize, index: usize| {
            catalog::with(catalog::event("acme", 1), &json!({"idempotency_key": format!("{round}-{thread}-{index}")}))
        };
        let load = Load::start(&client, 8, named);
        load.wait_for(20);
        server.kill_9();
        let results = load.join();
        server = Server::start(database);
        client = Client::key(&server, &key);
        for LoadResult { acknowledged: taken, in_doubt, refused } in results {
            acknowledged += taken.len();
            assert!(refused.iter().all(|(status, text)| *status == 422 && text.contains("limit_reached")), "{refused:?}");
            // An event without a response is recorded or not, and its key tells.
            acknowledged += usize::from(in_doubt.is_some_and(|event| client.post("/api/usage/event", &event).status == 200));
        }
        round += 1;
    }
    while client.post("/api/usage/event", &catalog::event("acme", 1)).status == 200 {
        acknowledged += 1;
    }
    assert_eq!(acknowledged, MAX);
    assert_eq!(numbers(&client, &limit), ["120", "120", "0", "0"]);
    let recorded = client.get("/api/usage/event/filter?customer_ref=acme");
    assert_eq!(recorded.header("x-total-count"), "120");
}

fn each_metric_is_read_and_notified(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.pricing("p", &[each("1.00")]);
    let contract = scene.sell(&[product("p", "2026-01-01", "2026-12-31")]);
    let spend = json!({"metric": "SPEND", "contract_ref": contract, "max": 10, "thresholds": [8, "5.50"]});
    let spend = scene.client.post(LIMITS, &spend).ok();
    let shown = ["metric", "product_no", "thresholds", "window_start", "window_end", "value", "held", "left"];
    let expected = ["SPEND", "0", "[5.50,8.00]", "2026-01-01", "2026-01-31", "0.00", "0.00", "10.00"];
    assert_eq!(books::fields(&spend, shown), expected);
    let quantity =
        json!({"metric": "QUANTITY", "contract_ref": contract, "usage_product_ref": catalog::API_CALLS, "thresholds": [7]});
    let quantity = scene.client.post(LIMITS, &quantity).ok();
    assert_eq!(
        books::fields(&quantity, ["max", "left", "above", "entity_ref", "line_item_id"]),
        ["null", "null", "0", "null", "null"]
    );
    let taken = scene.try_calls("2026-01-10", 6);
    let left = format!("\"{}\";left=\"4.00\"", spend["limit_ref"].as_str().expect("a reference"));
    assert_eq!((taken.status, taken.header("usage-left")), (200, left.as_str()));
    refused(&scene.try_calls("2026-01-10", 5), 422, "limit_reached");
    scene.calls("2026-01-10", 2);
    let notified = || -> Vec<String> {
        let notified = books::feed(database, &scene.client, 0);
        let of_limit =
            notified.iter().filter(|notified| notified["type"].as_str().is_some_and(|kind| kind.starts_with("limit.")));
        of_limit
            .map(|notified| format!("{} {} {}", notified["type"], notified["data"]["metric"], notified["data"]["threshold"]))
            .collect()
    };
    let expected = [
        r#""limit.reached" "SPEND" 5.50"#,
        r#""limit.reached" "SPEND" 8.00"#,
        r#""limit.reached" "QUANTITY" 7"#,
        r#""limit.reached" "SPEND" 10.00"#,
    ];
    let mut seen = notified();
    let begun = std::time::Instant::now();
    while seen.len() < expected.len() && begun.elapsed() < std::time::Duration::from_secs(60) {
        thread::sleep(std::time::Duration::from_millis(100));
        seen = notified();
    }
    seen.sort();
    let mut sorted = expected.map(str::to_owned);
    sorted.sort();
    assert_eq!(seen, sorted);
    let subject = format!("subject=limit:{}", spend["limit_ref"].as_str().expect("a reference"));
    assert_eq!(scene.client.get(&format!("/api/notifications/filter?{subject}")).ok().as_array().map(Vec::len), Some(3));
}

fn holds_are_made_read_and_released(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.pricing("p", &[each("1.00")]);
    scene.sell(&[product("p", "2026-01-01", "2026-12-31")]);
    scene.client.post(LIMITS, &owed(&json!(10))).ok();
    let hold = |fields: &Value| {
        let body =
            json!({"hold_ref": "h", "customer_ref": "acme", "usage": [{"usage_product_ref": catalog::API_CALLS, "quantity": 4}]});
        scene.client.post(HOLDS, &catalog::with(body, fields))
    };
    let made = hold(&json!({})).ok();
    assert_eq!(books::fields(&made, ["state", "hold_ref", "customer_ref"]), ["OPEN", "h", "acme"]);
    assert_eq!(books::fields(&made["left"][0], ["value", "held", "left"]), ["0.00", "4.00", "6.00"]);
    assert_eq!(hold(&json!({})).ok()["expires_at"], made["expires_at"]);
    refused(&hold(&json!({"expires_in": 7})), 409, "already_exists");
    let rejected = hold(&json!({"hold_ref": "i", "usage": [{"usage_product_ref": catalog::API_CALLS, "quantity": 7}]}));
    refused(&rejected, 422, "limit_reached");
    assert_eq!(books::fields(&rejected.body, ["value", "held", "needed", "max"]), ["0.00", "4.00", "7.00", "10.00"]);
    for (fields, pointer) in [
        (json!({"hold_ref": "i", "usage": []}), "/usage"),
        (json!({"hold_ref": "filter"}), "/hold_ref"),
        (json!({"hold_ref": "i", "expires_in": 0}), "/expires_in"),
        (json!({"hold_ref": "i", "expires_in": 86_401}), "/expires_in"),
        (json!({"hold_ref": "i", "customer_ref": "nobody"}), "/customer_ref"),
        (json!({"hold_ref": "i", "usage": [{"usage_product_ref": "nothing", "quantity": 1}]}), "/usage/0/usage_product_ref"),
        (json!({"hold_ref": "i", "usage": [{"usage_product_ref": catalog::API_CALLS, "quantity": -1}]}), "/usage/0/quantity"),
    ] {
        let answer = hold(&fields);
        refused(&answer, 422, "validation_failed");
        assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{fields}");
    }
    let path = format!("{HOLDS}h?customer_ref=acme");
    let listed =
        |open: bool| scene.client.get(&format!("{HOLDS}filter?customer_ref=acme&open={open}")).header("x-total-count").to_owned();
    assert_eq!((listed(true), listed(false)), ("1".to_owned(), "1".to_owned()));
    assert_eq!(scene.client.delete(&path).status, 204);
    assert_eq!(scene.client.delete(&path).status, 204);
    assert_eq!(scene.client.get(&path).ok()["state"], "RELEASED");
    assert_eq!(listed(true), "0");
    refused(&scene.client.delete(&format!("{HOLDS}nothing?customer_ref=acme")), 404, "hold_not_found");
    refused(&scene.client.get(&format!("{HOLDS}h?customer_ref=nobody")), 404, "hold_not_found");
    // The event of a hold is accepted above the limit.
    hold(&json!({"hold_ref": "j"})).ok();
    let body = catalog::with(acceptance::scene::calls("2026-01-10", 11), &json!({"hold_ref": "j"}));
    scene.client.post("/api/usage/event", &body).ok();
    let settled = scene.client.get(&format!("{HOLDS}j?customer_ref=acme")).ok();
    assert_eq!(settled["state"], "SETTLED");
    assert!(settled["usage"][0]["event_ref"].is_string());
}
