//! Plays a history: every step goes through the use cases and through the model, and both must agree on
//! whether it can be done.

use std::collections::BTreeMap;

use billing_application::catalog::{create_customer, create_entity, create_pricing, create_usage_product, edit_pricing};
use billing_application::contracts::{ContractRequest, create_contract};
use billing_application::documents::DocumentView;
use billing_application::error::UseCaseError;
use billing_application::usage::{
    EventUpdate, NO_ANSWER, NamedCustomer, NamedUsageProduct, NewUsageEvent, delete_event, record_event, update_event,
};
use billing_domain::calendar::Timestamp;
use billing_domain::patch::Patch;
use billing_domain::refs::{ContractRef, DocumentRef, EventRef};
use billing_domain::usage::MAX_AHEAD_SECONDS;
use billing_testkit::fixtures;

use crate::check::{Memory, check};
use crate::convert;
use crate::model::calendar::{midnight, service_date};
use crate::model::contract::{Period, Product, Wanted, usage_of};
use crate::model::{Event, Model};
use crate::preview::check_preview;
use crate::spec::*;
use crate::support::Bench;

/// What went wrong, in words.
pub(crate) type Checked<T = ()> = Result<T, String>;

/// Whether the rules allow a step.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Expected {
    Done,
    Refused,
    /// The model doesn't follow what it depends on.
    Either,
}

pub(crate) struct World {
    pub(crate) bench: Bench,
    pub(crate) model: Model,
    pub(crate) contracts: Vec<ContractRef>,
    pub(crate) events: Vec<EventRef>,
    /// What was seen after the step before.
    pub(crate) documents: Vec<DocumentView>,
    pub(crate) memory: Memory,
    /// Slots that were due at this instant are issued: set right after a billing run.
    pub(crate) billed_at: Option<Timestamp>,
    /// A contract all of whose documents must be issued: set right after it was cancelled at once.
    pub(crate) closed: Option<usize>,
}

const START: &str = "2026-01-20T12:00:00Z";

/// How often things happened.
pub(crate) type Reached = BTreeMap<String, u32>;

/// Plays all steps and tells what they reached, or the number of the one that failed, and how.
pub(crate) fn play(history: &History) -> Result<Reached, (usize, String)> {
    let mut world = World::new(&history.catalog);
    let mut reached = Reached::new();
    for (i, step) in history.steps.iter().enumerate() {
        let done = world.step(step).map_err(|problem| {
            let seen = crate::listed_documents(&world.documents);
            (i, format!("{problem}\n{seen}\nat {}", world.now()))
        })?;
        let name = format!("{step:?}");
        let name = name.split([' ', '{']).next().unwrap_or_default().to_owned();
        *reached.entry(format!("{name} {}", if done { "done" } else { "refused" })).or_insert(0) += 1;
    }
    for document in &world.documents {
        let how = format!("{:?} {:?} {:?}", document.kind, document.purpose, document.state);
        *reached.entry(how).or_insert(0) += 1;
    }
    Ok(reached)
}

pub(crate) fn expect(expected: Expected, what: &str, outcome: &Result<(), UseCaseError>) -> Checked {
    if let Err(error @ (UseCaseError::InvariantViolation(_) | UseCaseError::Store(_))) = outcome {
        return Err(format!("{what}: {error}"));
    }
    match (expected, outcome) {
        (Expected::Done, Err(error)) => Err(format!("{what} was refused: {error}")),
        (Expected::Refused, Ok(())) => Err(format!("{what} was taken, and the rules refuse it")),
        (Expected::Done | Expected::Either, Ok(())) | (Expected::Refused | Expected::Either, Err(_)) => Ok(()),
    }
}

