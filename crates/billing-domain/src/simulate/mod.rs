//! The front door: terms, what happens and a day → the documents. It shows what an agreement bills, and tests of billing rules
//! are written with it. It needs no store, no server and no clock.
//!
//! ```
//! use billing_domain::simulate::{Simulation, graduated, terms};
//!
//! # fn main() -> Result<(), billing_domain::refusal::Refusal> {
//! let prices = graduated([(Some("100"), "0.10"), (Some("1000"), "0.05"), (None, "0.01")]);
//! let bill = Simulation::new()
//!     .contract(terms("2026-01-15", "2026-12-31").fixed("platform", "49.00").usage("calls", prices).tax("19"))
//!     .event("2026-02-10T12:00:00Z", "calls", "1500")
//!     .event("2026-03-02T09:00:00Z", "calls", "200")
//!     .until("2026-03-05")?;
//! let january = &bill.documents()[0];
//! assert_eq!(january.to_string(), "UB-INV-1 ISSUED 2026-01-15…2026-01-31: 31.98 EUR");
//! assert_eq!(bill.documents()[1].total().to_string(), "129.71 EUR");
//! assert_eq!(bill.documents()[2].to_string(), "UB-INV-3 DRAFT 2026-03-01…2026-03-31: 76.16 EUR");
//! # Ok(())
//! # }
//! ```
//!
//! What happens later is a step at a time, and a step can be refused:
//!
//! ```
//! use billing_domain::simulate::{Simulation, item, terms};
//!
//! # fn main() -> Result<(), billing_domain::refusal::Refusal> {
//! let cheaper = item("fee").price("90.00");
//! let bill = Simulation::new()
//!     .contract(terms("2026-01-01", "2026-12-31").pricing("plan").fixed("fee", "100.00"))
//!     .on("2026-03-10")
//!     .edit(|contract| contract.effective_from("2026-02-01").product("plan", |plan| plan.line_item(cheaper)))
//!     .on("2026-04-10")
//!     .cancel_on("2025-01-01")
//!     .refused("out_of_range")
//!     .until("2026-04-30")?;
//! assert_eq!(bill.document("UB-CRD-1").to_string(), "UB-CRD-1 ISSUED 2026-02-01…2026-02-28: 10.00 EUR");
//! assert_eq!(bill.owed().to_string(), "280.00 EUR");
//! # Ok(())
//! # }
//! ```

mod bill;
mod change;
mod document;
mod events;
mod life;
mod money;
mod party;
mod price;
mod step;
mod terms;
mod value;

use std::fmt;
use std::sync::Arc;

pub use bill::Bill;
pub use change::{ContractChange, QuantityEdit, quantity_of};
pub use document::{SimulatedDocument, SimulatedLine, overview};
pub use events::EventChange;
pub use party::{ChargeChange, ChargeTerms, CustomerChange, DefaultTax, EntityChange, charge, customer, default_tax, entity};
pub use price::{PriceList, Prices, SimulatedTier, flat, graduated, package, per_unit, percentage, pricing, volume};
pub use step::StepBuilder;
pub use terms::{LineItemTerms, ProductEdit, Terms, item, product, terms};
pub use value::{Given, SimulatedValue, StepTime};

use crate::calendar::{Timestamp, day_after};
use crate::ledger::terms::Backdated;
use crate::quantity::Quantity;
use crate::refs::UsageProductRef;
use crate::refusal::Refusal;
use life::Life;

/// A contract's life: an entity `UB` in UTC bills a customer, and every document is issued when it is due. Its steps are
/// carried out in the order of time; steps at one instant in the order in which they are said.
#[derive(Clone, Debug)]
#[must_use = "a simulation tells what it bills with `until`"]
pub struct Simulation {
    setup: Setup,
    steps: Vec<Step>,
}

/// What a simulation begins with.
#[derive(Clone, Debug)]
struct Setup {
    customer: Vec<CustomerChange>,
    entities: Vec<EntityChange>,
    pricings: Vec<PriceList>,
    terms: Vec<Terms>,
    created: Option<Given<StepTime>>,
    backdated: Backdated,
    runs: bool,
}

/// What is done in a step.
type Action = Arc<dyn Fn(&mut Life) -> Result<(), Refusal> + Send + Sync>;

/// One thing that happens at an instant.
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
            backdated: Backdated::Refused,
            runs: true,
        };
        Self { setup, steps: Vec::new() }
    }
}

impl Simulation {
    /// Returns a simulation in which nothing is agreed yet.
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

    /// Sets how the customer is from the beginning.
    pub fn customer(mut self, customer: CustomerChange) -> Self {
        self.setup.customer.push(customer);
        self
    }

    /// Sets how an entity is from the beginning: `default`, or another, which is added. Its number prefix is made of the letters
    /// and digits of its reference, unless another is set.
    pub fn entity(mut self, entity: EntityChange) -> Self {
        self.setup.entities.push(entity);
        self
    }

    /// Sets when the contract is created: by default at the beginning of its first day, or with the first step, if that is
    /// earlier.
    pub fn created(mut self, at: impl Into<Given<StepTime>>) -> Self {
        self.setup.created = Some(at.into());
        self
    }

    /// Lets the creation make up to 1,200 documents due at once instead of 24 (billing rules 1.6).
    pub const fn allow_backdated(mut self) -> Self {
        self.setup.backdated = Backdated::Allowed;
        self
    }

    /// Issues nothing but in steps that do so: [`StepBuilder::run`], [`StepBuilder::issue`] and those that issue at once.
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

    /// Begins a step at an instant, or at noon of a day in the zone of the first entity. The call after it says what happens.
    pub fn on(self, at: impl Into<Given<StepTime>>) -> StepBuilder {
        StepBuilder::new(self, at.into())
    }

    /// Names the last step: an event, a payment or a refund that later steps change.
    pub fn named(mut self, name: &str) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.name = Some(name.to_owned());
        }
        self
    }

    /// Expects that the last step is refused with a code, and changes nothing. [`Self::until`] refuses with `not_refused` if
    /// it isn't.
    pub fn refused(mut self, code: &str) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.refused = Some(code.to_owned());
        }
        self
    }

    fn step(mut self, at: Given<StepTime>, action: impl Fn(&mut Life) -> Result<(), Refusal> + Send + Sync + 'static) -> Self {
        self.steps.push(Step { at, action: Arc::new(action), name: None, refused: None });
        self
    }

    /// Returns everything that is on documents at the end of a day in the zone of the first entity, or at an instant.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if a value can't be read, or if the rules refuse the contract or a step that isn't
    /// [expected to be refused](Self::refused). Returns [`Refusal::Broken`] if the documents break a rule, which is a defect of
    /// this crate.
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
