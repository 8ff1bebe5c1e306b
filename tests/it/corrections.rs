//! Corrections of usage on issued invoices, in requests and responses: numbers, histories, repeats and rejections. The domain's
//! `scenarios::corrections` test their amounts.

use acceptance::when::Day;
use acceptance::{Client, Database, Server, books, catalog, on_sqlite};
use serde_json::{Value, json};

on_sqlite!(
    an_event_that_moves_to_another_period_is_settled_in_both,
    a_deleted_event_stops_counting_and_its_history_stays,
    a_repeated_update_or_delete_corrects_once,
    an_update_that_is_refused_changes_nothing,
);

/// Starts a server with the API plan sold to acme for a period that ended ten days ago.
fn stage(database: &Database) -> (Server, Client) {
    let (server, client, _) = catalog::stage_with(database, &catalog::past_contract("acme"));
    (server, client)
}

fn past_event(quantity: u32) -> Value {
    catalog::event_on("acme", Day::today().plus_days(-20), quantity)
}

/// Reports one event and issues its invoice of 49.00 plus the usage.
fn issued(client: &Client, quantity: u32) -> (Value, Value) {
    let event = books::report(client, &past_event(quantity));
    books::run(client);
    (event["event_ref"].clone(), books::numbered(client, "UB-INV-1"))
}

fn an_event_that_moves_to_another_period_is_settled_in_both(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    catalog::sell(&client, &[catalog::months(catalog::API_PLAN, 2, 0)]);
    let start = Day::today().plus_days(-10).plus_months(-2);
    let event = books::report(&client, &catalog::event_on("acme", start, 100));
    books::run(&client);
    let invoice = |start: Day| {
        let documents = catalog::documents(&client);
        documents.into_iter().find(|document| document["period_start"] == json!(start.to_string())).expect("an invoice")
    };
    let (first, second) = (invoice(start), invoice(start.plus_months(1)));
    assert_eq!(
        (books::amounts(&first), books::amounts(&second)),
        (
            vec!["platform-fee 49.00".to_owned(), "calls 10.00".to_owned()],
            vec!["platform-fee 49.00".to_owned(), "calls 0.00".to_owned()],
        )
    );

    let moved = books::update(&client, &event["event_ref"], json!({"timestamp": start.plus_months(1).noon()})).ok();

    let (credit, debit) = (books::numbered(&client, "UB-CRD-1"), books::numbered(&client, "UB-DBT-1"));
    assert_eq!(
        (&credit["parent_document_ref"], &debit["parent_document_ref"]),
        (&first["document_ref"], &second["document_ref"])
    );
    assert_eq!(
        (books::amounts(&credit), books::amounts(&debit)),
        (vec!["calls 10.00".to_owned()], vec!["calls 10.00".to_owned()])
    );
    assert_eq!(moved["related_document_numbers"], "UB-DBT-1", "the documents of the new period");

    // The event moves on into the current, open period: the debit returns what it charged.
    let moved = books::update(&client, &event["event_ref"], json!({"timestamp": start.plus_months(2).noon()})).ok();
    assert_eq!(books::amounts(&books::numbered(&client, "UB-DBT-1")), ["calls 0.00"]);
    let draft = books::document(&client, &moved["related_document_ref"]);
    assert_eq!((draft["state"].as_str(), books::amounts(&draft)[1].as_str()), (Some("DRAFT"), "calls 10.00"));
    let documents: Vec<String> = books::history(&client, &event["event_ref"])
        .iter()
        .map(|revision| books::fields(revision, ["revision", "action", "document_number"]).join(" "))
        .collect();
    let [first, third] = [&first, &draft].map(|invoice| invoice["document_number"].as_str().expect("a number"));
    assert_eq!(documents, [format!("1 CREATED {first}"), "2 UPDATED UB-DBT-1".to_owned(), format!("3 UPDATED {third}")]);
    assert_eq!(books::frozen(&second), books::frozen(&invoice(start.plus_months(1))), "unchanged to the byte");
}

