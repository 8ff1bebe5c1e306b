//! Compares only terms: the terms in force on each day by the model and by `contract::amendment`.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::calendar::{Period as Days, TimeZone, Timestamp};
use billing_domain::contract::amendment::{Amendment, AmendmentContext, cancelled, edited, resumed, with_quantity};
use billing_domain::contract::terms::ProductTerms;
use billing_domain::contract::{Contract, ContractProduct};
use billing_domain::refs::ProductNo;
use billing_domain::refusal::Refusal;

use crate::histories::concrete;
use crate::histories::convert;
use crate::histories::model::calendar::service_date;
use crate::histories::model::terms::{Product, Terms};
use crate::histories::model::{Facts, Model, Verdict};
use crate::histories::spec::*;

pub(crate) const START: &str = "2026-01-20T12:00:00Z";

/// The number of times that each outcome was reached.
pub(crate) type Reached = BTreeMap<String, u32>;

struct World {
    model: Model,
    contract: Contract,
    now: Timestamp,
    reached: Reached,
}

/// Plays the steps that concern terms. Returns the reached outcomes, or the number of the failed step and its problem.
pub(crate) fn play(history: &History) -> Result<Reached, (usize, String)> {
    let now = convert::at(START);
    let elements: Vec<Element> = history.products.iter().map(|spec| concrete::element(spec, service_date("UTC", now))).collect();
    let made = convert::contract(&elements, &history.catalog, now);
    let model = Model::created(history.catalog.clone(), &elements);
    let (model, contract) = match (model, made) {
        (Ok(model), Ok(contract)) => (model, contract),
        (Err(_), Err(_)) => return Ok(Reached::from([("Create refused".to_owned(), 1)])),
        (Ok(_), Err(why)) => return Err((0, format!("a create was refused: {why}"))),
        (Err(why), Ok(_)) => return Err((0, format!("a create was taken, but: {why}"))),
    };
    let mut world = World { model, contract, now, reached: Reached::from([("Create taken".to_owned(), 1)]) };
    world.compare().map_err(|problem| (0, problem))?;
    for (i, step) in history.steps.iter().enumerate() {
        world.step(step).and_then(|()| world.compare()).map_err(|problem| (i + 1, problem))?;
    }
    Ok(world.reached)
}

impl World {
    fn facts(&self) -> Facts {
        let issued = self.model.products.iter().flat_map(|product| {
            let past = product
                .periods
                .iter()
                .filter(|period| period.end <= service_date(self.model.zone(period.terms.entity), self.now));
            past.map(|period| (product.no, period.start))
        });
        let begun: BTreeSet<u16> = issued.map(|(no, _)| no).collect();
        // Plans do not decide whether an issued document prevents a change of structure.
        Facts { begun, ..Facts::default() }
    }