impl World {
    fn new(catalog: &Catalog) -> Self {
        let bench = Bench::at(START);
        let (services, principal) = (&bench.services, &bench.principal);
        for (i, entity) in catalog.entities.iter().enumerate() {
            create_entity(services, principal, Some(convert::entity_ref(i)), convert::entity(entity, i)).expect("an entity");
        }
        for (i, customer) in catalog.customers.iter().enumerate() {
            let reference = fixtures::customer_ref(&format!("C{i}"));
            create_customer(services, principal, Some(reference), convert::customer(customer, i)).expect("a customer");
        }
        for (i, aggregation) in catalog.usage.iter().enumerate() {
            let reference = fixtures::usage_product_ref(convert::usage_name(i));
            let profile = convert::usage_product(i, *aggregation);
            create_usage_product(services, principal, Some(reference), profile).expect("a usage product");
        }
        for (i, pricing) in catalog.pricings.iter().enumerate() {
            let reference = fixtures::pricing_ref(&format!("P{i}"));
            create_pricing(services, principal, Some(reference), convert::pricing(pricing, i)).expect("a pricing");
        }
        Self {
            bench,
            model: Model::new(catalog.clone()),
            contracts: Vec::new(),
            events: Vec::new(),
            documents: Vec::new(),
            memory: Memory::default(),
            billed_at: None,
            closed: None,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.bench.now()
    }

    /// Whether it was done; a refusal is checked, too.
    fn step(&mut self, step: &Step) -> Checked<bool> {
        (self.billed_at, self.closed) = (None, None);
        let before = self.bench.store.fork();
        let done = self.apply(step)?;
        if !done {
            if !self.bench.store.holds_the_same_as(&before) {
                return Err("a refused step changed something".to_owned());
            }
            return Ok(false);
        }
        check(self).map(|()| true)
    }

    /// Does a step; `false` when it was refused, or there is nothing to do it to.
    fn apply(&mut self, step: &Step) -> Checked<bool> {
        match step {
            Step::Create { customer, products } => self.create(*customer, products),
            Step::EditPricing { pricing, content } => {
                self.model.catalog.pricings[*pricing] = content.clone();
                let reference = fixtures::pricing_ref(&format!("P{pricing}"));
                let content = convert::pricing(content, *pricing);
                edit_pricing(&self.bench.services, &self.bench.principal, &reference, &|_| Ok(content.clone()))
                    .map_err(|error| error.to_string())?;
                Ok(true)
            }
            Step::Edit { contract, current, po_number, products } => self.edit(*contract, *current, po_number, products.as_ref()),
            Step::Cancel { contract, current } => self.cancel(*contract, *current),
            Step::Event { customer, usage, of, when, quantity, checks } => {
                let (customer, usage) = of.and_then(|of| self.metered(of)).unwrap_or((*customer, *usage));
                self.report(customer, usage, *when, *quantity, *checks)
            }
            Step::Update { event, when, quantity, data } => self.update(*event, *when, *quantity, *data),
            Step::Delete { event } => self.delete(*event),
            Step::Issue { document } => self.issue(*document),
            Step::Void { document } => self.void(*document),
            Step::Pay { document, percent } => self.pay(*document, *percent),
            Step::Run => self.run(),
            Step::Clock { seconds } => {
                self.bench.clock.advance(*seconds);
                Ok(true)
            }
            Step::Preview => check_preview(self).map(|()| true),
        }
    }

    fn create(&mut self, customer: usize, products: &[ProductSpec]) -> Checked<bool> {
        let today = service_date("UTC", self.now());
        let wanted: Vec<Wanted> = products.iter().map(|product| convert::wanted(product, today)).collect();
        let predicted = self.model.created(customer, wanted.clone(), self.now());
        let request = ContractRequest {
            customer_ref: fixtures::customer_ref(&format!("C{customer}")),
            po_number: None,
            products: wanted.into_iter().map(convert::requested).collect(),
        };
        let made = create_contract(&self.bench.services, &self.bench.principal, &request);
        let outcome = made.map(|view| self.contracts.push(view.contract.contract_ref));
        expect(if predicted.is_some() { Expected::Done } else { Expected::Refused }, "a contract", &outcome)?;
        self.model.contracts.extend(predicted);
        Ok(outcome.is_ok())
    }

    /// A period of a contract's product.
    fn period(&self, contract: usize, product: usize, period: usize) -> Option<(&Product, &Period)> {
        let at = |i: usize, of: usize| if of == 0 { None } else { Some(i % of) };
        let contract = &self.model.contracts[at(contract, self.model.contracts.len())?];
        let product = &contract.products[at(product, contract.products.len())?];
        Some((product, &product.periods[at(period, product.periods.len())?]))
    }

    /// The customer of a contract, and something one of its products meters.
    fn metered(&self, (contract, product): (usize, usize)) -> Option<(usize, usize)> {
        let contract = self.model.contracts.get(contract % self.model.contracts.len().max(1))?;
        let product = &contract.products[product % contract.products.len()];
        let metered = product.newest_terms().items.iter().find_map(usage_of)?;
        Some((contract.customer, metered.usage))
    }

    fn instant(&self, when: When) -> Timestamp {
        match when {
            When::Ago(seconds) => self.now().plus_seconds(-seconds),
            When::Boundary { contract, product, period, seconds } => {
                self.period(contract, product, period).map_or(self.now(), |(product, period)| {
                    let entity = product.terms_of(period).entity;
                    midnight(self.model.zone(entity), period.start).plus_seconds(seconds)
                })
            }
            When::Inside { contract, product, period, thousandths } => {
                self.period(contract, product, period).map_or(self.now(), |(product, period)| {
                    let entity = product.terms_of(period).entity;
                    let seconds = period.share().0 * 86_400 * thousandths / 1_000;
                    midnight(self.model.zone(entity), period.start).plus_seconds(seconds).min(self.now())
                })
            }
        }
    }

    fn report(
        &mut self,
        customer: usize,
        usage: usize,
        when: When,
        quantity: Amount,
        checks: Option<ChecksSpec>,
    ) -> Checked<bool> {
        let at = self.instant(when);
        let ahead = at > self.now().plus_seconds(MAX_AHEAD_SECONDS);
        let place = if ahead { None } else { self.model.place(customer, usage, at, checks) };
        let event = NewUsageEvent {
            customer: NamedCustomer::Ref(fixtures::customer_ref(&format!("C{customer}"))),
            usage_product: NamedUsageProduct::Ref(fixtures::usage_product_ref(convert::usage_name(usage))),
            occurred_at: at,
            quantity: convert::quantity(quantity),
            report_data: None,
            validations: checks.map(convert::validations),
            formatted: None,
            sent: None,
        };
        let taken = record_event(&self.bench.services, &self.bench.principal, event, &NO_ANSWER);
        let outcome = taken.map(|taken| self.events.push(taken.now().expect("no repeat").event.event_ref));
        expect(if place.is_some() { Expected::Done } else { Expected::Refused }, &format!("an event at {at}"), &outcome)?;
        self.model.events.extend(place.map(|place| Event {
            customer,
            usage,
            at,
            quantity,
            checks,
            data: None,
            place,
            deleted: false,
        }));
        Ok(outcome.is_ok())
    }

    /// Changes an event twice with the same request: the second time changes nothing.
    fn update(&mut self, event: usize, when: Option<When>, quantity: Option<Amount>, data: Option<u8>) -> Checked<bool> {
        if self.events.is_empty() {
            return Ok(false);
        }
        let index = event % self.events.len();
        let at = when.map(|when| self.instant(when));
        let mut next = self.model.events[index].clone();
        let present = next.clone();
        (next.at, next.quantity, next.data) = (at.unwrap_or(next.at), quantity.unwrap_or(next.quantity), data.or(next.data));
        let same = (next.at, next.quantity, next.data) == (present.at, present.quantity, present.data);
        let ahead = next.at != present.at && next.at > self.now().plus_seconds(MAX_AHEAD_SECONDS);
        let place = if next.at == present.at {
            Some(present.place)
        } else {
            self.model.place(next.customer, next.usage, next.at, next.checks)
        };
        let stays = place == Some(present.place);
        let allowed = !present.deleted && !ahead && place.is_some() && (same || !stays || self.model.checks_hold(&present));
        let update = EventUpdate {
            occurred_at: at,
            quantity: quantity.map(convert::quantity),
            report_data: data.map_or(Patch::Keep, |data| Patch::Set(convert::report_data(data))),
            ..EventUpdate::default()
        };
        let make = || update_event(&self.bench.services, &self.bench.principal, self.events[index], &update);
        let made = make();
        let outcome = made.map(|_| ());
        let what = format!("an update of event {index}");
        expect(if allowed { Expected::Done } else { Expected::Refused }, &what, &outcome)?;
        if outcome.is_err() {
            return Ok(false);
        }
        next.place = place.unwrap_or(next.place);
        self.model.events[index] = next;
        let once = self.bench.store.fork();
        make().map_err(|error| format!("{what}, again: {error}"))?;
        if !self.bench.store.holds_the_same_as(&once) {
            return Err(format!("{what}, again, changed something"));
        }
        Ok(true)
    }

    /// Deletes an event twice: the second time it is unknown.
    fn delete(&mut self, event: usize) -> Checked<bool> {
        if self.events.is_empty() {
            return Ok(false);
        }
        let index = event % self.events.len();
        let expected = if self.model.events[index].deleted { Expected::Refused } else { Expected::Done };
        let delete = || delete_event(&self.bench.services, &self.bench.principal, self.events[index]);
        let outcome = delete();
        expect(expected, &format!("the deletion of event {index}"), &outcome)?;
        self.model.events[index].deleted = true;
        let once = self.bench.store.fork();
        if delete().is_ok() || !self.bench.store.holds_the_same_as(&once) {
            return Err("an event was deleted twice".to_owned());
        }
        Ok(outcome.is_ok())
    }
}

pub(crate) fn reference(view: &DocumentView) -> DocumentRef {
    view.opened.as_ref().expect("a stored document").document_ref
}
