//! Corrections of usage whose invoice is issued: debits and credits that make up the difference to the cent, while the
//! invoice stays as it is.

use acceptance::when::Day;
use acceptance::{Client, Database, Server, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    late_usage_collects_on_one_debit_until_that_is_issued,
    less_usage_is_credited_and_lowers_what_is_due,
    more_and_less_collect_on_one_draft_each,
    the_first_billing_run_of_a_later_day_issues_what_was_collected,
    a_credit_that_came_to_have_the_wrong_sign_is_issued_as_a_debit,
    an_event_that_moves_to_another_period_is_settled_in_both,
    a_deleted_event_stops_counting_and_its_history_stays,
    a_repeated_update_or_delete_corrects_once,
    an_update_that_is_refused_changes_nothing,
    late_usage_eats_the_true_up_to_the_minimum_fee_first,
);

/// A server with the API plan sold to acme for a period that ended ten days ago.
fn stage(database: &Database) -> (Server, Client) {
    let (server, client, _) = catalog::stage_with(database, &catalog::past_contract("acme"));
    (server, client)
}

fn past_event(quantity: u32) -> Value {
    catalog::event_on("acme", Day::today().plus_days(-20), quantity)
}

/// Reports one event, and has its invoice of 49.00 and the usage issued.
fn issued(client: &Client, quantity: u32) -> (Value, Value) {
    let event = books::report(client, &past_event(quantity));
    books::run(client);
    (event["event_ref"].clone(), books::numbered(client, "UB-INV-1"))
}

fn late_usage_collects_on_one_debit_until_that_is_issued(database: &Database) {
    let (_server, client) = stage(database);
    let (_, invoice) = issued(&client, 1500);

    // At 0.01 each in the third tier.
    for (quantity, total) in [(500, "5.95"), (100, "7.14")] {
        assert_eq!(books::report(&client, &past_event(quantity))["related_document_numbers"], "UB-DBT-1");
        assert_eq!(books::shown(&books::numbered(&client, "UB-DBT-1")), ["UB-DBT-1", "DEBIT", "ADJUSTMENT", "DRAFT", total]);
    }
    let debit = books::numbered(&client, "UB-DBT-1");
    assert_eq!(books::lines(&debit), [["calls", &*Day::today().plus_days(-40).to_string(), "600", "6.00"]]);
    assert_eq!(books::fields(&debit, ["period_start", "period_end"]), books::fields(&invoice, ["period_start", "period_end"]));
    assert_eq!(books::run(&client), Vec::<Value>::new(), "it goes on collecting today");

    let debit = books::issue(&client, &debit["document_ref"]).ok();
    assert_eq!((&debit["state"], &debit["issue_date"]), (&json!("ISSUED"), &json!(Day::today().to_string())));
    assert_eq!(books::report(&client, &past_event(10))["related_document_numbers"], "UB-DBT-2", "an issued one is final");

    let after = books::numbered(&client, "UB-INV-1");
    assert_eq!(books::frozen(&after), books::frozen(&invoice), "to the byte");
    assert_eq!(books::related(&after), ["UB-DBT-1", "UB-DBT-2"]);
    assert_eq!(books::fields(&after, ["credits_amount", "amount_due"]), ["0.00", "129.71"], "a debit is due by itself");
    assert_eq!(books::frozen(&books::numbered(&client, "UB-DBT-1")), books::frozen(&debit), "to the byte");
}

fn less_usage_is_credited_and_lowers_what_is_due(database: &Database) {
    let (_server, client) = stage(database);
    let (event_ref, invoice) = issued(&client, 1500);

    let updated = books::update(&client, &event_ref, json!({"quantity": 1000})).ok();

    assert_eq!(books::fields(&updated, ["related_document_numbers", "revision"]), ["UB-INV-1, UB-CRD-1", "2"]);
    let credit = books::document(&client, &updated["related_document_ref"]);
    // 10.00 + 45.00 instead of 60.00, and 19 %.
    assert_eq!(books::totals(&credit), ["5.00", "0.00", "0.95", "5.95", "null"]);
    assert_eq!(books::lines(&credit)[0][2..], ["500", "5.00"]);
    assert_eq!(books::numbered(&client, "UB-INV-1")["amount_due"].to_string(), "129.71", "a draft lowers nothing yet");

    books::issue(&client, &credit["document_ref"]).ok();
    let after = books::numbered(&client, "UB-INV-1");
    assert_eq!(books::fields(&after, ["credits_amount", "amount_due"]), ["5.95", "123.76"]);
    assert_eq!(books::frozen(&after), books::frozen(&invoice), "to the byte");

    // The event's latest change stands on a credit that is issued: the next one is a debit of the invoice.
    let updated = books::update(&client, &event_ref, json!({"quantity": 1600})).ok();
    assert_eq!(updated["related_document_numbers"], "UB-INV-1, UB-CRD-1, UB-DBT-1");
    let debit = books::numbered(&client, "UB-DBT-1");
    assert_eq!((books::totals(&debit)[0].as_str(), &debit["parent_document_number"]), ("6.00", &json!("UB-INV-1")));
}

