//! Prices, from the posted catalog to the invoice: every pricing model, every aggregation, currencies, and the contract that an
//! event belongs to.

use acceptance::problem::{Table, invalid};
use acceptance::when::{self, Day};
use acceptance::{Client, Database, Server, catalog, on_both_databases, on_sqlite};
use serde_json::{Value, json};

on_both_databases!(
    quantities_become_one_as_the_usage_product_says,
    a_contract_keeps_the_prices_it_was_made_with,
    of_several_contracts_the_latest_start_counts_unless_validations_say_otherwise,
);
on_sqlite!(every_price_model_bills_what_the_rules_say, what_can_not_be_rated_is_named,);

fn stage(database: &Database) -> (Server, Client) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make_customer(&client, "acme");
    (server, client)
}

fn usage_product(client: &Client, reference: &str, aggregation: &str) {
    let body = json!({"usage_product_ref": reference, "name": reference, "unit": "piece", "aggregation": aggregation});
    client.post("/api/usage/products/", &body).ok();
}

fn usage_item(id: &str, usage_product: &str, price: Value) -> Value {
    json!({"line_item_id": id, "name": id, "kind": "USAGE", "usage_product_ref": usage_product, "price": price})
}

fn fixed_item(id: &str, recurrence: &str, amount: &str) -> Value {
    let price = json!({"model": "FLAT", "amount": amount});
    json!({"line_item_id": id, "name": id, "kind": "FIXED", "recurrence": recurrence, "price": price})
}

fn pricing(client: &Client, reference: &str, currency: &str, line_items: &[Value]) {
    let body = json!({"product_pricing_ref": reference, "name": reference, "currency": currency, "line_items": line_items});
    client.post("/api/pricings/", &body).ok();
}

/// Returns the body of a contract with some pricings, without tax, over a year that began ten days ago.
fn contract(pricings: &[&str]) -> Value {
    let product = catalog::contract("acme")["products"][0].clone();
    let products = pricings.iter().map(|pricing| {
        let mut product = product.clone();
        product["product_pricing_ref"] = json!(pricing);
        product["tax"] = json!(0);
        product
    });
    json!({"customer_ref": "acme", "products": products.collect::<Vec<_>>()})
}

fn report(client: &Client, usage_product: &str, quantity: &str) -> Value {
    report_at(client, usage_product, quantity, &when::now())
}

fn report_at(client: &Client, usage_product: &str, quantity: &str, timestamp: &str) -> Value {
    let event = json!({"timestamp": timestamp, "customer_ref": "acme", "usage_product_ref": usage_product, "quantity": quantity});
    client.post("/api/usage/event", &event).ok()
}

/// Returns the lines of a document as `id quantity amount`.
fn lines(document: &Value) -> Vec<String> {
    let products = document["products"].as_array().expect("products").iter();
    let lines = products.flat_map(|product| product["line_items"].as_array().expect("lines").clone());
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    lines.map(|line| format!("{} {} {}", text(&line["line_item_id"]), line["quantity"], line["amount"])).collect()
}

