//! Records that come again: an equal one is a repeat by every door, and a corrected one updates its event if the sender asks for it.

use std::collections::BTreeMap;
use std::thread;

use acceptance::when::Day;
use acceptance::{Answer, Client, Database, Request, Server, binary, catalog, on_both_databases, when};
use serde_json::{Value, json};

on_both_databases!(
    an_event_is_the_same_in_any_form,
    a_corrected_record_updates_its_event_by_every_door,
    a_record_that_nothing_corrects_is_told_what_to_do,
    a_file_counts_what_it_updates_and_an_undo_leaves_that,
);

const EVENT: &str = "/api/usage/event";
const NDJSON: &str = "application/x-ndjson";

fn usage(client: &Client, contract: &str) -> Value {
    catalog::current_invoice(client, contract)["products"][0]["line_items"][1]["quantity"].clone()
}

fn record(key: &str, timestamp: &str, quantity: impl Into<Value>) -> Value {
    let fields = json!({"timestamp": timestamp, "idempotency_key": key});
    catalog::with(catalog::event(catalog::ACME, quantity.into()), &fields)
}

fn import(client: &Client, query: &str, records: &[Value]) -> Answer {
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    client.send(&Request::post(&format!("/api/usage/import{query}"), lines).with("Content-Type", NDJSON))
}

/// Returns the numbers of recorded, updated, existing and rejected events.
#[track_caller]
fn counts(result: &Value) -> [u64; 4] {
    ["recorded", "updated", "already_there", "refused"].map(|field| result[field].as_u64().expect("a count"))
}

fn an_event_is_the_same_in_any_form(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let now = when::now();
    let offset = now.replace('Z', ".000+00:00");
    let key = client.with_header("Idempotency-Key", "k");
    let first = key.post(EVENT, &catalog::with(record("k", &now, "5"), &json!({"validations": null})));
    assert_eq!(first.status, 200, "{}", first.text);
    let labels = json!({"additional_report_data": {"region": null, "note": ""}});
    for again in [record("k", &now, 5), record("k", &offset, "5.000"), catalog::with(record("k", &now, 5), &labels)] {
        let answer = key.post(EVENT, &again);
        assert_eq!((answer.header("Idempotency-Replayed"), &answer.text), ("true", &first.text), "{again}");
        let batch = client.post("/api/usage/event/batch", &json!({"events": [again]})).ok();
        assert_eq!(batch["results"][0], first.body);
        assert_eq!(counts(&import(&client, "?name=a", &[again]).ok()), [0, 0, 1, 0]);
    }
    // By name, the customer may be another one tomorrow, but the key is the customer's.
    let mut by_name = record("k", &now, 5);
    by_name.as_object_mut().expect("an object").remove("customer_ref");
    let by_name = catalog::with(by_name, &json!({"customer_name": client.get("/api/customers/acme").ok()["name"]}));
    for again in [by_name.clone(), catalog::with(by_name, &json!({"quantity": "5.0"}))] {
        assert_eq!(key.post(EVENT, &again).ok(), first.body, "{again}");
    }
    // A format's door has other fields: it shows the event as it is.
    let mapping = json!({
        "timestamp": "event.at", "customer_ref": "\"acme\"", "usage_product_ref": "\"api-calls\"", "quantity": "event.much",
    });
    client.post("/api/usage/formats/", &json!({"format_name": "Log", "mapping": mapping})).ok();
    for much in [json!(5), json!("5.00")] {
        let body = json!({"format_name": "Log", "event": {"at": now, "much": much}});
        let formatted = key.post("/api/usage/event/formatted", &body).ok();
        assert_eq!((&formatted["event_ref"], &formatted["quantity"]), (&first.body["event_ref"], &json!(5)), "{much}");
    }
    assert_eq!(usage(&client, &contract), json!(5));
}

