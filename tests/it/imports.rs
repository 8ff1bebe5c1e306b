//! Recorded imports: their history, undoing them, and columns with other names.

use acceptance::{Answer, Client, Database, Request, binary, catalog, on_both_databases, when};
use serde_json::{Value, json};

on_both_databases!(
    an_import_is_told_and_undone_and_the_file_counts_again,
    what_is_billed_gets_credits_and_a_repeat_deletes_nothing,
    an_import_under_a_key_and_one_of_the_command_line_are_undone_too,
    who_may_not_write_usage_may_look_and_not_undo,
    columns_are_called_what_they_are_said_to_be,
);

fn send(client: &Client, query: &str, body: impl Into<Vec<u8>>) -> Answer {
    client.send(&Request::post(&format!("/api/usage/import?{query}"), body).with("Content-Type", "text/csv"))
}

fn csv(lines: usize) -> String {
    let now = when::now();
    let rows: String = (0..lines).map(|_| format!("{now},acme,api-calls,2\n")).collect();
    format!("timestamp,customer_ref,usage_product_ref,quantity\n{rows}")
}

fn usage(client: &Client, contract: &str) -> Value {
    catalog::current_invoice(client, contract)["products"][0]["line_items"][1]["quantity"].clone()
}

fn import_ref(result: &Value) -> String {
    result["import_ref"].as_str().expect("a reference").to_owned()
}

fn undo(client: &Client, import: &str) -> Value {
    client.post_nothing(&format!("/api/usage/imports/undo/{import}")).ok()
}

