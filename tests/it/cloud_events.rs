//! CloudEvents by their content type: alone and in batches, with the built-in format or an own one.

use acceptance::when::Day;
use acceptance::{Answer, Client, Database, Request, Server, catalog, on_sqlite, when};
use serde_json::{Value, json};

on_sqlite!(
    a_cloud_event_is_recorded_once_under_source_and_id,
    a_cloud_event_without_a_time_can_come_later_again,
    a_corrected_cloud_event_updates_the_recorded_one,
    what_is_no_cloud_event_is_refused,
    an_own_format_of_the_name_replaces_the_built_in_one,
    a_batch_of_cloud_events_has_a_result_for_each,
    a_cloud_event_is_known_through_other_doors,
);

const FORMATTED: &str = "/api/usage/event/formatted";
const BATCH: &str = "/api/usage/event/batch";
const ONE: &str = "application/cloudevents+json";
const ARRAY: &str = "application/cloudevents-batch+json";

/// Returns a CloudEvent with a quantity of calls.
fn calls(id: &str, quantity: impl Into<Value>) -> Value {
    json!({"specversion": "1.0", "id": id, "source": "/gateway/1", "type": "api-calls", "subject": catalog::ACME,
        "time": Day::today().plus_days(-1).noon(), "datacontenttype": "application/json", "traceid": "t-1",
        "data": {"quantity": quantity.into(), "region": "eu", "tags": ["x"], "paid": true}})
}

fn send(client: &Client, path: &str, event: &Value) -> Answer {
    client.send(&Request::post(path, event.to_string()).with("Content-Type", if event.is_array() { ARRAY } else { ONE }))
}

fn usage(client: &Client, contract: &str) -> Value {
    catalog::current_invoice(client, contract)["products"][0]["line_items"][1]["quantity"].clone()
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) -> Vec<String> {
    let found = (answer.status, answer.body["code"].as_str());
    assert_eq!(found, (status, Some(code)), "{}", answer.text);
    let errors = answer.body["errors"].as_array().into_iter().flatten();
    errors.map(|error| format!("{} {}", error["pointer"].as_str().unwrap_or(""), error["code"].as_str().unwrap_or(""))).collect()
}

fn codes(results: &Value) -> Vec<&str> {
    let results = results.as_array().expect("results").iter();
    results
        .map(|result| result["code"].as_str().unwrap_or_else(|| result["event_ref"].as_str().map_or("?", |_| "taken")))
        .collect()
}

fn stage(database: &Database) -> (Server, Client, String) {
    catalog::stage_with(database, &catalog::contract(catalog::ACME))
}

fn a_cloud_event_is_recorded_once_under_source_and_id(database: &Database) {
    let (_server, client, contract) = stage(database);
    let event = calls("e-1", 5);
    let first = send(&client, FORMATTED, &event);
    let recorded = first.clone().ok();
    assert_eq!(recorded["timestamp"], event["time"]);
    assert_eq!((&recorded["quantity"], &recorded["format_ref"]), (&json!(5), &json!("cloudevents")));
    assert_eq!(recorded["additional_report_data"], json!({"region": "eu", "paid": true}));
    assert_eq!(recorded["event"], event);
    let again = send(&client, FORMATTED, &catalog::with(calls("e-1", "5.0"), &json!({"traceid": "t-2"})));
    assert_eq!((again.header("Idempotency-Replayed"), &again.body), ("true", &recorded));
    // Another source has ids of its own. `value` is a quantity, and an event without either counts as one.
    let of = |source: &str, data: Value| catalog::with(calls("e-1", 1), &json!({"source": source, "data": data}));
    for (source, data, quantity, labels) in [
        ("/gateway/2", json!({"value": 2, "region": null}), 2, json!({"region": null})),
        ("/gateway/3", json!({"region": "us"}), 1, json!({"region": "us"})),
        ("/gateway/4", json!("plain text"), 1, Value::Null),
        ("/gateway/5", Value::Null, 1, Value::Null),
    ] {
        let recorded = send(&client, FORMATTED, &of(source, data)).ok();
        assert_eq!((&recorded["quantity"], &recorded["additional_report_data"]), (&json!(quantity), &labels), "{source}");
    }
    assert_eq!(usage(&client, &contract), json!(10));
    let format = client.get("/api/usage/formats/cloudevents").ok();
    assert_eq!((&format["format_name"], &format["changed_at"]), (&json!("CloudEvents"), &Value::Null));
    let listed = client.get("/api/usage/formats/filter").ok();
    let names: Vec<&str> =
        listed.as_array().expect("a list").iter().filter_map(|format| format["format_name"].as_str()).collect();
    assert_eq!(names, ["Default Format", "CloudEvents"]);
}

