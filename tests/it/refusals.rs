//! Invalid requests of every kind: each response lists all field errors at once, and a rejected request stores nothing and uses
//! no number. `form.rs` tests malformed requests, and `access.rs` tests credentials.

mod refused_bodies;

use acceptance::problem::{Refusal, Table, invalid, refused, rule};
use acceptance::{Client, Database, Request, Server, catalog, on_sqlite};
use serde_json::{Value, json};

on_sqlite!(
    a_bad_event_is_refused_and_leaves_nothing,
    a_bad_contract_is_refused_and_leaves_nothing,
    a_bad_piece_of_the_catalog_is_refused_and_leaves_nothing,
    a_bad_edit_is_refused_and_changes_nothing,
    a_page_out_of_range_is_refused,
    a_bad_log_in_or_key_is_refused,
    a_reference_in_the_path_that_names_nothing_is_not_found,
    a_body_with_very_many_errors_has_a_short_answer,
);

/// A server with the API plan and a contract for acme. Its content must be the same before and after the invalid requests.
struct Stage {
    _server: Server,
    client: Client,
    before: Vec<Value>,
}

impl Stage {
    fn set(database: &Database) -> Self {
        let server = Server::start(database);
        let client = Client::new_key(&server);
        catalog::make(&client);
        client.post("/api/usage/products/", &json!({"usage_product_ref": "unsold", "name": "Unsold"})).ok();
        catalog::make_contract(&client, &catalog::contract("acme"));
        let before = everything(&client);
        Self { _server: server, client, before }
    }

    /// Fails if a row of the table was wrong, or if any request stored data or used a number.
    fn end(self, table: Table) {
        assert_eq!(everything(&self.client), self.before, "a rejected request stored data");
        let event = self.client.post("/api/usage/event", &catalog::event("acme", 1)).ok();
        assert_eq!(event["related_document_numbers"], "UB-INV-1", "a rejected request used a number");
        let contract_ref = catalog::make_contract(&self.client, &catalog::contract("acme"));
        let contract = self.client.get(&format!("/api/contracts/{contract_ref}")).ok();
        assert_eq!(contract["contract_number"], "C-2", "a rejected request used a contract number");
        table.finish();
    }
}

/// Returns the content of every list.
fn everything(client: &Client) -> Vec<Value> {
    let lists = [
        "/api/documents/filter?pageSize=1000",
        "/api/contracts/filter?customer_ref=acme&pageSize=1000&pageNumber=0",
        "/api/customers/filter?pageSize=1000",
        "/api/entities/filter?pageSize=1000",
        "/api/usage/products/filter?pageSize=1000",
        "/api/usage/formats/filter?pageSize=1000",
        "/api/pricings/filter?pageSize=1000",
        "/api/bank_accounts/filter?pageSize=1000",
        "/api/exchange_rates/filter?pageSize=1000",
    ];
    lists.map(|path| client.get(path).ok()).to_vec()
}

fn a_bad_event_is_refused_and_leaves_nothing(database: &Database) {
    let stage = Stage::set(database);
    let mut table = Table::default();
    for (body, refusal) in refused_bodies::events() {
        table.post(&stage.client, "/api/usage/event", &body, refusal);
    }
    stage.end(table);
}

fn a_bad_contract_is_refused_and_leaves_nothing(database: &Database) {
    let stage = Stage::set(database);
    let mut table = Table::default();
    for (body, refusal) in refused_bodies::contracts() {
        table.post(&stage.client, "/api/contracts/", &body, refusal);
    }
    stage.end(table);
}

fn a_bad_piece_of_the_catalog_is_refused_and_leaves_nothing(database: &Database) {
    let stage = Stage::set(database);
    let mut table = Table::default();
    for (path, body, refusal) in refused_bodies::catalog() {
        table.post(&stage.client, path, &body, refusal);
    }
    stage.end(table);
}

