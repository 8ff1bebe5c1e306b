//! The steps of a simulation, each at an instant.

use std::sync::Arc;

use super::change::{ContractChange, QuantityEdit};
use super::credit::CreditTerms;
use super::event::{EventChange, Labels};
use super::events::recount;
use super::life::Life;
use super::party::{ChargeChange, ChargeTerms, CustomerChange, EntityChange};
use super::price::PriceList;
use super::setup::{put_entity, unknown};
use super::simulation::Simulation;
use super::value::{Given, StepTime};
use crate::charge::Charge;
use crate::contract::Contract;
use crate::contract::amendment::{CancelAt, ContractEdit};
use crate::ledger::amend::BackdatingPolicy;
use crate::ledger::charge::{self, ChargeContext};
use crate::ledger::{amend as amending, issue};
use crate::money::{Currency, Price};
use crate::quantity::Quantity;
use crate::refs::UsageProductRef;
use crate::refusal::Refusal;
use crate::tax::ExchangeRate;
use crate::usage::UsageKey;

/// The instant of a step. Each method except [`Self::allow_backdated`] defines the step and returns the simulation with
/// that step.
#[derive(Clone, Debug)]
#[must_use]
pub struct StepBuilder {
    simulation: Simulation,
    at: Given<StepTime>,
    backdated: BackdatingPolicy,
    labels: Labels,
}

impl Simulation {
    /// Begins a step at an instant, or at noon of a day in the time zone of the first entity. The next call defines the
    /// step.
    pub fn on(self, at: impl Into<Given<StepTime>>) -> StepBuilder {
        StepBuilder::new(self, at.into())
    }
}

impl StepBuilder {
    pub(super) const fn new(simulation: Simulation, at: Given<StepTime>) -> Self {
        Self { simulation, at, backdated: BackdatingPolicy::Refused, labels: Labels::NONE }
    }

    fn step(self, action: impl Fn(&mut Life) -> Result<(), Refusal> + Send + Sync + 'static) -> Simulation {
        let backdated = self.backdated;
        self.simulation.step(self.at, move |life| {
            life.backdated = backdated;
            action(life)
        })
    }

    /// Allows the step to make up to 1,200 documents due at once instead of 24 (billing rules 1.6).
    pub const fn allow_backdated(mut self) -> Self {
        self.backdated = BackdatingPolicy::Allowed;
        self
    }

    /// Sets the labels of the event that the next call reports.
    pub fn labels(mut self, labels: &[(&str, &str)]) -> Self {
        self.labels = Labels::of(labels);
        self
    }

    /// Reports usage that happened at an instant.
    pub fn event(
        self,
        at: impl Into<Given<StepTime>>,
        usage: impl Into<Given<UsageProductRef>>,
        quantity: impl Into<Given<Quantity>>,
    ) -> Simulation {
        let (at, usage, quantity) = (at.into(), usage.into(), quantity.into());
        let (setup, labels) = (self.simulation.setup.clone(), self.labels.clone());
        self.step(move |life| {
            let (at, labels) = (setup.instant(&at)?, labels.read());
            life.report(at, &usage.read("usage_product_ref")?, quantity.read("quantity")?, labels)
        })
    }

    /// Changes the event with a name.
    pub fn update_event(self, name: &str, change: impl FnOnce(EventChange) -> EventChange) -> Simulation {
        let (name, change) = (name.to_owned(), change(EventChange::default()));
        let setup = self.simulation.setup.clone();
        self.step(move |life| {
            let at = change.at.as_ref().map(|at| setup.instant(at)).transpose()?;
            life.update_event(&name, &change, at)
        })
    }

    /// Deletes the event with a name.
    pub fn delete_event(self, name: &str) -> Simulation {
        let name = name.to_owned();
        self.step(move |life| life.delete_event(&name))
    }

    /// Edits the contract.
    pub fn edit(self, change: impl FnOnce(ContractChange) -> ContractChange) -> Simulation {
        let change = change(ContractChange::new());
        self.step(move |life| {
            for (terms, no) in change.added().iter().zip(life.book.contract.products.len()..) {
                if let Some(prices) = terms.own_prices(no) {
                    life.put_prices(&prices)?;
                }
            }
            let edit = change.read(&life.book.contract)?;
            life.edit(&edit)
        })
    }

    /// Edits the contract with typed values.
    pub fn edit_as(self, edit: ContractEdit) -> Simulation {
        self.step(move |life| life.edit(&edit))
    }

