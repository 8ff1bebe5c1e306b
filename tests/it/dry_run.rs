//! Dry runs: the change has exactly the effects that its dry run shows, and the dry run stores nothing.

use std::collections::BTreeMap;

use acceptance::scene::{each, product, refused};
use acceptance::{Client, Database, Scene, Server, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    what_is_shown_is_what_is_done,
    a_new_contract_shows_what_it_will_bill,
    each_figure_is_shown_before_and_after_the_change,
    a_dry_run_is_refused_as_the_change_would_be,
    a_dry_run_takes_the_scope_of_what_it_shows,
);

/// The compared fields of a document: its state, its kind and its amounts.
const SAID: [&str; 6] = ["state", "kind", "total", "amount_due", "paid_amount", "credits_amount"];

type DocumentFigures = BTreeMap<String, [String; 6]>;

fn reported<'d>(documents: impl IntoIterator<Item = &'d Value>) -> DocumentFigures {
    let one = |document: &Value| (books::fields(document, ["document_number"])[0].clone(), books::fields(document, SAID));
    documents.into_iter().map(one).collect()
}

fn shown(effects: &Value, parts: &[&str]) -> DocumentFigures {
    // Planned documents have no number and are not stored.
    let is_stored = |document: &&Value| !document["document_number"].is_null();
    reported(parts.iter().flat_map(|part| effects[*part].as_array().expect("a list")).filter(is_stored))
}

/// Sends a dry run of a change, makes the change and compares the effects.
#[track_caller]
fn change(scene: &Scene, method: &str, path: &str, body: &Value) -> Value {
    let client = &scene.client;
    let before = reported(&catalog::documents(client));
    let asked = if body.is_null() { json!({"path": path}) } else { json!({"path": path, "body": body}) };
    let effects = client.post("/api/dry_run", &asked).ok();
    assert_eq!(reported(&catalog::documents(client)), before, "{path}: a dry run changes nothing");
    let answer = match method {
        "DELETE" => client.delete(path),
        _ if body.is_null() => client.post_nothing(path),
        _ => client.post(path, body),
    };
    assert!(answer.status == 200 || answer.status == 204, "{path}: {}", answer.text);
    let after = reported(&catalog::documents(client));
    let changed: DocumentFigures = after
        .iter()
        .filter(|(number, reported)| before.get(*number) != Some(reported))
        .map(|(n, t)| (n.clone(), t.clone()))
        .collect();
    let shown_changed = shown(&effects, &["opened", "issued", "recomputed", "voided", "settled"]);
    assert_eq!(shown_changed, changed, "{path}");
    for (number, stated) in shown(&effects, &["before"]) {
        assert_eq!(before.get(&number), Some(&stated), "{path}: {number}");
    }
    assert_eq!(effects["dry_run"], true);
    answer.body
}

fn reference(client: &Client, number: &str) -> String {
    books::numbered(client, number)["document_ref"].as_str().expect("a reference").to_owned()
}

fn what_is_shown_is_what_is_done(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.pricing("p", &[catalog::fixed("fee", "49.00"), each("1.00")]);
    let contract = scene.sell(&[product("p", "2026-01-01", "2026-12-31")]);
    scene.calls("2026-01-09", 10);
    scene.run_on("2026-02-03");
    let at = |operation: &str, number: &str| format!("/api/documents/{operation}/{}", reference(&scene.client, number));
    let event = |at: &str, quantity: u32| json!({"timestamp": at, "customer_ref": catalog::ACME, "usage_product_ref": catalog::API_CALLS, "quantity": quantity});
    // Events on a draft that doesn't exist yet, on an open draft, and for an issued period.
    change(&scene, "POST", "/api/usage/event", &event("2026-02-01T12:00:00Z", 5));
    let in_february = change(&scene, "POST", "/api/usage/event", &event("2026-02-02T12:00:00Z", 7))["event_ref"].clone();
    change(&scene, "POST", "/api/usage/event", &event("2026-01-20T12:00:00Z", 100));
    let update = json!({"event_ref": in_february, "quantity": 8, "timestamp": "2026-01-21T12:00:00Z"});
    change(&scene, "POST", "/api/usage/event/update", &update);
    change(&scene, "DELETE", &format!("/api/usage/event/{}", in_february.as_str().expect("a reference")), &Value::Null);
    change(&scene, "POST", &at("issue", "UB-DBT-1"), &Value::Null);
    change(&scene, "POST", &at("payments", "UB-INV-1"), &json!({"amount": "9.00"}));
    let paid = catalog::only(scene.client.get(&at("payments", "UB-INV-1")).ok())["payment_ref"].clone();
    let charge = json!({"contract_ref": contract, "date": "2026-01-15", "name": "Sorry", "unit_price": "-20.00", "issue": true, "charge_ref": "c"});
    change(&scene, "POST", "/api/charges/", &charge);
    change(&scene, "POST", "/api/charges/edit/c", &json!({"unit_price": "-25.00", "issue": true}));
    change(&scene, "POST", &format!("/api/documents/payments/reverse/{}", paid.as_str().expect("a reference")), &Value::Null);
    change(&scene, "POST", &at("write-off", "UB-INV-1"), &json!({"reason": "gone"}));
    change(&scene, "POST", &at("write-off", "UB-INV-1"), &json!({"undo": true}));
    change(&scene, "POST", "/api/customers/edit/acme", &json!({"tax": 19}));
    let edit = json!({"effective_from": "2026-01-01", "products": [{"product_pricing_ref": "p", "discount": 10}]});
    change(&scene, "POST", &format!("/api/contracts/edit/{contract}"), &edit);
    change(&scene, "POST", &format!("/api/contracts/cancel/{contract}"), &json!({"include_current_invoice": true}));
    scene.run_on("2026-02-06");
    change(&scene, "DELETE", "/api/charges/c", &Value::Null);
}