fn a_corrected_record_updates_its_event_by_every_door(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let now = when::now();
    let event = client.post(EVENT, &record("k", &now, 1)).ok();
    let updated = |answer: &Value, quantity: u32| {
        assert_eq!(answer["event_ref"], event["event_ref"]);
        assert_eq!(usage(&client, &contract), json!(quantity));
        // A repeat of what was delivered last changes nothing.
        assert_eq!(client.post(EVENT, &record("k", &now, quantity)).ok()["event_ref"], event["event_ref"]);
        assert_eq!(usage(&client, &contract), json!(quantity));
    };
    updated(&client.post(&format!("{EVENT}?on_conflict=UPDATE"), &record("k", &now, 2)).ok(), 2);
    let key = client.with_header("Idempotency-Key", "k");
    updated(&key.post(&format!("{EVENT}?on_conflict=UPDATE"), &record("k", &now, 3)).ok(), 3);
    let batch = "/api/usage/event/batch";
    updated(
        &client.post(&format!("{batch}?on_conflict=UPDATE"), &json!({"events": [record("k", &now, 4)]})).ok()["results"][0],
        4,
    );
    let in_body = json!({"events": [record("k", &now, 5)], "on_conflict": "UPDATE"});
    updated(&client.post(batch, &in_body).ok()["results"][0], 5);
    let atomic = json!({"events": [record("k", &now, 6)], "on_conflict": "UPDATE", "atomic": true});
    updated(&client.post(batch, &atomic).ok()["results"][0], 6);
    let keyed = json!({"events": [record("k", &now, 7)], "on_conflict": "UPDATE"});
    updated(&client.with_header("Idempotency-Key", "b").post(batch, &keyed).ok()["results"][0], 7);
    let path = format!("{batch}?on_conflict=UPDATE");
    let line = client.send(&Request::post(&path, format!("{}\n", record("k", &now, 8))).with("Content-Type", NDJSON));
    updated(&serde_json::from_str(line.text.trim()).expect("a line"), 8);
    let mut file = import(&client, "?on_conflict=UPDATE", &[record("k", &now, 9)]).ok();
    assert_eq!(counts(&file), [0, 1, 0, 0]);
    updated(&event, 9);
    let keyed = client.with_header("Idempotency-Key", "f");
    file = import(&keyed, "?on_conflict=UPDATE", &[record("k", &now, 10), record("k", &now, 11), record("l", &now, 0)]).ok();
    assert_eq!(counts(&file), [1, 2, 0, 0]);
    updated(&event, 11);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("usage.ndjson");
    std::fs::write(&path, record("k", &now, 12).to_string()).expect("a file");
    let path = path.to_str().expect("a path");
    let output = binary::succeed(database, &["import", path, "--on-conflict", "update"]);
    assert!(output.starts_with("Events recorded: 0; updated: 1; duplicates: 0; rejected: 0.\n"), "{output}");
    updated(&event, 12);
    let history = client.get(&format!("/api/usage/event/history/{}", event["event_ref"].as_str().expect("a reference"))).ok();
    assert_eq!(history.as_array().map(Vec::len), Some(12), "each delivery is a revision: {history}");
    let found = client.get("/api/usage/event/filter?customer_ref=acme&idempotency_key=k").ok();
    assert_eq!((found.as_array().map(Vec::len), &found[0]["event_ref"]), (Some(1), &event["event_ref"]));
}

fn a_record_that_nothing_corrects_is_told_what_to_do(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let now = when::now();
    let event = client.post(EVENT, &record("k", &now, 1)).ok();
    let event_ref = event["event_ref"].as_str().expect("a reference");
    let refused = client.post(EVENT, &record("k", &now, 2));
    assert_eq!((refused.status, &refused.body["code"]), (422, &json!("idempotency_key_reuse")));
    assert_eq!(refused.body["event_ref"], event["event_ref"]);
    assert!(refused.text.contains("on_conflict=UPDATE") && !refused.text.contains("new key"), "{}", refused.text);
    let rejected = import(&client, "", &[record("k", &now, 2)]).ok();
    assert_eq!(rejected["rejects"][0]["code"], "idempotency_key_reuse");
    let update = format!("{EVENT}?on_conflict=UPDATE");
    let other = catalog::with(record("k", &now, 2), &json!({"usage_product_ref": "other"}));
    assert_eq!(client.post(&update, &other).body["errors"][0]["code"], "not_changeable");
    let wrong = client.post(&format!("{EVENT}?on_conflict=PERHAPS"), &record("k", &now, 2));
    assert_eq!((wrong.status, &wrong.body["errors"][0]["pointer"]), (422, &json!("/on_conflict")));
    assert_eq!(client.delete(&format!("{EVENT}/{event_ref}")).status, 204);
    let deleted = client.post(&update, &record("k", &now, 2));
    assert_eq!(
        (deleted.status, &deleted.body["code"], &deleted.body["event_ref"]),
        (409, &json!("event_deleted"), &event["event_ref"])
    );
    assert_eq!(import(&client, "?on_conflict=UPDATE", &[record("k", &now, 2)]).ok()["rejects"][0]["code"], "event_deleted");
    let found = client.get("/api/usage/event/filter?customer_ref=acme&idempotency_key=k").ok();
    assert_eq!(found[0]["event_ref"], event["event_ref"], "also a deleted event");
    let alone = client.get("/api/usage/event/filter?idempotency_key=k");
    assert_eq!((alone.status, &alone.body["errors"][0]["pointer"]), (422, &json!("/customer_ref")));
    assert_eq!(usage(&client, &contract), json!(0));
}