fn every_price_model_bills_what_the_rules_say(database: &Database) {
    let (_server, client) = stage(database);
    let tiers = json!([
        {"up_to": 100, "unit_price": "0.10"},
        {"up_to": 1000, "unit_price": "0.05", "flat_amount": 2},
        {"unit_price": "0.01"},
    ]);
    let with = |mut item: Value, field: &str, value: Value| {
        item[field] = value;
        item
    };
    let per_unit = json!({"model": "PER_UNIT", "unit_price": "0.0025"});
    let percentage = json!({"model": "PERCENTAGE", "rate": "2.5", "fixed_amount": "0.30"});
    let items = [
        fixed_item("flat", "EACH_PERIOD", "9.99"),
        fixed_item("once", "ONCE", "100"),
        usage_item("graduated", "used", json!({"model": "GRADUATED", "tiers": tiers})),
        usage_item("volume", "used", json!({"model": "VOLUME", "tiers": tiers})),
        usage_item("package", "used", json!({"model": "PACKAGE", "package_size": 1000, "package_price": 5})),
        usage_item("per-unit", "used", per_unit.clone()),
        usage_item("percentage", "used", percentage),
        with(usage_item("included", "used", per_unit.clone()), "included_quantity", json!(1000)),
        with(usage_item("at-least", "used", per_unit.clone()), "minimum_amount", json!("5.00")),
        with(usage_item("at-most", "used", per_unit), "maximum_amount", json!("3.00")),
    ];
    usage_product(&client, "used", "SUM");
    pricing(&client, "all", "EUR", &items);
    let contract_ref = catalog::make_contract(&client, &contract(&["all"]));
    report(&client, "used", "1499");
    report(&client, "used", "0.5");
    report(&client, "used", "0.5");

    let invoice = catalog::current_invoice(&client, &contract_ref);

    let expected = [
        "flat null 9.99",
        "once null 100.00",
        // 10.00 + 45.00 + 2.00 + 5.00.
        "graduated 1500 62.00",
        "volume 1500 15.00",
        "package 1500 10.00",
        // 1500 x 0.0025.
        "per-unit 1500 3.75",
        // 2.5 % of 1500, plus 0.30 for each of three events.
        "percentage 1500 38.40",
        // 500 x 0.0025, half a cent rounded up.
        "included 1500 1.25",
        "at-least 1500 5.00",
        "at-most 1500 3.00",
    ];
    let shown: Vec<String> = lines(&invoice).iter().map(|line| line.replace(".0 ", " ")).collect();
    assert_eq!(shown, expected);
    assert_eq!(invoice["total"].to_string(), "248.39");
    // The rates without a contract, for the whole quantity in a single event.
    let rates = client.get("/api/pricings/rates/all?quantity=0,1500").ok();
    let rated = rates[1]["line_items"].as_array().expect("line items").iter();
    let rated: Vec<String> =
        rated.map(|item| format!("{} 1500 {}", item["line_item_id"].as_str().expect("an id"), item["amount"])).collect();
    let of_usage: Vec<String> = expected[2..].iter().map(|line| line.replace("38.40", "37.80")).collect();
    assert_eq!(rated, of_usage);
    assert_eq!(
        (rates[0]["quantity"].to_string(), rates[0]["line_items"][0]["amount"].to_string()),
        ("0".to_owned(), "0.00".to_owned())
    );
    let mut unsaved = json!({"name": "unsaved", "currency": "EUR", "line_items": items, "quantities": [0, 1500]});
    assert_eq!(client.post("/api/pricings/rates", &unsaved).ok(), rates, "a pricing that is not stored has the same rates");
    assert_eq!(client.get("/api/pricings/filter").ok().as_array().map(Vec::len), Some(1), "nothing is stored");
    unsaved["line_items"][2]["usage_product_ref"] = json!("unknown");
    let refused = client.post("/api/pricings/rates", &unsaved);
    let pointer = &refused.body["errors"][0]["pointer"];
    assert_eq!((refused.status, pointer), (422, &json!("/line_items/2/usage_product_ref")), "{}", refused.text);
    let next = catalog::only(client.get(&format!("/api/contracts/invoices/next/{contract_ref}")).ok());
    assert!(!lines(&next).iter().any(|line| line.starts_with("once") && !line.ends_with(" 0.00")), "{next}");
}

fn what_can_not_be_rated_is_named(database: &Database) {
    let (_server, client) = stage(database);
    usage_product(&client, "used", "SUM");
    let dear = json!({"model": "PER_UNIT", "unit_price": "999999999.999999999999"});
    pricing(&client, "dear", "EUR", &[usage_item("dear", "used", dear)]);
    let mut table = Table::default();
    let many = vec!["1"; 201].join(",");
    for (path, expected) in [
        ("/api/pricings/rates/dear", invalid("/quantity required")),
        ("/api/pricings/rates/dear?quantity=", invalid("/quantity invalid_format")),
        ("/api/pricings/rates/dear?quantity=1,-2", invalid("/quantity invalid_format")),
        ("/api/pricings/rates/dear?quantity=1;2", invalid("/quantity invalid_format")),
        (&format!("/api/pricings/rates/dear?quantity={many}"), invalid("/quantity too_many")),
    ] {
        table.get(&client, path, expected);
    }
    table.finish();
    let beyond = client.get("/api/pricings/rates/dear?quantity=999999999999999");
    assert_eq!((beyond.status, beyond.text_of("code").as_str()), (422, "amount_out_of_range"));
    let unknown = client.get("/api/pricings/rates/nothing?quantity=1");
    assert_eq!((unknown.status, unknown.text_of("code").as_str()), (404, "pricing_not_found"));
}