fn a_bad_edit_is_refused_and_changes_nothing(database: &Database) {
    let stage = Stage::set(database);
    let mut table = Table::default();
    let entities = stage.client.get("/api/entities/filter").ok();
    let entity_ref = catalog::only(entities)["entity_ref"].as_str().expect("a reference").to_owned();
    let entity = format!("/api/entities/edit/{entity_ref}");
    let rows: [(&str, Value, Refusal); 12] = [
        ("/api/customers/edit/acme", json!({"customer_ref": "other"}), invalid("/customer_ref not_changeable")),
        ("/api/customers/edit/acme", json!({"name": null, "tax": 200}), invalid("/name required, /tax out_of_range")),
        ("/api/customers/edit/acme", json!({"name": "New", "entity_ref": "nobody"}), invalid("/entity_ref unknown_reference")),
        ("/api/customers/edit/acme", json!([]), invalid(" wrong_type")),
        ("/api/usage/products/edit/api-calls", json!({"aggregation": "AVERAGE"}), invalid("/aggregation invalid_value")),
        ("/api/usage/products/edit/api-calls", json!({"usage_product_ref": 7}), invalid("/usage_product_ref not_changeable")),
        ("/api/pricings/edit/api-plan", json!({"name": "New", "currency": null}), invalid("/currency required")),
        ("/api/pricings/edit/api-plan", json!({"product_pricing_ref": "x"}), invalid("/product_pricing_ref not_changeable")),
        (
            "/api/pricings/edit/api-plan",
            json!({"line_items": [{"line_item_id": "a", "name": "A", "kind": "USAGE", "usage_product_ref": "nothing",
                "price": {"model": "PER_UNIT", "unit_price": 1}}]}),
            invalid("/line_items/0/usage_product_ref unknown_reference"),
        ),
        (
            &entity,
            json!({"number_prefix": "u b", "timezone": "Mars/Base"}),
            invalid("/number_prefix invalid_format, /timezone invalid_format"),
        ),
        (&entity, json!({"entity_ref": null}), invalid("/entity_ref not_changeable")),
        (&entity, json!({"grace_hours": 721}), invalid("/grace_hours out_of_range")),
    ];
    for (path, body, refusal) in rows {
        table.post(&stage.client, path, &body, refusal);
    }
    stage.end(table);
}

fn a_page_out_of_range_is_refused(database: &Database) {
    let stage = Stage::set(database);
    let mut table = Table::default();
    let contracts = [
        ("", "/customer_ref required, /pageNumber required, /pageSize required"),
        ("?pageSize=20&pageNumber=0", "/customer_ref required"),
        ("?customer_ref=acme&pageNumber=0", "/pageSize required"),
        ("?customer_ref=acme&pageSize=20", "/pageNumber required"),
        ("?customer_ref=acme&pageSize=0&pageNumber=0", "/pageSize out_of_range"),
        ("?customer_ref=acme&pageSize=1001&pageNumber=0", "/pageSize out_of_range"),
        ("?customer_ref=acme&pageSize=-1&pageNumber=-1", "/pageNumber out_of_range, /pageSize out_of_range"),
        ("?customer_ref=acme&pageSize=99999999999999999999&pageNumber=0", "/pageSize out_of_range"),
    ];
    for (query, errors) in contracts {
        table.get(&stage.client, &format!("/api/contracts/filter{query}"), invalid(errors));
    }
    for list in ["customers", "entities", "pricings", "usage/products", "documents"] {
        let path = format!("/api/{list}/filter?pageSize=1001&pageNumber=-1");
        table.get(&stage.client, &path, invalid("/pageNumber out_of_range, /pageSize out_of_range"));
    }
    let documents = "/api/documents/filter?kind=BILL&state=LOST&from=today&to=2026-02-30";
    let errors = "/from invalid_format, /kind invalid_value, /state invalid_value, /to invalid_format";
    table.get(&stage.client, documents, invalid(errors));
    stage.end(table);
}

