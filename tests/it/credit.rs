//! Prepaid credit over HTTP: sold and given, taken by usage in the request that reports it, and returned by corrections.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use acceptance::load::Load;
use acceptance::scene::{each, product, refused};
use acceptance::{Client, Database, Scene, Server, binary, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    an_ai_vendors_day_is_billed_to_the_cent,
    credit_is_refused_with_field_reason_and_remedy,
    given_credit_ends_before_sold_credit_and_a_sale_by_transfer_waits,
    a_chargeback_of_the_sale_stops_usage,
    a_limit_of_free_credit_counts_no_debts,
    a_dry_run_shows_what_a_request_takes_of_credit,
    credit_in_units_has_those_of_the_issue_on_issued_documents,
    an_issue_of_one_contract_keeps_the_credit_that_a_hold_on_another_needs,
    verify_finds_a_draw_that_was_changed_by_hand,
    sixty_four_threads_on_two_servers_use_credit_to_the_cent,
    killed_servers_draw_exactly_the_credit_that_documents_state,
);

const GRANTS: &str = "/api/credit_grants/";
const LIMITS: &str = "/api/limits/";
const HOLDS: &str = "/api/usage/holds/";
const AGENTS: usize = 64;

/// A customer who pays 20 % of tax, tokens at 0.00001 and credit of 100.00 and 50.00.
fn vendor(database: &Database, instant: &str) -> Scene {
    let scene = Scene::begin_at(database, instant);
    scene.edit_customer("acme", &json!({"tax": 20}));
    scene.pricing("tokens", &[each("0.00001")]);
    scene.sell(&[product("tokens", "2026-11-01", "2027-10-31")]);
    for amount in ["100", "50"] {
        scene.fee(&format!("credit-{amount}"), &format!("{amount}.00"));
    }
    scene
}

fn sell(client: &Client, amount: &str, payment: &Value) -> Value {
    let pricing = format!("credit-{amount}");
    let sale = json!({"customer_ref": "acme", "product_pricing_ref": pricing, "name": "Credit", "payment": payment});
    client.post(&format!("{GRANTS}sell"), &sale).ok()
}

fn owed(max: &Value) -> Value {
    json!({"metric": "OWED", "customer_ref": "acme", "currency": "EUR", "max": max})
}

/// Returns what is usable, drawn, covered and free of a grant.
fn amounts(client: &Client, sold: &Value) -> [String; 4] {
    let grant = client.get(&format!("{GRANTS}{}", sold["grant_ref"].as_str().expect("a reference"))).ok();
    books::fields(&grant, ["usable", "drawn", "covered", "free"])
}

/// Returns the net amount, the credit, the tax and the total of a document.
fn document(client: &Client, number: &str) -> [String; 4] {
    books::fields(&books::numbered(client, number), ["sub_total", "total_prepaid", "total_tax", "total"])
}

fn hold(client: &Client, hold_ref: &str, quantity: u32) -> acceptance::Answer {
    let usage = json!([{"usage_product_ref": catalog::API_CALLS, "quantity": quantity}]);
    client.post_patiently(HOLDS, &json!({"hold_ref": hold_ref, "customer_ref": "acme", "expires_in": 3600, "usage": usage}))
}

fn used(instant: &str, quantity: u32, fields: &Value) -> Value {
    let event =
        json!({"timestamp": instant, "customer_ref": "acme", "usage_product_ref": catalog::API_CALLS, "quantity": quantity});
    catalog::with(event, fields)
}

