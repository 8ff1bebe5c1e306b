//! Usage during the life of a contract (billing rules 4, 5).

use chrono::NaiveDate;

use super::event::{EventChange, SimulatedEvent};
use super::life::Life;
use super::setup::unknown;
use crate::calendar::Timestamp;
use crate::ledger::{issue, post};
use crate::matching::{EventFacts, match_changed_event, match_event};
use crate::quantity::Quantity;
use crate::refs::{EventRef, ProductNo, UsageProductRef};
use crate::refusal::Refusal;
use crate::usage::{CountedEvent, UsageKey, UsageTotal};

impl Life {
    /// Reports usage that happened at an instant.
    pub(super) fn report(&mut self, at: Timestamp, usage: &UsageProductRef, quantity: Quantity) -> Result<(), Refusal> {
        let (service_date, key) = {
            let facts = EventFacts { usage_product_ref: usage, occurred_at: at, validations: None };
            let found = match_event(facts, std::slice::from_ref(&*self.book.contract), &self.book.entities)?;
            (found.service_date, self.key(found.period.product_no, found.period.start(), usage))
        };
        let (counted, listed_on) = self.decide(|life, mut ids| {
            let counted = CountedEvent { event_ref: EventRef::from_uuid(ids()), occurred_at: at, service_date, quantity };
            let listed_on = post::post_usage(&mut life.book, key.product_no, usage, &[counted], life.now, &mut ids)?;
            issue::schedule_next_run(&mut life.book, life.now)?;
            Ok((counted, listed_on))
        })?;
        let name = self.name.clone();
        let first_product = key.product_no;
        self.events.push(SimulatedEvent { name, counted, key, first_product, listed_on, is_deleted: false });
        Ok(())
    }

    /// Changes the time of an event, its quantity, or both.
    pub(super) fn update_event(&mut self, name: &str, change: &EventChange, at: Option<Timestamp>) -> Result<(), Refusal> {
        let index = self.event_index(name)?;
        let present = self.events[index].clone();
        let quantity = change.quantity.as_ref().map(|quantity| quantity.read("quantity")).transpose()?;
        let mut counted = CountedEvent { quantity: quantity.unwrap_or(present.counted.quantity), ..present.counted };
        let mut key = present.key.clone();
        if let Some(at) = at {
            let facts = EventFacts { usage_product_ref: &key.usage_product_ref, occurred_at: at, validations: None };
            let contracts = std::slice::from_ref(&*self.book.contract);
            let first = (key.contract_ref, present.first_product);
            let found = match_changed_event(facts, first, None, contracts, &self.book.entities)?;
            (counted.occurred_at, counted.service_date) = (at, found.service_date);
            key = self.key(found.period.product_no, found.period.start(), &present.key.usage_product_ref);
        }
        let change = (present.counted, self.without(index)?);
        let listed_on = self.decide(|life, mut ids| {
            let (book, now) = (&mut life.book, life.now);
            let listed_on = if key == present.key {
                post::post_usage_change(book, &key, change, Some(counted), present.listed_on, now, &mut ids)?
            } else {
                post::post_usage_change(book, &present.key, change, None, present.listed_on, now, &mut ids)?;
                post::post_usage(book, key.product_no, &key.usage_product_ref, &[counted], now, &mut ids)?
            };
            issue::schedule_next_run(book, now)?;
            Ok(listed_on)
        })?;
        self.events[index] = SimulatedEvent { counted, key, listed_on, ..present };
        Ok(())
    }

    /// Deletes an event, so that it no longer counts.
    pub(super) fn delete_event(&mut self, name: &str) -> Result<(), Refusal> {
        let index = self.event_index(name)?;
        let event = self.events[index].clone();
        let change = (event.counted, self.without(index)?);
        self.decide(|life, mut ids| {
            post::post_usage_change(&mut life.book, &event.key, change, None, event.listed_on, life.now, &mut ids)?;
            issue::schedule_next_run(&mut life.book, life.now)
        })?;
        self.events[index].is_deleted = true;
        Ok(())
    }

    fn key(&self, product_no: ProductNo, period_start: NaiveDate, usage: &UsageProductRef) -> UsageKey {
        let contract_ref = self.book.contract.contract_ref;
        UsageKey { contract_ref, product_no, period_start, usage_product_ref: usage.clone() }
    }

    fn event_index(&self, name: &str) -> Result<usize, Refusal> {
        let is_meant = |event: &SimulatedEvent| event.name.as_deref() == Some(name) && !event.is_deleted;
        self.events.iter().position(is_meant).ok_or_else(|| unknown("event", name))
    }

    /// Returns the running total of an event's service period without the event.
    fn without(&self, index: usize) -> Result<UsageTotal, Refusal> {
        let key = &self.events[index].key;
        let others = self.events.iter().enumerate().filter(|(i, event)| *i != index && !event.is_deleted && event.key == *key);
        Ok(others.map(|(_, event)| event.counted).try_fold(UsageTotal::ZERO, UsageTotal::plus)?)
    }
}