fn a_deleted_event_stops_counting_and_its_history_stays(database: &Database) {
    let (_server, client) = stage(database);
    let on_draft = books::report(&client, &past_event(700));
    let (on_invoice, _) = {
        assert_eq!(books::delete(&client, &on_draft["event_ref"]).status, 204);
        issued(&client, 1500)
    };
    assert_eq!(books::lines(&books::numbered(&client, "UB-INV-1"))[1][2..], ["1500", "60.00"], "without the deleted event");

    assert_eq!(books::delete(&client, &on_invoice).status, 204);

    let credit = books::numbered(&client, "UB-CRD-1");
    assert_eq!(
        (books::lines(&credit)[0][2..].to_vec(), books::totals(&credit)[3].as_str()),
        (vec!["1500".to_owned(), "60.00".to_owned()], "71.40")
    );
    for event_ref in [&on_draft["event_ref"], &on_invoice] {
        let path = format!("/api/usage/event/{}", event_ref.as_str().expect("a reference"));
        for answer in [client.get(&path), client.delete(&path), books::update(&client, event_ref, json!({"quantity": 1}))] {
            assert_eq!((answer.status, answer.text_of("code").as_str()), (404, "event_not_found"));
        }
    }
    let history = books::history(&client, &on_invoice);
    let shown: Vec<String> =
        history.iter().map(|entry| books::fields(entry, ["revision", "action", "document_number"]).join(" ")).collect();
    assert_eq!(shown, ["1 CREATED UB-INV-1", "2 DELETED UB-CRD-1"]);
    assert!(
        history.iter().all(|entry| entry["event"]["quantity"] == json!(1500)
            && entry["changed_by"].as_str().is_some_and(|by| by.starts_with("api_key:"))),
        "{history:?}"
    );
}

fn a_repeated_update_or_delete_corrects_once(database: &Database) {
    let (_server, client) = stage(database);
    let (event_ref, _) = issued(&client, 1500);
    let change = json!({"quantity": "1000.0", "additional_report_data": {"region": "eu"}});

    let once = books::update(&client, &event_ref, change.clone()).ok();
    let books_once = catalog::documents(&client);
    let twice = books::update(&client, &event_ref, change).ok();

    assert_eq!((once["revision"].to_string().as_str(), &twice), ("2", &once));
    assert_eq!(catalog::documents(&client), books_once);
    // A change of report data alone creates a revision but changes no amount.
    let renamed = books::update(&client, &event_ref, json!({"additional_report_data": {"zone": 7}})).ok();
    assert_eq!(
        (renamed["revision"].to_string().as_str(), &renamed["additional_report_data"]),
        ("3", &json!({"zone": 7})),
        "replaced as a whole"
    );
    assert_eq!(catalog::documents(&client), books_once);
    let cleared = books::update(&client, &event_ref, json!({"additional_report_data": null})).ok();
    assert_eq!(cleared["additional_report_data"], Value::Null);

    assert_eq!(books::delete(&client, &event_ref).status, 204);
    let deleted = catalog::documents(&client);
    assert_eq!(books::delete(&client, &event_ref).status, 404);
    assert_eq!(catalog::documents(&client), deleted);
    assert_eq!(books::history(&client, &event_ref).len(), 5);
}

fn an_update_that_is_refused_changes_nothing(database: &Database) {
    let (_server, client) = stage(database);
    let mut checked = past_event(1500);
    checked["validations"] = json!({"currency": "EUR"});
    let event_ref = books::report(&client, &checked)["event_ref"].clone();
    books::run(&client);
    let (documents, event) = (catalog::documents(&client), books::event(&client, &event_ref));

    for (change, code, pointers) in [
        (json!({"timestamp": Day::today().plus_days(-100).noon()}), "no_matching_contract", vec![]),
        (json!({"timestamp": "2100-01-01T00:00:00Z"}), "timestamp_in_future", vec!["/timestamp"]),
        (json!({"quantity": -1, "timestamp": "now"}), "validation_failed", vec!["/quantity", "/timestamp"]),
        (json!({"quantity": "999999999999999", "customer_ref": "other"}), "validation_failed", vec!["/customer_ref"]),
        (json!({"usage_product_ref": "other"}), "validation_failed", vec!["/usage_product_ref"]),
        (json!({"quantity": null}), "validation_failed", vec!["/quantity"]),
    ] {
        let answer = books::update(&client, &event_ref, change.clone());
        assert_eq!((answer.status, answer.text_of("code").as_str()), (422, code), "{change}");
        let mut found: Vec<String> = match &answer.body["errors"] {
            Value::Array(errors) => errors.iter().map(|error| books::fields(error, ["pointer"])[0].clone()).collect(),
            _ => Vec::new(),
        };
        found.sort();
        assert_eq!(found, pointers, "{change}");
    }
    assert_eq!((catalog::documents(&client), books::event(&client, &event_ref)), (documents, event));
}
