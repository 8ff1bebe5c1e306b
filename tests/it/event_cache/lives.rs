//! Lives of customers with several contracts, on servers with a cache of events and on one without.

use acceptance::random::{Random, setting};
use acceptance::when::Day;
use acceptance::{Answer, Client, Database, Server, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(servers_with_a_cache_answer_as_one_without);

/// The number of lives that are compared, and of requests in a life.
const LIVES: u64 = 4;
const REQUESTS: usize = 40;
/// The usage products of a customer. Each has a pricing, and the last pricing meters both.
const METERED: [&str; 2] = ["calls", "mails"];
const PRICINGS: [&str; 3] = ["calls", "mails", "both"];
/// The days of usage, few enough that the cache has most periods.
const DAYS_AGO: [i64; 3] = [0, 5, 30];

/// Sends the same requests to servers with a cache and to a server without one. Several contracts of a customer meter the usage
/// products, alone or together, and change between the events. `SEED=s` begins with life s, and `CACHE_LIVES=n` compares n lives.
fn servers_with_a_cache_answer_as_one_without(database: &Database) {
    let plain_database = if database.is_sqlite() { Database::sqlite() } else { Database::postgres() };
    let plain_server = Server::start_with(&plain_database, &["--event-cache", "0"]);
    let plain = Client::new_key(&plain_server);
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let second = (!database.is_sqlite()).then(|| Server::start(database));
    let cached = second.as_ref().map_or_else(|| client.clone(), |second| client.alternating(second));
    for client in [&plain, &cached] {
        make_pricings(client);
    }
    let first = setting("SEED", 1);
    for seed in first..first + setting("CACHE_LIVES", LIVES) {
        let mut random = Random::new(seed);
        let customer = format!("customer-{seed}");
        let [mut without, mut with] = [&plain, &cached].map(|client| Life::begin(client, &customer));
        let mut asked = Vec::new();
        for _ in 0..REQUESTS {
            let request = without.draw(&mut random);
            let answers = [&mut without, &mut with].map(|life| life.send(&request));
            asked.push(format!("{request:?}: {}", answers[0]));
            assert_eq!(answers[1], answers[0], "SEED={seed} CACHE_LIVES=1:\n{}", asked.join("\n"));
            let books = without.books();
            assert!(books.is_ok() && with.books() == books, "SEED={seed} CACHE_LIVES=1:\n{}\n{books:?}", asked.join("\n"));
        }
    }
}

fn make_pricings(client: &Client) {
    let item = |usage_product: &str, unit_price: &str| {
        let price = json!({"model": "PER_UNIT", "unit_price": unit_price});
        json!({"line_item_id": usage_product, "kind": "USAGE", "usage_product_ref": usage_product, "price": price})
    };
    for usage_product in METERED {
        client.post("/api/usage/products/", &json!({"usage_product_ref": usage_product, "name": usage_product})).ok();
        catalog::make_pricing(client, usage_product, &json!([item(usage_product, "0.07"), catalog::fixed("fee", "3.00")]));
    }
    catalog::make_pricing(client, "both", &json!([item("calls", "0.11"), item("mails", "0.13")]));
    catalog::make_pricing(client, "credit", &json!([catalog::fixed("credit", "4.00")]));
}

/// A request, with contracts, events and documents by their places in the order of their creation.
#[derive(Debug)]
enum Request {
    Report(Vec<(usize, Day, i64)>),
    Update(usize, i64),
    Delete(usize),
    Issue(usize),
    Void(usize),
    Run,
    Sell(usize, i64),
    Edit(usize, Value),
    Cancel(usize, bool),
    SetTax(i64),
    Grant(i64, Option<usize>),
    SellCredit(i64, Option<i64>),
    Pay(usize, i64),
    Limit(i64),
    Hold(usize, i64),
    UseHold(usize, usize, i64),
}

/// The life of a customer on one of the databases.
struct Life<'c> {
    client: &'c Client,
    customer: &'c str,
    contracts: Vec<(usize, String)>,
    events: Vec<Value>,
    holds: usize,
    /// The paid amount, in cents.
    paid: i64,
}

impl<'c> Life<'c> {
    fn begin(client: &'c Client, customer: &'c str) -> Self {
        catalog::make_customer(client, customer);
        let mut life = Self { client, customer, contracts: Vec::new(), events: Vec::new(), holds: 0, paid: 0 };
        for pricing in 0..METERED.len() {
            life.send(&Request::Sell(pricing, 1));
        }
        life
    }

