//! Issued documents: payments, credits, voids, and content that never changes.

use acceptance::when::Day;
use acceptance::{Answer, Client, Database, Server, binary, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    payments_settle_an_invoice_and_never_more_than_is_due,
    a_credit_lowers_what_is_due_to_the_last_cent,
    a_void_invoice_is_replaced_and_everything_billed_again,
    what_something_stands_on_is_not_voided,
    only_a_draft_is_issued_and_only_once,
    an_issued_invoice_stays_what_it_is_whatever_follows,
    an_invoice_changed_behind_its_back_is_found,
    an_amount_changed_behind_its_back_is_found,
    what_a_verification_found_is_told_where_it_was_recorded,
);

/// Starts a server with the API plan sold to acme for a period that ended ten days ago, and issues its invoice of 129.71.
fn stage(database: &Database) -> (Server, Client, Value) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    catalog::sell(&client, &[catalog::with(catalog::ended(catalog::API_PLAN), &json!({"net_terms": 14}))]);
    books::report(&client, &past_event(1500));
    assert_eq!(books::run(&client).len(), 1);
    let invoice = books::numbered(&client, "UB-INV-1");
    assert_eq!(books::totals(&invoice)[3..], ["129.71", "129.71"]);
    (server, client, invoice)
}

fn past_event(quantity: u32) -> Value {
    catalog::event_on("acme", Day::today().plus_days(-20), quantity)
}

fn today() -> String {
    Day::today().to_string()
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.text_of("code").as_str()), (status, code), "{}", answer.text);
}

const SETTLED: [&str; 5] = ["state", "paid_amount", "credits_amount", "amount_due", "paid_date"];

fn payments_settle_an_invoice_and_never_more_than_is_due(database: &Database) {
    let (_server, client, invoice) = stage(database);
    let pay = |payment: Value| books::pay(&client, &invoice["document_ref"], &payment);

    let part = pay(json!({"amount": "100.00", "paid_date": today(), "reference": "bank 4711"})).ok();
    assert_eq!(books::fields(&part, SETTLED), ["PARTIALLY_PAID", "100.00", "0.00", "29.71", "null"]);
    for (payment, code) in [
        (json!({"amount": "29.72"}), "above_amount_due"),
        (json!({"amount": 0}), "out_of_range"),
        (json!({"amount": "0.001"}), "invalid_format"),
        (json!({"amount": "-1"}), "out_of_range"),
        (json!({}), "required"),
    ] {
        let answer = pay(payment.clone());
        refused(&answer, 422, "validation_failed");
        assert_eq!(
            (&answer.body["errors"][0]["pointer"], &answer.body["errors"][0]["code"]),
            (&json!("/amount"), &json!(code)),
            "{payment}"
        );
    }
    assert_eq!(books::document(&client, &invoice["document_ref"]), part);

    let paid = pay(json!({"amount": 29.71, "paid_date": today()})).ok();
    assert_eq!(books::fields(&paid, SETTLED), ["PAID", "129.71", "0.00", "0.00", &today()]);
    refused(&pay(json!({"amount": "0.01"})), 422, "validation_failed");
    refused(&books::void(&client, &invoice["document_ref"]), 409, "document_paid");
    assert_eq!(books::frozen(&paid), books::frozen(&invoice), "unchanged to the byte");

    // Corrections don't depend on whether the invoice is paid.
    let draft = books::report(&client, &past_event(100))["related_document_ref"].clone();
    refused(&books::pay(&client, &draft, &json!({"amount": 1})), 409, "not_owed");
    books::issue(&client, &draft).ok();
    let debit = books::pay(&client, &draft, &json!({"amount": "1.19"})).ok();
    assert_eq!(books::fields(&debit, ["state", "paid_date"]), ["PAID", &Day::today().to_string()], "today by default");
}

fn a_credit_lowers_what_is_due_to_the_last_cent(database: &Database) {
    let (_server, client, invoice) = stage(database);
    let late = books::report(&client, &past_event(100))["event_ref"].clone();
    assert_eq!(books::totals(&books::numbered(&client, "UB-DBT-1"))[3], "1.19");
    books::issue(&client, &books::numbered(&client, "UB-DBT-1")["document_ref"]).ok();

    // The debit with the event is issued, so deleting the event creates a credit for the invoice.
    assert_eq!(books::delete(&client, &late).status, 204);
    let credit = books::numbered(&client, "UB-CRD-1");
    assert_eq!(books::fields(&credit, ["state", "total", "parent_document_number"]), ["DRAFT", "1.19", "UB-INV-1"]);
    books::pay(&client, &invoice["document_ref"], &json!({"amount": "128.52"})).ok();
    books::issue(&client, &credit["document_ref"]).ok();

    // The credit settles the debit that it reverses, not the invoice.
    let debit = books::numbered(&client, "UB-DBT-1");
    assert_eq!(books::fields(&debit, SETTLED), ["PAID", "0.00", "1.19", "0.00", &Day::today().to_string()]);
    let invoice = books::document(&client, &invoice["document_ref"]);
    assert_eq!(books::fields(&invoice, SETTLED), ["PARTIALLY_PAID", "128.52", "0.00", "1.19", "null"]);
    assert_eq!(books::related(&invoice), ["UB-DBT-1", "UB-CRD-1"]);
}

