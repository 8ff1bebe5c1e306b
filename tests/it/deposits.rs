//! Deposits: payments without a document, over HTTP.

use acceptance::scene::{product, refused};
use acceptance::{Client, Database, Scene, binary, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    a_deposit_pays_what_is_due_and_the_next_document,
    a_deposit_is_reversed_or_refunded_and_answers_with_the_payment,
    a_deposit_needs_neither_an_account_nor_a_document,
    a_document_that_a_deposit_pays_is_voided_after_unapplying,
    deposits_that_cannot_be_are_refused_each_with_its_reason,
    a_dry_run_of_a_deposit_stores_nothing_and_a_key_records_it_once,
);

const PATH: &str = "/api/customers/payments/acme";

/// Two months at 100.00 are due on 2 March.
fn two_due(database: &Database) -> Scene {
    let scene = Scene::begin(database, "2026-01-10");
    scene.fee("p", "100.00");
    scene.sell(&[product("p", "2026-01-01", "2026-12-31")]);
    scene.run_on_each(&["2026-02-02", "2026-03-02"]);
    scene
}

fn deposit(client: &Client, amount: &str) -> Value {
    client.post(PATH, &json!({"currency": "EUR", "amount": amount, "reference": "bank 1"})).ok()
}

fn states(client: &Client) -> Vec<String> {
    ["UB-INV-1", "UB-INV-2"].map(|number| books::fields(&books::numbered(client, number), ["state"])[0].clone()).to_vec()
}