    fn decide(
        &self,
        facts: &Facts,
        decide: impl FnOnce(&AmendmentContext<'_>) -> Result<Amendment, Refusal>,
    ) -> Result<Contract, Refusal> {
        let zones: Vec<TimeZone> =
            self.model.catalog.entities.iter().map(|entity| TimeZone::parse(entity.zone).expect("a zone")).collect();
        let today = |terms: &ProductTerms| {
            let index: usize = terms.entity_ref.as_str()[1..].parse().expect("an entity's number");
            zones[index].service_date(self.now)
        };
        let has_activity = |no: ProductNo| facts.begun.contains(&no.0);
        decide(&AmendmentContext { today: &today, has_activity: &has_activity }).map(|amendment| amendment.contract)
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        let facts = self.facts();
        match step {
            Step::EditPricing { pricing, content } => {
                self.model.catalog.pricings[*pricing] = content.clone();
                Ok(())
            }
            Step::EditCustomer { entity, .. } => {
                self.model.catalog.customer.entity = *entity;
                Ok(())
            }
            Step::Clock { seconds } => {
                self.now = self.now.plus_seconds(*seconds);
                Ok(())
            }
            Step::Edit { .. } => {
                let request = self.model.request(step, self.now);
                let verdict = self.model.edited(&request, &facts, self.now);
                let made = self.decide(&facts, |situation| {
                    let catalog = convert::catalog(&self.model.catalog);
                    edited(&self.contract, &convert::edit(&request, &self.contract), &catalog, situation)
                });
                self.take("edit", verdict, made, &request, |_, _| {})
            }
            Step::Quantity { .. } => {
                let Some(request) = self.model.quantity_request(step, self.now) else { return Ok(()) };
                let verdict = self.model.with_quantity(&request, self.now);
                let product = self.model.product(request.product);
                let change = convert::quantity_change(&request, product.pricing(), product.start());
                let made = self.decide(&facts, |situation| with_quantity(&self.contract, &change, situation));
                self.take("quantity", verdict, made, &request, |_, _| {})
            }
            Step::Cancel { last_day } => {
                let last_day = self.model.last_day(*last_day, self.now);
                // Plans do not decide which states can be cancelled.
                let verdict = match self.model.cancelled(last_day, self.now) {
                    Verdict::Refuse("cancelled twice") => return Ok(()),
                    Verdict::May(why, _) => Verdict::Skip(why),
                    other => other,
                };
                let made =
                    self.decide(&facts, |situation| cancelled(&self.contract, convert::last_day(last_day), self.now, situation));
                self.take("cancel", verdict, made, &last_day, |model, before| {
                    model.before_cancel.get_or_insert(before);
                })
            }
            Step::Resume => {
                let verdict = match self.model.resumed(self.now) {
                    Verdict::Take(products) => Verdict::Take(products),
                    _ => return Ok(()),
                };
                let made = Ok(resumed(&self.contract).contract);
                self.take("resume", verdict, made, &(), |model, _| {
                    model.was_resumed = true;
                    model.before_cancel = None;
                })
            }
            _ => Ok(()),
        }
    }

    fn take(
        &mut self,
        what: &str,
        verdict: Verdict<Vec<Product>>,
        made: Result<Contract, Refusal>,
        request: &impl std::fmt::Debug,
        and: impl FnOnce(&mut Model, Vec<Product>),
    ) -> Result<(), String> {
        let mut note = |fate: &str| *self.reached.entry(format!("{what} {fate}")).or_insert(0) += 1;
        let (products, contract) = match (verdict, made) {
            // A refusal because of documents or usage comes from the ledger.
            (Verdict::Refuse("contract_over" | "usage_already_reported"), _) => return Ok(()),
            (Verdict::Skip(why), _) => {
                note(&format!("skipped: {why}"));
                return Ok(());
            }
            (Verdict::Refuse(why), Err(refusal)) => {
                note(&format!("refused: {why}"));
                let _ = refusal;
                return Ok(());
            }
            (Verdict::May(why, _), Err(_)) => {
                note(&format!("may be, and was refused: {why}"));
                return Ok(());
            }
            (Verdict::Refuse(why), Ok(contract)) => {
                return Err(format!("the {what} {request:?} was taken, but: {why}; {:?}", plan(&contract)));
            }
            (Verdict::Take(_), Err(refusal)) => return Err(format!("the {what} {request:?} was refused: {refusal:?}")),
            (Verdict::Take(products), Ok(contract)) => {
                note("taken");
                (products, contract)
            }
            (Verdict::May(why, products), Ok(contract)) => {
                note(&format!("may be, and was taken: {why}"));
                (products, contract)
            }
        };
        self.model.first_day =
            products.iter().map(Product::start).min().map_or(self.model.first_day, |start| start.min(self.model.first_day));
        let before = std::mem::replace(&mut self.model.products, products);
        let reported = plan(&self.contract);
        self.contract = contract;
        and(&mut self.model, before);
        self.compare().map_err(|problem| format!("{problem}\nafter the {what} {request:?}\non {} of {reported:#?}", self.now))
    }

    /// Compares each period of each product, with its terms.
    fn compare(&self) -> Result<(), String> {
        for product in &self.model.products {
            let theirs = self.contract.products.iter().find(|other| other.no.0 == product.no);
            let theirs = theirs.ok_or_else(|| format!("product {} is missing", product.no))?;
            self.compare_product(product, theirs)?;
        }
        if self.contract.products.len() != self.model.products.len() {
            return Err(format!("{} products, not {}", self.contract.products.len(), self.model.products.len()));
        }
        Ok(())
    }

    fn compare_product(&self, product: &Product, theirs: &ContractProduct) -> Result<(), String> {
        let shown = |span: Days, whole: Days| format!("{span:?} of {whole:?}");
        let mut of_theirs = theirs.periods();
        for period in product.periods.iter() {
            let other = of_theirs.next().ok_or_else(|| format!("product {} lacks the period of {}", product.no, period.start))?;
            let expected = shown(
                Days::new(period.start, period.end).expect("days"),
                Days::new(period.whole.0, period.whole.1).expect("days"),
            );
            let is = shown(other.days(), other.period.nominal());
            if expected != is {
                return Err(format!("product {} has the period {is}, not {expected}", product.no));
            }
            self.compare_terms(&period.terms, other.terms)
                .map_err(|problem| format!("product {}, {is}: {problem}", product.no))?;
            for item in &period.terms.items {
                let id = billing_domain::refs::LineItemId::parse(item.id).expect("an id");
                let first = self.contract.once_billed_in(&convert::pricing_ref(period.terms.pricing), &id);
                let first = first.map(|(start, no)| (start, no.0));
                if first != self.model.first_with(period.terms.pricing, item.id) {
                    return Err(format!("product {}, {is}: {first:?} is the first with {id}", product.no));
                }
            }
        }
        match of_theirs.next() {
            None => Ok(()),
            Some(other) => Err(format!("product {} has the period {:?} more", product.no, other.days())),
        }
    }

    fn compare_terms(&self, terms: &Terms, other: &ProductTerms) -> Result<(), String> {
        let mut items: Vec<_> = terms.items.iter().map(|item| convert::selected(item, &self.model.catalog.usage)).collect();
        let mut theirs = other.line_items.to_vec();
        items.sort_by(|a, b| a.id.cmp(&b.id));
        theirs.sort_by(|a, b| a.id.cmp(&b.id));
        let checks = [
            ("entity", convert::entity_ref(terms.entity) == other.entity_ref),
            ("payment_time", terms.payment_time == other.payment_time),
            ("tax", terms.tax.map(convert::rate) == other.tax),
            ("tax_category", terms.category.map(convert::basis).unwrap_or_default() == other.treatment),
            (
                "discount",
                terms.discount.unwrap_or(0) == 0 && other.discount.is_none()
                    || terms.discount.map(convert::rate) == other.discount,
            ),
            ("minimum_fee", terms.minimum_fee.map(convert::price) == other.pricing.minimum_fee),
            ("currency", terms.currency == other.pricing.currency.code()),
            ("issue_day", terms.issue_day == other.schedule.issue_day()),
        ];
        if let Some((what, _)) = checks.iter().find(|(_, same)| !same) {
            return Err(format!("another {what}: {terms:?}, and {other:?}"));
        }
        if items != theirs {
            let odd = items.iter().filter(|item| !theirs.contains(item));
            let other = theirs.iter().filter(|item| !items.contains(item));
            return Err(format!("line items are {:?}, not {:?}", other.collect::<Vec<_>>(), odd.collect::<Vec<_>>()));
        }
        Ok(())
    }
}

/// Describes the plan of each product.
fn plan(contract: &Contract) -> Vec<String> {
    let of = |product: &ContractProduct| {
        let segments = product.segments.iter().map(|segment| match &segment.agreed {
            billing_domain::contract::SegmentTerms::Billed(terms) => {
                format!("v{} {}: {:?}", segment.version, segment.in_force_from, terms.schedule.range())
            }
            billing_domain::contract::SegmentTerms::Ended(reason) => {
                format!("v{} {}: {reason:?}", segment.version, segment.in_force_from)
            }
        });
        format!("{:?}: {}", product.no, segments.collect::<Vec<_>>().join("; "))
    };
    contract.products.iter().map(of).collect()
}
