//! One request for every POST operation that runs once per key. Each request uses its own objects, so that requests don't
//! interfere.

use std::fmt::Write as _;

use acceptance::{Client, books, catalog, when};
use serde_json::{Value, json};

/// A request that succeeds once.
pub(crate) struct Post {
    /// The path in the OpenAPI document.
    pub(crate) operation: &'static str,
    /// The path of the request.
    pub(crate) path: String,
    /// The body; `None` for operations without a body.
    pub(crate) body: Option<Value>,
    /// Another valid body.
    pub(crate) other: Option<Value>,
    /// Whether the request requires an administrator.
    pub(crate) is_admins: bool,
    /// The list that gains one element.
    pub(crate) adds_to: Option<String>,
}

impl Post {
    fn new(operation: &'static str, body: Value, other: Value) -> Self {
        let (body, other) = (Some(body), Some(other));
        Self { operation, path: operation.to_owned(), body, other, is_admins: false, adds_to: None }
    }

    /// Sets the reference in the path.
    fn to(mut self, reference: &str) -> Self {
        let (path, _) = self.operation.rsplit_once('/').expect("a path");
        self.path = format!("{path}/{reference}");
        self
    }

    fn without_body(self) -> Self {
        Self { body: None, other: None, ..self }
    }

    fn adding_to(self, list: &str) -> Self {
        Self { adds_to: Some(list.to_owned()), ..self }
    }
}

/// Creates a customer with a contract of its own. Returns the contract.
fn contract_of(client: &Client, customer: &str) -> String {
    catalog::make_customer(client, customer);
    catalog::make_contract(client, &catalog::contract(customer))
}

/// Creates a draft with an event. Returns the event and the document.
fn draft_of(client: &Client, customer: &str) -> (String, String) {
    contract_of(client, customer);
    let event = books::report(client, &catalog::event(customer, 200));
    let text = |field: &str| event[field].as_str().expect("a reference").to_owned();
    (text("event_ref"), text("related_document_ref"))
}

fn issued_of(client: &Client, customer: &str) -> String {
    let (_, document_ref) = draft_of(client, customer);
    books::issue(client, &json!(document_ref)).ok();
    document_ref
}

/// A document with a payment.
struct Paid {
    document_ref: String,
    payment_ref: String,
    application_ref: String,
}

impl Paid {
    fn of(client: &Client, customer: &str, payment: &Value) -> Self {
        let document_ref = issued_of(client, customer);
        let paid = books::pay(client, &json!(document_ref), payment).ok();
        let text = |field: &str| paid["applications"][0][field].as_str().expect("a reference").to_owned();
        Self { payment_ref: text("from_payment_ref"), application_ref: text("application_ref"), document_ref }
    }

    fn part(client: &Client, customer: &str) -> Self {
        Self::of(client, customer, &json!({"amount": 5}))
    }

    fn too_much(client: &Client, customer: &str) -> Self {
        Self::of(client, customer, &json!({"amount": 5_000, "overpayment": true}))
    }

    fn to_itself(&self, amount: u32) -> Value {
        json!({"document_ref": self.document_ref, "amount": amount})
    }
}

/// The customer of formatted events. Keys of events are stored per customer, so formatted events have their own customer.
const FORMATTED: &str = "formatted";

/// Returns a mapping of events such as [`raw`].
fn mapping() -> Value {
    let usage_product = json!(catalog::API_CALLS).to_string();
    json!({
        "timestamp": "event.at",
        "customer_ref": "event.who",
        "usage_product_ref": usage_product,
        "quantity": "event.much",
    })
}

fn raw(quantity: u32) -> Value {
    json!({"at": when::now(), "who": FORMATTED, "much": quantity})
}

/// Returns the requests that only an owner can send.
fn admins_posts(admin: &Client) -> Vec<Post> {
    let (keys, administrators) = ("/auth/keys/list", "/api/administrators/filter");
    let rotated = admin.generate_key(&json!({})).api_key_ref;
    // E-mail addresses are unique in the installation, and the reference of a key makes them unique.
    let invitation = |name: &str| json!({"email": format!("{name}-{rotated}@example.com"), "role": "read"});
    let invited = |name: &str| admin.post("/api/administrators/", &invitation(name)).text_of("admin_ref");
    let rotation = |hours: u32| json!({"overlap_hours": hours});
    let (resets, role) = (|removes: bool| json!({"remove_second_factor": removes}), |role: &str| json!({"role": role}));
    let posts = [
        Post::new("/auth/keys/generate", json!({"name": "gateway"}), json!({"name": "meter"})).adding_to(keys),
        Post::new("/auth/keys/rotate/{api_key_ref}", rotation(1), rotation(2)).to(&rotated).adding_to(keys),
        Post::new("/api/administrators/", invitation("one"), invitation("other")).adding_to(administrators),
        Post::new("/api/administrators/edit/{admin_ref}", role("finance"), role("operator")).to(&invited("edited")),
        Post::new("/api/administrators/reset/{admin_ref}", resets(false), resets(true)).to(&invited("reset")),
    ];
    posts.into_iter().map(|post| Post { is_admins: true, ..post }).collect()
}