fn a_bad_log_in_or_key_is_refused(database: &Database) {
    let server = Server::start(database);
    let admin = Client::admin(&server);
    let key = admin.generate_key(&json!({}));
    let anonymous = Client::anonymous(&server);
    let mut table = Table::default();
    let (api_key, email) = (key.api_key.as_str(), "admin@example.com");
    let log_ins = [
        (json!({"api_key": api_key, "password": "wrong"}), refused(401, "invalid_credentials")),
        (json!({"api_key": "NOBODY0000000000000A", "password": key.password}), refused(401, "invalid_credentials")),
        (json!({"email": email, "password": key.password}), refused(401, "invalid_credentials")),
        (
            json!({"email": "nobody@example.com", "password": acceptance::server::ADMIN_PASSWORD}),
            refused(401, "invalid_credentials"),
        ),
        (json!({"email": email, "password": "x".repeat(1000)}), refused(401, "invalid_credentials")),
        (json!({"api_key": api_key}), invalid("/password required")),
        (json!({"api_key": api_key, "password": 7}), invalid("/password wrong_type")),
    ];
    for (body, refusal) in log_ins {
        table.post(&anonymous, "/auth/login", &body, refusal);
    }
    // Both kinds of credentials at once, or neither: which fields the errors name is not specified.
    for body in [json!({}), json!({"password": "x"}), json!({"api_key": api_key, "email": email, "password": key.password})] {
        let answer = anonymous.post("/auth/login", &body);
        let outcome = if answer.status == 422 { acceptance::problem::form(&answer) } else { Err(answer.text.clone()) };
        table.note(&body.to_string(), &Request::post("/auth/login", ""), outcome);
    }
    let keys = [
        (json!({"scopes": ["read", "everything"]}), invalid("/scopes/1 invalid_value")),
        (json!({"name": "", "expires_at": "tomorrow"}), invalid("/expires_at invalid_format, /name too_short")),
        (json!({"expires_at": "2020-01-01T00:00:00Z"}), invalid("/expires_at out_of_range")),
        (json!({"scopes": "read"}), invalid("/scopes wrong_type")),
    ];
    for (body, refusal) in keys {
        table.post(&admin, "/auth/keys/generate", &body, refusal);
    }
    table.post(&Client::key(&server, &key), "/api/billing/run", &json!({"dry_run": "yes"}), invalid("/dry_run wrong_type"));
    assert_eq!(catalog::only(admin.get("/auth/keys/list").ok())["api_key"], *api_key, "no other key was created");
    table.finish();
}

fn a_body_with_very_many_errors_has_a_short_answer(database: &Database) {
    const MEMBERS: usize = 90_000;
    let (_server, client) = catalog::stage(database);
    let members: Vec<String> = (0..MEMBERS).map(|index| format!("\"m{index}\":1")).collect();
    let members = format!("{{{}}}", members.join(","));
    let customer = format!("{{\"path\":\"/api/customers/edit/acme\",\"body\":{members}}}");
    let ones = format!("{{\"events\":[{}]}}", vec!["1"; 490_000].join(","));
    let lines = vec!["1"; 490_000].join("\n");

    for (path, body, more) in [
        ("/api/dry_run", &members, "89,901"),
        ("/api/dry_run", &customer, "89,900"),
        ("/api/customers/edit/acme", &members, "89,900"),
    ] {
        let answer = client.send(&Request::post(path, body.as_bytes()));
        assert_eq!((answer.status, answer.body["code"].as_str()), (422, Some("validation_failed")), "{path}");
        assert_eq!(answer.body["errors"].as_array().map(Vec::len), Some(100), "{path}");
        let detail = answer.text_of("detail");
        assert!(detail.contains(&format!("and {more} more problems")), "{path}: {detail}");
        assert!(detail.ends_with("correct the request and send it again"), "{path}: {detail}");
        assert!(answer.bytes.len() < 128 * 1024, "{path}: {} bytes", answer.bytes.len());
        acceptance::problem::form(&answer).expect("a problem document");
    }

    let batch = "/api/usage/event/batch";
    let answer = client.send(&Request::post(batch, ones));
    assert_eq!((answer.status, answer.body["errors"][0]["code"].as_str()), (422, Some("too_many")), "{}", answer.text);
    let detail = "must have at most 10000 elements: send the other events in another batch";
    assert_eq!(answer.body["errors"][0]["detail"], detail);
    assert!(answer.bytes.len() < 1024, "{}", answer.text);
    let atomic = Request::post("/api/usage/event/batch?atomic=true", lines).with("Content-Type", "application/x-ndjson");
    let answer = client.send(&atomic);
    assert_eq!((answer.status, answer.body["code"].as_str()), (422, Some("too_many_events")), "{}", answer.text);
    assert!(answer.text_of("detail").contains("send the other events in another batch"), "{}", answer.text);
}

