//! Operations on the contract and its documents.

use acceptance::naive::Terms;
use acceptance::{Answer, books};
use serde_json::{Value, json};

use crate::histories::asking::{Deed, Ended};
use crate::histories::history::History;
use crate::histories::senders::Needs;

const DOCUMENTS: Needs = Needs::Scope("documents:write");
const CONTRACTS: Needs = Needs::Scope("contracts:write");

impl History<'_> {
    pub(crate) fn a_document(&mut self) -> Option<Value> {
        self.place_in(self.seen.len()).map(|place| self.seen[place].clone())
    }

    pub(crate) fn issue(&mut self) {
        self.act_on_a_document("issue", "issue_document", &["not_a_draft"]);
    }

    pub(crate) fn void(&mut self) {
        let refusals = &["not_voidable", "not_issued", "document_paid", "document_has_dependents"];
        self.act_on_a_document("void", "void_document", refusals);
    }

    fn act_on_a_document(&mut self, action: &str, operation: &'static str, refusals: &'static [&'static str]) {
        let Some(document) = self.a_document() else { return self.report() };
        let path = format!("/api/documents/{action}/{}", document["document_ref"].as_str().expect("a reference"));
        let deed = Deed::post_nothing(operation, DOCUMENTS, path).refused_by(refusals);
        self.ask(deed.reported(format!("{action} {}", document["document_number"])), |_, _| true);
    }

    pub(crate) fn pay(&mut self) {
        let Some(document) = self.a_document() else { return self.report() };
        let path = format!("/api/documents/payments/{}", document["document_ref"].as_str().expect("a reference"));
        let amount = self.random.between(1, 60);
        let deed = Deed::post("record_payment", DOCUMENTS, path, &json!({"amount": amount}));
        let deed = deed.refused_by(&["not_owed", "validation_failed"]);
        if self.ask(deed.reported(format!("pay {amount} of {}", document["document_number"])), |_, _| true).taken().is_some() {
            self.paid += 100 * amount;
        }
    }

    /// Records a deposit, which pays open documents and then the next ones.
    pub(crate) fn deposit(&mut self) {
        let path = format!("/api/customers/payments/{}", self.model.customer);
        let amount = self.random.between(1, 60);
        let deed = Deed::post("record_deposit", DOCUMENTS, path, &json!({"currency": "EUR", "amount": amount}));
        if self.ask(deed.reported(format!("deposit {amount}")), |_, _| true).taken().is_some() {
            self.paid += 100 * amount;
        }
    }

    /// Checks that the customer owes the issued amounts minus the payments.
    ///
    /// # Errors
    /// Returns an error if the balance differs.
    pub(crate) fn check_balance(&self) -> Result<(), String> {
        books::check_owed(&self.stage.client, &self.model.customer, &self.seen, self.paid)
    }

    pub(crate) fn billing_run() -> Deed {
        Deed::post("run_billing", DOCUMENTS, "/api/billing/run", &json!({}))
    }

    pub(crate) fn run(&mut self) {
        let ended = self.ask(Self::billing_run(), |_, answer| did_something(answer));
        self.check_run(ended);
    }

    /// Runs billing as a caller with permission.
    pub(crate) fn run_by_the_stage(&mut self) {
        let client = self.stage.client.clone();
        let ended = self.ask_as(&client, "", None, Self::billing_run(), |_, answer| did_something(answer));
        self.check_run(ended);
    }

    fn check_run(&self, ended: Ended) {
        if let Some(answer) = ended.taken()
            && answer.body["failed"] != json!([])
        {
            self.fail(&answer.text);
        }
    }

    fn version(&self) -> Value {
        self.stage.client.get(&format!("/api/contracts/{}", self.contract_ref)).ok()["version"].clone()
    }

    pub(crate) fn edit(&mut self) {
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
        let deed = Deed::post("edit_contract", CONTRACTS, format!("/api/contracts/edit/{}", self.contract_ref), &edit);
        let deed = deed.reported(format!("edit to {terms:?}, include current {include_current}"));
        match self.ask(deed.refused_by(self.over_or_late()), |history, _| history.version() != before) {
            Ended::Taken(_) => self.model.edited(terms, include_current),
            Ended::Refused(_) | Ended::Barred => {}
        }
    }

    pub(crate) fn cancel(&mut self) {
        let now = self.random.percent(50);
        let path = format!("/api/contracts/cancel/{}", self.contract_ref);
        let deed = Deed::post("cancel_contract", CONTRACTS, path, &json!({"include_current_invoice": now}));
        let deed = deed.reported(format!("cancel, now {now}"));
        if self.ask(deed.refused_by(self.over()), |_, _| true).taken().is_some() {
            self.model.cancelled(now);
        }
    }

    /// Returns the error codes for an edit, which is rejected if it would take effect after the contract's last day.
    fn over_or_late(&self) -> &'static [&'static str] {
        if self.model.is_cancelled { &["contract_over"] } else { &["product_over"] }
    }

    /// Returns the error codes for changes: a contract that isn't canceled can be changed.
    fn over(&self) -> &'static [&'static str] {
        if self.model.is_cancelled { &["contract_over"] } else { &[] }
    }
}

/// Returns whether a billing run issued or voided a document.
pub(crate) fn did_something(answer: &Answer) -> bool {
    answer.body["issued"] != json!([]) || answer.body["voided"] != json!([])
}
