//! The amounts owed, their documents and their due dates (billing rules 2, 4, 5, 6).

use std::cmp::Reverse;
use std::collections::BTreeSet;

use billing_domain::calendar::Timestamp;
use billing_domain::catalog::Aggregation;
use billing_domain::contract::terms::PaymentTime;
use ethnum::I256;

use super::calendar::{Date, days_between, midnight, service_date};
use super::rating::raw_quantity;
use super::terms::{Item, Period, Product, Terms};
use super::{Charge, Event, Model, rating};
use crate::histories::spec::{Amount, ChargeSpec, Counts, Label, UsageSpec};

/// The kind of a period's regular document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Slot {
    Period,
    UsageDebit,
    Closing,
}

/// The items of a period that an amount is billed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum With {
    Fixed,
    Usage,
}

/// One amount owed, and the document that bills it.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) product: u16,
    /// The first day of the service period.
    pub(crate) start: Date,
    /// The line item, or `None` for the true-up to the minimum fee.
    pub(crate) item: Option<String>,
    pub(crate) with: With,
    pub(crate) minor: i64,
    /// The terms with the discount and the stated tax.
    pub(crate) terms: std::rc::Rc<Terms>,
    /// The first day of the document's own period.
    pub(crate) own: Date,
    pub(crate) slot: Slot,
}

impl Product {
    /// Returns the index of the period and the slot of the document that bills a period's usage.
    pub(crate) fn usage_slot(&self, index: usize) -> (usize, Slot) {
        let period = &self.periods[index];
        match period.terms.payment_time {
            PaymentTime::AfterUse => (index, Slot::Period),
            PaymentTime::BeforeUse => (index, Slot::UsageDebit),
            PaymentTime::DuringUse => match self.periods.get(index + 1) {
                Some(next) if next.start == period.end && carries_over(&period.terms, &next.terms) => (index + 1, Slot::Period),
                Some(_) | None => (index, Slot::Closing),
            },
        }
    }

    /// Returns the first day on which a document can be issued.
    pub(crate) fn issue_day(&self, index: usize, slot: Slot) -> Date {
        let period = &self.periods[index];
        let natural =
            if slot == Slot::Period && period.terms.payment_time != PaymentTime::AfterUse { period.start } else { period.end };
        period.terms.issue_day.map_or(natural, |day| day.max(natural))
    }
}

fn carries_over(terms: &Terms, next: &Terms) -> bool {
    next.payment_time == PaymentTime::DuringUse && next.entity == terms.entity && next.currency == terms.currency
}

impl Model {
    /// Returns the instant from which a document is due to be issued.
    pub(crate) fn due_at(&self, product: &Product, index: usize, slot: Slot) -> Timestamp {
        let entity = product.periods[index].terms.entity;
        let day = midnight(self.zone(entity), product.issue_day(index, slot));
        day.plus_seconds(i64::from(self.catalog.entities[entity].grace_hours) * 3600)
    }

    /// Returns whether terms count an event. `UNIQUE` counts only events with the label.
    fn counts(&self, terms: &Terms, usage: usize, label: Label) -> bool {
        terms.counts(usage, label) && (label.is_some() || self.catalog.usage[usage] != Aggregation::Unique)
    }

    /// Returns the products and service dates that usage can match, best first (billing rules 4). Only the timestamp of an event
    /// that moves gives it another `day`.
    pub(crate) fn candidates(&self, usage: usize, at: Timestamp, label: Label, day: Option<Date>) -> Vec<(u16, Date)> {
        let mut found = Vec::new();
        for product in &self.products {
            let mut entities: Vec<usize> = product.periods.iter().map(|period| period.terms.entity).collect();
            entities.dedup();
            for entity in entities {
                let day = day.unwrap_or_else(|| service_date(self.zone(entity), at));
                if let Some(period) = product.period_at(day)
                    && period.terms.entity == entity
                    && self.counts(&period.terms, usage, label)
                    && !found.contains(&(product.no, day))
                {
                    found.push((product.no, day));
                }
            }
        }
        found.sort_by_key(|(no, day)| {
            let period = self.product(*no).period_at(*day).expect("a period of the day");
            (Reverse(period.terms.start), *no)
        });
        found
    }

    /// Returns the raw Q of a line item in a period, and the number of events.
    pub(crate) fn q(&self, product: u16, period: &Period, item: &Item) -> (I256, i128) {
        let ChargeSpec::Usage(UsageSpec { usage, counts, .. }) = &item.charge else { panic!("a line item without usage") };
        let usage = *usage;
        let is_counted = |event: &Event| *counts == Counts::Every || period.terms.selected(usage, event.label) == Some(item.id);
        let here: Vec<(usize, &Event)> = self
            .events
            .iter()
            .enumerate()
            .filter(|(_, event)| !event.deleted && event.product == product && event.usage == usage && period.contains(event.day))
            .filter(|(_, event)| is_counted(event))
            .collect();
        let quantity = |event: &Event| raw_quantity(event.quantity);
        let latest = || here.iter().max_by_key(|(i, event)| (event.at, *i));
        let q = match self.catalog.usage[usage] {
            Aggregation::Sum => here.iter().map(|(_, event)| quantity(event)).sum(),
            Aggregation::Count => here.iter().map(|_| raw_quantity(1_000)).sum(),
            Aggregation::Max => here.iter().map(|(_, event)| quantity(event)).max().unwrap_or_default(),
            Aggregation::Latest => latest().map(|(_, event)| quantity(event)).unwrap_or_default(),
            Aggregation::Unique => {
                let labels: BTreeSet<Label> = here.iter().map(|(_, event)| event.label).collect();
                raw_quantity(1_000) * I256::from(labels.len() as i128)
            }
        };
        (q, here.len() as i128)
    }

