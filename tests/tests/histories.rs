//! Random histories of contracts over HTTP: whatever is done in whatever order, what is billed is what the usage there
//! is costs, after every step. `HTTP_HISTORIES=n` plays so many on each database, `SEED=s` begins with that one.

use acceptance::naive::{Event, Model, Terms};
use acceptance::random::{Random, setting};
use acceptance::when::{self, Day};
use acceptance::{Answer, Client, Database, Server, binary, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(what_is_billed_is_what_was_used_after_every_step);

const HISTORIES: u64 = 40;
const MAX_STEPS: u64 = 25;

fn what_is_billed_is_what_was_used_after_every_step(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let first = setting("SEED", 1);
    for seed in first..first + setting("HTTP_HISTORIES", HISTORIES) {
        let mut history = History::begin(&client, seed);
        let steps = 1 + history.random.below(MAX_STEPS);
        for _ in 0..steps {
            history.step();
            history.check(false);
        }
        history.end(database);
    }
}

/// One contract's life.
struct History<'a> {
    client: &'a Client,
    seed: u64,
    random: Random,
    pricing: String,
    contract_ref: String,
    model: Model,
    /// What was done, and answered.
    told: Vec<String>,
}

impl<'a> History<'a> {
    fn begin(client: &'a Client, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (pricing, customer) = (format!("plan-{seed}"), format!("customer-{seed}"));
        let model = Model::new(&mut random, &customer);
        catalog::make_customer(client, &customer);
        catalog::make_pricing(client, &pricing, &model.pricing());
        let contract_ref = catalog::make_contract(client, &model.contract(&pricing));
        Self { client, seed, random, pricing, contract_ref, model, told: Vec::new() }
    }

    fn fail(&self, what: &str) -> ! {
        let documents: Vec<String> = self
            .documents()
            .iter()
            .map(|document| {
                let head = books::shown(document).join(" ");
                format!(
                    "{head} of {} for {}: {:?}",
                    document["parent_document_number"],
                    document["period_start"],
                    books::lines(document)
                )
            })
            .collect();
        panic!(
            "SEED={} HTTP_HISTORIES=1: {what}\n{} {} {}\n{}\n{}",
            self.seed,
            self.model.payment_time,
            self.model.net_terms,
            self.model.pricing(),
            self.told.join("\n"),
            documents.join("\n")
        );
    }

    fn documents(&self) -> Vec<Value> {
        let path = format!("/api/documents/filter?contract_ref={}&pageSize=1000", self.contract_ref);
        self.client.get(&path).ok().as_array().expect("a list").clone()
    }

    fn check(&self, all_due: bool) {
        if let Err(wrong) = self.model.check(&self.documents(), all_due) {
            self.fail(&wrong);
        }
    }