    /// Adds a quantity step of a fixed line item, such as seats.
    pub fn change_quantity(self, change: QuantityEdit) -> Simulation {
        self.step(move |life| {
            let change = change.read()?;
            life.decide(|life, mut ids| amending::change_quantity(&mut life.book, &change, life.backdated, life.now, &mut ids))
        })
    }

    /// Cancels the contract at the end of each product's current period.
    pub fn cancel(self) -> Simulation {
        self.cancel_with(|| Ok(CancelAt::PeriodEnd))
    }

    /// Cancels the contract with today as its last day. All open documents are issued at once.
    pub fn cancel_today(self) -> Simulation {
        self.cancel_with(|| Ok(CancelAt::Today))
    }

    /// Cancels the contract with a last day in the past or future.
    pub fn cancel_on(self, last_day: impl Into<Given<chrono::NaiveDate>>) -> Simulation {
        let last_day = last_day.into();
        self.cancel_with(move || Ok(CancelAt::Day(last_day.read("last_day")?)))
    }

    fn cancel_with(self, last_day: impl Fn() -> Result<CancelAt, Refusal> + Send + Sync + 'static) -> Simulation {
        self.step(move |life| {
            let last_day = last_day()?;
            life.decide(|life, mut ids| amending::cancel(&mut life.book, last_day, life.backdated, life.now, &mut ids))
        })
    }

    /// Resumes the canceled contract.
    pub fn resume(self) -> Simulation {
        self.step(|life| life.decide(|life, mut ids| amending::resume(&mut life.book, life.backdated, life.now, &mut ids)))
    }

    /// Records a charge.
    pub fn charge(self, terms: ChargeTerms) -> Simulation {
        self.step(move |life| {
            let new = terms.read()?;
            life.charged(terms.issue, |life, occasion, mut ids| charge::record(&mut life.book, new, occasion, &mut ids))
        })
    }

    /// Changes the charge with a reference.
    pub fn edit_charge(self, reference: &str, change: impl FnOnce(ChargeChange) -> ChargeChange) -> Simulation {
        let (reference, change) = (reference.to_owned(), change(ChargeChange::new()));
        self.step(move |life| {
            let (present, edit) = (life.charge_named(&reference)?, change.read()?);
            life.charged(change.issue, |life, occasion, mut ids| {
                charge::change(&mut life.book, &present, &edit, occasion, &mut ids)
            })
        })
    }

    /// Deletes the charge with a reference, so that it no longer counts.
    pub fn delete_charge(self, reference: &str) -> Simulation {
        let reference = reference.to_owned();
        self.step(move |life| {
            let present = life.charge_named(&reference)?;
            life.charged(false, |life, occasion, mut ids| charge::delete(&mut life.book, &present, occasion, &mut ids))
        })
    }

    /// Issues all due documents.
    pub fn run(self) -> Simulation {
        self.step(Life::run)
    }

    /// Issues the draft with a number manually, early or not.
    pub fn issue(self, number: &str) -> Simulation {
        let number = number.to_owned();
        self.step(move |life| {
            let document_ref = life.numbered(&number)?.head.document_ref;
            life.decide(|life, mut ids| issue::issue(&mut life.book, document_ref, life.now, &mut ids).map(drop))
        })
    }

    /// Voids the issued document with a number. Its period is billed again.
    pub fn void(self, number: &str) -> Simulation {
        let number = number.to_owned();
        self.step(move |life| {
            let document_ref = life.numbered(&number)?.head.document_ref;
            let content = life.content(document_ref)?;
            life.decide(|life, _| issue::void(&mut life.book, document_ref, &content, false, life.now))
        })
    }

    /// Edits the customer. Default taxes apply from today unless they have a day.
    pub fn edit_customer(self, change: CustomerChange) -> Simulation {
        self.step(move |life| {
            let today = life.first_entitys_today();
            change.apply(Arc::make_mut(&mut life.book.customer), today)?;
            life.remind()
        })
    }

    /// Edits or adds an entity. Default taxes apply from today unless they have a day.
    pub fn edit_entity(self, change: EntityChange) -> Simulation {
        self.step(move |life| {
            let today = life.today(&change.reference()?);
            put_entity(&mut life.book.entities, &change, today)?;
            life.note_entities();
            life.remind()
        })
    }

    /// Replaces or adds a pricing. Contracts keep their agreed prices until an edit reprices a product.
    pub fn edit_pricing(self, prices: PriceList) -> Simulation {
        self.step(move |life| life.put_prices(&prices))
    }