fn a_cloud_event_without_a_time_can_come_later_again(database: &Database) {
    let (_server, client, contract) = stage(database);
    let mut event = calls("e-1", 5);
    event.as_object_mut().expect("an object").remove("time");
    let before = when::in_seconds(-1);
    let recorded = send(&client, FORMATTED, &event).ok();
    let at = recorded["timestamp"].as_str().expect("a timestamp");
    assert!(before.as_str() <= at && at <= when::in_seconds(1).as_str(), "{at}");
    let again = send(&client, FORMATTED, &event);
    assert_eq!((again.header("Idempotency-Replayed"), &again.body), ("true", &recorded));
    // A correction without a time keeps the time.
    event["data"]["quantity"] = json!(7);
    let updated = send(&client, &format!("{FORMATTED}?on_conflict=UPDATE"), &event).ok();
    assert_eq!((&updated["timestamp"], &updated["quantity"]), (&recorded["timestamp"], &json!(7)));
    assert_eq!(usage(&client, &contract), json!(7));
    // Only a CloudEvent can leave out its time.
    let mapped = client.post(FORMATTED, &json!({"format_name": "CloudEvents", "event": event}));
    assert_eq!(refused(&mapped, 422, "format_error"), ["/event format_error"]);
    let tested = client.post("/api/usage/formats/test", &json!({"format_name": "CloudEvents", "event": event})).ok();
    assert_eq!((&tested["mapped"]["quantity"], &tested["mapped"]["timestamp"]), (&json!(7), &Value::Null));
}

fn a_corrected_cloud_event_updates_the_recorded_one(database: &Database) {
    let (_server, client, contract) = stage(database);
    let recorded = send(&client, FORMATTED, &calls("e-1", 5)).ok();
    let reused = send(&client, FORMATTED, &calls("e-1", 6));
    refused(&reused, 422, "idempotency_key_reuse");
    assert_eq!(reused.body["event_ref"], recorded["event_ref"]);
    let updated = send(&client, &format!("{FORMATTED}?on_conflict=UPDATE"), &calls("e-1", 6)).ok();
    assert_eq!((&updated["event_ref"], &updated["quantity"]), (&recorded["event_ref"], &json!(6)));
    assert_eq!(usage(&client, &contract), json!(6));
}

fn what_is_no_cloud_event_is_refused(database: &Database) {
    let (_server, client, _) = stage(database);
    let with = |fields: Value| send(&client, FORMATTED, &catalog::with(calls("e-1", 5), &fields));
    assert_eq!(
        refused(&with(json!({"specversion": "0.3"})), 422, "unsupported_cloudevent"),
        ["/specversion unsupported_cloudevent"]
    );
    assert_eq!(refused(&with(json!({"source": "", "id": 5})), 422, "validation_failed"), ["/source empty", "/id wrong_type"]);
    // The pairs (`/a`, `b\0c`) and (`/a\0b`, `c`) would have the same key.
    let split = with(json!({"source": "/a\0b", "id": "b\0c"}));
    assert_eq!(refused(&split, 422, "validation_failed"), ["/source invalid_format", "/id invalid_format"]);
    assert_eq!(refused(&with(json!({"data": {"quantity": "many"}})), 422, "format_error"), ["/event format_error"]);
    assert_eq!(refused(&with(json!({"subject": null})), 422, "format_error"), ["/event format_error"]);
    refused(&send(&client, &format!("{FORMATTED}?format_name=none"), &calls("e-1", 5)), 422, "unknown_format");
    let typed = |path: &str, content_type: &str, body: Value, (header, value): (&str, &str)| {
        client.send(&Request::post(path, body.to_string()).with("Content-Type", content_type).with(header, value))
    };
    let with_key = typed(FORMATTED, ONE, calls("e-1", 5), ("Idempotency-Key", "k"));
    assert_eq!(refused(&with_key, 422, "conflicting_fields"), ["/id conflicting_fields"]);
    for path in [FORMATTED, BATCH] {
        let binary = typed(path, "application/json", json!({"quantity": 5}), ("ce-specversion", "1.0"));
        assert_eq!(refused(&binary, 422, "unsupported_cloudevent"), ["/body unsupported_cloudevent"], "{path}");
    }
    let none = ("X-None", "");
    refused(&typed(FORMATTED, ARRAY, json!([calls("e-1", 5)]), none), 415, "unsupported_media_type");
    refused(&typed(BATCH, ONE, calls("e-1", 5), none), 415, "unsupported_media_type");
    refused(&typed("/api/usage/event", ONE, calls("e-1", 5), none), 415, "unsupported_media_type");
    refused(&typed(BATCH, ARRAY, calls("e-1", 5), none), 422, "validation_failed");
    let in_query = client
        .post(&format!("{FORMATTED}?format_name=CloudEvents"), &json!({"format_name": "CloudEvents", "event": calls("e-1", 5)}));
    refused(&in_query, 422, "validation_failed");
    assert_eq!(client.get("/api/usage/event/filter?customer_ref=acme").ok(), json!([]));
}