fn quantities_become_one_as_the_usage_product_says(database: &Database) {
    let (_server, client) = stage(database);
    let one = json!({"model": "PER_UNIT", "unit_price": 1});
    let aggregations = ["SUM", "COUNT", "MAX", "LATEST"];
    for aggregation in aggregations {
        usage_product(&client, &aggregation.to_lowercase(), aggregation);
    }
    let items = aggregations.map(|aggregation| usage_item(aggregation, &aggregation.to_lowercase(), one.clone()));
    pricing(&client, "all", "EUR", &items);
    let contract_ref = catalog::make_contract(&client, &contract(&["all"]));
    // The third event has the latest timestamp. Of two events at the same instant, the event that arrived last counts.
    let quantities = [("7", -50), ("9", -40), ("5", -10), ("3", -10), ("8", -20)];
    for (quantity, ago) in quantities {
        for aggregation in aggregations {
            report_at(&client, &aggregation.to_lowercase(), quantity, &when::in_seconds(ago));
        }
    }

    let invoice = catalog::current_invoice(&client, &contract_ref);

    assert_eq!(lines(&invoice), ["SUM 32 32.00", "COUNT 5 5.00", "MAX 9 9.00", "LATEST 3 3.00"]);
}

fn a_contract_keeps_the_prices_it_was_made_with(database: &Database) {
    let (_server, client) = stage(database);
    catalog::make_plan(&client);
    let kept = catalog::make_contract(&client, &contract(&[catalog::API_PLAN]));
    report(&client, catalog::API_CALLS, "1500");
    let before = catalog::current_invoice(&client, &kept);
    let mut plan = catalog::plan(catalog::API_PLAN, catalog::API_CALLS);
    plan["name"] = json!("Dearer");
    plan["line_items"][0]["price"]["amount"] = json!("99.00");
    plan["line_items"][1]["line_item_id"] = json!("calls-2");

    client.post("/api/pricings/edit/api-plan", &plan).ok();
    client.post("/api/usage/products/edit/api-calls", &json!({"unit": "request", "aggregation": "MAX"})).ok();

    assert_eq!(catalog::current_invoice(&client, &kept), before);
    report(&client, catalog::API_CALLS, "500");
    assert_eq!(lines(&catalog::current_invoice(&client, &kept)), ["platform-fee null 49.00", "calls 2000 65.00"]);
    let new = catalog::make_contract(&client, &contract(&[catalog::API_PLAN]));
    assert_eq!(lines(&catalog::current_invoice(&client, &new)), ["platform-fee null 99.00", "calls-2 0 0.00"]);
}

fn of_several_contracts_the_latest_start_counts_unless_validations_say_otherwise(database: &Database) {
    let (_server, client) = stage(database);
    usage_product(&client, "used", "SUM");
    for currency in ["EUR", "USD", "GBP"] {
        pricing(&client, currency, currency, &[usage_item("used", "used", json!({"model": "PER_UNIT", "unit_price": 1}))]);
    }
    let starting = |currency: &str, days: i64| {
        let mut body = contract(&[currency]);
        let start = Day::today().plus_days(-days);
        body["products"][0]["billing_start_date"] = json!(start.to_string());
        body["products"][0]["issue_day"] = json!(start.to_string());
        catalog::make_contract(&client, &body)
    };
    let (latest, earliest, twin) = (starting("USD", 5), starting("EUR", 9), starting("GBP", 5));
    let document = |validations: Option<Value>| {
        let mut event = json!({"timestamp": when::now(), "customer_ref": "acme", "usage_product_ref": "used", "quantity": 1});
        event["validations"] = validations.unwrap_or(Value::Null);
        let document_ref = client.post("/api/usage/event", &event).ok()["related_document_ref"].clone();
        client.get(&format!("/api/documents/{}", document_ref.as_str().expect("a reference"))).ok()["contract_ref"].clone()
    };

    assert_eq!(document(None), json!(latest), "of two contracts with the same start, the oldest one");
    assert_eq!(document(Some(json!({"currency": "EUR"}))), json!(earliest));
    assert_eq!(document(Some(json!({"currency": "GBP"}))), json!(twin));
    assert_eq!(document(Some(json!({}))), json!(latest));
}
