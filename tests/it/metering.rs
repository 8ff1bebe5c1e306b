//! Prices by attributes over HTTP: requests, responses, corrections and `verify`. The domain's `metering` tests the rules.

use acceptance::when::Day;
use acceptance::{Client, Database, Server, binary, books, catalog, on_both_databases, on_sqlite};
use serde_json::{Value, json};

on_both_databases!(the_worked_example_of_tokens, two_subscriptions_of_one_pricing, distinct_users_count_once);
on_sqlite!(what_nothing_prices_is_refused_and_stores_nothing, conditions_are_checked_before_anything_is_stored);

fn line_item(id: &str, unit_price: &str, counts: &Value) -> Value {
    let price = json!({"model": "PER_UNIT", "unit_price": unit_price});
    catalog::with(json!({"line_item_id": id, "kind": "USAGE", "usage_product_ref": "tokens", "price": price}), counts)
}

fn prices(has_rest: bool) -> Vec<Value> {
    let mut items = vec![
        line_item("in", "0.000002", &json!({"where": {"model": ["gpt-5"], "kind": ["input"]}})),
        line_item("out", "0.000008", &json!({"where": {"model": ["gpt-5"], "kind": ["output"]}})),
        line_item("mini", "0.0000005", &json!({"where": {"model": ["gpt-5-mini"]}})),
        line_item("requests", "0.01", &json!({"aggregation": "COUNT"})),
    ];
    if has_rest {
        items.push(line_item("other", "0.00001", &json!({"rest": true})));
    }
    items
}

fn event(quantity: u64, labels: &Value) -> Value {
    let event = catalog::event_on("acme", Day::today().plus_days(-20), quantity);
    catalog::with(event, &json!({"usage_product_ref": "tokens", "additional_report_data": labels}))
}

/// Starts a server with prices of tokens, sold to acme for a period that ended ten days ago.
fn stage(database: &Database, has_rest: bool) -> (Server, Client, String) {
    let (server, client) = catalog::stage(database);
    client.post("/api/usage/products/", &json!({"usage_product_ref": "tokens", "name": "Tokens", "unit": "token"})).ok();
    catalog::make_pricing(&client, "models", &json!(prices(has_rest)));
    let contract_ref = catalog::sell(&client, &[catalog::ended("models")]);
    (server, client, contract_ref)
}