fn a_deposit_pays_what_is_due_and_the_next_document(database: &Database) {
    let scene = two_due(database);
    let paid = deposit(&scene.client, "250.00");
    let names = ["kind", "document_ref", "document_number", "customer_ref", "unapplied_amount", "paid_date"];
    assert_eq!(books::fields(&paid, names), ["PAYMENT", "null", "null", "acme", "50.00", "2026-03-02"]);
    assert_eq!(paid["entity_ref"], scene.entity());
    let applied = |payment: &Value| -> Vec<[String; 2]> {
        let applications = payment["applications"].as_array().expect("a list");
        applications.iter().map(|one| books::fields(one, ["to_document_number", "amount"])).collect()
    };
    assert_eq!(applied(&paid), [["UB-INV-1", "100.00"], ["UB-INV-2", "100.00"]]);
    assert_eq!(states(&scene.client), ["PAID", "PAID"]);

    scene.run_on("2026-04-02");
    let next = books::numbered(&scene.client, "UB-INV-3");
    assert_eq!(
        books::fields(&next, ["state", "paid_amount", "amount_due", "due_at_issue"]),
        ["PARTIALLY_PAID", "50.00", "50.00", "50.00"]
    );
    assert_eq!(next["applied_at_issue"].to_string(), r#"[{"document_number":null,"amount":50.00}]"#);

    // A payment of a document comes with the deposits, in the order of recording.
    books::pay(&scene.client, &next["document_ref"], &json!({"amount": "20.00"})).ok();
    let listed = scene.client.get(PATH).ok();
    let listed = listed.as_array().expect("a list");
    let shown: Vec<[String; 2]> = listed.iter().map(|payment| books::fields(payment, ["document_number", "amount"])).collect();
    assert_eq!(shown, [["null", "250.00"], ["UB-INV-3", "20.00"]]);
    let deposits = scene.client.get("/api/documents/payments/filter?deposits=true").ok();
    assert_eq!(deposits.as_array().map(Vec::len), Some(1));
    let page = scene.client.get(&format!("{PATH}?pageNumber=1&pageSize=1"));
    assert_eq!((page.header("x-total-count"), page.body[0]["amount"].to_string().as_str()), ("2", "20.00"));
    assert_eq!(
        books::statement(&scene.client, "acme"),
        [
            "2026-02-02 INVOICE UB-INV-1 100.00 100.00",
            "2026-03-02 INVOICE UB-INV-2 100.00 200.00",
            "2026-03-02 PAYMENT null -250.00 -50.00",
            "2026-04-02 INVOICE UB-INV-3 100.00 50.00",
            "2026-04-02 PAYMENT UB-INV-3 -20.00 30.00",
        ]
    );
    let table = scene.client.get("/api/customers/statement/acme?format=csv").text;
    assert!(table.lines().any(|row| row.contains(",PAYMENT,,,") && row.ends_with(",bank 1,-250.00,-50.00")), "{table}");
    let file = scene.client.get("/api/customers/statement/acme?format=pdf");
    assert_eq!(file.header("content-type"), "application/pdf");
    binary::succeed(database, &["verify"]);
}

fn a_deposit_is_reversed_or_refunded_and_answers_with_the_payment(database: &Database) {
    let scene = two_due(database);
    let payment = deposit(&scene.client, "250.00")["payment_ref"].clone();
    let refund = books::refund(&scene.client, &payment, &json!({"amount": "30.00"})).ok();
    let names = ["kind", "document_ref", "amount"];
    assert_eq!(books::fields(&refund, names), ["REFUND", "null", "30.00"]);
    assert_eq!(refund["refunded_payment_ref"], payment);
    refused(&books::reverse(&scene.client, &payment, &json!({})), 409, "payment_refunded");
    let reversed = books::reverse(&scene.client, &refund["payment_ref"], &json!({})).ok();
    assert_eq!(books::fields(&reversed, ["kind", "reversed_date"]), ["REFUND", "2026-03-02"]);
    let reversed = books::reverse(&scene.client, &payment, &json!({"reason": "bounced"})).ok();
    assert_eq!(books::fields(&reversed, ["kind", "reason", "unapplied_amount"]), ["PAYMENT", "bounced", "0.00"]);
    assert_eq!(reversed["payment_ref"], payment);
    assert_eq!(states(&scene.client), ["ISSUED", "ISSUED"]);
    refused(&books::reverse(&scene.client, &payment, &json!({})), 409, "already_reversed");
    assert_eq!(books::balance(&scene.client, "acme"), [["200.00", "100.00", "0.00", "0.00"].map(str::to_owned)]);
    binary::succeed(database, &["verify"]);
}

fn a_deposit_needs_neither_an_account_nor_a_document(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.edit_customer("acme", &json!({"apply_balance": false}));
    let yen = json!({"currency": "JPY", "amount": 500, "paid_date": "2019-12-31"});
    let paid = scene.client.post(PATH, &yen).ok();
    assert_eq!(
        books::fields(&paid, ["currency", "amount", "unapplied_amount", "paid_date"]),
        ["JPY", "500", "500", "2019-12-31"]
    );
    assert_eq!(books::statement(&scene.client, "acme"), ["2019-12-31 PAYMENT null -500 -500"]);
    // The entity of a payment stays, because its account needs the entity.
    scene.client.post("/api/entities/", &json!({"entity_ref": "second", "name": "Second", "number_prefix": "SEC"})).ok();
    let second = json!({"entity_ref": "second", "currency": "EUR", "amount": "1.00"});
    scene.client.post(PATH, &second).ok();
    refused(&scene.client.delete("/api/entities/second"), 409, "entity_in_use");

    scene.fee("p", "100.00");
    scene.sell(&[product("p", "2026-01-01", "2026-01-31")]);
    scene.run_on("2026-02-02");
    let payment = deposit(&scene.client, "60.00");
    assert_eq!(payment["applications"], json!([]), "the balance is applied by hand");
    let invoice = books::numbered(&scene.client, "UB-INV-1");
    let settled = books::apply(&scene.client, &payment["payment_ref"], &invoice["document_ref"], "60.00").ok();
    assert_eq!(books::fields(&settled, ["document_number", "paid_amount", "amount_due"]), ["UB-INV-1", "60.00", "40.00"]);
    binary::succeed(database, &["verify"]);
}

fn a_document_that_a_deposit_pays_is_voided_after_unapplying(database: &Database) {
    let scene = two_due(database);
    let payment = deposit(&scene.client, "100.00");
    let invoice = books::numbered(&scene.client, "UB-INV-1");
    let answer = books::void(&scene.client, &invoice["document_ref"]);
    assert!(
        answer.body["detail"].as_str().is_some_and(|detail| detail.contains("unapply the amounts of deposits")),
        "{answer:?}"
    );
    refused(&answer, 409, "document_paid");
    let application = catalog::only(payment["applications"].clone());
    let reopened = books::unapply(&scene.client, &application["application_ref"]).ok();
    assert_eq!(books::fields(&reopened, ["document_number", "amount_due"]), ["UB-INV-1", "100.00"]);
    books::void(&scene.client, &invoice["document_ref"]).ok();
    // A run bills the period again, and the deposit pays the new invoice.
    scene.run_on("2026-03-03");
    assert_eq!(books::fields(&books::numbered(&scene.client, "UB-INV-3"), ["state", "paid_amount"]), ["PAID", "100.00"]);
    binary::succeed(database, &["verify"]);
}

fn deposits_that_cannot_be_are_refused_each_with_its_reason(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    let post = |body: Value| scene.client.post(PATH, &body);
    for (body, code) in [
        (json!({"currency": "EUR", "amount": "0"}), "out_of_range"),
        (json!({"currency": "EUR", "amount": "1.001"}), "invalid_format"),
        (json!({"currency": "EUR", "amount": "1", "paid_date": "2026-01-12"}), "out_of_range"),
        (json!({"currency": "EUR", "amount": "1", "entity_ref": "nobody"}), "unknown_reference"),
        (json!({"amount": "1"}), "required"),
        (json!({"currency": "EUR", "amount": "1", "overpayment": true}), "unknown_field"),
    ] {
        let answer = post(body.clone());
        assert_eq!((answer.status, answer.body["errors"][0]["code"].as_str()), (422, Some(code)), "{body}: {answer:?}");
    }
    assert_eq!(post(json!({"currency": "EUR", "amount": "1", "paid_date": "2026-01-11"})).ok()["paid_date"], "2026-01-11");
    let unknown = "/api/customers/payments/nobody";
    refused(&scene.client.post(unknown, &json!({"currency": "EUR", "amount": 1})), 404, "customer_not_found");
    refused(&scene.client.get(unknown), 404, "customer_not_found");
}

fn a_dry_run_of_a_deposit_stores_nothing_and_a_key_records_it_once(database: &Database) {
    let scene = two_due(database);
    let body = json!({"currency": "EUR", "amount": "150.00"});
    let effects = scene.client.post("/api/dry_run", &json!({"path": PATH, "body": body})).ok();
    let settled = effects["settled"].as_array().expect("a list");
    let settled: Vec<[String; 2]> = settled.iter().map(|one| books::fields(one, ["document_number", "amount_due"])).collect();
    assert_eq!(settled, [["UB-INV-1", "0.00"], ["UB-INV-2", "50.00"]]);
    assert_eq!(scene.client.get(PATH).ok(), json!([]));
    assert_eq!(states(&scene.client), ["ISSUED", "ISSUED"]);
    let keyed = scene.client.with_header("Idempotency-Key", "deposit-1");
    let first = keyed.post(PATH, &body).ok();
    assert_eq!(keyed.post(PATH, &body).ok(), first);
    assert_eq!(scene.client.get(PATH).ok().as_array().map(Vec::len), Some(1));
    assert_eq!(books::balance(&scene.client, "acme")[0][0], "50.00");
}