fn a_reference_in_the_path_that_names_nothing_is_not_found(database: &Database) {
    let stage = Stage::set(database);
    let mut table = Table::default();
    let unknown = "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b";
    for reference in [unknown, "nothing", "%00", "a%20b", "../acme", "%F0%9F%A6%80"] {
        for (path, code) in [
            ("/api/usage/event/", "event_not_found"),
            ("/api/contracts/", "contract_not_found"),
            ("/api/contracts/invoices/current/", "contract_not_found"),
            ("/api/contracts/invoices/next/", "contract_not_found"),
            ("/api/documents/", "document_not_found"),
            ("/api/usage/event/history/", "event_not_found"),
            ("/api/customers/", "customer_not_found"),
            ("/api/entities/", "entity_not_found"),
            ("/api/usage/products/", "usage_product_not_found"),
            ("/api/usage/formats/", "usage_format_not_found"),
            ("/api/pricings/", "pricing_not_found"),
            ("/api/bank_accounts/", "bank_account_not_found"),
        ] {
            // Dots lead to another path, which doesn't exist either.
            let code = if reference.contains("..") { "route_not_found" } else { code };
            table.get(&stage.client, &format!("{path}{reference}"), refused(404, code));
        }
        for (path, body, code) in [
            ("/api/contracts/edit/", json!({"po_number": "PO-2"}), "contract_not_found"),
            ("/api/contracts/cancel/", json!({}), "contract_not_found"),
            ("/api/contracts/resume/", json!({}), "contract_not_found"),
            (
                "/api/contracts/quantities/",
                json!({"product_pricing_ref": "plan", "line_item_id": "fee", "quantity": 1}),
                "contract_not_found",
            ),
            ("/api/documents/issue/", json!({}), "document_not_found"),
            ("/api/documents/void/", json!({}), "document_not_found"),
            ("/api/documents/payments/", json!({"amount": 1}), "document_not_found"),
            ("/api/documents/payments/reverse/", json!({}), "payment_not_found"),
            ("/api/documents/refund/", json!({"amount": 1}), "document_not_found"),
            ("/api/documents/unapply/", json!({}), "application_not_found"),
            ("/api/documents/write-off/", json!({}), "document_not_found"),
        ] {
            let code = if reference.contains("..") { "route_not_found" } else { code };
            table.post(&stage.client, &format!("{path}{reference}"), &body, refused(404, code));
        }
        let update = json!({"event_ref": reference, "quantity": 1});
        table.post(&stage.client, "/api/usage/event/update", &update, refused(404, "event_not_found"));
    }
    for (path, code) in [
        ("/api/customers/edit/nobody", "customer_not_found"),
        ("/api/entities/edit/nobody", "entity_not_found"),
        ("/api/usage/products/edit/nothing", "usage_product_not_found"),
        ("/api/pricings/edit/nothing", "pricing_not_found"),
    ] {
        table.post(&stage.client, path, &json!({"name": "New"}), refused(404, code));
    }
    table.post(
        &stage.client,
        "/api/bank_accounts/edit/nothing",
        &json!({"bank_name": "New"}),
        refused(404, "bank_account_not_found"),
    );
    let both = rule("validation_failed", "/customer_ref unknown_reference, /usage_product_ref unknown_reference");
    let event =
        json!({"timestamp": acceptance::when::now(), "customer_ref": "nobody", "usage_product_ref": "nothing", "quantity": 1});
    table.post(&stage.client, "/api/usage/event", &event, both);
    stage.end(table);
}