fn a_void_invoice_is_replaced_and_everything_billed_again(database: &Database) {
    let (_server, client, invoice) = stage(database);

    let void = books::void(&client, &invoice["document_ref"]).ok();

    assert_eq!(books::shown(&void), ["UB-INV-1", "INVOICE", "REGULAR", "VOID", "129.71"]);
    refused(&books::void(&client, &invoice["document_ref"]), 409, "not_issued");
    refused(&books::issue(&client, &invoice["document_ref"]), 409, "not_a_draft");
    refused(&books::pay(&client, &invoice["document_ref"], &json!({"amount": 1})), 409, "not_owed");
    let issued = catalog::only(Value::Array(books::run(&client)));
    assert_eq!(books::fields(&issued, ["document_number", "total"]), ["UB-INV-2", "129.71"]);
    let replacement = books::document(&client, &issued["document_ref"]);
    assert_eq!(replacement["replaces_document_ref"], invoice["document_ref"]);
    assert_eq!(books::lines(&replacement), books::lines(&invoice));

    // The invoice is voided again. This time the next event creates the replacement.
    books::void(&client, &replacement["document_ref"]).ok();
    let event = books::report(&client, &past_event(500));
    assert_eq!(event["related_document_numbers"], "UB-INV-3");
    let draft = books::numbered(&client, "UB-INV-3");
    assert_eq!((&draft["replaces_document_ref"], &draft["state"]), (&replacement["document_ref"], &json!("DRAFT")));
    assert_eq!(books::amounts(&draft), ["platform-fee 49.00", "calls 65.00"]);
    assert_eq!(books::run(&client).len(), 1);
    assert_eq!(books::frozen(&books::numbered(&client, "UB-INV-1")), books::frozen(&invoice), "void, but otherwise unchanged");
}

fn what_something_stands_on_is_not_voided(database: &Database) {
    let (_server, client, invoice) = stage(database);
    let debit = books::report(&client, &past_event(500))["related_document_ref"].clone();
    let before = catalog::documents(&client);

    refused(&books::void(&client, &invoice["document_ref"]), 409, "document_has_dependents");
    refused(&books::void(&client, &debit), 409, "not_voidable");
    assert_eq!(catalog::documents(&client), before);
    books::issue(&client, &debit).ok();
    refused(&books::void(&client, &debit), 409, "not_voidable");
    refused(&books::void(&client, &invoice["document_ref"]), 409, "document_has_dependents");
}

fn only_a_draft_is_issued_and_only_once(database: &Database) {
    let (_server, client, invoice) = stage(database);
    refused(&books::issue(&client, &invoice["document_ref"]), 409, "not_a_draft");

    catalog::sell(&client, &[catalog::months(catalog::API_PLAN, 0, 1)]);
    let draft = books::report(&client, &catalog::event("acme", 100))["related_document_ref"].clone();
    refused(&books::void(&client, &draft), 409, "not_issued");
    refused(&books::pay(&client, &draft, &json!({"amount": 1})), 409, "not_owed");
    let issued = books::issue(&client, &draft).ok();
    assert_eq!(books::shown(&issued), ["UB-INV-2", "INVOICE", "REGULAR", "ISSUED", "70.21"]);
    assert_eq!(issued["issue_date"], Day::today().to_string());
    refused(&books::issue(&client, &draft), 409, "not_a_draft");
    // Usage continues on a debit for the document that was issued before that day.
    let late = books::report(&client, &catalog::event("acme", 100));
    assert_eq!(late["related_document_numbers"], "UB-DBT-1");
}