/// Returns the requests of usage formats, and of events in other shapes than the default.
fn format_posts(client: &Client) -> Vec<Post> {
    contract_of(client, FORMATTED);
    for (format_ref, format_name) in [("log", "Log"), ("edited", "Edited")] {
        let format = json!({"format_ref": format_ref, "format_name": format_name, "mapping": mapping()});
        client.post("/api/usage/formats/", &format).ok();
    }
    let event = client.post("/api/usage/event/formatted", &json!({"format_name": "Log", "event": raw(3)})).ok();
    let [first, second] = [4, 5].map(|quantity| json!({"format_name": "Log", "event": raw(quantity)}));
    let [one, other] = [6, 7].map(|quantity| json!({"event_ref": event["event_ref"], "event": raw(quantity)}));
    let [batch, other_batch] = [8, 9].map(|quantity| json!({"events": [catalog::event(catalog::ACME, quantity)]}));
    let made = json!({"format_name": "Made", "mapping": mapping()});
    let other_made = json!({"format_name": "Made otherwise", "mapping": mapping()});
    let [file, other_file] = [10, 11].map(|quantity| {
        let key = json!({"idempotency_key": format!("file/{quantity}")});
        json!([catalog::with(catalog::event(catalog::ACME, quantity), &key)])
    });
    vec![
        Post::new("/api/usage/event/batch", batch, other_batch),
        Post::new("/api/usage/import", file, other_file),
        Post::new("/api/usage/event/formatted", first.clone(), second.clone()),
        Post::new("/api/usage/event/formatted/update", one, other),
        Post::new("/api/usage/formats/", made, other_made).adding_to("/api/usage/formats/filter"),
        Post::new(
            "/api/usage/formats/edit/{format_ref}",
            json!({"format_name": "Renamed"}),
            json!({"format_name": "Renamed otherwise"}),
        )
        .to("edited"),
    ]
}

/// Returns the requests of webhook endpoints. No server listens at their URLs.
fn webhook_posts(client: &Client) -> Vec<Post> {
    let endpoint = |enabled: bool| json!({"url": "http://127.0.0.1:9/hooks", "enabled": enabled});
    let made = |enabled: bool| client.post("/api/webhooks/endpoints/", &endpoint(enabled)).text_of("endpoint_ref");
    let (described, hours) = (|text: &str| json!({"description": text}), |hours: u32| json!({"overlap_hours": hours}));
    let again = |after: u32| json!({"after": after, "only": "FAILED"});
    vec![
        Post::new("/api/webhooks/endpoints/", endpoint(false), endpoint(true)).adding_to("/api/webhooks/endpoints/filter"),
        Post::new("/api/webhooks/endpoints/edit/{endpoint_ref}", described("one"), described("other")).to(&made(false)),
        Post::new("/api/webhooks/endpoints/rotate/{endpoint_ref}", hours(1), hours(2)).to(&made(false)),
        Post::new("/api/webhooks/endpoints/test/{endpoint_ref}", Value::Null, Value::Null).to(&made(false)).without_body(),
        Post::new("/api/webhooks/endpoints/replay/{endpoint_ref}", again(0), again(1)).to(&made(true)),
    ]
}