fn a_file_counts_what_it_updates_and_an_undo_leaves_that(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let now = when::now();
    let file = |quantities: &[(&str, u32)]| -> Vec<Value> {
        quantities.iter().map(|(key, quantity)| record(key, &now, *quantity)).collect()
    };
    let first = import(&client, "", &file(&[("a", 1), ("b", 1)])).ok();
    assert_eq!(counts(&first), [2, 0, 0, 0]);
    let tried = import(&client, "?on_conflict=UPDATE&dry_run=true", &file(&[("a", 1), ("b", 5), ("c", 1), ("c", 2)])).ok();
    assert_eq!(counts(&tried), [1, 2, 1, 0]);
    assert_eq!(usage(&client, &contract), json!(2));
    let second = import(&client, "?on_conflict=UPDATE", &file(&[("a", 1), ("b", 5), ("c", 1), ("c", 2)])).ok();
    assert_eq!(counts(&second), [1, 2, 1, 0]);
    assert_eq!(usage(&client, &contract), json!(8));
    let import_ref = second["import_ref"].as_str().expect("a reference");
    assert_eq!(counts(&client.get(&format!("/api/usage/imports/{import_ref}")).ok()), [1, 2, 1, 0]);
    client.post(&format!("/api/usage/imports/undo/{import_ref}"), &Value::Null).ok();
    assert_eq!(usage(&client, &contract), json!(6), "what was updated stays");
    assert_eq!(counts(&import(&client, "?on_conflict=UPDATE", &file(&[("a", 1), ("b", 1)])).ok()), [0, 1, 1, 0]);
    assert_eq!(usage(&client, &contract), json!(2));
}

#[test]
fn files_with_corrections_on_two_servers_end_with_the_last_facts_of_each_key() {
    const KEYS: usize = 12;
    let database = Database::postgres();
    let servers = [Server::start(&database), Server::start(&database)];
    let client = Client::new_key(&servers[0]);
    catalog::make(&client);
    let contract = catalog::make_contract(&client, &catalog::contract(catalog::ACME));
    let now = when::now();
    // Each thread sends all keys in an order of its own, in one transaction or in several.
    thread::scope(|scope| {
        for thread in 0..6_usize {
            let (client, now) = (client.at(&servers[thread % 2]), now.clone());
            scope.spawn(move || {
                for round in 0..8_usize {
                    let mut records: Vec<Value> = (0..KEYS)
                        .map(|key| {
                            record(&format!("k{}", (key * [1, 5, 7, 11][thread % 4] + round) % KEYS), &now, thread * 100 + round)
                        })
                        .collect();
                    records.push(record("same", &now, thread * 100 + round));
                    let name = format!("{thread}-{round}");
                    let keyed = client.with_header("Idempotency-Key", &name);
                    let sender = if thread % 3 == 0 { &keyed } else { &client };
                    let answer = (0..20)
                        .map(|_| import(sender, "?on_conflict=UPDATE", &records))
                        .find(|answer| answer.status != 503)
                        .expect("an answer within twenty attempts");
                    let result = answer.ok();
                    assert_eq!((&result["refused"], &result["stopped"]), (&json!(0), &Value::Null), "{result}");
                }
            });
        }
    });
    // The bill is the sum of what the events say, each key once.
    let events = client.get("/api/usage/event/filter?customer_ref=acme&pageSize=1000").ok();
    let events = events.as_array().expect("events");
    let mut quantities: BTreeMap<&str, u64> = BTreeMap::new();
    for event in events {
        let quantity = event["quantity"].as_u64().expect("a whole number");
        assert!(quantities.insert(event["event_ref"].as_str().expect("a reference"), quantity).is_none());
        assert!(quantity % 100 == 7, "the last round of a thread: {quantity}");
    }
    assert_eq!(quantities.len(), KEYS + 1);
    assert_eq!(usage(&client, &contract), json!(quantities.values().sum::<u64>()));
}

