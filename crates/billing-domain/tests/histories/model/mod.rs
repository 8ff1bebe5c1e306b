//! A naive model of billing, written from the rules alone: it keeps raw events and the terms agreed on, and computes
//! everything anew whenever it is asked. It knows no document; what it has to know of documents it is told.

mod amend;
pub(crate) mod calendar;
mod dues;
pub(crate) mod rating;
pub(crate) mod terms;

use billing_domain::calendar::Timestamp;

use self::calendar::{Date, service_date};
use self::terms::{Product, Terms};
use crate::spec::{Catalog, Element, Rate};
pub(crate) use amend::{Facts, LastDay, QuantityRequest};
pub(crate) use dues::{Part, Slot, With};

#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) usage: usize,
    pub(crate) at: Timestamp,
    /// The service date, by the zone of the moment it was taken or moved.
    pub(crate) day: Date,
    pub(crate) product: u16,
    pub(crate) quantity: u32,
    pub(crate) deleted: bool,
}

/// A charge, as its latest change has it.
#[derive(Clone, Debug)]
pub(crate) struct Charge {
    /// As a line item.
    pub(crate) id: String,
    pub(crate) product: u16,
    pub(crate) day: Date,
    pub(crate) quantity: u32,
    pub(crate) price: i64,
    pub(crate) with: With,
    pub(crate) discountable: bool,
    pub(crate) currency: &'static str,
    pub(crate) deleted: bool,
}

/// What the rules say of an operation.
#[derive(Clone, Debug)]
pub(crate) enum Verdict<T> {
    /// It has to be taken.
    Take(T),
    /// It has to be refused.
    Refuse(&'static str),
    /// The rules leave it open, or the model doesn't follow what it depends on; taken, it has this effect.
    May(&'static str, T),
    /// The model doesn't follow: it isn't asked for.
    Skip(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum State {
    Pending,
    Active,
    Cancelling,
    Cancelled,
    Completed,
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) catalog: Catalog,
    pub(crate) products: Vec<Product>,
    /// The products before the contract was cancelled.
    pub(crate) before_cancel: Option<Vec<Product>>,
    /// The first day any product was ever to bill.
    pub(crate) first_day: Date,
    pub(crate) events: Vec<Event>,
    pub(crate) charges: Vec<Charge>,
    /// Whether a cancel was ever taken back.
    pub(crate) was_resumed: bool,
    /// Whether an entity's zone was ever edited.
    pub(crate) zone_moved: bool,
}

impl Model {
    /// A new contract.
    pub(crate) fn created(catalog: Catalog, elements: &[Element]) -> Result<Self, &'static str> {
        let products = elements
            .iter()
            .zip(0..)
            .map(|(element, no)| Terms::agree(element, &catalog).map(|terms| Product::new(no, terms)))
            .collect::<Result<Vec<_>, _>>()?;
        if amend::comes_twice(&products) {
            return Err("duplicate_product");
        }
        let first_day = products.iter().map(Product::start).min().ok_or("no product")?;
        Ok(Self {
            catalog,
            products,
            before_cancel: None,
            first_day,
            events: Vec::new(),
            charges: Vec::new(),
            was_resumed: false,
            zone_moved: false,
        })
    }

    pub(crate) fn zone(&self, entity: usize) -> &'static str {
        self.catalog.entities[entity].zone
    }

    pub(crate) fn product(&self, no: u16) -> &Product {
        self.products.iter().find(|product| product.no == no).expect("products are kept")
    }

    /// Today where a product is billed; `None` where its entities don't agree on that.
    pub(crate) fn today(&self, product: &Product, now: Timestamp) -> Option<Date> {
        let mut days = product.whole.iter().map(|stretch| service_date(self.zone(stretch.terms.entity), now));
        let first = days.next()?;
        days.all(|day| day == first).then_some(first)
    }

    /// Every date that it is somewhere.
    pub(crate) fn todays(&self, now: Timestamp) -> Vec<Date> {
        let stretches = self.products.iter().flat_map(|product| &product.whole);
        let mut days: Vec<Date> = stretches.map(|stretch| service_date(self.zone(stretch.terms.entity), now)).collect();
        days.sort_unstable();
        days.dedup();
        days
    }

    fn state_on(&self, today: Date) -> State {
        let start = self.products.iter().filter_map(Product::first_day).min();
        let over = match self.products.iter().filter_map(Product::end).max() {
            Some(end) => today >= end,
            None => self.before_cancel.is_some(),
        };
        match (self.before_cancel.is_some(), over) {
            (true, true) => State::Cancelled,
            (true, false) => State::Cancelling,
            (false, true) => State::Completed,
            (false, false) if start.is_some_and(|start| today < start) => State::Pending,
            (false, false) => State::Active,
        }
    }

    /// The contract's state; `None` where its entities don't agree on that.
    pub(crate) fn state(&self, now: Timestamp) -> Option<State> {
        let mut states = self.todays(now).into_iter().map(|day| self.state_on(day));
        let first = states.next()?;
        states.all(|state| state == first).then_some(first)
    }

    /// The products that a charge may be meant for.
    pub(crate) fn charged_products(&self, pricing: Option<usize>, day: Date) -> Vec<u16> {
        let bills = |product: &&Product| {
            product.period_at(day).is_some_and(|period| pricing.is_none_or(|pricing| period.terms.pricing == pricing))
        };
        self.products.iter().filter(bills).map(|product| product.no).collect()
    }

    /// Whether a charge takes more than the documents of its period bill of its product, after discount. `before` is what
    /// it was, in the same period or another.
    pub(crate) fn takes_too_much(&self, before: Option<&Charge>, charge: &Charge) -> bool {
        let period = |charge: &Charge| self.product(charge.product).period_at(charge.day).expect("a period").start;
        let minor = |charge: &Charge| rating::charge(charge.price, charge.quantity, charge.currency);
        let start = period(charge);
        let takes_less = before.is_some_and(|before| period(before) == start && minor(charge) >= minor(before));
        if minor(charge) >= 0 || takes_less {
            return false;
        }
        let parts = self.parts();
        let others = parts
            .iter()
            .filter(|part| part.product == charge.product && part.start == start && part.item.as_ref() != Some(&charge.id));
        let (mut discounted, mut whole) = (0, 0);
        for part in others {
            if self.is_discountable(part.item.as_deref()) { discounted += part.minor } else { whole += part.minor }
        }
        if charge.discountable {
            discounted += minor(charge)
        } else {
            whole += minor(charge)
        }
        let rate = self.product(charge.product).period_at(charge.day).expect("a period").terms.discount.unwrap_or(0);
        let discount = rating::round_ratio(i128::from(discounted) * i128::from(rate), 10_000);
        discounted - discount + whole < 0
    }

    /// Whether the discount applies to a line item.
    pub(crate) fn is_discountable(&self, item: Option<&str>) -> bool {
        self.charges.iter().find(|charge| item == Some(&charge.id)).is_none_or(|charge| charge.discountable)
    }

    /// Discount and tax in force on terms, with a default tax.
    pub(crate) fn rates(terms: &Terms, default_tax: Option<Rate>) -> (Rate, Rate) {
        (terms.discount.unwrap_or(0), terms.tax.or(default_tax).unwrap_or(0))
    }
}