    /// Returns the first period of the contract, of any product, that has a line item of a pricing (billing rules 6).
    pub(crate) fn first_with(&self, pricing: usize, item: &str) -> Option<(Date, u16)> {
        let first = |product: &Product| {
            let has_item =
                |period: &&Period| period.terms.pricing == pricing && period.terms.items.iter().any(|has| has.id == item);
            product.periods.iter().find(has_item).map(|period| (period.start, product.no))
        };
        self.products.iter().filter_map(first).min()
    }

    /// Returns the amount of a fixed line item in a period, or `None` for a `ONCE` item outside its first period.
    fn fixed(&self, product: &Product, period: &Period, item: &Item) -> Option<i64> {
        let ChargeSpec::Fixed { price, once } = &item.charge else { return None };
        let currency = period.terms.currency;
        let on = |day: Date| {
            let mut before = item.quantities.iter().filter(|(from, _)| *from <= day);
            before.next_back().map_or(1_000, |(_, quantity)| *quantity)
        };
        if *once {
            let is_first = self.first_with(period.terms.pricing, item.id) == Some((period.start, product.no));
            return is_first.then(|| rating::fixed(price, &[(on(period.start), 1)], 1, currency));
        }
        let mut parts: Vec<(Amount, i64)> = Vec::new();
        let mut from = period.start;
        for (step, _) in item.quantities.iter().filter(|(step, _)| period.start < *step && *step < period.end) {
            parts.push((on(from), days_between(from, *step)));
            from = *step;
        }
        parts.push((on(from), days_between(from, period.end)));
        Some(rating::fixed(price, &parts, period.share().1, currency))
    }

    /// Returns all amounts of the contract, each with the document that bills it.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for product in &self.products {
            for (index, period) in product.periods.iter().enumerate() {
                self.parts_of(product, index, period, &mut parts);
            }
        }
        parts
    }

    #[expect(clippy::too_many_lines, reason = "the model follows the order of the rules")]
    fn parts_of(&self, product: &Product, index: usize, period: &Period, parts: &mut Vec<Part>) {
        let (terms, share) = (&period.terms, period.share());
        let (usage_index, usage_slot) = product.usage_slot(index);
        let usage_own = product.periods[usage_index].start;
        // `ONCE` items do not count toward the minimum fee.
        let (mut sum, mut all) = (0, 0);
        let mut part = |item: Option<&str>, with: With, minor: i64| {
            let (own, slot) = match with {
                With::Fixed => (period.start, Slot::Period),
                With::Usage => (usage_own, usage_slot),
            };
            let (terms, item) = (std::rc::Rc::clone(terms), item.map(str::to_owned));
            parts.push(Part { product: product.no, start: period.start, item, with, minor, terms, own, slot });
        };
        for item in &terms.items {
            match &item.charge {
                ChargeSpec::Fixed { .. } => {
                    if let Some(minor) = self.fixed(product, period, item) {
                        all += minor;
                        sum += if matches!(item.charge, ChargeSpec::Fixed { once: true, .. }) { 0 } else { minor };
                        part(Some(item.id), With::Fixed, minor);
                    }
                }
                ChargeSpec::Usage(usage) => {
                    let (q, events) = self.q(product.no, period, item);
                    let q = q.max(raw_quantity(usage.prepaid.unwrap_or(0)));
                    let minor = rating::usage(usage, q, events, share, terms.currency);
                    let ahead =
                        usage.prepaid.map(|prepaid| rating::usage(usage, raw_quantity(prepaid), 0, share, terms.currency));
                    if let Some(ahead) = ahead {
                        part(Some(item.id), With::Fixed, ahead);
                    }
                    sum += minor;
                    all += minor;
                    part(Some(item.id), With::Usage, minor - ahead.unwrap_or(0));
                }
            }
        }
        if let Some(fee) = terms.minimum_fee {
            let missing = (rating::price(fee, share, terms.currency) - sum).max(0);
            all += missing;
            part(None, With::Usage, missing);
        }
        let mut here: Vec<&Charge> =
            self.charges.iter().filter(|it| !it.deleted && it.product == product.no && period.contains(it.day)).collect();
        here.sort_by_key(|charge| (charge.day, charge.recorded, charge.id.clone()));
        // Negative charges come last and count up to the remaining amount.
        let (below, above): (Vec<&Charge>, Vec<&Charge>) =
            here.into_iter().partition(|it| rating::charge(it.price, it.quantity, it.currency) < 0);
        let (mut discountable, mut fixed) = (all, 0);
        for charge in above.into_iter().chain(below) {
            let mut minor = rating::charge(charge.price, charge.quantity, charge.currency);
            let left = |minor: i64| {
                let (discountable, fixed) =
                    if charge.discountable { (discountable + minor, fixed) } else { (discountable, fixed + minor) };
                rating::net(discountable, fixed, terms.discount.unwrap_or(0))
            };
            if minor < 0 && left(minor) < 0 {
                // Finds the largest credit that fits, by bisection.
                let mut step = minor.unsigned_abs().next_power_of_two().cast_signed();
                minor = 0;
                while step > 0 {
                    let tried = minor - step;
                    if tried > rating::charge(charge.price, charge.quantity, charge.currency) && left(tried) >= 0 {
                        minor = tried;
                    }
                    step /= 2;
                }
            }
            if charge.discountable {
                discountable += minor
            } else {
                fixed += minor
            }
            part(Some(&charge.id), charge.with, minor);
        }
    }
}