/// Delivers records that move between an issued contract and an open one in each round. In the middle, undoes the import of the first
/// round, so that the next delivery records the events anew.
fn deliver_in_turn(client: &Client, thread: usize, (days, rounds): (&[String; 2], usize)) {
    let mut first = Value::Null;
    for round in 0..rounds {
        let of_key = |key: usize| {
            record(&format!("{thread}/{key}"), &days[(round + key + thread) % 2], (1 + thread * 1000 + round * 10 + key) as u64)
        };
        let records: Vec<Value> = (0..6).map(of_key).collect();
        let sent = (0..30).map(|_| import(client, "?on_conflict=UPDATE", &records)).find(|answer| answer.status != 503);
        let result = sent.expect("an answer within thirty attempts").ok();
        assert_eq!((&result["refused"], &result["stopped"]), (&json!(0), &Value::Null), "{result}");
        if round == 0 {
            first = result["import_ref"].clone();
        }
        if round == rounds / 2 {
            let undo = format!("/api/usage/imports/undo/{}", first.as_str().expect("a reference"));
            let undone = client.post_nothing(&undo).ok();
            assert_eq!((&undone["deleted"], &undone["refused"]), (&json!(6), &json!(0)), "{undone}");
        }
    }
}

#[test]
fn records_move_between_contracts_that_another_server_edits_and_bills() {
    const ROUNDS: usize = 9;
    let database = Database::postgres();
    let servers = [Server::start(&database), Server::start(&database)];
    let client = Client::new_key(&servers[0]);
    catalog::make(&client);
    catalog::make_pricing(&client, "calls", &json!([catalog::calls(&json!({"model": "PER_UNIT", "unit_price": "0.10"}))]));
    catalog::sell(&client, &[catalog::ended("calls")]);
    let start = Day::today().plus_days(-9);
    let dates = json!({"billing_start_date": start.to_string(), "billing_end_date": start.plus_months(12).plus_days(-1).to_string(),
        "product_pricing_ref": "calls", "issue_day": start.to_string()});
    let open = catalog::sell(&client, &[dates]);
    let days = [Day::today().plus_days(-20).noon(), Day::today().plus_days(-1).noon()];
    client.post(EVENT, &record("issued", &days[0], 1000)).ok();
    client.post("/api/billing/run", &json!({})).ok();
    thread::scope(|scope| {
        for thread in 0..4_usize {
            let (client, days) = (client.at(&servers[thread % 2]), &days);
            scope.spawn(move || deliver_in_turn(&client, thread, (days, ROUNDS)));
        }
        let (editor, open) = (client.at(&servers[1]), &open);
        scope.spawn(move || {
            for round in 0..12_u64 {
                let discount = if round == 11 { 0 } else { round };
                let edit = json!({"include_current_invoice": true,
                    "products": [{"product_pricing_ref": "calls", "line_items": [{"line_item_id": "calls"}], "discount": discount}]});
                editor.post(&format!("/api/contracts/edit/{open}"), &edit).ok();
                editor.post("/api/billing/run", &json!({})).ok();
            }
        });
    });
    let events = client.get("/api/usage/event/filter?customer_ref=acme&pageSize=1000").ok();
    let events = events.as_array().expect("events");
    assert_eq!(events.len(), 1 + 4 * 6);
    let (mut on_day, last) = ([1000_u64, 0], ROUNDS - 1);
    for (thread, key) in (0..4).flat_map(|thread| (0..6).map(move |key| (thread, key))) {
        on_day[(last + key + thread) % 2] += (1 + thread * 1000 + last * 10 + key) as u64;
    }
    for (day, expected) in days.iter().zip(on_day) {
        let found =
            events.iter().filter(|event| event["timestamp"] == **day).map(|event| event["quantity"].as_u64().expect("a number"));
        assert_eq!(found.sum::<u64>(), expected, "{day}");
    }
    // The bills of both contracts come to the price of the last facts, in cents.
    let cents = |document: &Value| -> i64 {
        let amount: i64 = document["sub_total"].to_string().replace('.', "").parse().expect("an amount");
        if document["kind"] == "CREDIT" { -amount } else { amount }
    };
    let billed = |is_open: bool| -> i64 {
        let documents = catalog::documents(&client);
        let of_contract = documents.iter().filter(|document| (document["contract_ref"] == *open) == is_open);
        of_contract.filter(|document| document["state"] != "VOID").map(cents).sum()
    };
    assert_eq!([billed(false), billed(true)], on_day.map(|quantity| 10 * i64::try_from(quantity).expect("a small number")));
}
