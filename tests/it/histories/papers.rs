//! Issued documents: their JSON and their PDF file never change, even if the objects that they name change.

use std::collections::BTreeMap;

use acceptance::when::Day;
use acceptance::{books, catalog};
use serde_json::{Value, json};

use crate::histories::asking::Deed;
use crate::histories::contract::did_something;
use crate::histories::history::History;
use crate::histories::senders::Needs;

const WRITE: Needs = Needs::Scope("catalog:write");
const IBAN: &str = "DE89370400440532013000";

/// The frozen content of issued documents, by reference.
#[derive(Default)]
pub(crate) struct Papers {
    frozen: BTreeMap<String, String>,
    files: BTreeMap<String, Vec<u8>>,
    /// Whether this history has a bank account.
    has_account: bool,
}

/// Returns the reference of a document if it was ever issued.
fn issued(document: &Value) -> Option<&str> {
    document["document_ref"].as_str().filter(|_| !document["issue_date"].is_null())
}

impl Papers {
    /// Checks that issued documents keep their content.
    ///
    /// # Errors
    /// Returns the document that changed, with its new content.
    pub(crate) fn check(&mut self, documents: &[Value]) -> Result<(), String> {
        for document in documents {
            let Some(document_ref) = issued(document) else { continue };
            let now = books::frozen(document);
            match self.frozen.get(document_ref) {
                Some(then) if *then != now => return Err(format!("it was issued as {then}, and says {now}")),
                Some(_) => {}
                None => drop(self.frozen.insert(document_ref.to_owned(), now)),
            }
        }
        Ok(())
    }
}

impl History<'_> {
    pub(crate) fn read_a_paper(&mut self) {
        let Some(document) = self.a_document() else { return self.report() };
        let document_ref = document["document_ref"].as_str().expect("a reference").to_owned();
        let file = self.file(&document_ref);
        if issued(&document).is_some() {
            self.keep(document_ref, file);
        }
    }

    fn file(&self, document_ref: &str) -> Vec<u8> {
        let answer = self.stage.client.get(&format!("/api/documents/{document_ref}/pdf"));
        if answer.status != 200 || !answer.bytes.starts_with(b"%PDF-1.7") {
            self.fail(&format!("{document_ref} is no file: {}", answer.text));
        }
        answer.bytes
    }

    fn keep(&mut self, document_ref: String, file: Vec<u8>) {
        if self.papers.files.get(&document_ref).is_some_and(|kept| *kept != file) {
            self.fail(&format!("the file of {document_ref} is another"));
        }
        self.papers.files.insert(document_ref, file);
    }

    pub(crate) fn read_all_papers_again(&mut self) {
        for document_ref in self.papers.files.keys().cloned().collect::<Vec<_>>() {
            let file = self.file(&document_ref);
            self.keep(document_ref, file);
        }
    }

    /// Changes names, accounts or rates. None of these changes affects an amount due.
    pub(crate) fn change_what_papers_say(&mut self) {
        let (name, account) = (self.new_name("Name"), format!("account-{}", self.seed));
        // The day and the value are new, so that the request always changes something.
        let day = Day::today().plus_days(-i64::try_from(self.seed % 10_000).expect("a small count"));
        let rate = format!("0.{}", 1000 + self.named);
        let deed = match self.random.below(5) {
            0 => Deed::post("edit_usage_product", WRITE, "/api/usage/products/edit/api-calls", &json!({"name": name})),
            1 => {
                let rate = json!({"from": "USD", "to": "EUR", "date": day.to_string(), "rate": rate});
                Deed::post("put_exchange_rate", WRITE, "/api/exchange_rates/", &rate)
            }
            2 => {
                self.make_the_account(&account);
                let refusals: &[&str] = if self.papers.has_account { &[] } else { &["bank_account_not_found"] };
                let path = format!("/api/bank_accounts/edit/{account}");
                Deed::post("edit_bank_account", WRITE, path, &json!({"bank_name": name})).refused_by(refusals)
            }
            3 => {
                // The tax begins on a day that affects no line of today, at a rate that the customer did not have before.
                let from = Day::today().plus_days(self.random.between(1, 400));
                let fields = json!({"tax": 20 + self.named % 80, "tax_from": from.to_string()});
                Deed::post("edit_customer", Needs::Customers, format!("/api/customers/edit/{}", self.model.customer), &fields)
            }
            _ => {
                let fields = json!({"name": name, "billing_bank_transfer_details": {"billing_account_id": account}});
                Deed::post("edit_customer", Needs::Customers, format!("/api/customers/edit/{}", self.model.customer), &fields)
            }
        };
        self.ask(deed, |_, _| true);
    }

    /// Tries to delete the entity that bills, or creates and deletes another one.
    pub(crate) fn delete_an_entity(&mut self) {
        let client = self.stage.client.clone();
        let entity = catalog::only(client.get("/api/entities/filter").ok());
        let path = |entity_ref: &str| format!("/api/entities/{entity_ref}");
        let own = path(entity["entity_ref"].as_str().expect("a reference"));
        if self.random.percent(50) {
            let deed = Deed::delete("delete_entity", WRITE, own).refused_by(&["entity_in_use"]);
            if self.ask(deed, |_, _| true).taken().is_some() {
                self.fail("the entity of all documents is gone");
            }
        } else {
            // No other request may see a second entity, so the stage does both.
            let spare = self.new_name("spare");
            let prefix = format!("S{}", self.named);
            client.post("/api/entities/", &json!({"entity_ref": spare, "name": spare, "number_prefix": prefix})).ok();
            self.ask_as(&client, "", None, Deed::delete("delete_entity", WRITE, path(&spare)), |_, _| true);
        }
    }

    /// Runs billing while the entity is `STRICT`: no document here has all legal particulars, so the run issues none of them. Once the
    /// entity is `LENIENT` again, the next run issues them all.
    pub(crate) fn run_with_strict_papers(&mut self) {
        self.edit_the_entity("STRICT");
        let client = self.stage.client.clone();
        let run = self.ask_as(&client, "", None, Self::billing_run(), |_, answer| did_something(answer)).taken();
        let run = run.expect("a run isn't rejected").body;
        let failed = run["failed"].as_array().expect("a list");
        if run["issued"] != json!([]) || failed.iter().any(|failure| failure["problem"]["code"] != "paper_incomplete") {
            self.fail(&format!("a run with strict papers answers {run}"));
        }
        self.edit_the_entity("LENIENT");
        self.run_by_the_stage();
    }

    fn edit_the_entity(&mut self, paper: &str) {
        let client = self.stage.client.clone();
        let entity = catalog::only(client.get("/api/entities/filter").ok());
        let path = format!("/api/entities/edit/{}", entity["entity_ref"].as_str().expect("a reference"));
        let deed = Deed::post("edit_entity", WRITE, path, &json!({"paper": paper})).reported(format!("papers are {paper}"));
        self.ask_as(&client, "", None, deed, |_, _| true);
    }

    fn make_the_account(&mut self, account: &str) {
        if !self.papers.has_account {
            let fields = json!({"billing_account_id": account, "iban": IBAN});
            let deed = Deed::post("create_bank_account", WRITE, "/api/bank_accounts/", &fields);
            self.papers.has_account = self.ask(deed, |_, _| true).taken().is_some();
        }
    }
}
