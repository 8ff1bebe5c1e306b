//! A small catalog, created over HTTP: the API plan of billing rules 6 and customers with this plan.

use serde_json::{Value, json};

use crate::when::Day;
use crate::{Client, Database, Server};

/// The usage product of the API plan.
pub const API_CALLS: &str = "api-calls";
/// The pricing: 49.00 EUR for the platform, and API calls in the graduated tiers of billing rules 6.
pub const API_PLAN: &str = "api-plan";
/// A customer who pays 19 % tax.
pub const ACME: &str = "acme";

/// Starts a server, creates the API plan and its customer, and returns the server and a client with an API key.
pub fn stage(database: &Database) -> (Server, Client) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    make(&client);
    (server, client)
}

/// Starts a server like [`stage`], creates a contract and also returns the reference of the contract.
pub fn stage_with(database: &Database, contract: &Value) -> (Server, Client, String) {
    let (server, client) = stage(database);
    let contract_ref = make_contract(&client, contract);
    (server, client, contract_ref)
}

/// Creates the API plan and its customer.
pub fn make(client: &Client) {
    make_plan(client);
    make_customer(client, ACME);
}

/// Creates the API plan.
///
/// # Panics
/// Panics if the server rejects a request.
pub fn make_plan(client: &Client) {
    let usage_product = json!({"usage_product_ref": API_CALLS, "name": "API calls", "unit": "call"});
    client.post("/api/usage/products/", &usage_product).ok();
    client.post("/api/pricings/", &plan(API_PLAN, API_CALLS)).ok();
}

/// Returns the body of a pricing that is like the API plan.
pub fn plan(pricing: &str, usage_product: &str) -> Value {
    json!({
        "product_pricing_ref": pricing,
        "name": "API plan",
        "currency": "EUR",
        "line_items": [
            {"line_item_id": "platform-fee", "name": "Platform fee", "kind": "FIXED", "price": {
                "model": "FLAT", "amount": "49.00",
            }},
            {"line_item_id": "calls", "name": "API calls", "kind": "USAGE", "usage_product_ref": usage_product, "price": {
                "model": "GRADUATED",
                "tiers": [{"up_to": 100, "unit_price": "0.10"}, {"up_to": 1000, "unit_price": "0.05"}, {"unit_price": "0.01"}],
            }},
        ],
    })
}

/// Creates a customer who pays 19 % tax.
///
/// # Panics
/// Panics if the server rejects the customer.
pub fn make_customer(client: &Client, customer: &str) {
    client.post("/api/customers/", &json!({"customer_ref": customer, "name": format!("{customer} Ltd"), "tax": 19})).ok();
}

/// Returns the body of a contract of the API plan over a year of whole months. The first month began ten days ago.
pub fn contract(customer: &str) -> Value {
    let start = Day::today().plus_days(-10);
    json!({"customer_ref": customer, "products": [{
        "product_pricing_ref": API_PLAN,
        "billing_start_date": start.to_string(),
        "billing_end_date": start.plus_months(12).plus_days(-1).to_string(),
        "issue_day": start.to_string(),
    }]})
}

/// Returns the body of a contract of the API plan with one period, which ended ten days ago.
pub fn past_contract(customer: &str) -> Value {
    let today = Day::today();
    json!({"customer_ref": customer, "products": [{
        "product_pricing_ref": API_PLAN,
        "billing_start_date": today.plus_days(-40).to_string(),
        "billing_end_date": today.plus_days(-10).to_string(),
        "billing_cycle": {"unit": "ONE_TIME", "cycle": 1},
    }]})
}