fn a_new_contract_shows_what_it_will_bill(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.pricing("p", &[catalog::fixed("fee", "49.00")]);
    let asked = json!({"customer_ref": catalog::ACME, "products": [product("p", "2026-01-01", "2026-12-31")]});
    let effects = scene.client.post("/api/dry_run", &json!({"path": "/api/contracts", "body": asked})).ok();
    assert_eq!(scene.client.get("/api/contracts/search").body, json!([]), "nothing is stored");
    let contract = scene.sell(&[product("p", "2026-01-01", "2026-12-31")]);
    let invoices = |when: &str| scene.client.get(&format!("/api/contracts/invoices/{when}/{contract}")).ok();
    let billed = [invoices("current"), invoices("next")];
    let amounts = |documents: &Value| -> Vec<[String; 3]> {
        let documents = documents.as_array().expect("a list").iter();
        documents.map(|document| books::fields(document, ["period_start", "period_end", "total"])).collect()
    };
    assert_eq!(amounts(&effects["planned"]), [amounts(&billed[0]), amounts(&billed[1])].concat());
}

/// Returns the effect, the first day of the period, and a figure before and after the change with the difference.
fn compared(effects: &Value, figure: &str) -> Vec<[String; 5]> {
    let changes = effects["changes"].as_array().expect("a list").iter();
    let one = |change: &Value| {
        let [effect, start] = books::fields(change, ["effect", "period_start"]);
        let [before, after, difference] = books::fields(&change[figure], ["before", "after", "difference"]);
        [effect, start, before, after, difference]
    };
    changes.map(one).collect()
}

fn each_figure_is_shown_before_and_after_the_change(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.pricing("p", &[catalog::fixed("fee", "49.00"), each("1.00")]);
    let contract = scene.sell(&[product("p", "2026-01-01", "2026-12-31")]);
    let preview = |scene: &Scene, path: &str, body: &Value| {
        let asked = if body.is_null() { json!({"path": path}) } else { json!({"path": path, "body": body}) };
        scene.client.post("/api/dry_run", &asked).ok()
    };

    // Neither document exists yet, so both are compared with their plans.
    let path = format!("/api/contracts/edit/{contract}");
    let edit = json!({"effective_from": "2026-02-01", "products": [{"product_pricing_ref": "p", "discount": 10}]});
    let effects = preview(&scene, &path, &edit);
    let row = |row: [&str; 5]| row.map(str::to_owned);
    let expected =
        [row(["PLANNED", "2026-01-01", "49.00", "49.00", "0.00"]), row(["PLANNED", "2026-02-01", "49.00", "44.10", "-4.90"])];
    assert_eq!(compared(&effects, "billed"), expected);
    let before: Vec<[String; 2]> =
        effects["before"].as_array().expect("a list").iter().map(|of| books::fields(of, ["document_ref", "total"])).collect();
    assert_eq!(before, [["null", "49.00"], ["null", "49.00"]]);
    let total = catalog::only(effects["totals"].clone());
    assert_eq!(books::fields(&total["billed"], ["before", "after", "difference"]), ["98.00", "93.10", "-4.90"]);
    let effects = preview(&scene, &format!("/api/contracts/cancel/{contract}"), &json!({}));
    let expected =
        [row(["PLANNED", "2026-01-01", "49.00", "49.00", "0.00"]), row(["REMOVED", "2026-02-01", "49.00", "null", "-49.00"])];
    assert_eq!(compared(&effects, "billed"), expected);

    // The first event opens the planned document of January.
    let mut event = catalog::event(catalog::ACME, 10);
    event["timestamp"] = json!("2026-01-09T06:00:00Z");
    let effects = preview(&scene, "/api/usage/event", &event);
    assert_eq!(compared(&effects, "billed"), [row(["OPENED", "2026-01-01", "49.00", "59.00", "10.00"])]);
    scene.calls("2026-01-09", 10);
    let issue = format!("/api/documents/issue/{}", reference(&scene.client, "UB-INV-1"));
    let effects = preview(&scene, &issue, &Value::Null);
    assert_eq!(compared(&effects, "billed"), [row(["ISSUED", "2026-01-01", "59.00", "59.00", "0.00"])]);
    assert_eq!(compared(&effects, "outstanding"), [row(["ISSUED", "2026-01-01", "null", "59.00", "59.00"])]);

    // What is issued equals what the previews show.
    scene.edit(&contract, &edit);
    scene.run_on("2026-03-03");
    let issued = catalog::documents(&scene.client);
    let mut issued: Vec<[String; 2]> = issued.iter().map(|of| books::fields(of, ["period_start", "total"])).collect();
    issued.sort();
    assert_eq!(issued, [["2026-01-01", "59.00"], ["2026-02-01", "44.10"]]);
    let path = format!("/api/documents/payments/{}", reference(&scene.client, "UB-INV-1"));
    let effects = preview(&scene, &path, &json!({"amount": "9.00"}));
    assert_eq!(compared(&effects, "outstanding"), [row(["SETTLED", "2026-01-01", "59.00", "50.00", "-9.00"])]);
}

