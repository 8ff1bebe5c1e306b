//! A server whose days are turned, a customer without tax, and what is billed, shown shortly.

use serde_json::{Value, json};

use crate::clock::Clock;
use crate::{Answer, Client, Database, Key, Server, books, catalog};

/// A server on a clock of its own. At its end everything that is due is issued, and `verify` finds nothing wrong.
#[derive(Debug)]
pub struct Scene {
    /// Logged in today.
    pub client: Client,
    server: Server,
    key: Key,
    clock: Clock,
}

impl Scene {
    /// At noon of a day: acme, who pays no tax, and the usage product of [`catalog::API_CALLS`].
    pub fn begin(database: &Database, day: &str) -> Self {
        Self::begin_at(database, &format!("{day}T12:00:00Z"))
    }

    /// The same at any instant.
    ///
    /// # Panics
    /// When anything is refused.
    pub fn begin_at(database: &Database, instant: &str) -> Self {
        let clock = Clock::at(instant);
        let server = Server::start_on(database, &clock);
        let key = Client::admin(&server).generate_key(&json!({}));
        let client = Client::key(&server, &key);
        client.post("/api/usage/products/", &json!({"usage_product_ref": catalog::API_CALLS, "name": "API calls"})).ok();
        client.post("/api/customers/", &json!({"customer_ref": catalog::ACME, "name": "Acme Ltd"})).ok();
        Self { client, server, key, clock }
    }

    /// The administrator, logged in now.
    pub fn admin(&self) -> Client {
        Client::admin(&self.server)
    }

    /// Goes on to noon of a day. It logs in again: a token of a month ago is none.
    pub fn go_to(&mut self, day: &str) {
        self.go_to_instant(&format!("{day}T12:00:00Z"));
    }

    /// Goes on to an instant.
    pub fn go_to_instant(&mut self, instant: &str) {
        self.clock.set(instant);
        self.client = Client::key(&self.server, &self.key);
    }

    /// Goes on to noon of a day, and issues what is due.
    pub fn run_on(&mut self, day: &str) -> Vec<Value> {
        self.go_to(day);
        books::run(&self.client)
    }

    /// Issues what is due at noon of each of these days.
    pub fn run_on_each(&mut self, days: &[&str]) {
        for day in days {
            self.run_on(day);
        }
    }

    /// Makes a pricing in EUR.
    #[track_caller]
    pub fn pricing(&self, pricing: &str, line_items: &[Value]) {
        catalog::make_pricing(&self.client, pricing, &json!(line_items));
    }

    /// Makes a pricing in EUR of one fee.
    #[track_caller]
    pub fn fee(&self, pricing: &str, amount: &str) {
        self.pricing(pricing, &[catalog::fixed("fee", amount)]);
    }

    /// Changes a pricing.
    ///
    /// # Panics
    /// When that is refused.
    #[track_caller]
    pub fn edit_pricing(&self, pricing: &str, fields: &Value) {
        self.client.post(&format!("/api/pricings/edit/{pricing}"), fields).ok();
    }

    /// Changes a customer.
    ///
    /// # Panics
    /// When that is refused.
    #[track_caller]
    pub fn edit_customer(&self, customer: &str, fields: &Value) {
        self.client.post(&format!("/api/customers/edit/{customer}"), fields).ok();
    }

    /// The entity of the first start.
    ///
    /// # Panics
    /// When there isn't exactly one entity.
    pub fn entity(&self) -> String {
        let entity = catalog::only(self.client.get("/api/entities/filter").ok());
        entity["entity_ref"].as_str().expect("a reference").to_owned()
    }

    /// Tries to change an entity.
    pub fn edit_entity(&self, entity: &str, fields: &Value) -> Answer {
        self.client.post(&format!("/api/entities/edit/{entity}"), fields)
    }

    /// Makes a contract of acme.
    #[track_caller]
    pub fn sell(&self, products: &[Value]) -> String {
        catalog::sell(&self.client, products)
    }

    /// Tries to make a contract of acme, with these fields beside its products.
    pub fn try_sell(&self, products: &[Value], fields: &Value) -> Answer {
        let contract = json!({"customer_ref": catalog::ACME, "products": products});
        self.client.post("/api/contracts/", &catalog::with(contract, fields))
    }

    /// A contract.
    ///
    /// # Panics
    /// When it isn't there.
    #[track_caller]
    pub fn contract(&self, contract_ref: &str) -> Value {
        self.client.get(&format!("/api/contracts/{contract_ref}")).ok()
    }

    /// Tries to edit a contract.
    pub fn try_edit(&self, contract_ref: &str, body: &Value) -> Answer {
        books::edit(&self.client, contract_ref, body)
    }

    /// Edits a contract.
    ///
    /// # Panics
    /// When that is refused.
    #[track_caller]
    pub fn edit(&self, contract_ref: &str, body: &Value) -> Value {
        self.try_edit(contract_ref, body).ok()
    }