fn an_own_format_of_the_name_replaces_the_built_in_one(database: &Database) {
    let (_server, client, contract) = stage(database);
    let mapping = json!({"timestamp": "get(event, \"time\")", "customer_ref": "event.subject", "usage_product_ref": "event.type",
        "quantity": "event.data.quantity * 1000", "additional_report_data": "plain(event.data)"});
    let own = |name: &str, reference: Value| {
        client.post("/api/usage/formats/", &json!({"format_name": name, "format_ref": reference, "mapping": mapping}))
    };
    refused(&own("Other", json!("cloudevents")), 409, "already_exists");
    own("CloudEvents", Value::Null).ok();
    let recorded = send(&client, FORMATTED, &calls("e-1", 5)).ok();
    assert_eq!(
        (&recorded["quantity"], &recorded["additional_report_data"]),
        (&json!(5000), &json!({"region": "eu", "paid": true}))
    );
    // Its events are known by source and id, too, and the built-in format is still there by its reference.
    let again = send(&client, FORMATTED, &calls("e-1", 5));
    assert_eq!(again.header("Idempotency-Replayed"), "true");
    send(&client, &format!("{FORMATTED}?format_ref=cloudevents"), &calls("e-2", 1)).ok();
    assert_eq!(usage(&client, &contract), json!(5001));
    let listed = client.get("/api/usage/formats/filter?order=-created&pageSize=1").ok();
    assert_eq!(listed[0]["format_name"], "CloudEvents");
    let names: Vec<Value> = client
        .get("/api/usage/formats/filter")
        .ok()
        .as_array()
        .expect("a list")
        .iter()
        .map(|format| format["format_name"].clone())
        .collect();
    assert_eq!(names, ["Default Format", "CloudEvents"]);
}

fn a_batch_of_cloud_events_has_a_result_for_each(database: &Database) {
    let (_server, client, contract) = stage(database);
    let three = [calls("e-1", 1), calls("e-2", 2), calls("e-3", 3)];
    let first = send(&client, BATCH, &json!(three)).ok();
    assert_eq!(codes(&first["results"]), ["taken"; 3]);
    let four = send(&client, BATCH, &json!([three[0], three[1], three[2], calls("e-4", 4)])).ok();
    assert_eq!(four["results"].as_array().expect("results")[..3], first["results"].as_array().expect("results")[..]);
    assert_eq!(usage(&client, &contract), json!(10));
    let old = catalog::with(calls("e-5", 5), &json!({"specversion": "0.3"}));
    let mixed = json!([calls("e-1", 9), old, "text", calls("e-6", 6)]);
    let results = send(&client, BATCH, &mixed).ok();
    assert_eq!(codes(&results["results"]), ["idempotency_key_reuse", "unsupported_cloudevent", "validation_failed", "taken"]);
    let updated = send(&client, &format!("{BATCH}?on_conflict=UPDATE"), &json!([calls("e-1", 9)])).ok();
    assert_eq!(updated["results"][0]["event_ref"], first["results"][0]["event_ref"]);
    assert_eq!(usage(&client, &contract), json!(24));
    let atomic = send(&client, &format!("{BATCH}?atomic=true"), &json!([calls("e-7", 7), calls("e-8", -1)]));
    refused(&atomic, 422, "batch_refused");
    let keyed = || {
        let body = json!([calls("e-9", 9)]).to_string();
        client.send(&Request::post(BATCH, body).with("Content-Type", ARRAY).with("Idempotency-Key", "k"))
    };
    let (sent, again) = (keyed(), keyed());
    assert_eq!(again.header("Idempotency-Replayed"), "true");
    assert_eq!(sent.ok(), again.ok());
    assert_eq!(usage(&client, &contract), json!(33));
}

fn a_cloud_event_is_known_through_other_doors(database: &Database) {
    let (_server, client, contract) = stage(database);
    send(&client, FORMATTED, &calls("e-1", 5)).ok();
    let lines = format!("{}\n{}\n", calls("e-1", 5), calls("e-2", 6));
    let ndjson = |path: &str| client.send(&Request::post(path, lines.clone()).with("Content-Type", "application/x-ndjson"));
    let imported = ndjson("/api/usage/import?format_name=CloudEvents&name=file").ok();
    assert_eq!((&imported["recorded"], &imported["already_there"], &imported["refused"]), (&json!(1), &json!(1), &json!(0)));
    assert_eq!(ndjson(&format!("{BATCH}?format_name=CloudEvents")).status, 200);
    client.post(FORMATTED, &json!({"format_name": "CloudEvents", "event": calls("e-2", 6)})).ok();
    assert_eq!(usage(&client, &contract), json!(11));
}
