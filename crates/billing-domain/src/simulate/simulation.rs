//! A simulation: the contract, and the steps that change it.

use std::fmt;
use std::sync::Arc;

use super::bill::Bill;
use super::life::Life;
use super::party::{CustomerChange, EntityChange};
use super::price::PriceList;
use super::setup::Setup;
use super::terms::Terms;
use super::value::{Given, StepTime};
use crate::calendar::{Timestamp, day_after};
use crate::ledger::amend::BackdatingPolicy;
use crate::quantity::Quantity;
use crate::refs::UsageProductRef;
use crate::refusal::Refusal;

/// The life of a contract. An entity `UB` in UTC bills a customer, and every document is issued when it is due.
///
/// Steps run in the order of time. Steps at the same instant run in the order in which they were added.
#[derive(Clone, Debug)]
#[must_use = "a simulation tells what it bills with `until`"]
pub struct Simulation {
    pub(super) setup: Setup,
    steps: Vec<Step>,
}

/// The action of a step.
type Action = Arc<dyn Fn(&mut Life) -> Result<(), Refusal> + Send + Sync>;

/// A step at an instant.
#[derive(Clone)]
struct Step {
    at: Given<StepTime>,
    action: Action,
    name: Option<String>,
    refused: Option<String>,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {:?} on {:?}", self.name, self.at)
    }
}

impl Default for Simulation {
    fn default() -> Self {
        let setup = Setup {
            customer: Vec::new(),
            entities: Vec::new(),
            pricings: Vec::new(),
            terms: Vec::new(),
            created: None,
            backdated: BackdatingPolicy::Refused,
            runs: true,
        };
        Self { setup, steps: Vec::new() }
    }
}

impl Simulation {
    /// Returns a simulation with an empty contract.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a product to the contract, with its terms.
    pub fn contract(mut self, terms: Terms) -> Self {
        self.setup.terms.push(terms);
        self
    }

    /// Adds a pricing that products and edits can name.
    pub fn pricing(mut self, prices: PriceList) -> Self {
        self.setup.pricings.push(prices);
        self
    }

    /// Sets the initial customer.
    pub fn customer(mut self, customer: CustomerChange) -> Self {
        self.setup.customer.push(customer);
        self
    }

    /// Sets an initial entity: `default`, or an additional entity. Unless a prefix is set, the number prefix consists of
    /// the letters and digits of the entity's reference.
    pub fn entity(mut self, entity: EntityChange) -> Self {
        self.setup.entities.push(entity);
        self
    }

    /// Sets the creation time of the contract. Defaults to the beginning of its first day, or to the time of the first
    /// step if that is earlier.
    pub fn created(mut self, at: impl Into<Given<StepTime>>) -> Self {
        self.setup.created = Some(at.into());
        self
    }

    /// Allows the creation to make up to 1,200 documents due at once instead of 24 (billing rules 1.6).
    pub const fn allow_backdated(mut self) -> Self {
        self.setup.backdated = BackdatingPolicy::Allowed;
        self
    }

    /// Turns automatic runs off. Documents are then issued only by [`run`](super::StepBuilder::run), by
    /// [`issue`](super::StepBuilder::issue) and by steps that issue at once.
    pub const fn without_runs(mut self) -> Self {
        self.setup.runs = false;
        self
    }

    /// Adds usage that is reported when it happens.
    pub fn event(
        self,
        at: impl Into<Given<StepTime>>,
        usage: impl Into<Given<UsageProductRef>>,
        quantity: impl Into<Given<Quantity>>,
    ) -> Self {
        let at = at.into();
        self.late_event(at.clone(), usage, quantity, at)
    }

    /// Adds usage that is reported later.
    pub fn late_event(
        self,
        at: impl Into<Given<StepTime>>,
        usage: impl Into<Given<UsageProductRef>>,
        quantity: impl Into<Given<Quantity>>,
        reported_at: impl Into<Given<StepTime>>,
    ) -> Self {
        self.on(reported_at).event(at, usage, quantity)
    }

    /// Names the last step: an event, a payment or a refund that later steps change.
    pub fn named(mut self, name: &str) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.name = Some(name.to_owned());
        }
        self
    }

    /// Expects that the last step is rejected with a code and changes nothing. Otherwise, [`Self::until`] returns the
    /// error `not_refused`.
    pub fn refused(mut self, code: &str) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.refused = Some(code.to_owned());
        }
        self
    }

    pub(super) fn step(
        mut self,
        at: Given<StepTime>,
        action: impl Fn(&mut Life) -> Result<(), Refusal> + Send + Sync + 'static,
    ) -> Self {
        self.steps.push(Step { at, action: Arc::new(action), name: None, refused: None });
        self
    }

    /// Returns all documents at an instant, or at the end of a day in the time zone of the first entity.
    ///
    /// # Errors
    /// - Returns a [`Refusal`] if a value is invalid.
    /// - Returns a [`Refusal`] if the rules reject the contract, or a step without an [expected
    ///   rejection](Self::refused).
    /// - Returns [`Refusal::Broken`] if the documents break a rule, which is a defect of this crate.
    pub fn until(&self, end: impl Into<Given<StepTime>>) -> Result<Bill, Refusal> {
        let zone = self.setup.zone()?;
        let end = match end.into().read("until")? {
            StepTime::Noon(day) => zone.start_of_day(day_after(day)).plus_seconds(-1),
            instant @ StepTime::Instant(_) => instant.in_zone(zone),
        };
        let mut steps: Vec<(Timestamp, &Step)> =
            self.steps.iter().map(|step| Ok((self.setup.instant(&step.at)?, step))).collect::<Result<_, Refusal>>()?;
        steps.sort_by_key(|(at, _)| *at);
        let mut life = Life::begin(&self.setup, steps.first().map(|(at, _)| *at))?;
        for (at, step) in steps.into_iter().take_while(|(at, _)| *at <= end) {
            life.go_to(at)?;
            step.take(&mut life)?;
        }
        life.go_to(end)?;
        Bill::of(life)
    }
}

impl Step {
    fn take(&self, life: &mut Life) -> Result<(), Refusal> {
        life.name.clone_from(&self.name);
        let Some(code) = &self.refused else { return (self.action)(life) };
        let before = life.clone();
        match (self.action)(life) {
            Err(refusal) if refusal.has_code(code) => {
                *life = before;
                Ok(())
            }
            Err(refusal) => Err(refusal),
            Ok(()) => Err(Refusal::conflict("not_refused", format!("{self:?} isn't refused with {code}"))),
        }
    }
}