fn the_worked_example_of_tokens(database: &Database) {
    let (server, client, contract_ref) = stage(database, true);
    let report = |quantity: u64, model: &str, kind: &str| {
        books::report(&client, &event(quantity, &json!({"model": model, "kind": kind})))["event_ref"].clone()
    };
    report(1_000_000, "gpt-5", "input");
    report(200_000, "gpt-5", "output");
    let mini = report(4_000_000, "gpt-5-mini", "input");
    let gpt6 = report(100_000, "gpt-6", "input");
    let draft = || books::amounts(&catalog::documents(&client)[0]);
    let expected = ["in 2.00", "out 1.60", "mini 2.00", "requests 0.04", "other 1.00"];
    assert_eq!(draft(), expected);
    assert_eq!(books::event(&client, &mini)["line_item_ids"], json!(["mini", "requests"]));

    // Lists and sums are filtered by the values as they were sent.
    let filtered = |query: &str| {
        let found = client.get(&format!("/api/usage/event/filter?customer_ref=acme&{query}")).ok();
        found.as_array().expect("a list").len()
    };
    assert_eq!(filtered("report_data[model]=gpt-5&report_data[model]=gpt-6"), 3);
    assert_eq!(filtered("report_data[model]=gpt-5&report_data[kind]=output"), 1);
    assert_eq!(client.get("/api/usage/event/filter?report_data[model]=gpt-5").status, 422);

    // Another label changes the line item, in the draft and back.
    let relabel = |event_ref: &Value, model: &str| {
        let labels = json!({"model": model, "kind": "input"});
        books::update(&client, event_ref, json!({"additional_report_data": labels})).ok()
    };
    assert_eq!(relabel(&mini, "gpt-5")["line_item_ids"], json!(["in", "requests"]));
    assert_eq!(draft(), ["in 10.00", "out 1.60", "requests 0.04", "other 1.00"]);
    relabel(&mini, "gpt-5-mini");
    assert_eq!(draft(), expected);

    // After the invoice, the difference is one document.
    books::run(&client);
    let moved = relabel(&mini, "gpt-5");
    assert_eq!(moved["related_document_numbers"], "UB-INV-1, UB-DBT-1");
    assert_eq!(books::amounts(&books::numbered(&client, "UB-DBT-1")), ["in 8.00", "mini -2.00"]);

    // A price of its own for a model, from the first day.
    let mut items = prices(true);
    items.push(line_item("g6", "0.000004", &json!({"where": {"model": ["gpt-6"]}})));
    client.post("/api/pricings/edit/models", &json!({"line_items": items})).ok();
    let contract = client.get(&format!("/api/contracts/{contract_ref}")).ok();
    let start = &contract["products"][0]["billing_start_date"];
    let reprice =
        json!({"effective_from": start, "products": [{"product_no": 0, "product_pricing_ref": "models", "reprice": true}]});
    books::edit(&client, &contract_ref, &reprice).ok();
    assert_eq!(books::event(&client, &gpt6)["line_item_ids"], json!(["requests", "g6"]));
    let documents = catalog::documents(&client);
    let cents = |document: &Value| document["total"].to_string().replace('.', "").parse::<i64>().expect("cents");
    let signed = |document: &Value| if document["kind"] == "CREDIT" { -cents(document) } else { cents(document) };
    // (10.00 + 1.60 + 0.04 + 0.40) and 19 %.
    assert_eq!(documents.iter().map(signed).sum::<i64>(), 1433);
    drop(server);
    binary::verify(database.url()).expect("lawful books");
}

