//! A sandbox, a customer without tax, and short summaries of the billed documents.

use serde_json::{Value, json};

use crate::{Answer, Client, Clock, Database, Server, books, catalog};

/// A sandbox, whose clock stands still until the test moves it. When the scene is dropped, it issues everything that is due, and `verify` must find no
/// errors.
#[derive(Debug)]
pub struct Scene {
    /// A client with all permissions.
    pub client: Client,
    server: Server,
}

impl Scene {
    /// Starts a server at noon of a day and creates the customer acme, who pays no tax, and the usage product
    /// [`catalog::API_CALLS`].
    pub fn begin(database: &Database, day: &str) -> Self {
        Self::begin_at(database, &format!("{day}T12:00:00Z"))
    }

    /// Starts a scene like [`Self::begin`], at any instant.
    ///
    /// # Panics
    /// Panics if the server rejects a request.
    pub fn begin_at(database: &Database, instant: &str) -> Self {
        Self::begin_on_server(Server::start_with(database, &["--sandbox", "--now", instant]))
    }

    /// Starts a scene at noon of a day. The test sets the machine's clock too, which secrets and retries of webhooks use.
    ///
    /// # Panics
    /// Panics if the server rejects a request.
    pub fn begin_on(database: &Database, day: &str, machine: &Clock) -> Self {
        let now = format!("{day}T12:00:00Z");
        let flags = ["--sandbox", "--now", &now, "--token-lifetime-seconds", "86400"];
        Self::begin_on_server(Server::start_on_with(database, machine, &flags))
    }

    fn begin_on_server(server: Server) -> Self {
        let client = Client::new_key(&server);
        client.post("/api/usage/products/", &json!({"usage_product_ref": catalog::API_CALLS, "name": "API calls"})).ok();
        client.post("/api/customers/", &json!({"customer_ref": catalog::ACME, "name": "Acme Ltd"})).ok();
        Self { client, server }
    }

    /// Returns the server.
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// Logs in as the administrator.
    pub fn admin(&self) -> Client {
        Client::admin(&self.server)
    }

    /// Moves the clock to noon of a day. Nothing is issued on the way.
    #[track_caller]
    pub fn go_to(&self, day: &str) {
        self.go_to_instant(&format!("{day}T12:00:00Z"));
    }

    /// Moves the clock to an instant. Nothing is issued on the way.
    ///
    /// # Panics
    /// Panics if the instant is before the clock.
    #[track_caller]
    pub fn go_to_instant(&self, instant: &str) {
        self.client.post("/api/clock/advance", &json!({"to": instant, "run": false})).ok();
    }

    /// Moves the clock to an instant, with everything that is due on the way. Returns the response.
    ///
    /// # Panics
    /// Panics if the server rejects the request.
    #[track_caller]
    pub fn advance(&self, instant: &str) -> Value {
        self.client.post("/api/clock/advance", &json!({"to": instant})).ok()
    }

    /// Advances the clock to noon of a day and issues the due documents.
    pub fn run_on(&self, day: &str) -> Vec<Value> {
        self.go_to(day);
        books::run(&self.client)
    }

    /// Issues the due documents at noon of each of these days.
    pub fn run_on_each(&self, days: &[&str]) {
        for day in days {
            self.run_on(day);
        }
    }

    /// Creates a pricing in EUR.
    #[track_caller]
    pub fn pricing(&self, pricing: &str, line_items: &[Value]) {
        catalog::make_pricing(&self.client, pricing, &json!(line_items));
    }

    /// Creates a pricing in EUR with one fee.
    #[track_caller]
    pub fn fee(&self, pricing: &str, amount: &str) {
        self.pricing(pricing, &[catalog::fixed("fee", amount)]);
    }

    /// Edits a pricing.
    ///
    /// # Panics
    /// Panics if the server rejects the edit.
    #[track_caller]
    pub fn edit_pricing(&self, pricing: &str, fields: &Value) {
        self.client.post(&format!("/api/pricings/edit/{pricing}"), fields).ok();
    }

    /// Edits a customer.
    ///
    /// # Panics
    /// Panics if the server rejects the edit.
    #[track_caller]
    pub fn edit_customer(&self, customer: &str, fields: &Value) {
        self.client.post(&format!("/api/customers/edit/{customer}"), fields).ok();
    }

    /// Returns the reference of the entity from the first start.
    ///
    /// # Panics
    /// Panics unless exactly one entity exists.
    pub fn entity(&self) -> String {
        let entity = catalog::only(self.client.get("/api/entities/filter").ok());
        entity["entity_ref"].as_str().expect("a reference").to_owned()
    }