/// Makes a hold of 200,000 tokens for each agent at once. Returns the agents whose holds were rejected.
fn hold_at_once(client: &Client, agents: &[usize], needed: &[&str]) -> Vec<usize> {
    let barrier = Barrier::new(agents.len());
    thread::scope(|scope| {
        let holding: Vec<_> = agents
            .iter()
            .map(|agent| {
                let (barrier, client) = (&barrier, client.with_own_connections());
                scope.spawn(move || {
                    barrier.wait();
                    let answer = hold(&client, &format!("agent-{agent}"), 200_000);
                    if answer.status == 200 {
                        return None;
                    }
                    refused(&answer, 422, "limit_reached");
                    assert_eq!(books::fields(&answer.body, ["metric", "value", "max"]), ["OWED", "0.00", "0.00"]);
                    let found = answer.body["needed"].to_string();
                    assert!(needed.contains(&found.as_str()), "{found}");
                    Some(*agent)
                })
            })
            .collect();
        holding.into_iter().filter_map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Returns the levels that notifications stated, as type, metric and threshold.
fn levels(database: &Database, client: &Client) -> Vec<String> {
    let of_limit = |notified: &Value| {
        let kind = notified["type"].as_str()?.strip_prefix("limit.")?.to_owned();
        Some(format!("{kind} {} {}", notified["data"]["metric"].as_str()?, notified["data"]["threshold"]))
    };
    books::feed(database, client, 0).iter().filter_map(of_limit).collect()
}

#[expect(clippy::too_many_lines, reason = "it is one day")]
fn an_ai_vendors_day_is_billed_to_the_cent(database: &Database) {
    let scene = vendor(database, "2026-11-30T09:00:00Z");
    let client = &scene.client;
    let first = sell(client, "100", &json!({"amount": "120.00", "reference": "pi_1"}));
    assert_eq!(books::fields(&first, ["document_number", "total"]), ["UB-INV-1", "120.00"]);
    let limit = client.post(LIMITS, &owed(&json!(0))).ok();
    client
        .post(LIMITS, &json!({"metric": "PREPAID", "customer_ref": "acme", "currency": "EUR", "thresholds": ["20.00", "5.00"]}))
        .ok();
    assert_eq!(books::fields(&limit, ["value", "left"]), ["0.00", "100.00"]);
    assert_eq!(amounts(client, &first), ["100.00", "0.00", "0.00", "100.00"]);

    scene.go_to_instant("2026-11-30T09:01:00Z");
    let rejected = hold_at_once(client, &Vec::from_iter(0..AGENTS), &["2.40"]);
    assert_eq!(rejected.len(), 14);
    let left = client.get(&format!("{LIMITS}left?customer_ref=acme")).ok();
    assert_eq!(books::fields(&left[0]["left"][0], ["metric", "value", "held", "left"]), ["OWED", "0.00", "0.00", "0.00"]);
    assert_eq!(books::fields(&left[0]["credit"][0], ["currency", "free", "held"]), ["EUR", "100.00", "100.00"]);

    scene.go_to_instant("2026-11-30T09:02:00Z");
    for agent in (0..AGENTS).filter(|agent| !rejected.contains(agent)) {
        let fields = json!({"hold_ref": format!("agent-{agent}")});
        client.post("/api/usage/event", &used("2026-11-30T09:02:00Z", 150_000, &fields)).ok();
    }
    assert_eq!(document(client, "UB-INV-2"), ["75.00", "75.00", "0.00", "0.00"]);
    assert_eq!(amounts(client, &first), ["100.00", "0.00", "75.00", "25.00"]);

    scene.go_to_instant("2026-11-30T09:03:00Z");
    let again = hold_at_once(client, &rejected, &["1.20"]);
    assert_eq!(again.len(), 2);
    scene.go_to_instant("2026-11-30T09:04:00Z");
    for agent in rejected.iter().filter(|agent| !again.contains(agent)) {
        let fields = json!({"hold_ref": format!("agent-{agent}")});
        client.post("/api/usage/event", &used("2026-11-30T09:04:00Z", 160_000, &fields)).ok();
    }
    assert_eq!(amounts(client, &first), ["100.00", "0.00", "94.20", "5.80"]);
    assert!(levels(database, client).contains(&"reached PREPAID 20.00".to_owned()));

    scene.go_to_instant("2026-11-30T09:05:00Z");
    hold(client, "long", 200_000).ok();
    let long = client.post("/api/usage/event", &used("2026-11-30T09:05:00Z", 700_000, &json!({"hold_ref": "long"}))).ok();
    assert_eq!(document(client, "UB-INV-2"), ["101.20", "100.00", "0.24", "1.44"]);
    let rejected = hold(client, "more", 200_000);
    refused(&rejected, 422, "limit_reached");
    assert_eq!(books::fields(&rejected.body, ["value", "needed"]), ["1.44", "2.40"]);
    assert!(levels(database, client).contains(&"reached PREPAID 5.00".to_owned()));

    scene.go_to_instant("2026-11-30T09:07:00Z");
    let second = sell(client, "50", &json!({"amount": "60.00"}));
    assert_eq!(books::fields(&second, ["document_number", "total"]), ["UB-INV-3", "60.00"]);
    assert_eq!(document(client, "UB-INV-2"), ["101.20", "101.20", "0.00", "0.00"]);
    assert_eq!(amounts(client, &second), ["50.00", "0.00", "1.20", "48.80"]);
    let mut stated = levels(database, client);
    let last = stated.split_off(stated.len() - 3);
    for level in ["cleared OWED 0.00", "cleared PREPAID 5.00", "cleared PREPAID 20.00"] {
        assert!(last.contains(&level.to_owned()), "{last:?}");
    }
    assert_eq!(books::balance(client, "acme"), [["0.00"; 4]]);

    scene.go_to_instant("2026-12-01T02:00:00Z");
    books::run(client);
    assert_eq!(books::numbered(client, "UB-INV-2")["state"], "PAID");
    assert_eq!(amounts(client, &first), ["100.00", "100.00", "0.00", "0.00"]);
    assert_eq!(amounts(client, &second), ["50.00", "1.20", "0.00", "48.80"]);

    scene.go_to_instant("2026-12-01T09:00:00Z");
    client.post("/api/usage/event", &used("2026-11-30T12:00:00Z", 100_000, &json!({"occurred": true}))).ok();
    assert_eq!(document(client, "UB-DBT-1"), ["1.00", "1.00", "0.00", "0.00"]);
    assert_eq!(amounts(client, &second)[3], "47.80");

    scene.go_to_instant("2026-12-01T10:00:00Z");
    let charge = json!({"contract_ref": second["contract_ref"], "date": "2026-11-30", "name": "Unused credit",
        "unit_price": "-40.00", "bill_with": "FIXED", "issue": true});
    let charge = client.post("/api/charges/", &charge).ok();
    assert_eq!(document(client, "UB-CRD-1"), ["40.00", "0.00", "8.00", "48.00"]);
    books::refund(client, &charge["related_document_ref"], &json!({"amount": "48.00"})).ok();
    assert_eq!(amounts(client, &second), ["10.00", "1.20", "1.00", "7.80"]);

    scene.go_to_instant("2026-12-02T02:00:00Z");
    books::run(client);
    assert_eq!(books::delete(client, &long["event_ref"]).status, 204);
    assert_eq!(document(client, "UB-CRD-2"), ["7.00", "7.00", "0.00", "0.00"]);
    scene.go_to_instant("2026-12-03T02:00:00Z");
    books::run(client);
    assert_eq!(amounts(client, &first), ["100.00", "95.20", "0.00", "4.80"]);
    assert_eq!(amounts(client, &second), ["10.00", "0.00", "0.00", "10.00"]);

    // The statement of credit.
    let draws = client.get(&format!("{GRANTS}draws/filter?customer_ref=acme")).ok();
    let draws: Vec<String> = draws
        .as_array()
        .expect("draws")
        .iter()
        .map(|draw| books::fields(draw, ["document_number", "amount"]).join(" "))
        .collect();
    assert_eq!(draws, ["UB-INV-2 100.00", "UB-INV-2 1.20", "UB-DBT-1 1.00", "UB-CRD-2 -2.20", "UB-CRD-2 -4.80"]);
    let balance = client.get("/api/customers/balance/acme").ok();
    assert_eq!(books::fields(&balance[0], ["credit_free", "credit_covered"]), ["14.80", "0.00"]);
}

fn grant(fields: &Value) -> Value {
    catalog::with(json!({"customer_ref": "acme", "currency": "EUR", "amount": "10.00", "name": "Goodwill"}), fields)
}

fn credit_is_refused_with_field_reason_and_remedy(database: &Database) {
    let scene = vendor(database, "2026-11-30T09:00:00Z");
    let client = &scene.client;
    let contract = scene.sell(&[product("tokens", "2026-11-01", "2027-10-31")]);
    let sold = sell(client, "100", &json!({"amount": "120.00"}));
    for (fields, pointer, code) in [
        (json!({"customer_ref": "nobody"}), "/customer_ref", "unknown_reference"),
        (json!({"entity_ref": "nobody"}), "/entity_ref", "unknown_reference"),
        (json!({"amount": "0"}), "/amount", "out_of_range"),
        (json!({"amount": "0.001"}), "/amount", "invalid_format"),
        (json!({"from": "2026-12-02", "to": "2026-12-01"}), "/to", "out_of_range"),
        (json!({"contract_ref": contract, "currency": "USD"}), "/currency", "currency_mismatch"),
        (json!({"contract_ref": "0198f000-0000-7000-8000-000000000000"}), "/contract_ref", "unknown_reference"),
        (json!({"source_document_ref": "0198f000-0000-7000-8000-000000000000"}), "/source_document_ref", "unknown_reference"),
        (json!({"source_document_ref": sold["document_ref"]}), "/source_document_ref", "source_not_usable"),
    ] {
        let answer = client.post(GRANTS, &grant(&fields));
        refused(&answer, 422, "validation_failed");
        assert_eq!(books::fields(&answer.body["errors"][0], ["pointer", "code"]), [pointer, code], "{fields}");
    }
    let sale = json!({"customer_ref": "acme", "product_pricing_ref": "credit-100", "name": "Credit"});
    for (fields, pointer, code) in [
        (json!({"product_pricing_ref": "tokens"}), "/product_pricing_ref", "needs_fixed_items"),
        (json!({"product_pricing_ref": "nothing"}), "/product_pricing_ref", "unknown_reference"),
        (json!({"payment": {"amount": "-1"}}), "/payment/amount", "out_of_range"),
        (json!({"payment": {"amount": "1", "paid_date": "2027-01-01"}}), "/payment/paid_date", "out_of_range"),
        (json!({"quantity": 0}), "/product_pricing_ref", "out_of_range"),
        (json!({"to": "2026-01-01", "amount": "-5"}), "/amount", "out_of_range"),
    ] {
        let answer = client.post(&format!("{GRANTS}sell"), &catalog::with(sale.clone(), &fields));
        refused(&answer, 422, "validation_failed");
        assert_eq!(books::fields(&answer.body["errors"][0], ["pointer", "code"]), [pointer, code], "{fields}");
    }
    // Nothing of a refused sale stays.
    assert_eq!(catalog::documents(client).len(), 1);
    let maximum = json!({"metric": "PREPAID", "customer_ref": "acme", "currency": "EUR", "max": 1, "thresholds": [1]});
    let answer = client.post(LIMITS, &maximum);
    assert_eq!(books::fields(&answer.body["errors"][0], ["pointer", "code"]), ["/max", "no_max"]);

    let edit = format!("{GRANTS}edit/{}", sold["grant_ref"].as_str().expect("a reference"));
    let answer = client.post(&edit, &json!({"amount": "1.00"}));
    assert_eq!(books::fields(&answer.body["errors"][0], ["pointer", "code"]), ["/amount", "not_allowed"]);
    assert_eq!(client.post(&edit, &json!({"name": "Top-up", "to": "2026-12-31"})).ok()["name"], "Top-up");
    refused(&client.get(&format!("{GRANTS}0198f000-0000-7000-8000-000000000000")), 404, "credit_grant_not_found");
    for _ in 0..99 {
        client.post(GRANTS, &grant(&json!({}))).ok();
    }
    let answer = client.post(GRANTS, &grant(&json!({})));
    assert_eq!(books::fields(&answer.body["errors"][0], ["pointer", "code"]), ["/customer_ref", "too_many_grants"]);
    assert_eq!(client.get(&format!("{GRANTS}filter?customer_ref=acme&pageSize=1")).header("x-total-count"), "100");
}

fn given_credit_ends_before_sold_credit_and_a_sale_by_transfer_waits(database: &Database) {
    let scene = vendor(database, "2026-11-30T09:00:00Z");
    let client = &scene.client;
    let given = client.post(GRANTS, &grant(&json!({"to": "2026-11-30"}))).ok();
    let limit = client.post(LIMITS, &owed(&json!(0))).ok();
    let sold = sell(client, "100", &Value::Null);
    assert_eq!(amounts(client, &sold), ["0.00"; 4]);
    let number = || client.get(&format!("{LIMITS}{}", limit["limit_ref"].as_str().expect("a reference"))).ok();
    assert_eq!(books::fields(&number(), ["value", "left"]), ["0.00", "10.00"]);
    refused(&client.post("/api/usage/event", &used("2026-11-30T09:00:00Z", 1_500_000, &json!({}))), 422, "limit_reached");
    books::pay(client, &sold["document_ref"], &json!({"amount": "120.00"})).ok();
    assert_eq!(books::fields(&number(), ["value", "left"]), ["0.00", "110.00"]);
    client.post("/api/usage/event", &used("2026-11-30T09:00:00Z", 1_500_000, &json!({}))).ok();
    assert_eq!((amounts(client, &given)[2].as_str(), amounts(client, &sold)[2].as_str()), ("10.00", "5.00"));
    // December's usage takes sold credit only.
    scene.go_to("2026-12-02");
    client.post("/api/usage/event", &used("2026-12-02T09:00:00Z", 100_000, &json!({}))).ok();
    assert_eq!((amounts(client, &given)[2].as_str(), amounts(client, &sold)[2].as_str()), ("10.00", "6.00"));
}

fn a_chargeback_of_the_sale_stops_usage(database: &Database) {
    let scene = vendor(database, "2026-11-30T09:00:00Z");
    let client = &scene.client;
    let sold = sell(client, "100", &json!({"amount": "120.00"}));
    client.post(LIMITS, &owed(&json!(0))).ok();
    client.post("/api/usage/event", &used("2026-11-30T09:00:00Z", 3_000_000, &json!({}))).ok();
    assert_eq!(document(client, "UB-INV-2")[3], "0.00");
    let payment = books::payments(client, &sold["document_ref"]).remove(0);
    books::reverse(client, &payment["payment_ref"], &json!({})).ok();
    assert_eq!(amounts(client, &sold), ["0.00"; 4]);
    assert_eq!(document(client, "UB-INV-2")[3], "36.00");
    let rejected = client.post("/api/usage/event", &used("2026-11-30T09:00:00Z", 100_000, &json!({})));
    refused(&rejected, 422, "limit_reached");
    assert_eq!(books::fields(&rejected.body, ["value", "needed"]), ["36.00", "1.20"]);
}

fn a_limit_of_free_credit_counts_no_debts(database: &Database) {
    let scene = vendor(database, "2026-11-30T09:00:00Z");
    let client = &scene.client;
    client.post("/api/usage/event", &used("2026-11-30T09:00:00Z", 1_000_000, &json!({}))).ok();
    client.post("/api/customers/payments/acme", &json!({"currency": "EUR", "amount": "7.00"})).ok();
    client.post(LIMITS, &owed(&json!(100))).ok();
    let limit = json!({"metric": "PREPAID", "customer_ref": "acme", "currency": "EUR", "thresholds": ["5.00"]});
    let limit = client.post(LIMITS, &limit).ok();
    assert_eq!(books::fields(&limit, ["value", "held", "left"]), ["0.00", "0.00", "null"]);
    // The draft takes 10.00 of the credit.
    client.post(GRANTS, &grant(&json!({"amount": "12.00"}))).ok();
    let number = client.get(&format!("{LIMITS}{}", limit["limit_ref"].as_str().expect("a reference"))).ok();
    assert_eq!(books::fields(&number, ["value", "held"]), ["2.00", "0.00"]);
}

fn a_dry_run_shows_what_a_request_takes_of_credit(database: &Database) {
    let scene = vendor(database, "2026-11-30T09:00:00Z");
    let client = &scene.client;
    let dry = |path: &str, body: &Value| client.post("/api/dry_run", &json!({"path": path, "body": body})).ok();
    let body =
        json!({"customer_ref": "acme", "product_pricing_ref": "credit-100", "name": "Credit", "payment": {"amount": "120"}});
    let effects = dry(&format!("{GRANTS}sell"), &body);
    assert_eq!(books::fields(&effects["credits"][0], ["free_before", "free"]), ["0.00", "100.00"]);
    assert_eq!(effects["issued"].as_array().map(Vec::len), Some(1));
    assert_eq!(client.get(&format!("{GRANTS}filter")).header("x-total-count"), "0");
    let sold = sell(client, "100", &json!({"amount": "120.00"}));
    let effects = dry("/api/usage/event", &used("2026-11-30T09:00:00Z", 1_000_000, &json!({})));
    assert_eq!(effects["credits"][0]["grant_ref"], sold["grant_ref"]);
    assert_eq!(books::fields(&effects["credits"][0], ["free_before", "free"]), ["100.00", "90.00"]);
    assert_eq!(effects["opened"][0]["total_prepaid"].to_string(), "10.00");
    client.post("/api/usage/event", &used("2026-11-30T09:00:00Z", 1_000_000, &json!({}))).ok();
    // Credit that ends first is used first: the draft takes all of it instead.
    let effects = dry(GRANTS, &grant(&json!({"to": "2026-11-30"})));
    assert_eq!(effects["credits"].as_array().map(Vec::len), Some(1));
    assert_eq!(books::fields(&effects["credits"][0], ["free_before", "free"]), ["90.00", "100.00"]);
    assert_eq!(effects["recomputed"][0]["prepaid"][0]["name"], "Goodwill");
}

fn credit_in_units_has_those_of_the_issue_on_issued_documents(database: &Database) {
    let scene = vendor(database, "2026-11-30T09:00:00Z");
    let client = &scene.client;
    let unit = |per_unit: &str| {
        let entity = client.get("/api/entities/filter").ok()[0]["entity_ref"].as_str().expect("a reference").to_owned();
        let units = json!({"EUR": {"name": "credits", "per_unit": per_unit}});
        client.post(&format!("/api/entities/edit/{entity}"), &json!({"credit_unit": units})).ok();
    };
    let given = client.post(GRANTS, &grant(&json!({"name": "Before"}))).ok();
    assert_eq!(given["units"], Value::Null);
    unit("0.03");
    client.post("/api/usage/event", &used("2026-11-30T09:00:00Z", 200_000, &json!({}))).ok();
    let draft = books::numbered(client, "UB-INV-1");
    assert_eq!(draft["prepaid"][0]["units"], json!({"name": "credits", "amount": 66.66}));
    books::issue(client, &draft["document_ref"]).ok();
    unit("0.5");
    let issued = books::numbered(client, "UB-INV-1");
    assert_eq!(issued["prepaid"], draft["prepaid"]);
    let draws = client.get(&format!("{GRANTS}draws/filter")).ok();
    assert_eq!(draws[0]["units"], json!({"name": "credits", "amount": 4}));
    let grant = client.get(&format!("{GRANTS}{}", given["grant_ref"].as_str().expect("a reference"))).ok();
    assert_eq!(books::fields(&grant["units"], ["amount", "usable", "drawn", "covered", "free"]), ["20", "20", "4", "0", "16"]);
    let balance = client.get("/api/customers/balance/acme").ok();
    assert_eq!(books::fields(&balance[0]["credit_units"], ["credit_free", "credit_covered"]), ["16", "0"]);
    let left = client.get(&format!("{LIMITS}left?customer_ref=acme")).ok();
    assert_eq!(left[0]["credit"][0]["units"], json!({"name": "credits", "free": 16, "held": 0}));
}

fn an_issue_of_one_contract_keeps_the_credit_that_a_hold_on_another_needs(database: &Database) {
    let (_first, _second, client) = two_contracts(database);
    let given = client.post(GRANTS, &grant(&json!({"amount": "7.00"}))).ok();
    client.post(LIMITS, &owed(&json!(0))).ok();
    let left = || {
        let left = client.get(&format!("{LIMITS}left?customer_ref=acme")).ok();
        books::fields(&left[0]["left"][0], ["value", "held", "left"])
    };
    let event = |product: &str, quantity: u32, fields: Value| {
        let event = catalog::with(catalog::event("acme", quantity), &json!({"usage_product_ref": product}));
        client.post("/api/usage/event", &catalog::with(event, &fields))
    };
    let calls = event("calls", 40, json!({})).ok();
    let usage = json!([{"usage_product_ref": "mails", "quantity": 50}]);
    client.post(HOLDS, &json!({"hold_ref": "h", "customer_ref": "acme", "expires_in": 3600, "usage": usage})).ok();
    assert_eq!(left(), ["0.00", "0.00", "0.70"]);
    books::issue(&client, &calls["related_document_ref"]).ok();
    assert_eq!(left(), ["0.00", "0.00", "0.70"]);
    refused(&event("calls", 11, json!({})), 422, "limit_reached");
    event("calls", 10, json!({})).ok();
    refused(&event("mails", 1, json!({})), 422, "limit_reached");
    event("mails", 50, json!({"hold_ref": "h"})).ok();
    assert_eq!(left(), ["0.00", "0.00", "0.00"]);
    assert_eq!(amounts(&client, &given), ["7.00", "2.80", "4.20", "0.00"]);
}

fn verify_finds_a_draw_that_was_changed_by_hand(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make_plan(&client);
    catalog::make_customer(&client, "acme");
    client.post(GRANTS, &grant(&json!({"amount": "1.00"}))).ok();
    catalog::sell(&client, &[catalog::months(catalog::API_PLAN, 2, 12)]);
    books::run(&client);
    assert_eq!(client.get(&format!("{GRANTS}draws/filter")).header("x-total-count"), "1");
    drop(server);
    let found = |change: &str| {
        database.execute(change);
        binary::verify(database.url()).expect_err("a wrong draw")
    };
    let stated = found("UPDATE credit_draws SET amount_minor = amount_minor - 1");
    assert!(stated.contains("its draws add up to 99 minor units, and 100 are drawn"), "{stated}");
    let stated = found("UPDATE credit_grants SET drawn_minor = drawn_minor - 1");
    assert!(stated.contains("states 100 minor units of it, and its draws 99"), "{stated}");
    let stated = found("DELETE FROM credit_draws");
    assert!(stated.contains("UB-INV-1: it states credit of 1 grants, and has 0 draws"), "{stated}");
}

fn cents(value: &Value) -> i64 {
    value.to_string().replace('.', "").parse().expect("cents")
}

/// A server, a second one if the database can have two, and a customer with credit and two contracts.
fn two_contracts(database: &Database) -> (Server, Option<Server>, Client) {
    let first = Server::start(database);
    let client = Client::new_key(&first);
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

fn sixty_four_threads_on_two_servers_use_credit_to_the_cent(database: &Database) {
    let (_first, second, client) = two_contracts(database);
    let given = client.post(GRANTS, &grant(&json!({"amount": "3.00"}))).ok();
    client.post(LIMITS, &owed(&json!(0))).ok();
    // 42 events of 0.07 are 2.94, and one more would be 3.01.
    let (accepted, barrier) = (AtomicUsize::new(0), Barrier::new(AGENTS));
    thread::scope(|scope| {
        for index in 0..AGENTS {
            let own = match &second {
                Some(second) if index % 2 == 1 => client.at(second).with_own_connections(),
                _ => client.with_own_connections(),
            };
            let (accepted, barrier) = (&accepted, &barrier);
            scope.spawn(move || {
                let product = if index % 3 == 0 { "mails" } else { "calls" };
                barrier.wait();
                let event = catalog::with(catalog::event("acme", 1), &json!({"usage_product_ref": product}));
                let answer = own.post("/api/usage/event", &event);
                if answer.status == 200 {
                    accepted.fetch_add(1, Ordering::Relaxed);
                } else {
                    refused(&answer, 422, "limit_reached");
                }
            });
        }
    });
    assert_eq!(accepted.into_inner(), 42);
    assert_eq!(amounts(&client, &given), ["3.00", "0.00", "2.94", "0.06"]);
    assert!(catalog::documents(&client).iter().all(|document| cents(&document["total"]) == 0));
}

fn killed_servers_draw_exactly_the_credit_that_documents_state(database: &Database) {
    let mut server = Server::start(database);
    let key = Client::admin(&server).generate_key(&json!({}));
    let mut client = Client::key(&server, &key);
    catalog::make_plan(&client);
    catalog::make_customer(&client, "acme");
    catalog::sell(&client, &[catalog::months(catalog::API_PLAN, 2, 12)]);
    let given = client.post(GRANTS, &grant(&json!({"amount": "100000.00"}))).ok();
    // Usage of last month: each billing run issues what is there, and later usage makes debits.
    let past = |client: &Client| {
        books::run(client);
    };
    for round in 0..3 {
        let named = move |thread: usize, index: usize| {
            let key = json!({"idempotency_key": format!("{round}-{thread}-{index}")});
            catalog::with(catalog::event("acme", 1), &key)
        };
        let load = Load::start(&client, 8, named);
        load.wait_for(20);
        past(&client);
        server.kill_9();
        load.join();
        server = Server::start(database);
        client = Client::key(&server, &key);
        past(&client);
    }
    let draws = client.get(&format!("{GRANTS}draws/filter?pageSize=500")).ok();
    let drawn: i64 = draws.as_array().expect("draws").iter().map(|draw| cents(&draw["amount"])).sum();
    let documents = catalog::documents(&client);
    let issued = documents.iter().filter(|document| document["state"] != "DRAFT");
    let stated: i64 = issued.map(|document| cents(&document["total_prepaid"])).sum();
    assert_eq!(drawn, stated);
    assert!(drawn > 0, "no document was issued with credit");
    assert_eq!(amounts(&client, &given)[1].replace('.', ""), drawn.to_string());
}