    /// Records the exchange rate of a currency in another currency from a day on.
    pub fn post_exchange_rate(
        self,
        (from, to): (&str, &str),
        day: impl Into<Given<chrono::NaiveDate>>,
        rate: impl Into<Given<Price>>,
    ) -> Simulation {
        let (from, to, day, rate) = (Given::<Currency>::from(from), Given::<Currency>::from(to), day.into(), rate.into());
        self.step(move |life| {
            let (from, to) = (from.read("from")?, to.read("to")?);
            life.put_exchange_rate(ExchangeRate { from, to, date: day.read("date")?, rate: rate.read("rate")? })
        })
    }

    /// Records a payment of a document, at most the amount due. A [named](Simulation::named) payment can be reversed,
    /// refunded and applied.
    pub fn pay(self, number: &str, amount: &str) -> Simulation {
        let (number, amount) = (number.to_owned(), amount.to_owned());
        self.step(move |life| life.pay(&number, &amount, false))
    }

    /// Records a payment of a document that may exceed the amount due. The rest becomes balance.
    pub fn overpay(self, number: &str, amount: &str) -> Simulation {
        let (number, amount) = (number.to_owned(), amount.to_owned());
        self.step(move |life| life.pay(&number, &amount, true))
    }

    /// Records a deposit: a payment without a document, to the entity and in the currency of the first product.
    pub fn deposit(self, amount: &str) -> Simulation {
        let amount = amount.to_owned();
        self.step(move |life| life.deposit(&amount))
    }

    /// Grants credit to the customer. Documents in force keep what they took; drafts take it at once.
    pub fn grant(self, terms: CreditTerms) -> Simulation {
        self.step(move |life| life.grant(&terms))
    }

    /// Reverses the payment or refund with a name.
    pub fn reverse(self, name: &str) -> Simulation {
        let name = name.to_owned();
        self.step(move |life| life.reverse(&name))
    }

    /// Refunds an amount of a credit (by number) or a payment (by name).
    pub fn refund(self, source: &str, amount: &str) -> Simulation {
        let (source, amount) = (source.to_owned(), amount.to_owned());
        self.step(move |life| life.refund(&source, &amount))
    }

    /// Applies an amount of a credit (by number) or a payment (by name) to the document with a number.
    pub fn apply(self, source: &str, number: &str, amount: &str) -> Simulation {
        let (source, number, amount) = (source.to_owned(), number.to_owned(), amount.to_owned());
        self.step(move |life| life.apply(&source, &number, &amount))
    }

    /// Reverses the applications of a credit or a payment to the document with a number.
    pub fn unapply(self, source: &str, number: &str) -> Simulation {
        let (source, number) = (source.to_owned(), number.to_owned());
        self.step(move |life| life.unapply(&source, &number))
    }

    /// Writes off the amount due of the document with a number.
    pub fn write_off(self, number: &str) -> Simulation {
        let number = number.to_owned();
        self.step(move |life| life.write_off(&number))
    }

    /// Reverses the write-off of the document with a number.
    pub fn undo_write_off(self, number: &str) -> Simulation {
        let number = number.to_owned();
        self.step(move |life| life.undo_write_off(&number))
    }
}

impl Life {
    fn edit(&mut self, edit: &ContractEdit) -> Result<(), Refusal> {
        let catalog = self.catalog().clone();
        self.decide(|life, mut ids| {
            let events = &life.events;
            let recount = |contract: &Contract, key: &UsageKey| recount(events, contract, key);
            amending::edit(&mut life.book, (edit, &catalog), life.backdated, life.now, recount, &mut ids)
        })
    }

    fn charge_named(&self, reference: &str) -> Result<Charge, Refusal> {
        let mut live = self.book.charges().live();
        let found = live.find(|charge| charge.charge_ref.as_str() == reference);
        found.cloned().ok_or_else(|| unknown("charge", reference))
    }

    fn charged(
        &mut self,
        issue: bool,
        decide: impl FnOnce(&mut Self, ChargeContext, &mut dyn FnMut() -> uuid::Uuid) -> Result<Charge, Refusal>,
    ) -> Result<(), Refusal> {
        self.decide(|life, ids| {
            let occasion = ChargeContext { now: life.now, by: Self::by(), issue };
            decide(life, occasion, ids)?;
            issue::schedule_next_run(&mut life.book, life.now)
        })
    }
}
