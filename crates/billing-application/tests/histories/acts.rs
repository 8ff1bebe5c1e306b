//! Steps that act on documents: issue, void, pay, and the billing run.

use std::collections::BTreeMap;

use billing_application::billing_run::{BillingReport, run_billing};
use billing_application::documents::{DocumentView, PaymentRequest, Related, issue_document, record_payment, void_document};
use billing_domain::document::totals::{BilledProduct, DocumentLine};
use billing_domain::document::{DocumentKind, DocumentState, Purpose};
use billing_domain::money::Money;

use crate::world::{Checked, Expected, World, expect, reference};

impl World {
    /// A document of those in some states.
    fn document(&self, number: usize, states: &[DocumentState]) -> Option<&DocumentView> {
        let of_state: Vec<_> = self.documents.iter().filter(|document| states.contains(&document.state)).collect();
        if of_state.is_empty() { None } else { Some(of_state[number % of_state.len()]) }
    }

    pub(crate) fn issue(&mut self, document: usize) -> Checked<bool> {
        let Some(draft) = self.document(document, &[DocumentState::Draft]) else { return Ok(false) };
        let made = issue_document(&self.bench.services, &self.bench.principal, reference(draft));
        expect(Expected::Done, "the issue of a draft", &made.map(|_| ()))?;
        Ok(true)
    }

    /// Documents with dependents, payments or a parent of their own may refuse.
    pub(crate) fn void(&mut self, document: usize) -> Checked<bool> {
        use DocumentState::{Draft, Issued, Paid};
        let Some(view) = self.document(document, &[Issued, Issued, Paid, Draft]) else { return Ok(false) };
        let opened = view.opened.as_ref().expect("a stored document");
        let bound = |related: &Related| related.state != DocumentState::Void;
        let regular = matches!(view.purpose, Purpose::Regular(_));
        let free = !opened.related.iter().any(bound) && view.settlement.paid.minor() == 0;
        let free = free && !self.is_corrected(view);
        let expected = match (view.state != Draft && regular && free, self.bills_usage_of_another_place(view)) {
            (false, _) => Expected::Refused,
            (true, true) => Expected::Either,
            (true, false) => Expected::Done,
        };
        let made = void_document(&self.bench.services, &self.bench.principal, reference(view));
        let outcome = made.map(|_| ());
        expect(expected, "a void", &outcome)?;
        Ok(outcome.is_ok())
    }

    /// Whether a child or an adjustment bills what a document bills: those of a usage debit name the period's invoice.
    fn is_corrected(&self, view: &DocumentView) -> bool {
        let keys = |view: &DocumentView| {
            let of_product = |product: &BilledProduct| {
                let key = |line: &DocumentLine| (product.product_no, line.service_period.start(), line.line_item_id.clone());
                product.lines.iter().map(key).collect::<Vec<_>>()
            };
            view.content.products.iter().flat_map(of_product).collect::<Vec<_>>()
        };
        let own = keys(view);
        let others = self.documents.iter().filter(|other| other.contract_ref == view.contract_ref);
        let mut corrections =
            others.filter(|other| !matches!(other.purpose, Purpose::Regular(_)) && other.state != DocumentState::Void);
        corrections.any(|other| keys(other).iter().any(|key| own.contains(key)))
    }

    /// Whether an amendment has put usage that a document bills on another document since.
    fn bills_usage_of_another_place(&self, view: &DocumentView) -> bool {
        let contract = &self.model.contracts[self.contract_of(view)];
        view.content.products.iter().any(|billed| {
            let product = contract.products.iter().find(|product| product.no == billed.product_no.0).expect("a product");
            billed.lines.iter().any(|line| {
                let start = line.service_period.start();
                let index = product.periods.iter().position(|period| period.start == start);
                index.map(|index| product.usage_slot(index)).is_none_or(|(own, slot)| {
                    let place = (product.periods[own].start, Purpose::Regular(slot));
                    (line.usage.is_some() || line.line_item_id.is_none()) && place != (view.period.start(), view.purpose)
                })
            })
        })
    }

    pub(crate) fn pay(&mut self, document: usize, percent: u64) -> Checked<bool> {
        use DocumentState::{Issued, PartiallyPaid};
        let Some(view) = self.document(document, &[Issued, PartiallyPaid]) else { return Ok(false) };
        let minor = view.amount_due.minor() * i64::try_from(percent).expect("a percentage") / 100;
        let amount = Money::from_minor(minor, view.currency);
        let request = PaymentRequest { amount: amount.to_decimal().to_string(), paid_date: None, reference: None };
        let made = record_payment(&self.bench.services, &self.bench.principal, reference(view), &request);
        let outcome = made.map(|_| ());
        let takes_payments = view.kind != DocumentKind::Credit;
        expect(if minor > 0 && takes_payments { Expected::Done } else { Expected::Refused }, "a payment", &outcome)?;
        Ok(outcome.is_ok())
    }

    /// Runs the billing dry, then really, then again: what the first says the second does, and the third does
    /// nothing.
    pub(crate) fn run(&mut self) -> Checked<bool> {
        let bill = |dry_run| {
            let report = run_billing(&self.bench.services, &self.bench.principal, dry_run).map_err(|error| error.to_string())?;
            match report.failed.first() {
                Some(failed) => Err(format!("the billing run failed: {}", failed.problem)),
                None => Ok(report),
            }
        };
        let before = self.bench.store.fork();
        let dry = bill(true)?;
        if !self.bench.store.holds_the_same_as(&before) {
            return Err("a dry run changed something".to_owned());
        }
        let real = bill(false)?;
        if totals(&dry) != totals(&real) {
            return Err(format!("the dry run told {dry:?}, the run did {real:?}"));
        }
        let once = self.bench.store.fork();
        let again = bill(false)?;
        if !again.issued.is_empty() || !again.voided.is_empty() || !self.bench.store.holds_the_same_as(&once) {
            return Err(format!("a second billing run did {again:?}"));
        }
        self.billed_at = Some(self.now());
        Ok(true)
    }
}

fn totals(report: &BillingReport) -> BTreeMap<String, usize> {
    let mut totals = BTreeMap::new();
    let named = report.issued.iter().map(|issued| (issued, "issued")).chain(report.voided.iter().map(|void| (void, "void")));
    for (document, fate) in named {
        *totals.entry(format!("{fate} {:?} {}", document.kind, document.total)).or_insert(0) += 1;
    }
    totals
}