    /// Tries to edit an entity.
    pub fn edit_entity(&self, entity: &str, fields: &Value) -> Answer {
        self.client.post(&format!("/api/entities/edit/{entity}"), fields)
    }

    /// Creates a contract of acme.
    #[track_caller]
    pub fn sell(&self, products: &[Value]) -> String {
        catalog::sell(&self.client, products)
    }

    /// Tries to create a contract of acme, with these fields in addition to the products.
    pub fn try_sell(&self, products: &[Value], fields: &Value) -> Answer {
        let contract = json!({"customer_ref": catalog::ACME, "products": products});
        self.client.post("/api/contracts/", &catalog::with(contract, fields))
    }

    /// Returns a contract.
    ///
    /// # Panics
    /// Panics if the contract does not exist.
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
    /// Panics if the server rejects the edit.
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
    /// Panics if the server rejects the cancellation.
    #[track_caller]
    pub fn cancel(&self, contract_ref: &str, body: &Value) -> Value {
        self.try_cancel(contract_ref, body).ok()
    }

    /// Tries to resume a canceled contract.
    pub fn try_resume(&self, contract_ref: &str, body: &Value) -> Answer {
        self.client.post(&format!("/api/contracts/resume/{contract_ref}"), body)
    }

    /// Reports calls of a day, at 06:00 UTC.
    ///
    /// # Panics
    /// Panics if the server rejects the calls.
    #[track_caller]
    pub fn calls(&self, day: &str, quantity: u32) -> Value {
        self.try_calls(day, quantity).ok()
    }

    /// Tries to report calls of a day, at 06:00 UTC.
    pub fn try_calls(&self, day: &str, quantity: u32) -> Answer {
        self.client.post("/api/usage/event", &calls(day, quantity))
    }

    /// Returns a sorted summary of every document: the number, the first day of the period, the total, and the state if
    /// the document is a draft or void.
    pub fn papers(&self) -> Vec<String> {
        papers(&catalog::documents(&self.client))
    }

    /// Returns subtotal, discount, tax and total of all documents that are not void. Credits count as negative amounts.
    pub fn sums(&self) -> [String; 4] {
        sums(&catalog::documents(&self.client))
    }

    /// Returns [`Self::sums`] for the documents of one contract.
    ///
    /// # Panics
    /// Panics if the server does not list the documents.
    pub fn sums_of(&self, contract_ref: &str) -> [String; 4] {
        let path = format!("/api/documents/filter?contract_ref={contract_ref}&pageSize=1000");
        sums(self.client.get(&path).ok().as_array().expect("a list"))
    }

    /// Returns the documents that a contract bills in its current or its next period, in the format of
    /// [`Self::papers`].
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

/// Returns the body of an event of calls of acme, at 06:00 UTC.
pub fn calls(day: &str, quantity: u32) -> Value {
    json!({
        "timestamp": format!("{day}T06:00:00Z"), "customer_ref": catalog::ACME,
        "usage_product_ref": catalog::API_CALLS, "quantity": quantity,
    })
}

/// Returns a product from one day to another day, both inclusive.
pub fn product(pricing: &str, from: &str, to: &str) -> Value {
    json!({"product_pricing_ref": pricing, "billing_start_date": from, "billing_end_date": to})
}

/// Returns a line item of calls with a unit price.
pub fn each(unit_price: &str) -> Value {
    catalog::calls(&json!({"model": "PER_UNIT", "unit_price": unit_price}))
}

/// Returns an element of `line_items` that overrides the fee.
pub fn fee_of(amount: &str) -> Value {
    json!({"line_item_id": "fee", "price": {"model": "FLAT", "amount": amount}})
}

/// Asserts that a response has this status and error code, for the whole request or for one of its fields.
///
/// # Panics
/// Panics if the response is another error or no error.
#[track_caller]
pub fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{code}: {}", answer.text);
    let of_fields = answer.body["errors"].as_array().into_iter().flatten();
    let found = of_fields.chain([&answer.body]).any(|problem| problem["code"] == code);
    assert!(found, "expected {code}: {}", answer.text);
}

/// Summarizes documents as [`Scene::papers`] does.
pub fn papers(documents: &[Value]) -> Vec<String> {
    let paper = |document: &Value| {
        let [number, start, total, state] = books::fields(document, ["document_number", "period_start", "total", "state"]);
        // A document that is not opened yet has no number, and the API shows it as the draft that it would become.
        let state =
            if number != "null" && matches!(state.as_str(), "DRAFT" | "VOID") { format!(" {state}") } else { String::new() };
        format!("{number} {start} {total}{state}")
    };
    let mut papers: Vec<String> = documents.iter().map(paper).collect();
    papers.sort();
    papers
}

/// Sums documents as [`Scene::sums`] does.
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