fn more_and_less_collect_on_one_draft_each(database: &Database) {
    let (_server, client) = stage(database);
    let first = books::report(&client, &past_event(1000))["event_ref"].clone();
    let (second, _) = issued(&client, 500);

    books::report(&client, &past_event(100));
    books::update(&client, &first, json!({"quantity": 900})).ok();
    books::report(&client, &past_event(50));
    books::update(&client, &second, json!({"quantity": 300})).ok();

    let documents = catalog::documents(&client);
    assert_eq!(documents.len(), 3);
    // In the third tier from 1600 down to 1350; both have the invoice as parent.
    assert_eq!(books::totals(&books::numbered(&client, "UB-DBT-1"))[0], "1.50");
    assert_eq!(books::totals(&books::numbered(&client, "UB-CRD-1"))[0], "3.00");
    assert_eq!(books::related(&books::numbered(&client, "UB-INV-1")), ["UB-DBT-1", "UB-CRD-1"]);
}

fn the_first_billing_run_of_a_later_day_issues_what_was_collected(database: &Database) {
    let (_server, client) = stage(database);
    issued(&client, 1500);
    let debit_ref = books::report(&client, &past_event(500))["related_document_ref"].clone();
    assert_eq!(books::run(&client), Vec::<Value>::new());

    // Only time makes a later day, so the draft is moved to yesterday.
    let day = if database.is_sqlite() { "86400000000" } else { "interval '1 day'" };
    database.execute(&format!(
        "UPDATE documents SET created_at = created_at - {day} WHERE kind = 'DEBIT'; \
         UPDATE contracts SET next_due_at = next_due_at - {day}"
    ));
    let run = books::run(&client);

    assert_eq!(
        books::fields(&catalog::only(Value::Array(run)), ["document_number", "kind", "total"]),
        ["UB-DBT-1", "DEBIT", "5.95"]
    );
    assert_eq!(books::document(&client, &debit_ref)["state"], "ISSUED");
    assert_eq!(books::run(&client), Vec::<Value>::new(), "once");
}

fn a_credit_that_came_to_have_the_wrong_sign_is_issued_as_a_debit(database: &Database) {
    let (_server, client) = stage(database);
    let (event_ref, _) = issued(&client, 1500);
    books::update(&client, &event_ref, json!({"quantity": 1000})).ok();
    // The change stands on the draft credit, which is re-rated: it would take back −5.00.
    let updated = books::update(&client, &event_ref, json!({"quantity": 2000})).ok();
    assert_eq!(updated["related_document_numbers"], "UB-INV-1, UB-CRD-1");

    let issued = books::issue(&client, &updated["related_document_ref"]).ok();

    assert_eq!(books::shown(&issued), ["UB-DBT-1", "DEBIT", "ADJUSTMENT", "ISSUED", "5.95"]);
    assert_eq!(books::numbered(&client, "UB-CRD-1")["state"], "VOID", "its number stays");
    let event = books::event(&client, &event_ref);
    assert_eq!(event["related_document_ref"], issued["document_ref"], "the event goes along");
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
    assert_eq!(moved["related_document_numbers"], "UB-DBT-1", "the documents of its present period");

    // On into the current period, which is open: the debit gives back what it took.
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
    assert_eq!(books::frozen(&second), books::frozen(&invoice(start.plus_months(1))), "to the byte");
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
    // Only data for the report: a revision, but no money.
    let renamed = books::update(&client, &event_ref, json!({"additional_report_data": {"zone": 7}})).ok();
    assert_eq!(
        (renamed["revision"].to_string().as_str(), &renamed["additional_report_data"]),
        ("3", &json!({"zone": 7})),
        "replaced whole"
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

fn late_usage_eats_the_true_up_to_the_minimum_fee_first(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let price = json!({"model": "PER_UNIT", "unit_price": "1.00"});
    let plan = json!({"product_pricing_ref": "least", "name": "least", "currency": "EUR", "minimum_fee": "100.00",
        "line_items": [catalog::fixed("base", "20.00"), catalog::calls(&price)]});
    client.post("/api/pricings/", &plan).ok();
    catalog::sell(&client, &[catalog::ended("least")]);
    let (_, invoice) = issued(&client, 30);
    assert_eq!(books::amounts(&invoice), ["base 20.00", "calls 30.00", "null 50.00"]);

    books::report(&client, &past_event(40));
    let mut amounts = books::amounts(&books::numbered(&client, "UB-DBT-1"));
    amounts.sort();
    assert_eq!(amounts, ["calls 40.00", "null -40.00"]);
    books::report(&client, &past_event(20));
    let debit = books::numbered(&client, "UB-DBT-1");
    assert_eq!(books::totals(&debit)[..4], ["10.00", "0.00", "1.90", "11.90"], "90.00 are trued up by 10.00; 110.00 are not");
}
