//! The main workflow of client software: log in, create a contract, report usage, read the invoice and issue it. The workflow is
//! the same on SQLite and on PostgreSQL.

use acceptance::when::{self, Day};
use acceptance::{Answer, Client, Database, Server, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    usage_lands_on_the_invoice_and_a_killed_server_goes_on_where_it_was,
    a_partial_first_period_is_charged_by_its_days,
    the_next_period_is_shown_without_usage_and_without_a_number,
    a_contract_is_read_back_as_it_was_posted,
    contracts_are_listed_page_by_page_in_the_order_of_their_making,
    documents_are_listed_by_what_they_belong_to,
    an_event_is_read_back_to_the_last_digit,
    the_quantities_of_a_period_are_summed_exactly,
);

/// Returns some fields as text, with numbers as written.
fn fields<const N: usize>(value: &Value, names: [&str; N]) -> [String; N] {
    names.map(|name| match &value[name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

const TOTALS: [&str; 5] = ["sub_total", "total_discount", "total_tax", "total", "amount_due"];

fn totals(document: &Value) -> [String; 5] {
    fields(document, TOTALS)
}

fn report(client: &Client, event: &Value) -> Value {
    client.post("/api/usage/event", event).ok()
}

fn discounted(mut contract: Value) -> Value {
    contract["products"][0]["discount"] = json!(10);
    contract
}

fn usage_lands_on_the_invoice_and_a_killed_server_goes_on_where_it_was(database: &Database) {
    let server = Server::start(database);
    let admin = Client::admin(&server);
    let key = admin.generate_key(&json!({}));
    let client = Client::key(&server, &key);
    catalog::make(&client);
    let contract_ref = catalog::make_contract(&client, &discounted(catalog::contract("acme")));

    let first = client.post("/api/usage/event", &catalog::event("acme", 1500)).ok();
    let names: Vec<&String> = first.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["event_ref", "related_document_ref", "related_document_numbers"]);
    assert_eq!(first["related_document_numbers"], "UB-INV-1");

    let invoice = catalog::current_invoice(&client, &contract_ref);
    assert_eq!(invoice["document_ref"], first["related_document_ref"]);
    assert_eq!(fields(&invoice, ["document_number", "kind", "state", "currency"]), ["UB-INV-1", "INVOICE", "DRAFT", "EUR"]);
    // 49.00 + 10.00 + 45.00 + 5.00, less 10 %, plus 19 % of 98.10.
    assert_eq!(totals(&invoice), ["109.00", "10.90", "18.64", "116.74", "116.74"]);
    let lines = &invoice["products"][0]["line_items"];
    assert_eq!(fields(&lines[0], ["line_item_id", "amount"]), ["platform-fee", "49.00"]);
    assert_eq!(fields(&lines[1], ["line_item_id", "quantity", "unit", "amount"]), ["calls", "1500", "call", "60.00"]);
    assert_eq!(fields(&invoice["taxes"][0], ["rate", "base", "amount"]), ["19", "98.10", "18.64"]);
    let before = client.get(&event_path(&first)).ok();

    server.kill_9();
    let server = Server::start(database);
    let (admin, client) = (admin.at(&server), client.at(&server));

    assert_eq!(client.get(&event_path(&first)).ok(), before, "the token still works, and the event is stored");
    let keys = admin.get("/auth/keys/list").ok();
    assert_eq!(catalog::only(keys)["api_key"], key.api_key, "the cookie still works");
    let second = report(&client, &catalog::event("acme", "500"));
    assert_eq!(second["related_document_ref"], first["related_document_ref"]);
    assert_eq!(second["related_document_numbers"], "UB-INV-1");
    assert_ne!(second["event_ref"], first["event_ref"]);
    // 49.00 + 10.00 + 45.00 + 10.00, less 10 %, plus 19 % of 102.60.
    assert_eq!(totals(&catalog::current_invoice(&client, &contract_ref)), ["114.00", "11.40", "19.49", "122.09", "122.09"]);
    assert_eq!(catalog::documents(&client).len(), 1);
}

fn event_path(result: &Value) -> String {
    format!("/api/usage/event/{}", result["event_ref"].as_str().expect("a reference"))
}

fn a_partial_first_period_is_charged_by_its_days(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    // The contract begins twenty days before the day from which periods are counted: a part of a whole month.
    let anchor = Day::today().plus_days(10);
    let start = anchor.plus_days(-20);
    let mut contract = catalog::contract("acme");
    contract["products"][0]["billing_start_date"] = json!(start.to_string());
    contract["products"][0]["issue_day"] = json!(anchor.to_string());
    let contract_ref = catalog::make_contract(&client, &contract);
    report(&client, &catalog::event("acme", 1500));

    let invoice = catalog::current_invoice(&client, &contract_ref);

    let days = anchor.plus_months(-1).days_until(anchor);
    let fixed = rounded(4900 * 20, days);
    let tax = rounded((fixed + 6000) * 19, 100);
    assert_eq!(fields(&invoice, ["period_start", "is_partial_period"]), [start.to_string(), "true".to_owned()]);
    assert_eq!(invoice["period_end"], anchor.plus_days(-1).to_string());
    let (sub_total, total) = (cents(fixed + 6000), cents(fixed + 6000 + tax));
    assert_eq!(totals(&invoice), [sub_total, "0.00".to_owned(), cents(tax), total.clone(), total]);
}

/// Divides and rounds half up.
fn rounded(numerator: i64, denominator: i64) -> i64 {
    (2 * numerator + denominator).div_euclid(2 * denominator)
}

fn cents(amount: i64) -> String {
    format!("{}.{:02}", amount / 100, amount % 100)
}

fn the_next_period_is_shown_without_usage_and_without_a_number(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let contract_ref = catalog::make_contract(&client, &discounted(catalog::contract("acme")));

    let planned = catalog::current_invoice(&client, &contract_ref);
    assert_eq!((&planned["document_ref"], &planned["document_number"]), (&Value::Null, &Value::Null));
    // 49.00 less 10 %, plus 19 % of 44.10.
    assert_eq!(totals(&planned), ["49.00", "4.90", "8.38", "52.48", "52.48"]);
    assert_eq!(catalog::documents(&client), Vec::<Value>::new(), "a preview opens no document");

    report(&client, &catalog::event("acme", 1500));
    let current = catalog::current_invoice(&client, &contract_ref);
    let next = catalog::only(client.get(&format!("/api/contracts/invoices/next/{contract_ref}")).ok());
    assert_eq!((&next["document_ref"], &next["document_number"]), (&Value::Null, &Value::Null));
    let period_end = Day::parse(current["period_end"].as_str().expect("a date"));
    assert_eq!(next["period_start"], period_end.plus_days(1).to_string());
    assert_eq!(fields(&next["products"][0]["line_items"][1], ["line_item_id", "quantity", "amount"]), ["calls", "0", "0.00"]);
    assert_eq!(totals(&next), totals(&planned));
    assert_eq!(catalog::documents(&client).len(), 1);
}

fn a_contract_is_read_back_as_it_was_posted(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let mut body = discounted(catalog::contract("acme"));
    body["po_number"] = json!("PO 7 / ü");
    let product = &mut body["products"][0];
    product["tax"] = json!("7.125");
    product["net_terms"] = json!(30);
    product["note"] = json!("first line\nsecond line");
    product["line_items"] = json!([{"line_item_id": "calls"}]);
    product["billing_bank_transfer_details"] = json!({"billing_account_id": "account-1"});
    product["billing_online_payment_details"] =
        json!({"auto_charge": true, "payment_gateway_id": "gateway-1", "payment_gateway_card_id": "card-1"});
    product["billing_crypto_details"] = json!({"address": "0xabc", "tokens": ["USDC", "BTC"]});
    let contract_ref = catalog::make_contract(&client, &body);

    let read = client.get(&format!("/api/contracts/{contract_ref}")).ok();

    assert_eq!(
        fields(&read, ["contract_ref", "customer_ref", "po_number", "state"]),
        [&*contract_ref, "acme", "PO 7 / ü", "ACTIVE"]
    );
    let (posted, shown) = (&body["products"][0], &read["products"][0]);
    for (name, value) in posted.as_object().expect("an object") {
        match name.as_str() {
            "tax" => assert_eq!(shown["tax"].to_string(), "7.125"),
            // The line items are returned as agreed, with their prices.
            "line_items" => assert_eq!(shown[name][0]["line_item_id"], value[0]["line_item_id"]),
            _ => assert_eq!(&shown[name], value, "{name}"),
        }
    }
    let mut posted_back = json!({"customer_ref": "acme", "products": read["products"]});
    posted_back["products"][0]["billing_start_date"] = shown["billing_start_date"].clone();
    catalog::make_contract(&client, &posted_back);
}

fn contracts_are_listed_page_by_page_in_the_order_of_their_making(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    catalog::make_customer(&client, "globex");
    let made: Vec<String> = (0..5).map(|_| catalog::make_contract(&client, &catalog::contract("acme"))).collect();
    let other = catalog::make_contract(&client, &catalog::contract("globex"));
    let page = |query: &str| client.get(&format!("/api/contracts/filter?{query}"));
    let refs = |answer: Answer| -> Vec<Value> {
        answer.ok().as_array().expect("a bare array").iter().map(|contract| contract["contract_ref"].clone()).collect()
    };

    let first = page("customer_ref=acme&pageSize=2&pageNumber=0");
    assert_eq!(first.header("X-Total-Count"), "5");
    assert!(first.header("Link").contains("pageNumber=1"), "{}", first.header("Link"));
    assert_eq!(refs(first), made[0..2]);
    assert_eq!(refs(page("customer_ref=acme&pageSize=2&pageNumber=1")), made[2..4]);
    assert_eq!(refs(page("customer_ref=acme&pageSize=2&pageNumber=2")), made[4..5]);
    assert_eq!(refs(page("customer_ref=acme&pageSize=2&pageNumber=3")), Vec::<Value>::new());
    assert_eq!(refs(page("customer_ref=acme&pageSize=1000&pageNumber=0")), made);
    assert_eq!(refs(page("customer_ref=globex&pageSize=20&pageNumber=0")), [other]);
    assert_eq!(refs(page("customer_ref=nobody&pageSize=20&pageNumber=0")), Vec::<Value>::new());
}

fn documents_are_listed_by_what_they_belong_to(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let second_entity = json!({"entity_ref": "second", "name": "Second", "number_prefix": "SEC"});
    client.post("/api/entities/", &second_entity).ok();
    client.post("/api/customers/", &json!({"customer_ref": "globex", "name": "Globex", "entity_ref": "second"})).ok();
    let contracts = ["acme", "globex"].map(|customer| catalog::make_contract(&client, &catalog::contract(customer)));
    let results = ["acme", "globex"].map(|customer| report(&client, &catalog::event(customer, 1)));
    assert_eq!(results[0]["related_document_numbers"], "UB-INV-1");
    assert_eq!(results[1]["related_document_numbers"], "SEC-INV-1");

    let numbers = |query: &str| -> Vec<String> {
        let listed = client.get(&format!("/api/documents/filter?{query}")).ok();
        let numbers = listed.as_array().expect("a bare array").iter().map(|document| document["document_number"].clone());
        numbers.map(|number| number.as_str().expect("a number").to_owned()).collect()
    };
    let today = Day::today();
    let (both, acme, globex, none) = (["UB-INV-1", "SEC-INV-1"], ["UB-INV-1"], ["SEC-INV-1"], [""; 0]);
    assert_eq!(numbers(""), both);
    assert_eq!(numbers("customer_ref=acme"), acme);
    assert_eq!(numbers(&format!("contract_ref={}", contracts[1])), globex);
    assert_eq!(numbers("entity_ref=second"), globex);
    assert_eq!(numbers("kind=INVOICE&state=DRAFT"), both);
    assert_eq!(numbers("kind=CREDIT"), none);
    assert_eq!(numbers("state=ISSUED"), none);
    assert_eq!(numbers("customer_ref=nobody"), none);
    assert_eq!(numbers("pageSize=1&pageNumber=1"), globex);
    // The filter uses the first day of the period, which began ten days ago.
    assert_eq!(numbers(&format!("from={}&to={today}", today.plus_days(-12))), both);
    assert_eq!(numbers(&format!("from={}", today.plus_days(1))), none);

    let document_ref = results[0]["related_document_ref"].as_str().expect("a reference");
    let document = client.get(&format!("/api/documents/{document_ref}")).ok();
    assert_eq!(document, catalog::current_invoice(&client, &contracts[0]), "previews show the stored document");
    assert_eq!(document["customer"]["customer_ref"], "acme");
    assert_eq!(document["contract_ref"], json!(contracts[0]));
}

fn an_event_is_read_back_to_the_last_digit(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    catalog::make_contract(&client, &catalog::contract("acme"));
    let body = r#"{"timestamp": "TIME", "customer_ref": "acme", "usage_product_ref": "api-calls",
        "quantity": 12345678901234.000001,
        "additional_report_data": {"zone": "eu", "a": 0.10, "B": true, "nothing": null, "text": "żółć 🦀"},
        "validations": {"currency": "EUR"}}"#;
    let at = Day::today().plus_days(-1);
    let body: Value = serde_json::from_str(&body.replace("TIME", &format!("{at}T23:30:00.250+02:00"))).expect("JSON");

    let result = report(&client, &body);
    let event = client.get(&event_path(&result)).ok();

    assert_eq!(event["quantity"].to_string(), "12345678901234.000001");
    let data = r#"{"zone":"eu","a":0.10,"B":true,"nothing":null,"text":"żółć 🦀"}"#;
    assert_eq!(event["additional_report_data"].to_string(), data);
    let timestamp = event["timestamp"].as_str().expect("a string");
    assert!(timestamp.starts_with(&format!("{at}T21:30:00.25")) && timestamp.ends_with('Z'), "in UTC: {timestamp}");
    assert_eq!(fields(&event, ["customer_ref", "customer_name"]), ["acme", "acme Ltd"]);
    assert_eq!(fields(&event, ["usage_product_ref", "usage_product_name"]), ["api-calls", "API calls"]);
    assert_eq!(fields(&event, ["document_state", "revision"]), ["DRAFT", "1"]);
    assert_eq!(
        fields(&event, ["event_ref", "related_document_ref", "related_document_numbers"]),
        fields(&result, ["event_ref", "related_document_ref", "related_document_numbers"])
    );
    assert!(event.get("related_parent_document_ref").is_none_or(Value::is_null), "only with DUE_UPON_USAGE");
}

fn the_quantities_of_a_period_are_summed_exactly(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let contract_ref = catalog::make_contract(&client, &catalog::contract("acme"));
    // These numbers don't add up as floats.
    for quantity in ["0.1", "0.2", "0.000000001", "99999999999999", "0"] {
        let mut event = catalog::event("acme", quantity);
        event["timestamp"] = json!(when::in_seconds(-60));
        report(&client, &event);
    }
    let number = serde_json::from_str::<Value>(r#"{"n": 1e3}"#).expect("JSON");
    report(&client, &catalog::event("acme", number["n"].clone()));

    let line = catalog::current_invoice(&client, &contract_ref)["products"][0]["line_items"][1].clone();

    assert_eq!(fields(&line, ["line_item_id", "quantity"]), ["calls", "100000000000999.300000001"]);
    // 10.00 + 45.00 + 0.01 for each call beyond the first thousand, rounded once.
    assert_eq!(line["amount"].to_string(), "1000000000054.99");
}