/// Creates a contract and returns its reference.
///
/// # Panics
/// Panics if the server rejects the contract.
pub fn make_contract(client: &Client, body: &Value) -> String {
    let answer = client.post("/api/contracts/", body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.text_of("contract_ref")
}

/// Returns the body of an event of API calls that happens now.
pub fn event(customer: &str, quantity: impl Into<Value>) -> Value {
    let (now, quantity) = (crate::when::now(), quantity.into());
    json!({"timestamp": now, "customer_ref": customer, "usage_product_ref": API_CALLS, "quantity": quantity})
}

/// Returns the only document of a contract in its current period.
///
/// # Panics
/// Panics unless exactly one document exists.
#[track_caller]
pub fn current_invoice(client: &Client, contract_ref: &str) -> Value {
    only(client.get(&format!("/api/contracts/invoices/current/{contract_ref}")).ok())
}

/// Returns every document of the organization.
///
/// # Panics
/// Panics if the server does not list the documents.
pub fn documents(client: &Client) -> Vec<Value> {
    let mut documents = Vec::new();
    for page in 0.. {
        let answer = client.get(&format!("/api/documents/filter?pageSize=1000&pageNumber={page}")).ok();
        let of_page = answer.as_array().expect("a list");
        documents.extend_from_slice(of_page);
        if of_page.is_empty() {
            break;
        }
    }
    documents
}

/// Returns the numbers of documents in a series as integers, in ascending order.
///
/// # Panics
/// Panics if a document has no number of the series.
pub fn numbers(documents: &[Value], series: &str) -> Vec<u64> {
    let number = |document: &Value| {
        let text = document["document_number"].as_str().unwrap_or_default();
        let counted = text.strip_prefix(series).and_then(|rest| rest.strip_prefix('-'));
        counted.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("{text:?} is not a number of {series}"))
    };
    let mut numbers: Vec<u64> = documents.iter().map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// Returns the only element of a list.
///
/// # Panics
/// Panics unless the list has exactly one element.
#[track_caller]
pub fn only(list: Value) -> Value {
    match list {
        Value::Array(mut elements) if elements.len() == 1 => elements.remove(0),
        other => panic!("expected one element, found {other}"),
    }
}

/// Returns the body of an event of API calls at noon of a day.
pub fn event_on(customer: &str, day: Day, quantity: impl Into<Value>) -> Value {
    let mut event = event(customer, quantity);
    event["timestamp"] = json!(day.noon());
    event
}

/// Creates a pricing in EUR with these line items.
///
/// # Panics
/// Panics if the server rejects the pricing.
#[track_caller]
pub fn make_pricing(client: &Client, pricing: &str, line_items: &Value) {
    let body = json!({"product_pricing_ref": pricing, "name": pricing, "currency": "EUR", "line_items": line_items});
    client.post("/api/pricings/", &body).ok();
}

/// Returns a line item that costs the same in every period.
pub fn fixed(line_item: &str, amount: &str) -> Value {
    json!({"line_item_id": line_item, "name": line_item, "kind": "FIXED", "price": {"model": "FLAT", "amount": amount}})
}

/// Returns a line item of API calls.
pub fn calls(price: &Value) -> Value {
    json!({"line_item_id": "calls", "name": "API calls", "kind": "USAGE", "usage_product_ref": API_CALLS, "price": price})
}

/// Returns a product over whole months: `over` past months, the month that began ten days ago and `to_come` future
/// months.
pub fn months(pricing: &str, over: i64, to_come: i64) -> Value {
    let current = Day::today().plus_days(-10);
    let start = current.plus_months(-over);
    json!({
        "product_pricing_ref": pricing,
        "billing_start_date": start.to_string(),
        "billing_end_date": start.plus_months(over + 1 + to_come).plus_days(-1).to_string(),
        "issue_day": start.to_string(),
    })
}

/// Returns a product with one period, which ended ten days ago.
pub fn ended(pricing: &str) -> Value {
    let mut product = past_contract(ACME)["products"][0].clone();
    product["product_pricing_ref"] = json!(pricing);
    product
}

/// Returns an object with some of its fields set.
///
/// # Panics
/// Panics if either value is not an object.
#[must_use]
pub fn with(mut object: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().expect("fields") {
        object[name] = value.clone();
    }
    object
}

/// Creates a contract of acme with these products.
///
/// # Panics
/// Panics if the server rejects the contract.
#[track_caller]
pub fn sell(client: &Client, products: &[Value]) -> String {
    make_contract(client, &json!({"customer_ref": ACME, "products": products}))
}