/// Returns the request of every operation, in an organization that has only an entity.
#[expect(clippy::too_many_lines, reason = "one table or story")]
pub(crate) fn posts(client: &Client, admin: &Client) -> Vec<Post> {
    catalog::make(client);
    client.post("/api/entities/", &json!({"entity_ref": "edited", "name": "Edited", "number_prefix": "EDITED"})).ok();
    catalog::make_contract(client, &catalog::contract(catalog::ACME));
    let (edited, cancelled) = (contract_of(client, "edited"), contract_of(client, "cancelled"));
    let (resumed, counted) = (contract_of(client, "resumed"), contract_of(client, "counted"));
    let charged = contract_of(client, "charged");
    client.post(&format!("/api/contracts/cancel/{resumed}"), &json!({})).ok();
    let (event_ref, _) = draft_of(client, "updated");
    let (_, draft) = draft_of(client, "issued");
    let (voided, paid) = (issued_of(client, "voided"), issued_of(client, "paid"));
    let [bounced, unapplied, applied] = ["bounced", "unapplied", "applied"].map(|customer| Paid::part(client, customer));
    let refunded = Paid::too_much(client, "refunded");
    books::unapply(client, &json!(applied.application_ref)).ok();
    let given_up = issued_of(client, "given-up");
    let line = catalog::with(catalog::event(catalog::ACME, 1), &json!({"idempotency_key": "imported/1"}));
    let imported = client.post("/api/usage/import", &json!([line])).ok()["import_ref"].as_str().expect("a reference").to_owned();
    catalog::make_customer(client, "past");
    catalog::make_contract(client, &catalog::past_contract("past"));
    let account = |id: &str| json!({"billing_account_id": id, "iban": "DE89370400440532013000"});
    client.post("/api/bank_accounts/", &account("edited")).ok();
    let rate = |rate: &str| json!({"from": "USD", "to": "EUR", "date": "2026-01-31", "rate": rate});
    let renamed = || (json!({"name": "Renamed"}), json!({"name": "Renamed otherwise"}));
    let edit = |operation, reference| {
        let (body, other) = renamed();
        Post::new(operation, body, other).to(reference)
    };
    let create = |operation: &'static str, body: Value| {
        let mut other = body.clone();
        other["name"] = json!("Another");
        Post::new(operation, body, other).adding_to(&format!("{operation}filter"))
    };
    let mut plan = catalog::plan("not given", catalog::API_CALLS);
    plan["product_pricing_ref"] = Value::Null;
    let event = catalog::event(catalog::ACME, 1);
    let mut other_event = event.clone();
    other_event["quantity"] = json!(2);
    let update = |quantity: u32| json!({"event_ref": event_ref, "quantity": quantity});
    let seats =
        |quantity: u32| json!({"product_pricing_ref": catalog::API_PLAN, "line_item_id": "platform-fee", "quantity": quantity});
    let charge =
        |name: &str| json!({"contract_ref": charged, "date": when::Day::today().to_string(), "name": name, "unit_price": 1});
    client.post("/api/charges/", &catalog::with(charge("Edited"), &json!({"charge_ref": "edited"}))).ok();
    let contracts = format!("/api/contracts/filter?customer_ref={}&pageNumber=0&pageSize=1", catalog::ACME);
    let mut other_contract = catalog::contract(catalog::ACME);
    other_contract["po_number"] = json!("PO-2");
    let (yen, deposits) =
        (|amount| json!({"currency": "JPY", "amount": amount}), format!("/api/customers/payments/{}", catalog::ACME));
    let limit =
        |currency: &str, max: u32| json!({"metric": "OWED", "customer_ref": catalog::ACME, "currency": currency, "max": max});
    let grant = |amount: u32| json!({"customer_ref": catalog::ACME, "currency": "JPY", "amount": amount, "name": "Credit"});
    let granted = client.post("/api/credit_grants/", &grant(1)).ok()["grant_ref"].as_str().expect("a reference").to_owned();
    catalog::make_pricing(client, "credit", &json!([catalog::fixed("credit", "100.00")]));
    let sale = |name: &str| json!({"customer_ref": catalog::ACME, "product_pricing_ref": "credit", "name": name});
    let holds = format!("/api/usage/holds/filter?customer_ref={}", catalog::ACME);
    let held = |quantity: u32| {
        let usage = json!([{"usage_product_ref": catalog::API_CALLS, "quantity": quantity}]);
        json!({"hold_ref": "held", "customer_ref": catalog::ACME, "usage": usage})
    };
    let limited = client.post("/api/limits/", &limit("USD", 1)).ok()["limit_ref"].as_str().expect("a reference").to_owned();
    let mut posts = format_posts(client);
    posts.extend(admins_posts(admin));
    posts.extend(webhook_posts(client));
    posts.extend([
        Post::new("/api/usage/event", event, other_event),
        Post::new("/api/usage/event/update", update(7), update(8)),
        edit("/api/usage/imports/undo/{import_ref}", &imported).without_body(),
        create("/api/usage/products/", json!({"name": "Gigabytes", "unit": "GB"})),
        edit("/api/usage/products/edit/{usage_product_ref}", catalog::API_CALLS),
        Post::new("/api/contracts/", catalog::contract(catalog::ACME), other_contract).adding_to(&contracts),
        Post::new("/api/contracts/edit/{contract_ref}", json!({"po_number": "PO-1"}), json!({"po_number": "PO-2"})).to(&edited),
        Post::new(
            "/api/contracts/cancel/{contract_ref}",
            json!({"include_current_invoice": false}),
            json!({"include_current_invoice": true}),
        )
        .to(&cancelled),
        Post::new("/api/contracts/resume/{contract_ref}", json!({"dry_run": false}), json!({"dry_run": true})).to(&resumed),
        Post::new("/api/contracts/quantities/{contract_ref}", seats(2), seats(3)).to(&counted),
        create("/api/customers/", json!({"name": "New Ltd", "tax": 19, "net_terms": 30})),
        edit("/api/customers/edit/{customer_ref}", catalog::ACME),
        create("/api/entities/", json!({"name": "New Ltd", "number_prefix": "NEW", "grace_hours": 2})),
        edit("/api/entities/edit/{entity_ref}", "edited"),
        create("/api/pricings/", plan),
        edit("/api/pricings/edit/{product_pricing_ref}", catalog::API_PLAN),
        Post::new("/api/bank_accounts/", account("new"), account("other")).adding_to("/api/bank_accounts/filter"),
        Post::new(
            "/api/bank_accounts/edit/{billing_account_id}",
            json!({"bank_name": "Renamed"}),
            json!({"bank_name": "Renamed otherwise"}),
        )
        .to("edited"),
        Post::new("/api/exchange_rates/", rate("0.92"), rate("0.93")).adding_to("/api/exchange_rates/filter"),
        edit("/api/documents/issue/{document_ref}", &draft).without_body(),
        edit("/api/documents/void/{document_ref}", &voided).without_body(),
        // In a currency of its own, so that the deposit pays none of the documents.
        Post::new("/api/customers/payments/{customer_ref}", yen(1), yen(2)).to(catalog::ACME).adding_to(&deposits),
        Post::new("/api/documents/payments/{document_ref}", json!({"amount": 1}), json!({"amount": 2})).to(&paid),
        Post::new("/api/documents/payments/reverse/{payment_ref}", json!({"reason": "bounced"}), json!({"reason": "late"}))
            .to(&bounced.payment_ref),
        Post::new("/api/documents/refund/{source_ref}", json!({"amount": 1}), json!({"amount": 2})).to(&refunded.payment_ref),
        Post::new("/api/documents/apply/{source_ref}", applied.to_itself(1), applied.to_itself(2)).to(&applied.payment_ref),
        edit("/api/documents/unapply/{application_ref}", &unapplied.application_ref).without_body(),
        Post::new("/api/documents/write-off/{document_ref}", json!({"reason": "gone"}), json!({"reason": "left"})).to(&given_up),
        Post::new("/api/usage/holds/", held(1), held(2)).adding_to(&holds),
        Post::new("/api/credit_grants/", grant(1), grant(2)).adding_to("/api/credit_grants/filter"),
        Post::new("/api/credit_grants/sell", sale("One"), sale("Other")).adding_to("/api/credit_grants/filter"),
        Post::new("/api/credit_grants/edit/{grant_ref}", json!({"amount": 2}), json!({"amount": 3})).to(&granted),
        Post::new("/api/limits/", limit("JPY", 1), limit("JPY", 2)).adding_to("/api/limits/filter"),
        Post::new("/api/limits/edit/{limit_ref}", json!({"max": 2}), json!({"max": 3})).to(&limited),
        Post::new("/api/charges/", charge("Setup"), charge("Another")).adding_to("/api/charges/filter"),
        Post::new("/api/charges/edit/{charge_ref}", json!({"unit_price": 2}), json!({"unit_price": 3})).to("edited"),
        Post::new("/api/billing/run", json!({"dry_run": false}), json!({"dry_run": true})),
    ]);
    posts
}

/// Returns the same JSON in other bytes: with white space, keys in reverse order and numbers in another notation.
pub(crate) fn respelled(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(members) => {
            let members = members.iter().rev().map(|(key, value)| format!("{} :\t{}", json!(key), respelled(value)));
            write!(text, " {{\n{} }}", members.collect::<Vec<_>>().join(" , ")).expect("a string");
        }
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(respelled).collect();
            write!(text, "[ {} ]", elements.join(" , ")).expect("a string");
        }
        Value::Number(number) => {
            let point = if number.to_string().contains('.') { "0" } else { ".00" };
            write!(text, "{number}{point}").expect("a string");
        }
        Value::String(_) | Value::Bool(_) | Value::Null => write!(text, "{value}").expect("a string"),
    }
    text
}
