//! Usage during the life of a contract (billing rules 4, 5).

use super::event::{EventChange, SimulatedEvent};
use super::life::Life;
use super::setup::unknown;
use crate::calendar::Timestamp;
use crate::contract::Contract;
use crate::ledger::live_labels::LiveLabels;
use crate::ledger::recount::Recount;
use crate::ledger::{issue, post};
use crate::matching::{EventFacts, match_changed_event, match_event};
use crate::quantity::Quantity;
use crate::refs::{EventRef, UsageProductRef};
use crate::refusal::Refusal;
use crate::usage::{CountedEvent, ReportData, UsageKey, UsageTotal};

impl Life {
    /// Reports usage that happened at an instant.
    pub(super) fn report(
        &mut self,
        at: Timestamp,
        usage: &UsageProductRef,
        quantity: Quantity,
        labels: Option<ReportData>,
    ) -> Result<(), Refusal> {
        let (service_date, key, digest) = {
            let facts = EventFacts { usage_product_ref: usage, occurred_at: at, labels: labels.as_ref(), validations: None };
            let found = match_event(facts, std::slice::from_ref(&*self.book.contract), &self.book.entities)?;
            (found.service_date, found.usage_key(usage), found.unique_digest)
        };
        let mut live = self.live_labels(None)?;
        let (counted, listed_on) = self.decide(|life, mut ids| {
            let event_ref = EventRef::from_uuid(ids());
            let counted = CountedEvent { event_ref, occurred_at: at, service_date, quantity, is_distinct: None };
            let added = live.add(&key, digest, counted);
            let listed_on = post::post_usage(&mut life.book, &key, &[added], life.now, &mut ids)?;
            issue::schedule_next_run(&mut life.book, life.now)?;
            Ok((counted, listed_on))
        })?;
        let (name, first_product, period_key) = (self.name.clone(), key.product_no, key.of_line_item(None));
        self.events.push(SimulatedEvent {
            name,
            counted,
            period_key,
            labels,
            unique_digest: digest,
            first_product,
            listed_on,
            is_deleted: false,
        });
        Ok(())
    }

    /// Changes the time, the quantity or the labels of an event.
    pub(super) fn update_event(&mut self, name: &str, change: &EventChange, at: Option<Timestamp>) -> Result<(), Refusal> {
        let index = self.event_index(name)?;
        let present = self.events[index].clone();
        let quantity = change.quantity.as_ref().map(|quantity| quantity.read("quantity")).transpose()?;
        let mut counted = CountedEvent { quantity: quantity.unwrap_or(present.counted.quantity), ..present.counted };
        let labels = match &change.labels {
            Some(labels) => labels.read(),
            None => present.labels.clone(),
        };
        let old_key = self.key(&present)?;
        let (mut key, mut digest) = (old_key.clone(), present.unique_digest);
        if at.is_some() || labels != present.labels {
            let usage_product_ref = &key.usage_product_ref;
            let occurred_at = at.unwrap_or(present.counted.occurred_at);
            let facts = EventFacts { usage_product_ref, occurred_at, labels: labels.as_ref(), validations: None };
            let contracts = std::slice::from_ref(&*self.book.contract);
            let first = (key.contract_ref, present.first_product);
            let service_date = if at.is_none() { Some(present.counted.service_date) } else { None };
            let found = match_changed_event(facts, first, service_date, contracts, &self.book.entities)?;
            (counted.occurred_at, counted.service_date) = (occurred_at, found.service_date);
            digest = found.unique_digest;
            key = found.usage_key(usage_product_ref);
        }
        let before = self.present(index, &old_key)?;
        let added = self.live_labels(Some(index))?.add(&key, digest, counted);
        let listed_on = self.decide(|life, mut ids| {
            let (book, now) = (&mut life.book, life.now);
            let listed_on = if key.is_of_same_period(&old_key) {
                post::post_usage_change(book, before, Some((&key, added)), now, &mut ids)?
            } else {
                post::post_usage_change(book, before, None, now, &mut ids)?;
                post::post_usage(book, &key, &[added], now, &mut ids)?
            };
            issue::schedule_next_run(book, now)?;
            Ok(listed_on)
        })?;
        let period_key = key.of_line_item(None);
        self.events[index] = SimulatedEvent { counted, period_key, labels, unique_digest: digest, listed_on, ..present };
        Ok(())
    }

    /// Deletes an event, so that it no longer counts.
    pub(super) fn delete_event(&mut self, name: &str) -> Result<(), Refusal> {
        let index = self.event_index(name)?;
        let key = self.key(&self.events[index])?;
        let present = self.present(index, &key)?;
        self.decide(|life, mut ids| {
            post::post_usage_change(&mut life.book, present, None, life.now, &mut ids)?;
            issue::schedule_next_run(&mut life.book, life.now)
        })?;
        self.events[index].is_deleted = true;
        Ok(())
    }

    /// Returns the key of the running total that counts an event.
    fn key(&self, event: &SimulatedEvent) -> Result<UsageKey, Refusal> {
        let key = self.book.contract.counting_key(&event.period_key, event.labels.as_ref());
        key.map_err(|_| Refusal::Broken("an event that the terms don't count".to_owned()))
    }

    fn event_index(&self, name: &str) -> Result<usize, Refusal> {
        let is_meant = |event: &SimulatedEvent| event.name.as_deref() == Some(name) && !event.is_deleted;
        self.events.iter().position(is_meant).ok_or_else(|| unknown("event", name))
    }

    /// Returns an event with the running total that counts the others.
    fn present<'k>(&self, index: usize, key: &'k UsageKey) -> Result<post::PresentEvent<'k>, Refusal> {
        let event = &self.events[index];
        let (mut without, mut live) = (UsageTotal::ZERO, LiveLabels::default());
        let others = self.events.iter().enumerate().filter(|(i, other)| *i != index && !other.is_deleted);
        for (_, other) in others.filter(|(_, other)| other.period_key == event.period_key) {
            if self.key(other)? == *key {
                without = without.plus(live.add(key, other.unique_digest, other.counted))?;
            }
        }
        Ok(post::PresentEvent { key, counted: event.counted, without, listed_on: event.listed_on })
    }
}

impl Life {
    /// Returns how many events have each text of a label that `UNIQUE` counts, optionally without one event.
    fn live_labels(&self, except: Option<usize>) -> Result<LiveLabels, Refusal> {
        let mut live = LiveLabels::default();
        let is_counted =
            |(i, event): &(usize, &SimulatedEvent)| Some(*i) != except && !event.is_deleted && event.unique_digest.is_some();
        for (_, event) in self.events.iter().enumerate().filter(is_counted) {
            let _ = live.add(&self.key(event)?, event.unique_digest, event.counted);
        }
        Ok(live)
    }
}

/// Counts the events of a usage product in a period by the terms of a contract.
pub(super) fn recount(events: &[SimulatedEvent], contract: &Contract, key: &UsageKey) -> Result<Recount, Refusal> {
    let mut recount = Recount::default();
    for event in events.iter().filter(|event| !event.is_deleted && event.period_key == *key) {
        recount.count(contract, key, event.labels.clone(), event.unique_digest, event.counted)?;
    }
    Ok(recount)
}