    fn draw(&self, random: &mut Random) -> Request {
        let place = |random: &mut Random, count: usize| usize::try_from(random.below(count.max(1) as u64)).expect("few");
        match random.below(100) {
            0..55 => {
                let count = if random.percent(80) { 1 } else { random.between(2, 6) };
                let event = |random: &mut Random| {
                    let day = Day::today().plus_days(-*random.one_of(&DAYS_AGO));
                    (place(random, METERED.len()), day, random.between(0, 100))
                };
                Request::Report((0..count).map(|_| event(random)).collect())
            }
            55..59 => Request::Update(place(random, self.events.len()), random.between(0, 100)),
            59..62 => Request::Delete(place(random, self.events.len())),
            62..66 => Request::Issue(place(random, self.documents().len())),
            66..69 => Request::Void(place(random, self.documents().len())),
            69..71 => Request::Run,
            71..75 => Request::Sell(place(random, PRICINGS.len()), random.between(0, 2)),
            75..79 => {
                let include_current = random.percent(50);
                let terms = json!({"discount": random.between(0, 50)});
                Request::Edit(
                    place(random, self.contracts.len()),
                    json!({"include_current_invoice": include_current, "products": [terms]}),
                )
            }
            79..81 => Request::Cancel(place(random, self.contracts.len()), random.percent(50)),
            81..84 => Request::SetTax(random.between(0, 30)),
            84..86 => {
                let paid = random.percent(60).then(|| random.between(1, 20));
                Request::SellCredit(random.between(1, 4), paid)
            }
            86..88 => Request::Pay(place(random, self.documents().len()), random.between(1, 20)),
            88..91 => {
                let contract = random.percent(40).then(|| place(random, self.contracts.len()));
                Request::Grant(random.between(1, 20), contract)
            }
            91..94 => Request::Limit(random.between(0, 40)),
            94..97 => Request::Hold(place(random, METERED.len()), random.between(1, 100)),
            _ => Request::UseHold(place(random, self.holds), place(random, METERED.len()), random.between(1, 100)),
        }
    }

    /// Sends a request, and returns what is the same on all databases: status, code and document number.
    fn send(&mut self, request: &Request) -> String {
        let client = self.client;
        let answer = match request {
            Request::Report(events) => return self.report(events),
            Request::Update(event, quantity) => {
                let Some(event_ref) = self.events.get(*event) else { return String::new() };
                books::update(client, event_ref, json!({"quantity": quantity}))
            }
            Request::Delete(event) => {
                let Some(event_ref) = self.events.get(*event) else { return String::new() };
                books::delete(client, event_ref)
            }
            Request::Issue(place) | Request::Void(place) | Request::Pay(place, _) => {
                let documents = self.documents();
                let Some((_, document_ref)) = documents.get(*place) else { return String::new() };
                match request {
                    Request::Pay(_, amount) => self.paying(*amount, books::pay(client, document_ref, &json!({"amount": amount}))),
                    Request::Issue(_) => books::issue(client, document_ref),
                    _ => books::void(client, document_ref),
                }
            }
            Request::Run => client.post("/api/billing/run", &json!({})),
            Request::Sell(pricing, over) => {
                let products = json!([catalog::months(PRICINGS[*pricing], *over, 2)]);
                let contract_ref = catalog::make_contract(client, &json!({"customer_ref": self.customer, "products": products}));
                self.contracts.push((*pricing, contract_ref));
                return "sold".to_owned();
            }
            Request::Edit(contract, edit) => {
                let (pricing, contract_ref) = &self.contracts[*contract];
                let mut edit = edit.clone();
                edit["products"][0]["product_pricing_ref"] = json!(PRICINGS[*pricing]);
                books::edit(client, contract_ref, &edit)
            }
            Request::Cancel(contract, now) => books::cancel(client, &self.contracts[*contract].1, *now),
            Request::SetTax(tax) => client.post(&format!("/api/customers/edit/{}", self.customer), &json!({"tax": tax})),
            Request::Grant(amount, contract) => {
                let contract_ref = contract.map(|contract| &self.contracts[contract].1);
                let grant = json!({"name": "Credit", "currency": "EUR", "amount": amount, "contract_ref": contract_ref});
                client.post("/api/credit_grants/", &self.of_customer(&grant))
            }
            Request::SellCredit(quantity, paid) => {
                let payment = paid.map(|amount| json!({"amount": amount}));
                let sale = json!({"product_pricing_ref": "credit", "name": "Credit", "quantity": quantity, "payment": payment});
                let answer = client.post("/api/credit_grants/sell", &self.of_customer(&sale));
                self.paying(paid.unwrap_or_default(), answer)
            }
            Request::Limit(max) => {
                client.post("/api/limits/", &self.of_customer(&json!({"metric": "OWED", "currency": "EUR", "max": max})))
            }
            Request::Hold(usage_product, quantity) => {
                self.holds += 1;
                let usage = json!([{"usage_product_ref": METERED[*usage_product], "quantity": quantity}]);
                let hold = json!({"hold_ref": self.hold(self.holds - 1), "expires_in": 3600, "usage": usage});
                client.post("/api/usage/holds/", &self.of_customer(&hold))
            }
            Request::UseHold(hold, usage_product, quantity) => {
                let event = self.event(&(*usage_product, Day::today(), *quantity));
                let answer = client.post("/api/usage/event", &catalog::with(event, &json!({"hold_ref": self.hold(*hold)})));
                self.events.extend(answer.body.get("event_ref").cloned());
                answer
            }
        };
        format!(
            "{} {}",
            answer.status,
            books::fields(&answer.body, ["code", "document_number", "related_document_numbers"]).join(" ")
        )
    }