fn two_subscriptions_of_one_pricing(database: &Database) {
    let (server, client) = catalog::stage(database);
    let included = json!({"model": "PER_UNIT", "unit_price": "0.10"});
    let calls = catalog::with(catalog::calls(&included), &json!({"included_quantity": 100}));
    catalog::make_pricing(&client, "team", &json!([catalog::fixed("fee", "50.00"), calls]));
    let of_workspace = |workspace: &str| {
        catalog::with(catalog::ended("team"), &json!({"where": {"workspace": [workspace]}, "name": format!("Team {workspace}")}))
    };
    let contract_ref = catalog::sell(&client, &[of_workspace("w1"), of_workspace("w2")]);
    let report = |workspace: &str, quantity: u32| {
        let event = catalog::event_on("acme", Day::today().plus_days(-20), quantity);
        let labels = json!({"additional_report_data": {"workspace": workspace}});
        books::report(&client, &catalog::with(event, &labels))["event_ref"].clone()
    };
    report("w1", 89);
    let moved = report("w1", 1);
    report("w2", 90);
    let draft = || catalog::documents(&client)[0].clone();
    assert_eq!(draft()["sub_total"].to_string(), "100.00");
    let products: Vec<String> = draft()["products"]
        .as_array()
        .expect("products")
        .iter()
        .map(|product| books::fields(product, ["product_no", "product_pricing_ref", "product_name"]).join(" "))
        .collect();
    assert_eq!(products, ["0 team Team w1", "1 team Team w2"]);

    books::update(&client, &moved, json!({"additional_report_data": {"workspace": "w2"}})).ok();
    report("w2", 20);
    assert_eq!(books::amounts(&draft()), ["fee 50.00", "calls 0.00", "fee 50.00", "calls 1.10"]);

    // A charge names one of the twins by its number.
    let charge = json!({
        "contract_ref": contract_ref, "product_pricing_ref": "team", "name": "Setup", "unit_price": 5,
        "date": Day::today().plus_days(-20).to_string(),
    });
    let refused = client.post("/api/charges/", &charge);
    assert_eq!(
        (refused.status, books::fields(&refused.body, ["code"])[0].as_str()),
        (422, "validation_failed"),
        "{}",
        refused.text
    );
    assert!(refused.text.contains(r#""pointer":"/product_no","code":"ambiguous_product""#), "{}", refused.text);
    let made = client.post("/api/charges/", &catalog::with(charge, &json!({"product_no": 1}))).ok();
    assert_eq!(made["product_no"], 1);

    // A contract that was read is posted back without a change.
    let contract = client.get(&format!("/api/contracts/{contract_ref}")).ok();
    let edited = books::edit(&client, &contract_ref, &json!({"products": contract["products"]})).ok();
    assert_eq!(edited["version"], contract["version"]);
    drop(server);
    binary::verify(database.url()).expect("lawful books");
}

fn distinct_users_count_once(database: &Database) {
    let (server, client) = catalog::stage(database);
    let named =
        json!({"usage_product_ref": "tokens", "name": "Tokens", "unit": "token", "aggregation": "UNIQUE", "unique_by": "user"});
    client.post("/api/usage/products/", &named).ok();
    let items = [line_item("users", "1.00", &json!({})), line_item("tokens", "0.10", &json!({"aggregation": "SUM"}))];
    catalog::make_pricing(&client, "team", &json!(items));
    let contract_ref = catalog::sell(&client, &[catalog::ended("team")]);
    let of_user = |user: &str| event(5, &json!({"user": user}));
    let draft = || books::amounts(&catalog::documents(&client)[0]);
    let first = books::report(&client, &of_user("u1"))["event_ref"].clone();
    // Events of one request count once, too, and one is refused.
    let batch = json!({"events": [of_user("u1"), of_user("u2"), event(5, &json!({"team": "t1"})), of_user("u2")]});
    let results = client.post("/api/usage/event/batch", &batch).ok()["results"].clone();
    assert_eq!(results[2]["status"], 422, "{results}");
    assert_eq!(results[2]["code"], "no_matching_line", "{results}");
    assert_eq!(draft(), ["users 2.00", "tokens 2.00"]);
    assert_eq!(books::event(&client, &first)["line_item_ids"], json!(["users", "tokens"]));

    let delete = |event_ref: &Value| assert_eq!(books::delete(&client, event_ref).status, 204);
    delete(&first);
    assert_eq!(draft(), ["users 2.00", "tokens 1.50"]);
    delete(&results[0]["event_ref"]);
    assert_eq!(draft(), ["users 1.00", "tokens 1.00"]);
    let update = |result: usize, labels: Value| {
        books::update(&client, &results[result]["event_ref"], json!({"additional_report_data": labels}))
    };
    update(1, json!({"user": 7.0})).ok();
    assert_eq!(draft(), ["users 2.00", "tokens 1.00"]);
    update(3, json!({"user": "7"})).ok();
    assert_eq!(draft(), ["users 1.00", "tokens 1.00"]);
    assert_eq!(update(3, json!({})).status, 422);
    update(1, json!({"user": "u8"})).ok();
    assert_eq!(draft(), ["users 2.00", "tokens 1.00"]);
    let summary = client.get("/api/usage/summary?interval=month&customer_ref=acme").ok();
    assert_eq!(summary.to_string().matches(r#""quantity":2"#).count(), 1, "{summary}");

    // After the invoice, a new user is a debit, and the last event of a user a credit.
    books::run(&client);
    let late = books::report(&client, &of_user("u9"));
    assert_eq!(books::amounts(&books::numbered(&client, "UB-DBT-1")), ["users 1.00", "tokens 0.50"]);
    delete(&late["event_ref"]);
    delete(&results[1]["event_ref"]);
    assert_eq!(books::amounts(&books::numbered(&client, "UB-CRD-1")), ["users 1.00", "tokens 0.50"]);

    // Reported usage doesn't count by another label.
    client.post("/api/usage/products/edit/tokens", &json!({"unique_by": "team"})).ok();
    let contract = client.get(&format!("/api/contracts/{contract_ref}")).ok();
    let start = &contract["products"][0]["billing_start_date"];
    let reprice =
        json!({"effective_from": start, "products": [{"product_no": 0, "product_pricing_ref": "team", "reprice": true}]});
    let refused = books::edit(&client, &contract_ref, &reprice);
    assert_eq!((refused.status, books::fields(&refused.body, ["code"])[0].as_str()), (409, "usage_already_reported"));
    drop(server);
    binary::verify(database.url()).expect("lawful books");
}

fn what_nothing_prices_is_refused_and_stores_nothing(database: &Database) {
    let (_server, client, _) = stage(database, false);
    let refused = client.post("/api/usage/event", &event(1, &json!({"model": "gpt-6", "kind": "input"})));
    assert_eq!(
        (refused.status, books::fields(&refused.body, ["code"])[0].as_str()),
        (422, "no_matching_line"),
        "{}",
        refused.text
    );
    assert!(refused.text.contains(r#""pointer":"/additional_report_data/model""#), "{}", refused.text);
    assert!(refused.text.contains("prices for gpt-5, gpt-5-mini"), "{}", refused.text);
    assert_eq!(catalog::documents(&client), Vec::<Value>::new());
    let priced = books::report(&client, &event(1, &json!({"model": "gpt-5", "kind": "input"})));
    let unpriced = books::update(&client, &priced["event_ref"], json!({"additional_report_data": null}));
    assert_eq!(
        (unpriced.status, books::fields(&unpriced.body, ["code"])[0].as_str()),
        (422, "no_matching_line"),
        "{}",
        unpriced.text
    );
    assert_eq!(books::event(&client, &priced["event_ref"])["revision"], 1);
}

fn conditions_are_checked_before_anything_is_stored(database: &Database) {
    let (_server, client, _) = stage(database, true);
    let codes = |counts: &[Value]| -> Vec<String> {
        let items: Vec<Value> = counts.iter().enumerate().map(|(n, counts)| line_item(&format!("i{n}"), "1", counts)).collect();
        let body = json!({"product_pricing_ref": "x", "name": "x", "currency": "EUR", "line_items": items});
        let refused = client.post("/api/pricings/", &body);
        assert_eq!(refused.status, 422, "{}", refused.text);
        let errors = refused.body["errors"].as_array().expect("errors").clone();
        errors.iter().map(|error| books::fields(error, ["pointer", "code"]).join(" ")).collect()
    };
    let rows = [
        (vec![json!({"where": {"k": ["a"]}}), json!({"where": {"k": ["b", "a"]}})], "/line_items/1/where overlapping_where"),
        (vec![json!({"where": {"k": ["a"]}}), json!({"where": {"l": ["a"]}})], "/line_items/1/where overlapping_where"),
        (vec![json!({"rest": true}), json!({"rest": true})], "/line_items/1/rest several_rest"),
        (vec![json!({"rest": true, "where": {"k": ["a"]}})], "/line_items/0/where conflicting_fields"),
        (vec![json!({"where": {}})], "/line_items/0/where out_of_range"),
        (vec![json!({"where": {"k": []}})], "/line_items/0/where/k out_of_range"),
        (vec![json!({"where": {"k": [1]}})], "/line_items/0/where/k/0 wrong_type"),
        (vec![json!({"where": {"k": "a"}})], "/line_items/0/where/k wrong_type"),
        (vec![json!({"aggregation": "UNIQUE"})], "/line_items/0/aggregation unique_by_required"),
    ];
    for (counts, expected) in rows {
        assert_eq!(codes(&counts), [expected], "{counts:?}");
    }
    assert_eq!(client.get("/api/pricings/x").status, 404);
}