fn an_issued_invoice_stays_what_it_is_whatever_follows(database: &Database) {
    let (server, client, invoice) = stage(database);
    let text = |client: &Client| books::frozen(&books::document(client, &invoice["document_ref"]));
    let frozen = text(&client);
    let entity = catalog::only(client.get("/api/entities/filter").ok());
    let entity = format!("/api/entities/edit/{}", entity["entity_ref"].as_str().expect("a reference"));
    let event_ref = books::report(&client, &past_event(500))["event_ref"].clone();

    let then: [(&str, &dyn Fn() -> Answer); 10] = [
        ("a late event", &|| client.post("/api/usage/event", &past_event(7))),
        ("an update", &|| books::update(&client, &event_ref, json!({"quantity": 1}))),
        ("another customer's name", &|| {
            client.post("/api/customers/edit/acme", &json!({"name": "Renamed", "legal_name": "Renamed Inc", "tax": 1}))
        }),
        ("another entity's name", &|| client.post(&entity, &json!({"name": "Moved", "timezone": "Asia/Tokyo", "net_terms": 60}))),
        ("another price", &|| {
            client.post(
                "/api/pricings/edit/api-plan",
                &json!({"name": "Dearer", "line_items": [catalog::fixed("platform-fee", "99.00")]}),
            )
        }),
        ("another unit", &|| client.post("/api/usage/products/edit/api-calls", &json!({"name": "Requests", "unit": "request"}))),
        ("a payment", &|| books::pay(&client, &invoice["document_ref"], &json!({"amount": "9.71"}))),
        ("a debit's issue", &|| books::issue(&client, &books::numbered(&client, "UB-DBT-1")["document_ref"])),
        ("a deleted event", &|| books::delete(&client, &event_ref)),
        ("a credit's issue", &|| {
            let documents = catalog::documents(&client);
            let credit = documents.iter().find(|document| document["kind"] == "CREDIT").expect("a credit");
            books::issue(&client, &credit["document_ref"])
        }),
    ];
    for (what, act) in then {
        let answer = act();
        assert!(matches!(answer.status, 200 | 204), "{what}: {}", answer.text);
        assert_eq!(text(&client), frozen, "{what}");
    }
    let server = {
        server.kill_9();
        Server::start(database)
    };
    assert_eq!(text(&client.at(&server)), frozen, "unchanged after a restart");
}

/// Checks that the database rejects a change, makes the change without the triggers, and returns the output of `verify`.
fn tampered(database: &Database, table: &str, guards: &[&str], change: &str) -> String {
    assert!(database.try_execute(change).is_err(), "a trigger rejects: {change}");
    let on = if database.is_sqlite() { String::new() } else { format!(" ON {table}") };
    // Not together: on a cluster, a transaction that changes a table's definition changes no rows on several nodes.
    for guard in guards {
        database.execute(&format!("DROP TRIGGER {guard}{on}"));
    }
    database.execute(change);
    let finished = binary::run(&["verify"], &[("USAGE_BILLING_DATABASE_URL", database.url())]);
    assert_eq!(finished.code, Some(1), "{}", finished.stdout);
    finished.stdout
}

fn an_invoice_changed_behind_its_back_is_found(database: &Database) {
    let (server, _, _) = stage(database);
    drop(server);
    let guard = if database.is_sqlite() { "issued_documents_frozen_update" } else { "issued_documents_frozen" };

    let change = "UPDATE issued_documents SET content = replace(content, '1500', '1499')";
    let stated = tampered(database, "issued_documents", &[guard], change);

    assert!(stated.contains("UB-INV-1"), "{stated}");
}

fn an_amount_changed_behind_its_back_is_found(database: &Database) {
    let (server, _, _) = stage(database);
    drop(server);
    let guard = if database.is_sqlite() { "document_lines_frozen_update" } else { "document_lines_frozen" };

    let change = "UPDATE document_lines SET amount_minor = amount_minor + 1";
    let stated = tampered(database, "document_lines", &[guard], change);

    assert!(stated.contains("UB-INV-1"), "{stated}");
}

fn what_a_verification_found_is_told_where_it_was_recorded(database: &Database) {
    let (server, client, _) = stage(database);
    let reported = |client: &Client| client.get("/api/verification").ok();
    let environment = [("USAGE_BILLING_DATABASE_URL", database.url())];
    assert_eq!(binary::run(&["verify"], &environment).code, Some(0));
    assert_eq!(reported(&client)["ended_at"], Value::Null, "verification only reads");
    assert_eq!(binary::run(&["verify", "--record"], &environment).code, Some(0));
    let clean = reported(&client);
    assert_eq!(books::fields(&clean, ["contracts", "documents", "events", "wrong"]), ["1", "1", "1", "0"], "{clean}");
    assert!(clean["begun_at"].as_str() <= clean["ended_at"].as_str() && clean["findings"] == json!([]), "{clean}");

    drop(server);
    let guard = if database.is_sqlite() { "document_lines_frozen_update" } else { "document_lines_frozen" };
    tampered(database, "document_lines", &[guard], "UPDATE document_lines SET amount_minor = amount_minor + 1");
    assert_eq!(binary::run(&["verify", "--record"], &environment).code, Some(1));
    let server = Server::start(database).without_verification();
    let wrong = reported(&client.at(&server));
    assert!(wrong["wrong"].as_u64() > Some(0) && wrong["findings"].to_string().contains("UB-INV-1"), "{wrong}");
}