    /// Tries to cancel a contract.
    pub fn try_cancel(&self, contract_ref: &str, body: &Value) -> Answer {
        self.client.post(&format!("/api/contracts/cancel/{contract_ref}"), body)
    }

    /// Cancels a contract.
    ///
    /// # Panics
    /// When that is refused.
    #[track_caller]
    pub fn cancel(&self, contract_ref: &str, body: &Value) -> Value {
        self.try_cancel(contract_ref, body).ok()
    }

    /// Tries to take a cancel back.
    pub fn try_resume(&self, contract_ref: &str, body: &Value) -> Answer {
        self.client.post(&format!("/api/contracts/resume/{contract_ref}"), body)
    }

    /// Reports calls of a day, at six in the morning.
    ///
    /// # Panics
    /// When they are refused.
    #[track_caller]
    pub fn calls(&self, day: &str, quantity: u32) -> Value {
        self.try_calls(day, quantity).ok()
    }

    /// Tries to report calls of a day.
    pub fn try_calls(&self, day: &str, quantity: u32) -> Answer {
        self.client.post("/api/usage/event", &calls(day, quantity))
    }

    /// Every document: its number, the first day of its period, its total, and whether it is a draft or void. Sorted.
    pub fn papers(&self) -> Vec<String> {
        papers(&catalog::documents(&self.client))
    }

    /// Sum, discount, tax and total of all documents that aren't void, credits below zero.
    pub fn sums(&self) -> [String; 4] {
        sums(&catalog::documents(&self.client))
    }

    /// The same of one contract.
    ///
    /// # Panics
    /// When its documents aren't listed.
    pub fn sums_of(&self, contract_ref: &str) -> [String; 4] {
        let path = format!("/api/documents/filter?contract_ref={contract_ref}&pageSize=1000");
        sums(self.client.get(&path).ok().as_array().expect("a list"))
    }

    /// What a contract bills in its current or its next period, in the same form as [`Self::papers`].
    pub fn preview(&self, which: &str, contract_ref: &str) -> Vec<String> {
        papers(&books::preview(&self.client, which, contract_ref))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            books::run(&self.client);
        }
    }
}

/// The body of an event of calls of acme, at six in the morning.
pub fn calls(day: &str, quantity: u32) -> Value {
    json!({
        "timestamp": format!("{day}T06:00:00Z"), "customer_ref": catalog::ACME,
        "usage_product_ref": catalog::API_CALLS, "quantity": quantity,
    })
}

/// A product from a day to a day, both inclusive.
pub fn product(pricing: &str, from: &str, to: &str) -> Value {
    json!({"product_pricing_ref": pricing, "billing_start_date": from, "billing_end_date": to})
}

/// A line item of calls at a price each.
pub fn each(unit_price: &str) -> Value {
    catalog::calls(&json!({"model": "PER_UNIT", "unit_price": unit_price}))
}

/// An element of `line_items` that overrides the fee.
pub fn fee_of(amount: &str) -> Value {
    json!({"line_item_id": "fee", "price": {"model": "FLAT", "amount": amount}})
}

/// Asserts that an answer is this refusal, of the whole request or of one of its fields.
///
/// # Panics
/// When it is another, or none.
#[track_caller]
pub fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{code}: {}", answer.text);
    let of_fields = answer.body["errors"].as_array().into_iter().flatten();
    let found = of_fields.chain([&answer.body]).any(|problem| problem["code"] == code);
    assert!(found, "{code} is expected: {}", answer.text);
}

/// Documents in short: see [`Scene::papers`].
pub fn papers(documents: &[Value]) -> Vec<String> {
    let paper = |document: &Value| {
        let [number, start, total, state] = books::fields(document, ["document_number", "period_start", "total", "state"]);
        // What isn't opened has no number, and is shown as the draft it would be.
        let state =
            if number != "null" && matches!(state.as_str(), "DRAFT" | "VOID") { format!(" {state}") } else { String::new() };
        format!("{number} {start} {total}{state}")
    };
    let mut papers: Vec<String> = documents.iter().map(paper).collect();
    papers.sort();
    papers
}

/// Sums of documents: see [`Scene::sums`].
pub fn sums(documents: &[Value]) -> [String; 4] {
    let sum = |field: &str| {
        let in_force = documents.iter().filter(|document| document["state"] != "VOID");
        let signed =
            in_force.map(|document| if document["kind"] == "CREDIT" { -cents(document, field) } else { cents(document, field) });
        money(signed.sum())
    };
    ["sub_total", "total_discount", "total_tax", "total"].map(sum)
}

fn cents(document: &Value, field: &str) -> i64 {
    let text = document[field].to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or_else(|| panic!("{field}: {text} has no cents"));
    assert_eq!(fraction.len(), 2, "{field}: {text}");
    format!("{whole}{fraction}").parse().unwrap_or_else(|_| panic!("{field}: {text}"))
}

fn money(cents: i64) -> String {
    format!("{}{}.{:02}", if cents < 0 { "-" } else { "" }, cents.abs() / 100, cents.abs() % 100)
}
