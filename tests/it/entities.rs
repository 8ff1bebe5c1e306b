//! Supplier entities over HTTP: the default entity, and number prefixes that can't change once a number begins with them.

use acceptance::{Client, Database, Server, catalog, on_sqlite};
use serde_json::{Value, json};

on_sqlite!(a_prefix_stays_once_a_number_begins_with_it, one_entity_is_the_default_and_shown_as_such);

fn reference(entity: &Value) -> String {
    entity["entity_ref"].as_str().expect("a reference").to_owned()
}

fn a_prefix_stays_once_a_number_begins_with_it(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let first = reference(&catalog::only(client.get("/api/entities/filter").ok()));
    let edit = |change: Value| client.post(&format!("/api/entities/edit/{first}"), &change);
    assert_eq!(edit(json!({"number_prefix": "FREE"})).ok()["number_prefix"], "FREE");
    client.post("/api/entities/", &json!({"entity_ref": "second", "name": "Second", "number_prefix": "UB"})).ok();
    catalog::make(&client);
    catalog::make_contract(&client, &catalog::contract("acme"));
    let event = client.post("/api/usage/event", &catalog::event("acme", 1)).ok();
    assert_eq!(event["related_document_numbers"], "FREE-INV-1");

    let refused = edit(json!({"number_prefix": "OTHER", "grace_hours": 0}));

    assert_eq!((refused.status, refused.body["code"].as_str()), (409, Some("numbers_given")));
    let kept = client.get(&format!("/api/entities/{first}")).ok();
    assert_eq!((&kept["number_prefix"], &kept["grace_hours"]), (&json!("FREE"), &json!(2)), "the rejected edit stored nothing");
    let taken = client.post("/api/entities/edit/second", &json!({"number_prefix": "FREE"}));
    assert_eq!((taken.status, taken.body["code"].as_str()), (409, Some("already_exists")));
    let moved = edit(json!({"timezone": "Asia/Tokyo", "number_prefix": "FREE"})).ok();
    assert_eq!(moved["timezone"], "Asia/Tokyo");
}

fn one_entity_is_the_default_and_shown_as_such(database: &Database) {
    let server = Server::start(database);
    let client = Client::admin(&server);
    let first = catalog::only(client.get("/api/entities/filter").ok());
    assert_eq!(first["default"], true);
    let second = json!({"entity_ref": "second", "name": "Second", "number_prefix": "SEC"});
    assert_eq!(client.post("/api/entities/", &second).ok()["default"], false);
    let moved = client.post("/api/entities/edit/second", &json!({"default": true})).ok();
    assert_eq!(moved["default"], true);
    let first = client.get(&format!("/api/entities/{}", reference(&first))).ok();
    assert_eq!(first["default"], false);
    assert_eq!(client.post(&format!("/api/entities/edit/{}", reference(&first)), &first).ok(), first, "posted back unchanged");

    for none in [json!(false), Value::Null] {
        let refused = client.post("/api/entities/edit/second", &json!({"default": none}));
        assert_eq!(refused.status, 422);
        assert_eq!(refused.body["errors"][0]["pointer"], "/default");
    }

    catalog::make(&client);
    let contract_ref = catalog::make_contract(&client, &catalog::contract("acme"));
    let invoice = catalog::current_invoice(&client, &contract_ref);
    assert_eq!(invoice["entity"]["entity_ref"], "second", "the default entity bills");
}