fn a_dry_run_is_refused_as_the_change_would_be(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.fee("p", "49.00");
    let contract = scene.sell(&[product("p", "2026-01-01", "2026-12-31")]);
    scene.run_on("2026-02-03");
    let client = &scene.client;
    let invoice = reference(client, "UB-INV-1");
    let nobody = "01a20686-121f-75af-821c-a37d48691803";
    let rows = [
        (format!("/api/documents/void/{nobody}"), Value::Null),
        (format!("/api/documents/issue/{invoice}"), Value::Null),
        (format!("/api/documents/payments/{invoice}"), json!({"amount": "ten"})),
        (format!("/api/documents/payments/{invoice}"), json!({"amount": "1000.00"})),
        (format!("/api/documents/payments/{invoice}"), json!({"amonut": "1.00"})),
        (format!("/api/contracts/edit/{contract}"), json!({"products": [{"product_pricing_ref": "other"}]})),
        ("/api/usage/event".to_owned(), json!({"quantity": 1})),
        (format!("/api/contracts/resume/{contract}"), Value::Null),
    ];
    for (path, body) in rows {
        let asked = if body.is_null() { json!({"path": path}) } else { json!({"path": path, "body": body}) };
        let shown = client.post("/api/dry_run", &asked);
        let done = if body.is_null() { client.post_nothing(&path) } else { client.post(&path, &body) };
        assert_eq!((shown.status, &shown.body["code"]), (done.status, &done.body["code"]), "{path}: {}", shown.text);
        assert_eq!(shown.body["errors"], done.body["errors"], "{path}");
    }
    let other_paths = [
        "/api/billing/run",
        "/api/usage/import",
        "/api/pricings/",
        "/api/customers/acme",
        "/auth/login",
        "nothing",
        "/api/dry_run",
        "/",
    ];
    for path in other_paths {
        let answer = client.post("/api/dry_run", &json!({"path": path, "body": {}}));
        refused(&answer, 422, "no_dry_run");
    }
    let answer = client.post("/api/dry_run", &json!({"path": "/api/charges/"}));
    refused(&answer, 422, "required");
}

fn a_dry_run_takes_the_scope_of_what_it_shows(database: &Database) {
    let server = Server::start(database);
    let admin = Client::admin(&server);
    let reader = Client::key(&server, &admin.generate_key(&json!({"scopes": ["read"]})));
    let answer = reader.post("/api/dry_run", &json!({"path": "/api/customers/edit/acme", "body": {"tax": 7}}));
    assert_eq!((answer.status, &answer.body["code"]), (403, &json!("insufficient_scope")), "{}", answer.text);
    let writer = Client::key(&server, &admin.generate_key(&json!({"scopes": ["catalog:write"]})));
    let answer = writer.post("/api/dry_run", &json!({"path": "/api/customers/edit/acme", "body": {"tax": 7}}));
    assert_eq!(
        (answer.status, &answer.body["code"]),
        (403, &json!("insufficient_scope")),
        "a dry run returns documents: {}",
        answer.text
    );
}