    fn report(&mut self, events: &[(usize, Day, i64)]) -> String {
        let events: Vec<Value> = events.iter().map(|event| self.event(event)).collect();
        let answer = match &events[..] {
            [event] => self.client.post("/api/usage/event", event),
            _ => self.client.post("/api/usage/event/batch", &json!({"events": events})),
        };
        let results = answer.body["results"].as_array().cloned().unwrap_or_else(|| vec![answer.body.clone()]);
        self.events.extend(results.iter().map(|result| result["event_ref"].clone()).filter(Value::is_string));
        let outcomes = results.iter().map(|result| books::fields(result, ["code", "related_document_numbers"]).join(" "));
        format!("{} {}", answer.status, outcomes.collect::<Vec<_>>().join(", "))
    }

    /// Counts a payment if the server accepted it.
    fn paying(&mut self, amount: i64, answer: Answer) -> Answer {
        self.paid += if answer.status == 200 { 100 * amount } else { 0 };
        answer
    }

    fn of_customer(&self, body: &Value) -> Value {
        catalog::with(json!({"customer_ref": self.customer}), body)
    }

    fn hold(&self, place: usize) -> String {
        format!("{}-{place}", self.customer)
    }

    fn event(&self, (usage_product, day, quantity): &(usize, Day, i64)) -> Value {
        let event = catalog::event(self.customer, *quantity);
        let at = if *day == Day::today() { event["timestamp"].clone() } else { json!(day.noon()) };
        catalog::with(event, &json!({"timestamp": at, "usage_product_ref": METERED[*usage_product]}))
    }

    fn list(&self, path: &str) -> Vec<Value> {
        let listed = self.client.get(&format!("{path}?customer_ref={}&pageSize=1000", self.customer)).ok();
        listed.as_array().expect("a list").clone()
    }

    fn documents(&self) -> Vec<(String, Value)> {
        self.shown(&self.list("/api/documents/filter"))
    }

    /// Returns documents as texts, with their references. The order is the same on all databases.
    fn shown(&self, documents: &[Value]) -> Vec<(String, Value)> {
        let shown = |document: &Value| {
            let contract = self.contracts.iter().position(|(_, contract_ref)| document["contract_ref"] == **contract_ref);
            let (head, totals, lines) = (books::shown(document), books::totals(document), books::lines(document));
            let [from, prepaid] = books::fields(document, ["period_start", "total_prepaid"]);
            let text = format!("{contract:?} {from} {} {} {prepaid} {lines:?}", head.join(" "), totals.join(" "));
            (text, document["document_ref"].clone())
        };
        let mut documents: Vec<(String, Value)> = documents.iter().map(shown).collect();
        documents.sort_by(|(a, _), (b, _)| a.cmp(b));
        documents
    }

    /// Returns what the customer is billed and owes, and the state of the customer's credit.
    ///
    /// # Errors
    /// Returns an error if credit is lost, or if the customer owes anything but the issued amounts minus the payments.
    fn books(&self) -> Result<Vec<String>, String> {
        let mut grants = Vec::new();
        for grant in self.list("/api/credit_grants/filter") {
            let amounts = books::fields(&grant, ["usable", "drawn", "covered", "free"]);
            let [usable, used @ ..] = amounts.each_ref().map(|amount| books::cents(amount));
            // What was drawn of sold credit stays drawn when its invoice is voided.
            if grant["source_document_ref"].is_null() && usable != used.iter().sum::<i64>() {
                return Err(format!("credit is lost: {grant}"));
            }
            grants.push(amounts.join(" "));
        }
        grants.sort_unstable();
        let documents = self.list("/api/documents/filter");
        books::check_owed(self.client, self.customer, &documents, self.paid)?;
        let balances = books::balance(self.client, self.customer);
        let documents = self.shown(&documents).into_iter().map(|(document, _)| document);
        Ok(documents.chain(grants).chain(balances.iter().map(|balance| balance.join(" "))).collect())
    }
}