fn an_import_is_told_and_undone_and_the_file_counts_again(database: &Database) {
    let (server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let kept = client.post("/api/usage/event", &catalog::event(catalog::ACME, 1)).ok();
    let file = csv(1203);
    assert_eq!(send(&client, "name=a.csv&dry_run=true", file.clone()).ok()["import_ref"], Value::Null);
    assert_eq!(client.get("/api/usage/imports/filter").ok(), json!([]));

    let result = send(&client, "name=a.csv", file.clone()).ok();
    assert_eq!((&result["recorded"], usage(&client, &contract)), (&json!(1203), json!(2407)));
    let import = client.get(&format!("/api/usage/imports/{}", import_ref(&result))).ok();
    for (field, expected) in [
        ("name", json!("a.csv")),
        ("bytes", json!(file.len())),
        ("state", json!("FINISHED")),
        ("recorded", json!(1203)),
        ("already_there", json!(0)),
        ("refused", json!(0)),
        ("left", json!(1203)),
        ("undone", Value::Null),
    ] {
        assert_eq!(import[field], expected, "{field}");
    }
    let document = catalog::only(import["documents"].clone());
    assert_eq!((&document["document_number"], &document["events"]), (&json!("UB-INV-1"), &json!(1203)));
    assert_eq!(import["sha256"].as_str().map(str::len), Some(64));
    let again = send(&client, "name=a.csv", file.clone()).ok();
    assert_eq!((&again["recorded"], &again["already_there"]), (&json!(0), &json!(1203)));

    let undone = undo(&client, &import_ref(&result));
    for (field, expected) in [("deleted", 1203), ("already_deleted", 0), ("refused", 0), ("left", 0)] {
        assert_eq!(undone[field], json!(expected), "{field}");
    }
    assert_eq!((&undone["import"]["state"], &undone["import"]["undone"]["deleted"]), (&json!("UNDONE"), &json!(1203)));
    assert_eq!(usage(&client, &contract), json!(1));
    assert_eq!(catalog::only(client.get("/api/usage/event/filter").ok())["event_ref"], kept["event_ref"]);
    let entry = client.get("/api/audit/filter?action=UNDO_IMPORT").ok();
    assert_eq!(catalog::only(entry)["after"]["deleted"], json!(1203));

    let third = send(&client, "name=a.csv", file).ok();
    assert_eq!((&third["recorded"], usage(&client, &contract)), (&json!(1203), json!(2407)));
    let listed = client.get("/api/usage/imports/filter?name=a.csv&pageSize=2");
    assert_eq!(listed.header("x-total-count"), "3");
    let newest: Vec<Value> = listed.ok().as_array().expect("imports").iter().map(|import| import["import_ref"].clone()).collect();
    assert_eq!(newest, [third["import_ref"].clone(), again["import_ref"].clone()]);
    assert_eq!(client.get("/api/usage/imports/filter?name=b.csv").ok(), json!([]));
    let verified = {
        drop(server);
        binary::succeed(database, &["verify"])
    };
    assert!(verified.contains("every invariant holds"), "{verified}");
}

fn what_is_billed_gets_credits_and_a_repeat_deletes_nothing(database: &Database) {
    let (_server, client, _) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let result = send(&client, "name=a.csv", csv(10)).ok();
    let document = catalog::only(result["documents"].clone())["document_ref"].as_str().expect("a reference").to_owned();
    let first = client.get("/api/usage/event/filter?pageSize=1").ok()[0]["event_ref"].as_str().expect("a reference").to_owned();
    assert_eq!(client.delete(&format!("/api/usage/event/{first}")).status, 204);
    client.post_nothing(&format!("/api/documents/issue/{document}")).ok();

    let undone = undo(&client, &import_ref(&result));
    assert_eq!((&undone["deleted"], &undone["already_deleted"]), (&json!(9), &json!(1)));
    assert_eq!(undone["already_deleted_refs"], json!([first]));
    let credit = catalog::only(client.get("/api/documents/filter?kind=CREDIT").ok());
    assert_eq!((&credit["parent_document_ref"], &credit["state"]), (&json!(document), &json!("DRAFT")));
    let documents = catalog::documents(&client);
    let again = undo(&client, &import_ref(&result));
    assert_eq!((&again["deleted"], &again["already_deleted"], &again["left"]), (&json!(0), &json!(0), &json!(0)));
    assert_eq!(catalog::documents(&client), documents);
    assert_eq!(client.get("/api/audit/filter?action=UNDO_IMPORT").header("x-total-count"), "1");
}

fn an_import_under_a_key_and_one_of_the_command_line_are_undone_too(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let keyed = client.with_header("Idempotency-Key", "import-1");
    let file = csv(3);
    let result = send(&keyed, "name=a.csv", file.clone()).ok();
    let repeated = send(&keyed, "name=a.csv", file);
    assert_eq!((repeated.header("Idempotency-Replayed"), &repeated.body), ("true", &result));

    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("b.csv");
    std::fs::write(&path, csv(4)).expect("a file");
    binary::succeed(database, &["import", path.to_str().expect("a path")]);
    let imports = client.get("/api/usage/imports/filter").ok();
    let reported: Vec<(&Value, &Value)> =
        imports.as_array().expect("imports").iter().map(|import| (&import["name"], &import["recorded"])).collect();
    assert_eq!(reported, [(&json!("b.csv"), &json!(4)), (&json!("a.csv"), &json!(3))]);
    assert_eq!((&imports[0]["actor"], &imports[0]["state"]), (&json!("command_line"), &json!("FINISHED")));
    assert_eq!(usage(&client, &contract), json!(14));

    let undo_keyed = client.with_header("Idempotency-Key", "undo-1");
    let place = format!("/api/usage/imports/undo/{}", import_ref(&result));
    let undone = undo_keyed.post_nothing(&place);
    assert_eq!(undone.ok()["deleted"], json!(3));
    let replayed = undo_keyed.post_nothing(&place);
    assert_eq!((replayed.header("Idempotency-Replayed"), replayed.body["deleted"].clone()), ("true", json!(3)));
    assert_eq!(undo(&client, &import_ref(&imports[0]))["deleted"], json!(4));
    assert_eq!(usage(&client, &contract), json!(0));
}

fn who_may_not_write_usage_may_look_and_not_undo(database: &Database) {
    let (server, client, _) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let import = import_ref(&send(&client, "name=a.csv", csv(1)).ok());
    let reader = Client::key(&server, &Client::admin(&server).generate_key(&json!({"scopes": ["read"]})));
    assert_eq!(reader.get(&format!("/api/usage/imports/{import}")).ok()["left"], json!(1));
    let refused = reader.post_nothing(&format!("/api/usage/imports/undo/{import}"));
    assert_eq!((refused.status, refused.text_of("code").as_str()), (403, "insufficient_scope"));
    for place in ["/api/usage/imports/0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b", "/api/usage/imports/nonsense"] {
        let unknown = client.get(place);
        assert_eq!((unknown.status, unknown.text_of("code").as_str()), (404, "import_not_found"));
    }
    let unknown = client.post_nothing("/api/usage/imports/undo/0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b");
    assert_eq!((unknown.status, unknown.text_of("code").as_str()), (404, "import_not_found"));
}

fn columns_are_called_what_they_are_said_to_be(database: &Database) {
    let (_server, client, contract) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let file = format!("Nr;Zeit;Kunde;Produkt;Menge;Notiz\nx-1;{};acme;api-calls;7;geheim\n", when::now());
    let called = r#"{"Nr":"idempotency_key","Zeit":"timestamp","Kunde":"customer_ref","Produkt":"usage_product_ref","Menge":"quantity","Notiz":null}"#;
    let encoded: String = called.bytes().map(|byte| format!("%{byte:02X}")).collect();

    let unmapped = send(&client, "dry_run=true&name=a.csv", file.clone());
    assert_eq!((unmapped.status, unmapped.text_of("code").as_str()), (400, "malformed_file"));
    assert!(unmapped.text.contains("no column timestamp") && unmapped.text.contains("Nr, Zeit, Kunde"), "{}", unmapped.text);
    let dry = send(&client, &format!("dry_run=true&columns={encoded}"), file.clone()).ok();
    assert_eq!(
        (&dry["recorded"], &dry["columns"][1]["called"], &dry["columns"][5]["called"]),
        (&json!(1), &json!("timestamp"), &Value::Null)
    );
    assert_eq!((&dry["columns"][4]["samples"], &dry["columns"][4]["report_data"]), (&json!(["7"]), &json!(false)));
    let result = send(&client, &format!("columns={encoded}"), file.clone()).ok();
    assert_eq!((&result["recorded"], &result["known_by_line"], &result["columns"]), (&json!(1), &json!(0), &json!([])));
    assert_eq!(usage(&client, &contract), json!(7));
    let event = catalog::only(client.get("/api/usage/event/filter").ok());
    assert!(!event.to_string().contains("geheim"), "{event}");
    // The event's own id identifies it, regardless of the file name.
    assert_eq!(send(&client, &format!("columns={encoded}&name=b.csv"), file.clone()).ok()["already_there"], json!(1));

    for (columns, status, code) in [
        (r#"{"Preis":"quantity"}"#, 400, "malformed_file"),
        (r#"{"Zeit":"Menge"}"#, 400, "malformed_file"),
        ("Zeit:timestamp", 422, "validation_failed"),
        (r#"{"Zeit":7}"#, 422, "validation_failed"),
    ] {
        let encoded: String = columns.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let refused = send(&client, &format!("name=a.csv&columns={encoded}"), file.clone());
        assert_eq!((refused.status, refused.text_of("code").as_str()), (status, code), "{columns}: {}", refused.text);
    }
    let path = format!("/api/usage/import?name=a&columns={encoded}");
    let json = Request::post(&path, "[{}]").with("Content-Type", "application/json");
    assert_eq!(client.send(&json).status, 400);
}