    /// Notes an answer, and whether it is a success; only these refusals may come. What is taken leaves an entry in the audit log where
    /// it is audited, and nothing else does.
    fn took(&mut self, what: String, answer: &Answer, refusals: &[&str], is_audited: bool) -> bool {
        let code = answer.body["code"].as_str().unwrap_or_default().to_owned();
        self.told.push(format!("{what}: {} {code}", answer.status));
        let is_taken = matches!(answer.status, 200 | 204);
        if !is_taken && !refusals.contains(&code.as_str()) {
            self.fail(&answer.text);
        }
        let entries = format!("/api/audit/filter?request_id={}", answer.header("x-request-id"));
        let entries = self.client.get(&entries).ok();
        if entries.as_array().map(Vec::len) != Some(usize::from(is_taken && is_audited)) {
            self.fail(&format!("the audit log tells {entries}"));
        }
        is_taken
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..30 => self.report(),
            30..45 => self.update(),
            45..54 => self.delete(),
            54..66 => self.act_on_a_document("issue", &["not_a_draft"]),
            66..72 => self.run(),
            72..78 => {
                let refusals = ["not_voidable", "not_issued", "document_paid", "document_has_dependents"];
                self.act_on_a_document("void", &refusals);
            }
            78..83 => self.pay(),
            83..96 => self.edit(),
            _ => self.cancel(),
        }
    }

    /// A day the contract may have usage on.
    fn day(&mut self) -> Day {
        let days = self.model.start.days_until(Day::today());
        self.model.start.plus_days(self.random.between(0, days))
    }

    fn timestamp(day: Day) -> String {
        if day == Day::today() { when::in_seconds(-1) } else { day.noon() }
    }

    fn report(&mut self) {
        let (day, quantity) = (self.day(), self.random.between(0, 700));
        let mut event = catalog::event(&self.model.customer, quantity);
        event["timestamp"] = json!(Self::timestamp(day));
        let answer = self.client.post("/api/usage/event", &event);
        if self.took(format!("report {quantity} on {day}"), &answer, &[], false) {
            self.model.events.push(Event { event_ref: answer.body["event_ref"].clone(), day, quantity });
        }
    }

    fn update(&mut self) {
        if self.model.events.is_empty() {
            return self.report();
        }
        let count = u64::try_from(self.model.events.len()).expect("few");
        let index = usize::try_from(self.random.below(count)).expect("few");
        let mut event = self.model.events[index].clone();
        let mut change = json!({});
        if self.random.percent(70) {
            event.quantity = self.random.between(0, 700);
            change["quantity"] = json!(event.quantity);
        }
        if self.random.percent(40) {
            event.day = self.day();
            change["timestamp"] = json!(Self::timestamp(event.day));
        }
        let answer = books::update(self.client, &event.event_ref, change.clone());
        if self.took(format!("update {} to {change}", index + 1), &answer, &[], false) {
            self.model.events[index] = event;
        }
    }

    fn delete(&mut self) {
        if self.model.events.is_empty() {
            return self.report();
        }
        let count = u64::try_from(self.model.events.len()).expect("few");
        let index = usize::try_from(self.random.below(count)).expect("few");
        let event = self.model.events.remove(index);
        let answer = books::delete(self.client, &event.event_ref);
        self.took(format!("delete {}", index + 1), &answer, &[], false);
    }

    fn a_document(&mut self) -> Option<Value> {
        let documents = self.documents();
        if documents.is_empty() { None } else { Some(self.random.one_of(&documents).clone()) }
    }

    fn act_on_a_document(&mut self, action: &str, refusals: &[&str]) {
        let Some(document) = self.a_document() else { return self.report() };
        let path = format!("/api/documents/{action}/{}", document["document_ref"].as_str().expect("a reference"));
        let answer = self.client.post_nothing(&path);
        self.took(format!("{action} {}", document["document_number"]), &answer, refusals, true);
    }

    fn pay(&mut self) {
        let Some(document) = self.a_document() else { return self.report() };
        let answer = books::pay(self.client, &document["document_ref"], &json!({"amount": self.random.between(1, 60)}));
        self.took(format!("pay {}", document["document_number"]), &answer, &["not_owed", "validation_failed"], true);
    }

    fn run(&mut self) {
        let answer = self.client.post("/api/billing/run", &json!({}));
        let did_something = answer.body["issued"] != json!([]) || answer.body["voided"] != json!([]);
        self.took("run".to_owned(), &answer, &[], did_something);
        if answer.body["failed"] != json!([]) {
            self.fail(&answer.text);
        }
    }

    fn version(&self) -> Value {
        self.client.get(&format!("/api/contracts/{}", self.contract_ref)).ok()["version"].clone()
    }

    fn edit(&mut self) {
        let mut terms = self.model.terms;
        match self.random.below(3) {
            0 => terms = Terms { fee: !terms.fee, ..terms },
            1 => terms = Terms { discount: self.random.between(0, 50), ..terms },
            _ => terms = Terms { tax: *self.random.one_of(&[0, 7, 19]), ..terms },
        }
        if terms == self.model.terms {
            return;
        }
        let include_current = self.random.percent(60);
        let edit = self.model.edit(&self.pricing, terms, include_current);
        let before = self.version();
        let answer = books::edit(self.client, &self.contract_ref, &edit);
        // What would come into force after the contract's last day makes no version.
        let makes_a_version = self.version() != before;
        if self.took(
            format!("edit to {terms:?}, include current {include_current}"),
            &answer,
            &["contract_over"],
            makes_a_version,
        ) {
            self.model.edited(terms, include_current);
        } else if !self.model.is_cancelled {
            self.fail("a contract that isn't cancelled can be edited");
        }
    }

    fn cancel(&mut self) {
        let now = self.random.percent(50);
        let answer = books::cancel(self.client, &self.contract_ref, now);
        if self.took(format!("cancel, now {now}"), &answer, &["contract_over"], true) {
            self.model.cancelled(now);
        } else if !self.model.is_cancelled {
            self.fail("a contract that isn't cancelled can be");
        }
    }

    /// Has everything issued that is due: then nothing that is over is left unbilled.
    fn end(mut self, database: &Database) {
        self.run();
        self.check(true);
        if let Err(found) = binary::verify(database.url()) {
            self.fail(&found);
        }
    }
}
